//! Numbers of lanes that grow by the same amount from one CTA to the next.
//!
//! Most programs begin by making addresses out of the index of the CTA and those of the threads. [`super::opening`] finds out once for a
//! launch which numbers of these are linear in the three indices of the CTA. They are kept here for one CTA, and another CTA adds how
//! far it is from that one.

use super::host;
use super::known::{Found, Layout, Places};
use super::live::{Rows, Touched};
use super::rows::{Lasting, Row};

/// What an instruction makes of its sources, as far as it matters to numbers that are linear.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Makes {
    /// The sum of its sources, each times a number.
    Sum([i64; 3]),
    /// The product of the first two sources plus the third one times a number.
    Product(i64),
    /// The product of the first two sources plus a pair, as a pair. The sources have signs or not.
    Wide(bool),
    /// The first source, shifted to the left by the second.
    Shifted,
    /// The third source, shifted to the right by the second, with its sign.
    ShiftedRight,
    /// A special register.
    Special(u32),
    /// One register that depends on its sources alone.
    Word,
    /// Anything else.
    Something,
    /// An access to global memory.
    Access,
}

/// One of the instructions that may belong to an opening.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub makes: Makes,
    pub touched: Touched,
    /// The rows that may be read from here on before they are written.
    pub live: Rows,
}

/// The instructions that may belong to the opening of a program: those one after another around the first one that reads a special
/// register.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    /// The index of the first one.
    pub first: u32,
    pub parts: Vec<Part>,
    /// The rows that may be read behind the last one.
    pub behind: Rows,
}

/// By how much a number grows with each index of the CTA. It wraps around.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Slope(pub [u64; 3]);

impl Slope {
    /// By how much it has grown between two CTAs.
    fn between(&self, from: [u32; 3], to: [u32; 3]) -> u64 {
        let grown = |axis: usize| u64::from(to[axis]).wrapping_sub(from[axis].into()).wrapping_mul(self.0[axis]);
        grown(0).wrapping_add(grown(1)).wrapping_add(grown(2))
    }
}

/// Numbers of the lanes of all warps that are linear in the index of the CTA. As numbers with a sign they are never out of the bounds, so
/// that they never wrap around.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Form {
    pub slope: [i64; 3],
    pub least: i64,
    pub most: i64,
}

impl Form {
    /// Numbers within bounds that do not depend on the CTA.
    pub(crate) fn between((least, most): (i32, i32)) -> Form {
        Form { slope: [0; 3], least: least.into(), most: most.into() }
    }

    /// A number that all lanes of the launch have.
    pub(crate) fn number(&self) -> Option<i64> {
        (self.least == self.most).then_some(self.least)
    }

    /// Whether they do not depend on the CTA.
    pub(crate) fn is_fixed(&self) -> bool {
        self.slope == [0; 3]
    }

    /// -1 if all of them are negative, and 0 if none is.
    pub(crate) fn sign(&self) -> Option<Form> {
        let sign = if self.least < 0 { -1 } else { 0 };
        (self.most < 0 || self.least >= 0).then_some(Form { slope: [0; 3], least: sign, most: sign })
    }

    /// A multiple of them, unless it is out of the bounds of this computation.
    pub(crate) fn times(&self, factor: i64) -> Option<Form> {
        let mut slope = [0; 3];
        for (to, from) in slope.iter_mut().zip(self.slope) {
            *to = from.checked_mul(factor)?;
        }
        let (x, y) = (self.least.checked_mul(factor)?, self.most.checked_mul(factor)?);
        Some(Form { slope, least: x.min(y), most: x.max(y) })
    }

    /// The sums with others.
    pub(crate) fn plus(&self, other: &Form) -> Option<Form> {
        let mut slope = self.slope;
        for (to, more) in slope.iter_mut().zip(other.slope) {
            *to = to.checked_add(more)?;
        }
        Some(Form { slope, least: self.least.checked_add(other.least)?, most: self.most.checked_add(other.most)? })
    }

    /// The same if they are never out of the bounds of a word.
    pub(crate) fn word(self) -> Option<Form> {
        (self.least >= i32::MIN.into() && self.most <= i32::MAX.into()).then_some(self)
    }

