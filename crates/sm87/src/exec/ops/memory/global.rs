//! LDG and STG.
#![allow(unsafe_code)]

use super::block::{load_all, load_block, load_rows, store_block};
use super::{PAIR, deposit, fetch, global_address, misaligned, missed, offset24, pair_bit, size, uniform_offset, zero};
use crate::exec::alu::{self, Whole};
use crate::exec::env::{Env, Memory};
use crate::exec::image::Image;
use crate::exec::known::{self, Bounds, Found, Numbers, Pattern, Places, Spot, arrange};
use crate::exec::linear::Lanes;
use crate::exec::lower::{Lower, Refused};
use crate::exec::mem::Tlb;
use crate::exec::record::{Operation, Recorder};
use crate::exec::rows::{Pred, pred};
use crate::exec::runs::Space;
use crate::exec::uop::{Flow, Handlers, Uop};
use crate::exec::warp::{Warp, lanes};
use crate::isa::Row;
use crate::isa::memory::bytes;
use sm87_simd::Simd;
use tegra_mm::Access;

/// The rows of addresses, and the high word that all must have.
struct Registers<V> {
    low: *const u32,
    high: Option<*const u32>,
    wanted: V,
}

impl<V: Simd> Numbers<V> for Registers<V> {
    #[inline(always)]
    fn at(&self, i: usize) -> V {
        // SAFETY: rows have 32 words.
        unsafe { V::load(self.low.add(i)) }
    }

    #[inline(always)]
    fn elsewhere(&self, i: usize) -> V {
        match self.high {
            // SAFETY: rows have 32 words; a pair was lowered as two rows.
            Some(high) => unsafe { V::load(high.add(i)).xor(self.wanted) },
            None => V::splat(0),
        }
    }
}

/// The address of the first of some lanes, and what it is made of.
struct First {
    va: u64,
    low: u32,
    high: u32,
    uniform: u64,
}

impl First {
    #[inline(always)]
    fn of(w: &Warp, u: &Uop, on: u32) -> First {
        let (lane, is_pair, uniform) = (on.trailing_zeros(), u.mods & PAIR != 0, uniform(w, u));
        let (low, high) = (w.get(u.a, lane), if is_pair { w.get(u.a.plus(1), lane) } else { 0 });
        First { va: uniform.wrapping_add(u64::from(low) | u64::from(high) << 32), low, high, uniform }
    }

    /// The registers of the lanes with whose first one this is.
    #[inline(always)]
    fn registers<V: Simd>(&self, w: &Warp, u: &Uop) -> Registers<V> {
        let high = (u.mods & PAIR != 0).then(|| w.src(u.a.plus(1)));
        Registers { low: w.src(u.a), high, wanted: V::splat(self.high) }
    }

    /// Where the lanes in `on` are if they lie as in the access that `spot` knows, in the same extent.
    #[inline(always)]
    fn again<V: Simd, const SIZE: u32>(&self, w: &Warp, u: &Uop, on: u32, spot: &Spot) -> Option<Found> {
        let len = const { bytes(SIZE) };
        let found = spot.found(self.low, self.high, self.uniform)?;
        let is_aligned = self.va & u64::from(len - 1) == 0;
        (is_aligned && spot.layout.is_of(on, len, self.low, &self.registers::<V>(w, u))).then_some(found)
    }
}

/// Finds where the lanes of an access are, and keeps that with how they lie. `None` if a lane is in another extent than the first active
/// one, or misaligned.
#[inline(always)]
fn find<V: Simd, const SIZE: u32>(
    w: &Warp,
    tlb: &mut Tlb<'_>,
    u: &Uop,
    on: u32,
    write: bool,
    spot: &mut Spot,
) -> Option<Found> {
    let (first, len) = (First::of(w, u, on), const { bytes(SIZE) });
    if let Some(found) = first.again::<V, SIZE>(w, u, on, spot) {
        return Some(found);
    }
    let First { va, low, high, uniform } = first;
    if va & u64::from(len - 1) != 0 {
        return None;
    }
    let access = if write { Access::Write } else { Access::Read };
    let p = tlb.get(va, len.into(), write, access).ok().filter(|p| !p.is_null())?;
    let (before, size) = tlb.around(va);
    let behind = (size - before).checked_sub(len.into())?;
    // The distance of a lane's address from the first lane's is the distance of their low words.
    let bounds = Bounds {
        first: low,
        least: u64::from(low).saturating_sub(before) as u32,
        most: (u64::from(low) + behind).min(u32::MAX.into()) as u32,
    };
    arrange::<V, SIZE>(&mut spot.layout, on, bounds, &first.registers::<V>(w, u))?;
    let (least, most) = spot.layout.span(low);
    let found = Found { first: p, back: i64::from(bounds.least) - least, ahead: i64::from(bounds.most) - most };
    spot.keep(low, high, uniform, found);
    Some(found)
}

