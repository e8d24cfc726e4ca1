//! What is run, how far, and what it cost.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tegra_mm::PageTable;

/// A constant bank as the launch descriptor names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConstantBank {
    /// GPU virtual address.
    pub va: u64,
    /// Size in bytes, clamped to 64 KiB; reads beyond it (or beyond its mapping) give zero.
    pub size: u32,
}

/// Everything the machine needs to run one grid.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Mappings of the channel's address space at launch.
    pub table: Arc<PageTable>,
    /// Virtual address of the first instruction.
    pub code: u64,
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// The first CTA, in x, y, z; those before it are not run.
    pub first: [u32; 3],
    /// Threads per CTA in x, y, z; at most 1024 in all.
    pub block: [u32; 3],
    /// Registers per thread, as allocated.
    pub registers: u32,
    /// Shared memory per CTA, bytes.
    pub shared_bytes: u32,
    /// Local memory per thread from address 0, bytes.
    pub local_low: u32,
    /// Local memory per thread that ends at address 2^24, bytes.
    pub local_high: u32,
    /// Constant banks 0–7.
    pub banks: [Option<ConstantBank>; 8],
    /// Base of the 16 MiB generic window onto shared memory.
    pub shared_window: u64,
    /// Base of the 16 MiB generic window onto local memory.
    pub local_window: u64,
    /// Number of SMs; CTAs are dealt out round-robin for `SR_VIRTUALSMID`.
    pub sm_count: u32,
    /// SMs that get none, a bit each.
    pub disabled_sms: u64,
    /// One CTA starts when the one before it has ended.
    pub sequential: bool,
    /// Subcontext, for `SR_VIRTUALENGINEID`.
    pub veid: u32,
    /// The GPU's clock (PTIMER), nanoseconds. `SR_GLOBALTIMER` shows it as it was when the grid began, and from then on the
    /// time that the grid's instructions take; see docs/simulator/engine.md.
    pub clock: fn() -> u64,
    /// How far the run may go.
    pub limits: Limits,
}

impl Launch {
    /// SMs that get CTAs, in order.
    pub(crate) fn enabled_sms(&self) -> impl Iterator<Item = u32> {
        (0..self.sm_count).filter(|sm| self.disabled_sms.checked_shr(*sm).unwrap_or(0) & 1 == 0)
    }
}

/// What bounds a run besides its own end.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Set to true from anywhere: the run ends soon with [`SmFault::Hang`](crate::SmFault::Hang).
    pub cancel: Option<Arc<AtomicBool>>,
    /// Warp-instructions the whole grid may issue before it counts as hung.
    pub budget: u64,
    /// Instructions that all CTAs together may spend waiting for each other, before a grid of which the GPU cannot hold all
    /// CTAs counts as hung.
    pub patience: u64,
    /// Host threads a big grid may use; 0 = as many as the machine has. Results do not depend on it.
    pub threads: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { cancel: None, budget: 1 << 40, patience: 1 << 28, threads: 0 }
    }
}

/// What a run cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunStats {
    /// Instructions issued, once per warp.
    pub warp_instructions: u64,
    /// Instructions times active lanes.
    pub thread_instructions: u64,
    /// Processor time of the host threads that executed the grid, nanoseconds.
    pub cpu_ns: u64,
}
