//! Launches.

use super::super::guard::status;
use super::super::objects::{NV_STATUS, NvU32, NvU64};
use super::handles;
use super::modules::tegrarm_kernel;
use super::pointers::{give_any, present};
use crate::runtime::cubin::Kernel;
use crate::runtime::launch::{Dim3, Launch};
use crate::status::{RmResult, fail};
use std::ffi::c_void;
use tegrarm_abi::rm::status::*;

/// Launches a kernel, in order with other work. Returns at once; `*fence`, if not NULL, is what to wait for.
///
/// `grid` is blocks, `block` threads of each, in x, y, z; `shared_bytes` is dynamic shared memory of a block.
/// `arguments` points at one pointer per parameter, each to that argument's value, as CUDA's own launch takes them; the
/// values are copied. Local memory grows on demand, which waits for the work given so far. Errors: 0x57 no such kernel,
/// 0x1F a launch the GPU cannot run or another number of arguments, 0x62 the device was stopped by a fault.
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
        let k = handles::kernel(kernel)?;
        // SAFETY: the caller's promise.
        let launch = unsafe { geometry(grid, block, shared_bytes) }?;
        // SAFETY: the caller's promise.
        let fill = |to: &mut [u8]| unsafe { gather(k.kernel(), arguments, argument_count, to) };
        let given = k.module().device().launch_with(&k, &launch, fill)?;
        // SAFETY: the caller's promise.
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
    // SAFETY: not NULL; the caller's promise, both times.
    let ([gx, gy, gz], [bx, by, bz]) =
        unsafe { (grid.cast::<[u32; 3]>().read_unaligned(), block.cast::<[u32; 3]>().read_unaligned()) };
    Ok(Launch { grid: Dim3::new(gx, gy, gz), block: Dim3::new(bx, by, bz), dynamic_shared })
}

/// Fills in the block of arguments, from one pointer for each.
///
/// # Safety
/// `arguments` is NULL or valid for reads of `count` pointers, each NULL or valid for reads of its parameter's size.
#[inline]
pub(super) unsafe fn gather(
    kernel: &Kernel,
    arguments: *const *const c_void,
    count: NvU32,
    block: &mut [u8],
) -> RmResult<()> {
    let wanted = kernel.parameters.len();
    if count as usize != wanted {
        fail!(NV_ERR_INVALID_ARGUMENT, "launching '{}': {count} arguments for {wanted} parameters", kernel.name);
    }
    if count > 0 {
        present(arguments, "arguments")?;
    }
    for (index, parameter) in kernel.parameters.iter().enumerate() {
        // SAFETY: `index` is below `count`; the caller's promise.
        let from = unsafe { arguments.add(index).read_unaligned() };
        present(from, "an argument")?;
        let to = &mut block[parameter.offset as usize..][..parameter.size as usize];
        // SAFETY: the caller's promise; the block is ours. The usual sizes are one move each.
        unsafe {
            match to.len() {
                4 => to.as_mut_ptr().cast::<[u8; 4]>().write(from.cast::<[u8; 4]>().read()),
                8 => to.as_mut_ptr().cast::<[u8; 8]>().write(from.cast::<[u8; 8]>().read()),
                len => std::ptr::copy_nonoverlapping(from.cast(), to.as_mut_ptr(), len),
            }
        }
    }
    Ok(())
}
