//! The memory of the GPU: lines, sectors and caches of global memory, and banks of shared memory.

use super::caches::{Cache, Sectors, Shared, bytes, spread};
use super::table::{L1_HIT, LINE, SECTOR};
use sm87::observe::access::{self, Access, Memory};

/// What an instruction costs whose addresses are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Touch {
    /// The cycles for which the SM's loads and stores are busy.
    pub busy: u64,
    /// The cycles until the result is there, without waiting for others.
    pub latency: u64,
    /// The bytes between the SM and the L2 cache.
    pub filled: u64,
}

impl Touch {
    /// What two accesses touch together.
    pub(super) fn and(self, other: Touch) -> Touch {
        Touch {
            busy: self.busy + other.busy,
            latency: self.latency.max(other.latency),
            filled: self.filled + other.filled,
        }
    }

    /// Both, by parts of the SM that work at the same time.
    pub(super) fn meanwhile(self, other: Touch) -> Touch {
        Touch { busy: self.busy.max(other.busy), ..self.and(other) }
    }
}

/// The lines that an instruction touches, with their sectors. A warp touches 32 lines, or 64 if none is aligned.
#[derive(Default)]
pub(super) struct Lines {
    list: Vec<Touched>,
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

/// Accesses of an instruction that were seen last: how the lanes lie, and the lines of some places where they lay like that.
#[derive(Default)]
pub(super) struct Seen {
    /// How far the low words of the lanes' addresses are from that of the first lane, and the least and the greatest distance.
    distances: [u32; 32],
    least: i64,
    most: i64,
    /// The bytes of each lane. 0 means that nothing is known.
    len: u32,
    /// Whether the lanes of the last access were found to lie so.
    fits: bool,
    /// The lanes that are where no earlier lane is.
    alone: Vec<u8>,
    /// Places of the first lane, and the lines there, by a part of the place. Those are known that have a bit in `known`.
    places: [(u64, Vec<Touched>); PLACES],
    known: u32,
}

/// A line, and sectors of it.
pub(super) type Touched = (u64, Sectors);

/// Loops go on by a word or more, and so do the loads of a chain.
const PLACES: usize = 32;
const APART: u64 = LINE / PLACES as u64;

impl Seen {
    /// Whether the lanes lie as before. Their low words can be moved by the same amount, but not beyond the ends of the low words.
    #[inline(always)]
    fn is_alike(&self, low: &[u32; 32], len: u32) -> bool {
        let first = i64::from(low[0]);
        let fits = self.len == len && first + self.least >= 0 && first + self.most <= u32::MAX.into();
        fits && access::lie_like(low, &self.distances)
    }

    /// Keeps how the lanes lie.
    fn keep(&mut self, low: &[u32; 32], len: u32) {
        let first = low[0];
        let distance = |low: &u32| i64::from(*low) - i64::from(first);
        self.distances = std::array::from_fn(|lane| low[lane].wrapping_sub(first));
        self.least = low.iter().map(distance).min().unwrap_or(0);
        self.most = low.iter().map(distance).max().unwrap_or(0);
        self.len = len;
        self.alone.clear();
        self.alone.extend((0..32).filter(|&lane| !low[..lane].contains(&low[lane])).map(|lane| lane as u8));
        self.known = 0;
    }
}

/// Lines that an instruction touches. All of them are moved by so many lines.
#[derive(Clone, Copy)]
pub(super) struct Touching<'a> {
    list: &'a [Touched],
    moved: u64,
}

impl Touching<'_> {
    /// The lines with their sectors.
    #[inline(always)]
    fn lines(self) -> impl Iterator<Item = Touched> {
        self.list.iter().map(move |&(line, sectors)| (line.wrapping_add(self.moved), sectors))
    }

    /// Whether there are none.
    pub(super) fn is_empty(self) -> bool {
        self.list.is_empty()
    }

    /// The sectors of all lines.
    pub(super) fn sectors(self) -> u64 {
        self.list.iter().map(|&(_, sectors)| bytes(sectors) / SECTOR).sum()
    }
}

