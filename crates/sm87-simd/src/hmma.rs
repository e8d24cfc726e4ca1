//! HMMA with AVX2: the sixteen rows of a column at a time. It works for numbers whose intermediate results fit into floats.
//! [`Hmma::run`] defines the results and computes all other cases.
//!
//! A product of two factors with eleven bits each is exact as a float. It is scaled so that the last bit that survives
//! alignment has the value one. The conversion to an integer then cuts the bits below it, and integers are summed exactly.
//!
//! A column is two vectors. They hold the upper and the lower eight rows in the order 0, 2, 4, 6, 1, 3, 5, 7, in which
//! transposing words inside the halves of vectors leaves them.
#![allow(unsafe_code)]

use super::avx2::transposed;
use super::converted::{Converted, Left, Right, Words, depth, floats, ints, load, splat};
use sm87_num::hmma::{Hmma, Input};
use std::arch::x86_64::*;
use std::hint::black_box;

/// The number of fraction bits that survive alignment.
const FRACTION: i32 = 24;
/// Exponents are those of floats with their bias. If all to which a sum is aligned lie between these two, scales and results
/// are normal floats, and a product that is too small for a float is cut to zero.
const LEAST_EXPONENT: i32 = 27;
const MOST_EXPONENT: i32 = 247;

/// The vectors of a pair of columns: two columns, two halves.
type Pair = [[__m256i; 2]; 2];

/// The least and the greatest magnitude of numbers, times two. Zeros are far above all others in the first.
#[derive(Clone, Copy)]
struct Range {
    least: __m256i,
    most: __m256i,
}

impl Range {
    #[inline(always)]
    unsafe fn note(&mut self, pair: &Pair) {
        for (c, h) in PAIR {
            // SAFETY: as for `splat`.
            unsafe {
                let twice = _mm256_add_epi32(pair[c][h], pair[c][h]);
                self.least = _mm256_min_epu32(self.least, _mm256_add_epi32(twice, splat(-1)));
                self.most = _mm256_max_epu32(self.most, twice);
            }
        }
    }

    /// Whether the exponents of all numbers but zeros lie between `LEAST_EXPONENT` and `most`.
    #[inline(always)]
    unsafe fn is_within(self, most: i32) -> bool {
        // SAFETY: as for `splat`.
        unsafe {
            let enough =
                _mm256_cmpeq_epi32(_mm256_max_epu32(self.least, splat((LEAST_EXPONENT << 24) - 1)), self.least);
            let few = _mm256_cmpeq_epi32(_mm256_min_epu32(self.most, splat((most << 24) | 0xff_ffff)), self.most);
            _mm256_movemask_epi8(_mm256_and_si256(enough, few)) == -1
        }
    }
}

/// One instruction while it is executed.
struct Unit<'a> {
    input: Input,
    is_f32: bool,
    left: &'a Left,
    right: &'a Right,
    /// Lanes in which products are too large or too small.
    bad: __m256i,
}

/// Which byte, or which half, of 16 bytes is repeated for each depth: bytes of two columns, or halves of one.
static BYTES: [Words; 8] = shuffles(1);
static HALVES: [Words; 8] = shuffles(2);

const fn shuffles(size: usize) -> [Words; 8] {
    let (mut masks, mut i) = ([Words::ZERO; 8], 0);
    while i < 8 * 32 {
        let (k, at) = (i / 32, i % 32);
        let byte = if size == 1 { k + at / 16 * 8 } else { 2 * k + at % 2 };
        masks[k].0[at / 4] |= (byte as u32) << (at % 4 * 8);
        i += 1;
    }
    masks
}

