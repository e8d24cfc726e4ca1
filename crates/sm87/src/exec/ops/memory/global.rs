//! LDG and STG.
#![allow(unsafe_code)]

use super::super::special::bytes;
use super::block::{Pattern, arrange, load_block, store_block};
use super::{
    addresses, deposit, fetch, global_address, misaligned, missed, offset24, pair_bit, size, uniform_offset, zero,
};
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
fn offsets(va: &[u64; 32], on: u32, start: u64) -> [u32; 32] {
    let first = va[on.trailing_zeros() as usize & 31];
    let mut out = [0; 32];
    for i in 0..32 {
        let x = if on >> i & 1 == 1 { va[i] } else { first };
        let d = x.wrapping_sub(start);
        out[i] = if d >> 32 == 0 { d as u32 } else { u32::MAX };
    }
    out
}

/// The block of memory around the address of the first active lane, if all lanes lie in it.
#[inline(always)]
fn block<const SIZE: u32>(
    env: &mut Env<'_>,
    va: &[u64; 32],
    on: u32,
    write: bool,
) -> Option<(*mut u8, [u32; 32], Pattern)> {
    let len = const { bytes(SIZE) };
    let first = va[on.trailing_zeros() as usize & 31];
    let access = if write { Access::Write } else { Access::Read };
    let p = env.tlb.get(first, len.into(), write, access).ok().filter(|p| !p.is_null())?;
    let (before, size) = env.tlb.around(first);
    // The block is at most 2 GiB, so that offsets have 32 bits.
    let back = before.min(1 << 30);
    let size = (size - (before - back)).min(1 << 31) as u32;
    let offset = offsets(va, on, first - back);
    let how = arrange::<SIZE>(&offset, size - len)?;
    Some((p.wrapping_sub(back as usize), offset, how))
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
        let va = addresses(w, u, w.get64(u.c, 0));
        match block::<SIZE>(env, &va, on, false) {
            // SAFETY: `block` found every lane inside the extent.
            Some((p, offset, how)) => unsafe { load_block::<SIZE>(w, u, on, p, &offset, how) },
            None => return load_lanes::<SIZE>(w, env, u, on, &va),
        }
        Flow::Next
    }
}

/// Executes a load one lane at a time. This serves several extents, sparse extents and faults.
#[cold]
fn load_lanes<const SIZE: u32>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, on: u32, va: &[u64; 32]) -> Flow {
    let len = const { bytes(SIZE) };
    for lane in lanes(on) {
        let at = va[lane as usize];
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
        let va = addresses(w, u, w.get64(u.c, 0));
        match block::<SIZE>(env, &va, exec, true) {
            // SAFETY: `block` found every lane inside the extent, and the extent writable.
            Some((p, offset, how)) => unsafe { store_block::<SIZE>(w, u, exec, p, &offset, how) },
            None => return store_lanes::<SIZE>(w, env, u, exec, &va),
        }
        Flow::Next
    }
}

/// Executes a store one lane at a time.
#[cold]
fn store_lanes<const SIZE: u32>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32, va: &[u64; 32]) -> Flow {
    let len = const { bytes(SIZE) };
    for lane in lanes(exec) {
        let at = va[lane as usize];
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
