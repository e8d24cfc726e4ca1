//! `race=strict`: races as PTX's memory model has them.
//!
//! Two accesses of one word by different threads, at least one of them a store, are a race unless one happened before the other, or
//! both are strong and each is for the other's thread. What is stored makes no difference, and the lanes of a warp are threads like
//! others. [`super::lanes`] knows what happened before what.

use super::between::{Used, Uses};
use super::cells::{Cell, Event, Events, Mark};
use super::lanes::Lanes;
use super::race::{Common, Conflict, Last, Races, Rules, Touched};
use super::relation::Now;
use super::{Inspector, Plan, Watch};
use sm87::Launch;
use sm87::isa::memory::{self, Change, Scope, Shape, Space};
use sm87::observe::access::{Access, Memory};
use sm87::observe::{Env, Uop, Warp, waits_at_barrier};

/// The lanes of a warp that have not exited.
pub(super) fn live(w: &Warp) -> u32 {
    w.groups().iter().fold(w.active(), |mask, group| mask | group.mask)
}

/// Whether an access or a fence is for other CTAs, too.
fn is_wide(scope: Option<Scope>) -> bool {
    scope.is_some_and(|scope| scope >= Scope::Gpu)
}

impl Rules for Lanes {
    fn begin(cta: u32) -> Lanes {
        Lanes::new(cta)
    }

    fn event(&self, w: &Warp, shape: Shape) -> Event {
        let warp = w.index() as usize;
        let copy = if shape.space == Space::Copy { self.group(warp) } else { 0 };
        Event { time: self.now(warp), scope: shape.scope, copy, ..Event::default() }
    }

    fn touch(races: &mut Races<Lanes>, common: &mut Common, touched: Touched<'_>, now: &mut Now) -> Option<Conflict> {
        let Touched { access, word, bytes, objects, .. } = touched;
        let is_shared = access.memory == Memory::Shared;
        // Machine code does not show which loads and stores of shared memory are volatile. One that is behind a fence may tell something.
        tell_or_hear(races, common, &touched, now);
        let (cell, events) = if is_shared {
            (races.shared.get_mut(word as usize / 4)?, &races.events)
        } else {
            (common.cells.at(word)?, &common.events)
        };
        // A barrier in shared memory is changed by atomics of eight bytes, and read by plain loads.
        if is_shared && objects && access.atomic && access.len == 8 {
            cell.note_telling();
        }
        let mark = events.mark(now.number, &now.event, access.lane, bytes);
        let before = *cell;
        let is_new = access.writes || now.reads(cell, &races.order, events, mark) || now.event.strong;
        let conflict = if is_new && !before.tells() {
            conflict(&before, &races.order, events, access, &now.event, mark)
        } else {
            None
        };
        if access.writes {
            cell.written(mark);
        }
        conflict
    }
}

/// What the access of a word tells others, or makes known.
fn tell_or_hear(races: &mut Races<Lanes>, common: &mut Common, touched: &Touched<'_>, now: &mut Now) {
    let (Touched { access, word, live, .. }, event) = (*touched, now.event);
    let (warp, lane) = (usize::from(event.warp), access.lane);
    if access.memory == Memory::Shared {
        let order = &mut races.order;
        if touched.objects && access.atomic && access.len == 8 {
            // It arrives at a barrier, or makes one.
            let told = Some(order.tells_all(warp, lane));
            order.words.tell(word & !7, event.cta, [told, None], true);
            return;
        }
        let is_object = |cell: &Cell| cell.tells();
        if access.reads
            && let Some(told) = order.words.get(word).or_else(|| order.words.get(word & !7)).cloned()
        {
            match races.shared.get(word as usize / 4).is_some_and(is_object) {
                true => order.learns(warp, lane, live, &told),
                false => order.hears(warp, lane, word, &told, false),
            }
            now.learns();
        }
        if access.writes && event.copy == 0 {
            let may_tell = access.atomic || order.has_fenced(warp);
            let told = if may_tell { order.tells(warp, lane, false) } else { [None, None] };
            order.words.tell(word, event.cta, told, access.atomic);
        }
        return;
    }
    let Some(scope) = event.scope else { return };
    if access.reads
        && let Some(told) = common.told.get(word)
    {
        races.order.hears(warp, lane, word, told, scope >= Scope::Gpu);
    }
    if access.writes {
        let told = races.order.tells(warp, lane, scope >= Scope::Gpu);
        common.told.tell(word, event.cta, told, access.atomic);
    }
}

