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

pub use crate::tegra::{SyncPoint, SyncpointMap, UserSyncpoint};

impl Rm {
    /// A channel's own syncpoint.
    ///
    /// # Errors
    /// 0x23 and 0x57 for unknown handles, 0x21 for a handle that is not a channel; the kernel's refusal.
    pub fn user_syncpoint(&self, client: u32, channel: u32) -> RmResult<UserSyncpoint> {
        let object = self.client(client, NV_ERR_INVALID_CLIENT)?.object(channel)?;
        let Kind::Channel(channel) = &object.kind else { fail!(NV_ERR_INVALID_CHANNEL, "{object} is no channel") };
        channel.channel().user_syncpoint().during(|| "asking for the channel's syncpoint")
    }

    /// Where the GPU reads all syncpoints, in a VA space.
    ///
    /// # Errors
    /// 0x23 and 0x57 for unknown handles, 0x31 for a handle that is not a VA space; the kernel's refusal.
    pub fn syncpoint_map(&self, client: u32, space: u32) -> RmResult<SyncpointMap> {
        let object = self.client(client, NV_ERR_INVALID_CLIENT)?.object(space)?;
        let Kind::VaSpace(space) = &object.kind else { fail!(NV_ERR_INVALID_OBJECT, "{object} is no VA space") };
        space.space()?.syncpoints().during(|| "mapping the syncpoints")
    }

    /// Makes a Linux sync file that passes when a syncpoint reaches a value.
    ///
    /// # Errors
    /// 0x56 without host1x's node; the kernel's refusal.
    pub fn sync_file(&self, point: SyncPoint) -> RmResult<OwnedFd> {
        let SyncPoint { id, threshold } = point;
        let gpu = self.gpu()?;
        gpu.host1x()?.sync_file(point).during(|| format!("a sync file of syncpoint {id} at {threshold}"))
    }

    /// The syncpoints and values for which a sync file waits.
    ///
    /// # Errors
    /// 0x56 without host1x's node; 0x1F for a descriptor that is not a sync file of host1x.
    pub fn sync_file_points(&self, fd: BorrowedFd<'_>) -> RmResult<Vec<SyncPoint>> {
        let gpu = self.gpu()?;
        let points = gpu.host1x()?.points(fd);
        points.during(|| format!("descriptor {} as a sync file of host1x", fd.as_raw_fd()))
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
