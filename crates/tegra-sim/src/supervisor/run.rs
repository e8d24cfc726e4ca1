//! Starts a program under the supervisor and serves its calls until all processes that it started have ended.

use super::outcome::{Exit, RunError};
use super::outer::OuterLink;
use super::processes::awaited;
use super::spawn::{self, Filters};
use super::view::View;
use super::waiting::Waiting;
use super::workers::Service;
use super::{Broken, Launches, Observer, Supervisor, bus, calls, processes, sys};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tegra_kernel::Kernel;
use tegrarm_kmd::Errno;

/// The ways in which a program can be run.
#[derive(Default)]
pub struct Options {
    /// The observers of its calls.
    pub observers: Vec<Arc<dyn Observer>>,
    /// Whether every call that takes a path is trapped, even if the board's files could be mounted. The program then
    /// sees the host's `/dev` as it is, with devices that are added meanwhile.
    pub trap_paths: bool,
    /// The things that do not work on the board.
    pub broken: Broken,
    /// The launches of each process, if the GPU counts them.
    pub launches: Arc<Launches>,
    /// Whether signals may interrupt calls that have been received, as on hosts before Linux 5.19.
    pub interruptible: bool,
    /// The most that there is of everything that processes divide among themselves, for tests that take all of it.
    pub scarce: Option<u64>,
    /// The socket to the outer process, which hangs up when that process ends.
    pub outer: Option<Arc<OuterLink>>,
}

/// Runs `command` with the board's nodes until it and all processes that it started have ended.
///
/// # Errors
/// The program cannot be started, or the host forbids seccomp notifications.
pub fn run(kernel: Arc<Kernel>, command: Command, options: Options) -> Result<Exit, RunError> {
    let host = |what| move |why: Errno| RunError::Host { what, why: why.into() };
    let waiting = if options.interruptible { Waiting::Interruptible } else { Waiting::here() };
    let Options { observers, broken, launches, scarce, .. } = options;
    let supervisor = Arc::new(Supervisor::new(kernel, observers, broken, launches, waiting, scarce)?);
    supervisor.follow_faults();
    awaited().thread_block().map_err(host("a signal mask"))?;
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    let signals = SignalFd::with_flags(&awaited(), flags).map_err(host("a signal descriptor"))?;
    // Orphans of the tree become children of this process and not of init, because they are under our filter.
    nix::sys::prctl::set_child_subreaper(true).map_err(host("being a subreaper"))?;
    bus::outlive_lost_memory().map_err(host("a signal handler"))?;
    let view = match options.trap_paths {
        true => Err(Errno::ECANCELED),
        false => View::of(&supervisor.tree).map_err(|e| Errno::from_raw(e.raw_os_error().unwrap_or(libc::EIO))),
    };
    let filters = Filters { killable: waiting != Waiting::Interruptible, ..calls::filters() };
    let started = spawn::spawn_trapped(command, filters, view)?;
    supervisor.observe(|o| o.started(started.without_view.map_or(Ok(()), Err)));
    sys::hand_over_directly(started.listener.as_fd());
    if let Some(outer) = &options.outer {
        outer.holds(&started.listener);
    }
    let serving = Service::start(supervisor.clone(), started.listener);
    let service =
        serving.map_err(|why| RunError::Host { what: "a thread", why }).inspect_err(|_| processes::end_all())?;
    let exit = serve(&supervisor, &service, &signals, options.outer.as_deref(), Pid::from_raw(started.pid as i32));
    supervisor.observe(|o| o.ended(service.trapped()));
    supervisor.kernel.shut_down();
    // Threads may still hold the supervisor, so that its directory is removed here and not when it is dropped.
    supervisor.tree.remove();
    Ok(exit)
}

/// The time for which closes wait to be noticed if no call depends on them. Many closes are then noticed together.
const PAUSE: Duration = Duration::from_millis(5);

fn serve(
    supervisor: &Supervisor,
    service: &Service,
    signals: &SignalFd,
    mut outer: Option<&OuterLink>,
    root: Pid,
) -> Exit {
    let mut exit = None;
    let mut looked = Instant::now();
    loop {
        let resting = looked.elapsed() < PAUSE;
        let waiting = resting || supervisor.closes.suspects();
        let timeout =
            if waiting { PollTimeout::try_from(PAUSE).unwrap_or(PollTimeout::MAX) } else { PollTimeout::NONE };
        let nothing = PollFlags::empty();
        let mut fds = vec![
            // The threads receive the calls. This waits only for the end of the programs.
            PollFd::new(service.listener().as_fd(), nothing),
            PollFd::new(signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(supervisor.closes.as_fd(), if resting { nothing } else { PollFlags::POLLIN }),
        ];
        fds.extend(outer.map(|outer| PollFd::new(outer.as_fd(), nothing)));
        if let Err(e) = poll(&mut fds, timeout)
            && e != Errno::EINTR
        {
            tracing::error!("waiting for programs: {e}");
        }
        let happened: Vec<bool> = fds.iter().map(|fd| fd.any().unwrap_or(false)).collect();
        if happened[0] {
            // The last process is ending, and its status may arrive later.
            while exit.is_none()
                && let Ok(status) = waitpid(None, None)
            {
                note(root, status, &mut exit);
            }
            return exit.unwrap_or(Exit::Code(0));
        }
        if happened[1] {
            on_signal(signals, root);
            reap(root, &mut exit);
        }
        if happened[2] || waiting && !resting {
            supervisor.tell_closed();
            looked = Instant::now();
        }
        if happened.get(3) == Some(&true) {
            tracing::error!("the process that was asked to run the programs was killed: they end");
            outer = None;
            processes::end_all();
        }
    }
}

/// Handles a signal. The terminal sends its signals to the whole foreground group, so only signals that were sent to
/// this process alone are passed on.
fn on_signal(signals: &SignalFd, root: Pid) {
    while let Ok(Some(info)) = signals.read_signal() {
        let Ok(signal) = Signal::try_from(info.ssi_signo as i32) else { continue };
        if matches!(signal, Signal::SIGTERM | Signal::SIGHUP) {
            let _ = kill(root, signal);
        }
    }
}

/// Collects ended children.
fn reap(root: Pid, exit: &mut Option<Exit>) {
    while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
        if status == WaitStatus::StillAlive {
            break;
        }
        note(root, status, exit);
    }
}

/// Remembers how the program itself ended.
fn note(root: Pid, status: WaitStatus, exit: &mut Option<Exit>) {
    match status {
        WaitStatus::Exited(pid, code) if pid == root => *exit = Some(Exit::Code(code)),
        WaitStatus::Signaled(pid, signal, _) if pid == root => *exit = Some(Exit::Signal(signal)),
        _ => {}
    }
}
