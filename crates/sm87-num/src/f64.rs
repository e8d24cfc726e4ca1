//! Double precision: DADD, DMUL, DFMA and DSETP on raw bits of a register pair.
//!
//! A NaN operand is propagated and made quiet. For DADD and DMUL the second operand comes before the first. For DFMA
//! the order is the second, the third and then the first. Rounding to nearest is the host's arithmetic. The other
//! directions use exact integer arithmetic in 128 bits; compilers use them only inside division and square root.

use super::f32::relation;
use super::format::{Exact, Format};
use super::round::Round;

/// The NaN of an operation that has no number as its result, for example ∞ − ∞.
pub const INVALID: u64 = 0xfff8_0000_0000_0000;

const SIGN: u64 = 1 << 63;
const QUIET: u64 = 1 << 51;

/// Applies operand modifiers: first the absolute value, then the negation. A NaN keeps its sign.
#[inline(always)]
#[must_use]
pub const fn modify(x: u64, abs: bool, neg: bool) -> u64 {
    if f64::from_bits(x).is_nan() {
        return x;
    }
    (if abs { x & !SIGN } else { x }) ^ (if neg { SIGN } else { 0 })
}

/// The result, or a NaN made from the first of `operands` that is a NaN.
#[inline(always)]
fn finish<const N: usize>(x: f64, operands: [u64; N]) -> u64 {
    if x.is_nan() { propagate(&operands) } else { x.to_bits() }
}

#[cold]
#[inline]
fn propagate(operands: &[u64]) -> u64 {
    operands.iter().find(|&&x| f64::from_bits(x).is_nan()).map_or(INVALID, |x| x | QUIET)
}

/// DADD.
#[inline(always)]
#[must_use]
pub fn add(a: u64, b: u64, round: Round) -> u64 {
    match round {
        Round::Rn => finish(f64::from_bits(a) + f64::from_bits(b), [b, a]),
        _ => directed_fma(a, 1f64.to_bits(), b, round),
    }
}

/// DMUL.
#[inline(always)]
#[must_use]
pub fn mul(a: u64, b: u64, round: Round) -> u64 {
    let (x, y) = (f64::from_bits(a), f64::from_bits(b));
    match round {
        Round::Rn => finish(x * y, [b, a]),
        _ if !x.is_finite() || !y.is_finite() => finish(x * y, [b, a]),
        _ => product(x, y).pack(Format::F64, round),
    }
}

/// DFMA, with one rounding.
#[inline(always)]
#[must_use]
pub fn fma(a: u64, b: u64, c: u64, round: Round) -> u64 {
    match round {
        Round::Rn => finish(f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c)), [b, c, a]),
        _ => directed_fma(a, b, c, round),
    }
}

/// The exact product of two finite numbers, which has at most 106 bits.
#[inline]
fn product(x: f64, y: f64) -> Exact {
    let (x, y) = (Exact::from_f64(x), Exact::from_f64(y));
    Exact {
        negative: x.negative != y.negative,
        significand: x.significand * y.significand,
        exponent: x.exponent + y.exponent,
    }
}

#[inline(never)]
fn directed_fma(a: u64, b: u64, c: u64, round: Round) -> u64 {
    let (x, y, z) = (f64::from_bits(a), f64::from_bits(b), f64::from_bits(c));
    if !x.is_finite() || !y.is_finite() || !z.is_finite() {
        // No rounding happens here. The product is computed separately, so that a huge finite product cannot become ∞.
        let infinite = if x.is_finite() && y.is_finite() { 0.0 } else { x * y };
        return finish(infinite + z, [b, c, a]);
    }
    sum(product(x, y), Exact::from_f64(z), round)
}

