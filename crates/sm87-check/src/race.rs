//! Races: two accesses to one place, at least one of them a store, between which nothing makes an order.
//!
//! Barriers, fences with what is stored behind them, and atomics make an order. Where machine code does not show whether
//! there is one, there is taken to be one: what is reported is a race, and not every race is reported. [`super::strict`] is
//! for those who want to see every race.

use super::cells::{Cell, Cells, Event, Events, Mark, WORDS};
use super::knowledge::Words;
use super::order::{Order, Times, WARPS, join};
use super::quick::Quick;
use super::relation::{Now, Sequence, before};
use super::report::Kind;
use super::stored::{Place, Stored};
use super::written::Pages;
use super::{Inspector, Part};
use sm87::isa::memory::{Scope, Shape, Space};
use sm87::observe::access::{Access, Memory, Span};
use sm87::observe::{Env, Image, Uop, Warp};
use std::sync::Arc;

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
pub(crate) struct Common {
    /// What was written to it.
    pub(super) pages: Pages,
    /// The program in which every instruction is looked at, once a CTA needed it.
    pub(super) whole: Option<Arc<Image>>,
    pub(super) cells: Cells,
    pub(super) events: Events,
    words: Quick<u64, Told>,
    /// What was told through words, as `race=strict` wants to know it.
    pub(super) told: Words,
    /// The widest fence that was executed.
    pub(super) fence: Option<Scope>,
}

/// The accesses of a CTA. `order` says what is known to have happened before what.
#[derive(Debug)]
pub(crate) struct Races<O> {
    pub(super) order: O,
    pub(super) shared: Vec<Cell>,
    pub(super) events: Events,
    execution: u32,
    pub(super) cta: u32,
    place: Place,
    stored: Stored,
}

/// The rules by which an access of one word races with those before it.
pub(super) trait Rules: Sequence + Sized {
    /// The order of a CTA in which nothing has happened.
    fn begin(cta: u32) -> Self;

    /// The event that an access of a warp is.
    fn event(&self, w: &Warp, shape: Shape) -> Event;

    /// Notes the access of one word, and finds what it races with.
    fn touch(races: &mut Races<Self>, common: &mut Common, word: Touched<'_>, now: &mut Now) -> Option<Conflict>;
}

/// A word that is accessed.
#[derive(Clone, Copy)]
pub(super) struct Touched<'a> {
    pub access: &'a Access,
    pub word: u64,
    /// The bytes of it that are accessed.
    pub bytes: u8,
    /// Whether a store leaves it as it was.
    pub kept: bool,
    /// The lanes of the warp that have not exited.
    pub live: u32,
    /// Whether the program has barriers in shared memory.
    pub objects: bool,
}

/// An access that the one that is made now races with.
pub(super) struct Conflict {
    pub with: Event,
    pub lane: u8,
    /// Whether it was made by the same execution of an instruction.
    pub at_once: bool,
    pub wrote: bool,
}

impl<O: Rules> Races<O> {
    /// Nothing was accessed.
    pub(super) fn new(shared_bytes: u32) -> Box<Races<O>> {
        let shared = vec![Cell::default(); shared_bytes.div_ceil(4) as usize];
        let (order, events) = (O::begin(0), Events::default());
        let (place, stored) = (Place::default(), Stored::default());
        Box::new(Races { order, shared, events, execution: 0, cta: 0, place, stored })
    }

    /// Another CTA begins.
    pub(super) fn begin(&mut self, ctaid: [u32; 3], grid: [u32; 3]) {
        self.cta = ctaid[0] + grid[0] * (ctaid[1] + grid[1] * ctaid[2]);
        self.order = O::begin(self.cta);
        self.shared.fill(Cell::default());
        self.events.clear();
    }

    /// A warp executes an instruction. The result is the event that this is.
    pub(super) fn executes(&mut self, w: &Warp, env: &Env<'_>, u: &Uop, shape: Shape) -> Event {
        self.execution = self.execution.wrapping_add(1);
        self.stored.whole = None;
        let (at, cta, warp) = (env.pc(u.at()), self.cta, w.index() as u8);
        Event { at, cta, warp, since: self.execution, strong: shape.strong, ..self.order.event(w, shape) }
    }

