//! Syncpoints of host1x: counters that the GPU, cameras, encoders and displays increment and wait for.
//!
//! Desktop RM has no such thing. These methods are for the runtime, which has no other way to hand over work.

use super::Rm;
use super::gpu::Gpu;
use super::object::Kind;
use crate::status::{During, RmError, RmResult, fail};
use crate::tegra::Host1x;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use tegrarm_abi::rm::status::*;

/// A value to which a syncpoint comes.
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
    /// The address at which a release of the channel, of any number, increments it.
    pub va: u64,
    /// Its number.
    pub id: u32,
    /// Its value when it was asked for.
    pub value: u32,
}

/// The addresses at which the GPU reads all syncpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncpointMap {
    /// The address of the first one.
    pub base: u64,
    /// The distance of two of them in bytes.
    pub step: u64,
    /// Their number.
    pub count: u32,
}

impl Rm {
    /// A channel's own syncpoint.
    ///
    /// # Errors
    /// 0x23 and 0x57 for unknown handles, 0x21 for a handle that is not a channel; the kernel's refusal.
    pub fn user_syncpoint(&self, client: u32, channel: u32) -> RmResult<UserSyncpoint> {
        let object = self.client(client, NV_ERR_INVALID_CLIENT)?.object(channel)?;
        let Kind::Channel(channel) = &object.kind else { fail!(NV_ERR_INVALID_CHANNEL, "{object} is no channel") };
        let args = channel.channel().user_syncpoint().during(|| "asking for the channel's syncpoint")?;
        Ok(UserSyncpoint { va: args.gpu_va, id: args.syncpoint_id, value: args.syncpoint_max })
    }

    /// Where the GPU reads all syncpoints, in a VA space.
    ///
    /// # Errors
    /// 0x23 and 0x57 for unknown handles, 0x31 for a handle that is not a VA space; the kernel's refusal.
    pub fn syncpoint_map(&self, client: u32, space: u32) -> RmResult<SyncpointMap> {
        let object = self.client(client, NV_ERR_INVALID_CLIENT)?.object(space)?;
        let Kind::VaSpace(space) = &object.kind else { fail!(NV_ERR_INVALID_OBJECT, "{object} is no VA space") };
        let args = space.space()?.syncpoints().during(|| "mapping the syncpoints")?;
        Ok(SyncpointMap { base: args.base_gpuva, step: args.sync_size.into(), count: args.num_syncpoints })
    }

    /// Makes a Linux sync file that passes when a syncpoint reaches a value.
    ///
    /// # Errors
    /// 0x56 without host1x's node; the kernel's refusal.
    pub fn sync_file(&self, point: SyncPoint) -> RmResult<OwnedFd> {
        let SyncPoint { id, threshold } = point;
        let gpu = self.gpu()?;
        gpu.host1x()?.sync_file(id, threshold).during(|| format!("a sync file of syncpoint {id} at {threshold}"))
    }

    /// The syncpoints and values for which a sync file waits.
    ///
    /// # Errors
    /// 0x56 without host1x's node; 0x1F for a descriptor that is not a sync file of host1x.
    pub fn sync_file_points(&self, fd: BorrowedFd<'_>) -> RmResult<Vec<SyncPoint>> {
        let gpu = self.gpu()?;
        let points = gpu.host1x()?.points(fd);
        let points = points.during(|| format!("descriptor {} as a sync file of host1x", fd.as_raw_fd()))?;
        Ok(points.iter().map(|p| SyncPoint { id: p.id, threshold: p.threshold }).collect())
    }
}

impl Gpu {
    /// host1x's node, which is opened at the first call.
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
