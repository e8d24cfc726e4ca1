//! MUFU, computed in double and rounded once; denormals count as zeros on both sides.

use crate::sm::num::f32::{NAN, flush, is_nan};

/// `op` is the instruction's field; RCP64H and RSQ64H work on the high word of a double.
pub(crate) fn eval(op: u32, x: u32) -> u32 {
    match op {
        6 => high(x, |v| 1.0 / v),
        7 => high(x, |v| 1.0 / v.sqrt()),
        _ if is_nan(x) => NAN,
        _ => {
            let v = f64::from(f32::from_bits(flush(x)));
            let turns = |f: fn(f64) -> f64| f((v - v.trunc()) * std::f64::consts::TAU);
            let r = match op {
                0 => turns(f64::cos),
                1 => turns(f64::sin),
                2 => v.exp2(),
                3 => v.log2(),
                4 => 1.0 / v,
                5 => 1.0 / v.sqrt(),
                8 => v.sqrt(),
                _ => v.tanh(),
            };
            if r.is_nan() { NAN } else { flush((r as f32).to_bits()) }
        }
    }
}

fn high(x: u32, f: impl Fn(f64) -> f64) -> u32 {
    let x = if x & 0x7ff0_0000 == 0 { x & 0x8000_0000 } else { x };
    let r = f(f64::from_bits(u64::from(x) << 32));
    if r.is_nan() {
        return 0x7ff8_0000;
    }
    let r = (r.to_bits() >> 32) as u32;
    if r & 0x7ff0_0000 == 0 { r & 0x8000_0000 } else { r }
}
