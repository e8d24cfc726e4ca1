//! The parameters of nodes, as programs write and read them.

use crate::copies::shape_of;
use crate::events::EVENTS;
use crate::fills;
use crate::functions::{FUNCTIONS, Launch};
use crate::graphs::{self, NODES, Operation};
use crate::libraries::function;
use crate::machine::Size;
use crate::numbers::*;
use crate::pointers::{Ptr, at};
use crate::result::{Answer, fail};
use crate::structures::{HostNode, KernelNode, KernelNode2, Memcpy3d, MemcpyNode, MemsetNode, NodeParameters};
use std::ffi::c_void;
use std::sync::Arc;

/// A launch. `other` is the kernel that is launched if the function is NULL.
fn kernel(given: &KernelNode, other: usize) -> Answer<Operation> {
    let handle = if given.function == 0 { other } else { given.function };
    let (grid, block, shared) = (given.grid, given.block, given.shared);
    let size = Size { grid, block, shared, cooperative: false };
    Ok(Operation::Kernel(Arc::new(Launch::keep(handle, function(handle)?, size, at(given.params), at(given.extra))?)))
}

fn kernel_of(given: Ptr<c_void>) -> Answer<Operation> {
    kernel(&given.cast::<KernelNode>().get("nodeParams")?, 0)
}

fn kernel_of_2(given: Ptr<c_void>) -> Answer<Operation> {
    let given = given.cast::<KernelNode2>().get("nodeParams")?;
    kernel(&first(&given), given.kernel)
}

fn first(given: &KernelNode2) -> KernelNode {
    let KernelNode2 { function, grid, block, shared, params, extra, .. } = *given;
    KernelNode { function, grid, block, shared, params, extra }
}

/// A copy.
fn copy(given: &Memcpy3d) -> Answer<Operation> {
    Ok(Operation::Copy(Box::new((*given, shape_of(given)?))))
}

fn copy_of(given: Ptr<c_void>) -> Answer<Operation> {
    copy(&given.cast::<Memcpy3d>().get("copyParams")?)
}

/// A fill.
fn fill(given: &MemsetNode) -> Answer<Operation> {
    if !matches!(given.element, 1 | 2 | 4) || given.width == 0 || given.height == 0 {
        fail!(
            CUDA_ERROR_INVALID_VALUE,
            "{} rows of {} values of {} bytes: 1, 2 or 4 can be",
            given.height,
            given.width,
            given.element
        );
    }
    let size = given.element as usize;
    let made = fills::described(given.address, given.pitch, given.value, size, given.width, given.height)?;
    Ok(Operation::Fill(*given, made))
}

fn fill_of(given: Ptr<c_void>) -> Answer<Operation> {
    fill(&given.cast::<MemsetNode>().get("memsetParams")?)
}

fn host(given: &HostNode) -> Answer<Operation> {
    if given.function == 0 {
        fail!(CUDA_ERROR_INVALID_VALUE, "fn is NULL");
    }
    Ok(Operation::Host(*given))
}

fn host_of(given: Ptr<c_void>) -> Answer<Operation> {
    host(&given.cast::<HostNode>().get("nodeParams")?)
}

fn event(handle: usize, operation: fn(usize) -> Operation) -> Answer<Operation> {
    EVENTS.get(handle)?;
    Ok(operation(handle))
}

/// A graph of the program as a child of a node, which gets a copy of it.
fn child(graph: usize) -> Answer<Operation> {
    Ok(Operation::Child(graphs::copy(graph, true)?))
}

