//! The parts of the GPU, and small controls of its caches and exceptions (docs/hardware/nvgpu-ctrl.md#topology,
//! docs/hardware/nvgpu-ctrl.md#cache-debug-suspend).

use super::node::Ctrl;
use crate::dispatch::{Call, Reply};
use crate::rule::Because;
use std::sync::Arc;
use tegrarm_abi::nvgpu::ctrl::*;
use tegrarm_abi::nvgpu::r35::nvgpu_gpu_vsms_mapping_entry_r35;
use tegrarm_kmd::Errno;
use zerocopy::IntoBytes;

/// The size of a ZCULL context, as observed on a board.
const ZCULL_CTX_SIZE: u32 = 164_352;

pub(super) fn zcull_ctx_size(_: &Call<'_>, _: &Arc<Ctrl>, args: &mut nvgpu_gpu_zcull_get_ctx_size_args) -> Reply {
    args.size = ZCULL_CTX_SIZE;
    Ok(())
}

/// Answers with the layout of zcull, which the driver computes from the number of TPCs. How many aliquots the RAM of a GPC has is
/// in a register that no log shows, so it is 0 here.
pub(super) fn zcull_info(call: &Call<'_>, _: &Arc<Ctrl>, args: &mut nvgpu_gpu_zcull_get_info_args) -> Reply {
    const TILE: u32 = 16;
    let chip = call.board.chip;
    // A bank of zcull belongs to each TPC.
    let (tpcs, gpcs) = (chip.tpc_count(), chip.gpcs());
    let first = chip.tpc_masks.iter().find(|tpcs| **tpcs != 0).map_or(1, |tpcs| tpcs.count_ones());
    *args = nvgpu_gpu_zcull_get_info_args {
        width_align_pixels: tpcs * TILE,
        height_align_pixels: 32,
        pixel_squares_by_aliquots: tpcs * TILE * TILE * tpcs / (gpcs * first),
        aliquot_total: 0,
        region_byte_multiplier: gpcs * 32,
        region_header_size: chip.max_gpcs() * 32,
        subregion_header_size: chip.max_gpcs() * 192,
        subregion_width_align_pixels: tpcs * TILE,
        subregion_height_align_pixels: 64,
        subregion_count: 16,
    };
    Ok(())
}

/// Copies as many bytes of the masks as fit, and returns the size of all masks.
fn masks(call: &Call<'_>, addr: u64, size: &mut u32, masks: &[u32]) -> Reply {
    let bytes = masks.as_bytes();
    call.copy_out_counted(addr, &bytes[..bytes.len().min(*size as usize)])?;
    *size = bytes.len() as u32;
    Ok(())
}

pub(super) fn tpc_masks(call: &Call<'_>, _: &Arc<Ctrl>, args: &mut nvgpu_gpu_get_tpc_masks_args) -> Reply {
    masks(call, args.mask_buf_addr, &mut args.mask_buf_size, call.board.chip.tpc_masks)
}

pub(super) fn fbp_l2_masks(call: &Call<'_>, _: &Arc<Ctrl>, args: &mut nvgpu_gpu_get_fbp_l2_masks_args) -> Reply {
    let chip = call.board.chip;
    let caches = (1 << chip.ltc_per_fbp) - 1;
    let present = |fbp| if chip.fbp_mask >> fbp & 1 == 1 { caches } else { 0 };
    let list: Vec<u32> = (0..chip.max_fbps).map(present).collect();
    masks(call, args.mask_buf_addr, &mut args.mask_buf_size, &list)
}

/// Copies one word for each GPC that exists. The caller's size must be exactly the size of these words.
fn gpc_map(call: &Call<'_>, addr: u64, size: u32, map: Vec<u32>) -> Reply {
    if size as usize != size_of_val(map.as_slice()) {
        return Err(Errno::EINVAL.because("the size is not that of a word for each GPC").into());
    }
    call.copy_out(addr, map.as_bytes())
}

pub(super) fn gpc_physical_map(
    call: &Call<'_>,
    _: &Arc<Ctrl>,
    args: &mut nvgpu_gpu_get_gpc_physical_map_args,
) -> Reply {
    let mask = call.board.chip.gpc_mask();
    let map = (0..32).filter(|gpc| mask >> gpc & 1 == 1).collect();
    gpc_map(call, args.physical_gpc_buf_addr, args.map_buf_size, map)
}

pub(super) fn gpc_logical_map(call: &Call<'_>, _: &Arc<Ctrl>, args: &mut nvgpu_gpu_get_gpc_logical_map_args) -> Reply {
    gpc_map(call, args.logical_gpc_buf_addr, args.map_buf_size, (0..call.board.chip.gpcs()).collect())
}

pub(super) fn num_vsms(call: &Call<'_>, _: &Arc<Ctrl>, args: &mut nvgpu_gpu_num_vsms) -> Reply {
    args.num_vsms = call.board.chip.sm_count();
    Ok(())
}

