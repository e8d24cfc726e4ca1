//! The simulated modules. Each module has one row.
//!
//! `agx-orin-pg` is the board of the published logs (docs/hardware/nvgpu-observed.md#observed-gpu), value by value. The
//! others differ from it only in floorsweeping, clocks and memory (docs/hardware/nvgpu-nodes.md#orin-modules). Values
//! that no log shows (masks of NX and Nano, clock tables, carveout sizes) are plausible and not observed.

use crate::config::{Chip, SimConfig};
use crate::power::PowerMode;
use once_cell::race::OnceBox;
use tegra_hw::Speeds;
use tegrarm_abi::nvmap::{NVMAP_HEAP_CARVEOUT_FSI, NVMAP_HEAP_CARVEOUT_VPR};
use tegrarm_abi::rm::classes::*;

/// Memory that nvmap hands out and that the kernel does not manage as its own.
#[derive(Debug)]
pub(crate) struct Carveout {
    /// The heap bit.
    pub heap: u32,
    /// The size in bytes.
    pub size: u64,
}

/// The number of PES in a GPC, which each serve some of its TPCs.
pub(crate) const PES: u32 = 2;

/// The class numbers that the characteristics report.
#[derive(Debug)]
pub(crate) struct Classes {
    pub twod: u32,
    pub threed: u32,
    pub compute: u32,
    pub gpfifo: u32,
    pub inline_to_memory: u32,
    pub copy: u32,
}

