//! The queues of a device as a program uses them.

use crate::runtime::channel::{Plan, Words};
use crate::runtime::device::Device;
use crate::runtime::device::buffer::{Buffer, Transfer, fill_pieces, pieces, ranges};
use crate::runtime::device::module::KernelRef;
use crate::runtime::device::queue::{Queue, split};
use crate::runtime::launch::Launch;
use crate::runtime::launch::params::Layout;
use crate::runtime::memory::Span;
use crate::runtime::memory::place::Place;
use std::sync::Arc;
use tegrarm_abi::rm::status::*;
use tegrarm_rm::status::{RmResult, fail};

/// At most this many bytes are copied at once if nothing has to be waited for, because another thread would take longer
/// to start with them.
const AT_ONCE: u64 = 256 << 10;

/// A queue of a device.
#[derive(Clone)]
pub struct QueueRef {
    device: Arc<Device>,
    /// It is `None` for the queue with which the device was opened.
    other: Option<Arc<Queue>>,
}

impl QueueRef {
    /// The queue with which a device was opened.
    pub fn own(device: &Arc<Device>) -> QueueRef {
        QueueRef { device: device.clone(), other: None }
    }

    /// Opens another queue.
    ///
    /// # Errors
    /// An error that RM gives. Nothing is left of the attempt.
    pub fn open(device: &Arc<Device>, plan: Plan) -> RmResult<QueueRef> {
        let queue = device.with_retry(|| device.queues().add(device.base(), plan, device.local_memory()))?;
        device.profile_too(&queue)?;
        Ok(QueueRef { device: device.clone(), other: Some(queue) })
    }

    /// The device that the queue belongs to.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Whether it is the queue with which the device was opened.
    pub fn is_own(&self) -> bool {
        self.other.is_none()
    }

    /// The queue itself.
    pub fn queue(&self) -> &Queue {
        self.other.as_deref().unwrap_or(self.device.own())
    }

    /// Ends the queue. It waits for its work for as long as closing a device does.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_ARGUMENT` for the queue with which the device was opened.
    pub fn end(self) -> RmResult<()> {
        let Some(queue) = &self.other else {
            fail!(NV_ERR_INVALID_ARGUMENT, "the device was opened with this queue: it ends with the device");
        };
        if let Err(e) = self.device.wait(queue.fence(), Some(crate::runtime::device::CLOSE_DEADLINE)) {
            tracing::warn!("ending a queue whose work has not finished: {e}");
        }
        self.device.queues().remove(queue.number());
        Ok(())
    }

    /// Makes later work of the queue wait until the work of a fence has finished.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_ARGUMENT` for a fence that was never given out, the channel's fault, and `NV_ERR_TIMEOUT` if the
    /// ring stays full.
    pub fn after(&self, fence: u64) -> RmResult<()> {
        let queue = self.queue();
        let Some(other) = self.device.queue(fence)? else { return Ok(()) };
        let (_, submission) = split(fence);
        other.check_given(submission)?;
        if other.number() == queue.number() || other.timeline().has_come_to(submission) {
            return Ok(());
        }
        queue.after(other.timeline(), submission).map(drop)
    }

    /// Launches a kernel on this queue. Returns the fence.
    ///
    /// # Errors
    /// Those of [`Queue::launch`], and `NV_ERR_INVALID_ARGUMENT` if the kernel belongs to another device.
    pub fn launch(
        &self,
        kernel: &mut KernelRef,
        launch: &Launch,
        fill: impl FnOnce(&Layout, &Span) -> RmResult<()>,
    ) -> RmResult<u64> {
        self.check_device(kernel.module().device(), "the kernel")?;
        let queue = self.queue();
        let (module, index, layout, ready) = kernel.parts_on(queue.number());
        let base = self.device.base();
        let submission = queue.launch(base, module, index, ready, launch, |to| fill(layout, to))?;
        Ok(queue.fence_of(submission))
    }

    /// Makes the GPU copy between buffers. Returns the fence.
    ///
    /// # Errors
    /// Those of [`Device::copy`], and `NV_ERR_INVALID_ARGUMENT` for a buffer of another device.
    pub fn copy(&self, to: &Buffer, to_offset: u64, from: &Buffer, from_offset: u64, size: u64) -> RmResult<u64> {
        self.check_device(to.device(), "a buffer")?;
        self.check_device(from.device(), "a buffer")?;
        let (from, to) = ranges(to, to_offset, from, from_offset, size)?;
        self.transfer(pieces(size).map(|(at, bytes)| Transfer::Copy { from: from + at, to: to + at, bytes }))
    }

