//! The operands of an instruction word become those of a micro-op.

use super::live::Touched;
use super::record::{Operation, Record};
use super::rows::{Dst, Pred, Row, Src, pred};
use super::uop::Uop;
use crate::isa::{self, Datapath, Row as Opcode};
use crate::word::Word;
use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;

/// The reason why a word cannot be lowered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused(pub &'static str);

/// The immediates and the words of constant banks that a program uses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool {
    pub immediates: Vec<Row>,
    found: HashMap<[u32; 2], usize>,
    /// The bank and the byte offset of each constant row.
    pub constants: Vec<(u8, u32)>,
    placed: HashMap<(u8, u32, u32), usize>,
}

impl Pool {
    /// Makes rows for a pair of words. An operand of one word uses the first row.
    fn immediate(&mut self, words: [u32; 2]) -> Src {
        let rows = &mut self.immediates;
        let at = *self.found.entry(words).or_insert_with(|| {
            rows.extend(words.map(|w| Row([w; 32])));
            rows.len() - 2
        });
        Src::immediate(at)
    }

    /// Makes rows for `count` consecutive words of a bank.
    fn constant(&mut self, bank: u8, offset: u32, count: u32) -> Src {
        let rows = &mut self.constants;
        let at = *self.placed.entry((bank, offset, count)).or_insert_with(|| {
            rows.extend((0..count).map(|i| (bank, offset + 4 * i)));
            rows.len() - count as usize
        });
        Src::constant(at)
    }
}

/// How an immediate of 32 bits becomes an operand of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Widen {
    /// The immediate is the high half of a double.
    High,
    /// The immediate is extended by its sign.
    Signed,
    /// The immediate is extended by zeros.
    Unsigned,
}

/// An instruction that is being lowered to a micro-op.
pub(crate) struct Lower<'a> {
    pub word: Word,
    /// The registers and predicates that its fields name.
    datapath: Datapath,
    /// The predicates of which its guard is one.
    guarded_by: Datapath,
    /// Whether it has a destination register, as its row says. The bits of one are zero, which is R0, where it has none.
    has_destination: bool,
    /// The index of the instruction in the image, and that of the place to which its word sends control: [`NOWHERE`] if the word names
    /// no place, or none in the image.
    ///
    /// [`NOWHERE`]: super::places::NOWHERE
    pub at: u32,
    pub target: u32,
    pool: &'a mut Pool,
    registers: u16,
    uniform: u32,
    /// The rows of the destination; if there are several destinations, those between them too.
    pub written: Range<usize>,
    /// What it reads and what it overwrites, as far as its operands are registers.
    pub touched: Touched,
    /// Whether a register group does not start at a multiple of its size.
    pub misaligned: bool,
    /// How the operation is written down, if it can be translated.
    pub record: Cell<Option<Record>>,
}

impl<'a> Lower<'a> {
    /// Starts with the instruction at `at`, which may send control to `target`. There is no row if its opcode is not known.
    pub(crate) fn new(word: Word, row: Option<&Opcode>, (at, target): (u32, u32), pool: &'a mut Pool) -> Self {
        let datapath = isa::datapath(word);
        let guarded_by = row.map_or(datapath, |row| row.guard);
        let touched = Touched { across: row.is_some_and(|row| row.effects.reads_across(word)), ..Touched::default() };
        let has_destination = row.is_some_and(|row| row.has_destination);
        let (registers, uniform, written, misaligned) = (0, 0, 0..0, false);
        Lower {
            word,
            datapath,
            guarded_by,
            has_destination,
            at,
            target,
            pool,
            registers,
            uniform,
            written,
            touched,
            misaligned,
            record: Cell::new(None),
        }
    }

    /// Bit `n` of the word.
    pub(crate) fn bit(&self, n: u32) -> bool {
        self.word.bit(n)
    }

    /// A field of the word.
    pub(crate) fn bits(&self, lo: u32, len: u32) -> u32 {
        self.word.bits(lo, len)
    }

