//! Nodes of graphs: the runtime describes kernels by functions of the program, and copies in elements of arrays.

use crate::calls::*;
use crate::images::{function_of, kernel};
use crate::memory::{layers_of, set_layers};

// `cudaGraphNodeType`, which has the numbers of the driver's.
const KERNEL: u64 = 0;
const COPY: u64 = 1;
const FILL: u64 = 2;

/// `cudaKernelNodeParams`: the driver's has the kernel at the place of the function.
fn launch(parameters: usize) -> Answer<[u64; 7]> {
    let mut words: [u64; 7] = get(parameters)?;
    words[0] = kernel(words[0] as usize)? as u64;
    Ok(words)
}

/// `CUgraphNodeParams` for `cudaGraphNodeParams`: the type, and from the third word on what is of the type.
fn node(parameters: usize) -> Answer<[u64; 32]> {
    let mut words: [u64; 32] = get(parameters)?;
    match words[0] & u64::from(u32::MAX) {
        KERNEL => {
            words[2] = kernel(words[2] as usize)? as u64;
            // A context, and what the function is, where the driver has another name of the kernel and a context.
            no_context(words[9])?;
            words[9..11].fill(0);
        }
        COPY => {
            no_context(words[3])?;
            words[4..29].copy_from_slice(&layers_of(parameters + 32)?);
        }
        FILL => no_context(words[7])?,
        _ => {}
    }
    Ok(words)
}

/// Contexts of their own for nodes divide the SMs, which are refused: no program has a handle of one.
fn no_context(handle: u64) -> Answer {
    if handle == 0 { Ok(()) } else { Err(INVALID_VALUE) }
}

pub mod rows {
    //! The functions of nodes.

    use super::*;

    pub fn cudaGraphAddKernelNode([to, graph, dependencies, count, parameters]: [usize; 5]) -> Answer {
        let words = launch(parameters)?;
        cu!("cuGraphAddKernelNode", to, graph, dependencies, count, words.as_ptr())
    }

    pub fn cudaGraphKernelNodeSetParams([one, parameters]: [usize; 2]) -> Answer {
        let words = launch(parameters)?;
        cu!("cuGraphKernelNodeSetParams", one, words.as_ptr())
    }

    pub fn cudaGraphExecKernelNodeSetParams([graph, one, parameters]: [usize; 3]) -> Answer {
        let words = launch(parameters)?;
        cu!("cuGraphExecKernelNodeSetParams", graph, one, words.as_ptr())
    }

    pub fn cudaGraphKernelNodeGetParams([one, parameters]: [usize; 2]) -> Answer {
        let mut words = [0u64; 7];
        cu!("cuGraphKernelNodeGetParams", one, words.as_mut_ptr())?;
        // A kernel that is no function of the program is its own handle.
        words[0] = function_of(words[0] as usize).map_or(words[0], |function| function as u64);
        set(parameters, words)
    }

    pub fn cudaGraphAddNode([to, graph, after, edges, count, parameters]: [usize; 6]) -> Answer {
        let words = node(parameters)?;
        cu!("cuGraphAddNode_v2", to, graph, after, edges, count, words.as_ptr())
    }

    pub fn cudaGraphAddNode_12([to, graph, after, count, parameters]: [usize; 5]) -> Answer {
        cudaGraphAddNode([to, graph, after, 0, count, parameters])
    }

    pub use cudaGraphAddNode as cudaGraphAddNode_v2;

    pub fn cudaGraphNodeSetParams([one, parameters]: [usize; 2]) -> Answer {
        let words = node(parameters)?;
        cu!("cuGraphNodeSetParams", one, words.as_ptr())
    }

    pub fn cudaGraphExecNodeSetParams([graph, one, parameters]: [usize; 3]) -> Answer {
        let words = node(parameters)?;
        cu!("cuGraphExecNodeSetParams", graph, one, words.as_ptr())
    }

    pub fn cudaGraphNodeGetParams([one, parameters]: [usize; 2]) -> Answer {
        const DEVICE_ENTRY: u64 = 1;
        const KERNEL_OF_A_LIBRARY: u64 = 2;
        const FUNCTION_OF_A_MODULE: u64 = 3;
        let mut words = [0u64; 32];
        cu!("cuGraphNodeGetParams", one, words.as_mut_ptr())?;
        if parameters == 0 {
            return Err(INVALID_VALUE);
        }
        match words[0] & u64::from(u32::MAX) {
            KERNEL => {
                let (module, library) = (words[2], words[9]);
                let (function, what) = match function_of((module | library) as usize) {
                    Some(function) => (function as u64, DEVICE_ENTRY),
                    None if module == 0 => (library, KERNEL_OF_A_LIBRARY),
                    None => (module, FUNCTION_OF_A_MODULE),
                };
                (words[2], words[9], words[10]) = (function, 0, what);
            }
            COPY => {
                let mut copy = [0; 25];
                copy.copy_from_slice(&words[4..29]);
                let at = words.as_mut_ptr() as usize + 32;
                put(at, &[0; 200]);
                set_layers(at, &copy)?;
            }
            _ => {}
        }
        set(parameters, words)
    }

    pub fn cudaGraphAddDependencies_12([graph, from, to, count]: [usize; 4]) -> Answer {
        cu!("cuGraphAddDependencies_v2", graph, from, to, 0, count)
    }

    pub fn cudaGraphRemoveDependencies_12([graph, from, to, count]: [usize; 4]) -> Answer {
        cu!("cuGraphRemoveDependencies_v2", graph, from, to, 0, count)
    }

    pub fn cudaGraphGetEdges_12([graph, from, to, count]: [usize; 4]) -> Answer {
        cu!("cuGraphGetEdges_v2", graph, from, to, 0, count)
    }

    pub fn cudaGraphNodeGetDependencies_12([one, list, count]: [usize; 3]) -> Answer {
        cu!("cuGraphNodeGetDependencies_v2", one, list, 0, count)
    }

    pub fn cudaGraphNodeGetDependentNodes_12([one, list, count]: [usize; 3]) -> Answer {
        cu!("cuGraphNodeGetDependentNodes_v2", one, list, 0, count)
    }
}
