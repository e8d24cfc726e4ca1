//! Instruction words as text, in the notation of NVIDIA's disassembler.
//!
//! Each row of the opcode table carries a template: plain text and fields in braces.
//!
//! | field | prints |
//! |---|---|
//! | `{80.FTZ}`, `{!73.U32}` | `.FTZ` if bit 80 is set, `.U32` if bit 73 is clear |
//! | `{76:2|RM|RP}` | the item that the two bits from 76 select, behind a point; nothing for an empty one |
//! | `{72:8#}`, `{44:3}` | a number, hexadecimal or decimal |
//! | `{74 p87}` | a comma and the field `p87` if bit 74 is set |
//! | `{P81}`, `{P81?}`, `{P81,}` | predicate destination: always; with a comma behind, or before, unless it is PT |
//! | `{p87}`, `{p87?}`, `{p87!}` | predicate source: always; with a comma before unless PT; as a branch condition |
//! | `{fB}` | an operand: type (`f` float, `d` double, `h` halves, `u` unsigned, `x` signed, …) and slot |
//! | others | a name that [`fields`] or [`memory`] knows |
//!
//! An item `?` is a value that means nothing: whatever has it is no instruction.

mod fields;
mod memory;
mod names;
mod numbers;
mod operands;

use super::decode::{self, Row};
use super::word::Word;

/// What is being printed.
pub(super) struct Printer<'a> {
    pub word: Word,
    pub row: &'a Row,
    /// Address of the instruction, for branch targets.
    pub pc: u64,
    pub out: String,
    /// A field has a value that means nothing.
    pub reserved: bool,
}

/// The text of one instruction at address `pc`; `None` if the opcode is not known.
pub fn disassemble(lo: u64, hi: u64, pc: u64) -> Option<String> {
    let word = Word::new(lo, hi);
    let row = decode::form(word)?;
    let p = print(word, row, pc);
    Some(p.out.trim_end_matches([',', ' ']).to_owned())
}

/// Whether a modifier field has a value that means nothing.
pub(super) fn reserved(word: Word, row: &Row) -> bool {
    print(word, row, 0).reserved
}

fn print(word: Word, row: &Row, pc: u64) -> Printer<'_> {
    let mut p = Printer { word, row, pc, out: String::new(), reserved: false };
    p.guard();
    p.template(row.text);
    p
}

impl Printer<'_> {
    fn guard(&mut self) {
        let (n, not) = (self.word.bits(12, 3), self.word.bit(15));
        if n == 7 && !not {
            return;
        }
        let op = self.word.opcode();
        let uniform = (self.uniform() && op != 0x886) || op == 0xab9 || op == 0x9c3;
        self.out += if not { "@!" } else { "@" };
        self.predicate(n, uniform);
        self.out.push(' ');
    }

    fn template(&mut self, text: &str) {
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            self.out += &rest[..open];
            let end = open + rest[open..].find('}').unwrap_or(rest.len() - open - 1);
            self.field(&rest[open + 1..end]);
            rest = &rest[end + 1..];
        }
        self.out += rest;
    }

    /// Whether registers and predicates are uniform ones.
    pub fn uniform(&self) -> bool {
        (0x80..0xc0).contains(&self.row.base)
    }

    /// P or UP by number.
    pub fn predicate(&mut self, n: u32, uniform: bool) {
        if uniform {
            self.out.push('U');
        }
        self.out.push('P');
        match n {
            7 => self.out.push('T'),
            n => self.out += &n.to_string(),
        }
    }

    /// Hexadecimal, with a sign for negative numbers.
    pub fn hex(&mut self, x: i64) {
        if x < 0 {
            self.out.push('-');
        }
        self.out += &format!("{:#x}", x.unsigned_abs());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::lower::{Lower, Pool};

    /// One instruction per opcode with the text NVIDIA's disassembler gives: opcode, text, low half, high half.
    const EXAMPLES: &str = include_str!("examples.tsv");

    fn examples() -> impl Iterator<Item = (&'static str, Word)> {
        EXAMPLES.lines().map(|line| {
            let mut f = line.split('\t').skip(1);
            let text = f.next().unwrap();
            let mut half = || u64::from_str_radix(f.next().unwrap(), 16).unwrap();
            (text, Word::new(half(), half()))
        })
    }

    #[test]
    fn text_of_every_known_opcode() {
        let mut wrong = Vec::new();
        for (text, word) in examples() {
            let (lo, hi) = word.halves();
            let got = disassemble(lo, hi, 0).unwrap_or_default();
            // Branch targets in the examples are relative to where they were found.
            let same = match text.rsplit_once(" 0x") {
                Some((head, _)) if matches!(word.base(), 0x143..=0x147 | 0x149) => got.starts_with(head),
                _ => got == text,
            };
            if !same {
                wrong.push(format!("{word:?}: {got:?}, not {text:?}"));
            }
        }
        assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    }

    #[test]
    fn every_known_opcode_can_be_executed() {
        for (text, word) in examples() {
            let mut pool = Pool::default();
            let mut l = Lower::new(word.unscheduled(), 0, &mut pool);
            let row = decode::form(word).unwrap_or_else(|| panic!("no row for {text}"));
            assert!((row.lower)(&mut l).is_ok(), "{text} is refused");
            assert!(!decode::reserved(word) && !reserved(word, row), "{text} is reserved");
        }
    }

    /// Single bits of good instructions turned over; NVIDIA's disassembler rejects each result.
    #[test]
    fn values_without_a_meaning() {
        for (lo, hi, bit, what) in [
            (0x0000000308007220, 0x000fc80000400000, 86, "FMUL without a scale field"),
            (0x0000000402027811, 0x000fe400078e18ff, 73, "LEA.SX32 that is not .HI"),
            (0x0000000300057304, 0x000fc80000200800, 75, "F2F to nothing"),
            (0x0000000300057304, 0x000fc80000200800, 84, "F2F of 64 bits in the narrow opcode"),
            (0x0000000000007245, 0x000fe40000201400, 78, "I2FP towards minus infinity"),
            (0x0000000000007992, 0x000fec0000002000, 78, "MEMBAR of scope 4"),
            (0x0000000402027981, 0x000ea8000c1e1900, 90, "LDG with a uniform operand and half an address"),
            (0x0000000402027981, 0x000ea8000c1e1900, 91, "LDG whose uniform operand is not announced"),
            (0x00005b00040f7a31, 0x002fc60003810004, 76, "HFMA2 that flushes both ways"),
        ] {
            let word = Word::new(lo, hi);
            let flipped = (u128::from(hi) << 64 | u128::from(lo)) ^ 1 << bit;
            let bad = Word::new(flipped as u64, (flipped >> 64) as u64);
            let refused = |w: Word| decode::form(w).is_none_or(|row| decode::reserved(w) || reserved(w, row));
            assert!(!refused(word), "{what}: the good one");
            assert!(refused(bad), "{what}");
        }
    }
}
