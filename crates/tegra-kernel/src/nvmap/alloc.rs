//! ALLOC: the checks in nvmap's order, and then the heaps in nvmap's order (docs/hardware/nvmap.md#alloc).

use super::buffer::{Allocation, Buffer};
use super::client::NvmapFile;
use super::memory::Memory;
use crate::budget::Resource;
use crate::dispatch::{Call, Reply, as_r36};
use crate::rule::Because;
use std::sync::Arc;
use tegrarm_abi::nvgpu::r35::nvmap_alloc_handle_r35;
use tegrarm_abi::nvgpu::r39::nvmap_alloc_handle_r39;
use tegrarm_abi::nvmap::*;
use tegrarm_kmd::Errno;

/// The number of NUMA nodes for which the Jetson kernels are built.
const MAX_NUMNODES: i32 = 16;
/// This number means any node. r35 cannot ask for a particular one.
const ANY_NODE: i32 = -1;

pub(super) fn alloc_r35(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_alloc_handle_r35) -> Reply {
    as_r36(args, |full: &mut nvmap_alloc_handle| {
        full.numa_nid = ANY_NODE;
        alloc(call, file, full)
    })
}

/// ALLOC of r39. Its GPU heap is made of huge pages that the program already has, and no program has such pages here.
pub(super) fn alloc_r39(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_alloc_handle_r39) -> Reply {
    if args.heap_mask & NVMAP_HEAP_CARVEOUT_GPU != 0 {
        tracing::error!("ALLOC from heap {:#x} (huge pages at {:#x}) is not simulated", args.heap_mask, args.va);
    }
    as_r36(args, |full| alloc(call, file, full))
}

pub(super) fn alloc(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_alloc_handle) -> Reply {
    let bad_align = args.align != 0 && !args.align.is_power_of_two();
    if bad_align || args.handle == 0 || !(ANY_NODE..=MAX_NUMNODES).contains(&args.numa_nid) {
        let rule = "align is a power of two or 0, handle is not 0, numa_nid is a node or -1";
        return Err(Errno::EINVAL.because(rule).into());
    }
    let handle = call.handle(file, args.handle).ok_or(Errno::EINVAL)?;
    let memory = &file.device.memory;
    available(memory, args.heap_mask, handle.buffer.size, call.is_r39())?;
    Ok(allocate(call, memory, &handle.buffer, args.heap_mask, args.flags, args.align)?)
}

/// Takes memory from the first heap of the mask that has enough.
pub(super) fn allocate(
    call: &Call<'_>,
    memory: &Arc<Memory>,
    buffer: &Buffer,
    mask: u32,
    flags: u32,
    align: u32,
) -> Result<(), Errno> {
    let size = buffer.size;
    let secure = mask & NVMAP_HEAP_CARVEOUT_VPR != 0;
    let flags = if secure { flags & !NVMAP_HANDLE_CACHE_FLAG } else { flags };
    let attributes = (u64::from(flags & NVMAP_HANDLE_CACHE_FLAG), u64::from(align.max(4096)));
    buffer.allocate(attributes, || {
        let lonely = [NVMAP_HEAP_CARVEOUT_IVM, NVMAP_HEAP_CARVEOUT_VIDMEM];
        if lonely.iter().any(|bit| mask & bit != 0 && mask != *bit) {
            return Err(Errno::EINVAL.because("the heaps IVM and VIDMEM cannot be asked for together with others"));
        }
        let reserve = |heap| Some((heap, memory.reserve(heap, size)?));
        let (heap, mut reservation) = order(mask, size)
            .find_map(reserve)
            .ok_or_else(|| Errno::ENOMEM.because(format!("no heap of the mask {mask:#x} has {size:#x} bytes left")))?;
        if heap == NVMAP_HEAP_IOVMM {
            reservation.share = call.board.take(Resource::Memory, call.process, size)?;
        }
        Ok((Allocation { heap, flags, align: align.max(4096) }, reservation))
    })
}

/// Whether the mask names a heap that could hold the buffer.
///
/// For system memory, r39 compares the size with the memory that is free now, less a thousandth, and other releases
/// compare it with all memory, unless the board is one that [refuses more](Memory::largest). For carveouts, r39 looks
/// for one that is large enough, and other releases look only at the first.
fn available(memory: &Memory, mask: u32, size: u64, r39: bool) -> Result<(), Errno> {
    let mut carveouts = bits(mask & NVMAP_HEAP_CARVEOUT_MASK).filter_map(|bit| memory.account(bit));
    let (total, free) = memory.system();
    let system = mask & NVMAP_HEAP_IOVMM != 0;
    if let Some(most) = memory.largest().filter(|most| system && size > *most) {
        let why = format!("this nvmap gives {most:#x} bytes at once at most, and {size:#x} are wanted");
        return Err(Errno::ENOMEM.because(why));
    }
    let fits = match (system, r39) {
        (true, true) => size <= free - free / 1000,
        (true, false) => size <= total,
        (false, true) => carveouts.any(|(_, free)| size <= free),
        (false, false) => carveouts.next().is_some_and(|(_, free)| size <= free),
    };
    if fits { Ok(()) } else { Err(Errno::ENOMEM) }
}

/// The heaps in the order in which nvmap tries them: VPR first. Then single pages try carveouts first, and larger
/// buffers try IOVMM first. High bits come first.
fn order(mask: u32, size: u64) -> impl Iterator<Item = u32> {
    let rank = move |bit: u32| match bit {
        NVMAP_HEAP_CARVEOUT_VPR => 0,
        NVMAP_HEAP_IOVMM if size > 4096 => 1,
        NVMAP_HEAP_IOVMM => 3,
        _ => 2,
    };
    (0..4).flat_map(move |r| bits(mask).filter(move |bit| rank(*bit) == r))
}

/// The bits that are set, highest first.
fn bits(mask: u32) -> impl Iterator<Item = u32> {
    (0..32).rev().map(|n| 1 << n).filter(move |bit| mask & bit != 0)
}
