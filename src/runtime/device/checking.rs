//! What a kernel that looks into GPU code is told about it, and what it reports about mistakes there. Only the library knows the names
//! and the lines.

use crate::runtime::device::{Device, suppressions};
use crate::runtime::fault::address_map::AddressMap;
use crate::runtime::fault::with_places;
use std::fmt::Write as _;
use std::io::Write;
use std::sync::Arc;
use tegrarm_images::cubin::Cubin;
use tegrarm_kmd::watched;
use tegrarm_output::Stderr;
use tegrarm_rm::rm::profile::Wanted;

impl Device {
    /// Prints the reports that the kernel has made since the last call.
    pub(super) fn print_reports(&self) {
        let rm = self.session().rm();
        let Some(reports) = rm.check_reports() else { return };
        let known = self.base().diagnostics().known();
        let reports = reports.lines().map(|line| readable(line, known));
        let (suppressed, new): (Vec<_>, Vec<_>) = reports.partition(|report| suppressions::is_known(report));
        // If standard error is gone, nobody reads reports.
        let _ = Stderr.write_all(new.concat().as_bytes());
        if !suppressed.is_empty() {
            rm.suppress_reports(suppressed.len() as u64);
        }
    }

    /// Notes that a module was loaded, and tells the kernel about its code if the kernel has a use for that.
    pub(super) fn loaded(&self, at: u64, cubin: &Arc<Cubin>) {
        let diagnostics = self.base().diagnostics();
        diagnostics.known().loaded(at, cubin);
        if let Some(wanted) = diagnostics.wanted(|| self.rm().wanted()) {
            self.rm().tell_code(&told(at, cubin, wanted));
        }
    }

    /// Notes that the module at an address is unloaded.
    pub(super) fn unloaded(&self, at: u64) {
        let diagnostics = self.base().diagnostics();
        diagnostics.known().unloaded(at);
        if diagnostics.wanted(|| None).is_some() {
            self.rm().tell_code(&format!("gone\t{at:#x}\n"));
        }
    }
}

/// What the kernel is told about a module: where it is, its functions, and its lines if they are wanted.
fn told(at: u64, cubin: &Cubin, wanted: Wanted) -> String {
    let one = |name: &str| name.replace(['\t', '\n'], " ");
    let mut text = format!("module\t{at:#x}\t{:#x}\n", cubin.memory_size());
    for function in cubin.functions() {
        let _ = writeln!(text, "function\t{:#x}\t{:#x}\t{}", at + function.offset, function.size, one(&function.name));
    }
    let lines = if wanted.lines { cubin.lines() } else { Vec::new() };
    for (range, line) in lines {
        let (start, end) = (at + range.start, at + range.end);
        let _ = writeln!(text, "line\t{start:#x}\t{end:#x}\t{}\t{}", line.line, one(&line.file));
    }
    text
}

/// A line of the kernel, whose parts are divided by tabs, as people read it.
fn readable(line: &str, known: &AddressMap) -> String {
    let parts = with_places(line, known);
    let parts: Vec<_> = parts.split('\t').map(with_calls).collect();
    format!("tegrarm-check: {}\n", parts.join("\n    "))
}

/// A part of a report, with the calls that led to an access of the processor in the place of their number.
fn with_calls(part: &str) -> String {
    const CALLS: &str = " (calls ";
    let found = part.strip_suffix(')').and_then(|part| part.rsplit_once(CALLS));
    let Some((before, number)) = found else { return part.to_owned() };
    match number.parse().ok().and_then(watched::calls) {
        Some(calls) => calls.to_string().lines().fold(format!("{before}:"), |text, line| text + "\n        " + line),
        None => before.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_a_line_for_each_part() {
        let line = "memory: wrong\tload by thread (1, 0, 0) of block (0, 0, 0) at pc 0x10: LDG";
        let text = "tegrarm-check: memory: wrong\n    load by thread (1, 0, 0) of block (0, 0, 0) at pc 0x10: LDG\n";
        assert_eq!(readable(line, &AddressMap::default()), text);
    }
}
