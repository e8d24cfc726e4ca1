//! Memory of the program that the GPU sees too: allocated by the driver, or registered.

use crate::allocations::{self, Kind};
use crate::capturing;
use crate::context::current;
use crate::machine::Buffer;
use crate::numbers::*;
use crate::result::{Answer, fail};

const PAGE: usize = 4096;
/// The flags of cuda.h that are macros: CU_MEMHOSTALLOC_PORTABLE, _DEVICEMAP, _WRITECOMBINED.
const ALLOC_FLAGS: u32 = 7;
const WRITE_COMBINED: u32 = 4;
/// CU_MEMHOSTREGISTER_PORTABLE, _DEVICEMAP, _IOMEMORY, _READ_ONLY.
const REGISTER_FLAGS: u32 = 15;
const REGISTER_IO: u32 = 4;
const REGISTER_READ_ONLY: u32 = 8;
/// Flags of `enum tegrarm_buffer_flags`.
const BUFFER_WRITE_COMBINED: u32 = 1;
const BUFFER_GPU_READ_ONLY: u32 = 2;

pub mod rows {
    //! The functions of the program's memory.

    use super::*;
    use crate::pointers::Ptr;
    use std::ffi::c_void;

    pub fn cuMemAllocHost_v2(pointer: Ptr<usize>, size: usize) -> Answer {
        cuMemHostAlloc(pointer, size, 0)
    }

    pub fn cuMemHostAlloc(pointer: Ptr<usize>, size: usize, flags: u32) -> Answer {
        capturing::forbid_unsafe()?;
        pointer.present("pp")?;
        let context = current()?;
        context.alive()?;
        if size == 0 || flags & !ALLOC_FLAGS != 0 {
            fail!(CUDA_ERROR_INVALID_VALUE, "{size} bytes with the flags {flags:#x}");
        }
        let wanted = if flags & WRITE_COMBINED != 0 { BUFFER_WRITE_COMBINED } else { 0 };
        let buffer = Buffer::alloc(&context.device, size as u64, wanted)?;
        let made = allocations::add(context.handle, Kind::Host(flags), buffer, 0, size as u64);
        pointer.set(made.pointer, "pp")
    }

    pub fn cuMemFreeHost(pointer: Ptr<c_void>) -> Answer {
        capturing::forbid_unsafe()?;
        let context = current()?;
        let found = allocations::find_pointer(pointer.address());
        if let Some((found, 0)) = found.filter(|(found, _)| matches!(found.kind, Kind::Host(_))) {
            let finished = context.synchronize();
            drop(allocations::remove(found.address, |kind| matches!(kind, Kind::Host(_))));
            return finished;
        }
        fail!(CUDA_ERROR_INVALID_VALUE, "{:#x} is not what cuMemHostAlloc gave", pointer.address())
    }

    pub fn cuMemHostRegister_v2(pointer: Ptr<c_void>, size: usize, flags: u32) -> Answer {
        capturing::forbid_unsafe()?;
        let (context, first) = (current()?, pointer.address());
        context.alive()?;
        pointer.present("p")?;
        if size == 0 || flags & !REGISTER_FLAGS != 0 {
            fail!(CUDA_ERROR_INVALID_VALUE, "{size} bytes with the flags {flags:#x}");
        }
        if flags & REGISTER_IO != 0 {
            fail!(CUDA_ERROR_NOT_SUPPORTED, "CU_MEMHOSTREGISTER_IOMEMORY: memory of other devices comes as a dma-buf");
        }
        let Some(end) = first.checked_add(size) else {
            fail!(CUDA_ERROR_INVALID_VALUE, "{size} bytes from {first:#x}")
        };
        if allocations::find_pointer(first).is_some() || allocations::find_pointer(end - 1).is_some() {
            fail!(
                CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
                "a part of {size} bytes from {first:#x} is registered already"
            );
        }
        let page = first / PAGE * PAGE;
        let wanted = if flags & REGISTER_READ_ONLY != 0 { BUFFER_GPU_READ_ONLY } else { 0 };
        let buffer = Buffer::pages(&context.device, page, (end - page) as u64, wanted)?;
        allocations::add(context.handle, Kind::Registered(flags), buffer, (first - page) as u64, size as u64);
        Ok(())
    }

    pub fn cuMemHostUnregister(pointer: Ptr<c_void>) -> Answer {
        capturing::forbid_unsafe()?;
        let context = current()?;
        let found = allocations::find_pointer(pointer.address());
        if let Some((found, 0)) = found.filter(|(found, _)| matches!(found.kind, Kind::Registered(_))) {
            let finished = context.synchronize();
            drop(allocations::remove(found.address, |kind| matches!(kind, Kind::Registered(_))));
            return finished;
        }
        fail!(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "{:#x} is not registered", pointer.address())
    }

    pub fn cuMemHostGetDevicePointer_v2(address: Ptr<u64>, pointer: Ptr<c_void>, flags: u32) -> Answer {
        current()?;
        if flags != 0 {
            fail!(CUDA_ERROR_INVALID_VALUE, "the flags {flags:#x}");
        }
        match allocations::find_pointer(pointer.address()) {
            Some((found, offset)) => address.set(found.address + offset, "pdptr"),
            None => fail!(CUDA_ERROR_INVALID_VALUE, "the GPU does not see {:#x}: register it", pointer.address()),
        }
    }

    pub fn cuMemHostGetFlags(flags: Ptr<u32>, pointer: Ptr<c_void>) -> Answer {
        current()?;
        let found = allocations::find_pointer(pointer.address());
        match found.map(|(found, _)| found.kind) {
            // Every allocation is mapped for the GPU.
            Some(Kind::Host(own)) => flags.set(own | 2, "pFlags"),
            Some(Kind::Registered(own)) => flags.set(own | 2, "pFlags"),
            _ => fail!(CUDA_ERROR_INVALID_VALUE, "{:#x} is not what cuMemHostAlloc gave", pointer.address()),
        }
    }
}
