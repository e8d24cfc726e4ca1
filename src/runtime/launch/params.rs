//! Constant bank 0, which holds the properties of a launch that a kernel can read, and its arguments.
//!
//! The offsets are those at which the compilers' code reads `c[0x0][..]` on sm_87. The hardware fills in none of them.
//! Values that CUDA's driver keeps there for itself stay zero.

use crate::runtime::launch::{Launch, LaunchError};
use tegrarm_images::cubin::Kernel;
use tegrarm_images::cubin::kernel::{BANK_HEADER, Parameter};

/// The byte offsets in the bank.
mod at {
    pub const BLOCK: usize = 0x00;
    pub const GRID: usize = 0x0c;
    pub const SHARED_WINDOW: usize = 0x18;
    pub const LOCAL_WINDOW: usize = 0x20;
    pub const STACK: usize = 0x28;
    pub const DYNAMIC_SHARED: usize = 0x2c;
    /// The address of this bank in memory. The generic address of a parameter (`__grid_constant__`) is this number plus its offset.
    pub const OWN: usize = 0x40;
    /// Environment registers 1 and 2: the upper and the lower half of the address of the grid's workspace.
    pub const WORKSPACE: usize = 0x8c;
    /// Environment registers 30 and 31: the address of the state of the device library.
    pub const LIBRARY: usize = 0x100;
    /// The number that is added to the address of a `__constant__` variable to make a generic pointer: the address of
    /// bank 3 in memory.
    pub const CONSTANTS: usize = 0x50;
    pub const SM_COUNT: usize = 0x10c;
    pub const RESERVED_SHARED: usize = 0x114;
    /// The bytes of a kernel's shared arrays. No code reads it; a simulated GPU that looks for mistakes does.
    pub const SHARED_ARRAYS: usize = 0x138;
}

/// The address at which each thread's stack starts, in its 2^24 bytes of local memory. The ABI keeps 0x240 bytes at the
/// top.
pub const STACK_START: u32 = (1 << 24) - tegrarm_images::cubin::kernel::STACK_RESERVE;

/// The number of the bank of `__constant__` variables.
const CONSTANT_VARIABLES: u8 = 3;

/// The properties of the context that every launch gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// The generic address at which a block sees its shared memory (16 MiB).
    pub shared: u64,
    /// The generic address at which a thread sees its local memory (16 MiB).
    pub local: u64,
    /// The number of SMs.
    pub sm_count: u32,
}

/// The addresses that a kernel's code needs to find the parts of its module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    /// The GPU address of the module.
    pub module: u64,
    /// The GPU address of the device library's state. 0 if the module does not use the library.
    pub library: u64,
}

/// The workspace in which the blocks of a grid wait for each other, as cooperative groups use it. The first word is the number of its
/// bytes; another word is the barrier.
pub const WORKSPACE: [u32; 4] = [16, 0, 0, 0];

/// Writes into a bank what depends on its place in memory: its own address and that of the workspace.
pub fn put_addresses(bank: &mut [u8], own: u64, workspace: u64) {
    put(bank, at::OWN, &halves(own));
    put(bank, at::WORKSPACE, &[(workspace >> 32) as u32, workspace as u32]);
}

/// Makes the parameter bank of one launch, for a module that lies at `home`. `arguments` is the block of arguments,
/// which has the layout of the parameters.
///
/// # Errors
/// [`LaunchError::ArgumentBytes`] if the block does not have the size of the parameters.
pub fn bank(
    kernel: &Kernel,
    home: &Home,
    launch: &Launch,
    windows: &Windows,
    arguments: &[u8],
) -> Result<Vec<u8>, LaunchError> {
    if arguments.len() != kernel.parameter_size as usize {
        return Err(LaunchError::ArgumentBytes { found: arguments.len(), wanted: kernel.parameter_size });
    }
    let mut bank = vec![0; size(kernel)];
    header(kernel, home, launch, windows, &mut bank);
    bank[kernel.parameter_offset as usize..][..arguments.len()].copy_from_slice(arguments);
    Ok(bank)
}

/// The number of bytes of a kernel's parameter bank.
pub fn size(kernel: &Kernel) -> usize {
    kernel.parameter_bank().max(BANK_HEADER).next_multiple_of(16) as usize
}

/// Writes the bank except for the arguments and the addresses of the bank and the workspace.
pub fn header(kernel: &Kernel, home: &Home, launch: &Launch, windows: &Windows, bank: &mut [u8]) {
    put(bank, at::BLOCK, &[launch.block.x, launch.block.y, launch.block.z]);
    put(bank, at::GRID, &[launch.grid.x, launch.grid.y, launch.grid.z]);
    put(bank, at::SHARED_WINDOW, &halves(windows.shared));
    put(bank, at::LOCAL_WINDOW, &halves(windows.local));
    put(bank, at::STACK, &[STACK_START]);
    put(bank, at::DYNAMIC_SHARED, &[launch.dynamic_shared]);
    let constants = kernel.banks.iter().find(|b| b.number == CONSTANT_VARIABLES);
    put(bank, at::CONSTANTS, &halves(constants.map_or(0, |b| home.module + b.offset)));
    put(bank, at::LIBRARY, &halves(home.library));
    put(bank, at::SM_COUNT, &[windows.sm_count]);
    put(bank, at::RESERVED_SHARED, &[tegrarm_images::cubin::kernel::SHARED_RESERVE]);
    put(bank, at::SHARED_ARRAYS, &[kernel.shared.saturating_add(launch.dynamic_shared)]);
}

/// The places of a kernel's arguments in its block of arguments. They are computed once and used by every launch.
pub struct Layout {
    name: String,
    fields: Box<[Parameter]>,
    size: usize,
}

impl Layout {
    /// Computes the layout of a kernel.
    ///
    /// # Panics
    /// A parameter lies outside of the block. The loader refuses such kernels.
    pub fn of(kernel: &Kernel) -> Layout {
        let size = kernel.parameter_size;
        let inside = |p: &Parameter| p.offset.checked_add(p.size).is_some_and(|end| end <= size);
        assert!(kernel.parameters.iter().all(inside), "parameters of '{}' outside {size} bytes", kernel.name);
        Layout { name: kernel.name.clone(), fields: kernel.parameters[..].into(), size: size as usize }
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All parameters. They lie inside the block.
    #[inline]
    pub fn fields(&self) -> &[Parameter] {
        &self.fields
    }

    /// The number of bytes of the block.
    #[inline]
    pub fn size(&self) -> usize {
        self.size
    }
}

/// Packs single arguments into a block of arguments, each at its parameter's offset.
///
/// # Errors
/// There are more or fewer arguments than parameters, or one has another size.
pub fn pack(kernel: &Kernel, arguments: &[&[u8]]) -> Result<Vec<u8>, LaunchError> {
    let (found, wanted) = (arguments.len(), kernel.parameters.len());
    if found != wanted {
        return Err(LaunchError::ArgumentCount { found, wanted });
    }
    let mut block = vec![0; kernel.parameter_size as usize];
    for (index, (argument, parameter)) in arguments.iter().zip(&kernel.parameters).enumerate() {
        if argument.len() != parameter.size as usize {
            let (found, wanted) = (argument.len(), parameter.size);
            return Err(LaunchError::ArgumentSize { index, found, wanted });
        }
        block[parameter.offset as usize..][..argument.len()].copy_from_slice(argument);
    }
    Ok(block)
}

fn put(bank: &mut [u8], at: usize, words: &[u32]) {
    for (place, word) in bank[at..].chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
}

fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}
