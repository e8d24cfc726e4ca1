//! HMMA: matrix multiply–accumulate on f16, bfloat16 and TF32.
//!
//! The arithmetic is the published bit-accurate model of Ampere's tensor cores (MMA-Sim, arXiv 2511.10909). The
//! products of a pass and the addend are aligned to the largest exponent among them. Each is cut to 24 fraction bits,
//! and the cut numbers are summed exactly. The sum is truncated to an f32 or rounded to nearest even to an f16. A shape
//! of full depth (k = 16, or 8 for TF32) is two such passes over half the depth each; the rounded result of the first
//! pass is the addend of the second one. Products are not normalised before alignment, and denormals keep the lowest
//! exponent. The model was validated on the A100, and with Hopper's parameters on an H200 (`tests/sm/tensor.rs`). It is
//! not proven that GA10B agrees with the A100 bit for bit.

use super::format::two_to;
use super::half::Kind;
use super::mma::{Fragment, accumulator};
use super::round::{Round, narrow};
use super::sparse::Grain;

/// The number of fraction bits that survive alignment.
const FRACTION: i32 = 24;
/// The exponent of a zero. It is so low that it never decides the alignment.
const ZERO: i32 = -4096;

/// Element type of A and B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// IEEE half.
    F16,
    /// bfloat16.
    Bf16,
    /// f32 registers, of which the upper 19 bits are used.
    Tf32,
}

/// A shape and type that HMMA has. D has 16 rows and 8 columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hmma {
    input: Input,
    /// The number of columns of A: 4, 8 or 16.
    depth: usize,
    /// True if C and D are f32, false if they are f16.
    f32: bool,
    /// True if A is negated.
    pub neg_a: bool,
    /// True if B is negated.
    pub neg_b: bool,
}

impl Hmma {
    /// Reads the two-bit shape field {78,75}, the input type field and the accumulator bit. The result is `None` for
    /// combinations that do not exist.
    #[must_use]
    pub const fn from_bits(shape: u32, input: u32, f32: bool) -> Option<Self> {
        let (input, depth) = match (shape, input) {
            (0, 0) => (Input::F16, 8),
            (1, 0) => (Input::F16, 16),
            (0, 1) if f32 => (Input::Bf16, 8),
            (1, 1) if f32 => (Input::Bf16, 16),
            (2, 2) if f32 => (Input::Tf32, 4),
            (0, 2) if f32 => (Input::Tf32, 8),
            _ => return None,
        };
        Some(Self { input, depth, f32, neg_a: false, neg_b: false })
    }

    /// The same for a sparse A, of which half of the elements is stored. The depth is that of the stored half.
    #[must_use]
    pub const fn sparse_from_bits(shape: u32, input: u32, f32: bool) -> Option<Self> {
        let (input, depth) = match (shape, input) {
            (1, 0) => (Input::F16, 8),
            (3, 0) => (Input::F16, 16),
            (1, 1) if f32 => (Input::Bf16, 8),
            (3, 1) if f32 => (Input::Bf16, 16),
            (0, 2) if f32 => (Input::Tf32, 4),
            (1, 2) if f32 => (Input::Tf32, 8),
            _ => return None,
        };
        Some(Self { input, depth, f32, neg_a: false, neg_b: false })
    }

    /// The numbers of registers of A, of B, and of C or D.
    #[must_use]
    pub const fn registers(self) -> [usize; 3] {
        let b = self.depth / 4 / self.per_word();
        [b * 2, b, if self.f32 { 4 } else { 2 }]
    }

    /// The element type of A and B.
    #[must_use]
    pub const fn input(self) -> Input {
        self.input
    }

    /// True if C and D are f32, false if they are f16.
    #[must_use]
    pub const fn is_f32(self) -> bool {
        self.f32
    }

    /// The number of elements of A or B in a register.
    #[must_use]
    pub const fn per_word(self) -> usize {
        match self.input {
            Input::F16 | Input::Bf16 => 2,
            Input::Tf32 => 1,
        }
    }

    /// Computes D = A·B + C. Registers beyond [`Hmma::registers`] are ignored in the operands and zero in the result.
    #[must_use]
    #[inline(always)]
    pub fn run(self, a: &[Fragment; 4], b: &[Fragment; 2], c: &[Fragment; 4]) -> [Fragment; 4] {
        let operands = self.operands(a, b);
        let mut d = self.addends(c);
        // A shape of full depth has two registers of B and makes two passes.
        let step = self.depth / self.registers()[1];
        for (row, sums) in d.iter_mut().enumerate() {
            for from in (0..self.depth).step_by(step) {
                operands.pass(row, from..from + step, self.f32, sums);
            }
        }
        self.results(&d)
    }

