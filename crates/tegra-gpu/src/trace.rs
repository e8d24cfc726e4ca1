//! What the GPU did, for whoever wants to know: kernel-log lines of faults, and events for traces.

use parking_lot::{Mutex, RwLock};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tegra_hw::Fault;

/// One thing that happened on the GPU. Times are PTIMER nanoseconds.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// Host took an entry of the ring.
    GpEntry {
        /// Channel id.
        channel: u32,
        /// Index in the ring.
        index: u32,
        /// The entry.
        entry: u64,
    },
    /// A copy engine launch ended.
    Copy {
        /// Channel id.
        channel: u32,
        /// Source address as programmed.
        from: u64,
        /// Destination address as programmed.
        to: u64,
        /// Bytes written.
        bytes: u64,
        /// When its first byte moved.
        start_ns: u64,
        /// When it was done.
        end_ns: u64,
    },
    /// A grid ended.
    Launch {
        /// Channel id.
        channel: u32,
        /// Address of the launch descriptor.
        qmd: u64,
        /// Address of the first instruction.
        code: u64,
        /// CTAs in x, y, z.
        grid: [u32; 3],
        /// Threads per CTA in x, y, z.
        block: [u32; 3],
        /// Instructions issued, once per warp.
        warp_instructions: u64,
        /// Processor time of the threads that executed it.
        cpu_ns: u64,
        /// When it started.
        start_ns: u64,
        /// When it was done.
        end_ns: u64,
    },
    /// A semaphore was released, reduced or acquired.
    Semaphore {
        /// Channel id.
        channel: u32,
        /// Address.
        va: u64,
        /// What was done, in words.
        what: &'static str,
        /// Payload.
        payload: u64,
    },
    /// A channel waits at a semaphore.
    Blocked {
        /// Channel id.
        channel: u32,
        /// Address of the semaphore.
        va: u64,
        /// Payload it waits for.
        payload: u64,
    },
    /// An interrupt that is not an error: wakes waiters and event fds of the channel's group.
    NonStall {
        /// Channel id.
        channel: u32,
        /// TSG id.
        tsg: u32,
    },
    /// The kernel logged an interrupt, and did nothing else.
    Logged {
        /// Channel id.
        channel: u32,
        /// TSG id.
        tsg: u32,
        /// The line.
        text: String,
    },
    /// A group died.
    Fault {
        /// The channel that caused it.
        channel: u32,
        /// TSG id.
        tsg: u32,
        /// What happened.
        fault: Fault,
    },
}

/// Receives every event, on the thread where it happens. Must return soon and must not call back into the GPU.
pub type Observer = Arc<dyn Fn(&Event) + Send + Sync>;

/// Lines kept for tools.
const LINES: usize = 1024;

/// Observers and the fault log.
#[derive(Default)]
pub(crate) struct Trace {
    active: AtomicBool,
    observers: RwLock<Vec<Observer>>,
    faults: Mutex<VecDeque<String>>,
}

impl Trace {
    pub(crate) fn observe(&self, observer: Observer) {
        self.observers.write().push(observer);
        self.active.store(true, Ordering::Release);
    }

    /// Reports an event; it is only built when somebody looks.
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
        self.line(&fault.text);
        self.emit(|| Event::Fault { channel, tsg, fault: fault.clone() });
    }

    /// Adds another line to the log.
    pub(crate) fn log(&self, channel: u32, tsg: u32, text: String) {
        tracing::warn!(target: "tegra_sim::gpu", channel, tsg, "{text}");
        self.line(&text);
        self.emit(|| Event::Logged { channel, tsg, text });
    }

    fn line(&self, text: &str) {
        let mut lines = self.faults.lock();
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(text.to_owned());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.faults.lock().iter().cloned().collect()
    }
}
