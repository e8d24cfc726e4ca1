//! Launches of kernels.

use super::super::guard::attempt_or;
use super::super::objects::{NV_STATUS, NvU32, NvU64};
use super::handles::{KERNELS, QUEUES};
use super::opaque::{tegrarm_kernel, tegrarm_queue};
use super::pointers::{extended, give_any, present};
use super::queues::check_priority;
use crate::runtime::device::module::KernelRef;
use crate::runtime::device::queue::Queue;
use crate::runtime::device::queue_ref::QueueRef;
use crate::runtime::launch::images::LaunchImages;
use crate::runtime::launch::params::Layout;
use crate::runtime::launch::{Launch, LaunchError};
use std::cmp::Ordering;
use std::ffi::c_void;
use std::mem::offset_of;
use std::sync::Arc;
use tegrarm_abi::rm::status::*;
use tegrarm_rm::status::{RmError, RmResult, fail};

/// A flag of a launch: all blocks run at the same time, so that they can wait for each other, or the launch is refused.
pub const TEGRARM_LAUNCH_COOPERATIVE: u32 = 1;

/// How a kernel is launched. Set everything to 0, set `size` to `sizeof(struct tegrarm_launch_config)`, and then fill in the
/// other fields. Later versions only append fields.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct tegrarm_launch_config {
    /// The size of the structure as the caller knows it.
    pub size: usize,
    /// How many blocks the grid has, in x, y and z.
    pub grid_dim: [u32; 3],
    /// How many threads each block has, in x, y and z.
    pub block_dim: [u32; 3],
    /// How many bytes of dynamic shared memory each block has.
    pub shared_mem_bytes: u32,
    /// 0, or `TEGRARM_LAUNCH_COOPERATIVE`.
    pub flags: u32,
    /// `TEGRARM_PRIORITY_DEFAULT`, which stands for the priority of the queue, or that priority itself as a value of `enum
    /// tegrarm_queue_priority`. A launch with another priority is refused: nvgpu gives priorities to queues and not to launches.
    pub priority: u32,
    /// Must be 0.
    pub reserved: u32,
    /// NULL, or one size in bytes for each argument. An argument that does not have the size of its parameter is refused, so that
    /// a binding of another language can pass what its users wrote. `tegrarm_kernel_parameter` says what the sizes are.
    pub param_sizes: *const usize,
}

/// Launches a kernel, in order with the other work of a queue, and returns at once. If `fence` is not NULL, the fence of the
/// work is written to `*fence`.
///
/// `queue` is a queue of the kernel's device. NULL stands for the default queue, with which the device was opened. `config`
/// has the sizes of the grid and of its blocks. `kernel_params` has one pointer for each parameter of the kernel, which points
/// at the value of the argument, as in CUDA's own launch; `param_count` is their number. The values and the configuration are
/// copied during the call.
///
/// A kernel that needs more local memory than any before makes the call wait for earlier work. A full channel also
/// makes it wait. A channel is full after about a thousand launches.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `kernel` is not a kernel, or `queue` is neither NULL nor a queue.
/// - `NV_ERR_INVALID_POINTER`: `config`, `kernel_params` or one of its pointers is NULL. `tegrarm_last_error` gives the number
///   of the parameter.
/// - `NV_ERR_INVALID_PARAM_STRUCT`: `config->size` is smaller than the structure, or larger than any version of it can be.
/// - `NV_ERR_LIB_RM_VERSION_MISMATCH`: a field is set that a later version of the library added.
/// - `NV_ERR_INVALID_ARGUMENT`: the GPU cannot run a launch of this size, or the kernel has another number of
///   parameters. `tegrarm_last_error` gives the number of the first parameter that has no argument.
/// - `NV_ERR_INVALID_ARGUMENT`: an argument has another size than its parameter. `tegrarm_last_error` gives the number of
///   the parameter, counted from 0, and both sizes.
/// - `NV_ERR_INVALID_ARGUMENT`: `config->flags` has an unknown bit, or it is `TEGRARM_LAUNCH_COOPERATIVE` and the GPU has no
///   room for all blocks at once. `tegrarm_last_error` says how many blocks it has room for.
/// - `NV_ERR_INVALID_ARGUMENT`: `config->priority` is not the priority of the queue, or `config->reserved` is not 0.
/// - `NV_ERR_INVALID_ARGUMENT`: the kernel and the queue belong to two devices, or the queue has a copy engine alone.
/// - `NV_ERR_NO_MEMORY`: there is not enough memory for the local memory of the kernel.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the queue.
/// - `NV_ERR_TIMEOUT`: the channel is full, and nothing finished for a minute.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_launch(
    queue: *mut tegrarm_queue,
    kernel: *mut tegrarm_kernel,
    config: *const tegrarm_launch_config,
    kernel_params: *const *const c_void,
    param_count: NvU32,
    fence: *mut NvU64,
) -> NV_STATUS {
    attempt_or(
        // SAFETY: all pointers are what `tegrarm_launch` asks of its caller.
        || unsafe { launch_now(queue, kernel, config, kernel_params, param_count, fence) },
        // SAFETY: as before.
        || unsafe { launch(queue, kernel, config, kernel_params, param_count, fence) },
    )
}

