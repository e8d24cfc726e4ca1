//! LDL and STL.
#![allow(unsafe_code)]

use super::super::special::{alike, extend};
use super::{SIZE, misaligned, offset24, out_of_range, size};
use crate::exec::alu::pick;
use crate::exec::env::Env;
use crate::exec::host::wide;
use crate::exec::lower::{Lower, Refused};
use crate::exec::rows::Src;
use crate::exec::uop::{Flow, Handlers, Uop};
use crate::exec::warp::{Warp, lanes};
use crate::isa::memory::bytes;
use sm87_simd::{Simd, put};

/// The flag of `aux` that marks a store.
const STORE: u16 = 1;

/// The access of one lane. The address is in the memory of the lane's own thread.
pub(super) fn local_lane(w: &mut Warp, env: &mut Env<'_>, u: &Uop, lane: u32, at: u32, size: u32, store: bool) -> Flow {
    let len = bytes(size);
    let Some(row) = env.memory.local.row(w.index, at, len) else {
        let total = env.launch().local_low + env.launch().local_high;
        return out_of_range(env, u, "local access (stack overflow?)", at, total);
    };
    let p = row.wrapping_add(lane as usize);
    // SAFETY: `row` found `len` bytes of this warp's local memory, in rows of 32 words.
    unsafe {
        if len >= 4 {
            for i in 0..len / 4 {
                let p = p.add(32 * i as usize);
                if store { p.write(w.get(u.b.plus(i), lane)) } else { w.put(u.d.plus(i), lane, p.read()) }
            }
        } else if store {
            let shift = 8 * (at & 3);
            let mask = ((1u32 << (8 * len)) - 1) << shift;
            p.write((p.read() & !mask) | (w.get(u.b, lane) << shift & mask));
        } else {
            w.put(u.d, lane, extend(size, p.read(), at));
        }
    }
    Flow::Next
}

/// Executes the access. The lanes usually use the same slot of their stacks, whose words are rows.
#[inline(always)]
fn local<V: Simd>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let (size, store) = (u.mods & SIZE, u.aux & STORE != 0);
    let offset = u.imm.wrapping_add(w.get(u.c, 0));
    let (address, len) = (w.get(u.a, exec.trailing_zeros()), bytes(size));
    if len >= 4 && exec & !alike::<V>(w.lanes_of(u.a), address) == 0 {
        let at = address.wrapping_add(offset);
        if at.is_multiple_of(len)
            && let Some(row) = env.memory.local.row(w.index, at, len)
        {
            for i in 0..len / 4 {
                let slot = row.wrapping_add(32 * i as usize);
                let (from, to) =
                    if store { (w.src(u.b.plus(i)), slot) } else { (slot.cast_const(), w.dst(u.d.plus(i))) };
                // SAFETY: `row` found `len` bytes of this warp's local memory, in rows of 32 words, and a register is such a row.
                unsafe { copy_row::<V>(from, to, exec) };
            }
            return Flow::Next;
        }
    }
    each(w, env, u, exec, offset)
}

/// Copies the words of these lanes.
///
/// # Safety
/// The rows have 32 words each, and the second is writable.
#[inline(always)]
unsafe fn copy_row<V: Simd>(from: *const u32, to: *mut u32, exec: u32) {
    let mut i = 0;
    while i < 32 {
        // SAFETY: as this function asks of its caller: the number of lanes divides 32.
        unsafe { put(to, i, exec, V::load(from.add(i))) };
        i += V::LANES;
    }
}

unsafe fn local_plain(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    local::<u32>(w, env, u, exec)
}

wide! {
    unsafe fn local_wide(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        local::<sm87_simd::avx2::Avx2>(w, env, u, exec)
    }
}

/// Executes the access lane by lane.
fn each(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32, offset: u32) -> Flow {
    let (size, store) = (u.mods & SIZE, u.aux & STORE != 0);
    for lane in lanes(exec) {
        let at = w.get(u.a, lane).wrapping_add(offset);
        if !at.is_multiple_of(bytes(size)) {
            return misaligned(env, u, "local access", at.into(), bytes(size));
        }
        let flow = local_lane(w, env, u, lane, at, size, store);
        if flow != Flow::Next {
            return flow;
        }
    }
    Flow::Next
}

pub(crate) fn load(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    lower(l, false)
}

pub(crate) fn store(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    lower(l, true)
}

fn lower(l: &mut Lower<'_>, stores: bool) -> Result<Uop, Refused> {
    let (size, count) = size(l)?;
    let c = match (l.bit(91), stores) {
        (true, true) => l.ureg(64),
        (true, false) => l.ureg(32),
        (false, _) => Src::reg(255),
    };
    let a = l.a();
    let mut u = Uop {
        a,
        c,
        imm: offset24(l),
        mods: size,
        aux: stores.into(),
        ..l.uop(Handlers::all(pick!(local_plain, local_wide)))
    };
    if stores {
        u.b = l.reg(32, count)
    } else {
        u.d = l.dst(count)
    }
    u.registers = l.uop(u.run).registers;
    Ok(u)
}
