//! Queues of a device.

use super::super::guard::status;
use super::super::objects::NV_STATUS;
use super::handles::{DEVICES, QUEUES};
use super::opaque::{tegrarm_device, tegrarm_queue};
use super::pointers::give;
use crate::status::fail;
use std::sync::Arc;
use tegrarm_abi::rm::status::*;

/// Gives the handle of the queue that a device was opened with: the one of `tegrarm_launch`, `tegrarm_copy` and
/// `tegrarm_fill`. It is the same at every call, and ends with the device.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
/// - `NV_ERR_INVALID_POINTER`: `queue` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_device_queue(
    device: *mut tegrarm_device,
    queue: *mut *mut tegrarm_queue,
) -> NV_STATUS {
    status(|| {
        let device = DEVICES.get(device)?;
        let Some(found) = QUEUES.find(|queue| Arc::ptr_eq(&queue.device, &device)) else {
            fail!(NV_ERR_OBJECT_NOT_FOUND, "another thread closed the device");
        };
        // SAFETY: `queue` is NULL or valid for writes, as `tegrarm_device_queue` asks of its caller.
        unsafe { give(queue, found, "queue") }
    })
}
