//! Host methods.

use crate::harness::*;
use proptest::prelude::*;
use std::sync::atomic::Ordering;
use tegra_gpu::{GpuConfig, Reports};
use tegra_hw::{Checks, GpuPort};
use tegrarm_abi::methods::copy::*;
use tegrarm_abi::methods::host::*;

const SEM: u64 = 0x2_0000_0000;

const WIDE: u32 = NVC56F_SEM_EXECUTE_PAYLOAD_SIZE.put(NVC56F_SEM_EXECUTE_PAYLOAD_SIZE_64BIT);
const STAMP: u32 = NVC56F_SEM_EXECUTE_RELEASE_TIMESTAMP.put(NVC56F_SEM_EXECUTE_RELEASE_TIMESTAMP_EN);

fn operation(op: u32) -> u32 {
    NVC56F_SEM_EXECUTE_OPERATION.put(op)
}

/// The condition on n bits, word for word from docs/hardware/gpu-semaphores.md#sem-execute.
fn holds(op: u32, s: u64, p: u64, wide: bool) -> bool {
    let n = if wide { 64 } else { 32 };
    let mask = if wide { u64::MAX } else { 0xffff_ffff };
    let (s, p) = (s & mask, p & mask);
    match op {
        NVC56F_SEM_EXECUTE_OPERATION_ACQUIRE => s == p,
        NVC56F_SEM_EXECUTE_OPERATION_ACQ_STRICT_GEQ => s >= p,
        NVC56F_SEM_EXECUTE_OPERATION_ACQ_CIRC_GEQ => s.wrapping_sub(p) & mask < 1 << (n - 1),
        NVC56F_SEM_EXECUTE_OPERATION_ACQ_AND => s & p != 0,
        _ => !(s | p) & mask != 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// An acquire blocks exactly while its condition does not hold, and the channel continues after a plain store.
    #[test]
    fn section_3_1_acquires(op in 0u32..6, wide: bool, s in edge(), p in edge()) {
        prop_assume!(op != NVC56F_SEM_EXECUTE_OPERATION_RELEASE);
        let m = Machine::new();
        let mut lane = m.lane();
        let sem = m.map(SEM, 4096);
        sem.mem.write_u64(0, s);
        let mut words = semaphore(SEM, p, operation(op) | if wide { WIDE } else { 0 });
        words.extend(release(SEM + 64, 1));
        m.run(&mut lane, &words);
        let expected = holds(op, s, p, wide);
        prop_assert_eq!(sem.mem.read_u32(64) == 1, expected);
        // This value satisfies the condition. A value equal to the payload does, except for AND of zero and NOR of all
        // ones.
        sem.mem.write_u64(0, if op == NVC56F_SEM_EXECUTE_OPERATION_ACQ_NOR { 0 } else { p });
        m.drain();
        let mask = if wide { u64::MAX } else { 0xffff_ffff };
        let never = op == NVC56F_SEM_EXECUTE_OPERATION_ACQ_AND && p & mask == 0
            || op == NVC56F_SEM_EXECUTE_OPERATION_ACQ_NOR && p & mask == mask;
        prop_assert_eq!(sem.mem.read_u32(64) == 1, expected || !never);
        prop_assert!(!lane.dead());
    }

    /// Reductions agree with a scalar model, and so do the combinations that are refused.
    #[test]
    fn section_3_1_reductions(op in 0u32..16, wide: bool, unsigned: bool, stamp: bool, v in edge(), p in edge()) {
        let m = Machine::new();
        let mut lane = m.lane();
        let sem = m.map(SEM, 4096);
        sem.mem.write_u64(0, v);
        let execute = operation(NVC56F_SEM_EXECUTE_OPERATION_REDUCTION)
            | NVC56F_SEM_EXECUTE_REDUCTION.put(op)
            | NVC56F_SEM_EXECUTE_REDUCTION_FORMAT.put(unsigned.into())
            | if wide { WIDE } else { 0 }
            | if stamp { STAMP } else { 0 };
        m.run(&mut lane, &semaphore(SEM, p, execute));
        match reduce(op, wide, unsigned, v, p) {
            Some(expected) => {
                prop_assert_eq!(sem.mem.read_u64(0), expected);
                prop_assert_eq!(sem.mem.read_u64(8) != 0, stamp);
                prop_assert!(!lane.dead());
            }
            None => {
                // The kernel of r36 only logs the interrupt.
                prop_assert_eq!((sem.mem.read_u64(0), lane.notified()), (v, None));
                prop_assert!(m.gpu.faults()[0].contains("(semaphore)"));
            }
        }
    }
}

fn edge() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        prop::sample::select(vec![
            0,
            1,
            0x7fff_ffff,
            0x8000_0000,
            0xffff_ffff,
            1 << 32,
            i64::MAX as u64,
            1 << 63,
            u64::MAX
        ]),
        (0u64..4, 0u64..4).prop_map(|(h, l)| h << 32 | l),
    ]
}

