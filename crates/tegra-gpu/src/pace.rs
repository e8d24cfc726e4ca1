//! How long work takes in modelled time, besides what the engine estimates.

use sm87_model::{Estimate, Machine};
use tegra_hw::Speeds;

/// The work of the front end for a launch: it reads the descriptor and starts the first CTAs. It is the same for all grids, so it
/// does not change their order. The number is chosen and not measured.
const LAUNCH_NS: u64 = 1024;
/// The same for a copy.
const COPY_NS: u64 = 1024;

/// The machine for which the engine estimates grids.
pub(crate) fn machine(speeds: Speeds) -> Machine {
    let Speeds { gpu_hz, dram_bytes_per_second, l2_bytes, l2_slices } = speeds;
    Machine { hz: gpu_hz, dram_bytes_per_second, l2_bytes, l2_slices }
}

/// The nanoseconds of a grid.
pub(crate) fn grid_ns(estimate: Option<Estimate>) -> u64 {
    LAUNCH_NS + estimate.map_or(0, |estimate| estimate.ns)
}

/// The nanoseconds of a copy that reads and writes so many bytes together. It moves as many in a second as a kernel does.
pub(crate) fn copy_ns(speeds: Speeds, bytes: u64) -> u64 {
    let ns = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(machine(speeds).moved_per_second().max(1)));
    COPY_NS.saturating_add(u64::try_from(ns).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_takes_its_bytes_at_the_bandwidth_of_the_dram() {
        let speeds = Speeds { gpu_hz: 1, dram_bytes_per_second: 204_800_000_000, l2_bytes: 4 << 20, l2_slices: 8 };
        assert_eq!(copy_ns(speeds, 0), COPY_NS);
        assert_eq!(copy_ns(speeds, 1_832_960), COPY_NS + 10_000, "895 thousandths");
        assert_eq!(grid_ns(None), LAUNCH_NS);
    }
}