/// Writes down the load of a word.
fn write_down(u: &Uop, recorder: &mut Recorder<'_>) {
    let space = if u.mods & PAIR != 0 { Space::Pairs } else { Space::Words };
    recorder.load(u, space);
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

/// Whether an LDG loads a word.
pub(crate) fn is_word(u: &Uop) -> bool {
    u.mods & super::SIZE == 4
}

/// A load. Most continue a chain, whose places are known. All others are a function of its own, because it needs so many of the host's
/// registers that to save them would take a third of the time of a load whose places are known.
struct LoadGlobal<const SIZE: u32>;
impl<const SIZE: u32> Whole for LoadGlobal<SIZE> {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        // What excludes lanes from a load of a chain has excluded them from `exec`.
        let len = const { bytes(SIZE) };
        let chain = env.memory.known.of(u, len);
        if exec != u32::MAX || SIZE <= 4 && chain.last().layout.how == Pattern::Scattered {
            return alu::apart::<V, LoadAnew<SIZE>>(w, env, u, exec);
        }
        match chain.places(w, u, u32::MAX, len) {
            Some(places) => {
                chain.fetch_ahead(places, len);
                // SAFETY: `find` found every lane of the chain's first load inside the extent, and `places` those of this one.
                unsafe { load_all::<V, SIZE>(w, u, places) };
                Flow::Next
            }
            None => alu::apart::<V, LoadAgain<SIZE>>(w, env, u, exec),
        }
    }
}

/// A load of all lanes with which a chain begins anew. Mostly it is one of a loop: its lanes lie as in the turn before.
struct LoadAgain<const SIZE: u32>;
impl<const SIZE: u32> Whole for LoadAgain<SIZE> {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        let (on, len) = (exec & w.pred(u.ps), const { bytes(SIZE) });
        let chain = env.memory.known.of(u, len);
        if on == u32::MAX
            && let Some(found) = First::of(w, u, on).again::<V, SIZE>(w, u, u32::MAX, chain.last())
        {
            chain.keep(w, u, on, found);
            let places = chain.at(known::offset(u));
            chain.fetch_ahead(places, len);
            // SAFETY: `again` found every lane inside the extent.
            unsafe { load_all::<V, SIZE>(w, u, places) };
            return Flow::Next;
        }
        alu::apart::<V, LoadAnew<SIZE>>(w, env, u, exec)
    }
}

/// A load of which nothing is known, or only some lanes are active, or that is executed together with others.
struct LoadAnew<const SIZE: u32>;
impl<const SIZE: u32> Whole for LoadAnew<SIZE> {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        let on = exec & w.pred(u.ps);
        if on != exec {
            zero(w, u, SIZE, exec & !on);
            if on == 0 {
                return Flow::Next;
            }
        }
        match on {
            u32::MAX => load_together::<V, SIZE, true>(w, env, u, on),
            _ if on.is_power_of_two() => load_lanes::<SIZE>(w, env, u, on),
            _ => load_together::<V, SIZE, false>(w, env, u, on),
        }
    }
}

