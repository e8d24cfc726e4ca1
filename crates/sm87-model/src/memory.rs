//! The memory of the GPU: lines, sectors and caches of global memory, and banks of shared memory.

use super::l2::{Found, L2, Sectors, spread};
use super::table::{DRAM, L1_HIT, L2_HIT, LINE, SECTOR};
use sm87::observe::access::{Access, Memory};

/// What an instruction costs whose addresses are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Touch {
    /// The cycles for which the SM's loads and stores are busy.
    pub busy: u64,
    /// The cycles until the result is there, without waiting for others.
    pub latency: u64,
    /// The bytes between the SM and the L2 cache.
    pub filled: u64,
    /// The bytes that are read from the DRAM, for which the warp waits.
    pub missed: u64,
}

impl Touch {
    /// What two accesses touch together.
    pub(super) fn and(self, other: Touch) -> Touch {
        Touch {
            busy: self.busy + other.busy,
            latency: self.latency.max(other.latency),
            filled: self.filled + other.filled,
            missed: self.missed + other.missed,
        }
    }

    /// Both, by parts of the SM that work at the same time.
    pub(super) fn meanwhile(self, other: Touch) -> Touch {
        Touch { busy: self.busy.max(other.busy), ..self.and(other) }
    }
}

/// A cache whose lines have four sectors, each filled by itself.
pub(super) struct Cache {
    /// The line numbers, increased by one. Those of a set follow each other, and the last one that was used comes first.
    tags: Vec<u64>,
    /// The sectors of each line that are there, and above these the ones that were changed.
    sectors: Vec<u8>,
    ways: usize,
}

impl Cache {
    /// An empty cache of about `bytes` bytes.
    pub(super) fn new(bytes: u64, ways: usize) -> Cache {
        let lines = ((bytes / LINE) as usize / ways).max(1) * ways;
        Cache { tags: vec![0; lines], sectors: vec![0; lines], ways }
    }

    /// The first line of the set for a line number. Numbers are spread, so that lines that lie far apart evenly do not meet.
    fn set(&self, line: u64) -> usize {
        let sets = (self.tags.len() / self.ways) as u128;
        ((u128::from(spread(line)) * sets) >> 64) as usize * self.ways
    }

    /// Makes a line the last one that was used. Returns where it is.
    fn line(&mut self, line: u64) -> usize {
        let first = self.set(line);
        let tags = &mut self.tags[first..first + self.ways];
        if tags[0] == line + 1 {
            return first;
        }
        let sectors = &mut self.sectors[first..first + self.ways];
        let known = tags.iter().position(|&tag| tag == line + 1);
        let last = known.unwrap_or(self.ways - 1);
        let found = if known.is_some() { sectors[last] } else { 0 };
        tags.copy_within(0..last, 1);
        sectors.copy_within(0..last, 1);
        (tags[0], sectors[0]) = (line + 1, found);
        first
    }

    /// Reads or changes sectors of a line, which are there afterwards.
    pub(super) fn touch(&mut self, line: u64, sectors: Sectors, changes: bool) -> Found {
        let at = self.line(line);
        let known = &mut self.sectors[at];
        let found = Found { here: *known & sectors, changed: *known >> 4 & sectors };
        *known |= if changes { sectors | sectors << 4 } else { sectors };
        found
    }
}

/// The lines that an instruction touches, with their sectors. A warp touches 32 lines, or 64 if none is aligned.
#[derive(Default)]
pub(super) struct Lines {
    list: Vec<(u64, Sectors)>,
    /// Where each line is in the list, by a part of its number; increased by one.
    places: Places,
}

/// More places than lines.
struct Places([u8; 128]);

impl Default for Places {
    fn default() -> Places {
        Places([0; 128])
    }
}

/// An access that was seen: how far its lanes are from the first one, where that is, the bytes of each, and the lines.
#[derive(Default)]
pub(super) struct Seen {
    distances: [u64; 32],
    at: u64,
    len: u32,
    list: Vec<(u64, Sectors)>,
    /// The lanes that are where no earlier lane is.
    alone: Vec<u8>,
}

