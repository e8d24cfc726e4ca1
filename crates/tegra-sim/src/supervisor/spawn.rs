//! Starts a program under the filter.
#![allow(unsafe_code)]

use super::outcome::RunError;
use super::sys;
use super::view::View;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use tegrarm_kmd::Errno;

/// A program that was started under the filter.
#[derive(Debug)]
pub struct Started {
    /// Its process id.
    pub pid: u32,
    /// The descriptor at which its trapped calls arrive.
    pub listener: OwnedFd,
    /// The reason why it has no view of its own, if it has none.
    pub without_view: Option<Errno>,
}

/// The filters of a program that has a view of its own (see [`View`]), and of a program that has none.
#[derive(Clone, Debug)]
pub struct Filters {
    /// The filter of a program with a view.
    pub viewing: Vec<libc::sock_filter>,
    /// The filter of a program without a view, in which calls that take a path are trapped.
    pub blind: Vec<libc::sock_filter>,
    /// Whether only a deadly signal interrupts a call that has been received.
    pub killable: bool,
}

/// Starts `command` under a filter. It gets the view if the host allows that, and the filter is chosen accordingly.
///
/// # Errors
/// `Host` if the filter cannot be installed, and `Program` if the program cannot be executed.
pub fn spawn_trapped(mut command: Command, filters: Filters, view: Result<View, Errno>) -> Result<Started, RunError> {
    let host = |what| move |why: io::Error| RunError::Host { what, why };
    let (ours, theirs) = UnixStream::pair().map_err(host("a pair of sockets"))?;
    let prepare = move || {
        // This process blocks signals for its signalfd. The program must not inherit that.
        SigSet::empty().thread_set_mask()?;
        if let Some((soft, hard)) = tegra_mm::memfd::limit_before() {
            setrlimit(Resource::RLIMIT_NOFILE, soft, hard)?;
        }
        // The program must end if both the supervisor and the outer process die.
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
        let entered = view.as_ref().map_err(|e| *e).and_then(View::enter);
        let filter = if entered.is_ok() { &filters.viewing } else { &filters.blind };
        let listener = sys::install(filter, filters.killable)?;
        let rights = [listener.as_raw_fd()];
        let refused = entered.err().map_or(0, |e| e as i32).to_ne_bytes();
        sendmsg::<()>(
            theirs.as_raw_fd(),
            &[IoSlice::new(&refused)],
            &[ControlMessage::ScmRights(&rights)],
            MsgFlags::empty(),
            None,
        )?;
        Ok(())
    };
    // SAFETY: `prepare` runs in the child between fork and exec. It makes system calls and small allocations, and no
    // other thread of this process exists yet that could hold the allocator's lock.
    let spawned = unsafe { command.pre_exec(prepare) }.spawn();
    // The sender must not stay open here, because otherwise its end could not be noticed.
    drop(command);
    let received = receive_fd(&ours);
    let child = match (&received, spawned) {
        (_, Ok(child)) => child,
        // If there is a listener, all steps before exec have succeeded, and the program could not be executed.
        (Ok(_), Err(why)) => return Err(RunError::Program(why)),
        (Err(_), Err(why)) => return Err(host("a process with a seccomp filter and a listener")(why)),
    };
    let (listener, refused) = received.map_err(host("the descriptor of the seccomp listener"))?;
    let without_view = (refused != 0).then(|| Errno::from_raw(refused));
    Ok(Started { pid: child.id(), listener, without_view })
}

/// Receives the descriptor and the number that the child sent.
fn receive_fd(stream: &UnixStream) -> io::Result<(OwnedFd, i32)> {
    let mut number = [0; 4];
    let mut space = nix::cmsg_space!([RawFd; 1]);
    let mut iov = [IoSliceMut::new(&mut number)];
    let message = recvmsg::<()>(stream.as_raw_fd(), &mut iov, Some(&mut space), MsgFlags::MSG_CMSG_CLOEXEC)?;
    let mut received = None;
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(fds) = control
            && let [fd] = fds[..]
        {
            // SAFETY: the kernel has just installed this descriptor for us.
            received = Some(unsafe { OwnedFd::from_raw_fd(fd) });
        }
    }
    let fd = received.ok_or_else(|| io::Error::other("the child did not send its seccomp listener"))?;
    Ok((fd, i32::from_ne_bytes(number)))
}
