//! The kernel under test: a virtual board of this process, or the device nodes.
//!
//! `TEGRARM_TEST_BACKEND=nvgpu` chooses the nodes: then every call is a real system call, answered by whoever
//! provides them. `make test-out-of-process` has `tegrarm-sim run` do that.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Once};
use tegra_sim::{Census, Chip, L4t, SimConfig, SimKmd};
use tegrarm_kmd::{Arg, Errno, Kmd, LinuxKmd, Mapping, Node, Placement, Prot};

/// A board that tests run on.
pub enum Board {
    /// In this process; what is alive in it can be counted.
    Virtual(SimKmd),
    /// Behind the device nodes.
    Nodes(LinuxKmd),
}

/// A board with `l4t`; a virtual one has little memory, so that running out of it is cheap. One behind the nodes
/// has the release it has: ask [`releases`] before asking for several.
pub fn board(l4t: L4t) -> Arc<Board> {
    if behind_nodes() {
        return Arc::new(Board::Nodes(LinuxKmd));
    }
    let config = SimConfig { mem_total: 512 << 20, ..SimConfig::new(Chip::AgxOrin).on(l4t) };
    Arc::new(Board::Virtual(SimKmd::new(config)))
}

/// Those of `all` that can be tested here: behind the nodes, the one that `TEGRARM_SIM_L4T` names.
pub fn releases(all: &[L4t]) -> Vec<L4t> {
    all.iter().copied().filter(|l4t| !behind_nodes() || *l4t == default_release()).collect()
}

/// The release that `TEGRARM_SIM_L4T` names, r36 when unset: for tests that hold on each.
pub fn default_release() -> L4t {
    SimConfig::from_env().expect("the simulator's environment").l4t
}

pub fn behind_nodes() -> bool {
    std::env::var_os("TEGRARM_TEST_BACKEND").is_some_and(|name| name == "nvgpu")
}

impl Board {
    /// What is alive in the kernel: this process's own, or the supervisor's, which counts for all processes under it. A
    /// board counts for nobody: there, `TEGRARM_TEST_CENSUS=none` says that the numbers are left out (`None`), and
    /// without it a test that wants them fails.
    pub fn census(&self) -> Option<Census> {
        static ONCE: Once = Once::new();
        match self {
            Board::Virtual(sim) => Some(sim.kernel().census()),
            Board::Nodes(_) if std::env::var_os("TEGRARM_TEST_CENSUS").is_some_and(|value| value == "none") => {
                ONCE.call_once(|| eprintln!("SKIPPED: counting kernel objects, as TEGRARM_TEST_CENSUS says"));
                None
            }
            Board::Nodes(_) => Some(tegra_sim::supervisor::census().expect("nobody counts what the kernel holds")),
        }
    }

    /// Checks that how much of `what` is alive, minus `before`, is what the test wants, where that can be counted.
    #[track_caller]
    pub fn assert_held(&self, what: fn(&Census) -> u64, before: Option<u64>, wants: u64, why: &str) {
        if let Some(before) = before {
            assert_eq!(self.held(what), Some(before + wants), "{why}");
        }
    }

    /// How much of `what` is alive, as [`Board::census`] counts.
    pub fn held(&self, what: fn(&Census) -> u64) -> Option<u64> {
        self.census().as_ref().map(what)
    }

    /// Whether nobody used the board before: then ids are the first ones. The nodes' board may have served others.
    pub fn is_fresh(&self) -> bool {
        matches!(self, Board::Virtual(_))
    }

    fn kmd(&self) -> &dyn Kmd {
        match self {
            Board::Virtual(sim) => sim,
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
