//! Tests a bring-up in which one process is killed at each of the ioctls: the program, the supervisor, or the process
//! that was asked to run the program. Nothing stays on the host, and the next run works.

use super::{SIMULATOR, compile, succeeds};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The things that a run may leave on the host: files and directories, mounts, processes, and System V shared memory.
#[derive(Debug, PartialEq, Eq)]
struct Host {
    files: BTreeSet<PathBuf>,
    mounts: usize,
    processes: BTreeSet<String>,
    shared_memory: String,
}

impl Host {
    /// `directory` is the temporary directory of the run. It is also in the command lines of the run's processes.
    fn now(directory: &Path) -> Host {
        let named =
            |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path()).collect::<Vec<_>>();
        let shm = named(Path::new("/dev/shm")).into_iter().filter(|p| p.to_string_lossy().contains("tegrarm"));
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let needle = directory.as_os_str().as_encoded_bytes();
        let ours = |pid: &PathBuf| {
            let environ = fs::read(pid.join("environ")).unwrap_or_default();
            environ.windows(needle.len()).any(|w| w == needle)
        };
        let is_process = |p: &PathBuf| p.file_name().is_some_and(|n| n.as_encoded_bytes()[0].is_ascii_digit());
        let processes = named(Path::new("/proc")).into_iter().filter(is_process).filter(ours);
        Host {
            files: named(directory).into_iter().chain(shm).collect(),
            mounts: text("/proc/self/mounts").matches("tegrarm").count(),
            processes: processes.map(|pid| text(&format!("{}/cmdline", pid.display())).replace('\0', " ")).collect(),
            shared_memory: text("/proc/sysvipc/shm"),
        }
    }
}

#[test]
fn whoever_is_killed_at_whatever_call_nothing_is_left() {
    let program = compile("bringup");
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("matrix");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir(&dir).unwrap();
    let simulator = || {
        let mut command = Command::new(SIMULATOR);
        command.arg("run").env("TMPDIR", &dir);
        command
    };
    let whole = || succeeds(&simulator().args(["--", &program]).output().unwrap()).trim().parse::<u32>().unwrap();
    let calls = whole();
    assert!(calls >= 25, "a bring-up of {calls} calls");
    let clean = Host::now(&dir);
    assert_eq!((clean.files.len(), clean.processes.len()), (0, 0), "{clean:?}");
    for whom in ["program", "supervisor", "outer"] {
        for call in 1..=calls {
            let out = simulator().args(["--kill", &format!("{whom}@{call}"), "--", &program]).output().unwrap();
            assert!(!out.status.success(), "{whom} at {call}: {out:?}");
            // After one process was killed, the other processes end by themselves.
            let mut now = Host::now(&dir);
            while !now.processes.is_empty() {
                std::thread::yield_now();
                now = Host::now(&dir);
            }
            // Both processes of the simulator may still be ending. The directory is removed last.
            while whom != "program" && !now.files.is_empty() {
                std::thread::yield_now();
                now = Host::now(&dir);
            }
            assert_eq!(now, clean, "{whom} killed at call {call}");
        }
        assert_eq!(whole(), calls, "after {whom} was killed");
    }
}
