//! Fences of other drivers: syncpoints and Linux sync files.

use super::super::guard::status;
use super::super::objects::{NV_STATUS, NvU32, NvU64};
use super::handles::{DEVICES, QUEUES};
use super::opaque::{tegrarm_device, tegrarm_queue};
use super::pointers::{give, present};
use crate::rm::syncpoints::SyncPoint;
use crate::status::fail;
use std::ffi::c_int;
use std::os::fd::{BorrowedFd, IntoRawFd};
use tegrarm_abi::rm::status::*;

/// Gives a fence to other drivers as a syncpoint of host1x: cameras, encoders, displays and the queues of other processes can
/// wait until syncpoint `*id` has come to `*threshold`. The comparison is that of 32-bit counters that wrap around.
///
/// The GPU increments the syncpoint behind everything that the queue of the fence was given before this call, so that a program
/// makes the call directly behind the work that it hands over. If a fault stops the queue, the kernel lets the syncpoint
/// pass every value, and what was waited for may not be complete: `tegrarm_fence_query` says so.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `id` or `threshold` is NULL.
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
/// - `NV_ERR_INVALID_ARGUMENT`: the device never gave out `fence`, or its queue was destroyed.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the queue of the fence.
/// - `NV_ERR_NO_MEMORY`: the system has no syncpoint left.
/// - `NV_ERR_TIMEOUT`: the channel is full, and nothing finished for a minute.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_fence_syncpoint(
    device: *mut tegrarm_device,
    fence: NvU64,
    id: *mut NvU32,
    threshold: *mut NvU32,
) -> NV_STATUS {
    status(|| {
        present(id, "id")?;
        present(threshold, "threshold")?;
        let point = DEVICES.get(device)?.syncpoint(fence)?;
        // SAFETY: `id` is not NULL and so valid for writes, as `tegrarm_fence_syncpoint` asks of its caller.
        unsafe { give(id, point.id, "id") }?;
        // SAFETY: `threshold` is not NULL and so valid for writes, as `tegrarm_fence_syncpoint` asks of its caller.
        unsafe { give(threshold, point.threshold, "threshold") }
    })
}

/// Gives a fence to other drivers and processes as a Linux sync file. `*fd` is a new descriptor, which the caller closes. It
/// becomes readable for `poll(2)` when the work is done, V4L2 and DRM take it, and another process can be sent it.
///
/// What is said of `tegrarm_fence_syncpoint` holds here too: the file is of that syncpoint.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `fd` is NULL.
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
/// - `NV_ERR_INVALID_ARGUMENT`: the device never gave out `fence`, or its queue was destroyed.
/// - `NV_ERR_NOT_SUPPORTED`: the system has no `/dev/host1x-fence`.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the queue of the fence.
/// - `NV_ERR_NO_MEMORY`: the system has no syncpoint left.
/// - `NV_ERR_OPERATING_SYSTEM`: the process has no descriptor left.
/// - `NV_ERR_TIMEOUT`: the channel is full, and nothing finished for a minute.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_fence_sync_file(
    device: *mut tegrarm_device,
    fence: NvU64,
    fd: *mut c_int,
) -> NV_STATUS {
    status(|| {
        present(fd, "fd")?;
        let made = DEVICES.get(device)?.sync_file(fence)?;
        // SAFETY: `fd` is not NULL and so valid for writes, as `tegrarm_fence_sync_file` asks of its caller.
        unsafe { give(fd, made.into_raw_fd(), "fd") }
    })
}

/// Lets a queue wait for a syncpoint of host1x, which another driver or another process increments: what the queue is given
/// from now on starts when syncpoint `id` has come to `threshold`. The GPU waits, and the call returns at once.
///
/// A value to which nobody brings the syncpoint keeps the queue waiting until it is destroyed.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `queue` is not a queue.
/// - `NV_ERR_INVALID_ARGUMENT`: the system has no syncpoint `id`.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the queue.
/// - `NV_ERR_TIMEOUT`: the channel is full, and nothing finished for a minute.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_queue_after_syncpoint(queue: *mut tegrarm_queue, id: NvU32, threshold: NvU32) -> NV_STATUS {
    status(|| QUEUES.get(queue)?.after_syncpoints(&[SyncPoint { id, threshold }]))
}

/// Lets a queue wait for a Linux sync file of host1x: of a camera, an encoder, a display, or the GPU's work in another process.
/// What the queue is given from now on starts when all its fences have passed. The GPU waits, and the call returns at once.
///
/// `fd` stays the caller's, who may close it after the call.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `queue` is not a queue.
/// - `NV_ERR_INVALID_ARGUMENT`: `fd` is not a descriptor of a sync file, or it is one of another driver than host1x. `poll(2)`
///   waits for any sync file.
/// - `NV_ERR_NOT_SUPPORTED`: the system has no `/dev/host1x-fence`.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the queue.
/// - `NV_ERR_TIMEOUT`: the channel is full, and nothing finished for a minute.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_queue_after_sync_file(queue: *mut tegrarm_queue, fd: c_int) -> NV_STATUS {
    status(|| {
        let queue = QUEUES.get(queue)?;
        // SAFETY: asks only whether the descriptor is open.
        if fd < 0 || unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
            fail!(NV_ERR_INVALID_ARGUMENT, "{fd} is not an open descriptor");
        }
        // SAFETY: the descriptor is open, and stays so during the call, as `tegrarm_queue_after_sync_file` asks of its caller.
        queue.after_sync_file(unsafe { BorrowedFd::borrow_raw(fd) })
    })
}
