//! What the model must know of an instruction, read once when a launch is prepared.

use super::table::{self, SCHEDULERS};
use crate::exec::check::plan::{Plan, Shape};
use crate::exec::uop::Uop;
use crate::isa::{self, Flow, Op, Row};
use crate::model::Unit;
use crate::word::Word;

/// What an instruction does besides using its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    Access(Shape),
    /// BAR.
    Barrier,
    /// LDGDEPBAR: the copies so far are a group.
    Group,
    /// DEPBAR: it waits until all groups but so many are done, or for a scoreboard.
    Depends {
        scoreboard: u8,
        but: u8,
    },
}

/// No scoreboard.
pub(super) const NONE: u8 = 7;

/// One instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// The cycles until the warp may issue its next instruction.
    pub stall: u8,
    /// The scoreboards that are set until the result is there, and until the operands are read.
    pub writes: u8,
    pub reads: u8,
    /// The scoreboards for which it waits, one bit each.
    pub waits: u8,
    pub unit: Unit,
    /// The cycles for which it keeps a quarter of its unit, or an SM's unit, busy.
    pub cost: u16,
    pub latency: u16,
    /// Whether control may go elsewhere after it.
    pub transfers: bool,
    pub kind: Kind,
}

/// The lanes of a warp.
const LANES: u32 = 32;

impl Step {
    /// An instruction that sets no scoreboard and waits for none.
    #[cfg(test)]
    pub(super) const PLAIN: Step = Step {
        stall: 1,
        writes: NONE,
        reads: NONE,
        waits: 0,
        unit: Unit::Single,
        cost: 1,
        latency: 4,
        transfers: false,
        kind: Kind::Plain,
    };

    /// The instruction `word`, with its scheduling bits (docs/hardware/sm87-instruction-word.md#scheduling-bits). `u` is its
    /// micro-op.
    pub(super) fn of(word: Word, u: &Uop) -> Step {
        let field = |lo, len| word.bits(lo, len) as u8;
        let row = isa::lookup(word);
        let (unit, cost, latency) = row.map_or((Unit::Issue, 1, 4), |row| costs(row, word));
        Step {
            stall: field(105, 4).max(1),
            writes: field(110, 3),
            reads: field(113, 3),
            waits: field(116, 6),
            unit,
            cost,
            latency,
            transfers: row.is_none_or(|row| row.flow != Flow::Next),
            kind: row.map_or(Kind::Plain, |row| kind(row, word, u)),
        }
    }
}

fn kind(row: &Row, word: Word, u: &Uop) -> Kind {
    match (row.op, Plan::of(word.unscheduled(), u)) {
        (Op::Ldgdepbar, _) => Kind::Group,
        (Op::Depbar, _) => Kind::Depends { scoreboard: word.bits(44, 3) as u8, but: word.bits(38, 6) as u8 },
        (_, Plan::Access(shape)) => Kind::Access(shape),
        (_, Plan::Barrier(_)) => Kind::Barrier,
        _ => Kind::Plain,
    }
}

/// The unit of an instruction, how long it is busy, and the latency.
fn costs(row: &Row, word: Word) -> (Unit, u16, u16) {
    if let Some((products, rate)) = matrix(row.op, word) {
        let busy = products * SCHEDULERS as u32 / rate;
        return (Unit::Tensor, busy.max(1) as u16, table::MATRIX.max(busy) as u16);
    }
    let class = table::class_of(row);
    let parts = if class.unit == Unit::LoadStore { 1 } else { SCHEDULERS as u32 };
    let busy = (LANES * parts / class.lanes).max(1);
    (class.unit, busy as u16, class.latency.max(busy) as u16)
}

/// The products that a matrix instruction adds, and how many of them an SM adds in a cycle. A sparse matrix has half of the
/// products.
fn matrix(op: Op, word: Word) -> Option<(u32, u32)> {
    let pick = |shapes: &[[u32; 3]], at: u32| shapes.get(at as usize).map_or(0, |shape| shape.iter().product::<u32>());
    let shape = |shapes: &[[u32; 3]], low: u32, high: (u32, u32)| {
        pick(shapes, word.bits(low, 1) | word.bits(high.0, high.1) << 1)
    };
    let dense = |products: u32, sparse: bool| if sparse { products / 2 } else { products };
    Some(match op {
        Op::Hmma => {
            let products = shape(&[[16, 8, 8], [16, 8, 16], [16, 8, 4], [16, 8, 32]], 75, (78, 1));
            let rate = if word.bits(82, 2) == 2 { table::TF32 } else { table::HALVES };
            (dense(products, word.bit(73)), rate)
        }
        Op::Imma => {
            let shapes = [[8, 8, 16], [0; 3], [8, 8, 32], [0; 3], [16, 8, 16], [16, 8, 32], [16, 8, 64], [16, 8, 128]];
            let rate = if word.bit(83) { table::NIBBLES } else { table::BYTES };
            (dense(shape(&shapes, 75, (85, 2)), word.bit(72)), rate)
        }
        Op::Bmma => (pick(&[[8, 8, 128], [16, 8, 128], [16, 8, 256]], word.bits(75, 2)), table::BITS),
        Op::Dmma => (8 * 8 * 4, table::DOUBLES),
        _ => return None,
    })
}
