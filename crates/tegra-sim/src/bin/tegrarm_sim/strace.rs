//! `--strace` writes one line for each call, with names and decoded fields.

use std::io::Write;
use std::sync::Mutex;
use tegra_sim::supervisor::{Answered, Observer};
use tegrarm_kmd::describe;

/// Writes one line for each call.
pub struct Strace {
    out: Mutex<Box<dyn Write + Send>>,
}

impl Strace {
    /// Makes an observer that writes to `out`.
    pub fn new(out: Box<dyn Write + Send>) -> Strace {
        Strace { out: Mutex::new(out) }
    }

    fn line(&self, pid: i32, text: &str) {
        let mut out = self.out.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // If the reader has closed the pipe, the program continues.
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
