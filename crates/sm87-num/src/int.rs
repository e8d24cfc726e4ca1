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
#[path = "tests/int.rs"]
mod tests;
