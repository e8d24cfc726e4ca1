//! The GPU front end: doorbells, GPFIFO, host methods, copy engine, compute class and launches.
//!
//! ```text
//!   doorbell ── worker ── pbdma ── host        semaphores, memory operations
//!   (usermode    (threads   │  └── copy        class C7B5
//!    page)        or step)  │  └── compute     class C7C0, inline to memory, PCAS
//!                           │        └ launch  descriptor checks, sm87::run, releases
//!                          mem                 every byte of GPU and channel memory goes through here
//! ```
//!
//! Every operation is finished before the next method of its channel is executed, so waits for idle, membars and cache
//! invalidates have nothing left to do. Channels take turns. A channel ends its turn early if an acquire is not met, if
//! a copy is done in pieces, or if a grid waits for the engine. A fault stops the channel's group and no other group.

mod between;
mod channel;
mod checks;
mod clock;
mod compute;
mod config;
mod context;
mod copy;
mod core;
mod doorbell;
mod engine;
mod fault;
mod host;
mod mem;
mod pace;
mod pbdma;
mod profile;
mod render;
mod semaphore;
mod slow;
mod stats;
mod stop;
mod sync;
mod trace;
mod turn;
mod wake;
mod worker;

pub use checks::{Reports, finish_checks};
pub use clock::host_ns;
pub use compute::{Qmd, compute_method_name};
pub use config::GpuConfig;
pub use fault::Failure;
pub use profile::{Profile, Profiled};
pub use slow::{SlowGrid, SlowReader};
pub use stats::Stats;
pub use trace::{Event, LaunchCounter, LogLine, LogReader, Observer};

use self::core::Core;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tegra_hw::{GpuPort, HwChannel, HwTsg, Place};
use worker::Workers;

/// A ga10b.
///
/// The threads start with the first channel and end when the last channel and the last doorbell page are gone. All
/// methods may be called from any thread, except from an [`Observer`].
pub struct Gpu {
    core: Arc<Core>,
    workers: Workers,
}

impl std::fmt::Debug for Gpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gpu").field("config", &self.core.config).finish_non_exhaustive()
    }
}

impl Gpu {
    /// Builds a GPU without channels.
    pub fn new(config: GpuConfig) -> Arc<Gpu> {
        Arc::new(Gpu { core: Arc::new(Core::new(config)), workers: Workers::default() })
    }

    /// Gives one turn to every channel that can run. The result is true if anything happened. To finish all work, a
    /// caller repeats this until the result is false.
    pub fn step(&self) -> bool {
        self.core.step()
    }

    /// A number that changes when the GPU's threads have worked. It is `None` for a GPU without threads.
    pub fn progress(&self) -> Option<u64> {
        (!self.core.config.step).then(|| self.core.progress())
    }

    /// Waits until that number is no longer `seen`, at most for `longest`. The GPU looks at its doorbells at once.
    pub fn rest(&self, seen: u64, longest: Duration) {
        self.core.rest(seen, longest);
    }

    /// Lets a unit report that the work of a channel failed, for tests of what the kernel makes of that. The result is false if there is
    /// no such channel, or if it is dead.
    pub fn fail(&self, channel: u32, failure: Failure) -> bool {
        self.core.fail(channel, failure)
    }

    /// Adds an observer, which gets the events.
    pub fn observe(&self, observer: Observer) {
        self.core.trace.observe(observer);
    }

    /// Adds a counter of grids, which gets the process of each.
    pub fn count_launches(&self, counter: LaunchCounter) {
        self.core.trace.count_launches(counter);
    }

    /// Sets the function that hears of grids that take long. Without it, nobody looks.
    pub fn tell_of_slow_grids(&self, reader: SlowReader) {
        self.core.trace.slow.read(reader);
    }

    /// Adds a reader of the kernel's log: faults, and interrupts that the driver only logs.
    pub fn read_log(&self, reader: LogReader) {
        self.core.trace.read_log(reader);
    }

    /// The latest faults and logged interrupts in the words of the kernel log, the oldest first.
    pub fn faults(&self) -> Vec<String> {
        self.core.trace.lines()
    }
}

impl GpuPort for Gpu {
    fn add_channel(&self, channel: Arc<HwChannel>) -> io::Result<()> {
        let id = channel.id;
        self.core.add(channel);
        if self.core.config.step {
            return Ok(());
        }
        self.workers.ensure(&self.core).inspect_err(|_| self.core.remove(id))
    }

    /// A grid that the channel is running is stopped.
    fn remove_channel(&self, id: u32) {
        self.core.remove(id);
        self.workers.retire(&self.core);
    }

    fn forget_group(&self, id: u32) {
        self.core.forget_group(id);
    }

    /// CFG0, TIME_0, TIME_1 and DOORBELL lie at their offsets from `page`.
    fn watch_doorbell(&self, page: Place) {
        self.core.watch(page);
    }

    fn unwatch_doorbell(&self, page: &Place) {
        self.core.unwatch(page);
        self.workers.retire(&self.core);
    }

    fn ring(&self, id: u32) {
        self.core.ring(id);
        self.core.wake();
    }

    fn reset(&self, tsg: &HwTsg) {
        self.core.reset(tsg);
    }

    fn preempt(&self, tsg: &HwTsg) -> bool {
        self.core.preempt(tsg)
    }

    fn time_ns(&self) -> u64 {
        self.core.ptimer.now()
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        self.core.shut_down();
        self.workers.stop(&self.core);
    }
}
