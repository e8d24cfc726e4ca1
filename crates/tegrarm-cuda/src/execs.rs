//! Executable graphs.
//!
//! A launch gives the nodes to a stream in an order in which every node comes behind those that it waits for: as one run of a replay if
//! the GPU does all of them alone, and otherwise one after another.

use crate::context::Context;
use crate::graphs::{self, GRAPHS, Operation, Step};
use crate::handles::Handles;
use crate::numbers::*;
use crate::order::Stream;
use crate::replays::Way;
use crate::result::{Answer, fail};
use crate::user_objects::AllKept;
use std::collections::HashMap;
use tegrarm_lock::Mutex;

/// All executable graphs.
pub static EXECS: Handles<Exec> = Handles::new(12, "executable graph", CUDA_ERROR_INVALID_VALUE);

/// An executable graph.
pub struct Exec {
    /// The number that cuGraphExecGetId gives.
    id: u32,
    /// The flags that it was made with.
    flags: u64,
    /// The nodes.
    plan: Mutex<Plan>,
    /// The user objects of the graph.
    _kept: AllKept,
}

/// The nodes of an executable graph, and how they go to a stream.
struct Plan {
    /// The nodes in the order of their execution.
    steps: Vec<Step>,
    way: Way,
}

/// Why an executable graph cannot take over another graph: a value of `CUgraphExecUpdateResult`, and the node.
struct Differs {
    result: u32,
    node: usize,
}

const FLAGS: u64 = (CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH
    | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD
    | CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH
    | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) as u64;

