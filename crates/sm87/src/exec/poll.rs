//! Polling: lanes read memory again and again until somebody else has changed it.
//!
//! The engine watches atomics, and loads whose result other threads may change. A watched instruction that finds the
//! same values as the last time may be part of a loop that waits. After several such results in a row the warp lets
//! other warps run. A CTA in which all warps do nothing else lets another CTA run.
#![allow(unsafe_code)]

use super::env::Env;
use super::uop::{Flow, Uop};
use super::warp::{Warp, lanes};
use crate::isa::Op;
use crate::word::Word;

/// What an instruction found the last time: its index, the lanes, and a number made of the values.
pub(crate) type Found = (u32, u32, u64);

/// Whether programs may wait with this instruction. Among loads, those do that are ordered with other threads.
pub(super) fn may_poll(op: Op, word: Word) -> bool {
    let kept = word.bits(16, 8) != 255;
    match op {
        // The orders are STRONG.SM, STRONG.GPU(.PRIVATE), MMIO.GPU, STRONG.SYS and MMIO.SYS.
        Op::Ld | Op::Ldg => kept && matches!(word.bits(77, 4), 5..=8 | 10 | 12),
        Op::Atom | Op::AtomCas | Op::Atoms | Op::AtomsCas | Op::Atomg | Op::AtomgCas => kept,
        _ => false,
    }
}

/// Executes a watched instruction.
pub(super) fn watched(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let Some(run) = env.image.watched(u.at) else { return Flow::Next };
    let h = match exec.count_ones() {
        32 => run.full,
        1 => run.one,
        _ => run.part,
    };
    // SAFETY: these are the handlers that the micro-op was lowered with, and they are chosen as the interpreter chooses
    // them.
    let flow = unsafe { h(w, env, u, exec) };
    if flow != Flow::Next {
        return flow;
    }
    let now = (u.at, exec, sum(w, u, exec));
    let slot = (u.at ^ exec.trailing_zeros()) as usize % w.found.len();
    if std::mem::replace(&mut w.found[slot], now) != now {
        w.polls = 0;
        return flow;
    }
    w.yielded |= exec;
    w.poll()
}

/// A number made of the destination's lanes.
fn sum(w: &Warp, u: &Uop, exec: u32) -> u64 {
    let d = u.d.as_src();
    lanes(exec).fold(0, |sum: u64, lane| sum.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(w.get(d, lane).into()))
}
