//! Measures the rates that a device reaches.

use super::super::guard::status;
use super::super::library::tegrarm_device_profile;
use super::super::objects::NV_STATUS;
use super::handles::DEVICES;
use super::opaque::tegrarm_device;
use super::pointers::{grown, present};
use crate::runtime::device::measure::LONG;

/// Writes the figures of a device to `*profile`, as `tegrarm_device_profile` does, with measured rates, bandwidths and launch
/// latency in place of those of the design, and with `measured` set. Set `size` to `sizeof(struct tegrarm_device_profile)` before
/// the call. At most that many bytes are written.
///
/// The call runs short kernels and copies on the device, which takes some tenths of a second, and waits for them. Other work that
/// the GPU does at the same time makes the figures worse. The figures of a simulated GPU are those of the computer on which it runs.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `profile` is NULL.
/// - `NV_ERR_INVALID_PARAM_STRUCT`: `profile->size` is smaller than the first field.
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
/// - `NV_ERR_NO_MEMORY`: there is not enough memory for the buffers of the measurement, which have 16 MiB.
/// - `NV_ERR_RESET_REQUIRED`: a fault stopped the device. `tegrarm_device_fault` describes it.
/// - `NV_ERR_TIMEOUT`: a measurement was not over after a minute.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_device_measure(
    device: *mut tegrarm_device,
    profile: *mut tegrarm_device_profile,
) -> NV_STATUS {
    status(|| {
        present(profile, "profile")?;
        let device = DEVICES.get(device)?;
        let found = tegrarm_device_profile::of(&device.measure(LONG)?);
        // SAFETY: `profile` is not NULL and so valid for as many bytes as its first field says, as `tegrarm_device_measure` asks
        // of its caller.
        unsafe { grown(profile, found, |profile, size| profile.size = size, "profile") }
    })
}
