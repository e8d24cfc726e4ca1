//! The sleeps of a wait. They become longer until the deadline.

use std::time::{Duration, Instant};

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

    /// Makes the following sleeps short again.
    pub fn refresh(&mut self) {
        self.sleep = FIRST_SLEEP;
    }
}
