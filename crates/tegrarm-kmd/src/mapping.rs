//! A shared mapping of a file descriptor into this process.
#![allow(unsafe_code)]

use crate::Errno;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;

/// Where a mapping goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Wherever the kernel likes.
    Anywhere,
    /// Exactly at this address, only if the range is free (`MAP_FIXED_NOREPLACE`).
    ExactlyIfFree(usize),
    /// Exactly at this address, replacing what is there (`MAP_FIXED`). Only for ranges whose owner asked for it.
    Replace(usize),
}

/// Access of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prot {
    /// Reads only.
    Read,
    /// Reads and writes.
    ReadWrite,
}

/// An owned shared mapping; unmapped when dropped.
#[derive(Debug)]
pub struct Mapping {
    addr: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping is an address range of the process; nothing about it belongs to one thread.
unsafe impl Send for Mapping {}
// SAFETY: the type hands out its address only; accesses go through volatile accessors.
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
        // SAFETY: the caller owns the range it names with `Replace`; the other placements touch free ranges only.
        let p = unsafe {
            libc::mmap(hint as *mut libc::c_void, len, access, libc::MAP_SHARED | place, fd.as_raw_fd(), offset as i64)
        };
        if p == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        let map = Mapping { addr: NonNull::new(p.cast()).ok_or(Errno::ENOMEM)?, len };
        // Kernels before 4.17 take MAP_FIXED_NOREPLACE as a mere hint.
        match at {
            Placement::ExactlyIfFree(a) if map.addr() != a => Err(Errno::EEXIST),
            _ => Ok(map),
        }
    }

    /// Takes over a range that is already mapped.
    ///
    /// # Safety
    /// `addr..addr + len` is mapped, page-aligned, and nobody else unmaps it.
    pub unsafe fn from_raw(addr: NonNull<u8>, len: usize) -> Mapping {
        Mapping { addr, len }
    }

    /// Start address.
    pub fn addr(&self) -> usize {
        self.addr.as_ptr() as usize
    }

    /// Start address as a pointer. Memory behind it may be written by a device: use volatile accesses.
    pub fn as_ptr(&self) -> *mut u8 {
        self.addr.as_ptr()
    }

    /// Length in bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Gives the range up without unmapping it: its owner is now whoever holds the address.
    pub fn leak(self) -> usize {
        let addr = self.addr();
        std::mem::forget(self);
        addr
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is ours (see `new`, `from_raw`) and no reference into it outlives `self`.
        unsafe { libc::munmap(self.addr.as_ptr().cast(), self.len) };
    }
}
