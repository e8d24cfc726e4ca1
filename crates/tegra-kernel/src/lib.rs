//! The simulated nvgpu and nvmap drivers.
//!
//! [`Kernel`] knows no process: every call comes with its caller as a [`Process`]. A file is known by its identity
//! ([`FileId`]), and objects are reference-counted as in nvgpu (docs/hardware/nvgpu-overview.md#lifetimes). The ioctls
//! of each node are a table of rows (number, release, handler), and all tables share one dispatcher.
//!
//! Locks may nest in this order: channel, TSG, address space, buffer. No lock is held while the GPU runs.

pub mod budget;
mod channel;
mod chip;
mod config;
mod ctrl;
mod ctrl_fifo;
mod ctxsw;
mod debugger;
mod dispatch;
mod event;
mod files;
mod host;
mod ids;
mod ioctls;
mod mmap;
mod nodes;
mod nvmap;
mod nvsched;
pub mod process;
mod profiler;
mod registers;
mod release;
pub mod rule;
mod sched;
mod space;
mod syncpoint;
mod text;
mod tsg;

pub use config::{Checks, Chip, Clock, ConfigError, Refusals, SimConfig};
pub use ioctls::ioctls;
pub use release::L4t;

use budget::{Budgets, Resource, Share};
use chip::ChipData;
use dispatch::Call;
use files::{Files, Object};
use process::{FileId, Process};
use std::os::fd::{OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tegra_hw::{GpuPort, HwGpu, Speeds};
use tegra_mm::{PageTable, memfd};
use tegrarm_kmd::{Arg, Errno, Node};

/// The nvmap handles of all processes that share a kernel.
const MOST_HANDLES: u64 = 1 << 20;

/// A booted kernel with one GPU.
pub struct Kernel {
    config: SimConfig,
    chip: &'static ChipData,
    gpu: Arc<dyn GpuPort>,
    files: Files,
    nvmap: nvmap::Device,
    /// The state that all groups of the GPU share.
    hw: Arc<HwGpu>,
    syncpoints: Arc<syncpoint::Syncpoints>,
    channel_ids: Arc<ids::Stack>,
    tsg_ids: Arc<ids::Lowest>,
    tokens: Arc<tsg::ShareTokens>,
    /// The GPU's device in sysfs.
    device: text::DeviceState,
    doorbells: ctrl::Doorbells,
    clocks: ctrl::Clocks,
    profiling: Arc<profiler::Profiling>,
    scheduling: Arc<sched::Scheduling>,
    domains: nvsched::Domains,
    fifo: ctrl_fifo::Fifo,
    tracer: ctxsw::Tracer,
    /// What each process may take, if several share the kernel.
    budgets: OnceLock<Arc<Budgets>>,
    /// The number of ctrl nodes opened so far. Their instance ids count from 1.
    instances: AtomicU64,
    /// The number of anonymous files made so far, for their labels.
    labels: AtomicU64,
}

/// The numbers of objects that exist in the kernel, for leak checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// The number of open files of every kind.
    pub files: usize,
    /// The number of channel ids in use.
    pub channels: usize,
    /// The number of TSG ids in use.
    pub tsgs: usize,
    /// The number of nvmap handle ids in use.
    pub handles: usize,
    /// The number of bytes of allocated buffers.
    pub memory: u64,
    /// The number of syncpoints in use.
    pub syncpoints: usize,
    /// The number of doorbell pages that the GPU watches.
    pub doorbells: usize,
}

impl Kernel {
    /// Boots a kernel on a board whose GPU is `gpu`.
    pub fn new(config: SimConfig, gpu: Arc<dyn GpuPort>) -> Arc<Kernel> {
        let chip = ChipData::of(config.chip);
        Arc::new(Kernel {
            config,
            chip,
            files: Files::default(),
            nvmap: nvmap::Device::new(config, chip),
            hw: Arc::default(),
            syncpoints: Arc::new(syncpoint::Syncpoints::new(config.l4t)),
            channel_ids: Arc::new(ids::Stack::new(channel::CHANNELS)),
            tsg_ids: Arc::new(ids::Lowest::new(channel::CHANNELS)),
            tokens: Arc::default(),
            device: text::DeviceState::default(),
            doorbells: ctrl::Doorbells::new(gpu.clone()),
            clocks: ctrl::Clocks::new(chip),
            profiling: Arc::default(),
            scheduling: Arc::default(),
            domains: nvsched::Domains::default(),
            fifo: ctrl_fifo::Fifo::default(),
            tracer: ctxsw::Tracer::default(),
            budgets: OnceLock::new(),
            instances: AtomicU64::new(0),
            labels: AtomicU64::new(0),
            gpu,
        })
    }

