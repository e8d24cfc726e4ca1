//! Faults have the code, the address and the place that a debugger on a board would read.

use crate::kernel;
use crate::support::{Arg, EXIT, Gpu, Kernel, program};
use sm87::{Launch, SmFault, Stopped, run};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tegra_mm::{Access, FaultKind};

fn outcome(launch: &Launch) -> SmFault {
    run(launch).expect_err("a fault").fault
}

fn warp_error(launch: &Launch) -> (u32, u64, String) {
    match outcome(launch) {
        SmFault::Warp { record, text, .. } => (record.warp_esr, record.pc, text),
        other => panic!("{other:?}"),
    }
}

/// Runs the `faults` kernel.
fn provoke(gpu: &mut Gpu, how: i32, at: i32, address: Arg<'_>) -> Launch {
    gpu.launch(&kernel!("faults"), [1, 1, 1], [64, 1, 1], &[address, Arg::Int(how), Arg::Int(at)])
}

/// The opcode of the instruction at an address.
fn opcode(launch: &Launch, pc: u64) -> u16 {
    let at = (pc - launch.code) as usize;
    let code = kernel!("faults").code;
    u16::from_le_bytes([code[at], code[at + 1]]) & 0xfff
}

/// Jumps through a register. Each goes to a place to which no other instruction leads. EXIT stands behind the last one.
fn leaps(count: usize) -> Kernel {
    let leap = (0x0000_0010_ff00_7949, 0x000f_ea00_0380_0000); // BRX RZ 0x10
    program(&[vec![[leap, EXIT]; count].concat(), vec![EXIT]].concat())
}

#[test]
fn code_found_while_running_counts_towards_the_budget() {
    let run = |budget| Gpu { budget, ..Gpu::default() }.run(&leaps(300), [1, 1, 1], [32, 1, 1], &[]);
    let Err(Stopped { fault: SmFault::Hang { text, .. }, .. }) = run(Some(10_000)) else { panic!("decoding was free") };
    assert!(text.contains("budget"), "{text}");
    run(None).expect("it reaches the end");
}

#[test]
fn section_7_9_misaligned_store() {
    let mut gpu = Gpu::default();
    let buffer = gpu.alloc(4096);
    let launch = provoke(&mut gpu, 0, 2, Arg::Ptr(&buffer));
    let (code, pc, text) = warp_error(&launch);
    assert_eq!(code, 0xf, "{text}");
    assert_eq!(opcode(&launch, pc), 0x986);
    assert!(text.contains("misaligned") && text.contains(&format!("{:#x}", buffer.va + 2)), "{text}");
}

#[test]
fn section_7_9_unmapped_global_memory() {
    let mut gpu = Gpu::default();
    let buffer = gpu.alloc(4096);
    let launch = provoke(&mut gpu, 0, 4096 - 128, Arg::Ptr(&buffer));
    let SmFault::Mmu { fault, record, .. } = outcome(&launch) else { panic!("no MMU fault") };
    assert_eq!((fault.va, fault.access, fault.kind), (buffer.va + 4096, Access::Write, FaultKind::Pte));
    assert_eq!((opcode(&launch, record.pc), record.warp_esr, record.global_esr), (0x986, 0x20, 0));
    // The lanes before the unmapped page have stored their values, for all warps that came that far.
    assert_eq!(buffer.read::<i32>(1024)[1023], 31);
    let launch = provoke(&mut gpu, 1, 0, Arg::Address(0x5000_0000_0000));
    let SmFault::Mmu { fault, .. } = outcome(&launch) else { panic!("no MMU fault") };
    assert_eq!((fault.va, fault.access, fault.kind), (0x5000_0000_0000, Access::Read, FaultKind::Pde));
}

#[test]
fn section_7_9_read_only_memory() {
    let mut gpu = Gpu::default();
    let buffer = gpu.alloc_with(4096, false);
    let launch = provoke(&mut gpu, 0, 0, Arg::Ptr(&buffer));
    let SmFault::Mmu { fault, .. } = outcome(&launch) else { panic!("no MMU fault") };
    assert_eq!((fault.va, fault.access, fault.kind), (buffer.va, Access::Write, FaultKind::ReadOnly));
}

#[test]
fn section_7_6_shared_memory_beyond_its_end() {
    let mut gpu = Gpu::default();
    let buffer = gpu.alloc(4096);
    let (code, _, text) = warp_error(&provoke(&mut gpu, 2, 256, Arg::Ptr(&buffer)));
    assert_eq!(code, 0xe, "{text}");
    assert!(text.contains("shared"), "{text}");
}

#[test]
fn section_7_5_global_access_into_a_window() {
    let mut gpu = Gpu::default();
    let (code, _, text) = warp_error(&provoke(&mut gpu, 0, 0, Arg::Address(0xfe_0000_1000)));
    assert_eq!(code, 0x10, "{text}");
}

