//! Counts that other processes may look at. `tegrarm top` shows with them how many kernels a process launches in a second, and monitors
//! show how much memory of the GPU it has.
//!
//! A count is a word of a memfd, which `/proc/PID/fd` shows under the name [`NAME`]. Who may look into that directory,
//! which is the same user and root, can open the file there and read four words of 64 bits: [`MAGIC`], the process, the
//! [`Source`], and the count. There is no directory that has to be writable, and no file that a killed process leaves.
//! The file is sealed, so that nobody can cut it off under the process, and so that nobody else writes it (Linux 5.1).
//!
//! Counting is one addition in memory. If the file cannot be made, the process counts for itself.
#![allow(unsafe_code)]

use crate::exec_mem::page_size;
use crate::mapping::{Mapping, Placement, Prot};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::uio::pwrite;
use nix::unistd::{ftruncate, getpid};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The name of the file. Links in `/proc/PID/fd` read `/memfd:tegrarm-counters (deleted)`.
pub const NAME: &str = "tegrarm-counters";
/// The first word of the file.
pub const MAGIC: u64 = u64::from_le_bytes(*b"tegrarm1");
/// The place of the count, after the three words that say what it is.
const COUNT_AT: usize = 24;
/// The descriptor lies above the numbers that programs count on, so that theirs stay the same.
const LOWEST_DESCRIPTOR: i32 = 512;

/// Who counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The library counts what it gives to the GPU through its own queues and replays.
    Library = 1,
    /// The virtual GPU of this process counts what it has executed, whoever gave it.
    VirtualGpu = 2,
    /// The library counts the bytes of memory that the process has from nvmap, through whichever door.
    Memory = 3,
}

/// A count. Its copies are the same count.
#[derive(Clone, Debug)]
pub struct Tally {
    /// The count, in the memory that the next field keeps.
    count: NonNull<AtomicU64>,
    memory: Arc<Memory>,
}

#[derive(Debug)]
enum Memory {
    Shown { page: Mapping, _file: OwnedFd },
    Hidden(AtomicU64),
}

// SAFETY: the count is an atomic word in memory that lives for as long as any copy, and no part of it belongs to one
// thread.
unsafe impl Send for Tally {}
// SAFETY: as above; shared access only adds to the atomic word or reads it.
unsafe impl Sync for Tally {}

impl Tally {
    /// Begins to count from 0, where others see it if that is possible.
    pub fn new(source: Source) -> Tally {
        let memory = shown(source).unwrap_or_else(|errno| {
            tracing::debug!("the counts of this process are not shown: {errno}");
            Memory::Hidden(AtomicU64::new(0))
        });
        Tally::of(Arc::new(memory))
    }

    fn of(memory: Arc<Memory>) -> Tally {
        let count = match &*memory {
            // SAFETY: the page has more bytes than the four words, and a page is aligned for each of them.
            Memory::Shown { page, .. } => unsafe { NonNull::new_unchecked(page.as_ptr().add(COUNT_AT).cast()) },
            Memory::Hidden(count) => NonNull::from(count),
        };
        Tally { count, memory }
    }

    /// Counts `more`.
    #[inline(always)]
    pub fn add(&self, more: u64) {
        self.count().fetch_add(more, Ordering::Relaxed);
    }

    /// Takes back `less`, which was counted before.
    pub fn sub(&self, less: u64) {
        self.count().fetch_sub(less, Ordering::Relaxed);
    }

    /// The count.
    pub fn get(&self) -> u64 {
        self.count().load(Ordering::Relaxed)
    }

    /// Whether other processes see it.
    pub fn is_shown(&self) -> bool {
        matches!(*self.memory, Memory::Shown { .. })
    }

    #[inline(always)]
    fn count(&self) -> &AtomicU64 {
        // SAFETY: `memory` keeps the word for as long as `self`, and everybody accesses it as an atomic word.
        unsafe { self.count.as_ref() }
    }
}

/// Makes the file and maps it.
fn shown(source: Source) -> Result<Memory, Errno> {
    let len = page_size();
    // Beyond the limit of a file's size, ftruncate(2) would also raise SIGXFSZ, which ends a program.
    if getrlimit(Resource::RLIMIT_FSIZE).is_ok_and(|(most, _)| len as u64 > most) {
        return Err(Errno::EFBIG);
    }
    let file = moved_up(memfd_create(NAME, MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?);
    ftruncate(&file, len as i64)?;
    let words = [MAGIC, getpid().as_raw() as u64, source as u64];
    pwrite(&file, words.map(u64::to_ne_bytes).as_flattened(), 0)?;
    let page = Mapping::new(file.as_fd(), Placement::Anywhere, len, Prot::ReadWrite, 0)?;
    fcntl(&file, FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW))?;
    // Kernels before 5.1 do not know this seal. It leaves writing to the mapping that is there.
    let _ = fcntl(&file, FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_FUTURE_WRITE));
    Ok(Memory::Shown { page, _file: file })
}

/// The same file on a higher descriptor, if the limit allows one.
fn moved_up(file: OwnedFd) -> OwnedFd {
    match fcntl(&file, FcntlArg::F_DUPFD_CLOEXEC(LOWEST_DESCRIPTOR)) {
        // SAFETY: fcntl made this descriptor for this code, and nobody else knows its number.
        Ok(raw) => unsafe { OwnedFd::from_raw_fd(raw) },
        Err(_) => file,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::path::PathBuf;

    /// The files of this process that show counts of a source.
    fn seen(source: Source) -> Vec<(PathBuf, u64)> {
        let links = std::fs::read_dir("/proc/self/fd").expect("proc").map(|entry| entry.expect("entry").path());
        let ours = links.filter(|at| std::fs::read_link(at).is_ok_and(|to| to.to_string_lossy().contains(NAME)));
        let read = |at: PathBuf| {
            let mut words = [0; 32];
            std::fs::File::open(&at).expect("ours").read_exact(&mut words).expect("four words");
            let word = |i: usize| u64::from_ne_bytes(words[8 * i..][..8].try_into().expect("eight bytes"));
            assert_eq!((word(0), word(1)), (MAGIC, u64::from(std::process::id())));
            (word(2) == source as u64).then_some((at, word(3)))
        };
        ours.filter_map(read).collect()
    }

    #[test]
    fn others_see_the_count_and_cannot_change_it() {
        let tally = Tally::new(Source::VirtualGpu);
        assert!(tally.is_shown());
        tally.add(2);
        tally.clone().add(44);
        tally.sub(4);
        let seen_now = seen(Source::VirtualGpu);
        assert_eq!(seen_now.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [42]);
        let file = std::fs::OpenOptions::new().read(true).write(true).open(&seen_now[0].0).expect("ours");
        assert_eq!(ftruncate(&file, 0), Err(Errno::EPERM));
        assert_eq!(pwrite(&file, &[0; 8], COUNT_AT as i64), Err(Errno::EPERM));
        assert_eq!(tally.get(), 42);
        drop((tally, file));
        assert_eq!(seen(Source::VirtualGpu), []);
    }

    #[test]
    fn a_count_that_nobody_sees_counts() {
        let tally = Tally::of(Arc::new(Memory::Hidden(AtomicU64::new(0))));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..100).for_each(|_| tally.add(1)));
            }
        });
        assert!(!tally.is_shown());
        assert_eq!(tally.get(), 400);
    }
}
