//! What a row of the opcode table says.

use super::constraint::Constraint;
use super::field::Bits;
use super::op::Op;
use crate::word::Word;

/// Which registers and predicates an instruction works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datapath {
    /// Those of threads: R0–R254, P0–P6.
    Vector,
    /// Those of the warp: UR0–UR62, UP0–UP6.
    Uniform,
}

impl Datapath {
    /// By the 9-bit opcode, known or not: the uniform datapath has a range of its own.
    pub(super) const fn of(base: u16) -> Datapath {
        if matches!(base, 0x80..=0xbf) { Datapath::Uniform } else { Datapath::Vector }
    }
}

/// Where control goes behind an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// To the next instruction.
    Next,
    /// Nowhere that the word tells, unless a predicate keeps lanes here: EXIT, RET, BRX.
    Ends,
    /// To the address that these bits give, unless a predicate keeps lanes here.
    Jump(Bits),
    /// The same, and a further condition may keep lanes here.
    Conditional(Bits),
    /// To a function, which may return; to the address that these bits give, if it is not in a register.
    Call(Option<Bits>),
    /// To the next instruction; later perhaps to the address that these bits give: BSSY.
    Meets(Bits),
}

impl Flow {
    /// The bits that give an address, as words of four bytes behind the next instruction.
    pub fn offset(self) -> Option<Bits> {
        match self {
            Flow::Next | Flow::Ends | Flow::Call(None) => None,
            Flow::Jump(bits) | Flow::Conditional(bits) | Flow::Call(Some(bits)) | Flow::Meets(bits) => Some(bits),
        }
    }

    /// Whether `word` never lets control go to the next instruction.
    pub fn ends(self, word: Word) -> bool {
        matches!(self, Flow::Ends | Flow::Jump(_)) && GUARD.of(word) == TRUE && CONDITION.of(word) == TRUE
    }
}

/// The guard, and the predicate that branches have besides; each with its inversion.
const GUARD: Bits = Bits::new(12, 4);
const CONDITION: Bits = Bits::new(87, 4);
/// PT, not inverted.
const TRUE: u32 = 7;

/// What must be known about a program before it is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notes {
    /// Nothing.
    None,
    /// It reads the constant bank that these bits number at an offset from a register.
    IndexedBank(Bits),
    /// It reads what an atomic found, which depends on the order of CTAs. Or it calls code that is not known before, which
    /// may do so.
    Ordered,
    /// It reads a special register. What a clock shows depends on which CTAs took turns.
    Special,
    /// It changes memory in a way that depends on the order of CTAs if it sums floats.
    OrderedSums,
}

impl Notes {
    /// Whether what `word` leaves behind depends on the order of CTAs.
    pub fn ordered(self, word: Word) -> bool {
        let (ty, operation) = (Bits::new(73, 3).of(word), Bits::new(87, 3).of(word));
        match self {
            Notes::None | Notes::IndexedBank(_) => false,
            Notes::Ordered => true,
            // CLOCK, CLOCKLO, CLOCKHI, GLOBALTIMERLO, GLOBALTIMERHI.
            Notes::Special => matches!(Bits::new(72, 8).of(word), 0x01 | 0x50..=0x53),
            Notes::OrderedSums => matches!(ty, 3 | 4 | 6) || operation == 0 && ty > 5,
        }
    }
}

/// One opcode, and everything about it.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The opcode without its operand form: bits 0..8.
    pub base: u16,
    /// The operand forms it exists in: a bit for each value of bits 9..11.
    pub forms: u8,
    /// Mnemonic without modifiers.
    pub name: &'static str,
    /// What it does.
    pub op: Op,
    /// Text, operands and modifier fields; see [`super`].
    pub text: &'static str,
    /// What its fields demand of each other.
    pub constraints: &'static [Constraint],
    /// Which registers its operands are, where they can be both.
    pub datapath: Datapath,
    /// Which predicates its guard (bits 12..15) is one of.
    pub guard: Datapath,
    /// Where control goes.
    pub flow: Flow,
    /// What a launch must know.
    pub notes: Notes,
}

impl Row {
    pub(super) const fn new(base: u16, forms: u8, name: &'static str, op: Op, text: &'static str) -> Row {
        let datapath = Datapath::of(base);
        let (constraints, guard, flow, notes) = (&[], datapath, Flow::Next, Notes::None);
        Row { base, forms, name, op, text, constraints, datapath, guard, flow, notes }
    }

    /// The 12-bit opcodes of this row.
    pub fn opcodes(&self) -> impl Iterator<Item = u16> + use<> {
        let (base, forms) = (self.base, self.forms);
        (0..8).filter(move |form| forms >> form & 1 == 1).map(move |form| base | form << 9)
    }
}
