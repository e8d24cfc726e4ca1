//! The graphics engine: its processors, zcull, preemption.

use super::answer_list;
use super::row::ControlCall;
use crate::rm::object::Kind;
use crate::rm::params::{edit, get, put};
use crate::status::{During, RmResult, fail};
use crate::tegra::SM_PER_TPC;
use tegrarm_abi::nvgpu::channel::*;
use tegrarm_abi::rm::ctrl_0080::*;
use tegrarm_abi::rm::ctrl_2080::*;
use tegrarm_abi::rm::ctrl_others::*;
use tegrarm_abi::rm::status::*;
use tegrarm_abi::rm::versions::*;
use zerocopy::IntoBytes;

/// The number of threads of a warp, on every NVIDIA GPU.
const WARP: u32 = 32;

/// Answers one question about the graphics engine. The numbers of GPCs and of TPCs per GPC count what the design has,
/// so that their product is never smaller than the number of TPCs on the chip: frontends compute the size of local
/// memory from it.
fn answer(call: &ControlCall, index: u32) -> RmResult<u32> {
    let gpu = &call.client.gpu;
    let c = gpu.characteristics();
    Ok(match index {
        NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_GPCS => gpu.topology()?.max_gpcs,
        NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_TPC_PER_GPC | NV2080_CTRL_GR_INFO_INDEX_FAMILY_MAX_TPC_PER_GPC => {
            gpu.topology()?.max_tpcs_per_gpc
        }
        NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_SM_PER_TPC => SM_PER_TPC,
        // nvgpu's number counts the warps of a TPC.
        NV2080_CTRL_GR_INFO_INDEX_MAX_WARPS_PER_SM => c.sm_arch_warp_count / SM_PER_TPC,
        NV2080_CTRL_GR_INFO_INDEX_SM_VERSION => c.sm_arch_sm_version,
        NV2080_CTRL_GR_INFO_INDEX_MAX_THREADS_PER_WARP => WARP,
        NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_FBPS => c.max_fbps_count,
        NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_LTCS => c.num_ltc,
        NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_LTC_PER_FBP => c.max_ltc_per_fbp,
        NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_LTC_SLICES => c.lts_per_ltc,
        NV2080_CTRL_GR_INFO_INDEX_MAX_SUBCONTEXT_COUNT => c.max_veid_count_per_tsg,
        _ => 0,
    })
}

pub fn info(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    // The parameters of the device's and the subdevice's control start alike.
    let p: NV0080_CTRL_GR_GET_INFO_PARAMS = get(params);
    answer_list(p.grInfoList, p.grInfoListSize, |index| answer(call, index))
}

pub fn no_caps_v2(_call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    edit(params, |p: &mut NV2080_CTRL_GR_GET_CAPS_V2_PARAMS| {
        p.capsTbl.fill(0);
        p.bCapsPopulated = 1;
    });
    Ok(())
}

pub fn gpc_mask(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let c = call.client.gpu.characteristics();
    edit(params, |p: &mut NV2080_CTRL_GR_GET_GPC_MASK_PARAMS| p.gpcMask = c.gpc_mask);
    Ok(())
}

pub fn tpc_mask(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let mut p: NV2080_CTRL_GR_GET_TPC_MASK_PARAMS = get(params);
    let masks = &call.client.gpu.topology()?.tpc_masks;
    let Some(mask) = masks.get(p.gpcId as usize) else {
        fail!(NV_ERR_INVALID_ARGUMENT, "there is no GPC {}; there are {}", p.gpcId, masks.len());
    };
    p.tpcMask = *mask;
    put(params, &p);
    Ok(())
}

/// Answers several questions about the parts that the chip has. Each question that cannot be answered fails alone.
pub fn floorsweeping(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let mut p: NV2080_CTRL_GRMGR_GET_GR_FS_INFO_PARAMS = get(params);
    let count = usize::from(p.numQueries);
    if count > p.queries.len() {
        fail!(NV_ERR_INVALID_ARGUMENT, "{count} queries: at most {}", p.queries.len());
    }
    let masks = &call.client.gpu.topology()?.tpc_masks;
    for query in &mut p.queries[..count] {
        query.status = floorswept(masks, u32::from(query.queryType), &mut query.queryData);
    }
    put(params, &p);
    Ok(())
}

/// Answers one question and returns its status. Logical and physical numbers of GPCs are the same here.
fn floorswept(masks: &[u32], query: u32, data: &mut [u32; 3]) -> u32 {
    let mask = masks.get(data[0] as usize);
    match (query, mask) {
        (NV2080_CTRL_GRMGR_GR_FS_INFO_QUERY_GPC_COUNT, _) => data[0] = masks.len() as u32,
        (NV2080_CTRL_GRMGR_GR_FS_INFO_QUERY_CHIPLET_GPC_MAP, Some(_)) => data[1] = data[0],
        (NV2080_CTRL_GRMGR_GR_FS_INFO_QUERY_TPC_MASK, Some(mask)) => data[1] = *mask,
        // There is one graphics engine, which is not partitioned.
        (NV2080_CTRL_GRMGR_GR_FS_INFO_QUERY_CHIPLET_SYSPIPE_MASK, _) => data[0] = 1,
        (NV2080_CTRL_GRMGR_GR_FS_INFO_QUERY_CHIPLET_GPC_MAP | NV2080_CTRL_GRMGR_GR_FS_INFO_QUERY_TPC_MASK, None) => {
            return NV_ERR_INVALID_ARGUMENT;
        }
        _ => return NV_ERR_NOT_SUPPORTED,
    }
    NV_OK
}

