//! The graphics context of a debugger's channel: suspending it, its registers and its modes.

use super::session::Debugger;
use crate::board::Board;
use crate::channel::Channel;
use crate::dispatch::{Call, Reply};
use crate::registers;
use crate::tsg::Tsg;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tegrarm_abi::nvgpu::debugger::*;
use tegrarm_kmd::Errno;

/// The bit that REG_OPS sets in `gr_ctx_resident` when it reached the registers themselves and not their saved copies.
const DIRECT: u32 = 1 << 4;

/// Whether the group's context is the one in the engine.
fn is_resident(board: &Board, tsg: &Tsg) -> bool {
    board.hw.residency.group() == Some(tsg.hw.id)
}

/// Performs the register operations of one batch, all or none. Returns what the driver says about residency.
pub(super) fn exec(call: &Call<'_>, tsg: Option<&Arc<Tsg>>, ops: &mut [nvgpu_dbg_gpu_reg_op]) -> Reply<u32> {
    for op in ops.iter_mut() {
        op.status = registers::check(op).0;
        if op.status != 0 || registers::of_context(op) && tsg.is_none() {
            tracing::warn!("a register operation on {:#x} is refused (status {:#x})", op.offset, op.status);
            return Err(Errno::EINVAL.into());
        }
    }
    let direct = match tsg.filter(|_| ops.iter().any(registers::of_context)) {
        None => 0,
        // Before a context exists, nobody knows the contents of one.
        Some(tsg) if !tsg.state.lock().has_context => return Err(Errno::ENODEV.into()),
        // No register that this kernel has is saved with a context.
        Some(tsg) if !is_resident(call.board, tsg) => return Err(Errno::EINVAL.into()),
        Some(_) => DIRECT,
    };
    ops.iter_mut().for_each(|op| registers::read(call.board, op));
    Ok(direct)
}

/// Suspends a channel's context or resumes it. Returns whether it was the context in the engine. The SMs of that
/// context would be stopped if a debugger were attached to them. Any other context is taken off the runlist.
fn suspend(board: &Board, channel: &Channel, on: bool) -> bool {
    let tsg = channel.state.lock().tsg.clone();
    // The driver's function returns truth values, but here it returns an errno when it suspends.
    let Some(tsg) = tsg else { return on };
    if is_resident(board, &tsg) {
        return true;
    }
    tsg.hw.enabled.store(!on, Ordering::Release);
    if !on {
        tsg.channels().into_iter().for_each(|id| board.gpu.ring(id));
    }
    false
}

/// Stops or resumes the SMs. Actions that are not known do nothing.
pub(super) fn suspend_resume_sms(
    call: &Call<'_>,
    session: &Arc<Debugger>,
    args: &mut nvgpu_dbg_gpu_suspend_resume_all_sms_args,
) -> Reply {
    let channel = session.channel().ok_or(Errno::EINVAL)?;
    let grouped = channel.state.lock().tsg.is_some();
    match args.mode {
        NVGPU_DBG_GPU_SUSPEND_ALL_SMS if grouped => suspend(call.board, &channel, true),
        NVGPU_DBG_GPU_RESUME_ALL_SMS => suspend(call.board, &channel, false),
        _ => false,
    };
    Ok(())
}

/// Suspends or resumes the contexts of every channel of the session. Returns the descriptor of the last channel whose
/// context is in the engine. Actions that are not known do nothing.
pub(super) fn suspend_resume_contexts(
    call: &Call<'_>,
    session: &Arc<Debugger>,
    args: &mut nvgpu_dbg_gpu_suspend_resume_contexts_args,
) -> Reply {
    let bound: Vec<_> =
        session.state.lock().channels.iter().filter_map(|b| Some((b.channel.upgrade()?, b.fd))).collect();
    let all = |on| {
        bound.iter().fold(None, |last, (channel, fd)| if suspend(call.board, channel, on) { Some(*fd) } else { last })
    };
    let resident = match args.action {
        NVGPU_DBG_GPU_SUSPEND_ALL_CONTEXTS => all(true),
        NVGPU_DBG_GPU_RESUME_ALL_CONTEXTS => all(false),
        _ => None,
    };
    args.is_resident_context = u32::from(resident.is_some());
    if let Some(fd) = resident {
        args.resident_context_fd = fd;
    }
    Ok(())
}

