//! HADD2, HMUL2, HFMA2, HMNMX2, HSET2 and HSETP2, in f16 and bfloat16.

use super::fp32::signed;
use super::int::{get_pred, put_pred};
use crate::exec::alu::{self, Alu, Each};
use crate::exec::lower::{Lower, Refused};
use crate::exec::uop::Uop;
use crate::exec::warp::Warp;
use sm87_num::f32::MinMax as How;
use sm87_num::half::{self as num, Kind, Mode, Operand, Swizzle};
use sm87_simd::Simd;
use sm87_simd::exact::add_odd;

/// The places in `mods` of four bits for each source (swizzle, absolute value, sign). The modifiers of the result
/// follow.
const SOURCE: [u32; 3] = [0, 4, 8];
const FTZ: u32 = 1 << 12;
const FMZ: u32 = 1 << 13;
const SAT: u32 = 1 << 14;
const RELU: u32 = 1 << 15;
const SINGLE: u32 = 1 << 16;
const BF16: u32 = 1 << 17;
const NAN: u32 = 1 << 18;
const XORSIGN: u32 = 1 << 19;
const CODE: u32 = 20;
const COMBINE: u32 = 24;
const AND_BF: u32 = 1 << 26;

fn flag(on: bool, bits: u32) -> u32 {
    if on { bits } else { 0 }
}

fn slot_a(l: &Lower<'_>) -> u32 {
    (l.bits(74, 2) | flag(l.bit(73), 4) | flag(l.bit(72), 8)) << SOURCE[0]
}

fn slot32(l: &Lower<'_>) -> u32 {
    if matches!(l.word.form(), 2 | 4) { 0 } else { l.bits(60, 2) | flag(l.bit(62), 4) | flag(l.bit(63), 8) }
}

fn slot64(l: &Lower<'_>) -> u32 {
    l.bits(81, 2) | flag(l.bit(83), 4) | flag(l.bit(84), 8)
}

#[inline(always)]
fn operand(u: &Uop, n: usize) -> Operand {
    let m = u.mods >> SOURCE[n];
    Operand { swizzle: Swizzle::from_bits(m), abs: m & 4 != 0, neg: m & 8 != 0 }
}

#[inline(always)]
fn mode(u: &Uop) -> Mode {
    Mode {
        kind: kind(u),
        ftz: u.mods & FTZ != 0,
        fmz: u.mods & FMZ != 0,
        sat: u.mods & SAT != 0,
        relu: u.mods & RELU != 0,
        f32: u.mods & SINGLE != 0,
    }
}

#[inline(always)]
fn kind(u: &Uop) -> Kind {
    if u.mods & BF16 != 0 { Kind::Bf16 } else { Kind::F16 }
}

#[inline(always)]
fn lanes(u: &Uop, n: usize, x: u32) -> [f32; 2] {
    operand(u, n).lanes(kind(u), x, u.mods & (FTZ | FMZ) != 0)
}

/// Whether the operands of a micro-op are halves of this format, and no denormal is flushed. The vector forms are for these.
#[inline(always)]
fn is_plain(u: &Uop, format: u32) -> bool {
    let swizzle = |n: usize| u.mods >> SOURCE[n] & 3;
    u.mods & (FTZ | FMZ | BF16) == format && swizzle(0) != 1 && swizzle(1) != 1 && swizzle(2) != 1
}

/// Source `n` as floats: the low halves and the high ones. This is what [`Operand::lanes`] does for one lane.
#[inline(always)]
fn floats<V: Simd>(u: &Uop, n: usize, x: V) -> [V; 2] {
    let m = u.mods >> SOURCE[n];
    let (low, high) = swizzled(m, x.and(V::splat(0xffff)), x.shr(V::splat(16)));
    [float(low, m), float(high, m)]
}

/// The halves that a source reads, of those of its register.
#[inline(always)]
fn swizzled<V: Simd>(m: u32, low: V, high: V) -> (V, V) {
    match m & 3 {
        0 => (low, high),
        2 => (low, low),
        _ => (high, high),
    }
}

