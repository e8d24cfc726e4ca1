//! Start and end of everything that a queue does, by the GPU's own clock.
//!
//! Every submission stands between two stamps: the GPU writes its time when what came before has finished. The stamps lie in a
//! ring; what has finished is read out of it before the GPU writes there again, so that none is lost.

use super::memory::{Cache, Memory};
use super::session::Session;
use crate::status::RmResult;
use std::collections::VecDeque;
use std::sync::Arc;

/// A stamp: a number, and the time behind it.
pub const STAMP: u64 = 16;
/// Where the time lies in it.
pub const STAMP_TIME: u64 = 8;
/// Submissions that the ring has stamps for.
const ROOM: u64 = 1024;

/// What a submission did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// It ran a kernel.
    Kernel {
        /// The kernel's name.
        name: String,
    },
    /// It copied bytes.
    Copy {
        /// How many.
        bytes: u64,
    },
    /// It filled bytes.
    Fill {
        /// How many.
        bytes: u64,
    },
}

/// A submission that has finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// What it did.
    pub what: What,
    /// The number of its queue.
    pub queue: u64,
    /// Its fence.
    pub fence: u64,
    /// When it started, nanoseconds of the GPU's clock.
    pub start: u64,
    /// When it had finished.
    pub end: u64,
}

/// What a queue records.
pub struct Records {
    stamps: Memory,
    /// Submissions recorded so far.
    count: u64,
    /// In flight, as far as is known: number and what it does.
    pending: VecDeque<(u64, What)>,
    finished: Vec<Record>,
}

impl Records {
    /// Nothing was recorded yet.
    ///
    /// # Errors
    /// 0x51 when there is no memory for the stamps.
    pub fn new(session: &Arc<Session>) -> RmResult<Records> {
        let stamps = Memory::new(session, ROOM * 2 * STAMP, Cache::Cached)?;
        Ok(Records { stamps, count: 0, pending: VecDeque::new(), finished: Vec::new() })
    }

    /// The submission that has to finish before another is recorded; 0 when there is room.
    pub fn room(&self) -> u64 {
        if self.pending.len() as u64 >= ROOM { self.pending[0].0 } else { 0 }
    }

    /// GPU addresses of the next submission's stamps. What it finds there is read first: `completed` is the newest submission
    /// that has finished.
    pub fn next(&mut self, completed: u64) -> [u64; 2] {
        self.collect(completed);
        let at = self.stamps.va() + self.count % ROOM * 2 * STAMP;
        [at, at + STAMP]
    }

    /// The stamps are those of a submission.
    pub fn given(&mut self, submission: u64, what: What) {
        self.pending.push_back((submission, what));
        self.count += 1;
    }

    /// Everything that has finished, each once.
    pub fn take(&mut self, completed: u64) -> Vec<Record> {
        self.collect(completed);
        std::mem::take(&mut self.finished)
    }

    /// What has not finished never will: a fault stopped the queue.
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
