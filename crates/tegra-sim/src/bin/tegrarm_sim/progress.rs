//! How far a long replay is: a line on standard error, where a person looks at it.

use std::io::{IsTerminal, Write};

/// A line that is written over again and again.
pub struct Progress {
    watched: bool,
    shown: usize,
}

impl Progress {
    pub fn new() -> Progress {
        Progress { watched: std::io::stderr().is_terminal(), shown: 0 }
    }

    /// Shows that `made` of `of` are done, once for each percent.
    pub fn show(&mut self, made: usize, of: usize) {
        let percent = made * 100 / of.max(1);
        if self.watched && percent != self.shown {
            self.shown = percent;
            // Progress that cannot be shown is no reason to stop.
            let _ = write!(std::io::stderr(), "\r{made} of {of} calls ({percent} %)");
        }
    }

    /// Leaves the line.
    pub fn end(&self) {
        if self.shown > 0 {
            let _ = writeln!(std::io::stderr());
        }
    }
}
