//! The profiler nodes: who may use which counters.
//!
//! Reservations and bindings are kept as nvgpu keeps them; there are no counters behind them, so what streams or
//! reads counters (PMA streams, register operations, VAB) has no row and is `ENOTTY`.

use super::Kernel;
use super::dispatch::{Call, CopyBack, Reply, Row, Since, Table, rows};
use super::files::Object;
use super::tsg::Tsg;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use tegrarm_abi::nvgpu::profiler::*;
use tegrarm_kmd::Errno;

pub(super) static TABLE: Table<Profiler> = Table {
    magic: NVGPU_PROFILER_IOCTL_MAGIC as u8,
    last: [NVGPU_PROFILER_IOCTL_LAST; 2],
    max_arg: [NVGPU_PROFILER_IOCTL_MAX_ARG_SIZE as usize; 2],
    copy_back: CopyBack::Errno,
    rows: rows! {
        Both NVGPU_PROFILER_IOCTL_BIND_CONTEXT => bind_context;
        Both NVGPU_PROFILER_IOCTL_UNBIND_CONTEXT => unbind_context;
        Both NVGPU_PROFILER_IOCTL_RESERVE_PM_RESOURCE => reserve;
        Both NVGPU_PROFILER_IOCTL_RELEASE_PM_RESOURCE => release;
        Both NVGPU_PROFILER_IOCTL_BIND_PM_RESOURCES => bind_resources;
        Both NVGPU_PROFILER_IOCTL_UNBIND_PM_RESOURCES => unbind_resources;
    },
};

/// What a profiler node looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// One group (`prof-ctx`).
    Context,
    /// The GPU (`prof-dev`).
    Device,
}

/// One open of a profiler node.
#[derive(Debug)]
pub(super) struct Profiler {
    scope: Scope,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// A context was chosen: a group, or for the device none.
    chosen: bool,
    tsg: Option<Weak<Tsg>>,
    reserved: BTreeSet<u32>,
    bound: bool,
}

/// Resources in use, over all profilers: several contexts may share one, a device-wide user may not.
#[derive(Debug, Default)]
pub(super) struct Reservations {
    users: Mutex<[Users; RESOURCES]>,
}

/// HWPM, SMPC and the PC sampler; the driver knows more names, but reserves none of the others.
const RESOURCES: usize = NVGPU_PROFILER_PM_RESOURCE_ARG_PC_SAMPLER as usize + 1;

#[derive(Clone, Copy, Debug, Default)]
struct Users {
    contexts: u32,
    device: bool,
}

impl Profiler {
    pub(super) fn new(scope: Scope) -> Profiler {
        Profiler { scope, state: Mutex::default() }
    }

    /// The last descriptor is closed.
    pub(super) fn close(&self, kernel: &Kernel) {
        let reserved = std::mem::take(&mut self.state.lock().reserved);
        reserved.into_iter().for_each(|resource| self.give_back(kernel, resource));
    }

    fn give_back(&self, kernel: &Kernel, resource: u32) {
        let users = &mut kernel.profiling.users.lock()[resource as usize];
        match self.scope {
            Scope::Context => users.contexts -= 1,
            Scope::Device => users.device = false,
        }
    }
}

fn bind_context(call: &Call<'_>, prof: &Arc<Profiler>, args: &mut nvgpu_profiler_bind_context_args) -> Reply {
    let mut state = prof.state.lock();
    if state.chosen {
        return Err(Errno::EINVAL.into());
    }
    if args.tsg_fd < 0 && prof.scope == Scope::Device {
        state.chosen = true;
        return Ok(());
    }
    let Ok(Object::Tsg(file)) = call.kernel.object(call.process, args.tsg_fd) else { return Err(Errno::EINVAL.into()) };
    let mut profiled = file.tsg.profiler.lock();
    if profiled.strong_count() > 0 {
        return Err(Errno::EINVAL.into());
    }
    *profiled = Arc::downgrade(prof);
    state.tsg = Some(Arc::downgrade(&file.tsg));
    state.chosen = true;
    Ok(())
}

/// Reservations stay; what was bound is not any more.
fn unbind_context(_: &Call<'_>, prof: &Arc<Profiler>, _: &mut ()) -> Reply {
    let mut state = prof.state.lock();
    state.bound = false;
    if !std::mem::take(&mut state.chosen) {
        return Err(Errno::EINVAL.into());
    }
    if let Some(tsg) = state.tsg.take().and_then(|tsg| tsg.upgrade()) {
        *tsg.profiler.lock() = Weak::new();
    }
    Ok(())
}

/// `EINVAL` for an unknown resource or a context that is not there, `EEXIST` for one of one's own or after binding,
/// `EBUSY` for one somebody else holds.
fn reserve(call: &Call<'_>, prof: &Arc<Profiler>, args: &mut nvgpu_profiler_reserve_pm_resource_args) -> Reply {
    let mut state = prof.state.lock();
    if !state.chosen || args.resource as usize >= RESOURCES {
        return Err(Errno::EINVAL.into());
    }
    let switched = args.flags & NVGPU_PROFILER_RESERVE_PM_RESOURCE_ARG_FLAG_CTXSW != 0;
    let wants_group =
        prof.scope == Scope::Context || switched || args.resource == NVGPU_PROFILER_PM_RESOURCE_ARG_PC_SAMPLER;
    if wants_group && state.tsg.is_none() {
        return Err(Errno::EINVAL.into());
    }
    if state.bound || state.reserved.contains(&args.resource) {
        return Err(Errno::EEXIST.into());
    }
    let users = &mut call.kernel.profiling.users.lock()[args.resource as usize];
    match prof.scope {
        _ if users.device => return Err(Errno::EBUSY.into()),
        Scope::Device if users.contexts > 0 => return Err(Errno::EBUSY.into()),
        Scope::Device => users.device = true,
        Scope::Context => users.contexts += 1,
    }
    state.reserved.insert(args.resource);
    Ok(())
}

/// Unbinds what is bound.
fn release(call: &Call<'_>, prof: &Arc<Profiler>, args: &mut nvgpu_profiler_release_pm_resource_args) -> Reply {
    let mut state = prof.state.lock();
    if !state.reserved.remove(&args.resource) {
        return Err(Errno::EINVAL.into());
    }
    state.bound = false;
    drop(state);
    prof.give_back(call.kernel, args.resource);
    Ok(())
}

/// There is something to bind with counters of the machine or of its SMs.
fn bind_resources(_: &Call<'_>, prof: &Arc<Profiler>, _: &mut ()) -> Reply {
    let mut state = prof.state.lock();
    let counters = [NVGPU_PROFILER_PM_RESOURCE_ARG_HWPM_LEGACY, NVGPU_PROFILER_PM_RESOURCE_ARG_SMPC];
    if state.bound || !counters.iter().any(|r| state.reserved.contains(r)) {
        return Err(Errno::EINVAL.into());
    }
    state.bound = true;
    Ok(())
}

fn unbind_resources(_: &Call<'_>, prof: &Arc<Profiler>, _: &mut ()) -> Reply {
    if std::mem::take(&mut prof.state.lock().bound) { Ok(()) } else { Err(Errno::EINVAL.into()) }
}
