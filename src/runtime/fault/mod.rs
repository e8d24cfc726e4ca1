//! Waiting for the GPU, and the faults that stop it.

pub mod address_map;
pub mod diagnostics;
pub mod text;

use crate::runtime::channel::backoff::Backoff;
use crate::runtime::channel::timeline::Timeline;
use crate::runtime::fault::address_map::{AddressMap, Located};
use crate::runtime::fault::diagnostics::Diagnostics;
use crate::runtime::library::stop::{Reason, Stop};
use crate::runtime::memory::Memory;
use crate::runtime::memory::place::Place;
use crate::runtime::memory::session::Session;
use std::backtrace::Backtrace;
use std::io::Write;
use std::mem::offset_of;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tegrarm_abi::nvgpu::channel::*;
use tegrarm_abi::rm::alloc::NV83DE_ALLOC_PARAMETERS;
use tegrarm_abi::rm::classes::GT200_DEBUGGER;
use tegrarm_abi::rm::ctrl_83de::*;
use tegrarm_abi::rm::status::*;
use tegrarm_output::Stderr;
use tegrarm_rm::rm::profile::Insight;
use tegrarm_rm::status::{RmError, RmResult, fail};
use zerocopy::FromZeros;

/// The cause for which a channel stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cause {
    /// An access to an address that has no mapping, or whose mapping forbids it.
    Mmu,
    /// An exception of an SM: an illegal instruction or a bad address.
    Sm,
    /// The kernel executed a trap.
    Trap,
    /// An assertion of the kernel failed.
    Assert,
    /// The kernel freed an address that it must not free.
    Free,
    /// The front end or the compute engine refused a launch or a method.
    Graphics,
    /// Work that did not end in time while another channel waited.
    Timeout,
    /// An error in the pushbuffer itself.
    Pushbuffer,
    /// Another cause.
    #[default]
    Other,
}

/// The fault that stopped a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// The reason that a thread gave before it stopped the kernel, if it gave one.
    pub stop: Option<Stop>,
    /// The function of the instruction, if the instruction is in a module. For a jump to an address without code it is that of the jump.
    pub place: Option<Located>,
    /// The kernel of the launch, if a simulated kernel tells where the launch began.
    pub kernel: Option<String>,
    /// Whether the instruction is a jump to an address without code, which is `pc`.
    pub jumped: bool,
    /// Details that a simulated kernel tells. The kernel of a board does not tell them.
    pub insight: Option<Insight>,
    /// The line of the kernel's log. Each address of an instruction has its function behind it.
    pub log: Option<String>,
    /// Where the accessed address is, compared with the buffers.
    pub near: Option<String>,
    /// How many bytes of shared memory the block has, and how many of them the kernel's own arrays use. It is set if an access went
    /// beyond them.
    pub shared: Option<(u64, u64)>,
}

/// `hww_warp_esr`: the address is beyond shared or local memory, or it is not a multiple of the size of the access.
const OUT_OF_RANGE: u32 = 0x0e;
const MISALIGNED: u32 = 0x0f;
/// The instructions that access shared memory.
const SHARED: [&str; 4] = ["LDS", "STS", "ATOMS", "LDGSTS"];

/// The line of the log, with the function of each instruction behind its address.
pub fn with_places(log: &str, known: &AddressMap) -> String {
    const PC: &str = "pc 0x";
    let mut parts = log.split(PC);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(part.len());
        let place = u64::from_str_radix(&part[..end], 16).ok().and_then(|pc| known.place(pc));
        let place = place.map_or_else(String::new, |place| format!(" ({place})"));
        text += &format!("{PC}{}{place}{}", &part[..end], &part[end..]);
    }
    text
}

/// The calls of a program, from the function of this library on that it has called.
fn listed(calls: &Backtrace) -> String {
    let text = calls.to_string();
    // A function has a line with its number and its name, and perhaps a second line with its file.
    let is_ours = |line: &&str| line.split_once(": ").is_some_and(|(_, name)| name.starts_with("tegrarm_"));
    let skipped = text.lines().position(|line| is_ours(&line)).unwrap_or(0);
    text.lines().skip(skipped).map(|line| format!("    {}\n", line.trim_end())).collect()
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
    timeline: Arc<Timeline>,
    diagnostics: Arc<Diagnostics>,
    /// The fault, after it was asked for the first time. The channel may not exist any more afterwards.
    fault: OnceLock<FaultInfo>,
}

impl Watch {
    /// Watches a channel whose errors are written to `notifier` and whose progress is in `timeline`. `compute` is its compute object, if it
    /// has one.
    ///
    /// # Errors
    /// An error that RM gives.
    pub fn new(
        session: &Arc<Session>,
        notifier: Memory,
        compute: Option<u32>,
        channel: u32,
        timeline: &Arc<Timeline>,
        diagnostics: &Arc<Diagnostics>,
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
        let (session, timeline, diagnostics) = (session.clone(), timeline.clone(), diagnostics.clone());
        Ok(Watch { session, notifier, status, debugger, channel, timeline, diagnostics, fault: OnceLock::new() })
    }

