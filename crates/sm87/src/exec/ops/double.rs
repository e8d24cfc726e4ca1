//! DADD, DMUL, DFMA and DSETP.

use crate::exec::alu::{self, Each};
use crate::exec::lower::{Lower, Refused, Widen};
use crate::exec::rows::Src;
use crate::exec::several::{Results, Several, Sources, map_pairs, several};
use crate::exec::simd::{Double, Simd};
use crate::exec::uop::Uop;
use crate::exec::warp::Warp;
use sm87_num::{Round, f64 as num};

const NEG: [u32; 3] = [1, 1 << 2, 1 << 4];
const ABS: [u32; 3] = [1 << 1, 1 << 3, 1 << 5];
const ROUND: u32 = 8;
const CODE: u32 = 12;

fn flag(on: bool, bits: u32) -> u32 {
    if on { bits } else { 0 }
}

#[inline(always)]
fn source(w: &Warp, u: &Uop, s: Src, n: usize, lane: u32) -> u64 {
    num::modify(w.get64(s, lane), u.mods & ABS[n] != 0, u.mods & NEG[n] != 0)
}

fn round(u: &Uop) -> Round {
    Round::from_bits(u.mods >> ROUND & 3)
}

/// Applies the modifiers of a source to its words. A NaN keeps its sign here; results that are NaN are computed in another
/// way.
#[inline(always)]
fn modified<V: Simd>(u: &Uop, n: usize, x: [V; 2]) -> [V; 2] {
    let kept = if u.mods & ABS[n] != 0 { x[1].and(V::splat(0x7fff_ffff)) } else { x[1] };
    [x[0], if u.mods & NEG[n] != 0 { kept.xor(V::splat(1 << 31)) } else { kept }]
}

/// DADD, DMUL or DFMA.
struct Arithmetic<const OP: u8>;

const ADD: u8 = 0;
const MUL: u8 = 1;
const FMA: u8 = 2;

impl<const OP: u8> Several for Arithmetic<OP> {
    const PAIRS: u32 = 7;
    const WORDS: usize = 2;
    const CONDITIONS: usize = 0;
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, s: Sources<V>) -> Results<V> {
        if u.mods >> ROUND & 3 == 0 {
            let (a, b, c) = (modified(u, 0, s.a), modified(u, 1, s.b), modified(u, 2, s.c));
            let r = match OP {
                ADD => V::double(Double::Add, a, a, b),
                MUL => V::double(Double::Mul, a, b, a),
                _ => V::double(Double::Fma, a, b, c),
            };
            let top = V::splat(0x7ff0_0000);
            // The vector form does not compute which NaN results. If a result has the exponent of a NaN, all lanes are computed one
            // by one.
            if !r[1].and(top).eq(top).any() {
                return Results::value(r);
            }
        }
        let source = |n: usize, x| num::modify(x, u.mods & ABS[n] != 0, u.mods & NEG[n] != 0);
        Results::value(map_pairs(&s, |a, b, c| match OP {
            ADD => num::add(source(0, a), source(1, b), round(u)),
            MUL => num::mul(source(0, a), source(1, b), round(u)),
            _ => num::fma(source(0, a), source(1, b), source(2, c), round(u)),
        }))
    }
}

/// DSETP with a compare code.
struct Relate;
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

/// DSETP with `.MIN` or `.MAX`.
struct SetPredicate;
impl Each for SetPredicate {
    #[inline(always)]
    fn each(w: &mut Warp, u: &Uop, lane: u32) {
        let (a, b) = (source(w, u, u.a, 0, lane), source(w, u, u.b, 1, lane));
        let code = (u.mods >> CODE & 15) as u8;
        let bit = |on: bool| u32::from(on) << lane;
        let hit = bit(num::compare(a, b, code));
        // The codes .MIN and .MAX use the second destination to report that both sources are NaN.
        let other = if matches!(code, 0 | 15) { bit(num::both_nan(a, b)) } else { !hit };
        let p = w.pred(u.ps);
        let combine = |x: u32| match u.imm {
            0 => x & p,
            1 => x | p,
            _ => x ^ p,
        };
        w.set_pred(u.pd, 1 << lane, combine(hit));
        w.set_pred(u.pe, 1 << lane, combine(other));
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
        0 | 15 => alu::each::<SetPredicate>(),
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
        const EDGES: [u64; 10] = [
            0,
            1,
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
        prop_oneof![any::<u64>(), edge, any::<f64>().prop_map(f64::to_bits), (-4.0..4.0f64).prop_map(f64::to_bits)]
    }

    fn words(x: [[u64; 8]; 3]) -> [[u32; 8]; 6] {
        std::array::from_fn(|n| x[n / 2].map(|x| (x >> (32 * (n % 2))) as u32))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn arithmetic_is_that_of_one_lane(x in prop::array::uniform3(prop::array::uniform8(double())), mods in 0..64u32, round in 0..4u32) {
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
            x in prop::array::uniform3(prop::array::uniform8(double())), mods in 0..16u32, code in 1..15u32, how in 0..3u32, p: u32,
        ) {
            let mods = mods | code << CODE;
            let sign = |n: usize, x: u64| num::modify(x, mods & ABS[n] != 0, mods & NEG[n] != 0);
            for found in lanes::<Relate>(mods, how, words(x), [p, 0]) {
                for (i, (_, conditions)) in found.into_iter().enumerate() {
                    let hit = num::compare(sign(0, x[0][i]), sign(1, x[1][i]), code as u8);
                    let on = p >> i & 1 != 0;
                    let combine = |x: bool| [x & on, x | on, x ^ on][how as usize];
                    prop_assert_eq!(conditions, [combine(hit), combine(!hit)], "lane {} of {:x?}", i, x);
                }
            }
        }
    }
}
