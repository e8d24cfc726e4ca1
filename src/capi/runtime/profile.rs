//! Profiles, which say what a device did and when.

use super::super::guard::status;
use super::super::objects::NV_STATUS;
use super::super::shield;
use super::handles::DEVICES;
use super::opaque::tegrarm_device;
use crate::runtime::channel::profile::{Record, What};
use std::ffi::{CString, c_char, c_void};
use std::sync::Arc;
use tegrarm_abi::rm::status::*;
use tegrarm_rm::status::fail;

/// The kind of a piece of work: a value of `tegrarm_profile_record.kind`. Later versions may add values.
#[repr(C)]
#[allow(non_camel_case_types, reason = "the names are C's")]
pub enum tegrarm_profile_kind {
    /// A kernel ran.
    TEGRARM_PROFILE_KERNEL = 0,
    /// Bytes were copied.
    TEGRARM_PROFILE_COPY = 1,
    /// Bytes were filled.
    TEGRARM_PROFILE_FILL = 2,
}

/// A piece of work that has finished. Later versions only append fields.
#[repr(C)]
#[allow(non_camel_case_types)]
pub struct tegrarm_profile_record {
    /// How many bytes are valid.
    pub size: usize,
    /// A value of `enum tegrarm_profile_kind`.
    pub kind: u32,
    /// The number of its queue: 0 is the one that the device was opened with.
    pub queue: u32,
    /// The name of the kernel, or `"copy"` or `"fill"`. It is valid during the call.
    pub name: *const c_char,
    /// How many bytes were copied or filled. It is 0 for a kernel.
    pub bytes: u64,
    /// Its fence.
    pub fence: u64,
    /// When it started, in nanoseconds of the GPU's clock: when the work before it had finished.
    pub start_ns: u64,
    /// When it had finished.
    pub end_ns: u64,
}

/// The type of a function that is called for work that has finished. `user` is the argument of `tegrarm_profile_start`.
#[allow(non_camel_case_types)]
pub type tegrarm_profile_callback =
    Option<unsafe extern "C-unwind" fn(record: *const tegrarm_profile_record, user: *mut c_void)>;

/// Has `callback` called with start and end of each kernel, copy and fill that the device is given from now on.
///
/// It is called in threads that are in `tegrarm_wait` or `tegrarm_profile_stop`, once for everything that has finished, in the
/// order of each queue, and in two threads at the same time if two wait. It may call any function but
/// `tegrarm_profile_stop` and `tegrarm_device_close`. `user` is passed to it.
///
/// Work is measured between two time stamps that the GPU writes, so that each piece waits for the one before. Launches take
/// longer to give to the GPU meanwhile. What replays do is not reported.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
/// - `NV_ERR_INVALID_POINTER`: `callback` is NULL.
/// - `NV_ERR_STATE_IN_USE`: the device is profiled already.
/// - `NV_ERR_NO_MEMORY`: there is not enough memory for the time stamps.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_profile_start(
    device: *mut tegrarm_device,
    callback: tegrarm_profile_callback,
    user: *mut c_void,
) -> NV_STATUS {
    status(|| {
        let device = DEVICES.get(device)?;
        let Some(callback) = callback else { fail!(NV_ERR_INVALID_POINTER, "callback is NULL") };
        let user = user as usize;
        device.start_profile(Arc::new(move |record| {
            with_record(record, |record| {
                // SAFETY: `callback` is what `tegrarm_profile_start` asks of its caller, and takes what the caller gave as
                // `user`.
                shield::call("tegrarm_profile_start", || unsafe { callback(record, user as *mut c_void) });
            });
        }))
    })
}

/// Waits for the work that the device was given before, has the callback called for the last of it, and ends the profile. The
/// callback is not called any more when the function has returned, unless another thread is in `tegrarm_wait`.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
/// - `NV_ERR_INVALID_STATE`: the device is not profiled.
#[unsafe(no_mangle)]
pub extern "C" fn tegrarm_profile_stop(device: *mut tegrarm_device) -> NV_STATUS {
    status(|| DEVICES.get(device)?.stop_profile())
}

/// Shows a record as C sees it.
fn with_record(record: &Record, show: impl FnOnce(&tegrarm_profile_record)) {
    let (kind, name, bytes) = match &record.what {
        What::Kernel { name } => (tegrarm_profile_kind::TEGRARM_PROFILE_KERNEL, name.as_str(), 0),
        What::Copy { bytes } => (tegrarm_profile_kind::TEGRARM_PROFILE_COPY, "copy", *bytes),
        What::Fill { bytes } => (tegrarm_profile_kind::TEGRARM_PROFILE_FILL, "fill", *bytes),
    };
    // The name of a kernel comes from a table of strings that end with a zero, so it contains no zero.
    let name = CString::new(name).unwrap_or_default();
    show(&tegrarm_profile_record {
        size: size_of::<tegrarm_profile_record>(),
        kind: kind as u32,
        queue: record.queue as u32,
        name: name.as_ptr(),
        bytes,
        fence: record.fence,
        start_ns: record.start,
        end_ns: record.end,
    });
}