    /// Divides what there is among the processes that call. `total` says how much there is of what the kernel does not
    /// know. There are at most `scarce` of all that is counted one by one.
    pub fn divide(&self, scarce: u64, total: impl Fn(Resource) -> u64) -> Arc<Budgets> {
        let all = |resource| match resource {
            Resource::Memory => self.nvmap.system_memory().0,
            Resource::Mappings => scarce.min(tegra_mm::mappings_for_buffers() as u64),
            Resource::Handles => scarce.min(MOST_HANDLES),
            Resource::Channels | Resource::Groups => scarce.min(channel::CHANNELS.into()),
            resource => scarce.min(total(resource)),
        };
        self.budgets.get_or_init(|| Budgets::new(all)).clone()
    }

    /// Takes something for the process that makes a call.
    fn take(&self, resource: Resource, process: &dyn Process, amount: u64) -> Result<Option<Share>, Errno> {
        self.budgets.get().map(|budgets| budgets.take(resource, process.pid(), amount)).transpose()
    }

    /// The number of SMs of the GPU.
    pub fn sm_count(config: &SimConfig) -> u32 {
        ChipData::of(config.chip).sm_count()
    }

    /// How fast the module is.
    pub fn speeds(config: &SimConfig) -> Speeds {
        ChipData::of(config.chip).speeds()
    }

    /// The name of the board for messages, for example `virtual Orin (ga10b, sm_87)`.
    pub fn board_name(&self) -> String {
        let family = if self.chip.is_ga10b() { "Orin" } else { "Xavier" };
        let sm = format!("{}{}", self.chip.sm_version >> 8, self.chip.sm_version & 0xff);
        format!("virtual {family} ({}, sm_{sm})", self.chip.name)
    }

    /// Opens a device node. The result is a descriptor for the caller.
    ///
    /// # Errors
    /// `ENOENT` for a path that is not a node of this board, otherwise the node's own errno.
    pub fn open(self: &Arc<Self>, process: &dyn Process, path: &str) -> Result<OwnedFd, Errno> {
        nodes::open(self, process, path)
    }

    /// Answers one ioctl. `Ok` contains the call's non-negative result.
    ///
    /// # Errors
    /// The errno of the call: `EBADF` for a closed descriptor, `ENOTTY` for a file that does not belong to this kernel.
    pub fn ioctl(self: &Arc<Self>, process: &dyn Process, fd: RawFd, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        rule::forget();
        let object = self.object(process, fd).map_err(|e| if e == Errno::EINVAL { Errno::ENOTTY } else { e })?;
        let call = Call { kernel: self, process, fd, copy_back_always: false.into() };
        let result = match object {
            Object::Nvmap(file) => nvmap::ioctl(&call, &file, request, arg),
            Object::Ctrl(ctrl) => ctrl::TABLE.run(&call, &ctrl, request, arg),
            Object::Space(space) => space::TABLE.run(&call, &space, request, arg),
            Object::Tsg(tsg) => tsg::TABLE.run(&call, &tsg, request, arg),
            Object::Channel(channel) => channel::TABLE.run_if(&call, &channel, request, arg, || channel.referencable()),
            Object::Debugger(debugger) => debugger::TABLE.run(&call, &debugger, request, arg),
            Object::Profiler(profiler) => profiler::TABLE.run(&call, &profiler, request, arg),
            Object::Sched(sched) => sched::TABLE.run(&call, &sched, request, arg),
            Object::Nvsched(nvsched) => nvsched::TABLE.run(&call, &nvsched, request, arg),
            Object::CtrlFifo(user) => ctrl_fifo::TABLE.run(&call, &user, request, arg),
            Object::Ctxsw(ctxsw) => ctxsw::TABLE.run(&call, &ctxsw, request, arg),
            Object::SyncFile(fence) => fence.ioctl(&call, request, arg),
            Object::Host1x(host1x) => host1x.ioctl(&call, request, arg),
            Object::Dmabuf(_) | Object::Queue(_) | Object::Event { .. } | Object::Power | Object::Domain(_) => {
                Err(Errno::ENOTTY)
            }
        };
        result.inspect_err(|errno| rule::log(request, *errno))
    }

    /// The kind of node behind one of the caller's descriptors. It is `None` if the descriptor does not belong to this
    /// kernel.
    pub fn node(&self, process: &dyn Process, fd: RawFd) -> Option<Node> {
        self.object(process, fd).ok()?.node()
    }

    /// Notes that a descriptor of the caller is about to be closed. The object ends with its last descriptor.
    pub fn close(self: &Arc<Self>, process: &dyn Process, fd: RawFd) {
        if let Ok(id) = process.file_id(fd) {
            self.leave(id, 1);
        }
    }

