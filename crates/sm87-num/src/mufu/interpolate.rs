//! Quadratic interpolation in fixed point, which the multi-function unit uses for every function.
//!
//! The leading bits of the argument select a row of a table. The 17 bits after them are the distance `x` into the row's
//! segment, and the result is c0 + c1·x + c2·x². The squarer leaves out the lower half of its partial products, as
//! Oberman and Siu describe it ("A High-Performance Area-Efficient Multifunction Interpolator", 2005). Nothing else is
//! lost before the result is cut. The sums have less than 53 bits, so they are computed exactly in `f64`, which the
//! compiler turns into vectors.

/// The row of a segment: constant, slope, and twice the coefficient of the square.
pub(super) type Row = (i32, i32, i32);

/// The number of bits of the distance into a segment. Sums have as many bits below a unit of the tables.
pub(super) const DISTANCE: u32 = 17;

/// A table whose number of rows is a power of two, with the values that are the same for all rows.
pub(super) struct Table<const N: usize> {
    pub rows: &'static [Row; N],
    /// The weight of the constants.
    pub weight: f64,
    /// The number that is added to every sum, to centre the error of cutting.
    pub bias: f64,
}

impl<const N: usize> Table<N> {
    /// The function in units of 2^-17 of the table's unit. In `argument`, the row stands above the [`DISTANCE`] bits.
    #[inline(always)]
    pub(super) fn at(&self, argument: u32) -> f64 {
        let (c0, c1, c2) = self.rows[(argument >> DISTANCE) as usize % N];
        let x = argument & ((1 << DISTANCE) - 1);
        let (c0, c1, c2) = (f64::from(c0), f64::from(c1), f64::from(c2));
        c0 * self.weight + self.bias + c1 * f64::from(x as i32) + c2 * f64::from(square(x) as i32)
    }
}

/// The square of 17 bits without its partial products below 2^19, in units of 2^18.
#[inline(always)]
const fn square(x: u32) -> u32 {
    // x is 2^9·high + low. Of high², only the product of its lowest bit with itself lies below the limit. Of low²,
    // everything does. Of twice high·low, each bit of high leaves out the bits of low with which its product is too
    // small.
    let (high, low) = (x >> 9, x & 0x1ff);
    let mut cross = 0;
    let mut k = 1;
    while k < 8 {
        cross += (low >> (9 - k)) & (high >> k & 1).wrapping_neg();
        k += 1;
    }
    high * high - (high & 1) + 2 * cross
}

/// 2^`exponent`, for exponents of doubles.
#[inline(always)]
pub(super) const fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// A number that is not negative, cut to the bits of an f32. A denormal result becomes zero.
#[inline(always)]
pub(super) fn cut(x: f64) -> u32 {
    let bits = (x.to_bits() >> 29) as u32;
    if x < f64::from(f32::MIN_POSITIVE) { 0 } else { bits.wrapping_sub((1023 - 127) << 23) }
}
