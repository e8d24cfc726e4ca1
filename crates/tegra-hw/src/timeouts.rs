//! The switch for the GPU's timeouts.

use std::sync::atomic::{AtomicU32, Ordering};

/// The GPU's timeouts. They are on unless a debugger wants them off.
#[derive(Debug, Default)]
pub struct Timeouts {
    /// The number of debuggers that want the timeouts off.
    debuggers: AtomicU32,
}

impl Timeouts {
    /// Notes that one more debugger wants the timeouts off.
    pub fn disable(&self) {
        self.debuggers.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a debugger that called [`Timeouts::disable`] does not want that any more.
    pub fn enable(&self) {
        self.debuggers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether work that takes too long is stopped.
    pub fn are_on(&self) -> bool {
        self.debuggers.load(Ordering::Relaxed) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_on_again_when_the_last_debugger_agrees() {
        let timeouts = Timeouts::default();
        timeouts.disable();
        timeouts.disable();
        timeouts.enable();
        assert!(!timeouts.are_on());
        timeouts.enable();
        assert!(timeouts.are_on());
    }
}
