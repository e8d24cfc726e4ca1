//! FADD, FMUL, FFMA, FMNMX, FSEL, FSET, FSETP and FCHK.

use crate::exec::alu::{self, Alu, Compare, Condition};
use crate::exec::lower::{Lower, Refused};
use crate::exec::several::{Results, Several, Sources, several};
use crate::exec::uop::Uop;
use sm87_num::{Round, f32 as num};
use sm87_simd::Simd;

const NEG: [u32; 3] = [1, 1 << 2, 1 << 4];
const ABS: [u32; 3] = [1 << 1, 1 << 3, 1 << 5];
const FTZ: u32 = 1 << 6;
const SAT: u32 = 1 << 7;
const ROUND: u32 = 8;
const FMZ: u32 = 1 << 10;
const NAN: u32 = 1 << 11;
const SCALE: u32 = 12;
const XORSIGN: u32 = 1 << 15;
/// The modifiers that make an operation differ from the plain IEEE operation.
const MODIFIED: u32 = 0xff;
const SLOW: u32 = 3 << ROUND | FMZ;

fn flag(on: bool, bits: u32) -> u32 {
    if on { bits } else { 0 }
}

/// The modifiers of source A and of the source at bits 32..63, as those of the first and the second source.
fn two(l: &Lower<'_>) -> u32 {
    let immediate = matches!(l.word.form(), 2 | 4);
    flag(l.bit(72), NEG[0])
        | flag(l.bit(73), ABS[0])
        | flag(l.bit(63) && !immediate, NEG[1])
        | flag(l.bit(62) && !immediate, ABS[1])
}

/// The modifiers of A, B and C.
fn three(l: &Lower<'_>) -> u32 {
    let (b, c) = if l.swapped() { (2, 1) } else { (1, 2) };
    let immediate = matches!(l.word.form(), 2 | 4);
    flag(l.bit(72), NEG[0])
        | flag(l.bit(73), ABS[0])
        | flag(l.bit(63) && !immediate, NEG[b])
        | flag(l.bit(62) && !immediate, ABS[b])
        | flag(l.bit(75), NEG[c])
        | flag(l.bit(74), ABS[c])
}

fn result(l: &Lower<'_>) -> u32 {
    flag(l.bit(77), SAT) | l.bits(78, 2) << ROUND | flag(l.bit(80), FTZ)
}

/// Applies the modifiers of a source to floats, or to the high words of doubles. [`num::modify`] defines it for one lane. A NaN keeps its other bits.
#[inline(always)]
pub(super) fn signed<V: Simd>(x: V, abs: bool, neg: bool) -> V {
    let x = if abs { x.and(V::splat(0x7fff_ffff)) } else { x };
    if neg { x.xor(V::splat(1 << 31)) } else { x }
}

#[inline(always)]
fn modified<V: Simd>(mods: u32, n: usize, x: V) -> V {
    let x = signed(x, mods & ABS[n] != 0, mods & NEG[n] != 0);
    if mods & FTZ != 0 { x.flush() } else { x }
}

#[inline(always)]
fn source<V: Simd>(u: &Uop, n: usize, x: V) -> V {
    modified(u.mods, n, x)
}

#[inline(always)]
fn finish<V: Simd>(u: &Uop, x: V) -> V {
    let x = if u.mods & FTZ != 0 { x.flush() } else { x };
    if u.mods & SAT != 0 { x.saturate() } else { x.canonical() }
}

#[inline(always)]
fn bits(u: &Uop, n: usize, x: u32) -> u32 {
    num::modify(x, u.mods & ABS[n] != 0, u.mods & NEG[n] != 0)
}

fn mode(u: &Uop) -> num::Mode {
    num::Mode { round: Round::from_bits(u.mods >> ROUND & 3), ftz: u.mods & FTZ != 0, sat: u.mods & SAT != 0 }
}

/// Whether a lane may have been rounded up to the smallest normal number, which `.FTZ` would have made a zero.
#[inline(always)]
fn suspicious<V: Simd>(u: &Uop, x: V) -> bool {
    u.mods & FTZ != 0 && x.and(V::splat(0x7fff_ffff)).eq(V::splat(0x0080_0000)).to_bits() != 0
}

