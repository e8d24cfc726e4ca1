//! The drivers: which lanes they write, and that all drivers give the same results.

use super::*;
use crate::exec::rows::{Dst, Pred, Row, Src, pred, rows_per_warp};
use proptest::prelude::*;

fn nothing(_: &mut Warp, _: &mut Env<'_>, _: &Uop, _: u32) -> Flow {
    Flow::Next
}

/// A micro-op: D is R0 and R1, A is R4 and R5, B is R8 and R9, C is R12 and R13, and the predicates are P0 to P3.
pub(crate) fn uop(mods: u32, imm: u32) -> Uop {
    Uop {
        run: Handlers::all(nothing),
        d: Dst::reg(0),
        a: Src::reg(4),
        b: Src::reg(6),
        c: Src::reg(8),
        imm,
        mods,
        guard: Pred::TRUE,
        ps: Pred { index: 0, invert: 0 },
        pt: Pred { index: 1, invert: 0 },
        pd: 2,
        pe: 3,
        at: 0,
        registers: 10,
        aux: 0,
    }
}

/// The words and conditions of eight lanes, computed in each way that this host has.
pub(crate) fn lanes<O: Several>(mods: u32, imm: u32, x: [[u32; 8]; 6], preds: [u32; 2]) -> Vec<Vec<(u64, [bool; 2])>> {
    let plain = eight::<u32, O>(mods, imm, x, preds);
    #[cfg(target_arch = "x86_64")]
    if crate::exec::host::avx2() {
        return vec![plain, eight::<crate::exec::avx2::Avx2, O>(mods, imm, x, preds)];
    }
    vec![plain]
}

fn eight<V: Simd, O: Several>(mods: u32, imm: u32, x: [[u32; 8]; 6], [p, q]: [u32; 2]) -> Vec<(u64, [bool; 2])> {
    let u = uop(mods, imm);
    let mut out = Vec::new();
    for i in (0..8).step_by(V::LANES) {
        // SAFETY: the arrays hold `LANES` words from `i` on, because `LANES` divides 8.
        let [a, b, c, d, e, f] = x.map(|x| unsafe { V::load(x.as_ptr().add(i)) });
        let r = O::eval(&u, Sources { a: [a, b], b: [c, d], c: [e, f], p: p >> i, q: q >> i });
        let (mut low, mut high) = ([0; 8], [0; 8]);
        // SAFETY: the arrays hold eight words.
        unsafe {
            r.value[0].store(low.as_mut_ptr());
            r.value[1].store(high.as_mut_ptr());
        }
        for lane in 0..V::LANES {
            let on = |mask: V| mask.to_bits() >> lane & 1 != 0;
            out.push((u64::from(low[lane]) | u64::from(high[lane]) << 32, [on(r.first), on(r.second)]));
        }
    }
    out
}

/// Adds A and C as pairs of words, sets the first condition where B is odd, and the second where the first predicate is set.
struct Sample;
impl Several for Sample {
    const PAIRS: u32 = 0b101;
    const WORDS: usize = 2;
    const CONDITIONS: usize = 2;
    fn eval<V: Simd>(_: &Uop, s: Sources<V>) -> Results<V> {
        let value = V::add_wide(s.a, s.c).0;
        Results { value, first: s.b[0].shl(V::splat(31)).sar(V::splat(31)), second: V::from_bits(s.p) }
    }
}

/// A driver: it executes a micro-op for the lanes in a mask.
type Driver = unsafe fn(&mut Warp, &Uop, u32) -> Flow;

/// The drivers that can execute for these lanes.
fn drivers(exec: u32) -> Vec<Driver> {
    let mut drivers: Vec<Driver> = vec![rows::<u32, Sample, false>];
    if exec == u32::MAX {
        drivers.push(rows::<u32, Sample, true>);
    }
    if exec.is_power_of_two() {
        drivers.push(lane::<Sample>);
    }
    #[cfg(target_arch = "x86_64")]
    if crate::exec::host::avx2() {
        use crate::exec::avx2::Avx2;
        drivers.push(rows::<Avx2, Sample, false>);
        if exec == u32::MAX {
            drivers.push(rows::<Avx2, Sample, true>);
        }
    }
    drivers
}

proptest! {
    #[test]
    fn only_lanes_that_execute_are_written(
        seed: u64,
        p in prop::array::uniform4(any::<u32>()),
        exec in prop_oneof![Just(u32::MAX), (0..32u32).prop_map(|lane| 1 << lane), 1..u32::MAX],
    ) {
        let mut noise = seed | 1;
        let mut words = || {
            Row(std::array::from_fn(|_| {
                noise = noise.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                (noise >> 32) as u32
            }))
        };
        let before: Vec<Row> = (0..rows_per_warp(10)).map(|_| words()).collect();
        let u = uop(0, 0);
        let at = |s: Src| s.offset() / 32;
        for driver in drivers(exec) {
            let mut rows = before.clone();
            let mut w = Warp::new(0);
            w.begin(u32::MAX, 0, &mut rows, &[], &[]);
            w.preds[..4].copy_from_slice(&p);
            // SAFETY: the warp has the registers that the micro-op names.
            let flow = unsafe { driver(&mut w, &u, exec) };
            prop_assert_eq!(flow, Flow::Next);
            let (preds, expected) = (w.preds, before.clone());
            for lane in 0..32 {
                let pair = |s: Src| u64::from(before[at(s)].0[lane]) | u64::from(before[at(s.plus(1))].0[lane]) << 32;
                let on = exec >> lane & 1 != 0;
                let sum = pair(u.a).wrapping_add(pair(u.c));
                let want = if on { sum } else { pair(u.d.as_src()) };
                let found = [0, 1].map(|n| rows[at(u.d.plus(n).as_src())].0[lane]);
                prop_assert_eq!(u64::from(found[0]) | u64::from(found[1]) << 32, want, "lane {}", lane);
                let first = if on { before[at(u.b)].0[lane] & 1 } else { p[2] >> lane & 1 };
                let second = if on { p[0] >> lane & 1 } else { p[3] >> lane & 1 };
                prop_assert_eq!([preds[2] >> lane & 1, preds[3] >> lane & 1], [first, second], "lane {}", lane);
            }
            for (n, (row, old)) in rows.iter().zip(&expected).enumerate() {
                let written = n == at(u.d.as_src()) || n == at(u.d.plus(1).as_src());
                prop_assert!(written || row.0 == old.0, "row {} was written", n);
            }
            prop_assert_eq!(preds[usize::from(pred::PT)], u32::MAX);
        }
    }
}
