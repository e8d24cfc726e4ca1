//! The model of a grid's time. The kernels are limited by one thing each, for which NVIDIA has published how fast it is.

#[path = "../../sm87/tests/sm/support.rs"]
#[allow(dead_code, reason = "the tests of the engine use more of it")]
mod support;

use sm87::observe::access::{self, Memory};
use sm87::observe::{Chosen, CtaObserver, Fetch, Flow, Image, Observer, Step};
use sm87::{Launch, Limits, Word, run_observed};
use sm87_model::{Accesses, Counters, Estimate, Machine, Model, Rows, Stall, Unit};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use support::{Arg, Gpu, Kernel, Noise};

/// The Jetson AGX Orin 64 GB.
const ORIN: Machine =
    Machine { hz: 1_300_000_000, dram_bytes_per_second: 204_800_000_000, l2_bytes: 4 << 20, l2_slices: 8 };
/// Its multiplications and additions of floats in a second, together.
const PEAK: f64 = 2048.0 * 2.0 * 1.3e9;

/// The estimate of a launch, which is the same if the instructions that the model does not look at are machine code.
fn estimated(launch: Launch) -> Estimate {
    let [interpreted, translated] = [u64::MAX, 0].map(|translated_after| {
        let launch = Launch { limits: Limits { translated_after, ..launch.limits.clone() }, ..launch.clone() };
        let model = Model::new(ORIN, &launch);
        run_observed(&launch, &[&model]).expect("no fault");
        model.estimate().expect("the launch has ended")
    });
    assert_eq!(interpreted, translated);
    translated
}

/// The same with a profile, which changes no estimate.
fn noted(launch: Launch) -> Rows {
    let estimate = estimated(launch.clone());
    let model = Model::noting(ORIN, &launch);
    let stats = run_observed(&launch, &[&model]).expect("no fault");
    assert_eq!(model.estimate(), Some(estimate));
    let rows = model.rows();
    // The model does not see a guarded branch that control comes to by another one, if no lane takes it.
    let (issued, all) = (issued(&rows), stats.warp_instructions);
    assert!(issued <= all && issued * 100 >= all * 99, "{issued} of {all}");
    assert_eq!(rows.values().map(|(_, counters)| counters.dram_bytes).sum::<u64>(), estimate.dram_bytes);
    rows
}

/// The instructions of warps that were noted.
fn issued(rows: &Rows) -> u64 {
    rows.values().map(|(_, counters)| counters.issued).sum()
}

/// What was counted at instructions that access memory of one kind.
fn accesses(rows: &Rows, of: fn(&Counters) -> &Accesses) -> Vec<(u64, u64, u64)> {
    let counted = rows.values().map(|(_, counters)| of(counters)).filter(|accesses| accesses.requests > 0);
    counted.map(|accesses| (accesses.requests, accesses.taken, accesses.least)).collect()
}

/// Runs a kernel whose first parameter is a buffer of as many floats as the grid has threads.
fn of(kernel: &Kernel, grid: u32, block: u32, parameters: &[i32]) -> Estimate {
    let mut gpu = Gpu::default();
    let out = gpu.alloc(4 * (grid * block) as usize);
    let ints = parameters.iter().map(|&x| Arg::Int(x));
    let args: Vec<_> = std::iter::once(Arg::Ptr(&out)).chain(ints).collect();
    let launch = gpu.launch(kernel, [grid, 1, 1], [block, 1, 1], &args);
    estimated(launch)
}

fn float(x: f32) -> i32 {
    x.to_bits() as i32
}

/// A launch that loads 2^18 floats that lie so many words apart, and stores them without gaps.
fn strided_launch(gpu: &mut Gpu, stride: i32) -> Launch {
    let threads = 1 << 18;
    let (from, to) = (gpu.alloc(4 * threads * stride as usize), gpu.alloc(4 * threads));
    let args = [Arg::Ptr(&from), Arg::Ptr(&to), Arg::Int(stride)];
    gpu.launch(&kernel!("model_strided"), [threads as u32 / 256, 1, 1], [256, 1, 1], &args)
}

fn strided(stride: i32) -> Estimate {
    estimated(strided_launch(&mut Gpu::default(), stride))
}

