//! Files that stay open without a descriptor of this process's.
//!
//! A buffer is a memfd, and the simulator must be able to hand out descriptors of it for as long as it lives. On a board
//! a buffer costs its program no descriptor, and a model has more buffers than the usual 1024 descriptors. A thread may
//! have a descriptor table of its own, though: such a thread, a drawer, holds files by the hundreds; a socket takes them
//! there and back. A file that comes back is the same open file, not one like it.
#![allow(unsafe_code)]

use super::memfd;
use nix::sys::signal::SigSet;
use nix::sys::socket::*;
use nix::unistd::Pid;
use parking_lot::Mutex;
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Weak};
use tegrarm_kmd::Errno;

/// So many files are simply kept here: they come back without a switch to another thread.
const HERE_MOST: usize = 256;
static HERE: AtomicUsize = AtomicUsize::new(0);

/// Drawers that hold something.
static DRAWERS: Mutex<Vec<Weak<Drawer>>> = Mutex::new(Vec::new());

/// An open file, kept.
#[derive(Debug)]
pub(crate) struct Kept(Place);

#[derive(Debug)]
enum Place {
    /// On one of this process's descriptors; counted, or above the count because no drawer could be had.
    Here { fd: OwnedFd, counted: bool },
    /// On a descriptor of a drawer.
    Away { drawer: Arc<Drawer>, slot: RawFd },
}

impl Kept {
    /// Keeps a file.
    ///
    /// # Errors
    /// `EMFILE` when neither a drawer nor this process has room for it.
    pub(crate) fn new(fd: OwnedFd) -> Result<Kept, Errno> {
        let here = HERE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < HERE_MOST).then_some(n + 1));
        if here.is_ok() {
            let stowed = memfd::stow(fd).inspect_err(|_| leave());
            return Ok(Kept(Place::Here { fd: stowed?, counted: true }));
        }
        match put_away(&fd) {
            Ok((drawer, slot)) => Ok(Kept(Place::Away { drawer, slot })),
            Err(_) => Ok(Kept(Place::Here { fd: memfd::stow(fd)?, counted: false })),
        }
    }

    /// Another descriptor of the file, close-on-exec, on the lowest free number.
    ///
    /// # Errors
    /// `EMFILE`; `EBADF` in a child that was forked since.
    pub(crate) fn duplicate(&self) -> Result<OwnedFd, Errno> {
        match &self.0 {
            Place::Here { fd, .. } => memfd::duplicate(fd),
            Place::Away { drawer, slot } => drawer.give(*slot),
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        match &self.0 {
            Place::Here { counted: true, .. } => leave(),
            Place::Here { .. } => {}
            Place::Away { drawer, slot } => drawer.discard(*slot),
        }
    }
}

fn leave() {
    HERE.fetch_sub(1, Ordering::Relaxed);
}

/// Puts a file into a drawer with room, or into a new one.
fn put_away(fd: &OwnedFd) -> Result<(Arc<Drawer>, RawFd), Errno> {
    let mut drawers = DRAWERS.lock();
    drawers.retain(|d| d.strong_count() > 0);
    // The newest has room, if any has.
    for drawer in drawers.iter().rev().filter_map(Weak::upgrade) {
        if let Ok(slot) = drawer.take(fd) {
            return Ok((drawer, slot));
        }
    }
    let drawer = Arc::new(Drawer::open()?);
    let slot = drawer.take(fd)?;
    drawers.push(Arc::downgrade(&drawer));
    Ok((drawer, slot))
}

/// What is asked of a drawer, in the first word of a message; the second is a slot.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
enum Ask {
    Take = 1,
    Give = 2,
    Discard = 3,
}

/// The slot of a reply that means "no".
const NONE: RawFd = -1;

/// This side of a thread that holds files. The thread ends with it.
#[derive(Debug)]
struct Drawer {
    /// One question and its answer at a time.
    socket: Mutex<OwnedFd>,
    owner: Pid,
}

