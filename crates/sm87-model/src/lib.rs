//! The model's view of a CTA: a `Meter` accounts for instructions when they are executed.
//!
//! ```text
//!   mod        which instructions are looked at     machine   what is modelled, and the estimate
//!    ├ segment   instructions that are accounted for together
//!    ├ step      what must be known of an instruction      table   the figures of sm_87, with their sources
//!    ├ timeline  when a warp issues its instructions
//!    ├ memory    lines, sectors and banks
//!    ├ caches    what is in the L1 caches, and in the L2 cache that all CTAs share
//!    ├ phases    when the warps of a CTA go on after a barrier
//!    ├ ledger    what is noted of each instruction for a profile
//!    └ gpu     the model of a launch: SMs, and the estimate
//! ```
//!
//! A launch that names no machine has no meter and no such copy, so that it executes what it always executed. The numbers of a
//! launch depend on nothing but the launch: one thread executes its CTAs in order, and the caches are empty when it begins.
mod caches;
mod gpu;
mod ledger;
mod machine;
mod memory;
mod phases;
mod segment;
mod step;
mod table;
mod timeline;

pub use gpu::{Model, Occupancy};
pub use ledger::{Accesses, Counters, Listed, Rows, Stall};
pub use machine::{Estimate, Machine, Unit};
pub use table::{instructions_per_cycle, operations_per_cycle};

use gpu::{Behind, Busy, Lent};
use ledger::Ledger;
use memory::{Lines, Seen, Touch};
use phases::Phases;
use segment::{SEEN, Segment, Segments, prologue};
use sm87::Launch;
use sm87::isa;
use sm87::isa::memory::{Shape, Space};
use sm87::observe::access::{self, Access, Addresses, Memory};
use sm87::observe::{
    Chosen, CtaObserver, Env, Fetch, Flow, Image, Observer, Step as Instruction, Uop, Warp, lanes, named_barrier,
    waits_at_barrier,
};
use std::sync::Arc;
use step::{Kind, Step};
use table::SCHEDULERS;
use timeline::Timeline;

impl Observer for Model {
    /// Every instruction is accounted for, but only the heads of segments are looked at.
    fn choose(&self, image: &Image, fetch: &mut Fetch<'_>) -> Chosen {
        let word = |at: u32| image.place(at).and_then(&mut *fetch).unwrap_or_default();
        let words: Vec<_> = (0..image.len()).map(word).collect();
        let steps: Vec<_> = words.iter().map(|&word| Step::of(isa::lookup(word), word)).collect();
        let enters = image.targets();
        let mut segments = Segments::new(&steps, &enters, prologue(image));
        segments.join(&enters, |at| image.origin(at), |at| image.guard(at).is_always_true());
        if self.rows.is_some() {
            let listed = |at: usize| Some(Listed::new(image.place(at as u32)?, words[at], &steps[at]));
            segments.listed = (0..steps.len()).map(listed).collect();
        }
        let heads = segments.heads(|at| image.guard(at)).into_iter().zip(0..);
        let which = heads.map(|(is_head, at)| is_head && image.word(at) != 0).collect();
        Chosen { which, is_narrow: true, notes: Arc::new(Arc::new(segments)) }
    }

    fn ctas<'a>(&'a self, _: &Launch, _: &Image) -> Box<dyn CtaObserver + 'a> {
        let account = Account::new(&self.gpu, self.fill, self.rows.as_ref().map(Ledger::new));
        Box::new(Meter { program: None, account })
    }

    /// The CTAs of a GPU are at about the same place of the program. A CTA that would be far ahead would read what the others want to read into a cache
    /// that forgets it before they come.
    fn longest_turn(&self) -> u64 {
        1 << 16
    }

    fn together(&self) -> usize {
        self.together
    }

    fn ends(&self, shown: u64) {
        *self.estimate.lock() = self.gpu.lock().as_ref().map(|gpu| gpu.estimate(shown));
    }
}

