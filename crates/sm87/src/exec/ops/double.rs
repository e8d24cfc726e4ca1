//! DADD, DMUL, DFMA and DSETP.

use super::fp32::signed;
use crate::exec::alu;
use crate::exec::lower::{Lower, Refused, Widen};
use crate::exec::rows::Src;
use crate::exec::several::{Results, Several, Sources, map_pairs, several};
use crate::exec::uop::Uop;
use sm87_num::{Round, f64 as num};
use sm87_simd::{Double, Simd, exact};

pub(crate) const NEG: [u32; 3] = [1, 1 << 2, 1 << 4];
pub(crate) const ABS: [u32; 3] = [1 << 1, 1 << 3, 1 << 5];
pub(crate) const ROUND: u32 = 8;
pub(crate) const CODE: u32 = 12;

fn flag(on: bool, bits: u32) -> u32 {
    if on { bits } else { 0 }
}

fn round(u: &Uop) -> Round {
    Round::from_bits(u.mods >> ROUND & 3)
}

/// Applies the modifiers of a source to its words. A NaN keeps its sign here; results that are NaN are computed in another
/// way.
#[inline(always)]
fn modified<V: Simd>(u: &Uop, n: usize, x: [V; 2]) -> [V; 2] {
    [x[0], signed(x[1], u.mods & ABS[n] != 0, u.mods & NEG[n] != 0)]
}

/// DADD, DMUL or DFMA.
pub(crate) struct Arithmetic<const OP: u8>;

pub(crate) const ADD: u8 = 0;
pub(crate) const MUL: u8 = 1;
pub(crate) const FMA: u8 = 2;

impl<const OP: u8> Several for Arithmetic<OP> {
    const PAIRS: u32 = 7;
    const WORDS: usize = 2;
    const CONDITIONS: usize = 0;
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, s: Sources<V>) -> Results<V> {
        let (a, b, c) = (modified(u, 0, s.a), modified(u, 1, s.b), modified(u, 2, s.c));
        let op = [Double::Add, Double::Mul, Double::Fma][usize::from(OP)];
        let (r, open) = match round(u) {
            Round::Rn => exact::nearest(op, a, b, c),
            round => exact::directed(op, round, a, b, c),
        };
        if !open.any() {
            return Results::value(r);
        }
        let source = |n: usize, x| num::modify(x, u.mods & ABS[n] != 0, u.mods & NEG[n] != 0);
        let exact = map_pairs(&s, open, |a, b, c| match OP {
            ADD => num::add(source(0, a), source(1, b), round(u)),
            MUL => num::mul(source(0, a), source(1, b), round(u)),
            _ => num::fma(source(0, a), source(1, b), source(2, c), round(u)),
        });
        Results::value([0, 1].map(|n| open.select(exact[n], r[n])))
    }
}

/// DSETP with a compare code.
pub(crate) struct Relate;
impl Several for Relate {
    const PAIRS: u32 = 3;
    const WORDS: usize = 0;
    const CONDITIONS: usize = 2;
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, s: Sources<V>) -> Results<V> {
        let relation = V::double_relation(modified(u, 0, s.a), modified(u, 1, s.b));
        let (hit, p) = (alu::accepted(u.mods >> CODE, relation, None), V::from_bits(s.p));
        Results { value: s.a, first: alu::combined(u.imm, hit, p), second: alu::combined(u.imm, hit.not(), p) }
    }
}

/// DSETP with `.MIN` or `.MAX`. The second condition is that both sources are NaN: see [`num::both_nan`].
pub(crate) struct Extreme;
impl Several for Extreme {
    const PAIRS: u32 = 3;
    const WORDS: usize = 0;
    const CONDITIONS: usize = 2;
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, s: Sources<V>) -> Results<V> {
        let (a, b) = (modified(u, 0, s.a), modified(u, 1, s.b));
        let [less, equal, unordered] = V::double_relation(a, b);
        let [_, a_is_number, a_is_nan] = V::double_relation(a, a);
        let [_, _, b_is_nan] = V::double_relation(b, b);
        // Of two zeros, the negative one is less. Other numbers that are equal have the same sign.
        let below = less.or(equal.and(a[1].xor(b[1])).and(a[1]).sar(V::splat(31)));
        let hit = if u.mods >> CODE & 15 == 0 { below } else { below.not() };
        let hit = unordered.select(a_is_number, hit);
        let p = V::from_bits(s.p);
        Results {
            value: s.a,
            first: alu::combined(u.imm, hit, p),
            second: alu::combined(u.imm, a_is_nan.and(b_is_nan), p),
        }
    }
}

