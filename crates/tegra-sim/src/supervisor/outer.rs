//! Two processes, each of which ends the programs when the other is killed.
//!
//! Without their supervisor, programs would continue without a board, and their calls would fail with ENOSYS. So
//! `tegrarm-sim run` is two processes. The outer one, which the user started, only waits. The inner one is the
//! supervisor. If the supervisor is killed, the outer process becomes the parent of its programs. It holds their calls
//! until it has killed them. If the outer process is killed, the supervisor sees that the socket between them has hung
//! up, and ends the programs.
#![allow(unsafe_code)]

use super::outcome::Exit;
use super::processes::{self, awaited};
use super::tree;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, recv, sendmsg, socketpair};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};
use std::io::IoSlice;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The supervisor's end of the socket to the outer process.
#[derive(Debug)]
pub struct OuterLink(OwnedFd);

/// The process in which [`divide`] has returned.
#[derive(Debug)]
pub enum Side {
    /// This is the supervisor.
    Supervisor(OuterLink),
    /// This is the outer process, and the program has ended in this way.
    Outer(Exit),
    /// This is the outer process, and this signal killed the supervisor.
    Killed(Signal),
}

/// Divides this process, which must have one thread, into two. It returns twice.
///
/// # Errors
/// The errno of making the second process or the pair of sockets.
pub fn divide() -> Result<Side, Errno> {
    // The socket keeps messages apart, so that a report is not mixed with the descriptor that is held.
    let (outer, inner) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
    awaited().thread_block()?;
    nix::sys::prctl::set_child_subreaper(true)?;
    // SAFETY: this process has one thread, so that the child may do everything that its parent may do.
    match unsafe { fork() }? {
        ForkResult::Child => {
            // The supervisor executes no code of other programs, so that all its descriptor numbers are its own.
            tegra_mm::memfd::own_all_numbers();
            Ok(Side::Supervisor(OuterLink(inner)))
        }
        ForkResult::Parent { child } => {
            drop(inner);
            Ok(attend(&outer, child))
        }
    }
}

impl OuterLink {
    /// Keeps `listener` open in the outer process. As long as that process lives, calls on it wait instead of failing,
    /// whatever happens to this process.
    pub(super) fn holds(&self, listener: &OwnedFd) {
        let rights = [listener.as_raw_fd()];
        // The descriptor stays in the socket, because the outer process reads only after this process has ended.
        self.send([0, 0], &[ControlMessage::ScmRights(&rights)]);
    }

    /// Reports how the program ended.
    pub fn report(&self, exit: Exit) {
        match exit {
            Exit::Code(code) => self.send([1, code], &[]),
            Exit::Signal(signal) => self.send([2, signal as i32], &[]),
        }
    }

    fn send(&self, words: [i32; 2], with: &[ControlMessage<'_>]) {
        let bytes = words.map(i32::to_ne_bytes).concat();
        let sent = sendmsg::<()>(self.0.as_raw_fd(), &[IoSlice::new(&bytes)], with, MsgFlags::MSG_NOSIGNAL, None);
        if let Err(e) = sent {
            tracing::warn!("the process that was asked to run the program cannot be told: {e}");
        }
    }
}

impl AsFd for OuterLink {
    /// The descriptor hangs up when the outer process has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The supervisor's last report. A descriptor that comes with it is closed, as it should be at this time.
fn reported(outer: &OwnedFd) -> Option<Exit> {
    let mut bytes = [0; 8];
    let mut exit = None;
    while recv(outer.as_raw_fd(), &mut bytes, MsgFlags::MSG_DONTWAIT) == Ok(8) {
        let word = |at: usize| i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        exit = match word(0) {
            1 => Some(Exit::Code(word(4))),
            2 => Signal::try_from(word(4)).ok().map(Exit::Signal),
            _ => exit,
        };
    }
    exit
}

/// Waits until the supervisor ends, and passes signals on to it.
fn attend(outer: &OwnedFd, supervisor: Pid) -> Side {
    loop {
        match awaited().wait() {
            Ok(signal @ (Signal::SIGTERM | Signal::SIGHUP)) => drop(kill(supervisor, signal)),
            // The terminal sends these signals to all processes, and the program decides what they do.
            Ok(Signal::SIGINT | Signal::SIGQUIT) => {}
            _ => {
                if let Some(ended) = ended(supervisor) {
                    return over(outer, ended);
                }
            }
        }
    }
}

/// How the supervisor ended, if it has ended.
fn ended(supervisor: Pid) -> Option<WaitStatus> {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return None,
            Ok(status) if status.pid() == Some(supervisor) => return Some(status),
            Ok(_) | Err(Errno::EINTR) => {}
            // There is no such process any more.
            Err(_) => return Some(WaitStatus::Exited(supervisor, 0)),
        }
    }
}

fn over(outer: &OwnedFd, ended: WaitStatus) -> Side {
    // The socket is read only after this. Until then the calls of the programs wait.
    processes::end_all();
    let exit = reported(outer);
    match (exit, ended) {
        (Some(exit), _) => Side::Outer(exit),
        (None, WaitStatus::Signaled(_, signal, _)) => {
            tree::sweep();
            Side::Killed(signal)
        }
        (None, WaitStatus::Exited(_, code)) => Side::Outer(Exit::Code(code)),
        // No other status means that the process has ended.
        (None, _) => Side::Outer(Exit::Code(1)),
    }
}
