//! Races between launches and copies of different queues: they touch the same bytes, one of them stores, and nothing puts one of them
//! before the other.
//!
//! Each work has a [`Clock`]: what has happened before. Who makes clocks follows semaphores and waits. Pages of the host remember here who
//! has used each word last.

use super::memory::place;
use super::quick::Quick;
use super::report::{Checker, Kind, Party, Place, Report};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Weak};
use tegra_mm::{Backing, PageTable};

const PAGE: u64 = 4096;
const WORDS: usize = 1024;
/// What pages know is swept when there is so much of it.
const ROOM: usize = 1 << 14;

/// The number of the queue that the processor's own accesses are.
pub const PROCESSOR: u32 = u32::MAX;

/// What has happened before: of each queue, the number of its last work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clock(BTreeMap<u32, u64>);

impl Clock {
    /// Everything has happened that another clock says.
    pub fn join(&mut self, other: &Clock) {
        other.0.iter().for_each(|(queue, time)| self.learn(*queue, *time));
    }

    /// The work of a queue has happened, up to a number.
    pub fn learn(&mut self, queue: u32, time: u64) {
        let known = self.0.entry(queue).or_default();
        *known = (*known).max(time);
    }

    /// The last work of a queue that has happened.
    pub fn of(&self, queue: u32) -> Option<u64> {
        self.0.get(&queue).copied()
    }

    /// Says nothing of a queue any more.
    pub fn forget(&mut self, queue: u32) {
        self.0.remove(&queue);
    }
}

/// A place in memory, whatever its GPU addresses are.
#[derive(Clone, Debug)]
pub struct Spot {
    /// The memory.
    pub memory: Arc<Backing>,
    /// The byte of it.
    pub at: u64,
}

impl Spot {
    /// Where a GPU address leads to.
    pub fn of(table: &PageTable, va: u64) -> Option<Spot> {
        let extent = table.find(va)?;
        let memory = extent.backing.clone()?;
        Some(Spot { memory, at: extent.offset as u64 + (va - extent.va) })
    }

    /// A number that is its own while its memory exists, and the byte.
    pub fn key(&self) -> (usize, u64) {
        (Arc::as_ptr(&self.memory) as usize, self.at)
    }
}

/// A launch or a copy.
#[derive(Clone, Debug)]
pub struct Work {
    /// Its queue.
    pub queue: u32,
    /// Its number, which is larger than those of all work that began before.
    pub time: u64,
    /// What has happened before, and the work itself.
    pub clock: Clock,
    /// How it is named in reports.
    pub what: String,
    /// The address of its code, or 0.
    pub code: u64,
}

/// A use of a word: the number of the work, the address of the instruction, or 0 for a copy, its word, and the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mark {
    time: u64,
    pc: u64,
    bytes: u8,
    wrote: bool,
    strong: bool,
}

/// What a launch did with a word: see [`super::Watch::uses`].
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// The address of the instruction.
    pub pc: u64,
    /// The bytes of the word.
    pub bytes: u8,
    /// Whether it stored.
    pub wrote: bool,
    /// Whether it is ordered with the accesses of the whole GPU.
    pub strong: bool,
    /// Whose it was.
    pub block: [u32; 3],
    /// Likewise.
    pub thread: [u32; 3],
}

/// What a launch did with some word of a page.
pub type Word = (u16, [Option<Used>; 3]);

/// The pages that a launch has used, and what fences it executed.
#[derive(Debug, Default)]
pub struct Uses {
    /// The addresses of pages, and the words of each that were used.
    pub pages: Vec<(u64, Vec<Word>)>,
    /// Whether a fence for the whole GPU was executed.
    pub fenced: bool,
    /// Whether one for the processor was.
    pub tells_host: bool,
}

/// Some bytes that a copy has used.
#[derive(Clone, Debug)]
pub struct Bytes {
    /// Where they are.
    pub spot: Spot,
    /// Their GPU address.
    pub va: u64,
    /// Their number, to the end of the memory at most.
    pub len: u64,
    /// Whether they were stored.
    pub wrote: bool,
}

/// What is known of the words of a page, by the number of a state.
#[derive(Debug)]
enum Page {
    All(u32),
    Words(Box<[u32; WORDS]>),
}

#[derive(Debug)]
struct Space {
    memory: Weak<Backing>,
    pages: Quick<u64, Page>,
}

