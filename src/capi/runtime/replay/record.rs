//! What a device's replay does.

use super::super::super::guard::status;
use super::super::super::objects::{NV_STATUS, NvU32, NvU64};
use super::super::handles::{BUFFERS, KERNELS, REPLAYS};
use super::super::launch::{check, gather, sizes, tegrarm_launch_config};
use super::super::opaque::{tegrarm_buffer, tegrarm_kernel, tegrarm_replay};
use super::super::pointers::{give_any, present};
use crate::runtime::channel::Plan;
use crate::runtime::memory::place::Place;
use crate::runtime::replay::Copy;
use std::ffi::c_void;
use tegrarm_abi::rm::status::*;
use tegrarm_rm::status::{RmResult, fail};

/// Records a launch. The arguments mean the same as those of `tegrarm_launch`; the queue is the replay's own, which has the
/// default priority. If `launch` is not NULL, `*launch` is the number of the launch in the replay, from 0.
///
/// The values of the arguments are those of every run, unless `tegrarm_replay_argument` says otherwise. The module of
/// the kernel, and all memory that the arguments point at, must stay until the replay ends.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `kernel` is not a kernel, or `replay` is not a replay.
/// - `NV_ERR_INVALID_POINTER`: `config`, `kernel_params` or one of its pointers is NULL.
/// - `NV_ERR_INVALID_PARAM_STRUCT`: `config->size` is smaller than the structure, or larger than any version of it can be.
/// - `NV_ERR_LIB_RM_VERSION_MISMATCH`: a field is set that a later version of the library added.
/// - `NV_ERR_STATE_IN_USE`: another thread is in a call of the replay.
/// - `NV_ERR_INVALID_STATE`: the replay has run. Nothing can be added to it any more.
/// - `NV_ERR_INVALID_ARGUMENT`: the GPU cannot run a launch of this size, the kernel has another number of parameters
///   or belongs to another device, a field of `config` has a value that `tegrarm_launch` refuses, or the replay has no device.
/// - `NV_ERR_NO_MEMORY`: there is not enough memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_replay_launch(
    replay: *mut tegrarm_replay,
    kernel: *mut tegrarm_kernel,
    config: *const tegrarm_launch_config,
    kernel_params: *const *const c_void,
    param_count: NvU32,
    launch: *mut NvU32,
) -> NV_STATUS {
    status(|| {
        let held = KERNELS.hold_in_turn(kernel)?;
        // SAFETY: `config` is NULL or valid for as many bytes as its first field says, and its `param_sizes` is NULL or valid for
        // reads of `param_count` sizes, as `tegrarm_replay_launch` asks of its caller.
        let what = unsafe {
            check(config, &held, param_count, Plan::PLAIN.level)?;
            sizes(config)
        };
        let index = REPLAYS.hold_alone(replay)?.launch(&held, &what, |to| {
            // SAFETY: `kernel_params` is what `tegrarm_replay_launch` asks of its caller. The block is `to.len()` bytes long.
            unsafe { gather(held.layout(), kernel_params, param_count, to.as_mut_ptr(), to.len()) }
        })?;
        // SAFETY: `launch` is NULL or valid for writes, as `tegrarm_replay_launch` asks of its caller.
        unsafe { give_any(launch, index) };
        Ok(())
    })
}

/// Takes an argument of a recorded launch from a value of each run: argument `argument` of launch `launch`, both from
/// 0, gets the low bytes of value `slot`.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `replay` is not a replay.
/// - `NV_ERR_STATE_IN_USE`: another thread is in a call of the replay.
/// - `NV_ERR_INVALID_STATE`: the replay has run. Nothing can be added to it any more.
/// - `NV_ERR_INVALID_ARGUMENT`: there is no such launch or argument, the parameter does not have 1, 2, 4 or 8 bytes,
///   `slot` is not below `TEGRARM_REPLAY_SLOTS`, or the replay has no device.
/// - `NV_ERR_INVALID_ADDRESS`: the parameter is not aligned to its size.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_replay_argument(
    replay: *mut tegrarm_replay,
    launch: NvU32,
    argument: NvU32,
    slot: NvU32,
) -> NV_STATUS {
    status(|| REPLAYS.hold_alone(replay)?.argument(launch, argument, slot))
}

/// Records a copy of less than 4 GiB between two buffers. The GPU copies. The replay keeps the buffers alive.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `replay` is not a replay, or `dst` or `src` is not a buffer.
/// - `NV_ERR_STATE_IN_USE`: another thread is in a call of the replay.
/// - `NV_ERR_INVALID_STATE`: the replay has run. Nothing can be added to it any more.
/// - `NV_ERR_INVALID_ARGUMENT`: the copy is 4 GiB or more, the ranges overlap, a buffer belongs to another device, or
///   the replay has no device.
/// - `NV_ERR_INVALID_BASE`: a range lies outside its buffer.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_replay_copy(
    replay: *mut tegrarm_replay,
    dst: *mut tegrarm_buffer,
    dst_offset: NvU64,
    src: *mut tegrarm_buffer,
    src_offset: NvU64,
    size: NvU64,
) -> NV_STATUS {
    status(|| {
        let (dst, src) = (BUFFERS.get(dst)?, BUFFERS.get(src)?);
        let Ok(size) = u32::try_from(size) else {
            fail!(NV_ERR_INVALID_ARGUMENT, "a recorded copy of {size:#x} bytes: less than 4 GiB can be");
        };
        REPLAYS.hold_alone(replay)?.copy(&dst, dst_offset, &src, src_offset, size)
    })
}

