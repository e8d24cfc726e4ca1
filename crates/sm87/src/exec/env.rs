//! What a warp sees in addition to its registers: its CTA, its SM, the memory and the launch.

use super::clock::{self, Clock};
use super::image::Image;
use super::local::Local;
use super::mem::{Shared, Tlb};
use super::observe::{CtaObserver, Observer};
#[cfg(target_arch = "x86_64")]
use super::ops::hmma::Converted;
use super::ops::memory::Known;
use super::rows::{Row, Src};
use super::uop::{Flow, Uop};
use super::warp::Warp;
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

/// The state of a CTA barrier in use.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Barrier {
    pub(super) used: bool,
    /// The number of threads that must arrive. 0 stands for all threads that live.
    pub(super) count: u32,
    /// The number of warps that arrived without waiting.
    pub arrivals: u32,
    pub(super) all: Option<bool>,
    pub(super) any: bool,
    pub(super) population: u32,
    pub(super) reduction: u32,
}

impl Barrier {
    /// Whether a warp has named the barrier since it was last complete.
    pub(crate) fn in_use(&self) -> bool {
        self.used
    }

    /// Notes that a warp names the barrier, with a number of threads or 0.
    pub(crate) fn expect(&mut self, count: u32) {
        self.used = true;
        self.count = count;
    }

    /// Adds the predicates of lanes to the reduction: 0 is a population count, 1 is and, 2 is or.
    pub(crate) fn reduce(&mut self, op: u32, p: u32, lanes: u32) {
        self.reduction = op;
        self.population += (p & lanes).count_ones();
        self.all = Some(self.all.unwrap_or(true) && p & lanes == lanes);
        self.any |= p & lanes != 0;
    }

    pub(super) fn result(&self) -> u32 {
        let mask = |b: bool| u32::from(b).wrapping_neg();
        match self.reduction {
            0 => self.population,
            1 => mask(self.all.unwrap_or(true)),
            _ => mask(self.any),
        }
    }
}

/// The CTA that is executed, and what its worker lends to it.
pub struct Env<'a> {
    pub(crate) launch: &'a Launch,
    /// The decoded program.
    pub(crate) image: Arc<Image>,
    /// The virtual address of micro-op 0.
    pub(crate) image_base: u64,
    /// The number of micro-ops that stand for instructions.
    pub(crate) image_len: u32,
    /// The target of a control transfer that left the image.
    pub(crate) extend: u64,
    pub(crate) tlb: Tlb<'a>,
    /// What loads found out for later loads.
    pub(crate) known: Known,
    /// Operands of tensor cores that were converted, if there were any.
    #[cfg(target_arch = "x86_64")]
    pub(crate) operands: Option<Box<Converted>>,
    pub(crate) shared: Shared,
    pub(crate) local: Local,
    /// The newest program of the launch.
    pub(crate) programs: &'a super::programs::Programs,
    /// The constant banks as bytes, for reads with an index.
    pub(crate) banks: &'a super::consts::Banks,
    /// The thread indices x, y and z of each warp.
    pub(crate) tids: &'a [[Row; 3]],
    pub(crate) ctaid: [u32; 3],
    /// The SM that the CTA runs on.
    pub(crate) sm: u32,
    pub(crate) barriers: [Barrier; 16],
    /// The barriers that warps of the CTA have named, one bit for each.
    pub(crate) meeting: u32,
    /// Whether a warp arrived at a barrier without waiting there.
    pub(crate) barrier_news: bool,
    /// Whether a warp of the CTA has executed NANOSLEEP.
    pub(crate) slept: bool,
    /// How many more instructions were executed together with the current one. See [`Flow::Together`].
    pub(crate) together: u32,
    pub(crate) fault: Option<Box<SmFault>>,
    /// The access that failed: its address and the number of its bytes.
    pub(crate) accessed: Option<(u64, u32)>,
    pub(crate) stats: RunStats,
    /// The number of matrix instructions so far.
    pub(crate) matrices: u64,
    /// Whether the instructions in `stats` include the one that runs now.
    pub(crate) counted: bool,
    /// The SM's clock.
    pub(crate) clock: Clock,
    /// What the GPU's timer showed when the grid began, in nanoseconds.
    pub(crate) begun: u64,
    /// Who observes the launch, and this CTA of it. An observer that looks at something is taken out meanwhile.
    pub(crate) watched_by: &'a [&'a dyn Observer],
    pub(crate) observers: Vec<Option<Box<dyn CtaObserver + 'a>>>,
}

impl Env<'_> {
    /// The launch.
    pub fn launch(&self) -> &Launch {
        self.launch
    }

    /// The decoded program.
    pub fn image(&self) -> &Arc<Image> {
        &self.image
    }

    /// The index of the CTA in the grid.
    pub fn ctaid(&self) -> [u32; 3] {
        self.ctaid
    }

    /// The index of a thread in the CTA, if there is such a warp.
    pub fn thread(&self, warp: u32, lane: u32) -> Option<[u32; 3]> {
        let tids = self.tids.get(warp as usize)?;
        Some([0, 1, 2].map(|axis| tids[axis].0[lane as usize & 31]))
    }

    /// Whether a warp has named a barrier since it was last complete.
    pub fn is_in_use(&self, barrier: u32) -> bool {
        self.barriers.get(barrier as usize).is_some_and(Barrier::in_use)
    }

    /// Reads shared memory. The result is false if the bytes are not inside.
    pub fn read_shared(&self, offset: u32, out: &mut [u8]) -> bool {
        self.shared.peek(offset, out)
    }

    /// What a lane of a warp of the CTA holds in a register, or 0 if the program has no such register.
    pub fn register(&self, w: &Warp, number: u8, lane: u32) -> u32 {
        if u32::from(number) < self.image.registers { w.get(Src::reg(number), lane) } else { 0 }
    }

    /// The virtual address of an instruction.
    pub fn pc(&self, at: u32) -> u64 {
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
    pub fn target(&self, va: u64) -> Option<u32> {
        let offset = va.wrapping_sub(self.image_base);
        (offset.is_multiple_of(16) && offset / 16 < u64::from(self.image_len)).then_some((offset / 16) as u32)
    }
}

/// Makes the fault of an access that the MMU refused.
pub(crate) fn nack(fault: MmuFault, fetch: bool, sm: u32, pc: u64) -> SmFault {
    let record = ErrorRegisters { global_esr: 0, warp_esr: WarpError::MmuNack as u32, pc };
    SmFault::Mmu { fault, fetch, sm, record, site: None }
}
