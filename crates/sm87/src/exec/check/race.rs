//! Races: two accesses to one place, at least one of them a store, between which nothing makes an order.
//!
//! Barriers, fences with what is stored behind them, and atomics make an order. Where machine code does not show whether
//! there is one, there is taken to be one: what is reported is a race, and not every race is reported.

use super::access::{Access, Memory};
use super::cells::{Cell, Cells, Stamp};
use super::order::{Order, Times, WARPS, join};
use super::plan::Shape;
use super::quick::Quick;
use super::written::Pages;
use super::{Inspector, Part};
use crate::check::Kind;
use crate::exec::env::Env;
use crate::exec::image::Image;
use crate::exec::uop::Uop;
use crate::exec::warp::Warp;
use parking_lot::Mutex;
use std::ops::Range;
use std::sync::Arc;
use tegra_mm::Backing;

/// What was told through a word of global memory.
#[derive(Debug, Default)]
struct Told {
    /// How often something was told.
    news: u64,
    /// The times of CTAs.
    ctas: Quick<u32, u32>,
    /// What the warps of each CTA knew that told something.
    own: Quick<u32, Times>,
}

/// Global memory as a launch has used it.
#[derive(Debug, Default)]
pub(crate) struct World {
    /// What was written to it.
    pub(super) pages: Pages,
    /// The program in which every instruction is looked at, once a CTA needed it.
    pub(super) whole: Option<Arc<Image>>,
    cells: Cells,
    words: Quick<u64, Told>,
}

/// The accesses of a CTA, and of all CTAs of its launch.
#[derive(Debug)]
pub(crate) struct Races {
    pub(super) order: Order,
    shared: Vec<Cell>,
    world: Arc<Mutex<World>>,
    execution: u32,
    cta: u32,
    place: Place,
}

/// Where the memory of the buffer is that was stored to last.
#[derive(Debug, Default)]
struct Place {
    addresses: Range<u64>,
    backing: Option<Arc<Backing>>,
    offset: usize,
}

impl Place {
    /// Reads what global memory holds.
    fn read(&mut self, env: &Env<'_>, at: u64, bytes: &mut [u8]) -> bool {
        if !self.addresses.contains(&at) {
            let Some(extent) = env.launch.table.find(at) else { return false };
            let (addresses, backing) = (extent.va..extent.end(), extent.backing.clone());
            *self = Place { addresses, backing, offset: extent.offset };
        }
        let offset = self.offset + (at - self.addresses.start) as usize;
        self.backing.as_ref().is_some_and(|backing| backing.read(offset, bytes))
    }
}

/// An access that the one that is made now may race with.
struct Conflict {
    with: Stamp,
    wrote: bool,
}

/// The last accesses to a word of shared memory or of the world's.
#[inline(always)]
fn cell<'c>(shared: &'c mut [Cell], global: &'c mut Cells, memory: Memory, word: u64) -> Option<&'c mut Cell> {
    if memory == Memory::Shared { shared.get_mut(word as usize / 4) } else { global.at(word) }
}

impl Races {
    /// Nothing was accessed.
    pub(super) fn new(world: &Arc<Mutex<World>>, shared_bytes: u32) -> Box<Races> {
        let shared = vec![Cell::default(); shared_bytes.div_ceil(4) as usize];
        Box::new(Races {
            order: Order::new(),
            shared,
            world: world.clone(),
            execution: 0,
            cta: 0,
            place: Place::default(),
        })
    }

    /// Another CTA begins.
    pub(super) fn begin(&mut self, ctaid: [u32; 3], grid: [u32; 3]) {
        self.order = Order::new();
        self.shared.fill(Cell::default());
        self.cta = ctaid[0] + grid[0] * (ctaid[1] + grid[1] * ctaid[2]);
    }

    /// Whether a warp reads whole words again that it has read: it learns nothing new of races.
    #[inline(always)]
    fn has_read(&mut self, world: &mut World, access: &Access, now: Stamp) -> bool {
        let (now, words) = (Stamp { bytes: 15, ..now }, access.len / 4);
        let mut same = |i: u32| {
            let cell = cell(&mut self.shared, &mut world.cells, access.memory, access.at + 4 * u64::from(i));
            cell.is_some_and(|cell| !cell.tells && cell.reads[0].is_like(&now))
        };
        words > 0 && access.at & 3 == 0 && (0..words).all(&mut same)
    }

