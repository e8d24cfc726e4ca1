//! Which objects the handles of this process stand for, and the order in which objects end.

use super::opaque::*;
use super::slots::Slots;
use crate::runtime::device::buffer::Buffer;
use crate::runtime::device::event::Event;
use crate::runtime::device::module::{KernelRef, Module};
use crate::runtime::device::queue_ref::QueueRef;
use crate::runtime::device::{CLOSE_DEADLINE, Device};
use crate::runtime::replay::Replay;
use std::cell::{Cell, RefCell};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use tegrarm_images::hostobj::HostObject;
use tegrarm_output::say;
use tegrarm_rm::status::RmResult;

/// A module, its device's handle, and the numbers of those of its kernels that have handles.
pub(super) struct Loaded {
    pub module: Arc<Module>,
    pub device: usize,
    /// The numbers of the handles.
    pub kernels: Vec<usize>,
}

/// A kernel, and its device's handle.
pub(super) struct Known {
    pub kernel: KernelRef,
    pub device: usize,
}

impl Deref for Known {
    type Target = KernelRef;

    #[inline(always)]
    fn deref(&self) -> &KernelRef {
        &self.kernel
    }
}

impl DerefMut for Known {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut KernelRef {
        &mut self.kernel
    }
}

pub(super) static DEVICES: Slots<tegrarm_device, Arc<Device>> = Slots::new(1, "device");
pub(super) static BUFFERS: Slots<tegrarm_buffer, Arc<Buffer>> = Slots::new(2, "buffer");
pub(super) static MODULES: Slots<tegrarm_module, Loaded> = Slots::new(3, "module");
/// Two calls of one kernel do not run at the same time: the second one waits.
pub(super) static KERNELS: Slots<tegrarm_kernel, Known> = Slots::new(4, "kernel");
/// A call of a replay is refused while another thread is in a call of the same replay.
pub(super) static REPLAYS: Slots<tegrarm_replay, Replay> = Slots::new(5, "replay");
pub(super) static OBJECTS: Slots<tegrarm_object, HostObject> = Slots::new(6, "object");

pub(super) static QUEUES: Slots<tegrarm_queue, QueueRef> = Slots::new(7, "queue");
pub(super) static EVENTS: Slots<tegrarm_event, Arc<Event>> = Slots::new(8, "event");

/// The queue of a call that knows the device from another argument: NULL stands for the default queue of that device.
///
/// # Errors
/// Those of [`Slots::get`].
pub(super) fn queue_of(queue: *const tegrarm_queue, device: &Arc<Device>) -> RmResult<QueueRef> {
    if queue.is_null() { Ok(QueueRef::own(device)) } else { QUEUES.get(queue) }
}

/// Forgets all handles. A forked child calls this, because the handles belong to the parent.
///
/// # Safety
/// No other thread exists.
pub(in super::super) unsafe fn forget_handles() {
    // SAFETY: no other thread exists, as this function's caller promises; that is all each of them asks for.
    unsafe {
        DEVICES.forget();
        BUFFERS.forget();
        MODULES.forget();
        KERNELS.forget();
        REPLAYS.forget();
        OBJECTS.forget();
        QUEUES.forget();
        EVENTS.forget();
    }
}

/// Prints what of a device was never freed, or of all devices, if `TEGRARM_LEAKS=1` asks for it.
pub(in super::super) fn report_leaks(device: Option<&Arc<Device>>) {
    if std::env::var_os("TEGRARM_LEAKS").is_none_or(|value| value != "1") {
        return;
    }
    let is = |of: &Arc<Device>| device.is_none_or(|device| Arc::ptr_eq(of, device));
    let buffers = RefCell::new(Vec::new());
    // Nothing is looked for: every object is looked at.
    BUFFERS.find(|buffer| {
        buffers.borrow_mut().extend(is(buffer.device()).then(|| (buffer.address(), buffer.size())));
        false
    });
    let (modules, events) = (Cell::new(0), Cell::new(0));
    MODULES.find(|loaded| {
        modules.update(|count| count + u32::from(is(loaded.module.device())));
        false
    });
    EVENTS.find(|event| {
        events.update(|count| count + u32::from(is(event.device())));
        false
    });
    for (address, size) in buffers.into_inner() {
        say(&format!("leak: the buffer of {size} bytes at {address:#x} was never freed"));
    }
    for (count, what) in [(modules.get(), "modules were never unloaded"), (events.get(), "events were never freed")] {
        if count > 0 {
            say(&format!("leak: {count} {what}"));
        }
    }
}

/// Ends every object.
pub(in super::super) fn close_all() {
    DEVICES.remove_all(|_| true).for_each(close_device);
    REPLAYS.remove_all(|_| true).for_each(drop);
    OBJECTS.remove_all(|_| true).for_each(drop);
}

/// Ends everything that belongs to a device, and then the device. An object that keeps another one alive ends before
/// it.
pub(super) fn close_device(device: Arc<Device>) {
    report_leaks(Some(&device));
    let this = |other: &Arc<Device>| Arc::ptr_eq(other, &device);
    REPLAYS.remove_all(|replay| replay.device().is_some_and(this)).for_each(drop);
    device.settle(CLOSE_DEADLINE);
    EVENTS.remove_all(|event| this(event.device())).for_each(drop);
    QUEUES.remove_all(|queue| this(queue.device())).for_each(drop);
    KERNELS.remove_all(|kernel| this(kernel.module().device())).for_each(drop);
    BUFFERS.remove_all(|buffer| this(buffer.device())).for_each(drop);
    MODULES.remove_all(|loaded| this(loaded.module.device())).for_each(drop);
}

/// Ends a module after its kernels.
pub(super) fn unload(loaded: Loaded) {
    for kernel in loaded.kernels {
        // A kernel that has no handle any more has ended with its device.
        let _ = KERNELS.remove(std::ptr::without_provenance(kernel));
    }
    drop(loaded.module);
}
