//! The condition variable: a number that each notification changes, and the number of threads that wait.
#![allow(unsafe_code)]

use crate::{MutexGuard, futex};
use lock_api::RawMutex as _;
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::time::{Duration, Instant};

/// A condition variable for [`Mutex`](crate::Mutex).
#[derive(Debug, Default)]
pub struct Condvar {
    /// Changes with each notification.
    notified: AtomicU32,
    /// The threads between the look at `notified` and their waking. A forked child may inherit some that it does not have, which costs a
    /// system call for nothing.
    waiting: AtomicU32,
}

/// How a wait with a limit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether the limit was reached without a notification.
    pub fn timed_out(self) -> bool {
        self.0
    }
}

impl Condvar {
    /// A variable at which nobody waits.
    pub const fn new() -> Condvar {
        Condvar { notified: AtomicU32::new(0), waiting: AtomicU32::new(0) }
    }

    /// Wakes a thread that waits. Others that were about to sleep may return as well.
    #[inline]
    pub fn notify_one(&self) {
        self.notify(1);
    }

    /// Wakes all threads that wait.
    #[inline]
    pub fn notify_all(&self) {
        self.notify(i32::MAX);
    }

    #[inline]
    fn notify(&self, most: i32) {
        // Who waits has said so under the mutex, and who notifies has changed under the mutex what is waited for.
        if self.waiting.load(Relaxed) != 0 {
            self.wake(most);
        }
    }

    #[cold]
    fn wake(&self, most: i32) {
        self.notified.fetch_add(1, Relaxed);
        futex::wake(&self.notified, most);
    }

    /// Unlocks the mutex, sleeps until a notification, and locks the mutex again.
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        self.sleep(guard, None);
    }

    /// The same, at most for so long.
    pub fn wait_for<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, limit: Duration) -> WaitTimeoutResult {
        self.sleep(guard, Instant::now().checked_add(limit))
    }

    /// The same, at most until then.
    pub fn wait_until<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, end: Instant) -> WaitTimeoutResult {
        self.sleep(guard, Some(end))
    }

    fn sleep<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>, end: Option<Instant>) -> WaitTimeoutResult {
        // SAFETY: the guard shows that this thread has the mutex locked. It has it locked again before the guard is used.
        let mutex = unsafe { MutexGuard::mutex(guard).raw() };
        let seen = self.notified.load(Relaxed);
        self.waiting.fetch_add(1, Relaxed);
        // SAFETY: this thread has it locked.
        unsafe { mutex.unlock() };
        let is_late = || end.is_some_and(|end| Instant::now() >= end);
        while self.notified.load(Relaxed) == seen && !is_late() {
            futex::wait(&self.notified, seen, end);
        }
        let timed_out = self.notified.load(Relaxed) == seen;
        self.waiting.fetch_sub(1, Relaxed);
        mutex.lock();
        WaitTimeoutResult(timed_out)
    }
}