/// The kinds of an arithmetic operation: without modifiers, with any, with those that are computed one lane at a time, and with the only
/// modifier that one source has the other sign, which is the first or the last of an addition, and the product or the last of FFMA.
const PLAIN: u8 = 0;
const MODS: u8 = 1;
const ROUNDED: u8 = 2;
const FIRST: u8 = 3;
const LAST: u8 = 4;

/// The opposite.
#[inline(always)]
fn negated<V: Simd>(x: V) -> V {
    x.xor(V::splat(1 << 31))
}

struct Add<const G: u8>;
impl<const G: u8> Alu for Add<G> {
    const SOURCES: usize = 2;
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, a: V, b: V, c: V, _: u32) -> V {
        match G {
            PLAIN => a.fadd(b).canonical(),
            FIRST => negated(a).fadd(b).canonical(),
            LAST => a.fadd(negated(b)).canonical(),
            MODS => finish(u, source(u, 0, a).fadd(source(u, 1, b))),
            _ => V::map3(a, b, c, |a, b, _| num::add(bits(u, 0, a), bits(u, 1, b), mode(u))),
        }
    }
}

struct Mul<const G: u8>;
impl<const G: u8> Alu for Mul<G> {
    const SOURCES: usize = 2;
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, a: V, b: V, c: V, _: u32) -> V {
        match G {
            PLAIN => a.fmul(b).canonical(),
            FIRST => negated(a).fmul(b).canonical(),
            MODS => {
                let product = source(u, 0, a).fmul(source(u, 1, b));
                if suspicious(u, product) { mul_slowly(u, a, b, c) } else { finish(u, product) }
            }
            _ => mul_slowly(u, a, b, c),
        }
    }
}

#[inline(always)]
fn mul_slowly<V: Simd>(u: &Uop, a: V, b: V, c: V) -> V {
    let product = num::Product::from_bits(u.mods & FMZ != 0, u.mods >> SCALE & 7);
    V::map3(a, b, c, |a, b, _| num::mul(bits(u, 0, a), bits(u, 1, b), mode(u), product))
}

struct Fma<const G: u8>;
impl<const G: u8> Alu for Fma<G> {
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, a: V, b: V, c: V, _: u32) -> V {
        match G {
            PLAIN => a.fma(b, c).canonical(),
            FIRST => negated(a).fma(b, c).canonical(),
            LAST => a.fma(b, negated(c)).canonical(),
            MODS => {
                let sum = source(u, 0, a).fma(source(u, 1, b), source(u, 2, c));
                if suspicious(u, sum) { fma_slowly(u, a, b, c) } else { finish(u, sum) }
            }
            _ => fma_slowly(u, a, b, c),
        }
    }
}

/// Whether an FFMA or FADD has no modifiers, and only registers as sources.
pub(crate) fn is_plain(u: &Uop) -> bool {
    u.mods & (MODIFIED | SLOW) == 0 && [u.a, u.b, u.c].iter().all(|s| s.space() == 0)
}

#[inline(always)]
fn fma_slowly<V: Simd>(u: &Uop, a: V, b: V, c: V) -> V {
    V::map3(a, b, c, |a, b, c| num::fma(bits(u, 0, a), bits(u, 1, b), bits(u, 2, c), mode(u), u.mods & FMZ != 0))
}

/// The kind of an operation with these modifiers. `first` and `last` are those that only change a sign.
fn kind(mods: u32, first: &[u32], last: u32) -> u8 {
    match mods & MODIFIED {
        _ if mods & SLOW != 0 => ROUNDED,
        0 => PLAIN,
        only if first.contains(&only) => FIRST,
        only if only == last => LAST,
        _ => MODS,
    }
}

pub(crate) fn fadd(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mods = two(l) | result(l);
    let run = match kind(mods, &[NEG[0]], NEG[1]) {
        PLAIN => alu::alu::<Add<PLAIN>>(),
        FIRST => alu::alu::<Add<FIRST>>(),
        LAST => alu::alu::<Add<LAST>>(),
        MODS => alu::alu::<Add<MODS>>(),
        _ => alu::alu::<Add<ROUNDED>>(),
    };
    Ok(Uop { mods, ..l.ab(run)? })
}

