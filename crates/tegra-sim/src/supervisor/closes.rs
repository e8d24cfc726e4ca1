//! Finds out when the last descriptor of a file is closed that programs have.
//!
//! Nobody tells a supervisor of a `close`. Closes are too frequent to trap, and a process can end without any. But
//! every file that is handed out is an open file of its own, which the supervisor does not keep open, and the host
//! reports its end. inotify reports the end of a memfd, and the other end of a socket or a pipe reports the end of its
//! peer. Both reports come before the `close`, `munmap` or `exit` that caused them returns to the program. So a look at
//! the reports sees everything that was closed before.
//!
//! A report only says where to look. Several reports of the same file become one, and a program may open a file again
//! by itself. What counts is the lock that each open file of a memfd has (`F_OFD_SETLK`, on a byte of its own): it ends
//! with that open file.

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};
use nix::sys::stat::{SFlag, fstat};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tegra_kernel::Kernel;
use tegra_kernel::process::FileId;
use tegra_mm::{Kept, memfd};

/// The byte of the first lock, which is far after any content.
const FIRST_LOCK: i64 = 1 << 60;

/// A report comes shortly before the lock ends. For this time after a report, a file that has not ended is looked at
/// again.
const MOMENT: Duration = Duration::from_secs(1);
/// This time is used instead if several open files of the memfd remain, because two reports may have become one.
const SHORT_MOMENT: Duration = Duration::from_millis(20);

/// Watches the files that programs have for their end.
#[derive(Debug)]
pub struct Closes {
    kernel: Arc<Kernel>,
    closed: Inotify,
    hung_up: Epoll,
    table: Mutex<Table>,
    /// The lock is held from reading reports until the kernel has been told, so that a second caller finds everything
    /// told.
    telling: Mutex<()>,
}

#[derive(Debug, Default)]
struct Table {
    /// The memfds that programs have.
    memory: HashMap<FileId, Memory>,
    watches: HashMap<WatchDescriptor, FileId>,
    /// The memfds that have no watch, because the host limits the number of watches.
    unwatched: HashSet<FileId>,
    /// The memfds that were reported and have not ended, each with the time until which it is looked at again.
    suspects: HashMap<FileId, Instant>,
    /// The sockets and pipes, by number.
    peers: HashMap<u64, Peer>,
    /// The number of files that were handed out so far.
    numbers: u64,
    /// The files that the kernel has entered but that could not be handed out.
    lost: Vec<FileId>,
}

#[derive(Debug)]
struct Memory {
    watch: Option<WatchDescriptor>,
    /// An open file of the supervisor, which asks for the locks of the others.
    probe: Kept,
    /// The numbers of the open files that programs have.
    open: Vec<u64>,
}

#[derive(Debug)]
struct Peer {
    id: FileId,
    /// The supervisor's end of the socket or pipe.
    _end: OwnedFd,
}

impl Closes {
    /// Makes a watcher that tells `kernel`.
    ///
    /// # Errors
    /// The errno of `inotify_init(2)` or `epoll_create(2)`.
    pub fn new(kernel: Arc<Kernel>) -> Result<Closes, Errno> {
        Ok(Closes {
            kernel,
            closed: Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?,
            hung_up: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            table: Mutex::default(),
            telling: Mutex::default(),
        })
    }

    /// Watches a file that the kernel has entered and that a program is about to get. The result is the descriptor for
    /// the program. If the program does not get it, dropping the result counts as a close.
    ///
    /// # Errors
    /// The errno of the system calls. The next look finds the file closed.
    pub fn hand_out(&self, file: OwnedFd) -> Result<OwnedFd, Errno> {
        let stat = fstat(&file)?;
        let id = FileId { dev: stat.st_dev, ino: stat.st_ino };
        let kind = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT;
        let watched = if kind == SFlag::S_IFREG { self.watch_memory(id, file) } else { self.watch_peer(id, file) };
        // The file is not ended at once, because the kernel may be executing a call on it.
        watched.inspect_err(|_| self.table.lock().lost.push(id))
    }

    fn watch_memory(&self, id: FileId, file: OwnedFd) -> Result<OwnedFd, Errno> {
        let mode = OFlag::from_bits_truncate(fcntl(&file, FcntlArg::F_GETFL)?) & OFlag::O_ACCMODE;
        let theirs = memfd::reopen(file.as_fd(), mode)?;
        let mut table = self.table.lock();
        table.numbers += 1;
        let number = table.numbers;
        fcntl(&theirs, FcntlArg::F_OFD_SETLK(&lock(libc::F_RDLCK, number)))?;
        if let Some(known) = table.memory.get_mut(&id) {
            known.open.push(number);
            return Ok(theirs);
        }
        let watch = self.watch(file.as_fd());
        match watch {
            Some(watch) => drop(table.watches.insert(watch, id)),
            None => drop(table.unwatched.insert(id)),
        }
        match Kept::new(file) {
            Ok(probe) => drop(table.memory.insert(id, Memory { watch, probe, open: vec![number] })),
            Err(errno) => {
                self.unwatch(&mut table, id, watch);
                return Err(errno);
            }
        }
        Ok(theirs)
    }

    fn watch(&self, file: BorrowedFd<'_>) -> Option<WatchDescriptor> {
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let closing = AddWatchFlags::IN_CLOSE_WRITE | AddWatchFlags::IN_CLOSE_NOWRITE;
        self.closed
            .add_watch(path.as_str(), closing)
            .inspect_err(|e| tracing::info!("a file without a watch: {e}"))
            .ok()
    }

