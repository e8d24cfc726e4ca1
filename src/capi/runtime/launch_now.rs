//! A launch that never waits for the GPU.

use super::super::guard::attempt_now;
use super::super::objects::{NV_STATUS, NvU64};
use super::handles::KERNELS;
use super::launch::submit;
use super::opaque::{tegrarm_device, tegrarm_kernel};
use crate::runtime::launch::Launch;
use std::ffi::c_void;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering};

/// The sizes of a launch for `tegrarm_launch_now`.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct tegrarm_launch_sizes {
    /// How many blocks the grid has, in x, y and z.
    pub grid_dim: [u32; 3],
    /// How many threads each block has, in x, y and z.
    pub block_dim: [u32; 3],
    /// How many bytes of dynamic shared memory each block has.
    pub shared_mem_bytes: u32,
}

const _: () = assert!(
    size_of::<tegrarm_launch_sizes>() == size_of::<Launch>()
        && offset_of!(tegrarm_launch_sizes, block_dim) == offset_of!(Launch, block)
        && offset_of!(tegrarm_launch_sizes, shared_mem_bytes) == offset_of!(Launch, dynamic_shared)
);

/// Launches a kernel as `tegrarm_launch` does, but only if that takes nothing but stores to memory: the last launch of the kernel on
/// the queue had the same sizes, and the GPU has room for another one. Then it makes no system call and allocates nothing. Otherwise
/// it does nothing, and the caller calls `tegrarm_launch`, which does everything or says why not.
///
/// The queue is the default queue of `device`, and `kernel` belongs to `device`. `kernel_params` has one pointer for each parameter of
/// the kernel, as in `tegrarm_launch`. If `fence` is not NULL, the fence of the work is written to `*fence`, which is aligned, before
/// other work can follow in the queue: threads that give one place for their fences find there the fence of the last launch.
///
/// Errors, for which `tegrarm_last_error` has no sentence:
/// - `NV_ERR_BUSY_RETRY`: nothing was done, for whatever reason, also because an argument is wrong.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_launch_now(
    device: *mut tegrarm_device,
    kernel: *mut tegrarm_kernel,
    sizes: *const tegrarm_launch_sizes,
    kernel_params: *const *const c_void,
    fence: *mut NvU64,
) -> NV_STATUS {
    attempt_now(|| {
        if sizes.is_null() {
            return None;
        }
        // SAFETY: `sizes` is not NULL and so valid for reads, as `tegrarm_launch_now` asks of its caller. Its fields are those of a
        // `Launch`.
        let launch = unsafe { sizes.cast::<Launch>().read_unaligned() };
        let mut known = KERNELS.hold_in_turn(kernel).ok()?;
        if known.device != device.addr() {
            return None;
        }
        let (module, layout, images) = known.parts();
        let count = layout.fields().len() as u32;
        // The default queue has number 0, so that its fences are the numbers of the submissions.
        let told = |given| {
            if !fence.is_null() {
                // SAFETY: `fence` is not NULL and so valid for writes and aligned, as `tegrarm_launch_now` asks of its caller.
                unsafe { AtomicU64::from_ptr(fence) }.store(given, Ordering::Release);
            }
        };
        // SAFETY: `kernel_params` is NULL or valid for reads of a pointer for each parameter, and these point at the values, as
        // `tegrarm_launch_now` asks of its caller.
        unsafe { submit(module.device().own(), images, layout, &launch, kernel_params, count, told) }.map(drop)
    })
}
