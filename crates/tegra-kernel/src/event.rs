//! Pollable event descriptors of a channel group.

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, send, socketpair};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Weak};
use tegra_hw::{Awakening, Listener};
use tegra_mm::memfd;
use tegrarm_abi::nvgpu::channel::{
    NVGPU_IOCTL_CHANNEL_EVENT_ID_BLOCKING_SYNC, NVGPU_IOCTL_CHANNEL_EVENT_ID_GR_SEMAPHORE_WRITE_AWAKEN,
};
use tegrarm_kmd::Errno;
use tegrarm_lock::Mutex;

/// One event: a socket whose other end the program polls. Out-of-band data makes it ready for POLLPRI and for POLLIN.
/// On a board, the poll that reports the event clears it. Here it stays.
#[derive(Debug)]
pub(super) struct EventFd {
    pub id: u32,
    post: OwnedFd,
}

impl EventFd {
    /// Makes an event, and the descriptor for the program.
    pub(super) fn new(id: u32) -> Result<(EventFd, OwnedFd), Errno> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let (theirs, post) = socketpair(AddressFamily::Unix, SockType::Stream, None, flags)?;
        Ok((EventFd { id, post: memfd::stow(post)? }, theirs))
    }

    /// Makes the descriptor ready.
    pub(super) fn post(&self) {
        if memfd::is_unread(&self.post) {
            return;
        }
        let put = |flags| send(self.post.as_raw_fd(), &[1], flags | MsgFlags::MSG_NOSIGNAL);
        // A host may not support out-of-band data on such sockets. Then the descriptor becomes ready for POLLIN only.
        let sent = put(MsgFlags::MSG_OOB).or_else(|_| put(MsgFlags::empty()));
        match sent {
            // The program has closed its end, and nobody can wait for it any more.
            Ok(_) | Err(Errno::EPIPE) => {}
            Err(errno) => tracing::warn!(%errno, "an event could not be posted"),
        }
    }

    /// A duplicate of our end, which hangs up when the program's has been closed everywhere.
    pub(super) fn our_end(&self) -> Option<OwnedFd> {
        memfd::stow(memfd::duplicate(&self.post).ok()?).ok()
    }
}

/// The events that programs asked of a group.
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

    /// Whether a program listens to `id`.
    pub(super) fn has(&self, id: u32) -> bool {
        self.list.lock().iter().filter_map(Weak::upgrade).any(|e| e.id == id)
    }
}

impl Listener for Events {
    fn awaken(&self, awakening: Awakening) {
        let id = match awakening {
            Awakening::NonStall => NVGPU_IOCTL_CHANNEL_EVENT_ID_BLOCKING_SYNC,
            Awakening::Semaphore => NVGPU_IOCTL_CHANNEL_EVENT_ID_GR_SEMAPHORE_WRITE_AWAKEN,
            Awakening::Notifier => return,
        };
        let events: Vec<_> = self.list.lock().iter().filter_map(Weak::upgrade).collect();
        events.iter().filter(|e| e.id == id).for_each(|e| e.post());
    }
}
