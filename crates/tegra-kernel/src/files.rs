//! Open files: the object for which each descriptor of a caller stands.

use super::channel::{Channel, Host1x, SyncFile};
use super::ctrl::Ctrl;
use super::ctrl_fifo::{FifoUser, Queue};
use super::ctxsw::TraceFile;
use super::debugger::Debugger;
use super::event::EventFd;
use super::nvmap::{Buffer, NvmapFile};
use super::nvsched::{Domain, NvschedFile};
use super::profiler::Profiler;
use super::sched::SchedFile;
use super::space::AddressSpace;
use super::tsg::TsgFile;
use crate::process::FileId;
use parking_lot::RwLock;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tegra_mm::memfd;
use tegrarm_kmd::{Errno, Node};

/// The object for which a file stands.
#[derive(Clone, Debug)]
pub(super) enum Object {
    Nvmap(Arc<NvmapFile>),
    Ctrl(Arc<Ctrl>),
    Space(Arc<AddressSpace>),
    Tsg(Arc<TsgFile>),
    Channel(Arc<Channel>),
    Debugger(Arc<Debugger>),
    Profiler(Arc<Profiler>),
    Sched(Arc<SchedFile>),
    Nvsched(Arc<NvschedFile>),
    /// The node of a scheduling domain.
    Domain(Arc<Domain>),
    Ctxsw(Arc<TraceFile>),
    CtrlFifo(Arc<FifoUser>),
    /// A queue of the node above. It can be mapped and takes no ioctl.
    Queue(Arc<Queue>),
    Dmabuf(Arc<Buffer>),
    /// An event. It can be polled and takes no ioctl. The file keeps the event alive.
    Event {
        keeps: Arc<EventFd>,
    },
    /// A fence, which can be polled.
    SyncFile(Arc<SyncFile>),
    /// `/dev/host1x-fence`.
    Host1x(Arc<Host1x>),
    /// `/dev/nvgpu/igpu0/power`, which can only be written.
    Power,
}

impl Object {
    /// The kind of node. It is `None` for files that take no ioctls.
    pub(super) fn node(&self) -> Option<Node> {
        Some(match self {
            Object::Nvmap(_) => Node::Nvmap,
            Object::Ctrl(_) => Node::Ctrl,
            Object::Space(_) => Node::As,
            Object::Tsg(_) => Node::Tsg,
            Object::Channel(_) => Node::Channel,
            Object::Debugger(_) => Node::Debugger,
            Object::Profiler(_) => Node::Profiler,
            Object::Sched(_) => Node::Sched,
            Object::Nvsched(_) => Node::Nvsched,
            Object::Ctxsw(_) => Node::Ctxsw,
            Object::SyncFile(_) => Node::SyncFile,
            Object::Host1x(_) => Node::Host1x,
            Object::CtrlFifo(_) => Node::CtrlFifo,
            Object::Dmabuf(_) | Object::Queue(_) => Node::Dmabuf,
            Object::Event { .. } | Object::Power | Object::Domain(_) => return None,
        })
    }
}

#[derive(Debug)]
struct Entry {
    object: Object,
    /// The number of descriptors that were handed out and are not closed yet.
    descriptors: usize,
    /// The number of kernel objects that keep it open.
    pins: usize,
    /// The number of files that were entered before it.
    seq: u64,
}

/// Every open file of the simulated kernel.
#[derive(Debug, Default)]
pub(super) struct Files {
    open: RwLock<HashMap<FileId, Entry>>,
    entered: AtomicU64,
}

impl Files {
    /// Enters one more descriptor of a file. If the table has a file with the same identity whose descriptors were all
    /// closed unseen, that old file is forgotten.
    pub(super) fn enter(&self, id: FileId, object: Object) -> Option<Object> {
        let mut open = self.open.write();
        match open.get_mut(&id) {
            Some(entry) if entry.object.is_same(&object) => {
                entry.descriptors += 1;
                None
            }
            _ => {
                let seq = self.entered.fetch_add(1, Ordering::Relaxed);
                open.insert(id, Entry { object, descriptors: 1, pins: 0, seq }).map(|old| old.object)
            }
        }
    }

    /// The object that has an identity.
    pub(super) fn get(&self, id: FileId) -> Option<Object> {
        self.open.read().get(&id).map(|entry| entry.object.clone())
    }

    /// Counts so many descriptors less. Returns the object if none is left.
    pub(super) fn leave(&self, id: FileId, descriptors: usize) -> Option<Object> {
        let mut open = self.open.write();
        let entry = open.get_mut(&id)?;
        entry.descriptors = entry.descriptors.saturating_sub(descriptors);
        if entry.descriptors + entry.pins > 0 {
            return None;
        }
        open.remove(&id).map(|entry| entry.object)
    }

    /// Keeps a file open, even after its descriptors are closed.
    pub(super) fn pin(&self, id: FileId) {
        if let Some(entry) = self.open.write().get_mut(&id) {
            entry.pins += 1;
        }
    }

    /// Counts one pin less. Returns the object if that was the last thing that kept it open.
    pub(super) fn unpin(&self, id: FileId) -> Option<Object> {
        let mut open = self.open.write();
        let entry = open.get_mut(&id)?;
        entry.pins = entry.pins.saturating_sub(1);
        if entry.descriptors + entry.pins > 0 {
            return None;
        }
        open.remove(&id).map(|entry| entry.object)
    }

    /// Another descriptor of an open file, of which we are told only now.
    pub(super) fn again(&self, id: FileId) {
        if let Some(entry) = self.open.write().get_mut(&id) {
            entry.descriptors += 1;
        }
    }

    /// Takes every file out, the oldest first: ids are then given back in the same order every time.
    pub(super) fn drain(&self) -> Vec<Object> {
        let mut entries: Vec<Entry> = self.open.write().drain().map(|(_, entry)| entry).collect();
        entries.sort_by_key(|entry| entry.seq);
        entries.into_iter().map(|entry| entry.object).collect()
    }

    /// The number of open files.
    pub(super) fn len(&self) -> usize {
        self.open.read().len()
    }
}

impl Object {
    /// Whether both stand for the same kernel object. Only memory is entered more than once.
    fn is_same(&self, other: &Object) -> bool {
        match (self, other) {
            (Object::Dmabuf(a), Object::Dmabuf(b)) => Arc::ptr_eq(a, b),
            (Object::Queue(a), Object::Queue(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

/// Makes a new file, which has an identity and no content.
pub(super) fn anonymous(label: &str) -> Result<(OwnedFd, FileId), Errno> {
    let fd = memfd::create(label, 0)?;
    let id = FileId::of(&fd)?;
    Ok((fd, id))
}
