//! Profiler objects, which decide who may use which performance resources. A `prof-dev` session is one, and a debugger
//! session makes objects of its own.

use super::perfbuf::Stream;
use crate::tsg::Tsg;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use tegrarm_abi::nvgpu::profiler::*;
use tegrarm_kmd::Errno;
use tegrarm_lock::Mutex;

/// What a profiler object measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// One group.
    Context,
    /// The GPU.
    Device,
}

/// A performance resource that can be reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Hwpm,
    Smpc,
    PcSampler,
    /// The stream of records to memory. Making a stream reserves it.
    PmaStream,
}

/// The number of resources.
const RESOURCES: usize = Resource::PmaStream as usize + 1;

impl Resource {
    /// The resource that has this number in RESERVE_PM_RESOURCE. The error is `EINVAL` for a resource that cannot be
    /// asked for.
    pub(super) fn named(number: u32) -> Result<Resource, Errno> {
        match number {
            NVGPU_PROFILER_PM_RESOURCE_ARG_HWPM_LEGACY => Ok(Resource::Hwpm),
            NVGPU_PROFILER_PM_RESOURCE_ARG_SMPC => Ok(Resource::Smpc),
            NVGPU_PROFILER_PM_RESOURCE_ARG_PC_SAMPLER => Ok(Resource::PcSampler),
            _ => Err(Errno::EINVAL),
        }
    }
}

/// A profiler object. Everything that it holds is given back with it.
#[derive(Debug)]
pub(crate) struct ProfilerObject {
    /// A number that no other profiler object has. The first one is 1.
    pub handle: u32,
    pub(super) scope: Scope,
    pub(super) state: Mutex<Reservations>,
    unit: Arc<Profiling>,
}

/// The context to which a profiler object was bound, and the resources that it has reserved there.
#[derive(Debug, Default)]
pub(super) struct Reservations {
    /// True after a context was chosen. It is a group, or none for the whole device.
    pub chosen: bool,
    pub tsg: Option<Weak<Tsg>>,
    reserved: [bool; RESOURCES],
    /// The resources that are switched with the context.
    pub switched: [bool; RESOURCES],
    pub bound: bool,
    pub stream: Option<Stream>,
}

/// The users of one resource. Several contexts may share it, but a device-wide user shares it with nobody.
#[derive(Clone, Copy, Debug, Default)]
struct Users {
    contexts: u32,
    device: bool,
}

impl Reservations {
    pub(super) fn has(&self, resource: Resource) -> bool {
        self.reserved[resource as usize]
    }

    /// Checks the group with whose context resources are switched. The error is `EINVAL` if it has ended, and `EFAULT`
    /// if it has no graphics context.
    fn check_context(&self) -> Result<(), Errno> {
        self.tsg.as_ref().and_then(Weak::upgrade).ok_or(Errno::EINVAL)?.check_context()
    }

    /// Removes the group. Resources are not bound any more then.
    pub(super) fn unbind_context(&mut self) -> Result<(), Errno> {
        self.bound = false;
        if !std::mem::take(&mut self.chosen) {
            return Err(Errno::EINVAL);
        }
        if let Some(tsg) = self.tsg.take().and_then(|tsg| tsg.upgrade()) {
            tsg.measured();
        }
        Ok(())
    }
}

impl ProfilerObject {
    pub(crate) fn new(unit: &Arc<Profiling>, scope: Scope, tsg: Option<&Arc<Tsg>>) -> Arc<ProfilerObject> {
        let state = Reservations { tsg: tsg.map(Arc::downgrade), ..Reservations::default() };
        let object = Arc::new(ProfilerObject {
            handle: unit.next_handle(),
            scope,
            state: Mutex::new(state),
            unit: unit.clone(),
        });
        unit.enter(&object);
        object
    }

    /// Whether the object measures that group.
    pub(crate) fn looks_at(&self, tsg: &Arc<Tsg>) -> bool {
        self.state.lock().tsg.as_ref().is_some_and(|own| std::ptr::eq(own.as_ptr(), Arc::as_ptr(tsg)))
    }

    /// The group that it measures.
    pub(crate) fn tsg(&self) -> Option<Arc<Tsg>> {
        self.state.lock().tsg.as_ref()?.upgrade()
    }

