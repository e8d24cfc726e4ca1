//! A queue of a device: a channel, the local memory of its kernels, how far it has come, and what stops it.
//!
//! A fence is a number: the queue's own number in the high bits, and that of the submission in the low ones.

use super::base::{Base, refused};
use super::buffer::Transfer;
use super::commands::{Commands, Engine};
use super::cubin::Kernel;
use super::cubin::kernel::{DEFAULT_STACK, STACK_RESERVE};
use super::fault::{FaultInfo, Watch};
use super::launch::Launch;
use super::memory::{Memory, Span, Writer};
use super::module::Module;
use super::profile::{Record, Records, What};
use super::queue::{Queue, Timeline};
use super::ready::Ready;
use crate::status::{RmError, RmResult};
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tegrarm_abi::rm::status::*;

/// Local memory per thread every queue starts with: CUDA's default stack and what the ABI keeps for itself.
pub const FIRST_LOCAL: u32 = DEFAULT_STACK + STACK_RESERVE;
/// Whole warps of it are whole pieces of 512 bytes, as the GPU takes them.
pub const LOCAL_UNIT: u32 = 32;
/// The descriptor's field has 24 bits.
pub const MOST_LOCAL: u32 = (1 << 24) - LOCAL_UNIT;
/// No launch lies ready for it: while every launch goes the long way.
const NO_LOCAL: u32 = u32::MAX - 1;
/// Where a fence has the number of its queue.
const QUEUE_SHIFT: u32 = 48;

/// Number of the queue that a fence belongs to, and its number in the queue.
pub fn split(fence: u64) -> (u64, u64) {
    (fence >> QUEUE_SHIFT, fence & ((1 << QUEUE_SHIFT) - 1))
}

/// What the queue's lock guards.
struct Work {
    queue: Queue,
    /// Local memory per thread, and the memory behind it.
    local: u32,
    arena: Memory,
    /// The same number while launches that lie ready may be given to the GPU as they are.
    ready_local: u32,
    /// Start and end of everything, while somebody wants to know.
    records: Option<Records>,
}

/// A queue.
pub struct Lane {
    /// Declared first: the channel goes before the memory it uses.
    work: Mutex<Work>,
    timeline: Arc<Timeline>,
    watch: Arc<Watch>,
    last: AtomicU64,
    number: u64,
}

impl Lane {
    /// Opens a channel with compute and copy engines, and local memory: the queue of a number.
    ///
    /// # Errors
    /// What RM says; nothing stays behind.
    pub fn open(base: &Base, number: u64) -> RmResult<Lane> {
        let mut queue = Queue::open(base.session(), base.doorbell())?;
        base.set_up(&mut queue)?;
        let arena = base.local_memory(&mut queue, FIRST_LOCAL)?;
        Ok(Lane {
            timeline: queue.timeline().clone(),
            watch: queue.watch().clone(),
            last: AtomicU64::new(queue.last()),
            work: Mutex::new(Work { queue, local: FIRST_LOCAL, arena, ready_local: FIRST_LOCAL, records: None }),
            number,
        })
    }

    /// Its number in the device.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The fence of a submission.
    #[inline]
    pub fn fence_of(&self, submission: u64) -> u64 {
        self.number << QUEUE_SHIFT | submission
    }

    /// The fence of everything given so far.
    pub fn fence(&self) -> u64 {
        self.fence_of(self.last())
    }

    /// The newest submission.
    #[inline]
    pub fn last(&self) -> u64 {
        self.last.load(Ordering::Acquire)
    }

    /// Whether a submission has finished, or never will because a fault stopped the queue.
    pub fn is_over(&self, submission: u64) -> bool {
        self.timeline.completed() >= submission || self.watch.is_stopped()
    }

    /// Progress of its channel.
    pub fn timeline(&self) -> &Arc<Timeline> {
        &self.timeline
    }