/// The access to a word that the access `now` races with.
fn conflict(cell: &Cell, order: &Lanes, events: &Events, access: &Access, now: &Event, mark: Mark) -> Option<Conflict> {
    let find = |other: Mark, wrote: bool| {
        let with = *events.get(other.event());
        let are_strong = with.scope.is_some() && now.scope.is_some();
        let is_meant = are_strong && (with.cta == now.cta || is_wide(with.scope) && is_wide(now.scope));
        if with.time == 0
            || other.bytes() & mark.bytes() == 0
            || is_meant
            || order.knows((&with, other.lane()), (now, mark.lane()))
        {
            return None;
        }
        let at_once = other.execution(&with) == now.since && with.cta == now.cta && with.warp == now.warp;
        Some(Conflict { with, lane: other.lane(), at_once, wrote })
    };
    let reads = || cell.reads.iter().find_map(|read| find(*read, false)).filter(|_| access.writes);
    find(cell.write(), true).or_else(reads)
}

/// What machine code does not show of accesses of shared memory, and of lanes.
const VOLATILE: &str = " (machine code does not show which accesses of shared memory are volatile)";
const SYNCWARP: &str = ", without a __syncwarp between them (ptxas shows one as WARPSYNC or NOP)";

/// What threads made accesses that race, and what a reader must know of it.
fn why(access: &Access, now: &Event, conflict: &Conflict, order: &Lanes) -> String {
    let with = &conflict.with;
    let is_copy = !order.is_made(with);
    if with.cta != now.cta {
        return match (with.strong, now.strong) {
            (true, true) => "of blocks, with a scope that is only the own block".to_owned(),
            (false, false) => "of blocks that nothing orders".to_owned(),
            _ => "of blocks that nothing orders, and only one access is strong".to_owned(),
        };
    }
    if is_copy {
        return "of one block, and one access is an asynchronous copy that nobody has waited for".to_owned();
    }
    let (who, sync) = match () {
        () if with.warp != now.warp => ("of warps with no barrier between them", ""),
        () if conflict.at_once => ("of one warp with one instruction", ""),
        () => ("of one warp", SYNCWARP),
    };
    let weak = if with.strong != now.strong { ", and only one access is strong" } else { "" };
    let is_lost = access.memory == Memory::Shared && !conflict.at_once && !(with.strong && now.strong);
    format!("{who}{sync}{weak}{}", if is_lost { VOLATILE } else { "" })
}

/// Whether an instruction arrives at a barrier in memory when the copies of its threads are complete.
fn is_arrival_of_copies(env: &Env<'_>, u: &Uop) -> bool {
    let memory = env.image().row(u.at()).and_then(|row| row.effects.memory());
    memory.is_some_and(|memory| memory.access == memory::Access::Change(Change::Arrival))
}

impl Inspector {
    /// Looks for races of the accesses of one instruction.
    pub(super) fn strict_races(&mut self, common: &mut Common, w: &Warp, env: &Env<'_>, u: &Uop, shape: Shape) {
        let Some(mut races) = self.strict.take() else { return };
        common.cells.all_of_it = true;
        if shape.atomic && shape.len == 8 && is_arrival_of_copies(env, u) {
            races.order.awaits_all(w.index() as usize);
        }
        let event = races.executes(w, env, u, shape);
        let span = self.span.filter(|_| !self.may_tell(&races, shape, &event));
        let passes = span.is_some_and(|span| races.pass_together(common, (w, env, u), (&self.accesses, span), event));
        if !passes {
            self.strict_races_of_each(&mut races, common, (w, env, u), shape, event);
        }
        self.strict = Some(races);
    }

    /// Whether the accesses of an instruction may tell others something, or make something known.
    fn may_tell(&self, races: &Races<Lanes>, shape: Shape, event: &Event) -> bool {
        let is_shared = self.accesses.first().is_some_and(|access| access.memory == Memory::Shared);
        let told =
            is_shared && (!races.order.words.is_empty() || shape.writes && races.order.has_fenced(event.warp.into()));
        event.strong || shape.space == Space::Copy || told
    }

