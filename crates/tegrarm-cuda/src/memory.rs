//! Memory of the device and managed memory: allocation, ends, ranges, advice.

use crate::allocations::{self, Kind};
use crate::capturing;
use crate::context::current;
use crate::numbers::*;
use crate::result::{Answer, fail};

/// Rows are this many bytes apart at least, as CUDA's own are on this architecture.
const PITCH: usize = 512;

pub mod rows {
    //! The functions of memory.

    use super::*;
    use crate::pointers::{Location, Ptr};
    use std::ffi::c_void;
    use std::os::fd::IntoRawFd;

    pub fn cuMemAlloc_v2(address: Ptr<u64>, size: usize) -> Answer {
        capturing::forbid_unsafe()?;
        address.present("dptr")?;
        address.set(current()?.alloc(Kind::Device, size)?.address, "dptr")
    }

    pub fn cuMemAllocPitch_v2(
        address: Ptr<u64>,
        pitch: Ptr<usize>,
        width: usize,
        height: usize,
        element: u32,
    ) -> Answer {
        capturing::forbid_unsafe()?;
        address.present("dptr")?;
        pitch.present("pPitch")?;
        if !matches!(element, 4 | 8 | 16) || width == 0 || height == 0 {
            fail!(
                CUDA_ERROR_INVALID_VALUE,
                "{height} rows of {width} bytes, elements of {element} bytes: 4, 8 or 16 can be"
            );
        }
        let row = width.checked_next_multiple_of(PITCH).and_then(|row| row.checked_mul(height).map(|all| (row, all)));
        let Some((row, all)) = row else { fail!(CUDA_ERROR_OUT_OF_MEMORY, "{height} rows of {width} bytes") };
        address.set(current()?.alloc(Kind::Device, all)?.address, "dptr")?;
        pitch.set(row, "pPitch")
    }

    pub fn cuMemAllocManaged(address: Ptr<u64>, size: usize, flags: u32) -> Answer {
        capturing::forbid_unsafe()?;
        address.present("dptr")?;
        if flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST {
            fail!(CUDA_ERROR_INVALID_VALUE, "the flags {flags:#x} of managed memory");
        }
        address.set(current()?.alloc(Kind::Managed(flags), size)?.address, "dptr")
    }

    pub fn cuMemFree_v2(address: u64) -> Answer {
        capturing::forbid_unsafe()?;
        let context = current()?;
        if address == 0 {
            return Ok(());
        }
        let can = |kind| matches!(kind, Kind::Device | Kind::Managed(_) | Kind::Pool(_));
        if allocations::find(address).is_some_and(|(found, _)| found.address == address && can(found.kind)) {
            // CUDA's cuMemFree waits for the work that may use the memory. After a fault the memory is freed nevertheless.
            let finished = context.synchronize();
            if let Some(gone) = allocations::remove(address, can) {
                crate::pools::ended(&gone);
            }
            return finished;
        }
        fail!(CUDA_ERROR_INVALID_VALUE, "{address:#x} is not the address of an allocation")
    }

    pub fn cuMemGetInfo_v2(free: Ptr<usize>, total: Ptr<usize>) -> Answer {
        let (available, all) = current()?.device.memory()?;
        free.set(available as usize, "free")?;
        total.set(all as usize, "total")
    }

    pub fn cuMemGetAddressRange_v2(base: Ptr<u64>, size: Ptr<usize>, address: u64) -> Answer {
        let Some((found, offset)) = allocations::find(address) else {
            fail!(CUDA_ERROR_NOT_FOUND, "{address:#x} is not an address in memory of the device")
        };
        let (start, bytes, _) = found.piece(offset);
        base.set_any(start);
        size.set_any(bytes as usize);
        Ok(())
    }

    pub fn cuMemGetHandleForAddressRange(
        handle: Ptr<c_void>,
        address: u64,
        size: usize,
        kind: u32,
        flags: u64,
    ) -> Answer {
        handle.present("handle")?;
        current()?;
        if kind != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || flags != 0 {
            fail!(CUDA_ERROR_INVALID_VALUE, "a handle of the type {kind} with the flags {flags:#x}");
        }
        let (found, offset) = allocations::get_range(address, size as u64, false)?;
        let (start, bytes, _) = found.piece(offset);
        let mapped =
            found.mappings.as_ref().and_then(|mappings| mappings.find(offset)).map(|(_, mapping)| mapping.memory);
        let all = mapped.as_ref().map_or(found.size, |memory| memory.size);
        if address != start || size as u64 != bytes || bytes < all {
            fail!(
                CUDA_ERROR_NOT_SUPPORTED,
                "a dma-buf for a part of an allocation: nvmap's dma-bufs are whole allocations"
            );
        }
        let fd = mapped.as_ref().map_or_else(|| found.buffer.descriptor(), |memory| memory.descriptor())?;
        handle.cast::<i32>().set(fd.into_raw_fd(), "handle")
    }

    /// A hint about managed memory: the CPU and the GPU have the same memory, so that there is nothing to move.
    fn hint(address: u64, size: usize) -> Answer {
        current()?.alive()?;
        if size == 0 {
            fail!(CUDA_ERROR_INVALID_VALUE, "0 bytes");
        }
        let (found, _) = allocations::get_range(address, size as u64, false)?;
        if !found.kind.is_managed() && !matches!(found.kind, Kind::Variable(_)) {
            fail!(CUDA_ERROR_INVALID_VALUE, "{address:#x} is not managed memory");
        }
        Ok(())
    }

    pub fn cuMemAdvise(address: u64, size: usize, advice: u32, _device: i32) -> Answer {
        if !(CU_MEM_ADVISE_SET_READ_MOSTLY..=CU_MEM_ADVISE_UNSET_ACCESSED_BY).contains(&advice) {
            fail!(CUDA_ERROR_INVALID_VALUE, "the advice {advice}");
        }
        hint(address, size)
    }

    pub fn cuMemAdvise_v2(address: u64, size: usize, advice: u32, location: Location) -> Answer {
        cuMemAdvise(address, size, advice, location.id)
    }

    pub fn cuMemPrefetchAsync(address: u64, size: usize, _device: i32, stream: usize) -> Answer {
        capturing::forbid(&crate::context::stream_of(stream)?.1)?;
        hint(address, size)
    }

    pub fn cuMemPrefetchAsync_v2(address: u64, size: usize, location: Location, flags: u32, stream: usize) -> Answer {
        if flags != 0 {
            fail!(CUDA_ERROR_INVALID_VALUE, "the flags {flags:#x}");
        }
        cuMemPrefetchAsync(address, size, location.id, stream)
    }
}