/// The memory after a reduction. The result is `None` if the combination does not exist.
fn reduce(op: u32, wide: bool, unsigned: bool, v: u64, p: u64) -> Option<u64> {
    if wide {
        let signed = |f: fn(i64, i64) -> i64| f(v as i64, p as i64) as u64;
        return match (op, unsigned) {
            (0, true) => Some(v.min(p)),
            (0, false) => Some(signed(i64::min)),
            (1, true) => Some(v.max(p)),
            (1, false) => Some(signed(i64::max)),
            (2, _) => Some(v ^ p),
            (3, _) => Some(v & p),
            (4, _) => Some(v | p),
            (5, true) => Some(v.wrapping_add(p)),
            _ => None,
        };
    }
    let (high, v, p) = (v >> 32 << 32, v as u32, p as u32);
    let signed = |f: fn(i32, i32) -> i32| f(v as i32, p as i32) as u32;
    let low = match (op, unsigned) {
        (0, true) => v.min(p),
        (0, false) => signed(i32::min),
        (1, true) => v.max(p),
        (1, false) => signed(i32::max),
        (2, _) => v ^ p,
        (3, _) => v & p,
        (4, _) => v | p,
        (5, _) => v.wrapping_add(p),
        (6, true) => {
            if v >= p {
                0
            } else {
                v + 1
            }
        }
        (7, true) => {
            if v == 0 || v > p {
                p
            } else {
                v - 1
            }
        }
        _ => return None,
    };
    Some(high | u64::from(low))
}

#[test]
fn section_3_1_releases_write_what_they_say() {
    let m = Machine::new();
    let mut lane = m.lane();
    let sem = m.map(SEM, 4096);
    let release = operation(NVC56F_SEM_EXECUTE_OPERATION_RELEASE);
    let cases = [(release, 0xffff_ffff_5555_6666u64, false), (release | WIDE, 0x1111_2222_5555_6666, false)];
    for (execute, expected, _) in cases {
        sem.fill(0, &[u32::MAX; 4]);
        m.run(&mut lane, &semaphore(SEM, 0x1111_2222_5555_6666, execute));
        assert_eq!((sem.mem.read_u64(0), sem.mem.read_u64(8)), (expected, u64::MAX));
    }
    for (execute, expected) in [(release | STAMP, 0x5555_6666u64), (release | STAMP | WIDE, 0x1111_2222_5555_6666)] {
        sem.fill(0, &[u32::MAX; 4]);
        m.run(&mut lane, &semaphore(SEM, 0x1111_2222_5555_6666, execute));
        assert_eq!(sem.mem.read_u64(0), expected);
        assert!(sem.mem.read_u64(8) <= m.gpu.time_ns());
    }
}

