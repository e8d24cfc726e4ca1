//! Buffers.

use super::super::guard::status;
use super::super::objects::{NV_STATUS, NvU32, NvU64};
use super::handles::{BUFFERS, DEVICES};
use super::opaque::{tegrarm_buffer, tegrarm_device};
use super::pointers::{give, give_any, present};
use crate::runtime::device::buffer::Buffer;
use crate::runtime::memory::{Access, Cache};
use std::ffi::{c_int, c_void};
use std::os::fd::{BorrowedFd, IntoRawFd};
use tegrarm_abi::rm::status::*;
use tegrarm_rm::status::{RmResult, fail};

/// How a buffer is used: values of every `flags` of a buffer, to be combined with `|`. The GPU sees what the CPU wrote in
/// every case, and the CPU what the GPU wrote when a wait for that work has returned.
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub enum tegrarm_buffer_flags {
    /// Cached: for data that the CPU reads.
    TEGRARM_BUFFER_CACHED = 0,
    /// Write-combined: for data that the CPU only writes. Of no effect on memory that exists already.
    TEGRARM_BUFFER_WRITE_COMBINED = 1,
    /// The GPU only reads it: a store of a kernel stops the device with a fault.
    TEGRARM_BUFFER_GPU_READ_ONLY = 2,
    /// The CPU does not need it: it has no pointer.
    TEGRARM_BUFFER_NO_POINTER = 4,
}

const WRITE_COMBINED: NvU32 = tegrarm_buffer_flags::TEGRARM_BUFFER_WRITE_COMBINED as NvU32;
const GPU_READ_ONLY: NvU32 = tegrarm_buffer_flags::TEGRARM_BUFFER_GPU_READ_ONLY as NvU32;
const NO_POINTER: NvU32 = tegrarm_buffer_flags::TEGRARM_BUFFER_NO_POINTER as NvU32;

fn usage(flags: NvU32) -> RmResult<(Cache, Access)> {
    let has = |flag| flags & flag != 0;
    if has(!(WRITE_COMBINED | GPU_READ_ONLY | NO_POINTER)) {
        fail!(
            NV_ERR_INVALID_ARGUMENT,
            "buffer flags {flags:#x}: there are TEGRARM_BUFFER_WRITE_COMBINED (1), TEGRARM_BUFFER_GPU_READ_ONLY (2) and \
             TEGRARM_BUFFER_NO_POINTER (4)"
        );
    }
    let cache = if has(WRITE_COMBINED) { Cache::WriteCombined } else { Cache::Cached };
    Ok((cache, Access { read_only: has(GPU_READ_ONLY), cpu: !has(NO_POINTER) }))
}

/// Allocates `size` bytes that the CPU and the GPU share. All bytes are 0.
///
/// `flags` are values of `enum tegrarm_buffer_flags`. `*buffer` is a new handle. Free it with `tegrarm_buffer_free`. If
/// there is no memory, and buffers were freed that work of the GPU still uses, the call waits for that work.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `buffer` is NULL.
/// - `NV_ERR_INVALID_ARGUMENT`: `size` is 0, or `flags` has an unknown bit.
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
        let (cache, access) = usage(flags)?;
        let allocated = DEVICES.get(device)?.alloc_for(size, cache, access)?;
        // SAFETY: `buffer` is not NULL and so valid for writes, as `tegrarm_buffer_alloc` asks of its caller.
        unsafe { give(buffer, BUFFERS.insert(allocated)?, "buffer") }
    })
}