/// Executes a load for the lanes in `on` together, which are `ALL` or not, and the loads that follow if they are of one piece.
#[inline(always)]
fn load_together<V: Simd, const SIZE: u32, const ALL: bool>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, on: u32) -> Flow {
    let on = if ALL { u32::MAX } else { on };
    let (offset, len) = (known::offset(u), const { bytes(SIZE) });
    let Env { memory: Memory { known, tlb, .. }, image, outcome, .. } = env;
    let chain = known.of(u, len);
    if chain.places(w, u, on, len).is_none() {
        let spot = chain.spot();
        // Loads of a chain often have different predicates. Where the lanes are is the same for all of them, if it can be told of all
        // lanes of the warp.
        let mut of = if ALL || spot.layout.lanes == on { on } else { w.active | on };
        let found = loop {
            match find::<V, SIZE>(w, tlb, u, of, false, spot) {
                Some(found) => break found,
                None if of == on => return load_lanes::<SIZE>(w, env, u, on),
                None => of = on,
            }
        };
        chain.keep(w, u, of, found);
    }
    let places = chain.at(offset);
    if SIZE == 4 && places.are_scattered() {
        let n = joined(w, u, image, |moved| chain.fits(offset + moved, len));
        if n > 1 {
            // SAFETY: `find` found every lane of the chain's first load inside the extent, and `fits` those of the others.
            unsafe { load_rows::<V>(w, &image.uops[u.at as usize..][..n], on, places) };
            chain.fetch_next(places, on, 4 * n);
            outcome.together = n as u32 - 1;
            return Flow::Together;
        }
    }
    chain.fetch_ahead(places, len);
    // SAFETY: `find` found every lane of the chain's first load inside the extent, and `fits` those of this one.
    unsafe { load_block::<V, SIZE>(w, u, on, places) };
    Flow::Next
}

/// How many loads of words that follow each other in memory are executed together, from `u` on: a multiple of four.
#[inline(always)]
fn joined(w: &Warp, u: &Uop, image: &Image, fits: impl Fn(i64) -> bool) -> usize {
    let loads = u32::from(image.runs[u.at as usize].loading);
    // Where other lanes wait, they join.
    let n = loads.min(w.switch_at.saturating_sub(u.at)) & !3;
    if n > 0 && fits(i64::from(4 * (n - 1))) { n as usize } else { 0 }
}

/// Executes a load one lane at a time. This serves several extents, sparse extents and faults.
fn load_lanes<const SIZE: u32>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, on: u32) -> Flow {
    let len = const { bytes(SIZE) };
    for lane in lanes(on) {
        let at = address(w, u, lane);
        if !at.is_multiple_of(u64::from(len)) {
            return misaligned(env, u, "global load", at, len);
        }
        match env.memory.tlb.get(at, len.into(), false, Access::Read) {
            // SAFETY: the translation covers `len` bytes.
            Ok(p) if !p.is_null() => unsafe { fetch(w, u, SIZE, lane, p) },
            Ok(_) => zero(w, u, SIZE, 1 << lane),
            Err(miss) => return missed(env, u, "global load", at, miss),
        }
    }
    Flow::Next
}

/// A store. Mostly it is one of a loop: its lanes lie in a row, as in the turn before.
struct StoreGlobal<const SIZE: u32>;
impl<const SIZE: u32> Whole for StoreGlobal<SIZE> {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        let spot = env.memory.known.of_store(u);
        if exec == u32::MAX
            && spot.layout.how == Pattern::Row
            && let Some(found) = First::of(w, u, exec).again::<V, SIZE>(w, u, u32::MAX, spot)
        {
            // SAFETY: `again` found every lane inside the extent, which is writable.
            unsafe { store_block::<V, SIZE>(w, u, u32::MAX, Places::new(found.first, &spot.layout)) };
            return Flow::Next;
        }
        alu::apart::<V, StoreAnew<SIZE>>(w, env, u, exec)
    }
}

/// A store of which nothing is known, or of some lanes, or whose lanes are not in a row.
struct StoreAnew<const SIZE: u32>;
impl<const SIZE: u32> Whole for StoreAnew<SIZE> {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        if exec.is_power_of_two() {
            return store_lanes::<SIZE>(w, env, u, exec);
        }
        let spot = env.memory.known.of_store(u);
        match find::<V, SIZE>(w, &mut env.memory.tlb, u, exec, true, spot) {
            Some(Found { first, .. }) => {
                // SAFETY: `find` found every lane inside the extent, and the extent writable.
                unsafe { store_block::<V, SIZE>(w, u, exec, Places::new(first, &spot.layout)) };
                Flow::Next
            }
            None => store_lanes::<SIZE>(w, env, u, exec),
        }
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
        match env.memory.tlb.get(at, len.into(), true, Access::Write) {
            // SAFETY: the translation covers `len` bytes and permits writes.
            Ok(p) if !p.is_null() => unsafe { deposit(w, u, SIZE, lane, p) },
            Ok(_) => {}
            Err(miss) => return missed(env, u, "global store", at, miss),
        }
    }
    Flow::Next
}

