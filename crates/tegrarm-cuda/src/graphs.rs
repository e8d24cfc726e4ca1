//! Graphs: nodes of work, and what each waits for.

use crate::allocations::Kind;
use crate::functions::Launch;
use crate::handles::Handles;
use crate::numbers::*;
use crate::result::{Answer, fail};
use crate::shapes::{End, Fill, Shape};
use crate::structures::{HostNode, Memcpy3d, MemsetNode};
use crate::user_objects::AllKept;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tegrarm_lock::Mutex;

/// All graphs.
pub static GRAPHS: Handles<Graph> = Handles::new(10, "graph", CUDA_ERROR_INVALID_VALUE);
/// All nodes.
pub static NODES: Handles<Node> = Handles::new(11, "node of a graph", CUDA_ERROR_INVALID_VALUE);

/// A number for a graph or an executable graph, which no other one has.
pub fn next_id() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A graph.
pub struct Graph {
    /// The number that cuGraphGetId gives.
    pub id: u32,
    /// The handles of its nodes, in the order in which they were added.
    pub nodes: Mutex<Vec<usize>>,
    /// The user objects that it keeps.
    pub kept: Mutex<AllKept>,
    /// Whether it belongs to a node of another graph.
    child: bool,
    /// How many nodes it has had.
    count: AtomicU32,
}

/// What a node does.
#[derive(Clone)]
pub enum Operation {
    /// Nothing.
    Empty,
    /// A launch.
    Kernel(Arc<Launch>),
    /// A copy: as the program described it, and what it means.
    Copy(Box<(Memcpy3d, Shape)>),
    /// A fill: as the program described it, and what it means.
    Fill(MemsetNode, Fill),
    /// A call of the program.
    Host(HostNode),
    /// It puts an event behind the nodes before it.
    Record(usize),
    /// It waits for an event.
    Wait(usize),
    /// A whole graph, which belongs to the node: its handle.
    Child(usize),
}

/// A node.
pub struct Node {
    /// The handle of its graph.
    pub graph: usize,
    /// The number that cuGraphNodeGetLocalId gives.
    pub id: u32,
    /// What it does.
    pub operation: Mutex<Operation>,
    /// The nodes that it waits for.
    pub after: Mutex<Vec<usize>>,
    /// The node of which it is a copy in a clone, or 0.
    pub original: usize,
}

/// A node as an executable graph has it.
#[derive(Clone)]
pub struct Step {
    /// The handle of the node.
    pub node: usize,
    /// What it does.
    pub operation: Operation,
    /// Whether it is enabled.
    pub enabled: bool,
    /// The nodes that it waits for.
    pub after: Vec<usize>,
    /// The steps of a child graph.
    pub inside: Vec<Step>,
}

impl Operation {
    /// The number of the type in `CUgraphNodeType`.
    pub fn kind(&self) -> u32 {
        match self {
            Operation::Kernel(_) => CU_GRAPH_NODE_TYPE_KERNEL,
            Operation::Copy(_) => CU_GRAPH_NODE_TYPE_MEMCPY,
            Operation::Fill(..) => CU_GRAPH_NODE_TYPE_MEMSET,
            Operation::Host(_) => CU_GRAPH_NODE_TYPE_HOST,
            Operation::Child(_) => CU_GRAPH_NODE_TYPE_GRAPH,
            Operation::Empty => CU_GRAPH_NODE_TYPE_EMPTY,
            Operation::Wait(_) => CU_GRAPH_NODE_TYPE_WAIT_EVENT,
            Operation::Record(_) => CU_GRAPH_NODE_TYPE_EVENT_RECORD,
        }
    }

    /// The same with the attributes of the operation that it replaces: what describes a launch for a node has none.
    pub fn in_place_of(self, old: &Operation) -> Answer<Operation> {
        match (self, old) {
            (Operation::Kernel(new), Operation::Kernel(old)) => {
                Ok(Operation::Kernel(Arc::new(new.with(old.attributes.clone())?)))
            }
            (other, _) => Ok(other),
        }
    }