/// Reserves `size` bytes of the GPU's addresses for a buffer, without memory. `tegrarm_buffer_map` maps the memory of other buffers there,
/// so that an array can grow while its address stays. `size` is a multiple of 4096. `*buffer` is a new handle. Free it with
/// `tegrarm_buffer_free`, which also unmaps what is mapped.
///
/// All functions of buffers take the buffer and its parts. Where nothing is mapped, an access of the GPU is a fault, and a copy
/// by the CPU is refused with `NV_ERR_INVALID_BASE`. The pointer of the buffer is its address. Only where memory is mapped may the CPU
/// use it.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `buffer` is NULL.
/// - `NV_ERR_INVALID_ARGUMENT`: `size` is 0 or not a multiple of 4096.
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
/// - `NV_ERR_NO_MEMORY`: the GPU has not so many free addresses.
/// - `NV_ERR_INSUFFICIENT_RESOURCES`: no handle is left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_buffer_reserve(
    device: *mut tegrarm_device,
    size: NvU64,
    buffer: *mut *mut tegrarm_buffer,
) -> NV_STATUS {
    status(|| {
        present(buffer, "buffer")?;
        let reserved = DEVICES.get(device)?.reserve(size)?;
        // SAFETY: `buffer` is not NULL and so valid for writes, as `tegrarm_buffer_reserve` asks of its caller.
        unsafe { give(buffer, BUFFERS.insert(reserved)?, "buffer") }
    })
}

/// Maps `size` bytes of the memory of `src`, from `src_offset` on, at `offset` of `buffer`, which `tegrarm_buffer_reserve` made. Both show the
/// same bytes. The memory stays until it is unmapped and `src` is freed, in any order. Both offsets and `size` are
/// multiples of 4096. `flags` is 0 or `TEGRARM_BUFFER_GPU_READ_ONLY`, and has an effect on this mapping alone.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `buffer` or `src` is not a buffer.
/// - `NV_ERR_INVALID_ARGUMENT`: `size` is 0, or `flags` is something else.
/// - `NV_ERR_INVALID_OFFSET`: an offset or `size` is not a multiple of 4096.
/// - `NV_ERR_INVALID_BASE`: the bytes lie outside one of the buffers.
/// - `NV_ERR_STATE_IN_USE`: memory is mapped there already.
/// - `NV_ERR_NOT_SUPPORTED`: `buffer` has memory of its own; or `src` has none, is of this process or of another device, or consists of
///   several pieces because the kernel refused so many bytes at once.
/// - `NV_ERR_NO_MEMORY`: the kernel has no memory for the mapping, or the process has something else at the addresses.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_buffer_map(
    buffer: *mut tegrarm_buffer,
    offset: NvU64,
    src: *mut tegrarm_buffer,
    src_offset: NvU64,
    size: NvU64,
    flags: NvU32,
) -> NV_STATUS {
    status(|| {
        if flags & !GPU_READ_ONLY != 0 {
            fail!(NV_ERR_INVALID_ARGUMENT, "mapping flags {flags:#x}: there is TEGRARM_BUFFER_GPU_READ_ONLY (2)");
        }
        let (_, access) = usage(flags)?;
        let (buffer, src) = (BUFFERS.get(buffer)?, BUFFERS.get(src)?);
        buffer.map(offset, &src, src_offset, size, access)
    })
}

/// Unmaps the memory that `tegrarm_buffer_map` mapped in `size` bytes from `offset` of a buffer. The addresses stay reserved. The call waits
/// for the work that the device was given before, because that work may use the memory.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `buffer` is not a buffer, or nothing is mapped in these bytes.
/// - `NV_ERR_INVALID_BASE`: the bytes lie outside the buffer.
/// - `NV_ERR_INVALID_LIMIT`: the bytes begin or end inside a mapping, which can only be unmapped as a whole.
/// - `NV_ERR_NOT_SUPPORTED`: `tegrarm_buffer_reserve` did not make the buffer.
/// - `NV_ERR_STATE_IN_USE`: a replay or another thread copies the memory.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_buffer_unmap(buffer: *mut tegrarm_buffer, offset: NvU64, size: NvU64) -> NV_STATUS {
    status(|| BUFFERS.get(buffer)?.unmap(offset, size))
}

