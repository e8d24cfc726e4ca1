//! Code that the fuzz targets share: a GPU in step mode with a channel, and inputs that are read piece by piece.

/// The harness of the simulator's own front-end tests.
#[path = "../../crates/tegra-gpu/tests/front_end/harness.rs"]
pub mod harness;
#[path = "../../crates/tegra-gpu/tests/front_end/one_warp.rs"]
pub mod one_warp;

/// The model of the runtime's own tests.
#[path = "../../tests/runtime_sequences/machine/mod.rs"]
pub mod machine;
pub mod objects;
pub mod program;
pub mod recordings;

/// The tour of all ioctls, and the edits of recordings, of the simulator's own tests.
#[path = "../../crates/tegra-sim/tests/recorded/edits.rs"]
pub mod edits;
#[path = "../../crates/tegra-sim/tests/recorded/tour.rs"]
pub mod tour;

pub use edits::Input;

use harness::{Buffer, Lane, Machine};
use tegra_gpu::GpuConfig;

/// The number of turns of a run, after which an endless pushbuffer is stopped.
const STEPS: usize = 300;
/// The number of warp instructions of a grid, after which an endless kernel is stopped.
pub const BUDGET: u64 = 20_000;
/// The address of the memory that inputs may reach: a page each for data, descriptors and semaphores, and code.
pub const DATA: u64 = 0x2_0000_0000;
/// The address of the code. See [`DATA`].
pub const CODE: u64 = 0x4_0000_0000;

/// A GPU with one channel and some memory.
pub struct Rig {
    pub machine: Machine,
    pub lane: Lane,
    pub data: Buffer,
    pub code: Buffer,
}

impl Rig {
    pub fn new() -> Rig {
        let machine = Machine::with(GpuConfig { step: true, budget: BUDGET, ..GpuConfig::default() });
        let lane = machine.lane();
        let (data, code) = (machine.map(DATA, 64 << 10), machine.map(CODE, 8192));
        Rig { machine, lane, data, code }
    }

    /// Rings the doorbell and lets the GPU work for a limited number of turns.
    pub fn go(&self) {
        self.machine.ring(&self.lane);
        for _ in 0..STEPS {
            if !self.machine.gpu.step() {
                break;
            }
        }
        if self.lane.dead() {
            assert!(self.lane.notified().is_some(), "a dead channel has an error notifier");
        }
    }
}

impl Default for Rig {
    fn default() -> Rig {
        Rig::new()
    }
}

/// Splits bytes into little-endian words. Bytes that do not fill a word are left out.
pub fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect()
}
