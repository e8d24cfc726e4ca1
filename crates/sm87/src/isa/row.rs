//! The contents of a row of the opcode table.

use super::constraint::Constraint;
use super::effects::{Does, Effects};
use super::field::Bits;
use super::op::Op;
use super::parse;
use super::piece::Piece;
use crate::word::Word;

/// The registers and predicates that an instruction works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datapath {
    /// The registers of threads: R0–R254 and P0–P6.
    Vector,
    /// The registers of the warp: UR0–UR62 and UP0–UP6.
    Uniform,
}

impl Datapath {
    /// The datapath of a 9-bit opcode, whether or not it is known. The uniform datapath has its own range of opcodes.
    pub(super) const fn of(base: u16) -> Datapath {
        if matches!(base, 0x80..=0xbf) { Datapath::Uniform } else { Datapath::Vector }
    }
}

/// The places to which control can go after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Control goes to the next instruction.
    Next,
    /// Control goes to no place that the word tells, unless a predicate keeps lanes here.
    Ends(End),
    /// Control goes to the address that these bits give, unless a predicate keeps lanes here.
    Jump(Bits),
    /// Control goes to the address that these bits give, unless a predicate or a further condition keeps lanes here.
    Conditional(Bits),
    /// Control goes to a function, which may return. The bits give its address, if it is not in a register.
    Call(Option<Bits>),
    /// Control goes to the next instruction. The bits of a BSSY give an address to which it may go later.
    Meets(Bits),
}

/// How control leaves for a place that the word does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The lanes exit.
    Exit,
    /// A function returns.
    Return,
    /// The address is in a register.
    Indirect,
}

impl Flow {
    /// The bits that give an address as a number of words of four bytes after the next instruction.
    pub fn offset(self) -> Option<Bits> {
        match self {
            Flow::Next | Flow::Ends(_) | Flow::Call(None) => None,
            Flow::Jump(bits) | Flow::Conditional(bits) | Flow::Call(Some(bits)) | Flow::Meets(bits) => Some(bits),
        }
    }

    /// Whether `word` never lets control go to the next instruction.
    pub fn ends(self, word: Word) -> bool {
        matches!(self, Flow::Ends(_) | Flow::Jump(_)) && GUARD.of(word) == TRUE && CONDITION.of(word) == TRUE
    }
}

/// The bits of the guard, and of the predicate that branches have in addition. Each has its inversion.
const GUARD: Bits = Bits::new(12, 4);
const CONDITION: Bits = Bits::new(87, 4);
/// The value of a predicate that is PT and not inverted.
const TRUE: u32 = 7;

/// The number of the destination register, and that of RZ. The number of the special register that is read.
const DESTINATION: Bits = Bits::new(16, 8);
/// A quarter of the absolute address of a CALL.
const ABSOLUTE: Bits = Bits::new(34, 48);
const ZERO_REGISTER: u32 = 255;
const SPECIAL_REGISTER: Bits = Bits::new(72, 8);

/// Whether a template has a register destination. The bits of one are zero, which is R0, where an instruction has none.
const fn has_destination(mut text: &'static str) -> bool {
    while let Some((piece, rest)) = parse::next(text) {
        if matches!(piece, Piece::Optional | Piece::Register { lo: 16, .. }) {
            return true;
        }
        text = rest;
    }
    false
}

/// What a launch must know about a program before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notes {
    /// The launch needs to know nothing.
    None,
    /// The program reads what an atomic found, which depends on the order of CTAs. Or it calls code whose address is in a register, which is
    /// not known before the launch and may do the same.
    Ordered,
    /// The instruction reads a special register. The value of a clock depends on which CTAs took turns.
    Special,
    /// The instruction changes memory, and if it sums floats, the result depends on the order of CTAs.
    OrderedSums,
}