impl Lines {
    /// Finds the lines of an access of all lanes. In loops, it is often the last one of its instruction, moved by whole lines.
    pub(super) fn find(&mut self, seen: &mut Seen, addresses: &[u64; 32], len: u32) {
        let (at, mut distances) = (addresses[0], [0; 32]);
        for (distance, other) in distances.iter_mut().zip(addresses) {
            *distance = other.wrapping_sub(at);
        }
        let alike = seen.len == len && seen.distances == distances;
        if alike && (seen.at ^ at).is_multiple_of(LINE) {
            let moved = (at.wrapping_sub(seen.at) as i64 / LINE as i64) as u64;
            self.list.clear();
            self.list.extend(seen.list.iter().map(|&(line, sectors)| (line.wrapping_add(moved), sectors)));
            return;
        }
        if !alike {
            let alone = (0..32).filter(|&lane| !distances[..lane].contains(&distances[lane]));
            seen.alone.clear();
            seen.alone.extend(alone.map(|lane| lane as u8));
        }
        self.clear();
        seen.alone.iter().for_each(|&lane| self.add(addresses[usize::from(lane) & 31], len));
        (seen.distances, seen.at, seen.len) = (distances, at, len);
        seen.list.clone_from(&self.list);
    }

    /// Whether nothing was added.
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The sectors of all lines.
    pub(super) fn sectors(&self) -> u64 {
        self.list.iter().map(|(_, sectors)| u64::from(sectors.count_ones())).sum()
    }

    /// Begins another instruction.
    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.places.0.fill(0);
    }

    /// Adds the bytes of a lane, 16 at most.
    #[inline(always)]
    pub(super) fn add(&mut self, at: u64, len: u32) {
        let (first, last) = (at / SECTOR, at.saturating_add(u64::from(len.max(1)) - 1) / SECTOR);
        self.add_sector(first);
        if last != first {
            self.add_sector(last);
        }
    }

    #[inline(always)]
    fn add_sector(&mut self, sector: u64) {
        let (line, bit) = (sector / (LINE / SECTOR), 1 << (sector % (LINE / SECTOR)));
        if let Some(last) = self.list.last_mut()
            && last.0 == line
        {
            last.1 |= bit;
            return;
        }
        let places = &mut self.places.0;
        let mut at = (spread(line) >> 57) as usize % places.len();
        while let Some(known) = self.list.get_mut(usize::from(places[at]).wrapping_sub(1)) {
            if known.0 == line {
                known.1 |= bit;
                return;
            }
            at = (at + 1) % places.len();
        }
        if self.list.len() < places.len() / 2 {
            self.list.push((line, bit));
            places[at] = self.list.len() as u8;
        }
    }
}

/// The way that an access takes through the caches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub writes: bool,
    /// It is ordered with accesses of other threads, or an atomic: the L1 cache does not answer it.
    pub passes_l1: bool,
}

/// The traffic behind the L1 caches.
pub(super) struct Shared {
    pub l2: L2,
    /// The bytes that were asked of the L2 cache.
    pub l2_bytes: u64,
    /// What the DRAM moves, and how much of it is read.
    pub dram_bytes: u64,
    pub dram_reads: u64,
}

impl Shared {
    /// Reads or changes sectors of a line. Returns the latency, and the bytes that are read from the DRAM. A sector that is changed goes
    /// back to the DRAM once.
    fn touch(&mut self, line: u64, sectors: Sectors, writes: bool, clock: u64) -> (u32, u64) {
        let bytes = |sectors: Sectors| u64::from(sectors.count_ones()) * SECTOR;
        self.l2_bytes += bytes(sectors);
        let found = self.l2.touch(line, sectors, writes, (clock, self.dram_bytes, self.l2_bytes));
        self.dram_bytes += bytes(sectors & !if writes { found.changed } else { found.here });
        let missed = if writes { 0 } else { bytes(sectors & !found.here) };
        self.dram_reads += missed;
        (if found.here == sectors { L2_HIT } else { DRAM }, missed)
    }
}

