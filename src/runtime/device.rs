//! A GPU as a program sees it: modules, launches, fences. Its buffers: [`super::buffer`].
//!
//! All work of a queue runs in the order it was given; queues know nothing of each other. Every method may be called from any
//! thread.

use super::base::{Base, refused};
use super::buffer::Transfer;
use super::cubin::Kernel;
use super::cubin::kernel::STACK_RESERVE;
use super::fault::{FaultInfo, Probe};
use super::follow_up::FollowUp;
use super::lane::{FIRST_LOCAL, LOCAL_UNIT, Lane, MOST_LOCAL, split};
use super::lanes::{Found, Lanes};
use super::launch::{Launch, LaunchError};
use super::memory::{Memory, Span};
use super::module::{KernelRef, Module};
use super::profiling::{Profiling, Report};
use super::queue::Plan;
use super::ready::Ready;
use super::session::Session;
use super::stamps::Stamps;
use crate::rm::Rm;
use crate::rm::profile::Profile;
use crate::status::{RmResult, fail};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tegrarm_abi::rm::ctrl_2080::*;
use tegrarm_abi::rm::status::*;
use zerocopy::FromZeros;

/// The most stack a thread can have.
pub const MOST_STACK: u32 = MOST_LOCAL - STACK_RESERVE;

/// The compute capability of an SM version (`0x807` is 87), as cubins say it.
fn capability(sm_version: u32) -> u32 {
    (sm_version >> 8) * 10 + (sm_version & 0xff)
}

/// An open GPU.
pub struct Device {
    /// Declared first: its channel goes before the memory it uses.
    own: Lane,
    lanes: Lanes,
    /// Tells who asked when a fence has passed.
    herald: FollowUp,
    /// Copies what the CPU copies in between the work of the GPU.
    porter: FollowUp,
    /// Closing the device has waited for long enough. From now on nothing waits for the device's work.
    given_up: AtomicBool,
    /// Memory of buffers that were freed while work that may use it had not finished, and the fences of that work.
    retired: Mutex<Vec<(Vec<u64>, Arc<Memory>)>>,
    /// How many there are.
    waiting: AtomicUsize,
    stamps: Arc<Stamps>,
    profile: Profiling,
    base: Base,
}

impl Device {
    /// Opens GPU `index`.
    ///
    /// # Errors
    /// What RM says; nothing stays behind.
    pub fn open(rm: &Arc<Rm>, index: u32) -> RmResult<Arc<Device>> {
        let base = Base::open(rm, index)?;
        Ok(Arc::new(Device {
            own: Lane::open(&base, 0, Plan::PLAIN, FIRST_LOCAL)?,
            lanes: Lanes::new(),
            herald: FollowUp::new("tegrarm-herald"),
            porter: FollowUp::new("tegrarm-porter"),
            given_up: AtomicBool::new(false),
            retired: Mutex::default(),
            waiting: AtomicUsize::new(0),
            stamps: Stamps::new(base.session()),
            profile: Profiling::default(),
            base,
        }))
    }

    /// What the GPU is.
    pub fn profile(&self) -> &Profile {
        self.base.profile()
    }

    /// The manager it was opened with.
    pub fn rm(&self) -> &Arc<Rm> {
        self.session().rm()
    }

    /// Makes memory; when there is none, once more after what was retired is free.
    ///
    /// # Errors
    /// What `make` says.
    pub(super) fn remember<T>(&self, make: impl Fn() -> RmResult<T>) -> RmResult<T> {
        self.bury();
        match make() {
            Err(e) if e.status == NV_ERR_NO_MEMORY && self.has_retired() => {
                self.finish_all();
                self.bury();
                make()
            }
            made => made,
        }
    }

    /// Frees memory as soon as the work that the device was given before has finished, and now if it has.
    pub(super) fn retire(&self, memory: Arc<Memory>) {
        if memory.is_borrowed() {
            self.finish_all();
        } else if let pending = self.pending()
            && !pending.is_empty()
        {
            self.retired.lock().push((pending, memory));
            self.waiting.fetch_add(1, Ordering::Relaxed);
        }
        self.bury();
    }

