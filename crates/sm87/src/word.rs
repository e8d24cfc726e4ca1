//! One 128-bit instruction word.

use std::fmt;

/// An instruction as it lies in memory: 16 bytes, little-endian.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Word(pub u128);

impl Word {
    /// Bits 105 to 124 say when the instruction runs and not what it does: stall count, yield, scoreboards and operand
    /// reuse.
    pub const SCHEDULING: u128 = ((1 << 20) - 1) << 105;

    /// Makes a word from the two 64-bit halves that listings print.
    pub const fn new(lo: u64, hi: u64) -> Word {
        Word((hi as u128) << 64 | lo as u128)
    }

    /// The two halves, the low one first.
    pub const fn halves(self) -> (u64, u64) {
        (self.0 as u64, (self.0 >> 64) as u64)
    }

    /// The word without its scheduling bits. Two equal words do the same.
    #[must_use]
    pub const fn unscheduled(self) -> Word {
        Word(self.0 & !Self::SCHEDULING)
    }

    /// `len` bits from bit `lo`. `len` is at most 32.
    pub const fn bits(self, lo: u32, len: u32) -> u32 {
        ((self.0 >> lo) as u64 & ((1u64 << len) - 1)) as u32
    }

    /// `len` bits from bit `lo`, sign-extended. `len` is at most 63.
    pub const fn signed(self, lo: u32, len: u32) -> i64 {
        ((self.0 >> lo) as i64) << (64 - len) >> (64 - len)
    }

    /// Bit `n`.
    pub const fn bit(self, n: u32) -> bool {
        self.0 >> n & 1 == 1
    }

    /// The 12-bit opcode, which consists of the 9-bit base and the operand form.
    pub const fn opcode(self) -> u16 {
        self.bits(0, 12) as u16
    }

    /// The 9-bit base opcode.
    pub const fn base(self) -> u16 {
        self.bits(0, 9) as u16
    }

    /// The operand form, bits 9 to 11.
    pub const fn form(self) -> u8 {
        self.bits(9, 3) as u8
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lo, hi) = self.halves();
        write!(f, "{lo:016x} {hi:016x}")
    }
}