/// A semaphore operation that does not exist raises an interrupt. The kernel of r35 ends the channel. The kernel of r36
/// logs the interrupt: the channel stays at the method for ever, and other channels continue.
#[test]
fn section_3_1_misaligned_semaphores() {
    let release_op = operation(NVC56F_SEM_EXECUTE_OPERATION_RELEASE);
    for (at, execute) in [
        (SEM + 4, release_op | WIDE),
        (SEM + 8, release_op | STAMP),
        (SEM + 4, operation(NVC56F_SEM_EXECUTE_OPERATION_REDUCTION) | WIDE),
        (SEM + 4, operation(NVC56F_SEM_EXECUTE_OPERATION_ACQ_CIRC_GEQ) | WIDE),
        (SEM, operation(7)),
    ] {
        for r35 in [true, false] {
            let m = Machine::with(GpuConfig { r35, ..config() });
            let (mut lane, mut other) = (m.lane(), m.channel(510, &m.tsg(1), 0x1_1000_0000));
            let sem = m.map(SEM, 4096);
            m.run(&mut lane, &[semaphore(at, 0, execute), release(SEM + 32, 1)].concat());
            assert_eq!((lane.notified(), sem.mem.read_u32(32)), (r35.then_some(32), 0), "{at:#x} {execute:#x}");
            assert!(m.gpu.faults()[0].contains("(semaphore)"));
            m.run(&mut lane, &release(SEM + 32, 1));
            m.run(&mut other, &release(SEM + 48, 2));
            assert_eq!((sem.mem.read_u32(32), sem.mem.read_u32(48), m.gpu.faults().len()), (0, 2, 1));
        }
    }
    // An acquire never reads sixteen bytes, and bits 1:0 of the address are dropped.
    let m = Machine::new();
    let mut lane = m.lane();
    let sem = m.map(SEM, 4096);
    sem.mem.write_u64(8, 5);
    m.run(&mut lane, &semaphore(SEM + 8 + 3, 5, operation(NVC56F_SEM_EXECUTE_OPERATION_ACQUIRE) | WIDE));
    assert!(!lane.dead() && !m.gpu.step());
}

/// One channel releases the semaphore for which another waits, in whatever order the two were submitted.
#[test]
fn section_3_1_an_unmet_acquire_blocks_only_its_channel() {
    let m = Machine::new();
    let tsg = m.tsg(0);
    let mut a = m.channel(511, &tsg, 0x1_0000_0000);
    let mut b = m.channel(510, &tsg, 0x1_1000_0000);
    let sem = m.map(SEM, 4096);
    let acquire = operation(NVC56F_SEM_EXECUTE_OPERATION_ACQ_CIRC_GEQ);
    let mut words = semaphore(SEM, 3, acquire);
    words.extend(release(SEM + 16, 1));
    m.run(&mut a, &words);
    assert_eq!(sem.mem.read_u32(16), 0);
    m.run(&mut b, &release(SEM, 3));
    assert_eq!(sem.mem.read_u32(16), 1);
}

#[test]
fn section_3_1_an_acquire_may_time_out() {
    let m = Machine::new();
    let mut lane = m.lane();
    m.map(SEM, 4096);
    lane.hw.acquire_timeout_ms.store(1, Ordering::Release);
    lane.submit(&semaphore(SEM, 3, operation(NVC56F_SEM_EXECUTE_OPERATION_ACQUIRE)));
    m.ring(&lane);
    while !lane.dead() {
        m.gpu.step();
    }
    assert_eq!(lane.notified(), Some(24));
}

/// Nothing times out while a debugger has switched timeouts off.
#[test]
fn section_3_1_an_acquire_waits_for_a_debugger() {
    let m = Machine::new();
    let mut lane = m.lane();
    let sem = m.map(SEM, 4096);
    lane.hw.acquire_timeout_ms.store(1, Ordering::Release);
    lane.hw.tsg.gpu.timeouts.disable();
    let acquire = semaphore(SEM, 3, operation(NVC56F_SEM_EXECUTE_OPERATION_ACQUIRE));
    lane.submit(&[acquire, release(SEM + 16, 1)].concat());
    m.ring(&lane);
    while lane.hw.acquire_timeout_ms.load(Ordering::Acquire) != 0 {
        m.gpu.step();
    }
    lane.hw.tsg.gpu.timeouts.enable();
    m.drain();
    sem.mem.write_u32(0, 3);
    m.drain();
    assert_eq!((lane.notified(), sem.mem.read_u32(16)), (None, 1));
}

