//! Mutexes of the process that a child finds free, with what they protect whole.
#![allow(unsafe_code)]

use crate::{Mutex, MutexGuard, RawMutex};
use lock_api::RawMutex as _;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

/// A mutex of the process, for statics. A fork takes it first, so that the child does not find it locked by a thread that it does not have.
/// Nobody may take another such mutex, or fork, while it has this one.
pub struct ProcessMutex<T: 'static> {
    watched: AtomicBool,
    mutex: Mutex<T>,
}

impl<T> ProcessMutex<T> {
    /// A mutex that nobody has.
    pub const fn new(value: T) -> ProcessMutex<T> {
        ProcessMutex { watched: AtomicBool::new(false), mutex: Mutex::new(value) }
    }

    /// Waits until nobody has the mutex, and takes it.
    pub fn lock(&'static self) -> MutexGuard<'static, T> {
        self.watch();
        self.mutex.lock()
    }

    /// Makes every fork from now on take the mutex, as the first [`ProcessMutex::lock`] does. What is given to pthread_atfork(3) afterwards
    /// finds it free in the child.
    ///
    /// A child may be forked while a thread of the parent is in here. That is why this is no `Once`, which the child would find begun and
    /// never done: what the thread had not finished, the child does again.
    pub fn watch(&'static self) {
        if self.watched.load(Ordering::Acquire) {
            return;
        }
        watch_forks();
        let mut mutexes = MUTEXES.lock();
        if !self.watched.load(Ordering::Relaxed) {
            // SAFETY: the thread that forks locks and unlocks it in turn, and does not look at what it protects.
            mutexes.push(unsafe { self.mutex.raw() });
            self.watched.store(true, Ordering::Release);
        }
    }
}

/// The mutexes, in the order in which a fork takes them.
static MUTEXES: Mutex<Vec<&'static RawMutex>> = Mutex::new(Vec::new());
/// The thread that has taken the mutexes for its fork, or 0.
static FORKING: AtomicI32 = AtomicI32::new(0);
/// How often that fork has called [`before`] again: two threads that begin at the same time may both have registered it.
static AGAIN: AtomicU32 = AtomicU32::new(0);

/// Registers what a fork does. The C library waits with a fork until this is done, and a child that does not know of it does it again.
fn watch_forks() {
    static WATCHED: AtomicBool = AtomicBool::new(false);
    if !WATCHED.load(Ordering::Acquire) {
        // SAFETY: the functions stay at their addresses for as long as this code is loaded.
        unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) };
        WATCHED.store(true, Ordering::Release);
    }
}

extern "C" fn before() {
    // SAFETY: the call has no arguments and cannot fail.
    let me = unsafe { libc::gettid() };
    if FORKING.load(Ordering::Relaxed) == me {
        AGAIN.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let mutexes = MUTEXES.lock();
    mutexes.iter().for_each(|mutex| mutex.lock());
    FORKING.store(me, Ordering::Relaxed);
    MutexGuard::leak(mutexes);
}

/// Runs in the parent and in the child, in the thread that forked.
extern "C" fn after() {
    if AGAIN.load(Ordering::Relaxed) > 0 {
        AGAIN.fetch_sub(1, Ordering::Relaxed);
        return;
    }
    FORKING.store(0, Ordering::Relaxed);
    // SAFETY: `before` has locked the list and has left it locked, in this thread or in the one of which it is the copy.
    let mutexes = unsafe { &*MUTEXES.data_ptr() };
    for mutex in mutexes {
        // SAFETY: `before` has locked it.
        unsafe { mutex.unlock() };
    }
    // SAFETY: as above.
    unsafe { MUTEXES.force_unlock() };
}