    /// Notes the access of one word, and finds what it races with.
    fn touch(&mut self, world: &mut World, access: &Access, word: u64, now: Stamp) -> Option<Conflict> {
        let is_shared = access.memory == Memory::Shared;
        let cell = cell(&mut self.shared, &mut world.cells, access.memory, word)?;
        let order = &mut self.order;
        let is_plain_load = !access.writes && !now.strong && !cell.tells;
        // A warp that reads again what it has read learns nothing new of races.
        if is_plain_load && cell.reads[0].is_like(&now) {
            return None;
        }
        // A barrier in shared memory is changed by atomics of eight bytes, and read by plain loads. What is stored behind a
        // fence may be a flag.
        let may_be_a_flag = is_shared && access.writes && !access.atomic && order.has_fenced(now.warp.into());
        cell.tells |= may_be_a_flag || is_shared && access.atomic && access.len == 8;
        let (tells, warp) = (cell.tells, usize::from(now.warp));
        if access.reads && (now.strong || tells) {
            learn(order, &world.words, is_shared, word, now);
        }
        let conflict = if tells { None } else { cell.conflict(order, access, &now) };
        cell.note(order, access.writes, now);
        if access.writes && (now.strong || may_be_a_flag) {
            tell(order, &mut world.words, is_shared, word, (warp, now.cta));
        }
        conflict
    }
}

impl Cell {
    /// Notes an access.
    fn note(&mut self, order: &Order, writes: bool, now: Stamp) {
        if writes {
            (self.write, self.reads) = (now, [Stamp::default(); 2]);
            return;
        }
        let last = self.reads[0];
        if last.time != 0 && !before(order, &last, &now) {
            self.reads[1] = last;
        }
        self.reads[0] = now;
    }

    /// The access that this one races with.
    fn conflict(&self, order: &Order, access: &Access, now: &Stamp) -> Option<Conflict> {
        let meets = |other: &Stamp| {
            other.time != 0
                && (access.writes || !other.looked_at)
                && other.bytes & now.bytes != 0
                && !(other.strong && now.strong)
                && !before(order, other, now)
        };
        // Two lanes may store to one place at once.
        let at_once = access.writes && !access.atomic && {
            let other = &self.write;
            let same = other.time != 0 && other.execution == now.execution && other.cta == now.cta;
            same && other.warp == now.warp && other.lane != now.lane && other.bytes & now.bytes != 0
        };
        if at_once || meets(&self.write) {
            return Some(Conflict { with: self.write, wrote: true });
        }
        if !access.writes || access.atomic {
            return None;
        }
        let read = self.reads.iter().find(|read| meets(read))?;
        Some(Conflict { with: *read, wrote: false })
    }
}

/// Whether the warp of the access `now` knows of another one.
fn before(order: &Order, other: &Stamp, now: &Stamp) -> bool {
    if other.cta != now.cta {
        return order.others.get(&other.cta).is_some_and(|time| *time >= other.cta_time);
    }
    other.warp == now.warp || order.knows(now.warp.into(), other.warp.into(), other.time)
}

/// The warp learns what others told through a word.
fn learn(order: &mut Order, words: &Quick<u64, Told>, is_shared: bool, word: u64, now: Stamp) {
    if is_shared {
        return order.acquires(now.warp.into(), word as u32);
    }
    let Some(told) = words.get(&word) else { return };
    // Who polls learns the same again and again.
    if order.heard.insert((word, now.warp), told.news) == Some(told.news) {
        return;
    }
    for (cta, time) in &told.ctas {
        let known = order.others.entry(*cta).or_default();
        *known = (*known).max(*time);
    }
    if let Some(times) = told.own.get(&now.cta) {
        join(order.all_known(now.warp.into()), times);
    }
}

/// The warp tells through a word what it knows. Other CTAs learn it only if there was a fence for the whole GPU.
fn tell(order: &mut Order, words: &mut Quick<u64, Told>, is_shared: bool, word: u64, (warp, cta): (usize, u32)) {
    if is_shared {
        order.releases(warp, word as u32);
        return order.moves_on(warp);
    }
    if !order.fence {
        return;
    }
    let told = words.entry(word).or_default();
    told.news += 1;
    let known = *order.all_known(warp);
    join(told.own.entry(cta).or_insert([0; WARPS]), &known);
    if order.gpu_fence {
        for (cta, time) in order.others.iter().map(|(cta, time)| (*cta, *time)).chain([(cta, order.time)]) {
            let at = told.ctas.entry(cta).or_default();
            *at = (*at).max(time);
        }
    }
    order.time += 1;
    order.moves_on(warp);
}

