//! GET_USER_SYNCPOINT (docs/hardware/nvgpu-channel.md#get-user-syncpoint).

use super::Channel;
use crate::dispatch::{Call, Reply};
use crate::space::AddressSpace;
use crate::space::KernelMapping;
use crate::syncpoint::{OwnedSyncpoint, Syncpoints};
use std::sync::Arc;
use tegra_hw::Syncpoint;
use tegra_mm::SYNCPOINT_STRIDE;
use tegrarm_abi::nvgpu::channel::nvgpu_get_user_syncpoint_args;
use tegrarm_kmd::Errno;

/// A channel's own syncpoint. Its mapping is dropped before its number is given back.
#[derive(Debug)]
pub(super) struct ChannelSyncpoint {
    mapping: KernelMapping,
    owned: OwnedSyncpoint,
}

impl ChannelSyncpoint {
    /// Takes a syncpoint and maps the aperture: all syncpoints read-only, this one writable.
    pub(super) fn new(unit: &Arc<Syncpoints>, space: &Arc<AddressSpace>) -> Result<ChannelSyncpoint, Errno> {
        let owned = OwnedSyncpoint::take(unit)?;
        let point = &owned.syncpoint;
        space.map_syncpoints(point.aperture.clone())?;
        let place = point.offset() as u64;
        let mapping = space.map_kernel(point.aperture.clone(), place, SYNCPOINT_STRIDE as u64, true)?;
        Ok(ChannelSyncpoint { mapping, owned })
    }

    /// The address at which the GPU increments it.
    pub(super) fn va(&self) -> u64 {
        self.mapping.va
    }

    /// The syncpoint.
    pub(super) fn point(&self) -> &Arc<Syncpoint> {
        &self.owned.syncpoint
    }
}

/// Makes the syncpoint on first use. Later calls return the same syncpoint. `max` is the counter's value at the call.
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
        let fresh = ChannelSyncpoint::new(&call.kernel.syncpoints, &space)?;
        *channel.vitals.syncpoint.lock() = Some(fresh.point().clone());
        state.syncpoint = Some(fresh);
    }
    let Some(syncpoint) = &state.syncpoint else { return Err(Errno::ENOMEM.into()) };
    args.gpu_va = syncpoint.va();
    args.syncpoint_id = syncpoint.point().id;
    args.syncpoint_max = syncpoint.point().value();
    Ok(())
}
