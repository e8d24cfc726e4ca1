//! How a device is doing.

use super::super::guard::status;
use super::super::objects::NV_STATUS;
use super::handles::DEVICES;
use super::opaque::tegrarm_device;
use super::pointers::{grown, present};
use crate::rm::profile::Sensors;
use std::ffi::c_char;

/// `tegrarm_device_state.load` where the system does not say it.
pub const TEGRARM_LOAD_UNKNOWN: u32 = u32::MAX;
/// `tegrarm_device_state.temperature` where the system does not say it.
pub const TEGRARM_TEMPERATURE_UNKNOWN: i32 = i32::MAX;
/// `tegrarm_device_state.power_mode` where the system does not say it.
pub const TEGRARM_POWER_MODE_UNKNOWN: u32 = u32::MAX;
/// Bytes of `tegrarm_device_state.power_mode_name`, with its NUL.
pub const TEGRARM_POWER_MODE_SIZE: usize = 64;

/// The present state of a device. Set `size` to `sizeof(struct tegrarm_device_state)` before the call. At most that
/// many bytes are written. Later versions only append fields.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct tegrarm_device_state {
    /// Before the call, how many bytes the caller has. After it, how many bytes are valid.
    pub size: usize,
    /// The clock of the GPU in hertz, or 0 where the system does not say it.
    pub clock_hz: u64,
    /// The lowest clock that the system allows now, in hertz, or 0.
    pub min_clock_hz: u64,
    /// The highest clock that the system allows now, in hertz, or 0.
    pub max_clock_hz: u64,
    /// How many bytes of memory can be allocated.
    pub memory_available: u64,
    /// How many bytes of memory there are.
    pub memory_total: u64,
    /// How busy the GPU is with the work of all programs, in thousandths, or `TEGRARM_LOAD_UNKNOWN`.
    pub load: u32,
    /// The temperature of the GPU in thousandths of a degree Celsius, or `TEGRARM_TEMPERATURE_UNKNOWN`.
    pub temperature: i32,
    /// The number of the power mode of nvpmodel, or `TEGRARM_POWER_MODE_UNKNOWN`.
    pub power_mode: u32,
    /// The name of the power mode, for example `MAXN`, with a NUL at its end. It is empty where the system does not say it.
    pub power_mode_name: [c_char; TEGRARM_POWER_MODE_SIZE],
}

impl tegrarm_device_state {
    fn of(found: &Sensors, (memory_available, memory_total): (u64, u64)) -> tegrarm_device_state {
        let (power_mode, name) = match &found.power_mode {
            Some((number, name)) => (*number, name.as_str()),
            None => (TEGRARM_POWER_MODE_UNKNOWN, ""),
        };
        let mut power_mode_name = [0; TEGRARM_POWER_MODE_SIZE];
        for (to, from) in power_mode_name[..TEGRARM_POWER_MODE_SIZE - 1].iter_mut().zip(name.bytes()) {
            *to = from as c_char;
        }
        tegrarm_device_state {
            size: size_of::<tegrarm_device_state>(),
            clock_hz: found.clock.unwrap_or(0),
            min_clock_hz: found.lowest_clock.unwrap_or(0),
            max_clock_hz: found.highest_clock.unwrap_or(0),
            memory_available,
            memory_total,
            load: found.load.unwrap_or(TEGRARM_LOAD_UNKNOWN),
            temperature: found.temperature.unwrap_or(TEGRARM_TEMPERATURE_UNKNOWN),
            power_mode,
            power_mode_name,
        }
    }
}

/// Writes how a device is doing to `*state`: clocks, memory, load, temperature, power mode. The call reads text files of the
/// system. What a file does not say has the value that the field names; that is no error.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `state` is NULL.
/// - `NV_ERR_INVALID_PARAM_STRUCT`: `state->size` is smaller than the first field.
/// - `NV_ERR_OBJECT_NOT_FOUND`: `device` is not an open device.
/// - `NV_ERR_OPERATING_SYSTEM`: the system does not say how much memory there is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_device_state(
    device: *mut tegrarm_device,
    state: *mut tegrarm_device_state,
) -> NV_STATUS {
    status(|| {
        present(state, "state")?;
        let device = DEVICES.get(device)?;
        let found = tegrarm_device_state::of(&device.rm().sensors(), device.memory()?);
        // SAFETY: `state` is not NULL and so valid for as many bytes as its first field says, as `tegrarm_device_state` asks of
        // its caller.
        unsafe { grown(state, found, |state, size| state.size = size, "state") }
    })
}
