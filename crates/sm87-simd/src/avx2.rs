//! Eight lanes in one AVX2 register.
//!
//! Values of [`Avx2`] are made only inside handlers that [`super::host`] selects if the host has AVX2 and FMA. Every
//! method is inlined into such a handler, where the intrinsics are single instructions.
#![allow(unsafe_code)]

use crate::interpolate::{self, Pairs};
use crate::{Double, Simd, Taker};
use sm87_num::mufu::Table;
use std::arch::x86_64::*;

/// Eight 32-bit lanes.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Avx2(__m256i);

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
        dot2 = _mm256_madd_epi16;
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
        fle = _mm256_cmp_ps::<_CMP_LE_OQ>;
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
    #[inline(always)]
    fn f2i(self) -> Self {
        // SAFETY: AVX2 is present wherever an `Avx2` exists.
        Avx2(unsafe { _mm256_cvttps_epi32(ps(self)) })
    }
    #[inline(always)]
    fn nearest(self) -> Self {
        // SAFETY: AVX2 is present wherever an `Avx2` exists.
        ints(unsafe { _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(ps(self)) })
    }
    #[inline(always)]
    fn to_halves(self) -> Self {
        // SAFETY: AVX2 and F16C are present wherever an `Avx2` exists.
        let halves = unsafe { _mm256_cvtepu16_epi32(_mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(ps(self))) };
        self.funord(self).select(Self::splat(0x7fff), Avx2(halves))
    }
    #[inline(always)]
    fn interpolate<const N: usize>(table: &'static Table<N>, argument: Self, exponent: Self) -> Self {
        interpolate::interpolate(table, argument, exponent)
    }
    #[inline(always)]
    fn logarithm(fraction: Self, exponent: Self) -> Self {
        interpolate::logarithm(fraction, exponent)
    }
    #[inline(always)]
    fn tangent(fraction: Self, exponent: Self) -> Self {
        interpolate::tangent(fraction, exponent)
    }
    one! { int
        minu = _mm256_min_epu32;
        maxu = _mm256_max_epu32;
    }
    #[inline(always)]
    fn least(self) -> u32 {
        // SAFETY: AVX2 is present wherever an `Avx2` exists.
        unsafe {
            let x = _mm_min_epu32(_mm256_castsi256_si128(self.0), _mm256_extracti128_si256::<1>(self.0));
            let x = _mm_min_epu32(x, _mm_shuffle_epi32::<0b01_00_11_10>(x));
            _mm_cvtsi128_si32(_mm_min_epu32(x, _mm_shuffle_epi32::<0b10_11_00_01>(x))) as u32
        }
    }
    #[inline(always)]
    fn most(self) -> u32 {
        // SAFETY: AVX2 is present wherever an `Avx2` exists.
        unsafe {
            let x = _mm_max_epu32(_mm256_castsi256_si128(self.0), _mm256_extracti128_si256::<1>(self.0));
            let x = _mm_max_epu32(x, _mm_shuffle_epi32::<0b01_00_11_10>(x));
            _mm_cvtsi128_si32(_mm_max_epu32(x, _mm_shuffle_epi32::<0b10_11_00_01>(x))) as u32
        }
    }
    #[inline(always)]
    fn any(self) -> bool {
        // SAFETY: AVX2 is present wherever an `Avx2` exists.
        unsafe { _mm256_testz_si256(self.0, self.0) == 0 }
    }
    #[inline(always)]
    fn mul_wide(self, o: Self, signed: bool) -> [Self; 2] {
        // SAFETY: AVX2 is present wherever an `Avx2` exists.
        unsafe {
            let (x, y) = (_mm256_srli_epi64::<32>(self.0), _mm256_srli_epi64::<32>(o.0));
            let (even, odd) = if signed {
                (_mm256_mul_epi32(self.0, o.0), _mm256_mul_epi32(x, y))
            } else {
                (_mm256_mul_epu32(self.0, o.0), _mm256_mul_epu32(x, y))
            };
            let low = _mm256_blend_epi32::<0xaa>(even, _mm256_slli_epi64::<32>(odd));
            let high = _mm256_blend_epi32::<0xaa>(_mm256_srli_epi64::<32>(even), odd);
            [Avx2(low), Avx2(high)]
        }
    }
    #[inline(always)]
    fn double(op: Double, x: [Self; 2], y: [Self; 2], z: [Self; 2]) -> [Self; 2] {
        // SAFETY: AVX2 and FMA are present wherever an `Avx2` exists.
        unsafe {
            let ([x, v], [y, w], [z, q]) = (doubles(x), doubles(y), doubles(z));
            let (r, s) = match op {
                Double::Add => (_mm256_add_pd(x, z), _mm256_add_pd(v, q)),
                Double::Mul => (_mm256_mul_pd(x, y), _mm256_mul_pd(v, w)),
                Double::Fma => (_mm256_fmadd_pd(x, y, z), _mm256_fmadd_pd(v, w, q)),
            };
            let (r, s) = (_mm256_castpd_ps(r), _mm256_castpd_ps(s));
            [ints(_mm256_shuffle_ps::<0x88>(r, s)), ints(_mm256_shuffle_ps::<0xdd>(r, s))]
        }
    }
    #[inline(always)]
    fn double_relation(x: [Self; 2], y: [Self; 2]) -> [Self; 3] {
        // SAFETY: AVX2 is present wherever an `Avx2` exists.
        unsafe {
            let ([x, v], [y, w]) = (doubles(x), doubles(y));
            [
                narrow(_mm256_cmp_pd::<_CMP_LT_OQ>(x, y), _mm256_cmp_pd::<_CMP_LT_OQ>(v, w)),
                narrow(_mm256_cmp_pd::<_CMP_EQ_OQ>(x, y), _mm256_cmp_pd::<_CMP_EQ_OQ>(v, w)),
                narrow(_mm256_cmp_pd::<_CMP_UNORD_Q>(x, y), _mm256_cmp_pd::<_CMP_UNORD_Q>(v, w)),
            ]
        }
    }
    #[inline(always)]
    unsafe fn pick(self, row: *const u32) -> Self {
        // SAFETY: whoever calls has 32 words; AVX2 is present wherever an `Avx2` exists.
        unsafe {
            // Bits 3 and 4 of a number say which eight words have it. A blend takes the top bit.
            let of = [ps(self.shl(Self::splat(28))), ps(self.shl(Self::splat(27)))];
            let eight = [Self::load(row), Self::load(row.add(8)), Self::load(row.add(16)), Self::load(row.add(24))];
            let [a, b, c, d] = [
                _mm256_permutevar8x32_ps(ps(eight[0]), self.0),
                _mm256_permutevar8x32_ps(ps(eight[1]), self.0),
                _mm256_permutevar8x32_ps(ps(eight[2]), self.0),
                _mm256_permutevar8x32_ps(ps(eight[3]), self.0),
            ];
            ints(_mm256_blendv_ps(_mm256_blendv_ps(a, b, of[0]), _mm256_blendv_ps(c, d, of[0]), of[1]))
        }
    }
    #[inline(always)]
    unsafe fn load_crossed(row: *const u32, i: usize, crossed: u32) -> Self {
        // SAFETY: whoever calls has 32 words; AVX2 is present wherever an `Avx2` exists.
        unsafe {
            let eight = Self::load(row.add((i ^ crossed as usize) & 24));
            let lanes = Self(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)).xor(Self::splat(crossed));
            ints(_mm256_permutevar8x32_ps(ps(eight), lanes.0))
        }
    }
    #[inline(always)]
    unsafe fn load_some(p: *const u32, mask: Self) -> Self {
        // SAFETY: the instruction does not touch the words of other lanes; AVX2 is present wherever an `Avx2` exists.
        Avx2(unsafe { _mm256_maskload_epi32(p.cast(), mask.0) })
    }
    #[inline(always)]
    unsafe fn store_some(self, p: *mut u32, mask: Self) {
        // SAFETY: as for `load_some`.
        unsafe { _mm256_maskstore_epi32(p.cast(), mask.0, self.0) };
    }
    #[inline(always)]
    unsafe fn gather2(base: *const u8, at: *const u32) -> [Self; 2] {
        // SAFETY: the caller has found two aligned words at each of the eight addresses.
        unsafe { pairs(|i| base.add(at.add(i).read() as usize)) }
    }
    #[inline(always)]
    unsafe fn gather4(base: *const u8, at: *const u32) -> [Self; 4] {
        // SAFETY: the caller has found four aligned words at each of the eight addresses.
        unsafe { quadruples(|i| base.add(at.add(i).read() as usize)) }
    }
    #[inline(always)]
    unsafe fn row2(p: *const u8) -> [Self; 2] {
        // SAFETY: the caller has found two aligned words for each of the eight lanes.
        unsafe { pairs(|i| p.add(8 * i)) }
    }
    #[inline(always)]
    unsafe fn row4(p: *const u8) -> [Self; 4] {
        // SAFETY: the caller has found four aligned words for each of the eight lanes.
        unsafe { quadruples(|i| p.add(16 * i)) }
    }
    #[inline(always)]
    unsafe fn gather_words(base: *const u8, at: *const u32, n: usize, taker: &impl Taker) {
        // SAFETY: whoever calls has found four words for each group at each of the eight addresses; these loads need no alignment.
        unsafe {
            let lane = |i: usize| base.add(at.add(i).read() as usize).cast::<__m128i>();
            let lanes: [_; 8] = std::array::from_fn(lane);
            for i in 0..n {
                taker.take(i, by_words(|lane| _mm_loadu_si128(lanes[lane].add(i))));
            }
        }
    }
    #[inline(always)]
    unsafe fn spread2(p: *const u8) -> [Self; 2] {
        // SAFETY: whoever calls has found two aligned words. Volatile, because other threads and the CPU may write.
        unsafe {
            let x = _mm256_set1_epi64x(p.cast::<i64>().read_volatile());
            [Avx2(_mm256_shuffle_epi32::<0b10_10_00_00>(x)), Avx2(_mm256_shuffle_epi32::<0b11_11_01_01>(x))]
        }
    }
    #[inline(always)]
    unsafe fn spread4(p: *const u8) -> [Self; 4] {
        // SAFETY: whoever calls has found four aligned words. Volatile, because other threads and the CPU may write.
        unsafe {
            let x = _mm256_broadcastsi128_si256(p.cast::<__m128i>().read_volatile());
            [
                Avx2(_mm256_shuffle_epi32::<0b00_00_00_00>(x)),
                Avx2(_mm256_shuffle_epi32::<0b01_01_01_01>(x)),
                Avx2(_mm256_shuffle_epi32::<0b10_10_10_10>(x)),
                Avx2(_mm256_shuffle_epi32::<0b11_11_11_11>(x)),
            ]
        }
    }
    #[inline(always)]
    unsafe fn scatter2(words: [Self; 2], base: *mut u8, at: *const u32) {
        // SAFETY: the caller has found two aligned, writable words at each of the eight addresses.
        unsafe { put_pairs(words, |i| base.add(at.add(i).read() as usize)) }
    }
    #[inline(always)]
    unsafe fn scatter4(words: [Self; 4], base: *mut u8, at: *const u32) {
        // SAFETY: the caller has found four aligned, writable words at each of the eight addresses.
        unsafe { put_quadruples(words, |i| base.add(at.add(i).read() as usize)) }
    }
    #[inline(always)]
    unsafe fn put_row2(words: [Self; 2], p: *mut u8) {
        // SAFETY: the caller has found two aligned, writable words for each of the eight lanes.
        unsafe { put_pairs(words, |i| p.add(8 * i)) }
    }
    #[inline(always)]
    unsafe fn put_row4(words: [Self; 4], p: *mut u8) {
        // SAFETY: the caller has found four aligned, writable words for each of the eight lanes.
        unsafe { put_quadruples(words, |i| p.add(16 * i)) }
    }
}

