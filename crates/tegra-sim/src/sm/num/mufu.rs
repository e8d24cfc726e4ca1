//! MUFU, the multi-function unit: approximations from tables, bit for bit those of an NVIDIA H200.
//!
//! Every function is one interpolation ([`interpolate`]) in a table ([`tables`]) between a step that takes the argument
//! apart and one that puts the result together; results are cut, never rounded. The unit test holds all 2^32 results of
//! each function against silicon's. Denormal operands and results are flushed whatever the instruction's other
//! modifiers say, except for TANH and the `.F16` forms, whose PTX instructions keep them and are compiled without any
//! scaling around.

mod interpolate;
mod tables;

use super::f32::{NAN, flush};
use super::half::Kind;
use super::round::Round;
use interpolate::{BELOW, DISTANCE, Table, cut};

/// The function, as encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Function {
    /// Cosine of an angle in turns.
    Cos = 0,
    /// Sine of an angle in turns.
    Sin = 1,
    /// 2^x.
    Ex2 = 2,
    /// log2 x.
    Lg2 = 3,
    /// 1/x.
    Rcp = 4,
    /// 1/√x.
    Rsq = 5,
    /// High word of 1/x, from the high word of a double.
    Rcp64h = 6,
    /// High word of 1/√x, from the high word of a double.
    Rsq64h = 7,
    /// √x.
    Sqrt = 8,
    /// Hyperbolic tangent.
    Tanh = 9,
}

impl Function {
    /// Reads the four-bit function field; codes from 10 up are not assigned.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Option<Self> {
        Some(match bits & 15 {
            0 => Self::Cos,
            1 => Self::Sin,
            2 => Self::Ex2,
            3 => Self::Lg2,
            4 => Self::Rcp,
            5 => Self::Rsq,
            6 => Self::Rcp64h,
            7 => Self::Rsq64h,
            8 => Self::Sqrt,
            9 => Self::Tanh,
            _ => return None,
        })
    }
}

const SIGN: u32 = 1 << 31;
const INFINITY: u32 = 0x7f80_0000;
const ONE: u32 = 0x3f80_0000;
const FRACTION: u32 = 0x7f_ffff;

const RCP: Table<128> = Table { rows: &tables::RCP, fraction: 2, bias: 8092 };
const RSQ: Table<128> = Table { rows: &tables::RSQ, fraction: 2, bias: -1 };
const SQRT: Table<128> = Table { rows: &tables::SQRT, fraction: 2, bias: -1 };
const EX2: Table<64> = Table { rows: &tables::EX2, fraction: 2, bias: 24456 };
const LG2: Table<64> = Table { rows: &tables::LG2, fraction: 4, bias: 1674 };
const SIN: Table<64> = Table { rows: &tables::SIN, fraction: 2, bias: 0 };
const TANH: Table<51> = Table { rows: &tables::TANH, fraction: 2, bias: 0 };

/// MUFU on an f32 register, or on the high word of a double for the 64H functions. Operand modifiers were
/// applied before.
#[inline]
#[must_use]
pub fn mufu(function: Function, x: u32) -> u32 {
    match function {
        Function::Rcp64h | Function::Rsq64h => high_word(function, x),
        Function::Tanh => tanh(x),
        _ => flush(single(function, flush(x))),
    }
}

/// A function of an f32 as it is. The results may be denormal.
#[inline(always)]
fn single(function: Function, x: u32) -> u32 {
    if x & !SIGN > INFINITY {
        return NAN;
    }
    let exponent = (x >> 23 & 0xff) as i32;
    let odd = exponent & 1 == 0;
    let negative = x & SIGN != 0;
    match function {
        Function::Rcp if x & !SIGN == 0 => x | INFINITY,
        Function::Rcp if x & !SIGN == INFINITY => x & SIGN,
        Function::Rcp => x & SIGN | scaled(reciprocal(x & FRACTION), 253 - exponent),
        Function::Sqrt | Function::Rsq | Function::Lg2 if x & !SIGN == 0 => match function {
            Function::Sqrt => x,
            Function::Rsq => x | INFINITY,
            _ => SIGN | INFINITY,
        },
        Function::Sqrt | Function::Rsq | Function::Lg2 if negative => NAN,
        Function::Sqrt | Function::Lg2 if x == INFINITY => x,
        Function::Rsq if x == INFINITY => 0,
        Function::Sqrt => scaled((SQRT.at(root(x, odd)) >> BELOW) as u32, (exponent + 127) >> 1),
        Function::Rsq => scaled(inverse_root(x, odd), (380 - exponent) >> 1),
        Function::Lg2 => logarithm(x & FRACTION, exponent - 127),
        Function::Sin | Function::Cos if x & !SIGN == INFINITY => NAN,
        Function::Sin => sine(turns(x) ^ if negative { 1 << 24 } else { 0 }),
        Function::Cos => sine(turns(x) + (1 << 23)),
        _ => power(x),
    }
}

/// A significand of 24 bits (or 2^24) times 2^(`exponent` − 150), `exponent` being the bits' of an f32. What is too
/// small is a denormal: a zero soon.
#[inline(always)]
fn scaled(significand: u32, exponent: i32) -> u32 {
    if exponent < 0 { 0 } else { ((exponent as u32) << 23) + significand - (1 << 23) }
}

/// 1/x in units of 2^-24, for 1 ≤ x < 2.
#[inline(always)]
fn reciprocal(fraction: u32) -> u32 {
    // Seven bits select the row: the distance has 16.
    (RCP.at((fraction >> 16) << DISTANCE | (fraction & 0xffff) << 1) >> BELOW) as u32
}

/// The argument of the two tables for square roots: the parity of the exponent selects the half.
#[inline(always)]
fn root(x: u32, odd: bool) -> u32 {
    u32::from(odd) << 23 | x & FRACTION
}

