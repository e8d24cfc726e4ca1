//! Loads and stores: LDG STG LD ST LDL STL LDS STS, LDSM, LDGSTS.
#![allow(unsafe_code)]

use super::special::{bytes, extend, words};
use crate::mm::Access;
use crate::sm::exec::alu::{self, Whole};
use crate::sm::exec::env::{Env, WarpError};
use crate::sm::exec::lower::{Lower, Refused};
use crate::sm::exec::mem::{Miss, WINDOW};
use crate::sm::exec::rows::Src;
use crate::sm::exec::uop::{Flow, Handlers, Pred, Uop};
use crate::sm::exec::warp::{Warp, lanes};
use crate::sm::num::mma;

/// `mods`: size field, then flags.
pub(super) const SIZE: u32 = 7;
/// The address register is a pair.
const PAIR: u32 = 8;
/// LDGSTS: lanes whose predicate is false write zeros.
const ZFILL: u32 = 1 << 8;
/// Shift of a shared address register.
const SCALE: u32 = 4;

/// 64-bit addresses of all lanes: register, the instruction's offset, and a uniform one.
#[inline(always)]
pub(super) fn addresses(w: &Warp, u: &Uop, uniform: u64) -> [u64; 32] {
    let uniform = uniform.wrapping_add(u.imm as i32 as u64);
    let mut va = [0; 32];
    // SAFETY: rows have 32 words.
    let lo = unsafe { w.src(u.a).cast::<[u32; 32]>().read() };
    if u.mods & PAIR != 0 {
        // SAFETY: as above; the pair was lowered as two rows.
        let hi = unsafe { w.src(u.a.plus(1)).cast::<[u32; 32]>().read() };
        for i in 0..32 {
            va[i] = (u64::from(lo[i]) | u64::from(hi[i]) << 32).wrapping_add(uniform);
        }
    } else {
        for i in 0..32 {
            va[i] = u64::from(lo[i]).wrapping_add(uniform);
        }
    }
    va
}

#[cold]
pub(super) fn misaligned(env: &mut Env<'_>, u: &Uop, what: &str, va: u64, len: u32) -> Flow {
    let text = format!("{what} of {len} bytes at {va:#x}: misaligned");
    env.warp_error(u, WarpError::MisalignedAddress, text)
}

#[cold]
pub(super) fn missed(env: &mut Env<'_>, u: &Uop, what: &str, va: u64, miss: Miss) -> Flow {
    match miss {
        Miss::Mmu(fault) => env.mmu_fault(u, fault),
        Miss::Window => {
            let text = format!("{what} at {va:#x}: the address lies in a generic window, not in global memory");
            env.warp_error(u, WarpError::AddressSpace, text)
        }
    }
}

#[cold]
pub(super) fn out_of_range(env: &mut Env<'_>, u: &Uop, what: &str, at: u32, size: u32) -> Flow {
    let text = format!("{what} at {at:#x}: outside of the {size:#x} bytes allocated");
    env.warp_error(u, WarpError::AddressRange, text)
}

/// Reads `size`'s bytes at `p` into lane `lane` of the destination.
///
/// # Safety
/// `p` is readable for that many bytes and aligned to them.
#[inline(always)]
unsafe fn fetch(w: &mut Warp, u: &Uop, size: u32, lane: u32, p: *const u8) {
    // SAFETY: the caller's promise. Volatile, because other threads and the CPU may write.
    unsafe {
        match size {
            0 | 1 => w.put(u.d, lane, extend(size, p.read_volatile().into(), 0)),
            2 | 3 => w.put(u.d, lane, extend(size, p.cast::<u16>().read_volatile().into(), 0)),
            _ => {
                for i in 0..bytes(size) / 4 {
                    let x = p.cast::<u32>().add(i as usize).read_volatile();
                    w.put(u.d.plus(i), lane, x);
                }
            }
        }
    }
}

