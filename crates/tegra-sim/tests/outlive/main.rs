//! Programs disturb the supervisor and each other. No other program may notice, and the next run must work.

mod attacks;
mod matrix;
mod swarm;

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

const SIMULATOR: &str = env!("CARGO_BIN_EXE_tegrarm-sim");

fn run(options: &[&str], program: &[&str]) -> Output {
    Command::new(SIMULATOR).arg("run").args(options).arg("--").args(program).output().unwrap()
}

/// Compiles a C program of this directory.
fn compile(name: &str) -> String {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/outlive");
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("outlive-{name}"));
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-pthread", "-Wall", "-Wno-unused-function", "-Werror", "-o"])
        .arg(&program)
        .arg("-I")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include"))
        .arg(sources.join(format!("{name}.c")));
    assert!(cc.status().unwrap().success());
    program.into_os_string().into_string().unwrap()
}

fn succeeds(out: &Output) -> String {
    assert!(out.status.success(), "{out:?}");
    String::from_utf8_lossy(&out.stdout).into_owned()
}

fn said(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

#[test]
fn no_memory_can_be_taken_away_from_under_the_supervisor() {
    let program = compile("truncate");
    for options in [&[][..], &["--trap-paths"]] {
        print!("{}", succeeds(&run(options, &[&program])));
    }
}

/// The host makes calls again that it interrupted for a handler with `SA_RESTART`, and no call runs twice. A host
/// before Linux 5.19 takes callers away from calls in progress. For handlers without `SA_RESTART`, the simulator can
/// repair that only if the caller makes the call again, as this one does.
#[test]
fn signals_leave_calls_alone() {
    let program = compile("signals");
    let runs = [(&[][..], "restart"), (&[], "fail"), (&["--interruptible"], "restart"), (&["--interruptible"], "fail")];
    for (options, handler) in runs {
        // At 300 µs nearly every opening of a channel is interrupted.
        for interval in ["300", "1000", "10000"] {
            let out = run(options, &[&program, interval, handler, "300"]);
            print!("{options:?} {interval} us, {handler}: {}", succeeds(&out));
        }
    }
}

#[test]
fn sleeps_end_with_signals_or_go_on_as_their_handlers_say() {
    let program = compile("sleeper");
    for options in [&[][..], &["--interruptible"]] {
        succeeds(&run(options, &[&program]));
    }
}

#[test]
fn files_end_with_their_last_descriptor_and_mapping() {
    let program = compile("closes");
    for options in [&[][..], &["--trap-paths"]] {
        succeeds(&run(options, &[&program]));
    }
}

/// A child of a program has its parent's open files. Whatever it does to them, short of the last close, they stay.
#[test]
fn no_lock_lease_or_shutdown_ends_a_file() {
    let program = compile("droppers");
    for options in [&[][..], &["--trap-paths"]] {
        succeeds(&run(options, &[&program]));
    }
}

/// Files of sysfs that are open for writing cost neither a thread each nor as much memory as is written to them, and a
/// process has a budget of its own.
#[test]
fn openers_and_endless_lines_leave_the_supervisor_as_it_was() {
    let program = compile("openers");
    for options in [&[][..], &["--trap-paths"]] {
        let told = succeeds(&run(options, &[&program]));
        let numbers: Vec<u64> = told.split_whitespace().map(|n| n.parse().unwrap()).collect();
        let [peak, threads] = numbers[..] else { panic!("{told}") };
        assert!(peak < 64 << 10, "the supervisor had {peak} KiB");
        assert!(threads < 64, "the supervisor has {threads} threads");
    }
}

/// Buffers end before the mappings do that the supervisor's own threads need.
#[test]
fn the_last_buffer_is_refused_and_the_board_works_on() {
    let taken: u64 = succeeds(&run(&[], &[&compile("brink")])).trim().parse().unwrap();
    let most: u64 = fs::read_to_string("/proc/sys/vm/max_map_count").unwrap().trim().parse().unwrap();
    assert!(taken <= most / 8 * 7, "{taken} buffers");
}

/// A process that takes all that it can get leaves others enough to open a device and launch a kernel. There is little of everything, so
/// that all of it is soon taken; the test above takes as much as Linux gives.
#[test]
fn nobody_takes_all() {
    let told = succeeds(&run(&["--scarce", "4096"], &[&compile("taker")]));
    // At most half of what there is, and of channels, groups and memory all but a sixteenth.
    let most =
        [("channels", 480), ("groups", 480), ("debuggers", 2048), ("nodes", 2048), ("huge", 64), ("buffers", 2048)];
    assert_eq!(told.lines().count(), most.len(), "{told}");
    for (line, (name, most)) in told.lines().zip(most) {
        let (what, taken) = line.split_once(' ').unwrap();
        let taken: u64 = taken.parse().unwrap();
        assert!(what == name && taken > 0 && taken <= most, "{told}");
    }
}

/// Calls whose arguments never come hold none but their own program.
#[test]
fn calls_that_wait_for_their_programs_memory_leave_the_others_alone() {
    let told = succeeds(&run(&[], &[&compile("holder")]));
    assert!(["40 held\n", "no userfaultfd\n"].contains(&&told[..]), "{told}");
}

/// Neither does a channel that is closed while a submission to it waits.
#[test]
fn a_submission_that_waits_for_memory_locks_nothing() {
    let told = succeeds(&run(&[], &[&compile("submitter")]));
    assert!(["served\n", "no userfaultfd\n"].contains(&&told[..]), "{told}");
}

/// More processes run than there are channels, and nothing is left of them.
#[test]
fn a_crowd_is_served() {
    let program = compile("crowd");
    let left = succeeds(&run(&[], &[&program, "200", "2"]));
    assert_eq!(left, "left: files 0 channels 0 tsgs 0 handles 0 memory 0\n");
}

/// A program starts with the descriptors and the limits that its caller gave it, and no signal is blocked.
#[test]
fn programs_inherit_nothing_of_the_supervisors() {
    let script = "import os, resource, signal\n\
                  print(os.open('/dev/null', os.O_RDONLY), len(signal.pthread_sigmask(signal.SIG_BLOCK, [])))\n\
                  print(resource.getrlimit(resource.RLIMIT_NOFILE))";
    for options in [&[][..], &["--trap-paths"], &["--strace=/dev/null"]] {
        // The descriptors are those of this process, and the soft limit differs from the hard one.
        let limited = ["-c", "ulimit -Sn 300; exec \"$@\"", "sh"];
        let alone = Command::new("sh").args(limited).args(["python3", "-c", script]).output().unwrap();
        let out = Command::new("sh")
            .args(limited)
            .args([SIMULATOR, "run"])
            .args(options)
            .args(["--", "python3", "-c", script])
            .output()
            .unwrap();
        assert_eq!((succeeds(&out), succeeds(&out).starts_with("3 0\n")), (succeeds(&alone), true));
    }
}

#[test]
fn what_could_not_be_set_up_is_not_the_programs_fault() {
    let fails = |command: &mut Command| command.output().unwrap();
    let simulator = || Command::new(SIMULATOR);
    let missing = fails(simulator().env("TMPDIR", "/no/such/directory").args(["run", "--", "/bin/true"]));
    assert!(said(&missing).contains("the board's files cannot be made in /no/such/directory"), "{missing:?}");
    for option in ["--strace=/no/such/file", "--trace=/no/such/file"] {
        let out = fails(simulator().args(["run", option, "--", "/bin/true"]));
        assert!(said(&out).contains(&option.replace('=', " cannot be written to ")), "{out:?}");
        assert_eq!(out.status.code(), Some(125));
    }
    assert!(said(&missing).contains("/bin/true was not run"));
    assert_eq!(missing.status.code(), Some(125));
    // These exit codes are about the program.
    for (program, code) in [("/no/such/program", 127), ("/etc/passwd", 126)] {
        let out = run(&[], &[program]);
        assert_eq!(
            (out.status.code(), said(&out).starts_with(&format!("tegrarm-sim: {program}: "))),
            (Some(code), true)
        );
    }
}

/// The rows of the table in docs/isolation.md that are about two processes on one board.
#[test]
fn strangers_get_nothing_but_what_they_are_given() {
    let program = compile("strangers");
    for options in [&["--quiet"][..], &["--quiet", "--trap-paths"]] {
        succeeds(&run(options, &[&program]));
    }
}

/// What the driver says about a fault is there without being asked for, and in the forms in which tools read it.
#[test]
fn a_fault_of_the_gpu_is_said_and_logged() {
    let program = compile("bringup");
    let line = "nvgpu: 17000000.gpu [ERR] [MMU FAULT] mmu engine id: ";
    let out = run(&[], &[&program, "fault"]);
    succeeds(&out);
    assert!(said(&out).contains(&format!("tegrarm-sim: {line}")), "{out:?}");
    assert!(
        said(&out).contains("fault addr: 0x1234567000, fault type: invalid pde, access type: virt write"),
        "{out:?}"
    );
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (text, records) = (dir.join("kmsg.txt"), dir.join("kmsg.records"));
    let options = [format!("--kmsg={}", text.display()), format!("--kmsg-records={}", records.display())];
    let out = run(&[&options[0], &options[1], "--quiet"], &[&program, "fault"]);
    succeeds(&out);
    assert_eq!(said(&out), "");
    let (text, records) = (fs::read_to_string(text).unwrap(), fs::read_to_string(records).unwrap());
    let (time, rest) = text.strip_prefix('[').and_then(|t| t.split_once("] ")).unwrap();
    assert!(time.trim().parse::<f64>().is_ok() && rest.starts_with(line) && rest.lines().count() == 1, "{text}");
    let (head, message) = records.trim().split_once(";").unwrap();
    assert!(head.starts_with("3,0,") && head.ends_with(",-") && rest.trim() == message, "{records}");
    let well = run(&[], &[&program]);
    assert_eq!((succeeds(&well).trim().parse::<u32>().is_ok(), said(&well)), (true, String::new()));
}

/// A running pair of processes that has its own temporary directory.
struct Running {
    outer: Child,
    dir: PathBuf,
}

impl Running {
    fn start(name: &str) -> Running {
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("headless-{name}"));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir(&dir).unwrap();
        let mut command = Command::new(SIMULATOR);
        command.args(["run", "--"]).arg(compile("headless")).arg(dir.join("failed")).arg(dir.join("ready"));
        let outer = command.env("TMPDIR", &dir).stderr(Stdio::piped()).spawn().unwrap();
        let running = Running { outer, dir };
        running.until(|r| r.dir.join("ready").exists());
        running
    }

    fn until(&self, done: impl Fn(&Running) -> bool) {
        while !done(self) {
            std::thread::yield_now();
        }
    }

    /// The process that is the supervisor.
    fn inner(&self) -> i32 {
        let children = format!("/proc/{0}/task/{0}/children", self.outer.id());
        fs::read_to_string(children).unwrap().split_whitespace().next().unwrap().parse().unwrap()
    }

    /// The processes that execute the program.
    fn programs(&self) -> usize {
        let ours = |pid: &str| {
            let text = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let first = text.split(|b| *b == 0).next().unwrap_or_default();
            first.ends_with(b"outlive-headless") && text.windows(9).any(|w| w == b"headless-") && {
                String::from_utf8_lossy(&text).contains(self.dir.to_str().unwrap())
            }
        };
        fs::read_dir("/proc").unwrap().flatten().filter(|e| ours(&e.file_name().to_string_lossy())).count()
    }

    fn directories(&self) -> usize {
        let ours = |name: &str| name.starts_with("tegrarm-sim.");
        fs::read_dir(&self.dir).unwrap().flatten().filter(|e| ours(&e.file_name().to_string_lossy())).count()
    }

    /// Checks that nothing is left and that no program has seen a call fail.
    fn end(mut self) -> Output {
        self.until(|r| r.programs() == 0 && r.directories() == 0);
        let failed = fs::read_to_string(self.dir.join("failed"));
        assert!(failed.is_err(), "{failed:?}");
        let status = self.outer.wait().unwrap();
        let mut stderr = vec![];
        std::io::Read::read_to_end(&mut self.outer.stderr.take().unwrap(), &mut stderr).unwrap();
        Output { status, stdout: vec![], stderr }
    }
}

