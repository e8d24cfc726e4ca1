//! Operations on descriptor numbers that callers hand over: finding the file behind one, and making, replacing and
//! closing descriptors.
#![allow(unsafe_code)]

use crate::Errno;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// The identity of the file behind a descriptor. It is the same for every duplicate of the descriptor, in this process
/// and in others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// `st_dev`.
    pub dev: u64,
    /// `st_ino`.
    pub ino: u64,
}

/// The identity of the file behind a descriptor number.
///
/// # Errors
/// `EBADF` when no file is open under the number.
#[inline]
pub fn file_id(fd: RawFd) -> Result<FileId, Errno> {
    if fd < 0 {
        return Err(Errno::EBADF);
    }
    let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
    // This does what fstat(3) does with one call less, because every ioctl of the file door comes here. SAFETY: fstatat
    // fills the structure that it is given, or fails; any number may be passed.
    Errno::result(unsafe { libc::fstatat(fd, c"".as_ptr(), stat.as_mut_ptr(), libc::AT_EMPTY_PATH) })?;
    // SAFETY: fstatat succeeded, so the structure is filled.
    let stat = unsafe { stat.assume_init() };
    Ok(FileId { dev: stat.st_dev, ino: stat.st_ino })
}

/// Makes a file that has an identity and a name but no contents. No byte of it can be mapped for writing.
///
/// # Errors
/// `EMFILE` or `ENOMEM`.
pub fn named_file(name: &CStr, close_on_exec: bool) -> Result<OwnedFd, Errno> {
    let flags = libc::MFD_ALLOW_SEALING | if close_on_exec { libc::MFD_CLOEXEC } else { 0 };
    // SAFETY: the name is NUL-terminated, and the call makes a new descriptor or fails.
    let fd = Errno::result(unsafe { libc::memfd_create(name.as_ptr(), flags) })?;
    // SAFETY: the descriptor was just made, and no other code knows it.
    let file = unsafe { OwnedFd::from_raw_fd(fd) };
    let seals = libc::F_SEAL_WRITE | libc::F_SEAL_GROW | libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;
    // SAFETY: this changes what may be done with a file that this code has just made.
    Errno::result(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
    Ok(file)
}

/// Makes `onto`, a descriptor of the caller, refer to the file behind `file`. Its close-on-exec flag stays as it is.
///
/// # Errors
/// `EBADF` when `onto` is not open.
pub fn replace(file: BorrowedFd<'_>, onto: RawFd) -> Result<(), Errno> {
    // SAFETY: this asks about a number, which may be any number.
    let flags = Errno::result(unsafe { libc::fcntl(onto, libc::F_GETFD) })?;
    let close_on_exec = if flags & libc::FD_CLOEXEC != 0 { libc::O_CLOEXEC } else { 0 };
    // SAFETY: the caller named this descriptor of its own to be replaced, and the kernel closes its old file.
    Errno::result(unsafe { libc::dup3(file.as_raw_fd(), onto, close_on_exec) }).map(drop)
}

/// Closes a descriptor number of the caller.
///
/// # Errors
/// `EBADF` when no file is open under the number.
pub fn close(fd: RawFd) -> Result<(), Errno> {
    // SAFETY: the caller named this descriptor of its own to be closed.
    Errno::result(unsafe { libc::close(fd) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mapping, Placement, Prot};
    use std::os::fd::{AsFd, IntoRawFd};

    #[test]
    fn duplicates_are_the_same_file_and_new_ones_are_not() {
        let (a, b) = (named_file(c"a", true).unwrap(), named_file(c"a", true).unwrap());
        let id = |fd: &OwnedFd| file_id(fd.as_raw_fd()).unwrap();
        let copy = a.try_clone().unwrap();
        assert_eq!(id(&a), id(&copy));
        assert_ne!(id(&a), id(&b));
        assert_eq!(file_id(-1), Err(Errno::EBADF));
    }

    #[test]
    fn a_named_file_cannot_be_mapped() {
        let file = named_file(c"a", true).unwrap();
        let map = Mapping::new(file.as_fd(), Placement::Anywhere, 4096, Prot::ReadWrite, 0);
        assert_eq!(map.err(), Some(Errno::EPERM));
    }

    #[test]
    fn a_replaced_descriptor_keeps_its_number_and_flag() {
        let source = named_file(c"source", true).unwrap();
        for close_on_exec in [true, false] {
            let target = named_file(c"target", close_on_exec).unwrap();
            replace(source.as_fd(), target.as_raw_fd()).unwrap();
            assert_eq!(file_id(target.as_raw_fd()), file_id(source.as_raw_fd()));
            let flags = nix::fcntl::fcntl(&target, nix::fcntl::FcntlArg::F_GETFD).unwrap();
            assert_eq!(flags & libc::FD_CLOEXEC != 0, close_on_exec);
        }
        close(named_file(c"closed", true).unwrap().into_raw_fd()).unwrap();
        assert_eq!(close(-1), Err(Errno::EBADF));
        assert_eq!(replace(source.as_fd(), -1), Err(Errno::EBADF));
    }
}
