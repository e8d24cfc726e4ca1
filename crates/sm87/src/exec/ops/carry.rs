//! Integer arithmetic with carries, computed with masks of lanes: IADD3, IMAD and LEA with carries, IMAD.WIDE, IMAD.HI.
//!
//! The definitions for one lane are in [`sm87_num::int`].

use super::int::{HIGH, NEG, SX32, X};
use crate::exec::several::{Results, Several, Sources};
use crate::exec::uop::Uop;
use sm87_simd::Simd;

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
mod tests {
    //! Carries on masks of lanes against the definitions for one lane.

    use super::*;
    use crate::exec::several::{Several, tests::lanes};
    use proptest::prelude::*;
    use sm87_num::int;

    /// Any words, and often those at which carries happen.
    fn word() -> impl Strategy<Value = u32> {
        prop_oneof![any::<u32>(), prop::sample::select(vec![0, 1, 2, 0x7fff_ffff, 0x8000_0000, u32::MAX - 1, u32::MAX])]
    }

    /// The result of an operation for each lane: two words and two conditions.
    type Outcome = (u64, [bool; 2]);

    /// Compares an operation with its definition, which gets three pairs of words and two predicates.
    fn check<O: Several>(
        mods: u32,
        imm: u32,
        x: [[u32; 8]; 6],
        preds: [u32; 2],
        want: impl Fn([u64; 3], [bool; 2]) -> Outcome,
    ) {
        let kept = if O::WORDS == 2 { u64::MAX } else { u32::MAX.into() };
        for found in lanes::<O>(mods, imm, x, preds) {
            for (i, (value, conditions)) in found.into_iter().enumerate() {
                let source = |n: usize| u64::from(x[2 * n][i]) | u64::from(x[2 * n + 1][i]) << 32;
                let carries = preds.map(|p| p >> i & 1 != 0);
                let (wanted, flags) = want([source(0), source(1), source(2)], carries);
                assert_eq!(value & kept, wanted & kept, "lane {i} of {x:x?}, modifiers {mods:#x}, {imm}");
                for n in 0..O::CONDITIONS {
                    assert_eq!(
                        conditions[n], flags[n],
                        "condition {n} of lane {i} of {x:x?}, modifiers {mods:#x}, {imm}"
                    );
                }
            }
        }
    }

    fn three(r: int::Carried) -> Outcome {
        (r.value.into(), [r.carry, r.carry2])
    }

    fn negs(mods: u32) -> [bool; 3] {
        NEG.map(|n| mods & n != 0)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn sums_carry_as_those_of_one_lane(x in prop::array::uniform6(prop::array::uniform8(word())), p: [u32; 2], mods in 0..8u32) {
            check::<Add3<true>>(mods, 0, x, p, |[a, b, c], _| three(int::add3(a as u32, b as u32, c as u32, negs(mods))));
            check::<Add3<false>>(0, 0, x, p, |[a, b, c], _| three(int::add3(a as u32, b as u32, c as u32, [false; 3])));
            check::<Add3X>(mods | X, 0, x, p, |[a, b, c], p| three(int::add3_x(a as u32, b as u32, c as u32, negs(mods), p)));
            check::<Add2>(0, 0, x, p, |[a, b, _], _| three(int::add3(a as u32, b as u32, 0, [false; 3])));
            check::<Add2X<false>>(X, 0, x, p, |[a, b, _], p| three(int::add3_x(a as u32, b as u32, 0, [false; 3], [p[0], false])));
            check::<Add2X<true>>(X, 0, x, p, |[a, b, _], p| three(int::add3_x(a as u32, b as u32, 0, [false; 3], [p[0], false])));
        }

        #[test]
        fn products_carry_as_those_of_one_lane(x in prop::array::uniform6(prop::array::uniform8(word())), p: [u32; 2], mods in 0..16u32) {
            let mods = mods & (NEG[2] | X);
            let (neg, extended) = (mods & NEG[2] != 0, mods & X != 0);
            let low = |[a, b, c]: [u64; 3], p: [bool; 2]| int::mad(a as u32, b as u32, int::invert(c as u32, neg), p[0]);
            check::<MadX>(mods, 0, x, p, |s, p| (low(s, p).into(), [false; 2]));
            let wide = |[a, b, c]: [u64; 3], p: [bool; 2], signed| {
                let c = int::wide_addend(c, neg, extended);
                let (sum, carry) = int::mad_wide(a as u32, b as u32, c, signed, extended && p[0]);
                (sum, [carry, false])
            };
            check::<WideX<true>>(mods, 0, x, p, |s, p| wide(s, p, true));
            check::<WideX<false>>(mods, 0, x, p, |s, p| wide(s, p, false));
            check::<High<true>>(mods, 0, x, p, |s, p| (wide(s, p, true).0 >> 32, wide(s, p, true).1));
            check::<High<false>>(mods, 0, x, p, |s, p| (wide(s, p, false).0 >> 32, wide(s, p, false).1));
            let plain = |[a, b, c]: [u64; 3], signed| int::product(a as u32, b as u32, signed).wrapping_add(c);
            check::<Wide<true>>(0, 0, x, p, |s, _| (plain(s, true), [false; 2]));
            check::<Wide<false>>(0, 0, x, p, |s, _| (plain(s, false), [false; 2]));
        }

        #[test]
        fn addresses_are_those_of_one_lane(
            x in prop::array::uniform6(prop::array::uniform8(word())), p: [u32; 2], mods in 0..128u32, shift in 0..32u32,
        ) {
            check::<Lea>(mods, shift, x, p, |[a, b, c], p| {
                let (a, b) = (a as u32, b as u32);
                let high = if mods & SX32 != 0 { int::sign_word(a) } else { c as u32 };
                let shifted = int::lea_shift(a, high, shift, mods & HIGH != 0);
                let [na, nb, _] = negs(mods);
                three(if mods & X != 0 { int::lea_x(shifted, b, na, nb, p[0]) } else { int::lea(shifted, b, na, nb) })
            });
        }
    }
}
