//! Controls that tell which error stopped a channel.

use super::row::ControlCall;
use crate::rm::channel::ChannelObject;
use crate::rm::debugger::open_session;
use crate::rm::object::{Kind, Object};
use crate::rm::params::{get, put};
use crate::status::{During, RmResult, fail};
use crate::tegra::{DebugSession, Release};
use std::ops::Range;
use std::sync::Arc;
use tegrarm_abi::nvgpu::channel::NVGPU_CHANNEL_FIFO_ERROR_MMU_ERR_FLT;
use tegrarm_abi::rm::ctrl_83de::*;
use tegrarm_abi::rm::status::*;

/// `NV83DE_CTRL_CMD_DEBUG_SET_MODE_MMU_DEBUG_*`.
const ENABLE: u32 = 1;
const DISABLE: u32 = 2;
/// The error numbers of `hww_warp_esr` that mean an MMU fault.
const WARP_MMU_FAULT: [u32; 2] = [0x17, 0x20];

/// The channel of a call: the one that the caller names, or otherwise the debugger's own.
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

/// Answers with the record that the kernel saved for each SM.
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
        *to = record_of(&channel, sm)?;
        mmu_fault |= WARP_MMU_FAULT.contains(&(to.hwwWarpEsr & 0xffff));
    }
    p.mmuFault = NV83DE_MMU_FAULT_INFO { valid: u8::from(mmu_fault), ..get(&[]) };
    p.mmuFaultInfo = 0;
    put(params, &p);
    Ok(())
}

pub fn sm_error(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let mut p: NV83DE_CTRL_DEBUG_READ_SINGLE_SM_ERROR_STATE_PARAMS = get(params);
    let channel = target(call, p.hTargetChannel)?;
    check_sm(call, p.smID)?;
    p.smErrorState = record_of(&channel, p.smID)?;
    put(params, &p);
    Ok(())
}

fn check_sm(call: &ControlCall, sm: u32) -> RmResult<()> {
    let sms = call.client.gpu.topology()?.sm_count();
    if sm >= sms {
        fail!(NV_ERR_INVALID_ARGUMENT, "smID {sm}: the GPU has {sms} SMs");
    }
    Ok(())
}

fn record_of(channel: &ChannelObject, sm: u32) -> RmResult<NV83DE_SM_ERROR_STATE_REGISTERS> {
    let record = channel.group.tsg.sm_error(sm).during(|| format!("reading the error record of SM {sm}"))?;
    let mut to: NV83DE_SM_ERROR_STATE_REGISTERS = get(&[]);
    (to.hwwGlobalEsr, to.hwwWarpEsr) = (record.global_esr, record.warp_esr);
    (to.hwwWarpEsrPc, to.hwwWarpEsrPc64) = (record.warp_esr_pc as u32, record.warp_esr_pc);
    (to.hwwGlobalEsrReportMask, to.hwwWarpEsrReportMask) = (record.global_esr_report_mask, record.warp_esr_report_mask);
    Ok(to)
}

/// nvgpu reports that there was a fault, and not where. An entry without an address is still better than none. The type
/// and the access are 0, for which upstream has names (PDE, READ), because frontends look them up.
pub fn mmu_fault(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let channel = target(call, 0)?;
    let mut p: NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_PARAMS = get(&[]);
    p.count = u32::from(is_mmu_fault(&channel)?);
    if p.count > 0 {
        match call.client.gpu.insight(channel.id()) {
            Some(insight) => tracing::warn!("channel {}: MMU fault: {}", channel.id(), insight.log),
            None => tracing::warn!(
                "channel {}: MMU fault; nvgpu writes its address to the kernel's log only: see dmesg",
                channel.id()
            ),
        }
    }
    put(params, &p);
    Ok(())
}

/// Clears the hardware's registers, and the records that the kernel saved of them for the channel's group.
pub fn clear_sm_errors(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let p: NV83DE_CTRL_DEBUG_CLEAR_ALL_SM_ERROR_STATES_PARAMS = get(params);
    let sms = call.client.gpu.topology()?.sm_count();
    clear_records(call, p.hTargetChannel, 0..p.numSMsToClear.min(sms))?;
    call.client.gpu.ctrl.clear_sm_errors().during(|| "clearing the SMs' error registers")
}

/// Clears only the record. nvgpu can clear the hardware's registers of all SMs, but not those of one.
pub fn clear_sm_error(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let p: NV83DE_CTRL_DEBUG_CLEAR_SINGLE_SM_ERROR_STATE_PARAMS = get(params);
    check_sm(call, p.smID)?;
    clear_records(call, p.hTargetChannel, p.smID..p.smID + 1)
}