pub fn sm_mappings(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let sms = &call.client.gpu.topology()?.sms;
    edit(params, |p: &mut NV2080_CTRL_GR_GET_SM_TO_GPC_TPC_MAPPINGS_PARAMS| {
        for (to, sm) in p.smId.iter_mut().zip(sms) {
            (to.gpcId, to.tpcId) = (u32::from(sm.gpc), u32::from(sm.tpc));
        }
        p.smCount = sms.len() as u32;
    });
    Ok(())
}

/// Answers the order of SMs. 580 made the entry of each SM longer: the new fields stand behind the old ones and stay 0.
pub fn sm_order(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    type Old = NV2080_CTRL_GR_GET_GLOBAL_SM_ORDER_PARAMS;
    type New = NV2080_CTRL_GR_GET_GLOBAL_SM_ORDER_PARAMS_V580;
    let sms = &call.client.gpu.topology()?.sms;
    let entries = sms.iter().map(|sm| [sm.gpc, sm.tpc, sm.sm, sm.global_tpc, sm.gpc, sm.tpc].map(u16::from));
    let (count, tpcs) = (sms.len() as u16, sms.iter().map(|sm| u16::from(sm.global_tpc) + 1).max().unwrap_or(0));
    if params.len() == size_of::<New>() {
        edit(params, |p: &mut New| {
            p.globalSmId = [[0; 9]; 512];
            p.globalSmId.iter_mut().zip(entries).for_each(|(to, entry)| to[..entry.len()].copy_from_slice(&entry));
            (p.numSm, p.numTpc) = (count, tpcs);
        });
    } else {
        edit(params, |p: &mut Old| {
            p.globalSmId.as_mut_bytes().fill(0);
            p.globalSmId
                .iter_mut()
                .zip(entries)
                .for_each(|(to, entry)| to.as_mut_bytes().copy_from_slice(entry.as_bytes()));
            (p.numSm, p.numTpc) = (count, tpcs);
        });
    }
    Ok(())
}

pub fn zcull_info(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let z = call.client.gpu.ctrl.zcull_info().during(|| "asking for the zcull layout")?;
    let info = NV2080_CTRL_GR_GET_ZCULL_INFO_PARAMS {
        widthAlignPixels: z.width_align_pixels,
        heightAlignPixels: z.height_align_pixels,
        pixelSquaresByAliquots: z.pixel_squares_by_aliquots,
        aliquotTotal: z.aliquot_total,
        zcullRegionByteMultiplier: z.region_byte_multiplier,
        zcullRegionHeaderSize: z.region_header_size,
        zcullSubregionHeaderSize: z.subregion_header_size,
        subregionCount: z.subregion_count,
        subregionWidthAlignPixels: z.subregion_width_align_pixels,
        subregionHeightAlignPixels: z.subregion_height_align_pixels,
    };
    put(params, &info);
    Ok(())
}

pub fn zcull_bind(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let p: NV2080_CTRL_GR_CTXSW_ZCULL_BIND_PARAMS = get(params);
    let object = call.client.object(p.hChannel)?;
    let channel = object.channel(NV_ERR_INVALID_CHANNEL)?;
    channel.channel().bind_zcull(p.vMemPtr, p.zcullMode).during(|| "binding a zcull context")
}

pub fn context_size(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let size = call.client.gpu.ctrl.zcull_context_size().during(|| "asking for the size of a zcull context")?;
    edit(params, |p: &mut NV2080_CTRL_GR_GET_CTX_BUFFER_SIZE_PARAMS| p.totalBufferSize = u64::from(size));
    Ok(())
}

/// Sets the preemption mode. `hChannel` is a channel or an engine object of a channel.
pub fn preemption_mode(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    /// Bit 0 of `flags` sets the compute mode, bit 1 the graphics mode.
    const SET_COMPUTE: u32 = 1;
    const SET_GRAPHICS: u32 = 2;
    const COMPUTE: [u32; 3] =
        [NVGPU_COMPUTE_PREEMPTION_MODE_WFI, NVGPU_COMPUTE_PREEMPTION_MODE_CTA, NVGPU_COMPUTE_PREEMPTION_MODE_CILP];
    const GRAPHICS: [u32; 2] = [NVGPU_GRAPHICS_PREEMPTION_MODE_WFI, NVGPU_GRAPHICS_PREEMPTION_MODE_GFXP];
    let p: NV2080_CTRL_GR_SET_CTXSW_PREEMPTION_MODE_PARAMS = get(params);
    let object = call.client.object(p.hChannel)?;
    let channel = match &object.kind {
        Kind::Channel(_) | Kind::Engine(_) => object.owning_channel(),
        _ => None,
    };
    let Some(channel) = channel else { fail!(NV_ERR_INVALID_CHANNEL, "{object} is no channel") };
    let pick = |modes: &[u32], wanted: bool, mode: u32| match modes.get(mode as usize) {
        _ if !wanted => Ok(0),
        Some(mode) => Ok(*mode),
        None => fail!(NV_ERR_INVALID_ARGUMENT, "preemption mode {mode}"),
    };
    let compute = pick(&COMPUTE, p.flags & SET_COMPUTE != 0, p.cilpPreemptMode)?;
    let graphics = pick(&GRAPHICS, p.flags & SET_GRAPHICS != 0, p.gfxpPreemptMode)?;
    channel.channel().set_preemption_mode(graphics, compute).during(|| "setting the preemption mode")
}
