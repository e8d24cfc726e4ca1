//! A channel's own syncpoint (docs/hardware/nvgpu-channel.md#get-user-syncpoint).

use crate::space::AddressSpace;
use crate::space::KernelMapping;
use crate::syncpoint::{OwnedSyncpoint, Syncpoints};
use std::sync::Arc;
use tegra_hw::Syncpoint;
use tegra_mm::SYNCPOINT_STRIDE;
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
