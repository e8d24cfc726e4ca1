//! What is asked of graphs and nodes: which nodes and edges there are, clones, numbers, and the picture.

use crate::graphs::{self, GRAPHS, NODES, Operation};
use crate::numbers::*;
use crate::pointers::Ptr;
use crate::result::{Answer, fail};
use std::ffi::c_void;
use std::fmt::Write;

/// Fails unless the data of edges says nothing special: CUgraphEdgeData has eight bytes.
pub fn plain(edges: Ptr<c_void>, count: usize) -> Answer {
    if !edges.is_null() && edges.cast::<u64>().list(count, "dependencyData")?.iter().any(|edge| *edge != 0) {
        fail!(CUDA_ERROR_NOT_SUPPORTED, "programmatic dependencies came with compute capability 9.0");
    }
    Ok(())
}

/// Gives handles as CUDA's functions do: the number alone without a place for them, and otherwise as many as there is room for.
fn give(handles: &[usize], out: Ptr<usize>, count: Ptr<usize>) -> Answer {
    if out.is_null() {
        return count.set(handles.len(), "the number of nodes");
    }
    let room = count.get("the number of nodes")?;
    for at in 0..room {
        out.set_at(at, handles.get(at).copied().unwrap_or(0));
    }
    count.set(room.min(handles.len()), "the number of nodes")
}

/// The data of edges that have nothing special.
fn give_edges(edges: Ptr<c_void>, count: Ptr<usize>) -> Answer {
    if !edges.is_null() {
        for at in 0..count.get("the number of edges")? {
            edges.cast::<u64>().set_at(at, 0);
        }
    }
    Ok(())
}

/// The nodes that wait for a node.
fn dependents(node: usize) -> Answer<Vec<usize>> {
    let nodes = GRAPHS.get(NODES.get(node)?.graph)?.nodes.lock().clone();
    let mut found = Vec::new();
    for other in nodes {
        if NODES.get(other)?.after.lock().contains(&node) {
            found.push(other);
        }
    }
    Ok(found)
}

/// The edges: from where, and to where.
fn edges(graph: usize) -> Answer<(Vec<usize>, Vec<usize>)> {
    let nodes = GRAPHS.get(graph)?.nodes.lock().clone();
    let (mut from, mut to) = (Vec::new(), Vec::new());
    for node in nodes {
        for before in NODES.get(node)?.after.lock().iter() {
            from.push(*before);
            to.push(node);
        }
    }
    Ok((from, to))
}

/// What a node is called in the picture.
fn label(operation: &Operation) -> String {
    match operation {
        Operation::Empty => "EMPTY".to_owned(),
        Operation::Kernel(launch) => {
            let (grid, block) = (launch.size.grid, launch.size.block);
            format!("{}\\ngrid {grid:?}, block {block:?}", launch.function.name.to_string_lossy())
        }
        Operation::Copy(copy) => format!("MEMCPY\\n{} bytes", copy.1.bytes()),
        Operation::Fill(given, _) => format!("MEMSET\\n{} x {} at {:#x}", given.width, given.height, given.address),
        Operation::Host(host) => format!("HOST\\n{:#x}({:#x})", host.function, host.user),
        Operation::Record(event) => format!("EVENT_RECORD\\n{event:#x}"),
        Operation::Wait(event) => format!("WAIT_EVENT\\n{event:#x}"),
        Operation::Child(graph) => format!("GRAPH\\n{graph:#x}"),
    }
}

/// A graph, and below it its child graphs, in the language of Graphviz.
fn picture(graph: usize, text: &mut String) -> Answer {
    let (found, mut children) = (GRAPHS.get(graph)?, Vec::new());
    let nodes = found.nodes.lock().clone();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "subgraph cluster_{} {{\nlabel=\"graph_{}\"", found.id, found.id);
    for node in &nodes {
        let node = NODES.get(*node)?;
        let operation = node.operation.lock().clone();
        let label = label(&operation).replace('"', "'");
        let _ = writeln!(text, "\"graph_{}_node_{}\" [label=\"{}\\n{label}\"]", found.id, node.id, node.id);
        if let Operation::Child(child) = operation {
            children.push(child);
        }
    }
    let (from, to) = edges(graph)?;
    for (from, to) in from.iter().zip(&to) {
        let (from, to) = (NODES.get(*from)?.id, NODES.get(*to)?.id);
        let _ = writeln!(text, "\"graph_{}_node_{from}\" -> \"graph_{}_node_{to}\"", found.id, found.id);
    }
    text.push_str("}\n");
    children.into_iter().try_for_each(|child| picture(child, text))
}

