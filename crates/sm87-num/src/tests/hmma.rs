use super::*;
use crate::format::two_to;
use crate::oracle::{Draw, draws};

/// Every form: its shape code, type code and accumulator, with its depth and its elements per register.
const FORMS: [(u32, u32, bool, usize, usize); 8] = [
    (0, 0, true, 8, 2),
    (0, 0, false, 8, 2),
    (1, 0, true, 16, 2),
    (1, 0, false, 16, 2),
    (0, 1, true, 8, 2),
    (1, 1, true, 16, 2),
    (2, 2, true, 4, 1),
    (0, 2, true, 8, 1),
];

/// Dense matrices, as the instruction sees them.
struct Matrices {
    a: Vec<Vec<f32>>,
    b: Vec<Vec<f32>>,
    c: Vec<Vec<f32>>,
}

fn bits_of(input: Input, x: f32) -> u32 {
    match input {
        Input::F16 => Kind::F16.round_f32(x, Round::Rn).into(),
        Input::Bf16 => Kind::Bf16.round_f32(x, Round::Rn).into(),
        Input::Tf32 => x.to_bits(),
    }
}

/// Runs an instruction on dense matrices, in the layout that the PTX ISA documents for `mma.sync`.
fn run(how: Hmma, per_word: usize, m: &Matrices) -> Vec<Vec<f32>> {
    let depth = m.b.len();
    let width = 32 / per_word;
    let (mut a, mut b, mut c) = ([[0u32; 32]; 4], [[0u32; 32]; 2], [[0u32; 32]; 4]);
    for lane in 0..32 {
        let (group, thread) = (lane >> 2, lane & 3);
        for i in 0..depth / 2 {
            // In A, rows alternate between g and g + 8 with each register, and columns advance with every second
            // register.
            let (register, within) = (i / per_word, i % per_word);
            let row = if register % 2 == 0 { group } else { group + 8 };
            let k = thread * per_word + within + if register < 2 { 0 } else { 4 * per_word };
            a[register][lane] |= bits_of(how.input, m.a[row][k]) << (within * width);
        }
        for i in 0..depth / 4 {
            let (register, within) = (i / per_word, i % per_word);
            let k = thread * per_word + within + register * 4 * per_word;
            b[register][lane] |= bits_of(how.input, m.b[k][group]) << (within * width);
        }
        for (i, (row, column)) in [(0, 0), (0, 1), (8, 0), (8, 1)].into_iter().enumerate() {
            let x = m.c[group + row][thread * 2 + column];
            match how.f32 {
                true => c[i][lane] = x.to_bits(),
                false => c[i / 2][lane] |= u32::from(Kind::F16.round_f32(x, Round::Rn)) << (i % 2 * 16),
            }
        }
    }
    let d = how.run(&a, &b, &c);
    let mut out = vec![vec![0.0; 8]; 16];
    for lane in 0..32 {
        for (i, (row, column)) in [(0, 0), (0, 1), (8, 0), (8, 1)].into_iter().enumerate() {
            out[lane / 4 + row][lane % 4 * 2 + column] = match how.f32 {
                true => f32::from_bits(d[i][lane]),
                false => Kind::F16.widen((d[i / 2][lane] >> (i % 2 * 16)) as u16),
            };
        }
    }
    out
}

fn matrices(depth: usize, mut element: impl FnMut() -> f32) -> Matrices {
    let mut dense = |rows, columns| (0..rows).map(|_| (0..columns).map(|_| element()).collect()).collect();
    Matrices { a: dense(16, depth), b: dense(depth, 8), c: dense(16, 8) }
}

#[test]
fn small_integers_are_exact() {
    for (shape, input, f32, depth, per_word) in FORMS {
        for mut draw in draws(20) {
            let m = matrices(depth, || draw.below(9) as f32 - 4.0);
            let mut how = Hmma::from_bits(shape, input, f32).unwrap();
            (how.neg_a, how.neg_b) = (draw.flag(), draw.flag());
            let sign = if how.neg_a == how.neg_b { 1.0 } else { -1.0 };
            let d = run(how, per_word, &m);
            for (row, column) in (0..16).flat_map(|row| (0..8).map(move |column| (row, column))) {
                let dot: f32 = (0..depth).map(|k| m.a[row][k] * m.b[k][column]).sum();
                assert_eq!(d[row][column], sign * dot + m.c[row][column], "{how:?}");
            }
        }
    }
}

