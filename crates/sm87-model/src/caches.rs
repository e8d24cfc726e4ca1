//! The L1 cache of an SM, and the L2 cache, which the CTAs of all SMs share at the same time.
//!
//! CTAs are executed one after another, and an L2 cache that remembers the order of their accesses would keep for one CTA what others had
//! pushed out. So each place of a CTA on an SM has a clock: the bytes that it has asked the cache for. CTAs of a grid do alike, so
//! accesses with the same clock are taken for simultaneous. A line is there as long as less than the size of the cache has come from
//! the DRAM since it was used.

use super::table::{DRAM_NS, L2_HIT, L2_PART, L2_WRITE, LINE, SECTOR, SLICE};

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

/// A line: the clock of the last access, and in the lowest byte the sectors that are there, above these the ones that were changed.
type Line = u64;

/// The clock of the last access to a line.
fn clock_of(line: Line) -> u64 {
    line >> 8
}

/// A number that differs in its upper bits if line numbers differ.
pub(super) fn spread(line: u64) -> u64 {
    line.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Lines by their numbers: a table in which a line is at the first free place from the one on to which its number leads.
#[derive(Default)]
struct Lines {
    /// Numbers, increased by one, and lines. There are none, or a power of two, a quarter of which are free.
    places: Vec<[u64; 2]>,
    count: usize,
}

/// The places of a table that is not empty.
const LEAST: usize = 256;

impl Lines {
    fn len(&self) -> usize {
        self.count
    }

    /// Where a line is, or where it would be. There must be a free place.
    #[inline(always)]
    fn place(&self, line: u64) -> usize {
        let last = self.places.len() - 1;
        let mut at = (spread(line) >> 32) as usize & last;
        while self.places[at][0] != 0 && self.places[at][0] != line + 1 {
            at = (at + 1) & last;
        }
        at
    }

    fn get(&self, line: u64) -> Option<Line> {
        let [number, known] = *self.places.get(if self.places.is_empty() { 0 } else { self.place(line) })?;
        (number != 0).then_some(known)
    }

    /// A line, which is `new()` if it was not there.
    #[inline(always)]
    fn entry(&mut self, line: u64, new: impl FnOnce() -> Line) -> &mut Line {
        if self.count >= self.places.len() / 4 * 3 {
            self.grow();
        }
        let at = self.place(line);
        let [number, known] = &mut self.places[at];
        if *number == 0 {
            (*number, *known) = (line + 1, new());
            self.count += 1;
        }
        known
    }

    #[cold]
    fn grow(&mut self) {
        let places = vec![[0; 2]; (2 * self.places.len()).max(LEAST)];
        for known in std::mem::replace(&mut self.places, places).into_iter().filter(|known| known[0] != 0) {
            let at = self.place(known[0] - 1);
            self.places[at] = known;
        }
    }
}

/// The L2 cache.
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
    #[inline(always)]
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
        let (bytes, together) = (self.bytes, self.together);
        let here = |known: Line| {
            let since = clock.abs_diff(clock_of(known)).saturating_mul(together);
            since == 0 || u128::from(since) * u128::from(missed.max(1)) < u128::from(bytes) * u128::from(asked.max(1))
        };
        let older = &self.older;
        let known = self.lines.entry(line, || older.get(line).unwrap_or_default());
        let before = if here(*known) { *known as u8 } else { 0 };
        let found = Found { here: before & sectors, changed: before >> 4 & sectors };
        *known = clock << 8 | u64::from(before | if changes { sectors | sectors << 4 } else { sectors });
        found
    }
}

/// The bytes of sectors of a line, of which there are four.
#[inline(always)]
pub(super) fn bytes(sectors: Sectors) -> u64 {
    // A digit for each set of sectors says how many they are.
    const COUNTS: u64 = 0x4332_3221_3221_2110;
    (COUNTS >> (4 * u32::from(sectors & 15)) & 7) * SECTOR
}

/// The traffic behind the L1 caches.
pub(super) struct Shared {
    pub l2: L2,
    /// The bytes that were asked of the L2 cache.
    pub l2_bytes: u64,
    /// The sectors that it was given, and how many of them are not whole.
    written: u64,
    parts: u64,
    /// What the DRAM moves, and how much of it is read.
    pub dram_bytes: u64,
    pub dram_reads: u64,
    /// The cycles until what is read from the DRAM is there.
    pub dram_latency: u32,
}

impl Shared {
    /// Nothing was asked for yet. `hz` is the clock of the GPU.
    pub(super) fn new(l2: L2, hz: u64) -> Shared {
        let further = u128::from(DRAM_NS) * u128::from(hz) / 1_000_000_000;
        let dram_latency = L2_HIT + u32::try_from(further).unwrap_or(u32::MAX / 2);
        Shared { l2, l2_bytes: 0, written: 0, parts: 0, dram_bytes: 0, dram_reads: 0, dram_latency }
    }

    /// A store has changed so many sectors, with so many bytes in all.
    pub(super) fn wrote(&mut self, sectors: u64, bytes: u64) {
        self.written += sectors;
        self.parts += sectors - sectors.min(bytes / SECTOR);
    }

    /// For how many cycles one slice would be busy with all that was asked of the cache.
    pub(super) fn slices(&self) -> u64 {
        let read = self.l2_bytes.saturating_sub(self.written * SECTOR);
        read.div_ceil(SLICE) + self.written * L2_WRITE + self.parts * L2_PART / 10
    }