impl Inspector {
    /// Looks for races of the accesses of one instruction.
    pub(super) fn races(&mut self, w: &Warp, env: &Env<'_>, u: &Uop, shape: Shape, accesses: &[Access]) {
        let Some(mut races) = self.races.take() else { return };
        races.execution += 1;
        let world = races.world.clone();
        let mut world = world.lock();
        let warp = w.index as usize;
        let mut now = Stamp {
            time: races.order.now(warp),
            cta_time: races.order.time,
            cta: races.cta,
            at: env.pc(u.at).wrapping_sub(env.launch.code) as u32,
            execution: races.execution,
            warp: w.index as u8,
            lane: 0,
            bytes: 0,
            strong: shape.atomic || shape.strong,
            looked_at: false,
        };
        let is_plain_load = !shape.writes && !now.strong;
        let mut last = None;
        for access in accesses.iter().filter(|access| access.memory != Memory::Local) {
            // Lanes that read what the lane before them reads learn nothing new.
            if is_plain_load && last.replace((access.memory, access.at)) == Some((access.memory, access.at)) {
                continue;
            }
            let end = access.at + u64::from(access.len);
            let mut word = access.at & !3;
            let mut conflict = None;
            now.lane = access.lane as u8;
            now.looked_at = access.atomic && (shape.swaps || self.limits.objects || access.memory == Memory::Global);
            // An atomic of another lane may have told something.
            (now.time, now.cta_time) = (races.order.now(warp), races.order.time);
            if is_plain_load && races.has_read(&mut world, access, now) {
                continue;
            }
            // What a store leaves as it was, nobody can tell from no store.
            if access.writes && !access.atomic && leaves(&mut races.place, w, env, u, shape, access) {
                continue;
            }
            while word < end {
                let (from, to) = (access.at.max(word) - word, end.min(word + 4) - word);
                now.bytes = ((1u32 << to) - (1 << from)) as u8;
                let found = races.touch(&mut world, access, word, now);
                let found = found.filter(|found| !stores_the_same(w, u, access, &found.with, &now));
                conflict = conflict.or(found.map(|found| (word, found)));
                word += 4;
            }
            if let Some((word, conflict)) = conflict {
                self.report_race(w, env, u, access, word, &conflict);
            }
        }
        drop(world);
        self.races = Some(races);
    }

    fn report_race(&self, w: &Warp, env: &Env<'_>, u: &Uop, access: &Access, word: u64, conflict: &Conflict) {
        let with = &conflict.with;
        let other = env.target(env.launch.code.wrapping_add_signed(with.at as i32 as i64)).unwrap_or(u.at);
        self.report_pair(env, Kind::Race, 0, u.at, other, |party| {
            let memory = access.memory.name();
            let [x, y, _] = env.launch.grid.map(|n| n.max(1));
            let block = [with.cta % x, with.cta / x % y, with.cta / x / y];
            let ctaid = env.ctaid;
            let why = match () {
                () if block != ctaid => "of blocks that nothing orders",
                () if u32::from(with.warp) == w.index => "of one instruction, with different values",
                () => "of warps with no barrier between them",
            };
            let title = format!("{memory} memory at {word:#x} is accessed by threads {why}");
            let did = if conflict.wrote { "store" } else { "load" };
            let now = Part { what: access.what().to_owned(), warp: w.index, lane: access.lane, at: u.at, block: None };
            let (warp, lane) = (with.warp.into(), with.lane.into());
            let before = Part { what: format!("earlier {did}"), warp, lane, at: other, block: Some(block) };
            (title, vec![party(now), party(before)])
        });
    }
}

/// Whether the lanes of one instruction store one value to one place. Accesses of one instruction have one size, and are aligned.
fn stores_the_same(w: &Warp, u: &Uop, access: &Access, other: &Stamp, now: &Stamp) -> bool {
    let value = |lane: u32| (0..access.len.div_ceil(4)).map(move |i| w.get(u.b.plus(i), lane));
    let bits = if access.len < 4 { (1 << (8 * access.len)) - 1 } else { u32::MAX };
    let at_once = other.execution == now.execution && other.cta == now.cta && other.warp == now.warp;
    at_once && value(access.lane).zip(value(other.lane.into())).all(|(a, b)| (a ^ b) & bits == 0)
}

/// Whether memory has the bytes already that a lane stores.
fn leaves(place: &mut Place, w: &Warp, env: &Env<'_>, u: &Uop, shape: Shape, access: &Access) -> bool {
    let mut before = [0; 16];
    let before = &mut before[..access.len as usize];
    // LDGSTS has its bytes elsewhere.
    if shape.space == super::plan::Space::Copy {
        return false;
    }
    let known = match access.memory {
        Memory::Shared => env.shared.peek(access.at as u32, before),
        _ => place.read(env, access.at, before),
    };
    if !known {
        return false;
    }
    let word = |i: usize| w.get(u.b.plus(i as u32), access.lane).to_le_bytes();
    before.iter().enumerate().all(|(i, byte)| word(i / 4)[i % 4] == *byte)
}
