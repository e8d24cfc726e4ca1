//! Which rows a program may read before it writes them. Only these are cleared when a warp begins.
//!
//! A register belongs to a lane, and a lane sees only what its own path has written, wherever the other lanes are. So it is enough to
//! follow the paths of one lane. Operations that read registers of other lanes are an exception: a lane from which they read may never
//! have been on the path. Their sources are therefore always cleared ([`Touched::across`]).

use super::rows::{self, Dst, Src};
use super::uop::Uop;
use crate::isa::cost::Class;
use crate::isa::{End, Flow, Row};
use crate::word::Word;
use std::ops::Range;

/// The number of 64-bit words that have a bit for every row of a warp.
const WORDS: usize = rows::rows_per_warp(255).div_ceil(64);

/// A set of rows of a warp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rows([u64; WORDS]);

impl Rows {
    /// All rows.
    pub(crate) const ALL: Rows = Rows([u64::MAX; WORDS]);

    /// Adds `count` rows.
    pub(crate) fn add(&mut self, first: usize, count: usize) {
        (first..first + count).for_each(|row| self.0[row / 64] |= 1 << (row % 64));
    }

    /// Puts a row into the set, or takes it out.
    pub(crate) fn set(&mut self, row: usize, put: bool) {
        let bit = 1 << (row % 64);
        self.0[row / 64] = self.0[row / 64] & !bit | if put { bit } else { 0 };
    }

    /// Whether a row is in the set.
    pub(crate) fn has(&self, row: usize) -> bool {
        self.0[row / 64] >> (row % 64) & 1 == 1
    }

    /// The rows of both sets.
    pub(crate) fn with(&self, other: &Rows) -> Rows {
        Rows(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }

    /// Whether a row is in both sets.
    pub(crate) fn meets(&self, other: &Rows) -> bool {
        self.0.iter().zip(other.0).any(|(a, b)| a & b != 0)
    }

    /// All rows of the set.
    pub(crate) fn all(&self) -> impl Iterator<Item = usize> + use<> {
        let (mut left, mut at) = (self.0, 0);
        std::iter::from_fn(move || {
            while at < WORDS && left[at] == 0 {
                at += 1;
            }
            let bits = left.get_mut(at)?;
            let row = 64 * at + bits.trailing_zeros() as usize;
            *bits &= *bits - 1;
            Some(row)
        })
    }

    /// The rows that are in both sets.
    pub(crate) fn within(&self, other: &Rows) -> Rows {
        Rows(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }

    /// The rows that are not in the other set.
    pub(crate) fn without(&self, other: &Rows) -> Rows {
        Rows(std::array::from_fn(|i| self.0[i] & !other.0[i]))
    }
}

/// The rows that an instruction reads, and those that it overwrites in every lane that executes it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Touched {
    pub reads: Rows,
    pub overwrites: Rows,
    /// Whether lanes read what belongs to other lanes.
    pub across: bool,
}

impl Touched {
    /// Notes that a source is read.
    pub(crate) fn reads(&mut self, s: Src, count: u32) {
        if s.space() == 0 {
            self.reads.add(s.own() / 32, count as usize);
        }
    }

    /// Notes that a destination is overwritten.
    pub(crate) fn overwrites(&mut self, d: Dst, count: u32) {
        self.overwrites.add(d.offset() / 32, count as usize);
    }

