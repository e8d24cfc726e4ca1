//! Finds out when the last descriptor of a file is closed that programs have.
//!
//! Nobody tells a supervisor of a `close`. Closes are too frequent to trap, and a process can end without any. But
//! every file that is handed out is an open file of its own, which the supervisor does not keep open, and the host
//! reports its end. inotify reports the end of a memfd, and the other end of a socket or a pipe reports the end of its
//! peer. Both reports come before the `close`, `munmap` or `exit` that caused them returns to the program. So a look at
//! the reports sees everything that was closed before.
//!
//! A report only says where to look. Several reports of the same file become one, and a program may open a file again
//! by itself. What counts is what no program can change without a close. The host grants a lease for writing
//! (`F_SETLEASE`) on the supervisor's own open file of a memfd only if there is no other open file of that memfd,
//! wherever it may be: in a process, in a mapping, or in a socket on its way. A socket that was shut down hangs up like
//! one that was closed, but the host still lists it. A lock would not do, because a child may release the locks of the
//! open files that it has inherited.

use super::opened::{Sockets, is_alone};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};
use nix::sys::stat::{SFlag, fstat};
use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tegra_kernel::Kernel;
use tegra_kernel::budget::{Budgets, Resource, Share};
use tegra_kernel::process::FileId;
use tegra_mm::{Kept, memfd};
use tegrarm_lock::Mutex;

/// A report comes shortly before the open file ends. For this time after a report, a file that has not ended is looked
/// at again.
const MOMENT: Duration = Duration::from_secs(1);

/// Watches the files that programs have for their end.
#[derive(Debug)]
pub struct Closes {
    kernel: Arc<Kernel>,
    budgets: Arc<Budgets>,
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
    /// The open file of the supervisor that asks for a lease. It is open for writing, so that no program gets a lease,
    /// for which the supervisor would have to wait.
    probe: Kept,
    /// The number of the first open file that programs got, and how many they got.
    first: u64,
    handed_out: usize,
    _share: Share,
}

/// A file that programs have no more, the number of its first descriptor, and how many descriptors they got.
#[derive(Debug)]
struct Ended {
    number: u64,
    id: FileId,
    descriptors: usize,
}

#[derive(Debug)]
struct Peer {
    id: FileId,
    /// The supervisor's end of the socket or pipe.
    _end: OwnedFd,
    _share: Share,
}