/// The exponent and the significand (1 ≤ |s| < 2, or less for denormals), as real numbers.
fn parts(x: f64, lowest: i32) -> Option<(f64, i32)> {
    let exponent = ((x.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(lowest);
    (x != 0.0).then(|| (x * two_to(-exponent), exponent))
}

/// One pass of the published model in real arithmetic.
fn reference_pass(a: &[f64], b: &[f64], c: f64, lowest: i32, f32: bool) -> f64 {
    let addend = parts(c, if f32 { -126 } else { -14 });
    let product = |(&x, &y): (&f64, &f64)| {
        let ((s, e), (t, f)) = (parts(x, lowest)?, parts(y, lowest)?);
        Some((s * t, e + f))
    };
    let terms: Vec<(f64, i32)> = a.iter().zip(b).filter_map(product).chain(addend).collect();
    let Some(top) = terms.iter().map(|term| term.1).max() else { return 0.0 };
    let sum: f64 = terms.iter().map(|&(s, e)| (s * two_to(24 + e - top)).trunc()).sum();
    let exact = sum * two_to(top - 24);
    if f32 {
        let Some((_, exponent)) = parts(exact, -126) else { return 0.0 };
        let cut = (exact * two_to(23 - exponent)).trunc() * two_to(exponent - 23);
        if cut.abs() >= two_to(128) { cut.signum() * f64::INFINITY } else { cut }
    } else {
        let Some((_, exponent)) = parts(exact, -14) else { return 0.0 };
        let near = (exact * two_to(10 - exponent)).round_ties_even() * two_to(exponent - 10);
        if near.abs() >= 65536.0 { near.signum() * f64::INFINITY } else { near }
    }
}

fn element(draw: &mut Draw, input: u32) -> f32 {
    // The exponents differ enough for alignment to matter, and some numbers are zeros or denormals.
    let spread = draw.pick(&[2, 12, 24]);
    let exponent = draw.below(2 * spread + 1) as i32 - spread as i32;
    let x = (1.0 + draw.below(1 << 23) as f32 / (1 << 23) as f32) * two_to(exponent.min(15)) as f32;
    let x = if draw.below(20) == 0 {
        0.0
    } else if draw.flag() {
        -x
    } else {
        x
    };
    match input {
        0 => Kind::F16.widen(Kind::F16.round_f32(x, Round::Rz)),
        1 => Kind::Bf16.widen(Kind::Bf16.round_f32(x, Round::Rz)),
        _ => x,
    }
}

#[test]
fn bit_for_bit_the_published_model() {
    for (shape, input, f32, depth, per_word) in FORMS {
        let how = Hmma::from_bits(shape, input, f32).unwrap();
        for mut draw in draws(40) {
            let mut m = matrices(depth, || element(&mut draw, input));
            if !f32 {
                m.c.iter_mut().flatten().for_each(|c| *c = Kind::F16.widen(Kind::F16.round_f32(*c, Round::Rz)));
            }
            let d = run(how, per_word, &m);
            let truncate = |x: f32| f64::from(if input == 2 { f32::from_bits(x.to_bits() >> 13 << 13) } else { x });
            let lowest = if input == 0 { -14 } else { -126 };
            let passes = if depth * per_word / 2 == 16 || (input == 2 && depth == 8) { 2 } else { 1 };
            for (row, column) in (0..16).flat_map(|row| (0..8).map(move |column| (row, column))) {
                let a: Vec<f64> = m.a[row].iter().map(|&x| truncate(x)).collect();
                let b: Vec<f64> = m.b.iter().map(|line| truncate(line[column])).collect();
                let mut sum = f64::from(m.c[row][column]);
                for (a, b) in a.chunks(depth / passes).zip(b.chunks(depth / passes)) {
                    if sum.is_finite() {
                        sum = reference_pass(a, b, sum, lowest, f32);
                    }
                }
                assert_eq!(f64::from(d[row][column]), sum, "{how:?} row {row} column {column}");
            }
        }
    }
}

/// One row and one column: element (0, 0) of D from a row of A, a column of B and an addend.
fn dot(how: Hmma, per_word: usize, a: &[f32], b: &[f32], c: f32) -> f32 {
    let mut m = matrices(how.depth, || 0.0);
    m.a[0][..a.len()].copy_from_slice(a);
    b.iter().enumerate().for_each(|(k, &x)| m.b[k][0] = x);
    m.c[0][0] = c;
    run(how, per_word, &m)[0][0]
}

#[test]
fn what_alignment_cuts() {
    let f16 = Hmma::from_bits(0, 0, true).unwrap();
    let big = two_to(24) as f32;
    // Four halves together would add 2, but each is cut by itself, towards zero from both sides.
    assert_eq!(dot(f16, 2, &[0.5; 4], &[1.0; 4], big), big);
    assert_eq!(dot(f16, 2, &[-0.5; 4], &[1.0; 4], big), big);
    // One more bit survives than the result can have.
    assert_eq!(dot(f16, 2, &[1.0; 2], &[1.0; 2], big), big + 2.0);
    assert_eq!(dot(f16, 2, &[1.0], &[1.0], big), big);
    // 1.5 · 1.5 counts with exponent 0 and not 1, so the term that is 24 places lower stays.
    let tiny = two_to(-24) as f32;
    assert_eq!(dot(f16, 2, &[1.5, -1.5], &[1.5, 1.5], tiny), tiny);
    assert_eq!(dot(f16, 2, &[2.0, -2.0], &[1.5, 1.5], tiny), 0.0);
}

#[test]
fn full_depth_is_two_passes() {
    let f16 = Hmma::from_bits(1, 0, true).unwrap();
    let (mut a, mut b) = ([0.0; 16], [1.0; 16]);
    (a[0], a[1], a[8], b[8]) = (1.0, -1.0, two_to(-14) as f32, two_to(-14) as f32);
    assert_eq!(dot(f16, 2, &a, &b, 0.0), two_to(-28) as f32, "the cancellation is over before the small product comes");
    a.rotate_right(8);
    b.rotate_right(8);
    assert_eq!(dot(f16, 2, &a, &b, 0.0), 0.0, "the small sum is cut beside the large products");
}

#[test]
fn rounding_of_results() {
    let half = Hmma::from_bits(0, 0, false).unwrap();
    let single = Hmma::from_bits(0, 0, true).unwrap();
    // Ties go to even in f16. An f32 is truncated.
    assert_eq!(dot(half, 2, &[1.0], &[1.0], 2048.0), 2048.0);
    assert_eq!(dot(half, 2, &[3.0], &[1.0], 2048.0), 2052.0);
    assert_eq!(dot(half, 2, &[15.0], &[1.0], 65504.0), 65504.0);
    assert_eq!(dot(half, 2, &[16.0], &[1.0], 65504.0), f32::INFINITY);
    let c = 1.0 + two_to(-23) as f32;
    assert_eq!(dot(single, 2, &[two_to(-12) as f32], &[two_to(-12) as f32], c), c);
    assert_eq!(dot(single, 2, &[-two_to(-12) as f32], &[two_to(-12) as f32], c), 1.0);
    assert_eq!(dot(single, 2, &[0.0], &[1.0], -0.0).to_bits(), 0);
}

#[test]
fn not_finite() {
    let bf16 = Hmma::from_bits(1, 1, true).unwrap();
    let (inf, huge) = (f32::INFINITY, two_to(127) as f32);
    assert_eq!(dot(bf16, 2, &[huge], &[huge], 0.0), inf);
    assert_eq!(dot(bf16, 2, &[-huge], &[huge], 0.0), -inf);
    assert_eq!(dot(bf16, 2, &[inf], &[2.0], 0.0), inf);
    assert!(dot(bf16, 2, &[inf], &[0.0], 0.0).is_nan());
    assert!(dot(bf16, 2, &[inf], &[1.0], -inf).is_nan());
    assert_eq!(dot(bf16, 2, &[1.0], &[1.0], -inf), -inf);
    let nan = dot(bf16, 2, &[1.0], &[-f32::NAN], 0.0);
    assert_eq!(nan.to_bits(), super::super::f32::NAN);
    // An infinity in another row or column does not affect this one.
    let mut m = matrices(16, || 1.0);
    m.a[3][5] = inf;
    let d = run(bf16, 2, &m);
    assert_eq!((d[2][0], d[3][0]), (17.0, inf));
}

#[test]
fn tf32_ignores_low_bits() {
    let tf32 = Hmma::from_bits(2, 2, true).unwrap();
    assert_eq!(dot(tf32, 1, &[1.0 + two_to(-11) as f32], &[1.0], 0.0), 1.0);
    assert_eq!(dot(tf32, 1, &[1.0 + two_to(-10) as f32], &[1.0], 0.0), 1.0 + two_to(-10) as f32);
}

#[test]
fn forms_that_do_not_exist() {
    for (shape, input, f32) in [(0, 1, false), (1, 2, true), (2, 0, true), (3, 0, true), (0, 3, true), (0, 2, false)] {
        assert_eq!(Hmma::from_bits(shape, input, f32), None);
    }
}
