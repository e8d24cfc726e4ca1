//! Descriptions of faults: notifier codes, SM error records and sentences for the log.

use std::collections::VecDeque;
use std::fmt;
use std::sync::OnceLock;
use tegra_mm::MmuFault;
use tegrarm_lock::Mutex;

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

/// Details of a fault of an SM that the virtual Orin knows. The kernel of a board does not report them to anyone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Insight {
    /// The block.
    pub block: [u32; 3],
    /// The index of the warp in it.
    pub warp: u32,
    /// The lanes that executed the instruction.
    pub lanes: u32,
    /// The lane whose access failed. `None` if it is not known.
    pub lane: Option<u32>,
    /// The thread in that lane. If the lane is not known, it is the thread in the first of `lanes`.
    pub thread: [u32; 3],
    /// The address of the instruction. For a jump to an address without code it is that of the jump.
    pub pc: u64,
    /// The address at which the grid began.
    pub kernel: u64,
    /// The instruction, as nvdisasm writes it.
    pub instruction: String,
    /// The address that was accessed, and the number of bytes, which is 0 if it is not known.
    pub access: Option<(u64, u32)>,
    /// How many bytes of shared memory the block has.
    pub shared: u32,
}

impl Insight {
    /// The details as one line of `key=value` pairs, separated by tabs.
    fn line(&self) -> String {
        let three = |[x, y, z]: [u32; 3]| format!("{x},{y},{z}");
        let mut line = format!(
            "block={}\tthread={}\twarp={}\tlanes={:#010x}\tshared={}\tpc={:#x}\tkernel={:#x}\tinstruction={}",
            three(self.block),
            three(self.thread),
            self.warp,
            self.lanes,
            self.shared,
            self.pc,
            self.kernel,
            self.instruction
        );
        if let Some(lane) = self.lane {
            line += &format!("\tlane={lane}");
        }
        if let Some((address, bytes)) = self.access {
            line += &format!("\taddress={address:#x}\tbytes={bytes}");
        }
        line
    }
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
    /// Details that the kernel of a board does not report.
    pub insight: Option<Box<Insight>>,
}

impl Fault {
    /// A fault as a line for programs: the channel that it stopped, the details, and the line of the log.
    fn line(&self, channel: u32) -> String {
        let insight = self.insight.as_deref().map_or_else(String::new, |insight| format!("\t{}", insight.line()));
        format!("channel={channel}{insight}\ttext={}", self.text.replace(['\n', '\t'], " "))
    }
}

/// How the line about what a channel waits for begins.
fn waiting(channel: u32) -> String {
    format!("channel={channel}\tstate=waits\t")
}

/// How many faults are kept.
const KEPT: usize = 64;

/// The newest faults of a GPU, for programs that ask (docs/debugging.md).
#[derive(Default)]
pub struct FaultLog {
    lines: Mutex<VecDeque<String>>,
    watcher: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl fmt::Debug for FaultLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultLog").field("lines", &self.lines).finish_non_exhaustive()
    }
}

impl FaultLog {
    /// Calls `watcher` after each change, before anything else learns of the fault. Only the first watcher counts.
    pub fn watch(&self, watcher: impl Fn() + Send + Sync + 'static) {
        let _ = self.watcher.set(Box::new(watcher));
    }

    /// Keeps a line for each channel that a fault stopped.
    pub(crate) fn note(&self, channels: impl Iterator<Item = u32>, fault: &Fault) {
        let mut lines = self.lines.lock();
        lines.extend(channels.map(|channel| fault.line(channel)));
        let too_many = lines.len().saturating_sub(KEPT);
        lines.drain(..too_many);
        drop(lines);
        self.tell();
    }

    /// Keeps a line that says what a channel waits for, until it goes on or is stopped.
    pub fn waits(&self, channel: u32, what: &str) {
        let mut lines = self.lines.lock();
        lines.push_back(format!("{}text={}", waiting(channel), what.replace(['\n', '\t'], " ")));
        let too_many = lines.len().saturating_sub(KEPT);
        lines.drain(..too_many);
        drop(lines);
        self.tell();
    }

    /// Keeps a line that says what a channel executes, unless one says what it waits for. It goes as that one does.
    pub fn runs(&self, channel: u32, what: &str) {
        let waits = waiting(channel);
        if !self.lines.lock().iter().any(|line| line.starts_with(&waits)) {
            self.waits(channel, what);
        }
    }

    /// Forgets what a channel waited for.
    pub fn goes_on(&self, channel: u32) {
        self.drop_lines(|| waiting(channel));
    }

    /// Forgets the faults of a channel, because another one gets its number.
    pub fn forget(&self, channel: u32) {
        self.drop_lines(|| format!("channel={channel}\t"));
    }

    /// Drops the lines that begin in this way. After every grid somebody asks for that, and mostly there is no line at all.
    fn drop_lines(&self, beginning: impl FnOnce() -> String) {
        let mut lines = self.lines.lock();
        if lines.is_empty() {
            return;
        }
        let (beginning, before) = (beginning(), lines.len());
        lines.retain(|line| !line.starts_with(&beginning));
        let changed = lines.len() != before;
        drop(lines);
        if changed {
            self.tell();
        }
    }

    fn tell(&self) {
        if let Some(watcher) = self.watcher.get() {
            watcher();
        }
    }

    /// All lines that are kept, the oldest first.
    pub fn text(&self) -> String {
        self.lines.lock().iter().map(|line| format!("{line}\n")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn fault(text: &str) -> Fault {
        Fault { code: NotifierCode::MmuFault, mmu: None, sms: Vec::new(), text: text.to_owned(), insight: None }
    }

    #[test]
    fn a_channel_that_gets_the_number_of_another_has_no_faults() {
        let (log, told) = (FaultLog::default(), Arc::new(AtomicU32::new(0)));
        let count = told.clone();
        log.watch(move || {
            count.fetch_add(1, Ordering::Relaxed);
        });
        log.note([51, 511].into_iter(), &fault("one\tline\nhere"));
        log.note([511].into_iter(), &fault("two"));
        assert_eq!(
            log.text(),
            "channel=51\ttext=one line here\nchannel=511\ttext=one line here\nchannel=511\ttext=two\n"
        );
        log.forget(511);
        assert_eq!(log.text(), "channel=51\ttext=one line here\n");
        assert_eq!(told.load(Ordering::Relaxed), 3);
        log.forget(5);
        assert_eq!(told.load(Ordering::Relaxed), 3, "nothing has changed");
    }
}
