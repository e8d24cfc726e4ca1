//! Controls of a subdevice about the GPU itself: names, identifier, time, clocks.

use super::row::ControlCall;
use crate::rm::GPU_ID;
use crate::rm::params::{edit, get, put, set_text};
use crate::status::{During, RmResult, fail};
use crate::tegra::MinFrequency;
use tegrarm_abi::rm::ctrl_2080::*;
use tegrarm_abi::rm::status::*;
use tegrarm_abi::rm::versions::*;

/// `NV2080_CTRL_GPU_GET_NAME_STRING_FLAGS_TYPE_UNICODE`.
const UNICODE: u32 = 1;
/// `NV2080_CTRL_PERF_PSTATES_P0`.
const P0: u32 = 1;
/// `NV2080_TIMER_GPU_CPU_TIME_CPU_CLK_ID_TSC` and `_OSTIME`, in the low four bits.
const CLOCK_MASK: u8 = 0xf;

/// The name by which a user would recognise the GPU.
pub fn full_name(call: &ControlCall) -> String {
    format!("Orin ({})", call.client.gpu.chip())
}

pub fn name(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let name = full_name(call);
    if params.len() == size_of::<NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS_V610>() {
        edit(params, |p: &mut NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS_V610| set_text(&mut p.gpuNameString, &name));
        return Ok(());
    }
    let mut p: NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS = get(params);
    put(params, &p);
    let field = &mut params[size_of_val(&p.gpuNameStringFlags)..];
    if p.gpuNameStringFlags == UNICODE {
        let wide: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        field.fill(0);
        field[..wide.len()].copy_from_slice(&wide);
    } else {
        set_text(&mut p.gpuNameString.ascii, &name);
        put(params, &p);
    }
    Ok(())
}

pub fn short_name(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    set_text(params, &call.client.gpu.chip().to_uppercase());
    Ok(())
}

pub fn id(_call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    put(params, &NV2080_CTRL_GPU_GET_ID_PARAMS { gpuId: GPU_ID });
    Ok(())
}

pub fn info_v2(_call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    super::answer_inline(params, |_| Ok(0))
}

/// Writes the identifier, binary or as text, and returns its length.
pub fn write_uuid(call: &ControlCall, flags: u32, field: &mut [u8]) -> u32 {
    let uuid = call.client.gpu.uuid();
    field.fill(0);
    if flags & NV2080_GPU_CMD_GPU_GET_GID_FLAGS_FORMAT_BINARY != 0 {
        field[..uuid.len()].copy_from_slice(&uuid);
        return uuid.len() as u32;
    }
    let hex: Vec<String> = uuid.iter().map(|b| format!("{b:02x}")).collect();
    let hex = hex.concat();
    let text = format!("GPU-{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]);
    set_text(field, &text);
    text.len() as u32 + 1
}

pub fn gid(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let mut p: NV2080_CTRL_GPU_GET_GID_INFO_PARAMS = get(params);
    if p.index != 0 {
        fail!(NV_ERR_INVALID_ARGUMENT, "identifier {}: there is one, 0", p.index);
    }
    p.length = write_uuid(call, p.flags, &mut p.data);
    put(params, &p);
    Ok(())
}

pub fn arch(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let c = call.client.gpu.characteristics();
    edit(params, |p: &mut NV2080_CTRL_MC_GET_ARCH_INFO_PARAMS| {
        (p.architecture, p.implementation, p.revision, p.subRevision) = (c.arch, c.impl_, c.rev, 0);
    });
    Ok(())
}

pub fn time(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let time_nsec = call.client.gpu.ctrl.gpu_time().during(|| "reading the GPU's clock")?;
    put(params, &NV2080_CTRL_TIMER_GET_TIME_PARAMS { time_nsec });
    Ok(())
}

pub fn time_correlation(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let mut p: NV2080_CTRL_TIMER_GET_GPU_CPU_TIME_CORRELATION_INFO_PARAMS = get(params);
    if p.sampleCount as usize > p.samples.len() || p.cpuClkId & CLOCK_MASK > 2 {
        fail!(NV_ERR_INVALID_ARGUMENT, "{} samples of clock {}", p.sampleCount, p.cpuClkId);
    }
    let samples = call.client.gpu.ctrl.time_correlation(u32::from(p.sampleCount));
    let samples = samples.during(|| "reading CPU and GPU clocks together")?;
    for (to, (cpu, gpu)) in p.samples.iter_mut().zip(samples) {
        (to.cpuTime, to.gpuTime) = (cpu, gpu);
    }
    put(params, &p);
    Ok(())
}

pub fn pstate(_call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    put(params, &NV2080_CTRL_PERF_GET_CURRENT_PSTATE_PARAMS { currPstate: P0 });
    Ok(())
}

/// Pins the lowest clock to the highest one, or ends that. Without the permission, the boost is not granted and the
/// call still succeeds, as on a desktop GPU that is too hot.
pub fn boost(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let p: NV2080_CTRL_PERF_BOOST_PARAMS = get(params);
    let mut boost = call.rm.boost.lock();
    match p.flags & 3 {
        NV2080_CTRL_PERF_BOOST_FLAGS_CMD_CLEAR => drop(boost.take()),
        NV2080_CTRL_PERF_BOOST_FLAGS_CMD_BOOST_1LEVEL | NV2080_CTRL_PERF_BOOST_FLAGS_CMD_BOOST_TO_MAX => {
            if boost.is_none() {
                match MinFrequency::raise_to_max(call.client.gpu.kmd()) {
                    Ok(raised) => *boost = Some(raised),
                    Err(e) => call.rm.say_once_unboosted(&e),
                }
            }
        }
        other => fail!(NV_ERR_INVALID_ARGUMENT, "boost command {other}"),
    }
    Ok(())
}
