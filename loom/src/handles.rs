//! A row of a table of handles: while its object ends and another takes its place, other threads look for the first.

use crate::row::{Row, Unheld};
use loom::sync::Arc;
use loom::thread;

const FIRST: u64 = 0x10;
const SECOND: u64 = 0x20;

/// A row with the first object, which is its own handle.
fn row() -> Arc<Row<u64>> {
    let row = Arc::new(Row::empty());
    row.put(FIRST, FIRST);
    row
}

fn replace(row: &Row<u64>) {
    let (handle, object) = row.take(|handle, _| handle == FIRST).expect("it is there");
    assert_eq!((handle, object), (FIRST, FIRST));
    row.put(SECOND, SECOND);
}

#[test]
fn a_handle_never_finds_the_object_of_another() {
    loom::model(|| {
        let row = row();
        let other = thread::spawn({
            let row = row.clone();
            move || replace(&row)
        });
        for handle in [FIRST, SECOND] {
            match row.hold(handle) {
                Ok(object) => assert_eq!(*object, Some(handle)),
                Err(why) => assert_eq!(why, Unheld::Gone),
            }
        }
        other.join().unwrap();
        assert_eq!(*row.hold(SECOND).unwrap_or_else(|_| panic!("the second is there")), Some(SECOND));
    });
}

#[test]
fn a_call_that_does_not_wait_is_refused_or_finds_its_object() {
    loom::model(|| {
        let row = row();
        let other = thread::spawn({
            let row = row.clone();
            move || replace(&row)
        });
        let seen = row.hold_now(FIRST).map(|object| *object);
        match seen {
            Ok(object) => assert_eq!(object, Some(FIRST)),
            // The other thread is ending the object, or has ended it.
            Err(Unheld::Busy | Unheld::Gone) => {}
        }
        other.join().unwrap();
        assert_eq!(row.hold_now(FIRST).map(|object| *object), Err(Unheld::Gone));
    });
}

/// An object that two threads end is taken once.
#[test]
fn an_object_ends_once() {
    loom::model(|| {
        let row = row();
        let other = thread::spawn({
            let row = row.clone();
            move || row.take(|_, _| true).is_some()
        });
        let here = row.take(|handle, _| handle == FIRST).is_some();
        assert!(here ^ other.join().unwrap());
        assert_eq!(row.handle(), 0);
    });
}

/// While another thread holds the object, a call that does not wait is told that it is busy, and not that it is gone.
#[test]
fn an_object_that_is_held_is_busy() {
    loom::model(|| {
        let row = row();
        let other = thread::spawn({
            let row = row.clone();
            move || drop(row.hold(FIRST))
        });
        assert_ne!(row.hold_now(FIRST).map(|object| *object), Err(Unheld::Gone));
        other.join().unwrap();
    });
}
