//! The checker's reports: from the engine to whoever reads them, and the last word when the process ends.
//!
//! A program's library takes the reports from a file of the virtual Orin and prints them, because only it knows the
//! names and the lines of kernels. What nobody has taken is printed here, with the addresses of the instructions.
#![allow(unsafe_code)]

use super::between::Queues;
use once_cell::race::OnceBox;
use sm87_check::{Checker, Party, Report};
use std::fmt::Write as _;
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tegra_hw::{Checks, HwGpu};
use tegrarm_lock::Mutex;
use tegrarm_output::Stderr;

/// The checkers of this process, and the process that speaks for them at its end: a forked child does not.
static AT_EXIT: OnceBox<(u32, Mutex<Vec<Arc<Reports>>>)> = OnceBox::new();

/// A checker and its reports.
#[derive(Debug)]
pub struct Reports {
    checker: Arc<Checker>,
    launches: AtomicU64,
    /// The launches that a fault has ended.
    stopped: AtomicU64,
    /// The exit status of a process that ends well although something was found. 0 leaves it as it is.
    status: i32,
    /// Where the reports wait for a reader.
    hw: OnceLock<Arc<HwGpu>>,
    /// The queues, if races between them are looked for.
    queues: Option<Arc<Queues>>,
}

impl Reports {
    /// The checker that a GPU gets, if anything is to be looked for. It has the last word when the process ends.
    /// If it has found something, a process that has it in itself and ends well ends with `status`, if that is not 0.
    pub fn of(checks: Checks, status: u8) -> Option<Arc<Reports>> {
        let Checks { memory, init, race, strict, sync, order: _, cpu } = checks;
        let (silent, race, strict) = (cpu && !race, race || cpu, strict || cpu);
        let checker = Arc::new(Checker::new(sm87_check::Checks { memory, init, race, strict, sync, silent }));
        let (launches, stopped, status) = (AtomicU64::new(0), AtomicU64::new(0), status.into());
        let queues = strict.then(|| Queues::new(&checker));
        let reports = || Arc::new(Reports { checker, launches, stopped, status, hw: OnceLock::new(), queues });
        let reports = checks.any().then(reports)?;
        if AT_EXIT.get().is_none() && AT_EXIT.set(Box::new((std::process::id(), Mutex::default()))).is_ok() {
            // SAFETY: the function is as the C library wants it, cannot unwind, and gets no pointer.
            unsafe { on_exit(at_exit, std::ptr::null_mut()) };
        }
        if let Some((_, all)) = AT_EXIT.get() {
            all.lock().push(reports.clone());
        }
        Some(reports)
    }

    /// Who looks at a launch.
    pub(crate) fn checker(&self) -> Arc<Checker> {
        self.checker.clone()
    }

    /// The queues, if races between them are looked for.
    pub(crate) fn queues(&self) -> Option<&Arc<Queues>> {
        self.queues.as_ref()
    }

    /// A launch has ended, or a fault has ended it.
    pub(crate) fn launched(&self, failed: bool) {
        self.launches.fetch_add(1, Ordering::Relaxed);
        self.stopped.fetch_add(failed.into(), Ordering::Relaxed);
    }

    /// Reports wait for a reader from now on. They are also the result.
    pub(crate) fn publish(&self, hw: &Arc<HwGpu>) -> Vec<Report> {
        let hw = self.hw.get_or_init(|| hw.clone());
        publish(&self.checker, hw)
    }

    /// How many reports there were so far.
    pub fn count(&self) -> u64 {
        self.checker.counts().map(|(_, count)| count).sum()
    }

    /// How many of them a list of known ones has, as their reader says.
    fn suppressed(&self) -> u64 {
        self.hw.get().map_or(0, |hw| hw.checks.suppressed()).min(self.count())
    }

    /// How many mistakes were found that nobody knew: reports, and launches that a fault has ended.
    pub fn mistakes(&self) -> u64 {
        self.count() - self.suppressed() + self.stopped.load(Ordering::Relaxed)
    }

