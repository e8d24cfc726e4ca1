//! Conversions: F2I, I2F, I2FP, FRND, F2F, F2FP.PACK_AB and F2IP.
//!
//! Every source is exact in `f64` or in an integer, so every conversion rounds only once.

use super::f32::{NAN as F32_NAN, flush, underflows};
use super::format::{Exact, Format};
use super::half::{self, Kind};
use super::round::{Round, narrow};

/// The bit of a double's fraction that makes a NaN quiet.
const QUIET: u64 = 1 << 51;

/// An integer type of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Int {
    /// The width: 8, 16, 32 or 64 bits.
    pub bits: u32,
    /// True for two's complement, false for unsigned.
    pub signed: bool,
}

impl Int {
    /// Reads a two-bit size field (log2 of the bytes) and a signedness bit.
    #[inline(always)]
    #[must_use]
    pub const fn from_bits(size: u32, signed: bool) -> Self {
        Self { bits: 8 << (size & 3), signed }
    }

    /// The value in the low bits of `x`, as sign and magnitude.
    #[inline(always)]
    const fn magnitude(self, x: u64) -> (bool, u64) {
        let unused = 64 - self.bits;
        if self.signed {
            let value = (x << unused) as i64 >> unused;
            (value < 0, value.unsigned_abs())
        } else {
            (false, x << unused >> unused)
        }
    }

    /// Clamps a number that has no fraction. Infinities are clamped too. The result is extended to 64 bits by its sign.
    #[inline(always)]
    fn saturate(self, x: f64) -> u64 {
        let unused = 64 - self.bits;
        if self.signed {
            (x as i64).clamp(i64::MIN >> unused, i64::MAX >> unused) as u64
        } else {
            (x as u64).min(u64::MAX >> unused)
        }
    }

    /// The result for a NaN without `.NTZ`: only the top bit is set, and it is extended like any result.
    #[inline(always)]
    const fn indefinite(self) -> u64 {
        let top = 1 << (self.bits - 1);
        if self.signed { (top as i64).wrapping_neg() as u64 } else { top }
    }
}

/// Selects the byte (0 to 3) or half (0 or 1) that I2F reads. Wider types take all of `x`.
#[inline(always)]
#[must_use]
pub const fn select(x: u32, from: Int, index: u32) -> u32 {
    match from.bits {
        8 => x >> (8 * (index & 3)),
        16 => x >> (16 * (index & 1)),
        _ => x,
    }
}

/// Rounds to an integral number in the given direction. The sign of zero is kept.
#[inline(always)]
#[must_use]
pub fn integral(x: f64, round: Round) -> f64 {
    match round {
        Round::Rn => x.round_ties_even(),
        Round::Rm => x.floor(),
        Round::Rp => x.ceil(),
        Round::Rz => x.trunc(),
    }
}

/// F2I from any source that was widened to `f64`: rounds the number and then saturates it to `to`. A result narrower
/// than 64 bits is extended to 64 bits by the sign of `to`, and a register takes the low 32 bits. With `ntz` a NaN
/// becomes 0.
#[inline(always)]
#[must_use]
pub fn float_to_int(x: f64, to: Int, round: Round, ntz: bool) -> u64 {
    if x.is_nan() {
        return if ntz { 0 } else { to.indefinite() };
    }
    to.saturate(integral(x, round))
}

/// F2I from an f32. With `ftz` a denormal counts as zero, which makes a difference only for FLOOR and CEIL.
#[inline(always)]
#[must_use]
pub fn f32_to_int(x: u32, to: Int, round: Round, ntz: bool, ftz: bool) -> u64 {
    float_to_int(widen(x, ftz), to, round, ntz)
}

/// F2I from an f16.
#[inline(always)]
#[must_use]
pub fn f16_to_int(x: u16, to: Int, round: Round, ntz: bool) -> u64 {
    float_to_int(Kind::F16.widen(x).into(), to, round, ntz)
}

