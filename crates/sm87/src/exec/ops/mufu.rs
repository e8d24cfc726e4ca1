//! MUFU. [`mufu::mufu`] defines its functions for one lane; here they are written for several, apart from those that kernels seldom use.

use super::fp32::signed;
use crate::exec::alu::{self, Alu};
use crate::exec::lower::{Lower, Refused};
use crate::exec::uop::Uop;
use sm87_num::f32 as num;
use sm87_num::mufu::{self, EX2, Function, RCP, RSQ, SIN, SQRT, UNIT};
use sm87_simd::Simd;

/// The modifiers of the operand.
pub(crate) const NEG: u32 = 1;
pub(crate) const ABS: u32 = 1 << 1;
/// The flag of `aux` that says that the operand is the upper half.
const UPPER: u16 = 1;

const SIGN: u32 = 1 << 31;
const INFINITY: u32 = 0x7f80_0000;
const FRACTION: u32 = 0x7f_ffff;

pub(crate) struct Mufu<const F: u8>;
impl<const F: u8> Alu for Mufu<F> {
    const SOURCES: usize = 1;
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, a: V, b: V, c: V, _: u32) -> V {
        let Some(function) = Function::from_bits(F.into()) else { return V::splat(num::NAN) };
        let bits = |x: u32| num::modify(x, u.mods & ABS != 0, u.mods & NEG != 0);
        let x = signed(a, u.mods & ABS != 0, u.mods & NEG != 0);
        let unflushed = x;
        let x = x.flush();
        let result = match function {
            _ if V::LANES == 1 => return V::map3(a, b, c, |x, _, _| mufu::mufu(function, bits(x))),
            Function::Rcp64h | Function::Rsq64h => return high_word(function, unflushed),
            Function::Rcp => reciprocal(x),
            Function::Sqrt => root(x),
            Function::Rsq => inverse_root(x),
            Function::Ex2 => power(x),
            Function::Sin => finite(x, sine(fixed(x, 25).xor(x.and(V::splat(SIGN)).shr(V::splat(7))))),
            Function::Cos => finite(x, sine(fixed(x, 25).add(V::splat(1 << 23)))),
            Function::Lg2 => logarithm(x),
            Function::Tanh => tangent(unflushed),
        };
        V::splat(INFINITY).lt(x.and(V::splat(!SIGN))).select(V::splat(num::NAN), result)
    }
}

/// The exponents, as signed numbers.
#[inline(always)]
fn exponent<V: Simd>(x: V) -> V {
    x.shr(V::splat(23)).and(V::splat(0xff)).sub(V::splat(127))
}

/// |x| with so many fraction bits, without the others. Zeros and numbers below the last bit have so few places that nothing of the
/// implicit bit is left, and numbers that are too large for a word lose bits that nobody asks for.
#[inline(always)]
fn fixed<V: Simd>(x: V, fraction: i32) -> V {
    let significand = x.and(V::splat(FRACTION)).or(V::splat(1 << 23));
    let places = exponent(x).add(V::splat((fraction - 23) as u32));
    // One of the two counts is negative, which is more than 31 for a shift, or both are zero.
    significand.shl(places).or(significand.shr(V::splat(0).sub(places)))
}

#[inline(always)]
fn power<V: Simd>(x: V) -> V {
    let magnitude = fixed(x, 23);
    let whole = magnitude.and(V::splat(FRACTION)).eq(V::splat(0));
    // A mask is −1.
    let complement = magnitude.not().sub(whole);
    let number = x.sar(V::splat(31)).select(complement, magnitude);
    let exponent = number.sar(V::splat(23)).add(V::splat((UNIT + 1) as u32));
    let result = V::interpolate(&EX2, number.and(V::splat(FRACTION)), exponent);
    let bounded = V::splat(0x42ff_ffff).lt(x).select(V::splat(INFINITY), result);
    V::splat(SIGN | 0x437f_ffff).ltu(x).select(V::splat(0), bounded)
}

#[inline(always)]
fn reciprocal<V: Simd>(x: V) -> V {
    // Seven bits select the row, so the distance has 16.
    let argument = x.and(V::splat(FRACTION)).shl(V::splat(1));
    let result = V::interpolate(&RCP, argument, V::splat(UNIT as u32).sub(exponent(x)));
    let zero = x.and(V::splat(!SIGN)).eq(V::splat(0));
    zero.select(V::splat(INFINITY), result).or(x.and(V::splat(SIGN)))
}

/// The argument of the two tables for square roots. The parity of the exponent selects the table's half.
#[inline(always)]
fn of_root<V: Simd>(x: V) -> V {
    x.and(V::splat(0xff_ffff)).xor(V::splat(1 << 23))
}

#[inline(always)]
fn root<V: Simd>(x: V) -> V {
    let exponent = exponent(x).sar(V::splat(1)).add(V::splat((UNIT + 1) as u32));
    positive(x, x, INFINITY, V::interpolate(&SQRT, of_root(x), exponent))
}

#[inline(always)]
fn inverse_root<V: Simd>(x: V) -> V {
    let half = exponent(x).sar(V::splat(1));
    let sum = V::interpolate(&RSQ, of_root(x), V::splat(UNIT as u32).sub(half));
    let exact = of_root(x).eq(V::splat(0));
    let result = exact.select(V::splat(127).sub(half).shl(V::splat(23)), sum);
    positive(x, x.or(V::splat(INFINITY)), 0, result)
}

#[inline(always)]
fn logarithm<V: Simd>(x: V) -> V {
    let result = V::logarithm(x.and(V::splat(FRACTION)), exponent(x));
    let result = x.eq(V::splat(0x3f80_0000)).select(V::splat(0), result);
    positive(x, V::splat(SIGN | INFINITY), INFINITY, result)
}

