//! Launch descriptors: decoding, checks and chains. A grid without CTAs tests everything except the machine code.

use crate::harness::*;
use std::sync::{Arc, Mutex};
use tegra_gpu::{Event, Qmd};
use tegrarm_abi::layout::Bits;
use tegrarm_abi::methods::compute::*;
use tegrarm_abi::methods::qmd::*;

/// The addresses of descriptors, semaphores and code.
pub const QMDS: u64 = 0x2_0000_0000;
pub const SEMS: u64 = 0x3_0000_0000;
pub const CODE: u64 = 0x4_0000_0000;

#[derive(Clone)]
pub struct Words(pub [u32; 64]);

impl Words {
    pub fn set(mut self, bits: Bits, value: u64) -> Words {
        for i in 0..bits.width() as usize {
            let at = bits.lsb as usize + i;
            let bit = (value >> i & 1) as u32;
            self.0[at / 32] = self.0[at / 32] & !(1 << (at % 32)) | bit << (at % 32);
        }
        self
    }

    pub fn release(self, which: usize, va: u64, payload: u64) -> Words {
        let fields = [
            (
                RELEASE0_ADDRESS_LOWER,
                RELEASE0_ADDRESS_UPPER,
                RELEASE0_PAYLOAD_LOWER,
                RELEASE0_PAYLOAD_UPPER,
                RELEASE0_ENABLE,
            ),
            (
                RELEASE1_ADDRESS_LOWER,
                RELEASE1_ADDRESS_UPPER,
                RELEASE1_PAYLOAD_LOWER,
                RELEASE1_PAYLOAD_UPPER,
                RELEASE1_ENABLE,
            ),
            (
                RELEASE2_ADDRESS_LOWER,
                RELEASE2_ADDRESS_UPPER,
                RELEASE2_PAYLOAD_LOWER,
                RELEASE2_PAYLOAD_UPPER,
                RELEASE2_ENABLE,
            ),
        ];
        let (low, high, payload_low, payload_high, enable) = fields[which];
        self.set(low, va & 0xffff_ffff)
            .set(high, va >> 32)
            .set(payload_low, payload & 0xffff_ffff)
            .set(payload_high, payload >> 32)
            .set(enable, 1)
    }

    pub fn then(self, qmd: u64, action: u32) -> Words {
        self.set(DEPENDENT_QMD0_POINTER, qmd >> 8)
            .set(DEPENDENT_QMD0_ENABLE, 1)
            .set(DEPENDENT_QMD0_ACTION, action.into())
    }
}

/// A descriptor that every check accepts. Its grid has no CTAs.
pub fn qmd() -> Words {
    Words([0; 64])
        .set(QMD_MAJOR_VERSION, 3)
        .set(CTA_THREAD_DIMENSION0, 32)
        .set(CTA_THREAD_DIMENSION1, 1)
        .set(CTA_THREAD_DIMENSION2, 1)
        .set(REGISTER_COUNT_V, 16)
        .set(PROGRAM_ADDRESS_LOWER, CODE & 0xffff_ffff)
        .set(PROGRAM_ADDRESS_UPPER, CODE >> 32)
}

struct Setup {
    m: Machine,
    lane: Lane,
    qmds: Buffer,
    sems: Buffer,
}

impl Setup {
    fn new() -> Setup {
        let s = Setup::without_windows();
        let Setup { m, mut lane, .. } = s;
        let mut words = methods(1, NVC6C0_SET_SHADER_SHARED_MEMORY_WINDOW_A, &[0xfe, 0]);
        words.extend(methods(1, NVC6C0_SET_SHADER_LOCAL_MEMORY_WINDOW_A, &[0xfd, 0]));
        // This gives each thread 512 bytes of local memory.
        words.extend(methods(1, NVC6C0_SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A, &[0, 512 * 32 * 96, 0xff]));
        m.run(&mut lane, &words);
        Setup { m, lane, ..s }
    }

    fn without_windows() -> Setup {
        let m = Machine::new();
        let lane = m.lane();
        let (qmds, sems) = (m.map(QMDS, 16 << 10), m.map(SEMS, 4096));
        m.map(CODE, 8192);
        Setup { m, lane, qmds, sems }
    }

