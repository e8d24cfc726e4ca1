//! Vectors of doubles against the definitions for one lane.

use super::*;
use crate::exec::several::tests::lanes;
use proptest::prelude::*;

/// Doubles with any bits, and often those at the edges of the format.
fn double() -> impl Strategy<Value = u64> {
    const EDGES: [u64; 10] = [
        0,
        1,
        0x000f_ffff_ffff_ffff,
        0x0010_0000_0000_0000,
        0x3ff0_0000_0000_0000,
        0x7fef_ffff_ffff_ffff,
        0x7ff0_0000_0000_0000,
        0x7ff0_0000_0000_0001,
        0x7ff8_0000_0000_1234,
        0x3ff0_0000_0000_0001,
    ];
    let edge = (prop::sample::select(EDGES.to_vec()), any::<bool>()).prop_map(|(x, neg)| x | u64::from(neg) << 63);
    prop_oneof![any::<u64>(), edge, any::<f64>().prop_map(f64::to_bits), (-4.0..4.0f64).prop_map(f64::to_bits)]
}

fn words(x: [[u64; 8]; 3]) -> [[u32; 8]; 6] {
    std::array::from_fn(|n| x[n / 2].map(|x| (x >> (32 * (n % 2))) as u32))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn arithmetic_is_that_of_one_lane(x in prop::array::uniform3(prop::array::uniform8(double())), mods in 0..64u32, round in 0..4u32) {
        let (words, mods) = (words(x), mods | round << ROUND);
        let sign = |n: usize, x: u64| num::modify(x, mods & ABS[n] != 0, mods & NEG[n] != 0);
        let round = Round::from_bits(round);
        let all = [lanes::<Arithmetic<ADD>>, lanes::<Arithmetic<MUL>>, lanes::<Arithmetic<FMA>>];
        for (op, run) in all.into_iter().enumerate() {
            for found in run(mods, 0, words, [0; 2]) {
                for (i, (value, _)) in found.into_iter().enumerate() {
                    let (a, b, c) = (sign(0, x[0][i]), sign(1, x[1][i]), sign(2, x[2][i]));
                    let want = [num::add(a, b, round), num::mul(a, b, round), num::fma(a, b, c, round)][op];
                    prop_assert_eq!(value, want, "operation {} of {:#x} {:#x} {:#x}", op, a, b, c);
                }
            }
        }
    }

    #[test]
    fn comparisons_are_those_of_one_lane(
        x in prop::array::uniform3(prop::array::uniform8(double())), mods in 0..16u32, code in 1..15u32, how in 0..3u32, p: u32,
    ) {
        let mods = mods | code << CODE;
        let sign = |n: usize, x: u64| num::modify(x, mods & ABS[n] != 0, mods & NEG[n] != 0);
        for found in lanes::<Relate>(mods, how, words(x), [p, 0]) {
            for (i, (_, conditions)) in found.into_iter().enumerate() {
                let hit = num::compare(sign(0, x[0][i]), sign(1, x[1][i]), code as u8);
                let on = p >> i & 1 != 0;
                let combine = |x: bool| [x & on, x | on, x ^ on][how as usize];
                prop_assert_eq!(conditions, [combine(hit), combine(!hit)], "lane {} of {:x?}", i, x);
            }
        }
    }
}
