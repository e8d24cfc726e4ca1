//! The loop that executes a warp.
#![allow(unsafe_code)]

use super::env::{Counts, Env};
use super::host::wide;
use super::image::Image;
use super::runs::Run;
use super::straight::{self, Ended, Runs};
use super::uop::{Flow, Uop};
use super::warp::Warp;

/// Why a slice ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The instructions of the slice are used up.
    Slice,
    /// The running lanes wait for something that other warps do, or they sleep.
    Pause,
    /// No group of the warp can run.
    Blocked,
    /// The code at `Outcome::extend` must be decoded first.
    Extend,
    /// There was a fault, which is in `Outcome::fault`.
    Fault,
}

/// Runs one warp for at most `slice` instructions.
///
/// # Safety
/// `code` is the image that the warp's arrays belong to. The warp has a running group. The host has the instruction set
/// of [`super::host`].
#[inline(always)]
pub(crate) unsafe fn run(w: &mut Warp, env: &mut Env<'_>, code: &Image, slice: u32) -> Stop {
    #[cfg(target_arch = "x86_64")]
    if super::host::avx2() {
        // SAFETY: the line above has found that the host has AVX2 and its companions. The other conditions are those of
        // `run`.
        return unsafe { run_avx2(w, env, code, slice) };
    }
    // SAFETY: the caller of `run` gives the code that the warp's arrays were made for, and a warp that can run.
    // Micro-ops without AVX2 need no instruction set.
    unsafe { body(w, env, code, slice, straight) }
}

wide! {
    unsafe fn run_avx2(w: &mut Warp, env: &mut Env<'_>, code: &Image, slice: u32) -> Stop {
        // SAFETY: `run` passes on its own arguments, after it has found the instruction set that this function is compiled
        // for.
        unsafe { body(w, env, code, slice, straight_avx2) }
    }
}

