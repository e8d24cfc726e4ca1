//! Sums and products with the errors that their rounding makes, which say how they would be rounded in another way.

use crate::{Double, Simd};
use sm87_num::Round;

/// A sum of floats, rounded to odd.
#[inline(always)]
pub fn add_odd<V: Simd>(x: V, y: V) -> V {
    let (top, zero) = (V::splat(1 << 31), V::splat(0));
    let sum = x.fadd(y);
    // The error of the sum is a float (Knuth's TwoSum).
    let second = sum.fadd(x.xor(top));
    let first = sum.fadd(second.xor(top));
    let error = x.fadd(first.xor(top)).fadd(y.fadd(second.xor(top)));
    let (above, below) = (zero.flt(error), error.flt(zero));
    // The neighbour of an even float that is not exact is odd. Bits count from zero on both sides.
    let is_even = sum.and(V::splat(1)).eq(zero);
    let step = sum.sar(V::splat(31)).xor(above).or(V::splat(1));
    let step = V::splat(0).sub(step);
    above.or(below).and(is_even).select(sum.add(step), sum)
}

/// The sum or product of doubles, rounded to nearest, as the host does. The mask has the lanes whose result has the exponent of a NaN: the vector
/// form does not compute which NaN results.
#[inline(always)]
pub fn nearest<V: Simd>(op: Double, a: [V; 2], b: [V; 2], c: [V; 2]) -> ([V; 2], V) {
    let r = match op {
        Double::Add => add(a, b),
        Double::Mul => mul(a, b),
        Double::Fma => V::double(Double::Fma, a, b, c),
    };
    let top = V::splat(0x7ff0_0000);
    (r, r[1].and(top).eq(top))
}

#[inline(always)]
fn add<V: Simd>(x: [V; 2], y: [V; 2]) -> [V; 2] {
    V::double(Double::Add, x, x, y)
}

#[inline(always)]
fn mul<V: Simd>(x: [V; 2], y: [V; 2]) -> [V; 2] {
    V::double(Double::Mul, x, y, x)
}

#[inline(always)]
fn minus<V: Simd>(x: [V; 2]) -> [V; 2] {
    [x[0], x[1].xor(V::splat(1 << 31))]
}

/// A sum and its error, which is a double (Knuth's TwoSum).
#[inline(always)]
fn two_sum<V: Simd>(x: [V; 2], y: [V; 2]) -> [[V; 2]; 2] {
    let sum = add(x, y);
    let second = add(sum, minus(x));
    let first = add(sum, minus(second));
    [sum, add(add(x, minus(first)), add(y, minus(second)))]
}

// These are functions, and no closures, because a closure would be handed the host's vectors in memory.

/// The high word of a number without its sign.
#[inline(always)]
fn size<V: Simd>(x: [V; 2]) -> V {
    x[1].and(V::splat(0x7fff_ffff))
}

/// Whether a number is zero, of either sign.
#[inline(always)]
fn is_zero<V: Simd>(x: [V; 2]) -> V {
    size(x).or(x[0]).eq(V::splat(0))
}

/// Whether a number is infinite, a NaN, or so large that twice as much has no double.
#[inline(always)]
fn large<V: Simd>(x: [V; 2]) -> V {
    V::splat(0x7fdf_ffff).lt(size(x))
}

/// Whether the error of the product of two numbers need not be a double: its last bit may be below that of the least double.
#[inline(always)]
fn small<V: Simd>(a: [V; 2], b: [V; 2], product: [V; 2]) -> V {
    size(product).lt(V::splat(64 << 20)).and(is_zero(a).or(is_zero(b)).not())
}

/// The same, rounded in another direction: a result that is rounded to nearest is at most one step away, and the sign of its error tells which. The
/// mask has the lanes in which the error need not be a double, or may be too large for one.
#[inline(always)]
pub fn directed<V: Simd>(op: Double, round: Round, a: [V; 2], b: [V; 2], c: [V; 2]) -> ([V; 2], V) {
    let (r, error, open) = match op {
        Double::Add => {
            let [sum, error] = two_sum(a, b);
            (zero_sum(round, sum, a[1].or(b[1])), error, large(sum).or(large(a)).or(large(b)))
        }
        Double::Mul => {
            let r = mul(a, b);
            (r, V::double(Double::Fma, a, b, minus(r)), large(r).or(small(a, b, r)))
        }
        Double::Fma => {
            // ErrFma of Boldo and Muller (Exact and approximated error of the FMA, 2011), without its last sum: only its sign matters.
            let (r, product) = (V::double(Double::Fma, a, b, c), mul(a, b));
            let rest = V::double(Double::Fma, a, b, minus(product));
            let [low, lowest] = two_sum(c, rest);
            let [high, middle] = two_sum(product, low);
            let error = add(add(add(high, minus(r)), middle), lowest);
            let open = large(r).or(large(product)).or(large(c)).or(small(a, b, product));
            (zero_sum(round, r, a[1].xor(b[1]).or(c[1])), error, open)
        }
    };
    (stepped(round, r, error), open)
}

/// A sum of zero is negative if it is rounded down, unless both of its terms are positive. `signs` has the sign of either term.
#[inline(always)]
fn zero_sum<V: Simd>(round: Round, r: [V; 2], signs: V) -> [V; 2] {
    let sign = signs.and(V::splat(1 << 31)).and(is_zero(r));
    [r[0], if round == Round::Rm { r[1].or(sign) } else { r[1] }]
}

/// The neighbour of a number that is rounded to nearest, where the direction asks for it. `error` is what the exact number has more.
#[inline(always)]
fn stepped<V: Simd>(round: Round, r: [V; 2], error: [V; 2]) -> [V; 2] {
    let [above, exact, _] = V::double_relation([V::splat(0); 2], error);
    let (below, negative) = (above.or(exact).not(), r[1].sar(V::splat(31)));
    let (up, down) = match round {
        Round::Rp => (above, V::splat(0)),
        Round::Rm => (V::splat(0), below),
        _ => (above.and(negative), below.and(negative.not())),
    };
    // Bits count from zero on both sides.
    let inward = negative.select(up, down);
    let outward = negative.select(down, up);
    V::add_wide(r, [inward.or(outward.and(V::splat(1))), inward]).0
}