    /// What stopped it; `None` while it works.
    ///
    /// # Errors
    /// What RM says when it is asked for the SMs' records.
    pub fn fault(&self) -> RmResult<Option<FaultInfo>> {
        self.watch.fault()
    }

    /// Whether a submission has finished. A GPU that is executed in steps does one.
    ///
    /// # Errors
    /// 0x1F for one that was never given; the channel's fault.
    pub fn query(&self, submission: u64) -> RmResult<bool> {
        let last = self.last();
        if submission > last {
            return Err(never_given(submission, last));
        }
        self.watch.step();
        // In this order: a release that came before the fault still counts.
        let stopped = self.watch.is_stopped();
        if self.timeline.completed() >= submission {
            return Ok(true);
        }
        if stopped {
            self.watch.check()?;
        }
        Ok(false)
    }

    /// Waits for a submission; without a deadline for as long as it takes.
    ///
    /// # Errors
    /// 0x1F for one that was never given; the channel's fault, at once; `NV_ERR_TIMEOUT` with what is pending.
    pub fn wait(&self, submission: u64, deadline: Option<Duration>) -> RmResult<()> {
        let last = self.last();
        if submission > last {
            return Err(never_given(submission, last));
        }
        self.watch.wait(&self.timeline, submission, deadline, last)
    }

    /// Launches kernel `index` of `module`. `fill` writes the block of arguments. Returns the submission.
    ///
    /// # Errors
    /// 0x1F for a launch the GPU cannot run, with the numbers; what `fill` says; the channel's fault; as [`Ready::launch`].
    #[inline(always)]
    pub fn launch(
        &self,
        base: &Base,
        module: &Module,
        index: usize,
        ready: &mut Ready,
        launch: &Launch,
        fill: impl FnOnce(&Span) -> RmResult<()>,
    ) -> RmResult<u64> {
        self.watch.check()?;
        let mut work = self.work.lock();
        if !ready.is_for(launch, work.ready_local) && self.prepare(base, module, index, ready, launch, &mut work)? {
            return self.launch_recorded(base, module.kernel_at(index), ready, work, fill);
        }
        let submission = ready.launch(base.code(), &mut work.queue, fill)?;
        self.last.store(submission, Ordering::Release);
        Ok(submission)
    }

    /// Makes a launch lie ready. True if its start and end are to be recorded.
    #[cold]
    fn prepare(
        &self,
        base: &Base,
        module: &Module,
        index: usize,
        ready: &mut Ready,
        launch: &Launch,
        work: &mut Work,
    ) -> RmResult<bool> {
        let kernel = module.kernel_at(index);
        if !ready.is_for(launch, work.local) {
            if kernel.local_memory() > work.local {
                let needed = kernel.local_memory().next_power_of_two().min(MOST_LOCAL);
                self.replace_local(base, work, needed)?;
            }
            let made = ready.make(kernel, module.address(), *launch, work.local, base.context());
            made.map_err(|e| refused(kernel, e))?;
        }
        Ok(work.records.is_some())
    }

    #[cold]
    fn launch_recorded(
        &self,
        base: &Base,
        kernel: &Kernel,
        ready: &mut Ready,
        mut work: MutexGuard<'_, Work>,
        fill: impl FnOnce(&Span) -> RmResult<()>,
    ) -> RmResult<u64> {
        let at = ready.next(base.code(), &mut work.queue, fill)?;
        let what = What::Kernel { name: kernel.name.clone() };
        let submission = self.give(&mut work, Engine::Compute, what, |commands| {
            commands.launch(at);
        })?;
        ready.given(submission);
        Ok(submission)
    }

    /// Gives the copy engine work in pieces that it can take. Returns the submission.
    ///
    /// # Errors
    /// The channel's fault; 0x65 when the ring stays full.
    pub(super) fn transfer(&self, pieces: impl Iterator<Item = Transfer>) -> RmResult<u64> {
        self.watch.check()?;
        let mut work = self.work.lock();
        let mut submission = work.queue.last();
        for piece in pieces {
            submission = self.give(&mut work, Engine::Copy, piece.what(), |commands| piece.put(commands))?;
        }
        Ok(submission)
    }