impl Pairs for Avx2 {
    one! { int
        product = _mm256_mul_epi32;
        add_pairs = _mm256_add_epi64;
        equal_pairs = _mm256_cmpeq_epi64;
        high_halves = _mm256_mulhi_epu16;
    }
    #[inline(always)]
    fn sub_doubles(self, o: Self) -> Self {
        // SAFETY: AVX2 is present wherever an `Avx2` exists.
        Avx2(unsafe { _mm256_castpd_si256(_mm256_sub_pd(_mm256_castsi256_pd(self.0), _mm256_castsi256_pd(o.0))) })
    }
    #[inline(always)]
    fn shl_pairs<const N: i32>(self) -> Self {
        // SAFETY: AVX2 is present wherever an `Avx2` exists.
        Avx2(unsafe { _mm256_slli_epi64::<N>(self.0) })
    }
    #[inline(always)]
    fn shr_pairs<const N: i32>(self) -> Self {
        // SAFETY: AVX2 is present wherever an `Avx2` exists.
        Avx2(unsafe { _mm256_srli_epi64::<N>(self.0) })
    }
    #[inline(always)]
    fn mixed(even: Self, odd: Self) -> Self {
        // SAFETY: AVX2 is present wherever an `Avx2` exists.
        Avx2(unsafe { _mm256_blend_epi32::<0xaa>(even.0, odd.0) })
    }
    #[inline(always)]
    fn look_up<const N: usize>(table: &'static [[i32; 4]; N], row: Self) -> [Self; 3] {
        const { assert!(N.is_power_of_two()) };
        let mut at = [0; 8];
        // SAFETY: the array has eight words, and each is the place of a row of the table.
        unsafe {
            row.and(Self::splat(N as u32 - 1)).shl(Self::splat(4)).store(at.as_mut_ptr());
            let row = |lane: usize| _mm_loadu_si128(table.as_ptr().cast::<u8>().add(at[lane] as usize).cast());
            let [first, second, third, _] = by_words(row);
            [first, second, third]
        }
    }
}

