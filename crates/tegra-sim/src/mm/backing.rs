//! Host memory behind a buffer.
#![allow(unsafe_code)]

use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use tegrarm_kmd::{Errno, Mapping, Placement, Prot};

/// Page-aligned host memory that stands for DRAM pages. Callers map the same pages through the buffer's fd,
/// so every byte may change at any time: accesses are volatile or atomic, never through references.
#[derive(Debug)]
pub struct Backing {
    addr: NonNull<u8>,
    len: usize,
    _owner: Owner,
}

#[derive(Debug)]
enum Owner {
    /// A memfd: kept for handing out further descriptors.
    Memfd { fd: OwnedFd, _map: Mapping },
    /// The caller's own pages; the pin that keeps them (nothing in process: the caller owns its memory).
    Foreign,
}

// SAFETY: a range of shared memory; nothing about it belongs to one thread.
unsafe impl Send for Backing {}
// SAFETY: as above; the type hands out its address only.
unsafe impl Sync for Backing {}

impl Backing {
    /// Backs a buffer with the pages of `fd`, a memfd of at least `len` bytes.
    ///
    /// # Errors
    /// The errno of `mmap(2)`.
    pub fn from_memfd(fd: OwnedFd, len: usize) -> Result<Backing, Errno> {
        use std::os::fd::AsFd;
        let map = Mapping::new(fd.as_fd(), Placement::Anywhere, len, Prot::ReadWrite, 0)?;
        let addr = NonNull::new(map.as_ptr()).ok_or(Errno::ENOMEM)?;
        Ok(Backing { addr, len, _owner: Owner::Memfd { fd, _map: map } })
    }

    /// Backs a buffer with pages somebody else owns.
    ///
    /// # Safety
    /// `addr..addr + len` stays mapped read-write for as long as the result lives.
    pub unsafe fn foreign(addr: NonNull<u8>, len: usize) -> Backing {
        Backing { addr, len, _owner: Owner::Foreign }
    }

    /// The memfd, when the pages are ours.
    pub fn memfd(&self) -> Option<&OwnedFd> {
        match &self._owner {
            Owner::Memfd { fd, .. } => Some(fd),
            Owner::Foreign => None,
        }
    }

    /// First byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.addr.as_ptr()
    }

    /// Length in bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }
}
