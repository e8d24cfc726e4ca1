//! Open files: which object a descriptor of a caller stands for.

use super::channel::{Channel, SyncFile};
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

/// What a file stands for.
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
    /// A scheduling domain's own node.
    Domain(Arc<Domain>),
    Ctxsw(Arc<TraceFile>),
    CtrlFifo(Arc<FifoUser>),
    /// A queue of the above: can be mapped, takes no ioctl.
    Queue(Arc<Queue>),
    Dmabuf(Arc<Buffer>),
    /// Pollable, takes no ioctl; the file keeps the event.
    Event {
        keeps: Arc<EventFd>,
    },
    /// A fence: pollable.
    SyncFile(Arc<SyncFile>),
    /// `/dev/nvgpu/igpu0/power`: takes writes only.
    Power,
}

impl Object {
    /// The kind of node; `None` for files that take no ioctls.
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
            Object::CtrlFifo(_) => Node::CtrlFifo,
            Object::Dmabuf(_) | Object::Queue(_) => Node::Dmabuf,
            Object::Event { .. } | Object::Power | Object::Domain(_) => return None,
        })
    }
}

#[derive(Debug)]
struct Entry {
    object: Object,
    /// Descriptors handed out and not closed yet.
    descriptors: usize,
    /// Kernel objects that keep it open.
    pins: usize,
    /// How many files were entered before it.
    seq: u64,
}

/// Every open file of the simulated kernel.
#[derive(Debug, Default)]
pub(super) struct Files {
    open: RwLock<HashMap<FileId, Entry>>,
    entered: AtomicU64,
}

impl Files {
    /// Enters one more descriptor of a file. A file of the same identity whose descriptors were all closed
    /// behind our back is forgotten.
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

    /// The object behind an identity.
    pub(super) fn get(&self, id: FileId) -> Option<Object> {
        self.open.read().get(&id).map(|entry| entry.object.clone())
    }

    /// One descriptor less; the object when that was the last.
    pub(super) fn leave(&self, id: FileId) -> Option<Object> {
        let mut open = self.open.write();
        let entry = open.get_mut(&id)?;
        entry.descriptors = entry.descriptors.saturating_sub(1);
        if entry.descriptors + entry.pins > 0 {
            return None;
        }
        open.remove(&id).map(|entry| entry.object)
    }

    /// Keeps a file open, whatever happens to its descriptors.
    pub(super) fn pin(&self, id: FileId) {
        if let Some(entry) = self.open.write().get_mut(&id) {
            entry.pins += 1;
        }
    }

    /// One pin less; the object when that was the last that kept it open.
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

    /// How many there are.
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

/// A new file that has an identity and no content.
pub(super) fn anonymous(label: &str) -> Result<(OwnedFd, FileId), Errno> {
    let fd = memfd::create(label, 0)?;
    let id = FileId::of(&fd)?;
    Ok((fd, id))
}
