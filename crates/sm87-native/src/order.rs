//! The order in which a graph is computed: that of the instructions. Each place is written as soon as its last value is there.

use crate::graph::{Graph, Place, Value};

/// A step of a piece.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Computes a value that is made of others.
    Make(Value),
    Write {
        place: Place,
        value: Value,
        everywhere: bool,
    },
    /// Counts the lanes that do not execute so many instructions.
    Count {
        mask: Value,
        times: u32,
    },
}

impl Step {
    /// The values that the step needs.
    pub(crate) fn operands(self, graph: &Graph) -> Vec<Value> {
        match self {
            Step::Make(value) => graph.nodes[value.0 as usize].operands().collect(),
            Step::Write { value, .. } | Step::Count { mask: value, .. } => vec![value],
        }
    }
}

/// The steps of a graph, without values that nobody needs.
pub(crate) fn steps(graph: &Graph) -> Vec<Step> {
    let needed = needed(graph);
    let mut writes: Vec<_> = graph.writes.iter().collect();
    writes.sort_by_key(|(place, write)| (write.at, **place));
    let mut writes = writes.into_iter().peekable();
    let mut steps = Vec::with_capacity(graph.nodes.len() + graph.writes.len());
    for at in 0..=graph.nodes.len() as u32 {
        while let Some((&place, write)) = writes.next_if(|(_, write)| write.at <= at) {
            steps.push(Step::Write { place, value: write.value, everywhere: write.everywhere });
        }
        if needed.get(at as usize) == Some(&true) {
            let value = Value(at);
            if graph.nodes[at as usize].is_made() {
                steps.push(Step::Make(value));
            }
            if let Some(&times) = graph.guards.get(&value) {
                steps.push(Step::Count { mask: value, times });
            }
        }
    }
    steps
}

fn needed(graph: &Graph) -> Vec<bool> {
    let mut needed = vec![false; graph.nodes.len()];
    let roots = graph.writes.values().map(|write| write.value).chain(graph.guards.keys().copied());
    roots.for_each(|value| needed[value.0 as usize] = true);
    for at in (0..needed.len()).rev() {
        if needed[at] {
            graph.nodes[at].operands().for_each(|value| needed[value.0 as usize] = true);
        }
    }
    needed
}
