//! IMAD.WIDE in the form in which programs compute addresses: a loop that the compiler turns into vector code.
#![allow(unsafe_code)]

use crate::exec::env::Env;
use crate::exec::uop::{Flow, Handlers, Uop};
use crate::exec::warp::{Warp, lanes};

/// The bit of `mods` that makes the product signed.
const SIGNED: u32 = 16;

#[inline(always)]
fn product(a: u32, b: u32, signed: bool) -> u64 {
    if signed { (i64::from(a as i32) * i64::from(b as i32)) as u64 } else { u64::from(a) * u64::from(b) }
}

#[inline(always)]
unsafe fn rows(w: &mut Warp, u: &Uop, exec: u32, signed: bool) -> Flow {
    // SAFETY: rows have 32 words. The copies are made before the destination is written.
    let (a, b, lo, hi) = unsafe {
        let (a, b) = (w.src(u.a).cast::<[u32; 32]>(), w.src(u.b).cast::<[u32; 32]>());
        let (lo, hi) = (w.src(u.c).cast::<[u32; 32]>(), w.src(u.c.plus(1)).cast::<[u32; 32]>());
        (a.read(), b.read(), lo.read(), hi.read())
    };
    let (mut x, mut y) = ([0u32; 32], [0u32; 32]);
    for i in 0..32 {
        let c = u64::from(lo[i]) | u64::from(hi[i]) << 32;
        let r = product(a[i], b[i], signed).wrapping_add(c);
        x[i] = r as u32;
        y[i] = (r >> 32) as u32;
    }
    let (dx, dy) = (w.dst(u.d), w.dst(u.d.plus(1)));
    if exec == u32::MAX {
        // SAFETY: rows have 32 words.
        unsafe {
            dx.cast::<[u32; 32]>().write(x);
            dy.cast::<[u32; 32]>().write(y);
        }
    } else {
        for i in lanes(exec).map(|i| i as usize) {
            // SAFETY: rows have 32 words.
            unsafe {
                dx.add(i).write(x[i]);
                dy.add(i).write(y[i]);
            }
        }
    }
    Flow::Next
}

unsafe fn plain(w: &mut Warp, _: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    // SAFETY: the interpreter calls handlers with the warp whose arrays the micro-op was lowered for.
    unsafe { if u.mods & SIGNED != 0 { rows(w, u, exec, true) } else { rows(w, u, exec, false) } }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,popcnt,bmi1,bmi2,lzcnt")]
unsafe fn wide(w: &mut Warp, _: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    // SAFETY: the interpreter calls handlers with the warp whose arrays the micro-op was lowered for. `mad` chooses
    // this handler only if the host has AVX2.
    unsafe { if u.mods & SIGNED != 0 { rows(w, u, exec, true) } else { rows(w, u, exec, false) } }
}

unsafe fn one(w: &mut Warp, _: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let lane = exec.trailing_zeros();
    let r = product(w.get(u.a, lane), w.get(u.b, lane), u.mods & SIGNED != 0);
    let r = r.wrapping_add(w.get64(u.c, lane));
    w.put64(u.d, lane, r);
    Flow::Next
}

/// The handlers of IMAD.WIDE without carries. A uniform operation works on all lanes.
pub(crate) fn mad(uniform: bool) -> Handlers {
    #[cfg(target_arch = "x86_64")]
    let rows = if crate::exec::isa::avx2() { wide } else { plain };
    #[cfg(not(target_arch = "x86_64"))]
    let rows = plain;
    if uniform { Handlers::all(every) } else { Handlers { full: rows, part: rows, one } }
}

unsafe fn every(w: &mut Warp, env: &mut Env<'_>, u: &Uop, _: u32) -> Flow {
    // SAFETY: the conditions of `plain` are those of this handler.
    unsafe { plain(w, env, u, u32::MAX) }
}
