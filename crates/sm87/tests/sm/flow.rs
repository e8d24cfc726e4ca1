//! Where lanes go, who waits for whom, and time: rules that show in counts.

use crate::chains::Nothing;
use crate::kernel;
use crate::stretches::Chooses;
use crate::support::{Arg, Gpu};
use crate::support::{EXIT, program};
use proptest::prelude::*;
use sm87::observe::Observer;
use sm87::{Launch, RunStats, SmFault, run, run_observed};

fn group_of(keys: &[i32], thread: usize) -> Vec<usize> {
    let warp = thread & !31;
    (warp..warp + 32).filter(|&i| keys[i] == keys[thread]).map(|i| i - warp).collect()
}

#[test]
fn groups_of_a_warp_have_results_of_their_own() {
    let mut gpu = Gpu::default();
    let keys: Vec<i32> = (0..128).map(|i| [i % 5, 3, i, i / 9][i as usize / 32]).collect();
    let (buffer, out) = (gpu.upload(&keys), gpu.alloc(16 * keys.len()));
    gpu.run(&kernel!("key_groups"), [1, 1, 1], [128, 1, 1], &[Arg::Ptr(&buffer), Arg::Ptr(&out)]).unwrap();
    for (thread, got) in out.read::<i32>(4 * keys.len()).chunks(4).enumerate() {
        let group = group_of(&keys, thread);
        let odd = group.iter().filter(|&lane| lane & 1 == 1).fold(0u32, |mask, lane| mask | 1 << lane);
        let low = group.iter().all(|&lane| lane < 16);
        let want = [group.iter().sum::<usize>() as i32, odd as i32, i32::from(low), group[0] as i32];
        assert_eq!(got, want, "thread {thread} of {keys:?}");
    }
}

fn walk(n: i32, d: i32) -> i32 {
    if n <= 0 {
        return d;
    }
    let mut r = if n & 1 == 1 { walk(n - 1, d + 1).wrapping_mul(3) } else { walk(n - 2, d + 2) + 1 };
    if n % 3 == 0 {
        r ^= walk(n / 3, d);
    }
    r.wrapping_add(n)
}

/// What `divergent_recursion` makes of these numbers.
pub fn walked(n: &[i32]) -> Vec<i32> {
    let each: Vec<i32> = n
        .iter()
        .map(|&x| match x & 3 {
            0 => 0,
            2 => walk(x + 3, 1),
            _ => walk(x, 0),
        })
        .collect();
    each.chunks(32)
        .flat_map(|warp| {
            let all = warp.iter().filter(|&&r| r != 0).count() as i32 * 65536;
            warp.iter().map(move |r| r.wrapping_add(all))
        })
        .collect()
}

#[test]
fn lanes_of_a_recursive_call_do_not_meet_those_of_another() {
    let mut gpu = Gpu::default();
    let mut kernel = kernel!("divergent_recursion");
    kernel.stack = 1024;
    let n: Vec<i32> = (0..64).map(|i| i * 7 % 13).collect();
    let (buffer, out) = (gpu.upload(&n), gpu.alloc(4 * n.len()));
    gpu.run(&kernel, [1, 1, 1], [64, 1, 1], &[Arg::Ptr(&buffer), Arg::Ptr(&out)]).unwrap();
    assert_eq!(out.read::<i32>(n.len()), walked(&n));
}

/// Code that is first reached through a pointer reads a constant bank with an index, although nothing that is known before does so.
#[test]
fn code_behind_a_pointer_reads_constants_with_an_index() {
    let mut kernel = kernel!("through");
    // The call is relative to the kernel's beginning, because nothing relocates it here.
    let pointer = Arg::Address(kernel.code.len() as u64);
    kernel.code.extend(kernel!("indexed").code);
    let mut gpu = Gpu::default();
    let out = gpu.alloc(4 * 32);
    let args = [Arg::Ptr(&out), pointer];
    // The second grid finds the larger program in the cache.
    for _ in 0..2 {
        assert!(out.backing.write(0, &[0; 4 * 32]));
        gpu.run(&kernel, [2, 1, 1], [32, 1, 1], &args).unwrap();
        assert_eq!(out.read::<i32>(32), [3, 1, 4, 1, 5, 9, 2, 6].repeat(4));
    }
}

