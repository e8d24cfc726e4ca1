//! Loads from one address register. The engine finds out once how the lanes lie, and executes several of them together. They must read and report
//! what one load and one lane after another would. So must CTAs whose addresses are linear in the index of the CTA.

use crate::support::{Arg, BASE, Buffer, EXIT, Gpu, Kernel, Noise, program as kernel};
use proptest::prelude::*;
use sm87::observe::{Chosen, CtaObserver, Fetch, Flow, Image, Observer, Step};
use sm87::{Launch, RunStats, SmFault, Stopped, run_observed};
use std::sync::Arc;
use tegra_mm::Extent;

/// Bytes of the buffer that lanes read: a whole page, behind which nothing is mapped.
const BYTES: usize = 4096;
/// Bytes that a lane writes.
const WRITTEN: usize = 128;

/// A load of the program: the bits of its size, its bytes, its destination and its offset.
struct Load {
    bits: u64,
    bytes: usize,
    register: u64,
    offset: i64,
}

/// The loads in the order of the program.
fn loads() -> Vec<Load> {
    let word = |k: i64| Load { bits: 0x19, bytes: 4, register: 8 + k as u64, offset: 4 * k - 8 };
    let quad = |register: u64, offset: i64| Load { bits: 0x1d, bytes: 16, register, offset };
    let pair = |register: u64, offset: i64| Load { bits: 0x1b, bytes: 8, register, offset };
    let half = |register: u64, offset: i64| Load { bits: 0x15, bytes: 2, register, offset };
    // Ten words one after another; a word that breaks the order; and other sizes.
    let mut loads: Vec<Load> = (0..10).map(word).collect();
    loads.push(Load { bits: 0x19, bytes: 4, register: 18, offset: 64 });
    loads.extend([quad(20, 16), quad(24, 0), pair(28, 8), pair(30, -8), half(32, 2), half(33, 6)]);
    loads
}

/// `rest`, with registers at bits 16, 24 and 32 and an offset at bit 40.
pub(crate) fn word(rest: u64, d: u64, a: u64, b: u64, offset: i64) -> u64 {
    rest | d << 16 | a << 24 | b << 32 | (offset as u64 & 0xff_ffff) << 40
}

/// PT, as the number of a guard.
const ALWAYS: u64 = 7;

/// Each lane finds its address in a table, and whether it leaves at once. It reads with [`loads`], which have these guards, and writes what it
/// read. Bit `n` of what says whether it leaves is P`n`, for the guards P1 to P6.
fn program(guards: &[u64]) -> Kernel {
    const MOVE: u64 = 0x000f_e200_078e_00ff; // IMAD.MOV.U32 R, RZ, RZ, immediate
    const WIDE: u64 = 0x000f_ca00_078e_0200; // IMAD.WIDE R, R0, R, c[0x0][…]
    let load = |bits: u64| 0x000e_a800_0c1e_0000 | bits << 8;
    let mut words = vec![
        (0x0000_0000_0000_7919, 0x000e_2200_0000_2100), // S2R R0, SR_TID.X
        (0x0000_0010_ff06_7424, MOVE),
        (0x0000_5a00_0002_7625, WIDE | 6), // the table's entry
        (word(0x7981, 1, 2, 4, 8), load(0x19)),
        (word(0x7981, 2, 2, 4, 0), load(0x1b)),
        (0x7812 | 6 << 16 | 1 << 24 | 1 << 32, 0x000f_c800_078e_c0ff), // LOP3.LUT R6, R1, 0x1, RZ, 0xc0
        (0x0000_00ff_0600_720c, 0x000f_c600_03f0_5270),                // ISETP.NE.AND P0, PT, R6, RZ, PT
        (0x0000_0000_0000_094d, 0x000f_ea00_0380_0000),                // @P0 EXIT
        (0x0000_0080_ff07_7424, MOVE),
        (0x0000_5800_0004_7625, WIDE | 7), // where the lane writes
    ];
    for n in 1..ALWAYS {
        words.push((0x7812 | 6 << 16 | 1 << 24 | 1 << (32 + n), 0x000f_c800_078e_c0ff));
        words.push((0x0000_00ff_0600_720c, 0x000f_c600_03f0_5270 | n << 17));
    }
    let guarded = |l: &Load, guard: u64| (word(0x0981 | guard << 12, l.register, 2, 4, l.offset), load(l.bits));
    words.extend(loads().iter().zip(guards).map(|(l, guard)| guarded(l, *guard)));
    let store = |k: u64| (word(0x7986, 0, 4, 8 + 4 * k, 16 * k as i64), 0x000f_e200_0c10_1d04);
    words.extend((0..7).map(store));
    words.push((0x0000_0000_0000_794d, 0x000f_ea00_0380_0000)); // EXIT
    let mut text = String::from("registers 40\nshared 0\nstack 0\n");
    for (low, high) in words {
        text += &format!("{low:016x} {high:016x}\n");
    }
    Kernel::parse(&text)
}

