//! The profiler nodes, which decide who may use which counters (the driver's `os/linux/ioctl_prof.c`,
//! `common/profiler`).
//!
//! Reservations, bindings and streams are kept as nvgpu keeps them. There are no counters behind them, so every
//! register operation is refused with the reason that no such register may be used. `prof-ctx` cannot be opened,
//! because neither chip has context profiling in these releases.

mod object;
mod perfbuf;
mod stream;
mod vab;

pub(super) use object::{Profiler, ProfilerObject, Profiling, Resource, Scope};
pub(super) use perfbuf::Perfbuf;

use super::dispatch::{Call, CopyBack, Reply, Row, Table, rows};
use super::files::{Files, OpenFile};
use super::registers;
use super::tsg::TsgFile;
use crate::release::PerRelease;
use std::any::Any;
use std::sync::Arc;
use tegrarm_abi::nvgpu::profiler::*;
use tegrarm_abi::nvgpu::r35::NVGPU_PROFILER_IOCTL_FREE_PMA_STREAM_R35;
use tegrarm_abi::nvgpu::r39::NVGPU_PROFILER_IOCTL_LAST_R39;
use tegrarm_kmd::{Arg, Errno, Node};
use zerocopy::IntoBytes;

pub(super) static TABLE: Table<Profiler> = Table {
    magic: NVGPU_PROFILER_IOCTL_MAGIC as u8,
    last: PerRelease {
        r35: NVGPU_PROFILER_IOCTL_LAST,
        r36: NVGPU_PROFILER_IOCTL_LAST,
        r39: NVGPU_PROFILER_IOCTL_LAST_R39,
    },
    max_arg: PerRelease::same(NVGPU_PROFILER_IOCTL_MAX_ARG_SIZE as usize),
    copy_back: CopyBack::Count,
    rows: rows! {
        ALL NVGPU_PROFILER_IOCTL_BIND_CONTEXT => bind_context;
        ALL NVGPU_PROFILER_IOCTL_UNBIND_CONTEXT => unbind_context;
        ALL NVGPU_PROFILER_IOCTL_RESERVE_PM_RESOURCE => reserve;
        ALL NVGPU_PROFILER_IOCTL_RELEASE_PM_RESOURCE => release;
        ALL NVGPU_PROFILER_IOCTL_ALLOC_PMA_STREAM => stream::alloc;
        SINCE_R36 NVGPU_PROFILER_IOCTL_FREE_PMA_STREAM => stream::free;
        R35 NVGPU_PROFILER_IOCTL_FREE_PMA_STREAM_R35 => stream::free_r35;
        ALL NVGPU_PROFILER_IOCTL_PMA_STREAM_UPDATE_GET_PUT => stream::update;
        ALL NVGPU_PROFILER_IOCTL_BIND_PM_RESOURCES => bind_resources;
        ALL NVGPU_PROFILER_IOCTL_UNBIND_PM_RESOURCES => unbind_resources;
        ALL NVGPU_PROFILER_IOCTL_EXEC_REG_OPS => exec_reg_ops;
        ALL NVGPU_PROFILER_IOCTL_VAB_RESERVE => vab::reserve;
        ALL NVGPU_PROFILER_IOCTL_VAB_RELEASE => vab::release;
        ALL NVGPU_PROFILER_IOCTL_VAB_FLUSH_STATE => vab::flush;
    },
};

impl OpenFile for Profiler {
    fn node(&self) -> Option<Node> {
        Some(Node::Profiler)
    }

    fn ioctl(self: Arc<Self>, call: &Call<'_>, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        TABLE.run(call, &self, request, arg)
    }

    fn close(&self, _: &Files) {
        self.object.retire();
    }
}