/// Code that is first reached through a pointer reads registers that nothing before it uses, in memory that held those of another launch.
#[test]
fn code_behind_a_pointer_reads_zero_from_registers_that_nobody_wrote() {
    let mut kernel = kernel!("through");
    let behind = kernel.code.len() as u64;
    let store = |from: u64, at: u64| (0x7986 | 2 << 24 | from << 32 | at << 40, 0x000f_e200_0c10_1904);
    let words = [
        (0x0000_0000_0002_7919, 0x000e_2200_0000_2100), // S2R R2, SR_TID.X
        (0x0000_0004_ff03_7435, 0x000f_e200_0000_01ff), // HFMA2.MMA R3, -RZ, RZ, 0, 4
        (0x0000_4600_0004_7ab9, 0x000f_e200_0000_0a00), // ULDC.64 UR4, c[0x0][0x118]
        (0x0000_5800_0202_7625, 0x000f_e200_078e_0003), // IMAD.WIDE R2, R2, R3, c[0x0][0x160]
        (0x0000_0014_0006_7c02, 0x000f_e200_0800_0f00), // MOV R6, UR20
        store(30, 0),
        store(6, 128),
        EXIT,
    ];
    kernel.code.extend(program(&words).code);
    kernel.registers = 40;
    for ctas in [1, 3] {
        let mut gpu = Gpu::default();
        let n = gpu.upload(&(0..64).map(|i| i * 7 % 13).collect::<Vec<i32>>());
        let sums = gpu.alloc(4 * 64);
        let mut other = kernel!("divergent_recursion");
        other.stack = 1024;
        gpu.run(&other, [1, 1, 1], [64, 1, 1], &[Arg::Ptr(&n), Arg::Ptr(&sums)]).unwrap();
        let out = gpu.upload(&[1; 64]);
        gpu.run(&kernel, [ctas, 1, 1], [32, 1, 1], &[Arg::Ptr(&out), Arg::Address(behind)]).unwrap();
        assert_eq!(out.read::<i32>(64), [0; 64]);
    }
}

fn barriers(ctas: u32, rounds: i32) -> RunStats {
    let mut gpu = Gpu::default();
    let (count, phase, seen) = (gpu.alloc(4), gpu.alloc(4), gpu.alloc(4 * rounds as usize));
    let args = [Arg::Ptr(&count), Arg::Ptr(&phase), Arg::Ptr(&seen), Arg::Int(rounds)];
    let stats = gpu.run(&kernel!("grid_barrier"), [ctas, 1, 1], [64, 1, 1], &args).unwrap();
    assert_eq!(seen.read::<i32>(rounds as usize), vec![64 * ctas as i32; rounds as usize]);
    stats
}

/// A CTA that finds nothing new gives way: it spins for some hundred instructions, and not for a million.
#[test]
fn ctas_that_wait_for_each_other_do_not_spin_for_long() {
    let stats = barriers(96, 20);
    assert!(stats.warp_instructions < 96 * 20 * 1000, "{stats:?}");
    let more = barriers(96, 40);
    assert!(more.warp_instructions < 3 * stats.warp_instructions, "{stats:?} {more:?}");
}

#[test]
fn the_longest_chain_of_waiting_ctas() {
    for (nap, threads) in [(0, 1), (0, 2), (0, 5), (100, 1), (100, 2), (100, 3)] {
        let mut gpu = Gpu { threads, ..Gpu::default() };
        let flags = gpu.alloc(4 * 700);
        let args = [Arg::Ptr(&flags), Arg::Int(nap)];
        let stats = gpu.run(&kernel!("chain"), [700, 1, 1], [32, 1, 1], &args).unwrap();
        assert_eq!(flags.read::<i32>(700), (1..=700).collect::<Vec<_>>());
        // A thread whose CTAs wait for those of another thread counts what it looks for them, however long the host lets that one sleep.
        assert!(threads > 1 || stats.warp_instructions < 700 * 1000, "{stats:?}");
    }
}

/// A grid whose CTAs all wait for each other, and of which the GPU holds only a part.
#[test]
fn a_grid_that_cannot_be_on_the_gpu_at_once_times_out_and_says_so() {
    let mut gpu = Gpu::default();
    let (count, phase, seen) = (gpu.alloc(4), gpu.alloc(4), gpu.alloc(4));
    let args = [Arg::Ptr(&count), Arg::Ptr(&phase), Arg::Ptr(&seen), Arg::Int(1)];
    let mut launch: Launch = gpu.launch(&kernel!("grid_barrier"), [300, 1, 1], [64, 1, 1], &args);
    launch.limits.patience = 1 << 20;
    let Err(stopped) = run(&launch) else { panic!("300 CTAs were on a GPU that holds 256") };
    let SmFault::Hang { text, .. } = &stopped.fault else { panic!("{stopped:?}") };
    assert!(text.contains("44 of the grid's CTAs have not started") && text.contains("256"), "{text}");
}

