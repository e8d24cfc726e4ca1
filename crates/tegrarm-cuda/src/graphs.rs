//! Graphs: nodes of work and what each waits for, and their execution.
//!
//! An executable graph runs its nodes one after another on a stream, in an order in which every node comes behind those that it waits for.

use crate::context::Context;
use crate::events::{self, EVENTS};
use crate::handles::Handles;
use crate::numbers::*;
use crate::result::{Answer, fail};
use crate::streams::Stream;
use crate::structures::{HostNode, KernelNode, Memcpy3d, MemsetNode};
use crate::works::{Launch, Work, give};
use parking_lot::Mutex;
use std::sync::Arc;

/// All graphs.
pub static GRAPHS: Handles<Graph> = Handles::new(10, "graph", CUDA_ERROR_INVALID_VALUE);
/// All nodes.
pub static NODES: Handles<Node> = Handles::new(11, "node of a graph", CUDA_ERROR_INVALID_VALUE);
/// All executable graphs.
pub static EXECS: Handles<Exec> = Handles::new(12, "executable graph", CUDA_ERROR_INVALID_VALUE);

/// A graph.
#[derive(Default)]
pub struct Graph {
    /// The handles of its nodes, in the order in which they were added.
    pub nodes: Mutex<Vec<usize>>,
}

/// What a node does.
#[derive(Clone)]
pub enum Deed {
    /// Nothing.
    Empty,
    /// A launch, with what the program gave.
    Kernel(KernelNode, Launch),
    /// A copy, with what the program gave.
    Copy(Option<Memcpy3d>, Work),
    /// A fill, with what the program gave.
    Fill(Option<MemsetNode>, Work),
    /// A call of the program.
    Host(HostNode),
    /// It puts an event behind the nodes before it.
    Record(usize),
    /// It waits for an event.
    Wait(usize),
    /// A whole graph: its handle.
    Child(usize),
}

/// A node.
pub struct Node {
    /// The handle of its graph.
    pub graph: usize,
    /// What it does.
    pub deed: Mutex<Deed>,
    /// The nodes that it waits for.
    pub after: Mutex<Vec<usize>>,
    /// The node of which it is a copy in a clone, or 0.
    pub original: usize,
}

/// An executable graph.
pub struct Exec {
    /// The flags that it was made with.
    pub flags: u64,
    /// The nodes in the order of their execution: the handle, what it does, and whether it is enabled.
    pub steps: Mutex<Vec<Step>>,
}

/// A step of an executable graph.
#[derive(Clone)]
pub struct Step {
    /// The handle of the node.
    pub node: usize,
    /// What it does.
    pub deed: Deed,
    /// Whether it is enabled.
    pub enabled: bool,
    /// The nodes that it waits for.
    pub after: Vec<usize>,
}

impl Deed {
    /// The number of the type in `CUgraphNodeType`.
    pub fn kind(&self) -> u32 {
        match self {
            Deed::Kernel(..) => CU_GRAPH_NODE_TYPE_KERNEL,
            Deed::Copy(..) => CU_GRAPH_NODE_TYPE_MEMCPY,
            Deed::Fill(..) => CU_GRAPH_NODE_TYPE_MEMSET,
            Deed::Host(_) => CU_GRAPH_NODE_TYPE_HOST,
            Deed::Child(_) => CU_GRAPH_NODE_TYPE_GRAPH,
            Deed::Empty => CU_GRAPH_NODE_TYPE_EMPTY,
            Deed::Wait(_) => CU_GRAPH_NODE_TYPE_WAIT_EVENT,
            Deed::Record(_) => CU_GRAPH_NODE_TYPE_EVENT_RECORD,
        }
    }

    /// Gives it to a stream.
    fn give(&self, context: &Context, stream: &Stream) -> Answer {
        match self {
            Deed::Empty => Ok(()),
            Deed::Kernel(_, launch) => give(context, stream, &Work::Launch(launch.clone())),
            Deed::Copy(_, work) | Deed::Fill(_, work) => give(context, stream, work),
            Deed::Host(host) => give(context, stream, &Work::Host { function: host.function, user: host.user }),
            Deed::Record(event) => events::record_in(context, stream, &*EVENTS.get(*event)?),
            Deed::Wait(event) => events::wait_in(context, stream, &*EVENTS.get(*event)?),
            Deed::Child(graph) => {
                for step in order(*graph)? {
                    step.deed.give(context, stream)?;
                }
                Ok(())
            }
        }
    }
}

