//! How a GPU is built.

use sm87::Limits;

/// How a GPU is built.
#[derive(Clone, Debug)]
pub struct GpuConfig {
    /// Streaming multiprocessors.
    pub sm_count: u32,
    /// No thread: work happens inside [`Gpu::step`](crate::Gpu::step) only. Default: whether `TEGRARM_SIM_STEP` is `1`.
    pub step: bool,
    /// Warp instructions a grid may issue before it counts as hung.
    pub budget: u64,
    /// The kernel recovers from every PBDMA interrupt, as that of r35 does. That of r36 only logs some of them.
    pub recovers_always: bool,
}

impl Default for GpuConfig {
    fn default() -> GpuConfig {
        GpuConfig {
            sm_count: 16,
            step: std::env::var_os("TEGRARM_SIM_STEP").is_some_and(|v| v == "1"),
            budget: Limits::default().budget,
            recovers_always: false,
        }
    }
}