pub mod rows {
    //! The functions that make, end and describe graphs.

    use super::*;
    use std::ffi::c_char;

    pub fn cuGraphCreate(graph: Ptr<usize>, flags: u32) -> Answer {
        graph.present("phGraph")?;
        if flags != 0 {
            fail!(CUDA_ERROR_INVALID_VALUE, "the flags {flags:#x} of a graph");
        }
        graph.set(graphs::make(false)?, "phGraph")
    }

    pub fn cuGraphDestroy(graph: usize) -> Answer {
        graphs::end(graph)
    }

    pub fn cuGraphRetainUserObject(graph: usize, object: usize, count: u32, flags: u32) -> Answer {
        if flags & !CU_GRAPH_USER_OBJECT_MOVE != 0 {
            fail!(CUDA_ERROR_INVALID_VALUE, "the flags {flags:#x}");
        }
        GRAPHS.get(graph)?.kept.lock().add(object, count, flags & CU_GRAPH_USER_OBJECT_MOVE != 0)
    }

    pub fn cuGraphReleaseUserObject(graph: usize, object: usize, count: u32) -> Answer {
        let graph = GRAPHS.get(graph)?;
        let ended = graph.kept.lock().remove(object, count)?;
        drop(ended);
        Ok(())
    }

    pub fn cuGraphDestroyNode(node: usize) -> Answer {
        graphs::remove(node)
    }

    pub fn cuGraphClone(clone: Ptr<usize>, graph: usize) -> Answer {
        clone.present("phGraphClone")?;
        clone.set(graphs::copy(graph, false)?, "phGraphClone")
    }

    pub fn cuGraphNodeFindInClone(found: Ptr<usize>, original: usize, clone: usize) -> Answer {
        found.present("phNode")?;
        let nodes = GRAPHS.get(clone)?.nodes.lock().clone();
        for node in nodes {
            if NODES.get(node)?.original == original {
                return found.set(node, "phNode");
            }
        }
        fail!(CUDA_ERROR_INVALID_VALUE, "the graph has no copy of the node {original:#x}")
    }

    pub fn cuGraphNodeGetType(node: usize, kind: Ptr<u32>) -> Answer {
        kind.set(NODES.get(node)?.operation.lock().kind(), "type")
    }

    pub fn cuGraphGetNodes(graph: usize, out: Ptr<usize>, count: Ptr<usize>) -> Answer {
        let nodes = GRAPHS.get(graph)?.nodes.lock().clone();
        give(&nodes, out, count)
    }

    pub fn cuGraphGetRootNodes(graph: usize, out: Ptr<usize>, count: Ptr<usize>) -> Answer {
        let mut nodes = GRAPHS.get(graph)?.nodes.lock().clone();
        nodes.retain(|node| NODES.find(*node).is_some_and(|node| node.after.lock().is_empty()));
        give(&nodes, out, count)
    }

    pub fn cuGraphGetEdges(graph: usize, from: Ptr<usize>, to: Ptr<usize>, count: Ptr<usize>) -> Answer {
        cuGraphGetEdges_v2(graph, from, to, crate::pointers::at(0), count)
    }

    pub fn cuGraphGetEdges_v2(
        graph: usize,
        from: Ptr<usize>,
        to: Ptr<usize>,
        data: Ptr<c_void>,
        count: Ptr<usize>,
    ) -> Answer {
        if from.is_null() != to.is_null() {
            fail!(CUDA_ERROR_INVALID_VALUE, "one of from and to is NULL");
        }
        let (first, last) = edges(graph)?;
        if !from.is_null() {
            let room = count.get("numEdges")?;
            give(&first, from, count)?;
            give_edges(data, count)?;
            count.set(room, "numEdges")?;
        }
        give(&last, to, count)
    }

    pub fn cuGraphNodeGetDependencies(node: usize, out: Ptr<usize>, count: Ptr<usize>) -> Answer {
        let after = NODES.get(node)?.after.lock().clone();
        give(&after, out, count)
    }

