//! The four binary formats, and one exact rounding that works for all of them.

use super::round::Round;

/// A binary floating-point format, described by the widths of its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// The number of stored fraction bits.
    pub fraction: u32,
    /// The number of exponent bits.
    pub exponent: u32,
}

impl Format {
    /// IEEE half.
    pub const F16: Self = Self { fraction: 10, exponent: 5 };
    /// bfloat16.
    pub const BF16: Self = Self { fraction: 7, exponent: 8 };
    /// IEEE single.
    pub const F32: Self = Self { fraction: 23, exponent: 8 };
    /// IEEE double.
    pub const F64: Self = Self { fraction: 52, exponent: 11 };

    /// Exponent bias.
    #[inline(always)]
    #[must_use]
    pub const fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    /// The bits of +∞. One less is the largest finite number.
    #[inline(always)]
    #[must_use]
    pub const fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    /// The sign bit.
    #[inline(always)]
    #[must_use]
    pub const fn sign(self) -> u64 {
        1 << (self.fraction + self.exponent)
    }
}

/// Two to the power of `exponent`, which is from -1022 to 1023, exactly. The precision of the standard library's `powi` is not
/// specified.
///
/// # Panics
/// If the power is not a normal number.
#[must_use]
pub const fn two_to(exponent: i32) -> f64 {
    assert!(exponent >= -1022 && exponent <= 1023);
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// A finite number before rounding: ±`significand` × 2^`exponent`.
///
/// If bits were already lost, the last bit of the significand is set instead ("jammed"). The significand must then be
/// at least two bits longer than the format to which it is rounded.
#[derive(Clone, Copy, Debug)]
pub struct Exact {
    /// The sign, which zeros have too.
    pub negative: bool,
    /// The magnitude, below 2^127.
    pub significand: u128,
    /// The weight of the last bit, as a power of two.
    pub exponent: i32,
}

impl Exact {
    /// Splits a finite double into its parts. The caller must handle infinities and NaN first.
    #[inline]
    #[must_use]
    pub fn from_f64(x: f64) -> Self {
        let bits = x.to_bits();
        let biased = (bits >> 52 & 0x7ff) as i32;
        let fraction = bits & ((1 << 52) - 1);
        let significand = if biased == 0 { fraction } else { fraction | 1 << 52 };
        Self { negative: bits >> 63 != 0, significand: significand.into(), exponent: biased.max(1) - 1075 }
    }

    /// An integer, given as sign and magnitude.
    #[inline]
    #[must_use]
    pub const fn from_int(negative: bool, magnitude: u64) -> Self {
        Self { negative, significand: magnitude as u128, exponent: 0 }
    }

    /// Shifts right and jams the lost bits into the last bit.
    #[inline]
    #[must_use]
    pub(super) const fn jam(significand: u128, shift: u32) -> u128 {
        if shift > 127 {
            return (significand != 0) as u128;
        }
        significand >> shift | (significand & ((1 << shift) - 1) != 0) as u128
    }

    /// Rounds once to `format` and returns the bits. Overflow gives ∞ or the largest finite number, as the direction
    /// requires. Results below the normal range are denormal.
    #[inline]
    #[must_use]
    pub fn pack(self, format: Format, round: Round) -> u64 {
        let sign = if self.negative { format.sign() } else { 0 };
        if self.significand == 0 {
            return sign;
        }
        let top = 127 - self.significand.leading_zeros() as i32;
        // This is the biased exponent, or 1 where the spacing of the format's numbers does not get smaller any more.
        let biased = (top + self.exponent + format.bias()).max(1);
        let grid = biased - format.bias() - format.fraction as i32;
        let shift = grid - self.exponent;
        let (mut kept, lost, half) = if shift <= 0 {
            (self.significand << -shift, 0, 1)
        } else if shift > 127 {
            (0, 1, 2)
        } else {
            (self.significand >> shift, self.significand & ((1 << shift) - 1), 1 << (shift - 1))
        };
        kept += u128::from(match round {
            Round::Rn => lost > half || (lost == half && kept & 1 == 1),
            Round::Rm => self.negative && lost != 0,
            Round::Rp => !self.negative && lost != 0,
            Round::Rz => false,
        });
        // If `kept` has its hidden bit, that bit increments the exponent field from biased − 1 to biased.
        let bits = (u64::from((biased - 1).unsigned_abs()) << format.fraction) + kept as u64;
        if biased >= 1 << format.exponent || bits >= format.infinity() {
            let outward = match round {
                Round::Rn => true,
                Round::Rm => self.negative,
                Round::Rp => !self.negative,
                Round::Rz => false,
            };
            return sign | (format.infinity() - u64::from(!outward));
        }
        sign | bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_doubles() {
        for x in [0.0, -0.0, 1.0, -1.5, f64::MIN_POSITIVE, f64::from_bits(1), f64::MAX, f64::MIN] {
            for round in Round::ALL {
                assert_eq!(Exact::from_f64(x).pack(Format::F64, round), x.to_bits());
            }
        }
    }

    #[test]
    fn overflow_obeys_the_direction() {
        let big = |negative| Exact { negative, significand: 1, exponent: 5000 };
        let (inf, max) = (0x7c00, 0x7bff);
        for (round, up, down) in
            [(Round::Rn, inf, inf), (Round::Rm, max, inf), (Round::Rp, inf, max), (Round::Rz, max, max)]
        {
            assert_eq!(big(false).pack(Format::F16, round), up);
            assert_eq!(big(true).pack(Format::F16, round), 0x8000 | down);
        }
    }

    #[test]
    fn underflow_obeys_the_direction() {
        let tiny = |negative| Exact { negative, significand: 1, exponent: -5000 };
        for (round, up, down) in [(Round::Rn, 0, 0), (Round::Rm, 0, 1), (Round::Rp, 1, 0), (Round::Rz, 0, 0)] {
            assert_eq!(tiny(false).pack(Format::F32, round), up);
            assert_eq!(tiny(true).pack(Format::F32, round), 0x8000_0000 | down);
        }
    }
}