/// Adds two exact numbers of at most 106 bits and rounds once.
#[inline]
fn sum(x: Exact, y: Exact, round: Round) -> u64 {
    // A zero has no exponent with which the other number could be aligned.
    let (x, y) = match (x.significand, y.significand) {
        (0, 0) => return zero(x.negative, y.negative, round),
        (0, _) => (y, Exact { exponent: y.exponent, ..x }),
        (_, 0) => (x, Exact { exponent: x.exponent, ..y }),
        _ => (raise(x), raise(y)),
    };
    let (large, small) = if (x.exponent, x.significand) >= (y.exponent, y.significand) { (x, y) } else { (y, x) };
    // If bits are lost here, the exponents are far apart, so at most one leading bit cancels and 120 bits stay.
    let aligned = Exact::jam(small.significand, (large.exponent - small.exponent).unsigned_abs());
    let exponent = large.exponent;
    if large.negative == small.negative {
        let significand = large.significand + aligned;
        return Exact { negative: large.negative, significand, exponent }.pack(Format::F64, round);
    }
    let significand = large.significand.abs_diff(aligned);
    if significand == 0 {
        return zero(true, false, round);
    }
    let negative = if large.significand >= aligned { large.negative } else { small.negative };
    Exact { negative, significand, exponent }.pack(Format::F64, round)
}

/// Shifts a nonzero significand left until its top bit is bit 125.
#[inline]
fn raise(x: Exact) -> Exact {
    let up = x.significand.leading_zeros() as i32 - 2;
    Exact { negative: x.negative, significand: x.significand << up, exponent: x.exponent - up }
}

/// The sign that IEEE requires for a sum that is exactly zero.
#[inline]
fn zero(x: bool, y: bool, round: Round) -> u64 {
    let negative = if x == y { x } else { round == Round::Rm };
    if negative { SIGN } else { 0 }
}

/// The compare codes 1 to 14 of DSETP are those of FSETP. Codes 0 (`.MIN`) and 15 (`.MAX`) choose: the result is true
/// if the first operand is the minimum or maximum. −0 is below +0, and a NaN is never chosen over a number.
#[inline(always)]
#[must_use]
pub fn compare(a: u64, b: u64, code: u8) -> bool {
    match code & 15 {
        0 => chooses(a, b, true),
        15 => chooses(a, b, false),
        code => relation(f64::from_bits(a), f64::from_bits(b)) & code != 0,
    }
}

#[inline]
fn chooses(a: u64, b: u64, min: bool) -> bool {
    match (f64::from_bits(a).is_nan(), f64::from_bits(b).is_nan()) {
        (false, false) => (order(a) < order(b)) == min,
        (a_nan, _) => !a_nan,
    }
}

/// Maps the bits of a number to an integer so that the order is the same. −0 comes before +0.
#[inline(always)]
const fn order(x: u64) -> i64 {
    let x = x as i64;
    x ^ ((x >> 63) as u64 >> 1) as i64
}

