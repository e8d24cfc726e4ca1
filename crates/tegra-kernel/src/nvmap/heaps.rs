//! The ioctls that report heaps, and handles with their heaps.

use super::client::NvmapFile;
use super::memory::Memory;
use crate::dispatch::{Call, Reply, as_r36};
use std::sync::Arc;
use tegrarm_abi::nvgpu::r35::*;
use tegrarm_abi::nvgpu::r39::*;
use tegrarm_abi::nvmap::*;
use tegrarm_kmd::Errno;

/// The number of no other system, which a handle has that is not shared with one.
const NO_PEER: u32 = u32::MAX;

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
    // Nothing is written to import_id, and to access_flags only if the handle is read-only.
    args.contig = u8::from(
        allocation.is_some_and(|a| a.heap & NVMAP_HEAP_CARVEOUT_MASK != 0 || a.flags & NVMAP_HANDLE_PHYS_CONTIG != 0),
    );
    args.heap_number = NO_PEER;
    if handle.read_only {
        args.access_flags = NVMAP_HANDLE_RO;
    }
    args.heap = allocation.map_or(0, |a| u64::from(a.heap));
    (args.coherency, args.align) = handle.buffer.attributes();
    args.size = handle.buffer.size;
    args.offset = 0;
    args.serial_id = handle.buffer.serial;
    Ok(())
}

pub(super) fn parameters_r35(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_handle_parameters_r35) -> Reply {
    as_r36(args, |full| parameters(call, file, full))
}

/// The total and free bytes of the first carveout of a mask. The error is `ENODEV` if the board has none of them.
fn carveout(memory: &Memory, mask: u32) -> Reply<(u64, u64)> {
    let mut bits = (0..30).map(|n| 1 << n).filter(|bit| mask & bit != 0);
    Ok(bits.find_map(|bit| memory.account(bit)).ok_or(Errno::ENODEV)?)
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
    // What is not known of a heap is left as the program wrote it.
    args.largest_free_block = 4096;
    if args.heap_mask & NVMAP_HEAP_CARVEOUT_MASK != 0 {
        (args.total, args.free) = carveout(&file.device.memory, args.heap_mask)?;
    } else if args.heap_mask & NVMAP_HEAP_IOVMM != 0 {
        (args.total, args.free) = file.device.memory.system();
        args.granule_size = 4096;
    }
    Ok(())
}

pub(super) fn query_r35(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_query_heap_params_r35) -> Reply {
    as_r36(args, |full| query(call, file, full))
}
