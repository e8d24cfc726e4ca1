//! Channels (docs/hardware/nvgpu-channel.md#channel).

mod context;
mod control;
mod fence;
mod host1x;
mod setup;
mod state;
mod submit;
mod sync;
mod sync_file;
mod wait;

pub(super) use host1x::{Host1x, ROWS as HOST1X_ROWS};
pub(super) use state::Channel;
pub(super) use sync_file::ROWS as SYNC_FILE_ROWS;

use super::dispatch::{Call, CopyBack, Reply, Row, Table, rows};
use super::files::{Files, OpenFile};
use crate::release::PerRelease;
use crate::rule::Because;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::Arc;
use tegrarm_abi::nvgpu::channel::*;
use tegrarm_abi::nvgpu::r35::*;
use tegrarm_abi::nvgpu::r39::*;
use tegrarm_kmd::{Arg, Errno, Node};

/// The largest number of entries of a ring, as the characteristics tell it.
pub(super) const MAX_GPFIFO_ENTRIES: u32 = 1 << 28;

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
        ALL NVGPU_IOCTL_CHANNEL_SET_ERROR_NOTIFIER => control::set_error_notifier;
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
        ALL NVGPU_IOCTL_CHANNEL_GET_USER_SYNCPOINT => control::get_user_syncpoint;
        ALL NVGPU_IOCTL_CHANNEL_RESCHEDULE_RUNLIST => control::reschedule_runlist;
        R39 NVGPU_IOCTL_CHANNEL_SETUP_BIND => setup::setup_bind_r39;
        R36 NVGPU_IOCTL_CHANNEL_SETUP_BIND => setup::setup_bind;
        R35 NVGPU_IOCTL_CHANNEL_SETUP_BIND_R35 => setup::setup_bind_r35;
    },
};

impl Channel {
    /// A new channel in the caller's descriptor table.
    pub(super) fn open(call: &Call<'_>, runlist: u32) -> Result<RawFd, Errno> {
        call.process.install(Channel::open_file(call, runlist)?)
    }

    /// A new channel's file.
    pub(super) fn open_file(call: &Call<'_>, runlist: u32) -> Result<OwnedFd, Errno> {
        let channel = Channel::create(call, runlist)?;
        call.board.doorbells.channel_opened();
        call.files.anonymous("", channel.clone()).inspect_err(|_| channel.end(call.board))
    }
}

impl OpenFile for Channel {
    fn node(&self) -> Option<Node> {
        Some(Node::Channel)
    }

    fn ioctl(self: Arc<Self>, call: &Call<'_>, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        TABLE.run_if(call, &self, request, arg, || self.referencable())
    }

    fn close(&self, files: &Files) {
        self.end(&files.board);
    }
}

impl Call<'_> {
    /// The caller's channel behind `fd`. Every error is `EINVAL`.
    pub(super) fn channel(&self, fd: RawFd) -> Reply<Arc<Channel>> {
        let other = || Errno::EINVAL.because(format!("descriptor {fd} is not a channel"));
        Ok(self.file(fd).ok_or_else(other)?)
    }
}

/// H.OPEN: opens another channel on the graphics runlist.
fn open_another(call: &Call<'_>, _: &Arc<Channel>, args: &mut nvgpu_channel_open_args) -> Reply {
    args.channel_fd = Channel::open(call, 0)?;
    Ok(())
}