impl Notes {
    /// Whether the results of `word` depend on the order of CTAs.
    pub fn ordered(self, word: Word) -> bool {
        let (ty, operation) = (Bits::new(73, 3).of(word), Bits::new(87, 3).of(word));
        match self {
            Notes::None => false,
            Notes::Ordered => true,
            // The registers are CLOCK, CLOCKLO, CLOCKHI, GLOBALTIMERLO and GLOBALTIMERHI.
            Notes::Special => matches!(SPECIAL_REGISTER.of(word), 0x01 | 0x50..=0x53),
            Notes::OrderedSums => matches!(ty, 3 | 4 | 6) || operation == 0 && ty > 5,
        }
    }
}

/// An opcode with its operand forms, and everything about it.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The opcode without its operand form: bits 0..8.
    pub base: u16,
    /// The operand forms in which the opcode exists, with one bit for each value of bits 9..11.
    pub forms: u8,
    /// The mnemonic without modifiers.
    pub name: &'static str,
    /// The operation.
    pub op: Op,
    /// The template of the text with operands and modifier fields; see [`super`].
    pub text: &'static str,
    /// The rules that its fields must keep together.
    pub constraints: &'static [Constraint],
    /// The registers that its operands name, where both kinds are possible.
    pub datapath: Datapath,
    /// The predicates of which its guard (bits 12..15) is one.
    pub guard: Datapath,
    /// Where control goes after it.
    pub flow: Flow,
    /// What a launch must know about it.
    pub notes: Notes,
    /// What it does: what it reads and writes, the memory that it accesses, and what it costs.
    pub effects: Effects,
    /// Whether it has a destination register at bits 16..23, as its template says.
    pub has_destination: bool,
}

impl Row {
    pub(super) const fn new(
        base: u16,
        forms: u8,
        name: &'static str,
        op: Op,
        text: &'static str,
        effects: Effects,
    ) -> Row {
        let (datapath, has_destination) = (Datapath::of(base), has_destination(text));
        let (constraints, guard, flow, notes) = (&[], datapath, Flow::Next, Notes::None);
        Row { base, forms, name, op, text, constraints, datapath, guard, flow, notes, effects, has_destination }
    }

    /// Whether programs may wait with the instruction `word` until somebody else has changed memory.
    pub fn may_poll(&self, word: Word) -> bool {
        let keeps_result = self.has_destination && DESTINATION.of(word) != ZERO_REGISTER;
        keeps_result && self.effects.memory().is_some_and(|memory| memory.may_poll(word))
    }

    /// Whether the instruction `word` shows what time it is, or lets time pass.
    pub fn keeps_time(&self, word: Word) -> bool {
        self.effects.does == Does::Sleeps || self.notes == Notes::Special && self.notes.ordered(word)
    }

    /// The special register that the instruction `word` reads, if it reads one.
    pub fn special_register(&self, word: Word) -> Option<u32> {
        (self.notes == Notes::Special).then(|| SPECIAL_REGISTER.of(word))
    }

    /// How many instructions away the place is to which the instruction `word` sends control or may send it.
    pub fn distance(&self, word: Word) -> Option<i64> {
        let offset = 4 * self.flow.offset()?.signed(word);
        (offset % 16 == 0).then_some(1 + offset / 16)
    }

    /// The absolute address to which the instruction `word` sends control, if it tells one.
    pub fn absolute(&self, word: Word) -> Option<u64> {
        (self.op == Op::CallAbsolute).then(|| (4 * ABSOLUTE.signed(word)) as u64)
    }

    /// The place that the instruction `word` calls by its absolute address. Places are so many instructions from the address `code`.
    pub fn calls(&self, word: Word, code: u64) -> Option<i64> {
        let offset = self.absolute(word)?.wrapping_sub(code) as i64;
        (offset % 16 == 0).then_some(offset / 16)
    }

    /// The place to which the instruction `word` at a place sends control or may send it.
    pub fn sends_to(&self, word: Word, at: i64, code: u64) -> Option<i64> {
        self.distance(word).map(|far| at + far).or_else(|| self.calls(word, code))
    }

    /// The 12-bit opcodes that this row describes.
    pub fn opcodes(&self) -> impl Iterator<Item = u16> + use<> {
        let (base, forms) = (self.base, self.forms);
        (0..8).filter(move |form| forms >> form & 1 == 1).map(move |form| base | form << 9)
    }
}
