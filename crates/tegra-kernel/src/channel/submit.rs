//! SUBMIT_GPFIFO on kernel-mode channels (docs/hardware/nvgpu-channel.md#submit-gpfifo).

use super::{Channel, SyncFile};
use crate::dispatch::{Call, Reply};
use crate::rule::Because;
use std::sync::Arc;
use tegrarm_abi::nvgpu::channel::*;
use tegrarm_kmd::Errno;

/// The offsets of the USERD words that the host and this kernel use (docs/hardware/nvgpu-channel.md#userd-and-ring).
const GP_GET: usize = 0x88;
const GP_PUT: usize = 0x8c;

/// Reads the program's entries, as many as a ring can have. The channel is not locked meanwhile, because the memory may
/// be such that the program itself has to bring it, and whoever closes the channel would wait for it.
fn entries(call: &Call<'_>, channel: &Channel, args: &nvgpu_submit_gpfifo_args) -> Reply<Vec<u64>> {
    let room = channel.state.lock().setup.as_ref().map_or(0, |setup| setup.hw.entries);
    if args.num_entries < room { call.copy_in_array(args.gpfifo, args.num_entries as usize) } else { Ok(Vec::new()) }
}

pub(super) fn submit_gpfifo(call: &Call<'_>, channel: &Arc<Channel>, args: &mut nvgpu_submit_gpfifo_args) -> Reply {
    if channel.dead() {
        return Err(Errno::ETIMEDOUT.because("the channel is dead: an error stopped it").into());
    }
    let theirs = entries(call, channel, args);
    let mut state = channel.state.lock();
    let setup = state.setup.as_ref();
    if setup.is_some_and(|setup| setup.usermode) {
        return Err(Errno::EINVAL.because("the channel was set up for usermode submit").into());
    }
    let setup = setup.ok_or_else(|| Errno::ENOMEM.because("the channel has no ring (SETUP_BIND)"))?;
    let flag = |bit| args.flags & bit != 0;
    let tracked = !flag(NVGPU_SUBMIT_GPFIFO_FLAGS_SKIP_BUFFER_REFCOUNTING);
    let (before, after) = (flag(NVGPU_SUBMIT_GPFIFO_FLAGS_FENCE_WAIT), flag(NVGPU_SUBMIT_GPFIFO_FLAGS_FENCE_GET));
    let as_files = flag(NVGPU_SUBMIT_GPFIFO_FLAGS_SYNC_FENCE);
    let busy = tracked || (after && as_files) || state.watchdog.enabled || setup.railgating_allowed;
    if setup.deterministic && busy {
        let rule =
            "a deterministic channel's submit needs SKIP_BUFFER_REFCOUNTING, no sync_file, no watchdog, no railgating";
        return Err(Errno::EINVAL.because(rule).into());
    }
    let (hw, entries) = (setup.hw.clone(), setup.hw.entries);
    let extra = u32::from(before) + u32::from(after);
    if args.num_entries > entries - 1 - extra {
        return Err(Errno::ENOMEM.because("the ring does not have as many entries").into());
    }
    let word = |at| hw.userd.backing.load_u32(hw.userd.offset + at).unwrap_or(0) % entries;
    let (get, put) = (word(GP_GET), word(GP_PUT));
    if args.num_entries + extra > (get + entries - put - 1) % entries {
        return Err(Errno::EAGAIN.because("the ring is full").into());
    }
    let theirs = theirs?;
    if theirs.len() != args.num_entries as usize {
        return Err(Errno::EAGAIN.because("the channel got its ring only during the call").into());
    }
    let space = state.space.clone().ok_or(Errno::EINVAL)?;
    let fences = state.setup.as_mut().and_then(|setup| setup.fences.as_mut()).ok_or(Errno::ENOMEM)?;
    let mut list = Vec::new();
    let awaited = match as_files {
        true if before => SyncFile::pending(call, args.fence.id.cast_signed())?,
        false if before => vec![args.fence],
        _ => vec![],
    };
    // A merged fence takes one entry for each of its points.
    if args.num_entries + awaited.len() as u32 + u32::from(after) > (get + entries - put - 1) % entries {
        return Err(Errno::EAGAIN.into());
    }
    for fence in awaited {
        let slot = (put + list.len() as u32) % entries;
        list.push(fences.wait(call, &space, slot, fence)?);
    }
    list.extend(theirs);
    if after {
        let slot = (put + list.len() as u32) % entries;
        let (entry, point, value) = fences.signal(call, &space, slot)?;
        list.push(entry);
        match as_files {
            true => {
                let fd = SyncFile::install(call, &point, value).inspect_err(|_| fences.retract())?;
                args.fence.id = fd.cast_unsigned();
            }
            false => args.fence = nvgpu_fence { id: point.id, value },
        }
    }
    for (i, entry) in (0..).zip(&list) {
        let at = hw.ring.offset + ((put + i) % entries) as usize * 8;
        if !hw.ring.backing.write(at, &entry.to_le_bytes()) {
            return Err(Errno::ENOMEM.into());
        }
    }
    if !hw.userd.backing.store_u32(hw.userd.offset + GP_PUT, (put + list.len() as u32) % entries) {
        return Err(Errno::ENOMEM.into());
    }
    call.kernel.gpu.ring(hw.id);
    Ok(())
}
