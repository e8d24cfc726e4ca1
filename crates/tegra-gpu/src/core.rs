//! The GPU without its threads: runlist, doorbells, turns and recovery.

use super::between::Queues;
use super::channel::Channel;
use super::checks::publish;
use super::clock::{Ptimer, host_ns};
use super::config::GpuConfig;
use super::context::Contexts;
use super::doorbell::Doorbell;
use super::engine::Engine;
use super::fault::{self, Failure};
use super::mem::Words;
use super::profile::Profile;
use super::stop::StopReason;
use super::trace::Trace;
use super::turn::Turn;
use super::wake::{Nap, News};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tegra_hw::{Fault, HwChannel, HwTsg, NotifierCode, Place};
use tegrarm_abi::layout::offset_of;
use tegrarm_abi::rm::usermode::AmpereAControlGPFifo as Userd;
use tegrarm_lock::{Mutex, RwLock};

/// How long a thread looks for the GPU's work before it sleeps, and the pauses between two looks.
const SHORT: Duration = Duration::from_micros(20);
const LOOKS: u32 = 8;

/// A thread asks the system once for so many rests which processors it may use.
const ASKS: u64 = 64;

/// Whether this thread may use one processor alone.
fn has_one_processor() -> bool {
    let set = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0));
    set.is_ok_and(|set| (0..nix::sched::CpuSet::count()).filter(|at| set.is_set(*at).unwrap_or(false)).count() == 1)
}

/// How long nvgpu waits for the end of a preemption (docs/hardware/nvgpu-tsg.md#enable-disable-preempt).
const PREEMPTION: Duration = Duration::from_millis(100);

/// The GPU without its threads.
pub(crate) struct Core {
    pub(crate) config: GpuConfig,
    pub(crate) trace: Trace,
    pub(crate) engine: Engine,
    pub(crate) ptimer: Ptimer,
    contexts: Contexts,
    channels: RwLock<Vec<Arc<Channel>>>,
    doorbells: Mutex<Vec<Doorbell>>,
    /// The tokens of channels that were removed and whose ids have not been given out again.
    retired: Mutex<BTreeSet<u32>>,
    /// The sleeps of the worker that looks for work, and of the one that does so beside a long grid.
    sleep: Nap,
    beside: Nap,
    /// The work so far, and the threads that wait for it.
    news: News,
    /// How often a thread began to rest.
    asked: AtomicU64,
    /// Whether such threads and the GPU's have one processor together.
    alone: AtomicBool,
}

impl Core {
    pub(crate) fn new(config: GpuConfig) -> Core {
        Core {
            ptimer: Ptimer::new(config.speeds.is_some()),
            config,
            trace: Trace::default(),
            engine: Engine::default(),
            contexts: Contexts::default(),
            channels: RwLock::default(),
            doorbells: Mutex::default(),
            retired: Mutex::default(),
            sleep: Nap::new(),
            beside: Nap::new(),
            news: News::new(),
            asked: AtomicU64::new(0),
            alone: AtomicBool::new(false),
        }
    }

    pub(crate) fn add(&self, hw: Arc<HwChannel>) {
        let context = self.contexts.of(hw.tsg.id, hw.veid);
        self.retired.lock().remove(&hw.token());
        if let Some(queues) = self.queues() {
            let profile = self.config.profile.clone();
            queues.opens(&hw, move |checker, channel| {
                let found = publish(checker, &channel.tsg.gpu);
                // Who writes the profile names a copy's reports alike: they are about no launch that has just ended.
                let tell =
                    |profile: &Arc<Profile>| found.iter().for_each(|report| profile.reported(report, channel, 0));
                profile.iter().for_each(tell);
            });
        }
        self.channels.write().push(Arc::new(Channel::new(hw, context)));
        self.wake();
    }

    pub(crate) fn remove(&self, id: u32) {
        // A doorbell page may hold the channel's token, written over the token of another channel. The token is taken
        // while it still names a channel.
        self.poll_doorbells();
        let mut channels = self.channels.write();
        let Some(at) = channels.iter().position(|c| c.hw.id == id) else { return };
        let channel = channels.remove(at);
        self.retired.lock().insert(channel.hw.token());
        let (gpu, process, token) = (channel.hw.tsg.gpu.clone(), channel.hw.tsg.process, channel.hw.token());
        drop(channels);
        // The thread that runs the channel notices the request within one operation.
        channel.signals.stop.request(StopReason::Removed);
        // Other threads may still hold the channel to find out whether they can run it. The caller gets its memory back
        // only after they have dropped it.
        let gone = channel.gone();
        drop(channel);
        gone.wait();
        gpu.names.closed(process, token);
        if let Some(queues) = self.queues() {
            queues.closes(id);
        }
    }

