//! HMMA on eight columns at a time. It works for numbers whose intermediate results fit into floats. [`Hmma::run`] defines
//! the results and computes all other cases.
//!
//! A product of two factors with eleven bits each is exact as a float. It is scaled so that the last bit that survives
//! alignment has the value one. The conversion to an integer then cuts the bits below it, and integers are summed exactly.
//! The columns of a vector have the order of two accumulator registers: 0, 2, 4, 6, 1, 3, 5, 7.
#![allow(unsafe_code)]

use crate::exec::rows::Row;
use crate::exec::simd::Simd;
use crate::num::hmma::{Hmma, Input};
use crate::num::mma::Fragment;

/// The number of fraction bits that survive alignment.
const FRACTION: i32 = 24;
/// The exponent that stands for a zero. The sum of it and any other exponent is below `NOTHING`.
const ZERO: i32 = -4096;
const NOTHING: i32 = -2000;
/// If all exponents lie between these two, scales and results are normal floats, and a product that is too small for a
/// float is cut to zero.
const LEAST: i32 = -100;
const MOST: i32 = 120;

/// The offsets in bytes at which the four words of each column begin in a register of B.
const COLUMNS: [u32; 8] = [0, 32, 64, 96, 16, 48, 80, 112];

/// Values and exponents of one register of A, in the register's own order: rows of `4 * per_word` numbers.
struct Left {
    value: [u32; 64],
    exponent: [u32; 64],
}

/// Values and exponents of one register of B, as rows of eight columns.
struct Right {
    value: [[u32; 8]; 8],
    exponent: [[u32; 8]; 8],
}

/// The state of one instruction while it is executed.
struct Unit<V> {
    input: Input,
    is_f32: bool,
    /// The largest exponent that a factor has had so far.
    top: V,
}

impl<V: Simd> Unit<V> {
    /// The lowest exponent that a factor can have, and the exponent that infinities and NaN have.
    #[inline(always)]
    fn limits(&self) -> (i32, i32) {
        if self.input == Input::F16 { (-14, 16) } else { (-126, 128) }
    }

    /// The values and exponents of factors. Each lane of `x` holds 16 bits or a whole word.
    #[inline(always)]
    fn factor(&mut self, x: V, neg: V) -> (V, V) {
        let value = match self.input {
            Input::F16 => widened(x),
            Input::Bf16 => x.shl(V::splat(16)),
            Input::Tf32 => x.and(V::splat(0xffff_e000)),
        };
        let exponent = exponent(value, self.limits().0);
        self.top = self.top.maxs(exponent);
        (value.xor(neg), exponent)
    }

    #[inline(always)]
    fn left(&mut self, row: &Fragment, neg: V) -> Left {
        let mut out = Left { value: [0; 64], exponent: [0; 64] };
        let halves = self.input != Input::Tf32;
        let mut i = 0;
        while i < if halves { 64 } else { 32 } {
            // SAFETY: a fragment has 32 words or 64 halves, and `out` has as many words.
            unsafe {
                let p = row.as_ptr();
                let x = if halves { V::widen(p.cast::<u16>().add(i)) } else { V::load(p.add(i)) };
                let (value, exponent) = self.factor(x, neg);
                value.store(out.value.as_mut_ptr().add(i));
                exponent.store(out.exponent.as_mut_ptr().add(i));
            }
            i += V::LANES;
        }
        out
    }

    #[inline(always)]
    fn right(&mut self, row: &Fragment, neg: V) -> Right {
        let mut out = Right { value: [[0; 8]; 8], exponent: [[0; 8]; 8] };
        let row = Row(*row);
        let mut i = 0;
        while i < 8 {
            // SAFETY: a row is aligned and has four words for each of the eight columns.
            let words = unsafe { V::gather4(row.0.as_ptr().cast(), COLUMNS.as_ptr().add(i)) };
            for (t, &word) in words.iter().enumerate() {
                if self.input == Input::Tf32 {
                    self.column(&mut out, t, i, word, neg);
                } else {
                    self.column(&mut out, 2 * t, i, word.and(V::splat(0xffff)), neg);
                    self.column(&mut out, 2 * t + 1, i, word.shr(V::splat(16)), neg);
                }
            }
            i += V::LANES;
        }
        out
    }

