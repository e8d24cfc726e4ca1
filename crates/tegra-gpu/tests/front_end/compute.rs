//! Methods of the compute class other than launches: classes, inline to memory and report semaphores.

use crate::harness::*;
use proptest::prelude::*;
use std::sync::{Arc, Mutex};
use tegra_hw::{Awakening, GpuPort, Listener};
use tegrarm_abi::methods::compute::*;

const DATA: u64 = 0x2_0000_0000;

#[test]
fn section_2_3_classes_are_checked_not_bound() {
    for (subchannel, class, code) in
        [(1, 0xc7c0, None), (4, 0xc7b5, None), (0, 0xc797, None), (2, 0xa140, None), (3, 0x902d, None)]
            .into_iter()
            .chain([(0, 0xc7c0, Some(13)), (1, 0xc6c0, Some(13)), (4, 0xc7c0, Some(32)), (5, 0xc7c0, Some(32))])
    {
        let m = Machine::new();
        let mut lane = m.lane();
        m.run(&mut lane, &methods(subchannel, 0, &[class]));
        assert_eq!(lane.notified(), code, "{class:#x} on {subchannel}");
        // A board logged this text.
        assert_eq!(m.gpu.faults().concat().contains("fe exception: esr 0x80000002"), code == Some(13));
    }
    // The engine id in the old form of the method is ignored.
    let m = Machine::new();
    let mut lane = m.lane();
    m.run(&mut lane, &methods(1, 0, &[0x1f << 16 | 0xc7c0]));
    assert!(!lane.dead(), "{:?}", m.gpu.faults());
}

/// Registers belong to the subcontext: a value that one channel sets is read by the other channels of its group.
#[test]
fn section_2_3_channels_share_the_registers() {
    let m = Machine::new();
    let (one, two) = (m.tsg(0), m.tsg(1));
    let mut a = m.channel(511, &one, 0x1_0000_0000);
    let mut b = m.channel(510, &one, 0x1_1000_0000);
    let mut other = m.channel(509, &two, 0x1_2000_0000);
    let memory = m.map(DATA, 4096);
    m.run(&mut a, &methods(1, NVC6C0_SET_REPORT_SEMAPHORE_A, &[2, 0, 7]));
    m.run(&mut b, &methods(1, NVC6C0_SET_REPORT_SEMAPHORE_D, &[1 << 28]));
    assert_eq!(memory.mem.read_u32(0), 7);
    m.run(&mut other, &methods(1, NVC6C0_SET_REPORT_SEMAPHORE_D, &[1 << 28]));
    assert_eq!(other.notified(), Some(31), "its address is 0");
}

/// A listener of a group, which notes the interrupts it is told of.
#[derive(Debug, Default)]
struct Heard(Mutex<Vec<Awakening>>);

impl Listener for Heard {
    fn awaken(&self, awakening: Awakening) {
        self.0.lock().unwrap().push(awakening);
    }
}

/// Each interrupt that is not an error reaches the event that the kernel makes of it.
#[test]
fn section_5_interrupts() {
    let report = |word: u32| methods(1, 0x158, &[1, 0, 0, 2, word]);
    let inline_word = |word: u32| inline(1, 4, 1, 4, word, &[5]);
    let copy = |word: u32| methods(4, 0x300, &[word]);
    let notify = |subchannel: u32, kind: u32| methods(subchannel, NVC6C0_SET_NOTIFY_A, &[2, 64, kind]);
    let (non_stall, semaphore, notifier) = (Awakening::NonStall, Awakening::Semaphore, Awakening::Notifier);
    let cases = [
        (methods(0, 0x20, &[0]), vec![non_stall]),
        (report(0), vec![]),
        (report(1 << 2), vec![semaphore]),
        (report(3), vec![non_stall]),
        (methods(1, NVC6C0_SET_REPORT_SEMAPHORE_A, &[2, 0, 1, 1 << 20 | 1 << 28]), vec![semaphore]),
        (methods(1, NVC6C0_SET_REPORT_SEMAPHORE_A, &[2, 0, 1, 3]), vec![non_stall]),
        (notify(1, 0), vec![]),
        (notify(1, 1), vec![notifier]),
        (notify(2, 1), vec![notifier]),
        (inline_word(0x41), vec![]),
        (inline_word(0x141), vec![non_stall]),
        (copy(0), vec![]),
        (copy(2 << 5), vec![non_stall]),
        // The kernel clears a blocking interrupt and informs nobody.
        (copy(1 << 5), vec![]),
    ];
    for (i, (words, expected)) in cases.into_iter().enumerate() {
        let m = Machine::new();
        let mut lane = m.lane();
        let _memory = m.map(DATA, 4096);
        let heard = Arc::new(Heard::default());
        let listener: Arc<dyn Listener> = heard.clone();
        *lane.hw.tsg.listener.lock() = Arc::downgrade(&listener);
        m.run(&mut lane, &words);
        assert!(!lane.dead(), "case {i}: {:?}", m.gpu.faults());
        assert_eq!(*heard.0.lock().unwrap(), expected, "case {i}");
    }
}

