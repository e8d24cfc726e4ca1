//! Code that is far away from its kernel: in other modules, and in libraries. Jumps into the middle of an instruction, which has 16 bytes, are
//! refused where they stand.

use crate::support::code::{BRA, CALL_ABSOLUTE, CALL_RELATIVE, INDEX, RETURN_R20, STORE, THREAD, address, jump, mov};
use crate::support::{BASE, EXIT, Gpu, program};
use sm87::{Launch, SmFault, run};

/// A little more than what an image of one piece could reach, and more than 32 bits have.
const APART: [u64; 3] = [5 << 20, 3 << 30, 9 << 30];

/// Whether 64 threads have stored what [`Gpu::calls`] promises.
fn is_called(found: &[u32]) -> bool {
    found.iter().enumerate().all(|(thread, &x)| x == Gpu::CALLED[usize::from(thread > 15)])
}

#[test]
fn functions_below_and_above_are_called_through_pointers_and_return() {
    for apart in APART {
        let mut gpu = Gpu::default();
        let out = gpu.alloc(4096);
        let launch = gpu.calls(&out, apart, 1);
        for _ in 0..2 {
            run(&launch).expect("both are there");
            let found: Vec<u32> = out.read(64);
            assert!(is_called(&found), "{apart:#x}: {found:?}");
        }
    }
}

/// The words of a program are known from the launch before, but where it calls there is other code now.
#[test]
fn the_same_kernel_elsewhere_calls_what_is_there() {
    for (first, second) in [(APART[0], APART[1]), (APART[1], APART[0])] {
        let mut gpu = Gpu::default();
        for apart in [first, second, first] {
            let out = gpu.alloc(4096);
            run(&gpu.calls(&out, apart, 1)).expect("both are there");
            assert!(is_called(&out.read(64)), "{apart:#x}");
        }
    }
}

#[test]
fn several_threads_find_far_code_at_once() {
    for round in 0..20 {
        let mut gpu = Gpu { threads: 4, ..Gpu::default() };
        let out = gpu.alloc(4096);
        let launch = gpu.calls(&out, APART[0] + 4096 * round, 2000);
        run(&launch).expect("both are there");
        assert!(is_called(&out.read(64)), "{round}");
    }
}

/// A kernel that goes to far code with `go`, which gets the address of the next instruction and that of the code, and the far code, which
/// comes back with `come`, too, if there is one. The second instruction of the kernel is `go`.
fn there_and_back(gpu: &mut Gpu, apart: i64, go: &dyn Fn(u64, u64) -> (u64, u64), returns: bool) -> (Launch, Vec<u32>) {
    let out = gpu.alloc(4096);
    gpu.used += if apart < 0 { apart.unsigned_abs() } else { 0 };
    let kernel = BASE + gpu.used;
    let far = kernel.wrapping_add_signed(apart);
    gpu.put(|va| {
        let [out_low, out_high] = address(2, out.va, false);
        let [back, back_high] = address(20, va + 16 * 7, false);
        let start = [THREAD, out_low, out_high, INDEX, back, back_high];
        [&start[..], &[go(va + 16 * 7, far), STORE, EXIT]].concat()
    });
    let behind = gpu.used;
    gpu.used = far - BASE;
    gpu.put(|va| {
        let back = jump(BRA, (kernel + 16 * 7).wrapping_sub(va + 32) as i64);
        vec![mov(0, 77, false), if returns { RETURN_R20 } else { back }]
    });
    gpu.used = gpu.used.max(behind) + 4096;
    let launch = Launch { code: kernel, registers: 24, ..gpu.launch(&program(&[EXIT]), [1, 1, 1], [64, 1, 1], &[]) };
    run(&launch).expect("it is there");
    (launch, out.read(64))
}

