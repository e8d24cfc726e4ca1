//! Out of process: any unmodified program gets the device nodes of the virtual Orin.
//!
//! The program runs in a mount namespace that has the board's files ([`view`]), and under a seccomp filter whose
//! notifications arrive here. The filter reports the opening of a node, and ioctls whose magic is that of a Tegra node.
//! Everything else is done by the host's kernel, including `mmap` of the descriptors, because the descriptors are real
//! ones. One simulated kernel serves the whole process tree, as on a board.

mod adopt;
mod broken;
mod bus;
mod calls;
mod census;
mod closes;
mod launches;
mod opened;
mod outcome;
mod outer;
mod processes;
mod repeat;
mod run;
mod spawn;
mod sys;
mod target;
mod tree;
mod view;
mod waiting;
mod workers;
mod writers;

pub use broken::Broken;
pub use census::{PATH as CENSUS, census};
pub use launches::{Launches, PATH as LAUNCHES};
pub use outcome::{Exit, RunError};
pub use outer::{OuterLink, Side, divide};
pub use run::{Options, run};

use adopt::Adopted;
use closes::Closes;
use nix::sys::resource::{Resource, getrlimit};
use repeat::Unheard;
use std::collections::HashMap;
use std::sync::Arc;
use tegra_kernel::{Kernel, budget};
use tegrarm_abi::nvgpu::channel::{NVGPU_IOCTL_CHANNEL_GET_USER_SYNCPOINT, NVGPU_IOCTL_CHANNEL_OPEN};
use tegrarm_abi::nvgpu::ctrl::{NVGPU_GPU_IOCTL_ALLOC_AS, NVGPU_GPU_IOCTL_OPEN_CHANNEL, NVGPU_GPU_IOCTL_OPEN_TSG};
use tegrarm_abi::nvgpu::profiler::*;
use tegrarm_abi::nvgpu::tsg::{NVGPU_TSG_IOCTL_BIND_SCHEDULING_DOMAIN, NVGPU_TSG_IOCTL_DELETE_SUBCONTEXT};
use tegrarm_kmd::{Errno, Node};
use tegrarm_lock::Mutex;
use tree::Tree;
use waiting::Waiting;
use writers::Writers;

/// An ioctl that was answered.
#[derive(Clone, Copy, Debug)]
pub struct Answered<'a> {
    /// The process that made it.
    pub pid: i32,
    /// The descriptor on which it was made.
    pub fd: i32,
    /// The node of the descriptor.
    pub node: Node,
    /// The request number.
    pub request: u32,
    /// The third argument itself: an address, or a number for an ioctl without a structure.
    pub argument: u64,
    /// The structure behind it as it came. It is empty if there is none, or if it cannot be read.
    pub before: &'a [u8],
    /// The argument as the program got it back.
    pub after: &'a [u8],
    /// The result.
    pub result: Result<i32, Errno>,
    /// The rule by which the call was refused, if the kernel names one.
    pub rule: Option<&'a str>,
    /// The times at which the kernel began and ended the call, in nanoseconds of PTIMER.
    pub time_ns: (u64, u64),
}

/// A call of `mmap` that was decided.
#[derive(Clone, Copy, Debug)]
pub struct MapCall<'a> {
    /// The process that made it.
    pub pid: i32,
    /// Its descriptor, and what it is.
    pub fd: i32,
    /// The kind of the file.
    pub node: Node,
    /// The length in bytes.
    pub len: u64,
    /// `PROT_READ`, `PROT_WRITE` and `PROT_EXEC`.
    pub prot: i32,
    /// The offset in the file.
    pub offset: u64,
    /// Whether it is allowed.
    pub result: Result<(), Errno>,
    /// The rule by which it was refused, if the kernel names one.
    pub rule: Option<&'a str>,
}

