//! Halves: IEEE f16 and bfloat16 scalars, and the packed HADD2, HMUL2, HFMA2, HMNMX2, HSET2, HSETP2.
//!
//! Every operand is converted exactly to `f32`. Results are computed in `f64` (sums are rounded to odd) and rounded
//! once to the half.

use super::f32::{MinMax, modify, relation, underflows};
use super::format::{Exact, Format};
use super::round::{Round, add_odd, narrow_odd};

/// The 16-bit format on which an instruction works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// IEEE half.
    #[default]
    F16,
    /// bfloat16 (`.BF16`, `.BF16_V2`).
    Bf16,
}

/// A computed NaN in either format.
pub const NAN: u16 = 0x7fff;

const SIGN: u16 = 0x8000;

impl Kind {
    /// The widths of its fields.
    #[inline(always)]
    #[must_use]
    pub const fn format(self) -> Format {
        match self {
            Self::F16 => Format::F16,
            Self::Bf16 => Format::BF16,
        }
    }

    /// The bits of +∞.
    #[inline(always)]
    #[must_use]
    pub const fn infinity(self) -> u16 {
        self.format().infinity() as u16
    }

    /// The bits of 1.0.
    #[inline(always)]
    #[must_use]
    pub const fn one(self) -> u16 {
        match self {
            Self::F16 => 0x3c00,
            Self::Bf16 => 0x3f80,
        }
    }

    /// Whether `.FTZ` flushes `exact`, which was rounded to `half`. This is [`super::f32::underflows`] for halves.
    #[inline(always)]
    fn underflows(self, half: u16, exact: f64) -> bool {
        const UP: f64 = (1 << 8) as f64;
        let smallest = 1 << self.format().fraction;
        let magnitude = half & !SIGN;
        let wider = || self.round_f64(exact * UP, Round::Rn) & !SIGN;
        magnitude < smallest || magnitude == smallest && wider() < 9 * smallest
    }

    /// Whether the bits are a NaN.
    #[inline(always)]
    #[must_use]
    pub const fn is_nan(self, x: u16) -> bool {
        x & !SIGN > self.infinity()
    }

    /// Replaces a denormal by the zero with its sign.
    #[inline(always)]
    #[must_use]
    pub const fn flush(self, x: u16) -> u16 {
        if x & self.infinity() == 0 { x & SIGN } else { x }
    }

    /// Widens to `f32`, which is exact. NaN stays NaN.
    #[inline(always)]
    #[must_use]
    pub const fn widen(self, x: u16) -> f32 {
        if matches!(self, Self::Bf16) {
            return f32::from_bits((x as u32) << 16);
        }
        let magnitude = ((x & !SIGN) as u32) << 13;
        let sign = ((x & SIGN) as u32) << 16;
        if x & 0x7c00 == 0x7c00 {
            return f32::from_bits(sign | 0x7f80_0000 | magnitude);
        }
        // The exponent field is smaller by 112 than that of f32. The multiplication corrects this, for denormals too.
        let scaled = f32::from_bits(magnitude) * f32::from_bits((127 + 112) << 23);
        f32::from_bits(sign | scaled.to_bits())
    }

    /// Rounds an `f32` once. NaN becomes the canonical NaN.
    #[inline(always)]
    #[must_use]
    pub fn round_f32(self, x: f32, round: Round) -> u16 {
        if x.is_nan() {
            return NAN;
        }
        match (self, round) {
            (Self::F16, Round::Rn) => nearest_f16(x),
            (Self::Bf16, Round::Rn) => nearest_bf16(x),
            _ => self.round_exact(x.into(), round),
        }
    }

    /// Rounds an `f64`, which is exact or rounded to odd, once. NaN becomes the canonical NaN.
    #[inline(always)]
    #[must_use]
    pub fn round_f64(self, x: f64, round: Round) -> u16 {
        match round {
            // Because the first step rounds to odd, only the second rounding has an effect.
            Round::Rn => self.round_f32(narrow_odd(x), round),
            _ => self.round_exact(x, round),
        }
    }

    #[inline]
    fn round_exact(self, x: f64, round: Round) -> u16 {
        if x.is_nan() {
            return NAN;
        }
        if x.is_infinite() {
            return if x > 0.0 { self.infinity() } else { self.infinity() | SIGN };
        }
        Exact::from_f64(x).pack(self.format(), round) as u16
    }
}

