//! Interrupts, who sleeps on them, and which group has the engine.

use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Who wants to know which group has the engine.
pub trait SwitchLog: Send + Sync + std::fmt::Debug {
    /// The engine went to group `to` at a PTIMER time; `None`: nobody had it.
    fn switched(&self, from: Option<u32>, to: u32, time_ns: u64);
}

/// Something that may have come to pass when an interrupt is raised.
pub trait Expectation: Send + Sync + std::fmt::Debug {
    /// Looks; true when it has, and need not be asked again.
    fn met(&self) -> bool;
}

/// Interrupts the GPU raised, for whoever sleeps on them (H.WAIT), and its context switches.
#[derive(Debug, Default)]
pub struct Interrupts {
    count: Mutex<u64>,
    raised: Condvar,
    expected: Mutex<Vec<Weak<dyn Expectation>>>,
    switch_log: Mutex<Option<Weak<dyn SwitchLog>>>,
    /// The group that has the engine; kept while somebody logs.
    running: Mutex<Option<u32>>,
    logging: AtomicBool,
    /// Debuggers that want nothing to time out.
    patient: AtomicU32,
    /// The group whose context the engine holds, plus one; 0 = none.
    resident: AtomicU32,
}

impl Interrupts {
    /// How many there were.
    pub fn count(&self) -> u64 {
        *self.count.lock()
    }

    /// Wakes every sleeper.
    pub fn raise(&self) {
        *self.count.lock() += 1;
        self.raised.notify_all();
        self.expected.lock().retain(|e| e.upgrade().is_some_and(|e| !e.met()));
    }

    /// Looks now and at every interrupt, until it is met or gone.
    pub fn expect<E: Expectation + 'static>(&self, expectation: &Arc<E>) {
        // Entered first, so that an interrupt between looking and entering is not missed.
        let weak: Weak<dyn Expectation> = Arc::<E>::downgrade(expectation);
        self.expected.lock().push(weak);
        expectation.met();
    }

    /// From now on `log` hears of context switches, as long as it lives.
    pub fn log_switches<L: SwitchLog + 'static>(&self, log: &Arc<L>) {
        let log: Arc<dyn SwitchLog> = log.clone();
        *self.switch_log.lock() = Some(Arc::downgrade(&log));
        self.logging.store(true, Ordering::Release);
    }

    /// A debugger wants nothing to time out.
    pub fn disable_timeouts(&self) {
        self.patient.fetch_add(1, Ordering::Relaxed);
    }

    /// One debugger less wants that.
    pub fn enable_timeouts(&self) {
        self.patient.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether what takes too long is stopped.
    pub fn timeouts(&self) -> bool {
        self.patient.load(Ordering::Relaxed) == 0
    }

    /// Group `id` has used the engine, which holds its context until another one's comes.
    pub fn used_engine(&self, id: u32) {
        if self.resident.load(Ordering::Relaxed) != id + 1 {
            self.resident.store(id + 1, Ordering::Relaxed);
        }
    }

    /// The group whose context the engine holds.
    pub fn resident(&self) -> Option<u32> {
        self.resident.load(Ordering::Relaxed).checked_sub(1)
    }

    /// A group has ended, and its context with it.
    pub fn forget(&self, id: u32) {
        let _another_one_may_be_there = self.resident.compare_exchange(id + 1, 0, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Whether somebody logs context switches.
    pub fn logs_switches(&self) -> bool {
        self.logging.load(Ordering::Acquire)
    }

    /// Group `to` has the engine at `time_ns`.
    pub fn runs(&self, to: u32, time_ns: u64) {
        let mut running = self.running.lock();
        if *running == Some(to) {
            return;
        }
        let from = running.replace(to);
        let log = self.switch_log.lock().as_ref().and_then(Weak::upgrade);
        match log {
            Some(log) => log.switched(from, to, time_ns),
            None => {
                *running = None;
                self.logging.store(false, Ordering::Release);
            }
        }
    }

    /// Sleeps until the count differs from `seen` or the time is over.
    pub fn wait(&self, seen: u64, limit: Duration) {
        let mut count = self.count.lock();
        if *count == seen {
            self.raised.wait_for(&mut count, limit);
        }
    }
}