/// The second predicate of DSETP for `.MIN` and `.MAX`: both operands are NaN. After selecting with the first
/// predicate, compilers make the second operand quiet under this one. If it were true in any other case, a number would
/// be damaged.
#[inline(always)]
#[must_use]
pub const fn both_nan(a: u64, b: u64) -> bool {
    f64::from_bits(a).is_nan() & f64::from_bits(b).is_nan()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::{draws, edges, product, rounds_to, value, zero_sum};

    const F: Format = Format::F64;

    fn sign(x: u64) -> bool {
        x >> 63 != 0
    }

    /// Checks a result that is not finite. `operands` are in the order in which NaNs are taken.
    fn special(x: f64, got: u64, operands: &[u64]) -> bool {
        let nan = operands.iter().find(|&&x| f64::from_bits(x).is_nan());
        got == if x.is_nan() { nan.map_or(0xfff8 << 48, |x| x | 8 << 48) } else { x.to_bits() }
    }

    fn check(a: u64, b: u64, c: u64, round: Round) -> Result<(), &'static str> {
        let [x, y, z] = [a, b, c].map(f64::from_bits);
        let sum = add(a, c, round);
        let good = if x.is_finite() && z.is_finite() {
            let exact = value(F, a).plus(&value(F, c));
            rounds_to(F, &exact, round, sum, zero_sum(sign(a), sign(c), round))
        } else {
            special(x + z, sum, &[c, a])
        };
        good.then_some(()).ok_or("sum")?;
        let times = mul(a, b, round);
        let finite = x.is_finite() && y.is_finite();
        let good = match finite {
            true => rounds_to(F, &product(F, a, b, 0), round, times, sign(a) != sign(b)),
            false => special(x * y, times, &[b, a]),
        };
        good.then_some(()).ok_or("product")?;
        let fused = fma(a, b, c, round);
        let good = if finite && z.is_finite() {
            let exact = product(F, a, b, 0).plus(&value(F, c));
            rounds_to(F, &exact, round, fused, zero_sum(sign(a) != sign(b), sign(c), round))
        } else {
            special(x.mul_add(y, z), fused, &[b, c, a])
        };
        good.then_some(()).ok_or("fused")
    }

    #[test]
    fn edges_of_everything() {
        let edges = edges(F);
        for (i, &a) in edges.iter().enumerate() {
            for (j, &b) in edges.iter().enumerate() {
                for (k, &c) in edges.iter().enumerate().filter(|(k, _)| (i + j + k) % 2 == 0) {
                    let round = Round::from_bits(((i + j + k) / 2) as u32);
                    assert_eq!(check(a, b, c, round), Ok(()), "{a:#x} {b:#x} {c:#x} {round:?}");
                }
            }
        }
    }

    #[test]
    fn random() {
        for mut draw in draws(50_000) {
            let a = draw.bits(F);
            let b = draw.bits(F);
            let c = draw.bits(F);
            let round = draw.round();
            assert_eq!(check(a, b, c, round), Ok(()), "{a:#x} {b:#x} {c:#x} {round:?}");
        }
    }

    #[test]
    fn cancelling() {
        for mut draw in draws(50_000) {
            let a = draw.bits(F);
            let b = draw.bits(F);
            let ulps = draw.below(5) as i64 - 2;
            let round = draw.round();
            let near = (-(f64::from_bits(a) * f64::from_bits(b))).to_bits();
            let c = near.wrapping_add_signed(ulps);
            assert_eq!(check(a, b, c, round), Ok(()), "{a:#x} {b:#x} {c:#x} {round:?}");
        }
    }

    #[test]
    fn compare_codes() {
        for mut draw in draws(50_000) {
            let a = draw.bits(F);
            let b = draw.bits(F);
            let (x, y) = (f64::from_bits(a), f64::from_bits(b));
            let (lt, eq, gt, un) = (x < y, x == y, x > y, x.is_nan() || y.is_nan());
            let want = [
                lt,
                eq,
                lt | eq,
                gt,
                lt | gt,
                gt | eq,
                !un,
                un,
                lt | un,
                eq | un,
                lt | eq | un,
                gt | un,
                lt | gt | un,
                gt | eq | un,
            ];
            for (code, want) in (1..).zip(want) {
                assert_eq!(compare(a, b, code), want, "code {}", code);
            }
        }
    }

    /// The compiler's minimum selects by the first predicate and makes the second operand quiet under the second.
    #[test]
    fn minimum_and_maximum() {
        for mut draw in draws(50_000) {
            let a = draw.bits(F);
            let b = draw.bits(F);
            let min = draw.flag();
            let code = if min { 0 } else { 15 };
            let picked = if compare(a, b, code) { a } else { b };
            let got = f64::from_bits(if both_nan(a, b) { b | 1 << 51 } else { picked });
            let (x, y) = (f64::from_bits(a), f64::from_bits(b));
            // The host's own min and max disagree about signalling NaNs.
            let want = match (x.is_nan(), y.is_nan()) {
                (true, _) => y,
                (_, true) => x,
                _ if min => x.min(y),
                _ => x.max(y),
            };
            assert!(got == want || (got.is_nan() && want.is_nan()));
            if x == 0.0 && y == 0.0 {
                assert_eq!(got.is_sign_negative(), if min { sign(a) | sign(b) } else { sign(a) & sign(b) });
            }
        }
    }

    #[test]
    fn modifiers_act_on_bits() {
        assert_eq!(modify(1 << 63, true, false), 0);
        assert_eq!(modify(0, true, true), 1 << 63);
        assert_eq!(modify(0xfff0_0000_0000_0001, true, true), 0xfff0_0000_0000_0001, "a NaN stays as it is");
    }
}
