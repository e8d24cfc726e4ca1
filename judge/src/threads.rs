//! Programs whose calls are made by several threads at once. What the driver answered must be what the model answers in some order
//! of the calls in which the calls of each thread keep theirs.

use crate::compare::as_r35;
use crate::driver::{Driver, Running};
use crate::model::Model;
use crate::program::{Answer, Ioctl, Step};
use crate::random::Random;
use crate::spaces::ioctl;
use std::collections::BTreeMap;
use std::mem::offset_of;
use std::sync::Barrier;
use tegra_kernel::{L4t, SimConfig};
use tegrarm_abi::nvgpu::address_space::*;
use tegrarm_abi::nvgpu::channel::*;
use tegrarm_abi::nvgpu::ctrl::*;
use tegrarm_abi::nvgpu::tsg::*;
use zerocopy::FromZeros;

const PAGE: u64 = 4096;
/// The steps of the opening.
const CTRL: usize = 0;
/// A buffer that every address space has mapped, and one for each thread.
const SHARED: usize = 1;
const BUFFERS: [usize; 3] = [2, 3, 4];
const SPACES: [usize; 2] = [5, 6];
/// One for each thread.
const CHANNELS: [usize; 3] = [7, 8, 9];
const GROUPS: [usize; 2] = [10, 11];
/// How often the driver plays each program.
const ROUNDS: usize = 3;

/// A program: what comes first, what each thread does, and what is looked at in the end. Steps are numbered through.
pub struct Program {
    opening: Vec<Step>,
    threads: Vec<Vec<(usize, Step)>>,
    end: Vec<(usize, Step)>,
}

/// The answers of a program's steps.
type Answers = BTreeMap<usize, Answer>;

fn opening(random: &mut Random) -> Vec<Step> {
    let mut steps = vec![Step::Open("ctrl".into()), Step::Buffer(4096)];
    steps.extend(BUFFERS.map(|_| Step::Buffer(64 << 10)));
    for _ in SPACES {
        let mut args = nvgpu_alloc_as_args::new_zeroed();
        (args.flags, args.va_range_start, args.va_range_end) = (2, 2 << 20, 0xff_0000_0000);
        let makes = Some(offset_of!(nvgpu_alloc_as_args, as_fd));
        steps.push(Step::Ioctl(Ioctl { makes, ..ioctl(CTRL, NVGPU_GPU_IOCTL_ALLOC_AS, &args, &[]) }));
    }
    steps.extend(CHANNELS.map(|_| Step::Open("channel".into())));
    steps.extend(GROUPS.map(|_| Step::Open("tsg".into())));
    for space in SPACES {
        let args = nvgpu_as_get_sync_ro_map_args::new_zeroed();
        steps.push(Step::Ioctl(ioctl(space, NVGPU_AS_IOCTL_GET_SYNC_RO_MAP, &args, &[])));
        steps.push(Step::Ioctl(map(space, SHARED, None)));
    }
    for channel in CHANNELS {
        let space = random.pick(&SPACES);
        steps.push(Step::Ioctl(ioctl(space, NVGPU_AS_IOCTL_BIND_CHANNEL, &0u32, &[(0, channel)])));
        let mut args = nvgpu_channel_wdt_args::new_zeroed();
        args.wdt_status = NVGPU_IOCTL_CHANNEL_DISABLE_WDT;
        steps.push(Step::Ioctl(ioctl(channel, NVGPU_IOCTL_CHANNEL_WDT, &args, &[])));
        steps.push(Step::Ioctl(ioctl(channel, NVGPU_IOCTL_CHANNEL_GET_USER_SYNCPOINT, &[0u32; 4], &[])));
    }
    // The driver looks whether a buffer has a registration, and makes one, in two steps.
    for buffer in [SHARED, BUFFERS[0]] {
        steps.push(Step::Ioctl(register(buffer, NVGPU_GPU_REGISTER_BUFFER_FLAGS_MUTABLE, 0)));
    }
    if random.one_in(2) {
        steps.push(Step::Ioctl(ioctl(GROUPS[0], NVGPU_TSG_IOCTL_BIND_CHANNEL, &0u32, &[(0, CHANNELS[0])])));
    }
    steps
}