    /// Whether the channel was stopped. This costs one read of memory.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        says_stopped(&self.status)
    }

    /// The channel's number.
    pub fn channel(&self) -> u32 {
        self.channel
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
        let mut info = FaultInfo { cause: cause(code), code, channel: self.channel, ..FaultInfo::default() };
        let Some(debugger) = self.debugger else { return Ok(Some(self.keep(info))) };
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
            info.stop = self.diagnostics.stop();
            info.cause = match &info.stop {
                None => Cause::Trap,
                Some(Stop { reason: Reason::Assert { .. }, .. }) => Cause::Assert,
                Some(Stop { reason: Reason::Free { .. }, .. }) => Cause::Free,
            };
        }
        Ok(Some(self.keep(info)))
    }

    /// Adds what the device and the kernel know. This is done only once.
    fn keep(&self, mut info: FaultInfo) -> FaultInfo {
        let known = self.diagnostics.known();
        info.place = info.pc.and_then(|pc| known.place(pc));
        info.insight = self.session.rm().insight(self.channel);
        if let Some(insight) = &info.insight {
            info.log = Some(with_places(&insight.log, known));
            if let Some(warp) = &insight.warp {
                let began = known.place(warp.kernel).filter(|place| place.is_kernel);
                info.kernel = began.map(|place| place.function);
                info.jumped = info.place.is_none() && warp.pc != 0 && info.pc.is_some_and(|pc| pc != warp.pc);
                if info.jumped {
                    info.place = known.place(warp.pc);
                }
            }
            let of_buffers =
                !info.jumped && info.cause == Cause::Mmu || info.sm.is_some_and(|(_, esr)| esr & 0xffff == MISALIGNED);
            info.near = insight.access.filter(|_| of_buffers).map(|(address, _)| known.near(address));
            let freed = insight.access.filter(|_| of_buffers);
            freed.into_iter().for_each(|(address, _)| self.print_calls(address));
            let beyond = info.sm.is_some_and(|(_, esr)| esr & 0xffff == OUT_OF_RANGE);
            let is_shared = |text: &str| SHARED.iter().any(|name| text.contains(name));
            let warp = insight.warp.as_ref().filter(|warp| beyond && is_shared(&warp.instruction));
            let used = info.place.as_ref().map_or(0, |place| place.shared);
            info.shared = warp.map(|warp| (warp.shared.into(), used));
        }
        self.fault.get_or_init(|| info).clone()
    }

    /// If the buffer at an address was freed, prints the calls that freed it, and those that launched the work that has failed.
    fn print_calls(&self, address: u64) {
        let Some(freed) = self.diagnostics.known().calls_that_freed(address) else { return };
        // If standard error is gone, nobody reads it.
        let _ = Stderr.write_all(
            format!("libtegrarm: the buffer at {address:#x} was freed here:\n{}", listed(&freed)).as_bytes(),
        );
        let launched = self.diagnostics.launch_of(self.channel, self.timeline.progress() + 1);
        let launched = launched
            .map(|calls| format!("libtegrarm: and then used by work that was launched here:\n{}", listed(&calls)));
        let _ = Stderr.write_all(launched.unwrap_or_default().as_bytes());
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
        let kmd = self.session.rm().kmd();
        for spin in 0..SPINS {
            if timeline.has_come_to(fence) {
                kmd.saw_gpu();
                return timeline.check_kept(fence);
            }
            if spin == 0 && kmd.progress().is_some() {
                break;
            }
            std::hint::spin_loop();
        }
        let mut backoff = Backoff::new(deadline);
        loop {
            let (seen, progress) = (kmd.progress(), self.step());
            if let Some(result) = self.outcome(timeline, fence) {
                return result;
            }
            if backoff.is_over() {
                let (completed, waited, knows) = (timeline.progress(), backoff.waited(), self.knows());
                fail!(
                    NV_ERR_TIMEOUT,
                    "fence {fence} is pending after {waited:?}: submission {completed} of {last} has finished, and \
                     channel {} reports no fault{knows}",
                    self.channel
                );
            }
            if !progress {
                backoff.rest(&**kmd, seen);
            }
        }
    }

    /// What a simulated GPU knows of the work that does not end, for a sentence about it.
    fn knows(&self) -> String {
        let waits = self.session.rm().waits_for(self.channel);
        waits.map_or_else(String::new, |text| {
            format!("; the simulated GPU knows: {}", with_places(&text, self.diagnostics.known()))
        })
    }

    /// The result of submission `fence`. It is `None` while the submission is pending.
    pub fn outcome(&self, timeline: &Timeline, fence: u64) -> Option<RmResult<()>> {
        // The order matters: a release that came before the fault still counts.
        let stopped = self.is_stopped();
        let kmd = self.session.rm().kmd();
        if timeline.has_come_to(fence) {
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
        self.watch.outcome(&self.timeline, self.submission)
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
