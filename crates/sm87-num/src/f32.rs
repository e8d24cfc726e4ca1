//! Single precision: FADD, FMUL, FFMA, FMNMX, FSET(P) and FCHK on raw register bits.
//!
//! Results that are rounded to nearest come from the host's own arithmetic. A handler that knows its `Mode` at decode
//! time therefore compiles to plain vector code; inside a `target_feature(enable = "fma")` function, [`fma`] is one
//! instruction. The other directions go through [`super::round`].

use super::round::{Round, add_odd, narrow};

/// The bits of every computed NaN. Payloads are not propagated.
pub const NAN: u32 = 0x7fff_ffff;

const SIGN: u32 = 0x8000_0000;
const INFINITY: u32 = 0x7f80_0000;

/// Result modifiers of the arithmetic instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mode {
    /// The rounding direction.
    pub round: Round,
    /// True if denormal operands and results become zeros of the same sign.
    pub ftz: bool,
    /// True if the result is clamped to [0, 1]. NaN becomes +0.
    pub sat: bool,
}

/// Applies operand modifiers: first the absolute value, then the negation. They change the bits of a NaN too.
#[inline(always)]
#[must_use]
pub const fn modify(x: u32, abs: bool, neg: bool) -> u32 {
    (if abs { x & !SIGN } else { x }) ^ (if neg { SIGN } else { 0 })
}

/// Replaces a denormal by the zero with its sign.
#[inline(always)]
#[must_use]
pub const fn flush(x: u32) -> u32 {
    if x & INFINITY == 0 { x & SIGN } else { x }
}

/// Whether the bits are a NaN.
#[inline(always)]
#[must_use]
pub const fn is_nan(x: u32) -> bool {
    x & !SIGN > INFINITY
}

#[inline(always)]
const fn input(x: u32, ftz: bool) -> f32 {
    f32::from_bits(if ftz { flush(x) } else { x })
}

/// Applies the result modifiers to a rounded number.
#[inline(always)]
pub(super) fn finish(x: f32, mode: Mode) -> u32 {
    let bits = if x.is_nan() { NAN } else { x.to_bits() };
    let bits = if mode.ftz { flush(bits) } else { bits };
    if !mode.sat {
        return bits;
    }
    let x = f32::from_bits(bits);
    // The comparisons are false for NaN and for −0, so both become +0.
    if x >= 1.0 {
        1f32.to_bits()
    } else if x > 0.0 {
        bits
    } else {
        0
    }
}

/// `.FTZ` also flushes a result that is the smallest normal number only because denormals have few bits: with all 24
/// bits and any exponent, the result would be smaller.
#[inline(always)]
pub(super) fn underflows(rounded: f32, exact: impl FnOnce() -> f64, round: Round) -> bool {
    const UP: f64 = (1u64 << 32) as f64;
    rounded.abs() == f32::MIN_POSITIVE && narrow(exact() * UP, round).abs() < f32::MIN_POSITIVE * UP as f32
}

/// Computes `x + y` for exact `f64` operands, rounded in the given direction. An exact zero has the sign that IEEE
/// requires.
#[inline(always)]
fn directed_sum(x: f64, y: f64, round: Round) -> f32 {
    let sum = add_odd(x, y);
    if sum == 0.0 && round == Round::Rm {
        // Opposite zeros (and x − x) give −0 only when rounding down. Zeros with the same sign keep it.
        return if x.to_bits() == 0 && y.to_bits() == 0 { 0.0 } else { -0.0 };
    }
    narrow(sum, round)
}

/// FADD.
#[inline(always)]
#[must_use]
pub fn add(a: u32, b: u32, mode: Mode) -> u32 {
    let (a, b) = (input(a, mode.ftz), input(b, mode.ftz));
    let sum = match mode.round {
        Round::Rn => a + b,
        round => directed_sum(a.into(), b.into(), round),
    };
    finish(sum, mode)
}

/// How FMUL and FFMA multiply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Product {
    /// `.FMZ`: a zero factor gives +0 whatever the other factor is, even ∞ or NaN. Denormals count as zero.
    pub fmz: bool,
    /// The scale of FMUL: the product is multiplied by 2^`scale` (−3 to 3) before its only rounding.
    pub scale: i8,
}

impl Product {
    /// Reads the scale field of FMUL (bits 84 to 86): 1, 2 and 3 divide by 8, 4 and 2; 4 does not scale; 5, 6 and 7
    /// multiply by 2, 4 and 8.
    #[inline(always)]
    #[must_use]
    pub const fn from_bits(fmz: bool, scale: u32) -> Self {
        Self { fmz, scale: (scale & 7) as i8 - 4 }
    }
}

#[inline(always)]
fn zero_factor(a: u32, b: u32) -> bool {
    flush(a) & !SIGN == 0 || flush(b) & !SIGN == 0
}

