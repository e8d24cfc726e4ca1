//! Whether what takes too long is stopped.

use std::sync::atomic::{AtomicU32, Ordering};

/// The GPU's timeouts. They are on while no debugger wants them off.
#[derive(Debug, Default)]
pub struct Timeouts {
    /// Debuggers that want nothing to time out.
    debuggers: AtomicU32,
}

impl Timeouts {
    /// A debugger wants nothing to time out.
    pub fn disable(&self) {
        self.debuggers.fetch_add(1, Ordering::Relaxed);
    }

    /// A debugger that called [`Timeouts::disable`] does not want that any more.
    pub fn enable(&self) {
        self.debuggers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether what takes too long is stopped.
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
