//! Runlist, doorbells, turns, recovery: everything but the threads.

use super::channel::{Channel, StopReason, Turn};
use super::clock::time_ns;
use super::config::GpuConfig;
use super::context::Contexts;
use super::doorbell::Doorbell;
use super::engine::Engine;
use super::fault;
use super::trace::Trace;
use parking_lot::{Condvar, Mutex, RwLock};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tegra_hw::{Fault, HwChannel, HwTsg, Place};

/// The GPU without its threads.
pub(crate) struct Core {
    pub(crate) config: GpuConfig,
    pub(crate) trace: Trace,
    pub(crate) engine: Engine,
    contexts: Contexts,
    channels: RwLock<Vec<Arc<Channel>>>,
    doorbells: Mutex<Vec<Doorbell>>,
    /// Set when somebody wants a sleeping worker to look at once.
    woken: Mutex<bool>,
    wake: Condvar,
}

impl Core {
    pub(crate) fn new(config: GpuConfig) -> Core {
        Core {
            config,
            trace: Trace::default(),
            engine: Engine::default(),
            contexts: Contexts::default(),
            channels: RwLock::default(),
            doorbells: Mutex::default(),
            woken: Mutex::new(false),
            wake: Condvar::new(),
        }
    }

    pub(crate) fn add(&self, hw: Arc<HwChannel>) {
        let context = self.contexts.of(hw.tsg.id, hw.veid);
        self.channels.write().push(Arc::new(Channel::new(hw, context)));
        self.wake();
    }

    pub(crate) fn remove(&self, id: u32) {
        // Its token may lie in a doorbell, over that of another channel: taken while it still names one.
        self.poll_doorbells();
        let mut channels = self.channels.write();
        let Some(at) = channels.iter().position(|c| c.hw.id == id) else { return };
        let channel = channels.remove(at);
        drop(channels);
        // Whoever runs the channel notices the request within one operation.
        channel.stop.request(StopReason::Removed);
        // Others may be about to find out that they cannot run it. Its memory is the caller's again only without them.
        let gone = channel.gone();
        drop(channel);
        gone.wait();
    }

    /// The group's engine contexts end with it.
    pub(crate) fn forget_group(&self, tsg: u32) {
        self.contexts.forget(tsg);
    }

    pub(crate) fn watch(&self, page: Place) {
        self.doorbells.lock().push(Doorbell::new(page));
    }

    pub(crate) fn unwatch(&self, page: &Place) {
        self.doorbells.lock().retain(|d| !d.watches(page));
    }

    /// Whether anything is left that could need a thread.
    pub(crate) fn deserted(&self) -> bool {
        self.channels.read().is_empty() && self.doorbells.lock().is_empty()
    }

    fn find(&self, id: u32) -> Option<Arc<Channel>> {
        self.channels.read().iter().find(|c| c.hw.id == id).cloned()
    }

    pub(crate) fn ring(&self, id: u32) {
        if let Some(channel) = self.find(id).filter(|c| c.runnable()) {
            channel.rung.store(true, Ordering::Release);
        }
    }

    fn group(&self, tsg: &HwTsg) -> Vec<Arc<Channel>> {
        self.channels.read().iter().filter(|c| std::ptr::eq(&*c.hw.tsg, tsg)).cloned().collect()
    }

    /// Cuts short whatever runs for the group; returns when it has stopped.
    pub(crate) fn reset(&self, tsg: &HwTsg) {
        let channels = self.group(tsg);
        channels.iter().for_each(|c| c.stop.request(StopReason::Reset));
        channels.iter().for_each(|c| drop(c.pbdma.lock()));
    }

    /// Waits until nothing of the group executes. A grid that does not end within the context-switch timeout is
    /// cut short, and the group with it.
    pub(crate) fn preempt(&self, tsg: &HwTsg) {
        for channel in self.group(tsg) {
            let limit = Duration::from_nanos(tsg.ctxsw_timeout_ns());
            let idle = channel.pbdma.try_lock_for(limit);
            if idle.is_none() {
                channel.stop.request(StopReason::SwitchTimeout);
                drop(channel.pbdma.lock());
            }
        }
    }

    /// Takes doorbells. A store may have overwritten an earlier one that nobody had taken yet, so any token that
    /// names a channel makes every channel look at its GP_PUT.
    pub(crate) fn poll_doorbells(&self) -> bool {
        let now = time_ns();
        let mut rang = false;
        for bell in self.doorbells.lock().iter() {
            let Some(token) = bell.poll(now) else { continue };
            match self.channels.read().iter().any(|c| c.hw.token() == token) {
                true => rang = true,
                false => {
                    tracing::warn!(target: "tegra_sim::gpu", "doorbell with token {token:#x}, which names no channel")
                }
            }
        }
        if rang {
            for channel in self.channels.read().iter().filter(|c| c.runnable()) {
                channel.rung.store(true, Ordering::Release);
            }
        }
        rang
    }

    /// One turn for every channel that nobody else is running. True when anything happened.
    pub(crate) fn pass(&self) -> bool {
        let mut progress = false;
        let mut at = 0;
        // The list may change between turns; a channel missed or seen twice gets its turn next time.
        while let Some(channel) = self.nth(at) {
            at += 1;
            progress |= self.turn(&channel);
        }
        progress
    }

