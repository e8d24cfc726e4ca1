//! LDS, STS and LDSM.
#![allow(unsafe_code)]

use super::block::{load_block, store_block};
use super::{misaligned, offset24, out_of_range, size};
use crate::exec::alu::{self, Whole, apart};
use crate::exec::env::{Env, Memory, WarpError};
use crate::exec::known::{Bounds, Numbers, Pattern, Places, arrange_anew, steps};
use crate::exec::lower::{Lower, Refused};
use crate::exec::record::{Operation, Recorder};
use crate::exec::rows::Src;
use crate::exec::runs::Space;
use crate::exec::uop::{Flow, Handlers, Uop};
use crate::exec::warp::{Warp, lanes};
use crate::isa::memory::bytes;
use sm87_num::mma;
use sm87_simd::Simd;

/// The place in `mods` of the shift of a shared address register.
const SCALE: u32 = 4;

/// The shared addresses of all lanes. Inactive lanes get the address of the first active lane.
#[inline(always)]
fn address(w: &Warp, u: &Uop, lane: u32) -> u32 {
    (w.get(u.a, lane) << (u.mods >> SCALE & 7)).wrapping_add(offset(w, u))
}

/// What the instruction adds to the address register of every lane.
#[inline(always)]
fn offset(w: &Warp, u: &Uop) -> u32 {
    u.imm.wrapping_add(w.get(u.c, 0))
}

/// A row of addresses, each of which is shifted and moved.
struct Scaled<V> {
    row: *const u32,
    scale: V,
    added: V,
}

impl<V: Simd> Numbers<V> for Scaled<V> {
    #[inline(always)]
    fn at(&self, i: usize) -> V {
        // SAFETY: rows have 32 words.
        unsafe { V::load(self.row.add(i)).shl(self.scale).add(self.added) }
    }

    #[inline(always)]
    fn elsewhere(&self, _: usize) -> V {
        V::splat(0)
    }
}

/// The places of all lanes if all of them are in the CTA's shared memory.
#[inline(always)]
fn places<'e, V: Simd, const SIZE: u32>(
    w: &Warp,
    memory: &'e mut Memory<'_>,
    u: &Uop,
    exec: u32,
) -> Option<Places<'e>> {
    let len = const { bytes(SIZE) };
    let most = memory.shared.bytes().checked_sub(len)?;
    let (row, scale, offset) = (w.src(u.a), u.mods >> SCALE & 7, offset(w, u));
    let register = w.get(u.a, exec.trailing_zeros()) << scale;
    let (first, scale) = (register.wrapping_add(offset), V::splat(scale));
    if first & (len - 1) != 0 {
        return None;
    }
    let (known, bounds) = (&mut memory.known, Bounds { first, least: 0, most });
    let layout = &mut known.shared;
    // All lanes have the same offset, so the registers alone say whether they lie as before.
    let registers = Scaled { row, scale, added: V::splat(0) };
    if !layout.is_within(bounds) || !layout.is_of(exec, len, register, &registers) {
        arrange_anew::<V, SIZE>(layout, exec, bounds, &Scaled { row, scale, added: V::splat(offset) })?;
        if layout.how == Pattern::Row {
            known.parted.remove(u);
        }
    }
    Some(Places::new(memory.shared.get(first, len)?, layout))
}

/// An access of a word by all 32 lanes. `SCALED` says whether the address register is shifted.
struct SharedWords<const STORE: bool, const SCALED: bool>;
impl<const STORE: bool, const SCALED: bool> Whole for SharedWords<STORE, SCALED> {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        let parted = env.memory.known.parted.has(u);
        let words = if parted { None } else { row::<V, SCALED>(w, &mut env.memory, u) };
        let Some(words) = words else {
            env.memory.known.parted.add(u);
            return apart::<V, SharedAccess<4, STORE, true>>(w, env, u, exec);
        };
        // SAFETY: `row` found 32 words in the CTA's shared memory, and rows have 32, which are elsewhere.
        unsafe {
            let (from, to) = if STORE { (w.src(u.b).cast(), words) } else { (words.cast_const(), w.dst(u.d).cast()) };
            std::ptr::copy_nonoverlapping::<[u32; 32]>(from, to, 1);
        }
        Flow::Next
    }
}

/// The handlers of an access of this size.
fn access<const SIZE: u32, const STORE: bool>() -> Handlers {
    alu::whole_or_part::<SharedAccess<SIZE, STORE, true>, SharedAccess<SIZE, STORE, false>>()
}

/// The handlers of an access of a word with these `mods`.
fn words<const STORE: bool>(mods: u32) -> Handlers {
    match mods >> SCALE {
        0 => alu::whole_or_part::<SharedWords<STORE, false>, SharedAccess<4, STORE, false>>(),
        _ => alu::whole_or_part::<SharedWords<STORE, true>, SharedAccess<4, STORE, false>>(),
    }
}

/// The words of all 32 lanes, if each lane's follows that of the lane before. Most programs use shared memory so, and then it is not kept how
/// the lanes lie.
#[inline(always)]
fn row<V: Simd, const SCALED: bool>(w: &Warp, memory: &mut Memory<'_>, u: &Uop) -> Option<*mut [u32; 32]> {
    let lanes = w.src(u.a);
    let scale = if SCALED { u.mods >> SCALE & 7 } else { 0 };
    let first = w.get(u.a, 0) << scale;
    // SAFETY: `steps` has a vector's words, and rows have 32.
    let mut wanted = unsafe { V::load(const { steps(4) }.as_ptr()) }.add(V::splat(first));
    let (mut gap, mut i) = (V::splat(0), 0);
    while i < 32 {
        // SAFETY: as above.
        let own = unsafe { V::load(lanes.add(i)) };
        gap = gap.or(if SCALED { own.shl(V::splat(scale)) } else { own }.xor(wanted));
        wanted = wanted.add(V::splat(4 * V::LANES as u32));
        i += V::LANES;
    }
    let at = first.wrapping_add(offset(w, u));
    if gap.any() || at & 3 != 0 {
        return None;
    }
    memory.shared.get(at, size_of::<[u32; 32]>() as u32).map(<*mut u8>::cast)
}

