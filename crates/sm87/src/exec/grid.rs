//! A grid: its CTAs are executed one after another or on several host threads.
#![allow(unsafe_code)]

use super::clock;
use super::consts::Banks;
use super::decode;
use super::env::{self, Env, Launched, WarpError, nack};
use super::image::{Fetch, Image, MOST_INSTRUCTIONS};
use super::mem::Tlb;
use super::observe::Observer;
use super::programs::Programs;
use super::schedule::{Interrupt, Order, Supervisor};
use super::threads::{Apart, Helpers, Shares};
use super::translate;
use super::uop::{Flow, Handlers, Uop};
use super::warp::Warp;
use super::worker::Worker;
use crate::fault::{ErrorRegisters, SmFault, Stopped};
use crate::launch::{Launch, RunStats};
use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use tegrarm_lock::Mutex;

/// After this many instructions, the calling thread estimates how large the grid is, unless an earlier launch of the program
/// has told.
const SAMPLE: u64 = 4096;
/// A grid that takes as long as this many instructions is worth starting other threads.
const WORTH: u64 = 10_000;
/// A thread reports its instructions to the grid when it has executed this many.
const BATCH: u64 = 4096;

/// What all workers of a launch share.
pub(super) struct Grid<'a> {
    pub launched: Launched<'a>,
    /// The program with which the launch begins.
    image: Arc<Image>,
    /// The SMs that get CTAs.
    sms: Vec<u32>,
    /// What the clock of each of these SMs shows.
    clocks: Vec<AtomicU64>,
    ctas: u64,
    /// The order in which they start, if it is not the usual one.
    order: Option<Order>,
    /// The next CTA to start, as long as one thread executes the grid.
    next: AtomicU64,
    /// The CTAs that are left when several threads begin to execute it.
    shares: OnceLock<Shares>,
    /// The first CTA that has failed so far; see [`Watch::abandoned`].
    failed: AtomicU64,
    /// The instructions that threads have reported.
    issued: Apart,
    /// The number of turns in which a CTA did more than wait, since a CTA has waited.
    progress: Apart,
    /// Whether a CTA has waited.
    waits: AtomicBool,
    failures: Mutex<Vec<Failure>>,
    /// Whether somebody was told that a part of a warp waits.
    told: AtomicBool,
}

/// The failure of a CTA.
struct Failure {
    cta: u64,
    /// Whether it failed in its first turn. Such a failure does not depend on what other threads did at the time.
    at_once: bool,
    fault: SmFault,
}

/// Runs a grid to its end. `observers` look at it.
pub(crate) fn run(launch: &Launch, observers: &[&dyn Observer]) -> Result<RunStats, Stopped> {
    check(launch)?;
    let mut tlb = Tlb::new(&launch.table, [launch.shared_window, launch.local_window]);
    let (decoded, image) = {
        let code = &mut tlb.code(launch.code);
        let decoded = decode::find(launch.code, code);
        (decoded.clone(), fit(decoded, launch, observers, code))
    };
    let launched = Launched {
        launch,
        programs: Programs::new(image.clone()),
        banks: Banks::read(launch, &mut tlb),
        tids: env::thread_indices(launch.block),
        observers,
    };
    let ctas = launch.grid.iter().map(|&n| u64::from(n)).product();
    let ([x, y, z], [width, height, _]) = (launch.first.map(u64::from), launch.grid.map(u64::from));
    let first = x + width * (y + height * z);
    // The mask of those that are disabled has 64 bits.
    let mut sms = Vec::with_capacity(launch.sm_count.min(64) as usize);
    sms.extend(launch.enabled_sms());
    let grid = Grid {
        launched,
        image,
        clocks: sms.iter().map(|_| AtomicU64::default()).collect(),
        sms,
        ctas,
        order: launch.limits.schedule.filter(|_| !launch.sequential).map(|key| Order::of(key, first, ctas)),
        next: AtomicU64::new(first),
        shares: OnceLock::new(),
        failed: AtomicU64::new(u64::MAX),
        issued: Apart::default(),
        progress: Apart::default(),
        waits: AtomicBool::default(),
        failures: Mutex::default(),
        told: AtomicBool::default(),
    };
    let stats = grid.run();
    decoded.executed.fetch_add(stats.warp_instructions, Ordering::Relaxed);
    observers.iter().for_each(|observer| observer.ends(grid.shown()));
    stopped(grid.failures.into_inner(), grid.sms.len() as u64).map_or(Ok(stats), Err)
}