#[test]
fn a_profile_counts_sectors_at_their_instructions() {
    let warps = 1 << 13;
    let rows = noted(strided_launch(&mut Gpu::default(), 8));
    assert_eq!(accesses(&rows, |c| &c.global), [(warps, 32 * warps, 4 * warps), (warps, 4 * warps, 4 * warps)]);
    let waits = rows.values().map(|(_, counters)| counters.waited[Stall::Memory as usize]);
    assert!(waits.max() > Some(200 * warps), "the store waits for the load");
    assert!(rows.values().all(|(_, counters)| counters.lanes == 32 * counters.issued));
}

#[test]
fn a_profile_counts_passes_through_banks_and_waits_at_barriers() {
    let launch = |gpu: &mut Gpu, kernel: &Kernel, grid: u32, block: u32, parameters: &[i32]| {
        let out = gpu.alloc(4 * (grid * block) as usize);
        let ints = parameters.iter().map(|&x| Arg::Int(x));
        let args: Vec<_> = std::iter::once(Arg::Ptr(&out)).chain(ints).collect();
        gpu.launch(kernel, [grid, 1, 1], [block, 1, 1], &args)
    };
    let mut gpu = Gpu::default();
    let banks = noted(launch(&mut gpu, &kernel!("model_banks"), 2, 256, &[8, 10]));
    let conflicts = accesses(&banks, |c| &c.shared);
    assert!(
        conflicts.iter().any(|(requests, taken, least)| (*taken, *least) == (8 * requests, *requests)),
        "{conflicts:?}"
    );
    let late = noted(launch(&mut gpu, &kernel!("model_barrier"), 1, 128, &[float(0.5), 40, 1000]));
    let waited: u64 = late.values().map(|(_, counters)| counters.waited[Stall::Barrier as usize]).sum();
    // Three of four warps wait in each of 40 rounds for one with a chain of 1000 products of four cycles.
    assert!((480_000..780_000).contains(&waited), "{waited} cycles");
}

#[test]
fn neighbouring_loads_take_the_bandwidth_and_others_what_they_waste() {
    let (near, far) = (strided(1), strided(8));
    assert_eq!((near.dram_bytes, far.dram_bytes), (2 << 20, 9 << 20), "a sector has eight words");
    assert_eq!((near.bound, far.bound), (Unit::Dram, Unit::Dram));
    for estimate in [near, far] {
        let rate = estimate.dram_bytes as f64 / estimate.ns as f64;
        assert!(rate > 0.7 * 204.8 && rate <= 0.9 * 204.8, "{rate} GB/s: {estimate:?}");
    }
}

#[test]
fn words_of_one_bank_take_their_turns() {
    let times = [1, 2, 8, 32].map(|stride| of(&kernel!("model_banks"), 16, 1024, &[stride, 1000]));
    assert!(times[2].bound == Unit::LoadStore && times[3].bound == Unit::LoadStore, "{times:?}");
    let ratio = times[3].cycles as f64 / times[2].cycles as f64;
    assert!((3.9..4.1).contains(&ratio), "32 of a bank to 8 of a bank: {ratio}");
    assert!(times[0].cycles < times[1].cycles && times[1].cycles < times[2].cycles, "{times:?}");
    let odd = of(&kernel!("model_banks"), 16, 1024, &[33, 1000]);
    assert_eq!(odd.cycles, times[0].cycles, "a row with one word more has no conflict");
}

/// A product of floats for each thread and round, times 128: the part of the peak that is reached.
fn part_of_peak(kernel: &Kernel, grid: u32, block: u32) -> f64 {
    let rounds = 100;
    let estimate = of(kernel, grid, block, &[float(0.5), float(1.0), rounds]);
    let operations = 2.0 * 128.0 * f64::from(rounds as u32 * grid * block);
    operations / (estimate.ns as f64 * 1e-9) / PEAK
}

#[test]
fn independent_products_reach_the_peak_and_a_chain_does_not() {
    let full = part_of_peak(&kernel!("model_products"), 16 * 3, 512);
    assert!(full > 0.85 && full <= 1.0, "{full} of the peak");
    // A product takes four cycles, and each of the four schedulers has one warp.
    let chain = part_of_peak(&kernel!("model_chain"), 16, 128);
    assert!(chain > 0.2 && chain <= 0.25, "{chain} of the peak");
    let one_sm = part_of_peak(&kernel!("model_products"), 1, 512);
    assert!(one_sm > 0.85 / 16.0 && one_sm <= 1.0 / 16.0, "{one_sm} of the peak");
}

