//! Pollable event descriptors of a channel group.

use super::hw::NonStall;
use crate::mm::memfd;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::{pipe2, write};
use parking_lot::Mutex;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use tegrarm_abi::nvgpu::channel::NVGPU_IOCTL_CHANNEL_EVENT_ID_BLOCKING_SYNC;
use tegrarm_kmd::Errno;

/// One event of one group: a pipe whose read end the program polls. (On a board a poll clears the event and
/// reports POLLPRI too; here it stays readable until its byte is read.)
#[derive(Debug)]
pub(super) struct EventFd {
    pub id: u32,
    post: OwnedFd,
    /// Keeps the pipe readable by someone: writing to it never raises SIGPIPE.
    _reader: OwnedFd,
}

impl EventFd {
    /// The event, and the descriptor for the program.
    pub(super) fn new(id: u32) -> Result<(EventFd, OwnedFd), Errno> {
        let (theirs, post) = pipe2(OFlag::O_CLOEXEC)?;
        let post = memfd::stow(post)?;
        for end in [&theirs, &post] {
            fcntl(end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        }
        // One page is enough: a full pipe is a posted event.
        fcntl(&post, FcntlArg::F_SETPIPE_SZ(4096))?;
        let reader = memfd::stow(memfd::duplicate(&theirs)?)?;
        Ok((EventFd { id, post, _reader: reader }, theirs))
    }

    /// Makes the descriptor ready.
    pub(super) fn post(&self) {
        match write(&self.post, &[1]) {
            // Full: posted already.
            Ok(_) | Err(Errno::EAGAIN) => {}
            Err(errno) => tracing::warn!(%errno, "an event could not be posted"),
        }
    }
}

/// The events a group was asked for.
#[derive(Debug, Default)]
pub(super) struct Events {
    list: Mutex<Vec<Weak<EventFd>>>,
}

impl Events {
    pub(super) fn add(&self, event: &Arc<EventFd>) {
        let mut list = self.list.lock();
        list.retain(|e| e.strong_count() > 0);
        list.push(Arc::downgrade(event));
    }

    /// Whether someone listens to `id`.
    pub(super) fn has(&self, id: u32) -> bool {
        self.list.lock().iter().filter_map(Weak::upgrade).any(|e| e.id == id)
    }
}

impl NonStall for Events {
    fn awaken(&self) {
        let events: Vec<_> = self.list.lock().iter().filter_map(Weak::upgrade).collect();
        events.iter().filter(|e| e.id == NVGPU_IOCTL_CHANNEL_EVENT_ID_BLOCKING_SYNC).for_each(|e| e.post());
    }
}
