//! A kernel's launch, prepared: descriptor and parameter bank as they were last time, so that a launch changes only
//! what is different.

use super::cubin::Kernel;
use super::launch::{Dim3, Launch, LaunchError, Limits};
use super::params::{self, Windows};
use super::qmd::{self, DWORDS};
use std::ops::Range;
use tegrarm_abi::methods::qmd as f;
use zerocopy::IntoBytes;

/// What every launch on a device has in common.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// What the GPU can run.
    pub limits: Limits,
    /// Where kernels find shared and local memory.
    pub windows: Windows,
    /// The machine code's version, as the descriptor says it.
    pub sass_version: u8,
}

/// Descriptor and parameter bank of one kernel, side by side as the GPU gets them.
pub struct Prepared {
    /// What they are for.
    made: Launch,
    /// With this many bytes of local memory for each thread; never with [`UNMADE`].
    local_memory: u32,
    image: Vec<u32>,
    /// Where the block of arguments lies, in bytes from the bank.
    arguments: Range<usize>,
}

/// More local memory than there can be.
const UNMADE: u32 = u32::MAX;
/// Bytes of the descriptor, which the bank follows.
const QMD_BYTES: u64 = DWORDS as u64 * 4;

impl Prepared {
    /// Room for a kernel's.
    pub fn new(kernel: &Kernel) -> Prepared {
        let start = kernel.parameter_offset as usize;
        let arguments = start..start + kernel.parameter_size as usize;
        Prepared {
            made: Launch { grid: Dim3::new(0, 0, 0), block: Dim3::new(0, 0, 0), dynamic_shared: 0 },
            local_memory: UNMADE,
            image: vec![0; DWORDS + params::size(kernel) / 4],
            arguments,
        }
    }

    /// The block of arguments, laid out as the kernel's parameters are; it keeps what it had.
    pub fn arguments(&mut self) -> &mut [u8] {
        &mut self.image[DWORDS..].as_mut_bytes()[self.arguments.clone()]
    }

    /// Where the block of arguments starts, in bytes from the descriptor.
    pub fn arguments_at(&self) -> u64 {
        QMD_BYTES + self.arguments.start as u64
    }

    /// Its length in bytes.
    pub fn argument_bytes(&self) -> u64 {
        self.arguments.len() as u64
    }

    /// Bytes of both together.
    pub fn bytes(&self) -> u64 {
        self.image.len() as u64 * 4
    }

    /// Whether they are for this launch, with `local_memory` bytes of local memory for each thread.
    #[inline]
    pub fn is_for(&self, launch: &Launch, local_memory: u32) -> bool {
        self.made.is_like(launch) && self.local_memory == local_memory
    }

    /// Makes them for a launch of a kernel whose module lies at `module`.
    ///
    /// # Errors
    /// The limit that is broken, with the numbers.
    #[cold]
    pub fn make(
        &mut self,
        kernel: &Kernel,
        module: u64,
        launch: Launch,
        local_memory: u32,
        context: &Context,
    ) -> Result<(), LaunchError> {
        self.local_memory = UNMADE;
        let (descriptor, bank) = self.image.split_at_mut(DWORDS);
        let bank_size = bank.len() as u32 * 4;
        // The bank's address is filled in with each launch: see `at`.
        let memory = qmd::LaunchMemory { module, bank: 0, bank_size, local_memory };
        descriptor.copy_from_slice(&qmd::build(kernel, &launch, &memory, &context.limits, context.sass_version)?);
        params::header(kernel, module, &launch, &context.windows, bank.as_mut_bytes());
        (self.made, self.local_memory) = (launch, local_memory);
        Ok(())
    }

    /// Their bytes, to be written to GPU address `at`: a multiple of 256 below 2^40.
    pub fn at(&mut self, at: u64) -> &[u8] {
        let bank = at + QMD_BYTES;
        f::CONSTANT_BUFFER_ADDR_LOWER.at(0).put_words(&mut self.image, bank & 0xffff_ffff);
        f::CONSTANT_BUFFER_ADDR_UPPER.at(0).put_words(&mut self.image, bank >> 32);
        self.image.as_bytes()
    }
}
