//! The SKED checks, by which the scheduler rejects descriptors. Each check has one row
//! (docs/hardware/gpu-launch-descriptor.md#sked-checks).

use super::qmd::Qmd;
use tegrarm_abi::methods::qmd::*;

/// The state that a check may read besides the descriptor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) shared_window: u64,
    pub(crate) local_window: u64,
    /// The bytes of local memory that one TPC may use (SET_SHADER_LOCAL_MEMORY_NON_THROTTLED).
    pub(crate) local_per_tpc: u64,
    /// Whether check 18 (L1_CONFIG_TOO_SMALL) is on.
    pub(crate) checks_l1: bool,
}

/// One check.
pub(crate) struct Check {
    /// The bit in the SKED exception register. For some checks no bit is published.
    pub(crate) bit: Option<u8>,
    pub(crate) name: &'static str,
    pub(crate) fails: fn(&Qmd, &Setting) -> bool,
}

/// The size of the generic windows through which kernels reach shared and local memory.
const WINDOW: u64 = 16 << 20;
const MAX_THREADS: u64 = 1024;
const MAX_REGISTERS: u32 = 256;
const REGISTER_FILE: u64 = 65536;
/// The largest opt-in size of a CTA's shared memory plus the reserved KiB (compute capability 8.7).
const MAX_SHARED: u32 = 164 << 10;
/// The number of warps that a TPC holds at a time: two SMs with 48 each.
const WARPS_PER_TPC: u64 = 96;
const LOCAL_GRAIN: u32 = 16;

const fn check(bit: u8, name: &'static str, fails: fn(&Qmd, &Setting) -> bool) -> Check {
    Check { bit: Some(bit), name, fails }
}

/// All checks, sorted by bit.
pub(crate) static CHECKS: &[Check] = &[
    Check { bit: None, name: "QMD_VERSION", fails: |q, _| q.version() != (3, 0) },
    Check { bit: None, name: "IS_QUEUE, which this machine does not have", fails: |q, _| q.flag(IS_QUEUE) },
    Check {
        bit: None,
        name: "DEPENDENT_QMD1, which this machine does not have",
        fails: |q, _| q.flag(DEPENDENT_QMD1_ENABLE),
    },
    check(6, "CTA_RESUME", |q, _| {
        let (resume, grid) = (q.resume(), q.grid());
        resume != [0; 3] && (0..3).any(|axis| resume[axis] >= grid[axis])
    }),
    check(9, "LOCAL_MEMORY_LOW_SIZE", |q, _| !q.local_bytes().0.is_multiple_of(LOCAL_GRAIN)),
    check(10, "LOCAL_MEMORY_HIGH_SIZE", |q, _| !q.local_bytes().1.is_multiple_of(LOCAL_GRAIN)),
    check(12, "LOCAL_MEMORY_TOTAL_SIZE", |q, s| {
        let (low, high) = q.local_bytes();
        let warp = ((u64::from(low) + u64::from(high)) * 32).next_multiple_of(512);
        warp * WARPS_PER_TPC > s.local_per_tpc
    }),
    check(13, "REGISTER_COUNT", |q, _| q.registers() > MAX_REGISTERS),
    check(18, "TOTAL_THREADS", |q, _| threads(q) > MAX_THREADS),
    check(20, "PROGRAM_OFFSET", |q, _| !q.program().is_multiple_of(16)),
    check(21, "SHARED_MEMORY_SIZE", |q, _| q.shared_bytes() > MAX_SHARED),
    check(23, "CTA_THREAD_DIMENSION_ZERO", |q, _| threads(q) == 0),
    check(24, "MEMORY_WINDOW_OVERLAP", |_, s| s.shared_window.abs_diff(s.local_window) < WINDOW),
    check(25, "L1_CONFIG_TOO_SMALL", |q, s| {
        // The field counts 4 KiB from one. With zero, the hardware chooses.
        let config = q.field(MAX_SM_CONFIG_SHARED_MEM_SIZE);
        s.checks_l1 && config != 0 && (config - 1) * 4096 < u64::from(q.shared_bytes())
    }),
    check(26, "CTA_REGISTER_CONSUMPTION", |q, _| {
        let warp = (u64::from(q.registers()) * 32).next_multiple_of(256);
        threads(q).div_ceil(32) * warp > REGISTER_FILE
    }),
];

/// The bit of DEPENDENCE_COUNTER_UNDERFLOW. A PCAS action raises it, not a check.
pub(crate) const DEPENDENCE_COUNTER_UNDERFLOW: u8 = 8;

fn threads(qmd: &Qmd) -> u64 {
    qmd.block().iter().map(|d| u64::from(*d)).product()
}

/// The exception that a descriptor raises, if any check fails: the value of the register and the names of the checks.
pub(crate) fn violations(qmd: &Qmd, setting: &Setting) -> Option<(u32, String)> {
    let failed: Vec<_> = CHECKS.iter().filter(|c| (c.fails)(qmd, setting)).collect();
    let esr = failed.iter().filter_map(|c| c.bit).fold(0, |esr, bit| esr | 1 << bit);
    let names: Vec<_> = failed.iter().map(|c| c.name).collect();
    (!failed.is_empty()).then(|| (esr, names.join(", ")))
}