/// Accesses of a warp to global memory, when its CTA's place has asked the L2 cache for `clock` bytes.
pub(super) fn global(shared: &mut Shared, l1: &mut Cache, lines: &Lines, way: Way, clock: u64) -> Touch {
    let count = lines.list.len() as u64;
    let mut touch = Touch { busy: count, ..Touch::default() };
    let mut latency = L1_HIT;
    for &(line, sectors) in &lines.list {
        // Stores go on to the L2 cache at once.
        let here = if way.writes || way.passes_l1 { 0 } else { l1.touch(line, sectors, false).here };
        let missing = sectors & !here;
        if missing != 0 {
            let (until, missed) = shared.touch(line, missing, way.writes, clock + touch.filled);
            touch.filled += u64::from(missing.count_ones()) * SECTOR;
            latency = latency.max(until);
            touch.missed += missed;
        }
    }
    touch.latency = u64::from(latency) + count.saturating_sub(1);
    touch
}

/// The banks of shared memory, each four bytes wide.
const BANKS: usize = 32;

/// How often shared memory must be asked for accesses of a warp. 8 bytes are served for a half of the warp at a time, and 16
/// bytes for a quarter.
pub(super) fn conflicts(accesses: &[Access]) -> u64 {
    let Some(first) = accesses.iter().find(|access| access.memory == Memory::Shared) else { return 0 };
    let together = BANKS as u32 / first.len.div_ceil(4).max(1);
    let mut lanes = accesses.iter().filter(|access| access.memory == Memory::Shared).peekable();
    let mut times = 0;
    while let Some(next) = lanes.peek() {
        let phase = next.lane / together;
        let mut words = [0u64; 2 * BANKS];
        let mut count = 0;
        while let Some(access) = lanes.next_if(|access| access.lane / together == phase) {
            for word in access.at / 4..=access.at.saturating_add(u64::from(access.len).max(1) - 1) / 4 {
                if count < words.len() {
                    words[count] = word;
                    count += 1;
                }
            }
        }
        times += most_of_a_bank(&words[..count]);
    }
    times
}

/// How often shared memory must be asked for the same accesses if no words of one bank differ.
pub(super) fn phases(accesses: &[Access]) -> u64 {
    let mut shared = accesses.iter().filter(|access| access.memory == Memory::Shared).peekable();
    let Some(first) = shared.peek() else { return 0 };
    let together = BANKS as u32 / first.len.div_ceil(4).max(1);
    let phases = shared.fold(0u32, |phases, access| phases | 1 << (access.lane / together));
    phases.count_ones().into()
}

