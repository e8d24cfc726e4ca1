//! ALLOC: checks in nvmap's order, then the heaps in its order (docs/hardware/nvmap.md#alloc).

use super::NvmapFile;
use super::buffer::{Allocation, Buffer};
use super::heaps::Memory;
use crate::dispatch::{Call, Reply, as_r36};
use std::sync::Arc;
use tegrarm_abi::nvgpu::r35::nvmap_alloc_handle_r35;
use tegrarm_abi::nvgpu::r39::nvmap_alloc_handle_r39;
use tegrarm_abi::nvmap::*;
use tegrarm_kmd::Errno;

/// NUMA nodes the Jetson kernels are built for.
const MAX_NUMNODES: i32 = 16;
/// No node in particular, which is all that r35 can ask for.
const ANY_NODE: i32 = -1;

pub(super) fn alloc_r35(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_alloc_handle_r35) -> Reply {
    as_r36(args, |full: &mut nvmap_alloc_handle| {
        full.numa_nid = ANY_NODE;
        alloc(call, file, full)
    })
}

/// The GPU heap of r39 is made of huge pages that the program has already; there is nothing of the kind here.
pub(super) fn alloc_r39(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_alloc_handle_r39) -> Reply {
    if args.heap_mask & NVMAP_HEAP_CARVEOUT_GPU != 0 {
        tracing::error!("ALLOC from heap {:#x} (huge pages at {:#x}) is not simulated", args.heap_mask, args.va);
    }
    as_r36(args, |full| alloc(call, file, full))
}

pub(super) fn alloc(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_alloc_handle) -> Reply {
    let bad_align = args.align != 0 && !args.align.is_power_of_two();
    if bad_align || args.handle == 0 || !(ANY_NODE..=MAX_NUMNODES).contains(&args.numa_nid) {
        return Err(Errno::EINVAL.into());
    }
    let handle = call.handle(file, args.handle).ok_or(Errno::EINVAL)?;
    available(call, args.heap_mask, handle.buffer.size)?;
    Ok(allocate(call, &handle.buffer, args.heap_mask, args.flags, args.align)?)
}

/// Memory from the first heap of the mask that has it.
pub(super) fn allocate(call: &Call<'_>, buffer: &Buffer, mask: u32, flags: u32, align: u32) -> Result<(), Errno> {
    let (memory, size) = (&call.kernel.nvmap.memory, buffer.size);
    buffer.allocate(|| {
        let lonely = [NVMAP_HEAP_CARVEOUT_IVM, NVMAP_HEAP_CARVEOUT_VIDMEM];
        if lonely.iter().any(|bit| mask & bit != 0 && mask != *bit) {
            return Err(Errno::EINVAL);
        }
        let reserve = |heap| Some((heap, memory.reserve(heap, size)?));
        let (heap, reservation) = order(mask, size).find_map(reserve).ok_or(Errno::ENOMEM)?;
        let secure = mask & NVMAP_HEAP_CARVEOUT_VPR != 0;
        let flags = if secure { flags & !NVMAP_HANDLE_CACHE_FLAG } else { flags };
        Ok((Allocation { heap, flags, align: align.max(4096) }, reservation))
    })
}

/// Whether the mask names memory that could hold it at all.
///
/// Of system memory, r39 compares with what is free now, less a thousandth, where the others compare with all there is;
/// of carveouts, it looks for one that is large enough, where the others look at the first.
fn available(call: &Call<'_>, mask: u32, size: u64) -> Result<(), Errno> {
    let memory: &Memory = &call.kernel.nvmap.memory;
    let mut carveouts = bits(mask & NVMAP_HEAP_CARVEOUT_MASK).filter_map(|bit| memory.account(bit));
    let (total, free) = memory.system();
    let fits = match (mask & NVMAP_HEAP_IOVMM != 0, call.is_r39()) {
        (true, true) => size <= free - free / 1000,
        (true, false) => size <= total,
        (false, true) => carveouts.any(|(_, free)| size <= free),
        (false, false) => carveouts.next().is_some_and(|(_, free)| size <= free),
    };
    if fits { Ok(()) } else { Err(Errno::ENOMEM) }
}

/// Heaps in the order nvmap tries them: VPR, then single pages carveouts first, larger buffers IOVMM first;
/// high bits first.
fn order(mask: u32, size: u64) -> impl Iterator<Item = u32> {
    let rank = move |bit: u32| match bit {
        NVMAP_HEAP_CARVEOUT_VPR => 0,
        NVMAP_HEAP_IOVMM if size > 4096 => 1,
        NVMAP_HEAP_IOVMM => 3,
        _ => 2,
    };
    (0..4).flat_map(move |r| bits(mask).filter(move |bit| rank(*bit) == r))
}

/// Set bits, highest first.
fn bits(mask: u32) -> impl Iterator<Item = u32> {
    (0..32).rev().map(|n| 1 << n).filter(move |bit| mask & bit != 0)
}