impl Exec {
    /// Makes a graph executable. What its nodes do is copied.
    fn new(graph: usize, flags: u64) -> Answer<Exec> {
        if flags & !FLAGS != 0 {
            fail!(CUDA_ERROR_INVALID_VALUE, "the flags {flags:#x} of an executable graph");
        }
        if flags & u64::from(CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0 {
            fail!(CUDA_ERROR_NOT_SUPPORTED, "a graph that kernels launch");
        }
        let kept = GRAPHS.get(graph)?.kept.lock().clone();
        let plan = Mutex::new(Plan { steps: graphs::order(graph)?, way: Way::Unknown });
        Ok(Exec { id: graphs::next_id(), flags, plan, _kept: kept })
    }

    /// Gives all steps to a stream.
    fn launch(&self, context: &Context, stream: &Stream) -> Answer {
        // Launches of one executable graph come one after another, also those of two threads.
        let Plan { steps, way } = &mut *self.plan.lock();
        way.give(context, stream, steps)
    }

    /// Calls a function with the step of a node.
    fn with<T>(&self, node: usize, work: impl FnOnce(&mut Step) -> Answer<T>) -> Answer<T> {
        match find(&mut self.plan.lock().steps, node) {
            Some(step) => work(step),
            None => fail!(CUDA_ERROR_INVALID_VALUE, "the executable graph has no node {node:#x}"),
        }
    }

    /// Changes what a node does.
    pub fn change(&self, node: usize, operation: Operation) -> Answer {
        if let Operation::Child(child) = operation {
            return self.change_child(node, child);
        }
        let is_launch = matches!(operation, Operation::Kernel(_));
        self.with(node, |step| {
            if step.operation.kind() != operation.kind() {
                fail!(CUDA_ERROR_INVALID_VALUE, "the node has the type {}", step.operation.kind());
            }
            step.operation = operation.in_place_of(&step.operation)?;
            Ok(())
        })?;
        self.changed(is_launch);
        Ok(())
    }

    /// The nodes do something else from now on: launches alone have changed, or something else too.
    fn changed(&self, launches_alone: bool) {
        let way = &mut self.plan.lock().way;
        if launches_alone {
            way.launches_changed();
        } else {
            *way = Way::Unknown;
        }
    }

    /// Changes what the nodes of a child graph do.
    pub fn change_child(&self, node: usize, graph: usize) -> Answer {
        let new = graphs::order(graph)?;
        self.with(node, |step| {
            if !matches!(step.operation, Operation::Child(_)) {
                fail!(CUDA_ERROR_INVALID_VALUE, "the node is not a child graph");
            }
            match differs(&step.inside, &new) {
                None => {
                    take_over(&mut step.inside, new);
                    Ok(())
                }
                Some(differs) => fail!(CUDA_ERROR_INVALID_VALUE, "the child graphs differ at {:#x}", differs.node),
            }
        })?;
        self.changed(false);
        Ok(())
    }

    /// Does what another graph of the same form does from now on.
    fn update(&self, graph: usize) -> Answer<Option<Differs>> {
        let new = graphs::order(graph)?;
        let plan = &mut *self.plan.lock();
        let found = differs(&plan.steps, &new);
        if found.is_none() {
            take_over(&mut plan.steps, new);
            plan.way.steps_changed(&plan.steps);
        }
        Ok(found)
    }
}

/// The step of a node, in child graphs too.
fn find(steps: &mut [Step], node: usize) -> Option<&mut Step> {
    for step in steps {
        if step.node == node {
            return Some(step);
        }
        if let Some(found) = find(&mut step.inside, node) {
            return Some(found);
        }
    }
    None
}

/// The first step at which two graphs differ in their form.
fn differs(old: &[Step], new: &[Step]) -> Option<Differs> {
    let places = |steps: &[Step]| -> HashMap<usize, usize> {
        steps.iter().enumerate().map(|(place, step)| (step.node, place)).collect()
    };
    let (olds, news) = (places(old), places(new));
    let before = |step: &Step, places: &HashMap<usize, usize>| {
        let mut found: Vec<Option<usize>> = step.after.iter().map(|node| places.get(node).copied()).collect();
        found.sort_unstable();
        found
    };
    for (old, new) in old.iter().zip(new) {
        if old.operation.kind() != new.operation.kind() {
            return Some(Differs { result: CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, node: new.node });
        }
        if before(old, &olds) != before(new, &news) {
            return Some(Differs { result: CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, node: new.node });
        }
        if let (Operation::Kernel(first), Operation::Kernel(second)) = (&old.operation, &new.operation)
            && first.function.context != second.function.context
        {
            return Some(Differs { result: CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE, node: new.node });
        }
        if let Some(inside) = differs(&old.inside, &new.inside) {
            return Some(inside);
        }
    }
    let longer = new.get(old.len()).map_or(0, |step| step.node);
    (old.len() != new.len()).then_some(Differs { result: CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, node: longer })
}

/// Gives steps what other steps of the same form do. The nodes by which a program names them stay.
fn take_over(steps: &mut [Step], new: Vec<Step>) {
    for (step, new) in steps.iter_mut().zip(new) {
        if !matches!(step.operation, Operation::Child(_)) {
            step.operation = new.operation;
        }
        take_over(&mut step.inside, new.inside);
    }
}

pub mod rows {
    //! The functions of executable graphs.

    use super::*;
    use crate::captures;
    use crate::capturing;
    use crate::context::stream_of;
    use crate::pointers::Ptr;
    use crate::structures::{InstantiateParameters, UpdateResult};
    use std::ffi::{c_char, c_void};
    use std::sync::Arc;

    pub fn cuGraphInstantiateWithFlags(exec: Ptr<usize>, graph: usize, flags: u64) -> Answer {
        exec.present("phGraphExec")?;
        exec.set(EXECS.add(Arc::new(Exec::new(graph, flags)?))?, "phGraphExec")
    }

    pub fn cuGraphInstantiate_v2(
        exec: Ptr<usize>,
        graph: usize,
        error_node: Ptr<usize>,
        log: Ptr<c_char>,
        size: usize,
    ) -> Answer {
        error_node.set_any(0);
        let made = cuGraphInstantiateWithFlags(exec, graph, 0);
        log.set_text(made.as_ref().err().and_then(|error| error.text.as_deref()).unwrap_or(""), size);
        made
    }

