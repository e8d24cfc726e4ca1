//! What the checker must know of an instruction, read once when a launch is prepared.

use crate::exec::uop::Uop;
use crate::isa::{self, Op};
use crate::word::Word;

/// The memory that an instruction names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Global,
    Shared,
    Local,
    /// The address says which.
    Generic,
    /// LDSM: each lane names a row of a matrix.
    Rows,
    /// LDGSTS: it reads global memory and writes shared memory.
    Copy,
}

/// An instruction that reads or writes memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub space: Space,
    /// The number of bytes for each lane.
    pub len: u32,
    pub reads: bool,
    pub writes: bool,
    /// The read and the write are one.
    pub atomic: bool,
    /// Lanes for which the second predicate is false do not access memory.
    pub predicated: bool,
    /// The address register is shifted by a field of the modifiers.
    pub scaled: bool,
    /// It is ordered with accesses of other threads ("strong").
    pub strong: bool,
    /// It compares and swaps: the third operand is the new value, and no uniform offset.
    pub swaps: bool,
}

/// What the checker looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    Nothing,
    Access(Shape),
    /// BAR: whether all lanes of a warp must come to it together, as PTX's `.aligned` says.
    Barrier(bool),
    /// WARPSYNC.
    Warpsync,
    /// MEMBAR: whether it is for more than the CTA.
    Fence(bool),
    /// EXIT.
    Exit,
}

/// The number of bytes of the size field of a load or store.
const fn bytes(size: u32) -> u32 {
    match size & 7 {
        0 | 1 => 1,
        2 | 3 => 2,
        5 => 8,
        6 => 16,
        _ => 4,
    }
}

/// Whether a load or store is ordered with accesses of other threads: STRONG.SM, STRONG.GPU(.PRIVATE), MMIO.GPU,
/// STRONG.SYS and MMIO.SYS.
fn is_strong(op: Op, word: Word) -> bool {
    matches!(op, Op::Ld | Op::Ldg | Op::St | Op::Stg) && matches!(word.bits(77, 4), 5..=8 | 10 | 12)
}

impl Plan {
    /// The plan of an instruction. `u` is its micro-op.
    pub(crate) fn of(word: Word, u: &Uop) -> Plan {
        use Space::*;
        let Some(row) = isa::lookup(word) else { return Plan::Nothing };
        let none = Shape {
            space: Global,
            len: bytes(u.mods),
            reads: false,
            writes: false,
            atomic: false,
            predicated: false,
            scaled: false,
            swaps: false,
            strong: is_strong(row.op, word),
        };
        let load = |space, predicated, scaled| Plan::Access(Shape { space, reads: true, predicated, scaled, ..none });
        let store = |space, scaled| Plan::Access(Shape { space, writes: true, scaled, ..none });
        // Types 2, 5 and 6 of atomics have 64 bits.
        let wide = matches!(u.aux >> 4 & 7, 2 | 5 | 6);
        let len = if wide { 8 } else { 4 };
        let swaps = matches!(row.op, Op::AtomCas | Op::AtomgCas | Op::AtomsCas);
        let change = |space, scaled| {
            Plan::Access(Shape { space, len, reads: true, writes: true, atomic: true, scaled, swaps, ..none })
        };
        match row.op {
            Op::Ldg => load(Global, true, false),
            Op::Ld => load(Generic, true, false),
            Op::Lds => load(Shared, false, true),
            Op::Ldl => load(Local, false, false),
            Op::Ldsm => Plan::Access(Shape { space: Rows, len: 16, reads: true, ..none }),
            Op::Stg => store(Global, false),
            Op::St => store(Generic, false),
            Op::Sts => store(Shared, true),
            Op::Stl => store(Local, false),
            Op::Atomg | Op::AtomgCas | Op::Red => change(Global, false),
            Op::Atom | Op::AtomCas | Op::AtomCount => change(Generic, false),
            Op::Atoms | Op::AtomsCas | Op::AtomsCount | Op::Arrives => change(Shared, true),
            Op::Ldgsts => Plan::Access(Shape { space: Copy, reads: true, writes: true, ..none }),
            // ptxas writes DEFER_BLOCKING for aligned barriers alone.
            Op::Bar => Plan::Barrier(word.bit(80)),
            Op::Warpsync => Plan::Warpsync,
            Op::Membar => Plan::Fence(word.bits(76, 3) >= 2),
            Op::Exit => Plan::Exit,
            _ => Plan::Nothing,
        }
    }
}
