//! The launch descriptor, QMD version 3.0: the 64 dwords that the GPU reads to run a grid.
//!
//! The positions of the bits are in `tegrarm_abi::methods::qmd`. Which fields matter, and in which units, is known from
//! the hardware's class header and from the launches of public drivers.

use crate::runtime::launch::{Launch, LaunchError, Limits};
use tegrarm_abi::layout::Bits;
use tegrarm_abi::methods::qmd as f;
use tegrarm_images::cubin::Kernel;

/// The number of dwords of a QMD.
pub const DWORDS: usize = 64;
/// The address of a QMD is a multiple of this many bytes, and below 2^40.
pub const ALIGN: u64 = 256;
/// The number of bits of a QMD's address. A launch method carries bits 39:8.
pub const ADDRESS_BITS: u32 = 40;

const MAJOR: u64 = 3;
const NO_GROUP: u64 = 0x3f;
/// The largest value of a field of nine bits, in units of 256 bytes.
const PREFETCH_MOST: u64 = 0x1ff;
const PROGRAM_ADDRESS_BITS: u32 = 49;

/// The memory that a launch uses on the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchMemory {
    /// The address of the module.
    pub module: u64,
    /// The address of the parameter bank, a multiple of 64 bytes.
    pub bank: u64,
    /// The number of bytes of the parameter bank.
    pub bank_size: u32,
    /// The local memory per thread that the context has, in bytes.
    pub local_memory: u32,
}

/// A store that the GPU makes when the grid has finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// The address, which is a multiple of 8.
    pub address: u64,
    /// The value.
    pub value: u64,
}

/// Builds the QMD of a launch that [`Launch::check`] accepts.
///
/// # Errors
/// The launch breaks a limit, or an address does not fit into its field.
pub fn build(
    kernel: &Kernel,
    launch: &Launch,
    memory: &LaunchMemory,
    limits: &Limits,
    sass_version: u8,
) -> Result<[u32; DWORDS], LaunchError> {
    launch.check(kernel, limits, memory.local_memory)?;
    if !memory.local_memory.is_multiple_of(16) || memory.local_memory >> 24 != 0 {
        return Err(LaunchError::LocalMemorySize { found: memory.local_memory });
    }
    let program = memory.module + kernel.code;
    check_address("code", program, 128, PROGRAM_ADDRESS_BITS)?;
    let mut q = Qmd([0; DWORDS]);
    q.identity(sass_version);
    q.caches();
    q.geometry(launch);
    q.program(program, kernel.code_size);
    q.resources(kernel, launch, memory, limits);
    q.bank(0, memory.bank, memory.bank_size)?;
    for bank in &kernel.banks {
        q.bank(bank.number.into(), memory.module + bank.offset, bank.size)?;
    }
    Ok(q.0)
}

/// Adds a 64-bit store after the grid. It is ordered after everything that the grid wrote.
///
/// # Errors
/// The address does not fit.
pub fn release(qmd: &mut [u32; DWORDS], release: Release) -> Result<(), LaunchError> {
    check_address("release", release.address, 8, ADDRESS_BITS)?;
    let mut q = Qmd(*qmd);
    q.set(f::RELEASE0_ADDRESS_LOWER, release.address & 0xffff_ffff);
    q.set(f::RELEASE0_ADDRESS_UPPER, release.address >> 32);
    q.set(f::RELEASE0_MEMBAR_TYPE, f::RELEASE0_MEMBAR_TYPE_FE_SYSMEMBAR.into());
    q.set(f::RELEASE0_ENABLE, f::RELEASE0_ENABLE_TRUE.into());
    q.set(f::RELEASE0_PAYLOAD64B, f::RELEASE0_PAYLOAD64B_TRUE.into());
    q.set(f::RELEASE0_STRUCTURE_SIZE, f::RELEASE0_STRUCTURE_SIZE_SEMAPHORE_TWO_WORDS.into());
    q.set(f::RELEASE0_PAYLOAD_LOWER, release.value & 0xffff_ffff);
    q.set(f::RELEASE0_PAYLOAD_UPPER, release.value >> 32);
    *qmd = q.0;
    Ok(())
}

struct Qmd([u32; DWORDS]);

impl Qmd {
    fn set(&mut self, field: Bits, value: u64) {
        debug_assert!(field.width() >= 64 || value >> field.width() == 0, "{value:#x} in {field:?}");
        field.put_words(&mut self.0, value);
    }

    fn identity(&mut self, sass_version: u8) {
        self.set(f::QMD_MAJOR_VERSION, MAJOR);
        self.set(f::QMD_GROUP_ID, NO_GROUP);
        self.set(f::SASS_VERSION, sass_version.into());
        self.set(f::API_VISIBLE_CALL_LIMIT, f::API_VISIBLE_CALL_LIMIT_NO_CHECK.into());
        self.set(f::SAMPLER_INDEX, f::SAMPLER_INDEX_VIA_HEADER_INDEX.into());
    }

