//! The configuration of a GPU.

use crate::checks::Reports;
use crate::profile::Profile;
use sm87::Limits;
use std::sync::Arc;
use tegra_hw::{Schedules, Speeds};

/// The configuration of a GPU.
#[derive(Clone, Debug)]
pub struct GpuConfig {
    /// The GPC and the TPC of each streaming multiprocessor, in the order of their numbers. The log of faults has them.
    pub sms: Vec<(u32, u32)>,
    /// True if the GPU has no thread and works only inside [`Gpu::step`](crate::Gpu::step). The default is whether
    /// `TEGRARM_SIM_STEP` is `1`.
    pub step: bool,
    /// The number of warp instructions that a grid may issue before it counts as hung.
    pub budget: u64,
    /// After how many instructions the engine translates a program to machine code of the host.
    pub translated_after: u64,
    /// True if the kernel is that of r35. It recovers from every PBDMA interrupt, of which r36 only logs some, and it writes no notifier
    /// for a fault of the copy engine.
    pub r35: bool,
    /// Who looks at what kernels do, if somebody does.
    pub reports: Option<Arc<Reports>>,
    /// The other schedules in which each launch runs, if somebody looks for results that depend on them. `reports` is there then.
    pub schedules: Option<Schedules>,
    /// The speeds of the module, if the time that programs see is modelled. Otherwise it is the time of the host.
    pub speeds: Option<Speeds>,
    /// Who notes what every kernel does, if somebody does.
    pub profile: Option<Arc<Profile>>,
}

impl Default for GpuConfig {
    fn default() -> GpuConfig {
        GpuConfig {
            sms: vec![(0, 0); 16],
            step: std::env::var_os("TEGRARM_SIM_STEP").is_some_and(|v| v == "1"),
            budget: Limits::default().budget,
            translated_after: Limits::default().translated_after,
            r35: false,
            reports: None,
            schedules: None,
            speeds: None,
            profile: None,
        }
    }
}

impl GpuConfig {
    /// The GPC and the TPC of an SM.
    pub(crate) fn place(&self, sm: u32) -> (u32, u32) {
        self.sms.get(sm as usize).copied().unwrap_or_default()
    }
}