pub(crate) fn byte(i: usize) -> u8 {
    ((i * 7) ^ ((i >> 8) * 13)) as u8
}

/// What lanes write after they have read at their places; or the address that one faults at. `executes` says which loads, by their number, a
/// lane executes.
fn reference(places: &[Option<i64>], executes: impl Fn(usize, usize) -> bool) -> Result<Vec<u8>, i64> {
    let mut out = vec![0; 32 * WRITTEN];
    for (n, l) in loads().iter().enumerate() {
        let lanes = places.iter().enumerate().filter(|(lane, _)| executes(n, *lane));
        for (lane, at) in lanes.filter_map(|(lane, at)| Some((lane, (*at)? + l.offset))) {
            if at % l.bytes as i64 != 0 || at < 0 || at as usize + l.bytes > BYTES {
                return Err(at);
            }
            let to = lane * WRITTEN + 4 * (l.register as usize - 8);
            (0..l.bytes).for_each(|i| out[to + i] = byte(at as usize + i));
        }
    }
    Ok(out)
}

/// Where the lanes read: multiples of a size, in a row, in two places, or anywhere.
fn places() -> impl Strategy<Value = Vec<i64>> {
    let anywhere = prop::collection::vec(1..252i64, 32).prop_map(|all| all.into_iter().map(|n| 16 * n).collect());
    let row = (1..50i64, prop::sample::select(vec![4i64, 8, 16, 64]))
        .prop_map(|(first, step)| (0..32).map(|lane| 16 * first + step * lane).collect());
    let matrix = (1..50i64, prop::sample::select(vec![0i64, 4, 16, 64]), prop::sample::select(vec![0i64, 16, 256]))
        .prop_map(|(first, x, y)| (0..32).map(|lane| 16 * first + x * (lane % 8) + y * (lane / 8)).collect());
    let edge = prop::collection::vec(0..256i64, 32).prop_map(|all| all.into_iter().map(|n| 16 * n).collect());
    let odd = prop::collection::vec(2..1000i64, 32).prop_map(|all| all.into_iter().map(|n| 4 * n).collect());
    prop_oneof![anywhere, row, matrix, edge, odd]
}

