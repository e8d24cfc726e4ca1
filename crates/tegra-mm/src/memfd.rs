//! The memfds that stand for kernel files, and the place of the simulator's own descriptors of them.
#![allow(unsafe_code)]

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, SealFlag, fcntl, open};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::stat::Mode;
use nix::unistd::ftruncate;
use once_cell::race::OnceBox;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// A new file of `len` zero bytes, close-on-exec, on the lowest free descriptor. Its size is final: whoever gets a
/// descriptor of it could otherwise cut it off under the simulator, whose next access would be SIGBUS.
///
/// # Errors
/// The errno of `memfd_create(2)`, `ftruncate(2)` or `fcntl(2)`.
pub fn create(name: &str, len: u64) -> Result<OwnedFd, Errno> {
    // Beyond the limit of a file's size, ftruncate(2) would also raise SIGXFSZ, which ends a program.
    if getrlimit(Resource::RLIMIT_FSIZE).is_ok_and(|(most, _)| len > most) {
        return Err(Errno::EFBIG);
    }
    let fd = memfd_create(name, MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING)?;
    ftruncate(&fd, i64::try_from(len).map_err(|_| Errno::ENOMEM)?)?;
    let size = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
    fcntl(&fd, FcntlArg::F_ADD_SEALS(size))?;
    Ok(fd)
}

/// Makes another descriptor of the same file, on the lowest free number, as a program on a board would see it.
///
/// # Errors
/// The errno of `fcntl(2)`.
pub fn duplicate(fd: &OwnedFd) -> Result<OwnedFd, Errno> {
    dup_from(fd, 0)
}

/// Makes a read-only descriptor of the same file.
///
/// # Errors
/// The errno of `open(2)`.
pub fn duplicate_read_only(fd: &OwnedFd) -> Result<OwnedFd, Errno> {
    reopen(fd.as_fd(), OFlag::O_RDONLY)
}

/// Opens the same file once more: the result is an open file of its own, which ends by itself. `ENXIO` for a socket.
///
/// # Errors
/// The errno of `open(2)`.
pub fn reopen(fd: BorrowedFd<'_>, mode: OFlag) -> Result<OwnedFd, Errno> {
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    open(path.as_str(), mode | OFlag::O_CLOEXEC, Mode::empty())
}

/// Whether what was written into a pipe, or into one end of a pair of sockets, has not been read yet.
pub fn is_unread(written_to: &OwnedFd) -> bool {
    // What a socket counts of what it sent (SIOCOUTQ), and what a pipe has.
    [libc::TIOCOUTQ, libc::FIONREAD].into_iter().any(|request| {
        let mut bytes: libc::c_int = 0;
        // SAFETY: both requests write one integer.
        let r = unsafe { libc::ioctl(written_to.as_raw_fd(), request, &raw mut bytes) };
        r == 0 && bytes > 0
    })
}

/// Moves a descriptor to a high number. The simulator's own descriptors lie above the numbers that a program uses, so
/// that the program's descriptors get the numbers that they would get on a board.
///
/// # Errors
/// The errno of `fcntl(2)`.
pub fn stow(fd: OwnedFd) -> Result<OwnedFd, Errno> {
    match own_base() {
        0 => Ok(fd),
        base => dup_from(&fd, base),
    }
}

/// In a process whose descriptors are all the simulator's, there is nothing to move them out of the way of. To be called
/// before the first of them is made.
pub fn own_all_numbers() {
    ALL_NUMBERS.store(true, Ordering::Relaxed);
}

/// The soft and the hard limit of open files that this process had before the simulator raised the soft one, if it has.
pub fn limit_before() -> Option<(u64, u64)> {
    LIMIT_BEFORE.get().copied()
}

static LIMIT_BEFORE: OnceBox<(u64, u64)> = OnceBox::new();

static ALL_NUMBERS: AtomicBool = AtomicBool::new(false);

fn dup_from(fd: &OwnedFd, lowest: RawFd) -> Result<OwnedFd, Errno> {
    let raw = fcntl(fd.as_fd(), FcntlArg::F_DUPFD_CLOEXEC(lowest))?;
    // SAFETY: fcntl made this descriptor for this code, and nobody else knows its number.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// The lowest descriptor number for the simulator itself. The first call raises the soft limit of open files to the
/// hard limit, because doorbell pages, events and the first buffers cost the simulator descriptors that a board's
/// kernel does not take. Later buffers cost none: see [`super::keeper`].
fn own_base() -> RawFd {
    static BASE: OnceBox<RawFd> = OnceBox::new();
    *BASE.get_or_init(|| {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: both calls read or write only the structure that they are given.
        unsafe {
            libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
            let _ = LIMIT_BEFORE.set(Box::new((limit.rlim_cur, limit.rlim_max)));
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
            libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit);
        }
        let below = if ALL_NUMBERS.load(Ordering::Relaxed) { 0 } else { 4096 };
        Box::new(RawFd::try_from(limit.rlim_cur / 2).unwrap_or(RawFd::MAX).min(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
    use nix::unistd::{read, write};

    #[test]
    fn nobody_changes_the_size_of_a_file() {
        let file = create("sealed", 8192).unwrap();
        for len in [0, 4096, 16384] {
            assert_eq!(ftruncate(&file, len), Err(Errno::EPERM));
        }
        assert_eq!(fcntl(&file, FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_WRITE)), Err(Errno::EPERM));
        assert_eq!(nix::sys::stat::fstat(&file).unwrap().st_size, 8192);
    }

    #[test]
    fn what_was_sent_is_unread_until_it_is_read() {
        let pair = socketpair(AddressFamily::Unix, SockType::Stream, None, SockFlag::SOCK_CLOEXEC).expect("a pair");
        let pipe = nix::unistd::pipe().expect("a pipe");
        for (theirs, ours) in [pair, pipe] {
            assert!(!is_unread(&ours));
            write(&ours, &[1]).unwrap();
            assert!(is_unread(&ours));
            read(&theirs, &mut [0]).unwrap();
            assert!(!is_unread(&ours));
        }
    }
}
