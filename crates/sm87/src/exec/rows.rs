//! Where a warp keeps things: rows of 32 lanes.
//!
//! A warp's file is one array of rows. Fixed rows come first, so that a register's place is known when code is
//! lowered; the registers follow. An operand is a place in one of three arrays, always a full row: immediates are
//! rows of the image, constant-bank words are rows made once per launch. One handler then serves every operand
//! form.

/// 32 lanes of one register.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Row(pub [u32; 32]);

impl Row {
    pub(crate) const ZERO: Row = Row([0; 32]);
}

/// Rows that read as zero (RZ, up to four in a group).
const ZERO: u32 = 0;
/// Rows that swallow writes to RZ.
const SINK: u32 = 4;
/// UR0; UR63 and the rows after it stay zero (URZ).
const UNIFORM: u32 = 8;
/// B0..B15: each lane's view of the convergence barriers.
const BARRIER: u32 = 76;
/// R0.
const REGISTER: u32 = 92;
/// Rows behind the last register that a register group may spill into.
const SLACK: u32 = 4;

/// Rows of a warp with `registers` registers per thread.
pub(crate) const fn rows_per_warp(registers: u32) -> usize {
    (REGISTER + registers + SLACK) as usize
}

/// Clears a warp's rows for a new CTA: `uniform` uniform registers are in use. The rows that are never written
/// are zero already.
pub(crate) fn clear(rows: &mut [Row], uniform: u32) {
    let from = UNIFORM as usize;
    rows[from..from + uniform as usize].fill(Row::ZERO);
    rows[BARRIER as usize..].fill(Row::ZERO);
}

const SPACE_SHIFT: u32 = 30;

/// Offset of a source row in words, with the array in the top two bits: 0 = the warp's file, 1 = the image's
/// immediates, 2 = the launch's constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Src(u32);

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

    pub(crate) const fn immediate(row: usize) -> Src {
        Src(1 << SPACE_SHIFT | (row as u32 * 32))
    }

    pub(crate) const fn constant(row: usize) -> Src {
        Src(2 << SPACE_SHIFT | (row as u32 * 32))
    }

    /// The same row of the warp's own, to write.
    pub(crate) const fn as_dst(self) -> Dst {
        debug_assert!(self.space() == 0);
        Dst(self.0)
    }

    /// Which array.
    #[inline(always)]
    pub(crate) const fn space(self) -> usize {
        (self.0 >> SPACE_SHIFT) as usize
    }

    /// Offset in words.
    #[inline(always)]
    pub(crate) const fn offset(self) -> usize {
        (self.0 & ((1 << SPACE_SHIFT) - 1)) as usize
    }

    /// The row `n` rows further: the next registers of a group.
    #[inline(always)]
    pub(crate) const fn plus(self, n: u32) -> Src {
        Src(self.0 + n * 32)
    }
}

/// Offset of a destination row in words; writes to RZ and URZ go to rows nobody reads.
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

    /// The same row, to read.
    pub(crate) const fn as_src(self) -> Src {
        Src(self.0)
    }

    /// Offset in words.
    #[inline(always)]
    pub(crate) const fn offset(self) -> usize {
        self.0 as usize
    }

    /// The row `n` rows further.
    #[inline(always)]
    pub(crate) const fn plus(self, n: u32) -> Dst {
        Dst(self.0 + n * 32)
    }
}

/// Index of a predicate register among a warp's lane masks.
pub(crate) mod pred {
    /// P7: always true.
    pub(crate) const PT: u8 = 7;
    /// Swallows writes to P7.
    pub(crate) const SINK: u8 = 8;
    /// UP0; UP7 is always true.
    pub(crate) const UNIFORM: u8 = 16;
    /// Swallows writes to UP7.
    pub(crate) const UNIFORM_SINK: u8 = 24;
    /// Length of the array.
    pub(crate) const COUNT: usize = 32;

    /// Place to write predicate `n`.
    pub(crate) const fn dst(n: u8) -> u8 {
        if n == 7 { SINK } else { n }
    }

    /// Place to write uniform predicate `n`.
    pub(crate) const fn udst(n: u8) -> u8 {
        if n == 7 { UNIFORM_SINK } else { UNIFORM + n }
    }
}
