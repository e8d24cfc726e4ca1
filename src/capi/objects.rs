//! The object door: RM's verbs.

use super::guard::status;
use super::instance;
use std::ffi::c_void;
use tegrarm_abi::rm::status::*;
use tegrarm_rm::rm::{DmaRequest, MapRequest, MemoryRequest, user};
use tegrarm_rm::status::{RmError, RmResult, fail};

/// A handle of the Resource Manager: the number of a client, or of an object of a client.
pub type NvHandle = u32;
/// An unsigned integer of 32 bits.
pub type NvU32 = u32;
/// An unsigned integer of 64 bits.
pub type NvU64 = u64;
/// The result of a call: `NV_OK`, or one of the other statuses of tegrarm_status.h.
#[allow(non_camel_case_types)]
pub type NV_STATUS = u32;

/// Copies `len` bytes in, runs `call` on them, and copies them out again if `call` succeeds.
///
/// # Safety
/// `params` is valid for reads and writes of `len` bytes, or `len` is 0.
unsafe fn with_params(params: *mut c_void, len: usize, call: impl FnOnce(&mut [u8]) -> RmResult<()>) -> RmResult<()> {
    // SAFETY: each copy has `len` bytes, and `params` is valid for as many, as this function's caller promises.
    unsafe {
        match len {
            0 => call(&mut []),
            // These are the usual small sizes. The compiler knows them, so it needs no call of memcpy and no zeroed
            // buffer.
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
    // SAFETY: `params` is valid for reads, as this function's caller promises. The copy belongs to this function, so
    // the two do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(params.cast::<u8>(), copy.as_mut_ptr(), copy.len()) };
    call(copy)?;
    // SAFETY: `params` is valid for writes, as this function's caller promises. The copy belongs to this function, so
    // the two do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(copy.as_ptr(), params.cast::<u8>(), copy.len()) };
    Ok(())
}

/// Reads an argument that is both input and output.
///
/// # Safety
/// `p` is NULL or valid for reads.
unsafe fn load<T: Copy>(p: *const T, name: &str) -> RmResult<T> {
    if p.is_null() {
        return Err(null(name));
    }
    // SAFETY: `p` is not NULL, so it is valid for reads, as this function asks of its caller. Alignment is not assumed.
    Ok(unsafe { p.read_unaligned() })
}

/// Writes an argument that [`load`] has read.
///
/// # Safety
/// `p` is valid for writes.
unsafe fn store<T>(p: *mut T, value: T) {
    // SAFETY: `p` is valid for writes, as this function asks of its caller. Alignment is not assumed.
    unsafe { p.write_unaligned(value) };
}

#[cold]
fn null(name: &str) -> RmError {
    RmError::new(NV_ERR_INVALID_POINTER, format!("{name} is NULL"))
}

/// Allocates an object of the Resource Manager.
///
/// A client is allocated with `hClient` and `hParent` 0 and the class `NV01_ROOT_CLIENT`, `NV01_ROOT` or
/// `NV01_ROOT_NON_PRIV`. Every other object is allocated below its parent: `hParent` is the parent's handle, and 0
/// stands for the client itself. `*phObject` is the handle that the object gets. If it is 0, the library chooses a
/// handle. The handle is written back.
///
/// `pAllocParams` points at the parameters of the class. They are read, and written back on success. `paramsSize` is
/// their size in bytes, and 0 stands for the size of driver 570. A class without parameters takes NULL and 0.
///
/// The object lives until `rm_free` frees it, its parent or its client. A failed call leaves nothing behind.
///
/// Errors, in the order of the checks:
/// - `NV_ERR_INVALID_POINTER`: `phObject` is NULL.
/// - `NV_ERR_INVALID_CLASS`: the library has no class `hClass`.
/// - `NV_ERR_INVALID_ARGUMENT`: the class needs parameters, and `pAllocParams` is NULL.
/// - `NV_ERR_INVALID_PARAM_STRUCT`: `paramsSize` is no size that the parameters have in any driver.
/// - `NV_ERR_CARD_NOT_PRESENT`, `NV_ERR_INSUFFICIENT_PERMISSIONS`: the GPU cannot be opened for a new client.
/// - `NV_ERR_INVALID_OBJECT_HANDLE`: there is no client `hClient`.
/// - `NV_ERR_INVALID_CLIENT`: the client belongs to the process from which this process was forked.
/// - `NV_ERR_OBJECT_NOT_FOUND`: there is no object `hParent`.
/// - `NV_ERR_INVALID_OBJECT_PARENT`: an object of this class cannot have this parent.
/// - `NV_ERR_ILLEGAL_ACTION`: the object would be more than six levels below its client.
/// - `NV_ERR_INVALID_OBJECT_HANDLE`: `*phObject` is a number that is reserved for clients.
/// - `NV_ERR_INSERT_DUPLICATE_NAME`: another object has the handle `*phObject`.
/// - `NV_ERR_INSUFFICIENT_RESOURCES`: no handle is left.
///
/// Then the class checks its parameters:
/// - `NV_ERR_NOT_SUPPORTED`: this GPU does not have what an object of the class represents.
/// - `NV_ERR_INVALID_ARGUMENT`: a parameter has a value that it cannot have, or two parameters contradict each other.
/// - `NV_ERR_INVALID_DEVICE`: a parameter names a device other than 0.
/// - `NV_ERR_OBJECT_NOT_FOUND`, `NV_ERR_INVALID_CLIENT`: a parameter names an object or a client that does not exist.
/// - `NV_ERR_INVALID_OBJECT`: a parameter names an object of the wrong kind.
/// - `NV_ERR_INVALID_OFFSET`: the GPFIFO or USERD of a channel is not aligned or does not lie in a mapping.
/// - `NV_ERR_OUT_OF_RANGE`: the GPU does not have the addresses.
/// - `NV_ERR_INSUFFICIENT_RESOURCES`: the GPU has no channel or subcontext left.
/// - `NV_ERR_NO_MEMORY`: there is not enough memory, or there are not enough GPU addresses.
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
        // SAFETY: the length is 0 without parameters. Otherwise it is that of the class's parameters, for which
        // `pAllocParams` is valid, as `rm_alloc` asks of its caller.
        unsafe {
            with_params(pAllocParams, prepared.params_len(), |params| {
                handle = rm.alloc(prepared, hClient, hParent, wanted, params)?;
                Ok(())
            })
        }?;
        // SAFETY: `phObject` was read above, so it is valid for writes too.
        unsafe { store(phObject, handle) };
        Ok(())
    })
}

