//! The host memory behind a buffer.
#![allow(unsafe_code)]

use super::keeper::Kept;
use super::mappings::Share;
use super::whole;
use memmap2::{MmapOptions, MmapRaw};
use nix::errno::Errno;
use nix::unistd::{Whence, lseek};
use std::any::Any;
use std::fmt;
use std::fs::File;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::NonNull;

/// What the memory is. Some units treat special memory in a special way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// DRAM.
    Memory,
    /// The host1x syncpoint aperture. It has one counter (u32) at the start of each [`SYNCPOINT_STRIDE`] bytes. A host
    /// semaphore release to a counter increments it, whatever the value is. A read returns the counter.
    Syncpoints,
}

/// The bytes for each syncpoint in the aperture (docs/hardware/nvgpu-address-space.md#get-sync-ro-map GET_SYNC_RO_MAP).
pub const SYNCPOINT_STRIDE: usize = 0x10000;

/// Page-aligned host memory that stands for DRAM pages. Callers map the same pages through the buffer's descriptor, so
/// every byte may change at any time. Accesses are therefore volatile, atomic, or made by [`whole`], and never go through references.
#[derive(Debug)]
pub struct Backing {
    addr: NonNull<u8>,
    len: usize,
    /// How many bytes were asked for. The rest of the last page is nobody's.
    asked: usize,
    nature: Nature,
    owner: Owner,
}

enum Owner {
    /// A memfd, which is kept for handing out more descriptors.
    Memfd { file: Kept, _map: MmapRaw, _share: Share },
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

// SAFETY: this is a range of shared memory, and no part of it belongs to one thread.
unsafe impl Send for Backing {}
// SAFETY: as for `Send`. The type hands out only its address.
unsafe impl Sync for Backing {}

impl Backing {
    /// Backs a buffer with the pages of `fd`, a memfd of at least `len` bytes.
    ///
    /// # Errors
    /// The errno of `mmap(2)`; `ENOMEM` when buffers have their part of the mappings of this process.
    pub fn from_memfd(fd: OwnedFd, len: usize) -> Result<Backing, Errno> {
        let share = Share::take()?;
        let map = MmapOptions::new().len(len).map_raw(&fd).map_err(errno)?;
        let addr = NonNull::new(map.as_mut_ptr()).ok_or(Errno::ENOMEM)?;
        let owner = Owner::Memfd { file: Kept::new(fd)?, _map: map, _share: share };
        Ok(Backing { addr, len, asked: len, nature: Nature::Memory, owner })
    }

    /// New zeroed memory of `len` bytes, rounded up to pages.
    ///
    /// # Errors
    /// The errno of `memfd_create(2)`, `ftruncate(2)` or `mmap(2)`.
    pub fn anonymous(name: &str, asked: usize) -> Result<Backing, Errno> {
        let len = asked.next_multiple_of(4096);
        let backing = Backing::from_memfd(super::memfd::create(name, len as u64)?, len)?;
        Ok(Backing { asked, ..backing })
    }

    /// Marks the memory as the syncpoint aperture.
    #[must_use]
    pub fn as_syncpoints(self) -> Backing {
        Backing { nature: Nature::Syncpoints, ..self }
    }

    /// Backs a buffer with a new mapping of `len` bytes at `offset` of a file that another program shares.
    ///
    /// # Errors
    /// The errno of `mmap(2)`.
    pub fn from_shared(file: &File, offset: u64, len: usize) -> Result<Backing, Errno> {
        let share = Share::take()?;
        let map = MmapOptions::new().offset(offset).len(len).map_raw(file).map_err(errno)?;
        let addr = NonNull::new(map.as_mut_ptr()).ok_or(Errno::ENOMEM)?;
        let owner = Owner::Other { _held: Box::new((map, share)) };
        Ok(Backing { addr, len, asked: len, nature: Nature::Memory, owner })
    }

    /// Backs a buffer with pages that another owner has mapped. `held` is dropped together with the result. It keeps
    /// the mapping alive where a value can do that, and is `()` where only the program itself can promise it.
    ///
    /// # Safety
    /// `addr..addr + len` is page-aligned and stays mapped read-write for as long as the result lives.
    pub unsafe fn from_pages<T: Any + Send + Sync>(addr: NonNull<u8>, len: usize, held: T) -> Backing {
        Backing { addr, len, asked: len, nature: Nature::Memory, owner: Owner::Other { _held: Box::new(held) } }
    }

    /// The memfd, if the pages belong to one.
    pub fn memfd(&self) -> Option<&Kept> {
        match &self.owner {
            Owner::Memfd { file, .. } => Some(file),
            Owner::Other { .. } => None,
        }
    }

    /// The kind of the memory.
    pub fn nature(&self) -> Nature {
        self.nature
    }

    /// The address of the first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.addr.as_ptr()
    }

    /// The length in bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// How many bytes were asked for: at most the length, which is whole pages.
    pub fn asked(&self) -> usize {
        self.asked
    }