    fn queues(&self) -> Option<&Arc<Queues>> {
        self.config.reports.as_ref()?.queues()
    }

    /// Drops the group's engine contexts.
    pub(crate) fn forget_group(&self, tsg: u32) {
        self.contexts.forget(tsg);
    }

    pub(crate) fn watch(&self, page: Place) {
        self.doorbells.lock().push(Doorbell::new(page, self.ptimer.now()));
    }

    pub(crate) fn unwatch(&self, page: &Place) {
        self.doorbells.lock().retain(|d| !d.watches(page));
    }

    /// Whether no channel and no doorbell page is left, so that no thread is needed.
    pub(crate) fn deserted(&self) -> bool {
        self.channels.read().is_empty() && self.doorbells.lock().is_empty()
    }

    fn find(&self, id: u32) -> Option<Arc<Channel>> {
        self.channels.read().iter().find(|c| c.hw.id == id).cloned()
    }

    pub(crate) fn ring(&self, id: u32) {
        if let Some(channel) = self.find(id).filter(|c| c.runnable()) {
            channel.signals.rung.store(true, Ordering::Release);
        }
    }

    fn group(&self, tsg: &HwTsg) -> Vec<Arc<Channel>> {
        self.channels.read().iter().filter(|c| std::ptr::eq(&*c.hw.tsg, tsg)).cloned().collect()
    }

    /// Stops everything that runs for the group, and returns when it has stopped.
    pub(crate) fn reset(&self, tsg: &HwTsg) {
        let channels = self.group(tsg);
        channels.iter().for_each(|c| c.signals.stop.request(StopReason::Reset));
        channels.iter().for_each(|c| drop(c.pbdma.lock()));
    }

    /// Waits until nothing of the group executes, for as long as nvgpu looks at the engine. A grid that does not end keeps the engine
    /// from the kernel, as from another group: the group is stopped when that has lasted too long.
    pub(crate) fn preempt(&self, tsg: &HwTsg) -> bool {
        let until = Instant::now() + PREEMPTION;
        let idle = |channel: &Arc<Channel>| {
            channel.pbdma.try_lock_for(until.saturating_duration_since(Instant::now())).is_some()
        };
        let all = self.group(tsg).iter().all(idle);
        if !all {
            let channel = tsg.members.lock().first().map_or(0, |member| member.id);
            self.preemption_failed(tsg, channel);
            self.engine.contend(tsg);
        }
        all
    }

    /// The kernel gives up.
    fn preemption_failed(&self, tsg: &HwTsg, channel: u32) {
        let text = format!("preempt timed out for tsgid: {}, ctxsw timeout will trigger recovery if needed", tsg.id);
        self.trace.log(channel, tsg.id, text);
    }

    /// Takes the tokens from the doorbell pages. A store may have overwritten an earlier token that was not taken yet.
    /// Therefore any token that names a channel makes every channel read its GP_PUT. The token of a channel that was
    /// removed has this effect, too: a thread may ring for a channel that another thread is closing, and its store may
    /// overwrite the token of a third channel.
    pub(crate) fn poll_doorbells(&self) -> bool {
        let now = self.ptimer.now();
        let mut rang = false;
        for bell in self.doorbells.lock().iter() {
            let Some(token) = bell.poll(now) else { continue };
            let named = self.channels.read().iter().any(|c| c.hw.token() == token);
            if !named {
                tracing::warn!(target: "tegra_sim::gpu", "doorbell with token {token:#x}, which names no channel");
            }
            rang |= named || self.retired.lock().contains(&token);
        }
        if rang {
            for channel in self.channels.read().iter().filter(|c| c.runnable()) {
                channel.signals.rung.store(true, Ordering::Release);
                if let Some(queues) = self.queues() {
                    queues.rung(&channel.hw, Words(&channel.hw.userd).load_u32(offset_of!(Userd, GPPut)));
                }
            }
        }
        rang
    }

