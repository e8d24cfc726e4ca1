//! The threads that answer trapped calls.
//!
//! All of them wait for the next call at the same descriptor, and the host gives each call to one thread. So calls of
//! different processes, and of different threads of one process, are answered at the same time, as in a kernel. The
//! functions that they call lock what is shared.

use super::Supervisor;
use super::calls::{self, Argument};
use super::repeat::{self, Answer, Unheard};
use super::sys::{self, Notification, Reply};
use super::target::{Target, thread_group};
use super::waiting::Waiting;
use nix::sys::resource::{Resource as Limit, getrlimit};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tegra_kernel::budget::Resource;
use tegrarm_kmd::Errno;
use tegrarm_lock::Mutex;

/// The least and the greatest number of threads. With fewer threads, one call would delay all others.
const FEWEST_THREADS: usize = 4;
const MOST_THREADS: usize = 16;
/// Threads are added up to this number while all of them are busy, because a call can wait for memory of its program that the
/// program itself brings (userfaultfd, FUSE).
const MOST_OF_ALL: usize = 512;
/// The stack of a thread in bytes, which is Rust's own size.
const STACK: usize = 2 << 20;
/// Under a limit of addresses (RLIMIT_AS), stacks may take this part of them: the rest is for the board's memory.
const STACKS_PART: u64 = 8;
/// From this number of calls on, what one process has of them is counted. More than this many of its calls are refused.
const CROWD: usize = 32;
const FOR_ONE: usize = 64;

/// The state that the threads share.
pub struct Service {
    supervisor: Arc<Supervisor>,
    listener: OwnedFd,
    /// The number of calls so far.
    trapped: AtomicU64,
    /// The number of threads that there should be when nothing happens.
    wanted: usize,
    /// The number of threads that there may be.
    most: usize,
    /// The threads that wait for a call, and all of them.
    idle: AtomicUsize,
    all: AtomicUsize,
    /// The callers of the calls that are being answered, as threads of theirs.
    callers: Mutex<Vec<i32>>,
}

impl Service {
    /// Starts the threads. They end with the last program, or with this process on hosts before Linux 6.11.
    ///
    /// # Errors
    /// The system's error, if it gives no thread at all.
    pub fn start(supervisor: Arc<Supervisor>, listener: OwnedFd) -> io::Result<Arc<Service>> {
        let wanted = std::thread::available_parallelism()
            .map_or(FEWEST_THREADS, usize::from)
            .clamp(FEWEST_THREADS, MOST_THREADS);
        sys::share_one_heap();
        let most = most_threads();
        let wanted = wanted.min(most);
        let (trapped, idle, all, callers) = Default::default();
        let service = Arc::new(Service { supervisor, listener, trapped, wanted, most, idle, all, callers });
        for number in 0..wanted {
            match service.add(format!("calls-{number}")) {
                Ok(()) => {}
                Err(e) if number == 0 => return Err(e),
                Err(e) => {
                    tracing::warn!("{number} threads answer calls instead of {wanted}: {e}");
                    break;
                }
            }
        }
        Ok(service)
    }

    /// The descriptor at which calls arrive.
    pub fn listener(&self) -> &OwnedFd {
        &self.listener
    }

    /// The number of calls that were trapped.
    pub fn trapped(&self) -> u64 {
        self.trapped.load(Ordering::Relaxed)
    }

    /// Adds a thread.
    fn add(self: &Arc<Self>, name: String) -> io::Result<()> {
        let own = self.clone();
        self.all.fetch_add(1, Ordering::Relaxed);
        let started = std::thread::Builder::new().name(name).stack_size(STACK).spawn(move || {
            own.serve();
            own.all.fetch_sub(1, Ordering::Relaxed);
        });
        started.map(drop).inspect_err(|_| {
            self.all.fetch_sub(1, Ordering::Relaxed);
        })
    }

    /// Answers calls, until the last program has ended or there are threads enough without this one.
    fn serve(self: &Arc<Self>) {
        loop {
            self.idle.fetch_add(1, Ordering::Relaxed);
            let received = sys::receive(self.listener.as_fd());
            let last = self.idle.fetch_sub(1, Ordering::Relaxed) == 1;
            match received {
                Ok(Some(call)) => {
                    self.trapped.fetch_add(1, Ordering::Relaxed);
                    if last {
                        self.relieve();
                    }
                    self.dispatch(call);
                    if self.idle.load(Ordering::Relaxed) >= self.wanted {
                        return;
                    }
                }
                Ok(None) if sys::is_deserted(self.listener.as_fd()) => return,
                Ok(None) => {}
                Err(e) => {
                    tracing::error!("a trapped call could not be received: {e}");
                    std::thread::yield_now();
                }
            }
        }
    }

    /// Adds a thread in place of the last one that waited.
    fn relieve(self: &Arc<Self>) {
        if self.all.load(Ordering::Relaxed) >= self.most {
            tracing::warn!("all {} threads that answer calls are busy: the next call waits for one of them", self.most);
        } else if let Err(e) = self.add("calls-more".to_owned()) {
            tracing::warn!("all threads that answer calls are busy, and there is no other one: {e}");
        }
    }

