//! What a launch has stored: what memory held before, so that it can be put back, and who stored each word last. Two runs of one launch
//! in different schedules show whether its outcome depends on the schedule.

use super::memory::place;
use super::quick::Quick;
use super::report::{Checker, Kind, Party, Place, Report};
use super::{Looked, Plan};
use sm87::Launch;
use sm87::isa::memory::Shape;
use sm87::observe::access::{self, Access, Memory};
use sm87::observe::{Chosen, CtaObserver, Env, Fetch, Flow, Image, Observer, Step};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tegra_mm::PageTable;
use tegrarm_lock::Mutex;

const PAGE: usize = 4096;
const WORD: usize = 4;

/// Who stored a word: the address of the instruction, the number of the CTA, and the thread. At the address 0 nobody did.
#[derive(Clone, Copy, Debug, Default)]
struct Storer {
    pc: u64,
    cta: u64,
    thread: [u16; 3],
    atomic: bool,
}

/// A page that a launch has stored to.
#[derive(Debug)]
struct Page {
    va: u64,
    before: Box<[u8; PAGE]>,
    by: Box<[Storer; PAGE / WORD]>,
}

/// The pages that a launch has stored to, in the order of their first stores.
#[derive(Debug, Default)]
struct Pages {
    list: Vec<Page>,
    places: Quick<u64, usize>,
    /// The words of the instructions that stored.
    words: Quick<u64, u128>,
}

/// Observes one launch, and knows afterwards what it has stored.
#[derive(Debug, Default)]
pub struct Outcome {
    pages: Mutex<Pages>,
    /// A number made of the program's code.
    program: AtomicU64,
}

/// What memory holds in the pages that a launch has stored to.
#[derive(Debug)]
pub struct Results(Quick<u64, Box<[u8; PAGE]>>);

/// Which instructions store to memory that outlives the launch.
struct Storing(Vec<Option<Shape>>);

impl Observer for Outcome {
    fn choose(&self, image: &Image, _: &mut Fetch<'_>) -> Chosen {
        self.program.store(Looked::code_of(image), Ordering::Relaxed);
        let stores = |at: u32| match Plan::of(image.row(at)?, sm87::Word(image.word(at))) {
            Plan::Access(shape) if shape.writes => Some(shape),
            _ => None,
        };
        let storing: Vec<_> = (0..image.len()).map(stores).collect();
        let which = storing.iter().map(Option::is_some).collect();
        Chosen { which, is_narrow: false, notes: Arc::new(Storing(storing)) }
    }

    fn ctas<'a>(&'a self, _: &Launch, _: &Image) -> Box<dyn CtaObserver + 'a> {
        Box::new(Storers { outcome: self, accesses: Vec::with_capacity(64), read: Vec::with_capacity(64) })
    }

    fn ends(&self, _: u64) {}
}

/// Notes what CTAs store.
struct Storers<'o> {
    outcome: &'o Outcome,
    accesses: Vec<Access>,
    /// What atomics find.
    read: Vec<u128>,
}

impl CtaObserver for Storers<'_> {
    fn begins(&mut self, _: u32) {}

    fn step(&mut self, step: &mut Step<'_, '_>) -> Flow {
        let (w, env, u) = step.parts();
        let Some(shape) = env.image().notes::<Storing>().and_then(|of| *of.0.get(u.at() as usize)?) else {
            return step.execute();
        };
        access::find(&mut self.accesses, w, env, u, &shape, step.exec());
        self.accesses.retain(|access| access.writes && access.memory == Memory::Global);
        if self.accesses.is_empty() {
            return step.execute();
        }
        let (table, [x, y, _]) = (&env.launch().table, env.launch().grid.map(u64::from));
        let cta = env.ctaid().map(u64::from);
        let (pc, word, warp) = (env.pc(u.at()), env.image().word(u.at()), w.index());
        let storer = |env: &Env<'_>, access: &Access| {
            let thread = env.thread(warp, access.lane).unwrap_or_default().map(|n| n as u16);
            Storer { pc, cta: cta[0] + x * (cta[1] + y * cta[2]), thread, atomic: access.atomic }
        };
        let mut pages = self.outcome.pages.lock();
        pages.words.entry(pc).or_insert(word);
        for access in &self.accesses {
            // An atomic may leave what is there, such as a compare-and-swap that fails. The page is kept before it is known.
            let by = if shape.atomic { Storer::default() } else { storer(env, access) };
            pages.note(table, access, by);
        }
        if !shape.atomic {
            drop(pages);
            return step.execute();
        }
        self.read.clear();
        self.read.extend(self.accesses.iter().map(|access| value(table, access)));
        drop(pages);
        let flow = step.execute();
        let (_, env, _) = step.parts();
        let mut pages = self.outcome.pages.lock();
        for (access, read) in self.accesses.iter().zip(&self.read) {
            if value(&env.launch().table, access) != *read {
                pages.note(&env.launch().table, access, storer(env, access));
            }
        }
        flow
    }
}

