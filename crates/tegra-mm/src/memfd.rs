//! The memfds that stand for kernel files, and where the simulator keeps its own descriptors of them.
#![allow(unsafe_code)]

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl, open};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::stat::Mode;
use nix::unistd::ftruncate;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;

/// A new file of `len` zero bytes, close-on-exec, on the lowest free descriptor.
///
/// # Errors
/// The errno of `memfd_create(2)` or `ftruncate(2)`.
pub fn create(name: &str, len: u64) -> Result<OwnedFd, Errno> {
    let fd = memfd_create(name, MFdFlags::MFD_CLOEXEC)?;
    ftruncate(&fd, i64::try_from(len).map_err(|_| Errno::ENOMEM)?)?;
    Ok(fd)
}

/// Another descriptor of the same file, on the lowest free number: what a program on a board would see.
///
/// # Errors
/// The errno of `fcntl(2)`.
pub fn duplicate(fd: &OwnedFd) -> Result<OwnedFd, Errno> {
    dup_from(fd, 0)
}

/// A read-only descriptor of the same file.
///
/// # Errors
/// The errno of `open(2)`.
pub fn duplicate_read_only(fd: &OwnedFd) -> Result<OwnedFd, Errno> {
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    open(path.as_str(), OFlag::O_RDONLY | OFlag::O_CLOEXEC, Mode::empty())
}

/// Moves a descriptor out of the way: the simulator's own ones sit above the numbers a program uses, so that
/// the program's descriptors get the numbers a board would give them.
///
/// # Errors
/// The errno of `fcntl(2)`.
pub fn stow(fd: OwnedFd) -> Result<OwnedFd, Errno> {
    dup_from(&fd, own_base())
}

fn dup_from(fd: &OwnedFd, lowest: RawFd) -> Result<OwnedFd, Errno> {
    let raw = fcntl(fd.as_fd(), FcntlArg::F_DUPFD_CLOEXEC(lowest))?;
    // SAFETY: fcntl made this descriptor for us; nobody else knows its number.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// Lowest descriptor number for the simulator itself. On the first call the soft limit of open files is raised
/// to the hard one: doorbell pages, events and the first buffers cost the simulator descriptors that a board's kernel
/// does not take. Many buffers do not: see [`super::drawer`].
fn own_base() -> RawFd {
    static BASE: OnceLock<RawFd> = OnceLock::new();
    *BASE.get_or_init(|| {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: both calls read or write the one structure they are given.
        unsafe {
            libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
            libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        }
        RawFd::try_from(limit.rlim_cur / 2).unwrap_or(RawFd::MAX).min(4096)
    })
}
