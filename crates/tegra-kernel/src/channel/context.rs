//! Engine contexts: ALLOC_OBJ_CTX, preemption modes, ZCULL (docs/hardware/nvgpu-channel.md#alloc-obj-ctx,
//! docs/hardware/nvgpu-channel.md#set-preemption-mode).

use super::state::Channel;
use crate::dispatch::{Call, Reply};
use crate::rule::Because;
use std::sync::Arc;
use tegrarm_abi::nvgpu::channel::*;
use tegrarm_abi::nvgpu::ctrl::NVGPU_ZCULL_MODE_SEPARATE_BUFFER;
use tegrarm_kmd::Errno;

/// Whether a class is a 3D class. Those work on VEID 0 only.
fn is_graphics(class: u32) -> bool {
    class & 0xff == 0x97
}

pub(super) fn alloc_obj_ctx(call: &Call<'_>, channel: &Arc<Channel>, args: &mut nvgpu_alloc_obj_ctx_args) -> Reply {
    let mut state = channel.state.lock();
    let unbound = || Errno::EINVAL.because("the channel is not bound to an address space (AS BIND_CHANNEL)");
    let space = state.space.clone().ok_or_else(unbound)?;
    if !call.board.chip.valid_classes.contains(&args.class_num) {
        return Err(Errno::EINVAL.because(format!("class {:#x} is none of this GPU's", args.class_num)).into());
    }
    let alone = || Errno::EINVAL.because("the channel is in no TSG (TSG BIND_CHANNEL)");
    let tsg = state.tsg.clone().ok_or_else(alone)?;
    if is_graphics(args.class_num) && (state.veid > 0 || state.runqueue > 0) {
        return Err(Errno::EINVAL.because("graphics works in VEID 0 of runqueue 0 only").into());
    }
    if !call.board.gpu.preempt(&tsg.hw) {
        return Err(Errno::EBUSY.because("the group's work did not leave the engine in time; it goes on").into());
    }
    let mut group = tsg.state.lock();
    if call.is_r35() {
        let weak = Arc::downgrade(&space);
        if !group.context_space.get_or_insert_with(|| weak.clone()).ptr_eq(&weak) {
            return Err(Errno::EINVAL.because("r35 has one address space for all contexts of a TSG").into());
        }
    }
    if !group.has_context {
        group.has_context = true;
        call.board.device.context_made();
        if args.flags & NVGPU_ALLOC_OBJ_FLAGS_GFXP != 0 {
            group.graphics_preempt = NVGPU_GRAPHICS_PREEMPTION_MODE_GFXP;
        }
        if args.flags & NVGPU_ALLOC_OBJ_FLAGS_CILP != 0 {
            group.compute_preempt = NVGPU_COMPUTE_PREEMPTION_MODE_CILP;
        }
    }
    drop(group);
    // The kernel never writes obj_id.
    state.class = args.class_num;
    Ok(())
}

pub(super) fn set_preemption_mode(
    _: &Call<'_>,
    channel: &Arc<Channel>,
    args: &mut nvgpu_preemption_mode_args,
) -> Reply {
    let state = channel.state.lock();
    if state.class == 0 {
        return Err(Errno::EINVAL.because("the channel has no class yet (ALLOC_OBJ_CTX)").into());
    }
    let tsg = state.tsg.as_ref().ok_or(Errno::EINVAL)?;
    let mut group = tsg.state.lock();
    let or_current = |asked, current| if asked == 0 { current } else { asked };
    let graphics = or_current(args.graphics_preempt_mode, group.graphics_preempt);
    let compute = or_current(args.compute_preempt_mode, group.compute_preempt);
    if (graphics, compute) == (group.graphics_preempt, group.compute_preempt) {
        return Ok(());
    }
    let known = [NVGPU_GRAPHICS_PREEMPTION_MODE_WFI, NVGPU_GRAPHICS_PREEMPTION_MODE_GFXP].contains(&graphics)
        && [NVGPU_COMPUTE_PREEMPTION_MODE_WFI, NVGPU_COMPUTE_PREEMPTION_MODE_CTA, NVGPU_COMPUTE_PREEMPTION_MODE_CILP]
            .contains(&compute);
    let lower = graphics < group.graphics_preempt || compute < group.compute_preempt;
    let both = graphics == NVGPU_GRAPHICS_PREEMPTION_MODE_GFXP && compute == NVGPU_COMPUTE_PREEMPTION_MODE_CILP;
    if !known || lower || both {
        let rule = "there is no such mode, it is lower than the present one, or it is GFXP and CILP together";
        return Err(Errno::EINVAL.because(rule).into());
    }
    (group.graphics_preempt, group.compute_preempt) = (graphics, compute);
    Ok(())
}

/// The 3D engine is not simulated, so nothing is done with the ZCULL buffer. Once a group has one, others are ignored.
pub(super) fn zcull_bind(_: &Call<'_>, channel: &Arc<Channel>, args: &mut nvgpu_zcull_bind_args) -> Reply {
    let tsg = channel.state.lock().tsg.clone().ok_or(Errno::EINVAL)?;
    let mut group = tsg.state.lock();
    if group.zcull_va == 0 {
        group.zcull_va = args.gpu_va;
        if args.gpu_va == 0 && args.mode == NVGPU_ZCULL_MODE_SEPARATE_BUFFER {
            return Err(Errno::EINVAL.because("a separate ZCULL buffer needs an address").into());
        }
    }
    Ok(())
}