/// What `CUgraphNodeParams` describes.
fn any(given: Ptr<c_void>) -> Answer<Operation> {
    let given = given.cast::<NodeParameters>();
    let kind = given.cast::<u32>().get("nodeParams")?;
    let all = given.get("nodeParams")?;
    if all.reserved0 != [0; 3] || all.reserved2 != 0 {
        fail!(CUDA_ERROR_INVALID_VALUE, "reserved fields of the parameters of a node are not 0");
    }
    let inside: Ptr<c_void> = at(all.union.as_ptr() as usize);
    match kind {
        CU_GRAPH_NODE_TYPE_KERNEL => kernel_of_2(inside),
        CU_GRAPH_NODE_TYPE_MEMCPY => copy(&inside.cast::<MemcpyNode>().get("nodeParams")?.copy),
        CU_GRAPH_NODE_TYPE_MEMSET => fill_of(inside),
        CU_GRAPH_NODE_TYPE_HOST => host_of(inside),
        CU_GRAPH_NODE_TYPE_GRAPH if all.union[1] as u32 != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE => {
            fail!(
                CUDA_ERROR_NOT_SUPPORTED,
                "a child graph that moves to its node: use CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE"
            )
        }
        CU_GRAPH_NODE_TYPE_GRAPH => child(all.union[0] as usize),
        CU_GRAPH_NODE_TYPE_EMPTY => Ok(Operation::Empty),
        CU_GRAPH_NODE_TYPE_WAIT_EVENT => event(all.union[0] as usize, Operation::Wait),
        CU_GRAPH_NODE_TYPE_EVENT_RECORD => event(all.union[0] as usize, Operation::Record),
        other if other < CU_GRAPH_NODE_TYPE_RESERVED_16 => fail!(
            CUDA_ERROR_NOT_SUPPORTED,
            "a node of the type {other}: memory, semaphores, conditions and batches are refused"
        ),
        other => fail!(CUDA_ERROR_INVALID_VALUE, "the type {other} of a node"),
    }
}

/// Writes what a node does as `CUgraphNodeParams`.
fn write_any(operation: &Operation, out: Ptr<c_void>) -> Answer {
    let mut all = NodeParameters { kind: operation.kind(), reserved0: [0; 3], union: [0; 29], reserved2: 0 };
    let inside: Ptr<c_void> = at(all.union.as_mut_ptr() as usize);
    match operation {
        Operation::Kernel(launch) => inside.cast::<KernelNode2>().set(written(launch), "nodeParams")?,
        Operation::Copy(copy) => {
            let node = MemcpyNode { flags: 0, reserved: 0, context: 0, copy: copy.0 };
            inside.cast::<MemcpyNode>().set(node, "nodeParams")?;
        }
        Operation::Fill(given, _) => inside.cast::<MemsetNode>().set(*given, "nodeParams")?,
        Operation::Host(given) => inside.cast::<HostNode>().set(*given, "nodeParams")?,
        Operation::Child(handle) | Operation::Wait(handle) | Operation::Record(handle) => all.union[0] = *handle as u64,
        Operation::Empty => {}
    }
    out.cast::<NodeParameters>().set(all, "nodeParams")
}

/// A launch as the program reads it. The values of the parameters are those that the node keeps.
fn written(launch: &Launch) -> KernelNode2 {
    let Size { grid, block, shared, .. } = launch.size;
    let params = launch.addresses.as_ptr() as usize;
    let is_kernel = FUNCTIONS.find(launch.handle).is_none();
    let (function, kernel) = if is_kernel { (0, launch.handle) } else { (launch.handle, 0) };
    KernelNode2 { function, grid, block, shared, params, extra: 0, kernel, context: 0 }
}

pub mod rows {
    //! The functions of nodes, of graphs and of executable graphs.

    use super::*;
    use crate::execs::EXECS;
    use crate::launches::{EVENTS_OF_LAUNCHES, attributes};
    use crate::structures::{AttributeValue, LaunchAttribute};
    use crate::topology::plain;

    /// Adds a node.
    fn add(out: Ptr<usize>, graph: usize, after: Ptr<usize>, count: usize, operation: Answer<Operation>) -> Answer {
        out.present("phGraphNode")?;
        graphs::GRAPHS.get(graph)?;
        out.set(graphs::add(graph, after.list(count, "dependencies")?, operation?)?, "phGraphNode")
    }

    /// The functions of one type of node: to add one, to change it in a graph, and in an executable one.
    macro_rules! nodes {
        ($add:ident, $set:ident, $set_exec:ident, $read:ident) => {
            pub fn $add(out: Ptr<usize>, graph: usize, after: Ptr<usize>, count: usize, given: Ptr<c_void>) -> Answer {
                add(out, graph, after, count, $read(given))
            }

            pub fn $set(node: usize, given: Ptr<c_void>) -> Answer {
                graphs::set_parameters(node, $read(given)?)
            }

            pub fn $set_exec(exec: usize, node: usize, given: Ptr<c_void>) -> Answer {
                EXECS.get(exec)?.change(node, $read(given)?)
            }
        };
    }

