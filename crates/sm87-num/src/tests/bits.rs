use super::*;
use crate::oracle::draws;

fn bit(x: u32, i: u32) -> bool {
    x >> i & 1 != 0
}

#[test]
fn every_look_up_table() {
    let (a, b, c) = (0xf0f0_aaaa, 0xcccc_3333, 0x5a5a_0ff0);
    for lut in 0..=255 {
        let got = lop3(a, b, c, lut);
        for i in 0..32 {
            let index = u32::from(bit(a, i)) * 4 + u32::from(bit(b, i)) * 2 + u32::from(bit(c, i));
            assert_eq!(bit(got, i), bit(lut.into(), index));
            assert_eq!(plop3(bit(a, i), bit(b, i), bit(c, i), lut), bit(got, i));
        }
        assert_eq!(plop3_lanes(a, b, c, lut), got);
    }
    // These are the operations that have names.
    assert_eq!([lop3(a, b, c, 0xc0), lop3(a, b, c, 0xfc), lop3(a, b, c, 0x3c)], [a & b, a | b, a ^ b]);
    assert_eq!([lop3(a, b, c, 0x96), lop3(a, b, c, 0xe8)], [a ^ b ^ c, a & b | a & c | b & c]);
}

#[test]
fn look_up_predicate() {
    let got = [(0, false), (0, true), (5, false), (5, true)]
        .map(|(r, p)| (lop3_predicate(r, p, false), lop3_predicate(r, p, true)));
    assert_eq!(got, [(false, false), (true, false), (true, false), (true, true)]);
}

#[test]
fn shifts() {
    for mut draw in draws(50_000) {
        let (x, count) = (draw.int(), draw.int() as u32);
        let how =
            Shift { right: draw.flag(), hi: draw.flag(), wrap: draw.flag(), wide: draw.flag(), signed: draw.flag() };
        let width = if how.wide { 64 } else { 32 };
        let places = if how.wrap { count % width } else { count.min(width) };
        // A shift divides by a power of two and rounds down, for the number as its type reads it.
        let value = if how.signed { i128::from(x as i64) } else { x.into() };
        let shifted = if how.right { value.div_euclid(1 << places) } else { i128::from(x) << places };
        let want = if how.hi { shifted >> 32 } else { shifted } as u32;
        assert_eq!(shf(x as u32, count, (x >> 32) as u32, how), want, "{x:#x} {count} {how:?}");
    }
}

#[test]
fn plain_shifts_are_shf_with_a_zero() {
    let left = Shift::default();
    let logical = Shift { right: true, hi: true, ..left };
    let arithmetic = Shift { signed: true, ..logical };
    for count in [0, 1, 31, 32, 33, u32::MAX] {
        let x = 0x9abc_def1;
        assert_eq!(shf(x, count, 0, left), x.checked_shl(count).unwrap_or(0));
        assert_eq!(shf(0, count, x, logical), x.checked_shr(count).unwrap_or(0));
        assert_eq!(shf(0, count, x, arithmetic), (x as i32 >> count.min(31)) as u32);
    }
}

#[test]
fn permutations() {
    for mut draw in draws(20_000) {
        let [a, selector, c] = [(); 3].map(|()| draw.int() as u32);
        let bytes = [a.to_le_bytes(), c.to_le_bytes()].concat();
        let want = [0, 1, 2, 3].map(|i| {
            let nibble = selector >> (4 * i) & 15;
            let byte = bytes[nibble as usize % 8];
            if nibble < 8 { byte } else { 0u8.wrapping_sub(byte >> 7) }
        });
        assert_eq!(prmt(a, PrmtMode::Index.nibbles(selector), c).to_le_bytes(), want);
    }
}

/// Each mode does what it is for, on the bytes 0 to 7.
#[test]
fn permutation_modes() {
    let (a, c) = (0x0302_0100, 0x0706_0504);
    let run = |mode: PrmtMode, s: u32| prmt(a, mode.nibbles(s | 0xabc0), c);
    let all = 0x0706_0504_0302_0100u64;
    for s in 0..4 {
        assert_eq!(run(PrmtMode::F4e, s), (all >> (8 * s)) as u32);
        assert_eq!(run(PrmtMode::Rc8, s), s * 0x0101_0101);
        assert_eq!(run(PrmtMode::Rc16, s), if s % 2 == 0 { 0x0100_0100 } else { 0x0302_0302 });
        let clamped = |low, high| u32::from_le_bytes([0, 1, 2, 3].map(|i: u8| i.clamp(low, high)));
        assert_eq!(run(PrmtMode::Ecl, s), clamped(s as u8, 3));
        assert_eq!(run(PrmtMode::Ecr, s), clamped(0, s as u8));
        // In the backward mode, byte i is byte s − i, and the count continues at 8 below zero.
        let backward = [0, 1, 2, 3].map(|i: u32| (s.wrapping_sub(i) & 7) as u8);
        assert_eq!(run(PrmtMode::B4e, s).to_le_bytes(), backward);
    }
    assert_eq!(PrmtMode::from_bits(7), None);
    assert_eq!((0..7).map(|m| PrmtMode::from_bits(m).unwrap() as u32).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn leading_ones() {
    for mut draw in draws(20_000) {
        let x = draw.int() as u32;
        let highest = |wanted: bool| (0..32).rev().find(|&i| bit(x, i) == wanted);
        let unsigned = highest(true);
        let signed = highest(!bit(x, 31));
        for (is_signed, found) in [(false, unsigned), (true, signed)] {
            assert_eq!(find_leading_one(x, is_signed, false), found.unwrap_or(u32::MAX));
            assert_eq!(find_leading_one(x, is_signed, true), found.map_or(u32::MAX, |i| 31 - i));
        }
    }
}

#[test]
fn extensions_and_masks() {
    for mut draw in draws(20_000) {
        let (x, wrap) = (draw.int() as u32, draw.flag());
        let (n, at) = (draw.pick(&[0, 1, 7, 8, 31, 32, 33, 64, u32::MAX]), draw.below(40) as u32);
        let bits = if wrap { n % 32 } else { n.min(32) };
        let low = u64::from(x) & ((1 << bits) - 1);
        let sign = if bits > 0 && bit(x, bits - 1) { u64::MAX << bits } else { 0 };
        assert_eq!(extend(x, n, false, wrap), low as u32);
        assert_eq!(extend(x, n, true, wrap), (low | sign) as u32);
        let at_bit = if wrap { at % 32 } else { at };
        let want = (0..32).filter(|&i| i >= at_bit && i - at_bit < bits).fold(0, |m, i| m | 1u32 << i);
        assert_eq!(mask(at, n, wrap), want, "{at} {n} {wrap}");
    }
}

#[test]
fn predicate_moves() {
    for mut draw in draws(20_000) {
        let (x, preds, select, byte) =
            (draw.int() as u32, draw.word() as u8 & 0x7f, draw.word() as u32, draw.below(4) as u32);
        let packed = predicates_to_register(x, preds, select, byte);
        let restored = register_to_predicates(!preds & 0x7f, packed, select, byte);
        for i in 0..32u32 {
            let predicate = i.checked_sub(8 * byte).filter(|&p| p < 7 && bit(select, p));
            assert_eq!(bit(packed, i), predicate.map_or(bit(x, i), |p| bit(preds.into(), p)));
        }
        for p in 0..7 {
            assert_eq!(bit(restored.into(), p), bit(preds.into(), p) == bit(select, p));
        }
    }
}
