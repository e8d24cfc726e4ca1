//! A trapped process as a caller of the simulated kernel.

use super::closes::Closes;
use super::sys;
use super::view::PLACEHOLDER;
use nix::fcntl::AtFlags;
use nix::sys::stat::{FileStat, fstatat};
use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::unistd::Pid;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use tegra_kernel::process::{FileId, Process, Vma};
use tegra_mm::Backing;
use tegrarm_kmd::{Errno, maps};
use tegrarm_lock::Mutex;

/// The process of a trapped call, with its memory and its descriptors. It is valid while the call waits.
#[derive(Debug)]
pub struct Target<'a> {
    listener: BorrowedFd<'a>,
    closes: &'a Closes,
    notification: u64,
    /// The thread that made the call.
    tid: i32,
    /// Its thread group, after it was asked for the first time.
    tgid: OnceLock<i32>,
    /// The descriptor on which an ioctl is made, because it is needed several times. It does not change during the
    /// call. A program that closes the descriptor in another thread meanwhile gets one of the two results that a board
    /// may give.
    file: Mutex<Option<(RawFd, FileId)>>,
    /// How often the caller was seen with a signal that waits.
    signalled: AtomicU32,
    /// The bytes that an ioctl left in its argument.
    left: Mutex<Option<Vec<u8>>>,
}

impl<'a> Target<'a> {
    /// The caller of a trapped call.
    pub fn of(listener: BorrowedFd<'a>, closes: &'a Closes, call: &sys::Notification) -> Target<'a> {
        let (tgid, file, signalled, left) = Default::default();
        Target { listener, closes, notification: call.id, tid: call.pid as i32, tgid, file, signalled, left }
    }

    /// Whether the caller waits for the answer.
    pub fn waits(&self) -> bool {
        sys::is_waiting(self.listener, self.notification)
    }

    /// Remembers the bytes that an ioctl left in its argument.
    pub fn leave(&self, bytes: &[u8]) {
        *self.left.lock() = Some(bytes.to_owned());
    }

    /// The bytes that an ioctl left in its argument. They are empty if there was no ioctl.
    pub fn left(&self) -> Vec<u8> {
        self.left.lock().take().unwrap_or_default()
    }

    /// Whether a call that sleeps ended because of a signal.
    pub fn was_interrupted(&self) -> bool {
        self.signalled.load(Ordering::Relaxed) >= SURELY_OURS
    }

    /// Whether a signal waits that this thread will take. It is a signal for the thread, or for its process if this is
    /// the main thread, which takes such signals first.
    fn is_signalled(&self) -> bool {
        let Some(text) = status_of(self.tid) else { return true };
        let set = |field| field_of(&text, field).and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0);
        let shared = if self.pid() == self.tid { set("ShdPnd") } else { 0 };
        (set("SigPnd") | shared) & !set("SigBlk") != 0
    }

    /// Reads a path of the caller that ends with a NUL.
    pub fn path(&self, addr: u64) -> Result<String, Errno> {
        let mut path = vec![];
        let mut at = addr;
        // The path is read page by page, because it may end directly before a page that is not mapped.
        while path.len() < libc::PATH_MAX as usize {
            let mut piece = vec![0; 4096 - (at % 4096) as usize];
            self.read(at, &mut piece)?;
            if let Some(end) = piece.iter().position(|b| *b == 0) {
                path.extend_from_slice(&piece[..end]);
                return String::from_utf8(path).map_err(|_| Errno::ENOENT);
            }
            at += piece.len() as u64;
            path.append(&mut piece);
        }
        Err(Errno::ENAMETOOLONG)
    }

    fn vmas(&self) -> impl Iterator<Item = Vma> {
        maps::of(self.tid).into_iter().map(Vma::from)
    }

    fn status(&self, field: &str) -> Option<String> {
        status(self.tid, field)
    }

    /// Duplicates one of the caller's descriptors into this process.
    pub fn take(&self, fd: RawFd) -> Result<OwnedFd, Errno> {
        sys::steal_fd(sys::pidfd(self.pid())?.as_fd(), fd)
    }

    /// The path of the caller's descriptor `fd`, if it is a device that stands for nodes (see [`super::view`]).
    pub fn placeholder(&self, fd: RawFd) -> Option<String> {
        let link = format!("/proc/{}/fd/{fd}", self.tid);
        let (file, device) = (std::fs::metadata(&link).ok()?, std::fs::metadata(PLACEHOLDER).ok()?);
        if !file.file_type().is_char_device() || file.rdev() != device.rdev() {
            return None;
        }
        let path = std::fs::read_link(link).ok()?.into_os_string().into_string().ok()?;
        (path != PLACEHOLDER).then_some(path)
    }

    /// Replaces the caller's descriptor `fd` by `file`.
    pub fn replace(&self, fd: RawFd, file: BorrowedFd<'_>) -> Result<(), Errno> {
        let close_on_exec = self.open_flags(fd).is_some_and(|flags| flags & libc::O_CLOEXEC != 0);
        *self.file.lock() = None;
        sys::replace_fd(self.listener, self.notification, file, fd, close_on_exec)
    }

    /// The flags with which the caller's descriptor `fd` was opened, and whether it is close-on-exec.
    fn open_flags(&self, fd: RawFd) -> Option<i32> {
        let info = std::fs::read_to_string(format!("/proc/{}/fdinfo/{fd}", self.tid)).ok()?;
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
        i32::from_str_radix(flags.trim(), 8).ok()
    }

    /// Answers the call. Returns whether the caller has the answer.
    ///
    /// A signal may take the caller away while the host passes the answer on. The host does not say so, and the caller
    /// makes the call again. The host does say whether a descriptor arrived, and can make the arrival the answer. So
    /// the caller gets the descriptor once more that has the number of the answer. For most answers, which are 0, that
    /// is its standard input. If it has no such descriptor, it is answered in the usual way.
    pub fn answer(&self, reply: sys::Reply) -> bool {
        let arrived = match reply {
            sys::Reply::Value(number) => self.put_back(number),
            _ => Err(Errno::EINVAL),
        };
        match arrived {
            Ok(()) => true,
            Err(Errno::ESRCH | Errno::ENOENT | Errno::EINPROGRESS) => false,
            Err(_) => sys::reply(self.listener, self.notification, reply),
        }
    }

    /// Answers the call with the number of a descriptor, and gives the caller that descriptor again.
    fn put_back(&self, number: i64) -> Result<(), Errno> {
        let number = RawFd::try_from(number).map_err(|_| Errno::EBADF)?;
        let file = self.take(number).map_err(|_| Errno::EBADF)?;
        let close_on_exec = self.open_flags(number).ok_or(Errno::EBADF)? & libc::O_CLOEXEC != 0;
        sys::reply_with_descriptor(self.listener, self.notification, file.as_fd(), number, close_on_exec)
    }

    /// Puts a descriptor into the caller's table.
    pub fn give(&self, fd: BorrowedFd<'_>, close_on_exec: bool) -> Result<RawFd, Errno> {
        sys::add_fd(self.listener, self.notification, fd, close_on_exec)
    }
}

