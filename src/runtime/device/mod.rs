//! A GPU as a program sees it, with modules, launches and fences. Its buffers are in [`crate::runtime::device::buffer`].
//!
//! The work of a queue runs in the order in which the queue got it. Work of different queues has no order. Every method
//! may be called from any thread.

pub mod base;
pub mod buffer;
pub mod checking;
pub mod event;
pub mod measure;
pub mod module;
pub mod printing;
pub mod profiling;
pub mod queue;
pub mod queue_ref;
pub mod queue_table;
mod retired;
mod stacks;
mod suppressions;
pub mod syncpoints;
pub mod waits;

use crate::runtime::channel::Plan;
use crate::runtime::channel::fence_thread::FenceThread;
use crate::runtime::channel::stamps::Stamps;
use crate::runtime::device::base::{Base, refused};
use crate::runtime::device::buffer::Transfer;
use crate::runtime::device::module::{KernelRef, Module};
use crate::runtime::device::printing::Printing;
use crate::runtime::device::profiling::{Profiling, Report};
use crate::runtime::device::queue::{FIRST_LOCAL, Queue, split};
use crate::runtime::device::queue_table::{Found, QueueTable};
use crate::runtime::device::retired::Retired;
use crate::runtime::fault::{FaultInfo, Probe};
use crate::runtime::launch::{Launch, LaunchError};
use crate::runtime::memory::Memory;
use crate::runtime::memory::session::Session;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tegrarm_abi::rm::ctrl_2080::*;
use tegrarm_abi::rm::status::*;
use tegrarm_images::cubin::Kernel;
use tegrarm_rm::rm::Rm;
use tegrarm_rm::rm::profile::Profile;
use tegrarm_rm::status::RmResult;
use zerocopy::FromZeros;

/// The compute capability of an SM version (`0x807` is 87), in the form that cubins use.
fn capability(sm_version: u32) -> u32 {
    (sm_version >> 8) * 10 + (sm_version & 0xff)
}

/// An open GPU.
pub struct Device {
    /// It is declared first, because its channel must end before the memory that it uses.
    own: Queue,
    queues: QueueTable,
    /// The thread that tells callers when a fence has passed.
    notifier_thread: FenceThread,
    /// The thread that makes the CPU's copies between the GPU's work.
    host_thread: FenceThread,
    /// Set if closing the device has waited for too long. After that nothing waits for the device's work.
    given_up: AtomicBool,
    retired: Retired,
    stamps: Arc<Stamps>,
    profile: Profiling,
    printing: Printing,
    base: Base,
}

impl Device {
    /// Opens GPU `index`.
    ///
    /// # Errors
    /// An error that RM gives. Nothing is left of the attempt.
    pub fn open(rm: &Arc<Rm>, index: u32) -> RmResult<Arc<Device>> {
        let base = Base::open(rm, index)?;
        Ok(Arc::new(Device {
            own: Queue::open(&base, 0, Plan::PLAIN, FIRST_LOCAL)?,
            queues: QueueTable::new(),
            notifier_thread: FenceThread::new("tegrarm-notify"),
            host_thread: FenceThread::new("tegrarm-host"),
            given_up: AtomicBool::new(false),
            retired: Retired::default(),
            stamps: Stamps::new(base.session()),
            profile: Profiling::default(),
            printing: Printing::default(),
            base,
        }))
    }

    /// The properties of the GPU.
    pub fn profile(&self) -> &Profile {
        self.base.profile()
    }

    /// The manager with which the device was opened.
    pub fn rm(&self) -> &Arc<Rm> {
        self.session().rm()
    }

    /// Makes memory. If there is none, frees what the device keeps for later (retired memory, room for machine code) and tries
    /// once more.
    ///
    /// # Errors
    /// The error of `make`.
    fn with_retry<T>(&self, make: impl Fn() -> RmResult<T>) -> RmResult<T> {
        self.free_retired();
        match make() {
            Err(e) if e.status == NV_ERR_NO_MEMORY => {
                let retired = self.retired.is_there();
                if retired {
                    self.finish_all();
                    self.free_retired();
                }
                if self.base().code().trim() || retired { make() } else { Err(e) }
            }
            made => made,
        }
    }