/// The hyperbolic tangent. Denormals are kept.
#[inline(always)]
fn tangent<V: Simd>(x: V) -> V {
    let (magnitude, exponent) = (x.and(V::splat(!SIGN)), exponent(x));
    let result = V::tangent(x.and(V::splat(FRACTION)), exponent);
    let bounded = V::splat(2).lt(exponent).select(V::splat(0x3f80_0000), result);
    let whole = exponent.lt(V::splat(-8i32 as u32)).select(magnitude, bounded);
    whole.or(x.and(V::splat(SIGN)))
}

/// RCP64H and RSQ64H: the high word of the result for the high word of a double.
#[inline(always)]
fn high_word<V: Simd>(function: Function, x: V) -> V {
    const LIMIT: u32 = 0x7ff0_0000;
    let (magnitude, sign) = (x.and(V::splat(!SIGN)), x.and(V::splat(SIGN)));
    let exponent = magnitude.shr(V::splat(20)).sub(V::splat(1023));
    let near = magnitude.shl(V::splat(3)).and(V::splat(FRACTION)).or(V::splat(127 << 23));
    // The float from 1 to 4 that has these bits, and the power of two that remains.
    let (result, power, negative) = match function {
        Function::Rcp64h => (reciprocal(near), V::splat(0).sub(exponent), V::splat(0)),
        _ => {
            let near = near.add(exponent.and(V::splat(1)).shl(V::splat(23)));
            (inverse_root(near), V::splat(0).sub(exponent.sar(V::splat(1))), sign.sar(V::splat(31)))
        }
    };
    let field = result.shr(V::splat(23)).add(V::splat(1023 - 127)).add(power);
    let number = field.shl(V::splat(20)).or(result.and(V::splat(FRACTION)).shr(V::splat(3)));
    let finite = V::splat(0).lt(field).select(number, V::splat(0));
    let ordered = sign.or(magnitude.eq(V::splat(LIMIT)).select(V::splat(0), finite));
    let invalid = V::splat(LIMIT).lt(magnitude).or(negative);
    let nonzero = invalid.select(V::splat(num::NAN), ordered);
    // The low word counts as zero, and denormals do, too.
    magnitude.lt(V::splat(1 << 20)).select(sign.or(V::splat(LIMIT)), nonzero)
}

/// The result for a number: `result` above zero, `zero` for zero and `infinity` for infinity. Negative numbers have none.
#[inline(always)]
fn positive<V: Simd>(x: V, zero: V, infinity: u32, result: V) -> V {
    let finite = x.eq(V::splat(INFINITY)).select(V::splat(infinity), result);
    let ordered = x.sar(V::splat(31)).select(V::splat(num::NAN), finite);
    x.and(V::splat(!SIGN)).eq(V::splat(0)).select(zero, ordered)
}

/// The sine of the lowest 25 bits, which are a fraction of a turn.
#[inline(always)]
fn sine<V: Simd>(turns: V) -> V {
    let backwards = turns.shl(V::splat(8)).sar(V::splat(31));
    let argument = turns.xor(backwards).and(V::splat(FRACTION));
    let result = V::interpolate(&SIN, argument, V::splat(UNIT as u32));
    result.or(turns.shl(V::splat(7)).and(V::splat(SIGN)))
}

/// The result. Infinities have none.
#[inline(always)]
fn finite<V: Simd>(x: V, result: V) -> V {
    x.and(V::splat(!SIGN)).eq(V::splat(INFINITY)).select(V::splat(num::NAN), result)
}

/// MUFU.F16 computes with the low half of a register, or with the high half if the select bit is set.
struct MufuHalf;
impl Alu for MufuHalf {
    const SOURCES: usize = 1;
    #[inline(always)]
    fn eval<V: Simd>(u: &Uop, a: V, b: V, c: V, _: u32) -> V {
        V::map3(a, b, c, |x, _, _| {
            let half = if u.aux & UPPER != 0 { (x >> 16) as u16 } else { x as u16 };
            let half = if u.mods & ABS != 0 { half & 0x7fff } else { half };
            let half = if u.mods & NEG != 0 { half ^ 0x8000 } else { half };
            Function::from_bits(u.imm).map_or(num::NAN, |f| mufu::mufu_f16(f, half).into())
        })
    }
}

pub(crate) fn mufu(l: &mut Lower<'_>) -> Result<Uop, Refused> {
    let imm = l.bits(74, 4);
    // The operand is the source at bits 32 to 63, where an immediate has no modifiers.
    let immediate = matches!(l.word.form(), 2 | 4);
    let flag = |bit: u32, flag: u32| if l.bit(bit) && !immediate { flag } else { 0 };
    let mods = flag(63, NEG) | flag(62, ABS);
    if l.bit(73) {
        Function::from_bits(imm).ok_or(Refused("MUFU function"))?;
        let aux = if l.word.form() == 1 && l.bit(60) { UPPER } else { 0 };
        return Ok(Uop { mods, imm, aux, ..l.unary(alu::alu::<MufuHalf>())? });
    }
    let run = match imm {
        0 => alu::alu::<Mufu<0>>(),
        1 => alu::alu::<Mufu<1>>(),
        2 => alu::alu::<Mufu<2>>(),
        3 => alu::alu::<Mufu<3>>(),
        4 => alu::alu::<Mufu<4>>(),
        5 => alu::alu::<Mufu<5>>(),
        6 => alu::alu::<Mufu<6>>(),
        7 => alu::alu::<Mufu<7>>(),
        8 => alu::alu::<Mufu<8>>(),
        9 => alu::alu::<Mufu<9>>(),
        _ => return Err(Refused("MUFU function")),
    };
    Ok(Uop { mods, imm, ..l.unary(run)? })
}
