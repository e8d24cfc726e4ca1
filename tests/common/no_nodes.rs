//! A machine that has no device nodes.

use std::os::fd::{BorrowedFd, OwnedFd};
use tegrarm_kmd::{Arg, Errno, Kmd, Mapping, Node, Placement, Prot};

/// A kernel without nvgpu and nvmap.
pub struct NoNodes;

impl Kmd for NoNodes {
    fn name(&self) -> &str {
        "no nodes"
    }

    fn open(&self, _: &str) -> Result<OwnedFd, Errno> {
        Err(Errno::ENOENT)
    }

    fn ioctl(&self, _: BorrowedFd<'_>, _: Node, _: u32, _: Arg<'_>) -> Result<i32, Errno> {
        Err(Errno::ENOTTY)
    }

    fn mmap(&self, _: BorrowedFd<'_>, _: Placement, _: usize, _: Prot, _: u64) -> Result<Mapping, Errno> {
        Err(Errno::ENODEV)
    }

    fn close(&self, fd: OwnedFd) {
        drop(fd);
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
