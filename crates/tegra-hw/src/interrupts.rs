//! Interrupts and who sleeps on them.

use parking_lot::{Condvar, Mutex};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Something that may have come to pass when an interrupt is raised.
pub trait Expectation: Send + Sync + std::fmt::Debug {
    /// Looks; true when it has, and need not be asked again.
    fn met(&self) -> bool;
}

/// Interrupts the GPU raised, for whoever sleeps on them (H.WAIT).
#[derive(Debug, Default)]
pub struct Interrupts {
    count: Mutex<u64>,
    raised: Condvar,
    expected: Mutex<Vec<Weak<dyn Expectation>>>,
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

    /// Sleeps until the count differs from `seen` or the time is over.
    pub fn wait(&self, seen: u64, limit: Duration) {
        let mut count = self.count.lock();
        if *count == seen {
            self.raised.wait_for(&mut count, limit);
        }
    }
}
