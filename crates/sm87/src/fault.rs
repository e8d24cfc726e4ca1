//! Why a grid stopped.

use tegra_mm::MmuFault;

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
    /// A warp exception (docs/hardware/nvgpu-faults.md#warp-esr-codes).
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

/// Bit of the global error register: more than one warp of the SM erred
/// (docs/hardware/nvgpu-faults.md#global-esr-bits).
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
    pub(crate) fn errs(&self) -> bool {
        self.record().is_some_and(|(_, record)| record.warp_esr != 0)
    }

    /// Another warp of the same SM stopped with `other`.
    pub(crate) fn joined_by(&mut self, other: &SmFault) {
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
