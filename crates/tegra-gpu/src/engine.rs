//! The graphics engine as a resource. It runs one grid at a time, and no group can keep it from another group for ever.

use super::clock::host_ns;
use super::stop::{Stop, StopReason};
use super::wake::Use;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tegra_hw::{HwChannel, HwGpu, HwTsg};
use tegrarm_lock::Mutex;

/// The channel whose grid runs.
struct Owner {
    tsg: usize,
    stop: Stop,
    /// The time at which another group first asked for the engine, and how long that group must wait at most.
    contended_since: Option<u64>,
    limit_ns: u64,
    gpu: Arc<HwGpu>,
    /// How long the grid itself may run, if the watchdog is on.
    watchdog_ns: Option<u64>,
}

/// The graphics engine.
pub(crate) struct Engine {
    owner: Mutex<Option<Owner>>,
    /// Whether a grid runs, and since when.
    busy: Use,
}

impl Default for Engine {
    fn default() -> Engine {
        Engine { owner: Mutex::default(), busy: Use::new() }
    }
}

/// Held while a grid runs.
pub(crate) struct Busy<'a>(&'a Engine);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let mut owner = self.0.owner.lock();
        self.0.busy.end();
        *owner = None;
    }
}

impl Engine {
    /// Takes the engine for a channel, if it is free. If it is not free, and another group has waited longer than the
    /// context-switch timeout of the group that has it, the running grid is asked to stop. A compute context that
    /// cannot be preempted and does not end is torn down in this way.
    pub(crate) fn enter(&self, hw: &HwChannel, stop: &Stop) -> Option<Busy<'_>> {
        let tsg = Arc::as_ptr(&hw.tsg) as usize;
        let mut owner = self.owner.lock();
        if let Some(o) = &mut *owner {
            if o.tsg != tsg {
                let now = host_ns();
                if now.saturating_sub(*o.contended_since.get_or_insert(now)) > o.limit_ns && o.gpu.timeouts.are_on() {
                    o.stop.request(StopReason::SwitchTimeout);
                }
            }
            return None;
        }
        let watchdog_ms = hw.vitals.watchdog_ms.load(Ordering::Relaxed);
        *owner = Some(Owner {
            tsg,
            stop: stop.clone(),
            contended_since: None,
            limit_ns: hw.tsg.ctxsw_timeout_ns(),
            gpu: hw.tsg.gpu.clone(),
            watchdog_ns: (watchdog_ms > 0).then_some(u64::from(watchdog_ms) * 1_000_000),
        });
        self.busy.begin(host_ns().max(1));
        drop(owner);
        self.busy.tell();
        Some(Busy(self))
    }

    /// Sleeps until a grid runs, or until `enough` returns true. [`Engine::wake`] makes the thread ask again.
    pub(crate) fn wait_for_use(&self, enough: impl Fn() -> bool) {
        self.busy.wait(enough);
    }

    /// Makes a thread that waits in [`Engine::wait_for_use`] ask again.
    pub(crate) fn wake(&self) {
        self.busy.wake();
    }

    /// The kernel wants the engine from a group.
    pub(crate) fn contend(&self, tsg: &HwTsg) {
        if let Some(owner) = self.owner.lock().as_mut().filter(|owner| owner.tsg == std::ptr::from_ref(tsg) as usize) {
            owner.contended_since.get_or_insert_with(host_ns);
        }
    }

    /// Stops the running grid if the time of its watchdog is over, or if somebody has waited for the engine for too long.
    pub(crate) fn watch(&self) {
        let owner = self.owner.lock();
        if let Some(owner) = owner.as_ref()
            && owner.contended_since.is_some_and(|since| host_ns().saturating_sub(since) > owner.limit_ns)
            && owner.gpu.timeouts.are_on()
        {
            owner.stop.request(StopReason::SwitchTimeout);
        }
        let limit = owner.as_ref().and_then(|o| Some((o, o.watchdog_ns?)));
        if let Some((owner, limit)) = limit
            && self.busy_ns().is_some_and(|ns| ns > limit)
            && owner.gpu.timeouts.are_on()
        {
            owner.stop.request(StopReason::Watchdog);
        }
    }

    /// How long the running grid has been running, in nanoseconds.
    pub(crate) fn busy_ns(&self) -> Option<u64> {
        self.busy.since().map(|since| host_ns().saturating_sub(since))
    }
}
