//! The mutex: free, locked, or locked while somebody sleeps (U. Drepper, Futexes Are Tricky, section 6).
#![allow(unsafe_code)]

use crate::futex;
use lock_api::{GetThreadId, GuardNoSend};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::time::{Duration, Instant};

const FREE: u32 = 0;
const LOCKED: u32 = 1;
/// It is locked, and whoever unlocks it has to wake a thread.
const WANTED: u32 = 2;
/// How often a thread looks before it sleeps. Most locks are held for some dozens of instructions.
const LOOKS: u32 = 100;

/// What a mutex consists of.
#[derive(Debug)]
pub struct RawMutex(AtomicU32);

impl RawMutex {
    /// Locks it in any case. Returns whether it was locked before `end`.
    #[cold]
    fn lock_slow(&self, end: Option<Instant>) -> bool {
        let mut state = self.look();
        if state == FREE {
            match self.0.compare_exchange(FREE, LOCKED, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        loop {
            // From here on it counts as wanted, because this thread cannot know whether it is the only one that slept.
            if state != WANTED && self.0.swap(WANTED, Acquire) == FREE {
                return true;
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                return false;
            }
            futex::wait(&self.0, WANTED, end);
            state = self.look();
        }
    }

    /// Looks until it is free or wanted, or often enough.
    fn look(&self) -> u32 {
        for _ in 0..LOOKS {
            let state = self.0.load(Relaxed);
            if state != LOCKED {
                return state;
            }
            std::hint::spin_loop();
        }
        self.0.load(Relaxed)
    }

    /// Ends an unlocking that has made LOCKED of WANTED.
    #[cold]
    fn wake(&self) {
        self.0.store(FREE, Release);
        futex::wake(&self.0, 1);
    }
}

// SAFETY: only the thread that changes the state from FREE has it locked, until it sets FREE.
unsafe impl lock_api::RawMutex for RawMutex {
    #[allow(clippy::declare_interior_mutable_const, reason = "lock_api makes locks of it")]
    const INIT: RawMutex = RawMutex(AtomicU32::new(FREE));
    type GuardMarker = GuardNoSend;

    #[inline]
    fn lock(&self) {
        if self.0.compare_exchange(FREE, LOCKED, Acquire, Relaxed).is_err() {
            self.lock_slow(None);
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.0.compare_exchange(FREE, LOCKED, Acquire, Relaxed).is_ok()
    }

    #[inline]
    unsafe fn unlock(&self) {
        // A subtraction that is compared with what it makes takes two instructions, and an exchange takes four.
        if self.0.fetch_sub(1, Release) != LOCKED {
            self.wake();
        }
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.load(Relaxed) != FREE
    }
}

// SAFETY: as above. A thread that gives up has not changed the state from FREE.
unsafe impl lock_api::RawMutexTimed for RawMutex {
    type Duration = Duration;
    type Instant = Instant;

    fn try_lock_for(&self, limit: Duration) -> bool {
        lock_api::RawMutex::try_lock(self) || self.lock_slow(Instant::now().checked_add(limit))
    }

    fn try_lock_until(&self, end: Instant) -> bool {
        lock_api::RawMutex::try_lock(self) || self.lock_slow(Some(end))
    }
}

/// The number of a thread, for mutexes that their owner may take again.
#[derive(Debug)]
pub struct RawThreadId;

// SAFETY: the address of a thread's own variable is its alone for as long as the thread lives.
unsafe impl GetThreadId for RawThreadId {
    const INIT: RawThreadId = RawThreadId;

    fn nonzero_thread_id(&self) -> NonZeroUsize {
        thread_local! {
            static OWN: u8 = const { 0 };
        }
        OWN.with(|own| std::ptr::from_ref(own).addr().try_into().expect("no variable lies at address 0"))
    }
}
