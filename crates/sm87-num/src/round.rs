//! Rounding directions, and the two functions from which every rounded result is made.
//!
//! Rust cannot set the rounding mode, and the control register of the host must not be changed. Results that are not
//! rounded to nearest are therefore made in two exact steps: an operation in `f64` that *rounds to odd* (the last bit
//! is set if anything was lost), and then one narrowing in the wanted direction. Rounding to odd with two extra bits
//! keeps enough information for every narrower rounding, so no result is rounded twice.

/// The two-bit rounding field of floating-point instructions. For F2I and FRND the same codes are printed as
/// nearest-even, FLOOR, CEIL and TRUNC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Round {
    /// To nearest, ties to even.
    #[default]
    Rn = 0,
    /// Towards −∞ (FLOOR).
    Rm = 1,
    /// Towards +∞ (CEIL).
    Rp = 2,
    /// Towards zero (TRUNC).
    Rz = 3,
}

impl Round {
    /// All four directions, in the order of their codes.
    pub const ALL: [Self; 4] = [Self::Rn, Self::Rm, Self::Rp, Self::Rz];

    /// Reads the low two bits of an instruction field.
    #[inline(always)]
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self::ALL[(bits & 3) as usize]
    }
}

/// `x + y` rounded to odd. The result is exact, or it is the neighbour that has an odd last bit.
///
/// Operands must be far from the limits of `f64`: |x| and |y| must lie in 2^-600 to 2^600, or be zero or not finite.
/// This holds for sums and products of narrower types.
#[inline(always)]
#[must_use]
pub(super) fn add_odd(x: f64, y: f64) -> f64 {
    let sum = x + y;
    // This is Knuth's two-sum: `error` is exactly (x + y) − sum.
    let back = sum - x;
    let error = (x - (sum - back)) + (y - back);
    let bits = sum.to_bits();
    let inexact = error != 0.0 && sum.is_finite();
    // If the last bit is even and something was lost, the result is the neighbour on the side of the loss, which is
    // odd.
    let outward = (error > 0.0) == (sum > 0.0);
    let odd = if outward { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    f64::from_bits(if inexact && bits & 1 == 0 { odd } else { bits })
}

/// Narrows to `f32` with one rounding in the wanted direction. NaN stays NaN, with an unspecified payload.
#[inline(always)]
#[must_use]
pub(super) fn narrow(x: f64, round: Round) -> f32 {
    let near = x as f32;
    let wide = f64::from(near);
    match round {
        Round::Rn => near,
        Round::Rm if wide > x => near.next_down(),
        Round::Rp if wide < x => near.next_up(),
        Round::Rz if wide.abs() > x.abs() => f32::from_bits(near.to_bits() - 1),
        _ => near,
    }
}

/// Narrows to `f32`, rounded to odd, for a later rounding to a half.
#[inline(always)]
#[must_use]
pub(super) fn narrow_odd(x: f64) -> f32 {
    let near = x as f32;
    let wide = f64::from(near);
    if wide == x || x.is_nan() {
        return near;
    }
    let truncated = near.to_bits() - u32::from(wide.abs() > x.abs());
    f32::from_bits(truncated | 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::two_to;

    #[test]
    fn field_codes() {
        for (code, round) in (0..).zip(Round::ALL) {
            assert_eq!(Round::from_bits(code), round);
            assert_eq!(Round::from_bits(code | 4), round);
            assert_eq!(round as u32, code);
        }
    }

    #[test]
    fn odd_sums() {
        assert_eq!(add_odd(1.0, two_to(-60)), 1f64.next_up());
        assert_eq!(add_odd(1.0, -two_to(-60)), 1f64.next_down());
        assert_eq!(add_odd(-1.0, two_to(-60)), (-1f64).next_up());
        assert_eq!(add_odd(1f64.next_up(), two_to(-60)), 1f64.next_up());
        assert_eq!(add_odd(1.5, 2.25), 3.75);
        assert!(add_odd(f64::INFINITY, f64::NEG_INFINITY).is_nan());
        assert_eq!(add_odd(f64::INFINITY, 1.0), f64::INFINITY);
    }

    #[test]
    fn odd_narrowing() {
        assert_eq!(narrow_odd(1.0), 1.0);
        assert_eq!(narrow_odd(1f64.next_up()), 1f32.next_up());
        assert_eq!(narrow_odd(1f64.next_down()), 1f32.next_down());
        assert_eq!(narrow_odd(1e300), f32::MAX);
        assert_eq!(narrow_odd(-1e-300), -f32::from_bits(1));
        assert_eq!(narrow_odd(f64::NEG_INFINITY), f32::NEG_INFINITY);
        assert!(narrow_odd(f64::NAN).is_nan());
    }

    #[test]
    fn directed_narrowing_at_the_limits() {
        let (huge, tiny) = (1e300, 1e-300);
        let cases = [
            (huge, [f32::INFINITY, f32::MAX, f32::INFINITY, f32::MAX]),
            (-huge, [f32::NEG_INFINITY, f32::NEG_INFINITY, f32::MIN, f32::MIN]),
            (tiny, [0.0, 0.0, f32::from_bits(1), 0.0]),
            (-tiny, [-0.0, -f32::from_bits(1), -0.0, -0.0]),
            (f64::INFINITY, [f32::INFINITY; 4]),
        ];
        for (x, want) in cases {
            for (round, want) in Round::ALL.into_iter().zip(want) {
                assert_eq!(narrow(x, round).to_bits(), want.to_bits(), "{x} {round:?}");
            }
        }
    }
}
