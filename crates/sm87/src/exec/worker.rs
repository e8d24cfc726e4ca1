//! The part of a grid that one host thread executes.
//!
//! CTAs run one after another, each to its end. But a CTA may wait for another one that has not run yet, because
//! programs rely on CTAs being on the GPU at the same time. So a CTA that has run for long, or that only waits, lets
//! the next CTA run. They take turns, and at most as many are started as the GPU would hold.

use super::clock::Clock;
use super::cta::{self, End, Warps};
use super::env::{Cta, Env};
use super::grid::{Grid, Watch, add, hang};
use super::schedule::{Drawn, Interrupt};
use super::translate;
use crate::fault::SmFault;
use crate::launch::{Launch, RunStats};
use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// The number of instructions that a CTA runs before another one gets its turn.
const TURN: u64 = 1 << 20;
/// The number of instructions that a thread's CTAs spend waiting before the thread yields its processor (`SHORT`), and
/// before it sleeps for a `NAP` between turns (`LONG`).
const SHORT: u64 = 1 << 14;
const LONG: u64 = 1 << 18;
const NAP: std::time::Duration = std::time::Duration::from_micros(50);
/// A matrix instruction takes about as long as so many others.
const MATRIX: u64 = 32;
/// The number of CTAs and of warps that one SM holds.
const CTAS_PER_SM: u32 = 16;
const WARPS_PER_SM: u32 = 48;
/// The most bytes of shared and local memory that started CTAs may use on the host.
const HOST_MEMORY: u64 = 512 << 20;

/// A CTA that has been started. It is too large to be moved about.
struct Resident<'g> {
    cta: u64,
    first_turn: bool,
    /// The place of its SM among the SMs.
    sm: usize,
    env: Env<'g>,
    store: Warps,
}

/// What one host thread executes.
pub(super) struct Worker<'g> {
    grid: &'g Grid<'g>,
    /// Which of the threads that execute the grid it is.
    thread: usize,
    /// The CTAs that it has taken and not started.
    taken: Range<u64>,
    /// The CTAs that wait for their turn.
    waiting: VecDeque<Box<Resident<'g>>>,
    /// The memory of a CTA that has ended, for the next one.
    spare: Option<Box<Resident<'g>>>,
    /// The number of CTAs that may be started and not finished, and how many of them are started if not all wait.
    room: usize,
    together: usize,
    /// The number of turns in a row in which CTAs did nothing but wait.
    idle: usize,
    /// What the clocks of the SMs show after the CTAs of this thread. The grid hears of it when the thread has nothing left to do. Programs
    /// that look at clocks have one thread.
    clocks: Vec<u64>,
    /// The latest time at which a turn ended.
    latest: u64,
    /// The grid's progress when it was last read, and the instructions that CTAs have spent waiting since then.
    seen: u64,
    waited: u64,
    /// The counts of CTAs whose memory was given up.
    stats: RunStats,
    matrices: u64,
    /// The number of CTAs that were started.
    started: u64,
    /// The instructions that this worker has not yet reported to the grid.
    pending: Cell<u64>,
}

impl<'g> Worker<'g> {
    pub(super) fn new(grid: &'g Grid<'g>, thread: usize) -> Self {
        let (waiting, room) = (VecDeque::new(), room(grid.launched.launch));
        let together = grid.launched.observers.iter().map(|observer| observer.together()).fold(room, usize::min);
        Worker {
            grid,
            thread,
            taken: 0..0,
            waiting,
            spare: None,
            room,
            together,
            idle: 0,
            clocks: grid.clocks(),
            latest: 0,
            seen: 0,
            waited: 0,
            stats: RunStats::default(),
            matrices: 0,
            started: 0,
            pending: Cell::new(0),
        }
    }

    /// The counts of all instructions so far.
    pub(super) fn stats(&self) -> RunStats {
        let mut sum = self.stats;
        self.waiting.iter().chain(&self.spare).for_each(|r| add(&mut sum, r.env.counts.stats));
        sum
    }

    /// What a CTA takes, in instructions of the usual kind: the mean of those that were started.
    pub(super) fn weight(&self) -> u64 {
        let matrices =
            self.waiting.iter().chain(&self.spare).map(|r| r.env.counts.matrices).sum::<u64>() + self.matrices;
        (self.stats().warp_instructions + MATRIX * matrices) / self.started.max(1)
    }

    /// Runs CTAs until none is left, or until `share` instructions were issued.
    pub(super) fn work(&mut self, share: u64) {
        self.work_in_turns(share, TURN);
    }