#[test]
fn section_7_9_trap() {
    let mut gpu = Gpu::default();
    let buffer = gpu.alloc(4096);
    let launch = provoke(&mut gpu, 4, 0, Arg::Ptr(&buffer));
    let SmFault::Warp { record, text, .. } = outcome(&launch) else { panic!("no trap") };
    assert_eq!((record.global_esr, record.warp_esr, opcode(&launch, record.pc)), (0x10, 0, 0x95c), "{text}");
}

#[test]
fn section_7_7_stack_overflow() {
    let mut gpu = Gpu::default();
    let out = gpu.alloc(4096);
    let mut kernel = kernel!("fibonacci");
    kernel.stack = 32;
    let launch = gpu.launch(&kernel, [1, 1, 1], [64, 1, 1], &[Arg::Ptr(&out)]);
    let (code, _, text) = warp_error(&launch);
    assert_eq!(code, 0xe, "{text}");
    assert!(text.contains("stack"), "{text}");
}

#[test]
fn section_7_9_too_few_registers() {
    let mut gpu = Gpu::default();
    let out = gpu.alloc(4096);
    let mut kernel = kernel!("fibonacci");
    kernel.stack = 4096;
    kernel.registers = 8;
    let launch = gpu.launch(&kernel, [1, 1, 1], [64, 1, 1], &[Arg::Ptr(&out)]);
    let (code, _, text) = warp_error(&launch);
    assert_eq!(code, 0xd, "{text}");
}

#[test]
fn section_7_9_unknown_opcode_names_itself() {
    let mut gpu = Gpu::default();
    let launch = gpu.launch(&program(&[(0x0000_0000_0000_7fff, 0xfe_0000_0000), EXIT]), [1, 1, 1], [32, 1, 1], &[]);
    let (code, pc, text) = warp_error(&launch);
    assert_eq!((code, pc), (9, launch.code));
    assert!(text.contains("0xfff") && text.contains("0000000000007fff"), "{text}");
    assert!(text.contains(&format!("{pc:#x}")), "{text}");
}

#[test]
fn section_7_9_code_that_is_not_mapped() {
    let mut gpu = Gpu::default();
    let mut launch = gpu.launch(&program(&[EXIT]), [1, 1, 1], [32, 1, 1], &[]);
    launch.code = 0x7000_0000_0000;
    let SmFault::Mmu { fault, record, .. } = outcome(&launch) else { panic!("no MMU fault") };
    assert_eq!((fault.va, fault.access), (launch.code, Access::Read));
    assert_eq!(record.pc, launch.code);
    launch.code = 1 << 60;
    let SmFault::Mmu { fault, .. } = outcome(&launch) else { panic!("no MMU fault") };
    assert_eq!(fault.kind, FaultKind::VaLimit);
    launch.code += 4;
    assert_eq!(warp_error(&launch).0, 5);
}

#[test]
fn divergent_barrier_hangs() {
    let mut gpu = Gpu::default();
    let out = gpu.alloc(4096);
    let launch = gpu.launch(&kernel!("hang"), [2, 1, 1], [64, 1, 1], &[Arg::Ptr(&out)]);
    let SmFault::Hang { pc, text } = outcome(&launch) else { panic!("no hang") };
    assert!(text.contains("barrier"), "{text}");
    assert!(pc > launch.code && pc < launch.code + 0x400);
}

/// A branch to itself.
const LOOP: (u64, u64) = (0xffff_fff0_0000_7947, 0x000f_c000_0383_ffff);

#[test]
fn endless_loops_end() {
    let mut gpu = Gpu { budget: Some(100_000), ..Gpu::default() };
    let launch = gpu.launch(&program(&[LOOP]), [1, 1, 1], [32, 1, 1], &[]);
    let SmFault::Hang { pc, text } = outcome(&launch) else { panic!("no hang") };
    assert_eq!(pc, launch.code);
    assert!(text.contains("budget"), "{text}");
    let mut launch = gpu.launch(&program(&[LOOP]), [1, 1, 1], [32, 1, 1], &[]);
    let cancel = Arc::new(AtomicBool::new(false));
    launch.limits.budget = u64::MAX;
    launch.limits.cancel = Some(cancel.clone());
    let running = std::thread::spawn(move || outcome(&launch));
    cancel.store(true, Ordering::Relaxed);
    let SmFault::Hang { text, .. } = running.join().unwrap() else { panic!("no hang") };
    assert!(text.contains("cancelled"), "{text}");
}

#[test]
fn a_launch_that_is_cancelled_before_it_begins_executes_nothing() {
    let mut gpu = Gpu::default();
    let buffer = gpu.upload(&[7u32; 64]);
    let mut launch = provoke(&mut gpu, 0, 0, Arg::Ptr(&buffer));
    launch.limits.cancel = Some(Arc::new(AtomicBool::new(true)));
    let SmFault::Hang { text, .. } = outcome(&launch) else { panic!("no hang") };
    assert!(text.contains("cancelled"), "{text}");
    assert_eq!(buffer.read::<u32>(64), [7; 64]);
}

