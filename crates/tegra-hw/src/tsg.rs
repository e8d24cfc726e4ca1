//! Channel groups and their recovery.

use crate::vitals::CTXSW_TIMEOUT_MS;
use crate::{Fault, HwGpu, SmError, Vitals};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use tegrarm_lock::Mutex;

/// An interrupt that is not an error, by whom the kernel informs about it (docs/hardware/nvgpu-tsg.md#event-id-ctrl).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awakening {
    /// A non-stalling interrupt of the host, copy or graphics engine. The kernel informs BLOCKING_SYNC events and
    /// sleepers in H.WAIT.
    NonStall,
    /// The graphics engine wrote a semaphore with AWAKEN. The kernel informs GR_SEMAPHORE_WRITE_AWAKEN events and
    /// sleepers in H.WAIT.
    Semaphore,
    /// The graphics engine wrote a notifier. The kernel informs sleepers in H.WAIT.
    Notifier,
}

/// A receiver that wants to know that a group raised such an interrupt.
pub trait Listener: Send + Sync + std::fmt::Debug {
    /// The group raised the interrupt.
    fn awaken(&self, awakening: Awakening);
}

/// A channel group. It owns the state of the compute and copy engines for each of its subcontexts.
#[derive(Debug)]
pub struct HwTsg {
    /// The TSG id.
    pub id: u32,
    /// The process that made it, for figures about processes.
    pub process: i32,
    /// The channels that are bound to it, whether they are set up or not. Errors reach every one of them.
    pub members: Mutex<Vec<Arc<Vitals>>>,
    /// The saved SM error records, by SM index. They survive recovery.
    pub sm_errors: Mutex<Vec<SmError>>,
    /// The first fault, which is kept for logs and tools.
    pub fault: Mutex<Option<Fault>>,
    /// The state that it shares with the other groups of its GPU.
    pub gpu: Arc<HwGpu>,
    /// The receiver of its interrupts: the group's event descriptors.
    pub listener: Mutex<Weak<dyn Listener>>,
    /// The runlist enable bit of the whole group (T.ENABLE / T.DISABLE).
    pub enabled: AtomicBool,
    /// The timeslice in microseconds.
    pub timeslice_us: AtomicU32,
}

impl HwTsg {
    /// Makes a group of `process` without channels, on a GPU with `sm_count` SMs.
    pub fn new(id: u32, process: i32, sm_count: usize, gpu: Arc<HwGpu>) -> HwTsg {
        HwTsg {
            id,
            process,
            members: Mutex::default(),
            sm_errors: Mutex::new(vec![SmError::default(); sm_count]),
            fault: Mutex::new(None),
            gpu,
            listener: Mutex::new(Weak::<Nobody>::new()),
            enabled: AtomicBool::new(true),
            timeslice_us: AtomicU32::new(1024),
        }
    }

    /// Recovers from an error, as far as software sees it (docs/hardware/nvgpu-faults.md#recovery). It saves the SM
    /// records, writes the notifier of every channel if it is `told`, makes every channel unserviceable, releases waiters on
    /// syncpoints and wakes sleepers, in this order. The caller stops the engines. Nothing is freed.
    pub fn recover(&self, fault: Fault, told: bool) {
        tracing::warn!(target: "tegra_sim::recovery", tsg = self.id, code = ?fault.code, "{}", fault.text);
        let mut saved = self.sm_errors.lock();
        for (sm, record) in &fault.sms {
            if let Some(saved) = saved.get_mut(*sm as usize) {
                *saved = *record;
            }
        }
        drop(saved);
        let members = self.members.lock().clone();
        // The fault is kept before the notifier is written, so that a program that sees the notifier also finds the fault.
        self.gpu.faults.note(members.iter().map(|m| m.id), &fault);
        members.iter().filter(|_| told).for_each(|m| m.notify(fault.code));
        self.fault.lock().get_or_insert(fault);
        for member in &members {
            member.unserviceable.store(true, Ordering::Release);
            // FORCE_RESET of a dead group does this once more.
            if let Some(syncpoint) = member.syncpoint.lock().as_ref() {
                syncpoint.set_safe_state();
            }
        }
        self.gpu.interrupts.raise();
    }

    /// How long the group may keep the engine from another group, in nanoseconds. It is the shortest timeout of its
    /// channels.
    pub fn ctxsw_timeout_ns(&self) -> u64 {
        let members = self.members.lock();
        let shortest = members.iter().map(|m| m.ctxsw_timeout_ms.load(Ordering::Relaxed)).min();
        u64::from(shortest.unwrap_or(CTXSW_TIMEOUT_MS)) * 1_000_000
    }

    /// An interrupt says that the group has kept the engine for so many milliseconds more. The result is the time of the first
    /// channel whose timeout is over, if there is one.
    pub fn stalled(&self, ms: u32) -> Option<u32> {
        self.members.lock().iter().find_map(|m| {
            let all = m.stalled_ms.fetch_add(ms, Ordering::Relaxed).saturating_add(ms);
            (all > m.ctxsw_timeout_ms.load(Ordering::Relaxed)).then_some(all)
        })
    }

    /// Raises an interrupt that is not an error: wakes H.WAIT and posts the group's events.
    pub fn awaken(&self, awakening: Awakening) {
        let listener = self.listener.lock().upgrade();
        if let Some(listener) = listener {
            listener.awaken(awakening);
        }
        self.gpu.interrupts.raise();
    }
}

/// The receiver of a group that has no event descriptors.
#[derive(Debug)]
struct Nobody;

impl Listener for Nobody {
    fn awaken(&self, _: Awakening) {}
}
