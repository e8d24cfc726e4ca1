//! A GPU as a program sees it: buffers, modules, launches, copies, fences.
//!
//! All work of a device runs in the order it was given. Every method may be called from any thread.

use super::commands::Engine;
use super::cubin::{Cubin, Kernel};
use super::fault::FaultInfo;
use super::fault::Watch;
use super::launch::{Launch, Limits};
use super::memory::{Cache, Memory};
use super::params::{self, Windows};
use super::qmd;
use super::queue::{Queue, Timeline};
use super::session::Session;
use crate::rm::Rm;
use crate::rm::profile::Profile;
use crate::status::{During, RmError, RmResult, fail};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tegrarm_abi::rm::classes::{AMPERE_COMPUTE_B, AMPERE_DMA_COPY_B};
use tegrarm_abi::rm::status::*;

/// Local memory per thread every device starts with.
const FIRST_LOCAL: u32 = 0x400;
const WARPS_PER_SM: u64 = 48;
const SMS_PER_TPC: u64 = 2;
const WARP: u64 = 32;
/// The copy engine's length field has 32 bits; pieces stay whole pages.
const COPY_PIECE: u64 = 1 << 30;

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
    session: Arc<Session>,
    profile: Profile,
    limits: Limits,
    windows: Windows,
}

/// A buffer of a device; freed with its last handle.
pub struct Buffer {
    device: Arc<Device>,
    memory: Memory,
}

/// A loaded module.
pub struct Module {
    device: Arc<Device>,
    cubin: Cubin,
    memory: Memory,
}

/// A kernel of a loaded module.
#[derive(Clone)]
pub struct KernelRef {
    module: Arc<Module>,
    index: usize,
}