impl Unit<'_> {
    /// The greatest exponents of the products of a pass, in their place in a float, for the pair `q` of columns. If there is
    /// none, `LEAST_EXPONENT` takes its place.
    ///
    /// # Safety
    /// As for `splat`, as for the functions below.
    #[inline(always)]
    unsafe fn tops(&mut self, left: &Left, p: usize, q: usize) -> Pair {
        let (left, depth) = (&left.exponent[p], depth(self.input));
        // The compiler would make other shuffles of masks that it knows, and more of them.
        let masks = black_box(if self.input == Input::F16 { &BYTES } else { &HALVES });
        let right = self.right.exponent[p].as_ptr().cast::<u8>();
        let mut found = [Words::ZERO; 2];
        // SAFETY: the exponents of B are 128 bytes, of which a pair of columns has 16 or 32. As for `splat`.
        unsafe {
            if self.input == Input::F16 {
                let b = _mm256_broadcastsi128_si256(_mm_load_si128(right.add(16 * q).cast()));
                let mut top = _mm256_setzero_si256();
                for k in 0..8 {
                    let b = _mm256_shuffle_epi8(b, masks[k].get());
                    top = _mm256_max_epu8(top, _mm256_add_epi8(b, left[k].get()));
                }
                // The product of the least factors has this exponent.
                let some = _mm256_cmpeq_epi8(_mm256_max_epu8(top, _mm256_set1_epi8(99)), top);
                let top = _mm256_max_epu8(_mm256_and_si256(top, some), _mm256_set1_epi8(LEAST_EXPONENT as i8));
                found[0].set(top);
                let bytes = found[0].0.as_ptr().cast::<u8>();
                let mut tops = [[_mm256_setzero_si256(); 2]; 2];
                for (c, h) in PAIR {
                    let eight = _mm_loadl_epi64(bytes.add(16 * c + 8 * h).cast());
                    tops[c][h] = _mm256_slli_epi32::<23>(_mm256_cvtepu8_epi32(eight));
                }
                return tops;
            }
            for (column, found) in found.iter_mut().enumerate() {
                let b = _mm256_broadcastsi128_si256(_mm_loadu_si128(right.add((2 * q + column) * 2 * depth).cast()));
                let mut top = _mm256_set1_epi16(i16::MIN);
                for k in 0..depth {
                    let b = _mm256_shuffle_epi8(b, masks[k].get());
                    top = _mm256_max_epi16(top, _mm256_add_epi16(b, left[k].get()));
                }
                let least = _mm256_set1_epi16(LEAST_EXPONENT as i16);
                let some = _mm256_cmpgt_epi16(top, _mm256_set1_epi16(-4096));
                let small = _mm256_and_si256(_mm256_cmpgt_epi16(least, top), some);
                let large = _mm256_cmpgt_epi16(top, _mm256_set1_epi16(MOST_EXPONENT as i16));
                self.bad = _mm256_or_si256(self.bad, _mm256_or_si256(small, large));
                found.set(_mm256_max_epi16(top, least));
            }
            let mut tops = [[_mm256_setzero_si256(); 2]; 2];
            for (c, h) in PAIR {
                let eight = _mm_load_si128(found[c].0.as_ptr().cast::<__m128i>().add(h));
                tops[c][h] = _mm256_slli_epi32::<23>(_mm256_cvtepi16_epi32(eight));
            }
            tops
        }
    }

    /// The exponent of an addend, in its place.
    #[inline(always)]
    unsafe fn own(&self, x: __m256i) -> __m256i {
        // SAFETY: as for `splat`.
        unsafe {
            let field = _mm256_and_si256(x, splat(255 << 23));
            if self.is_f32 {
                return field;
            }
            // A half has at least the exponent of the least normal one.
            let zero = _mm256_cmpeq_epi32(field, _mm256_setzero_si256());
            _mm256_max_epi32(field, _mm256_andnot_si256(zero, splat(113 << 23)))
        }
    }

    /// Adds the products of a pass to a pair of columns.
    #[inline(always)]
    unsafe fn pass(&mut self, p: usize, q: usize, sums: &mut Pair) {
        let depth = depth(self.input);
        // SAFETY: the values of B are 64 numbers, of which a column has `depth`. As for `splat`.
        unsafe {
            // Without this, the compiler would keep copies of A on the stack.
            let left = black_box(self.left);
            let tops = self.tops(left, p, q);
            let (mut scale, mut total) = ([[_mm256_setzero_ps(); 2]; 2], [[_mm256_setzero_si256(); 2]; 2]);
            for (c, h) in PAIR {
                let top = _mm256_max_epi32(tops[c][h], self.own(sums[c][h]));
                // What makes one of the unit in the last place that survives alignment.
                scale[c][h] = floats(_mm256_sub_epi32(splat(((254 + FRACTION) as u32).wrapping_shl(23) as i32), top));
                total[c][h] = _mm256_cvttps_epi32(_mm256_mul_ps(floats(sums[c][h]), scale[c][h]));
            }
            let b = self.right.value[p].as_ptr().cast::<f32>().add(2 * q * depth);
            for (k, a) in left.value[p].iter().enumerate().take(depth) {
                let a = [floats(a[0].get()), floats(a[1].get())];
                let b = [_mm256_broadcast_ss(&*b.add(k)), _mm256_broadcast_ss(&*b.add(depth + k))];
                for (c, h) in PAIR {
                    let product = _mm256_mul_ps(_mm256_mul_ps(a[h], b[c]), scale[c][h]);
                    total[c][h] = _mm256_add_epi32(total[c][h], _mm256_cvttps_epi32(product));
                }
            }
            for (c, h) in PAIR {
                sums[c][h] = self.rounded(total[c][h], scale[c][h]);
            }
        }
    }

    /// `total` divided by `scale`, cut to an f32 or rounded to an f16. A sum of zero is +0.
    #[inline(always)]
    unsafe fn rounded(&self, total: __m256i, scale: __m256) -> __m256i {
        // SAFETY: as for `splat`.
        unsafe {
            // The magnitude has less than 31 bits. Where it has more than 24, this clears the first bit that a float cannot hold
            // and none that it can, so that the conversion rounds down.
            let magnitude = _mm256_abs_epi32(total);
            let held = _mm256_andnot_si256(_mm256_srli_epi32::<24>(magnitude), magnitude);
            let mut cut = ints(_mm256_cvtepi32_ps(_mm256_sign_epi32(held, total)));
            if !self.is_f32 {
                // The last bit is set if anything was cut off. With such a bit, rounding twice gives the same as rounding once.
                let exact = _mm256_cmpeq_epi32(_mm256_cvttps_epi32(floats(cut)), total);
                cut = _mm256_or_si256(cut, _mm256_andnot_si256(exact, splat(1)));
            }
            // One divided by the scale, which is a power of two.
            let unit = _mm256_sub_epi32(splat(254 << 23), ints(scale));
            let sum = _mm256_mul_ps(floats(cut), floats(unit));
            if self.is_f32 {
                return ints(sum);
            }
            ints(_mm256_cvtph_ps(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(sum)))
        }
    }
}