/// Combines the failures of a grid on `sms` SMs: the result has the fault of the first CTA, and the state of the SMs of
/// the next ones.
fn stopped(mut failures: Vec<Failure>, sms: u64) -> Option<Stopped> {
    failures.sort_by_key(|f| f.cta);
    let mut failures = failures.into_iter();
    let first = failures.next()?;
    let mut stopped = Stopped::from(first.fault);
    for next in failures.filter(|f| f.at_once && f.cta - first.cta <= sms) {
        match next.fault.record() {
            _ if next.cta - first.cta == sms => stopped.fault.joined_by(&next.fault),
            Some(record) => stopped.others.push(record),
            None => {}
        }
    }
    Some(stopped)
}

/// Refuses a launch that no SM could execute.
fn check(launch: &Launch) -> Result<(), SmFault> {
    let threads = launch.block.iter().map(|&n| u64::from(n)).product::<u64>();
    if threads == 0 || threads > 1024 {
        let text = format!("block of {threads} threads: 1 to 1024 are possible");
        return Err(warp_fault(launch.code, WarpError::IllegalParameter, text));
    }
    if launch.enabled_sms().next().is_none() {
        return Err(SmFault::Hang { pc: launch.code, text: "no SM may run its CTAs".to_owned() });
    }
    if !launch.code.is_multiple_of(16) {
        let text = format!("code address {:#x} is not 16-byte aligned", launch.code);
        return Err(warp_fault(launch.code, WarpError::MisalignedPc, text));
    }
    Ok(())
}

fn warp_fault(pc: u64, code: WarpError, text: String) -> SmFault {
    SmFault::Warp { record: ErrorRegisters { global_esr: 0, warp_esr: code as u32, pc }, sm: 0, text, site: None }
}

/// Adapts the image to a launch: instructions that use more registers than its threads have raise an exception, and observers choose
/// those that they look at.
fn fit(image: Arc<Image>, launch: &Launch, observers: &[&dyn Observer], fetch: &mut Fetch<'_>) -> Arc<Image> {
    let registers = launch.registers;
    let fits = image.registers <= registers;
    let image = if fits { image } else { Arc::new(image.limited(registers, Handlers::all(register_range))) };
    let Some((first, others)) = observers.split_first() else { return image };
    translate::if_worth(&image, launch.limits.translated_after);
    let first = image.observed(first.choose(&image, fetch));
    let mut copy = others.iter().fold(first, |copy, observer| copy.observed(observer.choose(&copy, fetch)));
    translate::share(&image, &mut copy);
    Arc::new(copy)
}

fn register_range(_: &mut Warp, env: &mut Env<'_>, u: &Uop, _: u32) -> Flow {
    let name = env.image.name(u.at);
    let text = format!("{name} uses R{}, but a thread has {} registers", u.registers - 1, env.launch().registers);
    env.warp_error(u, WarpError::RegisterRange, text)
}

/// The copy of its program with which a CTA goes on, if an observer wants that.
pub(crate) fn another(env: &mut Env<'_>) -> Option<Arc<Image>> {
    let mut another = None;
    env.observed_by(|observer, env| another = another.take().or_else(|| observer.another_program(env)));
    another
}