/// Some lanes, or all lanes of some vectors of the host.
fn lanes() -> impl Strategy<Value = u32> {
    let vectors =
        any::<[bool; 4]>().prop_map(|on| (0..4).fold(0, |lanes, i| lanes | (u32::from(on[i]) * 0xff) << (8 * i)));
    prop_oneof![any::<u32>(), vectors]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1200))]

    #[test]
    fn loads_of_one_register_are_those_of_one_load_after_another(
        at in places(),
        mask in prop_oneof![Just(u32::MAX), Just(0xffff), Just(0xff00_ff00), any::<u32>()],
        threads in prop_oneof![Just(32usize), 1..33usize],
        guards in prop_oneof![
            Just(vec![ALWAYS; 17]),
            prop::collection::vec(prop_oneof![1..ALWAYS, Just(ALWAYS)], 17),
            prop::collection::vec(1..4u64, 17),
        ],
        (sets, wild) in (prop::collection::vec(lanes(), 8), prop_oneof![Just(0), lanes()]),
    ) {
        let mut gpu = Gpu { threads: 1, ..Gpu::default() };
        let out = gpu.alloc(32 * WRITTEN);
        let memory = gpu.upload(&(0..BYTES).map(byte).collect::<Vec<u8>>());
        let stays = |lane: usize| lane < threads && mask >> lane & 1 != 0;
        // A lane for which all guards are false may have any address.
        let is_set = |guard: u64, lane: usize| guard == ALWAYS || (sets[guard as usize] & !wild) >> lane & 1 != 0;
        let at: Vec<i64> = (0..32)
            .map(|lane| if guards.iter().any(|guard| is_set(*guard, lane)) { at[lane] } else { at[lane] << 40 | 1 })
            .collect();
        let bits = |lane: usize| (1..ALWAYS).fold(i64::from(!stays(lane)), |bits, n| bits | i64::from(is_set(n, lane)) << n);
        let table: Vec<i64> = (0..32).flat_map(|lane| [memory.va as i64 + at[lane], bits(lane)]).collect();
        let table = gpu.upload(&table);
        let found = gpu.run(&program(&guards), [1, 1, 1], [threads as u32, 1, 1], &[Arg::Ptr(&out), Arg::Ptr(&table)]);
        let places: Vec<_> = (0..32).map(|lane| stays(lane).then_some(at[lane])).collect();
        match (found, reference(&places, |n, lane| is_set(guards[n], lane))) {
            (Ok(_), Ok(wanted)) => prop_assert_eq!(out.read::<u8>(32 * WRITTEN), wanted),
            (Err(Stopped { fault, .. }), Err(at)) => {
                let at = memory.va.wrapping_add_signed(at);
                let named = match fault {
                    SmFault::Mmu { fault, .. } => fault.va == at,
                    SmFault::Warp { ref text, .. } => text.contains(&format!("{at:#x}")),
                    SmFault::Hang { .. } => false,
                };
                prop_assert!(named, "{fault:?}, and not {at:#x}");
            }
            (found, wanted) => prop_assert!(false, "{found:?}, and not {wanted:?}"),
        }
    }
}

/// How the lanes of a warp lie in one turn of a loop.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lie {
    /// A first place, and the distance from one lane to the next.
    Row(u64, u64),
    /// As in the turn before, all farther away.
    Further(u64),
    /// As in the turn before, all so many bytes farther away, which may be misaligned.
    Aside(u64),
    /// As in the turn before, but one lane elsewhere.
    But(usize, u64),
    /// As in the turn before, but the last lane is so many accesses before the end of the first half.
    Edge(u64),
    /// As in the turn before, but in the other place where memory is mapped, or there again.
    Across,
    /// Farther away, but no low word of an address carries to the high one.
    Torn(u64),
    Anywhere(u64),
    Line(u64, i64),
}

/// The bytes of what is copied in a loop. Its halves are mappings whose memory is not in the order of their addresses, and behind it nothing is mapped.
pub(crate) const COPIED: u64 = 1 << 16;
/// How far from there the same memory is mapped in the order of its addresses. The low words of addresses are the same.
pub(crate) const ACROSS: u64 = 1 << 32;
/// The distance of two loads, in accesses.
const SECOND: u64 = 3;
/// How far behind what is loaded the copy is. It is the offset in the store.
const COPY: u64 = 1 << 20;

