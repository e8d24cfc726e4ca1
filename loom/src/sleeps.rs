//! The GPU's threads sleep, and others wake them. Sleeps without an end show that no wake is lost: the test would never
//! end, which loom reports.

use crate::sync::{AtomicBool, Ordering};
use crate::wake::{Nap, News, Use};
use loom::sync::Arc;
use loom::thread;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(3600);

/// The thread that reads doorbells: it looks for work, and sleeps if there is none.
#[test]
fn a_worker_sees_work_that_comes_while_it_falls_asleep() {
    loom::model(|| {
        let (nap, work) = (Arc::new(Nap::new()), Arc::new(AtomicBool::new(false)));
        let worker = thread::spawn({
            let (nap, work) = (nap.clone(), work.clone());
            move || {
                while !work.load(Ordering::Acquire) {
                    nap.nap(LONG);
                }
            }
        });
        work.store(true, Ordering::Release);
        nap.wake();
        worker.join().unwrap();
    });
}

/// Whoever waits for a result reads the count, looks for the result, and rests until there is more.
#[test]
fn a_wait_sees_a_result_that_comes_while_it_falls_asleep() {
    loom::model(|| {
        let (news, result) = (Arc::new(News::new()), Arc::new(AtomicBool::new(false)));
        let worker = thread::spawn({
            let (news, result) = (news.clone(), result.clone());
            move || {
                result.store(true, Ordering::Release);
                news.tell();
            }
        });
        loop {
            let seen = news.count();
            if result.load(Ordering::Acquire) {
                break;
            }
            news.rest(seen, LONG);
        }
        worker.join().unwrap();
    });
}

/// Two threads wake the worker, for a new channel and for its end. There are many orders of three threads, so that each
/// is taken away from the processor twice at most.
#[test]
fn of_two_wakes_none_is_lost() {
    let mut few = loom::model::Builder::new();
    few.preemption_bound = Some(2);
    few.check(|| {
        let nap = Arc::new(Nap::new());
        let [work, stop] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let worker = thread::spawn({
            let (nap, work, stop) = (nap.clone(), work.clone(), stop.clone());
            move || {
                while !stop.load(Ordering::Acquire) || !work.load(Ordering::Acquire) {
                    nap.nap(LONG);
                }
            }
        });
        let other = thread::spawn({
            let (nap, work) = (nap.clone(), work.clone());
            move || {
                work.store(true, Ordering::Release);
                nap.wake();
            }
        });
        stop.store(true, Ordering::Release);
        nap.wake();
        other.join().unwrap();
        worker.join().unwrap();
    });
}

/// The second thread of the GPU waits for a grid, which begins while it falls asleep.
#[test]
fn the_second_thread_sees_a_use_that_begins() {
    loom::model(|| {
        let engine = Arc::new(Use::new());
        let standby = thread::spawn({
            let engine = engine.clone();
            move || engine.wait(|| false)
        });
        engine.begin(5);
        engine.tell();
        standby.join().unwrap();
        assert_eq!(engine.since(), Some(5));
        engine.end();
        assert_eq!(engine.since(), None);
    });
}

/// A grid that is over before the second thread looks does not keep it awake, and its end is not lost either.
#[test]
fn the_second_thread_ends_when_it_is_told_to() {
    loom::model(|| {
        let (engine, stop) = (Arc::new(Use::new()), Arc::new(AtomicBool::new(false)));
        let standby = thread::spawn({
            let (engine, stop) = (engine.clone(), stop.clone());
            move || engine.wait(|| stop.load(Ordering::Acquire))
        });
        let other = thread::spawn({
            let (engine, stop) = (engine.clone(), stop.clone());
            move || {
                stop.store(true, Ordering::Release);
                engine.wake();
            }
        });
        engine.begin(5);
        engine.tell();
        engine.end();
        other.join().unwrap();
        standby.join().unwrap();
    });
}