    pub fn cuGraphNodeGetDependencies_v2(node: usize, out: Ptr<usize>, data: Ptr<c_void>, count: Ptr<usize>) -> Answer {
        cuGraphNodeGetDependencies(node, out, count)?;
        give_edges(data, count)
    }

    pub fn cuGraphNodeGetDependentNodes(node: usize, out: Ptr<usize>, count: Ptr<usize>) -> Answer {
        give(&dependents(node)?, out, count)
    }

    pub fn cuGraphNodeGetDependentNodes_v2(
        node: usize,
        out: Ptr<usize>,
        data: Ptr<c_void>,
        count: Ptr<usize>,
    ) -> Answer {
        cuGraphNodeGetDependentNodes(node, out, count)?;
        give_edges(data, count)
    }

    /// The edges that two lists of nodes describe, each from a node to the node at the same place of the other list.
    fn listed(from: Ptr<usize>, to: Ptr<usize>, count: usize) -> Answer<Vec<(usize, usize)>> {
        Ok(from.list(count, "from")?.into_iter().zip(to.list(count, "to")?).collect())
    }

    pub fn cuGraphAddDependencies(graph: usize, from: Ptr<usize>, to: Ptr<usize>, count: usize) -> Answer {
        let pairs = listed(from, to, count)?;
        for (from, to) in &pairs {
            graphs::of_graph(graph, *from)?;
            if from == to || graphs::of_graph(graph, *to)?.after.lock().contains(from) {
                fail!(CUDA_ERROR_INVALID_VALUE, "the edge from {from:#x} to {to:#x} exists, or is a circle");
            }
        }
        for (from, to) in pairs {
            graphs::of_graph(graph, to)?.after.lock().push(from);
        }
        Ok(())
    }

    pub fn cuGraphAddDependencies_v2(
        graph: usize,
        from: Ptr<usize>,
        to: Ptr<usize>,
        data: Ptr<c_void>,
        count: usize,
    ) -> Answer {
        plain(data, count)?;
        cuGraphAddDependencies(graph, from, to, count)
    }

    pub fn cuGraphRemoveDependencies(graph: usize, from: Ptr<usize>, to: Ptr<usize>, count: usize) -> Answer {
        let pairs = listed(from, to, count)?;
        for (from, to) in &pairs {
            if !graphs::of_graph(graph, *to)?.after.lock().contains(from) {
                fail!(CUDA_ERROR_INVALID_VALUE, "there is no edge from {from:#x} to {to:#x}");
            }
        }
        for (from, to) in pairs {
            graphs::of_graph(graph, to)?.after.lock().retain(|node| *node != from);
        }
        Ok(())
    }

    pub fn cuGraphRemoveDependencies_v2(
        graph: usize,
        from: Ptr<usize>,
        to: Ptr<usize>,
        data: Ptr<c_void>,
        count: usize,
    ) -> Answer {
        plain(data, count)?;
        cuGraphRemoveDependencies(graph, from, to, count)
    }

    pub fn cuGraphGetId(graph: usize, id: Ptr<u32>) -> Answer {
        id.set(GRAPHS.get(graph)?.id, "graphId")
    }

    pub fn cuGraphNodeGetLocalId(node: usize, id: Ptr<u32>) -> Answer {
        id.set(NODES.get(node)?.id, "nodeId")
    }

    pub fn cuGraphNodeGetToolsId(node: usize, id: Ptr<u64>) -> Answer {
        let node = NODES.get(node)?;
        id.set(u64::from(GRAPHS.get(node.graph)?.id) << 32 | u64::from(node.id), "toolsNodeId")
    }

    pub fn cuGraphNodeGetContainingGraph(node: usize, graph: Ptr<usize>) -> Answer {
        graph.set(NODES.get(node)?.graph, "phGraph")
    }

    /// Every flag asks for more text. The picture always has all of it.
    pub fn cuGraphDebugDotPrint(graph: usize, path: Ptr<c_char>, _flags: u32) -> Answer {
        let path = path.text("path")?;
        let mut text = "digraph dot {\n".to_owned();
        picture(graph, &mut text)?;
        text.push_str("}\n");
        if let Err(error) = std::fs::write(&path, text) {
            fail!(CUDA_ERROR_OPERATING_SYSTEM, "writing {path}: {error}");
        }
        Ok(())
    }
}
