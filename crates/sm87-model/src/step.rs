//! What the model must know of an instruction, read once when a launch is prepared.

use super::machine::Unit;
use super::table::{self, Latencies, READ, SCHEDULERS};
use sm87::Word;
use sm87::isa::cost::Class;
use sm87::isa::memory::Shape;
use sm87::isa::{Datapath, Does, Flow, Row};

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
    /// The cycles until the result is there, and until the operands are read, for instructions that set a scoreboard. What is far away
    /// takes longer.
    pub latency: u16,
    pub operands: u16,
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
        operands: READ,
        transfers: false,
        kind: Kind::Plain,
    };

    /// The instruction `word`, with its scheduling bits (docs/hardware/sm87-instruction-word.md#scheduling-bits).
    pub(super) fn of(row: Option<&Row>, word: Word) -> Step {
        let field = |lo, len| word.bits(lo, len) as u8;
        let (unit, cost, latency) = row.map_or((Unit::Issue, 1, 4), |row| costs(row, word));
        let Latencies { operands, result } =
            row.and_then(|row| memory(row, word)).unwrap_or(Latencies { operands: READ, result: latency });
        Step {
            stall: until_next(word),
            writes: field(110, 3),
            reads: field(113, 3),
            waits: field(116, 6),
            unit,
            cost,
            latency: result,
            operands,
            transfers: row.is_none_or(|row| row.flow != Flow::Next),
            kind: row.map_or(Kind::Plain, |row| kind(row, word)),
        }
    }
}

/// The cycles until the warp may issue its next instruction: the stall count, and at least two if the word leaves the next cycle to other
/// warps. Huerta et al., sections 4 and 5.1: a yield costs a warp that is alone a cycle if its stall count does not cost that already. The
/// bit is clear in a word that yields.
fn until_next(word: Word) -> u8 {
    let (stall, yields) = (word.bits(105, 4) as u8, word.bits(109, 1) == 0);
    stall.max(if yields { 2 } else { 1 })
}

/// The register that is no register: an address in it is a constant, or in uniform registers.
const RZ: u8 = 255;

/// What depends on an instruction that accesses memory waits so long.
fn memory(row: &Row, word: Word) -> Option<Latencies> {
    let is_uniform = word.bits(24, 8) as u8 == RZ;
    match row.effects.does {
        Does::Accesses(memory) => Some(table::latencies(&memory.shape(word), is_uniform)),
        _ if row.effects.class == Class::Constant && row.datapath != Datapath::Uniform => {
            Some(table::of_constants(is_uniform))
        }
        _ => None,
    }
}

fn kind(row: &Row, word: Word) -> Kind {
    match row.effects.does {
        Does::Groups => Kind::Group,
        Does::Awaits { scoreboard, but } => {
            Kind::Depends { scoreboard: scoreboard.of(word) as u8, but: but.of(word) as u8 }
        }
        Does::Accesses(memory) => Kind::Access(memory.shape(word)),
        Does::Meets(_) => Kind::Barrier,
        _ => Kind::Plain,
    }
}

/// The unit of an instruction, how long it is busy, and the latency.
fn costs(row: &Row, word: Word) -> (Unit, u16, u16) {
    let class = row.effects.class;
    if let Class::Matrix(matrix) = class {
        let busy = matrix.products(word) * SCHEDULERS as u32 / table::products(matrix.elements(word));
        return (Unit::Tensor, busy.max(1) as u16, table::MATRIX.max(busy) as u16);
    }
    let is_elsewhere = row.datapath == Datapath::Uniform && class != Class::Slot;
    let figures = if is_elsewhere { table::UNIFORM } else { table::figures_of(class) };
    let parts = if figures.unit == Unit::LoadStore { 1 } else { SCHEDULERS as u32 };
    let busy = (LANES * parts / figures.lanes).max(1);
    (figures.unit, busy as u16, figures.latency.max(busy) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sm87::isa::cost::{Elements, Matrix};
    use sm87::isa::memory::{Access, Memory, Size, Space};
    use sm87::isa::{self, Bits, Effects, ROWS};

    #[test]
    fn a_new_row_costs_what_its_class_says() {
        let word = Word::new(0x0000_0005_0002_7202, 0x000f_e200_0000_0f00);
        let known = isa::lookup(word).expect("MOV");
        let step = |effects| Step::of(Some(&Row { effects, ..*known }), word);
        let of_class = |class| step(Effects { class, ..known.effects });
        let cost = |step: Step| (step.unit, step.cost, step.latency);
        assert_eq!(cost(of_class(Class::Double)), (Unit::Double, 64, 64));
        assert_eq!(cost(of_class(Class::Slot)), (Unit::Issue, 1, 4));
        let bits = Bits::new(0, 1);
        let (shapes, elements) = (&[[16, 8, 16], [16, 8, 32]], Elements::Bytes);
        let matrix = Matrix { shapes, shape: [Bits::new(1, 1), bits], sparse: None, elements, otherwise: None };
        assert_eq!(cost(of_class(Class::Matrix(matrix))), (Unit::Tensor, 8, 33), "bit 1 of MOV's opcode is set");
        let memory = Memory { space: Space::Global, access: Access::Load, size: Size::Bytes(4), order: None };
        let does = |does| step(Effects { does, ..known.effects }).kind;
        assert_eq!(does(Does::Accesses(memory)), Kind::Access(memory.shape(word)));
        assert_eq!(
            (does(Does::Groups), does(Does::Meets(0)), does(Does::Computes)),
            (Kind::Group, Kind::Barrier, Kind::Plain)
        );
        let awaits = Does::Awaits { scoreboard: Bits::new(1, 1), but: Bits::new(9, 1) };
        assert_eq!(does(awaits), Kind::Depends { scoreboard: 1, but: 1 });
    }

    #[test]
    fn a_word_that_yields_leaves_the_next_cycle_to_others() {
        let word = |stall: u64, stays: u64| Word::new(0, stall << 41 | stays << 45);
        let cycles =
            [(1, 1), (1, 0), (2, 0), (7, 1), (7, 0), (0, 1)].map(|(stall, stays)| until_next(word(stall, stays)));
        assert_eq!(cycles, [1, 2, 2, 7, 7, 1]);
    }

    /// LDG.E R2, [R2.64], LDS R0, [R4], the same at a constant address, and LDC R5, c[0x0][R4].
    #[test]
    fn an_access_has_the_latencies_of_its_kind() {
        let step = |low: u64, high: u64| {
            let word = Word::new(low, high);
            let step = Step::of(isa::lookup(word), word);
            (step.operands, step.latency)
        };
        assert_eq!(step(0x0000_0004_0202_7981, 0x000e_a200_0c1e_1900), (11, 32));
        assert_eq!(step(0x0000_0000_0400_7984, 0x000e_2200_0000_0800), (9, 24));
        assert_eq!(step(0x0000_0000_ff00_7984, 0x000e_2200_0000_0800), (9, 23));
        assert_eq!(step(0x0000_0000_0405_7b82, 0x000e_2200_0000_0800), (29, 29));
        assert_eq!(step(0x0000_0000_ff05_7b82, 0x000e_2200_0000_0800), (10, 26));
    }

    #[test]
    fn only_the_control_of_the_uniform_datapath_has_a_class_of_its_own() {
        for row in ROWS.iter().filter(|row| row.datapath == Datapath::Uniform) {
            let word = Word::new(u64::from(row.base), 0);
            assert_eq!(costs(row, word).0, Unit::Uniform, "{}", row.name);
        }
    }
}
