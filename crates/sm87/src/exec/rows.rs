//! The memory of a warp: rows of 32 lanes.
//!
//! A warp's file is one array of rows. Rows with a fixed place come first, and the registers follow, so that a
//! register's place is known when code is lowered. An operand is a place in one of three arrays, and it is always a
//! full row. Immediates are rows of the image, and words of constant banks are rows that are made once for each launch.
//! So one handler serves every form of an operand.

use std::ops::Range;

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
    (UNIFORM as usize..(UNIFORM + uniform) as usize).chain(BARRIER as usize..(REGISTER + registers) as usize)
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
