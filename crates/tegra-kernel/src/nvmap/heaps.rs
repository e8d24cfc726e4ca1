//! Heaps: system memory and carveouts, their free bytes, and the ioctls that report them.

use super::NvmapFile;
use crate::budget::Share;
use crate::chip::Carveout;
use crate::config::Refusals;
use crate::dispatch::{Call, Reply, as_r36};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tegrarm_abi::nvgpu::r35::*;
use tegrarm_abi::nvgpu::r39::*;
use tegrarm_abi::nvmap::*;
use tegrarm_kmd::Errno;

/// The bytes of one heap.
#[derive(Debug)]
struct Heap {
    bit: u32,
    total: u64,
    used: AtomicU64,
}

/// All heaps of the board.
#[derive(Debug)]
pub(crate) struct Memory {
    heaps: Vec<Heap>,
    refusals: Refusals,
}

/// Bytes that were taken from a heap. Dropping the value gives them back.
#[derive(Debug)]
pub(crate) struct Reservation {
    memory: Arc<Memory>,
    heap: u32,
    size: u64,
    /// What it counts in the budget of the process.
    pub(super) share: Option<Share>,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(heap) = self.memory.heap(self.heap) {
            heap.used.fetch_sub(self.size, Ordering::Relaxed);
        }
    }
}

impl Memory {
    pub(super) fn new(system: u64, carveouts: &[Carveout], refusals: Refusals) -> Memory {
        let heap = |bit, total| Heap { bit, total, used: AtomicU64::new(0) };
        let carveouts = carveouts.iter().map(|c| heap(c.heap, c.size));
        Memory { heaps: std::iter::once(heap(NVMAP_HEAP_IOVMM, system)).chain(carveouts).collect(), refusals }
    }

    /// The largest buffer of system memory that can be had at once, if it is smaller than what is free
    /// (docs/hardware/nvmap.md#refusals).
    pub(super) fn largest(&self) -> Option<u64> {
        let (total, free) = self.system();
        match self.refusals {
            Refusals::None => None,
            // The kernel's page cache has the rest.
            Refusals::Cve202533177 => Some(free / 8 * 5),
            Refusals::Fragmented => Some(total / 16),
        }
    }

    fn heap(&self, bit: u32) -> Option<&Heap> {
        self.heaps.iter().find(|heap| heap.bit == bit)
    }

    /// The carveouts of this board, as a mask.
    fn carveouts(&self) -> u32 {
        self.heaps.iter().fold(0, |mask, heap| mask | heap.bit) & NVMAP_HEAP_CARVEOUT_MASK
    }

    /// The total and free bytes of a heap of this board.
    pub(super) fn account(&self, bit: u32) -> Option<(u64, u64)> {
        let heap = self.heap(bit)?;
        Some((heap.total, heap.total.saturating_sub(heap.used.load(Ordering::Relaxed))))
    }

    pub(super) fn system(&self) -> (u64, u64) {
        self.account(NVMAP_HEAP_IOVMM).unwrap_or_default()
    }

    pub(super) fn used(&self) -> u64 {
        self.heaps.iter().map(|heap| heap.used.load(Ordering::Relaxed)).sum()
    }

    /// Takes bytes from a heap, if it has that many.
    pub(super) fn reserve(self: &Arc<Self>, bit: u32, size: u64) -> Option<Reservation> {
        let heap = self.heap(bit)?;
        let fits = |used: u64| used.checked_add(size).filter(|used| *used <= heap.total);
        heap.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        Some(Reservation { memory: self.clone(), heap: bit, size, share: None })
    }
}

pub(super) fn available(call: &Call<'_>, _: &Arc<NvmapFile>, args: &mut nvmap_available_heaps) -> Reply {
    args.heaps = u64::from(call.kernel.nvmap.memory.carveouts());
    Ok(())
}

pub(super) fn size(call: &Call<'_>, _: &Arc<NvmapFile>, args: &mut nvmap_heap_size) -> Reply {
    let carveout = args.heap & NVMAP_HEAP_CARVEOUT_MASK;
    let (total, _) = call.kernel.nvmap.memory.account(carveout).ok_or(Errno::ENODEV)?;
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
fn account(call: &Call<'_>, mask: u32) -> Reply<(u64, u64)> {
    const CARVEOUTS: u32 = NVMAP_HEAP_CARVEOUT_VPR
        | NVMAP_HEAP_CARVEOUT_TSEC
        | NVMAP_HEAP_CARVEOUT_VIDMEM
        | NVMAP_HEAP_CARVEOUT_GPU
        | NVMAP_HEAP_CARVEOUT_FSI
        | NVMAP_HEAP_CARVEOUT_IVM
        | NVMAP_HEAP_CARVEOUT_GENERIC;
    match call.kernel.nvmap.memory.account(mask) {
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

pub(super) fn query(call: &Call<'_>, _: &Arc<NvmapFile>, args: &mut nvmap_query_heap_params) -> Reply {
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
    (args.total, args.free) = account(call, args.heap_mask)?;
    let known = args.total > 0;
    args.largest_free_block = if known { 4096 } else { 0 };
    args.granule_size = if known { 4096 } else { 0 };
    args.contig = u8::from(known && args.heap_mask != NVMAP_HEAP_IOVMM);
    Ok(())
}

pub(super) fn query_r35(call: &Call<'_>, file: &Arc<NvmapFile>, args: &mut nvmap_query_heap_params_r35) -> Reply {
    as_r36(args, |full| query(call, file, full))
}
