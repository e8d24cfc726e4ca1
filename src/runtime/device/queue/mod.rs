//! A queue of a device: a channel, the local memory of its kernels, its progress, and the fault that stops it.
//!
//! A fence is a number: the number of the queue in the high bits, and the number of the submission in the low bits.

mod turn;

use crate::runtime::channel::fence_thread::FenceThread;
use crate::runtime::channel::profile::{Record, Records};
use crate::runtime::channel::timeline::Timeline;
use crate::runtime::channel::{Channel, Kind, Plan, Words};
use crate::runtime::commands::{Commands, Engine};
use crate::runtime::device::base::{Base, refused};
use crate::runtime::device::buffer::Transfer;
use crate::runtime::device::module::Module;
use crate::runtime::device::syncpoints::Signal;
use crate::runtime::fault::{FaultInfo, Probe, Watch};
use crate::runtime::launch::Launch;
use crate::runtime::launch::images::LaunchImages;
use crate::runtime::launch::params::Home;
use crate::runtime::memory::{Memory, Span, Writer};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tegrarm_abi::rm::status::*;
use tegrarm_images::cubin::Kernel;
use tegrarm_images::cubin::kernel::{DEFAULT_STACK, STACK_RESERVE};
use tegrarm_lock::{Mutex, RwLock};
use tegrarm_rm::rm::syncpoints::SyncPoint;
use tegrarm_rm::status::{RmError, RmResult, fail};

/// The local memory per thread with which every queue starts: CUDA's default stack, and what the ABI keeps for itself.
pub const FIRST_LOCAL: u32 = DEFAULT_STACK + STACK_RESERVE;
/// Local memory is a multiple of this, so that a whole warp has a multiple of 512 bytes, which is the GPU's unit.
pub const LOCAL_UNIT: u32 = 32;
/// The descriptor's field for it has 24 bits.
pub const MOST_LOCAL: u32 = (1 << 24) - LOCAL_UNIT;
/// The value of a channel without compute. No launch image is made for it.
const NO_LOCAL: u32 = u32::MAX - 1;
/// The bit of a fence at which the number of its queue begins.
const QUEUE_SHIFT: u32 = 48;

/// The number of the queue that a fence belongs to, and the number of its submission.
pub fn split(fence: u64) -> (u64, u64) {
    (fence >> QUEUE_SHIFT, fence & ((1 << QUEUE_SHIFT) - 1))
}

/// The state that the queue's lock guards.
struct Work {
    channel: Channel,
    /// The submission that prepares the channel, which the library makes itself before it takes any work.
    set_up: u64,
    /// The local memory per thread. The next field is the memory for it.
    local: u32,
    /// It is `None` for a channel without compute.
    arena: Option<Memory>,
    /// The same number if kernels can run on the queue.
    ready_local: u32,
    /// The number of tasks that the CPU has done or will do for the queue.
    host_tasks: u64,
    /// The syncpoint of the queue's channel. It is asked for at the first use.
    signal: Option<Signal>,
    /// The timelines of the channels for which it waits, each with the submission that waits.
    waits_for: Vec<(u64, Arc<Timeline>)>,
}

/// A queue of a device.
pub struct Queue {
    /// It is declared first, because the channel must end before the memory that it uses.
    work: Mutex<Work>,
    timeline: Arc<Timeline>,
    /// It is replaced when the queue is recovered.
    watch: RwLock<Arc<Watch>>,
    plan: Plan,
    last: AtomicU64,
    number: u64,
}

impl Queue {
    /// Opens a channel with `local` bytes of local memory for each thread of its kernels. It is the queue with the
    /// number `number`.
    ///
    /// # Errors
    /// An error that RM gives. Nothing is left of the attempt.
    pub fn open(base: &Base, number: u64, plan: Plan, local: u32) -> RmResult<Queue> {
        let mut channel = Channel::open(base.session(), base.doorbell(), plan, base.diagnostics())?;
        base.set_up(&mut channel)?;
        base.introduce(&mut channel, number);
        let (arena, ready_local) = match plan.kind {
            Kind::Compute => (Some(base.local_memory(&mut channel, local)?), local),
            Kind::Copy => (None, NO_LOCAL),
        };
        let (timeline, watch, last) =
            (channel.timeline().clone(), channel.watch().clone(), AtomicU64::new(channel.last()));
        let work = Work {
            set_up: channel.last(),
            channel,
            local,
            arena,
            ready_local,
            host_tasks: 0,
            signal: None,
            waits_for: Vec::new(),
        };
        Ok(Queue { work: Mutex::new(work), timeline, watch: RwLock::new(watch), plan, last, number })
    }

