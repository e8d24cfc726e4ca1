//! Launches of kernels.

use super::super::guard::status;
use super::super::objects::{NV_STATUS, NvU32, NvU64};
use super::handles::KERNELS;
use super::opaque::tegrarm_kernel;
use super::pointers::{give_any, present};
use crate::runtime::launch::{Dim3, Launch, LaunchError};
use crate::runtime::params::Layout;
use crate::status::{RmError, RmResult, fail};
use std::cmp::Ordering;
use std::ffi::c_void;
use tegrarm_abi::rm::status::*;

/// Launches a kernel, in order with other work, and returns at once. If `fence` is not NULL, the fence of the work is
/// written to `*fence`.
///
/// `grid_dim` is the number of blocks and `block_dim` the number of threads of a block, three words each, in x, y and
/// z. `shared_mem_bytes` is the dynamic shared memory of a block. `kernel_params` has one pointer for each parameter of
/// the kernel, which points at the value of the argument, as in CUDA's own launch; `param_count` is their number. The
/// values are copied during the call.
///
/// A kernel that needs more local memory than any before makes the call wait for earlier work. A full channel also
/// makes it wait. A channel is full after about a thousand launches.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `kernel` is not a kernel.
/// - `NV_ERR_INVALID_POINTER`: `grid_dim`, `block_dim`, `kernel_params` or one of its pointers is NULL.
///   `tegrarm_last_error` gives the number of the parameter.
/// - `NV_ERR_INVALID_ARGUMENT`: the GPU cannot run a launch of this size, or the kernel has another number of
///   parameters. `tegrarm_last_error` gives the number of the first parameter that has no argument.
/// - `NV_ERR_NO_MEMORY`: there is not enough memory for the local memory of the kernel.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the device.
/// - `NV_ERR_TIMEOUT`: the channel is full, and nothing finished for a minute.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_launch(
    kernel: *mut tegrarm_kernel,
    grid_dim: *const NvU32,
    block_dim: *const NvU32,
    shared_mem_bytes: NvU32,
    kernel_params: *const *const c_void,
    param_count: NvU32,
    fence: *mut NvU64,
) -> NV_STATUS {
    status(|| {
        let mut held = KERNELS.hold_in_turn(kernel)?;
        let (module, index, layout, ready) = held.parts();
        // SAFETY: `grid_dim` and `block_dim` are NULL or valid for reads of three words, as `tegrarm_launch` asks of its
        // caller.
        let launch = unsafe { geometry(grid_dim, block_dim, shared_mem_bytes) }?;
        let given = module.device().launch_ready(module, index, ready, &launch, |to| {
            // SAFETY: `kernel_params` is what `tegrarm_launch` asks of its caller. The block is `to.len()` bytes long, and
            // nobody else uses it until the launch.
            unsafe { gather(layout, kernel_params, param_count, to.cpu(), to.len()) }
        })?;
        // SAFETY: `fence` is NULL or valid for writes, as `tegrarm_launch` asks of its caller.
        unsafe { give_any(fence, given) };
        Ok(())
    })
}

