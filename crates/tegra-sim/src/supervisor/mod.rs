//! Out of process: gives any unmodified program the virtual Orin's device nodes.
//!
//! The program runs in a mount namespace that has the board's files ([`view`]) and under a seccomp filter whose user
//! notifications arrive here: opening a node, and ioctls whose magic is a Tegra node's. Everything else, `mmap` of
//! the descriptors included, is the host kernel's own work, because the descriptors are real ones. One simulated
//! kernel serves the whole process tree, as on a board.

mod adopt;
mod broken;
mod bus;
mod calls;
mod census;
mod closes;
mod leash;
mod outcome;
mod processes;
mod repeat;
mod run;
mod spawn;
mod sys;
mod target;
mod tree;
mod view;
mod workers;

pub use broken::Broken;
pub use census::{PATH as CENSUS, census};
pub use leash::{Leash, Side, divide};
pub use outcome::{Exit, RunError};
pub use run::{Options, run};

use adopt::Adopted;
use closes::Closes;
use nix::sys::resource::{Resource, getrlimit};
use parking_lot::Mutex;
use repeat::Unheard;
use std::collections::HashMap;
use std::sync::Arc;
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
    /// Knows when they are closed.
    closes: Closes,
    /// Where signals take callers away from calls in progress: the answers that they did not hear.
    unheard: Option<Unheard>,
}

impl Supervisor {
    fn new(
        kernel: Arc<Kernel>,
        observers: Vec<Arc<dyn Observer>>,
        broken: Broken,
        interruptible: bool,
    ) -> Result<Supervisor, RunError> {
        let there = |paths: Vec<String>| paths.into_iter().filter(|p| !broken.lacks(p)).collect::<Vec<_>>();
        let tree = Tree::new(&there(kernel.node_paths()), &there(kernel.text_paths()))
            .map_err(|why| RunError::Files { directory: std::env::temp_dir(), why })?;
        let closes = Closes::new(kernel.clone()).map_err(|e| RunError::Host { what: "inotify", why: e.into() })?;
        // Every descriptor of this process is the simulator's: files of buffers need no drawer until they are gone.
        if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
            tegra_mm::keep_here(usize::try_from(most / 2).unwrap_or(0));
        }
        let (texts, adopted) = Default::default();
        let unheard = interruptible.then(Unheard::default);
        let supervisor = Supervisor { kernel, broken, tree, observers, texts, adopted, closes, unheard };
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

    /// Ends the files that have been closed.
    fn tell_closed(&self) {
        if self.closes.tell() {
            self.after_closes();
        }
    }

    /// The same, after a look at every file: for who counts what is left, or has nothing left.
    fn tell_all_closed(&self) {
        if self.closes.tell_all() {
            self.after_closes();
        }
    }

    fn after_closes(&self) {
        self.forget_adopted();
        // The clock request of a closed file has ended with it.
        self.refresh_texts();
    }

    /// Tells the observers; nothing is looked up for nobody.
    fn observe(&self, tell: impl Fn(&dyn Observer)) {
        self.observers.iter().for_each(|observer| tell(&**observer));
    }
}
