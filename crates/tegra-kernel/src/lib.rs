//! The simulated nvgpu and nvmap drivers.
//!
//! [`Kernel`] knows no process: every call comes with its caller as a [`Process`]. A file is known by its identity
//! ([`FileId`]), and objects are reference-counted as in nvgpu (docs/hardware/nvgpu-overview.md#lifetimes). The ioctls
//! of each node are a table of rows (number, release, handler), and all tables share one dispatcher.
//!
//! Locks may nest in this order: channel, TSG, address space, buffer. No lock is held while the GPU runs.

mod board;
pub mod budget;
mod channel;
mod chip;
mod clears;
mod clocks;
mod config;
mod ctrl;
mod ctrl_fifo;
mod ctxsw;
mod debugger;
mod dispatch;
mod doorbells;
mod event;
mod files;
mod host;
mod ids;
mod ioctl_as;
mod ioctl_tsg;
mod ioctls;
mod nodes;
mod nvmap;
mod nvsched;
mod power;
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
pub use power::PowerMode;
pub use release::L4t;

use board::{Board, CHANNELS};
use budget::{Budgets, Resource};
use channel::Channel;
use chip::ChipData;
use files::{Call, Files, Mmap, OpenFile, of_type};
use nodes::Nodes;
use process::{FileId, Process};
use space::AddressSpace;
use std::any::Any;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::Arc;
use tegra_hw::{CodeNames, GpuPort, Speeds};
use tegra_mm::PageTable;
use tegrarm_kmd::{Arg, Errno, Node};

/// The nvmap handles of all processes that share a kernel.
const MOST_HANDLES: u64 = 1 << 20;

