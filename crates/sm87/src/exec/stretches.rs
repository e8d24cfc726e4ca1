//! Finds the stretches of a program, and executes them: pieces of machine code, and loads of words between them, which become one piece.
//!
//! A micro-op stands for the stretch that begins with it. Other lanes may wait inside of a stretch, or a word may have no window. Then the micro-op
//! does what was there before it.
#![allow(unsafe_code)]

use super::env::{Env, Memory};
use super::image::Image;
use super::live::Rows;
use super::record::Recorder;
use super::rows::Pred;
use super::runs::{Group, Run, Step, Stretch};
use super::uop::{Flow, Handlers, Uop};
use super::warp::Warp;
use super::windows::{self, Memories, Ready};
use std::collections::BTreeSet;
use std::ops::Range;

/// The most instructions of a piece or of a stretch, and the most that are translated of one program, as pieces and once more as stretches.
pub(super) const MOST: usize = 96;
pub(super) const ALL: usize = 1 << 14;
/// A stretch has at least so many pieces and loads, and so many more for each group whose window it is the first to look for: that takes about as long
/// as to execute them one by one.
const LEAST: usize = 3;
const LEAST_FOR_EACH: usize = 2;

/// A stretch whose code was made.
struct Found {
    at: Range<usize>,
    /// The groups of its loads, by their numbers.
    groups: Vec<usize>,
}

/// The stretches of a program, and the groups of all their loads.
#[derive(Default)]
pub(super) struct Stretches {
    found: Vec<Found>,
    groups: Vec<Group>,
}

/// The pieces of a program by their instructions.
struct Pieces<'a> {
    pieces: &'a [Range<usize>],
    /// For each instruction the number of its piece.
    of: Vec<Option<usize>>,
}

