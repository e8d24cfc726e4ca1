//! How far the GPU has come with the work of a queue.

use crate::runtime::channel::lost_work::LostWork;
use crate::runtime::memory::place::{Place, Width};
use crate::runtime::memory::session::Session;
use crate::runtime::memory::{Cache, Memory};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tegrarm_abi::rm::status::*;
use tegrarm_rm::rm::Rm;
use tegrarm_rm::status::{RmResult, fail};

/// The GPU's progress: the number of the last submission that has finished.
pub struct Timeline {
    memory: Arc<Memory>,
    lost: LostWork,
    /// How many channels have used the timeline so far.
    channels: AtomicU64,
    /// Whom to tell of waits, if somebody wants to know.
    told: OnceLock<Told>,
}

/// A kernel that wants to know for what the processor waits, and what it gives to the channel.
struct Told {
    rm: Arc<Rm>,
    name: Box<str>,
    /// The token of the channel, which changes after a fault.
    token: AtomicU32,
    last: AtomicU64,
}

impl Told {
    #[cold]
    fn saw(&self, number: u64) {
        if self.last.fetch_max(number, Ordering::AcqRel) < number {
            self.tell("waited", number, "");
        }
    }

    fn tell(&self, word: &str, number: u64, name: &str) {
        let token = self.token.load(Ordering::Acquire);
        let name = if name.is_empty() { String::new() } else { format!("\t{name}") };
        self.rm.tell_code(&format!("{word}\t{token:#x}\t{number:#x}{name}\n"));
    }
}

/// The place in the timeline's memory at which the CPU reports its progress to the GPU.
const CPU_AT: u64 = 64;

/// The tasks that the CPU has done for queues of this process. The program's thread learns of them through the GPU only, which
/// waits for one number and then writes another one, perhaps of another queue. No memory model of threads knows the GPU: this
/// number is what puts a task before everything that the program does after the wait.
static TASKS: AtomicU64 = AtomicU64::new(0);

impl Timeline {
    /// The memory of the timeline. The number is the first double word.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// The GPU address.
    #[inline]
    pub fn va(&self) -> u64 {
        self.memory.va()
    }

    /// Makes a timeline without submissions.
    ///
    /// # Errors
    /// An error that RM gives if there is no memory.
    pub fn new(session: &Arc<Session>) -> RmResult<Timeline> {
        let memory = Arc::new(Memory::new(session, 4096, Cache::Cached)?);
        Ok(Timeline { memory, lost: LostWork::default(), channels: AtomicU64::new(0), told: OnceLock::new() })
    }

    /// Counts another channel, which is made for a new queue or after a fault. Returns the number of channels so far.
    pub fn next_channel(&self) -> u64 {
        self.channels.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Declares that the submissions up to `last` that have not finished will never finish. Everything that waits for them
    /// continues.
    ///
    /// # Errors
    /// There are none in practice, because the timeline has room for its number.
    pub fn lose(&self, last: u64) -> RmResult<()> {
        let completed = self.progress();
        if completed < last {
            let number = Place::of(&self.memory, 0, 8)?;
            self.lost.add(completed + 1..=last);
            number.write(Width::W8, 0, last);
        }
        Ok(())
    }

    /// Checks that a submission that counts as passed has really finished.
    ///
    /// # Errors
    /// `NV_ERR_RESOURCE_LOST` if a fault had stopped the channel before.
    #[inline]
    pub fn check_kept(&self, submission: u64) -> RmResult<()> {
        if self.lost.has(submission) {
            fail!(NV_ERR_RESOURCE_LOST, "a fault stopped the queue before submission {submission} finished");
        }
        Ok(())
    }

    /// The GPU address at which the GPU waits for the CPU.
    pub fn cpu_va(&self) -> u64 {
        self.memory.va() + CPU_AT
    }

    /// Reports that the CPU has done all tasks up to `number`.
    ///
    /// # Errors
    /// There are none in practice, because the timeline has room for its number.
    pub fn cpu_has_come_to(&self, number: u64) -> RmResult<()> {
        let place = Place::of(&self.memory, CPU_AT, 8)?;
        TASKS.fetch_add(1, Ordering::Release);
        place.write(Width::W8, 0, number);
        Ok(())
    }

    /// Tells the kernel the name of the channel with a token. If `told` is true, it is told from now on what the channel is given, and when the
    /// processor has seen how far it is.
    pub fn introduce(&self, rm: &Arc<Rm>, token: u32, name: &str, told: bool) {
        let new = Told { rm: rm.clone(), name: name.into(), token: AtomicU32::new(token), last: AtomicU64::new(0) };
        new.tell("queue", if told { self.va() } else { 0 }, name);
        if told {
            self.told.get_or_init(|| new).token.store(token, Ordering::Release);
        }
    }

    /// Whether the kernel is told what the channel is given.
    pub fn is_told(&self) -> bool {
        self.told.get().is_some()
    }

    /// The channel is given what is in its ring in front of an entry.
    pub fn gives(&self, end: u32) {
        if let Some(told) = self.told.get() {
            told.tell("gives", end.into(), "");
        }
    }

    /// Somebody gives it something from now on who does not tell that.
    pub fn tells_no_more(&self) {
        if let Some(told) = self.told.get() {
            told.tell("queue", 0, &told.name);
        }
    }

    /// Whether a submission has finished. Whoever asks goes on with what it has left, so that the kernel is told.
    #[inline]
    pub fn has_come_to(&self, submission: u64) -> bool {
        let has = self.progress() >= submission;
        if has && let Some(told) = self.told.get() {
            told.saw(submission);
        }
        has
    }

    /// The number of the last submission that has finished, for who only wants to know whether there is room for more, what is free, or what
    /// to say.
    #[inline]
    pub fn progress(&self) -> u64 {
        let completed = self.memory.read_u64(0);
        TASKS.load(Ordering::Acquire);
        completed
    }
}
