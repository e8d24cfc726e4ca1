//! From an instruction word to a micro-op: operands.

use super::rows::{Dst, Row, Src, pred};
use super::uop::{Handlers, Pred, Uop};
use crate::isa::{self, Datapath, Row as Opcode};
use crate::word::Word;
use std::collections::HashMap;

/// Why a word cannot be lowered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused(pub &'static str);

/// The immediates and constant-bank words a program uses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool {
    pub immediates: Vec<Row>,
    found: HashMap<[u32; 2], usize>,
    /// Bank and byte offset of each constant row.
    pub constants: Vec<(u8, u32)>,
    placed: HashMap<(u8, u32, u32), usize>,
}

impl Pool {
    /// Rows for a pair of words; single operands use the first.
    fn immediate(&mut self, words: [u32; 2]) -> Src {
        let rows = &mut self.immediates;
        let at = *self.found.entry(words).or_insert_with(|| {
            rows.extend(words.map(|w| Row([w; 32])));
            rows.len() - 2
        });
        Src::immediate(at)
    }

    /// Rows for `count` consecutive words of a bank.
    fn constant(&mut self, bank: u8, offset: u32, count: u32) -> Src {
        let rows = &mut self.constants;
        let at = *self.placed.entry((bank, offset, count)).or_insert_with(|| {
            rows.extend((0..count).map(|i| (bank, offset + 4 * i)));
            rows.len() - count as usize
        });
        Src::constant(at)
    }
}

/// How a 32-bit immediate fills a 64-bit operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Widen {
    /// It is the high half of a double.
    High,
    /// Sign extension.
    Signed,
    /// Zero extension.
    Unsigned,
}

/// One instruction on its way to a micro-op.
pub(crate) struct Lower<'a> {
    pub word: Word,
    /// Which registers and predicates its fields name.
    datapath: Datapath,
    /// Which predicates its guard is one of.
    guarded_by: Datapath,
    /// Index in the image.
    pub at: u32,
    pool: &'a mut Pool,
    registers: u16,
    uniform: u32,
    /// A register group does not start at a multiple of its size.
    pub misaligned: bool,
}

impl<'a> Lower<'a> {
    /// The instruction at `at`; without a row, its opcode is not known.
    pub(crate) fn new(word: Word, row: Option<&Opcode>, at: u32, pool: &'a mut Pool) -> Self {
        let datapath = isa::datapath(word);
        let guarded_by = row.map_or(datapath, |row| row.guard);
        Lower { word, datapath, guarded_by, at, pool, registers: 0, uniform: 0, misaligned: false }
    }

    /// Bit `n` of the word.
    pub(crate) fn bit(&self, n: u32) -> bool {
        self.word.bit(n)
    }

    /// A field of the word.
    pub(crate) fn bits(&self, lo: u32, len: u32) -> u32 {
        self.word.bits(lo, len)
    }

    /// Whether this is a uniform-datapath opcode: its registers and predicates are uniform ones.
    pub(crate) fn uniform(&self) -> bool {
        self.datapath == Datapath::Uniform
    }

    fn track(&mut self, n: u8, count: u8) {
        if n != 255 {
            self.misaligned |= !n.is_multiple_of(count);
            self.registers = self.registers.max(u16::from(n) + u16::from(count));
        }
    }

    /// Whether the register at bit `lo` is RZ, or URZ.
    pub(crate) fn is_zero(&self, lo: u32) -> bool {
        if self.uniform() { self.bits(lo, 6) == 63 } else { self.bits(lo, 8) == 255 }
    }

    /// Register group of `count` at bit `lo`, as a source.
    pub(crate) fn reg(&mut self, lo: u32, count: u8) -> Src {
        if self.uniform() {
            return self.ureg(lo);
        }
        let n = self.bits(lo, 8) as u8;
        self.track(n, count);
        Src::reg(n)
    }

    /// Uniform register at bit `lo`.
    pub(crate) fn ureg(&mut self, lo: u32) -> Src {
        let n = self.bits(lo, 6);
        self.track_uniform(n);
        Src::ureg(n as u8)
    }

    /// Pairs and quadruples included.
    fn track_uniform(&mut self, n: u32) {
        if n != 63 {
            self.uniform = self.uniform.max((n + 4).min(63));
        }
    }

    /// Highest uniform register used plus one, at most.
    pub(crate) fn uniform_registers(&self) -> u32 {
        self.uniform
    }

    /// Destination group of `count` at bit 16.
    pub(crate) fn dst(&mut self, count: u8) -> Dst {
        if self.uniform() {
            return self.udst();
        }
        let n = self.bits(16, 8) as u8;
        self.track(n, count);
        Dst::reg(n)
    }

    /// Uniform destination at bit 16.
    pub(crate) fn udst(&mut self) -> Dst {
        let n = self.bits(16, 6);
        self.track_uniform(n);
        Dst::ureg(n as u8)
    }

    /// Source at bits 24..31.
    pub(crate) fn a(&mut self) -> Src {
        self.reg(24, 1)
    }