    /// Whether this is an opcode of the uniform datapath, whose registers and predicates are uniform ones.
    pub(crate) fn uniform(&self) -> bool {
        self.datapath == Datapath::Uniform
    }

    fn track(&mut self, n: u8, count: u8) {
        if n != 255 {
            self.misaligned |= !n.is_multiple_of(count);
            self.registers = self.registers.max(u16::from(n) + u16::from(count));
        }
    }

    /// Whether the register at bit `lo` is RZ or URZ.
    pub(crate) fn is_zero(&self, lo: u32) -> bool {
        if self.uniform() { self.bits(lo, 6) == 63 } else { self.bits(lo, 8) == 255 }
    }

    /// The group of `count` registers at bit `lo`, as a source.
    pub(crate) fn reg(&mut self, lo: u32, count: u8) -> Src {
        if self.uniform() {
            return self.uregs(lo, count.into());
        }
        let n = self.bits(lo, 8) as u8;
        self.track(n, count);
        self.touched.reads(Src::reg(n), count.into());
        Src::reg(n)
    }

    /// The uniform register at bit `lo`, or the pair of them.
    pub(crate) fn ureg(&mut self, lo: u32) -> Src {
        self.uregs(lo, 2)
    }

    /// The group of `count` uniform registers at bit `lo`.
    fn uregs(&mut self, lo: u32, count: u32) -> Src {
        let n = self.bits(lo, 6);
        self.track_uniform(n);
        self.touched.reads(Src::ureg(n as u8), count);
        Src::ureg(n as u8)
    }

    /// Notes the highest uniform register that is used. Pairs and quadruples are included.
    fn track_uniform(&mut self, n: u32) {
        if n != 63 {
            self.uniform = self.uniform.max((n + 4).min(63));
        }
    }

    /// One more than the highest uniform register that is used, but not more than there are.
    pub(crate) fn uniform_registers(&self) -> u32 {
        self.uniform
    }

    /// The destination group of `count` registers at bit 16. An instruction that has none writes to rows that nobody reads.
    pub(crate) fn dst(&mut self, count: u8) -> Dst {
        if !self.has_destination {
            return Dst::SINK;
        }
        if self.uniform() {
            return self.udst();
        }
        let n = self.bits(16, 8) as u8;
        self.track(n, count);
        self.touched.overwrites(Dst::reg(n), count.into());
        self.writes(Dst::reg(n), count)
    }

    /// Notes that rows are written.
    fn writes(&mut self, d: Dst, count: u8) -> Dst {
        let (start, end) = (d.offset() / 32, d.offset() / 32 + usize::from(count));
        let old = &self.written;
        self.written = if old.is_empty() { start..end } else { old.start.min(start)..old.end.max(end) };
        d
    }

    /// The uniform destination at bit 16.
    pub(crate) fn udst(&mut self) -> Dst {
        let n = self.bits(16, 6);
        self.track_uniform(n);
        self.touched.overwrites(Dst::ureg(n as u8), 1);
        // There may be a group of up to four.
        self.writes(Dst::ureg(n as u8), 4)
    }

    /// Convergence barrier `n` as a destination that the instruction overwrites.
    pub(crate) fn barrier(&mut self, n: u8) -> Dst {
        self.touched.overwrites(Dst::barrier(n), 1);
        Dst::barrier(n)
    }

    /// The source at bits 24..31.
    pub(crate) fn a(&mut self) -> Src {
        self.reg(24, 1)
    }

    /// The source at bits 32..63, whose kind depends on the form.
    pub(crate) fn slot32(&mut self) -> Result<Src, Refused> {
        self.slot32_wide(1, Widen::Unsigned)
    }

    /// The register at bits 64..71.
    pub(crate) fn slot64(&mut self) -> Src {
        self.reg(64, 1)
    }