    /// The same for a sparse A, of which half of the elements is stored. B has twice as many registers. The passes are those of a
    /// dense A with the stored depth.
    #[must_use]
    #[inline]
    pub fn run_sparse(
        self,
        a: &[Fragment; 4],
        b: &[Fragment; 4],
        c: &[Fragment; 4],
        metadata: &Fragment,
        selector: usize,
    ) -> [Fragment; 4] {
        let registers = self.registers()[1];
        // B is used in two parts. Each part has as many rows as A has stored columns.
        let part = |at: usize| [b[at], if registers == 2 { b[at + 1] } else { [0; 32] }];
        let halves = [self.operands(a, &part(0)), self.operands(a, &part(registers))];
        let grain = if self.input == Input::Tf32 { Grain::Words } else { Grain::Halves };
        let mut d = self.addends(c);
        for (row, sums) in d.iter_mut().enumerate() {
            let columns = grain.columns(metadata, selector, row, self.depth);
            let mut operands = halves[0].clone();
            operands.special |= halves[1].special;
            for (k, &column) in columns.iter().enumerate().take(self.depth) {
                let (half, at) = (&halves[column / self.depth], column % self.depth);
                operands.b[k] = half.b[at];
                operands.b_significand[k] = half.b_significand[at];
                operands.b_exponent[k] = half.b_exponent[at];
            }
            let step = self.depth / registers;
            for from in (0..self.depth).step_by(step) {
                operands.pass(row, from..from + step, self.f32, sums);
            }
        }
        self.results(&d)
    }

    /// The element `index` of a register of A or B.
    #[inline(always)]
    fn element(self, word: u32, index: usize, neg: bool) -> f32 {
        let value = match self.input {
            Input::F16 => Kind::F16.widen((word >> (16 * index)) as u16),
            Input::Bf16 => Kind::Bf16.widen((word >> (16 * index)) as u16),
            Input::Tf32 => f32::from_bits(word & 0xffff_e000),
        };
        if neg { -value } else { value }
    }

    #[inline(always)]
    fn operands(self, a: &[Fragment; 4], b: &[Fragment; 2]) -> Factors {
        let n = self.per_word();
        let [a_count, b_count, _] = self.registers();
        let lowest = if self.input == Input::F16 { -14 } else { -126 };
        let mut out = Factors::EMPTY;
        for e in 0..n {
            for (r, word) in a.iter().enumerate().take(a_count) {
                let parts = self.take_apart(word, e, self.neg_a, lowest);
                out.special |= parts.special;
                for lane in 0..32 {
                    let (row, k) = (lane / 4 + r % 2 * 8, lane % 4 * n + e + r / 2 * 4 * n);
                    out.a[row][k] = parts.value[lane];
                    out.a_significand[row][k] = parts.significand[lane];
                    out.a_exponent[row][k] = parts.exponent[lane];
                }
            }
            for (r, word) in b.iter().enumerate().take(b_count) {
                let parts = self.take_apart(word, e, self.neg_b, lowest);
                out.special |= parts.special;
                for lane in 0..32 {
                    let (k, column) = (lane % 4 * n + e + r * 4 * n, lane / 4);
                    out.b[k][column] = parts.value[lane];
                    out.b_significand[k][column] = parts.significand[lane];
                    out.b_exponent[k][column] = parts.exponent[lane];
                }
            }
        }
        out
    }

    /// The elements `index` of a register row.
    #[inline(always)]
    fn take_apart(self, row: &Fragment, index: usize, neg: bool, lowest: i32) -> Parts {
        let mut parts = Parts { value: [0.0; 32], significand: [0; 32], exponent: [0; 32], special: false };
        for (lane, &word) in row.iter().enumerate() {
            let value = self.element(word, index, neg);
            let (significand, exponent) = split(value, lowest);
            parts.value[lane] = value;
            // 10 of the 23 fraction bits are used.
            parts.significand[lane] = significand >> 13;
            parts.exponent[lane] = exponent;
        }
        for value in &parts.value {
            parts.special |= !value.is_finite();
        }
        parts
    }

    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "two indices of three arrays")]
    fn addends(self, c: &[Fragment; 4]) -> [[f32; 8]; 16] {
        let mut out = [[0.0; 8]; 16];
        for r in 0..4 {
            for lane in 0..32 {
                let (row, column) = accumulator(r, lane);
                out[row][column] = if self.f32 {
                    f32::from_bits(c[r][lane])
                } else {
                    Kind::F16.widen((c[r / 2][lane] >> (r % 2 * 16)) as u16)
                };
            }
        }
        out
    }

    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "two indices of three arrays")]
    fn results(self, d: &[[f32; 8]; 16]) -> [Fragment; 4] {
        let mut out = [[0; 32]; 4];
        for r in 0..4 {
            for lane in 0..32 {
                let (row, column) = accumulator(r, lane);
                let value = d[row][column];
                if self.f32 {
                    out[r][lane] = if value.is_nan() { super::f32::NAN } else { value.to_bits() };
                } else {
                    out[r / 2][lane] |= u32::from(Kind::F16.round_f32(value, Round::Rn)) << (r % 2 * 16);
                }
            }
        }
        out
    }
}

/// The elements of a register row, as values and as integer significands and exponents.
struct Parts {
    value: [f32; 32],
    significand: [i32; 32],
    exponent: [i32; 32],
    special: bool,
}

