//! The file door's system calls: open, ioctl, mmap and close.

use super::call::{Call, Outcome, Refused};
use super::node::{self, Kind, NodeRow, OpenFile};
use super::table::Table;
use super::{escapes, uvm};
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tegrarm_abi::rm::status::NV_ERR_INSUFFICIENT_PERMISSIONS;
use tegrarm_kmd::Errno;
use tegrarm_kmd::fds::{self, file_id};
use tegrarm_rm::rm::Rm;
use tegrarm_rm::status::{RmError, RmResult};

/// The function from which the door gets the manager when it needs one.
pub type Manager<'a> = &'a dyn Fn() -> RmResult<Arc<Rm>>;

/// The device nodes, as one process has them open.
pub struct Door {
    table: Table,
    /// The process to which the door belongs. A child of vfork(2) shares the parent's memory but closes its own
    /// descriptors, which must not change the parent's table.
    owner: nix::unistd::Pid,
}

/// The error of `open(2)` for a GPU that does not exist.
#[cold]
fn of_open(e: RmError) -> Box<Refused> {
    let errno = if e.status == NV_ERR_INSUFFICIENT_PERMISSIONS { Errno::EACCES } else { Errno::ENODEV };
    Refused::new(errno, e.to_string())
}

impl Default for Door {
    fn default() -> Self {
        Door { table: Table::default(), owner: nix::unistd::getpid() }
    }
}

impl Door {
    /// Opens a node and returns a descriptor.
    ///
    /// # Errors
    /// `ENOENT` for a path that is not a node's, `ENODEV` or `EACCES` when there is no GPU behind it, `EMFILE`.
    pub fn open(&self, manager: Manager, path: &str, close_on_exec: bool) -> Result<RawFd, Box<Refused>> {
        let Some(row) = node::at(path) else {
            let nodes: Vec<&str> = node::NODES.iter().map(|n| n.path).collect();
            return Err(Refused::new(Errno::ENOENT, format!("{path}: the nodes are {}", nodes.join(", "))));
        };
        let rm = manager().map_err(of_open)?;
        let held = rm.hold().map_err(of_open)?;
        let opened = fds::named_file(row.label, close_on_exec)
            .and_then(|fd| file_id(fd.as_raw_fd()).map(|id| (fd, id)))
            .map_err(|errno| Refused::new(errno, format!("opening {path}: {errno}")))?;
        let (fd, id) = opened;
        self.table.enter(OpenFile::new(row.kind, id, rm, held));
        tracing::debug!("{path} is descriptor {}", fd.as_raw_fd());
        Ok(fd.into_raw_fd())
    }

    /// The open file behind a descriptor. An inherited descriptor is entered into the table here.
    #[inline(always)]
    fn find(&self, manager: Manager, fd: RawFd) -> Result<Arc<OpenFile>, Box<Refused>> {
        match self.table.find(fd) {
            Ok(file) => Ok(file),
            Err(errno) => self.find_inherited(manager, fd, errno),
        }
    }

    #[cold]
    fn find_inherited(&self, manager: Manager, fd: RawFd, errno: Errno) -> Result<Arc<OpenFile>, Box<Refused>> {
        match (errno, inherited(fd)) {
            (Errno::ENOTTY, Some(row)) => self.adopt(manager, row, fd),
            _ => Err(Refused::new(errno, format!("descriptor {fd} is none of RM's device nodes"))),
        }
    }

    fn adopt(&self, manager: Manager, row: &NodeRow, fd: RawFd) -> Result<Arc<OpenFile>, Box<Refused>> {
        let rm = manager().map_err(of_open)?;
        let held = rm.hold().map_err(of_open)?;
        let id = file_id(fd).map_err(|errno| Refused::new(errno, format!("descriptor {fd}: {errno}")))?;
        Ok(self.table.enter(OpenFile::new(row.kind, id, rm, held)))
    }

    /// Answers one ioctl. `argp` is an address of this process.
    ///
    /// # Errors
    /// `EBADF` for a closed descriptor, `ENOTTY` for a descriptor that is not an RM node, `EINVAL` and `EFAULT` for a
    /// call that is wrong in itself. A call that RM refuses is not an error here: the status is in the structure, and
    /// the refusal is returned.
    #[inline(always)]
    pub fn ioctl(&self, manager: Manager, fd: RawFd, request: u64, argp: u64) -> Outcome {
        let file = self.find(manager, fd)?;
        let call = Call { table: &self.table, file: &file };
        match file.kind {
            Kind::Control | Kind::Gpu => escapes::ioctl(&call, request as u32, argp),
            Kind::Uvm | Kind::UvmTools => uvm::ioctl(&call, request, argp),
        }
    }

    /// Checks that `mmap(2)` of a descriptor may go ahead.
    ///
    /// # Errors
    /// `EINVAL` for a node's descriptor that RM_MAP_MEMORY has not made mappable.
    pub fn check_mmap(&self, fd: RawFd) -> Result<(), Box<Refused>> {
        match self.table.find(fd) {
            Ok(file) if !file.lent.load(Ordering::Relaxed) => {
                Err(Refused::new(Errno::EINVAL, format!("descriptor {fd}: name it in RM_MAP_MEMORY first")))
            }
            _ => Ok(()),
        }
    }

    /// Closes a descriptor. The clients of an open file are freed when its last descriptor closes.
    ///
    /// # Errors
    /// `EBADF`.
    pub fn close(&self, fd: RawFd) -> Result<(), Box<Refused>> {
        let file = if nix::unistd::getpid() == self.owner { self.table.closing(fd) } else { None };
        fds::close(fd).map_err(|errno| Refused::new(errno, format!("descriptor {fd} is not open")))?;
        if let Some(file) = file {
            self.table.closed(&file);
        }
        Ok(())
    }

    /// Forgets every open file, which frees its clients. The descriptors stay open and behave as if they had just been
    /// opened.
    pub fn shutdown(&self) {
        self.table.clear();
    }

    /// The number of open files.
    pub fn open_files(&self) -> usize {
        self.table.len()
    }
}

/// The node of which an unknown descriptor is an open file. A descriptor is unknown if the process inherited it through
/// fork or exec.
fn inherited(fd: RawFd) -> Option<&'static NodeRow> {
    let link = std::fs::read_link(format!("/proc/self/fd/{fd}")).ok()?;
    node::of_link(link.to_str()?)
}