/// NOTIFY writes the time and then a status of zero. The address of class A140 has 25 upper bits, and that of C7C0 has
/// eight.
#[test]
fn section_5_notify() {
    for subchannel in [1, 2] {
        let m = Machine::new();
        let mut lane = m.lane();
        let memory = m.map(DATA, 4096);
        memory.fill(64, &[9; 4]);
        m.run(&mut lane, &methods(subchannel, NVC6C0_SET_NOTIFY_A, &[2, 64, 0]));
        let stamp = memory.mem.read_u64(64);
        assert!(stamp.is_multiple_of(32) && stamp <= m.gpu.time_ns());
        assert_eq!((memory.mem.read_u64(72), lane.dead()), (0, false));
        m.run(&mut lane, &methods(subchannel, NVC6C0_SET_NOTIFY_A, &[1 << 8 | 2, 64, 0]));
        assert_eq!(lane.notified(), (subchannel == 2).then_some(31));
    }
}

/// Class A140 has methods of its own besides its inline-to-memory block.
#[test]
fn section_5_1_methods_of_the_inline_class() {
    let m = Machine::new();
    let mut lane = m.lane();
    let mut words = methods(2, NVC6C0_SET_OBJECT, &[0xa140]);
    for (method, data) in [
        (NVC6C0_NO_OPERATION, 1),
        (NVC6C0_WAIT_FOR_IDLE, 1),
        (NVC6C0_SEND_GO_IDLE, 1),
        (NVC6C0_SET_GLOBAL_RENDER_ENABLE_A, 3),
        (NVC6C0_SET_RENDER_ENABLE_A, 3),
        (NVC6C0_SET_INSTRUMENTATION_METHOD_HEADER, 2),
        (NVC6C0_SET_I2M_SPARE_NOOP00, 4),
    ] {
        words.extend(methods(2, method, &vec![0; data as usize]));
    }
    m.run(&mut lane, &words);
    assert!(!lane.dead(), "{:?}", m.gpu.faults());
    // FE_ATOMIC_SEQUENCE_BEGIN is not in the table of class A140.
    m.run(&mut lane, &methods(2, NVC6C0_FE_ATOMIC_SEQUENCE_BEGIN, &[0]));
    assert_eq!(lane.notified(), Some(25));
}

/// Only class A140 can write to addresses of more than 49 bits.
#[test]
fn section_5_1_addresses_of_the_inline_class() {
    for (subchannel, code) in [(1, None), (2, Some(31))] {
        let m = Machine::new();
        let mut lane = m.lane();
        let memory = m.map(DATA, 4096);
        let upper = 1 << 17 | (DATA >> 32) as u32;
        let mut words = methods(subchannel, NVC6C0_LINE_LENGTH_IN, &[4, 1, upper, DATA as u32, 0]);
        words.extend(methods(subchannel, NVC6C0_LAUNCH_DMA, &[0x41]));
        words.extend(methods(subchannel, NVC6C0_LOAD_INLINE_DATA, &[77]));
        m.run(&mut lane, &words);
        assert_eq!((lane.notified(), memory.mem.read_u32(0) == 77), (code, code.is_none()));
        assert_eq!(m.gpu.faults().concat().contains("limit violation"), code.is_some());
    }
}

/// The offset of byte x, row y of a GOB, for a block-linear destination.
#[test]
fn section_5_1_block_linear() {
    let m = Machine::new();
    let mut lane = m.lane();
    let memory = m.map(DATA, 4096);
    let (upper, lower) = ((DATA >> 32) as u32, DATA as u32);
    // The surface is one GOB high and deep and has 8 rows of 64 bytes. The rectangle has 2 rows of 20 bytes and starts
    // at byte 14 of row 3.
    let mut words = methods(2, NVC6C0_LINE_LENGTH_IN, &[20, 2, upper, lower, 0, 1 << 12, 64, 8, 1, 0, 14, 3]);
    words.extend(methods(2, NVC6C0_LAUNCH_DMA, &[0x40]));
    words.push(header(3, 2, NVC6C0_LOAD_INLINE_DATA, 10));
    let bytes: Vec<u8> = (1..=40).collect();
    words.extend(bytes.as_chunks::<4>().0.iter().map(|w| u32::from_le_bytes(*w)));
    m.run(&mut lane, &words);
    assert!(!lane.dead(), "{:?}", m.gpu.faults());
    let mut expected = vec![0; 4096];
    for (i, byte) in bytes.iter().enumerate() {
        let (x, y) = (14 + i % 20, 3 + i / 20);
        expected[x / 32 * 256 + y / 4 * 128 + x % 32 / 16 * 64 + y % 4 / 2 * 32 + y % 2 * 16 + x % 16] = *byte;
    }
    assert_eq!(memory.bytes(), expected);
}

