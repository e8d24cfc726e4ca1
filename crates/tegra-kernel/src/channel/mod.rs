//! Channels (docs/hardware/nvgpu-channel.md#channel).

mod context;
mod control;
mod fence;
mod host1x;
mod notifier;
mod setup;
mod submit;
mod sync;
mod sync_file;
mod wait;

use super::Kernel;
use super::dispatch::{Call, CopyBack, Reply, Row, Table, rows};
use super::files::Object;
use super::ids::Stack;
use super::nvmap::Buffer;
use super::space::AddressSpace;
use super::tsg::{self, Tsg};
use crate::budget::{Resource, Share};
use crate::release::PerRelease;
use crate::rule::Because;
pub(super) use host1x::{Host1x, ROWS as HOST1X_ROWS};
use parking_lot::Mutex;
use setup::Setup;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use sync::ChannelSyncpoint;
pub(super) use sync_file::{ROWS as SYNC_FILE_ROWS, SyncFile};
use tegra_hw::Vitals;
use tegrarm_abi::nvgpu::channel::*;
use tegrarm_abi::nvgpu::r35::*;
use tegrarm_abi::nvgpu::r39::*;
use tegrarm_kmd::Errno;

/// The largest number of entries of a ring, as the characteristics tell it.
pub(super) const MAX_GPFIFO_ENTRIES: u32 = 1 << 28;
/// The number of channel ids on L4T.
pub(super) const CHANNELS: u32 = 512;

pub(super) static TABLE: Table<Channel> = Table {
    magic: b'H',
    last: PerRelease::same(NVGPU_IOCTL_CHANNEL_LAST),
    max_arg: PerRelease {
        r35: NVGPU_IOCTL_CHANNEL_MAX_ARG_SIZE_R35 as usize,
        r36: NVGPU_IOCTL_CHANNEL_MAX_ARG_SIZE as usize,
        r39: NVGPU_IOCTL_CHANNEL_MAX_ARG_SIZE as usize,
    },
    copy_back: CopyBack::Count,
    rows: rows! {
        ALL NVGPU_IOCTL_CHANNEL_SET_NVMAP_FD => control::set_nvmap_fd;
        ALL NVGPU_IOCTL_CHANNEL_SET_TIMEOUT => control::set_timeout;
        ALL NVGPU_IOCTL_CHANNEL_SET_TIMEOUT_EX => control::set_timeout_ex;
        ALL NVGPU_IOCTL_CHANNEL_GET_TIMEDOUT => control::get_timedout;
        ALL NVGPU_IOCTL_CHANNEL_WAIT => wait::wait;
        ALL NVGPU_IOCTL_CHANNEL_SUBMIT_GPFIFO => submit::submit_gpfifo;
        ALL NVGPU_IOCTL_CHANNEL_ALLOC_OBJ_CTX => context::alloc_obj_ctx;
        ALL NVGPU_IOCTL_CHANNEL_ZCULL_BIND => context::zcull_bind;
        ALL NVGPU_IOCTL_CHANNEL_SET_ERROR_NOTIFIER => notifier::set_error_notifier;
        ALL NVGPU_IOCTL_CHANNEL_OPEN => open_another;
        ALL NVGPU_IOCTL_CHANNEL_ENABLE => control::enable;
        ALL NVGPU_IOCTL_CHANNEL_DISABLE => control::disable;
        ALL NVGPU_IOCTL_CHANNEL_PREEMPT => control::preempt;
        ALL NVGPU_IOCTL_CHANNEL_FORCE_RESET => control::force_reset;
        ALL NVGPU_IOCTL_CHANNEL_WDT => control::wdt;
        ALL NVGPU_IOCTL_CHANNEL_SET_PREEMPTION_MODE => context::set_preemption_mode;
        UNTIL_R36 NVGPU_IOCTL_CHANNEL_ALLOC_GPFIFO_EX => setup::alloc_gpfifo_ex;
        R39 NVGPU_IOCTL_CHANNEL_ALLOC_GPFIFO_EX_R39 => setup::alloc_gpfifo_ex_r39;
        ALL NVGPU_IOCTL_CHANNEL_SET_BOOSTED_CTX => control::set_boosted_ctx;
        ALL NVGPU_IOCTL_CHANNEL_GET_USER_SYNCPOINT => sync::get_user_syncpoint;
        ALL NVGPU_IOCTL_CHANNEL_RESCHEDULE_RUNLIST => control::reschedule_runlist;
        R39 NVGPU_IOCTL_CHANNEL_SETUP_BIND => setup::setup_bind_r39;
        R36 NVGPU_IOCTL_CHANNEL_SETUP_BIND => setup::setup_bind;
        R35 NVGPU_IOCTL_CHANNEL_SETUP_BIND_R35 => setup::setup_bind_r35;
    },
};

/// A channel.
#[derive(Debug)]
pub(super) struct Channel {
    pub vitals: Arc<Vitals>,
    pub state: Mutex<ChannelState>,
    /// Where it takes its turns.
    pub runlist: u32,
    closed: AtomicBool,
    this: Weak<Channel>,
    ids: Arc<Stack>,
    _share: Option<Share>,
}

