//! Launches.

use crate::captures;
use crate::context::Context;
use crate::functions::{Function, function};
use crate::graphs::Operation;
use crate::machine::Size;
use crate::numbers::*;
use crate::pointers::{Ptr, at, copy_bytes};
use crate::result::{Answer, fail};
use crate::streams::{self, Stream};
use crate::structures::{LaunchAttribute, LaunchConfig};
use std::sync::Arc;

/// The keys of the array `extra`: CU_LAUNCH_PARAM_BUFFER_POINTER and CU_LAUNCH_PARAM_BUFFER_SIZE.
const BUFFER_POINTER: usize = 1;
const BUFFER_SIZE: usize = 2;

/// Where the values of the parameters are: one address for each, in an array of the caller or in a list made here.
pub enum Values {
    /// An array of the caller.
    Array(usize),
    /// A list.
    List(Vec<usize>),
}

/// Finds the values of the parameters of a launch.
pub fn values(function: &Function, params: Ptr<usize>, extra: Ptr<usize>) -> Answer<Values> {
    match (params.is_null(), extra.is_null()) {
        (false, false) => fail!(CUDA_ERROR_INVALID_VALUE, "{:?}: kernelParams and extra are both given", function.name),
        (false, true) => Ok(Values::Array(params.address())),
        (true, true) if function.layout.is_empty() => Ok(Values::List(Vec::new())),
        (true, true) => {
            fail!(
                CUDA_ERROR_INVALID_VALUE,
                "{:?} has {} parameters, and no values are given",
                function.name,
                function.layout.len()
            )
        }
        (true, false) => packed(function, extra),
    }
}

/// The values in a buffer that `extra` names.
fn packed(function: &Function, extra: Ptr<usize>) -> Answer<Values> {
    let (mut buffer, mut size, mut place) = (0, 0, extra.address());
    loop {
        let (key, value) = (at::<usize>(place).get("extra")?, place + size_of::<usize>());
        match key {
            0 => break,
            BUFFER_POINTER => buffer = at::<usize>(value).get("extra")?,
            BUFFER_SIZE => size = at::<usize>(at::<usize>(value).get("extra")?).get("the size of the parameters")?,
            other => fail!(CUDA_ERROR_INVALID_VALUE, "the key {other} in extra"),
        }
        place += 2 * size_of::<usize>();
    }
    let needed = function.layout.iter().map(|(offset, size)| offset + size).max().unwrap_or(0) as usize;
    if size < needed || (buffer == 0 && needed != 0) {
        fail!(CUDA_ERROR_INVALID_VALUE, "{:?} has {needed} bytes of parameters, and {size} are given", function.name);
    }
    Ok(Values::List(function.layout.iter().map(|(offset, _)| buffer + *offset as usize).collect()))
}

/// A launch that is kept, with the values of its parameters.
pub struct Launch {
    /// The function or kernel as the program named it.
    pub handle: usize,
    /// The function.
    pub function: Arc<Function>,
    /// Its size.
    pub size: Size,
    /// The address of the value of each parameter, in `_values`.
    pub addresses: Vec<usize>,
    _values: Vec<u64>,
}

impl Launch {
    /// Keeps a launch.
    pub fn keep(handle: usize, size: Size, params: Ptr<usize>, extra: Ptr<usize>) -> Answer<Launch> {
        let function = function(handle)?;
        function.check(&size)?;
        let given = match values(&function, params, extra)? {
            Values::Array(first) => at::<usize>(first).list(function.layout.len(), "kernelParams")?,
            Values::List(list) => list,
        };
        let end = function.layout.iter().map(|(offset, size)| offset + size).max().unwrap_or(0) as usize;
        let values = vec![0u64; end.div_ceil(8)];
        let first = values.as_ptr() as usize;
        let addresses: Vec<usize> = function.layout.iter().map(|(offset, _)| first + *offset as usize).collect();
        for ((to, from), (_, size)) in addresses.iter().zip(&given).zip(&function.layout) {
            if *from == 0 {
                fail!(CUDA_ERROR_INVALID_VALUE, "{:?}: the address of a parameter's value is NULL", function.name);
            }
            copy_bytes(*to, *from, *size as usize);
        }
        Ok(Launch { handle, function, size, addresses, _values: values })
    }

