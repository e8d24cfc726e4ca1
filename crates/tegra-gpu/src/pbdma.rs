//! PBDMA: the entries of the ring, the segments of the pushbuffer, their headers, and the unit that gets each method.

use super::compute;
use super::context::{SharedContext, Units};
use super::copy;
use super::fault::{self, DEVICE, GPCRC, GPENTRY, GPPTR, PBCRC, PBENTRY, PBSEG};
use super::host::Host;
use super::mem::{Accessor, Words};
use super::trace::Event;
use super::turn::{Flow, Turn};
use crc32fast::Hasher as Crc32;
use std::sync::atomic::Ordering;
use tegra_hw::Fault;
use tegrarm_abi::layout::offset_of;
use tegrarm_abi::methods::host::*;
use tegrarm_abi::rm::usermode::AmpereAControlGPFifo as Userd;

/// The first address that is too high for the host.
const VA_END: u64 = 1 << 40;
/// Methods below this offset belong to the host on any subchannel.
const HOST_METHODS: u32 = 0x100;
/// The subdevice id that nvgpu programs into every channel. All bits are set, so any non-zero mask selects it.
const SUBDEVICE: u32 = 0xfff;
/// Bit 31 of TopLevelGetHi: the main level has had a segment.
const TOP_LEVEL_GET_VALID: u64 = 1 << 63;
/// The number of words that are fetched at a time.
const FETCH: usize = 64;
/// The work units of one turn, which is about a millisecond of host methods.
const TURN: u32 = 16 * 1024;

/// A method sequence that still waits for data. It survives the end of a segment.
#[derive(Clone, Copy, Debug)]
struct Sequence {
    subchannel: u32,
    /// The method address in dwords.
    address: u32,
    left: u32,
    step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Increment,
    Stay,
    /// The address is incremented once and then stays.
    Once,
}

/// The segment that is being executed.
#[derive(Clone, Copy, Debug)]
struct Segment {
    va: u64,
    words: u32,
    next: u32,
    subroutine: bool,
    /// True if the segment was fetched only because the subdevice was selected.
    conditional: bool,
    fetched: [u32; FETCH],
    /// The first word in `fetched`, and the word behind the last one.
    window: (u32, u32),
}

/// The PBDMA state of a channel. Hardware keeps it in RAMFC while another channel runs.
pub(crate) struct Pbdma {
    /// True if a doorbell announced work that is not finished.
    active: bool,
    /// True if a method raised an interrupt on which the kernel does not act. The method would raise it again and
    /// again.
    halted: bool,
    put: u32,
    /// Whether the ring was empty when the channel last looked.
    empty: bool,
    segment: Option<Segment>,
    sequence: Option<Sequence>,
    /// The last segment, for PB_CRC.
    last: Option<(u64, u32)>,
    ring_crc: Crc32,
    /// The position in the main level's pushbuffer, after that level has had a segment.
    top_level: Option<u64>,
    mask: u32,
    stored_mask: u32,
    host: Host,
    units: Units,
}

impl Pbdma {
    pub(crate) fn new(context: SharedContext) -> Pbdma {
        Pbdma {
            active: false,
            halted: false,
            put: 0,
            empty: true,
            segment: None,
            sequence: None,
            last: None,
            ring_crc: Crc32::default(),
            top_level: None,
            mask: SUBDEVICE,
            stored_mask: SUBDEVICE,
            host: Host::default(),
            units: Units::new(context),
        }
    }

    /// Gives the channel a turn, and writes its progress to USERD. The result is true if anything was consumed or
    /// moved.
    pub(crate) fn turn(&mut self, turn: &Turn<'_>) -> Result<bool, Fault> {
        let progress = self.run(turn);
        turn.signals.busy.store(self.active, Ordering::Release);
        if !matches!(progress, Ok(false)) {
            self.write_back(turn);
        }
        progress
    }

    /// Runs the channel until it is idle or blocked or its turn is over.
    fn run(&mut self, turn: &Turn<'_>) -> Result<bool, Fault> {
        if turn.signals.rung.swap(false, Ordering::AcqRel) {
            self.active = !self.halted;
            self.put = Words(&turn.hw.userd).load_u32(offset_of!(Userd, GPPut));
        }
        let mut progress = false;
        self.units.begin(TURN);
        while self.active && self.units.left() > 0 && turn.runnable() {
            self.units.spend(1);
            if self.segment.is_none() {
                self.active = self.next_entry(turn)?;
                progress |= self.active;
                continue;
            }
            match self.next_word(turn)? {
                Flow::Done => progress = true,
                Flow::Yield => return Ok(true),
                Flow::Again(moved) => return Ok(progress || moved),
                Flow::Halt => {
                    (self.active, self.halted) = (false, true);
                    return Ok(true);
                }
            }
        }
        Ok(progress)
    }

