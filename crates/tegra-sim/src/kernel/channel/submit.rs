//! SUBMIT_GPFIFO on kernel-mode channels (nvgpu-rules §7.10).

use super::Channel;
use crate::kernel::dispatch::{Call, Reply};
use std::sync::Arc;
use tegrarm_abi::nvgpu::channel::*;
use tegrarm_kmd::Errno;

/// USERD words the host and we agree on (nvgpu-rules §7.3).
const GP_GET: usize = 0x88;
const GP_PUT: usize = 0x8c;

pub(super) fn submit_gpfifo(call: &Call<'_>, channel: &Arc<Channel>, args: &mut nvgpu_submit_gpfifo_args) -> Reply {
    if channel.dead() {
        return Err(Errno::ETIMEDOUT.into());
    }
    let state = channel.state.lock();
    let setup = state.setup.as_ref();
    if setup.is_some_and(|setup| setup.usermode) {
        return Err(Errno::EINVAL.into());
    }
    let setup = setup.ok_or(Errno::ENOMEM)?;
    let flag = |bit| args.flags & bit != 0;
    let tracked = !flag(NVGPU_SUBMIT_GPFIFO_FLAGS_SKIP_BUFFER_REFCOUNTING);
    if setup.deterministic && (tracked || state.watchdog.enabled || setup.railgating_allowed) {
        return Err(Errno::EINVAL.into());
    }
    if flag(NVGPU_SUBMIT_GPFIFO_FLAGS_FENCE_WAIT) || flag(NVGPU_SUBMIT_GPFIFO_FLAGS_FENCE_GET) {
        tracing::error!("SUBMIT_GPFIFO with fences is not simulated; a usermode channel's semaphores are");
        return Err(Errno::ENOSYS.into());
    }
    let (hw, entries) = (&setup.hw, setup.hw.entries);
    if args.num_entries > entries - 1 {
        return Err(Errno::ENOMEM.into());
    }
    let word = |at| hw.userd.backing.load_u32(hw.userd.offset + at).unwrap_or(0) % entries;
    let (get, put) = (word(GP_GET), word(GP_PUT));
    let free = (get + entries - put - 1) % entries;
    if args.num_entries > free {
        return Err(Errno::EAGAIN.into());
    }
    for i in 0..args.num_entries {
        let entry: nvgpu_gpfifo = call.copy_in_as(args.gpfifo.wrapping_add(u64::from(i) * 8))?;
        let at = hw.ring.offset + ((put + i) % entries) as usize * 8;
        let bytes = (u64::from(entry.entry1) << 32 | u64::from(entry.entry0)).to_le_bytes();
        if !hw.ring.backing.write(at, &bytes) {
            return Err(Errno::ENOMEM.into());
        }
    }
    let next = (put + args.num_entries) % entries;
    if !hw.userd.backing.store_u32(hw.userd.offset + GP_PUT, next) {
        return Err(Errno::ENOMEM.into());
    }
    call.kernel.gpu.ring(hw.id);
    Ok(())
}
