use super::*;
use crate::format::Format;
use crate::format::two_to;
use crate::oracle::{draws, edges, fields, product, rounds_to, value, zero_sum};

const F: Format = Format::F32;

fn exact_mode(round: Round) -> Mode {
    Mode { round, ..Mode::default() }
}

fn sign(x: u32) -> bool {
    x >> 31 != 0
}

fn finite(x: u32) -> bool {
    x & INFINITY != INFINITY
}

/// For operands that are not all finite no rounding happens, and the host decides between ∞ and NaN.
fn special(x: f32, got: u32) -> bool {
    if x.is_nan() { got == NAN } else { got == x.to_bits() }
}

fn check_add(a: u32, b: u32, round: Round) -> bool {
    let got = add(a, b, exact_mode(round));
    if !finite(a) || !finite(b) {
        return special(f32::from_bits(a) + f32::from_bits(b), got);
    }
    let exact = value(F, a.into()).plus(&value(F, b.into()));
    rounds_to(F, &exact, round, got.into(), zero_sum(sign(a), sign(b), round))
}

fn check_mul(a: u32, b: u32, round: Round, scale: i8) -> bool {
    let got = mul(a, b, exact_mode(round), Product { fmz: false, scale });
    if !finite(a) || !finite(b) {
        return special(f32::from_bits(a) * f32::from_bits(b), got);
    }
    let exact = product(F, a.into(), b.into(), scale.into());
    rounds_to(F, &exact, round, got.into(), sign(a) != sign(b))
}

fn check_fma(a: u32, b: u32, c: u32, round: Round) -> bool {
    let got = fma(a, b, c, exact_mode(round), false);
    if !finite(a) || !finite(b) || !finite(c) {
        return special(f32::from_bits(a).mul_add(f32::from_bits(b), f32::from_bits(c)), got);
    }
    let exact = product(F, a.into(), b.into(), 0).plus(&value(F, c.into()));
    rounds_to(F, &exact, round, got.into(), zero_sum(sign(a) != sign(b), sign(c), round))
}

fn edges32() -> Vec<u32> {
    edges(F).into_iter().map(|x| x as u32).collect()
}

#[test]
fn sums_and_products_of_edges() {
    for (a, b) in edges32().into_iter().flat_map(|a| edges32().into_iter().map(move |b| (a, b))) {
        for round in Round::ALL {
            assert!(check_add(a, b, round), "{a:#x} + {b:#x} {round:?}");
            for scale in [-3, 0, 3] {
                assert!(check_mul(a, b, round, scale), "{a:#x} * {b:#x} * 2^{scale} {round:?}");
            }
        }
    }
}

#[test]
fn fused_edges() {
    let edges = edges32();
    for (i, &a) in edges.iter().enumerate() {
        for (j, &b) in edges.iter().enumerate() {
            for (k, &c) in edges.iter().enumerate() {
                let round = Round::from_bits((i + j + k) as u32);
                assert!(check_fma(a, b, c, round), "{a:#x} * {b:#x} + {c:#x} {round:?}");
            }
        }
    }
}

#[test]
fn random_sums() {
    for mut draw in draws(100_000) {
        let a = draw.bits32();
        let b = draw.bits32();
        let round = draw.round();
        assert!(check_add(a, b, round), "{a:#x} + {b:#x} {round:?}");
    }
}

#[test]
fn random_products() {
    for mut draw in draws(100_000) {
        let a = draw.bits32();
        let b = draw.bits32();
        let round = draw.round();
        let scale = draw.below(7) as i8 - 3;
        assert!(check_mul(a, b, round, scale), "{a:#x} * {b:#x} * 2^{scale} {round:?}");
    }
}

#[test]
fn random_fused() {
    for mut draw in draws(100_000) {
        let a = draw.bits32();
        let b = draw.bits32();
        let c = draw.bits32();
        let round = draw.round();
        assert!(check_fma(a, b, c, round), "{a:#x} * {b:#x} + {c:#x} {round:?}");
    }
}

