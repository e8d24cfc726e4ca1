//! Loads of words between arithmetic: the engine makes one piece of machine code of them, if it finds all words near each other. What they load, and
//! what they report, must be what the interpreter does with one instruction after another.

use crate::chains::{ACROSS, COPIED, Lie, byte, lie, turns, word};
use crate::support::{Arg, BASE, EXIT, Gpu, Kernel, program};
use proptest::prelude::*;
use sm87::observe::{Chosen, CtaObserver, Fetch, Flow, Image, Observer, Step};
use sm87::{Launch, run_observed};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tegra_mm::Extent;

/// The bytes of shared memory.
const SHARED: u64 = 2048;
/// The bytes of the constant bank, which is shorter.
const BANK: u64 = SHARED / 4 + 32;
/// The registers of the data: eight from this one on.
const DATA: u64 = 20;

/// An instruction of the body. Registers and words are counted from the first one.
#[derive(Clone, Copy, Debug)]
enum Does {
    /// LDG.E, or a load of two words, through R4. Like the next two, it is for some lanes only if `guarded`.
    Global { to: u64, words: i64, two: bool, guarded: bool },
    /// LDS through R6, which counts words if `scaled`.
    Shared { to: u64, words: i64, scaled: bool, guarded: bool },
    /// LDC from the third bank, at R6.
    Bank { to: u64, words: i64, guarded: bool },
    /// IMAD, for some lanes only if `guarded`.
    Sum { to: u64, a: u64, b: u64, number: u8, guarded: bool },
    /// R2P, for some lanes only if `guarded`. It may change the guard.
    Preds { from: u64, byte: u64, select: u8, guarded: bool },
    /// P2R.
    Byte { to: u64, a: u64, byte: u64, select: u8 },
    /// Adds words to the address register of one of both memories.
    Moves { shared: bool, words: i64 },
}

/// The guard P0, or none.
fn guard(guarded: bool) -> u64 {
    if guarded { 0 } else { 0x7000 }
}

impl Does {
    fn word(self) -> (u64, u64) {
        match self {
            Does::Global { to, words, two: false, guarded } => {
                (word(0x981 | guard(guarded), DATA + to, 4, 4, 4 * words), 0x000e_a800_0c1e_1900)
            }
            Does::Global { to, words, two: true, guarded } => {
                (word(0x981 | guard(guarded), DATA + (to & 6), 4, 4, 8 * words), 0x000e_a800_0c1e_1b00)
            }
            Does::Shared { to, words, scaled, guarded } => {
                let scale = if scaled { 0x4000 } else { 0 };
                (word(0x984 | guard(guarded), DATA + to, 6, 0, 4 * words), 0x000e_2800_0000_0800 | scale)
            }
            Does::Bank { to, words, guarded } => {
                let offset = ((4 * words) as u64 & 0xffff) << 38 | 3 << 54;
                (0xb82 | guard(guarded) | (DATA + to) << 16 | 6 << 24 | offset, 0x000e_2200_0000_0800)
            }
            Does::Sum { to, a, b, number, guarded } => {
                let registers = (DATA + to) << 16 | (DATA + a) << 24 | u64::from(number) << 32;
                (0x824 | guard(guarded) | registers, 0x000f_c800_078e_0200 | (DATA + b))
            }
            Does::Preds { from, byte, select, guarded } => (
                0x804 | guard(guarded) | (DATA + from) << 24 | u64::from(select) << 32,
                0x000f_e200_0000_0000 | byte << 12,
            ),
            Does::Byte { to, a, byte, select } => {
                let registers = (DATA + to) << 16 | (DATA + a) << 24;
                (0x7803 | registers | u64::from(select) << 32, 0x000f_e400_0000_0000 | byte << 12)
            }
            Does::Moves { shared, words } => {
                let register = if shared { 6 } else { 4 };
                let by = u64::from((4 * words) as u32);
                (0x7810 | register << 16 | register << 24 | by << 32, 0x000f_c800_07ff_e0ff) // IADD3 R, R, by, RZ
            }
        }
    }
}

fn does() -> impl Strategy<Value = Does> {
    let some = || prop::bool::weighted(0.3);
    let words = || prop_oneof![150 => -8..9i64, 1 => -600..600i64];
    prop_oneof![
        6 => (0..8u64, words(), prop::bool::weighted(0.1), some())
            .prop_map(|(to, words, two, guarded)| Does::Global { to, words, two, guarded }),
        6 => (0..8u64, words(), prop::bool::weighted(0.2), some())
            .prop_map(|(to, words, scaled, guarded)| Does::Shared { to, words, scaled, guarded }),
        3 => (0..8u64, words(), some()).prop_map(|(to, words, guarded)| Does::Bank { to, words, guarded }),
        6 => (0..8u64, 0..8u64, 0..8u64, any::<u8>(), any::<bool>())
            .prop_map(|(to, a, b, number, guarded)| Does::Sum { to, a, b, number, guarded }),
        2 => (0..8u64, 0..4u64, any::<u8>(), any::<bool>())
            .prop_map(|(from, byte, select, guarded)| Does::Preds { from, byte, select, guarded }),
        2 => (0..8u64, 0..8u64, 0..4u64, any::<u8>())
            .prop_map(|(to, a, byte, select)| Does::Byte { to, a, byte, select }),
        1 => (any::<bool>(), -2..3i64).prop_map(|(shared, words)| Does::Moves { shared, words }),
    ]
}

