//! Operands: registers, immediates, constants, with their modifiers.

use super::{Printer, numbers};
use crate::num::half::Kind;

/// Where an operand sits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slot {
    /// Register at bits 24..31.
    A,
    /// Whatever the form puts at bits 32..63.
    Low,
    /// Register at bits 64..71.
    High,
}

impl Printer<'_> {
    /// `{fB}` and its kin: a type and a slot.
    pub(super) fn operand(&mut self, ty: char, slot: char) {
        let swapped = matches!(self.word.form(), 2 | 3 | 7);
        let (place, reuse) = match (slot, swapped) {
            ('A', _) => (Slot::A, 122),
            ('B', true) => (Slot::High, 123),
            ('C', false) => (Slot::High, 124),
            ('C', true) => (Slot::Low, 124),
            // The second operand of DADD is in slot 64 when it is a register, FADD's counts as the third.
            ('T', false) if self.row.base == 0x029 => (Slot::High, 124),
            ('T', _) => (Slot::Low, 124),
            _ => (Slot::Low, 123),
        };
        let immediate = place == Slot::Low && matches!(self.word.form(), 2 | 4);
        if immediate {
            return self.immediate(ty);
        }
        let (neg, abs, not) = self.modifiers(ty, place);
        if neg {
            self.out.push('-');
        } else if not {
            self.out.push('~');
        }
        if abs {
            self.out.push('|');
        }
        self.place(ty, place);
        if abs {
            self.out.push('|');
        }
        if self.word.bit(reuse) && self.word.bit(109) && self.is_register(place) {
            self.out += ".reuse";
        }
        self.suffix(ty, place);
    }

    fn is_register(&self, place: Slot) -> bool {
        !self.uniform() && (place != Slot::Low || self.word.form() == 1)
    }

    /// Negation, absolute value, complement.
    fn modifiers(&self, ty: char, place: Slot) -> (bool, bool, bool) {
        let bit = |n| self.word.bit(n);
        let (float, halves) = (matches!(ty, 'f' | 'd' | 'c'), matches!(ty, 'h' | 'm'));
        match (ty, place) {
            (_, Slot::A) if float || halves => (bit(72), bit(73), false),
            (_, Slot::Low) if float || halves => (bit(63), bit(62), false),
            (_, Slot::High) if halves => (bit(84), bit(83), false),
            (_, Slot::High) if float => (bit(75), bit(74), false),
            ('t', Slot::A) => (bit(72), false, false),
            ('t', Slot::Low) => (bit(63), false, false),
            ('n', Slot::Low) => (false, false, bit(63)),
            ('n', Slot::High) => (bit(75), false, false),
            // Under .X a negation is a complement.
            ('i' | 'l', _) => {
                let on = bit(match place {
                    Slot::A => 72,
                    Slot::Low => 63,
                    Slot::High => 75,
                });
                (on && !bit(74), false, on && bit(74))
            }
            _ => (false, false, false),
        }
    }

    /// Which half or byte is read.
    fn suffix(&mut self, ty: char, place: Slot) {
        let select = match (ty, place) {
            ('h', Slot::A) => self.word.bits(74, 2),
            ('h', Slot::Low) => self.word.bits(60, 2),
            ('c' | 'b', Slot::Low) if self.narrow(ty) => self.word.bits(60, 2),
            ('h', Slot::High) => self.word.bits(81, 2),
            _ => return,
        };
        let names = match ty {
            'h' => ["", ".F32", ".H0_H0", ".H1_H1"],
            'c' => ["", ".H1", "?", "?"],
            _ if self.word.bits(84, 2) == 1 => ["", ".H1", "?", "?"],
            _ => ["", ".B1", ".B2", ".B3"],
        };
        match names[select as usize] {
            "?" => {
                self.reserved = true;
                self.out += &format!(".INVALID{select}");
            }
            name => self.out += name,
        }
    }

    /// Whether less than a register is read of an operand of this type.
    fn narrow(&self, ty: char) -> bool {
        match (ty, self.row.base) {
            ('h' | 'z', _) => true,
            ('b', _) => self.word.bits(84, 2) < 2,
            ('c', 0x108) => self.word.bit(73),
            ('c', 0x107) => self.word.bits(75, 2) == 1,
            ('c', 0x104 | 0x110) => matches!(self.word.bits(84, 3), 1 | 4),
            ('c', _) => self.word.bits(84, 2) == 1,
            _ => false,
        }
    }

    fn place(&mut self, ty: char, place: Slot) {
        match (place, self.word.form()) {
            (Slot::A, _) => self.register(24),
            (Slot::High, _) => self.register(64),
            (Slot::Low, 3 | 5) => self.constant(if self.narrow(ty) { " " } else { "" }),
            (Slot::Low, 6 | 7) => self.uniform_register(32),
            (Slot::Low, _) => self.register(32),
        }
    }

    /// The register at bit `lo`: a uniform one in uniform instructions.
    pub(super) fn register(&mut self, lo: u32) {
        if self.uniform() {
            return self.uniform_register(lo);
        }
        match self.word.bits(lo, 8) {
            255 => self.out += "RZ",
            n => self.out += &format!("R{n}"),
        }
    }

    /// The uniform register at bit `lo`.
    pub(super) fn uniform_register(&mut self, lo: u32) {
        match self.word.bits(lo, 6) {
            63 => self.out += "URZ",
            n => self.out += &format!("UR{n}"),
        }
    }

    /// A constant bank reference, its two parts apart where the original has them apart.
    pub(super) fn constant(&mut self, gap: &str) {
        if self.word.bit(91) {
            self.out += "cx[";
            self.uniform_register(32);
            self.out.push(']');
        } else {
            self.out += &format!("c[{:#x}]", self.word.bits(54, 5));
        }
        self.out += gap;
        self.out.push('[');
        let offset = self.word.signed(38, 16);
        self.hex(offset);
        self.out.push(']');
    }

    fn immediate(&mut self, ty: char) {
        let x = self.word.bits(32, 32);
        let text = match ty {
            'f' | 'c' | 'g' => single(x),
            'd' => double(u64::from(x) << 32),
            'h' | 'm' => {
                // Comparisons have a predicate there, and no bfloat16.
                let brain = matches!(self.row.base, 0x031 | 0x040) && self.word.bit(85);
                let kind = if brain { Kind::Bf16 } else { Kind::F16 };
                format!("{}, {}", half(kind, (x >> 16) as u16), half(kind, x as u16))
            }
            'x' | 'i' => return self.hex((x as i32).into()),
            _ => format!("{x:#x}"),
        };
        self.out += &text;
    }
}

fn single(x: u32) -> String {
    let v = f32::from_bits(x);
    if v.is_nan() { numbers::nan(x >> 31 == 1, x >> 22 & 1 == 1).to_owned() } else { numbers::float(v.into()) }
}

fn double(x: u64) -> String {
    let v = f64::from_bits(x);
    if v.is_nan() { numbers::nan(x >> 63 == 1, x >> 51 & 1 == 1).to_owned() } else { numbers::float(v) }
}

fn half(kind: Kind, x: u16) -> String {
    if kind.is_nan(x) {
        let quiet = x >> (kind.format().fraction - 1) & 1 == 1;
        return numbers::nan(x >> 15 == 1, quiet).to_owned();
    }
    numbers::float(kind.widen(x).into())
}
