//! A program that is found by following its control flow. It is decoded once and kept.
//!
//! An image does not know its address, because branches inside it are computed with indices. So the cache serves a
//! kernel at any address. Before an image is used, its words are compared with memory.

use super::alu;
use super::chains;
use super::dispatch::lower;
use super::live::{self, Rows, Step};
use super::lower::{Lower, Pool, Refused};
use super::observe::Observed;
use super::ops::control;
use super::poll;
use super::rows;
use super::runs::{self, Run};
use super::template;
use super::uop::{Flow, Handlers, Pred, Uop};
use super::warp::Warp;
use crate::exec::env::{Env, WarpError};
use crate::isa::{self, Illegal, Isa, Opcode, Row};
use crate::word::Word;
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

/// The number of instructions that an image may span in each direction from its entry point.
const REACH: i64 = 1 << 18;
/// The number of instructions from the entry point on of which it is kept what may be read behind them.
const BEGINNING: usize = 96;
/// The number of words at the entry point by which a program is looked up.
const PREFIX: i64 = 8;
/// The number of decoded instructions that are kept before the cache is emptied.
const KEPT: usize = 1 << 22;

/// The decoded code around an entry point.
pub(crate) struct Image {
    /// The index of the entry point.
    pub entry: u32,
    /// The words without their scheduling bits. A word is `None` where nothing is mapped.
    words: Vec<Option<Word>>,
    /// One micro-op for each word, and a last one that asks for more code.
    pub uops: Vec<Uop>,
    /// For each micro-op, the run that begins there.
    pub runs: Vec<Run>,
    pub pool: Pool,
    /// The number of registers per thread that the code uses.
    pub registers: u32,
    /// The number of uniform registers that the code uses.
    pub uniform: u32,
    /// The rows that are cleared for a new warp, because the code may read them before it writes them.
    pub cleared: Vec<Range<u16>>,
    /// The rows that lanes may read of other lanes, and those that may be read from each of the first instructions on.
    across: Rows,
    beginning: Vec<Rows>,
    /// Whether all warps that come to an instruction with the same registers do the same.
    alike: Vec<bool>,
    /// Whether there are atomics whose results depend on the order of CTAs.
    pub ordered: bool,
    /// The instructions that could not be lowered, by index.
    refused: Vec<(u32, Refused)>,
    /// The handlers of watched instructions, by index: see [`super::poll`].
    watched: Vec<(u32, Handlers)>,
    /// What observers chose. It is empty unless this is a copy for a launch that is observed.
    pub(super) observed: Observed,
    /// What a CTA of the last launch took: see [`super::worker::Worker::weight`].
    pub weight: AtomicU64,
    /// The places where control enters, relative to the entry point: 0, and targets that were found while the program
    /// ran.
    roots: Vec<i64>,
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Image").field("entry", &self.entry).field("words", &self.words.len()).finish_non_exhaustive()
    }
}

/// A function that reads code: the word that is `n` instructions after the entry point.
pub(crate) type Fetch<'a> = dyn FnMut(i64) -> Option<Word> + 'a;

/// All images, by the first words of their programs.
#[derive(Default)]
struct Cache {
    images: HashMap<u64, Vec<Arc<Image>>>,
    /// The number of instructions in all images together.
    instructions: usize,
}

fn cache() -> &'static Mutex<Cache> {
    static CACHE: OnceLock<Mutex<Cache>> = OnceLock::new();
    CACHE.get_or_init(Mutex::default)
}

impl Cache {
    fn keep(&mut self, key: u64, image: Image) -> Arc<Image> {
        let image = Arc::new(image);
        self.instructions += image.words.len();
        if self.instructions > KEPT {
            self.images.clear();
            self.instructions = image.words.len();
        }
        self.images.entry(key).or_default().push(image.clone());
        image
    }

    /// Removes an image that a larger one replaces. The larger one serves the same launches.
    fn replace(&mut self, key: u64, old: &Image) {
        let Some(known) = self.images.get_mut(&key) else { return };
        let outdated = |i: &Arc<Image>| i.roots == old.roots && i.words == old.words;
        if let Some(at) = known.iter().position(outdated) {
            self.instructions -= known.swap_remove(at).words.len();
        }
    }
}

fn key(fetch: &mut Fetch<'_>) -> u64 {
    let mut h = DefaultHasher::new();
    for i in 0..PREFIX {
        fetch(i).map(Word::unscheduled).hash(&mut h);
    }
    h.finish()
}

