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
//!    └ gpu     SMs, and the estimate
//! ```
//!
//! A launch that names no machine has no meter and no such copy, so that it executes what it always executed. The numbers of a
//! launch depend on nothing but the launch: one thread executes its CTAs in order, and the caches are empty when it begins.
mod gpu;
mod l2;
mod machine;
mod memory;
mod segment;
mod step;
mod table;
mod timeline;
mod traffic;

pub use machine::{Estimate, Machine, Unit};

use gpu::{Busy, Gpu};
use memory::{Lines, Touch, Way};
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
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("estimate", &self.estimate).finish_non_exhaustive()
    }
}

impl Model {
    /// The model of a launch that has not begun.
    pub fn new(machine: Machine, launch: &Launch) -> Model {
        Model { gpu: Arc::new(Mutex::new(Gpu::new(machine, launch))), estimate: Mutex::default() }
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
        let steps: Vec<_> = (0..image.len()).map(word).map(|word| Step::of(isa::lookup(word), word)).collect();
        let segments = Segments::new(&steps, &image.targets());
        let heads = segments.heads(|at| image.guard(at)).into_iter().zip(0..);
        let which = heads.map(|(is_head, at)| is_head && image.word(at) != 0).collect();
        Chosen { which, notes: Arc::new(segments) }
    }

    fn ctas<'a>(&'a self, _: &Launch, _: &Image) -> Box<dyn CtaObserver + 'a> {
        Meter::new(&self.gpu)
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
        let (Some(old), Some(new)) = (before.notes::<Segments>(), now.notes::<Segments>()) else { return };
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
    traffic: Traffic,
    /// The bytes that this place of a CTA has asked the L2 cache for.
    asked: u64,
}

impl Meter {
    /// Has seen nothing yet.
    pub(crate) fn new(gpu: &Arc<Mutex<Gpu>>) -> Box<Meter> {
        Box::new(Meter {
            gpu: gpu.clone(),
            sm: 0,
            scheduler: 0,
            warps: Vec::new(),
            barriers: [[0; 2]; 16],
            busy: Default::default(),
            accesses: Vec::with_capacity(64),
            lines: Lines::default(),
            traffic: gpu.lock().traffic(),
            asked: 0,
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
        let Some(segments) = env.image().notes::<Segments>() else { return };
        let Some(&number) = segments.of.get(u.at() as usize) else { return };
        let next = self.warp(w.index()).next;
        if let Some(next) = next.filter(|&next| next < number && number - next <= SKIPPED) {
            (next..number).for_each(|skipped| self.skip(w.index(), segments, skipped));
        }
        let Some(segment) = segments.all.get(number as usize) else { return };
        self.resume(w.index());
        match &segment.first {
            None => {}
            Some(step) => self.first(w, env, u, step, exec),
        }
        self.rest(w.index(), segments, number);
    }

    /// Accounts for the first instruction of a segment, whose cost depends on what it does.
    fn first(&mut self, w: &Warp, env: &Env<'_>, u: &Uop, step: &Step, exec: u32) {
        match step.kind {
            Kind::Access(shape) => self.access(w, env, u, (step, shape), exec),
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
    fn rest(&mut self, warp: u32, segments: &Segments, number: u32) {
        let segment = &segments.all[number as usize];
        let busy = self.units(warp);
        busy.iter_mut().zip(&segment.units).for_each(|(sum, &more)| *sum += u64::from(more));
        let events = &segments.events[segment.events.start as usize..segment.events.end as usize];
        let timeline = self.warp(warp);
        timeline.run(events, segment.tail);
        timeline.next = segment.falls_through.then_some(number + 1);
    }

    /// Accounts for a segment of which no lane executes the first instruction.
    fn skip(&mut self, warp: u32, segments: &Segments, number: u32) {
        self.resume(warp);
        if let Some(step) = &segments.all[number as usize].first {
            self.issue(warp, step, 0);
        }
        self.rest(warp, segments, number);
    }

    /// If the warp waited at a barrier, the barrier is complete now.
    fn resume(&mut self, warp: u32) {
        if let Some((barrier, phase)) = self.warp(warp).waits.take() {
            let complete = self.barriers[barrier][phase];
            self.warp(warp).wait_until(complete);
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
    fn access(&mut self, w: &Warp, env: &Env<'_>, u: &Uop, (step, shape): (&Step, Shape), exec: u32) {
        let touch = match shape.space {
            Space::Global => {
                let addresses = Addresses::of(w, u, shape);
                self.lines.clear();
                lanes(access::active(w, u, shape, exec))
                    .for_each(|lane| self.lines.add(addresses.wide(lane), shape.len));
                self.global(shape)
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

    /// Accesses to the lines of global memory that were found.
    fn global(&mut self, shape: Shape) -> Touch {
        if self.lines.is_empty() {
            return Touch::default();
        }
        let copies = shape.space == Space::Copy;
        let way = Way { writes: shape.writes && !copies, passes_l1: shape.strong };
        let mut gpu = self.gpu.lock();
        let Some((behind, l1)) = gpu.memory(self.sm) else { return Touch::default() };
        let touch = memory::global(behind, l1, &self.lines, way, self.asked);
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