/// Launches if that takes nothing but stores to memory, as nearly all launches do. Otherwise nothing has happened.
///
/// # Safety
/// As `tegrarm_launch`.
#[inline(always)]
unsafe fn launch_now(
    queue: *mut tegrarm_queue,
    kernel: *mut tegrarm_kernel,
    config: *const tegrarm_launch_config,
    kernel_params: *const *const c_void,
    param_count: NvU32,
    fence: *mut NvU64,
) -> Option<()> {
    // SAFETY: `config` is NULL or valid for as many bytes as its first field says, as this function asks of its caller.
    if !unsafe { is_plain(config) } {
        return None;
    }
    if !queue.is_null() {
        // SAFETY: the pointers are what this function asks of its caller, and a plain configuration is a whole structure.
        return unsafe { launch_now_on(queue, kernel, config, kernel_params, param_count, fence) };
    }
    let mut kernel = KERNELS.hold_in_turn(kernel).ok()?;
    let (module, layout, images) = kernel.parts();
    // The device's own queue has number 0, so that its fences are the numbers of the submissions.
    // SAFETY: the pointers are what this function asks of its caller, and a plain configuration is a whole structure.
    let given =
        unsafe { submit(module.device().own(), images, layout, &sizes(config), kernel_params, param_count, |_| {}) }?;
    // SAFETY: `fence` is NULL or valid for writes, as this function asks of its caller.
    unsafe { give_any(fence, given) };
    Some(())
}

/// The same on a queue that the caller names.
///
/// # Safety
/// As `tegrarm_launch`. `config` is a whole structure.
#[inline(never)]
unsafe fn launch_now_on(
    queue: *mut tegrarm_queue,
    kernel: *mut tegrarm_kernel,
    config: *const tegrarm_launch_config,
    kernel_params: *const *const c_void,
    param_count: NvU32,
    fence: *mut NvU64,
) -> Option<()> {
    // The rows are held, and nothing is cloned, because the end of a clone may be the end of the queue.
    let queue = QUEUES.hold_in_turn(queue).ok()?;
    let mut kernel = KERNELS.hold_in_turn(kernel).ok()?;
    if !Arc::ptr_eq(queue.device(), kernel.module().device()) {
        return None;
    }
    let queue = queue.queue();
    let (layout, images) = kernel.images_for(queue.number())?;
    // SAFETY: the pointers are what this function asks of its caller.
    let submission = unsafe { submit(queue, images, layout, &sizes(config), kernel_params, param_count, |_| {}) }?;
    // SAFETY: `fence` is NULL or valid for writes, as this function asks of its caller.
    unsafe { give_any(fence, queue.fence_of(submission)) };
    Some(())
}

/// Fills in the next image of a kernel for a queue, and submits it, if that takes nothing but stores. Returns the submission. `told` gets
/// it before other work can follow in the queue.
///
/// # Safety
/// As [`gather_now`].
#[inline(always)]
pub(super) unsafe fn submit(
    queue: &Queue,
    images: &mut LaunchImages,
    layout: &Layout,
    launch: &Launch,
    kernel_params: *const *const c_void,
    param_count: NvU32,
    told: impl FnOnce(u64),
) -> Option<u64> {
    let turn = queue.turn(images, launch)?;
    let to = turn.arguments();
    // SAFETY: `kernel_params` is what this function asks of its caller. The block is `to.len()` bytes long, and nobody else uses it
    // until the launch.
    let filled = unsafe { gather_now(layout, kernel_params, param_count, to.cpu(), to.len()) };
    filled.then(|| turn.launch(told))
}

/// Launches, whatever has to be made or waited for.
///
/// # Safety
/// As `tegrarm_launch`.
#[cold]
unsafe fn launch(
    queue: *mut tegrarm_queue,
    kernel: *mut tegrarm_kernel,
    config: *const tegrarm_launch_config,
    kernel_params: *const *const c_void,
    param_count: NvU32,
    fence: *mut NvU64,
) -> RmResult<()> {
    // Rows of queues are held before rows of kernels.
    let named = if queue.is_null() { None } else { Some(QUEUES.get(queue)?) };
    let mut held = KERNELS.hold_in_turn(kernel)?;
    let queue = named.unwrap_or_else(|| QueueRef::own(held.module().device()));
    // SAFETY: `config` is what `check` asks of this function's caller, and then a whole structure.
    let launch = unsafe {
        check(config, &held, param_count, queue.queue().level())?;
        sizes(config)
    };
    let given = queue.launch(&mut held, &launch, |layout, to| {
        // SAFETY: as in `submit`.
        unsafe { gather(layout, kernel_params, param_count, to.cpu(), to.len()) }
    })?;
    // SAFETY: `fence` is NULL or valid for writes, as this function asks of its caller.
    unsafe { give_any(fence, given) };
    Ok(())
}