impl CtaObserver for Meter {
    fn begins(&mut self, sm: u32) {
        self.account.begin(sm);
    }

    /// Accounts for a segment, and then executes its first instruction.
    fn step(&mut self, step: &mut Instruction<'_, '_>) -> Flow {
        if !step.is_second_call() {
            let (w, env, u) = step.parts();
            if !self.program.as_ref().is_some_and(|(image, _)| Arc::ptr_eq(image, env.image())) {
                self.turn_to(env.image());
            }
            if let Some((_, segments)) = &self.program {
                self.account.segment(w, env, u, segments, step.exec());
            }
        }
        step.execute()
    }

    /// The segments of the larger program have other numbers.
    fn program_changes(&mut self, before: &Image, now: &Image) {
        let (Some(old), Some(new)) = (before.notes::<Arc<Segments>>(), now.notes::<Arc<Segments>>()) else { return };
        let moved = |number: u32| {
            let begin = old.all.get(number as usize)?.at.start;
            new.of.get(now.moved(before, begin) as usize).copied()
        };
        self.account.warps.iter_mut().for_each(|warp| warp.next = warp.next.and_then(moved));
    }

    fn turn_ends(&mut self, _: &Env<'_>, _: &[Warp], _: bool) {
        self.account.behind.give_back();
    }

    fn ends(&mut self) {
        if let Some((_, segments)) = &self.program {
            self.account.skip_the_last(segments);
        }
        self.account.end();
    }
}

impl Meter {
    /// Goes on with a program.
    #[cold]
    fn turn_to(&mut self, image: &Arc<Image>) {
        let segments = image.notes::<Arc<Segments>>();
        if let (Some(ledger), Some(segments)) = (&mut self.account.ledger, segments) {
            ledger.turn_to(segments);
        }
        self.program = segments.map(|segments| (image.clone(), segments.clone()));
    }
}

/// The most segments in a row of which no lane executes the first instruction, and that are accounted for nevertheless.
const SKIPPED: u32 = 64;

/// Accounts for the instructions of CTAs, one after another.
struct Meter {
    /// The program that was executed last, and its segments.
    program: Option<(Arc<Image>, Arc<Segments>)>,
    account: Account,
}

/// What the model knows of a CTA.
struct Account {
    behind: Behind,
    /// The scheduler of the first warp.
    scheduler: usize,
    /// The place of the CTA on its SM.
    place: usize,
    warps: Vec<Timeline>,
    phases: Phases,
    busy: Busy,
    /// What comes from the L2 cache in a cycle, in parts of a byte.
    fill: u64,
    accesses: Vec<Access>,
    lines: Lines,
    /// The last accesses of segments.
    seen: Vec<Seen>,
    ledger: Option<Box<Ledger>>,
}

impl Account {
    /// Has seen nothing yet.
    fn new(lent: &Lent, fill: u64, ledger: Option<Box<Ledger>>) -> Account {
        Account {
            behind: Behind::new(lent),
            scheduler: 0,
            place: 0,
            warps: Vec::new(),
            phases: Phases::default(),
            busy: Default::default(),
            fill,
            accesses: Vec::with_capacity(64),
            lines: Lines::default(),
            seen: Vec::new(),
            ledger,
        }
    }

    /// A CTA begins on an SM.
    fn begin(&mut self, sm: u32) {
        self.behind.sm = sm;
        (self.scheduler, self.place, self.behind.asked) =
            self.behind.gpu().map_or(Default::default(), |gpu| gpu.begin(sm));
        self.warps.clear();
        self.phases = Phases::default();
        self.busy = Default::default();
    }

    /// The CTA has ended.
    fn end(&mut self) {
        let own = self.warps.iter().map(Timeline::end).max().unwrap_or(0);
        let latency = own.max(self.phases.units(&self.busy, self.fill));
        let (sm, asked, place) = (self.behind.sm, self.behind.asked, self.place);
        if let Some(gpu) = self.behind.gpu() {
            gpu.end(sm, place, (latency, asked), &self.busy);
        }
        self.behind.give_back();
    }