/// Sends a control command to an object.
///
/// `pParams` points at the parameters of the command, `paramsSize` bytes. They are read, and written back on success. A
/// command without parameters takes NULL and 0. The command 0 does nothing and succeeds. The library holds no lock
/// while a driver works.
///
/// Errors, in the order of the checks:
/// - `NV_ERR_INVALID_ARGUMENT`: `pParams` is NULL and `paramsSize` is not 0, or the other way round, or `paramsSize` is
///   more than 1 MiB.
/// - `NV_ERR_INVALID_CLIENT`: there is no client `hClient`, or it belongs to the process from which this process was
///   forked.
/// - `NV_ERR_OBJECT_NOT_FOUND`: there is no object `hObject`.
/// - `NV_ERR_NOT_SUPPORTED`: objects of this kind do not have the command, or this GPU cannot do what it asks for.
/// - `NV_ERR_INSUFFICIENT_PERMISSIONS`: only a driver may send the command.
/// - `NV_ERR_INVALID_PARAM_STRUCT`: `paramsSize` is no size that the parameters have in any driver.
///
/// Then the command checks its parameters:
/// - `NV_ERR_INVALID_ARGUMENT`: a parameter has a value that it cannot have.
/// - `NV_ERR_INVALID_POINTER`: memory that a parameter points at cannot be read or written.
/// - `NV_ERR_BUFFER_TOO_SMALL`, `NV_ERR_INVALID_PARAM_STRUCT`: a list of the caller is too short.
/// - `NV_ERR_INVALID_CLIENT`, `NV_ERR_OBJECT_NOT_FOUND`: a parameter names a client or an object that does not exist.
/// - `NV_ERR_INVALID_OBJECT`, `NV_ERR_INVALID_CHANNEL`: an object is of the wrong kind, or is not a channel.
/// - `NV_ERR_RC_ERROR`: the channel was stopped by an error and cannot be scheduled.
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
        // SAFETY: `pParams` is valid for `paramsSize` bytes, as `rm_control` asks of its caller, or `paramsSize` is 0.
        // The size was just found to be one that the command takes.
        unsafe { with_params(pParams, paramsSize as usize, |params| rm.control(&prepared, params)) }
    })
}

