//! Memory that is shared with other operating systems (IVM) and with NvSciIpc endpoints, and the size of the protected
//! region. The answers are those of a board that runs one operating system and never resizes the region.

use super::alloc;
use super::client::{HandleRef, NvmapFile};
use crate::dispatch::{Call, Reply};
use std::sync::Arc;
use tegrarm_abi::nvgpu::r35::nvmap_sciipc_map_r35;
use tegrarm_abi::nvmap::*;
use tegrarm_kmd::Errno;

/// `PROT_READ`, the only access with which a read-only handle may be shared.
const READ: u32 = 1;
/// The bits of an IVM id that contain the number of pages.
const IVM_PAGES: u32 = 0xffff;

/// Makes the checks of ALLOC, except the check that a heap of the mask could hold the buffer, and then fails: there is
/// no IVM heap.
pub(super) fn alloc_ivm(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_alloc_ivm_handle) -> Reply {
    if args.align != 0 && !args.align.is_power_of_two() {
        return Err(Errno::EINVAL.into());
    }
    let handle = call.handle(file, args.handle).ok_or(Errno::EINVAL)?;
    Ok(alloc::allocate(call, &file.device.memory, &handle.buffer, args.heap_mask, args.flags, args.align)?)
}

/// Refuses a buffer of another operating system. A buffer without pages does not exist, and this board has no heap that
/// could contain a buffer with pages.
pub(super) fn from_ivc_id(_: &Call<'_>, _: &Arc<NvmapFile>, id: &mut [u32; 2]) -> Reply {
    Err(if id[0] & IVM_PAGES == 0 { Errno::EINVAL } else { Errno::ENOMEM }.into())
}

/// Answers with the id by which another operating system knows a handle. It is 0, because the memory is not shared.
pub(super) fn ivc_id(call: &Call<'_>, file: &Arc<NvmapFile>, id: &mut [u32; 2]) -> Reply {
    let handle = call.handle(file, id[0]).ok_or(Errno::EINVAL)?;
    handle.buffer.allocation().ok_or(Errno::EFAULT)?;
    *id = [0; 2];
    Ok(())
}

/// Answers with the operating systems for which there are heaps.
pub(super) fn ivm_heaps(_: &Call<'_>, _: &Arc<NvmapFile>, peers: &mut u32) -> Reply {
    *peers = 0;
    Ok(())
}

/// Accepts the size and does nothing with it, as a kernel does whose protected region has a fixed size.
pub(super) fn vpr_floor_size(_: &Call<'_>, _: &Arc<NvmapFile>, _: &mut u32) -> Reply {
    Ok(())
}

/// Checks the arguments and then refuses, because no endpoint exists whose token could be valid.
fn share(call: &Call<'_>, file: &NvmapFile, handle: u32, flags: u32) -> Reply {
    let HandleRef { read_only, .. } = call.handle(file, handle).ok_or(Errno::ENODEV)?;
    Err(if read_only && flags != READ { Errno::EPERM } else { Errno::EINVAL }.into())
}

pub(super) fn sciipc_id(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_sciipc_map) -> Reply {
    share(call, file, args.handle, args.flags)
}

pub(super) fn sciipc_id_r35(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_sciipc_map_r35) -> Reply {
    share(call, file, args.handle, args.flags)
}

/// Refuses, because no endpoint exists.
pub(super) fn from_sciipc_id(_: &Call<'_>, _: &Arc<NvmapFile>, _: &mut nvmap_sciipc_map) -> Reply {
    Err(Errno::EINVAL.into())
}

/// Refuses, because no endpoint exists.
pub(super) fn from_sciipc_id_r35(_: &Call<'_>, _: &Arc<NvmapFile>, _: &mut nvmap_sciipc_map_r35) -> Reply {
    Err(Errno::EINVAL.into())
}