/// The state that ioctls change. Its lock serialises the ioctls of one channel, as nvgpu's mutex does.
#[derive(Debug)]
pub(super) struct ChannelState {
    pub space: Option<Arc<AddressSpace>>,
    pub tsg: Option<Arc<Tsg>>,
    pub veid: u32,
    pub runqueue: u32,
    /// The class that ALLOC_OBJ_CTX set last. 0 means none.
    pub class: u32,
    pub setup: Option<Setup>,
    pub watchdog: control::Watchdog,
    syncpoint: Option<ChannelSyncpoint>,
    /// Keeps the dmabuf of the error notifier.
    notifier: Option<Arc<Buffer>>,
    enabled: bool,
}

impl Channel {
    /// A fresh channel: watched, unserviceable. `ENOMEM` when all ids are taken.
    fn create(call: &Call<'_>, runlist: u32) -> Result<Arc<Channel>, Errno> {
        let kernel = call.kernel;
        let share = kernel.take(Resource::Channels, call.process, 1)?;
        let id = kernel.channel_ids.take().ok_or_else(|| Errno::ENOMEM.because("all channels are in use"))?;
        let state = ChannelState {
            space: None,
            tsg: None,
            veid: 0,
            runqueue: 0,
            class: 0,
            setup: None,
            watchdog: control::Watchdog::default(),
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
            ids: kernel.channel_ids.clone(),
            _share: share,
        }))
    }

    /// A new channel in the caller's descriptor table.
    pub(super) fn open(call: &Call<'_>, runlist: u32) -> Result<RawFd, Errno> {
        call.process.install(Channel::open_file(call, runlist)?)
    }

    /// A new channel's file.
    pub(super) fn open_file(call: &Call<'_>, runlist: u32) -> Result<std::os::fd::OwnedFd, Errno> {
        let kernel = call.kernel;
        let channel = Channel::create(call, runlist)?;
        kernel.doorbells.channel_opened();
        kernel.anonymous("", Object::Channel(channel.clone())).inspect_err(|_| channel.close(kernel))
    }

    pub(super) fn id(&self) -> u32 {
        self.vitals.id
    }

    pub(super) fn veid(&self) -> u32 {
        self.state.lock().veid
    }

    pub(super) fn weak(&self) -> Weak<Channel> {
        self.this.clone()
    }

    /// Checks that the channel may be used. The error is `ETIMEDOUT` after its teardown has begun.
    pub(super) fn referencable(&self) -> Result<(), Errno> {
        if self.closed.load(Ordering::Acquire) {
            Err(Errno::ETIMEDOUT.because("the channel is being closed"))
        } else {
            Ok(())
        }
    }

    /// Whether the channel is unserviceable.
    fn dead(&self) -> bool {
        self.vitals.unserviceable.load(Ordering::Acquire)
    }

    /// A.BIND_CHANNEL: binds the channel to an address space. This is possible only once.
    pub(super) fn bind_space(&self, space: &Arc<AddressSpace>) -> Reply {
        let mut state = self.state.lock();
        if state.space.is_some() {
            return Err(Errno::EINVAL.because("the channel is bound to an address space already").into());
        }
        state.space = Some(space.clone());
        Ok(())
    }

    /// Whether SETUP_BIND made the channel deterministic. A deterministic channel keeps the GPU powered.
    pub(super) fn deterministic(&self) -> bool {
        self.state.lock().setup.as_ref().is_some_and(|setup| setup.deterministic)
    }

    /// SET_DETERMINISTIC_OPTS.
    pub(super) fn allow_railgating(&self, allow: bool) {
        if let Some(setup) = self.state.lock().setup.as_mut() {
            setup.railgating_allowed = allow;
        }
    }

    /// Ends the channel after its last descriptor was closed: it leaves the runlist and its group, and then everything
    /// that it held is dropped.
    pub(super) fn close(&self, kernel: &Arc<Kernel>) {
        if self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        kernel.hw.interrupts.raise();
        let mut state = self.state.lock();
        tsg::leave(kernel, self, &mut state);
        // A thread that waits for the channel's syncpoint must not wait any longer, even if the channel had no error.
        if let Some(syncpoint) = self.vitals.syncpoint.lock().take() {
            syncpoint.set_safe_state();
        }
        *self.vitals.notifier.lock() = None;
        let held = (state.setup.take(), state.syncpoint.take(), state.notifier.take(), state.space.take());
        drop(state);
        drop(held);
        // The fences of the channel's syncpoint have passed.
        kernel.hw.interrupts.raise();
        self.ids.give_back(self.id());
        kernel.doorbells.channel_closed();
    }
}

/// H.OPEN: opens another channel on the graphics runlist.
fn open_another(call: &Call<'_>, _: &Arc<Channel>, args: &mut nvgpu_channel_open_args) -> Reply {
    args.channel_fd = Channel::open(call, 0)?;
    Ok(())
}
