//! What the locks promise: one at a time, nobody forgotten, and all of it in a child that was forked in any moment.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use tegrarm_lock::{Condvar, Mutex, ProcessMutex, ReentrantMutex, RwLock};

const ROUNDS: u64 = 100_000;

#[test]
fn one_thread_at_a_time_has_a_mutex() {
    let count = Mutex::new(0u64);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..ROUNDS).for_each(|_| *count.lock() += 1));
        }
    });
    assert_eq!(*count.lock(), 4 * ROUNDS);
}

#[test]
fn a_writer_is_alone_and_readers_see_whole_values() {
    let pair = RwLock::new((0u64, 0u64));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let mut pair = pair.write();
                    pair.0 += 1;
                    pair.1 += 1;
                }
            });
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let pair = pair.read();
                    assert_eq!(pair.0, pair.1);
                }
            });
        }
    });
    assert_eq!(*pair.read(), (2 * ROUNDS, 2 * ROUNDS));
}

#[test]
fn readers_that_come_and_go_do_not_keep_a_writer_out() {
    let (lock, done) = (RwLock::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let _held = lock.read();
                    thread::yield_now();
                }
            });
        }
        (0..100).for_each(|_| *lock.write() += 1);
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(*lock.read(), 100);
}

#[test]
fn no_notification_is_lost() {
    let (turn, changed) = (Mutex::new(0u64), Condvar::new());
    thread::scope(|scope| {
        for me in 0..3 {
            let (turn, changed) = (&turn, &changed);
            scope.spawn(move || {
                for _ in 0..ROUNDS / 10 {
                    let mut now = turn.lock();
                    while *now % 3 != me {
                        changed.wait(&mut now);
                    }
                    *now += 1;
                    changed.notify_all();
                }
            });
        }
    });
    assert_eq!(*turn.lock(), 3 * (ROUNDS / 10));
}

#[test]
fn each_wakes_one() {
    let (items, more) = (Mutex::new(0u64), Condvar::new());
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..ROUNDS / 10 {
                    let mut items = items.lock();
                    while *items == 0 {
                        more.wait(&mut items);
                    }
                    *items -= 1;
                }
            });
        }
        for _ in 0..2 * (ROUNDS / 10) {
            *items.lock() += 1;
            more.notify_one();
        }
    });
    assert_eq!(*items.lock(), 0);
}

#[test]
fn limits_of_time_hold() {
    let (lock, never) = (Mutex::new(()), Condvar::new());
    let short = Duration::from_millis(20);
    assert!(never.wait_for(&mut lock.lock(), short).timed_out());
    assert!(never.wait_for(&mut lock.lock(), Duration::ZERO).timed_out());
    let held = lock.lock();
    thread::scope(|scope| {
        scope.spawn(|| assert!(lock.try_lock_for(short).is_none() && lock.try_lock().is_none())).join()
    })
    .expect("the thread gives up");
    drop(held);
    assert!(lock.try_lock_for(short).is_some());
}

#[test]
fn an_owner_may_take_its_lock_again() {
    let lock = ReentrantMutex::new(7);
    let (outer, inner) = (lock.lock(), lock.lock());
    assert_eq!((*outer, *inner), (7, 7));
    assert!(thread::scope(|scope| scope.spawn(|| lock.try_lock().is_none()).join().expect("no panic")));
}

/// What a child does: it sleeps at many locks of its own, each for a moment.
fn work_of_a_child() {
    let locks: Vec<(Mutex<()>, Condvar)> = (0..64).map(|_| Default::default()).collect();
    for (lock, never) in &locks {
        assert!(never.wait_for(&mut lock.lock(), Duration::from_nanos(1)).timed_out());
    }
}

/// Forks so many children, one after the other, which do `work`. Afterwards, or when a child fails, `done` ends what other threads do.
#[allow(unsafe_code)]
fn fork(children: u32, done: &AtomicBool, work: impl Fn()) {
    use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
    for n in 0..children {
        // SAFETY: the child allocates, locks, and ends without running what the parent registered.
        let child = match unsafe { nix::unistd::fork() }.expect("a child") {
            nix::unistd::ForkResult::Child => {
                work();
                // SAFETY: it ends the process.
                unsafe { libc::_exit(0) }
            }
            nix::unistd::ForkResult::Parent { child } => child,
        };
        let mut looks = 0;
        let ended = loop {
            match waitpid(child, Some(WaitPidFlag::WNOHANG)).expect("the child is ours") {
                WaitStatus::StillAlive if looks < 200_000 => thread::sleep(Duration::from_micros(200)),
                ended => break ended,
            }
            looks += 1;
        };
        if !matches!(ended, WaitStatus::Exited(_, 0)) {
            let _ = nix::sys::signal::kill(child, nix::sys::signal::Signal::SIGKILL);
            done.store(true, Ordering::Relaxed);
            panic!("child {n}: {ended:?}");
        }
    }
    done.store(true, Ordering::Relaxed);
}

/// Threads of the parent go to sleep and wake all the time, so that a fork finds them in the midst of it.
#[test]
fn a_child_can_use_its_locks_whenever_it_was_forked() {
    let (done, naps) = (AtomicBool::new(false), AtomicU64::new(0));
    let (lock, changed) = (Mutex::new(()), Condvar::new());
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    changed.wait_for(&mut lock.lock(), Duration::from_nanos(100));
                    changed.notify_all();
                    naps.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        fork(2000, &done, work_of_a_child);
    });
    assert!(naps.load(Ordering::Relaxed) > 1000, "the parent's threads slept and woke");
}

/// Threads of the parent change what a mutex of the process protects, with a moment in which it is not whole.
#[test]
fn a_child_finds_a_mutex_of_the_process_free_and_its_contents_whole() {
    static PAIR: ProcessMutex<(u64, u64)> = ProcessMutex::new((0, 0));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let mut pair = PAIR.lock();
                    pair.0 += 1;
                    thread::yield_now();
                    pair.1 += 1;
                }
            });
        }
        fork(500, &done, || {
            let pair = PAIR.lock();
            assert_eq!(pair.0, pair.1);
        });
    });
    assert!(PAIR.lock().0 > 0);
}

/// A thread of the parent uses a mutex for the first time when the child is forked. The child may have it half begun.
#[test]
fn a_child_can_begin_with_a_mutex_while_its_parent_does() {
    static BEGUN: [ProcessMutex<u32>; 400] = [const { ProcessMutex::new(0) }; 400];
    static TURN: AtomicU64 = AtomicU64::new(0);
    let (done, turn) = (AtomicBool::new(false), || TURN.load(Ordering::Relaxed) as usize);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    *BEGUN[turn()].lock() += 1;
                }
            });
        }
        for at in 1..BEGUN.len() {
            TURN.store(at as u64, Ordering::Relaxed);
            fork(1, &AtomicBool::new(false), || *BEGUN[turn()].lock() += 1);
        }
        done.store(true, Ordering::Relaxed);
    });
}
