use super::*;
use crate::f32::{Mode, Product, mul};
use crate::format::Format;
use crate::format::two_to;
use crate::oracle::{draws, edges};

const NEG: u32 = 1 << 31;
const INF: u32 = 0x7f80_0000;

fn run(function: Function, x: f32) -> f32 {
    f32::from_bits(mufu(function, x.to_bits()))
}

/// A number for which neither the operand nor the result is near the limits.
fn moderate(x: u64) -> f32 {
    f32::from_bits((x as u32 & 0x007f_ffff) | (64 + (x >> 32) as u32 % 127) << 23)
}

/// Hashes of all results of an NVIDIA H200 (`python/suite/silicon`). Sine and cosine include PTX's multiplication that
/// converts radians to turns.
const RECORDED: &[u8] = include_bytes!("mufu.hash");
const BLOCKS: u32 = 4096;

/// Compares the results of one of every `step` blocks of 2^20 inputs. Each function gets other blocks.
fn like_silicon(function: Function, step: usize) {
    let start = RECORDED.windows(2).position(|w| w == b"\n\n").unwrap() + 2;
    let hashes: Vec<_> = RECORDED[start..].chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().unwrap())).collect();
    let turns = Mode { round: Round::Rz, ..Mode::default() };
    let result = |x: u32| match function {
        Function::Sin | Function::Cos => mufu(function, mul(x, 0x3e22_f983, turns, Product::default())),
        _ => mufu(function, x),
    };
    let hash = |x: u32| {
        let h = u64::from(x).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(result(x));
        let h = (h ^ h >> 32).wrapping_mul(0xff51_afd7_ed55_8ccd);
        h ^ h >> 29
    };
    for block in (function as u32 % step as u32..BLOCKS).step_by(step) {
        let sum = (block << 20..=block << 20 | 0xf_ffff).fold(0u64, |sum, x| sum.wrapping_add(hash(x)));
        let want = hashes[(function as u32 * BLOCKS + block) as usize];
        assert_eq!(sum, want, "{function:?}: results for {:#x} and the 2^20 words from there", block << 20);
    }
}

/// `TEGRARM_TEST_SILICON_STEP=1` compares all 2^32 inputs of each function, which takes some minutes.
#[test]
fn all_bits_are_silicons() {
    let step = std::env::var("TEGRARM_TEST_SILICON_STEP").map_or(251, |s| s.parse().unwrap());
    for code in 0..10 {
        like_silicon(Function::from_bits(code).unwrap(), step);
    }
}

#[test]
fn published_bounds_hold() {
    for mut draw in draws(100_000) {
        let unit = draw.word() as f64 / two_to(64);
        let x = moderate(draw.word());
        let wide = f64::from(x);
        let r = f64::from(run(Function::Rcp, x));
        assert!(r.mul_add(wide, -1.0).abs() <= two_to(-23), "1/{x}");
        assert_eq!(run(Function::Rcp, -x), -(r as f32));
        let s = f64::from(run(Function::Sqrt, x));
        assert!((s / wide.sqrt() - 1.0).abs() <= two_to(-23), "sqrt {x}");
        let q = f64::from(run(Function::Rsq, x));
        assert!((q * wide.sqrt() - 1.0).abs() <= 2f64.powf(-22.9), "rsq {x}");
        let want = wide.ln() / std::f64::consts::LN_2;
        let error = (f64::from(run(Function::Lg2, x)) - want).abs();
        assert!(error <= two_to(-22) * if (0.5..2.0).contains(&x) { 1.0 } else { want.abs() }, "lg2 {x}");
        let x = (unit * 250.0 - 125.0) as f32;
        let want = (f64::from(x) * std::f64::consts::LN_2).exp();
        assert!((f64::from(run(Function::Ex2, x)) / want - 1.0).abs() < two_to(-22), "ex2 {x}");
        let x = ((unit * 2.0 - 1.0) * if draw.flag() { 1.0 } else { 50.0 }) as f32;
        let angle = f64::from(x).rem_euclid(1.0) * std::f64::consts::TAU;
        assert!((f64::from(run(Function::Sin, x)) - angle.sin()).abs() < 2f64.powf(-20.5), "sin {x}");
        assert!((f64::from(run(Function::Cos, x)) - angle.cos()).abs() < 2f64.powf(-20.5), "cos {x}");
        let x = (unit * 20.0 - 10.0) as f32;
        let e = (2.0 * f64::from(x)).exp();
        let want = (e - 1.0) / (e + 1.0);
        assert!((f64::from(run(Function::Tanh, x)) - want).abs() <= two_to(-11) * want.abs() + 1e-15, "tanh {x}");
    }
}

