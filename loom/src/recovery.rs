//! A queue is recovered while a thread waits for work that was lost. The GPU's memory has the number of the newest
//! submission that is over, which is read and written without order.

use crate::lost_work::LostWork;
use crate::sync::{AtomicU64, Ordering};
use loom::sync::Arc;
use loom::thread;

#[test]
fn who_sees_the_number_of_a_recovery_knows_what_was_lost() {
    loom::model(|| {
        let lost = Arc::new(LostWork::default());
        // Submissions 1 and 2 have finished, and 3 and 4 never will.
        let number = Arc::new(AtomicU64::new(2));
        let other = thread::spawn({
            let (lost, number) = (lost.clone(), number.clone());
            move || {
                lost.add(3..=4);
                number.store(4, Ordering::Relaxed);
            }
        });
        let over = number.load(Ordering::Relaxed);
        if over >= 4 {
            assert!(lost.has(3) && lost.has(4), "lost work counts as finished");
        }
        assert!(!lost.has(2), "what finished was kept");
        other.join().unwrap();
    });
}

/// A second fault loses more, while a thread asks for what the first one lost.
#[test]
fn a_second_recovery_keeps_what_the_first_lost() {
    loom::model(|| {
        let lost = Arc::new(LostWork::default());
        lost.add(3..=4);
        let other = thread::spawn({
            let lost = lost.clone();
            move || lost.add(7..=7)
        });
        assert!(lost.has(4) && !lost.has(5));
        other.join().unwrap();
        assert!(lost.has(3) && lost.has(7));
    });
}