/// Loads of more groups than there are windows: an address register changes again and again.
fn many_groups() -> impl Strategy<Value = Vec<Does>> {
    let loads = prop::collection::vec(
        (0..8u64, -4..5i64).prop_map(|(to, words)| Does::Global { to, words, two: false, guarded: false }),
        5..8,
    );
    let group = (loads, -2..3i64).prop_map(|(mut loads, words)| {
        loads.push(Does::Moves { shared: false, words });
        loads
    });
    prop::collection::vec(group, 15..22).prop_map(|groups| groups.concat())
}

/// How the lanes lie in global memory. Mappings end where low words of addresses carry, or do not.
fn places() -> impl Strategy<Value = Lie> {
    prop_oneof![6 => lie(), 1 => Just(Lie::Across), 2 => (0..40u64).prop_map(Lie::Edge), 2 => (0..40u64).prop_map(Lie::Torn)]
}

/// A row near the place where low words of addresses carry, in the mapping that goes on there; then it goes over that, and the low words do not carry.
fn over_the_edge() -> impl Strategy<Value = Vec<Lie>> {
    (0..40u64, 1..40u64).prop_map(|(before, by)| vec![Lie::Row(3, 1), Lie::Edge(before), Lie::Across, Lie::Torn(by)])
}

/// In each turn of a loop, each lane takes the registers of its two addresses from a table, and does what the body says. In the end it stores its
/// data. P0 is true for the first lanes, and those that are `away` leave when they have their first addresses. A program that is to be interpreted
/// differs in a number that nobody reads, because the engine keeps what it has translated and would execute that.
fn in_turns(body: &[Does], turns: u64, away: [(u64, u64); 2], interpreted: bool) -> Kernel {
    let mov = |d: u64, number: u64| (0x7802 | d << 16 | number << 32, 0x000f_e200_0000_0f00);
    let wide = |d: u64, parameter: u64| (0x7625 | d << 16 | (parameter / 4) << 40, 0x000f_c800_078e_0200 | 9); // IMAD.WIDE d, R0, R9, c[0][parameter]
    let pair = |d: u64, at: u64| (word(0x7981, d, 2, 4, at as i64), 0x000e_a800_0c1e_1b00); // LDG.E.64 d, [R2.64+at]
    let mut words = vec![(0x7919, 0x000e_2200_0000_2100), mov(9, 8), mov(1, 0), wide(2, 0x160)]; // R0 is SR_TID.X.
    words.push(mov(30, interpreted.into()));
    words.push((0x780c | 32 << 32, 0x000f_da00_03f6_1270)); // ISETP.LT.AND P3, PT, R0, 32, PT
    for n in 0..SHARED / 128 {
        words.push((0x7810 | 3 << 16 | (1000 * n) << 32, 0x000f_c800_07ff_e0ff)); // IADD3 R3, R0, 1000n, RZ
        words.push((0x3388 | 3 << 32 | (128 * n) << 40, 0x000f_e800_0000_4800)); // @P3 STS [R0.X4+128n], R3
    }
    words.push(wide(2, 0x160));
    words.push((0x780c | 11 << 32, 0x000f_da00_03f0_1270)); // ISETP.LT.AND P0, PT, R0, 11, PT
    words.extend((0..8).map(|n| mov(DATA + n, n)));
    let first = words.len();
    words.extend([pair(4, 0), pair(6, 256 * turns)]);
    for (from, to) in away {
        words.push((0x780c | from << 32, 0x000f_da00_03f4_6270)); // ISETP.GE.AND P2, PT, R0, from, PT
        words.push((0x780c | to << 32, 0x000f_da00_0174_1270)); // ISETP.LT.AND P2, PT, R0, to, P2
        words.push((EXIT.0 & !0xf000 | 0x2000, EXIT.1)); // @P2 EXIT
    }
    words.extend(body.iter().map(|does| does.word()));
    words.push((0x7810 | 2 << 16 | 2 << 24 | 0x100 << 32, 0x000f_c800_07ff_e0ff)); // IADD3 R2, R2, 0x100, RZ
    words.push((0x7810 | 1 << 16 | 1 << 24 | 1 << 32, 0x000f_c800_07ff_e0ff)); // IADD3 R1, R1, 1, RZ
    words.push((0x780c | 1 << 24 | turns << 32, 0x000f_da00_03f2_1270)); // ISETP.LT.AND P1, PT, R1, turns, PT
    let back = -16 * (words.len() + 1 - first) as i64;
    words.push((0x1947 | (back as u64) << 32, 0x000f_ea00_0383_ffff)); // @P1 BRA
    words.push(mov(9, 32));
    words.push(wide(2, 0x168));
    words.extend((0..8).map(|n| (word(0x7986, 0, 2, DATA + n, 4 * n as i64), 0x000f_e200_0c10_1904))); // STG.E [R2.64+4n]
    words.push(EXIT);
    let bank = (0..BANK / 4).flat_map(|n| (0x0101_0101 * n as u32).to_le_bytes()).collect();
    Kernel { registers: 32, shared: SHARED as u32, banks: vec![(3, bank)], ..program(&words) }
}

