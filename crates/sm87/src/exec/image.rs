//! A program that was decoded: micro-ops, and what is known of them. [`super::decode`] makes it and keeps it.
//!
//! Branches inside an image are computed with indices. So it serves a kernel at any address, if the other code that it has lies as far from the
//! kernel as before. Only calls of absolute addresses make a difference: an image with such calls serves a kernel at one address.

use super::linear::{Part, Parts};
use super::live::Rows;
use super::lower::{Pool, Refused};
use super::observe::Observed;
use super::places::Places;
use super::record::Record;
use super::rows;
use super::rows::Pred;
use super::runs::{self, Piece, Run, Stretch};
use super::uop::{Handlers, Origin, Uop};
use crate::isa::{self, Op, Row};
use crate::word::Word;
use once_cell::race::OnceBox;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The most instructions that an image may have.
pub(super) const MOST_INSTRUCTIONS: usize = 1 << 19;

/// The decoded code that is reached from an entry point.
pub struct Image {
    /// The index of the entry point.
    pub(crate) entry: u32,
    /// The address of the entry point, if there are calls of absolute addresses.
    pub(super) code: Option<u64>,
    /// Where its instructions are.
    pub(super) places: Places,
    /// The words without their scheduling bits. A word is `None` where nothing is mapped, and at the ends of stretches.
    pub(super) words: Vec<Option<Word>>,
    /// One micro-op for each word. Where there is no word, it asks for more code.
    pub(crate) uops: Vec<Uop>,
    /// For each micro-op, the run that begins there.
    pub(crate) runs: Vec<Run>,
    /// How each micro-op is written down for a translation. It is empty where handlers were replaced.
    pub(super) records: Vec<Option<Record>>,
    /// The translation, once the program was worth it. Two threads may make it at the same time. None waits for another one, because a
    /// child that was forked meanwhile does not have that thread.
    pub(super) translated: OnceBox<Option<Translated>>,
    pub(crate) pool: Pool,
    /// The number of registers per thread that the code uses.
    pub(crate) registers: u32,
    /// The number of uniform registers that the code uses.
    pub(crate) uniform: u32,
    /// The rows that the code may read before it writes them, if functions return to places behind calls. If one returns elsewhere, other rows that
    /// nobody has written may hold what another warp left there.
    pub(super) unset: Rows,
    /// Those of them that it has, which are cleared for a new warp.
    pub(crate) cleared: Vec<Range<u16>>,
    /// The rows that lanes may read of other lanes, and those that may be read from each of the first instructions on.
    pub(super) across: Rows,
    pub(super) beginning: Vec<Rows>,
    /// Whether all warps that come to an instruction with the same registers do the same.
    pub(super) alike: Vec<bool>,
    /// Of each access, the instruction from which on none before it writes its address registers.
    pub(super) steady: Vec<u32>,
    /// The instructions that may belong to the opening.
    pub(super) opening: Parts,
    /// Whether the code reads a clock, or sleeps.
    pub(super) timed: bool,
    /// Whether there are atomics whose results depend on the order of CTAs.
    pub(crate) ordered: bool,
    /// The instructions that could not be lowered, by index.
    pub(super) refused: Vec<(u32, Refused)>,
    /// The handlers of watched instructions, by index: see [`super::poll`].
    pub(super) watched: Vec<(u32, Handlers)>,
    /// What observers chose. It is empty unless this is a copy for a launch that is observed.
    pub(super) observed: Observed,
    /// What a CTA of the last launch took: see [`super::worker::Worker::weight`].
    pub(crate) weight: AtomicU64,
    /// The instructions that earlier launches have executed.
    pub(super) executed: AtomicU64,
    /// The places where control enters, relative to the entry point: 0, and targets that were found while the program
    /// ran.
    pub(super) roots: Vec<i64>,
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Image").field("entry", &self.entry).field("words", &self.words.len()).finish_non_exhaustive()
    }
}

/// The pieces of a program, and its runs, which say where they are.
pub(super) struct Translated {
    pub runs: Vec<Run>,
    pub pieces: Vec<Piece>,
    pub stretches: Vec<Stretch>,
    /// The micro-ops. The first one of each stretch executes the stretch (`super::stretches`).
    pub uops: Vec<Uop>,
    /// The memory in which the code of the pieces is.
    #[allow(dead_code, reason = "it is held, and the pieces are called")]
    pub code: Arc<sm87_native::Code>,
}

/// A function that reads code: the word that is `n` instructions after the entry point.
pub type Fetch<'a> = dyn FnMut(i64) -> Option<Word> + 'a;

impl Image {
    /// The place of an instruction, relative to the entry point and in instructions. At the end of a stretch of code there is none.
    pub fn place(&self, at: u32) -> Option<i64> {
        let place = self.places.place(at);
        self.places.index(place).map(|_| place)
    }

    /// The index of an instruction of an earlier image of the same launch, from which this one has grown.
    pub fn moved(&self, from: &Image, at: u32) -> u32 {
        self.places.moved(&from.places, at)
    }

    /// The place to which the word of an instruction sends control, or may send it.
    pub(crate) fn sends_to(&self, at: u32) -> Option<i64> {
        let word = self.words.get(at as usize).copied().flatten()?;
        isa::lookup(word)?.sends_to(word, self.places.place(at), self.code.unwrap_or(0))
    }

    /// The index of the place to which the word of an instruction sends control, or may send it. If that place is not decoded, it is the
    /// last index of the image, which has no instruction.
    pub fn jumps_to(&self, at: u32) -> Option<u32> {
        let place = self.sends_to(at)?;
        Some(self.places.index(place).unwrap_or(self.len() - 1))
    }

