//! A channel and its work: the ring, the memory of the pushbuffer, and fences.
//!
//! All submissions run in order. Each ends with the release of its number to the timeline. So a fence is a number, and
//! a wait compares two numbers.

pub mod backoff;
pub mod fence_thread;
pub mod lost_work;
pub mod profile;
pub mod stamps;
pub mod timeline;

use crate::runtime::channel::profile::{Records, What};
use crate::runtime::channel::timeline::{Host, Timeline};
use crate::runtime::commands::{Commands, Engine, SUBMIT_WORDS};
use crate::runtime::fault::diagnostics::Diagnostics;
use crate::runtime::fault::{Watch, says_stopped};
use crate::runtime::memory::doorbell::Doorbell;
use crate::runtime::memory::place::{Place, Width};
use crate::runtime::memory::session::{Group, Session};
use crate::runtime::memory::{Cache, Memory, Writer};
use std::mem::offset_of;
use std::sync::Arc;
use std::time::Duration;
use tegrarm_abi::methods::host::*;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::ctrl_channels::*;
use tegrarm_abi::rm::ctrl_others::{NV906F_CTRL_CMD_RESET_CHANNEL, NV906F_CTRL_CMD_RESET_CHANNEL_PARAMS};
use tegrarm_abi::rm::usermode::AmpereAControlGPFifo;
use tegrarm_kmd::Tally;
use tegrarm_rm::rm::Rm;
use tegrarm_rm::status::{During, RmResult};
use zerocopy::FromZeros;

/// The number of entries of a channel's ring.
pub const ENTRIES: u32 = 1024;
/// The number of bytes of a channel's ring.
pub const RING_BYTES: u64 = ENTRIES as u64 * NVC56F_GP_ENTRY__SIZE as u64;
/// The place of USERD in the area, after the ring.
const USERD: u64 = RING_BYTES;
/// The place of `GPPut` in the area.
pub const GP_PUT: u64 = USERD + offset_of!(AmpereAControlGPFifo, GPPut) as u64;
const AREA: u64 = 64 << 10;
/// The position of a queue's generation in its number.
const GENERATION: u32 = 48;
/// The number of bytes for the words of one submission.
const SLOT: u64 = SUBMIT_WORDS as u64 * 4;

/// The engines that a channel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Compute and copy, which share a runlist.
    Compute,
    /// A copy engine alone. It works at the same time as the others if the GPU has one that is separate.
    Copy,
}

/// The properties of a new channel: its engines, and its share of the GPU's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The engines.
    pub kind: Kind,
    /// How often the channel occurs in the runlist (`NVA06C_CTRL_INTERLEAVE_LEVEL_*`). `None` keeps the kernel's
    /// default.
    pub level: Option<u32>,
    /// The time slice in microseconds. `None` keeps the kernel's default.
    pub timeslice: Option<u32>,
}

impl Plan {
    /// Both engines, and the kernel's defaults.
    pub const PLAIN: Plan = Plan { kind: Kind::Compute, level: None, timeslice: None };
}

/// A channel and its memory.
pub struct Channel {
    /// It is declared first, because the channel must end before the memory that it uses.
    pub(super) group: Group,
    area: Arc<Memory>,
    ring: Place,
    gp_put: Place,
    /// The words of submissions in flight. Each entry of the ring has one slot.
    commands: Memory,
    doorbell: Arc<Doorbell>,
    timeline: Arc<Timeline>,
    watch: Arc<Watch>,
    /// The word of the watch, which every launch reads.
    status: Place,
    token: u32,
    put: u32,
    generation: u64,
    last: u64,
    /// The newest submission that is known to have finished.
    done: u64,
    /// The ring is known to have entries for submissions up to this one.
    room: u64,
    engine: Engine,
    /// The records of start and end, while a profile runs.
    records: Option<Records>,
    /// The launches of all queues of the process.
    launches: Tally,
    /// Whether the last submission was for compute, and no profile runs and nobody hears of submissions, so that words in memory can be
    /// submitted as is.
    is_plain: bool,
}

