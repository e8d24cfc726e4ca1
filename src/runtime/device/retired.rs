//! Memory that was freed while the GPU used it. It is given back when the work that uses it has finished.

use crate::runtime::memory::Memory;
use crate::sync::this_thread;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tegrarm_lock::Mutex;

thread_local! {
    /// Whether this thread may have retired memory that was not given back yet.
    static RETIRED_HERE: Cell<bool> = const { Cell::new(false) };
}

/// The retired memory of a device.
#[derive(Default)]
pub struct Retired {
    entries: Mutex<Vec<Entry>>,
    /// The number of entries, which can be read without the lock.
    count: AtomicUsize,
}

struct Entry {
    /// The fences of the work after which the memory can be given back.
    pending: Vec<u64>,
    memory: Arc<Memory>,
    /// The thread that freed it.
    by: u64,
}

impl Retired {
    /// Keeps memory until the work of all fences has finished.
    pub fn keep(&self, pending: Vec<u64>, memory: Arc<Memory>) {
        self.entries.lock().push(Entry { pending, memory, by: this_thread() });
        self.count.fetch_add(1, Ordering::Relaxed);
        RETIRED_HERE.set(true);
    }

    /// Whether there is any.
    pub fn is_there(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Gives back what no work can use any more.
    pub fn give_back(&self, has_passed: impl Fn(u64) -> bool) {
        if self.is_there() {
            self.give_back_those(|_| true, has_passed);
        }
    }

    /// The same for memory that this thread has freed. A thread that waits and frees nothing takes no lock and makes no kernel call
    /// for what others have freed, because it may be one with deadlines.
    pub fn give_back_own(&self, has_passed: impl Fn(u64) -> bool) {
        if RETIRED_HERE.get() {
            let me = this_thread();
            self.give_back_those(|by| by == me, has_passed);
            RETIRED_HERE.set(self.entries.lock().iter().any(|entry| entry.by == me));
        }
    }

    fn give_back_those(&self, which: impl Fn(u64) -> bool, has_passed: impl Fn(u64) -> bool) {
        let mut entries = self.entries.lock();
        let over = |entry: &mut Entry| which(entry.by) && entry.pending.iter().all(|fence| has_passed(*fence));
        let gone: Vec<_> = entries.extract_if(.., over).collect();
        self.count.fetch_sub(gone.len(), Ordering::Relaxed);
        drop(entries);
        // This makes kernel calls, so that it must not be done while the lock is held.
        drop(gone.into_iter().map(|entry| entry.memory).collect::<Vec<_>>());
    }
}