    /// Makes the GPU fill a range. Returns the fence.
    ///
    /// # Errors
    /// Those of [`Buffer::fill`], and `NV_ERR_INVALID_ARGUMENT` for a buffer of another device.
    pub fn fill(&self, buffer: &Buffer, offset: u64, len: u64, value: u32, size: u32) -> RmResult<u64> {
        self.check_device(buffer.device(), "the buffer")?;
        self.transfer(fill_pieces(buffer, offset, len, value, size)?)
    }

    /// Copies memory of the process into a buffer, after all work that the queue has. Returns the fence. Until it
    /// passes, the memory must not change.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_BASE` if the range lies outside, `NV_ERR_NOT_SUPPORTED` if the buffer is not mapped for the CPU,
    /// and those of [`Queue::host_task`].
    pub fn copy_in(&self, buffer: &Arc<Buffer>, offset: u64, from: &Place, len: u64) -> RmResult<u64> {
        let to = buffer.place(offset, len)?;
        self.carry(buffer, to, from.clone(), len)
    }

    /// Copies from a buffer to memory of the process, as [`QueueRef::copy_in`] copies in the other direction.
    ///
    /// # Errors
    /// Those of [`QueueRef::copy_in`].
    pub fn copy_out(&self, buffer: &Arc<Buffer>, offset: u64, to: &Place, len: u64) -> RmResult<u64> {
        let from = buffer.place(offset, len)?;
        self.carry(buffer, to.clone(), from, len)
    }

    /// Has a thread of the library call `task` after all work that the queue has. Later work of the queue waits until `task` has
    /// returned. Returns the fence. `task` is dropped without a call if a fault stops the queue before.
    ///
    /// # Errors
    /// Those of [`Queue::host_task`].
    pub fn call(&self, task: impl FnOnce() + Send + 'static) -> RmResult<u64> {
        let queue = self.queue();
        queue.host_task(self.device.host_thread(), task).map(|submission| queue.fence_of(submission))
    }

    /// Waits for all work that the queue has, and then copies memory of the process into a buffer.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_BASE` if the range lies outside, `NV_ERR_NOT_SUPPORTED` if the buffer is not mapped for the CPU,
    /// `NV_ERR_INVALID_ARGUMENT` for a buffer of another device, and the channel's fault.
    pub fn copy_in_and_wait(&self, buffer: &Buffer, offset: u64, from: &Place, len: u64) -> RmResult<()> {
        let to = buffer.place(offset, len)?;
        self.carry_and_wait(buffer, &to, from, len)
    }

    /// Copies from a buffer to memory of the process, as [`QueueRef::copy_in_and_wait`] copies in the other direction.
    ///
    /// # Errors
    /// Those of [`QueueRef::copy_in_and_wait`].
    pub fn copy_out_and_wait(&self, buffer: &Buffer, offset: u64, to: &Place, len: u64) -> RmResult<()> {
        let from = buffer.place(offset, len)?;
        self.carry_and_wait(buffer, to, &from, len)
    }

    fn carry_and_wait(&self, buffer: &Buffer, to: &Place, from: &Place, len: u64) -> RmResult<()> {
        self.check_device(buffer.device(), "the buffer")?;
        self.device.wait(self.queue().fence(), None)?;
        to.copy_from(from, len as usize);
        Ok(())
    }

    fn carry(&self, buffer: &Arc<Buffer>, to: Place, from: Place, len: u64) -> RmResult<u64> {
        self.check_device(buffer.device(), "the buffer")?;
        let queue = self.queue();
        if len <= AT_ONCE && queue.is_idle() {
            std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
            to.copy_from(&from, len as usize);
            return Ok(queue.fence());
        }
        // The place in the buffer keeps its memory alive.
        let submission = queue.host_task(self.device.host_thread(), move || to.copy_from(&from, len as usize))?;
        Ok(queue.fence_of(submission))
    }

    /// Submits words that stay in memory. Returns the fence.
    ///
    /// # Errors
    /// Those of [`Queue::submit_words`].
    pub fn submit_words(&self, words: &Words, local: u32) -> RmResult<u64> {
        let queue = self.queue();
        queue.submit_words(self.device.base(), words, local).map(|submission| queue.fence_of(submission))
    }

    fn transfer(&self, pieces: impl Iterator<Item = Transfer>) -> RmResult<u64> {
        let queue = self.queue();
        queue.transfer(pieces).map(|submission| queue.fence_of(submission))
    }

    fn check_device(&self, other: &Arc<Device>, what: &str) -> RmResult<()> {
        if !Arc::ptr_eq(&self.device, other) {
            fail!(NV_ERR_INVALID_ARGUMENT, "{what} belongs to another device than the queue");
        }
        Ok(())
    }
}
