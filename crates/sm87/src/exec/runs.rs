//! Runs of instructions that only compute: they change registers and predicates, continue with the next instruction, and
//! cannot fail. A group of lanes executes a run without checking, after each instruction, which lanes continue where.
#![allow(unsafe_code)]

use super::alu;
use super::env::Env;
use super::ops::fp32;
use super::rows::pred;
use super::uop::{Pred, Uop};
use super::warp::Warp;
use crate::isa::Op;

/// How many of the instructions from a given one on form a run. 0 means that the instruction itself is not in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Run {
    /// The number of instructions that only compute.
    pub computing: u8,
    /// The number of FFMA without modifiers at the beginning of these.
    pub multiplying: u8,
}

/// Whether the operation only computes. An operation that reads a clock does more than that.
fn computes(op: Op) -> bool {
    use Op::*;
    matches!(
        op,
        Pmtrig
            | Mov
            | P2r
            | R2p
            | Vote
            | Sel
            | Fsel
            | Fmnmx
            | Fset
            | Fsetp
            | Isetp
            | Iadd3
            | Lea
            | Lop3
            | Iabs
            | Vabsdiff
            | Vabsdiff4
            | Prmt
            | Imnmx
            | Shf
            | Sgxt
            | Bmsk
            | Plop3
            | Plop3Sign
            | Fmul
            | Fadd
            | Ffma
            | Imad
            | ImadWide
            | Idp
            | ImadHi
            | Dmul
            | Dadd
            | Dsetp
            | Dfma
            | Hadd2
            | Hfma2
            | Hmul2
            | Hset2
            | Hsetp2
            | Hfma2Mma
            | I2i
            | I2ip
            | Hmnmx2
            | F2fp
            | F2ip
            | I2fp
            | Uldc
            | Flo
            | Brev
            | Popc
            | Fchk
            | F2f
            | F2i
            | I2f
            | Frnd
            | Mufu
            | Nop
            | Depbar
            | Shfl
            | Cctl
            | Membar
            | Match
            | Errbar
            | Ldgdepbar
            | R2ur
            | Redux
    )
}

/// Whether a guard is always true, as PT and UPT are.
fn always(guard: Pred) -> bool {
    matches!(guard.index, pred::PT | pred::UPT) && guard.invert == 0
}

/// The run that begins at an instruction, if the run of the next instruction is `next`.
fn before(u: &Uop, op: Op, next: Run) -> Run {
    if !always(u.guard) || !computes(op) {
        return Run::default();
    }
    let multiplying = if op == Op::Ffma && fp32::is_plain(u) { next.multiplying.saturating_add(1) } else { 0 };
    Run { computing: next.computing.saturating_add(1), multiplying }
}

/// The runs of a program. `ops` has the operation of each micro-op, or `None` for a word that cannot be executed.
pub(crate) fn find(uops: &[Uop], ops: &[Option<Op>]) -> Vec<Run> {
    let mut runs = vec![Run::default(); uops.len()];
    let mut next = Run::default();
    for ((run, u), op) in runs.iter_mut().zip(uops).zip(ops).rev() {
        next = op.map_or(Run::default(), |op| before(u, op, next));
        *run = next;
    }
    runs
}

/// The same runs, interrupted at the instructions for which `never` is true.
pub(crate) fn interrupted(runs: &[Run], never: impl Fn(usize) -> bool) -> Vec<Run> {
    let mut out = runs.to_vec();
    let mut next = Run::default();
    for (at, run) in out.iter_mut().enumerate().rev() {
        next = match run {
            Run { computing: 0, .. } => Run::default(),
            _ if never(at) => Run::default(),
            Run { multiplying, .. } => Run {
                computing: next.computing.saturating_add(1),
                multiplying: if *multiplying > 0 { next.multiplying.saturating_add(1) } else { 0 },
            },
        };
        *run = next;
    }
    out
}

/// Executes `n` instructions of a run for the lanes in `exec`.
///
/// # Safety
/// The instructions are those at `code`, and the first one begins a run of at least `n`. The warp's arrays are those of the
/// program, and the host has the instruction set of [`super::isa`].
#[inline(always)]
pub(crate) unsafe fn execute(w: &mut Warp, env: &mut Env<'_>, code: *const Uop, runs: *const Run, n: u32, exec: u32) {
    let (mut i, n) = (0, n as usize);
    while i < n {
        // SAFETY: there are `n` micro-ops and runs; the warp's arrays are those of the micro-ops.
        unsafe {
            let u = &*code.add(i);
            if exec != u32::MAX {
                let run = if exec.is_power_of_two() { u.run.one } else { u.run.part };
                run(w, env, u, exec);
                i += 1;
                continue;
            }
            let same = usize::from((*runs.add(i)).multiplying).min(n - i);
            if same > 1 {
                alu::multiply_add(w, code.add(i), same);
                i += same;
            } else {
                (u.run.full)(w, env, u, exec);
                i += 1;
            }
        }
    }
}