/// A half with the modifiers of its source, widened as [`Kind::widen`] does.
#[inline(always)]
fn float<V: Simd>(half: V, m: u32) -> V {
    let magnitude = half.and(V::splat(0x7fff)).shl(V::splat(13));
    let is_infinite = half.and(V::splat(0x7c00)).eq(V::splat(0x7c00)).and(V::splat(0x7f80_0000));
    let number = magnitude.fmul(V::splat((127 + 112) << 23)).or(is_infinite);
    let number = if m & 4 != 0 { number } else { number.or(half.and(V::splat(0x8000)).shl(V::splat(16))) };
    if m & 8 != 0 { number.xor(V::splat(1 << 31)) } else { number }
}

/// Rounds and packs results. They are exact, or have at least two bits more than twice the bits of a half, or are rounded to odd: then the
/// second rounding is the only one that counts.
#[inline(always)]
fn packed<V: Simd>(u: &Uop, low: V, high: V) -> V {
    let (low, high) = (clamped(u, low).to_halves(), clamped(u, high).to_halves());
    low.or(high.shl(V::splat(16)))
}

/// The result of `.F32`, from the low halves.
#[inline(always)]
fn single<V: Simd>(u: &Uop, low: V) -> V {
    clamped(u, low.canonical())
}

#[inline(always)]
fn clamped<V: Simd>(u: &Uop, x: V) -> V {
    match u.mods & (SAT | RELU) {
        0 => x,
        RELU => x.fle(V::splat(0)).select(V::splat(0), x),
        _ => x.saturate(),
    }
}

/// HFMA2.BF16_V2. The mask has the lanes in which a product may be no float, or be infinite or a NaN.
#[inline(always)]
fn brain<V: Simd>(u: &Uop, [a, b, c]: [V; 3]) -> (V, V) {
    let (a, b, c) = (upper(u, 0, a), upper(u, 1, b), upper(u, 2, c));
    let (low, high) = (a[0].fmul(b[0]), a[1].fmul(b[1]));
    let open = is_extreme(low, a[0], b[0]).or(is_extreme(high, a[1], b[1]));
    let (low, high) = (rounded(u, add_odd(low, c[0])), rounded(u, add_odd(high, c[1])));
    (low.shr(V::splat(16)).or(high.and(V::splat(0xffff_0000))), open)
}

/// Source `n` of bfloat16 as floats: the low halves and the high ones.
#[inline(always)]
fn upper<V: Simd>(u: &Uop, n: usize, x: V) -> [V; 2] {
    let m = u.mods >> SOURCE[n];
    let (low, high) = swizzled(m, x.shl(V::splat(16)), x.and(V::splat(0xffff_0000)));
    let (abs, neg) = (m & 4 != 0, m & 8 != 0);
    [signed(low, abs, neg), signed(high, abs, neg)]
}

/// Whether a product of bfloat16 need not be exact.
#[inline(always)]
fn is_extreme<V: Simd>(product: V, a: V, b: V) -> V {
    let (size, zero) = (product.and(V::splat(!(1 << 31))), V::splat(0));
    let is_small = size.lt(V::splat(20 << 23)).and(a.feq(zero).or(b.feq(zero)).not());
    V::splat(250 << 23).lt(size).or(is_small)
}

/// A float that is rounded to odd, as a bfloat16 in its upper half.
#[inline(always)]
fn rounded<V: Simd>(u: &Uop, x: V) -> V {
    let x = clamped(u, x);
    let even = x.shr(V::splat(16)).and(V::splat(1));
    x.funord(x).select(V::splat(sm87_num::f32::NAN), x.add(even.add(V::splat(0x7fff))))
}

/// HADD2, HMUL2 or HFMA2.
struct Arithmetic<const OP: u8>;

const ADD: u8 = 0;
const MUL: u8 = 1;
const FMA: u8 = 2;

