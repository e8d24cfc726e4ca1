//! Integer arithmetic with carries, computed with masks of lanes: IADD3, IMAD and LEA with carries, IMAD.WIDE, IMAD.HI.
//!
//! The definitions for one lane are in [`sm87_num::int`].

use super::int::{HIGH, NEG, SX32, X};
use crate::exec::several::{Results, Several, Sources};
use crate::exec::simd::Simd;
use crate::exec::uop::Uop;

/// Counts the carries of each lane. The first mask has the lanes with at least one carry, the second those with two.
#[derive(Clone, Copy)]
struct Count<V> {
    one: V,
    two: V,
}

impl<V: Simd> Count<V> {
    #[inline(always)]
    fn new() -> Self {
        Count { one: V::splat(0), two: V::splat(0) }
    }

    #[inline(always)]
    fn and(self, carry: V) -> Self {
        Count { one: self.one.or(carry), two: self.two.or(self.one.and(carry)) }
    }
}

/// All ones if a modifier is set.
#[inline(always)]
fn ones<V: Simd>(u: &Uop, bit: u32) -> V {
    V::splat(if u.mods & bit != 0 { u32::MAX } else { 0 })
}

/// `x`, or its negation if `bit` is set, and whether the negation carries. Only the negation of zero does.
#[inline(always)]
fn negated<V: Simd>(u: &Uop, bit: u32, x: V, count: Count<V>) -> (V, Count<V>) {
    let neg = ones::<V>(u, bit);
    (x.xor(neg).sub(neg), count.and(neg.and(x.eq(V::splat(0)))))
}

/// `x + y`, and the lanes in which the sum carries.
#[inline(always)]
fn plus<V: Simd>(x: V, y: V, count: Count<V>) -> (V, Count<V>) {
    let sum = x.add(y);
    (sum, count.and(sum.ltu(x)))
}

/// Adds one to `x` in the lanes of a mask.
#[inline(always)]
fn plus_carry<V: Simd>(x: V, carry: V, count: Count<V>) -> (V, Count<V>) {
    let sum = x.sub(carry);
    (sum, count.and(carry.and(sum.eq(V::splat(0)))))
}

/// IADD3 without `.X`. It writes carries; the sources may be negated.
pub(super) struct Add3<const SIGNS: bool>;
impl<const SIGNS: bool> Several for Add3<SIGNS> {
    const CONDITIONS: usize = 2;
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, s: Sources<V>) -> Results<V> {
        let (mut a, mut b, mut c, mut count) = (s.a[0], s.b[0], s.c[0], Count::new());
        if SIGNS {
            (a, count) = negated(u, NEG[0], a, count);
            (b, count) = negated(u, NEG[1], b, count);
            (c, count) = negated(u, NEG[2], c, count);
        }
        let (sum, count) = plus(a, b, count);
        let (sum, count) = plus(sum, c, count);
        Results { value: [sum, sum], first: count.one, second: count.two }
    }
}

/// IADD3.X: a negated source is the complement, and two carries are added.
pub(super) struct Add3X;
impl Several for Add3X {
    const CONDITIONS: usize = 2;
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, s: Sources<V>) -> Results<V> {
        let (a, b, c) = (s.a[0].xor(ones(u, NEG[0])), s.b[0].xor(ones(u, NEG[1])), s.c[0].xor(ones(u, NEG[2])));
        let (sum, count) = plus(a, b, Count::new());
        let (sum, count) = plus(sum, c, count);
        let (sum, count) = plus_carry(sum, V::from_bits(s.p), count);
        let (sum, count) = plus_carry(sum, V::from_bits(s.q), count);
        Results { value: [sum, sum], first: count.one, second: count.two }
    }
}

/// IADD3 without `.X` of two numbers without signs, of which there is at most one carry.
pub(super) struct Add2;
impl Several for Add2 {
    #[inline(always)]
    fn eval<V: Simd>(_: &Uop, s: Sources<V>) -> Results<V> {
        let (sum, count) = plus(s.a[0], s.b[0], Count::new());
        Results::with(sum, count.one)
    }
}

