//! Host threads that help with grids, and what each of them gets of the CTAs.
//!
//! The threads are kept for the next grid. A thread that begins needs a stack and a processor that wakes up, which takes as long as many a grid,
//! while a thread that has just helped looks for more work for some microseconds before it sleeps.
//!
//! The CTAs are cut into parts, which are dealt to the threads in turns. So each thread changes a number of its own, and gets the same CTAs
//! with the next launch: what it reads and writes is in its own caches then. A thread without parts of its own takes those of others.

use rayon_core::{ThreadBuilder, ThreadPool, ThreadPoolBuilder};
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// The threads that help one thread with its grids. Each thread has others, because CTAs may wait for what another thread's grid does. They
/// end before it does. So nobody executes code of this library when the GPU's threads have ended, and it may be unloaded.
pub(super) struct Helpers {
    /// The process that started them, because threads do not survive fork(2).
    pid: u32,
    pool: Option<ThreadPool>,
    handles: Vec<JoinHandle<()>>,
    /// How many of them shall help.
    asked: usize,
    /// The number of grids with which they were asked to help, and when the last one ended.
    grids: Arc<AtomicUsize>,
    ended: Instant,
}

/// How long a thread that has done its share looks for what comes next before it sleeps, and the pauses between two looks. What comes next is that
/// all others have done theirs, or, for one that has helped, the next grid. To wake a processor takes longer than many a grid, and half of that time is
/// the caller's.
const MOMENT: Duration = Duration::from_micros(100);
const PAUSES: u32 = 2;
/// So many pauses are longer than a thread needs to say that it has helped.
const LAST: u32 = 8;

thread_local! {
    static HELPERS: RefCell<Option<Helpers>> = const { RefCell::new(None) };
}

fn pause(pauses: u32) {
    (0..pauses).for_each(|_| std::hint::spin_loop());
}

/// Looks for a moment, as long as there is something to wait for, and calls `between` after each look.
fn look(waits: impl Fn() -> bool, between: impl Fn()) {
    let begun = Instant::now();
    while waits() && begun.elapsed() < MOMENT {
        pause(PAUSES);
        between();
    }
}

/// Waits for a moment until no thread helps any more. The scope would let this thread sleep, and to be woken takes longer than the CTAs that
/// others still execute.
fn linger(helping: &AtomicUsize) {
    look(|| helping.load(Ordering::Acquire) > 0, || ());
    // The last one still has to tell the scope.
    pause(LAST);
}

/// Stays awake for a moment, until there is another grid than the one with this number. Meanwhile others may have the processor.
fn stay_awake(grids: &AtomicUsize, grid: usize) {
    look(|| grids.load(Ordering::Relaxed) == grid, std::thread::yield_now);
}

impl Helpers {
    /// The threads that help this one: `count` of them, or as many as the host gives. It is `None` if that is none.
    pub(super) fn find(count: usize) -> Option<Helpers> {
        let kept = HELPERS.take().filter(|kept| kept.handles.len() >= count && kept.pid == std::process::id());
        let mut found = kept.or_else(|| Helpers::start(count))?;
        found.asked = count.min(found.handles.len());
        Some(found)
    }

    /// How many threads help.
    pub(super) fn count(&self) -> usize {
        self.asked
    }

    /// Calls `own` on this thread and `help` on those that help, with their numbers. Returns when all have returned.
    pub(super) fn work(mut self, help: impl Fn(usize) + Sync, own: impl FnOnce()) {
        let Some(pool) = &self.pool else { return own() };
        let helping = AtomicUsize::new(self.asked);
        let (grid, soon) = (self.grids.fetch_add(1, Ordering::Relaxed) + 1, self.ended.elapsed() < MOMENT);
        pool.in_place_scope(|scope| {
            for _ in 0..self.asked {
                scope.spawn(|_| {
                    help(rayon_core::current_thread_index().unwrap_or_default());
                    if soon {
                        let grids = self.grids.clone();
                        rayon_core::spawn(move || stay_awake(&grids, grid));
                    }
                    helping.fetch_sub(1, Ordering::Release);
                });
            }
            own();
            linger(&helping);
        });
        self.ended = Instant::now();
        HELPERS.set(Some(self));
    }

