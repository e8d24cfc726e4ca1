//! One lane: a word.
#![allow(unsafe_code)]

use crate::{Double, Simd, Taker};
use sm87_num::Round;
use sm87_num::half::Kind;
use sm87_num::mufu::{Function, Table, mufu};
use tegra_mm::whole;

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
    fn fle(self, o: Self) -> Self {
        mask(f(self) <= f(o))
    }
    #[inline(always)]
    fn funord(self, o: Self) -> Self {
        mask(f(self).is_nan() || f(o).is_nan())
    }
    #[inline(always)]
    fn i2f(self) -> Self {
        (self as i32 as f32).to_bits()
    }
    #[inline(always)]
    fn f2i(self) -> Self {
        f(self) as i32 as u32
    }
    #[inline(always)]
    fn nearest(self) -> Self {
        f(self).round_ties_even().to_bits()
    }
    #[inline(always)]
    fn to_halves(self) -> Self {
        Kind::F16.round_f32(f(self), Round::Rn).into()
    }
    #[inline(always)]
    fn interpolate<const N: usize>(table: &'static Table<N>, argument: Self, exponent: Self) -> Self {
        table.cut(argument, exponent as i32)
    }
    #[inline(always)]
    fn logarithm(fraction: Self, exponent: Self) -> Self {
        mufu(Function::Lg2, exponent.wrapping_add(127) << 23 | fraction)
    }
    #[inline(always)]
    fn tangent(fraction: Self, exponent: Self) -> Self {
        mufu(Function::Tanh, exponent.wrapping_add(127) << 23 | fraction)
    }
    #[inline(always)]
    fn minu(self, o: Self) -> Self {
        Ord::min(self, o)
    }
    #[inline(always)]
    fn maxu(self, o: Self) -> Self {
        Ord::max(self, o)
    }
    #[inline(always)]
    fn least(self) -> u32 {
        self
    }
    #[inline(always)]
    fn most(self) -> u32 {
        self
    }
    #[inline(always)]
    fn any(self) -> bool {
        self != 0
    }
    #[inline(always)]
    fn mul_wide(self, o: Self, signed: bool) -> [Self; 2] {
        let x =
            if signed { (i64::from(self as i32) * i64::from(o as i32)) as u64 } else { u64::from(self) * u64::from(o) };
        words(x)
    }
    #[inline(always)]
    fn double(op: Double, x: [Self; 2], y: [Self; 2], z: [Self; 2]) -> [Self; 2] {
        let (x, y) = (f64::from_bits(pair(x[0], x[1])), f64::from_bits(pair(y[0], y[1])));
        let z = f64::from_bits(pair(z[0], z[1]));
        let r = match op {
            Double::Add => x + z,
            Double::Mul => x * y,
            Double::Fma => x.mul_add(y, z),
        };
        words(r.to_bits())
    }
    #[inline(always)]
    fn double_relation(x: [Self; 2], y: [Self; 2]) -> [Self; 3] {
        let (x, y) = (f64::from_bits(pair(x[0], x[1])), f64::from_bits(pair(y[0], y[1])));
        [mask(x < y), mask(x == y), mask(x.is_nan() || y.is_nan())]
    }
    #[inline(always)]
    unsafe fn load_some(p: *const u32, mask: Self) -> Self {
        // SAFETY: the caller passes the address of a word that can be read if the mask is set.
        if mask != 0 { unsafe { p.read_volatile() } } else { 0 }
    }
    #[inline(always)]
    unsafe fn store_some(self, p: *mut u32, mask: Self) {
        if mask != 0 {
            // SAFETY: the caller passes the address of a word that can be written if the mask is set.
            unsafe { p.write_volatile(self) };
        }
    }
    #[inline(always)]
    unsafe fn gather2(base: *const u8, at: *const u32) -> [Self; 2] {
        // SAFETY: the caller has found two aligned words at this lane's address. The read is volatile, because other threads and
        // the CPU may write there.
        words(unsafe { base.add(at.read() as usize).cast::<u64>().read_volatile() })
    }
    #[inline(always)]
    unsafe fn gather4(base: *const u8, at: *const u32) -> [Self; 4] {
        // SAFETY: the caller has found four aligned words at this lane's address.
        unsafe {
            let x = whole::load(base.add(at.read() as usize));
            let ([a, b], [c, d]) = (words(x as u64), words((x >> 64) as u64));
            [a, b, c, d]
        }
    }
    #[inline(always)]
    unsafe fn gather_words(base: *const u8, at: *const u32, n: usize, taker: &impl Taker) {
        // SAFETY: whoever calls has found four words for each group at this lane's address.
        unsafe {
            let first = base.add(at.read() as usize).cast::<u32>();
            for i in 0..n {
                let word = |k: usize| first.add(4 * i + k).read_volatile();
                taker.take(i, [word(0), word(1), word(2), word(3)]);
            }
        }
    }
    #[inline(always)]
    unsafe fn pick(self, row: *const u32) -> Self {
        // SAFETY: as this function asks of its caller.
        unsafe { row.add((self & 31) as usize).read() }
    }
    #[inline(always)]
    unsafe fn load_crossed(row: *const u32, i: usize, crossed: u32) -> Self {
        // SAFETY: as this function asks of its caller.
        unsafe { row.add(i ^ crossed as usize).read() }
    }
    #[inline(always)]
    unsafe fn spread2(p: *const u8) -> [Self; 2] {
        // SAFETY: whoever calls has found two aligned words.
        unsafe { Self::gather2(p, &0) }
    }
    #[inline(always)]
    unsafe fn spread4(p: *const u8) -> [Self; 4] {
        // SAFETY: whoever calls has found four aligned words.
        unsafe { Self::gather4(p, &0) }
    }
    #[inline(always)]
    unsafe fn row2(p: *const u8) -> [Self; 2] {
        // SAFETY: whoever calls has found two aligned words.
        unsafe { Self::gather2(p, &0) }
    }
    #[inline(always)]
    unsafe fn row4(p: *const u8) -> [Self; 4] {
        // SAFETY: whoever calls has found four aligned words.
        unsafe { Self::gather4(p, &0) }
    }
    #[inline(always)]
    unsafe fn put_row2(words: [Self; 2], p: *mut u8) {
        // SAFETY: whoever calls has found two aligned, writable words.
        unsafe { Self::scatter2(words, p, &0) }
    }
    #[inline(always)]
    unsafe fn put_row4(words: [Self; 4], p: *mut u8) {
        // SAFETY: whoever calls has found four aligned, writable words.
        unsafe { Self::scatter4(words, p, &0) }
    }
    #[inline(always)]
    unsafe fn scatter2(words: [Self; 2], base: *mut u8, at: *const u32) {
        // SAFETY: the caller has found two aligned, writable words at this lane's address.
        unsafe { base.add(at.read() as usize).cast::<u64>().write_volatile(pair(words[0], words[1])) };
    }
    #[inline(always)]
    unsafe fn scatter4(words: [Self; 4], base: *mut u8, at: *const u32) {
        // SAFETY: the caller has found four aligned, writable words at this lane's address.
        unsafe {
            let x = u128::from(pair(words[0], words[1])) | u128::from(pair(words[2], words[3])) << 64;
            whole::store(base.add(at.read() as usize), x);
        }
    }
}

#[inline(always)]
fn words(x: u64) -> [u32; 2] {
    [x as u32, (x >> 32) as u32]
}

#[inline(always)]
fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}
