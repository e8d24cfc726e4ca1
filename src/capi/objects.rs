//! The object door: RM's verbs.

use super::guard::status;
use super::instance;
use crate::rm::{DmaRequest, MapRequest, MemoryRequest, user};
use crate::status::{RmError, RmResult, fail};
use std::ffi::c_void;
use tegrarm_abi::rm::status::*;

/// RM handle: names an object within a client, or a client.
pub type NvHandle = u32;
/// 32-bit unsigned integer.
pub type NvU32 = u32;
/// 64-bit unsigned integer.
pub type NvU64 = u64;
/// Result of a Resource Manager call; 0 is success.
#[allow(non_camel_case_types)]
pub type NV_STATUS = u32;

/// Copies `len` bytes in, calls, and copies them out again if that succeeded.
///
/// # Safety
/// `params` is valid for reads and writes of `len` bytes, or `len` is 0.
unsafe fn with_params(params: *mut c_void, len: usize, call: impl FnOnce(&mut [u8]) -> RmResult<()>) -> RmResult<()> {
    // SAFETY: each copy has `len` bytes, and `params` is valid for as many, as this function's caller promises.
    unsafe {
        match len {
            0 => call(&mut []),
            // The usual small sizes, known to the compiler: no call of memcpy, nothing to zero.
            4 => with_copy(params, &mut [0; 4], call),
            8 => with_copy(params, &mut [0; 8], call),
            16 => with_copy(params, &mut [0; 16], call),
            _ => user::with_room(len, |copy| with_copy(params, copy, call)),
        }
    }
}

/// # Safety
/// `params` is valid for reads and writes of as many bytes as `copy` has.
#[inline]
unsafe fn with_copy(
    params: *mut c_void,
    copy: &mut [u8],
    call: impl FnOnce(&mut [u8]) -> RmResult<()>,
) -> RmResult<()> {
    // SAFETY: valid for reads, as this function's caller promises; the copy is ours, so the two do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(params.cast::<u8>(), copy.as_mut_ptr(), copy.len()) };
    call(copy)?;
    // SAFETY: valid for writes, as this function's caller promises; the copy is ours, so the two do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(copy.as_ptr(), params.cast::<u8>(), copy.len()) };
    Ok(())
}

/// Reads an in-out argument.
///
/// # Safety
/// `p` is NULL or valid for reads.
unsafe fn load<T: Copy>(p: *const T, name: &str) -> RmResult<T> {
    if p.is_null() {
        return Err(null(name));
    }
    // SAFETY: `p` is not NULL and so valid for reads, as this function asks of its caller; alignment is not assumed.
    Ok(unsafe { p.read_unaligned() })
}

/// Writes an in-out argument that [`load`] has read.
///
/// # Safety
/// `p` is valid for writes.
unsafe fn store<T>(p: *mut T, value: T) {
    // SAFETY: `p` is valid for writes, as this function asks of its caller; alignment is not assumed.
    unsafe { p.write_unaligned(value) };
}

#[cold]
fn null(name: &str) -> RmError {
    RmError::new(NV_ERR_INVALID_POINTER, format!("{name} is NULL"))
}

/// Allocates an RM object.
///
/// A client is made with `hClient` and `hParent` 0 and class 0x41 (or 0x0, 0x1); everything else below a client.
/// `*phObject` is the handle to use, or 0 to let the library choose; the handle is written back. `pAllocParams` are the
/// class's parameters, read and written back; `paramsSize` 0 stands for the class's own size. The object belongs to
/// the client until `rm_free` of it, its parent or the client.
///
/// Thread-safe. A failed call leaves no trace. Errors, first failing check: 0x22 unknown class, 0x1F parameters
/// missing, 0x3A their size, 0x33 unknown client, 0x23 a client of another process, 0x57 unknown parent, 0x36 wrong
/// parent, 0x16 too deep, 0x33 reserved handle, 0x19 handle in use, then the class's own; 0x51 means out of memory.
///
/// # Safety
/// Pointers are NULL or valid for what they are said to point at.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_alloc(
    hClient: NvHandle,
    hParent: NvHandle,
    phObject: *mut NvHandle,
    hClass: NvU32,
    pAllocParams: *mut c_void,
    paramsSize: NvU32,
) -> NV_STATUS {
    status(|| {
        // SAFETY: `phObject` is NULL or valid for reads, as `rm_alloc` asks of its caller.
        let wanted = unsafe { load(phObject, "phObject") }?;
        let rm = instance::get()?;
        let prepared = rm.prepare_alloc(hClass, !pAllocParams.is_null(), paramsSize)?;
        let mut handle = 0;
        // SAFETY: the length is the class's, which is what the caller promises to pass; 0 without parameters.
        unsafe {
            with_params(pAllocParams, prepared.params_len(), |params| {
                handle = rm.alloc(prepared, hClient, hParent, wanted, params)?;
                Ok(())
            })
        }?;
        // SAFETY: read above.
        unsafe { store(phObject, handle) };
        Ok(())
    })
}