    /// The same launch, with all blocks at the same time or not.
    pub fn cooperative(&self, cooperative: bool) -> Answer<Launch> {
        let size = Size { cooperative, ..self.size };
        Launch::keep(self.handle, size, at(self.addresses.as_ptr() as usize), at(0))
    }

    /// Gives it to a stream.
    pub fn give(&self, context: &Context, stream: &Stream) -> Answer {
        self.function.belongs_to(context)?;
        let (first, count) = (self.addresses.as_ptr() as usize, self.addresses.len());
        context.submit(stream, |queue| queue.launch(&self.function.kernel, &self.size, first, count)).map(drop)
    }
}

/// Launches.
pub fn launch(handle: usize, size: Size, stream: usize, params: Ptr<usize>, extra: Ptr<usize>) -> Answer {
    let function = function(handle)?;
    let (context, stream) = streams::find(stream)?;
    function.belongs_to(&context)?;
    if captures::take(&stream, || Ok(Operation::Kernel(Arc::new(Launch::keep(handle, size, params, extra)?))))? {
        return Ok(());
    }
    function.check(&size)?;
    let values = values(&function, params, extra)?;
    let (first, count) = match &values {
        Values::Array(first) => (*first, function.layout.len()),
        Values::List(list) => (list.as_ptr() as usize, list.len()),
    };
    context.submit(&stream, |queue| queue.launch(&function.kernel, &size, first, count))?;
    Ok(())
}

/// What the attributes of a launch ask for: whether all blocks run at the same time.
pub fn attributes(list: &[LaunchAttribute]) -> Answer<bool> {
    let mut cooperative = false;
    for attribute in list {
        let word = attribute.value[0] as u32;
        match attribute.id {
            CU_LAUNCH_ATTRIBUTE_COOPERATIVE => cooperative = word != 0,
            CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION | CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION => {
                let size = [word, (attribute.value[0] >> 32) as u32, attribute.value[1] as u32];
                if size != [1, 1, 1] {
                    fail!(CUDA_ERROR_NOT_SUPPORTED, "clusters of {size:?} blocks came with compute capability 9.0");
                }
            }
            CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT | CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT => {
                fail!(CUDA_ERROR_NOT_SUPPORTED, "an event that a kernel triggers came with compute capability 9.0")
            }
            CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE if word != 0 => {
                fail!(CUDA_ERROR_NOT_SUPPORTED, "a node of a graph that kernels change")
            }
            // Wishes for caches and for the order of blocks, and what is so already: a kernel starts when the work before it has ended.
            CU_LAUNCH_ATTRIBUTE_IGNORE..CU_LAUNCH_ATTRIBUTE_MAX => {}
            other => fail!(CUDA_ERROR_INVALID_VALUE, "the attribute {other} of a launch"),
        }
    }
    Ok(cooperative)
}

pub mod rows {
    //! The functions of launches.

    use super::*;
    use std::ffi::c_void;

    #[allow(clippy::too_many_arguments, reason = "it is cuda.h's")]
    pub fn cuLaunchKernel(
        function: usize,
        gx: u32,
        gy: u32,
        gz: u32,
        bx: u32,
        by: u32,
        bz: u32,
        shared: u32,
        stream: usize,
        params: Ptr<usize>,
        extra: Ptr<usize>,
    ) -> Answer {
        launch(
            function,
            Size { grid: [gx, gy, gz], block: [bx, by, bz], shared, cooperative: false },
            stream,
            params,
            extra,
        )
    }

    #[allow(clippy::too_many_arguments, reason = "it is cuda.h's")]
    pub fn cuLaunchCooperativeKernel(
        function: usize,
        gx: u32,
        gy: u32,
        gz: u32,
        bx: u32,
        by: u32,
        bz: u32,
        shared: u32,
        stream: usize,
        params: Ptr<usize>,
    ) -> Answer {
        launch(
            function,
            Size { grid: [gx, gy, gz], block: [bx, by, bz], shared, cooperative: true },
            stream,
            params,
            at(0),
        )
    }

    pub fn cuLaunchKernelEx(config: Ptr<c_void>, function: usize, params: Ptr<usize>, extra: Ptr<usize>) -> Answer {
        let config = config.cast::<LaunchConfig>().get("config")?;
        let list = at::<LaunchAttribute>(config.attributes).list(config.count as usize, "attrs")?;
        let (grid, block, shared) = (config.grid, config.block, config.shared);
        launch(function, Size { grid, block, shared, cooperative: attributes(&list)? }, config.stream, params, extra)
    }
}