/// A race that was found.
struct Found {
    va: u64,
    now: Used,
    before: Mark,
}

/// What has happened between the launches of a GPU.
#[derive(Debug, Default)]
pub struct Between {
    /// The last work of queues that exist no more. Everything has happened behind it.
    gone: BTreeMap<u32, u64>,
    memory: Quick<usize, Space>,
    /// What words may know: who has used them last. The first one is nothing.
    states: Vec<Arc<[Mark]>>,
    numbers: HashMap<Arc<[Mark]>, u32>,
    /// The work that pages know, and whether it has executed a fence for the whole GPU.
    works: Quick<u64, (Work, bool)>,
    room: usize,
}

/// What a state becomes by the uses of a work, and the race that this is.
type Known = Quick<(u32, [Option<Mark>; 3]), (u32, Option<(usize, Mark)>)>;

impl Between {
    /// A queue exists no more. Whoever has ended it knows what it has done.
    pub fn closes(&mut self, queue: u32, time: u64) {
        self.gone.insert(queue, time);
    }

    /// A launch has ended.
    pub fn launched(&mut self, checker: &Checker, work: Work, uses: &Uses, table: &PageTable) {
        let pages = uses.pages.iter().filter_map(|(va, words)| Some((*va, Spot::of(table, *va)?, words)));
        let (mut found, mut known) = (Vec::new(), Known::default());
        for (va, spot, words) in pages {
            let mut last = None;
            for (word, used) in words {
                let at = spot.at + 4 * u64::from(*word);
                let marks = used.map(|used| used.map(|used| Mark::of(work.time, &used)));
                let state = self.state(&spot.memory, at);
                let (new, race) = match last {
                    Some((key, result)) if key == (state, marks) => result,
                    _ => self.becomes(&mut known, &work, state, marks),
                };
                last = Some(((state, marks), (new, race)));
                if let Some((which, before)) = race
                    && let Some(now) = used[which]
                {
                    found.push(Found { va: va + 4 * u64::from(*word), now, before });
                }
                self.set_state(&spot.memory, at, new);
            }
        }
        self.report(checker, &work, &found, table);
        self.ends(work, uses.fenced);
    }

    fn ends(&mut self, work: Work, fenced: bool) {
        self.works.insert(work.time, (work, fenced));
        if self.states.len() > self.room.max(ROOM) {
            self.sweep();
        }
    }

    /// A copy, or what a queue writes by itself, has ended.
    pub fn copied(&mut self, checker: &Checker, work: Work, bytes: &[Bytes], table: &PageTable) {
        let (mut found, mut known) = (Vec::new(), Known::default());
        for Bytes { spot, va, len, wrote } in bytes {
            let (start, end) = (spot.at, spot.at.saturating_add(*len));
            let used = |bytes: u8| {
                let (block, thread) = ([0; 3], [0; 3]);
                Used { pc: 0, bytes, wrote: *wrote, strong: false, block, thread }
            };
            let mut at = start & !3;
            while at < end {
                let (all, is_whole) = (used(15), at.is_multiple_of(PAGE) && at + PAGE <= end);
                let first = (start.max(at) - at) as u32;
                let mask = if is_whole || at >= start && at + 4 <= end {
                    15
                } else {
                    ((1u32 << (end.min(at + 4) - at)) - (1 << first)) as u8
                };
                let now = Used { bytes: mask, ..all };
                let marks = [Some(Mark::of(work.time, &now)), None, None];
                let one = is_whole.then(|| self.whole(&spot.memory, at)).flatten();
                let state = one.unwrap_or_else(|| self.state(&spot.memory, at));
                let (new, race) = self.becomes(&mut known, &work, state, marks);
                if let Some((_, before)) = race {
                    found.push(Found { va: va + (at.max(start) - start), now, before });
                }
                if one.is_some() {
                    self.pages(&spot.memory).insert(at / PAGE, Page::All(new));
                    at += PAGE;
                } else {
                    self.set_state(&spot.memory, at, new);
                    at += 4;
                }
            }
        }
        self.report(checker, &work, &found, table);
        self.ends(work, false);
    }

