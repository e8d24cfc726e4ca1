//! How a device is doing.

use super::super::guard::status;
use super::super::instance;
use super::super::objects::{NV_STATUS, NvU32};
use super::handles::DEVICES;
use super::opaque::tegrarm_device;
use super::pointers::{grown, present};
use std::ffi::c_char;
use tegrarm_rm::rm::profile::Sensors;

/// `tegrarm_device_state.load` where the system does not say it.
pub const TEGRARM_LOAD_UNKNOWN: u32 = u32::MAX;
/// `tegrarm_device_state.temperature` where the system does not say it.
pub const TEGRARM_TEMPERATURE_UNKNOWN: i32 = i32::MAX;
/// `tegrarm_device_state.power_mode` where the system does not say it.
pub const TEGRARM_POWER_MODE_UNKNOWN: u32 = u32::MAX;
/// Bytes of `tegrarm_device_state.power_mode_name`, with its NUL.
pub const TEGRARM_POWER_MODE_SIZE: usize = 64;

/// `tegrarm_device_state.power` where the system does not say it.
pub const TEGRARM_POWER_UNKNOWN: u64 = u64::MAX;
/// Bytes of `tegrarm_device_state.power_rail`, with its NUL.
pub const TEGRARM_POWER_RAIL_SIZE: usize = 32;

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
    /// The power of the rail that feeds the GPU, in milliwatts, or `TEGRARM_POWER_UNKNOWN`. On an Orin other parts of the chip have
    /// the same rail.
    pub power: u64,
    /// The temperature at which the system begins to lower clocks, in thousandths of a degree Celsius, or
    /// `TEGRARM_TEMPERATURE_UNKNOWN`.
    pub temperature_slowdown: i32,
    /// The temperature at which the system switches itself off, in thousandths of a degree Celsius, or `TEGRARM_TEMPERATURE_UNKNOWN`.
    pub temperature_shutdown: i32,
    /// The name of that rail, for example `VDD_GPU_SOC`, with a NUL at its end. It is empty where the system does not say it.
    pub power_rail: [c_char; TEGRARM_POWER_RAIL_SIZE],
}

impl tegrarm_device_state {
    fn of(found: &Sensors, (memory_available, memory_total): (u64, u64)) -> tegrarm_device_state {
        let (power_mode, name) = match &found.power_mode {
            Some((number, name)) => (*number, name.as_str()),
            None => (TEGRARM_POWER_MODE_UNKNOWN, ""),
        };
        let (rail, power) = found.power.as_ref().map_or(("", TEGRARM_POWER_UNKNOWN), |(rail, power)| (rail, *power));
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
            power_mode_name: text(name),
            power,
            temperature_slowdown: found.slowdown.unwrap_or(TEGRARM_TEMPERATURE_UNKNOWN),
            temperature_shutdown: found.shutdown.unwrap_or(TEGRARM_TEMPERATURE_UNKNOWN),
            power_rail: text(rail),
        }
    }
}

/// A text with its NUL. What has no room is left out.
fn text<const N: usize>(from: &str) -> [c_char; N] {
    let mut to = [0; N];
    for (to, from) in to[..N - 1].iter_mut().zip(from.bytes()) {
        *to = from as c_char;
    }
    to
}

/// Writes how a device is doing to `*state`: clocks, memory, load, temperature, power, power mode. The call reads text files of the
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

/// Does what `tegrarm_device_state` does for GPU `index`, which need not be open. Monitors use it: no descriptor of the GPU is opened,
/// and the GPU is given nothing to do.
///
/// Errors:
/// - `NV_ERR_INVALID_POINTER`: `state` is NULL.
/// - `NV_ERR_INVALID_PARAM_STRUCT`: `state->size` is smaller than the first field.
/// - `NV_ERR_INVALID_DEVICE`: there is no GPU `index`.
/// - `NV_ERR_OPERATING_SYSTEM`: the system does not say how much memory there is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_gpu_state(index: NvU32, state: *mut tegrarm_device_state) -> NV_STATUS {
    status(|| {
        present(state, "state")?;
        let (sensors, memory) = instance::get()?.state(index)?;
        let found = tegrarm_device_state::of(&sensors, memory);
        // SAFETY: `state` is not NULL and so valid for as many bytes as its first field says, as `tegrarm_gpu_state` asks of
        // its caller.
        unsafe { grown(state, found, |state, size| state.size = size, "state") }
    })
}
