//! A queue of a device: a channel, the local memory of its kernels, how far it has come, and what stops it.
//!
//! A fence is a number: the queue's own number in the high bits, and that of the submission in the low ones.

use super::base::{Base, refused};
use super::buffer::Transfer;
use super::commands::{Commands, Engine};
use super::cubin::Kernel;
use super::cubin::kernel::{DEFAULT_STACK, STACK_RESERVE};
use super::fault::{FaultInfo, Probe, Watch};
use super::follow_up::FollowUp;
use super::launch::Launch;
use super::memory::{Memory, Span, Writer};
use super::module::Module;
use super::profile::{Record, Records};
use super::queue::{Kind, Plan, Queue, Timeline};
use super::ready::Ready;
use crate::status::{RmError, RmResult, fail};
use parking_lot::{Mutex, RwLock};
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
/// No launch lies ready for it: of a channel without compute.
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
    /// `None` for a channel without compute.
    arena: Option<Memory>,
    /// The same number where kernels can run.
    ready_local: u32,
    /// What the CPU does for the queue, so far.
    errands: u64,
    /// Progress of the channels that it waits for, and the submission with which it does.
    waits_for: Vec<(u64, Arc<Timeline>)>,
}

/// A queue.
pub struct Lane {
    /// Declared first: the channel goes before the memory it uses.
    work: Mutex<Work>,
    timeline: Arc<Timeline>,
    /// Changes when the queue is recovered.
    watch: RwLock<Arc<Watch>>,
    plan: Plan,
    last: AtomicU64,
    number: u64,
}

impl Lane {
    /// Opens a channel, with `local` bytes of local memory for each thread of its kernels: the queue of a number.
    ///
    /// # Errors
    /// What RM says; nothing stays behind.
    pub fn open(base: &Base, number: u64, plan: Plan, local: u32) -> RmResult<Lane> {
        let mut queue = Queue::open(base.session(), base.doorbell(), plan)?;
        base.set_up(&mut queue)?;
        let (arena, ready_local) = match plan.kind {
            Kind::Compute => (Some(base.local_memory(&mut queue, local)?), local),
            Kind::Copy => (None, NO_LOCAL),
        };
        let (timeline, watch, last) = (queue.timeline().clone(), queue.watch().clone(), AtomicU64::new(queue.last()));
        let work = Work { queue, local, arena, ready_local, errands: 0, waits_for: Vec::new() };
        Ok(Lane { work: Mutex::new(work), timeline, watch: RwLock::new(watch), plan, last, number })
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
        self.timeline.completed() >= submission || self.watch().is_stopped()
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
        self.watch().fault()
    }

    /// Whether a submission has finished. A GPU that is executed in steps does one.
    ///
    /// # Errors
    /// 0x1F for one that was never given; the channel's fault.
    pub fn query(&self, submission: u64) -> RmResult<bool> {
        self.check_given(submission)?;
        let watch = self.watch();
        watch.step();
        watch.verdict(&self.timeline, submission).map_or(Ok(false), |result| result.map(|()| true))
    }

    /// Whether a submission was given.
    ///
    /// # Errors
    /// 0x1F when it was not.
    pub fn check_given(&self, submission: u64) -> RmResult<()> {
        let last = self.last();
        if submission > last { Err(never_given(submission, last)) } else { Ok(()) }
    }

    fn watch(&self) -> Arc<Watch> {
        self.watch.read().clone()
    }

    /// Makes the queue work again when a fault stopped it: on another channel, behind what it was given. True if it had stopped.
    ///
    /// # Errors
    /// What RM says. The queue stays as it was, but for the work that it had not finished: that is lost.
    pub fn recover(&self, base: &Base) -> RmResult<bool> {
        let mut work = self.work.lock();
        if !work.queue.watch().is_stopped() {
            return Ok(false);
        }
        // Who waits with the old channel's watch is told what it knows now.
        work.queue.watch().fault()?;
        let last = work.queue.last();
        let completed = self.timeline.completed();
        if let Some(records) = work.queue.records() {
            records.lose(completed);
        }
        self.timeline.lose(last)?;
        let mut queue = Queue::go_on(base.session(), base.doorbell(), self.plan, &self.timeline, last)?;
        base.set_up(&mut queue)?;
        if self.plan.kind == Kind::Compute {
            work.arena = Some(base.local_memory(&mut queue, work.local)?);
        }
        queue.record(work.queue.take_records());
        *self.watch.write() = queue.watch().clone();
        self.last.store(queue.last(), Ordering::Release);
        work.queue = queue;
        Ok(true)
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
        self.watch().wait(&self.timeline, submission, deadline, last)
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
        let mut work = self.work.lock();
        work.queue.check()?;
        if !ready.is_for(launch, work.ready_local) {
            self.prepare(base, module.kernel_at(index), module.address(), ready, launch, &mut work)?;
        }
        let name = || module.kernel_at(index).name.clone();
        let submission = ready.launch(base.code(), &mut work.queue, name, fill)?;
        self.last.store(submission, Ordering::Release);
        Ok(submission)
    }

    /// Makes a launch lie ready.
    #[cold]
    fn prepare(
        &self,
        base: &Base,
        kernel: &Kernel,
        at: u64,
        ready: &mut Ready,
        launch: &Launch,
        work: &mut Work,
    ) -> RmResult<()> {
        if work.arena.is_none() {
            fail!(NV_ERR_INVALID_ARGUMENT, "launching '{}': the queue has a copy engine alone", kernel.name);
        }
        if kernel.local_memory() > work.local {
            let needed = kernel.local_memory().next_power_of_two().min(MOST_LOCAL);
            self.replace_local(base, work, needed)?;
        }
        let made = ready.make(kernel, at, *launch, work.local, base.context());
        made.map_err(|e| refused(kernel, e))
    }

