//! The queues of a device beside the one that it was opened with.

use super::base::Base;
use super::lane::Lane;
use super::queue::Plan;
use crate::status::{RmResult, fail};
use parking_lot::RwLock;
use std::ops::Deref;
use std::sync::Arc;
use tegrarm_abi::rm::status::*;

/// The most queues that a device makes in its life: their numbers are never used again.
const MOST: u64 = 1 << 16;

/// All of them.
pub struct Lanes {
    open: RwLock<Open>,
}

struct Open {
    lanes: Vec<Arc<Lane>>,
    /// The number of the next one.
    next: u64,
}

/// A queue, wherever it is kept.
pub enum Found<'a> {
    /// The one that the device was opened with.
    Own(&'a Lane),
    /// Another one.
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
    /// None yet: number 0 is the device's own.
    pub fn new() -> Lanes {
        Lanes { open: RwLock::new(Open { lanes: Vec::new(), next: 1 }) }
    }

    /// Opens one.
    ///
    /// # Errors
    /// As [`Lane::open`]; 0x1A when no number is left.
    pub fn add(&self, base: &Base, plan: Plan, local: u32) -> RmResult<Arc<Lane>> {
        let number = {
            let mut open = self.open.write();
            if open.next >= MOST {
                fail!(NV_ERR_INSUFFICIENT_RESOURCES, "the device has made {MOST} queues: close it and open it again");
            }
            open.next += 1;
            open.next - 1
        };
        // Not under the lock: this makes kernel calls.
        let lane = Arc::new(Lane::open(base, number, plan, local)?);
        self.open.write().lanes.push(lane.clone());
        Ok(lane)
    }

    /// Forgets one.
    pub fn remove(&self, number: u64) {
        self.open.write().lanes.retain(|lane| lane.number() != number);
    }

    /// The one of a number; `Ok(None)` when it has ended.
    ///
    /// # Errors
    /// 0x1F when there never was one.
    pub fn find(&self, number: u64) -> RmResult<Option<Arc<Lane>>> {
        let open = self.open.read();
        if number >= open.next {
            fail!(NV_ERR_INVALID_ARGUMENT, "the fence was never given: the device has no queue {number}");
        }
        Ok(open.lanes.iter().find(|lane| lane.number() == number).cloned())
    }

    /// All that are open.
    pub fn all(&self) -> Vec<Arc<Lane>> {
        self.open.read().lanes.clone()
    }
}

impl Default for Lanes {
    fn default() -> Lanes {
        Lanes::new()
    }
}