    /// A copy of a stream, which a capture keeps.
    pub fn copy(shape: &Shape) -> Operation {
        let side = |end: &End| match &end.memory {
            Some((memory, _)) if matches!(memory.kind, Kind::Array(_)) => (CU_MEMORYTYPE_ARRAY, 0, 0),
            Some((memory, offset)) if !memory.kind.is_host() => (CU_MEMORYTYPE_DEVICE, 0, memory.address + offset),
            _ => (CU_MEMORYTYPE_HOST, end.pointer as u64, 0),
        };
        let ((src_type, src_host, src_device), (dst_type, dst_host, dst_device)) = (side(&shape.from), side(&shape.to));
        let ((src_array, src), (dst_array, dst)) = (in_array(&shape.from), in_array(&shape.to));
        let described = Memcpy3d {
            src_x: src[0],
            src_y: src[1],
            src_z: src[2],
            src_lod: 0,
            src_type,
            src_host,
            src_device,
            src_array,
            src_context: 0,
            src_pitch: shape.from.pitch,
            src_height: shape.from.height,
            dst_x: dst[0],
            dst_y: dst[1],
            dst_z: dst[2],
            dst_lod: 0,
            dst_type,
            dst_host,
            dst_device,
            dst_array,
            dst_context: 0,
            dst_pitch: shape.to.pitch,
            dst_height: shape.to.height,
            width: shape.width,
            height: shape.rows,
            depth: shape.layers,
        };
        Operation::Copy(Box::new((described, shape.clone())))
    }

    /// A fill of a stream, which a capture keeps.
    pub fn fill(fill: &Fill) -> Operation {
        let Fill { to: (memory, offset), pitch, width, rows, value, size } = fill;
        let (address, value, element) = (memory.address + offset, *value, *size as u32);
        Operation::Fill(
            MemsetNode { address, pitch: *pitch, value, element, width: *width, height: *rows },
            fill.clone(),
        )
    }
}

/// The array of an end of a copy, or 0, and the position there.
fn in_array(end: &End) -> (u64, [usize; 3]) {
    match end.memory.as_ref().map(|(memory, offset)| (memory.kind, *offset as usize)) {
        Some((Kind::Array(handle), offset)) => {
            let (row, x) = (offset / end.pitch, offset % end.pitch);
            (handle as u64, [x, row % end.height, row / end.height])
        }
        _ => (0, [0; 3]),
    }
}

/// Makes an empty graph. Returns its handle.
pub fn make(child: bool) -> Answer<usize> {
    let (id, nodes, kept, count) = (next_id(), Mutex::default(), Mutex::default(), AtomicU32::new(0));
    GRAPHS.add(Arc::new(Graph { id, nodes, kept, child, count }))
}

/// Adds a node to a graph. Returns its handle.
pub fn add(graph: usize, after: Vec<usize>, operation: Operation) -> Answer<usize> {
    add_copy(graph, after, operation, 0)
}

fn add_copy(graph: usize, mut after: Vec<usize>, operation: Operation, original: usize) -> Answer<usize> {
    let found = GRAPHS.get(graph)?;
    for node in &after {
        of_graph(graph, *node)?;
    }
    let given = after.len();
    after.sort_unstable();
    after.dedup();
    if after.len() < given {
        fail!(CUDA_ERROR_INVALID_VALUE, "a node is named twice among the dependencies");
    }
    let id = found.count.fetch_add(1, Ordering::Relaxed);
    let node = Node { graph, id, operation: Mutex::new(operation), after: Mutex::new(after), original };
    let handle = NODES.add(Arc::new(node))?;
    found.nodes.lock().push(handle);
    Ok(handle)
}

/// The node of a handle, which has to belong to this graph.
pub fn of_graph(graph: usize, node: usize) -> Answer<Arc<Node>> {
    let found = NODES.get(node)?;
    if found.graph != graph {
        fail!(CUDA_ERROR_INVALID_VALUE, "{node:#x} is a node of another graph");
    }
    Ok(found)
}

/// Ends a graph of the program with its nodes.
pub fn end(graph: usize) -> Answer {
    if GRAPHS.get(graph)?.child {
        fail!(CUDA_ERROR_INVALID_VALUE, "{graph:#x} is a child graph, which ends with its node");
    }
    end_any(graph)
}

