//! A kernel's launch, prepared: descriptor and parameter bank as they were last time, so that a launch changes only
//! what is different.

use super::cubin::Kernel;
use super::launch::{Launch, LaunchError, Limits};
use super::params::{self, Windows};
use super::qmd::{self, DWORDS};
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
    /// What they are for; none yet.
    made: Option<(Launch, u32)>,
    image: Vec<u32>,
}

/// Bytes of the descriptor, which the bank follows.
const QMD_BYTES: u64 = DWORDS as u64 * 4;

impl Prepared {
    /// Room for a kernel's.
    pub fn new(kernel: &Kernel) -> Prepared {
        Prepared { made: None, image: vec![0; DWORDS + params::size(kernel) / 4] }
    }

    /// The block of arguments, laid out as the kernel's parameters are; it keeps what it had.
    #[inline]
    pub fn arguments(&mut self, kernel: &Kernel) -> &mut [u8] {
        let start = kernel.parameter_offset as usize;
        &mut self.image[DWORDS..].as_mut_bytes()[start..start + kernel.parameter_size as usize]
    }

    /// Where the block of arguments starts, in bytes from the descriptor.
    pub fn arguments_at(kernel: &Kernel) -> u64 {
        QMD_BYTES + u64::from(kernel.parameter_offset)
    }

    /// Bytes of both together.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.image.len() as u64 * 4
    }

    /// Whether they are for this launch, with `local_memory` bytes of local memory for each thread.
    #[inline]
    pub fn is_for(&self, launch: &Launch, local_memory: u32) -> bool {
        self.made == Some((*launch, local_memory))
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
        launch: &Launch,
        local_memory: u32,
        context: &Context,
    ) -> Result<(), LaunchError> {
        self.made = None;
        let (descriptor, bank) = self.image.split_at_mut(DWORDS);
        let bank_size = bank.len() as u32 * 4;
        // The bank's address is filled in with each launch: see `at`.
        let place = qmd::Place { module, bank: 0, bank_size, local_memory };
        descriptor.copy_from_slice(&qmd::build(kernel, launch, &place, &context.limits, context.sass_version)?);
        params::header(kernel, module, launch, &context.windows, bank.as_mut_bytes());
        self.made = Some((*launch, local_memory));
        Ok(())
    }

    /// Their bytes, to be written to GPU address `at`: a multiple of 256 below 2^40.
    #[inline]
    pub fn at(&mut self, at: u64) -> &[u8] {
        let bank = at + QMD_BYTES;
        f::CONSTANT_BUFFER_ADDR_LOWER.at(0).put_words(&mut self.image, bank & 0xffff_ffff);
        f::CONSTANT_BUFFER_ADDR_UPPER.at(0).put_words(&mut self.image, bank >> 32);
        self.image.as_bytes()
    }
}
