//! How waits for a replay's runs pass their time: they spin for a while, then sleep; where runs take long, they do not spin
//! but sleep for about as long as the last one took, and then in small steps.

use std::time::Duration;

/// After a run this many spins long, the next wait does not spin.
const LONG: u32 = 8;
/// While a wait spins, it looks at the clock once in this many looks at the timeline.
const LOOKS: u32 = 64;
const FIRST_SLEEP: Duration = Duration::from_micros(20);
/// How much later than asked for Linux ends a sleep (a thread's timer slack).
const SLACK: Duration = Duration::from_micros(50);
/// Nothing else is noticed while a wait sleeps, a fault above all: never longer than this, or an eighth of what runs take.
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// What is known from earlier waits.
pub struct Pace {
    /// How long waits spin.
    pub spin: Duration,
    /// What the last run surely took: it was pending until then.
    expected: Duration,
}

/// One wait.
pub struct Wait {
    long: bool,
    /// When the spin, or the first sleep, ends.
    until: Duration,
    sleep: Duration,
    longest: Duration,
    /// When the run was last seen pending.
    pending: Duration,
}

impl Pace {
    /// Nothing is known.
    pub fn new(spin: Duration) -> Pace {
        Pace { spin, expected: Duration::ZERO }
    }

    /// Begins a wait.
    pub fn wait(&self) -> Wait {
        let long = self.expected > self.spin.saturating_mul(LONG);
        let most = (self.expected / 8 * 7).saturating_sub(SLACK);
        let (until, sleep) = if long { (most, self.expected / 16) } else { (self.spin, FIRST_SLEEP) };
        let longest = LONGEST_SLEEP.max(self.expected / 8);
        Wait { long, until, sleep: sleep.clamp(FIRST_SLEEP, longest), longest, pending: Duration::ZERO }
    }

    /// The run has finished. One that did so in the first sleep may have been much shorter than that.
    pub fn finished(&mut self, wait: &Wait) {
        self.expected = if wait.long && wait.pending < wait.until { self.expected / 2 } else { wait.pending };
    }
}

impl Wait {
    /// How often to look at the timeline before the next question.
    pub fn looks(&self) -> u32 {
        if self.long || self.pending >= self.until { 1 } else { LOOKS }
    }

    /// How long to sleep now that the run was still pending after `waited`; With `None` it does not sleep.
    pub fn sleep(&mut self, waited: Duration) -> Option<Duration> {
        self.pending = waited;
        if waited < self.until {
            return self.long.then(|| (self.until - waited).min(self.longest));
        }
        let sleep = self.sleep;
        self.sleep = (sleep * 2).min(self.longest);
        Some(sleep)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPIN: Duration = Duration::from_micros(20);
    const LOOK: Duration = Duration::from_micros(1);

    /// A wait for a run that takes `run`: when it ended, its looks while it spun, and its sleeps.
    fn wait(pace: &mut Pace, run: Duration) -> (Duration, u32, u32) {
        let (mut wait, mut now, mut spins, mut sleeps) = (pace.wait(), Duration::ZERO, 0, 0);
        while now < run {
            match wait.sleep(now) {
                None => (now, spins) = (now + LOOK, spins + 1),
                Some(sleep) => (now, sleeps) = (now + sleep + SLACK + 5 * LOOK, sleeps + 1),
            }
        }
        pace.finished(&wait);
        (now, spins, sleeps)
    }

    #[test]
    fn short_runs_are_spun_through() {
        let mut pace = Pace::new(SPIN);
        for _ in 0..10 {
            assert_eq!(wait(&mut pace, 15 * LOOK), (15 * LOOK, 15, 0));
        }
    }

    #[test]
    fn long_runs_cost_a_few_sleeps_and_end_soon() {
        for micros in [300, 500, 700, 1500, 1600, 5000, 40_000] {
            let (mut pace, run) = (Pace::new(SPIN), Duration::from_micros(micros));
            (0..8).for_each(|_| _ = wait(&mut pace, run));
            for _ in 0..50 {
                let (end, spins, sleeps) = wait(&mut pace, run);
                assert!(
                    spins == 0 && sleeps <= 4 + (micros as u32 / 1000).min(8),
                    "{micros}: {spins} spins, {sleeps} sleeps"
                );
                assert!(end < run + run / 4 + 3 * SLACK, "{micros}: {end:?}");
            }
        }
    }

    #[test]
    fn one_long_run_is_soon_forgotten() {
        let (mut pace, short) = (Pace::new(SPIN), Duration::from_micros(10));
        wait(&mut pace, Duration::from_millis(20));
        (0..8).for_each(|_| _ = wait(&mut pace, short));
        assert_eq!(wait(&mut pace, short).2, 0, "it spins again");
    }
}
