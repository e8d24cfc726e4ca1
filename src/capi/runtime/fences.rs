//! Functions that make a fence, that wait for several fences, that look at a fence without waiting, and that have the library
//! report a fence.

use super::super::guard::{report, status};
use super::super::instance;
use super::super::objects::{NV_STATUS, NvU32, NvU64};
use super::super::shield;
use super::device::deadline;
use super::handles::{DEVICES, QUEUES};
use super::opaque::{tegrarm_device, tegrarm_queue};
use super::pointers::{give, give_any, present};
use crate::runtime::device::waits::wait_for_word;
use crate::runtime::memory::place::{Place, Width};
use std::ffi::{c_int, c_void};
use std::os::fd::IntoRawFd;
use tegrarm_abi::rm::status::*;
use tegrarm_rm::status::{RmResult, fail};

/// A list has at most this many fences.
pub const TEGRARM_WAIT_FENCES: u32 = 65536;

/// The type of a function that is called when a fence has passed. `status` is `NV_OK`, or what `tegrarm_wait` would
/// return. `user` is the argument of `tegrarm_fence_notify`.
#[allow(non_camel_case_types)]
pub type tegrarm_fence_callback =
    Option<unsafe extern "C-unwind" fn(fence: NvU64, status: NV_STATUS, user: *mut c_void)>;

/// # Safety
/// `fences` is NULL or valid for reads of `count` fences.
unsafe fn list(fences: *const NvU64, count: NvU32) -> RmResult<Vec<u64>> {
    if count > TEGRARM_WAIT_FENCES {
        fail!(
            NV_ERR_INVALID_ARGUMENT,
            "{count} fences: a list has at most TEGRARM_WAIT_FENCES ({TEGRARM_WAIT_FENCES})"
        );
    }
    if count == 0 {
        return Ok(Vec::new());
    }
    present(fences, "fences")?;
    // SAFETY: `fences` is not NULL and so valid for reads of `count` fences, as this function asks of its caller.
    Ok((0..count as usize).map(|at| unsafe { fences.add(at).read_unaligned() }).collect())
}

/// Writes the fence of the newest work of a queue to `*fence`. When that fence has passed, all work that the queue was given
/// before this call has finished.
///
/// `queue` is not NULL, because nothing else names a device. `tegrarm_device_queue` gives the default queue of a device.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `queue` is not a queue.
/// - `NV_ERR_INVALID_POINTER`: `fence` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_fence(queue: *mut tegrarm_queue, fence: *mut NvU64) -> NV_STATUS {
    status(|| {
        let last = QUEUES.get(queue)?.queue().fence();
        // SAFETY: `fence` is NULL or valid for writes, as `tegrarm_fence` asks of its caller.
        unsafe { give(fence, last, "fence") }
    })
}

/// Waits until all of `count` fences have passed: work of any queues of the device. `timeout_ns` is how long to wait at most, as
/// in `tegrarm_wait`. No fences have passed already.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
/// - `NV_ERR_INVALID_POINTER`: `fences` is NULL and `count` is not 0.
/// - `NV_ERR_INVALID_ARGUMENT`: the device never gave out one of the fences, or `count` is more than `TEGRARM_WAIT_FENCES`.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the queue of a fence.
/// - `NV_ERR_RESOURCE_LOST`: a fault stopped the queue of a fence before the work finished, and the device was recovered since.
/// - `NV_ERR_TIMEOUT`: the time is over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_wait_all(
    device: *mut tegrarm_device,
    fences: *const NvU64,
    count: NvU32,
    timeout_ns: NvU64,
) -> NV_STATUS {
    status(|| {
        // SAFETY: `fences` is NULL or valid for reads of `count` fences, as `tegrarm_wait_all` asks of its caller.
        let fences = unsafe { list(fences, count) }?;
        DEVICES.get(device)?.wait_all(&fences, deadline(timeout_ns))
    })
}

/// Waits until the word at `word` is at least `value`. The GPU writes it: it is a semaphore that a channel of the caller releases.
/// This is for programs that submit work to their channels by themselves. Whoever reads the word in a loop keeps a simulated GPU
/// from its work, which the same processors do; this call lets it work. On a board it reads in a loop for a millisecond, and then
/// it sleeps. `timeout_ns` is how long to wait at most, as in `tegrarm_wait`.
///
/// The call does not know which channel releases the word, and so it does not notice a fault. The channel's error notifier tells.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `word` is NULL.
/// - `NV_ERR_INVALID_ADDRESS`: `word` is not a multiple of eight.
/// - `NV_ERR_TIMEOUT`: the time is over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_wait_value(word: *const NvU64, value: NvU64, timeout_ns: NvU64) -> NV_STATUS {
    status(|| {
        present(word, "word")?;
        // SAFETY: `word` is not NULL and so valid for reads during the call, as `tegrarm_wait_value` asks of its caller.
        let place = unsafe { Place::foreign(word as usize) };
        place.check(Width::W8)?;
        wait_for_word(instance::current_kmd().as_deref(), &place, value, deadline(timeout_ns))
    })
}

