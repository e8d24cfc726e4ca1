//! Shows how far a long replay is, in a line on standard error. The line is written only if standard error is a
//! terminal.

use std::io::{IsTerminal, Write};

/// A line that is overwritten again and again.
pub struct Progress {
    watched: bool,
    shown: usize,
}

impl Progress {
    pub fn new() -> Progress {
        Progress { watched: std::io::stderr().is_terminal(), shown: 0 }
    }

    /// Shows that `made` of `of` calls are done. The line is written once for each percent.
    pub fn show(&mut self, made: usize, of: usize) {
        let percent = made * 100 / of.max(1);
        if self.watched && percent != self.shown {
            self.shown = percent;
            // If the line cannot be written, the replay continues.
            let _ = write!(std::io::stderr(), "\r{made} of {of} calls ({percent} %)");
        }
    }

    /// Ends the line, so that the next output begins on a new one.
    pub fn end(&self) {
        if self.shown > 0 {
            let _ = writeln!(std::io::stderr());
        }
    }
}