impl<const OP: u8> Alu for Arithmetic<OP> {
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, a: V, b: V, c: V, _: u32) -> V {
        if V::LANES > 1 && OP == FMA && is_plain(u, BF16) && u.mods & SINGLE == 0 {
            let (halves, open) = brain(u, [a, b, c]);
            if !open.any() {
                return halves;
            }
        }
        if V::LANES == 1 || !is_plain(u, 0) {
            return V::map3(a, b, c, |a, b, c| of_lane::<OP>(u, a, b, c));
        }
        let (a, b, c) = (floats(u, 0, a), floats(u, 1, b), floats(u, 2, c));
        match (OP, u.mods & SINGLE) {
            (ADD, 0) => packed(u, a[0].fadd(b[0]), a[1].fadd(b[1])),
            (MUL, 0) => packed(u, a[0].fmul(b[0]), a[1].fmul(b[1])),
            // The products are exact.
            (_, 0) => packed(u, add_odd(a[0].fmul(b[0]), c[0]), add_odd(a[1].fmul(b[1]), c[1])),
            (ADD, _) => single(u, a[0].fadd(b[0])),
            (MUL, _) => single(u, a[0].fmul(b[0])),
            _ => single(u, a[0].fma(b[0], c[0])),
        }
    }
}

/// What the operation is for one lane.
#[inline(always)]
fn of_lane<const OP: u8>(u: &Uop, a: u32, b: u32, c: u32) -> u32 {
    let (a, b) = (lanes(u, 0, a), lanes(u, 1, b));
    match OP {
        ADD => num::add2(a, b, mode(u)),
        MUL => num::mul2(a, b, mode(u)),
        _ => num::fma2(a, b, lanes(u, 2, c), mode(u)),
    }
}

/// The product of -0 and 0, plus C. Compilers use it to move an immediate in the half-precision unit.
struct Third;
impl Alu for Third {
    #[inline(always)]
    fn eval<V: Simd>(_: &Uop, _: V, _: V, c: V, _: u32) -> V {
        c
    }
}

fn result(l: &Lower<'_>) -> u32 {
    flag(l.bit(77), SAT) | flag(l.bit(78), SINGLE) | flag(l.bit(80), FTZ) | flag(l.bit(76), FMZ)
}

pub(crate) fn hadd2(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mods = slot_a(l) | slot32(l) << SOURCE[1] | (result(l) & !FMZ);
    Ok(Uop { mods, ..l.ab(alu::alu::<Arithmetic<ADD>>())? })
}

pub(crate) fn hmul2(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mods = slot_a(l) | slot32(l) << SOURCE[1] | result(l);
    Ok(Uop { mods, ..l.ab(alu::alu::<Arithmetic<MUL>>())? })
}

pub(crate) fn hfma2(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mods = fma_mods(l);
    fma(l, mods)
}

/// HFMA2.MMA has halves only: it has no swizzles, no single-precision result and no bfloat16.
pub(crate) fn hfma2_mma(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let swizzles = SOURCE.iter().fold(0, |m, s| m | 3 << s);
    let mods = fma_mods(l) & !(SINGLE | BF16 | swizzles);
    fma(l, mods)
}

fn fma_mods(l: &Lower<'_>) -> u32 {
    let (s32, s64) = if l.swapped() { (2, 1) } else { (1, 2) };
    slot_a(l)
        | slot32(l) << SOURCE[s32]
        | slot64(l) << SOURCE[s64]
        | result(l)
        | flag(l.bit(79), RELU)
        | flag(l.bit(85), BF16)
}

fn fma(l: &mut Lower<'_>, mods: u32) -> Result<Uop, Refused> {
    let x = l.bits(32, 32);
    let nan = |h: u32| h & 0x7c00 == 0x7c00 && h & 0x3ff != 0;
    let moves =
        l.word.form() == 2 && l.bits(24, 8) == 255 && l.bits(64, 8) == 255 && mods == 8 && !nan(x) && !nan(x >> 16);
    let run = if moves { alu::alu::<Third>() } else { alu::alu::<Arithmetic<FMA>>() };
    Ok(Uop { mods, ..l.abc(run)? })
}