/// Sets whether the SMs' counters are switched with the context. Without a channel it is set for all contexts, if the
/// chip can do that.
pub(super) fn smpc_mode(call: &Call<'_>, session: &Arc<Debugger>, _: &mut nvgpu_dbg_gpu_smpc_ctxsw_mode_args) -> Reply {
    if session.channel().is_none() {
        return if call.board.chip.counts_all_sms() { Ok(()) } else { Err(Errno::EINVAL.into()) };
    }
    Ok(session.tsg()?.check_context()?)
}

/// Sets whether the counters of the whole GPU are switched with the context. Power gating must be off.
pub(super) fn hwpm_mode(_: &Call<'_>, session: &Arc<Debugger>, args: &mut nvgpu_dbg_gpu_hwpm_ctxsw_mode_args) -> Reply {
    session.channel().ok_or(Errno::EINVAL)?;
    if session.profiling.ungated.load(Ordering::Relaxed) == 0 {
        return Err(Errno::ENOSYS.into());
    }
    session.tsg()?.check_context()?;
    match args.mode {
        NVGPU_DBG_GPU_HWPM_CTXSW_MODE_NO_CTXSW
        | NVGPU_DBG_GPU_HWPM_CTXSW_MODE_CTXSW
        | NVGPU_DBG_GPU_HWPM_CTXSW_MODE_STREAM_OUT_CTXSW => Ok(()),
        _ => Err(Errno::EINVAL.into()),
    }
}

/// Refuses this form of sampling, because chips after Maxwell have another one.
pub(super) fn pc_sampling(_: &Call<'_>, _: &Arc<Debugger>, _: &mut nvgpu_dbg_gpu_pc_sampling_args) -> Reply {
    Err(Errno::EINVAL.into())
}

/// Sets which exceptions do not end the group. This has an effect only for SMs to which a debugger is attached.
pub(super) fn exception_mask(
    _: &Call<'_>,
    session: &Arc<Debugger>,
    args: &mut nvgpu_dbg_gpu_set_sm_exception_type_mask_args,
) -> Reply {
    match args.exception_type_mask {
        NVGPU_DBG_GPU_IOCTL_SET_SM_EXCEPTION_TYPE_MASK_NONE | NVGPU_DBG_GPU_IOCTL_SET_SM_EXCEPTION_TYPE_MASK_FATAL => {
            Ok(session.tsg().map(drop)?)
        }
        _ => Err(Errno::EINVAL.into()),
    }
}

pub(super) fn mmu_debug_mode(
    _: &Call<'_>,
    session: &Arc<Debugger>,
    args: &mut nvgpu_dbg_gpu_set_ctx_mmu_debug_mode_args,
) -> Reply {
    if args.reserved != 0 {
        return Err(Errno::EINVAL.into());
    }
    session.tsg()?;
    if args.mode == NVGPU_DBG_GPU_CTX_MMU_DEBUG_MODE_ENABLED {
        tracing::error!("SET_CTX_MMU_DEBUG_MODE is not simulated: bad accesses keep faulting");
        return Err(Errno::ENOSYS.into());
    }
    Ok(())
}

/// Sets whether a warp's end waits for its errors. Here errors are always reported at once. Only ga10b has the setting.
pub(super) fn wait_for_errbar(
    call: &Call<'_>,
    session: &Arc<Debugger>,
    _: &mut nvgpu_sched_exit_wait_for_errbar_args,
) -> Reply {
    if !call.board.chip.is_ga10b() {
        return Err(Errno::ENOSYS.into());
    }
    if session.tsg()?.state.lock().has_context { Ok(()) } else { Err(Errno::ENODEV.into()) }
}

/// Refuses with `EINVAL`, as for a group without a context, because a context occupies no memory here.
pub(super) fn size(_: &Call<'_>, session: &Arc<Debugger>, _: &mut nvgpu_dbg_gpu_get_gr_context_size_args) -> Reply {
    no_image(session)
}

/// Refuses for the same reason.
pub(super) fn image(_: &Call<'_>, session: &Arc<Debugger>, _: &mut nvgpu_dbg_gpu_get_gr_context_args) -> Reply {
    no_image(session)
}

fn no_image(session: &Debugger) -> Reply {
    if session.tsg()?.state.lock().has_context {
        tracing::error!("GET_GR_CONTEXT is not simulated: a context's image holds registers nobody has published");
    }
    Err(Errno::EINVAL.into())
}
