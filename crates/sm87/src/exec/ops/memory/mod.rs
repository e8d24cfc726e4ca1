//! The loads and stores LDG, STG, LD, ST, LDL, STL, LDS and STS, and LDSM and LDGSTS.
//!
//! `block` executes many lanes together in one block of memory. `global`, `generic`, `local` and `shared` are the
//! memory spaces. [`crate::exec::known`] keeps what a load found out for the next one. `copy` has LDGSTS.
#![allow(unsafe_code)]

mod block;
mod copy;
mod generic;
mod global;
mod local;
mod shared;

pub(crate) use copy::ldgsts;
pub(super) use generic::{Spaces, Target, generic_target, global_target};
pub(crate) use generic::{load as load_generic, query_space, store as store_generic};
pub(crate) use global::{is_word, linear, load, locating, store};
pub(crate) use local::{load as load_local, store as store_local};
pub(crate) use shared::{ldsm, load as load_shared, store as store_shared};

use super::special::extend;
use crate::exec::env::{Env, WarpError};
use crate::exec::lower::{Lower, Refused};
use crate::exec::mem::Miss;
use crate::exec::rows::Src;
use crate::exec::uop::{Flow, Uop};
use crate::exec::warp::{Warp, lanes};
use crate::isa::memory::{Space, bytes, registers};
use crate::isa::{self, Effects};
use tegra_mm::whole;

/// The bits of `mods`: the size field, and then the flags.
pub(super) const SIZE: u32 = 7;
/// The flag that says that the address register is a pair.
pub(crate) const PAIR: u32 = 8;

/// The 64-bit addresses of all lanes: the register, the instruction's offset and a uniform offset are added.
#[inline(always)]
pub(super) fn addresses(w: &Warp, u: &Uop, uniform: u64) -> [u64; 32] {
    let uniform = uniform.wrapping_add(u.imm as i32 as u64);
    let mut va = [0; 32];
    // SAFETY: rows have 32 words.
    let lo = unsafe { w.src(u.a).cast::<[u32; 32]>().read() };
    if u.mods & PAIR != 0 {
        // SAFETY: rows have 32 words, and the pair was lowered as two rows.
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

/// The lane in `mask` whose address register leads to `va`. The result is `None` if there is no such lane: the instruction gets its
/// address in another way, or it has already overwritten the register.
#[cold]
pub(crate) fn lane_of(w: &Warp, u: &Uop, effects: &Effects, mask: u32, va: u64) -> Option<u32> {
    let memory = effects.memory()?;
    if !matches!(memory.access, isa::memory::Access::Load | isa::memory::Access::Store) || memory.space == Space::Rows {
        return None;
    }
    let offset = (u.imm as i32 as u64).wrapping_add(w.get64(u.c, 0));
    lanes(mask).find(|&lane| {
        let register = if u.mods & PAIR != 0 { w.get64(u.a, lane) } else { w.get(u.a, lane).into() };
        let at = register.wrapping_add(offset);
        // Shared and local addresses have fewer bits.
        at == va || at as u32 as u64 == va || at & 0xff_ffff == va
    })
}

#[cold]
pub(super) fn misaligned(env: &mut Env<'_>, u: &Uop, what: &str, va: u64, len: u32) -> Flow {
    let found = va & (u64::from(len) - 1);
    let text = format!("{what} of {len} bytes at {va:#x}: misaligned by {found}");
    env.outcome.accessed = Some((va, len));
    env.warp_error(u, WarpError::MisalignedAddress, text)
}

#[cold]
pub(super) fn missed(env: &mut Env<'_>, u: &Uop, what: &str, va: u64, miss: Miss) -> Flow {
    env.outcome.accessed = Some((va, 0));
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
    env.outcome.accessed = Some((at.into(), 0));
    env.warp_error(u, WarpError::AddressRange, text)
}

/// Reads the bytes of `size` at `p` into lane `lane` of the destination.
///
/// # Safety
/// `p` is readable for that many bytes and aligned to them.
#[inline(always)]
unsafe fn fetch(w: &mut Warp, u: &Uop, size: u32, lane: u32, p: *const u8) {
    // SAFETY: callers have looked `p` up for the bytes of `size` and have refused misaligned addresses. The reads are
    // volatile, because other threads and the CPU may write there.
    unsafe {
        match size {
            0 | 1 => w.put(u.d, lane, extend(size, p.read_volatile().into(), 0)),
            2 | 3 => w.put(u.d, lane, extend(size, p.cast::<u16>().read_volatile().into(), 0)),
            0..=4 => w.put(u.d, lane, p.cast::<u32>().read_volatile()),
            // All words of a lane are read in one access. A program that writes them at once is never seen with some of
            // them written.
            5 => w.put64(u.d, lane, p.cast::<u64>().read_volatile()),
            _ => {
                let x = whole::load(p);
                w.put64(u.d, lane, x as u64);
                w.put64(u.d.plus(2), lane, (x >> 64) as u64);
            }
        }
    }
}

/// Writes lane `lane` of the source `b` to `p`.
///
/// # Safety
/// `p` is writable for the bytes of `size` and aligned to them.
#[inline(always)]
unsafe fn deposit(w: &Warp, u: &Uop, size: u32, lane: u32, p: *mut u8) {
    // SAFETY: callers have looked `p` up for writes of the bytes of `size` and have refused misaligned addresses.
    unsafe {
        match size {
            0 | 1 => p.write_volatile(w.get(u.b, lane) as u8),
            2 | 3 => p.cast::<u16>().write_volatile(w.get(u.b, lane) as u16),
            0..=4 => p.cast::<u32>().write_volatile(w.get(u.b, lane)),
            5 => p.cast::<u64>().write_volatile(w.get64(u.b, lane)),
            _ => whole::store(p, u128::from(w.get64(u.b, lane)) | u128::from(w.get64(u.b.plus(2), lane)) << 64),
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

fn size(l: &Lower<'_>) -> Result<(u32, u8), Refused> {
    let size = l.bits(73, 3);
    Ok((size, registers(size).ok_or(Refused("memory access size"))?))
}

/// The address of a global or generic access. It has a register (a pair if bit `pair` is set), and a uniform offset at
/// bit `ureg` if there is one.
pub(super) fn global_address(l: &mut Lower<'_>, pair: u32, ureg: Option<u32>) -> (Src, Src, u32) {
    let pair = l.bit(pair);
    let a = l.reg(24, if pair { 2 } else { 1 });
    let c = ureg.map_or(Src::reg(255), |lo| l.ureg(lo));
    (a, c, if pair { PAIR } else { 0 })
}

/// The bit that says whether the address register of a load or store is a pair. With a uniform operand it is another
/// bit.
fn pair_bit(l: &Lower<'_>) -> u32 {
    if l.bit(91) { 90 } else { 72 }
}

/// The bit at which the uniform offset of a load or store is. There is no offset if the operand is missing or is a
/// memory descriptor.
fn uniform_offset(l: &Lower<'_>, lo: u32) -> Option<u32> {
    (l.bit(91) && !l.bit(76)).then_some(lo)
}

fn offset24(l: &Lower<'_>) -> u32 {
    l.word.signed(40, 24) as u32
}
