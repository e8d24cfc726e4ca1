//! A shared mapping of a file descriptor into this process.
#![allow(unsafe_code)]

use crate::Errno;
use crate::inherited;
use crate::interrupted::uninterrupted;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// The address of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// An address that the kernel chooses.
    Anywhere,
    /// Exactly this address, and only if the range is free (`MAP_FIXED_NOREPLACE`).
    ExactlyIfFree(usize),
    /// Exactly this address. The mapping replaces what is there (`MAP_FIXED`), so the owner of the range must have
    /// asked for it.
    Replace(usize),
}

/// The access that a mapping allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prot {
    /// Only reads.
    Read,
    /// Reads and writes.
    ReadWrite,
}

/// A shared mapping. Its owner is this value, and dropping it unmaps the range.
#[derive(Debug)]
pub struct Mapping {
    addr: NonNull<u8>,
    len: usize,
    /// True if children of this process do not get it.
    withheld: bool,
}

// SAFETY: a mapping is an address range of the process, and no part of it belongs to one thread.
unsafe impl Send for Mapping {}
// SAFETY: the type gives only its address, and accesses go through volatile accessors.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes at `offset` of `fd`, shared.
    ///
    /// # Errors
    /// The errno of `mmap(2)`; `EEXIST` when [`Placement::ExactlyIfFree`] meets an occupied range.
    pub fn new(fd: BorrowedFd<'_>, at: Placement, len: usize, prot: Prot, offset: u64) -> Result<Mapping, Errno> {
        let (hint, place) = match at {
            Placement::Anywhere => (0, 0),
            Placement::ExactlyIfFree(a) => (a, libc::MAP_FIXED_NOREPLACE),
            Placement::Replace(a) => (a, libc::MAP_FIXED),
        };
        let access = match prot {
            Prot::Read => libc::PROT_READ,
            Prot::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
        };
        // Under `tegrarm-sim run` a signal can interrupt the call.
        let p = uninterrupted(|| {
            // SAFETY: the caller owns the range that it names with `Replace`, and the other placements use only free
            // ranges.
            let p = unsafe {
                let at = hint as *mut libc::c_void;
                libc::mmap(at, len, access, libc::MAP_SHARED | place, fd.as_raw_fd(), offset as i64)
            };
            if p == libc::MAP_FAILED { Err(Errno::last()) } else { Ok(p) }
        })?;
        let map = Mapping { addr: NonNull::new(p.cast()).ok_or(Errno::ENOMEM)?, len, withheld: false };
        // Kernels before 4.17 take MAP_FIXED_NOREPLACE as a hint only.
        match at {
            Placement::ExactlyIfFree(a) if map.addr() != a => Err(Errno::EEXIST),
            _ => Ok(map),
        }
    }

    /// Takes ownership of a range that is already mapped.
    ///
    /// # Safety
    /// `addr..addr + len` is mapped, page-aligned, and nobody else unmaps it.
    pub unsafe fn from_raw(addr: NonNull<u8>, len: usize) -> Mapping {
        Mapping { addr, len, withheld: false }
    }

    /// The start address.
    pub fn addr(&self) -> usize {
        self.addr.as_ptr() as usize
    }

    /// The start address as a pointer. A device may write the memory behind it, so accesses must be volatile.
    pub fn as_ptr(&self) -> *mut u8 {
        self.addr.as_ptr()
    }

    /// The length in bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Keeps the mapping from children of this process, as the drivers of a board do
    /// (docs/hardware/nvgpu-overview.md#fork). A child that accesses it is told so in a sentence before it ends.
    #[must_use]
    pub fn withheld_from_children(mut self) -> Mapping {
        inherited::withhold(self.addr(), self.len);
        self.withheld = true;
        self
    }

    /// Gives up ownership of the range without unmapping it. Its new owner is the code that has the address. Children
    /// do not get it either, if they would not have got it before.
    pub fn leak(self) -> usize {
        let addr = self.addr();
        std::mem::forget(self);
        addr
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.withheld {
            inherited::forget(self.addr(), self.len);
        }
        // SAFETY: this value owns the range (see `new` and `from_raw`), and no reference into it outlives `self`.
        unsafe { libc::munmap(self.addr.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::memfd::{MFdFlags, memfd_create};
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::fs::FileExt;

    const PAGE: usize = 4096;

    fn file(pages: usize) -> OwnedFd {
        let fd = memfd_create("test", MFdFlags::MFD_CLOEXEC).expect("a memfd");
        nix::unistd::ftruncate(&fd, (pages * PAGE) as i64).expect("a size");
        fd
    }

    fn map(fd: &OwnedFd, at: Placement) -> Result<Mapping, Errno> {
        Mapping::new(fd.as_fd(), at, PAGE, Prot::ReadWrite, 0)
    }

    fn first_byte(map: &Mapping) -> u8 {
        // SAFETY: the mapping is at least a page, readable, and lives until after the read.
        unsafe { map.as_ptr().read_volatile() }
    }

    fn fill(map: &Mapping, value: u8) {
        // SAFETY: the mapping is at least a page, writable, and lives until after the write.
        unsafe { map.as_ptr().write_volatile(value) }
    }

    fn mapped(addr: usize) -> bool {
        let mut state = 0u8;
        // SAFETY: mincore writes one byte per page into `state` and fails for pages that are not mapped.
        unsafe { libc::mincore(addr as *mut libc::c_void, PAGE, &mut state) == 0 }
    }

    #[test]
    fn two_mappings_share_the_file() {
        let fd = file(2);
        let (a, b) = (map(&fd, Placement::Anywhere).expect("a"), map(&fd, Placement::Anywhere).expect("b"));
        fill(&a, 7);
        assert_eq!((first_byte(&b), a.len()), (7, PAGE));
        let second = Mapping::new(fd.as_fd(), Placement::Anywhere, PAGE, Prot::Read, PAGE as u64).expect("page 1");
        assert_eq!(first_byte(&second), 0);
    }

    #[test]
    fn exactly_if_free_never_replaces() {
        let (old, new) = (file(1), file(1));
        let there = map(&old, Placement::Anywhere).expect("somewhere");
        fill(&there, 1);
        assert_eq!(map(&new, Placement::ExactlyIfFree(there.addr())).err(), Some(Errno::EEXIST));
        assert_eq!(first_byte(&there), 1);
        fill(&there, 2);
        let mut byte = [0u8];
        std::fs::File::from(old).read_exact_at(&mut byte, 0).expect("a read");
        assert_eq!(byte, [2], "the old mapping is still the one at that address");
    }

    #[test]
    fn exactly_if_free_takes_a_free_range() {
        let fd = file(1);
        // This address is far below those at which the kernel places mappings and far above the program, so no other
        // code maps here.
        let addr = 0x7_0000_0000;
        assert!(!mapped(addr));
        let there = map(&fd, Placement::ExactlyIfFree(addr)).expect("a free range");
        assert_eq!(there.addr(), addr);
    }

    #[test]
    fn replace_replaces() {
        let (old, new) = (file(1), file(1));
        let there = map(&old, Placement::Anywhere).expect("somewhere");
        fill(&there, 1);
        let over = map(&new, Placement::Replace(there.addr())).expect("replaced");
        assert_eq!((over.addr(), first_byte(&over)), (there.addr(), 0));
        there.leak(); // `over` is the owner now
    }

    #[test]
    fn a_drop_unmaps_and_a_leak_does_not() {
        let fd = file(1);
        // Only this test uses this range, so that another thread's mapping cannot take the place of the dropped one.
        let kept = map(&fd, Placement::ExactlyIfFree(0x7_1000_0000)).expect("a free range").leak();
        assert!(mapped(kept));
        // SAFETY: the range was leaked just now. It is one page, page-aligned, and no other code knows it.
        let owner = unsafe { Mapping::from_raw(NonNull::new(kept as *mut u8).expect("not null"), PAGE) };
        drop(owner);
        assert!(!mapped(kept));
    }

    #[test]
    fn errors_are_mmaps_own() {
        let fd = file(1);
        let ask = |len, offset| Mapping::new(fd.as_fd(), Placement::Anywhere, len, Prot::Read, offset).err();
        assert_eq!(ask(0, 0), Some(Errno::EINVAL));
        assert_eq!(ask(PAGE, 1), Some(Errno::EINVAL));
        assert_eq!(map(&fd, Placement::ExactlyIfFree(PAGE * 17 + 1)).err(), Some(Errno::EINVAL));
    }
}
