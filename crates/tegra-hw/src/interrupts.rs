//! Interrupts, and the threads that sleep until one is raised.

use std::sync::{Arc, Weak};
use std::time::Duration;
use tegrarm_lock::{Condvar, Mutex};

/// A condition that may have become true when an interrupt is raised.
pub trait Expectation: Send + Sync + std::fmt::Debug {
    /// Checks the condition. The result is true if it is met. It is not asked again then.
    fn met(&self) -> bool;
}

/// The interrupts that the GPU raised, for threads that sleep until the next one (H.WAIT).
#[derive(Debug, Default)]
pub struct Interrupts {
    count: Mutex<u64>,
    raised: Condvar,
    expected: Mutex<Vec<Weak<dyn Expectation>>>,
}

impl Interrupts {
    /// The number of interrupts so far.
    pub fn count(&self) -> u64 {
        *self.count.lock()
    }

    /// Wakes every sleeper.
    pub fn raise(&self) {
        *self.count.lock() += 1;
        self.raised.notify_all();
        self.expected.lock().retain(|e| e.upgrade().is_some_and(|e| !e.met()));
    }

    /// Checks the condition now and at every interrupt, until it is met or its owner has dropped it.
    pub fn expect<E: Expectation + 'static>(&self, expectation: &Arc<E>) {
        // The condition is entered before the first check, so that an interrupt between the two is not missed.
        let weak: Weak<dyn Expectation> = Arc::<E>::downgrade(expectation);
        self.expected.lock().push(weak);
        expectation.met();
    }

    /// Sleeps until the count differs from `seen` or the time is over.
    pub fn wait(&self, seen: u64, limit: Duration) {
        let mut count = self.count.lock();
        if *count == seen {
            self.raised.wait_for(&mut count, limit);
        }
    }
}
