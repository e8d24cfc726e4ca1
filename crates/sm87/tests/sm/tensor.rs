//! Tensor cores: the model of MMA-Sim (arXiv 2511.10909) as a definition with parameters. With Hopper's parameters it
//! must give the results of an H200, and with Ampere's those of the engine. The structure of the model is thus tested
//! on a real GPU, and only its two parameters for GA10B come from the paper.

use crate::silicon::both;
use sm87_num::format::two_to;

/// The parameters that differ between generations.
struct Unit {
    /// The number of fraction bits that survive alignment.
    fraction: i32,
    /// A product of 16-bit (or 32-bit) factors with this depth takes one pass.
    depth: [usize; 2],
}

const HOPPER: Unit = Unit { fraction: 25, depth: [16, 8] };
const AMPERE: Unit = Unit { fraction: 24, depth: [8, 4] };

/// A floating-point format: its stored fraction bits, the number of them that are used, and its exponent bits.
#[derive(Clone, Copy)]
struct Format(u32, u32, u32);

const F16: Format = Format(10, 10, 5);
const BF16: Format = Format(7, 7, 8);
const TF32: Format = Format(23, 10, 8);
const F32: Format = Format(23, 23, 8);

impl Format {
    fn bias(self) -> i32 {
        (1 << (self.2 - 1)) - 1
    }

    fn value(self, x: u32) -> f64 {
        let Some((significand, exponent)) = self.split(x) else {
            // A NaN whose fraction has ones only in the unused bits is an infinity.
            let fraction = (x & ((1 << self.0) - 1)) >> (self.0 - self.1);
            let sign = if x >> (self.0 + self.2) & 1 != 0 { -1.0 } else { 1.0 };
            return if fraction == 0 { sign * f64::INFINITY } else { f64::NAN };
        };
        significand as f64 * two_to(exponent - self.1 as i32)
    }

    /// The signed significand of a finite number, with the fraction bits that are used, and its exponent.
    fn split(self, x: u32) -> Option<(i64, i32)> {
        let Format(stored, used, bits) = self;
        let (fraction, field) = (x & ((1 << stored) - 1), x >> stored & ((1 << bits) - 1));
        if field == (1 << bits) - 1 {
            return None;
        }
        let magnitude = i64::from((if field == 0 { fraction } else { fraction | 1 << stored }) >> (stored - used));
        let significand = if x >> (stored + bits) & 1 != 0 { -magnitude } else { magnitude };
        Some((significand, (field as i32).max(1) - self.bias()))
    }

