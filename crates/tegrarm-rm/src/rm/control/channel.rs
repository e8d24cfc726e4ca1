//! Controls of channels and channel groups.

use super::row::ControlCall;
use crate::rm::object::Kind;
use crate::rm::params::{get, put};
use crate::status::{During, RmResult, fail};
use tegrarm_abi::rm::ctrl_2080::*;
use tegrarm_abi::rm::ctrl_channels::NV906F_CTRL_GET_CLASS_ENGINEID_PARAMS;
use tegrarm_abi::rm::ctrl_channels::*;
use tegrarm_abi::rm::ctrl_others::*;
use tegrarm_abi::rm::status::*;

pub fn work_submit_token(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let token = call.object.channel(NV_ERR_INVALID_CHANNEL)?.token;
    params.copy_from_slice(&token.to_le_bytes());
    Ok(())
}

/// Enables or disables the channels of a group. Channels are on the runlist and enabled from the start, so the first
/// enabling has no effect. Disabling, and enabling after that, takes effect.
pub fn schedule_group(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let p: NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS = get(params);
    if p.bEnable != 0 {
        for channel in call.client.channels_below(call.object.handle) {
            channel.check_alive()?;
        }
    }
    call.object.group(NV_ERR_INVALID_OBJECT)?.schedule(p.bEnable != 0)
}

pub fn schedule(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let p: NVA06F_CTRL_GPFIFO_SCHEDULE_PARAMS = get(params);
    call.object.channel(NV_ERR_INVALID_CHANNEL)?.schedule(p.bEnable != 0)
}

pub fn set_timeslice(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let p: NVA06C_CTRL_SET_TIMESLICE_PARAMS = get(params);
    let group = call.object.group(NV_ERR_INVALID_OBJECT)?;
    let us = u32::try_from(p.timesliceUs).unwrap_or(u32::MAX);
    group.tsg.set_timeslice(us).during(|| format!("setting a time slice of {} us", p.timesliceUs))
}

pub fn timeslice(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let us = call.object.group(NV_ERR_INVALID_OBJECT)?.tsg.timeslice().during(|| "asking for the time slice")?;
    put(params, &NVA06C_CTRL_GET_TIMESLICE_PARAMS { timesliceUs: u64::from(us) });
    Ok(())
}

/// How often the group comes in the runlist, beside its time slice.
pub fn set_interleave(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let level = get::<NVA06C_CTRL_INTERLEAVE_LEVEL_PARAMS>(params).tsgInterleaveLevel;
    call.object.group(NV_ERR_INVALID_OBJECT)?.set_interleave(level)
}

pub fn interleave(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let tsgInterleaveLevel = call.object.group(NV_ERR_INVALID_OBJECT)?.interleave();
    put(params, &NVA06C_CTRL_INTERLEAVE_LEVEL_PARAMS { tsgInterleaveLevel });
    Ok(())
}

pub fn preempt(call: &ControlCall, _params: &mut [u8]) -> RmResult<()> {
    call.object.group(NV_ERR_INVALID_OBJECT)?.tsg.preempt().during(|| "preempting the channel group")
}

/// Kills the channel as an error would: its notifier is written, and its group stops. Whatever engine the caller names,
/// `engineID` is set to the channel's own engine. No recovery is reported as pending, because the kernel has finished
/// it when its call returns.
pub fn reset(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let mut p: NV906F_CTRL_CMD_RESET_CHANNEL_PARAMS = get(params);
    if p.resetReason >= NV906F_CTRL_CMD_RESET_CHANNEL_REASON_ENUM_MAX {
        fail!(NV_ERR_INVALID_PARAMETER, "reset reason {}: only the kernel may give that", p.resetReason);
    }
    call.object.channel(NV_ERR_INVALID_CHANNEL)?.channel().reset().during(|| "resetting the channel")?;
    p.bIsRcPending = 0;
    put(params, &p);
    Ok(())
}

/// Disables or enables channels, possibly of several clients.
pub fn disable_channels(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let p: NV2080_CTRL_FIFO_DISABLE_CHANNELS_PARAMS = get(params);
    let count = p.numChannels as usize;
    if count > p.hChannelList.len() {
        fail!(NV_ERR_INVALID_ARGUMENT, "{count} channels: at most {}", p.hChannelList.len());
    }
    for (client, channel) in p.hClientList.iter().zip(&p.hChannelList).take(count) {
        let object = call.rm.client(*client, NV_ERR_INVALID_CLIENT)?.object(*channel)?;
        object.channel(NV_ERR_INVALID_CHANNEL)?.schedule(p.bDisable == 0)?;
    }
    Ok(())
}

/// The engine on which an engine object of this channel runs. It is always graphics, because the library makes channels
/// for no other engine.
pub fn class_engine(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let mut p: NV906F_CTRL_GET_CLASS_ENGINEID_PARAMS = get(params);
    let engine = call.client.object(p.hObject)?;
    if !matches!(engine.kind, Kind::Engine(_)) || engine.parent != call.object.handle {
        fail!(NV_ERR_INVALID_OBJECT, "{engine} is no engine object of {}", call.object);
    }
    (p.classEngineID, p.classID, p.engineID) = (engine.class.number, engine.class.number, 0);
    put(params, &p);
    Ok(())
}
