//! The debugger node, and the old profiler node that shares its ioctls: sessions on channels (the driver's
//! `os/linux/ioctl_dbg.c`).
//!
//! SM debug mode cannot be switched on here, because SET_SM_DEBUG_MODE is refused. Everything that would stop, step or
//! report an SM therefore follows the path that the driver takes when no debugger is attached to the SMs: no event
//! comes, suspending the resident context does nothing, and exceptions end their group.

mod context;
mod memory;
mod objects;
mod session;

use super::dispatch::{Call, CopyBack, Reply, Row, Table, rows};
use super::files::{Files, OpenFile};
use super::profiler::Profiling;
use super::registers;
use crate::process::FileId;
use crate::release::PerRelease;
use session::{Bound, Debugger};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tegra_hw::SmError;
use tegrarm_abi::nvgpu::debugger::*;
use tegrarm_abi::nvgpu::r35::NVGPU_DBG_GPU_IOCTL_LAST_R35;
use tegrarm_abi::nvgpu::r39::NVGPU_DBG_GPU_IOCTL_LAST_R39;
use tegrarm_abi::nvgpu::tsg::nvgpu_timeslice_args;
use tegrarm_kmd::{Arg, Errno, Node};
use zerocopy::IntoBytes;

pub(super) static TABLE: Table<Debugger> = Table {
    magic: NVGPU_DBG_GPU_IOCTL_MAGIC as u8,
    last: PerRelease {
        r35: NVGPU_DBG_GPU_IOCTL_LAST_R35,
        r36: NVGPU_DBG_GPU_IOCTL_LAST,
        r39: NVGPU_DBG_GPU_IOCTL_LAST_R39,
    },
    max_arg: PerRelease::same(NVGPU_DBG_GPU_IOCTL_MAX_ARG_SIZE as usize),
    copy_back: CopyBack::Count,
    rows: rows! {
        ALL NVGPU_DBG_GPU_IOCTL_BIND_CHANNEL => bind_channel;
        ALL NVGPU_DBG_GPU_IOCTL_REG_OPS => reg_ops;
        ALL NVGPU_DBG_GPU_IOCTL_EVENTS_CTRL => events_ctrl;
        ALL NVGPU_DBG_GPU_IOCTL_POWERGATE => powergate;
        ALL NVGPU_DBG_GPU_IOCTL_SMPC_CTXSW_MODE => context::smpc_mode;
        ALL NVGPU_DBG_GPU_IOCTL_SUSPEND_RESUME_ALL_SMS => context::suspend_resume_sms;
        ALL NVGPU_DBG_GPU_IOCTL_PERFBUF_MAP => objects::perfbuf_map;
        ALL NVGPU_DBG_GPU_IOCTL_PERFBUF_UNMAP => objects::perfbuf_unmap;
        ALL NVGPU_DBG_GPU_IOCTL_PC_SAMPLING => context::pc_sampling;
        ALL NVGPU_DBG_GPU_IOCTL_TIMEOUT => set_timeout;
        ALL NVGPU_DBG_GPU_IOCTL_GET_TIMEOUT => get_timeout;
        ALL NVGPU_DBG_GPU_IOCTL_SET_NEXT_STOP_TRIGGER_TYPE => set_stop_trigger;
        ALL NVGPU_DBG_GPU_IOCTL_HWPM_CTXSW_MODE => context::hwpm_mode;
        ALL NVGPU_DBG_GPU_IOCTL_READ_SINGLE_SM_ERROR_STATE => read_single_sm_error_state;
        ALL NVGPU_DBG_GPU_IOCTL_CLEAR_SINGLE_SM_ERROR_STATE => clear_single_sm_error_state;
        ALL NVGPU_DBG_GPU_IOCTL_UNBIND_CHANNEL => unbind_channel;
        ALL NVGPU_DBG_GPU_IOCTL_SUSPEND_RESUME_CONTEXTS => context::suspend_resume_contexts;
        ALL NVGPU_DBG_GPU_IOCTL_ACCESS_FB_MEMORY => memory::access_fb;
        ALL NVGPU_DBG_GPU_IOCTL_PROFILER_ALLOCATE => objects::allocate;
        ALL NVGPU_DBG_GPU_IOCTL_PROFILER_FREE => objects::free;
        ALL NVGPU_DBG_GPU_IOCTL_PROFILER_RESERVE => objects::reserve;
        ALL NVGPU_DBG_GPU_IOCTL_SET_SM_EXCEPTION_TYPE_MASK => context::exception_mask;
        ALL NVGPU_DBG_GPU_IOCTL_CYCLE_STATS => objects::cycle_stats;
        ALL NVGPU_DBG_GPU_IOCTL_CYCLE_STATS_SNAPSHOT => objects::cycle_stats_snapshot;
        ALL NVGPU_DBG_GPU_IOCTL_SET_CTX_MMU_DEBUG_MODE => context::mmu_debug_mode;
        ALL NVGPU_DBG_GPU_IOCTL_GET_GR_CONTEXT_SIZE => context::size;
        ALL NVGPU_DBG_GPU_IOCTL_GET_GR_CONTEXT => context::image;
        ALL NVGPU_DBG_GPU_IOCTL_TSG_SET_TIMESLICE => set_timeslice;
        ALL NVGPU_DBG_GPU_IOCTL_TSG_GET_TIMESLICE => get_timeslice;
        ALL NVGPU_DBG_GPU_IOCTL_GET_MAPPINGS => memory::get_mappings;
        ALL NVGPU_DBG_GPU_IOCTL_ACCESS_GPU_VA => memory::access_gpu_va;
        SINCE_R36 NVGPU_DBG_GPU_IOCTL_SET_SCHED_EXIT_WAIT_FOR_ERRBAR => context::wait_for_errbar;
    },
};

