//! Waiting for the GPU, and the faults that stop it.

use super::clues::Clues;
use super::library::stop::{Reason, Stop};
use super::memory::Memory;
use super::patience::Patience;
use super::place::Place;
use super::session::Session;
use super::timeline::Timeline;
use crate::status::{RmError, RmResult, fail};
use std::fmt;
use std::mem::offset_of;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tegrarm_abi::nvgpu::channel::*;
use tegrarm_abi::rm::alloc::NV83DE_ALLOC_PARAMETERS;
use tegrarm_abi::rm::classes::GT200_DEBUGGER;
use tegrarm_abi::rm::ctrl_83de::*;
use tegrarm_abi::rm::status::*;
use zerocopy::FromZeros;

/// The cause for which a channel stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// An access to an address that has no mapping, or whose mapping forbids it.
    Mmu,
    /// An exception of an SM: an illegal instruction or a bad address.
    Sm,
    /// The kernel executed a trap.
    Trap,
    /// An assertion of the kernel failed.
    Assert,
    /// The kernel freed memory that was not to be freed.
    Free,
    /// The front end or the compute engine refused a launch or a method.
    Graphics,
    /// Work that did not end in time while another channel waited.
    Timeout,
    /// An error in the pushbuffer itself.
    Pushbuffer,
    /// Another cause.
    Other,
}

/// The fault that stopped a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultInfo {
    /// The cause.
    pub cause: Cause,
    /// nvgpu's error code (`NVGPU_CHANNEL_*`).
    pub code: u32,
    /// The channel's number.
    pub channel: u32,
    /// The SM and its warp error, if an SM reported one.
    pub sm: Option<(u32, u32)>,
    /// The address of the instruction, if an SM reported one.
    pub pc: Option<u64>,
    /// What the thread that gave up said, if one did.
    pub stop: Option<Stop>,
}

impl fmt::Display for FaultInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.cause {
            Cause::Mmu => "an MMU fault",
            Cause::Sm => "an SM exception",
            Cause::Trap | Cause::Assert | Cause::Free => "a trap",
            Cause::Graphics => "an exception of the compute engine",
            Cause::Timeout => "a timeout of the scheduler",
            Cause::Pushbuffer => "an error in the pushbuffer",
            Cause::Other => "an error",
        };
        if let Some(stop) = &self.stop {
            write!(f, "{stop}; ")?;
        }
        write!(f, "channel {} was stopped by {what} (nvgpu code {})", self.channel, self.code)?;
        if let Some((sm, esr)) = self.sm {
            match esr & 0xffff {
                0 => write!(f, "; SM {sm}")?,
                _ => write!(f, "; SM {sm}: {} ({esr:#x})", warp_error(esr))?,
            }
        }
        if let Some(pc) = self.pc {
            write!(f, " at pc {pc:#x}")?;
        }
        match self.cause {
            // nvgpu has no ioctl that returns the address.
            Cause::Mmu => write!(f, "; the address is in the kernel's log (dmesg)"),
            _ => Ok(()),
        }
    }
}

/// The error numbers of `hww_warp_esr` (bits 15:0).
fn warp_error(esr: u32) -> &'static str {
    match esr & 0xffff {
        0x02 => "call stack",
        0x05 => "misaligned program counter",
        0x06 => "program counter overflow",
        0x08 => "misaligned register",
        0x09 => "illegal instruction encoding",
        0x0b => "illegal instruction parameter",
        0x0d => "register out of range",
        0x0e => "address out of range of shared or local memory",
        0x0f => "misaligned address",
        0x10 => "address in the wrong space",
        0x12 => "constant bank address",
        0x17 | 0x20 => "access refused by the MMU",
        _ => "warp exception",
    }
}

/// The number of reads in a loop before a wait sleeps.
const SPINS: u32 = 2000;
/// Whether an error notifier's status word says that its channel was stopped.
#[inline]
pub fn says_stopped(status: &Place) -> bool {
    status.read_u32() >> 16 == WRITTEN
}

