//! A launch: the number of its threads, and whether the GPU can run them.

pub mod images;
pub mod params;
pub mod qmd;
pub mod template;

use tegrarm_images::cubin::Kernel;
use thiserror::Error;
use zerocopy::{Immutable, IntoBytes};

/// Size of a grid in blocks, or of a block in threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoBytes, Immutable)]
#[repr(C)]
pub struct Dim3 {
    /// The size along x.
    pub x: u32,
    /// The size along y.
    pub y: u32,
    /// The size along z.
    pub z: u32,
}

impl Dim3 {
    /// Makes a size from all three numbers.
    pub const fn new(x: u32, y: u32, z: u32) -> Dim3 {
        Dim3 { x, y, z }
    }

    /// The number of threads or blocks in all.
    pub fn count(self) -> u64 {
        u64::from(self.x) * u64::from(self.y) * u64::from(self.z)
    }
}

impl std::fmt::Display for Dim3 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "({}, {}, {})", self.x, self.y, self.z)
    }
}

/// What the GPU can run. [`Limits::ORIN`] has the values of sm_87.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most blocks along x, y and z.
    pub grid: Dim3,
    /// The most threads along x, y and z.
    pub block: Dim3,
    /// The most threads of a block.
    pub threads: u32,
    /// The number of registers of an SM.
    pub registers: u32,
    /// The number of warps of an SM.
    pub warps: u32,
    /// The number of blocks of an SM.
    pub blocks: u32,
    /// The most shared memory of a block in bytes, including its reserve of 1 KiB.
    pub shared: u32,
    /// The sizes that the shared part of the SM's memory can have, in KiB and in ascending order.
    pub shared_splits: &'static [u32],
}

impl Limits {
    /// The limits of sm_87: an SM has 64 Ki registers, 48 warps and 16 blocks. A block has 1024 threads, and 163 KiB of
    /// shared memory with a reserve of 1 KiB.
    pub const ORIN: Limits = Limits {
        grid: Dim3::new(0x7fff_ffff, 0xffff, 0xffff),
        block: Dim3::new(1024, 1024, 64),
        threads: 1024,
        registers: 0x1_0000,
        warps: 48,
        blocks: 16,
        shared: 164 << 10,
        shared_splits: &[8, 16, 32, 64, 100, 132, 164],
    };
}

/// The geometry of one launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoBytes, Immutable)]
#[repr(C)]
pub struct Launch {
    /// The size of the grid in blocks.
    pub grid: Dim3,
    /// The size of each block in threads.
    pub block: Dim3,
    /// The dynamic shared memory of each block in bytes.
    pub dynamic_shared: u32,
}

/// The reason why a launch is not possible.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "the message of each variant is its documentation")]
pub enum LaunchError {
    #[error("{what} {found} is empty or larger than {limit}")]
    Size { what: &'static str, found: Dim3, limit: Dim3 },
    #[error("a block of {found} = {threads} threads: at most {limit}, {why}")]
    Threads { found: Dim3, threads: u64, limit: u32, why: &'static str },
    #[error("a block of {found}: the kernel was compiled for {required} only")]
    Block { found: Dim3, required: Dim3 },
    #[error("{threads} threads of {registers} registers need {needed}: an SM has {limit}")]
    Registers { threads: u64, registers: u32, needed: u64, limit: u32 },
    #[error("{dynamic} bytes of dynamic shared memory make {needed}: a block can have {limit}")]
    Shared { dynamic: u32, needed: u64, limit: u32 },
    #[error("the kernel needs {needed} bytes of local memory per thread, the context has {available}")]
    LocalMemory { needed: u32, available: u32 },
    #[error("{found} bytes of local memory per thread: wanted a multiple of 16 below 2^24")]
    LocalMemorySize { found: u32 },
    #[error("{what} at {address:#x}: wanted a multiple of {unit:#x} below 2^{bits}")]
    Address { what: &'static str, address: u64, unit: u64, bits: u32 },
    #[error(
        "{blocks} blocks in a cooperative launch, which all run at the same time: the {sms} SMs have room for {each} each"
    )]
    Cooperative { blocks: u64, sms: u32, each: u32 },
    #[error("{found} arguments for a kernel with {wanted} parameters")]
    ArgumentCount { found: usize, wanted: usize },
    #[error("argument {index} has {found} bytes, the parameter {wanted}")]
    ArgumentSize { index: usize, found: usize, wanted: u32 },
    #[error("{found} bytes of arguments for {wanted} bytes of parameters")]
    ArgumentBytes { found: usize, wanted: u32 },
}

const WARP: u64 = 32;
const REGISTER_UNIT: u64 = 256;
/// An SM has this many parts, each with its own registers. The warps of a block are spread over them.
const SM_PARTITIONS: u64 = 4;

impl Launch {
    /// Whether two launches are the same. They are compared as a whole and not field by field, because they are nearly
    /// always the same.
    #[inline(always)]
    pub fn is_like(&self, other: &Launch) -> bool {
        self.as_bytes() == other.as_bytes()
    }

