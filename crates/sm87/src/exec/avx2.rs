//! Eight lanes in one AVX2 register.
//!
//! Values of [`Avx2`] are made only inside handlers that [`super::isa`] selects if the host has AVX2 and FMA. Every
//! method is inlined into such a handler, where the intrinsics are single instructions.
#![allow(unsafe_code)]

use super::simd::Simd;
use std::arch::x86_64::*;

/// Eight 32-bit lanes.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Avx2(__m256i);

#[inline(always)]
fn ps(x: Avx2) -> __m256 {
    // SAFETY: a register cast; AVX is present wherever an `Avx2` exists.
    unsafe { _mm256_castsi256_ps(x.0) }
}

#[inline(always)]
fn ints(x: __m256) -> Avx2 {
    // SAFETY: a register cast; AVX is present wherever an `Avx2` exists.
    Avx2(unsafe { _mm256_castps_si256(x) })
}

/// Makes methods that are one intrinsic each, on integers (`int`) or on floats (`float`).
macro_rules! one {
    (int $($name:ident = $op:ident;)*) => {$(
        #[inline(always)]
        fn $name(self, o: Self) -> Self {
            // SAFETY: AVX2 is present wherever an `Avx2` exists.
            Avx2(unsafe { $op(self.0, o.0) })
        }
    )*};
    (float $($name:ident = $op:ident $(:: <$pred:ident>)?;)*) => {$(
        #[inline(always)]
        fn $name(self, o: Self) -> Self {
            // SAFETY: AVX2 is present wherever an `Avx2` exists.
            ints(unsafe { $op $(::<$pred>)? (ps(self), ps(o)) })
        }
    )*};
}

impl Simd for Avx2 {
    const LANES: usize = 8;

    #[inline(always)]
    unsafe fn load(p: *const u32) -> Self {
        // SAFETY: handlers load from rows of 32 words, at multiples of `LANES`: eight words are there. No alignment is needed.
        Avx2(unsafe { _mm256_loadu_si256(p.cast()) })
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut u32) {
        // SAFETY: handlers store to rows of 32 words, at multiples of `LANES`: eight words are there. No alignment is needed.
        unsafe { _mm256_storeu_si256(p.cast(), self.0) }
    }
    #[inline(always)]
    fn splat(x: u32) -> Self {
        // SAFETY: AVX2 is present wherever an `Avx2` is made.
        Avx2(unsafe { _mm256_set1_epi32(x as i32) })
    }
    #[inline(always)]
    fn from_bits(bits: u32) -> Self {
        // SAFETY: AVX2 is present wherever an `Avx2` is made.
        unsafe {
            let lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
            let hit = _mm256_and_si256(_mm256_set1_epi32(bits as i32), lane);
            Avx2(_mm256_cmpeq_epi32(hit, lane))
        }
    }
    #[inline(always)]
    fn to_bits(self) -> u32 {
        // SAFETY: AVX2 is present wherever an `Avx2` exists.
        unsafe { _mm256_movemask_ps(ps(self)) as u32 }
    }
    #[inline(always)]
    fn select(self, t: Self, f: Self) -> Self {
        // SAFETY: AVX2 is present wherever an `Avx2` exists.
        Avx2(unsafe { _mm256_blendv_epi8(f.0, t.0, self.0) })
    }
    #[inline(always)]
    fn map3(a: Self, b: Self, c: Self, f: impl Fn(u32, u32, u32) -> u32) -> Self {
        let (mut x, mut y, mut z) = ([0u32; 8], [0u32; 8], [0u32; 8]);
        // SAFETY: the arrays hold eight words each.
        unsafe {
            a.store(x.as_mut_ptr());
            b.store(y.as_mut_ptr());
            c.store(z.as_mut_ptr());
            for i in 0..8 {
                x[i] = f(x[i], y[i], z[i]);
            }
            Self::load(x.as_ptr())
        }
    }
    one! { int
        add = _mm256_add_epi32;
        sub = _mm256_sub_epi32;
        mul = _mm256_mullo_epi32;
        and = _mm256_and_si256;
        or = _mm256_or_si256;
        xor = _mm256_xor_si256;
        shl = _mm256_sllv_epi32;
        shr = _mm256_srlv_epi32;
        sar = _mm256_srav_epi32;
        eq = _mm256_cmpeq_epi32;
    }
    #[inline(always)]
    fn lt(self, o: Self) -> Self {
        // SAFETY: AVX2 is present wherever an `Avx2` exists.
        Avx2(unsafe { _mm256_cmpgt_epi32(o.0, self.0) })
    }
    one! { float
        fadd = _mm256_add_ps;
        fmul = _mm256_mul_ps;
        flt = _mm256_cmp_ps::<_CMP_LT_OQ>;
        feq = _mm256_cmp_ps::<_CMP_EQ_OQ>;
        funord = _mm256_cmp_ps::<_CMP_UNORD_Q>;
    }
    #[inline(always)]
    fn fma(self, b: Self, c: Self) -> Self {
        // SAFETY: FMA is present wherever an `Avx2` exists.
        ints(unsafe { _mm256_fmadd_ps(ps(self), ps(b), ps(c)) })
    }
    #[inline(always)]
    fn i2f(self) -> Self {
        // SAFETY: AVX2 is present wherever an `Avx2` exists.
        ints(unsafe { _mm256_cvtepi32_ps(self.0) })
    }
}