    /// The processor has accessed the byte at a GPU address. `calls` is the number by which the program knows where it was. Whatever the GPU does
    /// with atomics and other strong accesses may be meant to be seen by it, so that its own count as strong.
    pub fn touched(
        &mut self,
        checker: &Checker,
        work: Work,
        (spot, va): (&Spot, u64),
        (wrote, calls): (bool, u64),
        table: &PageTable,
    ) {
        let bytes = 1 << (spot.at % 4);
        let now = Used { pc: calls, bytes, wrote, strong: true, block: [0; 3], thread: [0; 3] };
        let marks = [Some(Mark::of(work.time, &now)), None, None];
        let (state, mut known) = (self.state(&spot.memory, spot.at), Known::default());
        let (new, race) = self.becomes(&mut known, &work, state, marks);
        let found: Vec<_> = race.into_iter().map(|(_, before)| Found { va, now, before }).collect();
        self.set_state(&spot.memory, spot.at, new);
        self.report(checker, &work, &found, table);
        self.ends(work, false);
    }

    /// What a launch may have learnt from others: of those that told the whole GPU something with the words at which it looked, all
    /// that happened before their ends.
    pub fn heard(&self, uses: &Uses, table: &PageTable) -> Clock {
        let mut learnt = Clock::default();
        for (va, words) in uses.pages.iter().filter(|_| uses.fenced) {
            let Some(spot) = Spot::of(table, *va) else { continue };
            for (word, _) in words.iter().filter(|(_, used)| used.iter().flatten().any(|used| used.strong)) {
                let state = self.state(&spot.memory, spot.at + 4 * u64::from(*word));
                let Some(marks) = self.states.get(state as usize) else { continue };
                let told = marks.iter().filter(|mark| mark.wrote && mark.strong);
                let told = told.filter_map(|mark| self.works.get(&mark.time)).filter(|(_, fenced)| *fenced);
                told.for_each(|(work, _)| learnt.join(&work.clock));
            }
        }
        learnt
    }

    /// What the uses of a work make of the state of a word, and with which use of it which of them races.
    fn becomes(
        &mut self,
        known: &mut Known,
        work: &Work,
        state: u32,
        marks: [Option<Mark>; 3],
    ) -> (u32, Option<(usize, Mark)>) {
        if let Some(known) = known.get(&(state, marks)) {
            return *known;
        }
        let before = self.states.get(state as usize).cloned().unwrap_or_default();
        let is_ordered = |mark: &Mark| self.knows(work, mark);
        let race = marks.iter().enumerate().find_map(|(which, now)| {
            let now = now.as_ref()?;
            let races = |mark: &&Mark| mark.races(now) && !is_ordered(mark);
            before.iter().find(races).map(|mark| (which, *mark))
        });
        let new = marks.into_iter().flatten();
        let is_over = |mark: &Mark| {
            let covers = |now: Mark| mark.bytes & !now.bytes == 0 && (now.wrote || !mark.wrote && is_ordered(mark));
            new.clone().any(covers)
        };
        let after: Arc<[Mark]> = before.iter().filter(|mark| !is_over(mark)).copied().chain(new.clone()).collect();
        let result = (self.number(after), race);
        known.insert((state, marks), result);
        result
    }

    /// Whether a use is known to have happened before a work.
    fn knows(&self, work: &Work, mark: &Mark) -> bool {
        let Some((before, _)) = self.works.get(&mark.time) else { return true };
        let is_gone = self.gone.get(&before.queue).is_some_and(|time| *time >= mark.time);
        is_gone || before.queue == work.queue || work.clock.of(before.queue).is_some_and(|time| time >= mark.time)
    }

    fn number(&mut self, state: Arc<[Mark]>) -> u32 {
        if self.states.is_empty() {
            self.states.push(Arc::default());
            self.numbers.insert(Arc::default(), 0);
        }
        if let Some(number) = self.numbers.get(&state) {
            return *number;
        }
        let number = self.states.len() as u32;
        self.states.push(state.clone());
        self.numbers.insert(state, number);
        number
    }

    fn pages(&mut self, memory: &Arc<Backing>) -> &mut Quick<u64, Page> {
        let new = || Space { memory: Arc::downgrade(memory), pages: Quick::default() };
        &mut self.memory.entry(Arc::as_ptr(memory) as usize).or_insert_with(new).pages
    }

    /// The state of all words of a page, if it is one.
    fn whole(&mut self, memory: &Arc<Backing>, at: u64) -> Option<u32> {
        match self.pages(memory).entry(at / PAGE).or_insert(Page::All(0)) {
            Page::All(state) => Some(*state),
            Page::Words(_) => None,
        }
    }

