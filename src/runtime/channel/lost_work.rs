//! Submissions that never finished although later ones did, because a fault stopped their channel.
//!
//! Nobody waits for a lock to learn that a submission was kept, as long as nothing was lost. `make loom` tries it in
//! every order of threads.

use crate::sync::{AtomicBool, Mutex, Ordering, fence};
use std::ops::RangeInclusive;

/// The submissions of a queue that were lost.
#[derive(Default)]
pub struct LostWork {
    /// Whether there are any.
    any: AtomicBool,
    ranges: Mutex<Vec<RangeInclusive<u64>>>,
}

impl LostWork {
    /// Notes that submissions were lost. A thread that reads a number which is written after this call, and then calls
    /// [`LostWork::has`], finds them.
    pub fn add(&self, range: RangeInclusive<u64>) {
        self.ranges.lock().push(range);
        self.any.store(true, Ordering::Release);
        fence(Ordering::Release);
    }

    /// Whether a submission was lost. The thread has read the number that says that it is over.
    #[inline]
    pub fn has(&self, submission: u64) -> bool {
        fence(Ordering::Acquire);
        self.any.load(Ordering::Acquire) && self.look_for(submission)
    }

    #[cold]
    fn look_for(&self, submission: u64) -> bool {
        self.ranges.lock().iter().any(|range| range.contains(&submission))
    }
}
