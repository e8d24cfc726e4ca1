//! Instructions that compilers emit rarely.

use crate::kernel;
use crate::support::{Arg, Gpu, clock};
use crate::support::{EXIT, program};
use proptest::prelude::*;
use sm87::{Launch, SmFault, Stopped, run};

fn saturate(x: i32, low: i32, high: i32, bits: u32) -> u32 {
    x.clamp(low, high) as u32 & ((1 << bits) - 1)
}

/// The dot product of two halves of `a` and two bytes of `b` from bit `at`, added to `c`.
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

/// Programs may rely on as many CTAs being on the GPU together as it has room for.
#[test]
fn section_7_2_a_cta_waits_for_a_later_one() {
    for threads in [1, 3] {
        let mut gpu = Gpu { threads, budget: Some(1_000_000_000), ..Gpu::default() };
        let (flag, out) = (gpu.alloc(4), gpu.alloc(4 * 40));
        gpu.run(&kernel!("later_cta"), [40, 1, 1], [1, 1, 1], &[Arg::Ptr(&flag), Arg::Ptr(&out)]).unwrap();
        assert_eq!(out.read::<u32>(1), [40]);
    }
}

/// CTAs that run one after another cannot wait for a later one.
#[test]
fn section_6_1_sequential_ctas() {
    let mut gpu = Gpu { threads: 3, budget: Some(10_000_000), ..Gpu::default() };
    let (flag, out) = (gpu.alloc(4), gpu.alloc(4 * 40));
    let launch = gpu.launch(&kernel!("later_cta"), [40, 1, 1], [1, 1, 1], &[Arg::Ptr(&flag), Arg::Ptr(&out)]);
    let stopped = run(&Launch { sequential: true, ..launch }).expect_err("it waits for ever");
    assert!(matches!(stopped.fault, SmFault::Hang { .. }), "{stopped:?}");
}

/// Registers that are not the same in all lanes, and pairs with them, in all lanes of a whole warp and of a part of one.
#[test]
fn section_7_4_special_registers_of_lanes() {
    let of = |index: u64, lane: u32| match index {
        0x00 | 0x20 | 0x21 => lane,
        0x38 => 1 << lane,
        0x39 => (1 << lane) - 1,
        0x3a => u32::MAX >> (31 - lane),
        0x3b => !(u32::MAX >> (31 - lane)),
        0x3c => !((1 << lane) - 1),
        0x3d => 16,
        _ => 0,
    };
    for threads in [32u32, 20] {
        for (index, wide) in [0x00, 0x20, 0x21, 0x22, 0x25, 0x38, 0x39, 0x3a, 0x3b, 0x3c]
            .into_iter()
            .flat_map(|i| [(i, false), (i, true)])
        {
            let mut gpu = Gpu::default();
            let out = gpu.alloc(8 * 32);
            // S2R R0 or CS2R R0; R2, R3 = c[0][0x160], R4 = TID.X; R2 += 8 * R4; [R2] = R0, R1.
            let read = if wide {
                (0x7805, 0x000e_2200_0001_0000 | index << 8)
            } else {
                (0x7919, 0x000e_2200_0000_0000 | index << 8)
            };
            let words = [
                read,
                (0x0000_5800_0002_7a02, 0x000f_e400_0000_0f00),
                (0x0000_5900_0003_7a02, 0x000f_e400_0000_0f00),
                (0x0000_0000_0004_7919, 0x000e_2200_0000_2100),
                (0x0000_0008_0402_7824, 0x000f_e200_078e_0002),
                (0x0000_0000_0200_7986, 0x000f_e200_0c10_1b04),
                EXIT,
            ];
            gpu.run(&program(&words), [1, 1, 1], [threads, 1, 1], &[Arg::Ptr(&out)]).unwrap();
            let found = out.read::<u32>(64);
            for lane in 0..threads {
                assert_eq!(found[2 * lane as usize], of(index, lane), "register {index:#x} in lane {lane}, {wide}");
                if wide {
                    assert_eq!(
                        found[2 * lane as usize + 1],
                        of(index + 1, lane),
                        "the register behind {index:#x} in lane {lane}"
                    );
                }
            }
        }
    }
}

