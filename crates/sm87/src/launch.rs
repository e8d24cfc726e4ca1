//! The description of a launch, its limits and its costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use tegra_mm::PageTable;

/// A constant bank, as the launch descriptor names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConstantBank {
    /// The GPU virtual address.
    pub va: u64,
    /// The size in bytes, at most 64 KiB. Reads beyond it, or beyond its mapping, give zero.
    pub size: u32,
}

/// Everything that the engine needs to run one grid.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The mappings of the channel's address space at the time of the launch.
    pub table: Arc<PageTable>,
    /// The virtual address of the first instruction.
    pub code: u64,
    /// The number of CTAs in x, y and z.
    pub grid: [u32; 3],
    /// The first CTA in x, y and z. CTAs before it are not run.
    pub first: [u32; 3],
    /// The number of threads per CTA in x, y and z. They are at most 1024 together.
    pub block: [u32; 3],
    /// The registers per thread, as allocated.
    pub registers: u32,
    /// The bytes of shared memory per CTA.
    pub shared_bytes: u32,
    /// The bytes of local memory per thread that start at address 0.
    pub local_low: u32,
    /// The bytes of local memory per thread that end at address 2^24.
    pub local_high: u32,
    /// Constant banks 0 to 7.
    pub banks: [Option<ConstantBank>; 8],
    /// The address of the 16 MiB generic window that leads to shared memory.
    pub shared_window: u64,
    /// The address of the 16 MiB generic window that leads to local memory.
    pub local_window: u64,
    /// The number of SMs. CTAs get them in turn, which `SR_VIRTUALSMID` shows.
    pub sm_count: u32,
    /// The SMs that get no CTA, one bit each.
    pub disabled_sms: u64,
    /// True if each CTA starts only when the one before it has ended.
    pub sequential: bool,
    /// The subcontext, for `SR_VIRTUALENGINEID`.
    pub veid: u32,
    /// What the GPU's clock (PTIMER) shows when the grid begins, in nanoseconds. `SR_GLOBALTIMER` shows this, and from then on
    /// the time that the grid's instructions take; see docs/simulator/engine.md.
    pub begun: u64,
    /// The limits of the run.
    pub limits: Limits,
}

impl Launch {
    /// The SMs that get CTAs, in order.
    pub fn enabled_sms(&self) -> impl Iterator<Item = u32> {
        (0..self.sm_count).filter(|sm| self.disabled_sms.checked_shr(*sm).unwrap_or(0) & 1 == 0)
    }
}

/// A program that has executed so many instructions is worth the translation, which takes as long as some hundred thousand.
pub const TRANSLATED_AFTER: u64 = 1 << 17;

/// The limits of a run.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Any thread may set this to true. The run then ends soon with [`SmFault::Hang`](crate::SmFault::Hang).
    pub cancel: Option<Arc<AtomicBool>>,
    /// The number of warp instructions that the whole grid may issue before it counts as hung.
    pub budget: u64,
    /// Instructions that all CTAs together may spend waiting for each other, before a grid of which the GPU cannot hold all
    /// CTAs counts as hung.
    pub patience: u64,
    /// Host threads a big grid may use; 0 = as many as the machine has. Results do not depend on it.
    pub threads: usize,
    /// After how many instructions of a host thread a program is translated to machine code of the host. Results do not depend on it.
    pub translated_after: u64,
    /// Where the run notes how far it is, for another thread that looks.
    pub progress: Option<Arc<Progress>>,
    /// Another schedule than the usual one, by its number: another order of the CTAs and of the warps of each, and shorter turns. One
    /// host thread executes it.
    pub schedule: Option<u64>,
    /// Who hears, once, that a part of a warp waits at a barrier while the other part only looks at memory.
    pub told: Option<Told>,
}

/// A function that hears of something, on a thread of the run.
#[derive(Clone)]
pub struct Told(pub Arc<dyn Fn(&str) + Send + Sync>);

impl std::fmt::Debug for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Told")
    }
}

/// How far a run is.
#[derive(Debug, Default)]
pub struct Progress {
    /// The CTAs that were started. Those before the first one of the launch count.
    pub started: AtomicU64,
    /// The instructions issued, counted once per warp. The newest of them may be missing.
    pub issued: AtomicU64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            cancel: None,
            budget: 1 << 40,
            patience: 1 << 28,
            threads: 0,
            translated_after: TRANSLATED_AFTER,
            progress: None,
            schedule: None,
            told: None,
        }
    }
}

/// The costs of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunStats {
    /// The number of instructions issued, counted once per warp.
    pub warp_instructions: u64,
    /// The number of instructions, each multiplied by its active lanes.
    pub thread_instructions: u64,
    /// The processor time of the host threads that executed the grid, in nanoseconds.
    pub cpu_ns: u64,
}
