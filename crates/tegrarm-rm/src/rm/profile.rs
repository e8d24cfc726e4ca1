//! The figures of the GPU that a scheduler needs, the same for GPUs of every maker.

use super::{LOCAL_WINDOW, Rm, SHARED_WINDOW};
use crate::status::{RmResult, fail};
use crate::tegra::Characteristics;
use tegrarm_abi::rm::status::*;
pub use tegrarm_kmd::Wanted;
use tegrarm_kmd::{FaultDetails, Insights};

/// The values of the system's sensors of the GPU.
pub type Sensors = crate::tegra::Sensors;

/// Details of a fault that a simulated kernel tells.
pub type Insight = FaultDetails;

/// PCI vendor id of NVIDIA.
pub const VENDOR: u32 = 0x10de;
/// The number of threads of a warp.
const WARP: u32 = 32;
/// The largest number of threads of a block, which is a limit of the architecture.
const MAX_THREADS_PER_GROUP: u32 = 1024;
/// The first SM version with tensor cores (Volta).
const MATRIX_SINCE: u32 = 0x700;
/// The first SM version with `redux.sync` (Ampere).
const REDUCTION_SINCE: u32 = 0x800;

/// Operations per second at the highest clock, for each type of numbers. A multiply-add counts as two operations. 0 means that the
/// GPU has no instructions for the type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// With 32-bit floating-point numbers, without tensor cores.
    pub scalar_float32: u64,
    /// With 16-bit floating-point numbers, of which a register holds two.
    pub scalar_float16: u64,
    /// With 32-bit integers.
    pub scalar_int32: u64,
    /// On tensor cores, with 16-bit floating-point numbers and 32-bit sums.
    pub matrix_float16: u64,
    /// On tensor cores, with bfloat16 numbers and 32-bit sums.
    pub matrix_bfloat16: u64,
    /// On tensor cores, with 8-bit integers and 32-bit sums.
    pub matrix_int8: u64,
}

impl Rates {
    /// The rates that follow from the design: what each SM does in one clock, from the tables of CUDA's compute capabilities and the
    /// data sheets of the modules.
    fn of_design(sm_version: u32, sms: u32, clock_hz: u64) -> Rates {
        let [single, half, int, matrix_half, matrix_brain, matrix_byte] = match sm_version {
            MATRIX_SINCE..REDUCTION_SINCE => [128, 256, 128, 1024, 0, 2048],
            REDUCTION_SINCE.. => [256, 512, 128, 2048, 2048, 4096],
            _ => [256, 0, 128, 0, 0, 0],
        };
        let rate = |per_clock: u64| per_clock * u64::from(sms) * clock_hz;
        Rates {
            scalar_float32: rate(single),
            scalar_float16: rate(half),
            scalar_int32: rate(int),
            matrix_float16: rate(matrix_half),
            matrix_bfloat16: rate(matrix_brain),
            matrix_int8: rate(matrix_byte),
        }
    }
}

/// The figures of a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The PCI vendor id.
    pub vendor: u32,
    /// The name.
    pub name: String,
    /// The size in bytes of the memory that the CPU and the GPU share.
    pub memory_size: u64,
    /// The bandwidth between the GPU and the memory, in bytes per second.
    pub local_bandwidth: u64,
    /// The bandwidth between CPU memory and GPU memory, in bytes per second. It is the same memory, so the figure is
    /// the same.
    pub transfer_bandwidth: u64,
    /// True if the GPU has tensor cores.
    pub has_matrix_hw: bool,
    /// True if one instruction can reduce across a warp.
    pub has_simd_reduction: bool,
    /// The number of enabled SMs.
    pub compute_units: u32,
    /// The number of threads of a warp.
    pub simd_width: u32,
    /// The largest number of threads of a block.
    pub max_threads_per_group: u32,
    /// The largest number of bytes of shared memory of a block.
    pub shared_mem_size: u32,
    /// The SM version, `major << 8 | minor`.
    pub sm_version: u32,
    /// The highest clock in hertz.
    pub max_clock_hz: u64,
    /// The identifier, as RM's GID control gives it.
    pub uuid: [u8; 16],
    /// True for a simulated GPU, false for a board.
    pub simulated: bool,
    /// The first address of the local memory window, in VA spaces whose addresses the library chooses.
    pub local_window: u64,
    /// The first address of the shared memory window in these VA spaces.
    pub shared_window: u64,
    /// Bytes per second when the program's memory is copied into a buffer.
    pub copy_in_bandwidth: u64,
    /// Bytes per second when a buffer is copied into the program's memory.
    pub copy_out_bandwidth: u64,
    /// The rates of arithmetic.
    pub rates: Rates,
    /// Nanoseconds that each of many launches takes if nothing waits between them. 0 means unknown, because no data sheet has it.
    pub launch_latency_ns: u64,
    /// True if rates, bandwidths and the latency were measured. False if they follow from the design.
    pub measured: bool,
}

/// The bytes of shared memory that a block can ask for, by SM version, from the tables of CUDA's compute capabilities.
fn shared_mem_size(sm_version: u32) -> u32 {
    match sm_version {
        0x700..0x800 => 96 << 10,
        _ => 163 << 10,
    }
}

