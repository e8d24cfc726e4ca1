//! A GPU as a program sees it: modules, launches, fences. Its buffers: [`super::buffer`].
//!
//! All work of a device runs in the order it was given. Every method may be called from any thread.

use super::buffer::Transfer;
use super::commands::Engine;
use super::cubin::Kernel;
use super::cubin::kernel::STACK_RESERVE;
use super::fault::{FaultInfo, Watch};
use super::heap::Heap;
use super::launch::{Launch, LaunchError, Limits};
use super::memory::{Cache, Doorbell, Memory, Span};
use super::module::{KernelRef, Module};
use super::params::Windows;
use super::prepared::Context;
use super::queue::{Queue, Timeline};
use super::ready::Ready;
use super::session::Session;
use crate::rm::Rm;
use crate::rm::profile::Profile;
use crate::status::{During, RmError, RmResult, fail};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tegrarm_abi::rm::classes::{AMPERE_COMPUTE_B, AMPERE_DMA_COPY_B};
use tegrarm_abi::rm::ctrl_2080::*;
use tegrarm_abi::rm::status::*;
use zerocopy::FromZeros;

/// Local memory per thread every device starts with.
pub const FIRST_LOCAL: u32 = 0x400;
/// Whole warps of it are whole pieces of 512 bytes, as the GPU takes them.
const LOCAL_UNIT: u32 = 32;
/// The descriptor's field has 24 bits.
const MOST_LOCAL: u32 = (1 << 24) - LOCAL_UNIT;
/// The most stack a thread can have.
pub const MOST_STACK: u32 = MOST_LOCAL - STACK_RESERVE;
const WARPS_PER_SM: u64 = 48;
const SMS_PER_TPC: u64 = 2;
const WARP: u64 = 32;

/// The compute capability of an SM version (`0x807` is 87), as cubins say it.
fn capability(sm_version: u32) -> u32 {
    (sm_version >> 8) * 10 + (sm_version & 0xff)
}

/// What the queue's lock guards.
struct Work {
    queue: Queue,
    /// Local memory per thread, and the memory behind it.
    local: u32,
    arena: Memory,
}

/// An open GPU.
pub struct Device {
    /// Declared first: the channel goes before the memory it uses.
    work: Mutex<Work>,
    timeline: Arc<Timeline>,
    watch: Arc<Watch>,
    last: AtomicU64,
    /// Closing the device has waited for long enough. From now on nothing waits for the device's work.
    given_up: AtomicBool,
    /// Memory of buffers that were freed while work that may use it had not finished, and the fence of that work.
    retired: Mutex<Vec<(u64, Arc<Memory>)>>,
    /// How many there are.
    waiting: AtomicUsize,
    doorbell: Arc<Doorbell>,
    code: Arc<Heap>,
    session: Arc<Session>,
    profile: Profile,
    context: Context,
}

impl Device {
    /// Opens GPU `index`.
    ///
    /// # Errors
    /// What RM says; nothing stays behind.
    pub fn open(rm: &Arc<Rm>, index: u32) -> RmResult<Arc<Device>> {
        let profile = rm.device_profile(index)?;
        let session = Arc::new(Session::open(rm).during(|| format!("opening device {index}"))?);
        let doorbell = Arc::new(Doorbell::map(&session)?);
        let mut queue = Queue::open(&session, &doorbell)?;
        let sms = profile.compute_units;
        let windows = Windows { shared: profile.shared_window, local: profile.local_window, sm_count: sms };
        set_up(&mut queue, &windows)?;
        let arena = local_memory(&session, &mut queue, FIRST_LOCAL, sms)?;
        let sass = profile.sm_version;
        let context = Context {
            limits: Limits { shared: profile.shared_mem_size + 1024, ..Limits::ORIN },
            windows,
            sass_version: (sass >> 4 & 0xf0 | sass & 0xf) as u8,
        };
        Ok(Arc::new(Device {
            timeline: queue.timeline().clone(),
            watch: queue.watch().clone(),
            last: AtomicU64::new(queue.last()),
            given_up: AtomicBool::new(false),
            retired: Mutex::default(),
            waiting: AtomicUsize::new(0),
            work: Mutex::new(Work { queue, local: FIRST_LOCAL, arena }),
            doorbell,
            code: Heap::new(&session),
            session,
            profile,
            context,
        }))
    }

    /// What the GPU is.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The manager it was opened with.
    pub fn rm(&self) -> &Arc<Rm> {
        self.session.rm()
    }

    /// Makes memory; when there is none, once more after what was retired is free.
    ///
    /// # Errors
    /// What `make` says.
    pub(super) fn remember<T>(&self, make: impl Fn() -> RmResult<T>) -> RmResult<T> {
        self.bury();
        match make() {
            Err(e) if e.status == NV_ERR_NO_MEMORY && self.has_retired() => {
                self.finish(self.fence());
                self.bury();
                make()
            }
            made => made,
        }
    }

