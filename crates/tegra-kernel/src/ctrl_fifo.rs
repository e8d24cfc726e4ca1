//! Queues between a program and the domain scheduler (`nvsched_ctrl_fifo`, r36 only; the driver's
//! `os/linux/ioctl_nvs.c`, `common/nvs/nvs_sched_ctrl.c`).
//!
//! Every process may watch the queue of events, and one user at a time may have the GPU's scheduling to itself.
//! Requests through the control queues are answered by firmware that is not published, so these queues do not exist
//! here. Nothing posts events.

use super::dispatch::{Call, CopyBack, Reply, Row, Table, rows};
use super::files::{self, Files, Mmap, OpenFile};
use crate::process::{FileId, Process};
use crate::release::PerRelease;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tegra_mm::{Backing, memfd};
use tegrarm_abi::nvgpu::ctrl_fifo::*;
use tegrarm_abi::nvgpu::nvsched::NVGPU_NVS_DOMAIN_SCHED_KMD;
use tegrarm_kmd::{Arg, Errno, Node};
use tegrarm_lock::Mutex;

pub(super) static TABLE: Table<FifoUser> = Table {
    magic: NVGPU_NVS_CTRL_FIFO_IOCTL_MAGIC as u8,
    last: PerRelease::same(NVGPU_NVS_CTRL_FIFO_IOCTL_LAST),
    max_arg: PerRelease::same(NVGPU_NVS_CTRL_FIFO_IOCTL_MAX_ARG_SIZE as usize),
    copy_back: CopyBack::Errno,
    rows: rows! {
        SINCE_R36 NVGPU_NVS_CTRL_FIFO_IOCTL_CREATE_QUEUE => create_queue;
        SINCE_R36 NVGPU_NVS_CTRL_FIFO_IOCTL_RELEASE_QUEUE => release_queue;
        SINCE_R36 NVGPU_NVS_CTRL_FIFO_IOCTL_ENABLE_EVENT => enable_event;
        SINCE_R36 NVGPU_NVS_CTRL_FIFO_IOCTL_QUERY_SCHEDULER_CHARACTERISTICS => characteristics;
    },
};

/// The size of a queue in bytes.
const QUEUE_SIZE: usize = 64 << 10;

/// One open node. A process can have one.
#[derive(Debug)]
pub(super) struct FifoUser {
    pid: i32,
    fifo: Arc<Fifo>,
}

impl OpenFile for FifoUser {
    fn node(&self) -> Option<Node> {
        Some(Node::CtrlFifo)
    }

    fn ioctl(self: Arc<Self>, call: &Call<'_>, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        TABLE.run(call, &self, request, arg)
    }

    fn close(&self, _: &Files) {
        self.fifo.close(self.pid);
    }
}

/// The queue of events as a file. Its pages can be mapped, and it supports no other call.
#[derive(Debug)]
pub(super) struct Queue {
    memory: Backing,
}

impl OpenFile for Queue {
    fn node(&self) -> Option<Node> {
        Some(Node::Dmabuf)
    }

    fn check_mmap(&self, call: &Call<'_>, asked: &Mmap) -> Result<(), Errno> {
        match asked {
            Mmap { offset, len, .. } if *offset != 0 || *len > QUEUE_SIZE => Err(Errno::EINVAL),
            Mmap { write: true, .. } if call.read_only() => Err(Errno::EACCES),
            _ => Ok(()),
        }
    }

    fn is_memory(&self) -> bool {
        true
    }
}

/// The users of the node, and the queue that they share.
#[derive(Debug, Default)]
pub(super) struct Fifo(Mutex<FifoUsers>);

/// The processes that have the node open, and their purposes.
#[derive(Debug, Default)]
struct FifoUsers {
    users: Vec<i32>,
    /// The process that has the scheduling to itself.
    exclusive: Option<i32>,
    /// The processes that have the queue of events.
    watchers: Vec<i32>,
    events: Option<Arc<Queue>>,
}

impl Queue {
    fn descriptor(&self, read_only: bool) -> Result<OwnedFd, Errno> {
        let file = self.memory.memfd().ok_or(Errno::ENOMEM)?.duplicate()?;
        if read_only { memfd::duplicate_read_only(&memfd::stow(file)?) } else { Ok(file) }
    }
}

impl Fifo {
    /// Opens the node. The error is `EEXIST` for a process that has it open already.
    pub(super) fn open(self: &Arc<Self>, files: &Files, process: &dyn Process) -> Result<OwnedFd, Errno> {
        let user = FifoUser { pid: process.pid(), fifo: self.clone() };
        let mut state = self.0.lock();
        if state.users.contains(&user.pid) {
            return Err(Errno::EEXIST);
        }
        let (fd, id) = files::anonymous("nvhost-nvsched_ctrl_fifo")?;
        state.users.push(user.pid);
        drop(state);
        files.enter(id, Arc::new(user));
        Ok(fd)
    }

    /// Ends a user after its last descriptor was closed. The driver has a bug here, which is kept: it does not take the
    /// queue of events from a user that has the scheduling to itself, so it calls that user busy and keeps it for ever.
    fn close(&self, pid: i32) {
        let mut state = self.0.lock();
        let watched = state.watchers.contains(&pid);
        if state.exclusive == Some(pid) {
            if watched {
                tracing::error!("nvsched_ctrl_fifo: closed with a queue, so process {pid} keeps the scheduling");
                return;
            }
            state.exclusive = None;
        }
        state.watchers.retain(|other| *other != pid);
        state.users.retain(|other| *other != pid);
        if watched && state.users.is_empty() {
            state.events = None;
        }
    }
}

/// The purpose of a queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Control,
    Events,
}

