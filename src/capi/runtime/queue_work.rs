//! Work for a queue that the program chooses.

use super::super::guard::status;
use super::super::objects::{NV_STATUS, NvU32, NvU64};
use super::handles::{BUFFERS, QUEUES};
use super::opaque::{tegrarm_buffer, tegrarm_queue};
use super::pointers::{give_any, present};
use crate::runtime::place::Place;
use std::ffi::c_void;

/// Makes a queue copy between two buffers. The GPU copies, and the call returns at once. If `fence` is not NULL, the
/// fence of the work is written to `*fence`. Both buffers must exist until that fence has passed.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `queue` is not a queue, or `dst` or `src` is not a buffer.
/// - `NV_ERR_INVALID_ARGUMENT`: the queue and the buffers belong to different devices, or the ranges overlap.
/// - `NV_ERR_INVALID_BASE`: a range lies outside its buffer.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the queue.
/// - `NV_ERR_TIMEOUT`: the channel is full, and nothing finished for a minute. A copy of more than 1 GiB may have begun.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_queue_copy(
    queue: *mut tegrarm_queue,
    dst: *mut tegrarm_buffer,
    dst_offset: NvU64,
    src: *mut tegrarm_buffer,
    src_offset: NvU64,
    size: NvU64,
    fence: *mut NvU64,
) -> NV_STATUS {
    status(|| {
        let (queue, dst, src) = (QUEUES.get(queue)?, BUFFERS.get(dst)?, BUFFERS.get(src)?);
        let given = queue.copy(&dst, dst_offset, &src, src_offset, size)?;
        // SAFETY: `fence` is NULL or valid for writes, as `tegrarm_queue_copy` asks of its caller.
        unsafe { give_any(fence, given) };
        Ok(())
    })
}

/// Makes a queue fill a range of a buffer, as `tegrarm_fill` does on the one that the device was opened with. If
/// `fence` is not NULL, the fence of the work is written to `*fence`.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `queue` is not a queue, or `buffer` is not a buffer.
/// - `NV_ERR_INVALID_ARGUMENT`: `value_size` is not 1, 2 or 4, the range does not begin and end with whole values, or the queue
///   and the buffer belong to two devices.
/// - `NV_ERR_INVALID_BASE`: the range lies outside the buffer.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the queue.
/// - `NV_ERR_TIMEOUT`: the channel is full, and nothing finished for a minute. More than 1 GiB may have begun.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_queue_fill(
    queue: *mut tegrarm_queue,
    buffer: *mut tegrarm_buffer,
    offset: NvU64,
    size: NvU64,
    value: NvU32,
    value_size: NvU32,
    fence: *mut NvU64,
) -> NV_STATUS {
    status(|| {
        let given = QUEUES.get(queue)?.fill(&*BUFFERS.get(buffer)?, offset, size, value, value_size)?;
        // SAFETY: `fence` is NULL or valid for writes, as `tegrarm_queue_fill` asks of its caller.
        unsafe { give_any(fence, given) };
        Ok(())
    })
}

/// Copies `size` bytes from `src`, memory of the process, to `offset` of a buffer. The copy comes after all work that
/// the queue has, and before all later work of the queue. If `fence` is not NULL, the fence of the work is written to
/// `*fence`. `src` must not change until that fence has passed.
///
/// The CPU copies: it shares the buffer's memory with the GPU, so that a copy engine would need a second copy of `src`
/// in memory that it can reach. If the queue has nothing to do, up to 256 KiB are copied before the call returns.
/// Otherwise a thread of the library copies when all earlier work of the queue has finished.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `queue` is not a queue, or `buffer` is not a buffer.
/// - `NV_ERR_INVALID_POINTER`: `src` is NULL.
/// - `NV_ERR_INVALID_BASE`: the range lies outside the buffer.
/// - `NV_ERR_NOT_SUPPORTED`: the buffer has no pointer.
/// - `NV_ERR_INVALID_ARGUMENT`: the queue and the buffer belong to two devices.
/// - `NV_ERR_INSUFFICIENT_RESOURCES`: the system gives no thread.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the queue.
/// - `NV_ERR_TIMEOUT`: the channel is full, and nothing finished for a minute.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_queue_copy_in(
    queue: *mut tegrarm_queue,
    buffer: *mut tegrarm_buffer,
    offset: NvU64,
    src: *const c_void,
    size: NvU64,
    fence: *mut NvU64,
) -> NV_STATUS {
    status(|| {
        let (queue, buffer) = (QUEUES.get(queue)?, BUFFERS.get(buffer)?);
        present(src, "src")?;
        // SAFETY: `src` is valid for reads of `size` bytes until the fence has passed, as `tegrarm_queue_copy_in` asks of its
        // caller. Nothing writes there.
        let from = unsafe { Place::foreign(src as usize) };
        let given = queue.copy_in(&buffer, offset, &from, size)?;
        // SAFETY: `fence` is NULL or valid for writes, as `tegrarm_queue_copy_in` asks of its caller.
        unsafe { give_any(fence, given) };
        Ok(())
    })
}

/// Copies `size` bytes from `offset` of a buffer to `dst`, memory of the process, as `tegrarm_queue_copy_in` copies
/// them the other way. No other code may use `dst` until the fence has passed.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `queue` is not a queue, or `buffer` is not a buffer.
/// - `NV_ERR_INVALID_POINTER`: `dst` is NULL.
/// - `NV_ERR_INVALID_BASE`: the range lies outside the buffer.
/// - `NV_ERR_NOT_SUPPORTED`: the buffer has no pointer.
/// - `NV_ERR_INVALID_ARGUMENT`: the queue and the buffer belong to two devices.
/// - `NV_ERR_INSUFFICIENT_RESOURCES`: the system gives no thread.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the queue.
/// - `NV_ERR_TIMEOUT`: the channel is full, and nothing finished for a minute.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_queue_copy_out(
    queue: *mut tegrarm_queue,
    buffer: *mut tegrarm_buffer,
    offset: NvU64,
    dst: *mut c_void,
    size: NvU64,
    fence: *mut NvU64,
) -> NV_STATUS {
    status(|| {
        let (queue, buffer) = (QUEUES.get(queue)?, BUFFERS.get(buffer)?);
        present(dst, "dst")?;
        // SAFETY: `dst` is valid for writes of `size` bytes until the fence has passed, as `tegrarm_queue_copy_out` asks of its
        // caller.
        let to = unsafe { Place::foreign(dst as usize) };
        let given = queue.copy_out(&buffer, offset, &to, size)?;
        // SAFETY: `fence` is NULL or valid for writes, as `tegrarm_queue_copy_out` asks of its caller.
        unsafe { give_any(fence, given) };
        Ok(())
    })
}
