//! Two processes, each of which ends the programs when the other is killed.
//!
//! Programs whose supervisor is gone would run on without a board: their calls would fail with ENOSYS. So `tegrarm-sim run` is two
//! processes. The outer one, which the user started, only waits. The inner one is the supervisor. If the supervisor is killed, the outer
//! one becomes the parent of its programs, kills them, and holds their calls up until then. If the outer one is killed, the supervisor
//! notices that its leash is loose and ends the programs.
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

/// The supervisor's end.
#[derive(Debug)]
pub struct Leash(OwnedFd);

/// In which of the two processes we are.
#[derive(Debug)]
pub enum Side {
    /// In the supervisor.
    Supervisor(Leash),
    /// In the outer process, when everything is over: how the program ended.
    Outer(Exit),
    /// The same, when the supervisor was killed: by this signal.
    Killed(Signal),
}

/// Divides this process, which must have one thread, into two. It returns twice.
///
/// # Errors
/// When there is no second process or no pair of sockets.
pub fn divide() -> Result<Side, Errno> {
    // Messages, so that what is told stays apart from the descriptor that is held.
    let (outer, inner) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
    awaited().thread_block()?;
    nix::sys::prctl::set_child_subreaper(true)?;
    // SAFETY: this process has one thread, so the child may do whatever its parent may.
    match unsafe { fork() }? {
        ForkResult::Child => {
            // The supervisor runs no code but ours.
            tegra_mm::memfd::own_all_numbers();
            Ok(Side::Supervisor(Leash(inner)))
        }
        ForkResult::Parent { child } => {
            drop(inner);
            Ok(attend(&outer, child))
        }
    }
}

impl Leash {
    /// As long as the outer process is there, calls on `listener` wait instead of failing, whatever happens to this process.
    pub(super) fn holds(&self, listener: &OwnedFd) {
        let rights = [listener.as_raw_fd()];
        // It is kept on its way: the outer process reads only when this one has ended.
        self.send([0, 0], &[ControlMessage::ScmRights(&rights)]);
    }

    /// Everything is over.
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

impl AsFd for Leash {
    /// Hangs up when the outer process has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// What the supervisor told last. A descriptor that comes along is lost, which is what should happen to it now.
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

/// Waits for the supervisor's end and passes signals on to it.
fn attend(outer: &OwnedFd, supervisor: Pid) -> Side {
    loop {
        match awaited().wait() {
            Ok(signal @ (Signal::SIGTERM | Signal::SIGHUP)) => drop(kill(supervisor, signal)),
            // The terminal sends these to everybody, and it is the program's turn to decide.
            Ok(Signal::SIGINT | Signal::SIGQUIT) => {}
            _ => {
                if let Some(ended) = ended(supervisor) {
                    return over(outer, ended);
                }
            }
        }
    }
}

/// How the supervisor ended, if it has.
fn ended(supervisor: Pid) -> Option<WaitStatus> {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return None,
            Ok(status) if status.pid() == Some(supervisor) => return Some(status),
            Ok(_) | Err(Errno::EINTR) => {}
            // There is nobody left.
            Err(_) => return Some(WaitStatus::Exited(supervisor, 0)),
        }
    }
}

fn over(outer: &OwnedFd, ended: WaitStatus) -> Side {
    // The socket is read only after this: until then calls of the programs wait.
    processes::end_all();
    let exit = reported(outer);
    match (exit, ended) {
        (Some(exit), _) => Side::Outer(exit),
        (None, WaitStatus::Signaled(_, signal, _)) => {
            tree::sweep();
            Side::Killed(signal)
        }
        (None, WaitStatus::Exited(_, code)) => Side::Outer(Exit::Code(code)),
        // No other status is an end.
        (None, _) => Side::Outer(Exit::Code(1)),
    }
}
