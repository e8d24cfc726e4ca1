//! Template fields.

use super::{Printer, names};

/// Compare codes of floats and of integers.
const FLOAT: [&str; 16] =
    ["F", "LT", "EQ", "LE", "GT", "NE", "GE", "NUM", "NAN", "LTU", "EQU", "LEU", "GTU", "NEU", "GEU", "T"];
const INTEGER: [&str; 8] = ["F", "LT", "EQ", "LE", "GT", "NE", "GE", "T"];
const COMBINE: [&str; 4] = ["AND", "OR", "XOR", "?"];

impl Printer<'_> {
    /// A point and a name, or nothing.
    pub(super) fn dot(&mut self, name: &str) {
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
                    _ => self.item(x, items.split('|').nth(x as usize).unwrap_or("?")),
                }
            }
        }
    }

    /// The name that a field selects.
    pub(super) fn choose(&mut self, lo: u32, len: u32, names: &[&str]) {
        let x = self.word.bits(lo, len);
        self.item(x, names.get(x as usize).copied().unwrap_or("?"));
    }

    /// A name, `?` for a value that means nothing.
    fn item(&mut self, value: u32, name: &str) {
        if name == "?" {
            self.reserved = true;
            self.out += &format!(".INVALID{value}");
        } else {
            self.dot(name);
        }
    }

    pub(super) fn bits(&self, lo: u32, len: u32) -> usize {
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
            // A merged pair has C instead of A.
            "f2fp" if self.word.bit(78) => {
                self.operand('g', 'S');
                self.named("C");
            }
            "f2fp" => {
                self.operand('g', 'A');
                self.out += ", ";
                self.operand('g', 'S');
            }
            // How many bits of C are used.
            "i2ip" => {
                let names: [&str; 4] = match self.bits(76, 3) {
                    0..=3 => ["", "H1", "?", "?"],
                    4 | 5 => ["?", "?", "?", "28"],
                    _ => ["?", "?", "24", "?"],
                };
                self.choose(72, 2, &names);
            }
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
            "comb" => self.choose(74, 2, &COMBINE),
            "hcomb" => self.choose(69, 2, &COMBINE),
            // Denormals flushed, or also zero times anything zero; not both.
            "flush" => {
                let both = u32::from(self.word.bit(76)) << 1 | u32::from(self.word.bit(80));
                self.item(both, ["", "FTZ", "FMZ", "?"][both as usize]);
            }
            "lut" => {
                let lut = self.bits(72, 5) << 3 | self.bits(64, 3);
                self.hex(lut as i64);
            }
            _ => self.irregular(f),
        }
    }

    fn destination(&mut self, f: &str) {
        let (lo, how) = f.split_at(2);
        let lo = lo.parse().unwrap_or(81);
        let n = self.word.bits(lo, 3);
        let uniform = self.uniform();
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
                let name = names::special(self.word.bits(72, 8));
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
                self.item(shape as u32, ["1688", "16816", "1684", "?"][shape]);
                self.dot(if self.word.bit(76) { "F32" } else { "F16" });
                self.choose(82, 2, &["", "BF16", "TF32", "?"]);
            }
            "imma" => {
                let shape = self.bits(85, 2) << 1 | usize::from(self.word.bit(75));
                self.item(shape as u32, ["8816", "?", "8832", "?", "16816", "16832", "16864", "?"][shape]);
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
            "redux" => self.choose(78, 3, &["", "OR", "XOR", "SUM", "MIN", "MAX", "?", "?"]),
            "idp" => {
                if self.word.bit(76) {
                    self.dot(if self.word.bit(77) { "2A.HI" } else { "2A.LO" });
                    self.dot(if self.word.bit(73) { "S16" } else { "U16" });
                } else {
                    self.dot("4A");
                    self.dot(if self.word.bit(73) { "S8" } else { "U8" });
                }
                self.dot(if self.word.bit(74) { "S8" } else { "U8" });
            }
            "exclusive" => {
                if self.word.form() == 1 && self.word.bit(86) {
                    self.dot("EXCLUSIVE");
                }
            }
            "match" if self.word.bit(79) => self.destination("81?"),
            "match" => {
                self.destination("81");
                self.out += ", ";
            }
            "relu" => {
                if self.word.bit(79) {
                    self.condition("87?");
                }
            }
            "depbar" => self.dependencies(),
            // Whether the addend counts: stored as 7 - p.
            "up" => {
                let n = 7 - self.word.bits(87, 3);
                if n != 7 || self.word.bit(90) {
                    self.out += if self.word.bit(90) { ", !" } else { ", " };
                    self.predicate(n, true);
                }
            }
            "bar" => {
                let mode = self.bits(77, 2);
                self.dot(["SYNC", "ARV", "RED", "SCAN"][mode]);
                if mode == 2 {
                    self.choose(74, 2, &["POPC", "AND", "OR", "?"]);
                }
            }
            "bar operands" => {
                let (n, count) = (self.bits(54, 4), self.bits(42, 12));
                let form = self.word.form();
                if form <= 2 {
                    self.register(32);
                } else {
                    self.hex(n as i64);
                }
                if matches!(form, 1 | 4) {
                    self.out += ", ";
                    self.register(32);
                } else if count != 0 {
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

    /// `.LE SB0, 0x1, {3,2}`: a counter's bound, and counters that must be zero.
    fn dependencies(&mut self) {
        let counts = self.word.bit(47);
        if counts {
            self.out += ".LE SB";
            self.out += &format!("{}, {:#x}", self.bits(44, 3), self.bits(38, 6));
        }
        let set: Vec<_> = (0..6).rev().filter(|n| self.word.bit(32 + n)).map(|n| n.to_string()).collect();
        if !set.is_empty() {
            self.out += if counts { ", " } else { " " };
            self.out += &format!("{{{}}}", set.join(","));
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
}
