//! Raw access to memory that programs, GPU kernels and this process share.
//!
//! There are two ways to the memory: [`Accessor`] for GPU addresses, through a page table, and [`Words`] for the few
//! places that the kernel names directly (ring, USERD and doorbell page). No code here makes a Rust reference to plain
//! bytes of such memory: words are accessed by atomics, and bulk data by [`whole::copy`], which never tears an aligned word.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use tegra_hw::Place;
use tegra_mm::{Access, Extent, FaultKind, MmuFault, Nature, PageTable, SYNCPOINT_STRIDE, whole};

/// A contiguous piece of host memory behind a GPU address. The pointer is `None` for sparse mappings.
struct Piece {
    at: Option<*mut u8>,
    len: usize,
}

/// GPU virtual memory, seen through one snapshot of a page table.
///
/// The accessor remembers the extent that it used last. Words may have any alignment. Naturally aligned words are
/// single-copy atomic. Loads acquire and stores release, so a reader that sees a payload also sees the data that was
/// written before it.
pub(crate) struct Accessor<'t> {
    table: &'t PageTable,
    hit: Cell<Option<&'t Extent>>,
}

macro_rules! words {
    ($t:ty, $atomic:ty, $read:ident, $write:ident) => {
        pub(crate) fn $read(&self, va: u64) -> Result<$t, MmuFault> {
            let piece = self.piece(va, Access::Read, size_of::<$t>())?;
            match piece.at {
                Some(p) if piece.len == size_of::<$t>() && p.cast::<$t>().is_aligned() => {
                    // SAFETY: `piece` checked that these bytes lie in live, mapped memory; alignment is checked.
                    Ok(unsafe { <$atomic>::from_ptr(p.cast()) }.load(Ordering::Acquire))
                }
                _ => {
                    let mut bytes = [0; size_of::<$t>()];
                    self.read_bytes(va, &mut bytes)?;
                    Ok(<$t>::from_le_bytes(bytes))
                }
            }
        }

        pub(crate) fn $write(&self, va: u64, value: $t) -> Result<(), MmuFault> {
            let piece = self.piece(va, Access::Write, size_of::<$t>())?;
            match piece.at {
                Some(p) if piece.len == size_of::<$t>() && p.cast::<$t>().is_aligned() => {
                    // SAFETY: the same as for the load.
                    unsafe { <$atomic>::from_ptr(p.cast()) }.store(value, Ordering::Release);
                    Ok(())
                }
                _ => self.write_bytes(va, &value.to_le_bytes()),
            }
        }
    };
}

macro_rules! updates {
    ($t:ty, $atomic:ty, $update:ident, $read:ident, $write:ident) => {
        /// Reads, modifies and writes a word in memory. Returns the old value.
        pub(crate) fn $update(&self, va: u64, change: impl Fn($t) -> $t) -> Result<$t, MmuFault> {
            let piece = self.piece(va, Access::Atomic, size_of::<$t>())?;
            match piece.at {
                Some(p) if piece.len == size_of::<$t>() && p.cast::<$t>().is_aligned() => {
                    // SAFETY: the same as for the load.
                    let word = unsafe { <$atomic>::from_ptr(p.cast()) };
                    let old = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |v| Some(change(v)));
                    Ok(old.unwrap_or_else(|v| v))
                }
                _ => {
                    let old = self.$read(va)?;
                    self.$write(va, change(old))?;
                    Ok(old)
                }
            }
        }
    };
}

impl<'t> Accessor<'t> {
    pub(crate) fn new(table: &'t PageTable) -> Accessor<'t> {
        Accessor { table, hit: Cell::new(None) }
    }

    words!(u32, AtomicU32, read_u32, write_u32);
    words!(u64, AtomicU64, read_u64, write_u64);
    updates!(u32, AtomicU32, update_u32, read_u32, write_u32);
    updates!(u64, AtomicU64, update_u64, read_u64, write_u64);

    /// The mapping that contains `va`.
    fn extent(&self, va: u64, access: Access) -> Result<&'t Extent, MmuFault> {
        let writes = matches!(access, Access::Write | Access::Atomic);
        let extent = match self.hit.get() {
            Some(e) if e.va <= va && va < e.end() && (e.writable || !writes) => e,
            _ => self.table.translate(va, access)?,
        };
        self.hit.set(Some(extent));
        Ok(extent)
    }

    /// Increments the syncpoint behind `va`. If no writable syncpoint is there, nothing changes and the result is
    /// false.
    pub(crate) fn increment_syncpoint(&self, va: u64) -> bool {
        let Some(extent) = self.table.find(va).filter(|e| e.writable) else { return false };
        let Some(backing) = extent.backing.as_ref().filter(|b| b.nature() == Nature::Syncpoints) else { return false };
        let at = extent.offset + (va - extent.va) as usize;
        let counter = at - at % SYNCPOINT_STRIDE;
        backing.fetch_add_u32(counter, 1).is_some()
    }

    /// The memory behind `va`: at most `want` bytes, or fewer if the mapping ends before.
    fn piece(&self, va: u64, access: Access, want: usize) -> Result<Piece, MmuFault> {
        let extent = self.extent(va, access)?;
        let into = (va - extent.va) as usize;
        let len = want.min((extent.len as usize) - into);
        let Some(backing) = &extent.backing else { return Ok(Piece { at: None, len }) };
        // A mapping that is longer than its memory would be a mistake of the kernel. It gives a fault and no stray
        // access.
        let at = extent.offset + into;
        let left = backing.len().saturating_sub(at);
        if left == 0 {
            return Err(MmuFault { va, access, kind: FaultKind::Pte });
        }
        // SAFETY: `at < backing.len()`, so the pointer stays inside the backing's mapping.
        Ok(Piece { at: Some(unsafe { backing.as_ptr().add(at) }), len: len.min(left) })
    }