    /// Gives one turn to every channel that no other thread is running. The result is true if anything happened.
    pub(crate) fn pass(&self) -> bool {
        let mut progress = false;
        let mut at = 0;
        // The list may change between turns. A channel that is missed or seen twice gets its turn next time.
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
            let start = gpu.switches.logged().then(host_ns);
            let Core { config, trace, engine, ptimer, .. } = self;
            let turn = Turn { hw: &channel.hw, signals: &channel.signals, config, trace, engine, ptimer };
            // A bug of the simulator ends the group that met it. The thread continues, because every channel needs it.
            let result = catch_unwind(AssertUnwindSafe(|| pbdma.turn(&turn)));
            match result.unwrap_or_else(|panic| Err(fault::machine_bug(&channel.hw, &*panic))) {
                Ok(progress) => {
                    if progress {
                        gpu.residency.used_by(channel.hw.tsg.id);
                    }
                    // The host reads rings all the time. A group counts as having the engine only when it makes
                    // progress.
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
        if channel.signals.stop.timed_out() && !channel.hw.dead() {
            let what = format!("its work {}", channel.signals.stop.sentence());
            self.recover(channel, fault::switch_timeout(&channel.hw, what));
            return true;
        }
        progress
    }

    /// Ends a channel's group. Another thread may be running other channels of the group: they stop at their next
    /// method.
    fn recover(&self, channel: &Channel, fault: Fault) {
        let tsg = &channel.hw.tsg;
        self.trace.fault(channel.hw.id, tsg.id, &fault);
        // r35 looks whether it knows the code, and forgot that of the copy engine.
        let told = !self.config.r35 || fault.code != NotifierCode::CopyEngine;
        tsg.recover(fault, told);
    }

    /// Lets the work of a channel fail. The result is false if there is no such channel.
    pub(crate) fn fail(&self, id: u32, failure: Failure) -> bool {
        let channel = self.channels.read().iter().find(|c| c.hw.id == id && !c.hw.dead()).cloned();
        let Some(channel) = channel else { return false };
        match failure.of(&channel.hw, &self.config) {
            Some((fault, recovered)) if recovered || self.config.r35 => self.recover(&channel, fault),
            Some((fault, _)) => self.trace.log(id, channel.hw.tsg.id, fault.text),
            None if failure == Failure::Preemption => self.preemption_failed(&channel.hw.tsg, id),
            None => {}
        }
        true
    }

    pub(crate) fn step(&self) -> bool {
        let rang = self.poll_doorbells();
        self.pass() || rang
    }

    /// Wakes threads that rest, because there is something that they may wait for.
    pub(crate) fn tell(&self) {
        self.news.tell();
    }

    /// A number that changes when the GPU has worked.
    pub(crate) fn progress(&self) -> u64 {
        self.news.count()
    }

    /// Makes the worker look at the doorbells, and waits until more than `seen` has happened, at most for `limit`.
    pub(crate) fn rest(&self, seen: u64, limit: Duration) {
        if self.asked.fetch_add(1, Ordering::Relaxed).is_multiple_of(ASKS) {
            self.alone.store(has_one_processor(), Ordering::Relaxed);
        }
        self.wake();
        // The worker may be done sooner than this thread would fall asleep, if they do not share a processor.
        let (begun, alone) = (Instant::now(), self.is_alone());
        while !alone && begun.elapsed() < SHORT {
            if self.progress() != seen {
                return;
            }
            (0..LOOKS).for_each(|_| std::hint::spin_loop());
        }
        self.news.rest(seen, limit);
    }

    /// Whether threads that rest and the GPU's threads have one processor together.
    pub(crate) fn is_alone(&self) -> bool {
        self.alone.load(Ordering::Relaxed)
    }

    /// How often a thread has rested until something happens.
    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    /// Whether a channel has work that it cannot continue now.
    pub(crate) fn waits(&self) -> bool {
        self.channels.read().iter().any(|c| c.signals.busy.load(Ordering::Acquire) && c.runnable())
    }

    /// Asks sleeping workers to look for work.
    pub(crate) fn wake(&self) {
        self.sleep.wake();
        self.beside.wake();
    }

    /// Sleeps for at most `limit`, or until another thread wakes the worker.
    pub(crate) fn nap(&self, limit: Duration) {
        self.sleep.nap(limit);
    }

    /// The same for the worker that looks for work while the other one executes a long grid.
    pub(crate) fn nap_beside(&self, limit: Duration) {
        self.beside.nap(limit);
    }

    /// Stops everything for ever.
    pub(crate) fn shut_down(&self) {
        for channel in self.channels.write().drain(..) {
            channel.signals.stop.request(StopReason::Removed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;
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
            tsg: Arc::new(HwTsg::new(0, 1, 1, Arc::default())),
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

    /// Whether thread `tid` of this process sleeps. A thread that spins or yields while it waits never does.
    fn sleeps(tid: i32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).expect("a live thread");
        stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('S'))
    }

    /// The removal of a channel sleeps until every thread that still holds the channel has dropped it.
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
            assert!(user.signals.stop.requested(), "whoever runs it is asked to stop");
            drop(user);
            assert_eq!(removal.join().expect("no panic"), 1, "nothing of the channel is left in the GPU");
        });
    }
}
