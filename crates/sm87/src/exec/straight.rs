//! Finds the [runs](super::runs) of a program, and executes them. A group of lanes executes a run without checking, after each
//! instruction, which lanes continue where.
#![allow(unsafe_code)]

use super::env::Env;
use super::floats;
use super::image::Image;
use super::ops::{barrier, fp32, memory};
use super::places::NOWHERE;
use super::rows::{Pred, Src};
use super::runs::{FIRST, Offsets, Piece, Run, SECOND, Step};
use super::uop::{Flow, Uop};
use super::warp::Warp;
use crate::isa::{self, Op, Row};

/// The places of the operands of an instruction whose operands are registers.
fn offsets(u: &Uop) -> Offsets {
    let [a, b, c] = [u.a, u.b, u.c].map(|s| s.own() as u16);
    Offsets { a, b, c, d: u.d.offset() as u16 }
}

/// Whether a BRA depends on its predicates alone, and `imm` is the place to which it sends lanes. BRA.DIV and BRA.CONV have a source.
fn is_branch(u: &Uop) -> bool {
    u.a == Src::reg(255) && u.imm != NOWHERE
}

/// The run that begins at an instruction, if the run of the next instruction is `next`.
fn before(u: &Uop, row: &Row, next: Run) -> Run {
    if !row.effects.straight {
        let step = match row.flow {
            isa::Flow::Jump(_) | isa::Flow::Conditional(_) if is_branch(u) => Step::Branch,
            isa::Flow::Next if row.op == Op::Bar && barrier::is_of_all(u) => Step::Barrier,
            _ => Step::Usual,
        };
        return Run { step, ..Run::default() };
    }
    let is_plain = u.guard.is_always_true() && fp32::is_plain(u);
    let plain = |wanted: Op, next: u8| if row.op == wanted && is_plain { next.saturating_add(1) } else { 0 };
    let (multiplying, adding) = (plain(Op::Ffma, next.multiplying), plain(Op::Fadd, next.adding));
    let step = if u.guard.is_always_true() && multiplying | adding <= 1 { Step::Simple } else { Step::Usual };
    let offsets = if multiplying | adding > 0 { offsets(u) } else { Offsets::default() };
    let shares = multiplying > 1 && offsets.a == next.offsets.a && offsets.a != offsets.d;
    let passed = |source: u16, bit: u8| if adding > 1 && source == offsets.d { bit } else { 0 };
    let passes = passed(next.offsets.a, FIRST) | passed(next.offsets.b, SECOND);
    Run { straight: next.straight.saturating_add(1), multiplying, adding, loading: 0, step, shares, passes, offsets }
}

/// The number of loads from `u` on whose words follow each other in memory. `after` is the next instruction, and `next` is this
/// number for it. It is 0 if `u` does not load a word, or not for all lanes.
fn loading(u: &Uop, row: &Row, after: &Uop, next: u8) -> u8 {
    if !row.effects.loads_global() || !memory::is_word(u) || !u.guard.is_always_true() {
        return 0;
    }
    // Only loads have such links; `aux` is something else in other micro-ops.
    let linked = next > 0 && after.aux != 0 && after.at - u32::from(after.aux) == u.at - u32::from(u.aux);
    if linked && after.imm == u.imm.wrapping_add(4) { next.saturating_add(1) } else { 1 }
}

/// The runs of a program. `rows` has the row of each micro-op, or `None` for a word that cannot be executed.
pub(crate) fn find(uops: &[Uop], rows: &[Option<&Row>]) -> Vec<Run> {
    let mut runs = vec![Run::default(); uops.len()];
    let (mut next, mut after) = (Run::default(), None);
    for ((run, u), row) in runs.iter_mut().zip(uops).zip(rows).rev() {
        next = match *row {
            Some(row) => {
                Run { loading: after.map_or(0, |after| loading(u, row, after, next.loading)), ..before(u, row, next) }
            }
            None => Run::default(),
        };
        (*run, after) = (next, Some(u));
    }
    runs
}

/// The runs of a program from an instruction on, and all its pieces.
#[derive(Clone, Copy)]
pub(crate) struct Runs {
    pub first: *const Run,
    pieces: *const Piece,
}

impl Runs {
    /// Those of a program without a translation.
    pub(crate) fn of(runs: &[Run]) -> Runs {
        Runs { first: runs.as_ptr(), pieces: std::ptr::null() }
    }

    /// Those of a program, with its micro-ops: the translated ones, if it was translated.
    #[inline(always)]
    pub(crate) fn of_image(image: &Image) -> (*const Uop, Runs) {
        match image.translated() {
            Some(by) => (by.uops.as_ptr(), Runs { first: by.runs.as_ptr(), pieces: by.pieces.as_ptr() }),
            None => (image.uops.as_ptr(), Runs::of(&image.runs)),
        }
    }

