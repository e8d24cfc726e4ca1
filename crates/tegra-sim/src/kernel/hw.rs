//! What the kernel programs into the GPU: address spaces, channel groups, channels.
//!
//! The kernel side creates these when ioctls ask for them; the GPU side ([`crate::gpu`]) only runs them. Locks
//! are held for moments, never while a kernel or a copy executes.

use crate::mm::{Backing, MmuFault, PageTable, SYNCPOINT_STRIDE};
use parking_lot::{Condvar, Mutex, RwLock};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What the kernel asks of the GPU.
pub trait GpuPort: Send + Sync {
    /// A channel is on the runlist from now on.
    fn add_channel(&self, channel: Arc<HwChannel>);

    /// The channel leaves the runlist. Returns when the GPU touches nothing of it any more.
    fn remove_channel(&self, id: u32);

    /// Watches a doorbell page: a channel's work submit token stored at offset 0x90 schedules it.
    fn watch_doorbell(&self, page: Place);

    /// Stops watching a page. Returns when the GPU touches it no more.
    fn unwatch_doorbell(&self, page: &Place);

    /// Schedules a channel as its doorbell would (kernel-mode submit, H.ENABLE, T.ENABLE).
    fn ring(&self, id: u32);

    /// Stops whatever runs for the group and returns when it has stopped (FORCE_RESET, recovery). Called after
    /// every channel of the group became unserviceable.
    fn reset(&self, tsg: &HwTsg);

    /// Waits until nothing of the group executes (preempt). Its channels may run again right after.
    fn preempt(&self, tsg: &HwTsg);

    /// The GPU's time (PTIMER), nanoseconds.
    fn time_ns(&self) -> u64;
}

/// An address space as the GPU sees it: the current page table.
#[derive(Debug, Default)]
pub struct HwSpace {
    table: RwLock<Arc<PageTable>>,
}

impl HwSpace {
    /// The mappings as of now.
    pub fn table(&self) -> Arc<PageTable> {
        self.table.read().clone()
    }

    /// Changes the mappings. Snapshots taken before keep what they show.
    pub fn update<R>(&self, change: impl FnOnce(&mut PageTable) -> R) -> R {
        change(Arc::make_mut(&mut self.table.write()))
    }
}

/// A piece of a buffer that hardware or kernel writes.
#[derive(Clone, Debug)]
pub struct Place {
    /// The memory.
    pub backing: Arc<Backing>,
    /// First byte of the piece.
    pub offset: usize,
}

/// SM error record of one SM (`nvgpu_tsg_sm_error_state_record`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmError {
    /// `hww_global_esr`.
    pub global_esr: u32,
    /// `hww_warp_esr`.
    pub warp_esr: u32,
    /// `hww_warp_esr_pc`.
    pub pc: u64,
}

/// Error notifier codes (nvgpu-rules §8.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum NotifierCode {
    /// Context switch or preempt timeout.
    IdleTimeout = 8,
    /// Copy engine fault (raw internal number).
    CopyEngine = 11,
    /// SM exception, SKED exception, class error.
    GrException = 13,
    /// PBDMA semaphore acquire timeout.
    SemaphoreTimeout = 24,
    /// Illegal method.
    IllegalMethod = 25,
    /// MMU fault.
    MmuFault = 31,
    /// PBDMA error.
    Pbdma = 32,
    /// Unimplemented firmware method.
    FirmwareMethod = 37,
    /// FORCE_RESET.
    ResetChannel = 43,
    /// Pushbuffer CRC mismatch.
    PushbufferCrc = 80,
}

/// What went wrong on the GPU: the code the notifier gets, and everything that only a kernel log would tell.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Code for the error notifier.
    pub code: NotifierCode,
    /// The MMU fault, when it is one.
    pub mmu: Option<MmuFault>,
    /// SMs with an exception and their records, the one that is in the text first.
    pub sms: Vec<(u32, SmError)>,
    /// One sentence for the log: unit, numbers, names.
    pub text: String,
}

/// Who wants to know which group has the engine.
pub trait SwitchLog: Send + Sync + std::fmt::Debug {
    /// The engine went to group `to` at a PTIMER time; `None`: nobody had it.
    fn switched(&self, from: Option<u32>, to: u32, time_ns: u64);
}

