//! Integer arithmetic: IADD3, IMAD, LEA, ISETP, IMNMX, IABS, dot products and absolute differences.
//!
//! A negated operand adds its complement plus one, and the carry of that sum is *not* dropped. −0 therefore gives a
//! carry, so that "carry" after a subtraction means "no borrow". Under `.X` a negation is the plain complement, and the
//! carry that comes into the chain adds the one.

/// A 32-bit result and up to two carries out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// The low 32 bits.
    pub value: u32,
    /// True if the full sum reached 2^32.
    pub carry: bool,
    /// True if the full sum reached 2^33.
    pub carry2: bool,
}

impl Carried {
    #[inline(always)]
    const fn new(sum: u64) -> Self {
        Self { value: sum as u32, carry: sum >= 1 << 32, carry2: sum >= 2 << 32 }
    }
}

/// An addend as the adder gets it. If it is negated, it has 33 bits.
#[inline(always)]
const fn addend(x: u32, neg: bool) -> u64 {
    if neg { !x as u64 + 1 } else { x as u64 }
}

/// IADD3 without `.X`. Each operand has its own `neg`.
#[inline(always)]
#[must_use]
pub const fn add3(a: u32, b: u32, c: u32, neg: [bool; 3]) -> Carried {
    Carried::new(addend(a, neg[0]) + addend(b, neg[1]) + addend(c, neg[2]))
}

/// IADD3.X: a negation is the complement, and two carries come in.
#[inline(always)]
#[must_use]
pub const fn add3_x(a: u32, b: u32, c: u32, neg: [bool; 3], carry: [bool; 2]) -> Carried {
    let sum = invert(a, neg[0]) as u64 + invert(b, neg[1]) as u64 + invert(c, neg[2]) as u64;
    Carried::new(sum + carry[0] as u64 + carry[1] as u64)
}

/// The complement of `x` if `not` is true, otherwise `x`.
#[inline(always)]
#[must_use]
pub const fn invert(x: u32, not: bool) -> u32 {
    if not { !x } else { x }
}

/// The two's complement negation of `x` if `neg` is true, otherwise `x`.
#[inline(always)]
#[must_use]
pub const fn negate(x: u32, neg: bool) -> u32 {
    if neg { x.wrapping_neg() } else { x }
}

/// The low 32 bits of IMAD. Signedness has no effect on them. For `.X`, callers pass the inverted `c` and the carry.
#[inline(always)]
#[must_use]
pub const fn mad(a: u32, b: u32, c: u32, carry: bool) -> u32 {
    a.wrapping_mul(b).wrapping_add(c).wrapping_add(carry as u32)
}

/// The exact 64-bit product.
#[inline(always)]
#[must_use]
pub const fn product(a: u32, b: u32, signed: bool) -> u64 {
    if signed { (a as i32 as i64 * b as i32 as i64) as u64 } else { a as u64 * b as u64 }
}

/// IMAD.WIDE: product + 64-bit addend + carry, and the carry of the unsigned 64-bit sum. [`wide_addend`] handles the
/// negation of the addend.
#[inline(always)]
#[must_use]
pub const fn mad_wide(a: u32, b: u32, c: u64, signed: bool, carry: bool) -> (u64, bool) {
    let (sum, first) = product(a, b, signed).overflowing_add(c);
    let (sum, second) = sum.overflowing_add(carry as u64);
    (sum, first | second)
}

/// The addend of IMAD.WIDE and IMAD.HI under its negation bit: the two's complement, or with `.X` the complement.
#[inline(always)]
#[must_use]
pub const fn wide_addend(c: u64, neg: bool, x: bool) -> u64 {
    match (neg, x) {
        (false, _) => c,
        (true, false) => c.wrapping_neg(),
        (true, true) => !c,
    }
}

/// IMAD.HI: the high word of product + 64-bit addend (a register pair) + carry.
#[inline(always)]
#[must_use]
pub const fn mad_hi(a: u32, b: u32, c: u64, signed: bool, carry: bool) -> u32 {
    (mad_wide(a, b, c, signed, carry).0 >> 32) as u32
}

/// The number that LEA adds to its second operand: A shifted left, or with `.HI` the high word of {high:A} shifted
/// left. For `.SX32`, callers pass [`sign_word`] of A as `high`.
#[inline(always)]
#[must_use]
pub const fn lea_shift(a: u32, high: u32, shift: u32, hi: bool) -> u32 {
    let wide = (high as u64) << 32 | a as u64;
    if hi { ((wide << (shift & 31)) >> 32) as u32 } else { a << (shift & 31) }
}