#[test]
fn jumps_and_calls_that_name_far_code_get_there() {
    let relative = |opcode| move |next: u64, far: u64| jump(opcode, far.wrapping_sub(next) as i64);
    let absolute = |_: u64, far: u64| jump(CALL_ABSOLUTE, far as i64);
    for apart in APART.iter().flat_map(|&apart| [apart as i64, -(apart as i64)]) {
        for (name, go, returns) in [
            ("BRA", &relative(BRA) as &dyn Fn(u64, u64) -> (u64, u64), false),
            ("CALL.REL", &relative(CALL_RELATIVE), true),
            ("CALL.ABS", &absolute, true),
        ] {
            let (launch, found) = there_and_back(&mut Gpu::default(), apart, go, returns);
            assert_eq!(found, [77; 64], "{name} over {apart:#x} at {:#x}", launch.code);
        }
    }
}

#[test]
fn far_code_that_is_not_mapped_is_not_executed() {
    for opcode in [BRA, CALL_RELATIVE, CALL_ABSOLUTE] {
        let mut gpu = Gpu::default();
        let offset = 6 << 30;
        let launch = gpu.launch(&program(&[jump(opcode, offset), EXIT]), [1, 1, 1], [32, 1, 1], &[]);
        let target = if opcode == CALL_ABSOLUTE { offset as u64 } else { launch.code + 16 + offset as u64 };
        match run(&launch).expect_err("nothing is there").fault {
            SmFault::Mmu { fault, fetch: true, record, .. } => assert_eq!((fault.va, record.pc), (target, target)),
            other => panic!("{opcode:#x}: {other:?}"),
        }
    }
}

/// The instructions that go to their target, by opcode; BSSY only names where lanes meet. The target is the number of bytes from the next instruction, or behind RZ.
const WITH_TARGET: [(&str, u64); 6] = [
    ("BRA", 0x0000_7947),
    ("CALL.REL", 0x0000_7944),
    ("CALL.ABS", 0x0000_7943),
    ("BRX RZ", 0xff00_7949),
    ("CALL.REL RZ", 0xff00_7344),
    ("RET.REL RZ", 0xff00_7950),
];
/// Into the middle of the instruction before, of this one, of the next ones, and far away.
const INSIDE: [i64; 10] = [-28, -24, -20, -12, -8, -4, 4, 8, 12, 0x10_0008];

#[test]
fn no_jump_leads_into_an_instruction() {
    for (name, opcode) in WITH_TARGET {
        for offset in INSIDE {
            let jump = ((offset as u64) << 32 | opcode, 0x000f_ea00_0380_0000 | if offset < 0 { 0x3_ffff } else { 0 });
            let code = program(&[EXIT, jump, EXIT, EXIT]);
            let mut gpu = Gpu { budget: Some(100_000), ..Gpu::default() };
            let mut launch = gpu.launch(&code, [1, 1, 1], [32, 1, 1], &[]);
            launch.code += 16;
            let Err(stopped) = run(&launch) else { panic!("{name} {offset}: it ran") };
            match stopped.fault {
                SmFault::Warp { record, text, .. } => {
                    assert_eq!(record.pc, launch.code, "{name} {offset}: {text}");
                    assert!(text.contains("aligned"), "{name} {offset}: {text}");
                }
                other => panic!("{name} {offset}: {other:?}"),
            }
        }
    }
}

/// The same targets, each at an instruction, lead somewhere: to an end, to the budget's, or to code that is not there.
#[test]
fn whole_instructions_are_reached() {
    for (name, opcode) in WITH_TARGET {
        let code = program(&[EXIT, (0x20_0000_0000 | opcode, 0x000f_ea00_0380_0000), EXIT, EXIT, EXIT]);
        let mut gpu = Gpu { budget: Some(100_000), ..Gpu::default() };
        let mut launch = gpu.launch(&code, [1, 1, 1], [32, 1, 1], &[]);
        launch.code += 16;
        let refused = run(&launch).err().map(|stopped| format!("{:?}", stopped.fault)).unwrap_or_default();
        assert!(!refused.contains("aligned"), "{name}: {refused}");
    }
}