/// A load or store whose places are known before it is executed. `imm` is its number.
struct LoadLinear<const SIZE: u32>;
impl<const SIZE: u32> Whole for LoadLinear<SIZE> {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        let places = env.memory.linear.places(w.index, u.imm);
        env.memory.linear.fetch_next(u.imm, places);
        // SAFETY: `Linear::reach` has found all lanes of all warps inside the extent.
        unsafe { load_block::<V, SIZE>(w, u, exec, places) };
        Flow::Next
    }
}

struct StoreLinear<const SIZE: u32>;
impl<const SIZE: u32> Whole for StoreLinear<SIZE> {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        let places = env.memory.linear.places(w.index, u.imm);
        // SAFETY: as for a load. The extent is writable.
        unsafe { store_block::<V, SIZE>(w, u, exec, places) };
        Flow::Next
    }
}

/// The micro-op of an LDG or STG whose places are known: those of the access with this number.
pub(crate) fn linear(u: &Uop, opcode: Option<&Row>, number: u32) -> Uop {
    let run = match (opcode.is_some_and(|row| row.effects.loads_global()), u.mods & super::SIZE) {
        (true, 0) => alu::whole::<LoadLinear<0>>(),
        (true, 1) => alu::whole::<LoadLinear<1>>(),
        (true, 2) => alu::whole::<LoadLinear<2>>(),
        (true, 3) => alu::whole::<LoadLinear<3>>(),
        (true, 4) => alu::whole::<LoadLinear<4>>(),
        (true, 5) => alu::whole::<LoadLinear<5>>(),
        (true, _) => alu::whole::<LoadLinear<6>>(),
        (false, 0 | 1) => alu::whole::<StoreLinear<0>>(),
        (false, 2 | 3) => alu::whole::<StoreLinear<2>>(),
        (false, 4) => alu::whole::<StoreLinear<4>>(),
        (false, 5) => alu::whole::<StoreLinear<5>>(),
        (false, _) => alu::whole::<StoreLinear<6>>(),
    };
    Uop { run, imm: number, ..*u }
}

/// Finds where the lanes of an access are, and leaves that in what is known of the opening.
struct Locate<const SIZE: u32, const WRITES: bool>;
impl<const SIZE: u32, const WRITES: bool> Whole for Locate<SIZE, WRITES> {
    #[inline(always)]
    fn run<V: Simd>(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        let Memory { tlb, linear, .. } = &mut env.memory;
        let mut spot = Spot::NONE;
        let found = find::<V, SIZE>(w, tlb, u, exec, WRITES, &mut spot);
        linear.located = found.map(|found| Lanes { found, layout: spot.layout });
        Flow::Next
    }
}

/// The handlers that find where the lanes of an LDG or STG are.
pub(crate) fn locating(u: &Uop, opcode: Option<&Row>) -> Handlers {
    match (opcode.is_some_and(|row| row.effects.loads_global()), u.mods & super::SIZE) {
        (true, 0 | 1) => alu::whole::<Locate<0, false>>(),
        (true, 2 | 3) => alu::whole::<Locate<2, false>>(),
        (true, 4) => alu::whole::<Locate<4, false>>(),
        (true, 5) => alu::whole::<Locate<5, false>>(),
        (true, _) => alu::whole::<Locate<6, false>>(),
        (false, 0 | 1) => alu::whole::<Locate<0, true>>(),
        (false, 2 | 3) => alu::whole::<Locate<2, true>>(),
        (false, 4) => alu::whole::<Locate<4, true>>(),
        (false, 5) => alu::whole::<Locate<5, true>>(),
        (false, _) => alu::whole::<Locate<6, true>>(),
    }
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
    let operation = Operation { run, record: (size == 4).then_some(write_down) };
    let d = l.dst(count);
    Ok(Uop { d, a, c, ps: load_predicate(l), imm: offset24(l), mods: size | pair, ..l.uop(operation) })
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