/// Decodes the code at `env.outcome.extend`. Returns the new image.
pub(crate) fn extended(env: &mut Env<'_>) -> Result<Arc<Image>, SmFault> {
    if let Some(image) = another(env) {
        return Ok(image);
    }
    let (code, at) = (env.launch().code, env.outcome.extend);
    let mut probe = [0; 16];
    env.memory.tlb.read(at, &mut probe).map_err(|fault| nack(fault, true, env.cta.sm, at))?;
    let root = (at.wrapping_sub(code) as i64) / 16;
    let sm = env.cta.sm;
    let too_much = || {
        let text = format!(
            "jump to {at:#x}: the kernel at {code:#x} would have more than {MOST_INSTRUCTIONS} instructions with the code there"
        );
        let record = ErrorRegisters { global_esr: 0, warp_esr: WarpError::PcOverflow as u32, pc: at };
        SmFault::Warp { record, sm, text, site: None }
    };
    let (Launched { launch, programs, observers, .. }, tlb) = (env.launched, &mut env.memory.tlb);
    let words = &mut tlb.code(code);
    let extended = |newest: &Image| Some(fit(decode::extend(newest, root, code, words)?, launch, observers, words));
    programs.with(&env.image, root, extended).ok_or_else(too_much)
}

/// How the grid watches a CTA during one of its turns.
pub(super) struct Watch<'w, 'g> {
    pub grid: &'w Grid<'g>,
    pub cta: u64,
    pub first_turn: bool,
    /// The instructions that the thread has executed and not yet reported to the grid.
    pub pending: &'w Cell<u64>,
}

impl Watch<'_, '_> {
    /// Whether the turn is abandoned. This is so if an earlier CTA failed, and this CTA is not one of those that
    /// continue for a turn to show the state of the other SMs.
    fn abandoned(&self) -> bool {
        let failed = self.grid.failed.load(Ordering::Relaxed);
        self.cta > failed && !(self.first_turn && self.cta - failed <= self.grid.sms.len() as u64)
    }
}

impl Supervisor for Watch<'_, '_> {
    fn poll(&self, issued: u64) -> Result<(), Interrupt> {
        let grid = self.grid;
        let pending = self.pending.get() + issued;
        let told = if pending >= BATCH { grid.issued.0.fetch_add(pending, Ordering::Relaxed) + pending } else { 0 };
        self.pending.set(if pending >= BATCH { 0 } else { pending });
        if let Some(progress) = &grid.launched.launch.limits.progress
            && told != 0
        {
            progress.issued.store(told, Ordering::Relaxed);
        }
        // What other threads have reported is looked at with each report: they change it often.
        let known = || if grid.is_shared() { 0 } else { grid.issued.0.load(Ordering::Relaxed) };
        let total = if told != 0 { told } else { known() + pending };
        if self.abandoned() {
            return Err(Interrupt::Other);
        }
        let limits = &grid.launched.launch.limits;
        if limits.cancel.as_ref().is_some_and(|c| c.load(Ordering::Relaxed)) {
            return Err(Interrupt::Cancelled);
        }
        if total > limits.budget { Err(Interrupt::Budget) } else { Ok(()) }
    }
}

