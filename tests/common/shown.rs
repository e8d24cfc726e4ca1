//! Notes which statuses a test has seen. A test that claims to show a status has to show it when it runs.
//!
//! `docs/statuses.md` names for each status a test that provokes it. That test makes the claim at its start: `let
//! _shown = shows(&[NV_ERR_INVALID_CLASS]);`. If the test ends and no call has answered that status, it fails.

use std::cell::RefCell;
use std::collections::BTreeSet;
use tegrarm::status::RmResult;

thread_local! {
    static SEEN: RefCell<BTreeSet<u32>> = const { RefCell::new(BTreeSet::new()) };
}

/// Notes a status that a call answered in this thread.
pub fn note(status: u32) -> u32 {
    SEEN.with_borrow_mut(|seen| seen.insert(status));
    status
}

/// The status of a call that must fail.
#[track_caller]
pub fn status<T: std::fmt::Debug>(result: RmResult<T>) -> u32 {
    note(result.expect_err("must fail").status)
}

/// The claim of a test. It is checked when this value is dropped.
#[must_use = "the claim is checked at the end of its scope"]
pub struct Shows(&'static [u32]);

/// Claims that calls from here to the end of the test answer with each of these statuses.
pub fn shows(statuses: &'static [u32]) -> Shows {
    SEEN.take();
    Shows(statuses)
}

impl Drop for Shows {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let seen = SEEN.take();
        for status in self.0 {
            assert!(seen.contains(status), "the test claims to show {status:#x}, and saw {seen:x?}");
        }
    }
}
