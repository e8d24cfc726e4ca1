//! Keeps files open without using descriptors of this process.
//!
//! A buffer is a memfd, and the simulator must be able to hand out descriptors of it for as long as it lives. On a
//! board a buffer costs its program no descriptor, and a model has more buffers than the usual 1024 descriptors. A
//! thread, however, may have a descriptor table of its own. Such a thread is called a keeper here: it holds files by
//! the hundreds, and they travel to it and back through a socket. A file that comes back is the same open file and not
//! a copy of it.
#![allow(unsafe_code)]

use super::memfd;
use nix::errno::Errno;
use nix::sys::signal::SigSet;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};
use nix::unistd::Pid;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};
use tegrarm_lock::{Mutex, ProcessMutex};

/// So many files are simply kept here: they come back without a switch to another thread.
static HERE_MOST: AtomicUsize = AtomicUsize::new(256);
static HERE: AtomicUsize = AtomicUsize::new(0);

/// The keepers that hold files.
static KEEPERS: ProcessMutex<Vec<Weak<Keeper>>> = ProcessMutex::new(Vec::new());

/// An open file that is kept.
#[derive(Debug)]
pub struct Kept(Place);

#[derive(Debug)]
enum Place {
    /// The file is kept on a descriptor of this process. It is `counted` unless it is above the limit, which happens
    /// when no keeper could be made.
    Here { fd: OwnedFd, counted: bool },
    /// The file is kept on a descriptor of a keeper.
    Away { keeper: Arc<Keeper>, slot: RawFd },
}

/// Keeps up to `files` files on this process's own descriptors. For a process that has no program's descriptors to leave
/// room for.
pub fn keep_here(files: usize) {
    HERE_MOST.store(files, Ordering::Relaxed);
}

impl Kept {
    /// Keeps a file.
    ///
    /// # Errors
    /// `EMFILE` when neither a keeper nor this process has room for it.
    pub fn new(fd: OwnedFd) -> Result<Kept, Errno> {
        let most = HERE_MOST.load(Ordering::Relaxed);
        let here = HERE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < most).then_some(n + 1));
        if here.is_ok() {
            let stowed = memfd::stow(fd).inspect_err(|_| leave());
            return Ok(Kept(Place::Here { fd: stowed?, counted: true }));
        }
        match put_away(&fd) {
            Ok((keeper, slot)) => Ok(Kept(Place::Away { keeper, slot })),
            Err(_) => Ok(Kept(Place::Here { fd: memfd::stow(fd)?, counted: false })),
        }
    }

    /// Whether the file is kept on this process's descriptor `fd`.
    pub fn is_on(&self, fd: RawFd) -> bool {
        matches!(&self.0, Place::Here { fd: ours, .. } if ours.as_raw_fd() == fd)
    }

    /// Looks at the file through the descriptor that it is kept on, or a passing one.
    ///
    /// # Errors
    /// As [`Kept::duplicate`].
    pub fn look<R>(&self, look: impl FnOnce(BorrowedFd<'_>) -> R) -> Result<R, Errno> {
        match &self.0 {
            Place::Here { fd, .. } => Ok(look(fd.as_fd())),
            Place::Away { keeper, slot } => Ok(look(keeper.give(*slot)?.as_fd())),
        }
    }

    /// Another descriptor of the file, close-on-exec, on the lowest free number.
    ///
    /// # Errors
    /// `EMFILE`; `EBADF` in a child process that was forked since the file was kept.
    pub fn duplicate(&self) -> Result<OwnedFd, Errno> {
        match &self.0 {
            Place::Here { fd, .. } => memfd::duplicate(fd),
            Place::Away { keeper, slot } => keeper.give(*slot),
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        match &self.0 {
            Place::Here { counted: true, .. } => leave(),
            Place::Here { .. } => {}
            Place::Away { keeper, slot } => keeper.discard(*slot),
        }
    }
}

fn leave() {
    HERE.fetch_sub(1, Ordering::Relaxed);
}

/// Puts a file into a keeper that has room, or into a new keeper.
fn put_away(fd: &OwnedFd) -> Result<(Arc<Keeper>, RawFd), Errno> {
    let mut keepers = KEEPERS.lock();
    keepers.retain(|d| d.strong_count() > 0);
    // If any keeper has room, it is the newest one.
    for keeper in keepers.iter().rev().filter_map(Weak::upgrade) {
        if let Ok(slot) = keeper.take(fd) {
            return Ok((keeper, slot));
        }
    }
    let keeper = Arc::new(Keeper::open()?);
    let slot = keeper.take(fd)?;
    keepers.push(Arc::downgrade(&keeper));
    Ok((keeper, slot))
}

/// The requests to a keeper. The first word of a message is the request and the second is a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
enum Ask {
    Take = 1,
    Give = 2,
    Discard = 3,
}

/// The slot in a reply that means "no".
const NONE: RawFd = -1;

/// This process's end of a thread that holds files. The thread ends when this value is dropped.
#[derive(Debug)]
struct Keeper {
    /// The socket, which is locked during one request and its answer.
    socket: Mutex<OwnedFd>,
    owner: Pid,
}

impl Keeper {
    fn open() -> Result<Keeper, Errno> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)?;
        let (ours, theirs) = (memfd::stow(ours)?, memfd::stow(theirs)?);
        let (ready, started) = channel();
        let thread = std::thread::Builder::new().name("dmabufs".to_owned()).stack_size(256 << 10);
        let number = theirs.as_raw_fd();
        thread.spawn(move || hold(number, &ready)).map_err(|_| Errno::EAGAIN)?;
        // `theirs` must stay open until the thread has its own table with a copy of it.
        started.recv().map_err(|_| Errno::ENOSYS)?;
        Ok(Keeper { socket: Mutex::new(ours), owner: Pid::this() })
    }

    fn ask(&self, ask: Ask, slot: RawFd, with: Option<RawFd>) -> Result<(RawFd, Option<OwnedFd>), Errno> {
        // A forked child has a copy of the socket but must not talk to its parent's thread.
        if Pid::this() != self.owner {
            return Err(Errno::EBADF);
        }
        let socket = self.socket.lock();
        send(socket.as_raw_fd(), [ask as i32, slot], with)?;
        let ([slot, _], file) = receive(socket.as_raw_fd())?.ok_or(Errno::EBADF)?;
        Ok((slot, file))
    }

    fn take(&self, fd: &OwnedFd) -> Result<RawFd, Errno> {
        match self.ask(Ask::Take, NONE, Some(fd.as_raw_fd()))? {
            (NONE, _) => Err(Errno::EMFILE),
            (slot, _) => Ok(slot),
        }
    }

    fn give(&self, slot: RawFd) -> Result<OwnedFd, Errno> {
        // If this process has no free descriptor, the file gets lost on the way. The keeper still has it.
        self.ask(Ask::Give, slot, None)?.1.ok_or(Errno::EMFILE)
    }

    fn discard(&self, slot: RawFd) {
        if let Err(errno) = self.ask(Ask::Discard, slot, None)
            && errno != Errno::EBADF
        {
            tracing::warn!("a buffer's file stays open: {errno}");
        }
    }
}

