//! Reports of the kernel about mistakes of GPU code, with the names and the lines that only the library knows.

use crate::runtime::device::Device;
use crate::runtime::fault::address_map::AddressMap;
use crate::runtime::fault::with_places;
use std::io::Write;
use tegrarm_output::Stderr;

impl Device {
    /// Prints the reports that the kernel has made since the last call.
    pub(super) fn print_reports(&self) {
        let Some(reports) = self.session().rm().check_reports() else { return };
        let known = self.base().diagnostics().known();
        let text: String = reports.lines().map(|line| readable(line, known)).collect();
        // If standard error is gone, nobody reads reports.
        let _ = Stderr.write_all(text.as_bytes());
    }
}

/// A line of the kernel, whose parts are divided by tabs, as people read it.
fn readable(line: &str, known: &AddressMap) -> String {
    format!("tegrarm-check: {}\n", with_places(line, known).replace('\t', "\n    "))
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