    /// Writes a descriptor into slot `slot`.
    fn put(&self, slot: usize, words: &Words) {
        self.qmds.fill(256 * slot, &words.0);
    }

    fn pcas(&mut self, slot: usize, action: u32) {
        let at = slot_va(slot);
        let words =
            [methods(1, NVC6C0_SEND_PCAS_A, &[(at >> 8) as u32]), methods(1, NVC6C0_SEND_SIGNALING_PCAS2_B, &[action])]
                .concat();
        self.m.run(&mut self.lane, &words);
    }

    fn sem(&self, i: usize) -> u64 {
        self.sems.mem.read_u64(16 * i)
    }
}

pub fn slot_va(slot: usize) -> u64 {
    QMDS + 256 * slot as u64
}

pub fn sem_va(i: u64) -> u64 {
    SEMS + 16 * i
}

#[test]
fn section_6_1_fields_of_a_descriptor() {
    let words = qmd()
        .set(CTA_RASTER_WIDTH, 0x12345)
        .set(CTA_RASTER_HEIGHT, 7)
        .set(CTA_RASTER_DEPTH, 9)
        .set(SHARED_MEMORY_SIZE, 0x1_8000)
        .set(SHADER_LOCAL_MEMORY_LOW_SIZE, 0x30)
        .set(SHADER_LOCAL_MEMORY_HIGH_SIZE, 0x240)
        .set(CONSTANT_BUFFER_VALID.at(0), 1)
        .set(CONSTANT_BUFFER_ADDR_LOWER.at(0), 0x1000)
        .set(CONSTANT_BUFFER_ADDR_UPPER.at(0), 0xff)
        .set(CONSTANT_BUFFER_SIZE_SHIFTED4.at(0), 0x17)
        .set(CONSTANT_BUFFER_VALID.at(7), 1)
        .set(CONSTANT_BUFFER_ADDR_LOWER.at(7), 0x2000)
        .set(CONSTANT_BUFFER_SIZE_SHIFTED4.at(7), 0x1fff);
    let q = Qmd::new(words.0);
    assert_eq!((q.version(), q.grid(), q.block()), ((3, 0), [0x12345, 7, 9], [32, 1, 1]));
    assert_eq!((q.program(), q.registers(), q.shared_bytes(), q.local_bytes()), (CODE, 16, 0x1_8000, (0x30, 0x240)));
    let banks = q.banks().map(|b| b.map(|b| (b.va, b.size)));
    assert_eq!((banks[0], banks[1], banks[7]), (Some((0xff_0000_1000, 0x170)), None, Some((0x2000, 0x1_0000))));
    // The dwords are where a driver would write them by hand: the grid at 12, the versions at 18, the block at 18 and
    // 19, the program at 48 and 49.
    assert_eq!((words.0[12], words.0[13], words.0[14]), (0x12345, 7, 9));
    assert_eq!((words.0[18], words.0[19], words.0[48], words.0[49]), (0x0020_0030, 0x0001_0001, 0, 4));
}

/// Each of the ways in which tinygrad, NVK and others launch runs the descriptor and its releases.
#[test]
fn section_5_2_every_launching_action() {
    for action in [2, 3, 9, 0xa] {
        let mut s = Setup::new();
        s.put(0, &qmd().release(0, sem_va(0), 0x1_0000_0007).release(1, sem_va(1), 8).release(2, sem_va(2), 9));
        s.sems.fill(0, &[u32::MAX; 12]);
        s.pcas(0, action);
        assert!(!s.lane.dead(), "{:?}", s.m.gpu.faults());
        // The record has four words: payload, zero, timestamp.
        assert_eq!((s.sem(0), s.sem(1), s.sem(2)), (7, 8, 9), "action {action}");
        assert!(s.sems.mem.read_u64(8).is_multiple_of(32) && s.sems.mem.read_u64(8) != u64::MAX);
    }
    for action in [0, 1, 8, 0xd] {
        let mut s = Setup::new();
        s.put(0, &qmd().release(0, sem_va(0), 7));
        s.pcas(0, action);
        assert_eq!((s.sem(0), s.lane.dead()), (0, false), "action {action}");
    }
}