/// Maps a buffer, where the driver chooses or at an address.
fn map(on: usize, buffer: usize, address: Option<u64>) -> Ioctl {
    let mut args = nvgpu_as_map_buffer_ex_args::new_zeroed();
    (args.compr_kind, args.incompr_kind, args.page_size) = (-1, 0, 4096);
    args.flags = NVGPU_AS_MAP_BUFFER_FLAGS_CACHEABLE;
    if let Some(address) = address {
        args.flags |= NVGPU_AS_MAP_BUFFER_FLAGS_FIXED_OFFSET;
        args.offset = address;
    }
    ioctl(on, NVGPU_AS_IOCTL_MAP_BUFFER_EX, &args, &[(offset_of!(nvgpu_as_map_buffer_ex_args, dmabuf_fd), buffer)])
}

/// A call on an address space. Threads meet at few areas, and where addresses are chosen. Each maps its own buffer, at its own addresses
/// if they are named: the driver writes who owns a mapping after it has left the lock, so that a second thread which maps or unmaps the
/// same reads freed memory. Each frees its own area: the driver takes the address of an area before it enters the area in its list.
fn on_space(random: &mut Random, on: usize, thread: usize, named: bool) -> Ioctl {
    let area_of = |n: u64| (4 << 20) + 16 * PAGE * n;
    let own_area = 3 + thread as u64;
    let own = (64 << 20) + 16 * PAGE * (3 * thread as u64 + random.below(3));
    match random.below(6) {
        0 | 1 => map(on, BUFFERS[thread], named.then_some(own)),
        2 if named => {
            let mut args = nvgpu_as_unmap_buffer_args::new_zeroed();
            args.offset = own;
            ioctl(on, NVGPU_AS_IOCTL_UNMAP_BUFFER, &args, &[])
        }
        2 | 3 => {
            let mut args = nvgpu_as_alloc_space_args::new_zeroed();
            (args.pages, args.page_size) = (random.pick(&[1, 16, 32]), 4096);
            args.flags = random.pick(&[0, NVGPU_AS_ALLOC_SPACE_FLAGS_SPARSE]);
            if random.one_in(2) {
                args.flags |= NVGPU_AS_ALLOC_SPACE_FLAGS_FIXED_OFFSET;
                args.o_a_offset = area_of(random.pick(&[0, 1, 2, own_area]));
            }
            ioctl(on, NVGPU_AS_IOCTL_ALLOC_SPACE, &args, &[])
        }
        4 => {
            let mut args = nvgpu_as_free_space_args::new_zeroed();
            (args.offset, args.pages, args.page_size) = (area_of(own_area), random.pick(&[1, 16, 32]), 4096);
            ioctl(on, NVGPU_AS_IOCTL_FREE_SPACE, &args, &[])
        }
        _ => ioctl(on, NVGPU_AS_IOCTL_GET_SYNC_RO_MAP, &nvgpu_as_get_sync_ro_map_args::new_zeroed(), &[]),
    }
}

/// A call on a channel or a group.
fn on_group(random: &mut Random, thread: usize) -> Ioctl {
    let (group, channel) = (random.pick(&GROUPS), CHANNELS[thread]);
    match random.below(7) {
        0 | 1 => ioctl(group, NVGPU_TSG_IOCTL_BIND_CHANNEL, &0u32, &[(0, channel)]),
        2 => ioctl(group, NVGPU_TSG_IOCTL_UNBIND_CHANNEL, &0u32, &[(0, channel)]),
        3 => {
            let mut args = nvgpu_tsg_create_subcontext_args::new_zeroed();
            args.type_ = random.pick(&[0, 1]);
            let at = offset_of!(nvgpu_tsg_create_subcontext_args, as_fd);
            ioctl(group, NVGPU_TSG_IOCTL_CREATE_SUBCONTEXT, &args, &[(at, random.pick(&SPACES))])
        }
        4 | 5 => ioctl(group, NVGPU_IOCTL_TSG_SET_TIMESLICE, &[random.pick(&[1000u32, 2000, 999]), 0], &[]),
        _ => {
            let mut args = nvgpu_channel_setup_bind_args::new_zeroed();
            (args.num_gpfifo_entries, args.flags) = (512, 0xa);
            let fds = [
                (offset_of!(nvgpu_channel_setup_bind_args, userd_dmabuf_fd), SHARED),
                (offset_of!(nvgpu_channel_setup_bind_args, gpfifo_dmabuf_fd), BUFFERS[thread]),
            ];
            ioctl(channel, NVGPU_IOCTL_CHANNEL_SETUP_BIND, &args, &fds)
        }
    }
}

