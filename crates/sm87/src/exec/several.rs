//! Drivers for operations on pairs of registers, and for operations that also set predicates.
#![allow(unsafe_code)]

use super::alu::pick;
use super::env::Env;
use super::host::wide;
use super::record::{Operation, Record, Recorder, named};
use super::rows::Src;
use super::uop::{Flow, Handlers, Uop};
use super::warp::Warp;
use sm87_simd::{Simd, in_values, load_part, part};

/// The operands that an operation reads, for as many lanes as a vector has.
#[derive(Clone, Copy)]
pub(crate) struct Sources<V> {
    /// The words of each source. The second is a copy of the first unless the source is a pair.
    pub a: [V; 2],
    pub b: [V; 2],
    pub c: [V; 2],
    /// The two predicate sources: bit `i` belongs to lane `i`.
    pub p: u32,
    pub q: u32,
}

/// The results of the operation, for the same lanes.
pub(crate) struct Results<V> {
    pub value: [V; 2],
    /// Masks for the two predicate destinations.
    pub first: V,
    pub second: V,
}

impl<V: Simd> Results<V> {
    /// Results without predicates.
    #[inline(always)]
    pub(crate) fn value(value: [V; 2]) -> Self {
        Results { value, first: V::splat(0), second: V::splat(0) }
    }

    /// Results that are one word and one predicate.
    #[inline(always)]
    pub(crate) fn with(value: V, first: V) -> Self {
        Results { value: [value, value], first, second: V::splat(0) }
    }
}

/// An operation of up to three sources, with up to two words and two conditions as results.
pub(crate) trait Several {
    /// Which sources are pairs of registers. Bit 0 stands for A, bit 1 for B, bit 2 for C.
    const PAIRS: u32 = 0;
    /// How many words the result has.
    const WORDS: usize = 1;
    /// How many predicates the operation sets.
    const CONDITIONS: usize = 1;

    fn eval<V: Simd>(u: &Uop, s: Sources<V>) -> Results<V>;
}

/// Where the operands of an instruction are.
struct SourceRows {
    /// The rows of each source. The second is the first unless the source is a pair.
    sources: [[*const u32; 2]; 3],
    p: u32,
    q: u32,
}

impl SourceRows {
    #[inline(always)]
    fn of<O: Several>(w: &Warp, u: &Uop) -> SourceRows {
        let rows = |s: Src, n: u32| {
            let low = w.src(s);
            [low, if O::PAIRS >> n & 1 != 0 { w.src(s.plus(1)) } else { low }]
        };
        SourceRows { sources: [rows(u.a, 0), rows(u.b, 1), rows(u.c, 2)], p: w.pred(u.ps), q: w.pred(u.pt) }
    }

    /// The results for lanes from `i` on, of which those in `on` count, or all if the value is `whole`.
    ///
    /// # Safety
    /// See [`super::uop::Handler`].
    #[inline(always)]
    unsafe fn eval<V: Simd, O: Several>(&self, u: &Uop, i: usize, on: u32, whole: bool) -> Results<V> {
        let [a, b, c] = &self.sources;
        // SAFETY: rows have 32 words; a pair was lowered as two rows.
        let s = unsafe {
            Sources {
                a: [load_part(a[0].add(i), on, whole), load_part(a[1].add(i), on, whole)],
                b: [load_part(b[0].add(i), on, whole), load_part(b[1].add(i), on, whole)],
                c: [load_part(c[0].add(i), on, whole), load_part(c[1].add(i), on, whole)],
                p: self.p >> i,
                q: self.q >> i,
            }
        };
        O::eval(u, s)
    }
}

#[inline(always)]
unsafe fn rows<V: Simd, O: Several, const FULL: bool>(w: &mut Warp, u: &Uop, exec: u32) -> Flow {
    let operands = SourceRows::of::<O>(w, u);
    let d = [w.dst(u.d), w.dst(u.d.plus(1))];
    let whole = FULL || in_values::<V>(exec);
    let (mut first, mut second) = (0, 0);
    let mut i = 0;
    while i < 32 {
        let on = if FULL { V::ALL } else { part::<V>(exec, i) };
        if !whole || on != 0 {
            // SAFETY: as for `SourceRows::eval`.
            let r = unsafe { operands.eval::<V, O>(u, i, on, whole) };
            for (d, &word) in d.iter().zip(&r.value).take(O::WORDS) {
                // SAFETY: rows have 32 words; a pair was lowered as two rows.
                unsafe {
                    let d = d.add(i);
                    let word = if whole { word } else { V::from_bits(on).select(word, V::load(d)) };
                    word.store(d);
                }
            }
            first |= r.first.to_bits() << i;
            second |= r.second.to_bits() << i;
        }
        i += V::LANES;
    }
    conditions::<O>(w, u, exec, first, second);
    Flow::Next
}