    /// The timeline of a warp that has come to a segment.
    #[inline(always)]
    fn warp(&mut self, index: u32) -> &mut Timeline {
        &mut self.warps[index as usize]
    }

    /// Accounts for a segment of a program before the lanes in `exec` execute its first instruction, for those that are accounted for with it, and for
    /// those before it that were skipped.
    #[inline(always)]
    fn segment(&mut self, w: &Warp, env: &Env<'_>, u: &Uop, segments: &Segments, exec: u32) {
        let Some(&number) = segments.of.get(u.at() as usize) else { return };
        let Some(joined) = segments.all.get(number as usize).map(|segment| segment.joined) else { return };
        let index = w.index() as usize;
        if self.warps.len() <= index {
            self.warps.resize(index + 1, Timeline::default());
        }
        let warp = &self.warps[index];
        if let Some(next) = warp.next.filter(|&next| next < number && number - next <= SKIPPED) {
            (next..number).for_each(|skipped| self.skip(w.index(), w.active(), segments, skipped));
        }
        self.resume(w.index());
        self.whole(w, env, u, segments, (number, exec));
        for number in number + 1..=number + joined {
            let at = segments.all[number as usize].at.start;
            if let Some(u) = env.image().uop(at) {
                self.whole(w, env, u, segments, (number, exec));
            }
        }
    }

    /// Accounts for one segment, of whose first instruction this is the micro-op.
    #[inline(always)]
    fn whole(&mut self, w: &Warp, env: &Env<'_>, u: &Uop, segments: &Segments, (number, exec): (u32, u32)) {
        let segment = &segments.all[number as usize];
        match &segment.first {
            None => {}
            Some(step) if self.ledger.is_some() => self.first_noted(w, env, u, (segment, step, number), exec),
            Some(step) => self.first(w, env, u, (segment, step, number), exec),
        }
        self.rest(w.index(), w.active(), segments, (segment, number));
    }

    /// Accounts for the first instruction of a segment, and notes what it does.
    #[inline(never)]
    fn first_noted(&mut self, w: &Warp, env: &Env<'_>, u: &Uop, of: (&Segment, &Step, u32), exec: u32) {
        let (_, step, number) = of;
        if let Some(first) = self.ledger.as_mut().and_then(|ledger| ledger.first(number)) {
            first.lanes += u64::from(exec.count_ones());
        }
        let warp = self.warp(w.index());
        let (began, why) = (warp.now(), warp.reason(step.waits));
        self.first(w, env, u, of, exec);
        self.waited(w.index(), (step, number), began, why);
    }

    /// Notes for how long the first instruction of a segment has waited since a time, and what others wait for who wait for it.
    fn waited(&mut self, warp: u32, (step, number): (&Step, u32), began: u64, why: Stall) {
        let warp = self.warp(warp);
        let cycles = warp.now().saturating_sub(began + u64::from(step.stall));
        let behind = Stall::behind(step);
        warp.stands_for(step.writes, behind);
        warp.stands_for(step.reads, behind);
        warp.waits_in = number;
        let why = if let Kind::Depends { .. } = step.kind { Stall::Copies } else { why };
        if let Some(first) = self.ledger.as_mut().and_then(|ledger| ledger.first(number)) {
            first.waited[why as usize] += cycles;
        }
    }

    /// Accounts for the first instruction of a segment, whose cost depends on what it does.
    #[inline(always)]
    fn first(&mut self, w: &Warp, env: &Env<'_>, u: &Uop, (segment, step, number): (&Segment, &Step, u32), exec: u32) {
        match &step.kind {
            Kind::Access(shape) if shape.space == Space::Global => {
                let touch = self.global(w, u, (segment, step, shape, number), exec);
                self.accessed(w, (step, shape), touch);
            }
            Kind::Access(shape) => {
                let touch = self.others(w, env, u, (step, shape, number), exec);
                self.accessed(w, (step, shape), touch);
            }
            _ => self.first_without_access(w, u, step, exec),
        }
    }