fn end_any(graph: usize) -> Answer {
    let nodes = std::mem::take(&mut *GRAPHS.remove(graph)?.nodes.lock());
    nodes.into_iter().try_for_each(end_node)
}

fn end_node(node: usize) -> Answer {
    let child = match *NODES.remove(node)?.operation.lock() {
        Operation::Child(child) => child,
        _ => return Ok(()),
    };
    end_any(child)
}

/// Takes a node out of its graph, and ends it.
pub fn remove(node: usize) -> Answer {
    let graph = GRAPHS.get(NODES.get(node)?.graph)?;
    graph.nodes.lock().retain(|other| *other != node);
    let others = graph.nodes.lock().clone();
    for other in others {
        NODES.get(other)?.after.lock().retain(|before| *before != node);
    }
    end_node(node)
}

/// Gives a node something else to do, of the same type.
pub fn change(node: usize, operation: Operation) -> Answer {
    let found = NODES.get(node)?;
    let mut place = found.operation.lock();
    if place.kind() != operation.kind() {
        fail!(
            CUDA_ERROR_INVALID_VALUE,
            "the node has the type {}, and the parameters have {}",
            place.kind(),
            operation.kind()
        );
    }
    let before = std::mem::replace(&mut *place, operation);
    drop(place);
    if let Operation::Child(child) = before { end_any(child) } else { Ok(()) }
}

/// Gives a node other parameters. The attributes of a launch stay.
pub fn set_parameters(node: usize, operation: Operation) -> Answer {
    let operation = operation.in_place_of(&NODES.get(node)?.operation.lock())?;
    change(node, operation)
}

/// A copy of a graph. Each node knows of which one it is a copy.
pub fn copy(graph: usize, child: bool) -> Answer<usize> {
    let (old, made) = (GRAPHS.get(graph)?, make(child)?);
    GRAPHS.get(made)?.kept.lock().clone_from(&*old.kept.lock());
    fill(made, order(graph)?)?;
    Ok(made)
}

/// A child graph of the steps of an executable graph.
pub fn of_steps(steps: &[Step]) -> Answer<usize> {
    let made = make(true)?;
    fill(made, steps.to_vec())?;
    Ok(made)
}

/// Adds a node for each step to a graph. The steps are in an order in which each is behind those that it waits for.
fn fill(graph: usize, steps: Vec<Step>) -> Answer {
    let mut copies = HashMap::new();
    for step in steps {
        let after = step.after.iter().filter_map(|old| copies.get(old).copied()).collect();
        let operation = match step.operation {
            Operation::Child(_) => Operation::Child(of_steps(&step.inside)?),
            // A node that is disabled does nothing.
            _ if !step.enabled => Operation::Empty,
            other => other,
        };
        copies.insert(step.node, add_copy(graph, after, operation, step.node)?);
    }
    Ok(())
}

/// The nodes of a graph as steps, each behind those that it waits for.
pub fn order(graph: usize) -> Answer<Vec<Step>> {
    let nodes = GRAPHS.get(graph)?.nodes.lock().clone();
    let mut left = Vec::new();
    for handle in nodes {
        let node = NODES.get(handle)?;
        let (operation, after) = (node.operation.lock().clone(), node.after.lock().clone());
        let inside = if let Operation::Child(child) = operation { order(child)? } else { Vec::new() };
        left.push(Step { node: handle, operation, enabled: true, after, inside });
    }
    let mut done = HashSet::new();
    let mut steps = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let before = left.len();
        let mut later = Vec::new();
        for step in left {
            if step.after.iter().all(|node| done.contains(node)) {
                done.insert(step.node);
                steps.push(step);
            } else {
                later.push(step);
            }
        }
        left = later;
        if left.len() == before {
            fail!(CUDA_ERROR_INVALID_VALUE, "the graph has a circle: {before} nodes wait for each other");
        }
    }
    Ok(steps)
}

/// The nodes for which a node waits, and those for which these wait, and so on.
pub fn all_before(nodes: &[usize]) -> HashSet<usize> {
    let (mut found, mut left) = (HashSet::new(), nodes.to_vec());
    while let Some(node) = left.pop() {
        if found.insert(node)
            && let Some(node) = NODES.find(node)
        {
            left.extend(node.after.lock().iter());
        }
    }
    found
}