/// Reads two words of each lane at once. The reads are volatile, because other threads and the CPU may write there.
///
/// # Safety
/// `at` is an address of two aligned words for each of the eight lanes, and the host has AVX2.
#[inline(always)]
unsafe fn pairs(at: impl Fn(usize) -> *const u8) -> [Avx2; 2] {
    // SAFETY: as this function asks of its caller.
    unsafe {
        let x: [i64; 8] = std::array::from_fn(|i| at(i).cast::<i64>().read_volatile());
        let r = _mm256_castsi256_ps(_mm256_setr_epi64x(x[0], x[1], x[4], x[5]));
        let s = _mm256_castsi256_ps(_mm256_setr_epi64x(x[2], x[3], x[6], x[7]));
        [ints(_mm256_shuffle_ps::<0x88>(r, s)), ints(_mm256_shuffle_ps::<0xdd>(r, s))]
    }
}

/// Reads four words of each lane at once.
///
/// # Safety
/// As for [`pairs`], with four words.
#[inline(always)]
unsafe fn quadruples(at: impl Fn(usize) -> *const u8) -> [Avx2; 4] {
    // SAFETY: as this function asks of its caller.
    unsafe { by_words(|lane| at(lane).cast::<__m128i>().read_volatile()) }
}

/// Four words of each lane as four vectors: the first words of all lanes, the second ones, and so on.
///
/// # Safety
/// As for `doubles`.
#[inline(always)]
unsafe fn by_words(of: impl Fn(usize) -> __m128i) -> [Avx2; 4] {
    // SAFETY: AVX2 is present, as this function asks of its caller.
    unsafe {
        let row = |lane: usize| _mm256_set_m128i(of(lane + 4), of(lane));
        transposed([row(0), row(1), row(2), row(3)]).map(Avx2)
    }
}