    /// Reads or changes sectors of a line. Returns the latency. A sector that is changed goes back to the DRAM once.
    #[inline(always)]
    pub(super) fn touch(&mut self, line: u64, sectors: Sectors, writes: bool, clock: u64) -> u32 {
        self.l2_bytes += bytes(sectors);
        let found = self.l2.touch(line, sectors, writes, (clock, self.dram_bytes, self.l2_bytes));
        self.dram_bytes += bytes(sectors & !if writes { found.changed } else { found.here });
        self.dram_reads += if writes { 0 } else { bytes(sectors & !found.here) };
        if found.here == sectors { L2_HIT } else { self.dram_latency }
    }
}

/// The ways of the L1 cache: so many lines whose numbers lead to the same place can be there. NVIDIA does not say how many there are.
const WAYS: usize = 4;

/// The lines of a cache that lead to one place, the last one that was used first: the number of each, increased by one, and in the lowest byte the
/// sectors that are there.
type Set = [u64; WAYS];

/// The bits of a line's number.
const NUMBER: u64 = !0xff;

/// A cache whose lines have four sectors, each filled by itself.
pub(super) struct Cache {
    sets: Vec<Set>,
}

impl Cache {
    /// An empty cache of about `bytes` bytes.
    pub(super) fn new(bytes: u64) -> Cache {
        Cache { sets: vec![[0; WAYS]; ((bytes / LINE) as usize / WAYS).max(1)] }
    }

    /// The set for a line number. Numbers are spread, so that lines that lie far apart evenly do not meet.
    #[inline(always)]
    fn set(&mut self, line: u64) -> &mut Set {
        let number = ((u128::from(spread(line)) * self.sets.len() as u128) >> 64) as usize;
        &mut self.sets[number]
    }

    /// Whether the line was used last of its set, and the sectors are there. To read them changes nothing.
    #[inline(always)]
    pub(super) fn is_last(&mut self, line: u64, sectors: Sectors) -> bool {
        self.set(line)[0] & (NUMBER | u64::from(sectors)) == numbered(line) | u64::from(sectors)
    }

    /// Reads sectors of a line, which are there afterwards. Returns those that were there.
    #[inline(always)]
    pub(super) fn read(&mut self, line: u64, sectors: Sectors) -> Sectors {
        let (set, number) = (self.set(line), numbered(line));
        if set[0] & NUMBER != number {
            let way = set.iter().position(|known| known & NUMBER == number);
            let last = way.unwrap_or(WAYS - 1);
            let found = way.map_or(number, |way| set[way]);
            for way in (1..=last).rev() {
                set[way] = set[way - 1];
            }
            set[0] = found;
        }
        let here = set[0] as Sectors & sectors;
        set[0] |= u64::from(sectors);
        here
    }
}

/// A line of which no sectors are there.
#[inline(always)]
fn numbered(line: u64) -> u64 {
    (line + 1) << 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_keeps_what_was_used_last() {
        let mut cache = Cache::new(4 * LINE);
        let here = |cache: &mut Cache, line: u64| cache.read(line, 1) == 1;
        assert!((0..4).all(|line| !here(&mut cache, line)) && (0..4).all(|line| here(&mut cache, line)));
        assert_eq!(cache.read(0, 0b11), 1, "the other sectors of a line are not there");
        assert!(here(&mut cache, 0) && !here(&mut cache, 4) && here(&mut cache, 0) && !here(&mut cache, 1));
    }

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
    fn a_slice_takes_longer_for_what_is_written_and_longest_for_parts_of_sectors() {
        let mut shared = Shared::new(L2::new(1 << 20, 1), 1_300_000_000);
        assert_eq!(shared.dram_latency, 190 + 687);
        shared.touch(1, 0b1111, false, 0);
        assert_eq!(shared.slices(), 2, "128 bytes are read");
        shared.touch(1, 0b1111, true, 0);
        shared.wrote(4, 128);
        assert_eq!(shared.slices(), 2 + 4);
        shared.touch(1, 0b1111, true, 0);
        shared.wrote(4, 16);
        assert_eq!(shared.slices(), 2 + 4 + 4 + 2, "none of four sectors is whole");
        shared.touch(2, 0b1111, true, 0);
        shared.wrote(4, 100);
        assert_eq!(
            shared.slices(),
            2 + 4 + 4 + 4 + 3,
            "one sector more has but a part, and seven tenths five times are three cycles"
        );
    }

    #[test]
    fn a_table_finds_the_lines_that_it_has() {
        let mut lines = Lines::default();
        let number = |n: u64| n.wrapping_mul(0x1000_0000_01b3) >> 7;
        assert!(lines.get(0).is_none());
        for n in 0..5000 {
            assert_eq!(*lines.entry(number(n), || n), n);
            assert_eq!(*lines.entry(number(n / 2), Line::default), n / 2, "it is there already");
        }
        assert!((0..5000).all(|n| lines.get(number(n)) == Some(n)));
        assert!(lines.len() == 5000 && lines.get(number(5000)).is_none());
    }

    #[test]
    fn a_changed_sector_is_written_again_when_it_was_pushed_out() {
        let mut cache = L2::new(4096, 1);
        assert_eq!(cache.touch(1, 0b11, true, (0, 1, 1)).changed, 0);
        assert_eq!(cache.touch(1, 0b01, true, (10, 1, 1)).changed, 0b01);
        assert_eq!(cache.touch(1, 0b11, true, (10_000, 1, 1)).changed, 0);
    }
}
