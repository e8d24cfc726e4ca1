//! The copy engine against a byte-by-byte model.

use crate::harness::*;
use proptest::prelude::*;
use tegra_hw::GpuPort;
use tegrarm_abi::methods::copy::*;

const SRC: u64 = 0x2_0000_0000;
const DST: u64 = 0x3_0000_0000;
const SIZE: usize = 16 << 10;

const PITCHED: u32 = 0x180;
const MULTI_LINE: u32 = 1 << 9;
const REMAP: u32 = 1 << 10;
const COPY: u32 = NVC6B5_LAUNCH_DMA_DATA_TRANSFER_TYPE_NON_PIPELINED;

fn set(words: &mut Vec<u32>, method: u32, data: &[u32]) {
    words.extend(methods(4, method, data));
}

/// The methods that set addresses, pitches, length and count.
fn shape(from: u64, to: u64, pitch: [i32; 2], length: u32, count: u32) -> Vec<u32> {
    let split = |va: u64| [(va >> 32) as u32, va as u32];
    let mut words = Vec::new();
    set(&mut words, NVC6B5_OFFSET_IN_UPPER, &[split(from), split(to)].concat());
    set(&mut words, NVC6B5_PITCH_IN, &[pitch[0] as u32, pitch[1] as u32, length, count]);
    words
}

/// Two buffers with random contents. The destination is split over two mappings.
fn memory(m: &Machine) -> (Buffer, Buffer) {
    let (src, dst) = (m.map(SRC, SIZE), m.map(DST, SIZE));
    let mut seed = 12345u32;
    let mut next = || {
        seed = seed.wrapping_mul(1664525).wrapping_add(1013904223);
        seed
    };
    for i in 0..SIZE / 4 {
        src.mem.write_u32(4 * i, next());
        dst.mem.write_u32(4 * i, next());
    }
    (src, dst)
}

/// Runs a launch and compares the destination with the result of `model`.
fn check(words: Vec<u32>, model: impl Fn(&[u8], &mut [u8])) -> Result<(), TestCaseError> {
    let m = Machine::new();
    let mut lane = m.lane();
    let (src, dst) = memory(&m);
    let mut expected = dst.bytes();
    model(&src.bytes(), &mut expected);
    m.run(&mut lane, &words);
    prop_assert!(!lane.dead(), "{:?}", m.gpu.faults());
    prop_assert_eq!(dst.bytes(), expected);
    Ok(())
}