    /// Answers a call. A call that may sleep gets a thread of its own, so that it does not delay others.
    fn dispatch(self: &Arc<Self>, call: Notification) {
        if !calls::sleeps(&call) {
            return self.take(&call);
        }
        let own = self.clone();
        let process = thread_group(call.pid as i32).unwrap_or(call.pid as i32);
        let share = self.supervisor.budgets.take(Resource::Sleepers, process, 1);
        let started = share.map_err(io::Error::from).and_then(|share| {
            let sleep = move || {
                own.answer(&call);
                drop(share);
            };
            std::thread::Builder::new().name("sleeper".to_owned()).spawn(sleep).map(drop)
        });
        if let Err(e) = started {
            tracing::warn!("there is no thread for a call that may sleep: {e}");
            sys::reply(self.listener.as_fd(), call.id, Reply::Error(Errno::ENOMEM));
        }
    }

    /// Answers a call, unless its process has too many others that are being answered.
    fn take(&self, call: &Notification) {
        let tid = call.pid as i32;
        let others = {
            let mut callers = self.callers.lock();
            callers.push(tid);
            if callers.len() > CROWD { callers.clone() } else { Vec::new() }
        };
        let process = if others.is_empty() { None } else { thread_group(tid) };
        let own = others.iter().filter(|other| thread_group(**other) == process).count();
        // A process that starts others has no more calls with them than half of what is left.
        let allowed = FOR_ONE.min(self.most.saturating_sub(others.len() - own) / 2);
        if own > allowed {
            tracing::warn!("process {process:?} has {allowed} calls that are not answered yet: ENOMEM for one more");
            sys::reply(self.listener.as_fd(), call.id, Reply::Error(Errno::ENOMEM));
        } else {
            self.answer(call);
        }
        let mut callers = self.callers.lock();
        if let Some(at) = callers.iter().position(|caller| *caller == tid) {
            callers.swap_remove(at);
        }
    }

    fn answer(&self, call: &Notification) {
        let listener = self.listener.as_fd();
        // A call without lasting effects can be made again.
        let once = repeat::arguments(call).is_some();
        match &self.supervisor.unheard {
            Some(unheard) if once => self.answer_once(unheard, call),
            _ => {
                let reply = self.decide(&self.target(call), call);
                if once && self.supervisor.waiting == Waiting::Unaware {
                    // A signal that wakes the caller just before the answer would take it away.
                    sys::nudge(listener, call.id);
                }
                // A caller that does not get the answer has died.
                sys::reply(listener, call.id, reply);
            }
        }
    }

    /// Answers a call of a caller that a signal may take away meanwhile.
    fn answer_once(&self, unheard: &Unheard, call: &Notification) {
        let _turn = unheard.turn(call.pid);
        let target = self.target(call);
        // The caller was taken away before anything was done. It may have made the call again, and that call may have
        // been answered.
        if !target.waits() {
            return;
        }
        let [_, request, address, ..] = call.data.args;
        let argument = Argument::of(request as u32, address);
        let is_ioctl = i64::from(call.data.nr) == libc::SYS_ioctl;
        let found = is_ioctl.then(|| argument.read(&target).ok()).flatten().unwrap_or_default();
        let (before, reply) = match unheard.take(call, &found) {
            Some(Answer { before, after, value, .. }) => {
                let written = argument.write_back(&target, &found, &after);
                target.leave(&after);
                // The argument may hold the result by now, if an earlier answer wrote it after the program had made the
                // call again. What the program sets it to for its next attempt is what it held at first.
                (before, written.map_or_else(Reply::Error, |()| Reply::Value(value)))
            }
            None => {
                let reply = self.decide(&target, call);
                (found, reply)
            }
        };
        if !target.answer(reply) {
            unheard.remember(call, before, target.left(), reply);
        }
    }

    fn target(&self, call: &Notification) -> Target<'_> {
        Target::of(self.listener.as_fd(), &self.supervisor.closes, call)
    }

    /// Decides a call. A panic here fails the call, and the other programs keep their board.
    fn decide(&self, target: &Target<'_>, call: &Notification) -> Reply {
        catch_unwind(AssertUnwindSafe(|| self.supervisor.decide(target, call))).unwrap_or_else(|_| {
            tracing::error!("system call {} of thread {} made the simulator panic: EIO", call.data.nr, call.pid);
            Reply::Error(Errno::EIO)
        })
    }
}

/// How many threads there may be: fewer under a limit of addresses, which a supervisor's processors could use up with stacks alone.
fn most_threads() -> usize {
    // Without a limit, this is the largest number.
    let addresses = getrlimit(Limit::RLIMIT_AS).map_or(u64::MAX, |(soft, _)| soft);
    (addresses / STACKS_PART / STACK as u64).clamp(FEWEST_THREADS as u64, MOST_OF_ALL as u64) as usize
}