    /// Takes one entry of the ring. The result is false if the ring is empty.
    fn next_entry(&mut self, turn: &Turn<'_>) -> Result<bool, Fault> {
        let hw = turn.hw;
        let get = hw.gp_get.load(Ordering::Acquire);
        if get == self.put {
            // A busy channel reads the pointer once more before it counts as idle.
            self.put = Words(&hw.userd).load_u32(offset_of!(Userd, GPPut));
        }
        if self.put >= hw.entries {
            let what =
                format!("GP_PUT {} of a ring with {} entries; GP_PUT counts modulo the ring", self.put, hw.entries);
            // After the next doorbell the channel reads the pointer again.
            return turn.interrupt(GPPTR, what).map(|()| false);
        }
        if get == self.put {
            self.empty = true;
            return Ok(false);
        }
        if std::mem::take(&mut self.empty)
            && let Some(speeds) = turn.config.speeds
        {
            turn.ptimer.submitted(speeds.launch_ns);
        }
        let entry = Words(&hw.ring).load_u64(get as usize * NVC56F_GP_ENTRY__SIZE as usize);
        turn.trace.emit(|| Event::GpEntry { channel: hw.id, index: get, entry });
        if let Some(queues) = turn.queues() {
            queues.takes(hw, get);
        }
        let next = (get + 1) & (hw.entries - 1);
        hw.gp_get.store(next, Ordering::Release);
        Words(&hw.userd).store_u32(offset_of!(Userd, GPGet), next);
        self.entry(turn, entry).map(|()| true)
    }

    fn entry(&mut self, turn: &Turn<'_>, entry: u64) -> Result<(), Fault> {
        let (low, high) = (entry as u32, (entry >> 32) as u32);
        let words = NVC56F_GP_ENTRY1_LENGTH.of(high);
        if words == 0 {
            return self.control(turn, low, NVC56F_GP_ENTRY1_OPCODE.of(high));
        }
        self.ring_crc.update(&entry.to_le_bytes());
        let va = u64::from(NVC56F_GP_ENTRY0_GET.of(low)) << NVC56F_GP_ENTRY0_GET.lsb
            | u64::from(NVC56F_GP_ENTRY1_GET_HI.of(high)) << 32;
        if va + 4 * u64::from(words) >= VA_END {
            let what = format!("segment {va:#x} of {words} words reaches the end of the 40-bit address space");
            return self.drop_entry(turn, what);
        }
        let conditional = NVC56F_GP_ENTRY0_FETCH.of(low) == NVC56F_GP_ENTRY0_FETCH_CONDITIONAL;
        if conditional && self.mask & SUBDEVICE == 0 {
            return Ok(());
        }
        if let Some(s) = self.sequence.filter(|_| conditional) {
            let what = format!("conditional segment {va:#x} begins inside a sequence with {} words to come", s.left);
            turn.interrupt(PBSEG, what)?;
        }
        // SYNC asks the GPU to wait for all earlier segments before the fetch. Segments are executed one by one anyway.
        let subroutine = NVC56F_GP_ENTRY1_LEVEL.of(high) == NVC56F_GP_ENTRY1_LEVEL_SUBROUTINE;
        self.last = Some((va, words));
        self.segment =
            Some(Segment { va, words, next: 0, subroutine, conditional, fetched: [0; FETCH], window: (0, 0) });
        Ok(())
    }

    /// Raises the interrupt for an invalid entry and drops the entry.
    fn drop_entry(&mut self, turn: &Turn<'_>, what: String) -> Result<(), Fault> {
        self.ring_crc = Crc32::default();
        turn.interrupt(GPENTRY, what)
    }

    fn control(&mut self, turn: &Turn<'_>, operand: u32, opcode: u32) -> Result<(), Fault> {
        match opcode {
            NVC56F_GP_ENTRY1_OPCODE_NOP => {}
            NVC56F_GP_ENTRY1_OPCODE_GP_CRC => {
                let have = std::mem::take(&mut self.ring_crc).finalize();
                if have != operand {
                    turn.interrupt(GPCRC, format_args!("entries give {have:#010x}, asked for {operand:#010x}"))?;
                }
            }
            NVC56F_GP_ENTRY1_OPCODE_PB_CRC => {
                let have = self.segment_crc(turn)?;
                self.units.spend(self.last.map_or(0, |(_, words)| u64::from(words) / 8));
                if have != operand {
                    turn.interrupt(PBCRC, format_args!("segment gives {have:#010x}, asked for {operand:#010x}"))?;
                }
            }
            _ => return self.drop_entry(turn, format!("control entry with opcode {opcode:#x}")),
        }
        Ok(())
    }

