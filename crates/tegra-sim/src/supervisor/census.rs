//! Tells programs under the supervisor what is alive in the simulated kernel, so that leak checks can count out of
//! process too.
//!
//! [`PATH`] is no file of the board, and no listing shows it. Opening it for reading and writing gives a file with the
//! numbers of that moment. Files that the programs closed before are not counted any more.

use super::{Supervisor, sys};
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::str::{FromStr, Lines};
use tegra_kernel::Census;
use tegrarm_kmd::Errno;

/// The path that a supervised program opens.
pub const PATH: &str = "/dev/tegrarm-sim/census";

/// One line for each number.
fn write(census: &Census) -> String {
    let Census { files, channels, tsgs, handles, memory, syncpoints, doorbells } = census;
    format!(
        "files {files}\nchannels {channels}\ntsgs {tsgs}\nhandles {handles}\nmemory {memory}\nsyncpoints {syncpoints}\n\
         doorbells {doorbells}\n"
    )
}

/// Reads the text of [`write`]. It must have every number in its order.
fn parse(text: &str) -> Option<Census> {
    fn number<T: FromStr>(lines: &mut Lines<'_>, name: &str) -> Option<T> {
        lines.next()?.strip_prefix(name)?.strip_prefix(' ')?.parse().ok()
    }
    let lines = &mut text.lines();
    let census = Census {
        files: number(lines, "files")?,
        channels: number(lines, "channels")?,
        tsgs: number(lines, "tsgs")?,
        handles: number(lines, "handles")?,
        memory: number(lines, "memory")?,
        syncpoints: number(lines, "syncpoints")?,
        doorbells: number(lines, "doorbells")?,
    };
    lines.next().is_none().then_some(census)
}

/// Asks what is alive in the kernel that serves this process. The process must run under `tegrarm-sim run`.
///
/// # Errors
/// `NotFound` in any other process, and `InvalidData` if a supervisor of another version answers.
pub fn census() -> io::Result<Census> {
    let mut text = String::new();
    OpenOptions::new().read(true).write(true).open(PATH)?.read_to_string(&mut text)?;
    parse(&text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("{PATH} reads {text:?}")))
}

impl Supervisor {
    /// Makes the file that a program gets for [`PATH`].
    pub(super) fn open_census(&self) -> Result<OwnedFd, Errno> {
        self.tell_all_closed();
        sys::memfd_with(PATH, &write(&self.kernel.census()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_arrives() {
        let census =
            Census { files: 1, channels: 2, tsgs: 3, handles: 4, memory: 5 << 40, syncpoints: 6, doorbells: 7 };
        assert_eq!(parse(&write(&census)), Some(census));
        let (short, long) = (write(&census).replace("doorbells 7\n", ""), write(&census) + "more 1\n");
        assert_eq!([parse(&short), parse(&long), parse("")], [None; 3]);
    }

    #[test]
    fn nobody_answers_without_a_supervisor() {
        assert_eq!(census().expect_err("no supervisor").kind(), io::ErrorKind::NotFound);
    }
}
