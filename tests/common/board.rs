//! The kernel for the tests: a virtual board of this process, or the device nodes.
//!
//! `TEGRARM_TEST_BACKEND=nvgpu` chooses the device nodes. Every call is then a real system call, and the provider of
//! the nodes answers it. `make test-out-of-process` lets `tegrarm-sim run` provide them.
//!
//! `TEGRARM_TEST_RECORD` names a folder in which each virtual board writes down the calls that it gets, for
//! `make test-driver-library`.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};
use tegra_sim::{Census, Chip, L4t, SimConfig, SimKmd};
use tegrarm_kmd::{Arg, Errno, Kmd, LinuxKmd, Mapping, Node, Placement, Prot, Recorded};

/// A board on which tests run.
pub enum Board {
    /// A board in this process. The objects in it can be counted.
    Virtual(SimKmd),
    /// The same, whose calls are written down.
    Recorded { sim: Arc<SimKmd>, recorder: Recorded },
    /// A board behind the device nodes.
    Nodes(LinuxKmd),
}

/// Makes a board with `l4t`. A virtual board has little memory, so that a test can use it up quickly. A board behind
/// the nodes has its own release: a test must ask [`releases`] before it asks for several.
pub fn board(l4t: L4t) -> Arc<Board> {
    if behind_nodes() {
        return Arc::new(Board::Nodes(LinuxKmd));
    }
    let config = SimConfig { mem_total: 512 << 20, ..SimConfig::new(Chip::AgxOrin).on(l4t) };
    let sim = SimKmd::new(config);
    let Some(folder) = std::env::var_os("TEGRARM_TEST_RECORD") else { return Arc::new(Board::Virtual(sim)) };
    let (sim, path) = (Arc::new(sim), recording(Path::new(&folder), l4t));
    let recorder = Recorded::create(sim.clone(), &path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    Arc::new(Board::Recorded { sim, recorder })
}

/// The file of a board's calls: the test program, the test, the release, and how many boards the program had before.
fn recording(folder: &Path, l4t: L4t) -> PathBuf {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let program = std::env::current_exe().expect("the program's own path");
    let program = program.file_stem().expect("a name").to_string_lossy();
    // Cargo adds a hash to the name.
    let suite = program.rsplit_once('-').map_or(&*program, |(name, _)| name);
    let thread = std::thread::current();
    let (test, number) = (thread.name().unwrap_or("thread"), MADE.fetch_add(1, Ordering::Relaxed));
    folder.join(format!("{suite},{test},{},{number}.jsonl", l4t.name()))
}

/// Those of `all` that can be tested here. Behind the nodes it is the one that `TEGRARM_SIM_L4T` names.
pub fn releases(all: &[L4t]) -> Vec<L4t> {
    all.iter().copied().filter(|l4t| !behind_nodes() || *l4t == default_release()).collect()
}

/// The release that `TEGRARM_SIM_L4T` names, or r36 if it is not set. This is for tests that hold on each release.
pub fn default_release() -> L4t {
    SimConfig::from_env().expect("the simulator's environment").l4t
}

pub fn behind_nodes() -> bool {
    std::env::var_os("TEGRARM_TEST_BACKEND").is_some_and(|name| name == "nvgpu")
}

impl Board {
    /// The numbers of objects in the kernel: those of this process, or those of the supervisor, which count for all
    /// processes under it. A real board has no such numbers. `TEGRARM_TEST_CENSUS=none` says so, and the result is
    /// `None` then. Without the variable, a test that needs the numbers fails.
    pub fn census(&self) -> Option<Census> {
        static ONCE: Once = Once::new();
        match self {
            Board::Virtual(sim) => Some(sim.kernel().census()),
            Board::Recorded { sim, .. } => Some(sim.kernel().census()),
            Board::Nodes(_) if std::env::var_os("TEGRARM_TEST_CENSUS").is_some_and(|value| value == "none") => {
                ONCE.call_once(|| eprintln!("SKIPPED: counting kernel objects, as TEGRARM_TEST_CENSUS says"));
                None
            }
            Board::Nodes(_) => Some(tegra_sim::supervisor::census().expect("nobody counts what the kernel holds")),
        }
    }

    /// Checks that the number of `what`, minus `before`, is the one that the test expects, where it can be counted.
    #[track_caller]
    pub fn assert_held(&self, what: fn(&Census) -> u64, before: Option<u64>, wants: u64, why: &str) {
        if let Some(before) = before {
            assert_eq!(self.held(what), Some(before + wants), "{why}");
        }
    }

    /// The number of `what`, as [`Board::census`] counts it.
    pub fn held(&self, what: fn(&Census) -> u64) -> Option<u64> {
        self.census().as_ref().map(what)
    }

    /// Whether no other test has used the board before, so that it hands out the first ids. A board behind the nodes
    /// may have served others.
    pub fn is_fresh(&self) -> bool {
        !matches!(self, Board::Nodes(_))
    }

    fn kmd(&self) -> &dyn Kmd {
        match self {
            Board::Virtual(sim) => sim,
            Board::Recorded { recorder, .. } => recorder,
            Board::Nodes(linux) => linux,
        }
    }
}

impl Kmd for Board {
    fn name(&self) -> &str {
        self.kmd().name()
    }

    fn is_simulated(&self) -> bool {
        self.kmd().is_simulated()
    }

    fn examines_code(&self) -> bool {
        self.kmd().examines_code()
    }

    fn step(&self) -> bool {
        self.kmd().step()
    }

    fn open(&self, path: &str) -> Result<OwnedFd, Errno> {
        self.kmd().open(path)
    }

    fn ioctl(&self, fd: BorrowedFd<'_>, node: Node, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        self.kmd().ioctl(fd, node, request, arg)
    }

    fn mmap(&self, fd: BorrowedFd<'_>, at: Placement, len: usize, prot: Prot, offset: u64) -> Result<Mapping, Errno> {
        self.kmd().mmap(fd, at, len, prot, offset)
    }

    fn close(&self, fd: OwnedFd) {
        self.kmd().close(fd);
    }

    fn own_view(&self, fd: BorrowedFd<'_>) -> Option<usize> {
        self.kmd().own_view(fd)
    }

    fn read_text(&self, path: &str) -> Result<String, Errno> {
        self.kmd().read_text(path)
    }

    fn write_text(&self, path: &str, text: &str) -> Result<(), Errno> {
        self.kmd().write_text(path, text)
    }
}