/// F2I from an f64.
#[inline(always)]
#[must_use]
pub fn f64_to_int(x: u64, to: Int, round: Round, ntz: bool) -> u64 {
    float_to_int(f64::from_bits(x), to, round, ntz)
}

/// I2F and I2FP to f32. The low bits of `x` are the integer.
#[inline(always)]
#[must_use]
pub fn int_to_f32(x: u64, from: Int, round: Round) -> u32 {
    let (negative, magnitude) = from.magnitude(x);
    match round {
        Round::Rn => (magnitude as f32).to_bits() | u32::from(negative) << 31,
        _ => Exact::from_int(negative, magnitude).pack(Format::F32, round) as u32,
    }
}

/// I2F to f64.
#[inline(always)]
#[must_use]
pub fn int_to_f64(x: u64, from: Int, round: Round) -> u64 {
    let (negative, magnitude) = from.magnitude(x);
    match round {
        Round::Rn => (magnitude as f64).to_bits() | u64::from(negative) << 63,
        _ => Exact::from_int(negative, magnitude).pack(Format::F64, round),
    }
}

/// I2F to f16. A number that is too large becomes ∞ or the largest finite half, as the direction requires.
#[inline(always)]
#[must_use]
pub fn int_to_f16(x: u64, from: Int, round: Round) -> u16 {
    let (negative, magnitude) = from.magnitude(x);
    Exact::from_int(negative, magnitude).pack(Format::F16, round) as u16
}

#[inline(always)]
fn widen(x: u32, ftz: bool) -> f64 {
    f32::from_bits(if ftz { flush(x) } else { x }).into()
}

/// The bits of a number. A NaN becomes the canonical NaN.
#[inline(always)]
fn f32_bits(x: f32) -> u32 {
    if x.is_nan() { F32_NAN } else { x.to_bits() }
}

/// A quiet NaN that has a sign and a fraction. Conversions from and to doubles keep as much of the operand's fraction
/// as fits.
const fn quiet_nan(negative: bool, fraction: u64) -> u64 {
    (negative as u64) << 63 | 0x7ff << 52 | QUIET | fraction
}

/// FRND on f32.
#[inline(always)]
#[must_use]
pub fn round_f32(x: u32, round: Round, ftz: bool) -> u32 {
    f32_bits(integral(widen(x, ftz), round) as f32)
}

/// FRND on f16. Integral halves are exact.
#[inline(always)]
#[must_use]
pub fn round_f16(x: u16, round: Round) -> u16 {
    Kind::F16.round_f64(integral(Kind::F16.widen(x).into(), round), Round::Rn)
}

/// FRND on f64.
#[inline(always)]
#[must_use]
pub fn round_f64(x: u64, round: Round) -> u64 {
    let y = integral(f64::from_bits(x), round);
    if y.is_nan() { x | QUIET } else { y.to_bits() }
}

/// F2F f64 → f32. With `ftz` the result is flushed.
#[inline(always)]
#[must_use]
pub fn f64_to_f32(x: u64, round: Round, ftz: bool) -> u32 {
    if f64::from_bits(x).is_nan() {
        return (x >> 32) as u32 & 1 << 31 | 0x7f80_0000 | ((x | QUIET) >> 29) as u32 & 0x7f_ffff;
    }
    let rounded = narrow(f64::from_bits(x), round);
    let tiny = ftz && underflows(rounded, || f64::from_bits(x), round);
    if ftz && (tiny || rounded.is_subnormal()) { rounded.to_bits() & 1 << 31 } else { rounded.to_bits() }
}

/// F2F f32 → f64, which is exact. With `ftz` the operand is flushed.
#[inline(always)]
#[must_use]
pub fn f32_to_f64(x: u32, ftz: bool) -> u64 {
    if f32::from_bits(x).is_nan() {
        return quiet_nan(x >> 31 != 0, u64::from(x & 0x7f_ffff) << 29);
    }
    widen(x, ftz).to_bits()
}

/// F2F f32 → f32, which is a canonical copy. With `ftz` it is flushed.
#[inline(always)]
#[must_use]
pub fn f32_to_f32(x: u32, ftz: bool) -> u32 {
    f32_bits(widen(x, ftz) as f32)
}

