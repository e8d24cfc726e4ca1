//! The state that all channel groups of one GPU share, and how fast a module is.

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

/// The speeds of a module that a model of its time needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speeds {
    /// The highest frequency of the GPU's clock, in Hz.
    pub gpu_hz: u64,
    /// The bytes that the DRAM moves in a second.
    pub dram_bytes_per_second: u64,
    /// The size of the GPU's L2 cache in bytes.
    pub l2_bytes: u64,
    /// The parts of the L2 cache that work at the same time.
    pub l2_slices: u32,
    /// The lowest frequency of the GPU's clock, in Hz.
    pub lowest_hz: u64,
    /// For how long the GPU works until its clock has risen from the lowest frequency to the highest one, in nanoseconds. A parameter
    /// that the user chooses: with 0 it is always the highest one.
    pub ramp_ns: u64,
    /// What the host takes for a submission that finds the GPU idle, in nanoseconds. A parameter, too.
    pub launch_ns: u64,
}
