//! Graphs at random: the machine code computes what each lane by itself would.
#![allow(unsafe_code)]

use crate::code::Pool;
use crate::emit;
use crate::graph::{Graph, Node, Place};
use crate::{Arrangement, Builder, Host, One, Shape, Two, Value, Window};
use proptest::prelude::*;

const ROWS: usize = 40;
const CONSTANTS: usize = 2;
const SETS: usize = 3;
const WINDOWS: usize = 3;
/// Loads are fewer words before or behind a window.
const FAR: i32 = 4;
/// What is looked up.
static TABLE: [[i32; 4]; 4] =
    [[0, 1, -1, 7], [i32::MAX, i32::MIN, 0x3f80_0000, 13], [17, -19, 23, 29], [31, 37, 41, 43]];

/// What a piece reads and writes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    rows: [Row; ROWS],
    sets: [u32; SETS],
    skipped: u32,
}

fn of_floats(x: u32) -> f32 {
    f32::from_bits(x)
}

/// A float as the tests compare it: which NaN it is, is not specified.
fn bits(x: f32) -> u32 {
    if x.is_nan() { 0x7fff_ffff } else { x.to_bits() }
}

fn mask(is: bool) -> u32 {
    if is { u32::MAX } else { 0 }
}

fn two(op: Two, x: u32, y: u32) -> u32 {
    let (f, g) = (of_floats(x), of_floats(y));
    match op {
        Two::Add => x.wrapping_add(y),
        Two::Sub => x.wrapping_sub(y),
        Two::Mul => x.wrapping_mul(y),
        Two::And => x & y,
        Two::AndNot => !x & y,
        Two::Or => x | y,
        Two::Xor => x ^ y,
        Two::Shl => u64::from(x).checked_shl(y).map_or(0, |x| x as u32),
        Two::Shr => x.checked_shr(y).unwrap_or(0),
        Two::Sar => ((x as i32) >> y.min(31)) as u32,
        Two::Equal => mask(x == y),
        Two::Greater => mask(x as i32 > y as i32),
        Two::Least => x.min(y),
        Two::Most => x.max(y),
        Two::AddFloat => bits(f + g),
        Two::SubFloat => bits(f - g),
        Two::MulFloat => bits(f * g),
        Two::LessFloat => mask(f < g),
        Two::EqualFloat => mask(f == g),
        Two::AtMostFloat => mask(f <= g),
        Two::Unordered => mask(f.is_nan() || g.is_nan()),
        Two::HighHalves => ((x >> 16) * (y >> 16)) & 0xffff_0000 | ((x & 0xffff) * (y & 0xffff)) >> 16,
        _ => unreachable!("an operation on pairs"),
    }
}

/// An operation on pairs. `n` is the number by which pairs are shifted.
fn pairs(op: Two, x: u64, y: u64, n: u8) -> Option<u64> {
    let (low, other) = (x as u32, y as u32);
    Some(match op {
        Two::Product => u64::from(low) * u64::from(other),
        Two::SignedProduct => (i64::from(low as i32) * i64::from(other as i32)) as u64,
        Two::AddPairs => x.wrapping_add(y),
        Two::EqualPairs => {
            if x == y {
                u64::MAX
            } else {
                0
            }
        }
        Two::SubDoubles => (f64::from_bits(x) - f64::from_bits(y)).to_bits(),
        Two::ShlPairs => x << n,
        Two::ShrPairs => x >> n,
        Two::Mixed => x & 0xffff_ffff | y & !0xffff_ffff,
        _ => return None,
    })
}

type Row = [u32; 32];

/// An operation for all lanes.
fn lanes_of(op: Two, x: Row, y: Row, n: u8) -> Row {
    let both = |i: usize, from: usize| if i & 1 == 0 { x[i & !3 | from] } else { y[i & !3 | from] };
    let pairs_of =
        |i: usize, from: usize| if i & 2 == 0 { x[i & !3 | (from + (i & 1))] } else { y[i & !3 | (from + (i & 1))] };
    match op {
        Two::Low => return std::array::from_fn(|i| both(i, i >> 1 & 1)),
        Two::High => return std::array::from_fn(|i| both(i, 2 + (i >> 1 & 1))),
        Two::LowPairs => return std::array::from_fn(|i| pairs_of(i, 0)),
        Two::HighPairs => return std::array::from_fn(|i| pairs_of(i, 2)),
        _ => {}
    }
    if pairs(op, 0, 0, n).is_none() {
        return std::array::from_fn(|i| two(op, x[i], y[i]));
    }
    let pair = |x: Row, i: usize| u64::from(x[i & !1]) | u64::from(x[i | 1]) << 32;
    std::array::from_fn(|i| {
        let found = pairs(op, pair(x, i), pair(y, i), n).unwrap_or_default();
        (found >> (32 * (i & 1))) as u32
    })
}