/// How the lanes lie in both memories, a lane of a turn that is 4 GiB away from the others, the threads, and the low word of the first address.
struct Case {
    lies: Vec<Lie>,
    shared: Vec<Lie>,
    far: Option<(usize, usize)>,
    threads: u32,
    /// Threads that leave at once: from these on, up to those.
    away: [(u64, u64); 2],
    low: u64,
    /// Whether all lanes are aligned and away from all edges, so that nothing fails unless a load is far away.
    inside: bool,
}

/// An observer that chooses an instruction if its bit is set, and counts what it sees of each.
pub struct Chooses {
    bits: u64,
    seen: Mutex<BTreeMap<u32, u64>>,
}

impl Chooses {
    /// The bits are used again after 64 instructions.
    pub fn by(bits: u64) -> Chooses {
        Chooses { bits, seen: Mutex::default() }
    }
}

impl Observer for Chooses {
    fn choose(&self, image: &Image, _: &mut Fetch<'_>) -> Chosen {
        let which = (0..image.len()).map(|at| self.bits >> (at % 64) & 1 == 1).collect();
        Chosen { which, is_narrow: true, notes: Arc::new(()) }
    }

    fn ctas<'a>(&'a self, _: &Launch, _: &Image) -> Box<dyn CtaObserver + 'a> {
        Box::new(self)
    }

    fn ends(&self, _: u64) {}
}

impl CtaObserver for &Chooses {
    fn begins(&mut self, _: u32) {}

    fn step(&mut self, step: &mut Step<'_, '_>) -> Flow {
        *self.seen.lock().unwrap().entry(step.uop().at()).or_default() += 1 + (u64::from(step.exec()) << 20);
        step.execute()
    }
}

/// What the program does: the counts of instructions, or the fault, and what lanes have stored.
type Outcome = (Result<[u64; 2], String>, Vec<u32>);

