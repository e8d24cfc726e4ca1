//! Prints operands: registers, immediates and constants, with their modifiers.

use super::{Printer, numbers};
use crate::isa::Datapath;
use crate::isa::operand::{Operand, Place, Type};
use crate::isa::piece::File;
use sm87_num::half::Kind;

/// The modifiers in front of an operand.
#[derive(Clone, Copy, Default)]
struct Sign {
    neg: bool,
    abs: bool,
    /// True for a complement.
    not: bool,
}

impl Printer<'_> {
    pub(super) fn operand(&mut self, operand: Operand) {
        if operand.is_immediate(self.word) {
            return self.immediate(operand.ty);
        }
        let (place, reuse) = operand.place(self.word);
        let sign = self.sign(operand.ty, place);
        if sign.neg {
            self.out.push('-');
        } else if sign.not {
            self.out.push('~');
        }
        let mut part = operand.part(self.word);
        if sign.abs {
            self.out.push('|');
        }
        self.place(operand.ty, place);
        if sign.abs {
            // Only where two halves of a register are read, nvdisasm writes the part behind the bars.
            if !(matches!(operand.ty, Type::Halves | Type::HalvesOrBrain) && self.is_register(place)) {
                part.take().into_iter().for_each(|part| self.modifier(part));
            }
            self.out.push('|');
        }
        if self.word.bit(reuse) && self.word.bit(109) && self.is_register(place) {
            self.out += ".reuse";
        }
        if let Some(part) = part {
            self.modifier(part);
        }
    }

    fn is_register(&self, place: Place) -> bool {
        self.row.datapath == Datapath::Vector && (place != Place::Low || self.word.form() == 1)
    }

    fn sign(&self, ty: Type, place: Place) -> Sign {
        let float = |neg, abs| Sign { neg: self.word.bit(neg), abs: self.word.bit(abs), not: false };
        let neg = |bit| Sign { neg: self.word.bit(bit), ..Sign::default() };
        match (ty, place) {
            (Type::Single | Type::Double | Type::Convert(_), place) => match place {
                Place::First => float(72, 73),
                Place::Low => float(63, 62),
                Place::High => float(75, 74),
            },
            (Type::Halves | Type::HalvesOrBrain | Type::HalvesOnly, place) => match place {
                Place::First => float(72, 73),
                Place::Low => float(63, 62),
                Place::High => float(84, 83),
            },
            (Type::Fragment, Place::First) => neg(72),
            (Type::Fragment, Place::Low) => neg(63),
            (Type::Complement, Place::Low) => Sign { not: self.word.bit(63), ..Sign::default() },
            (Type::Complement, Place::High) => neg(75),
            // The bit is one of those that say how far LEA shifts.
            (Type::Shifted, Place::High) => Sign::default(),
            // Under .X, a negation is a complement.
            (Type::Integer | Type::Shifted, place) => {
                let on = self.word.bit(match place {
                    Place::First => 72,
                    Place::Low => 63,
                    Place::High => 75,
                });
                let extended = self.word.bit(74);
                Sign { neg: on && !extended, abs: false, not: on && extended }
            }
            _ => Sign::default(),
        }
    }

    fn place(&mut self, ty: Type, place: Place) {
        match (place, self.word.form()) {
            (Place::First, _) => self.register(24),
            (Place::High, _) => self.register(64),
            (Place::Low, 3 | 5) => self.constant(if ty.is_narrow(self.word) { " " } else { "" }),
            (Place::Low, 6 | 7) => self.uniform_register(32),
            (Place::Low, _) => self.register(32),
        }
    }

    /// Prints the register at bit `lo`. In uniform instructions it is a uniform register.
    pub(super) fn register(&mut self, lo: u32) {
        self.register_of(lo, File::Own);
    }

    pub(super) fn register_of(&mut self, lo: u32, file: File) {
        if self.is_uniform(file) {
            return self.uniform_register(lo);
        }
        match self.word.bits(lo, 8) {
            255 => self.out += "RZ",
            n => self.out += &format!("R{n}"),
        }
    }

    /// Prints the uniform register at bit `lo`.
    pub(super) fn uniform_register(&mut self, lo: u32) {
        match self.word.bits(lo, 6) {
            63 => self.out += "URZ",
            n => self.out += &format!("UR{n}"),
        }
    }

    /// Prints the destination and a comma, unless the destination is RZ.
    pub(super) fn optional(&mut self) {
        let (n, zero) = match self.row.datapath {
            Datapath::Vector => (self.word.bits(16, 8), 255),
            Datapath::Uniform => (self.word.bits(16, 6), 63),
        };
        if n != zero {
            self.register(16);
            self.out += ", ";
        }
    }

    /// Prints a reference to a constant bank. `gap` stands between its two parts, where the original has a space.
    fn constant(&mut self, gap: &str) {
        if self.word.bit(91) {
            self.out += "cx[";
            self.uniform_register(32);
            self.out.push(']');
        } else {
            self.out += &format!("c[{:#x}]", self.word.bits(54, 5));
        }
        self.out += gap;
        self.out.push('[');
        self.hex(self.word.signed(38, 16));
        self.out.push(']');
    }

    fn immediate(&mut self, ty: Type) {
        let x = self.word.bits(32, 32);
        let halves = |kind| format!("{}, {}", half(kind, (x >> 16) as u16), half(kind, x as u16));
        let text = match ty {
            Type::Single | Type::Convert(_) | Type::Plain => single(x),
            Type::Double => double(u64::from(x) << 32),
            Type::HalvesOrBrain if self.word.bit(85) => halves(Kind::Bf16),
            Type::Halves | Type::HalvesOrBrain | Type::HalvesOnly => halves(Kind::F16),
            Type::Signed | Type::Integer => return self.hex((x as i32).into()),
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