/// What a piece reads besides its state.
struct Read {
    constants: [Row; CONSTANTS],
    /// Memory, and where the words of each lane are in it, in bytes, for each window.
    memory: Vec<u32>,
    places: [Row; WINDOWS],
}

/// The value of each node.
fn values(graph: &Graph, state: &State, read: &Read) -> Vec<Row> {
    let mut values: Vec<Row> = Vec::new();
    for node in &graph.nodes {
        let at = |v: &Value| values[v.0 as usize];
        let each = |f: &dyn Fn(usize) -> u32| std::array::from_fn(f);
        values.push(match node {
            Node::Row(offset) => state.rows[*offset as usize / 32],
            Node::Constant(offset) => read.constants[*offset as usize / 32],
            Node::Word(x) => [*x; 32],
            Node::Lanes(index) => each(&|i| mask(state.sets[usize::from(*index)] >> i & 1 != 0)),
            Node::One(op, a) => at(a).map(|x| one(*op, x)),
            Node::Two(op, a, b) => lanes_of(*op, at(a), at(b), 0),
            Node::By(op @ (Two::ShlPairs | Two::ShrPairs), a, n) => lanes_of(*op, at(a), at(a), *n),
            Node::By(op, a, n) => at(a).map(|x| two(*op, x, u32::from(*n))),
            Node::Quads { bytes, lane, .. } => each(&|i| {
                let from = i & !7 | usize::from(*lane) | i & 4;
                TABLE[at(bytes)[from] as usize / 16][i & 3] as u32
            }),
            Node::Loaded { window, bytes } => {
                each(&|i| read.memory[read.places[usize::from(*window)][i].wrapping_add_signed(*bytes) as usize / 4])
            }
            Node::Fma { a, b, c, minus_product, minus_c } => each(&|i| {
                let sign = |x: &Value, minus: bool| of_floats(at(x)[i]) * if minus { -1.0 } else { 1.0 };
                bits(sign(a, *minus_product).mul_add(of_floats(at(b)[i]), sign(c, *minus_c)))
            }),
            Node::Select { mask, yes, no } => each(&|i| at(if at(mask)[i] != 0 { yes } else { no })[i]),
        });
    }
    values
}

fn one(op: One, x: u32) -> u32 {
    match op {
        One::ToFloat => (x as i32 as f32).to_bits(),
        One::ToInteger => {
            let x = of_floats(x).trunc();
            if (-2_147_483_648.0..2_147_483_648.0).contains(&x) { x as i32 as u32 } else { 1 << 31 }
        }
        One::Nearest => bits(of_floats(x).round_ties_even()),
        One::Half => 0,
        One::Canonical => bits(of_floats(x)),
    }
}

/// What the graph does to a state.
fn expected(graph: &Graph, before: &State, read: &Read, active: u32) -> State {
    let mut after = before.clone();
    let values = values(graph, before, read);
    for lane in (0..32).filter(|lane| active >> lane & 1 != 0) {
        for (place, write) in &graph.writes {
            let value = values[write.value.0 as usize][lane];
            match place {
                Place::Row(offset) => after.rows[*offset as usize / 32][lane] = value,
                Place::Lanes(index) => {
                    let set = &mut after.sets[usize::from(*index)];
                    *set = *set & !(1 << lane) | (value & 1) << lane;
                }
            }
        }
        let skipped =
            graph.guards.iter().filter(|(mask, _)| values[mask.0 as usize][lane] == 0).map(|(_, times)| times);
        after.skipped += skipped.sum::<u32>();
    }
    after
}

/// One instruction of a random piece: an operation, three sources, a destination and a guard, each as a number of which as much is used as
/// is needed.
type Random = [u32; 6];

/// A source, which is a row, a constant or a number.
fn source(graph: &mut Graph, n: u32) -> Value {
    match n % 16 {
        0..=9 => graph.row(n % ROWS as u32 * 32),
        10..=12 => graph.constant(n % CONSTANTS as u32 * 32),
        13 => graph.word([0, 1, 2, u32::MAX][(n >> 4) as usize % 4]),
        14 => graph.word([0x3f80_0000, 0x8000_0000, 31, 0x7fc0_0001][(n >> 4) as usize % 4]),
        _ => graph.word(n),
    }
}

