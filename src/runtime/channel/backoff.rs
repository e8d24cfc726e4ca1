//! The sleeps of a wait. They become longer until the deadline.

use std::time::{Duration, Instant};
use tegrarm_kmd::Kmd;

/// The longest sleep if the kernel tells when the GPU has worked. A fault may come from elsewhere.
pub const LONGEST_REST: Duration = Duration::from_millis(4);
const FIRST_SLEEP: Duration = Duration::from_micros(20);
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// The state of one wait.
pub struct Backoff {
    start: Instant,
    sleep: Duration,
    deadline: Option<Duration>,
}

impl Backoff {
    /// Begins a wait. Without a deadline it has no limit.
    pub fn new(deadline: Option<Duration>) -> Backoff {
        Backoff { start: Instant::now(), sleep: FIRST_SLEEP, deadline }
    }

    /// The time that the wait has taken.
    pub fn waited(&self) -> Duration {
        self.start.elapsed()
    }

    /// The time that is left. It is `None` without a deadline.
    pub fn left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_sub(self.waited()))
    }

    /// Whether the deadline has passed.
    pub fn is_over(&self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }

    /// The time to sleep before the next look.
    pub fn next_sleep(&mut self) -> Duration {
        let sleep = self.left().map_or(self.sleep, |left| self.sleep.min(left));
        self.sleep = (self.sleep * 2).min(LONGEST_SLEEP);
        sleep
    }

    /// Sleeps before the next look. `seen` is what [`Kmd::progress`] was before the last look.
    pub fn rest(&mut self, kmd: &dyn Kmd, seen: Option<u64>) {
        match seen {
            Some(seen) => kmd.rest(seen, self.left().map_or(LONGEST_REST, |left| LONGEST_REST.min(left))),
            None => std::thread::sleep(self.next_sleep()),
        }
    }

    /// Makes the following sleeps short again.
    pub fn refresh(&mut self) {
        self.sleep = FIRST_SLEEP;
    }
}
