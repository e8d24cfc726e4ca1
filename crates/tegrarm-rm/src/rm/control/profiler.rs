//! Controls of a profiler: counters, streams of their records, registers and power features.

use super::row::ControlCall;
use crate::rm::params::{get, put};
use crate::rm::power::Wish;
use crate::rm::profiler::{FEATURES, ProfilerObject, Refusal, field, invalid_is};
use crate::status::{During, RmError, RmResult, fail, of_errno};
use crate::tegra::{ChipletCredits, KernelError, PmResource, RegOp, StreamPlan, StreamQuery};
use std::sync::Arc;
use tegrarm_abi::nvgpu::r39::*;
use tegrarm_abi::rm::ctrl_b0cc::*;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::Errno;
use zerocopy::FromZeros;

fn object<'a>(call: &'a ControlCall) -> RmResult<&'a Arc<ProfilerObject>> {
    call.object.profiler(NV_ERR_INVALID_OBJECT)
}

fn reserve_as(call: &ControlCall, resource: PmResource, switched: bool) -> RmResult<()> {
    let needs = "what is switched with a context, and the sampler, need a profiler with a context (hClientTarget)";
    let reserved = object(call)?.profiler.reserve(resource, switched);
    reserved.map_err(invalid_is(NV_ERR_INVALID_ARGUMENT, needs)).during(|| match resource {
        PmResource::Hwpm => "reserving the counters of the machine",
        PmResource::Smpc => "reserving the counters of the SMs",
        PmResource::PcSampler => "reserving the sampler of program counters",
    })
}

fn release_as(call: &ControlCall, resource: PmResource) -> RmResult<()> {
    let released = object(call)?.profiler.release(resource);
    released.map_err(invalid_is(NV_ERR_INVALID_STATE, "the profiler has not reserved it"))
}

pub fn reserve_hwpm(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let p: NVB0CC_CTRL_RESERVE_HWPM_LEGACY_PARAMS = get(params);
    reserve_as(call, PmResource::Hwpm, p.ctxsw != 0)
}

pub fn release_hwpm(call: &ControlCall, _params: &mut [u8]) -> RmResult<()> {
    release_as(call, PmResource::Hwpm)
}

pub fn reserve_smpc(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let p: NVB0CC_CTRL_RESERVE_PM_AREA_SMPC_PARAMS = get(params);
    reserve_as(call, PmResource::Smpc, p.ctxsw != 0)
}

pub fn release_smpc(call: &ControlCall, _params: &mut [u8]) -> RmResult<()> {
    release_as(call, PmResource::Smpc)
}

/// The sampler is always switched with a context, so that nvgpu needs no flag for it.
pub fn reserve_sampler(call: &ControlCall, _params: &mut [u8]) -> RmResult<()> {
    reserve_as(call, PmResource::PcSampler, false)
}

pub fn release_sampler(call: &ControlCall, _params: &mut [u8]) -> RmResult<()> {
    release_as(call, PmResource::PcSampler)
}

pub fn bind(call: &ControlCall, _params: &mut [u8]) -> RmResult<()> {
    object(call)?.profiler.bind().map_err(|e| match e.errno {
        Errno::EINVAL => RmError::new(
            NV_ERR_INVALID_STATE,
            format!("neither HWPM nor SMPC is reserved, or they are bound already: {e}"),
        ),
        Errno::EFAULT => {
            let text =
                "a resource is switched with a group that has no graphics context: give one of its channels an engine";
            RmError::new(NV_ERR_INVALID_STATE, format!("{text}: {e}"))
        }
        _ => RmError::from(e),
    })
}

pub fn unbind(call: &ControlCall, _params: &mut [u8]) -> RmResult<()> {
    object(call)?.profiler.unbind().map_err(invalid_is(NV_ERR_INVALID_STATE, "nothing is bound"))
}