const FLOATS: [Two; 3] = [Two::AddFloat, Two::SubFloat, Two::MulFloat];
const MASKS: [Two; 6] = [Two::Equal, Two::Greater, Two::LessFloat, Two::EqualFloat, Two::AtMostFloat, Two::Unordered];
const WORDS: [Two; 13] = [
    Two::Add,
    Two::Sub,
    Two::Mul,
    Two::HighHalves,
    Two::And,
    Two::AndNot,
    Two::Or,
    Two::Xor,
    Two::Shl,
    Two::Shr,
    Two::Sar,
    Two::Least,
    Two::Most,
];

/// Adds an instruction to a graph, as an instruction of the machine would be: floats have one NaN. It may load something if `loads`.
fn add(graph: &mut Graph, loads: bool, [op, a, b, c, d, guard]: Random) {
    let (x, y, z) = (source(graph, a), source(graph, b), source(graph, c));
    let sets = SETS as u32;
    let value = match op % 64 {
        n @ 0..=11 => {
            let sum = graph.two(FLOATS[n as usize % 3], x, y);
            graph.one(One::Canonical, sum)
        }
        n @ 12..=27 => {
            let sign = graph.word(1 << 31);
            let mut part = |x: Value, bit: u32| if n & bit != 0 { graph.two(Two::Xor, x, sign) } else { x };
            let (x, y, z) = (part(x, 1), part(y, 2), part(z, 4));
            let sum = graph.fma(x, y, z);
            graph.one(One::Canonical, sum)
        }
        28 => graph.one(One::ToFloat, x),
        29 => graph.one(One::ToInteger, x),
        30 => {
            let x = graph.one(One::Nearest, x);
            graph.one(One::Canonical, x)
        }
        31..=36 => {
            let mask = graph.lanes((c % sets) as u8);
            graph.select(mask, x, y)
        }
        n @ 37..=40 => {
            // The 64 bits of a product, as integers and as a double: nothing that depends on a neighbour is left.
            let op = if n & 1 == 0 { Two::Product } else { Two::SignedProduct };
            let halves = |graph: &mut Graph, x: Value| [x, graph.shift_pairs(Two::ShrPairs, x, 32)];
            let ([x0, x1], [y0, y1]) = (halves(graph, x), halves(graph, y));
            let (even, odd) = (graph.two(op, x0, y0), graph.two(op, x1, y1));
            let part = |graph: &mut Graph, x: Value| {
                let x = if n < 39 { graph.two(Two::AddPairs, x, x) } else { graph.shift_pairs(Two::ShrPairs, x, 20) };
                let zero = graph.word(0);
                let mask = graph.two(Two::EqualPairs, x, zero);
                let magic = graph.word(0x4330_0000);
                let magic = graph.two(Two::Mixed, zero, magic);
                let double = graph.two(Two::Or, x, magic);
                let double = graph.two(Two::SubDoubles, double, magic);
                let high = graph.shift_pairs(Two::ShrPairs, double, 29);
                graph.two(Two::AndNot, mask, if n < 39 { x } else { high })
            };
            let (even, odd) = (part(graph, even), part(graph, odd));
            let odd = graph.shift_pairs(Two::ShlPairs, odd, 32);
            graph.two(Two::Mixed, even, odd)
        }
        n @ 41..=48 => {
            let mask = graph.two(MASKS[n as usize % 6], x, y);
            let other = graph.lanes((c % sets) as u8);
            let mask = if n > 44 { graph.two(Two::And, mask, other) } else { mask };
            let to = (d % sets) as u8;
            return graph.set_lanes(to, mask, false);
        }
        49..=51 => {
            let limit = graph.word(48);
            let bytes = graph.two(Two::And, x, limit);
            graph.look_up(TABLE.as_ptr(), bytes)[op as usize % 3]
        }
        n @ 52..=54 if loads => graph.loaded(n as u8 - 52, 4 * (a as i32 % FAR)),
        n => graph.two(WORDS[n as usize % 13], x, y),
    };
    let to = d % ROWS as u32 * 32;
    let mut written = value;
    if guard % 4 == 0 {
        let mut mask = graph.lanes((guard / 4 % sets) as u8);
        if guard % 8 == 0 {
            let ones = graph.word(u32::MAX);
            mask = graph.two(Two::Xor, mask, ones);
        }
        graph.guarded(mask);
        let old = graph.row(to);
        written = graph.select(mask, value, old);
    }
    graph.set_row(to, written, false);
}

