//! The L2 cache, which the CTAs of all SMs share at the same time.
//!
//! CTAs are executed one after another, and a cache that remembers the order of their accesses would keep for one CTA what others had
//! pushed out. So each place of a CTA on an SM has a clock: the bytes that it has asked the cache for. CTAs of a grid do alike, so
//! accesses with the same clock are taken for simultaneous. A line is there as long as less than the size of the cache has come from
//! the DRAM since it was used.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The lines that are remembered, in each of two generations: 128 MiB of memory. A line that is older is in no cache.
const LINES: usize = 1 << 20;

/// Sectors of a line, one bit each.
pub(super) type Sectors = u8;

/// Which sectors were there, and which were changed already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub here: Sectors,
    pub changed: Sectors,
}

/// A line: the sectors that are there, above these the ones that were changed, and the clock of the last access.
#[derive(Clone, Copy, Default)]
struct Line {
    sectors: u8,
    at: u64,
}

/// A number that differs in its upper bits if line numbers differ.
pub(super) fn spread(line: u64) -> u64 {
    line.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Spreads line numbers, of which the map uses the upper bits too.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("the keys are line numbers");
    }

    fn write_u64(&mut self, line: u64) {
        self.0 = spread(line);
        self.0 ^= self.0 >> 32;
    }
}

type Lines = HashMap<u64, Line, BuildHasherDefault<Spread>>;

/// The cache.
pub(super) struct L2 {
    bytes: u64,
    /// The CTAs that run at the same time.
    together: u64,
    lines: Lines,
    older: Lines,
}

impl L2 {
    /// An empty cache for so many CTAs that run at the same time.
    pub(super) fn new(bytes: u64, together: u64) -> L2 {
        L2 { bytes, together, lines: Lines::default(), older: Lines::default() }
    }

    /// Reads or changes sectors of a line at a clock, which are there afterwards. `missed` of `asked` bytes came from the DRAM so far.
    pub(super) fn touch(
        &mut self,
        line: u64,
        sectors: Sectors,
        changes: bool,
        (clock, missed, asked): (u64, u64, u64),
    ) -> Found {
        if self.lines.len() >= LINES {
            self.older = std::mem::take(&mut self.lines);
        }
        let (bytes, together) = (u128::from(self.bytes), u128::from(self.together));
        let here = |known: &Line| {
            let since = u128::from(clock.abs_diff(known.at)) * together;
            since * u128::from(missed.max(1)) < bytes * u128::from(asked.max(1))
        };
        let older = &self.older;
        let known = self.lines.entry(line).or_insert_with(|| older.get(&line).copied().unwrap_or_default());
        let before = if here(known) { known.sectors } else { 0 };
        let found = Found { here: before & sectors, changed: before >> 4 & sectors };
        *known = Line { sectors: before | if changes { sectors | sectors << 4 } else { sectors }, at: clock };
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_read_at_the_same_time_is_there_and_what_came_long_ago_is_not() {
        let mut cache = L2::new(4096, 2);
        let mut here = |line, clock| cache.touch(line, 1, false, (clock, 1, 1)).here == 1;
        assert!(!here(7, 100_000), "one CTA is the first");
        assert!(here(7, 100_000) && here(7, 101_000), "another one does the same, or a little later");
        assert!(here(7, 100_000), "or earlier, although it is executed later");
        assert!(!here(7, 102_100), "two CTAs have read the whole size of the cache since");
        let few = cache.touch(9, 1, false, (0, 1, 8));
        assert_eq!(few.here, 0);
        assert_eq!(
            cache.touch(9, 1, false, (8000, 1, 8)).here,
            1,
            "an eighth of what is asked for comes from the DRAM"
        );
    }

    #[test]
    fn a_changed_sector_is_written_again_when_it_was_pushed_out() {
        let mut cache = L2::new(4096, 1);
        assert_eq!(cache.touch(1, 0b11, true, (0, 1, 1)).changed, 0);
        assert_eq!(cache.touch(1, 0b01, true, (10, 1, 1)).changed, 0b01);
        assert_eq!(cache.touch(1, 0b11, true, (10_000, 1, 1)).changed, 0);
    }
}