/// Words that stay in memory and are submitted again and again. They begin with a wait for the other engine, which is
/// left out if there is nothing to wait for. They end with the release of a number.
pub struct Program {
    entry: u64,
    entry_without_wait: u64,
    number: Place,
}

impl Program {
    /// Describes `len` words of the compute engine at GPU address `at`. The first `wait` of them are the wait, and
    /// `number` is the place of the number among them.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_ADDRESS` if the number is not aligned.
    pub fn new(at: u64, len: u64, wait: u64, number: Place) -> RmResult<Program> {
        number.check(Width::W8)?;
        Ok(Program { entry: entry(at, len), entry_without_wait: entry(at + wait * 4, len - wait), number })
    }
}

/// Words of several commands that stay in memory, and that a channel can have as often as it likes: they never change.
pub struct Words {
    /// Their GPU address.
    pub at: u64,
    /// Their number.
    pub len: u64,
    /// How many of the first ones wait for the other engine.
    pub wait: u64,
    /// The engine of the first command.
    pub first: Engine,
    /// The engine of the last command.
    pub last: Engine,
    /// How many launches there are among the commands.
    pub launches: u64,
}

/// The parts of a channel that a submission uses. They are shared memory, which exists for as long as it is used, even
/// after the queue.
pub struct Ring {
    /// The memory with the ring at 0 and `GPPut` at [`GP_PUT`].
    pub area: Arc<Memory>,
    /// The doorbell page.
    pub doorbell: Arc<Doorbell>,
    /// The channel's work submit token.
    pub token: u32,
    /// The number of entries written so far.
    pub put: u32,
}

impl Channel {
    /// Opens a channel in its own group.
    ///
    /// # Errors
    /// An error that RM gives. The objects that were made before are freed with the session.
    pub fn open(
        session: &Arc<Session>,
        doorbell: &Arc<Doorbell>,
        plan: Plan,
        diagnostics: &Arc<Diagnostics>,
    ) -> RmResult<Channel> {
        Channel::go_on(session, doorbell, plan, diagnostics, &Arc::new(Timeline::new(session)?), 0)
    }

    /// Opens a channel that continues after another one, at submission `last` of its timeline.
    ///
    /// # Errors
    /// Those of [`Channel::open`].
    pub fn go_on(
        session: &Arc<Session>,
        doorbell: &Arc<Doorbell>,
        plan: Plan,
        diagnostics: &Arc<Diagnostics>,
        timeline: &Arc<Timeline>,
        last: u64,
    ) -> RmResult<Channel> {
        let area = Arc::new(Memory::new(session, AREA, Cache::WriteCombined)?);
        let notifier = Memory::new(session, 4096, Cache::Cached)?;
        let engine = if plan.kind == Kind::Compute { NV2080_ENGINE_TYPE_GRAPHICS } else { session.copy_engine()? };
        let mut group = Group::new(session, engine)?;
        share_time(session, &group, plan)?;
        let zeroed = NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS::new_zeroed();
        let mut params = NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS {
            hObjectError: notifier.handle(),
            hObjectBuffer: area.handle(),
            gpFifoOffset: area.va(),
            gpFifoEntries: ENTRIES,
            hContextShare: group.share,
            ..zeroed
        };
        (params.hUserdMemory[0], params.userdOffset[0]) = (area.handle(), USERD);
        let channel = session.alloc(group.group, AMPERE_CHANNEL_GPFIFO_A, params).during(|| "opening the channel")?;
        group.channel = channel;
        let compute = match plan.kind {
            Kind::Compute => Some(session.alloc_plain(channel, AMPERE_COMPUTE_B)?),
            Kind::Copy => None,
        };
        session.alloc_plain(channel, AMPERE_DMA_COPY_B)?;
        let mut schedule = NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS { bEnable: 1, ..FromZeros::new_zeroed() };
        session.control(group.group, NVA06C_CTRL_CMD_GPFIFO_SCHEDULE, &mut schedule)?;
        let mut token = NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS::new_zeroed();
        session.control(channel, NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN, &mut token)?;
        let number = token.workSubmitToken & 0xffff;
        let watch = Arc::new(Watch::new(session, notifier, compute, number, timeline, diagnostics)?);
        Ok(Channel {
            group,
            commands: Memory::new(session, u64::from(ENTRIES) * SLOT, Cache::WriteCombined)?,
            doorbell: doorbell.clone(),
            timeline: timeline.clone(),
            status: watch.status_word().clone(),
            watch,
            ring: Place::of(&area, 0, RING_BYTES)?,
            gp_put: Place::of(&area, GP_PUT, 4)?,
            area,
            token: token.workSubmitToken,
            put: 0,
            generation: timeline.next_channel() << GENERATION,
            last,
            done: last,
            room: last + u64::from(ENTRIES) - 1,
            engine: if plan.kind == Kind::Compute { Engine::Compute } else { Engine::Copy },
            records: None,
            launches: session.rm().launches().clone(),
            is_plain: plan.kind == Kind::Compute,
        })
    }

