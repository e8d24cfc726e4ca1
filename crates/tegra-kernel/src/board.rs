//! What every object of the kernel needs of the board: the configuration, the way to the GPU, and the units that have no objects of
//! their own (nvgpu's `struct gk20a`).

use crate::budget::{Budgets, Resource, Share};
use crate::chip::ChipData;
use crate::clears::ClearTables;
use crate::clocks::Clocks;
use crate::config::SimConfig;
use crate::doorbells::Doorbells;
use crate::ids::Stack;
use crate::process::Process;
use crate::syncpoint::Syncpoints;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tegra_hw::{GpuPort, HwGpu};
use tegrarm_kmd::Errno;
use tegrarm_lock::Mutex;

/// The number of channel ids on L4T, and of group ids.
pub(crate) const CHANNELS: u32 = 512;

/// A board, as the objects of its kernel know it.
pub(crate) struct Board {
    pub config: SimConfig,
    pub chip: &'static ChipData,
    pub gpu: Arc<dyn GpuPort>,
    /// The state that all groups of the GPU share.
    pub hw: Arc<HwGpu>,
    pub syncpoints: Arc<Syncpoints>,
    pub channel_ids: Stack,
    /// The GPU's device in sysfs.
    pub device: DeviceState,
    pub doorbells: Doorbells,
    pub clocks: Arc<Clocks>,
    pub clears: ClearTables,
    /// What each process may take, if several share the kernel.
    budgets: OnceLock<Arc<Budgets>>,
    /// The number of ctrl nodes opened so far.
    instances: AtomicU64,
}

impl Board {
    /// A board whose GPU is `gpu`.
    pub(crate) fn new(config: SimConfig, gpu: Arc<dyn GpuPort>) -> Board {
        let chip = ChipData::of(&config);
        Board {
            config,
            chip,
            hw: Arc::default(),
            syncpoints: Arc::new(Syncpoints::new(config.l4t)),
            channel_ids: Stack::new(CHANNELS),
            device: DeviceState::default(),
            doorbells: Doorbells::new(gpu.clone()),
            clocks: Arc::new(Clocks::new(chip)),
            clears: ClearTables::new(chip, config.l4t),
            budgets: OnceLock::new(),
            instances: AtomicU64::new(0),
            gpu,
        }
    }

    /// Divides what there is among the processes that call. `all` says how much there is.
    pub(crate) fn divide(&self, all: impl Fn(Resource) -> u64) -> Arc<Budgets> {
        self.budgets.get_or_init(|| Budgets::new(all)).clone()
    }

    /// Takes something for the process that makes a call.
    pub(crate) fn take(&self, resource: Resource, process: &dyn Process, amount: u64) -> Result<Option<Share>, Errno> {
        self.budgets.get().map(|budgets| budgets.take(resource, process.pid(), amount)).transpose()
    }

    /// A number for a ctrl node that is opened. The first is 1.
    pub(crate) fn next_instance(&self) -> u64 {
        self.instances.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// The state of the attributes of the GPU's device in sysfs.
#[derive(Debug)]
pub(crate) struct DeviceState {
    /// Whether the GPU may lose its power when it is idle, and after how many milliseconds. Here it never does.
    pub railgating: Mutex<(bool, u32)>,
    /// True after the first graphics context was made.
    golden_image: AtomicBool,
}

impl Default for DeviceState {
    fn default() -> Self {
        DeviceState { railgating: Mutex::new((true, 500)), golden_image: AtomicBool::new(false) }
    }
}

impl DeviceState {
    /// Notes that a graphics context was made.
    pub(crate) fn context_made(&self) {
        self.golden_image.store(true, Ordering::Relaxed);
    }

    /// Whether a graphics context was made.
    pub(crate) fn has_golden_image(&self) -> bool {
        self.golden_image.load(Ordering::Relaxed)
    }
}
