//! The ways to stop a channel.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

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