/// The second operand of DADD and DSETP. A register is at bits 64..71, and another operand at bits 32..63.
fn second(l: &mut Lower<'_>) -> Result<(Src, u32), Refused> {
    if l.word.form() == 1 {
        return Ok((l.reg(64, 2), flag(l.bit(75), NEG[1]) | flag(l.bit(74), ABS[1])));
    }
    let immediate = matches!(l.word.form(), 2 | 4);
    let mods = flag(l.bit(63) && !immediate, NEG[1]) | flag(l.bit(62) && !immediate, ABS[1]);
    Ok((l.slot32_wide(2, Widen::High)?, mods))
}

fn first(l: &mut Lower<'_>) -> (Src, u32) {
    (l.reg(24, 2), flag(l.bit(72), NEG[0]) | flag(l.bit(73), ABS[0]))
}

pub(crate) fn dadd(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (d, (a, ma), (b, mb)) = (l.dst(2), first(l), second(l)?);
    let mods = ma | mb | l.bits(78, 2) << ROUND;
    Ok(Uop { d, a, b, mods, ..l.uop(several::<Arithmetic<ADD>>(false)) })
}

pub(crate) fn dmul(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (d, (a, ma)) = (l.dst(2), first(l));
    let immediate = l.word.form() == 4;
    let mb = flag(l.bit(63) && !immediate, NEG[1]) | flag(l.bit(62) && !immediate, ABS[1]);
    let b = l.slot32_wide(2, Widen::High)?;
    let mods = ma | mb | l.bits(78, 2) << ROUND;
    Ok(Uop { d, a, b, mods, ..l.uop(several::<Arithmetic<MUL>>(false)) })
}

pub(crate) fn dfma(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (d, (a, ma)) = (l.dst(2), first(l));
    let (slot32, slot64) = if l.swapped() { (2, 1) } else { (1, 2) };
    let immediate = matches!(l.word.form(), 2 | 4);
    let mods = ma
        | flag(l.bit(63) && !immediate, NEG[slot32])
        | flag(l.bit(62) && !immediate, ABS[slot32])
        | flag(l.bit(75), NEG[slot64])
        | flag(l.bit(74), ABS[slot64])
        | l.bits(78, 2) << ROUND;
    let (b, c) = l.bc_wide(2, 2, Widen::High)?;
    Ok(Uop { d, a, b, c, mods, ..l.uop(several::<Arithmetic<FMA>>(false)) })
}

pub(crate) fn dsetp(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    // Bits 74 and 75 say how to combine the results, so the modifiers of the register operand are in other bits.
    let (a, ma) = first(l);
    let (b, mb) = match l.word.form() {
        1 => (l.reg(32, 2), flag(l.bit(63), NEG[1]) | flag(l.bit(62), ABS[1])),
        _ => second(l)?,
    };
    let mods = ma | mb | l.bits(76, 4) << CODE;
    let run = match l.bits(76, 4) {
        0 | 15 => several::<Extreme>(false),
        _ => several::<Relate>(false),
    };
    let (pd, pe) = (l.pdst(81), l.pdst(84));
    Ok(Uop { a, b, mods, imm: l.bits(74, 2), pd, pe, ps: l.ps(), ..l.uop(run) })
}

#[cfg(test)]
mod tests {
    //! Vectors of doubles against the definitions for one lane.

    use super::*;
    use crate::exec::several::tests::lanes;
    use proptest::prelude::*;

    /// Doubles with any bits, and often those at the edges of the format.
    fn double() -> impl Strategy<Value = u64> {
        const EDGES: [u64; 8] = [
            0x000f_ffff_ffff_ffff,
            0x0010_0000_0000_0000,
            0x3ff0_0000_0000_0000,
            0x7fef_ffff_ffff_ffff,
            0x7ff0_0000_0000_0000,
            0x7ff0_0000_0000_0001,
            0x7ff8_0000_0000_1234,
            0x3ff0_0000_0000_0001,
        ];
        let edge = (prop::sample::select(EDGES.to_vec()), any::<bool>()).prop_map(|(x, neg)| x | u64::from(neg) << 63);
        prop_oneof![
            any::<u64>(),
            0..2u64,
            edge,
            any::<f64>().prop_map(f64::to_bits),
            (-4.0..4.0f64).prop_map(f64::to_bits)
        ]
    }

