//! What a device's replay does.

use super::super::super::guard::status;
use super::super::super::objects::{NV_STATUS, NvU32, NvU64};
use super::super::handles::{BUFFERS, KERNELS, REPLAYS};
use super::super::launch::{gather, geometry};
use super::super::opaque::{tegrarm_buffer, tegrarm_kernel, tegrarm_replay};
use super::super::pointers::{give_any, present};
use crate::runtime::place::Place;
use crate::runtime::replay::Copy;
use crate::status::{RmResult, fail};
use std::ffi::c_void;
use tegrarm_abi::rm::status::*;

/// Records a launch; parameters as of `tegrarm_launch`. `*launch`, if not NULL, is its index, from 0.
///
/// Argument values are those of every run unless `tegrarm_replay_argument` says otherwise. The kernel's module and
/// whatever its arguments point at must stay until the replay ends. Errors: 0x57 no such replay or kernel, 0x3D NULL,
/// 0x1F a launch the GPU cannot run, another number of arguments, a kernel of another device or a replay without
/// device, 0x40 the replay has run, 0x63 another thread is in a call of it, 0x51 out of memory.
///
/// # Safety
/// As `tegrarm_launch`; `launch` is NULL or valid for writes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_replay_launch(
    replay: *mut tegrarm_replay,
    kernel: *mut tegrarm_kernel,
    grid: *const NvU32,
    block: *const NvU32,
    shared_bytes: NvU32,
    arguments: *const *const c_void,
    argument_count: NvU32,
    launch: *mut NvU32,
) -> NV_STATUS {
    status(|| {
        let held = KERNELS.hold_in_turn(kernel)?;
        // SAFETY: `grid` and `block` are NULL or valid for reads of three words, as `tegrarm_replay_launch` asks of
        // its caller.
        let what = unsafe { geometry(grid, block, shared_bytes) }?;
        let k = &*held;
        let index = REPLAYS.hold_alone(replay)?.launch(k, &what, |to| {
            let layout = k.layout();
            assert_eq!(to.len(), layout.size());
            // SAFETY: `arguments` is what `tegrarm_launch` asks of its caller; the block is as long as was just checked.
            unsafe { gather(layout, arguments, argument_count, to.as_mut_ptr()) }
        })?;
        // SAFETY: `launch` is NULL or valid for writes, as `tegrarm_replay_launch` asks of its caller.
        unsafe { give_any(launch, index) };
        Ok(())
    })
}

/// Takes argument `argument` of recorded launch `launch` (both from 0) from value `slot` of each run: its low bytes, as
/// many as the parameter has. Errors: 0x57 no such replay, 0x1F no such launch or argument, or a parameter of another
/// size than 1, 2, 4 or 8 bytes, 0x40 the replay has run, 0x63 another thread is in a call of it.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_replay_argument(
    replay: *mut tegrarm_replay,
    launch: NvU32,
    argument: NvU32,
    slot: NvU32,
) -> NV_STATUS {
    status(|| REPLAYS.hold_alone(replay)?.argument(launch, argument, slot))
}

/// Records a copy between two buffers on the GPU, of less than 4 GiB; the replay keeps them alive. Errors: 0x57 no such
/// replay or buffer, 0x1F buffers of other devices, ranges that overlap or are too long, 0x20 a range lies outside, 0x40
/// the replay has run, 0x63 another thread is in a call of it.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_replay_copy(
    replay: *mut tegrarm_replay,
    to: *mut tegrarm_buffer,
    to_offset: NvU64,
    from: *mut tegrarm_buffer,
    from_offset: NvU64,
    size: NvU64,
) -> NV_STATUS {
    status(|| {
        let (to, from) = (BUFFERS.get(to)?, BUFFERS.get(from)?);
        let Ok(size) = u32::try_from(size) else {
            fail!(NV_ERR_INVALID_ARGUMENT, "a recorded copy of {size:#x} bytes: less than 4 GiB can be");
        };
        REPLAYS.hold_alone(replay)?.copy(&to, to_offset, &from, from_offset, size)
    })
}

/// Has the CPU copy `size` bytes at the start of each run, before the GPU starts: inputs.
///
/// `to` is usually a buffer's CPU pointer. Errors: 0x57 no such replay, 0x3D NULL, 0x40 the replay has run, 0x63 another
/// thread is in a call of it.
///
/// # Safety
/// Until the replay ends, `to` is valid for writes and `from` for reads of `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_replay_input(
    replay: *mut tegrarm_replay,
    to: *mut c_void,
    from: *const c_void,
    size: usize,
) -> NV_STATUS {
    // SAFETY: `to` and `from` stay valid for `size` bytes until the replay ends, as this function asks of its caller.
    status(|| REPLAYS.hold_alone(replay)?.input(unsafe { copy(to, from, size) }?))
}

/// Has the CPU copy `size` bytes at the end of each run, when the GPU has finished: outputs. Errors as
/// `tegrarm_replay_input`.
///
/// # Safety
/// As `tegrarm_replay_input`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_replay_output(
    replay: *mut tegrarm_replay,
    to: *mut c_void,
    from: *const c_void,
    size: usize,
) -> NV_STATUS {
    // SAFETY: `to` and `from` stay valid for `size` bytes until the replay ends, as this function asks of its caller.
    status(|| REPLAYS.hold_alone(replay)?.output(unsafe { copy(to, from, size) }?))
}

/// # Safety
/// As `tegrarm_replay_input`.
unsafe fn copy(to: *mut c_void, from: *const c_void, len: usize) -> RmResult<Copy> {
    present(to, "to")?;
    present(from, "from")?;
    // SAFETY: both stay valid for `len` bytes until the replay ends, as `tegrarm_replay_input` asks of its caller.
    Ok(unsafe { Copy { to: Place::foreign(to as usize), from: Place::foreign(from as usize), len } })
}