#[test]
fn section_3_reference_and_things_that_do_nothing() {
    let m = Machine::new();
    let mut lane = m.lane();
    let mut words = methods(3, NVC56F_SET_REFERENCE, &[0xabcd]);
    words.extend(methods(5, NVC56F_NOP, &[1]));
    words.extend(methods(0, NVC56F_WFI, &[1]));
    words.extend(methods(0, NVC56F_FB_FLUSH, &[0]));
    words.extend(methods(0, NVC56F_YIELD, &[NVC56F_YIELD_OP_NOP]));
    words.extend(methods(0, NVC56F_YIELD, &[NVC56F_YIELD_OP_TSG]));
    m.run(&mut lane, &words);
    assert!(!lane.dead(), "{:?}", m.gpu.faults());
    assert_eq!(lane.userd.mem.read_u32(REFERENCE), 0xabcd);
}

/// Operations that need no privilege do nothing here, and the methods behind them run.
#[test]
fn section_3_3_memory_operations() {
    let m = Machine::new();
    let mut lane = m.lane();
    let mut words = vec![];
    for op in [NVC56F_MEM_OP_D_OPERATION_MEMBAR, 0xb, 0xd, 0xe, 0xf, 0x10, 0x15] {
        words.extend(methods(0, NVC56F_MEM_OP_A, &[1, 2, 1, NVC56F_MEM_OP_D_OPERATION.put(op)]));
        words.extend(methods(0, NVC56F_SET_REFERENCE, &[op]));
    }
    m.run(&mut lane, &words);
    assert_eq!((lane.notified(), lane.userd.mem.read_u32(REFERENCE)), (None, 0x15), "{:?}", m.gpu.faults());
}

/// YIELD lets the other channels of the group and of other groups run, unless it is one of its two NOPs.
#[test]
fn section_3_yield() {
    for (op, makes_way) in [(0, false), (1, false), (2, true), (3, true)] {
        let m = Machine::new();
        let tsg = m.tsg(0);
        let (mut a, mut b) = (m.channel(511, &tsg, 0x1_0000_0000), m.channel(510, &tsg, 0x1_1000_0000));
        let sem = m.map(SEM, 4096);
        a.submit(&[methods(0, NVC56F_YIELD, &[op]), release(SEM, 1)].concat());
        b.submit(&release(SEM, 2));
        m.ring(&a);
        m.drain();
        assert_eq!(sem.mem.read_u32(0), if makes_way { 1 } else { 2 }, "operation {op}");
    }
}

/// The methods of the old semaphore block do not belong to the host (GPU-D09).
#[test]
fn section_3_4_old_semaphores() {
    for method in [NVC56F_SEMAPHOREA, NVC56F_SEMAPHOREB, NVC56F_SEMAPHOREC, NVC56F_SEMAPHORED] {
        let m = Machine::new();
        let mut lane = m.lane();
        m.run(&mut lane, &methods(0, method, &[2]));
        assert_eq!(lane.notified(), Some(32));
        assert!(m.gpu.faults()[0].contains("(method)"), "{:?}", m.gpu.faults());
    }
}

#[test]
fn section_2_4_methods_host_does_not_have() {
    let mem_op = |op| (NVC56F_MEM_OP_D, NVC56F_MEM_OP_D_OPERATION.put(op));
    let bad = [
        (NVC56F_ILLEGAL, 0),
        (NVC56F_CLEAR_FAULTED, 0),
        (0x7c, 0),
        (0xfc, 0),
        mem_op(NVC56F_MEM_OP_D_OPERATION_MMU_TLB_INVALIDATE),
        mem_op(NVC56F_MEM_OP_D_OPERATION_MMU_TLB_INVALIDATE_TARGETED),
        mem_op(NVC56F_MEM_OP_D_OPERATION_ACCESS_COUNTER_CLR),
        mem_op(0x1f),
    ];
    for (method, data) in bad {
        let m = Machine::new();
        let mut lane = m.lane();
        m.run(&mut lane, &methods(0, method, &[data]));
        assert_eq!(lane.notified(), Some(32), "{method:#x}");
        assert!(m.gpu.faults()[0].contains("(method)"), "{:?}", m.gpu.faults());
    }
}

