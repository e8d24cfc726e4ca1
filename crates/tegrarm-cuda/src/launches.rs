//! Launches.

use crate::captures;
use crate::context::stream_of;
use crate::events::{self, EVENTS, Event};
use crate::functions::{Launch, Values, values};
use crate::graphs::Operation;
use crate::libraries::function;
use crate::machine::Size;
use crate::numbers::*;
use crate::pointers::{Ptr, at};
use crate::result::{Answer, fail};
use crate::structures::{Attributes, LaunchAttribute, LaunchConfig};
use std::sync::Arc;

/// Launches. A graph keeps the attributes, of which those that matter are in the size.
fn launch(
    handle: usize,
    size: Size,
    attributes: &Attributes,
    stream: usize,
    params: Ptr<usize>,
    extra: Ptr<usize>,
) -> Answer {
    let function = function(handle)?;
    let (context, stream) = stream_of(stream)?;
    function.belongs_to(&context)?;
    let kept = || {
        let mut attributes = attributes.clone();
        if size.cooperative {
            attributes.set(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, [1, 0, 0, 0, 0, 0, 0, 0]);
        }
        if attributes.get(CU_LAUNCH_ATTRIBUTE_PRIORITY).is_none() {
            let priority = u64::from(stream.priority() as u32);
            attributes.set(CU_LAUNCH_ATTRIBUTE_PRIORITY, [priority, 0, 0, 0, 0, 0, 0, 0]);
        }
        let mut made = Launch::keep(handle, function.clone(), size, params, extra)?;
        made.attributes = attributes;
        Ok(made)
    };
    if captures::take(&stream, || Ok(Operation::Kernel(Arc::new(kept()?))))? {
        return trigger(attributes, |event| captures::record(&stream, &event.mark, None).map(drop));
    }
    function.check(&size)?;
    let values = values(&function, params, extra)?;
    let (first, count) = match &values {
        Values::Array(first) => (*first, function.layout.len()),
        Values::List(list) => (list.as_ptr() as usize, list.len()),
    };
    context.submit(&stream, |queue| queue.launch(function.kernel.handle, &size, first, count))?;
    trigger(attributes, |event| events::record_in(&context, &stream, event))
}

/// The attributes that name an event for the launch. CUDA promises that it does not come before all blocks have begun or have
/// triggered it; here it comes when the kernel has ended, which is late enough for both.
pub const EVENTS_OF_LAUNCHES: [u32; 2] =
    [CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT];

/// Records the events of a launch.
fn trigger(attributes: &Attributes, record: impl Fn(&Event) -> Answer) -> Answer {
    EVENTS_OF_LAUNCHES.iter().filter_map(|id| attributes.get(*id)).try_for_each(|value| {
        let event = EVENTS.get(value[0] as usize)?;
        record(&event)
    })
}

/// The attributes of a launch, if the GPU can do what they ask for.
pub fn attributes(list: &[LaunchAttribute]) -> Answer<Attributes> {
    let mut wanted = Attributes::default();
    for attribute in list {
        let word = attribute.value[0] as u32;
        match attribute.id {
            CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION | CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION => {
                let size = [word, (attribute.value[0] >> 32) as u32, attribute.value[1] as u32];
                if size != [1, 1, 1] {
                    fail!(CUDA_ERROR_NOT_SUPPORTED, "clusters of {size:?} blocks came with compute capability 9.0");
                }
            }
            id if EVENTS_OF_LAUNCHES.contains(&id) => {
                if EVENTS.get(attribute.value[0] as usize)?.has_time() || attribute.value[1] as u32 != 0 {
                    fail!(
                        CUDA_ERROR_INVALID_VALUE,
                        "the event of a launch has CU_EVENT_DISABLE_TIMING, and its flags are 0"
                    );
                }
            }
            CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE if word != 0 => {
                fail!(CUDA_ERROR_NOT_SUPPORTED, "a node of a graph that kernels change")
            }
            // Wishes for caches and for the order of blocks, and what is so already: a kernel starts when the work before it has ended.
            CU_LAUNCH_ATTRIBUTE_IGNORE..CU_LAUNCH_ATTRIBUTE_MAX => {}
            other => fail!(CUDA_ERROR_INVALID_VALUE, "the attribute {other} of a launch"),
        }
        wanted.set(attribute.id, attribute.value);
    }
    Ok(wanted)
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
            &Attributes::default(),
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
            &Attributes::default(),
            stream,
            params,
            at(0),
        )
    }

    pub fn cuLaunchKernelEx(config: Ptr<c_void>, function: usize, params: Ptr<usize>, extra: Ptr<usize>) -> Answer {
        let config = config.cast::<LaunchConfig>().get("config")?;
        let list = at::<LaunchAttribute>(config.attributes).list(config.count as usize, "attrs")?;
        let (grid, block, shared, wanted) = (config.grid, config.block, config.shared, attributes(&list)?);
        let cooperative = wanted.number(CU_LAUNCH_ATTRIBUTE_COOPERATIVE) != 0;
        launch(function, Size { grid, block, shared, cooperative }, &wanted, config.stream, params, extra)
    }
}
