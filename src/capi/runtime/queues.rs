//! Queues of a device.

use super::super::guard::status;
use super::super::objects::{NV_STATUS, NvU32, NvU64};
use super::handles::{DEVICES, QUEUES};
use super::opaque::{tegrarm_device, tegrarm_queue};
use super::pointers::{extended, give, present};
use crate::runtime::channel::{Kind, Plan};
use crate::runtime::device::queue_ref::QueueRef;
use std::sync::Arc;
use tegrarm_abi::rm::ctrl_channels::*;
use tegrarm_abi::rm::status::*;
use tegrarm_rm::status::{RmResult, fail};

/// Which engines a queue has: a value of `tegrarm_queue_options.kind`.
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub enum tegrarm_queue_kind {
    /// Compute and copy: it runs everything.
    TEGRARM_QUEUE_COMPUTE = 0,
    /// A copy engine alone: it copies and fills while other queues compute.
    TEGRARM_QUEUE_COPY = 1,
}

/// How often a queue gets its turn on the GPU: a value of `tegrarm_queue_options.priority`. nvgpu calls it the
/// interleave level. A queue with a higher priority gets its turn again before queues with a lower one.
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub enum tegrarm_queue_priority {
    /// nvgpu's default, which is low.
    TEGRARM_PRIORITY_DEFAULT = 0,
    /// Low.
    TEGRARM_PRIORITY_LOW = 1,
    /// Medium.
    TEGRARM_PRIORITY_MEDIUM = 2,
    /// High.
    TEGRARM_PRIORITY_HIGH = 3,
}

/// The names of nvgpu's levels.
const LEVELS: [&str; 3] = ["TEGRARM_PRIORITY_LOW (1)", "TEGRARM_PRIORITY_MEDIUM (2)", "TEGRARM_PRIORITY_HIGH (3)"];

/// nvgpu's level of a priority. It is `None` for nvgpu's default.
fn level(priority: u32) -> RmResult<Option<u32>> {
    Ok(match priority {
        0 => None,
        1 => Some(NVA06C_CTRL_INTERLEAVE_LEVEL_LOW),
        2 => Some(NVA06C_CTRL_INTERLEAVE_LEVEL_MEDIUM),
        3 => Some(NVA06C_CTRL_INTERLEAVE_LEVEL_HIGH),
        _ => fail!(NV_ERR_INVALID_ARGUMENT, "priority {priority}: at most TEGRARM_PRIORITY_HIGH (3)"),
    })
}

/// Checks the priority of a launch on a queue with the level `own`.
///
/// # Errors
/// `NV_ERR_INVALID_ARGUMENT` for a number that is no priority, and for one that is neither the default nor the queue's.
pub(super) fn check_priority(priority: u32, own: Option<u32>) -> RmResult<()> {
    let own = own.unwrap_or(NVA06C_CTRL_INTERLEAVE_LEVEL_LOW);
    if level(priority)?.is_some_and(|wanted| wanted != own) {
        fail!(
            NV_ERR_INVALID_ARGUMENT,
            "config->priority is {priority}, and the queue has {}: nvgpu gives priorities to queues and not to launches. Launch on a \
             queue that tegrarm_queue_create made with this priority",
            LEVELS[own as usize]
        );
    }
    Ok(())
}

/// The properties of a new queue. Set everything to 0, set `size` to `sizeof(struct tegrarm_queue_options)`, and then
/// fill in the other fields. Later versions only append fields.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct tegrarm_queue_options {
    /// The size of the structure as the caller knows it.
    pub size: usize,
    /// A value of `enum tegrarm_queue_kind`.
    pub kind: u32,
    /// A value of `enum tegrarm_queue_priority`.
    pub priority: u32,
    /// How long its turn is, in microseconds, while other queues have work. nvgpu takes 1,000 to 50,000, unless the system was
    /// told otherwise. With 0 nvgpu decides.
    pub timeslice_us: u32,
    /// Must be 0.
    pub reserved: u32,
}

impl tegrarm_queue_options {
    fn plan(&self) -> RmResult<Plan> {
        let kind = match self.kind {
            0 => Kind::Compute,
            1 => Kind::Copy,
            kind => fail!(
                NV_ERR_INVALID_ARGUMENT,
                "queue kind {kind}: there are TEGRARM_QUEUE_COMPUTE (0) and TEGRARM_QUEUE_COPY (1)"
            ),
        };
        let level = level(self.priority)?;
        if self.reserved != 0 {
            fail!(NV_ERR_INVALID_ARGUMENT, "options->reserved is {:#x}: it must be 0", self.reserved);
        }
        Ok(Plan { kind, level, timeslice: (self.timeslice_us != 0).then_some(self.timeslice_us) })
    }
}

