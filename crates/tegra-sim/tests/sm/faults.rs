//! Faults: the code, the address and the place that a debugger on a board would read.

use crate::kernel;
use crate::support::{Arg, Gpu, Kernel};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tegra_sim::mm::{Access, FaultKind};
use tegra_sim::sm::{Launch, SmFault, run};

/// The words of a kernel that is nothing but these instructions.
fn program(words: &[(u64, u64)]) -> Kernel {
    let mut text = String::from("registers 16\nshared 256\nstack 0\n");
    for (lo, hi) in words {
        text += &format!("{lo:016x} {hi:016x}\n");
    }
    Kernel::parse(&text)
}

/// EXIT.
const EXIT: (u64, u64) = (0x0000_0000_0000_794d, 0x000f_ea00_0380_0000);

fn warp_error(launch: &Launch) -> (u32, u64, String) {
    match run(launch) {
        Err(SmFault::Warp { record, text, .. }) => (record.warp_esr, record.pc, text),
        other => panic!("{other:?}"),
    }
}

/// Runs the `faults` kernel.
fn provoke(gpu: &mut Gpu, how: i32, at: i32, address: Arg<'_>) -> Launch {
    gpu.launch(&kernel!("faults"), [1, 1, 1], [64, 1, 1], &[address, Arg::Int(how), Arg::Int(at)])
}

/// The opcode of the instruction at a pc.
fn opcode(launch: &Launch, pc: u64) -> u16 {
    let at = (pc - launch.code) as usize;
    let code = kernel!("faults").code;
    u16::from_le_bytes([code[at], code[at + 1]]) & 0xfff
}

/// Jumps through a register, each to a place that no other instruction leads to; EXIT behind the last one.
fn leaps(count: usize) -> Kernel {
    let leap = (0x0000_0010_ff00_7949, 0x000f_ea00_0380_0000); // BRX RZ 0x10
    program(&[vec![[leap, EXIT]; count].concat(), vec![EXIT]].concat())
}

#[test]
fn code_found_while_running_counts_towards_the_budget() {
    let run = |budget| Gpu { budget, ..Gpu::default() }.run(&leaps(300), [1, 1, 1], [32, 1, 1], &[]);
    let Err(SmFault::Hang { text, .. }) = run(Some(10_000)) else { panic!("decoding was free") };
    assert!(text.contains("budget"), "{text}");
    run(None).expect("it reaches the end");
}

#[test]
fn misaligned_store() {
    let mut gpu = Gpu::default();
    let buffer = gpu.alloc(4096);
    let launch = provoke(&mut gpu, 0, 2, Arg::Ptr(&buffer));
    let (code, pc, text) = warp_error(&launch);
    assert_eq!(code, 0xf, "{text}");
    assert_eq!(opcode(&launch, pc), 0x986);
    assert!(text.contains("misaligned") && text.contains(&format!("{:#x}", buffer.va + 2)), "{text}");
}

#[test]
fn unmapped_global_memory() {
    let mut gpu = Gpu::default();
    let buffer = gpu.alloc(4096);
    let launch = provoke(&mut gpu, 0, 4096 - 128, Arg::Ptr(&buffer));
    let Err(SmFault::Mmu { fault, pc, .. }) = run(&launch) else { panic!("no MMU fault") };
    assert_eq!((fault.va, fault.access, fault.kind), (buffer.va + 4096, Access::Write, FaultKind::Pte));
    assert_eq!(opcode(&launch, pc), 0x986);
    // Lanes before the hole have stored, as far as warps go.
    assert_eq!(buffer.read::<i32>(1024)[1023], 31);
    let launch = provoke(&mut gpu, 1, 0, Arg::Address(0x5000_0000_0000));
    let Err(SmFault::Mmu { fault, .. }) = run(&launch) else { panic!("no MMU fault") };
    assert_eq!((fault.va, fault.access, fault.kind), (0x5000_0000_0000, Access::Read, FaultKind::Pde));
}

#[test]
fn read_only_memory() {
    let mut gpu = Gpu::default();
    let buffer = gpu.alloc_with(4096, false);
    let launch = provoke(&mut gpu, 0, 0, Arg::Ptr(&buffer));
    let Err(SmFault::Mmu { fault, .. }) = run(&launch) else { panic!("no MMU fault") };
    assert_eq!((fault.va, fault.access, fault.kind), (buffer.va, Access::Write, FaultKind::ReadOnly));
}

#[test]
fn shared_memory_beyond_its_end() {
    let mut gpu = Gpu::default();
    let buffer = gpu.alloc(4096);
    let (code, _, text) = warp_error(&provoke(&mut gpu, 2, 256, Arg::Ptr(&buffer)));
    assert_eq!(code, 0xe, "{text}");
    assert!(text.contains("shared"), "{text}");
}

