//! Queues of a device as a program has them.

use super::buffer::{Buffer, Transfer, fill_pieces, pieces, ranges};
use super::device::Device;
use super::lane::{Lane, split};
use super::launch::Launch;
use super::memory::Span;
use super::module::KernelRef;
use super::params::Layout;
use super::place::Place;
use super::queue::Plan;
use crate::status::{RmResult, fail};
use std::sync::Arc;
use tegrarm_abi::rm::status::*;

/// So many bytes are copied at once when nothing has to be waited for: a thread of its own would take longer to start with it.
const AT_ONCE: u64 = 256 << 10;

/// A queue of a device.
#[derive(Clone)]
pub struct QueueRef {
    device: Arc<Device>,
    /// `None` for the one that the device was opened with.
    other: Option<Arc<Lane>>,
}

impl QueueRef {
    /// The one that a device was opened with.
    pub fn own(device: &Arc<Device>) -> QueueRef {
        QueueRef { device: device.clone(), other: None }
    }

    /// Another one.
    ///
    /// # Errors
    /// What RM says; nothing stays behind.
    pub fn open(device: &Arc<Device>, plan: Plan) -> RmResult<QueueRef> {
        let lane = device.remember(|| device.lanes().add(device.base(), plan, device.local_memory()))?;
        device.profile_too(&lane)?;
        Ok(QueueRef { device: device.clone(), other: Some(lane) })
    }

    /// The device it belongs to.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Whether it is the one that the device was opened with.
    pub fn is_own(&self) -> bool {
        self.other.is_none()
    }

    /// What it is.
    pub fn lane(&self) -> &Lane {
        self.other.as_deref().unwrap_or(self.device.own())
    }

    /// Ends it: waits for its work, as long as closing a device would.
    ///
    /// # Errors
    /// 0x1F for the one that the device was opened with.
    pub fn end(self) -> RmResult<()> {
        let Some(lane) = &self.other else {
            fail!(NV_ERR_INVALID_ARGUMENT, "the device was opened with this queue: it ends with the device");
        };
        if let Err(e) = self.device.wait(lane.fence(), Some(super::device::CLOSE_DEADLINE)) {
            tracing::warn!("ending a queue whose work has not finished: {e}");
        }
        self.device.lanes().remove(lane.number());
        Ok(())
    }

    /// What is given from now on starts when the work of a fence has finished.
    ///
    /// # Errors
    /// 0x1F for a fence that was never given; the channel's fault; 0x65 when the ring stays full.
    pub fn after(&self, fence: u64) -> RmResult<()> {
        let lane = self.lane();
        let Some(other) = self.device.lane(fence)? else { return Ok(()) };
        let (_, submission) = split(fence);
        other.check_given(submission)?;
        if other.number() == lane.number() || other.timeline().completed() >= submission {
            return Ok(());
        }
        lane.after(other.timeline(), submission).map(drop)
    }

    /// Launches kernel `index` of a module here. Returns the fence.
    ///
    /// # Errors
    /// As [`Lane::launch`]; 0x1F when the kernel belongs to another device.
    pub fn launch(
        &self,
        kernel: &mut KernelRef,
        launch: &Launch,
        fill: impl FnOnce(&Layout, &Span) -> RmResult<()>,
    ) -> RmResult<u64> {
        self.check_device(kernel.module().device(), "the kernel")?;
        let lane = self.lane();
        let (module, index, layout, ready) = kernel.parts_on(lane.number());
        let base = self.device.base();
        let submission = lane.launch(base, module, index, ready, launch, |to| fill(layout, to))?;
        Ok(lane.fence_of(submission))
    }

    /// Has the GPU copy between buffers. Returns the fence.
    ///
    /// # Errors
    /// As [`Device::copy`]; 0x1F for a buffer of another device.
    pub fn copy(&self, to: &Buffer, to_offset: u64, from: &Buffer, from_offset: u64, size: u64) -> RmResult<u64> {
        self.check_device(to.device(), "a buffer")?;
        self.check_device(from.device(), "a buffer")?;
        let (from, to) = ranges(to, to_offset, from, from_offset, size)?;
        self.transfer(pieces(size).map(|(at, bytes)| Transfer::Copy { from: from + at, to: to + at, bytes }))
    }

    /// Has the GPU fill a range. Returns the fence.
    ///
    /// # Errors
    /// As [`Buffer::fill`]; 0x1F for a buffer of another device.
    pub fn fill(&self, buffer: &Buffer, offset: u64, len: u64, value: u32, size: u32) -> RmResult<u64> {
        self.check_device(buffer.device(), "the buffer")?;
        self.transfer(fill_pieces(buffer, offset, len, value, size)?)
    }

    /// Copies memory of the process into a buffer, behind everything that was given. Returns the fence, until which the memory
    /// stays as it is.
    ///
    /// # Errors
    /// 0x20 when the range lies outside, 0x56 when the CPU does not see it; as [`Lane::errand`].
    pub fn copy_in(&self, buffer: &Arc<Buffer>, offset: u64, from: &Place, len: u64) -> RmResult<u64> {
        let to = buffer.place(offset, len)?;
        self.carry(buffer, to, from.clone(), len)
    }

    /// Copies from a buffer to memory of the process, as [`QueueRef::copy_in`] does.
    ///
    /// # Errors
    /// As [`QueueRef::copy_in`].
    pub fn copy_out(&self, buffer: &Arc<Buffer>, offset: u64, to: &Place, len: u64) -> RmResult<u64> {
        let from = buffer.place(offset, len)?;
        self.carry(buffer, to.clone(), from, len)
    }

    fn carry(&self, buffer: &Arc<Buffer>, to: Place, from: Place, len: u64) -> RmResult<u64> {
        self.check_device(buffer.device(), "the buffer")?;
        let lane = self.lane();
        if len <= AT_ONCE && lane.is_idle() {
            std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
            to.copy_from(&from, len as usize);
            return Ok(lane.fence());
        }
        // The places keep the memory: the one that is a buffer's.
        let submission = lane.errand(self.device.porter(), move || to.copy_from(&from, len as usize))?;
        Ok(lane.fence_of(submission))
    }

    fn transfer(&self, pieces: impl Iterator<Item = Transfer>) -> RmResult<u64> {
        let lane = self.lane();
        lane.transfer(pieces).map(|submission| lane.fence_of(submission))
    }

    fn check_device(&self, other: &Arc<Device>, what: &str) -> RmResult<()> {
        if !Arc::ptr_eq(&self.device, other) {
            fail!(NV_ERR_INVALID_ARGUMENT, "{what} belongs to another device than the queue");
        }
        Ok(())
    }
}
