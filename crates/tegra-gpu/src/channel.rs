//! A channel as the GPU runs it: the kernel's object, its PBDMA state, and what other threads tell the channel.

use super::context::SharedContext;
use super::pbdma::Pbdma;
use super::turn::Signals;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use tegra_hw::HwChannel;
use tegrarm_lock::Mutex;

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
    pub(crate) signals: Signals,
    /// The PBDMA state. The thread that runs the channel holds its lock.
    pub(crate) pbdma: Mutex<Pbdma>,
    /// Fields are dropped in the order of their declaration, so this field must stay the last one.
    farewell: Farewell,
}

impl Channel {
    pub(crate) fn new(hw: Arc<HwChannel>, context: SharedContext) -> Channel {
        let pbdma = Mutex::new(Pbdma::new(context));
        Channel { hw, signals: Signals::default(), pbdma, farewell: Farewell::default() }
    }

    /// The object on which a thread waits until nothing of the channel is in use.
    pub(crate) fn gone(&self) -> Gone {
        self.farewell.0.clone()
    }

    /// Whether a turn could find work.
    pub(crate) fn awake(&self) -> bool {
        let Signals { rung, busy, stop } = &self.signals;
        rung.load(Ordering::Acquire) || busy.load(Ordering::Acquire) || stop.requested()
    }

    /// Whether the host may run the channel now.
    pub(crate) fn runnable(&self) -> bool {
        self.signals.allow(&self.hw)
    }
}