    /// Calls `look` with each queue.
    fn each_lane(&self, mut look: impl FnMut(&Lane)) {
        look(&self.own);
        self.lanes.all().iter().for_each(|lane| look(lane));
    }

    /// The fences of everything that was given and is not over.
    fn pending(&self) -> Vec<u64> {
        let mut pending = Vec::new();
        self.each_lane(|lane| pending.extend((!lane.is_over(lane.last())).then(|| lane.fence())));
        pending
    }

    fn has_retired(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Frees what was retired and is not used any more.
    fn bury(&self) {
        if !self.has_retired() {
            return;
        }
        let mut retired = self.retired.lock();
        let gone = retired.extract_if(.., |(fences, _)| fences.iter().all(|fence| self.has_passed(*fence)));
        let gone: Vec<_> = gone.collect();
        self.waiting.fetch_sub(gone.len(), Ordering::Relaxed);
        drop(retired);
        // Not under the lock: this makes kernel calls.
        drop(gone);
    }

    /// Bytes of memory that are free, and that there are: of the whole system, which the GPU shares.
    ///
    /// # Errors
    /// What RM says.
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
    /// 0x1F and the loader's sentence for a bad file; what RM says.
    pub fn load(self: &Arc<Device>, image: &[u8]) -> RmResult<Arc<Module>> {
        Module::load(self, image, capability(self.profile().sm_version))
    }

    /// Launches a kernel. `arguments` is the block of arguments, laid out as the parameters are. Returns the fence.
    ///
    /// # Errors
    /// As [`Device::launch_ready`], and 0x1F for arguments of the wrong size.
    pub fn launch(&self, kernel: &KernelRef, launch: &Launch, arguments: &[u8]) -> RmResult<u64> {
        let (found, wanted) = (arguments.len(), kernel.kernel().parameter_size);
        if found != wanted as usize {
            return Err(refused(kernel.kernel(), LaunchError::ArgumentBytes { found, wanted }));
        }
        self.launch_ready(kernel.module(), kernel.index(), &mut kernel.ready().lock(), launch, |to| {
            to.put(0, arguments);
            Ok(())
        })
    }

    /// Launches kernel `index` of `module`. `fill` writes the block of arguments. Returns the fence.
    ///
    /// # Errors
    /// As [`Lane::launch`].
    #[inline(always)]
    pub fn launch_ready(
        &self,
        module: &Module,
        index: usize,
        ready: &mut Ready,
        launch: &Launch,
        fill: impl FnOnce(&Span) -> RmResult<()>,
    ) -> RmResult<u64> {
        // The device's own queue has number 0, so that a fence is the submission's number.
        self.own.launch(&self.base, module, index, ready, launch, fill)
    }

    /// Gives the copy engine work in pieces that it can take. Returns the fence.
    pub(super) fn transfer(&self, pieces: impl Iterator<Item = Transfer>) -> RmResult<u64> {
        self.own.transfer(pieces).map(|submission| self.own.fence_of(submission))
    }

    /// The queue of a fence; `Ok(None)` when it has ended, and all its fences have passed.
    ///
    /// # Errors
    /// 0x1F when the device never had that queue.
    pub(super) fn lane(&self, fence: u64) -> RmResult<Option<Found<'_>>> {
        match split(fence).0 {
            0 => Ok(Some(Found::Own(&self.own))),
            other => Ok(self.lanes.find(other)?.map(Found::Other)),
        }
    }

    /// Whether the work of a fence has finished.
    ///
    /// # Errors
    /// 0x1F for a fence that was never given; the fault of its queue.
    pub fn query(&self, fence: u64) -> RmResult<bool> {
        self.lane(fence)?.map_or(Ok(true), |lane| lane.query(split(fence).1))
    }