/// The high word of a sign-extended 32-bit number, which is 0 or −1.
#[inline(always)]
#[must_use]
pub const fn sign_word(a: u32) -> u32 {
    ((a as i32) >> 31) as u32
}

/// LEA without `.X`. `neg_a` negates the shifted A.
#[inline(always)]
#[must_use]
pub const fn lea(shifted: u32, b: u32, neg_a: bool, neg_b: bool) -> Carried {
    add3(shifted, b, 0, [neg_a, neg_b, false])
}

/// LEA.X: a negation is a complement, and a carry comes in.
#[inline(always)]
#[must_use]
pub const fn lea_x(shifted: u32, b: u32, neg_a: bool, neg_b: bool, carry: bool) -> Carried {
    add3_x(shifted, b, 0, [neg_a, neg_b, false], [carry, false])
}

/// The compare code of ISETP: bit 0 is less, bit 1 equal, bit 2 greater. 0 means never and 7 always.
#[inline(always)]
#[must_use]
pub const fn compare(a: u32, b: u32, signed: bool, code: u8) -> bool {
    relation(a, b, signed) & code != 0
}

/// ISETP.EX compares the high words of two 64-bit numbers. If they are equal, the answer is `low`, the unsigned
/// comparison of the low words with the same code.
#[inline(always)]
#[must_use]
pub const fn compare_ex(a: u32, b: u32, signed: bool, code: u8, low: bool) -> bool {
    let relation = relation(a, b, signed);
    // Codes 0 and 7 give constants, whatever the words are.
    match code & 7 {
        0 => false,
        7 => true,
        _ if relation == 2 => low,
        code => relation & code != 0,
    }
}

#[inline(always)]
const fn relation(a: u32, b: u32, signed: bool) -> u8 {
    // Inverting the sign bit maps the signed order to the unsigned order.
    let flip = if signed { 1 << 31 } else { 0 };
    let (a, b) = (a ^ flip, b ^ flip);
    (a < b) as u8 | ((a == b) as u8) << 1 | ((a > b) as u8) << 2
}

/// IMNMX.
#[inline(always)]
#[must_use]
pub const fn min_max(a: u32, b: u32, min: bool, signed: bool) -> u32 {
    if compare(a, b, signed, 1) == min { a } else { b }
}

/// IABS. −2^31 stays as it is.
#[inline(always)]
#[must_use]
pub const fn abs(a: u32) -> u32 {
    (a as i32).wrapping_abs() as u32
}

/// Byte `index` of `x`. It is sign-extended if `signed` is true.
#[inline(always)]
const fn byte(x: u32, index: u32, signed: bool) -> i32 {
    let byte = (x >> (8 * index)) as u8;
    if signed { byte as i8 as i32 } else { byte as i32 }
}

/// IDP.4A: the dot product of four bytes each, plus `c`, with wrapping.
#[inline(always)]
#[must_use]
pub const fn dot4(a: u32, b: u32, c: u32, signed_a: bool, signed_b: bool) -> u32 {
    let mut sum = c;
    let mut i = 0;
    while i < 4 {
        sum = sum.wrapping_add((byte(a, i, signed_a) * byte(b, i, signed_b)) as u32);
        i += 1;
    }
    sum
}

/// IDP.2A: the dot product of the two halves of A with two bytes of B (the upper two if `high` is true), plus `c`, with
/// wrapping.
#[inline(always)]
#[must_use]
pub const fn dot2(a: u32, b: u32, c: u32, signed_a: bool, signed_b: bool, high: bool) -> u32 {
    let base = if high { 2 } else { 0 };
    let (lo, hi) = if signed_a { (a as i16 as i32, (a as i32) >> 16) } else { ((a & 0xffff) as i32, (a >> 16) as i32) };
    let (p, q) = (lo * byte(b, base, signed_b), hi * byte(b, base + 1, signed_b));
    c.wrapping_add(p as u32).wrapping_add(q as u32)
}

/// VABSDIFF: |a − b| + c, with wrapping.
#[inline(always)]
#[must_use]
pub const fn abs_diff(a: u32, b: u32, c: u32, signed: bool) -> u32 {
    let diff = if signed { (a as i32).abs_diff(b as i32) } else { a.abs_diff(b) };
    diff.wrapping_add(c)
}

/// VABSDIFF4: |a − b| in each byte. Signed differences of −128 to 127 need all eight bits, and the result has all of
/// them.
#[inline(always)]
#[must_use]
pub const fn abs_diff4(a: u32, b: u32, signed: bool) -> u32 {
    let mut out = 0;
    let mut i = 0;
    while i < 4 {
        out |= byte(a, i, signed).abs_diff(byte(b, i, signed)) << (8 * i);
        i += 1;
    }
    out
}

