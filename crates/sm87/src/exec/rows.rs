//! The memory of a warp: rows of 32 lanes.
//!
//! A warp's file is one array of rows. Rows with a fixed place come first, and the registers follow, so that a
//! register's place is known when code is lowered. An operand is a place in one of three arrays, and it is always a
//! full row. Immediates are rows of the image, and words of constant banks are rows that are made once for each launch.
//! So one handler serves every form of an operand.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut, Range};
use std::thread::LocalKey;

/// The 32 lanes of one register.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Row(pub [u32; 32]);

impl Row {
    pub(crate) const ZERO: Row = Row([0; 32]);
    /// The number of each lane.
    pub(crate) const LANES: Row = {
        let (mut lanes, mut i) = ([0; 32], 0);
        while i < 32 {
            lanes[i] = i as u32;
            i += 1;
        }
        Row(lanes)
    };
}

/// The rows that read as zero. They serve RZ, and groups of up to four registers.
const ZERO: u32 = 0;
/// The rows that take writes to RZ, which nobody reads.
const SINK: u32 = 4;
/// The row of UR0. The row of UR63 and the rows after it stay zero (URZ).
const UNIFORM: u32 = 8;
/// The rows of B0..B15, which hold each lane's view of the convergence barriers.
const BARRIER: u32 = 76;
/// The row of R0. Those of the other registers follow.
pub const REGISTER: u32 = 92;
/// The number of rows after the last register, into which a register group may reach.
const SLACK: u32 = 4;

/// The number of rows of a warp with `registers` registers per thread.
pub(crate) const fn rows_per_warp(registers: u32) -> usize {
    (REGISTER + registers + SLACK) as usize
}

/// The rows that a program writes if it uses `uniform` uniform registers and `registers` registers. All other rows stay zero.
pub(crate) fn used(uniform: u32, registers: u32) -> impl Iterator<Item = usize> {
    let [first, second] = used_ranges(uniform, registers);
    first.chain(second)
}

/// Whether such a program writes a row.
pub(crate) fn is_used(row: usize, uniform: u32, registers: u32) -> bool {
    used_ranges(uniform, registers).iter().any(|range| range.contains(&row))
}

/// Clears the rows of a warp that read as zero whatever a program with so many registers does.
pub(crate) fn clear_constant(rows: &mut [Row], registers: u32) {
    let behind = REGISTER + registers;
    for range in [ZERO..SINK, UNIFORM + 63..BARRIER, behind..behind + SLACK] {
        rows[range.start as usize..range.end as usize].fill(Row::ZERO);
    }
}

/// The rows of a warp that a program uses, and another one before it did not. Each has so many uniform registers and registers.
pub(crate) fn new_rows(before: [u32; 2], now: [u32; 2]) -> [Range<usize>; 2] {
    [(UNIFORM, 0, 0), (REGISTER, 1, SLACK)].map(|(first, n, slack)| {
        let (before, now) = (first + before[n], first + now[n] + slack);
        before.min(now) as usize..now as usize
    })
}

fn used_ranges(uniform: u32, registers: u32) -> [Range<usize>; 2] {
    [UNIFORM..UNIFORM + uniform, BARRIER..REGISTER + registers].map(|range| range.start as usize..range.end as usize)
}

/// What a launch needs many of, one after another. A thread keeps the memory for its next launch when it is given up: that is what the host's
/// allocator takes longest for.
pub(crate) trait Lasts: Sized + 'static {
    /// Where a thread keeps the memory.
    const SPARE: &'static LocalKey<RefCell<Vec<Vec<Self>>>>;
}

thread_local! {
    static SPARE: RefCell<Vec<Vec<Row>>> = const { RefCell::new(Vec::new()) };
}

impl Lasts for Row {
    const SPARE: &'static LocalKey<RefCell<Vec<Vec<Row>>>> = &SPARE;
}

/// Rows, or something else of a launch, whose memory lasts.
pub(crate) struct Lasting<T: Lasts>(Vec<T>);

/// A thread keeps so many memories, none of which has more bytes.
const KEPT: usize = 8;
const MOST_KEPT: usize = 1 << 20;

impl<T: Lasts> Lasting<T> {
    /// Something that was given up, with the memory of it: the one that fits best, so that the next launch has the same memory for the same
    /// purpose. The host still has that in its caches.
    pub(crate) fn kept(room: usize) -> Lasting<T> {
        let spare = T::SPARE.try_with(|spare| best(&mut spare.borrow_mut(), room));
        Lasting(spare.ok().flatten().unwrap_or_default())
    }