    /// Looks at a fence from elsewhere.
    ///
    /// # Errors
    /// 0x1F for a fence that was never given.
    pub(super) fn probe(&self, fence: u64) -> RmResult<Probe> {
        match self.lane(fence)? {
            Some(lane) => lane.check_given(split(fence).1).map(|()| lane.probe(split(fence).1)),
            None => Ok(self.own.probe(0)),
        }
    }

    /// Its other queues.
    pub fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// Tells who asked when a fence has passed.
    pub(super) fn herald(&self) -> &FollowUp {
        &self.herald
    }

    /// Copies what the CPU copies in between the work of the GPU.
    pub(super) fn porter(&self) -> &FollowUp {
        &self.porter
    }

    /// The queue that the device was opened with.
    pub fn own(&self) -> &Lane {
        &self.own
    }

    /// What its queues share.
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// From now on `report` is called with start and end of everything that has finished, in threads that wait.
    ///
    /// # Errors
    /// 0x63 when that is so already; what RM says when it is asked for memory.
    pub fn start_profile(&self, report: Arc<Report>) -> RmResult<()> {
        self.profile.start(report)?;
        let mut made = Ok(());
        self.each_lane(|lane| {
            if made.is_ok() {
                made = lane.record(&self.base);
            }
        });
        if made.is_err() {
            self.profile.stop()?;
            self.each_lane(Lane::record_no_more);
        }
        made
    }

    /// A queue that was opened while the device is profiled is profiled too.
    pub(super) fn profile_too(&self, lane: &Lane) -> RmResult<()> {
        if self.profile.is_on() { lane.record(&self.base) } else { Ok(()) }
    }

    /// Waits for everything given so far, reports it, and reports nothing any more.
    ///
    /// # Errors
    /// 0x40 when nothing is reported.
    pub fn stop_profile(&self) -> RmResult<()> {
        self.profile.check_on()?;
        self.finish_all();
        self.report_finished();
        self.profile.stop()?;
        self.each_lane(Lane::record_no_more);
        Ok(())
    }

    /// Reports what has finished, where somebody wants to know.
    pub(super) fn report_finished(&self) {
        if self.profile.is_on() {
            self.each_lane(|lane| self.profile.deliver(lane));
        }
    }

    /// Where time stamps lie.
    pub fn stamps(&self) -> &Arc<Stamps> {
        &self.stamps
    }

    /// Whether the work of a fence has finished, or never will because a fault stopped its queue.
    pub fn has_passed(&self, fence: u64) -> bool {
        !matches!(self.lane(fence), Ok(Some(lane)) if !lane.is_over(split(fence).1))
    }

    /// The fence of everything that its own queue was given so far.
    pub fn fence(&self) -> u64 {
        self.own.fence()
    }

    /// Waits for a fence; without a deadline for as long as it takes.
    ///
    /// # Errors
    /// 0x1F for a fence that was never given; the channel's fault, at once; `NV_ERR_TIMEOUT` with what is pending.
    pub fn wait(&self, fence: u64, deadline: Option<Duration>) -> RmResult<()> {
        if let Some(lane) = self.lane(fence)? {
            lane.wait(split(fence).1, deadline)?;
        }
        self.bury();
        self.report_finished();
        Ok(())
    }

    /// Waits for everything that its queues were given so far.
    ///
    /// # Errors
    /// A channel's fault.
    pub fn synchronize(&self) -> RmResult<()> {
        self.wait(self.fence(), None)?;
        self.lanes.all().iter().try_for_each(|lane| self.wait(lane.fence(), None))
    }

    /// Waits for everything given so far, before the device is closed. Work that takes longer than `deadline` is given up: it
    /// ends with the channel, and dropping a buffer or a module does not wait for it.
    pub fn settle(&self, deadline: Duration) {
        if self.given_up.load(Ordering::Relaxed) {
            return;
        }
        self.each_lane(|lane| {
            if let Err(e) = self.wait(lane.fence(), Some(deadline)) {
                tracing::warn!("closing a device whose work has not finished: {e}");
                self.given_up.store(true, Ordering::Relaxed);
            }
        });
    }

