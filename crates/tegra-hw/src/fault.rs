//! Descriptions of faults: notifier codes, SM error records and sentences for the log.

use tegra_mm::MmuFault;

/// The error record of one SM (`nvgpu_tsg_sm_error_state_record`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmError {
    /// `hww_global_esr`.
    pub global_esr: u32,
    /// `hww_warp_esr`.
    pub warp_esr: u32,
    /// `hww_warp_esr_pc`.
    pub pc: u64,
}

/// The codes of the error notifier (docs/hardware/nvgpu-faults.md#error-notifier-codes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum NotifierCode {
    /// A timeout of a context switch or a preemption.
    IdleTimeout = 8,
    /// A fault of the copy engine (the raw internal number).
    CopyEngine = 11,
    /// An SM exception, a SKED exception or a class error.
    GrException = 13,
    /// The timeout of a PBDMA semaphore acquire.
    SemaphoreTimeout = 24,
    /// An illegal method.
    IllegalMethod = 25,
    /// An MMU fault.
    MmuFault = 31,
    /// A PBDMA error.
    Pbdma = 32,
    /// A firmware method that is not implemented.
    FirmwareMethod = 37,
    /// The ioctl FORCE_RESET.
    ResetChannel = 43,
    /// A CRC of the pushbuffer that does not match.
    PushbufferCrc = 80,
}

/// A fault of the GPU: the code that the notifier gets, and the details that only a kernel log would have.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The code for the error notifier.
    pub code: NotifierCode,
    /// The MMU fault, if it was one.
    pub mmu: Option<MmuFault>,
    /// The SMs with an exception and their records. The SM that the text names comes first.
    pub sms: Vec<(u32, SmError)>,
    /// One sentence for the log, with the unit, the numbers and the names.
    pub text: String,
}
