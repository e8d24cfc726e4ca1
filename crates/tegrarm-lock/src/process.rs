//! Mutexes of the process that a child finds free, with what they protect whole.
#![allow(unsafe_code)]

use crate::{Mutex, MutexGuard, RawMutex};
use lock_api::RawMutex as _;
use std::sync::Once;

/// A mutex of the process, for statics. A fork takes it first, so that the child does not find it locked by a thread that it does not have.
/// Nobody may take another such mutex, or fork, while it has this one.
pub struct ProcessMutex<T: 'static> {
    watched: Once,
    mutex: Mutex<T>,
}

impl<T> ProcessMutex<T> {
    /// A mutex that nobody has.
    pub const fn new(value: T) -> ProcessMutex<T> {
        ProcessMutex { watched: Once::new(), mutex: Mutex::new(value) }
    }

    /// Waits until nobody has the mutex, and takes it.
    pub fn lock(&'static self) -> MutexGuard<'static, T> {
        self.watch();
        self.mutex.lock()
    }

    /// Makes every fork from now on take the mutex, as the first [`ProcessMutex::lock`] does. What is given to pthread_atfork(3) afterwards
    /// finds it free in the child.
    pub fn watch(&'static self) {
        self.watched.call_once(|| {
            watch_forks();
            // SAFETY: the thread that forks locks and unlocks it in turn, and does not look at what it protects.
            MUTEXES.lock().push(unsafe { self.mutex.raw() });
        });
    }
}

/// The mutexes, in the order in which a fork takes them.
static MUTEXES: Mutex<Vec<&'static RawMutex>> = Mutex::new(Vec::new());

fn watch_forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the functions stay at their addresses for as long as this code is loaded.
        unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) };
    });
}

extern "C" fn before() {
    let mutexes = MUTEXES.lock();
    mutexes.iter().for_each(|mutex| mutex.lock());
    MutexGuard::leak(mutexes);
}

/// Runs in the parent and in the child, in the thread that forked.
extern "C" fn after() {
    // SAFETY: `before` has locked the list and has left it locked, in this thread or in the one of which it is the copy.
    let mutexes = unsafe { &*MUTEXES.data_ptr() };
    for mutex in mutexes {
        // SAFETY: `before` has locked it.
        unsafe { mutex.unlock() };
    }
    // SAFETY: as above.
    unsafe { MUTEXES.force_unlock() };
}