/// Writes two words of each lane at once, the lowest lane first.
///
/// # Safety
/// As for [`pairs`], and the addresses are writable.
#[inline(always)]
unsafe fn put_pairs(words: [Avx2; 2], at: impl Fn(usize) -> *mut u8) {
    // SAFETY: as this function asks of its caller.
    unsafe {
        let (r, s) = (_mm256_unpacklo_epi32(words[0].0, words[1].0), _mm256_unpackhi_epi32(words[0].0, words[1].0));
        let x = [
            _mm256_extract_epi64::<0>(r),
            _mm256_extract_epi64::<1>(r),
            _mm256_extract_epi64::<0>(s),
            _mm256_extract_epi64::<1>(s),
            _mm256_extract_epi64::<2>(r),
            _mm256_extract_epi64::<3>(r),
            _mm256_extract_epi64::<2>(s),
            _mm256_extract_epi64::<3>(s),
        ];
        x.iter().enumerate().for_each(|(i, &word)| at(i).cast::<i64>().write_volatile(word));
    }
}

/// Writes four words of each lane at once, the lowest lane first.
///
/// # Safety
/// As for [`put_pairs`], with four words.
#[inline(always)]
unsafe fn put_quadruples(words: [Avx2; 4], at: impl Fn(usize) -> *mut u8) {
    // SAFETY: as this function asks of its caller.
    unsafe {
        let rows = transposed([words[0].0, words[1].0, words[2].0, words[3].0]);
        for (i, &row) in rows.iter().enumerate() {
            at(i).cast::<__m128i>().write_volatile(_mm256_castsi256_si128(row));
        }
        for (i, &row) in rows.iter().enumerate() {
            at(i + 4).cast::<__m128i>().write_volatile(_mm256_extracti128_si256::<1>(row));
        }
    }
}

