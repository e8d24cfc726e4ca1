//! The runtime's tests share the cubins of the repository, a device of the default release, and the kernel `vecadd`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tegrarm::rm::Rm;
use tegrarm::runtime::device::Device;
use tegrarm::runtime::device::module::KernelRef;
use tegrarm::runtime::launch::{Dim3, Launch};
use tegrarm::tegra::CacheMode;

/// A grid of one block with one warp.
pub const LINE: Launch = Launch { grid: Dim3::new(1, 1, 1), block: Dim3::new(32, 1, 1), dynamic_shared: 0 };
/// A wait that takes longer than this has failed.
pub const DEADLINE: Option<Duration> = Some(Duration::from_secs(60));

/// The bytes of a file in `tests/data/cubin`.
pub fn cubin(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/cubin").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Opens a device of a new virtual board.
pub fn open_device() -> Arc<Device> {
    let rm = Arc::new(Rm::new(super::board(super::default_release()), CacheMode::WriteCombine));
    Device::open(&rm, 0).unwrap()
}

/// Loads `vecadd(a, b, c, n)`, which adds `n` floats.
pub fn vecadd(device: &Arc<Device>) -> KernelRef {
    device.load(&cubin("vecadd.nvrtc.cubin")).unwrap().kernel("vecadd").unwrap()
}