/// The memory of a module. nvgpu does not report its width and its clock, and only root can read the rate of the memory controller. They follow
/// from other figures, which say which module it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dram {
    /// The width of the bus in bits.
    pub bits: u32,
    /// The clock in Hz. LPDDR5 transfers twice in each clock.
    hz: u64,
}

impl Dram {
    /// That of the module with these characteristics and so many bytes of memory, by NVIDIA's data sheets. An AGX is the one with the
    /// whole L2 cache (docs/hardware/nvgpu-observed.md#observed-modules). A Nano has a lower clock than all others, unless it is "Super".
    pub(crate) fn of_module(c: &Characteristics, memory_size: u64) -> Dram {
        const HALF_L2: u64 = 2 << 20;
        const NANO_GPU_HZ: u64 = 624_750_000;
        const FOUR_GB: u64 = 4 << 30;
        let is_agx = c.L2_cache_size > HALF_L2;
        Dram {
            bits: if is_agx { 256 } else { 128 >> u32::from(memory_size < FOUR_GB) },
            hz: if c.max_freq > NANO_GPU_HZ { 3_200_000_000 } else { 2_133_000_000 },
        }
    }

    /// The peak bandwidth in bytes per second.
    fn bandwidth(self) -> u64 {
        self.hz * 2 * u64::from(self.bits / 8)
    }
}

fn check_index(index: u32) -> RmResult<()> {
    if index != 0 {
        fail!(NV_ERR_INVALID_DEVICE, "there is no device {index}; a Tegra has one GPU, device 0");
    }
    Ok(())
}

impl Rm {
    /// The number of GPUs.
    ///
    /// # Errors
    /// The reason why there is none.
    pub fn device_count(&self) -> RmResult<u32> {
        self.gpu().map(|_| 1)
    }

    /// A description of the kernel's interface, for a report. It also works with a kernel that is not known.
    ///
    /// # Errors
    /// The kernel's, from opening its nodes.
    pub fn driver_report(&self) -> RmResult<String> {
        Ok(crate::tegra::report(self.kmd())?)
    }

    /// Clocks, load, temperature and power mode, as far as the system says them.
    pub fn sensors(&self) -> Sensors {
        self.places.read(&**self.kmd())
    }

    /// The values of the system's sensors, and the free and the total bytes of memory. Nothing of the GPU is opened.
    ///
    /// # Errors
    /// INVALID_DEVICE for any index but 0, and OPERATING_SYSTEM if the kernel does not say how much memory there is.
    pub fn state(&self, index: u32) -> RmResult<(Sensors, (u64, u64))> {
        check_index(index)?;
        let [available, total] = super::gpu::meminfo(&**self.kmd(), ["MemAvailable", "MemTotal"])?;
        Ok((self.sensors(), (available, total)))
    }

    /// Details of the newest fault that stopped a channel, if the kernel tells them. `None` on a board.
    pub fn insight(&self, channel: u32) -> Option<Insight> {
        self.kmd().fault_details(channel)
    }

    /// What the work of a channel waits for that does not come, if the kernel knows. `None` on a board.
    pub fn waits_for(&self, channel: u32) -> Option<String> {
        self.kmd().waits_for(channel)
    }

    /// What the kernel reports about mistakes of GPU code, and nobody has read yet. `None` on a board.
    pub fn check_reports(&self) -> Option<String> {
        self.kmd().code_reports()
    }

    /// Tells the kernel that so many of the reports that it gave out were known and count no more.
    pub fn suppress_reports(&self, count: u64) {
        self.kmd().suppress_reports(count);
    }

    /// Whether the kernel looks for mistakes in GPU code. False on a board.
    pub fn examines_code(&self) -> bool {
        self.kmd().examines_code()
    }

    /// What the kernel has a use for of what a program knows. `None` on a board.
    pub fn wanted(&self) -> Option<Wanted> {
        self.kmd().wanted()
    }

    /// Tells the kernel about GPU code, if it has a use for that.
    pub fn tell_code(&self, lines: &str) {
        self.kmd().tell_code(lines);
    }

    /// The figures of one GPU.
    ///
    /// # Errors
    /// INVALID_DEVICE for any index but 0. If there is no GPU, the status that says why.
    pub fn device_profile(&self, index: u32) -> RmResult<Profile> {
        let gpu = self.gpu()?;
        check_index(index)?;
        let c = gpu.characteristics();
        let sms = gpu.topology()?.sm_count();
        let sm_version = c.sm_arch_sm_version;
        let memory_size = gpu.meminfo("MemTotal")?;
        let bandwidth = Dram::of_module(c, memory_size).bandwidth();
        Ok(Profile {
            vendor: VENDOR,
            name: format!("Orin ({})", gpu.chip()),
            memory_size,
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
            copy_in_bandwidth: bandwidth,
            copy_out_bandwidth: bandwidth,
            rates: Rates::of_design(sm_version, sms, c.max_freq),
            launch_latency_ns: 0,
            measured: false,
        })
    }
}