/// What memory holds where an access is.
fn value(table: &PageTable, access: &Access) -> u128 {
    let mut bytes = [0; 16];
    if let Some(extent) = table.find(access.at)
        && let Some(backing) = &extent.backing
    {
        let at = extent.offset + (access.at - extent.va) as usize;
        let _inside = backing.read(at, &mut bytes[..(access.len as usize).min(16)]);
    }
    u128::from_le_bytes(bytes)
}

/// Reads a page. Where nothing is mapped, the result is false.
fn read(table: &PageTable, va: u64, bytes: &mut [u8; PAGE]) -> bool {
    let Some(extent) = table.find(va) else { return false };
    let Some(backing) = &extent.backing else { return false };
    let at = extent.offset + (va - extent.va) as usize;
    let len = PAGE.min(backing.len().saturating_sub(at));
    len > 0 && backing.read(at, &mut bytes[..len])
}

/// Writes a word where a page was read before.
fn write(table: &PageTable, va: u64, word: &[u8]) {
    if let Some(extent) = table.find(va)
        && let Some(backing) = &extent.backing
    {
        let _inside = backing.write(extent.offset + (va - extent.va) as usize, word);
    }
}

impl Pages {
    /// Notes who is about to store. The page is kept as it is before its first store.
    fn note(&mut self, table: &PageTable, access: &Access, by: Storer) {
        let va = access.at & !(PAGE as u64 - 1);
        let number = match self.places.get(&va) {
            Some(number) => *number,
            None => {
                let mut before = Box::new([0; PAGE]);
                if !read(table, va, &mut before) {
                    return;
                }
                self.list.push(Page { va, before, by: Box::new([Storer::default(); PAGE / WORD]) });
                self.places.insert(va, self.list.len() - 1);
                self.list.len() - 1
            }
        };
        if by.pc != 0 {
            let first = (access.at - va) as usize / WORD;
            let end = ((access.at - va) as usize + access.len as usize).div_ceil(WORD).min(PAGE / WORD);
            self.list[number].by[first..end].fill(by);
        }
    }

    fn page(&self, va: u64) -> Option<&Page> {
        Some(&self.list[*self.places.get(&va)?])
    }
}

/// The first word that is different after two schedules of a launch.
#[derive(Debug)]
pub struct Difference {
    at: u64,
    values: [u32; 2],
    by: [Storer; 2],
    words: [u128; 2],
    /// How many words are different.
    count: u64,
}

impl Outcome {
    /// What memory holds now where the launch has stored.
    pub fn results(&self, launch: &Launch) -> Results {
        let page = |page: &Page| {
            let mut now = Box::new([0; PAGE]);
            read(&launch.table, page.va, &mut now).then_some((page.va, now))
        };
        Results(self.pages.lock().list.iter().filter_map(page).collect())
    }

    /// Puts back what memory held before the launch, word by word, and leaves alone what the launch has not stored.
    pub fn put_back(&self, launch: &Launch) {
        // Two addresses may lead to one place: the older state is the right one.
        for page in self.pages.lock().list.iter().rev() {
            page.write(launch, &page.before);
        }
    }

    /// Puts results of this launch into memory again.
    pub fn put_again(&self, launch: &Launch, results: &Results) {
        for page in &self.pages.lock().list {
            if let Some(bytes) = results.0.get(&page.va) {
                page.write(launch, bytes);
            }
        }
    }

