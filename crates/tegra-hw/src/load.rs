//! How busy the GPU was: what the PMU's idle counters of graphics and of the copy engine count (docs/hardware/nvgpu-nodes.md#load).

use tegrarm_lock::Mutex;

/// The PMU reads its counters once in this time, in nanoseconds.
const PERIOD: u64 = 16_700_000;
/// The load is that of so many of these periods, without the one that has not ended.
const PERIODS: usize = 17;
/// The periods that are kept: the present one, too.
const KEPT: usize = PERIODS + 1;

/// The busy time of the newest periods.
#[derive(Debug, Default)]
pub struct Load(Mutex<Counters>);

#[derive(Clone, Debug, Default)]
struct Counters {
    /// How many pieces of work run now, and since when there is one.
    working: u32,
    since: u64,
    /// Periods by their numbers, and the busy nanoseconds in each. A period is at its number modulo their count.
    periods: [(u64, u64); KEPT],
}

impl Load {
    /// Notes that a grid or a copy begins. `now` is the time of the host in nanoseconds.
    pub fn begins(&self, now: u64) {
        let mut counters = self.0.lock();
        if counters.working == 0 {
            // Another thread may have read the clock before the end of the last work, and begin after it.
            counters.since = counters.since.max(now);
        }
        counters.working += 1;
    }

    /// Notes that a grid or a copy has ended, which [`Load::begins`] has noted before.
    pub fn ends(&self, now: u64) {
        let mut counters = self.0.lock();
        counters.count(now);
        counters.working -= 1;
    }

    /// How busy the GPU was in the newest periods that have ended, in thousandths.
    pub fn thousandths(&self, now: u64) -> u32 {
        let mut counters = self.0.lock();
        counters.count(now);
        let present = now / PERIOD;
        let newest = present.saturating_sub(PERIODS as u64)..present;
        let busy: u64 = counters.periods.iter().filter(|(at, _)| newest.contains(at)).map(|(_, busy)| busy).sum();
        (busy * 1000 / (PERIOD * PERIODS as u64)) as u32
    }
}

impl Counters {
    /// Adds the time since the last look to its periods, if something runs.
    fn count(&mut self, now: u64) {
        if self.working == 0 || now <= self.since {
            return;
        }
        let (since, last) = (std::mem::replace(&mut self.since, now), now / PERIOD);
        for at in (since / PERIOD).max(last.saturating_sub(PERIODS as u64))..=last {
            let (begin, end) = (since.max(at * PERIOD), now.min((at + 1) * PERIOD));
            let period = &mut self.periods[at as usize % KEPT];
            let before = if period.0 == at { period.1 } else { 0 };
            *period = (at, before + (end - begin));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::array;

    /// Any period, long after the start.
    const START: u64 = 1000 * PERIOD;
    const WINDOW: u64 = PERIODS as u64 * PERIOD;

    #[test]
    fn a_gpu_that_did_nothing_has_no_load() {
        let load = Load::default();
        assert_eq!([0, 1, START].map(|now| load.thousandths(now)), [0; 3]);
    }

    #[test]
    fn work_that_goes_on_counts_and_fades_after_its_end() {
        let load = Load::default();
        load.begins(START);
        assert_eq!(load.thousandths(START + PERIOD - 1), 0, "the first period has not ended");
        assert_eq!(load.thousandths(START + PERIOD), 1000 / PERIODS as u32);
        assert_eq!(load.thousandths(START + WINDOW), 1000);
        assert_eq!(load.thousandths(START + 9 * WINDOW + 5), 1000);
        load.ends(START + 10 * WINDOW);
        let seen: [u32; PERIODS + 1] =
            array::from_fn(|period| load.thousandths(START + 10 * WINDOW + period as u64 * PERIOD));
        assert!(seen.is_sorted_by(|before, after| before > after), "{seen:?}");
        assert_eq!((seen[0], seen[PERIODS]), (1000, 0));
        assert_eq!(load.thousandths(START + 100 * WINDOW), 0);
    }

    #[test]
    fn short_pieces_add_up_and_those_at_the_same_time_count_once() {
        let load = Load::default();
        let quarter = PERIOD / 4;
        for period in 0..2 * PERIODS as u64 {
            let begin = START + period * PERIOD;
            for piece in 0..2 {
                load.begins(begin + piece * quarter);
                load.begins(begin + piece * quarter + 1);
                load.ends(begin + (piece + 1) * quarter - 1);
                load.ends(begin + (piece + 1) * quarter);
            }
        }
        assert_eq!(load.thousandths(START + 2 * WINDOW), 500);
    }

    #[test]
    fn a_clock_that_another_thread_read_earlier_takes_nothing_away() {
        let load = Load::default();
        load.begins(START);
        load.begins(START + PERIOD);
        load.ends(START + PERIOD - 32);
        load.ends(START + PERIOD - 64);
        assert_eq!(load.thousandths(START + WINDOW), 1000 / PERIODS as u32);
    }
}
