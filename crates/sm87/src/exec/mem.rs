//! Memory as a warp reaches it: global memory through the page table, and shared memory as one block.
#![allow(unsafe_code)]

use crate::word::Word;
use std::ptr;
use tegra_mm::{Access, MmuFault, PageTable, whole};

/// A part of an extent whose memory has been looked up.
#[derive(Clone, Copy)]
struct Entry {
    start: u64,
    /// The number of bytes. 0 stands for an empty entry.
    len: u64,
    /// The host's memory. It is NULL if the mapping is sparse.
    host: *mut u8,
    writable: bool,
}

const EMPTY: Entry = Entry { start: 0, len: 0, host: ptr::null_mut(), writable: false };
const WAYS: usize = 64;

/// Why a global access reaches no memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Miss {
    Mmu(MmuFault),
    /// The address lies in a generic window, which is not global memory.
    Window,
}

/// The translations that a worker has made so far. The page table that they were read from never changes.
pub(crate) struct Tlb<'a> {
    table: &'a PageTable,
    windows: [u64; 2],
    entries: [Entry; WAYS],
}

/// Where the translation of an address is kept: by its 64 KiB, or by its page if it is in a smaller extent, of which there may be
/// several in those 64 KiB. Both are spread so that equal offsets in several buffers do not collide.
#[inline(always)]
fn ways(va: u64) -> [usize; 2] {
    [16, 12].map(|unit| ((va >> unit).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize)
}

/// The size of each generic window.
pub(crate) const WINDOW: u64 = 1 << 24;

impl<'a> Tlb<'a> {
    /// Makes an empty cache. `windows` are the addresses of the shared and the local window; 0 stands for no window.
    #[inline(always)]
    pub(crate) fn new(table: &'a PageTable, windows: [u64; 2]) -> Self {
        Tlb { table, windows, entries: [EMPTY; WAYS] }
    }

    /// The host's memory of `len` bytes at `va`. It is NULL where the mapping is sparse. The access is aligned, so that
    /// it does not cross the end of an extent.
    #[inline(always)]
    pub(crate) fn get(&mut self, va: u64, len: u64, write: bool, access: Access) -> Result<*mut u8, Miss> {
        let e = self.entry(va);
        let offset = va.wrapping_sub(e.start);
        if offset < e.len && e.len - offset >= len && (!write || e.writable) {
            return Ok(if e.host.is_null() { e.host } else { e.host.wrapping_add(offset as usize) });
        }
        self.fill(va, access)
    }

    /// How far `va` lies from the start of its cached extent, and the length of that extent. The result is only right
    /// after a successful [`Self::get`].
    #[inline(always)]
    pub(crate) fn around(&self, va: u64) -> (u64, u64) {
        let e = self.entry(va);
        (va.wrapping_sub(e.start), e.len)
    }

    /// The entry in which an address is, if it is in any.
    #[inline(always)]
    fn entry(&self, va: u64) -> &Entry {
        let [large, small] = ways(va);
        let e = &self.entries[large];
        if va.wrapping_sub(e.start) < e.len { e } else { &self.entries[small] }
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
        let [large, small] = ways(va);
        self.entries[if e.len < 1 << 16 { small } else { large }] = e;
        Ok(if host.is_null() { host } else { host.wrapping_add((va - start) as usize) })
    }

    /// Reads the instruction words before and after the one at `code`.
    pub(crate) fn code(&mut self, code: u64) -> impl FnMut(i64) -> Option<Word> {
        let mut last: Option<(u64, *mut u8)> = None;
        move |n| {
            let va = code.wrapping_add_signed(n.wrapping_mul(16));
            let host = match last {
                // Words of a page follow each other in the host's memory, too.
                Some((before, host)) if va.wrapping_sub(16) == before && va & 4095 != 0 => host.wrapping_add(16),
                _ => self.get(va, 16, false, Access::Read).ok()?,
            };
            last = (!host.is_null()).then_some((va, host));
            if host.is_null() {
                return Some(Word::default());
            }
            // SAFETY: a translation covers the 16 bytes, or those before them in the same page, of which it covers all.
            Some(Word(u128::from_le_bytes(unsafe { host.cast::<[u8; 16]>().read() })))
        }
    }

    /// Copies bytes from memory, in any number of extents. If a mapping is missing, the error says where.
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
                    unsafe { whole::copy(from, out[done..].as_mut_ptr(), n) };
                }
            }
            done += n;
        }
        Ok(())
    }
}

