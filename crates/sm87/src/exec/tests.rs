//! Compares the vector arithmetic with the scalar arithmetic of `sm87_num`.
#![allow(unsafe_code)]

use proptest::prelude::*;
use sm87_num::Round;
use sm87_num::f32::{self as num, Mode};
use sm87_num::half::Kind;
use sm87_simd::Simd;

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
            check::<sm87_simd::avx2::Avx2>(x);
        }
    }
}

mod moved {
    //! Shifts of two words and permutations of bytes.

    use super::*;
    use crate::exec::ops::logic::{Funnel, PermuteFixed, shift};
    use crate::exec::several::tests::{One, lanes};
    use sm87_num::bits;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn shifts_are_those_of_one_lane(words in prop::array::uniform2(prop::array::uniform8(any::<u32>())), counts in prop::array::uniform8(0..70u32), far: u32) {
            // A count may be any number, but most of the large ones do the same.
            let counts = counts.map(|n| if n == 69 { far } else { n });
            for mods in 0..32 {
                for found in lanes::<One<Funnel>>(mods, 0, [words[0], words[0], counts, counts, words[1], words[1]], [0; 2]) {
                    for (lane, (word, _)) in found.into_iter().enumerate() {
                        let want = bits::shf(words[0][lane], counts[lane], words[1][lane], shift(mods));
                        prop_assert_eq!(word as u32, want, "{:#x} by {} with {:#x}", words[1][lane], counts[lane], mods);
                    }
                }
            }
        }
    }

    /// The bytes of the words differ, and half of them have their top bit set.
    #[test]
    fn permutations_are_those_of_one_lane() {
        let (a, c) = (0x83_12_f1_04, 0x77_e6_55_c8);
        for nibbles in 0..0x1_0000 {
            for found in
                lanes::<One<PermuteFixed>>(0, nibbles, [[a; 8], [a; 8], [0; 8], [0; 8], [c; 8], [c; 8]], [0; 2])
            {
                assert!(found.iter().all(|&(word, _)| word as u32 == bits::prmt(a, nibbles, c)), "{nibbles:#06x}");
            }
        }
    }
}

mod halves {
    //! Products of signed halves.

    use super::*;
    use crate::exec::alu::Alu;
    use crate::exec::several::tests::{One, lanes};

    struct Dot;
    impl Alu for Dot {
        fn eval<V: Simd>(_: &crate::exec::uop::Uop, a: V, b: V, _: V, _: u32) -> V {
            a.dot2(b)
        }
    }

    proptest! {
        #[test]
        fn both_are_added(words in prop::array::uniform2(prop::array::uniform8(prop_oneof![any::<u32>(), Just(0x8000_8000)]))) {
            let [a, b] = words;
            for found in lanes::<One<Dot>>(0, 0, [a, a, b, b, a, b], [0; 2]) {
                for (lane, (word, _)) in found.into_iter().enumerate() {
                    let product = |at: u32| i32::from((a[lane] >> at) as i16) * i32::from((b[lane] >> at) as i16);
                    prop_assert_eq!(word as u32, product(0).wrapping_add(product(16)) as u32);
                }
            }
        }
    }
}

mod functions {
    //! What the multi-function unit computes.

    use super::*;
    use crate::exec::alu::{self, Alu};
    use crate::exec::ops::mufu::{ABS, Mufu, NEG};
    use crate::exec::several::tests::uop;
    use crate::exec::translate::tests::executed;
    use sm87_num::mufu::{self, Function};

    fn eight<V: Simd, const F: u8>(mods: u32, x: [u32; 8]) -> [u32; 8] {
        let mut out = [0; 8];
        for i in (0..8).step_by(V::LANES) {
            // SAFETY: the arrays have `LANES` words from `i` on, because `LANES` divides 8.
            unsafe {
                let x = V::load(x.as_ptr().add(i));
                Mufu::<F>::eval(&uop(mods, F.into()), x, x, x, 0).store(out.as_mut_ptr().add(i));
            }
        }
        out
    }

