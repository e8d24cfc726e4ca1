//! Runs of instructions that continue with the next instruction, unless they fail or wait. [`super::straight`] finds and executes them.

use super::rows::{self, Src};

/// How many of the instructions from a given one on form a run. 0 means that the instruction itself is not in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(16))]
pub(crate) struct Run {
    /// The number of instructions that continue with the next one.
    pub straight: u8,
    /// The number of FFMA without modifiers at the beginning of these.
    pub multiplying: u8,
    /// The number of FADD without modifiers at the beginning of these.
    pub adding: u8,
    /// The number of loads of one chain at the beginning of these. Each loads the word that follows the word of the load before.
    pub loading: u8,
    /// What the interpreter does there.
    pub step: Step,
    /// Whether this and the next instruction are such FFMA, have the same first factor, and this one does not write it.
    pub shares: bool,
    /// If this and the next instruction are such FADD: [`FIRST`] if the first source of the next one is the result of this one, and
    /// [`SECOND`] if the second is.
    pub passes: u8,
    /// The operands of an FFMA or FADD without modifiers, or the number of a piece.
    pub offsets: Offsets,
}

/// What the interpreter does at an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Step {
    /// It looks at the guard, and whether several instructions are executed in one loop. Without a run it does whatever the handler says.
    #[default]
    Usual,
    /// It executes the handler, because there is neither a guard nor such a loop.
    Simple,
    /// It executes a piece of machine code that begins here (`super::translate`).
    Piece,
    /// It lets the warp wait: a BAR.SYNC of all threads, without a guard, which ends a run ([`super::rounds`]).
    Barrier,
    /// It lets lanes go to the place that `imm` says: a BRA, which ends a run, too.
    Branch,
}

/// The bits of [`Run::passes`].
pub(crate) const FIRST: u8 = 1;
pub(crate) const SECOND: u8 = 2;

/// The places of registers in the file of a warp, as offsets in words. The micro-op has them too, but a loop over many instructions
/// reads a quarter of the memory here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(8))]
pub(crate) struct Offsets {
    pub a: u16,
    pub b: u16,
    pub c: u16,
    pub d: u16,
}

const _: () = assert!(size_of::<Run>() == 16 && rows::rows_per_warp(255) * 32 <= u16::MAX as usize);

/// The same runs, in which the instructions for which `apart` is true are executed one by one, because they have other handlers.
pub(crate) fn parted(runs: &[Run], apart: impl Fn(usize) -> bool) -> Vec<Run> {
    let mut out = runs.to_vec();
    let mut next = Run::default();
    for (at, run) in out.iter_mut().enumerate().rev() {
        let (alone, plain) = (apart(at), run.multiplying | run.adding > 0);
        let longer = |old: u8, next: u8| if old > 0 && !alone { next.saturating_add(1) } else { 0 };
        run.multiplying = longer(run.multiplying, next.multiplying);
        run.adding = longer(run.adding, next.adding);
        run.step = match run.step {
            // Those that could be executed in one loop have no guard.
            Step::Usual if plain && run.multiplying | run.adding <= 1 => Step::Simple,
            Step::Barrier | Step::Branch if alone => Step::Usual,
            step => step,
        };
        next = *run;
    }
    out
}

/// A piece: its code, its first instruction, and the number of its instructions.
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    pub code: sm87_native::Piece,
    pub at: u32,
    pub length: u32,
}

/// Where the addresses of some loads are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// Global memory, with 64 bits of each lane's own.
    Pairs,
    /// Global memory, with 32 bits of each lane's own.
    Words,
    /// Shared memory, with registers that are shifted to the left by so many bits.
    Shared(u8),
    /// A constant bank.
    Bank(u8),
}

/// Loads of words of one [chain](super::chains), with their address registers: that of the lanes (`a`) and a uniform one (`c`). The offset is that of
/// the first load, and those of the others are between `lowest` and `highest` bytes more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// Groups have numbers in the order in which the program has them.
    pub number: u32,
    /// The first load of the chain.
    pub chain: u32,
    pub a: Src,
    pub c: Src,
    pub space: Space,
    pub offset: u32,
    pub lowest: i32,
    pub highest: i32,
}

impl Group {
    /// The number of their window. Windows are used in turns.
    #[inline(always)]
    pub(crate) fn window(&self) -> usize {
        self.number as usize % WINDOWS
    }

    #[inline(always)]
    pub(crate) fn is_global(&self) -> bool {
        matches!(self.space, Space::Pairs | Space::Words)
    }

    /// By how many bits the registers of the lanes are shifted.
    #[inline(always)]
    pub(crate) fn scale(&self) -> u32 {
        if let Space::Shared(scale) = self.space { scale.into() } else { 0 }
    }
}

/// The number of windows that a worker has. Groups of different stretches may have the same one.
pub(crate) const WINDOWS: usize = 16;

/// Pieces and loads of words between them, as one piece, which all lanes of a warp execute.
pub(crate) struct Stretch {
    pub code: sm87_native::Piece,
    pub host: sm87_native::Host,
    pub length: u32,
    /// The piece with which it begins, if it does: its number.
    pub piece: Option<usize>,
    pub groups: Box<[Group]>,
}

impl Offsets {
    /// The number of a piece, in the place of operands.
    pub(super) fn of_piece(n: usize) -> Offsets {
        Offsets { a: n as u16, b: (n >> 16) as u16, ..Offsets::default() }
    }

    /// The number of the piece.
    #[inline(always)]
    pub(crate) fn piece(self) -> usize {
        usize::from(self.a) | usize::from(self.b) << 16
    }
}
