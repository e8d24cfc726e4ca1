//! An open node: a file descriptor, its kind, and the kernel to which it belongs.

use crate::{Arg, Errno, Kmd, Mapping, Node, Placement, Prot};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use tegrarm_abi::layout::AbiStruct;

/// A descriptor of one kind of node on one kernel. When it is dropped, that kernel closes it.
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

    /// Wraps a descriptor that an ioctl returned.
    pub fn from_fd(kmd: &Arc<dyn Kmd>, node: Node, fd: OwnedFd) -> File {
        File { kmd: kmd.clone(), node, fd: Some(fd) }
    }

    /// Wraps a descriptor *number* from an ioctl's output and takes ownership of it.
    ///
    /// # Errors
    /// `EBADF` when the number is negative, which the kernel never writes on success.
    #[allow(unsafe_code)]
    pub fn from_output(kmd: &Arc<dyn Kmd>, node: Node, fd: RawFd) -> Result<File, Errno> {
        if fd < 0 {
            return Err(Errno::EBADF);
        }
        // SAFETY: the kernel has just made this descriptor for this code, and no other code knows it.
        Ok(File::from_fd(kmd, node, unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The kernel to which this file belongs.
    pub fn kmd(&self) -> &Arc<dyn Kmd> {
        &self.kmd
    }

    /// The kind of node.
    pub fn node(&self) -> Node {
        self.node
    }

    /// The number of the descriptor, for ioctls of other nodes that name this one.
    pub fn raw(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }

    /// Makes one ioctl with a structure as its argument.
    ///
    /// # Errors
    /// The kernel's errno. A positive result, by which nvgpu reports that copying back failed, becomes `EFAULT`.
    pub fn ioctl<T: AbiStruct>(&self, request: u32, arg: &mut T) -> Result<(), Errno> {
        self.checked(self.kmd.ioctl(self.as_fd(), self.node, request, Arg::Bytes(arg.as_mut_bytes())))
    }

    /// Makes one ioctl whose argument is a value and not a pointer.
    ///
    /// # Errors
    /// Those of [`File::ioctl`].
    pub fn ioctl_value(&self, request: u32, value: u64) -> Result<(), Errno> {
        self.checked(self.kmd.ioctl(self.as_fd(), self.node, request, Arg::Value(value)))
    }

    fn checked(&self, result: Result<i32, Errno>) -> Result<(), Errno> {
        match result? {
            0 => Ok(()),
            _ => Err(Errno::EFAULT),
        }
    }

    /// Maps a part of the file, shared. Children of this process do not get the mapping.
    ///
    /// # Errors
    /// The errno of `mmap(2)`.
    pub fn mmap(&self, at: Placement, len: usize, prot: Prot, offset: u64) -> Result<Mapping, Errno> {
        self.kmd.mmap(self.as_fd(), at, len, prot, offset).map(Mapping::withheld_from_children)
    }
}

impl From<File> for OwnedFd {
    /// Hands the descriptor over. Its new owner closes it.
    fn from(mut file: File) -> OwnedFd {
        file.fd.take().expect("present until drop")
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestKmd;
    use std::os::fd::IntoRawFd;
    use tegrarm_abi::nvgpu::ctrl::{NVGPU_GPU_IOCTL_NUM_VSMS, nvgpu_gpu_num_vsms};
    use tegrarm_abi::nvmap::NVMAP_IOC_FREE;

    /// A kernel that answers every ioctl with the same number and notes which descriptors it closed.
    struct Fixed(i32, tegrarm_lock::Mutex<Vec<RawFd>>);

    impl Kmd for Fixed {
        fn name(&self) -> &str {
            "fixed"
        }
        fn open(&self, path: &str) -> Result<OwnedFd, Errno> {
            crate::LinuxKmd.open(path)
        }
        fn ioctl(&self, _: BorrowedFd<'_>, _: Node, _: u32, _: Arg<'_>) -> Result<i32, Errno> {
            Ok(self.0)
        }
        fn close(&self, fd: OwnedFd) {
            self.1.lock().push(fd.as_raw_fd());
        }
        fn own_view(&self, _: BorrowedFd<'_>) -> Option<usize> {
            None
        }
        fn read_text(&self, _: &str) -> Result<String, Errno> {
            Err(Errno::ENOENT)
        }
        fn write_text(&self, _: &str, _: &str) -> Result<(), Errno> {
            Err(Errno::ENOENT)
        }
    }

    #[test]
    fn a_positive_return_is_a_fault() {
        let kmd: Arc<dyn Kmd> = Arc::new(Fixed(8, Default::default()));
        let file = File::open(&kmd, Node::Ctrl, "/dev/null").expect("a node");
        let mut arg = nvgpu_gpu_num_vsms { num_vsms: 0, reserved: 0 };
        assert_eq!(file.ioctl(NVGPU_GPU_IOCTL_NUM_VSMS, &mut arg), Err(Errno::EFAULT));
        assert_eq!(file.ioctl_value(NVMAP_IOC_FREE, 1), Err(Errno::EFAULT));
    }

    #[test]
    fn a_file_is_closed_once_through_its_kernel() {
        let fixed = Arc::new(Fixed(0, Default::default()));
        let kmd: Arc<dyn Kmd> = fixed.clone();
        let number = kmd.open("/dev/null").expect("a file").into_raw_fd();
        let file = File::from_output(&kmd, Node::Dmabuf, number).expect("a descriptor");
        assert_eq!((file.raw(), file.node(), file.kmd().name()), (number, Node::Dmabuf, "fixed"));
        drop(file);
        assert_eq!(*fixed.1.lock(), [number]);
    }

    #[test]
    fn a_negative_output_is_no_descriptor() {
        let kmd: Arc<dyn Kmd> = Arc::<TestKmd>::default();
        assert_eq!(File::from_output(&kmd, Node::As, -1).err(), Some(Errno::EBADF));
    }

    #[test]
    fn an_error_of_open_comes_through() {
        let kmd: Arc<dyn Kmd> = Arc::<TestKmd>::default();
        assert_eq!(File::open(&kmd, Node::Ctrl, "/dev/nvgpu/igpu0/none").err(), Some(Errno::ENOENT));
    }
}
