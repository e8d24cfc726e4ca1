//! `--kill` kills a process at a given ioctl, so that tests see what it leaves.

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpid, getppid};
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};
use tegra_sim::supervisor::{Answered, Observer};

/// The process that is killed, and the number of the ioctl at which it is killed, counted from 1.
#[derive(Clone, Copy, Debug)]
pub struct Killing {
    whom: Whom,
    at: u32,
}

#[derive(Clone, Copy, Debug)]
enum Whom {
    /// The process that makes the ioctl.
    Program,
    Supervisor,
    /// The process that was asked to run the program.
    Outer,
}

impl FromStr for Killing {
    type Err = String;

    fn from_str(text: &str) -> Result<Killing, String> {
        let parsed = text.split_once('@').and_then(|(whom, at)| {
            let whom = match whom {
                "program" => Whom::Program,
                "supervisor" => Whom::Supervisor,
                "outer" => Whom::Outer,
                _ => return None,
            };
            Some(Killing { whom, at: at.parse().ok()? })
        });
        parsed.ok_or_else(|| "it is program, supervisor or outer, then @ and the number of an ioctl".to_owned())
    }
}

/// Kills the process after the kernel has answered the ioctl and before the program gets the answer.
pub struct Killer {
    killing: Killing,
    seen: AtomicU32,
}

impl Killer {
    /// Makes an observer that has seen no ioctl yet.
    pub fn new(killing: Killing) -> Killer {
        Killer { killing, seen: AtomicU32::new(0) }
    }
}

impl Observer for Killer {
    fn ioctl(&self, call: &Answered<'_>) {
        if self.seen.fetch_add(1, Ordering::Relaxed) + 1 != self.killing.at {
            return;
        }
        let pid = match self.killing.whom {
            Whom::Program => Pid::from_raw(call.pid),
            Whom::Supervisor => getpid(),
            Whom::Outer => getppid(),
        };
        // If the process has ended already, there is nothing to do.
        let _ = kill(pid, Signal::SIGKILL);
    }
}
