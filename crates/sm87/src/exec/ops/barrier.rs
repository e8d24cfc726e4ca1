//! BAR and B2R, the barriers of a CTA, and BSSY, BSYNC and BREAK, the convergence barriers of a warp.

use super::int::put_pred;
use crate::exec::alu::{self, Whole};
use crate::exec::env::{Env, WarpError};
use crate::exec::groups::Wait;
use crate::exec::lower::{Lower, Refused};
use crate::exec::rows::{Dst, Src};
use crate::exec::uop::{Flow, Handlers, Uop};
use crate::exec::warp::{Warp, lanes};
use sm87_simd::Simd;

/// The bits of `mods`: mode, reduction, number of threads.
const MODE: u32 = 3;
const REDUCE: u32 = 2;
const COUNT: u32 = 8;
/// The flags of `aux`: the barrier's number is in a register, and the number of threads is in a register. If both are
/// set, one register holds both, with the number of threads in its upper part.
const NUMBER_REG: u16 = 1;
const COUNT_REG: u16 = 2;

/// The number of the barrier that the lanes in `exec` come to with this instruction, and the number of threads. 0 threads are all of the CTA.
pub fn named(w: &Warp, u: &Uop, exec: u32) -> (u32, u32) {
    let x = w.get(u.a, exec.trailing_zeros());
    let number = if u.aux & NUMBER_REG != 0 { x & 0xffff } else { u.imm };
    let count = match (u.aux & COUNT_REG != 0, u.aux & NUMBER_REG != 0) {
        (false, _) => u.mods >> COUNT,
        (true, true) => x >> 16 & 0xfff,
        (true, false) => x & 0xfff,
    };
    (number, count)
}

/// Whether the lanes wait there. BAR.ARV only reports that they came.
pub fn waits(u: &Uop) -> bool {
    u.mods & MODE != 1
}

fn bar(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let (number, count) = named(w, u, exec);
    if number > 15 {
        return env.warp_error(u, WarpError::IllegalParameter, format!("barrier {number}: there are 16"));
    }
    let n = number as usize;
    if !count.is_multiple_of(32) {
        let text = format!("barrier {n} with {count} threads, not a multiple of 32");
        return env.warp_error(u, WarpError::IllegalParameter, text);
    }
    let barrier = env.barriers.name(n, count);
    if !waits(u) {
        // A warp counts when all of its lanes have arrived.
        if w.arrives(n, exec) {
            env.barriers.arrive(n);
        }
        return Flow::Next;
    }
    if u.mods & MODE == 2 {
        barrier.reduce(u.mods >> REDUCE & 3, w.pred(u.ps), exec);
    }
    wait(w, u, exec, n as u8)
}

/// Lets lanes wait at a barrier.
fn wait(w: &mut Warp, u: &Uop, exec: u32, n: u8) -> Flow {
    if w.stops_at(n, exec, u.at) {
        return Flow::Wait;
    }
    w.park(exec, u.at, Wait::Cta(n));
    w.pc = u.at + 1;
    w.settle();
    Flow::Jump
}

/// BAR.SYNC of all threads at a barrier that the instruction names.
fn sync(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    env.barriers.name(u.imm as usize, 0);
    wait(w, u, exec, u.imm as u8)
}

pub(crate) fn bar_lower(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mode = l.bits(77, 2);
    if mode == 3 {
        return Err(Refused("BAR.SCAN"));
    }
    let reduce = l.bits(74, 2);
    if mode == 2 && reduce == 3 {
        return Err(Refused("BAR.RED operation"));
    }
    let mods = mode | reduce << REDUCE | l.bits(42, 12) << COUNT;
    let (a, aux) = match l.word.form() {
        1 => (l.reg(32, 1), NUMBER_REG | COUNT_REG),
        2 => (l.reg(32, 1), NUMBER_REG),
        4 => (l.reg(32, 1), COUNT_REG),
        _ => (Src::reg(255), 0),
    };
    let run = Handlers::all(if is_sync(mods, aux) { sync } else { bar });
    Ok(Uop { a, imm: l.bits(54, 4), mods, ps: l.ps(), aux, ..l.uop(run) })
}

fn is_sync(mods: u32, aux: u16) -> bool {
    (mods, aux) == (0, 0)
}

/// Whether a BAR lets all lanes wait at a barrier of all threads. Its number is `imm`.
pub(crate) fn is_of_all(u: &Uop) -> bool {
    is_sync(u.mods, u.aux) && u.guard.is_always_true()
}

fn result(w: &mut Warp, _: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let x = w.reduction;
    for lane in lanes(exec) {
        w.put(u.d, lane, x);
        put_pred(w, u.pd, lane, x != 0);
    }
    Flow::Next
}

/// B2R.RESULT reads the result of the last BAR.RED.
pub(crate) fn b2r(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    Ok(Uop { d: l.dst(1), pd: l.pdst(81), ..l.uop(Handlers::all(result)) })
}

struct Bssy;
impl Whole for Bssy {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, _: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        let members = exec & w.pred(u.ps);
        w.fill(u.d, members, members);
        Flow::Next
    }
}

pub(crate) fn bssy_lower(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (n, ps) = (l.bits(16, 4) as u8, l.ps());
    let d = if ps.is_always_true() { l.barrier(n) } else { Dst::barrier(n) };
    Ok(Uop { d, ps, ..l.uop(alu::whole::<Bssy>()) })
}

struct Bsync;
impl Whole for Bsync {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, _: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        let arrived = exec & w.pred(u.ps);
        // The whole running group is here and no lane is missing, so the group continues without waiting.
        if arrived == w.active && !w.alone && w.converges(u.a, arrived) {
            return Flow::Next;
        }
        w.park(arrived, u.at, Wait::Converge(u.a));
        w.pc = u.at + 1;
        w.settle();
        Flow::Jump
    }
}

pub(crate) fn bsync_lower(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    Ok(Uop { a: Src::barrier(l.bits(16, 4) as u8), ps: l.ps(), ..l.uop(alu::whole::<Bsync>()) })
}

fn break_(w: &mut Warp, _: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let gone = exec & w.pred(u.ps);
    for lane in lanes(gone) {
        let view = w.get(u.a, lane);
        // Lanes that have the same view of the barrier leave it together.
        if view & !gone != 0 {
            w.forget(u.a, view, gone & view);
        }
    }
    w.barrier_changed();
    Flow::Next
}

pub(crate) fn break_lower(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let n = l.bits(16, 4) as u8;
    Ok(Uop { a: Src::barrier(n), d: Dst::barrier(n), ps: l.ps(), ..l.uop(Handlers::all(break_)) })
}