    /// The reports that nobody has read, and a line that counts all of them.
    pub fn last_word(&self) -> String {
        let unread = self.hw.get().map_or_else(String::new, |hw| hw.checks.take());
        let mut text: String = unread.lines().map(|line| format!("{}\n", readable(line))).collect();
        let kinds = self.checker.counts().filter(|(_, count)| *count > 0);
        let kinds: Vec<_> = kinds.map(|(kind, count)| format!("{} {count}", kind.name())).collect();
        let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
        let (launches, stopped) = (self.launches.load(Ordering::Relaxed), self.stopped.load(Ordering::Relaxed));
        let _ = write!(text, "tegrarm-check: {launches} launches were checked: {} reports{kinds}", self.count());
        let ((left_out, programs), suppressed) = (self.checker.left_out(), self.suppressed());
        for (count, what) in [
            (suppressed, format!("{suppressed} of them are suppressed")),
            (left_out as u64, format!("{left_out} more about {programs} kernels with many were left out")),
            (stopped, format!("a fault has ended {stopped} launches")),
        ] {
            let _ = if count > 0 { write!(text, "; {what}") } else { Ok(()) };
        }
        text.push('\n');
        let checks = self.checker.checks();
        if checks.strict {
            let (bytes, who) = (self.checker.most_bytes(), if checks.silent { "cpu" } else { "race=strict" });
            let _ =
                writeln!(text, "tegrarm-check: {who} kept the accesses of a launch in up to {bytes} bytes of the host");
        }
        text
    }
}

/// What a checker has found waits for a reader from now on. It is also the result.
pub(crate) fn publish(checker: &Checker, hw: &HwGpu) -> Vec<Report> {
    let reports = checker.take();
    reports.iter().for_each(|report| hw.checks.note(line(report)));
    reports
}

/// Says the last word of every checker of the process, once. Returns how many mistakes were found.
pub fn finish_checks() -> u64 {
    let Some((_, all)) = AT_EXIT.get().filter(|(pid, _)| *pid == std::process::id()) else { return 0 };
    let all = std::mem::take(&mut *all.lock());
    for reports in &all {
        let _ = Stderr.write(reports.last_word().as_bytes());
    }
    all.iter().map(|reports| reports.mistakes()).sum()
}

unsafe extern "C" {
    /// `on_exit(3)` of glibc: like `atexit`, and the function learns the exit status.
    fn on_exit(function: extern "C" fn(libc::c_int, *mut libc::c_void), argument: *mut libc::c_void) -> libc::c_int;
}

extern "C" fn at_exit(status: libc::c_int, _: *mut libc::c_void) {
    let wanted = AT_EXIT.get().and_then(|(_, all)| all.lock().iter().map(|reports| reports.status).max()).unwrap_or(0);
    if finish_checks() > 0 && status == 0 && wanted != 0 {
        // SAFETY: every stream is flushed, as `exit` would do next, and the process ends.
        unsafe {
            libc::fflush(std::ptr::null_mut());
            libc::_exit(wanted);
        }
    }
}

/// A report as a line whose parts are divided by tabs.
fn line(report: &Report) -> String {
    let mut line = format!("{}: {}", report.kind.name(), report.title);
    for Party { what, pc, word, threads } in &report.parties {
        let three = |[x, y, z]: [u32; 3]| format!("({x}, {y}, {z})");
        let _ = write!(line, "\t{what}");
        if let Some((block, thread)) = threads {
            let _ = write!(line, " by thread {} of block {}", three(*thread), three(*block));
        }
        if *pc != 0 {
            let instruction = sm87::disassemble(*word as u64, (word >> 64) as u64, *pc).unwrap_or_default();
            let _ = write!(line, " at pc {pc:#x}: {instruction}");
        }
    }
    line.replace('\n', " ")
}

/// A line as people read it.
fn readable(line: &str) -> String {
    format!("tegrarm-check: {}", line.replace('\t', "\n    "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sm87_check::Kind;

    #[test]
    fn a_report_has_a_line_for_each_party() {
        let party =
            |what: &str, x| Party { what: what.to_owned(), pc: 0x1230, word: 0, threads: Some(([1, 0, 0], [x, 0, 0])) };
        let copy = Party { what: "earlier copy".to_owned(), pc: 0, word: 0, threads: None };
        let parties = vec![party("store", 5), party("load", 6), copy];
        let text = line(&Report { kind: Kind::Memory, title: "wrong".to_owned(), parties });
        let parts: Vec<_> = text.split('\t').collect();
        assert_eq!(parts[0], "memory: wrong");
        assert!(parts[1].starts_with("store by thread (5, 0, 0) of block (1, 0, 0) at pc 0x1230: "), "{text}");
        assert_eq!((parts[3], readable(&text).lines().count()), ("earlier copy", 4));
    }

    #[test]
    fn nothing_is_checked_unless_it_is_asked_for() {
        assert!(Reports::of(Checks::default(), 0).is_none());
    }
}