/// `hww_global_esr`: a warp executed a trap (docs/hardware/nvgpu-faults.md#global-esr-bits).
const TRAPPED: u32 = 1 << 4;
/// The value of the notifier's status word, which the kernel writes last.
const WRITTEN: u32 = 0xffff;
const SMS: u32 = 100;

/// Watches whether one channel was stopped.
pub struct Watch {
    session: Arc<Session>,
    notifier: Arc<Memory>,
    /// The word of the notifier whose high half says that the channel was stopped.
    status: Place,
    /// The object that reads the records of the SMs. A channel without compute has none.
    debugger: Option<u32>,
    channel: u32,
    clues: Arc<Clues>,
    /// The fault, after it was asked for the first time. The channel may not exist any more afterwards.
    fault: OnceLock<FaultInfo>,
}

impl Watch {
    /// Watches a channel whose errors are written to `notifier`. `compute` is its compute object, if it has one.
    ///
    /// # Errors
    /// An error that RM gives.
    pub fn new(
        session: &Arc<Session>,
        notifier: Memory,
        compute: Option<u32>,
        channel: u32,
        clues: &Arc<Clues>,
    ) -> RmResult<Watch> {
        let debugger = match compute {
            None => None,
            Some(hClass3dObject) => {
                let zeroed = NV83DE_ALLOC_PARAMETERS::new_zeroed();
                let params = NV83DE_ALLOC_PARAMETERS { hClass3dObject, ..zeroed };
                Some(session.alloc(session.device, GT200_DEBUGGER, params)?)
            }
        };
        let notifier = Arc::new(notifier);
        let status = Place::of(&notifier, offset_of!(nvgpu_notification, info16) as u64, 4)?;
        let (session, clues) = (session.clone(), clues.clone());
        Ok(Watch { session, notifier, status, debugger, channel, clues, fault: OnceLock::new() })
    }