    /// Copies out of GPU memory. After a fault, the bytes before the faulting address have been read.
    pub(crate) fn read_bytes(&self, va: u64, to: &mut [u8]) -> Result<(), MmuFault> {
        let mut done = 0;
        while done < to.len() {
            let piece = self.piece(va.wrapping_add(done as u64), Access::Read, to.len() - done)?;
            let part = &mut to[done..done + piece.len];
            match piece.at {
                // SAFETY: both ranges are `piece.len` long; `to` is private memory, so they cannot overlap.
                Some(p) => unsafe { whole::copy(p, part.as_mut_ptr(), part.len()) },
                None => part.fill(0),
            }
            done += piece.len;
        }
        Ok(())
    }

    /// Copies into GPU memory. After a fault, the bytes before the faulting address have been written.
    pub(crate) fn write_bytes(&self, va: u64, from: &[u8]) -> Result<(), MmuFault> {
        let mut done = 0;
        while done < from.len() {
            let piece = self.piece(va.wrapping_add(done as u64), Access::Write, from.len() - done)?;
            if let Some(p) = piece.at {
                // SAFETY: the same as for the read.
                unsafe { whole::copy(from.as_ptr().add(done), p, piece.len) };
            }
            done += piece.len;
        }
        Ok(())
    }

    /// Copies `len` bytes between GPU addresses. If the ranges share addresses, the effect is as if all bytes were read
    /// before any is written.
    pub(crate) fn copy(&self, from: u64, to: u64, len: usize) -> Result<(), MmuFault> {
        let backwards = from < to && to - from < len as u64;
        let mut done = 0;
        while done < len {
            let n = if backwards { self.step_back(from, to, len - done)? } else { self.step(from, to, done, len)? };
            done += n;
        }
        Ok(())
    }

    /// Copies one piece with ascending addresses, from `done` as far as both mappings reach.
    fn step(&self, from: u64, to: u64, done: usize, len: usize) -> Result<usize, MmuFault> {
        let source = self.piece(from.wrapping_add(done as u64), Access::Read, len - done)?;
        let target = self.piece(to.wrapping_add(done as u64), Access::Write, source.len)?;
        let n = target.len;
        move_piece(&source, &target, n);
        Ok(n)
    }

    /// Copies one piece of at most a page with descending addresses, down from `left`.
    fn step_back(&self, from: u64, to: u64, left: usize) -> Result<usize, MmuFault> {
        const PAGE: u64 = 4096;
        // Neither piece may cross the page boundary below its last byte, because mappings begin at pages.
        let room = |va: u64| (va.wrapping_add(left as u64 - 1) % PAGE + 1) as usize;
        let n = left.min(room(from)).min(room(to));
        let at = (left - n) as u64;
        let source = self.piece(from.wrapping_add(at), Access::Read, n)?;
        let target = self.piece(to.wrapping_add(at), Access::Write, n)?;
        move_piece(&source, &target, source.len.min(target.len).min(n));
        Ok(n)
    }
}

/// Moves `n` bytes. A sparse source gives zeros, and a sparse target drops the bytes.
fn move_piece(source: &Piece, target: &Piece, n: usize) {
    match (source.at, target.at) {
        // SAFETY: both pieces hold at least `n` bytes; `copy` allows them to overlap.
        (Some(s), Some(t)) => unsafe { whole::copy(s, t, n) },
        // SAFETY: the target holds at least `n` bytes.
        (None, Some(t)) => unsafe { std::ptr::write_bytes(t, 0, n) },
        (_, None) => {}
    }
}

/// The words of a [`Place`]. Outside of the place's backing, loads give zero and stores are dropped.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a>(pub(crate) &'a Place);

macro_rules! place_words {
    ($t:ty, $atomic:ty, $load:ident, $store:ident) => {
        pub(crate) fn $load(self, offset: usize) -> $t {
            let Some(p) = self.at::<$t>(offset) else { return 0 };
            // SAFETY: `at` checked bounds and alignment, and the place keeps its backing alive.
            unsafe { <$atomic>::from_ptr(p) }.load(Ordering::Acquire)
        }

        pub(crate) fn $store(self, offset: usize, value: $t) {
            if let Some(p) = self.at::<$t>(offset) {
                // SAFETY: the same as for the load.
                unsafe { <$atomic>::from_ptr(p) }.store(value, Ordering::Release);
            }
        }
    };
}

impl Words<'_> {
    place_words!(u32, AtomicU32, load_u32, store_u32);
    place_words!(u64, AtomicU64, load_u64, store_u64);

    fn at<T>(self, offset: usize) -> Option<*mut T> {
        let start = self.0.offset.checked_add(offset)?;
        let end = start.checked_add(size_of::<T>())?;
        if end > self.0.backing.len() {
            return None;
        }
        // SAFETY: `end` lies within the backing.
        let p = unsafe { self.0.backing.as_ptr().add(start) }.cast::<T>();
        p.is_aligned().then_some(p)
    }

    /// Replaces the word by `value` and returns the old word.
    pub(crate) fn swap_u32(self, offset: usize, value: u32) -> Option<u32> {
        let p = self.at::<u32>(offset)?;
        // SAFETY: `at` checked bounds and alignment, and the place keeps its backing alive.
        Some(unsafe { AtomicU32::from_ptr(p) }.swap(value, Ordering::AcqRel))
    }
}
