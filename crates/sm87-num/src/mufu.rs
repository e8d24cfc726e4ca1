//! MUFU, the multi-function unit: approximations from tables, bit for bit those of an NVIDIA H200.
//!
//! Every function is one interpolation ([`interpolate`]) in a table ([`tables`]). A step before it splits the argument,
//! and a step after it makes the result. Results are cut and never rounded. The unit test compares all 2^32 results of
//! each function with those of a real GPU. Denormal operands and results are flushed whatever the other modifiers of
//! the instruction say, except for TANH and the `.F16` forms, whose PTX instructions keep denormals and are compiled
//! without scaling.

mod interpolate;
mod tables;

use super::f32::{NAN, flush};
use super::half::Kind;
use super::round::Round;
pub use interpolate::{DISTANCE, Table};
use interpolate::{cut, power_of_two};

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
    /// The high word of 1/x, from the high word of a double.
    Rcp64h = 6,
    /// The high word of 1/√x, from the high word of a double.
    Rsq64h = 7,
    /// √x.
    Sqrt = 8,
    /// Hyperbolic tangent.
    Tanh = 9,
}

impl Function {
    /// Reads the four-bit function field. Codes from 10 up are not assigned.
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

const QUARTERS: f64 = 32768.0;
/// The reciprocal of 1 to 2.
pub static RCP: Table<128> = Table::new(&tables::RCP, QUARTERS, 8092.0);
/// The reciprocal of the square root of 1 to 4.
pub static RSQ: Table<128> = Table::new(&tables::RSQ, QUARTERS, -1.0);
/// The square root of 1 to 4.
pub static SQRT: Table<128> = Table::new(&tables::SQRT, QUARTERS, -1.0);
/// 2 to the power of 0 to 1.
pub static EX2: Table<64> = Table::new(&tables::EX2, QUARTERS, 24456.0);
/// The binary logarithm of 1 to 2.
pub static LG2: Table<64> = Table::new(&tables::LG2, QUARTERS / 4.0, 1674.0);
/// The sine of a quarter of a circle.
pub static SIN: Table<64> = Table::new(&tables::SIN, QUARTERS, 0.0);
/// The hyperbolic tangent, in segments that are longer for smaller numbers: see [`BINADES`].
pub static TANH: Table<64> = Table::new(&tables::TANH, QUARTERS, 0.0);

/// The first row of [`TANH`] and the binary logarithm of the number of rows, for the exponents −8 to 2. Five more are not used, and neither
/// are the last two numbers of each.
#[rustfmt::skip]
pub static BINADES: [[i32; 4]; 16] = [
    [0, 0, 0, 0], [1, 0, 0, 0], [2, 0, 0, 0], [3, 1, 0, 0], [5, 1, 0, 0], [7, 2, 0, 0], [11, 2, 0, 0], [15, 2, 0, 0],
    [19, 3, 0, 0], [27, 4, 0, 0], [43, 3, 0, 0], [0; 4], [0; 4], [0; 4], [0; 4], [0; 4],
];

/// The exponent of the unit in which sums count, if the unit of the table is 2^-24.
pub const UNIT: i32 = -24 - DISTANCE as i32;

/// MUFU on an f32 register, or on the high word of a double for the 64H functions. Operand modifiers were applied
/// before.
#[inline]
#[must_use]
pub fn mufu(function: Function, x: u32) -> u32 {
    match function {
        Function::Rcp64h | Function::Rsq64h => high_word(function, x),
        Function::Tanh => single(function, x),
        _ => single(function, flush(x)),
    }
}

/// A function of an f32 without modifiers. Denormal results are flushed, except for TANH. Conditions choose between
/// results and never return early, so that the compiler can process lanes together.
#[inline(always)]
fn single(function: Function, x: u32) -> u32 {
    let (magnitude, sign) = (x & !SIGN, x & SIGN);
    let result = match function {
        Function::Rcp => {
            let result = cut(reciprocal(x));
            sign | if magnitude == 0 { INFINITY } else { result }
        }
        Function::Sqrt => of_positive(x, x, INFINITY, cut(root(x))),
        Function::Rsq => of_positive(x, x | INFINITY, 0, cut(inverse_root(x))),
        Function::Lg2 => of_positive(x, SIGN | INFINITY, INFINITY, logarithm(x)),
        Function::Sin => of_finite(x, sine(turns(x) ^ sign >> 7)),
        Function::Cos => of_finite(x, sine(turns(x) + (1 << 23))),
        Function::Tanh => sign | tanh(magnitude),
        _ => power(x),
    };
    if magnitude > INFINITY { NAN } else { result }
}

/// The result for a number: `positive` above zero, `zero` for zero and `infinity` for infinity. Negative numbers have
/// no result, so they give NaN.
#[inline(always)]
fn of_positive(x: u32, zero: u32, infinity: u32, positive: u32) -> u32 {
    let finite = if x == INFINITY { infinity } else { positive };
    let ordered = if x & SIGN != 0 { NAN } else { finite };
    if x & !SIGN == 0 { zero } else { ordered }
}

/// The result. Infinities have none, so they give NaN.
#[inline(always)]
fn of_finite(x: u32, result: u32) -> u32 {
    if x & !SIGN == INFINITY { NAN } else { result }
}

#[inline(always)]
fn exponent(x: u32) -> i32 {
    (x >> 23 & 0xff) as i32 - 127
}

/// 1/|x|.
#[inline(always)]
fn reciprocal(x: u32) -> f64 {
    // Seven bits select the row, so the distance has 16.
    let argument = (x & FRACTION) >> 16 << DISTANCE | (x & 0xffff) << 1;
    RCP.at(argument) * power_of_two(UNIT - exponent(x))
}

/// The argument of the two tables for square roots. The parity of the exponent selects the table's half.
#[inline(always)]
fn of_root(x: u32) -> u32 {
    // The bias of exponents is odd, so the bit is inverted.
    (x & 0xff_ffff) ^ (1 << 23)
}

#[inline(always)]
fn root(x: u32) -> f64 {
    SQRT.at(of_root(x)) * power_of_two(UNIT + 1 + (exponent(x) >> 1))
}

#[inline(always)]
fn inverse_root(x: u32) -> f64 {
    let sum = RSQ.at(of_root(x));
    let exact = if of_root(x) == 0 { power_of_two(-UNIT) } else { sum };
    exact * power_of_two(UNIT - (exponent(x) >> 1))
}

/// The binary logarithm, as a sum with 36 fraction bits. A negative sum is complemented and not negated.
#[inline(always)]
fn logarithm(x: u32) -> u32 {
    /// If this number is added to an integer, the bits of the integer are the low bits of the sum's fraction.
    const PLAIN: f64 = (1u64 << 52) as f64;
    let sum = f64::from(exponent(x)) * power_of_two(2 - UNIT - 4) + LG2.at(x & FRACTION);
    let magnitude = if sum < 0.0 { -sum - 1.0 } else { sum };
    let whole = f64::from_bits((magnitude + PLAIN).to_bits() & !7) - PLAIN;
    let result = if sum < 0.0 { SIGN } else { 0 } | cut(whole * power_of_two(UNIT + 2));
    if x == ONE { 0 } else { result }
}

/// |x| with `fraction` fraction bits. The other bits are cut. The result is its lowest 31 bits.
#[inline(always)]
fn fixed(x: u32, fraction: i32) -> u32 {
    let significand = x & FRACTION | if x & INFINITY == 0 { 0 } else { 1 << 23 };
    let places = (x >> 23 & 0xff) as i32 - 150 + fraction;
    let (up, down) = (significand << places.clamp(0, 31), significand >> (-places).clamp(0, 31));
    if places < 0 { down } else { up }
}

/// The fraction of |x| turns, with 25 bits.
#[inline(always)]
fn turns(x: u32) -> u32 {
    fixed(x, 25) & 0x1ff_ffff
}

/// The sine of 25 bits of a turn. The table has a quarter of the wave, which is read backwards in every second quarter.
#[inline(always)]
fn sine(turns: u32) -> u32 {
    let backwards = (turns >> 23 & 1).wrapping_neg();
    let sum = SIN.at((turns ^ backwards) & FRACTION);
    (turns >> 24 & 1) << 31 | cut(sum * power_of_two(UNIT))
}

/// 2^x. A negative x is complemented and not negated, unless it is an integer.
#[inline(always)]
fn power(x: u32) -> u32 {
    let negative = x & SIGN != 0;
    let magnitude = fixed(x, 23);
    let complement = if magnitude & FRACTION == 0 { magnitude.wrapping_neg() } else { !magnitude };
    let number = if negative { complement } else { magnitude };
    let result = cut(EX2.at(number & FRACTION) * power_of_two(UNIT + 1 + (number as i32 >> 23)));
    // The limit is 128. From 256 on, some bits of the number are missing.
    let bounded = if x as i32 >= 0x4300_0000 { INFINITY } else { result };
    if x >= SIGN | 0x4380_0000 { 0 } else { bounded }
}

/// The hyperbolic tangent of a positive number. Segments are longer for smaller numbers. Below 2^-8 the result is x.
#[inline(always)]
fn tanh(x: u32) -> u32 {
    let exponent = exponent(x);
    let [first, rows, ..] = BINADES[(exponent + 8) as usize % 16].map(|n| n as u32);
    let argument = (first << DISTANCE) + ((x & FRACTION) >> (23 - DISTANCE - rows));
    let result = cut(TANH.at(argument) * power_of_two(UNIT + exponent.min(0)));
    let bounded = if exponent > 2 { ONE } else { result };
    if exponent < -8 { x } else { bounded }
}

/// RCP64H and RSQ64H: 21 bits of the result of the f32 function. The low word of the operand counts as zero.
#[inline(always)]
fn high_word(function: Function, x: u32) -> u32 {
    const LIMIT: u32 = 0x7ff0_0000;
    let (magnitude, sign) = (x & !SIGN, x & SIGN);
    let exponent = (magnitude >> 20) as i32 - 1023;
    // This is the same function of a single between 1 and 4 that has these bits, and the remaining power of two.
    let parity = if function == Function::Rcp64h { 0 } else { exponent & 1 };
    let near = ONE + ((parity as u32) << 23) + (magnitude << 3 & FRACTION);
    let (result, power) = match function {
        Function::Rcp64h => (cut(reciprocal(near)), -exponent),
        _ => (cut(inverse_root(near)), -(exponent >> 1)),
    };
    let field = (result >> 23) as i32 - 127 + power + 1023;
    let finite = if field <= 0 { 0 } else { (field as u32) << 20 | (result & FRACTION) >> 3 };
    let invalid = magnitude > LIMIT || function == Function::Rsq64h && sign != 0 && exponent > -1023;
    let ordered = if magnitude == LIMIT { sign } else { sign | finite };
    let nonzero = if invalid { NAN } else { ordered };
    if exponent == -1023 { sign | LIMIT } else { nonzero }
}

/// MUFU.F16 on one half. Denormals are kept, and the result is cut.
#[inline]
#[must_use]
pub fn mufu_f16(function: Function, x: u16) -> u16 {
    let result = single(function, Kind::F16.widen(x).to_bits());
    let (result, limit) = (f32::from_bits(result), 65536.0);
    if result >= limit { Kind::F16.infinity() } else { Kind::F16.round_f32(result, Round::Rz) }
}

#[cfg(test)]
#[path = "tests/mufu.rs"]
mod tests;
