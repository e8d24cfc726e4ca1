//! What a warp sees in addition to its registers: its CTA, its SM, the memory and the launch.

use super::barriers::Barriers;
use super::clock::{self, Clock};
use super::consts::Banks;
use super::image::Image;
use super::known::Known;
use super::linear::Linear;
use super::local::Local;
use super::mem::{Shared, Tlb};
use super::observe::{CtaObserver, Observer};
use super::programs::Programs;
use super::rows::{Row, Src};
use super::uop::{Flow, Uop};
use super::warp::Warp;
use crate::fault::{ErrorRegisters, SmFault};
use crate::launch::{Launch, RunStats};
#[cfg(target_arch = "x86_64")]
use sm87_simd::converted::Converted;
use std::cell::Cell;
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

/// The thread indices of every warp of a block, with one row for each axis.
pub(crate) type Indices = Arc<[[Row; 3]]>;

/// A launch, and what was made of it once for all of its CTAs.
pub(crate) struct Launched<'a> {
    pub launch: &'a Launch,
    /// The newest program.
    pub programs: Programs,
    /// The constant banks as bytes, for reads with an index.
    pub banks: Banks,
    /// The thread indices of each warp.
    pub tids: Indices,
    /// Who observes the launch.
    pub observers: &'a [&'a dyn Observer],
}

/// Which CTA it is, and where it runs.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cta {
    /// Its index in the grid.
    pub index: [u32; 3],
    /// The SM that it runs on.
    pub sm: u32,
}

/// Memory as the CTA reaches it.
pub(crate) struct Memory<'a> {
    pub tlb: Tlb<'a>,
    /// What loads found out for later loads.
    pub known: Known,
    /// What is known of the opening of the program.
    pub linear: Linear,
    pub shared: Shared,
    pub local: Local,
}

/// What a handler says in addition to the [`Flow`] that it returns.
#[derive(Default)]
pub(crate) struct Outcome {
    /// The target of a control transfer that left the image: see [`Flow::Extend`].
    pub extend: u64,
    /// How many more instructions were executed together with the current one: see [`Flow::Together`].
    pub together: u32,
    /// What happened: see [`Flow::Fault`].
    pub fault: Option<Box<SmFault>>,
    /// The access that failed: its address and the number of its bytes.
    pub accessed: Option<(u64, u32)>,
}

/// What was executed so far.
#[derive(Default)]
pub(crate) struct Counts {
    pub stats: RunStats,
    /// The number of matrix instructions.
    pub matrices: u64,
    /// Whether the instructions in `stats` include the one that runs now.
    pub with_current: bool,
}

/// The CTA that is executed, and what its worker lends to it.
pub struct Env<'a> {
    pub(crate) launched: &'a Launched<'a>,
    /// The decoded program.
    pub(crate) image: Arc<Image>,
    pub(crate) cta: Cta,
    pub(crate) memory: Memory<'a>,
    pub(crate) barriers: Barriers,
    /// Operands of tensor cores that were converted, if there were any.
    #[cfg(target_arch = "x86_64")]
    pub(crate) operands: Option<Box<Converted>>,
    pub(crate) outcome: Outcome,
    pub(crate) counts: Counts,
    /// The SM's clock.
    pub(crate) clock: Clock,
    /// Who observes this CTA of the launch. An observer that looks at something is taken out meanwhile.
    pub(crate) observers: Vec<Option<Box<dyn CtaObserver + 'a>>>,
}

impl<'a> Env<'a> {
    /// Makes what CTAs of a launch need that begin with a program.
    #[inline(always)]
    pub(crate) fn new(launched: &'a Launched<'a>, image: Arc<Image>) -> Env<'a> {
        let l = launched.launch;
        let warps = l.block.iter().product::<u32>().div_ceil(32);
        let observers = launched.observers.iter().map(|observer| Some(observer.ctas(l, &image))).collect();
        Env {
            launched,
            image,
            cta: Cta::default(),
            memory: Memory {
                tlb: Tlb::new(&l.table, [l.shared_window, l.local_window]),
                known: Known::NOTHING,
                linear: Linear::default(),
                shared: Shared::new(l.shared_bytes),
                local: Local::new(l.local_low, l.local_high, warps as usize),
            },
            barriers: Barriers::default(),
            #[cfg(target_arch = "x86_64")]
            operands: None,
            outcome: Outcome::default(),
            counts: Counts::default(),
            clock: Clock::default(),
            observers,
        }
    }

    /// The launch.
    pub fn launch(&self) -> &'a Launch {
        self.launched.launch
    }
}

