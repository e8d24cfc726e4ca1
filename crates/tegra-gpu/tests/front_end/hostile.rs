//! Random input from programs: the simulator neither panics nor hangs, and other groups continue.

use crate::harness::*;
use proptest::prelude::*;
use tegra_hw::GpuPort;

const DATA: u64 = 0x2_0000_0000;
const SEM: u64 = 0x5_0000_0000;

/// Data words that are likely to have an effect: addresses in mapped memory, launch words, small and huge numbers.
fn word() -> impl Strategy<Value = u32> {
    prop_oneof![
        any::<u32>(),
        0u32..64,
        Just(2),
        Just(DATA as u32 + 0x1000),
        Just((DATA >> 8) as u32),
        prop::sample::select(vec![0x182, 0x14, 0x382, 0x782, 0x602, 0x41, 9, 0xa, 0x0310_0001, u32::MAX, 0x8000_0000]),
    ]
}

/// A sequence of methods, most of which exist.
fn sequence() -> impl Strategy<Value = Vec<u32>> {
    let method = prop_oneof![
        any::<u32>().prop_map(|v| v % 0x1000 * 4),
        (0u32..0x100).prop_map(|v| v & !3),
        prop::sample::select(vec![
            0x300, 0x400, 0x410, 0x418, 0x700, 0x70c, 0x728, 0x744, 0x240, 0x254, 0x180, 0x1a8, 0x1b0, 0x1b4, 0x158,
            0x168, 0x2a0, 0x7b0, 0x2b4, 0x2c0, 0x318, 0x320, 0x1b00, 0x5c, 0x6c, 0x34, 0x1558,
        ]),
    ];
    let subchannel = prop::sample::select(vec![0u32, 1, 1, 1, 2, 4, 4, 4, 7]);
    (1u32..6, subchannel, method, prop::collection::vec(word(), 0..12)).prop_map(|(op, subchannel, method, data)| {
        let op = if op == 2 { 1 } else { op };
        let mut words = vec![header(op, subchannel, method, data.len() as u32)];
        words.extend(data);
        words
    })
}

/// Runs enough turns to show an effect, but not enough to end a copy of four gigabytes.
fn some_steps(m: &Machine) {
    for _ in 0..4 {
        if !m.gpu.step() {
            break;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pushbuffers(sequences in prop::collection::vec(sequence(), 1..30), raw in prop::collection::vec(any::<u32>(), 0..8), memory: u32) {
        let m = Machine::new();
        let neighbours = m.tsg(9);
        let mut neighbour = m.channel(100, &neighbours, 0x6_0000_0000);
        let mut lane = m.lane();
        let data = m.map(DATA, 64 << 10);
        (0..1024).for_each(|i| data.mem.write_u32(4 * i, memory.rotate_left(i as u32)));
        let sem = m.map(SEM, 4096);
        let mut words: Vec<u32> = sequences.into_iter().flatten().collect();
        words.extend(raw);
        lane.submit(&words);
        m.ring(&lane);
        some_steps(&m);
        neighbour.submit(&release(SEM, 1));
        m.ring(&neighbour);
        some_steps(&m);
        prop_assert_eq!(sem.mem.read_u32(0), 1);
        prop_assert!(!m.gpu.faults().iter().any(|f| f.contains("bug")), "{:?}", m.gpu.faults());
        m.gpu.remove_channel(511);
    }

    #[test]
    fn rings(entries in prop::collection::vec(any::<u64>(), 16), put: u32) {
        let m = Machine::new();
        let lane = m.lane();
        entries.iter().enumerate().for_each(|(i, e)| lane.ring.mem.write_u64(8 * i, *e));
        lane.userd.mem.write_u32(GP_PUT, if put & 3 == 0 { put } else { put % 16 });
        m.ring(&lane);
        some_steps(&m);
        prop_assert!(!m.gpu.faults().iter().any(|f| f.contains("bug")), "{:?}", m.gpu.faults());
    }

    /// Descriptors with random fields and empty grids, so that the scheduler reads all of them.
    #[test]
    fn descriptors(words in prop::array::uniform32(any::<u32>()), more in prop::array::uniform32(any::<u32>())) {
        let m = Machine::new();
        let mut lane = m.lane();
        let data = m.map(DATA, 64 << 10);
        data.fill(0, &words);
        data.fill(128, &more);
        data.mem.write_u32(48, 0);
        let setup = methods(1, 0x2a0, &[0xfe, 0]);
        let launch = [methods(1, 0x2b4, &[(DATA >> 8) as u32]), methods(1, 0x2c0, &[9])].concat();
        lane.submit(&[setup, launch].concat());
        m.ring(&lane);
        some_steps(&m);
        prop_assert!(!m.gpu.faults().iter().any(|f| f.contains("bug")), "{:?}", m.gpu.faults());
    }
}
