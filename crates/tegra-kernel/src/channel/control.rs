//! Small channel controls: timeouts, enable, preempt, reset, watchdog, notifier, syncpoint (docs/hardware/nvgpu-channel.md#ioctls,
//! docs/hardware/nvgpu-channel.md#watchdog).

use super::state::Channel;
use super::sync::ChannelSyncpoint;
use crate::dispatch::{Call, Reply};
use crate::rule::Because;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tegra_hw::{Fault, NotifierCode, Place};
use tegrarm_abi::nvgpu::channel::*;
use tegrarm_kmd::Errno;

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
    call.board.gpu.ring(channel.id());
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
    match tsg {
        // r36 forgets the error of the preemption, because it enables the group afterwards.
        Some(tsg) if !call.board.gpu.preempt(&tsg.hw) && call.is_r35() => {
            return Err(Errno::EBUSY.because("the group's work did not leave the engine in time; it goes on").into());
        }
        Some(_) => {}
        // r35 preempts the channel alone, which does not run.
        None if call.is_r35() => {}
        None => return Err(Errno::EINVAL.because("the channel is in no TSG (TSG BIND_CHANNEL)").into()),
    }
    Ok(())
}

/// Kills the whole group. If the channel has no group, nothing is killed and the call succeeds.
pub(super) fn force_reset(call: &Call<'_>, channel: &Arc<Channel>, _: &mut ()) -> Reply {
    let Some(tsg) = channel.state.lock().tsg.clone() else { return Ok(()) };
    tsg.hw.recover(
        Fault {
            code: NotifierCode::ResetChannel,
            mmu: None,
            sms: Vec::new(),
            text: format!("channel {} of TSG {} was reset by its owner", channel.id(), tsg.hw.id),
            insight: None,
        },
        true,
    );
    call.board.gpu.reset(&tsg.hw);
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

/// Refuses boosted contexts, which ga10b and gv11b do not have.
pub(super) fn set_boosted_ctx(_: &Call<'_>, _: &Arc<Channel>, _: &mut nvgpu_boosted_ctx_args) -> Reply {
    Err(Errno::EINVAL.because("this GPU has no boosted contexts").into())
}

pub(super) fn reschedule_runlist(call: &Call<'_>, _: &Arc<Channel>, _: &mut nvgpu_reschedule_runlist_args) -> Reply {
    Err(if call.process.may_reschedule() { Errno::ENOSYS } else { Errno::EPERM }.into())
}

/// SET_ERROR_NOTIFIER (docs/hardware/nvgpu-channel.md#set-error-notifier).
pub(super) fn set_error_notifier(
    call: &Call<'_>,
    channel: &Arc<Channel>,
    args: &mut nvgpu_set_error_notifier,
) -> Reply {
    const SIZE: usize = size_of::<nvgpu_notification>();
    if args.mem == 0 {
        return Err(Errno::EINVAL.because("mem is the descriptor of a dmabuf, and not 0").into());
    }
    let mut state = channel.state.lock();
    // The old notifier is dropped first, whether or not the call succeeds.
    *channel.vitals.notifier.lock() = None;
    state.notifier = None;
    let dmabuf = call.dmabuf(args.mem as i32).map_err(|_| Errno::EINVAL)?;
    let end = args.offset.checked_add(SIZE as u64);
    if end.is_none_or(|end| end > dmabuf.buffer.size) {
        return Err(Errno::EINVAL.because("the notifier's 16 bytes reach beyond the end of the dmabuf").into());
    }
    let backing = dmabuf.kernel_view()?;
    let offset = args.offset as usize;
    if !backing.write(offset, &[0; SIZE]) {
        return Err(Errno::EINVAL.into());
    }
    *channel.vitals.notifier.lock() = Some(Place { backing, offset });
    state.notifier = Some(dmabuf.buffer);
    Ok(())
}

/// Makes the syncpoint on first use. Later calls return the same syncpoint. `max` is the counter's value at the call.
pub(super) fn get_user_syncpoint(
    call: &Call<'_>,
    channel: &Arc<Channel>,
    args: &mut nvgpu_get_user_syncpoint_args,
) -> Reply {
    let mut state = channel.state.lock();
    if state.syncpoint.is_none() {
        let Some(space) = state.space.clone() else {
            tracing::error!("GET_USER_SYNCPOINT before AS.BIND_CHANNEL: a board's kernel dereferences NULL here");
            return Err(Errno::EFAULT.into());
        };
        let fresh = ChannelSyncpoint::new(&call.board.syncpoints, &space)?;
        *channel.vitals.syncpoint.lock() = Some(fresh.point().clone());
        state.syncpoint = Some(fresh);
    }
    let Some(syncpoint) = &state.syncpoint else { return Err(Errno::ENOMEM.into()) };
    args.gpu_va = syncpoint.va();
    args.syncpoint_id = syncpoint.point().id;
    args.syncpoint_max = syncpoint.point().value();
    Ok(())
}
