//! Chains: loads with one address register, between which no instruction writes that register. They are all from global memory, all from
//! shared memory, or all from one constant bank.
//!
//! The lanes of such loads lie in the same way. Their addresses differ from those of the first load only by the difference of
//! the offsets in the instructions. So [`super::known::Known`] keeps what the first load from global memory finds out, and all loads of a chain
//! have one window ([`super::windows`]).

use super::rows::{Pred, Src};
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

/// Whether one of the address registers `a` and `c`, which are pairs at most, is among the rows.
fn reads((a, c): (Src, Src), rows: &Range<usize>) -> bool {
    let within = |s: Src| {
        let row = s.own() / 32;
        row < rows.end && rows.start < row + 2
    };
    within(a) || within(c)
}

/// How many instructions before each access write none of its address registers. So many are counted at most.
pub(crate) fn steady(uops: &[Uop], rows: &[Option<&Opcode>], written: &[Range<usize>]) -> Vec<u8> {
    const MOST: usize = 128;
    let before = |u: &Uop, row: &Opcode| {
        let before = written[..u.at as usize].iter().rev().take(MOST);
        row.effects.memory().map_or(0, |_| before.take_while(|rows| !reads((u.a, u.c), rows)).count())
    };
    uops.iter().zip(rows).map(|(u, row)| row.map_or(0, |row| before(u, row)) as u8).collect()
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
        chains.retain(|k| !reads((k.a, k.c), &written[at]));
    }
}
