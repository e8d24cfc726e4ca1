//! The checker looks at a launch, and changes nothing of it.

#[path = "../../sm87/tests/sm/support.rs"]
#[allow(dead_code, reason = "the tests of the engine use more of it")]
mod support;

use sm87::{Launch, RunStats, run, run_observed};
use sm87_check::{Checker, Checks, Kind, Watch};
use std::sync::Arc;
use support::{Arg, EXIT, Gpu, program};

/// Runs a launch that the checker looks at.
fn checked(launch: &Launch, checker: &Arc<Checker>) -> RunStats {
    run_observed(launch, &[&Watch::new(checker)]).expect("no fault")
}

const EVERYTHING: Checks = Checks { memory: true, init: true, race: true, strict: false, sync: true, silent: false };

/// The kinds of the reports about z = x + y, where each buffer has `len` floats and the program is told that there are `count`. Only
/// if `written` is true, x and y were written before.
fn found(checks: Checks, (len, count): (usize, i32), written: bool) -> Vec<Kind> {
    let (mut gpu, checker) = (Gpu::default(), Arc::new(Checker::new(checks)));
    let numbers: Vec<f32> = (0..len).map(|i| i as f32).collect();
    let [x, y] = [(); 2].map(|()| if written { gpu.upload(&numbers) } else { gpu.alloc(4 * len) });
    let z = gpu.alloc(4 * len);
    let args = [Arg::Ptr(&z), Arg::Ptr(&x), Arg::Ptr(&y), Arg::Int(count)];
    let launch = gpu.launch(&kernel!("vector_add"), [4, 1, 1], [256, 1, 1], &args);
    let stats = checked(&launch, &checker);
    let (sums, reports) = (z.read::<f32>(len), checker.take());
    assert_eq!(sums, (0..len).map(|i| if written { 2.0 * i as f32 } else { 0.0 }).collect::<Vec<_>>());
    let alone = run(&launch).expect("no fault");
    // The instruction at which a CTA goes on with another copy of the program is issued twice.
    let more = stats.thread_instructions - alone.thread_instructions;
    assert!(more == 0 || checks.init && !written, "{more} more instructions");
    reports.iter().map(|report| report.kind).collect()
}

#[test]
fn a_program_without_bugs_has_no_reports_and_the_same_results() {
    assert_eq!(found(EVERYTHING, (1000, 1000), true), []);
    assert_eq!(found(Checks { memory: true, ..Checks::default() }, (1000, 1000), false), []);
}

#[test]
fn accesses_behind_a_buffer_are_found() {
    let kinds = found(Checks { memory: true, ..Checks::default() }, (1000, 1001), true);
    assert_eq!(kinds, [Kind::Memory; 3], "two loads and a store");
}

/// The CTA goes on with another copy of the program when it meets the first such value.
#[test]
fn a_sum_of_what_was_never_written_is_found_where_it_is_stored() {
    assert_eq!(found(Checks { init: true, ..Checks::default() }, (1000, 1000), false), [Kind::Init]);
}

/// A program with a barrier in shared memory counts there too, and looks at the count with plain loads. That is no race, although the
/// code that shows that there is a barrier is first reached through a pointer.
#[test]
fn a_barrier_behind_a_pointer_is_known_as_one() {
    let mov = |register: u64, x: u64| (x << 32 | register << 16 | 0x7802, 0x000f_e200_0000_0f00);
    let call = (0x0000_0000_0400_7344, 0x001f_ea00_03c0_0000); // CALL.REL.NOINC R4, to the instruction after the next one
    let load = (0x0000_1000_ff08_7984, 0x000e_2800_0000_0800); // LDS R8, [RZ+0x10]
    let count = (0x0000_1000_ffff_7f8c, 0x000f_e800_0d00_003f); // ATOMS.POPC.INC.32 RZ, [RZ+URZ+0x10]
    let arrive = (0x0000_0000_ff06_7f8c, 0x000e_6200_0c80_043f); // ATOMS.ARRIVE.64 R6, [URZ]
    let found = |behind: &[_]| {
        let kernel = program(&[&[mov(4, 16), mov(5, 0), call, EXIT], behind, &[EXIT]].concat());
        let (mut gpu, checker) = (Gpu::default(), Arc::new(Checker::new(Checks { race: true, ..Checks::default() })));
        let launch = gpu.launch(&kernel, [1, 1, 1], [64, 1, 1], &[]);
        checked(&launch, &checker);
        checker.take().into_iter().map(|report| report.kind).collect::<Vec<_>>()
    };
    assert_eq!(found(&[load, count, arrive]), []);
    assert_eq!(found(&[load, count]), [Kind::Race], "without a barrier");
}

/// Functions that are far away, below and above, are found while the program runs, and the places of its instructions change.
#[test]
fn far_functions_are_looked_at_and_make_no_reports() {
    let (mut gpu, checker) = (Gpu::default(), Arc::new(Checker::new(EVERYTHING)));
    let out = gpu.alloc(4 * 64);
    checked(&gpu.calls(&out, 3 << 30, 2), &checker);
    let kinds: Vec<_> = checker.take().into_iter().map(|report| report.kind).collect();
    assert_eq!(kinds, [], "both blocks store the same");
    assert!(out.read::<u32>(64).iter().enumerate().all(|(i, &x)| x == Gpu::CALLED[usize::from(i > 15)]));
}

#[test]
fn a_load_before_a_far_call_is_named_behind_it() {
    use support::code::{CALL_R4, RETURN_R20, STORE, address};
    let (mut gpu, checker) = (Gpu::default(), Arc::new(Checker::new(Checks { init: true, ..Checks::default() })));
    let [from, to] = [(); 2].map(|()| gpu.alloc(4));
    let below = gpu.put(|_| vec![RETURN_R20]);
    gpu.used += 5 << 20;
    let mut kernel = 0;
    gpu.put(|va| {
        kernel = va;
        let load = (0x0000_0004_0200_7981, 0x0000_a800_0c1e_1900); // LDG.E R0, [R2.64]
        let twice = (0x0000_0000_0000_7221, 0x004f_ca00_0000_0000); // FADD R0, R0, R0
        let [addresses, function, back] =
            [address(2, from.va, false), address(4, below, false), address(20, va + 16 * 8, false)];
        [&addresses[..], &[load], &function, &back, &[CALL_R4, twice], &address(2, to.va, false), &[STORE, EXIT]]
            .concat()
    });
    let launch = gpu.launch(&program(&[EXIT]), [1, 1, 1], [32, 1, 1], &[]);
    checked(&Launch { code: kernel, registers: 24, ..launch }, &checker);
    let places: Vec<_> = checker.take().iter().flat_map(|r| &r.parties).map(|party| party.pc - kernel).collect();
    assert_eq!(places, [16 * 11, 16 * 2], "the store, and the load");
}