    /// So many descriptors of a file that were handed out have been closed, and all their duplicates.
    pub fn closed(self: &Arc<Self>, id: FileId, descriptors: usize) {
        self.leave(id, descriptors);
    }

    /// A file has been handed out once more.
    pub fn handed_out_again(&self, id: FileId) {
        self.files.again(id);
    }

    /// Our end of a file that is a socket or a pipe: it hangs up when the program's has been closed everywhere.
    pub fn our_end(&self, id: FileId) -> Option<OwnedFd> {
        let duplicate = |fd: &OwnedFd| memfd::stow(memfd::duplicate(fd).ok()?).ok();
        match self.files.get(id)? {
            Object::Event { keeps } => duplicate(keeps.our_end()),
            Object::SyncFile(file) => duplicate(file.our_end()),
            Object::Debugger(session) => duplicate(session.our_end()),
            Object::Sched(_) => self.scheduling.our_end(),
            _ => None,
        }
    }

    /// Removes a pin, so that the file is not kept open by it any more.
    fn unpin(self: &Arc<Self>, id: FileId) {
        if let Some(object) = self.files.unpin(id) {
            self.end(object);
        }
    }

    fn leave(self: &Arc<Self>, id: FileId, descriptors: usize) {
        if let Some(object) = self.files.leave(id, descriptors) {
            self.end(object);
        }
    }

    /// Ends an object after its last descriptor was closed. Most objects end when their last reference is dropped. The
    /// objects below have more to do.
    fn end(self: &Arc<Self>, object: Object) {
        match object {
            Object::Channel(channel) => channel.close(self),
            Object::Ctrl(ctrl) => self.doorbells.retire(&ctrl),
            Object::Profiler(profiler) => profiler.close(),
            Object::Sched(_) => self.scheduling.close(),
            Object::CtrlFifo(user) => self.fifo.close(&user),
            Object::Debugger(debugger) => debugger.close(self),
            _ => {}
        }
    }

    /// The object behind one of the caller's descriptors. The error is `EBADF` if the descriptor is closed, and
    /// `EINVAL` if it does not belong to this kernel.
    fn object(&self, process: &dyn Process, fd: RawFd) -> Result<Object, Errno> {
        self.files.get(process.file_id(fd)?).ok_or(Errno::EINVAL)
    }

    /// Makes a new anonymous file for `object`, with a name as nvgpu gives it (`nvhost-<dev>-fd<N>`). N is a count
    /// here.
    fn anonymous(self: &Arc<Self>, device: &str, object: Object) -> Result<OwnedFd, Errno> {
        let n = self.labels.fetch_add(1, Ordering::Relaxed);
        let (fd, id) = files::anonymous(&format!("nvhost-{device}-fd{n}"))?;
        self.enter(id, object);
        Ok(fd)
    }

    fn enter(self: &Arc<Self>, id: FileId, object: Object) {
        if let Some(forgotten) = self.files.enter(id, object) {
            self.end(forgotten);
        }
    }

    /// The mappings of an address space, for comparisons with the page tables of a driver. It is `None` if the descriptor
    /// is none of an address space.
    pub fn page_table(&self, process: &dyn Process, fd: RawFd) -> Option<Arc<PageTable>> {
        match self.object(process, fd).ok()? {
            Object::Space(space) => Some(space.hw.table()),
            _ => None,
        }
    }

    /// Whether a file belongs to a buffer, so that it has pages and takes no writes.
    pub fn is_memory(&self, id: FileId) -> bool {
        matches!(self.files.get(id), Some(Object::Dmabuf(_) | Object::Queue(_)))
    }

    /// Whether a file has not ended yet.
    pub fn is_open(&self, id: FileId) -> bool {
        self.files.get(id).is_some()
    }

    /// The number of open files of every kind.
    pub fn open_files(&self) -> usize {
        self.files.len()
    }

    /// The numbers of objects that exist.
    pub fn census(&self) -> Census {
        Census {
            files: self.files.len(),
            channels: self.channel_ids.used(),
            tsgs: self.tsg_ids.used(),
            handles: self.nvmap.handles(),
            memory: self.nvmap.memory_used(),
            syncpoints: self.syncpoints.used(),
            doorbells: self.doorbells.watched(),
        }
    }

    /// Ends every object, as the end of the process would.
    pub fn shut_down(self: &Arc<Self>) {
        let (channels, rest): (Vec<_>, Vec<_>) =
            self.files.drain().into_iter().partition(|object| matches!(object, Object::Channel(_)));
        channels.into_iter().chain(rest).for_each(|object| self.end(object));
        self.doorbells.unwatch_all();
    }
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel").field("config", &self.config).field("census", &self.census()).finish_non_exhaustive()
    }
}
