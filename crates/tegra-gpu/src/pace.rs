//! How long work takes in modelled time, besides what the engine estimates.

use sm87_model::{Estimate, Machine};
use tegra_hw::Speeds;

/// The work of the front end for a launch: it reads the descriptor and starts the first CTAs. It is the same for all grids, so it
/// does not change their order. The number is chosen and not measured.
const LAUNCH_NS: u64 = 1024;
/// The same for a copy.
const COPY_NS: u64 = 1024;

/// The machine for which the engine estimates a grid, when the GPU has worked for `busy_ns` since it was idle.
pub(crate) fn machine(speeds: Speeds, busy_ns: u64) -> Machine {
    let Speeds { dram_bytes_per_second, l2_bytes, l2_slices, .. } = speeds;
    Machine { hz: clock(speeds, busy_ns), dram_bytes_per_second, l2_bytes, l2_slices }
}

/// The frequency of the GPU's clock when the GPU has worked for `busy_ns` since it was idle. It begins with the lowest one of devfreq and
/// rises evenly for as long as the user says (`TEGRARM_SIM_CLOCK_RAMP_MS`). A launch keeps the clock with which it begins. That of the
/// DRAM does not change.
fn clock(speeds: Speeds, busy_ns: u64) -> u64 {
    let Speeds { gpu_hz, lowest_hz, ramp_ns, .. } = speeds;
    if busy_ns >= ramp_ns {
        return gpu_hz;
    }
    let risen = u128::from(gpu_hz.saturating_sub(lowest_hz)) * u128::from(busy_ns) / u128::from(ramp_ns);
    lowest_hz + risen as u64
}

/// The nanoseconds of a grid.
pub(crate) fn grid_ns(estimate: Option<Estimate>) -> u64 {
    LAUNCH_NS + estimate.map_or(0, |estimate| estimate.ns)
}

/// The nanoseconds of a copy that reads and writes so many bytes together. It moves as many in a second as a kernel does.
pub(crate) fn copy_ns(speeds: Speeds, bytes: u64) -> u64 {
    let ns = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(machine(speeds, 0).moved_per_second().max(1)));
    COPY_NS.saturating_add(u64::try_from(ns).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEEDS: Speeds = Speeds {
        gpu_hz: 1_300_000_000,
        dram_bytes_per_second: 204_800_000_000,
        l2_bytes: 4 << 20,
        l2_slices: 8,
        lowest_hz: 306_000_000,
        ramp_ns: 0,
        launch_ns: 0,
    };

    #[test]
    fn the_clock_rises_while_the_gpu_works() {
        let ramp = Speeds { ramp_ns: 20_000_000, ..SPEEDS };
        let clocks = [0, 10_000_000, 19_999_999, 20_000_000, u64::MAX].map(|busy| machine(ramp, busy).hz);
        assert_eq!(clocks, [306_000_000, 803_000_000, 1_299_999_950, 1_300_000_000, 1_300_000_000]);
        assert_eq!(machine(SPEEDS, 0).hz, 1_300_000_000, "without the parameter it is always the highest one");
        assert_eq!(copy_ns(ramp, 1_832_960), copy_ns(SPEEDS, 1_832_960), "the DRAM's does not change");
    }

    #[test]
    fn a_copy_takes_its_bytes_at_the_bandwidth_of_the_dram() {
        assert_eq!(copy_ns(SPEEDS, 0), COPY_NS);
        assert_eq!(copy_ns(SPEEDS, 1_832_960), COPY_NS + 10_000, "895 thousandths");
        assert_eq!(grid_ns(None), LAUNCH_NS);
    }
}