#[inline(always)]
fn conditions<O: Several>(w: &mut Warp, u: &Uop, exec: u32, first: u32, second: u32) {
    if O::CONDITIONS > 0 {
        w.set_pred(u.pd, exec, first);
    }
    if O::CONDITIONS > 1 {
        w.set_pred(u.pe, exec, second);
    }
}

unsafe fn rows_plain<O: Several, const FULL: bool>(w: &mut Warp, _: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    // SAFETY: the interpreter calls handlers with the warp whose arrays the micro-op was lowered for.
    unsafe { rows::<u32, O, FULL>(w, u, exec) }
}

wide! {
    unsafe fn rows_wide<O: Several, const FULL: bool>(w: &mut Warp, _: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        // SAFETY: as for `rows_plain`; `several` picks this handler only where the host has AVX2.
        unsafe { rows::<sm87_simd::avx2::Avx2, O, FULL>(w, u, exec) }
    }
}

/// Executes the operation for one lane.
#[inline(always)]
unsafe fn lane<O: Several>(w: &mut Warp, u: &Uop, exec: u32) -> Flow {
    let lane = exec.trailing_zeros();
    // SAFETY: as for `SourceRows::eval`.
    let r = unsafe { SourceRows::of::<O>(w, u).eval::<u32, O>(u, lane as usize, 1, true) };
    for (k, &word) in r.value.iter().enumerate().take(O::WORDS) {
        w.put(u.d.plus(k as u32), lane, word);
    }
    conditions::<O>(w, u, exec, r.first, r.second);
    Flow::Next
}

unsafe fn lane_plain<O: Several>(w: &mut Warp, _: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    // SAFETY: as for `rows_plain`.
    unsafe { lane::<O>(w, u, exec) }
}

wide! {
    unsafe fn lane_wide<O: Several>(w: &mut Warp, _: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
        // SAFETY: as for `rows_wide`.
        unsafe { lane::<O>(w, u, exec) }
    }
}

/// Executes it on the uniform datapath, whose registers hold the same value in every lane.
#[inline(always)]
unsafe fn uniform<O: Several>(w: &mut Warp, u: &Uop) -> Flow {
    // SAFETY: as for `SourceRows::eval`.
    let r = unsafe { SourceRows::of::<O>(w, u).eval::<u32, O>(u, 0, 1, true) };
    for (k, &word) in r.value.iter().enumerate().take(O::WORDS) {
        w.broadcast(u.d.plus(k as u32), word);
    }
    conditions::<O>(w, u, u32::MAX, r.first, r.second);
    Flow::Next
}

unsafe fn uniform_plain<O: Several>(w: &mut Warp, _: &mut Env<'_>, u: &Uop, _: u32) -> Flow {
    // SAFETY: as for `rows_plain`.
    unsafe { uniform::<O>(w, u) }
}

wide! {
    unsafe fn uniform_wide<O: Several>(w: &mut Warp, _: &mut Env<'_>, u: &Uop, _: u32) -> Flow {
        // SAFETY: as for `rows_wide`.
        unsafe { uniform::<O>(w, u) }
    }
}

/// Records an operation.
fn record<O: Several>(u: &Uop, r: &mut Recorder<'_>) {
    let pair = |s: Src, n: u32| {
        let low = r.source(s);
        [low, if O::PAIRS >> n & 1 != 0 { r.source(s.plus(1)) } else { low }]
    };
    let sources = Sources { a: pair(u.a, 0), b: pair(u.b, 1), c: pair(u.c, 2), p: named(u.ps), q: named(u.pt) };
    let Results { value, first, second } = O::eval(u, sources);
    for (k, word) in value.into_iter().enumerate().take(O::WORDS) {
        r.set_row(u.d.plus(k as u32), word);
    }
    if O::CONDITIONS > 0 {
        r.set_lanes(u.pd, first);
    }
    if O::CONDITIONS > 1 {
        r.set_lanes(u.pe, second);
    }
}

/// The handlers of an operation. A uniform operation is executed once for the warp.
pub(crate) fn several<O: Several>(is_uniform: bool) -> Operation {
    let record = Some(record::<O> as Record);
    if is_uniform {
        return Operation { run: Handlers::all(pick!(uniform_plain::<O>, uniform_wide::<O>)), record };
    }
    let run = Handlers {
        full: pick!(rows_plain::<O, true>, rows_wide::<O, true>),
        part: pick!(rows_plain::<O, false>, rows_wide::<O, false>),
        one: pick!(lane_plain::<O>, lane_wide::<O>),
    };
    Operation { run, record }
}

