//! Which result of CUDA a fault of the GPU is.

use crate::machine::Fault;
use crate::numbers::*;

/// The result of CUDA for a fault. The numbers of causes are those of `enum tegrarm_fault_cause`.
pub fn result(fault: &Fault) -> u32 {
    match fault.cause {
        1 => CUDA_ERROR_ILLEGAL_ADDRESS,
        2 => match fault.warp_error & 0xFFFF {
            // The error numbers of the register, which docs/hardware/nvgpu-faults.md lists.
            0x02 => CUDA_ERROR_HARDWARE_STACK_ERROR,
            0x05 | 0x06 => CUDA_ERROR_INVALID_PC,
            0x08 | 0x09 | 0x0B | 0x0D => CUDA_ERROR_ILLEGAL_INSTRUCTION,
            0x0E | 0x12 | 0x17 | 0x20 => CUDA_ERROR_ILLEGAL_ADDRESS,
            0x0F => CUDA_ERROR_MISALIGNED_ADDRESS,
            0x10 => CUDA_ERROR_INVALID_ADDRESS_SPACE,
            _ => CUDA_ERROR_LAUNCH_FAILED,
        },
        4 => CUDA_ERROR_LAUNCH_TIMEOUT,
        8 => CUDA_ERROR_ASSERT,
        _ => CUDA_ERROR_LAUNCH_FAILED,
    }
}