struct MinMax;
impl Each for MinMax {
    #[inline(always)]
    fn each(w: &mut Warp, u: &Uop, lane: u32) {
        let (a, b) = (w.get(u.a, lane), w.get(u.b, lane));
        let how = How { ftz: u.mods & FTZ != 0, nan: u.mods & NAN != 0, xorsign: u.mods & XORSIGN != 0 };
        let k = kind(u);
        let (x, y) = (operand(u, 0).halves(k, a), operand(u, 1).halves(k, b));
        let r = num::min_max2(x, y, get_pred(w, u.ps, lane), how, k, a ^ b);
        w.put(u.d, lane, r);
    }
}

pub(crate) fn hmnmx2(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mods = slot_a(l)
        | slot32(l) << SOURCE[1]
        | flag(l.bit(80), FTZ)
        | flag(l.bit(81), NAN)
        | flag(l.bit(82), XORSIGN)
        | flag(l.bit(85), BF16);
    Ok(Uop { mods, ..l.ab(alu::each::<MinMax>())? })
}

#[inline(always)]
fn relation(w: &Warp, u: &Uop, lane: u32) -> [bool; 2] {
    let (a, b) = (lanes(u, 0, w.get(u.a, lane)), lanes(u, 1, w.get(u.b, lane)));
    num::compare2(a, b, (u.mods >> CODE & 15) as u8)
}

fn combine(u: &Uop, x: bool, p: bool) -> bool {
    match u.mods >> COMBINE & 3 {
        0 => x & p,
        1 => x | p,
        _ => x ^ p,
    }
}

struct Set;
impl Each for Set {
    #[inline(always)]
    fn each(w: &mut Warp, u: &Uop, lane: u32) {
        let p = get_pred(w, u.ps, lane);
        let r = relation(w, u, lane).map(|x| combine(u, x, p));
        w.put(u.d, lane, num::set2(r, u.mods & AND_BF != 0, kind(u)));
    }
}

struct SetPredicate;
impl Each for SetPredicate {
    #[inline(always)]
    fn each(w: &mut Warp, u: &Uop, lane: u32) {
        let p = get_pred(w, u.ps, lane);
        let [low, high] = relation(w, u, lane);
        if u.mods & AND_BF != 0 {
            let both = low & high;
            put_pred(w, u.pd, lane, combine(u, both, p));
            put_pred(w, u.pe, lane, combine(u, !both, p));
        } else {
            put_pred(w, u.pd, lane, combine(u, low, p));
            put_pred(w, u.pe, lane, combine(u, high, p));
        }
    }
}

fn comparison(l: &Lower<'_>) -> u32 {
    slot_a(l)
        | slot32(l) << SOURCE[1]
        | l.bits(76, 4) << CODE
        | l.bits(69, 2) << COMBINE
        | flag(l.bit(80), FTZ)
        | flag(l.bit(71), AND_BF)
        | flag(l.bit(65), BF16)
}

pub(crate) fn hset2(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mods = comparison(l);
    Ok(Uop { mods, ..l.ab(alu::each::<Set>())? })
}

pub(crate) fn hsetp2(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mods = comparison(l);
    let (pd, pe) = (l.pdst(81), l.pdst(84));
    Ok(Uop { mods, pd, pe, ..l.ab(alu::each::<SetPredicate>())? })
}

#[cfg(test)]
mod tests {
    //! Vectors of halves, translated or not, against the definitions for one lane.

    use super::*;
    use crate::exec::several::tests::{One, lanes as in_each_way, uop};
    use crate::exec::translate::tests::executed;
    use proptest::prelude::*;

    /// Halves with any bits, around one, and at the edges of the format.
    fn half() -> impl Strategy<Value = u16> {
        let edges = vec![0, 1, 2, 0x3ff, 0x400, 0x401, 0x3c00, 0x3c01, 0x7bff, 0x7c00, 0x7c01, 0x7e00];
        let edge = (prop::sample::select(edges), any::<bool>()).prop_map(|(x, neg)| x | u16::from(neg) << 15);
        let near = any::<u16>().prop_map(|x| x & 0x83ff | (13 + (x >> 10 & 3)) << 10);
        prop_oneof![any::<u16>(), near, edge]
    }