    /// The same with shorter turns, so that the total is only a little more than `share` instructions.
    pub(super) fn sample(&mut self, share: u64) {
        self.work_in_turns(share, share);
    }

    fn work_in_turns(&mut self, share: u64, turn: u64) {
        let begun = cpu_ns();
        self.turns(share, turn);
        self.grid.show(&self.clocks);
        self.stats.cpu_ns += cpu_ns().saturating_sub(begun);
    }

    fn turns(&mut self, share: u64, turn: u64) {
        let observers = self.grid.launched.observers.iter();
        let turn = observers.map(|observer| observer.longest_turn()).fold(turn, u64::min);
        while share == u64::MAX || self.stats().warp_instructions < share {
            let Some(mut resident) = self.next() else { return };
            let Resident { cta, first_turn, .. } = *resident;
            let watch = Watch { grid: self.grid, cta, first_turn, pending: &self.pending };
            let before = resident.env.counts.stats.warp_instructions;
            self.translate(&resident.env);
            let turn = resident.store.turn(turn);
            let end = cta::run(&mut resident.env, &mut resident.store, &watch, turn);
            self.latest = self.latest.max(resident.env.cycles());
            let idle = matches!(end, End::Idle);
            self.idle = if idle { self.idle + 1 } else { 0 };
            if self.is_stuck(idle.then_some(resident.env.counts.stats.warp_instructions - before)) {
                self.waiting.push_back(resident);
                self.give_up();
                continue;
            }
            match end {
                End::Turn | End::Idle => {
                    resident.first_turn = false;
                    if idle {
                        self.grid.tell(|| resident.store.apart(&resident.env));
                    }
                    self.waiting.push_back(resident);
                    self.rest();
                    continue;
                }
                End::Done | End::Stopped(Interrupt::Other, _) => {}
                End::Stopped(why, pc) => {
                    let apart = resident.store.apart(&resident.env);
                    self.grid.fail(cta, first_turn, self.stopped(why, pc, apart));
                }
                End::Failed(fault) => self.grid.fail(cta, first_turn, fault),
            }
            self.retire(resident);
        }
    }

    /// Translates the program of a CTA if it was executed often enough.
    fn translate(&self, env: &Env<'_>) {
        let executed = env.counts.stats.warp_instructions + env.image.executed.load(Ordering::Relaxed);
        if executed >= self.grid.launched.launch.limits.translated_after {
            translate::ensure(&env.image);
        }
    }

