//! Limits of a device that a program may change.

use super::super::guard::status;
use super::super::objects::{NV_STATUS, NvU32, NvU64};
use super::handles::DEVICES;
use super::opaque::tegrarm_device;
use super::pointers::give;
use crate::status::{RmError, fail};
use tegrarm_abi::rm::status::*;

/// A limit of a device: a value of `tegrarm_device_limit` and `tegrarm_device_set_limit`. Later versions may add values.
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub enum tegrarm_limit {
    /// How many bytes of stack each thread has, at least. At first it is 1024, as CUDA's own limit. A kernel that needs
    /// more, and says so, gets it at its first launch; a kernel that recurses has what this limit says.
    TEGRARM_LIMIT_STACK_SIZE = 0,
    /// How many bytes `malloc` in kernels can give. It is 0 and stays so, because modules that call `malloc` are not
    /// loaded.
    TEGRARM_LIMIT_HEAP_SIZE = 1,
}

const STACK_SIZE: NvU32 = tegrarm_limit::TEGRARM_LIMIT_STACK_SIZE as NvU32;
const HEAP_SIZE: NvU32 = tegrarm_limit::TEGRARM_LIMIT_HEAP_SIZE as NvU32;

fn unknown(limit: NvU32) -> RmError {
    RmError::new(
        NV_ERR_INVALID_ARGUMENT,
        format!("limit {limit}: there are TEGRARM_LIMIT_STACK_SIZE (0) and TEGRARM_LIMIT_HEAP_SIZE (1)"),
    )
}

/// Writes a limit of a device to `*value`. `limit` is one of `enum tegrarm_limit`.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
/// - `NV_ERR_INVALID_POINTER`: `value` is NULL.
/// - `NV_ERR_INVALID_ARGUMENT`: `limit` is none of the values.
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
            HEAP_SIZE => 0,
            other => return Err(unknown(other)),
        };
        // SAFETY: `value` is NULL or valid for writes, as `tegrarm_device_limit` asks of its caller.
        unsafe { give(value, found, "value") }
    })
}

/// Changes a limit of a device. `limit` is one of `enum tegrarm_limit`. The device may round `value` up;
/// `tegrarm_device_limit` returns the new value. The call waits for the work that the device was given before. A replay
/// keeps the limit that it was made with.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
/// - `NV_ERR_INVALID_ARGUMENT`: `limit` is none of the values, or a thread cannot have a stack of `value` bytes.
/// - `NV_ERR_NOT_SUPPORTED`: `limit` is `TEGRARM_LIMIT_HEAP_SIZE` and `value` is not 0.
/// - `NV_ERR_NO_MEMORY`: there is not enough memory for the stacks of all threads. The limit stays as it was.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the device.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_device_set_limit(device: *mut tegrarm_device, limit: NvU32, value: NvU64) -> NV_STATUS {
    status(|| {
        let device = DEVICES.get(device)?;
        match limit {
            STACK_SIZE => device.set_stack(value),
            HEAP_SIZE if value == 0 => Ok(()),
            HEAP_SIZE => fail!(
                NV_ERR_NOT_SUPPORTED,
                "a heap of {value} bytes: modules that call malloc are not loaded, so that nothing would use it"
            ),
            other => Err(unknown(other)),
        }
    })
}
