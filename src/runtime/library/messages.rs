//! The messages of kernels: records in a ring in device memory. Kernels write at its head, and the CPU reads at its tail.

use super::state::ring as at;
use crate::runtime::memory::place::{Place, Width};
use crate::runtime::memory::session::Session;
use crate::runtime::memory::{Cache, Memory};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use tegrarm_rm::status::{During, RmResult};

/// One call of `printf`, not yet formatted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The format, without its NUL.
    pub format: Vec<u8>,
    /// The arguments. Each is at a multiple of its size.
    pub arguments: Vec<u8>,
    /// The strings of all `%s`, in order, each with its NUL.
    pub strings: Vec<u8>,
}

/// The messages since the last call.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Printed {
    /// The records, in the order in which kernels began them.
    pub records: Vec<Record>,
    /// How many calls were lost, because the ring was full or a fault stopped them.
    pub lost: u64,
}

impl Printed {
    /// Whether there are neither messages nor lost calls.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.lost == 0
    }
}

/// The ring of one device.
pub struct Ring {
    words: Memory,
    state: Arc<Memory>,
    tail: Place,
    /// How many of the lost calls were reported.
    told: u32,
}

impl Ring {
    /// Makes a ring of `bytes`, which is a power of two, and writes its address into the state. No kernel may print during this.
    ///
    /// # Errors
    /// NO_MEMORY if there is not enough memory. The state does not change then.
    pub fn new(session: &Arc<Session>, state: &Arc<Memory>, bytes: u64) -> RmResult<Ring> {
        let during = || format!("a buffer of {bytes} bytes for printf");
        let words = Memory::new(session, bytes, Cache::Cached).during(during)?;
        state.zero(at::WORDS, at::TAIL + 8 - at::WORDS)?;
        state.write(at::WORDS, &words.va().to_le_bytes())?;
        state.write(at::MASK, &((bytes / 4 - 1) as u32).to_le_bytes())?;
        Ok(Ring { words, tail: Place::of(state, at::TAIL, 8)?, state: state.clone(), told: 0 })
    }

    /// The size of the ring in bytes.
    pub fn bytes(&self) -> u64 {
        self.words.len()
    }

    /// Takes all complete records. If `nothing_runs` is true, an incomplete record that a fault left is removed, too. `nothing_runs` is
    /// called after the head was read, so that records that begin later are not removed.
    ///
    /// # Errors
    /// None in practice, because the ring and the state have room for what is written.
    pub fn take(&mut self, nothing_runs: impl FnOnce() -> bool) -> RmResult<Printed> {
        let head = self.state.read_u64(at::HEAD);
        let mut tail = self.state.read_u64(at::TAIL);
        let mut printed = Printed::default();
        while tail < head {
            let Some(words) = self.complete(tail, head) else { break };
            printed.records.extend(self.record(tail, words)?);
            self.free(tail, words)?;
            tail += words;
        }
        // Records that kernels begin after the head was read are behind `head`, and stay.
        if tail < head && nothing_runs() && self.complete(tail, head).is_none() {
            self.free(tail, (head - tail).min(self.words.len() / 4))?;
            tail = head;
            printed.lost += 1;
        }
        // Kernels use the freed words only after they have seen the new tail, and then they must find zeros there.
        fence(Ordering::Release);
        self.tail.write(Width::W8, 0, tail);
        let lost = self.state.read_u32(at::LOST);
        printed.lost += u64::from(lost.wrapping_sub(self.told));
        self.told = lost;
        Ok(printed)
    }

    /// The number of words of the record at `tail`, if the record is complete.
    fn complete(&self, tail: u64, head: u64) -> Option<u64> {
        let header = self.word(tail);
        let words = u64::from(header & !at::COMPLETE);
        fence(Ordering::Acquire);
        (header & at::COMPLETE != 0 && words >= at::HEADER && words <= head - tail).then_some(words)
    }

    /// The record at `tail`. It is `None` if its lengths contradict each other, because other code has written into the ring.
    fn record(&self, tail: u64, words: u64) -> RmResult<Option<Record>> {
        let lengths = [1, 2, 3].map(|n| u64::from(self.word(tail + n)));
        if lengths.iter().map(|len| len.div_ceil(4)).sum::<u64>() + at::HEADER != words {
            return Ok(None);
        }
        let mut from = tail + at::HEADER;
        let mut next = |len: u64| {
            let bytes = self.read(from, len);
            from += len.div_ceil(4);
            bytes
        };
        let [format, arguments, strings] = lengths;
        Ok(Some(Record { format: next(format)?, arguments: next(arguments)?, strings: next(strings)? }))
    }

    fn offset(&self, word: u64) -> u64 {
        word * 4 % self.words.len()
    }

    fn word(&self, word: u64) -> u32 {
        self.words.read_u32(self.offset(word))
    }

    /// Reads bytes from a word on. After the end of the ring, it continues at the beginning.
    fn read(&self, word: u64, len: u64) -> RmResult<Vec<u8>> {
        let mut bytes = vec![0; len as usize];
        let first = len.min(self.words.len() - self.offset(word));
        let (before, behind) = bytes.split_at_mut(first as usize);
        self.words.read(self.offset(word), before)?;
        self.words.read(0, behind)?;
        Ok(bytes)
    }

    /// Sets words to zero, so that old contents are not taken for a complete record.
    fn free(&self, word: u64, words: u64) -> RmResult<()> {
        let first = (words * 4).min(self.words.len() - self.offset(word));
        self.words.zero(self.offset(word), first)?;
        self.words.zero(0, words * 4 - first)
    }
}
