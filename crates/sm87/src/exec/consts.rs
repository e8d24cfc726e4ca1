//! The constant banks of a launch.

use super::mem::Tlb;
use super::rows::Row;
use crate::launch::Launch;

/// The most bytes that a bank can have.
const BANK: u32 = 64 << 10;

/// The contents of the banks when the launch began.
pub(crate) struct Banks {
    words: [Vec<u32>; 8],
}

impl Banks {
    /// Reads the banks in `wanted` (one bit for each bank) whole. Of the other banks it reads the words that `rows`
    /// names.
    pub(crate) fn read(launch: &Launch, tlb: &mut Tlb<'_>, wanted: u8, rows: &[(u8, u32)]) -> Banks {
        let mut words: [Vec<u32>; 8] = Default::default();
        for (n, bank) in launch.banks.iter().enumerate() {
            let Some(bank) = bank else { continue };
            let used = rows.iter().filter(|r| usize::from(r.0) == n).map(|r| r.1 + 4).max().unwrap_or(0);
            let size = if wanted >> n & 1 == 1 { BANK } else { used };
            let size = size.min(bank.size).min(BANK);
            words[n] = read_words(tlb, bank.va, size);
        }
        Banks { words }
    }

    /// Makes rows for words that the launch did not read when it began.
    pub(crate) fn fresh(launch: &Launch, wanted: &[(u8, u32)]) -> Vec<Row> {
        let mut tlb = Tlb::new(&launch.table, [0, 0]);
        Banks::read(launch, &mut tlb, 0, wanted).rows(wanted)
    }

    /// The word at a byte offset. It is zero beyond the end of the bank.
    pub(crate) fn word(&self, bank: u32, offset: u32) -> u32 {
        let words = self.words.get(bank as usize);
        words.and_then(|w| w.get(offset as usize / 4)).copied().unwrap_or(0)
    }

    /// Makes a row for each word that a program uses.
    pub(crate) fn rows(&self, wanted: &[(u8, u32)]) -> Vec<Row> {
        wanted.iter().map(|&(bank, offset)| Row([self.word(bank.into(), offset); 32])).collect()
    }
}

/// Reads the words of a bank. Reading stops at the first page that is not mapped.
fn read_words(tlb: &mut Tlb<'_>, va: u64, size: u32) -> Vec<u32> {
    let mut bytes = vec![0; size.next_multiple_of(4) as usize];
    if tlb.read(va, &mut bytes[..size as usize]).is_err() {
        let mut at = 0;
        while at < size as usize {
            let page = 4096 - ((va as usize + at) & 4095);
            let n = page.min(size as usize - at);
            if tlb.read(va + at as u64, &mut bytes[at..at + n]).is_err() {
                break;
            }
            at += n;
        }
    }
    bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
}
