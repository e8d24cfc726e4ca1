//! Where the lines of a copy lie: at a pitch, or in a block-linear surface
//! (docs/hardware/gpu-copy-engine.md#multi-line).

use super::super::mem::Accessor;
use tegra_mm::MmuFault;

/// Bytes and rows of a GOB, the tile block-linear surfaces are made of.
const GOB_WIDTH: u64 = 64;
const GOB_HEIGHT: u64 = 8;
pub(super) const GOB_BYTES: u64 = GOB_WIDTH * GOB_HEIGHT;
/// Bytes that stay together inside a GOB.
const RUN: u64 = 16;

/// A block-linear surface and the place of a rectangle in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockLinear {
    pub(crate) va: u64,
    /// Bytes per row.
    pub(crate) width: u64,
    /// Rows per slice.
    pub(crate) height: u64,
    /// log2 of GOBs per block, vertically and in depth.
    pub(crate) block_height: u32,
    pub(crate) block_depth: u32,
    /// First byte and row of the rectangle, and its slice.
    pub(crate) x: u64,
    pub(crate) y: u64,
    pub(crate) layer: u64,
}

impl BlockLinear {
    /// Address of byte `x`, row `y`, slice `z` of the surface.
    fn address(&self, x: u64, y: u64, z: u64) -> u64 {
        let (block_rows, block_slices) = (GOB_HEIGHT << self.block_height, 1u64 << self.block_depth);
        let blocks_x = self.width.div_ceil(GOB_WIDTH);
        let blocks_y = self.height.div_ceil(block_rows);
        // Sizes are the user's: nonsense wraps and meets the MMU.
        let row = (y / block_rows).wrapping_add(blocks_y.wrapping_mul(z / block_slices));
        let block = (x / GOB_WIDTH).wrapping_add(blocks_x.wrapping_mul(row));
        let gob = (y % block_rows) / GOB_HEIGHT + ((z % block_slices) << self.block_height);
        let offset = (block << (self.block_height + self.block_depth)).wrapping_add(gob).wrapping_mul(GOB_BYTES);
        self.va.wrapping_add(offset).wrapping_add(in_gob(x % GOB_WIDTH, y % GOB_HEIGHT))
    }
}

/// Offset inside a GOB, Turing's order of 16-byte runs.
fn in_gob(x: u64, y: u64) -> u64 {
    (x / 32) * 256 + (y / 4) * 128 + ((x % 32) / 16) * 64 + ((y % 4) / 2) * 32 + (y % 2) * 16 + x % 16
}

/// One side of a copy.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Surface {
    /// Lines `pitch` bytes apart.
    Pitch {
        /// First byte of line 0.
        va: u64,
        /// Signed distance of lines.
        pitch: i64,
    },
    /// Tiled.
    Block(BlockLinear),
}

impl Surface {
    /// Address of byte `x` of line `line`, when lines are contiguous.
    pub(crate) fn linear(&self, x: u64, line: u64) -> Option<u64> {
        match *self {
            Surface::Pitch { va, pitch } => Some(va.wrapping_add((pitch as u64).wrapping_mul(line)).wrapping_add(x)),
            Surface::Block(_) => None,
        }
    }

    /// Reads `to.len()` bytes of a line.
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
    /// The contiguous runs of `len` bytes of a line of the rectangle: address, and range within the line part.
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