#[inline(always)]
fn nearest_f16(x: f32) -> u16 {
    let bits = x.to_bits();
    let sign = (bits >> 16) as u16 & SIGN;
    let magnitude = bits & 0x7fff_ffff;
    let half = if magnitude < 0x3880_0000 {
        // Below 2^-14 the spacing is 2^-24, which is the spacing of f32 at 0.5.
        (f32::from_bits(magnitude) + 0.5).to_bits() - 0.5f32.to_bits()
    } else if magnitude < 0x4780_0000 {
        let even = magnitude >> 13 & 1;
        (magnitude - (112 << 23) + 0xfff + even) >> 13
    } else {
        0x7c00
    };
    sign | half as u16
}

#[inline(always)]
const fn nearest_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    // Carries run into the exponent and end in ∞, as they must. NaN was handled before.
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

/// The parts of a register that the two lanes of a packed operand read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Swizzle {
    /// `.H1_H0`: each lane reads its own half.
    #[default]
    Packed = 0,
    /// `.F32`: the register is one f32, which both lanes read.
    F32 = 1,
    /// `.H0_H0`: both lanes read the low half.
    Low = 2,
    /// `.H1_H1`: both lanes read the high half.
    High = 3,
}

impl Swizzle {
    /// Reads the low two bits of an instruction field.
    #[inline(always)]
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        match bits & 3 {
            0 => Self::Packed,
            1 => Self::F32,
            2 => Self::Low,
            _ => Self::High,
        }
    }
}

/// How a packed operand is read: first the swizzle, then the absolute value, then the negation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Operand {
    /// The halves that are read.
    pub swizzle: Swizzle,
    /// True for the absolute value of both lanes.
    pub abs: bool,
    /// True for the negation of both lanes.
    pub neg: bool,
}

impl Operand {
    /// The two lanes as 16-bit patterns, the low one first. A `.F32` operand is rounded to the half.
    #[inline(always)]
    #[must_use]
    pub fn halves(self, kind: Kind, x: u32) -> [u16; 2] {
        let (low, high) = (x as u16, (x >> 16) as u16);
        let lanes = match self.swizzle {
            Swizzle::Packed => [low, high],
            Swizzle::F32 => [kind.round_f32(f32::from_bits(x), Round::Rn); 2],
            Swizzle::Low => [low; 2],
            Swizzle::High => [high; 2],
        };
        let lane = |lane: u16| (if self.abs { lane & !SIGN } else { lane }) ^ (if self.neg { SIGN } else { 0 });
        // `map` is not used, because on arrays the compiler does not inline it.
        [lane(lanes[0]), lane(lanes[1])]
    }

    /// The two lanes as exact numbers, the low one first. With `ftz`, denormal halves (or a denormal f32) are zeros.
    #[inline(always)]
    #[must_use]
    pub fn lanes(self, kind: Kind, x: u32, ftz: bool) -> [f32; 2] {
        if self.swizzle == Swizzle::F32 {
            let x = modify(x, self.abs, self.neg);
            return [f32::from_bits(if ftz { super::f32::flush(x) } else { x }); 2];
        }
        let [low, high] = self.halves(kind, x);
        let lane = |lane: u16| kind.widen(if ftz { kind.flush(lane) } else { lane });
        [lane(low), lane(high)]
    }
}

/// Modifiers of the packed arithmetic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mode {
    /// The format: f16 or bfloat16.
    pub kind: Kind,
    /// True if denormal operands and results become zeros of the same sign.
    pub ftz: bool,
    /// True if a zero factor gives +0 whatever the other factor is. It implies `ftz`.
    pub fmz: bool,
    /// True if the result is clamped to [0, 1]. NaN becomes +0.
    pub sat: bool,
    /// True if negative results become +0.
    pub relu: bool,
    /// `.F32`: the result is one f32, from the low lane.
    pub f32: bool,
}

impl Mode {
    /// Whether denormal operands count as zeros.
    #[inline(always)]
    #[must_use]
    pub const fn flushes(self) -> bool {
        self.ftz | self.fmz
    }

