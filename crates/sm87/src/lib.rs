//! sm_87 machine code: decoded, printed and executed.
//!
//! [`disassemble`] turns an instruction word into text; [`run`] executes a grid, described by [`Launch`], to its end or to its
//! first fault. The crate knows memory through a page table ([`tegra_mm::PageTable`]) and gets its clock and its limits in
//! [`Launch`]. It knows no kernel, no command stream and no environment variable.

mod decode;
mod disasm;
mod exec;
pub mod num;
mod word;

pub use disasm::disassemble;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tegra_mm::{MmuFault, PageTable};

/// The error registers of one SM after an exception.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorRegisters {
    /// `hww_global_esr`.
    pub global_esr: u32,
    /// `hww_warp_esr`.
    pub warp_esr: u32,
    /// `hww_warp_esr_pc`: the address of the instruction.
    pub pc: u64,
}

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
    /// The GPU's clock (PTIMER), nanoseconds: `SR_GLOBALTIMER` and `SR_CLOCK` read it.
    pub clock: fn() -> u64,
    /// How far the run may go.
    pub limits: Limits,
}

impl Launch {
    /// SMs that get CTAs, in order.
    fn enabled_sms(&self) -> impl Iterator<Item = u32> {
        (0..self.sm_count).filter(|sm| self.disabled_sms.checked_shr(*sm).unwrap_or(0) & 1 == 0)
    }
}

/// What bounds a run besides its own end.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Set to true from anywhere: the run ends soon with [`SmFault::Hang`].
    pub cancel: Option<Arc<AtomicBool>>,
    /// Warp-instructions the whole grid may issue before it counts as hung.
    pub budget: u64,
    /// Host threads a big grid may use; 0 = as many as the machine has. Results do not depend on it.
    pub threads: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { cancel: None, budget: 1 << 40, threads: 0 }
    }
}

/// Why a CTA stopped.
#[derive(Clone, Debug)]
pub enum SmFault {
    /// A global access, or the fetch of an instruction, met no mapping.
    Mmu {
        /// The access.
        fault: MmuFault,
        /// Whether an instruction was fetched.
        fetch: bool,
        /// SM index.
        sm: u32,
        /// The error record; `pc` is the instruction's address.
        record: ErrorRegisters,
    },
    /// A warp exception (nvgpu-rules §8.4).
    Warp {
        /// The error record; `warp_esr` holds the code.
        record: ErrorRegisters,
        /// SM index.
        sm: u32,
        /// Mnemonic or reason, for the log.
        text: String,
    },
    /// The CTA can never make progress (divergent barrier), or used up its instruction budget.
    Hang {
        /// Where the first stuck warp waits.
        pc: u64,
        /// What it waits for.
        text: String,
    },
}

/// Bit of the global error register: more than one warp of the SM erred (nvgpu-rules §8.4).
const MULTIPLE_WARP_ERRORS: u32 = 1 << 2;

impl SmFault {
    /// The SM and what its error registers hold, if it is a matter of an SM.
    pub fn record(&self) -> Option<(u32, ErrorRegisters)> {
        match self {
            SmFault::Mmu { sm, record, .. } | SmFault::Warp { sm, record, .. } => Some((*sm, *record)),
            SmFault::Hang { .. } => None,
        }
    }

    /// Whether a warp erred. A trap is the program's wish, and has no warp error.
    fn errs(&self) -> bool {
        self.record().is_some_and(|(_, record)| record.warp_esr != 0)
    }

    /// Another warp of the same SM stopped with `other`.
    fn joined_by(&mut self, other: &SmFault) {
        if let (true, SmFault::Mmu { record, .. } | SmFault::Warp { record, .. }) = (self.errs() && other.errs(), self)
        {
            record.global_esr |= MULTIPLE_WARP_ERRORS;
        }
    }
}

/// Why a grid stopped.
#[derive(Clone, Debug)]
pub struct Stopped {
    /// The fault of the first CTA that has one, by number.
    pub fault: SmFault,
    /// Other SMs with an exception, and their error records.
    pub others: Vec<(u32, ErrorRegisters)>,
}

impl From<SmFault> for Stopped {
    fn from(fault: SmFault) -> Stopped {
        Stopped { fault, others: Vec::new() }
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

/// Runs a grid to its end.
///
/// # Errors
/// The first fault. A kernel that is told of it needs a while to stop the engine: what goes on meanwhile are the warps of
/// the same CTA and, for a moment, the CTAs that follow, one for each SM and one more. What they do to the error registers
/// is reported, too, and does not depend on the number of host threads.
pub fn run(launch: &Launch) -> Result<RunStats, Stopped> {
    exec::run(launch)
}