/// The addend nearly cancels the product, so that only bits below the product's rounding are left.
#[test]
fn cancelling_fused() {
    for mut draw in draws(100_000) {
        let a = draw.bits32();
        let b = draw.bits32();
        let ulps = draw.below(5) as i32 - 2;
        let round = draw.round();
        let near = (-(f32::from_bits(a) * f32::from_bits(b))).to_bits();
        let c = near.wrapping_add_signed(ulps);
        assert!(check_fma(a, b, c, round), "{a:#x} * {b:#x} + {c:#x} {round:?}");
    }
}

#[test]
fn flushing_is_of_operands_and_results() {
    for mut draw in draws(100_000) {
        let a = draw.bits32();
        let b = draw.bits32();
        let c = draw.bits32();
        let round = draw.round();
        let plain = exact_mode(round);
        let ftz = Mode { ftz: true, ..plain };
        let [x, y, z] = [a, b, c].map(flush);
        assert_eq!(add(a, b, ftz), flush(add(x, y, plain)));
        // With numbers that are larger by 2^32, nothing is a denormal. A result that would be below the smallest normal
        // number is flushed.
        let up = |x: u32| (f32::from_bits(x) * two_to(32) as f32).to_bits();
        let small = |larger: u32| f32::from_bits(larger).abs() < two_to(32 - 126) as f32;
        let want = |result: u32, larger: u32| if small(larger) { result & SIGN } else { result };
        let times = |x, y, mode| mul(x, y, mode, Product::default());
        assert_eq!(times(a, b, ftz), want(times(x, y, plain), times(up(x), y, plain)));
        assert_eq!(fma(a, b, c, ftz, false), want(fma(x, y, z, plain, false), fma(up(x), y, up(z), plain, false)));
    }
}

#[test]
fn flushing_at_the_limit() {
    let ftz = Mode { ftz: true, ..Mode::default() };
    let times = |a, b| mul(a, b, ftz, Product::default());
    // (1 − 2^-24)·2^-126 has 24 bits; (1 − 2^-46)·2^-126 rounds up before the exponent is too small.
    assert_eq!(times(0x3f7f_ffff, 0x8080_0000), SIGN);
    assert_eq!(times(0x2000_0001, 0x1fff_fffe), 0x0080_0000);
    assert_eq!(fma(0x0080_0000, 0x8080_0001, 0x0080_0000, ftz, false), 0x0080_0000);
}

#[test]
fn saturation_clamps_the_rounded_result() {
    for mut draw in draws(100_000) {
        let a = draw.bits32();
        let b = draw.bits32();
        let round = draw.round();
        let plain = f32::from_bits(add(a, b, exact_mode(round)));
        let want = if plain > 0.0 { plain.min(1.0) } else { 0.0 };
        assert_eq!(add(a, b, Mode { sat: true, ..exact_mode(round) }), want.to_bits());
    }
}

#[test]
fn min_max_against_order_of_reals() {
    for mut draw in draws(100_000) {
        let a = draw.bits32();
        let b = draw.bits32();
        let min = draw.flag();
        let nan = draw.flag();
        let ftz = draw.flag();
        let got = min_max(a, b, min, MinMax { ftz, nan, xorsign: false }, 0);
        let [x, y] = [a, b].map(|x| if ftz { flush(x) } else { x });
        if is_nan(a) || is_nan(b) {
            let other = if is_nan(a) { y } else { x };
            assert_eq!(got, if nan || is_nan(other) { NAN } else { other });
        } else {
            assert!(got == x || got == y);
            let (p, q) = (f32::from_bits(x), f32::from_bits(y));
            assert_eq!(f32::from_bits(got), if min { p.min(q) } else { p.max(q) });
            if p == 0.0 && q == 0.0 {
                assert_eq!(sign(got), if min { sign(x) | sign(y) } else { sign(x) & sign(y) });
            }
        }
    }
}

#[test]
fn compare_codes() {
    for mut draw in draws(100_000) {
        let a = draw.bits32();
        let b = draw.bits32();
        let (x, y) = (f32::from_bits(a), f32::from_bits(b));
        let (lt, eq, gt, un) = (x < y, x == y, x > y, x.is_nan() || y.is_nan());
        let want = [
            false,
            lt,
            eq,
            lt | eq,
            gt,
            lt | gt,
            gt | eq,
            !un,
            un,
            lt | un,
            eq | un,
            lt | eq | un,
            gt | un,
            lt | gt | un,
            gt | eq | un,
            true,
        ];
        for (code, want) in (0..).zip(want) {
            assert_eq!(compare(a, b, code, false), want, "code {}", code);
            let flushed = compare(flush(a), flush(b), code, false);
            assert_eq!(compare(a, b, code, true), flushed);
        }
    }
}

