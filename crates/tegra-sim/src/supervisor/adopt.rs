//! Nodes that a program opened without the supervisor.
//!
//! Where the board's files are mounted, opening a file for reading is not trapped, because compilers do so hundreds of
//! times. A node that is opened in this way, or through a symbolic link, which the filter cannot follow, is a
//! placeholder at first. Its first ioctl or shared mapping makes the object and puts the real file in its place.
//! Duplicates of the descriptor, in this process or another one, are recognised as the same open file.

use super::Supervisor;
use super::sys;
use super::target::Target;
use super::tree::Entry;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use tegra_kernel::process::{FileId, Process};
use tegra_mm::memfd;
use tegrarm_kmd::Errno;

/// A placeholder that a program has used, and the node's file that stands for it now.
#[derive(Debug)]
pub struct Adopted {
    seen: OwnedFd,
    id: FileId,
    real: Real,
}

/// The place from which another descriptor of the node's file can be had.
#[derive(Debug)]
enum Real {
    /// A memfd, which can be opened again.
    Memory(OwnedFd),
    /// A socket or a pipe. The supervisor cannot keep one, because that would keep it open. The named process had it on
    /// this descriptor when it was last seen.
    There(i32, RawFd),
}

/// The node's file, opened for reading. A file that cannot be opened again (a socket or a pipe) is returned as it is.
pub(super) fn for_reading(real: OwnedFd) -> OwnedFd {
    memfd::duplicate_read_only(&real).unwrap_or(real)
}

impl Supervisor {
    /// Makes the caller's descriptor a node's descriptor, if it is a placeholder. Returns whether it is one.
    ///
    /// # Errors
    /// The error of opening the node.
    pub(super) fn adopt(&self, target: &Target<'_>, fd: RawFd) -> Result<bool, Errno> {
        let Some(path) = target.placeholder(fd) else { return Ok(false) };
        let Some(Entry::Node(path)) = self.tree.find(&path) else { return Ok(false) };
        let seen = target.take(fd)?;
        self.tell_closed();
        // The lock is held until the node is entered, so that two threads with one placeholder get one node.
        let mut adopted = self.adopted.lock();
        let known = |a: &&Adopted| sys::same_open_file(a.seen.as_fd(), seen.as_fd());
        if let Some(known) = adopted.iter().find(known) {
            let file = self.once_more(target.pid(), known, target.read_only(fd))?;
            return target.replace(fd, file.as_fd()).map(|()| true);
        }
        let real = self.kernel.open(target, path)?;
        let id = FileId::of(&real)?;
        let kept = match self.kernel.our_end(id) {
            Some(_) => Real::There(target.pid(), fd),
            None => Real::Memory(memfd::stow(memfd::duplicate(&real)?)?),
        };
        let real = if target.read_only(fd) { for_reading(real) } else { real };
        target.replace(fd, self.closes.hand_out(real, target.pid())?.as_fd())?;
        self.observe(|o| o.opened(target.pid(), path, fd));
        adopted.push(Adopted { seen, id, real: kept });
        Ok(true)
    }

    /// Gets another descriptor of a node's file that some program has already.
    fn once_more(&self, process: i32, known: &Adopted, read_only: bool) -> Result<OwnedFd, Errno> {
        match &known.real {
            Real::Memory(file) => {
                let file = memfd::duplicate(file)?;
                self.kernel.handed_out_again(known.id);
                self.closes.hand_out(if read_only { for_reading(file) } else { file }, process)
            }
            Real::There(pid, fd) => {
                let file = sys::steal_fd(sys::pidfd(*pid)?.as_fd(), *fd)?;
                if FileId::of(&file)? == known.id { Ok(file) } else { Err(Errno::EBADF) }
            }
        }
    }

    /// Forgets the files that have ended.
    pub(super) fn forget_adopted(&self) {
        self.adopted.lock().retain(|a| self.kernel.is_open(a.id));
    }
}