    /// Gives the copy engine work in pieces that it can take. Returns the submission.
    ///
    /// # Errors
    /// The channel's fault; 0x65 when the ring stays full.
    pub(super) fn transfer(&self, pieces: impl Iterator<Item = Transfer>) -> RmResult<u64> {
        let mut work = self.work.lock();
        work.queue.check()?;
        let mut submission = work.queue.last();
        for piece in pieces {
            submission = work.queue.work(Engine::Copy, piece.what(), |commands| piece.put(commands))?;
            self.last.store(submission, Ordering::Release);
        }
        Ok(submission)
    }

    /// Gives the GPU words of its own accord, for the engine that worked last. Returns the submission.
    ///
    /// # Errors
    /// As [`Lane::transfer`].
    pub fn submit(&self, words: impl FnOnce(&mut Commands<Writer<'_>>)) -> RmResult<u64> {
        let mut work = self.work.lock();
        work.queue.check()?;
        let engine = work.queue.engine();
        let submission = work.queue.submit(engine, words)?;
        self.last.store(submission, Ordering::Release);
        Ok(submission)
    }

    /// What is given from now on starts when a submission of another queue has finished. Returns the submission that waits.
    ///
    /// # Errors
    /// As [`Lane::transfer`].
    pub fn after(&self, other: &Arc<Timeline>, submission: u64) -> RmResult<u64> {
        let mut work = self.work.lock();
        work.queue.check()?;
        let engine = work.queue.engine();
        let waits = work.queue.submit(engine, |commands| {
            commands.acquire(other.va(), submission);
        })?;
        self.last.store(waits, Ordering::Release);
        // The GPU reads that number until then, also when the other queue has ended.
        let completed = self.timeline.completed();
        work.waits_for.retain(|(waits, _)| *waits > completed);
        work.waits_for.push((waits, other.clone()));
        Ok(waits)
    }

    /// What is given from now on starts when the CPU has done something, which it does behind everything given so far: as soon
    /// as `follow_up` sees that finished. Returns the submission.
    ///
    /// # Errors
    /// As [`Lane::transfer`]; as [`FollowUp::start`].
    pub fn errand(&self, follow_up: &FollowUp, errand: impl FnOnce() + Send + 'static) -> RmResult<u64> {
        follow_up.start()?;
        let mut work = self.work.lock();
        work.queue.check()?;
        let (before, engine, number) = (work.queue.last(), work.queue.engine(), work.errands + 1);
        let submission = work.queue.submit(engine, |commands| {
            commands.acquire(self.timeline.cpu_va(), number);
        })?;
        self.last.store(submission, Ordering::Release);
        work.errands = number;
        let timeline = self.timeline.clone();
        let deed = move |finished: RmResult<()>| {
            // After a fault nobody waits any more, and nobody knows what is in the memory.
            if finished.is_ok() {
                errand();
                if let Err(e) = timeline.cpu_has_come_to(number) {
                    tracing::error!("an errand of the CPU: {e}");
                }
            }
        };
        follow_up.when(Probe::new(&self.timeline, work.queue.watch(), before), Box::new(deed));
        Ok(submission)
    }

    /// Whether the GPU has finished everything, and nothing stopped it.
    pub fn is_idle(&self) -> bool {
        self.timeline.completed() >= self.last() && !self.watch().is_stopped()
    }

    /// Looks at a submission from elsewhere.
    pub fn probe(&self, submission: u64) -> Probe {
        Probe::new(&self.timeline, &self.watch(), submission)
    }

    /// From now on nothing is recorded.
    pub fn record_no_more(&self) {
        let mut work = self.work.lock();
        let records = work.queue.take_records();
        work.queue.record(None);
        drop(work);
        // Not under the lock: this makes kernel calls.
        drop(records);
    }

    /// From now on start and end of everything are recorded.
    ///
    /// # Errors
    /// 0x51 when there is no memory for the stamps.
    pub fn record(&self, base: &Base) -> RmResult<()> {
        let records = Records::new(base.session())?;
        self.work.lock().queue.record(Some(records));
        Ok(())
    }

    /// What was recorded and has finished, each once.
    pub fn recorded(&self) -> Vec<Record> {
        let mut work = self.work.lock();
        let completed = self.timeline.completed();
        let records = work.queue.records().map_or_else(Vec::new, |records| records.take(completed));
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
        let mut work = self.work.lock();
        work.queue.check()?;
        if work.local == local || work.arena.is_none() {
            return Ok(());
        }
        self.replace_local(base, &mut work, local)
    }

    /// The old memory may be in use until everything before has finished.
    fn replace_local(&self, base: &Base, work: &mut Work, local: u32) -> RmResult<()> {
        work.queue.watch().wait(&self.timeline, work.queue.last(), None, work.queue.last())?;
        let arena = base.local_memory(&mut work.queue, local)?;
        self.last.store(work.queue.last(), Ordering::Release);
        (work.arena, work.local, work.ready_local) = (Some(arena), local, local);
        Ok(())
    }
}

#[cold]
fn never_given(submission: u64, last: u64) -> RmError {
    RmError::new(NV_ERR_INVALID_ARGUMENT, format!("fence {submission} was never given: the last one is {last}"))
}

impl Drop for Lane {
    /// Queues that wait for this one go on: what it has not finished never will be.
    fn drop(&mut self) {
        if let Err(e) = self.timeline.lose(self.last()) {
            tracing::error!("ending a queue: {e}");
        }
    }
}
