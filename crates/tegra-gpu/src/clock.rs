//! PTIMER: the one clock of semaphores, the usermode page, traces and `SR_GLOBALTIMER`.

use nix::time::{ClockId, clock_gettime};

/// PTIMER now, in nanoseconds since boot: a 31.25 MHz counter, so the low five bits are zero.
pub fn time_ns() -> u64 {
    // CLOCK_MONOTONIC exists on every Linux; a zero would only stop the simulated clock.
    let now =
        clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64);
    now & !0x1f
}