/// The places of 32 lanes in each turn behind the address `from`, which are multiples of `len`. One turn may leave what is mapped.
pub(crate) fn turns(lies: &[Lie], len: u64, from: u64) -> Vec<Vec<u64>> {
    let low = u64::from(u32::MAX);
    let torn = |at: u64, by: u64| (at & !low | at.wrapping_add(by) & low).wrapping_sub(from);
    let mut places: Vec<u64> = (0..32).map(|lane| lane * len).collect();
    let mut turns = Vec::new();
    for lie in lies {
        places = match *lie {
            Lie::Row(first, apart) => (0..32).map(|lane| len * (first + apart * lane)).collect(),
            Lie::Further(by) => places.iter().map(|at| at.wrapping_add(len * by)).collect(),
            Lie::Aside(by) => places.iter().map(|at| at.wrapping_add(by)).collect(),
            Lie::But(lane, at) => (0..32).map(|i| if i == lane { len * at } else { places[i] }).collect(),
            Lie::Edge(before) => {
                let most = places.iter().max().unwrap_or(&0);
                let end = (COPIED / 2 - len * (1 + before)).max(most - places.iter().min().unwrap_or(&0));
                places.iter().map(|at| end - (most - at)).collect()
            }
            Lie::Across => places.iter().map(|at| at ^ ACROSS).collect(),
            Lie::Torn(by) => places.iter().map(|at| torn(from.wrapping_add(*at), len * by)).collect(),
            Lie::Anywhere(seed) => {
                let mut noise = Noise(seed);
                (0..32).map(|_| noise.next() % (COPIED / len) * len).collect()
            }
            Lie::Line(at, apart) => (0..32).map(|lane| at.wrapping_add_signed(apart * lane)).collect(),
        };
        turns.push(places.clone());
    }
    turns
}

/// In each turn of a loop, a lane takes its address from a table, and copies what is there, and what is a little further on, to the same places of
/// the copy.
fn copies_in_turns(turns: u64, bits: u64, len: u64) -> Kernel {
    let wide = |d: u64, parameter: u64| (0x7625 | d << 16 | (parameter / 4) << 40, 0x000f_c800_078e_0200 | 9); // IMAD.WIDE d, R0, R9, c[0][parameter]
    let load = |d: u64, a: u64, at: i64, bits: u64| (word(0x7981, d, a, 4, at), 0x000e_a800_0c1e_0000 | bits << 8);
    let store = |from: u64, at: i64| (word(0x7986, 0, 4, from, COPY as i64 + at), 0x000f_e200_0c10_0004 | bits << 8);
    let mut words = vec![
        (0x0000_0000_0000_7919, 0x000e_2200_0000_2100),      // S2R R0, SR_TID.X
        (0x7802 | 9 << 16 | 8 << 32, 0x000f_e200_0000_0f00), // MOV R9, 0x8
        (0x7802 | 1 << 16, 0x000f_e200_0000_0f00),           // MOV R1, 0x0
        wide(2, 0x160),
    ];
    let first = words.len();
    words.extend([
        load(4, 2, 0, 0x1b),
        load(12, 4, 0, bits),
        load(16, 4, (SECOND * len) as i64, bits),
        store(12, 0),
        store(16, (SECOND * len) as i64),
    ]);
    // The next row of the table, which does not reach the next 4 GiB: IADD3 R2, R2, 0x100, RZ, and one turn more.
    words.push((0x7810 | 2 << 16 | 2 << 24 | 0x100 << 32, 0x000f_c800_07ff_e0ff));
    words.push((0x7810 | 1 << 16 | 1 << 24 | 1 << 32, 0x000f_c800_07ff_e0ff));
    words.push((0x780c | 1 << 24 | turns << 32, 0x000f_da00_03f0_1270)); // ISETP.LT.AND P0, PT, R1, turns, PT
    let back = -16 * (words.len() + 1 - first) as i64;
    words.extend([(0x0947 | (back as u64) << 32, 0x000f_ea00_0383_ffff), EXIT]); // @P0 BRA
    Kernel { registers: 24, ..kernel(&words) }
}

