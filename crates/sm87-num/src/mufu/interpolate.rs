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
pub const DISTANCE: u32 = 17;

/// The rows of a table. Each has a fourth number, which is not used, so that it can be read at once.
#[repr(align(16))]
pub struct Rows<const N: usize>(pub [[i32; 4]; N]);

/// A table whose number of rows is a power of two, with the values that are the same for all rows.
pub struct Table<const N: usize> {
    /// A row for each segment of the argument.
    pub rows: Rows<N>,
    /// The weight of the constants.
    pub weight: f64,
    /// The number that is added to every sum, to centre the error of cutting.
    pub bias: f64,
}

impl<const N: usize> Table<N> {
    pub(super) const fn new(rows: &[Row; N], weight: f64, bias: f64) -> Self {
        let (mut all, mut n) = ([[0; 4]; N], 0);
        while n < N {
            let (c0, c1, c2) = rows[n];
            all[n] = [c0, c1, c2, 0];
            n += 1;
        }
        Table { rows: Rows(all), weight, bias }
    }

    /// The function in units of 2^-17 of the table's unit. In `argument`, the row stands above the [`DISTANCE`] bits.
    #[inline(always)]
    pub(super) fn at(&self, argument: u32) -> f64 {
        let [c0, c1, c2, _] = self.rows.0[(argument >> DISTANCE) as usize % N];
        let x = argument & ((1 << DISTANCE) - 1);
        let (c0, c1, c2) = (f64::from(c0), f64::from(c1), f64::from(c2));
        c0 * self.weight + self.bias + c1 * f64::from(x as i32) + c2 * f64::from(square(x) as i32)
    }

    /// The function times 2^`exponent`, if it is not negative, cut to the bits of an f32. A denormal result becomes zero.
    #[inline(always)]
    pub fn cut(&self, argument: u32, exponent: i32) -> u32 {
        cut(self.at(argument) * power_of_two(exponent))
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
