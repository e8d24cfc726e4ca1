//! A channel: what belongs to it, and how it begins and ends.

use super::fence::Fences;
use super::sync::ChannelSyncpoint;
use crate::board::Board;
use crate::budget::{Resource, Share};
use crate::dispatch::{Call, Reply};
use crate::nvmap::Buffer;
use crate::rule::Because;
use crate::space::{AddressSpace, KernelMapping};
use crate::tsg::{Leaving, Tsg};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use tegra_hw::{GpuPort, HwChannel, Vitals};
use tegrarm_kmd::Errno;
use tegrarm_lock::Mutex;

/// A channel.
#[derive(Debug)]
pub(crate) struct Channel {
    pub vitals: Arc<Vitals>,
    pub state: Mutex<ChannelState>,
    /// Where it takes its turns.
    pub runlist: u32,
    closed: AtomicBool,
    this: Weak<Channel>,
    _share: Option<Share>,
}

/// The state that ioctls change. Its lock serialises the ioctls of one channel, as nvgpu's mutex does.
#[derive(Debug)]
pub(crate) struct ChannelState {
    pub space: Option<Arc<AddressSpace>>,
    pub tsg: Option<Arc<Tsg>>,
    /// The VEID that BIND_CHANNEL_EX named last, even if the call failed.
    pub veid: u32,
    /// Whether the channel had an address space when it was bound to its group.
    pub bound_with_space: bool,
    pub runqueue: u32,
    /// The class that ALLOC_OBJ_CTX set last. 0 means none.
    pub class: u32,
    pub setup: Option<Setup>,
    pub watchdog: Watchdog,
    pub(super) syncpoint: Option<ChannelSyncpoint>,
    /// Keeps the dmabuf of the error notifier.
    pub(super) notifier: Option<Arc<Buffer>>,
    pub(super) enabled: bool,
}

impl Channel {
    /// A fresh channel: watched, unserviceable. `ENOMEM` when all ids are taken.
    pub(super) fn create(call: &Call<'_>, runlist: u32) -> Result<Arc<Channel>, Errno> {
        let board = call.board;
        let share = board.take(Resource::Channels, call.process, 1)?;
        let id = board.channel_ids.take().ok_or_else(|| Errno::ENOMEM.because("all channels are in use"))?;
        let state = ChannelState {
            space: None,
            tsg: None,
            veid: 0,
            bound_with_space: false,
            runqueue: 0,
            class: 0,
            setup: None,
            watchdog: Watchdog::default(),
            syncpoint: None,
            notifier: None,
            enabled: false,
        };
        Ok(Arc::new_cyclic(|this| Channel {
            vitals: Arc::new(Vitals::new(id)),
            state: Mutex::new(state),
            runlist,
            closed: AtomicBool::new(false),
            this: this.clone(),
            _share: share,
        }))
    }

    pub(crate) fn id(&self) -> u32 {
        self.vitals.id
    }

    pub(crate) fn weak(&self) -> Weak<Channel> {
        self.this.clone()
    }

    /// Checks that the channel may be used. The error is `ETIMEDOUT` after its teardown has begun.
    pub(crate) fn referencable(&self) -> Result<(), Errno> {
        if self.closed.load(Ordering::Acquire) {
            Err(Errno::ETIMEDOUT.because("the channel is being closed"))
        } else {
            Ok(())
        }
    }

    /// Whether the channel is unserviceable.
    pub(super) fn dead(&self) -> bool {
        self.vitals.unserviceable.load(Ordering::Acquire)
    }

    /// A.BIND_CHANNEL: binds the channel to an address space. This is possible only once.
    pub(crate) fn bind_space(&self, space: &Arc<AddressSpace>) -> Reply {
        let mut state = self.state.lock();
        if state.space.is_some() {
            return Err(Errno::EINVAL.because("the channel is bound to an address space already").into());
        }
        state.space = Some(space.clone());
        Ok(())
    }

    /// Whether SETUP_BIND made the channel deterministic. A deterministic channel keeps the GPU powered.
    pub(crate) fn deterministic(&self) -> bool {
        self.state.lock().setup.as_ref().is_some_and(|setup| setup.deterministic)
    }

    /// SET_DETERMINISTIC_OPTS.
    pub(crate) fn allow_railgating(&self, allow: bool) {
        if let Some(setup) = self.state.lock().setup.as_mut() {
            setup.railgating_allowed = allow;
        }
    }

    /// Takes the channel off the runlist and out of its group.
    pub(crate) fn leave(&self, gpu: &dyn GpuPort, state: &mut ChannelState, why: Leaving) {
        self.vitals.unserviceable.store(true, Ordering::Release);
        if let Some(setup) = state.setup.as_mut() {
            setup.leave_runlist(gpu);
        }
        if let Some(tsg) = state.tsg.take() {
            tsg.remove(&self.vitals, state.veid, why);
        }
    }

    /// Ends the channel after its last descriptor was closed: it leaves the runlist and its group, and then everything
    /// that it held is dropped.
    pub(super) fn end(&self, board: &Board) {
        if self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        board.hw.interrupts.raise();
        let mut state = self.state.lock();
        let serviceable = !self.dead();
        self.leave(&*board.gpu, &mut state, Leaving::Closed);
        // A thread that waits for the channel's syncpoint must not wait any longer. The driver adds to the counter when
        // the channel leaves its group, and once more if the channel had no error before.
        if let Some(syncpoint) = self.vitals.syncpoint.lock().take().filter(|_| serviceable) {
            syncpoint.set_safe_state();
        }
        *self.vitals.notifier.lock() = None;
        let held = (state.setup.take(), state.syncpoint.take(), state.notifier.take(), state.space.take());
        drop(state);
        drop(held);
        // The fences of the channel's syncpoint have passed.
        board.hw.interrupts.raise();
        board.channel_ids.give_back(self.id());
        board.doorbells.channel_closed();
    }
}

/// The state that SETUP_BIND makes.
#[derive(Debug)]
pub(crate) struct Setup {
    pub hw: Arc<HwChannel>,
    pub usermode: bool,
    pub deterministic: bool,
    pub railgating_allowed: bool,
    pub(super) on_runlist: bool,
    pub(super) _ring: KernelMapping,
    /// In kernel mode: everything from which fences are made.
    pub fences: Option<Fences>,
    /// In usermode: the dmabufs of the ring and USERD, which stay referenced until the channel is freed.
    pub(super) _buffers: Vec<Arc<Buffer>>,
}

impl Setup {
    /// Takes the channel off the runlist. The GPU uses nothing of the channel afterwards.
    fn leave_runlist(&mut self, gpu: &dyn GpuPort) {
        if std::mem::take(&mut self.on_runlist) {
            gpu.remove_channel(self.hw.id);
        }
    }
}

/// Turns the watchdog of kernel-mode jobs on or off. Usermode channels are never watched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watchdog {
    pub enabled: bool,
    pub timeout_ms: u32,
}

impl Default for Watchdog {
    fn default() -> Self {
        Watchdog { enabled: true, timeout_ms: 5000 }
    }
}

impl ChannelState {
    /// Tells the GPU to watch the jobs of a kernel-mode channel.
    pub(super) fn watch(&self, channel: &Channel) {
        let kernel_mode = self.setup.as_ref().is_some_and(|setup| !setup.usermode);
        let limit = if kernel_mode && self.watchdog.enabled { self.watchdog.timeout_ms } else { 0 };
        channel.vitals.watchdog_ms.store(limit, Ordering::Relaxed);
    }
}
