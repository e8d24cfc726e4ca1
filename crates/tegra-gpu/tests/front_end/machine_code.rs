//! Grids with machine code: the effects of a launch, of a fault and of a grid that never ends, as programs see them.

use crate::harness::*;
use crate::launch::*;
use std::sync::{Arc, Mutex};
use tegra_gpu::{Event, GpuConfig};
use tegra_hw::{GpuPort, HwTsg, Speeds};
use tegra_mm::{Access, FaultKind};
use tegrarm_abi::methods::compute::*;
use tegrarm_abi::methods::qmd::*;

type Instruction = [u64; 2];

const EXIT: Instruction = [0x0000_0000_0000_794d, 0x000f_ea00_0380_0000];
/// A branch to itself, which compilers put behind every kernel.
const LOOP: Instruction = [0xffff_fff0_0000_7947, 0x000f_c000_0383_ffff];
/// The program loads R2 and R3 from the first parameter, R0 with 0x1234 and UR4 with the descriptor, and stores R0 at
/// [R2].
const STORE: [Instruction; 5] = [
    [0x0000_5800_0002_7a02, 0x000f_e400_0000_0f00],
    [0x0000_5900_0003_7a02, 0x000f_e400_0000_0f00],
    [0x0000_1234_0000_7802, 0x000f_e400_0000_0f00],
    [0x0000_4600_0004_7ab9, 0x000f_e200_0000_0a00],
    [0x0000_0000_0200_7986, 0x000f_e200_0c10_1904],
];
const OUT: u64 = 0x7_0000_0000;
const BANK: u64 = 0x8_0000_0000;

struct Board {
    m: Machine,
    qmds: Buffer,
    sems: Buffer,
    code: Buffer,
    bank: Buffer,
}

impl Board {
    fn new(config: GpuConfig) -> Board {
        let m = Machine::with(config);
        let (qmds, sems, code) = (m.map(QMDS, 4096), m.map(SEMS, 4096), m.map(CODE, 8192));
        let bank = m.map(BANK, 4096);
        Board { m, qmds, sems, code, bank }
    }

    fn load(&self, at: usize, program: &[Instruction]) {
        for (i, [low, high]) in program.iter().enumerate() {
            self.code.mem.write_u64(at + 16 * i, *low);
            self.code.mem.write_u64(at + 16 * i + 8, *high);
        }
    }

    fn channel(&self, id: u32, tsg: &Arc<HwTsg>) -> Lane {
        self.m.channel(id, tsg, 0x10_0000_0000 + u64::from(id) * 0x100_0000)
    }

    /// Writes a descriptor for the code at `at`.
    fn put(&self, slot: usize, at: u64, q: Words) {
        let q = q.set(PROGRAM_ADDRESS_LOWER, (CODE + at) & 0xffff_ffff);
        self.qmds.fill(256 * slot, &q.0);
    }
}

/// The methods that set the windows and then launch a slot.
fn launch(slot: usize) -> Vec<u32> {
    [
        methods(1, NVC6C0_SET_SHADER_SHARED_MEMORY_WINDOW_A, &[0xfe, 0]),
        methods(1, NVC6C0_SET_SHADER_LOCAL_MEMORY_WINDOW_A, &[0xfd, 0]),
        methods(1, NVC6C0_SEND_PCAS_A, &[(slot_va(slot) >> 8) as u32]),
        methods(1, NVC6C0_SEND_SIGNALING_PCAS2_B, &[9]),
    ]
    .concat()
}

fn grid(x: u64) -> Words {
    qmd()
        .set(CTA_RASTER_WIDTH, x)
        .set(CTA_RASTER_HEIGHT, 1)
        .set(CTA_RASTER_DEPTH, 1)
        .set(CONSTANT_BUFFER_VALID.at(0), 1)
        .set(CONSTANT_BUFFER_ADDR_LOWER.at(0), BANK & 0xffff_ffff)
        .set(CONSTANT_BUFFER_ADDR_UPPER.at(0), BANK >> 32)
        .set(CONSTANT_BUFFER_SIZE_SHIFTED4.at(0), 0x17)
}