    /// Checks the launch of `kernel` against the GPU's limits and the context's local memory per thread.
    ///
    /// # Errors
    /// The first limit that is broken, with the numbers.
    pub fn check(&self, kernel: &Kernel, limits: &Limits, local_memory: u32) -> Result<(), LaunchError> {
        within("grid", self.grid, limits.grid)?;
        within("block", self.block, limits.block)?;
        self.check_threads(kernel, limits)?;
        let needed = kernel.shared_memory(self.dynamic_shared);
        if needed > u64::from(limits.shared) {
            return Err(LaunchError::Shared { dynamic: self.dynamic_shared, needed, limit: limits.shared });
        }
        if kernel.local_memory() > local_memory {
            return Err(LaunchError::LocalMemory { needed: kernel.local_memory(), available: local_memory });
        }
        Ok(())
    }

    /// The number of blocks of such a launch that one SM runs at the same time. The GPU must be able to run the launch.
    pub fn blocks_at_once(&self, kernel: &Kernel, limits: &Limits) -> u32 {
        let warps = self.block.count().div_ceil(WARP);
        // Each part of an SM has its own registers, so that the registers of a warp never come from two parts.
        let in_registers = u64::from(limits.registers) / SM_PARTITIONS / registers_of_warp(kernel) * SM_PARTITIONS;
        let by_warps = u64::from(limits.warps).min(in_registers) / warps;
        let by_shared = u64::from(limits.shared) / kernel.shared_memory(self.dynamic_shared);
        by_warps.min(by_shared).min(limits.blocks.into()) as u32
    }

    fn check_threads(&self, kernel: &Kernel, limits: &Limits) -> Result<(), LaunchError> {
        let (found, threads) = (self.block, self.block.count());
        if threads > u64::from(limits.threads) {
            return Err(LaunchError::Threads { found, threads, limit: limits.threads, why: "the GPU's limit" });
        }
        if let Some([x, y, z]) = kernel.required_block
            && found != Dim3::new(x, y, z)
        {
            return Err(LaunchError::Block { found, required: Dim3::new(x, y, z) });
        }
        if let Some(limit) = kernel.max_threads.filter(|&limit| threads > limit.into()) {
            return Err(LaunchError::Threads { found, threads, limit, why: "the kernel's launch bounds" });
        }
        let needed = registers_of_warp(kernel) * threads.div_ceil(WARP).next_multiple_of(SM_PARTITIONS);
        if needed > u64::from(limits.registers) {
            let (registers, limit) = (kernel.registers, limits.registers);
            return Err(LaunchError::Registers { threads, registers, needed, limit });
        }
        Ok(())
    }
}

/// The number of registers that each warp of a kernel takes.
fn registers_of_warp(kernel: &Kernel) -> u64 {
    (u64::from(kernel.registers.max(1)) * WARP).next_multiple_of(REGISTER_UNIT)
}

/// The most threads that a block of a kernel can have.
pub fn most_threads(kernel: &Kernel, limits: &Limits) -> u32 {
    if let Some(block) = kernel.required_block {
        return block.iter().product();
    }
    let warps = u64::from(limits.registers) / registers_of_warp(kernel) / SM_PARTITIONS * SM_PARTITIONS;
    let by_registers = (warps * WARP).min(limits.threads.into()) as u32;
    kernel.max_threads.map_or(by_registers, |most| most.min(by_registers))
}

/// The most dynamic shared memory that a block of a kernel can have.
pub fn most_dynamic_shared(kernel: &Kernel, limits: &Limits) -> u32 {
    // Sizes are rounded up to whole units, and the limit is a number of whole units.
    u64::from(limits.shared).saturating_sub(kernel.shared_memory(0)) as u32 + kernel.shared.next_multiple_of(128)
        - kernel.shared
}

fn within(what: &'static str, found: Dim3, limit: Dim3) -> Result<(), LaunchError> {
    let fits = |n: u32, limit: u32| (1..=limit).contains(&n);
    if fits(found.x, limit.x) && fits(found.y, limit.y) && fits(found.z, limit.z) {
        return Ok(());
    }
    Err(LaunchError::Size { what, found, limit })
}
