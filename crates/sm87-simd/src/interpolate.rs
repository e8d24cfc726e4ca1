//! What the multi-function unit computes from its tables ([`sm87_num::mufu`]), for several lanes at a time. Sums have more than 32 bits, so
//! each half of the lanes has them as pairs: the even lanes, and the odd ones. There are no closures and no maps of arrays, because these may become
//! functions of their own, which the host's vectors would be handed to in memory.

use crate::Simd;
use sm87_num::mufu::{BINADES, DISTANCE, LG2, TANH, Table, UNIT};

/// Vectors whose lanes can be used as pairs: an even lane and the next one, which is the upper half of 64 bits.
pub trait Pairs: Simd {
    /// The product of the even lanes as signed numbers, as pairs.
    fn product(self, o: Self) -> Self;
    /// The sum of pairs.
    fn add_pairs(self, o: Self) -> Self;
    /// A mask of pairs.
    fn equal_pairs(self, o: Self) -> Self;
    /// The difference of pairs that are doubles.
    fn sub_doubles(self, o: Self) -> Self;
    /// Shifts pairs to the left by a number below 64.
    fn shl_pairs<const N: i32>(self) -> Self;
    /// The same to the right.
    fn shr_pairs<const N: i32>(self) -> Self;
    /// The even lanes of one, and the odd lanes of the other.
    fn mixed(even: Self, odd: Self) -> Self;
    /// The upper halves of the products of the lower and of the upper 16 bits, without signs.
    fn high_halves(self, o: Self) -> Self;
    /// The first three words of each lane's row of a table, whose number of rows is a power of two. Of the row's number, as many bits count.
    fn look_up<const N: usize>(table: &'static [[i32; 4]; N], row: Self) -> [Self; 3];

    /// The same pair everywhere.
    #[inline(always)]
    fn pairs_of(x: u64) -> Self {
        Self::mixed(Self::splat(x as u32), Self::splat((x >> 32) as u32))
    }

    /// The lower words of two pairs become even and odd lanes.
    #[inline(always)]
    fn joined([even, odd]: [Self; 2]) -> Self {
        Self::mixed(even, odd.shl_pairs::<32>())
    }
}

/// The square of 17 bits as [`Table`] has it. See `interpolate::square` of sm87-num, which says the same of one number.
#[inline(always)]
fn square<V: Pairs>(x: V) -> V {
    let (high, low) = (x.shr(V::splat(9)), x.and(V::splat(0x1ff)));
    // The upper half of the product of `low` with bit k of `high`, seven places higher, is `low` shifted to the right by 9 − k.
    let bits = x.shr(V::splat(2));
    let mut cross = V::splat(0);
    for k in 1..8 {
        cross = cross.add(low.high_halves(bits.and(V::splat(1 << (k + 7)))));
    }
    // The product has 16 bits.
    high.mul(high).sub(high.and(V::splat(1))).add(cross.add(cross))
}

/// What [`Table::at`] computes, as pairs of the even and of the odd lanes.
#[inline(always)]
fn sums<V: Pairs, const N: usize>(table: &'static Table<N>, argument: V) -> [V; 2] {
    let row = argument.shr(V::splat(DISTANCE));
    let x = argument.and(V::splat((1 << DISTANCE) - 1));
    let square = square(x);
    let parts = V::look_up(&table.rows.0, row);
    let (weight, bias) = (V::splat(table.weight as u32), V::pairs_of(table.bias as i64 as u64));
    let [c0, c1, c2] = parts;
    let [d0, d1, d2] = [c0.shr_pairs::<32>(), c1.shr_pairs::<32>(), c2.shr_pairs::<32>()];
    let even = c0.product(weight).add_pairs(bias).add_pairs(c1.product(x)).add_pairs(c2.product(square));
    let (x, square) = (x.shr_pairs::<32>(), square.shr_pairs::<32>());
    [even, d0.product(weight).add_pairs(bias).add_pairs(d1.product(x)).add_pairs(d2.product(square))]
}

/// Numbers of less than 52 bits times 2^`exponent`, cut to the bits of floats. A denormal result becomes zero. Exponents are such that
/// results are between 2^-380 and 2^128.
#[inline(always)]
fn cut<V: Pairs>(numbers: [V; 2], exponent: V) -> V {
    // With these upper bits, a number is a double that is larger by 2^52.
    let magic = V::pairs_of(0x4330_0000 << 32);
    let [even, odd] = numbers;
    let (even, odd) = (even.or(magic).sub_doubles(magic), odd.or(magic).sub_doubles(magic));
    // The lowest bit of the double's exponent becomes that of the float's, and as many of the others as have room.
    let bits = V::joined([even.shr_pairs::<29>(), odd.shr_pairs::<29>()]);
    let scaled = bits.add(exponent.sub(V::splat(1023 - 127)).shl(V::splat(23)));
    let zero = V::splat(0);
    let is_zero = V::mixed(numbers[0].equal_pairs(zero), numbers[1].equal_pairs(zero));
    let tiny = scaled.lt(V::splat(1 << 23)).or(is_zero);
    tiny.not().and(scaled)
}

/// What [`Table::cut`] computes.
#[inline(always)]
pub fn interpolate<V: Pairs, const N: usize>(table: &'static Table<N>, argument: V, exponent: V) -> V {
    cut(sums(table, argument), exponent)
}

/// The binary logarithm of a number above zero, without that of one. `mufu::logarithm` of sm87-num says the same of one number.
#[inline(always)]
pub fn logarithm<V: Pairs>(fraction: V, exponent: V) -> V {
    // The sum has so many bits below one, of which the lowest three do not count.
    const PLACES: i32 = 2 - UNIT - 4;
    let [even, odd] = sums(&LG2, fraction);
    let numbers = [
        even.add_pairs(exponent.shl_pairs::<PLACES>()),
        odd.add_pairs(exponent.shr_pairs::<32>().shl_pairs::<PLACES>()),
    ];
    // A negative sum is complemented and not negated. Its sign is in the upper word.
    let sign = V::mixed(numbers[0].shr_pairs::<32>(), numbers[1]).sar(V::splat(31));
    let counted = V::pairs_of(!7);
    let magnitudes = [
        numbers[0].xor(V::mixed(sign, sign.shl_pairs::<32>())).and(counted),
        numbers[1].xor(V::mixed(sign.shr_pairs::<32>(), sign)).and(counted),
    ];
    cut(magnitudes, V::splat((UNIT + 2) as u32)).or(sign.and(V::splat(1 << 31)))
}

/// The hyperbolic tangent of numbers above zero with these exponents. Below 2^-8, and from 8 on, the result is not specified.
#[inline(always)]
pub fn tangent<V: Pairs>(fraction: V, exponent: V) -> V {
    let row = exponent.add(V::splat(8));
    let [first, bits, _] = V::look_up(&BINADES, row);
    let argument = first.shl(V::splat(DISTANCE)).add(fraction.shr(V::splat(23 - DISTANCE).sub(bits)));
    let negative = exponent.and(exponent.sar(V::splat(31)));
    interpolate(&TANH, argument, negative.add(V::splat(UNIT as u32)))
}
