//! The waits for a replay's runs. They read in a loop for a while, and then sleep. If runs take long, they do not loop.
//! They sleep for about as long as the last run took, and then for short times.

use std::time::Duration;

/// After a run that took this many times the length of the loop, the next wait does not loop.
const LONG: u32 = 8;
/// While a wait loops, it reads the clock once for this many reads of the timeline.
const LOOKS: u32 = 64;
const FIRST_SLEEP: Duration = Duration::from_micros(20);
/// The time by which Linux ends a sleep late (the timer slack of a thread).
const SLACK: Duration = Duration::from_micros(50);
/// The longest sleep, because a sleeping wait notices nothing else, and in particular no fault. A sleep is also at most
/// an eighth of the time of a run.
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// What is known from earlier waits.
pub struct Pace {
    /// The time for which waits loop.
    pub spin: Duration,
    /// A time that the last run surely took, because it was pending until then.
    expected: Duration,
}

/// The state of one wait.
pub struct Wait {
    long: bool,
    /// The time at which the loop, or the first sleep, ends.
    until: Duration,
    sleep: Duration,
    longest: Duration,
    /// The time at which the run was last seen pending.
    pending: Duration,
}

impl Pace {
    /// Makes the value without any knowledge of earlier waits.
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

    /// Notes that the run has finished. A run that finished in the first sleep may have been much shorter than that
    /// sleep.
    pub fn finished(&mut self, wait: &Wait) {
        self.expected = if wait.long && wait.pending < wait.until { self.expected / 2 } else { wait.pending };
    }
}

impl Wait {
    /// The number of reads of the timeline before the next call of [`Self::sleep`].
    pub fn looks(&self) -> u32 {
        if self.long || self.pending >= self.until { 1 } else { LOOKS }
    }

    /// The time to sleep after the run was still pending after `waited`. The result is `None` if the wait does not
    /// sleep.
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

    /// Simulates a wait for a run that takes `run`. Returns the time of its end, its reads in the loop, and its sleeps.
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
