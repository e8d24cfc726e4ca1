//! What a replay does in each run.

use crate::runtime::fault::says_stopped;
use crate::runtime::place::{Place, Width};
use crate::runtime::queue::{announce, entry};
use crate::status::{RmResult, fail};
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::DeviceMem;

/// What a patch point's value is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nothing: the value is a constant.
    Constant,
    /// The timeline's number before the run.
    Timeline,
    /// The number of the run, from 1.
    Kick,
    /// One of the run's values.
    Slot(u32),
    /// The last fence of the device the replay belongs to.
    Given,
}

/// A patch point's value: `(source + add) >> shift & mask`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// What it is made from.
    pub source: Source,
    /// Added to it, modulo 2^64.
    pub add: u64,
    /// Then shifted right by this, below 64.
    pub shift: u32,
    /// Then only these bits.
    pub mask: u64,
}

impl Value {
    /// The low 32 bits of a source with something added to it, and the high ones.
    pub fn halves(source: Source, add: u64) -> [Value; 2] {
        [0, 32].map(|shift| Value { source, add, shift, mask: 0xffff_ffff })
    }
}

/// What one run's values are made from.
pub struct Now<'a> {
    fixed: [u64; FIXED],
    values: &'a Place,
}

/// Sources that are no slots.
const FIXED: usize = 4;

impl<'a> Now<'a> {
    /// The timeline's number before the run, the number of the run, the last fence of the device, and the run's own values.
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
    /// Its place in [`Now`].
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

/// A patch point.
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
    /// Of a value whose shift is below 64, written where [`Place::check`] allows the width, around the bits of `keep`.
    pub fn new(place: Place, width: Width, keep: u64, value: Value) -> Patch {
        let Value { source, add, shift, mask } = value;
        Patch { place, width, keep, source: source.index(), add, shift, mask }
    }

    /// Makes one patch point of two, where this one and the next are the halves of a number.
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

/// A ring and how to announce what is written to it.
pub struct Channel {
    /// Entries of 8 bytes.
    pub ring: Place,
    /// How many: a power of two.
    pub entries: u32,
    /// `GPPut`.
    pub gp_put: Place,
    /// The doorbell's word.
    pub doorbell: Place,
    /// What is written there.
    pub token: u32,
    /// Entries ever written.
    pub put: Counter,
    /// The word of the error notifier that says whether the channel was stopped.
    pub status: Option<Place>,
}

/// A number that goes up: the replay's own, or one that somebody else reads and writes between runs.
pub enum Counter {
    /// The replay's.
    Own(u64),
    /// The caller's.
    Shared(Place),
}

impl Counter {
    /// The number.
    #[inline]
    pub fn get(&self) -> u64 {
        match self {
            Counter::Own(value) => *value,
            Counter::Shared(place) => place.read_u64(),
        }
    }

    /// Changes it.
    #[inline]
    pub fn set(&mut self, to: u64) {
        match self {
            Counter::Own(value) => *value = to,
            Counter::Shared(place) => place.write(Width::W8, 0, to),
        }
    }
}

impl Channel {
    /// Gives the GPU a run of words: entry, pointer, barrier, doorbell.
    #[inline]
    pub fn push(&mut self, entry: u64) {
        let (put, last) = (self.put.get(), u64::from(self.entries - 1));
        announce(&self.ring, put & last, entry, &self.gp_put, (put + 1) & last);
        DeviceMem::barrier();
        self.doorbell.write(Width::W4, 0, self.token.into());
        self.put.set(put + 1);
    }

    /// The error notifier's status word says that the channel was stopped.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.status.as_ref().is_some_and(says_stopped)
    }
}

/// One thing a run does.
pub enum Step {
    /// Writes a value.
    Patch(Patch),
    /// Gives the GPU a run of words.
    Push {
        /// Which channel.
        channel: usize,
        /// The ring's entry.
        entry: u64,
    },
}

/// The length field of a GPFIFO entry has 21 bits.
pub const MOST_WORDS: u32 = (1 << 21) - 1;

impl Step {
    /// A run of words for a channel.
    ///
    /// # Errors
    /// 0x1F for what no ring entry can say.
    pub fn push(channel: usize, at: u64, words: u32) -> RmResult<Step> {
        if words == 0 || words > MOST_WORDS || at >> 40 != 0 || !at.is_multiple_of(4) {
            fail!(NV_ERR_INVALID_ARGUMENT, "{words} words at {at:#x}: up to {MOST_WORDS} words, aligned, below 2^40");
        }
        Ok(Step::Push { channel, entry: entry(at, words.into()) })
    }

    /// Makes one step of this and the next one, where that is the same. False where it is not.
    pub fn join(&mut self, next: &Step) -> bool {
        match (self, next) {
            (Step::Patch(this), Step::Patch(next)) => this.join(next),
            _ => false,
        }
    }

    /// Carries it out.
    #[inline]
    pub fn run(&self, channels: &mut [Channel], now: &Now<'_>) {
        match self {
            Step::Patch(patch) => patch.run(now),
            Step::Push { channel, entry } => channels[*channel].push(*entry),
        }
    }
}

/// Bytes copied by the CPU in each run.
pub struct Copy {
    /// Where to.
    pub to: Place,
    /// Where from.
    pub from: Place,
    /// How many.
    pub len: usize,
}