#[test]
fn section_6_2_a_grid_runs_before_its_semaphore() {
    let b = Board::new(config());
    let mut lane = b.channel(511, &b.m.tsg(0));
    let out = b.m.map(OUT, 4096);
    b.load(0, &STORE);
    b.load(16 * STORE.len(), &[EXIT]);
    b.bank.mem.write_u64(0x160, OUT + 64);
    b.put(0, 0, grid(5).release(0, sem_va(0), 3));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    b.m.gpu.observe(Arc::new(move |event| {
        if let Event::Launch { grid, warp_instructions, .. } = event {
            log.lock().unwrap().push((*grid, *warp_instructions));
        }
    }));
    b.m.run(&mut lane, &launch(0));
    assert!(!lane.dead(), "{:?}", b.m.gpu.faults());
    assert_eq!((out.mem.read_u32(64), b.sems.mem.read_u64(0)), (0x1234, 3));
    assert_eq!(*seen.lock().unwrap(), [([5, 1, 1], 5 * 6)]);
}

/// A grid that was preempted continues with the CTA that its descriptor names. A copying action starts it from the
/// beginning. A place outside of the grid fails check 24.
#[test]
fn section_6_1_a_grid_goes_on_in_its_middle() {
    let resume = |x: u64, y: u64| {
        let q = grid(5).set(CTA_RASTER_HEIGHT, 3).release(0, sem_va(0), 3);
        q.set(CTA_RASTER_WIDTH_RESUME, x).set(CTA_RASTER_HEIGHT_RESUME, y)
    };
    for (x, y, action, ctas) in
        [(0, 0, 9, 15), (2, 1, 9, 8), (4, 2, 2, 1), (2, 1, 3, 15), (2, 1, 0xa, 15), (5, 0, 9, 0)]
    {
        let b = Board::new(config());
        let mut lane = b.channel(511, &b.m.tsg(0));
        b.load(0, &[EXIT]);
        b.put(0, 0, resume(x, y));
        let seen = Arc::new(Mutex::new(0));
        let count = seen.clone();
        b.m.gpu.observe(Arc::new(move |event| {
            if let Event::Launch { warp_instructions, .. } = event {
                *count.lock().unwrap() += warp_instructions;
            }
        }));
        let mut words = launch(0);
        *words.last_mut().unwrap() = action;
        b.m.run(&mut lane, &words);
        assert_eq!((*seen.lock().unwrap(), lane.notified()), (ctas, (ctas == 0).then_some(13)), "({x}, {y}), {action}");
    }
}

/// S2R R0, SR_VIRTUALSMID, followed by the store of [`STORE`] without the instruction that sets R0.
fn store_sm() -> Vec<Instruction> {
    let s2r = [0x0000_0000_0000_7919, 0x000e_2200_0000_4300];
    [STORE[0], STORE[1], s2r, STORE[3], STORE[4], EXIT].to_vec()
}

/// SMs that the descriptor disables run none of its CTAs. If all SMs are disabled, the grid never starts.
#[test]
fn section_6_1_disabled_sms() {
    for (mask, expected) in [(0, Some(0)), (0b1, Some(1)), (0x7fff, Some(15)), (u64::MAX, None)] {
        let b = Board::new(config());
        let mut lane = b.channel(511, &b.m.tsg(0));
        let out = b.m.map(OUT, 4096);
        out.mem.write_u32(0, 99);
        b.load(0, &store_sm());
        b.bank.mem.write_u64(0x160, OUT);
        let q = grid(1).set(SM_DISABLE_MASK_LOWER, mask & 0xffff_ffff).set(SM_DISABLE_MASK_UPPER, mask >> 32);
        b.put(0, 0, q);
        b.m.run(&mut lane, &launch(0));
        assert_eq!((out.mem.read_u32(0), lane.notified()), expected.map_or((99, Some(8)), |sm| (sm, None)));
    }
}

/// A store to an unmapped address gives an MMU fault with address, access and PC. There is no release and no dependent,
/// and the SM record is kept.
#[test]
fn section_9_2_a_wild_store() {
    let b = Board::new(config());
    let tsg = b.m.tsg(0);
    let mut lane = b.channel(511, &tsg);
    b.load(0, &STORE);
    b.load(16 * STORE.len(), &[EXIT]);
    b.bank.mem.write_u64(0x160, OUT);
    b.put(0, 0, grid(1).release(0, sem_va(0), 3).then(slot_va(1), DEPENDENT_QMD0_ACTION_QMD_SCHEDULE));
    b.put(1, 0, qmd().release(0, sem_va(1), 3));
    let words = [launch(0), release(sem_va(2), 1)].concat();
    b.m.run(&mut lane, &words);
    assert_eq!((lane.notified(), b.sems.words(0, 12)), (Some(31), vec![0; 12]));
    let fault = tsg.fault.lock().clone().expect("recorded");
    let mmu = fault.mmu.expect("an MMU fault");
    assert_eq!((mmu.va, mmu.access, mmu.kind), (OUT, Access::Write, FaultKind::Pde));
    let (sm, record) = fault.sms[0];
    assert_eq!((record.warp_esr, record.pc, fault.sms.len()), (0x20, CODE + 16 * 4, 1));
    assert_eq!(tsg.sm_errors.lock()[sm as usize], record);
    assert!(fault.text.contains("client type: gpc") && fault.text.contains("invalid pde"), "{}", fault.text);
}

