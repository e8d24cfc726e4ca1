//! Compute class methods other than launches: classes, inline to memory, report semaphores.

use crate::harness::*;
use proptest::prelude::*;
use tegrarm_abi::methods::compute::*;

const DATA: u64 = 0x2_0000_0000;

#[test]
fn classes_are_checked_not_bound() {
    for (subchannel, class, code) in
        [(1, 0xc7c0, None), (4, 0xc7b5, None), (0, 0xc797, None), (2, 0xa140, None), (3, 0x902d, None)]
            .into_iter()
            .chain([(0, 0xc7c0, Some(13)), (1, 0xc6c0, Some(13)), (4, 0xc7c0, Some(32)), (5, 0xc7c0, Some(32))])
    {
        let m = Machine::new();
        let mut lane = m.lane();
        m.run(&mut lane, &methods(subchannel, 0, &[class]));
        assert_eq!(lane.notified(), code, "{class:#x} on {subchannel}");
    }
}

/// Every stream of gpu-frontend §5.3 that needs no grid, and registers nothing reads.
#[test]
fn methods_that_are_accepted() {
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
fn methods_that_are_refused() {
    for (subchannel, method, code, text) in [
        (1, 0x1fc8, 25, "not one of class C7C0"),
        (1, NVC6C0_SET_RESERVED_SW_METHOD01, 25, "SET_RESERVED_SW_METHOD01"),
        (1, NVC6C0_SET_FALCON04, 37, "SET_FALCON"),
        (1, 0x3808, 13, "MME_FE1"),
        (0, 0x1200, 25, "3D class c797"),
        (2, 0x300, 25, "inline to memory class a140"),
        (3, 0x200, 25, "2D class 902d"),
    ] {
        let m = Machine::new();
        let mut lane = m.lane();
        m.run(&mut lane, &methods(subchannel, method, &[0]));
        assert_eq!(lane.notified(), Some(code), "{method:#x}");
        assert!(m.gpu.faults()[0].contains(text), "{:?}", m.gpu.faults());
    }
}

/// Inline to memory: registers, launch, then the data words on LOAD_INLINE_DATA.
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
    fn inline_to_memory(subchannel in 1u32..3, length in 1u32..40, count in 1u32..6, gap in 0u32..20, seed: u32) {
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
fn inline_data_must_fit() {
    for (words, esr) in [
        (inline(1, 8, 1, 8, 0x41, &[1, 2, 3]), "esr 0x1"),
        ([inline(1, 8, 1, 8, 0x41, &[1]), methods(1, NVC6C0_LAUNCH_DMA, &[0x41])].concat(), "esr 0x2"),
        ([inline(1, 8, 1, 8, 0x41, &[1]), methods(1, NVC6C0_WAIT_FOR_IDLE, &[0])].concat(), "esr 0x2"),
    ] {
        let m = Machine::new();
        let mut lane = m.lane();
        m.map(DATA, 4096);
        m.run(&mut lane, &words);
        assert_eq!(lane.notified(), Some(13));
        assert!(m.gpu.faults()[0].contains(esr), "{:?}", m.gpu.faults());
    }
}

/// The semaphore of inline to memory follows its data.
#[test]
fn inline_semaphore() {
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

/// Both report semaphores: sizes, reductions, acquire.
#[test]
fn report_semaphores() {
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
    // An acquire that does not hold blocks the channel until memory does.
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
