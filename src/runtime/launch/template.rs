//! The descriptor and the parameter bank of a kernel's last launch. The next launch changes only what is different.

use crate::runtime::launch::params::{self, Home, WORKSPACE, Windows};
use crate::runtime::launch::qmd::{self, DWORDS};
use crate::runtime::launch::{Dim3, Launch, LaunchError, Limits};
use std::ops::Range;
use tegrarm_abi::methods::qmd as f;
use tegrarm_images::cubin::Kernel;
use zerocopy::IntoBytes;

/// The values that all launches on a device have in common.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// The limits of the GPU.
    pub limits: Limits,
    /// The windows in which kernels find shared and local memory.
    pub windows: Windows,
    /// The version of the machine code in the form that the descriptor has.
    pub sass_version: u8,
}

/// The descriptor, the parameter bank and the grid's workspace of one kernel. The GPU gets them in this order.
pub struct LaunchTemplate {
    /// The launch for which they were made.
    made: Launch,
    /// The number of bytes of local memory of each thread for which they were made. It is [`UNMADE`] if they were not
    /// made.
    local_memory: u32,
    image: Vec<u32>,
    /// The place of the block of arguments, in bytes from the start of the bank.
    arguments: Range<usize>,
}

/// More local memory than a thread can have.
const UNMADE: u32 = u32::MAX;
/// The number of bytes of the descriptor. The bank comes after it.
const QMD_BYTES: u64 = DWORDS as u64 * 4;

impl LaunchTemplate {
    /// Makes room for the descriptor and the bank of a kernel.
    pub fn new(kernel: &Kernel) -> LaunchTemplate {
        let start = kernel.parameter_offset as usize;
        let arguments = start..start + kernel.parameter_size as usize;
        LaunchTemplate {
            made: Launch { grid: Dim3::new(0, 0, 0), block: Dim3::new(0, 0, 0), dynamic_shared: 0 },
            local_memory: UNMADE,
            image: vec![0; DWORDS + params::size(kernel) / 4 + WORKSPACE.len()],
            arguments,
        }
    }

    /// The block of arguments, which has the layout of the kernel's parameters. It keeps its contents.
    pub fn arguments(&mut self) -> &mut [u8] {
        &mut self.image[DWORDS..].as_mut_bytes()[self.arguments.clone()]
    }

    /// The place of the block of arguments, in bytes from the start of the descriptor.
    pub fn arguments_at(&self) -> u64 {
        QMD_BYTES + self.arguments.start as u64
    }

    /// The length of the block of arguments in bytes.
    pub fn argument_bytes(&self) -> u64 {
        self.arguments.len() as u64
    }

    /// The number of bytes of the three parts together.
    pub fn bytes(&self) -> u64 {
        self.image.len() as u64 * 4
    }

    /// Whether they were made for this launch, with `local_memory` bytes of local memory for each thread.
    #[inline]
    pub fn is_for(&self, launch: &Launch, local_memory: u32) -> bool {
        self.made.is_like(launch) && self.local_memory == local_memory
    }

    /// Makes the three parts for a launch of a kernel whose module is at `home`.
    ///
    /// # Errors
    /// The limit that is broken, with the numbers.
    #[cold]
    pub fn make(
        &mut self,
        kernel: &Kernel,
        home: &Home,
        launch: Launch,
        local_memory: u32,
        context: &Context,
    ) -> Result<(), LaunchError> {
        self.local_memory = UNMADE;
        let (descriptor, bank) = self.image.split_at_mut(DWORDS);
        let (bank, workspace) = bank.split_at_mut(bank.len() - WORKSPACE.len());
        workspace.copy_from_slice(&WORKSPACE);
        let bank_size = bank.len() as u32 * 4;
        // Each launch fills in the bank's address: see `at`.
        let memory = qmd::LaunchMemory { module: home.module, bank: 0, bank_size, local_memory };
        descriptor.copy_from_slice(&qmd::build(kernel, &launch, &memory, &context.limits, context.sass_version)?);
        params::header(kernel, home, &launch, &context.windows, bank.as_mut_bytes());
        (self.made, self.local_memory) = (launch, local_memory);
        Ok(())
    }

    /// The bytes to write to GPU address `at`, which is a multiple of 256 below 2^40.
    pub fn at(&mut self, at: u64) -> &[u8] {
        let bank = at + QMD_BYTES;
        f::CONSTANT_BUFFER_ADDR_LOWER.at(0).put_words(&mut self.image, bank & 0xffff_ffff);
        f::CONSTANT_BUFFER_ADDR_UPPER.at(0).put_words(&mut self.image, bank >> 32);
        let workspace = at + self.bytes() - size_of_val(&WORKSPACE) as u64;
        params::put_addresses(&mut self.image.as_mut_bytes()[QMD_BYTES as usize..], bank, workspace);
        self.image.as_bytes()
    }
}
