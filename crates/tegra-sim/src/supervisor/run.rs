//! Starts a program under the supervisor and serves its calls until everybody it started is gone.

use super::sys::{self, Notification};
use super::view::View;
use super::{Broken, Observer, Supervisor, calls};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::SignalFd;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Command;
use std::sync::Arc;
use tegra_kernel::Kernel;
use tegrarm_kmd::Errno;

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this status.
    Code(i32),
    /// By this signal.
    Signal(Signal),
}

/// How a program is run.
#[derive(Default)]
pub struct Options {
    /// Who sees its calls.
    pub observers: Vec<Arc<dyn Observer>>,
    /// Trap every call that takes a path, even if the board's files could be mounted: the program then sees the host's
    /// `/dev` as it is, new devices included.
    pub trap_paths: bool,
    /// What is wrong with the board.
    pub broken: Broken,
}

/// Runs `command` with the board's nodes until it and everything it started has ended.
///
/// # Errors
/// When the program cannot be started, or the host forbids seccomp notifications.
pub fn run(kernel: Arc<Kernel>, command: Command, options: Options) -> io::Result<Exit> {
    let supervisor = Arc::new(Supervisor::new(kernel, options.observers, options.broken)?);
    let mut mask = SigSet::empty();
    for signal in [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT] {
        mask.add(signal);
    }
    mask.thread_block()?;
    let signals = SignalFd::new(&mask)?;
    // Orphans of the tree come to us, not to init: they still hold files.
    nix::sys::prctl::set_child_subreaper(true)?;
    let view = match options.trap_paths {
        true => Err(Errno::ECANCELED),
        false => View::of(&supervisor.tree).map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or(libc::EIO))),
    };
    let started = sys::spawn_trapped(command, calls::filters(), view)?;
    supervisor.observe(|o| o.started(started.without_view.map_or(Ok(()), Err)));
    sys::hand_over_directly(started.listener.as_fd());
    let exit = serve(&supervisor, &Arc::new(started.listener), &signals, Pid::from_raw(started.pid as i32))?;
    supervisor.kernel.shut_down();
    Ok(exit)
}

fn serve(supervisor: &Arc<Supervisor>, listener: &Arc<OwnedFd>, signals: &SignalFd, root: Pid) -> io::Result<Exit> {
    let (mut exit, mut trapped) = (None, 0);
    loop {
        let mut fds =
            [PollFd::new(listener.as_fd(), PollFlags::POLLIN), PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::NONE) {
            Err(nix::errno::Errno::EINTR) => continue,
            other => other?,
        };
        let [calls, sigs] = fds.map(|fd| fd.revents().unwrap_or(PollFlags::empty()));
        if calls.contains(PollFlags::POLLIN) {
            if let Some(call) = sys::receive(listener.as_fd())? {
                trapped += 1;
                dispatch(supervisor, listener, call);
            }
        } else if calls.intersects(PollFlags::POLLHUP | PollFlags::POLLERR) {
            // The last one is leaving; its status may still be on the way.
            while exit.is_none() {
                note(root, waitpid(None, None)?, &mut exit);
            }
            supervisor.observe(|o| o.ended(trapped));
            return Ok(exit.unwrap_or(Exit::Code(0)));
        }
        if sigs.contains(PollFlags::POLLIN) {
            on_signal(signals, root);
            if reap(root, &mut exit) {
                supervisor.collect_garbage();
            }
        }
    }
}

/// Answers a call; one that may sleep gets a thread of its own, so that it holds nobody up.
fn dispatch(supervisor: &Arc<Supervisor>, listener: &Arc<OwnedFd>, call: Notification) {
    if !calls::sleeps(&call) {
        return answer(supervisor, listener, &call);
    }
    let (supervisor, listener) = (supervisor.clone(), listener.clone());
    std::thread::spawn(move || answer(&supervisor, &listener, &call));
}

fn answer(supervisor: &Arc<Supervisor>, listener: &OwnedFd, call: &Notification) {
    let reply = supervisor.decide(listener.as_fd(), call);
    sys::reply(listener.as_fd(), call.id, reply);
}

/// The terminal sends its signals to the whole foreground group; those sent to us alone are passed on.
fn on_signal(signals: &SignalFd, root: Pid) {
    while let Ok(Some(info)) = signals.read_signal() {
        let Ok(signal) = Signal::try_from(info.ssi_signo as i32) else { continue };
        if matches!(signal, Signal::SIGTERM | Signal::SIGHUP) {
            let _ = kill(root, signal);
        }
        if signal == Signal::SIGCHLD {
            return;
        }
    }
}

/// Collects ended children; whether there was any.
fn reap(root: Pid, exit: &mut Option<Exit>) -> bool {
    let mut any = false;
    while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
        if status == WaitStatus::StillAlive {
            break;
        }
        any = true;
        note(root, status, exit);
    }
    any
}

/// Remembers how the program itself ended.
fn note(root: Pid, status: WaitStatus, exit: &mut Option<Exit>) {
    match status {
        WaitStatus::Exited(pid, code) if pid == root => *exit = Some(Exit::Code(code)),
        WaitStatus::Signaled(pid, signal, _) if pid == root => *exit = Some(Exit::Signal(signal)),
        _ => {}
    }
}