/// Opens the node, or that of the old profiler.
pub(super) fn open_node(files: &Files, profiling: &Arc<Profiling>, profiler: bool) -> Result<OwnedFd, Errno> {
    let (fd, session) = Debugger::create(profiling, profiler)?;
    files.enter(FileId::of(&fd)?, Arc::new(session));
    Ok(fd)
}

impl OpenFile for Debugger {
    fn node(&self) -> Option<Node> {
        Some(Node::Debugger)
    }

    fn ioctl(self: Arc<Self>, call: &Call<'_>, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        TABLE.run(call, &self, request, arg)
    }

    fn our_end(&self) -> Option<OwnedFd> {
        self.event.our_end()
    }

    fn close(&self, files: &Files) {
        self.end(files);
    }
}

/// Binds a channel to the session. The error is `ENODEV` for a descriptor that is not open, and `EINVAL` for a
/// descriptor that is not a channel's.
fn bind_channel(call: &Call<'_>, session: &Arc<Debugger>, args: &mut nvgpu_dbg_gpu_bind_channel_args) -> Reply {
    let fd = args.channel_fd as i32;
    let file = call.process.file_id(fd).map_err(|_| Errno::ENODEV)?;
    let channel = call.channel(fd)?;
    call.files.pin(file);
    session.state.lock().channels.push(Bound { file, fd, channel: channel.weak() });
    Ok(())
}

fn unbind_channel(call: &Call<'_>, session: &Arc<Debugger>, args: &mut nvgpu_dbg_gpu_unbind_channel_args) -> Reply {
    let channel = call.channel(args.channel_fd as i32)?;
    let tsg = channel.state.lock().tsg.clone();
    let weak = channel.weak();
    drop(channel);
    let mut state = session.state.lock();
    let at = state.channels.iter().position(|bound| bound.channel.ptr_eq(&weak)).ok_or(Errno::EINVAL)?;
    let Bound { file, .. } = state.channels.remove(at);
    // What the session reserved for the channel's group is given back with the channel.
    let gone = state.take_objects(|object| tsg.as_ref().is_some_and(|tsg| object.looks_at(tsg)));
    drop(state);
    gone.iter().for_each(|object| object.retire());
    drop(tsg);
    call.files.unpin(file);
    Ok(())
}

/// Performs all operations or none. The first bad one refuses the call, and then no status is reported.
fn reg_ops(call: &Call<'_>, session: &Arc<Debugger>, args: &mut nvgpu_dbg_gpu_exec_reg_ops_args) -> Reply {
    if args.num_ops > registers::LIMIT {
        return Err(Errno::EINVAL.into());
    }
    if args.num_ops == 0 {
        return Ok(());
    }
    let channel = session.channel();
    if channel.is_none() && !session.is_profiler() {
        return Err(Errno::EINVAL.into());
    }
    let tsg = channel.map(|channel| channel.state.lock().tsg.clone().ok_or(Errno::EINVAL)).transpose()?;
    // The number of operations that the driver copies at a time.
    const FRAGMENT: usize = 128;
    let (mut at, mut left) = (args.ops, args.num_ops as usize);
    while left > 0 {
        let mut ops: Vec<nvgpu_dbg_gpu_reg_op> = call.copy_in_array(at, left.min(FRAGMENT))?;
        let direct = context::exec(call, tsg.as_ref(), &mut ops)?;
        if at == args.ops {
            args.gr_ctx_resident = direct;
        }
        call.copy_out(at, ops.as_bytes())?;
        at = at.wrapping_add(size_of_val(&ops[..]) as u64);
        left -= ops.len();
    }
    Ok(())
}

