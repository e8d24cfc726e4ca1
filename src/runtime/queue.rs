//! A channel and what has been given to it: ring, pushbuffer memory, fences.
//!
//! Everything submitted runs in order. Each submission ends with a release of its number to the timeline, so a fence
//! is a number and waiting is a comparison.

use super::commands::{Commands, Engine, MOST};
use super::fault::Watch;
use super::memory::{Cache, Doorbell, Memory};
use super::session::Session;
use crate::status::{During, RmResult, fail};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::classes::*;
use tegrarm_abi::rm::ctrl_a06c::*;
use tegrarm_abi::rm::ctrl_c36f::*;
use tegrarm_abi::rm::status::*;
use zerocopy::FromZeros;

const ENTRIES: u32 = 1024;
const USERD: u64 = ENTRIES as u64 * 8;
/// `GPPut` in USERD.
const GP_PUT: u64 = 0x8c;
const AREA: u64 = 64 << 10;
/// Pushbuffer words, QMDs and parameter banks of submissions in flight.
const COMMAND_BYTES: u64 = 1 << 20;
const SLOT_ALIGN: u64 = 256;
/// Room for the words of a submission at the start of its slot.
pub const WORD_BYTES: u64 = MOST as u64 * 4;

/// Progress of the GPU: the number of the last submission that has finished.
pub struct Timeline {
    memory: Memory,
}

impl Timeline {
    /// The last finished submission.
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

struct InFlight {
    fence: u64,
    end: u64,
}

/// A channel with its memory.
pub struct Queue {
    area: Memory,
    commands: Memory,
    doorbell: Doorbell,
    timeline: Arc<Timeline>,
    watch: Arc<Watch>,
    token: u32,
    put: u32,
    /// Bytes ever taken from the command memory, and given back; the memory is used as a ring.
    head: u64,
    tail: u64,
    in_flight: VecDeque<InFlight>,
    last: u64,
    engine: Engine,
}

impl Queue {
    /// Brings a channel up, with compute and copy engines.
    ///
    /// # Errors
    /// What RM says; nothing stays behind that the session's end does not take.
    pub fn open(session: &Arc<Session>) -> RmResult<Queue> {
        let area = Memory::new(session, AREA, Cache::WriteCombined)?;
        let notifier = Memory::new(session, 4096, Cache::Cached)?;
        let zeroed = NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS::new_zeroed();
        let mut params = NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS {
            hObjectError: notifier.handle(),
            hObjectBuffer: area.handle(),
            gpFifoOffset: area.va(),
            gpFifoEntries: ENTRIES,
            hContextShare: session.share,
            ..zeroed
        };
        (params.hUserdMemory[0], params.userdOffset[0]) = (area.handle(), USERD);
        let channel = session.alloc(session.group, AMPERE_CHANNEL_GPFIFO_A, params).during(|| "opening the channel")?;
        let compute = session.alloc_plain(channel, AMPERE_COMPUTE_B)?;
        session.alloc_plain(channel, AMPERE_DMA_COPY_B)?;
        let mut schedule = NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS { bEnable: 1, ..FromZeros::new_zeroed() };
        session.control(session.group, NVA06C_CTRL_CMD_GPFIFO_SCHEDULE, &mut schedule)?;
        let mut token = NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS::new_zeroed();
        session.control(channel, NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN, &mut token)?;
        Ok(Queue {
            commands: Memory::new(session, COMMAND_BYTES, Cache::WriteCombined)?,
            doorbell: Doorbell::map(session)?,
            timeline: Arc::new(Timeline { memory: Memory::new(session, 4096, Cache::Cached)? }),
            watch: Arc::new(Watch::new(session, notifier, compute, token.workSubmitToken & 0xffff)?),
            area,
            token: token.workSubmitToken,
            put: 0,
            head: 0,
            tail: 0,
            in_flight: VecDeque::with_capacity(ENTRIES as usize),
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

    /// Takes room for one submission with `data` bytes behind its words, waiting for earlier ones if need be.
    ///
    /// # Errors
    /// 0x1F when it can never fit; the channel's fault.
    pub fn reserve(&mut self, data: u64) -> RmResult<Slot> {
        let need = (WORD_BYTES + data).next_multiple_of(SLOT_ALIGN);
        if need > COMMAND_BYTES / 2 {
            fail!(NV_ERR_INVALID_ARGUMENT, "a submission of {need:#x} bytes: at most {:#x}", COMMAND_BYTES / 2);
        }
        let mut start = self.head;
        let left = COMMAND_BYTES - start % COMMAND_BYTES;
        if left < need {
            start += left;
        }
        self.retire();
        while start + need - self.tail > COMMAND_BYTES || self.in_flight.len() as u32 >= ENTRIES - 1 {
            let Some(oldest) = self.in_flight.front() else { break };
            self.watch.wait(&self.timeline, oldest.fence, Some(ROOM_DEADLINE), self.last)?;
            self.retire();
        }
        let offset = start % COMMAND_BYTES;
        Ok(Slot { offset, end: start + need, data: self.commands.va() + offset + WORD_BYTES })
    }

    fn retire(&mut self) {
        let completed = self.timeline.completed();
        while let Some(done) = self.in_flight.front().filter(|f| f.fence <= completed) {
            self.tail = done.end;
            self.in_flight.pop_front();
        }
        if self.in_flight.is_empty() {
            self.tail = self.head;
        }
    }

    /// Writes into a slot's room behind the words.
    ///
    /// # Errors
    /// 0x20 when it does not fit.
    pub fn fill(&self, slot: &Slot, offset: u64, bytes: &[u8]) -> RmResult<()> {
        self.commands.write(slot.offset + WORD_BYTES + offset, bytes)
    }

    /// The start of a submission for an engine: ordered behind work of the other one.
    pub fn begin(&mut self, engine: Engine) -> Commands {
        let mut commands = Commands::default();
        if engine != self.engine {
            commands.wait_for_idle();
            self.engine = engine;
        }
        commands
    }

    /// Ends a submission and gives it to the GPU. Returns its fence.
    ///
    /// # Errors
    /// None of its own; the words have been checked to fit.
    pub fn submit(&mut self, slot: &Slot, mut commands: Commands) -> RmResult<u64> {
        let fence = self.last + 1;
        commands.release(self.timeline.memory.va(), fence);
        let words = commands.words();
        self.commands.write_words(slot.offset, words)?;
        let at = self.commands.va() + slot.offset;
        let entry = at | ((words.len() as u64) << 42) | (1 << 41);
        self.area.write_u64(u64::from(self.put) * 8, entry);
        self.put = (self.put + 1) % ENTRIES;
        tegrarm_kmd::DeviceMem::barrier();
        self.area.write_u32(USERD + GP_PUT, self.put);
        self.doorbell.ring(self.token);
        (self.last, self.head) = (fence, slot.end);
        self.in_flight.push_back(InFlight { fence, end: slot.end });
        Ok(fence)
    }
}

/// How long a submission waits for room: longer than any work that is not stuck.
const ROOM_DEADLINE: Duration = Duration::from_secs(60);