/// Records that the GPU fills `size` bytes at `offset` of a buffer with `value`, of which the low `width` bytes are repeated: 1, 2 or
/// 4. The replay keeps the buffer alive.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `replay` is not a replay, or `buffer` is not a buffer.
/// - `NV_ERR_STATE_IN_USE`: another thread is in a call of the replay.
/// - `NV_ERR_INVALID_STATE`: the replay has run. Nothing can be added to it any more.
/// - `NV_ERR_INVALID_ARGUMENT`: `width` is not 1, 2 or 4, `offset` or `size` is not a multiple of it, the buffer belongs to another
///   device, or the replay has no device.
/// - `NV_ERR_INVALID_BASE`: the range lies outside the buffer.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_replay_fill(
    replay: *mut tegrarm_replay,
    buffer: *mut tegrarm_buffer,
    offset: NvU64,
    size: NvU64,
    value: NvU32,
    width: NvU32,
) -> NV_STATUS {
    status(|| {
        let buffer = BUFFERS.get(buffer)?;
        REPLAYS.hold_alone(replay)?.fill(&buffer, offset, size, value, width)
    })
}

/// Gives recorded launch `launch` of `replay` another configuration and other arguments. `config`, `kernel_params` and `param_count` are
/// as in `tegrarm_replay_launch`, and `kernel` is the kernel that was recorded. The call waits for runs that queues were given with
/// `tegrarm_replay_enqueue`; it can be made before and after runs. A failure changes nothing. An argument that
/// `tegrarm_replay_argument` takes from a value keeps it.
///
/// Errors: those of `tegrarm_replay_launch`, except that it may have run, and
/// - `NV_ERR_INVALID_ARGUMENT`: there is no such launch, or it is one of another kernel.
/// - `NV_ERR_INVALID_STATE`: the last run of `tegrarm_replay_submit` has not been waited for.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped a queue that has a run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_replay_update(
    replay: *mut tegrarm_replay,
    launch: NvU32,
    kernel: *mut tegrarm_kernel,
    config: *const tegrarm_launch_config,
    kernel_params: *const *const c_void,
    param_count: NvU32,
) -> NV_STATUS {
    status(|| {
        let held = KERNELS.hold_in_turn(kernel)?;
        // SAFETY: `config` is NULL or valid for as many bytes as its first field says, and its `param_sizes` is NULL or valid for
        // reads of `param_count` sizes, as `tegrarm_replay_update` asks of its caller.
        let what = unsafe {
            check(config, &held, param_count, Plan::PLAIN.level)?;
            sizes(config)
        };
        REPLAYS.hold_alone(replay)?.update(launch, &held, &what, |to| {
            // SAFETY: `kernel_params` is what `tegrarm_replay_update` asks of its caller. The block is `to.len()` bytes long.
            unsafe { gather(held.layout(), kernel_params, param_count, to.as_mut_ptr(), to.len()) }
        })
    })
}

/// A copy by the CPU, in a replay, has at most this many bytes: 1 TiB, more than any Tegra has.
pub const TEGRARM_REPLAY_COPY_SIZE: usize = 1_099_511_627_776;

/// Has the CPU copy `size` bytes from `src` to `dst` at the start of each run, before the GPU starts. `dst` is usually
/// the CPU address of a buffer. Both ranges must stay valid until the replay ends.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `replay` is not a replay.
/// - `NV_ERR_STATE_IN_USE`: another thread is in a call of the replay.
/// - `NV_ERR_INVALID_POINTER`: `dst` or `src` is NULL.
/// - `NV_ERR_INVALID_ARGUMENT`: `size` is more than `TEGRARM_REPLAY_COPY_SIZE`.
/// - `NV_ERR_INVALID_STATE`: the replay has run. Nothing can be added to it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_replay_input(
    replay: *mut tegrarm_replay,
    dst: *mut c_void,
    src: *const c_void,
    size: usize,
) -> NV_STATUS {
    // SAFETY: `dst` and `src` stay valid for `size` bytes until the replay ends, as this function asks of its caller.
    status(|| REPLAYS.hold_alone(replay)?.input(unsafe { copy(dst, src, size) }?))
}

/// Has the CPU copy `size` bytes from `src` to `dst` at the end of each run, when the GPU has finished. `src` is
/// usually the CPU address of a buffer. Both ranges must stay valid until the replay ends.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `replay` is not a replay.
/// - `NV_ERR_STATE_IN_USE`: another thread is in a call of the replay.
/// - `NV_ERR_INVALID_POINTER`: `dst` or `src` is NULL.
/// - `NV_ERR_INVALID_ARGUMENT`: `size` is more than `TEGRARM_REPLAY_COPY_SIZE`.
/// - `NV_ERR_INVALID_STATE`: the replay has run. Nothing can be added to it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_replay_output(
    replay: *mut tegrarm_replay,
    dst: *mut c_void,
    src: *const c_void,
    size: usize,
) -> NV_STATUS {
    // SAFETY: `dst` and `src` stay valid for `size` bytes until the replay ends, as this function asks of its caller.
    status(|| REPLAYS.hold_alone(replay)?.output(unsafe { copy(dst, src, size) }?))
}

/// # Safety
/// As `tegrarm_replay_input`.
unsafe fn copy(dst: *mut c_void, src: *const c_void, len: usize) -> RmResult<Copy> {
    present(dst, "dst")?;
    present(src, "src")?;
    if len > TEGRARM_REPLAY_COPY_SIZE {
        fail!(
            NV_ERR_INVALID_ARGUMENT,
            "a copy of {len:#x} bytes: TEGRARM_REPLAY_COPY_SIZE is {TEGRARM_REPLAY_COPY_SIZE:#x}"
        );
    }
    // SAFETY: both stay valid for `len` bytes until the replay ends, as `tegrarm_replay_input` asks of its caller.
    Ok(unsafe { Copy { to: Place::foreign(dst as usize), from: Place::foreign(src as usize), len } })
}