#[test]
fn threads_of_a_warp_take_a_lock_in_turn() {
    let mut gpu = Gpu::default();
    let (lock, count) = (gpu.alloc(4), gpu.alloc(4));
    let args = [Arg::Ptr(&lock), Arg::Ptr(&count)];
    let stats = gpu.run(&kernel!("spin_lock"), [4, 1, 1], [96, 1, 1], &args).unwrap();
    assert_eq!((lock.read::<i32>(1), count.read::<i32>(1)), (vec![0], vec![4 * 96]));
    assert!(stats.warp_instructions < 4 * 96 * 4000, "{stats:?}");
}

/// Times of all threads: cycles of the loop, nanoseconds and cycles around the sleep.
fn clocks(threads: usize, grid: [u32; 3], block: [u32; 3], loops: i32, nap: i32) -> Vec<i64> {
    let mut gpu = Gpu { threads, ..Gpu::default() };
    let out = gpu.alloc(32 * (grid[0] * block[0]) as usize);
    gpu.run(&kernel!("clocks"), grid, block, &[Arg::Ptr(&out), Arg::Int(loops), Arg::Int(nap)]).unwrap();
    out.read::<i64>(4 * (grid[0] * block[0]) as usize)
}

#[test]
fn clocks_count_what_is_executed() {
    let [short, long] = [100, 10_000].map(|loops| clocks(1, [1, 1, 1], [1, 1, 1], loops, 0));
    assert!(long[0] >= 2 * 10_000 && long[0] < 10 * 10_000, "{long:?}");
    assert!(short[0] * 50 < long[0], "{short:?} {long:?}");
    assert!(long[1] > long[0] / 2, "nanoseconds of the GPU's timer: {long:?}");
    let many = [1, 7].map(|threads| clocks(threads, [40, 1, 1], [64, 1, 1], 1000, 500));
    assert_eq!(many[0], many[1], "the machine shows in the clocks");
}

#[test]
fn a_sleep_is_at_least_half_and_at_most_twice_as_long_as_asked() {
    for nap in [100, 1000, 50_000, 1_000_000] {
        for times in clocks(1, [3, 1, 1], [64, 1, 1], 1, nap).chunks(4) {
            // The timer was also read before a loop, and shows steps of 32 ns.
            let (slept, cycles) = (times[1], times[2]);
            assert!(slept >= i64::from(nap) / 2 && slept <= 2 * i64::from(nap) + 200, "{nap} ns: {times:?}");
            assert!(cycles >= i64::from(nap) / 2, "{nap} ns: {times:?}");
        }
    }
}

/// The BMOV at the start of programs for sm_87: they move a number through all barriers and write another to the last one.
fn prologue(last: u64) -> Vec<(u64, u64)> {
    let hi = 0x000f_e800_0000_0000;
    let moves = (1..16).map(|n| ((n - 1) << 24 | n << 16 | 0x7f55, hi | 1 << 20));
    let first = (0xffff_ffff_0000_7956, hi);
    std::iter::once(first).chain(moves).chain([(last << 32 | 0x0f00_7956, hi)]).collect()
}

#[test]
fn every_instruction_of_the_prologue_counts() {
    let mut all = prologue(0);
    all.extend(prologue(1));
    all.push(EXIT);
    for lanes in [32, 5, 1] {
        let stats = Gpu::default().run(&program(&all), [3, 1, 1], [lanes, 1, 1], &[]).expect("it ends");
        assert_eq!(
            (stats.warp_instructions, stats.thread_instructions),
            (3 * 35, 3 * 35 * u64::from(lanes)),
            "{lanes} lanes"
        );
    }
}

/// What a loop does that all warps of a CTA execute. R0 is the thread, R1 the turn of the loop, and R2 the thread's place in shared memory.
#[derive(Clone, Copy, Debug)]
enum Does {
    /// BAR.SYNC of all threads, BAR.SYNC of a number of them, or BAR.ARV.
    Waits(u64, Of),
    Loads(Place),
    Stores(Place),
    /// Four words one after another from a place of each thread's own in global memory, which are loaded together.
    Gathers,
    /// Some threads leave out what follows, in one turn or in all.
    Leaves(Which),
    /// Some threads exit, or load from where nothing is.
    Exits(Which),
    Fails(Which),
}