/// Frees an object, its children and everything that depends on it. `hParent` is ignored, as in desktop RM.
///
/// Memory that is freed leaves every CPU address and every GPU address at which it was mapped. With a client everything
/// that it allocated is freed. It is not an error if there is no object `hObject`.
///
/// Errors:
/// - `NV_ERR_INVALID_OBJECT_HANDLE`: there is no client `hClient`.
/// - `NV_ERR_INVALID_CLIENT`: the client belongs to the process from which this process was forked.
#[unsafe(no_mangle)]
pub extern "C" fn rm_free(hClient: NvHandle, hParent: NvHandle, hObject: NvHandle) -> NV_STATUS {
    let _ = hParent;
    status(|| instance::get()?.free(hClient, hObject))
}

/// Makes another handle for a memory object. The object may belong to another client of this process.
///
/// Both handles own the memory, and it is freed with the last of them. `*phObject` is the new handle, or 0 if the
/// library is to choose one; the handle is written back. `hParent` 0 stands for the client itself. `flags` are ignored.
///
/// Errors, in the order of the checks:
/// - `NV_ERR_INVALID_POINTER`: `phObject` is NULL.
/// - `NV_ERR_INVALID_CLIENT`: there is no client `hClient` or `hClientSrc`, or it belongs to the process from which
///   this process was forked.
/// - `NV_ERR_OBJECT_NOT_FOUND`: there is no object `hObjectSrc` or `hParent`.
/// - `NV_ERR_INVALID_ARGUMENT`: `hObjectSrc` is not memory.
/// - `NV_ERR_INVALID_OBJECT_PARENT`: memory of this class cannot have this parent.
/// - `NV_ERR_ILLEGAL_ACTION`: the object would be more than six levels below its client.
/// - `NV_ERR_INVALID_OBJECT_HANDLE`: `*phObject` is a number that is reserved for clients.
/// - `NV_ERR_INSERT_DUPLICATE_NAME`: another object has the handle `*phObject`.
/// - `NV_ERR_INSUFFICIENT_RESOURCES`: no handle is left.
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
        // SAFETY: `phObject` was read above, so it is valid for writes too.
        unsafe { store(phObject, handle) };
        Ok(())
    })
}

/// Makes a memory object of pages that this process has already, or allocates system memory.
///
/// With the class `NV01_MEMORY_SYSTEM_OS_DESCRIPTOR`, `*ppAddress` is the address of the first page and `*pLimit` is
/// the size in bytes minus one. `flags` must contain
/// `NVOS02_FLAGS_LOCATION_PCI << 8` and `NVOS02_FLAGS_MAPPING_NO_MAP << 30`. The pages stay at their address
/// and still belong to the caller. Anonymous pages that are mapped shared are exchanged for GPU memory with the same
/// contents, so that no other thread may access them during the call.
///
/// With the class `NV01_MEMORY_SYSTEM`, `*pLimit` is the size in bytes minus one. The memory is also mapped into this
/// process, and the address is written to `*ppAddress`, unless `flags` contain `NVOS02_FLAGS_MAPPING_NO_MAP << 30`.
///
/// `*phMemory` is the handle of the object, or 0 if the library is to choose one; the handle is written back.
///
/// Errors, in the order of the checks:
/// - `NV_ERR_INVALID_POINTER`: `phMemory`, `ppAddress` or `pLimit` is NULL.
/// - `NV_ERR_INVALID_CLASS`: `hClass` is neither of the two classes.
/// - `NV_ERR_INVALID_OBJECT_HANDLE`: there is no client `hClient`.
/// - `NV_ERR_INVALID_CLIENT`: the client belongs to the process from which this process was forked.
/// - `NV_ERR_OBJECT_NOT_FOUND`: there is no object `hParent`.
/// - `NV_ERR_INVALID_OBJECT_PARENT`: `hParent` is not a device.
/// - `NV_ERR_INVALID_OBJECT_HANDLE`: `*phMemory` is a number that is reserved for clients.
/// - `NV_ERR_INSERT_DUPLICATE_NAME`: another object has the handle `*phMemory`.
/// - `NV_ERR_INSUFFICIENT_RESOURCES`: no handle is left.
/// - `NV_ERR_INVALID_FLAGS`: `flags` do not say what the class needs.
/// - `NV_ERR_INVALID_LIMIT`: the size is 0 or does not fit in 64 bits.
/// - `NV_ERR_INVALID_ARGUMENT`: `*ppAddress` is NULL.
/// - `NV_ERR_NOT_SUPPORTED`: `*ppAddress` is not a multiple of the page size.
/// - `NV_ERR_INVALID_ADDRESS`, `NV_ERR_INVALID_POINTER`: the pages are not there, or the GPU cannot use them.
/// - `NV_ERR_NO_MEMORY`: there is not enough memory.
/// - `NV_ERR_OPERATING_SYSTEM`: the memory cannot be mapped.
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
        // SAFETY: the three pointers were read above, so they are valid for writes too.
        unsafe {
            store(phMemory, handle);
            if let Some(addr) = mapped {
                store(ppAddress, addr as *mut c_void);
            }
        }
        Ok(())
    })
}