    fn nth(&self, at: usize) -> Option<Arc<Channel>> {
        self.channels.read().get(at).cloned()
    }

    fn turn(&self, channel: &Channel) -> bool {
        if !channel.awake() {
            return false;
        }
        let Some(mut pbdma) = channel.pbdma.try_lock() else { return false };
        let gpu = &channel.hw.tsg.gpu;
        let progress = channel.runnable() && {
            let start = gpu.switches.logged().then(time_ns);
            let turn = Turn { channel, config: &self.config, trace: &self.trace, engine: &self.engine };
            // A bug of this machine ends the group that met it, not the thread every channel needs.
            let result = catch_unwind(AssertUnwindSafe(|| pbdma.turn(&turn)));
            match result.unwrap_or_else(|panic| Err(fault::machine_bug(&channel.hw, &*panic))) {
                Ok(progress) => {
                    if progress {
                        gpu.residency.used_by(channel.hw.tsg.id);
                    }
                    // Host looks at rings all the time; a group has the engine when it makes progress.
                    if let Some(start) = start.filter(|_| progress) {
                        gpu.switches.runs(channel.hw.tsg.id, start);
                    }
                    progress
                }
                Err(fault) => {
                    self.recover(channel, fault);
                    true
                }
            }
        };
        if channel.stop.timed_out() && !channel.hw.dead() {
            let what = format!("its work {}", channel.stop.sentence());
            self.recover(channel, fault::switch_timeout(&channel.hw, what));
            return true;
        }
        progress
    }

    /// Ends a channel's group. Its other channels may be running on another thread: they stop at their next
    /// method.
    fn recover(&self, channel: &Channel, fault: Fault) {
        let tsg = &channel.hw.tsg;
        self.trace.fault(channel.hw.id, tsg.id, &fault);
        tsg.recover(fault);
    }

    pub(crate) fn step(&self) -> bool {
        let rang = self.poll_doorbells();
        self.pass() || rang
    }

    /// Whether a channel has work it cannot go on with.
    pub(crate) fn waits(&self) -> bool {
        self.channels.read().iter().any(|c| c.busy.load(Ordering::Acquire) && c.runnable())
    }

    /// Makes a sleeping worker look.
    pub(crate) fn wake(&self) {
        *self.woken.lock() = true;
        self.wake.notify_all();
    }

    /// Sleeps for at most `limit`, less if somebody wakes the worker.
    pub(crate) fn nap(&self, limit: Duration) {
        let mut woken = self.woken.lock();
        if !*woken {
            self.wake.wait_for(&mut woken, limit);
        }
        *woken = false;
    }

    /// Stops everything, for good.
    pub(crate) fn shut_down(&self) {
        for channel in self.channels.write().drain(..) {
            channel.stop.request(StopReason::Removed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, AtomicU32};
    use tegra_hw::{HwSpace, Vitals};
    use tegra_mm::{Backing, memfd};

    const ID: u32 = 7;

    fn channel() -> Arc<HwChannel> {
        let page = || {
            let file = memfd::create("test", 4096).expect("memory");
            Place { backing: Arc::new(Backing::from_memfd(file, 4096).expect("mapping")), offset: 0 }
        };
        Arc::new(HwChannel {
            id: ID,
            runlist: 0,
            veid: 0,
            tsg: Arc::new(HwTsg::new(0, 1, Arc::default())),
            space: Arc::new(HwSpace::default()),
            ring: page(),
            entries: 16,
            userd: page(),
            vitals: Arc::new(Vitals::new(ID)),
            enabled: AtomicBool::new(true),
            gp_get: AtomicU32::new(0),
            acquire_timeout_ms: AtomicU32::new(0),
        })
    }

    /// Whether thread `tid` of this process sleeps. One that spins, or yields while it waits, never does.
    fn sleeps(tid: i32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).expect("a live thread");
        stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('S'))
    }

    /// A channel that somebody still looks at is removed when he has let it go, and its removal sleeps until then.
    #[test]
    fn a_removal_sleeps_until_the_last_user_is_gone() {
        let core = Core::new(GpuConfig::default());
        let hw = channel();
        core.add(hw.clone());
        let user = core.find(ID).expect("on the runlist");
        let tid = AtomicU32::new(0);
        std::thread::scope(|scope| {
            let removal = scope.spawn(|| {
                tid.store(nix::unistd::gettid().as_raw() as u32, Ordering::Release);
                core.remove(ID);
                Arc::strong_count(&hw)
            });
            while core.find(ID).is_some() {
                std::thread::yield_now();
            }
            while !sleeps(tid.load(Ordering::Acquire) as i32) {
                std::thread::yield_now();
            }
            assert!(!removal.is_finished(), "the channel is still in use");
            assert!(user.stop.requested(), "whoever runs it is asked to stop");
            drop(user);
            assert_eq!(removal.join().expect("no panic"), 1, "nothing of the channel is left in the GPU");
        });
    }
}