/// The offset of a byte in a block-linear surface, computed bit by bit.
fn tiled(width: usize, height: usize, h: u32, d: u32, x: usize, y: usize, z: usize) -> usize {
    let bit = |v: usize, from: u32, to: u32| (v >> from & 1) << to;
    let gob = x & 15 | bit(y, 0, 4) | bit(y, 1, 5) | bit(x, 4, 6) | bit(y, 2, 7) | bit(x, 5, 8);
    let (rows, slices) = (8 << h, 1 << d);
    let (blocks_x, blocks_y) = (width.div_ceil(64), height.div_ceil(rows));
    let block = x / 64 + (y / rows) * blocks_x + (z / slices) * blocks_x * blocks_y;
    let in_block = y % rows / 8 + z % slices * (1 << h);
    block * (512 << (h + d)) + in_block * 512 + gob
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn section_4_3_pitch_lines(from in 0usize..4096, to in 0usize..4096, length in 0u32..200, count in 0u32..12, gap in 0i32..50, down: bool) {
        let pitch = [length as i32 + gap, if down { -(length as i32 + 2 * gap) } else { length as i32 }];
        let to = if down { to + 6000 } else { to };
        let mut words = shape(SRC + from as u64, DST + to as u64, pitch, length, count);
        set(&mut words, NVC6B5_LAUNCH_DMA, &[COPY | PITCHED | MULTI_LINE]);
        check(words, |src, dst| {
            for y in 0..count as i32 {
                let at = |base: usize, pitch: i32| (base as i32 + y * pitch) as usize;
                let (f, t) = (at(from, pitch[0]), at(to, pitch[1]));
                dst[t..t + length as usize].copy_from_slice(&src[f..f + length as usize]);
            }
        })?;
    }

    #[test]
    fn section_4_3_remapped_elements(
        selectors in prop::array::uniform4(0u32..7), size in 1usize..5, sources in 1usize..5, targets in 1usize..5,
        constants in prop::array::uniform2(any::<u32>()), from in 0usize..100, to in 0usize..100, length in 0u32..300,
    ) {
        prop_assume!(selectors[..targets].iter().all(|s| *s >= 4 || (*s as usize) < sources));
        let mut words = shape(SRC + from as u64, DST + to as u64, [0, 0], length, 0);
        let packed = selectors.iter().enumerate().map(|(i, s)| s << (4 * i)).sum::<u32>()
            | ((size - 1) << 16 | (sources - 1) << 20 | (targets - 1) << 24) as u32;
        set(&mut words, NVC6B5_SET_REMAP_CONST_A, &[constants[0], constants[1], packed]);
        set(&mut words, NVC6B5_LAUNCH_DMA, &[COPY | PITCHED | REMAP]);
        check(words, |src, dst| {
            for i in 0..length as usize {
                for (c, selector) in selectors[..targets].iter().enumerate() {
                    let t = to + (i * targets + c) * size;
                    for b in 0..size {
                        match selector {
                            0..=3 => dst[t + b] = src[from + (i * sources + *selector as usize) * size + b],
                            4 | 5 => dst[t + b] = constants[*selector as usize - 4].to_le_bytes()[b],
                            _ => {}
                        }
                    }
                }
            }
        })?;
    }

    #[test]
    fn section_4_3_to_and_from_block_linear(
        right in 0u32..50, below in 0u32..5, h in 0u32..3, d in 0u32..2, layer in 0u32..2,
        x in 0u32..100, y in 0u32..12, length in 1u32..100, count in 1u32..12, to_tiles: bool,
    ) {
        let (width, height) = (x + length + right, y + count + below);
        let (w, hh) = (width as usize, height as usize);
        prop_assume!(tiled(w.next_multiple_of(64), hh.next_multiple_of(8 << h), h, d, w.next_multiple_of(64) - 1, hh - 1, 1) < SIZE);
        let block = h << 4 | d << 8 | 1 << 12;
        let mut words = shape(SRC, DST, [length as i32, length as i32], length, count);
        let surface = [block, width, height, 2, layer];
        let (first, ox, layout) = if to_tiles {
            (NVC6B5_SET_DST_BLOCK_SIZE, NVC6B5_DST_ORIGIN_X, 1 << 7)
        } else {
            (NVC6B5_SET_SRC_BLOCK_SIZE, NVC6B5_SRC_ORIGIN_X, 1 << 8)
        };
        set(&mut words, first, &surface);
        set(&mut words, ox, &[x, y]);
        set(&mut words, NVC6B5_LAUNCH_DMA, &[COPY | MULTI_LINE | layout]);
        check(words, |src, dst| {
            for line in 0..count as usize {
                for b in 0..length as usize {
                    let t = tiled(w, hh, h, d, x as usize + b, y as usize + line, layer as usize);
                    let p = line * length as usize + b;
                    if to_tiles { dst[t] = src[p] } else { dst[p] = src[t] }
                }
            }
        })?;
    }

    /// A line that is copied over itself moves as memmove does, over mappings that are not contiguous in memory.
    #[test]
    fn section_4_2_overlapping_lines(from in 0usize..9000, to in 0usize..9000, length in 1u32..7000) {
        let m = Machine::new();
        let mut lane = m.lane();
        let parts: Vec<_> = (0..4).map(|i| m.map(DST + 4096 * i, 4096)).collect();
        let bytes: Vec<u8> = (0..SIZE).map(|i| (i * 7 + i / 251) as u8).collect();
        parts.iter().zip(bytes.chunks(4096)).for_each(|(p, b)| p.set_bytes(b));
        let mut words = shape(DST + from as u64, DST + to as u64, [0, 0], length, 0);
        set(&mut words, NVC6B5_LAUNCH_DMA, &[COPY | PITCHED]);
        m.run(&mut lane, &words);
        let mut expected = bytes;
        expected.copy_within(from..from + length as usize, to);
        let got: Vec<u8> = parts.iter().flat_map(|p| p.bytes()).collect();
        prop_assert_eq!(got, expected);
    }
}

