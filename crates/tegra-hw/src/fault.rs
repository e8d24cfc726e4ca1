//! What went wrong: notifier codes, SM error records, sentences for the log.

use tegra_mm::MmuFault;

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

/// Error notifier codes (docs/hardware/nvgpu-faults.md#error-notifier-codes).
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