    nodes!(cuGraphAddKernelNode, cuGraphKernelNodeSetParams, cuGraphExecKernelNodeSetParams, kernel_of);
    nodes!(cuGraphAddKernelNode_v2, cuGraphKernelNodeSetParams_v2, cuGraphExecKernelNodeSetParams_v2, kernel_of_2);
    nodes!(cuGraphAddHostNode, cuGraphHostNodeSetParams, cuGraphExecHostNodeSetParams, host_of);
    nodes!(cuGraphAddNode, cuGraphNodeSetParams, cuGraphExecNodeSetParams, any);

    pub fn cuGraphAddNode_v2(
        out: Ptr<usize>,
        graph: usize,
        after: Ptr<usize>,
        edges: Ptr<c_void>,
        count: usize,
        given: Ptr<c_void>,
    ) -> Answer {
        plain(edges, count)?;
        cuGraphAddNode(out, graph, after, count, given)
    }

    /// CUDA 13.4 gave some structures more fields, which are of types that are refused.
    pub use cuGraphAddNode_v2 as cuGraphAddNode_v3;

    pub fn cuGraphAddEmptyNode(out: Ptr<usize>, graph: usize, after: Ptr<usize>, count: usize) -> Answer {
        add(out, graph, after, count, Ok(Operation::Empty))
    }

    /// The same for a type of node whose functions name a context.
    macro_rules! nodes_in_context {
        ($add:ident, $set:ident, $set_exec:ident, $read:ident) => {
            pub fn $add(
                out: Ptr<usize>,
                graph: usize,
                after: Ptr<usize>,
                count: usize,
                given: Ptr<c_void>,
                context: usize,
            ) -> Answer {
                crate::context::context(context)?;
                add(out, graph, after, count, $read(given))
            }

            pub fn $set(node: usize, given: Ptr<c_void>) -> Answer {
                graphs::change(node, $read(given)?)
            }

            pub fn $set_exec(exec: usize, node: usize, given: Ptr<c_void>, context: usize) -> Answer {
                crate::context::context(context)?;
                EXECS.get(exec)?.change(node, $read(given)?)
            }
        };
    }

    nodes_in_context!(cuGraphAddMemcpyNode, cuGraphMemcpyNodeSetParams, cuGraphExecMemcpyNodeSetParams, copy_of);
    nodes_in_context!(cuGraphAddMemsetNode, cuGraphMemsetNodeSetParams, cuGraphExecMemsetNodeSetParams, fill_of);

    pub fn cuGraphAddChildGraphNode(
        out: Ptr<usize>,
        graph: usize,
        after: Ptr<usize>,
        count: usize,
        inside: usize,
    ) -> Answer {
        add(out, graph, after, count, child(inside))
    }

    pub fn cuGraphChildGraphNodeGetGraph(node: usize, graph: Ptr<usize>) -> Answer {
        match *NODES.get(node)?.operation.lock() {
            Operation::Child(child) => graph.set(child, "phGraph"),
            _ => fail!(CUDA_ERROR_INVALID_VALUE, "the node is not a child graph"),
        }
    }

    pub fn cuGraphExecChildGraphNodeSetParams(exec: usize, node: usize, graph: usize) -> Answer {
        EXECS.get(exec)?.change_child(node, graph)
    }

    pub fn cuGraphKernelNodeGetParams(node: usize, out: Ptr<c_void>) -> Answer {
        match &*NODES.get(node)?.operation.lock() {
            Operation::Kernel(launch) => {
                let all = written(launch);
                let function = if all.function == 0 { all.kernel } else { all.function };
                out.cast::<KernelNode>().set(KernelNode { function, ..first(&all) }, "nodeParams")
            }
            _ => fail!(CUDA_ERROR_INVALID_VALUE, "the node is not a launch"),
        }
    }

    /// The function that reads the parameters of one type of node.
    macro_rules! getter {
        ($name:ident, $kind:ty, $pattern:pat => $value:expr) => {
            pub fn $name(node: usize, out: Ptr<c_void>) -> Answer {
                match &*NODES.get(node)?.operation.lock() {
                    $pattern => out.cast::<$kind>().set($value, "nodeParams"),
                    _ => fail!(CUDA_ERROR_INVALID_VALUE, "the node has another type"),
                }
            }
        };
    }