/// Executes a run: a function of its own, because what the loop of [`body`] keeps in registers is not needed here.
type Straight = unsafe fn(&mut Warp, &mut Env<'_>, *const Uop, Runs, u32, u32) -> Ended;

#[inline(never)]
unsafe fn straight(w: &mut Warp, env: &mut Env<'_>, code: *const Uop, runs: Runs, n: u32, active: u32) -> Ended {
    // SAFETY: the conditions are those of `execute`.
    unsafe { straight::execute::<false>(w, env, code, runs, n, active) }
}

wide! {
    #[inline(never)]
    unsafe fn straight_avx2(
        w: &mut Warp,
        env: &mut Env<'_>,
        code: *const Uop,
        runs: Runs,
        n: u32,
        active: u32,
    ) -> Ended {
        // SAFETY: the conditions are those of `execute`.
        unsafe { straight::execute::<true>(w, env, code, runs, n, active) }
    }
}

#[inline(always)]
unsafe fn body(w: &mut Warp, env: &mut Env<'_>, code: &Image, slice: u32, execute: Straight) -> Stop {
    let mut left = slice;
    // The value of `left` when instructions were last counted.
    let mut counted = slice;
    let mut threads = 0u64;
    let mut pc = w.pc;
    debug_assert!(w.active != 0);
    let (uops, runs) = Runs::of_image(code);
    let stop = 'run: loop {
        // SAFETY: an image has as many runs as micro-ops, and pcs stay inside of it, as the next comment says.
        let straight = u32::from(unsafe { (*runs.first.add(pc as usize)).straight });
        let straight = straight.min(left).min(w.switch_at.saturating_sub(pc));
        let (mut flow, exec);
        if straight > 1 {
            // SAFETY: the run is inside the image, to which the warp's arrays belong.
            let ended = unsafe { execute(w, env, uops.add(pc as usize), runs.from(pc as usize), straight, w.active) };
            left -= ended.done;
            threads += u64::from(ended.done) * u64::from(w.active.count_ones());
            pc += ended.done;
            (flow, exec) = (ended.flow, ended.exec);
        } else {
            // SAFETY: pcs stay inside the image: targets are checked when they are lowered or computed, and control never
            // passes the last micro-op.
            let u = unsafe { &*uops.add(pc as usize) };
            exec = w.active & w.pred(u.guard);
            left -= 1;
            threads += u64::from(exec.count_ones());
            pc += 1;
            // SAFETY: the warp's arrays are those of `code`, as the caller of `run` promises.
            flow = if exec == 0 { Flow::Next } else { unsafe { u.run.of(exec)(w, env, u, exec) } };
        }
        while flow != Flow::Next {
            // SAFETY: this is the micro-op that was executed last.
            let u = unsafe { &*uops.add(pc as usize - 1) };
            match flow {
                Flow::Next => {}
                Flow::Together => {
                    let more = std::mem::take(&mut env.outcome.together);
                    pc += more;
                    counted += more;
                    threads += u64::from(more) * u64::from(exec.count_ones());
                    break;
                }
                Flow::Jump => {
                    env.memory.known.forget();
                    pc = w.pc;
                    break;
                }
                Flow::Count => {
                    count(w, &mut env.counts, u64::from(counted - left));
                    counted = left;
                    env.counts.with_current = true;
                    // SAFETY: the same holds as for the first call of the handler.
                    flow = unsafe { u.run.of(exec)(w, env, u, exec) };
                    env.counts.with_current = false;
                }
                Flow::Wait => {
                    env.memory.known.forget();
                    break 'run Stop::Blocked;
                }
                Flow::Pause => {
                    w.pc = pc;
                    if pc >= w.switch_at {
                        w.elect();
                    }
                    break 'run Stop::Pause;
                }
                Flow::Extend | Flow::Fault => {
                    w.pc = u.at;
                    break 'run if flow == Flow::Extend { Stop::Extend } else { Stop::Fault };
                }
            }
        }
        if pc >= w.switch_at || w.active == 0 {
            w.pc = pc;
            w.elect();
            pc = w.pc;
            if w.active == 0 {
                break Stop::Blocked;
            }
        }
        if left == 0 {
            w.pc = pc;
            break Stop::Slice;
        }
    };
    count(w, &mut env.counts, u64::from(counted - left));
    env.counts.stats.thread_instructions = env.counts.stats.thread_instructions.wrapping_add(threads);
    stop
}

/// Executes micro-ops that continue with the next one, and neither fail nor wait, for all active lanes.
///
/// # Safety
/// The micro-ops belong to the image that the warp's arrays belong to, and the runs to the micro-ops.
#[inline]
pub(crate) unsafe fn run_straight(w: &mut Warp, env: &mut Env<'_>, uops: &[Uop], runs: &[Run]) {
    if uops.is_empty() {
        return;
    }
    #[cfg(target_arch = "x86_64")]
    let execute: Straight = if super::host::avx2() { straight_avx2 } else { straight };
    #[cfg(not(target_arch = "x86_64"))]
    let execute: Straight = straight;
    // SAFETY: the conditions are those of this function.
    let ended = unsafe { execute(w, env, uops.as_ptr(), Runs::of(runs), uops.len() as u32, w.active) };
    debug_assert!(ended.flow == Flow::Next && ended.done == uops.len() as u32);
}

/// Counts the instructions that a template stands for. They are executed by all lanes of the warp.
#[inline]
pub(crate) fn count_ahead(w: &mut Warp, env: &mut Env<'_>) -> u32 {
    let (issued, executed) = std::mem::take(&mut w.ahead);
    if issued > 0 {
        count(w, &mut env.counts, issued.into());
        let threads = u64::from(executed) * u64::from(w.active.count_ones());
        env.counts.stats.thread_instructions = env.counts.stats.thread_instructions.wrapping_add(threads);
    }
    issued
}

/// Adds issued instructions to the counts.
#[inline]
pub(super) fn count(w: &mut Warp, counts: &mut Counts, issued: u64) {
    w.issued += issued;
    counts.stats.warp_instructions += issued;
}