/// Writes lane `lane` of the source `b` to `p`.
///
/// # Safety
/// As for [`fetch`], writable.
#[inline(always)]
unsafe fn deposit(w: &Warp, u: &Uop, size: u32, lane: u32, p: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        match size {
            0 | 1 => p.write_volatile(w.get(u.b, lane) as u8),
            2 | 3 => p.cast::<u16>().write_volatile(w.get(u.b, lane) as u16),
            _ => {
                for i in 0..bytes(size) / 4 {
                    p.cast::<u32>().add(i as usize).write_volatile(w.get(u.b.plus(i), lane));
                }
            }
        }
    }
}

fn zero(w: &mut Warp, u: &Uop, size: u32, mask: u32) {
    for lane in lanes(mask) {
        for i in 0..bytes(size).div_ceil(4) {
            w.put(u.d.plus(i), lane, 0);
        }
    }
}

/// How the lanes of an access lie in one block of memory that holds them all.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pattern {
    /// Lane after lane without a gap.
    Row,
    /// All at one place.
    Same,
    /// Anyhow.
    Scattered,
}

/// Offsets from the lowest byte of a block, when every lane is aligned and inside.
///
/// Inactive lanes get the offset of the first active one, so that the loops need not know them.
#[inline(always)]
fn arrange<const SIZE: u32>(offset: &[u32; 32], limit: u32) -> Option<Pattern> {
    let len = const { bytes(SIZE) };
    let (mut row, mut same, mut low, mut top) = (0, 0, 0, 0);
    for (i, &x) in offset.iter().enumerate() {
        row |= x ^ offset[0].wrapping_add(i as u32 * len);
        same |= x ^ offset[0];
        low |= x;
        top = top.max(x);
    }
    if low & (len - 1) != 0 || top > limit {
        return None;
    }
    Some(match (row, same) {
        (0, _) => Pattern::Row,
        (_, 0) => Pattern::Same,
        _ => Pattern::Scattered,
    })
}

/// Loads all lanes in `on` from a block.
///
/// # Safety
/// `offset` was arranged for the block at `p`.
#[inline(always)]
unsafe fn load_block<const SIZE: u32>(w: &mut Warp, u: &Uop, on: u32, p: *const u8, offset: &[u32; 32], how: Pattern) {
    let words = const { bytes(SIZE).div_ceil(4) };
    if words == 1 && SIZE == 4 && on == u32::MAX {
        let d = w.dst(u.d);
        // SAFETY: the caller's promise; rows have 32 words.
        unsafe {
            match how {
                Pattern::Row => std::ptr::copy_nonoverlapping(p.add(offset[0] as usize).cast(), d, 32),
                Pattern::Same => {
                    let x = p.add(offset[0] as usize).cast::<u32>().read_volatile();
                    d.cast::<[u32; 32]>().write([x; 32]);
                }
                Pattern::Scattered => {
                    for (i, &at) in offset.iter().enumerate() {
                        d.add(i).write(p.add(at as usize).cast::<u32>().read_volatile());
                    }
                }
            }
        }
        return;
    }
    if SIZE >= 4 && how == Pattern::Same {
        for k in 0..words {
            // SAFETY: the caller's promise.
            let x = unsafe { p.add(offset[0] as usize + 4 * k as usize).cast::<u32>().read_volatile() };
            let d = w.dst(u.d.plus(k));
            if on == u32::MAX {
                // SAFETY: rows have 32 words.
                unsafe { d.cast::<[u32; 32]>().write([x; 32]) };
            } else {
                lanes(on).for_each(|lane| w.put(u.d.plus(k), lane, x));
            }
        }
        return;
    }
    if SIZE > 4 && on == u32::MAX {
        for k in 0..words {
            let d = w.dst(u.d.plus(k));
            for (i, &at) in offset.iter().enumerate() {
                // SAFETY: the caller's promise; rows have 32 words.
                unsafe { d.add(i).write(p.add(at as usize + 4 * k as usize).cast::<u32>().read_volatile()) };
            }
        }
        return;
    }
    for lane in lanes(on) {
        // SAFETY: the caller's promise.
        unsafe { fetch(w, u, SIZE, lane, p.add(offset[lane as usize] as usize)) };
    }
}

