//! SET_ERROR_NOTIFIER (docs/hardware/nvgpu-channel.md#set-error-notifier).

use super::Channel;
use crate::dispatch::{Call, Reply};
use crate::rule::Because;
use std::sync::Arc;
use tegra_hw::Place;
use tegrarm_abi::nvgpu::channel::{nvgpu_notification, nvgpu_set_error_notifier};
use tegrarm_kmd::Errno;

pub(super) fn set_error_notifier(
    call: &Call<'_>,
    channel: &Arc<Channel>,
    args: &mut nvgpu_set_error_notifier,
) -> Reply {
    const SIZE: usize = size_of::<nvgpu_notification>();
    if args.mem == 0 {
        return Err(Errno::EINVAL.because("mem is the descriptor of a dmabuf, and not 0").into());
    }
    let mut state = channel.state.lock();
    // The old notifier is dropped first, whether or not the call succeeds.
    *channel.vitals.notifier.lock() = None;
    state.notifier = None;
    let dmabuf = call.dmabuf(args.mem as i32).map_err(|_| Errno::EINVAL)?;
    let end = args.offset.checked_add(SIZE as u64);
    if end.is_none_or(|end| end > dmabuf.buffer.size) {
        return Err(Errno::EINVAL.because("the notifier's 16 bytes reach beyond the end of the dmabuf").into());
    }
    let backing = dmabuf.kernel_view()?;
    let offset = args.offset as usize;
    if !backing.write(offset, &[0; SIZE]) {
        return Err(Errno::EINVAL.into());
    }
    *channel.vitals.notifier.lock() = Some(Place { backing, offset });
    state.notifier = Some(dmabuf.buffer);
    Ok(())
}
