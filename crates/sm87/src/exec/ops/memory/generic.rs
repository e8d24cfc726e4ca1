//! LD and ST, whose addresses may lie in any memory space, and QSPC, which asks in which space an address lies.
#![allow(unsafe_code)]

use super::global::load_predicate;
use super::local::local_lane;
use super::{
    SIZE, addresses, deposit, fetch, global_address, misaligned, missed, offset24, out_of_range, pair_bit, size,
    uniform_offset, zero,
};
use crate::exec::env::Env;
use crate::exec::lower::{Lower, Refused};
use crate::exec::mem::WINDOW;
use crate::exec::uop::{Flow, Handlers, Uop};
use crate::exec::warp::{Warp, lanes};
use crate::isa::memory::bytes;
use tegra_mm::Access;

/// The flag of `aux` that marks a store.
const STORE: u16 = 1;

/// The memory that a generic address leads to.
enum Place {
    Global,
    Shared(u32),
    Local(u32),
}

fn place(env: &Env<'_>, va: u64) -> Place {
    let inside = |base: u64| base != 0 && va.wrapping_sub(base) < WINDOW;
    let (shared, local) = (env.launch().shared_window, env.launch().local_window);
    if inside(shared) {
        Place::Shared((va - shared) as u32)
    } else if inside(local) {
        Place::Local((va - local) as u32)
    } else {
        Place::Global
    }
}

fn generic(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let (size, store) = (u.mods & SIZE, u.aux & STORE != 0);
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
            Place::Shared(at) => match env.memory.shared.get(at, len) {
                Some(p) => p,
                None => {
                    let size = env.memory.shared.bytes();
                    return out_of_range(env, u, "generic access to shared memory", at, size);
                }
            },
            Place::Global => {
                let access = if store { Access::Write } else { Access::Read };
                match env.memory.tlb.get(at, len.into(), store, access) {
                    Ok(p) => p,
                    Err(miss) => return missed(env, u, "generic access", at, miss),
                }
            }
        };
        match (p.is_null(), store) {
            (true, true) => {}
            (true, false) => zero(w, u, size, 1 << lane),
            // SAFETY: the place covers `len` bytes and permits writes.
            (false, true) => unsafe { deposit(w, u, size, lane, p) },
            // SAFETY: the place covers `len` bytes and permits reads.
            (false, false) => unsafe { fetch(w, u, size, lane, p) },
        }
    }
    Flow::Next
}

/// The offset of a generic access. It has 32 bits, unless a uniform register uses some of them.
fn offset(l: &Lower<'_>) -> u32 {
    if l.bit(91) { offset24(l) } else { l.bits(32, 32) }
}

pub(crate) fn load(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (size, count) = size(l)?;
    let (a, c, pair) = global_address(l, pair_bit(l), uniform_offset(l, 32));
    let d = l.dst(count);
    Ok(Uop { d, a, c, ps: load_predicate(l), imm: offset(l), mods: size | pair, ..l.uop(Handlers::all(generic)) })
}

pub(crate) fn store(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (size, count) = size(l)?;
    let (a, c, pair) = global_address(l, pair_bit(l), uniform_offset(l, 64));
    // The offset uses the bits of the data register, which moves to the third operand.
    let b = l.reg(if l.bit(91) { 32 } else { 64 }, count);
    Ok(Uop { a, b, c, imm: offset(l), mods: size | pair, aux: STORE, ..l.uop(Handlers::all(generic)) })
}

fn in_space(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let va = addresses(w, u, w.get64(u.c, 0));
    let inside = lanes(exec).filter(|&l| match place(env, va[l as usize]) {
        Place::Global => u.aux == 0,
        Place::Local(_) => u.aux == 1,
        Place::Shared(_) => u.aux == 2,
    });
    let inside = inside.fold(0, |m, l| m | 1 << l);
    w.set_pred(u.pd, exec, inside);
    Flow::Next
}

/// QSPC says whether addresses lie in global, local or shared memory.
pub(crate) fn query_space(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    if l.bits(16, 8) != 255 {
        return Err(Refused("QSPC with a register result"));
    }
    let (a, c, pair) = global_address(l, pair_bit(l), uniform_offset(l, 32));
    let aux = l.bits(73, 2) as u16;
    Ok(Uop { a, c, pd: l.pdst(81), imm: offset24(l), mods: pair, aux, ..l.uop(Handlers::all(in_space)) })
}

/// The memory that an atomic changes. It is found as a load finds its memory.
pub(in super::super) enum Target {
    Memory(*mut u8),
    /// The mapping is sparse: reads give zero, and writes are dropped.
    Nothing,
    /// The address lies in this space, which does not have the operation.
    Elsewhere(&'static str),
    Failed(Flow),
}

/// The memory spaces that have an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Spaces {
    Global,
    Shared,
    Both,
}

/// Finds the memory for an atomic at a generic address.
pub(in super::super) fn generic_target(env: &mut Env<'_>, u: &Uop, va: u64, len: u32, spaces: Spaces) -> Target {
    match place(env, va) {
        Place::Local(_) => Target::Elsewhere("local"),
        Place::Shared(_) if spaces == Spaces::Global => Target::Elsewhere("shared"),
        Place::Global if spaces == Spaces::Shared => Target::Elsewhere("global"),
        Place::Shared(at) => match env.memory.shared.get(at, len) {
            Some(p) => Target::Memory(p),
            None => {
                let size = env.memory.shared.bytes();
                Target::Failed(out_of_range(env, u, "atomic on shared memory", at, size))
            }
        },
        Place::Global => global_target(env, u, va, len),
    }
}

/// Finds the memory for an atomic at a global address.
pub(in super::super) fn global_target(env: &mut Env<'_>, u: &Uop, va: u64, len: u32) -> Target {
    match env.memory.tlb.get(va, len.into(), true, Access::Atomic) {
        Ok(p) if p.is_null() => Target::Nothing,
        Ok(p) => Target::Memory(p),
        Err(miss) => Target::Failed(missed(env, u, "atomic", va, miss)),
    }
}