/// A and B, split into integer significands with 10 fraction bits and exponents.
#[derive(Clone)]
struct Factors {
    a: [[f32; 16]; 16],
    a_significand: [[i32; 16]; 16],
    a_exponent: [[i32; 16]; 16],
    b: [[f32; 8]; 16],
    b_significand: [[i32; 8]; 16],
    b_exponent: [[i32; 8]; 16],
    /// True if any element is an infinity or a NaN.
    special: bool,
}

impl Factors {
    const EMPTY: Self = Self {
        a: [[0.0; 16]; 16],
        a_significand: [[0; 16]; 16],
        a_exponent: [[0; 16]; 16],
        b: [[0.0; 8]; 16],
        b_significand: [[0; 8]; 16],
        b_exponent: [[0; 8]; 16],
        special: false,
    };

    /// Makes one pass over the depths `range` for a row of D.
    #[inline(always)]
    fn pass(&self, row: usize, range: std::ops::Range<usize>, f32: bool, sums: &mut [f32; 8]) {
        // These are plain loops over the columns, because the compiler turns them into vectors. It would not inline
        // closures.
        let addends = *sums;
        let lowest = if f32 { -126 } else { -14 };
        let (mut total, mut own, mut top) = ([0i32; 8], [0i32; 8], [0i32; 8]);
        for j in 0..8 {
            (total[j], own[j]) = split(addends[j], lowest);
            top[j] = own[j];
        }
        for k in range.clone() {
            let (ea, eb) = (self.a_exponent[row][k], &self.b_exponent[k]);
            for j in 0..8 {
                top[j] = top[j].max(ea + eb[j]);
            }
        }
        for j in 0..8 {
            // 23 fraction bits become 24.
            total[j] = cut(total[j] << 1, top[j] - own[j]);
        }
        for k in range.clone() {
            let (a, ea) = (self.a_significand[row][k], self.a_exponent[row][k]);
            let (b, eb) = (&self.b_significand[k], &self.b_exponent[k]);
            for j in 0..8 {
                // 20 fraction bits become 24; with the integer bits of the product, 26.
                total[j] += cut((a * b[j]) << 4, top[j] - ea - eb[j]);
            }
        }
        for j in 0..8 {
            sums[j] = finish(total[j], top[j], f32);
        }
        if self.special || addends.iter().any(|c| !c.is_finite()) {
            self.infinities(row, range, &addends, sums);
        }
    }

    /// Replaces results that are decided by an infinity or a NaN.
    #[cold]
    #[inline]
    fn infinities(&self, row: usize, range: std::ops::Range<usize>, addends: &[f32; 8], sums: &mut [f32; 8]) {
        for (j, result) in sums.iter_mut().enumerate() {
            let product = |k: usize| f64::from(self.a[row][k]) * f64::from(self.b[k][j]);
            let sum = range.clone().map(product).sum::<f64>() + f64::from(addends[j]);
            if !sum.is_finite() {
                *result = sum as f32;
            }
        }
    }
}

/// A finite number as a signed significand with 23 fraction bits and an exponent, which is at least `lowest`.
#[inline(always)]
fn split(x: f32, lowest: i32) -> (i32, i32) {
    let bits = x.to_bits();
    let biased = (bits >> 23 & 0xff) as i32;
    let fraction = (bits & 0x7f_ffff) as i32;
    let magnitude = if biased == 0 { fraction } else { fraction | 1 << 23 };
    let exponent = biased.max(1) - 127;
    let significand = magnitude >> (lowest - exponent).clamp(0, 31);
    let significand = if bits >> 31 != 0 { -significand } else { significand };
    if magnitude == 0 { (0, ZERO) } else { (significand, exponent.max(lowest)) }
}

/// Divides by 2^`places` towards zero.
#[inline(always)]
const fn cut(x: i32, places: i32) -> i32 {
    let places = if places > 31 { 31 } else { places };
    let lost = (1i32 << places).wrapping_sub(1);
    (x + (x >> 31 & lost)) >> places
}

/// Rounds `total` × 2^(`top` − 24) as the accumulator does. A sum of zero is +0.
#[inline(always)]
fn finish(total: i32, top: i32, f32: bool) -> f32 {
    if f32 {
        // The truncation drops the low fraction bits of the double to which `total` is converted.
        let bits = f64::from(total).to_bits();
        let biased = (bits >> 52 & 0x7ff) as i32 - 1023 + top - FRACTION + 127;
        if total != 0 && biased > 0 && biased < 255 {
            let fraction = (bits >> 29) as u32 & 0x7f_ffff;
            let sign = (bits >> 32) as u32 & 1 << 31;
            return f32::from_bits(sign | (biased as u32) << 23 | fraction);
        }
    }
    // Only a sum of zeros has an exponent outside of the range of doubles.
    let scale = f64::from_bits(((1023 + (top - FRACTION).max(-1000)) as u64) << 52);
    let exact = f64::from(total) * scale;
    if !f32 {
        return Kind::F16.widen(Kind::F16.round_f64(exact, Round::Rn));
    }
    if exact.abs() >= two_to(128) { exact as f32 } else { narrow(exact, Round::Rz) }
}

#[cfg(test)]
#[path = "tests/hmma.rs"]
mod tests;
