//! Host memory behind a buffer.
#![allow(unsafe_code)]

use super::drawer::Kept;
use memmap2::{MmapOptions, MmapRaw};
use nix::errno::Errno;
use std::any::Any;
use std::fmt;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;

/// What the memory is, for units that treat some of it specially.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// DRAM.
    Memory,
    /// The host1x syncpoint aperture: one counter (u32) at the start of each [`SYNCPOINT_STRIDE`] bytes. A host
    /// semaphore release of any value there increments the counter; reading gives it.
    Syncpoints,
}

/// Bytes per syncpoint in the aperture (docs/hardware/nvgpu-address-space.md#get-sync-ro-map GET_SYNC_RO_MAP).
pub const SYNCPOINT_STRIDE: usize = 0x10000;

/// Page-aligned host memory that stands for DRAM pages. Callers map the same pages through the buffer's fd,
/// so every byte may change at any time: accesses are volatile or atomic, never through references.
#[derive(Debug)]
pub struct Backing {
    addr: NonNull<u8>,
    len: usize,
    nature: Nature,
    owner: Owner,
}

enum Owner {
    /// A memfd: kept for handing out further descriptors.
    Memfd { file: Kept, _map: MmapRaw },
    /// Pages that stay mapped for as long as this value lives.
    Other { _held: Box<dyn Any + Send + Sync> },
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Owner::Memfd { .. } => "Memfd",
            Owner::Other { .. } => "Other",
        })
    }
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
        let map = MmapOptions::new().len(len).map_raw(&fd).map_err(errno)?;
        let addr = NonNull::new(map.as_mut_ptr()).ok_or(Errno::ENOMEM)?;
        Ok(Backing { addr, len, nature: Nature::Memory, owner: Owner::Memfd { file: Kept::new(fd)?, _map: map } })
    }

    /// New zeroed memory of `len` bytes, rounded up to pages.
    ///
    /// # Errors
    /// The errno of `memfd_create(2)`, `ftruncate(2)` or `mmap(2)`.
    pub fn anonymous(name: &str, len: usize) -> Result<Backing, Errno> {
        let len = len.next_multiple_of(4096);
        Backing::from_memfd(super::memfd::create(name, len as u64)?, len)
    }

    /// The same memory, marked as the syncpoint aperture.
    #[must_use]
    pub fn as_syncpoints(self) -> Backing {
        Backing { nature: Nature::Syncpoints, ..self }
    }

    /// Backs a buffer with a mapping of its own of `len` bytes at `offset` of somebody's shared file.
    ///
    /// # Errors
    /// The errno of `mmap(2)`.
    pub fn from_shared(file: &File, offset: u64, len: usize) -> Result<Backing, Errno> {
        let map = MmapOptions::new().offset(offset).len(len).map_raw(file).map_err(errno)?;
        let addr = NonNull::new(map.as_mut_ptr()).ok_or(Errno::ENOMEM)?;
        Ok(Backing { addr, len, nature: Nature::Memory, owner: Owner::Other { _held: Box::new(map) } })
    }

    /// Backs a buffer with pages that somebody else has mapped. `held` is dropped with the result: it keeps the mapping
    /// alive where it can be kept, and is `()` where only the program itself can promise that.
    ///
    /// # Safety
    /// `addr..addr + len` is page-aligned and stays mapped read-write for as long as the result lives.
    pub unsafe fn from_pages<T: Any + Send + Sync>(addr: NonNull<u8>, len: usize, held: T) -> Backing {
        Backing { addr, len, nature: Nature::Memory, owner: Owner::Other { _held: Box::new(held) } }
    }

    /// The memfd, when the pages are ours.
    pub fn memfd(&self) -> Option<&Kept> {
        match &self.owner {
            Owner::Memfd { file, .. } => Some(file),
            Owner::Other { .. } => None,
        }
    }

    /// What the memory is.
    pub fn nature(&self) -> Nature {
        self.nature
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

    /// Address of `size` bytes at `offset`, when they lie inside.
    fn at(&self, offset: usize, size: usize) -> Option<*mut u8> {
        let inside = offset.checked_add(size).is_some_and(|end| end <= self.len);
        inside.then(|| self.as_ptr().wrapping_add(offset))
    }

    /// Copies bytes out. `false`, with nothing copied, when they do not lie inside.
    #[must_use]
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> bool {
        let Some(from) = self.at(offset, bytes.len()) else { return false };
        // SAFETY: `at` checked the range; the pages live as long as `self`; `bytes` is ours alone.
        unsafe { std::ptr::copy(from, bytes.as_mut_ptr(), bytes.len()) };
        true
    }

    /// Copies bytes in. `false`, with nothing copied, when they do not fit inside.
    #[must_use]
    pub fn write(&self, offset: usize, bytes: &[u8]) -> bool {
        let Some(to) = self.at(offset, bytes.len()) else { return false };
        // SAFETY: `at` checked the range; the pages live as long as `self`; `bytes` is a plain slice elsewhere.
        unsafe { std::ptr::copy(bytes.as_ptr(), to, bytes.len()) };
        true
    }

    /// The little-endian word at a 4-byte aligned `offset`, read with acquire order; `None` outside.
    pub fn load_u32(&self, offset: usize) -> Option<u32> {
        Some(u32::from_le(self.word(offset)?.load(std::sync::atomic::Ordering::Acquire)))
    }

    /// Writes a little-endian word with release order. `false` outside or unaligned.
    #[must_use]
    pub fn store_u32(&self, offset: usize, value: u32) -> bool {
        let Some(word) = self.word(offset) else { return false };
        word.store(value.to_le(), std::sync::atomic::Ordering::Release);
        true
    }

    /// Adds to a word, wrapping, and returns what it held; `None` outside or unaligned.
    pub fn fetch_add_u32(&self, offset: usize, value: u32) -> Option<u32> {
        Some(self.word(offset)?.fetch_add(value, std::sync::atomic::Ordering::AcqRel))
    }

    fn word(&self, offset: usize) -> Option<&std::sync::atomic::AtomicU32> {
        let p = self.at(offset, 4).filter(|_| offset.is_multiple_of(4))?;
        // SAFETY: in range and aligned (the base is page-aligned); an atomic tolerates concurrent writers.
        Some(unsafe { std::sync::atomic::AtomicU32::from_ptr(p.cast()) })
    }
}

/// What the system call said; the standard library hands its number on.
fn errno(error: std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EINVAL, Errno::from_raw)
}
