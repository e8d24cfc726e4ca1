//! The conversions F2I, I2F, I2FP, FRND, F2F, F2FP, F2IP, I2I and I2IP.

use super::fp32::signed;
use super::int::lanewise;
use crate::exec::alu::{self, Alu, Each};
use crate::exec::lower::{Lower, Refused, Widen};
use crate::exec::several::{Results, Several, Sources, several};
use crate::exec::uop::Uop;
use crate::exec::warp::Warp;
use sm87_num::convert::{self as num, Int, Pack, PackInt};
use sm87_num::format::two_to;
use sm87_num::half::Kind;
use sm87_num::{Round, f32 as single, f64 as double};
use sm87_simd::{Double, Simd};

/// The places in `mods` of the fields of a conversion, which are copies of instruction bits.
const ROUND: u32 = 0;
const FTZ: u32 = 1 << 2;
const NTZ: u32 = 1 << 3;
const SIGNED: u32 = 1 << 4;
const NEG: u32 = 1 << 5;
const ABS: u32 = 1 << 6;
const FROM: u32 = 8;
const TO: u32 = 12;
const SELECT: u32 = 16;

const F16: u32 = 1;
const F32: u32 = 2;
const F64: u32 = 3;
const BF16: u32 = 4;

fn flag(on: bool, bits: u32) -> u32 {
    if on { bits } else { 0 }
}

fn common(l: &Lower<'_>) -> u32 {
    let register = matches!(l.word.form(), 1 | 5 | 6);
    l.bits(78, 2) << ROUND
        | flag(l.bit(80), FTZ)
        | flag(register && l.bit(63), NEG)
        | flag(register && l.bit(62), ABS)
        | flag(register, l.bits(60, 2) << SELECT)
}

#[inline(always)]
fn round(u: &Uop) -> Round {
    Round::from_bits(u.mods >> ROUND)
}

#[inline(always)]
fn ftz(u: &Uop) -> bool {
    u.mods & FTZ != 0
}

/// The number that is converted, in the kind that its type gives.
enum Number {
    Half(Kind, u16),
    Single(u32),
    Double(u64),
}

#[inline(always)]
fn number(w: &Warp, u: &Uop, lane: u32) -> Number {
    number_of(w, u, lane, u.mods >> FROM & 7)
}

#[inline(always)]
fn number_of(w: &Warp, u: &Uop, lane: u32, from: u32) -> Number {
    let (abs, neg) = (u.mods & ABS != 0, u.mods & NEG != 0);
    let half = || {
        let x = w.get(u.a, lane);
        let x = if u.mods >> SELECT & 1 != 0 { (x >> 16) as u16 } else { x as u16 };
        (if abs { x & 0x7fff } else { x }) ^ (u16::from(neg) << 15)
    };
    match from {
        F16 => Number::Half(Kind::F16, half()),
        BF16 => Number::Half(Kind::Bf16, half()),
        F64 => Number::Double(double::modify(w.get64(u.a, lane), abs, neg)),
        _ => Number::Single(single::modify(w.get(u.a, lane), abs, neg)),
    }
}

#[inline(always)]
fn put(w: &mut Warp, u: &Uop, lane: u32, value: u64) {
    if u.mods >> TO & 7 == 3 { w.put64(u.d, lane, value) } else { w.put(u.d, lane, value as u32) }
}