/// The place of a thread's word in shared memory, with an offset: R2, or R0 times four if it is scaled.
#[derive(Clone, Copy, Debug)]
struct Place {
    scaled: bool,
    offset: i64,
}

#[derive(Clone, Copy, Debug)]
enum Of {
    All,
    Threads(u64),
    Arriving(u64),
}

/// Threads of which the bits `mask` are `value`, in one turn of the loop, or in all for a turn that there is not.
#[derive(Clone, Copy, Debug)]
struct Which {
    mask: u64,
    value: u64,
    turn: u64,
}

const TURNS: u64 = 6;
const ADD: u64 = 0x000f_c800_07ff_e000;
const ISETP_EQ: (u64, u64) = (0x780c, 0x000f_da00_03f0_2270);

impl Which {
    /// P0 says whether a thread is one of them.
    fn words(self) -> Vec<(u64, u64)> {
        let (which, equal) = ((0x7812 | 5 << 16 | self.mask << 32, 0x000f_c800_078e_c0ff), ISETP_EQ);
        let mut words = vec![which, (equal.0 | 5 << 24 | self.value << 32, equal.1)];
        if self.turn < TURNS {
            words.push((equal.0 | 1 << 24 | self.turn << 32, equal.1 ^ 0x0380_0000));
        }
        words
    }
}

impl Does {
    fn with_the_other_place(self) -> Does {
        let other = |place: Place| Place { scaled: !place.scaled, ..place };
        match self {
            Does::Loads(from) => Does::Loads(other(from)),
            Does::Stores(to) => Does::Stores(other(to)),
            does => does,
        }
    }

    fn words(self) -> Vec<(u64, u64)> {
        let at = |offset: i64| (offset as u64 & 0xff_ffff) << 40;
        let place = |Place { scaled, offset }| match scaled {
            true => (at(offset), 0x4800), // [R0.X4+offset]
            false => (at(offset) | 2 << 24, 0x0800),
        };
        match self {
            Does::Waits(n, Of::All) => vec![(0x7b1d | n << 54, 0x000f_ec00_0001_0000)],
            Does::Waits(n, Of::Threads(count)) => vec![(0x7b1d | n << 54 | count << 42, 0x000f_ec00_0001_0000)],
            Does::Waits(n, Of::Arriving(count)) => vec![(0x7b1d | n << 54 | count << 42, 0x000f_ec00_0001_2000)],
            Does::Loads(from) => {
                let (from, scale) = place(from);
                let load = (0x7984 | 4 << 16 | from, 0x000e_2800_0000_0000 | scale);
                vec![load, (0x7210 | 3 << 16 | 3 << 24 | 4 << 32, ADD | 0xff)]
            }
            Does::Stores(to) => {
                let (to, scale) = place(to);
                vec![(0x7388 | 3 << 32 | to, 0x000f_e800_0000_0000 | scale)]
            }
            Does::Gathers => {
                let load = |n: u64| (0x7981 | (10 + n) << 16 | 6 << 24 | at(4 * n as i64), 0x000e_a800_0c1e_1900);
                let sum = (0x7210 | 3 << 16 | 3 << 24 | 10 << 32, ADD | 13); // IADD3 R3, R3, R10, R13
                (0..4).map(load).chain([sum]).collect()
            }
            // The branch leaves out the instruction behind it.
            Does::Leaves(some) => [some.words(), vec![(0x0947 | 16 << 32, 0x000f_ea00_0380_0000)]].concat(),
            Does::Exits(some) => [some.words(), vec![(EXIT.0 & !0x7000, EXIT.1)]].concat(),
            Does::Fails(some) => {
                [some.words(), vec![(0x0984 | 4 << 16 | 2 << 24 | at(0x7f_fff0), 0x000e_2800_0000_0800)]].concat()
            }
        }
    }
}