    /// Frees memory when all work that the device has so far has finished. If it has finished, frees it now.
    fn retire(&self, memory: Arc<Memory>) {
        if memory.is_borrowed() {
            self.finish_all();
        } else if let pending = self.pending()
            && !pending.is_empty()
        {
            self.retired.keep(pending, memory);
        }
        self.free_retired();
    }

    /// Calls `look` for each queue.
    fn each_queue(&self, mut look: impl FnMut(&Queue)) {
        look(&self.own);
        self.queues.all().iter().for_each(|queue| look(queue));
    }

    /// The fences of all work that has not finished.
    fn pending(&self) -> Vec<u64> {
        let mut pending = Vec::new();
        self.each_queue(|queue| pending.extend((!queue.is_over(queue.last())).then(|| queue.fence())));
        pending
    }

    /// Whether all work that the device was given has ended.
    fn is_quiet(&self) -> bool {
        self.pending().is_empty()
    }

    /// The function that prints what kernels print.
    fn printing(&self) -> &Printing {
        &self.printing
    }

    /// Frees retired memory that no work can use any more.
    fn free_retired(&self) {
        self.retired.give_back(|fence| self.has_passed(fence));
    }

    /// The number of free bytes and of all bytes of memory. It is the memory of the whole system, which the GPU shares.
    ///
    /// # Errors
    /// An error that RM gives.
    pub fn memory(&self) -> RmResult<(u64, u64)> {
        let mut p = NV2080_CTRL_FB_GET_INFO_V2_PARAMS::new_zeroed();
        let asked = [NV2080_CTRL_FB_INFO_INDEX_HEAP_FREE, NV2080_CTRL_FB_INFO_INDEX_TOTAL_RAM_SIZE];
        p.fbInfoListSize = asked.len() as u32;
        for (pair, index) in p.fbInfoList.chunks_exact_mut(8).zip(asked) {
            pair[..4].copy_from_slice(&index.to_le_bytes());
        }
        self.session().control(self.session().subdevice, NV2080_CTRL_CMD_FB_GET_INFO_V2, &mut p)?;
        let kib = |at: usize| u64::from(u32::from_le_bytes([0, 1, 2, 3].map(|i| p.fbInfoList[8 * at + 4 + i])));
        Ok((kib(0) << 10, kib(1) << 10))
    }

    /// Loads a cubin.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_ARGUMENT` and the loader's sentence for a bad file, and an error that RM gives.
    pub fn load(self: &Arc<Device>, image: &[u8]) -> RmResult<Arc<Module>> {
        Module::load(self, image, capability(self.profile().sm_version))
    }

    /// Launches a kernel. `arguments` is the block of arguments, which has the layout of the parameters. Returns the
    /// fence.
    ///
    /// # Errors
    /// Those of [`Queue::launch`], and `NV_ERR_INVALID_ARGUMENT` if the block has the wrong size.
    pub fn launch(&self, kernel: &KernelRef, launch: &Launch, arguments: &[u8]) -> RmResult<u64> {
        let (found, wanted) = (arguments.len(), kernel.kernel().parameter_size);
        if found != wanted as usize {
            return Err(refused(kernel.kernel(), LaunchError::ArgumentBytes { found, wanted }));
        }
        let mut ready = kernel.ready().lock();
        // The device's own queue has number 0, so that its fences are the numbers of the submissions.
        self.own.launch(&self.base, kernel.module(), kernel.index(), &mut ready, launch, |to| {
            to.put(0, arguments);
            Ok(())
        })
    }

    /// Submits transfers to the copy engine, in pieces that it can take. Returns the fence.
    fn transfer(&self, pieces: impl Iterator<Item = Transfer>) -> RmResult<u64> {
        self.own.transfer(pieces).map(|submission| self.own.fence_of(submission))
    }

