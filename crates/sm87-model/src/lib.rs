//! The model's view of a CTA: a [`Meter`] accounts for instructions when they are executed.
//!
//! ```text
//!   mod        which instructions are looked at     machine   what is modelled, and the estimate
//!    ├ segment   instructions that are accounted for together
//!    ├ step      what must be known of an instruction      table   the figures of sm_87, with their sources
//!    ├ timeline  when a warp issues its instructions
//!    ├ memory    lines, sectors, caches and banks
//!    ├ l2        the cache that all CTAs share
//!    ├ traffic   when what is read from the DRAM has come
//!    ├ ledger    what is noted of each instruction for a profile
//!    └ gpu     SMs, and the estimate
//! ```
//!
//! A launch that names no machine has no meter and no such copy, so that it executes what it always executed. The numbers of a
//! launch depend on nothing but the launch: one thread executes its CTAs in order, and the caches are empty when it begins.
mod gpu;
mod l2;
mod ledger;
mod machine;
mod memory;
mod segment;
mod step;
mod table;
mod timeline;
mod traffic;

pub use gpu::Occupancy;
pub use ledger::{Accesses, Counters, Listed, Rows, Stall};
pub use machine::{Estimate, Machine, Unit};
pub use table::{instructions_per_cycle, operations_per_cycle};

use gpu::{Busy, Gpu};
use ledger::Ledger;
use memory::{Lines, Seen, Touch, Way};
use segment::Segments;
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
use table::{SCHEDULERS, SHARED_LOAD, SHARED_STORE};
use tegrarm_lock::Mutex;
use timeline::Timeline;
use traffic::Traffic;

/// The model of what one launch takes on a machine.
pub struct Model {
    gpu: Arc<Mutex<Gpu>>,
    estimate: Mutex<Option<Estimate>>,
    /// What is noted of each instruction, if that is asked for.
    rows: Option<Arc<Mutex<Rows>>>,
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("estimate", &self.estimate).finish_non_exhaustive()
    }
}

impl Model {
    /// The model of a launch that has not begun.
    pub fn new(machine: Machine, launch: &Launch) -> Model {
        Model { gpu: Arc::new(Mutex::new(Gpu::new(machine, launch))), estimate: Mutex::default(), rows: None }
    }

    /// The same, which also notes what each instruction does.
    pub fn noting(machine: Machine, launch: &Launch) -> Model {
        Model { rows: Some(Arc::default()), ..Model::new(machine, launch) }
    }

    /// What was noted of each instruction, once the launch has ended.
    pub fn rows(&self) -> Rows {
        self.rows.as_ref().map(|rows| std::mem::take(&mut *rows.lock())).unwrap_or_default()
    }

    /// What the launch takes, once it has ended. It is never less than what its program saw on the clocks.
    pub fn estimate(&self) -> Option<Estimate> {
        *self.estimate.lock()
    }
}

impl Observer for Model {
    /// Every instruction is accounted for, but only the heads of segments are looked at.
    fn choose(&self, image: &Image, fetch: &mut Fetch<'_>) -> Chosen {
        let word = |at: u32| image.place(at).and_then(&mut *fetch).unwrap_or_default();
        let words: Vec<_> = (0..image.len()).map(word).collect();
        let steps: Vec<_> = words.iter().map(|&word| Step::of(isa::lookup(word), word)).collect();
        let mut segments = Segments::new(&steps, &image.targets());
        if self.rows.is_some() {
            let listed = |at: usize| Some(Listed::new(image.place(at as u32)?, words[at], &steps[at]));
            segments.listed = (0..steps.len()).map(listed).collect();
        }
        let heads = segments.heads(|at| image.guard(at)).into_iter().zip(0..);
        let which = heads.map(|(is_head, at)| is_head && image.word(at) != 0).collect();
        Chosen { which, notes: Arc::new(Arc::new(segments)) }
    }