impl Env<'_> {
    /// The decoded program.
    pub fn image(&self) -> &Arc<Image> {
        &self.image
    }

    /// The index of the CTA in the grid.
    pub fn ctaid(&self) -> [u32; 3] {
        self.cta.index
    }

    /// The index of a thread in the CTA, if there is such a warp.
    pub fn thread(&self, warp: u32, lane: u32) -> Option<[u32; 3]> {
        let tids = self.launched.tids.get(warp as usize)?;
        Some([0, 1, 2].map(|axis| tids[axis].0[lane as usize & 31]))
    }

    /// Whether a warp has named a barrier since it was last complete.
    pub fn is_in_use(&self, barrier: u32) -> bool {
        self.barriers.is_in_use(barrier)
    }

    /// Reads shared memory. The result is false if the bytes are not inside.
    pub fn read_shared(&self, offset: u32, out: &mut [u8]) -> bool {
        self.memory.shared.peek(offset, out)
    }

    /// What a lane of a warp of the CTA holds in a register, or 0 if the program has no such register.
    pub fn register(&self, w: &Warp, number: u8, lane: u32) -> u32 {
        if u32::from(number) < self.image.registers { w.get(Src::reg(number), lane) } else { 0 }
    }

    /// The virtual address of an instruction.
    pub fn pc(&self, at: u32) -> u64 {
        self.address(self.image.places.place(at))
    }

    /// The virtual address of a place that is so many instructions from the entry point.
    pub(crate) fn address(&self, place: i64) -> u64 {
        self.launch().code.wrapping_add_signed(place.wrapping_mul(16))
    }

    /// What the SM's clock shows, in cycles.
    pub(crate) fn cycles(&self) -> u64 {
        self.clock.at(self.counts.stats.warp_instructions)
    }

    /// Whether lanes of a warp can run, and it does not sleep.
    #[inline(always)]
    pub(crate) fn lets_run(&self, w: &Warp) -> bool {
        w.active != 0 && (w.wake == 0 || w.wake <= self.cycles())
    }

    /// If all warps that could run sleep, lets time pass until the first of them wakes. Returns whether there is such a
    /// warp.
    pub(crate) fn wake_up(&mut self, warps: &[Warp]) -> bool {
        let (now, ready) = (self.cycles(), warps.iter().filter(|w| w.active != 0));
        let Some(first) = ready.map(|w| w.wake).min() else { return false };
        self.clock.pass(first.saturating_sub(now));
        true
    }

    /// The number of instructions until a sleeping warp wakes, at most `most`.
    pub(crate) fn before_wake(&self, warps: &[Warp], most: u32) -> u32 {
        if !self.clock.slept {
            return most;
        }
        let now = self.cycles();
        let first = warps.iter().map(|w| w.wake).filter(|&wake| wake > now).min();
        first.map_or(most, |wake| (wake - now).clamp(64, most.into()) as u32)
    }

    /// Moves the SM's clock forward until it shows at least `cycles`.
    pub(crate) fn catch_up(&mut self, cycles: u64) {
        self.clock.pass(cycles.saturating_sub(self.cycles()));
    }

    /// What the GPU's timer shows, in nanoseconds.
    pub(crate) fn timer(&self) -> u64 {
        self.launch().begun.wrapping_add(clock::nanoseconds(self.cycles()))
    }

    /// Records a warp exception.
    #[cold]
    pub(crate) fn warp_error(&mut self, u: &Uop, code: WarpError, text: String) -> Flow {
        let record = ErrorRegisters { global_esr: 0, warp_esr: code as u32, pc: self.pc(u.at) };
        self.outcome.fault = Some(Box::new(SmFault::Warp { record, sm: self.cta.sm, text, site: None }));
        Flow::Fault
    }

    /// Records a trap. It is not a warp exception but an interrupt of the SM itself (global ESR, BPT.INT).
    #[cold]
    pub(crate) fn trap(&mut self, u: &Uop) -> Flow {
        let record = ErrorRegisters { global_esr: 1 << 4, warp_esr: 0, pc: self.pc(u.at) };
        self.outcome.fault =
            Some(Box::new(SmFault::Warp { record, sm: self.cta.sm, text: "trap".to_owned(), site: None }));
        Flow::Fault
    }

    /// Records the MMU fault of a data access.
    #[cold]
    pub(crate) fn mmu_fault(&mut self, u: &Uop, fault: MmuFault) -> Flow {
        self.outcome.fault = Some(Box::new(nack(fault, false, self.cta.sm, self.pc(u.at))));
        Flow::Fault
    }

    /// The index of the instruction at the address `va`, if it is decoded.
    pub fn target(&self, va: u64) -> Option<u32> {
        let offset = va.wrapping_sub(self.launch().code) as i64;
        if offset % 16 == 0 { self.image.places.index(offset / 16) } else { None }
    }
}

thread_local! {
    /// The block of the launch before, and its thread indices.
    static INDICES: Cell<Option<([u32; 3], Indices)>> = const { Cell::new(None) };
}

/// The thread indices of every warp of such a block. Most launches have the block of the launch before.
pub(crate) fn thread_indices(block: [u32; 3]) -> Indices {
    let kept = INDICES.take().filter(|(kept, _)| *kept == block);
    let indices = kept.map_or_else(|| make_thread_indices(block), |(_, indices)| indices);
    INDICES.set(Some((block, indices.clone())));
    indices
}

/// Makes the thread indices of a block.
fn make_thread_indices([bx, by, bz]: [u32; 3]) -> Indices {
    let mut t = [0u32; 3];
    let mut next = || {
        let now = t;
        t[0] += 1;
        if t[0] == bx {
            t = [0, t[1] + 1, t[2]];
        }
        if t[1] == by {
            t = [t[0], 0, t[2] + 1];
        }
        now
    };
    let warp = |_| {
        let mut rows = [Row::ZERO; 3];
        for lane in 0..32 {
            let now = next();
            for axis in 0..3 {
                rows[axis].0[lane] = now[axis];
            }
        }
        rows
    };
    (0..(bx * by * bz).div_ceil(32)).map(warp).collect()
}

/// Makes the fault of an access that the MMU refused.
pub(crate) fn nack(fault: MmuFault, fetch: bool, sm: u32, pc: u64) -> SmFault {
    let record = ErrorRegisters { global_esr: 0, warp_esr: WarpError::MmuNack as u32, pc };
    SmFault::Mmu { fault, fetch, sm, record, site: None }
}