/// The number of the socket in a keeper's table. The numbers below it are /dev/null, so that what the thread writes to
/// standard error goes nowhere.
const SOCKET: RawFd = 3;

/// The thread's function: it takes files and gives descriptors of them, until the other end of its socket is closed.
fn hold(socket: RawFd, ready: &Sender<()>) {
    // The program's signals must be handled by the program's threads.
    if SigSet::all().thread_block().is_err() || own_table(socket).is_err() || ready.send(()).is_err() {
        return;
    }
    while let Ok(Some(([ask, slot], file))) = receive(SOCKET) {
        let (slot, with) = match (ask, file) {
            (ask, Some(file)) if ask == Ask::Take as i32 => (std::os::fd::IntoRawFd::into_raw_fd(file), None),
            (ask, _) if ask == Ask::Give as i32 => (slot, Some(slot)),
            (ask, _) if ask == Ask::Discard as i32 => {
                // SAFETY: the slot is one that this table gave for a file, and the only owner of that file has dropped
                // it.
                unsafe { libc::syscall(libc::SYS_close, slot) };
                (slot, None)
            }
            _ => (NONE, None),
        };
        // A file cannot be sent when too many are on their way already. The answer is then "no", and the thread goes
        // on.
        if send(SOCKET, [slot, 0], with).is_err() && send(SOCKET, [NONE, 0], None).is_err() {
            return;
        }
    }
}

/// Gives the calling thread a descriptor table of its own. The table has only `socket`, which becomes [`SOCKET`].
fn own_table(socket: RawFd) -> Result<(), Errno> {
    const LAST: libc::c_uint = libc::c_uint::MAX;
    // Containers refuse unshare(2), so this call is used for its flag. Its range is empty.
    let unshare = libc::CLOSE_RANGE_UNSHARE as libc::c_int;
    // SAFETY: the call closes nothing. Afterwards this thread's table is a copy.
    Errno::result(unsafe { libc::syscall(libc::SYS_close_range, LAST, LAST, unshare) })?;
    // SAFETY: from here on only this thread's table is changed, and this thread owns none of the descriptors that it
    // closes. The calls are made by their numbers for the reason given at `message`.
    unsafe {
        Errno::result(libc::syscall(libc::SYS_dup3, socket, SOCKET + 1, libc::O_CLOEXEC))?;
        let path = c"/dev/null".as_ptr();
        let null = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, libc::O_RDWR | libc::O_CLOEXEC);
        let null = Errno::result(null)?;
        for number in (0..SOCKET).filter(|n| libc::c_long::from(*n) != null) {
            Errno::result(libc::syscall(libc::SYS_dup3, null, number, libc::O_CLOEXEC))?;
        }
        Errno::result(libc::syscall(libc::SYS_dup3, SOCKET + 1, SOCKET, libc::O_CLOEXEC))?;
        Errno::result(libc::syscall(libc::SYS_close_range, SOCKET + 1, LAST, 0))?;
    }
    Ok(())
}