    /// Tells the kernel how the channel is named, and from now on what it is given, if `told` says that the kernel wants to know.
    pub fn introduce(&mut self, rm: &Arc<Rm>, host: &Arc<Host>, name: &str, told: bool) {
        self.timeline.introduce(rm, host, (self.token, name), told);
        self.is_plain &= !told;
    }

    /// Whether words in memory can be submitted as is after a submission for an engine.
    fn is_plain_after(&self, engine: Engine) -> bool {
        engine == Engine::Compute && self.records.is_none() && !self.timeline.is_told()
    }

    /// Stops the channel as a fault does, whatever the GPU executes.
    ///
    /// # Errors
    /// An error that RM gives.
    pub fn stop(&self, session: &Session) -> RmResult<()> {
        let mut params = NV906F_CTRL_CMD_RESET_CHANNEL_PARAMS::new_zeroed();
        session.control(self.group.channel, NV906F_CTRL_CMD_RESET_CHANNEL, &mut params)
    }

    /// The GPU's progress.
    pub fn timeline(&self) -> &Arc<Timeline> {
        &self.timeline
    }

    /// The watch, which knows whether the channel was stopped.
    pub fn watch(&self) -> &Arc<Watch> {
        &self.watch
    }

    /// Whether the channel was stopped.
    #[inline(always)]
    pub fn is_stopped(&self) -> bool {
        says_stopped(&self.status)
    }

    /// Fails with the fault if the channel was stopped.
    ///
    /// # Errors
    /// Those of [`Watch::check`].
    pub fn check(&self) -> RmResult<()> {
        if self.is_stopped() { self.watch.check() } else { Ok(()) }
    }

    /// The number of the last submission.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// A number that changes when another queue takes the place of this one after a fault. Its bits are above those of small numbers.
    #[inline(always)]
    pub fn generation(&self) -> u64 {
        self.generation
    }
    /// The engine that the last submission was for.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// Counts launches that a caller submits by itself.
    #[inline]
    pub fn count_launches(&self, launches: u64) {
        self.launches.add(launches);
    }

    /// The parts of the channel, for a caller that submits to it by itself from now on. Nobody hears of that.
    pub fn ring(&self) -> Ring {
        self.timeline.tells_no_more();
        Ring { area: self.area.clone(), doorbell: self.doorbell.clone(), token: self.token, put: self.put }
    }

