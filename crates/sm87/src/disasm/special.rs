//! Prints the parts of the text that only one instruction has.

use super::{Printer, names};
use crate::isa::Datapath;
use crate::isa::operand::{Operand, Slot, Type};
use crate::isa::piece::{Comma, File, Special, When};

const fn operand(ty: Type, slot: Slot) -> Operand {
    Operand { ty, slot }
}

impl Printer<'_> {
    pub(super) fn special(&mut self, special: Special) {
        match special {
            Special::Alias => self.alias(),
            Special::LeaHigh => self.lea_high(),
            Special::Pair => self.pair(),
            Special::Match => {
                let comma = if self.word.bit(79) { Comma::Behind } else { Comma::None };
                self.destination(81, comma);
                self.out += if self.word.bit(79) { "" } else { ", " };
            }
            Special::Dependencies => self.dependencies(),
            Special::Lut => self.hex((self.word.bits(72, 5) << 3 | self.word.bits(64, 3)).into()),
            Special::TrapCode => {
                // The values 3 and 4 are TRAP and INT.
                let stops = matches!(self.word.bits(84, 3), 3 | 4);
                self.out += if stops { " 0x1" } else { "" };
            }
            Special::NamedLanes => self.named_lanes(),
            Special::UniformCondition => {
                self.out.push(' ');
                self.source(24, true);
                self.out.push(',');
            }
            Special::Absolute => self.hex(self.word.signed(34, 48) * 4),
            Special::Displacement => {
                let offset = self.word.signed(34, 48) * 4;
                if offset != 0 {
                    self.out.push(' ');
                    self.hex(offset);
                }
            }
            Special::Behind => self.hex(self.behind(self.word.signed(34, 48) * 4)),
            Special::Place => self.place_of_return(),
            Special::Barrier(lo) => self.barrier(lo),
            Special::Threads => {
                let count = self.word.bits(42, 12);
                if count != 0 {
                    self.out += ", ";
                    self.hex(count.into());
                }
            }
            Special::BarCondition => {
                // This value selects RED.
                if self.word.bits(77, 2) == 2 {
                    self.out += ", ";
                    self.condition(87, When::Always, File::Own);
                }
            }
            Special::StoreData => self.register(if self.word.bit(91) { 32 } else { 64 }),
            Special::Metadata(bit) if self.word.bit(bit) => {
                self.out += ", ";
                self.register(40);
                self.out += &format!(", {:#x}", self.word.bits(48, 2));
            }
            Special::Metadata(_) => {}
            Special::Register => self.out += &names::special(self.word.bits(72, 8)),
        }
    }

    /// An IMAD that only moves, shifts or adds is written with the name of that operation.
    fn alias(&mut self) {
        let immediate = self.word.form() == 4;
        let one = self.word.bits(32, 32);
        let zero = |lo| self.word.bits(lo, 8) == 255;
        let swapped = matches!(self.word.form(), 2 | 3 | 7);
        let b_zero = if swapped { zero(64) } else { self.word.form() == 1 && zero(32) };
        if self.row.datapath == Datapath::Uniform || self.word.bit(74) {
            return;
        }
        if zero(24) && b_zero && self.word.form() != 7 || immediate && one == 1 && zero(64) {
            self.dot("MOV");
        } else if immediate && one == 1 {
            self.dot("IADD");
        } else if immediate && zero(64) && one.is_power_of_two() && !matches!(one, 0x1_0000 | 0x8000_0000) {
            self.dot("SHL");
        }
    }

    /// LEA.HI has a third operand, unless the sign of the first operand replaces it.
    fn lea_high(&mut self) {
        if self.word.bit(80) && !self.word.bit(73) {
            self.out += ", ";
            self.operand(operand(Type::Bits, Slot::C));
        }
    }

    /// F2FP packs two floats, or one float that is merged into the third operand.
    fn pair(&mut self) {
        let merged = self.word.bit(78);
        if !merged {
            self.operand(operand(Type::Plain, Slot::A));
            self.out += ", ";
        }
        self.operand(operand(Type::Plain, Slot::S));
        if merged {
            self.out += ", ";
            self.operand(operand(Type::Bits, Slot::C));
        }
    }

    /// `.LE SB0, 0x1, {3,2}`: the bound of a counter, and the counters that must be zero.
    fn dependencies(&mut self) {
        let counts = self.word.bit(47);
        if counts {
            self.out += ".LE SB";
            self.out += &format!("{}, {:#x}", self.word.bits(44, 3), self.word.bits(38, 6));
        }
        let set: Vec<_> = (0..6).rev().filter(|n| self.word.bit(32 + n)).map(|n| n.to_string()).collect();
        if !set.is_empty() {
            self.out += if counts { ", " } else { " " };
            self.out += &format!("{{{}}}", set.join(","));
        }
    }

    /// In BRA.DIV and BRA.CONV, a uniform register names the lanes that are meant, or those that are not meant.
    fn named_lanes(&mut self) {
        if self.word.bits(32, 2) > 1 {
            self.out += if self.word.bit(30) { " ~" } else { " " };
            self.uniform_register(24);
            self.out.push(',');
        }
    }

    fn place_of_return(&mut self) {
        let offset = self.word.signed(34, 48) * 4;
        self.hex(if self.word.bit(85) { offset } else { self.behind(offset) });
    }

    fn barrier(&mut self, lo: u32) {
        self.out += &match self.word.bits(lo, 6) {
            n @ 0..=15 => format!("B{n}"),
            28 => "MEXITED".to_owned(),
            29 => "MKILL".to_owned(),
            30 => "MACTIVE".to_owned(),
            31 => "MATEXIT".to_owned(),
            n => format!("SB{n}"),
        };
    }
}