pub(crate) fn fmul(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let scale = l.bits(84, 3);
    if scale == 0 {
        return Err(Refused("FMUL with scale 0"));
    }
    let mods = two(l) | result(l) | flag(l.bit(76), FMZ) | scale << SCALE;
    let run = match kind(if scale == 4 { mods } else { mods | SLOW }, &[NEG[0], NEG[1]], NEG[1]) {
        PLAIN => alu::alu::<Mul<PLAIN>>(),
        FIRST => alu::alu::<Mul<FIRST>>(),
        MODS => alu::alu::<Mul<MODS>>(),
        _ => alu::alu::<Mul<ROUNDED>>(),
    };
    Ok(Uop { mods, ..l.ab(run)? })
}

pub(crate) fn ffma(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mods = three(l) | result(l) | flag(l.bit(76), FMZ);
    let run = match kind(mods, &[NEG[0], NEG[1]], NEG[2]) {
        PLAIN => alu::alu::<Fma<PLAIN>>(),
        FIRST => alu::alu::<Fma<FIRST>>(),
        LAST => alu::alu::<Fma<LAST>>(),
        MODS => alu::alu::<Fma<MODS>>(),
        _ => alu::alu::<Fma<ROUNDED>>(),
    };
    Ok(Uop { mods, ..l.abc(run)? })
}

/// The lesser of two floats, with -0 below +0. `b` if one of them is a NaN.
#[inline(always)]
fn lesser<V: Simd>(a: V, b: V) -> V {
    a.feq(b).select(a.or(b), a.flt(b).select(a, b))
}

/// The greater of two floats, with -0 below +0. `b` if one of them is a NaN.
#[inline(always)]
fn greater<V: Simd>(a: V, b: V) -> V {
    a.feq(b).select(a.and(b), b.flt(a).select(a, b))
}

/// What FMNMX makes of sources of which `r` is the lesser or the greater one.
#[inline(always)]
fn of_numbers<V: Simd>(a: V, b: V, r: V) -> V {
    b.funord(b).select(a, r).canonical()
}

/// FMNMX whose predicate is the same in all lanes, always.
struct Extreme<const LESSER: bool, const PLAIN: bool>;
impl<const LESSER: bool, const PLAIN: bool> Alu for Extreme<LESSER, PLAIN> {
    const SOURCES: usize = 2;
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, a: V, b: V, _: V, _: u32) -> V {
        let (a, b) = if PLAIN { (a, b) } else { (source(u, 0, a), source(u, 1, b)) };
        of_numbers(a, b, if LESSER { lesser(a, b) } else { greater(a, b) })
    }
}

struct MinMax;
impl Alu for MinMax {
    const SOURCES: usize = 2;
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, a: V, b: V, _: V, p: u32) -> V {
        if u.mods & (NAN | XORSIGN) != 0 {
            let how = num::MinMax { ftz: u.mods & FTZ != 0, nan: u.mods & NAN != 0, xorsign: u.mods & XORSIGN != 0 };
            let f = |a: u32, b: u32, min: u32| num::min_max(bits(u, 0, a), bits(u, 1, b), min != 0, how, a ^ b);
            return V::map3(a, b, V::from_bits(p), f);
        }
        let (a, b) = (source(u, 0, a), source(u, 1, b));
        of_numbers(a, b, V::from_bits(p).select(lesser(a, b), greater(a, b)))
    }
}

pub(crate) fn fmnmx(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mods = two(l) | flag(l.bit(80), FTZ) | flag(l.bit(81), NAN) | flag(l.bit(82), XORSIGN);
    let ps = l.ps();
    let is_simple = ps.is_constant() && mods & (NAN | XORSIGN) == 0;
    let operation = match (ps.is_always_true(), mods == 0) {
        _ if !is_simple => alu::alu::<MinMax>(),
        (true, true) => alu::alu::<Extreme<true, true>>(),
        (true, false) => alu::alu::<Extreme<true, false>>(),
        (false, true) => alu::alu::<Extreme<false, true>>(),
        (false, false) => alu::alu::<Extreme<false, false>>(),
    };
    Ok(Uop { mods, ..l.ab(operation)? })
}

