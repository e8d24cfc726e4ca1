//! Controls about the memory that a desktop GPU would have of its own. On a Tegra they describe the system's memory.

use super::row::ControlCall;
use super::{answer_inline, answer_list};
use crate::rm::params::{edit, get};
use crate::rm::profile::Dram;
use crate::status::{During, RmResult, fail};
use tegrarm_abi::rm::ctrl_2080::*;
use tegrarm_abi::rm::status::*;

/// `NV2080_CTRL_FB_FLUSH_GPU_CACHE_FLAGS_*`: write back, invalidate, the whole cache, and flushing of stores that are
/// under way.
const WRITE_BACK: u32 = 1 << 2;
const INVALIDATE: u32 = 1 << 3;
const FULL_CACHE: u32 = 1 << 4;
const FB_FLUSH: u32 = 1 << 5;

fn answer(call: &ControlCall, index: u32) -> RmResult<u32> {
    let gpu = &call.client.gpu;
    let c = gpu.characteristics();
    let kib = |key| Ok((gpu.meminfo(key)? / 1024).min(u64::from(u32::MAX)) as u32);
    match index {
        NV2080_CTRL_FB_INFO_INDEX_RAM_SIZE
        | NV2080_CTRL_FB_INFO_INDEX_TOTAL_RAM_SIZE
        | NV2080_CTRL_FB_INFO_INDEX_HEAP_SIZE
        | NV2080_CTRL_FB_INFO_INDEX_USABLE_RAM_SIZE => kib("MemTotal"),
        NV2080_CTRL_FB_INFO_INDEX_HEAP_FREE => kib("MemAvailable"),
        NV2080_CTRL_FB_INFO_INDEX_BUS_WIDTH => Ok(Dram::of_module(c, gpu.meminfo("MemTotal")?).bits),
        NV2080_CTRL_FB_INFO_INDEX_L2CACHE_SIZE => Ok(c.L2_cache_size as u32),
        NV2080_CTRL_FB_INFO_INDEX_LTC_COUNT => Ok(c.num_ltc),
        NV2080_CTRL_FB_INFO_INDEX_LTS_COUNT => Ok(c.num_ltc * c.lts_per_ltc),
        NV2080_CTRL_FB_INFO_INDEX_FBP_COUNT => Ok(c.fbp_en_mask.count_ones()),
        NV2080_CTRL_FB_INFO_INDEX_FBP_MASK => Ok(c.fbp_en_mask),
        NV2080_CTRL_FB_INFO_INDEX_IS_ZERO_FB => Ok(1),
        _ => Ok(0),
    }
}

pub fn info(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let p: NV2080_CTRL_FB_GET_INFO_PARAMS = get(params);
    answer_list(p.fbInfoList, p.fbInfoListSize, |index| answer(call, index))
}

pub fn info_v2(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    answer_inline(params, |index| answer(call, index))
}

pub fn regions(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let size = call.client.gpu.meminfo("MemTotal")?;
    edit(params, |p: &mut NV2080_CTRL_CMD_FB_GET_FB_REGION_INFO_PARAMS| {
        *p = get(&[]);
        p.numFBRegions = 1;
        p.fbRegion[0].limit = size - 1;
        p.fbRegion[0].performance = 100;
    });
    Ok(())
}

/// Flushes the GPU's cache. nvgpu always flushes the whole cache, which includes the addresses that the caller lists.
pub fn flush_cache(call: &ControlCall, params: &mut [u8]) -> RmResult<()> {
    let p: NV2080_CTRL_FB_FLUSH_GPU_CACHE_PARAMS = get(params);
    if p.flags & FULL_CACHE == 0 && p.addressArraySize as usize > p.addressArray.len() {
        fail!(NV_ERR_INVALID_ARGUMENT, "addressArraySize {}: at most {}", p.addressArraySize, p.addressArray.len());
    }
    let [flush, invalidate, fb] = [WRITE_BACK, INVALIDATE, FB_FLUSH].map(|bit| p.flags & bit != 0);
    if !flush && !invalidate && !fb {
        fail!(NV_ERR_INVALID_ARGUMENT, "flags {:#x} ask for neither write-back, invalidation nor flush", p.flags);
    }
    call.client.gpu.ctrl.flush_l2(flush, invalidate, fb).during(|| "flushing the GPU's L2")
}
