//! The rows that an instruction reads and writes, and the registers that a program may read before it writes them.

use super::plan::{Plan, Shape, Space};
use crate::exec::dispatch::lower;
use crate::exec::image::{Image, distance};
use crate::exec::lower::{Lower, Pool};
use crate::exec::rows::{self, Src};
use crate::exec::runs;
use crate::exec::uop::{Pred, Uop};
use crate::isa::{self, Flow, Op};
use crate::word::Word;
use std::ops::Range;

/// What an instruction does with what it reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sort {
    /// It only changes registers and predicates, so that it may be tried with other values.
    Pure,
    /// It accesses memory.
    Access,
    /// It decides where control goes.
    Control,
    /// What it writes counts as written, whatever it reads.
    #[default]
    Other,
}

/// The operands of an instruction.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Operands {
    pub sort: Sort,
    /// The first row and the number of rows of each source that is in the warp's file.
    pub reads: [(u16, u8); 3],
    /// The first row that is written, and the number of rows.
    pub writes: (u16, u8),
    /// Whether it compares numbers: it is then tried with numbers that are equal, too.
    pub compares: bool,
    /// Whether it moves parts of registers about, which is no use of them.
    pub moves: bool,
    /// Whether it combines the bits of registers, each for itself.
    pub logic: bool,
    /// Whether it writes every predicate.
    pub all_predicates: bool,
}

/// The rows of sources of tensor cores, and of wide ones.
const TENSOR: u8 = 4;
const WIDE: u8 = 2;

impl Operands {
    /// The operands of the instruction at a place. What cannot be executed has none.
    fn of(word: Word, at: u32, pool: &mut Pool, u: &Uop) -> Operands {
        let Some(row) = isa::lookup(word) else { return Operands::default() };
        let mut l = Lower::new(word, Some(row), at, pool);
        if lower(row.op, &mut l).is_err() {
            return Operands::default();
        }
        // The bits of a destination are zero, which is R0, where an instruction has none.
        let has = ["{d}", "{dz}", "{ud}"].iter().any(|name| row.text.contains(name));
        let writes = if has { (l.written.start as u16, l.written.len() as u8) } else { (0, 0) };
        let sort = match Plan::of(word, u) {
            Plan::Access(_) => Sort::Access,
            _ if matches!(row.flow, Flow::Jump(_) | Flow::Conditional(_) | Flow::Ends | Flow::Call(_)) => Sort::Control,
            _ if is_pure(row.op) => Sort::Pure,
            _ => Sort::Other,
        };
        let reads = match Plan::of(word, u) {
            Plan::Access(shape) => accessed(u, shape),
            _ => widths(row.op).map_or([(0, 0); 3], |widths| {
                let sources = [u.a, u.b, u.c];
                std::array::from_fn(|i| own(sources[i], widths[i]))
            }),
        };
        let compares = matches!(row.op, Op::Isetp | Op::Fsetp | Op::Dsetp | Op::Hsetp2 | Op::Fset | Op::Hset2);
        let moves = matches!(row.op, Op::Prmt | Op::Movm);
        let logic = row.op == Op::Lop3;
        Operands { sort, reads, writes, compares, moves, logic, all_predicates: row.op == Op::R2p }
    }

    /// All rows that are read.
    pub(crate) fn rows(&self) -> impl Iterator<Item = usize> + use<> {
        let reads = self.reads;
        reads.into_iter().flat_map(|(first, count)| (first..first + u16::from(count)).map(usize::from))
    }

    /// All rows that are written.
    pub(crate) fn written(&self) -> Range<usize> {
        usize::from(self.writes.0)..usize::from(self.writes.0) + usize::from(self.writes.1)
    }

    fn touches(&self, registers: &Registers) -> bool {
        self.rows().chain(self.written()).any(|row| registers.has(row))
    }
}

/// Whether an operation can be tried with other values.
fn is_pure(op: Op) -> bool {
    let is_tensor = matches!(op, Op::Hmma | Op::Imma | Op::Bmma | Op::Dmma | Op::Movm);
    is_tensor || runs::computes(op) && !matches!(op, Op::P2r | Op::R2p | Op::Uldc)
}

/// The number of rows of each source. An operation that has nothing in these places has no widths.
fn widths(op: Op) -> Option<[u8; 3]> {
    use Op::*;
    Some(match op {
        Hmma | Imma | Bmma | Dmma => [TENSOR; 3],
        Dmul | Dadd | Dsetp | Dfma => [WIDE; 3],
        ImadWide => [1, 1, WIDE],
        F2f | F2i | I2f | Frnd | Match => [WIDE, 1, 1],
        CallAbsoluteRegister | CallRegister | Ret | Brx => [WIDE, 1, 1],
        Nop | Depbar | Cctl | Membar | Errbar | Ldgdepbar | Pmtrig | Exit | Bra | Bssy | Bsync => return None,
        _ => [1; 3],
    })
}