    /// Rounds both lanes and packs them.
    #[inline(always)]
    fn finish(self, lanes: [f64; 2]) -> u32 {
        if self.f32 {
            let mode = super::f32::Mode { ftz: self.flushes(), sat: self.sat, round: Round::Rn };
            let exact = if self.relu && lanes[0] <= 0.0 { 0.0 } else { lanes[0] };
            let rounded = exact as f32;
            let tiny = mode.ftz && underflows(rounded, || exact, Round::Rn);
            return super::f32::finish(if tiny { 0f32.copysign(rounded) } else { rounded }, mode);
        }
        let (low, high) = (self.finish_lane(lanes[0]), self.finish_lane(lanes[1]));
        u32::from(high) << 16 | u32::from(low)
    }

    #[inline(always)]
    fn finish_lane(self, x: f64) -> u16 {
        let x = if self.sat {
            // NaN and −0 fail the comparison and become +0.
            if x > 0.0 { x.min(1.0) } else { 0.0 }
        } else if self.relu && x <= 0.0 {
            0.0
        } else {
            x
        };
        let half = self.kind.round_f64(x, Round::Rn);
        if self.flushes() && self.kind.underflows(half, x) { half & SIGN } else { half }
    }

    #[inline(always)]
    fn product(self, a: f32, b: f32) -> f64 {
        if self.fmz && (a == 0.0 || b == 0.0) { 0.0 } else { f64::from(a) * f64::from(b) }
    }
}

/// HADD2 on lanes read by [`Operand::lanes`].
#[inline(always)]
#[must_use]
pub fn add2(a: [f32; 2], b: [f32; 2], mode: Mode) -> u32 {
    mode.finish([add_odd(a[0].into(), b[0].into()), add_odd(a[1].into(), b[1].into())])
}

/// HMUL2 on lanes read by [`Operand::lanes`].
#[inline(always)]
#[must_use]
pub fn mul2(a: [f32; 2], b: [f32; 2], mode: Mode) -> u32 {
    mode.finish([mode.product(a[0], b[0]), mode.product(a[1], b[1])])
}

/// HFMA2 on lanes that [`Operand::lanes`] has read, with one rounding.
#[inline(always)]
#[must_use]
pub fn fma2(a: [f32; 2], b: [f32; 2], c: [f32; 2], mode: Mode) -> u32 {
    let lane = |i: usize| add_odd(mode.product(a[i], b[i]), c[i].into());
    mode.finish([lane(0), lane(1)])
}

/// HMNMX2 on halves that [`Operand::halves`] has read. The rules are those of FMNMX. `signs` is the exclusive or of the
/// unmodified registers.
#[inline(always)]
#[must_use]
pub fn min_max2(a: [u16; 2], b: [u16; 2], min: bool, how: MinMax, kind: Kind, signs: u32) -> u32 {
    let low = min_max(a[0], b[0], min, how, kind, signs as u16);
    let high = min_max(a[1], b[1], min, how, kind, (signs >> 16) as u16);
    u32::from(high) << 16 | u32::from(low)
}

#[inline(always)]
fn min_max(a: u16, b: u16, min: bool, how: MinMax, kind: Kind, signs: u16) -> u16 {
    let (a, b) = if how.ftz { (kind.flush(a), kind.flush(b)) } else { (a, b) };
    let order = |x: u16| x as i16 ^ ((x as i16 >> 15) as u16 >> 1) as i16;
    let nans = (kind.is_nan(a), kind.is_nan(b));
    let Some(is_first) = how.takes_first(nans, (order(a) < order(b)) == min) else { return NAN };
    let picked = if is_first { a } else { b };
    if how.xorsign { picked & !SIGN | signs & SIGN } else { picked }
}

/// The comparison of HSET2 and HSETP2 for each lane, the low one first, with the codes of FSETP.
#[inline(always)]
#[must_use]
pub fn compare2(a: [f32; 2], b: [f32; 2], code: u8) -> [bool; 2] {
    [relation(a[0], b[0]) & code != 0, relation(a[1], b[1]) & code != 0]
}

/// The result of HSET2 for each half: 1.0 or 0.0 with `.BF`, otherwise a mask of ones or zeros.
#[inline(always)]
#[must_use]
pub const fn set2(values: [bool; 2], bf: bool, kind: Kind) -> u32 {
    let one = if bf { kind.one() as u32 } else { 0xffff };
    (if values[0] { one } else { 0 }) | (if values[1] { one << 16 } else { 0 })
}

#[cfg(test)]
#[path = "tests/half.rs"]
mod tests;
