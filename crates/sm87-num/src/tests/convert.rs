use super::*;
use crate::format::two_to;
use crate::oracle::{Draw, Fixed, draws, edges, rounds_to, value};

const INTS: [Int; 8] = {
    const fn int(bits: u32, signed: bool) -> Int {
        Int { bits, signed }
    }
    [
        int(8, false),
        int(8, true),
        int(16, false),
        int(16, true),
        int(32, false),
        int(32, true),
        int(64, false),
        int(64, true),
    ]
};

/// The integer in the low bits of `x`.
fn as_wide(x: u64, ty: Int) -> i128 {
    let modulus = 1i128 << ty.bits;
    let low = i128::from(x) & (modulus - 1);
    if ty.signed && low >= modulus / 2 { low - modulus } else { low }
}

fn limits(ty: Int) -> (i128, i128) {
    if ty.signed { (-(1 << (ty.bits - 1)), (1 << (ty.bits - 1)) - 1) } else { (0, (1 << ty.bits) - 1) }
}

/// Rounds a double to an integer with quotient and remainder.
fn integer(x: f64, round: Round) -> i128 {
    let exact = Exact::from_f64(x.abs().min(1e30));
    let (whole, rest, unit) = if exact.exponent >= 0 {
        ((exact.significand << exact.exponent) as i128, 0, 1)
    } else if exact.exponent < -120 {
        (0, u128::from(x != 0.0), 4)
    } else {
        let unit = 1u128 << -exact.exponent;
        ((exact.significand / unit) as i128, exact.significand % unit, unit)
    };
    let negative = x < 0.0;
    let away = match round {
        Round::Rn => 2 * rest > unit || (2 * rest == unit && whole % 2 == 1),
        Round::Rm => negative && rest != 0,
        Round::Rp => !negative && rest != 0,
        Round::Rz => false,
    };
    let magnitude = whole + i128::from(away);
    if negative { -magnitude } else { magnitude }
}

fn check_to_int(x: f64, to: Int, round: Round, got: u64) {
    let (low, high) = limits(to);
    let want = integer(x, round).clamp(low, high);
    assert_eq!(got, want as u64, "{x:e} to {to:?} {round:?}");
}

fn near_integer(draw: &mut Draw) -> f64 {
    let base = draw.int() as i64 as f64;
    base + draw.pick(&[0.0, 0.5, -0.5, 0.25, 0.75, 1e-9])
}

#[test]
fn floats_to_integers() {
    for mut draw in draws(100_000) {
        let (to, round) = (draw.pick(&INTS), draw.round());
        let x = if draw.flag() { near_integer(&mut draw) } else { f64::from_bits(draw.bits(Format::F64)) };
        if !x.is_nan() {
            check_to_int(x, to, round, f64_to_int(x.to_bits(), to, round, draw.flag()));
        }
        let x = if draw.flag() { near_integer(&mut draw) as f32 } else { f32::from_bits(draw.bits32()) };
        if !x.is_nan() {
            check_to_int(x.into(), to, round, f32_to_int(x.to_bits(), to, round, draw.flag(), false));
            let flushed = f32::from_bits(flush(x.to_bits()));
            check_to_int(flushed.into(), to, round, f32_to_int(x.to_bits(), to, round, draw.flag(), true));
        }
    }
}

#[test]
fn every_half_to_integers() {
    for x in 0..=u16::MAX {
        let value = Kind::F16.widen(x);
        for (i, to) in INTS.into_iter().enumerate() {
            let round = Round::from_bits(u32::from(x) + i as u32);
            if value.is_nan() {
                assert_eq!(f16_to_int(x, to, round, true), 0);
            } else {
                check_to_int(value.into(), to, round, f16_to_int(x, to, round, false));
            }
        }
    }
}

#[test]
fn nan_to_integers() {
    for to in INTS {
        for round in Round::ALL {
            assert_eq!(f32_to_int(0x7fff_ffff, to, round, true, false), 0);
            let got = f64_to_int(u64::MAX, to, round, false);
            assert_eq!(got << (64 - to.bits), 1 << 63, "only the top bit");
            assert_eq!(got, as_wide(got, to) as u64, "extended by the sign");
        }
    }
}