/// Adds a node to a graph. Returns its handle.
pub fn add(graph: usize, after: Vec<usize>, deed: Deed) -> Answer<usize> {
    let found = GRAPHS.get(graph)?;
    for node in &after {
        if NODES.get(*node)?.graph != graph {
            fail!(CUDA_ERROR_INVALID_VALUE, "a dependency is a node of another graph");
        }
    }
    let node = Node { graph, deed: Mutex::new(deed), after: Mutex::new(after), original: 0 };
    let handle = NODES.add(Arc::new(node))?;
    found.nodes.lock().push(handle);
    Ok(handle)
}

/// Ends a graph with its nodes.
pub fn end(graph: usize) -> Answer {
    for node in GRAPHS.remove(graph)?.nodes.lock().drain(..) {
        if let Ok(node) = NODES.remove(node)
            && let Deed::Child(child) = *node.deed.lock()
        {
            end(child)?;
        }
    }
    Ok(())
}

/// A copy of a graph. Each node knows of which one it is a copy.
pub fn copy(graph: usize) -> Answer<usize> {
    let nodes = GRAPHS.get(graph)?.nodes.lock().clone();
    let made = GRAPHS.add(Arc::new(Graph::default()))?;
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for old in &nodes {
        let node = NODES.get(*old)?;
        let deed = match &*node.deed.lock() {
            Deed::Child(child) => Deed::Child(copy(*child)?),
            other => other.clone(),
        };
        let own = Node { graph: made, deed: Mutex::new(deed), after: Mutex::default(), original: *old };
        pairs.push((*old, NODES.add(Arc::new(own))?));
    }
    for (old, new) in &pairs {
        let after = NODES.get(*old)?.after.lock().clone();
        let new_of = |old: &usize| pairs.iter().find(|(other, _)| other == old).map(|(_, new)| *new);
        *NODES.get(*new)?.after.lock() = after.iter().filter_map(new_of).collect();
    }
    *GRAPHS.get(made)?.nodes.lock() = pairs.into_iter().map(|(_, new)| new).collect();
    Ok(made)
}

/// The nodes of a graph as steps, each behind those that it waits for.
pub fn order(graph: usize) -> Answer<Vec<Step>> {
    let nodes = GRAPHS.get(graph)?.nodes.lock().clone();
    let mut left = Vec::new();
    for handle in nodes {
        let node = NODES.get(handle)?;
        let (deed, after) = (node.deed.lock().clone(), node.after.lock().clone());
        left.push(Step { node: handle, deed, enabled: true, after });
    }
    let mut done = std::collections::HashSet::new();
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

impl Exec {
    /// Makes a graph executable. What its nodes do is copied: child graphs become steps.
    pub fn new(graph: usize, flags: u64) -> Answer<Exec> {
        Ok(Exec { flags, steps: Mutex::new(frozen(order(graph)?)?) })
    }

    /// Gives all steps to a stream.
    pub fn launch(&self, context: &Context, stream: &Stream) -> Answer {
        // Launches of one executable graph come one after another, also those of two threads.
        let steps = self.steps.lock();
        for step in steps.iter().filter(|step| step.enabled) {
            step.deed.give(context, stream)?;
        }
        Ok(())
    }

    /// Changes what a node does.
    pub fn change(&self, node: usize, deed: Deed) -> Answer {
        let mut steps = self.steps.lock();
        match steps.iter_mut().find(|step| step.node == node) {
            Some(step) if step.deed.kind() == deed.kind() => {
                step.deed = deed;
                Ok(())
            }
            _ => fail!(CUDA_ERROR_INVALID_VALUE, "the executable graph has no such node of this type"),
        }
    }
}

/// The steps, with the steps of child graphs in place of these.
fn frozen(steps: Vec<Step>) -> Answer<Vec<Step>> {
    let mut all = Vec::with_capacity(steps.len());
    for step in steps {
        match step.deed {
            Deed::Child(child) => all.extend(frozen(order(child)?)?),
            _ => all.push(step),
        }
    }
    Ok(all)
}
