//! LDG and STG.
#![allow(unsafe_code)]

use super::super::special::bytes;
use super::block::{Bounds, Places, arrange, load_block, store_block};
use super::{PAIR, deposit, fetch, global_address, misaligned, missed, offset24, pair_bit, size, uniform_offset, zero};
use crate::exec::alu::{self, Whole};
use crate::exec::env::Env;
use crate::exec::lower::{Lower, Refused};
use crate::exec::rows::pred;
use crate::exec::simd::Simd;
use crate::exec::uop::{Flow, Pred, Uop};
use crate::exec::warp::{Warp, lanes};
use tegra_mm::Access;

/// The offsets of global addresses from the start of the extent that holds the address of the first active lane. Lanes
/// in other extents get an offset that is too large.
#[inline(always)]
fn block<V: Simd, const SIZE: u32>(w: &Warp, env: &mut Env<'_>, u: &Uop, on: u32, write: bool) -> Option<Places> {
    let len = const { bytes(SIZE) };
    let (lane, is_pair) = (on.trailing_zeros(), u.mods & PAIR != 0);
    let (first, high) = (w.get(u.a, lane), if is_pair { w.get(u.a.plus(1), lane) } else { 0 });
    let va = uniform(w, u).wrapping_add(u64::from(first) | u64::from(high) << 32);
    if va & u64::from(len - 1) != 0 {
        return None;
    }
    let access = if write { Access::Write } else { Access::Read };
    let p = env.tlb.get(va, len.into(), write, access).ok().filter(|p| !p.is_null())?;
    let (before, size) = env.tlb.around(va);
    let behind = (size - before).checked_sub(len.into())?;
    // The distance of a lane's address from the first lane's is the distance of their low words.
    let bounds = Bounds {
        first,
        least: u64::from(first).saturating_sub(before) as u32,
        most: (u64::from(first) + behind).min(u32::MAX.into()) as u32,
    };
    let (low, other) = (w.src(u.a), w.src(u.a.plus(u32::from(is_pair))));
    // SAFETY: rows have 32 words; a pair was lowered as two rows.
    let (at, how) = unsafe {
        let wanted = V::splat(high);
        let another = |i| if is_pair { V::load(other.add(i)).xor(wanted) } else { V::splat(0) };
        arrange::<V, SIZE>(on, bounds, |i| V::load(low.add(i)), another)?
    };
    Some(Places { base: p.wrapping_sub(first as usize), at, how })
}

/// The address of a lane.
#[inline(always)]
fn address(w: &Warp, u: &Uop, lane: u32) -> u64 {
    let own = if u.mods & PAIR != 0 { w.get64(u.a, lane) } else { w.get(u.a, lane).into() };
    own.wrapping_add(uniform(w, u))
}

/// What the instruction adds to the address register of every lane.
#[inline(always)]
fn uniform(w: &Warp, u: &Uop) -> u64 {
    w.get64(u.c, 0).wrapping_add(u.imm as i32 as u64)
}

struct LoadGlobal<const SIZE: u32>;
impl<const SIZE: u32> Whole for LoadGlobal<SIZE> {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        let on = exec & w.pred(u.ps);
        if on != exec {
            zero(w, u, SIZE, exec & !on);
            if on == 0 {
                return Flow::Next;
            }
        }
        if on.is_power_of_two() {
            return load_lanes::<SIZE>(w, env, u, on);
        }
        match block::<V, SIZE>(w, env, u, on, false) {
            // SAFETY: `block` found every lane inside the extent.
            Some(places) => unsafe { load_block::<V, SIZE>(w, u, on, &places) },
            None => return load_lanes::<SIZE>(w, env, u, on),
        }
        Flow::Next
    }
}

/// Executes a load one lane at a time. This serves several extents, sparse extents and faults.
fn load_lanes<const SIZE: u32>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, on: u32) -> Flow {
    let len = const { bytes(SIZE) };
    for lane in lanes(on) {
        let at = address(w, u, lane);
        if !at.is_multiple_of(u64::from(len)) {
            return misaligned(env, u, "global load", at, len);
        }
        match env.tlb.get(at, len.into(), false, Access::Read) {
            // SAFETY: the translation covers `len` bytes.
            Ok(p) if !p.is_null() => unsafe { fetch(w, u, SIZE, lane, p) },
            Ok(_) => zero(w, u, SIZE, 1 << lane),
            Err(miss) => return missed(env, u, "global load", at, miss),
        }
    }
    Flow::Next
}

struct StoreGlobal<const SIZE: u32>;
impl<const SIZE: u32> Whole for StoreGlobal<SIZE> {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        if exec.is_power_of_two() {
            return store_lanes::<SIZE>(w, env, u, exec);
        }
        match block::<V, SIZE>(w, env, u, exec, true) {
            // SAFETY: `block` found every lane inside the extent, and the extent writable.
            Some(places) => unsafe { store_block::<V, SIZE>(w, u, exec, &places) },
            None => return store_lanes::<SIZE>(w, env, u, exec),
        }
        Flow::Next
    }
}

/// Executes a store one lane at a time.
fn store_lanes<const SIZE: u32>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let len = const { bytes(SIZE) };
    for lane in lanes(exec) {
        let at = address(w, u, lane);
        if !at.is_multiple_of(u64::from(len)) {
            return misaligned(env, u, "global store", at, len);
        }
        match env.tlb.get(at, len.into(), true, Access::Write) {
            // SAFETY: the translation covers `len` bytes and permits writes.
            Ok(p) if !p.is_null() => unsafe { deposit(w, u, SIZE, lane, p) },
            Ok(_) => {}
            Err(miss) => return missed(env, u, "global store", at, miss),
        }
    }
    Flow::Next
}

/// The predicate of a load, which is stored as 7 - p. Lanes for which it is false get zeros.
pub(super) fn load_predicate(l: &Lower<'_>) -> Pred {
    Pred { index: 7 - l.bits(64, 3) as u8, invert: -(l.bit(67) as i8) }
}

pub(crate) fn load(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    if l.pdst(81) != pred::SINK {
        return Err(Refused("LDG with a predicate result"));
    }
    let (size, count) = size(l)?;
    let (a, c, pair) = global_address(l, pair_bit(l), uniform_offset(l, 32));
    let run = match size {
        0 => alu::whole::<LoadGlobal<0>>(),
        1 => alu::whole::<LoadGlobal<1>>(),
        2 => alu::whole::<LoadGlobal<2>>(),
        3 => alu::whole::<LoadGlobal<3>>(),
        4 => alu::whole::<LoadGlobal<4>>(),
        5 => alu::whole::<LoadGlobal<5>>(),
        _ => alu::whole::<LoadGlobal<6>>(),
    };
    let d = l.dst(count);
    Ok(Uop { d, a, c, ps: load_predicate(l), imm: offset24(l), mods: size | pair, ..l.uop(run) })
}

pub(crate) fn store(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (size, count) = size(l)?;
    let (a, c, pair) = global_address(l, pair_bit(l), uniform_offset(l, 64));
    let b = l.reg(32, count);
    let run = match size {
        0 | 1 => alu::whole::<StoreGlobal<0>>(),
        2 | 3 => alu::whole::<StoreGlobal<2>>(),
        4 => alu::whole::<StoreGlobal<4>>(),
        5 => alu::whole::<StoreGlobal<5>>(),
        _ => alu::whole::<StoreGlobal<6>>(),
    };
    Ok(Uop { a, b, c, imm: offset24(l), mods: size | pair, ..l.uop(run) })
}
