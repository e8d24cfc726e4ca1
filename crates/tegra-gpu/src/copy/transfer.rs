//! A transfer while it runs: lines, elements and remapping. It can stop between pieces and continue later.

use super::super::between::Range;
use super::super::mem::Accessor;
use super::super::semaphore::Release;
use super::surface::Surface;
use tegra_mm::MmuFault;
use tegrarm_abi::layout::Bits;
use tegrarm_abi::methods::copy::*;

/// The number of bytes that are moved before the turn's budget is checked again.
const PIECE: u64 = 1 << 20;
/// The cost of a piece besides its bytes, so that lines of a few bytes cannot make a turn long.
const PIECE_COST: u64 = 256;
/// The number of elements that are remapped at a time.
const ELEMENTS: u64 = 4096;

// The report codes of a remapping that does not exist (docs/hardware/gpu-copy-engine.md#launch-dma).
const BAD_SOURCE_COMPONENT: u32 = 8;
pub(super) const INVALID_VALUE: u32 = 9;

/// The source of a component of the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Component {
    /// A component of the source element, by number.
    Source(usize),
    /// A constant, which is truncated to the size of the component.
    Constant(u32),
    /// The component is not written.
    NoWrite,
}

/// The rearrangement of elements.
#[derive(Clone, Debug)]
pub(crate) struct Remap {
    /// The bytes per component, 1 to 4.
    pub(crate) size: usize,
    /// The number of components that are read per element.
    pub(crate) sources: usize,
    /// The components that are written per element.
    pub(crate) components: Vec<Component>,
}

impl Remap {
    /// Decodes SET_REMAP_COMPONENTS. The error is the report code of the copy engine and a sentence.
    pub(crate) fn decode(word: u32, constants: [u32; 2]) -> Result<Remap, (u32, String)> {
        const SELECTORS: [Bits; 4] = [
            NVC6B5_SET_REMAP_COMPONENTS_DST_X,
            NVC6B5_SET_REMAP_COMPONENTS_DST_Y,
            NVC6B5_SET_REMAP_COMPONENTS_DST_Z,
            NVC6B5_SET_REMAP_COMPONENTS_DST_W,
        ];
        let sources = NVC6B5_SET_REMAP_COMPONENTS_NUM_SRC_COMPONENTS.of(word) as usize + 1;
        let count = NVC6B5_SET_REMAP_COMPONENTS_NUM_DST_COMPONENTS.of(word) as usize + 1;
        let component = |bits: &Bits| match bits.of(word) {
            s @ NVC6B5_SET_REMAP_COMPONENTS_DST_X_SRC_X..=NVC6B5_SET_REMAP_COMPONENTS_DST_X_SRC_W => {
                if s as usize >= sources {
                    return Err((BAD_SOURCE_COMPONENT, format!("component {s} of a source with {sources}")));
                }
                Ok(Component::Source(s as usize))
            }
            NVC6B5_SET_REMAP_COMPONENTS_DST_X_CONST_A => Ok(Component::Constant(constants[0])),
            NVC6B5_SET_REMAP_COMPONENTS_DST_X_CONST_B => Ok(Component::Constant(constants[1])),
            NVC6B5_SET_REMAP_COMPONENTS_DST_X_NO_WRITE => Ok(Component::NoWrite),
            s => Err((INVALID_VALUE, format!("remap selector {s}"))),
        };
        let components = SELECTORS[..count].iter().map(component).collect::<Result<_, _>>()?;
        let size = NVC6B5_SET_REMAP_COMPONENTS_COMPONENT_SIZE.of(word) as usize + 1;
        Ok(Remap { size, sources, components })
    }

    /// The number of bytes that are read per element.
    pub(crate) fn read_bytes(&self) -> u64 {
        (self.sources * self.size) as u64
    }

    /// The size of an element in the destination, in bytes.
    pub(crate) fn write_bytes(&self) -> u64 {
        (self.components.len() * self.size) as u64
    }

    /// Whether any component comes from the source.
    fn reads(&self) -> bool {
        self.components.iter().any(|c| matches!(c, Component::Source(_)))
    }

    fn skips(&self) -> bool {
        self.components.contains(&Component::NoWrite)
    }

    /// Rearranges the elements of `from` into `to`.
    fn apply(&self, from: &[u8], to: &mut [u8]) {
        let (read, write) = (self.read_bytes() as usize, self.write_bytes() as usize);
        for (i, element) in to.chunks_exact_mut(write).enumerate() {
            for (component, out) in self.components.iter().zip(element.chunks_exact_mut(self.size)) {
                match component {
                    Component::Source(s) => {
                        let at = i * read + s * self.size;
                        out.copy_from_slice(&from[at..at + self.size]);
                    }
                    Component::Constant(c) => out.copy_from_slice(&c.to_le_bytes()[..self.size]),
                    Component::NoWrite => {}
                }
            }
        }
    }
}

/// A transfer.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) from: Surface,
    pub(crate) to: Surface,
    /// The elements per line. An element is one byte, unless elements are remapped.
    pub(crate) elements: u64,
    pub(crate) lines: u64,
    pub(crate) remap: Option<Remap>,
    /// The line that is being copied, and the number of its elements that are done.
    pub(crate) line: u64,
    pub(crate) done: u64,
    pub(crate) started_ns: u64,
    /// The semaphore that is released after the transfer.
    pub(crate) release: Option<Release>,
}