impl Device {
    /// Opens GPU `index`.
    ///
    /// # Errors
    /// What RM says; nothing stays behind.
    pub fn open(rm: &Arc<Rm>, index: u32) -> RmResult<Arc<Device>> {
        let profile = rm.device_profile(index)?;
        let session = Arc::new(Session::open(rm).during(|| format!("opening device {index}"))?);
        let mut queue = Queue::open(&session)?;
        let sms = profile.compute_units;
        let windows = Windows { shared: profile.shared_window, local: profile.local_window, sm_count: sms };
        let slot = queue.reserve(0)?;
        let mut start = queue.begin(Engine::Compute);
        start.set_object(Engine::Compute, AMPERE_COMPUTE_B).windows(windows.shared, windows.local);
        start.set_object(Engine::Copy, AMPERE_DMA_COPY_B);
        queue.submit(&slot, start)?;
        let arena = local_memory(&session, &mut queue, FIRST_LOCAL, sms)?;
        let limits = Limits { shared: profile.shared_mem_size + 1024, ..Limits::ORIN };
        Ok(Arc::new(Device {
            timeline: queue.timeline().clone(),
            watch: queue.watch().clone(),
            last: AtomicU64::new(queue.last()),
            work: Mutex::new(Work { queue, local: FIRST_LOCAL, arena }),
            session,
            profile,
            limits,
            windows,
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

    /// Allocates a zeroed buffer.
    ///
    /// # Errors
    /// As [`Memory::new`].
    pub fn alloc(self: &Arc<Device>, size: u64, cache: Cache) -> RmResult<Arc<Buffer>> {
        let memory = Memory::new(&self.session, size, cache).during(|| format!("a buffer of {size} bytes"))?;
        Ok(Arc::new(Buffer { device: self.clone(), memory }))
    }

    /// Loads a cubin.
    ///
    /// # Errors
    /// 0x1F and the loader's sentence for a bad file; what RM says.
    pub fn load(self: &Arc<Device>, image: &[u8]) -> RmResult<Arc<Module>> {
        let bad = |e: super::elf::LoadError| RmError::new(NV_ERR_INVALID_ARGUMENT, format!("loading a module: {e}"));
        let cubin = Cubin::parse(image, capability(self.profile.sm_version)).map_err(bad)?;
        let memory = Memory::new(&self.session, cubin.memory_size(), Cache::WriteCombined)?;
        let bytes = cubin.place(memory.va()).map_err(bad)?;
        memory.write(0, &bytes)?;
        Ok(Arc::new(Module { device: self.clone(), cubin, memory }))
    }

    /// Launches a kernel. `arguments` is the block of arguments, laid out as the parameters are. Returns the fence.
    ///
    /// # Errors
    /// 0x1F for a launch the GPU cannot run or arguments of the wrong size, with the numbers; the channel's fault.
    pub fn launch(&self, kernel: &KernelRef, launch: &Launch, arguments: &[u8]) -> RmResult<u64> {
        let k = kernel.kernel();
        let refused = |e: super::launch::LaunchError| {
            RmError::new(NV_ERR_INVALID_ARGUMENT, format!("launching '{}': {e}", k.name))
        };
        self.watch.check()?;
        let module = kernel.module.memory.va();
        let bank = params::bank(k, module, launch, &self.windows, arguments).map_err(refused)?;
        let mut work = self.work.lock();
        if k.local_memory() > work.local {
            self.grow_local(&mut work, k.local_memory())?;
        }
        let local_memory = work.local;
        let slot = work.queue.reserve(QMD_BYTES + bank.len() as u64)?;
        let place = qmd::Place { module, bank: slot.data + QMD_BYTES, bank_size: bank.len() as u32, local_memory };
        let sass = self.profile.sm_version;
        let sass = (sass >> 4 & 0xf0 | sass & 0xf) as u8;
        let qmd = qmd::build(k, launch, &place, &self.limits, sass).map_err(refused)?;
        work.queue.fill(&slot, 0, zerocopy::IntoBytes::as_bytes(&qmd[..]))?;
        work.queue.fill(&slot, QMD_BYTES, &bank)?;
        let mut commands = work.queue.begin(Engine::Compute);
        commands.launch(slot.data);
        self.submit(&mut work, &slot, commands)
    }

    /// Copies between buffers on the GPU. Returns the fence.
    ///
    /// # Errors
    /// 0x20 when a range lies outside its buffer, 0x1F when the ranges overlap; the channel's fault.
    pub fn copy(&self, to: &Buffer, to_offset: u64, from: &Buffer, from_offset: u64, size: u64) -> RmResult<u64> {
        to.memory.check(to_offset, size)?;
        from.memory.check(from_offset, size)?;
        let (mut from, mut to) = (from.memory.va() + from_offset, to.memory.va() + to_offset);
        if from < to + size && to < from + size {
            fail!(NV_ERR_INVALID_ARGUMENT, "copying {size:#x} bytes from {from:#x} to {to:#x}: the ranges overlap");
        }
        self.watch.check()?;
        let mut work = self.work.lock();
        let mut fence = work.queue.last();
        let mut left = size;
        while left > 0 {
            let piece = left.min(COPY_PIECE);
            let slot = work.queue.reserve(0)?;
            let mut commands = work.queue.begin(Engine::Copy);
            commands.copy(from, to, piece as u32);
            fence = self.submit(&mut work, &slot, commands)?;
            (from, to, left) = (from + piece, to + piece, left - piece);
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
        self.watch.wait(&self.timeline, fence, deadline, last)
    }

    /// Waits for everything given so far.
    ///
    /// # Errors
    /// The channel's fault.
    pub fn synchronize(&self) -> RmResult<()> {
        self.wait(self.fence(), None)
    }

    /// What stopped the device; `None` while it works.
    ///
    /// # Errors
    /// What RM says when it is asked for the SMs' records.
    pub fn fault(&self) -> RmResult<Option<FaultInfo>> {
        self.watch.fault()
    }

    fn submit(&self, work: &mut Work, slot: &super::queue::Slot, commands: super::commands::Commands) -> RmResult<u64> {
        let fence = work.queue.submit(slot, commands)?;
        self.last.store(fence, Ordering::Release);
        Ok(fence)
    }

    /// More local memory for each thread: after everything before has finished, since it may use the old.
    fn grow_local(&self, work: &mut Work, needed: u32) -> RmResult<()> {
        self.watch.wait(&self.timeline, work.queue.last(), None, work.queue.last())?;
        let local = needed.next_power_of_two();
        let arena = local_memory(&self.session, &mut work.queue, local, self.profile.compute_units)?;
        self.last.store(work.queue.last(), Ordering::Release);
        (work.arena, work.local) = (arena, local);
        Ok(())
    }
}

const QMD_BYTES: u64 = qmd::DWORDS as u64 * 4;

/// Gives the GPU memory for `local` bytes per thread, as its units take it: warps in 512 bytes, TPCs in 32 KiB.
fn local_memory(session: &Arc<Session>, queue: &mut Queue, local: u32, sms: u32) -> RmResult<Memory> {
    let per_warp = (u64::from(local) * WARP).next_multiple_of(512);
    let per_tpc = (per_warp * WARPS_PER_SM * SMS_PER_TPC).next_multiple_of(32 << 10);
    let total = (per_tpc * u64::from(sms).div_ceil(SMS_PER_TPC)).next_multiple_of(128 << 10);
    let arena = Memory::new(session, total, Cache::WriteCombined)
        .during(|| format!("local memory of {local} bytes for each thread"))?;
    let slot = queue.reserve(0)?;
    let mut commands = queue.begin(Engine::Compute);
    commands.local_memory(arena.va(), per_tpc);
    queue.submit(&slot, commands)?;
    Ok(arena)
}

impl Drop for Device {
    fn drop(&mut self) {
        // Work in flight must not outlive the memory it uses; a stopped channel has none.
        let arena = self.work.get_mut().arena.va();
        if let Err(e) = self.wait(self.fence(), Some(CLOSE_DEADLINE)) {
            tracing::warn!("closing a device whose work has not finished (local memory at {arena:#x}): {e}");
        }
    }
}

/// How long closing waits for work in flight.
const CLOSE_DEADLINE: Duration = Duration::from_secs(10);

impl Buffer {
    /// The device it belongs to.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Its GPU address.
    pub fn address(&self) -> u64 {
        self.memory.va()
    }

    /// Its CPU address.
    pub fn pointer(&self) -> usize {
        self.memory.cpu()
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.memory.len()
    }

    /// Waits for the GPU, then gives the CPU address of a range. It stays valid as long as the buffer.
    ///
    /// # Errors
    /// 0x20 when the range lies outside; the channel's fault.
    pub fn ready(&self, offset: u64, size: u64) -> RmResult<usize> {
        self.memory.check(offset, size)?;
        self.device.synchronize()?;
        Ok(self.memory.cpu() + offset as usize)
    }

    /// Waits for the GPU, then copies bytes in.
    ///
    /// # Errors
    /// 0x20 when they do not fit; the channel's fault.
    pub fn write(&self, offset: u64, from: &[u8]) -> RmResult<()> {
        self.memory.check(offset, from.len() as u64)?;
        self.device.synchronize()?;
        self.memory.write(offset, from)
    }

    /// Waits for the GPU, then copies bytes out.
    ///
    /// # Errors
    /// 0x20 when there are not as many; the channel's fault.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> RmResult<()> {
        self.memory.check(offset, into.len() as u64)?;
        self.device.synchronize()?;
        self.memory.read(offset, into)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // The GPU may still use it. A fault ends the wait, and then it does not.
        let _ = self.device.synchronize();
    }
}

impl Module {
    /// The device it is loaded on.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The kernel of a name.
    ///
    /// # Errors
    /// 0x57 with the names there are.
    pub fn kernel(self: &Arc<Module>, name: &str) -> RmResult<KernelRef> {
        let kernels = self.cubin.kernels();
        match kernels.iter().position(|k| k.name == name) {
            Some(index) => Ok(KernelRef { module: self.clone(), index }),
            None => {
                let names: Vec<&str> = kernels.iter().map(|k| k.name.as_str()).collect();
                fail!(NV_ERR_OBJECT_NOT_FOUND, "the module has no kernel '{name}', only: {}", names.join(", "))
            }
        }
    }

    /// GPU address and size of a `__device__` or `__constant__` variable.
    ///
    /// # Errors
    /// 0x57 when there is none of that name.
    pub fn variable(&self, name: &str) -> RmResult<(u64, u64)> {
        match self.cubin.variable(name) {
            Some(v) => Ok((self.memory.va() + v.offset, v.size)),
            None => fail!(NV_ERR_OBJECT_NOT_FOUND, "the module has no variable '{name}'"),
        }
    }

    /// Waits for the GPU, then copies bytes into a variable.
    ///
    /// # Errors
    /// As [`Module::variable`] and [`Buffer::write`].
    pub fn write_variable(&self, name: &str, bytes: &[u8]) -> RmResult<()> {
        let (at, size) = self.variable(name)?;
        if bytes.len() as u64 > size {
            fail!(NV_ERR_INVALID_BASE, "{} bytes for the variable '{name}' of {size}", bytes.len());
        }
        self.device.synchronize()?;
        self.memory.write(at - self.memory.va(), bytes)
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        let _ = self.device.synchronize();
    }
}

impl KernelRef {
    /// Its description.
    pub fn kernel(&self) -> &Kernel {
        &self.module.cubin.kernels()[self.index]
    }

    /// The module it belongs to.
    pub fn module(&self) -> &Arc<Module> {
        &self.module
    }
}