/// Registers a buffer. `comptags` says whether tags for compression are wanted.
fn register(buffer: usize, flags: u32, comptags: u8) -> Ioctl {
    let mut args = nvgpu_gpu_register_buffer_args::new_zeroed();
    (args.flags, args.comptags_alloc_control) = (flags, comptags);
    ioctl(CTRL, NVGPU_GPU_IOCTL_REGISTER_BUFFER, &args, &[(0, buffer)])
}

/// A call on the ctrl node.
fn on_ctrl(random: &mut Random) -> Ioctl {
    match random.below(5) {
        0 => {
            let mut args = nvgpu_gpu_zbc_set_table_args::new_zeroed();
            (args.type_, args.format, args.depth) = (2, 1, random.pick(&[0, 7, 8]));
            ioctl(CTRL, NVGPU_GPU_IOCTL_ZBC_SET_TABLE, &args, &[])
        }
        1 => {
            let (flags, comptags) = (random.pick(&[0, 2, 4, 6]), random.pick(&[0, 1]));
            register(random.pick(&[SHARED, BUFFERS[0]]), flags, comptags)
        }
        2 => Ioctl { makes: Some(0), ..ioctl(CTRL, NVGPU_GPU_IOCTL_OPEN_CHANNEL, &-1i32, &[]) },
        3 => {
            let args = nvgpu_gpu_open_tsg_args::new_zeroed();
            Ioctl { makes: Some(0), ..ioctl(CTRL, NVGPU_GPU_IOCTL_OPEN_TSG, &args, &[]) }
        }
        _ => ioctl(random.pick(&CHANNELS), NVGPU_IOCTL_CHANNEL_GET_USER_SYNCPOINT, &[0u32; 4], &[]),
    }
}

/// What the program looks at in the end: address spaces, channels, groups, a table of the GPU and the buffers.
fn end() -> Vec<Step> {
    let mut steps = Vec::new();
    for space in SPACES {
        let args = nvgpu_as_get_va_regions_args::new_zeroed();
        steps.push(ioctl(space, NVGPU_AS_IOCTL_GET_VA_REGIONS, &args, &[]));
        // The next address that the space chooses tells what is free.
        let mut args = nvgpu_as_alloc_space_args::new_zeroed();
        (args.pages, args.page_size) = (3, 4096);
        steps.push(ioctl(space, NVGPU_AS_IOCTL_ALLOC_SPACE, &args, &[]));
    }
    for channel in CHANNELS {
        steps.push(ioctl(channel, NVGPU_IOCTL_CHANNEL_GET_USER_SYNCPOINT, &[0u32; 4], &[]));
        steps.push(ioctl(GROUPS[1], NVGPU_TSG_IOCTL_BIND_CHANNEL, &0u32, &[(0, channel)]));
    }
    for group in GROUPS {
        steps.push(ioctl(group, NVGPU_IOCTL_TSG_GET_TIMESLICE, &[0u32; 2], &[]));
    }
    for index in 3..5 {
        let mut args = nvgpu_gpu_zbc_query_table_args::new_zeroed();
        (args.type_, args.index_size) = (2, index);
        steps.push(ioctl(CTRL, NVGPU_GPU_IOCTL_ZBC_QUERY_TABLE, &args, &[]));
    }
    for buffer in [SHARED, BUFFERS[0]] {
        steps.push(ioctl(CTRL, NVGPU_GPU_IOCTL_GET_BUFFER_INFO, &[0u32; 6], &[(0, buffer)]));
    }
    steps.into_iter().map(Step::Ioctl).collect()
}

