//! The scheduling control node. One application manager at a time sees every group and may lock the controls.
//!
//! What its ioctls do comes from nvgpu's `os/linux/sched.c`, because the rules file only names this node.

use super::board::CHANNELS;
use super::dispatch::{Call, CopyBack, Reply, Row, Table, rows};
use super::files::{Files, OpenFile};
use crate::process::FileId;
use crate::release::PerRelease;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{pipe2, write};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Weak};
use tegra_mm::memfd;
use tegrarm_abi::nvgpu::sched::*;
use tegrarm_kmd::{Arg, Errno, Node};
use tegrarm_lock::Mutex;
use zerocopy::IntoBytes;

pub(super) static TABLE: Table<SchedFile> = Table {
    magic: NVGPU_SCHED_IOCTL_MAGIC as u8,
    last: PerRelease::same(NVGPU_SCHED_IOCTL_LAST),
    max_arg: PerRelease::same(NVGPU_SCHED_IOCTL_MAX_ARG_SIZE as usize),
    copy_back: CopyBack::Errno,
    rows: rows! {
        ALL NVGPU_SCHED_IOCTL_GET_TSGS => get_tsgs;
        ALL NVGPU_SCHED_IOCTL_GET_RECENT_TSGS => get_recent_tsgs;
        ALL NVGPU_SCHED_IOCTL_GET_TSGS_BY_PID => get_tsgs_by_pid;
        ALL NVGPU_SCHED_IOCTL_TSG_GET_PARAMS => get_params;
        ALL NVGPU_SCHED_IOCTL_TSG_SET_TIMESLICE => set_timeslice;
        ALL NVGPU_SCHED_IOCTL_TSG_SET_RUNLIST_INTERLEAVE => set_interleave;
        ALL NVGPU_SCHED_IOCTL_LOCK_CONTROL => lock_control;
        ALL NVGPU_SCHED_IOCTL_UNLOCK_CONTROL => unlock_control;
        ALL NVGPU_SCHED_IOCTL_GET_API_VERSION => get_api_version;
        ALL NVGPU_SCHED_IOCTL_GET_TSG => get_tsg;
        ALL NVGPU_SCHED_IOCTL_PUT_TSG => put_tsg;
    },
};

/// The size in bytes of a bitmap that has one bit for each group.
const BITMAP: usize = CHANNELS.next_multiple_of(64) as usize / 8;

/// A group, as the manager sees it.
pub(super) trait Group: Debug + Send + Sync {
    /// The process that made it.
    fn pid(&self) -> i32;

    /// Answers TSG_GET_PARAMS.
    fn parameters(&self, args: &mut nvgpu_sched_tsg_get_params_args);

    /// Sets the group's time slice. The error is `EINVAL` outside of the range that the driver accepts.
    fn set_timeslice(&self, us: u32) -> Result<(), Errno>;

    /// Sets how often the group is in the runlist. The error is `EINVAL` for an unknown level.
    fn set_interleave(&self, level: u32) -> Result<(), Errno>;
}

/// Every group, and the changes that the manager made to them.
#[derive(Debug, Default)]
pub(super) struct Scheduling {
    state: Mutex<Roster>,
    timeslices: Mutex<Timeslices>,
}

/// The lengths of timeslices that groups may have, in microseconds.
#[derive(Debug)]
struct Timeslices {
    shortest: u32,
    longest: u32,
}

impl Default for Timeslices {
    fn default() -> Self {
        Timeslices { shortest: 1000, longest: 50_000 }
    }
}

/// The groups that exist, and the changes that the manager has made.
#[derive(Debug, Default)]
struct Roster {
    groups: BTreeMap<u32, Weak<dyn Group>>,
    /// The groups about which the manager has not asked since they were made.
    recent: BTreeSet<u32>,
    /// The groups that the manager keeps alive.
    held: BTreeMap<u32, Arc<dyn Group>>,
    /// True if only the manager may change controls.
    locked: bool,
    /// True if a group was made and the manager has not read this event.
    news: bool,
    /// The pipe from which the open node reads its events.
    events: Option<Events>,
}

/// A pipe that contains at most one unread event.
#[derive(Debug)]
struct Events {
    post: OwnedFd,
}

/// The open node.
#[derive(Debug)]
pub(super) struct SchedFile {
    scheduling: Arc<Scheduling>,
}

impl OpenFile for SchedFile {
    fn node(&self) -> Option<Node> {
        Some(Node::Sched)
    }

    fn ioctl(self: Arc<Self>, call: &Call<'_>, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        TABLE.run(call, &self, request, arg)
    }