    fn unwatch(&self, table: &mut Table, id: FileId, watch: Option<WatchDescriptor>) {
        match watch {
            Some(watch) => {
                table.watches.remove(&watch);
                // The watch is gone already if nobody has the file any more.
                let _ = self.closed.rm_watch(watch);
            }
            None => drop(table.unwatched.remove(&id)),
        }
    }

    fn watch_peer(&self, id: FileId, file: OwnedFd) -> Result<OwnedFd, Errno> {
        // A file of which the supervisor has no end does not belong to the kernel.
        let Some(end) = self.kernel.our_end(id) else { return Ok(file) };
        let mut table = self.table.lock();
        table.numbers += 1;
        let number = table.numbers;
        // Hang-ups are always reported, here once for each file.
        self.hung_up.add(&end, EpollEvent::new(EpollFlags::EPOLLET, number))?;
        table.peers.insert(number, Peer { id, _end: end });
        Ok(file)
    }

    /// Tells the kernel which files have ended. Returns whether any has.
    pub fn tell(&self) -> bool {
        self.tell_of(Table::reported)
    }

    /// Tells the kernel which files have ended, after a look at every file, whether or not it was reported.
    pub fn tell_all(&self) -> bool {
        self.tell_of(|table| table.memory.keys().copied().collect())
    }

    fn tell_of(&self, suspected: impl FnOnce(&Table) -> HashSet<FileId>) -> bool {
        let _one_by_one = self.telling.lock();
        let ended = self.ended(suspected);
        // Each file was handed out once, so the kernel is told once.
        ended.iter().for_each(|(_, id)| self.kernel.closed(*id));
        !ended.is_empty()
    }

    /// The files that have ended since the last look, in the order in which they were handed out.
    fn ended(&self, suspected: impl FnOnce(&Table) -> HashSet<FileId>) -> Vec<(u64, FileId)> {
        let mut table = self.table.lock();
        let mut ended: Vec<_> = table.lost.drain(..).map(|id| (0, id)).collect();
        ended.append(&mut self.ended_peers(&mut table));
        let reported = self.reports(&table);
        let now = Instant::now();
        table.suspects.extend(reported.iter().map(|id| (*id, now + MOMENT)));
        for id in suspected(&table).union(&reported) {
            self.look(&mut table, *id, &mut ended);
        }
        table.suspects.retain(|_, until| now < *until);
        ended.sort_unstable_by_key(|(number, _)| *number);
        ended
    }

    /// Whether a reported file should be looked at again soon.
    pub fn suspects(&self) -> bool {
        let table = self.table.lock();
        !table.suspects.is_empty() || !table.unwatched.is_empty()
    }

    /// The memfds that were reported.
    fn reports(&self, table: &Table) -> HashSet<FileId> {
        let mut found = HashSet::new();
        // An empty queue is EAGAIN.
        while let Ok(events) = self.closed.read_events() {
            for event in events {
                if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
                    found.extend(table.memory.keys());
                }
                found.extend(table.watches.get(&event.wd));
            }
        }
        found
    }

    fn ended_peers(&self, table: &mut Table) -> Vec<(u64, FileId)> {
        let (mut ended, mut events) = (vec![], [EpollEvent::empty(); 64]);
        while !table.peers.is_empty()
            && let Ok(count @ 1..) = self.hung_up.wait(&mut events, EpollTimeout::ZERO)
        {
            let numbers = events[..count].iter().map(EpollEvent::data);
            // Removing the peer closes the supervisor's end, and the watch ends with it.
            ended.extend(numbers.filter_map(|number| Some((number, table.peers.remove(&number)?.id))));
        }
        ended
    }

    /// Finds the open files of a memfd that have ended.
    fn look(&self, table: &mut Table, id: FileId, ended: &mut Vec<(u64, FileId)>) {
        let Some(memory) = table.memory.get_mut(&id) else {
            table.suspects.remove(&id);
            return;
        };
        // Without a descriptor to ask with there is no answer, and the question is asked again later.
        let open = &mut memory.open;
        let closed = memory.probe.look(|probe| open.extract_if(.., |n| !is_locked(probe, *n)).collect::<Vec<_>>());
        let closed = closed.unwrap_or_default();
        if !closed.is_empty()
            && let Some(until) = table.suspects.get_mut(&id)
        {
            *until = (*until).min(Instant::now() + SHORT_MOMENT);
        }
        ended.extend(closed.into_iter().map(|number| (number, id)));
        if memory.open.is_empty() {
            let watch = memory.watch;
            table.memory.remove(&id);
            table.suspects.remove(&id);
            self.unwatch(table, id, watch);
        }
    }
}

impl Table {
    /// The files that may have ended, by what is known without asking the host.
    fn reported(&self) -> HashSet<FileId> {
        self.suspects.keys().chain(&self.unwatched).copied().collect()
    }
}

impl AsFd for Closes {
    /// The descriptor is readable when a memfd was reported.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.closed.as_fd()
    }
}

/// The lock of the open file with this number.
fn lock(kind: i32, number: u64) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: FIRST_LOCK + number.cast_signed(),
        l_len: 1,
        l_pid: 0,
    }
}

/// Whether the open file with this number is still open.
fn is_locked(probe: BorrowedFd<'_>, number: u64) -> bool {
    let mut asked = lock(libc::F_WRLCK, number);
    let answered = fcntl(probe, FcntlArg::F_OFD_GETLK(&mut asked));
    answered.is_ok() && asked.l_type != libc::F_UNLCK as libc::c_short
}
