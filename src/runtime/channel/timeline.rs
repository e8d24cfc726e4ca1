//! How far the GPU has come with the work of a queue.

use crate::runtime::channel::lost_work::LostWork;
use crate::runtime::memory::place::{Place, Width};
use crate::runtime::memory::session::Session;
use crate::runtime::memory::{Cache, Memory};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::watched;
use tegrarm_lock::Mutex;
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
    /// The device's host, which all its queues have in common.
    host: Arc<Host>,
}

/// What the processor was told, and what it accesses meanwhile if somebody wants to know that.
#[derive(Default)]
pub struct Host {
    /// Whether it matters what the processor accesses.
    accesses: bool,
    /// The submissions that the processor has given to each timeline and seen end, by the timeline's address.
    queues: Mutex<BTreeMap<u64, Seen>>,
}

/// The last submission that was given, and the last one of which the processor knows that it has ended.
#[derive(Clone, Copy, Default)]
struct Seen {
    given: u64,
    ended: u64,
}

impl Host {
    /// The host of a device.
    pub fn new(accesses: bool) -> Arc<Host> {
        Arc::new(Host { accesses, queues: Mutex::default() })
    }

    fn number(&self) -> u64 {
        std::ptr::from_ref(self) as u64
    }

    /// Looks at what the processor accesses in a buffer of whose work it does not know the end, if somebody wants to know that.
    pub fn watch(&self, memory: &Memory) -> Option<watched::Watched> {
        let is_watched = self.accesses && memory.has_cpu() && !memory.is_borrowed() && !memory.is_reserved();
        is_watched.then(|| watched::Watched::new(self.number(), memory.cpu(), memory.len() as usize, memory.va()))
    }

    /// What the processor has accessed so far, in lines for the kernel.
    fn touched(&self, token: u32) -> String {
        let mut lines = String::new();
        for access in if self.accesses { watched::take(self.number()) } else { Vec::new() } {
            let what = if access.wrote { "store" } else { "load" };
            let _ = writeln!(lines, "touched\t{token:#x}\t{:#x}\t{what}\t{}", access.va, access.calls);
        }
        lines
    }

    /// Whether the processor knows that everything has ended that it gave.
    fn knows_all(queues: &BTreeMap<u64, Seen>) -> bool {
        queues.values().all(|seen| seen.ended >= seen.given)
    }
}

impl Told {
    /// The processor goes on with what a submission has left. Another thread that asks meanwhile goes on only when this is told.
    #[cold]
    fn saw(&self, timeline: u64, number: u64) {
        let mut queues = self.host.queues.lock();
        if self.last.load(Ordering::Acquire) < number {
            self.tell("waited", number);
            self.last.store(number, Ordering::Release);
            let seen = queues.entry(timeline).or_default();
            seen.ended = number;
            if self.host.accesses && Host::knows_all(&queues) {
                watched::open(self.host.number());
            }
        }
    }

    /// The processor gives a submission, which ends in front of an entry of the ring.
    fn gives(&self, timeline: u64, submission: u64, end: u32) {
        let mut queues = self.host.queues.lock();
        queues.entry(timeline).or_default().given = submission;
        if self.host.accesses {
            watched::close(self.host.number());
        }
        self.tell("gives", end.into());
    }

    /// Tells what has happened, behind what the processor has accessed before.
    fn tell(&self, word: &str, number: u64) {
        let token = self.token.load(Ordering::Acquire);
        self.rm.tell_code(&format!("{}{word}\t{token:#x}\t{number:#x}\n", self.host.touched(token)));
    }

    fn introduce(&self, progress: u64) {
        let token = self.token.load(Ordering::Acquire);
        self.rm.tell_code(&format!("queue\t{token:#x}\t{progress:#x}\t{}\n", self.name));
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
        if let Some(told) = self.told.get() {
            told.host.queues.lock().remove(&self.va());
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
    pub fn introduce(&self, rm: &Arc<Rm>, host: &Arc<Host>, (token, name): (u32, &str), told: bool) {
        let (last, host) = (AtomicU64::new(0), host.clone());
        let new = Told { rm: rm.clone(), name: name.into(), token: AtomicU32::new(token), last, host };
        new.introduce(if told { self.va() } else { 0 });
        if told {
            self.told.get_or_init(|| new).token.store(token, Ordering::Release);
        }
    }

    /// Whether the kernel is told what the channel is given.
    pub fn is_told(&self) -> bool {
        self.told.get().is_some()
    }

    /// The channel is given a submission, which is in its ring in front of an entry.
    pub fn gives(&self, submission: u64, end: u32) {
        if let Some(told) = self.told.get() {
            told.gives(self.va(), submission, end);
        }
    }

    /// Somebody gives it something from now on who does not tell that.
    pub fn tells_no_more(&self) {
        if let Some(told) = self.told.get() {
            told.introduce(0);
        }
    }

    /// Whether a submission has finished. Whoever asks goes on with what it has left, so that the kernel is told.
    #[inline]
    pub fn has_come_to(&self, submission: u64) -> bool {
        let has = self.progress() >= submission;
        if has && let Some(told) = self.told.get() {
            told.saw(self.va(), submission);
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
