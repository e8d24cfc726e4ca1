//! The ioctls that report heaps, and handles with their heaps.

use super::client::NvmapFile;
use super::memory::Memory;
use crate::dispatch::{Call, Reply, as_r36};
use std::sync::Arc;
use tegrarm_abi::nvgpu::r35::*;
use tegrarm_abi::nvgpu::r39::*;
use tegrarm_abi::nvmap::*;
use tegrarm_kmd::Errno;

pub(super) fn available(_: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_available_heaps) -> Reply {
    args.heaps = u64::from(file.device.memory.carveouts());
    Ok(())
}

pub(super) fn size(_: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_heap_size) -> Reply {
    let carveout = args.heap & NVMAP_HEAP_CARVEOUT_MASK;
    let (total, _) = file.device.memory.account(carveout).ok_or(Errno::ENODEV)?;
    args.size = total;
    Ok(())
}

pub(super) fn parameters(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_handle_parameters) -> Reply {
    let handle = call.handle(file, args.handle).ok_or(Errno::ENODEV)?;
    let allocation = handle.buffer.allocation();
    args.contig = u8::from(allocation.is_some_and(|a| a.heap & NVMAP_HEAP_CARVEOUT_MASK != 0));
    args.import_id = args.handle;
    args.heap_number = 0;
    args.access_flags = if handle.read_only { NVMAP_HANDLE_RO } else { 0 };
    args.heap = allocation.map_or(0, |a| u64::from(a.heap));
    args.align = allocation.map_or(4096, |a| u64::from(a.align));
    args.coherency = allocation.map_or(0, |a| u64::from(a.flags & NVMAP_HANDLE_CACHE_FLAG));
    args.size = handle.buffer.size;
    args.offset = 0;
    args.serial_id = handle.buffer.serial;
    Ok(())
}

pub(super) fn parameters_r35(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_handle_parameters_r35) -> Reply {
    as_r36(args, |full| parameters(call, file, full))
}

/// The total and free bytes of a heap. The error is `ENODEV` for a carveout that the board lacks. A bit that stands for
/// no heap gives zeros.
fn account(memory: &Memory, mask: u32) -> Reply<(u64, u64)> {
    const CARVEOUTS: u32 = NVMAP_HEAP_CARVEOUT_VPR
        | NVMAP_HEAP_CARVEOUT_TSEC
        | NVMAP_HEAP_CARVEOUT_VIDMEM
        | NVMAP_HEAP_CARVEOUT_GPU
        | NVMAP_HEAP_CARVEOUT_FSI
        | NVMAP_HEAP_CARVEOUT_IVM
        | NVMAP_HEAP_CARVEOUT_GENERIC;
    match memory.account(mask) {
        Some(account) => Ok(account),
        None if mask & CARVEOUTS != 0 => Err(Errno::ENODEV.into()),
        None => Ok((0, 0)),
    }
}

/// The call of r39 for one NUMA node. A Jetson has only node 0.
pub(super) fn query_numa(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_query_heap_params_r39) -> Reply {
    if args.numa_id != 0 {
        return Err(Errno::EINVAL.into());
    }
    as_r36(args, |full| query(call, file, full))
}

/// The size of a huge page in bytes. r39's GPU heap consists of huge pages.
const HUGE_PAGE: u32 = 2 << 20;

pub(super) fn query(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_query_heap_params) -> Reply {
    if call.is_r39() {
        if args.heap_mask.count_ones() > 1 {
            return Err(Errno::EINVAL.into());
        }
        if args.heap_mask == NVMAP_HEAP_CARVEOUT_GPU {
            // A board sets huge pages aside only when it was told to.
            (args.total, args.free, args.contig) = (0, 0, 0);
            (args.largest_free_block, args.granule_size) = (u64::from(HUGE_PAGE), HUGE_PAGE);
            return Ok(());
        }
    }
    (args.total, args.free) = account(&file.device.memory, args.heap_mask)?;
    let known = args.total > 0;
    args.largest_free_block = if known { 4096 } else { 0 };
    args.granule_size = if known { 4096 } else { 0 };
    args.contig = u8::from(known && args.heap_mask != NVMAP_HEAP_IOVMM);
    Ok(())
}

pub(super) fn query_r35(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_query_heap_params_r35) -> Reply {
    as_r36(args, |full| query(call, file, full))
}