/// Checks the configuration of a launch on a queue with this level. What the queue itself checks is left to it.
///
/// # Safety
/// `config` is NULL or valid for reads of as many bytes as its first field says. Its `param_sizes` is NULL or valid for reads
/// of `count` sizes.
#[inline(always)]
pub(super) unsafe fn check(
    config: *const tegrarm_launch_config,
    kernel: &KernelRef,
    count: NvU32,
    level: Option<u32>,
) -> RmResult<()> {
    // SAFETY: `config` is what this function asks of its caller.
    if unsafe { is_plain(config) } {
        return Ok(());
    }
    // SAFETY: as before.
    unsafe { check_fields(config, kernel, count, level) }
}

/// Whether a configuration has this version's size, and only the sizes of the grid and of its blocks are set. This is so for
/// nearly all launches.
///
/// # Safety
/// `config` is NULL or valid for reads of as many bytes as its first field says.
#[inline(always)]
unsafe fn is_plain(config: *const tegrarm_launch_config) -> bool {
    // SAFETY: every version of the structure has the first field.
    if config.is_null() || unsafe { (&raw const (*config).size).read_unaligned() } != size_of::<tegrarm_launch_config>()
    {
        return false;
    }
    // SAFETY: the size says that all fields are there. Two of them are read as one number, because `make bench` counts instructions.
    let (flags, options, param_sizes) = unsafe {
        (
            (&raw const (*config).flags).read_unaligned(),
            (&raw const (*config).priority).cast::<u64>().read_unaligned(),
            (&raw const (*config).param_sizes).read_unaligned(),
        )
    };
    u64::from(flags) | options | param_sizes.addr() as u64 == 0
}

/// The sizes of a launch.
///
/// # Safety
/// `config` is valid for reads of a whole structure.
#[inline(always)]
pub(super) unsafe fn sizes(config: *const tegrarm_launch_config) -> Launch {
    // SAFETY: this function asks its caller for that. The three fields follow each other without a gap, as those of a `Launch`.
    unsafe { (&raw const (*config).grid_dim).cast::<Launch>().read_unaligned() }
}

const _: () = assert!(
    offset_of!(tegrarm_launch_config, block_dim)
        == offset_of!(tegrarm_launch_config, grid_dim) + offset_of!(Launch, block)
        && offset_of!(tegrarm_launch_config, shared_mem_bytes)
            == offset_of!(tegrarm_launch_config, grid_dim) + offset_of!(Launch, dynamic_shared)
);

/// Checks a configuration, and the fields that most launches leave 0.
///
/// # Safety
/// As [`check`].
#[cold]
unsafe fn check_fields(
    config: *const tegrarm_launch_config,
    kernel: &KernelRef,
    count: NvU32,
    level: Option<u32>,
) -> RmResult<()> {
    // SAFETY: `config` is what this function asks of its caller.
    let known = unsafe { extended(config, "config") }?;
    // SAFETY: `param_sizes` is what this function asks of its caller.
    unsafe { known.check_options(kernel, &sizes(config), count, level) }
}

impl tegrarm_launch_config {
    /// Checks the fields that most launches leave 0.
    ///
    /// # Safety
    /// `param_sizes` is NULL or valid for reads of `count` sizes.
    unsafe fn check_options(
        &self,
        kernel: &KernelRef,
        launch: &Launch,
        count: NvU32,
        level: Option<u32>,
    ) -> RmResult<()> {
        let flags = self.flags;
        if flags & !TEGRARM_LAUNCH_COOPERATIVE != 0 {
            fail!(NV_ERR_INVALID_ARGUMENT, "config->flags is {flags:#x}: there is TEGRARM_LAUNCH_COOPERATIVE (1)");
        }
        if self.reserved != 0 {
            fail!(NV_ERR_INVALID_ARGUMENT, "config->reserved is {:#x}: it must be 0", self.reserved);
        }
        check_priority(self.priority, level)?;
        if !self.param_sizes.is_null() {
            // SAFETY: `param_sizes` is not NULL and so valid for reads of `count` sizes, as this function asks of its caller.
            unsafe { check_sizes(kernel.layout(), self.param_sizes, count) }?;
        }
        if flags & TEGRARM_LAUNCH_COOPERATIVE != 0 {
            kernel.module().device().check_cooperative(kernel.kernel(), launch)?;
        }
        Ok(())
    }
}

