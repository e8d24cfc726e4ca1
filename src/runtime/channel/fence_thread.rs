//! A thread that acts when a fence has passed, for programs of which no thread waits.

use crate::runtime::channel::backoff::Backoff;
use crate::runtime::fault::Probe;
use crate::sync::this_thread;
use nix::sys::signal::SigSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tegrarm_abi::rm::status::*;
use tegrarm_lock::{Condvar, Mutex};
use tegrarm_rm::status::{RmError, RmResult};

/// The action. It is told whether the work finished.
pub type Task = Box<dyn FnOnce(RmResult<()>) + Send>;

/// The thread. It is started when there is something to do.
pub struct FenceThread {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
    name: &'static str,
}

#[derive(Default)]
struct Shared {
    list: Mutex<List>,
    changed: Condvar,
    /// The number of the thread, after it began.
    runs_in: AtomicU64,
}

#[derive(Default)]
struct List {
    waiting: Vec<(Probe, Task)>,
    closing: bool,
}

impl FenceThread {
    /// Makes the value without its thread.
    pub fn new(name: &'static str) -> FenceThread {
        FenceThread { shared: Arc::default(), thread: Mutex::default(), name }
    }

    /// Starts the thread, unless it runs already.
    ///
    /// # Errors
    /// `NV_ERR_INSUFFICIENT_RESOURCES` if the system gives no thread.
    pub fn start(&self) -> RmResult<()> {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let shared = self.shared.clone();
            let started = std::thread::Builder::new().name(self.name.into()).spawn(move || shared.work());
            let failed =
                |e| RmError::new(NV_ERR_INSUFFICIENT_RESOURCES, format!("starting the thread {}: {e}", self.name));
            *thread = Some(started.map_err(failed)?);
        }
        Ok(())
    }

    /// Ends the thread. Actions that have not been done are told so.
    pub fn close(&self) {
        self.shared.list.lock().closing = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.lock().take()
            && self.shared.runs_in.load(Ordering::Relaxed) != this_thread()
        {
            // An action that panicked has ended the thread already.
            let _ = thread.join();
        }
    }

    /// Adds an action for the time at which a fence has passed or cannot pass any more. [`FenceThread::start`] must have
    /// been called.
    pub fn when(&self, probe: Probe, task: Task) {
        self.shared.list.lock().waiting.push((probe, task));
        self.shared.changed.notify_one();
    }
}

impl Shared {
    fn work(&self) {
        // Signals of the program are handled by the program's own threads.
        let _ = SigSet::all().thread_block();
        self.runs_in.store(this_thread(), Ordering::Relaxed);
        let mut backoff = Backoff::new(None);
        loop {
            let (ready, closing) = self.ready();
            for (result, task) in ready {
                backoff.refresh();
                task(result);
            }
            if closing || !self.rest(backoff.next_sleep()) {
                break;
            }
        }
        // The device is being closed and has waited for its work.
        let left = std::mem::take(&mut self.list.lock().waiting);
        for (probe, task) in left {
            let closed = || RmError::new(NV_ERR_RESOURCE_LOST, "the device was closed before the work finished");
            task(probe.look().unwrap_or_else(|| Err(closed())));
        }
    }

    /// The actions that can be done now, and whether the thread ends after them.
    fn ready(&self) -> (Vec<(RmResult<()>, Task)>, bool) {
        let (mut ready, mut list) = (Vec::new(), self.list.lock());
        let mut at = 0;
        while let Some((probe, _)) = list.waiting.get(at) {
            match probe.look() {
                None => at += 1,
                Some(result) => ready.push((result, list.waiting.remove(at).1)),
            }
        }
        (ready, list.closing)
    }

    /// Sleeps until there may be something to do. Returns false if the thread has to end.
    fn rest(&self, sleep: Duration) -> bool {
        let mut list = self.list.lock();
        if list.waiting.is_empty() && !list.closing {
            self.changed.wait(&mut list);
        } else if !list.closing {
            self.changed.wait_for(&mut list, sleep);
        }
        !list.closing
    }
}

impl Drop for FenceThread {
    fn drop(&mut self) {
        self.close();
    }
}