/// A booted kernel with one GPU.
pub struct Kernel {
    board: Arc<Board>,
    files: Files,
    nodes: Nodes,
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
        let board = Arc::new(Board::new(config, gpu));
        Arc::new(Kernel { nodes: Nodes::new(&board), files: Files::new(board.clone()), board })
    }

    /// Divides what there is among the processes that call. `total` says how much there is of what the kernel does not
    /// know. There are at most `scarce` of all that is counted one by one.
    pub fn divide(&self, scarce: u64, total: impl Fn(Resource) -> u64) -> Arc<Budgets> {
        let all = |resource| match resource {
            Resource::Memory => self.nodes.nvmap.system_memory().0,
            Resource::Mappings => scarce.min(tegra_mm::mappings_for_buffers() as u64),
            Resource::Handles => scarce.min(MOST_HANDLES),
            Resource::Channels | Resource::Groups => scarce.min(CHANNELS.into()),
            resource => scarce.min(total(resource)),
        };
        self.board.divide(all)
    }

    /// The GPC and the TPC of each SM of a board, in the order of their numbers, as the log has them.
    pub fn sms(config: &SimConfig) -> Vec<(u32, u32)> {
        let chip = ChipData::of(config);
        let all = |place| std::iter::repeat_n(place, chip.sm_per_tpc as usize);
        chip.tpcs_in_log_order().into_iter().flat_map(all).collect()
    }

    /// How fast the module is.
    pub fn speeds(config: &SimConfig) -> Speeds {
        ChipData::of(config).speeds(config)
    }

    /// The name of the board for messages, for example `virtual Orin (ga10b, sm_87)`.
    pub fn board_name(&self) -> String {
        let family = if self.board.chip.is_ga10b() { "Orin" } else { "Xavier" };
        let sm = format!("{}{}", self.board.chip.sm_version >> 8, self.board.chip.sm_version & 0xff);
        format!("virtual {family} ({}, sm_{sm})", self.board.chip.name)
    }

    /// Opens a device node. The result is a descriptor for the caller.
    ///
    /// # Errors
    /// `ENOENT` for a path that is not a node of this board, otherwise the node's own errno.
    pub fn open(&self, process: &dyn Process, path: &str) -> Result<OwnedFd, Errno> {
        self.nodes.open(&self.call(process, -1), path)
    }

    /// Answers one ioctl. `Ok` contains the call's non-negative result.
    ///
    /// # Errors
    /// The errno of the call: `EBADF` for a closed descriptor, `ENOTTY` for a file that does not belong to this kernel.
    pub fn ioctl(&self, process: &dyn Process, fd: RawFd, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        rule::forget();
        let file = self.file_or(Errno::ENOTTY, process, fd)?;
        let result = file.ioctl(&self.call(process, fd), request, arg);
        result.inspect_err(|errno| rule::log(request, *errno))
    }

    fn call<'a>(&'a self, process: &'a dyn Process, fd: RawFd) -> Call<'a> {
        Call { board: &self.board, files: &self.files, process, fd, copy_back_always: false.into() }
    }

    /// The file behind one of the caller's descriptors. The error is `EBADF` if the descriptor is closed, and `foreign` if
    /// it does not belong to this kernel.
    fn file_or(&self, foreign: Errno, process: &dyn Process, fd: RawFd) -> Result<Arc<dyn OpenFile>, Errno> {
        self.files.object(process, fd).map_err(|e| if e == Errno::EINVAL { foreign } else { e })
    }

    /// What programs have told of the names of their code, of their queues and of parts of their time.
    pub fn names(&self) -> &CodeNames {
        &self.board.hw.names
    }

    /// The address at which the kernel itself has mapped the memory behind one of the caller's descriptors. This
    /// matters when the caller is this process, because the two share an address space then.
    pub fn own_view(&self, process: &dyn Process, fd: RawFd) -> Option<usize> {
        rule::forget();
        self.files.object(process, fd).ok()?.own_view()
    }

    /// Checks an `mmap(2)` of one of the caller's descriptors. The caller makes the mapping itself, because the
    /// kernel's files are real files.
    ///
    /// # Errors
    /// The errno that a board gives.
    pub fn check_mmap(
        &self,
        process: &dyn Process,
        fd: RawFd,
        len: usize,
        write: bool,
        offset: u64,
    ) -> Result<(), Errno> {
        let file = self.file_or(Errno::ENODEV, process, fd)?;
        file.check_mmap(&self.call(process, fd), &Mmap { len, write, offset })
    }

    /// The kind of node behind one of the caller's descriptors. It is `None` if the descriptor does not belong to this
    /// kernel.
    pub fn node(&self, process: &dyn Process, fd: RawFd) -> Option<Node> {
        self.files.object(process, fd).ok()?.node()
    }

    /// Notes that a descriptor of the caller is about to be closed. The object ends with its last descriptor.
    pub fn close(&self, process: &dyn Process, fd: RawFd) {
        self.files.close(process, fd);
    }

    /// So many descriptors of a file that were handed out have been closed, and all their duplicates.
    pub fn closed(&self, id: FileId, descriptors: usize) {
        self.files.leave(id, descriptors);
    }

    /// A file has been handed out once more.
    pub fn handed_out_again(&self, id: FileId) {
        self.files.again(id);
    }

    /// Our end of a file that is a socket or a pipe: it hangs up when the program's has been closed everywhere.
    pub fn our_end(&self, id: FileId) -> Option<OwnedFd> {
        self.files.get(id)?.our_end()
    }

    /// The mappings of an address space, for comparisons with the page tables of a driver. It is `None` if the descriptor
    /// is none of an address space.
    pub fn page_table(&self, process: &dyn Process, fd: RawFd) -> Option<Arc<PageTable>> {
        let space: Arc<AddressSpace> = of_type(self.files.object(process, fd).ok()?)?;
        Some(space.hw.table())
    }

    /// The id of the channel behind a descriptor, for tests that let its work fail.
    pub fn channel_id(&self, process: &dyn Process, fd: RawFd) -> Option<u32> {
        let channel: Arc<channel::Channel> = of_type(self.files.object(process, fd).ok()?)?;
        Some(channel.id())
    }

    /// Whether a file belongs to a buffer, so that it has pages and takes no writes.
    pub fn is_memory(&self, id: FileId) -> bool {
        self.files.get(id).is_some_and(|file| file.is_memory())
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
            channels: self.board.channel_ids.used(),
            tsgs: self.nodes.groups.used(),
            handles: self.nodes.nvmap.handles(),
            memory: self.nodes.nvmap.memory_used(),
            syncpoints: self.board.syncpoints.used(),
            doorbells: self.board.doorbells.watched(),
        }
    }

    /// Ends every object, as the end of the process would.
    pub fn shut_down(&self) {
        let is_channel = |file: &Arc<dyn OpenFile>| (&**file as &dyn Any).is::<Channel>();
        let (channels, rest): (Vec<_>, Vec<_>) = self.files.drain().into_iter().partition(is_channel);
        channels.into_iter().chain(rest).for_each(|file| file.close(&self.files));
        self.board.doorbells.unwatch_all();
    }
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kernel")
            .field("config", &self.board.config)
            .field("census", &self.census())
            .finish_non_exhaustive()
    }
}
