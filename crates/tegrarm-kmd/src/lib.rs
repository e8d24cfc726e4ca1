//! The kernel boundary. Everything that libtegrarm asks of the Jetson kernel goes through one trait, [`Kmd`], at the
//! level of raw ioctl bytes. The code above it is the same on a board and on the virtual Orin. Below it are either the
//! real system calls ([`LinuxKmd`]) or a simulator (`tegra-sim`).
//!
//! Wrappers are a `Kmd` around another `Kmd`: [`Recorded`] writes every call to a file, [`Traced`] reports every call,
//! and `Faulty` (for tests, with the feature `fault-injection`) makes the n-th call of a kind fail. [`Replayed`]
//! answers from a recording and needs no kernel. [`describe`] turns ioctl bytes into names.
//!
//! Every implementation keeps this contract:
//! - File descriptors are real: `dup`, `poll`, `close`, `mmap` and `/proc/self/fd` work on them.
//! - The result is the kernel's: `Err(errno)`, or the non-negative return value. nvgpu answers with a *positive* byte
//!   count if copying back failed.
//! - After an error the argument bytes are unchanged, except where the kernel itself writes them (AS REMAP).
//! - Pointers inside the argument bytes are addresses of the calling process.

#[cfg(test)]
mod altered;
pub mod describe;
mod descriptors;
pub mod devfreq;
mod device_mem;
mod entry;
mod exec_mem;
#[cfg(any(test, feature = "fault-injection"))]
mod faulty;
pub mod fds;
mod file;
mod forward;
mod image;
mod inherited;
mod insights;
mod interrupted;
mod labels;
mod lent;
mod linux;
mod mapping;
pub mod maps;
pub mod memory;
mod perform;
pub mod placing;
mod pointers;
mod record;
mod replay;
mod sms;
mod stand_ins;
pub mod tally;
#[cfg(test)]
mod testing;
mod traced;
pub mod watched;
mod written;

pub use device_mem::DeviceMem;
pub use exec_mem::{ExecMem, Reach, page_size};
#[cfg(any(test, feature = "fault-injection"))]
pub use faulty::{CallKind, Faulty};
pub use file::File;
pub use insights::{FaultDetails, Insights, Wanted, WarpDetails};
pub use linux::LinuxKmd;
pub use mapping::{Mapping, Placement, Prot};
pub use nix::errno::Errno;
pub use perform::{Difference, Performed, PerformedAll, perform, perform_all};
pub use record::Recorded;
pub use replay::{RecordingError, Replayed};
pub use tally::Tally;
pub use tegrarm_abi::layout::Node;
pub use traced::{IoctlEvent, Traced};

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

/// The third argument of `ioctl(2)`.
#[derive(Debug)]
pub enum Arg<'a> {
    /// A structure as bytes. It is copied in and out as the direction bits of the request say.
    Bytes(&'a mut [u8]),
    /// A plain integer, or 0 for an ioctl without an argument. FREE of nvmap takes a handle in this way.
    Value(u64),
}

impl Arg<'_> {
    /// The same argument with a shorter lifetime, so that the caller can read it after the call.
    pub fn reborrow(&mut self) -> Arg<'_> {
        match self {
            Arg::Bytes(bytes) => Arg::Bytes(bytes),
            Arg::Value(value) => Arg::Value(*value),
        }
    }
}

/// The version in the first line of a recording: `{"recording": 2, …}`. Version 1 had no device memory.
const RECORDING_VERSION: u32 = 2;

/// A Jetson kernel, which opens device nodes and answers their ioctls.
pub trait Kmd: Send + Sync {
    /// A short name for messages, for example `"nvgpu"` or `"virtual Orin"`.
    fn name(&self) -> &str;

    /// Whether this kernel knows that it is not a board's. Device nodes that a supervisor serves look like those of a
    /// board.
    fn is_simulated(&self) -> bool {
        false
    }

    /// Whether this kernel looks for mistakes in GPU code and reports them ([`Insights::code_reports`]). A board's does not.
    fn examines_code(&self) -> bool {
        false
    }

    /// Whether this kernel takes the names of GPU code ([`Insights::tell_code`]). A board's does not.
    fn names_code(&self) -> bool {
        false
    }

    /// Gives a GPU that is executed in steps a turn of work, because such a GPU does nothing by itself. The result is
    /// true if anything happened. Functions that wait call this, so that their waits end.
    fn step(&self) -> bool {
        false
    }

    /// A number that changes when the GPU has worked, if the GPU works on the processors of the caller. Whoever looks in a loop then
    /// keeps the GPU from its work. A wait reads the number, looks whether what it waits for is there, and calls [`Kmd::rest`] if not.
    /// `None` means that nobody tells when the GPU has worked, as on a board, so that a wait has to look again and again.
    fn progress(&self) -> Option<u64> {
        None
    }

    /// Sleeps until [`Kmd::progress`] is no longer `seen`, and at most for `longest`.
    fn rest(&self, seen: u64, longest: Duration) {
        let _ = seen;
        std::thread::sleep(longest);
    }

    /// Tells the kernel that the caller has just read, in memory, how work of the GPU ended. A recorder now reads and
    /// keeps what the GPU wrote.
    fn saw_gpu(&self) {}

    /// If waiting for the GPU is useless, the reason. This is so when a recording has nothing more that the GPU wrote.
    fn waits_in_vain(&self) -> Option<String> {
        None
    }

    /// Opens a device node (`/dev/nvmap`, `/dev/nvgpu/igpu0/ctrl`, …) read-write, close-on-exec.
    fn open(&self, path: &str) -> Result<OwnedFd, Errno>;

    /// Makes one `ioctl(2)` on a file descriptor of kind `node`. `Ok` is the call's non-negative return value.
    fn ioctl(&self, fd: BorrowedFd<'_>, node: Node, request: u32, arg: Arg<'_>) -> Result<i32, Errno>;

    /// Maps `len` bytes of a dmabuf or of the ctrl node's doorbell page, shared.
    fn mmap(&self, fd: BorrowedFd<'_>, at: Placement, len: usize, prot: Prot, offset: u64) -> Result<Mapping, Errno> {
        Mapping::new(fd, at, len, prot, offset)
    }

    /// The address at which the kernel itself has mapped the file behind `fd`, if the kernel runs in this process. It
    /// is not a mapping of the caller.
    fn own_view(&self, fd: BorrowedFd<'_>) -> Option<usize>;

    /// Closes a file descriptor that `open` or an ioctl returned. A simulator learns here that an object has ended.
    fn close(&self, fd: OwnedFd) {
        drop(fd);
    }

    /// Reads a small text file that the kernel offers besides the nodes (`/sys/class/devfreq/...`, `/proc/meminfo`).
    fn read_text(&self, path: &str) -> Result<String, Errno>;

    /// Writes such a text file.
    fn write_text(&self, path: &str, text: &str) -> Result<(), Errno>;
}
