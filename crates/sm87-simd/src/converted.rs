//! The operands of tensor cores, converted for [`super::hmma`].
#![allow(unsafe_code)]

use super::avx2::transposed;
use sm87_num::hmma::Input;
use sm87_num::mma::Fragment;
use std::arch::x86_64::*;

/// Eight words in memory.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(crate) struct Words(pub [u32; 8]);

impl Words {
    pub(crate) const ZERO: Words = Words([0; 8]);

    #[inline(always)]
    pub(crate) fn get(&self) -> __m256i {
        // SAFETY: these are eight aligned words; AVX2 is present wherever this module's functions run.
        unsafe { _mm256_load_si256(self.0.as_ptr().cast()) }
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, x: __m256i) {
        // SAFETY: as for `get`.
        unsafe { _mm256_store_si256(self.0.as_mut_ptr().cast(), x) }
    }
}

/// For each pass and each depth: the values of both vectors of A, and the exponents in the order of rows. An exponent has a
/// byte if the factors are f16, and all of them are there twice. Otherwise it has 16 bits.
pub(crate) struct Left {
    pub value: [[[Words; 2]; 8]; 2],
    pub exponent: [[Words; 8]; 2],
}

/// For each pass: the values of B and the exponents, in the order of the register: the depths of a column follow each other.
pub(crate) struct Right {
    pub value: [[Words; 8]; 2],
    pub exponent: [[Words; 4]; 2],
}

/// Operands that were converted, and what they were converted from. Programs use a register of A or B for several products.
pub(crate) struct Kept<T, const REGISTERS: usize> {
    /// The format, the sign and the number of passes. None if nothing is kept.
    how: Option<(Input, bool, usize)>,
    registers: [Fragment; REGISTERS],
    /// Whether all of the numbers are finite.
    pub finite: bool,
    pub factors: T,
}

impl<T, const REGISTERS: usize> Kept<T, REGISTERS> {
    const fn new(factors: T) -> Self {
        Kept { how: None, registers: [[0; 32]; REGISTERS], finite: false, factors }
    }

    /// Whether the first `used` registers are those that are kept. Otherwise they will be.
    ///
    /// # Safety
    /// There are `used` registers in a row, and the host has AVX2.
    #[inline(always)]
    unsafe fn has(&mut self, how: (Input, bool, usize), registers: *const u32, used: usize) -> bool {
        let kept = self.registers.as_mut_ptr().cast::<u32>();
        // SAFETY: a register has 32 words; AVX2 is present, as for `load`.
        unsafe {
            let mut apart = _mm256_setzero_si256();
            for i in 0..4 * used {
                let (kept, row) = (load(kept.add(8 * i)), load(registers.add(8 * i)));
                apart = _mm256_or_si256(apart, _mm256_xor_si256(kept, row));
            }
            if _mm256_testz_si256(apart, apart) != 0 && self.how == Some(how) {
                return true;
            }
            self.how = Some(how);
            kept.copy_from_nonoverlapping(registers, 32 * used);
        }
        false
    }
}

/// The operands that were converted last: those of two A and of four B.
pub struct Converted {
    pub(crate) left: [Kept<Left, 4>; 2],
    pub(crate) right: [Kept<Right, 2>; 4],
}

impl Converted {
    /// Nothing was converted.
    pub const fn none() -> Converted {
        Converted {
            left: [const { Kept::new(Left { value: [[[Words::ZERO; 2]; 8]; 2], exponent: [[Words::ZERO; 8]; 2] }) }; 2],
            right: [const { Kept::new(Right { value: [[Words::ZERO; 8]; 2], exponent: [[Words::ZERO; 4]; 2] }) }; 4],
        }
    }
}

/// # Safety
/// Eight words at `p` are readable, and the host has AVX2.
#[inline(always)]
pub(crate) unsafe fn load(p: *const u32) -> __m256i {
    // SAFETY: the conditions are those of this function.
    unsafe { _mm256_loadu_si256(p.cast()) }
}

