//! How far the GPU has come with the work of a queue.

use crate::runtime::channel::lost_work::LostWork;
use crate::runtime::memory::place::{Place, Width};
use crate::runtime::memory::session::Session;
use crate::runtime::memory::{Cache, Memory};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tegrarm_abi::rm::status::*;
use tegrarm_rm::status::{RmResult, fail};

/// The GPU's progress: the number of the last submission that has finished.
pub struct Timeline {
    memory: Arc<Memory>,
    lost: LostWork,
    /// How many channels have used the timeline so far.
    channels: AtomicU64,
}

/// The place in the timeline's memory at which the CPU reports its progress to the GPU.
const CPU_AT: u64 = 64;

/// The tasks that the CPU has done for queues of this process. The program's thread learns of them through the GPU only, which
/// waits for one number and then writes another one, perhaps of another queue. No memory model of threads knows the GPU: this
/// number is what puts a task before everything that the program does after the wait.
static TASKS: AtomicU64 = AtomicU64::new(0);

impl Timeline {
    /// The memory of the timeline. The number is the first double word.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// The GPU address.
    #[inline]
    pub fn va(&self) -> u64 {
        self.memory.va()
    }

    /// Makes a timeline without submissions.
    ///
    /// # Errors
    /// An error that RM gives if there is no memory.
    pub fn new(session: &Arc<Session>) -> RmResult<Timeline> {
        let memory = Arc::new(Memory::new(session, 4096, Cache::Cached)?);
        Ok(Timeline { memory, lost: LostWork::default(), channels: AtomicU64::new(0) })
    }

    /// Counts another channel, which is made for a new queue or after a fault. Returns the number of channels so far.
    pub fn next_channel(&self) -> u64 {
        self.channels.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Declares that the submissions up to `last` that have not finished will never finish. Everything that waits for them
    /// continues.
    ///
    /// # Errors
    /// There are none in practice, because the timeline has room for its number.
    pub fn lose(&self, last: u64) -> RmResult<()> {
        let completed = self.completed();
        if completed < last {
            let number = Place::of(&self.memory, 0, 8)?;
            self.lost.add(completed + 1..=last);
            number.write(Width::W8, 0, last);
        }
        Ok(())
    }

    /// Checks that a submission that counts as passed has really finished.
    ///
    /// # Errors
    /// `NV_ERR_RESOURCE_LOST` if a fault had stopped the channel before.
    #[inline]
    pub fn check_kept(&self, submission: u64) -> RmResult<()> {
        if self.lost.has(submission) {
            fail!(NV_ERR_RESOURCE_LOST, "a fault stopped the queue before submission {submission} finished");
        }
        Ok(())
    }

    /// The GPU address at which the GPU waits for the CPU.
    pub fn cpu_va(&self) -> u64 {
        self.memory.va() + CPU_AT
    }

    /// Reports that the CPU has done all tasks up to `number`.
    ///
    /// # Errors
    /// There are none in practice, because the timeline has room for its number.
    pub fn cpu_has_come_to(&self, number: u64) -> RmResult<()> {
        let place = Place::of(&self.memory, CPU_AT, 8)?;
        TASKS.fetch_add(1, Ordering::Release);
        place.write(Width::W8, 0, number);
        Ok(())
    }

    /// The number of the last submission that has finished.
    #[inline]
    pub fn completed(&self) -> u64 {
        let completed = self.memory.read_u64(0);
        TASKS.load(Ordering::Acquire);
        completed
    }
}
