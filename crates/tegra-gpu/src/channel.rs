//! A channel as the GPU runs it: the kernel's object, its PBDMA state, and the ways to stop the channel.

use super::clock::{Ptimer, Work};
use super::config::GpuConfig;
use super::context::SharedContext;
use super::engine::Engine;
use super::fault;
use super::pbdma::Pbdma;
use super::trace::{Event, Trace};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use tegra_hw::{Awakening, Fault, HwChannel};
use tegra_mm::{MmuFault, PageTable};

/// The reason why a channel must stop its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum StopReason {
    /// The channel is being removed.
    Removed = 1,
    /// The channel's group was reset.
    Reset = 2,
    /// Another group waited for the engine longer than the context-switch timeout.
    SwitchTimeout = 3,
    /// The watchdog of a kernel-mode channel saw that a job made no progress.
    Watchdog = 4,
}

/// A request to a running channel to stop. The machine-code engine watches the flag.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop {
    flag: Arc<AtomicBool>,
    reason: Arc<AtomicU8>,
}

impl Stop {
    /// Requests a stop. Only the first reason counts.
    pub(crate) fn request(&self, reason: StopReason) {
        let _ = self.reason.compare_exchange(0, reason as u8, Ordering::AcqRel, Ordering::Acquire);
        self.flag.store(true, Ordering::Release);
    }

    pub(crate) fn requested(&self) -> bool {
        self.flag.load(Ordering::Acquire)
    }

    pub(crate) fn timed_out(&self) -> bool {
        let reason = self.reason.load(Ordering::Acquire);
        reason == StopReason::SwitchTimeout as u8 || reason == StopReason::Watchdog as u8
    }

    /// The timeout, in words.
    pub(crate) fn sentence(&self) -> &'static str {
        match self.reason.load(Ordering::Acquire) == StopReason::Watchdog as u8 {
            true => "made no progress before the channel's watchdog ran out",
            false => "ran past the context-switch timeout while another tsg, or the kernel, waited for the engine",
        }
    }

    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        self.flag.clone()
    }
}

/// Tells when nothing of a channel is in use any more.
#[derive(Clone, Default)]
pub(crate) struct Gone(Arc<OnceLock<()>>);

impl Gone {
    /// Sleeps until the last user of the channel has dropped it.
    pub(crate) fn wait(&self) {
        self.0.wait();
    }
}

/// The part of a channel that is dropped last. Dropping it announces the end of the channel.
#[derive(Default)]
struct Farewell(Gone);

impl Drop for Farewell {
    fn drop(&mut self) {
        // A channel ends once, so the cell is still empty.
        self.0.0.get_or_init(|| ());
    }
}

/// A channel on the runlist.
pub(crate) struct Channel {
    pub(crate) hw: Arc<HwChannel>,
    /// True if a doorbell named this channel, or was taken in place of its own, since its last turn.
    pub(crate) rung: AtomicBool,
    /// True if the channel has work for which no new doorbell is needed.
    pub(crate) busy: AtomicBool,
    pub(crate) stop: Stop,
    /// The PBDMA state. The thread that runs the channel holds its lock.
    pub(crate) pbdma: Mutex<Pbdma>,
    /// Fields are dropped in the order of their declaration, so this field must stay the last one.
    farewell: Farewell,
}

impl Channel {
    pub(crate) fn new(hw: Arc<HwChannel>, context: SharedContext) -> Channel {
        let pbdma = Mutex::new(Pbdma::new(context));
        Channel {
            hw,
            rung: AtomicBool::new(false),
            busy: AtomicBool::new(false),
            stop: Stop::default(),
            pbdma,
            farewell: Farewell::default(),
        }
    }

    /// The object on which a thread waits until nothing of the channel is in use.
    pub(crate) fn gone(&self) -> Gone {
        self.farewell.0.clone()
    }

    /// Whether a turn could find work.
    pub(crate) fn awake(&self) -> bool {
        self.rung.load(Ordering::Acquire) || self.busy.load(Ordering::Acquire) || self.stop.requested()
    }

    /// Whether the host may run the channel now.
    pub(crate) fn runnable(&self) -> bool {
        !self.stop.requested() && self.hw.runnable()
    }
}

/// Everything that the units need while they work for a channel.
pub(crate) struct Turn<'a> {
    pub(crate) channel: &'a Channel,
    pub(crate) config: &'a GpuConfig,
    pub(crate) trace: &'a Trace,
    pub(crate) engine: &'a Engine,
    pub(crate) ptimer: &'a Ptimer,
}

impl Turn<'_> {
    pub(crate) fn hw(&self) -> &HwChannel {
        &self.channel.hw
    }

    /// Begins a grid or a copy.
    pub(crate) fn work(&self) -> Work<'_> {
        self.ptimer.work(&self.hw().tsg.gpu.load)
    }

    /// The mappings as they are now. Every operation takes them anew, because work may wait for a mapping that is made
    /// after the work was submitted.
    pub(crate) fn table(&self) -> Arc<PageTable> {
        self.channel.hw.space.table()
    }

    /// Turns an MMU fault of `client` into a channel fault.
    pub(crate) fn mmu(&self, client: fault::Client) -> impl FnOnce(MmuFault) -> Fault + '_ {
        move |f| fault::mmu(self.hw(), client, f)
    }

    /// Raises a PBDMA interrupt. The result is `Ok` if the kernel only logs this interrupt.
    pub(crate) fn interrupt(&self, intr: fault::Interrupt, what: impl std::fmt::Display) -> Result<(), Fault> {
        let fault = fault::pbdma(self.hw(), intr, what);
        if intr.recovered || self.config.recovers_always {
            return Err(fault);
        }
        self.log(fault.text);
        Ok(())
    }

    /// Adds a line to the kernel log. The line is not a fault.
    pub(crate) fn log(&self, text: String) {
        self.trace.log(self.hw().id, self.hw().tsg.id, text);
    }

    /// Raises an interrupt that is not an error.
    pub(crate) fn awaken(&self, awakening: Awakening) {
        self.hw().tsg.awaken(awakening);
        self.trace.emit(|| Event::NonStall { channel: self.hw().id, tsg: self.hw().tsg.id });
    }

    pub(crate) fn semaphore(&self, va: u64, what: &'static str, payload: u64) {
        self.trace.emit(|| Event::Semaphore { channel: self.hw().id, va, what, payload });
    }
}