/// IADD3.X of two numbers without signs, with one carry in. It writes carries or not.
pub(super) struct Add2X<const CARRIES: bool>;
impl<const CARRIES: bool> Several for Add2X<CARRIES> {
    const CONDITIONS: usize = if CARRIES { 2 } else { 0 };
    #[inline(always)]
    fn eval<V: Simd>(_: &Uop, s: Sources<V>) -> Results<V> {
        let (sum, count) = plus(s.a[0], s.b[0], Count::new());
        let (sum, count) = plus_carry(sum, V::from_bits(s.p), count);
        Results { value: [sum, sum], first: count.one, second: count.two }
    }
}

/// IMAD.X.
pub(super) struct MadX;
impl Several for MadX {
    const CONDITIONS: usize = 0;
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, s: Sources<V>) -> Results<V> {
        let c = s.c[0].xor(ones(u, NEG[2]));
        let sum = s.a[0].mul(s.b[0]).add(c).sub(V::from_bits(s.p));
        Results::value([sum, sum])
    }
}

/// IMAD.WIDE without carries.
pub(super) struct Wide<const SIGNED: bool>;
impl<const SIGNED: bool> Several for Wide<SIGNED> {
    const PAIRS: u32 = 4;
    const WORDS: usize = 2;
    const CONDITIONS: usize = 0;
    #[inline(always)]
    fn eval<V: Simd>(_: &Uop, s: Sources<V>) -> Results<V> {
        Results::value(V::add_wide(s.a[0].mul_wide(s.b[0], SIGNED), s.c).0)
    }
}

/// Adds C to the product, with all modifiers, and returns the carry of the sum.
#[inline(always)]
fn product_sum<V: Simd>(u: &Uop, s: Sources<V>, signed: bool) -> ([V; 2], V) {
    let neg = ones(u, NEG[2]);
    let mut c = [s.c[0].xor(neg), s.c[1].xor(neg)];
    if u.mods & X == 0 && u.mods & NEG[2] != 0 {
        c = V::add_wide(c, [V::splat(1), V::splat(0)]).0;
    }
    let (sum, carry) = V::add_wide(s.a[0].mul_wide(s.b[0], signed), c);
    if u.mods & X == 0 {
        return (sum, carry);
    }
    let more = V::from_bits(s.p).and(V::splat(1));
    let (sum, again) = V::add_wide(sum, [more, V::splat(0)]);
    (sum, carry.or(again))
}

/// IMAD.WIDE with carries.
pub(super) struct WideX<const SIGNED: bool>;
impl<const SIGNED: bool> Several for WideX<SIGNED> {
    const PAIRS: u32 = 4;
    const WORDS: usize = 2;
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, s: Sources<V>) -> Results<V> {
        let (value, first) = product_sum(u, s, SIGNED);
        Results { value, first, second: V::splat(0) }
    }
}

/// IMAD.HI.
pub(super) struct High<const SIGNED: bool>;
impl<const SIGNED: bool> Several for High<SIGNED> {
    const PAIRS: u32 = 4;
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, s: Sources<V>) -> Results<V> {
        let (value, first) = product_sum(u, s, SIGNED);
        Results::with(value[1], first)
    }
}

/// LEA in all its forms.
pub(super) struct Lea;
impl Several for Lea {
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, s: Sources<V>) -> Results<V> {
        let (a, shift) = (s.a[0], u.imm & 31);
        let shifted = if u.mods & HIGH != 0 {
            let high = if u.mods & SX32 != 0 { a.sar(V::splat(31)) } else { s.c[0] };
            high.shl(V::splat(shift)).or(a.shr(V::splat(32 - shift)))
        } else {
            a.shl(V::splat(shift))
        };
        if u.mods & X != 0 {
            let (a, b) = (shifted.xor(ones(u, NEG[0])), s.b[0].xor(ones(u, NEG[1])));
            let (sum, count) = plus(a, b, Count::new());
            let (sum, count) = plus_carry(sum, V::from_bits(s.p), count);
            return Results::with(sum, count.one);
        }
        let (a, count) = negated(u, NEG[0], shifted, Count::new());
        let (b, count) = negated(u, NEG[1], s.b[0], count);
        let (sum, count) = plus(a, b, count);
        Results::with(sum, count.one)
    }
}

#[cfg(test)]
#[path = "../tests/carry.rs"]
mod tests;