/// Finds or makes the image of the program at an entry point.
pub(crate) fn find(fetch: &mut Fetch<'_>) -> Arc<Image> {
    let key = key(fetch);
    let known = cache().lock().images.get(&key).cloned().unwrap_or_default();
    // Launches that ran at the same time may have left several. The largest has the most of the code that is reached through pointers.
    if let Some(image) = known.into_iter().filter(|i| i.matches(fetch)).max_by_key(|i| i.len()) {
        return image;
    }
    let image = Image::build(vec![0], fetch);
    cache().lock().keep(key, image)
}

/// Makes an image that also has the code at `root`. The result is `None` if that is out of reach.
pub(crate) fn extend(image: &Image, root: i64, fetch: &mut Fetch<'_>) -> Option<Arc<Image>> {
    if root.abs() >= REACH {
        return None;
    }
    let mut roots = image.roots.clone();
    roots.push(root);
    roots.sort_unstable();
    roots.dedup();
    let key = key(fetch);
    let known = cache().lock().images.get(&key).cloned().unwrap_or_default();
    if let Some(larger) = known.into_iter().find(|i| i.has_roots(&roots) && i.matches(fetch)) {
        return Some(larger);
    }
    let larger = Image::build(roots, fetch);
    let mut cache = cache().lock();
    cache.replace(key, image);
    Some(cache.keep(key, larger))
}

/// How many instructions away the place is to which a word sends control or may send it.
pub(crate) fn distance(row: &Row, w: Word) -> Option<i64> {
    let offset = 4 * row.flow.offset()?.signed(w);
    (offset % 16 == 0).then_some(1 + offset / 16)
}

/// The place to which the word at `at` sends control or may send it, if that is within reach.
fn target(row: &Row, w: Word, at: i64) -> Option<i64> {
    distance(row, w).map(|far| at + far).filter(|t| t.abs() < REACH)
}

/// The instructions that can be reached from `roots` without knowing the value of any register.
fn reachable(roots: &[i64], fetch: &mut Fetch<'_>) -> BTreeSet<i64> {
    let mut seen = BTreeSet::new();
    let mut todo = roots.to_vec();
    while let Some(mut at) = todo.pop() {
        while at.abs() < REACH && seen.insert(at) {
            let Some(w) = fetch(at) else { break };
            let Some(row) = isa::lookup(w) else { break };
            todo.extend(target(row, w, at));
            if row.flow.ends(w) {
                break;
            }
            at += 1;
        }
    }
    seen
}

impl Image {
    pub(super) fn build(roots: Vec<i64>, fetch: &mut Fetch<'_>) -> Image {
        let seen = reachable(&roots, fetch);
        let first = seen.first().copied().unwrap_or(0);
        let last = seen.last().copied().unwrap_or(0);
        let words: Vec<_> = (first..=last).map(|i| fetch(i).map(Word::unscheduled)).collect();
        let mut image = Image {
            entry: (-first) as u32,
            words,
            uops: Vec::new(),
            runs: Vec::new(),
            pool: Pool::default(),
            registers: 0,
            uniform: 0,
            cleared: Vec::new(),
            across: Rows::default(),
            beginning: Vec::new(),
            alike: Vec::new(),
            ordered: false,
            refused: Vec::new(),
            watched: Vec::new(),
            observed: Observed::default(),
            weight: AtomicU64::default(),
            roots,
        };
        image.lower();
        image
    }