    /// Whether a store leaves memory as it was, which nobody can tell from no store. `span` has all accesses of the instruction, if
    /// they are near each other.
    #[inline(always)]
    fn is_kept(&mut self, instruction: (&Warp, &Env<'_>, &Uop), span: Option<Span>, access: &Access) -> bool {
        let alone = Span { memory: access.memory, low: access.at, end: access.at, dense: false };
        self.stored.is_kept(&mut self.place, instruction, span.unwrap_or(alone), access)
    }

    /// Makes an event, or finds the one that has begun.
    pub(super) fn event(&mut self, common: &mut Common, memory: Memory, event: Event) -> Now {
        let number = if memory == Memory::Shared {
            if self.events.is_full() {
                self.events.collect(self.shared.iter_mut());
            }
            self.events.number(&event)
        } else {
            if common.events.is_full() {
                common.events.collect(common.cells.all());
            }
            common.events.number(&event)
        };
        Now::new::<O>(event, number)
    }

    /// Notes the plain accesses of an instruction to whole words that are near each other, if they race with nothing. The
    /// result is false if they must be looked at one by one, some of them perhaps again.
    pub(super) fn pass_together(
        &mut self,
        common: &mut Common,
        instruction: (&Warp, &Env<'_>, &Uop),
        (accesses, span): (&[Access], Span),
        event: Event,
    ) -> bool {
        let Some(&Access { len, writes, .. }) = accesses.first() else { return true };
        if span.memory == Memory::Local || !len.is_multiple_of(4) || !span.low.is_multiple_of(len.into()) {
            return false;
        }
        let mut now = self.event(common, span.memory, event);
        let (words, all) = (len as usize / 4, (span.len() / 4) as usize);
        let (cells, events) = if span.memory == Memory::Shared {
            let first = span.low as usize / 4;
            (self.shared.get_mut(first..first + all), &self.events)
        } else if all <= WORDS {
            (common.cells.some(span.low, all), &common.events)
        } else {
            (None, &common.events)
        };
        let Some(cells) = cells else { return false };
        let (mark, mut last) = (events.mark(now.number, &event, 0, 15), Last::default());
        let looks = writes && !O::BY_LANES && span.memory == Memory::Global;
        accesses.iter().all(|access| {
            if !writes && last.is_again::<O>(access) {
                return true;
            }
            let offset = access.at - span.low;
            if !offset.is_multiple_of(4) {
                return false;
            }
            if looks && self.stored.is_kept(&mut self.place, instruction, span, access) {
                return true;
            }
            let (first, mark) = (offset as usize / 4, mark.by(access.lane));
            let cells = cells.get_mut(first..first + words);
            cells.is_some_and(|cells| now.passes(cells, &self.order, events, mark, writes))
        })
    }

    /// Notes a plain access that races with nothing. The result is false if it must be looked at more closely.
    #[inline(always)]
    pub(super) fn passes(&mut self, common: &mut Common, access: &Access, now: &mut Now) -> bool {
        let (first, within, words) = (access.at & !3, access.at & 3, access.len.div_ceil(4) as usize);
        let bytes = match access.len {
            1 | 2 if within + u64::from(access.len) <= 4 => ((1 << access.len) - 1) << within,
            4 | 8 | 16 if within == 0 => 15,
            _ => return false,
        };
        let (cells, events) = if access.memory == Memory::Shared {
            let first = first as usize / 4;
            (self.shared.get_mut(first..first + words), &self.events)
        } else {
            (common.cells.some(first, words), &common.events)
        };
        let Some(cells) = cells else { return false };
        let mark = events.mark(now.number, &now.event, access.lane, bytes);
        now.passes(cells, &self.order, events, mark, access.writes)
    }

    /// Notes an access word by word. The result is the first word at which it races, and what it races with there.
    pub(super) fn touch_all(
        &mut self,
        common: &mut Common,
        (w, u): (&Warp, &Uop),
        touched: Touched<'_>,
        now: &mut Now,
    ) -> Option<(u64, Conflict)> {
        let access = touched.access;
        let end = access.at.saturating_add(access.len.into());
        let (mut word, mut first) = (access.at & !3, None);
        while word < end {
            let (from, to) = (access.at.max(word) - word, end.min(word.saturating_add(4)) - word);
            let bytes = ((1u32 << to) - (1 << from)) as u8;
            let found = O::touch(self, common, Touched { word, bytes, ..touched }, now);
            let found = found.filter(|found| O::BY_LANES || !stores_the_same(w, u, access, found));
            first = first.or(found.map(|found| (word, found)));
            word = word.saturating_add(4);
        }
        first
    }
}

/// The place that the lane before has read, and how many lanes have read it.
#[derive(Default)]
pub(super) struct Last(Option<(Memory, u64)>, u32);

impl Last {
    /// Whether a lane reads what the lanes before it have read. Of a warp one lane is enough, unless lanes are told apart: then two are.
    #[inline(always)]
    pub(super) fn is_again<O: Sequence>(&mut self, access: &Access) -> bool {
        let place = Some((access.memory, access.at));
        self.1 = if self.0 == place { self.1 + 1 } else { 0 };
        self.0 = place;
        self.1 > u32::from(O::BY_LANES)
    }
}

impl Rules for Order {
    fn begin(_: u32) -> Order {
        Order::new()
    }

    fn event(&self, w: &Warp, _: Shape) -> Event {
        Event { time: self.now(w.index() as usize), cta_time: self.time, ..Event::default() }
    }

    fn touch(races: &mut Races<Order>, common: &mut Common, touched: Touched<'_>, now: &mut Now) -> Option<Conflict> {
        let Touched { access, word, bytes, kept, .. } = touched;
        let is_shared = access.memory == Memory::Shared;
        let (cell, events) = if is_shared {
            (races.shared.get_mut(word as usize / 4)?, &races.events)
        } else {
            (common.cells.at(word)?, &common.events)
        };
        let (order, event) = (&mut races.order, now.event);
        let mark = events.mark(now.number, &event, access.lane, bytes);
        // A barrier in shared memory is changed by atomics of eight bytes, and read by plain loads. What is stored behind a
        // fence may be a flag.
        let may_be_a_flag = is_shared && access.writes && !access.atomic && order.has_fenced(event.warp.into());
        if may_be_a_flag || is_shared && access.atomic && access.len == 8 {
            cell.note_telling();
        }
        let (tells, warp) = (cell.tells(), usize::from(event.warp));
        if access.reads && (event.strong || tells) {
            learn(order, &common.words, is_shared, word, &event);
            now.learns();
        }
        let before = *cell;
        let is_new = access.writes || now.reads(cell, order, events, mark) || event.strong;
        let conflict =
            if is_new && !tells { conflict(&before, order, events, (access, kept), &event, mark) } else { None };
        if access.writes {
            cell.written(mark);
        }
        if access.writes && (event.strong || may_be_a_flag) {
            tell(order, &mut common.words, is_shared, word, (warp, event.cta));
        }
        conflict
    }
}

/// The access to a word that the access `now` races with. A store that leaves the word as it was (`kept`) is one with the store before it.
fn conflict(
    cell: &Cell,
    order: &Order,
    events: &Events,
    (access, kept): (&Access, bool),
    now: &Event,
    mark: Mark,
) -> Option<Conflict> {
    let find = |other: Mark, wrote: bool| {
        let with = *events.get(other.event());
        if with.time == 0 || other.bytes() & mark.bytes() == 0 {
            return None;
        }
        let at_once = other.execution(&with) == now.since && with.cta == now.cta && with.warp == now.warp;
        // Two lanes may store to one place at once.
        let collide = at_once && wrote && access.writes && !access.atomic && other.lane() != mark.lane();
        let is_meant = !access.writes && with.looked_at || with.strong && now.strong;
        let meet = !is_meant && !before(order, &with, now);
        (collide || meet).then_some(Conflict { with, lane: other.lane(), at_once, wrote })
    };
    let reads = || cell.reads.iter().find_map(|read| find(*read, false)).filter(|_| access.writes && !access.atomic);
    find(cell.write(), true).filter(|found| !kept || found.at_once).or_else(reads)
}

/// The warp learns what others told through a word.
fn learn(order: &mut Order, words: &Quick<u64, Told>, is_shared: bool, word: u64, now: &Event) {
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
    pub(super) fn races(&mut self, common: &mut Common, w: &Warp, env: &Env<'_>, u: &Uop, shape: Shape) {
        let Some(mut races) = self.races.take() else { return };
        let event = races.executes(w, env, u, shape);
        // A plain store may tell others something if it is behind a fence.
        let may_tell = event.strong || shape.writes && races.order.has_fenced(event.warp.into());
        let span = self.span.filter(|_| !may_tell && shape.space != Space::Copy);
        let passes = span.is_some_and(|span| races.pass_together(common, (w, env, u), (&self.accesses, span), event));
        if !passes {
            self.races_of_each(&mut races, common, (w, env, u), (shape, may_tell), event);
        }
        self.races = Some(races);
    }

    /// Looks for races of the accesses one after another.
    fn races_of_each(
        &self,
        races: &mut Races<Order>,
        common: &mut Common,
        (w, env, u): (&Warp, &Env<'_>, &Uop),
        (shape, may_tell): (Shape, bool),
        mut event: Event,
    ) {
        let is_plain_load = !shape.writes && !event.strong;
        let (mut shared, mut global, mut last) = (Now::default(), Now::default(), Last::default());
        for access in self.accesses.iter().filter(|access| access.memory != Memory::Local) {
            if is_plain_load && last.is_again::<Order>(access) {
                continue;
            }
            let is_store = access.writes && !access.atomic && shape.space != Space::Copy;
            let kept = is_store && races.is_kept((w, env, u), self.span, access);
            // Nobody can tell a store to a buffer of what is there from no store. In shared memory it counts against loads, because it
            // is another value that was meant.
            if kept && access.memory == Memory::Global {
                continue;
            }
            event.looked_at = access.atomic && (shape.swaps || self.limits.objects || access.memory == Memory::Global);
            // An atomic of another lane may have told something.
            (event.time, event.cta_time) = (races.order.now(event.warp.into()), races.order.time);
            let now = if access.memory == Memory::Shared { &mut shared } else { &mut global };
            if now.event != event {
                *now = races.event(common, access.memory, event);
            }
            if !may_tell && races.passes(common, access, now) {
                continue;
            }
            let touched = Touched { access, word: 0, bytes: 0, kept, live: 0, objects: self.limits.objects };
            if let Some((word, conflict)) = races.touch_all(common, (w, u), touched, now) {
                let with = &conflict.with;
                let why = match () {
                    () if with.cta != event.cta => "of blocks that nothing orders",
                    () if with.warp == event.warp => "of one instruction, with different values",
                    () => "of warps with no barrier between them",
                };
                self.report_race((w, env, u), access, word, &conflict, why);
            }
        }
    }

    /// Reports that an access races with another one. `why` says what threads made them.
    pub(super) fn report_race(
        &self,
        (w, env, u): (&Warp, &Env<'_>, &Uop),
        access: &Access,
        word: u64,
        conflict: &Conflict,
        why: &str,
    ) {
        let with = &conflict.with;
        let other = env.target(with.at).unwrap_or(u.at());
        self.report_pair(env, Kind::Race, 0, u.at(), other, |party| {
            let memory = access.memory.name();
            let [x, y, _] = env.launch().grid.map(|n| n.max(1));
            let block = [with.cta % x, with.cta / x % y, with.cta / x / y];
            let title = format!("{memory} memory at {word:#x} is accessed by threads {why}");
            let did = if conflict.wrote { "store" } else { "load" };
            let now =
                Part { what: access.what().to_owned(), warp: w.index(), lane: access.lane, at: u.at(), block: None };
            let (warp, lane) = (with.warp.into(), conflict.lane.into());
            let before = Part { what: format!("earlier {did}"), warp, lane, at: other, block: Some(block) };
            (title, vec![party(now), party(before)])
        });
    }
}

/// Whether the lanes of one instruction store one value to one place. Accesses of one instruction have one size, and are aligned.
fn stores_the_same(w: &Warp, u: &Uop, access: &Access, other: &Conflict) -> bool {
    let value = |lane: u32| (0..access.len.div_ceil(4)).map(move |i| w.get(u.b().plus(i), lane));
    let bits = if access.len < 4 { (1 << (8 * access.len)) - 1 } else { u32::MAX };
    other.at_once && value(access.lane).zip(value(other.lane.into())).all(|(a, b)| (a ^ b) & bits == 0)
}
