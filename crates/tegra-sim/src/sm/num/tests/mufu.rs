use super::*;
use crate::sm::num::format::Format;
use crate::sm::num::oracle::{draws, edges};

const NEG: u32 = 1 << 31;
const INF: u32 = 0x7f80_0000;

fn run(function: Function, x: f32) -> f32 {
    f32::from_bits(mufu(function, x.to_bits()))
}

/// Numbers for which neither operand nor result is near the limits.
fn moderate(x: u64) -> f32 {
    f32::from_bits((x as u32 & 0x007f_ffff) | (64 + (x >> 32) as u32 % 127) << 23)
}

#[test]
fn algebraic_functions_by_their_residuals() {
    for mut draw in draws(100_000) {
        let x = moderate(draw.word());
        let wide = f64::from(x);
        // Each bound is half a unit in the last place, and a little for the second-order term.
        let half_ulp = 2f64.powi(-24) * 1.0001;
        let r = f64::from(run(Function::Rcp, x));
        assert!(r.mul_add(wide, -1.0).abs() <= half_ulp, "1/{x}");
        assert_eq!(run(Function::Rcp, -x), -(r as f32));
        let s = f64::from(run(Function::Sqrt, x));
        assert!((s * s - wide).abs() <= 2.0 * half_ulp * wide, "sqrt {x}");
        let q = f64::from(run(Function::Rsq, x));
        assert!((q * q * wide - 1.0).abs() <= 2.0 * half_ulp, "rsq {x}");
    }
}

#[test]
fn transcendental_functions_within_published_bounds() {
    for mut draw in draws(100_000) {
        let unit = draw.word() as f64 / 2f64.powi(64);
        // 2^x by the natural exponential; 2 ulp published.
        let x = (unit * 250.0 - 125.0) as f32;
        let want = (f64::from(x) * std::f64::consts::LN_2).exp();
        assert!((f64::from(run(Function::Ex2, x)) / want - 1.0).abs() < 2f64.powi(-23), "ex2 {x}");
        // log2 by the natural logarithm; 2^-22 published, absolute near 1, else relative.
        let x = moderate(draw.word());
        let want = f64::from(x).ln() / std::f64::consts::LN_2;
        let error = (f64::from(run(Function::Lg2, x)) - want).abs();
        let bound = if (0.5..2.0).contains(&x) { 2f64.powi(-22) } else { 2f64.powi(-22) * want.abs() };
        assert!(error <= bound.min(2f64.powi(-24) * 1.0001 * want.abs().max(2f64.powi(-30))), "lg2 {x}");
        // One turn and fifty turns; 2^-20.5 and 2^-14.7 published.
        let x = ((unit * 2.0 - 1.0) * if draw.flag() { 1.0 } else { 50.0 }) as f32;
        let angle = f64::from(x).rem_euclid(1.0) * TAU;
        assert!((f64::from(run(Function::Sin, x)) - angle.sin()).abs() < 2f64.powi(-24), "sin {x}");
        assert!((f64::from(run(Function::Cos, x)) - angle.cos()).abs() < 2f64.powi(-24), "cos {x}");
        // tanh by exponentials; 2^-11 relative published.
        let x = (unit * 20.0 - 10.0) as f32;
        let e = (2.0 * f64::from(x)).exp();
        let want = (e - 1.0) / (e + 1.0);
        assert!((f64::from(run(Function::Tanh, x)) - want).abs() <= 2f64.powi(-23) * want.abs() + 1e-15, "tanh {x}");
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
    // 1 / 2^127 would be denormal.
    assert_eq!(run(Function::Rcp, 2f32.powi(127)), 0.0);
    assert_eq!(mufu(Function::Ex2, (-126.5f32).to_bits()), 0);
    assert_eq!(mufu(Function::Ex2, (-126f32).to_bits()), 0x0080_0000);
    // Not these.
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
        assert!(r.mul_add(x, -1.0).abs() <= 2f64.powi(-20), "1/{x}");
        assert!((q * q * x - 1.0).abs() <= 2f64.powi(-20), "rsq {x}");
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
        assert_eq!(mufu_f16(Function::Ex2, x), Kind::F16.round_f64(2f64.powf(wide), Round::Rn));
        assert_eq!(mufu_f16(Function::Tanh, x), Kind::F16.round_f64(wide.tanh(), Round::Rn));
    }
    assert_eq!(mufu_f16(Function::Ex2, 0xfe00), super::super::half::NAN);
}
