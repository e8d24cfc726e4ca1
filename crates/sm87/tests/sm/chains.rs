//! Loads from one address register. The engine finds out once how the lanes lie, and executes several of them together. What
//! they read, and what they report, must be what one load and one lane after another would.

use crate::support::{Arg, Gpu, Kernel};
use proptest::prelude::*;
use sm87::{SmFault, Stopped};

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
fn word(rest: u64, d: u64, a: u64, b: u64, offset: i64) -> u64 {
    rest | d << 16 | a << 24 | b << 32 | (offset as u64 & 0xff_ffff) << 40
}

/// Each lane finds its address in a table, and whether it leaves at once. It reads with [`loads`], and writes what it read.
fn program() -> Kernel {
    const MOVE: u64 = 0x000f_e200_078e_00ff; // IMAD.MOV.U32 R, RZ, RZ, immediate
    const WIDE: u64 = 0x000f_ca00_078e_0200; // IMAD.WIDE R, R0, R, c[0x0][…]
    let load = |bits: u64| 0x000e_a800_0c1e_0000 | bits << 8;
    let mut words = vec![
        (0x0000_0000_0000_7919, 0x000e_2200_0000_2100), // S2R R0, SR_TID.X
        (0x0000_0010_ff06_7424, MOVE),
        (0x0000_5a00_0002_7625, WIDE | 6), // the table's entry
        (word(0x7981, 1, 2, 4, 8), load(0x19)),
        (word(0x7981, 2, 2, 4, 0), load(0x1b)),
        (0x0000_00ff_0100_720c, 0x000f_c600_03f0_5270), // ISETP.NE.AND P0, PT, R1, RZ, PT
        (0x0000_0000_0000_094d, 0x000f_ea00_0380_0000), // @P0 EXIT
        (0x0000_0080_ff07_7424, MOVE),
        (0x0000_5800_0004_7625, WIDE | 7), // where the lane writes
    ];
    words.extend(loads().iter().map(|l| (word(0x7981, l.register, 2, 4, l.offset), load(l.bits))));
    let store = |k: u64| (word(0x7986, 0, 4, 8 + 4 * k, 16 * k as i64), 0x000f_e200_0c10_1d04);
    words.extend((0..7).map(store));
    words.push((0x0000_0000_0000_794d, 0x000f_ea00_0380_0000)); // EXIT
    let mut text = String::from("registers 40\nshared 0\nstack 0\n");
    for (low, high) in words {
        text += &format!("{low:016x} {high:016x}\n");
    }
    Kernel::parse(&text)
}

fn byte(i: usize) -> u8 {
    ((i * 7) ^ ((i >> 8) * 13)) as u8
}

/// What a lane writes after it has read at `at`; or the address that it faults at.
fn reference(places: &[Option<i64>]) -> Result<Vec<u8>, i64> {
    let mut out = vec![0; 32 * WRITTEN];
    for l in loads() {
        for (lane, at) in places.iter().enumerate().filter_map(|(lane, at)| Some((lane, (*at)? + l.offset))) {
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
    let matrix = (1..50i64, prop::sample::select(vec![0i64, 16, 64]), prop::sample::select(vec![0i64, 16, 256]))
        .prop_map(|(first, x, y)| (0..32).map(|lane| 16 * first + x * (lane % 8) + y * (lane / 8)).collect());
    let edge = prop::collection::vec(0..256i64, 32).prop_map(|all| all.into_iter().map(|n| 16 * n).collect());
    let odd = prop::collection::vec(2..1000i64, 32).prop_map(|all| all.into_iter().map(|n| 4 * n).collect());
    prop_oneof![anywhere, row, matrix, edge, odd]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn loads_of_one_register_are_those_of_one_load_after_another(
        at in places(),
        mask in prop_oneof![Just(u32::MAX), Just(0xffff), Just(0xff00_ff00), any::<u32>()],
        threads in prop_oneof![Just(32usize), 1..33usize],
    ) {
        let mut gpu = Gpu { threads: 1, ..Gpu::default() };
        let out = gpu.alloc(32 * WRITTEN);
        let memory = gpu.upload(&(0..BYTES).map(byte).collect::<Vec<u8>>());
        let stays = |lane: usize| lane < threads && mask >> lane & 1 != 0;
        let table: Vec<i64> = (0..32).flat_map(|lane| [memory.va as i64 + at[lane], i64::from(!stays(lane))]).collect();
        let table = gpu.upload(&table);
        let found = gpu.run(&program(), [1, 1, 1], [threads as u32, 1, 1], &[Arg::Ptr(&out), Arg::Ptr(&table)]);
        let places: Vec<_> = (0..32).map(|lane| stays(lane).then_some(at[lane])).collect();
        match (found, reference(&places)) {
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