fn number() -> impl Strategy<Value = u32> {
    prop_oneof![
        any::<u32>(),
        any::<f32>().prop_map(f32::to_bits),
        prop::sample::select(vec![
            0,
            1,
            1 << 31,
            0x7f80_0000,
            0xff80_0000,
            0x7fc0_0000,
            0xffc1_2345,
            0x0080_0000,
            3,
            31,
            32
        ]),
    ]
}

/// The hosts whose code this machine can execute.
pub(crate) fn hosts() -> Vec<Host> {
    match Host::found() {
        Some(Host::Avx512) => vec![Host::Avx2, Host::Avx512],
        found => found.into_iter().collect(),
    }
}

#[test]
fn code_leaves_no_upper_halves_of_vectors() {
    const END: [u8; 5] = [0xc5, 0xf8, 0x77, 0xc9, 0xc3]; // vzeroupper, leave, ret
    let mut graph = Graph::default();
    let (a, b) = (graph.row(32), graph.row(64));
    let sum = graph.two(Two::Add, a, b);
    graph.set_row(0, sum, false);
    let mut loading = Graph::default();
    let loaded = loading.loaded(2, -8);
    loading.set_row(0, loaded, false);
    for host in [Host::Avx2, Host::Avx512] {
        for code in
            [&graph, &loading].map(|graph| emit::functions(host, graph, &mut Pool::new()).expect("room")).concat()
        {
            assert!(code.ends_with(&END), "{host:?}: {code:02x?}");
        }
    }
}

/// Places of lanes: in a row, the same, some that are near enough to those of each vector of eight, or any. They are far enough from both ends of the
/// memory.
fn places() -> impl Strategy<Value = Row> {
    let near = prop::array::uniform4((0..200u32, prop::array::uniform8(0..8u32)));
    prop_oneof![
        (16..160u32).prop_map(|first| std::array::from_fn(|lane| 4 * (first + lane as u32))),
        (16..200u32).prop_map(|first| [4 * first; 32]),
        near.prop_map(|near| std::array::from_fn(|lane| 4 * (16 + near[lane / 8].0 + near[lane / 8].1[lane % 8]))),
        prop::array::uniform32(16..200u32).prop_map(|words| words.map(|word| 4 * word)),
    ]
}

fn arrangement() -> impl Strategy<Value = Arrangement> {
    prop::sample::select(vec![Arrangement::Forwards, Arrangement::Backwards, Arrangement::Spread])
}

