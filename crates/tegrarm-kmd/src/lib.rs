//! The kernel boundary: everything libtegrarm asks of the Jetson kernel passes through one trait, [`Kmd`],
//! cut at raw ioctl bytes. Above it the code is the same on a board and on the virtual Orin; below it stands
//! either the real system calls ([`LinuxKmd`]) or a simulator (`tegra-sim`).
//!
//! Wrappers are themselves a `Kmd` around a `Kmd`: [`Recorded`] writes every call to a file, [`Traced`] reports every call, and
//! `Faulty` (for tests, with the feature `fault-injection`) makes the n-th call of a kind fail; [`Replayed`] answers from a recording and needs
//! no kernel. [`describe`] turns ioctl bytes into names.
//!
//! Contract, for every implementation:
//! - file descriptors are real ones: `dup`, `poll`, `close`, `mmap` and `/proc/self/fd` work on them;
//! - the result is the kernel's: `Err(errno)`, or the non-negative return value (nvgpu answers a failed
//!   copy-back with a *positive* byte count);
//! - on error the argument bytes are untouched, except where the kernel itself writes them (AS REMAP);
//! - pointers inside the argument bytes are addresses of the calling process.

pub mod describe;
mod descriptors;
mod device_mem;
mod entry;
mod exec_mem;
#[cfg(any(test, feature = "fault-injection"))]
mod faulty;
pub mod fds;
mod file;
mod image;
mod interrupted;
mod labels;
mod linux;
mod mapping;
pub mod maps;
pub mod memory;
pub mod output;
mod perform;
mod pointers;
mod record;
mod replay;
#[cfg(test)]
mod testing;
mod traced;

pub use device_mem::DeviceMem;
pub use exec_mem::{ExecMem, Reach, page_size};
#[cfg(any(test, feature = "fault-injection"))]
pub use faulty::{CallKind, Faulty};
pub use file::File;
pub use linux::LinuxKmd;
pub use mapping::{Mapping, Placement, Prot};
pub use nix::errno::Errno;
pub use perform::{Performed, perform};
pub use record::Recorded;
pub use replay::{RecordingError, Replayed};
pub use tegrarm_abi::layout::Node;
pub use traced::{IoctlEvent, Traced};

use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

/// The third argument of `ioctl(2)`.
#[derive(Debug)]
pub enum Arg<'a> {
    /// A structure, as bytes; copied in and out as the direction bits of the request say.
    Bytes(&'a mut [u8]),
    /// A plain integer (nvmap FREE takes the handle this way), or nothing (0).
    Value(u64),
}

impl Arg<'_> {
    /// The same argument for a shorter time, so that it can be looked at again after the call.
    pub fn reborrow(&mut self) -> Arg<'_> {
        match self {
            Arg::Bytes(bytes) => Arg::Bytes(bytes),
            Arg::Value(value) => Arg::Value(*value),
        }
    }
}

/// First line of a recording: `{"recording": 1, …}`.
const RECORDING_VERSION: u32 = 1;

/// A Jetson kernel: opens device nodes and answers their ioctls.
pub trait Kmd: Send + Sync {
    /// A short name for messages: `"nvgpu"`, `"virtual Orin"`, ….
    fn name(&self) -> &str;

    /// Whether no board is behind it, as far as it knows: device nodes that a supervisor serves look like a board's.
    fn is_simulated(&self) -> bool {
        false
    }

    /// Lets a GPU that has no time of its own do a turn of work: a virtual one that is executed in steps. True if anything
    /// happened. Waits call it, so that they end.
    fn step(&self) -> bool {
        false
    }

    /// Opens a device node (`/dev/nvmap`, `/dev/nvgpu/igpu0/ctrl`, …) read-write, close-on-exec.
    fn open(&self, path: &str) -> Result<OwnedFd, Errno>;

    /// One `ioctl(2)` on a file descriptor of kind `node`. `Ok` is the call's non-negative return value.
    fn ioctl(&self, fd: BorrowedFd<'_>, node: Node, request: u32, arg: Arg<'_>) -> Result<i32, Errno>;

    /// Maps `len` bytes of a dmabuf or of the ctrl node's doorbell page, shared.
    fn mmap(&self, fd: BorrowedFd<'_>, at: Placement, len: usize, prot: Prot, offset: u64) -> Result<Mapping, Errno> {
        Mapping::new(fd, at, len, prot, offset)
    }

    /// Makes `onto`, a descriptor number of this process, refer to the file behind `fd`, so that whoever owns the number
    /// can map the file without knowing of it.
    fn lend(&self, fd: BorrowedFd<'_>, onto: RawFd) -> Result<(), Errno> {
        fds::replace(fd, onto)
    }

    /// Where the kernel itself sees the file behind `fd` in this process, if it lives here: no view of the caller's.
    fn own_view(&self, fd: BorrowedFd<'_>) -> Option<usize>;

    /// Closes a file descriptor that `open` or an ioctl returned. Simulators learn of an object's end here.
    fn close(&self, fd: OwnedFd) {
        drop(fd);
    }

    /// Reads a small text file the kernel offers beside the nodes (`/sys/class/devfreq/...`, `/proc/meminfo`).
    fn read_text(&self, path: &str) -> Result<String, Errno>;

    /// Writes such a file.
    fn write_text(&self, path: &str, text: &str) -> Result<(), Errno>;
}