/// Sends a control command to an object.
///
/// `pParams` are the command's parameters, read and, on success, written back. Command 0 does nothing. Thread-safe;
/// no lock is held while the kernel works.
///
/// Errors: 0x1F when exactly one of `pParams` and `paramsSize` is there, 0x23 unknown client, 0x57 unknown object, 0x56
/// a command this object does not have, 0x3A a wrong size, then the command's own.
///
/// # Safety
/// `pParams` is NULL or valid for reads and writes of `paramsSize` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_control(
    hClient: NvHandle,
    hObject: NvHandle,
    cmd: NvU32,
    pParams: *mut c_void,
    paramsSize: NvU32,
) -> NV_STATUS {
    status(|| {
        let rm = instance::get()?;
        let prepared = rm.prepare_control(hClient, hObject, cmd, !pParams.is_null(), paramsSize)?;
        // SAFETY: `pParams` is valid for `paramsSize` bytes, as `rm_control` asks of its caller, or `paramsSize` is 0: it was just
        // found to be a size the command takes.
        unsafe { with_params(pParams, paramsSize as usize, |params| rm.control(&prepared, params)) }
    })
}

/// Frees an object, its children and whatever depends on it. `hParent` is ignored, as in RM.
///
/// Freed memory leaves every CPU and GPU address it was mapped at; a client's end frees everything it had. Freeing an
/// unknown object is no error. Thread-safe. Errors: 0x33 unknown client, 0x23 a client of another process.
#[unsafe(no_mangle)]
pub extern "C" fn rm_free(hClient: NvHandle, hParent: NvHandle, hObject: NvHandle) -> NV_STATUS {
    let _ = hParent;
    status(|| instance::get()?.free(hClient, hObject))
}

/// Makes another handle for a memory object, possibly of another client of this process.
///
/// Both handles own the memory: it is freed with the last one. `*phObject` as in `rm_alloc`. `flags` are ignored.
/// Thread-safe. Errors: 0x1F for anything but memory, otherwise as `rm_alloc`.
///
/// # Safety
/// `phObject` is NULL or valid for reads and writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_dup_object(
    hClient: NvHandle,
    hParent: NvHandle,
    phObject: *mut NvHandle,
    hClientSrc: NvHandle,
    hObjectSrc: NvHandle,
    flags: NvU32,
) -> NV_STATUS {
    let _ = flags;
    status(|| {
        // SAFETY: `phObject` is NULL or valid for reads, as `rm_dup_object` asks of its caller.
        let wanted = unsafe { load(phObject, "phObject") }?;
        let handle = instance::get()?.dup_object(hClient, hParent, wanted, hClientSrc, hObjectSrc)?;
        // SAFETY: read above.
        unsafe { store(phObject, handle) };
        Ok(())
    })
}

/// Registers pages of this process as a memory object (class 0x71), or allocates system memory (class 0x3E).
///
/// For 0x71, `*ppAddress` is the first page, `*pLimit` the size minus one, and `flags` must say location PCI (0) and
/// NO_MAP (1 << 30). The pages stay the caller's, at the same address; anonymous shared pages are exchanged there for
/// GPU memory with the same contents. For 0x3E without NO_MAP the memory is mapped and `*ppAddress` written.
///
/// Thread-safe. Errors: 0x22 another class, 0x29 flags, 0x56 an address off page boundaries, 0x2E a size of 0, 0x1E
/// pages that cannot be used; otherwise as `rm_alloc`.
///
/// # Safety
/// Pointers are NULL or valid for reads and writes; nothing else accesses the pages during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_alloc_memory(
    hClient: NvHandle,
    hParent: NvHandle,
    phMemory: *mut NvHandle,
    hClass: NvU32,
    flags: NvU32,
    ppAddress: *mut *mut c_void,
    pLimit: *mut NvU64,
) -> NV_STATUS {
    status(|| {
        // SAFETY: `phMemory` is NULL or valid for reads; `ppAddress` is NULL or valid for reads; `pLimit` is NULL or
        // valid for reads, as `rm_alloc_memory` asks of its caller.
        let (wanted, address, limit) =
            unsafe { (load(phMemory, "phMemory")?, load(ppAddress, "ppAddress")?, load(pLimit, "pLimit")?) };
        let request = MemoryRequest { class: hClass, flags, address: address as u64, limit };
        let (handle, mapped) = instance::get()?.alloc_memory(hClient, hParent, wanted, &request)?;
        // SAFETY: read above.
        unsafe {
            store(phMemory, handle);
            if let Some(addr) = mapped {
                store(ppAddress, addr as *mut c_void);
            }
        }
        Ok(())
    })
}