impl Lines {
    /// Finds the lines of an access of all lanes. In loops, the lanes often lie as in the last access of the instruction, moved by the same
    /// amount. If they were once at the same place of a line, the lines are those of that time, moved by whole lines.
    ///
    /// `address` tells the address of a lane, and `low` the low words if all other bits are the same. It is not asked if `known` says that the
    /// lanes lie as in the access before.
    #[inline(always)]
    pub(super) fn find<'a>(
        &'a mut self,
        seen: &'a mut Seen,
        (address, low): (impl Fn(u32) -> u64, impl FnOnce() -> Option<&'a [u32; 32]>),
        (len, known): (u32, bool),
    ) -> Touching<'a> {
        if !known {
            let low = low();
            seen.fits = low.is_some();
            if let Some(low) = low.filter(|low| !seen.is_alike(low, len)) {
                seen.keep(low, len);
            }
        }
        if !seen.fits {
            self.clear();
            (0..32).for_each(|lane| self.add(address(lane), len));
            return self.touching();
        }
        let at = address(0);
        let number = (at / APART) as usize % PLACES;
        let (place, list) = &mut seen.places[number];
        if seen.known >> number & 1 == 0 || !(*place ^ at).is_multiple_of(LINE) {
            self.clear();
            seen.alone.iter().for_each(|&lane| self.add(address(lane.into()), len));
            list.clone_from(&self.list);
            *place = at;
            seen.known |= 1 << number;
        }
        // The distance is a multiple of the size of a line.
        Touching { list, moved: (at.wrapping_sub(*place) as i64 >> LINE.trailing_zeros()) as u64 }
    }

    /// The lines that were added.
    pub(super) fn touching(&self) -> Touching<'_> {
        Touching { list: &self.list, moved: 0 }
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
    /// The cycles until the result is there, if the L1 cache has it.
    pub near: u16,
}

/// Accesses of a warp to global memory, when its CTA's place has asked the L2 cache for `clock` bytes.
#[inline(always)]
pub(super) fn global(shared: &mut Shared, l1: &mut Cache, touching: Touching<'_>, way: Way, clock: u64) -> Touch {
    let Touching { list, moved } = touching;
    let (mut filled, mut first) = (0, L1_HIT);
    // Stores go on to the L2 cache at once.
    let passes_l1 = way.writes || way.passes_l1;
    let mut known = 0;
    while let Some(&(line, sectors)) = list.get(known)
        && !passes_l1
        && l1.is_last(line.wrapping_add(moved), sectors)
    {
        known += 1;
    }
    if known < list.len() {
        let others = Touching { list: &list[known..], moved };
        (filled, first) = looked_up(shared, if passes_l1 { None } else { Some(l1) }, others, way.writes, clock);
    }
    let lines = list.len() as u64;
    Touch { busy: lines, latency: comes(first, way.near, lines).into(), filled }
}

/// Looks up lines in the caches. Returns the bytes that come from the L2 cache, and the cycles until the first word is there of the line that comes
/// last.
#[inline(never)]
fn looked_up(
    shared: &mut Shared,
    mut l1: Option<&mut Cache>,
    touching: Touching<'_>,
    writes: bool,
    clock: u64,
) -> (u64, u32) {
    let (mut filled, mut last) = (0, L1_HIT);
    for (line, sectors) in touching.lines() {
        let missing = sectors & !l1.as_mut().map_or(0, |l1| l1.read(line, sectors));
        if missing != 0 {
            last = last.max(shared.touch(line, missing, writes, clock + filled));
            filled += bytes(missing);
        }
    }
    (filled, last)
}