pub(crate) fn lie() -> impl Strategy<Value = Lie> {
    let row = (0..COPIED / 16, prop::sample::select(vec![0u64, 1, 1, 2, 5]))
        .prop_map(|(first, apart)| Lie::Row(first, apart));
    let further = prop_oneof![3 => 0..64u64, 2 => 0..COPIED / 64, 1 => Just(1 << 28)];
    prop_oneof![
        2 => row,
        8 => further.prop_map(Lie::Further),
        1 => (1..20u64).prop_map(Lie::Aside),
        2 => (0..32usize, 0..COPIED / 16).prop_map(|(lane, at)| Lie::But(lane, at)),
        1 => Just(Lie::Across),
        2 => (0..2 * SECOND).prop_map(Lie::Torn),
        2 => (0..2 * SECOND).prop_map(Lie::Edge),
        1 => any::<u64>().prop_map(Lie::Anywhere),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// In a loop, the engine compares where lanes are with where they were.
    #[test]
    fn accesses_in_a_loop_are_where_their_addresses_say(
        (bits, len) in prop::sample::select(vec![(0x1du64, 16u64), (0x1b, 8), (0x19, 4), (0x15, 2), (0x11, 1)]),
        lies in prop::collection::vec(lie(), 1..12),
        threads in prop_oneof![3 => Just(32usize), 1 => 1..33usize],
        low in prop_oneof![Just(0u64), Just((1 << 32) - COPIED / 2)],
    ) {
        let mut gpu = Gpu { threads: 1, ..Gpu::default() };
        let (half, from) = (COPIED / 2, BASE + (7 << 32) + low);
        let (memory, out) = (gpu.upload(&(0..COPIED as usize).map(byte).collect::<Vec<u8>>()), gpu.alloc(COPIED as usize));
        for (buffer, va) in [(&memory, from), (&out, from + COPY)] {
            for (at, offset, len) in [(0, half, half), (half, 0, half), (ACROSS, 0, COPIED)] {
                let (backing, offset) = (Some(buffer.backing.clone()), offset as usize);
                gpu.table.insert(Extent { va: va + at, len, backing, offset, writable: true, ..Extent::default() });
            }
        }
        let places = turns(&lies, len, from);
        let table = gpu.upload(&places.iter().flatten().map(|at| from.wrapping_add(*at) as i64).collect::<Vec<_>>());
        let found = gpu.run(&copies_in_turns(lies.len() as u64, bits, len), [1, 1, 1], [threads as u32, 1, 1], &[Arg::Ptr(&table)]);
        let mut all = places.iter().flat_map(|row| &row[..threads]).flat_map(|at| [*at, at.wrapping_add(SECOND * len)]);
        let mut there = all.clone().map(|at| if at < ACROSS { at } else { at - ACROSS });
        prop_assert_eq!(found.is_ok(), there.all(|at| at <= COPIED - len && at % len == 0), "{:?}", found);
        if found.is_ok() {
            let at = |place: u64| if place < ACROSS { (place + half) % COPIED } else { place - ACROSS } as usize;
            let mut wanted = vec![0; COPIED as usize];
            all.by_ref().for_each(|place| (0..len).for_each(|i| wanted[at(place + i)] = byte(at(place + i))));
            prop_assert!(out.read::<u8>(COPIED as usize) == wanted);
        }
    }
}

/// An observer that chooses nothing. What is observed is executed as it stands, one instruction after another in every CTA.
pub struct Nothing;

impl Observer for Nothing {
    fn choose(&self, _: &Image, _: &mut Fetch<'_>) -> Chosen {
        Chosen { which: Vec::new(), is_narrow: false, notes: Arc::new(()) }
    }

    fn ctas<'a>(&'a self, _: &Launch, _: &Image) -> Box<dyn CtaObserver + 'a> {
        Box::new(Nothing)
    }

    fn ends(&self, _: u64) {}
}

impl CtaObserver for Nothing {
    fn begins(&mut self, _: u32) {}

    fn step(&mut self, step: &mut Step<'_, '_>) -> Flow {
        step.execute()
    }
}

