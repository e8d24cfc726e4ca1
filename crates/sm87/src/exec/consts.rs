//! The constant banks of a launch.

use super::mem::Tlb;
use super::rows::{Lasting, Row};
use crate::launch::{ConstantBank, Launch};
use zerocopy::IntoBytes;

/// The most bytes that a bank can have.
const BANK: u32 = 64 << 10;
/// The words behind those of a bank, which are zero: whoever loads a whole vector may read them, though nobody uses what it finds there.
const BEHIND: usize = 16;

/// The contents of the banks when the launch began, whatever the program reads of them: it may reach code that nobody knew before
/// the launch, and that reads other words or with an index.
pub(crate) struct Banks {
    words: [Vec<u32>; 8],
}

impl Banks {
    /// Reads all banks of a launch.
    pub(crate) fn read(launch: &Launch, tlb: &mut Tlb<'_>) -> Banks {
        let mut words = |bank: ConstantBank| read_words(tlb, bank.va, bank.size.min(BANK) as usize);
        Banks { words: launch.banks.map(|bank| bank.map(&mut words).unwrap_or_default()) }
    }

    /// The words of a bank, and how many bytes from its beginning on a vector may be loaded from. There are fewer words.
    #[inline(always)]
    pub(crate) fn bank(&self, bank: u8) -> (&[u32], i64) {
        let words = self.words.get(usize::from(bank)).map_or(&[][..], |words| words);
        (&words[..words.len().saturating_sub(BEHIND)], size_of_val(words) as i64)
    }

    /// The word at a byte offset. It is zero beyond the end of the bank.
    pub(crate) fn word(&self, bank: u32, offset: u32) -> u32 {
        let words = self.words.get(bank as usize);
        words.and_then(|w| w.get(offset as usize / 4)).copied().unwrap_or(0)
    }

    /// Makes a row for each word that a program uses.
    pub(crate) fn rows(&self, wanted: &[(u8, u32)]) -> Lasting<Row> {
        let mut rows = Lasting::empty(wanted.len());
        rows.extend(wanted.iter().map(|&(bank, offset)| Row([self.word(bank.into(), offset); 32])));
        rows
    }
}

/// Reads the words of a bank, behind which others follow. Reading stops at the first page that is not mapped.
fn read_words(tlb: &mut Tlb<'_>, va: u64, size: usize) -> Vec<u32> {
    let mut words = vec![0u32; size.div_ceil(4) + BEHIND];
    let bytes = &mut words.as_mut_bytes()[..size];
    if tlb.read(va, bytes).is_err() {
        let mut at = 0;
        while at < size {
            let page = 4096 - ((va as usize + at) & 4095);
            let n = page.min(size - at);
            if tlb.read(va + at as u64, &mut bytes[at..at + n]).is_err() {
                break;
            }
            at += n;
        }
    }
    words
}