    fn state(&self, memory: &Arc<Backing>, at: u64) -> u32 {
        let space = self.memory.get(&(Arc::as_ptr(memory) as usize));
        match space.and_then(|space| space.pages.get(&(at / PAGE))) {
            None => 0,
            Some(Page::All(state)) => *state,
            Some(Page::Words(words)) => words[(at % PAGE / 4) as usize],
        }
    }

    fn set_state(&mut self, memory: &Arc<Backing>, at: u64, state: u32) {
        let page = self.pages(memory).entry(at / PAGE).or_insert(Page::All(0));
        if let Page::All(all) = page {
            if *all == state {
                return;
            }
            *page = Page::Words(Box::new([*all; WORDS]));
        }
        if let Page::Words(words) = page {
            words[(at % PAGE / 4) as usize] = state;
        }
    }

    /// Forgets memory that is gone, and states and work that no page knows.
    fn sweep(&mut self) {
        self.memory.retain(|_, space| space.memory.strong_count() > 0);
        let mut new = vec![u32::MAX; self.states.len()];
        let old = std::mem::take(&mut self.states);
        self.numbers.clear();
        self.number(Arc::default());
        new[0] = 0;
        let mut spaces = std::mem::take(&mut self.memory);
        for page in spaces.values_mut().flat_map(|space| space.pages.values_mut()) {
            let mut moves = |state: &mut u32| {
                if new[*state as usize] == u32::MAX {
                    new[*state as usize] = self.number(old[*state as usize].clone());
                }
                *state = new[*state as usize];
            };
            match page {
                Page::All(state) => moves(state),
                Page::Words(words) => words.iter_mut().for_each(moves),
            }
        }
        self.memory = spaces;
        let used: HashSet<u64> = self.states.iter().flat_map(|state| state.iter().map(|mark| mark.time)).collect();
        self.works.retain(|time, _| used.contains(time));
        self.room = 2 * self.states.len();
    }

    /// Reports each pair of instructions once, with the first place.
    fn report(&self, checker: &Checker, work: &Work, found: &[Found], table: &PageTable) {
        for Found { va, now, before } in found {
            let Some((other, _)) = self.works.get(&before.time) else { continue };
            let queues = u64::from(work.queue) << 32 | u64::from(other.queue);
            let pair = [if now.pc == 0 { queues } else { now.pc }, if before.pc == 0 { queues } else { before.pc }];
            let with_processor = work.queue == PROCESSOR || other.queue == PROCESSOR;
            let kind = if with_processor { Kind::Cpu } else { Kind::Race };
            let program = if work.code == 0 { other.code } else { work.code };
            if !checker.is_new(Place { kind, program, at: pair, which: 2 }) {
                continue;
            }
            let inside = place(table, *va).map_or_else(String::new, |place| format!(", {place},"));
            let users = if with_processor {
                "the processor and by work for which it has not waited"
            } else {
                "work of two queues, and no semaphore, event or wait is between them"
            };
            let title = format!("global memory at {va:#x}{inside} is used by {users}");
            let party = |when: &str, of: &Work, wrote: bool, pc: u64| {
                let did = if wrote { "store" } else { "load" };
                let (by, pc) = if of.queue == PROCESSOR { ("by", 0) } else { ("of", pc) };
                let what = format!("{when}{did} {by} {}", of.what);
                Party { what, pc, word: instruction(table, pc), threads: None }
            };
            let mut first = party("", work, now.wrote, now.pc);
            first.threads = (first.pc != 0).then_some((now.block, now.thread));
            let second = party("earlier ", other, before.wrote, before.pc);
            checker.add(Report { kind, title, parties: vec![first, second] });
        }
    }
}

/// The instruction at an address, or 0.
fn instruction(table: &PageTable, pc: u64) -> u128 {
    let mut bytes = [0; 16];
    if pc != 0 && sm87::observe::read(table, pc, &mut bytes) { u128::from_le_bytes(bytes) } else { 0 }
}

impl Mark {
    fn of(time: u64, used: &Used) -> Mark {
        let Used { pc, bytes, wrote, strong, .. } = *used;
        Mark { time, pc, bytes, wrote, strong }
    }

    fn races(&self, now: &Mark) -> bool {
        self.bytes & now.bytes != 0 && (self.wrote || now.wrote) && !(self.strong && now.strong)
    }
}
