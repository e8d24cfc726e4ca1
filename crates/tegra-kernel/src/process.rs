//! The calling process as the simulated kernel sees it.
//!
//! Kernel code never touches a caller's pointers or descriptors directly: it uses this trait. In process, the caller is
//! this process itself ([`InProcess`]). Out of process, it is the process that the supervisor has trapped.

mod in_process;
mod vma;

pub use in_process::InProcess;
pub use vma::Vma;

use std::os::fd::{OwnedFd, RawFd};
use tegrarm_kmd::Errno;

/// The identity of an open file: device and inode of the memfd that stands for it. Duplicates of a descriptor have the
/// same identity, as they share a `struct file` in a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// `st_dev`.
    pub dev: u64,
    /// `st_ino`.
    pub ino: u64,
}

impl FileId {
    /// The identity of a descriptor of this process.
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
    /// The thread-group id. On r36, nvmap has one client for each process.
    fn pid(&self) -> i32;

    /// Whether the caller is the process in which the simulator runs.
    fn is_self(&self) -> bool {
        false
    }

    /// The identity of the file behind the caller's descriptor `fd`. The error is `EBADF` if it is not open.
    fn file_id(&self, fd: RawFd) -> Result<FileId, Errno>;

    /// Whether the caller's descriptor `fd` is open for reading only.
    fn read_only(&self, fd: RawFd) -> bool;

    /// Puts a new descriptor into the caller's table, close-on-exec, and returns its number there.
    fn install(&self, file: OwnedFd) -> Result<RawFd, Errno>;

    /// Closes one of the caller's descriptors. FREE of nvmap does this with a dmabuf descriptor.
    fn close(&self, fd: RawFd);

    /// Copies from the caller's memory. The error is `EFAULT` if the range cannot be read. The contents of `buf` are
    /// not defined then.
    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Errno>;

    /// Copies to the caller's memory. The error is `EFAULT` if the range cannot be written.
    fn write(&self, addr: u64, bytes: &[u8]) -> Result<(), Errno>;

    /// The caller's mapping that contains `addr`, or else the next one above it.
    fn vma(&self, addr: u64) -> Option<Vma>;

    /// Whether the caller has mapped `file` at another address than `except`. The simulator's own mapping is at
    /// `except`, which matters only when the caller is this process.
    fn maps(&self, file: FileId, except: u64) -> bool;

    /// Makes the caller's pages `addr..addr + len` accessible from here for as long as the result lives, for FROM_VA of
    /// nvmap. The range is page-aligned. The error is `EINVAL` if a page is not mapped, or if `write` is true and a
    /// page is not writable.
    fn pin(&self, addr: u64, len: u64, write: bool) -> Result<tegra_mm::Backing, Errno>;

    /// Whether a signal ends the caller's sleep. In this process nobody can tell, and a sleep goes on.
    fn interrupted(&self) -> bool {
        false
    }

    /// Whether the caller holds CAP_SYS_NICE.
    fn may_reschedule(&self) -> bool;
}