/// Memset patterns work as drivers program them, and the source is not read.
#[test]
fn section_4_3_memset_patterns() {
    // Each case has constants, the remap word, the number of elements and the bytes.
    let cases: [([u32; 2], u32, u32, Vec<u8>); 3] = [
        ([0, 0xab], 5, 5000, vec![0xab; 5000]),
        ([0, 0x0102_0304], 5 | 3 << 16, 2000, [4, 3, 2, 1].repeat(2000)),
        ([0x0403_0201, 0x0807_0605], 4 | 5 << 4 | 3 << 16 | 1 << 24, 1000, [1, 2, 3, 4, 5, 6, 7, 8].repeat(1000)),
    ];
    for (constants, remap, elements, expected) in cases {
        let m = Machine::new();
        let mut lane = m.lane();
        let dst = m.map(DST, SIZE);
        let mut words = shape(0xdead_0000_0000, DST, [0, 0], elements, 0);
        set(&mut words, NVC6B5_SET_REMAP_CONST_A, &[constants[0], constants[1], remap]);
        set(&mut words, NVC6B5_LAUNCH_DMA, &[COPY | PITCHED | REMAP]);
        m.run(&mut lane, &words);
        assert!(!lane.dead(), "{:?}", m.gpu.faults());
        assert_eq!(dst.bytes()[..expected.len()], expected);
        assert_eq!(dst.bytes()[expected.len()..].iter().map(|b| u32::from(*b)).sum::<u32>(), 0);
    }
}

/// Semaphores of every form are written after the data, and also if there is no data.
#[test]
fn section_4_2_launch_semaphores() {
    let m = Machine::new();
    let mut lane = m.lane();
    let (src, dst) = memory(&m);
    let sem = m.map(0x4_0000_0000, 4096);
    let mut launch = |at: u32, payload: [u32; 2], word: u32| {
        sem.fill(0, &[7, 7, 7, 7]);
        let mut words = shape(SRC, DST, [0, 0], 64, 0);
        set(&mut words, NVC6B5_SET_SEMAPHORE_A, &[4, at, payload[0], payload[1]]);
        set(&mut words, NVC6B5_LAUNCH_DMA, &[word]);
        m.run(&mut lane, &words);
        assert!(!lane.dead(), "{:?}", m.gpu.faults());
        sem.words(0, 4)
    };
    assert_eq!(launch(0, [1, 2], COPY | PITCHED | 1 << 3), [1, 7, 7, 7]);
    assert_eq!(src.words(0, 16), dst.words(0, 16));
    assert_eq!(launch(0, [1, 2], 1 << 3 | 1 << 27), [1, 2, 7, 7]);
    // This is tinygrad's launch: flush, four words, nothing to copy.
    let four = launch(0, [9, 2], 0x14);
    assert_eq!(four[..2], [9, 0]);
    let stamp = u64::from(four[2]) | u64::from(four[3]) << 32;
    assert!(stamp > 0 && stamp.is_multiple_of(32) && stamp <= m.gpu.time_ns());
    let reduce = |op: u32, unsigned: u32| 1 << 3 | op << 14 | unsigned << 18 | 1 << 19;
    assert_eq!(launch(0, [5, 0], reduce(5, 1)), [12, 7, 7, 7]);
    assert_eq!(launch(0, [7, 0], reduce(6, 1)), [0, 7, 7, 7]);
    assert_eq!(launch(0, [u32::MAX, 0], reduce(0, 0)), [u32::MAX, 7, 7, 7]);
    assert_eq!(launch(0, [u32::MAX, 0], reduce(0, 1)), [7, 7, 7, 7]);
    sem.mem.write_u32(0, 1.5f32.to_bits());
    let m2 = launch(0, [0, 0], reduce(4, 1));
    assert_eq!(m2, [7, 7, 7, 7]);
}