/// A control message with one descriptor, as `sendmsg(2)` lays it out.
#[repr(C)]
struct Rights {
    header: libc::cmsghdr,
    fd: RawFd,
}

impl Rights {
    fn of(fd: RawFd) -> Rights {
        // SAFETY: the structure consists of plain numbers, for which zero is a valid value.
        let mut header: libc::cmsghdr = unsafe { std::mem::zeroed() };
        // SAFETY: this only computes a number.
        header.cmsg_len = unsafe { libc::CMSG_LEN(size_of::<RawFd>() as libc::c_uint) } as _;
        (header.cmsg_level, header.cmsg_type) = (libc::SOL_SOCKET, libc::SCM_RIGHTS);
        Rights { header, fd }
    }
}

/// Makes a `sendmsg(2)` or `recvmsg(2)` of two words, and of `rights` if there are any. Returns the words and the
/// length that the call returned. The system call is made by its number, because tools that watch descriptors through
/// libc's functions assume that a process has one descriptor table.
fn message(
    call: libc::c_long,
    socket: RawFd,
    words: &mut [i32; 2],
    rights: Option<&mut Rights>,
) -> Result<(usize, usize), Errno> {
    let mut piece = libc::iovec { iov_base: words.as_mut_ptr().cast(), iov_len: size_of_val(words) };
    // SAFETY: the structure consists of pointers and numbers, for which zero is a valid value.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    (header.msg_iov, header.msg_iovlen) = (&raw mut piece, 1);
    if let Some(rights) = rights {
        header.msg_control = (rights as *mut Rights).cast();
        header.msg_controllen = size_of::<Rights>() as _;
    }
    let flags = libc::MSG_NOSIGNAL | libc::MSG_CMSG_CLOEXEC;
    loop {
        // SAFETY: the header names `words` and `rights`, which live until the call returns.
        match Errno::result(unsafe { libc::syscall(call, socket, &raw mut header, flags) }) {
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
            Ok(len) => return Ok((len as usize, header.msg_controllen as usize)),
        }
    }
}

fn send(socket: RawFd, mut words: [i32; 2], with: Option<RawFd>) -> Result<(), Errno> {
    message(libc::SYS_sendmsg, socket, &mut words, with.map(Rights::of).as_mut()).map(drop)
}

/// The words of a message, and the file that came with it.
type Message = ([i32; 2], Option<OwnedFd>);

/// Receives the next message. The result is `None` if the other end is closed.
fn receive(socket: RawFd) -> Result<Option<Message>, Errno> {
    let (mut words, mut rights) = ([0; 2], Rights::of(NONE));
    let (len, control) = message(libc::SYS_recvmsg, socket, &mut words, Some(&mut rights))?;
    let came = control > 0 && rights.header.cmsg_type == libc::SCM_RIGHTS && rights.fd >= 0;
    // SAFETY: the kernel just made this descriptor for this thread.
    let file = came.then(|| unsafe { OwnedFd::from_raw_fd(rights.fd) });
    Ok((len == size_of_val(&words)).then_some((words, file)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::fstat;

    /// The identity of the file on which a descriptor is open.
    fn identity(fd: &OwnedFd) -> (u64, u64) {
        let stat = fstat(fd).unwrap();
        (stat.st_dev, stat.st_ino)
    }

    fn open() -> usize {
        std::fs::read_dir("/proc/self/fd").expect("proc").count()
    }

    #[test]
    fn a_drawer_keeps_files_open_and_gives_the_same_ones_back() {
        let before = open();
        let keeper = Keeper::open().unwrap();
        let with_drawer = open();
        assert!(with_drawer <= before + 8, "other tests of this program open files too");
        let kept: Vec<_> = (0..300)
            .map(|i| {
                let file = memfd::create("kept", 4096 * (i + 1)).unwrap();
                (keeper.take(&file).unwrap(), identity(&file))
            })
            .collect();
        assert!(open() < with_drawer + 100, "300 files");
        for (slot, id) in &kept {
            let back = keeper.give(*slot).unwrap();
            assert_eq!(identity(&back), *id);
        }
        keeper.discard(kept[7].0);
        assert!(keeper.give(kept[7].0).is_err(), "closed");
        let again = memfd::create("again", 0).unwrap();
        assert_eq!(keeper.take(&again), Ok(kept[7].0), "its number is free again");
    }
}
