//! What compilers seldom emit.

use crate::kernel;
use crate::support::{Arg, Gpu};

fn saturate(x: i32, low: i32, high: i32, bits: u32) -> u32 {
    x.clamp(low, high) as u32 & ((1 << bits) - 1)
}

/// Two halves of `a` times two bytes of `b` from bit `at`, added to `c`.
fn dot(a: [i64; 2], b: [i64; 2], c: u32) -> u32 {
    (a[0] * b[0] + a[1] * b[1]) as u32 + c
}

#[test]
fn seldom_used_instructions() {
    let mut gpu = Gpu::default();
    let memory: Vec<u64> = (0..64).map(|i| 0x2222 * i).collect();
    let words = memory.iter().flat_map(|&x| [x as u32, (x >> 32) as u32]).collect::<Vec<u32>>();
    let (dm, out) = (gpu.upload(&words), gpu.alloc(4 * 64 * 64));
    let (a, b, c) = (0x7123_8456u32 as i32, 0x81fe_7f03u32 as i32, 2);
    let args = [Arg::Ptr(&out), Arg::Ptr(&dm), Arg::Int(a), Arg::Int(b), Arg::Int(c)];
    gpu.run(&kernel!("oddities"), [1, 1, 1], [64, 1, 1], &args).unwrap();
    let got = out.read::<u32>(64 * 64);
    let stored = dm.read::<u32>(128);
    for t in 0..64u32 {
        let o = &got[64 * t as usize..];
        let odd = t & 1 == 1;
        assert_eq!(o[0], (if odd { 0x2222 } else { 0x1111 }) * ((t & 15) + 1), "load of thread {t}");
        assert_eq!(o[1], if odd { 2 } else { 1 }, "space of thread {t}");
        let (halves, bytes) = (a.wrapping_add(t as i32), b.to_le_bytes());
        let signed = [i64::from(halves as i16), i64::from(halves >> 16)];
        assert_eq!(o[2], dot(signed, [bytes[0] as i8, bytes[1] as i8].map(i64::from), c as u32));
        let unsigned = [i64::from(halves as u16), i64::from(halves as u32 >> 16)];
        assert_eq!(o[3], dot(unsigned, [bytes[2], bytes[3]].map(i64::from), c as u32));
        let t = t as i32;
        let pair = |x, y, low, high, bits| saturate(x, low, high, bits) << bits | saturate(y, low, high, bits);
        assert_eq!(o[4], pair(a.wrapping_mul(t - 8), b, -32768, 32767, 16));
        assert_eq!(o[5], (c as u32) << 16 | pair(t - 5, t * 20, 0, 255, 8));
        assert_eq!(o[6], (c as u32) << 16 | pair(t * -20, t * 20, -128, 127, 8));
        assert_eq!(o[7], 23, "threads above 40");
        let (t, at) = (t as u32, (t as u32 + 32) & 63);
        let written = (32..48).contains(&at) && at & 1 == 0;
        assert_eq!(o[8], if written { 7 } else { 0x1111 * at }, "shared word {at}");
        let difference = |i: usize| u32::from(a.to_le_bytes()[i].abs_diff(b.to_le_bytes()[i]));
        assert_eq!(o[9], (0..4).map(difference).sum::<u32>() + t);
        if (32..48).contains(&t) {
            assert_eq!(stored[2 * t as usize], if odd { 7 } else { 0x2222 * t }, "global word {t}");
        }
    }
}

/// Programs may count on CTAs being on the GPU together, as many as it holds.
#[test]
fn a_cta_waits_for_a_later_one() {
    for threads in [1, 3] {
        let mut gpu = Gpu { threads, budget: Some(1_000_000_000), ..Gpu::default() };
        let (flag, out) = (gpu.alloc(4), gpu.alloc(4 * 40));
        gpu.run(&kernel!("later_cta"), [40, 1, 1], [1, 1, 1], &[Arg::Ptr(&flag), Arg::Ptr(&out)]).unwrap();
        assert_eq!(out.read::<u32>(1), [40]);
    }
}