#[test]
fn section_4_1_conditional_copies() {
    let m = Machine::new();
    let mut lane = m.lane();
    let (_, dst) = memory(&m);
    let flag = m.map(0x4_0000_0000, 4096);
    flag.fill(0, &[1, 0, 0, 0, 1, 0, 0, 0]);
    flag.fill(64, &[0, 0, 0, 0, 1, 0, 0, 0]);
    let (t, f) = (true, false);
    for (mode, at, runs) in [(0, 0, f), (1, 0, t), (2, 0, t), (2, 64, f), (3, 0, t), (3, 64, f), (4, 0, f), (4, 64, t)]
    {
        dst.fill(0, &[0; 4]);
        let mut words = shape(SRC, DST, [0, 0], 16, 0);
        set(&mut words, NVC6B5_SET_RENDER_ENABLE_A, &[4, at, mode]);
        set(&mut words, NVC6B5_LAUNCH_DMA, &[COPY | PITCHED]);
        m.run(&mut lane, &words);
        assert!(!lane.dead(), "{:?}", m.gpu.faults());
        assert_eq!(dst.words(0, 4) != [0; 4], runs, "mode {mode} at {at}");
    }
}

/// Every launch that the engine or HCE refuses gives its report code or interrupt and notifier 11 or 32, and moves
/// nothing.
#[test]
fn section_4_2_refused_launches() {
    let bare = |word: u32| methods(4, NVC6B5_LAUNCH_DMA, &[word]);
    let with = |before: &[(u32, &[u32])], word: u32| {
        let mut words = shape(SRC, DST, [16, 16], 64, 2);
        before.iter().for_each(|(method, data)| set(&mut words, *method, data));
        set(&mut words, NVC6B5_LAUNCH_DMA, &[word]);
        words
    };
    let tiles = |size: u32, depth: u32, layer: u32| [size, 256, 64, depth, layer];
    let blocked = COPY | 1 << 7 | MULTI_LINE;
    let good_pitch: (u32, &[u32]) = (NVC6B5_PITCH_IN, &[64, 64]);
    let cases: Vec<(Vec<u32>, u32, &str)> = vec![
        (with(&[], COPY | PITCHED | MULTI_LINE), 11, "errcode:0x4"),
        (with(&[(NVC6B5_PITCH_IN, &[-16i32 as u32])], COPY | PITCHED | MULTI_LINE), 11, "errcode:0x5"),
        (with(&[(NVC6B5_PITCH_IN, &[64])], COPY | PITCHED | MULTI_LINE), 11, "errcode:0x6"),
        (with(&[(NVC6B5_PITCH_IN, &[64, -16i32 as u32])], COPY | PITCHED | MULTI_LINE), 11, "errcode:0x7"),
        (with(&[good_pitch, (NVC6B5_SET_DST_BLOCK_SIZE, &tiles(1 << 12, 1, 1))], blocked), 11, "errcode:0x1"),
        (
            with(
                &[good_pitch, (NVC6B5_SET_DST_BLOCK_SIZE, &tiles(1 << 12, 1, 0)), (NVC6B5_DST_ORIGIN_X, &[193, 0])],
                blocked,
            ),
            11,
            "errcode:0x3",
        ),
        (with(&[good_pitch, (NVC6B5_SET_DST_BLOCK_SIZE, &tiles(6 << 4 | 1 << 12, 1, 0))], blocked), 11, "errcode:0x9"),
        (with(&[good_pitch, (NVC6B5_SET_DST_BLOCK_SIZE, &tiles(0, 1, 0))], blocked), 11, "errcode:0x9"),
        (
            with(
                &[good_pitch, (NVC6B5_OFFSET_OUT_LOWER, &[64]), (NVC6B5_SET_DST_BLOCK_SIZE, &tiles(1 << 12, 1, 0))],
                blocked,
            ),
            11,
            "errcode:0x2",
        ),
        (with(&[(NVC6B5_SET_REMAP_COMPONENTS, &[1])], COPY | PITCHED | REMAP), 11, "errcode:0x8"),
        (with(&[(NVC6B5_SET_REMAP_COMPONENTS, &[7])], COPY | PITCHED | REMAP), 11, "errcode:0x9"),
        (with(&[], 3 | PITCHED), 11, "errcode:0x9"),
        (with(&[], COPY | PITCHED | 3 << 5), 11, "errcode:0x9"),
        (with(&[(NVC6B5_SET_SEMAPHORE_A, &[3, 8])], 2 << 3), 11, "errcode:0x2"),
        (with(&[(NVC6B5_SET_SEMAPHORE_A, &[3, 4])], 1 << 3 | 1 << 27), 11, "errcode:0x2"),
        (with(&[], 1 << 3 | 9 << 14 | 1 << 19), 11, "errcode:0x9"),
        (bare(COPY | PITCHED | 1 << 12), 32, "(hce_priv)"),
        (bare(COPY | PITCHED | 1 << 13), 32, "(hce_priv)"),
        // The host refuses these before any launch.
        (methods(4, NVC6B5_SET_RENDER_ENABLE_C, &[5]), 32, "(hce_re_illegal_op)"),
        (methods(4, NVC6B5_SET_RENDER_ENABLE_A, &[3, 4, 2]), 32, "(hce_re_alignb)"),
        (methods(4, NVC6B5_SET_RENDER_ENABLE_A, &[3, 8, 1]), 32, "(hce_re_alignb)"),
        (methods(4, 0x0, &[0xc6b5]), 32, "(hce_illegal_class)"),
        (methods(4, 0x104, &[0]), 32, "(hce_illegal_mthd)"),
        (methods(4, 0x1118, &[0]), 32, "(hce_illegal_mthd)"),
    ];
    for (i, (words, code, text)) in cases.into_iter().enumerate() {
        let m = Machine::new();
        let mut lane = m.lane();
        let (_, dst) = memory(&m);
        let before = dst.bytes();
        m.run(&mut lane, &words);
        assert_eq!(lane.notified(), Some(code), "case {i}: {:?}", m.gpu.faults());
        assert!(m.gpu.faults()[0].contains(text), "case {i}: {:?}", m.gpu.faults());
        assert_eq!(dst.bytes(), before, "case {i}");
    }
}