/// An instruction of arithmetic on the registers R0 to R7, with a small number.
#[derive(Clone, Copy, Debug)]
struct Arithmetic {
    what: u8,
    d: u64,
    a: u64,
    b: u64,
    number: i32,
}

impl Arithmetic {
    fn word(self) -> (u64, u64) {
        let Arithmetic { what, d, a, b, number } = self;
        let (registers, shift, number) = (d << 16 | a << 24, number as u64 & 7, u64::from(number as u32) << 32);
        match what {
            0 => (0x7824 | registers | number, 0x000f_c800_078e_0200 | b), // IMAD d, a, number, b
            1 => (0x7810 | registers | number, 0x000f_c800_07ff_e000 | b), // IADD3 d, a, number, b
            2 => (0x7819 | registers | shift << 32, 0x000f_ca00_0000_06ff), // SHF.L.U32 d, a, shift, RZ
            3 => (0x7211 | registers | b << 32, 0x000f_c800_078e_00ff | shift << 11), // LEA d, a, b, shift
            4 => (0x7812 | registers | number, 0x000f_c800_078e_c0ff),     // LOP3.LUT d, a, number, RZ, 0xc0
            5 => (0x7802 | d << 16 | number, 0x000f_e200_0000_0f00),       // MOV d, number
            _ => (0x7224 | registers | b << 32, 0x000f_ca00_078e_02ff),    // IMAD d, a, b, RZ
        }
    }
}

fn arithmetic() -> impl Strategy<Value = Vec<Arithmetic>> {
    let number = prop_oneof![Just(4), Just(32), -3..40i32, -1500..0i32, Just(1 << 20), Just(i32::MIN), any::<i32>()];
    let one = (0..7u8, 5..8u64, 0..8u64, 0..8u64, number);
    prop::collection::vec(one.prop_map(|(what, d, a, b, number)| Arithmetic { what, d, a, b, number }), 0..6)
}

/// What a program does with memory: the bits of the size, the bytes, the registers of the two indices, and the offset of both accesses. The indices have
/// signs, or are multiplied without them if `parts`, and what that changes in the high word is added, or 1 if they are `far` away.
#[derive(Clone, Copy, Debug)]
struct Copies {
    bits: u64,
    bytes: u64,
    from: u64,
    to: u64,
    offset: i64,
    parts: bool,
    far: bool,
}

fn copies() -> impl Strategy<Value = Copies> {
    let size = prop::sample::select(vec![(0x1du64, 16u64), (0x1b, 8), (0x19, 4), (0x15, 2), (0x11, 1)]);
    (size, 3..8u64, 3..8u64, prop_oneof![Just(0i64), Just(64), -40..40i64], any::<bool>(), prop::bool::weighted(0.1))
        .prop_map(|((bits, bytes), from, to, offset, parts, far)| Copies { bits, bytes, from, to, offset, parts, far })
}

