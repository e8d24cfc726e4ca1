//! Work that is handed over between queues and other drivers, by syncpoints and sync files.

use super::device::Device;
use super::lane::split;
use super::queues::QueueRef;
use super::session::Session;
use crate::rm::syncpoints::{SyncPoint, UserSyncpoint};
use crate::status::{RmResult, fail};
use std::os::fd::{BorrowedFd, OwnedFd};
use tegrarm_abi::rm::status::*;

/// The syncpoint that a channel increments.
#[derive(Clone, Copy)]
pub struct Signal {
    point: UserSyncpoint,
    /// What it comes to when the channel has done everything.
    last: u32,
}

impl Signal {
    /// That of a channel, which nobody has incremented yet.
    ///
    /// # Errors
    /// What RM says.
    pub fn of(session: &Session, channel: u32) -> RmResult<Signal> {
        let point = session.rm().user_syncpoint(session.client(), channel)?;
        Ok(Signal { point, last: point.value })
    }

    /// Where the GPU increments it.
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
    /// A syncpoint, and what it comes to when the queue of a fence has done everything that it was given.
    ///
    /// # Errors
    /// 0x1F for a fence that was never given, or of a queue that has ended; the channel's fault; what RM says.
    pub fn syncpoint(&self, fence: u64) -> RmResult<SyncPoint> {
        let Some(lane) = self.lane(fence)? else {
            fail!(NV_ERR_INVALID_ARGUMENT, "the queue of fence {fence:#x} has ended: its fences have passed");
        };
        lane.check_given(split(fence).1)?;
        lane.signal(self.base())
    }

    /// The same as a Linux sync file.
    ///
    /// # Errors
    /// As [`Device::syncpoint`]; 0x56 when the system makes no sync files.
    pub fn sync_file(&self, fence: u64) -> RmResult<OwnedFd> {
        let point = self.syncpoint(fence)?;
        self.session().rm().sync_file(point)
    }
}

impl QueueRef {
    /// What is given from now on starts when syncpoints have come to their values.
    ///
    /// # Errors
    /// 0x1F for a syncpoint that the system does not have; the channel's fault; 0x65 when the ring stays full.
    pub fn after_syncpoints(&self, points: &[SyncPoint]) -> RmResult<()> {
        let map = self.device().base().syncpoints()?;
        for SyncPoint { id, threshold } in points {
            if *id >= map.count {
                fail!(NV_ERR_INVALID_ARGUMENT, "syncpoint {id}: the system has {}, from 0", map.count);
            }
            let at = map.base + u64::from(*id) * map.step;
            self.lane().submit(|commands| {
                commands.acquire_syncpoint(at, *threshold);
            })?;
        }
        Ok(())
    }

    /// What is given from now on starts when a sync file has passed. The descriptor stays the caller's.
    ///
    /// # Errors
    /// 0x1F for a descriptor that is not a sync file of host1x; 0x56 when the system has no sync files; as above.
    pub fn after_sync_file(&self, fd: BorrowedFd<'_>) -> RmResult<()> {
        let points = self.device().session().rm().sync_file_points(fd)?;
        if points.is_empty() { Ok(()) } else { self.after_syncpoints(&points) }
    }
}