impl Transfer {
    /// Makes a transfer that moves nothing.
    pub(crate) fn nothing(started_ns: u64) -> Transfer {
        let nowhere = Surface::Pitch { va: 0, pitch: 0 };
        Transfer {
            from: nowhere,
            to: nowhere,
            elements: 0,
            lines: 0,
            remap: None,
            line: 0,
            done: 0,
            started_ns,
            release: None,
        }
    }

    /// Copies until the transfer is finished or `budget` is used up. Returns the used budget in bytes.
    /// [`Transfer::finished`] tells whether the transfer is finished.
    pub(crate) fn advance(&mut self, mem: &Accessor<'_>, budget: u64) -> Result<u64, MmuFault> {
        let mut used = 0;
        let mut scratch = Scratch::default();
        while !self.finished() && used < budget {
            let n = match &self.remap {
                None => self.plain(mem, &mut scratch)?,
                Some(remap) => self.remapped(mem, remap, &mut scratch)?,
            };
            used += n.1 + PIECE_COST;
            self.done += n.0;
            if self.done == self.elements {
                self.done = 0;
                self.line += 1;
            }
        }
        Ok(used)
    }

    pub(crate) fn finished(&self) -> bool {
        self.elements == 0 || self.line >= self.lines
    }

    /// The number of bytes that the whole transfer writes.
    pub(crate) fn bytes(&self) -> u64 {
        let element = self.remap.as_ref().map_or(1, Remap::write_bytes);
        self.elements.saturating_mul(self.lines).saturating_mul(element)
    }

    /// What it is in a report.
    pub(crate) fn what(&self) -> String {
        let reads = self.remap.as_ref().is_none_or(Remap::reads);
        format!("{} of {} bytes", if reads { "a copy" } else { "a fill" }, self.bytes())
    }

    /// The bytes that the whole transfer reads and writes. Components that are left out are not told apart.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = Range> {
        let (read, write) = match &self.remap {
            None => (1, 1),
            Some(remap) => (if remap.reads() { remap.read_bytes() } else { 0 }, remap.write_bytes()),
        };
        let lines = if self.elements == 0 || self.remap.as_ref().is_some_and(Remap::skips) { 0 } else { self.lines };
        let of = move |line: u64| {
            let from = self.from.ranges(line, self.elements * read, false).into_iter();
            from.chain(self.to.ranges(line, self.elements * write, true)).filter(|range| range.len > 0)
        };
        (0..lines).flat_map(of)
    }

    /// The number of bytes that the whole transfer reads and writes together.
    pub(crate) fn moved(&self) -> u64 {
        let read = self.remap.as_ref().map_or(1, |remap| if remap.reads() { remap.read_bytes() } else { 0 });
        self.bytes().saturating_add(self.elements.saturating_mul(self.lines).saturating_mul(read))
    }

    /// Copies one piece without remapping. Returns the elements and the bytes that are done.
    fn plain(&self, mem: &Accessor<'_>, scratch: &mut Scratch) -> Result<(u64, u64), MmuFault> {
        let n = (self.elements - self.done).min(PIECE);
        if let (Some(from), Some(to)) = (self.from.linear(0, self.line), self.to.linear(0, self.line)) {
            // If a line overlaps its own destination and the destination has higher addresses, the line is copied from
            // its end.
            let backwards = from < to && to - from < self.elements;
            let at = if backwards { self.elements - self.done - n } else { self.done };
            mem.copy(from.wrapping_add(at), to.wrapping_add(at), n as usize)?;
        } else {
            let n = n.min(ELEMENTS);
            scratch.read.resize(n as usize, 0);
            self.from.gather(mem, self.done, self.line, &mut scratch.read)?;
            self.to.scatter(mem, self.done, self.line, &scratch.read)?;
            return Ok((n, n));
        }
        Ok((n, n))
    }

    /// Copies one piece with remapping.
    fn remapped(&self, mem: &Accessor<'_>, remap: &Remap, scratch: &mut Scratch) -> Result<(u64, u64), MmuFault> {
        let n = (self.elements - self.done).min(ELEMENTS);
        let (read, write) = (remap.read_bytes(), remap.write_bytes());
        let same = scratch.pattern == n && !remap.reads();
        if remap.reads() {
            scratch.read.resize((n * read) as usize, 0);
            self.from.gather(mem, self.done * read, self.line, &mut scratch.read)?;
        }
        if !same {
            scratch.write.resize((n * write) as usize, 0);
            remap.apply(&scratch.read, &mut scratch.write);
            scratch.pattern = n;
        }
        if remap.skips() {
            self.scatter_components(mem, remap, n, &scratch.write)?;
        } else {
            self.to.scatter(mem, self.done * write, self.line, &scratch.write)?;
        }
        Ok((n, n * write))
    }

    /// Writes only the components that are not excluded.
    fn scatter_components(&self, mem: &Accessor<'_>, remap: &Remap, n: u64, bytes: &[u8]) -> Result<(), MmuFault> {
        let (size, write) = (remap.size as u64, remap.write_bytes());
        for i in 0..n {
            for (c, component) in remap.components.iter().enumerate() {
                if *component != Component::NoWrite {
                    let at = i * write + c as u64 * size;
                    let part = &bytes[at as usize..(at + size) as usize];
                    self.to.scatter(mem, self.done * write + at, self.line, part)?;
                }
            }
        }
        Ok(())
    }
}

/// The buffers that all pieces use.
#[derive(Default)]
struct Scratch {
    read: Vec<u8>,
    write: Vec<u8>,
    /// The number of elements of a constant pattern that `write` holds already.
    pattern: u64,
}