/// A size that nvgpu does not accept must not be passed on, because nvgpu then reports success and makes no stream.
pub fn alloc_stream(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let mut p: NVB0CC_CTRL_ALLOC_PMA_STREAM_PARAMS = get(params);
    let profiler = object(call)?;
    if p.pmaBufferSize == 0 || p.pmaBufferSize > NVB0CC_PMA_BUFFER_SIZE_MAX {
        fail!(
            NV_ERR_INVALID_ARGUMENT,
            "a stream of {:#x} bytes: must be 1 to {NVB0CC_PMA_BUFFER_SIZE_MAX:#x}",
            p.pmaBufferSize
        );
    }
    if p.pmaBytesAvailableOffset != 0 {
        fail!(
            NV_ERR_NOT_SUPPORTED,
            "pmaBytesAvailableOffset {:#x}: nvgpu writes the count at the front of its buffer only",
            p.pmaBytesAvailableOffset
        );
    }
    let records = call.client.object(p.hMemPmaBuffer)?.memory(NV_ERR_INVALID_OBJECT)?.clone();
    let count = call.client.object(p.hMemPmaBytesAvailable)?.memory(NV_ERR_INVALID_OBJECT)?.clone();
    records.range(p.pmaBufferOffset, p.pmaBufferSize)?;
    count.range(0, u64::from(NVB0CC_PMA_BYTES_AVAILABLE_SIZE))?;
    let (records, count) = (records.store(), count.store());
    let plan = StreamPlan {
        records: records.backing(),
        offset: p.pmaBufferOffset,
        size: p.pmaBufferSize,
        count: count.backing(),
        switched: p.ctxsw != 0,
    };
    let made = profiler.profiler.alloc_stream(&plan);
    let (va, channel) = made.map_err(invalid_is(
        NV_ERR_INVALID_ARGUMENT,
        "the profiler has a stream already, or its buffers are not at page boundaries",
    ))?;
    (p.pmaBufferVA, p.pmaChannelIdx) = (va, channel);
    put(params, &p);
    Ok(())
}

const NO_STREAM: &str = "the profiler has no stream: make one with NVB0CC_CTRL_CMD_ALLOC_PMA_STREAM";

pub fn free_stream(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let p: NVB0CC_CTRL_FREE_PMA_STREAM_PARAMS = get(params);
    only_channel(p.pmaChannelIdx)?;
    object(call)?.profiler.free_stream(p.pmaChannelIdx).map_err(invalid_is(NV_ERR_INVALID_STATE, NO_STREAM))
}

/// nvgpu accepts any number and always uses its only stream.
fn only_channel(channel: u32) -> RmResult<()> {
    match channel {
        0 => Ok(()),
        _ => fail!(NV_ERR_INVALID_ARGUMENT, "pmaChannelIdx {channel}: nvgpu has one stream, 0"),
    }
}

pub fn update_stream(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let mut p: NVB0CC_CTRL_PMA_STREAM_UPDATE_GET_PUT_PARAMS = get(params);
    only_channel(p.pmaChannelIdx)?;
    let query = StreamQuery {
        consumed: p.bytesConsumed,
        update: p.bUpdateAvailableBytes != 0,
        wait: p.bWait != 0,
        put: p.bReturnPut != 0,
        channel: p.pmaChannelIdx,
    };
    let state = object(call)?.profiler.update(&query).map_err(|e| match e.errno {
        Errno::EINVAL => RmError::new(NV_ERR_INVALID_STATE, format!("{NO_STREAM}: {e}")),
        Errno::ETIMEDOUT => RmError::from(e).during("nobody writes the count before counters are bound"),
        _ => RmError::from(e),
    })?;
    if query.update && query.wait {
        p.bytesAvailable = state.available;
    }
    if query.put {
        p.putPtr = state.put;
    }
    p.bOverflowStatus = u8::from(state.overflowed);
    put(params, &p);
    Ok(())
}