#[test]
fn global_access_into_a_window() {
    let mut gpu = Gpu::default();
    let (code, _, text) = warp_error(&provoke(&mut gpu, 0, 0, Arg::Address(0xfe_0000_1000)));
    assert_eq!(code, 0x10, "{text}");
}

#[test]
fn trap() {
    let mut gpu = Gpu::default();
    let buffer = gpu.alloc(4096);
    let launch = provoke(&mut gpu, 4, 0, Arg::Ptr(&buffer));
    let Err(SmFault::Warp { record, text, .. }) = run(&launch) else { panic!("no trap") };
    assert_eq!((record.global_esr, record.warp_esr, opcode(&launch, record.pc)), (0x10, 0, 0x95c), "{text}");
}

#[test]
fn stack_overflow() {
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
fn too_few_registers() {
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
fn unknown_opcode_names_itself() {
    let mut gpu = Gpu::default();
    let launch = gpu.launch(&program(&[(0x0000_0000_0000_7fff, 0xfe_0000_0000), EXIT]), [1, 1, 1], [32, 1, 1], &[]);
    let (code, pc, text) = warp_error(&launch);
    assert_eq!((code, pc), (9, launch.code));
    assert!(text.contains("0xfff") && text.contains("0000000000007fff"), "{text}");
    assert!(text.contains(&format!("{pc:#x}")), "{text}");
}

#[test]
fn code_that_is_not_mapped() {
    let mut gpu = Gpu::default();
    let mut launch = gpu.launch(&program(&[EXIT]), [1, 1, 1], [32, 1, 1], &[]);
    launch.code = 0x7000_0000_0000;
    let Err(SmFault::Mmu { fault, pc, .. }) = run(&launch) else { panic!("no MMU fault") };
    assert_eq!((fault.va, fault.access), (launch.code, Access::Read));
    assert_eq!(pc, launch.code);
    launch.code += 4;
    assert_eq!(warp_error(&launch).0, 5);
}

#[test]
fn divergent_barrier_hangs() {
    let mut gpu = Gpu::default();
    let out = gpu.alloc(4096);
    let launch = gpu.launch(&kernel!("hang"), [2, 1, 1], [64, 1, 1], &[Arg::Ptr(&out)]);
    let Err(SmFault::Hang { pc, text }) = run(&launch) else { panic!("no hang") };
    assert!(text.contains("barrier"), "{text}");
    assert!(pc > launch.code && pc < launch.code + 0x400);
}

/// BRA to itself.
const LOOP: (u64, u64) = (0xffff_fff0_0000_7947, 0x000f_c000_0383_ffff);

#[test]
fn endless_loops_end() {
    let mut gpu = Gpu { budget: Some(100_000), ..Gpu::default() };
    let launch = gpu.launch(&program(&[LOOP]), [1, 1, 1], [32, 1, 1], &[]);
    let Err(SmFault::Hang { pc, text }) = run(&launch) else { panic!("no hang") };
    assert_eq!(pc, launch.code);
    assert!(text.contains("budget"), "{text}");
    let mut launch = gpu.launch(&program(&[LOOP]), [1, 1, 1], [32, 1, 1], &[]);
    let cancel = Arc::new(AtomicBool::new(false));
    launch.limits.budget = u64::MAX;
    launch.limits.cancel = Some(cancel.clone());
    let running = std::thread::spawn(move || run(&launch));
    cancel.store(true, Ordering::Relaxed);
    let Err(SmFault::Hang { text, .. }) = running.join().unwrap() else { panic!("no hang") };
    assert!(text.contains("cancelled"), "{text}");
}

/// Each is done before its first slice ends: their number is bounded all the same.
#[test]
fn endlessly_many_short_ctas_end() {
    let mut gpu = Gpu { budget: Some(10_000), ..Gpu::default() };
    let launch = gpu.launch(&program(&[EXIT]), [0x7fff_ffff, 1, 1], [32, 1, 1], &[]);
    let Err(SmFault::Hang { text, .. }) = run(&launch) else { panic!("no hang") };
    assert!(text.contains("budget"), "{text}");
}

#[test]
fn the_first_cta_that_fails_is_reported() {
    let mut gpu = Gpu { threads: 4, ..Gpu::default() };
    let buffer = gpu.alloc(64);
    let mut launch = provoke(&mut gpu, 1, 0, Arg::Address(0x5000_0000_0000));
    launch.grid = [100, 1, 1];
    let Err(SmFault::Mmu { sm, .. }) = run(&launch) else { panic!("no MMU fault") };
    assert_eq!(sm, 0);
    drop(buffer);
}