#[test]
fn integers_to_floats() {
    for mut draw in draws(100_000) {
        let (x, from, round) = (draw.int(), draw.pick(&INTS), draw.round());
        let wide = as_wide(x, from);
        let exact = Fixed::new(wide < 0, wide.unsigned_abs(), 0);
        let check =
            |format, got: u64| assert!(rounds_to(format, &exact, round, got, false), "{wide} {round:?} {got:#x}");
        check(Format::F32, int_to_f32(x, from, round).into());
        check(Format::F64, int_to_f64(x, from, round));
        check(Format::F16, int_to_f16(x, from, round).into());
    }
}

#[test]
fn integer_parts_of_a_register() {
    let x = 0x8899_aabb;
    let bytes = [0, 1, 2, 3].map(|i| select(x, INTS[0], i) & 0xff);
    assert_eq!(bytes, [0xbb, 0xaa, 0x99, 0x88]);
    assert_eq!([0, 1].map(|i| select(x, INTS[2], i) & 0xffff), [0xaabb, 0x8899]);
    assert_eq!(select(x, INTS[4], 3), x);
    assert_eq!(Int::from_bits(2, true), INTS[5]);
}

#[test]
fn narrowing_rounds_once() {
    for mut draw in draws(100_000) {
        let round = draw.round();
        // These are doubles near the numbers of every narrower format and near the midpoints between them.
        let narrow = f64::from(f32::from_bits(draw.bits32()));
        let x = match draw.below(3) {
            0 => f64::from_bits(draw.bits(Format::F64)),
            1 => f64::from_bits(narrow.to_bits().wrapping_add(draw.below(5)).wrapping_sub(2)),
            _ => f64::from_bits((narrow.to_bits() | draw.pick(&[1 << 28, 1 << 41, 1 << 44])) + draw.below(3) - 1),
        };
        if !x.is_finite() {
            continue;
        }
        let exact = value(Format::F64, x.to_bits());
        let check = |format, got: u64| {
            assert!(rounds_to(format, &exact, round, got, x.is_sign_negative()), "{x:e} {round:?} {got:#x}");
        };
        check(Format::F32, f64_to_f32(x.to_bits(), round, false).into());
        check(Format::F16, f64_to_half(x.to_bits(), Kind::F16, round).into());
        check(Format::BF16, f64_to_half(x.to_bits(), Kind::Bf16, round).into());
        let x = x as f32;
        if x.is_finite() {
            let exact = value(Format::F32, x.to_bits().into());
            for kind in [Kind::F16, Kind::Bf16] {
                let got = f32_to_half(x.to_bits(), kind, round, false);
                assert!(rounds_to(kind.format(), &exact, round, got.into(), x.is_sign_negative()), "{x:e} {round:?}");
            }
        }
    }
}

#[test]
fn not_finite_and_flushed() {
    let inf = f64::INFINITY.to_bits();
    for round in Round::ALL {
        assert_eq!(f64_to_f32(inf, round, false), 0x7f80_0000);
        assert_eq!(f64_to_half(inf | 1 << 63, Kind::F16, round), 0xfc00);
        assert_eq!(f64_to_half(inf, Kind::Bf16, round), 0x7f80);
        assert_eq!(f64_to_f32(inf | 1, round, false), 0x7fc0_0000);
        assert_eq!(f64_to_f32(0xfff4_fedc_ba98_7654, round, true), 0xffe7_f6e5);
        assert_eq!(f64_to_half(0xfff8_1234_5678_9abc, Kind::F16, round), 0xfe04);
        assert_eq!(round_f64(0xfff4_fedc_ba98_7654, round), 0xfffc_fedc_ba98_7654);
        assert_eq!(f32_to_half(0xffff_ffff, Kind::Bf16, round, false), half::NAN);
    }
    assert_eq!(f32_to_f64(0xff92_3456, false), 0xfffa_468a_c000_0000);
    assert_eq!(f32_to_f64(0x8000_0001, true), 1 << 63);
    assert_eq!(f32_to_f64(0x8000_0001, false), (-two_to(-149)).to_bits());
    assert_eq!(f64_to_f32(1e-40f64.to_bits(), Round::Rn, true), 0);
    assert_eq!(f32_to_f32(0x8000_0007, true), 0x8000_0000);
    assert_eq!(f32_to_half(0x8000_0007, Kind::Bf16, Round::Rm, true), 0x8000);
    assert_eq!(f32_to_half(0x8000_0007, Kind::Bf16, Round::Rm, false), 0x8001);
    assert_eq!(half_to_f32(0x0001, Kind::Bf16, true), 0);
    assert_eq!(half_to_f32(0x0001, Kind::F16, true), (two_to(-24) as f32).to_bits());
    assert_eq!(half_to_f64(0xfc01, Kind::F16), 0xfff8_0400_0000_0000);
}