/// Waits until one of `count` fences has passed. If `index` is not NULL, `*index` is its place in the list, from 0; the first
/// if several have passed. `timeout_ns` is how long to wait at most, as in `tegrarm_wait`.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
/// - `NV_ERR_INVALID_POINTER`: `fences` is NULL.
/// - `NV_ERR_INVALID_ARGUMENT`: `count` is 0 or more than `TEGRARM_WAIT_FENCES`, or the device never gave out one of the fences.
/// - `NV_ERR_RESET_REQUIRED`: no fence has passed, and a fault stopped the queue of one.
/// - `NV_ERR_RESOURCE_LOST`: no fence has passed, and the work of one was lost before the device was recovered.
/// - `NV_ERR_TIMEOUT`: the time is over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_wait_any(
    device: *mut tegrarm_device,
    fences: *const NvU64,
    count: NvU32,
    timeout_ns: NvU64,
    index: *mut NvU32,
) -> NV_STATUS {
    status(|| {
        // SAFETY: `fences` is NULL or valid for reads of `count` fences, as `tegrarm_wait_any` asks of its caller.
        let fences = unsafe { list(fences, count) }?;
        let at = DEVICES.get(device)?.wait_any(&fences, deadline(timeout_ns))?;
        // SAFETY: `index` is NULL or valid for writes, as `tegrarm_wait_any` asks of its caller.
        unsafe { give_any(index, at as NvU32) };
        Ok(())
    })
}

/// Writes whether a fence has passed to `*passed`, without waiting.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `passed` is NULL.
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
/// - `NV_ERR_INVALID_ARGUMENT`: the device never gave out `fence`.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the queue of the fence.
/// - `NV_ERR_RESOURCE_LOST`: a fault stopped the queue before the work finished, and the device was recovered since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_fence_query(
    device: *mut tegrarm_device,
    fence: NvU64,
    passed: *mut bool,
) -> NV_STATUS {
    status(|| {
        present(passed, "passed")?;
        let found = DEVICES.get(device)?.query(fence)?;
        // SAFETY: `passed` is not NULL and so valid for writes, as `tegrarm_fence_query` asks of its caller.
        unsafe { give(passed, found, "passed") }
    })
}

/// Has `callback` called, once, when a fence has passed or cannot pass any more. A thread of the library calls it, one after
/// another for all fences of a device, so that a callback returns soon. It may call any function but `tegrarm_device_close` and
/// `tegrarm_shutdown`. `tegrarm_last_error` says in it why `status` is not `NV_OK`. A device that is closed has it called before
/// `tegrarm_device_close` returns, with `NV_ERR_RESOURCE_LOST` if the work has not finished. `user` is passed on to the callback.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
/// - `NV_ERR_INVALID_POINTER`: `callback` is NULL.
/// - `NV_ERR_INVALID_ARGUMENT`: the device never gave out `fence`.
/// - `NV_ERR_INSUFFICIENT_RESOURCES`: the system gives no thread.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_fence_notify(
    device: *mut tegrarm_device,
    fence: NvU64,
    callback: tegrarm_fence_callback,
    user: *mut c_void,
) -> NV_STATUS {
    status(|| {
        let device = DEVICES.get(device)?;
        let Some(callback) = callback else { fail!(NV_ERR_INVALID_POINTER, "callback is NULL") };
        let user = user as usize;
        device.notify(fence, move |result| {
            let status = result.as_ref().map_or_else(report, |()| NV_OK);
            // SAFETY: `callback` is what `tegrarm_fence_notify` asks of its caller, and takes what the caller gave as `user`.
            shield::call("tegrarm_fence_notify", || unsafe { callback(fence, status, user as *mut c_void) });
        })
    })
}

/// Writes a new descriptor to `*fd` that becomes readable when a fence has passed or cannot pass any more, for `poll(2)` and its
/// kind; `tegrarm_fence_query` then says which. The caller closes it. It is an eventfd: a read gives 8 bytes and makes it
/// unreadable again.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `fd` is NULL.
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
/// - `NV_ERR_INVALID_ARGUMENT`: the device never gave out `fence`.
/// - `NV_ERR_OPERATING_SYSTEM`: the process has no descriptor left.
/// - `NV_ERR_INSUFFICIENT_RESOURCES`: the system gives no thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_fence_fd(device: *mut tegrarm_device, fence: NvU64, fd: *mut c_int) -> NV_STATUS {
    status(|| {
        present(fd, "fd")?;
        let made = DEVICES.get(device)?.pollable(fence)?;
        // SAFETY: `fd` is not NULL and so valid for writes, as `tegrarm_fence_fd` asks of its caller.
        unsafe { give(fd, made.into_raw_fd(), "fd") }
    })
}