    /// Frees memory as soon as the work that the device was given before has finished, and now if it has.
    pub(super) fn retire(&self, memory: Arc<Memory>) {
        let fence = self.fence();
        if memory.is_borrowed() {
            self.finish(fence);
        } else if self.timeline.completed() < fence && !self.watch.is_stopped() {
            self.retired.lock().push((fence, memory));
            self.waiting.fetch_add(1, Ordering::Relaxed);
        }
        self.bury();
    }

    fn has_retired(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Frees what was retired and is not used any more.
    fn bury(&self) {
        if !self.has_retired() {
            return;
        }
        let (done, stopped) = (self.timeline.completed(), self.watch.is_stopped());
        let gone: Vec<_> = self.retired.lock().extract_if(.., |(fence, _)| stopped || *fence <= done).collect();
        self.waiting.fetch_sub(gone.len(), Ordering::Relaxed);
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
        self.session.control(self.session.subdevice, NV2080_CTRL_CMD_FB_GET_INFO_V2, &mut p)?;
        let kib = |at: usize| u64::from(u32::from_le_bytes([0, 1, 2, 3].map(|i| p.fbInfoList[8 * at + 4 + i])));
        Ok((kib(0) << 10, kib(1) << 10))
    }

    /// Loads a cubin.
    ///
    /// # Errors
    /// 0x1F and the loader's sentence for a bad file; what RM says.
    pub fn load(self: &Arc<Device>, image: &[u8]) -> RmResult<Arc<Module>> {
        Module::load(self, image, capability(self.profile.sm_version))
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
    /// 0x1F for a launch the GPU cannot run, with the numbers; what `fill` says; the channel's fault; as [`Ready::launch`].
    #[inline(always)]
    pub fn launch_ready(
        &self,
        module: &Module,
        index: usize,
        ready: &mut Ready,
        launch: &Launch,
        fill: impl FnOnce(&Span) -> RmResult<()>,
    ) -> RmResult<u64> {
        self.watch.check()?;
        let mut work = self.work.lock();
        if !ready.is_for(launch, work.local) {
            self.make_ready(module.kernel_at(index), module.address(), ready, launch, &mut work)?;
        }
        let fence = ready.launch(&self.code, &mut work.queue, fill)?;
        self.last.store(fence, Ordering::Release);
        Ok(fence)
    }

    #[cold]
    fn make_ready(
        &self,
        kernel: &Kernel,
        at: u64,
        ready: &mut Ready,
        launch: &Launch,
        work: &mut Work,
    ) -> RmResult<()> {
        if kernel.local_memory() > work.local {
            self.grow_local(work, kernel.local_memory())?;
        }
        ready.make(kernel, at, *launch, work.local, &self.context).map_err(|e| refused(kernel, e))
    }

    /// Gives the copy engine work in pieces that it can take. Returns the fence.
    pub(super) fn transfer(&self, pieces: impl Iterator<Item = Transfer>) -> RmResult<u64> {
        self.watch.check()?;
        let mut work = self.work.lock();
        let mut fence = work.queue.last();
        for piece in pieces {
            fence = work.queue.submit(Engine::Copy, |commands| piece.put(commands))?;
            self.last.store(fence, Ordering::Release);
        }
        Ok(fence)
    }

    /// The fence of everything given so far.
    pub fn fence(&self) -> u64 {
        self.last.load(Ordering::Acquire)
    }

    /// Waits for a fence; without a deadline for as long as it takes.
    ///
    /// # Errors
    /// 0x1F for a fence that was never given; the channel's fault, at once; `NV_ERR_TIMEOUT` with what is pending.
    pub fn wait(&self, fence: u64, deadline: Option<Duration>) -> RmResult<()> {
        let last = self.fence();
        if fence > last {
            fail!(NV_ERR_INVALID_ARGUMENT, "fence {fence} was never given: the last one is {last}");
        }
        self.watch.wait(&self.timeline, fence, deadline, last)?;
        self.bury();
        Ok(())
    }

    /// Waits for everything given so far.
    ///
    /// # Errors
    /// The channel's fault.
    pub fn synchronize(&self) -> RmResult<()> {
        self.wait(self.fence(), None)
    }

    /// Waits for everything given so far, before the device is closed. Work that takes longer than `deadline` is given up: it
    /// ends with the channel, and dropping a buffer or a module does not wait for it.
    pub fn settle(&self, deadline: Duration) {
        if self.given_up.load(Ordering::Relaxed) {
            return;
        }
        if let Err(e) = self.wait(self.fence(), Some(deadline)) {
            tracing::warn!("closing a device whose work has not finished: {e}");
            self.given_up.store(true, Ordering::Relaxed);
        }
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
        self.watch.fault()
    }

    /// Bytes of stack that each thread has.
    pub fn stack(&self) -> u32 {
        self.work.lock().local - STACK_RESERVE
    }

    /// Bytes of local memory that each thread has.
    pub fn local_memory(&self) -> u32 {
        self.work.lock().local
    }

    /// Gives each thread at least this many bytes of stack, after everything before has finished.
    ///
    /// # Errors
    /// 0x1F for more than a thread can have, 0x51 when there is not that much memory; the channel's fault.
    pub fn set_stack(&self, bytes: u64) -> RmResult<()> {
        if bytes > u64::from(MOST_STACK) {
            fail!(NV_ERR_INVALID_ARGUMENT, "a stack of {bytes} bytes: a thread has at most {MOST_STACK}");
        }
        self.watch.check()?;
        let local = (bytes as u32 + STACK_RESERVE).next_multiple_of(LOCAL_UNIT).max(FIRST_LOCAL);
        let mut work = self.work.lock();
        if work.local == local {
            return Ok(());
        }
        self.replace_local(&mut work, local)
    }

    /// Blocks of a launch that all SMs together run at the same time.
    ///
    /// # Errors
    /// 0x1F for a launch the GPU cannot run, with the numbers.
    pub fn blocks_at_once(&self, kernel: &Kernel, launch: &Launch) -> RmResult<u32> {
        let limits = &self.context.limits;
        let local = kernel.local_memory();
        launch.check(kernel, limits, local).map_err(|e| refused(kernel, e))?;
        Ok(launch.blocks_at_once(kernel, limits) * self.profile.compute_units)
    }

    /// Refuses a launch whose blocks cannot all run at the same time.
    ///
    /// # Errors
    /// 0x1F with the numbers.
    pub fn check_together(&self, kernel: &Kernel, launch: &Launch) -> RmResult<()> {
        let most = self.blocks_at_once(kernel, launch)?;
        let (blocks, sms) = (launch.grid.count(), self.profile.compute_units);
        if blocks > u64::from(most) {
            return Err(refused(kernel, LaunchError::Together { blocks, sms, each: most / sms }));
        }
        Ok(())
    }

    /// What every launch has in common.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Progress of its channel.
    pub fn timeline(&self) -> &Arc<Timeline> {
        &self.timeline
    }

    /// Memory for machine code.
    pub fn code(&self) -> &Arc<Heap> {
        &self.code
    }

    /// The doorbell of all its channels.
    pub fn doorbell(&self) -> &Arc<Doorbell> {
        &self.doorbell
    }

    /// The RM objects it lives on.
    pub fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// More local memory for each thread: after everything before has finished, since it may use the old.
    fn grow_local(&self, work: &mut Work, needed: u32) -> RmResult<()> {
        self.replace_local(work, needed.next_power_of_two().min(MOST_LOCAL))
    }

    fn replace_local(&self, work: &mut Work, local: u32) -> RmResult<()> {
        self.watch.wait(&self.timeline, work.queue.last(), None, work.queue.last())?;
        let arena = local_memory(&self.session, &mut work.queue, local, self.profile.compute_units)?;
        self.last.store(work.queue.last(), Ordering::Release);
        (work.arena, work.local) = (arena, local);
        Ok(())
    }
}

/// The error of a launch that cannot be.
#[cold]
pub fn refused(kernel: &Kernel, e: LaunchError) -> RmError {
    RmError::new(NV_ERR_INVALID_ARGUMENT, format!("launching '{}': {e}", kernel.name))
}

/// The first words of a channel: its engines, and where kernels find shared and local memory.
///
/// # Errors
/// The channel's fault.
pub fn set_up(queue: &mut Queue, windows: &Windows) -> RmResult<()> {
    queue.submit(Engine::Compute, |commands| {
        commands.set_object(Engine::Compute, AMPERE_COMPUTE_B).windows(windows.shared, windows.local);
        commands.set_object(Engine::Copy, AMPERE_DMA_COPY_B);
    })?;
    Ok(())
}

/// Gives the GPU memory for `local` bytes per thread, as its units take it: warps in 512 bytes, TPCs in 32 KiB.
pub fn local_memory(session: &Arc<Session>, queue: &mut Queue, local: u32, sms: u32) -> RmResult<Memory> {
    let per_warp = (u64::from(local) * WARP).next_multiple_of(512);
    let per_tpc = (per_warp * WARPS_PER_SM * SMS_PER_TPC).next_multiple_of(32 << 10);
    let total = (per_tpc * u64::from(sms).div_ceil(SMS_PER_TPC)).next_multiple_of(128 << 10);
    let arena = Memory::new(session, total, Cache::WriteCombined)
        .during(|| format!("local memory of {local} bytes for each thread"))?;
    queue.submit(Engine::Compute, |commands| {
        commands.local_memory(arena.va(), per_tpc);
    })?;
    Ok(arena)
}

impl Drop for Device {
    fn drop(&mut self) {
        // Work in flight must not outlive the memory it uses; a stopped channel has none.
        self.settle(CLOSE_DEADLINE);
    }
}

/// How long closing a device, or ending a replay, waits for work in flight.
pub const CLOSE_DEADLINE: Duration = Duration::from_secs(10);
