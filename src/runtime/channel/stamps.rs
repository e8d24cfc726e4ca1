//! The places to which the GPU writes its time. Each has 16 bytes, and several places share a block of memory.

use crate::runtime::channel::profile::{STAMP, STAMP_TIME};
use crate::runtime::memory::session::Session;
use crate::runtime::memory::{Cache, Memory};
use std::sync::Arc;
use tegrarm_lock::Mutex;
use tegrarm_rm::status::RmResult;

/// The number of bytes of such a block.
const BLOCK: u64 = 4096;

/// All places of a device.
pub struct Stamps {
    session: Arc<Session>,
    /// The places that are free, and for each the fence up to which the GPU may still write there.
    free: Mutex<Vec<(u64, Spot)>>,
}

/// One place.
#[derive(Clone)]
struct Spot {
    memory: Arc<Memory>,
    offset: u64,
}

/// A place that is in use. It is free again when it is dropped.
pub struct Stamp {
    stamps: Arc<Stamps>,
    spot: Spot,
    /// The fence of the last submission that writes there.
    fence: u64,
}

impl Stamps {
    /// Makes the value without places.
    pub fn new(session: &Arc<Session>) -> Arc<Stamps> {
        Arc::new(Stamps { session: session.clone(), free: Mutex::default() })
    }

    /// Takes a place to which the GPU does not write any more. `has_passed` says whether a fence has passed.
    ///
    /// # Errors
    /// Those of [`Memory::new`].
    pub fn take(self: &Arc<Stamps>, has_passed: impl Fn(u64) -> bool) -> RmResult<Stamp> {
        let mut free = self.free.lock();
        if let Some(at) = free.iter().rposition(|(fence, _)| has_passed(*fence)) {
            let (_, spot) = free.swap_remove(at);
            return Ok(self.stamp(spot));
        }
        drop(free);
        // This makes kernel calls, so that it must not be done while the lock is held.
        let memory = Arc::new(Memory::new(&self.session, BLOCK, Cache::Cached)?);
        let spot = |offset| Spot { memory: memory.clone(), offset };
        let rest = (STAMP..BLOCK).step_by(STAMP as usize).map(|offset| (0, spot(offset)));
        self.free.lock().extend(rest);
        Ok(self.stamp(spot(0)))
    }

    fn stamp(self: &Arc<Stamps>, spot: Spot) -> Stamp {
        Stamp { stamps: self.clone(), spot, fence: 0 }
    }
}

impl Stamp {
    /// The GPU address of the place.
    pub fn va(&self) -> u64 {
        self.spot.memory.va() + self.spot.offset
    }

    /// Notes that the work of a fence writes there.
    pub fn written_by(&mut self, fence: u64) {
        self.fence = fence;
    }

    /// The time that the GPU wrote last, in nanoseconds of its clock.
    pub fn time(&self) -> u64 {
        self.spot.memory.read_u64(self.spot.offset + STAMP_TIME)
    }
}

impl Drop for Stamp {
    fn drop(&mut self) {
        self.stamps.free.lock().push((self.fence, self.spot.clone()));
    }
}