/// A signal that was seen this many times in a row is not one that another thread will take.
const SURELY_OURS: u32 = 2;

/// The contents of `/proc/PID/status`. There are none if there is no such process.
fn status_of(pid: i32) -> Option<String> {
    std::fs::read_to_string(format!("/proc/{pid}/status")).ok()
}

/// The value of one field in these contents.
fn field_of<'a>(status: &'a str, field: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).map(str::trim)
}

fn status(pid: i32, field: &str) -> Option<String> {
    status_of(pid).and_then(|text| field_of(&text, field).map(str::to_owned))
}

/// The thread group of a thread. It is asked for often, and mostly for main threads. A pidfd can be opened only for
/// those, so this is tried first.
pub fn thread_group(tid: i32) -> Option<i32> {
    if sys::pidfd(tid).is_ok() { Some(tid) } else { status(tid, "Tgid")?.parse().ok() }
}

/// `stat(2)` of a thread's descriptor, or of the link to it in `/proc`.
fn stat_of(tid: i32, fd: RawFd, flags: AtFlags) -> Option<FileStat> {
    static PROC: OnceLock<Option<std::fs::File>> = OnceLock::new();
    let proc = PROC.get_or_init(|| std::fs::File::open("/proc").ok()).as_ref()?;
    fstatat(proc, format!("{tid}/fd/{fd}").as_str(), flags).ok()
}

