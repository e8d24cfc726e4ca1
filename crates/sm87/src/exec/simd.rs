//! The vector type that arithmetic is written for: a few lanes that are computed together.
//!
//! Every lane-wise operation of the machine is written once, for any [`Simd`]. `u32` is one lane. It serves warps with
//! one active lane, the uniform datapath, and hosts without AVX2, where the compiler vectorises the loop as well as it
//! can. [`super::avx2::Avx2`] is eight lanes.
#![allow(unsafe_code)]

/// A number of lanes of 32 bits each. In a *mask* the bits of a lane are all set or all clear.
pub(crate) trait Simd: Copy {
    /// The number of lanes of a value.
    const LANES: usize;

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

    fn add(self, o: Self) -> Self;
    fn sub(self, o: Self) -> Self;
    /// The low half of the product.
    fn mul(self, o: Self) -> Self;
    fn and(self, o: Self) -> Self;
    fn or(self, o: Self) -> Self;
    fn xor(self, o: Self) -> Self;
    /// Shifts each lane by its own count. Counts of 32 and more give zero, or the sign for `sar`.
    fn shl(self, n: Self) -> Self;
    fn shr(self, n: Self) -> Self;
    fn sar(self, n: Self) -> Self;
    fn eq(self, o: Self) -> Self;
    /// Whether the lanes are less than those of `o`, as signed numbers.
    fn lt(self, o: Self) -> Self;

    /// Adds IEEE binary32 numbers. The result is rounded to nearest even, denormals are kept, and the payload of a NaN
    /// is not specified.
    fn fadd(self, o: Self) -> Self;
    fn fmul(self, o: Self) -> Self;
    /// `self * b + c`, rounded once.
    fn fma(self, b: Self, c: Self) -> Self;
    fn flt(self, o: Self) -> Self;
    fn feq(self, o: Self) -> Self;
    /// Whether one of the two is a NaN.
    fn funord(self, o: Self) -> Self;
    /// Converts signed integers to floats, rounded to nearest even.
    fn i2f(self) -> Self;

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

    /// Replaces every NaN by the NaN that the machine makes.
    #[inline(always)]
    fn canonical(self) -> Self {
        self.funord(self).select(Self::splat(super::NAN), self)
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

#[inline(always)]
fn mask(b: bool) -> u32 {
    (b as u32).wrapping_neg()
}

#[inline(always)]
fn f(x: u32) -> f32 {
    f32::from_bits(x)
}

impl Simd for u32 {
    const LANES: usize = 1;

    #[inline(always)]
    unsafe fn load(p: *const u32) -> Self {
        // SAFETY: handlers load from rows of 32 words, at multiples of `LANES`.
        unsafe { p.read() }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut u32) {
        // SAFETY: handlers store to rows of 32 words, at multiples of `LANES`.
        unsafe { p.write(self) }
    }
    #[inline(always)]
    fn splat(x: u32) -> Self {
        x
    }
    #[inline(always)]
    fn from_bits(bits: u32) -> Self {
        (bits & 1).wrapping_neg()
    }
    #[inline(always)]
    fn to_bits(self) -> u32 {
        self >> 31
    }
    #[inline(always)]
    fn select(self, t: Self, f: Self) -> Self {
        (self & t) | (!self & f)
    }
    #[inline(always)]
    fn map3(a: Self, b: Self, c: Self, f: impl Fn(u32, u32, u32) -> u32) -> Self {
        f(a, b, c)
    }
    #[inline(always)]
    fn add(self, o: Self) -> Self {
        self.wrapping_add(o)
    }
    #[inline(always)]
    fn sub(self, o: Self) -> Self {
        self.wrapping_sub(o)
    }
    #[inline(always)]
    fn mul(self, o: Self) -> Self {
        self.wrapping_mul(o)
    }
    #[inline(always)]
    fn and(self, o: Self) -> Self {
        self & o
    }
    #[inline(always)]
    fn or(self, o: Self) -> Self {
        self | o
    }
    #[inline(always)]
    fn xor(self, o: Self) -> Self {
        self ^ o
    }
    #[inline(always)]
    fn shl(self, n: Self) -> Self {
        if n < 32 { self << n } else { 0 }
    }
    #[inline(always)]
    fn shr(self, n: Self) -> Self {
        if n < 32 { self >> n } else { 0 }
    }
    #[inline(always)]
    fn sar(self, n: Self) -> Self {
        ((self as i32) >> n.min(31)) as u32
    }
    #[inline(always)]
    fn eq(self, o: Self) -> Self {
        mask(self == o)
    }
    #[inline(always)]
    fn lt(self, o: Self) -> Self {
        mask((self as i32) < o as i32)
    }
    #[inline(always)]
    fn fadd(self, o: Self) -> Self {
        (f(self) + f(o)).to_bits()
    }
    #[inline(always)]
    fn fmul(self, o: Self) -> Self {
        (f(self) * f(o)).to_bits()
    }
    #[inline(always)]
    fn fma(self, b: Self, c: Self) -> Self {
        f(self).mul_add(f(b), f(c)).to_bits()
    }
    #[inline(always)]
    fn flt(self, o: Self) -> Self {
        mask(f(self) < f(o))
    }
    #[inline(always)]
    fn feq(self, o: Self) -> Self {
        mask(f(self) == f(o))
    }
    #[inline(always)]
    fn funord(self, o: Self) -> Self {
        mask(f(self).is_nan() || f(o).is_nan())
    }
    #[inline(always)]
    fn i2f(self) -> Self {
        (self as i32 as f32).to_bits()
    }
}