    /// Whether it holds a resource.
    pub(crate) fn has(&self, resource: Resource) -> bool {
        self.state.lock().has(resource)
    }

    /// Takes a resource. The error is `EEXIST` if this object has it already or has bound its resources, and `EBUSY` if
    /// another object has it.
    pub(crate) fn reserve(&self, resource: Resource) -> Result<(), Errno> {
        self.reserve_in(&mut self.state.lock(), resource)
    }

    pub(super) fn reserve_in(&self, state: &mut Reservations, resource: Resource) -> Result<(), Errno> {
        if state.has(resource) || state.bound {
            return Err(Errno::EEXIST);
        }
        let users = &mut self.unit.users.lock()[resource as usize];
        match self.scope {
            _ if users.device => return Err(Errno::EBUSY),
            Scope::Device if users.contexts > 0 => return Err(Errno::EBUSY),
            Scope::Device => users.device = true,
            Scope::Context => users.contexts += 1,
        }
        state.reserved[resource as usize] = true;
        Ok(())
    }

    /// Gives a resource back, after unbinding everything that is bound. The error is `EINVAL` if the object does not
    /// hold it.
    pub(crate) fn release(&self, resource: Resource) -> Result<(), Errno> {
        self.release_in(&mut self.state.lock(), resource)
    }

    pub(super) fn release_in(&self, state: &mut Reservations, resource: Resource) -> Result<(), Errno> {
        if !std::mem::take(&mut state.reserved[resource as usize]) {
            return Err(Errno::EINVAL);
        }
        state.bound = false;
        state.switched[resource as usize] = false;
        let users = &mut self.unit.users.lock()[resource as usize];
        match self.scope {
            Scope::Context => users.contexts -= 1,
            Scope::Device => users.device = false,
        }
        Ok(())
    }

    /// Binds the reserved counters of the whole GPU or of its SMs, so that they count.
    pub(super) fn bind_resources(&self, smpc_global: bool) -> Result<(), Errno> {
        let mut state = self.state.lock();
        if state.bound || !(state.has(Resource::Hwpm) || state.has(Resource::Smpc)) {
            return Err(Errno::EINVAL);
        }
        for resource in [Resource::Hwpm, Resource::Smpc].into_iter().filter(|r| state.has(*r)) {
            if self.scope == Scope::Context || state.switched[resource as usize] {
                state.check_context()?;
            } else if resource == Resource::Smpc && !smpc_global {
                return Err(Errno::EINVAL);
            }
        }
        state.bound = true;
        Ok(())
    }

    /// Gives back everything that the object holds.
    pub(crate) fn retire(&self) {
        let mut state = self.state.lock();
        // The error is ignored: an object without a context has nothing to unbind.
        state.unbind_context().ok();
        let stream = state.stream.take();
        for resource in [Resource::Hwpm, Resource::Smpc, Resource::PcSampler, Resource::PmaStream] {
            // The error is ignored: it says that the object does not hold this resource.
            self.release_in(&mut state, resource).ok();
        }
        drop(state);
        // Buffers may end with the stream, and that must not happen under the lock.
        drop(stream);
    }
}

/// One open `prof-dev` node.
#[derive(Debug)]
pub(crate) struct Profiler {
    pub(super) object: Arc<ProfilerObject>,
}

/// The state that all profilers share.
#[derive(Debug, Default)]
pub(crate) struct Profiling {
    users: Mutex<[Users; RESOURCES]>,
    handles: AtomicU32,
    objects: Mutex<Vec<Weak<ProfilerObject>>>,
    /// The number of debugger sessions that want no power gating.
    pub ungated: AtomicU32,
}

impl Profiling {
    fn next_handle(&self) -> u32 {
        self.handles.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn enter(&self, object: &Arc<ProfilerObject>) {
        let mut objects = self.objects.lock();
        objects.retain(|o| o.strong_count() > 0);
        objects.push(Arc::downgrade(object));
    }

    /// Every profiler object that exists.
    pub(crate) fn objects(&self) -> Vec<Arc<ProfilerObject>> {
        self.objects.lock().iter().filter_map(Weak::upgrade).collect()
    }
}

impl Profiler {
    pub(crate) fn new(unit: &Arc<Profiling>) -> Profiler {
        Profiler { object: ProfilerObject::new(unit, Scope::Device, None) }
    }
}