/// How the exponents of one operand are stored.
#[derive(Clone, Copy)]
struct Exponents {
    /// What is subtracted from a biased exponent. The sum of two stored exponents is the biased exponent of their product.
    bias: i32,
    /// What stands for a zero. Any sum with it is less than every sum without it.
    zero: i32,
    /// The least biased exponent.
    lowest: i32,
}

impl Exponents {
    const fn of(input: Input, left: bool) -> Self {
        match (input, left) {
            (Input::F16, true) => Exponents { bias: 64, zero: 0, lowest: 113 },
            (Input::F16, false) => Exponents { bias: 63, zero: 0, lowest: 113 },
            (_, true) => Exponents { bias: 0, zero: -8192, lowest: 1 },
            (_, false) => Exponents { bias: 127, zero: -8192, lowest: 1 },
        }
    }

    /// The stored exponents of floats. `top` becomes the greatest biased exponent.
    ///
    /// # Safety
    /// The host has AVX2, as for the functions below.
    #[inline(always)]
    unsafe fn take(self, x: __m256i, top: &mut __m256i) -> __m256i {
        // SAFETY: AVX2 is present, as this function asks of its caller.
        unsafe {
            let twice = _mm256_slli_epi32::<1>(x);
            let field = _mm256_srli_epi32::<24>(twice);
            *top = _mm256_max_epi32(*top, field);
            let stored = _mm256_sub_epi32(_mm256_max_epi32(field, splat(self.lowest)), splat(self.bias));
            _mm256_blendv_epi8(stored, splat(self.zero), _mm256_cmpeq_epi32(twice, _mm256_setzero_si256()))
        }
    }

    /// The stored exponents of two vectors of numbers, with 16 bits each: four of the first vector, four of the second, and so on.
    #[inline(always)]
    unsafe fn pair(self, value: &[Words; 8], i: usize, top: &mut __m256i) -> __m256i {
        // SAFETY: as for `take`.
        unsafe { _mm256_packs_epi32(self.take(value[2 * i].get(), top), self.take(value[2 * i + 1].get(), top)) }
    }
}

#[inline(always)]
pub(crate) unsafe fn splat(x: i32) -> __m256i {
    // SAFETY: AVX2 is present, as this function asks of its caller.
    unsafe { _mm256_set1_epi32(x) }
}

#[inline(always)]
pub(crate) unsafe fn floats(x: __m256i) -> __m256 {
    // SAFETY: as for `splat`.
    unsafe { _mm256_castsi256_ps(x) }
}

#[inline(always)]
pub(crate) unsafe fn ints(x: __m256) -> __m256i {
    // SAFETY: as for `splat`.
    unsafe { _mm256_castps_si256(x) }
}

/// The numbers from `i` on of a register of A or B, as floats.
///
/// # Safety
/// As for `splat`, and there are eight numbers from `i` on.
#[inline(always)]
unsafe fn numbers(input: Input, row: *const u32, i: usize, neg: bool) -> __m256i {
    // SAFETY: these are the conditions of this function.
    unsafe {
        let halves = row.cast::<u16>().wrapping_add(i).cast::<__m128i>();
        let x = match input {
            Input::F16 => ints(_mm256_cvtph_ps(_mm_loadu_si128(halves))),
            Input::Bf16 => _mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(_mm_loadu_si128(halves))),
            Input::Tf32 => _mm256_and_si256(load(row.wrapping_add(i)), splat(0xffff_e000_u32 as i32)),
        };
        _mm256_xor_si256(x, splat(if neg { i32::MIN } else { 0 }))
    }
}

/// Whether a greatest biased exponent is that of finite numbers.
#[inline(always)]
unsafe fn finite(top: __m256i) -> bool {
    // SAFETY: as for `splat`.
    unsafe { _mm256_movemask_epi8(_mm256_cmpeq_epi32(top, splat(255))) == 0 }
}

