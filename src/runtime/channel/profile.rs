//! Records the start and the end of all work of a queue, by the GPU's own clock.
//!
//! Every submission is between two stamps: the GPU writes its time when the work before a stamp has finished. The
//! stamps are in a ring. Stamps of finished work are read before the GPU writes to the same memory again, so that none
//! is lost.

use crate::runtime::memory::session::Session;
use crate::runtime::memory::{Cache, Memory};
use std::collections::VecDeque;
use std::sync::Arc;
use tegrarm_rm::status::RmResult;

/// The number of bytes of a stamp: a number, and the time after it.
pub const STAMP: u64 = 16;
/// The offset of the time in a stamp.
pub const STAMP_TIME: u64 = 8;
/// The number of submissions for which the ring has stamps.
const ROOM: u64 = 1024;

/// The work of a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The submission ran a kernel.
    Kernel {
        /// The kernel's name.
        name: String,
    },
    /// The submission copied bytes.
    Copy {
        /// The number of bytes.
        bytes: u64,
    },
    /// The submission filled bytes.
    Fill {
        /// The number of bytes.
        bytes: u64,
    },
}

/// A submission that has finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The work of the submission.
    pub what: What,
    /// The number of its queue.
    pub queue: u64,
    /// The fence of the submission.
    pub fence: u64,
    /// The start in nanoseconds of the GPU's clock.
    pub start: u64,
    /// The end in nanoseconds of the GPU's clock.
    pub end: u64,
}

/// The records of a queue.
pub struct Records {
    stamps: Memory,
    /// The number of submissions recorded so far.
    count: u64,
    /// The submissions that are not known to have finished: their number and their work.
    pending: VecDeque<(u64, What)>,
    finished: Vec<Record>,
}

impl Records {
    /// Makes an empty record.
    ///
    /// # Errors
    /// `NV_ERR_NO_MEMORY` if there is no memory for the stamps.
    pub fn new(session: &Arc<Session>) -> RmResult<Records> {
        let stamps = Memory::new(session, ROOM * 2 * STAMP, Cache::Cached)?;
        Ok(Records { stamps, count: 0, pending: VecDeque::new(), finished: Vec::new() })
    }

    /// The submission that has to finish before another is recorded. It is 0 if there is room.
    pub fn room(&self) -> u64 {
        if self.pending.len() as u64 >= ROOM { self.pending[0].0 } else { 0 }
    }

    /// The GPU addresses of the next submission's stamps. The stamps that these replace are read first. `completed` is
    /// the newest submission that has finished.
    pub fn next(&mut self, completed: u64) -> [u64; 2] {
        self.collect(completed);
        let at = self.stamps.va() + self.count % ROOM * 2 * STAMP;
        [at, at + STAMP]
    }

    /// Notes that the stamps belong to a submission.
    pub fn given(&mut self, submission: u64, what: What) {
        self.pending.push_back((submission, what));
        self.count += 1;
    }

    /// Takes all records of work that has finished. Each is returned once.
    pub fn take(&mut self, completed: u64) -> Vec<Record> {
        self.collect(completed);
        std::mem::take(&mut self.finished)
    }

    /// Drops the records of work that never finishes, because a fault stopped the queue.
    pub fn lose(&mut self, completed: u64) {
        self.collect(completed);
        self.pending.clear();
    }

    fn collect(&mut self, completed: u64) {
        while self.pending.front().is_some_and(|(fence, _)| *fence <= completed)
            && let Some((fence, what)) = self.pending.pop_front()
        {
            let at = (self.count - 1 - self.pending.len() as u64) % ROOM * 2 * STAMP;
            let time = |stamp| self.stamps.read_u64(at + stamp * STAMP + STAMP_TIME);
            let (start, end) = (time(0), time(1));
            self.finished.push(Record { what, queue: 0, fence, start, end });
        }
    }
}