    fn lower(&mut self) {
        let len = self.words.len() as u32;
        let words = std::mem::take(&mut self.words);
        let isa = Isa::sm87();
        let (mut rows, mut written, mut steps) = (Vec::new(), Vec::new(), Vec::<Step<'_>>::new());
        for (at, word) in words.iter().enumerate() {
            let at = at as u32;
            let Some(word) = *word else {
                let l = Lower::new(Word::default(), None, at, &mut self.pool);
                self.uops.push(Uop { guard: Pred::TRUE, ..l.uop(Handlers::all(fetch_again)) });
                rows.push(None);
                written.push(0..0);
                steps.push(Step { row: None, word: Word::default(), touched: l.touched });
                self.alike.push(false);
                continue;
            };
            let row = isa.lookup(word).map(Opcode::row);
            let mut l = Lower::new(word, row, at, &mut self.pool);
            let uop = micro_op(isa, word, &mut l);
            rows.push(row.filter(|_| uop.is_ok() && !l.misaligned));
            let uop = uop.unwrap_or_else(|why| illegal(&l, at, why, &mut self.refused));
            let uop = if l.misaligned { Uop { run: Handlers::all(misaligned), ..uop } } else { uop };
            let uop = if row.is_some_and(|row| row.may_poll(word)) {
                self.watched.push((at, uop.run));
                Uop { run: alu::whole::<poll::Watched>(), ..uop }
            } else {
                uop
            };
            self.registers = self.registers.max(uop.registers.into());
            self.uniform = self.uniform.max(l.uniform_registers());
            written.push(l.written.clone());
            self.alike.push(rows[at as usize].is_some_and(|row| template::is_alike(row, &l.touched)));
            steps.push(Step { row, word, touched: l.touched.by(&uop) });
            row.into_iter().for_each(|row| self.note(row, word));
            self.uops.push(uop);
        }
        let end = Lower::new(Word::new(7 << 12, 0), None, len, &mut self.pool);
        self.uops.push(end.uop(Handlers::all(fetch_again)));
        rows.push(None);
        written.push(0..0);
        let alone = |at: usize| self.watched.binary_search_by_key(&at, |watched| watched.0 as usize).is_ok();
        chains::link(&mut self.uops, &rows, &written, alone);
        self.runs = runs::find(&self.uops, &rows);
        let live = live::read_from(&steps);
        self.across = live::across(&steps);
        let from = self.entry as usize;
        self.beginning = live[from..live.len().min(from + BEGINNING)].to_vec();
        self.cleared = live::ranges(&self.read_from(self.entry), self.uniform, self.registers, |_| true);
        let is_zero = |at: usize| words[at].is_some_and(|word: Word| word.bits(32, 32) == 0);
        let live = |at: usize| live.get(at).copied().unwrap_or(Rows::ALL);
        for at in control::fuse_prologues(&mut self.uops, &rows, is_zero, live) {
            self.alike[at] = true;
        }
        self.words = words;
    }

    /// The handlers of a watched instruction.
    pub(crate) fn watched(&self, at: u32) -> Option<Handlers> {
        let found = self.watched.binary_search_by_key(&at, |w| w.0);
        found.ok().map(|i| self.watched[i].1)
    }

    /// Notes what a launch must know about the code.
    fn note(&mut self, row: &Row, w: Word) {
        self.ordered |= row.notes.ordered(w);
    }

    /// Whether the image was made from these roots, and perhaps from others.
    pub(super) fn has_roots(&self, roots: &[i64]) -> bool {
        roots.iter().all(|root| self.roots.contains(root))
    }

    fn matches(&self, fetch: &mut Fetch<'_>) -> bool {
        let first = -i64::from(self.entry);
        self.words.iter().enumerate().all(|(i, &w)| fetch(first + i as i64).map(Word::unscheduled) == w)
    }

    /// The rows that may be read from an instruction on before they are written.
    pub(crate) fn read_from(&self, at: u32) -> Rows {
        let known = at.checked_sub(self.entry).and_then(|at| self.beginning.get(at as usize));
        known.map_or(Rows::ALL, |rows| rows.with(&self.across))
    }

    /// Whether all warps that come to an instruction with the same registers do the same.
    pub(crate) fn is_alike(&self, at: u32) -> bool {
        self.alike.get(at as usize).is_some_and(|is| *is)
    }

    /// The number of instructions.
    pub(crate) fn len(&self) -> u32 {
        self.words.len() as u32
    }

    /// The word at an index, and the reason why it cannot be executed.
    fn refusal(&self, at: u32) -> (Word, &'static str) {
        let word = self.words.get(at as usize).copied().flatten().unwrap_or_default();
        let why = self.refused.iter().find(|r| r.0 == at).map_or("not decoded", |r| r.1.0);
        (word, why)
    }

    /// Whether an instruction may send control to another place than the next instruction.
    pub(crate) fn transfers(&self, at: u32) -> bool {
        self.row(at).is_none_or(|row| row.flow != isa::Flow::Next)
    }

    /// The word of an instruction, without its scheduling; 0 where nothing is decoded.
    pub(crate) fn word(&self, at: u32) -> u128 {
        self.words.get(at as usize).copied().flatten().map_or(0, |word| word.0)
    }

    /// The places to which branches go, and those where control enters.
    pub(crate) fn targets(&self) -> BTreeSet<u32> {
        let first = -i64::from(self.entry);
        let branches = self.words.iter().zip(first..).filter_map(|(word, at)| {
            let word = (*word)?;
            target(isa::lookup(word)?, word, at)
        });
        branches.chain(self.roots.iter().copied()).filter_map(|at| u32::try_from(at - first).ok()).collect()
    }

    /// Whether a program reads a clock, or sleeps.
    pub(crate) fn keeps_time(&self) -> bool {
        self.words.iter().flatten().any(|&word| isa::lookup(word).is_some_and(|row| row.keeps_time(word)))
    }

    /// The row of an instruction, if one is decoded there.
    pub(crate) fn row(&self, at: u32) -> Option<&'static Row> {
        self.words.get(at as usize).copied().flatten().and_then(isa::lookup)
    }