#[test]
fn an_sm_holds_as_many_ctas_as_it_has_room_for() {
    // The grid has three CTAs of four warps for each SM, and a chain leaves most slots empty.
    let launch = |gpu: &mut Gpu, shared_bytes| {
        let out = gpu.alloc(4 * 48 * 512);
        let args = [Arg::Ptr(&out), Arg::Int(float(0.5)), Arg::Int(float(1.0)), Arg::Int(20)];
        let launch = gpu.launch(&kernel!("model_chain"), [48, 1, 1], [128, 1, 1], &args);
        Launch { shared_bytes, ..launch }
    };
    let mut gpu = Gpu::default();
    let [all, one] = [0, 160 << 10].map(|shared| estimated(launch(&mut gpu, shared)));
    let ratio = one.cycles as f64 / all.cycles as f64;
    assert!((2.4..3.1).contains(&ratio), "one after another takes {ratio} times as long");
    let many = Launch { registers: 255, ..launch(&mut gpu, 0) };
    let two = estimated(Launch { block: [512, 1, 1], grid: [32, 1, 1], ..many.clone() });
    let half = estimated(Launch { block: [512, 1, 1], grid: [16, 1, 1], ..many });
    assert!(two.cycles > half.cycles * 19 / 10, "512 threads with 255 registers fill an SM: {two:?} {half:?}");
}

/// A warp of sm_87 executes a prologue if UR2 is zero. On a board an earlier warp has set it.
#[test]
fn the_prologue_takes_no_time() {
    let kernel = kernel!("model_products");
    let mut without = kernel!("model_products");
    // The branch over it is taken always.
    assert_eq!(without.code[16..18], [0x47, 0x09]);
    without.code[17] = 0x79;
    let of = |kernel: &Kernel| of(kernel, 16, 512, &[float(0.5), float(1.0), 3]);
    assert_eq!(of(&kernel), of(&without));
}

#[test]
fn barriers_wait_for_the_last_warp() {
    let [alike, late] = [0, 1000].map(|late| of(&kernel!("model_barrier"), 1, 128, &[float(0.5), 40, late]));
    assert_eq!(late.bound, Unit::Latency);
    // Each of 40 rounds has one warp with a chain of 1000 products of four cycles.
    let cycles = late.cycles - alike.cycles;
    assert!((160_000..260_000).contains(&cycles), "{cycles} cycles more");
}

/// A kernel that sleeps takes as long as the time that it saw, in nanoseconds and not in cycles.
#[test]
fn a_grid_takes_at_least_as_long_as_its_clocks_showed() {
    const NAP: i32 = 50_000;
    let mut gpu = Gpu::default();
    let out = gpu.alloc(32 * 32);
    let args = [Arg::Ptr(&out), Arg::Int(1), Arg::Int(NAP)];
    let estimate = estimated(gpu.launch(&kernel!("clocks"), [1, 1, 1], [32, 1, 1], &args));
    let slept = out.read::<i64>(4)[1] as u64;
    assert!(slept >= NAP as u64 / 2 && estimate.ns >= slept, "it slept {slept} ns: {estimate:?}");
}

/// A product of matrices of 256 x 256 as tinygrad wrote it.
fn product(kernel: &Kernel, element: usize, (grid, block): ([u32; 3], [u32; 3]), threads: usize) -> Estimate {
    let mut gpu = Gpu { threads, ..Gpu::default() };
    let buffers = [(); 3].map(|()| gpu.alloc(element * 256 * 256));
    let launch = gpu.launch(kernel, grid, block, &[0, 1, 2].map(|i| Arg::Ptr(&buffers[i])));
    estimated(launch)
}

#[test]
fn tensor_cores_are_faster_and_neither_passes_its_peak() {
    let single = product(&kernel!("tinygrad_gemm_256"), 4, ([4, 8, 1], [8, 16, 1]), 1);
    let half = product(&kernel!("tinygrad_half_256"), 2, ([2, 4, 1], [32, 4, 1]), 1);
    assert!(half.cycles < single.cycles, "{half:?} {single:?}");
    let rate = |estimate: Estimate| 2.0 * f64::from(256 * 256 * 256) / (estimate.ns as f64 * 1e-9);
    assert!(rate(single) < PEAK && rate(half) < 8.0 * PEAK, "{single:?} {half:?}");
}

