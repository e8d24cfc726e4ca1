//! Polling: lanes read memory again and again until somebody else has changed it.
//!
//! The engine watches atomics, and loads whose result other threads may change ([`Row::may_poll`](crate::isa::Row::may_poll)). A watched instruction that finds the
//! same values as the last time may be part of a loop that waits. After several such results in a row the warp lets
//! other warps run. A CTA in which all warps do nothing else lets another CTA run.
#![allow(unsafe_code)]

use super::alu::Whole;
use super::env::Env;
use super::uop::{Flow, Uop};
use super::warp::Warp;
use sm87_simd::Simd;

/// Executes a watched instruction.
pub(super) struct Watched;
impl Whole for Watched {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        let Some(run) = env.image.watched(u.at) else { return Flow::Next };
        // SAFETY: these are the handlers that the micro-op was lowered with. One is chosen as the interpreter does it.
        let flow = unsafe { run.of(exec)(w, env, u, exec) };
        if flow != Flow::Next {
            return flow;
        }
        let now = (u.at, exec, sum::<V>(w, u, exec));
        if w.finds(u.at ^ exec.trailing_zeros(), now) {
            w.polls = 0;
            return flow;
        }
        w.yielded |= exec;
        Flow::pause_if(w.poll())
    }
}

/// Odd numbers without a pattern: two weights for each lane.
const WEIGHTS: [[u32; 32]; 2] = {
    let (mut weights, mut x, mut i) = ([[0; 32]; 2], 1u64, 0);
    while i < 64 {
        x = x.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        weights[i / 32][i % 32] = (x >> 32) as u32 | 1;
        i += 1;
    }
    weights
};

/// A number that depends on all lanes of the destination. A poll compares it with the number of the poll before.
#[inline(always)]
fn sum<V: Simd>(w: &Warp, u: &Uop, exec: u32) -> u64 {
    let d = w.src(u.d.as_src());
    let (mut low, mut high) = (V::splat(0), V::splat(0));
    let mut i = 0;
    while i < 32 {
        // SAFETY: rows, and the weights, have 32 words.
        unsafe {
            let x = V::load(d.add(i)).and(V::from_bits(exec >> i));
            low = low.add(x.mul(V::load(WEIGHTS[0].as_ptr().add(i))));
            high = high.add(x.mul(V::load(WEIGHTS[1].as_ptr().add(i))));
        }
        i += V::LANES;
    }
    let (mut x, mut y) = ([0u32; 8], [0u32; 8]);
    // SAFETY: a value has eight lanes at most.
    unsafe {
        low.store(x.as_mut_ptr());
        high.store(y.as_mut_ptr());
    }
    let total = |x: [u32; 8]| x.iter().fold(0u32, |sum, &x| sum.wrapping_add(x));
    u64::from(total(x)) | u64::from(total(y)) << 32
}
