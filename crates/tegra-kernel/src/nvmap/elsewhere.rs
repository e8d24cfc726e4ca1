//! Memory shared with other operating systems (IVM) and with NvSciIpc endpoints, and the size of the protected
//! region: what nvmap answers on a board that runs alone and never resizes the region.

use super::alloc;
use super::{HandleRef, NvmapFile};
use crate::dispatch::{Call, Reply};
use std::sync::Arc;
use tegrarm_abi::nvgpu::r35::nvmap_sciipc_map_r35;
use tegrarm_abi::nvmap::*;
use tegrarm_kmd::Errno;

/// `PROT_READ`, the only access a reading handle may be shared with.
const READ: u32 = 1;
/// Bits of an IVM id that say how many pages it is.
const IVM_PAGES: u32 = 0xffff;

/// As ALLOC, without asking first whether any heap of the mask could do it: there is no IVM heap.
pub(super) fn alloc_ivm(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_alloc_ivm_handle) -> Reply {
    if args.align != 0 && !args.align.is_power_of_two() {
        return Err(Errno::EINVAL.into());
    }
    let handle = call.handle(file, args.handle).ok_or(Errno::EINVAL)?;
    Ok(alloc::allocate(call, &handle.buffer, args.heap_mask, args.flags, args.align)?)
}

/// A buffer of another operating system. One without pages is not a buffer; for one with pages, this board has no heap in
/// which it could be.
pub(super) fn from_ivc_id(_: &Call<'_>, _: &Arc<NvmapFile>, id: &mut [u32; 2]) -> Reply {
    Err(if id[0] & IVM_PAGES == 0 { Errno::EINVAL } else { Errno::ENOMEM }.into())
}

/// The id another operating system knows a handle by: 0, for memory it does not share.
pub(super) fn ivc_id(call: &Call<'_>, file: &Arc<NvmapFile>, id: &mut [u32; 2]) -> Reply {
    let handle = call.handle(file, id[0]).ok_or(Errno::EINVAL)?;
    handle.buffer.allocation().ok_or(Errno::EFAULT)?;
    *id = [0; 2];
    Ok(())
}

/// Which operating systems there are heaps for.
pub(super) fn ivm_heaps(_: &Call<'_>, _: &Arc<NvmapFile>, peers: &mut u32) -> Reply {
    *peers = 0;
    Ok(())
}

/// Taken, and nothing done with, by a kernel whose protected region has one size.
pub(super) fn vpr_floor_size(_: &Call<'_>, _: &Arc<NvmapFile>, _: &mut u32) -> Reply {
    Ok(())
}

/// There is no endpoint whose token could be valid.
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

/// As above.
pub(super) fn from_sciipc_id(_: &Call<'_>, _: &Arc<NvmapFile>, _: &mut nvmap_sciipc_map) -> Reply {
    Err(Errno::EINVAL.into())
}

/// As above.
pub(super) fn from_sciipc_id_r35(_: &Call<'_>, _: &Arc<NvmapFile>, _: &mut nvmap_sciipc_map_r35) -> Reply {
    Err(Errno::EINVAL.into())
}