    fn ctas<'a>(&'a self, _: &Launch, _: &Image) -> Box<dyn CtaObserver + 'a> {
        Meter::new(&self.gpu, self.rows.as_ref().map(Ledger::new))
    }

    fn ends(&self, shown: u64) {
        *self.estimate.lock() = Some(self.gpu.lock().estimate(shown));
    }
}

impl CtaObserver for Meter {
    fn begins(&mut self, sm: u32) {
        self.begin(sm);
    }

    /// Accounts for a segment, and then executes its first instruction.
    fn step(&mut self, step: &mut Instruction<'_, '_>) -> Flow {
        if !step.is_second_call() {
            let (w, env, u) = step.parts();
            self.segment(w, env, u, step.exec());
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
        self.warps.iter_mut().for_each(|warp| warp.next = warp.next.and_then(moved));
    }

    fn ends(&mut self) {
        self.end();
    }
}

/// The most segments in a row of which no lane executes the first instruction, and that are accounted for nevertheless.
const SKIPPED: u32 = 64;

/// Of so many instructions the last access is known.
const SEEN: usize = 16;

/// What the model knows of a CTA.
pub(crate) struct Meter {
    gpu: Arc<Mutex<Gpu>>,
    sm: u32,
    /// The scheduler of the first warp.
    scheduler: usize,
    warps: Vec<Timeline>,
    /// When the last warp came to each barrier, in the phases with even and with odd numbers.
    barriers: [[u64; 2]; 16],
    busy: Busy,
    accesses: Vec<Access>,
    lines: Lines,
    /// The last accesses of instructions.
    seen: [Seen; SEEN],
    traffic: Traffic,
    /// The bytes that this place of a CTA has asked the L2 cache for.
    asked: u64,
    /// The bytes that the DRAM has moved for the instruction that is accounted for.
    moved: u64,
    ledger: Option<Box<Ledger>>,
}

impl Meter {
    /// Has seen nothing yet.
    pub(crate) fn new(gpu: &Arc<Mutex<Gpu>>, ledger: Option<Box<Ledger>>) -> Box<Meter> {
        Box::new(Meter {
            gpu: gpu.clone(),
            sm: 0,
            scheduler: 0,
            warps: Vec::new(),
            barriers: [[0; 2]; 16],
            busy: Default::default(),
            accesses: Vec::with_capacity(64),
            lines: Lines::default(),
            seen: Default::default(),
            traffic: gpu.lock().traffic(),
            asked: 0,
            moved: 0,
            ledger,
        })
    }

    /// A CTA begins on an SM.
    pub(crate) fn begin(&mut self, sm: u32) {
        self.sm = sm;
        (self.scheduler, self.asked) = self.gpu.lock().begin(sm);
        self.warps.clear();
        self.barriers = [[0; 2]; 16];
        self.busy = Default::default();
        self.traffic.clear();
    }

    /// The CTA has ended.
    pub(crate) fn end(&mut self) {
        let latency = self.warps.iter().map(Timeline::end).max().unwrap_or(0);
        self.gpu.lock().end(self.sm, (latency, self.asked), &self.busy);
    }

    /// The timeline of a warp.
    fn warp(&mut self, index: u32) -> &mut Timeline {
        let index = index as usize;
        if self.warps.len() <= index {
            self.warps.resize(index + 1, Timeline::default());
        }
        &mut self.warps[index]
    }

