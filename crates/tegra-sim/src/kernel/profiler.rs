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
    tsg: Option<Weak<Tsg>>,
    reserved: BTreeSet<u32>,
    bound: bool,
}

/// Resources in use, over all profilers: several contexts may share one, a device-wide user may not.
#[derive(Debug, Default)]
pub(super) struct Reservations {
    users: Mutex<[Users; RESOURCES]>,
}

const RESOURCES: usize = NVGPU_PROFILER_PM_RESOURCE_ARG_HES_CWD as usize + 1;

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
    if prof.scope == Scope::Device || state.tsg.is_some() {
        return Err(Errno::EINVAL.into());
    }
    let Ok(Object::Tsg(file)) = call.kernel.object(call.process, args.tsg_fd) else { return Err(Errno::EINVAL.into()) };
    state.tsg = Some(Arc::downgrade(&file.tsg));
    Ok(())
}

fn unbind_context(call: &Call<'_>, prof: &Arc<Profiler>, _: &mut ()) -> Reply {
    if prof.state.lock().tsg.take().is_none() {
        return Err(Errno::EINVAL.into());
    }
    prof.state.lock().bound = false;
    prof.close(call.kernel);
    Ok(())
}

/// `EINVAL` for an unknown resource or an unbound context, `EBUSY` for one somebody else holds.
fn reserve(call: &Call<'_>, prof: &Arc<Profiler>, args: &mut nvgpu_profiler_reserve_pm_resource_args) -> Reply {
    let mut state = prof.state.lock();
    let unbound = prof.scope == Scope::Context && state.tsg.is_none();
    if args.resource as usize >= RESOURCES || unbound || state.bound {
        return Err(Errno::EINVAL.into());
    }
    if state.reserved.contains(&args.resource) {
        return Ok(());
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

fn release(call: &Call<'_>, prof: &Arc<Profiler>, args: &mut nvgpu_profiler_release_pm_resource_args) -> Reply {
    if !prof.state.lock().reserved.remove(&args.resource) {
        return Err(Errno::EINVAL.into());
    }
    prof.give_back(call.kernel, args.resource);
    Ok(())
}

fn bind_resources(_: &Call<'_>, prof: &Arc<Profiler>, _: &mut ()) -> Reply {
    let mut state = prof.state.lock();
    if state.bound || state.reserved.is_empty() {
        return Err(Errno::EINVAL.into());
    }
    state.bound = true;
    Ok(())
}

fn unbind_resources(_: &Call<'_>, prof: &Arc<Profiler>, _: &mut ()) -> Reply {
    let mut state = prof.state.lock();
    if !std::mem::take(&mut state.bound) {
        return Err(Errno::EINVAL.into());
    }
    Ok(())
}