    /// Whatever the form puts at bits 32..63.
    pub(crate) fn slot32(&mut self) -> Result<Src, Refused> {
        self.slot32_wide(1, Widen::Unsigned)
    }

    /// The register at bits 64..71.
    pub(crate) fn slot64(&mut self) -> Src {
        self.reg(64, 1)
    }

    /// Slot 32 as a group of `count` registers or a constant of that many words.
    pub(crate) fn slot32_wide(&mut self, count: u8, widen: Widen) -> Result<Src, Refused> {
        match self.word.form() {
            1 => Ok(self.reg(32, count)),
            2 | 4 => Ok(self.immediate(count, widen)),
            3 | 5 if self.bit(91) => Err(Refused("bindless constant bank")),
            3 | 5 => Ok(self.pool.constant(self.bits(54, 5) as u8, self.bits(38, 16), u32::from(count))),
            6 | 7 => Ok(self.ureg(32)),
            _ => Err(Refused("operand form 0")),
        }
    }

    fn immediate(&mut self, count: u8, widen: Widen) -> Src {
        let x = self.bits(32, 32);
        let words = match widen {
            _ if count == 1 => [x, 0],
            Widen::High => [0, x],
            Widen::Signed => [x, ((x as i32) >> 31) as u32],
            Widen::Unsigned => [x, 0],
        };
        self.pool.immediate(words)
    }

    /// A row that holds `x` in every lane.
    pub(crate) fn literal(&mut self, x: u32) -> Src {
        self.pool.immediate([x, 0])
    }

    /// A row that holds a constant-bank word; `count` rows follow each other.
    pub(crate) fn constant(&mut self, bank: u8, offset: u32, count: u8) -> Src {
        self.pool.constant(bank, offset, u32::from(count))
    }

    /// Whether B and C change places: forms 2, 3 and 7 keep C in slot 32.
    pub(crate) fn swapped(&self) -> bool {
        matches!(self.word.form(), 2 | 3 | 7)
    }

    /// The second and third source of a three-source operation.
    pub(crate) fn bc(&mut self) -> Result<(Src, Src), Refused> {
        self.bc_wide(1, 1, Widen::Unsigned)
    }

    /// The same with register counts.
    pub(crate) fn bc_wide(&mut self, b: u8, c: u8, widen: Widen) -> Result<(Src, Src), Refused> {
        if self.swapped() {
            Ok((self.reg(64, b), self.slot32_wide(c, widen)?))
        } else {
            let x = self.slot32_wide(b, widen)?;
            Ok((x, self.reg(64, c)))
        }
    }

    /// Predicate register at bit `lo`, inverted if bit `not` is set; uniform for uniform opcodes.
    pub(crate) fn pred(&self, lo: u32, not: u32) -> Pred {
        let base = if self.uniform() { pred::UNIFORM } else { 0 };
        Pred { index: base + self.bits(lo, 3) as u8, invert: -(self.bit(not) as i8) }
    }

    /// The predicate source at bits 87..90.
    pub(crate) fn ps(&self) -> Pred {
        self.pred(87, 90)
    }

    /// Where predicate destination at bit `lo` goes.
    pub(crate) fn pdst(&self, lo: u32) -> u8 {
        let n = self.bits(lo, 3) as u8;
        if self.uniform() { pred::udst(n) } else { pred::dst(n) }
    }

    fn guard(&self) -> Pred {
        let base = if self.guarded_by == Datapath::Uniform { pred::UNIFORM } else { 0 };
        Pred { index: base + self.bits(12, 3) as u8, invert: -(self.bit(15) as i8) }
    }

    /// A micro-op with the guard in place and no operands.
    pub(crate) fn uop(&self, run: Handlers) -> Uop {
        let zero = Src::reg(255);
        Uop {
            run,
            d: Dst::SINK,
            a: zero,
            b: zero,
            c: zero,
            imm: 0,
            mods: 0,
            guard: self.guard(),
            ps: Pred::TRUE,
            pt: Pred::TRUE,
            pd: pred::SINK,
            pe: pred::SINK,
            at: self.at,
            registers: self.registers,
            aux: if self.uniform() { super::alu::UNIFORM } else { 0 },
        }
    }

    /// Destination, three sources, predicate source: the common shape.
    pub(crate) fn abc(&mut self, run: Handlers) -> Result<Uop, Refused> {
        let (d, a, (b, c)) = (self.dst(1), self.a(), self.bc()?);
        Ok(Uop { d, a, b, c, ps: self.ps(), ..self.uop(run) })
    }

    /// Destination, slot A, slot 32, predicate source.
    pub(crate) fn ab(&mut self, run: Handlers) -> Result<Uop, Refused> {
        let (d, a, b) = (self.dst(1), self.a(), self.slot32()?);
        Ok(Uop { d, a, b, ps: self.ps(), ..self.uop(run) })
    }

    /// Destination and slot 32 (as source A).
    pub(crate) fn unary(&mut self, run: Handlers) -> Result<Uop, Refused> {
        let (d, a) = (self.dst(1), self.slot32()?);
        Ok(Uop { d, a, ..self.uop(run) })
    }
}
