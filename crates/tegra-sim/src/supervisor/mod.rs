//! Out of process: gives any unmodified program the virtual Orin's device nodes.
//!
//! The program runs in a mount namespace that has the board's files ([`view`]) and under a seccomp filter whose user
//! notifications arrive here: opening a node, and ioctls whose magic is a Tegra node's. Everything else, `mmap` of
//! the descriptors included, is the host kernel's own work, because the descriptors are real ones. One simulated
//! kernel serves the whole process tree, as on a board.

mod adopt;
mod broken;
mod calls;
mod census;
mod processes;
mod run;
mod sys;
mod target;
mod tree;
mod view;

pub use broken::Broken;
pub use census::{PATH as CENSUS, census};
pub use run::{Exit, Options, run};

use adopt::Adopted;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tegra_kernel::Kernel;
use tegrarm_abi::nvgpu::channel::{NVGPU_IOCTL_CHANNEL_GET_USER_SYNCPOINT, NVGPU_IOCTL_CHANNEL_OPEN};
use tegrarm_abi::nvgpu::ctrl::{NVGPU_GPU_IOCTL_ALLOC_AS, NVGPU_GPU_IOCTL_OPEN_CHANNEL, NVGPU_GPU_IOCTL_OPEN_TSG};
use tegrarm_abi::nvgpu::profiler::*;
use tegrarm_abi::nvgpu::tsg::{NVGPU_TSG_IOCTL_BIND_SCHEDULING_DOMAIN, NVGPU_TSG_IOCTL_DELETE_SUBCONTEXT};
use tegrarm_kmd::{Errno, Node};
use tree::Tree;

/// One answered ioctl.
#[derive(Clone, Copy, Debug)]
pub struct Answered<'a> {
    /// The process that made it.
    pub pid: i32,
    /// Its descriptor.
    pub fd: i32,
    /// What the descriptor is.
    pub node: Node,
    /// The request.
    pub request: u32,
    /// The argument as it came.
    pub before: &'a [u8],
    /// The argument as it was handed back.
    pub after: &'a [u8],
    /// The result.
    pub result: Result<i32, Errno>,
    /// When the kernel began with it and when it was done, PTIMER nanoseconds.
    pub time_ns: (u64, u64),
}

/// Sees every call the simulated kernel answers.
pub trait Observer: Send + Sync {
    /// A process opened a node or file of the board.
    fn opened(&self, _pid: i32, _path: &str, _fd: i32) {}
    /// A process made an ioctl.
    fn ioctl(&self, _call: &Answered<'_>) {}
    /// The program has been started: with the board's files mounted, or without, for this reason.
    fn started(&self, _files: Result<(), Errno>) {}
    /// Everything has ended; so many calls were trapped.
    fn ended(&self, _trapped: u64) {}
}

/// A simulated kernel and the board's file tree, for a tree of processes.
struct Supervisor {
    kernel: Arc<Kernel>,
    broken: Broken,
    tree: Tree,
    observers: Vec<Arc<dyn Observer>>,
    /// What the text files read.
    texts: Mutex<HashMap<String, String>>,
    /// Nodes that were opened without us, and what stands for them since.
    adopted: Mutex<Vec<Adopted>>,
    /// So many open files, and it is time to look for those that no process holds any more.
    many_files: AtomicUsize,
}

/// Files of a usual program: fewer are not worth looking for forgotten ones.
const FEW_FILES: usize = 256;

impl Supervisor {
    fn new(kernel: Arc<Kernel>, observers: Vec<Arc<dyn Observer>>, broken: Broken) -> io::Result<Supervisor> {
        let there = |paths: Vec<String>| paths.into_iter().filter(|p| !broken.lacks(p)).collect::<Vec<_>>();
        let tree = Tree::new(&there(kernel.node_paths()), &there(kernel.text_paths()))?;
        let many_files = AtomicUsize::new(FEW_FILES);
        let (texts, adopted) = Default::default();
        let supervisor = Supervisor { kernel, broken, tree, observers, texts, adopted, many_files };
        supervisor.refresh_texts();
        Ok(supervisor)
    }

    /// Brings the text files up to date for those who read them without our help.
    fn refresh_texts(&self) {
        let mut written = self.texts.lock();
        for path in self.tree.texts() {
            let Ok(text) = self.kernel.read_text(path) else { continue };
            if written.get(path) == Some(&text) {
                continue;
            }
            match self.tree.set_text(path, &text, self.kernel.text_is_writable(path)) {
                Ok(()) => drop(written.insert(path.to_owned(), text)),
                Err(e) => tracing::warn!("{path} cannot be brought up to date: {e}"),
            }
        }
    }

    /// Whether an ioctl's outcome depends on which files were closed before it: ids are used again, a subcontext with
    /// channels cannot be deleted, a group that had channels takes no domain, what a profiler holds is held.
    fn depends_on_closed_files(&self, request: u32) -> bool {
        // The r35 number of OPEN_TSG differs in its size only.
        let same = |number: u32| request & 0xffff == number & 0xffff;
        [
            NVGPU_GPU_IOCTL_ALLOC_AS,
            NVGPU_GPU_IOCTL_OPEN_CHANNEL,
            NVGPU_GPU_IOCTL_OPEN_TSG,
            NVGPU_IOCTL_CHANNEL_OPEN,
            NVGPU_IOCTL_CHANNEL_GET_USER_SYNCPOINT,
            NVGPU_TSG_IOCTL_DELETE_SUBCONTEXT,
            NVGPU_TSG_IOCTL_BIND_SCHEDULING_DOMAIN,
            NVGPU_PROFILER_IOCTL_BIND_CONTEXT,
            NVGPU_PROFILER_IOCTL_RESERVE_PM_RESOURCE,
            NVGPU_PROFILER_IOCTL_ALLOC_PMA_STREAM,
        ]
        .into_iter()
        .any(same)
    }

    /// Ends the files that no process holds any more.
    fn collect_garbage(&self) {
        let pids = processes::descendants(std::process::id() as i32);
        self.kernel.close_all_but(&processes::open_files(&pids));
        self.forget_adopted();
        // The clock request of a closed file has ended with it.
        self.refresh_texts();
        self.many_files.store(2 * self.kernel.open_files() + FEW_FILES, Ordering::Relaxed);
    }

    /// The same, when so many files have been made that it pays: what the collection costs is spread over them.
    fn collect_if_many(&self) {
        if self.kernel.open_files() >= self.many_files.load(Ordering::Relaxed) {
            self.collect_garbage();
        }
    }

    /// Tells the observers; nothing is looked up for nobody.
    fn observe(&self, tell: impl Fn(&dyn Observer)) {
        self.observers.iter().for_each(|observer| tell(&**observer));
    }
}