impl Process for Target<'_> {
    fn pid(&self) -> i32 {
        // Reading it from /proc costs as much as the rest of a call, so it is read only if it is needed.
        *self.tgid.get_or_init(|| thread_group(self.tid).unwrap_or(self.tid))
    }

    fn file_id(&self, fd: RawFd) -> Result<FileId, Errno> {
        let mut last = self.file.lock();
        if let Some((_, id)) = last.filter(|(known, _)| *known == fd) {
            return Ok(id);
        }
        let file = stat_of(self.tid, fd, AtFlags::empty()).ok_or(Errno::EBADF)?;
        let id = FileId { dev: file.st_dev, ino: file.st_ino };
        last.get_or_insert((fd, id));
        Ok(id)
    }

    fn read_only(&self, fd: RawFd) -> bool {
        // The permissions of the link say what the descriptor was opened for.
        let link = stat_of(self.tid, fd, AtFlags::AT_SYMLINK_NOFOLLOW);
        link.is_some_and(|link| link.st_mode & (libc::S_IRUSR | libc::S_IWUSR) == libc::S_IRUSR)
    }

    fn install(&self, file: OwnedFd) -> Result<RawFd, Errno> {
        self.give(self.closes.hand_out(file, self.pid())?.as_fd(), true)
    }

    fn close(&self, fd: RawFd) {
        // No process can close a descriptor of another one. The number stays in use, for a file that does nothing.
        if let Ok(null) = std::fs::File::open("/dev/null") {
            let _ = sys::replace_fd(self.listener, self.notification, null.as_fd(), fd, true);
        }
    }

    fn read(&self, addr: u64, buf: &mut [u8]) -> Result<(), Errno> {
        let (len, remote) = (buf.len(), [RemoteIoVec { base: addr as usize, len: buf.len() }]);
        let got = process_vm_readv(Pid::from_raw(self.tid), &mut [IoSliceMut::new(buf)], &remote);
        whole(got, len)
    }

    fn write(&self, addr: u64, bytes: &[u8]) -> Result<(), Errno> {
        let remote = [RemoteIoVec { base: addr as usize, len: bytes.len() }];
        whole(process_vm_writev(Pid::from_raw(self.tid), &[IoSlice::new(bytes)], &remote), bytes.len())
    }

    fn vma(&self, addr: u64) -> Option<Vma> {
        self.vmas().find(|vma| vma.end > addr)
    }

    fn maps(&self, file: FileId, _except: u64) -> bool {
        // The simulator's own mapping of the file is in the memory map of this process and not in the caller's.
        self.vmas().any(|vma| vma.file == file)
    }

    fn pin(&self, addr: u64, len: u64, write: bool) -> Result<Backing, Errno> {
        let end = addr.checked_add(len).ok_or(Errno::EINVAL)?;
        let vma = self.vmas().find(|vma| vma.end > addr).filter(|vma| vma.start <= addr).ok_or(Errno::EINVAL)?;
        if end > vma.end || !vma.read || (write && !vma.write) {
            return Err(Errno::EINVAL);
        }
        if !vma.shared {
            tracing::warn!(
                "nvmap FROM_VA of {len:#x} private bytes at {addr:#x} of process {}: only shared memory can be seen \
                 from outside a process (known difference OOP-D01)",
                self.tid
            );
            return Err(Errno::EINVAL);
        }
        // This path is the only way to the shared pages of another process. The kernel allows it to root
        // (CAP_CHECKPOINT_RESTORE).
        let path = format!("/proc/{}/map_files/{:x}-{:x}", self.tid, vma.start, vma.end);
        let file = std::fs::OpenOptions::new().read(true).write(true).open(path).map_err(|e| {
            tracing::warn!("nvmap FROM_VA: cannot open shared pages of process {}: {e}", self.tid);
            Errno::EINVAL
        })?;
        let at = vma.offset + (addr - vma.start);
        Backing::from_shared(&file, at, len as usize)
    }

    /// A caller that has died counts as interrupted too, because nobody waits for the answer.
    fn interrupted(&self) -> bool {
        match (self.waits(), self.is_signalled()) {
            (false, _) => self.signalled.swap(SURELY_OURS, Ordering::Relaxed),
            (true, true) => self.signalled.fetch_add(1, Ordering::Relaxed),
            (true, false) => self.signalled.swap(0, Ordering::Relaxed),
        };
        self.was_interrupted()
    }

    fn may_reschedule(&self) -> bool {
        const CAP_SYS_NICE: u32 = 23;
        let caps = self.status("CapEff").and_then(|hex| u64::from_str_radix(&hex, 16).ok());
        caps.is_some_and(|caps| caps >> CAP_SYS_NICE & 1 == 1)
    }
}

/// Checks that a copy was complete. The system calls that copy return a short count if they meet a bad page.
fn whole(copied: Result<usize, Errno>, wanted: usize) -> Result<(), Errno> {
    if copied == Ok(wanted) { Ok(()) } else { Err(Errno::EFAULT) }
}