/// The vectors of a pair: column and half.
const PAIR: [(usize, usize); 4] = [(0, 0), (0, 1), (1, 0), (1, 1)];

/// The words of a register as vectors of one word of each row.
#[inline(always)]
unsafe fn columns(row: *const u32) -> [__m256i; 4] {
    // SAFETY: a register has 32 words. As for `splat`.
    unsafe { transposed([load(row), load(row.add(8)), load(row.add(16)), load(row.add(24))]) }
}

/// Halves as floats. Each lane of `x` holds 16 bits.
#[inline(always)]
unsafe fn widened(x: __m256i) -> __m256i {
    // SAFETY: as for `splat`.
    unsafe {
        let halves = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi32(x, x));
        ints(_mm256_cvtph_ps(_mm256_castsi256_si128(halves)))
    }
}

/// Floats as halves.
#[inline(always)]
unsafe fn narrowed(x: __m256i) -> __m256i {
    // SAFETY: as for `splat`.
    unsafe { _mm256_cvtepu16_epi32(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(floats(x))) }
}

/// The accumulators as pairs of columns.
#[inline(always)]
unsafe fn accumulators(c: *const u32, is_f32: bool) -> [Pair; 4] {
    // SAFETY: a register has 32 words. As for `splat`.
    unsafe {
        let mut pairs = [[[_mm256_setzero_si256(); 2]; 2]; 4];
        for half in 0..2 {
            if is_f32 {
                let (even, odd) = (columns(c.add(64 * half)), columns(c.add(64 * half + 32)));
                for (q, pair) in pairs.iter_mut().enumerate() {
                    (pair[0][half], pair[1][half]) = (even[q], odd[q]);
                }
            } else {
                let both = columns(c.add(32 * half));
                for (q, pair) in pairs.iter_mut().enumerate() {
                    pair[0][half] = widened(_mm256_and_si256(both[q], splat(0xffff)));
                    pair[1][half] = widened(_mm256_srli_epi32::<16>(both[q]));
                }
            }
        }
        pairs
    }
}

