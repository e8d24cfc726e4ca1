//! Programs that go around the supervisor, and hosts that refuse it something.

use super::{compile, run, said, succeeds};

/// io_uring opens, closes, cuts and shuts files without a system call that the supervisor sees.
#[test]
fn what_io_uring_does_ends_nothing() {
    let program = compile("uring");
    for (options, opened) in [(&[][..], "opened"), (&["--trap-paths"], "not there")] {
        let told = succeeds(&run(options, &[&program]));
        // What is left is the program's own.
        let whole = format!("{opened}\nleft: channels 1 tsgs 1\n");
        assert!([whole.as_str(), "no io_uring\n"].contains(&&told[..]), "{told}");
    }
}

/// The calls of 32-bit programs have other numbers, which the filter does not send to the supervisor.
#[test]
fn calls_in_other_numbers_end_nothing() {
    let program = compile("other_abis");
    for options in [&[][..], &["--trap-paths"]] {
        let told = succeeds(&run(options, &[&program]));
        assert!(told.ends_with("works\n") || told == "no other calls\n", "{told}");
    }
}

/// Whoever asked for a file learns that it is not complete. The program runs all the same.
#[test]
fn a_full_disk_is_told_once_and_stops_nothing() {
    let program = compile("bringup");
    for (options, program, told) in [
        (&["--strace=/dev/full"][..], &[&program[..]][..], "--strace"),
        (&["--trace=/dev/full"], &[&program], "--trace"),
        (&["--kmsg=/dev/full", "--quiet"], &[&program, "fault"], "--kmsg"),
        (&["--kmsg-records=/dev/full", "--quiet"], &[&program, "fault"], "--kmsg-records"),
    ] {
        let out = run(options, program);
        succeeds(&out);
        let line = format!("tegrarm-sim: {told} is not complete: No space left on device (os error 28)\n");
        assert_eq!(said(&out), line, "{options:?}");
    }
}
