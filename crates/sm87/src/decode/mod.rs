//! The opcode table: one row per opcode, with everything about it.

mod reserved;
mod table;

pub(crate) use reserved::reserved;

use super::exec::lower::{Lower, Refused};
use super::exec::uop::Uop;
use super::word::Word;
use std::sync::OnceLock;

/// One opcode: a 9-bit base and the operand forms it exists in.
pub(crate) struct Row {
    /// Bits 0..8.
    pub base: u16,
    /// A bit for each value of bits 9..11 that exists.
    pub forms: u8,
    /// Mnemonic without modifiers.
    pub name: &'static str,
    /// How the disassembler writes it; see [`crate::disasm`].
    pub text: &'static str,
    /// Makes the micro-op.
    pub lower: fn(&mut Lower<'_>) -> Result<Uop, Refused>,
}

/// The row of a word's opcode.
pub(crate) fn form(w: Word) -> Option<&'static Row> {
    static INDEX: OnceLock<Vec<u8>> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        let mut index = vec![u8::MAX; 4096];
        for (i, row) in table::ROWS.iter().enumerate() {
            for form in (0..8).filter(|f| row.forms >> f & 1 == 1) {
                index[usize::from(row.base | form << 9)] = i as u8;
            }
        }
        index
    });
    table::ROWS.get(usize::from(index[usize::from(w.opcode())]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_opcode_has_two_rows() {
        let mut seen = std::collections::HashSet::new();
        assert!(table::ROWS.len() < 255);
        for row in table::ROWS {
            for form in (0..8).filter(|f| row.forms >> f & 1 == 1) {
                assert!(seen.insert(row.base | form << 9), "{} {:#x}", row.name, row.base | form << 9);
            }
        }
    }
}
