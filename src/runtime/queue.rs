//! A channel and what has been given to it: ring, pushbuffer memory, fences.
//!
//! Everything submitted runs in order. Each submission ends with a release of its number to the timeline, so a fence
//! is a number and waiting is a comparison.

use super::commands::{Commands, Engine, MOST};
use super::fault::Watch;
use super::memory::{Cache, Doorbell, Memory, Writer};
use super::place::{Place, Width};
use super::session::{Group, Session};
use crate::status::{During, RmResult};
use std::mem::offset_of;
use std::sync::Arc;
use std::time::Duration;
use tegrarm_abi::methods::host::*;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::ctrl_a06c::*;
use tegrarm_abi::rm::ctrl_c36f::*;
use tegrarm_abi::rm::usermode::AmpereAControlGPFifo;
use zerocopy::FromZeros;

/// Entries of a channel's ring.
pub const ENTRIES: u32 = 1024;
/// Bytes of a channel's ring.
pub const RING_BYTES: u64 = ENTRIES as u64 * NVC56F_GP_ENTRY__SIZE as u64;
/// Where USERD lies in the area: behind the ring.
const USERD: u64 = RING_BYTES;
/// `GPPut` in the area.
pub const GP_PUT: u64 = USERD + offset_of!(AmpereAControlGPFifo, GPPut) as u64;
const AREA: u64 = 64 << 10;
/// Room for the words of one submission.
const SLOT: u64 = MOST as u64 * 4;

/// Progress of the GPU: the number of the last submission that has finished.
pub struct Timeline {
    memory: Arc<Memory>,
}

impl Timeline {
    /// Its memory; the number is the first double word.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Its GPU address.
    #[inline]
    pub fn va(&self) -> u64 {
        self.memory.va()
    }

    /// The last finished submission.
    #[inline]
    pub fn completed(&self) -> u64 {
        self.memory.read_u64(0)
    }
}

/// A channel with its memory.
pub struct Queue {
    /// Declared first: the channel goes before the memory it uses.
    group: Group,
    area: Arc<Memory>,
    ring: Place,
    gp_put: Place,
    /// Words of submissions in flight: one slot for each entry of the ring.
    commands: Memory,
    doorbell: Arc<Doorbell>,
    timeline: Arc<Timeline>,
    watch: Arc<Watch>,
    token: u32,
    put: u32,
    last: u64,
    /// The newest submission that is known to have finished.
    done: u64,
    /// The ring has entries up to this submission, as far as is known.
    room: u64,
    engine: Engine,
}

/// Words that stay in memory, to be given to the GPU again and again: they begin with a wait for the other engine, which
/// is left out where there is nothing to wait for, and end with the release of a number.
pub struct Program {
    entry: u64,
    entry_without_wait: u64,
    number: Place,
}

impl Program {
    /// `len` words of the compute engine at GPU address `at`, `wait` of which are the wait; `number` is in them.
    ///
    /// # Errors
    /// 0x1E when the number is not aligned.
    pub fn new(at: u64, len: u64, wait: u64, number: Place) -> RmResult<Program> {
        number.check(Width::W8)?;
        Ok(Program { entry: entry(at, len), entry_without_wait: entry(at + wait * 4, len - wait), number })
    }
}

/// What rings a channel: shared memory that outlives the queue where somebody still uses it.
pub struct Ring {
    /// The ring at 0, `GPPut` at [`GP_PUT`].
    pub area: Arc<Memory>,
    /// The doorbell page.
    pub doorbell: Arc<Doorbell>,
    /// The channel's work submit token.
    pub token: u32,
    /// Entries written so far.
    pub put: u32,
}

impl Queue {
    /// Brings a channel up in a group of its own, with compute and copy engines.
    ///
    /// # Errors
    /// What RM says. What was made before the failure is freed with the session.
    pub fn open(session: &Arc<Session>, doorbell: &Arc<Doorbell>) -> RmResult<Queue> {
        let area = Arc::new(Memory::new(session, AREA, Cache::WriteCombined)?);
        let notifier = Memory::new(session, 4096, Cache::Cached)?;
        let group = Group::new(session)?;
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
        let compute = session.alloc_plain(channel, AMPERE_COMPUTE_B)?;
        session.alloc_plain(channel, AMPERE_DMA_COPY_B)?;
        let mut schedule = NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS { bEnable: 1, ..FromZeros::new_zeroed() };
        session.control(group.group, NVA06C_CTRL_CMD_GPFIFO_SCHEDULE, &mut schedule)?;
        let mut token = NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS::new_zeroed();
        session.control(channel, NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN, &mut token)?;
        Ok(Queue {
            group,
            commands: Memory::new(session, u64::from(ENTRIES) * SLOT, Cache::WriteCombined)?,
            doorbell: doorbell.clone(),
            timeline: Arc::new(Timeline { memory: Arc::new(Memory::new(session, 4096, Cache::Cached)?) }),
            watch: Arc::new(Watch::new(session, notifier, compute, token.workSubmitToken & 0xffff)?),
            ring: Place::of(&area, 0, RING_BYTES)?,
            gp_put: Place::of(&area, GP_PUT, 4)?,
            area,
            token: token.workSubmitToken,
            put: 0,
            last: 0,
            done: 0,
            room: u64::from(ENTRIES) - 1,
            engine: Engine::Compute,
        })
    }

