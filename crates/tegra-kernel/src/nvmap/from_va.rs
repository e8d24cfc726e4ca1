//! FROM_VA: a handle made of the caller's own pages (docs/hardware/nvmap.md#from-va).

use super::buffer::Allocation;
use super::client::{HandleRef, NvmapFile};
use crate::budget::Resource;
use crate::dispatch::{Call, Reply};
use crate::rule::Because;
use std::sync::Arc;
use tegrarm_abi::nvmap::*;
use tegrarm_kmd::Errno;

pub(super) fn from_va(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_create_handle_from_va) -> Reply {
    if !args.va.is_multiple_of(4096) {
        return Err(Errno::EINVAL.because("va is not a multiple of the page size").into());
    }
    let nothing = || Errno::EINVAL.because("nothing is mapped at va");
    let vma = call.process.vma(args.va).ok_or_else(nothing)?;
    let size = match (args.size, args.size64) {
        (0, 0) => vma.end - args.va,
        (0, size) => size,
        (size, _) => u64::from(size),
    };
    let nvmap = &file.device;
    let rounded = size.checked_next_multiple_of(4096).filter(|size| *size <= nvmap.memory.system().0);
    let rounded = rounded.ok_or_else(|| Errno::ENOMEM.because("the board does not have as much memory"))?;
    let read_only = args.flags & NVMAP_HANDLE_RO != 0;
    if !vma.write && !read_only {
        return Err(Errno::EINVAL.because("the pages are read-only: the flags need NVMAP_HANDLE_RO").into());
    }
    let share = call.board.take(Resource::Mappings, call.process, 1)?;
    let pages = call.process.pin(args.va, rounded, !read_only)?;
    let allocation = Allocation { heap: NVMAP_HEAP_IOVMM, flags: args.flags, align: 4096 };
    let buffer = nvmap.pinned_buffer(pages, allocation, share);
    // The low half of the field that contained the 64-bit size returns the handle.
    let id = call.add_handle(file, HandleRef { buffer, read_only })?;
    args.size64 = args.size64 & !0xffff_ffff | u64::from(id);
    Ok(())
}
