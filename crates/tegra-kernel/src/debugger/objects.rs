//! The objects that a debugger session can hold besides channels: profiler objects, the buffer for performance records,
//! and cycle statistics.

use super::session::{Debugger, OwnPerfbuf};
use crate::dispatch::{Call, Reply};
use crate::profiler::{Perfbuf, ProfilerObject, Resource, Scope};
use std::sync::Arc;
use tegrarm_abi::nvgpu::debugger::*;
use tegrarm_kmd::Errno;

/// Makes a profiler object. For a profiler's session it is for the GPU, and for a debugger's session it is for the
/// channel's group. For a channel without a group the driver makes none and reports success.
pub(super) fn allocate(_: &Call<'_>, session: &Arc<Debugger>, args: &mut nvgpu_dbg_gpu_profiler_obj_mgt_args) -> Reply {
    let unit = &session.profiling;
    let object = if session.is_profiler() {
        ProfilerObject::new(unit, Scope::Device, None)
    } else {
        let channel = session.channel().ok_or(Errno::EINVAL)?;
        let Some(tsg) = channel.state.lock().tsg.clone() else { return Ok(()) };
        ProfilerObject::new(unit, Scope::Context, Some(&tsg))
    };
    args.profiler_handle = object.handle;
    session.state.lock().objects.push(object);
    Ok(())
}

impl Debugger {
    /// A profiler object of this session. The error is `EINVAL` for any other handle.
    fn object(&self, handle: u32) -> Result<Arc<ProfilerObject>, Errno> {
        let state = self.state.lock();
        state.objects.iter().find(|object| object.handle == handle).cloned().ok_or(Errno::EINVAL)
    }
}

pub(super) fn free(_: &Call<'_>, session: &Arc<Debugger>, args: &mut nvgpu_dbg_gpu_profiler_obj_mgt_args) -> Reply {
    let object = session.object(args.profiler_handle)?;
    session.state.lock().take_objects(|o| o.handle == args.profiler_handle);
    object.retire();
    Ok(())
}

/// Reserves the counters of the whole GPU or gives them back. The error is `EINVAL` while another profiler of the same
/// group has them.
pub(super) fn reserve(_: &Call<'_>, session: &Arc<Debugger>, args: &mut nvgpu_dbg_gpu_profiler_reserve_args) -> Reply {
    let object = session.object(args.profiler_handle)?;
    if args.acquire == 0 {
        return Ok(object.release(Resource::Hwpm)?);
    }
    let rivals = session.profiling.objects();
    if let Some(tsg) = object.tsg()
        && rivals.iter().any(|other| other.looks_at(&tsg) && other.has(Resource::Hwpm))
    {
        return Err(Errno::EINVAL.into());
    }
    Ok(object.reserve(Resource::Hwpm)?)
}

/// Maps the buffer for records. The error is `EBUSY` while any session has it. The records may not cross a boundary of
/// 4 GiB.
pub(super) fn perfbuf_map(
    call: &Call<'_>,
    session: &Arc<Debugger>,
    args: &mut nvgpu_dbg_gpu_perfbuf_map_args,
) -> Reply {
    let owner = ProfilerObject::new(&session.profiling, Scope::Device, None);
    owner.reserve(Resource::PmaStream).map_err(|_| Errno::EBUSY)?;
    let own = Perfbuf::new(call).map(|perfbuf| OwnPerfbuf { perfbuf, owner: owner.clone() });
    let own = own.inspect_err(|_| owner.retire())?;
    own.perfbuf.map(call, args.dmabuf_fd as i32, 0, 0, 0)?;
    let start = own.perfbuf.window;
    let end = start.wrapping_add(u64::from(args.mapping_size as u32)).wrapping_sub(1);
    if start >> 32 != end >> 32 {
        return Err(Errno::EINVAL.into());
    }
    args.offset = start;
    session.state.lock().perfbuf = Some(own);
    Ok(())
}

pub(super) fn perfbuf_unmap(
    _: &Call<'_>,
    session: &Arc<Debugger>,
    args: &mut nvgpu_dbg_gpu_perfbuf_unmap_args,
) -> Reply {
    let mut state = session.state.lock();
    let own = state.perfbuf.take_if(|own| own.perfbuf.window == args.offset).ok_or(Errno::EINVAL)?;
    drop(state);
    drop(own);
    Ok(())
}

/// Refuses with `ENOSYS`, as a GPU without cycle statistics does. They are the kernel's part of a graphics channel's
/// own counting, which no class here asks for.
pub(super) fn cycle_stats(_: &Call<'_>, session: &Arc<Debugger>, _: &mut nvgpu_dbg_gpu_cycle_stats_args) -> Reply {
    session.channel().ok_or(Errno::EINVAL)?;
    tracing::error!("CYCLE_STATS is not simulated: no channel counts its own cycles");
    Err(Errno::ENOSYS.into())
}

pub(super) fn cycle_stats_snapshot(
    _: &Call<'_>,
    session: &Arc<Debugger>,
    args: &mut nvgpu_dbg_gpu_cycle_stats_snapshot_args,
) -> Reply {
    if args.dmabuf_fd == 0 {
        return Err(Errno::EINVAL.into());
    }
    session.channel().ok_or(Errno::EINVAL)?;
    tracing::error!("CYCLE_STATS_SNAPSHOT is not simulated: no channel counts its own cycles");
    Err(Errno::ENOSYS.into())
}