/// RM and nvgpu have the same numbers for operations and for their errors. The types are not used here.
pub fn reg_ops(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let mut p: NVB0CC_CTRL_EXEC_REG_OPS_PARAMS = get(params);
    let profiler = object(call)?;
    if p.regOpCount == 0 || p.regOpCount > NVB0CC_REGOPS_MAX_COUNT {
        fail!(NV_ERR_INVALID_ARGUMENT, "{} register operations: must be 1 to {NVB0CC_REGOPS_MAX_COUNT}", p.regOpCount);
    }
    let each = match p.mode {
        NVB0CC_REGOPS_MODE_ALL_OR_NONE => false,
        NVB0CC_REGOPS_MODE_CONTINUE_ON_ERROR => true,
        mode => fail!(NV_ERR_INVALID_ARGUMENT, "mode {mode}: neither all or none (0) nor continue on error (1)"),
    };
    let asked = &mut p.regOps[..p.regOpCount as usize];
    let mut ops: Vec<RegOp> = asked.iter().map(to_kernel).collect();
    let result = profiler.profiler.reg_ops(each, &mut ops).map_err(|e| match e.errno {
        Errno::EINVAL if each => RmError::new(NV_ERR_INVALID_STATE, format!("no counters are bound: {e}")),
        Errno::EINVAL => {
            let first = asked[0].regOffset;
            let text = "one is not of the reserved counters, or none are bound; mode 1 (continue on error) tells which";
            RmError::new(NV_ERR_INVALID_ARGUMENT, format!("registers from {first:#x} on: {text}: {e}"))
        }
        _ => RmError::from(e),
    })?;
    for (to, op) in asked.iter_mut().zip(&ops) {
        to.regStatus = op.status;
        (to.regValueHi, to.regValueLo) = ((op.value >> 32) as u32, op.value as u32);
    }
    // If an "all or none" request has no errors, all operations were done.
    (p.bPassed, p.bDirect) = (u8::from(result.all_passed || !each), u8::from(result.direct));
    put(params, &p);
    Ok(())
}

fn to_kernel(op: &NV2080_CTRL_GPU_REG_OP) -> RegOp {
    let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    RegOp {
        op: op.regOp,
        status: 0,
        _pad0: [0; 2],
        offset: op.regOffset,
        value: pair(op.regValueHi, op.regValueLo),
        and_n_mask: pair(op.regAndNMaskHi, op.regAndNMaskLo),
    }
}

/// The sentence for `ENOTTY` from calls about credits.
const NO_CREDITS: &str = "nvgpu lets programs see and set streaming credits since r39 only, and this kernel does not: \
                          samplers of program counters and fast streams cannot be set up; leave PC sampling (PMA) off";

/// The number of each type of chiplet in RM, and the number in nvgpu.
const CHIPLETS: [(u32, u32); 3] = [
    (NVB0CC_CHIPLET_TYPE_FBP, NVGPU_PROFILER_CHANNEL_CHIPLET_TYPE_FBP),
    (NVB0CC_CHIPLET_TYPE_GPC, NVGPU_PROFILER_CHANNEL_CHIPLET_TYPE_GPC),
    (NVB0CC_CHIPLET_TYPE_SYS, NVGPU_PROFILER_CHANNEL_CHIPLET_TYPE_SYS),
];

fn credits_error(e: KernelError) -> RmError {
    match e.errno {
        Errno::ENOTTY => RmError::new(NV_ERR_NOT_SUPPORTED, format!("{NO_CREDITS}: {e}")),
        _ => RmError::from(e),
    }
}

pub fn total_credits(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let pools = object(call)?.profiler.credit_pools().map_err(credits_error)?;
    let numCredits = pools.iter().map(|pool| u32::from(pool.total_num_credits)).sum();
    put(params, &NVB0CC_CTRL_GET_TOTAL_HS_CREDITS_PARAMS { numCredits });
    Ok(())
}

pub fn credit_pools(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let pools = object(call)?.profiler.credit_pools().map_err(credits_error)?;
    let mut p = NVB0CC_CTRL_GET_CHIPLET_HS_CREDIT_POOL::new_zeroed();
    for (to, pool) in p.poolInfos.iter_mut().zip(&pools) {
        let known = CHIPLETS.iter().find(|(_, kernel)| *kernel == u32::from(pool.chiplet_type));
        (to.numCredits, to.poolIndex) = (pool.total_num_credits, pool.pool_index);
        to.chipletType = known.map_or(0, |(rm, _)| *rm as u8);
    }
    p.poolInfosCount = pools.len() as u32;
    put(params, &p);
    Ok(())
}