    fn our_end(&self) -> Option<OwnedFd> {
        self.scheduling.our_end()
    }

    fn close(&self, _: &Files) {
        self.scheduling.close();
    }
}

impl Events {
    fn new() -> Result<(Events, OwnedFd), Errno> {
        let (theirs, post) = pipe2(OFlag::O_CLOEXEC)?;
        Ok((Events { post: memfd::stow(post)? }, theirs))
    }

    fn unread(&self) -> bool {
        memfd::is_unread(&self.post)
    }

    /// Whether the program has closed its end: a write would be SIGPIPE.
    fn is_broken(&self) -> bool {
        let mut fds = [PollFd::new(self.post.as_fd(), PollFlags::empty())];
        poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
    }

    fn post(&self) {
        let event = nvgpu_sched_event_arg { reserved: 0, status: u64::from(NVGPU_SCHED_STATUS_TSG_OPEN) };
        if !self.unread()
            && !self.is_broken()
            && let Err(errno) = write(&self.post, event.as_bytes())
        {
            tracing::warn!(%errno, "a scheduling event could not be posted");
        }
    }
}

impl Scheduling {
    /// The lengths of timeslices that groups may have, in microseconds.
    pub(super) fn timeslices(&self) -> RangeInclusive<u32> {
        let limits = self.timeslices.lock();
        limits.shortest..=limits.longest
    }

    /// Sets the shortest timeslice through sysfs. The error is `EINVAL` for more than the longest.
    pub(super) fn set_shortest_timeslice(&self, us: u64) -> Result<(), Errno> {
        let mut limits = self.timeslices.lock();
        let fits = u32::try_from(us).ok().filter(|us| *us <= limits.longest);
        limits.shortest = fits.ok_or(Errno::EINVAL)?;
        Ok(())
    }

    /// Sets the longest timeslice through sysfs. The error is `EINVAL` for less than the shortest.
    pub(super) fn set_longest_timeslice(&self, us: u64) -> Result<(), Errno> {
        let mut limits = self.timeslices.lock();
        let fits = u32::try_from(us).ok().filter(|us| *us >= limits.shortest);
        limits.longest = fits.ok_or(Errno::EINVAL)?;
        Ok(())
    }

    /// Opens the node. The error is `EBUSY` while it is open.
    pub(super) fn open(self: &Arc<Self>, files: &Files) -> Result<OwnedFd, Errno> {
        let mut state = self.state.lock();
        if state.events.is_some() {
            return Err(Errno::EBUSY);
        }
        let (events, fd) = Events::new()?;
        state.recent = state.groups.keys().copied().collect();
        if std::mem::take(&mut state.news) {
            events.post();
        }
        state.events = Some(events);
        drop(state);
        files.enter(FileId::of(&fd)?, Arc::new(SchedFile { scheduling: self.clone() }));
        Ok(fd)
    }

    /// Our end of the open node's pipe, which hangs up when the program's has been closed everywhere.
    fn our_end(&self) -> Option<OwnedFd> {
        let state = self.state.lock();
        memfd::stow(memfd::duplicate(&state.events.as_ref()?.post).ok()?).ok()
    }

    /// The last descriptor is closed.
    fn close(&self) {
        let mut state = self.state.lock();
        state.news = state.events.take().is_some_and(|events| events.unread());
        state.locked = false;
        let held = std::mem::take(&mut state.held);
        // A group may end with this reference, and it then calls `removed`.
        drop(state);
        drop(held);
    }

    /// Notes that a group was made.
    pub(super) fn added(&self, id: u32, group: Weak<dyn Group>) {
        let mut state = self.state.lock();
        state.groups.insert(id, group);
        state.recent.insert(id);
        match &state.events {
            Some(events) => events.post(),
            None => state.news = true,
        }
    }

    /// Notes that a group has ended.
    pub(super) fn removed(&self, id: u32) {
        let mut state = self.state.lock();
        state.groups.remove(&id);
        state.recent.remove(&id);
    }

    /// Checks that the owners of groups may bind and reschedule them.
    pub(super) fn check_unlocked(&self) -> Result<(), Errno> {
        if self.state.lock().locked { Err(Errno::EPERM) } else { Ok(()) }
    }

    /// The group that has an id. The error is `EINVAL` for an id that no group can have, and `ENXIO` for an id that no
    /// group has now.
    fn find(&self, id: u32) -> Result<Arc<dyn Group>, Errno> {
        if id >= CHANNELS {
            return Err(Errno::EINVAL);
        }
        let found = self.state.lock().groups.get(&id).and_then(Weak::upgrade);
        found.ok_or(Errno::ENXIO)
    }

