//! Fences for other drivers and of other drivers: syncpoints and Linux sync files.

use super::super::guard::status;
use super::super::objects::{NV_STATUS, NvU32, NvU64};
use super::handles::{DEVICES, QUEUES};
use super::opaque::{tegrarm_device, tegrarm_queue};
use super::pointers::{give, present};
use std::ffi::c_int;
use std::os::fd::{BorrowedFd, IntoRawFd};
use tegrarm_abi::rm::status::*;
use tegrarm_rm::rm::syncpoints::SyncPoint;
use tegrarm_rm::status::fail;

/// Expresses a fence as a value of a host1x syncpoint, which other drivers understand: cameras, encoders, displays and the queues of
/// other processes can wait until syncpoint `*id` has reached `*threshold`. Values are compared as 32-bit counters that wrap around.
///
/// The GPU increments the syncpoint after all work that the queue of the fence had before this call, not only after the fence. Make
/// the call directly after the work that is handed over. If a fault stops the queue, nvgpu lets the syncpoint pass every value, and
/// the work may be incomplete. `tegrarm_fence_query` then returns the fault.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `id` or `threshold` is NULL.
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
/// - `NV_ERR_INVALID_ARGUMENT`: the device never gave out `fence`, or its queue was destroyed.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the queue of the fence.
/// - `NV_ERR_NO_MEMORY`: all syncpoints of the system are in use.
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

/// Makes a Linux sync file of a fence, for other drivers and processes. `*fd` is a new descriptor, which the caller closes. `poll(2)`
/// reports it as readable when the work is done. V4L2 and DRM accept it, and it can be sent to another process.
///
/// The file waits for the syncpoint of `tegrarm_fence_syncpoint`, so everything that is said there holds here too.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `fd` is NULL.
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
/// - `NV_ERR_INVALID_ARGUMENT`: the device never gave out `fence`, or its queue was destroyed.
/// - `NV_ERR_NOT_SUPPORTED`: the system has no `/dev/host1x-fence`.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the queue of the fence.
/// - `NV_ERR_NO_MEMORY`: all syncpoints of the system are in use.
/// - `NV_ERR_OPERATING_SYSTEM`: the process has as many descriptors as it may have.
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

/// Lets a queue wait for a host1x syncpoint, which another driver or another process increments. Work that the queue gets after this
/// call starts when syncpoint `id` has reached `threshold`. The GPU waits, and the call returns at once.
///
/// If the syncpoint never reaches the value, the queue waits until it is destroyed.
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

/// Lets a queue wait for a Linux sync file of host1x, for example of a camera, an encoder, a display, or of the GPU's work in another
/// process. Work that the queue gets after this call starts when all fences of the file have passed. The GPU waits, and the call returns
/// at once.
///
/// The caller keeps `fd` and may close it after the call.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `queue` is not a queue.
/// - `NV_ERR_INVALID_ARGUMENT`: `fd` is not a descriptor of a sync file, or the sync file belongs to a driver other than host1x. A
///   program can wait for such a file with `poll(2)`.
/// - `NV_ERR_NOT_SUPPORTED`: the system has no `/dev/host1x-fence`.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the queue.
/// - `NV_ERR_TIMEOUT`: the channel is full, and nothing finished for a minute.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_queue_after_sync_file(queue: *mut tegrarm_queue, fd: c_int) -> NV_STATUS {
    status(|| {
        let queue = QUEUES.get(queue)?;
        // SAFETY: `fcntl` only asks whether the descriptor is open.
        if fd < 0 || unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
            fail!(NV_ERR_INVALID_ARGUMENT, "{fd} is not an open descriptor");
        }
        // SAFETY: the descriptor is open, and stays so during the call, as `tegrarm_queue_after_sync_file` asks of its caller.
        queue.after_sync_file(unsafe { BorrowedFd::borrow_raw(fd) })
    })
}
