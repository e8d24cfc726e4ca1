//! The vector type that arithmetic is written for: a few lanes that are computed together.
//!
//! Every lane-wise operation of the machine is written once, for any [`Simd`]. `u32` is one lane. It serves warps with
//! one active lane, the uniform datapath, and hosts without AVX2, where the compiler vectorises the loop as well as it
//! can. [`avx2::Avx2`] is eight lanes.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
pub mod avx2;
#[cfg(target_arch = "x86_64")]
pub mod converted;
pub mod exact;
#[cfg(target_arch = "x86_64")]
pub mod hmma;
pub mod interpolate;
mod one;

use sm87_num::mufu::Table;

/// An operation on doubles.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Double {
    /// `x + z`.
    Add,
    /// `x * y`.
    Mul,
    /// `x * y + z`.
    Fma,
}

/// What [`Simd::gather_words`] hands groups of words to. A closure might become a function of its own, which the host's vectors would be
/// handed to in memory.
pub trait Taker {
    /// # Safety
    /// As the taker says.
    unsafe fn take<V: Simd>(&self, n: usize, words: [V; 4]);
}

/// A number of lanes of 32 bits each. In a *mask* the bits of a lane are all set or all clear.
pub trait Simd: Copy {
    /// The number of lanes of a value.
    const LANES: usize;
    /// The lanes of a value as bits.
    const ALL: u32 = u32::MAX >> (32 - Self::LANES);

    /// # Safety
    /// `p` is readable for `LANES` words.
    unsafe fn load(p: *const u32) -> Self;
    /// # Safety
    /// `p` is writable for `LANES` words.
    unsafe fn store(self, p: *mut u32);
    /// Makes a value whose lanes are all `x`.
    fn splat(x: u32) -> Self;
    /// Lane `i` of the result is all ones where bit `i` is set.
    fn from_bits(bits: u32) -> Self;
    /// Bit `i` of the result is the top bit of lane `i`.
    fn to_bits(self) -> u32;
    /// Lane-wise `self ? t : f`, `self` a mask.
    fn select(self, t: Self, f: Self) -> Self;
    /// Computes a function of the lanes, one lane at a time.
    fn map3(a: Self, b: Self, c: Self, f: impl Fn(u32, u32, u32) -> u32) -> Self;

    /// The sum, without the bits that do not fit.
    fn add(self, o: Self) -> Self;
    /// The difference, in the same way.
    fn sub(self, o: Self) -> Self;
    /// The low half of the product.
    fn mul(self, o: Self) -> Self;
    /// The bits that both have.
    fn and(self, o: Self) -> Self;
    /// The bits that one of the two has, or both.
    fn or(self, o: Self) -> Self;
    /// The bits that one of the two has.
    fn xor(self, o: Self) -> Self;
    /// Shifts each lane to the left by its own count. Counts of 32 and more give zero.
    fn shl(self, n: Self) -> Self;
    /// The same to the right.
    fn shr(self, n: Self) -> Self;
    /// The same for signed numbers. Counts of 32 and more give the sign.
    fn sar(self, n: Self) -> Self;
    /// Whether the lanes are equal to those of `o`.
    fn eq(self, o: Self) -> Self;
    /// Whether the lanes are less than those of `o`, as signed numbers.
    fn lt(self, o: Self) -> Self;

    /// Adds IEEE binary32 numbers. The result is rounded to nearest even, denormals are kept, and the payload of a NaN
    /// is not specified.
    fn fadd(self, o: Self) -> Self;
    /// The product of such numbers.
    fn fmul(self, o: Self) -> Self;
    /// `self * b + c`, rounded once.
    fn fma(self, b: Self, c: Self) -> Self;
    /// Whether the lanes are less than those of `o`, as floats.
    fn flt(self, o: Self) -> Self;
    /// Whether the lanes are equal to those of `o`, as floats.
    fn feq(self, o: Self) -> Self;
    /// Whether the lanes are less than those of `o`, or equal.
    fn fle(self, o: Self) -> Self;
    /// Whether one of the two is a NaN.
    fn funord(self, o: Self) -> Self;
    /// Converts signed integers to floats, rounded to nearest even.
    fn i2f(self) -> Self;
    /// Converts floats to signed integers, toward zero. The result for a number that does not fit is undefined.
    fn f2i(self) -> Self;
    /// Rounds floats to integral numbers, to nearest even.
    fn nearest(self) -> Self;

