//! A channel and what has been given to it: ring, pushbuffer memory, fences.
//!
//! Everything submitted runs in order. Each submission ends with a release of its number to the timeline, so a fence
//! is a number and waiting is a comparison.

use super::commands::{Commands, Engine, MOST};
use super::fault::Watch;
use super::memory::{Cache, Doorbell, Memory, Writer};
use super::session::{Group, Session};
use crate::status::{During, RmResult, fail};
use std::sync::Arc;
use std::time::Duration;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::ctrl_a06c::*;
use tegrarm_abi::rm::ctrl_c36f::*;
use tegrarm_abi::rm::status::*;
use zerocopy::FromZeros;

/// Entries of a channel's ring.
pub const ENTRIES: u32 = 1024;
/// Where USERD lies in the area.
pub const USERD: u64 = ENTRIES as u64 * 8;
/// `GPPut` in USERD.
pub const GP_PUT: u64 = 0x8c;
const AREA: u64 = 64 << 10;
/// Pushbuffer words, QMDs and parameter banks of submissions in flight.
const COMMAND_BYTES: u64 = 1 << 20;
const SLOT_ALIGN: u64 = 256;
/// Room for the words of a submission at the start of its slot.
pub const WORD_BYTES: u64 = MOST as u64 * 4;

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

/// Room in the command memory for one submission.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    offset: u64,
    end: u64,
    /// GPU address of the room behind the words.
    pub data: u64,
}

/// A channel with its memory.
pub struct Queue {
    /// Declared first: the channel goes before the memory it uses.
    group: Group,
    area: Arc<Memory>,
    commands: Memory,
    doorbell: Arc<Doorbell>,
    timeline: Arc<Timeline>,
    watch: Arc<Watch>,
    token: u32,
    put: u32,
    /// Bytes ever taken from the command memory, which is used as a ring.
    head: u64,
    /// `head` after submission n, at index n modulo the ring's entries.
    heads: Box<[u64; ENTRIES as usize]>,
    last: u64,
    engine: Engine,
}

/// What rings a channel: shared memory that outlives the queue where somebody still uses it.
pub struct Ring {
    /// The ring at 0, USERD at [`USERD`].
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
    /// What RM says; nothing stays behind that the session's end does not take.
    pub fn open(session: &Arc<Session>, doorbell: &Arc<Doorbell>) -> RmResult<Queue> {
        let area = Memory::new(session, AREA, Cache::WriteCombined)?;
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
            commands: Memory::new(session, COMMAND_BYTES, Cache::WriteCombined)?,
            doorbell: doorbell.clone(),
            timeline: Arc::new(Timeline { memory: Arc::new(Memory::new(session, 4096, Cache::Cached)?) }),
            watch: Arc::new(Watch::new(session, notifier, compute, token.workSubmitToken & 0xffff)?),
            area: Arc::new(area),
            token: token.workSubmitToken,
            put: 0,
            head: 0,
            heads: Box::new([0; ENTRIES as usize]),
            last: 0,
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

    /// The channel itself, for who submits to it in its own way from now on.
    pub fn ring(&self) -> Ring {
        Ring { area: self.area.clone(), doorbell: self.doorbell.clone(), token: self.token, put: self.put }
    }

    /// Takes room for one submission with `data` bytes behind its words, waiting for earlier ones if need be.
    ///
    /// # Errors
    /// 0x1F when it can never fit; the channel's fault.
    #[inline]
    pub fn reserve(&mut self, data: u64) -> RmResult<Slot> {
        let need = (WORD_BYTES + data).next_multiple_of(SLOT_ALIGN);
        let mut start = self.head;
        let left = COMMAND_BYTES - start % COMMAND_BYTES;
        if left < need {
            start += left;
        }
        if !self.fits(start + need) {
            self.wait_for_room(start + need, need)?;
        }
        let offset = start % COMMAND_BYTES;
        Ok(Slot { offset, end: start + need, data: self.commands.va() + offset + WORD_BYTES })
    }

    /// Whether the command memory up to `end` and an entry of the ring are free.
    #[inline]
    fn fits(&self, end: u64) -> bool {
        let done = self.timeline.completed().min(self.last);
        end - self.heads[(done % u64::from(ENTRIES)) as usize] <= COMMAND_BYTES
            && self.last - done < u64::from(ENTRIES) - 1
    }

    #[cold]
    fn wait_for_room(&self, end: u64, need: u64) -> RmResult<()> {
        if need > COMMAND_BYTES / 2 {
            fail!(NV_ERR_INVALID_ARGUMENT, "a submission of {need:#x} bytes: at most {:#x}", COMMAND_BYTES / 2);
        }
        while !self.fits(end) && self.timeline.completed() < self.last {
            let oldest = self.timeline.completed() + 1;
            self.watch.wait(&self.timeline, oldest, Some(ROOM_DEADLINE), self.last)?;
        }
        Ok(())
    }

    /// Writes into a slot's room behind the words.
    ///
    /// # Errors
    /// 0x20 when it does not fit.
    #[inline]
    pub fn fill(&self, slot: &Slot, bytes: &[u8]) -> RmResult<()> {
        self.commands.write(slot.offset + WORD_BYTES, bytes)
    }

    /// Writes a submission's words, ordered behind work of the other engine, and gives it to the GPU. Returns its fence.
    #[inline]
    pub fn submit(&mut self, slot: &Slot, engine: Engine, words: impl FnOnce(&mut Commands<Writer<'_>>)) -> u64 {
        let fence = self.last + 1;
        let mut commands = Commands::new(self.commands.writer(slot.offset, MOST));
        if engine != self.engine {
            commands.wait_for_idle();
            self.engine = engine;
        }
        words(&mut commands);
        commands.release(self.timeline.va(), fence);
        let entry = entry(self.commands.va() + slot.offset, commands.len() as u64);
        self.area.write_u64(u64::from(self.put) * 8, entry);
        self.put = (self.put + 1) % ENTRIES;
        // The GPU may be reading the pointer already, for an earlier doorbell: the entry comes first.
        tegrarm_kmd::DeviceMem::barrier();
        self.area.write_u32(USERD + GP_PUT, self.put);
        self.doorbell.ring(self.token);
        (self.last, self.head) = (fence, slot.end);
        self.heads[(fence % u64::from(ENTRIES)) as usize] = slot.end;
        fence
    }
}

/// A GPFIFO entry: `words` at GPU address `at`, at the level of the channel itself.
#[inline]
pub fn entry(at: u64, words: u64) -> u64 {
    at | words << 42 | 1 << 41
}

/// How long a submission waits for room: longer than any work that is not stuck.
const ROOM_DEADLINE: Duration = Duration::from_secs(60);