    /// By how much they grow, as numbers of 64 bits that wrap around.
    pub(crate) fn wrapping(&self) -> Slope {
        Slope(self.slope.map(|slope| slope as u64))
    }
}

/// Where the lanes of a warp are in the first CTA.
pub(super) struct Lanes {
    pub found: Found,
    pub layout: Layout,
}

/// An access with addresses that are linear.
struct Access {
    slope: Slope,
    len: u32,
    /// How far its addresses are from those of the first CTA.
    moved: i64,
    /// Those of each warp.
    lanes: Vec<Lanes>,
}

/// Registers with numbers that are linear: one register or a pair.
struct Value {
    slope: Slope,
    moved: u64,
    /// Where the numbers of the first warp stand: a row, or the low one and the high one. Those of the others follow.
    first: usize,
}

/// All accesses and registers of an opening.
#[derive(Default)]
pub(crate) struct Linear {
    /// The CTA for which they are known.
    origin: [u32; 3],
    accesses: Vec<Access>,
    values: Vec<Value>,
    /// The numbers of registers in the first CTA.
    held: Lasting<Row>,
    /// What was found out about an access of one warp last.
    pub(super) located: Option<Lanes>,
}

impl Linear {
    /// Begins with what is known for a CTA, with room for what so many registers hold.
    pub(crate) fn new(origin: [u32; 3], room: usize) -> Linear {
        Linear { origin, held: Lasting::empty(room), ..Linear::default() }
    }

    /// Adds an access of `len` bytes for each lane. Returns its number.
    pub(super) fn add_access(&mut self, slope: Slope, len: u32, lanes: Vec<Lanes>) -> u32 {
        self.accesses.push(Access { slope, len, moved: 0, lanes });
        self.accesses.len() as u32 - 1
    }

    /// Keeps what registers hold in each warp. Returns where that stands.
    pub(crate) fn keep(&mut self, rows: impl Iterator<Item = Row>) -> usize {
        let first = self.held.len();
        self.held.extend(rows);
        first
    }

    /// Adds registers that hold what stands from `first` on. Returns their number.
    pub(crate) fn add_value(&mut self, slope: Slope, first: usize) -> u32 {
        self.values.push(Value { slope, moved: 0, first });
        self.values.len() as u32 - 1
    }

    /// Goes to another CTA. Returns whether all lanes of it access the memory that was found for the first one.
    pub(crate) fn reach(&mut self, cta: [u32; 3]) -> bool {
        for access in &mut self.accesses {
            let moved = access.slope.between(self.origin, cta) as i64;
            let fits = |lanes: &Lanes| moved >= lanes.found.back && moved <= lanes.found.ahead;
            if moved & i64::from(access.len - 1) != 0 || !access.lanes.iter().all(fits) {
                return false;
            }
            access.moved = moved;
        }
        self.values.iter_mut().for_each(|value| value.moved = value.slope.between(self.origin, cta));
        true
    }

    /// Where the lanes of a warp are in this CTA.
    #[inline(always)]
    pub(super) fn places(&self, warp: u32, access: u32) -> Places<'_> {
        let Access { moved, lanes, .. } = &self.accesses[access as usize];
        let Lanes { found, layout } = &lanes[warp as usize];
        Places::new(found.first.wrapping_add(*moved as usize), layout)
    }

    /// Lets the host fetch what the warp will load in the next CTA: a thread mostly executes CTAs one after another along x. The host finds out by
    /// itself only where lines that are next to each other are loaded one after another, and warps load from several rows of a matrix.
    #[inline(always)]
    pub(super) fn fetch_next(&self, access: u32, places: Places<'_>) {
        let next = self.accesses[access as usize].slope.0[0] as isize;
        for lane in [0, 8, 16, 24] {
            host::fetch(places.of(lane).wrapping_offset(next));
        }
    }

    /// The numbers of a warp in the first CTA, and what this CTA adds.
    #[inline(always)]
    pub(super) fn value<const WORDS: usize>(&self, warp: u32, value: u32) -> (&[Row; WORDS], u64) {
        let Value { moved, first, .. } = &self.values[value as usize];
        (&self.held[*first..].as_chunks().0[warp as usize], *moved)
    }
}