    /// The same for the micro-op that was made: it may have sources that are not registers, and a guard.
    pub(crate) fn by(mut self, u: &Uop) -> Touched {
        [u.a, u.b, u.c].into_iter().for_each(|s| self.reads(s, 1));
        if !u.guard.is_always_true() {
            self.overwrites = Rows::default();
        }
        self
    }
}

/// Whether an instruction is arithmetic on registers of its own lane.
pub(crate) fn computes(row: &Row) -> bool {
    match row.effects.class {
        Class::Single | Class::Integer | Class::Product | Class::Half | Class::Double => true,
        Class::Function | Class::BitCount | Class::Conversion => true,
        Class::Shuffle | Class::Reduction | Class::SpecialRegister | Class::Constant => false,
        Class::Memory | Class::Matrix(_) | Class::Slot => false,
    }
}

/// Whether all lanes of all warps that have the same registers do the same here, whichever lanes there are.
pub(crate) fn is_alike(row: &Row, touched: &Touched) -> bool {
    match row.flow {
        Flow::Next => computes(row) && row.effects.pure && !touched.across,
        Flow::Jump(_) | Flow::Conditional(_) => !touched.across,
        _ => false,
    }
}

/// What is known of one instruction. There is no row where nothing is decoded.
pub(crate) struct Step<'a> {
    pub row: Option<&'a Row>,
    pub word: Word,
    /// The index of the place to which it sends control, or may send it, if that is in the program.
    pub target: u32,
    pub touched: Touched,
}

/// Where functions return to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Returns {
    /// Anywhere, which may read everything. Nothing goes wrong if they do so.
    Anywhere,
    /// To the instructions behind calls, as those do that compilers make.
    BehindCalls,
}