    pub fn cuGraphInstantiateWithParams(exec: Ptr<usize>, graph: usize, params: Ptr<c_void>) -> Answer {
        let params = params.cast::<InstantiateParameters>();
        let mut given = params.get("instantiateParams")?;
        if given.flags & u64::from(CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0 {
            stream_of(given.stream)?;
        }
        let made = cuGraphInstantiateWithFlags(exec, graph, given.flags);
        given.error_node = 0;
        given.result = match made.as_ref().map_err(|error| error.code) {
            Ok(()) => CUDA_GRAPH_INSTANTIATE_SUCCESS,
            Err(CUDA_ERROR_NOT_SUPPORTED) => CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED,
            Err(_) => CUDA_GRAPH_INSTANTIATE_ERROR,
        };
        params.set(given, "instantiateParams")?;
        made
    }

    pub fn cuGraphExecDestroy(exec: usize) -> Answer {
        EXECS.remove(exec).map(drop)
    }

    /// An executable graph has nothing that has to be brought to the GPU before its launch.
    pub fn cuGraphUpload(exec: usize, stream: usize) -> Answer {
        EXECS.get(exec)?;
        capturing::forbid(&stream_of(stream)?.1)
    }

    pub fn cuGraphLaunch(exec: usize, stream: usize) -> Answer {
        let exec = EXECS.get(exec)?;
        let (context, stream) = stream_of(stream)?;
        if captures::take(&stream, || Ok(Operation::Child(graphs::of_steps(&exec.plan.lock().steps)?)))? {
            return Ok(());
        }
        exec.launch(&context, &stream)
    }

    pub fn cuGraphExecGetFlags(exec: usize, flags: Ptr<usize>) -> Answer {
        flags.set(EXECS.get(exec)?.flags as usize, "flags")
    }

    pub fn cuGraphExecGetId(exec: usize, id: Ptr<u32>) -> Answer {
        id.set(EXECS.get(exec)?.id, "graphId")
    }

    pub fn cuGraphNodeSetEnabled(exec: usize, node: usize, enabled: u32) -> Answer {
        EXECS.get(exec)?.with(node, |step| {
            if !matches!(step.operation, Operation::Kernel(_) | Operation::Copy(_) | Operation::Fill(..)) {
                fail!(CUDA_ERROR_INVALID_VALUE, "only launches, copies and fills can be disabled");
            }
            step.enabled = enabled != 0;
            Ok(())
        })?;
        EXECS.get(exec)?.changed(false);
        Ok(())
    }

    pub fn cuGraphNodeGetEnabled(exec: usize, node: usize, enabled: Ptr<u32>) -> Answer {
        let found = EXECS.get(exec)?.with(node, |step| Ok(step.enabled))?;
        enabled.set(found.into(), "isEnabled")
    }

    /// Updates, and fails with CUDA's result if the graphs differ.
    fn update(exec: usize, graph: usize, say: impl FnOnce(u32, usize) -> Answer) -> Answer {
        match EXECS.get(exec)?.update(graph)? {
            None => say(CU_GRAPH_EXEC_UPDATE_SUCCESS, 0),
            Some(differs) => {
                say(differs.result, differs.node)?;
                fail!(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "the graphs differ at the node {:#x}", differs.node)
            }
        }
    }

    pub fn cuGraphExecUpdate(exec: usize, graph: usize, node: Ptr<usize>, result: Ptr<u32>) -> Answer {
        update(exec, graph, |code, at| {
            node.set_any(at);
            result.set(code, "updateResult_out")
        })
    }

    pub fn cuGraphExecUpdate_v2(exec: usize, graph: usize, info: Ptr<c_void>) -> Answer {
        let info = info.cast::<UpdateResult>();
        info.present("resultInfo")?;
        update(exec, graph, |result, error_node| {
            info.set(UpdateResult { result, error_node, error_from: 0 }, "resultInfo")
        })
    }
}