    getter!(cuGraphKernelNodeGetParams_v2, KernelNode2, Operation::Kernel(launch) => written(launch));
    getter!(cuGraphMemcpyNodeGetParams, Memcpy3d, Operation::Copy(copy) => copy.0);
    getter!(cuGraphMemsetNodeGetParams, MemsetNode, Operation::Fill(given, _) => *given);
    getter!(cuGraphHostNodeGetParams, HostNode, Operation::Host(given) => *given);

    pub fn cuGraphNodeGetParams(node: usize, out: Ptr<c_void>) -> Answer {
        write_any(&NODES.get(node)?.operation.lock(), out)
    }

    /// The functions of one type of node with an event.
    macro_rules! event_nodes {
        ($add:ident, $get:ident, $set:ident, $set_exec:ident, $operation:path) => {
            pub fn $add(out: Ptr<usize>, graph: usize, after: Ptr<usize>, count: usize, handle: usize) -> Answer {
                add(out, graph, after, count, event(handle, $operation))
            }

            pub fn $get(node: usize, out: Ptr<usize>) -> Answer {
                match *NODES.get(node)?.operation.lock() {
                    $operation(event) => out.set(event, "event_out"),
                    _ => fail!(CUDA_ERROR_INVALID_VALUE, "the node has another type"),
                }
            }

            pub fn $set(node: usize, handle: usize) -> Answer {
                graphs::change(node, event(handle, $operation)?)
            }

            pub fn $set_exec(exec: usize, node: usize, handle: usize) -> Answer {
                EXECS.get(exec)?.change(node, event(handle, $operation)?)
            }
        };
    }

    event_nodes!(
        cuGraphAddEventRecordNode,
        cuGraphEventRecordNodeGetEvent,
        cuGraphEventRecordNodeSetEvent,
        cuGraphExecEventRecordNodeSetEvent,
        Operation::Record
    );
    event_nodes!(
        cuGraphAddEventWaitNode,
        cuGraphEventWaitNodeGetEvent,
        cuGraphEventWaitNodeSetEvent,
        cuGraphExecEventWaitNodeSetEvent,
        Operation::Wait
    );

    /// The launch of a node.
    fn launch_of(node: usize) -> Answer<Arc<Launch>> {
        match &*NODES.get(node)?.operation.lock() {
            Operation::Kernel(launch) => Ok(launch.clone()),
            _ => fail!(CUDA_ERROR_INVALID_VALUE, "the node is not a launch"),
        }
    }

    pub fn cuGraphKernelNodeGetAttribute(node: usize, attribute: u32, value: Ptr<c_void>) -> Answer {
        let launch = launch_of(node)?;
        if matches!(attribute, CU_LAUNCH_ATTRIBUTE_IGNORE | CU_LAUNCH_ATTRIBUTE_MAX..) {
            fail!(CUDA_ERROR_INVALID_VALUE, "the attribute {attribute} of a launch in a graph");
        }
        let first = match attribute {
            // CU_SHAREDMEM_CARVEOUT_DEFAULT
            CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT => u64::from(u32::MAX),
            _ => 0,
        };
        let set = launch.attributes.get(attribute).unwrap_or([first, 0, 0, 0, 0, 0, 0, 0]);
        value.cast::<AttributeValue>().set(set, "value_out")
    }

    pub fn cuGraphKernelNodeSetAttribute(node: usize, attribute: u32, value: Ptr<c_void>) -> Answer {
        let (launch, value) = (launch_of(node)?, value.cast::<AttributeValue>().get("value")?);
        if EVENTS_OF_LAUNCHES.contains(&attribute) {
            fail!(
                CUDA_ERROR_INVALID_VALUE,
                "a launch in a graph has no event of its own: an event record node follows it"
            );
        }
        attributes(&[LaunchAttribute { id: attribute, pad: [0; 4], value }])?;
        let mut wanted = launch.attributes.clone();
        wanted.set(attribute, value);
        graphs::change(node, Operation::Kernel(Arc::new(launch.with(wanted)?)))
    }

    pub fn cuGraphKernelNodeCopyAttributes(to: usize, from: usize) -> Answer {
        let (old, wanted) = (launch_of(to)?, launch_of(from)?.attributes.clone());
        graphs::change(to, Operation::Kernel(Arc::new(old.with(wanted)?)))
    }
}