/// Turns events on or off. Events come from SMs that stop, and SMs never stop here. A session can ask for events and
/// waits for ever.
fn events_ctrl(_: &Call<'_>, session: &Arc<Debugger>, args: &mut nvgpu_dbg_gpu_events_ctrl_args) -> Reply {
    session.channel().ok_or(Errno::EINVAL)?;
    match args.cmd {
        NVGPU_DBG_GPU_EVENTS_CTRL_CMD_ENABLE
        | NVGPU_DBG_GPU_EVENTS_CTRL_CMD_DISABLE
        | NVGPU_DBG_GPU_EVENTS_CTRL_CMD_CLEAR => Ok(()),
        _ => Err(Errno::EINVAL.into()),
    }
}

fn powergate(_: &Call<'_>, session: &Arc<Debugger>, args: &mut nvgpu_dbg_gpu_powergate_args) -> Reply {
    match args.mode {
        NVGPU_DBG_GPU_POWERGATE_MODE_ENABLE => session.set_power_gating(true),
        NVGPU_DBG_GPU_POWERGATE_MODE_DISABLE => session.set_power_gating(false),
        _ => return Err(Errno::EINVAL.into()),
    }
    Ok(())
}

fn set_timeout(call: &Call<'_>, session: &Arc<Debugger>, args: &mut nvgpu_dbg_gpu_timeout_args) -> Reply {
    match args.enable {
        NVGPU_DBG_GPU_IOCTL_TIMEOUT_ENABLE => session.set_timeouts(call.board, true),
        NVGPU_DBG_GPU_IOCTL_TIMEOUT_DISABLE => session.set_timeouts(call.board, false),
        _ => return Err(Errno::EINVAL.into()),
    }
    Ok(())
}

/// Returns whether timeouts are on. The setting belongs to the GPU and not to the session: any session may have
/// switched timeouts off.
fn get_timeout(call: &Call<'_>, _: &Arc<Debugger>, args: &mut nvgpu_dbg_gpu_timeout_args) -> Reply {
    args.enable = match call.board.hw.timeouts.are_on() {
        true => NVGPU_DBG_GPU_IOCTL_TIMEOUT_ENABLE,
        false => NVGPU_DBG_GPU_IOCTL_TIMEOUT_DISABLE,
    };
    Ok(())
}

/// Sets how many SMs the next exception stops. This has an effect only if a debugger is attached to the SMs.
fn set_stop_trigger(_: &Call<'_>, _: &Arc<Debugger>, _: &mut nvgpu_dbg_gpu_set_next_stop_trigger_type_args) -> Reply {
    Ok(())
}

fn read_single_sm_error_state(
    call: &Call<'_>,
    session: &Arc<Debugger>,
    args: &mut nvgpu_dbg_gpu_read_single_sm_error_state_args,
) -> Reply {
    // The record for debuggers has the same layout as that for groups.
    let record = super::tsg::sm_record(call, &*session.tsg()?, args.sm_id)?;
    if args.sm_error_state_record_size == 0 {
        return Ok(());
    }
    let size = (args.sm_error_state_record_size as usize).min(record.len());
    call.copy_out_counted(args.sm_error_state_record_mem, &record[..size])?;
    args.sm_error_state_record_size = size as u64;
    Ok(())
}

fn clear_single_sm_error_state(
    _: &Call<'_>,
    session: &Arc<Debugger>,
    args: &mut nvgpu_dbg_gpu_clear_single_sm_error_state_args,
) -> Reply {
    let tsg = session.tsg()?;
    let mut records = tsg.hw.sm_errors.lock();
    *records.get_mut(args.sm_id as usize).ok_or(Errno::EINVAL)? = SmError::default();
    Ok(())
}

/// Sets the time slice. A debugger may set it up to the maximum that the characteristics report.
fn set_timeslice(_: &Call<'_>, session: &Arc<Debugger>, args: &mut nvgpu_timeslice_args) -> Reply {
    let tsg = session.tsg()?;
    let scheduling = &tsg.groups.scheduling;
    scheduling.check_unlocked()?;
    let shortest = *scheduling.timeslices().start();
    if !(shortest..=super::tsg::MAX_DEBUG_TIMESLICE_US).contains(&args.timeslice_us) {
        return Err(Errno::EINVAL.into());
    }
    tsg.hw.timeslice_us.store(args.timeslice_us, Ordering::Relaxed);
    Ok(())
}

fn get_timeslice(_: &Call<'_>, session: &Arc<Debugger>, args: &mut nvgpu_timeslice_args) -> Reply {
    args.timeslice_us = session.tsg()?.hw.timeslice_us.load(Ordering::Relaxed);
    Ok(())
}