#[test]
fn integral_floats() {
    for mut draw in draws(50_000) {
        let round = draw.round();
        let x = if draw.flag() { near_integer(&mut draw) } else { f64::from_bits(draw.bits(Format::F64)) };
        let check = |x: f64, got: f64| {
            if x.is_finite() && x.abs() < 1e18 {
                assert_eq!(got, integer(x, round) as f64);
                assert_eq!(got.is_sign_negative(), x.is_sign_negative(), "{x} {round:?}");
            } else {
                assert!(got == x || (got.is_nan() && x.is_nan()));
            }
        };
        check(x, f64::from_bits(round_f64(x.to_bits(), round)));
        let x = x as f32;
        check(x.into(), f32::from_bits(round_f32(x.to_bits(), round, false)).into());
        let x = Kind::F16.round_f32(x, Round::Rn);
        check(Kind::F16.widen(x).into(), Kind::F16.widen(round_f16(x, round)).into());
    }
    assert_eq!(round_f32(1, Round::Rp, false), 1f32.to_bits());
    assert_eq!(round_f32(1, Round::Rp, true), 0);
    assert_eq!([round_f16(0xfe00, Round::Rn), round_f32(!0, Round::Rn, false) as u16], [half::NAN, 0xffff]);
}

#[test]
fn packing_floats() {
    for x in edges(Format::F32).into_iter().map(|x| x as u32) {
        for kind in [Kind::F16, Kind::Bf16] {
            let plain = Pack { kind, ..Pack::default() };
            let half = f32_to_half(x, kind, Round::Rn, false);
            assert_eq!(pack_ab(x, 0, plain), u32::from(half) << 16);
            assert_eq!(pack_merge(x, 0xabcd_ef01, plain), 0xef01_0000 | u32::from(half));
            let relu = pack_half(x, Pack { relu: true, ..plain });
            let positive = f32::from_bits(x) > 0.0 || half == half::NAN;
            assert_eq!(relu, if positive { half } else { 0 }, "{x:#x}");
            let finite = pack_half(x, Pack { satfinite: true, ..plain });
            let limit = kind.infinity() - 1;
            assert_eq!(finite, if half & 0x7fff == kind.infinity() { half & 0x8000 | limit } else { half });
        }
    }
}

#[test]
fn packing_bytes() {
    let how = PackInt { round: Round::Rz, ntz: true, ..PackInt::default() };
    let run = |a: f32, b: f32, how| pack_bytes(a.to_bits(), b.to_bits(), 0x1234, how);
    assert_eq!(run(255.9, 1.99, how), 0x1234_ff01);
    assert_eq!(run(300.0, -3.0, how), 0x1234_ff00);
    assert_eq!(run(f32::NAN, 128.0, how), 0x1234_0080);
    let signed = PackInt { signed: true, ..how };
    assert_eq!(run(-128.9, 127.9, signed), 0x1234_807f);
    assert_eq!(run(-200.0, 200.0, signed), 0x1234_807f);
    assert_eq!(run(-5.0, 5.0, PackInt { relu: true, ..signed }), 0x1234_0005);
    assert_eq!(run(f32::NAN, 0.0, PackInt { ntz: false, ..signed }), 0x1234_8000);
}