/// Stores all lanes in `on` to a block, lowest lane first.
///
/// # Safety
/// `offset` was arranged for the block at `p`, which may be written.
#[inline(always)]
unsafe fn store_block<const SIZE: u32>(w: &Warp, u: &Uop, on: u32, p: *mut u8, offset: &[u32; 32], how: Pattern) {
    let words = const { bytes(SIZE).div_ceil(4) };
    if SIZE >= 4 && on == u32::MAX && how != Pattern::Same {
        if words == 1 && how == Pattern::Row {
            // SAFETY: the caller's promise; rows have 32 words.
            unsafe { std::ptr::copy_nonoverlapping(w.src(u.b), p.add(offset[0] as usize).cast(), 32) };
            return;
        }
        for (i, &at) in offset.iter().enumerate() {
            for k in 0..words {
                // SAFETY: as above.
                unsafe {
                    let x = w.src(u.b.plus(k)).add(i).read();
                    p.add(at as usize + 4 * k as usize).cast::<u32>().write_volatile(x);
                }
            }
        }
        return;
    }
    for lane in lanes(on) {
        // SAFETY: the caller's promise.
        unsafe { deposit(w, u, SIZE, lane, p.add(offset[lane as usize] as usize)) };
    }
}

/// Offsets of global addresses from the start of the extent that holds the first active lane's; lanes in other
/// extents get one that is too large.
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

/// The block of memory around the first active lane, if all lanes lie in it.
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
    // A window of 2 GiB around the first lane keeps offsets in 32 bits.
    let back = before.min(1 << 30);
    let size = (size - (before - back)).min(1 << 31) as u32;
    let offset = offsets(va, on, first - back);
    let how = arrange::<SIZE>(&offset, size - len)?;
    Some((p.wrapping_sub(back as usize), offset, how))
}

