//! The queues of a device other than the one with which it was opened.

use crate::runtime::channel::Plan;
use crate::runtime::device::base::Base;
use crate::runtime::device::queue::Queue;
use std::ops::Deref;
use std::sync::Arc;
use tegrarm_abi::rm::status::*;
use tegrarm_lock::RwLock;
use tegrarm_rm::status::{RmResult, fail};

/// The most queues that a device makes in its life. Their numbers are never used again.
const QUEUES: u64 = 1 << 16;

/// All queues but the device's own.
pub struct QueueTable {
    open: RwLock<Open>,
}

struct Open {
    queues: Vec<Arc<Queue>>,
    /// The number of the next queue.
    next: u64,
}

/// A queue that was found.
pub enum Found<'a> {
    /// The queue with which the device was opened.
    Own(&'a Queue),
    /// Another queue.
    Other(Arc<Queue>),
}

impl Deref for Found<'_> {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        match self {
            Found::Own(queue) => queue,
            Found::Other(queue) => queue,
        }
    }
}

impl QueueTable {
    /// Makes an empty table. Number 0 is that of the device's own queue.
    pub fn new() -> QueueTable {
        QueueTable { open: RwLock::new(Open { queues: Vec::new(), next: 1 }) }
    }

    /// Opens a queue.
    ///
    /// # Errors
    /// Those of [`Queue::open`], and `NV_ERR_INSUFFICIENT_RESOURCES` if no number is left.
    pub fn add(&self, base: &Base, plan: Plan, local: u32) -> RmResult<Arc<Queue>> {
        let number = {
            let mut open = self.open.write();
            if open.next >= QUEUES {
                fail!(NV_ERR_INSUFFICIENT_RESOURCES, "the device has made {QUEUES} queues: close it and open it again");
            }
            open.next += 1;
            open.next - 1
        };
        // This makes kernel calls, so that it must not be done while the lock is held.
        let queue = Arc::new(Queue::open(base, number, plan, local)?);
        self.open.write().queues.push(queue.clone());
        Ok(queue)
    }

    /// Removes a queue.
    pub fn remove(&self, number: u64) {
        self.open.write().queues.retain(|queue| queue.number() != number);
    }

    /// Finds the queue with this number. The result is `Ok(None)` if it has ended.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_ARGUMENT` if there never was such a queue.
    pub fn find(&self, number: u64) -> RmResult<Option<Arc<Queue>>> {
        let open = self.open.read();
        if number >= open.next {
            fail!(NV_ERR_INVALID_ARGUMENT, "the fence was never given: the device has no queue {number}");
        }
        Ok(open.queues.iter().find(|queue| queue.number() == number).cloned())
    }

    /// All queues that are open.
    pub fn all(&self) -> Vec<Arc<Queue>> {
        self.open.read().queues.clone()
    }
}

impl Default for QueueTable {
    fn default() -> QueueTable {
        QueueTable::new()
    }
}
