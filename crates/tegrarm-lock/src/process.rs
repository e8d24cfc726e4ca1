//! What a process has once and a child finds whole: mutexes that are free, and work that is done.
#![allow(unsafe_code)]

use crate::{Mutex, MutexGuard, RawMutex};
use lock_api::RawMutex as _;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

/// Work that a process does once, for statics. It may be done twice, by two threads that meet here, or by a child that was forked while a
/// thread of its parent did it: std's `Once` would let that child wait for ever. So doing it twice must do no harm.
pub struct ForkOnce(AtomicBool);

impl ForkOnce {
    /// Work that nobody has done.
    #[expect(clippy::new_without_default, reason = "it is for statics")]
    pub const fn new() -> ForkOnce {
        ForkOnce(AtomicBool::new(false))
    }

    /// Does the work, if it is not done.
    pub fn call(&self, work: impl FnOnce()) {
        if !self.0.load(Ordering::Acquire) {
            work();
            self.0.store(true, Ordering::Release);
        }
    }
}

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
    /// A child may be forked while a thread of the parent is in here. What the thread had not finished, the child does again, as with
    /// [`ForkOnce`].
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
    static WATCHED: ForkOnce = ForkOnce::new();
    // SAFETY: the functions stay at their addresses for as long as this code is loaded.
    WATCHED.call(|| unsafe {
        libc::pthread_atfork(Some(before), Some(after), Some(after));
    });
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