/// Every special register that a compute program can read, in lane 3 of the second warp.
#[test]
fn section_7_4_special_registers() {
    let mut gpu = Gpu::default();
    let before = clock();
    let mut read = |index: u64| {
        let out = gpu.alloc(4 * 64);
        // The program: R0 = SR; R2, R3 = c[0][0x160], R4 = TID.X; R2 += 4 * R4; [R2] = R0.
        let kernel = program(&[
            (0x0000_0000_0000_7919, 0x000e_2200_0000_0000 | index << 8),
            (0x0000_5800_0002_7a02, 0x000f_e400_0000_0f00),
            (0x0000_5900_0003_7a02, 0x000f_e400_0000_0f00),
            (0x0000_0000_0004_7919, 0x000e_2200_0000_2100),
            (0x0000_0004_0402_7824, 0x000f_e200_078e_0002),
            (0x0000_0000_0200_7986, 0x000f_e200_0c10_1904),
            EXIT,
        ]);
        gpu.run(&kernel, [3, 2, 1], [32, 2, 1], &[Arg::Ptr(&out)]).map(|_| out.read::<u32>(64))
    };
    // Lane 3 of the second warp is thread (3, 1, 0). Every CTA stores its value, and the last CTA stores last.
    let lane3 = |values: Result<Vec<u32>, Stopped>| values.unwrap()[3];
    for (index, expected) in [
        (0x00, 3),
        (0x03, 1 << 8),
        (0x20, 3 | 1 << 16),
        (0x21, 3),
        (0x22, 1),
        (0x23, 0),
        (0x25, 2),
        (0x26, 1),
        (0x27, 0),
        (0x2c, 0x806),
        (0x2e, 0xfd),
        (0x2f, 0xfe),
        (0x31, 1 << 24),
        (0x34, 0),
        (0x36, 0),
        (0x37, (1 << 24) - 0x240),
        (0x38, 8),
        (0x39, 7),
        (0x3a, 15),
        (0x3b, !15),
        (0x3c, !7),
        (0x3d, 16),
        (0x40, 0),
        (0x43, 5),
        (0x44, 1),
        (0x54, 0),
        (0x64, 0),
        (0x83, 0),
        (0x10, 0),
        (0x1f, 0),
        (0xff, 0),
    ] {
        assert_eq!(lane3(read(index)), expected, "register {index:#x}");
    }
    // The timer is the clock that semaphores use.
    let (low, high) = (lane3(read(0x52)), lane3(read(0x53)));
    let (now, then) = (clock(), u64::from(high) << 32 | u64::from(low));
    assert!(low.is_multiple_of(32) && then >= before && then <= now);
    // Compute programs do not have this register.
    let refused = read(0x85).expect_err("no such register").fault;
    assert!(refused.record().is_some_and(|(_, r)| r.warp_esr == 0xb), "{refused:?}");
}