impl Program {
    /// The program of a seed.
    pub fn new(seed: u64, l4t: L4t) -> Program {
        let program = Program::of_r36(seed);
        if !l4t.is_r35() {
            return program;
        }
        let all = |steps: Vec<(usize, Step)>| steps.into_iter().map(|(number, step)| (number, as_r35(step))).collect();
        Program {
            opening: program.opening.into_iter().map(as_r35).collect(),
            threads: program.threads.into_iter().map(all).collect(),
            end: all(program.end),
        }
    }

    fn of_r36(seed: u64) -> Program {
        let mut random = Random(seed ^ 0x7423 << 16);
        let mut opening = opening(&mut random);
        let count = random.pick(&[2, 2, 3]);
        // Each thread has a duplicate of something, which it can close.
        let shared: Vec<usize> = (0..count).map(|_| random.pick(&[SPACES[0], CHANNELS[0], GROUPS[0], CTRL])).collect();
        let copies: Vec<usize> = (0..count as usize).map(|n| opening.len() + n).collect();
        opening.extend(shared.into_iter().map(Step::Dup));
        let (view, named) = (random.below(3), random.one_in(2));
        let mut number = opening.len();
        let mut threads = Vec::new();
        for (thread, copy) in copies.into_iter().enumerate() {
            let mut steps = Vec::new();
            for _ in 0..if count == 2 { 3 } else { 2 } {
                let step = match (random.below(8), view) {
                    (0, _) => Step::Close(copy),
                    (1, _) => Step::Ioctl(on_ctrl(&mut random)),
                    (2, _) => Step::Dup(random.pick(&[SPACES[0], CHANNELS[0], GROUPS[0], CTRL])),
                    (_, 0) => {
                        let on = random.pick(&SPACES);
                        Step::Ioctl(on_space(&mut random, on, thread, named))
                    }
                    (_, 1) => Step::Ioctl(on_group(&mut random, thread)),
                    (n, _) if n % 2 == 0 => Step::Ioctl(on_space(&mut random, SPACES[0], thread, named)),
                    _ => Step::Ioctl(on_group(&mut random, thread)),
                };
                steps.push((number, step));
                number += 1;
            }
            threads.push(steps);
        }
        Program { opening, threads, end: (number..).zip(end()).collect() }
    }

    fn calls(&self) -> usize {
        self.threads.iter().map(Vec::len).sum()
    }