    /// Two numbers and a third one that is near the opposite of their product, or so far away that it decides about a tie.
    fn three() -> impl Strategy<Value = [u16; 3]> {
        (half(), half(), half(), 0..4u8, -2..3i16).prop_map(|(a, b, c, how, steps)| {
            let [x, y] = [a, b].map(|x| Kind::F16.widen(x));
            let opposite = Kind::F16.round_f32(-x * y, sm87_num::Round::Rn);
            match how {
                0 => [a, b, opposite.wrapping_add_signed(steps)],
                1 => [a, b, c & 0x8000 | steps as u16 & 3],
                _ => [a, b, c],
            }
        })
    }

    /// The same of bfloat16, with few numbers that are extreme.
    fn three_brains() -> impl Strategy<Value = [u16; 3]> {
        let number = || any::<u16>().prop_map(|x| x & 0x807f | (120 + (x >> 7 & 15)) << 7);
        (number(), number(), prop_oneof![9 => number(), 1 => half()], any::<bool>(), -2..3i16).prop_map(
            |(a, b, c, cancels, steps)| {
                let [x, y] = [a, b].map(|x| Kind::Bf16.widen(x));
                let opposite = Kind::Bf16.round_f32(-x * y, sm87_num::Round::Rn);
                [a, b, if cancels { opposite.wrapping_add_signed(steps) } else { c }]
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]

        #[test]
        fn arithmetic_is_that_of_one_lane(
            x in prop_oneof![prop::array::uniform8(prop::array::uniform2(three())), prop::array::uniform8(prop::array::uniform2(three_brains()))],
            sources in prop::array::uniform3((prop::sample::select(vec![0u32, 0, 0, 1, 2, 3]), 0..4u32)),
            how in prop::sample::select(vec![0, 0, SAT, RELU, FTZ, FMZ, SINGLE, BF16, SAT | FTZ, SAT | SINGLE, RELU | SINGLE, BF16, BF16 | RELU]),
        ) {
            let mods = (0..3).fold(how, |m, n| m | (sources[n].0 | sources[n].1 << 2) << SOURCE[n]);
            let words: [[u32; 8]; 3] = std::array::from_fn(|n| x.map(|[low, high]| u32::from(low[n]) | u32::from(high[n]) << 16));
            let [a, b, c] = words;
            let u = uop(mods, 0);
            let operands = [a, a, b, b, c, c];
            for (op, run) in [in_each_way::<One<Arithmetic<ADD>>>, in_each_way::<One<Arithmetic<MUL>>>, in_each_way::<One<Arithmetic<FMA>>>].into_iter().enumerate() {
                let want: [u32; 8] = std::array::from_fn(|i| match op {
                    0 => num::add2(lanes(&u, 0, a[i]), lanes(&u, 1, b[i]), mode(&u)),
                    1 => num::mul2(lanes(&u, 0, a[i]), lanes(&u, 1, b[i]), mode(&u)),
                    _ => num::fma2(lanes(&u, 0, a[i]), lanes(&u, 1, b[i]), lanes(&u, 2, c[i]), mode(&u)),
                });
                for found in run(mods, 0, operands, [0; 2]) {
                    let found: Vec<u32> = found.into_iter().map(|(word, _)| word as u32).collect();
                    prop_assert_eq!(&found[..], &want[..], "operation {} of {:x?}, modifiers {:#x}", op, words, mods);
                }
                let found = executed(&u, [alu::record::<Arithmetic<ADD>>, alu::record::<Arithmetic<MUL>>, alu::record::<Arithmetic<FMA>>][op], &words);
                prop_assert_eq!(found.is_some(), is_plain(&u, 0) && cfg!(target_arch = "x86_64") && crate::exec::host::avx2());
                prop_assert_eq!(found.unwrap_or(want), want, "operation {}, modifiers {:#x}, translated", op, mods);
            }
        }
    }
}