/// Sees every call that the simulated kernel answers.
pub trait Observer: Send + Sync {
    /// A process opened a node or file of the board.
    fn opened(&self, _pid: i32, _path: &str, _fd: i32) {}
    /// A process made an ioctl.
    fn ioctl(&self, _call: &Answered<'_>) {}
    /// A process asked for a shared mapping of one of the board's files. If it is allowed, the host makes it.
    fn mapped(&self, _call: &MapCall<'_>) {}
    /// A process wrote a line to one of the board's text files.
    fn wrote(&self, _pid: i32, _path: &str, _line: &str, _result: Result<(), Errno>) {}
    /// The program has been started. The board's files are mounted, or they are not for this reason.
    fn started(&self, _files: Result<(), Errno>) {}
    /// All processes have ended. `trapped` calls were trapped.
    fn ended(&self, _trapped: u64) {}
}

/// What there is of everything that processes divide among themselves and that the kernel does not count: open files,
/// files of sysfs that are open for writing, and calls that sleep, each in a thread.
const MOST_FILES: u64 = 1 << 16;
const MOST_WRITERS: u64 = 2048;
const MOST_SLEEPERS: u64 = 4096;

/// A simulated kernel and the board's file tree, for a tree of processes.
struct Supervisor {
    kernel: Arc<Kernel>,
    budgets: Arc<budget::Budgets>,
    broken: Broken,
    tree: Tree,
    observers: Vec<Arc<dyn Observer>>,
    launches: Arc<Launches>,
    /// The contents of the text files.
    texts: Mutex<HashMap<String, String>>,
    /// The nodes that were opened without the supervisor, and the files that stand for them now.
    adopted: Mutex<Vec<Adopted>>,
    /// The files of sysfs that are open for writing.
    writers: Writers,
    /// Finds out when files are closed.
    closes: Closes,
    /// How callers wait for their answers.
    waiting: Waiting,
    /// The answers that callers did not get, because a signal took them away from their calls. It is used on hosts
    /// where this happens.
    unheard: Option<Unheard>,
}

impl Supervisor {
    fn new(
        kernel: Arc<Kernel>,
        observers: Vec<Arc<dyn Observer>>,
        broken: Broken,
        launches: Arc<Launches>,
        waiting: Waiting,
        scarce: Option<u64>,
    ) -> Result<Supervisor, RunError> {
        let there = |paths: Vec<String>| paths.into_iter().filter(|p| !broken.lacks(p)).collect::<Vec<_>>();
        let tree = Tree::new(&there(kernel.node_paths()), &there(kernel.text_paths()))
            .map_err(|why| RunError::Files { directory: std::env::temp_dir(), why })?;
        // Every descriptor of this process belongs to the simulator, so that up to half of the limit can hold files of
        // buffers. Events and fences have two each.
        let (_, descriptors) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((1024, 1024));
        tegra_mm::keep_here(usize::try_from(descriptors / 2).unwrap_or(0));
        let budgets = kernel.divide(scarce.unwrap_or(u64::MAX), |resource| match resource {
            budget::Resource::Ends => (descriptors / 8).min(MOST_FILES),
            budget::Resource::Writers => MOST_WRITERS,
            budget::Resource::Sleepers => MOST_SLEEPERS,
            _ => MOST_FILES,
        });
        let closes = Closes::new(kernel.clone(), budgets.clone()).map_err(|e| RunError::Host {
            what: "inotify, epoll or leases (/proc/sys/fs/leases-enable)",
            why: e.into(),
        })?;
        let (texts, adopted, writers) = Default::default();
        let unheard = (waiting == Waiting::Interruptible).then(Unheard::default);
        let supervisor = Supervisor {
            kernel,
            budgets,
            broken,
            tree,
            observers,
            launches,
            texts,
            adopted,
            writers,
            closes,
            waiting,
            unheard,
        };
        supervisor.refresh_texts();
        Ok(supervisor)
    }

    /// Keeps the file of the newest faults up to date. It is written before a program can learn of the fault, and under no
    /// lock that a caller of the kernel may wait for.
    fn follow_faults(self: &Arc<Self>) {
        let (supervisor, one_writer) = (Arc::downgrade(self), Mutex::new(()));
        let write = move || {
            let Some(supervisor) = supervisor.upgrade() else { return };
            let _one = one_writer.lock();
            let path = supervisor.kernel.faults_path();
            if let Ok(text) = supervisor.kernel.read_text(&path) {
                supervisor.update(&path, &text);
            }
        };
        write();
        self.kernel.watch_faults(write);
    }

    /// Writes the present contents of the text files for programs that read them without the supervisor.
    fn refresh_texts(&self) {
        let mut written = self.texts.lock();
        for path in self.tree.texts() {
            if self.kernel.text_is_taken(path) || path == self.kernel.faults_path() {
                continue;
            }
            let Ok(text) = self.kernel.read_text(path) else { continue };
            if written.get(path) == Some(&text) {
                continue;
            }
            if self.update(path, &text) {
                written.insert(path.to_owned(), text);
            }
        }
    }

    /// Writes a text file of the board. The result says whether it was written.
    fn update(&self, path: &str, text: &str) -> bool {
        let written = self.tree.set_text(path, text, self.kernel.text_is_writable(path));
        written.inspect_err(|e| tracing::warn!("{path} cannot be brought up to date: {e}")).is_ok()
    }

    /// Whether the result of an ioctl depends on which files were closed before it. Examples are ids, which are used
    /// again, a subcontext, which cannot be deleted while it has channels, the domain of a group that had channels, and
    /// what a profiler holds.
    fn depends_on_closed_files(&self, request: u32) -> bool {
        // The number of OPEN_TSG on r35 differs only in the size.
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

    /// Ends the files that have been closed and reported.
    fn tell_closed(&self) {
        if self.closes.tell() {
            self.after_closes();
        }
    }

    /// Ends all files that have been closed, after a look at every file. Callers use it before they count what is left,
    /// and when a resource is used up.
    fn tell_all_closed(&self) {
        if self.closes.tell_all() {
            self.after_closes();
        }
    }

    fn after_closes(&self) {
        self.forget_adopted();
        // A clock request ends with its file, so that the files of clocks may have changed.
        self.refresh_texts();
    }

    /// Tells the observers. If there are none, nothing is looked up.
    fn observe(&self, tell: impl Fn(&dyn Observer)) {
        self.observers.iter().for_each(|observer| tell(&**observer));
    }
}
