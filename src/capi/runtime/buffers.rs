//! Buffers, and copies into, out of and between them.

use super::super::guard::status;
use super::super::objects::{NV_STATUS, NvU32, NvU64};
use super::handles::{BUFFERS, DEVICES};
use super::opaque::{tegrarm_buffer, tegrarm_device};
use super::pointers::{give, give_any, present};
use crate::runtime::memory::Cache;
use crate::status::fail;
use std::ffi::c_void;
use std::sync::Arc;
use tegrarm_abi::rm::status::*;

/// How the CPU sees a buffer. The GPU sees what the CPU wrote either way. A value of `tegrarm_buffer_alloc`.
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub enum tegrarm_buffer_flags {
    /// Cached: for data that the CPU reads.
    TEGRARM_BUFFER_CACHED = 0,
    /// Write-combined: for data that the CPU only writes.
    TEGRARM_BUFFER_WRITE_COMBINED = 1,
}

const CACHED: NvU32 = tegrarm_buffer_flags::TEGRARM_BUFFER_CACHED as NvU32;
const WRITE_COMBINED: NvU32 = tegrarm_buffer_flags::TEGRARM_BUFFER_WRITE_COMBINED as NvU32;

/// Allocates `size` bytes that the CPU and the GPU share. All bytes are 0.
///
/// `flags` is one of `enum tegrarm_buffer_flags`. `*buffer` is a new handle. Free it with `tegrarm_buffer_free`.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `buffer` is NULL.
/// - `NV_ERR_INVALID_ARGUMENT`: `size` is 0, or `flags` is none of the values.
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
/// - `NV_ERR_NO_MEMORY`: there is not enough memory.
/// - `NV_ERR_INSUFFICIENT_RESOURCES`: no handle is left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_buffer_alloc(
    device: *mut tegrarm_device,
    size: NvU64,
    flags: NvU32,
    buffer: *mut *mut tegrarm_buffer,
) -> NV_STATUS {
    status(|| {
        present(buffer, "buffer")?;
        let cache = match flags {
            CACHED => Cache::Cached,
            WRITE_COMBINED => Cache::WriteCombined,
            other => fail!(
                NV_ERR_INVALID_ARGUMENT,
                "buffer flags {other:#x}: there are TEGRARM_BUFFER_CACHED (0) and TEGRARM_BUFFER_WRITE_COMBINED (1)"
            ),
        };
        let allocated = DEVICES.get(device)?.alloc(size, cache)?;
        // SAFETY: `buffer` is not NULL and so valid for writes, as `tegrarm_buffer_alloc` asks of its caller.
        unsafe { give(buffer, BUFFERS.insert(allocated)?, "buffer") }
    })
}

/// Frees a buffer when the work that the device was given before has finished. All pointers into the buffer are invalid
/// afterwards.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `buffer` is not a buffer.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_buffer_free(buffer: *mut tegrarm_buffer) -> NV_STATUS {
    status(|| BUFFERS.remove(buffer).map(drop))
}

/// Says where a buffer is. `*pointer` is its address for the CPU, and `*address` is its address for the GPU. Both are
/// the same number unless this process had that range in use. Each of the two may be NULL. The CPU may read what the
/// GPU wrote as soon as a wait for that work has returned.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `buffer` is not a buffer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_buffer_address(
    buffer: *mut tegrarm_buffer,
    pointer: *mut *mut c_void,
    address: *mut NvU64,
) -> NV_STATUS {
    status(|| {
        let b = BUFFERS.get(buffer)?;
        // SAFETY: `pointer` and `address` are NULL or valid for writes, as `tegrarm_buffer_address` asks of its
        // caller.
        unsafe {
            give_any(pointer, b.pointer() as *mut c_void);
            give_any(address, b.address());
        }
        Ok(())
    })
}

/// Waits for the work that the device was given before, then copies `size` bytes from `src` to `offset` of a buffer.
/// The CPU copies.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `buffer` is not a buffer.
/// - `NV_ERR_INVALID_POINTER`: `src` is NULL.
/// - `NV_ERR_INVALID_BASE`: the range lies outside the buffer.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_copy_in(
    buffer: *mut tegrarm_buffer,
    offset: NvU64,
    src: *const c_void,
    size: NvU64,
) -> NV_STATUS {
    status(|| {
        let b = BUFFERS.get(buffer)?;
        present(src, "src")?;
        let dst = b.ready(offset, size)? as *mut u8;
        // SAFETY: `ready` checked the range, `b` keeps it mapped; `src` is valid for reads of `size`
        // bytes, as `tegrarm_copy_in` asks of its caller, and may
        // itself be buffer memory: raw copies that allow overlap.
        unsafe { std::ptr::copy(src.cast::<u8>(), dst, size as usize) };
        Ok(())
    })
}

/// Waits for the work that the device was given before, then copies `size` bytes from `offset` of a buffer to `dst`.
/// The CPU copies.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `buffer` is not a buffer.
/// - `NV_ERR_INVALID_POINTER`: `dst` is NULL.
/// - `NV_ERR_INVALID_BASE`: the range lies outside the buffer.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_copy_out(
    buffer: *mut tegrarm_buffer,
    offset: NvU64,
    dst: *mut c_void,
    size: NvU64,
) -> NV_STATUS {
    status(|| {
        let b = BUFFERS.get(buffer)?;
        present(dst, "dst")?;
        let src = b.ready(offset, size)? as *const u8;
        // SAFETY: `ready` checked the range and `b` keeps it mapped; `dst` is valid for writes of `size` bytes, as
        // `tegrarm_copy_out` asks of its caller, and may itself be buffer memory: raw copies that allow overlap.
        unsafe { std::ptr::copy(src, dst.cast::<u8>(), size as usize) };
        Ok(())
    })
}

/// Copies between two buffers of a device. The GPU copies, in order with other work, and the call returns at once. If
/// `fence` is not NULL, `*fence` is what to wait for.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `dst` or `src` is not a buffer.
/// - `NV_ERR_INVALID_ARGUMENT`: the buffers belong to two devices, or the ranges overlap.
/// - `NV_ERR_INVALID_BASE`: a range lies outside its buffer.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the device.
/// - `NV_ERR_TIMEOUT`: the channel is full, and nothing finished for a minute. A copy of more than 1 GiB may have begun.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_copy(
    dst: *mut tegrarm_buffer,
    dst_offset: NvU64,
    src: *mut tegrarm_buffer,
    src_offset: NvU64,
    size: NvU64,
    fence: *mut NvU64,
) -> NV_STATUS {
    status(|| {
        let (dst, src) = (BUFFERS.get(dst)?, BUFFERS.get(src)?);
        if !Arc::ptr_eq(dst.device(), src.device()) {
            fail!(NV_ERR_INVALID_ARGUMENT, "the buffers belong to two devices");
        }
        let given = dst.device().copy(&dst, dst_offset, &src, src_offset, size)?;
        // SAFETY: `fence` is NULL or valid for writes, as `tegrarm_copy` asks of its caller.
        unsafe { give_any(fence, given) };
        Ok(())
    })
}
