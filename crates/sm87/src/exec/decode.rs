//! Finding a program by following its control flow, and decoding it. It is decoded once and kept.
//!
//! The cache of images serves a kernel at any address, unless it calls absolute addresses. Before an image is used, its words are compared with memory.

use super::alu;
use super::chains;
use super::dispatch::lower;
use super::env::{Env, WarpError};
use super::image::{Fetch, Image, MOST_INSTRUCTIONS};
use super::linear::{Makes, Part, Parts};
use super::live::{self, Returns, Rows, Step, Touched};
use super::lower::{Lower, Pool, Refused};
use super::observe::Observed;
use super::opening;
use super::ops::control;
use super::places::{NOWHERE, Places};
use super::poll;
use super::rows::Pred;
use super::straight;
use super::uop::{Flow, Handlers, Uop};
use super::warp::Warp;
use crate::isa::{self, Illegal, Isa, Opcode, Row};
use crate::word::Word;
use once_cell::race::OnceBox;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tegrarm_lock::ProcessMutex;

/// The number of instructions from the entry point on of which it is kept what may be read behind them.
const BEGINNING: usize = 96;
/// The number of words at the entry point by which a program is looked up.
const PREFIX: i64 = 8;
/// The number of decoded instructions that are kept before the cache is emptied.
const KEPT: usize = 1 << 22;

/// All images, by the first words of their programs.
struct Cache {
    images: HashMap<u64, Vec<Arc<Image>>>,
    /// The number of instructions in all images together.
    instructions: usize,
    /// How many there may be.
    room: usize,
}

fn cache() -> &'static ProcessMutex<Cache> {
    static CACHE: OnceBox<ProcessMutex<Cache>> = OnceBox::new();
    CACHE.get_or_init(|| Box::new(ProcessMutex::new(Cache::new(KEPT))))
}

impl Cache {
    fn new(room: usize) -> Cache {
        Cache { images: HashMap::new(), instructions: 0, room }
    }

    fn keep(&mut self, key: u64, image: Image) -> Arc<Image> {
        let image = Arc::new(image);
        self.instructions += image.words.len();
        if self.instructions > self.room {
            self.images.clear();
            self.instructions = image.words.len();
        }
        self.images.entry(key).or_default().push(image.clone());
        image
    }

    /// Removes an image that a larger one replaces. The larger one serves the same launches.
    fn replace(&mut self, key: u64, old: &Image) {
        let Some(known) = self.images.get_mut(&key) else { return };
        let outdated = |i: &Arc<Image>| (i.code, &i.roots, &i.words) == (old.code, &old.roots, &old.words);
        if let Some(at) = known.iter().position(outdated) {
            self.instructions -= known.swap_remove(at).words.len();
        }
    }
}

/// A number made of the first words of a program. Every launch makes it, and what is found is compared with the program, so this is a
/// short way to make one.
fn key(fetch: &mut Fetch<'_>) -> u64 {
    (0..PREFIX).fold(0, |key: u64, i| {
        let word = fetch(i).map_or(u128::MAX, |word| word.unscheduled().0);
        let both = word as u64 ^ ((word >> 64) as u64).rotate_left(32);
        (key.rotate_left(5) ^ both).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    })
}

/// Finds or makes the image of the program whose entry point has the address `code`.
pub fn find(code: u64, fetch: &mut Fetch<'_>) -> Arc<Image> {
    let key = key(fetch);
    let known = cache().lock().images.get(&key).cloned().unwrap_or_default();
    // Launches that ran at the same time may have left several. The largest has the most of the code that is reached through pointers.
    if let Some(image) = known.into_iter().filter(|i| i.matches(code, fetch)).max_by_key(|i| i.len()) {
        return image;
    }
    let image = Image::build(code, vec![0], fetch);
    cache().lock().keep(key, image)
}

/// Makes an image that also has the code at `root`. The result is `None` if that is too much code.
pub(crate) fn extend(image: &Image, root: i64, code: u64, fetch: &mut Fetch<'_>) -> Option<Arc<Image>> {
    let mut roots = image.roots.clone();
    roots.push(root);
    roots.sort_unstable();
    roots.dedup();
    let key = key(fetch);
    let known = cache().lock().images.get(&key).cloned().unwrap_or_default();
    let serves = |i: &Image| i.has_roots(&roots) && i.places.cover(&image.places);
    if let Some(larger) = known.into_iter().find(|i| serves(i) && i.matches(code, fetch)) {
        return Some(larger);
    }
    let larger = Image::grown(code, roots, &image.places, fetch);
    if larger.words.len() > MOST_INSTRUCTIONS || larger.places.index(root).is_none() {
        return None;
    }
    let mut cache = cache().lock();
    cache.replace(key, image);
    Some(cache.keep(key, larger))
}

