//! MUFU, the multi-function unit: approximations in hardware, here correctly rounded results.
//!
//! The hardware's table-and-interpolation bits are not reproduced; each result is computed in `f64` and rounded
//! once, which is within every published bound (docs/simulator.md lists them). Denormal operands and results
//! are flushed whatever the instruction's other modifiers say, except for TANH and the `.F16` forms, whose PTX
//! instructions keep them and are compiled without any scaling around.

use super::f32::{NAN, flush};
use super::half::Kind;
use super::round::Round;
use std::f64::consts::TAU;

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

    /// The function on a double.
    #[inline]
    fn evaluate(self, x: f64) -> f64 {
        match self {
            Self::Cos => turns(x, 1),
            Self::Sin => turns(x, 0),
            Self::Ex2 => x.exp2(),
            Self::Lg2 => x.log2(),
            Self::Rcp | Self::Rcp64h => x.recip(),
            Self::Rsq | Self::Rsq64h => x.sqrt().recip(),
            Self::Sqrt => x.sqrt(),
            Self::Tanh => x.tanh(),
        }
    }
}

/// sin(2π·x) for `quarter` 0, cos(2π·x) for `quarter` 1. The reduction is exact, so multiples of an eighth turn
/// give exact zeros and ones.
#[inline]
fn turns(x: f64, quarter: i64) -> f64 {
    let fraction = x - x.round_ties_even();
    let nearest = (fraction * 4.0).round_ties_even();
    let angle = (fraction - nearest * 0.25) * TAU;
    // An infinite x makes `fraction` NaN; the cast then gives quadrant 0 and the NaN survives in `angle`.
    match (nearest as i64 + quarter) & 3 {
        0 => angle.sin(),
        1 => angle.cos(),
        2 => -angle.sin(),
        _ => -angle.cos(),
    }
}

/// MUFU on an f32 register, or on the high word of a double for the 64H functions. Operand modifiers were
/// applied before.
#[inline]
#[must_use]
pub fn mufu(function: Function, x: u32) -> u32 {
    match function {
        Function::Rcp64h | Function::Rsq64h => high_word(function, x),
        Function::Tanh => single(function, x),
        _ => flush(single(function, flush(x))),
    }
}

#[inline]
fn single(function: Function, x: u32) -> u32 {
    let y = function.evaluate(f32::from_bits(x).into()) as f32;
    if y.is_nan() { NAN } else { y.to_bits() }
}

/// The low word of the operand counts as zero; the result's is rounded away.
#[inline]
fn high_word(function: Function, x: u32) -> u32 {
    const EXPONENT: u32 = 0x7ff0_0000;
    let flush = |x: u32| if x & EXPONENT == 0 { x & 1 << 31 } else { x };
    let y = function.evaluate(f64::from_bits(u64::from(flush(x)) << 32));
    if y.is_nan() {
        return NAN;
    }
    flush(((y.to_bits() + (1 << 31)) >> 32) as u32)
}

/// MUFU.F16 on one half. Denormals are kept.
#[inline]
#[must_use]
pub fn mufu_f16(function: Function, x: u16) -> u16 {
    Kind::F16.round_f64(function.evaluate(Kind::F16.widen(x).into()), Round::Rn)
}

#[cfg(test)]
#[path = "tests/mufu.rs"]
mod tests;