    #[inline(always)]
    fn column(&mut self, out: &mut Right, k: usize, i: usize, x: V, neg: V) {
        let (value, exponent) = self.factor(x, neg);
        // SAFETY: a row has eight columns.
        unsafe {
            value.store(out.value[k].as_mut_ptr().add(i));
            exponent.store(out.exponent[k].as_mut_ptr().add(i));
        }
    }

    /// Computes one pass for a row: the new sums, and a mask of the sums that have to be computed exactly.
    #[inline(always)]
    fn pass(&self, a: &[u32], ea: &[u32], b: &Right, i: usize, addend: V) -> (V, V) {
        let own = exponent(addend, if self.is_f32 { -126 } else { -14 });
        let mut top = own;
        for (k, &ea) in ea.iter().enumerate() {
            // SAFETY: a row has eight columns.
            let eb = unsafe { V::load(b.exponent[k].as_ptr().add(i)) };
            top = top.maxs(V::splat(ea).add(eb));
        }
        let (least, most) = (V::splat(LEAST as u32), V::splat(MOST as u32));
        let low = top.lt(least).and(V::splat(NOTHING as u32).lt(top));
        let infinite = if self.is_f32 { most } else { V::splat(15) };
        let bad = low.or(most.lt(top)).or(infinite.lt(own));
        let top = top.maxs(least);
        let scale = V::splat((127 + FRACTION) as u32).sub(top).shl(V::splat(23));
        let mut total = addend.fmul(scale).f2i();
        for (k, &a) in a.iter().enumerate() {
            // SAFETY: a row has eight columns.
            let b = unsafe { V::load(b.value[k].as_ptr().add(i)) };
            total = total.add(V::splat(a).fmul(b).fmul(scale).f2i());
        }
        (self.rounded(total, top), bad)
    }

    /// `total` × 2^(`top` − 24), cut to an f32 or rounded to an f16. A sum of zero is +0.
    #[inline(always)]
    fn rounded(&self, total: V, top: V) -> V {
        let sign = total.sar(V::splat(31));
        let magnitude = total.xor(sign).sub(sign);
        let near = magnitude.i2f();
        // The nearest number is the truncated number or the next one.
        let cut = near.add(magnitude.lt(near.f2i()));
        let cut = if self.is_f32 {
            cut
        } else {
            // The last bit is set if anything was cut off. With such a bit, rounding twice gives the same as rounding once.
            cut.or(cut.f2i().eq(magnitude).not().and(V::splat(1)))
        };
        let scaled = cut.add(top.sub(V::splat(FRACTION as u32)).shl(V::splat(23)));
        let scaled = magnitude.eq(V::splat(0)).select(V::splat(0), scaled);
        let scaled = if self.is_f32 { scaled } else { widened(halved(scaled)) };
        scaled.or(sign.and(magnitude.eq(V::splat(0)).not()).and(V::splat(1 << 31)))
    }
}

/// The exponent of a finite float, at least `lowest`.
#[inline(always)]
fn exponent<V: Simd>(x: V, lowest: i32) -> V {
    let twice = x.shl(V::splat(1));
    let exponent = twice.shr(V::splat(24)).sub(V::splat(127)).maxs(V::splat(lowest as u32));
    twice.eq(V::splat(0)).select(V::splat(ZERO as u32), exponent)
}

/// Converts halves to floats. Infinities and NaN become numbers that are too large for a half.
#[inline(always)]
fn widened<V: Simd>(x: V) -> V {
    // The exponent field is smaller by 112 than that of f32. The multiplication corrects this, for denormals too.
    let magnitude = x.and(V::splat(0x7fff)).shl(V::splat(13)).fmul(V::splat((127 + 112) << 23));
    magnitude.or(x.and(V::splat(0x8000)).shl(V::splat(16)))
}