impl Closes {
    /// Makes a watcher that tells `kernel`.
    ///
    /// # Errors
    /// The errno of `inotify_init(2)` or `epoll_create(2)`, or that of asking for a lease.
    pub fn new(kernel: Arc<Kernel>, budgets: Arc<Budgets>) -> Result<Closes, Errno> {
        // Without leases no file would ever end. Without memfds there is none, and its opening says so.
        if let Ok(sample) = memfd::create("sample", 0) {
            is_alone(memfd::reopen(sample.as_fd(), OFlag::O_RDWR)?.as_fd())?;
        }
        Ok(Closes {
            kernel,
            budgets,
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
    /// `EMFILE` and `ENFILE` if `process` has too many files, or all processes together; the errno of the system calls. The next look finds the file closed.
    pub fn hand_out(&self, file: OwnedFd, process: i32) -> Result<OwnedFd, Errno> {
        let stat = fstat(&file)?;
        let id = FileId { dev: stat.st_dev, ino: stat.st_ino };
        let kind = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT;
        let watched = if kind == SFlag::S_IFREG {
            self.watch_memory(id, file, process)
        } else {
            self.watch_peer(id, file, process)
        };
        // The file is not ended at once, because the kernel may be executing a call on it.
        watched.inspect_err(|_| self.table.lock().lost.push(id))
    }

    fn watch_memory(&self, id: FileId, file: OwnedFd, process: i32) -> Result<OwnedFd, Errno> {
        let mode = OFlag::from_bits_truncate(fcntl(&file, FcntlArg::F_GETFL)?) & OFlag::O_ACCMODE;
        let theirs = memfd::reopen(file.as_fd(), mode)?;
        let mut table = self.table.lock();
        table.numbers += 1;
        let first = table.numbers;
        if let Some(known) = table.memory.get_mut(&id) {
            known.handed_out += 1;
            return Ok(theirs);
        }
        let share = self.budgets.take(Resource::Files, process, 1)?;
        let probe = Kept::new(memfd::reopen(file.as_fd(), OFlag::O_RDWR)?)?;
        let watch = self.watch(file.as_fd());
        match watch {
            Some(watch) => drop(table.watches.insert(watch, id)),
            None => drop(table.unwatched.insert(id)),
        }
        table.memory.insert(id, Memory { watch, probe, first, handed_out: 1, _share: share });
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

    fn watch_peer(&self, id: FileId, file: OwnedFd, process: i32) -> Result<OwnedFd, Errno> {
        // A file of which the supervisor has no end does not belong to the kernel.
        let Some(end) = self.kernel.our_end(id) else { return Ok(file) };
        let share = self.budgets.take(Resource::Ends, process, 1)?;
        let mut table = self.table.lock();
        table.numbers += 1;
        let number = table.numbers;
        // Hang-ups are always reported, here once for each file.
        self.hung_up.add(&end, EpollEvent::new(EpollFlags::EPOLLET, number))?;
        table.peers.insert(number, Peer { id, _end: end, _share: share });
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
        ended.iter().for_each(|ended| self.kernel.closed(ended.id, ended.descriptors));
        !ended.is_empty()
    }

    /// The files that have ended since the last look, in the order in which they were handed out.
    fn ended(&self, suspected: impl FnOnce(&Table) -> HashSet<FileId>) -> Vec<Ended> {
        let mut table = self.table.lock();
        let mut ended: Vec<_> = table.lost.drain(..).map(|id| Ended { number: 0, id, descriptors: 1 }).collect();
        ended.append(&mut self.ended_peers(&mut table));
        let reported = self.reports(&table);
        let now = Instant::now();
        table.suspects.extend(reported.iter().map(|id| (*id, now + MOMENT)));
        for id in suspected(&table).union(&reported) {
            self.look(&mut table, *id, &mut ended);
        }
        table.suspects.retain(|_, until| now < *until);
        ended.sort_unstable_by_key(|ended| ended.number);
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

    fn ended_peers(&self, table: &mut Table) -> Vec<Ended> {
        let (mut ended, mut events) = (vec![], [EpollEvent::empty(); 64]);
        while !table.peers.is_empty()
            && let Ok(count @ 1..) = self.hung_up.wait(&mut events, EpollTimeout::ZERO)
        {
            let alive = Sockets::now();
            for number in events[..count].iter().map(EpollEvent::data) {
                // A socket that was only shut down is reported again when it is closed.
                if table.peers.get(&number).is_none_or(|peer| alive.have(peer.id)) {
                    continue;
                }
                // Removing the peer closes the supervisor's end, and the watch ends with it.
                let peer = table.peers.remove(&number);
                ended.extend(peer.map(|peer| Ended { number, id: peer.id, descriptors: 1 }));
            }
        }
        ended
    }

    /// Finds out whether a memfd has ended.
    fn look(&self, table: &mut Table, id: FileId, ended: &mut Vec<Ended>) {
        let Some(memory) = table.memory.get(&id) else {
            table.suspects.remove(&id);
            return;
        };
        // Without a descriptor to ask with there is no answer, and the question is asked again later.
        if memory.probe.look(is_alone) != Ok(Ok(true)) {
            return;
        }
        let Some(Memory { watch, first, handed_out, .. }) = table.memory.remove(&id) else { return };
        ended.push(Ended { number: first, id, descriptors: handed_out });
        table.suspects.remove(&id);
        self.unwatch(table, id, watch);
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