struct Select;
impl Alu for Select {
    const SOURCES: usize = 2;
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, a: V, b: V, _: V, p: u32) -> V {
        V::from_bits(p).select(source(u, 0, a), source(u, 1, b))
    }
}

pub(crate) fn fsel(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mods = two(l) | flag(l.bit(80), FTZ);
    Ok(Uop { mods, ..l.ab(alu::alu::<Select>())? })
}

/// The place of the operand modifiers of comparisons, above the bits that [`alu::cmp`] uses.
const COMPARE: u32 = 8;

struct Relate<const MODS: bool>;
impl<const MODS: bool> Compare for Relate<MODS> {
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, a: V, b: V) -> (V, V, V) {
        let mods = u.mods >> COMPARE;
        let (a, b) = if MODS { (modified(mods, 0, a), modified(mods, 1, b)) } else { (a, b) };
        (a.flt(b), a.feq(b), a.funord(b))
    }
}

fn comparison(l: &Lower<'_>) -> u32 {
    l.bits(76, 4) | l.bits(74, 2) << alu::cmp::COMBINE | (two(l) | flag(l.bit(80), FTZ)) << COMPARE
}

/// One condition of floats. None is true of a NaN, apart from the last.
struct Less;
impl Condition for Less {
    #[inline(always)]
    fn eval<V: Simd>(a: V, b: V) -> V {
        a.flt(b)
    }
}

struct AtMost;
impl Condition for AtMost {
    #[inline(always)]
    fn eval<V: Simd>(a: V, b: V) -> V {
        a.fle(b)
    }
}

struct Equal;
impl Condition for Equal {
    #[inline(always)]
    fn eval<V: Simd>(a: V, b: V) -> V {
        a.feq(b)
    }
}

struct Unordered;
impl Condition for Unordered {
    #[inline(always)]
    fn eval<V: Simd>(a: V, b: V) -> V {
        a.funord(b)
    }
}

/// FSETP without modifiers of its sources, for the relations that are one condition, its opposite, or one of these with the sources
/// exchanged.
fn fsetp_one(l: &mut Lower<'_>) -> Result<Option<Uop>, Refused> {
    if two(l) != 0 || l.bit(80) {
        return Ok(None);
    }
    // The bits say of less, equal, greater and unordered whether the result is true. The opposite of a relation has the other bits.
    let code = l.bits(76, 4);
    let opposite = code > 7;
    let (run, exchanged, opposite) = match if opposite { code ^ 15 } else { code } {
        1 => (alu::condition::<Less>(), false, opposite),
        2 => (alu::condition::<Equal>(), false, opposite),
        3 => (alu::condition::<AtMost>(), false, opposite),
        4 => (alu::condition::<Less>(), true, opposite),
        6 => (alu::condition::<AtMost>(), true, opposite),
        7 => (alu::condition::<Unordered>(), false, !opposite),
        _ => return Ok(None),
    };
    alu::conditional(l, run, exchanged, opposite).map(Some)
}

pub(crate) fn fsetp(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    if let Some(u) = fsetp_one(l)? {
        return Ok(u);
    }
    let mods = comparison(l);
    let run = if mods >> COMPARE == 0 { alu::setp::<Relate<false>>() } else { alu::setp::<Relate<true>>() };
    let (pd, pe) = (l.pdst(81), l.pdst(84));
    Ok(Uop { mods, pd, pe, ..l.ab(run)? })
}

pub(crate) fn fset(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mods = comparison(l);
    // The only form that compilers emit is .BF, whose result is 1.0 or 0.0.
    Ok(Uop { mods, imm: num::set(true, true), ..l.ab(alu::set::<Relate<true>>())? })
}

