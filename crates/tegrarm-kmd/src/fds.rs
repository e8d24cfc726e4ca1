//! Descriptor numbers that callers hand over: what they refer to, new ones, replaced ones.
#![allow(unsafe_code)]

use crate::Errno;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// What a descriptor refers to: the same for every duplicate of it, in this process and in others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// `st_dev`.
    pub dev: u64,
    /// `st_ino`.
    pub ino: u64,
}

/// What a descriptor number refers to.
///
/// # Errors
/// `EBADF` when nothing is open under it.
#[inline]
pub fn file_id(fd: RawFd) -> Result<FileId, Errno> {
    if fd < 0 {
        return Err(Errno::EBADF);
    }
    let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
    // What fstat(3) does, a call less: this is part of every ioctl of the file door.
    // SAFETY: fstatat fills the structure it is given, or fails; any number may be asked about.
    Errno::result(unsafe { libc::fstatat(fd, c"".as_ptr(), stat.as_mut_ptr(), libc::AT_EMPTY_PATH) })?;
    // SAFETY: filled, since fstatat succeeded.
    let stat = unsafe { stat.assume_init() };
    Ok(FileId { dev: stat.st_dev, ino: stat.st_ino })
}

/// A file without contents that has an identity and a name, and of which no byte can be mapped for writing.
///
/// # Errors
/// `EMFILE`, `ENOMEM`.
pub fn named_file(name: &CStr, close_on_exec: bool) -> Result<OwnedFd, Errno> {
    let flags = libc::MFD_ALLOW_SEALING | if close_on_exec { libc::MFD_CLOEXEC } else { 0 };
    // SAFETY: the name is NUL-terminated; the call makes a new descriptor or fails.
    let fd = Errno::result(unsafe { libc::memfd_create(name.as_ptr(), flags) })?;
    // SAFETY: just made, known to nobody else.
    let file = unsafe { OwnedFd::from_raw_fd(fd) };
    let seals = libc::F_SEAL_WRITE | libc::F_SEAL_GROW | libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;
    // SAFETY: changes what may be done with a file of ours.
    Errno::result(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
    Ok(file)
}

/// Makes `onto`, a descriptor of the caller's, refer to what `file` refers to. Whether it closes on exec stays.
///
/// # Errors
/// `EBADF` when `onto` is not open.
pub fn replace(file: BorrowedFd<'_>, onto: RawFd) -> Result<(), Errno> {
    // SAFETY: asks about a number, which may be anything.
    let flags = Errno::result(unsafe { libc::fcntl(onto, libc::F_GETFD) })?;
    let close_on_exec = if flags & libc::FD_CLOEXEC != 0 { libc::O_CLOEXEC } else { 0 };
    // SAFETY: the caller named this descriptor of its own to be replaced; what it referred to is closed by the kernel.
    Errno::result(unsafe { libc::dup3(file.as_raw_fd(), onto, close_on_exec) }).map(drop)
}

/// Closes a descriptor number of the caller's.
///
/// # Errors
/// `EBADF` when nothing is open under it.
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
