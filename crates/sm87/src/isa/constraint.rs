//! Rules that several fields of an instruction must keep together.

use super::field::Bits;
use crate::word::Word;

/// A rule that a word must keep, besides the values of its fields, to be an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// The rule as a sentence.
    pub text: &'static str,
    rule: Rule,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// The first bit may be set only if the second one is.
    Needs(u32, u32),
    /// The last bit is set if the others are.
    NeedsWith(u32, u32, u32),
    /// At most one of the two bits is set.
    NotBoth(u32, u32),
    /// Tells whether one of the two fields must hold the code of a 64-bit type, or none of them may.
    Wide(Bits, Bits, bool),
    /// A value is in one of two places: in the first if this bit is clear, in the second if it is set. Each place has a mask of the
    /// values that are legal there, one bit for each value.
    Shape(u32, Bits, Bits, [u32; 2]),
    /// The two fields hold the same value.
    Same(Bits, Bits),
    /// Bit 91 is set as this value says. It marks an operand as uniform, or a constant bank as bindless.
    Uniform(Announced),
}

/// The cases in which bit 91 is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Announced {
    Never,
    Always,
    /// The operand at bits 32..63 decides: for a uniform register the bit is set, for a constant bank it may be set,
    /// and for anything else it is clear.
    BySlot,
    /// The bit is set in this operand form and clear in all others.
    InForm(u8),
}

/// The code of a 64-bit type.
const WIDE_TYPE: u32 = 3;
/// Bit 91.
const UNIFORM: u32 = 91;

const fn rule(text: &'static str, rule: Rule) -> Constraint {
    Constraint { text, rule }
}

const TO: Bits = Bits::new(75, 2);
const FROM: Bits = Bits::new(84, 2);

pub(super) const SX32_NEEDS_HI: Constraint =
    rule(".SX32 needs .HI: only then is there a third operand, which it replaces", Rule::Needs(73, 80));
pub(super) const RELU_OR_SAT: Constraint = rule(".RELU and .SAT exclude each other", Rule::NotBoth(77, 79));
pub(super) const BRAIN_OR_SINGLE: Constraint = rule(".BF16_V2 and .F32 exclude each other", Rule::NotBoth(85, 78));

// A conversion has one opcode for numbers of which one has 64 bits, and another opcode for numbers of which none has.
pub(super) const NARROW: Constraint = rule("no side has 64 bits in this opcode", Rule::Wide(TO, FROM, false));
pub(super) const WIDE: Constraint = rule("a side has 64 bits in this opcode", Rule::Wide(TO, FROM, true));
pub(super) const NARROW_F2F: Constraint =
    rule("no side has 64 bits in this opcode", Rule::Wide(Bits::new(75, 3), Bits::new(84, 3), false));
pub(super) const WIDE_F2F: Constraint =
    rule("a side has 64 bits in this opcode", Rule::Wide(Bits::new(75, 3), Bits::new(84, 3), true));
pub(super) const SAME_TYPE: Constraint = rule("both sides have one type", Rule::Same(TO, FROM));

pub(super) const UNIFORM_NEEDS_E: Constraint =
    rule("a uniform operand goes with a 64-bit address (bit 72)", Rule::Needs(UNIFORM, 72));
pub(super) const DESCRIPTOR_NEEDS_64: Constraint =
    rule("a descriptor (bit 76) goes with an address register of 64 bits (bit 90)", Rule::NeedsWith(UNIFORM, 76, 90));
pub(super) const RED_DESCRIPTOR_NEEDS_64: Constraint =
    rule("a descriptor (bit 71) goes with an address register of 64 bits (bit 90)", Rule::NeedsWith(UNIFORM, 71, 90));

pub(super) const SPARSE_HMMA: Constraint = rule(
    "shape 1684 is dense (bit 73), shape 16832 is sparse",
    Rule::Shape(73, Bits::new(75, 1), Bits::new(78, 1), [0b0111, 0b1011]),
);
pub(super) const SPARSE_IMMA: Constraint = rule(
    "shapes 8816, 8832 and 16816 are dense (bit 72), shape 168128 is sparse",
    Rule::Shape(72, Bits::new(75, 1), Bits::new(85, 2), [0b0111_0101, 0b1110_0000]),
);

pub(super) const SLOT: Constraint =
    rule("bit 91 says whether the operand at bit 32 is a uniform register", Rule::Uniform(Announced::BySlot));
pub(super) const SET: Constraint = rule("bit 91 is set", Rule::Uniform(Announced::Always));
pub(super) const CLEAR: Constraint = rule("bit 91 is clear", Rule::Uniform(Announced::Never));
pub(super) const FORM_4: Constraint =
    rule("bit 91 is set in form 4, which has a uniform operand", Rule::Uniform(Announced::InForm(4)));
pub(super) const FORM_7: Constraint =
    rule("bit 91 is set in form 7, which has a uniform operand", Rule::Uniform(Announced::InForm(7)));

impl Constraint {
    /// Whether a word keeps the rule.
    pub fn holds(&self, word: Word) -> bool {
        match self.rule {
            Rule::Needs(bit, other) => !word.bit(bit) || word.bit(other),
            Rule::NeedsWith(bit, with, other) => !(word.bit(bit) && word.bit(with)) || word.bit(other),
            Rule::NotBoth(one, other) => !(word.bit(one) && word.bit(other)),
            Rule::Wide(to, from, wide) => (to.of(word) == WIDE_TYPE || from.of(word) == WIDE_TYPE) == wide,
            Rule::Shape(bit, low, high, shapes) => {
                shapes[usize::from(word.bit(bit))] >> (low.of(word) | high.of(word) << low.len) & 1 == 1
            }
            Rule::Same(one, other) => one.of(word) == other.of(word),
            Rule::Uniform(announced) => announced.by(word).is_none_or(|set| set == word.bit(UNIFORM)),
        }
    }
}

impl Announced {
    fn by(self, word: Word) -> Option<bool> {
        match (self, word.form()) {
            (Announced::Never, _) => Some(false),
            (Announced::Always, _) => Some(true),
            (Announced::BySlot, 3 | 5) => None,
            (Announced::BySlot, form) => Some(matches!(form, 6 | 7)),
            (Announced::InForm(of), form) => Some(form == of),
        }
    }
}