    /// Rounds a sum to this format: an f32 is cut, and an f16 is rounded to nearest even. Zeros are positive.
    fn round(self, x: f64) -> u32 {
        let sign = u32::from(x < 0.0) << (self.0 + self.2);
        let infinity = ((1u32 << self.2) - 1) << self.0;
        if x.is_nan() {
            return (1 << (self.0 + self.2)) - 1;
        }
        if x.is_infinite() {
            return sign | infinity;
        }
        let exponent = ((x.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(1 - self.bias());
        let scaled = x.abs() * two_to(self.0 as i32 - exponent);
        let significand = if self.0 == 10 { scaled.round_ties_even() } else { scaled.trunc() };
        // A carry runs into the exponent, and an exponent that is too large becomes infinity.
        let magnitude = (((exponent + self.bias() - 1) as u64) << self.0) + significand as u64;
        sign | magnitude.min(infinity.into()) as u32
    }
}

/// One pass: the products and the addend are aligned and cut, and then summed exactly.
fn pass(unit: &Unit, input: Format, a: &[u32], b: &[u32], output: Format, c: u32) -> u32 {
    let factors = || a.iter().zip(b);
    let plain = factors().map(|(&x, &y)| input.value(x) * input.value(y)).sum::<f64>() + output.value(c);
    let all: Option<Vec<_>> = factors()
        .map(|(&x, &y)| {
            let ((s, e), (t, f)) = (input.split(x)?, input.split(y)?);
            Some((s * t, e + f, 2 * input.1))
        })
        .chain([output.split(c).map(|(s, e)| (s, e, output.1))])
        .collect();
    let Some(terms) = all else { return output.round(plain) };
    let Some(top) = terms.iter().filter(|t| t.0 != 0).map(|t| t.1).max() else { return 0 };
    let cut = |&(significand, exponent, fraction): &(i64, i32, u32)| {
        let wide = i128::from(significand) << 64;
        wide / (1i128 << (64 + fraction as i32 - unit.fraction + (top - exponent)).clamp(0, 126))
    };
    let sum: i128 = terms.iter().filter(|t| t.0 != 0).map(cut).sum();
    output.round(sum as f64 * two_to(top - unit.fraction))
}

/// The rows and columns of the accumulator that the registers of a lane have.
fn places(lane: usize) -> [(usize, usize); 4] {
    let (row, column) = (lane / 4, lane % 4 * 2);
    [(row, column), (row, column + 1), (row + 8, column), (row + 8, column + 1)]
}

/// One mma.sync of a tile: the words of its 32 lanes give the four (or two) result words of each lane.
fn tile(unit: &Unit, input: Format, depth: usize, output: Format, words: &[&[u32]]) -> Vec<Vec<u32>> {
    let per_word = if input.0 == 23 { 1 } else { 2 };
    let element = |word: u32, e: usize| if per_word == 1 { word } else { word >> (16 * e) & 0xffff };
    let registers = depth / (4 * per_word);
    let (mut a, mut b) = (vec![vec![0; depth]; 16], vec![vec![0; depth]; 8]);
    for (lane, word) in words.iter().enumerate() {
        for (r, e) in (0..registers).flat_map(|r| (0..per_word).map(move |e| (r, e))) {
            let k = lane % 4 * per_word + e + r * 4 * per_word;
            a[lane / 4][k] = element(word[2 * r], e);
            a[lane / 4 + 8][k] = element(word[2 * r + 1], e);
            b[lane / 4][k] = element(word[4 + r], e);
        }
    }
    let step = unit.depth[2 - per_word].min(depth);
    let one = |lane: usize, r: usize| {
        let (row, column) = places(lane)[r];
        let c = if output.0 == 23 { words[lane][6 + r] } else { words[lane][10 + r / 2] >> (r % 2 * 16) & 0xffff };
        let chunks = a[row].chunks(step).zip(b[column].chunks(step));
        chunks.fold(c, |c, (a, b)| pass(unit, input, a, b, output, c))
    };
    let lane = |lane: usize| -> Vec<u32> {
        let d = [0, 1, 2, 3].map(|r| one(lane, r));
        if output.0 == 23 { d.to_vec() } else { vec![d[1] << 16 | d[0], d[3] << 16 | d[2]] }
    };
    (0..words.len()).map(lane).collect()
}

fn compare(family: &str, input: Format) {
    let (recording, engine) = both(family);
    let lanes: Vec<_> = recording.input.chunks(recording.words).collect();
    let mut first = 0;
    while first < recording.columns.len() {
        let form = recording.columns[first].form.split(" -> ").next().unwrap();
        let depth: usize = form.split("n8k").nth(1).and_then(|s| s.split('.').next()).unwrap().parse().unwrap();
        let output = if form.contains(".col.f32.") { F32 } else { F16 };
        for (t, words) in lanes.chunks(32).enumerate() {
            let hopper = tile(&HOPPER, input, depth, output, words);
            let ampere = tile(&AMPERE, input, depth, output, words);
            for (lane, r) in (0..32).flat_map(|lane| (0..hopper[lane].len()).map(move |r| (lane, r))) {
                let (column, item) = (first + r, 32 * t + lane);
                let (silicon, ours) = (recording.columns[column].values[item], engine[column][item]);
                let where_ = || format!("{form}, register {r} of lane {lane} of tile {t}");
                assert_eq!(u64::from(hopper[lane][r]), silicon, "model and H200: {}", where_());
                assert_eq!(u64::from(ampere[lane][r]), ours, "model and engine: {}", where_());
            }
        }
        first += if output.0 == 23 { 4 } else { 2 };
    }
}

#[test]
fn halves() {
    compare("matrix_half", F16);
}

#[test]
fn brains() {
    compare("matrix_brain", BF16);
}

#[test]
fn tf32() {
    compare("matrix_tf32", TF32);
}
