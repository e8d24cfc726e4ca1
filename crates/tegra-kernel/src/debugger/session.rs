//! One open node of the debugger: the channels that it watches and the objects that it holds.

use crate::board::Board;
use crate::channel::Channel;
use crate::event::EventFd;
use crate::files::Files;
use crate::process::FileId;
use crate::profiler::{Perfbuf, ProfilerObject, Profiling};
use crate::tsg::Tsg;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use tegrarm_kmd::Errno;
use tegrarm_lock::Mutex;

/// A debugger session.
#[derive(Debug)]
pub(crate) struct Debugger {
    /// True if it was opened through `prof`. Such a session needs no channel for objects that belong to the whole GPU.
    profiler: bool,
    pub(super) profiling: Arc<Profiling>,
    pub(super) state: Mutex<Holdings>,
    /// What makes its file ready to poll: an event of an SM, which never comes.
    pub(super) event: EventFd,
}

/// The channels that a session has bound, and the features that it has switched off.
#[derive(Debug, Default)]
pub(super) struct Holdings {
    /// The channels in the order in which they were bound. A channel that was bound twice is listed twice.
    pub channels: Vec<Bound>,
    pub objects: Vec<Arc<ProfilerObject>>,
    pub perfbuf: Option<OwnPerfbuf>,
    timeouts_off: bool,
    ungated: bool,
}

/// The buffer for records while a session has it, and the profiler object that reserved the stream for it.
#[derive(Debug)]
pub(super) struct OwnPerfbuf {
    pub perfbuf: Perfbuf,
    pub owner: Arc<ProfilerObject>,
}

impl Drop for OwnPerfbuf {
    fn drop(&mut self) {
        self.owner.retire();
    }
}

/// A channel of a session. Its file stays open while it is bound.
#[derive(Debug)]
pub(super) struct Bound {
    pub file: FileId,
    /// The descriptor by which the caller named the channel.
    pub fd: i32,
    pub channel: Weak<Channel>,
}

impl Holdings {
    /// Takes out the profiler objects for which `meant` is true.
    pub(super) fn take_objects(&mut self, meant: impl Fn(&ProfilerObject) -> bool) -> Vec<Arc<ProfilerObject>> {
        self.objects.extract_if(.., |object| meant(object)).collect()
    }
}

impl Debugger {
    /// A session, with the descriptor for the program. Its file is ready to poll when there is an event.
    pub(super) fn create(profiling: &Arc<Profiling>, profiler: bool) -> Result<(OwnedFd, Debugger), Errno> {
        let (event, fd) = EventFd::new(0)?;
        Ok((fd, Debugger { profiler, profiling: profiling.clone(), state: Mutex::default(), event }))
    }

    pub(super) fn is_profiler(&self) -> bool {
        self.profiler
    }

    /// The session's channel, which is the first one that was bound.
    pub(super) fn channel(&self) -> Option<Arc<Channel>> {
        self.state.lock().channels.first().and_then(|bound| bound.channel.upgrade())
    }

    /// The group of the session's channel. The error is `EINVAL` if there is none.
    pub(super) fn tsg(&self) -> Result<Arc<Tsg>, Errno> {
        let channel = self.channel().ok_or(Errno::EINVAL)?;
        let tsg = channel.state.lock().tsg.clone();
        tsg.ok_or(Errno::EINVAL)
    }

    /// Turns timeouts on or off for this session. Nothing times out while at least one session has turned them off.
    pub(super) fn set_timeouts(&self, board: &Board, on: bool) {
        let were_on = !std::mem::replace(&mut self.state.lock().timeouts_off, !on);
        match (were_on, on) {
            (true, false) => board.hw.timeouts.disable(),
            (false, true) => board.hw.timeouts.enable(),
            _ => {}
        }
    }

    /// Turns power gating on or off for this session. The GPU keeps its power while at least one session has turned it
    /// off. Here it always keeps its power.
    pub(super) fn set_power_gating(&self, on: bool) {
        let was_on = !std::mem::replace(&mut self.state.lock().ungated, !on);
        match (was_on, on) {
            (true, false) => self.profiling.ungated.fetch_add(1, Ordering::Relaxed),
            (false, true) => self.profiling.ungated.fetch_sub(1, Ordering::Relaxed),
            _ => 0,
        };
    }

    /// Ends the session after its last descriptor was closed.
    pub(super) fn end(&self, files: &Files) {
        let mut state = self.state.lock();
        let channels = std::mem::take(&mut state.channels);
        let objects = std::mem::take(&mut state.objects);
        let perfbuf = state.perfbuf.take();
        drop(state);
        objects.iter().for_each(|object| object.retire());
        drop(perfbuf);
        channels.into_iter().for_each(|bound| files.unpin(bound.file));
        self.set_power_gating(true);
        self.set_timeouts(&files.board, true);
    }
}