/// F2F. The types are those of the instruction if they are [`ANY`].
struct FloatToFloat<const SOURCE: u32, const RESULT: u32>;
const ANY: u32 = 0;
impl<const SOURCE: u32, const RESULT: u32> Each for FloatToFloat<SOURCE, RESULT> {
    #[inline(always)]
    fn each(w: &mut Warp, u: &Uop, lane: u32) {
        let from = if SOURCE == ANY { u.mods >> FROM & 7 } else { SOURCE };
        let to = if RESULT == ANY { u.mods >> TO & 7 } else { RESULT };
        let (round, ftz) = (round(u), ftz(u));
        let kind = if to == BF16 { Kind::Bf16 } else { Kind::F16 };
        let r = match (number_of(w, u, lane, from), to) {
            (Number::Half(k, x), F32) => num::half_to_f32(x, k, ftz).into(),
            (Number::Half(k, x), F64) => num::half_to_f64(x, k),
            (Number::Half(k, x), _) => num::f32_to_half(num::half_to_f32(x, k, false), kind, round, false).into(),
            (Number::Single(x), F32) => num::f32_to_f32(x, ftz).into(),
            (Number::Single(x), F64) => num::f32_to_f64(x, ftz),
            (Number::Single(x), _) => num::f32_to_half(x, kind, round, ftz).into(),
            (Number::Double(x), F32) => num::f64_to_f32(x, round, ftz).into(),
            (Number::Double(x), F64) => x,
            (Number::Double(x), _) => num::f64_to_half(x, kind, round).into(),
        };
        if to == F64 { w.put64(u.d, lane, r) } else { w.put(u.d, lane, r as u32) }
    }
}

/// F2F from a float to a double. [`num::f32_to_f64`] defines it for one lane.
struct SingleToDouble;
impl Several for SingleToDouble {
    const WORDS: usize = 2;
    const CONDITIONS: usize = 0;
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, s: Sources<V>) -> Results<V> {
        // A double has three bits more for its exponent, which is greater by the difference of the two biases.
        const BIAS: u32 = (1023 - 127) << 20;
        let x = signed(s.a[0], u.mods & ABS != 0, u.mods & NEG != 0);
        let (sign, infinite) = (x.and(V::splat(1 << 31)), V::splat(0x7f80_0000));
        let size = x.xor(sign);
        let tiny = size.lt(V::splat(0x80_0000));
        // A denormal is an integer times 2^-149.
        let digits = tiny.select(size.i2f(), size);
        let high = digits.shr(V::splat(3)).add(tiny.select(V::splat(BIAS - (149 << 20)), V::splat(BIAS)));
        let quiet = infinite.lt(size).and(V::splat(1 << 19));
        let high = size.lt(infinite).select(high, high.or(V::splat(0x7ff0_0000)).or(quiet));
        let zero = if ftz(u) { tiny } else { size.eq(V::splat(0)) };
        Results::value([zero.select(V::splat(0), digits.shl(V::splat(29))), zero.select(V::splat(0), high).or(sign)])
    }
}

fn wide(code: u32) -> u8 {
    if code == 3 { 2 } else { 1 }
}

pub(crate) fn f2f(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (to, from) = (l.bits(75, 3), l.bits(84, 3));
    if !(1..=4).contains(&to) || !(1..=4).contains(&from) {
        return Err(Refused("F2F type"));
    }
    let mods = common(l) | to << TO | from << FROM;
    let (d, a) = (l.dst(wide(to)), l.slot32_wide(wide(from), Widen::High)?);
    // Programs that add floats in doubles spend much of their time here.
    let run = match (from, to) {
        (F32, F64) => several::<SingleToDouble>(false),
        (F64, F32) => alu::each::<FloatToFloat<F64, F32>>(),
        _ => alu::each::<FloatToFloat<ANY, ANY>>(),
    };
    Ok(Uop { d, a, mods, ..l.uop(run) })
}

struct FloatToInt;
impl Each for FloatToInt {
    #[inline(always)]
    fn each(w: &mut Warp, u: &Uop, lane: u32) {
        let to = Int::from_bits(u.mods >> TO & 3, u.mods & SIGNED != 0);
        let (round, ntz) = (round(u), u.mods & NTZ != 0);
        let r = match number(w, u, lane) {
            Number::Half(_, x) => num::f16_to_int(x, to, round, ntz),
            Number::Single(x) => num::f32_to_int(x, to, round, ntz, ftz(u)),
            Number::Double(x) => num::f64_to_int(x, to, round, ntz),
        };
        put(w, u, lane, r);
    }
}

const TWO_31: f32 = two_to(31) as f32;