    /// Those from the instruction `n` further on.
    ///
    /// # Safety
    /// The program has it.
    #[inline(always)]
    pub(crate) unsafe fn from(self, n: usize) -> Runs {
        // SAFETY: a program has as many runs as instructions.
        Runs { first: unsafe { self.first.add(n) }, ..self }
    }
}

/// How a run ended.
pub(crate) struct Ended {
    /// The instructions that were executed.
    pub done: u32,
    /// The lanes that executed the last of them, and what it returned.
    pub exec: u32,
    pub flow: Flow,
}

/// Executes `n` instructions of a run for the lanes in `active`. It stops earlier at an instruction that fails or waits. The
/// caller counts every instruction for all lanes, so this function subtracts the lanes for which a guard is false.
///
/// # Safety
/// The instructions are those at `code`, and the first one begins a run of at least `n`. The warp's arrays are those of the
/// program, and as many runs are at `runs`, with the program's pieces. If `WIDE`, the host has the instruction set of [`super::host`].
#[inline(always)]
pub(crate) unsafe fn execute<const WIDE: bool>(
    w: &mut Warp,
    env: &mut Env<'_>,
    code: *const Uop,
    runs: Runs,
    n: u32,
    active: u32,
) -> Ended {
    // SAFETY: the conditions are those of this function.
    unsafe {
        if active == u32::MAX {
            steps::<WIDE, true>(w, env, code, runs, n, u32::MAX)
        } else {
            steps::<WIDE, false>(w, env, code, runs, n, active)
        }
    }
}

/// Does what [`execute`] does. `ALL` says that all lanes are active.
#[inline(always)]
unsafe fn steps<const WIDE: bool, const ALL: bool>(
    w: &mut Warp,
    env: &mut Env<'_>,
    code: *const Uop,
    Runs { first: runs, pieces }: Runs,
    n: u32,
    active: u32,
) -> Ended {
    let ended = |done: usize, exec, flow| Ended { done: done as u32, exec, flow };
    let (mut i, n) = (0, n as usize);
    while i < n {
        // SAFETY: there are `n` micro-ops, and as many runs from the first one's on; the warp's arrays are those of the
        // micro-ops.
        unsafe {
            let u = &*code.add(i);
            let run = &*runs.add(i);
            if run.step == Step::Piece {
                let piece = &*pieces.add(run.offsets.piece());
                let length = piece.length as usize;
                if length <= n - i {
                    let idle = piece.code.execute(w.own(), w.constants(), w.preds.as_mut_ptr(), active);
                    let executed = &mut env.counts.stats.thread_instructions;
                    *executed = executed.wrapping_sub(idle.into());
                    i += length;
                    continue;
                }
            }
            if run.step == Step::Simple {
                i += 1;
                let run = if ALL { u.run.full } else { u.run.of(active) };
                let flow = run(w, env, u, active);
                if flow != Flow::Next {
                    return ended(i, active, flow);
                }
                continue;
            }
            if run.multiplying | run.adding > 1 {
                let many = alike::<WIDE>(w, runs.add(i), n - i, active);
                if many > 0 {
                    i += many;
                    continue;
                }
            }
            i += 1;
            let mut exec = active;
            if u.guard != Pred::TRUE {
                exec = active & w.pred(u.guard);
                let idle = u64::from((active ^ exec).count_ones());
                env.counts.stats.thread_instructions = env.counts.stats.thread_instructions.wrapping_sub(idle);
                if exec == 0 {
                    continue;
                }
            }
            let flow = u.run.of(exec)(w, env, u, exec);
            if flow != Flow::Next {
                return ended(i, exec, flow);
            }
        }
    }
    ended(n, active, Flow::Next)
}

/// Executes the FFMA or FADD at the beginning of a run in one loop, at most `n` of them. Returns their number. It is 0 if the
/// loop cannot serve the lanes in `active`.
///
/// # Safety
/// As for [`execute`]; `first` is the run of the first micro-op, which those of the next ones follow.
#[inline(always)]
unsafe fn alike<const WIDE: bool>(w: &mut Warp, first: *const Run, n: usize, active: u32) -> usize {
    // SAFETY: as many micro-ops follow each other in the program; the other conditions are those of this function.
    unsafe {
        let (multiplying, adding) = (usize::from((*first).multiplying).min(n), usize::from((*first).adding).min(n));
        if multiplying > 1 && active == u32::MAX {
            #[cfg(target_arch = "x86_64")]
            if WIDE {
                floats::multiply_add_wide(w, first, multiplying, active);
                return multiplying;
            }
            floats::multiply_add(w, first, multiplying, active);
            return multiplying;
        }
        if adding > 1 && floats::are_pairs(active) {
            #[cfg(target_arch = "x86_64")]
            if WIDE {
                floats::add_wide(w, first, adding, active);
                return adding;
            }
            floats::add(w, first, adding, active);
            return adding;
        }
    }
    0
}