/// A test that fails leaves no processes. Once, three that it had left took a core and a half.
impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.outer.kill();
        let _ = self.outer.wait();
    }
}

fn kill(pid: i32) {
    nix::sys::signal::kill(Pid::from_raw(pid), Signal::SIGKILL).expect("a process to kill");
}

#[test]
fn programs_end_with_their_supervisor() {
    let running = Running::start("inner");
    kill(running.inner());
    let out = running.end();
    assert!(said(&out).contains("SIGKILL ended the supervisor; its programs were ended with it"), "{out:?}");
    assert_eq!(out.status.code(), Some(125));
}

#[test]
fn programs_end_with_the_process_that_was_asked_to_run_them() {
    let running = Running::start("outer");
    kill(running.outer.id() as i32);
    assert_eq!(running.end().status.signal(), Some(9));
}

/// If both processes are killed, the program ends, and the next run removes their directory.
#[test]
fn the_next_run_sweeps() {
    let mut running = Running::start("both");
    let (outer, inner) = (running.outer.id() as i32, running.inner());
    [outer, inner].into_iter().for_each(kill);
    running.outer.wait().unwrap();
    // The lock of the directory ends with the last thread of the process.
    let threads = || fs::read_dir(format!("/proc/{inner}/task")).map_or(0, Iterator::count);
    let state = || fs::read_to_string(format!("/proc/{inner}/stat")).unwrap_or_default();
    running.until(|_| threads() == 0 || threads() == 1 && state().contains(") Z "));
    assert_eq!(running.directories(), 1);
    let next = Command::new(SIMULATOR).args(["run", "--", "true"]).env("TMPDIR", &running.dir).status().unwrap();
    assert!(next.success());
    assert_eq!(running.directories(), 0);
    // Programs that no longer had their parents see failing calls then.
    running.until(|r| r.programs() == 0);
}