    /// The same of an instruction that accesses no memory.
    #[inline(never)]
    fn first_without_access(&mut self, w: &Warp, u: &Uop, step: &Step, exec: u32) {
        match step.kind {
            Kind::Barrier => self.barrier(w, u, step, exec),
            Kind::Plain | Kind::Access(_) => {
                self.issue(w.index(), step, step.latency.into());
            }
            Kind::Group => {
                let begun = self.issue(w.index(), step, 0);
                let done = self.warp(w.index()).group();
                self.warp(w.index()).set(step.writes, done.max(begun));
            }
            Kind::Depends { scoreboard, but } => {
                self.warp(w.index()).depends(scoreboard, but);
                self.issue(w.index(), step, 0);
            }
        }
    }

    /// Accounts for the other instructions of a segment.
    #[inline(always)]
    fn rest(&mut self, warp: u32, active: u32, segments: &Segments, (segment, number): (&Segment, u32)) {
        if segment.units[Unit::Issue as usize] > 0 {
            let busy = self.units(warp);
            busy.iter_mut().zip(&segment.units).for_each(|(sum, &more)| *sum += more);
        }
        let events = segments.events_of(segment);
        let timeline = &mut self.warps[warp as usize];
        match &mut self.ledger {
            None => timeline.run(events, segment.tail),
            Some(ledger) => {
                timeline.lanes = active;
                ledger.ran(number, active);
                let at = segment.events.start as usize..segment.events.end as usize;
                timeline.run_noted(events, segment.tail, &mut ledger.waited[at]);
            }
        }
        timeline.next = segment.falls_through.then_some(number + 1);
    }

    /// Accounts for a segment of which no lane executes the first instruction.
    #[inline(never)]
    fn skip(&mut self, index: u32, active: u32, segments: &Segments, number: u32) {
        self.resume(index);
        if let Some(step) = &segments.all[number as usize].first {
            let warp = self.warp(index);
            let (began, why) = (warp.now(), warp.reason(step.waits));
            self.issue(index, step, 0);
            if self.ledger.is_some() {
                self.waited(index, (step, number), began, why);
            }
        }
        self.rest(index, active, segments, (&segments.all[number as usize], number));
    }

    /// Accounts for what warps have skipped before they ended: a store that no lane executes, and the exit behind it.
    fn skip_the_last(&mut self, segments: &Segments) {
        for index in 0..self.warps.len() as u32 {
            while let Some(next) = self.warp(index).next.filter(|&next| (next as usize) < segments.all.len()) {
                self.skip(index, self.warps[index as usize].lanes, segments, next);
            }
        }
    }

    /// If the warp waited at a barrier, the barrier is complete now.
    #[inline(always)]
    fn resume(&mut self, warp: u32) {
        if let Some(at) = self.warp(warp).waits.take() {
            self.passes(warp, at);
        }
    }

    /// The warp goes on after a barrier.
    #[inline(never)]
    fn passes(&mut self, warp: u32, (barrier, phase): (usize, usize)) {
        let complete = self.phases.passes((barrier, phase), self.warps.len(), (&self.busy, self.fill));
        let warp = self.warp(warp);
        let (cycles, number) = (complete.saturating_sub(warp.now()), warp.waits_in);
        warp.wait_until(complete);
        if let Some(first) = self.ledger.as_mut().and_then(|ledger| ledger.first(number)) {
            first.waited[Stall::Barrier as usize] += cycles;
        }
    }

    /// The units that are busy with the instructions of a warp.
    fn units(&mut self, warp: u32) -> &mut [u64; Unit::ALL.len()] {
        &mut self.busy[(self.scheduler + warp as usize) % SCHEDULERS]
    }

    /// Issues the first instruction of a segment. Returns when that was.
    fn issue(&mut self, warp: u32, step: &Step, latency: u64) -> u64 {
        self.units(warp)[Unit::Issue as usize] += 1;
        self.warp(warp).issue(step, latency)
    }