    /// Waits until the GPU no longer uses what any of its queues used, as [`Device::finish`] does.
    pub fn finish_all(&self) {
        self.each_lane(|lane| self.finish(lane.fence()));
    }

    /// Waits until the GPU no longer uses what the submission `fence` used last. If a fault stops the channel, this
    /// returns at once, because a stopped channel uses nothing any more.
    pub fn finish(&self, fence: u64) {
        if !self.given_up.load(Ordering::Relaxed) {
            let _ = self.wait(fence, None);
        }
    }

    /// What stopped the device; `None` while it works.
    ///
    /// # Errors
    /// What RM says when it is asked for the SMs' records.
    pub fn fault(&self) -> RmResult<Option<FaultInfo>> {
        if let Some(fault) = self.own.fault()? {
            return Ok(Some(fault));
        }
        self.lanes.all().iter().find_map(|lane| lane.fault().transpose()).transpose()
    }

    /// Makes the queues that a fault stopped work again. Everything stays as it is but the work that they had not finished.
    /// Returns how many there were.
    ///
    /// # Errors
    /// What RM says. It can be tried again.
    pub fn recover(&self) -> RmResult<usize> {
        let mut recovered = usize::from(self.own.recover(&self.base)?);
        for lane in self.lanes.all() {
            recovered += usize::from(lane.recover(&self.base)?);
        }
        self.bury();
        Ok(recovered)
    }

    /// Bytes of stack that each thread has.
    pub fn stack(&self) -> u32 {
        self.own.stack()
    }

    /// Bytes of local memory that each thread has.
    pub fn local_memory(&self) -> u32 {
        self.own.local_memory()
    }

    /// Gives each thread at least this many bytes of stack, after everything before has finished.
    ///
    /// # Errors
    /// 0x1F for more than a thread can have, 0x51 when there is not that much memory; the channel's fault.
    pub fn set_stack(&self, bytes: u64) -> RmResult<()> {
        if bytes > u64::from(MOST_STACK) {
            fail!(NV_ERR_INVALID_ARGUMENT, "a stack of {bytes} bytes: a thread has at most {MOST_STACK}");
        }
        let local = (bytes as u32 + STACK_RESERVE).next_multiple_of(LOCAL_UNIT).max(FIRST_LOCAL);
        self.own.set_local(&self.base, local)?;
        self.lanes.all().iter().try_for_each(|lane| lane.set_local(&self.base, local))
    }

    /// Blocks of a launch that all SMs together run at the same time.
    ///
    /// # Errors
    /// 0x1F for a launch the GPU cannot run, with the numbers.
    pub fn blocks_at_once(&self, kernel: &Kernel, launch: &Launch) -> RmResult<u32> {
        let limits = &self.base.context().limits;
        let local = kernel.local_memory();
        launch.check(kernel, limits, local).map_err(|e| refused(kernel, e))?;
        Ok(launch.blocks_at_once(kernel, limits) * self.profile().compute_units)
    }

    /// Refuses a launch whose blocks cannot all run at the same time.
    ///
    /// # Errors
    /// 0x1F with the numbers.
    pub fn check_together(&self, kernel: &Kernel, launch: &Launch) -> RmResult<()> {
        let most = self.blocks_at_once(kernel, launch)?;
        let (blocks, sms) = (launch.grid.count(), self.profile().compute_units);
        if blocks > u64::from(most) {
            return Err(refused(kernel, LaunchError::Together { blocks, sms, each: most / sms }));
        }
        Ok(())
    }

    /// The RM objects it lives on.
    pub fn session(&self) -> &Arc<Session> {
        self.base.session()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // Work in flight must not outlive the memory it uses; a stopped channel has none.
        self.settle(CLOSE_DEADLINE);
        // Before the channels end: afterwards everything is over.
        self.porter.close();
        self.herald.close();
    }
}

/// How long closing a device, or ending a replay, waits for work in flight.
pub const CLOSE_DEADLINE: Duration = Duration::from_secs(10);