    /// Compares the lanes with [`mufu::mufu`], which is compared with a GPU.
    fn alike<const F: u8>(x: [u32; 8]) {
        for mods in 0..4 {
            let one = |x| num::modify(x, mods & ABS != 0, mods & NEG != 0);
            let want = x.map(|x| Function::from_bits(F.into()).map_or(num::NAN, |f| mufu::mufu(f, one(x))));
            assert_eq!(eight::<u32, F>(mods, x), want, "{F} of {x:x?}, modifiers {mods}");
            #[cfg(target_arch = "x86_64")]
            if crate::exec::host::avx2() {
                assert_eq!(eight::<sm87_simd::avx2::Avx2, F>(mods, x), want, "{F} of {x:x?}, modifiers {mods}");
                let found = executed(&uop(mods, F.into()), alu::record::<Mufu<F>>, &[x; 3]);
                assert_eq!(found, Some(want), "{F} of {x:x?}, modifiers {mods}, translated");
            }
        }
    }

    fn all_alike(x: [u32; 8]) {
        let single = [alike::<0>, alike::<1>, alike::<2>, alike::<3>, alike::<4>, alike::<5>, alike::<8>, alike::<9>];
        single.into_iter().for_each(|alike| alike(x));
        [alike::<6>, alike::<7>].into_iter().for_each(|alike| alike(x));
    }

    /// A word of each exponent with several significands, and words at random.
    #[test]
    fn several_lanes_are_computed_as_one_is() {
        for exponent in 0..512u32 {
            let first = exponent << 23;
            all_alike([0, 1, 0x1_ffff, 0x2_0000, 0x3f_ffff, 0x40_0000, 0x7f_fffe, 0x7f_ffff].map(|low| first | low));
        }
        // The generator of Knuth's MMIX: the upper half of its state.
        let mut state = 1u64;
        let mut word = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 32) as u32
        };
        for _ in 0..20_000 {
            all_alike(std::array::from_fn(|_| word()));
            // Around one, where arguments of sines and powers usually are.
            all_alike(std::array::from_fn(|_| word() & 0x807f_ffff | (110 + word() % 28) << 23));
        }
    }
}

mod runs {
    //! Runs of FFMA and FADD against one instruction after another.

    use super::*;
    use crate::exec::floats::{added, multiplied};
    use crate::exec::image::Image;
    use crate::exec::rows::{Dst, Row, rows_per_warp};
    use crate::exec::runs::Run;
    use crate::word::Word;

    /// The registers of the programs. They are few, so that instructions read and write what others have written.
    const REGISTERS: usize = 6;

    /// The registers of an instruction: its destination and three sources.
    type Instruction = [u64; 4];

    fn multiply([d, a, b, c]: Instruction) -> Word {
        Word::new(0x7223 | d << 16 | a << 24 | b << 32, 0x050f_e200_0000_0000 | c)
    }

    fn sum([d, a, b, _]: Instruction) -> Word {
        Word::new(0x7221 | d << 16 | a << 24 | b << 32, 0x000f_e200_0000_0000)
    }

    /// The runs of a program, which ends after these instructions.
    fn runs(program: &[Word]) -> Vec<Run> {
        let exit = Word::new(0x794d, 0x000f_ea00_0380_0000);
        let image = Image::build(0, vec![0], &mut |n| program.get(n as usize).copied().or((n < 64).then_some(exit)));
        image.runs[..program.len()].to_vec()
    }

    type File = [[u32; 32]; REGISTERS];

    /// What a run makes of the registers of a warp.
    fn executed(body: unsafe fn(*mut u32, *const Run, usize, u32), runs: &[Run], registers: &File, exec: u32) -> File {
        let mut rows = vec![Row::ZERO; rows_per_warp(REGISTERS as u32)];
        let at = Dst::reg(0).offset() / 32;
        for (row, words) in rows[at..].iter_mut().zip(registers) {
            row.0 = *words;
        }
        // SAFETY: the file has the rows of all registers of these instructions.
        unsafe { body(rows.as_mut_ptr().cast(), runs.as_ptr(), runs.len(), exec) };
        std::array::from_fn(|n| rows[at + n].0)
    }

    /// What the instructions make of them one after another.
    fn expected(program: &[Instruction], registers: &File, exec: u32, f: impl Fn(u32, u32, u32) -> u32) -> File {
        let mut file = *registers;
        for &[d, a, b, c] in program {
            for lane in (0..32).filter(|lane| exec >> lane & 1 != 0) {
                let [x, y, z] = [a, b, c].map(|n| file.get(n as usize).map_or(0, |row| row[lane]));
                if let Some(row) = file.get_mut(d as usize) {
                    row[lane] = f(x, y, z);
                }
            }
        }
        file
    }