/// Puts vectors of one word of each row where they belong.
#[inline(always)]
unsafe fn store(d: *mut u32, columns: [__m256i; 4]) {
    // SAFETY: a register has 32 words. As for `splat`.
    unsafe {
        for (i, x) in transposed(columns).into_iter().enumerate() {
            _mm256_storeu_si256(d.add(8 * i).cast(), x);
        }
    }
}

/// Puts the sums where they belong.
///
/// # Safety
/// As for [`run`].
#[inline(always)]
unsafe fn put([a, b, c, d]: &[Pair; 4], is_f32: bool, to: *mut u32) {
    // SAFETY: `to` are as many registers as the form has. As for `splat`.
    unsafe {
        for h in 0..2 {
            let (even, odd) = ([a[0][h], b[0][h], c[0][h], d[0][h]], [a[1][h], b[1][h], c[1][h], d[1][h]]);
            if is_f32 {
                store(to.add(64 * h), even);
                store(to.add(64 * h + 32), odd);
            } else {
                let mut both = [_mm256_setzero_si256(); 4];
                for (q, both) in both.iter_mut().enumerate() {
                    *both = _mm256_or_si256(narrowed(even[q]), _mm256_slli_epi32::<16>(narrowed(odd[q])));
                }
                store(to.add(32 * h), both);
            }
        }
    }
}

/// Computes D = A·B + C and returns true. If a number on the way is infinite, NaN, very large or very small, nothing is written,
/// and the result is false.
///
/// # Safety
/// The host has AVX2 and what comes with it, and the caller is compiled for that. `a`, `b`, `c` and `d` are as many registers in a row as the form says.
/// They may be the same ones.
#[inline(always)]
pub unsafe fn run(
    how: Hmma,
    [a, b, c]: [*const u32; 3],
    operands: &mut Converted,
    places: [usize; 2],
    d: *mut u32,
) -> bool {
    let (input, is_f32, passes) = (how.input(), how.is_f32(), how.registers()[1]);
    let (left, right) = (&mut operands.left[places[0] % 2], &mut operands.right[places[1] % 4]);
    // SAFETY: the conditions are those of this function.
    unsafe {
        left.convert(input, a, how.neg_a, passes);
        right.convert(input, b, how.neg_b, passes);
        if !left.finite || !right.finite {
            return false;
        }
        let (left, right, bad) = (&left.factors, &right.factors, _mm256_setzero_si256());
        let mut unit = Unit { input, is_f32, left, right, bad };
        let mut pairs = accumulators(c, is_f32);
        for p in 0..passes {
            // The products of halves keep later sums in this range.
            if p == 0 || input != Input::F16 || !is_f32 {
                let mut range = Range { least: splat(-1), most: _mm256_setzero_si256() };
                for pair in &pairs {
                    range.note(pair);
                }
                if !range.is_within(if is_f32 { MOST_EXPONENT } else { 142 }) {
                    return false;
                }
            }
            for (q, pair) in pairs.iter_mut().enumerate() {
                unit.pass(p, q, pair);
            }
        }
        if _mm256_testz_si256(unit.bad, unit.bad) == 0 {
            return false;
        }
        put(&pairs, is_f32, d);
        true
    }
}

#[cfg(test)]
#[path = "tests/hmma.rs"]
mod tests;
