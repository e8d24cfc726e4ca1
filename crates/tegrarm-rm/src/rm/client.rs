//! A client and its tree of objects.

use super::channel::ChannelObject;
use super::gpu::Gpu;
use super::handles::HandleMap;
use super::object::{Object, Tag, unknown_object};
use crate::status::{RmResult, fail};
use std::collections::BTreeSet;
use std::sync::Arc;
use tegrarm_abi::rm::status::*;
use tegrarm_lock::Mutex;

/// The client handles from which the library chooses. No object may have one of these handles.
pub const CLIENT_HANDLES: std::ops::Range<u32> = 0xc1d0_0000..0xc1e0_0000;
/// The object handles from which the library chooses. The first one is one above RM's first, and all are larger than
/// the handles that a frontend counts up from a small number: frontends compare handles to tell their own from the
/// library's.
pub const OBJECT_HANDLES: std::ops::Range<u32> = 0xcaf0_0001..0xcaf8_0000;
/// The largest number of levels of objects below a client.
const MAX_DEPTH: u32 = 6;

/// One RM client. The lock of its tree is held for look-ups and edits, never across a system call.
pub struct Client {
    /// Its handle, unique in the process.
    pub handle: u32,
    /// The GPU it works on.
    pub gpu: Arc<Gpu>,
    tree: Mutex<Tree>,
}

struct Tree {
    nodes: HandleMap<Node>,
    next_handle: u32,
    next_serial: u64,
}

struct Node {
    /// The object, or `None` while it is being made. Its handle is taken then, but look-ups do not find it.
    object: Option<Arc<Object>>,
    parent: u32,
    depends_on: Vec<u32>,
    /// The number of objects that have this one as their parent or depend on it. With 0, freeing the object needs no
    /// search.
    referrers: u32,
    /// The order of creation. An object is always made after the objects to which it refers.
    serial: u64,
    depth: u32,
}

/// A handle that is reserved for an object that is being made.
pub struct Claim {
    /// The reserved handle.
    pub handle: u32,
    serial: u64,
}

impl Client {
    /// Makes a client that has only its root object.
    pub fn new(root: Object, gpu: Arc<Gpu>) -> Client {
        let handle = root.handle;
        let node = Node {
            object: Some(Arc::new(root)),
            parent: handle,
            depends_on: Vec::new(),
            referrers: 0,
            serial: 0,
            depth: 0,
        };
        let mut nodes = HandleMap::default();
        nodes.insert(handle, node);
        Client { handle, gpu, tree: Mutex::new(Tree { nodes, next_handle: OBJECT_HANDLES.start, next_serial: 1 }) }
    }

    /// The object that has this handle.
    ///
    /// # Errors
    /// OBJECT_NOT_FOUND when the client has no such object.
    #[inline(always)]
    pub fn object(&self, handle: u32) -> RmResult<Arc<Object>> {
        match self.tree.lock().nodes.get(handle) {
            Some(Node { object: Some(object), .. }) => Ok(object.clone()),
            _ => Err(unknown_object(self.handle, handle)),
        }
    }

    /// The nearest object of kind `tag` at or above `handle`.
    ///
    /// # Errors
    /// INVALID_OBJECT_PARENT when there is no such object.
    pub fn ancestor(&self, handle: u32, tag: Tag) -> RmResult<Arc<Object>> {
        let tree = self.tree.lock();
        let mut at = handle;
        while let Some(Node { object: Some(object), parent, .. }) = tree.nodes.get(at) {
            if object.kind.tag() == tag {
                return Ok(object.clone());
            }
            if *parent == at {
                break;
            }
            at = *parent;
        }
        drop(tree);
        fail!(NV_ERR_INVALID_OBJECT_PARENT, "object {handle:#x} has no {} above it", tag.word())
    }

    /// The channels whose parent is `group`.
    pub fn channels_below(&self, group: u32) -> Vec<Arc<ChannelObject>> {
        let tree = self.tree.lock();
        let children = tree.nodes.iter().filter(|(_, node)| node.parent == group);
        children.filter_map(|(_, node)| node.object.as_ref()?.as_channel().cloned()).collect()
    }

    /// Reserves the handle `wanted`, or the next free one if `wanted` is 0.
    ///
    /// # Errors
    /// INVALID_OBJECT_HANDLE for a reserved handle, INSERT_DUPLICATE_NAME for a handle in use, INSUFFICIENT_RESOURCES
    /// when no handle is left, OBJECT_NOT_FOUND when the parent was freed meanwhile, ILLEGAL_ACTION when the tree is
    /// too deep.
    pub fn claim(&self, parent: u32, wanted: u32) -> RmResult<Claim> {
        let mut tree = self.tree.lock();
        let Some(depth) = tree.nodes.get(parent).map(|n| n.depth + 1) else {
            return Err(unknown_object(self.handle, parent));
        };
        if depth > MAX_DEPTH {
            fail!(NV_ERR_ILLEGAL_ACTION, "object {parent:#x} is {MAX_DEPTH} levels below its client: too deep");
        }
        if wanted != 0 {
            self.check_wanted(&tree, wanted)?;
        }
        let handle = if wanted != 0 { wanted } else { tree.free_handle()? };
        let serial = tree.next_serial;
        tree.next_serial += 1;
        let node = Node { object: None, parent, depends_on: Vec::new(), referrers: 0, serial, depth };
        tree.nodes.insert(handle, node);
        tree.refer(parent, 1);
        Ok(Claim { handle, serial })
    }

