//! Small channel controls: timeouts, enable, preempt, reset, watchdog (docs/hardware/nvgpu-channel.md#ioctls,
//! docs/hardware/nvgpu-channel.md#watchdog).

use super::{Channel, ChannelState};
use crate::dispatch::{Call, Reply};
use crate::rule::Because;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tegra_hw::{Fault, NotifierCode};
use tegrarm_abi::nvgpu::channel::*;
use tegrarm_kmd::Errno;

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

/// This does nothing on a board either.
pub(super) fn set_nvmap_fd(_: &Call<'_>, _: &Arc<Channel>, _: &mut nvgpu_set_nvmap_fd_args) -> Reply {
    Ok(())
}

pub(super) fn set_timeout(_: &Call<'_>, channel: &Arc<Channel>, args: &mut nvgpu_set_timeout_args) -> Reply {
    channel.vitals.ctxsw_timeout_ms.store(args.timeout, Ordering::Relaxed);
    Ok(())
}

/// Sets the timeout. The flag only switches off the driver's dump.
pub(super) fn set_timeout_ex(_: &Call<'_>, channel: &Arc<Channel>, args: &mut nvgpu_set_timeout_ex_args) -> Reply {
    channel.vitals.ctxsw_timeout_ms.store(args.timeout, Ordering::Relaxed);
    Ok(())
}

pub(super) fn get_timedout(_: &Call<'_>, channel: &Arc<Channel>, args: &mut nvgpu_get_param_args) -> Reply {
    args.value = u32::from(channel.dead());
    Ok(())
}

pub(super) fn enable(call: &Call<'_>, channel: &Arc<Channel>, _: &mut ()) -> Reply {
    set_enabled(channel, true);
    call.kernel.gpu.ring(channel.id());
    Ok(())
}

pub(super) fn disable(_: &Call<'_>, channel: &Arc<Channel>, _: &mut ()) -> Reply {
    set_enabled(channel, false);
    Ok(())
}

fn set_enabled(channel: &Channel, enabled: bool) {
    let mut state = channel.state.lock();
    state.enabled = enabled;
    if let Some(setup) = &state.setup {
        setup.hw.enabled.store(enabled, Ordering::Release);
    }
}

pub(super) fn preempt(call: &Call<'_>, channel: &Arc<Channel>, _: &mut ()) -> Reply {
    let tsg = channel.state.lock().tsg.clone();
    let tsg = tsg.ok_or_else(|| Errno::EINVAL.because("the channel is in no TSG (TSG BIND_CHANNEL)"))?;
    call.kernel.gpu.preempt(&tsg.hw);
    Ok(())
}

/// Kills the whole group. If the channel has no group, nothing is killed and the call succeeds.
pub(super) fn force_reset(call: &Call<'_>, channel: &Arc<Channel>, _: &mut ()) -> Reply {
    let Some(tsg) = channel.state.lock().tsg.clone() else { return Ok(()) };
    tsg.hw.recover(Fault {
        code: NotifierCode::ResetChannel,
        mmu: None,
        sms: Vec::new(),
        text: format!("channel {} of TSG {} was reset by its owner", channel.id(), tsg.hw.id),
        insight: None,
    });
    call.kernel.gpu.reset(&tsg.hw);
    Ok(())
}

pub(super) fn wdt(_: &Call<'_>, channel: &Arc<Channel>, args: &mut nvgpu_channel_wdt_args) -> Reply {
    let mut state = channel.state.lock();
    let deterministic = state.setup.as_ref().is_some_and(|setup| setup.deterministic);
    let enabled = match args.wdt_status & (NVGPU_IOCTL_CHANNEL_DISABLE_WDT | NVGPU_IOCTL_CHANNEL_ENABLE_WDT) {
        NVGPU_IOCTL_CHANNEL_DISABLE_WDT => false,
        NVGPU_IOCTL_CHANNEL_ENABLE_WDT if !deterministic => true,
        _ => {
            let rule = "wdt_status is either DISABLE or ENABLE, and a deterministic channel's watchdog stays off";
            return Err(Errno::EINVAL.because(rule).into());
        }
    };
    state.watchdog.enabled = enabled;
    if args.wdt_status & NVGPU_IOCTL_CHANNEL_WDT_FLAG_SET_TIMEOUT != 0 {
        state.watchdog.timeout_ms = args.timeout_ms;
    }
    state.watch(channel);
    Ok(())
}

impl ChannelState {
    /// Tells the GPU to watch the jobs of a kernel-mode channel.
    pub(super) fn watch(&self, channel: &Channel) {
        let kernel_mode = self.setup.as_ref().is_some_and(|setup| !setup.usermode);
        let limit = if kernel_mode && self.watchdog.enabled { self.watchdog.timeout_ms } else { 0 };
        channel.vitals.watchdog_ms.store(limit, Ordering::Relaxed);
    }
}

/// Refuses boosted contexts, which ga10b and gv11b do not have.
pub(super) fn set_boosted_ctx(_: &Call<'_>, _: &Arc<Channel>, _: &mut nvgpu_boosted_ctx_args) -> Reply {
    Err(Errno::EINVAL.because("this GPU has no boosted contexts").into())
}

pub(super) fn reschedule_runlist(call: &Call<'_>, _: &Arc<Channel>, _: &mut nvgpu_reschedule_runlist_args) -> Reply {
    Err(if call.process.may_reschedule() { Errno::ENOSYS } else { Errno::EPERM }.into())
}
