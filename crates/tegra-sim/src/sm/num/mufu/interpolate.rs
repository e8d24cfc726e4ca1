//! Quadratic interpolation in fixed point: what the multi-function unit does for every function.
//!
//! The leading bits of the argument select a row of a table, the 17 bits after them are the distance `x` into its
//! segment: c0 + c1·x + c2·x². The squarer leaves out the lower half of its partial products, as Oberman and Siu
//! describe it ("A High-Performance Area-Efficient Multifunction Interpolator", 2005); nothing else is lost before the
//! result is cut.

/// A segment: constant, slope, and twice the coefficient of the square.
pub(super) type Row = (i32, i32, i32);

/// Bits of a unit of the tables that sums have below it.
pub(super) const BELOW: u32 = 17;
/// Bits of the distance into a segment.
pub(super) const DISTANCE: u32 = 17;

/// A table with what is the same for all of its rows.
pub(super) struct Table<const N: usize> {
    pub rows: &'static [Row; N],
    /// Fraction bits of the constants.
    pub fraction: u32,
    /// Added to every sum, to centre the error of cutting.
    pub bias: i64,
}

impl<const N: usize> Table<N> {
    /// The function in units of 2^-17 of the table's unit. `argument` has the row above the [`DISTANCE`] bits.
    #[inline(always)]
    pub(super) fn at(&self, argument: u32) -> i64 {
        self.sum((argument >> DISTANCE) as usize, argument & ((1 << DISTANCE) - 1))
    }

    #[inline(always)]
    fn sum(&self, row: usize, distance: u32) -> i64 {
        let (c0, c1, c2) = self.rows[row.min(N - 1)];
        let (x, square) = (i64::from(distance), i64::from(square(distance)));
        (i64::from(c0) << (BELOW - self.fraction)) + self.bias + i64::from(c1) * x + i64::from(c2) * square
    }
}

/// The square of 17 bits without its partial products below 2^19, in units of 2^18.
#[inline(always)]
fn square(x: u32) -> u32 {
    let mut sum = 0;
    // Two equal products x_i·x_j make one of twice the weight; x_i·x_i is x_i.
    for i in 2..DISTANCE {
        let lowest = if i < 9 { 18 - i } else { i + 1 };
        let others = x >> lowest << lowest;
        let own = if i >= 10 { 1u32 << i } else { 0 };
        // Weight 2^(i + 1) of 34 bits, cut to what is above 2^18.
        let product = (u64::from(others) << (i + 1) | u64::from(own) << i) >> 18;
        sum += if x >> i & 1 != 0 { product as u32 } else { 0 };
    }
    sum
}

/// A positive number in units of 2^`unit`, cut to 24 significant bits: the bits of an f32. Results are in the range of
/// normal numbers, or zero.
#[inline(always)]
pub(super) fn cut(x: u64, unit: i32) -> u32 {
    if x == 0 {
        return 0;
    }
    let top = 63 - x.leading_zeros() as i32;
    let significand = if top > 23 { x >> (top - 23) } else { x << (23 - top) };
    (((unit + top + 127 - 1) as u32) << 23) + significand as u32
}
