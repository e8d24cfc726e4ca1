//! The bytes that the lanes of an instruction access.
#![allow(unsafe_code)]

use super::env::Env;
use super::host::wide;
use super::mem::WINDOW;
use super::uop::Uop;
use super::warp::{Warp, lanes};
use crate::isa::memory::{Shape, Space};
use sm87_simd::Simd;

/// A kind of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Global memory, by virtual addresses.
    Global,
    /// The shared memory of the CTA, by offsets.
    Shared,
    /// The local memory of the thread, by offsets.
    Local,
}

impl Memory {
    /// Its name, for reports.
    pub fn name(self) -> &'static str {
        match self {
            Memory::Global => "global",
            Memory::Shared => "shared",
            Memory::Local => "local",
        }
    }
}

/// What one lane does.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// The lane.
    pub lane: u32,
    /// The memory that it accesses.
    pub memory: Memory,
    /// The address or offset there.
    pub at: u64,
    /// The number of bytes.
    pub len: u32,
    /// Whether it reads them.
    pub reads: bool,
    /// Whether it writes them.
    pub writes: bool,
    /// Whether it reads and writes them at once.
    pub atomic: bool,
}

impl Access {
    /// What it is, for reports.
    pub fn what(&self) -> &'static str {
        match (self.atomic, self.writes) {
            (true, _) => "atomic",
            (false, true) => "store",
            (false, false) => "load",
        }
    }
}

/// Where the accesses of an instruction are, if all are to one memory and of one size.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The memory.
    pub memory: Memory,
    /// The lowest address or offset.
    pub low: u64,
    /// The end of the highest access.
    pub end: u64,
    /// Whether each lane continues where the one before it ends.
    pub dense: bool,
}

impl Span {
    /// Where accesses are.
    pub fn of(accesses: &[Access]) -> Option<Span> {
        let &Access { memory, at, len, .. } = accesses.first()?;
        let (mut low, mut high, mut next, mut apart) = (at, at, at, false);
        let mut mixed = false;
        for access in accesses {
            mixed |= access.memory != memory || access.len != len;
            apart |= access.at != next;
            next = access.at.wrapping_add(len.into());
            (low, high) = (low.min(access.at), high.max(access.at));
        }
        let end = high.checked_add(len.into()).filter(|_| !mixed)?;
        Some(Span { memory, low, end, dense: !apart })
    }

    /// The number of bytes between the ends.
    #[allow(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> u64 {
        self.end - self.low
    }
}

/// The bit of `mods` that says that the address register is a pair, and the place of the shift of a shared address.
const PAIR: u32 = super::ops::memory::PAIR;
const SCALE: u32 = 4;

/// Whether the address register is a pair.
pub(crate) fn is_pair(u: &Uop) -> bool {
    u.mods & PAIR != 0
}

/// The lanes in `exec` that access memory. `shape` is what the row of the instruction says of its word.
#[inline(always)]
pub fn active(w: &Warp, u: &Uop, shape: &Shape, exec: u32) -> u32 {
    if shape.predicated { exec & w.pred(u.ps) } else { exec }
}

/// What the addresses of the lanes are made of.
pub struct Addresses<'w> {
    low: &'w [u32; 32],
    /// The high words, if the address register is a pair.
    high: Option<&'w [u32; 32]>,
    offset: u64,
}

impl<'w> Addresses<'w> {
    /// Those of the lanes of `w`. `shape` is what the row of the instruction says of its word.
    #[inline(always)]
    pub fn of(w: &'w Warp, u: &Uop, shape: &Shape) -> Addresses<'w> {
        let uniform = if shape.swaps { 0 } else { w.get64(u.c, 0) };
        let offset = (u.imm as i32 as u64).wrapping_add(uniform);
        let high = is_pair(u).then(|| w.lanes_of(u.a.plus(1)));
        Addresses { low: w.lanes_of(u.a), high, offset }
    }

    /// The address of a lane in global memory.
    #[inline(always)]
    pub fn wide(&self, lane: u32) -> u64 {
        let lane = lane as usize & 31;
        let high = self.high.map_or(0, |high| high[lane]);
        (u64::from(high) << 32 | u64::from(self.low[lane])).wrapping_add(self.offset)
    }

    /// The low words, if the high words of all lanes are the same. Then the lanes are as far apart as these.
    #[inline(always)]
    pub fn low(&self) -> Option<&'w [u32; 32]> {
        self.high.is_none_or(|high| lie_like(high, &[0; 32])).then_some(self.low)
    }

    /// The address of a lane in shared or local memory.
    #[inline(always)]
    fn narrow(&self, lane: u32, scale: u32) -> u64 {
        u64::from((self.low[lane as usize & 31] << scale).wrapping_add(self.offset as u32))
    }
}