impl<'a> Pieces<'a> {
    fn new(pieces: &'a [Range<usize>], instructions: usize) -> Pieces<'a> {
        let mut of = vec![None; instructions];
        pieces.iter().enumerate().for_each(|(n, piece)| of[piece.clone()].fill(Some(n)));
        Pieces { pieces, of }
    }

    /// The piece in whose middle an instruction is.
    fn around(&self, at: usize) -> Option<&Range<usize>> {
        let piece = &self.pieces[(*self.of.get(at)?)?];
        (piece.start < at).then_some(piece)
    }

    /// The part of some instructions that has whole pieces only.
    fn whole(&self, at: Range<usize>) -> Range<usize> {
        let start = self.around(at.start).map_or(at.start, |piece| piece.end);
        start..self.around(at.end).map_or(at.end, |piece| piece.start).max(start)
    }

    /// The number of pieces, and of loads and other instructions that are not in one.
    fn parts(&self, at: Range<usize>) -> usize {
        let piece_begins = |at: usize| self.of[at].is_none_or(|piece| self.pieces[piece].start == at);
        at.filter(|at| piece_begins(*at)).count()
    }
}

/// Makes the code of the stretches of a program, of which these are the pieces.
pub(super) fn find(
    image: &Image,
    live: &[Rows],
    pieces: &[Range<usize>],
    builder: &mut sm87_native::Builder,
) -> Stretches {
    let (targets, pieces) = (image.targets(), Pieces::new(pieces, image.uops.len()));
    let (mut found, mut first, mut all) = (Stretches::default(), 0, 0);
    while first < image.records.len() && all < ALL {
        let at = pieces.whole(first..reach(image, &targets, first));
        first = at.end.max(first + 1);
        all += at.len();
        add(image, live, &pieces, at, builder, &mut found);
    }
    found
}

/// The end of the instructions from `first` on that can be written down together. Control enters them only at their beginning.
fn reach(image: &Image, targets: &BTreeSet<u32>, first: usize) -> usize {
    let mut groups = Vec::new();
    let mut recorder = Recorder::of_stretch(&image.pool.immediates, &mut groups);
    for at in first..image.records.len().min(first + MOST) {
        let record = image.records[at].filter(|_| image.runs[at].straight > 0);
        let Some(record) = record.filter(|_| at == first || !targets.contains(&(at as u32))) else { return at };
        recorder.instruction(&image.uops[at], record);
        if recorder.is_refused() {
            return at;
        }
    }
    image.records.len().min(first + MOST)
}

/// Makes the code of a stretch, or of its halves if the host has not enough registers for it.
fn add(
    image: &Image,
    live: &[Rows],
    pieces: &Pieces<'_>,
    at: Range<usize>,
    builder: &mut sm87_native::Builder,
    found: &mut Stretches,
) {
    let known = found.groups.len();
    let mut recorder = Recorder::of_stretch(&image.pool.immediates, &mut found.groups);
    for n in at.clone() {
        image.records[n].into_iter().for_each(|record| recorder.instruction(&image.uops[n], record));
    }
    let groups = recorder.used().to_vec();
    let Some(mut graph) = recorder.end() else { return };
    let new = groups.iter().filter(|group| **group >= known).count();
    if groups.is_empty() || pieces.parts(at.clone()) < LEAST + LEAST_FOR_EACH * new {
        found.groups.truncate(known);
        return;
    }
    let behind = live.get(at.end).copied().unwrap_or(Rows::ALL);
    graph.keep_rows(|offset| behind.has(offset as usize / 32));
    if builder.add(&graph).is_ok() {
        found.found.push(Found { at, groups });
        return;
    }
    let middle = at.start + at.len() / 2;
    for half in [at.start..middle, middle..at.end].map(|half| pieces.whole(half)) {
        if half.len() < at.len() {
            add(image, live, pieces, half, builder, found);
        }
    }
}

impl Stretches {
    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The stretches with their code. `runs` and `uops` of the program get micro-ops that stand for them.
    pub(super) fn made(
        &self,
        host: sm87_native::Host,
        code: impl Iterator<Item = sm87_native::Piece>,
        runs: &mut [Run],
        uops: &mut [Uop],
    ) -> Vec<Stretch> {
        let mut made = Vec::new();
        for (Found { at, groups }, code) in self.found.iter().zip(code) {
            let (run, u) = (&mut runs[at.start], &mut uops[at.start]);
            let piece = (run.step == Step::Piece).then(|| run.offsets.piece());
            (run.step, run.multiplying, run.adding) = (Step::Simple, 0, 0);
            *u = Uop { run: Handlers::all(execute), guard: Pred::TRUE, imm: made.len() as u32, ..*u };
            let groups = groups.iter().map(|n| self.groups[*n]).collect();
            made.push(Stretch { code, host, length: at.len() as u32, piece, groups });
        }
        made
    }
}

/// Executes the stretch for which a micro-op stands, or what is instead of it: the piece, or the instruction.
///
/// # Safety
/// As for all handlers. Code is only made if the host has the instruction set of [`super::host`].
unsafe fn execute(w: &mut Warp, env: &mut Env<'_>, u: &Uop, active: u32) -> Flow {
    let Some(by) = env.image.translated() else { return Flow::Next };
    let Memory { known, tlb, shared, .. } = &mut env.memory;
    let memories = Memories { tlb, shared, banks: &env.launched.banks };
    let (stretch, room) = (&by.stretches[u.imm as usize], w.switch_at.saturating_sub(u.at));
    // SAFETY: the conditions are those of this function, and `find` has found what the windows lead to.
    let (idle, length) = unsafe {
        if stretch.length <= room
            && let Some(Ready { windows, spread }) = windows::find(&mut known.windows, w, active, memories, stretch)
        {
            let places = (w.own(), w.constants(), w.preds.as_mut_ptr());
            (stretch.code.load(places, active, windows, spread), stretch.length)
        } else if let Some(piece) = stretch.piece.map(|n| &by.pieces[n]).filter(|piece| piece.length <= room) {
            (piece.code.execute(w.own(), w.constants(), w.preds.as_mut_ptr(), active), piece.length)
        } else {
            return instruction(w, env, u.at, active);
        }
    };
    let executed = &mut env.counts.stats.thread_instructions;
    *executed = executed.wrapping_sub(idle.into());
    env.outcome.together = length - 1;
    Flow::Together
}

/// Executes the instruction whose micro-op stands for a stretch.
///
/// # Safety
/// As for [`execute`].
unsafe fn instruction(w: &mut Warp, env: &mut Env<'_>, at: u32, active: u32) -> Flow {
    let u = env.image.uops[at as usize];
    let exec = active & w.pred(u.guard);
    let executed = &mut env.counts.stats.thread_instructions;
    *executed = executed.wrapping_sub(u64::from((active ^ exec).count_ones()));
    // SAFETY: the conditions are those of this function.
    if exec == 0 { Flow::Next } else { unsafe { u.run.of(exec)(w, env, &u, exec) } }
}