/// VABSDIFF4 with accumulation: the sum of the four differences, plus `c`, with wrapping.
#[inline(always)]
#[must_use]
pub const fn abs_diff4_sum(a: u32, b: u32, c: u32, signed: bool) -> u32 {
    let each = abs_diff4(a, b, signed);
    let sum = (each & 0xff) + (each >> 8 & 0xff) + (each >> 16 & 0xff) + (each >> 24);
    sum.wrapping_add(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::draws;

    fn neg(x: u32, neg: bool) -> i128 {
        if neg { -i128::from(x) } else { x.into() }
    }

    /// The sum of unsigned addends in 33 bits. Every negated one is its complement plus one.
    fn complement_sum(terms: &[(u32, bool)]) -> i128 {
        terms.iter().map(|&(x, n)| if n { (1i128 << 32) - i128::from(x) } else { x.into() }).sum()
    }

    #[test]
    fn three_way_sums() {
        for mut draw in draws(50_000) {
            let [a, b, c] = [(); 3].map(|()| draw.int() as u32);
            let n = [draw.flag(), draw.flag(), draw.flag()];
            let carry = [draw.flag(), draw.flag()];
            let got = add3(a, b, c, n);
            assert_eq!(got.value, (neg(a, n[0]) + neg(b, n[1]) + neg(c, n[2])) as u32);
            let full = complement_sum(&[(a, n[0]), (b, n[1]), (c, n[2])]);
            assert_eq!((got.carry, got.carry2), (full >> 32 >= 1, full >> 32 >= 2), "{a:#x} {b:#x} {c:#x} {n:?}");
            let got = add3_x(a, b, c, n, carry);
            let extra = carry.iter().filter(|&&c| c).count() as i128 - n.iter().filter(|&&n| n).count() as i128;
            assert_eq!(got.value, (full + extra) as u32);
            assert_eq!((got.carry, got.carry2), ((full + extra) >> 32 >= 1, (full + extra) >> 32 >= 2));
        }
    }

    /// 64-bit addition and subtraction in two instructions, as compilers write them, give the right result.
    #[test]
    fn carry_chains() {
        for mut draw in draws(50_000) {
            let (x, y, subtract) = (draw.int(), draw.int(), draw.flag());
            let low = add3(x as u32, y as u32, 0, [false, subtract, false]);
            let (xh, yh) = ((x >> 32) as u32, (y >> 32) as u32);
            let high = add3_x(xh, yh, 0, [false, subtract, false], [low.carry, false]);
            let want = if subtract { x.wrapping_sub(y) } else { x.wrapping_add(y) };
            assert_eq!(u64::from(high.value) << 32 | u64::from(low.value), want);
            // "Carry" after a subtraction is "no borrow".
            assert_eq!(high.carry, if subtract { x >= y } else { x.checked_add(y).is_none() });
        }
    }

    #[test]
    fn multiplications() {
        for mut draw in draws(50_000) {
            let (a, b, c) = (draw.int() as u32, draw.int() as u32, draw.int());
            let (signed, carry) = (draw.flag(), draw.flag());
            let wide = |x: u32| if signed { i128::from(x as i32) } else { x.into() };
            let exact = wide(a) * wide(b);
            let sum = exact + i128::from(c) + i128::from(carry);
            assert_eq!(mad_wide(a, b, c, signed, carry).0, sum as u64);
            assert_eq!(mad_hi(a, b, c, signed, carry), (sum >> 32) as u32);
            assert_eq!(mad(a, b, c as u32, carry), sum as u32);
            // The carry is that of the adder, which takes both addends as unsigned 64-bit patterns.
            let adder = u128::from(exact as u64) + u128::from(c) + u128::from(carry);
            assert_eq!(mad_wide(a, b, c, signed, carry).1, adder >> 64 != 0);
            assert_eq!(wide_addend(c, true, false), (-i128::from(c)) as u64);
            assert_eq!(wide_addend(c, true, true), (-i128::from(c) - 1) as u64);
            assert_eq!(wide_addend(c, false, true), c);
        }
    }

    #[test]
    fn scaled_addresses() {
        for mut draw in draws(50_000) {
            let (x, base, shift) = (draw.int(), draw.int(), draw.below(32) as u32);
            // LEA and LEA.HI.X add a shifted 64-bit index to a 64-bit base.
            let (xl, xh) = (x as u32, (x >> 32) as u32);
            let low = lea(lea_shift(xl, 0, shift, false), base as u32, false, false);
            let high = lea_x(lea_shift(xl, xh, shift, true), (base >> 32) as u32, false, false, low.carry);
            let want = (x << shift).wrapping_add(base);
            assert_eq!(u64::from(high.value) << 32 | u64::from(low.value), want);
            // This is the same with a sign-extended 32-bit index.
            let high = lea_shift(xl, sign_word(xl), shift, true);
            assert_eq!(u64::from(high) << 32 | u64::from(xl << shift), (xl as i32 as i64 as u64) << shift);
            // A negation comes after the shift, and its carry counts.
            let (neg_a, neg_b) = (draw.flag(), draw.flag());
            let shifted = xl << shift;
            let full = complement_sum(&[(shifted, neg_a), (base as u32, neg_b)]);
            let got = lea(shifted, base as u32, neg_a, neg_b);
            assert_eq!((got.value, got.carry), (full as u32, full >> 32 != 0));
        }
    }

    #[test]
    fn comparisons() {
        for mut draw in draws(50_000) {
            let (x, signed) = (draw.int(), draw.flag());
            let y = if draw.flag() { draw.int() } else { x ^ draw.below(3) << draw.pick(&[0, 31, 32, 63]) };
            let wide = |v: u32| if signed { i64::from(v as i32) } else { v.into() };
            let (a, b) = (x as u32, y as u32);
            let truth =
                |o: std::cmp::Ordering| [false, o.is_lt(), o.is_eq(), o.is_le(), o.is_gt(), o.is_ne(), o.is_ge(), true];
            let wide_order = if signed { (x as i64).cmp(&(y as i64)) } else { x.cmp(&y) };
            for code in 0..8 {
                let want = truth(wide(a).cmp(&wide(b)))[usize::from(code)];
                assert_eq!(compare(a, b, signed, code), want, "{a:#x} {b:#x} {code}");
                // This is a 64-bit comparison in two instructions.
                let low = compare(a, b, false, code);
                let got = compare_ex((x >> 32) as u32, (y >> 32) as u32, signed, code, low);
                assert_eq!(got, truth(wide_order)[usize::from(code)], "{x:#x} {y:#x} {code}");
            }
            let (least, most) = (wide(a).min(wide(b)) as u32, wide(a).max(wide(b)) as u32);
            assert_eq!([min_max(a, b, true, signed), min_max(a, b, false, signed)], [least, most]);
            assert_eq!(abs(a), i64::from(a as i32).unsigned_abs() as u32);
            assert_eq!([negate(a, true), negate(a, false)], [(-i64::from(a)) as u32, a]);
            assert_eq!([invert(a, true), invert(a, false)], [!a, a]);
        }
    }

    #[test]
    fn bytes() {
        for mut draw in draws(50_000) {
            let [a, b, c] = [(); 3].map(|()| draw.int() as u32);
            let (signed_a, signed_b) = (draw.flag(), draw.flag());
            let wide = |byte: u8, signed| if signed { i64::from(byte as i8) } else { byte.into() };
            let at = |i: usize| (wide(a.to_le_bytes()[i], signed_a), wide(b.to_le_bytes()[i], signed_b));
            let dot: i64 = (0..4).map(|i| at(i).0 * at(i).1).sum();
            assert_eq!(dot4(a, b, c, signed_a, signed_b), (dot + i64::from(c)) as u32);
            let half = |i: u32| {
                let half = (a >> (16 * i)) as u16;
                if signed_a { i64::from(half as i16) } else { half.into() }
            };
            for (high, at_byte) in [(false, 0), (true, 2)] {
                let dot = half(0) * at(at_byte).1 + half(1) * at(at_byte + 1).1;
                assert_eq!(dot2(a, b, c, signed_a, signed_b, high), (dot + i64::from(c)) as u32);
            }
            let diff = |i: usize, signed| {
                (wide(a.to_le_bytes()[i], signed) - wide(b.to_le_bytes()[i], signed)).unsigned_abs() as u32
            };
            let diffs = [0, 1, 2, 3].map(|i| diff(i, signed_a));
            assert_eq!(abs_diff4(a, b, signed_a).to_le_bytes().map(u32::from), diffs);
            assert_eq!(abs_diff4_sum(a, b, c, signed_a), diffs.iter().sum::<u32>().wrapping_add(c));
            let wide = |x: u32| if signed_a { i64::from(x as i32) } else { x.into() };
            assert_eq!(abs_diff(a, b, c, signed_a), ((wide(a) - wide(b)).abs() + i64::from(c)) as u32);
        }
    }
}
