//! The registers that a program may access through register operations.
//!
//! A board lets a debugger access some thousand registers, most of them performance counters. The simulator has only
//! the few below. An operation on any other register is refused, as the driver refuses a register that is not on its
//! list. The names are those of the driver (`hw_timer`, `hw_top`).

use crate::board::Board;
use tegrarm_abi::nvgpu::debugger::*;

/// The largest number of operations in one call.
pub(super) const LIMIT: u32 = 1024;

/// A register: its offset in the register aperture, its kind and its value.
struct Register {
    offset: u32,
    name: &'static str,
    value: fn(&Board) -> u32,
}

static REGISTERS: &[Register] = &[
    Register { offset: 0x9400, name: "timer_time_0", value: |b| b.gpu.time_ns() as u32 & !0x1f },
    Register { offset: 0x9410, name: "timer_time_1", value: |b| (b.gpu.time_ns() >> 32) as u32 & 0x1fff_ffff },
    Register { offset: 0x22430, name: "top_num_gpcs", value: |b| b.chip.tpc_masks.len() as u32 },
    Register { offset: 0x22434, name: "top_tpc_per_gpc", value: |b| b.chip.tpc_per_gpc },
    Register { offset: 0x22438, name: "top_num_fbps", value: |b| b.chip.max_fbps },
    Register { offset: 0x22450, name: "top_ltc_per_fbp", value: |b| b.chip.ltc_per_fbp },
    Register { offset: 0x2245c, name: "top_slices_per_ltc", value: |b| b.chip.lts_per_ltc },
];

fn find(offset: u32) -> Option<&'static Register> {
    REGISTERS.iter().find(|r| r.offset == offset)
}

/// The errors of an operation, as bits. 0 means no error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Status(pub u8);

impl Status {
    pub(super) const SUCCESS: Status = Status(NVGPU_DBG_GPU_REG_OP_STATUS_SUCCESS as u8);
    pub(super) const INVALID_OFFSET: Status = Status(NVGPU_DBG_GPU_REG_OP_STATUS_INVALID_OFFSET as u8);

    /// Adds the error of a wrong kind of operation. Only words and pairs of words can be read and written.
    pub(super) fn op(self, op: u8) -> Status {
        let known = [
            NVGPU_DBG_GPU_REG_OP_READ_32,
            NVGPU_DBG_GPU_REG_OP_READ_64,
            NVGPU_DBG_GPU_REG_OP_WRITE_32,
            NVGPU_DBG_GPU_REG_OP_WRITE_64,
        ];
        if known.contains(&u32::from(op)) {
            self
        } else {
            Status(self.0 | NVGPU_DBG_GPU_REG_OP_STATUS_UNSUPPORTED_OP as u8)
        }
    }

    /// Adds the error of a wrong type.
    fn kind(self, kind: u8) -> Status {
        let known = [
            NVGPU_DBG_GPU_REG_OP_TYPE_GLOBAL,
            NVGPU_DBG_GPU_REG_OP_TYPE_GR_CTX,
            NVGPU_DBG_GPU_REG_OP_TYPE_GR_CTX_TPC,
            NVGPU_DBG_GPU_REG_OP_TYPE_GR_CTX_SM,
            NVGPU_DBG_GPU_REG_OP_TYPE_GR_CTX_CROP,
            NVGPU_DBG_GPU_REG_OP_TYPE_GR_CTX_ZROP,
            NVGPU_DBG_GPU_REG_OP_TYPE_GR_CTX_QUAD,
        ];
        if known.contains(&u32::from(kind)) {
            self
        } else {
            Status(self.0 | NVGPU_DBG_GPU_REG_OP_STATUS_INVALID_TYPE as u8)
        }
    }
}

/// Whether an operation concerns a context's copy of a register.
pub(super) fn of_context(op: &nvgpu_dbg_gpu_reg_op) -> bool {
    u32::from(op.type_) != NVGPU_DBG_GPU_REG_OP_TYPE_GLOBAL
}

fn is_pair(op: u8) -> bool {
    [NVGPU_DBG_GPU_REG_OP_READ_64, NVGPU_DBG_GPU_REG_OP_WRITE_64].contains(&u32::from(op))
}

fn is_write(op: u8) -> bool {
    [NVGPU_DBG_GPU_REG_OP_WRITE_32, NVGPU_DBG_GPU_REG_OP_WRITE_64].contains(&u32::from(op))
}

/// Makes the driver's checks of one operation, in its order: the offset is aligned and below 16 MiB, the register is on
/// the list (for a type that has a list), the operation is known, and the type is known. The registers here can only be
/// read.
pub(super) fn check(op: &nvgpu_dbg_gpu_reg_op) -> Status {
    let listed_type =
        [NVGPU_DBG_GPU_REG_OP_TYPE_GLOBAL, NVGPU_DBG_GPU_REG_OP_TYPE_GR_CTX].contains(&u32::from(op.type_));
    let last = op.offset.wrapping_add(if is_pair(op.op) { 4 } else { 0 });
    let here = op.offset & 0xff00_0003 == 0 && find(op.offset).is_some() && find(last).is_some();
    let status = match here && listed_type && !is_write(op.op) {
        true => Status::SUCCESS,
        false => Status::INVALID_OFFSET,
    };
    status.op(op.op).kind(op.type_)
}

/// Performs an operation that passed [`check`].
pub(super) fn read(board: &Board, op: &mut nvgpu_dbg_gpu_reg_op) {
    let value = |offset| find(offset).map_or(0, |r| (r.value)(board));
    op.value_lo = value(op.offset);
    op.value_hi = if is_pair(op.op) { value(op.offset + 4) } else { 0 };
    if let Some(register) = find(op.offset) {
        tracing::trace!(target: "tegra_sim::ioctl", register = register.name, value = op.value_lo);
    }
}