#[test]
fn the_numbers_are_the_same_in_every_run() {
    let run = |threads| product(&kernel!("tinygrad_gemm_256"), 4, ([4, 8, 1], [8, 16, 1]), threads);
    let first = run(1);
    assert!([1, 2, 8, 2].into_iter().all(|threads| run(threads) == first));
}

#[test]
fn results_and_counts_are_those_without_a_model() {
    let mut gpu = Gpu::default();
    let buffers = [(); 2].map(|()| gpu.alloc(4 * 48 * 512));
    let stats = [(0, None), (1, Some(ORIN))].map(|(i, machine)| {
        let args = [Arg::Ptr(&buffers[i]), Arg::Int(float(0.5)), Arg::Int(float(1.0)), Arg::Int(3)];
        let launch = gpu.launch(&kernel!("model_products"), [48, 1, 1], [512, 1, 1], &args);
        let launch = Launch { limits: Limits { threads: 1, ..launch.limits.clone() }, ..launch };
        let model = machine.map(|machine| Model::new(machine, &launch));
        let observers: Vec<&dyn Observer> = model.iter().map(|model| model as &dyn Observer).collect();
        let stats = run_observed(&launch, &observers).expect("no fault");
        assert_eq!(model.and_then(|model| model.estimate()).is_some(), machine.is_some());
        stats
    });
    assert_eq!(stats[0].warp_instructions, stats[1].warp_instructions);
    assert_eq!(stats[0].thread_instructions, stats[1].thread_instructions);
    let [a, b] = buffers.map(|buffer| buffer.read::<u32>(48 * 512));
    assert_eq!(a, b);
}

/// Each SM holds one CTA of these, and the first CTA waits for the last one. If all that are started wait, others are started.
#[test]
fn ctas_may_wait_for_ctas_for_which_the_gpu_has_no_room_yet() {
    let mut gpu = Gpu { budget: Some(50_000_000), ..Gpu::default() };
    let (flag, out) = (gpu.alloc(4), gpu.alloc(4 * 40));
    let launch = gpu.launch(&kernel!("later_cta"), [40, 1, 1], [1, 1, 1], &[Arg::Ptr(&flag), Arg::Ptr(&out)]);
    for sms in [1, 16] {
        let launch = Launch { shared_bytes: 160 << 10, sm_count: sms, ..launch.clone() };
        let model = Model::new(ORIN, &launch);
        run_observed(&launch, &[&model]).expect("no fault");
        assert_eq!((out.read::<u32>(1), model.estimate().is_some()), (vec![40], true));
        assert!(flag.backing.write(0, &[0; 4]) && out.backing.write(0, &[0; 4]));
    }
}

#[test]
fn far_functions_take_as_long_as_near_ones() {
    let took = |apart| {
        let mut gpu = Gpu::default();
        let out = gpu.alloc(4 * 64);
        let estimate = estimated(gpu.calls(&out, apart, 4));
        (estimate.ns, estimate.cycles)
    };
    let near = took(8192);
    assert_eq!([took(5 << 20), took(3 << 30)], [near; 2]);
}

/// Looks at every access to memory when it is executed, and counts the sectors of global memory of each instruction one by one.
#[derive(Default)]
struct Sectors(Mutex<BTreeMap<i64, (u64, u64)>>);

impl Observer for Sectors {
    fn choose(&self, image: &Image, _: &mut Fetch<'_>) -> Chosen {
        let accesses = |at: u32| image.row(at).is_some_and(|row| row.effects.memory().is_some());
        Chosen { which: (0..image.len()).map(accesses).collect(), is_narrow: true, notes: Arc::new(()) }
    }

    fn ctas<'a>(&'a self, _: &Launch, _: &Image) -> Box<dyn CtaObserver + 'a> {
        Box::new(SectorsOfCtas(self))
    }

    fn ends(&self, _: u64) {}
}

struct SectorsOfCtas<'a>(&'a Sectors);