/// An access by some lanes, or by all 32 if it is `FULL`.
struct SharedAccess<const SIZE: u32, const STORE: bool, const FULL: bool>;
impl<const SIZE: u32, const STORE: bool, const FULL: bool> Whole for SharedAccess<SIZE, STORE, FULL> {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        let exec = if FULL { u32::MAX } else { exec };
        let Some(places) = places::<V, SIZE>(w, &mut env.memory, u, exec) else {
            return shared_fault(w, env, u, exec, const { bytes(SIZE) });
        };
        // SAFETY: `places` found every lane inside the CTA's shared memory.
        unsafe {
            if STORE {
                store_block::<V, SIZE>(w, u, exec, places);
            } else {
                load_block::<V, SIZE>(w, u, exec, places);
            }
        }
        Flow::Next
    }
}

#[cold]
fn shared_fault(w: &Warp, env: &mut Env<'_>, u: &Uop, exec: u32, len: u32) -> Flow {
    for at in lanes(exec).map(|l| address(w, u, l)) {
        if !at.is_multiple_of(len) {
            return misaligned(env, u, "shared access", at.into(), len);
        }
        if env.memory.shared.get(at, len).is_none() {
            let size = env.memory.shared.bytes();
            return out_of_range(env, u, "shared access", at, size);
        }
    }
    Flow::Next
}

/// The address register, the offset, the size and the scale of LDS and STS.
fn operands(l: &mut Lower<'_>, size: u32) -> (Src, u32, u32) {
    let scale = [0, 2, 3, 4][l.bits(78, 2) as usize];
    (l.a(), offset24(l), size | scale << SCALE)
}

/// The uniform register of an address, at bit `lo`.
fn uniform(l: &mut Lower<'_>, lo: u32) -> Src {
    if l.bit(91) { l.ureg(lo) } else { Src::reg(255) }
}

pub(crate) fn store(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (size, count) = size(l)?;
    let c = uniform(l, 64);
    let (a, imm, mods) = operands(l, size);
    let b = l.reg(32, count);
    let run = match size {
        0 | 1 => access::<0, true>(),
        2 | 3 => access::<2, true>(),
        4 => words::<true>(mods),
        5 => access::<5, true>(),
        _ => access::<6, true>(),
    };
    Ok(Uop { a, b, c, imm, mods, ..l.uop(run) })
}

pub(crate) fn load(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (size, count) = size(l)?;
    let c = uniform(l, 32);
    let (a, imm, mods) = operands(l, size);
    let run = match size {
        0 => access::<0, false>(),
        1 => access::<1, false>(),
        2 => access::<2, false>(),
        3 => access::<3, false>(),
        4 => words::<false>(mods),
        5 => access::<5, false>(),
        _ => access::<6, false>(),
    };
    let operation = Operation { run, record: (size == 4).then_some(write_down) };
    let d = l.dst(count);
    Ok(Uop { d, a, c, imm, mods, ..l.uop(operation) })
}

/// Writes down the load of a word.
fn write_down(u: &Uop, recorder: &mut Recorder<'_>) {
    let space = Space::Shared((u.mods >> SCALE & 7) as u8);
    recorder.load(u, space);
}

fn matrices(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    if exec != u32::MAX {
        let text = format!("LDSM with lanes {exec:#010x} only");
        return env.warp_error(u, WarpError::IllegalParameter, text);
    }
    let count = 1 << (u.mods & 3);
    let mut out = [[0; 32]; 4];
    for (m, fragment) in out.iter_mut().enumerate().take(count) {
        let mut rows = [[0u32; 4]; 8];
        for (r, row) in rows.iter_mut().enumerate() {
            let at = w.get(u.a, (m * 8 + r) as u32).wrapping_add(u.imm).wrapping_add(w.get(u.c, 0));
            if !at.is_multiple_of(16) {
                return misaligned(env, u, "LDSM", at.into(), 16);
            }
            let Some(p) = env.memory.shared.get(at, 16) else {
                let size = env.memory.shared.bytes();
                return out_of_range(env, u, "LDSM", at, size);
            };
            // SAFETY: the check above found 16 aligned bytes in the CTA's shared memory.
            *row = unsafe { p.cast::<[u32; 4]>().read() };
        }
        *fragment = mma::rows_to_fragment(&rows);
        if u.mods & 4 != 0 {
            *fragment = mma::transpose(fragment);
        }
    }
    for (m, fragment) in out.iter().enumerate().take(count) {
        for lane in 0..32 {
            w.put(u.d.plus(m as u32), lane, fragment[lane as usize]);
        }
    }
    Flow::Next
}

pub(crate) fn ldsm(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (count, how) = (l.bits(72, 2), l.bits(78, 2));
    if count == 3 || how > 1 {
        return Err(Refused("LDSM shape"));
    }
    let (d, a) = (l.dst(1 << count), l.a());
    let c = uniform(l, 32);
    Ok(Uop { d, a, c, imm: offset24(l), mods: count | how << 2, ..l.uop(Handlers::all(matrices)) })
}