/// The instructions that can be reached from `roots` without knowing the value of any register, and those of them to which no call of an absolute
/// address has to lead.
fn reachable(code: u64, roots: &[i64], fetch: &mut Fetch<'_>) -> [BTreeSet<i64>; 2] {
    let (mut seen, mut own) = (BTreeSet::new(), None);
    let (mut todo, mut called) = (roots.to_vec(), Vec::new());
    while !todo.is_empty() {
        while let Some(mut at) = todo.pop() {
            while seen.len() < MOST_INSTRUCTIONS && seen.insert(at) {
                let Some(w) = fetch(at) else { break };
                let Some(row) = isa::lookup(w) else { break };
                todo.extend(row.distance(w).map(|far| at + far));
                called.extend(row.calls(w, code));
                if row.flow.ends(w) {
                    break;
                }
                at += 1;
            }
        }
        own.get_or_insert_with(|| seen.clone());
        std::mem::swap(&mut todo, &mut called);
    }
    [seen, own.unwrap_or_default()]
}

impl Image {
    pub(super) fn build(code: u64, roots: Vec<i64>, fetch: &mut Fetch<'_>) -> Image {
        Image::grown(code, roots, &Places::default(), fetch)
    }

    /// The image of the code at `roots`, which also has all places of an earlier one, even if no code leads there any more.
    fn grown(code: u64, roots: Vec<i64>, earlier: &Places, fetch: &mut Fetch<'_>) -> Image {
        let [mut all, own] = reachable(code, &roots, fetch);
        all.extend(earlier.all().flatten());
        let places = Places::of(&all, &own, MOST_INSTRUCTIONS);
        let words: Vec<_> = places.all().map(|place| fetch(place?).map(Word::unscheduled)).collect();
        let is_absolute = |word: &Word| isa::lookup(*word).is_some_and(|row| row.absolute(*word).is_some());
        let mut image = Image {
            entry: places.index(0).unwrap_or(0),
            code: words.iter().flatten().any(is_absolute).then_some(code),
            places,
            words,
            uops: Vec::new(),
            runs: Vec::new(),
            records: Vec::new(),
            translated: OnceBox::new(),
            pool: Pool::default(),
            registers: 0,
            uniform: 0,
            unset: Rows::default(),
            cleared: Vec::new(),
            across: Rows::default(),
            beginning: Vec::new(),
            alike: Vec::new(),
            steady: Vec::new(),
            opening: Parts::default(),
            timed: false,
            ordered: false,
            refused: Vec::new(),
            watched: Vec::new(),
            observed: Observed::default(),
            weight: AtomicU64::default(),
            executed: AtomicU64::default(),
            roots,
        };
        image.lower();
        image
    }

