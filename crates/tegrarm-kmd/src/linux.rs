//! The real kernel: `open(2)`, `ioctl(2)`.
#![allow(unsafe_code)]

use crate::interrupted::uninterrupted;
use crate::{Arg, Errno, Kmd, Node};
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use tegrarm_abi::layout::argument_size;
use tegrarm_abi::nvgpu::channel::NVGPU_IOCTL_CHANNEL_WAIT;
use tegrarm_abi::nvmap::{NVMAP_IOC_READ, NVMAP_IOC_WRITE};

/// The requests for which `EINTR` is an answer: a notifier was not written in time, or a copy ended early.
const MEANS_SOMETHING: [u32; 3] = [NVGPU_IOCTL_CHANNEL_WAIT, NVMAP_IOC_READ, NVMAP_IOC_WRITE];

/// The Jetson kernel under this process.
#[derive(Debug, Default)]
pub struct LinuxKmd;

impl Kmd for LinuxKmd {
    fn name(&self) -> &str {
        "nvgpu"
    }

    fn examines_code(&self) -> bool {
        // `tegrarm-sim run --check` says so to the programs whose device nodes it serves.
        std::env::var_os("TEGRARM_SIM_CHECK").is_some_and(|checks| !checks.is_empty())
    }

    fn names_code(&self) -> bool {
        // `tegrarm-sim run` says so to the programs whose device nodes it serves.
        std::env::var_os("TEGRARM_SIM_RUN").is_some()
    }

    fn open(&self, path: &str) -> Result<OwnedFd, Errno> {
        uninterrupted(|| open(path, OFlag::O_RDWR | OFlag::O_CLOEXEC, Mode::empty()))
    }

    fn ioctl(&self, fd: BorrowedFd<'_>, _node: Node, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        let argp = match arg {
            // The kernel reads and writes as many bytes as the request says.
            Arg::Bytes(bytes) if bytes.len() < argument_size(request) => return Err(Errno::EFAULT),
            Arg::Bytes(bytes) => bytes.as_mut_ptr() as usize,
            Arg::Value(value) => value as usize,
        };
        let call = || {
            // SAFETY: `Bytes` is at least as long as the request's size field says, and the kernel keeps no pointer to
            // it. A value is passed only for requests that take one.
            Errno::result(unsafe { libc::ioctl(fd.as_raw_fd(), request as _, argp) })
        };
        if MEANS_SOMETHING.contains(&request) { call() } else { uninterrupted(call) }
    }

    fn own_view(&self, _: BorrowedFd<'_>) -> Option<usize> {
        None
    }

    fn read_text(&self, path: &str) -> Result<String, Errno> {
        std::fs::read_to_string(path).map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or(libc::EIO)))
    }

    fn write_text(&self, path: &str, text: &str) -> Result<(), Errno> {
        std::fs::write(path, text).map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or(libc::EIO)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::File;
    use nix::sys::memfd::{MFdFlags, memfd_create};
    use std::sync::Arc;
    use tegrarm_abi::nvgpu::ctrl::{NVGPU_GPU_IOCTL_NUM_VSMS, nvgpu_gpu_num_vsms};
    use tegrarm_abi::nvmap::NVMAP_IOC_FREE;

    #[test]
    fn an_absent_node_is_enoent() {
        let kmd = LinuxKmd;
        assert_eq!(kmd.open("/dev/nvgpu/igpu0/no-such-node").err(), Some(Errno::ENOENT));
        assert_eq!(kmd.read_text("/sys/class/devfreq/no-such-device/cur_freq").err(), Some(Errno::ENOENT));
        assert_eq!(kmd.write_text("/sys/class/devfreq/no-such-device/min_freq", "1").err(), Some(Errno::ENOENT));
        assert_eq!(kmd.name(), "nvgpu");
    }

    #[test]
    fn an_ioctl_on_something_else_is_enotty_and_changes_nothing() {
        let kmd: Arc<dyn Kmd> = Arc::new(LinuxKmd);
        let memfd = memfd_create("test", MFdFlags::MFD_CLOEXEC).expect("a memfd");
        let file = File::from_fd(&kmd, Node::Ctrl, memfd);
        let mut arg = nvgpu_gpu_num_vsms { num_vsms: 77, reserved: 78 };
        assert_eq!(file.ioctl(NVGPU_GPU_IOCTL_NUM_VSMS, &mut arg), Err(Errno::ENOTTY));
        assert_eq!((arg.num_vsms, arg.reserved), (77, 78));
        assert_eq!(file.ioctl_value(NVMAP_IOC_FREE, 1), Err(Errno::ENOTTY));
    }

    #[test]
    fn nodes_are_opened_close_on_exec() {
        let fd = LinuxKmd.open("/dev/null").expect("a device");
        let flags = nix::fcntl::fcntl(&fd, nix::fcntl::FcntlArg::F_GETFD).expect("flags");
        assert_eq!(flags & libc::FD_CLOEXEC, libc::FD_CLOEXEC);
    }

    #[test]
    fn text_files_are_read_whole() {
        assert!(LinuxKmd.read_text("/proc/meminfo").expect("procfs").contains("MemTotal:"));
    }
}
