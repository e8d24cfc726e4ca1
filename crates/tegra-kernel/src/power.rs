//! The power modes of the modules, as nvpmodel sets them: one row for each.
//!
//! The rows have the numbers of NVIDIA's configuration files for `nvpmodel` (docs/hardware/nvgpu-nodes.md#power-modes). What a mode does to
//! the CPU and to other engines is left out, because nothing of it is simulated.

/// A power mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerMode {
    /// The name that nvpmodel prints.
    pub(crate) name: &'static str,
    /// The TPCs that lose their power, as `tpc_pg_mask` has them, and those of each GPC that keep it.
    pub(crate) gated: u32,
    pub(crate) tpcs: &'static [u32],
    /// The highest clock of the GPU that devfreq allows, and the highest clock of the memory, in Hz.
    pub(crate) gpu_hz: u64,
    pub(crate) emc_hz: u64,
}

impl PowerMode {
    /// The name, as nvpmodel, `--power` and `TEGRARM_SIM_POWER` have it.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

/// A clock that a mode leaves as it is: -1 in the files, or 0 for the memory.
const FREE: u64 = u64::MAX;
const MHZ: u64 = 1_000_000;

/// A row: the name, the mask of the TPCs that lose their power (`TPC_PG_MASK`), and the clocks in Hz.
const fn mode(name: &'static str, gated: u32, gpu_hz: u64, emc_hz: u64) -> PowerMode {
    // Bits 0 to 3 are the TPCs of the first GPC.
    let tpcs: &[u32] = match gated {
        0 => &[0xf, 0xf],
        128 => &[0xf, 0x7],
        240 => &[0xf, 0],
        248 => &[0x7, 0],
        252 => &[0x3, 0],
        _ => panic!("no module has such a mask"),
    };
    PowerMode { name, gated, tpcs, gpu_hz, emc_hz }
}

/// nvpmodel_p3701_0000.conf.
pub(crate) const AGX_ORIN: &[PowerMode] = &[
    mode("MAXN", 0, FREE, FREE),
    mode("MODE_15W", 248, 408 * MHZ, 2133 * MHZ),
    mode("MODE_30W", 240, 612 * MHZ, FREE),
    mode("MODE_50W", 0, 816 * MHZ, FREE),
];
/// nvpmodel_p3701_0004.conf.
pub(crate) const AGX_ORIN_32: &[PowerMode] = &[
    mode("MAXN", 128, FREE, FREE),
    mode("MODE_15W", 248, 408 * MHZ, 2133 * MHZ),
    mode("MODE_30W", 240, 612 * MHZ, FREE),
    mode("MODE_40W", 128, 816 * MHZ, FREE),
];
/// nvpmodel_p3767_0000.conf.
pub(crate) const ORIN_NX: &[PowerMode] = &[
    mode("MAXN", 240, FREE, FREE),
    mode("10W", 252, 612 * MHZ, 2133 * MHZ),
    mode("15W", 252, 612 * MHZ, FREE),
    mode("25W", 240, 408 * MHZ, FREE),
];
/// nvpmodel_p3767_0001.conf.
pub(crate) const ORIN_NX_8: &[PowerMode] = &[
    mode("MAXN", 240, FREE, FREE),
    mode("10W", 252, 612 * MHZ, 2133 * MHZ),
    mode("15W", 252, 612 * MHZ, FREE),
    mode("20W", 240, 408 * MHZ, FREE),
];
/// nvpmodel_p3767_0000_super.conf.
pub(crate) const ORIN_NX_SUPER: &[PowerMode] = &[
    mode("MAXN_SUPER", 240, FREE, FREE),
    mode("10W", 252, 612 * MHZ, 2133 * MHZ),
    mode("15W", 252, 612 * MHZ, FREE),
    mode("25W", 240, 408 * MHZ, FREE),
    mode("40W", 240, 1173 * MHZ, FREE),
];
/// nvpmodel_p3767_0001_super.conf.
pub(crate) const ORIN_NX_8_SUPER: &[PowerMode] = &[
    mode("MAXN_SUPER", 240, FREE, FREE),
    mode("10W", 252, 612 * MHZ, 2133 * MHZ),
    mode("15W", 252, 612 * MHZ, FREE),
    mode("20W", 240, 408 * MHZ, FREE),
    mode("40W", 240, 1173 * MHZ, FREE),
];
/// nvpmodel_p3767_0003.conf.
pub(crate) const ORIN_NANO: &[PowerMode] = &[mode("15W", 240, FREE, FREE), mode("7W", 252, 408 * MHZ, 2133 * MHZ)];
/// nvpmodel_p3767_0004.conf.
pub(crate) const ORIN_NANO_4: &[PowerMode] = &[
    mode("10W", 252, FREE, FREE),
    mode("7W_AI", 252, 408 * MHZ, 2133 * MHZ),
    mode("7W_CPU", 252, 306 * MHZ, 2133 * MHZ),
];
/// nvpmodel_p3767_0003_super.conf.
pub(crate) const ORIN_NANO_SUPER: &[PowerMode] = &[
    mode("MAXN_SUPER", 240, FREE, FREE),
    mode("15W", 240, 612 * MHZ, 2133 * MHZ),
    mode("25W", 240, 918 * MHZ, 3199 * MHZ),
];
/// nvpmodel_p3767_0004_super.conf.
pub(crate) const ORIN_NANO_4_SUPER: &[PowerMode] = &[
    mode("MAXN_SUPER", 252, FREE, FREE),
    mode("10W", 252, 612 * MHZ, 2133 * MHZ),
    mode("25W", 252, 1020 * MHZ, 3199 * MHZ),
];
