//! The channels that the GPU may run.

use crate::{HwSpace, HwTsg, Place, Vitals};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A channel that SETUP_BIND has made ready to run.
#[derive(Debug)]
pub struct HwChannel {
    /// Channel id.
    pub id: u32,
    /// The runlist that it is on: 0 for graphics, 1 for the asynchronous copy engine.
    pub runlist: u32,
    /// Subcontext.
    pub veid: u32,
    /// The group of the channel.
    pub tsg: Arc<HwTsg>,
    /// The address space of the channel.
    pub space: Arc<HwSpace>,
    /// The GPFIFO ring, with entries of 8 bytes.
    pub ring: Place,
    /// The number of entries, a power of two.
    pub entries: u32,
    /// The USERD page, with GP_GET at 0x88 and GP_PUT at 0x8C.
    pub userd: Place,
    /// The parts that error recovery reaches: notifier, state of death and syncpoint.
    pub vitals: Arc<Vitals>,
    /// The runlist enable bit (H.ENABLE / H.DISABLE).
    pub enabled: AtomicBool,
    /// The number of entries that the host has started to process. It is the index that the host publishes as GP_GET.
    pub gp_get: AtomicU32,
    /// The timeout of PBDMA semaphore acquires in milliseconds. 0 means no timeout, because the watchdog is disabled.
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

    /// Whether the channel is unserviceable, so that it consumes no more entries.
    pub fn dead(&self) -> bool {
        self.vitals.unserviceable.load(Ordering::Acquire)
    }
}
