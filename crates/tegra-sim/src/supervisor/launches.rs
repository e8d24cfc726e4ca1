//! Tells programs under the supervisor how many kernels each process has run on the GPU: `tegrarm top` asks.
//!
//! [`PATH`] is no file of the board, and no listing shows it. Opening it for reading and writing gives a file with the
//! numbers of that moment: one line for each process, with its number and its launches. On a board nobody counts them.

use super::{Supervisor, sys};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use tegra_gpu::Gpu;
use tegrarm_kmd::Errno;

/// The path that a supervised program opens.
pub const PATH: &str = "/dev/tegrarm-sim/launches";

/// The launches that ended, by process.
#[derive(Debug, Default)]
pub struct Launches(Mutex<BTreeMap<i32, u64>>);

impl Launches {
    /// Counts what `gpu` runs from now on.
    pub fn of(gpu: &Gpu) -> Arc<Launches> {
        let launches = Arc::new(Launches::default());
        let counting = launches.clone();
        gpu.count_launches(Arc::new(move |process| counting.count(process)));
        launches
    }

    fn count(&self, process: i32) {
        *self.0.lock().entry(process).or_default() += 1;
    }

    /// One line for each process that `is_alive`. The others are forgotten, because their numbers will be used again.
    fn text(&self, is_alive: impl Fn(i32) -> bool) -> String {
        let mut counts = self.0.lock();
        counts.retain(|process, _| is_alive(*process));
        counts.iter().fold(String::new(), |mut text, (process, count)| {
            let _ = writeln!(text, "{process} {count}");
            text
        })
    }
}

impl Supervisor {
    /// Makes the file that a program gets for [`PATH`].
    pub(super) fn open_launches(&self) -> Result<OwnedFd, Errno> {
        sys::memfd_with(PATH, &self.launches.text(|process| Path::new(&format!("/proc/{process}")).exists()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_ended_are_forgotten() {
        let launches = Launches::default();
        [7, 9, 7].into_iter().for_each(|process| launches.count(process));
        assert_eq!(launches.text(|_| true), "7 2\n9 1\n");
        assert_eq!(launches.text(|process| process == 9), "9 1\n");
        launches.count(7);
        assert_eq!(launches.text(|_| true), "7 1\n9 1\n");
    }
}
