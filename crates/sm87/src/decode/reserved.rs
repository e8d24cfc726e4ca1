//! Modifier fields with values that are no instruction's.
//!
//! NVIDIA's disassembler rejects these words; what hardware would do is not known, and nobody can rely on it.

use crate::word::Word;

/// Base opcode, lowest bit and length of a field, and a bit for each value that exists.
type Rule = (u16, u32, u32, u32);

const ZERO: u32 = 1;

const RULES: &[Rule] = &[
    (0x002, 72, 4, 1 << 15),
    (0x020, 84, 3, !1),
    (0x031, 86, 1, ZERO),
    (0x037, 72, 1, ZERO),
    (0x037, 77, 1, ZERO),
    (0x037, 79, 1, ZERO),
    (0x03a, 75, 3, ZERO),
    (0x03b, 75, 3, ZERO),
    (0x03e, 79, 2, 1 | 1 << 3),
    (0x03f, 76, 1, ZERO),
    (0x045, 75, 3, 1 << 2),
    (0x045, 78, 2, 1 | 1 << 3),
    (0x045, 84, 2, 1 << 2),
    (0x096, 72, 3, ZERO),
    (0x0b9, 73, 3, 0x3f),
    (0x182, 73, 3, 0x3f),
    (0x18e, 76, 1, ZERO),
    (0x192, 78, 1, ZERO),
    (0x1a8, 76, 1, ZERO),
    (0x1a9, 76, 1, ZERO),
];

/// Whether a field, or a combination of fields, has no meaning.
pub(crate) fn reserved(w: Word) -> bool {
    let base = w.base();
    let forbidden = |&(of, lo, len, allowed): &Rule| of == base && allowed >> w.bits(lo, len) & 1 == 0;
    RULES.iter().any(forbidden) || combination(w) || uniform_flag(w).is_some_and(|flag| flag != w.bit(91))
}

fn combination(w: Word) -> bool {
    match w.base() {
        // The third operand is needed to extend the sign of.
        0x011 | 0x091 => w.bit(73) && !w.bit(80),
        0x026 => w.bit(77) && !w.bit(76),
        0x031 => w.bit(77) && w.bit(79) || w.bit(85) && w.bit(78),
        0x035 => w.bit(77) && w.bit(79),
        0x104 | 0x110 => conversion(w, 1..5, w.bits(75, 3), 1..5, w.bits(84, 3)),
        0x105 | 0x111 => conversion(w, 0..4, w.bits(75, 2), 1..4, w.bits(84, 2)),
        0x106 | 0x112 => conversion(w, 1..4, w.bits(75, 2), 0..4, w.bits(84, 2)),
        0x107 | 0x113 => conversion(w, 1..4, w.bits(75, 2), 1..4, w.bits(84, 2)) || w.bits(75, 2) != w.bits(84, 2),
        // A uniform operand goes with a 64-bit address.
        0x181 | 0x186 | 0x18e => w.bit(91) && !(w.bit(72) && w.bit(90)),
        0x180 | 0x185 => w.bit(91) && !w.bit(72),
        0x1a8 => w.bit(91) && !w.bit(72),
        _ => false,
    }
}

/// Conversions have one opcode when a side is 64 bits wide (type 3) and another one when none is.
fn conversion(w: Word, to: std::ops::Range<u32>, d: u32, from: std::ops::Range<u32>, s: u32) -> bool {
    let wide = matches!(w.base(), 0x110..=0x113);
    !to.contains(&d) || !from.contains(&s) || (d == 3 || s == 3) != wide
}

/// What bit 91 must be: it says that an operand is uniform, or a constant bank bindless.
fn uniform_flag(w: Word) -> Option<bool> {
    match (w.base(), w.form()) {
        (0x082, 4) | (0x086 | 0x09c, _) => Some(false),
        (0x0b9, _) => None,
        (0x080..=0x0bf, _) => Some(true),
        (0x001..=0x03a | 0x03c..=0x07f | 0x100..=0x113 | 0x11d | 0x148 | 0x15d, form) => match form {
            6 | 7 => Some(true),
            3 | 5 => None,
            _ => Some(false),
        },
        // Uniform operands of calls are not supported.
        (0x143 | 0x144 | 0x150, _) => Some(false),
        (0x181 | 0x185..=0x188 | 0x18a | 0x1a8, form) => Some(form == 4),
        (0x1ae, form) => Some(form == 7),
        _ => None,
    }
}