    /// Nothing yet, with memory for so many.
    pub(crate) fn empty(room: usize) -> Lasting<T> {
        let mut kept = Lasting::kept(room);
        kept.clear();
        kept.reserve(room);
        kept
    }
}

/// Takes the memory that has just enough room, or else the smallest one.
fn best<T>(spare: &mut Vec<Vec<T>>, room: usize) -> Option<Vec<T>> {
    let fits = spare.iter().enumerate().map(|(at, all)| (all.capacity() < room, all.capacity(), at));
    fits.min().map(|(.., at)| spare.swap_remove(at))
}

impl<T: Lasts> Default for Lasting<T> {
    /// Nothing, and no memory.
    fn default() -> Lasting<T> {
        Lasting(Vec::new())
    }
}

impl<T: Lasts> Drop for Lasting<T> {
    fn drop(&mut self) {
        let all = std::mem::take(&mut self.0);
        if all.capacity() == 0 {
            return;
        }
        // A thread that ends has nowhere to keep it.
        let _ended = T::SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < KEPT && all.capacity() * size_of::<T>() <= MOST_KEPT {
                spare.push(all);
            }
        });
    }
}

impl<T: Lasts> Deref for Lasting<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T: Lasts> DerefMut for Lasting<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

/// Clears some rows of a warp.
#[inline]
pub(crate) fn clear(rows: &mut [Row], ranges: &[Range<u16>]) {
    for range in ranges {
        rows[usize::from(range.start)..usize::from(range.end)].fill(Row::ZERO);
    }
}

const SPACE_SHIFT: u32 = 30;

/// The place of a source row. It is an offset in words, and the two top bits say in which array: 0 is the warp's file,
/// 1 the image's immediates, 2 the launch's constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Src(u32);

impl Src {
    pub(crate) const fn reg(n: u8) -> Src {
        if n == 255 { Src(ZERO * 32) } else { Src((REGISTER + n as u32) * 32) }
    }

    pub(crate) const fn ureg(n: u8) -> Src {
        Src((UNIFORM + n as u32) * 32)
    }

    pub(crate) const fn barrier(n: u8) -> Src {
        Src((BARRIER + n as u32) * 32)
    }

    /// The row with this number in the warp's file.
    pub(crate) const fn nth(row: usize) -> Src {
        Src(row as u32 * 32)
    }

    pub(crate) const fn immediate(row: usize) -> Src {
        Src(1 << SPACE_SHIFT | (row as u32 * 32))
    }

    pub(crate) const fn constant(row: usize) -> Src {
        Src(2 << SPACE_SHIFT | (row as u32 * 32))
    }

    /// The same row as a destination. It must be one of the warp's own rows.
    pub(crate) const fn as_dst(self) -> Dst {
        debug_assert!(self.space() == 0);
        Dst(self.0)
    }

    /// Whether it is one of the warp's own rows. Others are immediates and words of constant banks.
    pub const fn is_own(self) -> bool {
        self.space() == 0
    }

    /// The number of the array.
    #[inline(always)]
    pub(crate) const fn space(self) -> usize {
        (self.0 >> SPACE_SHIFT) as usize
    }

    /// The offset in words of a row that belongs to the warp itself.
    #[inline(always)]
    pub(crate) const fn own(self) -> usize {
        debug_assert!(self.space() == 0);
        self.0 as usize
    }

    /// The offset in words.
    #[inline(always)]
    pub(crate) const fn offset(self) -> usize {
        (self.0 & ((1 << SPACE_SHIFT) - 1)) as usize
    }

    /// The place of the row that is `n` rows further, for the next registers of a group.
    #[inline(always)]
    pub const fn plus(self, n: u32) -> Src {
        Src(self.0 + n * 32)
    }
}

/// The place of a destination row, as an offset in words. Writes to RZ and URZ go to rows that nobody reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Dst(u32);

impl Dst {
    pub(crate) const SINK: Dst = Dst(SINK * 32);

    pub(crate) const fn reg(n: u8) -> Dst {
        if n == 255 { Dst::SINK } else { Dst((REGISTER + n as u32) * 32) }
    }

