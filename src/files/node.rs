//! The nodes there are, and what an open file of one remembers.

use super::uvm::Space;
use crate::rm::{Held, LentNode, Rm};
use parking_lot::Mutex;
use std::ffi::CStr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use tegrarm_kmd::fds::FileId;

/// Kinds of node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `/dev/nvidiactl`.
    Control,
    /// `/dev/nvidia0`.
    Gpu,
    /// `/dev/nvidia-uvm`.
    Uvm,
    /// `/dev/nvidia-uvm-tools`.
    UvmTools,
}

/// One node.
pub struct NodeRow {
    /// What it is.
    pub kind: Kind,
    /// Its path.
    pub path: &'static str,
    /// The name of the files that stand for it. A file keeps its name through fork and exec, so that whoever inherits a
    /// descriptor can tell what it is.
    pub label: &'static CStr,
}

/// Every node there is.
pub static NODES: &[NodeRow] = &[
    NodeRow { kind: Kind::Control, path: "/dev/nvidiactl", label: c"tegrarm:nvidiactl" },
    NodeRow { kind: Kind::Gpu, path: "/dev/nvidia0", label: c"tegrarm:nvidia0" },
    NodeRow { kind: Kind::Uvm, path: "/dev/nvidia-uvm", label: c"tegrarm:nvidia-uvm" },
    NodeRow { kind: Kind::UvmTools, path: "/dev/nvidia-uvm-tools", label: c"tegrarm:nvidia-uvm-tools" },
];

/// The node at a path.
pub fn at(path: &str) -> Option<&'static NodeRow> {
    NODES.iter().find(|row| row.path == path)
}

/// The node that a link of `/proc/self/fd` names: `/memfd:LABEL (deleted)`.
pub fn of_link(link: &str) -> Option<&'static NodeRow> {
    let label = link.strip_prefix("/memfd:")?.strip_suffix(" (deleted)")?;
    NODES.iter().find(|row| row.label.to_str() == Ok(label))
}

/// One open file. Its clients and UVM mappings end with it.
pub struct OpenFile {
    /// What it is an open file of.
    pub kind: Kind,
    /// What its descriptors refer to.
    pub id: FileId,
    /// Declared before `held`: mappings go before the nodes close.
    pub uvm: Mutex<Option<Space>>,
    /// Clients allocated through it, or through a file that is registered with it.
    clients: Mutex<Vec<u32>>,
    /// The control file it was registered with, which lives at least as long as this.
    control: OnceLock<Arc<OpenFile>>,
    /// A control file was told its GPUs.
    pub attached: AtomicBool,
    /// RM_MAP_MEMORY made it something to map.
    pub lent: AtomicBool,
    held: Held,
    rm: Arc<Rm>,
}

impl OpenFile {
    /// A file that was just opened.
    pub fn new(kind: Kind, id: FileId, rm: Arc<Rm>, held: Held) -> OpenFile {
        OpenFile {
            kind,
            id,
            uvm: Mutex::default(),
            clients: Mutex::default(),
            control: OnceLock::new(),
            attached: AtomicBool::new(false),
            lent: AtomicBool::new(false),
            held,
            rm,
        }
    }

    /// The manager it works on.
    pub fn rm(&self) -> &Arc<Rm> {
        &self.rm
    }

    /// The GPU it keeps open.
    pub fn held(&self) -> &Held {
        &self.held
    }

    /// Which node it can be mapped as; `None` for UVM's.
    pub fn lent_node(&self) -> Option<LentNode> {
        match self.kind {
            Kind::Control => Some(LentNode::Control),
            Kind::Gpu => Some(LentNode::Gpu),
            Kind::Uvm | Kind::UvmTools => None,
        }
    }

    /// Ties it to a control file. `false`: it is tied to one.
    pub fn register(&self, control: Arc<OpenFile>) -> bool {
        self.control.set(control).is_ok()
    }

    /// Whether it was tied to a control file.
    pub fn is_registered(&self) -> bool {
        self.control.get().is_some()
    }

    /// The file whose clients are used through this one: the control file it was tied to, or itself.
    #[inline]
    fn owner(&self) -> &OpenFile {
        self.control.get().map_or(self, |control| control)
    }

    /// A client was allocated through it.
    pub fn own_client(&self, client: u32) {
        self.owner().clients.lock().push(client);
    }

    /// A client was freed. It may be one that was allocated through this file.
    pub fn disown_client(&self, client: u32) {
        self.owner().clients.lock().retain(|c| *c != client);
    }

    /// Whether a client may be used through it.
    #[inline]
    pub fn owns_client(&self, client: u32) -> bool {
        self.owner().clients.lock().contains(&client)
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        for client in self.clients.get_mut().drain(..) {
            // The client may be freed already, through another descriptor or by a forked parent. Then nothing is left to do.
            let _ = self.rm.free(client, client);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_found_by_path_and_by_the_name_of_their_files() {
        for row in NODES {
            assert_eq!(at(row.path).map(|r| r.kind), Some(row.kind));
            let link = format!("/memfd:{} (deleted)", row.label.to_str().unwrap());
            assert_eq!(of_link(&link).map(|r| r.kind), Some(row.kind));
        }
        for other in ["/dev/nvidia1", "/dev/nvidia", "/dev/nvidiactl/"] {
            assert!(at(other).is_none(), "{other}");
        }
        assert!(of_link("/memfd:nvidiactl (deleted)").is_none());
    }
}
