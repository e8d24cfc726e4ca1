//! The queues of a device other than the one with which it was opened.

use super::base::Base;
use super::lane::Lane;
use super::queue::Plan;
use crate::status::{RmResult, fail};
use parking_lot::RwLock;
use std::ops::Deref;
use std::sync::Arc;
use tegrarm_abi::rm::status::*;

/// The most queues that a device makes in its life. Their numbers are never used again.
const MOST: u64 = 1 << 16;

/// All queues but the device's own.
pub struct Lanes {
    open: RwLock<Open>,
}

struct Open {
    lanes: Vec<Arc<Lane>>,
    /// The number of the next queue.
    next: u64,
}

/// A queue that was found.
pub enum Found<'a> {
    /// The queue with which the device was opened.
    Own(&'a Lane),
    /// Another queue.
    Other(Arc<Lane>),
}

impl Deref for Found<'_> {
    type Target = Lane;

    fn deref(&self) -> &Lane {
        match self {
            Found::Own(lane) => lane,
            Found::Other(lane) => lane,
        }
    }
}

impl Lanes {
    /// Makes an empty table. Number 0 is that of the device's own queue.
    pub fn new() -> Lanes {
        Lanes { open: RwLock::new(Open { lanes: Vec::new(), next: 1 }) }
    }

    /// Opens a queue.
    ///
    /// # Errors
    /// Those of [`Lane::open`], and `NV_ERR_INSUFFICIENT_RESOURCES` if no number is left.
    pub fn add(&self, base: &Base, plan: Plan, local: u32) -> RmResult<Arc<Lane>> {
        let number = {
            let mut open = self.open.write();
            if open.next >= MOST {
                fail!(NV_ERR_INSUFFICIENT_RESOURCES, "the device has made {MOST} queues: close it and open it again");
            }
            open.next += 1;
            open.next - 1
        };
        // This makes kernel calls, so that it must not be done while the lock is held.
        let lane = Arc::new(Lane::open(base, number, plan, local)?);
        self.open.write().lanes.push(lane.clone());
        Ok(lane)
    }

    /// Removes a queue.
    pub fn remove(&self, number: u64) {
        self.open.write().lanes.retain(|lane| lane.number() != number);
    }

    /// Finds the queue with this number. The result is `Ok(None)` if it has ended.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_ARGUMENT` if there never was such a queue.
    pub fn find(&self, number: u64) -> RmResult<Option<Arc<Lane>>> {
        let open = self.open.read();
        if number >= open.next {
            fail!(NV_ERR_INVALID_ARGUMENT, "the fence was never given: the device has no queue {number}");
        }
        Ok(open.lanes.iter().find(|lane| lane.number() == number).cloned())
    }

    /// All queues that are open.
    pub fn all(&self) -> Vec<Arc<Lane>> {
        self.open.read().lanes.clone()
    }
}

impl Default for Lanes {
    fn default() -> Lanes {
        Lanes::new()
    }
}