/// When a result is there of which the first word takes `first` cycles, and which takes `near` cycles if the L1 cache has it. Wide values
/// come in parts, and meanwhile the lines are looked up one after another.
fn comes(first: u32, near: u16, lines: u64) -> u32 {
    let looked_up = if lines > 1 { first + lines as u32 - 1 } else { 0 };
    (first + u32::from(near)).saturating_sub(L1_HIT).max(looked_up)
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

/// Accesses to shared memory, whose result takes `near` cycles if no words of one bank differ.
pub(super) fn shared(accesses: &[Access], near: u16) -> Touch {
    let times = conflicts(accesses);
    if times == 0 {
        return Touch::default();
    }
    Touch { busy: times, latency: u64::from(near) + times - phases(accesses), ..Touch::default() }
}

/// Accesses to local memory: a word of all lanes is one line, which the L1 cache is assumed to have.
pub(super) fn local(accesses: &[Access], near: u16) -> Touch {
    let words = |access: &Access| u64::from(access.len.div_ceil(4));
    let own = accesses.iter().filter(|access| access.memory == Memory::Local);
    own.map(words).max().map_or_else(Touch::default, |lines| Touch {
        busy: lines,
        latency: u64::from(comes(L1_HIT, near, lines)),
        ..Touch::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::caches::L2;
    use super::super::table::{DRAM_NS, L2_HIT};
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
    fn sectors_are_counted() {
        assert!((0..16u8).all(|sectors| bytes(sectors) == u64::from(sectors.count_ones()) * SECTOR));
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
            (0x3048, 4, 0),
            (0x30a8, 4, 0),
            (0x1_0000, 4, -4),
            (0xffff_fff0, 4, 4),
            (0x2_0000_0070, 4, 4),
            (0x1_ffff_fff0, 4, 4),
            (0x3_0000_0010, 4, 4),
        ] {
            let all: [u64; 32] = std::array::from_fn(|lane| at.wrapping_add_signed(step * (lane as i64 / 4)));
            let low = all.map(|at| at as u32);
            let low = all.iter().all(|one| one >> 32 == at >> 32).then_some(&low);
            let (mut found, mut anew) = (Lines::default(), Lines::default());
            let touching =
                found.find(&mut seen, (|lane| all[lane as usize], || low), (len, false)).lines().collect::<Vec<_>>();
            all.iter().for_each(|&at| anew.add(at, len));
            assert_eq!(touching, anew.list, "{at:#x}, {len}, {step}");
        }
    }

    #[test]
    fn wide_values_come_later_wherever_they_are() {
        assert_eq!([(32, 4), (38, 4), (38, 32)].map(|(near, lines)| comes(L1_HIT, near, lines)), [35, 38, 63]);
        assert_eq!([29, 32, 38].map(|near| comes(L2_HIT, near, 1)), [L2_HIT - 3, L2_HIT, L2_HIT + 6]);
        let words = accesses(Memory::Shared, 16, |lane| 16 * lane);
        assert_eq!(shared(&words, 26), Touch { busy: 4, latency: 26, ..Touch::default() });
        assert_eq!(shared(&accesses(Memory::Shared, 4, |lane| 8 * lane), 24).latency, 25, "a conflict");
    }

    #[test]
    fn what_is_written_goes_to_the_dram_once() {
        let mut shared = Shared::new(L2::new(1 << 20, 1), 1_000_000_000);
        let (mut l1, mut lines) = (Cache::new(1 << 16), Lines::default());
        (0..8).for_each(|lane| lines.add(0x1000 + 16 * lane, 16));
        let mut go = |writes| {
            global(&mut shared, &mut l1, lines.touching(), Way { writes, passes_l1: false, near: L1_HIT as u16 }, 0)
        };
        assert_eq!(go(false), Touch { busy: 1, latency: u64::from(L2_HIT) + DRAM_NS, filled: 128 });
        assert_eq!(go(false), Touch { busy: 1, latency: L1_HIT.into(), filled: 0 });
        assert_eq!(go(true), Touch { busy: 1, latency: L2_HIT.into(), filled: 128 });
        go(true);
        assert_eq!((shared.dram_bytes, shared.dram_reads, shared.l2_bytes), (256, 128, 3 * 128));
    }
}