    fn lower(&mut self) {
        let words = std::mem::take(&mut self.words);
        let isa = Isa::sm87();
        let (mut rows, mut written, mut steps) = (Vec::new(), Vec::new(), Vec::<Step<'_>>::new());
        for (at, word) in words.iter().enumerate() {
            let at = at as u32;
            let Some(word) = *word else {
                let l = Lower::new(Word::default(), None, (at, NOWHERE), &mut self.pool);
                self.uops.push(Uop { guard: Pred::TRUE, ..l.uop(Handlers::all(fetch_again)) });
                rows.push(None);
                written.push(0..0);
                steps.push(Step { row: None, word: Word::default(), target: NOWHERE, touched: l.touched });
                self.alike.push(false);
                self.records.push(None);
                continue;
            };
            let (row, target) = self.row_and_target(isa, at, word);
            let mut l = Lower::new(word, row, (at, target), &mut self.pool);
            let uop = micro_op(isa, word, &mut l);
            rows.push(row.filter(|_| uop.is_ok() && !l.misaligned));
            let uop = uop.unwrap_or_else(|why| illegal(&l, at, why, &mut self.refused));
            let uop = if l.misaligned { Uop { run: Handlers::all(misaligned), ..uop } } else { uop };
            self.records.push(if rows[at as usize].is_some() { l.record.get() } else { None });
            let uop = if row.is_some_and(|row| row.may_poll(word)) {
                self.watched.push((at, uop.run));
                self.records[at as usize] = None;
                Uop { run: alu::whole::<poll::Watched>(), ..uop }
            } else {
                uop
            };
            self.registers = self.registers.max(uop.registers.into());
            self.uniform = self.uniform.max(l.uniform_registers());
            written.push(l.written.clone());
            self.alike.push(rows[at as usize].is_some_and(|row| live::is_alike(row, &l.touched)));
            steps.push(Step { row, word, target, touched: l.touched.by(&uop) });
            row.into_iter().for_each(|row| self.note(row, word));
            self.uops.push(uop);
        }
        let alone = |at: usize| self.watched.binary_search_by_key(&at, |watched| watched.0 as usize).is_ok();
        chains::link(&mut self.uops, &rows, &written, alone);
        self.steady = chains::steady(&self.uops, &written);
        self.runs = straight::find(&self.uops, &rows);
        let live = live::read_from(&steps, Returns::Anywhere);
        self.across = live::across(&steps);
        let from = self.entry as usize;
        self.beginning = live[from..live.len().min(from + BEGINNING)].to_vec();
        self.unset = live::unset(&steps, &live, from).with(&self.across);
        self.cleared = live::ranges(&self.unset, self.uniform, self.registers);
        self.opening = self.openers(&words, &rows, &steps, &live);
        let is_zero = |at: usize| words[at].is_some_and(|word: Word| word.bits(32, 32) == 0);
        let live = |at: usize| live.get(at).copied().unwrap_or(Rows::ALL);
        for at in control::fuse_prologues(&mut self.uops, &rows, is_zero, live) {
            self.alike[at] = true;
        }
        self.words = words;
    }

    /// The row of the instruction at an index, and the index to which it may send control, or [`NOWHERE`].
    fn row_and_target(&self, isa: &Isa, at: u32, word: Word) -> (Option<&'static Row>, u32) {
        let row = isa.lookup(word).map(Opcode::row);
        let place = row.and_then(|row| row.sends_to(word, self.places.place(at), self.code.unwrap_or(0)));
        (row, place.and_then(|place| self.places.index(place)).unwrap_or(NOWHERE))
    }

    /// The rows that may be read from each instruction on before they are written, also of other lanes. Only translations ask, so it is not
    /// kept for all instructions.
    pub(super) fn live(&self) -> Vec<Rows> {
        let (isa, mut pool) = (Isa::sm87(), Pool::default());
        let mut step = |(at, word): (usize, &Option<Word>)| {
            let (row, target) = word.map_or((None, NOWHERE), |word| self.row_and_target(isa, at as u32, word));
            let word = word.unwrap_or_default();
            let mut l = Lower::new(word, row, (at as u32, target), &mut pool);
            let touched = match micro_op(isa, word, &mut l) {
                Ok(uop) => l.touched.by(&uop),
                Err(_) => Touched { reads: Rows::ALL, ..Touched::default() },
            };
            Step { row, word, target, touched }
        };
        let steps: Vec<_> = self.words.iter().enumerate().map(&mut step).collect();
        live::read_from(&steps, Returns::Anywhere).iter().map(|rows| rows.with(&self.across)).collect()
    }

    /// The instructions that may belong to the opening.
    fn openers(&self, words: &[Option<Word>], rows: &[Option<&Row>], steps: &[Step<'_>], live: &[Rows]) -> Parts {
        let part = |at: usize| {
            let is_watched = self.watched.binary_search_by_key(&at, |watched| watched.0 as usize).is_ok();
            let makes = opening::part((*rows.get(at)?)?, words[at]?, &self.uops[at]).filter(|_| !is_watched)?;
            Some(Part { makes, touched: steps[at].touched, live: live[at] })
        };
        let entry = self.entry as usize;
        let special = |at: &usize| matches!(part(*at), Some(Part { makes: Makes::Special(_), .. }));
        let special = (entry..rows.len().min(entry + BEGINNING)).find(special).unwrap_or(rows.len());
        let before = (entry..special).rev().take_while(|at| part(*at).is_some()).count();
        let first = special - before;
        let parts: Vec<_> = (first..).map_while(part).take(opening::OPENING_PARTS).collect();
        let behind = live.get(first + parts.len()).copied().unwrap_or(Rows::ALL);
        Parts { first: first as u32, parts, behind }
    }

    /// Notes what a launch must know about the code.
    fn note(&mut self, row: &Row, w: Word) {
        self.ordered |= row.notes.ordered(w);
        self.timed |= row.keeps_time(w);
    }

    /// Whether its words are in memory. The code of a kernel may be there twice, so what is elsewhere is compared first.
    fn matches(&self, code: u64, fetch: &mut Fetch<'_>) -> bool {
        self.code.is_none_or(|own| own == code)
            && self.places.stretches().all(|(places, start)| {
                places
                    .zip(&self.words[start as usize..])
                    .all(|(place, &word)| fetch(place).map(Word::unscheduled) == word)
            })
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
    let mut l = Lower::new(word, isa::lookup(word), (0, NOWHERE), &mut pool);
    micro_op(isa, word, &mut l).map(|_| ()).map_err(|why| why.0)
}

/// The handler of a place where no code is known. A warp that comes here asks for it.
fn fetch_again(_: &mut Warp, env: &mut Env<'_>, u: &Uop, _: u32) -> Flow {
    env.outcome.extend = env.pc(u.at);
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

fn misaligned(_: &mut Warp, env: &mut Env<'_>, u: &Uop, _: u32) -> Flow {
    let text = format!("{} with a register group that does not start at a multiple of its size", env.image.name(u.at));
    env.warp_error(u, WarpError::MisalignedRegister, text)
}

#[cfg(test)]
#[path = "tests/decode.rs"]
mod tests;
