//! Instruction words as text, in the notation of NVIDIA's disassembler.
//!
//! The rows of [`crate::isa`] say what is written and where. This module says how. No other module depends on it.

mod memory;
mod names;
mod numbers;
mod operands;
mod special;

use crate::isa::piece::{Base, Comma, File, Piece, When};
use crate::isa::{Datapath, Field, Isa, Row};
use crate::word::Word;

/// The text of one instruction at address `pc`. It is `None` if the opcode is not known. A field with a value that does
/// not exist is written as `.INVALID` and the value.
pub fn disassemble(lo: u64, hi: u64, pc: u64) -> Option<String> {
    text(Isa::sm87(), Word::new(lo, hi), pc)
}

/// The text of an instruction of the set `isa`.
pub(crate) fn text(isa: &Isa, word: Word, pc: u64) -> Option<String> {
    let opcode = isa.lookup(word)?;
    let mut p = Printer { word, row: opcode.row(), pc, out: String::new() };
    p.guard();
    opcode.pieces().iter().for_each(|piece| p.piece(piece));
    p.out.truncate(p.out.trim_end_matches([',', ' ']).len());
    Some(p.out)
}

/// One instruction while it is printed.
struct Printer<'a> {
    word: Word,
    row: &'a Row,
    /// The address of the instruction, for branch targets.
    pc: u64,
    out: String,
}

impl Printer<'_> {
    fn guard(&mut self) {
        let (n, not) = (self.word.bits(12, 3), self.word.bit(15));
        if n == 7 && !not {
            return;
        }
        self.out += if not { "@!" } else { "@" };
        self.predicate(n, self.row.guard == Datapath::Uniform);
        self.out.push(' ');
    }

    fn piece(&mut self, piece: &Piece) {
        match *piece {
            Piece::Text(text) => self.out += text,
            Piece::Modifier(field) => self.modifier(field),
            Piece::Number(bits, Base::Ten) => self.out += &bits.of(self.word).to_string(),
            Piece::Number(bits, Base::Sixteen) => self.hex(bits.of(self.word).into()),
            Piece::Destination { lo, comma } => self.destination(lo, comma),
            Piece::Condition { lo, when, file } => self.condition(lo, when, file),
            Piece::Complement { lo, not, file } => self.complement(lo, not, file),
            Piece::Register { lo, file } => self.register_of(lo, file),
            Piece::Optional => self.optional(),
            Piece::Operand(operand) => self.operand(operand),
            Piece::Address(address) => self.address(address),
            Piece::Target => self.target(),
            Piece::Special(special) => self.special(special),
        }
    }

    /// Prints a point and a name, or nothing for an empty name.
    fn dot(&mut self, name: &str) {
        if !name.is_empty() {
            self.out.push('.');
            self.out += name;
        }
    }

    fn modifier(&mut self, field: Field) {
        match field.name(self.word) {
            Some(name) => self.dot(name),
            None if field.is_written() => self.out += &format!(".INVALID{}", field.value(self.word)),
            None => {}
        }
    }

    fn destination(&mut self, lo: u32, comma: Comma) {
        let n = self.word.bits(lo, 3);
        if comma != Comma::None && n == 7 {
            return;
        }
        self.out += if comma == Comma::Before { ", " } else { "" };
        self.predicate(n, self.is_uniform(File::Own));
        self.out += if comma == Comma::Behind { ", " } else { "" };
    }

    fn condition(&mut self, lo: u32, when: When, file: File) {
        let always = self.word.bits(lo, 4) == 7;
        let written = match when {
            When::Always => true,
            When::Matters | When::Branches => !always,
            When::Bit(n) => self.word.bit(n),
            When::BitAndMatters(n) => self.word.bit(n) && !always,
        };
        if !written {
            return;
        }
        self.out += match when {
            When::Always => "",
            When::Branches => " ",
            When::Matters | When::Bit(_) | When::BitAndMatters(_) => ", ",
        };
        self.source(lo, self.is_uniform(file));
        self.out += if when == When::Branches { "," } else { "" };
    }

    /// Prints a predicate source at bit `lo`. The bit of its inversion is three bits higher.
    fn source(&mut self, lo: u32, uniform: bool) {
        if self.word.bit(lo + 3) {
            self.out.push('!');
        }
        self.predicate(self.word.bits(lo, 3), uniform);
    }

    fn complement(&mut self, lo: u32, not: u32, file: File) {
        let (n, not) = (7 - self.word.bits(lo, 3), self.word.bit(not));
        if n != 7 || not {
            self.out += if not { ", !" } else { ", " };
            self.predicate(n, self.is_uniform(file));
        }
    }

    /// Prints the target of a branch, which is relative to the next instruction.
    fn target(&mut self) {
        let words = self.row.flow.offset().map_or(0, |bits| bits.signed(self.word));
        self.hex(self.behind(4 * words));
    }

    /// The address that is `offset` bytes behind the next instruction.
    fn behind(&self, offset: i64) -> i64 {
        self.pc.wrapping_add(16).wrapping_add_signed(offset) as i64
    }

    fn is_uniform(&self, file: File) -> bool {
        match file {
            File::Own => self.row.datapath == Datapath::Uniform,
            File::Vector => false,
            File::Uniform => true,
            File::UniformIf(bit) => self.row.datapath == Datapath::Uniform || self.word.bit(bit),
        }
    }

    /// Prints P or UP and its number.
    fn predicate(&mut self, n: u32, uniform: bool) {
        if uniform {
            self.out.push('U');
        }
        self.out.push('P');
        match n {
            7 => self.out.push('T'),
            n => self.out += &n.to_string(),
        }
    }

    /// Prints a hexadecimal number, with a sign if it is negative.
    fn hex(&mut self, x: i64) {
        if x < 0 {
            self.out.push('-');
        }
        self.out += &format!("{:#x}", x.unsigned_abs());
    }
}
