//! Source operands: their places in the word, and the properties that the rows give them.

use super::field::{Bits, Field, Names};
use crate::word::Word;

/// A source operand of a template, with its type and its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operand {
    pub ty: Type,
    pub slot: Slot,
}

/// The type of an operand, which says how it is read. Each type has a letter in templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// `u`: bits.
    Bits,
    /// `x`: a signed number.
    Signed,
    /// `n`: bits that may be complemented.
    Complement,
    /// `i`, `l`: an integer with a sign. Under `.X` the sign bit is a complement.
    Integer,
    Shifted,
    /// `f`.
    Single,
    /// `d`.
    Double,
    /// `c`, `e`, `q`: the source of a conversion, of F2F and of MUFU.
    Convert(Convert),
    /// `b`: the integer that is converted.
    Integral,
    /// `g`: a float without modifiers.
    Plain,
    /// `h`: two halves. `v`: two halves that may be bfloat16. `m`: the halves of HFMA2.MMA.
    Halves,
    HalvesOrBrain,
    HalvesOnly,
    /// `t`: a fragment of a matrix.
    Fragment,
    /// `z`: bits of which only a part of the register is read.
    Narrow,
}

/// The bits that say that a float operand has 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Convert {
    Float,
    FloatToFloat,
    Function,
}

/// The slot of an operand: which of the sources it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    A,
    /// The second and the third of three sources. They change places in forms 2, 3 and 7.
    B,
    C,
    /// The second of two sources.
    S,
    /// The second of two sources, in the place of a third one.
    T,
}

/// The place of an operand in the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A register at bits 24..31.
    First,
    /// The operand at bits 32..63, whose kind depends on the form.
    Low,
    /// A register at bits 64..71.
    High,
}

/// The names for a register of which either half may be read.
const HALF: Names = Names::List("|H1|?|?");
const WHOLE: Names = Names::List("|||");
const BYTE: Names = Names::List("|B1|B2|B3");
/// The names for the ways in which two halves are read.
const PAIR: Names = Names::List("|F32|H0_H0|H1_H1");

const SELECT: Bits = Bits::new(60, 2);
const SELECT_FLOAT: Field = Field::by(SELECT, Bits::new(84, 2), &[WHOLE, HALF, WHOLE, WHOLE]);
const SELECT_F2F: Field = Field::by(SELECT, Bits::new(84, 3), &[WHOLE, HALF, WHOLE, WHOLE, HALF, WHOLE, WHOLE, WHOLE]);
const SELECT_FUNCTION: Field = Field::by(SELECT, Bits::new(73, 1), &[WHOLE, HALF]);
const SELECT_INTEGER: Field = Field::by(SELECT, Bits::new(84, 2), &[BYTE, HALF, WHOLE, WHOLE]);
const PAIR_FIRST: Field = Field::new(Bits::new(74, 2), PAIR);
const PAIR_LOW: Field = Field::new(SELECT, PAIR);
const PAIR_HIGH: Field = Field::new(Bits::new(81, 2), PAIR);

impl Operand {
    /// Makes an operand from the two letters of a template.
    pub(super) const fn parse(ty: u8, slot: u8) -> Operand {
        let ty = match ty {
            b'u' => Type::Bits,
            b'x' => Type::Signed,
            b'n' => Type::Complement,
            b'i' => Type::Integer,
            b'l' => Type::Shifted,
            b'f' => Type::Single,
            b'd' => Type::Double,
            b'c' => Type::Convert(Convert::Float),
            b'e' => Type::Convert(Convert::FloatToFloat),
            b'q' => Type::Convert(Convert::Function),
            b'b' => Type::Integral,
            b'g' => Type::Plain,
            b'h' => Type::Halves,
            b'v' => Type::HalvesOrBrain,
            b'm' => Type::HalvesOnly,
            b't' => Type::Fragment,
            b'z' => Type::Narrow,
            _ => panic!("unknown type of operand"),
        };
        let slot = match slot {
            b'A' => Slot::A,
            b'B' => Slot::B,
            b'C' => Slot::C,
            b'S' => Slot::S,
            b'T' => Slot::T,
            _ => panic!("unknown slot of operand"),
        };
        Operand { ty, slot }
    }

    /// The place of the operand in a word of this form, and the bit that says that the register is used again.
    pub(crate) fn place(self, word: Word) -> (Place, u32) {
        match (self.slot, matches!(word.form(), 2 | 3 | 7)) {
            (Slot::A, _) => (Place::First, 122),
            (Slot::B, true) => (Place::High, 123),
            (Slot::C, false) => (Place::High, 124),
            (Slot::C, true) | (Slot::T, _) => (Place::Low, 124),
            (Slot::B, false) | (Slot::S, _) => (Place::Low, 123),
        }
    }

    /// Whether the operand is a number in the word.
    pub(crate) fn is_immediate(self, word: Word) -> bool {
        self.place(word).0 == Place::Low && matches!(word.form(), 2 | 4)
    }

    /// The field that says which part of the register is read, if the type has parts. A number in the word has no such
    /// field.
    pub(crate) fn part(self, word: Word) -> Option<Field> {
        let place = self.place(word).0;
        match (self.ty, place) {
            _ if self.is_immediate(word) => None,
            (Type::Halves | Type::HalvesOrBrain, Place::First) => Some(PAIR_FIRST),
            (Type::Halves | Type::HalvesOrBrain, Place::Low) => Some(PAIR_LOW),
            (Type::Halves | Type::HalvesOrBrain, Place::High) => Some(PAIR_HIGH),
            (Type::Convert(of), Place::Low) => Some(of.part()),
            (Type::Integral, Place::Low) => Some(SELECT_INTEGER),
            _ => None,
        }
    }
}

impl Convert {
    fn part(self) -> Field {
        match self {
            Convert::Float => SELECT_FLOAT,
            Convert::FloatToFloat => SELECT_F2F,
            Convert::Function => SELECT_FUNCTION,
        }
    }
}

impl Type {
    /// Whether only a part of the register is read.
    pub(crate) fn is_narrow(self, word: Word) -> bool {
        match self {
            Type::Halves | Type::HalvesOrBrain | Type::Narrow => true,
            Type::Convert(Convert::Float) => word.bits(84, 2) == 1,
            Type::Convert(Convert::FloatToFloat) => matches!(word.bits(84, 3), 1 | 4),
            Type::Convert(Convert::Function) => word.bit(73),
            Type::Integral => word.bits(84, 2) < 2,
            _ => false,
        }
    }
}