#[test]
fn section_6_1_releases_of_every_size() {
    let mut s = Setup::new();
    s.sems.fill(0, &[u32::MAX; 16]);
    let q = qmd()
        .release(0, sem_va(0), 0x1_0000_0007)
        .set(RELEASE0_STRUCTURE_SIZE, 1)
        .release(1, sem_va(1), 0x1_0000_0007)
        .set(RELEASE1_STRUCTURE_SIZE, 1)
        .set(RELEASE1_PAYLOAD64B, 1)
        .release(2, sem_va(2), 2)
        .set(RELEASE2_STRUCTURE_SIZE, 1)
        .set(RELEASE2_REDUCTION_ENABLE, 1)
        .set(RELEASE2_REDUCTION_OP, 5);
    s.put(0, &q);
    s.pcas(0, 9);
    assert_eq!(s.sems.words(0, 12), [7, !0, !0, !0, 7, 1, !0, !0, 2, !0, !0, !0]);
}

/// A chain runs in order, one grid after another, and the trace shows this order.
#[test]
fn section_6_2_dependent_descriptors_run_in_order() {
    let mut s = Setup::new();
    let seen: Arc<Mutex<Vec<u64>>> = Arc::default();
    let log = seen.clone();
    s.m.gpu.observe(Arc::new(move |event| {
        if let Event::Launch { qmd, .. } = event {
            log.lock().unwrap().push(*qmd);
        }
    }));
    let actions = [DEPENDENT_QMD0_ACTION_QMD_SCHEDULE, DEPENDENT_QMD0_ACTION_QMD_INVALIDATE_COPY_SCHEDULE];
    for i in 0..6 {
        let q = qmd().release(0, sem_va(i), i + 1);
        let q = if i < 5 { q.then(slot_va(i as usize + 1), actions[i as usize % 2]) } else { q };
        s.put(i as usize, &q);
    }
    s.pcas(0, 9);
    assert!(!s.lane.dead(), "{:?}", s.m.gpu.faults());
    assert_eq!((0..6).map(|i| s.sem(i)).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(*seen.lock().unwrap(), (0..6).map(slot_va).collect::<Vec<_>>());
}

/// A descriptor is read when it is scheduled and not when its chain starts. A client that writes the next launch into a
/// descriptor of a chain that still runs changes that chain, and a release in it has the next launch's value.
#[test]
fn section_6_2_a_chain_that_is_patched_while_it_runs() {
    let two_words =
        |i, payload| qmd().release(0, sem_va(i), payload).set(RELEASE0_STRUCTURE_SIZE, 2).set(RELEASE0_PAYLOAD64B, 1);
    let Setup { m, mut lane, qmds, sems } = Setup::new();
    let qmds = Arc::new(qmds);
    for i in 0..3 {
        let q = two_words(i, 0x1_0000_0001);
        let q = if i < 2 { q.then(slot_va(i as usize + 1), DEPENDENT_QMD0_ACTION_QMD_SCHEDULE) } else { q };
        qmds.fill(256 * i as usize, &q.0);
    }
    // The client writes the next launch while the second grid of this one starts.
    let (clients, next) = (qmds.clone(), two_words(2, 0x1_0000_0002));
    m.gpu.observe(Arc::new(move |event| {
        if matches!(event, Event::Launch { qmd, .. } if *qmd == slot_va(1)) {
            clients.fill(256 * 2, &next.0);
        }
    }));
    let at = (slot_va(0) >> 8) as u32;
    let words = [methods(1, NVC6C0_SEND_PCAS_A, &[at]), methods(1, NVC6C0_SEND_SIGNALING_PCAS2_B, &[9])].concat();
    m.run(&mut lane, &words);
    let released: Vec<u64> = (0..3).map(|i| sems.mem.read_u64(16 * i)).collect();
    assert_eq!(released, [0x1_0000_0001, 0x1_0000_0001, 0x1_0000_0002], "64 bits each");
}

/// `tegrarm top` shows the launches of each process. A descriptor that fails its checks launches nothing.
#[test]
fn grids_are_counted_for_the_process_of_their_group() {
    let mut s = Setup::new();
    let counted: Arc<Mutex<Vec<i32>>> = Arc::default();
    let log = counted.clone();
    s.m.gpu.count_launches(Arc::new(move |process| log.lock().unwrap().push(process)));
    s.put(0, &qmd().then(slot_va(1), DEPENDENT_QMD0_ACTION_QMD_SCHEDULE));
    s.put(1, &qmd().release(0, sem_va(0), 1));
    s.pcas(0, 9);
    assert_eq!(*counted.lock().unwrap(), [PROCESS + s.lane.hw.tsg.id as i32; 2]);
    s.put(2, &qmd().set(QMD_VERSION, 3));
    s.pcas(2, 9);
    assert_eq!((s.lane.dead(), counted.lock().unwrap().len()), (true, 2));
}

/// A chain that closes on itself never ends. It starves nobody and can be removed.
#[test]
fn section_6_2_an_endless_chain() {
    use tegra_hw::GpuPort;
    let mut s = Setup::new();
    let tsg = s.m.tsg(1);
    let mut other = s.m.channel(400, &tsg, 0x6_0000_0000);
    s.put(0, &qmd().then(slot_va(0), DEPENDENT_QMD0_ACTION_QMD_SCHEDULE));
    let at = (slot_va(0) >> 8) as u32;
    s.lane.submit(&[methods(1, NVC6C0_SEND_PCAS_A, &[at]), methods(1, NVC6C0_SEND_SIGNALING_PCAS2_B, &[9])].concat());
    other.submit(&release(sem_va(0), 5));
    s.m.ring(&other);
    assert!(s.m.gpu.step() && s.m.gpu.step() && s.m.gpu.step());
    assert_eq!((s.sem(0), s.lane.dead()), (5, false));
    s.m.gpu.remove_channel(511);
    s.m.drain();
}

/// Counters, extra schedules and holds work.
#[test]
fn section_5_2_descriptors_that_wait() {
    // The descriptor has two dependences: it is scheduled and then counted down twice.
    let mut s = Setup::new();
    s.put(0, &qmd().set(DEPENDENCE_COUNTER, 2).release(0, sem_va(0), 1));
    for action in [9, 7] {
        s.pcas(0, action);
        assert_eq!(s.sem(0), 0);
    }
    s.pcas(0, 7);
    assert_eq!(s.sem(0), 1);
    // One more dependence is added while the descriptor waits.
    let mut s = Setup::new();
    s.put(0, &qmd().set(DEPENDENCE_COUNTER, 1).release(0, sem_va(0), 1));
    for action in [9, 0xc, 7] {
        s.pcas(0, action);
        assert_eq!(s.sem(0), 0);
    }
    s.pcas(0, 7);
    assert_eq!(s.sem(0), 1);
    // This tests REQUIRE_SCHEDULING_PCAS, and the action that forces it.
    let mut s = Setup::new();
    s.put(0, &qmd().set(REQUIRE_SCHEDULING_PCAS, 1).release(0, sem_va(0), 1));
    s.put(1, &qmd().release(0, sem_va(1), 1));
    s.pcas(0, 9);
    s.pcas(1, 0xb);
    assert_eq!((s.sem(0), s.sem(1)), (0, 0));
    s.pcas(0, 2);
    s.pcas(1, 2);
    assert_eq!((s.sem(0), s.sem(1)), (1, 1));
    // Two other descriptors count the counter of this dependent down.
    let mut s = Setup::new();
    let decrement = DEPENDENT_QMD0_ACTION_QMD_DECREMENT_DEPENDENCE;
    s.put(0, &qmd().then(slot_va(2), decrement));
    s.put(1, &qmd().then(slot_va(2), decrement));
    s.put(2, &qmd().set(DEPENDENCE_COUNTER, 2).release(0, sem_va(0), 1));
    s.pcas(0, 9);
    assert_eq!(s.sem(0), 0);
    s.pcas(1, 9);
    assert_eq!(s.sem(0), 1);
    // Counting below zero is an exception of the scheduler.
    s.pcas(1, 7);
    assert_eq!(s.lane.notified(), Some(13));
    assert!(s.m.gpu.faults()[0].contains("esr 0x00000100"), "{:?}", s.m.gpu.faults());
}

/// Without windows, a launch gives what a board gave: notifier 13, esr 0x01000000, no semaphore, and GP_GET equal to
/// GP_PUT.
#[test]
fn section_6_3_missing_windows() {
    let mut s = Setup::without_windows();
    s.put(0, &qmd().release(0, sem_va(0), 1));
    s.pcas(0, 9);
    assert_eq!((s.lane.notified(), s.sem(0), s.lane.gp_get()), (Some(13), 0, s.lane.put));
    assert!(s.m.gpu.faults()[0].contains("sked exception: esr 0x01000000"), "{:?}", s.m.gpu.faults());
}

/// Every check of the scheduler rejects one violation, and accepts the legal values beside it.
#[test]
fn section_6_3_scheduler_checks() {
    let cases: Vec<(u32, &str, Words)> = vec![
        (0, "QMD_VERSION", qmd().set(QMD_VERSION, 3)),
        (0, "IS_QUEUE", qmd().set(IS_QUEUE, 1)),
        (0, "DEPENDENT_QMD1", qmd().set(DEPENDENT_QMD1_ENABLE, 1)),
        (6, "CTA_RESUME", qmd().set(CTA_RASTER_WIDTH_RESUME, 1)),
        (9, "LOCAL_MEMORY_LOW_SIZE", qmd().set(SHADER_LOCAL_MEMORY_LOW_SIZE, 8)),
        (10, "LOCAL_MEMORY_HIGH_SIZE", qmd().set(SHADER_LOCAL_MEMORY_HIGH_SIZE, 8)),
        (12, "LOCAL_MEMORY_TOTAL_SIZE", qmd().set(SHADER_LOCAL_MEMORY_HIGH_SIZE, 0x240)),
        (13, "REGISTER_COUNT", qmd().set(REGISTER_COUNT_V, 257)),
        (18, "TOTAL_THREADS", qmd().set(CTA_THREAD_DIMENSION1, 33)),
        (20, "PROGRAM_OFFSET", qmd().set(PROGRAM_ADDRESS_LOWER, 8)),
        (21, "SHARED_MEMORY_SIZE", qmd().set(SHARED_MEMORY_SIZE, (164 << 10) + 1)),
        (23, "CTA_THREAD_DIMENSION_ZERO", qmd().set(CTA_THREAD_DIMENSION2, 0)),
        (
            25,
            "L1_CONFIG_TOO_SMALL",
            qmd().set(MAX_SM_CONFIG_SHARED_MEM_SIZE, 9).set(SHARED_MEMORY_SIZE, (32 << 10) + 128),
        ),
        (26, "CTA_REGISTER_CONSUMPTION", qmd().set(CTA_THREAD_DIMENSION1, 32).set(REGISTER_COUNT_V, 65)),
    ];
    for (bit, name, words) in cases {
        let mut s = Setup::new();
        s.put(0, &words.release(0, sem_va(0), 1));
        s.pcas(0, 9);
        assert_eq!((s.lane.notified(), s.sem(0)), (Some(13), 0), "{name}");
        let fault = &s.m.gpu.faults()[0];
        assert!(fault.contains(name), "{fault}");
        assert!(bit == 0 || fault.contains(&format!("esr {:#010x}", 1u32 << bit)), "{fault}");
    }
    let fine = [
        qmd().set(CTA_THREAD_DIMENSION1, 32).set(REGISTER_COUNT_V, 64),
        qmd().set(SHARED_MEMORY_SIZE, 100 << 10).set(MAX_SM_CONFIG_SHARED_MEM_SIZE, 0x1a),
        qmd().set(CONSTANT_BUFFER_SIZE_SHIFTED4.at(0), 0x1fff).set(CONSTANT_BUFFER_VALID.at(0), 1),
        qmd().set(BARRIER_COUNT, 0).set(QMD_GROUP_ID, 0x3f).set(SASS_VERSION, 0x87),
    ];
    for words in fine {
        let mut s = Setup::new();
        s.put(0, &words.release(0, sem_va(0), 1));
        s.pcas(0, 9);
        assert_eq!((s.lane.notified(), s.sem(0)), (None, 1), "{:?}", s.m.gpu.faults());
    }
}

/// Descriptors of Volta and Turing (version 2) are refused.
#[test]
fn section_6_4_other_versions() {
    for (major, minor) in [(2, 2), (2, 4), (0, 0), (3, 1), (4, 0)] {
        let mut s = Setup::new();
        s.put(0, &qmd().set(QMD_MAJOR_VERSION, major).set(QMD_VERSION, minor).release(0, sem_va(0), 1));
        s.pcas(0, 9);
        assert_eq!((s.lane.notified(), s.sem(0)), (Some(13), 0), "{major}.{minor}");
        assert!(s.m.gpu.faults()[0].contains("QMD_VERSION"), "{:?}", s.m.gpu.faults());
    }
}

/// Actions that do not exist are refused, and so is the action for queues.
#[test]
fn section_5_2_other_actions() {
    for (action, text) in [(4, "does not exist"), (5, "does not exist"), (0xe, "does not exist"), (6, "work queues")] {
        let mut s = Setup::new();
        s.put(0, &qmd());
        s.pcas(0, action);
        assert_eq!(s.lane.notified(), Some(13));
        assert!(s.m.gpu.faults()[0].contains(text), "{:?}", s.m.gpu.faults());
    }
}

/// Software method 7 lets nvgpu switch check 18 off and on. The values are 1 and 2, and 0 changes nothing.
#[test]
fn section_5_software_method_7_switches_a_check() {
    for (settings, runs) in [(&[1][..], true), (&[1, 0], true), (&[1, 2], false), (&[2], false), (&[0], false)] {
        let mut s = Setup::new();
        for data in settings {
            let words = methods(1, NVC6C0_SET_RESERVED_SW_METHOD07, &[*data]);
            s.m.run(&mut s.lane, &words);
        }
        let small = qmd().set(MAX_SM_CONFIG_SHARED_MEM_SIZE, 9).set(SHARED_MEMORY_SIZE, (32 << 10) + 128);
        s.put(0, &small.release(0, sem_va(0), 1));
        s.pcas(0, 9);
        assert_eq!((s.sem(0) == 1, s.lane.dead()), (runs, !runs), "{settings:?}: {:?}", s.m.gpu.faults());
    }
}

/// The amount of local memory that tinygrad computes, for two SMs per TPC with 48 warps each, passes. One byte less
/// does not.
#[test]
fn section_7_7_local_memory_arena() {
    let per_tpc = (0x240u32 * 32).next_multiple_of(512) * 96;
    for (size, code) in [(per_tpc, None), (per_tpc - 1, Some(13))] {
        let mut s = Setup::new();
        let words = methods(1, NVC6C0_SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A, &[0, size, 0xff]);
        s.m.run(&mut s.lane, &words);
        s.put(0, &qmd().set(SHADER_LOCAL_MEMORY_HIGH_SIZE, 0x240));
        s.pcas(0, 9);
        assert_eq!(s.lane.notified(), code);
    }
}

#[test]
fn section_9_2_a_descriptor_nobody_mapped() {
    let mut s = Setup::new();
    s.pcas(1000, 9);
    assert_eq!(s.lane.notified(), Some(31));
    assert!(s.m.gpu.faults()[0].contains("client id: sked"), "{:?}", s.m.gpu.faults());
}

/// A descriptor that is sent in the pushbuffer is stored at its address, and its last word launches it.
#[test]
fn section_5_inline_descriptor() {
    let mut s = Setup::new();
    let q = qmd().release(0, sem_va(0), 0x77);
    let at = slot_va(3) >> 8;
    let mut words = methods(1, NVC6C0_SET_INLINE_QMD_ADDRESS_A, &[(at >> 32) as u32, at as u32]);
    words.extend(methods(1, 0x320, &q.0));
    s.m.run(&mut s.lane, &words);
    assert_eq!((s.sem(0), s.qmds.words(256 * 3, 64)), (0x77, q.0.to_vec()));
}

#[test]
fn section_5_conditional_launches() {
    for (mode, over, runs) in [(0, 0, false), (1, 0, true), (0, 1, true), (1, 2, false)] {
        let mut s = Setup::new();
        s.put(0, &qmd().release(0, sem_va(0), 1));
        let mut words = methods(1, NVC6C0_SET_RENDER_ENABLE_C, &[mode]);
        words.extend(methods(1, NVC6C0_SET_RENDER_ENABLE_OVERRIDE, &[over]));
        s.m.run(&mut s.lane, &words);
        s.pcas(0, 9);
        assert_eq!((s.sem(0) == 1, s.lane.dead()), (runs, false), "mode {mode}, override {over}");
    }
}