/// A refused entry is reported in the parameters, as in RM.
pub fn set_credits(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let mut p: NVB0CC_CTRL_SET_HS_CREDITS_PARAMS = get(params);
    let profiler = object(call)?;
    only_channel(u32::from(p.pmaChannelIdx))?;
    let count = usize::from(p.numEntries);
    if count == 0 || count > p.creditInfo.len() {
        fail!(NV_ERR_INVALID_ARGUMENT, "{count} entries: must be 1 to {NVB0CC_MAX_CREDIT_INFO_ENTRIES}");
    }
    let mut credits = Vec::with_capacity(count);
    for (at, info) in p.creditInfo[..count].iter().enumerate() {
        let Some((_, kernel)) = CHIPLETS.iter().find(|(rm, _)| *rm == u32::from(info.chipletType)) else {
            fail!(
                NV_ERR_INVALID_ARGUMENT,
                "entry {at}: chiplet type {}: must be 1 (FBP), 2 (GPC) or 3 (SYS)",
                info.chipletType
            );
        };
        let mut entry = ChipletCredits::new_zeroed();
        entry.chiplet_type = *kernel as u8;
        (entry.chiplet_index, entry.num_credits) = (u32::from(info.chipletIndex), u32::from(info.numCredits));
        credits.push(entry);
    }
    profiler.profiler.set_credits(u32::from(p.pmaChannelIdx), &mut credits).map_err(credits_error)?;
    let bad =
        credits.iter().position(|c| u32::from(c.set_credit_response) != NVGPU_PROFILER_CHANNEL_SET_CREDIT_SUCCESS);
    p.statusInfo.entryIndex = bad.unwrap_or(0) as u8;
    p.statusInfo.status = match bad.map(|at| u32::from(credits[at].set_credit_response)) {
        None => NVB0CC_HS_CREDITS_CMD_STATUS_OK,
        Some(NVGPU_PROFILER_CHANNEL_SET_CREDIT_INVALID_CREDITS) => NVB0CC_HS_CREDITS_CMD_STATUS_INVALID_CREDITS,
        Some(_) => NVB0CC_HS_CREDITS_CMD_STATUS_INVALID_CHIPLET,
    } as u8;
    put(params, &p);
    Ok(())
}

/// The fields of a mask that RM knows.
const FIELDS: u32 = (1 << (2 * FEATURES)) - 1;

fn known_fields(mask: u32) -> RmResult<()> {
    if mask & !FIELDS != 0 {
        fail!(NV_ERR_INVALID_ARGUMENT, "controlMask {mask:#x}: power features are in bits 0 to 11");
    }
    Ok(())
}

/// A request that cannot be granted is reported in the parameters, because RM answers NV_OK to every valid request.
pub fn request_power(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let mut p: NVB0CC_CTRL_POWER_REQUEST_FEATURES_PARAMS = get(params);
    known_fields(p.controlMask)?;
    let mut wishes = [None; FEATURES];
    for (feature, wish) in wishes.iter_mut().enumerate() {
        *wish = match field(p.controlMask, feature) {
            NVB0CC_CTRL_POWER_FEATURE_IGNORE => None,
            NVB0CC_CTRL_POWER_FEATURE_DISABLE => Some(Wish::Off),
            NVB0CC_CTRL_POWER_FEATURE_ENABLE => Some(Wish::On),
            _ => fail!(NV_ERR_INVALID_ARGUMENT, "controlMask {:#x}: 3 is for releasing a feature", p.controlMask),
        };
    }
    let answer = object(call)?.request(&wishes);
    p.statusMask = answer.mask;
    p.globalStatus = match &answer.refusal {
        None => NV_OK,
        Some(Refusal::Contradiction) => NV_ERR_INVALID_REQUEST,
        Some(Refusal::InUse) => NV_ERR_STATE_IN_USE,
        Some(Refusal::Kernel(e)) => {
            tracing::warn!("the GPU's power saving stays as it is: {e}");
            of_errno(e.errno)
        }
    };
    put(params, &p);
    Ok(())
}

pub fn release_power(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let p: NVB0CC_CTRL_POWER_RELEASE_FEATURES_PARAMS = get(params);
    known_fields(p.controlMask)?;
    let valid =
        |at| [NVB0CC_CTRL_POWER_FEATURE_IGNORE, NVB0CC_CTRL_POWER_FEATURE_RELEASE].contains(&field(p.controlMask, at));
    if !(0..FEATURES).all(valid) {
        fail!(NV_ERR_INVALID_ARGUMENT, "controlMask {:#x}: fields are 0 (ignore) or 3 (release)", p.controlMask);
    }
    let wanted = |at: &usize| field(p.controlMask, *at) == NVB0CC_CTRL_POWER_FEATURE_RELEASE;
    object(call)?.release((0..FEATURES).filter(wanted));
    Ok(())
}
