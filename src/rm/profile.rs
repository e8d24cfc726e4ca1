//! What a scheduler wants to know about the GPU, whoever made it.

use super::{LOCAL_WINDOW, Rm, SHARED_WINDOW};
use crate::status::{RmResult, fail};
use crate::tegra::SM_PER_TPC;
use tegrarm_abi::rm::status::*;

/// What the system's sensors say of the GPU.
pub type Sensors = crate::tegra::Sensors;

/// PCI vendor id of NVIDIA.
pub const VENDOR: u32 = 0x10de;
/// Threads of a warp.
const WARP: u32 = 32;
/// Threads of a block, a limit of the architecture.
const MAX_THREADS_PER_GROUP: u32 = 1024;
/// First SM version with tensor cores (Volta).
const MATRIX_SINCE: u32 = 0x700;
/// First SM version with `redux.sync` (Ampere).
const REDUCTION_SINCE: u32 = 0x800;

/// The figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// PCI vendor id.
    pub vendor: u32,
    /// Name.
    pub name: String,
    /// Bytes of memory the CPU and the GPU share.
    pub memory_size: u64,
    /// Bytes per second between GPU and memory.
    pub local_bandwidth: u64,
    /// Bytes per second between CPU memory and GPU memory: the same memory, so the same figure.
    pub transfer_bandwidth: u64,
    /// Has tensor cores.
    pub has_matrix_hw: bool,
    /// Can reduce across a warp in one instruction.
    pub has_simd_reduction: bool,
    /// SMs that are enabled.
    pub compute_units: u32,
    /// Threads of a warp.
    pub simd_width: u32,
    /// Threads of a block.
    pub max_threads_per_group: u32,
    /// Bytes of shared memory a block can have.
    pub shared_mem_size: u32,
    /// SM version, `major << 8 | minor`.
    pub sm_version: u32,
    /// Highest clock.
    pub max_clock_hz: u64,
    /// Identifier, as RM's GID control gives it.
    pub uuid: [u8; 16],
    /// The virtual Orin, not a board.
    pub simulated: bool,
    /// First address of the local memory window of library-managed VA spaces.
    pub local_window: u64,
    /// First address of their shared memory window.
    pub shared_window: u64,
}

/// Shared memory a block can opt into, by SM version (CUDA's compute capability tables).
fn shared_mem_size(sm_version: u32) -> u32 {
    match sm_version {
        0x700..0x800 => 96 << 10,
        _ => 163 << 10,
    }
}

/// Peak DRAM bandwidth of the module, from what it has: nvgpu does not report it, and the memory controller's rate is
/// readable by root only. AGX: 256 bits of LPDDR5-6400; NX and Nano have half the bus.
fn dram_bandwidth(sms: u32) -> u64 {
    const AGX_SMS: u32 = 14;
    if sms >= AGX_SMS { 204_800_000_000 } else { 102_400_000_000 }
}

impl Rm {
    /// GPUs there are.
    ///
    /// # Errors
    /// Why there is none.
    pub fn device_count(&self) -> RmResult<u32> {
        self.gpu().map(|_| 1)
    }

    /// What the kernel's interface looks like, for a report; of a kernel that is not known, too.
    ///
    /// # Errors
    /// The kernel's, for opening its nodes.
    pub fn kernel_report(&self) -> RmResult<String> {
        Ok(crate::tegra::report(self.kmd())?)
    }

    /// Clocks, load, temperature and power mode, as far as the system says them.
    pub fn sensors(&self) -> Sensors {
        crate::tegra::sensors(self.kmd())
    }

    /// The figures of one GPU.
    ///
    /// # Errors
    /// 0x26 for any index but 0. If there is no GPU, the status that says why.
    pub fn device_profile(&self, index: u32) -> RmResult<Profile> {
        let gpu = self.gpu()?;
        if index != 0 {
            fail!(NV_ERR_INVALID_DEVICE, "there is no device {index}; a Tegra has one GPU, device 0");
        }
        let c = gpu.characteristics();
        let sms = gpu.topology()?.sm_count();
        let sm_version = c.sm_arch_sm_version;
        // Judged by the design, not by what power gating left of it.
        let bandwidth =
            dram_bandwidth(sms.max(gpu.topology()?.max_gpcs * gpu.topology()?.max_tpcs_per_gpc * SM_PER_TPC));
        Ok(Profile {
            vendor: VENDOR,
            name: format!("Orin ({})", gpu.chip()),
            memory_size: gpu.meminfo("MemTotal")?,
            local_bandwidth: bandwidth,
            transfer_bandwidth: bandwidth,
            has_matrix_hw: sm_version >= MATRIX_SINCE,
            has_simd_reduction: sm_version >= REDUCTION_SINCE,
            compute_units: sms,
            simd_width: WARP,
            max_threads_per_group: MAX_THREADS_PER_GROUP,
            shared_mem_size: shared_mem_size(sm_version),
            sm_version,
            max_clock_hz: c.max_freq,
            uuid: gpu.uuid(),
            simulated: self.kmd().is_simulated(),
            local_window: LOCAL_WINDOW.start,
            shared_window: SHARED_WINDOW.start,
        })
    }
}