/// The windows that lead lanes to the places. Other lanes are anywhere.
fn windows(host: Host, read: &Read, active: u32, arrangement: Arrangement) -> Option<Vec<Window>> {
    let windows = read.places.iter().map(|places| {
        let mut window = Window::NONE;
        let lies =
            |lane: usize| if active >> lane & 1 == 1 { places[lane].wrapping_sub(places[0]) } else { 0x1234_5677 };
        let shape = window.arrange(host, &std::array::from_fn(lies), active, arrangement)?;
        window.lead(host, &shape, read.memory.as_ptr().cast::<u8>().wrapping_add(places[0] as usize));
        Some(window)
    });
    windows.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn code_computes_what_each_lane_would(
        program in prop::collection::vec(prop::array::uniform6(any::<u32>()), 1..150),
        numbers in prop::collection::vec(number(), ROWS * 32),
        words in prop::array::uniform2(number()),
        sets in prop::array::uniform3(any::<u32>()),
        places in prop::array::uniform3(places()),
        (some, loads, arrangement) in (any::<u32>(), any::<bool>(), arrangement()),
    ) {
        let mut graph = Graph::default();
        program.into_iter().for_each(|instruction| add(&mut graph, loads, instruction));
        let rows = std::array::from_fn(|row| std::array::from_fn(|lane| numbers[row * 32 + lane]));
        let before = State { rows, sets, skipped: 0 };
        let read = Read { constants: words.map(|x| [x; 32]), memory: (0..300u32).map(|x| x.wrapping_mul(0x0101_0101)).collect(), places };
        for (host, active) in hosts().into_iter().flat_map(|host| [u32::MAX, some, 1, 1 << 31, 0x00ff_ff00].map(|active| (host, active))) {
            let mut builder = Builder::new(host);
            let windows = windows(host, &read, active, arrangement);
            let spread = arrangement == Arrangement::Spread;
            let loads_well = windows.is_some() && !(spread && active != u32::MAX);
            if active == 0 || loads && !loads_well || builder.add(&graph).is_err() {
                continue;
            }
            let code = builder.finish().expect("memory");
            let mut after = before.clone();
            let (rows, constants, sets) = (after.rows.as_mut_ptr().cast(), read.constants.as_ptr().cast(), after.sets.as_mut_ptr());
            // SAFETY: rows, constants and sets have the places of which the graph is made, windows lead into the memory, and the host is one
            // for the code.
            after.skipped = unsafe {
                match windows {
                    Some(windows) if loads => code.pieces()[0].load((rows, constants, sets), active, windows.as_ptr(), spread),
                    _ => code.pieces()[0].execute(rows, constants, sets, active),
                }
            };
            let wanted = expected(&graph, &before, &read, active);
            // The whole states would be pages of numbers.
            let rows = (0..ROWS).filter(|row| after.rows[*row] != wanted.rows[*row]).collect::<Vec<_>>();
            let lane = rows.first().and_then(|row| (0..32).find(|lane| after.rows[*row][*lane] != wanted.rows[*row][*lane]));
            let first = rows.first().zip(lane).map(|(row, lane)| (lane, after.rows[*row][lane], wanted.rows[*row][lane]));
            prop_assert!(rows.is_empty(), "{:?}, rows {:?} with {:x} active: lane, word and what it should be: {:x?}", host, rows, active, first);
            prop_assert_eq!((after.sets, after.skipped), (wanted.sets, wanted.skipped), "{:x}", active);
        }
    }

    #[test]
    fn windows_read_no_more_than_they_say(
        places in places(),
        active in prop_oneof![Just(u32::MAX), any::<u32>(), Just(7), Just(0xffff_0000)],
        arrangement in arrangement(),
    ) {
        let at = places.map(|at| at.wrapping_sub(places[0]));
        for host in [Host::Avx2, Host::Avx512] {
            let lanes = host.lanes() as usize;
            let vector = |n: usize| (n * lanes..(n + 1) * lanes).filter(|lane| active >> lane & 1 == 1).map(|lane| i64::from(at[lane] as i32));
            let vectors: Vec<Vec<_>> = (0..32 / lanes).map(|n| vector(n).collect()).filter(|vector: &Vec<_>| !vector.is_empty()).collect();
            let bounds = |vector: &Vec<i64>| (*vector.iter().min().expect("a lane"), *vector.iter().max().expect("a lane") + 4);
            let mut window = Window::NONE;
            match window.arrange(host, &at, active, arrangement) {
                Some(Shape { begin, end, .. }) => {
                    for (least, most) in vectors.iter().map(bounds) {
                        let window = match arrangement {
                            Arrangement::Forwards => least..least + host.bytes(),
                            Arrangement::Backwards => most - host.bytes()..most,
                            Arrangement::Spread => least..most,
                        };
                        prop_assert!(begin <= window.start && window.end <= end);
                    }
                    let least = vectors.iter().map(|vector| bounds(vector).0).min();
                    prop_assert!(arrangement == Arrangement::Backwards || least.is_none_or(|least| begin == least));
                }
                None => {
                    let far = |vector: &Vec<i64>| bounds(vector).1 - bounds(vector).0 > host.bytes();
                    prop_assert!(arrangement != Arrangement::Spread && vectors.iter().any(far));
                }
            }
        }
    }
}

#[test]
fn words_that_are_far_apart_have_no_window() {
    let (mut window, row) = (Window::NONE, std::array::from_fn(|lane| 4 * lane as u32));
    for host in [Host::Avx2, Host::Avx512] {
        assert!(window.arrange(host, &row, u32::MAX, Arrangement::Forwards).is_some());
        for wrong in [-4i32 as u32, 4 * host.lanes(), 2, 1 << 31, u32::MAX - 3] {
            let mut apart = row;
            apart[3] = wrong;
            assert!(window.arrange(host, &apart, u32::MAX, Arrangement::Forwards).is_none(), "{host:?}: {wrong:#x}");
            let spread = window.arrange(host, &apart, u32::MAX, Arrangement::Spread);
            assert_eq!(spread.is_some(), wrong % 4 == 0, "{host:?}: {wrong:#x}");
            assert!(window.arrange(host, &apart, !(1 << 3), Arrangement::Forwards).is_some(), "the lane loads nothing");
        }
    }
}