fn number(number: u32) -> Option<Kind> {
    match number {
        NVGPU_NVS_CTRL_FIFO_QUEUE_NUM_CONTROL => Some(Kind::Control),
        NVGPU_NVS_CTRL_FIFO_QUEUE_NUM_EVENT => Some(Kind::Events),
        _ => None,
    }
}

/// Whether a direction belongs to the scheduler. The result is `None` if the direction is not known.
fn from_scheduler(direction: u8) -> Option<bool> {
    match u32::from(direction) {
        NVGPU_NVS_CTRL_FIFO_QUEUE_DIRECTION_CLIENT_TO_SCHEDULER => Some(false),
        NVGPU_NVS_CTRL_FIFO_QUEUE_DIRECTION_SCHEDULER_TO_CLIENT => Some(true),
        _ => None,
    }
}

fn create_queue(
    call: &Call<'_>,
    user: &Arc<FifoUser>,
    args: &mut nvgpu_nvs_ctrl_fifo_ioctl_create_queue_args,
) -> Reply {
    if args.reserve0 != 0 || args.dmabuf_fd != 0 || args.queue_size != 0 {
        return Err(Errno::EINVAL.into());
    }
    let (kind, down) = (number(args.queue_num), from_scheduler(args.direction));
    let mut state = user.fifo.0.lock();
    let exclusive = match u32::from(args.access_type) {
        NVGPU_NVS_CTRL_FIFO_QUEUE_ACCESS_TYPE_EXCLUSIVE if kind.is_some() && down.is_some() => {
            state.take_exclusive(call, user)?;
            true
        }
        NVGPU_NVS_CTRL_FIFO_QUEUE_ACCESS_TYPE_NON_EXCLUSIVE if kind == Some(Kind::Events) && down == Some(true) => {
            false
        }
        _ => return Err(Errno::EINVAL.into()),
    };
    if kind != Some(Kind::Events) {
        tracing::error!("nvsched_ctrl_fifo: no control queues, the firmware that answers in them is not published");
        return Err(Errno::EOPNOTSUPP.into());
    }
    if down != Some(true) {
        return Err(Errno::EOPNOTSUPP.into());
    }
    if state.watchers.contains(&user.pid) {
        return Err(Errno::EEXIST.into());
    }
    let queue = match &state.events {
        Some(queue) => queue.clone(),
        None => Arc::new(Queue { memory: Backing::anonymous("nvgpu_ctrl_fifo", QUEUE_SIZE)? }),
    };
    let fd = queue.descriptor(!exclusive)?;
    let id = FileId::of(&fd)?;
    state.events = Some(queue.clone());
    state.watchers.push(user.pid);
    drop(state);
    call.files.enter(id, queue);
    args.dmabuf_fd = call.process.install(fd).inspect_err(|_| {
        user.fifo.0.lock().watchers.retain(|pid| *pid != user.pid);
    })?;
    args.queue_size = QUEUE_SIZE as u32;
    Ok(())
}

impl FifoUsers {
    /// Gives the scheduling to this user alone. The error is `EPERM` if the user may only read, and `EBUSY` while
    /// another user has it.
    fn take_exclusive(&mut self, call: &Call<'_>, user: &FifoUser) -> Result<(), Errno> {
        match self.exclusive {
            Some(pid) if pid == user.pid => Ok(()),
            _ if call.read_only() => Err(Errno::EPERM),
            Some(_) => Err(Errno::EBUSY),
            None => {
                self.exclusive = Some(user.pid);
                Ok(())
            }
        }
    }
}

/// Takes a queue from a user. The memory of the queue of events stays until its last user closes the node.
fn release_queue(_: &Call<'_>, user: &Arc<FifoUser>, args: &mut nvgpu_nvs_ctrl_fifo_ioctl_release_queue_args) -> Reply {
    if args.reserve0 != 0 || args.reserve1 != 0 || args.reserve2 != 0 {
        return Err(Errno::EINVAL.into());
    }
    let (kind, down) = (number(args.queue_num), from_scheduler(args.direction));
    let mut state = user.fifo.0.lock();
    let exclusive = state.exclusive == Some(user.pid);
    if !exclusive && (kind == Some(Kind::Control) || down == Some(false)) {
        return Err(Errno::EPERM.into());
    }
    match (kind, down) {
        (Some(Kind::Control), Some(_)) => return Err(Errno::EPERM.into()),
        (Some(Kind::Events), Some(true)) => {}
        _ => return Err(Errno::EOPNOTSUPP.into()),
    }
    let at = state.watchers.iter().position(|pid| *pid == user.pid).ok_or(Errno::EPERM)?;
    state.watchers.remove(at);
    Ok(())
}

fn enable_event(_: &Call<'_>, _: &Arc<FifoUser>, _: &mut nvgpu_nvs_ctrl_fifo_ioctl_event) -> Reply {
    Err(Errno::EOPNOTSUPP.into())
}

/// Answers with the characteristics. The driver always says that the kernel schedules. The queues are those that the
/// user's mode allows.
fn characteristics(
    call: &Call<'_>,
    _: &Arc<FifoUser>,
    args: &mut nvgpu_nvs_ctrl_fifo_ioctl_query_scheduler_characteristics_args,
) -> Reply {
    args.domain_scheduler_implementation = NVGPU_NVS_DOMAIN_SCHED_KMD as u8;
    args.available_queues = NVGPU_NVS_CTRL_FIFO_QUEUE_NUM_EVENT;
    if !call.read_only() {
        args.available_queues |= NVGPU_NVS_CTRL_FIFO_QUEUE_NUM_CONTROL;
    }
    Ok(())
}