/// Makes a buffer of a dmabuf, without a copy: memory of a camera (V4L2, NvBufSurface), of an encoder, or of another
/// process. The buffer is as large as the dmabuf.
///
/// `fd` is a descriptor of the dmabuf. It still belongs to the caller, who may close it after the call. The program
/// that fills the memory says when it is ready, usually with a fence. `flags` are values of `enum
/// tegrarm_buffer_flags`; a dmabuf that the CPU cannot map needs `TEGRARM_BUFFER_NO_POINTER`. `*buffer` is a new
/// handle. Free it with `tegrarm_buffer_free`.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `buffer` is NULL.
/// - `NV_ERR_INVALID_ARGUMENT`: `fd` is not a descriptor of a dmabuf, or `flags` has an unknown bit.
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
/// - `NV_ERR_NO_MEMORY`: the GPU has no addresses left for it.
/// - `NV_ERR_INSUFFICIENT_RESOURCES`: no handle is left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_buffer_import(
    device: *mut tegrarm_device,
    fd: c_int,
    flags: NvU32,
    buffer: *mut *mut tegrarm_buffer,
) -> NV_STATUS {
    status(|| {
        present(buffer, "buffer")?;
        let (_, access) = usage(flags)?;
        let device = DEVICES.get(device)?;
        check_may_be_dmabuf(fd)?;
        // SAFETY: the descriptor is open, and stays so during the call, as `tegrarm_buffer_import` asks of its caller.
        let imported = device.import(unsafe { BorrowedFd::borrow_raw(fd) }, access)?;
        // SAFETY: `buffer` is not NULL and so valid for writes, as `tegrarm_buffer_import` asks of its caller.
        unsafe { give(buffer, BUFFERS.insert(imported)?, "buffer") }
    })
}

/// Refuses a descriptor that cannot be one of a dmabuf. The inode of a dmabuf has no type on a board, and that of a regular
/// file if the GPU is simulated. A descriptor that was opened with `O_PATH` cannot be used for anything.
fn check_may_be_dmabuf(fd: c_int) -> RmResult<()> {
    let mut found = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: both calls only ask about the descriptor, and `found` has room for the answer.
    let (flags, asked) = unsafe { (libc::fcntl(fd, libc::F_GETFL), libc::fstat(fd, found.as_mut_ptr())) };
    if flags < 0 || asked < 0 {
        fail!(NV_ERR_INVALID_ARGUMENT, "{fd} is not an open descriptor");
    }
    // SAFETY: the call succeeded and so has written the whole structure.
    let kind = match unsafe { found.assume_init() }.st_mode & libc::S_IFMT {
        _ if flags & libc::O_PATH != 0 => "was opened with O_PATH",
        libc::S_IFIFO => "is a pipe",
        libc::S_IFSOCK => "is a socket",
        libc::S_IFDIR => "is a directory",
        libc::S_IFCHR | libc::S_IFBLK => "is a device",
        _ => return Ok(()),
    };
    fail!(NV_ERR_INVALID_ARGUMENT, "descriptor {fd} {kind}: a buffer is made of a descriptor of a dmabuf")
}

/// Makes a buffer of memory of this process, without a copy: `size` bytes from `pages`. The GPU gets whole pages, so
/// that `pages` is a multiple of 4096, and it can also reach any other data in the last page.
///
/// The process must be able to write the pages, and keeps them mapped until `tegrarm_buffer_free` has returned. The
/// pointer of the buffer is `pages`. `flags` are values of `enum tegrarm_buffer_flags`. `*buffer` is a new handle. Free
/// it with `tegrarm_buffer_free`, which waits for the GPU: afterwards only the caller uses the pages.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `pages` or `buffer` is NULL.
/// - `NV_ERR_INVALID_ARGUMENT`: `size` is 0, or `flags` has an unknown bit.
/// - `NV_ERR_INVALID_ADDRESS`: `pages` is not a multiple of 4096, or a page is not mapped, cannot be written or belongs
///   to a device.
/// - `NV_ERR_INVALID_LIMIT`: no process has as many bytes.
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
/// - `NV_ERR_NO_MEMORY`: `size` is more than there is memory, or the GPU has no addresses left for it.
/// - `NV_ERR_INSUFFICIENT_RESOURCES`: no handle is left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_buffer_import_pages(
    device: *mut tegrarm_device,
    pages: *mut c_void,
    size: NvU64,
    flags: NvU32,
    buffer: *mut *mut tegrarm_buffer,
) -> NV_STATUS {
    status(|| {
        present(pages, "pages")?;
        present(buffer, "buffer")?;
        let (_, access) = usage(flags)?;
        let borrowed = DEVICES.get(device)?.borrow_pages(pages as u64, size, access)?;
        // SAFETY: `buffer` is not NULL and so valid for writes, as `tegrarm_buffer_import_pages` asks of its caller.
        unsafe { give(buffer, BUFFERS.insert(borrowed)?, "buffer") }
    })
}

