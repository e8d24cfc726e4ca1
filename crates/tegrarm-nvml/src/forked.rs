//! A value with a lock, of which a forked child gets a fresh one.
//!
//! At fork(2) another thread of the parent may hold the lock. In the child nobody would ever release it.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use tegrarm_lock::{Mutex, MutexGuard};

/// A value of a process.
pub struct Forked<T>(AtomicPtr<Owned<T>>);

struct Owned<T> {
    process: u32,
    value: Mutex<T>,
}

impl<T: Default> Forked<T> {
    /// A value that is made when it is first needed.
    pub const fn new() -> Forked<T> {
        Forked(AtomicPtr::new(ptr::null_mut()))
    }

    /// Locks the value. In a process that has none yet, it is a new one.
    pub fn lock(&'static self) -> MutexGuard<'static, T> {
        let process = std::process::id();
        loop {
            let there = self.0.load(Ordering::Acquire);
            // SAFETY: a value that was stored is never freed: a child cannot know whether a thread of its parent was inside.
            if let Some(owned) = unsafe { there.as_ref() }
                && owned.process == process
            {
                return owned.value.lock();
            }
            let made = Box::into_raw(Box::new(Owned { process, value: Mutex::new(T::default()) }));
            if self.0.compare_exchange(there, made, Ordering::AcqRel, Ordering::Acquire).is_err() {
                // SAFETY: nobody else has seen this value.
                drop(unsafe { Box::from_raw(made) });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_the_value_of_their_process() {
        static VALUE: Forked<u32> = Forked::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..100).for_each(|_| *VALUE.lock() += 1));
            }
        });
        assert_eq!(*VALUE.lock(), 400);
    }

    #[test]
    fn the_value_of_another_process_is_left_alone() {
        static VALUE: Forked<u32> = Forked::new();
        let parents = Box::leak(Box::new(Owned { process: 0, value: Mutex::new(7) }));
        VALUE.0.store(parents, Ordering::Release);
        let held = parents.value.lock();
        assert_eq!(*VALUE.lock(), 0);
        assert_eq!(*held, 7);
    }
}
