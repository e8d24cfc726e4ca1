//! GET_USER_SYNCPOINT (nvgpu-rules §7.7).

use super::Channel;
use crate::kernel::dispatch::{Call, Reply};
use crate::kernel::space::KernelMapping;
use crate::kernel::syncpoint::OwnedSyncpoint;
use crate::mm::SYNCPOINT_STRIDE;
use std::sync::Arc;
use tegrarm_abi::nvgpu::channel::nvgpu_get_user_syncpoint_args;
use tegrarm_kmd::Errno;

/// A channel's own syncpoint. (The mapping goes before the number does.)
#[derive(Debug)]
pub(super) struct UserSyncpoint {
    mapping: KernelMapping,
    owned: OwnedSyncpoint,
}

/// Made on first use, the same answer ever after; `max` is the counter's value at the call.
pub(super) fn get_user_syncpoint(
    call: &Call<'_>,
    channel: &Arc<Channel>,
    args: &mut nvgpu_get_user_syncpoint_args,
) -> Reply {
    let mut state = channel.state.lock();
    if state.syncpoint.is_none() {
        let Some(space) = state.space.clone() else {
            tracing::error!("GET_USER_SYNCPOINT before AS.BIND_CHANNEL: a board's kernel dereferences NULL here");
            return Err(Errno::EFAULT.into());
        };
        let owned = OwnedSyncpoint::take(&call.kernel.syncpoints)?;
        let point = owned.syncpoint.clone();
        space.map_syncpoints(point.aperture.clone())?;
        let place = point.offset() as u64;
        let mapping = space.map_kernel(point.aperture.clone(), place, SYNCPOINT_STRIDE as u64, true)?;
        *channel.vitals.syncpoint.lock() = Some(point);
        state.syncpoint = Some(UserSyncpoint { mapping, owned });
    }
    let Some(UserSyncpoint { mapping, owned }) = &state.syncpoint else { return Err(Errno::ENOMEM.into()) };
    args.gpu_va = mapping.va;
    args.syncpoint_id = owned.syncpoint.id;
    args.syncpoint_max = owned.syncpoint.value();
    Ok(())
}