/// Gives the handle of the default queue of a device, with which the device was opened. NULL stands for it in every function
/// that knows the device from another argument. The handle is the same at every call, and ends with the device.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
/// - `NV_ERR_INVALID_POINTER`: `queue` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_device_queue(
    device: *mut tegrarm_device,
    queue: *mut *mut tegrarm_queue,
) -> NV_STATUS {
    status(|| {
        let device = DEVICES.get(device)?;
        let Some(found) = QUEUES.find(|queue| queue.is_own() && Arc::ptr_eq(queue.device(), &device)) else {
            fail!(NV_ERR_OBJECT_NOT_FOUND, "another thread closed the device");
        };
        // SAFETY: `queue` is NULL or valid for writes, as `tegrarm_device_queue` asks of its caller.
        unsafe { give(queue, found, "queue") }
    })
}

/// Makes another queue of a device. Its work runs in the order in which it was given, beside the work of other queues; a fault
/// in it stops it alone. `options` may be NULL for a compute queue without wishes. `*queue` is a new handle. End it with
/// `tegrarm_queue_destroy`.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `queue` is NULL.
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
/// - `NV_ERR_INVALID_PARAM_STRUCT`: `options->size` is smaller than the structure, or larger than any version of it can be.
/// - `NV_ERR_LIB_RM_VERSION_MISMATCH`: a field is set that a later version of the library added.
/// - `NV_ERR_INVALID_ARGUMENT`: an option has a value that it cannot have, or nvgpu does not take the time slice.
/// - `NV_ERR_INSUFFICIENT_PERMISSIONS`: another program manages how the GPU's time is shared.
/// - `NV_ERR_NOT_SUPPORTED`: `TEGRARM_QUEUE_COPY`, and the GPU has no copy engine.
/// - `NV_ERR_NO_MEMORY`: there is not enough memory.
/// - `NV_ERR_INSUFFICIENT_RESOURCES`: the GPU has no channel left, no handle is left, or the device made 65,535 queues.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_queue_create(
    device: *mut tegrarm_device,
    options: *const tegrarm_queue_options,
    queue: *mut *mut tegrarm_queue,
) -> NV_STATUS {
    status(|| {
        present(queue, "queue")?;
        let device = DEVICES.get(device)?;
        let plan = if options.is_null() {
            Plan::PLAIN
        } else {
            // SAFETY: `options` is valid for as many bytes as its first field says, as `tegrarm_queue_create` asks of its caller.
            unsafe { extended(options, "options") }?.plan()?
        };
        let made = QueueRef::open(&device, plan)?;
        let handle = match QUEUES.insert(made.clone()) {
            Ok(handle) => handle,
            Err(e) => {
                made.end()?;
                return Err(e);
            }
        };
        // SAFETY: `queue` is not NULL and so valid for writes, as `tegrarm_queue_create` asks of its caller.
        unsafe { give(queue, handle, "queue") }
    })
}

/// Ends a queue. The call waits up to ten seconds for work that has not finished; what is left then ends with the queue, and
/// its fences pass. Queues that wait for it go on.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `queue` is not a queue.
/// - `NV_ERR_INVALID_ARGUMENT`: `queue` is the one that its device was opened with, which ends with the device.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_queue_destroy(queue: *mut tegrarm_queue) -> NV_STATUS {
    status(|| {
        if QUEUES.get(queue)?.is_own() {
            fail!(NV_ERR_INVALID_ARGUMENT, "the device was opened with this queue: it ends with the device");
        }
        QUEUES.remove(queue)?.end()
    })
}

/// Writes the number of a queue to `*number`: 0 for the one that its device was opened with. Records of a profile have it,
/// and so do the upper 16 bits of its fences. A device never uses a number again.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `queue` is not a queue.
/// - `NV_ERR_INVALID_POINTER`: `number` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_queue_number(queue: *mut tegrarm_queue, number: *mut NvU32) -> NV_STATUS {
    status(|| {
        let found = QUEUES.get(queue)?.queue().number();
        // SAFETY: `number` is NULL or valid for writes, as `tegrarm_queue_number` asks of its caller.
        unsafe { give(number, found as NvU32, "number") }
    })
}

/// Lets a queue wait for a fence of another queue of its device: what it is given from now on starts when that work has
/// finished. The GPU waits, and the call returns at once.
///
/// If a fault stops the other queue, this one waits until the device is recovered or the other queue is destroyed.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `queue` is not a queue.
/// - `NV_ERR_INVALID_ARGUMENT`: the device never gave out `fence`.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the queue that is to wait.
/// - `NV_ERR_TIMEOUT`: the channel is full, and nothing finished for a minute.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_queue_after(queue: *mut tegrarm_queue, fence: NvU64) -> NV_STATUS {
    status(|| QUEUES.get(queue)?.after(fence))
}
