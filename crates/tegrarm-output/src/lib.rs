//! Output that cannot end the program.
//!
//! The standard error of a host program may be closed or full, or it may be a pipe that nobody reads. A recording may
//! become longer than the files that the program may write. `write(2)` then fails, but it may also raise SIGPIPE or
//! SIGXFSZ. These signals end a program that does not ignore them, although the program never asked for this output.
//! Nor is there a lock: Rust's own lock of standard error stays locked in a child that is forked while a thread of the parent writes a line.
#![allow(unsafe_code)]

pub mod settings;

use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use std::io::{self, Write};

/// The signals that a write may raise in its thread.
const RAISED: [Signal; 2] = [Signal::SIGPIPE, Signal::SIGXFSZ];

/// Standard error. If a text cannot be written, no error is reported, because there is no place left to report it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        without_signals(|| write_all(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a sentence of libtegrarm to standard error.
pub fn say(sentence: &str) {
    say_as("libtegrarm", sentence);
}

/// Writes a sentence to standard error, which begins with the name of the library whose sentence it is.
pub fn say_as(library: &str, sentence: &str) {
    let _ = Stderr.write(format!("{library}: {sentence}\n").as_bytes());
}

/// Writes as much to standard error as it takes.
fn write_all(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match nix::unistd::write(io::stderr(), bytes) {
            Ok(0) => return,
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::EINTR) => {}
            Err(_) => return,
        }
    }
}

/// A file whose writes can fail, but cannot raise a signal.
#[derive(Debug)]
pub struct Harmless<W>(pub W);

impl<W: Write> Write for Harmless<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        without_signals(|| self.0.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        without_signals(|| self.0.flush())
    }
}

/// Runs `write` with the signals blocked, and takes those that it raised.
fn without_signals<T>(write: impl FnOnce() -> T) -> T {
    let set: SigSet = RAISED.into_iter().collect();
    let pending = |signal| is_pending(signal);
    let before = RAISED.map(pending);
    let Ok(mask) = set.thread_swap_mask(SigmaskHow::SIG_BLOCK) else { return write() };
    let result = write();
    for (signal, was) in RAISED.into_iter().zip(before) {
        if !was && is_pending(signal) {
            take(signal);
        }
    }
    // This is the mask that was valid a moment ago.
    let _ = mask.thread_set_mask();
    result
}

fn is_pending(signal: Signal) -> bool {
    // SAFETY: an all-zero set is valid, and the call fills it.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigpending(&raw mut set) == 0 && libc::sigismember(&raw const set, signal as libc::c_int) == 1
    }
}

/// Takes a pending signal of this thread. Afterwards it is as if the signal had not been raised.
fn take(signal: Signal) {
    let set: SigSet = std::iter::once(signal).collect();
    let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the set and the time are valid, and no information is asked for.
    unsafe { libc::sigtimedwait(set.as_ref(), std::ptr::null_mut(), &raw const at_once) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::{SaFlags, SigAction, SigHandler, sigaction};
    use std::process::{Command, Stdio};

    /// The test runs in its own process, with the default actions and with a pipe that nobody reads.
    #[test]
    fn a_broken_pipe_and_a_full_file_end_nobody() {
        const ROLE: &str = "TEGRARM_TEST_OUTPUT_ROLE";
        if std::env::var_os(ROLE).is_none() {
            let (reader, writer) = std::io::pipe().expect("a pipe");
            drop(reader);
            let mut child = Command::new(std::env::current_exe().expect("this program"));
            child.args(["tests::a_broken_pipe_and_a_full_file_end_nobody", "--exact"]).env(ROLE, "1");
            let status = child.stderr(Stdio::from(writer)).status().expect("it starts");
            assert!(status.success(), "{status}");
            return;
        }
        for signal in RAISED {
            let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
            // SAFETY: the default action calls no function of this program.
            unsafe { sigaction(signal, &default) }.expect("an action");
        }
        say("nobody reads this");
        assert!(!is_pending(Signal::SIGPIPE));
        // A pipe is written like any file, but the error is another one.
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        assert_eq!(Harmless(writer).write(b"x").expect_err("broken").kind(), io::ErrorKind::BrokenPipe);
        nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_FSIZE, 4, 4).expect("a limit");
        let file = tempfile();
        let full = Harmless(file).write_all(b"more than four bytes").expect_err("full");
        assert_eq!(full.raw_os_error(), Some(libc::EFBIG));
        // A signal that was sent to the program itself is still pending afterwards.
        let set: SigSet = RAISED.into_iter().collect();
        set.thread_block().expect("a mask");
        nix::sys::signal::raise(Signal::SIGPIPE).expect("a signal");
        say("nobody reads this either");
        assert!(is_pending(Signal::SIGPIPE));
        std::process::exit(0);
    }

    fn tempfile() -> std::fs::File {
        let path = std::env::temp_dir().join(format!("tegrarm-output-{}", std::process::id()));
        let file = std::fs::File::create(&path).expect("a file");
        std::fs::remove_file(path).expect("removed");
        file
    }
}