/// Numbers in places where compilers seldom write one: the third operand of USHF and LEA.HI, and the only one of UFLO, UBREV and UPOPC.
#[test]
fn numbers_in_rare_places() {
    for (instruction, expected) in [
        // USHF.L.U64.HI UR5, UR6, UR5, 0xffffffff
        ((0xffff_ffff_0605_7499, 0x000f_e400_0801_0205), 0xffff_fff8),
        // LEA.HI R0, R4, R5, 0x80000000, 0x1. The top bit of the number is no sign of R5.
        ((0x8000_0000_0400_7411, 0x000f_e400_000f_0805), 1 + 7),
        // UFLO.U32 UR5, 0x4; UBREV UR5, 0x4; UPOPC UR5, 0x5
        ((0x0000_0004_0005_78bd, 0x000f_e400_080e_0000), 2),
        ((0x0000_0004_0005_78be, 0x000f_e200_0800_0000), 0x2000_0000),
        ((0x0000_0005_0005_78bf, 0x000f_e400_0800_0000), 2),
    ] {
        let in_vector = instruction.0 & 0x1ff == 0x11;
        // R0 = UR5, or nothing: NOP.
        let moved =
            if in_vector { (0x7918, 0x000f_c000_0000_0000) } else { (0x0000_0005_0000_7c02, 0x000f_e200_0800_0f00) };
        // The program: R2, R3 = c[0][0x160]; R4 = 0xc0000000; R5 = 7; UR6 = 0x80000001; UR5 = 4; the instruction; [R2] = R0.
        let kernel = program(&[
            (0x0000_5800_0002_7a02, 0x000f_e400_0000_0f00),
            (0x0000_5900_0003_7a02, 0x000f_e400_0000_0f00),
            (0xc000_0000_0004_7802, 0x000f_e400_0000_0f00),
            (0x0000_0007_0005_7802, 0x000f_e400_0000_0f00),
            (0x8000_0001_0006_7882, 0x000f_e400_0000_0000),
            (0x0000_0004_0005_7882, 0x000f_e400_0000_0000),
            instruction,
            moved,
            (0x0000_0000_0200_7986, 0x000f_e200_0c10_1904),
            EXIT,
        ]);
        let mut gpu = Gpu::default();
        let out = gpu.alloc(4);
        gpu.run(&kernel, [1, 1, 1], [32, 1, 1], &[Arg::Ptr(&out)]).unwrap();
        assert_eq!(out.read::<u32>(1), [expected], "{:#x}", instruction.0);
    }
}

/// Registers, predicates and uniform registers are zero when a warp starts.
#[test]
fn section_7_3_registers_at_entry() {
    let mut gpu = Gpu::default();
    let out = gpu.alloc(4 * 64);
    let kernel = program(&[
        (0x0000_5800_0002_7a02, 0x000f_e400_0000_0f00),
        (0x0000_5900_0003_7a02, 0x000f_e400_0000_0f00),
        // The program: [R2] = R9; R8 = UR2; [R2 + 4] = R8.
        (0x0000_0009_0200_7986, 0x000f_e200_0c10_1904),
        (0x0000_0002_0008_7c02, 0x000f_e400_0800_0f00),
        (0x0000_0408_0200_7986, 0x000f_e200_0c10_1904),
        EXIT,
    ]);
    gpu.run(&kernel, [1, 1, 1], [32, 1, 1], &[Arg::Ptr(&out)]).unwrap();
    assert_eq!(out.read::<u32>(2), [0, 0]);
}

/// The lane whose word `lane` gets from SHFL, and the predicate, as the PTX ISA has them: index, up, down or butterfly.
fn shuffled(mode: u64, lane: i32, b: u32, c: u32) -> (i32, bool) {
    let (b, clamp, segment) = (b as i32 & 31, c as i32 & 31, c as i32 >> 8 & 31);
    let (max, min) = (lane & segment | clamp & !segment, lane & segment);
    let (from, valid) = match mode {
        0 => (min | b & !segment, (min | b & !segment) <= max),
        1 => (lane - b, lane - b >= max),
        2 => (lane + b, lane + b <= max),
        _ => (lane ^ b, lane ^ b <= max),
    };
    (if valid { from } else { lane }, valid)
}

/// What SHFL does in a warp: its mode, the words of its three operands, the lanes that execute it, its destination, and whether it has numbers
/// instead of the last two registers.
#[derive(Clone, Debug)]
struct Shuffle {
    mode: u64,
    words: [Vec<u32>; 3],
    on: u32,
    to: u64,
    fixed: bool,
}