/// Every stream of docs/hardware/gpu-compute-class.md#compute-streams that needs no grid runs, with registers that no
/// method reads.
#[test]
fn section_5_3_methods_that_are_accepted() {
    let m = Machine::new();
    let mut lane = m.lane();
    let mut words = methods(1, NVC6C0_SET_OBJECT, &[0xc7c0]);
    for (method, data) in [
        (NVC6C0_SET_SHADER_LOCAL_MEMORY_WINDOW_A, vec![0xfd, 0]),
        (NVC6C0_SET_SHADER_SHARED_MEMORY_WINDOW_A, vec![0xfe, 0]),
        (NVC6C0_SET_SHADER_LOCAL_MEMORY_A, vec![0, 0]),
        (NVC6C0_SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A, vec![0, 0, 0x100]),
        (NVC6C0_INVALIDATE_SHADER_CACHES, vec![0x1011]),
        (NVC6C0_INVALIDATE_SHADER_CACHES_NO_WFI, vec![0x1011]),
        (NVC6C0_INVALIDATE_SKED_CACHES, vec![0]),
        (NVC6C0_INVALIDATE_TEXTURE_HEADER_CACHE_NO_WFI, vec![0]),
        (NVC6C0_SET_SPA_VERSION, vec![0x807]),
        (NVC6C0_SET_CWD_REF_COUNTER, vec![0x301]),
        (NVC6C0_SET_VALID_SPAN_OVERFLOW_AREA_A, vec![0, 0, 0]),
        (NVC6C0_SET_RESERVED_SW_METHOD07, vec![0]),
        (NVC6C0_SET_SHADER_EXCEPTIONS, vec![0]),
        (0x3400, vec![1, 2]),
        (0x114, vec![1, 2, 3, 4, 5]),
    ] {
        words.extend(methods(1, method, &data));
    }
    m.run(&mut lane, &words);
    assert!(!lane.dead(), "{:?}", m.gpu.faults());
}

#[test]
fn section_5_methods_that_are_refused() {
    for (subchannel, method, code, text) in [
        (1, 0x1fc8, 25, "not one of class C7C0"),
        (1, NVC6C0_SET_RESERVED_SW_METHOD01, 25, "SET_RESERVED_SW_METHOD01"),
        (1, NVC6C0_SET_FALCON04, 37, "SET_FALCON"),
        (1, 0x3808, 13, "mme_fe1 exception"),
        (0, 0x1200, 25, "3D class c797"),
        (2, 0x300, 25, "not one of class A140"),
        (2, 0x240, 37, "SET_FALCON"),
        (3, 0x200, 25, "2D class 902d"),
    ] {
        let m = Machine::new();
        let mut lane = m.lane();
        m.run(&mut lane, &methods(subchannel, method, &[0]));
        assert_eq!(lane.notified(), Some(code), "{method:#x}");
        assert!(m.gpu.faults()[0].contains(text), "{:?}", m.gpu.faults());
    }
}

/// Inline to memory: registers, launch, and then the data words on LOAD_INLINE_DATA.
fn inline(subchannel: u32, length: u32, count: u32, pitch: u32, word: u32, data: &[u32]) -> Vec<u32> {
    let to = DATA + 3;
    let mut words = methods(subchannel, NVC6C0_LINE_LENGTH_IN, &[length, count, (to >> 32) as u32, to as u32, pitch]);
    words.extend(methods(subchannel, NVC6C0_LAUNCH_DMA, &[word]));
    words.push(header(3, subchannel, NVC6C0_LOAD_INLINE_DATA, data.len() as u32));
    words.extend(data);
    words
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn section_5_1_inline_to_memory(subchannel in 1u32..3, length in 1u32..40, count in 1u32..6, gap in 0u32..20, seed: u32) {
        let m = Machine::new();
        let mut lane = m.lane();
        let memory = m.map(DATA, 4096);
        let per_line = length.div_ceil(4);
        let data: Vec<u32> = (0..per_line * count).map(|i| seed.wrapping_mul(i + 1)).collect();
        m.run(&mut lane, &inline(subchannel, length, count, length + gap, 0x41, &data));
        prop_assert!(!lane.dead(), "{:?}", m.gpu.faults());
        let mut expected = vec![0u8; 4096];
        for y in 0..count as usize {
            for x in 0..length as usize {
                let word = data[y * per_line as usize + x / 4];
                expected[3 + y * (length + gap) as usize + x] = word.to_le_bytes()[x % 4];
            }
        }
        prop_assert_eq!(memory.bytes(), expected);
    }
}

