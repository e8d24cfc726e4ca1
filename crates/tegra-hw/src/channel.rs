//! Channels that the GPU may run.

use crate::{HwSpace, HwTsg, Place, Vitals};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A channel that SETUP_BIND made runnable.
#[derive(Debug)]
pub struct HwChannel {
    /// Channel id.
    pub id: u32,
    /// The runlist that it is on: 0 for graphics, 1 for the asynchronous copy engine.
    pub runlist: u32,
    /// Subcontext.
    pub veid: u32,
    /// Its group.
    pub tsg: Arc<HwTsg>,
    /// Its address space.
    pub space: Arc<HwSpace>,
    /// GPFIFO ring, 8-byte entries.
    pub ring: Place,
    /// Number of entries, a power of two.
    pub entries: u32,
    /// USERD page: GP_GET at 0x88, GP_PUT at 0x8C.
    pub userd: Place,
    /// Notifier, death, syncpoint.
    pub vitals: Arc<Vitals>,
    /// Runlist enable bit (H.ENABLE / H.DISABLE).
    pub enabled: AtomicBool,
    /// Entries the host has started to process; the index it publishes as GP_GET.
    pub gp_get: AtomicU32,
    /// PBDMA semaphore acquire timeout, milliseconds; 0 = off (the watchdog is disabled).
    pub acquire_timeout_ms: AtomicU32,
}

impl HwChannel {
    /// The work submit token, which names the channel in a doorbell (docs/hardware/gpu-doorbell-and-ring.md#doorbell-token).
    pub fn token(&self) -> u32 {
        self.id | self.runlist << 16
    }

    /// Whether the host may run it.
    pub fn runnable(&self) -> bool {
        self.enabled.load(Ordering::Acquire) && self.tsg.enabled.load(Ordering::Acquire) && !self.dead()
    }

    /// Whether it is unserviceable: it consumes nothing more.
    pub fn dead(&self) -> bool {
        self.vitals.unserviceable.load(Ordering::Acquire)
    }
}