    /// The CRC of the previous segment. The segment is read again for it, because that is cheaper than computing the
    /// CRC of segments that nobody checks.
    fn segment_crc(&self, turn: &Turn<'_>) -> Result<u32, Fault> {
        let mut crc = Crc32::default();
        if let Some((va, words)) = self.last {
            let table = turn.table();
            let mem = Accessor::new(&table);
            let mut buffer = [0; 4096];
            let bytes = u64::from(words) * 4;
            let mut done = 0;
            while done < bytes {
                let n = (bytes - done).min(buffer.len() as u64);
                let part = &mut buffer[..n as usize];
                mem.read_bytes(va + done, part).map_err(turn.mmu(fault::HOST))?;
                crc.update(part);
                done += n;
            }
        }
        Ok(crc.finalize())
    }

    /// Writes the USERD words that hardware updates when a channel goes idle or is switched out.
    fn write_back(&self, turn: &Turn<'_>) {
        let end = |va: u64, words: u32| va + 4 * u64::from(words);
        let put = self.last.map_or(0, |(va, words)| end(va, words));
        let get = self.segment.as_ref().map_or(put, |s| end(s.va, s.next));
        let top = match &self.segment {
            Some(s) if !s.subroutine => Some(get),
            _ => self.top_level,
        };
        let top = top.map_or(0, |va| va | TOP_LEVEL_GET_VALID);
        let pairs = [
            (offset_of!(Userd, Put), offset_of!(Userd, PutHi), put),
            (offset_of!(Userd, Get), offset_of!(Userd, GetHi), get),
            (offset_of!(Userd, TopLevelGet), offset_of!(Userd, TopLevelGetHi), top),
        ];
        let userd = Words(&turn.hw.userd);
        for (low, high, value) in pairs {
            userd.store_u32(low, value as u32);
            userd.store_u32(high, (value >> 32) as u32);
        }
    }

    /// Executes the next word of the segment.
    fn next_word(&mut self, turn: &Turn<'_>) -> Result<Flow, Fault> {
        let Some(segment) = &mut self.segment else { return Ok(Flow::Done) };
        if segment.next == segment.words {
            if !segment.subroutine {
                self.top_level = Some(segment.va + 4 * u64::from(segment.words));
            }
            self.segment = None;
            return Ok(Flow::Done);
        }
        let word = segment.word(turn)?;
        let flow = match self.sequence {
            Some(sequence) => self.data(turn, sequence, word)?,
            None => self.header(turn, word)?,
        };
        if flow.executed()
            && let Some(segment) = &mut self.segment
        {
            segment.next += 1;
        }
        Ok(flow)
    }

    fn data(&mut self, turn: &Turn<'_>, s: Sequence, word: u32) -> Result<Flow, Fault> {
        let flow = self.method(turn, s.subchannel, s.address, word)?;
        if flow.executed() {
            self.sequence = s.after();
        }
        Ok(flow)
    }

    /// Executes a header: it starts a sequence, executes an immediate, or changes the decoder itself.
    fn header(&mut self, turn: &Turn<'_>, word: u32) -> Result<Flow, Fault> {
        let subchannel = NVC56F_DMA_METHOD_SUBCHANNEL.of(word);
        let address = NVC56F_DMA_METHOD_ADDRESS.of(word);
        let count = NVC56F_DMA_METHOD_COUNT.of(word);
        let step = match NVC56F_DMA_SEC_OP.of(word) {
            _ if word == NVC56F_DMA_NOP => return Ok(Flow::Done),
            NVC56F_DMA_SEC_OP_GRP0_USE_TERT => return self.subdevice(turn, word),
            NVC56F_DMA_SEC_OP_INC_METHOD => Step::Increment,
            NVC56F_DMA_SEC_OP_NON_INC_METHOD => Step::Stay,
            NVC56F_DMA_SEC_OP_ONE_INC => Step::Once,
            NVC56F_DMA_SEC_OP_IMMD_DATA_METHOD => {
                return self.method(turn, subchannel, address, NVC56F_DMA_IMMD_DATA.of(word));
            }
            NVC56F_DMA_SEC_OP_END_PB_SEGMENT => {
                self.end_segment();
                return Ok(Flow::Done);
            }
            op => {
                return illegal_header(turn, format!("header {word:#010x}: operation {op} is reserved"));
            }
        };
        if count == 0 {
            return Ok(Flow::Done);
        }
        let highest = match step {
            Step::Increment => address + count - 1,
            Step::Once => address + u32::from(count > 1),
            Step::Stay => address,
        };
        if highest > NVC56F_DMA_METHOD_ADDRESS.of(u32::MAX) {
            let what = format!("header {word:#010x}: method {:#x} and {count} words pass 0x3ffc", address * 4);
            return illegal_header(turn, what);
        }
        // A software method raises its interrupt at its header, before any data.
        if Self::software(subchannel, address * 4) && self.mask & SUBDEVICE != 0 {
            return software_method(turn, subchannel, address * 4);
        }
        self.sequence = Some(Sequence { subchannel, address, left: count, step });
        Ok(Flow::Done)
    }