/// F2F f32 → half, with one rounding. With `ftz` the operand is flushed.
#[inline(always)]
#[must_use]
pub fn f32_to_half(x: u32, kind: Kind, round: Round, ftz: bool) -> u16 {
    let x = f32::from_bits(if ftz { flush(x) } else { x });
    kind.round_f32(x, round)
}

/// F2F f64 → half, with one rounding.
#[inline(always)]
#[must_use]
pub fn f64_to_half(x: u64, kind: Kind, round: Round) -> u16 {
    if f64::from_bits(x).is_nan() {
        let fraction = (x | QUIET) << 12 >> (64 - kind.format().fraction);
        return (x >> 48) as u16 & 0x8000 | kind.infinity() | fraction as u16;
    }
    kind.round_f64(f64::from_bits(x), round)
}

/// F2F half → f32, which is exact. With `ftz` the result is flushed, which changes only denormals of bfloat16.
#[inline(always)]
#[must_use]
pub fn half_to_f32(x: u16, kind: Kind, ftz: bool) -> u32 {
    let bits = f32_bits(kind.widen(x));
    if ftz { flush(bits) } else { bits }
}

/// F2F half → f64, which is exact.
#[inline(always)]
#[must_use]
pub fn half_to_f64(x: u16, kind: Kind) -> u64 {
    if kind.is_nan(x) {
        let fraction = u64::from(x & (kind.infinity() ^ 0x7fff)) << (52 - kind.format().fraction);
        return quiet_nan(x >> 15 != 0, fraction);
    }
    f64::from(kind.widen(x)).to_bits()
}

/// Modifiers of F2FP.PACK_AB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pack {
    /// The format of the result.
    pub kind: Kind,
    /// The rounding direction.
    pub round: Round,
    /// True if negative results become +0.
    pub relu: bool,
    /// True if ∞ becomes the largest finite number with its sign. NaN stays NaN.
    pub satfinite: bool,
}

/// One half of F2FP.
#[inline(always)]
#[must_use]
pub fn pack_half(x: u32, how: Pack) -> u16 {
    let half = how.kind.round_f32(f32::from_bits(x), how.round);
    if half == half::NAN {
        return half;
    }
    if how.relu && half & 0x8000 != 0 {
        return 0;
    }
    let limit = how.kind.infinity();
    if how.satfinite && half & 0x7fff == limit { half - 1 } else { half }
}

/// F2FP.PACK_AB: A becomes the high half and B the low half.
#[inline(always)]
#[must_use]
pub fn pack_ab(a: u32, b: u32, how: Pack) -> u32 {
    u32::from(pack_half(a, how)) << 16 | u32::from(pack_half(b, how))
}

/// F2FP.MERGE_C: B becomes the low half, and the high half is the low half of C. So two of them in a row pack two numbers, and this is
/// how compilers convert two constants.
#[inline(always)]
#[must_use]
pub fn pack_merge(b: u32, c: u32, how: Pack) -> u32 {
    c << 16 | u32::from(pack_half(b, how))
}

/// Modifiers of F2IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PackInt {
    /// True if results are s8, false if they are u8.
    pub signed: bool,
    /// The direction in which fractions are rounded.
    pub round: Round,
    /// True if NaN becomes 0.
    pub ntz: bool,
    /// True if negative results become 0.
    pub relu: bool,
}

/// F2IP: A and B become bytes 1 and 0 with saturation, and `c16` moves into the upper half.
#[inline(always)]
#[must_use]
pub fn pack_bytes(a: u32, b: u32, c16: u16, how: PackInt) -> u32 {
    let byte = |x: u32| {
        let value = f32_to_int(x, Int { bits: 8, signed: how.signed }, how.round, how.ntz, false);
        if how.relu && (value as i64) < 0 { 0 } else { (value & 0xff) as u32 }
    };
    u32::from(c16) << 16 | byte(a) << 8 | byte(b)
}

#[cfg(test)]
#[path = "tests/convert.rs"]
mod tests;