impl CtaObserver for SectorsOfCtas<'_> {
    fn begins(&mut self, _: u32) {}

    fn step(&mut self, step: &mut Step<'_, '_>) -> Flow {
        let ((w, env, u), mut found) = (step.parts(), Vec::new());
        let memory = env.image().row(u.at()).and_then(|row| row.effects.memory()).expect("it was chosen");
        access::find(&mut found, w, env, u, &memory.shape(Word(env.image().word(u.at()))), step.exec());
        let global = found.iter().filter(|access| access.memory == Memory::Global);
        let sectors: BTreeSet<u64> =
            global.flat_map(|access| access.at / 32..=(access.at + u64::from(access.len) - 1) / 32).collect();
        if !sectors.is_empty() {
            let mut counts = self.0.0.lock().expect("nobody panics");
            let (requests, taken) = counts.entry(env.image().place(u.at()).expect("it is decoded")).or_default();
            (*requests, *taken) = (*requests + 1, *taken + sectors.len() as u64);
        }
        step.execute()
    }
}

/// The model finds the sectors of accesses, for which it looks at several of them at once, as somebody finds them who looks at each access.
fn has_sectors_of_each_access(launch: Launch) {
    let (rows, counted) = (noted(launch.clone()), Sectors::default());
    let stats = run_observed(&launch, &[&counted]).expect("no fault");
    assert_eq!(issued(&rows), stats.warp_instructions);
    let global = rows.iter().map(|(place, (_, counters))| (*place, (counters.global.requests, counters.global.taken)));
    assert_eq!(
        global.filter(|(_, counts)| counts.0 > 0).collect::<BTreeMap<_, _>>(),
        *counted.0.lock().expect("nobody panics")
    );
}

/// The instructions of which random programs are made: R2 and R3 are an address, R4 is the number of the thread, and R5 is 4.
fn instruction(noise: &mut Noise) -> (u64, u64) {
    let random = noise.next() >> 8;
    let (guard, offset) = ([7, 7, 7, 7, 0, 8][random as usize % 6] << 12, (random >> 8) % 32 * 16);
    match (random >> 16) % 16 {
        // LDG.E R6 and LDG.E.128 R8, [R2.64+offset].
        0..=4 => (offset << 40 | 0x0004_0206_0981 | guard, 0x000e_a200_0c1e_1900),
        5..=7 => (offset << 40 | 0x0004_0208_0981 | guard, 0x000e_a200_0c1e_1d00),
        // STG.E [R2.64+offset], R10, which is 0.
        8 | 9 => (offset << 40 | 0x000a_0200_0986 | guard, 0x000f_e200_0c10_1904),
        // IADD3 R2, R2, offset, RZ.
        10 | 11 => (offset << 32 | 0x0202_0810 | guard, 0x000f_e400_07ff_e0ff),
        // ISETP.NE.AND P0, PT, R4, number, PT.
        12 => (((random >> 24) % 64) << 32 | 0x0400_780c, 0x000f_da00_03f0_5270),
        // IMAD.WIDE R2, R6, R5, c[0x0][0x160], where R6 is 0.
        13 => (0x5800_0602_7625, 0x000f_cc00_078e_0205),
        // FADD R9, R7, R7.
        _ => (0x0007_0709_7221, 0x004f_ca00_0000_0000),
    }
}

#[test]
fn accesses_that_are_looked_at_together_are_those_that_are_executed() {
    let mut gpu = Gpu::default();
    has_sectors_of_each_access(strided_launch(&mut gpu, 3));
    let buffers = [(); 3].map(|()| gpu.alloc(4 * 128 * 128));
    let args = [0, 1, 2].map(|i| Arg::Ptr(&buffers[i]));
    has_sectors_of_each_access(gpu.launch(&kernel!("tinygrad_gemm_128"), [2, 4, 1], [8, 16, 1], &args));
    let beginning = kernel!("model_strided").code[..0x1c0].to_vec();
    let mut noise = Noise(1);
    for _ in 0..60 {
        let mut kernel = Kernel { registers: 16, ..kernel!("model_strided") };
        kernel.code = beginning.clone();
        let middle = (0..30).map(|_| instruction(&mut noise));
        for (low, high) in middle.chain([(0x0000_0000_0000_794d, 0x000f_ea00_0380_0000)]) {
            kernel.code.extend([low, high].into_iter().flat_map(u64::to_le_bytes));
        }
        let buffer = gpu.alloc(1 << 15);
        let args = [Arg::Ptr(&buffer), Arg::Ptr(&buffer), Arg::Int(4)];
        has_sectors_of_each_access(gpu.launch(&kernel, [2, 1, 1], [64, 1, 1], &args));
    }
}