/// Converts positive floats to halves, rounded to nearest even.
#[inline(always)]
fn halved<V: Simd>(x: V) -> V {
    let half = V::splat(0.5f32.to_bits());
    let low = x.fadd(half).sub(half);
    let even = x.shr(V::splat(13)).and(V::splat(1));
    let normal = x.sub(V::splat(112 << 23)).add(V::splat(0xfff)).add(even).shr(V::splat(13));
    let infinite = V::splat(0x7c00);
    let found = x.lt(V::splat(0x3880_0000)).select(low, normal);
    x.lt(V::splat(0x4780_0000)).select(found, infinite)
}

/// The sign with which factors are multiplied.
#[inline(always)]
fn sign<V: Simd>(neg: bool) -> V {
    V::splat(if neg { 1 << 31 } else { 0 })
}

/// The accumulators as rows of eight columns.
#[inline(always)]
fn addends(how: Hmma, c: &[Fragment; 4]) -> [[u32; 8]; 16] {
    let mut out = [[0; 8]; 16];
    for (row, out) in out.iter_mut().enumerate() {
        let (r, lane) = (row / 8, row % 8 * 4);
        for t in 0..4 {
            (out[t], out[t + 4]) = if how.is_f32() {
                (c[2 * r][lane + t], c[2 * r + 1][lane + t])
            } else {
                (c[r][lane + t] & 0xffff, c[r][lane + t] >> 16)
            };
        }
    }
    out
}

#[inline(always)]
fn results(how: Hmma, d: &[[u32; 8]; 16]) -> [Fragment; 4] {
    let mut out = [[0; 32]; 4];
    for (row, d) in d.iter().enumerate() {
        let (r, lane) = (row / 8, row % 8 * 4);
        for t in 0..4 {
            if how.is_f32() {
                (out[2 * r][lane + t], out[2 * r + 1][lane + t]) = (d[t], d[t + 4]);
            } else {
                out[r][lane + t] = d[t] | d[t + 4] << 16;
            }
        }
    }
    out
}

/// Computes D = A·B + C. The result is `None` if a number on the way is infinite, NaN, very large or very small.
#[inline(always)]
pub(super) fn run<V: Simd>(
    how: Hmma,
    a: &[Fragment; 4],
    b: &[Fragment; 2],
    c: &[Fragment; 4],
) -> Option<[Fragment; 4]> {
    let mut unit = Unit::<V> { input: how.input(), is_f32: how.is_f32(), top: V::splat(ZERO as u32) };
    let mut d = addends(how, c);
    let width = 4 * how.per_word();
    for p in 0..how.registers()[1] {
        let left = [unit.left(&a[2 * p], sign(how.neg_a)), unit.left(&a[2 * p + 1], sign(how.neg_a))];
        let right = unit.right(&b[p], sign(how.neg_b));
        let mut bad = V::splat(unit.limits().1 as u32 - 1).lt(unit.top);
        for (row, sums) in d.iter_mut().enumerate() {
            let (left, from) = (&left[row / 8], row % 8 * width);
            let (a, ea) = (&left.value[from..from + width], &left.exponent[from..from + width]);
            let mut i = 0;
            while i < 8 {
                // SAFETY: a row has eight columns.
                unsafe {
                    let q = sums.as_mut_ptr().add(i);
                    let addend = if p == 0 && !unit.is_f32 { widened(V::load(q)) } else { V::load(q) };
                    let (sum, wrong) = unit.pass(a, ea, &right, i, addend);
                    bad = bad.or(wrong);
                    sum.store(q);
                }
                i += V::LANES;
            }
        }
        if bad.any() {
            return None;
        }
    }
    if !unit.is_f32 {
        let mut i = 0;
        let flat = d.as_flattened_mut();
        while i < flat.len() {
            // SAFETY: there are 128 sums.
            unsafe {
                let q = flat.as_mut_ptr().add(i);
                let x = V::load(q);
                let half = halved(x.and(V::splat(0x7fff_ffff))).or(x.shr(V::splat(16)).and(V::splat(0x8000)));
                half.store(q);
            }
            i += V::LANES;
        }
    }
    Some(results(how, &d))
}

#[cfg(test)]
#[path = "../tests/hmma.rs"]
mod tests;
