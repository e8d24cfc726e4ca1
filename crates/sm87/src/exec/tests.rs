//! Compares the vector arithmetic with the scalar arithmetic of `sm87_num`.
#![allow(unsafe_code)]

mod effects;

use super::simd::Simd;
use proptest::prelude::*;
use sm87_num::Round;
use sm87_num::f32::{self as num, Mode};
use sm87_num::half::Kind;

/// Floats with random bits, and floats at the edges of the format.
pub(super) fn float() -> impl Strategy<Value = u32> {
    const EDGES: [u32; 12] = [
        0,
        1,
        0x7f_ffff,
        0x80_0000,
        0x3f80_0000,
        0x3f80_0001,
        0x7f7f_ffff,
        0x7f80_0000,
        0x7f80_0001,
        0x7fff_ffff,
        0x4b80_0000,
        0x3300_0000,
    ];
    let edge = (0..EDGES.len(), any::<bool>()).prop_map(|(i, neg)| EDGES[i] | u32::from(neg) << 31);
    // Numbers that are near the range of 16-bit floats.
    let small = (any::<u32>(), 0x64u32..0x94).prop_map(|(x, e)| x & 0x807f_ffff | e << 23);
    prop_oneof![any::<u32>(), edge, small]
}

/// Computes eight lanes with `V`, as many at a time as it has.
fn lanes<V: Simd>(x: [[u32; 8]; 3], f: impl Fn(V, V, V) -> V) -> [u32; 8] {
    let mut out = [0; 8];
    for i in (0..8).step_by(V::LANES) {
        // SAFETY: the arrays hold `LANES` words from `i`, because `LANES` divides 8.
        unsafe {
            let [a, b, c] = [0, 1, 2].map(|n| V::load(x[n].as_ptr().add(i)));
            f(a, b, c).store(out.as_mut_ptr().add(i));
        }
    }
    out
}

fn check<V: Simd>(x: [[u32; 8]; 3]) {
    let plain = Mode::default();
    let each = |f: &dyn Fn(u32, u32, u32) -> u32| std::array::from_fn(|i| f(x[0][i], x[1][i], x[2][i]));
    assert_eq!(lanes::<V>(x, |a, b, _| a.fadd(b).canonical()), each(&|a, b, _| num::add(a, b, plain)));
    let scale = num::Product::from_bits(false, 4);
    assert_eq!(lanes::<V>(x, |a, b, _| a.fmul(b).canonical()), each(&|a, b, _| num::mul(a, b, plain, scale)));
    assert_eq!(lanes::<V>(x, |a, b, c| a.fma(b, c).canonical()), each(&|a, b, c| num::fma(a, b, c, plain, false)));
    assert_eq!(lanes::<V>(x, |a, _, _| a.flush()), each(&|a, _, _| num::flush(a)));
    let sat = Mode { sat: true, ..plain };
    assert_eq!(lanes::<V>(x, |a, b, _| a.fadd(b).saturate()), each(&|a, b, _| num::add(a, b, sat)));
    let ftz = Mode { ftz: true, ..plain };
    let flushed = lanes::<V>(x, |a, b, c| a.flush().fma(b.flush(), c.flush()).flush().canonical());
    // The engine computes a lane again if the result is the smallest normal number, because that may come from rounding
    // as a denormal.
    let again = |n: u32| n & 0x7fff_ffff == 0x0080_0000;
    let scalars: [u32; 8] = each(&|a, b, c| num::fma(a, b, c, ftz, false));
    let wanted: [u32; 8] = std::array::from_fn(|i| if again(flushed[i]) { flushed[i] } else { scalars[i] });
    assert_eq!(flushed, wanted);
    let mask = |on: bool| u32::from(on).wrapping_neg();
    assert_eq!(lanes::<V>(x, |a, b, _| a.flt(b)), each(&|a, b, _| mask(num::compare(a, b, 1, false))));
    assert_eq!(lanes::<V>(x, |a, b, _| a.feq(b)), each(&|a, b, _| mask(num::compare(a, b, 2, false))));
    assert_eq!(lanes::<V>(x, |a, b, _| a.funord(b)), each(&|a, b, _| mask(num::compare(a, b, 8, false))));
    assert_eq!(lanes::<V>(x, |a, b, _| a.lt(b)), each(&|a, b, _| mask((a as i32) < b as i32)));
    assert_eq!(lanes::<V>(x, |a, b, _| a.ltu(b)), each(&|a, b, _| mask(a < b)));
    assert_eq!(lanes::<V>(x, |a, _, _| a.i2f()), each(&|a, _, _| (a as i32 as f32).to_bits()));
    let half = |n: u32| u32::from(Kind::F16.round_f32(f32::from_bits(n), Round::Rn));
    assert_eq!(lanes::<V>(x, |a, _, _| a.to_halves()), each(&|a, _, _| half(a)));
    let count = |n: u32| n % 40;
    let shifts = [x[0], x[1].map(count), x[2]];
    let shift = |f: &dyn Fn(u32, u32) -> u32| std::array::from_fn(|i| f(shifts[0][i], shifts[1][i]));
    assert_eq!(lanes::<V>(shifts, |a, n, _| a.shl(n)), shift(&|a, n| a.checked_shl(n).unwrap_or(0)));
    assert_eq!(lanes::<V>(shifts, |a, n, _| a.shr(n)), shift(&|a, n| a.checked_shr(n).unwrap_or(0)));
    assert_eq!(lanes::<V>(shifts, |a, n, _| a.sar(n)), shift(&|a, n| (i64::from(a as i32) >> n) as u32));
    let chosen = lanes::<V>(x, |a, b, c| a.lt(b).select(b, c));
    assert_eq!(chosen, each(&|a, b, c| if (a as i32) < b as i32 { b } else { c }));
}

/// A sum that is less than the smallest normal number if it is rounded to 24 bits, but rounds to that number as a
/// denormal.
#[test]
fn a_sum_just_below_the_smallest_normal_number_is_computed_again() {
    let lane = [0xb13e_99ca, 0x022b_eb6a, 0x0080_0000];
    let ftz = Mode { ftz: true, ..Mode::default() };
    assert_eq!(num::fma(lane[0], lane[1], lane[2], ftz, false), 0);
    check::<u32>(lane.map(|word| [word; 8]));
}

proptest! {
    #[test]
    fn vectors_compute_what_scalars_do(x in prop::array::uniform3(prop::array::uniform8(float()))) {
        check::<u32>(x);
        #[cfg(target_arch = "x86_64")]
        if super::host::avx2() {
            check::<super::avx2::Avx2>(x);
        }
    }
}