/// The doubles of lanes 0, 1, 4, 5 and those of lanes 2, 3, 6, 7.
///
/// # Safety
/// The host has AVX2, as it has wherever an `Avx2` exists.
#[inline(always)]
unsafe fn doubles(x: [Avx2; 2]) -> [__m256d; 2] {
    // SAFETY: AVX2 is present, as this function asks of its caller.
    unsafe {
        let (low, high) = (x[0].0, x[1].0);
        [_mm256_castsi256_pd(_mm256_unpacklo_epi32(low, high)), _mm256_castsi256_pd(_mm256_unpackhi_epi32(low, high))]
    }
}

/// Turns masks of doubles, in the order of [`doubles`], into masks of lanes.
///
/// # Safety
/// As for `doubles`.
#[inline(always)]
unsafe fn narrow(r: __m256d, s: __m256d) -> Avx2 {
    // SAFETY: AVX2 is present, as this function asks of its caller.
    ints(unsafe { _mm256_shuffle_ps::<0x88>(_mm256_castpd_ps(r), _mm256_castpd_ps(s)) })
}

/// Transposes the 4×4 words in the lower halves, and separately those in the upper halves.
///
/// # Safety
/// As for `doubles`.
#[inline(always)]
pub unsafe fn transposed(x: [__m256i; 4]) -> [__m256i; 4] {
    // SAFETY: AVX2 is present, as this function asks of its caller.
    unsafe {
        let (a, b) = (_mm256_unpacklo_epi32(x[0], x[1]), _mm256_unpackhi_epi32(x[0], x[1]));
        let (c, d) = (_mm256_unpacklo_epi32(x[2], x[3]), _mm256_unpackhi_epi32(x[2], x[3]));
        [
            _mm256_unpacklo_epi64(a, c),
            _mm256_unpackhi_epi64(a, c),
            _mm256_unpacklo_epi64(b, d),
            _mm256_unpackhi_epi64(b, d),
        ]
    }
}
