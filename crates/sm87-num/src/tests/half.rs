use super::*;
use crate::format::two_to;
use crate::oracle::{Draw, draws, edges, fields, product, rounds_to, value, zero_sum};

const KINDS: [Kind; 2] = [Kind::F16, Kind::Bf16];

fn real(format: Format, bits: u64) -> f64 {
    let (negative, significand, exponent) = fields(format, bits);
    let magnitude = significand as f64 * two_to(exponent);
    if negative { -magnitude } else { magnitude }
}

fn finite(kind: Kind, x: u16) -> bool {
    x & 0x7fff < kind.infinity()
}

#[test]
fn every_half_widens_exactly_and_comes_back() {
    for kind in KINDS {
        for x in 0..=u16::MAX {
            let wide = kind.widen(x);
            if kind.is_nan(x) {
                assert!(wide.is_nan());
                assert_eq!(kind.round_f32(wide, Round::Rn), NAN);
                continue;
            }
            let want = if finite(kind, x) { real(kind.format(), x.into()) } else { f64::INFINITY };
            assert_eq!(f64::from(wide).abs(), want.abs());
            assert_eq!(wide.is_sign_negative(), x & SIGN != 0);
            for round in Round::ALL {
                assert_eq!(kind.round_f32(wide, round), x);
                assert_eq!(kind.round_f64(wide.into(), round), x);
            }
        }
    }
}

/// Numbers near every half: the midpoint to the next half, and numbers just beside it.
#[test]
fn every_midpoint_rounds_to_even() {
    for kind in KINDS {
        for x in 0..kind.infinity() {
            let (low, high) = (value(kind.format(), x.into()), value(kind.format(), u64::from(x) + 1));
            let middle = (f64::from(kind.widen(x)) + real(kind.format(), u64::from(x) + 1)) / 2.0;
            let even = x + (x & 1);
            for (nudged, want) in [(middle.next_down(), x), (middle, even), (middle.next_up(), x + 1)] {
                assert_eq!(kind.round_f64(nudged, Round::Rn), want);
                assert_eq!(kind.round_f64(-nudged, Round::Rn), want | SIGN);
                assert_eq!(kind.round_f64(nudged, Round::Rz), x);
                let up = if x + 1 == kind.infinity() { kind.infinity() } else { x + 1 };
                assert_eq!(kind.round_f64(nudged, Round::Rp), up);
            }
            let single = middle as f32;
            if f64::from(single) == middle {
                assert_eq!(kind.round_f32(single, Round::Rn), even);
                assert_eq!(kind.round_f32(single.next_down(), Round::Rn), x);
                assert_eq!(kind.round_f32(single.next_up(), Round::Rn), x + 1);
            }
            assert_ne!(low, high);
        }
    }
}

fn draw_half(draw: &mut Draw, kind: Kind) -> u16 {
    draw.bits(kind.format()) as u16
}

fn widen(kind: Kind, x: [u16; 2]) -> [f32; 2] {
    x.map(|x| kind.widen(x))
}

fn unpack(x: u32) -> [u16; 2] {
    [x as u16, (x >> 16) as u16]
}

fn check_fused(kind: Kind, a: u16, b: u16, c: u16, got: u16) {
    let [x, y, z] = [a, b, c].map(|h| f64::from(kind.widen(h)));
    if !(x * y + z).is_finite() {
        // Products of halves never overflow a double.
        let want = x * y + z;
        let want = if want.is_nan() { NAN } else { kind.infinity() | if want < 0.0 { SIGN } else { 0 } };
        assert_eq!(got, want);
        return;
    }
    let exact = product(kind.format(), a.into(), b.into(), 0).plus(&value(kind.format(), c.into()));
    let zero = zero_sum((a ^ b) & SIGN != 0, c & SIGN != 0, Round::Rn);
    assert!(rounds_to(kind.format(), &exact, Round::Rn, got.into(), zero), "{kind:?} {a:#x} {b:#x} {c:#x} {got:#x}");
}