/// Copies one entry for each SM. There is no length that could be checked. The SMs of a TPC follow each other.
pub(super) fn vsms_mapping(call: &Call<'_>, _: &Arc<Ctrl>, args: &mut nvgpu_gpu_vsms_mapping) -> Reply {
    let chip = call.board.chip;
    let tpcs = chip.tpcs_in_sm_order();
    let sms = (0u8..).zip(&tpcs).flat_map(|(n, at)| (0..chip.sm_per_tpc as u8).map(move |sm| (sm, n, *at)));
    let bytes: Vec<u8> = if call.is_r35() {
        let entry =
            |(_, _, (gpc, tpc))| nvgpu_gpu_vsms_mapping_entry_r35 { gpc_index: gpc as u8, tpc_index: tpc as u8 };
        sms.flat_map(|sm| entry(sm).as_bytes().to_vec()).collect()
    } else {
        let entry = |(sm, n, (gpc, tpc))| nvgpu_gpu_vsms_mapping_entry {
            gpc_logical_index: gpc as u8,
            gpc_virtual_index: 0,
            tpc_local_logical_index: tpc as u8,
            tpc_global_logical_index: n,
            sm_local_id: sm,
            tpc_migratable_index: tpc as u8,
        };
        sms.flat_map(|sm| entry(sm).as_bytes().to_vec()).collect()
    };
    call.copy_out_counted(args.vsms_map_buf_addr, &bytes)
}

/// Lists GR, the copy engine that shares its runlist, and one asynchronous copy engine. Copy engines are counted together.
pub(super) fn engine_info(call: &Call<'_>, _: &Arc<Ctrl>, args: &mut nvgpu_gpu_get_engine_info_args) -> Reply {
    let item = |engine_id, engine_instance, runlist_id| nvgpu_gpu_get_engine_info_item {
        engine_id,
        engine_instance,
        runlist_id,
        reserved: 0,
    };
    let items = [
        item(NVGPU_GPU_ENGINE_ID_GR, 0, 0),
        item(NVGPU_GPU_ENGINE_ID_GR_COPY, 0, 0),
        item(NVGPU_GPU_ENGINE_ID_ASYNC_COPY, 1, 1),
    ];
    let size = size_of::<nvgpu_gpu_get_engine_info_item>();
    let fit = args.engine_info_buf_size as usize / size;
    for (i, item) in items.iter().enumerate().take(fit) {
        call.copy_out_counted(args.engine_info_buf_addr.wrapping_add((i * size) as u64), item.as_bytes())?;
    }
    args.engine_info_buf_size = size_of_val(&items) as u32;
    Ok(())
}

pub(super) fn tpc_exceptions(
    call: &Call<'_>,
    _: &Arc<Ctrl>,
    args: &mut nvgpu_gpu_tpc_exception_en_status_args,
) -> Reply {
    args.tpc_exception_en_sm_mask = (1 << call.board.chip.sm_count()) - 1;
    Ok(())
}

/// Checks a flush. There is no cache between the GPU and memory here, so a legal flush has nothing to do.
pub(super) fn flush_l2(_: &Call<'_>, _: &Arc<Ctrl>, args: &mut nvgpu_gpu_l2_fb_args) -> Reply {
    let bit = |n: u8| args._flags >> n & 1 == 1;
    let (l2_flush, l2_invalidate, fb_flush) = (bit(0), bit(1), bit(2));
    let legal = l2_flush || (fb_flush && !l2_invalidate);
    if legal {
        Ok(())
    } else {
        Err(Errno::EINVAL.because("nothing to flush, or an invalidate without l2_flush").into())
    }
}

/// Refuses the debug mode of the MMU, which is state 1. In that mode a bad access gives garbage and no fault, but the simulator exists to
/// show faults.
pub(super) fn set_mmu_debug_mode(_: &Call<'_>, _: &Arc<Ctrl>, args: &mut nvgpu_gpu_mmu_debug_mode_args) -> Reply {
    if args.state != 1 {
        return Ok(());
    }
    tracing::error!("SET_MMUDEBUG_MODE 1 is not simulated: bad accesses keep faulting");
    Err(Errno::ENOSYS.into())
}

/// Writes a register of the context for each SM of the mask that exists. Without a graphics context there is no layout of it.
pub(super) fn set_sm_debug_mode(call: &Call<'_>, _: &Arc<Ctrl>, args: &mut nvgpu_gpu_sm_debug_mode_args) -> Reply {
    let channel = call.channel(args.channel_fd)?;
    if channel.state.lock().tsg.is_none() {
        return Err(Errno::EINVAL.because("the channel is in no group").into());
    }
    let sms = args.sms & ((1 << call.board.chip.sm_count()) - 1);
    if sms != 0 && !call.board.device.has_golden_image() {
        return Err(Errno::ENODEV.because("no graphics context was made yet").into());
    }
    if args.enable == 0 || sms == 0 {
        return Ok(());
    }
    tracing::error!("SET_SM_DEBUG_MODE is not simulated: no SM stops for a debugger");
    Err(Errno::ENOSYS.into())
}

/// Clears registers of the SMs, which contain nothing between launches. The records that are saved in groups stay.
pub(super) fn clear_sm_errors(_: &Call<'_>, _: &Arc<Ctrl>, _: &mut ()) -> Reply {
    Ok(())
}
