//! Local memory: each thread's own bytes, a part from address 0 up and a part that ends at 2^24.
//!
//! Words of the 32 lanes of a warp lie side by side, so that the usual access, one stack slot of all lanes, is
//! one row.
#![allow(unsafe_code)]

/// The size of a thread's local address space.
const SPACE: u32 = 1 << 24;

/// Local memory of all warps of a CTA.
pub(crate) struct Local {
    words: Vec<u32>,
    low: u32,
    high: u32,
    /// Somebody got an address since the last clear.
    dirty: bool,
}

impl Local {
    pub(crate) fn new(low: u32, high: u32, warps: usize) -> Self {
        let (low, high) = (low.min(SPACE).next_multiple_of(16), high.min(SPACE).next_multiple_of(16));
        Local { words: vec![0; (low as usize + high as usize) / 4 * 32 * warps], low, high, dirty: false }
    }

    /// A new CTA begins.
    pub(crate) fn clear(&mut self) {
        if self.dirty {
            self.words.fill(0);
            self.dirty = false;
        }
    }

    /// Where the word at `address` (of `len` bytes in all) of lane 0 lies; lane `l` is `l` words further, the next
    /// word 32.
    #[inline(always)]
    pub(crate) fn row(&mut self, warp: u32, address: u32, len: u32) -> Option<*mut u32> {
        let offset = if address < self.low {
            (self.low - address >= len).then_some(address)?
        } else {
            let at = address.checked_sub(SPACE - self.high)?;
            (at < self.high && self.high - at >= len).then_some(self.low + at)?
        };
        self.dirty = true;
        let index = (warp as usize * ((self.low + self.high) / 4) as usize + offset as usize / 4) * 32;
        Some(self.words.as_mut_ptr().wrapping_add(index))
    }
}