/// 1/√x in units of 2^-24, for 1 ≤ x < 4.
#[inline(always)]
fn inverse_root(x: u32, odd: bool) -> u32 {
    let argument = root(x, odd);
    if argument == 0 { 1 << 24 } else { (RSQ.at(argument) >> BELOW) as u32 }
}

/// log2 of 1.`fraction` × 2^`exponent`: a sum with 36 fraction bits, which is complemented if it is negative, not
/// negated.
#[inline(always)]
fn logarithm(fraction: u32, exponent: i32) -> u32 {
    if fraction == 0 && exponent == 0 {
        return 0;
    }
    let sum = (i64::from(exponent) << (22 + BELOW)) + LG2.at(fraction);
    let magnitude = if sum < 0 { !sum } else { sum } as u64 >> 3;
    (if sum < 0 { SIGN } else { 0 }) | cut(magnitude, -36)
}

/// The fraction of |x| turns, 25 bits; what is below is cut.
#[inline(always)]
fn turns(x: u32) -> u32 {
    fixed(x, 25) as u32 & 0x1ff_ffff
}

/// |x| as a number with `fraction` fraction bits, cut; at most 48 bits of it.
#[inline(always)]
fn fixed(x: u32, fraction: i32) -> u64 {
    let significand = u64::from(x & FRACTION | if x & INFINITY == 0 { 0 } else { 1 << 23 });
    let places = (x >> 23 & 0xff).max(1) as i32 - 150 + fraction;
    match places {
        ..=-24 => 0,
        -23..=-1 => significand >> -places,
        0..=39 => significand << places,
        _ => 0,
    }
}

/// The sine of 25 bits of a turn: a quarter wave, run through backwards in every second quarter.
#[inline(always)]
fn sine(turns: u32) -> u32 {
    let quarter = turns >> 23 & 3;
    let angle = if quarter & 1 != 0 { !turns } else { turns } & FRACTION;
    let sum = SIN.at(angle) as u64;
    quarter >> 1 << 31 | cut(sum, -24 - BELOW as i32)
}

/// 2^x: a negative x is complemented, not negated, unless it is an integer.
#[inline(always)]
fn power(x: u32) -> u32 {
    let negative = x & SIGN != 0;
    if x & !SIGN >= 0x4380_0000 {
        // |x| ≥ 256.
        return if negative { 0 } else { INFINITY };
    }
    let magnitude = fixed(x, 23) as u32;
    let number = match negative {
        true if magnitude & FRACTION == 0 => magnitude.wrapping_neg(),
        true => !magnitude,
        false => magnitude,
    } as i32;
    let exponent = (number >> 23) + 127;
    if exponent >= 255 {
        return INFINITY;
    }
    scaled((EX2.at(number as u32 & FRACTION) >> BELOW) as u32, exponent)
}

/// The hyperbolic tangent. The smaller |x| is, the longer are the segments; below 2^-8 it is x.
#[inline(always)]
fn tanh(x: u32) -> u32 {
    /// First row and binary logarithm of the number of rows, for the exponents −8 to 2.
    const BINADES: [(u32, u32); 11] =
        [(0, 0), (1, 0), (2, 0), (3, 1), (5, 1), (7, 2), (11, 2), (15, 2), (19, 3), (27, 4), (43, 3)];
    let magnitude = x & !SIGN;
    if magnitude > INFINITY {
        return NAN;
    }
    let exponent = (magnitude >> 23) as i32 - 127;
    if exponent < -8 {
        return x;
    }
    if exponent > 2 {
        return x & SIGN | ONE;
    }
    let (first, rows) = BINADES[(exponent + 8) as usize];
    let argument = (magnitude & FRACTION) >> (23 - DISTANCE - rows);
    let sum = TANH.at((first << DISTANCE) + argument) as u64;
    x & SIGN | cut(sum, exponent.min(0) - 24 - BELOW as i32)
}

/// RCP64H and RSQ64H: 21 bits of the f32 function's result. The low word of the operand counts as zero.
#[inline(always)]
fn high_word(function: Function, x: u32) -> u32 {
    const LIMIT: u32 = 0x7ff0_0000;
    let (magnitude, sign) = (x & !SIGN, x & SIGN);
    let exponent = (magnitude >> 20) as i32;
    let fraction = magnitude << 3 & FRACTION;
    if magnitude > LIMIT {
        return NAN;
    }
    let (significand, exponent) = match function {
        Function::Rcp64h if exponent == 0 => return sign | LIMIT,
        Function::Rcp64h if exponent == 0x7ff => return sign,
        Function::Rcp64h => (reciprocal(fraction), 2045 - exponent),
        _ if exponent == 0 => return sign | LIMIT,
        _ if sign != 0 => return NAN,
        _ if exponent == 0x7ff => return 0,
        _ => (inverse_root(fraction, exponent & 1 == 0), (3068 - exponent) >> 1),
    };
    if exponent < 0 {
        return sign;
    }
    let bits = ((exponent as u32) << 20) + (significand >> 3) - (1 << 20);
    sign | if bits < 1 << 20 { 0 } else { bits }
}

/// MUFU.F16 on one half. Denormals are kept, and the result is cut.
#[inline]
#[must_use]
pub fn mufu_f16(function: Function, x: u16) -> u16 {
    let wide = Kind::F16.widen(x).to_bits();
    let result = if function == Function::Tanh { tanh(wide) } else { single(function, wide) };
    let (result, limit) = (f32::from_bits(result), 65536.0);
    if result >= limit { Kind::F16.infinity() } else { Kind::F16.round_f32(result, Round::Rz) }
}

#[cfg(test)]
#[path = "tests/mufu.rs"]
mod tests;