/// FMUL.
#[inline(always)]
#[must_use]
pub fn mul(a: u32, b: u32, mode: Mode, product: Product) -> u32 {
    let mode = Mode { ftz: mode.ftz || product.fmz, ..mode };
    if product.fmz && zero_factor(a, b) {
        return 0;
    }
    let (a, b) = (input(a, mode.ftz), input(b, mode.ftz));
    // The 48 bits of the product and a power of two are exact in f64.
    let exact = || f64::from(a) * f64::from(b) * f64::from_bits(((1023 + i64::from(product.scale)) as u64) << 52);
    let plain = product.scale == 0 && mode.round == Round::Rn;
    let rounded = if plain { a * b } else { narrow(exact(), mode.round) };
    let tiny = mode.ftz && underflows(rounded, exact, mode.round);
    finish(if tiny { 0f32.copysign(rounded) } else { rounded }, mode)
}

/// FFMA, with one rounding. The scale of the product is not used.
#[inline(always)]
#[must_use]
pub fn fma(a: u32, b: u32, c: u32, mode: Mode, fmz: bool) -> u32 {
    let mode = Mode { ftz: mode.ftz || fmz, ..mode };
    let (mut x, mut y, c) = (input(a, mode.ftz), input(b, mode.ftz), input(c, mode.ftz));
    if fmz && zero_factor(a, b) {
        (x, y) = (0.0, 0.0);
    }
    let sum = match mode.round {
        Round::Rn => x.mul_add(y, c),
        round => directed_sum(f64::from(x) * f64::from(y), c.into(), round),
    };
    let tiny = mode.ftz && underflows(sum, || add_odd(f64::from(x) * f64::from(y), c.into()), mode.round);
    finish(if tiny { 0f32.copysign(sum) } else { sum }, mode)
}

/// Modifiers of FMNMX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MinMax {
    /// True if denormal operands count as zeros and are returned as zeros.
    pub ftz: bool,
    /// True if a NaN operand makes the result NaN. Otherwise the other operand is the result.
    pub nan: bool,
    /// True if the sign of the result is the exclusive or of the operands' signs.
    pub xorsign: bool,
}

impl MinMax {
    /// Whether the result is the first operand, or `None` if it is NaN. `nans` says which operands are NaNs; `is_wanted` says that
    /// the first one is the less if the minimum is wanted, and not the less otherwise. It counts only if both are numbers.
    #[inline(always)]
    pub(super) const fn takes_first(self, nans: (bool, bool), is_wanted: bool) -> Option<bool> {
        match nans {
            (false, false) => Some(is_wanted),
            (true, false) if !self.nan => Some(false),
            (false, true) if !self.nan => Some(true),
            _ => None,
        }
    }
}

/// FMNMX: the minimum if `min` is true, otherwise the maximum. −0 is less than +0.
///
/// With `xorsign`, compilers write absolute values as operands, so the signs must come from the registers before
/// modifiers. `signs` is the exclusive or of the two registers, of which only the sign bit is used.
#[inline(always)]
#[must_use]
pub fn min_max(a: u32, b: u32, min: bool, how: MinMax, signs: u32) -> u32 {
    let (a, b) = if how.ftz { (flush(a), flush(b)) } else { (a, b) };
    let Some(is_first) = how.takes_first((is_nan(a), is_nan(b)), (order(a) < order(b)) == min) else { return NAN };
    let picked = if is_first { a } else { b };
    if how.xorsign { picked & !SIGN | signs & SIGN } else { picked }
}

/// Maps the bits of a number to an integer so that the order is the same. −0 comes before +0.
#[inline(always)]
const fn order(x: u32) -> i32 {
    let x = x as i32;
    x ^ ((x >> 31) as u32 >> 1) as i32
}

/// The compare code of FSETP and FSET: bit 0 is less, bit 1 equal, bit 2 greater, bit 3 unordered.
#[inline(always)]
#[must_use]
pub fn compare(a: u32, b: u32, code: u8, ftz: bool) -> bool {
    relation(input(a, ftz), input(b, ftz)) & code != 0
}

#[inline(always)]
pub(super) fn relation<T: PartialOrd>(a: T, b: T) -> u8 {
    let ordered = u8::from(a < b) | u8::from(a == b) << 1 | u8::from(a > b) << 2;
    if ordered == 0 { 8 } else { ordered }
}

/// The result of FSET: 1.0 or 0.0 with `.BF`, otherwise a mask of ones or zeros.
#[inline(always)]
#[must_use]
pub const fn set(value: bool, bf: bool) -> u32 {
    match (value, bf) {
        (false, _) => 0,
        (true, true) => 0x3f80_0000,
        (true, false) => u32::MAX,
    }
}

/// FCHK: whether `a / b` needs the slow division.
///
/// The exact condition of the hardware is not published. If the result is true, compilers branch to a division that is
/// right for all operands, so the result may safely be true too often. It is true wherever the fast sequence (a
/// reciprocal and fused refinements) could overflow, underflow or lose bits.
#[inline(always)]
#[must_use]
pub const fn check_division(a: u32, b: u32) -> bool {
    let (ea, eb) = ((a >> 23 & 0xff) as i32, (b >> 23 & 0xff) as i32);
    eb == 0 || eb >= 253 || ea == 255 || ea <= 24 || (ea - eb).abs() >= 125
}

#[cfg(test)]
#[path = "tests/f32.rs"]
mod tests;
