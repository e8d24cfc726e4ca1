//! How fast a module is.

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
}
