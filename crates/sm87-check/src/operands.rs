//! The rows that an instruction reads and writes, and the registers that a program may read before it writes them.

use super::plan::Plan;
use sm87::Word;
use sm87::isa::memory::{Shape, Space};
use sm87::isa::{self, Does, End, Flow, Row};
use sm87::observe::{Image, Named, Pred, REGISTER};
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
    /// What it does, if it can be executed.
    pub does: Option<Does>,
}

/// The registers of a 64-bit address.
const PAIR: u8 = 2;

impl Operands {
    /// The operands of the instruction `word`. What cannot be executed has none.
    fn of(row: &Row, word: Word) -> Operands {
        let Some(named) = Named::of(row, word) else { return Operands::default() };
        let (effects, plan) = (&row.effects, Plan::of(row, word));
        let sort = match row.flow {
            _ if matches!(plan, Plan::Access(_)) => Sort::Access,
            Flow::Jump(_) | Flow::Conditional(_) | Flow::Ends(_) | Flow::Call(_) => Sort::Control,
            Flow::Next | Flow::Meets(_) if effects.pure => Sort::Pure,
            Flow::Next | Flow::Meets(_) => Sort::Other,
        };
        let counts = if let Plan::Access(shape) = plan { accessed(&named, shape) } else { effects.sources };
        let own = |i: usize| named.sources[i].filter(|_| counts[i] > 0).map_or((0, 0), |first| (first, counts[i]));
        let writes = (named.written.start, named.written.len() as u8);
        Operands { sort, reads: [0, 1, 2].map(own), writes, does: Some(effects.does) }
    }

