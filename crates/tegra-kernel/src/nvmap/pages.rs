//! Ioctls on the pages behind handles: comparing them with the pages of a mapping, and making one buffer of the pages
//! of several handles.

use super::buffer::Buffer;
use super::client::{HandleRef, NvmapFile};
use crate::dispatch::{Call, Reply};
use std::sync::Arc;
use tegrarm_abi::nvmap::*;
use tegrarm_kmd::Errno;

/// The largest number of handles in one list, which a kernel allocation of 4 MiB can hold.
const MAX_HANDLES: u32 = (4 << 20) / 12;

/// Checks whether the mapping at an address shows the handle's own pages. The mapping must be as large as the buffer.
pub(super) fn gup_test(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_gup_test) -> Reply {
    let vma = call.process.vma(args.va).filter(|vma| vma.start <= args.va).ok_or(Errno::EINVAL)?;
    let handle = call.handle(file, args.handle).ok_or(Errno::EINVAL)?;
    if vma.end - vma.start != handle.buffer.size {
        return Err(Errno::EINVAL.into());
    }
    let pages = handle.buffer.allocation().filter(|a| a.heap == NVMAP_HEAP_IOVMM && !handle.buffer.is_pinned());
    if pages.is_none() {
        tracing::error!(
            "GUP_TEST of a handle without a list of pages: a board's kernel crashes here, or compares others"
        );
        return Err(Errno::EINVAL.into());
    }
    let same = |buffer: &Arc<Buffer>| Arc::ptr_eq(buffer, &handle.buffer);
    let whole = vma.offset == 0 && args.va & !0xfff == vma.start;
    args.result = u32::from(whole && call.files.find(vma.file).is_some_and(|buffer| same(&buffer)));
    Ok(())
}

/// Makes the driver's checks and then refuses with `ENOMEM`, because one file cannot show pages of several files.
pub(super) fn fd_for_range(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_fd_for_range_from_list) -> Reply {
    if args.handles == 0 || args.num_handles == 0 || args.size == 0 || args.num_handles > u32::MAX / 4 {
        return Err(Errno::EINVAL.into());
    }
    if args.num_handles > MAX_HANDLES {
        return Err(Errno::ENOMEM.into());
    }
    let ids: Vec<u32> = call.copy_in_array(args.handles, args.num_handles as usize)?;
    let handles: Option<Vec<_>> = ids.into_iter().map(|id| call.handle(file, id)).collect();
    let handles = handles.ok_or(Errno::EINVAL)?;
    let total: u64 = handles.iter().map(|handle| handle.buffer.size).sum();
    if args.offset.checked_add(args.size).is_none_or(|end| end > total) {
        return Err(Errno::EINVAL.into());
    }
    let flags = handles[0].buffer.allocation().map(|a| a.flags);
    let alike = |handle: &HandleRef| {
        let system = handle.buffer.allocation().is_some_and(|a| a.heap == NVMAP_HEAP_IOVMM && Some(a.flags) == flags);
        system && !handle.read_only && !handle.buffer.is_pinned()
    };
    if !handles.iter().all(alike) {
        return Err(Errno::EINVAL.into());
    }
    tracing::error!("GET_FD_FOR_RANGE_FROM_LIST is not simulated: one file cannot show pages of several");
    Err(Errno::ENOMEM.into())
}
