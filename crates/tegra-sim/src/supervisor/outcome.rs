//! How a program ended, or why it was not run.

use nix::sys::signal::Signal;
use std::io;
use std::path::PathBuf;

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It ended with this exit status.
    Code(i32),
    /// This signal ended it.
    Signal(Signal),
}

/// The reason why a program was not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The files of the board could not be made.
    #[error("the board's files cannot be made in {}: {why} (TMPDIR names another directory)", .directory.display())]
    Files {
        /// The directory for temporary files.
        directory: PathBuf,
        /// The error of the file system.
        why: io::Error,
    },
    /// The host does not provide something that a supervisor needs.
    #[error("the host refuses {what}: {why}")]
    Host {
        /// The thing that the host does not provide.
        what: &'static str,
        /// The host's error.
        why: io::Error,
    },
    /// The program cannot be executed.
    #[error(transparent)]
    Program(io::Error),
}
