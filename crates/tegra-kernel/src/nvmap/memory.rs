//! The memory of the board, as nvmap divides it: system memory and carveouts, and their free bytes.

use crate::budget::Share;
use crate::chip::Carveout;
use crate::config::Refusals;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tegrarm_abi::nvmap::*;

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
    pub(super) fn carveouts(&self) -> u32 {
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
