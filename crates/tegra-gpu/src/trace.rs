//! A record of what the GPU did: kernel-log lines of faults, and events for traces.

use super::clock::host_ns;
use super::slow::SlowGrids;
use sm87_model::Estimate;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tegra_hw::Fault;
use tegrarm_lock::{Mutex, RwLock};

/// One event on the GPU. Times are nanoseconds of the host since boot.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The host took an entry of the ring.
    GpEntry {
        /// The channel id.
        channel: u32,
        /// The index in the ring.
        index: u32,
        /// The entry itself.
        entry: u64,
    },
    /// A launch of the copy engine ended.
    Copy {
        /// The channel id.
        channel: u32,
        /// The source address as programmed.
        from: u64,
        /// The destination address as programmed.
        to: u64,
        /// The number of bytes written.
        bytes: u64,
        /// The time when its first byte moved.
        start_ns: u64,
        /// The time when it was done.
        end_ns: u64,
    },
    /// A grid ended.
    Launch {
        /// The channel id.
        channel: u32,
        /// The address of the launch descriptor.
        qmd: u64,
        /// The address of the first instruction.
        code: u64,
        /// The name of the kernel, if the program has told it.
        name: Option<Arc<str>>,
        /// The number of CTAs in x, y and z.
        grid: [u32; 3],
        /// The number of threads per CTA in x, y and z.
        block: [u32; 3],
        /// The number of instructions issued, counted once per warp.
        warp_instructions: u64,
        /// The processor time of the threads that executed it.
        cpu_ns: u64,
        /// What it would take on a board, if that is modelled.
        estimate: Option<Estimate>,
        /// The time when it started.
        start_ns: u64,
        /// The time when it was done.
        end_ns: u64,
    },
    /// A semaphore was released, reduced or acquired.
    Semaphore {
        /// The channel id.
        channel: u32,
        /// The address of the semaphore.
        va: u64,
        /// The operation, in words.
        what: &'static str,
        /// The payload.
        payload: u64,
    },
    /// A channel waits at a semaphore.
    Blocked {
        /// The channel id.
        channel: u32,
        /// The address of the semaphore.
        va: u64,
        /// The payload for which the channel waits.
        payload: u64,
    },
    /// An interrupt that is not an error. It wakes waiters and event descriptors of the channel's group.
    NonStall {
        /// The channel id.
        channel: u32,
        /// The TSG id.
        tsg: u32,
    },
    /// The kernel logged an interrupt and did nothing else.
    Logged {
        /// The channel id.
        channel: u32,
        /// The TSG id.
        tsg: u32,
        /// The line of the log.
        text: String,
    },
    /// A fault ended a group.
    Fault {
        /// The channel that caused it.
        channel: u32,
        /// The TSG id.
        tsg: u32,
        /// The fault.
        fault: Fault,
    },
}

/// A function that receives every event, on the thread where the event happens. It must return soon and must not call
/// the GPU.
pub type Observer = Arc<dyn Fn(&Event) + Send + Sync>;

/// A line that the driver would write to the kernel's log.
#[derive(Clone, Copy, Debug)]
pub struct LogLine<'a> {
    /// The time of the host, in nanoseconds since boot.
    pub time_ns: u64,
    /// The line, in the driver's words where they are known.
    pub text: &'a str,
    /// Whether the driver stopped the channel's group. Otherwise it only wrote the line.
    pub fatal: bool,
}

/// A function that receives every line of the kernel's log, on the thread where it is written. It must not call the
/// GPU. The other events cost nothing for it, unlike those of an [`Observer`].
pub type LogReader = Arc<dyn Fn(&LogLine<'_>) + Send + Sync>;

/// A function that receives the process of each grid that ended, on the thread where it ended. It must not call the GPU.
/// The other events cost nothing for it.
pub type LaunchCounter = Arc<dyn Fn(i32) + Send + Sync>;

/// The number of lines that are kept for tools.
const LINES: usize = 1024;

/// The observers and the fault log.
#[derive(Default)]
pub(crate) struct Trace {
    active: AtomicBool,
    observers: RwLock<Vec<Observer>>,
    readers: RwLock<Vec<LogReader>>,
    counters: RwLock<Vec<LaunchCounter>>,
    pub(crate) slow: SlowGrids,
    faults: Mutex<VecDeque<String>>,
}

impl Trace {
    pub(crate) fn observe(&self, observer: Observer) {
        self.observers.write().push(observer);
        self.active.store(true, Ordering::Release);
    }

    pub(crate) fn read_log(&self, reader: LogReader) {
        self.readers.write().push(reader);
    }

    pub(crate) fn count_launches(&self, counter: LaunchCounter) {
        self.counters.write().push(counter);
    }

    /// A grid of a process ended.
    pub(crate) fn launched(&self, process: i32) {
        self.counters.read().iter().for_each(|counter| counter(process));
    }

    /// Reports an event. The event is only built if there is an observer.
    pub(crate) fn emit(&self, event: impl FnOnce() -> Event) {
        let traced = tracing::enabled!(target: "tegra_sim::gpu", tracing::Level::TRACE);
        if !traced && !self.active.load(Ordering::Acquire) {
            return;
        }
        let event = event();
        tracing::trace!(target: "tegra_sim::gpu", ?event);
        for observer in self.observers.read().iter() {
            observer(&event);
        }
    }

    /// Adds the line of a fault to the log.
    pub(crate) fn fault(&self, channel: u32, tsg: u32, fault: &Fault) {
        self.line(&fault.text, true);
        self.emit(|| Event::Fault { channel, tsg, fault: fault.clone() });
    }

    /// Adds another line to the log.
    pub(crate) fn log(&self, channel: u32, tsg: u32, text: String) {
        tracing::warn!(target: "tegra_sim::gpu", channel, tsg, "{text}");
        self.line(&text, false);
        self.emit(|| Event::Logged { channel, tsg, text });
    }

    fn line(&self, text: &str, fatal: bool) {
        let mut lines = self.faults.lock();
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(text.to_owned());
        drop(lines);
        let line = LogLine { time_ns: host_ns(), text, fatal };
        self.readers.read().iter().for_each(|reader| reader(&line));
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.faults.lock().iter().cloned().collect()
    }
}
