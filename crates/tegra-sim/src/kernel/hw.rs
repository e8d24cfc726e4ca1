//! What the kernel programs into the GPU: address spaces, channel groups, channels.
//!
//! The kernel side creates these when ioctls ask for them; the GPU side ([`crate::gpu`]) only runs them. Locks
//! are held for moments, never while a kernel or a copy executes.

use crate::mm::{Backing, MmuFault, PageTable};
use parking_lot::{Mutex, RwLock};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Weak};

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

    /// Replaces the mappings by what `change` makes of them.
    pub fn update(&self, change: impl FnOnce(&PageTable) -> PageTable) {
        let mut table = self.table.write();
        let next = change(&table);
        *table = Arc::new(next);
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
    /// SM index and its record, when an SM raised it.
    pub sm: Option<(u32, SmError)>,
    /// One sentence for the log: unit, numbers, names.
    pub text: String,
}

/// A channel group. State of the compute and copy engines belongs to it, per subcontext.
#[derive(Debug)]
pub struct HwTsg {
    /// TSG id.
    pub id: u32,
    /// Channels bound to it; errors reach every one.
    pub channels: Mutex<Vec<Weak<HwChannel>>>,
    /// Saved SM error records, by SM index. Survive recovery.
    pub sm_errors: Mutex<Vec<SmError>>,
    /// The first fault, kept for logs and tools.
    pub fault: Mutex<Option<Fault>>,
    /// Engine contexts per VEID, made on first use by the GPU side.
    pub contexts: Mutex<Vec<(u32, Arc<Mutex<crate::gpu::GrContext>>)>>,
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
    /// Error notifier (16 bytes), when set.
    pub notifier: Mutex<Option<Place>>,
    /// Dead: consumes nothing more.
    pub unserviceable: AtomicBool,
    /// Runlist enable bit (H.ENABLE / H.DISABLE).
    pub enabled: AtomicBool,
    /// Entries the host has started to process; the index it publishes as GP_GET.
    pub gp_get: AtomicU32,
}

impl HwChannel {
    /// Whether the host may run it.
    pub fn runnable(&self) -> bool {
        self.enabled.load(Ordering::Acquire) && !self.unserviceable.load(Ordering::Acquire)
    }
}
