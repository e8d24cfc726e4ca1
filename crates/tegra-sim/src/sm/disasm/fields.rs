//! Template fields.

use super::Printer;

/// Compare codes of floats and of integers.
const FLOAT: [&str; 16] =
    ["F", "LT", "EQ", "LE", "GT", "NE", "GE", "NUM", "NAN", "LTU", "EQU", "LEU", "GTU", "NEU", "GEU", "T"];
const INTEGER: [&str; 8] = ["F", "LT", "EQ", "LE", "GT", "NE", "GE", "T"];
const COMBINE: [&str; 4] = ["AND", "OR", "XOR", "3"];
/// Widths of memory accesses.
const SIZE: [&str; 8] = ["U8", "S8", "U16", "S16", "", "64", "128", "7"];
const EVICT: [&str; 8] = ["EF", "", "EL", "LU", "EU", "NA", "6", "7"];
const ATOMIC: [&str; 16] =
    ["ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR", "EXCH", "9", "10", "11", "12", "13", "14", "15"];
const ATOMIC_TYPE: [&str; 8] = ["", "S32", "64", "F32.FTZ.RN", "F16x2.RN", "S64", "F64.RN", "7"];

impl Printer<'_> {
    /// A point and a name, or nothing.
    fn dot(&mut self, name: &str) {
        if !name.is_empty() {
            self.out.push('.');
            self.out += name;
        }
    }

    pub(super) fn field(&mut self, f: &str) {
        let digits = f.trim_start_matches('!').bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return self.named(f);
        }
        let (not, f) = f.strip_prefix('!').map_or((false, f), |f| (true, f));
        let (n, rest) = f.split_at(digits);
        let n: u32 = n.parse().unwrap_or(0);
        match rest.split_at(1) {
            (".", name) => {
                if self.word.bit(n) != not {
                    self.dot(name);
                }
            }
            (" ", field) => {
                if self.word.bit(n) {
                    self.out += ", ";
                    self.named(field);
                }
            }
            (_, rest) => {
                let (len, items) = rest.split_at(1);
                let x = self.word.bits(n, len.parse().unwrap_or(1));
                match items {
                    "" => self.out += &x.to_string(),
                    "#" => self.hex(x.into()),
                    _ => self.dot(items.split('|').nth(x as usize).unwrap_or("?")),
                }
            }
        }
    }

    fn bits(&self, lo: u32, len: u32) -> usize {
        self.word.bits(lo, len) as usize
    }

    /// A predicate source at bit `lo`, its inversion three bits up.
    fn source(&mut self, lo: u32, uniform: bool) {
        if self.word.bit(lo + 3) {
            self.out.push('!');
        }
        let n = self.word.bits(lo, 3);
        self.predicate(n, uniform);
    }

    fn named(&mut self, f: &str) {
        if let Some(rest) = f.strip_prefix('P') {
            return self.destination(rest);
        }
        if let Some(rest) = f.strip_prefix('p') {
            return self.condition(rest);
        }
        if let [ty, slot @ (b'A' | b'B' | b'C' | b'S' | b'T')] = *f.as_bytes() {
            return self.operand(ty.into(), slot.into());
        }
        match f {
            "d" => self.register(16),
            "dz" => {
                if self.bits(16, if self.uniform() { 6 } else { 8 }) != if self.uniform() { 63 } else { 255 } {
                    self.register(16);
                    self.out += ", ";
                }
            }
            "ud" => self.uniform_register(16),
            "A" => self.operand('u', 'A'),
            "C" => {
                self.out += ", ";
                self.operand('u', 'C');
            }
            "R32" => self.register(32),
            "rnd" => self.dot(["", "RM", "RP", "RZ"][self.bits(78, 2)]),
            "fcmp" => self.dot(FLOAT[self.bits(76, 4)]),
            "dcmp" => {
                let code = self.bits(76, 4);
                self.dot(match code {
                    0 => "MIN",
                    15 => "MAX",
                    _ => FLOAT[code],
                });
            }
            "icmp" => self.dot(INTEGER[self.bits(76, 3)]),
            "comb" => self.dot(COMBINE[self.bits(74, 2)]),
            "hcomb" => self.dot(COMBINE[self.bits(69, 2)]),
            "lut" => {
                let lut = self.bits(72, 5) << 3 | self.bits(64, 3);
                self.hex(lut as i64);
            }
            "memsize" | "csize" => self.dot(SIZE[self.bits(73, 3)]),
            "evict" => self.dot(EVICT[self.bits(84, 3)]),
            "levict" => self.dot(EVICT[self.bits(84, 3)]),
            _ => self.irregular(f),
        }
    }

    fn destination(&mut self, f: &str) {
        let (lo, how) = f.split_at(2);
        let lo = lo.parse().unwrap_or(81);
        let n = self.word.bits(lo, 3);
        let uniform = self.uniform() || how == "u";
        match how {
            "" => self.predicate(n, uniform),
            _ if n == 7 => {}
            "," => {
                self.out += ", ";
                self.predicate(n, uniform);
            }
            _ => {
                self.predicate(n, uniform);
                self.out += ", ";
            }
        }
    }

    fn condition(&mut self, f: &str) {
        let (lo, how) = f.split_at(2);
        let lo = lo.parse().unwrap_or(87);
        let always = self.word.bits(lo, 4) == 7;
        let uniform = self.uniform() && how != "v" || lo == 68 && self.row.base == 0x1c && self.word.bit(67);
        match how {
            "?" if always => {}
            "?" => {
                self.out += ", ";
                self.source(lo, uniform);
            }
            "!" if always => {}
            "!" => {
                self.out.push(' ');
                self.source(lo, uniform);
                self.out.push(',');
            }
            _ => self.source(lo, uniform),
        }
    }

    fn irregular(&mut self, f: &str) {
        match f {
            "sr" => {
                let name = special(self.word.bits(72, 8));
                self.out += &name;
            }
            "mad" => self.alias(),
            "leac" => {
                if self.word.bit(80) && !self.word.bit(73) {
                    self.out += ", ";
                    self.operand('u', 'C');
                }
            }
            "hmma" => {
                let shape = usize::from(self.word.bit(78)) << 1 | usize::from(self.word.bit(75));
                self.dot(["1688", "16816", "1684", "3"][shape]);
                self.dot(if self.word.bit(76) { "F32" } else { "F16" });
                self.dot(["", "BF16", "TF32", "3"][self.bits(82, 2)]);
            }
            "imma" => {
                let shape = self.bits(85, 2) << 1 | usize::from(self.word.bit(75));
                self.dot(["8816", "1", "8832", "3", "16816", "16832", "16864", "7"][shape]);
                for (narrow, signed) in [(83, 76), (84, 78)] {
                    let bits = if self.word.bit(narrow) { '4' } else { '8' };
                    self.dot(&format!("{}{bits}", if self.word.bit(signed) { 'S' } else { 'U' }));
                }
            }
            "f2i" => {
                let (size, signed) = (self.bits(75, 2), self.word.bit(72));
                let names = if signed { ["S8", "S16", "", "S64"] } else { ["U8", "U16", "U32", "U64"] };
                self.dot(names[size]);
            }
            "i2f" => {
                let (size, signed) = (self.bits(84, 2), self.word.bit(74));
                let names = if signed { ["S8", "S16", "", "S64"] } else { ["U8", "U16", "U32", "U64"] };
                self.dot(names[size]);
            }
            "redux" => self.dot(["", "OR", "XOR", "SUM", "MIN", "MAX", "6", "7"][self.bits(78, 3)]),
            "bar" => {
                let mode = self.bits(77, 2);
                self.dot(["SYNC", "ARV", "RED", "SCAN"][mode]);
                if mode == 2 {
                    self.dot(["POPC", "AND", "OR", "3"][self.bits(74, 2)]);
                }
            }
            "bar operands" => {
                let (n, count) = (self.bits(54, 4), self.bits(42, 12));
                self.hex(n as i64);
                if count != 0 {
                    self.out += ", ";
                    self.hex(count as i64);
                }
                if self.bits(77, 2) == 2 {
                    self.out += ", ";
                    self.source(87, false);
                }
            }
            "bpt" => {
                let kind = self.bits(84, 3);
                self.dot(["DRAIN", "CAL", "PAUSE", "TRAP", "INT", "5", "6", "7"][kind]);
                if matches!(kind, 3 | 4) {
                    self.out += " 0x1";
                }
            }
            "bra" => self.branch(),
            "target" => {
                let offset = if self.row.base == 0x145 { self.word.signed(34, 30) } else { self.word.signed(34, 48) };
                let to = self.pc.wrapping_add(16).wrapping_add_signed(offset * 4);
                self.hex(to as i64);
            }
            "absolute" => self.hex(self.word.signed(34, 48) * 4),
            "indirect" => self.indirect(),
            "bmov" => self.bmov(),
            "shfl" => self.shuffle(),
            _ => self.memory(f),
        }
    }

    /// IMAD that only moves, shifts or adds is written as that.
    fn alias(&mut self) {
        let immediate = self.word.form() == 4;
        let one = self.word.bits(32, 32);
        let zero = |lo| self.word.bits(lo, 8) == 255;
        let swapped = matches!(self.word.form(), 2 | 3 | 7);
        let b_zero = if swapped { zero(64) } else { self.word.form() == 1 && zero(32) };
        if self.uniform() || self.word.bit(74) {
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

    fn branch(&mut self) {
        let how = self.bits(32, 2);
        self.dot(["", "U", "DIV", "CONV"][how]);
        if how > 1 {
            self.out += if self.word.bit(30) { " ~" } else { " " };
            self.uniform_register(24);
            self.out.push(',');
        }
        if self.word.opcode() == 0x547 {
            self.out.push(' ');
            if self.word.bit(27) {
                self.out.push('!');
            }
            let n = self.word.bits(24, 3);
            self.predicate(n, true);
            self.out.push(',');
        }
        self.condition("87!");
    }

    fn indirect(&mut self) {
        let offset = self.word.signed(34, 48) * 4;
        if self.word.form() == 4 && self.row.base == 0x144 {
            let to = self.pc.wrapping_add(16).wrapping_add_signed(offset);
            return self.hex(to as i64);
        }
        self.register(24);
        self.out.push(' ');
        if self.row.base == 0x149 || self.word.bit(85) {
            self.hex(offset);
        } else {
            let to = self.pc.wrapping_add(16).wrapping_add_signed(offset);
            self.hex(to as i64);
        }
    }

    fn bmov(&mut self) {
        let barrier = |n: u32| match n {
            0..=15 => format!("B{n}"),
            30 => "MACTIVE".to_owned(),
            28 => "MEXITED".to_owned(),
            29 => "MKILL".to_owned(),
            31 => "MATEXIT".to_owned(),
            n => format!("SB{n}"),
        };
        let source = barrier(self.word.bits(24, 6));
        match self.word.opcode() {
            0x956 => self.out += &format!("{source}, {:#x}", self.word.bits(32, 32)),
            0x356 => {
                self.out += &format!("{source}, ");
                self.register(32);
            }
            0x355 => {
                self.register(16);
                self.out += &format!(", {source}");
            }
            _ => self.out += &format!("{}, {source}", barrier(self.word.bits(16, 6))),
        }
    }

    fn shuffle(&mut self) {
        match self.word.opcode() {
            0x389 | 0x589 => self.register(32),
            _ => self.hex(self.word.bits(53, 5).into()),
        }
        self.out += ", ";
        match self.word.opcode() {
            0x389 | 0x989 => self.register(64),
            _ => self.hex(self.word.bits(40, 13).into()),
        }
    }

    fn memory(&mut self, f: &str) {
        match f {
            "global" => self.global(),
            "shared" => self.shared(),
            "local" => self.address(24, "", 32),
            "order" => {
                let code = self.bits(77, 4);
                let store = matches!(self.row.base, 0x185 | 0x186);
                self.dot(ORDER[code]);
                let _ = store;
            }
            "aorder" => self.dot(
                [
                    "",
                    "CONSTANT.PRIVATE",
                    "2",
                    "3",
                    "STRONG.SM.PRIVATE",
                    "STRONG.SM",
                    "6",
                    "STRONG.GPU",
                    "8",
                    "9",
                    "STRONG.SYS",
                    "11",
                    "12",
                    "13",
                    "14",
                    "15",
                ][self.bits(77, 4)],
            ),
            "ltc" => self.dot(["", "LTC64B", "LTC128B", "LTC256B"][self.bits(68, 2)]),
            "ldp" => {
                // Stored as 7 - p.
                let n = 7 - self.word.bits(64, 3);
                if n != 7 || self.word.bit(67) {
                    self.out += if self.word.bit(67) { ", !" } else { ", " };
                    self.predicate(n, false);
                }
            }
            "atomop" => {
                let op = if self.row.base == 0x18e { self.bits(87, 3) } else { self.bits(87, 4) };
                self.dot(ATOMIC[op]);
            }
            "atomtype" => {
                let ty = if self.row.base == 0x18c { self.bits(73, 2) } else { self.bits(73, 3) };
                self.dot(ATOMIC_TYPE[ty]);
            }
            "castype" => self.dot(["", "S32", "64", "3"][self.bits(73, 2)]),
            "cast" => {
                self.dot(if self.word.bit(87) { "CAST" } else { "CAS" });
                if self.word.bit(88) {
                    self.dot("SPIN");
                }
            }
            "cctl" => {
                let op = self.bits(87, 3);
                self.dot(["PF1", "PF2", "WB", "IV", "IVALL", "RS", "IVALLP", "WBALL"][op]);
                if !matches!(op, 4 | 6 | 7) {
                    self.out.push(' ');
                    self.global();
                }
            }
            "cindexed" => {
                self.out += &format!("c[{:#x}][", self.word.bits(54, 5));
                self.register(24);
                self.offset(38, 16);
                self.out.push(']');
            }
            "ldgsts" => {
                self.out.push('[');
                self.register(16);
                self.offset(44, 20);
                self.out += "], [";
                self.register(24);
                self.out += ".64";
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
        let load = matches!(self.row.base, 0x180 | 0x181);
        let atomic = !load && !matches!(self.row.base, 0x185 | 0x186);
        let descriptor = self.word.bit(if atomic { 71 } else { 76 });
        let uniform = self.word.bit(91);
        self.out.push('[');
        let bare = self.word.bits(24, 8) == 255 && !uniform;
        if !bare {
            self.register(24);
            // With a uniform operand the text says how wide the register is.
            if uniform {
                self.out += if self.word.bit(72) { ".64" } else { ".U32" };
            }
        }
        if uniform && !descriptor {
            self.out.push('+');
            self.uniform_register(if load { 32 } else { 64 });
        }
        let x = self.word.signed(40, 24);
        if bare {
            self.hex(x)
        } else {
            self.offset(40, 24)
        }
        self.out.push(']');
    }
}

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

/// Names of special registers.
fn special(index: u32) -> String {
    let name = match index {
        0x00 => "LANEID",
        0x01 => "CLOCK",
        0x02 => "VIRTCFG",
        0x03 => "VIRTID",
        0x20 => "TID",
        0x21 => "TID.X",
        0x22 => "TID.Y",
        0x23 => "TID.Z",
        0x25 => "CTAID.X",
        0x26 => "CTAID.Y",
        0x27 => "CTAID.Z",
        0x28 => "NTID",
        0x2e => "LWINHI",
        0x2f => "SWINHI",
        0x30 => "SWINLO",
        0x31 => "SWINSZ",
        0x32 => "SMEMSZ",
        0x33 => "SMEMBANKS",
        0x34 => "LWINLO",
        0x35 => "LWINSZ",
        0x36 => "LMEMLOSZ",
        0x37 => "LMEMHIOFF",
        0x38 => "EQMASK",
        0x39 => "LTMASK",
        0x3a => "LEMASK",
        0x3b => "GTMASK",
        0x3c => "GEMASK",
        0x3d => "REGALLOC",
        0x3e => "BARRIERALLOC",
        0x40 => "GLOBALERRORSTATUS",
        0x42 => "WARPERRORSTATUS",
        0x43 => "VIRTUALSMID",
        0x44 => "VIRTUALENGINEID",
        0x50 => "CLOCKLO",
        0x51 => "CLOCKHI",
        0x52 => "GLOBALTIMERLO",
        0x53 => "GLOBALTIMERHI",
        0xff => return "SRZ".to_owned(),
        n => return format!("SR{n}"),
    };
    format!("SR_{name}")
}
