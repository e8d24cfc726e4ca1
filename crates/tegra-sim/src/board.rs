//! The virtual Orin in this process, as a [`Kmd`].

use nix::sys::mman::{MmapAdvise, madvise};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use tegra_gpu::{Gpu, GpuConfig, Reports, Stats};
use tegra_kernel::process::{InProcess, Process};
use tegra_kernel::{Clock, Kernel, SimConfig};
use tegra_mm::PageTable;
use tegrarm_kmd::{Arg, Errno, Kmd, Mapping, Node, Placement, Prot};

/// Boots a board, which is a kernel and its GPU.
pub fn boot(config: SimConfig) -> (Arc<Kernel>, Arc<Gpu>) {
    let gpu = Gpu::new(GpuConfig {
        sm_count: Kernel::sm_count(&config),
        step: config.step,
        recovers_always: config.l4t.is_r35(),
        reports: Reports::of(config.checks),
        speeds: (config.clock == Clock::Model).then(|| Kernel::speeds(&config)),
        ..GpuConfig::default()
    });
    Stats::watch_if_asked(&gpu);
    (Kernel::new(config, gpu.clone()), gpu)
}

/// A booted virtual board that only this process uses.
///
/// A forked child is another process, and the board does not belong to it. In the child, opening a node fails with
/// `ENODEV`, calls on inherited descriptors fail with `EBADF`, and closing a descriptor only closes it.
#[derive(Debug)]
pub struct SimKmd {
    kernel: Arc<Kernel>,
    gpu: Arc<Gpu>,
    process: InProcess,
    name: String,
    /// Whether the GPU has no threads. It then works while a program waits for it.
    stepped: bool,
    /// Whether the checker looks for mistakes in GPU code.
    examines_code: bool,
}

impl SimKmd {
    /// Boots a board.
    pub fn new(config: SimConfig) -> SimKmd {
        let (stepped, examines_code) = (config.step, config.checks.any());
        let (kernel, gpu) = boot(config);
        let name = kernel.board_name();
        SimKmd { kernel, gpu, process: InProcess::new(), name, stepped, examines_code }
    }

    /// The kernel of the board, for tools and leak checks.
    pub fn kernel(&self) -> &Arc<Kernel> {
        &self.kernel
    }

    /// The mappings of an address space, for comparisons with the page tables of a driver.
    pub fn page_table(&self, fd: BorrowedFd<'_>) -> Option<Arc<PageTable>> {
        self.kernel.page_table(&self.process, fd.as_raw_fd())
    }

    /// The GPU of the board, for tools and for programs that step it.
    pub fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    /// Whether this is still the process that booted the board.
    fn is_ours(&self) -> bool {
        self.process.pid() == nix::unistd::getpid().as_raw()
    }
}

impl Kmd for SimKmd {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_simulated(&self) -> bool {
        true
    }

    fn examines_code(&self) -> bool {
        self.examines_code
    }

    fn step(&self) -> bool {
        self.stepped && self.is_ours() && self.gpu.step()
    }

    fn progress(&self) -> Option<u64> {
        // Whether this is a forked child is not asked here, because a wait that spins makes no system call.
        self.gpu.progress()
    }

    fn rest(&self, seen: u64, longest: Duration) {
        // A child has no threads of the GPU, and a lock that it inherited may be held for ever.
        if self.is_ours() {
            self.gpu.rest(seen, longest);
        } else {
            std::thread::sleep(longest);
        }
    }

    fn open(&self, path: &str) -> Result<OwnedFd, Errno> {
        if !self.is_ours() {
            return Err(Errno::ENODEV);
        }
        self.kernel.open(&self.process, path)
    }

    fn ioctl(&self, fd: BorrowedFd<'_>, _: Node, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        if !self.is_ours() {
            return Err(Errno::EBADF);
        }
        self.kernel.ioctl(&self.process, fd.as_raw_fd(), request, arg)
    }

    fn mmap(&self, fd: BorrowedFd<'_>, at: Placement, len: usize, prot: Prot, offset: u64) -> Result<Mapping, Errno> {
        if !self.is_ours() {
            return Err(Errno::EBADF);
        }
        self.kernel.check_mmap(&self.process, fd.as_raw_fd(), len, prot == Prot::ReadWrite, offset)?;
        let map = Mapping::new(fd, at, len, prot, offset)?;
        dont_fork(&map)?;
        Ok(map)
    }

    fn own_view(&self, fd: BorrowedFd<'_>) -> Option<usize> {
        self.kernel.own_view(&self.process, fd.as_raw_fd())
    }

    fn close(&self, fd: OwnedFd) {
        if self.is_ours() {
            self.kernel.close(&self.process, fd.as_raw_fd());
        }
        drop(fd);
    }

    fn read_text(&self, path: &str) -> Result<String, Errno> {
        self.kernel.read_text(path)
    }

    fn write_text(&self, path: &str, text: &str) -> Result<(), Errno> {
        self.kernel.write_text(path, text)
    }
}

/// Keeps a mapping of a board's file from children of a fork (VM_DONTCOPY).
#[allow(unsafe_code)]
fn dont_fork(map: &Mapping) -> Result<(), Errno> {
    let start = std::ptr::NonNull::new(map.as_ptr().cast()).ok_or(Errno::ENOMEM)?;
    // SAFETY: the advice changes what fork(2) copies. It does not change the memory.
    unsafe { madvise(start, map.len(), MmapAdvise::MADV_DONTFORK) }
}

impl Drop for SimKmd {
    fn drop(&mut self) {
        if self.is_ours() {
            self.kernel.shut_down();
        }
    }
}
