//! A turn of a channel: what its units get, and what they say.

use super::between::{Queues, Range};
use super::clock::{Ptimer, Work};
use super::config::GpuConfig;
use super::engine::Engine;
use super::fault;
use super::mem::Accessor;
use super::semaphore::Release;
use super::stop::Stop;
use super::trace::{Event, Trace};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tegra_hw::{Awakening, Fault, HwChannel};
use tegra_mm::{MmuFault, PageTable};

/// The result of one method.
pub(crate) enum Flow {
    /// The method was executed.
    Done,
    /// The method was executed, and other channels get a turn.
    Yield,
    /// The method was not executed and is offered again. `true` means that a part of its work was done.
    Again(bool),
    /// The method was not executed and never will be.
    Halt,
}

impl Flow {
    pub(crate) fn executed(&self) -> bool {
        matches!(self, Flow::Done | Flow::Yield)
    }
}

/// What other threads tell a channel, and what it tells them.
#[derive(Default)]
pub(crate) struct Signals {
    /// True if a doorbell named this channel, or was taken in place of its own, since its last turn.
    pub(crate) rung: AtomicBool,
    /// True if the channel has work for which no new doorbell is needed.
    pub(crate) busy: AtomicBool,
    pub(crate) stop: Stop,
}

impl Signals {
    /// Whether the host may run the channel now.
    pub(crate) fn allow(&self, hw: &HwChannel) -> bool {
        !self.stop.requested() && hw.runnable()
    }
}

/// Everything that the units need while they work for a channel.
pub(crate) struct Turn<'a> {
    pub(crate) hw: &'a HwChannel,
    pub(crate) signals: &'a Signals,
    pub(crate) config: &'a GpuConfig,
    pub(crate) trace: &'a Trace,
    pub(crate) engine: &'a Engine,
    pub(crate) ptimer: &'a Ptimer,
}

impl Turn<'_> {
    /// Whether the host may go on with the channel.
    pub(crate) fn runnable(&self) -> bool {
        self.signals.allow(self.hw)
    }

    /// Begins a grid or a copy.
    pub(crate) fn work(&self) -> Work<'_> {
        self.ptimer.work(&self.hw.tsg.gpu.load)
    }

    /// The mappings as they are now. Every operation takes them anew, because work may wait for a mapping that is made
    /// after the work was submitted.
    pub(crate) fn table(&self) -> Arc<PageTable> {
        self.hw.space.table()
    }

    /// The queues, if races between them are looked for.
    pub(crate) fn queues(&self) -> Option<&Arc<Queues>> {
        self.config.reports.as_ref()?.queues()
    }

    /// Releases a semaphore. Whoever may look for races learns of it before somebody can find the value.
    pub(crate) fn release(&self, table: &PageTable, release: &Release) -> Result<(), MmuFault> {
        if let Some(queues) = self.queues() {
            queues.releases(self.hw, table, release);
        }
        release.perform(&Accessor::new(table))
    }

    /// Notes what the channel has read and written by itself, and publishes the reports about it.
    pub(crate) fn copied(&self, what: impl FnOnce() -> String, table: &PageTable, ranges: impl Iterator<Item = Range>) {
        let Some(reports) = &self.config.reports else { return };
        if let Some(queues) = reports.queues() {
            queues.copied(self.hw, &what(), table, ranges);
            let found = reports.publish(&self.hw.tsg.gpu);
            if let Some(profile) = &self.config.profile {
                found.iter().for_each(|report| profile.reported(report, self.hw, 0));
            }
        }
    }

    /// Turns an MMU fault of `client` into a channel fault.
    pub(crate) fn mmu(&self, client: fault::Client) -> impl FnOnce(MmuFault) -> Fault + '_ {
        move |f| fault::mmu(self.hw, client, f)
    }

    /// Raises a PBDMA interrupt. The result is `Ok` if the kernel only logs this interrupt.
    pub(crate) fn interrupt(&self, intr: fault::Interrupt, what: impl std::fmt::Display) -> Result<(), Fault> {
        let fault = fault::pbdma(self.hw, intr, what);
        if intr.recovered || self.config.r35 {
            return Err(fault);
        }
        self.log(fault.text);
        Ok(())
    }

    /// Adds a line to the kernel log. The line is not a fault.
    pub(crate) fn log(&self, text: String) {
        self.trace.log(self.hw.id, self.hw.tsg.id, text);
    }

    /// Raises an interrupt that is not an error.
    pub(crate) fn awaken(&self, awakening: Awakening) {
        self.hw.tsg.awaken(awakening);
        self.trace.emit(|| Event::NonStall { channel: self.hw.id, tsg: self.hw.tsg.id });
    }

    pub(crate) fn semaphore(&self, va: u64, what: &'static str, payload: u64) {
        self.trace.emit(|| Event::Semaphore { channel: self.hw.id, va, what, payload });
    }
}