    /// Sets the cache operations: the grid sees what the CPU and the copy engine wrote before it, and they see what the
    /// grid wrote.
    fn caches(&mut self) {
        self.set(f::SM_GLOBAL_CACHING_ENABLE, 1);
        self.set(f::INVALIDATE_TEXTURE_HEADER_CACHE, 1);
        self.set(f::INVALIDATE_TEXTURE_SAMPLER_CACHE, 1);
        self.set(f::INVALIDATE_TEXTURE_DATA_CACHE, 1);
        self.set(f::INVALIDATE_SHADER_DATA_CACHE, 1);
        self.set(f::INVALIDATE_INSTRUCTION_CACHE, 1);
        self.set(f::INVALIDATE_SHADER_CONSTANT_CACHE, 1);
        self.set(f::CWD_MEMBAR_TYPE, f::CWD_MEMBAR_TYPE_L1_SYSMEMBAR.into());
    }

    fn geometry(&mut self, launch: &Launch) {
        let Launch { grid, block, .. } = launch;
        self.set(f::CTA_RASTER_WIDTH, grid.x.into());
        self.set(f::CTA_RASTER_HEIGHT, grid.y.into());
        self.set(f::CTA_RASTER_DEPTH, grid.z.into());
        self.set(f::CTA_THREAD_DIMENSION0, block.x.into());
        self.set(f::CTA_THREAD_DIMENSION1, block.y.into());
        self.set(f::CTA_THREAD_DIMENSION2, block.z.into());
    }

    fn program(&mut self, address: u64, size: u64) {
        self.set(f::PROGRAM_ADDRESS_LOWER, address & 0xffff_ffff);
        self.set(f::PROGRAM_ADDRESS_UPPER, address >> 32);
        self.set(f::PROGRAM_PREFETCH_ADDR_LOWER_SHIFTED, address >> 8 & 0xffff_ffff);
        self.set(f::PROGRAM_PREFETCH_ADDR_UPPER_SHIFTED, address >> 40);
        self.set(f::PROGRAM_PREFETCH_SIZE, (size >> 8).min(PREFETCH_MOST));
    }

    fn resources(&mut self, kernel: &Kernel, launch: &Launch, memory: &LaunchMemory, limits: &Limits) {
        let shared = kernel.shared_memory(launch.dynamic_shared);
        let split = |kib: u32| u64::from(kib) / 4 + 1;
        let smallest = limits.shared_splits.iter().find(|&&kib| u64::from(kib) << 10 >= shared);
        let largest = limits.shared_splits.last().copied().unwrap_or(0);
        self.set(f::REGISTER_COUNT_V, kernel.registers.into());
        self.set(f::BARRIER_COUNT, kernel.barriers.max(1).into());
        self.set(f::SHARED_MEMORY_SIZE, shared);
        self.set(f::MIN_SM_CONFIG_SHARED_MEM_SIZE, split(*smallest.unwrap_or(&largest)));
        self.set(f::TARGET_SM_CONFIG_SHARED_MEM_SIZE, split(*smallest.unwrap_or(&largest)));
        self.set(f::MAX_SM_CONFIG_SHARED_MEM_SIZE, split(largest));
        let low = kernel.low_memory();
        self.set(f::SHADER_LOCAL_MEMORY_LOW_SIZE, low.into());
        self.set(f::SHADER_LOCAL_MEMORY_HIGH_SIZE, (memory.local_memory - low).into());
    }

    fn bank(&mut self, number: u16, address: u64, size: u32) -> Result<(), LaunchError> {
        check_address("constant bank", address, 64, PROGRAM_ADDRESS_BITS)?;
        self.set(f::CONSTANT_BUFFER_ADDR_LOWER.at(number), address & 0xffff_ffff);
        self.set(f::CONSTANT_BUFFER_ADDR_UPPER.at(number), address >> 32);
        self.set(f::CONSTANT_BUFFER_SIZE_SHIFTED4.at(number), u64::from(size).div_ceil(16));
        self.set(f::CONSTANT_BUFFER_INVALIDATE.at(number), 1);
        self.set(f::CONSTANT_BUFFER_VALID.at(number), 1);
        Ok(())
    }
}

fn check_address(what: &'static str, address: u64, unit: u64, bits: u32) -> Result<(), LaunchError> {
    if address.is_multiple_of(unit) && address >> bits == 0 {
        return Ok(());
    }
    Err(LaunchError::Address { what, address, unit, bits })
}
