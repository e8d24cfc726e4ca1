//! The state that all channel groups of one GPU share.

use crate::{CheckLog, CodeNames, FaultLog, Interrupts, Load, Residency, Switches, Timeouts};

/// The state that all channel groups of one GPU share and that both the kernel and the GPU use.
#[derive(Debug, Default)]
pub struct HwGpu {
    /// The interrupts, and the threads that sleep until one is raised.
    pub interrupts: Interrupts,
    /// The context switches, and the receiver of their log.
    pub switches: Switches,
    /// The timeouts that stop work that takes too long.
    pub timeouts: Timeouts,
    /// The group whose context the graphics engine holds.
    pub residency: Residency,
    /// How busy the GPU was.
    pub load: Load,
    /// The newest faults.
    pub faults: FaultLog,
    /// The checker's reports.
    pub checks: CheckLog,
    /// The functions of the code that programs have loaded.
    pub names: CodeNames,
}
