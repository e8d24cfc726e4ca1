//! Temperature, power and the fan.

use super::Device;
use crate::abi::*;
use crate::gpu::State;
use crate::pointers::{give, present, take, version};
use crate::result::{Answer, known};
use crate::session::{board, device, state};

/// Whole degrees, for a sensor with thousandths. A sensor that is off reads far below zero, which is no temperature.
fn degrees(thousandths: Option<i32>) -> Answer<u32> {
    known(thousandths.and_then(|value| u32::try_from(value / 1000).ok()))
}

pub unsafe fn temperature(of: Device, sensor: u32, to: *mut u32) -> Answer {
    let now = state(of)?;
    if sensor != NVML_TEMPERATURE_GPU {
        return Err(NVML_ERROR_INVALID_ARGUMENT);
    }
    // SAFETY: see `super`.
    unsafe { give(to, degrees(now.temperature)?) }
}

pub unsafe fn temperature_v(of: Device, to: *mut nvmlTemperature_t) -> Answer {
    let now = state(of)?;
    // SAFETY: see `super`.
    let mut asked = unsafe {
        version(to, nvmlTemperature_v1)?;
        take(to)
    }?;
    if asked.sensorType != NVML_TEMPERATURE_GPU {
        return Err(NVML_ERROR_INVALID_ARGUMENT);
    }
    asked.temperature = degrees(now.temperature)? as i32;
    // SAFETY: see `super`.
    unsafe { give(to, asked) }
}

pub unsafe fn threshold(of: Device, kind: u32, to: *mut u32) -> Answer {
    let now = state(of)?;
    let found = match kind {
        NVML_TEMPERATURE_THRESHOLD_SHUTDOWN => now.shutdown,
        NVML_TEMPERATURE_THRESHOLD_SLOWDOWN => now.slowdown,
        _ => None,
    };
    // SAFETY: see `super`.
    unsafe { give(to, degrees(found)?) }
}

pub unsafe fn margin(of: Device, to: *mut nvmlMarginTemperature_t) -> Answer {
    let now = state(of)?;
    // SAFETY: see `super`.
    unsafe { version(to, nvmlMarginTemperature_v1) }?;
    let (slowdown, temperature) = (degrees(now.slowdown)?, degrees(now.temperature)?);
    let margin = slowdown as i32 - temperature as i32;
    // SAFETY: see `super`.
    unsafe { give(to, nvmlMarginTemperature_t { version: nvmlMarginTemperature_v1, marginTemperature: margin }) }
}

fn milliwatts(now: &State) -> Answer<u32> {
    known(now.power.and_then(|power| u32::try_from(power).ok()))
}

pub unsafe fn power(of: Device, to: *mut u32) -> Answer {
    let now = state(of)?;
    // SAFETY: see `super`.
    unsafe { give(to, milliwatts(&now)?) }
}

pub unsafe fn fan_speed(of: Device, to: *mut u32) -> Answer {
    // SAFETY: see `super`.
    unsafe { fan_speed_of(of, 0, to) }
}

pub unsafe fn fan_speed_of(of: Device, fan: u32, to: *mut u32) -> Answer {
    device(of)?;
    let speed = known(board(|board| board.fan()))?;
    if fan != 0 {
        return Err(NVML_ERROR_INVALID_ARGUMENT);
    }
    // SAFETY: see `super`.
    unsafe { give(to, speed) }
}

pub unsafe fn fans(of: Device, to: *mut u32) -> Answer {
    device(of)?;
    // SAFETY: see `super`.
    unsafe { give(to, u32::from(board(|board| board.fan()).is_some())) }
}

pub unsafe fn field_values(of: Device, count: i32, fields: *mut nvmlFieldValue_t) -> Answer {
    let now = state(of)?;
    present(fields)?;
    let count = usize::try_from(count).map_err(|_| NVML_ERROR_INVALID_ARGUMENT)?;
    for at in 0..count {
        // SAFETY: the caller passes `count` fields, see `super`.
        let field = unsafe { fields.add(at) };
        // SAFETY: as above.
        let mut value = unsafe { take(field) }?;
        let found = match value.fieldId {
            NVML_FI_DEV_POWER_INSTANT => milliwatts(&now),
            NVML_FI_DEV_GPU_TEMP => degrees(now.temperature),
            _ => Err(NVML_ERROR_NOT_SUPPORTED),
        };
        value.nvmlReturn = found.err().unwrap_or(NVML_SUCCESS);
        value.valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
        value.value = nvmlValue_t { ullVal: u64::from(found.unwrap_or(0)) };
        (value.timestamp, value.latencyUsec) = (microseconds(), 0);
        // SAFETY: as above.
        unsafe { give(field, value) }?;
    }
    Ok(())
}

/// The time of day, in microseconds.
fn microseconds() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| i64::try_from(now.as_micros()).unwrap_or(i64::MAX))
}
