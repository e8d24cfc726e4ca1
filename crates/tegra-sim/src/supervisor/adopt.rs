//! Nodes a program opened without the supervisor's help.
//!
//! Where the board's files are mounted, reading opens are not trapped: compilers make hundreds of them. A node opened
//! that way (or through a symbolic link, which the filter cannot follow) is a placeholder until its first ioctl or
//! shared mapping, which then makes the object and puts the real file in its place. Duplicates of the descriptor, in
//! this process or another, are recognised as the same open file.

use super::Supervisor;
use super::sys;
use super::target::Target;
use super::tree::Entry;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use tegra_kernel::process::{FileId, Process};
use tegra_mm::memfd;
use tegrarm_kmd::Errno;

/// A placeholder that was used, and the node's file that stands for it now.
#[derive(Debug)]
pub struct Adopted {
    seen: OwnedFd,
    real: OwnedFd,
}

/// A node's file as who opens it for reading gets it. One that cannot be opened again (a socket or a pipe) stays as
/// it is.
pub(super) fn for_reading(real: OwnedFd) -> OwnedFd {
    memfd::duplicate_read_only(&real).unwrap_or(real)
}

impl Supervisor {
    /// Makes the caller's descriptor a node's, if it is a placeholder; whether it was.
    ///
    /// # Errors
    /// What opening the node gives.
    pub(super) fn adopt(&self, target: &Target<'_>, fd: RawFd) -> Result<bool, Errno> {
        let Some(path) = target.placeholder(fd) else { return Ok(false) };
        let Some(Entry::Node(path)) = self.tree.find(&path) else { return Ok(false) };
        let seen = target.take(fd)?;
        let known = |a: &&Adopted| sys::same_open_file(a.seen.as_fd(), seen.as_fd());
        if let Some(known) = self.adopted.lock().iter().find(known) {
            return target.replace(fd, known.real.as_fd()).map(|()| true);
        }
        self.collect_garbage();
        let real = self.kernel.open(target, path)?;
        let real = if target.read_only(fd) { for_reading(real) } else { real };
        target.replace(fd, real.as_fd())?;
        self.observe(|o| o.opened(target.pid(), path, fd));
        self.adopted.lock().push(Adopted { seen, real });
        Ok(true)
    }

    /// Lets go of the files that have ended.
    pub(super) fn forget_adopted(&self) {
        self.adopted.lock().retain(|a| FileId::of(&a.real).is_ok_and(|id| self.kernel.is_open(id)));
    }
}
