//! The processes below this one, and the signals that concern them.

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

/// The signals that the parent of programs waits for.
pub fn awaited() -> SigSet {
    [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT].into_iter().collect()
}

/// All processes below `pid`, without `pid` itself. Orphans are included if `pid` is their subreaper.
pub(super) fn descendants(pid: i32) -> Vec<i32> {
    let mut found: Vec<i32> = children(pid);
    let mut next = 0;
    while next < found.len() {
        let more = children(found[next]);
        found.extend(more);
        next += 1;
    }
    found
}

/// The processes that the threads of `pid` started and that have not been waited for.
fn children(pid: i32) -> Vec<i32> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return vec![] };
    tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|list| list.split_ascii_whitespace().filter_map(|c| c.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// Kills every process below this one, including those that are started meanwhile. The caller is their subreaper.
pub fn end_all() {
    loop {
        for pid in descendants(std::process::id() as i32) {
            // The process may have ended by itself.
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        // One process is waited for. Its children have become ours.
        match waitpid(None, None) {
            Ok(_) | Err(Errno::EINTR) => {
                while waitpid(None, Some(WaitPidFlag::WNOHANG)).is_ok_and(|s| s.pid().is_some()) {}
            }
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_and_its_child_are_found() {
        let mut child = std::process::Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().unwrap();
        let me = std::process::id() as i32;
        let found = || {
            descendants(me)
                .iter()
                .filter(|pid| **pid == child.id() as i32 || children(child.id() as i32).contains(pid))
                .count()
        };
        while found() < 2 {
            std::thread::yield_now();
        }
        for pid in children(child.id() as i32) {
            kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
