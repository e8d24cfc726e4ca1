//! The calling process as the simulated kernel sees it.
//!
//! Kernel code never touches a caller's pointers or descriptors directly: it asks this trait. In process the
//! caller is ourselves ([`InProcess`]); out of process it is whoever the supervisor trapped.

mod in_process;
mod vma;

pub use in_process::InProcess;
pub use vma::Vma;

use std::os::fd::{OwnedFd, RawFd};
use tegrarm_kmd::Errno;

/// Identity of an open file: device and inode of the memfd that stands for it. Duplicates of a descriptor
/// share it, as `struct file` is shared in a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// `st_dev`.
    pub dev: u64,
    /// `st_ino`.
    pub ino: u64,
}

impl FileId {
    /// Identity of one of our own descriptors.
    ///
    /// # Errors
    /// The errno of `fstat(2)`.
    pub fn of(fd: &OwnedFd) -> Result<FileId, Errno> {
        let stat = nix::sys::stat::fstat(fd)?;
        Ok(FileId { dev: stat.st_dev, ino: stat.st_ino })
    }
}

/// A process that makes ioctls.
pub trait Process: Send + Sync {
    /// Thread-group id; nvmap (r36) keeps one client per process.
    fn pid(&self) -> i32;

    /// Whether the caller is the process the simulator runs in.
    fn is_self(&self) -> bool {
        false
    }

    /// What the caller's descriptor `fd` refers to. `EBADF` when it is not open.
    fn file_id(&self, fd: RawFd) -> Result<FileId, Errno>;

    /// Whether the caller's descriptor `fd` is open for reading only.
    fn read_only(&self, fd: RawFd) -> bool;

    /// Puts a new descriptor into the caller's table, close-on-exec, and returns its number there.
    fn install(&self, file: OwnedFd) -> Result<RawFd, Errno>;

    /// Closes one of the caller's descriptors (nvmap FREE of a dmabuf fd does that).
    fn close(&self, fd: RawFd);

    /// Copies from the caller's memory. `EFAULT` when the range is not readable; nothing is promised about `buf` then.
    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Errno>;

    /// Copies to the caller's memory. `EFAULT` when the range is not writable.
    fn write(&self, addr: u64, bytes: &[u8]) -> Result<(), Errno>;

    /// The caller's mapping that holds `addr`, or else the next one above it.
    fn vma(&self, addr: u64) -> Option<Vma>;

    /// Whether the caller has `file` mapped anywhere else than at `except`, where we ourselves have it mapped
    /// (which only matters when we are the caller).
    fn maps(&self, file: FileId, except: u64) -> bool;

    /// Makes the caller's pages `addr..addr + len` (page-aligned) reachable from here for as long as the
    /// result lives: nvmap FROM_VA. `EINVAL` when a page is not mapped, or not writable while `write` asks for it.
    fn pin(&self, addr: u64, len: u64, write: bool) -> Result<tegra_mm::Backing, Errno>;

    /// Whether a signal ends the caller's sleep. In this process nobody can tell, and a sleep goes on.
    fn interrupted(&self) -> bool {
        false
    }

    /// Whether the caller holds CAP_SYS_NICE.
    fn may_reschedule(&self) -> bool;
}