    /// Whether it does this.
    pub(crate) fn is(&self, does: Does) -> bool {
        self.does == Some(does)
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

/// The number of registers of each source of an instruction that accesses memory: its address, what it stores, and an address that all
/// lanes share.
fn accessed(named: &Named, shape: Shape) -> [u8; 3] {
    let words = shape.len.div_ceil(4) as u8;
    let stored = match shape {
        Shape { space: Space::Copy, .. } => 1,
        Shape { writes: true, .. } => words,
        _ => 0,
    };
    [if named.is_wide { PAIR } else { 1 }, stored, if shape.swaps { words } else { PAIR }]
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
        row.checked_sub(REGISTER as usize).filter(|number| *number < 255)
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
        (0..255).map(|n| REGISTER as usize + n).filter(move |row| self.has(*row))
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
        let of = |at: u32| {
            let word = Word(image.word(at));
            isa::legal(word).map_or_else(|_| Operands::default(), |row| Operands::of(row, word))
        };
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
        self.fate(image, at + 1, row, CALLS) != Fate::Gone
    }

    /// What becomes of a row from an instruction on, in its function and in up to `calls` functions that call each other.
    fn fate(&self, image: &Image, from: u32, row: usize, calls: u32) -> Fate {
        let (mut seen, mut todo, mut fate) = (vec![false; image.len() as usize], vec![from], Fate::Gone);
        while let Some(at) = todo.pop() {
            let Some(seen) = seen.get_mut(at as usize) else { return Fate::Read };
            if std::mem::replace(seen, true) {
                continue;
            }
            let (word, operands) = (Word(image.word(at)), self.at(at));
            let Some(of) = isa::lookup(word) else { return Fate::Read };
            let target = image.jumps_to(at);
            let mut overwritten = operands.written().contains(&row);
            match (of.flow, target) {
                _ if operands.rows().any(|read| read == row) => return Fate::Read,
                (Flow::Call(_), Some(target)) if calls > 0 => match self.fate(image, target, row, calls - 1) {
                    Fate::Read => return Fate::Read,
                    Fate::Kept => {}
                    Fate::Gone => overwritten = true,
                },
                (Flow::Call(_), _) => return Fate::Read,
                (Flow::Jump(_) | Flow::Conditional(_), Some(target)) => todo.push(target),
                (Flow::Ends(End::Return), _) => fate = Fate::Kept,
                (Flow::Ends(End::Indirect), _) => return Fate::Read,
                _ => {}
            }
            let always = image.guard(at) == Pred::TRUE;
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
        let mut todo = vec![(image.entry(), Registers::default())];
        while let Some((at, written)) = todo.pop() {
            let Some(slot) = known.get_mut(at as usize) else { continue };
            let new = slot.map_or(written, |before| before.both(&written));
            if slot.replace(new) == Some(new) {
                continue;
            }
            let word = Word(image.word(at));
            let Some(row) = isa::lookup(word) else { continue };
            let mut after = new;
            if image.guard(at) == Pred::TRUE {
                self.operands[at as usize].written().for_each(|row| after.add(row));
            }
            let target = image.jumps_to(at);
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
    use sm87::isa::Effects;
    use sm87::observe::find;

    /// The program of these words. The first has a condition that no lane needs to meet.
    fn program(words: &[Word]) -> Program {
        Program::of(&find(0, &mut |n| words.get(usize::try_from(n).ok()?).copied()))
    }

    const CLOCK: Word = Word::new(0x0000_0805, 0x000f_ca00_0000_5000);
    const ISETP: Word = Word::new(0x0000_000c_0000_780c, 0x000f_c800_03f0_4270);
    const IMAD: Word = Word::new(0x0000_0003_0000_7824, 0x000f_e400_078e_02ff);
    const EXIT: Word = Word::new(0x794d, 0x000f_ea00_0380_0000);

    #[test]
    fn a_register_that_is_written_under_a_condition_may_be_read_first() {
        let found = program(&[CLOCK, IMAD, ISETP, EXIT]).unwritten;
        assert_eq!(found.rows().collect::<Vec<_>>(), [REGISTER as usize], "R0");
        let always = Word::new(0x7805, 0x000f_ca00_0000_5000);
        assert_eq!(program(&[always, IMAD, ISETP, EXIT]).unwritten, Registers::default());
    }

    #[test]
    fn an_instruction_without_a_destination_writes_no_register() {
        let program = program(&[CLOCK, IMAD, ISETP, EXIT]);
        assert!(program.at(2).written().is_empty() && program.at(2).rows().eq([REGISTER as usize]));
        assert!(program.at(1).written().eq([REGISTER as usize]));
        assert_eq!([0, 1, 2, 3].map(|at| program.at(at).sort), [Sort::Other, Sort::Pure, Sort::Pure, Sort::Control]);
        assert!(program.matters(1) && program.matters(2) && !program.matters(3));
    }

    /// The row of IMAD, changed so that it compares pairs of registers, or sends control away.
    #[test]
    fn a_new_row_says_what_its_operands_are() {
        let known = isa::lookup(IMAD).expect("a row");
        let effects = Effects { does: Does::Compares, sources: [2, 1, 2], ..known.effects };
        let of = |row: Row| Operands::of(&row, IMAD);
        let new = of(Row { effects, ..*known });
        let register = |n: u16, count: u8| (REGISTER as u16 + n, count);
        assert_eq!((new.reads, new.writes), ([register(0, 2), (0, 0), (0, 0)], register(0, 1)));
        assert!(new.is(Does::Compares) && new.sort == Sort::Pure);
        assert_eq!(of(Row { has_destination: false, ..*known }).writes, (0, 0));
        assert_eq!(of(Row { effects: Effects { pure: false, ..effects }, ..*known }).sort, Sort::Other);
        assert_eq!(of(Row { flow: Flow::Ends(End::Indirect), ..*known }).sort, Sort::Control);
    }

    #[test]
    fn what_is_overwritten_before_it_is_read_makes_no_difference() {
        let always = Word::new(0x7805, 0x000f_ca00_0000_5000);
        for (first, is_read) in [(CLOCK, true), (always, false)] {
            let words = [always, first, IMAD, ISETP, EXIT];
            let image = find(0, &mut |n| words.get(usize::try_from(n).ok()?).copied());
            let program = Program::of(&image);
            let behind = |at, register| program.is_read_behind(&image, at, REGISTER as usize + register);
            assert_eq!(behind(0, 0), is_read, "a condition keeps the old R0");
            assert!(behind(1, 0) && behind(2, 0) && !behind(3, 0) && !behind(0, 3), "IMAD and ISETP read R0");
        }
        let returns = [CLOCK, Word::new(0x0000_0000_0014_7950, 0x000f_ea00_03c3_ffff)];
        let image = find(0, &mut |n| returns.get(usize::try_from(n).ok()?).copied());
        assert!(Program::of(&image).is_read_behind(&image, 0, REGISTER as usize), "nobody knows what the caller does");
    }
}