/// R0 to R2 are the index of the CTA, and R3 and R4 those of the thread. Arithmetic makes indices of these. The program loads from one
/// buffer, adds the first index of the CTA, and stores to another buffer.
fn opening(arithmetic: &[Arithmetic], copies: Copies) -> Kernel {
    let Copies { bits, bytes, from, to, offset, parts, far } = copies;
    let special = |d: u64, register: u64| (0x7919 | d << 16, 0x000e_2200_0000_0000 | register << 8);
    let mut words = vec![(0x7802 | 9 << 16 | bytes << 32, 0x000f_e200_0000_0f00)]; // MOV R9, bytes: warps begin alike.
    words.extend((0..3).map(|axis| special(axis, 0x25 + axis)));
    words.extend([special(3, 0x21), special(4, 0x22)]);
    // LEA R5, R0, R3, 0x5, and others until the program changes them.
    let usual = [(5, 0, 3, 5), (6, 1, 5, 7), (7, 4, 0, 5)];
    words.extend(usual.map(|(d, a, b, number)| Arithmetic { what: 3, d, a, b, number }.word()));
    words.extend(arithmetic.iter().map(|one| one.word()));
    // IMAD.WIDE R10, index, R9, c[0][parameter]; SHF.R.S32.HI R12, RZ, 31, index; IMAD R12, R12, R9, RZ; IADD3 R11, R11, R12, RZ.
    let wide = |index: u64, at: u64| (0x7625 | 10 << 16 | index << 24 | (at / 4) << 40, 0x000f_c800_078e_0009);
    let sign = |index: u64| (0x1f_ff0c_7819, 0x000f_e200_0001_1400 | index);
    let add = if far { (0x1_000c_7802, 0x000f_e200_0000_0f00) } else { (0x9_0c0c_7224, 0x000f_ca00_078e_02ff) };
    let high = [add, (0xc_0b0b_7210, 0x000f_c800_07ff_e0ff)];
    let wide = |index: u64, at: u64| match (parts, wide(index, at)) {
        (true, unsigned) => vec![sign(index), unsigned, high[0], high[1]],
        (false, (low, with_sign)) => vec![(low, with_sign | 0x200)],
    };
    words.extend(wide(from, 0x168));
    words.push((word(0x7981, 16, 10, 4, offset), 0x000e_a800_0c1e_0000 | bits << 8));
    words.extend(wide(to, 0x160));
    words.push((0x7210 | 16 << 16 | 16 << 24, 0x000f_c800_07ff_e0ff)); // IADD3 R16, R16, R0, RZ
    words.extend([(word(0x7986, 0, 10, 16, offset), 0x000f_e200_0c10_0004 | bits << 8), EXIT]);
    Kernel { registers: 24, ..kernel(&words) }
}

/// The bytes of each of the two buffers. A program begins in the middle.
const EACH: usize = 1 << 16;

type Outcome = (Result<[u64; 2], String>, Vec<u8>);

