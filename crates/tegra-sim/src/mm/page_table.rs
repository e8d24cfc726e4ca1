//! GPU page tables, as one sorted list of extents.
//!
//! A table is immutable: mapping or unmapping makes a new one and swaps it in, so whoever translates holds a
//! consistent snapshot without a lock, and the memory behind a snapshot stays mapped while it is in use. (The
//! hardware counterpart of the swap is the TLB invalidate that nvgpu does inside map and unmap.)

use super::Backing;
use std::sync::Arc;

/// What an access does. The numbers are the GPU's (`gpu-frontend.md` §9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Access {
    /// Load, fetch.
    Read = 0,
    /// Store.
    Write = 1,
    /// Read-modify-write in memory.
    Atomic = 2,
    /// Prefetch.
    Prefetch = 3,
}

/// Why an access failed. The numbers are the GPU's (`gpu-frontend.md` §9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum FaultKind {
    /// No directory entry: nothing is mapped in the surrounding 2 MiB.
    Pde = 0,
    /// The page is not valid.
    Pte = 2,
    /// Beyond the addresses the unit can form.
    VaLimit = 3,
    /// A write to a read-only page.
    ReadOnly = 6,
}

/// An access that met no mapping, or one that forbids it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MmuFault {
    /// The faulting virtual address.
    pub va: u64,
    /// What the access was.
    pub access: Access,
    /// Why it failed.
    pub kind: FaultKind,
}

/// One mapping: a range of GPU addresses backed by a contiguous range of host memory, or sparse.
#[derive(Clone, Debug)]
pub struct Extent {
    /// First GPU address, 4 KiB aligned.
    pub va: u64,
    /// Length in bytes, a multiple of 4 KiB.
    pub len: u64,
    /// Memory behind it; `None` = sparse (reads give zero, writes are dropped).
    pub backing: Option<Arc<Backing>>,
    /// Byte in the backing that `va` maps.
    pub offset: usize,
    /// Writes are allowed.
    pub writable: bool,
}

impl Extent {
    /// One past the last address.
    pub fn end(&self) -> u64 {
        self.va + self.len
    }
}

/// A snapshot of one address space's mappings, sorted by address, not overlapping.
#[derive(Debug, Default)]
pub struct PageTable {
    extents: Vec<Extent>,
}

impl PageTable {
    /// The extent that holds `va`.
    pub fn find(&self, va: u64) -> Option<&Extent> {
        let after = self.extents.partition_point(|e| e.va <= va);
        self.extents[..after].last().filter(|e| va < e.end())
    }

    /// The extent that holds `va` and permits `access`.
    ///
    /// # Errors
    /// The fault a GPU unit would report.
    pub fn translate(&self, va: u64, access: Access) -> Result<&Extent, MmuFault> {
        match self.find(va) {
            None => Err(MmuFault { va, access, kind: self.miss(va) }),
            Some(e) if !e.writable && matches!(access, Access::Write | Access::Atomic) => {
                Err(MmuFault { va, access, kind: FaultKind::ReadOnly })
            }
            Some(e) => Ok(e),
        }
    }

    /// PDE or PTE fault: does the 2 MiB around `va` hold any mapping?
    fn miss(&self, va: u64) -> FaultKind {
        const PDE: u64 = 2 << 20;
        let base = va & !(PDE - 1);
        let next = self.extents.partition_point(|e| e.end() <= base);
        let near = self.extents.get(next).is_some_and(|e| e.va < base.saturating_add(PDE));
        if near { FaultKind::Pte } else { FaultKind::Pde }
    }

    /// A table with one more extent. The caller guarantees that it overlaps none.
    #[must_use]
    pub fn with(&self, extent: Extent) -> PageTable {
        let mut extents = self.extents.clone();
        let at = extents.partition_point(|e| e.va < extent.va);
        extents.insert(at, extent);
        PageTable { extents }
    }

    /// A table without the extent that starts at `va`.
    #[must_use]
    pub fn without(&self, va: u64) -> PageTable {
        PageTable { extents: self.extents.iter().filter(|e| e.va != va).cloned().collect() }
    }

    /// All extents in address order.
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }
}
