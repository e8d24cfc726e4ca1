//! How a program ended, or why it was not run.

use nix::sys::signal::Signal;
use std::io;
use std::path::PathBuf;

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this status.
    Code(i32),
    /// By this signal.
    Signal(Signal),
}

/// Why a program was not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The board's files have nowhere to be.
    #[error("the board's files cannot be made in {}: {why} (TMPDIR names another directory)", .directory.display())]
    Files {
        /// The directory for temporary files.
        directory: PathBuf,
        /// What the file system says.
        why: io::Error,
    },
    /// The host does not give what a supervisor needs.
    #[error("the host refuses {what}: {why}")]
    Host {
        /// What that is.
        what: &'static str,
        /// What it says.
        why: io::Error,
    },
    /// The program cannot be executed.
    #[error(transparent)]
    Program(io::Error),
}