#[test]
fn section_5_1_inline_data_must_fit() {
    for (words, esr) in [
        (inline(1, 8, 1, 8, 0x41, &[1, 2, 3]), "esr 00000001"),
        ([inline(1, 8, 1, 8, 0x41, &[1]), methods(1, NVC6C0_LAUNCH_DMA, &[0x41])].concat(), "esr 00000002"),
        ([inline(1, 8, 1, 8, 0x41, &[1]), methods(1, NVC6C0_WAIT_FOR_IDLE, &[0])].concat(), "esr 00000002"),
    ] {
        let m = Machine::new();
        let mut lane = m.lane();
        m.map(DATA, 4096);
        m.run(&mut lane, &words);
        assert_eq!(lane.notified(), Some(13));
        assert!(m.gpu.faults()[0].contains(esr), "{:?}", m.gpu.faults());
    }
}

/// The semaphore of inline to memory is written after its data.
#[test]
fn section_5_1_inline_semaphore() {
    let m = Machine::new();
    let mut lane = m.lane();
    let memory = m.map(DATA, 4096);
    let sem = methods(1, NVC6C0_SET_I2M_SEMAPHORE_A, &[2, 256, 0xabcd]);
    m.run(&mut lane, &[sem.clone(), inline(1, 4, 1, 4, 0x1021, &[5])].concat());
    assert_eq!(memory.words(256, 4), [0xabcd, 0, 0, 0]);
    m.run(&mut lane, &[sem, inline(1, 4, 1, 4, 0x0021 | 1 << 1, &[5])].concat());
    let words = memory.words(256, 4);
    assert_eq!(words[0], 2 * 0xabcd);
    assert_ne!(words[2], 0);
}

/// Both report semaphores work with all sizes, reductions and the acquire.
#[test]
fn section_5_report_semaphores() {
    let m = Machine::new();
    let mut lane = m.lane();
    let memory = m.map(DATA, 4096);
    let mut report = |payload: [u32; 2], word: u32| {
        m.run(&mut lane, &methods(1, 0x158, &[payload[0], payload[1], 0, 2, word]));
        assert!(!lane.dead(), "{:?}", m.gpu.faults());
        memory.words(0, 4)
    };
    memory.fill(0, &[9; 4]);
    assert_eq!(report([1, 2], 1 << 3), [1, 9, 9, 9]);
    assert_eq!(report([3, 4], 2 << 3), [3, 0, 9, 9]);
    assert_eq!(report([3, 4], 2 << 3 | 1 << 12), [3, 4, 9, 9]);
    let four = report([5, 6], 0);
    assert_eq!(four[..2], [5, 0]);
    assert_ne!(four[2..], [9, 9]);
    assert_eq!(report([10, 0], 1 << 3 | 1 << 6)[0], 15);
    assert_eq!(report([12, 0], 1 << 3 | 1 << 6 | 1 << 7)[0], 12);
    // An acquire whose condition does not hold blocks the channel until the value in memory changes.
    report([77, 0], 1 | 1 << 3);
    m.run(&mut lane, &methods(1, NVC6C0_SET_REPORT_SEMAPHORE_A, &[2, 64, 0xaa, 1 << 28]));
    assert_eq!(memory.mem.read_u32(64), 0);
    memory.mem.write_u32(0, 77);
    m.drain();
    assert_eq!(memory.words(64, 2), [0xaa, 0]);
    m.run(&mut lane, &methods(1, NVC6C0_SET_REPORT_SEMAPHORE_A, &[2, 64, 0x100, 1 << 28 | 1 << 3]));
    assert_eq!(memory.words(64, 2), [0x1aa, 0]);
    m.run(&mut lane, &methods(1, NVC6C0_SET_REPORT_SEMAPHORE_A, &[2, 64, 0x55, 0]));
    assert_eq!(memory.words(64, 2), [0x55, 0]);
    assert_ne!(memory.mem.read_u64(72), 0);
}
