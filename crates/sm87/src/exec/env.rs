//! What a warp sees in addition to its registers: its CTA, its SM, the memory and the launch.

use super::clock::{self, Clock};
use super::cta::Barrier;
use super::image::Image;
use super::local::Local;
use super::mem::{Shared, Tlb};
use super::observe::{CtaObserver, Observer};
#[cfg(target_arch = "x86_64")]
use super::ops::hmma::Operands;
use super::ops::memory::Known;
use super::rows::Row;
use super::uop::{Flow, Uop};
use crate::fault::{ErrorRegisters, SmFault};
use crate::launch::{Launch, RunStats};
use std::sync::Arc;
use tegra_mm::MmuFault;

/// Warp exception codes (bits 15:0 of `hww_warp_esr`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum WarpError {
    MisalignedPc = 0x5,
    PcOverflow = 0x6,
    MisalignedRegister = 0x8,
    IllegalEncoding = 0x9,
    IllegalParameter = 0xb,
    RegisterRange = 0xd,
    AddressRange = 0xe,
    MisalignedAddress = 0xf,
    AddressSpace = 0x10,
    /// The MMU refused the access (docs/hardware/nvgpu-faults.md#warp-esr-codes).
    MmuNack = 0x20,
}

/// The CTA that is executed, and what its worker lends to it.
pub(crate) struct Env<'a> {
    pub launch: &'a Launch,
    /// The decoded program.
    pub image: Arc<Image>,
    /// The virtual address of micro-op 0.
    pub image_base: u64,
    /// The number of micro-ops that stand for instructions.
    pub image_len: u32,
    /// The target of a control transfer that left the image.
    pub extend: u64,
    pub tlb: Tlb<'a>,
    /// What loads found out for later loads.
    pub known: Known,
    /// Operands of tensor cores that were converted, if there were any.
    #[cfg(target_arch = "x86_64")]
    pub operands: Option<Box<Operands>>,
    pub shared: Shared,
    pub local: Local,
    /// The newest program of the launch.
    pub programs: &'a super::programs::Programs,
    /// The constant banks as bytes, for reads with an index.
    pub banks: &'a super::consts::Banks,
    /// The thread indices x, y and z of each warp.
    pub tids: &'a [[Row; 3]],
    pub ctaid: [u32; 3],
    /// The SM that the CTA runs on.
    pub sm: u32,
    pub barriers: [Barrier; 16],
    /// The barriers that warps of the CTA have named, one bit for each.
    pub meeting: u32,
    /// Whether a warp arrived at a barrier without waiting there.
    pub barrier_news: bool,
    /// Whether a warp of the CTA has executed NANOSLEEP.
    pub slept: bool,
    /// How many more instructions were executed together with the current one. See [`Flow::Together`].
    pub together: u32,
    pub fault: Option<Box<SmFault>>,
    /// The access that failed: its address and the number of its bytes.
    pub accessed: Option<(u64, u32)>,
    pub stats: RunStats,
    /// The number of matrix instructions so far.
    pub matrices: u64,
    /// Whether the instructions in `stats` include the one that runs now.
    pub counted: bool,
    /// The SM's clock.
    pub clock: Clock,
    /// What the GPU's timer showed when the grid began, in nanoseconds.
    pub begun: u64,
    /// Who observes the launch, and this CTA of it. An observer that looks at something is taken out meanwhile.
    pub watched_by: &'a [&'a dyn Observer],
    pub observers: Vec<Option<Box<dyn CtaObserver + 'a>>>,
}

impl Env<'_> {
    /// The virtual address of an instruction.
    pub(crate) fn pc(&self, at: u32) -> u64 {
        self.image_base.wrapping_add(u64::from(at) * 16)
    }

    /// What the SM's clock shows, in cycles.
    pub(crate) fn cycles(&self) -> u64 {
        self.clock.at(self.stats.warp_instructions)
    }

    /// Moves the SM's clock forward until it shows at least `cycles`.
    pub(crate) fn catch_up(&mut self, cycles: u64) {
        self.clock.pass(cycles.saturating_sub(self.cycles()));
    }

    /// What the GPU's timer shows, in nanoseconds.
    pub(crate) fn timer(&self) -> u64 {
        self.begun.wrapping_add(clock::nanoseconds(self.cycles()))
    }

    /// Records a warp exception.
    #[cold]
    pub(crate) fn warp_error(&mut self, u: &Uop, code: WarpError, text: String) -> Flow {
        let record = ErrorRegisters { global_esr: 0, warp_esr: code as u32, pc: self.pc(u.at) };
        self.fault = Some(Box::new(SmFault::Warp { record, sm: self.sm, text, site: None }));
        Flow::Fault
    }

    /// Records a trap. It is not a warp exception but an interrupt of the SM itself (global ESR, BPT.INT).
    #[cold]
    pub(crate) fn trap(&mut self, u: &Uop) -> Flow {
        let record = ErrorRegisters { global_esr: 1 << 4, warp_esr: 0, pc: self.pc(u.at) };
        self.fault = Some(Box::new(SmFault::Warp { record, sm: self.sm, text: "trap".to_owned(), site: None }));
        Flow::Fault
    }

    /// Records the MMU fault of a data access.
    #[cold]
    pub(crate) fn mmu_fault(&mut self, u: &Uop, fault: MmuFault) -> Flow {
        self.fault = Some(Box::new(nack(fault, false, self.sm, self.pc(u.at))));
        Flow::Fault
    }

    /// The index of the instruction at the address `va`, if it is decoded.
    pub(crate) fn target(&self, va: u64) -> Option<u32> {
        let offset = va.wrapping_sub(self.image_base);
        (offset.is_multiple_of(16) && offset / 16 < u64::from(self.image_len)).then_some((offset / 16) as u32)
    }
}

/// Makes the fault of an access that the MMU refused.
pub(crate) fn nack(fault: MmuFault, fetch: bool, sm: u32, pc: u64) -> SmFault {
    let record = ErrorRegisters { global_esr: 0, warp_esr: WarpError::MmuNack as u32, pc };
    SmFault::Mmu { fault, fetch, sm, record, site: None }
}
