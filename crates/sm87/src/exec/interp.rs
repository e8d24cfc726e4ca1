//! The loop that executes a warp.
#![allow(unsafe_code)]

use super::env::Env;
use super::uop::{Flow, Uop};
use super::warp::Warp;

/// Why a slice ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The slice is used up.
    Slice,
    /// The lanes that run wait for something that others do, or sleep.
    Pause,
    /// No group of the warp can run.
    Blocked,
    /// `Env::extend` must be decoded first.
    Extend,
    /// `Env::fault` is set.
    Fault,
}

/// Runs one warp for at most `slice` instructions.
///
/// # Safety
/// `code` is the image the warp's arrays belong to; the warp has a running group; the host has the instruction
/// set of [`super::isa`].
pub(crate) unsafe fn run(w: &mut Warp, env: &mut Env<'_>, code: &[Uop], slice: u32) -> Stop {
    #[cfg(target_arch = "x86_64")]
    if super::isa::avx2() {
        // SAFETY: AVX2 and its companions were just seen.
        return unsafe { run_avx2(w, env, code, slice) };
    }
    // SAFETY: whoever calls `run` gives the code that the warp's arrays were made for, and a warp that can run;
    // micro-ops without AVX2 need no instruction set.
    unsafe { body(w, env, code, slice) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
unsafe fn run_avx2(w: &mut Warp, env: &mut Env<'_>, code: &[Uop], slice: u32) -> Stop {
    // SAFETY: `run` passes on what it was given, after it has seen the instruction set this is compiled for.
    unsafe { body(w, env, code, slice) }
}

#[inline(always)]
unsafe fn body(w: &mut Warp, env: &mut Env<'_>, code: &[Uop], slice: u32) -> Stop {
    let mut left = slice;
    // What was left when instructions were last counted.
    let mut counted = slice;
    let mut threads = 0u64;
    let mut pc = w.pc;
    debug_assert!(w.active != 0);
    let stop = 'run: loop {
        // SAFETY: pcs stay inside the image: targets are checked when lowered or computed, and the last
        // micro-op never falls through.
        let u = unsafe { code.get_unchecked(pc as usize) };
        let exec = w.active & w.pred(u.guard);
        left -= 1;
        threads += u64::from(exec.count_ones());
        pc += 1;
        if exec != 0 {
            let h = if exec == u32::MAX {
                u.run.full
            } else if exec & (exec - 1) == 0 {
                u.run.one
            } else {
                u.run.part
            };
            // SAFETY: the warp's arrays are those of `code`.
            let mut flow = unsafe { h(w, env, u, exec) };
            loop {
                match flow {
                    Flow::Next => break,
                    Flow::Jump => {
                        pc = w.pc;
                        break;
                    }
                    Flow::Count => {
                        count(w, env, u64::from(counted - left));
                        counted = left;
                        env.counted = true;
                        // SAFETY: as before.
                        flow = unsafe { h(w, env, u, exec) };
                        env.counted = false;
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
    count(w, env, u64::from(counted - left));
    env.stats.thread_instructions += threads;
    stop
}

/// Adds instructions to the counts.
#[inline]
fn count(w: &mut Warp, env: &mut Env<'_>, issued: u64) {
    w.issued += issued;
    env.stats.warp_instructions += issued;
}