    fn check_wanted(&self, tree: &Tree, wanted: u32) -> RmResult<()> {
        if wanted == self.handle || CLIENT_HANDLES.contains(&wanted) {
            fail!(NV_ERR_INVALID_OBJECT_HANDLE, "handle {wanted:#x} is reserved for clients: choose another, or 0");
        }
        if tree.nodes.contains(wanted) {
            fail!(NV_ERR_INSERT_DUPLICATE_NAME, "client {:#x} already has an object {wanted:#x}", self.handle);
        }
        Ok(())
    }

    /// Enters the finished object under its handle. Look-ups find it from here on.
    ///
    /// # Errors
    /// OBJECT_NOT_FOUND when another thread has freed its parent or an object on which it depends. The object is
    /// dropped in that case.
    pub fn settle(&self, claim: &Claim, object: Object, depends_on: Vec<u32>) -> RmResult<Arc<Object>> {
        let object = Arc::new(object);
        let mut tree = self.tree.lock();
        let alive = tree.nodes.get(claim.handle).is_some_and(|n| n.serial == claim.serial);
        if !alive || depends_on.iter().any(|h| !tree.nodes.contains(*h)) {
            drop(tree);
            self.abandon(claim);
            fail!(NV_ERR_OBJECT_NOT_FOUND, "object {:#x}: its parent was freed while it was made", claim.handle);
        }
        for &handle in &depends_on {
            tree.refer(handle, 1);
        }
        let node = tree.nodes.get_mut(claim.handle).expect("checked above");
        node.object = Some(object.clone());
        node.depends_on = depends_on;
        Ok(object)
    }

    /// Gives a reserved handle back.
    pub fn abandon(&self, claim: &Claim) {
        let mut tree = self.tree.lock();
        if tree.nodes.get(claim.handle).is_some_and(|n| n.serial == claim.serial) {
            tree.remove(claim.handle);
        }
    }

    /// Takes an object and everything that refers to it out of the tree. The result is in the order in which the
    /// objects must be dropped: channels first, then the object that was made last, and so on. It is empty when there
    /// is no such object.
    pub fn take(&self, handle: u32) -> Vec<Arc<Object>> {
        let mut tree = self.tree.lock();
        let mut doomed = tree.closure(handle);
        let is_channel = |n: &Node| n.object.as_ref().is_some_and(|o| o.as_channel().is_some());
        doomed.sort_by_key(|h| {
            let node = tree.nodes.get(*h);
            (!node.is_some_and(is_channel), std::cmp::Reverse(node.map(|n| n.serial)))
        });
        doomed.iter().filter_map(|h| tree.remove(*h)).collect()
    }

    /// The number of objects, the client itself included.
    pub fn object_count(&self) -> usize {
        self.tree.lock().nodes.len()
    }
}

impl Tree {
    fn free_handle(&mut self) -> RmResult<u32> {
        for _ in OBJECT_HANDLES {
            let handle = self.next_handle;
            self.next_handle = if handle + 1 < OBJECT_HANDLES.end { handle + 1 } else { OBJECT_HANDLES.start };
            if !self.nodes.contains(handle) {
                return Ok(handle);
            }
        }
        fail!(NV_ERR_INSUFFICIENT_RESOURCES, "all {} object handles are in use: free some", OBJECT_HANDLES.len())
    }

    fn refer(&mut self, handle: u32, by: i32) {
        if let Some(node) = self.nodes.get_mut(handle) {
            node.referrers = node.referrers.wrapping_add_signed(by);
        }
    }

    fn remove(&mut self, handle: u32) -> Option<Arc<Object>> {
        let node = self.nodes.remove(handle)?;
        self.refer(node.parent, -1);
        for on in node.depends_on {
            self.refer(on, -1);
        }
        node.object
    }

    /// `handle` with its children and dependants, their children and dependants, and so on.
    fn closure(&self, handle: u32) -> Vec<u32> {
        let mut found: Vec<u32> = self.nodes.contains(handle).then_some(handle).into_iter().collect();
        let mut seen = BTreeSet::from([handle]);
        let mut at = 0;
        while let Some(&victim) = found.get(at) {
            at += 1;
            if self.nodes.get(victim).is_none_or(|n| n.referrers == 0) {
                continue;
            }
            for (other, node) in self.nodes.iter() {
                let refers = node.parent == victim || node.depends_on.contains(&victim);
                if refers && seen.insert(other) {
                    found.push(other);
                }
            }
        }
        found
    }
}
