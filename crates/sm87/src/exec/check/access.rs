//! The bytes that the lanes of an instruction access.

use super::plan::{Shape, Space};
use crate::exec::env::Env;
use crate::exec::mem::WINDOW;
use crate::exec::uop::Uop;
use crate::exec::warp::{Warp, lanes};

/// A kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    Global,
    Shared,
    Local,
}

impl Memory {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Memory::Global => "global",
            Memory::Shared => "shared",
            Memory::Local => "local",
        }
    }
}

/// What one lane does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub lane: u32,
    pub memory: Memory,
    pub at: u64,
    pub len: u32,
    pub reads: bool,
    pub writes: bool,
    pub atomic: bool,
}

impl Access {
    /// What it is, for reports.
    pub(crate) fn what(&self) -> &'static str {
        match (self.atomic, self.writes) {
            (true, _) => "atomic",
            (false, true) => "store",
            (false, false) => "load",
        }
    }
}

/// The bit of `mods` that says that the address register is a pair, and the place of the shift of a shared address.
const PAIR: u32 = crate::exec::ops::memory::PAIR;
const SCALE: u32 = 4;

/// Whether the address register is a pair.
pub(crate) fn is_pair(u: &Uop) -> bool {
    u.mods & PAIR != 0
}

/// Finds what the lanes in `exec` access, before they do.
pub(crate) fn find(out: &mut Vec<Access>, w: &Warp, env: &Env<'_>, u: &Uop, shape: Shape, exec: u32) {
    out.clear();
    let Shape { space, len, reads, writes, atomic, .. } = shape;
    let on = if shape.predicated { exec & w.pred(u.ps) } else { exec };
    let own = |lane| if u.mods & PAIR != 0 { w.get64(u.a, lane) } else { u64::from(w.get(u.a, lane)) };
    let uniform = if shape.swaps { 0 } else { w.get64(u.c, 0) };
    for lane in lanes(on) {
        let access = |memory, at| Access { lane, memory, at, len, reads, writes, atomic };
        let wide = || own(lane).wrapping_add(u.imm as i32 as u64).wrapping_add(uniform);
        let narrow = |scale: u32| (w.get(u.a, lane) << scale).wrapping_add(u.imm).wrapping_add(uniform as u32);
        match space {
            Space::Global => out.push(access(Memory::Global, wide())),
            Space::Generic => {
                let (memory, at) = place(env, wide());
                out.push(access(memory, at));
            }
            Space::Shared => {
                let scale = if shape.scaled { u.mods >> SCALE & 7 } else { 0 };
                out.push(access(Memory::Shared, narrow(scale).into()));
            }
            Space::Local => out.push(access(Memory::Local, narrow(0).into())),
            // Eight lanes name the rows of each matrix.
            Space::Rows if lane < 8 << (u.mods & 3) => out.push(access(Memory::Shared, narrow(0).into())),
            Space::Rows => {}
            Space::Copy => {
                let (from, to, read) = copied(w, u, lane, len);
                if w.pred(u.ps) >> lane & 1 == 1 && read > 0 {
                    let one = access(Memory::Global, from);
                    out.push(Access { len: read, writes: false, ..one });
                }
                out.push(Access { reads: false, ..access(Memory::Shared, to.into()) });
            }
        }
    }
}

/// Where a generic address leads to.
fn place(env: &Env<'_>, va: u64) -> (Memory, u64) {
    let inside = |base: u64| base != 0 && va.wrapping_sub(base) < WINDOW;
    let (shared, local) = (env.launch.shared_window, env.launch.local_window);
    match () {
        () if inside(shared) => (Memory::Shared, va - shared),
        () if inside(local) => (Memory::Local, va - local),
        () => (Memory::Global, va),
    }
}

/// The source, the target and the number of bytes that are read by a lane of LDGSTS.
fn copied(w: &Warp, u: &Uop, lane: u32, len: u32) -> (u64, u32, u32) {
    const ZFILL: u32 = 1 << 8;
    let own = if u.mods & PAIR != 0 { w.get64(u.a, lane) } else { u64::from(w.get(u.a, lane)) };
    let from = own.wrapping_add(w.get64(u.c, 0)).wrapping_add(u.aux as i16 as u64);
    let zeros = if u.mods & ZFILL != 0 { from as u32 & (len - 1) } else { 0 };
    (from - u64::from(zeros), w.get(u.b, lane).wrapping_add(u.imm), len - zeros)
}
