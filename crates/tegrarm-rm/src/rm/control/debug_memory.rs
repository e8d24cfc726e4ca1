//! The memory, the mappings and the registers that a debugger reads and writes.

use super::debugger::with_own;
use super::row::ControlCall;
use crate::rm::params::{get, put};
use crate::rm::user;
use crate::status::{During, RmResult, fail};
use crate::tegra::{DebugRegOp, MappedRange, PAGE};
use tegrarm_abi::rm::ctrl_83de::*;
use tegrarm_abi::rm::ctrl_b0cc::NV2080_CTRL_GPU_REG_OP;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::{Errno, Mapping, Placement, Prot};
use zerocopy::FromZeros;

/// The number of bytes that are copied at a time.
const CHUNK: usize = 64 << 10;

/// The bytes of a memory object as the CPU sees them. The kernel copies them as it copies memory of a client, because
/// the GPU may write them at any time.
struct Window {
    _pages: Mapping,
    addr: u64,
    len: usize,
}

/// Maps a part of a memory object for the duration of the call.
fn window(call: &ControlCall, memory: u32, offset: u64, length: u32, prot: Prot) -> RmResult<Window> {
    let memory = call.client.object(memory)?.memory(NV_ERR_INVALID_OBJECT)?.clone();
    let range = memory.range(offset, u64::from(length))?;
    let first = range.start & !(PAGE - 1);
    let len = (range.end - first).next_multiple_of(PAGE);
    let pages = memory.store().backing().map_cpu(Placement::Anywhere, len, first, prot);
    let pages = pages.during(|| format!("mapping {len:#x} bytes of the memory for the debugger"))?;
    let addr = pages.addr() as u64 + (range.start - first);
    Ok(Window { _pages: pages, addr, len: (range.end - range.start) as usize })
}

/// Reads memory. The CPU copies it, because it shares its memory with an integrated GPU.
pub fn read(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let p: NV83DE_CTRL_DEBUG_READ_MEMORY_PARAMS = get(params);
    let window = window(call, p.hMemory, p.offset, p.length, Prot::Read)?;
    let mut bytes = vec![0; CHUNK.min(window.len)];
    for done in (0..window.len).step_by(CHUNK) {
        let piece = &mut bytes[..CHUNK.min(window.len - done)];
        user::read(window.addr + done as u64, piece)?;
        user::write(p.buffer.wrapping_add(done as u64), piece)?;
    }
    Ok(())
}

/// Writes memory. If an address of the client turns out to be bad, the bytes that were written before stay written.
pub fn write(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let p: NV83DE_CTRL_DEBUG_WRITE_MEMORY_PARAMS = get(params);
    let window = window(call, p.hMemory, p.offset, p.length, Prot::ReadWrite)?;
    let mut bytes = vec![0; CHUNK.min(window.len)];
    for done in (0..window.len).step_by(CHUNK) {
        let piece = &mut bytes[..CHUNK.min(window.len - done)];
        user::read(p.buffer.wrapping_add(done as u64), piece)?;
        user::write(window.addr + done as u64, piece)?;
    }
    Ok(())
}

/// Lists the mappings of the channel's VA space. A count of 0 asks for as many as there is room for.
pub fn mappings(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let mut p: NV83DE_CTRL_DEBUG_GET_MAPPINGS_PARAMETERS = get(params);
    let room = p.opsBuffer.len();
    if p.vaLo > p.vaHi {
        fail!(NV_ERR_INVALID_ARGUMENT, "vaLo {:#x} is above vaHi {:#x}", p.vaLo, p.vaHi);
    }
    let mut ranges = vec![MappedRange::new_zeroed(); room];
    let (count, more) = with_own(call, |session| {
        session.mappings(p.vaLo, p.vaHi, &mut ranges).during(|| "asking for the channel's mappings")
    })?;
    p.opsBuffer = get(&[]);
    for (to, range) in p.opsBuffer.iter_mut().zip(&ranges[..count]) {
        // RM's field has 32 bits. A longer range gets the largest size.
        (to.gpuVA, to.size) = (range.gpu_va, u32::try_from(range.size).unwrap_or(u32::MAX));
    }
    (p.count, p.hasMore) = (count as u32, u32::from(more));
    put(params, &p);
    Ok(())
}

/// nvgpu executes all operations or none. Operations that may fail separately are therefore sent one by one.
pub fn reg_ops(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let mut p: NV83DE_CTRL_DEBUG_EXEC_REG_OPS_PARAMS = get(params);
    let (count, most) = (p.regOpCount as usize, p.regOps.len());
    if count == 0 || count > most {
        fail!(NV_ERR_INVALID_ARGUMENT, "{count} register operations: must be 1 to {most}");
    }
    let apart = p.bNonTransactional != 0;
    let asked = &mut p.regOps[..count];
    with_own(call, |session| {
        for piece in asked.chunks_mut(if apart { 1 } else { count }) {
            let mut ops: Vec<DebugRegOp> = piece.iter().map(to_kernel).collect();
            match session.reg_ops(&mut ops) {
                // The kernel does not report which of the possible reasons it was.
                Err(e) if apart && e.errno == Errno::EINVAL => piece[0].regStatus = INVALID_OFFSET,
                result => {
                    result.during(|| format!("{} register operations from {:#x} on", ops.len(), piece[0].regOffset))?;
                    piece.iter_mut().zip(&ops).for_each(|(to, op)| from_kernel(to, op));
                }
            }
        }
        Ok(())
    })?;
    put(params, &p);
    Ok(())
}

/// `NV2080_CTRL_GPU_REG_OP_STATUS_INVALID_OFFSET`.
const INVALID_OFFSET: u8 = 4;

fn to_kernel(op: &NV2080_CTRL_GPU_REG_OP) -> DebugRegOp {
    DebugRegOp {
        op: op.regOp,
        type_: op.regType,
        status: 0,
        quad: op.regQuad,
        group_mask: op.regGroupMask,
        sub_group_mask: op.regSubGroupMask,
        offset: op.regOffset,
        value_lo: op.regValueLo,
        value_hi: op.regValueHi,
        and_n_mask_lo: op.regAndNMaskLo,
        and_n_mask_hi: op.regAndNMaskHi,
    }
}

fn from_kernel(to: &mut NV2080_CTRL_GPU_REG_OP, op: &DebugRegOp) {
    to.regStatus = op.status;
    (to.regValueLo, to.regValueHi) = (op.value_lo, op.value_hi);
}
