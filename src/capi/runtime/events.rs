//! Events: when the GPU came to a point in its work.

use super::super::guard::status;
use super::super::objects::{NV_STATUS, NvU64};
use super::handles::{DEVICES, EVENTS, queue_of};
use super::opaque::{tegrarm_device, tegrarm_event, tegrarm_queue};
use super::pointers::{give, give_any, present};
use crate::runtime::device::event::Event;
use std::sync::Arc;
use tegrarm_abi::rm::status::*;
use tegrarm_rm::status::fail;

/// Makes an event of a device. `*event` is a new handle. End it with `tegrarm_event_destroy`.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `event` is NULL.
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
/// - `NV_ERR_NO_MEMORY`: there is not enough memory.
/// - `NV_ERR_INSUFFICIENT_RESOURCES`: no handle is left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_event_create(
    device: *mut tegrarm_device,
    event: *mut *mut tegrarm_event,
) -> NV_STATUS {
    status(|| {
        present(event, "event")?;
        let made = Event::new(&DEVICES.get(device)?)?;
        // SAFETY: `event` is not NULL and so valid for writes, as `tegrarm_event_create` asks of its caller.
        unsafe { give(event, EVENTS.insert(made)?, "event") }
    })
}

/// Ends an event and returns at once. Work of the GPU that would write its time is not disturbed.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `event` is not an event.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_event_destroy(event: *mut tegrarm_event) -> NV_STATUS {
    status(|| EVENTS.remove(event).map(drop))
}

/// Puts an event behind everything that a queue was given before. When that work has finished, the GPU writes its time
/// there. If `fence` is not NULL, the fence of the work is written to `*fence`. `queue` is a queue of the event's device. NULL
/// stands for the default queue, with which the device was opened.
///
/// An event may be recorded again and again. What counts is the last time.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `event` is not an event, or `queue` is neither NULL nor a queue.
/// - `NV_ERR_INVALID_ARGUMENT`: the event and the queue belong to two devices.
/// - `NV_ERR_NO_MEMORY`: there is not enough memory. The event stays where it was.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the queue.
/// - `NV_ERR_TIMEOUT`: the channel is full, and nothing finished for a minute.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_event_record(
    event: *mut tegrarm_event,
    queue: *mut tegrarm_queue,
    fence: *mut NvU64,
) -> NV_STATUS {
    status(|| {
        let event = EVENTS.get(event)?;
        let queue = queue_of(queue, event.device())?;
        if !Arc::ptr_eq(event.device(), queue.device()) {
            fail!(NV_ERR_INVALID_ARGUMENT, "the event and the queue belong to two devices");
        }
        let given = event.record(queue.queue())?;
        // SAFETY: `fence` is NULL or valid for writes, as `tegrarm_event_record` asks of its caller.
        unsafe { give_any(fence, given) };
        Ok(())
    })
}

/// Writes the time of an event to `*time_ns`, in nanoseconds of the GPU's clock. `tegrarm_device_time` says what
/// CLOCK_MONOTONIC is then. On an Orin the clock moves in steps of 32 nanoseconds.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `time_ns` is NULL.
/// - `NV_ERR_OBJECT_NOT_FOUND`: `event` is not an event.
/// - `NV_ERR_INVALID_STATE`: the event was never recorded.
/// - `NV_ERR_NOT_READY`: the GPU has not come there yet. Wait for the fence of `tegrarm_event_record`.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the queue before the GPU came there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_event_time(event: *mut tegrarm_event, time_ns: *mut NvU64) -> NV_STATUS {
    status(|| {
        present(time_ns, "time_ns")?;
        let time = EVENTS.get(event)?.time()?;
        // SAFETY: `time_ns` is not NULL and so valid for writes, as `tegrarm_event_time` asks of its caller.
        unsafe { give(time_ns, time, "time_ns") }
    })
}

/// Writes how many nanoseconds passed between two events to `*elapsed_ns`. It is negative if the GPU came to `end` before it
/// came to `start`. The events may be of two queues.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `elapsed_ns` is NULL.
/// - `NV_ERR_OBJECT_NOT_FOUND`: `start` or `end` is not an event.
/// - `NV_ERR_INVALID_ARGUMENT`: the events belong to two devices.
/// - `NV_ERR_INVALID_STATE`: an event was never recorded.
/// - `NV_ERR_NOT_READY`: the GPU has not come to both yet.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the queue before the GPU came there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_event_elapsed(
    start: *mut tegrarm_event,
    end: *mut tegrarm_event,
    elapsed_ns: *mut i64,
) -> NV_STATUS {
    status(|| {
        present(elapsed_ns, "elapsed_ns")?;
        let (start, end) = (EVENTS.get(start)?, EVENTS.get(end)?);
        if !Arc::ptr_eq(start.device(), end.device()) {
            fail!(NV_ERR_INVALID_ARGUMENT, "the events belong to two devices");
        }
        let elapsed = end.time()?.wrapping_sub(start.time()?).cast_signed();
        // SAFETY: `elapsed_ns` is not NULL and so valid for writes, as `tegrarm_event_elapsed` asks of its caller.
        unsafe { give(elapsed_ns, elapsed, "elapsed_ns") }
    })
}

/// Looks at the clock of the GPU and at that of the CPU together: when the GPU's was `*gpu_ns`, CLOCK_MONOTONIC was `*cpu_ns`,
/// give or take `*off_by_ns`. All three are nanoseconds. Each pointer may be NULL.
///
/// A time of the GPU, minus `*gpu_ns`, plus `*cpu_ns`, is a time of CLOCK_MONOTONIC. Linux adjusts CLOCK_MONOTONIC slowly to the time of the
/// network, and not the GPU's clock, so that a program that runs for long looks again from time to time.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_device_time(
    device: *mut tegrarm_device,
    gpu_ns: *mut NvU64,
    cpu_ns: *mut NvU64,
    off_by_ns: *mut NvU64,
) -> NV_STATUS {
    status(|| {
        let found = DEVICES.get(device)?.time()?;
        // SAFETY: each of the three is NULL or valid for writes, as `tegrarm_device_time` asks of its caller.
        unsafe {
            give_any(gpu_ns, found.gpu);
            give_any(cpu_ns, found.cpu);
            give_any(off_by_ns, found.off);
        }
        Ok(())
    })
}