    /// Gives the GPU words of its own accord, for the engine that worked last. Returns the submission.
    ///
    /// # Errors
    /// As [`Lane::transfer`].
    pub fn submit(&self, words: impl FnOnce(&mut Commands<Writer<'_>>)) -> RmResult<u64> {
        self.watch.check()?;
        let mut work = self.work.lock();
        let engine = work.queue.engine();
        let submission = work.queue.submit(engine, words)?;
        self.last.store(submission, Ordering::Release);
        Ok(submission)
    }

    /// Gives the GPU words, between two stamps if somebody wants to know. Returns the submission.
    fn give(
        &self,
        work: &mut Work,
        engine: Engine,
        what: What,
        words: impl FnOnce(&mut Commands<Writer<'_>>),
    ) -> RmResult<u64> {
        let Work { queue, records, .. } = work;
        let submission = match records {
            None => queue.submit(engine, words)?,
            Some(records) => {
                queue.wait_until_free_after(records.room())?;
                let [start, end] = records.next(self.timeline.completed());
                let submission = queue.submit(engine, |commands| {
                    commands.stamp(start, 0);
                    words(commands);
                    commands.stamp(end, 0);
                })?;
                records.given(submission, what);
                submission
            }
        };
        self.last.store(submission, Ordering::Release);
        Ok(submission)
    }

    /// From now on start and end of everything are recorded, or not any more.
    ///
    /// # Errors
    /// 0x51 when there is no memory for the stamps.
    pub fn record(&self, base: &Base, on: bool) -> RmResult<()> {
        let records = if on { Some(Records::new(base.session())?) } else { None };
        let mut work = self.work.lock();
        work.records = records;
        work.ready_local = if on { NO_LOCAL } else { work.local };
        Ok(())
    }

    /// What was recorded and has finished, each once.
    pub fn recorded(&self) -> Vec<Record> {
        let mut work = self.work.lock();
        let completed = self.timeline.completed();
        let records = work.records.as_mut().map_or_else(Vec::new, |records| records.take(completed));
        drop(work);
        let whose = |record: Record| Record { queue: self.number, fence: self.fence_of(record.fence), ..record };
        records.into_iter().map(whose).collect()
    }

    /// Bytes of local memory that each thread has.
    pub fn local_memory(&self) -> u32 {
        self.work.lock().local
    }

    /// Bytes of stack that each thread has.
    pub fn stack(&self) -> u32 {
        self.local_memory() - STACK_RESERVE
    }

    /// Gives each thread this much local memory, after everything before has finished.
    ///
    /// # Errors
    /// 0x51 when there is not that much memory; the channel's fault.
    pub fn set_local(&self, base: &Base, local: u32) -> RmResult<()> {
        self.watch.check()?;
        let mut work = self.work.lock();
        if work.local == local {
            return Ok(());
        }
        self.replace_local(base, &mut work, local)
    }

    /// The old memory may be in use until everything before has finished.
    fn replace_local(&self, base: &Base, work: &mut Work, local: u32) -> RmResult<()> {
        self.watch.wait(&self.timeline, work.queue.last(), None, work.queue.last())?;
        let arena = base.local_memory(&mut work.queue, local)?;
        self.last.store(work.queue.last(), Ordering::Release);
        (work.arena, work.local) = (arena, local);
        if work.ready_local != NO_LOCAL {
            work.ready_local = local;
        }
        Ok(())
    }
}

#[cold]
fn never_given(submission: u64, last: u64) -> RmError {
    RmError::new(NV_ERR_INVALID_ARGUMENT, format!("fence {submission} was never given: the last one is {last}"))
}
