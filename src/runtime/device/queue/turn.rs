//! The turn of one launch in a queue, for a launch that takes nothing but stores to memory.

use super::{Queue, Work};
use crate::runtime::launch::Launch;
use crate::runtime::launch::images::{LaunchImages, Next};
use crate::runtime::memory::Span;
use std::sync::atomic::Ordering;
use tegrarm_lock::MutexGuard;

/// The turn of one launch. No other work gets between.
pub struct Turn<'a> {
    next: Next<'a>,
    work: MutexGuard<'a, Work>,
    queue: &'a Queue,
}

impl Turn<'_> {
    /// The block of arguments, which the caller writes before the launch.
    #[inline(always)]
    pub fn arguments(&self) -> &Span {
        self.next.arguments()
    }

    /// Launches. Returns the submission, which `told` gets before other work can follow in the queue.
    #[inline(always)]
    pub fn launch(mut self, told: impl FnOnce(u64)) -> u64 {
        let submission = self.next.launch(&mut self.work.channel);
        self.queue.last.store(submission, Ordering::Release);
        told(submission);
        submission
    }
}

impl Queue {
    /// The queue's turn for a launch that takes nothing but stores to memory. It is `None` if something has to be made or waited for.
    #[inline(always)]
    pub fn turn<'a>(&'a self, ready: &'a mut LaunchImages, launch: &Launch) -> Option<Turn<'a>> {
        let mut work = self.work.lock();
        if work.channel.is_stopped() || !ready.is_for(launch, work.ready_local) {
            return None;
        }
        let next = ready.next(&mut work.channel)?;
        Some(Turn { next, work, queue: self })
    }
}