    /// The lanes in `exec` come to a barrier.
    fn barrier(&mut self, w: &Warp, u: &Uop, step: &Step, exec: u32) {
        let begun = self.issue(w.index(), step, step.latency.into());
        let barrier = (named_barrier(w, u, exec).0 & 15) as usize;
        let warp = self.warp(w.index());
        let phase = (warp.arrivals[barrier] & 1) as usize;
        warp.arrivals[barrier] += 1;
        warp.waits = waits_at_barrier(u).then_some((barrier, phase));
        self.phases.arrives((barrier, phase), begun);
    }

    /// The lanes of a warp access memory.
    #[inline(always)]
    fn accessed(&mut self, w: &Warp, (step, shape): (&Step, &Shape), touch: Touch) {
        let units = self.units(w.index());
        units[Unit::Issue as usize] += 1;
        units[Unit::LoadStore as usize] += touch.busy.max(1);
        units[Unit::L1Fill as usize] += touch.filled;
        let warp = &mut self.warps[w.index() as usize];
        let begun = warp.issue(step, touch.latency);
        if shape.space == Space::Copy {
            warp.copy(begun + touch.latency);
        }
    }

    /// Accesses to global memory alone.
    #[inline(always)]
    fn global(
        &mut self,
        w: &Warp,
        u: &Uop,
        (segment, step, shape, number): (&Segment, &Step, &Shape, u32),
        exec: u32,
    ) -> Touch {
        let addresses = Addresses::of(w, u, shape);
        let active = access::active(w, u, shape, exec);
        let touching = if active == u32::MAX {
            let slot = segment.alike.unwrap_or(number) as usize % SEEN;
            if self.seen.len() <= slot {
                self.seen.resize_with(slot + 1, Seen::default);
            }
            let seen = &mut self.seen[slot];
            let addresses = (|lane| addresses.wide(lane), || addresses.low());
            self.lines.find(seen, addresses, (shape.len, segment.alike.is_some()))
        } else {
            self.lines.clear();
            lanes(active).for_each(|lane| self.lines.add(addresses.wide(lane), shape.len));
            self.lines.touching()
        };
        let wanted = u64::from(active.count_ones() * shape.len);
        let Some(ledger) = &mut self.ledger else { return self.behind.global(touching, (shape, step.latency), wanted) };
        let (touch, moved) = self.behind.global_noted(touching, (shape, step.latency), wanted);
        ledger.accessed(number, &[], (touching.sectors(), wanted), (touch.filled, moved));
        touch
    }

    /// Accesses to other memory, or to several kinds of it.
    #[inline(never)]
    fn others(
        &mut self,
        w: &Warp,
        env: &Env<'_>,
        u: &Uop,
        (step, shape, number): (&Step, &Shape, u32),
        exec: u32,
    ) -> Touch {
        let mut accesses = std::mem::take(&mut self.accesses);
        access::find(&mut accesses, w, env, u, shape, exec);
        self.lines.clear();
        let mut bytes = 0;
        for access in accesses.iter().filter(|access| access.memory == Memory::Global) {
            self.lines.add(access.at, access.len);
            bytes += u64::from(access.len);
        }
        let (touching, of) = (self.lines.touching(), (shape, step.latency));
        let (touch, moved) = match &self.ledger {
            None => (self.behind.global(touching, of, bytes), 0),
            Some(_) => self.behind.global_noted(touching, of, bytes),
        };
        let stored = memory::shared(&accesses, step.latency);
        let touch = match shape.space {
            // The words are stored when they have come, while others are asked for.
            Space::Copy => touch.meanwhile(stored),
            _ => touch.and(stored).and(memory::local(&accesses, step.latency)),
        };
        if let Some(ledger) = &mut self.ledger {
            let sectors = touching.sectors();
            ledger.accessed(number, &accesses, (sectors, bytes), (touch.filled, moved));
        }
        self.accesses = accesses;
        touch
    }
}