#[test]
fn section_7_9_illegal_instruction_and_missing_code() {
    let b = Board::new(config());
    let tsg = b.m.tsg(0);
    let mut lane = b.channel(511, &tsg);
    b.load(0, &[[0x0000_0000_0000_7fff, 0]]);
    b.put(0, 0, grid(1).release(0, sem_va(0), 3));
    b.m.run(&mut lane, &launch(0));
    assert_eq!((lane.notified(), b.sems.mem.read_u32(0)), (Some(13), 0));
    let (sm, record) = tsg.fault.lock().as_ref().expect("a fault").sms[0];
    assert_eq!((record.warp_esr & 0xffff, record.pc, tsg.sm_errors.lock()[sm as usize]), (9, CODE, record));
    let other = b.m.tsg(1);
    let mut lane = b.channel(510, &other);
    b.put(1, 0x10_0000, grid(1));
    b.m.run(&mut lane, &launch(1));
    assert_eq!(lane.notified(), Some(31));
    let log = b.m.gpu.faults().concat();
    assert!(log.contains("client type: gpc, client id: gcc (0x11)"), "{log}");
}

fn threaded() -> Board {
    Board::new(GpuConfig { step: false, ..config() })
}

/// Sets a context-switch timeout that is shorter than three seconds.
fn impatient(lane: &Lane) {
    lane.hw.vitals.ctxsw_timeout_ms.store(2, std::sync::atomic::Ordering::Relaxed);
}

fn wait(what: impl Fn() -> bool) {
    while !what() {
        std::thread::yield_now();
    }
}

/// A grid that never ends causes no fault as long as no other group wants the engine. The host work of other channels
/// continues, and closing the channel ends the grid.
#[test]
fn an_endless_grid_alone() {
    let b = threaded();
    let (mut lane, mut other) = (b.channel(511, &b.m.tsg(0)), b.channel(510, &b.m.tsg(1)));
    b.load(0, &[LOOP]);
    b.put(0, 0, grid(3).release(0, sem_va(0), 3));
    lane.submit(&[release(sem_va(1), 1), launch(0)].concat());
    b.m.ring(&lane);
    wait(|| b.sems.mem.read_u32(16) == 1);
    let load = || lane.hw.tsg.gpu.load.thousandths(tegra_gpu::host_ns());
    wait(|| load() == 1000);
    for i in 1..4 {
        other.submit(&release(sem_va(2), i));
        b.m.ring(&other);
        wait(|| b.sems.mem.read_u32(32) == i);
    }
    assert!(!lane.dead());
    b.m.gpu.remove_channel(511);
    assert_eq!((lane.dead(), b.sems.mem.read_u32(0), Arc::strong_count(&lane.hw)), (false, 0, 1));
    wait(|| load() == 0);
}

/// If another group wants the engine, the group of the endless grid dies with notifier 8 after the context-switch
/// timeout, and the other group runs.
#[test]
fn an_endless_grid_makes_way() {
    let b = threaded();
    let (mut lane, mut other) = (b.channel(511, &b.m.tsg(0)), b.channel(510, &b.m.tsg(1)));
    impatient(&lane);
    b.load(0, &[LOOP]);
    b.load(64, &[EXIT]);
    b.put(0, 0, grid(3).release(0, sem_va(0), 3));
    b.put(1, 64, grid(3).release(0, sem_va(1), 4));
    lane.submit(&[release(sem_va(2), 1), launch(0)].concat());
    b.m.ring(&lane);
    wait(|| b.sems.mem.read_u32(32) == 1);
    other.submit(&launch(1));
    b.m.ring(&other);
    wait(|| b.sems.mem.read_u32(16) == 4 || other.dead());
    wait(|| lane.dead());
    assert_eq!((lane.notified(), b.sems.mem.read_u32(0)), (Some(8), 0));
    assert_eq!((other.notified(), b.sems.mem.read_u32(16)), (None, 4), "{:?}", b.m.gpu.faults());
}