    /// Starts so many threads, or as many as the host gives.
    fn start(count: usize) -> Option<Helpers> {
        let mut handles = Vec::with_capacity(count);
        let spawn = |thread: ThreadBuilder| {
            handles.push(Builder::new().name("gpu-helper".to_owned()).spawn(|| thread.run())?);
            Ok(())
        };
        let pool = ThreadPoolBuilder::new().num_threads(count).spawn_handler(spawn).build().ok();
        if pool.is_some() {
            let (grids, ended) = (Arc::default(), Instant::now());
            return Some(Helpers { pid: std::process::id(), pool, handles, asked: count, grids, ended });
        }
        let fewer = handles.len();
        join(handles);
        if fewer > 0 { Helpers::start(fewer) } else { None }
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        self.grids.fetch_add(1, Ordering::Relaxed);
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

/// A thread gets so many parts, or more because none has more than so many CTAs.
const PARTS: u64 = 16;
const TOGETHER: u64 = 64;
/// CTAs that follow each other often write words that follow each other. So many words are a cache line, which two threads should not write in
/// turns. A thread may get as few parts as `FEW`, so that each has the CTAs of whole lines.
const LINE: u64 = 16;
const FEW: u64 = 8;

/// A number that threads change often. It has a cache line of its own, so that no other thread waits for what stands beside it.
#[repr(align(128))]
#[derive(Default)]
pub(super) struct Apart(pub AtomicU64);

/// CTAs that no thread has taken.
pub(super) struct Shares {
    all: Range<u64>,
    /// The CTAs of a part.
    size: u64,
    /// For each thread, how many of its parts were taken. Threads that find none left make it larger than their number.
    taken: Vec<Apart>,
}

impl Shares {
    /// Deals CTAs to `threads` threads. No part has more than `most` CTAs.
    pub(super) fn of(all: Range<u64>, threads: usize, most: u64) -> Shares {
        let each = (all.end - all.start) / threads as u64;
        let (usual, lines) = (each / PARTS, (each / PARTS).next_multiple_of(LINE).max(LINE));
        let size = if lines * FEW <= each { lines } else { usual }.clamp(1, TOGETHER.min(most.max(1)));
        Shares { all, size, taken: (0..threads).map(|_| Apart::default()).collect() }
    }

    /// Takes a part for a thread: one of its own, as long as there are some and it need not be the `first` of all.
    pub(super) fn take(&self, thread: usize, first: bool) -> Range<u64> {
        loop {
            let own = thread % self.taken.len();
            let owner = if first || self.next(own).is_empty() { self.earliest() } else { own };
            let taken = self.part(owner, self.taken[owner].0.fetch_add(1, Ordering::Relaxed));
            if !taken.is_empty() || self.left() == 0 {
                return taken;
            }
        }
    }

    /// How many CTAs nobody has taken.
    pub(super) fn left(&self) -> u64 {
        let every = self.taken.len() as u64 * self.size; // a thread has one part among so many CTAs
        let left = |owner: usize| {
            let next = self.next(owner);
            let behind = self.all.end - next.start;
            behind / every * self.size + (behind % every).min(self.size)
        };
        (0..self.taken.len()).map(left).sum()
    }

    /// The thread whose next part is the first one.
    fn earliest(&self) -> usize {
        (0..self.taken.len()).min_by_key(|owner| self.next(*owner).start).unwrap_or(0)
    }

    /// The next part of a thread.
    fn next(&self, owner: usize) -> Range<u64> {
        self.part(owner, self.taken[owner].0.load(Ordering::Relaxed))
    }

    /// The part of a thread that has the place `at` among its parts. It is empty if there is none.
    fn part(&self, owner: usize, at: u64) -> Range<u64> {
        let before = at.saturating_mul(self.taken.len() as u64).saturating_add(owner as u64);
        let start = self.all.start.saturating_add(before.saturating_mul(self.size)).min(self.all.end);
        start..(start + self.size).min(self.all.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::{Pid, gettid};
    use proptest::prelude::*;
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
        Helpers::find(count).expect("threads").work(|_| come(), come);
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
        let helpers = Helpers::find(4).expect("threads");
        helpers.work(|_| outer.lock().extend([gettid()]), || inner = helped(4));
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
        let fails = || Helpers::find(1).expect("a thread").work(|_| panic!("a helper fails"), || ());
        let said = std::panic::catch_unwind(fails).expect_err("it panics");
        assert_eq!(said.downcast_ref(), Some(&"a helper fails"));
        assert_eq!(helped(1).len(), 1);
    }

    proptest! {
        #[test]
        fn each_cta_is_taken_once_and_the_first_ones_by_those_who_want_them(
            (start, count, threads, most) in (0u64..100, 0u64..3000, 1usize..9, 0u64..100),
            takes in prop::collection::vec((0usize..12, any::<bool>()), 4000),
        ) {
            let end = start + count;
            let shares = Shares::of(start..end, threads, most);
            let mut untaken: BTreeSet<u64> = (start..end).collect();
            for (thread, first) in takes {
                prop_assert_eq!(shares.left(), untaken.len() as u64);
                let taken = shares.take(thread, first);
                prop_assert!(taken.end - taken.start <= most.max(1));
                if let Some(&lowest) = untaken.first() {
                    prop_assert!(!taken.is_empty() && (!first || taken.start == lowest));
                } else {
                    prop_assert!(taken.is_empty());
                }
                for cta in taken {
                    prop_assert!(untaken.remove(&cta), "{} twice", cta);
                }
            }
            prop_assert!(untaken.is_empty());
        }
    }

    #[test]
    fn a_thread_gets_the_same_ctas_each_time_and_then_those_of_others() {
        let shares = || Shares::of(0..2 * PARTS * TOGETHER, 2, 100);
        let (one, other) = (shares(), shares());
        let mine = |shares: &Shares| (0..PARTS).flat_map(|_| shares.take(1, false)).collect::<Vec<_>>();
        (0..5).for_each(|_| assert!(!other.take(0, false).is_empty()));
        assert_eq!(mine(&one), mine(&other));
        // What is left belongs to the first thread.
        assert_eq!((one.left(), one.take(1, false).start), (PARTS * TOGETHER, 0));
        assert_eq!((other.left(), other.take(1, false).start), ((PARTS - 5) * TOGETHER, 10 * TOGETHER));
    }

    #[test]
    fn a_part_has_the_ctas_that_write_a_line_if_there_are_enough() {
        let size = |ctas, threads| Shares::of(0..ctas, threads, 100).size;
        assert_eq!([8, 128, 255, 256, 512, 513, 1000, 10_000].map(|ctas| size(ctas, 2)), [1, 4, 7, 16, 16, 16, 32, 64]);
        assert_eq!(([256, 512].map(|ctas| size(ctas, 4)), Shares::of(0..512, 2, 3).size), ([4, 16], 3));
    }

    /// How often a thread has slept.
    #[cfg(not(miri))]
    fn sleeps(thread: Pid) -> u64 {
        let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/status")).expect("a thread");
        let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).expect("a count");
        line.trim().parse().expect("a number")
    }

    #[test]
    #[cfg(not(miri))]
    fn a_thread_that_has_helped_stays_awake_for_the_next_grid_if_it_comes_soon() {
        const GRIDS: u64 = 300;
        let helper = *helped(1).first().expect("a thread");
        let begun = Instant::now();
        let now = || begun.elapsed().as_nanos() as u64;
        let (ended, mut late) = (AtomicU64::new(now()), 0);
        let before = sleeps(helper);
        for _ in 0..GRIDS {
            while now() < ended.load(Ordering::Relaxed) + MOMENT.as_nanos() as u64 / 2 {
                std::hint::spin_loop();
            }
            // On a machine with other work, this thread may come too late, or wait for the other one.
            late += u64::from(now() > ended.load(Ordering::Relaxed) + MOMENT.as_nanos() as u64 * 3 / 4);
            let before = ended.load(Ordering::Relaxed);
            let has_helped = || ended.load(Ordering::Relaxed) != before;
            let wait = || {
                while !has_helped() {
                    std::hint::spin_loop()
                }
            };
            Helpers::find(1).expect("the thread").work(|_| ended.store(now(), Ordering::Relaxed), wait);
        }
        let slept = sleeps(helper) - before;
        assert!(slept <= GRIDS / 4 + 2 * late, "{slept} sleeps, {late} of {GRIDS} grids came late");
    }

    #[test]
    fn threads_that_take_at_the_same_time_take_each_cta_once() {
        let shares = &Shares::of(0..100_000, 4, 1);
        let take = |thread| {
            let parts = std::iter::repeat_with(|| shares.take(thread, false)).take_while(|part| !part.is_empty());
            parts.flatten().collect::<Vec<_>>()
        };
        std::thread::scope(|scope| {
            let all = [0, 1, 2, 3].map(|thread| scope.spawn(move || take(thread)));
            let mut all: Vec<_> = all.into_iter().flat_map(|thread| thread.join().expect("it ends")).collect();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..100_000));
        });
    }
}
