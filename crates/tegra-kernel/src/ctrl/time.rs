//! The GPU time, and its relation to the CPU time (docs/hardware/nvgpu-ctrl.md#time).

use super::node::Ctrl;
use crate::dispatch::{Call, Reply};
use nix::time::{ClockId, clock_gettime};
use std::sync::Arc;
use tegrarm_abi::nvgpu::ctrl::*;
use tegrarm_kmd::Errno;

pub(super) fn gpu_time(call: &Call<'_>, _: &Arc<Ctrl>, args: &mut nvgpu_gpu_get_gpu_time_args) -> Reply {
    args.gpu_timestamp = call.board.gpu.time_ns();
    Ok(())
}

pub(super) fn correlation(
    call: &Call<'_>,
    _: &Arc<Ctrl>,
    args: &mut nvgpu_gpu_get_cpu_time_correlation_info_args,
) -> Reply {
    let os_time = args.source_id == NVGPU_GPU_GET_CPU_TIME_CORRELATION_INFO_SRC_ID_OSTIME && !call.is_r35();
    let tsc = args.source_id == NVGPU_GPU_GET_CPU_TIME_CORRELATION_INFO_SRC_ID_TSC;
    if args.count > NVGPU_GPU_GET_CPU_TIME_CORRELATION_INFO_MAX_COUNT || !(os_time || tsc) {
        return Err(Errno::EINVAL.into());
    }
    for sample in &mut args.samples[..args.count as usize] {
        sample.cpu_timestamp = if tsc { host_ns() / NS_PER_TICK } else { unix_us() };
        sample.gpu_timestamp = call.board.gpu.time_ns();
    }
    Ok(())
}

/// The processor's counter runs at 31.25 MHz on Orin.
const NS_PER_TICK: u64 = 32;

fn ns(clock: ClockId) -> u64 {
    clock_gettime(clock).map_or(0, |t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
}

/// The time of the system: microseconds since 1970.
fn unix_us() -> u64 {
    ns(ClockId::CLOCK_REALTIME) / 1000
}

/// CLOCK_MONOTONIC in nanoseconds.
pub(crate) fn host_ns() -> u64 {
    ns(ClockId::CLOCK_MONOTONIC)
}
