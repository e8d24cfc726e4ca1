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

/// Allocates `size` bytes that CPU and GPU share, zeroed.
///
/// `flags`: 0 cached, for data the CPU reads; 1 write-combined, for data it only writes. `*buffer` is a new handle;
/// free it with `tegrarm_buffer_free`. Errors: 0x57 no such device, 0x3D NULL, 0x1F a size of 0 or unknown flags, 0x51
/// out of memory.
///
/// # Safety
/// `buffer` is NULL or valid for writes.
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
            0 => Cache::Cached,
            1 => Cache::WriteCombined,
            other => fail!(NV_ERR_INVALID_ARGUMENT, "buffer flags {other:#x}: 0 cached, 1 write-combined"),
        };
        let allocated = DEVICES.get(device)?.alloc(size, cache)?;
        // SAFETY: `buffer` is not NULL and so valid for writes, as `tegrarm_buffer_alloc` asks of its caller.
        unsafe { give(buffer, BUFFERS.insert(allocated)?, "buffer") }
    })
}

/// Frees a buffer, after the work given so far. Pointers into it are invalid afterwards. Errors: 0x57 no such buffer.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_buffer_free(buffer: *mut tegrarm_buffer) -> NV_STATUS {
    status(|| BUFFERS.remove(buffer).map(drop))
}

/// Where a buffer is. `*pointer` is its CPU address, `*address` its GPU address: the same number, unless the process
/// had that range in use. Either may be NULL. The CPU may read what the GPU wrote once a wait for it has returned.
/// Errors: 0x57 no such buffer.
///
/// # Safety
/// `pointer` and `address` are NULL or valid for writes.
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

/// Waits for the work given so far, then copies `size` bytes to `offset` of a buffer.
///
/// Errors: 0x57 no such buffer, 0x3D NULL, 0x20 the range lies outside, 0x62 the device was stopped by a fault.
///
/// # Safety
/// `from` is valid for reads of `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_copy_in(
    buffer: *mut tegrarm_buffer,
    offset: NvU64,
    from: *const c_void,
    size: NvU64,
) -> NV_STATUS {
    status(|| {
        let b = BUFFERS.get(buffer)?;
        present(from, "from")?;
        let to = b.ready(offset, size)? as *mut u8;
        // SAFETY: `ready` checked the range, `b` keeps it mapped; `from` is valid for reads of `size`
        // bytes, as `tegrarm_copy_in` asks of its caller, and may
        // itself be buffer memory: raw copies that allow overlap.
        unsafe { std::ptr::copy(from.cast::<u8>(), to, size as usize) };
        Ok(())
    })
}

/// Waits for the work given so far, then copies `size` bytes from `offset` of a buffer. Errors as `tegrarm_copy_in`.
///
/// # Safety
/// `to` is valid for writes of `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_copy_out(
    buffer: *mut tegrarm_buffer,
    offset: NvU64,
    to: *mut c_void,
    size: NvU64,
) -> NV_STATUS {
    status(|| {
        let b = BUFFERS.get(buffer)?;
        present(to, "to")?;
        let from = b.ready(offset, size)? as *const u8;
        // SAFETY: `ready` checked the range and `b` keeps it mapped; `to` is valid for writes of `size` bytes, as
        // `tegrarm_copy_out` asks of its caller, and may itself be buffer memory: raw copies that allow overlap.
        unsafe { std::ptr::copy(from, to.cast::<u8>(), size as usize) };
        Ok(())
    })
}

/// Copies between two buffers of a device on the GPU, in order with other work. Returns at once; `*fence`, if not
/// NULL, is what to wait for.
///
/// Errors: 0x57 no such buffer, 0x1F buffers of two devices or ranges that overlap, 0x20 a range lies outside, 0x62 the
/// device was stopped by a fault.
///
/// # Safety
/// `fence` is NULL or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_copy(
    to: *mut tegrarm_buffer,
    to_offset: NvU64,
    from: *mut tegrarm_buffer,
    from_offset: NvU64,
    size: NvU64,
    fence: *mut NvU64,
) -> NV_STATUS {
    status(|| {
        let (to, from) = (BUFFERS.get(to)?, BUFFERS.get(from)?);
        if !Arc::ptr_eq(to.device(), from.device()) {
            fail!(NV_ERR_INVALID_ARGUMENT, "the buffers belong to two devices");
        }
        let given = to.device().copy(&to, to_offset, &from, from_offset, size)?;
        // SAFETY: `fence` is NULL or valid for writes, as `tegrarm_copy` asks of its caller.
        unsafe { give_any(fence, given) };
        Ok(())
    })
}
