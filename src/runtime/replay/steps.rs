//! The steps of a replay, which each run executes.

use crate::runtime::channel::{announce, entry};
use crate::runtime::fault::says_stopped;
use crate::runtime::memory::place::{Place, Width};
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::DeviceMem;
use tegrarm_rm::status::{RmResult, fail};

/// The source of a patch point's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// There is no source, and the value is a constant.
    Constant,
    /// The number of the timeline before the run.
    Timeline,
    /// The number of the run, counted from 1.
    Kick,
    /// One of the run's values.
    Slot(u32),
    /// The last fence of the device that the replay belongs to.
    Given,
}

/// A patch point's value: `(source + add) >> shift & mask`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// The source.
    pub source: Source,
    /// The number that is added to the source, modulo 2^64.
    pub add: u64,
    /// The number of bits by which the sum is shifted right, below 64.
    pub shift: u32,
    /// The bits that are kept of the result.
    pub mask: u64,
}

impl Value {
    /// The low 32 bits and the high 32 bits of a source to which a number is added.
    pub fn halves(source: Source, add: u64) -> [Value; 2] {
        [0, 32].map(|shift| Value { source, add, shift, mask: 0xffff_ffff })
    }
}

/// The values of all sources in one run.
pub struct Now<'a> {
    fixed: [u64; FIXED],
    values: &'a Place,
}

/// The number of sources that are not slots.
const FIXED: usize = 4;

impl<'a> Now<'a> {
    /// Makes it from the timeline's number before the run, the number of the run, the last fence of the device, and the
    /// values of the run.
    #[inline]
    pub fn new(timeline: u64, kick: u64, given: u64, values: &'a Place) -> Now<'a> {
        Now { fixed: [0, timeline, kick, given], values }
    }

    #[inline]
    fn of(&self, source: usize) -> u64 {
        match self.fixed.get(source) {
            Some(value) => *value,
            None => self.values.value(source - FIXED),
        }
    }
}

impl Source {
    /// The place of the source in [`Now`].
    fn index(self) -> usize {
        match self {
            Source::Constant => 0,
            Source::Timeline => 1,
            Source::Kick => 2,
            Source::Given => 3,
            Source::Slot(slot) => FIXED + slot as usize,
        }
    }
}

/// A place whose value changes with each run.
pub struct Patch {
    place: Place,
    width: Width,
    keep: u64,
    source: usize,
    add: u64,
    shift: u32,
    mask: u64,
}

impl Patch {
    /// Makes a patch point. The shift of the value is below 64, and [`Place::check`] allows the width. The bits of
    /// `keep` do not change.
    pub fn new(place: Place, width: Width, keep: u64, value: Value) -> Patch {
        let Value { source, add, shift, mask } = value;
        Patch { place, width, keep, source: source.index(), add, shift, mask }
    }

    /// Makes this patch point and the next into one, if they are the halves of a number. Returns whether they are.
    pub fn join(&mut self, next: &Patch) -> bool {
        let half = |p: &Patch, shift| (p.width, p.keep, p.shift, p.mask) == (Width::W4, 0, shift, 0xffff_ffff);
        let same = (self.source, self.add) == (next.source, next.add);
        let joined = same && half(self, 0) && half(next, 32) && next.place.follows(&self.place, 4);
        if joined {
            (self.width, self.mask) = (Width::W4W4, u64::MAX);
        }
        joined
    }

    #[inline]
    fn run(&self, now: &Now<'_>) {
        let value = now.of(self.source).wrapping_add(self.add) >> self.shift & self.mask;
        self.place.write(self.width, self.keep, value);
    }
}

/// A ring, and the means to submit what is written to it.
pub struct RingPlaces {
    /// The ring, whose entries have 8 bytes.
    pub ring: Place,
    /// The number of entries, a power of two.
    pub entries: u32,
    /// The place of `GPPut`.
    pub gp_put: Place,
    /// The place of the doorbell's word.
    pub doorbell: Place,
    /// The value that is written to the doorbell.
    pub token: u32,
    /// The number of entries that were ever written.
    pub put: Counter,
    /// The word of the error notifier that says whether the channel was stopped.
    pub status: Option<Place>,
}

/// A number that increases. It belongs to the replay, or others read and write it between runs.
pub enum Counter {
    /// The number belongs to the replay.
    Own(u64),
    /// The number belongs to the caller.
    Shared(Place),
}

impl Counter {
    /// Reads the number.
    #[inline]
    pub fn get(&self) -> u64 {
        match self {
            Counter::Own(value) => *value,
            Counter::Shared(place) => place.read_u64(),
        }
    }

    /// Writes the number.
    #[inline]
    pub fn set(&mut self, to: u64) {
        match self {
            Counter::Own(value) => *value = to,
            Counter::Shared(place) => place.write(Width::W8, 0, to),
        }
    }
}

impl RingPlaces {
    /// Submits words: writes the entry and the pointer, and rings the doorbell after a barrier.
    #[inline]
    pub fn push(&mut self, entry: u64) {
        let (put, last) = (self.put.get(), u64::from(self.entries - 1));
        announce(&self.ring, put & last, entry, &self.gp_put, (put + 1) & last);
        DeviceMem::barrier();
        self.doorbell.write(Width::W4, 0, self.token.into());
        self.put.set(put + 1);
    }

    /// Whether the status word of the error notifier says that the channel was stopped.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.status.as_ref().is_some_and(says_stopped)
    }
}

/// One step of a run.
pub enum Step {
    /// Writes a value.
    Patch(Patch),
    /// Submits words.
    Push {
        /// The index of the channel.
        channel: usize,
        /// The entry of the ring.
        entry: u64,
    },
}

/// The limit of the length field of a GPFIFO entry, which has 21 bits.
pub const MOST_WORDS: u32 = (1 << 21) - 1;

impl Step {
    /// Makes a step that submits words to a channel.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_ARGUMENT` for words that no ring entry can name.
    pub fn push(channel: usize, at: u64, words: u32) -> RmResult<Step> {
        if words == 0 || words > MOST_WORDS || at >> 40 != 0 || !at.is_multiple_of(4) {
            fail!(NV_ERR_INVALID_ARGUMENT, "{words} words at {at:#x}: up to {MOST_WORDS} words, aligned, below 2^40");
        }
        Ok(Step::Push { channel, entry: entry(at, words.into()) })
    }

    /// Makes this step and the next into one, if that has the same effect. Returns false if it has not.
    pub fn join(&mut self, next: &Step) -> bool {
        match (self, next) {
            (Step::Patch(this), Step::Patch(next)) => this.join(next),
            _ => false,
        }
    }

    /// Executes the step.
    #[inline]
    pub fn run(&self, channels: &mut [RingPlaces], now: &Now<'_>) {
        match self {
            Step::Patch(patch) => patch.run(now),
            Step::Push { channel, entry } => channels[*channel].push(*entry),
        }
    }
}

/// Bytes that the CPU copies in each run.
pub struct Copy {
    /// The target.
    pub to: Place,
    /// The source.
    pub from: Place,
    /// The number of bytes.
    pub len: usize,
}
