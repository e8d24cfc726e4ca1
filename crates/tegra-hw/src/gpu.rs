//! What all channel groups of one GPU share.

use crate::{Interrupts, Residency, Switches, Timeouts};

/// What all channel groups of one GPU share, as far as kernel and GPU both touch it.
#[derive(Debug, Default)]
pub struct HwGpu {
    /// Interrupts, and who sleeps on them.
    pub interrupts: Interrupts,
    /// Context switches, and who logs them.
    pub switches: Switches,
    /// Whether what takes too long is stopped.
    pub timeouts: Timeouts,
    /// Whose context the graphics engine holds.
    pub residency: Residency,
}