/// A source, if it is in the warp's own file and not always zero.
fn own(s: Src, count: u8) -> (u16, u8) {
    if s.space() != 0 || s == Src::reg(255) { (0, 0) } else { ((s.own() / 32) as u16, count) }
}

/// The sources of an instruction that accesses memory: its address, what it stores, and an address that all lanes share.
fn accessed(u: &Uop, shape: Shape) -> [(u16, u8); 3] {
    let words = shape.len.div_ceil(4) as u8;
    let pair = if super::access::is_pair(u) { WIDE } else { 1 };
    let stored = match shape {
        Shape { space: Space::Copy, .. } => 1,
        Shape { writes: true, .. } => words,
        _ => 0,
    };
    let last = if shape.swaps { words } else { WIDE };
    [own(u.a, pair), own(u.b, stored), own(u.c, last)]
}

/// What becomes of what a row holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// An instruction may read it.
    Read,
    /// The function may return with it.
    Kept,
    /// It is overwritten, or the program ends.
    Gone,
}

/// The most functions that call each other and are looked into.
const CALLS: u32 = 4;

/// A set of registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Registers([u64; 4]);

impl Registers {
    const ALL: Registers = Registers([u64::MAX; 4]);

    /// The number of the register in a row.
    fn number(row: usize) -> Option<usize> {
        row.checked_sub(rows::REGISTER as usize).filter(|number| *number < 255)
    }

    fn add(&mut self, row: usize) {
        Registers::number(row).into_iter().for_each(|n| self.0[n / 64] |= 1 << (n % 64));
    }

    /// Whether the register in a row is one of them.
    pub(crate) fn has(&self, row: usize) -> bool {
        Registers::number(row).is_some_and(|n| self.0[n / 64] >> (n % 64) & 1 == 1)
    }

    fn both(&self, other: &Registers) -> Registers {
        Registers(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }

    /// The rows of the registers.
    pub(crate) fn rows(self) -> impl Iterator<Item = usize> {
        (0..255).map(|n| rows::REGISTER as usize + n).filter(move |row| self.has(*row))
    }
}

/// The operands of all instructions of a program, and the registers that it may read before it writes them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    operands: Vec<Operands>,
    pub unwritten: Registers,
}

impl Program {
    pub(crate) fn of(image: &Image) -> Program {
        let mut pool = image.pool.clone();
        let of = |at: u32| Operands::of(Word(image.word(at)), at, &mut pool, &image.uops[at as usize]);
        let mut program = Program { operands: (0..image.len()).map(of).collect(), unwritten: Registers::default() };
        program.unwritten = program.read_first(image);
        program
    }

    /// The operands of an instruction.
    pub(crate) fn at(&self, at: u32) -> Operands {
        self.operands.get(at as usize).copied().unwrap_or_default()
    }

    /// Whether an instruction has to do with registers that may be read before they are written.
    pub(crate) fn matters(&self, at: u32) -> bool {
        self.unwritten != Registers::default() && self.at(at).touches(&self.unwritten)
    }

    /// Whether an instruction behind `at` may read what this row holds there. Nothing is known of the caller to which a function
    /// returns, and of jumps and calls whose target is in a register.
    pub(crate) fn is_read_behind(&self, image: &Image, at: u32, row: usize) -> bool {
        self.fate(image, i64::from(at) + 1, row, CALLS) != Fate::Gone
    }

    /// What becomes of a row from an instruction on, in its function and in up to `calls` functions that call each other.
    fn fate(&self, image: &Image, from: i64, row: usize, calls: u32) -> Fate {
        let (mut seen, mut todo, mut fate) = (vec![false; image.len() as usize], vec![from], Fate::Gone);
        while let Some(at) = todo.pop() {
            let Some(seen) = usize::try_from(at).ok().and_then(|at| seen.get_mut(at)) else { return Fate::Read };
            if std::mem::replace(seen, true) {
                continue;
            }
            let (word, operands) = (Word(image.word(at as u32)), self.at(at as u32));
            let Some(of) = isa::lookup(word) else { return Fate::Read };
            let target = distance(of, word).map(|far| at + far);
            let mut overwritten = operands.written().contains(&row);
            match (of.flow, of.op, target) {
                _ if operands.rows().any(|read| read == row) => return Fate::Read,
                (Flow::Call(_), _, Some(target)) if calls > 0 => match self.fate(image, target, row, calls - 1) {
                    Fate::Read => return Fate::Read,
                    Fate::Kept => {}
                    Fate::Gone => overwritten = true,
                },
                (Flow::Call(_), ..) => return Fate::Read,
                (Flow::Jump(_) | Flow::Conditional(_), _, Some(target)) => todo.push(target),
                (Flow::Ends, Op::Ret, _) => fate = Fate::Kept,
                (Flow::Ends, op, _) if op != Op::Exit => return Fate::Read,
                _ => {}
            }
            let always = image.uops[at as usize].guard == Pred::TRUE;
            if !(of.flow.ends(word) || always && overwritten) {
                todo.push(at + 1);
            }
        }
        fate
    }

