//! Tells programs under the supervisor how many kernels each process has run on the GPU: `tegrarm top` asks.
//!
//! [`PATH`] is no file of the board, and no listing shows it. Opening it for reading and writing gives a file with the
//! numbers of that moment: one line for each process of this board, with its number and its launches, which are 0 at first.
//! On a board nobody counts them.

use super::processes::descendants;
use super::{Supervisor, sys};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use tegra_gpu::Gpu;
use tegrarm_kmd::Errno;
use tegrarm_lock::Mutex;

/// The path that a supervised program opens.
pub const PATH: &str = "/dev/tegrarm-sim/launches";

/// With fewer processes, nothing is forgotten.
const FEW: usize = 64;

/// The launches that ended, by process.
#[derive(Debug, Default)]
pub struct Launches(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    of: BTreeMap<i32, u64>,
    /// The number of processes that were alive at the last look.
    alive: usize,
}

impl Launches {
    /// Counts what `gpu` runs from now on.
    pub fn of(gpu: &Gpu) -> Arc<Launches> {
        let launches = Arc::new(Launches::default());
        let counting = launches.clone();
        gpu.count_launches(Arc::new(move |process| counting.count(process, exists)));
        launches
    }

    /// Counts a launch. Nobody may ever ask for the numbers, so that processes that have ended are forgotten here too,
    /// whenever there are twice as many as there were after the last time.
    fn count(&self, process: i32, is_alive: impl Fn(i32) -> bool) {
        let mut counts = self.0.lock();
        *counts.of.entry(process).or_default() += 1;
        if counts.of.len() > FEW.max(2 * counts.alive) {
            counts.forget(is_alive);
        }
    }

    /// One line for each process that `is_alive` and for each of `programs`, which may have launched nothing. The others
    /// are forgotten, because their numbers will be used again.
    fn text(&self, programs: &[i32], is_alive: impl Fn(i32) -> bool) -> String {
        let mut counts = self.0.lock();
        counts.forget(is_alive);
        let mut of: BTreeMap<i32, u64> = programs.iter().map(|process| (*process, 0)).collect();
        of.extend(&counts.of);
        of.iter().fold(String::new(), |mut text, (process, count)| {
            let _ = writeln!(text, "{process} {count}");
            text
        })
    }
}

impl Counts {
    fn forget(&mut self, is_alive: impl Fn(i32) -> bool) {
        self.of.retain(|process, _| is_alive(*process));
        self.alive = self.of.len();
    }
}

/// Whether there is a process with this number.
fn exists(process: i32) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}

impl Supervisor {
    /// Makes the file that a program gets for [`PATH`].
    pub(super) fn open_launches(&self) -> Result<OwnedFd, Errno> {
        let programs = descendants(std::process::id() as i32);
        sys::memfd_with(PATH, &self.launches.text(&programs, exists))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_ended_are_forgotten() {
        let launches = Launches::default();
        [7, 9, 7].into_iter().for_each(|process| launches.count(process, |_| true));
        assert_eq!(launches.text(&[], |_| true), "7 2\n9 1\n");
        assert_eq!(launches.text(&[], |process| process == 9), "9 1\n");
        launches.count(7, |_| true);
        assert_eq!(launches.text(&[], |_| true), "7 1\n9 1\n");
    }

    #[test]
    fn a_program_that_launched_nothing_has_a_line() {
        let launches = Launches::default();
        launches.count(7, |_| true);
        assert_eq!(launches.text(&[8, 7], |_| true), "7 1\n8 0\n");
    }

    /// A thousand processes come and go, and nobody asks. Those that live keep their numbers.
    #[test]
    fn processes_that_ended_are_forgotten_without_being_asked_for() {
        let launches = Launches::default();
        let lives = |process: i32| process < 100;
        (0..100).for_each(|process| launches.count(process, lives));
        for process in 100..1100 {
            launches.count(process, lives);
            assert!(launches.0.lock().of.len() <= 201);
        }
        launches.count(1, lives);
        let text = launches.text(&[], lives);
        assert_eq!((text.lines().count(), text.starts_with("0 1\n1 2\n")), (100, true));
    }
}