    /// Whether anybody has used the page of the byte at `offset`, and the offset up to which the same is true of the pages
    /// behind it. Nothing was ever written to a page that nobody has used: it is a hole in the file. A page that was used may
    /// have been read only. All pages count as used where this cannot be known.
    pub fn used(&self, offset: usize) -> (bool, usize) {
        let all = (true, self.len);
        let Some(file) = self.memfd() else { return all };
        let Ok(start) = i64::try_from(offset) else { return all };
        let look = |fd: BorrowedFd<'_>| {
            // Seeking moves the place at which the program itself would read.
            let place = lseek(fd, 0, Whence::SeekCur)?;
            let data = lseek(fd, start, Whence::SeekData);
            let hole = lseek(fd, start, Whence::SeekHole);
            lseek(fd, place, Whence::SeekSet)?;
            Ok::<_, Errno>((data, hole?))
        };
        match file.look(look) {
            Ok(Ok((Ok(data), _))) if data > start => (false, data as usize),
            // There is nothing but a hole up to the end.
            Ok(Ok((Err(Errno::ENXIO), _))) if offset < self.len => (false, self.len),
            Ok(Ok((Ok(_), hole))) if hole > start => (true, hole as usize),
            _ => all,
        }
    }

    /// The address of `size` bytes at `offset`, if they lie inside.
    fn at(&self, offset: usize, size: usize) -> Option<*mut u8> {
        let inside = offset.checked_add(size).is_some_and(|end| end <= self.len);
        inside.then(|| self.as_ptr().wrapping_add(offset))
    }

    /// Copies bytes out. If they do not lie inside, nothing is copied and the result is `false`.
    #[must_use]
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> bool {
        let Some(from) = self.at(offset, bytes.len()) else { return false };
        // SAFETY: `at` checked the range, the pages live as long as `self`, and only this thread uses `bytes`.
        unsafe { whole::copy(from, bytes.as_mut_ptr(), bytes.len()) };
        true
    }

    /// Copies bytes in. If they do not fit inside, nothing is copied and the result is `false`.
    #[must_use]
    pub fn write(&self, offset: usize, bytes: &[u8]) -> bool {
        let Some(to) = self.at(offset, bytes.len()) else { return false };
        // SAFETY: `at` checked the range, the pages live as long as `self`, and `bytes` is a plain slice elsewhere.
        unsafe { whole::copy(bytes.as_ptr(), to, bytes.len()) };
        true
    }

    /// Reads the little-endian word at `offset`, which is a multiple of 4, with acquire order. The result is `None`
    /// outside.
    pub fn load_u32(&self, offset: usize) -> Option<u32> {
        Some(u32::from_le(self.word(offset)?.load(std::sync::atomic::Ordering::Acquire)))
    }

    /// Writes a little-endian word with release order. The result is `false` outside or if `offset` is unaligned.
    #[must_use]
    pub fn store_u32(&self, offset: usize, value: u32) -> bool {
        let Some(word) = self.word(offset) else { return false };
        word.store(value.to_le(), std::sync::atomic::Ordering::Release);
        true
    }

    /// Adds to a word with wrapping, and returns the word's old value. The result is `None` outside or if `offset` is
    /// unaligned.
    pub fn fetch_add_u32(&self, offset: usize, value: u32) -> Option<u32> {
        Some(self.word(offset)?.fetch_add(value, std::sync::atomic::Ordering::AcqRel))
    }

    fn word(&self, offset: usize) -> Option<&std::sync::atomic::AtomicU32> {
        let p = self.at(offset, 4).filter(|_| offset.is_multiple_of(4))?;
        // SAFETY: the address is in range and aligned (the base is page-aligned), and an atomic tolerates concurrent
        // writers.
        Some(unsafe { std::sync::atomic::AtomicU32::from_ptr(p.cast()) })
    }
}

/// Converts an error of the standard library to the errno in it.
fn errno(error: std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EINVAL, Errno::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_used_once_something_was_written_or_read() {
        const PAGE: usize = 4096;
        let backing = Backing::anonymous("test", 5 * PAGE).unwrap();
        assert_eq!(backing.used(0), (false, 5 * PAGE));
        assert!(backing.write(PAGE + 100, &[0]));
        let mut byte = [0];
        assert!(backing.read(4 * PAGE, &mut byte));
        assert_eq!(backing.used(7), (false, PAGE));
        assert_eq!(backing.used(PAGE), (true, 2 * PAGE));
        assert_eq!(backing.used(2 * PAGE + 4), (false, 4 * PAGE));
        assert_eq!(backing.used(5 * PAGE - 1), (true, 5 * PAGE));
        // A mapping of the program's own is as good as the simulator's.
        let file = backing.memfd().unwrap().duplicate().unwrap();
        let map = MmapOptions::new().len(5 * PAGE).map_raw(&file).unwrap();
        // SAFETY: the page is inside of the mapping, which nobody else uses.
        unsafe { map.as_mut_ptr().add(2 * PAGE).write(0) };
        assert_eq!(backing.used(2 * PAGE), (true, 3 * PAGE));
        drop(map);
        assert_eq!(backing.used(2 * PAGE), (true, 3 * PAGE));
        assert_eq!(lseek(&file, 0, Whence::SeekCur), Ok(0), "the program's place in the file is what it was");
        assert_eq!(Backing::from_memfd(file, PAGE).unwrap().used(0), (false, PAGE));
    }
}