/// Each CTA ends before its first slice does. The number of CTAs that run is limited all the same.
#[test]
fn endlessly_many_short_ctas_end() {
    let mut gpu = Gpu { budget: Some(10_000), ..Gpu::default() };
    let launch = gpu.launch(&program(&[EXIT]), [0x7fff_ffff, 1, 1], [32, 1, 1], &[]);
    let SmFault::Hang { text, .. } = outcome(&launch) else { panic!("no hang") };
    assert!(text.contains("budget"), "{text}");
}

#[test]
fn the_first_cta_that_fails_is_reported() {
    let mut gpu = Gpu { threads: 4, ..Gpu::default() };
    let buffer = gpu.alloc(64);
    let mut launch = provoke(&mut gpu, 1, 0, Arg::Address(0x5000_0000_0000));
    launch.grid = [100, 1, 1];
    let SmFault::Mmu { sm, .. } = outcome(&launch) else { panic!("no MMU fault") };
    assert_eq!(sm, 0);
    drop(buffer);
}

/// However many threads share a large grid, it reports what the first CTA that fails has done, and all CTAs before that one are executed.
#[test]
fn a_large_grid_fails_at_the_same_cta_on_any_number_of_threads() {
    let many = [(7, 4096); 20].into_iter().chain([(7, 128); 20]);
    for (threads, good) in [(1, 4096), (2, 4096), (3, 128), (2, 7936), (5, 8064)].into_iter().chain(many) {
        let mut gpu = Gpu { threads, ..Gpu::default() };
        let (out, input) = (gpu.alloc(4 << 20), gpu.upload(&vec![7u32; 128 * good]));
        let launch =
            gpu.launch(&kernel!("tinygrad_copy"), [8192, 1, 1], [32, 1, 1], &[Arg::Ptr(&out), Arg::Ptr(&input)]);
        let SmFault::Mmu { fault, sm, .. } = outcome(&launch) else { panic!("no MMU fault") };
        assert_eq!((fault.va, sm), (input.va + 512 * good as u64, good as u32 % 16), "{threads} threads");
        assert_eq!(out.read::<u32>(128 * good), vec![7; 128 * good], "{threads} threads");
    }
}

/// The records of all SMs that stopped. The reported one comes first.
fn records(launch: &Launch) -> Vec<(u32, u32, u32)> {
    let stopped = run(launch).expect_err("a fault");
    let first = stopped.fault.record().expect("an exception");
    std::iter::once(first).chain(stopped.others).map(|(sm, r)| (sm, r.global_esr, r.warp_esr)).collect()
}

/// The error registers of the SMs show what they do until the kernel learns of the first error: more warps of the same
/// CTA, the next CTA of the same SM, and the CTAs of other SMs. The result is the same with any number of host threads.
#[test]
fn section_7_9_several_warps_err_before_the_grid_is_stopped() {
    for threads in [1, 2, 7] {
        let mut gpu = Gpu { threads, ..Gpu::default() };
        let buffer = gpu.alloc(4096);
        let mut launch = |grid: u32, block: u32, sms: u32, address: Arg<'_>, how: i32, at: i32| {
            let launch = provoke(&mut gpu, how, at, address);
            records(&Launch { grid: [grid, 1, 1], block: [block, 1, 1], sm_count: sms, ..launch })
        };
        let window = || Arg::Address(0xfe_0000_1000);
        assert_eq!(launch(1, 32, 16, window(), 0, 0), [(0, 0, 0x10)], "one warp");
        assert_eq!(launch(1, 64, 16, window(), 0, 0), [(0, 4, 0x10)], "two warps");
        assert_eq!(launch(3, 32, 16, window(), 0, 0), [(0, 0, 0x10), (1, 0, 0x10), (2, 0, 0x10)], "three SMs");
        assert_eq!(launch(40, 32, 2, window(), 0, 0), [(0, 4, 0x10), (1, 0, 0x10)], "twenty warps for each of two SMs");
        assert_eq!(launch(40, 64, 1, window(), 0, 0), [(0, 4, 0x10)]);
        assert_eq!(launch(1, 64, 16, Arg::Address(0x5000_0000_0000), 1, 0), [(0, 4, 0x20)], "an MMU fault");
        // 64 threads store a word each, and those of the second warp lie behind the buffer.
        assert_eq!(launch(1, 64, 16, Arg::Ptr(&buffer), 0, 4096 - 128), [(0, 0, 0x20)], "one warp of two");
        // A trap is not an error of a warp.
        assert_eq!(launch(2, 64, 1, Arg::Ptr(&buffer), 4, 0), [(0, 0x10, 0)], "a trap");
    }
}