    /// The process that made a group, for the trace of context switches.
    pub(super) fn owner(&self, id: u32) -> Option<i32> {
        self.state.lock().groups.get(&id)?.upgrade().map(|group| group.pid())
    }
}

/// Writes a bitmap of groups, or returns how large a bitmap is.
fn put_bitmap(
    call: &Call<'_>,
    file: &SchedFile,
    size: &mut u32,
    buffer: u64,
    ids: impl FnOnce(&mut Roster) -> BTreeSet<u32>,
) -> Reply {
    if (*size as usize) < BITMAP || buffer == 0 {
        *size = BITMAP as u32;
        call.copy_back_always.set(true);
        return Err(Errno::ENOSPC.into());
    }
    let mut bitmap = [0_u8; BITMAP];
    for id in ids(&mut file.scheduling.state.lock()) {
        bitmap[id as usize / 8] |= 1 << (id % 8);
    }
    call.copy_out(buffer, &bitmap)
}

fn get_tsgs(call: &Call<'_>, file: &Arc<SchedFile>, args: &mut nvgpu_sched_get_tsgs_args) -> Reply {
    put_bitmap(call, file, &mut args.size, args.buffer, |state| state.groups.keys().copied().collect())
}

fn get_recent_tsgs(call: &Call<'_>, file: &Arc<SchedFile>, args: &mut nvgpu_sched_get_tsgs_args) -> Reply {
    put_bitmap(call, file, &mut args.size, args.buffer, |state| std::mem::take(&mut state.recent))
}

fn get_tsgs_by_pid(call: &Call<'_>, file: &Arc<SchedFile>, args: &mut nvgpu_sched_get_tsgs_by_pid_args) -> Reply {
    let pid = args.pid as i32;
    let owned = |group: &Weak<dyn Group>| group.upgrade().is_some_and(|group| group.pid() == pid);
    put_bitmap(call, file, &mut args.size, args.buffer, |state| {
        state.groups.iter().filter(|(_, group)| owned(group)).map(|(id, _)| *id).collect()
    })
}

fn get_params(_: &Call<'_>, file: &Arc<SchedFile>, args: &mut nvgpu_sched_tsg_get_params_args) -> Reply {
    file.scheduling.find(args.tsgid)?.parameters(args);
    Ok(())
}

fn set_timeslice(_: &Call<'_>, file: &Arc<SchedFile>, args: &mut nvgpu_sched_tsg_timeslice_args) -> Reply {
    Ok(file.scheduling.find(args.tsgid)?.set_timeslice(args.timeslice)?)
}

fn set_interleave(_: &Call<'_>, file: &Arc<SchedFile>, args: &mut nvgpu_sched_tsg_runlist_interleave_args) -> Reply {
    Ok(file.scheduling.find(args.tsgid)?.set_interleave(args.runlist_interleave)?)
}

fn lock_control(_: &Call<'_>, file: &Arc<SchedFile>, _: &mut ()) -> Reply {
    file.scheduling.state.lock().locked = true;
    Ok(())
}

fn unlock_control(_: &Call<'_>, file: &Arc<SchedFile>, _: &mut ()) -> Reply {
    file.scheduling.state.lock().locked = false;
    Ok(())
}

fn get_api_version(_: &Call<'_>, _: &Arc<SchedFile>, args: &mut nvgpu_sched_api_version_args) -> Reply {
    args.version = NVGPU_SCHED_API_VERSION;
    Ok(())
}

/// Keeps a group alive until PUT_TSG or the close of the node. This is possible once for each group.
fn get_tsg(_: &Call<'_>, file: &Arc<SchedFile>, args: &mut nvgpu_sched_tsg_refcount_args) -> Reply {
    let group = file.scheduling.find(args.tsgid)?;
    let mut state = file.scheduling.state.lock();
    if state.held.contains_key(&args.tsgid) {
        return Err(Errno::ENXIO.into());
    }
    state.held.insert(args.tsgid, group);
    Ok(())
}

fn put_tsg(_: &Call<'_>, file: &Arc<SchedFile>, args: &mut nvgpu_sched_tsg_refcount_args) -> Reply {
    if args.tsgid >= CHANNELS {
        return Err(Errno::EINVAL.into());
    }
    let held = file.scheduling.state.lock().held.remove(&args.tsgid);
    // The group may end here, and that must not happen under the lock.
    held.map(drop).ok_or(Errno::ENXIO.into())
}