    pub(crate) const fn ureg(n: u8) -> Dst {
        if n == 63 { Dst::SINK } else { Dst((UNIFORM + n as u32) * 32) }
    }

    pub(crate) const fn barrier(n: u8) -> Dst {
        Dst((BARRIER + n as u32) * 32)
    }

    /// The same row as a source.
    pub(crate) const fn as_src(self) -> Src {
        Src(self.0)
    }

    /// The offset in words.
    #[inline(always)]
    pub(crate) const fn offset(self) -> usize {
        self.0 as usize
    }

    /// The place of the row that is `n` rows further.
    #[inline(always)]
    pub(crate) const fn plus(self, n: u32) -> Dst {
        Dst(self.0 + n * 32)
    }
}

/// A predicate operand: an index into the warp's masks, and whether it is inverted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pred {
    /// The index, as [`pred`] counts.
    pub index: u8,
    /// 0 or -1. Extended by its sign it is the mask for an exclusive or.
    pub invert: i8,
}

impl Pred {
    /// PT.
    pub const TRUE: Pred = Pred { index: pred::PT, invert: 0 };

    /// Whether it is always true, as PT and UPT are.
    pub fn is_always_true(self) -> bool {
        self.is_constant() && self.invert == 0
    }

    /// Whether it is always true or never.
    pub(crate) fn is_constant(self) -> bool {
        matches!(self.index, pred::PT | pred::UPT)
    }
}

/// The indices of predicate registers in the array of a warp's lane masks.
pub mod pred {
    /// P7, which is always true.
    pub const PT: u8 = 7;
    /// The element that takes writes to P7, which nobody reads.
    pub const SINK: u8 = 8;
    /// UP0. UP7 is always true.
    pub const UNIFORM: u8 = 16;
    /// UP7, which is always true.
    pub const UPT: u8 = UNIFORM + 7;
    /// The element that takes writes to UP7, which nobody reads.
    pub const UNIFORM_SINK: u8 = 24;
    /// The length of the array.
    pub const COUNT: usize = 32;

    /// The element that is written for predicate `n`.
    pub(crate) const fn dst(n: u8) -> u8 {
        if n == 7 { SINK } else { n }
    }

    /// The element that is written for uniform predicate `n`.
    pub(crate) const fn udst(n: u8) -> u8 {
        if n == 7 { UNIFORM_SINK } else { UNIFORM + n }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_launch_is_that_of_the_next_one_unless_it_is_large() {
        let rows = |count: usize| {
            let mut rows = Lasting::empty(count);
            rows.resize(count, Row::ZERO);
            rows
        };
        let at = |rows: [Lasting<Row>; 3]| rows.map(|rows| rows.as_ptr());
        let first = at([200, 10, 50].map(rows));
        assert_eq!(at([200, 10, 50].map(rows)), first);
        // Each has its own, in whatever order they are given up and wanted.
        let [large, small, middle] = [150, 10, 40].map(rows);
        drop([small, large, middle]);
        assert_eq!(at([50, 200, 10].map(rows)), [first[2], first[0], first[1]]);
        assert_eq!(Lasting::<Row>::kept(10).len(), 10);
        assert_eq!(rows(201).capacity(), 201, "the smallest one has grown");
        drop(rows(MOST_KEPT / size_of::<Row>() + 1));
        let kept = std::iter::repeat_with(|| Lasting::<Row>::kept(1)).take(KEPT).collect::<Vec<_>>();
        assert!(kept.iter().all(|rows| rows.capacity() * size_of::<Row>() <= MOST_KEPT));
        assert_eq!(kept.iter().filter(|rows| rows.capacity() > 0).count(), 2, "one became the large one");
    }

    #[test]
    fn rows_that_nobody_writes_are_zero() {
        let registers = 3;
        let mut rows = vec![Row([7; 32]); rows_per_warp(registers)];
        clear_constant(&mut rows, registers);
        let zero = |row: u32| rows[row as usize].0 == [0; 32];
        let others =
            |row: &u32| !(SINK..UNIFORM).contains(row) && !used(63, registers).any(|used| used == *row as usize);
        assert!((0..rows.len() as u32).filter(others).all(zero));
        assert!(used(63, registers).all(|row| !zero(row as u32)));
        assert_eq!(new_rows([0, 2], [4, 3]), [8..12, 94..99]);
        assert_eq!(new_rows([4, 3], [2, 3]), [10..10, 95..99]);
    }
}