fn clear_records(call: &ControlCall, channel: u32, mut sms: Range<u32>) -> RmResult<()> {
    let channel = target(call, channel)?;
    with_session(call, &channel, |session| {
        sms.try_for_each(|sm| session.clear_sm_error(sm).during(|| format!("clearing the error record of SM {sm}")))
    })
}

/// Calls `then` with a session on the channel, which is the debugger's own or one that is opened for this call.
fn with_session<T>(
    call: &ControlCall,
    channel: &Arc<ChannelObject>,
    then: impl FnOnce(&DebugSession) -> RmResult<T>,
) -> RmResult<T> {
    let kmd = call.client.gpu.kmd();
    match &call.object.kind {
        Kind::Debugger(debugger) if debugger.is_of(channel) => then(debugger.session(kmd, channel)?),
        _ => then(&open_session(kmd, channel)?),
    }
}

/// Calls `then` with the debugger's session on its channel.
pub(super) fn with_own<T>(call: &ControlCall, then: impl FnOnce(&DebugSession) -> RmResult<T>) -> RmResult<T> {
    let channel = target(call, 0)?;
    with_session(call, &channel, then)
}

/// nvgpu knows no exceptions but fatal ones. Other exceptions are those of SMs to which a debugger is attached.
pub fn exception_mask(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let p: NV83DE_CTRL_DEBUG_SET_EXCEPTION_MASK_PARAMS = get(params);
    let fatal = match p.exceptionMask {
        NV83DE_CTRL_DEBUG_SET_EXCEPTION_MASK_NONE => false,
        NV83DE_CTRL_DEBUG_SET_EXCEPTION_MASK_FATAL => true,
        mask => fail!(NV_ERR_NOT_SUPPORTED, "exception mask {mask:#x}: nvgpu knows none (0) and fatal ones (1)"),
    };
    with_own(call, |session| session.mask_exceptions(fatal).during(|| "setting the exception mask"))
}

pub fn next_stop(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let p: NV83DE_CTRL_DEBUG_SET_NEXT_STOP_TRIGGER_TYPE_PARAMS = get(params);
    let all = match p.stopTriggerType {
        NV83DE_CTRL_DEBUG_SET_NEXT_STOP_TRIGGER_TYPE_SINGLE_SM => false,
        NV83DE_CTRL_DEBUG_SET_NEXT_STOP_TRIGGER_TYPE_BROADCSAT => true,
        other => fail!(NV_ERR_INVALID_ARGUMENT, "stop trigger type {other}: neither one SM (1) nor all (2)"),
    };
    with_own(call, |session| session.stop_next(all).during(|| "choosing what the next exception stops"))
}

/// The call returns when the context has left the engine, so that there is no event to wait for.
pub fn suspend(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let mut p: NV83DE_CTRL_CMD_DEBUG_SUSPEND_CONTEXT_PARAMS = get(params);
    let resident = with_own(call, |session| session.suspend(true).during(|| "suspending the context"))?;
    p.waitForEvent = 0;
    p.hResidentChannel = match &call.object.kind {
        Kind::Debugger(debugger) if resident => debugger.channel_handle,
        _ => 0,
    };
    put(params, &p);
    Ok(())
}

pub fn resume(call: &ControlCall, _params: &mut [u8]) -> RmResult<()> {
    with_own(call, |session| session.suspend(false).during(|| "resuming the context")).map(drop)
}

/// The only switch of this kind that nvgpu has: whether the end of a warp waits for its errors.
pub fn errbar(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let p: NV83DE_CTRL_DEBUG_SET_MODE_ERRBAR_DEBUG_PARAMS = get(params);
    let on = match p.action {
        NV83DE_CTRL_CMD_DEBUG_SET_MODE_ERRBAR_DEBUG_DISABLE => false,
        NV83DE_CTRL_CMD_DEBUG_SET_MODE_ERRBAR_DEBUG_ENABLE => true,
        action => fail!(NV_ERR_INVALID_ARGUMENT, "ERRBAR mode {action}: neither disable (0) nor enable (1)"),
    };
    if call.client.gpu.ctrl.release() == Release::R35 {
        fail!(NV_ERR_NOT_SUPPORTED, "nvgpu of r35 has no switch for waiting for errors: it came with r36");
    }
    with_own(call, |session| session.wait_for_errors(on).during(|| "setting the ERRBAR mode"))
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