/// The most different words in one bank. Mostly a bank has one word, for one lane or for several.
fn most_of_a_bank(words: &[u64]) -> u64 {
    if words.windows(2).all(|pair| pair[1] == pair[0] + 1) && words.len() <= BANKS {
        return 1;
    }
    let (mut firsts, mut counts) = ([0u64; BANKS], [0u8; BANKS]);
    let (mut others, mut known) = ([0u64; 2 * BANKS], 0);
    for &word in words {
        let bank = word as usize % BANKS;
        if counts[bank] == 0 {
            (firsts[bank], counts[bank]) = (word, 1);
        } else if firsts[bank] != word && !others[..known].contains(&word) {
            (others[known], known) = (word, known + 1);
            counts[bank] += 1;
        }
    }
    counts.iter().max().map_or(0, |most| u64::from(*most))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accesses(memory: Memory, len: u32, at: impl Fn(u64) -> u64) -> Vec<Access> {
        let lane =
            |lane: u32| Access { lane, memory, at: at(lane.into()), len, reads: true, writes: false, atomic: false };
        (0..32).map(lane).collect()
    }

    fn banks(len: u32, at: impl Fn(u64) -> u64) -> u64 {
        conflicts(&accesses(Memory::Shared, len, at))
    }

    #[test]
    fn words_of_one_bank_come_one_after_another() {
        assert_eq!(banks(4, |lane| 4 * lane), 1);
        assert_eq!(banks(4, |_| 64), 1, "all lanes read one word");
        assert_eq!(banks(1, |lane| lane), 1);
        assert_eq!([2, 4, 8, 32].map(|words| banks(4, |lane| 4 * words * lane)), [2, 4, 8, 32]);
        assert_eq!(banks(4, |lane| 4 * 33 * lane), 1, "a row with one word more has no conflict");
        assert_eq!((banks(8, |lane| 8 * lane), banks(16, |lane| 16 * lane)), (2, 4));
        assert_eq!(banks(16, |lane| 16 * (lane / 16)), 4, "each quarter reads one place");
        assert_eq!(conflicts(&[]), 0);
        assert_eq!(most_of_a_bank(&[5, 37, 5, 37, 69, 6, 38]), 3, "a word counts once wherever its lanes are");
        let least = |len: u32| phases(&accesses(Memory::Shared, len, |lane| 512 * lane));
        assert_eq!((least(4), least(8), least(16), phases(&[])), (1, 2, 4, 0));
    }

    fn lines(len: u32, at: impl Fn(u64) -> u64) -> (u32, usize) {
        let mut lines = Lines::default();
        (0..32).for_each(|lane| lines.add(at(lane), len));
        (lines.list.iter().map(|(_, sectors)| sectors.count_ones()).sum(), lines.list.len())
    }

    #[test]
    fn neighbours_share_sectors_and_lines() {
        assert_eq!(lines(4, |lane| 0x1000 + 4 * lane), (4, 1));
        assert_eq!(lines(4, |_| 0x1000), (1, 1));
        assert_eq!(lines(16, |lane| 0x1000 + 16 * lane), (16, 4));
        assert_eq!(lines(4, |lane| 0x1000 + 32 * lane), (32, 8));
        assert_eq!(lines(4, |lane| 0x1000 + 4096 * lane), (32, 32));
        assert_eq!(lines(4, |lane| 0x1000 - 4 * lane), (5, 2));
        assert_eq!(lines(4, |lane| 0x1000 + 4096 * (lane % 4)), (4, 4), "lines that come again count once");
        assert_eq!(lines(16, |lane| 0x1078 + 4096 * lane), (64, 64), "unaligned lanes need two lines");
    }

    #[test]
    fn an_access_that_has_moved_has_the_lines_that_it_would_have_anew() {
        let mut seen = Seen::default();
        for (at, len, step) in [
            (0x1_0000u64, 4, 4),
            (0x1_0080, 4, 4),
            (0xff80, 4, 4),
            (0x1_0010, 4, 4),
            (0x2_0010, 16, 16),
            (0x2_0110, 16, 16),
            (0x8000_0078, 8, -4096),
            (0x7000_0078, 8, -4096),
            (0x7000_0078, 4, -4096),
            (0x3000, 4, 0),
            (0x3080, 4, 0),
        ] {
            let all = std::array::from_fn(|lane| at.wrapping_add_signed(step * (lane as i64 / 4)));
            let (mut found, mut anew) = (Lines::default(), Lines::default());
            found.find(&mut seen, &all, len);
            all.iter().for_each(|&at| anew.add(at, len));
            assert_eq!(found.list, anew.list, "{at:#x}, {len}, {step}");
        }
    }

    #[test]
    fn a_cache_keeps_what_was_used_last() {
        let mut cache = Cache::new(4 * LINE, 4);
        let here = |cache: &mut Cache, line: u64| cache.touch(line, 1, false).here == 1;
        assert!((0..4).all(|line| !here(&mut cache, line)) && (0..4).all(|line| here(&mut cache, line)));
        assert_eq!(cache.touch(0, 0b11, false).here, 1, "the other sectors of a line are not there");
        assert!(here(&mut cache, 0) && !here(&mut cache, 4) && here(&mut cache, 0) && !here(&mut cache, 1));
    }

    #[test]
    fn what_is_written_goes_to_the_dram_once() {
        let mut shared = Shared { l2: L2::new(1 << 20, 1), l2_bytes: 0, dram_bytes: 0, dram_reads: 0 };
        let (mut l1, mut lines) = (Cache::new(1 << 16, 4), Lines::default());
        (0..8).for_each(|lane| lines.add(0x1000 + 16 * lane, 16));
        let mut go = |writes| global(&mut shared, &mut l1, &lines, Way { writes, passes_l1: false }, 0);
        assert_eq!(go(false), Touch { busy: 1, latency: DRAM.into(), filled: 128, missed: 128 });
        assert_eq!(go(false), Touch { busy: 1, latency: L1_HIT.into(), filled: 0, missed: 0 });
        assert_eq!(go(true), Touch { busy: 1, latency: L2_HIT.into(), filled: 128, missed: 0 });
        go(true);
        assert_eq!((shared.dram_bytes, shared.dram_reads, shared.l2_bytes), (256, 128, 3 * 128));
    }
}