    fn instruction() -> impl Strategy<Value = Instruction> {
        // R255 is RZ.
        let register = || prop_oneof![9 => 0..REGISTERS as u64, 1 => Just(255)];
        [register(), register(), register(), register()]
    }

    fn file() -> impl Strategy<Value = File> {
        let word = prop_oneof![float(), 0x3f00_0000..0x4080_0000u32];
        prop::collection::vec(word, 32 * REGISTERS)
            .prop_map(|words| std::array::from_fn(|n| std::array::from_fn(|lane| words[32 * n + lane])))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 400 }))]

        #[test]
        fn products_are_those_of_one_instruction_after_another(
            program in prop::collection::vec(instruction(), 1..24), before in file(),
        ) {
            let runs = runs(&program.iter().copied().map(multiply).collect::<Vec<_>>());
            prop_assert_eq!(usize::from(runs[0].multiplying), program.len());
            let want = expected(&program, &before, u32::MAX, |x, y, z| num::fma(x, y, z, Mode::default(), false));
            prop_assert_eq!(executed(multiplied::<u32>, &runs, &before, u32::MAX), want);
            #[cfg(target_arch = "x86_64")]
            if crate::exec::host::avx2() {
                let body = multiplied::<sm87_simd::avx2::Avx2>;
                prop_assert_eq!(executed(body, &runs, &before, u32::MAX), want);
            }
        }

        #[test]
        fn sums_are_those_of_one_instruction_after_another(
            program in prop::collection::vec(instruction(), 1..24), before in file(), exec in prop::sample::select(vec![0xffff, 0xffff_0000, u32::MAX]),
        ) {
            let runs = runs(&program.iter().copied().map(sum).collect::<Vec<_>>());
            prop_assert_eq!(usize::from(runs[0].adding), program.len());
            let want = expected(&program, &before, exec, |x, y, _| num::add(x, y, Mode::default()));
            prop_assert_eq!(executed(added::<u32>, &runs, &before, exec), want);
            #[cfg(target_arch = "x86_64")]
            if crate::exec::host::avx2() {
                prop_assert_eq!(executed(added::<sm87_simd::avx2::Avx2>, &runs, &before, exec), want);
            }
        }
    }

    #[test]
    fn products_share_a_factor_until_one_of_them_writes_it() {
        let program =
            [[3, 0, 1, 3], [4, 0, 2, 4], [0, 0, 1, 5], [3, 0, 1, 3], [4, 1, 2, 4], [5, 1, 2, 5]].map(multiply);
        assert_eq!(
            runs(&program).iter().map(|run| run.shares).collect::<Vec<_>>(),
            [true, true, false, false, true, false]
        );
    }
}

mod effects {
    //! The engine takes from a row what an instruction does. So it knows a row that is not in the table.

    use crate::exec::chains;
    use crate::exec::dispatch::lower;
    use crate::exec::known::{Found, Known};
    use crate::exec::live::Rows;
    use crate::exec::lower::{Lower, Pool};
    use crate::exec::rows::Dst;
    use crate::exec::straight;
    use crate::exec::uop::Uop;
    use crate::exec::warp::Warp;
    use crate::isa::memory::{Access, Change, Memory, Space};
    use crate::isa::{self, Across, Bits, Does, Effects, Row};
    use crate::word::Word;

    /// LDG.E R4, desc[UR6][R2.64], and the same with an opcode that no row of the table has.
    const LOAD: Word = Word::new(0x0000_0006_0204_7981, 0x000e_a220_0c1e_1900);
    const NEW: Word = Word::new(0x0000_0006_0204_79fd, 0x000e_a220_0c1e_1900);
    const NUMBER: u16 = 0x1fd;

    /// A row for loads with that opcode.
    fn load() -> Row {
        Row { base: NUMBER, ..*isa::lookup(LOAD).expect("LDG") }
    }

    /// The micro-op of the instruction, and the rows that it writes.
    fn micro_op(row: &Row) -> (Uop, std::ops::Range<usize>) {
        let mut pool = Pool::default();
        let mut l = Lower::new(NEW, Some(row), (0, 0), &mut pool);
        let u = lower(row.op, &mut l).expect("a load");
        (u, l.written.clone())
    }

