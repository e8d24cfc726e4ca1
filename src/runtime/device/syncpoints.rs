//! Hands work over between queues and other drivers, with syncpoints and sync files.

use crate::runtime::device::Device;
use crate::runtime::device::queue::split;
use crate::runtime::device::queue_ref::QueueRef;
use crate::runtime::memory::session::Session;
use std::os::fd::{BorrowedFd, OwnedFd};
use tegrarm_abi::rm::status::*;
use tegrarm_rm::rm::syncpoints::{SyncPoint, UserSyncpoint};
use tegrarm_rm::status::{RmResult, fail};

/// The syncpoint of a channel, which the channel increments.
#[derive(Clone, Copy)]
pub struct Signal {
    point: UserSyncpoint,
    /// The value that it has when the channel has done all its work.
    last: u32,
}

impl Signal {
    /// The syncpoint of a channel. The channel has not incremented it yet.
    ///
    /// # Errors
    /// An error that RM gives.
    pub fn of(session: &Session, channel: u32) -> RmResult<Signal> {
        let point = session.rm().user_syncpoint(session.client(), channel)?;
        Ok(Signal { point, last: point.value })
    }

    /// The GPU address at which a release increments it.
    pub fn va(&self) -> u64 {
        self.point.va
    }

    /// Counts one more increment, and returns the point that it reaches.
    pub fn raised(&mut self) -> SyncPoint {
        self.last = self.last.wrapping_add(1);
        SyncPoint { id: self.point.id, threshold: self.last }
    }
}

impl Device {
    /// The syncpoint of a fence's queue, and the value that it reaches when the queue has done all work that it has now.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the fence was never given out, or if its queue was destroyed; the fault of a channel; an
    /// error that RM gives.
    pub fn syncpoint(&self, fence: u64) -> RmResult<SyncPoint> {
        let Some(queue) = self.queue(fence)? else {
            fail!(NV_ERR_INVALID_ARGUMENT, "the queue of fence {fence:#x} has ended: its fences have passed");
        };
        queue.check_given(split(fence).1)?;
        queue.signal(self.base())
    }

    /// The same as a Linux sync file.
    ///
    /// # Errors
    /// As [`Device::syncpoint`]; NOT_SUPPORTED if the system cannot make sync files.
    pub fn sync_file(&self, fence: u64) -> RmResult<OwnedFd> {
        let point = self.syncpoint(fence)?;
        self.session().rm().sync_file(point)
    }
}

impl QueueRef {
    /// Lets all later work of the queue wait until syncpoints have reached their values.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the system does not have the syncpoint; the fault of a channel; TIMEOUT if the ring stays
    /// full.
    pub fn after_syncpoints(&self, points: &[SyncPoint]) -> RmResult<()> {
        let map = self.device().base().syncpoints()?;
        for SyncPoint { id, threshold } in points {
            if *id >= map.count {
                fail!(NV_ERR_INVALID_ARGUMENT, "syncpoint {id}: the system has {}, from 0", map.count);
            }
            let at = map.base + u64::from(*id) * map.step;
            self.queue().submit(|commands| {
                commands.acquire_syncpoint(at, *threshold);
            })?;
        }
        Ok(())
    }

    /// Lets all later work of the queue wait for a sync file. The caller keeps the descriptor.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the descriptor is not a sync file of host1x; NOT_SUPPORTED if the system has no sync files;
    /// as above.
    pub fn after_sync_file(&self, fd: BorrowedFd<'_>) -> RmResult<()> {
        let points = self.device().session().rm().sync_file_points(fd)?;
        if points.is_empty() { Ok(()) } else { self.after_syncpoints(&points) }
    }
}
