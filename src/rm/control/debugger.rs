//! What stopped a channel.

use crate::rm::channel::ChannelObject;
use crate::rm::controls::ControlCall;
use crate::rm::object::Object;
use crate::rm::params::{get, put};
use crate::status::{During, RmResult, fail};
use std::sync::Arc;
use tegrarm_abi::nvgpu::channel::NVGPU_CHANNEL_FIFO_ERROR_MMU_ERR_FLT;
use tegrarm_abi::rm::ctrl_83de::*;
use tegrarm_abi::rm::status::*;

/// `NV83DE_CTRL_CMD_DEBUG_SET_MODE_MMU_DEBUG_*`.
const ENABLE: u32 = 1;
const DISABLE: u32 = 2;
/// `hww_warp_esr` error numbers that stand for an MMU fault.
const WARP_MMU_FAULT: [u32; 2] = [0x17, 0x20];

/// The channel to look at: the one named, or the debugger's own.
fn target(call: &ControlCall, handle: u32) -> RmResult<Arc<ChannelObject>> {
    let named = if handle == 0 { None } else { Some(call.client.object(handle)?) };
    let object: &Arc<Object> = named.as_ref().unwrap_or(call.object);
    match object.owning_channel() {
        Some(channel) => Ok(channel),
        None => fail!(NV_ERR_INVALID_CHANNEL, "{object} has no channel, or it is gone"),
    }
}

fn is_mmu_fault(channel: &ChannelObject) -> RmResult<bool> {
    Ok(channel.error()?.is_some_and(|e| e.code == NVGPU_CHANNEL_FIFO_ERROR_MMU_ERR_FLT))
}

/// The kernel's saved record of each SM.
pub fn sm_errors(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let mut p: NV83DE_CTRL_DEBUG_READ_ALL_SM_ERROR_STATES_PARAMS = get(params);
    if p.numSMsToRead as usize > p.smErrorStateArray.len() {
        fail!(NV_ERR_INVALID_ARGUMENT, "numSMsToRead {}: at most {}", p.numSMsToRead, p.smErrorStateArray.len());
    }
    let channel = target(call, p.hTargetChannel)?;
    let sms = call.client.gpu.topology()?.sm_count();
    let mut mmu_fault = is_mmu_fault(&channel)?;
    p.smErrorStateArray = [get(&[]); 100];
    let wanted = (p.startingSM..sms).take(p.numSMsToRead as usize);
    for (to, sm) in p.smErrorStateArray.iter_mut().zip(wanted) {
        let record = channel.group.tsg.sm_error(sm).during(|| format!("reading the error record of SM {sm}"))?;
        to.hwwGlobalEsr = record.global_esr;
        to.hwwWarpEsr = record.warp_esr;
        (to.hwwWarpEsrPc, to.hwwWarpEsrPc64) = (record.warp_esr_pc as u32, record.warp_esr_pc);
        to.hwwGlobalEsrReportMask = record.global_esr_report_mask;
        to.hwwWarpEsrReportMask = record.warp_esr_report_mask;
        mmu_fault |= WARP_MMU_FAULT.contains(&(record.warp_esr & 0xffff));
    }
    p.mmuFault = NV83DE_MMU_FAULT_INFO { valid: u8::from(mmu_fault), ..get(&[]) };
    p.mmuFaultInfo = 0;
    put(params, &p);
    Ok(())
}

/// nvgpu tells that there was a fault, not where; an entry without an address is still better than none. Type and
/// access are 0, which upstream has names for (PDE, READ): frontends look them up.
pub fn mmu_fault(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let channel = target(call, 0)?;
    let mut p: NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_PARAMS = get(&[]);
    p.count = u32::from(is_mmu_fault(&channel)?);
    if p.count > 0 {
        tracing::warn!(
            "channel {}: MMU fault; nvgpu writes its address to the kernel's log only: see dmesg",
            channel.id()
        );
    }
    put(params, &p);
    Ok(())
}

pub fn clear_sm_errors(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let p: NV83DE_CTRL_DEBUG_CLEAR_ALL_SM_ERROR_STATES_PARAMS = get(params);
    target(call, p.hTargetChannel)?;
    call.client.gpu.ctrl.clear_sm_errors().during(|| "clearing the SMs' error registers")
}

pub fn mmu_debug(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let p: NV83DE_CTRL_DEBUG_SET_MODE_MMU_DEBUG_PARAMS = get(params);
    match p.action {
        ENABLE | DISABLE => {
            call.client.gpu.ctrl.set_mmu_debug(p.action == ENABLE).during(|| "setting the MMU's debug mode")
        }
        action => fail!(NV_ERR_INVALID_ARGUMENT, "MMU debug mode {action}: neither enable (1) nor disable (2)"),
    }
}