    /// Converts floats to 16-bit floats, rounded to nearest even. A NaN becomes `0x7fff`.
    fn to_halves(self) -> Self;

    /// What [`Table::cut`] computes.
    fn interpolate<const N: usize>(table: &'static Table<N>, argument: Self, exponent: Self) -> Self;
    /// The binary logarithm of numbers above zero with these fractions and exponents, as the multi-function unit computes it. That of one
    /// is not specified.
    fn logarithm(fraction: Self, exponent: Self) -> Self;
    /// The hyperbolic tangent of numbers above zero, from 2^-8 on and below 8.
    fn tangent(fraction: Self, exponent: Self) -> Self;

    /// The lesser of two unsigned numbers.
    fn minu(self, o: Self) -> Self;
    /// The greater of two unsigned numbers.
    fn maxu(self, o: Self) -> Self;
    /// The least lane, as an unsigned number.
    fn least(self) -> u32;
    /// The greatest lane.
    fn most(self) -> u32;
    /// Whether any bit of any lane is set.
    fn any(self) -> bool;
    /// The exact product as a low and a high word.
    fn mul_wide(self, o: Self, signed: bool) -> [Self; 2];
    /// Computes on doubles, each of which is a pair of words: `x * y + z`, `x + z` or `x * y`, rounded once to nearest even. The
    /// payload of a NaN is not specified.
    fn double(op: Double, x: [Self; 2], y: [Self; 2], z: [Self; 2]) -> [Self; 2];
    /// Three masks of lanes: the first double is less, the two are equal, one of them is a NaN.
    fn double_relation(x: [Self; 2], y: [Self; 2]) -> [Self; 3];

    /// The words of a row that the lanes name. Of each lane, the lowest five bits count.
    ///
    /// # Safety
    /// `row` is readable for 32 words.
    unsafe fn pick(self, row: *const u32) -> Self;
    /// The words of a row at `i` to `i + LANES - 1`, of which each is at its place with the bits `crossed` inverted.
    ///
    /// # Safety
    /// `row` is readable for 32 words. `i` is below 32 and a multiple of `LANES`, and `crossed` is below 32.
    unsafe fn load_crossed(row: *const u32, i: usize, crossed: u32) -> Self;
    /// Reads the lanes of a mask. The other lanes become zero, and no memory is read for them.
    ///
    /// # Safety
    /// For each lane of the mask, the word at `p` plus the lane's number is readable.
    unsafe fn load_some(p: *const u32, mask: Self) -> Self;
    /// Writes the lanes of a mask. No memory is written for the other lanes.
    ///
    /// # Safety
    /// For each lane of the mask, the word at `p` plus the lane's number is writable.
    unsafe fn store_some(self, p: *mut u32, mask: Self);
    /// Reads two words at the address of each lane, both at once. [`Simd::gather4`] reads four words at once.
    ///
    /// # Safety
    /// `at` is readable for `LANES` words. `base` plus each of them is an address that is readable and aligned to two words.
    unsafe fn gather2(base: *const u8, at: *const u32) -> [Self; 2];
    /// # Safety
    /// As for `gather2`, with addresses of four words.
    unsafe fn gather4(base: *const u8, at: *const u32) -> [Self; 4];
    /// Reads words in a row that need not be aligned to more than a word: `n` groups of four, each of which is handed to `taker` with its
    /// number.
    ///
    /// # Safety
    /// As for `gather2`, but only words are aligned, and there are `4 * n` of them. `taker` takes groups below `n`.
    unsafe fn gather_words(base: *const u8, at: *const u32, n: usize, taker: &impl Taker);
    /// Reads a pair or a quadruple of words for all lanes.
    ///
    /// # Safety
    /// `p` is readable for as many words and aligned to them.
    unsafe fn spread2(p: *const u8) -> [Self; 2];
    /// # Safety
    /// As for `spread2`.
    unsafe fn spread4(p: *const u8) -> [Self; 4];
    /// Writes two words to the address of each lane at once, the lowest lane first. [`Simd::scatter4`] writes four words at once.
    ///
    /// # Safety
    /// As for `gather2`, and the addresses are writable.
    unsafe fn scatter2(words: [Self; 2], base: *mut u8, at: *const u32);
    /// # Safety
    /// As for `scatter2`, with addresses of four words.
    unsafe fn scatter4(words: [Self; 4], base: *mut u8, at: *const u32);

    /// Reads two words for each lane, of lanes that follow each other in memory. [`Simd::row4`] reads four words for each lane.
    ///
    /// # Safety
    /// As for `gather2`: `p` is the address of the first lane.
    unsafe fn row2(p: *const u8) -> [Self; 2];
    /// # Safety
    /// As for `gather4`.
    unsafe fn row4(p: *const u8) -> [Self; 4];
    /// Writes two words for each lane, to lanes that follow each other in memory. [`Simd::put_row4`] writes four words for each lane.
    ///
    /// # Safety
    /// As for `scatter2`: `p` is the address of the first lane.
    unsafe fn put_row2(words: [Self; 2], p: *mut u8);
    /// # Safety
    /// As for `scatter4`.
    unsafe fn put_row4(words: [Self; 4], p: *mut u8);

    /// The sum of the products of the two signed halves of each lane.
    #[inline(always)]
    fn dot2(self, o: Self) -> Self {
        let half = Self::splat(16);
        let low = self.shl(half).sar(half).mul(o.shl(half).sar(half));
        low.add(self.sar(half).mul(o.sar(half)))
    }

    /// `!self`.
    #[inline(always)]
    fn not(self) -> Self {
        self.xor(Self::splat(u32::MAX))
    }

    /// Whether the lanes are less than those of `o`, as unsigned numbers.
    #[inline(always)]
    fn ltu(self, o: Self) -> Self {
        let top = Self::splat(1 << 31);
        self.xor(top).lt(o.xor(top))
    }

    /// The sum of 64-bit numbers, and a mask of the lanes in which the unsigned sum does not fit.
    #[inline(always)]
    fn add_wide(x: [Self; 2], y: [Self; 2]) -> ([Self; 2], Self) {
        let low = x[0].add(y[0]);
        let carry = low.ltu(x[0]);
        let part = x[1].add(y[1]);
        let high = part.sub(carry);
        // The second sum carries only where the first one ended in ones.
        ([low, high], part.ltu(x[1]).or(carry.and(high.eq(Self::splat(0)))))
    }

    /// Replaces every NaN by the NaN that the machine makes.
    #[inline(always)]
    fn canonical(self) -> Self {
        self.funord(self).select(Self::splat(sm87_num::f32::NAN), self)
    }

    /// Replaces denormals by zeros of the same sign.
    #[inline(always)]
    fn flush(self) -> Self {
        let exp = self.and(Self::splat(0x7f80_0000));
        exp.eq(Self::splat(0)).select(self.and(Self::splat(1 << 31)), self)
    }

    /// Limits the lanes to [0, 1]. A NaN becomes +0.
    #[inline(always)]
    fn saturate(self) -> Self {
        let one = Self::splat(0x3f80_0000);
        let low = Self::splat(0).flt(self).select(self, Self::splat(0));
        one.flt(low).select(one, low)
    }
}

/// The lanes of a value that are in a mask of 32 lanes. The value has the lanes from `i` on.
#[inline(always)]
pub fn part<V: Simd>(mask: u32, i: usize) -> u32 {
    mask >> i & V::ALL
}

/// Whether a mask has either all lanes of a value or none of them, for each value. Then a loop can skip values, and need not
/// keep single lanes. Other masks depend on data, and a loop that skips values for them misleads the host's branch prediction.
#[inline(always)]
pub fn in_values<V: Simd>(mask: u32) -> bool {
    let first = u32::MAX / V::ALL;
    (mask & first).wrapping_mul(V::ALL) == mask
}

/// A value of which the lanes in `on` count, or all of them if it is `whole`. The others are zero. Their registers may hold anything. A small whole number
/// is a denormal as a float, and a host takes eighty times as long for a product with a denormal.
///
/// # Safety
/// `p` is readable for `LANES` words.
#[inline(always)]
pub unsafe fn load_part<V: Simd>(p: *const u32, on: u32, whole: bool) -> V {
    // SAFETY: as this function asks of its caller.
    let x = unsafe { V::load(p) };
    if whole { x } else { x.and(V::from_bits(on)) }
}

/// Writes the lanes from `i` on that are in a mask of 32 lanes to a row.
///
/// # Safety
/// `row` has 32 words, and `i` is below 32 and a multiple of the number of lanes.
#[inline(always)]
pub unsafe fn put<V: Simd>(row: *mut u32, i: usize, mask: u32, x: V) {
    // SAFETY: as this function asks of its caller.
    unsafe {
        let (p, active) = (row.add(i), part::<V>(mask, i));
        let x = if active == V::ALL { x } else { V::from_bits(active).select(x, V::load(p)) };
        x.store(p);
    }
}
