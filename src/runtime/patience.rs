//! How waits pass their time: sleeps that become longer, until the deadline.

use std::time::{Duration, Instant};

const FIRST_SLEEP: Duration = Duration::from_micros(20);
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// One wait.
pub struct Patience {
    start: Instant,
    sleep: Duration,
    deadline: Option<Duration>,
}

impl Patience {
    /// Begins a wait; without a deadline it takes as long as it takes.
    pub fn new(deadline: Option<Duration>) -> Patience {
        Patience { start: Instant::now(), sleep: FIRST_SLEEP, deadline }
    }

    /// How long it has taken.
    pub fn waited(&self) -> Duration {
        self.start.elapsed()
    }

    /// How much of it is left; `None` without a deadline.
    pub fn left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_sub(self.waited()))
    }

    /// Whether the deadline has passed.
    pub fn is_over(&self) -> bool {
        self.left().is_some_and(|left| left.is_zero())
    }

    /// How long to sleep before the next look.
    pub fn next_sleep(&mut self) -> Duration {
        let sleep = self.left().map_or(self.sleep, |left| self.sleep.min(left));
        self.sleep = (self.sleep * 2).min(LONGEST_SLEEP);
        sleep
    }

    /// From now on sleeps are short again.
    pub fn refresh(&mut self) {
        self.sleep = FIRST_SLEEP;
    }
}