/// A function of doubles, one lane at a time, for the lanes of a mask. The other lanes are zero.
#[inline(always)]
pub(crate) fn map_pairs<V: Simd>(s: &Sources<V>, lanes: V, f: impl Fn(u64, u64, u64) -> u64) -> [V; 2] {
    let mut x = [[0u32; 8]; 6];
    let words = [s.a[0], s.a[1], s.b[0], s.b[1], s.c[0], s.c[1]];
    let (mut low, mut high) = ([0u32; 8], [0u32; 8]);
    // SAFETY: the arrays hold eight words each, and a value has eight lanes at most.
    unsafe {
        for (x, word) in x.iter_mut().zip(words) {
            word.store(x.as_mut_ptr());
        }
        for i in (0..V::LANES).filter(|i| lanes.to_bits() >> i & 1 != 0) {
            let pair = |n: usize| u64::from(x[n][i]) | u64::from(x[n + 1][i]) << 32;
            let r = f(pair(0), pair(2), pair(4));
            (low[i], high[i]) = (r as u32, (r >> 32) as u32);
        }
        [V::load(low.as_ptr()), V::load(high.as_ptr())]
    }
}

#[cfg(test)]
pub(crate) mod tests {
    //! The drivers: which lanes they write, and that all drivers give the same results.

    use super::*;
    use crate::exec::alu;
    use crate::exec::rows::{Dst, Pred, Row, Src, pred, rows_per_warp};
    use proptest::prelude::*;
    use sm87_simd::Double;

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

    /// An operation with one word as its result, for [`lanes`].
    pub(crate) struct One<O>(O);
    impl<O: super::super::alu::Alu> Several for One<O> {
        fn eval<V: Simd>(u: &Uop, s: Sources<V>) -> Results<V> {
            Results::value([O::eval(u, s.a[0], s.b[0], s.c[0], s.p), V::splat(0)])
        }
    }

    /// The words and conditions of eight lanes, computed in each way that this host has.
    pub(crate) fn lanes<O: Several>(
        mods: u32,
        imm: u32,
        x: [[u32; 8]; 6],
        preds: [u32; 2],
    ) -> Vec<Vec<(u64, [bool; 2])>> {
        let plain = eight::<u32, O>(mods, imm, x, preds);
        #[cfg(target_arch = "x86_64")]
        if crate::exec::host::avx2() {
            return vec![plain, eight::<sm87_simd::avx2::Avx2, O>(mods, imm, x, preds)];
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

    /// `a · b + c` of doubles, and of floats.
    struct Product;
    impl Several for Product {
        const PAIRS: u32 = 0b111;
        const WORDS: usize = 2;
        fn eval<V: Simd>(_: &Uop, s: Sources<V>) -> Results<V> {
            Results::value(V::double(Double::Fma, s.a, s.b, s.c))
        }
    }
    impl alu::Alu for Product {
        fn eval<V: Simd>(_: &Uop, a: V, b: V, c: V, _: u32) -> V {
            a.fma(b, c)
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    #[cfg_attr(miri, ignore = "Miri has none of the host's flags")]
    fn lanes_that_do_not_execute_cost_nothing() {
        use sm87_native::meets_denormals;
        use sm87_simd::avx2::Avx2;
        if !crate::exec::host::avx2() {
            return;
        }
        let drivers: [Driver; 2] = [rows::<Avx2, Product, false>, alu::rows::<Avx2, Product, false>];
        for (driver, active) in
            drivers.into_iter().flat_map(|driver| [7, 0x8000_0001, u32::MAX].map(|active| (driver, active)))
        {
            // As floats and as doubles, such words are denormals if they are small.
            let word = |lane: u32| if active >> lane & 1 == 1 && active != u32::MAX { 0x4000_0000 } else { 1 + lane };
            let mut rows = vec![Row(std::array::from_fn(|lane| word(lane as u32))); rows_per_warp(10)];
            let mut w = Warp::new(0);
            w.begin(u32::MAX, 0, &mut rows, &[], &[]);
            // SAFETY: the warp has the registers that the micro-op names.
            let met = meets_denormals(|| assert_eq!(unsafe { driver(&mut w, &uop(0, 0), active) }, Flow::Next));
            assert_eq!(met, active == u32::MAX, "lanes {active:x}");
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
            use sm87_simd::avx2::Avx2;
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
}