impl Kept<Left, 4> {
    /// Converts A, unless it is kept.
    ///
    /// # Safety
    /// A has two registers in a row for each pass, and the host has AVX2.
    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "two indices of one array")]
    pub(crate) unsafe fn convert(&mut self, input: Input, a: *const u32, neg: bool, passes: usize) {
        // SAFETY: there are as many registers, as this function asks of its caller.
        if unsafe { self.has((input, neg, passes), a, 2 * passes) } {
            return;
        }
        let (depth, how) = (depth(input), Exponents::of(input, true));
        // SAFETY: a register has 32 words or 64 halves. AVX2 is present, as this function asks of its caller.
        unsafe {
            let mut top = _mm256_setzero_si256();
            for p in 0..passes {
                let (value, exponent) = (&mut self.factors.value[p], &mut self.factors.exponent[p]);
                for half in 0..2 {
                    let mut rows = [_mm256_setzero_si256(); 8];
                    for (n, row) in rows.iter_mut().enumerate().take(depth) {
                        *row = numbers(input, a.add(32 * (2 * p + half)), 8 * n, neg);
                    }
                    if input == Input::Tf32 {
                        let columns = transposed([rows[0], rows[1], rows[2], rows[3]]);
                        for k in 0..4 {
                            value[k][half].set(columns[k]);
                        }
                        continue;
                    }
                    let even = transposed([rows[0], rows[2], rows[4], rows[6]]);
                    let odd = transposed([rows[1], rows[3], rows[5], rows[7]]);
                    for k in 0..4 {
                        value[k][half].set(_mm256_permute2x128_si256::<0x20>(even[k], odd[k]));
                        value[k + 4][half].set(_mm256_permute2x128_si256::<0x31>(even[k], odd[k]));
                    }
                }
                for k in 0..depth {
                    let [upper, lower] = [how.take(value[k][0].get(), &mut top), how.take(value[k][1].get(), &mut top)];
                    let both = _mm256_packs_epi32(upper, lower);
                    exponent[k].set(if input == Input::F16 {
                        let order = _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5);
                        _mm256_permutevar8x32_epi32(_mm256_packus_epi16(both, both), order)
                    } else {
                        _mm256_permute4x64_epi64::<0b11_01_10_00>(both)
                    });
                }
            }
            self.finite = finite(top);
        }
    }
}

impl Kept<Right, 2> {
    /// Converts B, unless it is kept.
    ///
    /// # Safety
    /// B has a register for each pass, in a row, and the host has AVX2.
    #[inline(always)]
    pub(crate) unsafe fn convert(&mut self, input: Input, b: *const u32, neg: bool, passes: usize) {
        // SAFETY: as for A.
        if unsafe { self.has((input, neg, passes), b, passes) } {
            return;
        }
        let (depth, how) = (depth(input), Exponents::of(input, false));
        // SAFETY: as for A.
        unsafe {
            let mut top = _mm256_setzero_si256();
            for p in 0..passes {
                let (value, exponent) = (&mut self.factors.value[p], &mut self.factors.exponent[p]);
                for (i, value) in value.iter_mut().enumerate().take(depth) {
                    value.set(numbers(input, b.add(32 * p), 8 * i, neg));
                }
                for i in 0..depth / 2 {
                    if input != Input::F16 {
                        exponent[i].set(_mm256_permute4x64_epi64::<0b11_01_10_00>(how.pair(value, i, &mut top)));
                    } else if i % 2 == 0 {
                        let bytes = _mm256_packus_epi16(how.pair(value, i, &mut top), how.pair(value, i + 1, &mut top));
                        let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
                        exponent[i / 2].set(_mm256_permutevar8x32_epi32(bytes, order));
                    }
                }
            }
            self.finite = finite(top);
        }
    }
}

/// The depth of a pass.
pub(crate) const fn depth(input: Input) -> usize {
    if matches!(input, Input::Tf32) { 4 } else { 8 }
}