fn bind_context(call: &Call<'_>, prof: &Arc<Profiler>, args: &mut nvgpu_profiler_bind_context_args) -> Reply {
    let mut state = prof.object.state.lock();
    if state.chosen {
        return Err(Errno::EINVAL.into());
    }
    if args.tsg_fd < 0 {
        state.chosen = true;
        return Ok(());
    }
    let file: Arc<TsgFile> = call.file(args.tsg_fd).ok_or(Errno::EINVAL)?;
    let object: Arc<dyn Any + Send + Sync> = prof.object.clone();
    file.tsg.measure(Arc::downgrade(&object))?;
    state.tsg = Some(Arc::downgrade(&file.tsg));
    state.chosen = true;
    Ok(())
}

/// Removes the context. Reservations stay, but resources are not bound any more.
fn unbind_context(_: &Call<'_>, prof: &Arc<Profiler>, _: &mut ()) -> Reply {
    Ok(prof.object.state.lock().unbind_context()?)
}

/// Reserves a resource. The errors are `EINVAL` for an unknown resource or a context that does not exist, `EEXIST` if
/// this object has the resource already or has bound its resources, and `EBUSY` if another object has the resource.
fn reserve(call: &Call<'_>, prof: &Arc<Profiler>, args: &mut nvgpu_profiler_reserve_pm_resource_args) -> Reply {
    let mut state = prof.object.state.lock();
    if !state.chosen {
        return Err(Errno::EINVAL.into());
    }
    let resource = Resource::named(args.resource)?;
    let switched = args.flags & NVGPU_PROFILER_RESERVE_PM_RESOURCE_ARG_FLAG_CTXSW != 0;
    let wants_group = switched || resource == Resource::PcSampler;
    let global = call.board.chip.counts_all_sms();
    if wants_group && state.tsg.is_none() || resource == Resource::Smpc && !switched && !global {
        return Err(Errno::EINVAL.into());
    }
    state.switched[resource as usize] = switched;
    Ok(prof.object.reserve_in(&mut state, resource)?)
}

/// Releases a resource, after unbinding everything that is bound.
fn release(_: &Call<'_>, prof: &Arc<Profiler>, args: &mut nvgpu_profiler_release_pm_resource_args) -> Reply {
    Ok(prof.object.release(Resource::named(args.resource)?)?)
}

/// Binds the reserved counters. There is something to bind if counters of the whole GPU or of its SMs are reserved.
fn bind_resources(call: &Call<'_>, prof: &Arc<Profiler>, _: &mut ()) -> Reply {
    Ok(prof.object.bind_resources(call.board.chip.counts_all_sms())?)
}

fn unbind_resources(_: &Call<'_>, prof: &Arc<Profiler>, _: &mut ()) -> Reply {
    let bound = std::mem::take(&mut prof.object.state.lock().bound);
    if bound { Ok(()) } else { Err(Errno::EINVAL.into()) }
}

/// Performs operations on the registers of bound counters. This GPU has no such registers, so every offset is invalid.
fn exec_reg_ops(call: &Call<'_>, prof: &Arc<Profiler>, args: &mut nvgpu_profiler_exec_reg_ops_args) -> Reply {
    if args.count == 0 || args.count > registers::LIMIT || !prof.object.state.lock().bound {
        return Err(Errno::EINVAL.into());
    }
    let go_on = args.mode == NVGPU_PROFILER_EXEC_REG_OPS_ARG_MODE_CONTINUE_ON_ERROR;
    // The number of operations that the driver copies at a time.
    const FRAGMENT: usize = 4096 / size_of::<nvgpu_profiler_reg_op>();
    let mut at = args.ops;
    let mut left = args.count as usize;
    while left > 0 {
        let mut ops: Vec<nvgpu_profiler_reg_op> = call.copy_in_array(at, left.min(FRAGMENT))?;
        for op in &mut ops {
            tracing::warn!("register {:#x} is no counter of this machine", op.offset);
            op.status = registers::Status::INVALID_OFFSET.op(op.op).0;
        }
        if !go_on {
            return Err(Errno::EINVAL.into());
        }
        call.copy_out(at, ops.as_bytes())?;
        at = at.wrapping_add(size_of_val(&ops[..]) as u64);
        left -= ops.len();
    }
    Ok(())
}
