//! Bits: LOP3, PLOP3, SHF, PRMT, FLO, SGXT, BMSK and the predicate file moves. POPC and BREV are
//! `u32::count_ones` and `u32::reverse_bits`.

/// LOP3: bit *i* of `lut` is the result for the input combination *i* = a·4 + b·2 + c.
#[inline(always)]
#[must_use]
pub const fn lop3(a: u32, b: u32, c: u32, lut: u8) -> u32 {
    // The result is a sum of minterms. With a constant `lut` the compiler reduces it to the named operation.
    let mut out = 0;
    let mut i = 0;
    while i < 8 {
        if lut >> i & 1 != 0 {
            let x = if i & 4 != 0 { a } else { !a };
            let y = if i & 2 != 0 { b } else { !b };
            let z = if i & 1 != 0 { c } else { !c };
            out |= x & y & z;
        }
        i += 1;
    }
    out
}

/// LOP3's predicate output: the result is not zero, OR (`.PAND`: AND) the predicate operand.
#[inline(always)]
#[must_use]
pub const fn lop3_predicate(result: u32, operand: bool, pand: bool) -> bool {
    if pand { (result != 0) & operand } else { (result != 0) | operand }
}

/// PLOP3: one of the two look-up tables applied to three predicates.
#[inline(always)]
#[must_use]
pub const fn plop3(a: bool, b: bool, c: bool, lut: u8) -> bool {
    lut >> ((a as u8) << 2 | (b as u8) << 1 | c as u8) & 1 != 0
}

/// PLOP3 on masks of lanes.
#[inline(always)]
#[must_use]
pub const fn plop3_lanes(a: u32, b: u32, c: u32, lut: u8) -> u32 {
    lop3(a, b, c, lut)
}

/// Modifiers of SHF.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shift {
    /// True for a shift to the right, false for one to the left.
    pub right: bool,
    /// True if the high word is the result, false if the low word is.
    pub hi: bool,
    /// `.W`: the count wraps at the width of the type. Otherwise it is clamped there.
    pub wrap: bool,
    /// True if the type is 64 bits wide. Counts then go up to 64 (63 with `.W`), and otherwise up to 32 (31).
    pub wide: bool,
    /// True for a signed type: a shift to the right copies the sign.
    pub signed: bool,
}

/// SHF shifts the 64 bits of {high:low} and keeps one word.
#[inline(always)]
#[must_use]
pub const fn shf(low: u32, count: u32, high: u32, how: Shift) -> u32 {
    let width = if how.wide { 64 } else { 32 };
    let count = match (how.wrap, count < width) {
        (true, _) => count & (width - 1),
        (false, true) => count,
        (false, false) => width,
    };
    let x = (high as u64) << 32 | low as u64;
    // The shift is made in two steps, because a shift by 64 has no single instruction.
    let (first, rest) = (count / 2, count - count / 2);
    let shifted = match (how.right, how.signed) {
        (false, _) => x << first << rest,
        (true, false) => x >> first >> rest,
        (true, true) => (x as i64 >> first >> rest) as u64,
    };
    (if how.hi { shifted >> 32 } else { shifted }) as u32
}

/// PRMT's selector modes, as encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PrmtMode {
    /// Four selector nibbles. Bit 3 of a nibble replicates the sign of the byte.
    #[default]
    Index = 0,
    /// Forward four extract.
    F4e = 1,
    /// Backward four extract.
    B4e = 2,
    /// Replicate one byte.
    Rc8 = 3,
    /// Edge clamp left.
    Ecl = 4,
    /// Edge clamp right.
    Ecr = 5,
    /// Replicate one half.
    Rc16 = 6,
}

