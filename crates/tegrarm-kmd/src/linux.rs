//! The real kernel: `open(2)`, `ioctl(2)`.
#![allow(unsafe_code)]

use crate::{Arg, Errno, Kmd, Node};
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// The Jetson kernel under this process.
#[derive(Debug, Default)]
pub struct LinuxKmd;

impl Kmd for LinuxKmd {
    fn name(&self) -> &str {
        "nvgpu"
    }

    fn open(&self, path: &str) -> Result<OwnedFd, Errno> {
        open(path, OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty())
    }

    fn ioctl(&self, fd: BorrowedFd<'_>, _node: Node, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        let argp = match arg {
            Arg::Bytes(bytes) => bytes.as_mut_ptr() as usize,
            Arg::Value(value) => value as usize,
        };
        // SAFETY: `Bytes` is as long as the request's size field says (the callers pass the structure the
        // request is defined for); the kernel keeps no pointer to it. Values are not dereferenced.
        let ret = unsafe { libc::ioctl(fd.as_raw_fd(), request as _, argp) };
        if ret < 0 { Err(Errno::last()) } else { Ok(ret) }
    }

    fn read_text(&self, path: &str) -> Result<String, Errno> {
        std::fs::read_to_string(path).map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or(libc::EIO)))
    }

    fn write_text(&self, path: &str, text: &str) -> Result<(), Errno> {
        std::fs::write(path, text).map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or(libc::EIO)))
    }
}
