//! The stacks of a device's threads.

use crate::runtime::device::Device;
use crate::runtime::device::queue::{FIRST_LOCAL, LOCAL_UNIT, MOST_LOCAL, Queue};
use std::sync::Arc;
use tegrarm_abi::rm::status::*;
use tegrarm_images::cubin::kernel::STACK_RESERVE;
use tegrarm_rm::status::{RmResult, fail};

/// The most stack that a thread can have.
const MOST_STACK: u32 = MOST_LOCAL - STACK_RESERVE;

impl Device {
    /// The number of bytes of stack that each thread has.
    pub fn stack(&self) -> u32 {
        self.own().stack()
    }

    /// The number of bytes of local memory that each thread has.
    pub fn local_memory(&self) -> u32 {
        self.own().local_memory()
    }

    /// Gives each thread at least this many bytes of stack, after all work before has finished.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_ARGUMENT` for more than a thread can have, `NV_ERR_NO_MEMORY` if there is not enough memory, and
    /// a channel's fault. All queues have the stack that they had before.
    pub fn set_stack(&self, bytes: u64) -> RmResult<()> {
        if bytes > u64::from(MOST_STACK) {
            fail!(NV_ERR_INVALID_ARGUMENT, "a stack of {bytes} bytes: a thread has at most {MOST_STACK}");
        }
        let local = (bytes as u32 + STACK_RESERVE).next_multiple_of(LOCAL_UNIT).max(FIRST_LOCAL);
        let queues = self.queues().all();
        let all = || std::iter::once(self.own()).chain(queues.iter().map(Arc::as_ref));
        // Nothing has changed yet when a queue turns out to be stopped.
        all().try_for_each(Queue::check)?;
        let before: Vec<u32> = all().map(Queue::local_memory).collect();
        for (at, queue) in all().enumerate() {
            if let Err(e) = queue.set_local(self.base(), local) {
                for (queue, local) in all().zip(before).take(at) {
                    if let Err(again) = queue.set_local(self.base(), local) {
                        tracing::warn!("queue {} keeps its new stack: {again}", queue.number());
                    }
                }
                return Err(e);
            }
        }
        Ok(())
    }
}
