//! The part of a channel that error recovery reaches.

use crate::{NotifierCode, Place};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use tegra_mm::{Backing, SYNCPOINT_STRIDE};
use tegrarm_lock::Mutex;

/// One host1x syncpoint that a channel owns.
#[derive(Debug)]
pub struct Syncpoint {
    /// The number of the syncpoint.
    pub id: u32,
    /// The aperture that contains its counter.
    pub aperture: Arc<Backing>,
    /// The number that is added to the counter when its owner leaves its group, is closed or dies, so that the threshold
    /// of every waiter is passed.
    pub safe_step: u32,
}

impl Syncpoint {
    /// The value of the counter.
    pub fn value(&self) -> u32 {
        self.aperture.load_u32(self.offset()).unwrap_or(0)
    }

    /// The offset of the counter in the aperture.
    pub fn offset(&self) -> usize {
        self.id as usize * SYNCPOINT_STRIDE
    }

    /// Releases every waiter, because the channel will not increment the counter any more.
    pub fn set_safe_state(&self) {
        self.aperture.fetch_add_u32(self.offset(), self.safe_step);
    }
}

/// The part of a channel that error recovery reaches. It exists from open to close.
#[derive(Debug)]
pub struct Vitals {
    /// The channel id.
    pub id: u32,
    /// The error notifier (16 bytes), if one is set.
    pub notifier: Mutex<Option<Place>>,
    /// The channel's user syncpoint, if it has one.
    pub syncpoint: Mutex<Option<Arc<Syncpoint>>>,
    /// True if the channel is dead or not yet bound to a group. It consumes no entries then.
    pub unserviceable: AtomicBool,
    /// How long its group may keep the engine from another one, in milliseconds
    /// (docs/hardware/nvgpu-faults.md#context-switch-timeout).
    pub ctxsw_timeout_ms: AtomicU32,
    /// How long interrupts of stalled context switches have said that it did, in milliseconds. Stalls are added up for the channel's life.
    pub stalled_ms: AtomicU32,
    /// How long one of its jobs may run, in milliseconds. 0 means that jobs are not watched
    /// (docs/hardware/nvgpu-channel.md#watchdog).
    pub watchdog_ms: AtomicU32,
}

/// The context-switch timeout of a channel for which no other was set, in milliseconds.
pub const CTXSW_TIMEOUT_MS: u32 = 3000;

impl Vitals {
    /// The vitals of a fresh channel. It is unserviceable until it is bound to a group.
    pub fn new(id: u32) -> Vitals {
        Vitals {
            id,
            notifier: Mutex::new(None),
            syncpoint: Mutex::new(None),
            unserviceable: AtomicBool::new(true),
            ctxsw_timeout_ms: AtomicU32::new(CTXSW_TIMEOUT_MS),
            stalled_ms: AtomicU32::new(0),
            watchdog_ms: AtomicU32::new(0),
        }
    }

    /// Writes the error notifier, unless it already shows an error, because only the first error counts
    /// (docs/hardware/nvgpu-faults.md#error-notifier).
    pub fn notify(&self, code: NotifierCode) {
        const STATUS: usize = 14;
        let notifier = self.notifier.lock();
        let Some(place) = notifier.as_ref() else { return };
        let (memory, at) = (&place.backing, place.offset);
        let mut status = [0; 2];
        if !memory.read(at + STATUS, &mut status) || status == [0xff; 2] {
            return;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
        let mut record = [0; 12];
        record[..8].copy_from_slice(&now.to_le_bytes());
        record[8..].copy_from_slice(&(code as u32).to_le_bytes());
        // The status is written last, so that a reader that sees the status also sees the code.
        if memory.write(at, &record) {
            std::sync::atomic::fence(Ordering::SeqCst);
            let written = memory.write(at + STATUS, &[0xff; 2]);
            debug_assert!(written, "the same bytes were read above");
        }
    }
}