struct LoadGlobal<const SIZE: u32>;
impl<const SIZE: u32> Whole for LoadGlobal<SIZE> {
    #[inline(always)]
    fn run(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
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

/// A load lane by lane: several extents, sparse ones, faults.
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
    fn run(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        let va = addresses(w, u, w.get64(u.c, 0));
        match block::<SIZE>(env, &va, exec, true) {
            // SAFETY: `block` found every lane inside the extent, and the extent writable.
            Some((p, offset, how)) => unsafe { store_block::<SIZE>(w, u, exec, p, &offset, how) },
            None => return store_lanes::<SIZE>(w, env, u, exec, &va),
        }
        Flow::Next
    }
}

/// A store lane by lane.
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

/// Where a generic address leads.
enum Place {
    Global,
    Shared(u32),
    Local(u32),
}

fn place(env: &Env<'_>, va: u64) -> Place {
    let inside = |base: u64| base != 0 && va.wrapping_sub(base) < WINDOW;
    let (shared, local) = (env.launch.shared_window, env.launch.local_window);
    if inside(shared) {
        Place::Shared((va - shared) as u32)
    } else if inside(local) {
        Place::Local((va - local) as u32)
    } else {
        Place::Global
    }
}

fn generic(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let (size, store) = (u.mods & SIZE, u.aux & 1 != 0);
    let len = bytes(size);
    let va = addresses(w, u, w.get64(u.c, 0));
    let on = exec & w.pred(u.ps);
    if !store && on != exec {
        zero(w, u, size, exec & !on);
    }
    for lane in lanes(on) {
        let at = va[lane as usize];
        if !at.is_multiple_of(u64::from(len)) {
            return misaligned(env, u, "generic access", at, len);
        }
        let p = match place(env, at) {
            Place::Local(at) => {
                let flow = local_lane(w, env, u, lane, at, size, store);
                if flow != Flow::Next {
                    return flow;
                }
                continue;
            }
            Place::Shared(at) => match env.shared.get(at, len) {
                Some(p) => p,
                None => {
                    let size = env.shared.bytes();
                    return out_of_range(env, u, "generic access to shared memory", at, size);
                }
            },
            Place::Global => {
                let access = if store { Access::Write } else { Access::Read };
                match env.tlb.get(at, len.into(), store, access) {
                    Ok(p) => p,
                    Err(miss) => return missed(env, u, "generic access", at, miss),
                }
            }
        };
        match (p.is_null(), store) {
            (true, true) => {}
            (true, false) => zero(w, u, size, 1 << lane),
            // SAFETY: the place covers `len` bytes and permits the access.
            (false, true) => unsafe { deposit(w, u, size, lane, p) },
            // SAFETY: as above.
            (false, false) => unsafe { fetch(w, u, size, lane, p) },
        }
    }
    Flow::Next
}

fn local_lane(w: &mut Warp, env: &mut Env<'_>, u: &Uop, lane: u32, at: u32, size: u32, store: bool) -> Flow {
    let len = bytes(size);
    let Some(row) = env.local.row(w.index, at, len) else {
        let total = env.launch.local_low + env.launch.local_high;
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

fn local(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let (size, store) = (u.mods & SIZE, u.aux & 1 != 0);
    let offset = u.imm.wrapping_add(w.get(u.c, 0));
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

/// Shared addresses of all lanes; inactive ones get the first active lane's.
#[inline(always)]
fn shared_addresses(w: &Warp, u: &Uop, exec: u32) -> [u32; 32] {
    let offset = u.imm.wrapping_add(w.get(u.c, 0));
    let scale = u.mods >> SCALE & 7;
    // SAFETY: rows have 32 words.
    let mut at = unsafe { w.src(u.a).cast::<[u32; 32]>().read() };
    let first = at[exec.trailing_zeros() as usize & 31];
    for (i, x) in at.iter_mut().enumerate() {
        let y = if exec >> i & 1 == 1 { *x } else { first };
        *x = (y << scale).wrapping_add(offset);
    }
    at
}

struct SharedAccess<const SIZE: u32, const STORE: bool>;
impl<const SIZE: u32, const STORE: bool> Whole for SharedAccess<SIZE, STORE> {
    #[inline(always)]
    fn run(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        let len = const { bytes(SIZE) };
        let at = shared_addresses(w, u, exec);
        let how = env.shared.bytes().checked_sub(len).and_then(|limit| arrange::<SIZE>(&at, limit));
        let (Some(how), Some(p)) = (how, env.shared.get(0, len)) else {
            return shared_fault(env, u, &at, exec, len);
        };
        // SAFETY: `arrange` found every lane inside the CTA's shared memory.
        unsafe {
            if STORE {
                store_block::<SIZE>(w, u, exec, p, &at, how);
            } else {
                load_block::<SIZE>(w, u, exec, p, &at, how);
            }
        }
        Flow::Next
    }
}

#[cold]
fn shared_fault(env: &mut Env<'_>, u: &Uop, at: &[u32; 32], exec: u32, len: u32) -> Flow {
    for at in lanes(exec).map(|l| at[l as usize]) {
        if !at.is_multiple_of(len) {
            return misaligned(env, u, "shared access", at.into(), len);
        }
        if env.shared.get(at, len).is_none() {
            let size = env.shared.bytes();
            return out_of_range(env, u, "shared access", at, size);
        }
    }
    Flow::Next
}

fn size(l: &Lower<'_>) -> Result<(u32, u8), Refused> {
    let size = l.bits(73, 3);
    Ok((size, words(size).ok_or(Refused("memory access size"))?))
}

/// The address of a global or generic access: the register (a pair with .E), and a uniform offset when the uniform
/// register is not a descriptor.
pub(super) fn global_address(l: &mut Lower<'_>, ureg: u32, uniform: bool, descriptor: bool) -> (Src, Src, u32) {
    let pair = l.bit(if l.word.base() == 0x1ae { 70 } else { 72 });
    let a = l.reg(24, if pair { 2 } else { 1 });
    let c = if uniform && !descriptor { l.ureg(ureg) } else { Src::reg(255) };
    (a, c, if pair { PAIR } else { 0 })
}

fn offset24(l: &Lower<'_>) -> u32 {
    l.word.signed(40, 24) as u32
}

/// LDG and LD.
pub(crate) fn load(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (size, count) = size(l)?;
    let (a, c, pair) = global_address(l, 32, l.bit(91), l.bit(76));
    let run = match (l.word.base(), size) {
        (0x180, _) => Handlers::all(generic),
        (_, 0) => alu::whole::<LoadGlobal<0>>(),
        (_, 1) => alu::whole::<LoadGlobal<1>>(),
        (_, 2) => alu::whole::<LoadGlobal<2>>(),
        (_, 3) => alu::whole::<LoadGlobal<3>>(),
        (_, 4) => alu::whole::<LoadGlobal<4>>(),
        (_, 5) => alu::whole::<LoadGlobal<5>>(),
        _ => alu::whole::<LoadGlobal<6>>(),
    };
    // The predicate is stored as 7 - p.
    let ps = Pred { index: 7 - l.bits(64, 3) as u8, invert: -(l.bit(67) as i8) };
    let d = l.dst(count);
    Ok(Uop { d, a, c, ps, imm: offset24(l), mods: size | pair, ..l.uop(run) })
}

/// STG and ST.
pub(crate) fn store(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (size, count) = size(l)?;
    let (a, c, pair) = global_address(l, 64, l.bit(91), l.bit(76));
    let b = l.reg(32, count);
    let run = match (l.word.base(), size) {
        (0x185, _) => Handlers::all(generic),
        (_, 0 | 1) => alu::whole::<StoreGlobal<0>>(),
        (_, 2 | 3) => alu::whole::<StoreGlobal<2>>(),
        (_, 4) => alu::whole::<StoreGlobal<4>>(),
        (_, 5) => alu::whole::<StoreGlobal<5>>(),
        _ => alu::whole::<StoreGlobal<6>>(),
    };
    let aux = 1;
    Ok(Uop { a, b, c, imm: offset24(l), mods: size | pair, aux, ..l.uop(run) })
}

/// LDL and STL.
pub(crate) fn local_lower(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (size, count) = size(l)?;
    let stores = l.word.base() == 0x187;
    let c = match (l.bit(91), stores) {
        (true, true) => l.ureg(64),
        (true, false) => l.ureg(32),
        (false, _) => Src::reg(255),
    };
    let a = l.a();
    let mut u = Uop { a, c, imm: offset24(l), mods: size, aux: stores.into(), ..l.uop(Handlers::all(local)) };
    if stores {
        u.b = l.reg(32, count)
    } else {
        u.d = l.dst(count)
    }
    u.registers = l.uop(u.run).registers;
    Ok(u)
}

/// LDS and STS.
pub(crate) fn shared_lower(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (size, count) = size(l)?;
    let stores = l.word.base() == 0x188;
    let c = match (l.bit(91), stores) {
        (true, true) => l.ureg(64),
        (true, false) => l.ureg(32),
        (false, _) => Src::reg(255),
    };
    let scale = [0, 2, 3, 4][l.bits(78, 2) as usize];
    let (a, imm, mods) = (l.a(), offset24(l), size | scale << SCALE);
    if stores {
        let b = l.reg(32, count);
        let run = match size {
            0 | 1 => alu::whole::<SharedAccess<0, true>>(),
            2 | 3 => alu::whole::<SharedAccess<2, true>>(),
            4 => alu::whole::<SharedAccess<4, true>>(),
            5 => alu::whole::<SharedAccess<5, true>>(),
            _ => alu::whole::<SharedAccess<6, true>>(),
        };
        return Ok(Uop { a, b, c, imm, mods, ..l.uop(run) });
    }
    let run = match size {
        0 => alu::whole::<SharedAccess<0, false>>(),
        1 => alu::whole::<SharedAccess<1, false>>(),
        2 => alu::whole::<SharedAccess<2, false>>(),
        3 => alu::whole::<SharedAccess<3, false>>(),
        4 => alu::whole::<SharedAccess<4, false>>(),
        5 => alu::whole::<SharedAccess<5, false>>(),
        _ => alu::whole::<SharedAccess<6, false>>(),
    };
    let d = l.dst(count);
    Ok(Uop { d, a, c, imm, mods, ..l.uop(run) })
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
            let Some(p) = env.shared.get(at, 16) else {
                let size = env.shared.bytes();
                return out_of_range(env, u, "LDSM", at, size);
            };
            // SAFETY: 16 aligned bytes of the CTA's shared memory.
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
    let c = if l.bit(91) { l.ureg(32) } else { Src::reg(255) };
    Ok(Uop { d, a, c, imm: offset24(l), mods: count | how << 2, ..l.uop(Handlers::all(matrices)) })
}

fn global_to_shared(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let len = bytes(u.mods & SIZE);
    let uniform = w.get64(u.c, 0).wrapping_add(u.aux as i16 as u64);
    let on = w.pred(u.ps);
    for lane in lanes(exec) {
        let va = if u.mods & PAIR != 0 { w.get64(u.a, lane) } else { w.get(u.a, lane).into() };
        let va = va.wrapping_add(uniform);
        let at = w.get(u.b, lane).wrapping_add(u.imm);
        if va % u64::from(len) != 0 || !at.is_multiple_of(len) {
            return misaligned(env, u, "LDGSTS", if !at.is_multiple_of(len) { at.into() } else { va }, len);
        }
        let Some(to) = env.shared.get(at, len) else {
            let size = env.shared.bytes();
            return out_of_range(env, u, "LDGSTS to shared memory", at, size);
        };
        let mut data = [0u8; 16];
        if on >> lane & 1 == 0 && u.mods & ZFILL == 0 {
            continue;
        }
        if on >> lane & 1 == 1 {
            match env.tlb.get(va, len.into(), false, Access::Read) {
                Ok(p) if p.is_null() => {}
                // SAFETY: the translation covers `len` bytes, at most 16.
                Ok(p) => unsafe { std::ptr::copy_nonoverlapping(p, data.as_mut_ptr(), len as usize) },
                Err(miss) => return missed(env, u, "LDGSTS", va, miss),
            }
        }
        // SAFETY: `len` bytes, at most 16, are inside the CTA's shared memory.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), to, len as usize) };
    }
    Flow::Next
}

/// LDGSTS: completes at once, so that LDGDEPBAR and DEPBAR have nothing to wait for.
pub(crate) fn ldgsts(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (size, _) = size(l)?;
    if size < 4 {
        return Err(Refused("LDGSTS size"));
    }
    let (a, c, pair) = global_address(l, 64, l.bit(91), l.bit(76));
    let b = l.reg(16, 1);
    let imm = l.word.signed(44, 20) as u32;
    let aux = l.word.signed(32, 12) as i16 as u16;
    let mods = size | pair | if l.bit(82) { ZFILL } else { 0 };
    Ok(Uop { a, b, c, imm, mods, ps: l.ps(), aux, ..l.uop(Handlers::all(global_to_shared)) })
}

/// How many bytes shared and generic atomics may touch at a place, found like a load's.
pub(super) enum Target {
    Memory(*mut u8),
    /// Sparse: reads zero, keeps nothing.
    Nothing,
    Failed(Flow),
}

/// Memory for an atomic at a generic address.
pub(super) fn generic_target(env: &mut Env<'_>, u: &Uop, va: u64, len: u32) -> Target {
    match place(env, va) {
        Place::Local(_) => {
            let text = format!("atomic at {va:#x}, which is local memory");
            Target::Failed(env.warp_error(u, WarpError::AddressSpace, text))
        }
        Place::Shared(at) => match env.shared.get(at, len) {
            Some(p) => Target::Memory(p),
            None => {
                let size = env.shared.bytes();
                Target::Failed(out_of_range(env, u, "atomic on shared memory", at, size))
            }
        },
        Place::Global => global_target(env, u, va, len),
    }
}

/// Memory for an atomic at a global address.
pub(super) fn global_target(env: &mut Env<'_>, u: &Uop, va: u64, len: u32) -> Target {
    match env.tlb.get(va, len.into(), true, Access::Atomic) {
        Ok(p) if p.is_null() => Target::Nothing,
        Ok(p) => Target::Memory(p),
        Err(miss) => Target::Failed(missed(env, u, "atomic", va, miss)),
    }
}