/// Where FCHK says that the fast division is good, its steps neither overflow nor become denormal, and its result is
/// exact.
#[test]
fn fast_division_is_correct_where_allowed() {
    for mut draw in draws(100_000) {
        let a = draw.bits32();
        let b = draw.bits32();
        if !check_division(a, b) {
            let m = Mode::default();
            let neg = |x| modify(x, false, true);
            let r = crate::mufu::mufu(crate::mufu::Function::Rcp, b);
            let e = fma(neg(b), r, 1f32.to_bits(), m, false);
            let r = fma(r, e, r, m, false);
            let q = fma(a, r, 0, m, false);
            let e = fma(neg(b), q, a, m, false);
            let q = fma(r, e, q, m, false);
            let e = fma(neg(b), q, a, m, false);
            let q = fma(r, e, q, m, false);
            assert_eq!(q, (f32::from_bits(a) / f32::from_bits(b)).to_bits());
        }
    }
}

#[test]
fn nan_payloads_are_not_propagated() {
    for nan in [0x7f80_0001, 0xffff_ffff, 0x7fc0_0000] {
        assert_eq!(add(nan, 0, Mode::default()), NAN);
        assert_eq!(mul(nan, 0, Mode::default(), Product::default()), NAN);
        assert_eq!(fma(0, 0, nan, Mode::default(), false), NAN);
        assert_eq!(min_max(nan, nan, true, MinMax::default(), 0), NAN);
        assert_eq!(modify(nan, true, true), nan | SIGN);
    }
}

#[test]
fn zero_factors_under_fmz() {
    let (one, denormal) = (1f32.to_bits(), 5);
    let fmz = Product { fmz: true, scale: 0 };
    for zero in [0, SIGN, denormal, denormal | SIGN] {
        for other in [one, one | SIGN, INFINITY, NAN] {
            assert_eq!(mul(zero, other, Mode::default(), fmz), 0);
            assert_eq!(mul(other, zero, Mode::default(), fmz), 0);
            assert_eq!(fma(zero, other, one, Mode::default(), true), one);
        }
    }
    assert_eq!(mul(one, one, Mode::default(), fmz), one);
    // The result is flushed too.
    assert_eq!(mul(0x0080_0000, 0.5f32.to_bits(), Mode::default(), fmz), 0);
}

#[test]
fn scale_field_four_is_none() {
    let scales = [1, 2, 3, 4, 5, 6, 7].map(|field| Product::from_bits(false, field).scale);
    assert_eq!(scales, [-3, -2, -1, 0, 1, 2, 3]);
}

#[test]
fn scaled_products_round_once() {
    // 0x00800001 · 1 / 8 is denormal and inexact. Rounding first and scaling afterwards would break the tie
    // differently.
    let a = 0x0080_0005;
    let got = mul(a, 1f32.to_bits(), Mode::default(), Product { fmz: false, scale: -3 });
    let (_, significand, exponent) = fields(F, a.into());
    let exact = crate::oracle::Fixed::new(false, significand, exponent - 3);
    assert!(rounds_to(F, &exact, Round::Rn, got.into(), false));
}

#[test]
fn xorsign_takes_the_signs_of_the_registers() {
    let how = MinMax { xorsign: true, ..MinMax::default() };
    let (a, b) = (2f32.to_bits(), (-3f32).to_bits());
    let got = min_max(modify(a, true, false), modify(b, true, false), true, how, a ^ b);
    assert_eq!(f32::from_bits(got), -2.0);
    let got = min_max(modify(b, true, false), modify(b, true, false), false, how, b ^ b);
    assert_eq!(f32::from_bits(got), 3.0);
}

#[test]
fn set_results() {
    assert_eq!([set(false, true), set(true, true), set(false, false), set(true, false)], [0, 0x3f80_0000, 0, !0]);
}
