//! Memory as a warp reaches it: global through the page table, shared as one block.
#![allow(unsafe_code)]

use std::ptr;
use tegra_mm::{Access, MmuFault, PageTable};

/// A piece of an extent, ready for use.
#[derive(Clone, Copy)]
struct Entry {
    start: u64,
    /// Bytes; 0 = empty.
    len: u64,
    /// Null: sparse.
    host: *mut u8,
    writable: bool,
}

const EMPTY: Entry = Entry { start: 0, len: 0, host: ptr::null_mut(), writable: false };
const WAYS: usize = 16;

/// Why a global access has no memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Miss {
    Mmu(MmuFault),
    /// The address lies in a generic window: not global memory.
    Window,
}

/// Translations a worker has already made. The table it reads never changes.
pub(crate) struct Tlb<'a> {
    table: &'a PageTable,
    windows: [u64; 2],
    entries: [Entry; WAYS],
}

/// Where the translation of an address is kept: 64 KiB pieces, spread so that equal offsets in several buffers do
/// not collide.
#[inline(always)]
fn way(va: u64) -> usize {
    ((va >> 16).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize
}

/// Size of the generic windows.
pub(crate) const WINDOW: u64 = 1 << 24;

impl<'a> Tlb<'a> {
    /// `windows` are the bases of the shared and the local window; 0 = none.
    pub(crate) fn new(table: &'a PageTable, windows: [u64; 2]) -> Self {
        Tlb { table, windows, entries: [EMPTY; WAYS] }
    }

    /// Host memory of `len` bytes at `va`; null where the mapping is sparse. The access is aligned, so it does
    /// not cross an extent.
    #[inline(always)]
    pub(crate) fn get(&mut self, va: u64, len: u64, write: bool, access: Access) -> Result<*mut u8, Miss> {
        let e = &self.entries[way(va)];
        let offset = va.wrapping_sub(e.start);
        if offset < e.len && e.len - offset >= len && (!write || e.writable) {
            return Ok(if e.host.is_null() { e.host } else { e.host.wrapping_add(offset as usize) });
        }
        self.fill(va, access)
    }

    /// How far into its cached extent `va` lies, and how long that is. Only right after a successful [`Self::get`].
    #[inline(always)]
    pub(crate) fn around(&self, va: u64) -> (u64, u64) {
        let e = &self.entries[way(va)];
        (va.wrapping_sub(e.start), e.len)
    }

    #[cold]
    fn fill(&mut self, va: u64, access: Access) -> Result<*mut u8, Miss> {
        let inside = |base: u64| base != 0 && va.wrapping_sub(base) < WINDOW;
        if self.windows.iter().any(|&w| inside(w)) {
            return Err(Miss::Window);
        }
        let extent = self.table.translate(va, access).map_err(Miss::Mmu)?;
        let (mut start, mut end) = (extent.va, extent.end());
        for &w in self.windows.iter().filter(|&&w| w != 0) {
            if w > va {
                end = end.min(w);
            } else {
                start = start.max(w + WINDOW);
            }
        }
        let host = match &extent.backing {
            None => ptr::null_mut(),
            Some(b) => b.as_ptr().wrapping_add(extent.offset + (start - extent.va) as usize),
        };
        let e = Entry { start, len: end - start, host, writable: extent.writable };
        self.entries[way(va)] = e;
        Ok(if host.is_null() { host } else { host.wrapping_add((va - start) as usize) })
    }

    /// Copies bytes out, wherever they lie; says where they end if a mapping is missing.
    pub(crate) fn read(&mut self, va: u64, out: &mut [u8]) -> Result<(), MmuFault> {
        let mut done = 0;
        while done < out.len() {
            let at = va.wrapping_add(done as u64);
            let extent = self.table.translate(at, Access::Read)?;
            let n = (extent.end() - at).min((out.len() - done) as u64) as usize;
            match &extent.backing {
                None => out[done..done + n].fill(0),
                Some(b) => {
                    let from = b.as_ptr().wrapping_add(extent.offset + (at - extent.va) as usize);
                    // SAFETY: the extent maps `n` bytes from `at`, and the table keeps its backing mapped.
                    unsafe { ptr::copy_nonoverlapping(from, out[done..].as_mut_ptr(), n) };
                }
            }
            done += n;
        }
        Ok(())
    }
}

/// Shared memory of the CTA a worker runs.
pub(crate) struct Shared {
    block: Vec<u128>,
    bytes: u32,
}

impl Shared {
    pub(crate) fn new(bytes: u32) -> Self {
        Shared { block: vec![0; (bytes as usize).div_ceil(16)], bytes }
    }

    /// A new CTA begins.
    pub(crate) fn clear(&mut self) {
        self.block.fill(0);
    }

    /// `len` bytes at `offset`, if they are inside.
    #[inline(always)]
    pub(crate) fn get(&mut self, offset: u32, len: u32) -> Option<*mut u8> {
        let end = u64::from(offset) + u64::from(len);
        (end <= u64::from(self.bytes)).then(|| self.block.as_mut_ptr().cast::<u8>().wrapping_add(offset as usize))
    }

    /// Size in bytes.
    pub(crate) fn bytes(&self) -> u32 {
        self.bytes
    }
}
