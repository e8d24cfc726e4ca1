//! host1x syncpoints: counters that the GPU increments through an aperture in its address space.

use super::ids::Lowest;
use crate::release::L4t;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};
use tegra_hw::Syncpoint;
use tegra_mm::{Backing, SYNCPOINT_STRIDE};
use tegrarm_kmd::Errno;
use tegrarm_lock::Mutex;

/// The number of syncpoints of the unit, which is 64 MiB of aperture
/// (docs/hardware/nvgpu-address-space.md#get-sync-ro-map).
pub(super) const COUNT: u32 = 1024;
/// The size of the aperture in bytes.
pub(super) const APERTURE: u64 = COUNT as u64 * SYNCPOINT_STRIDE as u64;
/// The first syncpoint that a channel got in published logs. Those with smaller numbers belong to other devices.
const FIRST: u32 = 17;

/// The host1x unit as nvgpu uses it.
#[derive(Debug)]
pub(super) struct Syncpoints {
    ids: Lowest,
    aperture: OnceLock<Arc<Backing>>,
    /// The syncpoints that belong to a channel, by number.
    owned: Mutex<HashMap<u32, Weak<Syncpoint>>>,
    safe_step: u32,
}

/// A channel's ownership of a syncpoint.
#[derive(Debug)]
pub(super) struct OwnedSyncpoint {
    pub syncpoint: Arc<Syncpoint>,
    unit: Arc<Syncpoints>,
}

impl Syncpoints {
    pub(super) fn new(l4t: L4t) -> Syncpoints {
        // This is the number that the host1x driver of each release adds to release every waiter.
        let safe_step = if l4t.is_r35() { 0x10000 } else { 1000 };
        Syncpoints { ids: Lowest::new(COUNT - FIRST), aperture: OnceLock::new(), owned: Mutex::default(), safe_step }
    }

    /// The memory of the counters.
    pub(super) fn aperture(&self) -> Result<Arc<Backing>, Errno> {
        if let Some(aperture) = self.aperture.get() {
            return Ok(aperture.clone());
        }
        let fresh = Arc::new(Backing::anonymous("host1x-syncpoints", APERTURE as usize)?.as_syncpoints());
        Ok(self.aperture.get_or_init(|| fresh).clone())
    }

    /// The syncpoint with this number, if it belongs to a channel.
    pub(super) fn find(&self, id: u32) -> Option<Arc<Syncpoint>> {
        self.owned.lock().get(&id).and_then(Weak::upgrade)
    }

    pub(super) fn used(&self) -> usize {
        self.ids.used()
    }
}

impl OwnedSyncpoint {
    /// Takes the lowest free syncpoint. The error is `ENOMEM` when none is free.
    pub(super) fn take(unit: &Arc<Syncpoints>) -> Result<OwnedSyncpoint, Errno> {
        let aperture = unit.aperture()?;
        let id = unit.ids.take().ok_or(Errno::ENOMEM)? + FIRST;
        let syncpoint = Arc::new(Syncpoint { id, aperture, safe_step: unit.safe_step });
        unit.owned.lock().insert(id, Arc::downgrade(&syncpoint));
        Ok(OwnedSyncpoint { syncpoint, unit: unit.clone() })
    }
}

impl Drop for OwnedSyncpoint {
    fn drop(&mut self) {
        self.unit.ids.give_back(self.syncpoint.id - FIRST);
    }
}