    /// Looks for races of the accesses one after another.
    fn strict_races_of_each(
        &self,
        races: &mut Races<Lanes>,
        common: &mut Common,
        (w, env, u): (&Warp, &Env<'_>, &Uop),
        shape: Shape,
        mut event: Event,
    ) {
        let (live, objects, may_tell) = (live(w), self.limits.objects, self.may_tell(races, shape, &event));
        let (mut shared, mut global, mut last) = (Now::default(), Now::default(), Last::default());
        for access in self.accesses.iter().filter(|access| access.memory != Memory::Local) {
            if !shape.writes && !may_tell && last.is_again::<Lanes>(access) {
                continue;
            }
            event.time = races.order.now(event.warp.into());
            let now = if access.memory == Memory::Shared { &mut shared } else { &mut global };
            if now.event != event {
                *now = races.event(common, access.memory, event);
            }
            if !may_tell && races.passes(common, access, now) {
                continue;
            }
            let touched = Touched { access, word: 0, bytes: 0, kept: false, live, objects };
            if let Some((word, conflict)) = races.touch_all(common, (w, u), touched, now) {
                self.report_race((w, env, u), access, word, &conflict, &why(access, &event, &conflict, &races.order));
            }
        }
    }

    /// Follows what an instruction makes known that is no access.
    pub(super) fn orders(&mut self, w: &Warp, env: &Env<'_>, u: &Uop, exec: u32, plan: Plan) {
        let Some(races) = &mut self.strict else { return };
        let (order, warp, live) = (&mut races.order, w.index() as usize, live(w));
        match plan {
            Plan::Fence(scope) => order.fences(warp, exec, live, scope > Scope::Sm),
            Plan::Acquires => order.acquires(warp, exec, live, true),
            Plan::Nop => order.runs_together(warp, exec, live),
            Plan::Exit => order.exits(warp, exec & w.pred(u.predicate_sources()[0]), live),
            Plan::Groups => order.groups(warp),
            Plan::Awaits(but) => order.awaits(warp, but),
            Plan::Warpsync(true) => {
                let mut left = exec & w.pred(u.predicate_sources()[0]);
                while left != 0 {
                    let wanted = w.get(u.a(), left.trailing_zeros());
                    let mask = sm87::observe::lanes(left).filter(|lane| w.get(u.a(), *lane) == wanted);
                    let mask = mask.fold(0, |mask, lane| mask | 1 << lane);
                    order.synchronises(warp, (mask, live), wanted);
                    left &= !mask;
                }
            }
            Plan::Barrier(_) => {
                let (number, _) = sm87::observe::named_barrier(w, u, exec);
                let begins = number < 16 && !env.is_in_use(number);
                order.arrives(warp, (exec, live), number as usize, begins, waits_at_barrier(u));
            }
            Plan::Nothing | Plan::Access(_) | Plan::Warpsync(false) => {}
        }
    }
}

impl Watch {
    /// What the launch has done with each word of global memory, as far as cells know it: they know the last store, and loads behind it.
    pub fn uses(&self, launch: &Launch) -> Uses {
        let common = self.common.lock();
        let [x, y, _] = launch.grid.map(|n| n.max(1));
        let [width, height, _] = launch.block.map(|n| n.max(1));
        let used = |mark: Mark, wrote: bool| {
            let event = common.events.get(mark.event());
            let lane = u32::from(event.warp) * 32 + u32::from(mark.lane());
            (event.time != 0).then_some(Used {
                pc: event.at,
                bytes: mark.bytes(),
                wrote,
                strong: is_wide(event.scope),
                block: [event.cta % x, event.cta / x % y, event.cta / x / y],
                thread: [lane % width, lane / width % height, lane / width / height],
            })
        };
        let of = |cell: &Cell| [used(cell.write(), true), used(cell.reads[0], false), used(cell.reads[1], false)];
        let words = |cells: &[Cell]| {
            let all = cells.iter().enumerate().map(|(at, cell)| (at as u16, of(cell)));
            all.filter(|(_, used)| used.iter().any(Option::is_some)).collect()
        };
        let pages = common.cells.each().map(|(number, cells)| (number << 12, words(cells))).collect();
        let is = |scope: Scope| common.fence.is_some_and(|fence| fence >= scope);
        Uses { pages, fenced: is(Scope::Gpu), tells_host: is(Scope::System) }
    }
}