/// Copies bytes from the memory of a page table. The result is false if something of them is not mapped.
pub fn read(table: &PageTable, va: u64, out: &mut [u8]) -> bool {
    Tlb::new(table, [0, 0]).read(va, out).is_ok()
}

/// The memory behind that of a CTA, in units of 16 bytes: whoever loads a whole vector may read it, though nobody uses what it finds there.
const BEHIND: usize = 4;

/// The shared memory of the CTA that a worker runs.
pub(crate) struct Shared {
    block: Vec<u128>,
    bytes: u32,
}

impl Shared {
    pub(crate) fn new(bytes: u32) -> Self {
        Shared { block: vec![0; (bytes as usize).div_ceil(16) + BEHIND], bytes }
    }

    /// Clears the memory for a new CTA.
    pub(crate) fn clear(&mut self) {
        if !self.block.is_empty() {
            self.block.fill(0);
        }
    }

    /// The memory of `len` bytes at `offset`, if they are inside the shared memory.
    #[inline(always)]
    pub(crate) fn get(&mut self, offset: u32, len: u32) -> Option<*mut u8> {
        let end = u64::from(offset) + u64::from(len);
        (end <= u64::from(self.bytes)).then(|| self.block.as_mut_ptr().cast::<u8>().wrapping_add(offset as usize))
    }

    /// Copies bytes out. The result is false if they are not inside.
    pub(crate) fn peek(&self, offset: u32, out: &mut [u8]) -> bool {
        let end = u64::from(offset) + out.len() as u64;
        let inside = end <= u64::from(self.bytes);
        if inside {
            let from = self.block.as_ptr().cast::<u8>().wrapping_add(offset as usize);
            // SAFETY: the block has the bytes, as was just compared, and `out` is a plain slice elsewhere.
            unsafe { ptr::copy_nonoverlapping(from, out.as_mut_ptr(), out.len()) };
        }
        inside
    }

    /// The size in bytes.
    pub(crate) fn bytes(&self) -> u32 {
        self.bytes
    }

    /// The bytes from the beginning on that a vector may be loaded from.
    pub(crate) fn readable(&self) -> i64 {
        size_of_val(self.block.as_slice()) as i64
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tegra_mm::{Backing, Extent};

    /// Pages of code whose host memory lies the other way round, a page that is sparse and one that is not mapped.
    #[test]
    fn code_is_read_from_pages_that_do_not_follow_each_other() {
        const PAGE: u64 = 4096;
        let (code, words) = (0x20_0000, PAGE as usize / 16);
        let backing = Arc::new(Backing::anonymous("code", 2 * PAGE as usize).expect("memory"));
        let mut table = PageTable::default();
        for (n, offset) in [(0, PAGE as usize), (1, 0)] {
            table.insert(Extent {
                va: code + n * PAGE,
                len: PAGE,
                backing: Some(backing.clone()),
                offset,
                ..Extent::default()
            });
            for word in 0..words {
                let number = (n as u128) << 64 | word as u128;
                assert!(backing.write(offset + 16 * word, &number.to_le_bytes()));
            }
        }
        table.insert(Extent { va: code + 2 * PAGE, len: PAGE, ..Extent::default() });
        let expected = |at: i64| match at / words as i64 {
            n @ 0..=1 => Some(Word((n as u128) << 64 | (at % words as i64) as u128)),
            2 => Some(Word::default()),
            _ => None,
        };
        let mut tlb = Tlb::new(&table, [0, 0]);
        // From the middle of the first page on, so that words before it are read, too.
        let (middle, end) = (words as i64 / 2, 3 * words as i64);
        let mut read = tlb.code(code + 16 * middle as u64);
        for at in (0..end + 2).chain((0..end + 2).rev()).chain([5, 6, 300, 7, 8, 301, end, end - 1, 0]) {
            assert_eq!(read(at - middle), expected(at), "{at}");
        }
    }
}
