//! The files of sysfs that programs have open for writing. What a program writes comes through a pipe, and one thread
//! reads all of them.

use super::Supervisor;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::collections::HashMap;
use std::io::{ErrorKind, PipeReader, Read};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use tegra_kernel::budget::{Resource, Share};
use tegrarm_lock::Mutex;

/// Linux takes a page from one write to such a file. A longer line is more than one write.
const PAGE: usize = 4096;
/// The stack of the thread in bytes.
const STACK: usize = 256 << 10;

/// The open files.
#[derive(Default)]
pub struct Writers {
    state: Mutex<State>,
    /// Held while something is read, so that a caller of [`Writers::settle`] misses nothing.
    reading: Mutex<()>,
}

#[derive(Default)]
struct State {
    /// It exists from the first opening on, together with the thread.
    ready: Option<Arc<Epoll>>,
    open: HashMap<u64, Writer>,
    /// The number of files that were opened so far.
    numbers: u64,
}

struct Writer {
    pid: i32,
    path: String,
    pipe: PipeReader,
    /// The beginning of a line that has not ended.
    line: Vec<u8>,
    _share: Share,
}

impl Writers {
    /// Opens a file. The result is the program's end of the pipe.
    ///
    /// # Errors
    /// `EMFILE` when the process has too many such files, `ENFILE` when all processes together have, and the errno of
    /// making a pipe or the thread.
    pub fn open(&self, supervisor: &Arc<Supervisor>, pid: i32, path: &str) -> Result<OwnedFd, Errno> {
        let mut state = self.state.lock();
        let share = supervisor.budgets.take(Resource::Writers, pid, 1)?;
        let ready = state.start(supervisor)?;
        let (pipe, theirs) = std::io::pipe().map_err(|_| Errno::EMFILE)?;
        fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        state.numbers += 1;
        let number = state.numbers;
        ready.add(&pipe, EpollEvent::new(EpollFlags::EPOLLIN, number))?;
        state.open.insert(number, Writer { pid, path: path.to_owned(), pipe, line: Vec::new(), _share: share });
        Ok(theirs.into())
    }

    /// Reads all that was written so far, in the order in which the files were opened.
    pub fn settle(&self, supervisor: &Arc<Supervisor>) {
        let _one = self.reading.lock();
        let mut numbers: Vec<_> = self.state.lock().open.keys().copied().collect();
        numbers.sort_unstable();
        for number in numbers {
            while self.read_piece(supervisor, number) {}
        }
    }

    /// Reads what was written to one file.
    fn read(&self, supervisor: &Arc<Supervisor>, number: u64) {
        let _one = self.reading.lock();
        self.read_piece(supervisor, number);
    }

    /// Reads a piece of what was written to one file. The result says whether there may be more. A file that all programs have closed
    /// goes away.
    fn read_piece(&self, supervisor: &Arc<Supervisor>, number: u64) -> bool {
        let Some(mut writer) = self.state.lock().open.remove(&number) else { return false };
        let mut piece = [0; PAGE];
        let more = match writer.pipe.read(&mut piece) {
            Ok(0) => {
                writer.end(supervisor);
                return false;
            }
            Ok(count) => {
                piece[..count].iter().for_each(|byte| writer.take(supervisor, *byte));
                true
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => true,
            Err(e) if e.kind() == ErrorKind::WouldBlock => false,
            Err(e) => {
                tracing::warn!("what process {} wrote to {}: {e}", writer.pid, writer.path);
                return false;
            }
        };
        self.state.lock().open.insert(number, writer);
        more
    }
}

impl State {
    /// Starts the thread, if there is none.
    fn start(&mut self, supervisor: &Arc<Supervisor>) -> Result<Arc<Epoll>, Errno> {
        if let Some(ready) = &self.ready {
            return Ok(ready.clone());
        }
        let ready = Arc::new(Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?);
        let (own, weak) = (ready.clone(), Arc::downgrade(supervisor));
        // It reads a few words at a time, and a program may have few addresses (RLIMIT_AS).
        let thread = std::thread::Builder::new().name("devfreq".to_owned()).stack_size(STACK);
        let thread = thread.spawn(move || serve(&own, &weak));
        thread.map_err(|_| Errno::EAGAIN)?;
        self.ready = Some(ready.clone());
        Ok(ready)
    }
}

/// Reads whatever is written, for as long as the supervisor lives.
fn serve(ready: &Epoll, supervisor: &Weak<Supervisor>) {
    let mut events = [EpollEvent::empty(); 64];
    loop {
        let count = ready.wait(&mut events, EpollTimeout::NONE).unwrap_or(0);
        let Some(supervisor) = supervisor.upgrade() else { return };
        for event in &events[..count] {
            // A panic ends this one file.
            let read = AssertUnwindSafe(|| supervisor.writers.read(&supervisor, event.data()));
            if catch_unwind(read).is_err() {
                tracing::error!("a write to a file of sysfs made the simulator panic: the file is closed");
            }
        }
    }
}

impl Writer {
    fn take(&mut self, supervisor: &Arc<Supervisor>, byte: u8) {
        if byte != b'\n' {
            self.line.push(byte);
        }
        if byte == b'\n' || self.line.len() == PAGE {
            self.write(supervisor);
        }
    }

    fn end(mut self, supervisor: &Arc<Supervisor>) {
        if !self.line.is_empty() {
            self.write(supervisor);
        }
    }

    fn write(&mut self, supervisor: &Arc<Supervisor>) {
        let line = String::from_utf8_lossy(&std::mem::take(&mut self.line)).into_owned();
        let result = supervisor.kernel.write_text(self.pid, &self.path, &line);
        if let Err(e) = result {
            let shown: String = line.chars().take(80).collect();
            tracing::warn!("writing {shown:?} to {}: {e}", self.path);
        }
        supervisor.observe(|o| o.wrote(self.pid, &self.path, &line, result));
        supervisor.refresh_texts();
    }
}