    /// The source at bits 32..63 as a group of `count` registers, or as a constant of that many words.
    pub(crate) fn slot32_wide(&mut self, count: u8, widen: Widen) -> Result<Src, Refused> {
        match self.word.form() {
            1 => Ok(self.reg(32, count)),
            2 | 4 => Ok(self.immediate(count, widen)),
            3 | 5 if self.bit(91) => Err(Refused("bindless constant bank")),
            3 | 5 => Ok(self.pool.constant(self.bits(54, 5) as u8, self.bits(38, 16), u32::from(count))),
            6 | 7 => Ok(self.uregs(32, count.into())),
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

    /// A row that holds a word of a constant bank, or `count` such rows one after another.
    pub(crate) fn constant(&mut self, bank: u8, offset: u32, count: u8) -> Src {
        self.pool.constant(bank, offset, u32::from(count))
    }

    /// Whether B and C change places. In forms 2, 3 and 7, C is at bits 32..63.
    pub(crate) fn swapped(&self) -> bool {
        matches!(self.word.form(), 2 | 3 | 7)
    }

    /// The second and third source of a three-source operation.
    pub(crate) fn bc(&mut self) -> Result<(Src, Src), Refused> {
        self.bc_wide(1, 1, Widen::Unsigned)
    }

    /// The same sources as [`Self::bc`], each with its number of registers.
    pub(crate) fn bc_wide(&mut self, b: u8, c: u8, widen: Widen) -> Result<(Src, Src), Refused> {
        if self.swapped() {
            Ok((self.reg(64, b), self.slot32_wide(c, widen)?))
        } else {
            let x = self.slot32_wide(b, widen)?;
            Ok((x, self.reg(64, c)))
        }
    }

    /// The predicate register at bit `lo`, inverted if bit `not` is set. It is a uniform one if the opcode is uniform.
    pub(crate) fn pred(&self, lo: u32, not: u32) -> Pred {
        let base = if self.uniform() { pred::UNIFORM } else { 0 };
        Pred { index: base + self.bits(lo, 3) as u8, invert: -(self.bit(not) as i8) }
    }

    /// The predicate source at bits 87..90.
    pub(crate) fn ps(&self) -> Pred {
        self.pred(87, 90)
    }

    /// The place that the predicate destination at bit `lo` writes.
    pub(crate) fn pdst(&self, lo: u32) -> u8 {
        let n = self.bits(lo, 3) as u8;
        if self.uniform() { pred::udst(n) } else { pred::dst(n) }
    }

    fn guard(&self) -> Pred {
        let base = if self.guarded_by == Datapath::Uniform { pred::UNIFORM } else { 0 };
        Pred { index: base + self.bits(12, 3) as u8, invert: -(self.bit(15) as i8) }
    }

    /// A micro-op that has its guard but no operands.
    pub(crate) fn uop(&self, operation: impl Into<Operation>) -> Uop {
        let Operation { run, record } = operation.into();
        self.record.set(record);
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
            aux: if self.uniform() { super::uop::UNIFORM } else { 0 },
        }
    }

    /// A micro-op of the usual kind, with a destination, three sources and a predicate source.
    pub(crate) fn abc(&mut self, run: impl Into<Operation>) -> Result<Uop, Refused> {
        let (d, a, (b, c)) = (self.dst(1), self.a(), self.bc()?);
        Ok(Uop { d, a, b, c, ps: self.ps(), ..self.uop(run) })
    }

    /// A micro-op with a destination, the sources at bits 24..31 and 32..63, and a predicate source.
    pub(crate) fn ab(&mut self, run: impl Into<Operation>) -> Result<Uop, Refused> {
        let (d, a, b) = (self.dst(1), self.a(), self.slot32()?);
        Ok(Uop { d, a, b, ps: self.ps(), ..self.uop(run) })
    }

    /// A micro-op with a destination and the source at bits 32..63, which becomes source A.
    pub(crate) fn unary(&mut self, run: impl Into<Operation>) -> Result<Uop, Refused> {
        let (d, a) = (self.dst(1), self.slot32()?);
        Ok(Uop { d, a, ..self.uop(run) })
    }
}