/// F2I from f32 to 32 bits, rounded to nearest or toward zero. [`num::f32_to_int`] defines it for one lane. FTZ has no effect.
struct SingleToWord<const SIGNED: bool>;
impl<const SIGNED: bool> Alu for SingleToWord<SIGNED> {
    const SOURCES: usize = 1;
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, a: V, _: V, _: V, _: u32) -> V {
        let x = signed(a, u.mods & ABS != 0, u.mods & NEG != 0);
        let x = if round(u) == Round::Rn { x.nearest() } else { x };
        let (top, limit) = (V::splat(1 << 31), V::splat(TWO_31.to_bits()));
        let fits = x.flt(limit);
        let found = if SIGNED {
            let low = V::splat((-TWO_31).to_bits());
            fits.select(x.flt(low).select(top, x.f2i()), V::splat(i32::MAX as u32))
        } else {
            let upper = x.fadd(V::splat((-TWO_31).to_bits()));
            let upper = upper.flt(limit).select(upper.f2i().xor(top), V::splat(u32::MAX));
            x.flt(V::splat(0)).select(V::splat(0), fits.select(x.f2i(), upper))
        };
        x.funord(x).select(if u.mods & NTZ != 0 { V::splat(0) } else { top }, found)
    }
}

pub(crate) fn f2i(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (to, from) = (l.bits(75, 2), l.bits(84, 2));
    if from == 0 {
        return Err(Refused("F2I type"));
    }
    let mods = common(l) | to << TO | from << FROM | flag(l.bit(72), SIGNED) | flag(l.bit(77), NTZ);
    let run = match (to, from, Round::from_bits(mods >> ROUND), mods & SIGNED != 0) {
        (2, F32, Round::Rn | Round::Rz, true) => alu::alu::<SingleToWord<true>>(),
        (2, F32, Round::Rn | Round::Rz, false) => alu::alu::<SingleToWord<false>>(),
        _ => alu::each::<FloatToInt>(),
    };
    let (d, a) = (l.dst(wide(to)), l.slot32_wide(wide(from), Widen::High)?);
    Ok(Uop { d, a, mods, ..l.uop(run) })
}

struct IntToFloat;
impl Each for IntToFloat {
    #[inline(always)]
    fn each(w: &mut Warp, u: &Uop, lane: u32) {
        let from = Int::from_bits(u.mods >> FROM & 3, u.mods & SIGNED != 0);
        let x = if from.bits == 64 {
            w.get64(u.a, lane)
        } else {
            num::select(w.get(u.a, lane), from, u.mods >> SELECT & 3).into()
        };
        let r = match u.mods >> TO & 7 {
            F16 => num::int_to_f16(x, from, round(u)).into(),
            F32 => num::int_to_f32(x, from, round(u)).into(),
            _ => num::int_to_f64(x, from, round(u)),
        };
        put(w, u, lane, r);
    }
}

/// The integer of each lane, which has 32 bits or is a part of them, and whether it is one with a sign.
#[inline(always)]
fn integer<V: Simd>(u: &Uop, x: V) -> (V, bool) {
    let from = Int::from_bits(u.mods >> FROM & 3, u.mods & SIGNED != 0);
    let below = 32 - from.bits;
    let part = u.mods >> SELECT & (32 / from.bits - 1);
    let (top, down) = (x.shl(V::splat(below - from.bits * part)), V::splat(below));
    (if from.signed { top.sar(down) } else { top.shr(down) }, from.signed)
}

/// I2F to a float, from 32 bits or less. [`num::int_to_f32`] defines it for one lane.
struct WordToSingle;
impl Alu for WordToSingle {
    const SOURCES: usize = 1;
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, a: V, _: V, _: V, _: u32) -> V {
        let (round, (x, signed)) = (round(u), integer(u, a));
        if round == Round::Rn && (signed || u.mods >> FROM & 3 != 2) {
            return x.i2f();
        }
        let (half, scale) = (V::splat(16), V::splat(0x4780_0000));
        let high = if signed { x.sar(half) } else { x.shr(half) }.i2f();
        let low = x.and(V::splat(0xffff)).i2f();
        let r = high.fma(scale, low);
        if round == Round::Rn {
            return r;
        }
        // What was rounded away is less than 2^17 in both steps, so that it is exact.
        let (zero, top) = (V::splat(0), V::splat(1 << 31));
        let lost = high.fma(scale, r.xor(top)).fadd(low);
        let (below, negative) = (zero.flt(lost), r.sar(V::splat(31)));
        let up = match round {
            Round::Rp => below,
            Round::Rz => below.and(negative),
            _ => zero,
        };
        let down = match round {
            Round::Rm => lost.flt(zero),
            Round::Rz => lost.flt(zero).and(negative.not()),
            _ => zero,
        };
        // The bits of the next number that is nearer to zero are less by one. A mask is -1 as a number.
        let (step, nearer) = (up.or(down), negative.select(up, down));
        r.add(nearer.select(step, step.and(V::splat(1))))
    }
}

