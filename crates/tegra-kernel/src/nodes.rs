//! Device nodes: their paths, and the result of opening each (docs/hardware/nvgpu-nodes.md#device-nodes).

use super::board::Board;
use super::channel::{Channel, Host1x};
use super::ctrl_fifo::Fifo;
use super::ctxsw::Tracer;
use super::files::{Call, OpenFile};
use super::nvsched::{Domains, NvschedFile};
use super::profiler::{Profiler, Profiling};
use super::tsg::{Groups, Tsg};
use super::{ctrl, debugger, ioctl_as, nvmap};
use crate::release::L4t;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tegrarm_kmd::Errno;

/// The kinds of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Nvmap,
    Ctrl,
    Space,
    Tsg,
    Channel,
    /// The node of the debugger, and that of the old profiler.
    Debugger {
        profiler: bool,
    },
    ContextProfiler,
    DeviceProfiler,
    Sched,
    Nvsched,
    CtrlFifo,
    Ctxsw,
    Power,
    Host1x,
}

/// The nodes: the name under `/dev/nvgpu/igpu0/`, the legacy path and the kind of each.
const GPU_NODES: &[(&str, &str, Kind)] = &[
    ("ctrl", "/dev/nvhost-ctrl-gpu", Kind::Ctrl),
    ("as", "/dev/nvhost-as-gpu", Kind::Space),
    ("tsg", "/dev/nvhost-tsg-gpu", Kind::Tsg),
    ("channel", "/dev/nvhost-gpu", Kind::Channel),
    ("dbg", "/dev/nvhost-dbg-gpu", Kind::Debugger { profiler: false }),
    ("prof", "/dev/nvhost-prof-gpu", Kind::Debugger { profiler: true }),
    ("prof-ctx", "/dev/nvhost-prof-ctx-gpu", Kind::ContextProfiler),
    ("prof-dev", "/dev/nvhost-prof-dev-gpu", Kind::DeviceProfiler),
    ("ctxsw", "/dev/nvhost-ctxsw-gpu", Kind::Ctxsw),
    ("sched", "/dev/nvhost-sched-gpu", Kind::Sched),
    ("nvsched", "/dev/nvhost-nvsched-gpu", Kind::Nvsched),
    ("nvsched_ctrl_fifo", "/dev/nvhost-nvsched_ctrl_fifo-gpu", Kind::CtrlFifo),
    ("power", "/dev/nvhost-power-gpu", Kind::Power),
];

impl Kind {
    /// Whether a board with this kernel has the node.
    fn exists(self, l4t: L4t) -> bool {
        self != Kind::CtrlFifo || !l4t.is_r35()
    }
}

/// The directory of the nodes. The nodes with old names are in its parent.
const DIRECTORY: &str = "/dev/nvgpu/igpu0/";

/// The nodes of devices other than the GPU.
const OTHER_NODES: &[(&str, Kind)] = &[("/dev/nvmap", Kind::Nvmap), ("/dev/host1x-fence", Kind::Host1x)];

fn kind(path: &str) -> Option<Kind> {
    if let Some((_, kind)) = OTHER_NODES.iter().find(|(other, _)| path == *other) {
        return Some(*kind);
    }
    let name = path.strip_prefix(DIRECTORY);
    GPU_NODES.iter().find(|(new, old, _)| name == Some(*new) || path == *old).map(|(_, _, kind)| *kind)
}

/// Whether `path` is the node that powers the GPU up.
pub(super) fn is_power(path: &str) -> bool {
    kind(path) == Some(Kind::Power)
}

/// The node that powers the GPU up, which can only be written.
#[derive(Debug)]
struct Power;

impl OpenFile for Power {}

/// The drivers behind the nodes.
pub(super) struct Nodes {
    pub nvmap: Arc<nvmap::Device>,
    pub groups: Arc<Groups>,
    profiling: Arc<Profiling>,
    domains: Arc<Domains>,
    fifo: Arc<Fifo>,
    tracer: Tracer,
}

impl Nodes {
    pub(super) fn new(board: &Board) -> Nodes {
        Nodes {
            nvmap: Arc::new(nvmap::Device::new(board.config, board.chip)),
            groups: Arc::new(Groups::new(Arc::default())),
            profiling: Arc::default(),
            domains: Arc::default(),
            fifo: Arc::default(),
            tracer: Tracer::default(),
        }
    }

    /// Every path that can be opened.
    pub(super) fn paths(&self, l4t: L4t) -> impl Iterator<Item = String> {
        let domains = self.domains.nodes().into_iter().map(|name| format!("{DIRECTORY}{name}"));
        let both = |(new, old, _): &(&str, &str, Kind)| [format!("{DIRECTORY}{new}"), (*old).to_owned()];
        let here = GPU_NODES.iter().filter(move |(_, _, kind)| kind.exists(l4t));
        OTHER_NODES.iter().map(|(path, _)| (*path).to_owned()).chain(here.flat_map(both)).chain(domains)
    }

    /// Opens a node.
    pub(super) fn open(&self, call: &Call<'_>, path: &str) -> Result<OwnedFd, Errno> {
        let (files, l4t) = (call.files, call.board.config.l4t);
        let domain = path.strip_prefix(DIRECTORY).and_then(|name| self.domains.find(name));
        if let Some(domain) = domain {
            return files.anonymous("nvsched", domain);
        }
        match kind(path).filter(|kind| kind.exists(l4t)).ok_or(Errno::ENOENT)? {
            Kind::Nvmap => files.anonymous("nvmap", Arc::new(self.nvmap.open(call.process.pid()))),
            Kind::Ctrl => ctrl::open_node(call, &self.groups),
            Kind::Space => ioctl_as::open_node(call),
            Kind::Tsg => {
                let file = Tsg::create(call, &self.groups)?.open(call, None);
                files.anonymous("tsg", Arc::new(file))
            }
            Kind::Channel => Channel::open_file(call, 0),
            Kind::Debugger { profiler } => debugger::open_node(files, &self.profiling, profiler),
            // On these chips, neither release lets a profiler belong to a context.
            Kind::ContextProfiler => Err(Errno::EINVAL),
            Kind::DeviceProfiler => files.anonymous("prof", Arc::new(Profiler::new(&self.profiling))),
            Kind::Sched => self.groups.scheduling.open(files),
            Kind::Nvsched => files.anonymous("nvsched", Arc::new(NvschedFile { domains: self.domains.clone() })),
            Kind::CtrlFifo => self.fifo.open(files, call.process),
            Kind::Ctxsw => self.tracer.open(files, &self.groups.scheduling),
            Kind::Host1x => files.anonymous("host1x-fence", Arc::new(Host1x)),
            Kind::Power => files.anonymous("power", Arc::new(Power)),
        }
    }
}
