//! Vectors of conversions against the definitions for one lane.

use super::*;
use crate::exec::rows::{Dst, Row, Src, rows_per_warp};
use crate::exec::several::tests::{One, lanes, uop};
use proptest::prelude::*;

fn check<const S: bool>(x: [u32; 8], round: u32, flags: u32) {
    let mods = round << ROUND | flags | if S { SIGNED } else { 0 };
    let (to, how) = (Int::from_bits(2, S), Round::from_bits(round));
    for found in lanes::<One<SingleToWord<S>>>(mods, 0, [x; 6], [0; 2]) {
        for (&x, (word, _)) in x.iter().zip(found) {
            let y = single::modify(x, flags & ABS != 0, flags & NEG != 0);
            let want = num::f32_to_int(y, to, how, flags & NTZ != 0, flags & FTZ != 0) as u32;
            assert_eq!(word as u32, want, "{x:#x} {round} {flags:#x}");
        }
    }
}

/// What an operation makes of a pair in one lane.
fn of_lane<O: Each>(mods: u32, x: u64) -> u64 {
    let (mut rows, mut w) = (vec![Row::ZERO; rows_per_warp(10)], Warp::new(0));
    w.begin(1, 0, &mut rows, &[], &[]);
    w.put64(Dst::reg(4), 0, x);
    O::each(&mut w, &uop(mods, 0), 0);
    w.get64(Src::reg(0), 0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn conversions_of_their_own_are_those_of_all(x: u64, e in 860..1200u64, which: u8, flags: [bool; 3]) {
        let flags: u32 = [NEG, ABS, FTZ].iter().zip(flags).map(|(&bit, on)| flag(on, bit)).sum();
        let (widen, narrow) = (F64 << TO | F32 << FROM | flags, F32 << TO | F64 << FROM | flags);
        let single = if which & 1 == 0 { x } else { [0, 1, 0x80_0000, 0x7f80_0000, 0x7f80_0001, 0xffc0_0001][x as usize % 6] };
        // Most numbers have an exponent that is near the range of floats.
        let double = if which & 6 == 0 { x } else { x & !(0x7ff << 52) | e << 52 };
        for (value, _) in lanes::<SingleToDouble>(widen, 0, [[single as u32; 8]; 6], [0; 2]).into_iter().flatten() {
            prop_assert_eq!(value, of_lane::<FloatToFloat<ANY, ANY>>(widen, single));
        }
        prop_assert_eq!(of_lane::<FloatToFloat<F64, F32>>(narrow, double), of_lane::<FloatToFloat<ANY, ANY>>(narrow, double));
    }

    #[test]
    fn integers_are_those_of_one_lane(x in prop::array::uniform8(any::<u32>()), shift in 0..33u32, size in 0..3u32, part in 0..4u32, flags: [bool; 2]) {
        // Most numbers are near a power of two, or have few bits.
        let x = x.map(|x| match x % 4 {
            0 => x,
            1 => x.checked_shr(shift).unwrap_or(0),
            2 => 1u32.checked_shl(shift).unwrap_or(0).wrapping_add(x >> 2 & 3).wrapping_sub(2),
            _ => (x as i32 >> (shift & 31)) as u32,
        });
        for round in 0..4 {
            let mods = round << ROUND | size << FROM | part << SELECT | flag(flags[0], SIGNED);
            for to in [F32, F64] {
                let mods = mods | to << TO;
                let found = match to {
                    F32 => lanes::<One<WordToSingle>>(mods, 0, [x; 6], [0; 2]),
                    _ => lanes::<WordToDouble>(mods, 0, [x; 6], [0; 2]),
                };
                for found in found {
                    for (&x, (value, _)) in x.iter().zip(found) {
                        let value = if to == F32 { value & u64::from(u32::MAX) } else { value };
                        prop_assert_eq!(value, of_lane::<IntToFloat>(mods, x.into()), "{:#x} {:#x}", x, mods);
                    }
                }
            }
        }
    }

    #[test]
    fn words_are_those_of_one_lane(x in prop::array::uniform8(any::<u32>()), e in prop::array::uniform8(124..162u32), flags: [bool; 4]) {
        let flags = [NTZ, NEG, ABS, FTZ].iter().zip(flags).map(|(&bit, on)| flag(on, bit)).sum();
        // Most numbers have an exponent with which they are near the range of integers.
        let near = std::array::from_fn(|i| if x[i] % 16 == 0 { x[i] } else { x[i] & 0x807f_ffff | e[i] << 23 });
        for round in [0, 3] {
            check::<true>(near, round, flags);
            check::<false>(near, round, flags);
        }
    }
}

#[test]
fn words_at_the_ends_of_the_range() {
    let edges = [
        0,
        0x8000_0000,
        0x3f00_0000,
        0xbf00_0000,
        0x3fc0_0000,
        0xbfc0_0000,
        0x4f00_0000,
        0xcf00_0000,
        0x4eff_ffff,
        0xcf00_0001,
        0x4f80_0000,
        0x4f7f_ffff,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0x0000_0001,
    ];
    for x in edges {
        for flags in [0, NTZ] {
            for round in [0, 3] {
                check::<true>([x; 8], round, flags);
                check::<false>([x; 8], round, flags);
            }
        }
    }
}