/// Fills in the block of arguments, from one pointer for each.
///
/// # Errors
/// `NV_ERR_INVALID_ARGUMENT` for another number of arguments, and `NV_ERR_INVALID_POINTER` for a pointer that is NULL.
///
/// # Safety
/// As [`gather_now`].
pub(super) unsafe fn gather(
    layout: &Layout,
    arguments: *const *const c_void,
    count: NvU32,
    block: *mut u8,
    len: usize,
) -> RmResult<()> {
    // SAFETY: this function asks its caller for the same.
    if unsafe { gather_now(layout, arguments, count, block, len) } {
        return Ok(());
    }
    if count as usize != layout.fields().len() {
        return Err(miscounted(layout, count));
    }
    present(arguments, "kernel_params")?;
    // SAFETY: `arguments` is not NULL and so valid for reads of `count` pointers, as this function asks of its caller.
    Err(absent(layout, unsafe { std::slice::from_raw_parts(arguments, count as usize) }))
}

/// The same for a caller that asks for the reason later. The result says whether the whole block is filled in.
///
/// # Safety
/// `arguments` is NULL or valid for reads of `count` pointers, each NULL or valid for reads of its parameter's size.
/// `block` is valid for writes of `len` bytes.
///
/// # Panics
/// If `len` is not the size of the layout.
#[inline(always)]
unsafe fn gather_now(
    layout: &Layout,
    arguments: *const *const c_void,
    count: NvU32,
    block: *mut u8,
    len: usize,
) -> bool {
    assert_eq!(len, layout.size());
    let fields = layout.fields();
    if count as usize != fields.len() {
        return false;
    }
    if fields.is_empty() {
        return true;
    }
    if arguments.is_null() {
        return false;
    }
    // SAFETY: `arguments` is not NULL and so valid for reads of `count` pointers, as this function asks of its
    // caller; there are as many fields.
    let arguments = unsafe { std::slice::from_raw_parts(arguments, fields.len()) };
    for (&from, field) in arguments.iter().zip(fields) {
        if from.is_null() {
            return false;
        }
        // SAFETY: `from` is not NULL and so valid for reads of the parameter's size, as this function asks of its caller; so
        // is `block` for writes of the layout's size, and `Layout` has no field outside. The usual sizes are one move each.
        unsafe {
            let to = block.add(field.offset as usize);
            if field.size == 8 {
                to.cast::<[u8; 8]>().write(from.cast::<[u8; 8]>().read());
            } else if field.size == 4 {
                to.cast::<[u8; 4]>().write(from.cast::<[u8; 4]>().read());
            } else {
                std::ptr::copy_nonoverlapping(from.cast(), to, field.size as usize);
            }
        }
    }
    true
}

#[cold]
fn miscounted(layout: &Layout, count: NvU32) -> RmError {
    let (name, wanted) = (layout.name(), layout.fields().len());
    let text = match (count as usize).cmp(&wanted) {
        Ordering::Less => format!("parameter {count} is the first without one"),
        _ => format!("there is no parameter {wanted}"),
    };
    let text = format!("launching '{name}': {count} arguments for {wanted} parameters; {text}, counted from 0");
    RmError::new(NV_ERR_INVALID_ARGUMENT, text)
}

#[cold]
fn absent(layout: &Layout, arguments: &[*const c_void]) -> RmError {
    let first = arguments.iter().position(|p| p.is_null()).unwrap_or_default();
    RmError::new(NV_ERR_INVALID_POINTER, format!("launching '{}': kernel_params[{first}] is NULL", layout.name()))
}

/// Whether the arguments have the sizes of the parameters.
///
/// # Safety
/// `sizes` is valid for reads of `count` sizes.
unsafe fn check_sizes(layout: &Layout, sizes: *const usize, count: NvU32) -> RmResult<()> {
    let fields = layout.fields();
    if count as usize != fields.len() {
        return Err(miscounted(layout, count));
    }
    for (index, field) in fields.iter().enumerate() {
        // SAFETY: `sizes` is valid for reads of `count` sizes, as this function asks of its caller; there are as many fields.
        let found = unsafe { sizes.add(index).read_unaligned() };
        let wanted = field.size;
        if found != wanted as usize {
            let e = LaunchError::ArgumentSize { index, found, wanted };
            return Err(RmError::new(NV_ERR_INVALID_ARGUMENT, format!("launching '{}': {e}", layout.name())));
        }
    }
    Ok(())
}
