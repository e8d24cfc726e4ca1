//! Carries on masks of lanes against the definitions for one lane.

use super::*;
use crate::exec::several::{Several, tests::lanes};
use proptest::prelude::*;
use sm87_num::int;

/// Any words, and often those at which carries happen.
fn word() -> impl Strategy<Value = u32> {
    prop_oneof![any::<u32>(), prop::sample::select(vec![0, 1, 2, 0x7fff_ffff, 0x8000_0000, u32::MAX - 1, u32::MAX])]
}

/// The result of an operation for each lane: two words and two conditions.
type Outcome = (u64, [bool; 2]);

/// Compares an operation with its definition, which gets three pairs of words and two predicates.
fn check<O: Several>(
    mods: u32,
    imm: u32,
    x: [[u32; 8]; 6],
    preds: [u32; 2],
    want: impl Fn([u64; 3], [bool; 2]) -> Outcome,
) {
    let kept = if O::WORDS == 2 { u64::MAX } else { u32::MAX.into() };
    for found in lanes::<O>(mods, imm, x, preds) {
        for (i, (value, conditions)) in found.into_iter().enumerate() {
            let source = |n: usize| u64::from(x[2 * n][i]) | u64::from(x[2 * n + 1][i]) << 32;
            let carries = preds.map(|p| p >> i & 1 != 0);
            let (wanted, flags) = want([source(0), source(1), source(2)], carries);
            assert_eq!(value & kept, wanted & kept, "lane {i} of {x:x?}, modifiers {mods:#x}, {imm}");
            for n in 0..O::CONDITIONS {
                assert_eq!(conditions[n], flags[n], "condition {n} of lane {i} of {x:x?}, modifiers {mods:#x}, {imm}");
            }
        }
    }
}

fn three(r: int::Carried) -> Outcome {
    (r.value.into(), [r.carry, r.carry2])
}

fn negs(mods: u32) -> [bool; 3] {
    NEG.map(|n| mods & n != 0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn sums_carry_as_those_of_one_lane(x in prop::array::uniform6(prop::array::uniform8(word())), p: [u32; 2], mods in 0..8u32) {
        check::<Add3<true>>(mods, 0, x, p, |[a, b, c], _| three(int::add3(a as u32, b as u32, c as u32, negs(mods))));
        check::<Add3<false>>(0, 0, x, p, |[a, b, c], _| three(int::add3(a as u32, b as u32, c as u32, [false; 3])));
        check::<Add3X>(mods | X, 0, x, p, |[a, b, c], p| three(int::add3_x(a as u32, b as u32, c as u32, negs(mods), p)));
        check::<Add2>(0, 0, x, p, |[a, b, _], _| three(int::add3(a as u32, b as u32, 0, [false; 3])));
        check::<Add2X<false>>(X, 0, x, p, |[a, b, _], p| three(int::add3_x(a as u32, b as u32, 0, [false; 3], [p[0], false])));
        check::<Add2X<true>>(X, 0, x, p, |[a, b, _], p| three(int::add3_x(a as u32, b as u32, 0, [false; 3], [p[0], false])));
    }

    #[test]
    fn products_carry_as_those_of_one_lane(x in prop::array::uniform6(prop::array::uniform8(word())), p: [u32; 2], mods in 0..16u32) {
        let mods = mods & (NEG[2] | X);
        let (neg, extended) = (mods & NEG[2] != 0, mods & X != 0);
        let low = |[a, b, c]: [u64; 3], p: [bool; 2]| int::mad(a as u32, b as u32, int::invert(c as u32, neg), p[0]);
        check::<MadX>(mods, 0, x, p, |s, p| (low(s, p).into(), [false; 2]));
        let wide = |[a, b, c]: [u64; 3], p: [bool; 2], signed| {
            let c = int::wide_addend(c, neg, extended);
            let (sum, carry) = int::mad_wide(a as u32, b as u32, c, signed, extended && p[0]);
            (sum, [carry, false])
        };
        check::<WideX<true>>(mods, 0, x, p, |s, p| wide(s, p, true));
        check::<WideX<false>>(mods, 0, x, p, |s, p| wide(s, p, false));
        check::<High<true>>(mods, 0, x, p, |s, p| (wide(s, p, true).0 >> 32, wide(s, p, true).1));
        check::<High<false>>(mods, 0, x, p, |s, p| (wide(s, p, false).0 >> 32, wide(s, p, false).1));
        let plain = |[a, b, c]: [u64; 3], signed| int::product(a as u32, b as u32, signed).wrapping_add(c);
        check::<Wide<true>>(0, 0, x, p, |s, _| (plain(s, true), [false; 2]));
        check::<Wide<false>>(0, 0, x, p, |s, _| (plain(s, false), [false; 2]));
    }

    #[test]
    fn addresses_are_those_of_one_lane(
        x in prop::array::uniform6(prop::array::uniform8(word())), p: [u32; 2], mods in 0..128u32, shift in 0..32u32,
    ) {
        check::<Lea>(mods, shift, x, p, |[a, b, c], p| {
            let (a, b) = (a as u32, b as u32);
            let high = if mods & SX32 != 0 { int::sign_word(a) } else { c as u32 };
            let shifted = int::lea_shift(a, high, shift, mods & HIGH != 0);
            let [na, nb, _] = negs(mods);
            three(if mods & X != 0 { int::lea_x(shifted, b, na, nb, p[0]) } else { int::lea(shifted, b, na, nb) })
        });
    }
}
