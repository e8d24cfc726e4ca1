//! The part of a channel that error recovery reaches.

use crate::{NotifierCode, Place};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use tegra_mm::{Backing, SYNCPOINT_STRIDE};

/// One host1x syncpoint that a channel owns.
#[derive(Debug)]
pub struct Syncpoint {
    /// Its number.
    pub id: u32,
    /// The aperture its counter lives in.
    pub aperture: Arc<Backing>,
    /// What is added to the counter, once in its owner's life, so that every waiter sees its threshold passed.
    pub safe_step: u32,
    /// Whether it was.
    pub safe: AtomicBool,
}

impl Syncpoint {
    /// The counter.
    pub fn value(&self) -> u32 {
        self.aperture.load_u32(self.offset()).unwrap_or(0)
    }

    /// Byte of the aperture that holds the counter.
    pub fn offset(&self) -> usize {
        self.id as usize * SYNCPOINT_STRIDE
    }

    /// Releases every waiter: the channel will increment it no more.
    pub fn set_safe_state(&self) {
        if !self.safe.swap(true, Ordering::AcqRel) {
            self.aperture.fetch_add_u32(self.offset(), self.safe_step);
        }
    }
}

/// The part of a channel that error recovery reaches, from open to close.
#[derive(Debug)]
pub struct Vitals {
    /// Channel id.
    pub id: u32,
    /// Error notifier (16 bytes), when set.
    pub notifier: Mutex<Option<Place>>,
    /// The channel's user syncpoint, when it has one.
    pub syncpoint: Mutex<Option<Arc<Syncpoint>>>,
    /// Dead, or not yet bound to a group: consumes nothing.
    pub unserviceable: AtomicBool,
    /// How long its group may keep the engine from another one, milliseconds
    /// (docs/hardware/nvgpu-faults.md#context-switch-timeout).
    pub ctxsw_timeout_ms: AtomicU32,
    /// How long a job of its may run, milliseconds; 0 = it is not watched (docs/hardware/nvgpu-channel.md#watchdog).
    pub watchdog_ms: AtomicU32,
}

/// Context-switch timeout of a channel that nobody gave another one, milliseconds.
pub const CTXSW_TIMEOUT_MS: u32 = 3000;

impl Vitals {
    /// Of a fresh channel: unserviceable until a group binds it.
    pub fn new(id: u32) -> Vitals {
        Vitals {
            id,
            notifier: Mutex::new(None),
            syncpoint: Mutex::new(None),
            unserviceable: AtomicBool::new(true),
            ctxsw_timeout_ms: AtomicU32::new(CTXSW_TIMEOUT_MS),
            watchdog_ms: AtomicU32::new(0),
        }
    }

    /// Writes the error notifier, unless it already shows an error: the first one wins
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
        // The status goes last: whoever sees it sees the code.
        if memory.write(at, &record) {
            std::sync::atomic::fence(Ordering::SeqCst);
            let written = memory.write(at + STATUS, &[0xff; 2]);
            debug_assert!(written, "the same bytes were read above");
        }
    }
}