/// FCHK. [`num::check_division`] defines it for one lane. The signs of the operands have no effect.
struct Check;
impl Several for Check {
    const WORDS: usize = 0;
    #[inline(always)]
    fn eval<V: Simd>(_: &Uop, s: Sources<V>) -> Results<V> {
        let exponent = |x: V| x.shl(V::splat(1)).shr(V::splat(24));
        let (ea, eb) = (exponent(s.a[0]), exponent(s.b[0]));
        let apart = ea.sub(eb);
        let first = eb
            .eq(V::splat(0))
            .or(V::splat(252).lt(eb))
            .or(ea.eq(V::splat(255)))
            .or(ea.lt(V::splat(25)))
            .or(V::splat(124).lt(apart))
            .or(apart.lt(V::splat(-124i32 as u32)));
        Results { value: s.a, first, second: V::splat(0) }
    }
}

pub(crate) fn fchk(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (mods, pd) = (two(l), l.pdst(81));
    Ok(Uop { mods, pd, ..l.ab(several::<Check>(false))? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::several::tests::{One, lanes, uop};
    use proptest::prelude::*;

    /// Factors and an addend whose result is near the least normal number, or whose terms cancel.
    fn tiny() -> impl Strategy<Value = [u32; 3]> {
        let least = || {
            (any::<bool>(), -4..5i32)
                .prop_map(|(neg, steps)| (1u32 << 23).wrapping_add_signed(steps) | u32::from(neg) << 31)
        };
        let addend = prop_oneof![2 => Just(0u32), 1 => least(), 1 => any::<u32>().prop_map(|x| x & 0x80ff_ffff)];
        (any::<u32>(), 2..253u32, least(), -3..4i32, addend, 0..4u8, 1..100u32).prop_map(
            |(x, e, target, steps, c, how, power)| {
                let a = x & 0x807f_ffff | e << 23;
                let b = (f32::from_bits(target) / f32::from_bits(a)).to_bits().wrapping_add_signed(steps);
                let power = f32::from_bits(power << 23);
                match how {
                    0 => [b, a, c],
                    1 => {
                        let b = (power / f32::from_bits(a)).to_bits();
                        [a, b, (-f32::from_bits(a) * f32::from_bits(b)).to_bits().wrapping_add_signed(steps)]
                    }
                    _ => [a, b, c],
                }
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn results_are_flushed_as_those_of_one_lane(x in prop::array::uniform8(prop_oneof![9 => tiny(), 1 => any::<[u32; 3]>()]), mods in 0..64u32, sat: bool) {
            let u = uop(mods | FTZ | flag(sat, SAT) | 4 << SCALE, 0);
            let words: [[u32; 8]; 3] = std::array::from_fn(|n| x.map(|lane| lane[n]));
            let [a, b, c] = words;
            for (op, run) in [lanes::<One<Mul<MODS>>>, lanes::<One<Fma<MODS>>>].into_iter().enumerate() {
                let want: [u32; 8] = std::array::from_fn(|i| {
                    let (a, b, c) = (bits(&u, 0, a[i]), bits(&u, 1, b[i]), bits(&u, 2, c[i]));
                    if op == 0 { num::mul(a, b, mode(&u), num::Product::from_bits(false, 4)) } else { num::fma(a, b, c, mode(&u), false) }
                });
                for found in run(u.mods, 0, [a, a, b, b, c, c], [0; 2]) {
                    let found: Vec<u32> = found.into_iter().map(|(word, _)| word as u32).collect();
                    prop_assert_eq!(&found[..], &want[..], "operation {} of {:x?}, modifiers {:#x}", op, words, u.mods);
                }
            }
        }

        #[test]
        fn divisions_are_checked_as_those_of_one_lane(x in prop::array::uniform8(any::<u32>()), e in prop::array::uniform8(any::<u8>())) {
            let y = std::array::from_fn(|i| x[7 - i] & 0x807f_ffff | u32::from(e[i]) << 23);
            for found in lanes::<Check>(0, 0, [x, x, y, y, x, x], [0; 2]) {
                for (i, (_, conditions)) in found.into_iter().enumerate() {
                    prop_assert_eq!(conditions[0], num::check_division(x[i], y[i]), "{:#x} / {:#x}", x[i], y[i]);
                }
            }
        }
    }
}