#[test]
fn packed_arithmetic_rounds_once() {
    for mut draw in draws(100_000) {
        let kind = draw.pick(&KINDS);
        let mode = Mode { kind, ..Mode::default() };
        let [a, b, mut c] = [(); 3].map(|()| [draw_half(&mut draw, kind), draw_half(&mut draw, kind)]);
        if draw.flag() {
            // The addend nearly cancels the product.
            let near = f64::from(kind.widen(a[0])) * f64::from(kind.widen(b[0]));
            c[0] = kind.round_f64(-near, Round::Rn).wrapping_add(draw.below(3) as u16).wrapping_sub(1);
        }
        let [x, y, z] = [a, b, c].map(|h| widen(kind, h));
        let (sum, times, fused) = (add2(x, z, mode), mul2(x, y, mode), fma2(x, y, z, mode));
        for i in 0..2 {
            check_fused(kind, a[i], kind.one(), c[i], unpack(sum)[i]);
            // Adding a zero of the product's sign changes nothing.
            check_fused(kind, a[i], b[i], (a[i] ^ b[i]) & SIGN, unpack(times)[i]);
            check_fused(kind, a[i], b[i], c[i], unpack(fused)[i]);
        }
    }
}

#[test]
fn result_modifiers() {
    for mut draw in draws(50_000) {
        let kind = draw.pick(&KINDS);
        let plain = Mode { kind, ..Mode::default() };
        let [a, b, c] = [(); 3].map(|()| [draw_half(&mut draw, kind), draw_half(&mut draw, kind)]);
        let run = |mode: Mode| {
            let lanes = |h: [u16; 2]| widen(kind, h.map(|h| if mode.flushes() { kind.flush(h) } else { h }));
            fma2(lanes(a), lanes(b), lanes(c), mode)
        };
        let want = unpack(run(plain));
        let real = want.map(|h| kind.widen(h));
        let saturated = unpack(run(Mode { sat: true, ..plain }));
        let rectified = unpack(run(Mode { relu: true, ..plain }));
        for i in 0..2 {
            let clamp = if real[i] >= 1.0 {
                kind.one()
            } else if real[i] > 0.0 {
                want[i]
            } else {
                0
            };
            assert_eq!(saturated[i], clamp);
            assert_eq!(rectified[i], if real[i] <= 0.0 { 0 } else { want[i] });
        }
        let f = |h: [u16; 2]| widen(kind, h.map(|h| kind.flush(h)));
        // With numbers that are larger by 2^8, nothing is a denormal. A result that would be below the smallest normal
        // number is flushed.
        let up = |lanes: [f32; 2]| lanes.map(|x| x * 256.0);
        let larger = unpack(fma2(up(f(a)), f(b), up(f(c)), plain)).map(|h| kind.widen(h).abs());
        let least = kind.widen(1 << kind.format().fraction) * 256.0;
        let near = unpack(fma2(f(a), f(b), f(c), plain));
        let flushed = [0, 1].map(|i| if larger[i] < least { near[i] & SIGN } else { near[i] });
        assert_eq!(unpack(run(Mode { ftz: true, ..plain })), flushed);
        // The result is one f32 of the low lane, rounded once.
        let wide = run(Mode { f32: true, ..plain });
        let [x, y, z] = [a, b, c].map(|h| kind.widen(h[0]));
        let want = x.mul_add(y, z);
        assert_eq!(wide, if want.is_nan() { super::super::f32::NAN } else { want.to_bits() });
    }
}

#[test]
fn zero_factors_under_fmz() {
    let mode = Mode { fmz: true, ..Mode::default() };
    let inf = f32::INFINITY;
    assert_eq!(mul2([0.0, inf], [inf, -0.0], mode), 0);
    assert_eq!(fma2([0.0, 2.0], [f32::NAN, 3.0], [1.0, 1.0], mode), 0x4700_3c00);
}

