//! One open node of the debugger: the channels that it watches and the objects that it holds.

use super::objects::OwnPerfbuf;
use crate::Kernel;
use crate::channel::Channel;
use crate::event::EventFd;
use crate::files::Object;
use crate::process::FileId;
use crate::profiler::ProfilerObject;
use crate::tsg::Tsg;
use parking_lot::Mutex;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use tegrarm_kmd::Errno;

/// A debugger session.
#[derive(Debug)]
pub(crate) struct Debugger {
    /// True if it was opened through `prof`. Such a session needs no channel for objects that belong to the whole GPU.
    profiler: bool,
    pub(super) state: Mutex<Holdings>,
    /// What makes its file ready to poll: an event of an SM, which never comes.
    event: EventFd,
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
    /// Opens the node. Its file is ready to poll when there is an event.
    pub(crate) fn open(kernel: &Arc<Kernel>, profiler: bool) -> Result<OwnedFd, Errno> {
        let (event, fd) = EventFd::new(0)?;
        let session = Arc::new(Debugger { profiler, state: Mutex::default(), event });
        kernel.enter(FileId::of(&fd)?, Object::Debugger(session));
        Ok(fd)
    }

    /// Our end of the descriptor.
    pub(crate) fn our_end(&self) -> &OwnedFd {
        self.event.our_end()
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

    /// Ends the session after its last descriptor was closed.
    pub(crate) fn close(&self, kernel: &Arc<Kernel>) {
        let mut state = self.state.lock();
        let channels = std::mem::take(&mut state.channels);
        let objects = std::mem::take(&mut state.objects);
        let perfbuf = state.perfbuf.take();
        drop(state);
        objects.iter().for_each(|object| object.retire());
        drop(perfbuf);
        channels.into_iter().for_each(|bound| kernel.unpin(bound.file));
        self.set_power_gating(kernel, true);
        self.set_timeouts(kernel, true);
    }

    /// Turns timeouts on or off for this session. Nothing times out while at least one session has turned them off.
    pub(super) fn set_timeouts(&self, kernel: &Kernel, on: bool) {
        let were_on = !std::mem::replace(&mut self.state.lock().timeouts_off, !on);
        match (were_on, on) {
            (true, false) => kernel.hw.timeouts.disable(),
            (false, true) => kernel.hw.timeouts.enable(),
            _ => {}
        }
    }

    /// Turns power gating on or off for this session. The GPU keeps its power while at least one session has turned it
    /// off. Here it always keeps its power.
    pub(super) fn set_power_gating(&self, kernel: &Kernel, on: bool) {
        let was_on = !std::mem::replace(&mut self.state.lock().ungated, !on);
        match (was_on, on) {
            (true, false) => kernel.profiling.ungated.fetch_add(1, Ordering::Relaxed),
            (false, true) => kernel.profiling.ungated.fetch_sub(1, Ordering::Relaxed),
            _ => 0,
        };
    }
}