#[test]
fn special_values() {
    let one = 1f32.to_bits();
    let cases = [
        (Function::Rcp, 0, INF),
        (Function::Rcp, NEG, NEG | INF),
        (Function::Rcp, INF, 0),
        (Function::Rcp, NEG | INF, NEG),
        (Function::Rsq, 0, INF),
        (Function::Rsq, NEG, NEG | INF),
        (Function::Rsq, INF, 0),
        (Function::Rsq, NEG | one, NAN),
        (Function::Sqrt, NEG, NEG),
        (Function::Sqrt, NEG | one, NAN),
        (Function::Sqrt, INF, INF),
        (Function::Lg2, 0, NEG | INF),
        (Function::Lg2, NEG, NEG | INF),
        (Function::Lg2, NEG | one, NAN),
        (Function::Lg2, one, 0),
        (Function::Lg2, INF, INF),
        (Function::Ex2, NEG | INF, 0),
        (Function::Ex2, INF, INF),
        (Function::Ex2, 0, one),
        (Function::Ex2, NEG, one),
        (Function::Sin, INF, NAN),
        (Function::Cos, NEG | INF, NAN),
        (Function::Sin, 0, 0),
        (Function::Cos, 0, one),
        (Function::Tanh, INF, one),
        (Function::Tanh, NEG | INF, NEG | one),
        (Function::Tanh, NEG, NEG),
    ];
    for (function, x, want) in cases {
        assert_eq!(mufu(function, x), want, "{function:?} {x:#x}");
    }
    for function in (0..10).map(|code| Function::from_bits(code).unwrap()) {
        assert_eq!(mufu(function, 0xfff8_0001), NAN, "{function:?}");
    }
    assert_eq!(Function::from_bits(10), None);
}

#[test]
fn denormals_are_flushed() {
    let denormal = 0x007f_ffff;
    assert_eq!(mufu(Function::Rcp, denormal), INF);
    assert_eq!(mufu(Function::Rcp, NEG | denormal), NEG | INF);
    assert_eq!(mufu(Function::Sqrt, denormal), 0);
    assert_eq!(mufu(Function::Lg2, denormal), NEG | INF);
    // The result 1 / 2^127 would be denormal, so it is flushed.
    assert_eq!(run(Function::Rcp, two_to(127) as f32), 0.0);
    assert_eq!(mufu(Function::Ex2, (-126.5f32).to_bits()), 0);
    assert_eq!(mufu(Function::Ex2, (-126f32).to_bits()), 0x0080_0000);
    // These forms keep denormals.
    assert_eq!(mufu(Function::Tanh, NEG | 77), NEG | 77);
    assert_eq!(mufu_f16(Function::Tanh, 0x0001), 0x0001);
    assert_eq!(mufu_f16(Function::Ex2, Kind::F16.round_f32(-24.0, Round::Rn)), 0x0001);
}

#[test]
fn exact_angles() {
    for (turns, sine, cosine) in
        [(0.25, 1.0, 0.0), (0.5, 0.0, -1.0), (-0.25, -1.0, 0.0), (7.0, 0.0, 1.0), (1e30, 0.0, 1.0)]
    {
        assert_eq!((run(Function::Sin, turns), run(Function::Cos, turns)), (sine, cosine), "{turns}");
    }
}

#[test]
fn high_words_of_doubles() {
    for mut draw in draws(50_000) {
        let high = (draw.word() as u32 & 0x000f_ffff) | (512 + draw.below(1024) as u32) << 20;
        let x = f64::from_bits(u64::from(high) << 32);
        let wide = |y: u32| f64::from_bits(u64::from(y) << 32);
        let (r, q) = (wide(mufu(Function::Rcp64h, high)), wide(mufu(Function::Rsq64h, high)));
        assert!(r.mul_add(x, -1.0).abs() <= two_to(-20), "1/{x}");
        assert!((q * q * x - 1.0).abs() <= two_to(-19), "rsq {x}");
    }
    assert_eq!(mufu(Function::Rcp64h, 0), 0x7ff0_0000);
    assert_eq!(mufu(Function::Rcp64h, NEG | 0x000f_ffff), NEG | 0x7ff0_0000);
    assert_eq!(mufu(Function::Rcp64h, 0x7fe8_0000), 0);
    assert_eq!(mufu(Function::Rsq64h, NEG | 0x3ff0_0000), NAN);
    assert_eq!(mufu(Function::Rsq64h, 0x7ff0_0000), 0);
}

#[test]
fn halves() {
    for x in edges(Format::F16).into_iter().map(|x| x as u16).filter(|&x| !Kind::F16.is_nan(x)) {
        let wide = f64::from(Kind::F16.widen(x));
        // The results are cut, from values that may be a little too small.
        for (function, want) in [(Function::Ex2, 2f64.powf(wide)), (Function::Tanh, wide.tanh())] {
            let (got, near) = (mufu_f16(function, x), Kind::F16.round_f64(want, Round::Rn));
            assert!(got == near || got + 1 == near, "{function:?} {x:#x}");
        }
    }
    assert_eq!(mufu_f16(Function::Ex2, 0xfe00), super::super::half::NAN);
}