fn shuffles() -> impl Strategy<Value = Shuffle> {
    let words = || prop::collection::vec(any::<u32>(), 32);
    // Kernels usually have one number for all lanes, and segments of 8, 16 or 32.
    let number = || prop_oneof![words(), (0..40u32).prop_map(|n| vec![n; 32])];
    let clamp = prop_oneof![
        words(),
        prop::sample::select(vec![0x1f, 0, 0x181f, 0x1800, 0x101f, 0x1000]).prop_map(|n| vec![n; 32])
    ];
    let on = prop_oneof![Just(u32::MAX), any::<u32>(), (0..32u32).prop_map(|lane| 1 << lane)];
    (0..4u64, words(), number(), clamp, on, prop::sample::select(vec![4u64, 5, 8, 10]), any::<bool>())
        .prop_map(|(mode, a, b, c, on, to, fixed)| Shuffle { mode, words: [a, b, c], on, to, fixed })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn words_are_shuffled_as_the_ptx_isa_says(shuffle in shuffles()) {
        let Shuffle { mode, words, on, to, fixed } = &shuffle;
        // @P0 SHFL P1, Rto, R4, with R5 and R8, or with the numbers that their first lanes have.
        let registers = (0x0389 | to << 16 | 4 << 24 | 5 << 32 | mode << 58, 0x000e_6800_0002_0008);
        let [b, c] = [1, 2].map(|n| u64::from(words[n][0]));
        let immediate = (0x0f89 | to << 16 | 4 << 24 | (b & 31) << 53 | (c & 0x1fff) << 40 | mode << 58, 0x000e_6800_0002_0000);
        let load = |d: u64, at: u64| (0x7981 | d << 16 | 6 << 24 | at << 40, 0x000e_a800_0c1e_1900); // LDG.E Rd, [R6.64+at]
        let store = |b: u64, at: u64| (0x7986 | 6 << 24 | b << 32 | at << 40, 0x000f_e200_0c10_1904); // STG.E [R6.64+at], Rb
        let program = program(&[
            (0x7919, 0x000e_2200_0000_2100),                     // S2R R0, SR_TID.X
            (0x7802 | 3 << 16 | 4 << 32, 0x000f_e200_0000_0f00), // MOV R3, 0x4
            (0x7802 | 11 << 16, 0x000f_e200_0000_0f00),          // MOV R11, 0x0
            (0x7802 | 10 << 16 | 7 << 32, 0x000f_e200_0000_0f00), // MOV R10, 0x7
            (0x7625 | 6 << 16 | (0x160 / 4) << 40, 0x000f_c800_078e_0203), // IMAD.WIDE R6, R0, R3, c[0x0][0x160]
            load(4, 0), load(5, 128), load(8, 256), load(9, 384),
            (0x720c | 9 << 24 | 255 << 32, 0x000f_c600_03f0_5270), // ISETP.NE.AND P0, PT, R9, RZ, PT
            if *fixed { immediate } else { registers },
            (0x1802 | 11 << 16 | 1 << 32, 0x000f_e200_0000_0f00), // @P1 MOV R11, 0x1
            store(*to, 512), store(11, 640),
            EXIT,
        ]);
        let lanes = (0..32).map(|lane| on >> lane & 1);
        let table: Vec<u32> = words.iter().flatten().copied().chain(lanes).chain([0; 64]).collect();
        let mut gpu = Gpu::default();
        let table = gpu.upload(&table);
        gpu.run(&program, [1, 1, 1], [32, 1, 1], &[Arg::Ptr(&table)]).expect("it ends");
        let found = table.read::<u32>(192);
        for lane in 0..32usize {
            let before = match to { 4 => words[0][lane], 5 => words[1][lane], 8 => words[2][lane], _ => 7 };
            let of = if *fixed { 0 } else { lane };
            let (from, valid) = shuffled(*mode, lane as i32, words[1][of], words[2][of]);
            let want = if on >> lane & 1 != 0 { (words[0][from as usize], u32::from(valid)) } else { (before, 0) };
            prop_assert_eq!((found[128 + lane], found[160 + lane]), want, "lane {}", lane);
        }
    }
}
