//! GPU page tables, stored as sorted extents.
//!
//! Code that translates addresses takes a snapshot ([`the contract's `HwSpace::table``]) and holds no lock. The memory
//! behind a snapshot stays mapped while the snapshot is in use. In the hardware, the counterpart of a new snapshot is
//! the TLB invalidate that nvgpu does inside map and unmap. Extents lie in chunks that snapshots share. A change copies
//! one chunk, and only if a snapshot exists. Otherwise it edits the chunk in place.

use super::Backing;
use std::sync::Arc;

/// The kind of an access. The numbers are the GPU's (docs/hardware/gpu-faults.md#fault-types).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Access {
    /// A load or an instruction fetch.
    Read = 0,
    /// A store.
    Write = 1,
    /// A read-modify-write in memory.
    Atomic = 2,
    /// A prefetch.
    Prefetch = 3,
}

/// The reason why an access failed. The numbers are the GPU's (docs/hardware/gpu-faults.md#fault-types).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum FaultKind {
    /// There is no directory entry: nothing is mapped in the surrounding 2 MiB.
    Pde = 0,
    /// The page is not valid.
    Pte = 2,
    /// The address is beyond the 49 bits that are translated.
    VaLimit = 3,
    /// A write to a read-only page.
    ReadOnly = 6,
}

/// An access to an address that has no mapping, or whose mapping forbids the access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MmuFault {
    /// The faulting virtual address.
    pub va: u64,
    /// The kind of the access.
    pub access: Access,
    /// The reason.
    pub kind: FaultKind,
}

/// What an entry says of its page beside the address and the right to write (docs/hardware/gpu-memory.md#page-table-entry). No access
/// of the virtual GPU depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageAttributes {
    /// The kind of the memory: 0 is pitch.
    pub kind: u8,
    /// True if the L2 cache may keep what was read. The entry is volatile otherwise.
    pub cacheable: bool,
    /// True if the page lies in the aperture of coherent system memory.
    pub coherent: bool,
    /// True if the address asks for the L3 cache.
    pub l3: bool,
}

/// One mapping: a range of GPU addresses backed by a contiguous range of host memory, or sparse.
#[derive(Clone, Debug, Default)]
pub struct Extent {
    /// The first GPU address, a multiple of 4 KiB.
    pub va: u64,
    /// The length in bytes, a multiple of 4 KiB.
    pub len: u64,
    /// The memory behind the mapping. `None` means sparse: reads give zero and writes are dropped.
    pub backing: Option<Arc<Backing>>,
    /// The offset in the backing of the byte that `va` maps.
    pub offset: usize,
    /// True if writes are allowed.
    pub writable: bool,
    /// The other properties of its pages.
    pub attributes: PageAttributes,
}

impl Extent {
    /// The first address behind the extent.
    pub fn end(&self) -> u64 {
        self.va + self.len
    }

    /// The entry of each page, without its address. The bit of the address that asks for the L3 cache is in it.
    pub fn entry(&self) -> u64 {
        const VALID: u64 = 1;
        const COHERENT: u64 = 2 << 1;
        const NOT_COHERENT: u64 = 3 << 1;
        const VOLATILE: u64 = 1 << 3;
        const READ_ONLY: u64 = 1 << 6;
        const L3: u64 = 1 << 33;
        let PageAttributes { kind, cacheable, coherent, l3 } = self.attributes;
        if self.backing.is_none() {
            return VOLATILE;
        }
        let mut entry = VALID | u64::from(kind) << 56 | if coherent { COHERENT } else { NOT_COHERENT };
        for (bit, set) in [(VOLATILE, !cacheable), (READ_ONLY, !self.writable), (L3, l3)] {
            entry |= if set { bit } else { 0 };
        }
        entry
    }

    /// The part of the extent inside `from..to`, if there is one.
    fn clip(&self, from: u64, to: u64) -> Option<Extent> {
        let (va, end) = (self.va.max(from), self.end().min(to));
        (va < end).then(|| Extent { va, len: end - va, offset: self.offset + (va - self.va) as usize, ..self.clone() })
    }
}

/// The bits of a virtual address that the page directories translate (docs/hardware/gpu-memory.md#page-table-levels).
const VA_BITS: u32 = 49;
/// The largest number of extents in a chunk. A full chunk is split in two.
const CHUNK: usize = 128;

/// Consecutive extents. A chunk is never empty.
#[derive(Clone, Debug)]
struct Chunk {
    first: u64,
    extents: Arc<Vec<Extent>>,
}

/// A snapshot of one address space's mappings, which are sorted by address and do not overlap. Cloning copies one
/// pointer for each chunk.
#[derive(Clone, Debug, Default)]
pub struct PageTable {
    chunks: Vec<Chunk>,
}

impl PageTable {
    /// The index of the only chunk that can contain `va`.
    fn chunk(&self, va: u64) -> Option<usize> {
        self.chunks.partition_point(|c| c.first <= va).checked_sub(1)
    }

    /// The extent that contains `va`.
    pub fn find(&self, va: u64) -> Option<&Extent> {
        let extents = &self.chunks[self.chunk(va)?].extents;
        let after = extents.partition_point(|e| e.va <= va);
        extents[..after].last().filter(|e| va < e.end())
    }

    /// The first extent that ends after `va`.
    fn find_from(&self, va: u64) -> Option<&Extent> {
        if let Some(e) = self.find(va) {
            return Some(e);
        }
        let c = self.chunk(va).unwrap_or(0);
        let extents = &self.chunks.get(c)?.extents;
        let after = extents.partition_point(|e| e.va <= va);
        extents.get(after).or_else(|| self.chunks.get(c + 1).and_then(|next| next.extents.first()))
    }

