//! The locks and atomics of the small pieces that `make loom` tries in every order of threads. There, loom's own take
//! their place. And the number of a thread.

use std::cell::Cell;
pub use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
pub use tegrarm_lock::{Mutex, MutexGuard};

/// A number that no other thread of the process has, and not 0. Rust's own number of a thread cannot be had when the
/// thread ends, and a program may free memory or close a device then.
pub fn this_thread() -> u64 {
    static NEWEST: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(0) };
    }
    if NUMBER.get() == 0 {
        NUMBER.set(NEWEST.fetch_add(1, Ordering::Relaxed) + 1);
    }
    NUMBER.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_its_number() {
        let mine = this_thread();
        assert_eq!(this_thread(), mine);
        let theirs = std::thread::spawn(this_thread).join().expect("a thread");
        assert!(mine != theirs && mine != 0 && theirs != 0);
    }
}
