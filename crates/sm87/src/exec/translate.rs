//! The straight pieces of a program as machine code of the host: see [`sm87_native`] and [`super::record`].
//!
//! A piece is a stretch of a [run](super::runs) whose instructions compute with rows and sets of lanes alone. It is executed as one function,
//! which keeps rows in registers of the host. The interpreter does all the rest. It also executes parts of a piece: when a slice of a warp ends
//! inside of it, or other lanes wait there.
//!
//! A [stretch](super::stretches) is pieces with loads of words between them, as one function for all lanes. It is executed if all its loads find
//! [windows](super::windows), and otherwise the pieces and the loads are executed one by one.
#![allow(unsafe_code)]

use super::env::Env;
use super::image::{Image, Translated};
use super::live::Rows;
use super::record::Recorder;
use super::runs::{self, Offsets, Piece, Run, Step};
use super::stretches::{self, ALL, MOST};
use super::uop::{Flow, Handlers, Uop};
use super::warp::Warp;
use once_cell::race::OnceBox;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The fewest instructions of a piece.
const LEAST: usize = 2;

/// Translates a program for the host if so many instructions of it were executed, unless that was done.
pub(super) fn if_worth(image: &Image, after: u64) {
    if image.executed.load(Ordering::Relaxed) >= after {
        ensure(image);
    }
}

/// Translates a program for the host, unless that was done.
pub(super) fn ensure(image: &Image) {
    image.translated.get_or_init(|| Box::new(translate(image)));
}

/// Translates a program. The result is `None` if the host cannot execute such code, or if there is nothing to translate.
fn translate(image: &Image) -> Option<Translated> {
    let host = sm87_native::Host::found()?;
    let (mut builder, mut found) = (sm87_native::Builder::new(host), Vec::new());
    let live = image.live();
    for piece in pieces(image) {
        add(image, &live, piece, &mut builder, &mut found);
    }
    let loading = stretches::find(image, &live, &found, &mut builder);
    // Some systems allow no memory with code. The interpreter does not need it.
    let code = builder.finish().ok().filter(|_| !found.is_empty() || !loading.is_empty())?;
    let mut codes = code.pieces().into_iter();
    // In this order, the iterator of codes loses none when the pieces end.
    let piece = |(at, code): (&Range<usize>, _)| Piece { code, at: at.start as u32, length: at.len() as u32 };
    let pieces: Vec<_> = found.iter().zip(codes.by_ref()).map(piece).collect();
    let mut runs = runs(&image.runs, &pieces);
    let mut uops = image.uops.clone();
    let stretches = loading.made(host, codes, &mut runs, &mut uops);
    Some(Translated { runs, pieces, stretches, uops, code: Arc::new(code) })
}

/// Gives the translation of a program to a copy in which observers have chosen instructions, if they let it have one. The copy gets the pieces of
/// which they chose none but the first instruction, and executes such a piece in the place of that instruction.
pub(super) fn share(image: &Image, copy: &mut Image) {
    let Some(by) = image.translated().filter(|_| copy.observed.is_narrow()) else { return };
    let starts = |at: usize| copy.observed.has(at) && copy.guard(at as u32).is_always_true();
    let serves = |piece: &&Piece| {
        let (first, end) = (piece.at as usize, (piece.at + piece.length) as usize);
        (!copy.observed.has(first) || starts(first)) && !(first + 1..end).any(|at| copy.observed.has(at))
    };
    let pieces: Vec<_> = by.pieces.iter().filter(serves).copied().collect();
    let mut runs = runs(&copy.runs, &pieces);
    let observed: Vec<_> = pieces.iter().map(|piece| piece.at as usize).filter(|&at| starts(at)).collect();
    for first in observed {
        (runs[first].step, copy.observed.handlers[first]) = (Step::Simple, Handlers::all(execute));
    }
    let by = Translated { runs, pieces, stretches: Vec::new(), uops: copy.uops.clone(), code: by.code.clone() };
    copy.translated = OnceBox::with_value(Box::new(Some(by)));
}

/// Executes the piece that begins with an observed instruction, or that instruction alone if other lanes wait inside of the piece.
///
/// # Safety
/// As for all handlers. Code is only made if the host has the instruction set of [`super::host`].
unsafe fn execute(w: &mut Warp, env: &mut Env<'_>, u: &Uop, exec: u32) -> Flow {
    let at = u.at as usize;
    let piece = env.image.translated().map(|by| by.pieces[by.runs[at].offsets.piece()]);
    // SAFETY: the conditions are those of this function, and `share` gave such handlers to the first instructions of pieces alone.
    unsafe {
        let Some(piece) = piece.filter(|piece| piece.length <= w.switch_at.saturating_sub(u.at)) else {
            return env.image.own(u.at).of(exec)(w, env, u, exec);
        };
        let idle = piece.code.execute(w.own(), w.constants(), w.preds.as_mut_ptr(), exec);
        let executed = &mut env.counts.stats.thread_instructions;
        *executed = executed.wrapping_sub(idle.into());
        env.outcome.together = piece.length - 1;
    }
    Flow::Together
}