    /// The number of the queue in its device.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// nvgpu's level of the queue's priority. It is `None` for nvgpu's default.
    pub fn level(&self) -> Option<u32> {
        self.plan.level
    }

    /// The fence of a submission.
    #[inline]
    pub fn fence_of(&self, submission: u64) -> u64 {
        self.number << QUEUE_SHIFT | submission
    }

    /// The fence of all work that the queue has so far.
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
        self.timeline.progress() >= submission || self.watch().is_stopped()
    }

    /// The progress of its channel.
    pub fn timeline(&self) -> &Arc<Timeline> {
        &self.timeline
    }

    /// The fault that stopped the queue. It is `None` while the queue works.
    ///
    /// # Errors
    /// An error that RM gives for the records of the SMs.
    pub fn fault(&self) -> RmResult<Option<FaultInfo>> {
        self.watch().fault()
    }

    /// Whether a submission has finished. If the GPU is executed in steps, executes one step.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_ARGUMENT` for a submission that was never made, and the channel's fault.
    pub fn query(&self, submission: u64) -> RmResult<bool> {
        self.check_given(submission)?;
        let watch = self.watch();
        watch.step();
        watch.outcome(&self.timeline, submission).map_or(Ok(false), |result| result.map(|()| true))
    }

    /// Checks that a submission was made.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_ARGUMENT` if it was not.
    pub fn check_given(&self, submission: u64) -> RmResult<()> {
        let last = self.last();
        if submission > last { Err(never_given(submission, last)) } else { Ok(()) }
    }

    fn watch(&self) -> Arc<Watch> {
        self.watch.read().clone()
    }

    /// Stops the queue as a fault does, unless its work has finished or a fault stopped it before. Returns whether it
    /// was stopped now. What prepares the channel is no work of the caller's, so that a queue that was only opened or
    /// recovered is idle, whether or not the GPU has prepared the channel yet.
    ///
    /// # Errors
    /// An error that RM gives. The queue is as it was.
    pub fn stop(&self, base: &Base) -> RmResult<bool> {
        let work = self.work.lock();
        let last = work.channel.last();
        let runs = last > work.set_up && !self.is_over(last);
        if runs {
            work.channel.stop(base.session())?;
        }
        Ok(runs)
    }

    /// If a fault stopped the queue, makes it work again on another channel, after the work that it has. Returns
    /// whether it had stopped.
    ///
    /// # Errors
    /// An error that RM gives. The queue is as it was. The work that it had not finished is lost.
    pub fn recover(&self, base: &Base) -> RmResult<bool> {
        let mut work = self.work.lock();
        if !work.channel.watch().is_stopped() {
            return Ok(false);
        }
        // Threads that wait with the old channel's watch get the fault that it knows now.
        work.channel.watch().fault()?;
        let last = work.channel.last();
        let completed = self.timeline.progress();
        if let Some(records) = work.channel.records() {
            records.lose(completed);
        }
        self.timeline.lose(last)?;
        let mut channel =
            Channel::go_on(base.session(), base.doorbell(), self.plan, base.diagnostics(), &self.timeline, last)?;
        base.set_up(&mut channel)?;
        base.introduce(&mut channel, self.number);
        if self.plan.kind == Kind::Compute {
            work.arena = Some(base.local_memory(&mut channel, work.local)?);
        }
        channel.record(work.channel.take_records());
        *self.watch.write() = channel.watch().clone();
        self.last.store(channel.last(), Ordering::Release);
        work.set_up = channel.last();
        work.channel = channel;
        work.signal = None; // the syncpoint was freed with the old channel
        Ok(true)
    }

    /// Waits for a submission. Without a deadline the wait has no limit.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_ARGUMENT` for a submission that was never made, the channel's fault as soon as there is one, and
    /// `NV_ERR_TIMEOUT` with the work that is pending.
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
    /// `NV_ERR_INVALID_ARGUMENT` for a launch that the GPU cannot run, with the numbers, the error of `fill`, the
    /// channel's fault, and those of [`LaunchImages::launch`].
    pub fn launch(
        &self,
        base: &Base,
        module: &Module,
        index: usize,
        ready: &mut LaunchImages,
        launch: &Launch,
        fill: impl FnOnce(&Span) -> RmResult<()>,
    ) -> RmResult<u64> {
        let mut work = self.work.lock();
        work.channel.check()?;
        if !ready.is_for(launch, work.ready_local) {
            self.prepare(base, module.kernel_at(index), module.home(), ready, launch, &mut work)?;
        }
        let name = || module.kernel_at(index).name.clone();
        let submission = ready.launch(base.code(), &mut work.channel, name, fill)?;
        base.diagnostics().launched(work.channel.watch().channel(), submission);
        self.last.store(submission, Ordering::Release);
        Ok(submission)
    }

    /// Makes the image of a launch.
    fn prepare(
        &self,
        base: &Base,
        kernel: &Kernel,
        home: &Home,
        ready: &mut LaunchImages,
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
        let made = ready.make(kernel, home, *launch, work.local, base.context());
        made.map_err(|e| refused(kernel, e))
    }

    /// Submits transfers to the copy engine, in pieces that it can take. Returns the submission.
    ///
    /// # Errors
    /// The channel's fault, and `NV_ERR_TIMEOUT` if the ring stays full.
    pub(super) fn transfer(&self, pieces: impl Iterator<Item = Transfer>) -> RmResult<u64> {
        let mut work = self.work.lock();
        work.channel.check()?;
        let mut submission = work.channel.last();
        for piece in pieces {
            submission = work.channel.work(Engine::Copy, piece.what(), |commands| piece.put(commands))?;
            self.last.store(submission, Ordering::Release);
        }
        Ok(submission)
    }

    /// Submits commands of the queue itself, for the engine that worked last. Returns the submission.
    ///
    /// # Errors
    /// Those of [`Queue::transfer`].
    pub fn submit(&self, words: impl FnOnce(&mut Commands<Writer<'_>>)) -> RmResult<u64> {
        let mut work = self.work.lock();
        work.channel.check()?;
        let engine = work.channel.engine();
        let submission = work.channel.submit(engine, words)?;
        self.last.store(submission, Ordering::Release);
        Ok(submission)
    }

    /// Submits words that stay in memory, whose kernels need `local` bytes of local memory for each thread. Returns the submission.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_ARGUMENT` for launches on a queue with a copy engine alone, `NV_ERR_NO_MEMORY` if there is not enough local
    /// memory, and those of [`Queue::transfer`].
    pub fn submit_words(&self, base: &Base, words: &Words, local: u32) -> RmResult<u64> {
        let mut work = self.work.lock();
        work.channel.check()?;
        if words.launches > 0 && work.arena.is_none() {
            fail!(NV_ERR_INVALID_ARGUMENT, "a replay with launches: the queue has a copy engine alone");
        }
        if words.launches > 0 && work.local < local {
            self.replace_local(base, &mut work, local)?;
        }
        let submission = work.channel.submit_words(words)?;
        self.last.store(submission, Ordering::Release);
        Ok(submission)
    }

    /// Increments the queue's syncpoint after all work that the queue has. Returns the value that the syncpoint will reach.
    ///
    /// # Errors
    /// An error that RM gives for the syncpoint, and those of [`Queue::transfer`].
    pub fn signal(&self, base: &Base) -> RmResult<SyncPoint> {
        let mut work = self.work.lock();
        work.channel.check()?;
        let mut signal = match work.signal {
            Some(signal) => signal,
            None => Signal::of(base.session(), work.channel.group.channel)?,
        };
        let (engine, point) = (work.channel.engine(), signal.raised());
        let submission = work.channel.submit(engine, |commands| {
            commands.increment_syncpoint(signal.va());
        })?;
        self.last.store(submission, Ordering::Release);
        work.signal = Some(signal);
        Ok(point)
    }

    /// Makes later work of this queue wait until a submission of another queue has finished. Returns the submission
    /// that waits.
    ///
    /// # Errors
    /// Those of [`Queue::transfer`].
    pub fn after(&self, other: &Arc<Timeline>, submission: u64) -> RmResult<u64> {
        let mut work = self.work.lock();
        work.channel.check()?;
        let engine = work.channel.engine();
        let waits = work.channel.submit(engine, |commands| {
            commands.acquire(other.va(), submission);
        })?;
        self.last.store(waits, Ordering::Release);
        // The GPU reads that number until then, even if the other queue has ended.
        let completed = self.timeline.progress();
        work.waits_for.retain(|(waits, _)| *waits > completed);
        work.waits_for.push((waits, other.clone()));
        Ok(waits)
    }

    /// Makes later work of this queue wait until the CPU has done a task. The CPU does it when all earlier work has
    /// finished, as soon as `thread` notices that. Returns the submission.
    ///
    /// # Errors
    /// Those of [`Queue::transfer`] and of [`FenceThread::start`].
    pub fn host_task(&self, thread: &FenceThread, host_task: impl FnOnce() + Send + 'static) -> RmResult<u64> {
        thread.start()?;
        let mut work = self.work.lock();
        work.channel.check()?;
        let (before, engine, number) = (work.channel.last(), work.channel.engine(), work.host_tasks + 1);
        let submission = work.channel.submit(engine, |commands| {
            commands.acquire(self.timeline.cpu_va(), number);
        })?;
        self.last.store(submission, Ordering::Release);
        work.host_tasks = number;
        let timeline = self.timeline.clone();
        let task = move |finished: RmResult<()>| {
            // After a fault nothing waits for the task any more, and the contents of the memory are not known.
            if finished.is_ok() {
                host_task();
                if let Err(e) = timeline.cpu_has_come_to(number) {
                    tracing::error!("an host_task of the CPU: {e}");
                }
            }
        };
        thread.when(Probe::new(&self.timeline, work.channel.watch(), before), Box::new(task));
        Ok(submission)
    }

    /// Whether the GPU has finished all work, and no fault stopped the queue.
    pub fn is_idle(&self) -> bool {
        self.timeline.progress() >= self.last() && !self.watch().is_stopped()
    }

    /// Makes a probe of a submission, with which another thread can look at it.
    pub fn probe(&self, submission: u64) -> Probe {
        Probe::new(&self.timeline, &self.watch(), submission)
    }

    /// Stops recording.
    pub fn record_no_more(&self) {
        let mut work = self.work.lock();
        let records = work.channel.take_records();
        work.channel.record(None);
        drop(work);
        // This makes kernel calls, so that it must not be done while the lock is held.
        drop(records);
    }

    /// Starts to record the start and the end of all work.
    ///
    /// # Errors
    /// `NV_ERR_NO_MEMORY` if there is no memory for the stamps.
    pub fn record(&self, base: &Base) -> RmResult<()> {
        let records = Records::new(base.session())?;
        self.work.lock().channel.record(Some(records));
        Ok(())
    }

    /// The recorded work that has finished. Each piece is returned once.
    pub fn recorded(&self) -> Vec<Record> {
        let mut work = self.work.lock();
        let completed = self.timeline.progress();
        let records = work.channel.records().map_or_else(Vec::new, |records| records.take(completed));
        drop(work);
        let whose = |record: Record| Record { queue: self.number, fence: self.fence_of(record.fence), ..record };
        records.into_iter().map(whose).collect()
    }

    /// Fails with the fault if one stopped the queue.
    ///
    /// # Errors
    /// The channel's fault.
    pub fn check(&self) -> RmResult<()> {
        self.work.lock().channel.check()
    }

    /// The number of bytes of local memory that each thread has.
    pub fn local_memory(&self) -> u32 {
        self.work.lock().local
    }

    /// The number of bytes of stack that each thread has.
    pub fn stack(&self) -> u32 {
        self.local_memory() - STACK_RESERVE
    }

    /// Gives each thread this much local memory, after all work before has finished.
    ///
    /// # Errors
    /// `NV_ERR_NO_MEMORY` if there is not enough memory, and the channel's fault.
    pub fn set_local(&self, base: &Base, local: u32) -> RmResult<()> {
        let mut work = self.work.lock();
        work.channel.check()?;
        if work.local == local || work.arena.is_none() {
            return Ok(());
        }
        self.replace_local(base, &mut work, local)
    }

    /// Replaces the memory. The old memory may be in use until all work before has finished.
    fn replace_local(&self, base: &Base, work: &mut Work, local: u32) -> RmResult<()> {
        work.channel.watch().wait(&self.timeline, work.channel.last(), None, work.channel.last())?;
        let arena = base.local_memory(&mut work.channel, local)?;
        self.last.store(work.channel.last(), Ordering::Release);
        (work.arena, work.local, work.ready_local) = (Some(arena), local, local);
        Ok(())
    }
}

#[cold]
fn never_given(submission: u64, last: u64) -> RmError {
    RmError::new(NV_ERR_INVALID_ARGUMENT, format!("fence {submission} was never given: the last one is {last}"))
}

impl Drop for Queue {
    /// Queues that wait for this one continue, because the work that it has not finished never will be.
    fn drop(&mut self) {
        if let Err(e) = self.timeline.lose(self.last()) {
            tracing::error!("ending a queue: {e}");
        }
    }
}