    /// The name of an instruction.
    pub(crate) fn name(&self, at: u32) -> &'static str {
        self.row(at).map_or("?", |row| row.name)
    }
}

/// Makes the micro-op of a word.
fn micro_op(isa: &Isa, word: Word, l: &mut Lower<'_>) -> Result<Uop, Refused> {
    match isa.legal(word) {
        Ok(opcode) => lower(opcode.row().op, l),
        Err(Illegal::Opcode) => Err(Refused("unknown opcode")),
        Err(Illegal::Field(_) | Illegal::Constraint(_)) => Err(Refused("reserved modifier")),
    }
}

/// Says why a word cannot be executed, if it cannot.
#[cfg(test)]
pub(crate) fn can_execute(word: Word) -> Result<(), &'static str> {
    let (mut pool, isa) = (Pool::default(), Isa::sm87());
    let mut l = Lower::new(word, isa::lookup(word), 0, &mut pool);
    micro_op(isa, word, &mut l).map(|_| ()).map_err(|why| why.0)
}

/// The handler of a place where no code is known. A warp that comes here asks for it.
fn fetch_again(_: &mut Warp, env: &mut Env<'_>, u: &Uop, _: u32) -> Flow {
    env.extend = env.pc(u.at);
    Flow::Extend
}

fn illegal(l: &Lower<'_>, at: u32, why: Refused, refused: &mut Vec<(u32, Refused)>) -> Uop {
    refused.push((at, why));
    l.uop(Handlers::all(refuse))
}

fn refuse(_: &mut Warp, env: &mut Env<'_>, u: &Uop, _: u32) -> Flow {
    let (word, why) = env.image.refusal(u.at);
    let name = isa::lookup(word).map_or("?", |row| row.name);
    let pc = env.pc(u.at);
    let text = format!("illegal instruction {name} (opcode {:#05x}) at {pc:#x}: {word:?}: {why}", word.opcode());
    env.warp_error(u, WarpError::IllegalEncoding, text)
}

impl Image {
    /// Makes a copy in which `instead` runs for micro-ops that need more than `registers` registers.
    pub(crate) fn limited(&self, registers: u32, instead: Handlers) -> Image {
        let many = |at: usize| u32::from(self.uops[at].registers) > registers;
        // Rows of registers that a thread does not have are not there.
        let there = |range: &Range<u16>| range.start..range.end.min((rows::REGISTER + registers) as u16);
        let cleared = self.cleared.iter().map(there).filter(|range| !range.is_empty()).collect();
        Image { registers, cleared, ..self.replaced(instead, many) }
    }

    /// Makes a copy in which `instead` runs for some micro-ops.
    pub(crate) fn replaced(&self, instead: Handlers, which: impl Fn(usize) -> bool) -> Image {
        let replace = |(at, u): (usize, &Uop)| if which(at) { Uop { run: instead, ..*u } } else { *u };
        Image {
            entry: self.entry,
            words: self.words.clone(),
            uops: self.uops.iter().enumerate().map(replace).collect(),
            runs: runs::interrupted(&self.runs, &which),
            pool: self.pool.clone(),
            registers: self.registers,
            uniform: self.uniform,
            cleared: self.cleared.clone(),
            across: self.across,
            beginning: self.beginning.clone(),
            alike: Vec::new(),
            ordered: self.ordered,
            refused: self.refused.clone(),
            watched: self.watched.clone(),
            observed: Observed::default(),
            weight: AtomicU64::default(),
            roots: self.roots.clone(),
        }
    }
}

fn misaligned(_: &mut Warp, env: &mut Env<'_>, u: &Uop, _: u32) -> Flow {
    let text = format!("{} with a register group that does not start at a multiple of its size", env.image.name(u.at));
    env.warp_error(u, WarpError::MisalignedRegister, text)
}

#[cfg(test)]
#[path = "tests/chains.rs"]
mod chained;

#[cfg(test)]
#[path = "tests/image.rs"]
mod tests;
