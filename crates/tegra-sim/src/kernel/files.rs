//! Open files: which object a descriptor of a caller stands for.

use super::channel::Channel;
use super::ctrl::Ctrl;
use super::debugger::Debugger;
use super::event::EventFd;
use super::nvmap::{Buffer, NvmapFile};
use super::profiler::Profiler;
use super::space::AddressSpace;
use super::tsg::TsgFile;
use crate::mm::memfd;
use crate::process::FileId;
use parking_lot::RwLock;
use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::sync::Arc;
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
    Dmabuf(Arc<Buffer>),
    /// Pollable, takes no ioctl; the file keeps the event.
    Event {
        _keeps: Arc<EventFd>,
    },
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
            Object::Dmabuf(_) => Node::Dmabuf,
            Object::Event { .. } | Object::Power => return None,
        })
    }
}

#[derive(Debug)]
struct Entry {
    object: Object,
    /// Descriptors handed out and not closed yet.
    descriptors: usize,
}

/// Every open file of the simulated kernel.
#[derive(Debug, Default)]
pub(super) struct Files {
    open: RwLock<HashMap<FileId, Entry>>,
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
            _ => open.insert(id, Entry { object, descriptors: 1 }).map(|old| old.object),
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
        entry.descriptors -= 1;
        if entry.descriptors > 0 {
            return None;
        }
        open.remove(&id).map(|entry| entry.object)
    }

    /// Takes every file out.
    pub(super) fn drain(&self) -> Vec<Object> {
        self.open.write().drain().map(|(_, entry)| entry.object).collect()
    }

    /// Takes every file out whose identity is not in `held`.
    pub(super) fn drain_others(&self, held: &HashSet<FileId>) -> Vec<Object> {
        let mut open = self.open.write();
        open.extract_if(|id, _| !held.contains(id)).map(|(_, entry)| entry.object).collect()
    }

    /// Open files per kind, for tests and tools.
    pub(super) fn count(&self, kind: impl Fn(&Object) -> bool) -> usize {
        self.open.read().values().filter(|entry| kind(&entry.object)).count()
    }
}

impl Object {
    /// Whether both stand for the same kernel object. Only dmabufs are entered more than once.
    fn is_same(&self, other: &Object) -> bool {
        matches!((self, other), (Object::Dmabuf(a), Object::Dmabuf(b)) if Arc::ptr_eq(a, b))
    }
}

/// A new file that has an identity and no content.
pub(super) fn anonymous(label: &str) -> Result<(OwnedFd, FileId), Errno> {
    let fd = memfd::create(label, 0)?;
    let id = FileId::of(&fd)?;
    Ok((fd, id))
}