/// Threads run the loop so many times, and store what they found.
fn in_turns(body: &[Does]) -> crate::support::Kernel {
    let mut words = vec![
        (0x7919, 0x000e_2200_0000_2100),                     // S2R R0, SR_TID.X
        (0x7802 | 1 << 16, 0x000f_e200_0000_0f00),           // MOV R1, 0x0
        (0x7819 | 2 << 16 | 2 << 32, 0x000f_ca00_0000_06ff), // SHF.L.U32 R2, R0, 0x2, RZ
        (0x7810 | 3 << 16 | 1 << 32, ADD | 0xff),            // IADD3 R3, R0, 0x1, RZ
        (0x7388 | 2 << 24 | 3 << 32, 0x000f_e800_0000_0800), // STS [R2], R3
    ];
    let place = |each: u64| {
        let bytes = (0x7802 | 9 << 16 | each << 32, 0x000f_e200_0000_0f00); // MOV R9, bytes of each thread
        [bytes, (0x7625 | 6 << 16 | (0x160 / 4) << 40, 0x000f_c800_078e_0200 | 9)] // IMAD.WIDE R6, R0, R9, c[0x0][0x160]
    };
    words.extend(place(28));
    let first = words.len();
    words.extend(body.iter().flat_map(|does| does.words()));
    words.push((0x7802 | 8 << 16, 0x000f_e200_0000_0f00)); // MOV R8, 0x0, which may be left out
    words.push((0x7810 | 1 << 16 | 1 << 24 | 1 << 32, ADD | 0xff)); // IADD3 R1, R1, 0x1, RZ
    words.push((0x780c | 1 << 24 | TURNS << 32, 0x000f_da00_03f0_1270)); // ISETP.LT.AND P0, PT, R1, TURNS, PT
    let back = -16 * (words.len() + 1 - first) as i64;
    words.push((0x0947 | (back as u64) << 32, 0x000f_ea00_0383_ffff)); // @P0 BRA
    words.extend(place(4));
    words.push((0x7986 | 6 << 24 | 3 << 32, 0x000f_e200_0c10_1904)); // STG.E [R6.64], R3
    words.push(EXIT);
    crate::support::Kernel { shared: 1024, ..program(&words) }
}

fn does(threads: u64) -> impl Strategy<Value = Does> {
    let of =
        move |one: u64| prop_oneof![12 => Just(Of::All), 1 => Just(Of::Threads(one)), 1 => Just(Of::Arriving(one))];
    let some = (prop::sample::select(vec![0u64, 31, 32, 96, 1, 0xff]), 0..4u64, 0..2 * TURNS)
        .prop_map(|(mask, value, turn)| Which { mask, value: (32 * value) & mask | value & mask & 31, turn });
    let place = (any::<bool>(), 0..8i64).prop_map(|(scaled, n)| Place { scaled, offset: 4 * n });
    prop_oneof![
        8 => (prop_oneof![6 => Just(0u64), 1 => 1..3u64], of(threads)).prop_map(|(n, of)| Does::Waits(n, of)),
        4 => place.clone().prop_map(Does::Loads),
        4 => place.prop_map(Does::Stores),
        1 => Just(Does::Gathers),
        2 => some.clone().prop_map(Does::Leaves),
        1 => some.clone().prop_map(Does::Exits),
        1 => some.prop_map(Does::Fails),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// The engine executes warps that go from one barrier to the next together, but not those that somebody observes.
    #[test]
    fn warps_between_barriers_do_what_one_slice_after_another_does(
        (block, body) in prop::sample::select(vec![32u64, 96, 128, 100, 256])
            .prop_flat_map(|block| (Just(block), prop::collection::vec(does(block.next_multiple_of(32)), 1..9))),
        bits in (any::<u64>(), any::<u64>()).prop_map(|(a, b)| a & b),
    ) {
        let outcome = |body: &[Does], observers: &[&dyn Observer], translated_after: u64| {
            let mut gpu = Gpu { threads: 1, ..Gpu::default() };
            let out = gpu.upload(&(0..2048).collect::<Vec<u32>>());
            let mut launch = gpu.launch(&in_turns(body), [2, 1, 1], [block as u32, 1, 1], &[Arg::Ptr(&out)]);
            launch.limits.translated_after = translated_after;
            let found = run_observed(&launch, observers).map(|stats| [stats.warp_instructions, stats.thread_instructions]);
            (found.map_err(|stopped| format!("{stopped:?}")), out.read::<u32>(block as usize))
        };
        let (wanted, found) = (outcome(&body, &[&Nothing], u64::MAX), outcome(&body, &[], u64::MAX));
        prop_assert_eq!(&found, &wanted);
        prop_assert_eq!(&outcome(&body, &[], 0), &wanted);
        prop_assert_eq!(&outcome(&body, &[&Chooses::by(bits)], 0), &wanted);
        // The same places, named in the other way. What is said of a fault has the word of the instruction.
        let others: Vec<Does> = body.iter().map(|does| does.with_the_other_place()).collect();
        let (stats, stored) = outcome(&others, &[], u64::MAX);
        prop_assert_eq!((stats.map_err(|_| ()), stored), (wanted.0.map_err(|_| ()), wanted.1));
    }
}