/// I2F to a double, from 32 bits or less, which is exact.
struct WordToDouble;
impl Several for WordToDouble {
    const WORDS: usize = 2;
    const CONDITIONS: usize = 0;
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, s: Sources<V>) -> Results<V> {
        let (x, signed) = integer(u, s.a[0]);
        // The last bits of a double with this exponent are the units.
        let (offset, top) = (V::splat(if signed { 1 << 31 } else { 0 }), V::splat(0x4330_0000));
        let minus = [offset, top.xor(V::splat(1 << 31))];
        Results::value(V::double(Double::Add, [x.xor(offset), top], minus, minus))
    }
}

/// I2F and I2FP.
pub(crate) fn i2f(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (to, from) = (l.bits(75, 2), l.bits(84, 2));
    if to == 0 {
        return Err(Refused("I2F type"));
    }
    let signed = l.bit(74);
    let part = if from == 1 { l.bits(60, 1) } else { l.bits(60, 2) };
    let select = flag(matches!(l.word.form(), 1 | 5 | 6), part << SELECT);
    let mods = l.bits(78, 2) << ROUND | select | to << TO | from << FROM | flag(signed, SIGNED);
    let run = match to {
        F32 if from < 3 => alu::alu::<WordToSingle>(),
        F64 if from < 3 => several::<WordToDouble>(false),
        _ => alu::each::<IntToFloat>(),
    };
    let (d, a) = (l.dst(wide(to)), l.slot32_wide(wide(from), Widen::Signed)?);
    Ok(Uop { d, a, mods, ..l.uop(run) })
}

struct Integral;
impl Each for Integral {
    #[inline(always)]
    fn each(w: &mut Warp, u: &Uop, lane: u32) {
        let r = match number(w, u, lane) {
            Number::Half(_, x) => num::round_f16(x, round(u)).into(),
            Number::Single(x) => num::round_f32(x, round(u), ftz(u)).into(),
            Number::Double(x) => num::round_f64(x, round(u)),
        };
        put(w, u, lane, r);
    }
}

pub(crate) fn frnd(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (to, from) = (l.bits(75, 2), l.bits(84, 2));
    if to == 0 || to != from {
        return Err(Refused("FRND type"));
    }
    let mods = common(l) | to << TO | from << FROM;
    let (d, a) = (l.dst(wide(to)), l.slot32_wide(wide(from), Widen::High)?);
    Ok(Uop { d, a, mods, ..l.uop(alu::each::<Integral>()) })
}

const PACK_BF16: u32 = 1;
const PACK_RELU: u32 = 2;
const PACK_FINITE: u32 = 4;
const PACK_ROUND: u32 = 4;
const NEG_A: u32 = 1 << 8;
const ABS_A: u32 = 1 << 9;
const NEG_B: u32 = 1 << 10;
const ABS_B: u32 = 1 << 11;

fn pack(u: &Uop) -> Pack {
    Pack {
        kind: if u.mods & PACK_BF16 != 0 { Kind::Bf16 } else { Kind::F16 },
        round: Round::from_bits(u.mods >> PACK_ROUND),
        relu: u.mods & PACK_RELU != 0,
        satfinite: u.mods & PACK_FINITE != 0,
    }
}

fn first(u: &Uop, x: u32) -> u32 {
    single::modify(x, u.mods & ABS_A != 0, u.mods & NEG_A != 0)
}

fn second(u: &Uop, x: u32) -> u32 {
    single::modify(x, u.mods & ABS_B != 0, u.mods & NEG_B != 0)
}