/// Maps `length` bytes of memory from `offset`, or the doorbell page of a usermode object, into this process.
///
/// `*ppAddress` NULL: memory goes to its GPU address if the library chose that one and the range is free, otherwise
/// anywhere. Not NULL: exactly there, replacing what is there; the range is the caller's. The address is written back.
/// The mapping ends with `rm_unmap_memory` or when the memory is freed. `hDevice` is a device or subdevice. Of `flags`,
/// the access bits (0, 1) count: 1 is read-only.
///
/// Thread-safe. Errors: 0x23, 0x57, 0x26 `hDevice` is none, 0x31 not mappable, 0x2E a length of 0, 0x20 beyond the end,
/// 0x37 an offset off page boundaries, 0x1E an address off page boundaries, 0x51, 0x59.
///
/// # Safety
/// `ppAddress` is NULL or valid for reads and writes; a range it names may be replaced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_map_memory(
    hClient: NvHandle,
    hDevice: NvHandle,
    hMemory: NvHandle,
    offset: NvU64,
    length: NvU64,
    ppAddress: *mut *mut c_void,
    flags: NvU32,
) -> NV_STATUS {
    status(|| {
        // SAFETY: `ppAddress` is NULL or valid for reads, as `rm_map_memory` asks of its caller.
        let at = unsafe { load(ppAddress, "ppAddress") }? as usize;
        let at = (at != 0).then_some(at);
        let request = MapRequest { memory: hMemory, offset, length, at, flags };
        let addr = instance::get()?.map_memory(hClient, hDevice, &request)?;
        // SAFETY: read above.
        unsafe { store(ppAddress, addr as *mut c_void) };
        Ok(())
    })
}

/// Removes a mapping that `rm_map_memory` made. `flags` are ignored.
///
/// Thread-safe. Errors: 0x57 when nothing of that object is mapped at `pAddress`; handles as `rm_map_memory`.
#[unsafe(no_mangle)]
pub extern "C" fn rm_unmap_memory(
    hClient: NvHandle,
    hDevice: NvHandle,
    hMemory: NvHandle,
    pAddress: *mut c_void,
    flags: NvU32,
) -> NV_STATUS {
    let _ = flags;
    status(|| instance::get()?.unmap_memory(hClient, hDevice, hMemory, pAddress as usize))
}

/// Maps `length` bytes of memory from `offset` into the VA space of a mapper (class 0x70 or 0x50A0).
///
/// With bit 15 of `flags` set the GPU address is `*pDmaOffset`, otherwise it is chosen; it is written back either way.
/// The mapping ends with `rm_unmap_memory_dma` or when the memory is freed. The GPU must be done with it by then.
///
/// Thread-safe. Errors: 0x33 `hDma` is no mapper, 0x31 `hMemory` is no memory, 0x2E a length of 0, 0x20 beyond the end,
/// 0x37 off page boundaries, 0x5B outside the GPU's reach, 0x5D in a shader window, 0x1A occupied, 0x51 no room.
///
/// # Safety
/// `pDmaOffset` is NULL or valid for reads and writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_map_memory_dma(
    hClient: NvHandle,
    hDevice: NvHandle,
    hDma: NvHandle,
    hMemory: NvHandle,
    offset: NvU64,
    length: NvU64,
    flags: NvU32,
    pDmaOffset: *mut NvU64,
) -> NV_STATUS {
    status(|| {
        // SAFETY: `pDmaOffset` is NULL or valid for reads, as `rm_map_memory_dma` asks of its caller.
        let dma_offset = unsafe { load(pDmaOffset, "pDmaOffset") }?;
        let request = DmaRequest { dma: hDma, memory: hMemory, offset, length, flags, dma_offset };
        let va = instance::get()?.map_memory_dma(hClient, hDevice, &request)?;
        // SAFETY: read above.
        unsafe { store(pDmaOffset, va) };
        Ok(())
    })
}

/// Removes the GPU mapping of a memory object that starts at `dmaOffset`. `flags` are ignored.
///
/// Does not wait for the GPU. Thread-safe. Errors: 0x57 when there is none; handles as `rm_map_memory_dma`.
#[unsafe(no_mangle)]
pub extern "C" fn rm_unmap_memory_dma(
    hClient: NvHandle,
    hDevice: NvHandle,
    hDma: NvHandle,
    hMemory: NvHandle,
    flags: NvU32,
    dmaOffset: NvU64,
) -> NV_STATUS {
    let _ = flags;
    status(|| {
        if hDma == 0 {
            fail!(NV_ERR_INVALID_OBJECT_HANDLE, "hDma is 0: name the mapper");
        }
        instance::get()?.unmap_memory_dma(hClient, hDevice, hDma, hMemory, dmaOffset)
    })
}
