//! Limits of a device that a program may change.

use super::super::guard::status;
use super::super::objects::{NV_STATUS, NvU32, NvU64};
use super::handles::DEVICES;
use super::opaque::tegrarm_device;
use super::pointers::give;
use tegrarm_abi::rm::status::*;
use tegrarm_rm::status::RmError;

/// A limit of a device: a value of `tegrarm_device_limit` and `tegrarm_device_set_limit`. Later versions may add values.
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub enum tegrarm_limit {
    /// How many bytes of stack each thread has, at least. At first it is 1024, as CUDA's own limit. A kernel that needs
    /// more, and says so, gets it at its first launch; a kernel that recurses has what this limit says.
    TEGRARM_LIMIT_STACK_SIZE = 0,
    /// How many bytes of memory there are for `malloc` in kernels. At first it is 8 MiB, as with CUDA, or what the environment variable
    /// `TEGRARM_HEAP_SIZE` says. The memory is taken when the first module that calls `malloc` is loaded.
    TEGRARM_LIMIT_HEAP_SIZE = 1,
    /// How many bytes the buffer of `printf` in kernels has. At first it is 1 MiB, as with CUDA, or what the environment variable
    /// `TEGRARM_PRINTF_SIZE` says.
    TEGRARM_LIMIT_PRINTF_SIZE = 2,
}

const STACK_SIZE: NvU32 = tegrarm_limit::TEGRARM_LIMIT_STACK_SIZE as NvU32;
const HEAP_SIZE: NvU32 = tegrarm_limit::TEGRARM_LIMIT_HEAP_SIZE as NvU32;
const PRINTF_SIZE: NvU32 = tegrarm_limit::TEGRARM_LIMIT_PRINTF_SIZE as NvU32;

fn unknown(limit: NvU32) -> RmError {
    RmError::new(
        NV_ERR_INVALID_ARGUMENT,
        format!(
            "limit {limit}: there are TEGRARM_LIMIT_STACK_SIZE (0), TEGRARM_LIMIT_HEAP_SIZE (1) and TEGRARM_LIMIT_PRINTF_SIZE (2)"
        ),
    )
}

/// Writes a limit of a device to `*value`. `limit` is one of `enum tegrarm_limit`.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
/// - `NV_ERR_INVALID_POINTER`: `value` is NULL.
/// - `NV_ERR_INVALID_ARGUMENT`: `limit` is not a value of `enum tegrarm_limit`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_device_limit(
    device: *mut tegrarm_device,
    limit: NvU32,
    value: *mut NvU64,
) -> NV_STATUS {
    status(|| {
        let device = DEVICES.get(device)?;
        let found = match limit {
            STACK_SIZE => device.stack().into(),
            HEAP_SIZE => device.sizes().heap,
            PRINTF_SIZE => device.sizes().printf,
            other => return Err(unknown(other)),
        };
        // SAFETY: `value` is NULL or valid for writes, as `tegrarm_device_limit` asks of its caller.
        unsafe { give(value, found, "value") }
    })
}

/// Changes a limit of a device. `limit` is one of `enum tegrarm_limit`. The device may round `value` up;
/// `tegrarm_device_limit` returns the new value. The call waits for the work that the device was given before. A replay
/// keeps the stack that it was made with. While the size of the heap or of the buffer changes, other threads must not
/// give the device work.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
/// - `NV_ERR_INVALID_ARGUMENT`: `limit` is not a value of `enum tegrarm_limit`, or `value` is too large.
/// - `NV_ERR_STATE_IN_USE`: `limit` is `TEGRARM_LIMIT_HEAP_SIZE`, and kernels have not freed everything that `malloc` gave them.
/// - `NV_ERR_STATE_IN_USE`: `limit` is `TEGRARM_LIMIT_HEAP_SIZE` or `TEGRARM_LIMIT_PRINTF_SIZE`, a module uses that memory, and the device
///   has replays.
/// - `NV_ERR_NO_MEMORY`: there is not enough memory. The limit stays as it was.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the device.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_device_set_limit(device: *mut tegrarm_device, limit: NvU32, value: NvU64) -> NV_STATUS {
    status(|| {
        let device = DEVICES.get(device)?;
        match limit {
            STACK_SIZE => device.set_stack(value),
            HEAP_SIZE => device.set_heap(value),
            PRINTF_SIZE => device.set_printf(value),
            other => Err(unknown(other)),
        }
    })
}