    /// The first word that memory holds now, after another run, and that is not what this one has left.
    pub fn differs(&self, results: &Results, other: &Outcome, launch: &Launch) -> Option<Difference> {
        let (usual, other) = (self.pages.lock(), other.pages.lock());
        let pages: BTreeSet<u64> = usual.list.iter().chain(&other.list).map(|page| page.va).collect();
        let mut first: Option<Difference> = None;
        for va in pages {
            let (here, there) = (usual.page(va), other.page(va));
            let mut now = [0; PAGE];
            let before = there.map(|page| &page.before);
            let Some(then) = results.0.get(&va).or(before).filter(|_| read(&launch.table, va, &mut now)) else {
                continue;
            };
            let by = |page: Option<&Page>, word: usize| page.map_or(Storer::default(), |page| page.by[word]);
            for word in 0..PAGE / WORD {
                let by = [by(here, word), by(there, word)];
                let value = |page: &[u8; PAGE]| {
                    page[word * WORD..][..WORD].iter().rev().fold(0u32, |n, byte| n << 8 | u32::from(*byte))
                };
                let values = [value(then), value(&now)];
                if values[0] == values[1] || by.iter().all(|by| by.pc == 0) {
                    continue;
                }
                let words = [&usual, &other].map(|pages| &pages.words);
                let words = [0, 1].map(|n| words[n].get(&by[n].pc).copied().unwrap_or(0));
                let at = va + (word * WORD) as u64;
                first.get_or_insert(Difference { at, values, by, words, count: 0 }).count += 1;
            }
        }
        first
    }

    /// Reports a difference. `which` names the other schedule.
    pub fn report(&self, checker: &Checker, launch: &Launch, found: &Difference, which: &str) {
        let Difference { at, values: [usual, other], by, words, count } = found;
        let program = self.program.load(Ordering::Relaxed);
        if !checker.is_new(Place { kind: Kind::Order, program, at: by.map(|by| by.pc), which: 0 }) {
            return;
        }
        let more = if *count > 1 { format!(", the first of {count} words that differ") } else { String::new() };
        let inside = place(&launch.table, *at).map_or_else(String::new, |place| format!(", {place},"));
        let title = format!(
            "global memory at {at:#x}{inside} depends on the order of blocks and warps: {usual:#010x} in the usual order, {other:#010x} in \
             {which}{more}"
        );
        let whom = ["in the usual order", "in the other order"];
        let parties = (0..2).filter(|&n| by[n].pc != 0).map(|n| by[n].party(words[n], launch, whom[n]));
        checker.add(Report { kind: Kind::Order, title, parties: parties.collect() });
    }

    /// Reports that the launch ends in the usual schedule, and fails in another one.
    pub fn report_failure(&self, checker: &Checker, stopped: &sm87::SmFault, which: &str) {
        let program = self.program.load(Ordering::Relaxed);
        let site = stopped.site();
        let (text, pc) = match stopped {
            sm87::SmFault::Mmu { fault, record, .. } => {
                (format!("the MMU refuses an access at {:#x}", fault.va), record.pc)
            }
            sm87::SmFault::Warp { text, record, .. } => (text.clone(), record.pc),
            sm87::SmFault::Hang { text, pc } => (text.clone(), *pc),
        };
        if !checker.is_new(Place { kind: Kind::Order, program, at: [pc; 2], which: 1 }) {
            return;
        }
        let title = format!(
            "the launch ends in the usual order of blocks and warps, and not in {which}: {text}, at pc {pc:#x}"
        );
        let party = |site: &sm87::Site| {
            let what = "this instruction fails".to_owned();
            Party { what, pc: site.pc, word: site.word, threads: Some((site.block, site.thread)) }
        };
        checker.add(Report { kind: Kind::Order, title, parties: site.map(party).into_iter().collect() });
    }
}

impl Page {
    /// Writes those words that the launch has stored.
    fn write(&self, launch: &Launch, bytes: &[u8; PAGE]) {
        for (number, word) in bytes.chunks(WORD).enumerate().filter(|(number, _)| self.by[*number].pc != 0) {
            write(&launch.table, self.va + (number * WORD) as u64, word);
        }
    }
}

impl Storer {
    fn party(&self, word: u128, launch: &Launch, when: &str) -> Party {
        let [x, y, _] = launch.grid.map(u64::from);
        let block = [self.cta % x, self.cta / x % y, self.cta / x / y].map(|n| n as u32);
        let what = format!("last {} {when}", if self.atomic { "atomic" } else { "store" });
        Party { what, pc: self.pc, word, threads: Some((block, self.thread.map(u32::from))) }
    }
}