    /// Accounts for a segment before the lanes in `exec` execute its first instruction.
    fn segment(&mut self, w: &Warp, env: &Env<'_>, u: &Uop, exec: u32) {
        let Some(segments) = env.image().notes::<Arc<Segments>>() else { return };
        let Some(&number) = segments.of.get(u.at() as usize) else { return };
        if let Some(ledger) = &mut self.ledger {
            ledger.turn_to(segments);
        }
        let next = self.warp(w.index()).next;
        if let Some(next) = next.filter(|&next| next < number && number - next <= SKIPPED) {
            (next..number).for_each(|skipped| self.skip(w, segments, skipped));
        }
        let Some(segment) = segments.all.get(number as usize) else { return };
        self.resume(w.index());
        match &segment.first {
            None => {}
            Some(step) if self.ledger.is_some() => {
                let warp = self.warp(w.index());
                let (began, why) = (warp.now(), warp.reason(step.waits));
                self.first(w, env, u, (step, number), exec);
                self.waited(w.index(), (step, number), began, why);
            }
            Some(step) => self.first(w, env, u, (step, number), exec),
        }
        self.rest(w, segments, number);
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
    fn first(&mut self, w: &Warp, env: &Env<'_>, u: &Uop, (step, number): (&Step, u32), exec: u32) {
        if let Some(first) = self.ledger.as_mut().and_then(|ledger| ledger.first(number)) {
            first.lanes += u64::from(exec.count_ones());
        }
        match step.kind {
            Kind::Access(shape) => self.access(w, env, u, (step, shape, number), exec),
            Kind::Barrier => self.barrier(w, u, step, exec),
            Kind::Plain => {
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
    fn rest(&mut self, w: &Warp, segments: &Segments, number: u32) {
        let segment = &segments.all[number as usize];
        let busy = self.units(w.index());
        busy.iter_mut().zip(&segment.units).for_each(|(sum, &more)| *sum += u64::from(more));
        let at = segment.events.start as usize..segment.events.end as usize;
        let timeline = &mut self.warps[w.index() as usize];
        match &mut self.ledger {
            None => timeline.run(&segments.events[at], segment.tail),
            Some(ledger) => {
                ledger.ran(number, w.active());
                timeline.run_noted(&segments.events[at.clone()], segment.tail, &mut ledger.waited[at]);
            }
        }
        timeline.next = segment.falls_through.then_some(number + 1);
    }

    /// Accounts for a segment of which no lane executes the first instruction.
    fn skip(&mut self, w: &Warp, segments: &Segments, number: u32) {
        self.resume(w.index());
        if let Some(step) = &segments.all[number as usize].first {
            let warp = self.warp(w.index());
            let (began, why) = (warp.now(), warp.reason(step.waits));
            self.issue(w.index(), step, 0);
            if self.ledger.is_some() {
                self.waited(w.index(), (step, number), began, why);
            }
        }
        self.rest(w, segments, number);
    }

    /// If the warp waited at a barrier, the barrier is complete now.
    fn resume(&mut self, warp: u32) {
        if let Some((barrier, phase)) = self.warp(warp).waits.take() {
            let complete = self.barriers[barrier][phase];
            let warp = self.warp(warp);
            let (cycles, number) = (complete.saturating_sub(warp.now()), warp.waits_in);
            warp.wait_until(complete);
            if let Some(first) = self.ledger.as_mut().and_then(|ledger| ledger.first(number)) {
                first.waited[Stall::Barrier as usize] += cycles;
            }
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
        let complete = &mut self.barriers[barrier][phase];
        *complete = begun.max(*complete);
    }

    /// The lanes in `exec` access memory.
    fn access(&mut self, w: &Warp, env: &Env<'_>, u: &Uop, (step, shape, number): (&Step, Shape, u32), exec: u32) {
        self.moved = 0;
        let touch = match shape.space {
            Space::Global => {
                let addresses = Addresses::of(w, u, shape);
                let active = access::active(w, u, shape, exec);
                if active == u32::MAX {
                    let all = std::array::from_fn(|lane| addresses.wide(lane as u32));
                    self.lines.find(&mut self.seen[number as usize % SEEN], &all, shape.len);
                } else {
                    self.lines.clear();
                    lanes(active).for_each(|lane| self.lines.add(addresses.wide(lane), shape.len));
                }
                let touch = self.global(shape);
                self.note(number, touch, &[], u64::from(active.count_ones() * shape.len));
                touch
            }
            _ => {
                let mut accesses = std::mem::take(&mut self.accesses);
                access::find(&mut accesses, w, env, u, shape, exec);
                self.lines.clear();
                let global = accesses.iter().filter(|access| access.memory == Memory::Global);
                global.for_each(|access| self.lines.add(access.at, access.len));
                let touch = match shape.space {
                    // The words are stored when they have come, while others are asked for.
                    Space::Copy => self.global(shape).meanwhile(shared(&accesses, shape)),
                    _ => self.global(shape).and(shared(&accesses, shape)).and(local(&accesses)),
                };
                if self.ledger.is_some() {
                    let global = accesses.iter().filter(|access| access.memory == Memory::Global);
                    self.note(number, touch, &accesses, global.map(|access| u64::from(access.len)).sum());
                }
                self.accesses = accesses;
                touch
            }
        };
        let units = self.units(w.index());
        units[Unit::LoadStore as usize] += touch.busy.max(1);
        units[Unit::L1Fill as usize] += touch.filled;
        let at = self.warp(w.index()).ready(step.waits);
        let latency = touch.latency + if touch.missed == 0 { 0 } else { self.traffic.read(at, touch.missed) };
        let begun = self.issue(w.index(), step, latency);
        if shape.space == Space::Copy {
            self.warp(w.index()).copy(begun + latency);
        }
    }

    /// Notes what an instruction accesses: `global` bytes of global memory, in the lines that were found, and others.
    fn note(&mut self, number: u32, touch: Touch, others: &[Access], global: u64) {
        let Some(first) = self.ledger.as_mut().and_then(|ledger| ledger.first(number)) else { return };
        let mut add = |to: fn(&mut Counters) -> &mut Accesses, taken: u64, least: u64| {
            if taken > 0 {
                let accesses = to(first);
                (accesses.requests, accesses.taken) = (accesses.requests + 1, accesses.taken + taken);
                accesses.least += least.min(taken);
            }
        };
        add(|c| &mut c.global, self.lines.sectors(), global.div_ceil(table::SECTOR));
        add(|c| &mut c.shared, memory::conflicts(others), memory::phases(others));
        add(|c| &mut c.local, local(others).busy, local(others).busy);
        (first.l2_bytes, first.dram_bytes) = (first.l2_bytes + touch.filled, first.dram_bytes + self.moved);
    }

    /// Accesses to the lines of global memory that were found.
    fn global(&mut self, shape: Shape) -> Touch {
        if self.lines.is_empty() {
            return Touch::default();
        }
        let copies = shape.space == Space::Copy;
        let way = Way { writes: shape.writes && !copies, passes_l1: shape.strong };
        let mut gpu = self.gpu.lock();
        let Some((behind, l1)) = gpu.memory(self.sm) else { return Touch::default() };
        let before = behind.dram_bytes;
        let touch = memory::global(behind, l1, &self.lines, way, self.asked);
        self.moved += behind.dram_bytes - before;
        self.asked += touch.filled;
        touch
    }
}

/// Accesses to shared memory.
fn shared(accesses: &[Access], shape: Shape) -> Touch {
    let times = memory::conflicts(accesses);
    if times == 0 {
        return Touch::default();
    }
    let latency = if shape.reads { SHARED_LOAD } else { SHARED_STORE };
    Touch { busy: times, latency: u64::from(latency) + times - 1, ..Touch::default() }
}

/// Accesses to local memory: a word of all lanes is one line, which the L1 cache is assumed to have.
fn local(accesses: &[Access]) -> Touch {
    let words = |access: &Access| u64::from(access.len.div_ceil(4));
    let own = accesses.iter().filter(|access| access.memory == Memory::Local);
    own.map(words).max().map_or_else(Touch::default, |lines| Touch {
        busy: lines,
        latency: u64::from(table::L1_HIT) + lines - 1,
        ..Touch::default()
    })
}