    /// The extent that contains `va` and permits `access`.
    ///
    /// # Errors
    /// The fault that a GPU unit would report.
    pub fn translate(&self, va: u64, access: Access) -> Result<&Extent, MmuFault> {
        match self.find(va) {
            None => Err(MmuFault { va, access, kind: self.miss(va) }),
            Some(e) if !e.writable && matches!(access, Access::Write | Access::Atomic) => {
                Err(MmuFault { va, access, kind: FaultKind::ReadOnly })
            }
            Some(e) => Ok(e),
        }
    }

    /// The kind of fault at an address without a mapping. Beyond all page directories it is a fault of the limit.
    /// Otherwise it is a PTE fault if the 2 MiB around `va` contain any mapping, and a PDE fault if they do not.
    fn miss(&self, va: u64) -> FaultKind {
        const PDE: u64 = 2 << 20;
        if va >> VA_BITS != 0 {
            return FaultKind::VaLimit;
        }
        let base = va & !(PDE - 1);
        let near = self.find_from(base).is_some_and(|e| e.va < base.saturating_add(PDE));
        if near { FaultKind::Pte } else { FaultKind::Pde }
    }

    /// Adds an extent. The caller guarantees that it overlaps no other.
    pub fn insert(&mut self, extent: Extent) {
        let Some(c) = self.chunk(extent.va).or_else(|| (!self.chunks.is_empty()).then_some(0)) else {
            self.chunks.push(Chunk { first: extent.va, extents: Arc::new(vec![extent]) });
            return;
        };
        let chunk = &mut self.chunks[c];
        chunk.first = chunk.first.min(extent.va);
        let extents = Arc::make_mut(&mut chunk.extents);
        let at = extents.partition_point(|e| e.va < extent.va);
        extents.insert(at, extent);
        if extents.len() > CHUNK {
            let upper = extents.split_off(CHUNK / 2);
            self.chunks.insert(c + 1, Chunk { first: upper[0].va, extents: Arc::new(upper) });
        }
    }

    /// Removes the extent that starts at `va` and returns it.
    pub fn remove(&mut self, va: u64) -> Option<Extent> {
        let c = self.chunk(va)?;
        let chunk = &mut self.chunks[c];
        let at = chunk.extents.binary_search_by_key(&va, |e| e.va).ok()?;
        let extents = Arc::make_mut(&mut chunk.extents);
        let removed = extents.remove(at);
        match extents.first() {
            Some(first) => chunk.first = first.va,
            None => {
                self.chunks.remove(c);
            }
        }
        Some(removed)
    }

    /// Removes everything in `from..to`. Extents that cross an edge keep their part outside.
    pub fn clear(&mut self, from: u64, to: u64) {
        while let Some(hit) = self.find_from(from).filter(|e| e.va < to).cloned() {
            self.remove(hit.va);
            for rest in [hit.clip(0, from), hit.clip(to, u64::MAX)].into_iter().flatten() {
                self.insert(rest);
            }
        }
    }

    /// All extents in the order of their addresses.
    pub fn extents(&self) -> impl Iterator<Item = &Extent> {
        self.chunks.iter().flat_map(|c| c.extents.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn page(n: u64, len: u64) -> Extent {
        Extent { va: n << 12, len: len << 12, writable: true, ..Extent::default() }
    }

    proptest! {
        /// Insert, remove and clear agree with a model that counts page by page, and a snapshot that was taken on the
        /// way does not change.
        #[test]
        fn agrees_with_a_map_of_pages(ops in proptest::collection::vec((0u8..3, 0u64..600, 1u64..8), 1..400)) {
            let mut table = PageTable::default();
            let mut model = std::collections::BTreeMap::new();
            let mut snapshot: Option<(PageTable, Vec<u64>)> = None;
            for (i, (op, at, len)) in ops.into_iter().enumerate() {
                match op {
                    0 if (at..at + len).all(|p| !model.contains_key(&p)) => {
                        table.insert(page(at, len));
                        model.extend((at..at + len).map(|p| (p, at)));
                    }
                    1 if table.remove(at << 12).is_some() => {
                            let end = (at..).find(|p| model.get(p) != Some(&at)).unwrap();
                            (at..end).for_each(|p| { model.remove(&p); });
                    }
                    2 => {
                        table.clear(at << 12, (at + len) << 12);
                        (at..at + len).for_each(|p| { model.remove(&p); });
                        // The part above a hole is now an extent of its own.
                        let base = at + len;
                        if let Some(&start) = model.get(&base).filter(|&&start| start < base) {
                            for (_, s) in model.range_mut(base..).take_while(|(_, s)| **s == start) {
                                *s = base;
                            }
                        }
                    }
                    _ => {}
                }
                if i == 100 {
                    snapshot = Some((table.clone(), model.keys().copied().collect()));
                }
            }
            let pages = |t: &PageTable| -> Vec<u64> {
                t.extents().flat_map(|e| (e.va >> 12)..(e.end() >> 12)).collect()
            };
            prop_assert_eq!(pages(&table), model.keys().copied().collect::<Vec<_>>());
            for p in 0..620 {
                prop_assert_eq!(table.find((p << 12) + 5).is_some(), model.contains_key(&p));
            }
            if let Some((table, expected)) = snapshot {
                prop_assert_eq!(pages(&table), expected);
            }
        }
    }
}