/// The watchdog of a kernel-mode channel ends a grid for which no other group waits. Other groups are not harmed.
#[test]
fn a_watched_endless_grid() {
    let b = threaded();
    let mut lane = b.channel(511, &b.m.tsg(0));
    lane.hw.vitals.watchdog_ms.store(5, std::sync::atomic::Ordering::Relaxed);
    b.load(0, &[LOOP]);
    b.put(0, 0, grid(3).release(0, sem_va(0), 3));
    lane.submit(&launch(0));
    b.m.ring(&lane);
    wait(|| lane.dead());
    assert_eq!((lane.notified(), b.sems.mem.read_u32(0)), (Some(8), 0));
    assert!(b.m.gpu.faults()[0].contains("watchdog"), "{:?}", b.m.gpu.faults());
}

/// Reset and preempt return although a grid does not end. The preempted group dies when its context-switch timeout is over.
#[test]
fn reset_and_preempt() {
    for preempt in [false, true] {
        let b = threaded();
        let tsg = b.m.tsg(0);
        let mut lane = b.channel(511, &tsg);
        impatient(&lane);
        b.load(0, &[LOOP]);
        b.put(0, 0, grid(1));
        lane.submit(&[release(sem_va(0), 1), launch(0)].concat());
        b.m.ring(&lane);
        wait(|| b.sems.mem.read_u32(0) == 1);
        if preempt {
            assert!(!b.m.gpu.preempt(&tsg));
            wait(|| lane.dead());
            assert_eq!(lane.notified(), Some(8));
        } else {
            lane.hw.vitals.unserviceable.store(true, std::sync::atomic::Ordering::Release);
            b.m.gpu.reset(&tsg);
            assert_eq!(lane.notified(), None);
        }
        b.m.gpu.remove_channel(511);
    }
}

/// With modelled time, the stamps of descriptors tell how long grids take on the module, in every run.
#[test]
fn grids_take_modelled_time() {
    const FOUR_WORDS: u64 = RELEASE0_STRUCTURE_SIZE_SEMAPHORE_FOUR_WORDS as u64;
    let taken = |ctas: u64, launch_ns: u64, ramp_ns: u64| {
        let config = modelled();
        let speeds = config.speeds.map(|speeds| Speeds { launch_ns, ramp_ns, ..speeds });
        let b = Board::new(GpuConfig { speeds, ..config });
        let mut lane = b.channel(511, &b.m.tsg(0));
        b.load(0, &STORE);
        b.load(16 * STORE.len(), &[EXIT]);
        let _out = b.m.map(OUT, 4096);
        b.bank.mem.write_u64(0x160, OUT + 64);
        let stamps = [(1, 0), (ctas, 1)].map(|(ctas, slot)| {
            let four_words = grid(ctas).release(0, sem_va(slot as u64), 3).set(RELEASE0_STRUCTURE_SIZE, FOUR_WORDS);
            b.put(slot, 0, four_words);
            b.m.run(&mut lane, &launch(slot));
            assert!(!lane.dead(), "{:?}", b.m.gpu.faults());
            b.sems.mem.read_u64(16 * slot + 8)
        });
        stamps[1] - stamps[0]
    };
    let [one, many] = [1, 20_000].map(|ctas| taken(ctas, 0, 0));
    assert_eq!([1, 20_000].map(|ctas| taken(ctas, 0, 0)), [one, many]);
    // A grid of one CTA takes the front end's time, two loads and a store.
    assert!((1024..2048).contains(&one) && many > 2 * one, "{one} ns and {many} ns");
    assert_eq!(
        taken(1, 25_000, 0),
        one + 25_024,
        "the host submits a launch when the first one is done, and the clock counts in 32 ns"
    );
    let slow = taken(20_000, 0, 1_000_000_000);
    // The front end has no clock of the SMs. 1300 MHz are 4.2 times as fast as 306 MHz.
    let ratio = (slow - 1024) as f64 / (many - 1024) as f64;
    assert!((4.0..4.3).contains(&ratio), "{slow} ns at the lowest clock, {many} ns at the highest one");
}