impl Grid<'_> {
    /// Takes the next CTAs to start, if there are any, for the thread with this number. They are the `first` ones of all if it has to be.
    pub(super) fn take(&self, thread: usize, first: bool) -> Range<u64> {
        let taken = match self.shares.get() {
            Some(shares) => shares.take(thread, first),
            None => {
                let next = self.add(&self.next, 1);
                next.min(self.ctas)..(next + 1).min(self.ctas)
            }
        };
        if let Some(progress) = self.launched.launch.limits.progress.as_ref().filter(|_| !taken.is_empty()) {
            self.raise(&progress.started, self.ctas - self.unstarted());
        }
        taken
    }

    /// Whether a CTA that was taken may start. If one has failed, only those may that a GPU would have started by then.
    pub(super) fn starts(&self, cta: u64) -> bool {
        cta <= self.failed.load(Ordering::Relaxed).saturating_add(self.sms.len() as u64)
    }

    /// Whether several threads execute the grid. A single one need not keep others from changing a number that it changes.
    fn is_shared(&self) -> bool {
        self.shares.get().is_some()
    }

    /// Adds to a number that threads share. Returns what it was.
    fn add(&self, number: &AtomicU64, more: u64) -> u64 {
        if self.is_shared() {
            return number.fetch_add(more, Ordering::Relaxed);
        }
        let was = number.load(Ordering::Relaxed);
        number.store(was + more, Ordering::Relaxed);
        was
    }

    /// Makes a number that threads share at least `least`.
    pub(super) fn raise(&self, number: &AtomicU64, least: u64) {
        if self.is_shared() {
            number.fetch_max(least, Ordering::Relaxed);
        } else if number.load(Ordering::Relaxed) < least {
            number.store(least, Ordering::Relaxed);
        }
    }

    /// Notes that a CTA did more than wait. Only CTAs that wait want to know that, and there are none in most grids: threads that change one
    /// number wait for each other.
    pub(super) fn progresses(&self) {
        if self.waits.load(Ordering::Relaxed) {
            self.add(&self.progress.0, 1);
        }
    }

    /// The number of turns in which a CTA did more than wait, for one that waits.
    pub(super) fn progress(&self) -> u64 {
        if !self.waits.load(Ordering::Relaxed) {
            self.waits.store(true, Ordering::Relaxed);
        }
        self.progress.0.load(Ordering::Relaxed)
    }

    fn run(&self) -> RunStats {
        let mut own = Worker::new(self, 0);
        let most = (self.threads() as u64).min(self.unstarted());
        if most > 1 {
            // The CTAs are expected to take as long as those of the launch before.
            let before = self.image.weight.load(Ordering::Relaxed);
            if before.saturating_mul(self.unstarted()) < WORTH {
                own.sample(SAMPLE);
                // The CTAs that are left are expected to take as long as those that were started.
                if own.weight() * self.unstarted() < WORTH {
                    own.work(WORTH);
                }
            }
        }
        // The sample may have reached code that must not have several threads.
        let most = if self.launched.programs.newest().ordered { 1 } else { most.min(self.unstarted() + 1) };
        let helpers = (most > 1).then(|| Helpers::find(most as usize - 1)).flatten();
        let Some(helpers) = helpers else {
            own.work(u64::MAX);
            self.weighs(own.weight());
            return own.stats();
        };
        // The CTAs of one part must not take all places of the GPU, because they may wait for those of another part.
        let (left, most) = (self.ctas - self.unstarted()..self.ctas, own.room() / 4);
        self.shares.get_or_init(|| Shares::of(left, helpers.count() + 1, most));
        let stats = Mutex::new(RunStats::default());
        let work = |worker: &mut Worker<'_>| {
            worker.work(u64::MAX);
            add(&mut stats.lock(), worker.stats());
        };
        helpers.work(|thread| work(&mut Worker::new(self, thread + 1)), || work(&mut own));
        self.weighs(own.weight());
        stats.into_inner()
    }

    /// Notes what a CTA takes, for the next launch. It begins with the newest program.
    fn weighs(&self, weight: u64) {
        self.image.weight.store(weight, Ordering::Relaxed);
        self.launched.programs.newest().weight.store(weight, Ordering::Relaxed);
    }

    /// What the clocks showed at the end, in nanoseconds. It is 0 if the program does not keep time.
    fn shown(&self) -> u64 {
        let shown = self.clocks.iter().map(|clock| clock.load(Ordering::Relaxed)).max().unwrap_or(0);
        if self.launched.programs.newest().keeps_time() { clock::nanoseconds(shown) } else { 0 }
    }

    /// The number of host threads that may work on the grid. Code whose results depend on the order of CTAs gets one, and
    /// so does a launch that is observed, so that observers see the same every time.
    fn threads(&self) -> usize {
        let Launch { sequential, limits, .. } = self.launched.launch;
        if self.image.ordered || *sequential || limits.schedule.is_some() || !self.launched.observers.is_empty() {
            return 1;
        }
        match self.launched.launch.limits.threads {
            0 => host_threads(),
            n => n,
        }
    }

    /// The SM that runs a CTA, and its place among the SMs that get CTAs.
    pub(super) fn sm(&self, cta: u64) -> (u32, usize) {
        let at = (cta % self.sms.len() as u64) as usize;
        (self.sms[at], at)
    }

    /// What the clocks of the SMs show.
    pub(super) fn clocks(&self) -> Vec<u64> {
        self.clocks.iter().map(|clock| clock.load(Ordering::Relaxed)).collect()
    }

    /// The clocks of the SMs show at least this.
    pub(super) fn show(&self, clocks: &[u64]) {
        self.clocks.iter().zip(clocks).for_each(|(clock, &least)| self.raise(clock, least));
    }

    /// Tells what a CTA that idles waits for, if somebody wants to hear it and was not told before.
    pub(super) fn tell(&self, what: impl FnOnce() -> Option<String>) {
        if let Some(told) = self.launched.launch.limits.told.as_ref().filter(|_| !self.told.load(Ordering::Relaxed))
            && let Some(text) = what()
            && !self.told.swap(true, Ordering::Relaxed)
        {
            told.0(&text);
        }
    }

    /// Whether a CTA has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed) != u64::MAX
    }

    /// CTAs that have not been started.
    pub(super) fn unstarted(&self) -> u64 {
        let alone = || self.ctas.saturating_sub(self.next.load(Ordering::Relaxed));
        self.shares.get().map_or_else(alone, Shares::left)
    }

    /// The coordinates of a CTA by its number: x changes fastest.
    pub(super) fn place(&self, cta: u64) -> [u32; 3] {
        let cta = self.order.map_or(cta, |order| order.at(cta));
        let [x, y, _] = self.launched.launch.grid.map(u64::from);
        if cta < x {
            return [cta as u32, 0, 0];
        }
        [(cta % x) as u32, (cta / x % y) as u32, (cta / x / y) as u32]
    }

    /// Records a fault. The fault of the first CTA is reported, whatever order they ran in.
    pub(super) fn fail(&self, cta: u64, at_once: bool, fault: SmFault) {
        self.failed.fetch_min(cta, Ordering::Relaxed);
        self.failures.lock().push(Failure { cta, at_once, fault });
    }
}