/// The rows that may be read from each instruction on before they are written. Behind the last one, code follows that is not known.
pub(crate) fn read_from(steps: &[Step<'_>], returns: Returns) -> Vec<Rows> {
    let mut live = vec![Rows::default(); steps.len()];
    let at = |live: &[Rows], at: u32| live.get(at as usize).copied().unwrap_or(Rows::ALL);
    let calls =
        || (1..).zip(steps).filter(|(_, step)| matches!(step.row, Some(row) if matches!(row.flow, Flow::Call(_))));
    let behind: Vec<u32> = calls().map(|(behind, _)| behind).collect();
    let known = returns == Returns::BehindCalls && !behind.is_empty();
    let mut changed = true;
    while changed {
        changed = false;
        let returned = known.then(|| behind.iter().fold(Rows::default(), |all, to| all.with(&at(&live, *to))));
        for (here, step) in steps.iter().enumerate().rev() {
            let behind = follows(step, here as u32, returned.as_ref(), |there| at(&live, there));
            let now = behind.without(&step.touched.overwrites).with(&step.touched.reads);
            changed |= now != live[here];
            live[here] = now;
        }
    }
    live
}

/// The rows that may be read from an instruction on before they are written, if functions return behind calls. `live` is what may be read if they
/// return anywhere.
pub(crate) fn unset(steps: &[Step<'_>], live: &[Rows], at: usize) -> Rows {
    let returns = |step: &Step<'_>| matches!(step.row, Some(row) if row.flow == Flow::Ends(End::Return));
    let known = steps.iter().any(returns).then(|| read_from(steps, Returns::BehindCalls));
    known.as_deref().unwrap_or(live).get(at).copied().unwrap_or(Rows::ALL)
}

/// The rows that lanes may read of other lanes.
pub(crate) fn across(steps: &[Step<'_>]) -> Rows {
    let across = steps.iter().filter(|step| step.touched.across);
    across.fold(Rows::default(), |all, step| all.with(&step.touched.reads))
}

/// What may be read behind an instruction. Jumps and calls to addresses in registers lead to code that may read everything, and so do other calls, and
/// returns, if it is not known what may be read where functions have `returned`.
fn follows(step: &Step<'_>, here: u32, returned: Option<&Rows>, live: impl Fn(u32) -> Rows) -> Rows {
    let Some(row) = step.row else { return Rows::ALL };
    let next = if row.flow.ends(step.word) { Rows::default() } else { live(here + 1) };
    match row.flow {
        Flow::Next | Flow::Ends(End::Exit) => next,
        Flow::Ends(End::Return) => next.with(returned.unwrap_or(&Rows::ALL)),
        Flow::Call(_) if returned.is_some() => next.with(&live(step.target)),
        Flow::Ends(End::Indirect) | Flow::Call(_) => Rows::ALL,
        Flow::Jump(_) | Flow::Conditional(_) | Flow::Meets(_) => next.with(&live(step.target)),
    }
}

/// The ranges of those rows that a warp with `uniform` uniform registers and `registers` registers uses.
pub(crate) fn ranges(wanted: &Rows, uniform: u32, registers: u32) -> Vec<Range<u16>> {
    let mut ranges: Vec<Range<u16>> = Vec::new();
    for row in wanted.all().filter(|row| rows::is_used(*row, uniform, registers)) {
        match ranges.last_mut() {
            Some(last) if usize::from(last.end) == row => last.end += 1,
            _ => ranges.push(row as u16..row as u16 + 1),
        }
    }
    ranges
}

/// All of these rows.
pub(crate) fn all(uniform: u32, registers: u32) -> Vec<Range<u16>> {
    ranges(&Rows::ALL, uniform, registers)
}

#[cfg(test)]
mod tests {
    //! Which registers are cleared for a new warp.

    use super::super::image::Image;
    use super::super::rows::{REGISTER, used};
    use super::{Rows, WORDS};
    use crate::isa;
    use crate::word::Word;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn sets_of_rows_are_sets(
            [one, other] in prop::array::uniform2(prop::collection::btree_set(0..64 * WORDS, 0..64)),
            puts in prop::collection::vec((0..64 * WORDS, any::<bool>()), 0..16),
        ) {
            let set = |rows: &BTreeSet<usize>| {
                let mut set = Rows::default();
                rows.iter().for_each(|row| set.add(*row, 1));
                set
            };
            let (mut model, [mut a, b]) = (one.clone(), [&one, &other].map(set));
            for (row, put) in puts {
                if put { model.insert(row) } else { model.remove(&row) };
                a.set(row, put);
            }
            prop_assert!(a.all().eq(model.iter().copied()));
            prop_assert!(a.within(&b).all().eq(model.intersection(&other).copied()));
            prop_assert!(a.with(&b).all().eq(model.union(&other).copied()));
            prop_assert!(a.without(&b).all().eq(model.difference(&other).copied()));
            prop_assert_eq!(a.meets(&b), !model.is_disjoint(&other));
        }
    }

    const EXIT: Word = Word::new(0x794d, 0x000f_ea00_0380_0000);
    /// MOV R7, 0xffffffff, and the same with the guard @P0.
    const MOVE: Word = Word::new(0xffff_ffff_0007_7802, 0x000f_e400_0000_0f00);
    const GUARDED: Word = Word::new(0xffff_ffff_0007_0802, 0x000f_e400_0000_0f00);
    /// FADD R9, R7, R7, and FADD R7, R0, R0.
    const ADD: Word = Word::new(0x0000_0007_0709_7221, 0x004f_ca00_0000_0000);
    const ADD_ZEROTH: Word = Word::new(0x0000_0000_0007_7221, 0x004f_ca00_0000_0000);
    /// ISETP.GT.U32.AND P0, PT, R4, 0x6, PT.
    const COMPARE: Word = Word::new(0x0000_0006_0400_780c, 0x000f_e200_03f0_4070);
    /// @P0 BRA, to the instruction after the next one.
    const BRANCH: Word = Word::new(0x0000_0010_0000_0947, 0x000f_ea00_0380_0000);
    /// CALL.REL.NOINC, to the next instruction.
    const CALL: Word = Word::new(0x0000_0000_0000_7944, 0x000f_ea00_03c0_0000);
    /// The same to the third instruction behind it, and RET.ABS.NODEC R20.
    const CALL_THIRD: Word = Word::new(0x0000_0020_0000_7944, 0x000f_ea00_03c0_0000);
    const RETURN: Word = Word::new(0x1400_7950, 0x000f_ea00_03e0_0000);
    /// SHFL.DOWN PT, R9, R7, 0x9, 0x1f.
    const SHUFFLE: Word = Word::new(0x0920_1f00_0709_7f89, 0x000f_6200_000e_0000);
    /// S2R R7, SR_TID.X.
    const THREAD: Word = Word::new(0x0000_0000_0007_7919, 0x000e_2400_0000_2100);

    fn image(words: &[Word]) -> Image {
        Image::build(0, vec![0], &mut |n| usize::try_from(n).ok().and_then(|n| words.get(n).copied()))
    }

    /// The numbers of the registers that are cleared.
    fn cleared(words: &[Word]) -> Vec<u16> {
        let image = image(words);
        image.cleared.iter().cloned().flatten().filter_map(|row| row.checked_sub(REGISTER as u16)).collect()
    }

    #[test]
    fn registers_are_cleared_that_a_path_reads_before_it_writes_them() {
        for (words, want) in [
            (&[MOVE, ADD, EXIT][..], &[][..]),
            (&[ADD, MOVE, EXIT], &[7]),
            (&[GUARDED, ADD, EXIT], &[7]),
            (&[MOVE, GUARDED, ADD, EXIT], &[]),
            (&[COMPARE, BRANCH, MOVE, ADD, EXIT], &[4, 7]),
            (&[COMPARE, BRANCH, MOVE, EXIT], &[4]),
        ] {
            assert_eq!(cleared(words), want, "{words:?}");
        }
    }

    /// The bits in which other instructions have their destination are zero here, which is R0.
    #[test]
    fn a_comparison_overwrites_no_register() {
        assert_eq!(isa::lookup(COMPARE).map(|row| row.has_destination), Some(false));
        assert_eq!(cleared(&[COMPARE, ADD_ZEROTH, EXIT]), [0, 4]);
    }

    #[test]
    fn what_other_lanes_read_is_always_cleared() {
        assert_eq!(isa::lookup(SHUFFLE).map(|row| row.name), Some("SHFL"));
        assert_eq!(cleared(&[MOVE, SHUFFLE, EXIT]), [7]);
    }

    #[test]
    fn functions_return_behind_calls() {
        for (words, want) in [
            (&[MOVE, CALL_THIRD, ADD, EXIT, RETURN][..], &[20, 21][..]),
            (&[EXIT, CALL_THIRD, ADD, EXIT, RETURN], &[]),
            (&[COMPARE, CALL_THIRD, ADD, EXIT, RETURN], &[4, 7, 20, 21]),
            (&[COMPARE, CALL_THIRD, ADD, EXIT, MOVE, RETURN], &[4, 7, 20, 21]),
            (&[MOVE, CALL_THIRD, ADD, EXIT, ADD_ZEROTH, RETURN], &[0, 20, 21]),
        ] {
            assert_eq!(cleared(words), want, "{words:?}");
            let kept = image(words).read_from(1);
            let all = |registers: std::ops::Range<usize>| registers.clone().all(|n| kept.has(REGISTER as usize + n));
            assert!(words[0] == EXIT || all(0..22), "but a function may return elsewhere");
        }
    }

    #[test]
    fn unknown_code_may_read_everything() {
        assert_eq!(cleared(&[MOVE, CALL, ADD, EXIT]), [0, 1, 2, 3, 4, 5, 6, 8, 9]);
        assert_eq!(cleared(&[MOVE, ADD]), [0, 1, 2, 3, 4, 5, 6, 8], "nothing is known behind the end");
    }

    #[test]
    fn observed_programs_and_those_with_few_registers_clear_what_is_there() {
        let image = image(&[ADD, EXIT]);
        let few = image.limited(8, super::super::uop::Handlers::all(|_, _, _, _| super::super::uop::Flow::Next));
        assert_eq!(few.cleared, std::slice::from_ref(&(REGISTER as u16 + 7..REGISTER as u16 + 8)));
        let few = image.limited(4, super::super::uop::Handlers::all(|_, _, _, _| super::super::uop::Flow::Next));
        assert!(few.cleared.is_empty());
        let all: Vec<usize> =
            super::super::live::all(image.uniform, image.registers).into_iter().flatten().map(usize::from).collect();
        assert!(all.into_iter().eq(used(image.uniform, image.registers)));
    }

    #[test]
    fn warps_begin_alike_until_they_ask_who_they_are() {
        let image = image(&[MOVE, COMPARE, BRANCH, ADD, THREAD, SHUFFLE, EXIT]);
        let alike: Vec<bool> = (0..image.len()).map(|at| image.is_alike(at)).collect();
        assert_eq!(alike, [true, true, true, true, false, false, false, false], "the last one is the program's end");
    }
}
