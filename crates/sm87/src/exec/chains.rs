//! Chains: loads with one address register, between which no instruction writes that register. They are all from global memory, or all from
//! shared memory.
//!
//! The lanes of such loads lie in the same way. Their addresses differ from those of the first load only by the difference of
//! the offsets in the instructions. So [`super::known::Known`] keeps what the first load from global memory finds out, and all loads of a chain
//! have one window ([`super::windows`]).

use super::rows::{Pred, Src};
use super::uop::Uop;
use crate::isa::Row as Opcode;
use crate::isa::memory::{Access, Space};
use std::ops::Range;

/// The first load of a chain, and what the others have in common with it.
#[derive(Clone, Copy)]
struct Chain {
    space: Space,
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

/// The memory of a load that can be in a chain, because every lane that executes it reads memory.
fn loads(u: &Uop, row: &Opcode) -> Option<Space> {
    let space = row.effects.memory().filter(|memory| memory.access == Access::Load && u.ps == Pred::TRUE)?.space;
    matches!(space, Space::Global | Space::Shared).then_some(space)
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
        if let Some(space) = loads(u, row).filter(|_| !alone(at)) {
            let known = chains.iter().find(|k| (k.space, k.a, k.c, k.mods) == (space, u.a, u.c, u.mods));
            match known.and_then(|k| u16::try_from(at - k.first).ok()) {
                Some(distance) => u.aux = distance,
                None => chains.push(Chain { space, first: at, a: u.a, c: u.c, mods: u.mods }),
            }
        }
        chains.retain(|k| !k.reads(&written[at]));
    }
}