/// Of so many launches, one asks the system for its processors.
const ASKS: usize = 64;

/// The number of host threads that can run at once. The system reads files of control groups to answer, which takes longer than a
/// short grid.
fn host_threads() -> usize {
    static LAUNCHES: AtomicUsize = AtomicUsize::new(0);
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    let known = THREADS.load(Ordering::Relaxed);
    if known > 0 && !LAUNCHES.fetch_add(1, Ordering::Relaxed).is_multiple_of(ASKS) {
        return known;
    }
    let found = std::thread::available_parallelism().map_or(1, usize::from);
    THREADS.store(found, Ordering::Relaxed);
    found
}

/// The fault that reports an interruption from outside.
pub(super) fn hang(why: Interrupt, pc: u64) -> SmFault {
    let text = match why {
        Interrupt::Budget => "the grid used up its instruction budget",
        Interrupt::Cancelled | Interrupt::Other => "the run was cancelled",
    };
    SmFault::Hang { pc, text: text.to_owned() }
}

pub(super) fn add(sum: &mut RunStats, more: RunStats) {
    sum.warp_instructions += more.warp_instructions;
    sum.thread_instructions += more.thread_instructions;
    sum.cpu_ns += more.cpu_ns;
}

#[cfg(test)]
#[path = "tests/observe.rs"]
mod tests;
