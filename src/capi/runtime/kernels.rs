//! What the library can tell a program about a kernel.

use super::super::guard::status;
use super::super::objects::{NV_STATUS, NvU32};
use super::handles::KERNELS;
use super::opaque::tegrarm_kernel;
use super::pointers::{give, give_any, grown, present};
use crate::runtime::device::module::KernelRef;
use crate::runtime::launch::{Dim3, Launch, most_dynamic_shared, most_threads};
use tegrarm_abi::rm::status::*;
use tegrarm_images::cubin::Stack;
use tegrarm_rm::status::fail;

/// `tegrarm_kernel_attributes.stack_size` of a kernel whose depth the compiler cannot tell, because it recurses.
pub const TEGRARM_STACK_UNKNOWN: u32 = u32::MAX;

/// What the compiler says of a kernel, and what the GPU makes of it. Set `size` to
/// `sizeof(struct tegrarm_kernel_attributes)` before the call. At most that many bytes are written. Later versions only
/// append fields.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct tegrarm_kernel_attributes {
    /// Before the call, how many bytes the caller has. After it, how many bytes are valid.
    pub size: usize,
    /// How many registers a thread has.
    pub registers: u32,
    /// How many bytes of static shared memory a block has.
    pub shared_size: u32,
    /// How many bytes of dynamic shared memory a block can have at most.
    pub max_dynamic_shared: u32,
    /// How many bytes of local memory a thread needs, with its stack and what the ABI keeps.
    pub local_size: u32,
    /// How many bytes of stack a thread needs, or `TEGRARM_STACK_UNKNOWN`.
    pub stack_size: u32,
    /// How many bytes of constants it reads, its parameters not counted.
    pub constant_size: u32,
    /// How many barriers a block uses.
    pub barriers: u32,
    /// How many threads a block can have at most: what the registers allow, and what the kernel was compiled for.
    pub max_threads: u32,
    /// The only size a block can have, in x, y and z. It is 0, 0, 0 if the kernel was not compiled for one size.
    pub required_block: [u32; 3],
    /// How many parameters it has.
    pub parameters: u32,
    /// How many bytes the parameters have together.
    pub parameter_size: u32,
    /// How many bytes of machine code it has.
    pub code_size: u64,
    /// The GPU address of its first instruction, to which the `pc` of a fault is compared.
    pub code_address: u64,
}

impl tegrarm_kernel_attributes {
    fn of(kernel: &KernelRef) -> tegrarm_kernel_attributes {
        let (k, limits) = (kernel.kernel(), &kernel.module().device().base().context().limits);
        tegrarm_kernel_attributes {
            size: size_of::<tegrarm_kernel_attributes>(),
            registers: k.registers,
            shared_size: k.shared,
            max_dynamic_shared: most_dynamic_shared(k, limits),
            local_size: k.local_memory(),
            stack_size: match k.stack {
                Stack::Bytes(bytes) => bytes,
                Stack::Unbounded => TEGRARM_STACK_UNKNOWN,
            },
            constant_size: k.banks.iter().map(|bank| bank.size).sum(),
            barriers: k.barriers,
            max_threads: most_threads(k, limits),
            required_block: k.required_block.unwrap_or_default(),
            parameters: k.parameters.len() as u32,
            parameter_size: k.parameter_size,
            code_size: k.code_size,
            code_address: kernel.module().home().module + k.code,
        }
    }
}

/// Writes what is known of a kernel to `*attributes`.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `kernel` is not a kernel.
/// - `NV_ERR_INVALID_POINTER`: `attributes` is NULL.
/// - `NV_ERR_INVALID_PARAM_STRUCT`: `attributes->size` is smaller than the first field.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_kernel_attributes(
    kernel: *mut tegrarm_kernel,
    attributes: *mut tegrarm_kernel_attributes,
) -> NV_STATUS {
    status(|| {
        let held = KERNELS.hold_in_turn(kernel)?;
        let found = tegrarm_kernel_attributes::of(&held);
        // SAFETY: `attributes` is NULL or valid for as many bytes as its first field says, as
        // `tegrarm_kernel_attributes` asks of its caller.
        unsafe { grown(attributes, found, |a, size| a.size = size, "attributes") }
    })
}

/// Says where parameter `index` of a kernel, from 0, lies: `*offset` is its offset in the block of all parameters, and
/// `*size` is its size in bytes. Each of the two may be NULL. The cubin says it.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `kernel` is not a kernel.
/// - `NV_ERR_INVALID_INDEX`: the kernel has no parameter `index`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_kernel_parameter(
    kernel: *mut tegrarm_kernel,
    index: NvU32,
    offset: *mut NvU32,
    size: *mut NvU32,
) -> NV_STATUS {
    status(|| {
        let held = KERNELS.hold_in_turn(kernel)?;
        let layout = held.layout();
        let Some(field) = layout.fields().get(index as usize) else {
            let count = layout.fields().len();
            fail!(NV_ERR_INVALID_INDEX, "'{}' has {count} parameters: there is no parameter {index}", layout.name());
        };
        // SAFETY: `offset` and `size` are NULL or valid for writes, as `tegrarm_kernel_parameter` asks of its caller.
        unsafe {
            give_any(offset, field.offset);
            give_any(size, field.size);
        }
        Ok(())
    })
}

/// Says how many blocks of a kernel one SM runs at the same time: `*blocks`, for blocks of `block_dim` threads, three
/// words, with `shared_mem_bytes` of dynamic shared memory each. With all `compute_units` of the profile, that is how
/// many blocks `TEGRARM_LAUNCH_COOPERATIVE` allows.
///
/// Errors:
/// - `NV_ERR_OBJECT_NOT_FOUND`: `kernel` is not a kernel.
/// - `NV_ERR_INVALID_POINTER`: `block_dim` or `blocks` is NULL.
/// - `NV_ERR_INVALID_ARGUMENT`: the GPU cannot run such a block. `tegrarm_last_error` names the limit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tegrarm_kernel_occupancy(
    kernel: *mut tegrarm_kernel,
    block_dim: *const NvU32,
    shared_mem_bytes: NvU32,
    blocks: *mut NvU32,
) -> NV_STATUS {
    status(|| {
        present(blocks, "blocks")?;
        let held = KERNELS.hold_in_turn(kernel)?;
        present(block_dim, "block_dim")?;
        // SAFETY: `block_dim` is not NULL and so valid for reads of three words, as `tegrarm_kernel_occupancy` asks of its caller.
        let [x, y, z] = unsafe { block_dim.cast::<[u32; 3]>().read_unaligned() };
        let launch = Launch { grid: Dim3::new(1, 1, 1), block: Dim3::new(x, y, z), dynamic_shared: shared_mem_bytes };
        let device = held.module().device();
        let all = device.blocks_at_once(held.kernel(), &launch)?;
        // SAFETY: `blocks` is not NULL and so valid for writes, as `tegrarm_kernel_occupancy` asks of its caller.
        unsafe { give(blocks, all / device.profile().compute_units, "blocks") }
    })
}