    /// The loads of a chain, and the lengths of runs, in a program of three such instructions.
    fn found(row: &Row) -> ([u8; 2], u16) {
        let (u, written) = micro_op(row);
        let mut uops = [0, 1, 2].map(|at| Uop { at, imm: u.imm + 4 * at, ..u });
        let rows = [Some(row); 3];
        chains::link(&mut uops, &rows, &[written.clone(), written.clone(), written], |_| false);
        let runs = straight::find(&uops, &rows);
        ([runs[0].straight, runs[0].loading], uops[1].aux)
    }

    #[test]
    fn lanes_that_walk_through_memory_are_known_by_their_step() {
        let (u, _) = micro_op(&load());
        let (w, mut known) = (Warp::new(0), Known::NOTHING);
        let chain = known.of(&u, 4);
        let mut step = |u: &Uop, at: usize| {
            chain.keep(&w, u, u32::MAX, Found { first: (0x10_0000 + at) as *mut u8, back: 0, ahead: 0 });
            chain.step
        };
        // Two turns of a loop, a turn of the next CTA, and another loop.
        assert_eq!([0, 128, 256, 0x4000, 0x4080, 0x4040].map(|at| step(&u, at)), [0, 128, 128, 128, 128, -64]);
        assert_eq!([0, 0x4000, 0x8000, 0x8004].map(|at| step(&Uop { at: 5, ..u }, at)), [0; 4]);
    }

    #[test]
    fn a_new_row_is_executed_together_with_others_as_its_effects_say() {
        let row = load();
        assert_eq!(found(&row), ([3, 2], 1), "loads of one chain in one run; the last one has nothing behind it");
        let effects = Effects { straight: false, ..row.effects };
        assert_eq!(found(&Row { effects, ..row }), ([0, 1], 0), "an instruction that is executed by itself");
        let memory = Memory { space: Space::Generic, ..*row.effects.memory().expect("a load") };
        let effects = Effects { does: Does::Accesses(memory), ..row.effects };
        assert_eq!(found(&Row { effects, ..row }), ([3, 0], 0), "only loads from global memory are in chains");
    }

    #[test]
    fn a_new_row_polls_as_its_memory_says() {
        let row = load();
        let strong = Bits::new(77, 4).with(NEW, 10);
        assert!(row.may_poll(strong) && !row.may_poll(NEW), "a load that nothing orders");
        assert!(!row.may_poll(Bits::new(16, 8).with(strong, 255)), "nobody looks at the result");
        let with = |access| {
            let memory = Memory { access, ..*row.effects.memory().expect("a load") };
            Row { effects: Effects { does: Does::Accesses(memory), ..row.effects }, ..row }
        };
        assert!(with(Access::Change(Change::Swap)).may_poll(NEW) && !with(Access::Store).may_poll(strong));
        assert!(!with(Access::Change(Change::Arrival)).may_poll(NEW));
        assert!(!Row { has_destination: false, ..with(Access::Change(Change::Swap)) }.may_poll(NEW));
        let sleeps = Row { effects: Effects { does: Does::Sleeps, ..row.effects }, ..row };
        assert!(sleeps.keeps_time(NEW) && !row.keeps_time(NEW));
    }

    #[test]
    fn a_new_row_has_a_destination_and_reads_other_lanes_as_it_says() {
        let row = load();
        let lowered = |row: &Row| {
            let mut pool = Pool::default();
            let mut l = Lower::new(NEW, Some(row), (0, 0), &mut pool);
            let u = lower(row.op, &mut l).expect("a load");
            (u.d, l.written.clone(), l.touched.by(&u), u.registers)
        };
        let (d, written, touched, _) = lowered(&row);
        assert_eq!((d, written.clone()), (Dst::reg(4), Dst::reg(4).offset() / 32..Dst::reg(5).offset() / 32));
        assert!(touched.overwrites.has(written.start) && !touched.across);
        let (d, written, touched, registers) = lowered(&Row { has_destination: false, ..row });
        assert_eq!((d, written, touched.overwrites), (Dst::SINK, 0..0, Rows::default()));
        assert_eq!(registers, 4, "it reads R2 and R3");
        for (across, reads) in
            [(Across::Always, true), (Across::If(Bits::new(0, 1)), true), (Across::If(Bits::new(1, 1)), false)]
        {
            let effects = Effects { across, ..row.effects };
            assert_eq!(lowered(&Row { effects, ..row }).2.across, reads, "{across:?}");
        }
    }
}
