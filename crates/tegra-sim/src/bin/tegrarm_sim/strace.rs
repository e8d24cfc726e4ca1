//! `--strace`: one line per call, names and fields decoded.

use std::io::Write;
use std::sync::Mutex;
use tegra_sim::supervisor::{Answered, Observer};
use tegrarm_kmd::describe;

/// Writes a line per call.
pub struct Strace {
    out: Mutex<Box<dyn Write + Send>>,
}

impl Strace {
    /// Writes to `out`.
    pub fn new(out: Box<dyn Write + Send>) -> Strace {
        Strace { out: Mutex::new(out) }
    }

    fn line(&self, pid: i32, text: &str) {
        let mut out = self.out.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // A reader that went away is no reason to stop the program.
        let _ = writeln!(out, "[{pid}] {text}");
    }
}

impl Observer for Strace {
    fn opened(&self, pid: i32, path: &str, fd: i32) {
        self.line(pid, &format!("open({path:?}) = {fd}"));
    }

    fn ioctl(&self, call: &Answered<'_>) {
        let fields = |bytes| describe::fields(call.node, call.request, bytes);
        let (before, after) = (fields(call.before), fields(call.after));
        self.line(call.pid, &describe::line(&call.fd, call.node, call.request, &before, &after, call.result));
    }
}