/// Writes a new descriptor of a buffer's memory to `*fd`: a dmabuf, for other drivers and other processes. The caller
/// closes it. The memory stays as long as a process has a descriptor or a mapping of it, also when the buffer is
/// freed.
///
/// The descriptor is of the whole memory: `*offset` is where the buffer starts in it, which is 0 unless
/// `tegrarm_buffer_part` made it. `offset` may be NULL.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `fd` is NULL.
/// - `NV_ERR_OBJECT_NOT_FOUND`: `buffer` is not a buffer.
/// - `NV_ERR_NOT_SUPPORTED`: `tegrarm_buffer_import_pages` made the buffer. Nobody else could map its pages.
/// - `NV_ERR_OPERATING_SYSTEM`: the process has no descriptor left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_buffer_export(
    buffer: *mut tegrarm_buffer,
    fd: *mut c_int,
    offset: *mut NvU64,
) -> NV_STATUS {
    status(|| {
        present(fd, "fd")?;
        let b = BUFFERS.get(buffer)?;
        let exported = b.export()?;
        // SAFETY: `fd` is not NULL and so valid for writes, and `offset` is NULL or valid for writes, as
        // `tegrarm_buffer_export` asks of its caller.
        unsafe {
            give_any(offset, b.start());
            give(fd, exported.into_raw_fd(), "fd")
        }
    })
}

/// Makes a handle of a part of a buffer: `size` bytes from `offset`. `*part` is a buffer of its own, which is freed with
/// `tegrarm_buffer_free`. The memory stays until the last handle of it is freed, in any order.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `part` is NULL.
/// - `NV_ERR_OBJECT_NOT_FOUND`: `buffer` is not a buffer.
/// - `NV_ERR_INVALID_ARGUMENT`: `size` is 0.
/// - `NV_ERR_INVALID_BASE`: the part lies outside the buffer.
/// - `NV_ERR_INSUFFICIENT_RESOURCES`: no handle is left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_buffer_part(
    buffer: *mut tegrarm_buffer,
    offset: NvU64,
    size: NvU64,
    part: *mut *mut tegrarm_buffer,
) -> NV_STATUS {
    status(|| {
        present(part, "part")?;
        let made = BUFFERS.get(buffer)?.part(offset, size)?;
        // SAFETY: `part` is not NULL and so valid for writes, as `tegrarm_buffer_part` asks of its caller.
        unsafe { give(part, BUFFERS.insert(made)?, "part") }
    })
}

/// Frees a buffer and returns at once. Memory that work of the GPU may still use goes back to the system when the work
/// that the device was given before has finished. All pointers into the buffer are invalid afterwards, unless another
/// handle of the same memory is left.
///
/// Only for a buffer that `tegrarm_buffer_import_pages` made does the call wait for that work, because the pages are the
/// caller's again when it returns. A replay that copies them is destroyed before.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `buffer` is not a buffer.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_buffer_free(buffer: *mut tegrarm_buffer) -> NV_STATUS {
    status(|| BUFFERS.remove(buffer).map(Buffer::free))
}

/// Says how much memory there is: `*available` is how many bytes can be allocated, and `*total` is how many bytes there are.
/// The CPU and the GPU share them, so that other processes change `*available`. Each of the two may be NULL.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
/// - `NV_ERR_OPERATING_SYSTEM`: the system does not say it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_device_memory(
    device: *mut tegrarm_device,
    available: *mut NvU64,
    total: *mut NvU64,
) -> NV_STATUS {
    status(|| {
        let (left, all) = DEVICES.get(device)?.memory()?;
        // SAFETY: `available` and `total` are NULL or valid for writes, as `tegrarm_device_memory` asks of its caller.
        unsafe {
            give_any(available, left);
            give_any(total, all);
        }
        Ok(())
    })
}

/// Says where a buffer is. `*pointer` is its address for the CPU, and `*address` is its address for the GPU. Both are
/// the same number unless this process had that range in use. The pointer is NULL with `TEGRARM_BUFFER_NO_POINTER`. Each of the two may be NULL. The CPU may read what the
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