/// A release in the syncpoint aperture increments the counter, whatever the payload is.
#[test]
fn section_3_2_a_release_increments_a_syncpoint() {
    let m = Machine::new();
    let mut lane = m.lane();
    let buffer = Buffer::new(SEM, 4 << 16);
    let aperture = std::sync::Arc::new(tegra_mm::Backing::anonymous("aperture", 4 << 16).unwrap().as_syncpoints());
    m.space.update(|t| t.insert(tegra_mm::Extent { backing: Some(aperture.clone()), ..buffer.extent() }));
    let mut words = release(SEM + (3 << 16), 0);
    words.extend(release(SEM + (3 << 16), 99));
    words.extend(semaphore(SEM + (3 << 16), 2, operation(NVC56F_SEM_EXECUTE_OPERATION_ACQ_CIRC_GEQ)));
    words.extend(methods(0, NVC56F_SET_REFERENCE, &[1]));
    m.run(&mut lane, &words);
    assert_eq!(aperture.load_u32(3 << 16), Some(2));
    assert_eq!(lane.userd.mem.read_u32(REFERENCE), 1);
}

/// A copy of 64 bytes.
fn copy(from: u64, to: u64) -> Vec<u32> {
    let ends = [(from >> 32) as u32, from as u32, (to >> 32) as u32, to as u32];
    let mut words = methods(4, NVC6B5_OFFSET_IN_UPPER, &ends);
    words.extend(methods(4, NVC6B5_LINE_LENGTH_IN, &[64, 1]));
    words.extend(methods(4, NVC6B5_LAUNCH_DMA, &[NVC6B5_LAUNCH_DMA_DATA_TRANSFER_TYPE_NON_PIPELINED | 0x180]));
    words
}

fn acquire(va: u64, payload: u32) -> Vec<u32> {
    semaphore(va, payload.into(), operation(NVC56F_SEM_EXECUTE_OPERATION_ACQ_CIRC_GEQ))
}

/// Two channels of one group, on a GPU that looks for races, and memory for their copies and semaphores.
struct Two {
    machine: Machine,
    lanes: [Lane; 2],
    memory: Buffer,
}

impl Two {
    fn new() -> Two {
        let checks = Checks { race: true, strict: true, ..Checks::default() };
        let machine = Machine::with(GpuConfig { reports: Reports::of(checks, 0), ..config() });
        let tsg = machine.tsg(0);
        let lanes = [(510, 0x1_0000_0000), (511, 0x1_1000_0000)].map(|(id, at)| machine.channel(id, &tsg, at));
        let memory = machine.map(SEM, 3 << 12);
        Two { machine, lanes, memory }
    }

    /// Submits words to both channels before the GPU looks, and returns what it reports.
    fn at_once(&mut self, words: [Vec<u32>; 2]) -> Vec<String> {
        for (lane, words) in self.lanes.iter_mut().zip(words) {
            lane.submit(&words);
            self.machine.ring(lane);
        }
        self.machine.drain();
        self.reports()
    }

    fn reports(&self) -> Vec<String> {
        self.lanes[0].hw.tsg.gpu.checks.take().lines().map(str::to_owned).collect()
    }

    fn tell(&self, text: &str) {
        self.lanes[0].hw.tsg.gpu.names.tell(PROCESS, text).expect("understood");
    }
}

const A: u64 = SEM + 4096;
const B: u64 = SEM + 8192;

#[test]
fn copies_of_two_channels_race_unless_a_semaphore_is_between_them() {
    let reports = Two::new().at_once([copy(A, B), copy(B + 32, A + 256)]);
    let parts: Vec<_> = reports.iter().flat_map(|line| line.split('\t')).collect();
    assert_eq!(parts.len(), 3, "{parts:?}");
    let place =
        format!("race: global memory at {:#x}, 8224 bytes into the 12288-byte buffer at {SEM:#x}, is used by", B + 32);
    assert!(parts[0].starts_with(&place), "{}", parts[0]);
    assert_eq!(
        parts[1..],
        ["load of a copy of 64 bytes in channel 511", "earlier store of a copy of 64 bytes in channel 510"]
    );

    let ordered = [[copy(A, B), release(SEM, 7)].concat(), [acquire(SEM, 7), copy(B, A + 256)].concat()];
    assert_eq!(Two::new().at_once(ordered), [""; 0]);
    let too_early = [[release(SEM, 7), copy(A, B)].concat(), [acquire(SEM, 7), copy(B, A + 256)].concat()];
    assert_eq!(Two::new().at_once(too_early).len(), 1);
    // What one channel releases first is known to who waits for that, and what it does behind it is not.
    let first = [release(SEM, 1), copy(A, B), release(SEM, 2)].concat();
    assert_eq!(Two::new().at_once([first, [acquire(SEM, 1), copy(A, B)].concat()]).len(), 1);
}