    /// A new CTA if there is room for one, otherwise the one that has waited longest.
    fn next(&mut self) -> Option<Box<Resident<'g>>> {
        let room = if self.idle < self.waiting.len() { self.together } else { self.room };
        if self.waiting.len() < room
            && let Some(cta) = self.take()
        {
            return Some(self.start(cta));
        }
        let mut next = self.waiting.pop_front()?;
        // The things that the CTA waited for have happened in other turns, so its clock shows at least their time.
        next.env.catch_up(self.latest);
        Some(next)
    }

    /// The next CTA that may start.
    fn take(&mut self) -> Option<u64> {
        loop {
            // A CTA that waits may wait for any CTA before it. If one has failed, those before it are still executed.
            let first = !self.waiting.is_empty() || self.grid.has_failed();
            if self.taken.is_empty() {
                self.taken = self.grid.take(self.thread, first);
            }
            let cta = self.taken.next()?;
            if self.grid.starts(cta) {
                return Some(cta);
            }
            self.taken = 0..0;
            if first {
                return None;
            }
        }
    }

    /// The number of CTAs that may be started and not finished.
    pub(super) fn room(&self) -> u64 {
        self.room as u64
    }

    /// The CTAs that this thread could still start.
    fn unstarted(&self) -> u64 {
        self.grid.unstarted() + self.taken.end.saturating_sub(self.taken.start)
    }

    /// Notes that a turn ended. `waited` is the number of instructions of a turn in which the CTA only waited. Returns
    /// whether all CTAs have waited for long, either for a CTA that may have failed, or while the GPU holds no more of
    /// them and others of the grid cannot start. A GPU would wait for ever.
    fn is_stuck(&mut self, waited: Option<u64>) -> bool {
        match waited {
            None => {
                self.grid.progresses();
                self.waited = 0;
            }
            Some(more) => {
                let seen = self.grid.progress();
                self.waited = if seen == self.seen { self.waited + more } else { 0 };
                self.seen = seen;
            }
        }
        if self.grid.has_failed() {
            return self.waited > LONG;
        }
        let full = self.waiting.len() + 1 >= self.room;
        self.waited > self.grid.launched.launch.limits.patience && full && self.unstarted() > 0
    }

    /// If all CTAs of this thread wait, lets other threads use the processor. The CTAs may wait for a CTA of another
    /// thread or for the CPU.
    fn rest(&self) {
        if self.waited > LONG {
            std::thread::sleep(NAP);
        } else if self.waited > SHORT {
            std::thread::yield_now();
        }
    }

    /// Ends all CTAs. The first of them fails, unless another CTA has: then the kernel stops the SMs of all.
    fn give_up(&mut self) {
        let first = self.waiting.iter().min_by_key(|r| r.cta).filter(|_| !self.grid.has_failed());
        if let Some(first) = first {
            let text = self.crowded();
            self.grid.fail(first.cta, first.first_turn, SmFault::Hang { pc: first.store.pc(&first.env), text });
        }
        while let Some(resident) = self.waiting.pop_front() {
            self.retire(resident);
        }
    }

    /// The sentence that says that a grid has more CTAs than the GPU holds.
    fn crowded(&self) -> String {
        let (room, unstarted) = (self.room, self.unstarted());
        format!(
            "the CTAs that run only wait, and {unstarted} of the grid's CTAs have not started, because the GPU holds {room} \
             of them at once: a grid whose CTAs wait for each other must not be larger than that"
        )
    }

    /// The fault that reports an interruption from outside. `apart` says that a part of a warp waits at a barrier and the other goes on.
    fn stopped(&self, why: Interrupt, pc: u64, apart: Option<String>) -> SmFault {
        match hang(why, pc) {
            SmFault::Hang { text, .. } if apart.is_some() => {
                SmFault::Hang { pc, text: format!("{text}; {}", apart.unwrap_or_default()) }
            }
            SmFault::Hang { text, .. } if self.waited > 0 && self.unstarted() > 0 => {
                SmFault::Hang { pc, text: format!("{text}; {}", self.crowded()) }
            }
            fault => fault,
        }
    }

    fn start(&mut self, cta: u64) -> Box<Resident<'g>> {
        self.started += 1;
        let mut resident = self.spare.take().unwrap_or_else(|| self.fresh());
        (resident.cta, resident.first_turn) = (cta, true);
        let (sm, at) = self.grid.sm(cta);
        (resident.env.cta, resident.sm) = (Cta { index: self.grid.place(cta), sm }, at);
        resident.env.clock = Clock::new(self.clocks[at], resident.env.counts.stats.warp_instructions);
        let schedule = self.grid.launched.launch.limits.schedule;
        cta::start(&mut resident.env, &mut resident.store, schedule.map(|schedule| Drawn::of(schedule, cta)));
        resident.env.observed_by(|observer, env| observer.begins(env.cta.sm));
        resident
    }

    fn retire(&mut self, mut resident: Box<Resident<'g>>) {
        resident.env.observed_by(|observer, _| observer.ends());
        let clock = &mut self.clocks[resident.sm];
        *clock = resident.env.cycles().max(*clock);
        if let Some(old) = self.spare.replace(resident) {
            add(&mut self.stats, old.env.counts.stats);
            self.matrices += old.env.counts.matrices;
        }
    }

    fn fresh(&self) -> Box<Resident<'g>> {
        let launched = &self.grid.launched;
        let image = launched.programs.newest();
        let store = Warps::new(launched.banks.rows(&image.pool.constants), self.started <= 1);
        Box::new(Resident { cta: 0, first_turn: true, sm: 0, env: Env::new(launched, image), store })
    }
}

/// The processor time that this thread has used, in nanoseconds.
fn cpu_ns() -> u64 {
    let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID);
    now.map_or(0, |t| std::time::Duration::from(t).as_nanos() as u64)
}

/// The number of CTAs of this grid that the GPU holds at once.
fn room(launch: &Launch) -> usize {
    if launch.sequential {
        return 1;
    }
    let warps = launch.block.iter().product::<u32>().div_ceil(32).max(1);
    let per_sm = (WARPS_PER_SM / warps).clamp(1, CTAS_PER_SM);
    let local = u64::from(launch.local_low) + u64::from(launch.local_high);
    let bytes = u64::from(launch.shared_bytes) + local * 32 * u64::from(warps);
    let held = u64::from(launch.sm_count.max(1) * per_sm);
    held.min(HOST_MEMORY / bytes.max(1)).max(1) as usize
}