impl PrmtMode {
    /// Reads the three-bit mode field. Code 7 is not assigned.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Option<Self> {
        Some(match bits & 7 {
            0 => Self::Index,
            1 => Self::F4e,
            2 => Self::B4e,
            3 => Self::Rc8,
            4 => Self::Ecl,
            5 => Self::Ecr,
            6 => Self::Rc16,
            _ => return None,
        })
    }

    /// The selector nibbles that the two low bits of `selector` stand for (PTX ISA, `prmt`).
    #[inline]
    #[must_use]
    pub const fn nibbles(self, selector: u32) -> u32 {
        let s = (selector & 3) as usize;
        match self {
            Self::Index => selector,
            Self::F4e => [0x3210, 0x4321, 0x5432, 0x6543][s],
            Self::B4e => [0x5670, 0x6701, 0x7012, 0x0123][s],
            Self::Rc8 => [0x0000, 0x1111, 0x2222, 0x3333][s],
            Self::Ecl => [0x3210, 0x3211, 0x3222, 0x3333][s],
            Self::Ecr => [0x0000, 0x1110, 0x2210, 0x3210][s],
            Self::Rc16 => [0x1010, 0x3232, 0x1010, 0x3232][s],
        }
    }
}

/// PRMT selects four bytes of {c:a}. `nibbles` comes from [`PrmtMode::nibbles`].
#[inline(always)]
#[must_use]
pub const fn prmt(a: u32, nibbles: u32, c: u32) -> u32 {
    let bytes = (c as u64) << 32 | a as u64;
    let mut out = 0;
    let mut i = 0;
    while i < 4 {
        let nibble = nibbles >> (4 * i) & 0xf;
        let byte = (bytes >> (8 * (nibble & 7))) as u8;
        let byte = if nibble & 8 != 0 { (byte as i8 >> 7) as u8 } else { byte };
        out |= (byte as u32) << (8 * i);
        i += 1;
    }
    out
}

/// FLO returns the index of the highest set bit. For `signed` it is the highest bit that differs from the sign. With
/// `.SH` the result is the number of places by which the word must be shifted left to bring that bit to position 31.
/// The result is −1 if there is no such bit.
#[inline(always)]
#[must_use]
pub const fn find_leading_one(x: u32, signed: bool, sh: bool) -> u32 {
    let x = if signed { x ^ ((x as i32) >> 31) as u32 } else { x };
    match (x, sh) {
        (0, _) => u32::MAX,
        (_, false) => 31 - x.leading_zeros(),
        (_, true) => x.leading_zeros(),
    }
}

/// SGXT extends the low `bits` bits of `x`, by sign or by zeros. A count of 32 or more keeps `x`; with `.W` the count
/// wraps at 32. A count of zero gives zero.
#[inline(always)]
#[must_use]
pub const fn extend(x: u32, bits: u32, signed: bool, wrap: bool) -> u32 {
    let bits = if wrap { bits & 31 } else { bits };
    match bits {
        0 => 0,
        1..32 if signed => ((x << (32 - bits)) as i32 >> (32 - bits)) as u32,
        1..32 => x << (32 - bits) >> (32 - bits),
        _ => x,
    }
}

/// BMSK makes `width` ones from bit `position` up, as far as bit 31. Both numbers are clamped at 32, or with `.W` wrap
/// there.
#[inline(always)]
#[must_use]
pub const fn mask(position: u32, width: u32, wrap: bool) -> u32 {
    let (position, width) = if wrap { (position & 31, width & 31) } else { (position, width) };
    let ones = if width >= 32 { u32::MAX } else { (1 << width) - 1 };
    if position >= 32 { 0 } else { ones << position }
}

/// P2R puts those of the seven predicates `preds` that `select` names into byte `byte` of `x`. The other bits keep
/// those of `x`.
#[inline(always)]
#[must_use]
pub const fn predicates_to_register(x: u32, preds: u8, select: u32, byte: u32) -> u32 {
    let at = 8 * (byte & 3);
    let select = (select & 0x7f) << at;
    x & !select | (preds as u32) << at & select
}

/// R2P replaces the predicates that `select` names by bits of byte `byte` of `x`.
#[inline(always)]
#[must_use]
pub const fn register_to_predicates(preds: u8, x: u32, select: u32, byte: u32) -> u8 {
    let select = (select & 0x7f) as u8;
    preds & !select | (x >> (8 * (byte & 3))) as u8 & select
}

#[cfg(test)]
mod tests {
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
            let how = Shift {
                right: draw.flag(),
                hi: draw.flag(),
                wrap: draw.flag(),
                wide: draw.flag(),
                signed: draw.flag(),
            };
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
}
