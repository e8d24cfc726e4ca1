//! The virtual Orin in this process, as a [`Kmd`].

use nix::sys::mman::{MmapAdvise, madvise};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use tegra_gpu::{Failure, Gpu, GpuConfig, Profile, Profiled, Reports, Stats, host_ns};
use tegra_kernel::process::{InProcess, Process};
use tegra_kernel::{Clock, Kernel, SimConfig};
use tegra_mm::PageTable;
use tegrarm_kmd::{Arg, Errno, Kmd, Mapping, Node, Placement, Prot, describe};

/// Boots a board, which is a kernel and its GPU.
pub fn boot(config: SimConfig) -> (Arc<Kernel>, Arc<Gpu>) {
    let (kernel, gpu, _) = boot_profiled(config);
    (kernel, gpu)
}

/// Boots a board, and begins a profile if the configuration asks for one.
pub fn boot_profiled(config: SimConfig) -> (Arc<Kernel>, Arc<Gpu>, Option<Arc<Profile>>) {
    let (sms, speeds, clock) = (Kernel::sms(&config), Kernel::speeds(&config), config.clock.name());
    let profiled = Profiled { module: config.chip.name(), sms: sms.len() as u32, speeds, clock };
    let profile = config.profiled.then(|| Profile::new(profiled));
    let counted = config.counted;
    let gpu_config = GpuConfig::default();
    let gpu = Gpu::new(GpuConfig {
        sms,
        step: config.step,
        translated_after: config.translated_after.unwrap_or(gpu_config.translated_after),
        r35: config.l4t.is_r35(),
        reports: Reports::of(config.checks, config.check_exit),
        schedules: config.checks.order.then_some(config.schedules),
        speeds: (config.clock == Clock::Model).then(|| Kernel::speeds(&config)),
        profile: profile.clone(),
        ..gpu_config
    });
    if counted {
        Stats::watch(&gpu);
    }
    if let Some(profile) = profile.clone() {
        gpu.observe(Arc::new(move |event| profile.event(event)));
    }
    (Kernel::new(config, gpu.clone()), gpu, profile)
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
    profile: Option<Arc<Profile>>,
}

impl SimKmd {
    /// Boots a board.
    pub fn new(config: SimConfig) -> SimKmd {
        let (stepped, examines_code) = (config.step, config.checks.any());
        let (kernel, gpu, profile) = boot_profiled(config);
        if let (Some(profile), Ok(path)) = (&profile, std::env::var("TEGRARM_SIM_PROFILE")) {
            profile.write_at_exit(&path);
        }
        let name = kernel.board_name();
        SimKmd { kernel, gpu, process: InProcess::new(), name, stepped, examines_code, profile }
    }

    /// The kernel of the board, for tools and leak checks.
    pub fn kernel(&self) -> &Arc<Kernel> {
        &self.kernel
    }

    /// The mappings of an address space, for comparisons with the page tables of a driver.
    pub fn page_table(&self, fd: BorrowedFd<'_>) -> Option<Arc<PageTable>> {
        self.kernel.page_table(&self.process, fd.as_raw_fd())
    }

    /// Lets a unit of the GPU report that the work of a channel failed. The error is `ENODEV` if the descriptor is none of a channel that
    /// can have work.
    ///
    /// # Errors
    /// See above.
    pub fn fail(&self, fd: BorrowedFd<'_>, failure: Failure) -> Result<(), Errno> {
        let channel = self.kernel.channel_id(&self.process, fd.as_raw_fd()).ok_or(Errno::ENODEV)?;
        if self.gpu.fail(channel, failure) { Ok(()) } else { Err(Errno::ENODEV) }
    }

    /// The GPU of the board, for tools and for programs that step it.
    pub fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    /// Does something, and notes when that was, if there is a profile.
    fn noted<R>(&self, name: &str, act: impl FnOnce() -> R) -> R {
        let Some(profile) = &self.profile else { return act() };
        let start = host_ns();
        let result = act();
        profile.called(name, self.process.pid(), (start, host_ns()));
        result
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

    fn names_code(&self) -> bool {
        true
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
            self.noted("wait", || self.gpu.rest(seen, longest));
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

    fn ioctl(&self, fd: BorrowedFd<'_>, node: Node, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        if !self.is_ours() {
            return Err(Errno::EBADF);
        }
        let call = || self.kernel.ioctl(&self.process, fd.as_raw_fd(), request, arg);
        if self.profile.is_some() { self.noted(&describe::name(node, request), call) } else { call() }
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
        if !self.is_ours() {
            return Err(Errno::ENODEV);
        }
        self.kernel.write_text(self.process.pid(), path, text)
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