/// Runs a program on two buffers, one of which is two mappings if `parted`. Returns what happened, and the bytes of both.
fn outcome(kernel: &Kernel, grid: [u32; 3], block: [u32; 3], parted: bool, looks: bool) -> Outcome {
    let mut gpu = Gpu { threads: 1, ..Gpu::default() };
    let (out, input) = (gpu.alloc(EACH), gpu.upload(&(0..EACH).map(byte).collect::<Vec<u8>>()));
    let middle = EACH as u64 / 2;
    let mut at = |buffer: &Buffer| {
        let va = BASE + (1 << 32);
        for offset in [0, middle] {
            let (va, backing) = (va + offset, Some(buffer.backing.clone()));
            let extent = Extent { va, len: middle, backing, writable: true, ..Extent::default() };
            gpu.table.insert(Extent { offset: offset as usize, ..extent });
        }
        va + middle
    };
    let from = if parted { at(&input) } else { input.va + middle };
    let launch = gpu.launch(kernel, grid, block, &[Arg::Address(out.va + middle), Arg::Address(from)]);
    let observers: [&dyn Observer; 1] = [&Nothing];
    let found = run_observed(&launch, if looks { &observers } else { &[] });
    let stats = |stats: RunStats| [stats.warp_instructions, stats.thread_instructions];
    (found.map(stats).map_err(|stopped| format!("{stopped:?}")), [out, input].map(|b| b.read::<u8>(EACH)).concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_linear_in_the_index_of_the_cta_is_what_each_cta_computes(
        arithmetic in arithmetic(),
        copies in copies(),
        parted in any::<bool>(),
        (x, y, z) in (1..5u32, 1..4u32, 1..3u32),
        block in prop::sample::select(vec![[32u32, 1, 1], [16, 1, 1], [8, 8, 1], [40, 2, 1]]),
    ) {
        let (kernel, grid) = (opening(&arithmetic, copies), [64 * x, y, z]);
        let (wanted, theirs) = outcome(&kernel, grid, block, parted, true);
        let (found, ours) = outcome(&kernel, grid, block, parted, false);
        prop_assert_eq!(found.map_err(|_| ()), wanted.clone().map_err(|_| ()), "{:?}", wanted);
        prop_assert!(ours == theirs);
    }
}

/// CTAs whose addresses are linear fault as they would if each of them computed its own.
#[test]
fn a_cta_that_leaves_the_buffer_faults_where_it_would() {
    let copies = Copies { bits: 0x1d, bytes: 16, from: 5, to: 5, offset: 0, parts: false, far: false };
    let kernel = opening(&[], copies);
    let (found, ours) = outcome(&kernel, [400, 1, 1], [32, 1, 1], false, false);
    let (wanted, theirs) = outcome(&kernel, [400, 1, 1], [32, 1, 1], false, true);
    let text = found.clone().expect_err("400 CTAs of 512 bytes are more than 32 KiB");
    assert!(text.contains("Mmu"), "{text}");
    assert_eq!(found, wanted);
    assert!(ours == theirs, "and the CTAs before it have stored");
}

/// Kernels of tinygrad do the same whether somebody observes them or not, and whether they are interpreted or translated.
#[test]
fn kernels_that_begin_alike_in_all_ctas_compute_what_each_cta_computes() {
    type Row = (&'static str, [u32; 3], [u32; 3], &'static [usize]);
    const KERNELS: [Row; 12] = [
        ("tinygrad_add", [256, 1, 1], [32, 1, 1], &[32768; 3]),
        ("tinygrad_cast_half", [256, 1, 1], [32, 1, 1], &[16384, 32768]),
        ("tinygrad_fill", [256, 1, 1], [32, 1, 1], &[32768]),
        ("tinygrad_softmax_sums", [256, 1, 1], [16, 1, 1], &[256, 65536, 256]),
        ("tinygrad_softmax_quotients", [4, 32, 1], [8, 16, 1], &[65536, 65536, 256, 256]),
        ("tinygrad_norm_variances", [256, 1, 1], [16, 1, 1], &[256, 65536, 256]),
        ("tinygrad_norm_results", [4, 32, 1], [8, 16, 1], &[65536, 65536, 256, 256]),
        ("tinygrad_conv", [2, 4, 4], [16, 8, 1], &[65536, 65536, 2304]),
        ("tinygrad_elementwise", [512, 1, 1], [32, 1, 1], &[65536, 65536]),
        ("tinygrad_cumsum", [16, 32, 1], [8, 16, 1], &[65536, 65536]),
        ("tinygrad_gemm_128", [2, 4, 1], [8, 16, 1], &[16384, 16384, 16384]),
        ("tinygrad_softmax_max", [512, 1, 1], [16, 1, 1], &[512, 262144]),
    ];
    for (name, grid, block, words) in KERNELS {
        let run = |observers: &[&dyn Observer], translated_after: u64| {
            let (mut gpu, mut noise) = (Gpu { threads: 1, ..Gpu::default() }, Noise(1));
            let mut floats = |count: usize| (0..count).map(|_| noise.float()).collect::<Vec<f32>>();
            let buffers: Vec<_> = words.iter().map(|&count| gpu.upload(&floats(count))).collect();
            let args: Vec<_> = buffers.iter().map(Arg::Ptr).collect();
            let mut launch = gpu.launch(&Kernel::named(name), grid, block, &args);
            launch.limits.translated_after = translated_after;
            let stats = run_observed(&launch, observers).expect("no fault");
            (stats.warp_instructions, stats.thread_instructions, buffers[0].read::<u32>(words[0]))
        };
        let (ours, theirs) = (run(&[], u64::MAX), run(&[&Nothing], 0));
        assert!(ours == theirs, "{name}");
        assert!(ours == run(&[], 0), "{name}, translated");
        assert!(ours.2.iter().any(|word| *word != 0) && ours.0 > 0);
    }
}
