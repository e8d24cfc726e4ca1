//! Template fields of memory instructions.

use super::Printer;

/// Widths of memory accesses.
const SIZE: [&str; 8] = ["U8", "S8", "U16", "S16", "", "64", "128", "?"];
const EVICT: [&str; 8] = ["EF", "", "EL", "LU", "EU", "NA", "?", "?"];
const ATOMIC: [&str; 16] =
    ["ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR", "EXCH", "?", "?", "?", "?", "?", "?", "?"];
const ATOMIC_TYPE: [&str; 8] = ["", "S32", "64", "F32.FTZ.RN", "F16x2.RN", "S64", "F64.RN", "?"];
/// Memory order codes of loads and stores.
const ORDER: [&str; 16] = [
    "",
    "CONSTANT.PRIVATE",
    "CONSTANT.CTA",
    "CONSTANT.CTA.PRIVATE",
    "CONSTANT",
    "STRONG.SM",
    "STRONG.GPU.PRIVATE",
    "STRONG.GPU",
    "MMIO.GPU",
    "CONSTANT.SM",
    "STRONG.SYS",
    "CONSTANT.SM.PRIVATE",
    "MMIO.SYS",
    "CONSTANT.VC",
    "CONSTANT.VC.PRIVATE",
    "CONSTANT.GPU",
];

impl Printer<'_> {
    pub(super) fn memory(&mut self, f: &str) {
        match f {
            "global" => self.global(),
            "shared" => self.shared(),
            "local" => self.address(24, "", 32),
            "memsize" => self.choose(73, 3, &SIZE),
            "csize" => self.choose(73, 3, &SIZE),
            "evict" | "levict" => self.choose(84, 3, &EVICT),
            "order" => {
                let load = matches!(self.row.base, 0x180 | 0x181 | 0x1ae);
                match self.bits(77, 4) {
                    4 if !load => self.dot("STRONG.SM.PRIVATE"),
                    code => self.dot(ORDER[code]),
                }
            }
            "ldp" => {
                // Stored as 7 - p.
                let n = 7 - self.word.bits(64, 3);
                if n != 7 || self.word.bit(67) {
                    self.out += if self.word.bit(67) { ", !" } else { ", " };
                    self.predicate(n, false);
                }
            }
            "atomop" => self.choose(87, if self.row.base == 0x18e { 3 } else { 4 }, &ATOMIC),
            "atomtype" => self.choose(73, if self.row.base == 0x18c { 2 } else { 3 }, &ATOMIC_TYPE),
            "castype" => self.choose(73, 2, &["", "S32", "64", "?"]),
            "cast" => {
                self.dot(if self.word.bit(87) { "CAST" } else { "CAS" });
                if self.word.bit(88) {
                    self.dot("SPIN");
                }
            }
            "cctl" => {
                const OPERATIONS: [&str; 16] = [
                    "PF1", "PF2", "WB", "IV", "IVALL", "RS", "IVALLP", "WBALL", "?", "PML2", "DML2", "RML2", "?", "?",
                    "?", "?",
                ];
                self.choose(87, 4, &OPERATIONS);
                if !matches!(self.bits(87, 4), 4 | 6 | 7) {
                    self.out.push(' ');
                    self.global();
                }
            }
            // The data of ST, which the offset moves when there is no uniform register.
            "st" => self.register(if self.word.bit(91) { 32 } else { 64 }),
            "cindexed" => {
                self.out += &format!("c[{:#x}][", self.word.bits(54, 5));
                let offset = self.word.signed(38, 16);
                if self.word.bits(24, 8) == 255 && offset != 0 {
                    self.hex(offset);
                } else {
                    self.register(24);
                    self.offset(38, 16);
                }
                self.out.push(']');
            }
            "ldgsts" => {
                self.out.push('[');
                self.register(16);
                self.offset(44, 20);
                self.out += "], [";
                self.register(24);
                self.out += ".64";
                if !self.word.bit(76) {
                    self.out.push('+');
                    self.uniform_register(64);
                }
                self.offset(32, 12);
                self.out.push(']');
            }
            other => debug_assert!(false, "unknown field {other}"),
        }
    }

    /// `+0x10`, `+-0x4`, or nothing for zero.
    fn offset(&mut self, lo: u32, len: u32) {
        let x = self.word.signed(lo, len);
        if x != 0 {
            self.out.push('+');
            self.hex(x);
        }
    }

    /// `[R2+UR4+0x10]`; without a register, the bare offset.
    fn address(&mut self, lo: u32, suffix: &str, ureg: u32) {
        let x = self.word.signed(40, 24);
        self.out.push('[');
        let (zero, uniform) = (self.word.bits(lo, 8) == 255, self.word.bit(91));
        let bare = zero && x != 0 && !uniform;
        if !(bare || zero && uniform) {
            self.register(lo);
            self.out += suffix;
        }
        if uniform {
            if !zero {
                self.out.push('+');
            }
            self.uniform_register(ureg);
        }
        if bare {
            self.hex(x);
        } else {
            self.offset(40, 24);
        }
        self.out.push(']');
    }

    fn shared(&mut self) {
        let scale = ["", ".X4", ".X8", ".X16"][self.bits(78, 2)];
        let scale = if self.row.base == 0x3b { "" } else { scale };
        let ureg = if self.row.base == 0x188 { 64 } else { 32 };
        self.address(24, scale, ureg);
    }

    fn global(&mut self) {
        let (generic, control) = (matches!(self.row.base, 0x180 | 0x185), self.row.base == 0x18f);
        let load = matches!(self.row.base, 0x180 | 0x181 | 0x1aa);
        let store = matches!(self.row.base, 0x185 | 0x186);
        let descriptor = self.word.bit(if load || store { 76 } else { 71 });
        let uniform = self.word.bit(91);
        // Atomics have their operation where the others say that the register is a pair.
        let pair = !(load || store || self.row.base == 0x18e) || self.word.bit(90);
        let (lo, len) = if (generic || control) && !uniform { (32, 32) } else { (40, 24) };
        self.out.push('[');
        let bare = self.word.bits(24, 8) == 255 && !uniform;
        if !bare {
            self.register(24);
            // With a uniform operand the text says how wide the register is.
            if uniform {
                self.out += if pair { ".64" } else { ".U32" };
            }
        }
        if uniform && !descriptor {
            self.out.push('+');
            self.uniform_register(if load { 32 } else { 64 });
        }
        if bare {
            self.hex(self.word.signed(lo, len));
        } else {
            self.offset(lo, len);
        }
        self.out.push(']');
    }
}