/// The streams that programs send work (docs/hardware/gpu-copy-engine.md#copy-users).
#[test]
fn section_4_4_streams_of_known_users() {
    let split = |va: u64| [(va >> 32) as u32, va as u32];
    let addresses = [split(SRC), split(DST)].concat();
    let tinygrad = [
        methods(4, NVC6B5_OFFSET_IN_UPPER, &addresses),
        methods(4, NVC6B5_LINE_LENGTH_IN, &[SIZE as u32]),
        methods(4, NVC6B5_LAUNCH_DMA, &[0x182]),
        methods(4, NVC6B5_SET_SEMAPHORE_A, &[4, 0, 5]),
        methods(4, NVC6B5_LAUNCH_DMA, &[0x14]),
    ];
    let nvk = [
        methods(4, NVC6B5_OFFSET_IN_UPPER, &addresses),
        methods(4, NVC6B5_PITCH_IN, &[SIZE as u32, SIZE as u32, SIZE as u32, 1]),
        methods(4, NVC6B5_LAUNCH_DMA, &[COPY | PITCHED | MULTI_LINE | 1 << 2]),
        release(0x4_0000_0000, 5),
    ];
    // A memset of eight bytes, and then a reduction after it: transfer 0, flush, one word, INC.
    let (constants, eight) = ([0x0403_0201, 0x0807_0605], 4 | 5 << 4 | 3 << 16 | 1 << 24);
    let uvm = [
        methods(4, NVC6B5_OFFSET_OUT_UPPER, &split(DST)),
        methods(4, NVC6B5_LINE_LENGTH_IN, &[SIZE as u32 / 8]),
        methods(4, NVC6B5_SET_REMAP_CONST_A, &[constants[0], constants[1], eight]),
        methods(4, NVC6B5_LAUNCH_DMA, &[COPY | PITCHED | REMAP]),
        methods(4, NVC6B5_SET_SEMAPHORE_A, &[4, 0, u32::MAX]),
        methods(4, NVC6B5_LAUNCH_DMA, &[1 << 2 | 1 << 3 | 6 << 14 | 1 << 18 | 1 << 19]),
    ];
    for (name, words, set, value) in
        [("tinygrad", tinygrad.concat(), false, 5), ("NVK", nvk.concat(), false, 5), ("UVM", uvm.concat(), true, 1)]
    {
        let m = Machine::new();
        let mut lane = m.lane();
        let (src, dst) = memory(&m);
        let sem = m.map(0x4_0000_0000, 4096);
        m.run(&mut lane, &words);
        assert!(!lane.dead(), "{name}: {:?}", m.gpu.faults());
        let expected = if set { [1, 2, 3, 4, 5, 6, 7, 8].repeat(SIZE / 8) } else { src.bytes() };
        assert_eq!((sem.mem.read_u32(0), dst.bytes() == expected), (value, true), "{name}");
    }
}

