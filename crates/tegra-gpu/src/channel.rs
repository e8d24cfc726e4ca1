//! A channel as the GPU runs it: the kernel's object, its PBDMA state, and the ways to stop it.

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

/// Why a channel must stop what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum StopReason {
    /// It goes away.
    Removed = 1,
    /// Its group was reset.
    Reset = 2,
    /// Another group waited for the engine longer than the context-switch timeout.
    SwitchTimeout = 3,
    /// The watchdog of a kernel-mode channel saw its job make no progress.
    Watchdog = 4,
}

/// Asks a running channel to stop; the machine-code engine watches the flag.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop {
    flag: Arc<AtomicBool>,
    reason: Arc<AtomicU8>,
}

impl Stop {
    /// The first reason counts.
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

    /// What timed out, in words.
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

/// Tells that everything of a channel has been let go.
#[derive(Clone, Default)]
pub(crate) struct Gone(Arc<OnceLock<()>>);

impl Gone {
    /// Sleeps until the channel is no more: whoever held it last has let it go.
    pub(crate) fn wait(&self) {
        self.0.wait();
    }
}

/// The part of a channel that ends last, and says so.
#[derive(Default)]
struct Farewell(Gone);

impl Drop for Farewell {
    fn drop(&mut self) {
        // A channel ends once, so nobody has set it before.
        self.0.0.get_or_init(|| ());
    }
}

/// A channel on the runlist.
pub(crate) struct Channel {
    pub(crate) hw: Arc<HwChannel>,
    /// A doorbell named it (or one near it) since its last turn.
    pub(crate) rung: AtomicBool,
    /// It has work that no doorbell need announce again.
    pub(crate) busy: AtomicBool,
    pub(crate) stop: Stop,
    /// Held by whoever runs the channel.
    pub(crate) pbdma: Mutex<Pbdma>,
    /// Fields end in the order of their declaration: this one stays the last.
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

    /// What to wait for until nobody holds anything of the channel any more.
    pub(crate) fn gone(&self) -> Gone {
        self.farewell.0.clone()
    }

    /// Whether a turn could find anything to do.
    pub(crate) fn awake(&self) -> bool {
        self.rung.load(Ordering::Acquire) || self.busy.load(Ordering::Acquire) || self.stop.requested()
    }

    /// Whether host may run it now.
    pub(crate) fn runnable(&self) -> bool {
        !self.stop.requested() && self.hw.runnable()
    }
}

/// What the units need while they work for a channel.
pub(crate) struct Turn<'a> {
    pub(crate) channel: &'a Channel,
    pub(crate) config: &'a GpuConfig,
    pub(crate) trace: &'a Trace,
    pub(crate) engine: &'a Engine,
}

impl Turn<'_> {
    pub(crate) fn hw(&self) -> &HwChannel {
        &self.channel.hw
    }

    /// The mappings as of now. Taken anew for every operation: work may wait for a mapping made after it was
    /// submitted.
    pub(crate) fn table(&self) -> Arc<PageTable> {
        self.channel.hw.space.table()
    }

    /// Turns an MMU fault of `client` into a channel fault.
    pub(crate) fn mmu(&self, client: fault::Client) -> impl FnOnce(MmuFault) -> Fault + '_ {
        move |f| fault::mmu(self.hw(), client, f)
    }

    /// A PBDMA interrupt. `Ok`: the kernel does nothing about it but log it.
    pub(crate) fn interrupt(&self, intr: fault::Interrupt, what: impl std::fmt::Display) -> Result<(), Fault> {
        let fault = fault::pbdma(self.hw(), intr, what);
        if intr.recovered || self.config.recovers_always {
            return Err(fault);
        }
        self.log(fault.text);
        Ok(())
    }

    /// A line of the kernel log that is not a fault.
    pub(crate) fn log(&self, text: String) {
        self.trace.log(self.hw().id, self.hw().tsg.id, text);
    }

    /// An interrupt that is not an error.
    pub(crate) fn awaken(&self, awakening: Awakening) {
        self.hw().tsg.awaken(awakening);
        self.trace.emit(|| Event::NonStall { channel: self.hw().id, tsg: self.hw().tsg.id });
    }

    pub(crate) fn semaphore(&self, va: u64, what: &'static str, payload: u64) {
        self.trace.emit(|| Event::Semaphore { channel: self.hw().id, va, what, payload });
    }
}
