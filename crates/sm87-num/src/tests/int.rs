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
