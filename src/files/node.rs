//! The device nodes of desktop RM, and what an open file of one remembers.

use super::uvm::Space;
use std::ffi::CStr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use tegrarm_kmd::fds::FileId;
use tegrarm_lock::Mutex;
use tegrarm_rm::rm::{Held, LentNode, Rm};

/// The kinds of device nodes.
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

/// One device node.
pub struct NodeRow {
    /// Its kind.
    pub kind: Kind,
    /// Its path.
    pub path: &'static str,
    /// The name of the memory files that stand for it. A file keeps its name through fork and exec, so that a process
    /// that inherits a descriptor can tell which node it belongs to.
    pub label: &'static CStr,
}

/// All device nodes.
pub static NODES: &[NodeRow] = &[
    NodeRow { kind: Kind::Control, path: "/dev/nvidiactl", label: c"tegrarm:nvidiactl" },
    NodeRow { kind: Kind::Gpu, path: "/dev/nvidia0", label: c"tegrarm:nvidia0" },
    NodeRow { kind: Kind::Uvm, path: "/dev/nvidia-uvm", label: c"tegrarm:nvidia-uvm" },
    NodeRow { kind: Kind::UvmTools, path: "/dev/nvidia-uvm-tools", label: c"tegrarm:nvidia-uvm-tools" },
];

/// The node that has this path.
pub fn at(path: &str) -> Option<&'static NodeRow> {
    NODES.iter().find(|row| row.path == path)
}

/// The node of a link in `/proc/self/fd`, which reads `/memfd:LABEL (deleted)`.
pub fn of_link(link: &str) -> Option<&'static NodeRow> {
    let label = link.strip_prefix("/memfd:")?.strip_suffix(" (deleted)")?;
    NODES.iter().find(|row| row.label.to_str() == Ok(label))
}

/// One open file. Its clients and UVM mappings are freed with it.
pub struct OpenFile {
    /// The kind of its node.
    pub kind: Kind,
    /// The identity of the file to which its descriptors refer.
    pub id: FileId,
    /// The UVM state of the file. It is declared before `held`, because its mappings must be dropped before the nodes
    /// close.
    pub uvm: Mutex<Option<Space>>,
    /// The clients that were allocated through this file, or through a file that is registered with it.
    clients: Mutex<Vec<u32>>,
    /// The control file that this file is registered with. It lives at least as long as this file.
    control: OnceLock<Arc<OpenFile>>,
    /// True after a control file was told which GPUs it will use.
    pub attached: AtomicBool,
    /// True after RM_MAP_MEMORY lent a mapping to the file.
    pub lent: AtomicBool,
    held: Held,
    rm: Arc<Rm>,
}

impl OpenFile {
    /// Makes the open file of a node that was just opened.
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

    /// The manager that answers calls on the file.
    pub fn rm(&self) -> &Arc<Rm> {
        &self.rm
    }

    /// The GPU that the file keeps open.
    pub fn held(&self) -> &Held {
        &self.held
    }

    /// The node as which the file can be mapped. The result is `None` for the nodes of UVM, which cannot be mapped.
    pub fn lent_node(&self) -> Option<LentNode> {
        match self.kind {
            Kind::Control => Some(LentNode::Control),
            Kind::Gpu => Some(LentNode::Gpu),
            Kind::Uvm | Kind::UvmTools => None,
        }
    }

    /// Ties the file to a control file. The result is `false` if it is tied to one already.
    pub fn register(&self, control: Arc<OpenFile>) -> bool {
        self.control.set(control).is_ok()
    }

    /// Whether the file is tied to a control file.
    pub fn is_registered(&self) -> bool {
        self.control.get().is_some()
    }

    /// The file whose clients are used through this one: the control file to which it is tied, or else itself.
    #[inline]
    fn owner(&self) -> &OpenFile {
        self.control.get().map_or(self, |control| control)
    }

    /// Notes that a client was allocated through the file.
    pub fn own_client(&self, client: u32) {
        self.owner().clients.lock().push(client);
    }

    /// Notes that a client was freed. The client need not be one of this file.
    pub fn disown_client(&self, client: u32) {
        self.owner().clients.lock().retain(|c| *c != client);
    }

    /// Whether a client may be used through the file.
    #[inline]
    pub fn owns_client(&self, client: u32) -> bool {
        self.owner().clients.lock().contains(&client)
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        for client in self.clients.get_mut().drain(..) {
            // The client may be freed already, through another descriptor or by a forked parent. The error is ignored,
            // because nothing is left to do then.
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
