//! Notes which ioctls the tests have seen answered.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use tegra_sim::SimKmd;
use tegrarm_kmd::{Arg, Errno, Kmd, Mapping, Node, Placement, Prot};

/// The environment variable that names the file for the notes.
pub const NOTES: &str = "TEGRARM_TEST_CALLS";

/// A board that notes the number of every ioctl and whether it succeeded, if the variable is set.
pub struct Noting {
    sim: Arc<SimKmd>,
    notes: Option<File>,
}

impl Noting {
    pub fn over(sim: Arc<SimKmd>) -> Noting {
        let open = |path| OpenOptions::new().append(true).create(true).open(path).expect("the notes can be written");
        Noting { sim, notes: std::env::var_os(NOTES).map(open) }
    }
}

impl Kmd for Noting {
    tegrarm_kmd::forward!(sim: name, open, mmap, own_view, close, read_text, write_text);

    fn ioctl(&self, fd: BorrowedFd<'_>, node: Node, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        let answer = self.sim.ioctl(fd, node, request, arg);
        if let Some(mut notes) = self.notes.as_ref() {
            // The line is written with one call, so that lines of several threads are not mixed.
            notes.write_all(format!("{request} {}\n", answer.is_ok()).as_bytes()).expect("the notes can be written");
        }
        answer
    }
}