    /// The GPU's progress.
    pub fn timeline(&self) -> &Arc<Timeline> {
        &self.timeline
    }

    /// Looks after the channel's health.
    pub fn watch(&self) -> &Arc<Watch> {
        &self.watch
    }

    /// The number of the last submission.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The handle of its channel group.
    pub fn group(&self) -> u32 {
        self.group.group
    }

    /// The engine that the last submission was for.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// The channel itself, for who submits to it in its own way from now on.
    pub fn ring(&self) -> Ring {
        Ring { area: self.area.clone(), doorbell: self.doorbell.clone(), token: self.token, put: self.put }
    }

    /// Writes a submission's words, ordered behind work of the other engine, and gives it to the GPU. Returns its fence.
    ///
    /// # Errors
    /// As [`Queue::wait_until_free_after`].
    pub fn submit(&mut self, engine: Engine, words: impl FnOnce(&mut Commands<Writer<'_>>)) -> RmResult<u64> {
        self.wait_until_free_after(0)?;
        let slot = (self.last + 1) % u64::from(ENTRIES) * SLOT;
        let mut commands = Commands::new(self.commands.writer(slot, MOST));
        if engine != self.engine {
            commands.wait_for_idle();
            self.engine = engine;
        }
        words(&mut commands);
        commands.release(self.timeline.va(), self.last + 1);
        let len = commands.len() as u64;
        Ok(self.give(entry(self.commands.va() + slot, len)))
    }

    /// Whether submission `fence` has finished and the ring has an entry for the next one.
    #[inline]
    pub fn is_free_after(&mut self, fence: u64) -> bool {
        fence <= self.done && self.last < self.room || self.look(fence)
    }

    /// Whether submission `fence` has finished.
    pub fn has_finished(&mut self, fence: u64) -> bool {
        self.look(0);
        fence <= self.done
    }

    /// Reads the timeline, and says whether submission `fence` has finished and the ring has room.
    #[cold]
    fn look(&mut self, fence: u64) -> bool {
        self.done = self.timeline.completed().min(self.last);
        self.room = self.done + u64::from(ENTRIES) - 1;
        fence <= self.done && self.last < self.room
    }

    /// Waits until submission `fence` has finished and the ring has an entry for the next one.
    ///
    /// # Errors
    /// The channel's fault; 0x65 after a minute.
    pub fn wait_until_free_after(&mut self, fence: u64) -> RmResult<()> {
        while !self.is_free_after(fence) {
            let wanted = fence.max(self.done + 1);
            self.watch.wait(&self.timeline, wanted, Some(ROOM_DEADLINE), self.last)?;
        }
        Ok(())
    }

    /// Gives the GPU words that lie in memory, when [`Queue::is_free_after`] their last submission. Returns the fence.
    #[inline(always)]
    pub fn submit_again(&mut self, program: &Program) -> u64 {
        program.number.write(Width::W8, 0, self.last + 1);
        if self.engine == Engine::Compute {
            return self.give(program.entry_without_wait);
        }
        self.engine = Engine::Compute;
        self.give(program.entry)
    }

    /// Entry, pointer, doorbell: the next submission. Returns its fence.
    #[inline(always)]
    fn give(&mut self, entry: u64) -> u64 {
        let at = self.put;
        self.put = (at + 1) % ENTRIES;
        announce(&self.ring, at.into(), entry, &self.gp_put, self.put.into());
        self.doorbell.ring(self.token);
        self.last += 1;
        self.last
    }
}

/// A GPFIFO entry: `words` at GPU address `at`, a multiple of 4. Its level is the one that CUDA uses on an Orin;
/// it matters to `TopLevelGet` alone.
#[inline]
pub fn entry(at: u64, words: u64) -> u64 {
    let high = NVC56F_GP_ENTRY1_LENGTH.put(words as u32)
        | NVC56F_GP_ENTRY1_LEVEL.put(NVC56F_GP_ENTRY1_LEVEL_SUBROUTINE)
        | NVC56F_GP_ENTRY1_GET_HI.put((at >> 32) as u32);
    u64::from(high) << 32 | at & 0xffff_ffff
}

/// Writes entry `at` of a ring, then the pointer to the next one. The doorbell is the caller's.
#[inline(always)]
pub fn announce(ring: &Place, at: u64, entry: u64, gp_put: &Place, next: u64) {
    ring.put_entry(at, entry);
    // The GPU may be reading the pointer already, for an earlier doorbell: the entry comes first.
    tegrarm_kmd::DeviceMem::barrier();
    gp_put.write(Width::W4, 0, next);
}

/// How long a submission waits for room: longer than any work that is not stuck.
const ROOM_DEADLINE: Duration = Duration::from_secs(60);
