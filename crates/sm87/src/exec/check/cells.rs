//! Who has last written and read each word of memory.

use super::quick::Quick;

/// An access that was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// The time of the warp and of the CTA. The warp's is 0 if there was no access.
    pub time: u32,
    pub cta_time: u32,
    pub cta: u32,
    /// The index of the instruction, and a number of its execution.
    pub at: u32,
    pub execution: u32,
    pub warp: u8,
    pub lane: u8,
    /// The bytes of the word.
    pub bytes: u8,
    /// Whether it is an atomic, or ordered with other threads' ("strong").
    pub strong: bool,
    /// Whether it is an atomic of a kind that programs look at beforehand with a plain load.
    pub looked_at: bool,
}

impl Stamp {
    /// Whether it says the same of races as another one.
    pub(crate) fn is_like(&self, other: &Stamp) -> bool {
        let when = |stamp: &Stamp| (stamp.time, stamp.cta_time, stamp.cta, stamp.warp);
        when(self) == when(other) && self.bytes & other.bytes == other.bytes && self.strong == other.strong
    }
}

/// The last accesses to a word.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cell {
    pub write: Stamp,
    /// The last read, and one of another warp before it that is not ordered with it.
    pub reads: [Stamp; 2],
    /// Whether threads tell each other something with the word, so that plain reads of it are meant to be so.
    pub tells: bool,
}

/// The words of a page.
const WORDS: usize = 1024;
type Page = Box<[Cell; WORDS]>;
/// The pages of which is known at once where they are.
const WAYS: usize = 16;
/// The most pages that are remembered. More memory is not looked at.
const MOST: usize = 8 << 10;

/// The words of a large memory.
#[derive(Debug, Default)]
pub(crate) struct Cells {
    index: Quick<u64, usize>,
    pages: Vec<Page>,
    /// The numbers of the pages that were used last, and one more than their places.
    recent: [(u64, usize); WAYS],
}

impl Cells {
    /// The cell of the word at an address; `None` when too much memory is in use.
    pub(crate) fn at(&mut self, address: u64) -> Option<&mut Cell> {
        let (number, word) = (address >> 12, (address >> 2) as usize & (WORDS - 1));
        let recent = self.recent[number as usize % WAYS];
        let page = if recent.0 == number && recent.1 > 0 { recent.1 - 1 } else { self.page(number)? };
        self.recent[number as usize % WAYS] = (number, page + 1);
        Some(&mut self.pages[page][word])
    }

    fn page(&mut self, number: u64) -> Option<usize> {
        if let Some(page) = self.index.get(&number) {
            return Some(*page);
        }
        if self.pages.len() == MOST {
            return None;
        }
        let page: Page = vec![Cell::default(); WORDS].into_boxed_slice().try_into().ok()?;
        self.pages.push(page);
        self.index.insert(number, self.pages.len() - 1);
        Some(self.pages.len() - 1)
    }
}
