//! The debugger node: sessions on channels, SM error records, timeouts.
//!
//! Ioctls that are known numbers but have no row (register operations, SM suspend, context images, …) are
//! `ENOTTY`: a debugger learns at once that it cannot work here.

use super::Kernel;
use super::channel::Channel;
use super::dispatch::{Call, CopyBack, Reply, Row, Since, Table, rows};
use super::hw::SmError;
use super::tsg::Tsg;
use crate::process::FileId;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use tegrarm_abi::nvgpu::debugger::*;
use tegrarm_abi::nvgpu::r35::NVGPU_DBG_GPU_IOCTL_LAST_R35;
use tegrarm_abi::nvgpu::tsg::nvgpu_timeslice_args;
use tegrarm_kmd::Errno;
use zerocopy::IntoBytes;

pub(super) static TABLE: Table<Debugger> = Table {
    magic: NVGPU_DBG_GPU_IOCTL_MAGIC as u8,
    last: [NVGPU_DBG_GPU_IOCTL_LAST, NVGPU_DBG_GPU_IOCTL_LAST_R35],
    max_arg: [NVGPU_DBG_GPU_IOCTL_MAX_ARG_SIZE as usize; 2],
    copy_back: CopyBack::Errno,
    rows: rows! {
        Both NVGPU_DBG_GPU_IOCTL_BIND_CHANNEL => bind_channel;
        Both NVGPU_DBG_GPU_IOCTL_UNBIND_CHANNEL => unbind_channel;
        Both NVGPU_DBG_GPU_IOCTL_TIMEOUT => set_timeout;
        Both NVGPU_DBG_GPU_IOCTL_GET_TIMEOUT => get_timeout;
        Both NVGPU_DBG_GPU_IOCTL_READ_SINGLE_SM_ERROR_STATE => read_single_sm_error_state;
        Both NVGPU_DBG_GPU_IOCTL_CLEAR_SINGLE_SM_ERROR_STATE => clear_single_sm_error_state;
        Both NVGPU_DBG_GPU_IOCTL_TSG_SET_TIMESLICE => set_timeslice;
        Both NVGPU_DBG_GPU_IOCTL_TSG_GET_TIMESLICE => get_timeslice;
    },
};

/// A debugger session.
#[derive(Debug, Default)]
pub(super) struct Debugger {
    /// Their files stay open while they are bound; one bound twice is here twice.
    channels: Mutex<Vec<(FileId, Weak<Channel>)>>,
    timeouts_off: AtomicBool,
}

impl Debugger {
    /// The group of the session's first channel. `EINVAL` without one.
    fn tsg(&self) -> Result<Arc<Tsg>, Errno> {
        let channel = self.channels.lock().first().and_then(|(_, channel)| channel.upgrade()).ok_or(Errno::EINVAL)?;
        let tsg = channel.state.lock().tsg.clone();
        tsg.ok_or(Errno::EINVAL)
    }

    /// The last descriptor is closed.
    pub(super) fn close(&self, kernel: &Arc<Kernel>) {
        let bound = std::mem::take(&mut *self.channels.lock());
        bound.into_iter().for_each(|(file, _)| kernel.unpin(file));
        self.set_timeouts(kernel, true);
    }

    /// One session without timeouts is enough for nothing to time out.
    fn set_timeouts(&self, kernel: &Kernel, on: bool) {
        let were_on = !self.timeouts_off.swap(!on, Ordering::Relaxed);
        match (were_on, on) {
            (true, false) => kernel.interrupts.disable_timeouts(),
            (false, true) => kernel.interrupts.enable_timeouts(),
            _ => {}
        }
    }
}

/// `ENODEV` for a descriptor that is not open, `EINVAL` for one of something else.
fn bind_channel(call: &Call<'_>, session: &Arc<Debugger>, args: &mut nvgpu_dbg_gpu_bind_channel_args) -> Reply {
    let fd = args.channel_fd as i32;
    let file = call.process.file_id(fd).map_err(|_| Errno::ENODEV)?;
    let channel = call.channel(fd)?;
    call.kernel.files.pin(file);
    session.channels.lock().push((file, channel.weak()));
    Ok(())
}

fn unbind_channel(call: &Call<'_>, session: &Arc<Debugger>, args: &mut nvgpu_dbg_gpu_unbind_channel_args) -> Reply {
    let channel = call.channel(args.channel_fd as i32)?.weak();
    let mut channels = session.channels.lock();
    let at = channels.iter().position(|(_, bound)| bound.ptr_eq(&channel)).ok_or(Errno::EINVAL)?;
    let (file, _) = channels.remove(at);
    drop(channels);
    call.kernel.unpin(file);
    Ok(())
}

fn set_timeout(call: &Call<'_>, session: &Arc<Debugger>, args: &mut nvgpu_dbg_gpu_timeout_args) -> Reply {
    let on = match args.enable {
        NVGPU_DBG_GPU_IOCTL_TIMEOUT_ENABLE => true,
        NVGPU_DBG_GPU_IOCTL_TIMEOUT_DISABLE => false,
        _ => return Err(Errno::EINVAL.into()),
    };
    session.set_timeouts(call.kernel, on);
    Ok(())
}

fn get_timeout(_: &Call<'_>, session: &Arc<Debugger>, args: &mut nvgpu_dbg_gpu_timeout_args) -> Reply {
    args.enable = u32::from(!session.timeouts_off.load(Ordering::Relaxed));
    Ok(())
}

fn read_single_sm_error_state(
    call: &Call<'_>,
    session: &Arc<Debugger>,
    args: &mut nvgpu_dbg_gpu_read_single_sm_error_state_args,
) -> Reply {
    let record = session.tsg()?.sm_error(args.sm_id)?;
    if args.sm_error_state_record_size == 0 {
        return Ok(());
    }
    let size = (args.sm_error_state_record_size as usize).min(size_of_val(&record));
    call.copy_out_counted(args.sm_error_state_record_mem, &record.as_bytes()[..size])?;
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

/// A debugger may stretch the slice up to the advertised maximum.
fn set_timeslice(call: &Call<'_>, session: &Arc<Debugger>, args: &mut nvgpu_timeslice_args) -> Reply {
    let tsg = session.tsg()?;
    call.kernel.scheduling.check_unlocked()?;
    if !(super::tsg::MIN_TIMESLICE_US..=super::tsg::MAX_DEBUG_TIMESLICE_US).contains(&args.timeslice_us) {
        return Err(Errno::EINVAL.into());
    }
    tsg.hw.timeslice_us.store(args.timeslice_us, Ordering::Relaxed);
    Ok(())
}

fn get_timeslice(_: &Call<'_>, session: &Arc<Debugger>, args: &mut nvgpu_timeslice_args) -> Reply {
    args.timeslice_us = session.tsg()?.hw.timeslice_us.load(Ordering::Relaxed);
    Ok(())
}
