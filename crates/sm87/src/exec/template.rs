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
/// It is worth the effort in a grid of so many warps.
pub(super) const WORTH: u64 = 64;
/// What rows hold in the two attempts, so that rows that are written are found.
const FILLED: [u32; 2] = [0x5a5a_0001, 0xa5a5_0002];

/// The state of a warp.
pub(crate) struct Template {
    pub(super) pc: u32,
    pub(super) preds: [u32; pred::COUNT],
    /// The rows that the first instructions write, and those of them that others may read and that are not zero.
    pub(super) rows: Vec<(usize, Row)>,
    read: Vec<(usize, Row)>,
    /// The rows that have to be zero, if somebody reads them: the first instructions write zero, or do not write them.
    zero: Rows,
    /// The rows that are zero, of those that the instructions behind the first ones may read before they write them.
    pub cleared: Vec<Range<u16>>,
    /// The number of instructions, and how many of them a lane executes.
    pub(super) issued: u32,
    pub(super) executed: u32,
}

impl Template {
    /// Executes what all warps of the launch execute alike. The result is `None` if that is nothing.
    pub(crate) fn of(env: &mut Env<'_>, image: &Image, constants: &[Row]) -> Option<Template> {
        if !image.is_alike(image.entry) {
            return None;
        }
        let stats = env.counts.stats;
        let [first, second] = FILLED.map(|filled| attempt(env, image, constants, filled));
        env.counts.stats = stats;
        let (mut template, rows) = first?;
        let (_, others) = second?;
        // All lanes hold the same, because they depend on constants alone.
        let written = |row: &usize| rows[*row].0[0] != FILLED[0] || others[*row].0[0] != FILLED[1];
        let used = rows::used(image.uniform, image.registers);
        template.rows.reserve(MOST_ISSUED as usize);
        template.rows.extend(used.filter(written).map(|row| (row, rows[row])));
        template.zero = image.unset;
        for (row, held) in &template.rows {
            template.zero.set(*row, held.0 == Row::ZERO.0);
        }
        (template.read, template.cleared) = template.needed(image, &image.read_from(template.pc));
        Some(template)
    }

    /// Of these rows, those to which a warp needs what the first instructions write, and those that have to be zero.
    pub(super) fn needed(&self, image: &Image, rows: &Rows) -> (Vec<(usize, Row)>, Vec<Range<u16>>) {
        let is_put = |row: &usize| rows.has(*row) && !self.zero.has(*row);
        let put = self.rows.iter().filter(|(row, _)| is_put(row)).copied().collect();
        (put, live::ranges(&rows.within(&self.zero), image.uniform, image.registers))
    }

    /// Puts a warp that has just begun behind the first instructions.
    #[inline]
    pub(crate) fn begin(&self, w: &mut Warp, rows: &mut [Row]) {
        for (at, row) in &self.read {
            rows[*at] = *row;
        }
        (w.pc, w.preds, w.ahead) = (self.pc, self.preds, (self.issued, self.executed));
    }
}

/// Executes the first instructions with a warp of its own, whose rows hold `filled` if nobody clears them. Returns what becomes of it.
fn attempt(env: &mut Env<'_>, image: &Image, constants: &[Row], filled: u32) -> Option<(Template, Lasting<Row>)> {
    let mut rows = Lasting::kept();
    rows.resize(rows::rows_per_warp(image.registers), Row::ZERO);
    rows::clear_constant(&mut rows, image.registers);
    rows::used(image.uniform, image.registers).for_each(|row| rows[row] = Row([filled; 32]));
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
    let (written, read, zero, cleared) = Default::default();
    Some((Template { pc, preds, rows: written, read, zero, cleared, issued, executed }, rows))
}