/// Maps memory, or the doorbell page of a usermode object, into this process: `length` bytes from `offset`.
///
/// If `*ppLinearAddress` is NULL, the library chooses the address. Memory goes to its own GPU address if the library
/// chose that address and this process has the range free. If `*ppLinearAddress` is not NULL, the mapping goes exactly
/// there and replaces what is there; the range must belong to the caller. The address is written back. `hDevice` is a
/// device or a subdevice. With `NVOS33_FLAGS_ACCESS_READ_ONLY` in `flags` the mapping cannot be written; all other
/// flags are ignored.
///
/// The mapping ends with `rm_unmap_memory`, or when the memory is freed.
///
/// Errors, in the order of the checks:
/// - `NV_ERR_INVALID_POINTER`: `ppLinearAddress` is NULL.
/// - `NV_ERR_INVALID_CLIENT`: there is no client `hClient`, or it belongs to the process from which this process was
///   forked.
/// - `NV_ERR_OBJECT_NOT_FOUND`: there is no object `hDevice` or `hMemory`.
/// - `NV_ERR_INVALID_DEVICE`: `hDevice` is neither a device nor a subdevice.
/// - `NV_ERR_INVALID_ADDRESS`: `*ppLinearAddress` is not a multiple of the page size.
/// - `NV_ERR_INVALID_OBJECT`: `hMemory` cannot be mapped.
/// - `NV_ERR_INVALID_LIMIT`: `length` is 0.
/// - `NV_ERR_INVALID_BASE`: the range goes beyond the end of the memory, or does not start with the doorbell page.
/// - `NV_ERR_INVALID_OFFSET`: `offset` is not a multiple of the page size.
/// - `NV_ERR_NOT_SUPPORTED`: the memory is made of pages of this process. They are mapped already.
/// - `NV_ERR_NO_MEMORY`: there is not enough memory.
/// - `NV_ERR_OPERATING_SYSTEM`: Linux refuses the mapping.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rm_map_memory(
    hClient: NvHandle,
    hDevice: NvHandle,
    hMemory: NvHandle,
    offset: NvU64,
    length: NvU64,
    ppLinearAddress: *mut *mut c_void,
    flags: NvU32,
) -> NV_STATUS {
    status(|| {
        // SAFETY: `ppLinearAddress` is NULL or valid for reads, as `rm_map_memory` asks of its caller.
        let at = unsafe { load(ppLinearAddress, "ppLinearAddress") }? as usize;
        let at = (at != 0).then_some(at);
        let request = MapRequest { memory: hMemory, offset, length, at, flags };
        let addr = instance::get()?.map_memory(hClient, hDevice, &request)?;
        // SAFETY: `ppLinearAddress` was read above, so it is valid for writes too.
        unsafe { store(ppLinearAddress, addr as *mut c_void) };
        Ok(())
    })
}