/// Launches a kernel as `tegrarm_launch` does, after checking what the caller says about the arguments and the blocks.
/// If `fence` is not NULL, the fence of the work is written to `*fence`.
///
/// `param_sizes` has one size in bytes for each argument. An argument that does not have the size of its parameter is
/// refused, so that a binding of another language can pass what its users wrote. `tegrarm_kernel_parameter` says what
/// the sizes are. `flags` is 0, or `TEGRARM_LAUNCH_TOGETHER` if the blocks wait for each other and so all have to run
/// at the same time.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `kernel` is not a kernel.
/// - `NV_ERR_INVALID_POINTER`: `grid_dim`, `block_dim`, `kernel_params`, one of its pointers or `param_sizes` is NULL.
/// - `NV_ERR_INVALID_ARGUMENT`: the GPU cannot run a launch of this size, or the kernel has another number of
///   parameters.
/// - `NV_ERR_INVALID_ARGUMENT`: an argument has another size than its parameter. `tegrarm_last_error` gives the number of
///   the parameter, counted from 0, and both sizes.
/// - `NV_ERR_INVALID_ARGUMENT`: `flags` has an unknown bit, or it is `TEGRARM_LAUNCH_TOGETHER` and the GPU has no room for
///   all blocks at once. `tegrarm_last_error` says how many blocks it has room for.
/// - `NV_ERR_NO_MEMORY`: there is not enough memory for the local memory of the kernel.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the device.
/// - `NV_ERR_TIMEOUT`: the channel is full, and nothing finished for a minute.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_launch_checked(
    kernel: *mut tegrarm_kernel,
    grid_dim: *const NvU32,
    block_dim: *const NvU32,
    shared_mem_bytes: NvU32,
    kernel_params: *const *const c_void,
    param_sizes: *const usize,
    param_count: NvU32,
    flags: NvU32,
    fence: *mut NvU64,
) -> NV_STATUS {
    status(|| {
        if flags & !TEGRARM_LAUNCH_TOGETHER != 0 {
            fail!(NV_ERR_INVALID_ARGUMENT, "launch flags {flags:#x}: there is TEGRARM_LAUNCH_TOGETHER (1)");
        }
        let mut held = KERNELS.hold_in_turn(kernel)?;
        let (module, index, layout, ready) = held.parts();
        // SAFETY: `param_sizes` is NULL or valid for reads of `param_count` sizes, and `grid_dim` and `block_dim` are NULL or
        // valid for reads of three words, as `tegrarm_launch_checked` asks of its caller.
        let launch = unsafe {
            check_sizes(layout, param_sizes, param_count)?;
            geometry(grid_dim, block_dim, shared_mem_bytes)?
        };
        if flags & TEGRARM_LAUNCH_TOGETHER != 0 {
            module.device().check_together(module.kernel_at(index), &launch)?;
        }
        let given = module.device().launch_ready(module, index, ready, &launch, |to| {
            // SAFETY: `kernel_params` is what `tegrarm_launch_checked` asks of its caller. The block is `to.len()` bytes
            // long, and nobody else uses it until the launch.
            unsafe { gather(layout, kernel_params, param_count, to.cpu(), to.len()) }
        })?;
        // SAFETY: `fence` is NULL or valid for writes, as `tegrarm_launch_checked` asks of its caller.
        unsafe { give_any(fence, given) };
        Ok(())
    })
}

/// A flag of `tegrarm_launch_checked`: all blocks run at the same time, or the launch is refused.
pub const TEGRARM_LAUNCH_TOGETHER: u32 = 1;

/// # Safety
/// `grid` and `block` are NULL or valid for reads of three words.
#[inline]
pub(super) unsafe fn geometry(grid: *const NvU32, block: *const NvU32, dynamic_shared: NvU32) -> RmResult<Launch> {
    present(grid, "grid_dim")?;
    present(block, "block_dim")?;
    // SAFETY: neither is NULL, so that both are valid for reads of three words, which is what a `Dim3` is.
    let (grid, block) = unsafe { (grid.cast::<Dim3>().read_unaligned(), block.cast::<Dim3>().read_unaligned()) };
    Ok(Launch { grid, block, dynamic_shared })
}

/// Fills in the block of arguments, from one pointer for each.
///
/// # Safety
/// `arguments` is NULL or valid for reads of `count` pointers, each NULL or valid for reads of its parameter's size.
/// `block` is valid for writes of `len` bytes.
///
/// # Panics
/// If `len` is not the size of the layout.
#[inline(always)]
pub(super) unsafe fn gather(
    layout: &Layout,
    arguments: *const *const c_void,
    count: NvU32,
    block: *mut u8,
    len: usize,
) -> RmResult<()> {
    assert_eq!(len, layout.size());
    let fields = layout.fields();
    if count as usize != fields.len() {
        return Err(miscounted(layout, count));
    }
    if fields.is_empty() {
        return Ok(());
    }
    present(arguments, "kernel_params")?;
    // SAFETY: `arguments` is not NULL and so valid for reads of `count` pointers, as this function asks of its
    // caller; there are as many fields.
    let arguments = unsafe { std::slice::from_raw_parts(arguments, fields.len()) };
    for (&from, field) in arguments.iter().zip(fields) {
        if from.is_null() {
            return Err(absent(layout, arguments));
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
    Ok(())
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
/// `sizes` is NULL or valid for reads of `count` sizes.
unsafe fn check_sizes(layout: &Layout, sizes: *const usize, count: NvU32) -> RmResult<()> {
    let fields = layout.fields();
    if count as usize != fields.len() {
        return Err(miscounted(layout, count));
    }
    for (index, field) in fields.iter().enumerate() {
        present(sizes, "param_sizes")?;
        // SAFETY: `sizes` is not NULL and so valid for reads of `count` sizes, as this function asks of its caller; there are as
        // many fields.
        let found = unsafe { sizes.add(index).read_unaligned() };
        let wanted = field.size;
        if found != wanted as usize {
            let e = LaunchError::ArgumentSize { index, found, wanted };
            return Err(RmError::new(NV_ERR_INVALID_ARGUMENT, format!("launching '{}': {e}", layout.name())));
        }
    }
    Ok(())
}
