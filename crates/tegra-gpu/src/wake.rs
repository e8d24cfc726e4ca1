//! How the threads of a GPU sleep, and how others wake them. No wake is lost, whenever it comes.
//!
//! `make loom` tries both in every order of threads.

use crate::sync::{AtomicU64, Condvar, Mutex, Ordering};
use std::time::Duration;

/// The sleep of a thread that looks for work.
pub(crate) struct Nap {
    /// True when the thread is asked to look for work at once.
    woken: Mutex<bool>,
    wake: Condvar,
}

impl Nap {
    pub(crate) fn new() -> Nap {
        Nap { woken: Mutex::new(false), wake: Condvar::new() }
    }

    /// Asks the thread to look for work.
    pub(crate) fn wake(&self) {
        *self.woken.lock() = true;
        self.wake.notify_all();
    }

    /// Sleeps for at most `limit`, or until another thread wakes this one.
    pub(crate) fn nap(&self, limit: Duration) {
        let mut woken = self.woken.lock();
        if !*woken {
            self.wake.wait_for(&mut woken, limit);
        }
        *woken = false;
    }
}

/// What has happened so far, as a number, and the sleeps of threads until more has happened.
pub(crate) struct News {
    /// It is changed while the lock is held, so that no thread falls asleep meanwhile.
    count: AtomicU64,
    lock: Mutex<()>,
    more: Condvar,
}

impl News {
    pub(crate) fn new() -> News {
        News { count: AtomicU64::new(0), lock: Mutex::new(()), more: Condvar::new() }
    }

    /// What has happened so far.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Notes that something has happened.
    pub(crate) fn tell(&self) {
        let lock = self.lock.lock();
        self.count.fetch_add(1, Ordering::AcqRel);
        // Whoever wakes wants the lock, and may be executed at once instead of this thread.
        drop(lock);
        self.more.notify_all();
    }

    /// Sleeps until more than `seen` has happened, at most for `limit`.
    pub(crate) fn rest(&self, seen: u64, limit: Duration) {
        let mut lock = self.lock.lock();
        if self.count() == seen {
            self.more.wait_for(&mut lock, limit);
        }
    }
}

/// Whether something is in use, and the sleep of a thread until it is.
pub(crate) struct Use {
    /// The time at which the use began. 0 means that there is none.
    since: AtomicU64,
    /// Whether there was a use since a thread last waited for one.
    used: Mutex<bool>,
    begins: Condvar,
}

impl Use {
    pub(crate) fn new() -> Use {
        Use { since: AtomicU64::new(0), used: Mutex::new(false), begins: Condvar::new() }
    }

    /// Notes the time of the beginning, which is not 0. [`Use::tell`] tells the thread that waits.
    pub(crate) fn begin(&self, now: u64) {
        self.since.store(now, Ordering::Release);
    }

    /// Wakes the thread that waits for a use, if it does not know of one yet.
    pub(crate) fn tell(&self) {
        let was_used = std::mem::replace(&mut *self.used.lock(), true);
        if !was_used {
            self.begins.notify_all();
        }
    }

    pub(crate) fn end(&self) {
        self.since.store(0, Ordering::Release);
    }

    /// The time at which the use began that goes on now.
    pub(crate) fn since(&self) -> Option<u64> {
        Some(self.since.load(Ordering::Acquire)).filter(|since| *since != 0)
    }

    /// Sleeps until there is a use, or until `enough` returns true. [`Use::wake`] makes the thread ask again.
    pub(crate) fn wait(&self, enough: impl Fn() -> bool) {
        let mut used = self.used.lock();
        *used = self.since().is_some();
        while !*used && !enough() {
            self.begins.wait(&mut used);
        }
    }

    /// Makes a thread that waits in [`Use::wait`] ask again.
    pub(crate) fn wake(&self) {
        drop(self.used.lock());
        self.begins.notify_all();
    }
}
