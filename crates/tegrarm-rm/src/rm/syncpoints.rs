//! Syncpoints of host1x: counters that the GPU, cameras, encoders and displays increment and wait for.
//!
//! Desktop RM has no syncpoints. These methods are for the runtime, which needs them to hand work over to other drivers.

use super::Rm;
use super::gpu::Gpu;
use super::object::Kind;
use crate::status::{During, RmError, RmResult, fail};
use crate::tegra::Host1x;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use tegrarm_abi::rm::status::*;

/// A syncpoint and a value that it will reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncPoint {
    /// The number of the syncpoint.
    pub id: u32,
    /// The value.
    pub threshold: u32,
}

/// A channel's own syncpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserSyncpoint {
    /// The GPU address of the syncpoint. Each semaphore release to this address increments it, whatever value is released.
    pub va: u64,
    /// Its number.
    pub id: u32,
    /// The value of the syncpoint at the time of the call.
    pub value: u32,
}

/// Where the GPU reads all syncpoints of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncpointMap {
    /// The address of the first one.
    pub base: u64,
    /// The distance in bytes from one syncpoint to the next.
    pub step: u64,
    /// How many syncpoints the system has.
    pub count: u32,
}

impl Rm {
    /// Returns a channel's own syncpoint.
    ///
    /// # Errors
    /// INVALID_CLIENT and OBJECT_NOT_FOUND for unknown handles, INVALID_CHANNEL for a handle that is not a channel, and
    /// the errors of the kernel.
    pub fn user_syncpoint(&self, client: u32, channel: u32) -> RmResult<UserSyncpoint> {
        let object = self.client(client, NV_ERR_INVALID_CLIENT)?.object(channel)?;
        let Kind::Channel(channel) = &object.kind else { fail!(NV_ERR_INVALID_CHANNEL, "{object} is no channel") };
        let args = channel.channel().user_syncpoint().during(|| "asking for the channel's syncpoint")?;
        Ok(UserSyncpoint { va: args.gpu_va, id: args.syncpoint_id, value: args.syncpoint_max })
    }

    /// Returns where the GPU reads all syncpoints in a VA space.
    ///
    /// # Errors
    /// INVALID_CLIENT and OBJECT_NOT_FOUND for unknown handles, INVALID_OBJECT for a handle that is not a VA space, and
    /// the errors of the kernel.
    pub fn syncpoint_map(&self, client: u32, space: u32) -> RmResult<SyncpointMap> {
        let object = self.client(client, NV_ERR_INVALID_CLIENT)?.object(space)?;
        let Kind::VaSpace(space) = &object.kind else { fail!(NV_ERR_INVALID_OBJECT, "{object} is no VA space") };
        let args = space.space()?.syncpoints().during(|| "mapping the syncpoints")?;
        Ok(SyncpointMap { base: args.base_gpuva, step: args.sync_size.into(), count: args.num_syncpoints })
    }

    /// Makes a Linux sync file that passes when a syncpoint reaches a value.
    ///
    /// # Errors
    /// NOT_SUPPORTED if there is no host1x node, and the errors of the kernel.
    pub fn sync_file(&self, point: SyncPoint) -> RmResult<OwnedFd> {
        let SyncPoint { id, threshold } = point;
        let gpu = self.gpu()?;
        gpu.host1x()?.sync_file(id, threshold).during(|| format!("a sync file of syncpoint {id} at {threshold}"))
    }

    /// The syncpoints and values for which a sync file waits.
    ///
    /// # Errors
    /// NOT_SUPPORTED if there is no host1x node; INVALID_ARGUMENT for a descriptor that is not a sync file of host1x.
    pub fn sync_file_points(&self, fd: BorrowedFd<'_>) -> RmResult<Vec<SyncPoint>> {
        let gpu = self.gpu()?;
        let points = gpu.host1x()?.points(fd);
        let points = points.during(|| format!("descriptor {} as a sync file of host1x", fd.as_raw_fd()))?;
        Ok(points.iter().map(|p| SyncPoint { id: p.id, threshold: p.threshold }).collect())
    }
}

impl Gpu {
    /// The host1x node. The first call opens it.
    fn host1x(&self) -> RmResult<&Host1x> {
        self.sync_files.get_or_try_init(|| Host1x::open(self.kmd())).map_err(|e| {
            let missing = Host1x::is_missing(&e);
            let mut error = RmError::from(e).during("sync files");
            if missing {
                error.status = NV_ERR_NOT_SUPPORTED;
            }
            error
        })
    }
}