impl Drawer {
    fn open() -> Result<Drawer, Errno> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)?;
        let (ours, theirs) = (memfd::stow(ours)?, memfd::stow(theirs)?);
        let (ready, started) = channel();
        let thread = std::thread::Builder::new().name("dmabufs".to_owned()).stack_size(256 << 10);
        let number = theirs.as_raw_fd();
        thread.spawn(move || hold(number, &ready)).map_err(|_| Errno::EAGAIN)?;
        // `theirs` is open until the thread has a table of its own, with a copy of it.
        started.recv().map_err(|_| Errno::ENOSYS)?;
        Ok(Drawer { socket: Mutex::new(ours), owner: Pid::this() })
    }

    fn ask(&self, ask: Ask, slot: RawFd, with: Option<RawFd>) -> Result<(RawFd, Option<OwnedFd>), Errno> {
        // A forked child has our socket but must not talk to its parent's thread.
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
        // Without a free descriptor here the file gets lost on the way; the drawer still has it.
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

/// Number of the socket in a drawer's table. Below it is /dev/null: whoever writes to standard error writes to nobody.
const SOCKET: RawFd = 3;

/// The thread: takes files, gives descriptors of them, until the other end of its socket is closed.
fn hold(socket: RawFd, ready: &Sender<()>) {
    // The program's signals are for the program's threads.
    if SigSet::all().thread_block().is_err() || own_table(socket).is_err() || ready.send(()).is_err() {
        return;
    }
    while let Ok(Some(([ask, slot], file))) = receive(SOCKET) {
        let (slot, with) = match (ask, file) {
            (ask, Some(file)) if ask == Ask::Take as i32 => (std::os::fd::IntoRawFd::into_raw_fd(file), None),
            (ask, _) if ask == Ask::Give as i32 => (slot, Some(slot)),
            (ask, _) if ask == Ask::Discard as i32 => {
                // SAFETY: a slot that this table gave for a file whose one owner is gone.
                unsafe { libc::close(slot) };
                (slot, None)
            }
            _ => (NONE, None),
        };
        // A file that cannot be sent (too many are on their way already) is a "no", not the end.
        if send(SOCKET, [slot, 0], with).is_err() && send(SOCKET, [NONE, 0], None).is_err() {
            return;
        }
    }
}

/// Gives the calling thread a descriptor table of its own with nothing in it but `socket`, which becomes [`SOCKET`].
fn own_table(socket: RawFd) -> Result<(), Errno> {
    const LAST: libc::c_uint = libc::c_uint::MAX;
    // Not unshare(2): containers refuse that one. The range is empty: it is about the flag.
    let unshare = libc::CLOSE_RANGE_UNSHARE as libc::c_int;
    // SAFETY: closes nothing; afterwards this thread's table is a copy.
    Errno::result(unsafe { libc::syscall(libc::SYS_close_range, LAST, LAST, unshare) })?;
    // SAFETY: from here on only this thread's table is changed, and this thread owns none of what it closes.
    unsafe {
        Errno::result(libc::dup2(socket, SOCKET + 1))?;
        let null = Errno::result(libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC))?;
        for number in 0..SOCKET {
            Errno::result(libc::dup2(null, number))?;
        }
        Errno::result(libc::dup2(SOCKET + 1, SOCKET))?;
        Errno::result(libc::syscall(libc::SYS_close_range, SOCKET + 1, LAST, 0))?;
    }
    Ok(())
}

fn send(socket: RawFd, words: [i32; 2], with: Option<RawFd>) -> Result<(), Errno> {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&words[0].to_ne_bytes());
    bytes[4..].copy_from_slice(&words[1].to_ne_bytes());
    let fds = [with.unwrap_or(NONE)];
    let rights = [ControlMessage::ScmRights(&fds)];
    let control = if with.is_some() { &rights[..] } else { &[] };
    let flags = MsgFlags::MSG_NOSIGNAL;
    while let Err(errno) = sendmsg::<()>(socket, &[IoSlice::new(&bytes)], control, flags, None) {
        if errno != Errno::EINTR {
            return Err(errno);
        }
    }
    Ok(())
}

/// A message's words, and the file that came with it.
type Message = ([i32; 2], Option<OwnedFd>);

/// The next message; `None` when the other end is closed.
fn receive(socket: RawFd) -> Result<Option<Message>, Errno> {
    let mut bytes = [0; 8];
    let mut space = nix::cmsg_space!(RawFd);
    let (len, fd) = loop {
        let mut into = [IoSliceMut::new(&mut bytes)];
        match recvmsg::<()>(socket, &mut into, Some(&mut space), MsgFlags::MSG_CMSG_CLOEXEC) {
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
            Ok(message) => break (message.bytes, attached(&message)),
        }
    };
    // SAFETY: the kernel just made this descriptor for us.
    let file = fd.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    let word = |at: usize| i32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    Ok((len == bytes.len()).then(|| ([word(0), word(4)], file)))
}

fn attached(message: &RecvMsg<'_, '_, ()>) -> Option<RawFd> {
    message.cmsgs().ok()?.find_map(|c| match c {
        ControlMessageOwned::ScmRights(fds) => fds.first().copied(),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::FileId;

    fn open() -> usize {
        std::fs::read_dir("/proc/self/fd").expect("proc").count()
    }

    #[test]
    fn a_drawer_keeps_files_open_and_gives_the_same_ones_back() {
        let before = open();
        let drawer = Drawer::open().unwrap();
        let with_drawer = open();
        assert!(with_drawer <= before + 8, "other tests of this program open files too");
        let kept: Vec<_> = (0..300)
            .map(|i| {
                let file = memfd::create("kept", 4096 * (i + 1)).unwrap();
                (drawer.take(&file).unwrap(), FileId::of(&file).unwrap())
            })
            .collect();
        assert!(open() < with_drawer + 100, "300 files");
        for (slot, id) in &kept {
            let back = drawer.give(*slot).unwrap();
            assert_eq!(FileId::of(&back).unwrap(), *id);
        }
        drawer.discard(kept[7].0);
        assert!(drawer.give(kept[7].0).is_err(), "closed");
        let again = memfd::create("again", 0).unwrap();
        assert_eq!(drawer.take(&again), Ok(kept[7].0), "its number is free again");
    }
}