/// Whether words differ from the first of them by these distances.
#[inline(always)]
pub fn lie_like(words: &[u32; 32], distances: &[u32; 32]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if super::host::avx2() {
        // SAFETY: the line above has found that the host has AVX2.
        return unsafe { lie_like_wide(words, distances) };
    }
    lie::<u32>(words, distances)
}

wide! {
    unsafe fn lie_like_wide(words: &[u32; 32], distances: &[u32; 32]) -> bool {
        lie::<sm87_simd::avx2::Avx2>(words, distances)
    }
}

#[inline(always)]
fn lie<V: Simd>(words: &[u32; 32], distances: &[u32; 32]) -> bool {
    let (first, mut other) = (V::splat(words[0]), V::splat(0));
    for at in (0..32).step_by(V::LANES) {
        // SAFETY: both have 32 words, and 32 is a multiple of the lanes of a vector.
        let (word, distance) = unsafe { (V::load(words.as_ptr().add(at)), V::load(distances.as_ptr().add(at))) };
        other = other.or(word.sub(first).xor(distance));
    }
    other.eq(V::splat(0)).to_bits() == V::ALL
}

/// Finds what the lanes in `exec` access, before they do. `shape` is what the row of the instruction says of its word.
pub fn find(out: &mut Vec<Access>, w: &Warp, env: &Env<'_>, u: &Uop, shape: &Shape, exec: u32) {
    out.clear();
    let &Shape { space, len, reads, writes, atomic, .. } = shape;
    // The rows are copied, because the compiler does not know that nobody changes them while accesses are written down.
    let (on, Addresses { low, high, offset }) = (active(w, u, shape, exec), Addresses::of(w, u, shape));
    let (low, high) = (*low, high.copied().unwrap_or([0; 32]));
    let addresses = Addresses { low: &low, high: Some(&high), offset };
    let access = |lane, memory, at| Access { lane, memory, at, len, reads, writes, atomic };
    let wide = |lane: u32| addresses.wide(lane);
    let scale = if shape.scaled { u.mods >> SCALE & 7 } else { 0 };
    let narrow = |lane: u32| addresses.narrow(lane, scale);
    match space {
        Space::Global => each(out, on, |lane| access(lane, Memory::Global, wide(lane))),
        Space::Shared => each(out, on, |lane| access(lane, Memory::Shared, narrow(lane))),
        Space::Local => each(out, on, |lane| access(lane, Memory::Local, narrow(lane))),
        Space::Generic => each(out, on, |lane| {
            let (memory, at) = place(env, wide(lane));
            access(lane, memory, at)
        }),
        // Eight lanes name the rows of each matrix.
        Space::Rows => {
            let naming = lanes(on).take_while(|lane| *lane < 8 << (u.mods & 3));
            out.extend(naming.map(|lane| access(lane, Memory::Shared, narrow(lane))));
        }
        Space::Copy => lanes(on).for_each(|lane| {
            let (from, to, read) = copied(w, u, lane, len);
            if w.pred(u.ps) >> lane & 1 == 1 && read > 0 {
                out.push(Access { len: read, writes: false, ..access(lane, Memory::Global, from) });
            }
            out.push(Access { reads: false, ..access(lane, Memory::Shared, to.into()) });
        }),
    }
}

/// The accesses of some lanes. Mostly it is all of them, and then their number is known beforehand.
#[inline(always)]
fn each(out: &mut Vec<Access>, on: u32, access: impl Fn(u32) -> Access) {
    if on == u32::MAX { out.extend((0..32).map(access)) } else { out.extend(lanes(on).map(access)) }
}

/// Where a generic address leads to.
fn place(env: &Env<'_>, va: u64) -> (Memory, u64) {
    let inside = |base: u64| base != 0 && va.wrapping_sub(base) < WINDOW;
    let (shared, local) = (env.launch().shared_window, env.launch().local_window);
    match () {
        () if inside(shared) => (Memory::Shared, va - shared),
        () if inside(local) => (Memory::Local, va - local),
        () => (Memory::Global, va),
    }
}

/// The source, the target and the number of bytes that are read by a lane of LDGSTS.
fn copied(w: &Warp, u: &Uop, lane: u32, len: u32) -> (u64, u32, u32) {
    const ZFILL: u32 = 1 << 8;
    let own = if is_pair(u) { w.get64(u.a, lane) } else { u64::from(w.get(u.a, lane)) };
    let from = own.wrapping_add(w.get64(u.c, 0)).wrapping_add(u.aux as i16 as u64);
    let zeros = if u.mods & ZFILL != 0 { from as u32 & (len - 1) } else { 0 };
    (from - u64::from(zeros), w.get(u.b, lane).wrapping_add(u.imm), len - zeros)
}