    /// Executes a header of group 0: the subdevice masks.
    fn subdevice(&mut self, turn: &Turn<'_>, word: u32) -> Result<Flow, Fault> {
        let mask = NVC56F_DMA_SUBDEVICE_MASK.of(word);
        match NVC56F_DMA_SET_SUBDEVICE_MASK_OPCODE.of(word) {
            NVC56F_DMA_SET_SUBDEVICE_MASK_OPCODE_VALUE => self.mask = mask,
            NVC56F_DMA_STORE_SUBDEVICE_MASK_OPCODE_VALUE => self.stored_mask = mask,
            NVC56F_DMA_USE_SUBDEVICE_MASK_OPCODE_VALUE => self.mask = self.stored_mask,
            _ => return illegal_header(turn, format!("header {word:#010x}: no such operation in group 0")),
        }
        if self.mask & SUBDEVICE == 0 && self.segment.as_ref().is_some_and(|s| s.conditional) {
            self.end_segment();
        }
        Ok(Flow::Done)
    }

    /// Ends the segment, so that the words behind the current one are not decoded.
    fn end_segment(&mut self) {
        if let Some(segment) = &mut self.segment {
            segment.next = segment.words - 1;
        }
    }

    /// Whether a method belongs neither to the host nor to an engine.
    fn software(subchannel: u32, offset: u32) -> bool {
        subchannel > 4 && (offset >= HOST_METHODS || offset == NVC56F_SET_OBJECT)
    }

    /// Routes a method: the first 256 bytes belong to the host, and the rest to the engine of the subchannel.
    fn method(&mut self, turn: &Turn<'_>, subchannel: u32, address: u32, data: u32) -> Result<Flow, Fault> {
        if self.mask & SUBDEVICE == 0 {
            return Ok(Flow::Done);
        }
        let offset = address * 4;
        let host = offset < HOST_METHODS && offset != NVC56F_SET_OBJECT;
        match subchannel {
            _ if host => self.host.method(turn, offset, data),
            0..=3 => compute::method(&mut self.units, turn, subchannel, offset, data),
            4 => copy::method(&mut self.units, turn, offset, data),
            _ => software_method(turn, subchannel, offset),
        }
    }
}

fn illegal_header(turn: &Turn<'_>, what: String) -> Result<Flow, Fault> {
    turn.interrupt(PBENTRY, what).map(|()| Flow::Done)
}

fn software_method(turn: &Turn<'_>, subchannel: u32, offset: u32) -> Result<Flow, Fault> {
    let what = format!("method {offset:#x} on software subchannel {subchannel}");
    turn.interrupt(DEVICE, what).map(|()| Flow::Done)
}

impl Segment {
    /// The next word. Words are fetched in pieces that end at page boundaries, so that a fault names its page and comes
    /// after all words before that page.
    fn word(&mut self, turn: &Turn<'_>) -> Result<u32, Fault> {
        let (first, end) = self.window;
        if !(first..end).contains(&self.next) {
            let va = self.va + 4 * u64::from(self.next);
            let to_page_end = (4096 - va % 4096) / 4;
            let n = (FETCH as u64).min(to_page_end).min(u64::from(self.words - self.next)) as usize;
            let mut bytes = [0; 4 * FETCH];
            let table = turn.table();
            Accessor::new(&table).read_bytes(va, &mut bytes[..4 * n]).map_err(turn.mmu(fault::HOST))?;
            for (word, raw) in self.fetched.iter_mut().zip(bytes.as_chunks::<4>().0) {
                *word = u32::from_le_bytes(*raw);
            }
            self.window = (self.next, self.next + n as u32);
        }
        Ok(self.fetched[(self.next - self.window.0) as usize])
    }
}

impl Sequence {
    /// The state of the sequence after one data word.
    fn after(self) -> Option<Sequence> {
        let left = self.left - 1;
        let (address, step) = match self.step {
            Step::Increment => (self.address + 1, Step::Increment),
            Step::Once => (self.address + 1, Step::Stay),
            Step::Stay => (self.address, Step::Stay),
        };
        (left > 0).then_some(Sequence { address, left, step, ..self })
    }
}
