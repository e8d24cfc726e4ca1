//! Load and clocks.

use super::Device;
use crate::abi::*;
use crate::pointers::{give, list};
use crate::result::{Answer, known};
use crate::session::{board, device, state};

const REASONS: u64 = nvmlClocksEventReasonGpuIdle
    | nvmlClocksEventReasonApplicationsClocksSetting
    | nvmlClocksEventReasonSwThermalSlowdown;

fn megahertz(hertz: u64) -> u32 {
    u32::try_from(hertz / 1_000_000).unwrap_or(u32::MAX)
}

pub unsafe fn utilization(of: Device, to: *mut nvmlUtilization_t) -> Answer {
    let load = known(state(of)?.load)?;
    let memory = board(|board| board.memory_load()).unwrap_or(0);
    // SAFETY: see `super`.
    unsafe { give(to, nvmlUtilization_t { gpu: load.div_ceil(10).min(100), memory }) }
}

pub unsafe fn clock(of: Device, kind: u32, to: *mut u32) -> Answer {
    let hertz = match kind {
        NVML_CLOCK_GRAPHICS | NVML_CLOCK_SM => state(of)?.clock,
        NVML_CLOCK_MEM => device(of).map(|_| board(|board| board.memory_clock()))?,
        NVML_CLOCK_VIDEO => device(of).map(|_| None)?,
        _ => return Err(NVML_ERROR_INVALID_ARGUMENT),
    };
    // SAFETY: see `super`.
    unsafe { give(to, megahertz(known(hertz)?)) }
}

pub unsafe fn max_clock(of: Device, kind: u32, to: *mut u32) -> Answer {
    let gpu = device(of)?;
    let hertz = match kind {
        NVML_CLOCK_GRAPHICS | NVML_CLOCK_SM => Some(gpu.highest_clock),
        NVML_CLOCK_MEM => board(|board| board.highest_memory_clock()),
        NVML_CLOCK_VIDEO => None,
        _ => return Err(NVML_ERROR_INVALID_ARGUMENT),
    };
    // SAFETY: see `super`.
    unsafe { give(to, megahertz(known(hertz)?)) }
}

pub unsafe fn clock_by_id(of: Device, kind: u32, id: u32, to: *mut u32) -> Answer {
    device(of)?;
    if id != NVML_CLOCK_ID_CURRENT {
        return Err(NVML_ERROR_NOT_SUPPORTED);
    }
    // SAFETY: see `super`.
    unsafe { clock(of, kind, to) }
}

/// The steps in megahertz, the highest one first, as NVML has them.
pub unsafe fn supported(of: Device, _memory: u32, count: *mut u32, to: *mut u32) -> Answer {
    device(of)?;
    let mut steps: Vec<u32> = known(board(|board| board.clocks()))?.into_iter().map(megahertz).collect();
    steps.sort_unstable_by(|a, b| b.cmp(a));
    // SAFETY: see `super`.
    unsafe { list(count, to, steps) }
}

pub unsafe fn reasons(of: Device, to: *mut u64) -> Answer {
    let (now, highest) = (state(of)?, device(of)?.highest_clock);
    let mut found = 0;
    if now.load == Some(0) && now.clock.is_some() && now.clock == now.lowest_clock {
        found |= nvmlClocksEventReasonGpuIdle;
    }
    if now.highest_clock.is_some_and(|limit| limit < highest) {
        found |= nvmlClocksEventReasonApplicationsClocksSetting;
    }
    if let (Some(temperature), Some(slowdown)) = (now.temperature, now.slowdown)
        && temperature >= slowdown
    {
        found |= nvmlClocksEventReasonSwThermalSlowdown;
    }
    // SAFETY: see `super`.
    unsafe { give(to, found) }
}

pub unsafe fn supported_reasons(of: Device, to: *mut u64) -> Answer {
    device(of)?;
    // SAFETY: see `super`.
    unsafe { give(to, REASONS) }
}
