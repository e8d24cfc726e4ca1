//! An open node: a file descriptor, its kind, and the kernel it belongs to.

use crate::{Arg, Errno, Kmd, Mapping, Node, Placement, Prot};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use tegrarm_abi::layout::AbiStruct;

/// An fd of one node kind on one kernel; closed through that kernel when dropped.
pub struct File {
    kmd: Arc<dyn Kmd>,
    node: Node,
    fd: Option<OwnedFd>,
}

impl File {
    /// Opens a device node.
    ///
    /// # Errors
    /// The errno of `open(2)`.
    pub fn open(kmd: &Arc<dyn Kmd>, node: Node, path: &str) -> Result<File, Errno> {
        Ok(File::from_fd(kmd, node, kmd.open(path)?))
    }

    /// Wraps an fd that an ioctl returned.
    pub fn from_fd(kmd: &Arc<dyn Kmd>, node: Node, fd: OwnedFd) -> File {
        File { kmd: kmd.clone(), node, fd: Some(fd) }
    }

    /// Wraps an fd *number* found in an ioctl's output, taking ownership of it.
    ///
    /// # Errors
    /// `EBADF` when the number is negative: the kernel never writes one on success.
    #[allow(unsafe_code)]
    pub fn from_output(kmd: &Arc<dyn Kmd>, node: Node, fd: RawFd) -> Result<File, Errno> {
        if fd < 0 {
            return Err(Errno::EBADF);
        }
        // SAFETY: the kernel just created this descriptor for us and told nobody else.
        Ok(File::from_fd(kmd, node, unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The kernel this file belongs to.
    pub fn kmd(&self) -> &Arc<dyn Kmd> {
        &self.kmd
    }

    /// Which kind of node it is.
    pub fn node(&self) -> Node {
        self.node
    }

    /// The descriptor's number, for ioctls of other nodes that name this one.
    pub fn raw(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }

    /// One ioctl with a structure argument.
    ///
    /// # Errors
    /// The kernel's errno. A positive return (nvgpu's way to report a failed copy-back) becomes `EFAULT`.
    pub fn ioctl<T: AbiStruct>(&self, request: u32, arg: &mut T) -> Result<(), Errno> {
        self.checked(self.kmd.ioctl(self.as_fd(), self.node, request, Arg::Bytes(arg.as_mut_bytes())))
    }

    /// One ioctl whose argument is a value, not a pointer.
    ///
    /// # Errors
    /// As [`File::ioctl`].
    pub fn ioctl_value(&self, request: u32, value: u64) -> Result<(), Errno> {
        self.checked(self.kmd.ioctl(self.as_fd(), self.node, request, Arg::Value(value)))
    }

    fn checked(&self, result: Result<i32, Errno>) -> Result<(), Errno> {
        match result? {
            0 => Ok(()),
            _ => Err(Errno::EFAULT),
        }
    }

    /// Maps part of it, shared.
    ///
    /// # Errors
    /// The errno of `mmap(2)`.
    pub fn mmap(&self, at: Placement, len: usize, prot: Prot, offset: u64) -> Result<Mapping, Errno> {
        self.kmd.mmap(self.as_fd(), at, len, prot, offset)
    }
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_ref().expect("present until drop").as_fd()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if let Some(fd) = self.fd.take() {
            self.kmd.close(fd);
        }
    }
}