#[test]
fn swizzles_and_operand_modifiers() {
    let x = 0xbc00_4000; // −1, 2
    let read = |swizzle, abs, neg| Operand { swizzle, abs, neg }.lanes(Kind::F16, x, false);
    assert_eq!(read(Swizzle::Packed, false, false), [2.0, -1.0]);
    assert_eq!(read(Swizzle::Low, false, false), [2.0, 2.0]);
    assert_eq!(read(Swizzle::High, false, false), [-1.0, -1.0]);
    assert_eq!(read(Swizzle::Packed, true, false), [2.0, 1.0]);
    assert_eq!(read(Swizzle::Packed, true, true), [-2.0, -1.0]);
    assert_eq!(read(Swizzle::F32, false, true), [-f32::from_bits(x); 2]);
    let denormals = Operand::default().lanes(Kind::F16, 0x8001_0001, true);
    assert_eq!(denormals.map(f32::to_bits), [0, 1 << 31]);
    let single = Operand { swizzle: Swizzle::F32, ..Operand::default() };
    assert_eq!(single.lanes(Kind::F16, 1, true), [0.0, 0.0]);
    assert_eq!(single.halves(Kind::F16, 1.5f32.to_bits()), [0x3e00; 2]);
    assert_eq!([0, 1, 2, 3].map(|b| Swizzle::from_bits(b) as u8), [0, 1, 2, 3]);
}

#[test]
fn f32_operands_are_not_rounded_first() {
    // The sum of 1 + 2^-12 as f32 and 2^-11 − 2^-12 as half is exactly the midpoint. Rounding the f32 first would miss
    // it.
    let a = [1.0 + two_to(-12) as f32; 2];
    let b = [two_to(-11) as f32 - two_to(-12) as f32; 2];
    assert_eq!(add2(a, b, Mode::default()), 0x3c00_3c00);
    let b = [two_to(-11) as f32 - two_to(-12) as f32 + two_to(-20) as f32; 2];
    assert_eq!(add2(a, b, Mode::default()), 0x3c01_3c01);
}

#[test]
fn minimum_and_maximum() {
    for kind in KINDS {
        let edges: Vec<u16> = edges(kind.format()).into_iter().map(|x| x as u16).collect();
        for (&a, &b) in edges.iter().flat_map(|a| edges.iter().map(move |b| (a, b))) {
            for (min, nan, ftz) in
                [(true, false, false), (false, false, true), (true, true, true), (false, true, false)]
            {
                let got = min_max2([a, b], [b, a], min, MinMax { ftz, nan, xorsign: false }, kind, 0);
                let [x, y] = [a, b].map(|x| if ftz { kind.flush(x) } else { x });
                let (p, q) = (kind.widen(x), kind.widen(y));
                let want = match (p.is_nan(), q.is_nan()) {
                    (true, true) => NAN,
                    (true, false) | (false, true) if nan => NAN,
                    (true, false) => y,
                    (false, true) => x,
                    _ if p == q => {
                        if min == (x & SIGN != 0) {
                            x
                        } else {
                            y
                        }
                    }
                    _ => {
                        if (p < q) == min {
                            x
                        } else {
                            y
                        }
                    }
                };
                assert_eq!(unpack(got), [want, want], "{kind:?} {a:#x} {b:#x}");
            }
        }
    }
    let how = MinMax { xorsign: true, ..MinMax::default() };
    let got = min_max2([0x3c00, 0x3c00], [0x4000, 0x4000], false, how, Kind::F16, 0x8000_0000);
    assert_eq!(got, 0xc000_4000);
}

#[test]
fn comparisons_and_sets() {
    let (a, b) = ([1.0, f32::NAN], [2.0, 0.0]);
    assert_eq!(compare2(a, b, 1), [true, false]);
    assert_eq!(compare2(a, b, 8), [false, true]);
    assert_eq!(compare2(a, b, 6), [false, false]);
    assert_eq!(compare2(b, a, 4), [true, false]);
    assert_eq!(compare2(a, a, 2), [true, false]);
    assert_eq!(set2([true, false], false, Kind::F16), 0xffff);
    assert_eq!(set2([true, true], true, Kind::F16), 0x3c00_3c00);
    assert_eq!(set2([false, true], true, Kind::Bf16), 0x3f80_0000);
}
