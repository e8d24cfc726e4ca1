//! The reasons why a grid stopped.

use tegra_mm::MmuFault;

/// The error registers of one SM after an exception.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErrorRegisters {
    /// `hww_global_esr`.
    pub global_esr: u32,
    /// `hww_warp_esr`.
    pub warp_esr: u32,
    /// `hww_warp_esr_pc`, the address of the instruction.
    pub pc: u64,
}

/// Where in its grid a fault happened. The kernel of a board reports only the address of the instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// The CTA.
    pub block: [u32; 3],
    /// The index of the warp in the CTA.
    pub warp: u32,
    /// The lanes that executed the instruction.
    pub lanes: u32,
    /// The lane whose access failed. `None` if it is not known.
    pub lane: Option<u32>,
    /// The thread in that lane. If the lane is not known, it is the thread in the first of `lanes`.
    pub thread: [u32; 3],
    /// The address of the instruction. For a jump to an address without code it is that of the jump, and the error record has the target.
    pub pc: u64,
    /// The address at which the grid began.
    pub kernel: u64,
    /// The word of the instruction.
    pub word: u128,
    /// The address that was accessed and the number of bytes, which is 0 if it is not known.
    pub access: Option<(u64, u32)>,
    /// How many bytes of shared memory the CTA has.
    pub shared: u32,
}

/// The reason why a CTA stopped.
#[derive(Clone, Debug)]
pub enum SmFault {
    /// A global access or an instruction fetch went to an address without a mapping.
    Mmu {
        /// The access.
        fault: MmuFault,
        /// True if it was an instruction fetch.
        fetch: bool,
        /// The index of the SM.
        sm: u32,
        /// The error record. `pc` is the address of the instruction.
        record: ErrorRegisters,
        /// The place in the grid.
        site: Option<Box<Site>>,
    },
    /// A warp exception (docs/hardware/nvgpu-faults.md#warp-esr-codes).
    Warp {
        /// The error record. `warp_esr` has the code.
        record: ErrorRegisters,
        /// The index of the SM.
        sm: u32,
        /// The mnemonic or the reason, for the log.
        text: String,
        /// The place in the grid.
        site: Option<Box<Site>>,
    },
    /// The CTA can never make progress because of a divergent barrier, or it used up its instruction budget.
    Hang {
        /// The address at which the first stuck warp waits.
        pc: u64,
        /// The reason why it waits.
        text: String,
    },
}

/// The bit of the global error register that says that more than one warp of the SM had an error
/// (docs/hardware/nvgpu-faults.md#global-esr-bits).
const MULTIPLE_WARP_ERRORS: u32 = 1 << 2;

impl SmFault {
    /// The SM and the contents of its error registers, if the fault belongs to an SM.
    pub fn record(&self) -> Option<(u32, ErrorRegisters)> {
        match self {
            SmFault::Mmu { sm, record, .. } | SmFault::Warp { sm, record, .. } => Some((*sm, *record)),
            SmFault::Hang { .. } => None,
        }
    }

    /// The place in the grid, if a warp executed an instruction.
    pub fn site(&self) -> Option<&Site> {
        match self {
            SmFault::Mmu { site, .. } | SmFault::Warp { site, .. } => site.as_deref(),
            SmFault::Hang { .. } => None,
        }
    }

    /// Stores the place in the grid at which the fault happened.
    pub(crate) fn happened_at(&mut self, place: Site) {
        if let SmFault::Mmu { site, .. } | SmFault::Warp { site, .. } = self {
            *site = Some(Box::new(place));
        }
    }

    /// Whether a warp had an error. A program asks for a trap itself, so a trap is not an error of a warp.
    pub(crate) fn errs(&self) -> bool {
        self.record().is_some_and(|(_, record)| record.warp_esr != 0)
    }

    /// Notes that another warp of the same SM stopped with `other`.
    pub(crate) fn joined_by(&mut self, other: &SmFault) {
        if let (true, SmFault::Mmu { record, .. } | SmFault::Warp { record, .. }) = (self.errs() && other.errs(), self)
        {
            record.global_esr |= MULTIPLE_WARP_ERRORS;
        }
    }
}

/// The reason why a grid stopped.
#[derive(Clone, Debug)]
pub struct Stopped {
    /// The fault of the CTA with the lowest number among those that have one.
    pub fault: SmFault,
    /// The other SMs with an exception, and their error records.
    pub others: Vec<(u32, ErrorRegisters)>,
}

impl From<SmFault> for Stopped {
    fn from(fault: SmFault) -> Stopped {
        Stopped { fault, others: Vec::new() }
    }
}