    /// Whether the channel was stopped. This costs one read of memory.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        says_stopped(&self.status)
    }

    /// The word whose high half says that the channel was stopped.
    pub fn status_word(&self) -> &Place {
        &self.status
    }

    /// The fault that stopped the channel. It is `None` while the channel works.
    ///
    /// # Errors
    /// An error that RM gives for the records of the SMs.
    pub fn fault(&self) -> RmResult<Option<FaultInfo>> {
        if !self.is_stopped() {
            return Ok(None);
        }
        if let Some(info) = self.fault.get() {
            return Ok(Some(info.clone()));
        }
        let code = self.notifier.read_u32(offset_of!(nvgpu_notification, info32) as u64);
        let mut info = FaultInfo { cause: cause(code), code, channel: self.channel, sm: None, pc: None, stop: None };
        let Some(debugger) = self.debugger else { return Ok(Some(self.fault.get_or_init(|| info).clone())) };
        let mut p = NV83DE_CTRL_DEBUG_READ_ALL_SM_ERROR_STATES_PARAMS::new_zeroed();
        p.numSMsToRead = SMS;
        self.session.control(debugger, NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES, &mut p)?;
        let records = || (0u32..).zip(&p.smErrorStateArray);
        let error = records().find(|(_, r)| r.hwwWarpEsr & 0xffff != 0);
        let trap = records().find(|(_, r)| r.hwwGlobalEsr & TRAPPED != 0);
        if let Some((sm, record)) = error.or(trap) {
            (info.sm, info.pc) = (Some((sm, record.hwwWarpEsr)), Some(record.hwwWarpEsrPc64));
            if info.cause == Cause::Graphics {
                info.cause = if error.is_some() { Cause::Sm } else { Cause::Trap };
            }
        }
        if info.cause == Cause::Trap {
            info.stop = self.clues.stop();
            info.cause = match &info.stop {
                None => Cause::Trap,
                Some(Stop { reason: Reason::Assert { .. }, .. }) => Cause::Assert,
                Some(Stop { reason: Reason::Free { .. }, .. }) => Cause::Free,
            };
        }
        Ok(Some(self.fault.get_or_init(|| info).clone()))
    }

    /// Fails with the fault if the channel was stopped.
    ///
    /// # Errors
    /// `NV_ERR_RESET_REQUIRED` and the fault's sentence.
    #[inline]
    pub fn check(&self) -> RmResult<()> {
        if self.is_stopped() { self.report() } else { Ok(()) }
    }

    #[cold]
    fn report(&self) -> RmResult<()> {
        match self.fault()? {
            None => Ok(()),
            Some(fault) => Err(RmError::new(NV_ERR_RESET_REQUIRED, fault.to_string())),
        }
    }

    /// If the GPU is executed in steps, executes one step.
    pub fn step(&self) -> bool {
        self.session.rm().kmd().step()
    }

    /// Waits until submission `fence` has finished. `last` is the newest submission, for messages.
    ///
    /// # Errors
    /// The channel's fault as soon as there is one, and `NV_ERR_TIMEOUT` with the work that is pending when the
    /// deadline passes.
    pub fn wait(&self, timeline: &Timeline, fence: u64, deadline: Option<Duration>, last: u64) -> RmResult<()> {
        for _ in 0..SPINS {
            if timeline.completed() >= fence {
                self.session.rm().kmd().saw_gpu();
                return timeline.check_kept(fence);
            }
            std::hint::spin_loop();
        }
        let mut patience = Patience::new(deadline);
        loop {
            let progress = self.step();
            if let Some(result) = self.verdict(timeline, fence) {
                return result;
            }
            if patience.is_over() {
                let (completed, waited) = (timeline.completed(), patience.waited());
                fail!(
                    NV_ERR_TIMEOUT,
                    "fence {fence} is pending after {waited:?}: submission {completed} of {last} has finished, and \
                     channel {} reports no fault",
                    self.channel
                );
            }
            if !progress {
                std::thread::sleep(patience.next_sleep());
            }
        }
    }

    /// The result of submission `fence`. It is `None` while the submission is pending.
    pub fn verdict(&self, timeline: &Timeline, fence: u64) -> Option<RmResult<()>> {
        // The order matters: a release that came before the fault still counts.
        let stopped = self.is_stopped();
        let kmd = self.session.rm().kmd();
        if timeline.completed() >= fence {
            kmd.saw_gpu();
            return Some(timeline.check_kept(fence));
        }
        if stopped {
            kmd.saw_gpu();
            return self.check().err().map(Err);
        }
        kmd.waits_in_vain().map(|why| Err(RmError::new(NV_ERR_NOT_SUPPORTED, why)))
    }
}

/// Watches one submission for a thread that does not own its queue.
pub struct Probe {
    timeline: Arc<Timeline>,
    watch: Arc<Watch>,
    submission: u64,
}

impl Probe {
    /// Makes a probe of a submission to the channel of `timeline` and `watch`.
    pub fn new(timeline: &Arc<Timeline>, watch: &Arc<Watch>, submission: u64) -> Probe {
        Probe { timeline: timeline.clone(), watch: watch.clone(), submission }
    }

    /// The result of the submission. It is `None` while the submission is pending. If the GPU is executed in steps,
    /// executes one step.
    pub fn look(&self) -> Option<RmResult<()>> {
        self.watch.step();
        self.watch.verdict(&self.timeline, self.submission)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.debugger.into_iter().for_each(|debugger| self.session.free(debugger));
    }
}

fn cause(code: u32) -> Cause {
    match code {
        NVGPU_CHANNEL_FIFO_ERROR_MMU_ERR_FLT => Cause::Mmu,
        NVGPU_CHANNEL_GR_EXCEPTION | NVGPU_CHANNEL_GR_ERROR_SW_METHOD | NVGPU_CHANNEL_GR_ILLEGAL_NOTIFY => {
            Cause::Graphics
        }
        NVGPU_CHANNEL_FIFO_ERROR_IDLE_TIMEOUT | NVGPU_CHANNEL_GR_SEMAPHORE_TIMEOUT => Cause::Timeout,
        NVGPU_CHANNEL_PBDMA_ERROR | NVGPU_CHANNEL_PBDMA_PUSHBUFFER_CRC_MISMATCH => Cause::Pushbuffer,
        _ => Cause::Other,
    }
}