/// One module.
#[derive(Debug)]
pub(crate) struct ChipData {
    pub arch: u32,
    pub implementation: u32,
    pub revision: u32,
    pub name: &'static str,
    /// The TPCs in each GPC that the chip can have. 0 means that the GPC is fused off or gated off.
    pub tpc_masks: &'static [u32],
    /// The TPCs that the power mode gates off, as `tpc_pg_mask` has them.
    pub tpc_gated: u32,
    pub tpc_per_gpc: u32,
    pub sm_per_tpc: u32,
    pub sm_version: u32,
    pub spa_version: u32,
    pub warps_per_tpc: u32,
    pub l2_size: u64,
    pub max_fbps: u32,
    pub fbp_mask: u32,
    pub ltc_per_fbp: u32,
    pub lts_per_ltc: u32,
    pub num_ltc: u32,
    /// The groups of four memory channels that exist.
    pub emc_mask: u32,
    /// The size of big pages of address spaces. 0 means that there are none.
    pub big_page: u32,
    pub available_big_pages: u32,
    pub classes: &'static Classes,
    /// The classes that ALLOC_OBJ_CTX accepts.
    pub valid_classes: &'static [u32],
    /// The steps of the GPC clock in Hz, ascending.
    pub frequencies: &'static [u64],
    pub carveouts: &'static [Carveout],
    /// The highest clock in Hz that the power mode leaves to devfreq. It is more than the highest step if the mode limits nothing.
    pub clock_limit: u64,
    /// The name of the devfreq directory on r36 and on r35.
    pub devfreq: [&'static str; 2],
    /// The bytes that the DRAM moves in a second (NVIDIA's data sheets of the modules).
    pub dram_bandwidth: u64,
}

const GA10B_CLASSES: Classes = Classes {
    twod: FERMI_TWOD_A,
    threed: 0xc797,
    compute: AMPERE_COMPUTE_B,
    gpfifo: 0xc76f,
    inline_to_memory: KEPLER_INLINE_TO_MEMORY_B,
    copy: AMPERE_DMA_COPY_B,
};
const GV11B_CLASSES: Classes = Classes {
    twod: FERMI_TWOD_A,
    threed: 0xc397,
    compute: 0xc3c0,
    gpfifo: 0xc36f,
    inline_to_memory: KEPLER_INLINE_TO_MEMORY_B,
    copy: 0xc3b5,
};
/// docs/hardware/nvgpu-channel.md#valid-classes: the classes of Volta, Pascal and Maxwell, and the three classes that
/// are the same on all chips.
const GV11B_VALID: &[u32] = &[
    0xc3c0, 0xc397, 0xc3b5, 0xc36f, 0xc0c0, 0xc097, 0xc0b5, 0xc06f, 0xb1c0, 0xb197, 0xb0b5, 0xb06f, 0xa0b5, 0xa140,
    0x902d,
];
/// docs/hardware/nvgpu-channel.md#valid-classes: the classes above, and those of Ampere and Turing.
const GA10B_VALID: &[u32] = &[
    0xc7c0, 0xc797, 0xc7b5, 0xc76f, 0xc637, 0xc5c0, 0xc597, 0xc5b5, 0xc46f, 0xc4b7, 0xc3c0, 0xc397, 0xc3b5, 0xc36f,
    0xc0c0, 0xc097, 0xc0b5, 0xc06f, 0xb1c0, 0xb197, 0xb0b5, 0xb06f, 0xa0b5, 0xa140, 0x902d,
];
const ORIN_CARVEOUTS: &[Carveout] = &[
    Carveout { heap: NVMAP_HEAP_CARVEOUT_VPR, size: 256 << 20 },
    Carveout { heap: NVMAP_HEAP_CARVEOUT_FSI, size: 16 << 20 },
];

const AGX_ORIN: ChipData = ChipData {
    arch: 0x170,
    implementation: 0xb,
    revision: 0xa1,
    name: "ga10b",
    tpc_masks: &[0xf, 0xf],
    tpc_gated: 0,
    tpc_per_gpc: 4,
    sm_per_tpc: 2,
    sm_version: 0x807,
    spa_version: 0x806,
    warps_per_tpc: 96,
    l2_size: 4 << 20,
    max_fbps: 2,
    fbp_mask: 3,
    ltc_per_fbp: 1,
    lts_per_ltc: 4,
    num_ltc: 2,
    emc_mask: 0xf,
    big_page: 0,
    available_big_pages: 0,
    classes: &GA10B_CLASSES,
    valid_classes: GA10B_VALID,
    frequencies: &[
        306_000_000,
        408_000_000,
        510_000_000,
        612_000_000,
        714_000_000,
        816_000_000,
        918_000_000,
        1_020_000_000,
        1_122_000_000,
        1_224_000_000,
        1_300_000_000,
    ],
    carveouts: ORIN_CARVEOUTS,
    clock_limit: u64::MAX,
    devfreq: ["17000000.gpu", "17000000.ga10b"],
    dram_bandwidth: 204_800_000_000,
};
const AGX_ORIN_PG: ChipData = ChipData { tpc_masks: &[0xf, 0], ..AGX_ORIN };
/// Seven TPCs, and the highest clock of the data sheet.
const AGX_ORIN_32: ChipData = ChipData {
    tpc_masks: &[0xf, 0x7],
    frequencies: &[
        306_000_000,
        408_000_000,
        510_000_000,
        612_000_000,
        714_000_000,
        816_000_000,
        918_000_000,
        930_750_000,
    ],
    ..AGX_ORIN
};
/// One FBP, and so half of the L2 cache (docs/hardware/nvgpu-observed.md#observed-modules).
const ORIN_NX: ChipData = ChipData {
    tpc_masks: &[0xf, 0],
    l2_size: 2 << 20,
    fbp_mask: 1,
    num_ltc: 1,
    emc_mask: 3,
    frequencies: &[306_000_000, 408_000_000, 510_000_000, 612_000_000, 714_000_000, 816_000_000, 918_000_000],
    dram_bandwidth: 102_400_000_000,
    ..AGX_ORIN
};
/// MAXN_SUPER of JetPack 6.2 (docs/hardware/nvgpu-nodes.md#super-modes).
const ORIN_NX_SUPER: ChipData = ChipData {
    frequencies: &[
        306_000_000,
        408_000_000,
        510_000_000,
        612_000_000,
        714_000_000,
        816_000_000,
        918_000_000,
        1_020_000_000,
        1_122_000_000,
        1_173_000_000,
    ],
    ..ORIN_NX
};
/// The highest clock of the data sheet. MAXN_SUPER is that of the larger module.
const ORIN_NX_8: ChipData = ChipData {
    frequencies: &[306_000_000, 408_000_000, 510_000_000, 612_000_000, 714_000_000, 765_000_000],
    ..ORIN_NX
};
const ORIN_NANO: ChipData = ChipData {
    frequencies: &[306_000_000, 408_000_000, 510_000_000, 624_750_000],
    dram_bandwidth: 68_000_000_000,
    ..ORIN_NX
};
const ORIN_NANO_SUPER: ChipData = ChipData {
    frequencies: &[
        306_000_000,
        408_000_000,
        510_000_000,
        612_000_000,
        714_000_000,
        816_000_000,
        918_000_000,
        1_020_000_000,
    ],
    dram_bandwidth: 102_000_000_000,
    ..ORIN_NANO
};
/// Two TPCs, and a memory of 64 bits.
const ORIN_NANO_4: ChipData =
    ChipData { tpc_masks: &[0x3, 0], emc_mask: 1, dram_bandwidth: 34_000_000_000, ..ORIN_NANO };
const ORIN_NANO_4_SUPER: ChipData =
    ChipData { tpc_masks: &[0x3, 0], emc_mask: 1, dram_bandwidth: 51_000_000_000, ..ORIN_NANO_SUPER };
const GV11B: ChipData = ChipData {
    arch: 0x150,
    tpc_masks: &[0xf],
    sm_version: 0x702,
    spa_version: 0x702,
    warps_per_tpc: 128,
    l2_size: 512 << 10,
    max_fbps: 1,
    fbp_mask: 1,
    num_ltc: 1,
    emc_mask: 0,
    big_page: 64 << 10,
    available_big_pages: 64 << 10,
    classes: &GV11B_CLASSES,
    valid_classes: GV11B_VALID,
    name: "gv11b",
    frequencies: &[
        114_750_000,
        216_750_000,
        318_750_000,
        420_750_000,
        522_750_000,
        624_750_000,
        675_750_000,
        828_750_000,
        905_250_000,
        1_032_750_000,
        1_198_500_000,
        1_236_750_000,
        1_338_750_000,
        1_377_000_000,
    ],
    devfreq: ["17000000.gv11b", "17000000.gv11b"],
    dram_bandwidth: 136_500_000_000,
    ..AGX_ORIN
};

/// The TPCs of each PES of a GPC, as masks: they are dealt out in turn.
fn pes_masks(tpcs: u32) -> [u32; PES as usize] {
    [0x5555_5555, 0xaaaa_aaaa].map(|every_other: u32| every_other & ((1 << tpcs) - 1))
}

/// The index of a TPC in its GPC if the TPCs of one PES are counted before those of the next.
fn index_by_pes(tpcs: u32, tpc: u32) -> u32 {
    let masks = pes_masks(tpcs);
    let (own, before) = ((tpc % PES) as usize, (1 << tpc) - 1);
    masks[..own].iter().map(|mask| mask.count_ones()).sum::<u32>() + (masks[own] & before).count_ones()
}

/// The driver's estimate of how fast the TPCs that are left would be without one of them: first the slowest GPC, then the share of
/// PES that still work, then how evenly the TPCs are divided.
fn speed_without(counts: &[u32], left: &[u32], (gpc, tpc): (usize, u32)) -> u32 {
    const WHOLE: u32 = 512;
    let rest = |g: usize| if g == gpc { left[g] & !(1 << tpc) } else { left[g] };
    let tpcs: Vec<u32> = (0..counts.len()).map(|g| rest(g).count_ones()).collect();
    let Some(&most @ 1..) = tpcs.iter().max() else { return 0 };
    let pes = |of: &dyn Fn(usize) -> u32| -> u32 {
        let works = |g: usize| pes_masks(counts[g]).iter().filter(|mask| *mask & of(g) != 0).count() as u32;
        (0..counts.len()).map(works).sum()
    };
    let slowest = tpcs.iter().zip(counts).map(|(tpcs, all)| WHOLE * tpcs / all).min().unwrap_or(WHOLE);
    let average = WHOLE * tpcs.iter().sum::<u32>() / counts.len() as u32;
    let deviation = tpcs.iter().map(|tpcs| average.abs_diff(WHOLE * tpcs)).sum::<u32>() / counts.len() as u32;
    let world = WHOLE * pes(&rest) / pes(&|g| (1 << counts[g]) - 1);
    (slowest << 20) + (world << 10) + (WHOLE - deviation / most)
}

impl ChipData {
    /// The module of a board, in the power mode that it is in.
    pub(crate) fn of(config: &SimConfig) -> &'static ChipData {
        static IN_MODES: OnceBox<Vec<(Chip, &PowerMode, ChipData)>> = OnceBox::new();
        let in_modes = || {
            let row = |chip: Chip, mode| (chip, mode, ChipData::of_module(chip).in_mode(mode));
            Box::new(Chip::all().flat_map(|chip| chip.power_modes().iter().map(move |mode| row(chip, mode))).collect())
        };
        let found = IN_MODES
            .get_or_init(in_modes)
            .iter()
            .find(|(chip, mode, _)| *chip == config.chip && Some(*mode) == config.power);
        found.map_or(ChipData::of_module(config.chip), |(_, _, data)| data)
    }

