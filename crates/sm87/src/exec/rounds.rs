//! Rounds: all warps of a CTA go from one barrier to the next.
//!
//! Kernels that share memory have loops in which a warp executes a few instructions between two barriers. To give each warp a slice, to let
//! it wait and to complete the barrier then takes longer than the instructions. In a round, that is done once for all warps. Each of them does what it
//! does in a slice, in the same order, and counts the same. A warp that does anything else than to come to a barrier of all threads with all
//! of its lanes ends the round, and is given a slice at the instruction at which it is.
#![allow(unsafe_code)]

use super::barriers::Barriers;
use super::env::Env;
use super::host::wide;
use super::image::Image;
use super::interp;
use super::runs::Step;
use super::straight::{self, Runs};
use super::uop::{Flow, Uop};
use super::warp::Warp;

/// The most instructions that a warp executes in a round, apart from its last run. With more, it is worth a slice.
const MOST: u32 = 512;

/// Whether warps of this program may have rounds. Whoever observes them sees slices, and so does a program that waits in loops or asks for the
/// time.
pub(super) fn fit(env: &Env<'_>, image: &Image) -> bool {
    env.observers.is_empty() && !image.keeps_time() && !image.polls()
}

/// Lets all warps go to the next barrier. They have just continued behind one at which all of their lanes waited. Returns whether they
/// have come to another one, and stand behind it.
///
/// # Safety
/// `image` is the image to which the warps' arrays belong.
pub(super) unsafe fn run(env: &mut Env<'_>, warps: &mut [Warp], image: &Image) -> bool {
    #[cfg(target_arch = "x86_64")]
    if super::host::avx2() {
        // SAFETY: the host has the instruction set, and the other condition is that of this function.
        return unsafe { run_avx2(env, warps, image) };
    }
    // SAFETY: the condition is that of this function.
    unsafe { body::<false>(env, warps, image) }
}

wide! {
    unsafe fn run_avx2(env: &mut Env<'_>, warps: &mut [Warp], image: &Image) -> bool {
        // SAFETY: `run` has found the instruction set, and passes on its arguments.
        unsafe { body::<true>(env, warps, image) }
    }
}

#[inline(always)]
unsafe fn body<const WIDE: bool>(env: &mut Env<'_>, warps: &mut [Warp], image: &Image) -> bool {
    let (uops, runs) = Runs::of_image(image);
    let mut barrier = None;
    for n in 0..warps.len() {
        debug_assert!(warps[n].is_whole());
        // SAFETY: the condition is that of this function.
        let found = unsafe { walk::<WIDE>(env, &mut warps[n], uops, runs, barrier) };
        match found {
            Some(number) => barrier = Some(number),
            None => {
                wait(&mut env.barriers, &mut warps[..n], barrier);
                return false;
            }
        }
    }
    let Some(number) = barrier else { return false };
    // All have come. The chains of loads that were known end here.
    env.memory.known.forget();
    let reduction = env.barriers.end(number);
    for w in warps {
        (w.pc, w.reduction) = (w.pc + 1, reduction);
    }
    true
}

/// Lets warps wait that stand at a barrier. Without a number there are none.
#[cold]
fn wait(barriers: &mut Barriers, warps: &mut [Warp], number: Option<u8>) {
    let Some(number) = number else { return };
    barriers.name(number.into(), 0);
    for w in warps {
        let stops = w.stops_at(number, w.active, w.pc);
        debug_assert!(stops);
    }
}

/// Executes a warp until it is at a barrier of all threads, which is the one that the others have come to (`wanted`), if they have. Returns
/// its number. It is `None` if the warp does anything else at the instruction at which it is then.
///
/// # Safety
/// The warp's arrays are those of an image, and so are the micro-ops and the runs.
#[inline(always)]
unsafe fn walk<const WIDE: bool>(
    env: &mut Env<'_>,
    w: &mut Warp,
    uops: *const Uop,
    runs: Runs,
    wanted: Option<u8>,
) -> Option<u8> {
    let (active, lanes) = (w.active, u64::from(w.active.count_ones()));
    let (mut pc, mut issued, mut threads) = (w.pc, 0, 0);
    let found = loop {
        // SAFETY: an image has as many runs as micro-ops. Pcs stay inside of it: runs end inside, and the places of branches are.
        let (run, u) = unsafe { (&*runs.first.add(pc as usize), &*uops.add(pc as usize)) };
        if run.straight > 0 {
            let n = u32::from(run.straight);
            // SAFETY: the run is inside the image, to which the warp's arrays belong.
            let ended = unsafe { straight::execute::<WIDE>(w, env, u, runs.from(pc as usize), n, active) };
            (pc, issued) = (pc + ended.done, issued + ended.done);
            threads += u64::from(ended.done) * lanes;
            match ended.flow {
                Flow::Next => continue,
                Flow::Together => {
                    let more = std::mem::take(&mut env.outcome.together);
                    (pc, issued) = (pc + more, issued + more);
                    threads += u64::from(more) * u64::from(ended.exec.count_ones());
                    continue;
                }
                _ => {}
            }
            // The instruction fails, or wants to be executed otherwise. It is executed again in a slice, and counted there.
            env.outcome.fault = None;
            (pc, issued) = (pc - 1, issued - 1);
            threads = threads.wrapping_sub(u64::from(ended.exec.count_ones()));
            break None;
        }
        match run.step {
            Step::Barrier if wanted.is_none_or(|n| u32::from(n) == u.imm) => {
                (issued, threads) = (issued + 1, threads + lanes);
                break Some(u.imm as u8);
            }
            Step::Branch if issued < MOST => {
                let exec = active & w.pred(u.guard);
                let taken = exec & w.pred(u.ps);
                if taken != 0 && taken != active {
                    break None;
                }
                (issued, threads) = (issued + 1, threads + u64::from(exec.count_ones()));
                if taken == 0 {
                    pc += 1;
                    continue;
                }
                env.memory.known.forget();
                pc = u.imm;
            }
            _ => break None,
        }
    };
    w.pc = pc;
    interp::count(w, &mut env.counts, issued.into());
    let executed = &mut env.counts.stats.thread_instructions;
    *executed = executed.wrapping_add(threads);
    found
}
