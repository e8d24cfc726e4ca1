//! The read-write lock: the number of readers, or a writer, and whether a writer wants it.
#![allow(unsafe_code)]

use crate::futex;
use lock_api::GuardNoSend;
use std::sync::atomic::{AtomicU32, Ordering::*};

const WRITER: u32 = 1 << 31;
/// A writer wants it. New readers wait, because readers that come and go would keep the writer from it for ever.
const WANTED: u32 = 1 << 30;
const READER: u32 = 1;

/// What a read-write lock consists of.
#[derive(Debug)]
pub struct RawRwLock {
    state: AtomicU32,
    /// Changes whenever the state may let somebody in who waits.
    freed: AtomicU32,
    /// The threads that are about to sleep or sleep.
    waiting: AtomicU32,
}

impl RawRwLock {
    /// Sleeps if the state still keeps this thread out.
    fn sleep(&self, keeps_out: impl Fn(u32) -> bool) {
        let seen = self.freed.load(SeqCst);
        // Either the thread that frees the lock sees that somebody waits, or this thread sees what it changed.
        self.waiting.fetch_add(1, SeqCst);
        if keeps_out(self.state.load(SeqCst)) {
            futex::wait(&self.freed, seen, None);
        }
        self.waiting.fetch_sub(1, SeqCst);
    }

    /// Wakes those who wait, after the state was changed.
    #[inline]
    fn wake(&self) {
        if self.waiting.load(SeqCst) != 0 {
            self.wake_all();
        }
    }

    #[cold]
    fn wake_all(&self) {
        self.freed.fetch_add(1, SeqCst);
        futex::wake(&self.freed, i32::MAX);
    }

    #[cold]
    fn lock_shared_slow(&self) {
        while !lock_api::RawRwLock::try_lock_shared(self) {
            self.sleep(|state| state & (WRITER | WANTED) != 0);
        }
    }

    #[cold]
    fn lock_exclusive_slow(&self) {
        while !lock_api::RawRwLock::try_lock_exclusive(self) {
            // The writer that gets the lock clears the mark, and others that still want it set it again after they were woken.
            self.state.fetch_or(WANTED, SeqCst);
            self.sleep(|state| state & !WANTED != 0);
        }
    }
}

// SAFETY: a reader is counted only while no writer has the lock, and a writer gets it only when there is neither.
unsafe impl lock_api::RawRwLock for RawRwLock {
    #[allow(clippy::declare_interior_mutable_const, reason = "lock_api makes locks of it")]
    const INIT: RawRwLock =
        RawRwLock { state: AtomicU32::new(0), freed: AtomicU32::new(0), waiting: AtomicU32::new(0) };
    type GuardMarker = GuardNoSend;

    #[inline]
    fn lock_shared(&self) {
        let state = self.state.load(Relaxed);
        if state & (WRITER | WANTED) != 0
            || self.state.compare_exchange(state, state + READER, Acquire, Relaxed).is_err()
        {
            self.lock_shared_slow();
        }
    }

    #[inline]
    fn try_lock_shared(&self) -> bool {
        let mut state = self.state.load(Relaxed);
        while state & (WRITER | WANTED) == 0 {
            match self.state.compare_exchange_weak(state, state + READER, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    #[inline]
    unsafe fn unlock_shared(&self) {
        if self.state.fetch_sub(READER, SeqCst) & !WANTED == READER {
            self.wake();
        }
    }

    #[inline]
    fn lock_exclusive(&self) {
        if self.state.compare_exchange(0, WRITER, Acquire, Relaxed).is_err() {
            self.lock_exclusive_slow();
        }
    }

    #[inline]
    fn try_lock_exclusive(&self) -> bool {
        let state = self.state.load(Relaxed);
        state & !WANTED == 0 && self.state.compare_exchange(state, WRITER, Acquire, Relaxed).is_ok()
    }

    #[inline]
    unsafe fn unlock_exclusive(&self) {
        self.state.store(0, SeqCst);
        self.wake();
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.state.load(Relaxed) & !WANTED != 0
    }
}