/// What the program does if it is translated at once, or never, and what observers see that choose instructions by these bits.
fn outcome(body: &[Does], case: &Case, after: u64, chosen: &[u64]) -> (Outcome, Vec<BTreeMap<u32, u64>>) {
    let observers: Vec<_> = chosen.iter().map(|&bits| Chooses::by(bits)).collect();
    let mut gpu = Gpu { threads: 1, ..Gpu::default() };
    let (half, from) = (COPIED / 2, BASE + (7 << 32) + case.low);
    let memory = gpu.upload(&(0..COPIED as usize).map(byte).collect::<Vec<u8>>());
    for (at, offset, len) in [(0, half, half), (half, 0, half), (ACROSS, 0, COPIED)] {
        let (backing, offset) = (Some(memory.backing.clone()), offset as usize);
        gpu.table.insert(Extent { va: from + at, len, backing, offset, writable: true, ..Extent::default() });
    }
    let place = |at: u64, size: u64| if case.inside { (64 + at % (size - 128)) & !7 } else { at };
    let global = turns(&case.lies, 4, from).into_iter().flatten().map(|at| from.wrapping_add(place(at, COPIED)));
    let mut rows: Vec<u64> = global.collect();
    if let Some(far) = case.far.and_then(|(turn, lane)| rows.get_mut(32 * turn + lane)) {
        *far = (far.wrapping_sub(from) ^ ACROSS).wrapping_add(from);
    }
    // The places in shared memory. Some loads count words, so places are inside if they are in the first quarter. The others mostly are, too.
    let shared = turns(&case.shared, 4, 0).into_iter().flatten();
    rows.extend(shared.map(|at| place(if at < 2 * SHARED { at } else { at % SHARED }, SHARED / 4)));
    let (table, out) = (gpu.upload(&rows), gpu.upload(&[0u32; 8 * 64]));
    let kernel = in_turns(body, case.lies.len() as u64, case.away, after > 0);
    let mut launch = gpu.launch(&kernel, [2, 1, 1], [case.threads, 1, 1], &[Arg::Ptr(&table), Arg::Ptr(&out)]);
    launch.limits.translated_after = after;
    let all: Vec<_> = observers.iter().map(|observer| observer as &dyn Observer).collect();
    let found = run_observed(&launch, &all).map(|stats| [stats.warp_instructions, stats.thread_instructions]);
    let stored = out.read(8 * case.threads.max(32) as usize);
    let seen = observers.into_iter().map(|observer| observer.seen.into_inner().unwrap()).collect();
    ((found.map_err(|stopped| format!("{stopped:?}")), stored), seen)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(800))]

    #[test]
    fn loads_between_arithmetic_are_those_of_the_interpreter(
        body in prop_oneof![6 => prop::collection::vec(does(), 1..40), 1 => many_groups()],
        (lies, shared) in prop_oneof![3 => prop::collection::vec(places(), 1..9), 1 => over_the_edge()]
            .prop_flat_map(|lies| (Just(lies.clone()), prop::collection::vec(lie(), lies.len()))),
        far in prop_oneof![3 => Just(None), 1 => (0..9usize, 0..32usize).prop_map(Some)],
        threads in prop_oneof![3 => Just(32u32), 1 => 1..33u32],
        away in prop_oneof![2 => Just([(0, 0); 2]), 1 => prop::array::uniform2((0..32u64, 0..32u64))],
        low in prop_oneof![Just(0u64), Just((1 << 32) - COPIED / 2)],
        inside in prop::bool::weighted(0.6),
        // Mostly an observer chooses few instructions, so that there are pieces of which it has chosen none but the first.
        chosen in prop_oneof![
            2 => Just(Vec::new()),
            1 => prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()).prop_map(|(a, b, c)| a & b & c), 1..3),
        ],
    ) {
        let case = Case { lies, shared, far, threads, away, low, inside };
        let found = outcome(&body, &case, 0, &chosen);
        prop_assert_eq!(&found, &outcome(&body, &case, u64::MAX, &chosen));
        prop_assert_eq!(found.0, outcome(&body, &case, 0, &[]).0, "observers change nothing");
    }
}

/// Words of the last lanes that are just inside of a memory, or just not, whoever has left before.
#[test]
fn lanes_at_the_ends_of_memories_load_what_is_there_or_fail() {
    let loads = |words: i64, bank: bool, scaled: bool| -> Vec<Does> {
        let load = |to| match bank {
            true => Does::Bank { to, words: words + to as i64 % 2, guarded: false },
            false => Does::Shared { to, words: words + to as i64 % 2, scaled, guarded: false },
        };
        (0..7).map(load).collect()
    };
    let cases = (0..2).flat_map(|bank| (-2..3).flat_map(move |words| (0..3).map(move |n| (bank == 1, words, n))));
    for (bank, words, n) in cases {
        let (bytes, scaled) = (if bank { BANK } else { SHARED }, !bank && n == 2);
        for before in 0..3 {
            // The last lane is so many words before the end. Places are in words where loads count words, and lanes go up or down.
            let (len, first) = (if scaled { 1 } else { 4 }, bytes / 4 - 32 - before);
            let line =
                if n == 1 { Lie::Line(len * (first + 31), -(len as i64)) } else { Lie::Line(len * first, len as i64) };
            for away in [[(0, 0), (0, 0)], [(16, 32), (0, 0)], [(0, 16), (0, 0)], [(0, 3), (28, 32)], [(0, 31), (0, 0)]]
            {
                let lies = vec![Lie::Row(64, 1)];
                let case = Case { lies, shared: vec![line], far: None, threads: 32, away, low: 0, inside: false };
                let body = loads(words, bank, scaled);
                assert_eq!(
                    outcome(&body, &case, 0, &[]),
                    outcome(&body, &case, u64::MAX, &[]),
                    "{bank} {words} {n} {before} {away:?}"
                );
            }
        }
    }
}

/// A warp of which a part has left, and one with all lanes behind it, which lie alike.
#[test]
fn a_whole_warp_loads_its_words_behind_a_part_of_another() {
    let body: Vec<_> = (0..7).map(|to| Does::Shared { to, words: to as i64, scaled: false, guarded: false }).collect();
    for away in [[(16, 32), (0, 0)], [(1, 31), (0, 0)], [(32, 40), (50, 64)]] {
        // The second warp has the addresses of the next turn.
        let (lies, shared) = (vec![Lie::Row(64, 1); 3], vec![Lie::Row(64, 1); 4]);
        let case = Case { lies, shared, far: None, threads: 64, away, low: 0, inside: false };
        let (found, wanted) = (outcome(&body, &case, 0, &[]), outcome(&body, &case, u64::MAX, &[]));
        assert!(wanted.0.0.is_ok(), "{wanted:?}");
        assert_eq!(found, wanted, "{away:?}");
    }
}
