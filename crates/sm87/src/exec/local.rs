//! Local memory: the bytes that each thread has of its own. One part begins at address 0, and the other ends at 2^24.
//!
//! The words of the 32 lanes of a warp lie side by side. So the usual access, in which all lanes use the same stack
//! slot, is one row.
#![allow(unsafe_code)]

/// The size of a thread's local address space.
const SPACE: u32 = 1 << 24;

/// The local memory of all warps of a CTA.
pub(crate) struct Local {
    /// Empty until a thread uses its memory. Kernels have some for calls, and most never use it.
    words: Vec<u32>,
    /// How many words there are for all warps.
    count: usize,
    low: u32,
    high: u32,
    /// Whether any memory was used since it was last cleared.
    dirty: bool,
}

impl Local {
    pub(crate) fn new(low: u32, high: u32, warps: usize) -> Self {
        let (low, high) = (low.min(SPACE).next_multiple_of(16), high.min(SPACE).next_multiple_of(16));
        let count = (low as usize + high as usize) / 4 * 32 * warps;
        Local { words: Vec::new(), count, low, high, dirty: false }
    }

    /// Makes the memory.
    #[cold]
    fn make(&mut self) {
        self.words = vec![0; self.count];
    }

    /// Clears the memory for a new CTA.
    pub(crate) fn clear(&mut self) {
        if self.dirty {
            self.words.fill(0);
            self.dirty = false;
        }
    }

    /// The place of the word at `address` (of `len` bytes in all) for lane 0. The place of lane `l` is `l` words
    /// further, and that of the next word is 32 words further.
    #[inline(always)]
    pub(crate) fn row(&mut self, warp: u32, address: u32, len: u32) -> Option<*mut u32> {
        let offset = if address < self.low {
            (self.low - address >= len).then_some(address)?
        } else {
            let at = address.checked_sub(SPACE - self.high)?;
            (at < self.high && self.high - at >= len).then_some(self.low + at)?
        };
        self.dirty = true;
        if self.words.is_empty() {
            self.make();
        }
        let index = (warp as usize * ((self.low + self.high) / 4) as usize + offset as usize / 4) * 32;
        Some(self.words.as_mut_ptr().wrapping_add(index))
    }
}