    /// The handlers of a watched instruction.
    pub(crate) fn watched(&self, at: u32) -> Option<Handlers> {
        let found = self.watched.binary_search_by_key(&at, |w| w.0);
        found.ok().map(|i| self.watched[i].1)
    }

    /// The translation, if there is one.
    #[inline(always)]
    pub(super) fn translated(&self) -> Option<&Translated> {
        self.translated.get()?.as_ref()
    }

    /// Whether the image was made from these roots, and perhaps from others.
    pub(super) fn has_roots(&self, roots: &[i64]) -> bool {
        roots.iter().all(|root| self.roots.contains(root))
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

    /// The index of the entry point.
    pub fn entry(&self) -> u32 {
        self.entry
    }

    /// The guard of an instruction.
    pub fn guard(&self, at: u32) -> Pred {
        self.uop(at).map_or(Pred::TRUE, |u| u.guard)
    }

    /// The instruction at an index.
    pub fn uop(&self, at: u32) -> Option<&Uop> {
        self.uops.get(at as usize)
    }

    /// The registers of which the addresses of an access are made, and the instruction from which on they hold what they hold there. There are none
    /// if a predicate says which lanes access memory.
    pub fn origin(&self, at: u32) -> Option<(Origin, u32)> {
        let u = self.uop(at).filter(|u| u.ps.is_always_true())?;
        Some((u.origin(), *self.steady.get(at as usize)?))
    }

    /// Whether the program uses the word at an offset of a constant bank.
    pub fn uses_constant(&self, bank: u8, offset: u32) -> bool {
        self.pool.constants.contains(&(bank, offset))
    }

    /// The number of indices: of instructions, and of ends of stretches of code, which have none.
    #[allow(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> u32 {
        self.words.len() as u32
    }

    /// The word at an index, and the reason why it cannot be executed.
    pub(super) fn refusal(&self, at: u32) -> (Word, &'static str) {
        let word = self.words.get(at as usize).copied().flatten().unwrap_or_default();
        let why = self.refused.iter().find(|r| r.0 == at).map_or("not decoded", |r| r.1.0);
        (word, why)
    }

    /// Whether an instruction may send control to another place than the next instruction.
    pub(crate) fn transfers(&self, at: u32) -> bool {
        self.row(at).is_none_or(|row| row.flow != isa::Flow::Next)
    }

    /// The word of an instruction, without its scheduling; 0 where nothing is decoded.
    pub fn word(&self, at: u32) -> u128 {
        self.words.get(at as usize).copied().flatten().map_or(0, |word| word.0)
    }

    /// The places to which branches go, and those where control enters.
    pub fn targets(&self) -> BTreeSet<u32> {
        let branches = (0..self.len()).filter_map(|at| self.sends_to(at));
        branches.chain(self.roots.iter().copied()).filter_map(|place| self.places.index(place)).collect()
    }

    /// Whether a program reads a clock, or sleeps.
    pub(crate) fn keeps_time(&self) -> bool {
        self.timed
    }

    /// Whether a program may wait in a loop for a change of memory.
    pub(super) fn polls(&self) -> bool {
        !self.watched.is_empty()
    }

    /// Whether lanes read registers of other lanes.
    pub(crate) fn reads_across(&self) -> bool {
        self.across != Rows::default()
    }

    /// The instructions that may belong to the opening, from one of them on.
    pub(super) fn parts_from(&self, at: u32) -> Option<&[Part]> {
        self.opening.parts.get(at.checked_sub(self.opening.first)? as usize..).filter(|parts| !parts.is_empty())
    }

    /// Whether all lanes that come to an instruction exit there.
    pub(super) fn exits_at(&self, at: u32) -> bool {
        let exits = self.row(at).is_some_and(|row| row.op == Op::Exit);
        exits && self.uops.get(at as usize).is_some_and(|u| u.guard.is_always_true() && u.ps.is_always_true())
    }

    /// The row of an instruction, if one is decoded there.
    pub fn row(&self, at: u32) -> Option<&'static Row> {
        self.words.get(at as usize).copied().flatten().and_then(isa::lookup)
    }

    /// The name of an instruction.
    pub(crate) fn name(&self, at: u32) -> &'static str {
        self.row(at).map_or("?", |row| row.name)
    }
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
        let mut runs = runs::parted(&self.runs, &which);
        // Loads that have other handlers are not executed together.
        runs.iter_mut().for_each(|run| run.loading = 0);
        let replace = |(at, u): (usize, &Uop)| if which(at) { Uop { run: instead, ..*u } } else { *u };
        Image {
            entry: self.entry,
            code: self.code,
            places: self.places.clone(),
            words: self.words.clone(),
            uops: self.uops.iter().enumerate().map(replace).collect(),
            runs,
            records: Vec::new(),
            translated: OnceBox::new(),
            pool: self.pool.clone(),
            registers: self.registers,
            uniform: self.uniform,
            unset: self.unset,
            cleared: self.cleared.clone(),
            across: self.across,
            beginning: self.beginning.clone(),
            alike: Vec::new(),
            steady: self.steady.clone(),
            opening: Parts::default(),
            timed: self.timed,
            ordered: self.ordered,
            refused: self.refused.clone(),
            watched: self.watched.clone(),
            observed: Observed::default(),
            weight: AtomicU64::default(),
            executed: AtomicU64::default(),
            roots: self.roots.clone(),
        }
    }
}
