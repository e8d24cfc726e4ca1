//! Launches.

use super::super::guard::status;
use super::super::objects::{NV_STATUS, NvU32, NvU64};
use super::handles::KERNELS;
use super::opaque::tegrarm_kernel;
use super::pointers::{give_any, present};
use crate::runtime::launch::{Dim3, Launch};
use crate::runtime::params::Layout;
use crate::status::{RmError, RmResult};
use std::ffi::c_void;
use tegrarm_abi::rm::status::*;

/// Launches a kernel, in order with other work, and returns at once. If `fence` is not NULL, `*fence` is what to wait
/// for.
///
/// `grid_dim` is the number of blocks and `block_dim` the number of threads of a block, three words each, in x, y and
/// z. `shared_mem_bytes` is the dynamic shared memory of a block. `kernel_params` has one pointer for each parameter of
/// the kernel, which points at the value of the argument, as in CUDA's own launch; `param_count` is their number. The
/// values are copied during the call.
///
/// A kernel that needs more local memory than any before makes the call wait for earlier work. So does a channel that
/// is full, which a thousand launches make it.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `kernel` is not a kernel.
/// - `NV_ERR_INVALID_POINTER`: `grid_dim`, `block_dim`, `kernel_params` or one of its pointers is NULL.
/// - `NV_ERR_INVALID_ARGUMENT`: the GPU cannot run a launch of this size, or the kernel has another number of
///   parameters.
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
            assert_eq!(to.len(), layout.size());
            // SAFETY: `kernel_params` is what `tegrarm_launch` asks of its caller; the block is as long as was just checked, and
            // ours until the launch.
            unsafe { gather(layout, kernel_params, param_count, to.cpu()) }
        })?;
        // SAFETY: `fence` is NULL or valid for writes, as `tegrarm_launch` asks of its caller.
        unsafe { give_any(fence, given) };
        Ok(())
    })
}

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
/// `arguments` is NULL or valid for reads of `count` pointers, each NULL or valid for reads of its parameter's size;
/// `block` is valid for writes of the layout's size.
#[inline(always)]
pub(super) unsafe fn gather(
    layout: &Layout,
    arguments: *const *const c_void,
    count: NvU32,
    block: *mut u8,
) -> RmResult<()> {
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
        present(from, "a pointer of kernel_params")?;
        // SAFETY: `from` is not NULL and so valid for reads of the parameter's size, as this function asks of its caller; so
        // is `block` for writes, and `Layout` has no field outside. The usual sizes are one move each.
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
    let text = format!("launching '{name}': {count} arguments for {wanted} parameters");
    RmError::new(NV_ERR_INVALID_ARGUMENT, text)
}