/// Makes the code of a piece, or of its halves if the host has not enough registers for it.
fn add(
    image: &Image,
    live: &[Rows],
    piece: Range<usize>,
    builder: &mut sm87_native::Builder,
    found: &mut Vec<Range<usize>>,
) {
    if piece.len() < LEAST {
        return;
    }
    let graph = recorded(image, piece.clone()).map(|mut graph| {
        let behind = live.get(piece.end).copied().unwrap_or(Rows::ALL);
        graph.keep_rows(|offset| behind.has(offset as usize / 32));
        graph
    });
    match graph {
        Some(graph) if builder.add(&graph).is_ok() => found.push(piece),
        _ => {
            let middle = piece.start + piece.len() / 2;
            add(image, live, piece.start..middle, builder, found);
            add(image, live, middle..piece.end, builder, found);
        }
    }
}

fn recorded(image: &Image, instructions: Range<usize>) -> Option<sm87_native::Graph> {
    let mut recorder = Recorder::begin(&image.pool.immediates);
    for at in instructions {
        recorder.instruction(&image.uops[at], image.records[at]?);
    }
    recorder.end()
}

/// The stretches of instructions that can be translated. Control enters them only at their beginning.
fn pieces(image: &Image) -> Vec<Range<usize>> {
    let targets = image.targets();
    let (mut pieces, mut first, mut all) = (Vec::new(), 0, 0);
    for at in 0..=image.records.len() {
        let fits = at < image.records.len()
            && image.runs[at].straight > 0
            && all < ALL
            && recorded(image, at..at + 1).is_some();
        all += usize::from(fits);
        if !fits || targets.contains(&(at as u32)) || at - first == MOST {
            pieces.push(first..at);
            first = if fits { at } else { at + 1 };
        }
    }
    pieces
}

/// The runs of a program, with its pieces. Instructions of pieces are not part of other loops.
fn runs(runs: &[Run], pieces: &[Piece]) -> Vec<Run> {
    let mut inside = vec![false; runs.len()];
    pieces.iter().for_each(|piece| inside[piece.at as usize..][..piece.length as usize].fill(true));
    let mut out = runs::parted(runs, |at| inside[at]);
    for (n, piece) in pieces.iter().enumerate() {
        let first = &mut out[piece.at as usize];
        (first.step, first.offsets) = (Step::Piece, Offsets::of_piece(n));
    }
    out
}

#[cfg(test)]
pub(crate) mod tests {
    //! What operations compute as machine code. Their own tests compare it with what they compute when they are interpreted.

    use crate::exec::record::{Record, Recorder};
    use crate::exec::rows::{REGISTER, Row, pred, rows_per_warp};
    use crate::exec::uop::Uop;
    use std::cell::RefCell;
    use std::collections::HashMap;

    /// The number of registers of the micro-ops of tests.
    const REGISTERS: usize = 10;

    /// What a micro-op of up to three words makes of eight lanes as machine code. Each is translated once.
    pub(crate) fn executed(u: &Uop, record: Record, words: &[[u32; 8]; 3]) -> Option<[u32; 8]> {
        thread_local! {
            static KNOWN: RefCell<HashMap<(usize, u32), Option<One>>> = RefCell::default();
        }
        KNOWN.with_borrow_mut(|known| {
            let one = known.entry((record as usize, u.mods)).or_insert_with(|| One::of(u, record)).as_ref()?;
            let mut registers = [[0; 8]; REGISTERS];
            (registers[4], registers[6], registers[8]) = (words[0], words[1], words[2]);
            one.execute(&mut registers, &mut [0; 8]);
            Some(registers[0])
        })
    }

    /// One micro-op as machine code.
    pub(crate) struct One(sm87_native::Code);

    impl One {
        /// Translates a micro-op. The result is `None` if it cannot be translated, or if this host cannot execute it.
        pub(crate) fn of(u: &Uop, record: Record) -> Option<One> {
            let mut recorder = Recorder::begin(&[]);
            recorder.instruction(u, record);
            let mut builder = sm87_native::Builder::new(sm87_native::Host::found()?);
            builder.add(&recorder.end()?).ok()?;
            Some(One(builder.finish().expect("memory for code")))
        }

        /// Executes it for eight lanes. `registers` has what the registers hold before and afterwards, and `preds` the same of the predicates.
        pub(crate) fn execute(&self, registers: &mut [[u32; 8]; REGISTERS], preds: &mut [u32; 8]) {
            let mut rows = vec![Row::ZERO; rows_per_warp(REGISTERS as u32)];
            let first = REGISTER as usize;
            for (row, lanes) in rows[first..].iter_mut().zip(&*registers) {
                // The lanes of a row repeat.
                row.0 = std::array::from_fn(|lane| lanes[lane % 8]);
            }
            let mut sets = [0; pred::COUNT];
            sets[..8].copy_from_slice(preds);
            let constants = std::ptr::null();
            // SAFETY: the rows and the sets are those of a warp, the micro-op reads no constants, and the host has the instruction set.
            unsafe { self.0.pieces()[0].execute(rows.as_mut_ptr().cast(), constants, sets.as_mut_ptr(), u32::MAX) };
            for (row, lanes) in rows[first..].iter().zip(registers) {
                *lanes = std::array::from_fn(|lane| row.0[lane]);
            }
            preds.copy_from_slice(&sets[..8]);
        }
    }
}
