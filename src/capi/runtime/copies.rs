//! Copies into, out of and between buffers, and fills, in the order of a queue.

use super::super::guard::status;
use super::super::objects::{NV_STATUS, NvU32, NvU64};
use super::handles::{BUFFERS, queue_of};
use super::opaque::{tegrarm_buffer, tegrarm_queue};
use super::pointers::{give_any, present};
use crate::runtime::memory::place::Place;
use std::ffi::c_void;

/// Copies between two buffers of a device, in order with the other work of a queue. The GPU copies, and the call returns at
/// once. If `fence` is not NULL, the fence of the work is written to `*fence`.
///
/// `queue` is a queue of the device. NULL stands for the default queue, with which the device was opened.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `dst` or `src` is not a buffer, or `queue` is neither NULL nor a queue.
/// - `NV_ERR_INVALID_ARGUMENT`: the queue and the buffers belong to different devices, or the ranges overlap.
/// - `NV_ERR_INVALID_BASE`: a range lies outside its buffer.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the queue.
/// - `NV_ERR_TIMEOUT`: the channel is full, and nothing finished for a minute. A copy of more than 1 GiB may have begun.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_copy(
    queue: *mut tegrarm_queue,
    dst: *mut tegrarm_buffer,
    dst_offset: NvU64,
    src: *mut tegrarm_buffer,
    src_offset: NvU64,
    size: NvU64,
    fence: *mut NvU64,
) -> NV_STATUS {
    status(|| {
        let (dst, src) = (BUFFERS.get(dst)?, BUFFERS.get(src)?);
        let given = queue_of(queue, dst.device())?.copy(&dst, dst_offset, &src, src_offset, size)?;
        // SAFETY: `fence` is NULL or valid for writes, as `tegrarm_copy` asks of its caller.
        unsafe { give_any(fence, given) };
        Ok(())
    })
}

/// Fills `size` bytes from `offset` of a buffer with the low `value_size` bytes of `value`: 1, 2 or 4. The GPU writes,
/// in order with the other work of a queue, and the call returns at once. If `fence` is not NULL, the fence of the work is
/// written to `*fence`.
///
/// `queue` is a queue of the buffer's device. NULL stands for the default queue, with which the device was opened.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `buffer` is not a buffer, or `queue` is neither NULL nor a queue.
/// - `NV_ERR_INVALID_ARGUMENT`: `value_size` is not 1, 2 or 4, the range does not begin and end with whole values, or the queue
///   and the buffer belong to two devices.
/// - `NV_ERR_INVALID_BASE`: the range lies outside the buffer.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the queue.
/// - `NV_ERR_TIMEOUT`: the channel is full, and nothing finished for a minute. More than 1 GiB may have begun.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_fill(
    queue: *mut tegrarm_queue,
    buffer: *mut tegrarm_buffer,
    offset: NvU64,
    size: NvU64,
    value: NvU32,
    value_size: NvU32,
    fence: *mut NvU64,
) -> NV_STATUS {
    status(|| {
        let buffer = BUFFERS.get(buffer)?;
        let given = queue_of(queue, buffer.device())?.fill(&buffer, offset, size, value, value_size)?;
        // SAFETY: `fence` is NULL or valid for writes, as `tegrarm_fill` asks of its caller.
        unsafe { give_any(fence, given) };
        Ok(())
    })
}

/// Copies `size` bytes from `src`, memory of the process, to `offset` of a buffer. The copy comes after all work that
/// the queue has, and before all later work of the queue.
///
/// `queue` is a queue of the buffer's device. NULL stands for the default queue, with which the device was opened.
///
/// If `fence` is NULL, the call returns when the bytes are copied, as cuMemcpyHtoD of CUDA does: nobody could know later when
/// `src` may change. Otherwise the call returns at once, as cuMemcpyHtoDAsync does. The fence of the work is written to
/// `*fence`, and `src` must not change until that fence has passed.
///
/// The CPU copies: it shares the buffer's memory with the GPU, so that a copy engine would need a second copy of `src`
/// in memory that it can reach. With a fence, up to 256 KiB are copied before the call returns if the queue has nothing to do.
/// Otherwise a thread of the library copies when all earlier work of the queue has finished.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `buffer` is not a buffer, or `queue` is neither NULL nor a queue.
/// - `NV_ERR_INVALID_POINTER`: `src` is NULL.
/// - `NV_ERR_INVALID_BASE`: the range lies outside the buffer.
/// - `NV_ERR_NOT_SUPPORTED`: the buffer has no pointer.
/// - `NV_ERR_INVALID_ARGUMENT`: the queue and the buffer belong to two devices.
/// - `NV_ERR_INSUFFICIENT_RESOURCES`: the system gives no thread.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the queue.
/// - `NV_ERR_TIMEOUT`: the channel is full, and nothing finished for a minute.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_copy_in(
    queue: *mut tegrarm_queue,
    buffer: *mut tegrarm_buffer,
    offset: NvU64,
    src: *const c_void,
    size: NvU64,
    fence: *mut NvU64,
) -> NV_STATUS {
    status(|| {
        let buffer = BUFFERS.get(buffer)?;
        let queue = queue_of(queue, buffer.device())?;
        present(src, "src")?;
        // SAFETY: `src` is valid for reads of `size` bytes until the call has returned or the fence has passed, as
        // `tegrarm_copy_in` asks of its caller. Nothing writes there.
        let from = unsafe { Place::foreign(src as usize) };
        if fence.is_null() {
            return queue.copy_in_and_wait(&buffer, offset, &from, size);
        }
        let given = queue.copy_in(&buffer, offset, &from, size)?;
        // SAFETY: `fence` is valid for writes, as `tegrarm_copy_in` asks of its caller.
        unsafe { give_any(fence, given) };
        Ok(())
    })
}

/// Copies `size` bytes from `offset` of a buffer to `dst`, memory of the process, as `tegrarm_copy_in` copies them the other
/// way. If `fence` is NULL, the bytes are in `dst` when the call returns. Otherwise they are there when the fence has passed,
/// and no other code may use `dst` until then.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `buffer` is not a buffer, or `queue` is neither NULL nor a queue.
/// - `NV_ERR_INVALID_POINTER`: `dst` is NULL.
/// - `NV_ERR_INVALID_BASE`: the range lies outside the buffer.
/// - `NV_ERR_NOT_SUPPORTED`: the buffer has no pointer.
/// - `NV_ERR_INVALID_ARGUMENT`: the queue and the buffer belong to two devices.
/// - `NV_ERR_INSUFFICIENT_RESOURCES`: the system gives no thread.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the queue.
/// - `NV_ERR_TIMEOUT`: the channel is full, and nothing finished for a minute.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_copy_out(
    queue: *mut tegrarm_queue,
    buffer: *mut tegrarm_buffer,
    offset: NvU64,
    dst: *mut c_void,
    size: NvU64,
    fence: *mut NvU64,
) -> NV_STATUS {
    status(|| {
        let buffer = BUFFERS.get(buffer)?;
        let queue = queue_of(queue, buffer.device())?;
        present(dst, "dst")?;
        // SAFETY: `dst` is valid for writes of `size` bytes until the call has returned or the fence has passed, as
        // `tegrarm_copy_out` asks of its caller.
        let to = unsafe { Place::foreign(dst as usize) };
        if fence.is_null() {
            return queue.copy_out_and_wait(&buffer, offset, &to, size);
        }
        let given = queue.copy_out(&buffer, offset, &to, size)?;
        // SAFETY: `fence` is valid for writes, as `tegrarm_copy_out` asks of its caller.
        unsafe { give_any(fence, given) };
        Ok(())
    })
}