/// A copy that is too long for one turn continues in the next turn, while other channels run.
#[test]
fn section_4_2_long_copies_take_turns() {
    const BIG: usize = 48 << 20;
    let m = Machine::new();
    let tsg = m.tsg(0);
    let mut a = m.channel(511, &tsg, 0x1_0000_0000);
    let mut b = m.channel(510, &tsg, 0x1_1000_0000);
    let (src, dst) = (m.map(SRC, BIG), m.map(DST, BIG));
    let sem = m.map(0x4_0000_0000, 4096);
    src.mem.write_u32(BIG - 4, 77);
    let mut words = shape(SRC, DST, [0, 0], BIG as u32, 0);
    set(&mut words, NVC6B5_LAUNCH_DMA, &[COPY | PITCHED]);
    words.extend(release(0x4_0000_0000, 1));
    a.submit(&words);
    b.submit(&release(0x4_0000_0010, 1));
    m.ring(&a);
    m.gpu.step();
    assert_eq!((sem.mem.read_u32(0), sem.mem.read_u32(16)), (0, 1));
    m.drain();
    assert_eq!((sem.mem.read_u32(0), dst.mem.read_u32(BIG - 4)), (1, 77));
}

/// With modelled time, two timestamps differ by the bytes between them at the bandwidth of the DRAM, in every run.
#[test]
fn a_copy_takes_modelled_time() {
    const LARGE: usize = 32 << 20;
    let taken = |bytes: usize| {
        let m = Machine::with(modelled());
        let mut lane = m.lane();
        m.map(SRC, LARGE);
        m.map(DST, LARGE);
        let sem = m.map(0x4_0000_0000, 4096);
        let mut words = Vec::new();
        for at in [0, 16] {
            set(&mut words, NVC6B5_SET_SEMAPHORE_A, &[4, at, 1, 0]);
            set(&mut words, NVC6B5_LAUNCH_DMA, &[0x14]);
            if at == 0 {
                words.extend(shape(SRC, DST, [0, 0], bytes as u32, 0));
                set(&mut words, NVC6B5_LAUNCH_DMA, &[COPY | PITCHED]);
            }
        }
        m.run(&mut lane, &words);
        assert!(!lane.dead(), "{:?}", m.gpu.faults());
        assert!(sem.mem.read_u64(24) <= m.gpu.time_ns());
        sem.mem.read_u64(24) - sem.mem.read_u64(8)
    };
    let large = taken(LARGE);
    let rate = 2.0 * LARGE as f64 / large as f64;
    let most = 0.895 * 204.8; // what a kernel gets of the DRAM's bandwidth for what it reads and writes
    assert!((0.95 * most..=most).contains(&rate), "{rate} GB/s");
    assert_eq!((taken(LARGE), taken(4096), taken(4096)), (large, 1088, 1088));
}