#[test]
fn reads_and_other_bytes_and_atomic_counters_are_no_races() {
    assert_eq!(Two::new().at_once([copy(A, B), copy(A, B + 64)]), [""; 0], "both read one place, and store to others");
    assert_eq!(Two::new().at_once([copy(A, B), copy(A + 64, B + 64)]), [""; 0]);
    assert_eq!(Two::new().at_once([copy(A, B + 1), copy(A, B + 66)]).len(), 0, "byte 65 is in between");
    assert_eq!(Two::new().at_once([copy(A, B + 1), copy(A, B + 64)]).len(), 1, "byte 64 is stored twice");
}

#[test]
fn the_processor_may_know_whatever_has_ended_unless_it_tells_its_waits() {
    let mut two = Two::new();
    assert_eq!(two.at_once([copy(A, B), Vec::from([0])]), [""; 0]);
    // Channel 510 is idle, and the processor may have seen that.
    assert_eq!(two.at_once([Vec::from([0]), copy(A, B)]), [""; 0]);

    // It tells that it has waited, or has not.
    for waits in [true, false] {
        let mut two = Two::new();
        two.tell(&format!("queue\t{:#x}\t{:#x}\tfirst\nqueue\t{:#x}\t{:#x}\tsecond\n", 510, SEM, 511, SEM + 64));
        two.tell("gives\t0x1fe\t0x1\n");
        two.lanes[0].submit(&[copy(A, B), release(SEM, 1)].concat());
        two.machine.ring(&two.lanes[0]);
        two.machine.drain();
        assert_eq!(two.memory.mem.read_u32(0), 1);
        if waits {
            two.tell("waited\t0x1fe\t0x1\n");
        }
        two.tell("gives\t0x1ff\t0x1\n");
        two.lanes[1].submit(&copy(A, B));
        // What is waited for later makes no difference to what was given before.
        two.tell("waited\t0x1fe\t0x1\n");
        two.machine.ring(&two.lanes[1]);
        two.machine.drain();
        let reports = two.reports();
        assert_eq!(reports.len(), usize::from(!waits), "{reports:?}");
        assert!(waits || reports[0].ends_with("earlier store of a copy of 64 bytes in first"), "{reports:?}");
    }
}

#[test]
fn a_semaphore_that_something_else_has_written_orders_everything_before() {
    let mut two = Two::new();
    // The first channel copies the number that the second one waits for.
    two.memory.mem.write_u32(4096 + 128, 9);
    let flag = [copy(A, B), copy(A + 128, SEM)].concat();
    assert_eq!(two.at_once([flag, [acquire(SEM, 9), copy(A, B)].concat()]), [""; 0]);
}

#[test]
fn memory_that_is_mapped_anew_has_not_been_used() {
    for mapped_anew in [true, false] {
        let (mut two, fresh, again) = (Two::new(), Buffer::new(B + 4096, 4096), Buffer::new(B + 4096, 4096));
        two.machine.space.update(|table| table.insert(fresh.extent()));
        for (at, token) in [510, 511].into_iter().enumerate() {
            two.tell(&format!("queue\t{token:#x}\t{SEM:#x}\tq\ngives\t{token:#x}\t0x1\n"));
            two.lanes[at].submit(&copy(A, B + 4096));
            two.machine.ring(&two.lanes[at]);
            two.machine.drain();
            if mapped_anew {
                two.machine.space.update(|table| {
                    table.remove(B + 4096);
                    table.insert(again.extent());
                });
            }
        }
        assert_eq!(two.reports().len(), usize::from(!mapped_anew));
    }
}