    /// Writes the words of a submission and submits them, ordered after work of the other engine. Returns the fence.
    ///
    /// # Errors
    /// Those of [`Channel::wait_until_free_after`].
    pub fn submit(&mut self, engine: Engine, words: impl FnOnce(&mut Commands<Writer<'_>>)) -> RmResult<u64> {
        self.wait_until_free_after(0)?;
        let slot = (self.last + 1) % u64::from(ENTRIES) * SLOT;
        let mut commands = Commands::new(self.commands.writer(slot, SUBMIT_WORDS));
        if engine != self.engine {
            commands.wait_for_idle();
            self.engine = engine;
            self.is_plain = self.is_plain_after(engine);
        }
        words(&mut commands);
        let fence = self.last + 1;
        commands.release(self.timeline.va(), fence);
        let len = commands.len() as u64;
        Ok(self.give_and_tell(entry(self.commands.va() + slot, len), fence))
    }

    /// Whether submission `fence` has finished and the ring has an entry for the next submission.
    #[inline]
    pub fn is_free_after(&mut self, fence: u64) -> bool {
        fence <= self.done && self.last < self.room || self.look(fence)
    }

    /// Whether submission `fence` has finished.
    pub fn has_finished(&mut self, fence: u64) -> bool {
        self.look(0);
        fence <= self.done
    }

    /// Reads the timeline. Returns whether submission `fence` has finished and the ring has room.
    #[cold]
    fn look(&mut self, fence: u64) -> bool {
        self.done = self.timeline.progress().min(self.last);
        self.room = self.done + u64::from(ENTRIES) - 1;
        fence <= self.done && self.last < self.room
    }

    /// Waits until submission `fence` has finished and the ring has an entry for the next submission.
    ///
    /// # Errors
    /// The channel's fault, and `NV_ERR_TIMEOUT` after a minute.
    pub fn wait_until_free_after(&mut self, fence: u64) -> RmResult<()> {
        while !self.is_free_after(fence) {
            let wanted = fence.max(self.done + 1);
            self.watch.wait(&self.timeline, wanted, Some(ROOM_DEADLINE), self.last)?;
        }
        Ok(())
    }

    /// Whether the last submission was for compute, no profile runs, and nobody hears of submissions.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Submits words that lie in memory, if [`Channel::is_plain`] is true, and [`Channel::is_free_after`] is true for their last
    /// submission. Returns the fence.
    #[inline(always)]
    pub fn submit_plain(&mut self, program: &Program) -> u64 {
        let fence = self.last + 1;
        program.number.write(Width::W8, 0, fence);
        self.launches.add(1);
        self.give(program.entry_without_wait, fence)
    }

    /// Submits words that lie in memory, if [`Channel::is_free_after`] is true for their last submission. They launch the
    /// descriptor at GPU address `launch`, which is that of the kernel `name`. Returns the fence.
    ///
    /// # Errors
    /// Those of [`Channel::work`].
    pub fn submit_again(&mut self, program: &Program, launch: u64, name: impl FnOnce() -> String) -> RmResult<u64> {
        if self.is_plain {
            return Ok(self.submit_plain(program));
        }
        self.launches.add(1);
        if self.records.is_some() {
            return self.work(Engine::Compute, What::Kernel { name: name() }, |commands| {
                commands.launch(launch);
            });
        }
        let fence = self.last + 1;
        program.number.write(Width::W8, 0, fence);
        (self.engine, self.is_plain) = (Engine::Compute, self.is_plain_after(Engine::Compute));
        Ok(self.give_and_tell(program.entry, fence))
    }

    /// Submits words that lie in memory. Returns the fence. It is the second number of two, because a number in the words would change.
    ///
    /// # Errors
    /// Those of [`Channel::wait_until_free_after`].
    pub fn submit_words(&mut self, words: &Words) -> RmResult<u64> {
        // The ring needs room for two entries.
        self.wait_until_free_after((self.last + 3).saturating_sub(ENTRIES.into()))?;
        let skipped = if self.engine == words.first { words.wait } else { 0 };
        (self.engine, self.is_plain) = (words.last, self.is_plain_after(words.last));
        self.launches.add(words.launches);
        let number = self.last + 1;
        self.give_and_tell(entry(words.at + skipped * 4, words.len - skipped), number);
        self.submit(words.last, |_| {})
    }

    /// Writes the words of a piece of work and submits them, between two stamps if a profile runs. Returns the fence.
    ///
    /// # Errors
    /// Those of [`Channel::wait_until_free_after`].
    pub fn work(&mut self, engine: Engine, what: What, words: impl FnOnce(&mut Commands<Writer<'_>>)) -> RmResult<u64> {
        let Some(before) = self.records.as_ref().map(Records::room) else { return self.submit(engine, words) };
        self.wait_until_free_after(before)?;
        let Some(mut records) = self.records.take() else { return self.submit(engine, words) };
        let [start, end] = records.next(self.timeline.progress());
        let submission = self.submit(engine, |commands| {
            commands.stamp(start, 0);
            words(commands);
            commands.stamp(end, 0);
        });
        if let Ok(submission) = submission {
            records.given(submission, what);
        }
        self.record(Some(records));
        submission
    }

    /// Sets the records for the start and the end of later work. `None` stops the recording.
    pub fn record(&mut self, records: Option<Records>) {
        self.records = records;
        self.is_plain = self.is_plain_after(self.engine);
    }

    /// Stops the recording and returns the records.
    pub fn take_records(&mut self) -> Option<Records> {
        self.records.take()
    }

    /// The present records.
    pub fn records(&mut self) -> Option<&mut Records> {
        self.records.as_mut()
    }

    /// The same, and before that tells who hears of submissions.
    fn give_and_tell(&mut self, entry: u64, fence: u64) -> u64 {
        self.timeline.gives(fence, (self.put + 1) % ENTRIES);
        self.give(entry, fence)
    }

    /// Makes the next submission, whose number is `fence`: writes the entry and the pointer, and rings the doorbell.
    /// Returns the fence. The caller has the number in a register already, which the barriers here would not keep.
    #[inline(always)]
    fn give(&mut self, entry: u64, fence: u64) -> u64 {
        let at = self.put;
        self.put = (at + 1) % ENTRIES;
        announce(&self.ring, at.into(), entry, &self.gp_put, self.put.into());
        self.doorbell.ring(self.token);
        self.last = fence;
        fence
    }
}

/// Sets how often the group gets its turn, and for how long.
fn share_time(session: &Session, group: &Group, plan: Plan) -> RmResult<()> {
    if let Some(tsgInterleaveLevel) = plan.level {
        let mut p = NVA06C_CTRL_INTERLEAVE_LEVEL_PARAMS { tsgInterleaveLevel };
        session.control(group.group, NVA06C_CTRL_CMD_SET_INTERLEAVE_LEVEL, &mut p)?;
    }
    if let Some(us) = plan.timeslice {
        let mut p = NVA06C_CTRL_SET_TIMESLICE_PARAMS { timesliceUs: us.into() };
        session.control(group.group, NVA06C_CTRL_CMD_SET_TIMESLICE, &mut p)?;
    }
    Ok(())
}

/// A GPFIFO entry for `words` at `at`, a multiple of 4. Its level, which only changes `TopLevelGet`, is CUDA's on Orin.
#[inline]
pub fn entry(at: u64, words: u64) -> u64 {
    let high = NVC56F_GP_ENTRY1_LENGTH.put(words as u32)
        | NVC56F_GP_ENTRY1_LEVEL.put(NVC56F_GP_ENTRY1_LEVEL_SUBROUTINE)
        | NVC56F_GP_ENTRY1_GET_HI.put((at >> 32) as u32);
    u64::from(high) << 32 | at & 0xffff_ffff
}

/// Writes entry `at` of a ring, and then the pointer to the next entry. The caller rings the doorbell.
#[inline(always)]
pub fn announce(ring: &Place, at: u64, entry: u64, gp_put: &Place, next: u64) {
    ring.put_entry(at, entry);
    // The GPU may be reading the pointer already, because of an earlier doorbell, so the entry is written first.
    tegrarm_kmd::DeviceMem::barrier();
    gp_put.write(Width::W4, 0, next);
}

/// The time for which a submission waits for room. It is longer than any work that is not stuck.
const ROOM_DEADLINE: Duration = Duration::from_secs(60);
