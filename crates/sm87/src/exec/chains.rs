//! Chains: loads with one address register, between which no instruction writes that register. They are all from global memory, all from
//! shared memory, or all from one constant bank.
//!
//! The lanes of such loads lie in the same way. Their addresses differ from those of the first load only by the difference of
//! the offsets in the instructions. So [`super::known::Known`] keeps what the first load from global memory finds out, and all loads of a chain
//! have one window ([`super::windows`]).

use super::rows::{Pred, Src, rows_per_warp};
use super::uop::{UNIFORM, Uop};
use crate::isa::memory::{Access, Space};
use crate::isa::{Op, Row as Opcode};
use std::ops::Range;

/// What loads read. The bank is one of the modifiers of a load.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Global,
    Shared,
    Bank,
}

/// The first load of a chain, and what the others have in common with it.
#[derive(Clone, Copy)]
struct Chain {
    source: Source,
    first: usize,
    a: Src,
    c: Src,
    mods: u32,
}

impl Chain {
    /// Whether one of its address registers, which are pairs at most, is among the rows.
    fn reads(&self, rows: &Range<usize>) -> bool {
        let within = |s: Src| {
            let row = s.own() / 32;
            row < rows.end && rows.start < row + 2
        };
        within(self.a) || within(self.c)
    }
}

/// Of each micro-op, the instruction from which on none before it writes its sources `a` and `c`, which are pairs at most.
pub(crate) fn steady(uops: &[Uop], written: &[Range<usize>]) -> Vec<u32> {
    let mut behind = vec![0; rows_per_warp(u8::MAX.into())];
    let mut steady = Vec::with_capacity(uops.len());
    for (u, rows) in uops.iter().zip(written) {
        let registers = [u.a, u.c].into_iter().filter(|s| s.space() == 0);
        let since = registers.flat_map(|s| behind.iter().skip(s.own() / 32).take(2)).max();
        steady.push(since.copied().unwrap_or(0));
        behind.iter_mut().take(rows.end).skip(rows.start).for_each(|behind| *behind = u.at + 1);
    }
    steady
}

/// What a load reads that can be in a chain, because every lane that executes it reads memory.
fn loads(u: &Uop, row: &Opcode) -> Option<Source> {
    if row.op == Op::Ldc {
        return Some(Source::Bank);
    }
    match row.effects.memory().filter(|memory| memory.access == Access::Load && u.ps == Pred::TRUE)?.space {
        Space::Global => Some(Source::Global),
        Space::Shared => Some(Source::Shared),
        _ => None,
    }
}

/// Links the loads of a program: `aux` of each becomes its distance from the first load of its chain. `written` are the
/// rows that instructions write, and `alone` says which loads are in no chain.
pub(crate) fn link(
    uops: &mut [Uop],
    opcodes: &[Option<&Opcode>],
    written: &[Range<usize>],
    alone: impl Fn(usize) -> bool,
) {
    let mut chains: Vec<Chain> = Vec::new();
    for (at, u) in uops.iter_mut().enumerate() {
        let Some(row) = opcodes[at].filter(|row| row.effects.straight) else {
            chains.clear();
            continue;
        };
        if let Some(source) = loads(u, row).filter(|_| !alone(at)) {
            let known = chains.iter().find(|k| (k.source, k.a, k.c, k.mods) == (source, u.a, u.c, u.mods));
            let distance = known.and_then(|k| u16::try_from(at - k.first).ok());
            match distance.filter(|distance| distance & UNIFORM == 0) {
                Some(distance) => u.aux = distance,
                None => chains.push(Chain { source, first: at, a: u.a, c: u.c, mods: u.mods }),
            }
        }
        chains.retain(|k| !k.reads(&written[at]));
    }
}
