//! The kernel boundary: everything libtegrarm asks of the Jetson kernel passes through one trait, [`Kmd`],
//! cut at raw ioctl bytes. Above it the code is the same on a board and on the virtual Orin; below it stands
//! either the real system calls ([`LinuxKmd`]) or a simulator (`tegra-sim`).
//!
//! Three wrappers are themselves a `Kmd` around a `Kmd`: `Recorded` writes every call to a file,
//! `Replayed` answers from such a file, `Faulty` makes the n-th call of a kind fail.
//!
//! Contract, for every implementation:
//! - file descriptors are real ones: `dup`, `poll`, `close`, `mmap` and `/proc/self/fd` work on them;
//! - the result is the kernel's: `Err(errno)`, or the non-negative return value (nvgpu answers a failed
//!   copy-back with a *positive* byte count: see `facts` E1.2);
//! - on error the argument bytes are untouched, except where the kernel itself writes them (AS REMAP);
//! - pointers inside the argument bytes are addresses of the calling process.

mod device_mem;
mod exec_mem;
mod file;
mod linux;
mod mapping;

pub use device_mem::DeviceMem;
pub use exec_mem::{ExecMem, Reach, page_size};
pub use file::File;
pub use linux::LinuxKmd;
pub use mapping::{Mapping, Placement, Prot};
pub use nix::errno::Errno;
pub use tegrarm_abi::layout::Node;

use std::os::fd::{BorrowedFd, OwnedFd};

/// The third argument of `ioctl(2)`.
#[derive(Debug)]
pub enum Arg<'a> {
    /// A structure, as bytes; copied in and out as the direction bits of the request say.
    Bytes(&'a mut [u8]),
    /// A plain integer (nvmap FREE takes the handle this way), or nothing (0).
    Value(u64),
}

/// A Jetson kernel: opens device nodes and answers their ioctls.
pub trait Kmd: Send + Sync {
    /// A short name for messages: `"nvgpu"`, `"virtual Orin"`, ….
    fn name(&self) -> &str;

    /// Opens a device node (`/dev/nvmap`, `/dev/nvgpu/igpu0/ctrl`, …) read-write, close-on-exec.
    fn open(&self, path: &str) -> Result<OwnedFd, Errno>;

    /// One `ioctl(2)` on a file descriptor of kind `node`. `Ok` is the call's non-negative return value.
    fn ioctl(&self, fd: BorrowedFd<'_>, node: Node, request: u32, arg: Arg<'_>) -> Result<i32, Errno>;

    /// Maps `len` bytes of a dmabuf or of the ctrl node's doorbell page, shared.
    fn mmap(&self, fd: BorrowedFd<'_>, at: Placement, len: usize, prot: Prot, offset: u64) -> Result<Mapping, Errno> {
        Mapping::new(fd, at, len, prot, offset)
    }

    /// Closes a file descriptor that `open` or an ioctl returned. Simulators learn of an object's end here.
    fn close(&self, fd: OwnedFd) {
        drop(fd);
    }

    /// Reads a small text file the kernel offers beside the nodes (`/sys/class/devfreq/...`, `/proc/meminfo`).
    fn read_text(&self, path: &str) -> Result<String, Errno>;

    /// Writes such a file.
    fn write_text(&self, path: &str, text: &str) -> Result<(), Errno>;
}
