//! PTIMER, the only clock: semaphores, the usermode page, traces and `SR_GLOBALTIMER` read it.

use nix::time::{ClockId, clock_gettime};

/// The time of PTIMER now, in nanoseconds since boot. Its counter runs at 31.25 MHz, so the low five bits are zero.
pub fn time_ns() -> u64 {
    // CLOCK_MONOTONIC exists on every Linux. If it failed, the zero would only stop the simulated clock.
    let now =
        clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64);
    now & !0x1f
}
