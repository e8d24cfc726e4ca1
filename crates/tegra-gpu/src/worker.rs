//! The threads that run a GPU, unless a program calls `step` itself.
//!
//! The GPU gets no notification when a program stores to its doorbell, so one thread reads the doorbells. For a moment
//! after work it reads without a pause, then it yields between reads, and then it sleeps between reads for times that
//! grow. Waits of the library wake it, and then it need not look so often. While it executes a long grid, a second thread serves the other channels
//! in the same way.

use super::core::Core;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tegrarm_lock::Mutex;

/// How long the thread reads without giving the processor away.
const SPIN: Duration = Duration::from_micros(30);
/// How long the thread yields the processor between reads.
const YIELD: Duration = Duration::from_millis(1);
/// While the thread has work, it tells those who wait for it this often.
const BUSY: Duration = Duration::from_millis(1);
/// After so many pieces of work in a row that nobody waited for, the thread no longer expects to be woken.
const UNASKED: u32 = 64;
/// A sleep lasts this part of the time since the last work, within bounds. The delay of the first submit after a pause
/// is therefore small compared with the pause, and a device that nobody uses costs fifty reads a second.
const NAP_PART: u32 = 32;
const SHORTEST_NAP: Duration = Duration::from_micros(50);
const LONGEST_NAP: Duration = Duration::from_millis(20);
/// The longest sleep of the second thread beside a long grid.
const LONGEST_BESIDE: Duration = Duration::from_millis(1);
/// The longest sleep while a channel waits at a semaphore, because no doorbell announces that the processor has
/// released it.
const LONGEST_WAITING: Duration = Duration::from_millis(4);
/// A grid counts as long after this time.
const LONG: Duration = Duration::from_millis(1);
/// How long the second thread sleeps before it checks whether a grid is long. It sleeps for longer and longer while none is, because each look
/// takes the first thread's processor away. After so many looks it sleeps until there is a grid.
const STANDBY_NAP: Duration = Duration::from_millis(2);
const LONGEST_STANDBY_NAP: Duration = Duration::from_millis(8);
const STANDBY_LOOKS: u32 = 50;

/// The threads of one GPU.
#[derive(Default)]
pub(crate) struct Workers(Mutex<Option<Running>>);

struct Running {
    /// The process that started the threads, because threads do not survive fork(2).
    pid: u32,
    stop: Arc<AtomicBool>,
    handles: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts the threads, unless they run already.
    ///
    /// # Errors
    /// That of the system, if it gives no threads.
    pub(crate) fn ensure(&self, core: &Arc<Core>) -> io::Result<()> {
        let mut running = self.0.lock();
        let pid = std::process::id();
        match running.take() {
            Some(r) if r.pid == pid => *running = Some(r),
            _ => *running = Some(start(core, pid)?),
        }
        Ok(())
    }

    /// Ends the threads if the GPU has no channel and no doorbell page left.
    pub(crate) fn retire(&self, core: &Core) {
        let mut running = self.0.lock();
        if core.deserted() {
            end(running.take(), core);
        }
    }

    /// Ends the threads.
    pub(crate) fn stop(&self, core: &Core) {
        end(self.0.lock().take(), core);
    }
}

fn start(core: &Arc<Core>, pid: u32) -> io::Result<Running> {
    let stop = Arc::new(AtomicBool::new(false));
    let spawn = |name: &str, body: fn(&Core, &AtomicBool)| {
        let (core, stop) = (core.clone(), stop.clone());
        std::thread::Builder::new().name(name.to_owned()).spawn(move || body(&core, &stop))
    };
    let mut running = Running { pid, stop: stop.clone(), handles: Vec::new() };
    for thread in [spawn("gpu-host", host), spawn("gpu-standby", standby)] {
        match thread {
            Ok(handle) => running.handles.push(handle),
            Err(e) => {
                tracing::error!(target: "tegra_sim::gpu", "the system gives the GPU no thread: {e}");
                end(Some(running), core);
                return Err(e);
            }
        }
    }
    Ok(running)
}

fn end(running: Option<Running>, core: &Core) {
    let Some(running) = running.filter(|r| r.pid == std::process::id()) else { return };
    running.stop.store(true, Ordering::Release);
    core.wake();
    core.engine.wake();
    for handle in running.handles {
        if handle.join().is_err() {
            tracing::error!(target: "tegra_sim::gpu", "a GPU thread panicked");
        }
    }
}

/// The thread that reads the doorbells and runs channels.
fn host(core: &Core, stop: &AtomicBool) {
    let mut last_work = Instant::now();
    // Whoever rests is not woken before the GPU has nothing more to do, or has had work for long.
    let (mut told, mut untold) = (last_work, false);
    let done = || stop.load(Ordering::Acquire);
    let (mut asked, mut unasked) = (core.asked(), UNASKED);
    let (mut spin, mut give_way) = (SPIN, YIELD);
    while !done() {
        if core.step() {
            last_work = Instant::now();
            untold = true;
            if last_work - told > BUSY {
                core.tell();
                (told, untold) = (last_work, false);
            }
            let before = std::mem::replace(&mut asked, core.asked());
            unasked = if before == asked { unasked.saturating_add(1) } else { 0 };
            // Whoever waits for work wakes this thread. If nobody does, it has to look.
            let must_look = unasked >= UNASKED;
            spin = if must_look || !core.is_alone() { SPIN } else { Duration::ZERO };
            give_way = if must_look { YIELD } else { spin };
            continue;
        }
        if std::mem::take(&mut untold) {
            core.tell();
            told = Instant::now();
        }
        match last_work.elapsed() {
            idle if idle < spin => std::hint::spin_loop(),
            idle if idle < give_way => std::thread::yield_now(),
            idle => {
                // The other thread may be the one that executes a long grid, and then nobody else looks.
                core.trace.slow.look(core.engine.busy_ns());
                let longest = if core.waits() { LONGEST_WAITING } else { LONGEST_NAP };
                core.nap((idle / NAP_PART).clamp(SHORTEST_NAP, longest));
            }
        }
    }
}

/// The thread that takes over while the first one executes a long grid.
fn standby(core: &Core, stop: &AtomicBool) {
    let (mut looks, mut nap) = (0, STANDBY_NAP);
    // A program that has had work beside one long grid is likely to have some beside the next one, and most programs never have.
    let mut last_work = Instant::now();
    let done = || stop.load(Ordering::Acquire);
    while !done() {
        if looks == STANDBY_LOOKS {
            core.engine.wait_for_use(done);
            (looks, nap) = (0, STANDBY_NAP);
            continue;
        }
        looks += 1;
        std::thread::sleep(nap);
        nap = (2 * nap).min(LONGEST_STANDBY_NAP);
        while core.engine.busy_ns().is_some_and(|ns| ns > LONG.as_nanos() as u64) && !done() {
            (looks, nap) = (0, STANDBY_NAP);
            core.engine.watch();
            core.trace.slow.look(core.engine.busy_ns());
            if core.step() {
                core.tell();
                last_work = Instant::now();
            } else {
                core.nap_beside((last_work.elapsed() / NAP_PART).clamp(SHORTEST_NAP, LONGEST_BESIDE));
            }
        }
    }
}