/// Ends a mapping that `rm_map_memory` made. `flags` are ignored.
///
/// Errors, in the order of the checks:
/// - `NV_ERR_INVALID_CLIENT`: there is no client `hClient`, or it belongs to the process from which this process was
///   forked.
/// - `NV_ERR_OBJECT_NOT_FOUND`: there is no object `hDevice` or `hMemory`.
/// - `NV_ERR_INVALID_DEVICE`: `hDevice` is neither a device nor a subdevice.
/// - `NV_ERR_INVALID_OBJECT`: `hMemory` cannot be mapped.
/// - `NV_ERR_OBJECT_NOT_FOUND`: no mapping of `hMemory` starts at `pLinearAddress`.
#[unsafe(no_mangle)]
pub extern "C" fn rm_unmap_memory(
    hClient: NvHandle,
    hDevice: NvHandle,
    hMemory: NvHandle,
    pLinearAddress: *mut c_void,
    flags: NvU32,
) -> NV_STATUS {
    let _ = flags;
    status(|| instance::get()?.unmap_memory(hClient, hDevice, hMemory, pLinearAddress as usize))
}

/// Maps memory into a GPU's address space: `length` bytes from `offset`.
///
/// `hDma` is the object through which the memory is mapped, of class `NV01_MEMORY_VIRTUAL` or `NV50_MEMORY_VIRTUAL`.
/// With `NVOS46_FLAGS_DMA_OFFSET_FIXED_TRUE << 15` in `flags`, `*pDmaOffset` is the GPU address. Otherwise the GPU
/// address is chosen. It is written back in both cases. With `NVOS46_FLAGS_ACCESS_READ_ONLY` in `flags` the GPU cannot
/// write the mapping; all other flags are ignored.
///
/// The mapping ends with `rm_unmap_memory_dma`, or when the memory is freed. The GPU must not use the mapping any more
/// when it ends.
///
/// Errors, in the order of the checks:
/// - `NV_ERR_INVALID_POINTER`: `pDmaOffset` is NULL.
/// - `NV_ERR_INVALID_CLIENT`: there is no client `hClient`, or it belongs to the process from which this process was
///   forked.
/// - `NV_ERR_OBJECT_NOT_FOUND`: there is no object `hDevice`, `hDma` or `hMemory`.
/// - `NV_ERR_INVALID_DEVICE`: `hDevice` is neither a device nor a subdevice.
/// - `NV_ERR_INVALID_OBJECT_HANDLE`: `hDma` is not an object through which memory is mapped.
/// - `NV_ERR_INVALID_OBJECT`: `hMemory` is not memory.
/// - `NV_ERR_INVALID_ARGUMENT`: the fixed address lies outside the range of `hDma`.
/// - `NV_ERR_INVALID_LIMIT`: `length` is 0.
/// - `NV_ERR_INVALID_BASE`: the range goes beyond the end of the memory.
/// - `NV_ERR_INVALID_OFFSET`: `offset` or the fixed address is not a multiple of the page size.
/// - `NV_ERR_OUT_OF_RANGE`: the GPU does not have the fixed address.
/// - `NV_ERR_PAGE_TABLE_NOT_AVAIL`: the fixed address lies in the window where kernels see local or shared memory.
/// - `NV_ERR_INSUFFICIENT_RESOURCES`: another mapping is at the fixed address, or the range of `hDma` is full.
/// - `NV_ERR_NO_MEMORY`: no GPU addresses are left.
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
        // SAFETY: `pDmaOffset` was read above, so it is valid for writes too.
        unsafe { store(pDmaOffset, va) };
        Ok(())
    })
}

/// Ends the GPU mapping of a memory object that starts at `dmaOffset`. `flags` are ignored. The call does not wait for
/// the GPU, which must not use the mapping any more.
///
/// Errors, in the order of the checks:
/// - `NV_ERR_INVALID_OBJECT_HANDLE`: `hDma` is 0.
/// - `NV_ERR_INVALID_CLIENT`: there is no client `hClient`, or it belongs to the process from which this process was
///   forked.
/// - `NV_ERR_OBJECT_NOT_FOUND`: there is no object `hDevice`, `hDma` or `hMemory`.
/// - `NV_ERR_INVALID_DEVICE`: `hDevice` is neither a device nor a subdevice.
/// - `NV_ERR_INVALID_OBJECT_HANDLE`: `hDma` is not an object through which memory is mapped.
/// - `NV_ERR_INVALID_OBJECT`: `hMemory` is not memory.
/// - `NV_ERR_OBJECT_NOT_FOUND`: no mapping of `hMemory` starts at `dmaOffset`.
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
