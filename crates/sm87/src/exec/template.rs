//! The state of a warp after the first instructions of a program, if all warps of a launch execute these alike.
//!
//! Programs begin with instructions that depend on constants alone: the prologue of sm_87, the stack pointer, parameters. They are
//! executed once, and every warp begins behind them. They count as if the warp had executed them in its first slice.
#![allow(unsafe_code)]

use super::env::Env;
use super::image::Image;
use super::interp::{self, Stop};
use super::live::{self, Rows};
use super::rows::{self, Lasting, Row, pred};
use super::warp::Warp;
use std::ops::Range;

/// The most instructions that are executed beforehand. A slice has more.
pub(super) const MOST_ISSUED: u32 = 48;
const _: () = assert!(MOST_ISSUED < 64, "a warp that sleeps gives the others slices of 64 instructions");
/// So many rows usually get what the first instructions write.
const USUAL: usize = 16;
/// It is worth the effort in a grid of so many warps.
pub(super) const WORTH: u64 = 64;

/// The state of a warp.
pub(crate) struct Template {
    pub(super) pc: u32,
    pub(super) preds: [u32; pred::COUNT],
    /// The rows of the warp, and those of them that the first instructions write.
    rows: Lasting<Row>,
    pub(super) written: Rows,
    /// The rows that have to be zero, if somebody reads them: the first instructions write zero, or do not write them.
    zero: Rows,
    /// What the instructions behind the first ones need.
    pub needed: Needed,
    /// The number of instructions, and how many of them a lane executes.
    pub(super) issued: u32,
    pub(super) executed: u32,
}

/// The rows that instructions may read before they write them.
#[derive(Default)]
pub(crate) struct Needed {
    /// Those in which a warp gets what the first instructions write, unless that is zero, and what it gets.
    at: Vec<u16>,
    held: Lasting<Row>,
    /// Those that are cleared.
    pub cleared: Vec<Range<u16>>,
}

impl Needed {
    /// Gives a warp that has just begun what it needs, apart from the rows that are cleared.
    #[inline]
    pub(super) fn put(&self, rows: &mut [Row]) {
        for (at, held) in self.at.iter().zip(self.held.iter()) {
            rows[usize::from(*at)] = *held;
        }
    }
}

impl Template {
    /// Executes what all warps of the launch execute alike. The result is `None` if that is nothing.
    pub(crate) fn of(env: &mut Env<'_>, image: &Image, constants: &[Row]) -> Option<Template> {
        if !image.is_alike(image.entry) {
            return None;
        }
        let stats = env.counts.stats;
        let template = attempt(env, image, constants);
        env.counts.stats = stats;
        let mut template = template?;
        template.zero = image.unset;
        for row in rows::used(image.uniform, image.registers) {
            let [first, second, ..] = template.rows[row].0;
            // What the first instructions write is the same in all lanes, because it depends on constants alone.
            if first == second {
                template.written.set(row, true);
                template.zero.set(row, first == 0);
            }
        }
        template.needed = template.needed(image, &image.read_from(template.pc));
        Some(template)
    }

    /// What a warp behind the first instructions needs of these rows.
    pub(super) fn needed(&self, image: &Image, rows: &Rows) -> Needed {
        let mut needed = Needed {
            cleared: live::ranges(&rows.within(&self.zero), image.uniform, image.registers),
            at: Vec::with_capacity(USUAL),
            held: Lasting::empty(USUAL),
        };
        for row in rows.within(&self.written).without(&self.zero).all() {
            needed.at.push(row as u16);
            needed.held.push(self.rows[row]);
        }
        needed
    }

    /// What all lanes of all warps hold in a row that the first instructions write.
    pub(super) fn number(&self, row: usize) -> u32 {
        self.rows[row].0[0]
    }

    /// Puts a warp that has just begun behind the first instructions.
    #[inline]
    pub(crate) fn begin(&self, w: &mut Warp, rows: &mut [Row]) {
        self.needed.put(rows);
        (w.pc, w.preds, w.ahead) = (self.pc, self.preds, (self.issued, self.executed));
    }
}

/// Executes the first instructions with a warp of its own, whose lanes hold different numbers wherever nobody writes or clears a row. Returns what
/// becomes of it.
fn attempt(env: &mut Env<'_>, image: &Image, constants: &[Row]) -> Option<Template> {
    let count = rows::rows_per_warp(image.registers);
    let mut rows = Lasting::kept(count);
    rows.resize(count, Row::ZERO);
    rows::clear_constant(&mut rows, image.registers);
    rows::used(image.uniform, image.registers).for_each(|row| rows[row] = Row::LANES);
    rows::clear(&mut rows, &image.cleared);
    let mut w = Warp::new(0);
    w.begin(u32::MAX, image.entry, &mut rows, &image.pool.immediates, constants);
    env.counts.stats = Default::default();
    while image.is_alike(w.pc) && env.counts.stats.warp_instructions < u64::from(MOST_ISSUED / 2) {
        // SAFETY: the warp has the arrays of `image`, which is that of `env`, and all of its lanes run.
        let stop = unsafe { interp::run(&mut w, env, image, 1) };
        if stop != Stop::Slice || w.active != u32::MAX || !w.groups().is_empty() {
            return None;
        }
    }
    let (issued, executed) =
        (env.counts.stats.warp_instructions as u32, (env.counts.stats.thread_instructions / 32) as u32);
    let (pc, preds) = (w.pc, w.preds);
    let (written, zero, needed) = Default::default();
    Some(Template { pc, preds, rows, written, zero, needed, issued, executed })
}