    /// The same module with what a power mode leaves of it.
    fn in_mode(&self, mode: &PowerMode) -> ChipData {
        // Each group of channels has 64 bits, and moves them twice in a cycle of the memory's clock.
        let moved = mode.emc_hz.saturating_mul(u64::from(2 * 8 * self.emc_mask.count_ones()));
        let dram_bandwidth = self.dram_bandwidth.min(moved);
        ChipData { tpc_masks: mode.tpcs, tpc_gated: mode.gated, clock_limit: mode.gpu_hz, dram_bandwidth, ..*self }
    }

    fn of_module(chip: Chip) -> &'static ChipData {
        match chip {
            Chip::AgxOrin => &AGX_ORIN,
            Chip::AgxOrinPowerGated => &AGX_ORIN_PG,
            Chip::AgxOrin32 => &AGX_ORIN_32,
            Chip::OrinNx8 => &ORIN_NX_8,
            Chip::OrinNx8Super => &ORIN_NX_SUPER,
            Chip::OrinNano4 => &ORIN_NANO_4,
            Chip::OrinNano4Super => &ORIN_NANO_4_SUPER,
            Chip::OrinNx => &ORIN_NX,
            Chip::OrinNxSuper => &ORIN_NX_SUPER,
            Chip::OrinNano => &ORIN_NANO,
            Chip::OrinNanoSuper => &ORIN_NANO_SUPER,
            Chip::Gv11b => &GV11B,
        }
    }

    /// How fast the module is, with the highest clock that its power mode allows, and with the parameters of the configuration.
    pub(crate) fn speeds(&self, config: &SimConfig) -> Speeds {
        Speeds {
            gpu_hz: self.highest_allowed(),
            dram_bytes_per_second: self.dram_bandwidth,
            l2_bytes: self.l2_size,
            l2_slices: self.num_ltc * self.lts_per_ltc,
            lowest_hz: self.min_frequency().min(self.highest_allowed()),
            ramp_ns: u64::from(config.clock_ramp_ms) * 1_000_000,
            launch_ns: u64::from(config.host_launch_us) * 1000,
        }
    }

    /// The number of GPCs that the chip can have.
    pub(crate) fn max_gpcs(&self) -> u32 {
        self.tpc_masks.len() as u32
    }

    /// The number of GPCs that this module has.
    pub(crate) fn gpcs(&self) -> u32 {
        self.gpc_mask().count_ones()
    }

    pub(crate) fn gpc_mask(&self) -> u32 {
        (0..).zip(self.tpc_masks).filter(|(_, tpcs)| **tpcs != 0).fold(0, |mask, (gpc, _)| mask | 1 << gpc)
    }

    pub(crate) fn tpc_count(&self) -> u32 {
        self.tpc_masks.iter().map(|tpcs| tpcs.count_ones()).sum()
    }

    pub(crate) fn sm_count(&self) -> u32 {
        self.tpc_count() * self.sm_per_tpc
    }

    /// Every TPC in the order of its SMs' numbers, as the GPC's logical index and the TPC's index in that GPC
    /// (docs/hardware/nvgpu-ctrl.md#sm-order). The next TPC is each time the one without which the rest works best, and the last
    /// one of those that are alike.
    pub(crate) fn tpcs_in_sm_order(&self) -> Vec<(u32, u32)> {
        let counts = self.tpc_counts();
        let by_pes = |(gpc, tpc): (u32, u32)| (gpc, index_by_pes(counts[gpc as usize], tpc));
        self.tpcs_in_log_order().into_iter().map(by_pes).collect()
    }

    /// The number of TPCs of each GPC that has some.
    fn tpc_counts(&self) -> Vec<u32> {
        self.tpc_masks.iter().map(|tpcs| tpcs.count_ones()).filter(|tpcs| *tpcs > 0).collect()
    }

    /// The same TPCs in the same order, with the index that the kernel's log has, which does not depend on the PES.
    pub(crate) fn tpcs_in_log_order(&self) -> Vec<(u32, u32)> {
        let counts = self.tpc_counts();
        let mut left: Vec<u32> = counts.iter().map(|tpcs| (1 << tpcs) - 1).collect();
        let mut order = Vec::new();
        while left.iter().any(|tpcs| *tpcs != 0) {
            let there = |(gpc, tpc): &(usize, u32)| left[*gpc] >> tpc & 1 == 1;
            let all = (0..counts.len()).flat_map(|gpc| (0..counts[gpc]).map(move |tpc| (gpc, tpc)));
            let next = all.filter(there).max_by_key(|at| speed_without(&counts, &left, *at));
            let (gpc, tpc) = next.expect("a TPC is left");
            left[gpc] &= !(1 << tpc);
            order.push((gpc as u32, tpc));
        }
        order
    }

    pub(crate) fn max_frequency(&self) -> u64 {
        *self.frequencies.last().expect("every module has clocks")
    }

    /// The highest clock that devfreq may choose before somebody else limits it.
    pub(crate) fn highest_allowed(&self) -> u64 {
        self.max_frequency().min(self.clock_limit)
    }

    pub(crate) fn min_frequency(&self) -> u64 {
        self.frequencies[0]
    }

    /// Whether the module executes compute work. Only the machine code of ga10b is simulated.
    pub(crate) fn is_ga10b(&self) -> bool {
        self.arch == 0x170
    }

    /// Whether the counters of its SMs can run for all contexts at once.
    pub(crate) fn counts_all_sms(&self) -> bool {
        self.is_ga10b()
    }
}
