//! Host threads that help with grids.
//!
//! They are kept for the next grid. A thread that begins needs a stack and a processor that wakes up, which takes as long as many a grid, while
//! a thread that has just helped looks for more work for some microseconds before it sleeps.

use rayon_core::{ThreadBuilder, ThreadPool, ThreadPoolBuilder};
use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// The threads that help one thread with its grids. Each thread has others, because CTAs may wait for what another thread's grid does. They
/// end before it does. So nobody executes code of this library when the GPU's threads have ended, and it may be unloaded.
struct Helpers {
    /// The process that started them, because threads do not survive fork(2).
    pid: u32,
    pool: Option<ThreadPool>,
    handles: Vec<JoinHandle<()>>,
}

/// How long a thread that has done its share waits for others before it sleeps, and the pauses between two looks.
const MOMENT: Duration = Duration::from_micros(100);
const PAUSES: u32 = 8;

thread_local! {
    static HELPERS: RefCell<Option<Helpers>> = const { RefCell::new(None) };
}

/// Calls `own` on this thread and `help` on `count` others. Returns when all have returned. A host that does not give so many threads makes the
/// grid slower, and its CTAs are the same: `help` is called by fewer threads, or by none.
pub(super) fn work(count: usize, help: impl Fn() + Sync, own: impl FnOnce()) {
    let kept = HELPERS.take().filter(|kept| kept.handles.len() >= count && kept.pid == std::process::id());
    let helpers = kept.or_else(|| Helpers::start(count));
    let Some(pool) = helpers.as_ref().and_then(|helpers| helpers.pool.as_ref()) else { return own() };
    let helping = AtomicUsize::new(count.min(pool.current_num_threads()));
    pool.in_place_scope(|scope| {
        for _ in 0..helping.load(Ordering::Relaxed) {
            scope.spawn(|_| {
                help();
                helping.fetch_sub(1, Ordering::Release);
            });
        }
        own();
        linger(&helping);
    });
    HELPERS.set(helpers);
}

/// Waits for a moment until no thread helps any more. The scope would let this thread sleep, and to be woken takes longer than the CTAs that
/// others still execute.
fn linger(helping: &AtomicUsize) {
    let begun = Instant::now();
    while helping.load(Ordering::Acquire) > 0 && begun.elapsed() < MOMENT {
        (0..PAUSES).for_each(|_| std::hint::spin_loop());
    }
    // The last one still has to tell the scope.
    (0..PAUSES).for_each(|_| std::hint::spin_loop());
}

impl Helpers {
    /// Starts so many threads, or as many as the host gives.
    fn start(count: usize) -> Option<Helpers> {
        let mut handles = Vec::with_capacity(count);
        let spawn = |thread: ThreadBuilder| {
            handles.push(Builder::new().name("gpu-helper".to_owned()).spawn(|| thread.run())?);
            Ok(())
        };
        let pool = ThreadPoolBuilder::new().num_threads(count).spawn_handler(spawn).build().ok();
        if pool.is_some() {
            return Some(Helpers { pid: std::process::id(), pool, handles });
        }
        let fewer = handles.len();
        join(handles);
        if fewer > 0 { Helpers::start(fewer) } else { None }
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        let (pool, handles) = (self.pool.take(), std::mem::take(&mut self.handles));
        if self.pid == std::process::id() {
            drop(pool);
            join(handles);
        } else {
            // These threads do not exist here, and nobody could wait for their end.
            std::mem::forget((pool, handles));
        }
    }
}

/// Waits until threads whose pool has ended have ended, too.
fn join(handles: Vec<JoinHandle<()>>) {
    for handle in handles {
        // rayon ends the process if a thread panics outside of a grid.
        let _ended = handle.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::{Pid, gettid};
    use std::collections::BTreeSet;
    use std::sync::Barrier;
    use tegrarm_lock::Mutex;

    /// The threads that helped. Each of them waited until all had come, and this one.
    fn helped(count: usize) -> BTreeSet<Pid> {
        let (all, seen) = (Barrier::new(count + 1), Mutex::new(BTreeSet::new()));
        let come = || {
            seen.lock().insert(gettid());
            all.wait();
        };
        work(count, come, come);
        let mut seen = seen.into_inner();
        assert!(seen.remove(&gettid()) && seen.len() == count, "{seen:?}");
        seen
    }

    #[test]
    fn the_next_grid_has_the_same_threads_and_one_within_a_grid_has_others() {
        let first = helped(3);
        assert_eq!(helped(3), first);
        assert_eq!(helped(1).intersection(&first).count(), 1);
        assert_eq!(helped(4).len(), 4);
        let (outer, mut inner) = (Mutex::new(BTreeSet::new()), BTreeSet::new());
        work(4, || outer.lock().extend([gettid()]), || inner = helped(4));
        assert!(inner.is_disjoint(&outer.into_inner()));
    }

    #[test]
    fn threads_end_before_the_one_that_they_help() {
        let of_two = [(); 2].map(|()| std::thread::spawn(|| helped(2))).map(|thread| thread.join().expect("it ends"));
        assert!(of_two[0].is_disjoint(&of_two[1]));
        for thread in of_two.iter().flatten() {
            assert!(!std::path::Path::new(&format!("/proc/self/task/{thread}")).exists(), "{thread} is there");
        }
    }

    #[test]
    fn a_panic_of_a_helper_is_one_of_the_caller() {
        let fails = || work(1, || panic!("a helper fails"), || ());
        let said = std::panic::catch_unwind(fails).expect_err("it panics");
        assert_eq!(said.downcast_ref(), Some(&"a helper fails"));
        assert_eq!(helped(1).len(), 1);
    }
}