    /// Finds the queue of a fence. The result is `Ok(None)` if the queue has ended, and then all of its fences have
    /// passed.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_ARGUMENT` if the device never had that queue.
    fn queue(&self, fence: u64) -> RmResult<Option<Found<'_>>> {
        match split(fence).0 {
            0 => Ok(Some(Found::Own(&self.own))),
            other => Ok(self.queues.find(other)?.map(Found::Other)),
        }
    }

    /// Whether the work of a fence has finished.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_ARGUMENT` for a fence that was never given out, and the fault of its queue.
    pub fn query(&self, fence: u64) -> RmResult<bool> {
        let passed = self.queue(fence)?.map_or(Ok(true), |queue| queue.query(split(fence).1));
        if !matches!(passed, Ok(false)) {
            self.print();
        }
        passed
    }

    /// Makes a probe of a fence, with which another thread can look at it.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_ARGUMENT` for a fence that was never given out.
    fn probe(&self, fence: u64) -> RmResult<Probe> {
        match self.queue(fence)? {
            Some(queue) => queue.check_given(split(fence).1).map(|()| queue.probe(split(fence).1)),
            None => Ok(self.own.probe(0)),
        }
    }

    /// The other queues of the device.
    pub fn queues(&self) -> &QueueTable {
        &self.queues
    }

    /// The thread that tells callers when a fence has passed.
    fn notifier_thread(&self) -> &FenceThread {
        &self.notifier_thread
    }

    /// The thread that makes the CPU's copies between the GPU's work.
    fn host_thread(&self) -> &FenceThread {
        &self.host_thread
    }

    /// The queue with which the device was opened.
    pub fn own(&self) -> &Queue {
        &self.own
    }

    /// What the device's queues share.
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// Starts a profile: `report` is called for all work that has finished, with its start and its end, in threads that
    /// wait.
    ///
    /// # Errors
    /// `NV_ERR_STATE_IN_USE` if a profile runs already, and an error that RM gives if there is no memory.
    pub fn start_profile(&self, report: Arc<Report>) -> RmResult<()> {
        self.profile.start(report)?;
        let mut made = Ok(());
        self.each_queue(|queue| {
            if made.is_ok() {
                made = queue.record(&self.base);
            }
        });
        if made.is_err() {
            self.profile.stop()?;
            self.each_queue(Queue::record_no_more);
        }
        made
    }

    /// Profiles a queue too that was opened while the device is profiled.
    fn profile_too(&self, queue: &Queue) -> RmResult<()> {
        if self.profile.is_on() { queue.record(&self.base) } else { Ok(()) }
    }

    /// Ends the profile: waits for all work so far and reports it.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_STATE` if no profile runs.
    pub fn stop_profile(&self) -> RmResult<()> {
        self.profile.check_on()?;
        self.finish_all();
        self.report_finished();
        self.profile.stop()?;
        self.each_queue(Queue::record_no_more);
        Ok(())
    }

    /// Reports the work that has finished, if a profile runs.
    fn report_finished(&self) {
        if self.profile.is_on() {
            self.each_queue(|queue| self.profile.deliver(queue));
        }
    }

    /// The memory for time stamps.
    pub fn stamps(&self) -> &Arc<Stamps> {
        &self.stamps
    }

    /// Whether the work of a fence has finished, or never will because a fault stopped its queue.
    pub fn has_passed(&self, fence: u64) -> bool {
        !matches!(self.queue(fence), Ok(Some(queue)) if !queue.is_over(split(fence).1))
    }

    /// The fence of all work that the device's own queue has so far.
    pub fn fence(&self) -> u64 {
        self.own.fence()
    }

    /// Waits for a fence. Without a deadline the wait has no limit.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_ARGUMENT` for a fence that was never given out, the channel's fault as soon as there is one, and
    /// `NV_ERR_TIMEOUT` with the work that is pending.
    pub fn wait(&self, fence: u64, deadline: Option<Duration>) -> RmResult<()> {
        let waited = self.queue(fence)?.map_or(Ok(()), |queue| queue.wait(split(fence).1, deadline));
        self.print();
        waited?;
        self.retired.give_back_own(|fence| self.has_passed(fence));
        self.report_finished();
        Ok(())
    }

    /// Waits for all work that the device's queues have so far.
    ///
    /// # Errors
    /// The fault of a channel.
    pub fn synchronize(&self) -> RmResult<()> {
        self.wait(self.fence(), None)?;
        self.queues.all().iter().try_for_each(|queue| self.wait(queue.fence(), None))
    }

    /// Waits for all work before the device is closed. Work that takes longer than `deadline` ends with its channel,
    /// and dropping a buffer or a module then does not wait for it.
    pub fn settle(&self, deadline: Duration) {
        if self.given_up.load(Ordering::Relaxed) {
            return;
        }
        self.each_queue(|queue| {
            if let Err(e) = self.wait(queue.fence(), Some(deadline)) {
                tracing::warn!("closing a device whose work has not finished: {e}");
                self.given_up.store(true, Ordering::Relaxed);
            }
        });
    }

    /// Waits until the GPU does not use memory of any queue's work any more, as [`Device::finish`] does.
    pub fn finish_all(&self) {
        self.each_queue(|queue| self.finish(queue.fence()));
    }

    /// Waits until the GPU does not use memory of the submission `fence` any more. If a fault stops the channel, this
    /// returns at once, because a stopped channel uses no memory.
    pub fn finish(&self, fence: u64) {
        if !self.given_up.load(Ordering::Relaxed) {
            let _ = self.wait(fence, None);
        }
    }

    /// The fault that stopped the device. It is `None` while the device works.
    ///
    /// # Errors
    /// An error that RM gives for the records of the SMs.
    pub fn fault(&self) -> RmResult<Option<FaultInfo>> {
        if let Some(fault) = self.own.fault()? {
            return Ok(Some(fault));
        }
        self.queues.all().iter().find_map(|queue| queue.fault().transpose()).transpose()
    }

    /// Stops queues that have not finished their work, as a fault does. Returns the number of these queues.
    ///
    /// # Errors
    /// An error that RM gives. The call can be repeated.
    pub fn stop(&self) -> RmResult<usize> {
        let mut stopped = usize::from(self.own.stop(&self.base)?);
        for queue in self.queues.all() {
            stopped += usize::from(queue.stop(&self.base)?);
        }
        Ok(stopped)
    }

    /// Makes queues work again that a fault stopped. Everything is kept except the work that they had not finished.
    /// Returns the number of these queues.
    ///
    /// # Errors
    /// An error that RM gives. The call can be repeated.
    pub fn recover(&self) -> RmResult<usize> {
        let mut recovered = usize::from(self.own.recover(&self.base)?);
        for queue in self.queues.all() {
            recovered += usize::from(queue.recover(&self.base)?);
        }
        if recovered > 0 {
            self.tidy_up()?;
        }
        self.free_retired();
        Ok(recovered)
    }

    /// The number of blocks of a launch that all SMs together can run at the same time.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_ARGUMENT` for a launch that the GPU cannot run, with the numbers.
    pub fn blocks_at_once(&self, kernel: &Kernel, launch: &Launch) -> RmResult<u32> {
        let limits = &self.base.context().limits;
        let local = kernel.local_memory();
        launch.check(kernel, limits, local).map_err(|e| refused(kernel, e))?;
        Ok(launch.blocks_at_once(kernel, limits) * self.profile().compute_units)
    }

    /// Refuses a cooperative launch, whose blocks wait for each other, if they cannot all run at the same time.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_ARGUMENT` with the numbers.
    pub fn check_cooperative(&self, kernel: &Kernel, launch: &Launch) -> RmResult<()> {
        let most = self.blocks_at_once(kernel, launch)?;
        let (blocks, sms) = (launch.grid.count(), self.profile().compute_units);
        if blocks > u64::from(most) {
            return Err(refused(kernel, LaunchError::Cooperative { blocks, sms, each: most / sms }));
        }
        Ok(())
    }

    /// The RM objects of the device.
    pub fn session(&self) -> &Arc<Session> {
        self.base.session()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // Work in flight must not continue when its memory is freed. A stopped channel has no work in flight.
        self.settle(CLOSE_DEADLINE);
        // This happens before the channels end, because all work counts as finished afterwards.
        self.host_thread.close();
        self.notifier_thread.close();
    }
}

/// The time for which closing a device, or ending a replay, waits for work in flight.
pub const CLOSE_DEADLINE: Duration = Duration::from_secs(10);
