//! Channel groups and their recovery.

use crate::vitals::CTXSW_TIMEOUT_MS;
use crate::{Fault, HwGpu, SmError, Vitals};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Weak};

/// An interrupt that is not an error, by what the kernel tells whom (docs/hardware/nvgpu-tsg.md#event-id-ctrl).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awakening {
    /// A non-stalling interrupt of host, copy or graphics engine: BLOCKING_SYNC events, and who sleeps in H.WAIT.
    NonStall,
    /// The graphics engine wrote a semaphore with AWAKEN: GR_SEMAPHORE_WRITE_AWAKEN events, and who sleeps.
    Semaphore,
    /// The graphics engine wrote a notifier: who sleeps.
    Notifier,
}

/// Someone who wants to know that a group raised such an interrupt.
pub trait Listener: Send + Sync + std::fmt::Debug {
    /// It was raised.
    fn awaken(&self, awakening: Awakening);
}

/// A channel group. State of the compute and copy engines belongs to it, per subcontext.
#[derive(Debug)]
pub struct HwTsg {
    /// TSG id.
    pub id: u32,
    /// Channels bound to it, set up or not; errors reach every one.
    pub members: Mutex<Vec<Arc<Vitals>>>,
    /// Saved SM error records, by SM index. Survive recovery.
    pub sm_errors: Mutex<Vec<SmError>>,
    /// The first fault, kept for logs and tools.
    pub fault: Mutex<Option<Fault>>,
    /// What it shares with the other groups of its GPU.
    pub gpu: Arc<HwGpu>,
    /// Who listens to its interrupts: the group's event fds.
    pub listener: Mutex<Weak<dyn Listener>>,
    /// Runlist enable bit of the whole group (T.ENABLE / T.DISABLE).
    pub enabled: AtomicBool,
    /// Timeslice, microseconds.
    pub timeslice_us: AtomicU32,
}

impl HwTsg {
    /// A group without channels on a GPU with `sm_count` SMs.
    pub fn new(id: u32, sm_count: usize, gpu: Arc<HwGpu>) -> HwTsg {
        HwTsg {
            id,
            members: Mutex::default(),
            sm_errors: Mutex::new(vec![SmError::default(); sm_count]),
            fault: Mutex::new(None),
            gpu,
            listener: Mutex::new(Weak::<Nobody>::new()),
            enabled: AtomicBool::new(true),
            timeslice_us: AtomicU32::new(1024),
        }
    }

    /// Error recovery as far as software sees it (docs/hardware/nvgpu-faults.md#recovery): saves the SM
    /// records, writes the notifier of
    /// every channel, then makes every channel unserviceable, lets syncpoint waiters go, wakes sleepers. The
    /// caller stops the engines; nothing is freed.
    pub fn recover(&self, fault: Fault) {
        tracing::warn!(target: "tegra_sim::recovery", tsg = self.id, code = ?fault.code, "{}", fault.text);
        let mut saved = self.sm_errors.lock();
        for (sm, record) in &fault.sms {
            if let Some(saved) = saved.get_mut(*sm as usize) {
                *saved = *record;
            }
        }
        drop(saved);
        let members = self.members.lock().clone();
        members.iter().for_each(|m| m.notify(fault.code));
        self.fault.lock().get_or_insert(fault);
        for member in &members {
            if !member.unserviceable.swap(true, Ordering::AcqRel)
                && let Some(syncpoint) = member.syncpoint.lock().as_ref()
            {
                syncpoint.set_safe_state();
            }
        }
        self.gpu.interrupts.raise();
    }

    /// How long it may keep the engine from another group: the longest timeout of its channels, nanoseconds.
    pub fn ctxsw_timeout_ns(&self) -> u64 {
        let members = self.members.lock();
        let longest = members.iter().map(|m| m.ctxsw_timeout_ms.load(Ordering::Relaxed)).max();
        u64::from(longest.unwrap_or(CTXSW_TIMEOUT_MS)) * 1_000_000
    }

    /// An interrupt that is not an error: wakes H.WAIT and posts the group's events.
    pub fn awaken(&self, awakening: Awakening) {
        let listener = self.listener.lock().upgrade();
        if let Some(listener) = listener {
            listener.awaken(awakening);
        }
        self.gpu.interrupts.raise();
    }
}

/// The listener of a group without event fds.
#[derive(Debug)]
struct Nobody;

impl Listener for Nobody {
    fn awaken(&self, _: Awakening) {}
}