lanewise! {
    PackAb(u, a, b, _c) num::pack_ab(first(u, a), second(u, b), pack(u));
    PackMerge(u, _a, b, c) num::pack_merge(second(u, b), c, pack(u));
    PackBytes(u, a, b, c) num::pack_bytes(a, b, (if u.mods & 16 != 0 { c >> 16 } else { c }) as u16, PackInt {
        signed: u.mods & 4 != 0,
        round: Round::from_bits(u.imm),
        ntz: u.mods & 1 != 0,
        relu: u.mods & 2 != 0,
    });
}

/// F2FP.F16.PACK_AB without modifiers, rounded to nearest even.
struct PackHalves;
impl Alu for PackHalves {
    const SOURCES: usize = 2;
    #[inline(always)]
    fn eval<V: Simd>(_: &Uop, a: V, b: V, _: V, _: u32) -> V {
        a.to_halves().shl(V::splat(16)).or(b.to_halves())
    }
}

fn ab_mods(l: &Lower<'_>) -> u32 {
    let immediate = matches!(l.word.form(), 2 | 4);
    flag(l.bit(72), NEG_A)
        | flag(l.bit(73), ABS_A)
        | flag(l.bit(63) && !immediate, NEG_B)
        | flag(l.bit(62) && !immediate, ABS_B)
}

pub(crate) fn f2fp(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mods = ab_mods(l)
        | flag(l.bit(76), PACK_BF16)
        | flag(l.bit(75), PACK_RELU)
        | flag(l.bit(77), PACK_FINITE)
        | l.bits(79, 2) << PACK_ROUND;
    let run = match (l.bit(78), mods) {
        (true, _) => alu::alu::<PackMerge>(),
        (false, 0) => alu::alu::<PackHalves>(),
        (false, _) => alu::alu::<PackAb>(),
    };
    Ok(Uop { mods, ..l.abc(run)? })
}

/// Limits a number to the range of a type. The lowest bit of the type codes of I2I and I2IP says that the type is
/// signed.
fn fit(x: u32, code: u32, bits: u32) -> i32 {
    let signed = code & 1;
    let most = (1 << (bits - signed)) - 1;
    (x as i32).clamp(if signed != 0 { !most } else { 0 }, most)
}

lanewise! {
    Narrow(u, a, _b, _c) fit(a, u.mods, if u.mods & 2 != 0 { 16 } else { 8 }) as u32;
}

/// I2I limits a number to a byte or a half, and extends the result by its sign.
pub(crate) fn i2i(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mods = l.bits(76, 2);
    Ok(Uop { mods, ..l.unary(alu::alu::<Narrow>())? })
}

/// I2IP.SAT packs two integers. They fill a register as halves, or they are narrower and lie below bits of C.
struct PackIntegers;
impl Each for PackIntegers {
    #[inline(always)]
    fn each(w: &mut Warp, u: &Uop, lane: u32) {
        let bits = [8, 16, 2, 4][u.mods as usize >> 1 & 3];
        let half = |x: u32| fit(x, u.mods, bits) as u32 & ((1 << bits) - 1);
        let pair = half(w.get(u.a, lane)) << bits | half(w.get(u.b, lane));
        let c = w.get(u.c, lane);
        let above = if u.imm != 0 { c >> 16 } else { c };
        w.put(u.d, lane, if bits == 16 { pair } else { above << (2 * bits) | pair });
    }
}

pub(crate) fn i2ip(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let (mods, how) = (l.bits(76, 3), l.bits(74, 2));
    if how != 0 {
        return Err(Refused("I2IP without .SAT"));
    }
    // The half of C that is used. With narrower pairs there is no choice.
    let imm = if mods < 4 { l.bits(72, 1) } else { 0 };
    Ok(Uop { mods, imm, ..l.abc(alu::each::<PackIntegers>())? })
}

pub(crate) fn f2ip(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let mods = flag(l.bit(74), 1) | flag(l.bit(75), 2) | flag(l.bit(76), 4) | flag(l.bit(72), 16);
    let imm = l.bits(78, 2);
    Ok(Uop { mods, imm, ..l.abc(alu::alu::<PackBytes>())? })
}

#[cfg(test)]
mod tests;
