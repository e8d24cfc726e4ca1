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

/// Launches a kernel, in order with other work. Returns at once; `*fence`, if not NULL, is what to wait for.
///
/// `grid` is blocks, `block` threads of each, in x, y, z; `shared_bytes` is dynamic shared memory of a block.
/// `arguments` points at one pointer per parameter, each to that argument's value, as CUDA's own launch takes them; the
/// values are copied. Local memory grows on demand, which waits for the work given so far; a thousand launches that have
/// not finished make the next one wait. Errors: 0x57 no such kernel, 0x3D NULL, 0x1F a launch the GPU cannot run or another
/// number of arguments, 0x51 out of memory, 0x62 the device was stopped by a fault, 0x65 nothing finished for a minute.
///
/// # Safety
/// `grid` and `block` are valid for reads of three words; `arguments` is valid for reads of `argument_count` pointers,
/// each valid for reads of its parameter's size; `fence` is NULL or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_launch(
    kernel: *mut tegrarm_kernel,
    grid: *const NvU32,
    block: *const NvU32,
    shared_bytes: NvU32,
    arguments: *const *const c_void,
    argument_count: NvU32,
    fence: *mut NvU64,
) -> NV_STATUS {
    status(|| {
        let mut held = KERNELS.hold_in_turn(kernel)?;
        let (module, index, layout, ready) = held.parts();
        // SAFETY: `grid` and `block` are NULL or valid for reads of three words, as `tegrarm_launch` asks of its
        // caller.
        let launch = unsafe { geometry(grid, block, shared_bytes) }?;
        let given = module.device().launch_ready(module, index, ready, &launch, |to| {
            assert_eq!(to.len(), layout.size());
            // SAFETY: `arguments` is what `tegrarm_launch` asks of its caller; the block is as long as was just checked, and
            // ours until the launch.
            unsafe { gather(layout, arguments, argument_count, to.cpu()) }
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
    present(grid, "grid")?;
    present(block, "block")?;
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
    present(arguments, "arguments")?;
    // SAFETY: `arguments` is not NULL and so valid for reads of `count` pointers, as this function asks of its
    // caller; there are as many fields.
    let arguments = unsafe { std::slice::from_raw_parts(arguments, fields.len()) };
    for (&from, field) in arguments.iter().zip(fields) {
        present(from, "an argument")?;
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