/// Something that may have come to pass when an interrupt is raised.
pub trait Expectation: Send + Sync + std::fmt::Debug {
    /// Looks; true when it has, and need not be asked again.
    fn met(&self) -> bool;
}

/// Interrupts the GPU raised, for whoever sleeps on them (H.WAIT), and its context switches.
#[derive(Debug, Default)]
pub struct Interrupts {
    count: Mutex<u64>,
    raised: Condvar,
    expected: Mutex<Vec<Weak<dyn Expectation>>>,
    switch_log: Mutex<Option<Weak<dyn SwitchLog>>>,
    /// The group that has the engine; kept while somebody logs.
    running: Mutex<Option<u32>>,
    logging: AtomicBool,
    /// Debuggers that want nothing to time out.
    patient: AtomicU32,
    /// The group whose context the engine holds, plus one; 0 = none.
    resident: AtomicU32,
}

impl Interrupts {
    /// How many there were.
    pub fn count(&self) -> u64 {
        *self.count.lock()
    }

    /// Wakes every sleeper.
    pub fn raise(&self) {
        *self.count.lock() += 1;
        self.raised.notify_all();
        self.expected.lock().retain(|e| e.upgrade().is_some_and(|e| !e.met()));
    }

    /// Looks now and at every interrupt, until it is met or gone.
    pub fn expect<E: Expectation + 'static>(&self, expectation: &Arc<E>) {
        // Entered first, so that an interrupt between looking and entering is not missed.
        let weak: Weak<dyn Expectation> = Arc::<E>::downgrade(expectation);
        self.expected.lock().push(weak);
        expectation.met();
    }

    /// From now on `log` hears of context switches, as long as it lives.
    pub fn log_switches<L: SwitchLog + 'static>(&self, log: &Arc<L>) {
        let log: Arc<dyn SwitchLog> = log.clone();
        *self.switch_log.lock() = Some(Arc::downgrade(&log));
        self.logging.store(true, Ordering::Release);
    }

    /// A debugger wants nothing to time out.
    pub fn disable_timeouts(&self) {
        self.patient.fetch_add(1, Ordering::Relaxed);
    }

    /// One debugger less wants that.
    pub fn enable_timeouts(&self) {
        self.patient.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether what takes too long is stopped.
    pub fn timeouts(&self) -> bool {
        self.patient.load(Ordering::Relaxed) == 0
    }

    /// Group `id` has used the engine, which holds its context until another one's comes.
    pub fn used_engine(&self, id: u32) {
        if self.resident.load(Ordering::Relaxed) != id + 1 {
            self.resident.store(id + 1, Ordering::Relaxed);
        }
    }

    /// The group whose context the engine holds.
    pub fn resident(&self) -> Option<u32> {
        self.resident.load(Ordering::Relaxed).checked_sub(1)
    }

    /// A group has ended, and its context with it.
    pub fn forget(&self, id: u32) {
        let _another_one_may_be_there = self.resident.compare_exchange(id + 1, 0, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Whether somebody logs context switches.
    pub fn logs_switches(&self) -> bool {
        self.logging.load(Ordering::Acquire)
    }

    /// Group `to` has the engine at `time_ns`.
    pub fn runs(&self, to: u32, time_ns: u64) {
        let mut running = self.running.lock();
        if *running == Some(to) {
            return;
        }
        let from = running.replace(to);
        let log = self.switch_log.lock().as_ref().and_then(Weak::upgrade);
        match log {
            Some(log) => log.switched(from, to, time_ns),
            None => {
                *running = None;
                self.logging.store(false, Ordering::Release);
            }
        }
    }

    /// Sleeps until the count differs from `seen` or the time is over.
    pub fn wait(&self, seen: u64, limit: Duration) {
        let mut count = self.count.lock();
        if *count == seen {
            self.raised.wait_for(&mut count, limit);
        }
    }
}

/// One host1x syncpoint that a channel owns.
#[derive(Debug)]
pub struct Syncpoint {
    /// Its number.
    pub id: u32,
    /// The aperture its counter lives in.
    pub aperture: Arc<Backing>,
    /// What a recovery adds to the counter so that every waiter sees its threshold passed.
    pub safe_step: u32,
}

impl Syncpoint {
    /// The counter.
    pub fn value(&self) -> u32 {
        self.aperture.load_u32(self.offset()).unwrap_or(0)
    }

    /// Byte of the aperture that holds the counter.
    pub fn offset(&self) -> usize {
        self.id as usize * SYNCPOINT_STRIDE
    }

    /// Releases every waiter.
    pub fn set_safe_state(&self) {
        self.aperture.fetch_add_u32(self.offset(), self.safe_step);
    }
}

/// The part of a channel that error recovery reaches, from open to close.
#[derive(Debug)]
pub struct Vitals {
    /// Channel id.
    pub id: u32,
    /// Error notifier (16 bytes), when set.
    pub notifier: Mutex<Option<Place>>,
    /// The channel's user syncpoint, when it has one.
    pub syncpoint: Mutex<Option<Arc<Syncpoint>>>,
    /// Dead, or not yet bound to a group: consumes nothing.
    pub unserviceable: AtomicBool,
    /// How long its group may keep the engine from another one, milliseconds (nvgpu-rules §8.6).
    pub ctxsw_timeout_ms: AtomicU32,
    /// How long a job of its may run, milliseconds; 0 = it is not watched (nvgpu-rules §7.5).
    pub watchdog_ms: AtomicU32,
}

/// Context-switch timeout of a channel that nobody gave another one, milliseconds.
pub const CTXSW_TIMEOUT_MS: u32 = 3000;

impl Vitals {
    /// Of a fresh channel: unserviceable until a group binds it.
    pub fn new(id: u32) -> Vitals {
        Vitals {
            id,
            notifier: Mutex::new(None),
            syncpoint: Mutex::new(None),
            unserviceable: AtomicBool::new(true),
            ctxsw_timeout_ms: AtomicU32::new(CTXSW_TIMEOUT_MS),
            watchdog_ms: AtomicU32::new(0),
        }
    }

    /// Writes the error notifier, unless it already shows an error: the first one wins (nvgpu-rules §8.3).
    pub fn notify(&self, code: NotifierCode) {
        const STATUS: usize = 14;
        let notifier = self.notifier.lock();
        let Some(place) = notifier.as_ref() else { return };
        let (memory, at) = (&place.backing, place.offset);
        let mut status = [0; 2];
        if !memory.read(at + STATUS, &mut status) || status == [0xff; 2] {
            return;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
        let mut record = [0; 12];
        record[..8].copy_from_slice(&now.to_le_bytes());
        record[8..].copy_from_slice(&(code as u32).to_le_bytes());
        // The status goes last: whoever sees it sees the code.
        if memory.write(at, &record) {
            std::sync::atomic::fence(Ordering::SeqCst);
            let _inside_as_the_read_above = memory.write(at + STATUS, &[0xff; 2]);
        }
    }
}

/// An interrupt that is not an error, by what the kernel tells whom (nvgpu-rules §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awakening {
    /// A non-stalling interrupt of host, copy or graphics engine: BLOCKING_SYNC events, and who sleeps in H.WAIT.
    NonStall,
    /// The graphics engine wrote a semaphore with AWAKEN: GR_SEMAPHORE_WRITE_AWAKEN events, and who sleeps.
    Semaphore,
    /// The graphics engine wrote a notifier: who sleeps.
    Notifier,
}

/// Someone who wants to know that a group raised such an interrupt.
pub trait Listener: Send + Sync + std::fmt::Debug {
    /// It was raised.
    fn awaken(&self, awakening: Awakening);
}

/// A channel group. State of the compute and copy engines belongs to it, per subcontext.
#[derive(Debug)]
pub struct HwTsg {
    /// TSG id.
    pub id: u32,
    /// Channels bound to it, set up or not; errors reach every one.
    pub members: Mutex<Vec<Arc<Vitals>>>,
    /// Saved SM error records, by SM index. Survive recovery.
    pub sm_errors: Mutex<Vec<SmError>>,
    /// The first fault, kept for logs and tools.
    pub fault: Mutex<Option<Fault>>,
    /// Engine contexts per VEID, made on first use by the GPU side.
    pub contexts: Mutex<Vec<(u32, Arc<Mutex<crate::gpu::GrContext>>)>>,
    /// Where its interrupts go.
    pub interrupts: Arc<Interrupts>,
    /// Who listens to its interrupts: the group's event fds.
    pub listener: Mutex<Weak<dyn Listener>>,
    /// Runlist enable bit of the whole group (T.ENABLE / T.DISABLE).
    pub enabled: AtomicBool,
    /// Timeslice, microseconds.
    pub timeslice_us: AtomicU32,
}

impl HwTsg {
    /// A group without channels on a GPU with `sm_count` SMs.
    pub fn new(id: u32, sm_count: usize, interrupts: Arc<Interrupts>) -> HwTsg {
        HwTsg {
            id,
            members: Mutex::default(),
            sm_errors: Mutex::new(vec![SmError::default(); sm_count]),
            fault: Mutex::new(None),
            contexts: Mutex::default(),
            interrupts,
            listener: Mutex::new(Weak::<Nobody>::new()),
            enabled: AtomicBool::new(true),
            timeslice_us: AtomicU32::new(1024),
        }
    }

    /// Error recovery as far as software sees it (nvgpu-rules §8.1): saves the SM records, writes the notifier of
    /// every channel, then makes every channel unserviceable, lets syncpoint waiters go, wakes sleepers. The
    /// caller stops the engines; nothing is freed.
    pub fn recover(&self, fault: Fault) {
        tracing::warn!(target: "tegra_sim::recovery", tsg = self.id, code = ?fault.code, "{}", fault.text);
        let mut saved = self.sm_errors.lock();
        for (sm, record) in &fault.sms {
            if let Some(saved) = saved.get_mut(*sm as usize) {
                *saved = *record;
            }
        }
        drop(saved);
        let members = self.members.lock().clone();
        members.iter().for_each(|m| m.notify(fault.code));
        self.fault.lock().get_or_insert(fault);
        for member in &members {
            if !member.unserviceable.swap(true, Ordering::AcqRel)
                && let Some(syncpoint) = member.syncpoint.lock().as_ref()
            {
                syncpoint.set_safe_state();
            }
        }
        self.interrupts.raise();
    }

    /// How long it may keep the engine from another group: the longest timeout of its channels, nanoseconds.
    pub fn ctxsw_timeout_ns(&self) -> u64 {
        let members = self.members.lock();
        let longest = members.iter().map(|m| m.ctxsw_timeout_ms.load(Ordering::Relaxed)).max();
        u64::from(longest.unwrap_or(CTXSW_TIMEOUT_MS)) * 1_000_000
    }

    /// An interrupt that is not an error: wakes H.WAIT and posts the group's events.
    pub fn awaken(&self, awakening: Awakening) {
        let listener = self.listener.lock().upgrade();
        if let Some(listener) = listener {
            listener.awaken(awakening);
        }
        self.interrupts.raise();
    }
}

/// The listener of a group without event fds.
#[derive(Debug)]
struct Nobody;

impl Listener for Nobody {
    fn awaken(&self, _: Awakening) {}
}

/// A channel that SETUP_BIND made runnable.
#[derive(Debug)]
pub struct HwChannel {
    /// Channel id; the work submit token on the graphics runlist.
    pub id: u32,
    /// Subcontext.
    pub veid: u32,
    /// Its group.
    pub tsg: Arc<HwTsg>,
    /// Its address space.
    pub space: Arc<HwSpace>,
    /// GPFIFO ring, 8-byte entries.
    pub ring: Place,
    /// Number of entries, a power of two.
    pub entries: u32,
    /// USERD page: GP_GET at 0x88, GP_PUT at 0x8C.
    pub userd: Place,
    /// Notifier, death, syncpoint.
    pub vitals: Arc<Vitals>,
    /// Runlist enable bit (H.ENABLE / H.DISABLE).
    pub enabled: AtomicBool,
    /// Entries the host has started to process; the index it publishes as GP_GET.
    pub gp_get: AtomicU32,
    /// PBDMA semaphore acquire timeout, milliseconds; 0 = off (the watchdog is disabled).
    pub acquire_timeout_ms: AtomicU32,
}

impl HwChannel {
    /// Whether the host may run it.
    pub fn runnable(&self) -> bool {
        self.enabled.load(Ordering::Acquire) && self.tsg.enabled.load(Ordering::Acquire) && !self.dead()
    }

    /// Whether it is unserviceable: it consumes nothing more.
    pub fn dead(&self) -> bool {
        self.vitals.unserviceable.load(Ordering::Acquire)
    }
}