    /// Three numbers whose product and sum is near zero, near the least number or near the greatest, and often exact.
    fn near() -> impl Strategy<Value = [u64; 3]> {
        let power = prop_oneof![0..2047u64, 0..64u64, 490..580u64, 1023..1024u64, 1500..1570u64, 1980..2047u64];
        let number = (any::<u64>(), prop::sample::select(vec![0, 20, 26, 40, 52]), power)
            .prop_map(|(x, zeros, power)| x & 1 << 63 | (x & ((1 << 52) - 1)) >> zeros << zeros | power << 52);
        let steps = prop_oneof![Just(0u64), Just(1), Just(u64::MAX), any::<u64>()];
        (number.clone(), number.clone(), number, steps, 0..8u8).prop_map(|(a, b, c, steps, how)| {
            let [x, y] = [a, b].map(f64::from_bits);
            match how {
                0 => [a, a ^ 1 << 63, c],
                1 => [a, (-x).to_bits().wrapping_add(steps), c],
                2 | 3 => [a, b, (-x * y).to_bits().wrapping_add(steps)],
                4 => [a, 0x3ff0_0000_0000_0000, (-x).to_bits().wrapping_add(steps)],
                5 => [a, (1.0 / x).to_bits(), c],
                6 => [a, (f64::from_bits(54 << 52 | steps & 0xf) / x).to_bits(), c],
                _ => [a, b, c],
            }
        })
    }

    /// The numbers of eight lanes.
    fn eight() -> impl Strategy<Value = [[u64; 8]; 3]> {
        let any = || prop::array::uniform3(double()).boxed();
        let near = prop_oneof![9 => near(), 1 => any()].boxed();
        prop_oneof![prop::array::uniform8(any()), prop::array::uniform8(near)]
            .prop_map(|lanes| std::array::from_fn(|n| lanes.map(|lane| lane[n])))
    }

    fn words(x: [[u64; 8]; 3]) -> [[u32; 8]; 6] {
        std::array::from_fn(|n| x[n / 2].map(|x| (x >> (32 * (n % 2))) as u32))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn arithmetic_is_that_of_one_lane(x in eight(), mods in 0..64u32, round in 0..4u32) {
            let (words, mods) = (words(x), mods | round << ROUND);
            let sign = |n: usize, x: u64| num::modify(x, mods & ABS[n] != 0, mods & NEG[n] != 0);
            let round = Round::from_bits(round);
            let all = [lanes::<Arithmetic<ADD>>, lanes::<Arithmetic<MUL>>, lanes::<Arithmetic<FMA>>];
            for (op, run) in all.into_iter().enumerate() {
                for found in run(mods, 0, words, [0; 2]) {
                    for (i, (value, _)) in found.into_iter().enumerate() {
                        let (a, b, c) = (sign(0, x[0][i]), sign(1, x[1][i]), sign(2, x[2][i]));
                        let want = [num::add(a, b, round), num::mul(a, b, round), num::fma(a, b, c, round)][op];
                        prop_assert_eq!(value, want, "operation {} of {:#x} {:#x} {:#x}", op, a, b, c);
                    }
                }
            }
        }

        #[test]
        fn comparisons_are_those_of_one_lane(
            x in eight(), mods in 0..16u32, code in 0..16u32, how in 0..3u32, p: u32,
        ) {
            let mods = mods | code << CODE;
            let (extreme, code) = (matches!(code, 0 | 15), code as u8);
            let run = if extreme { lanes::<Extreme> } else { lanes::<Relate> };
            let sign = |n: usize, x: u64| num::modify(x, mods & ABS[n] != 0, mods & NEG[n] != 0);
            for found in run(mods, how, words(x), [p, 0]) {
                for (i, (_, conditions)) in found.into_iter().enumerate() {
                    let (a, b) = (sign(0, x[0][i]), sign(1, x[1][i]));
                    let hit = num::compare(a, b, code);
                    let other = if extreme { num::both_nan(a, b) } else { !hit };
                    let on = p >> i & 1 != 0;
                    let combine = |x: bool| [x & on, x | on, x ^ on][how as usize];
                    prop_assert_eq!(conditions, [combine(hit), combine(other)], "lane {} of {:x?}", i, x);
                }
            }
        }
    }
}
