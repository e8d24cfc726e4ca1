//! Device nodes: their paths, and the result of opening each (docs/hardware/nvgpu-nodes.md#device-nodes).

use super::Kernel;
use super::channel::{Channel, Host1x};
use super::ctrl::Ctrl;
use super::debugger::Debugger;
use super::dispatch::Call;
use super::files::Object;
use super::nvsched::NvschedFile;
use super::profiler::Profiler;
use super::tsg::Tsg;
use crate::process::Process;
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
    fn exists(self, kernel: &Kernel) -> bool {
        self != Kind::CtrlFifo || !kernel.config.l4t.is_r35()
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

/// Every path that can be opened.
pub(super) fn paths(kernel: &Kernel) -> impl Iterator<Item = String> {
    let domains = kernel.domains.nodes().into_iter().map(|name| format!("{DIRECTORY}{name}"));
    let both = |(new, old, _): &(&str, &str, Kind)| [format!("{DIRECTORY}{new}"), (*old).to_owned()];
    let here = GPU_NODES.iter().filter(|(_, _, kind)| kind.exists(kernel));
    OTHER_NODES.iter().map(|(path, _)| (*path).to_owned()).chain(here.flat_map(both)).chain(domains)
}

pub(super) fn open(kernel: &Arc<Kernel>, process: &dyn Process, path: &str) -> Result<OwnedFd, Errno> {
    let call = Call { kernel, process, fd: -1, copy_back_always: false.into() };
    let domain = path.strip_prefix(DIRECTORY).and_then(|name| kernel.domains.find(name));
    if let Some(domain) = domain {
        return kernel.anonymous("nvsched", Object::Domain(domain));
    }
    match kind(path).filter(|kind| kind.exists(kernel)).ok_or(Errno::ENOENT)? {
        Kind::Nvmap => kernel.anonymous("nvmap", Object::Nvmap(Arc::new(kernel.nvmap.open(process.pid())))),
        Kind::Ctrl => {
            let (fd, ctrl) = Ctrl::open(kernel, process)?;
            kernel.enter(ctrl.file, Object::Ctrl(ctrl));
            Ok(fd)
        }
        Kind::Space => super::space::open_node(&call),
        Kind::Tsg => {
            let file = Tsg::create(&call)?.open(&call, None);
            kernel.anonymous("tsg", Object::Tsg(Arc::new(file)))
        }
        Kind::Channel => Channel::open_file(&call, 0),
        Kind::Debugger { profiler } => Debugger::open(kernel, profiler),
        // On these chips, neither release lets a profiler belong to a context.
        Kind::ContextProfiler => Err(Errno::EINVAL),
        Kind::DeviceProfiler => kernel.anonymous("prof", Object::Profiler(Arc::new(Profiler::new(&kernel.profiling)))),
        Kind::Sched => kernel.scheduling.open(kernel),
        Kind::Nvsched => kernel.anonymous("nvsched", Object::Nvsched(Arc::new(NvschedFile))),
        Kind::CtrlFifo => kernel.fifo.open(kernel, process),
        Kind::Ctxsw => kernel.tracer.open(kernel),
        Kind::Host1x => kernel.anonymous("host1x-fence", Object::Host1x(Arc::new(Host1x))),
        Kind::Power => kernel.anonymous("power", Object::Power),
    }
}
