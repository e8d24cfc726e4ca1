//! The places of the lines of a copy, at a pitch or in a block-linear surface
//! (docs/hardware/gpu-copy-engine.md#multi-line).

use super::super::between::Range;
use super::super::mem::Accessor;
use tegra_mm::MmuFault;

/// The width in bytes and the height in rows of a GOB, the tile of which block-linear surfaces are made.
const GOB_WIDTH: u64 = 64;
const GOB_HEIGHT: u64 = 8;
pub(super) const GOB_BYTES: u64 = GOB_WIDTH * GOB_HEIGHT;
/// The number of bytes that stay together inside a GOB.
const RUN: u64 = 16;

/// A block-linear surface, and the place of a rectangle in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockLinear {
    pub(crate) va: u64,
    /// The bytes per row.
    pub(crate) width: u64,
    /// The rows per slice.
    pub(crate) height: u64,
    /// The log2 of the number of GOBs per block, vertically and in depth.
    pub(crate) block_height: u32,
    pub(crate) block_depth: u32,
    /// The first byte and the first row of the rectangle, and its slice.
    pub(crate) x: u64,
    pub(crate) y: u64,
    pub(crate) layer: u64,
}

impl BlockLinear {
    /// The address of byte `x` in row `y` of slice `z` of the surface.
    fn address(&self, x: u64, y: u64, z: u64) -> u64 {
        let (block_rows, block_slices) = (GOB_HEIGHT << self.block_height, 1u64 << self.block_depth);
        let blocks_x = self.width.div_ceil(GOB_WIDTH);
        let blocks_y = self.height.div_ceil(block_rows);
        // The sizes come from the program. Wrong sizes wrap here, and the access then faults in the MMU.
        let row = (y / block_rows).wrapping_add(blocks_y.wrapping_mul(z / block_slices));
        let block = (x / GOB_WIDTH).wrapping_add(blocks_x.wrapping_mul(row));
        let gob = (y % block_rows) / GOB_HEIGHT + ((z % block_slices) << self.block_height);
        let offset = (block << (self.block_height + self.block_depth)).wrapping_add(gob).wrapping_mul(GOB_BYTES);
        self.va.wrapping_add(offset).wrapping_add(in_gob(x % GOB_WIDTH, y % GOB_HEIGHT))
    }
}

/// The offset inside a GOB, in Turing's order of 16-byte runs.
fn in_gob(x: u64, y: u64) -> u64 {
    (x / 32) * 256 + (y / 4) * 128 + ((x % 32) / 16) * 64 + ((y % 4) / 2) * 32 + (y % 2) * 16 + x % 16
}

/// One side of a copy.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Surface {
    /// Lines that are `pitch` bytes apart.
    Pitch {
        /// The address of the first byte of line 0.
        va: u64,
        /// The signed distance between lines.
        pitch: i64,
    },
    /// Lines in a block-linear surface.
    Block(BlockLinear),
}

impl Surface {
    /// The address of byte `x` of line `line`, if lines are contiguous.
    pub(crate) fn linear(&self, x: u64, line: u64) -> Option<u64> {
        match *self {
            Surface::Pitch { va, pitch } => Some(va.wrapping_add((pitch as u64).wrapping_mul(line)).wrapping_add(x)),
            Surface::Block(_) => None,
        }
    }

    /// The bytes of a line, by their addresses.
    pub(crate) fn ranges(&self, line: u64, len: u64, wrote: bool) -> Vec<Range> {
        match self {
            Surface::Pitch { .. } => vec![Range { va: self.linear(0, line).unwrap_or_default(), len, wrote }],
            Surface::Block(b) => {
                let runs = b.runs(0, line, len as usize);
                runs.map(|(va, range)| Range { va, len: range.len() as u64, wrote }).collect()
            }
        }
    }

    /// Reads `to.len()` bytes of a line into `to`.
    pub(crate) fn gather(&self, mem: &Accessor<'_>, x: u64, line: u64, to: &mut [u8]) -> Result<(), MmuFault> {
        match self {
            Surface::Pitch { .. } => mem.read_bytes(self.linear(x, line).unwrap_or_default(), to),
            Surface::Block(b) => {
                for (at, range) in b.runs(x, line, to.len()) {
                    mem.read_bytes(at, &mut to[range])?;
                }
                Ok(())
            }
        }
    }

    /// Writes `from` to a line.
    pub(crate) fn scatter(&self, mem: &Accessor<'_>, x: u64, line: u64, from: &[u8]) -> Result<(), MmuFault> {
        match self {
            Surface::Pitch { .. } => mem.write_bytes(self.linear(x, line).unwrap_or_default(), from),
            Surface::Block(b) => {
                for (at, range) in b.runs(x, line, from.len()) {
                    mem.write_bytes(at, &from[range])?;
                }
                Ok(())
            }
        }
    }
}

impl BlockLinear {
    /// The contiguous runs of `len` bytes of a line of the rectangle. Each run has an address and a range of the line.
    fn runs(&self, x: u64, line: u64, len: usize) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> + '_ {
        let (first, row) = (self.x + x, self.y + line);
        let mut done = 0usize;
        std::iter::from_fn(move || {
            if done == len {
                return None;
            }
            let at = first + done as u64;
            let n = ((RUN - at % RUN) as usize).min(len - done);
            let range = done..done + n;
            done += n;
            Some((self.address(at, row, self.layer), range))
        })
    }
}