    /// The registers that some instruction reads although there is a way to it on which nothing has written them. What a
    /// function does to registers is not known: behind a call all count as written.
    fn read_first(&self, image: &Image) -> Registers {
        let mut known: Vec<Option<Registers>> = vec![None; image.len() as usize];
        let mut todo = vec![(image.entry as i64, Registers::default())];
        while let Some((at, written)) = todo.pop() {
            let Some(slot) = usize::try_from(at).ok().and_then(|at| known.get_mut(at)) else { continue };
            let new = slot.map_or(written, |before| before.both(&written));
            if slot.replace(new) == Some(new) {
                continue;
            }
            let (word, u) = (Word(image.word(at as u32)), &image.uops[at as usize]);
            let Some(row) = isa::lookup(word) else { continue };
            let mut after = new;
            if u.guard == Pred::TRUE {
                self.operands[at as usize].written().for_each(|row| after.add(row));
            }
            let target = distance(row, word).map(|far| at + far);
            if let (Flow::Jump(_) | Flow::Conditional(_) | Flow::Call(_), Some(target)) = (row.flow, target) {
                todo.push((target, after));
            }
            if !row.flow.ends(word) {
                todo.push((at + 1, if matches!(row.flow, Flow::Call(_)) { Registers::ALL } else { after }));
            }
        }
        let mut found = Registers::default();
        for (operands, known) in self.operands.iter().zip(known) {
            let Some(known) = known else { continue };
            operands.rows().filter(|row| !known.has(*row)).for_each(|row| found.add(row));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::image;

    /// The program of these words. The first has a condition that no lane needs to meet.
    fn program(words: &[Word]) -> Program {
        Program::of(&image::find(&mut |n| words.get(usize::try_from(n).ok()?).copied()))
    }

    const CLOCK: Word = Word::new(0x0000_0805, 0x000f_ca00_0000_5000);
    const ISETP: Word = Word::new(0x0000_000c_0000_780c, 0x000f_c800_03f0_4270);
    const IMAD: Word = Word::new(0x0000_0003_0000_7824, 0x000f_e400_078e_02ff);
    const EXIT: Word = Word::new(0x794d, 0x000f_ea00_0380_0000);

    #[test]
    fn a_register_that_is_written_under_a_condition_may_be_read_first() {
        let found = program(&[CLOCK, IMAD, ISETP, EXIT]).unwritten;
        assert_eq!(found.rows().collect::<Vec<_>>(), [rows::REGISTER as usize], "R0");
        let always = Word::new(0x7805, 0x000f_ca00_0000_5000);
        assert_eq!(program(&[always, IMAD, ISETP, EXIT]).unwritten, Registers::default());
    }

    #[test]
    fn an_instruction_without_a_destination_writes_no_register() {
        let program = program(&[CLOCK, IMAD, ISETP, EXIT]);
        assert!(program.at(2).written().is_empty() && program.at(2).rows().eq([rows::REGISTER as usize]));
        assert!(program.at(1).written().eq([rows::REGISTER as usize]));
        assert_eq!([0, 1, 2, 3].map(|at| program.at(at).sort), [Sort::Other, Sort::Pure, Sort::Pure, Sort::Control]);
        assert!(program.matters(1) && program.matters(2) && !program.matters(3));
    }

    #[test]
    fn what_is_overwritten_before_it_is_read_makes_no_difference() {
        let always = Word::new(0x7805, 0x000f_ca00_0000_5000);
        for (first, is_read) in [(CLOCK, true), (always, false)] {
            let words = [always, first, IMAD, ISETP, EXIT];
            let image = image::find(&mut |n| words.get(usize::try_from(n).ok()?).copied());
            let program = Program::of(&image);
            let behind = |at, register| program.is_read_behind(&image, at, rows::REGISTER as usize + register);
            assert_eq!(behind(0, 0), is_read, "a condition keeps the old R0");
            assert!(behind(1, 0) && behind(2, 0) && !behind(3, 0) && !behind(0, 3), "IMAD and ISETP read R0");
        }
        let returns = [CLOCK, Word::new(0x0000_0000_0014_7950, 0x000f_ea00_03c3_ffff)];
        let image = image::find(&mut |n| returns.get(usize::try_from(n).ok()?).copied());
        assert!(
            Program::of(&image).is_read_behind(&image, 0, rows::REGISTER as usize),
            "nobody knows what the caller does"
        );
    }
}