    /// Plays it on the driver, with its threads at once.
    fn on_driver(&self, driver: &Driver) -> (Answers, u32) {
        let mut running = driver.run();
        let mut answers: Answers = (0..).zip(&self.opening).map(|(n, step)| (n, running.step(n, step))).collect();
        driver.in_parallel(true);
        let (start, all) = (Barrier::new(self.threads.len()), &running);
        let play = |steps: &[(usize, Step)], running: &Running<'_>| -> Answers {
            start.wait();
            steps.iter().map(|(number, step)| (*number, running.beside_others(*number, step))).collect()
        };
        let play = &play;
        std::thread::scope(|scope| {
            let handles: Vec<_> = self.threads.iter().map(|steps| scope.spawn(move || play(steps, all))).collect();
            handles.into_iter().for_each(|handle| answers.extend(handle.join().expect("a thread of calls")));
        });
        driver.in_parallel(false);
        answers.extend(self.end.iter().map(|(n, step)| (*n, running.step(*n, step))));
        running.finish();
        let held = driver.held();
        driver.rewind();
        (answers, held)
    }

    /// The first step of an order in which the model answers something else, and what it answers.
    fn differs(&self, config: SimConfig, order: &[(usize, Step)], answers: &Answers) -> Option<(usize, Answer)> {
        let mut model = Model::new(config);
        let opening = (0..).zip(&self.opening).map(|(n, step)| (n, step, false));
        let middle = order.iter().map(|(n, step)| (*n, step, true));
        let end = self.end.iter().map(|(n, step)| (*n, step, false));
        let mut found = None;
        for (number, step, at_once) in opening.chain(middle).chain(end) {
            let mut answer = model.step(number, step);
            if at_once {
                answer.runs.clear();
            }
            if answer != answers[&number] {
                found = Some((number, answer));
                break;
            }
        }
        model.finish();
        found
    }

    /// Every order of the threads' steps. Those that begin with what is refused are left out.
    fn explained(&self, config: SimConfig, answers: &Answers) -> Option<Vec<(usize, Step)>> {
        let mut orders = vec![vec![]];
        // The orders are made depth first, and what the model refuses is not continued.
        let mut refused: Vec<Vec<usize>> = Vec::new();
        while let Some(order) = orders.pop() {
            let next: Vec<_> =
                self.threads.iter().filter_map(|t| t.iter().find(|s| !order.contains(*s))).cloned().collect();
            if !next.is_empty() {
                orders.extend(next.into_iter().map(|step| [order.clone(), vec![step]].concat()));
                continue;
            }
            let numbers: Vec<usize> = order.iter().map(|(number, _)| *number).collect();
            if refused.iter().any(|start| numbers.starts_with(start)) {
                continue;
            }
            match self.differs(config, &order, answers) {
                None => return Some(order),
                Some((number, _)) => {
                    let known = numbers.iter().position(|n| *n == number).map_or(numbers.len(), |at| at + 1);
                    refused.push(numbers[..known].to_vec());
                }
            }
        }
        None
    }
}

fn show(program: &Program, answers: &Answers) {
    for (number, step) in (0..).zip(&program.opening) {
        println!("  {number} {}", step.to_line());
    }
    for (thread, steps) in program.threads.iter().enumerate() {
        println!("thread {thread}");
        steps.iter().for_each(|(n, step)| println!("  {n} {}\n    {}", step.to_line(), answers[n].to_line()));
    }
    println!("then");
    program.end.iter().for_each(|(n, step)| println!("  {n} {}\n    {}", step.to_line(), answers[n].to_line()));
}

/// Compares the programs of many seeds. Returns how many calls were compared, and how many programs have answers that no order
/// explains.
pub fn compare(driver: &Driver, config: SimConfig, seeds: std::ops::Range<u64>, shown: u64) -> (usize, u64) {
    let (mut calls, mut different) = (0, 0);
    for seed in seeds {
        let program = Program::new(seed, config.l4t);
        for _ in 0..ROUNDS {
            let (answers, held) = program.on_driver(driver);
            calls += program.calls();
            let order = program.explained(config, &answers);
            if order.is_some() && held == 0 {
                continue;
            }
            different += 1;
            if different <= shown {
                println!("threads {seed}: the driver holds {held} buffers afterwards; no order of the model explains:");
                show(&program, &answers);
            }
            break;
        }
    }
    (calls, different)
}

/// Prints the program of a seed in an order that explains what the driver answered, for `answer` to answer it.
pub fn record(driver: &Driver, config: SimConfig, seed: u64) {
    let program = Program::new(seed, config.l4t);
    let (answers, _) = program.on_driver(driver);
    let Some(order) = program.explained(config, &answers) else { return };
    let numbers: Vec<usize> = (0..program.opening.len())
        .chain(order.iter().map(|(number, _)| *number))
        .chain(program.end.iter().map(|(number, _)| *number))
        .collect();
    println!("# threads {seed}");
    let steps = program.opening.iter().chain(order.iter().chain(&program.end).map(|(_, step)| step));
    for step in steps {
        let mut step = step.clone();
        step.renumber(|old| numbers.iter().position(|number| *number == old).unwrap_or(usize::MAX));
        println!("{}", step.to_line());
    }
}
