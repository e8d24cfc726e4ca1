//! The pieces of templates.

use super::field::{Bits, Field};
use super::operand::Operand;

/// One piece of a template.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Piece {
    /// Plain text.
    Text(&'static str),
    /// A modifier, written with a point before it.
    Modifier(Field),
    /// A number.
    Number(Bits, Base),
    /// A predicate destination.
    Destination { lo: u32, comma: Comma },
    /// A predicate source: its number, and its inversion in the bit above.
    Condition { lo: u32, when: When, file: File },
    /// A predicate source that is stored as 7 - n. It is written after a comma, unless it is PT.
    Complement { lo: u32, not: u32, file: File },
    /// A register.
    Register { lo: u32, file: File },
    /// A destination with a comma after it. It is not written if it is RZ.
    Optional,
    /// A source operand.
    Operand(Operand),
    /// An address in brackets.
    Address(Address),
    /// The address of a branch target.
    Target,
    /// A piece that only one instruction has.
    Special(Special),
}

/// How a number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    Ten,
    Sixteen,
}

/// The place of the comma of a predicate that is not written if it is PT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comma {
    /// There is no comma, and PT is written.
    None,
    Before,
    Behind,
}

/// The case in which a predicate source is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Always,
    /// It is written after a comma, unless it is PT.
    Matters,
    /// It is written as the condition of a branch, unless it is PT.
    Branches,
    /// It is written after a comma if this bit is set.
    Bit(u32),
    /// It is written after a comma if this bit is set, unless it is PT.
    BitAndMatters(u32),
}

/// The file of registers or predicates that is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum File {
    /// The file of the instruction's datapath.
    Own,
    Vector,
    Uniform,
    /// The uniform file if this bit is set, otherwise the file of the instruction's datapath.
    UniformIf(u32),
}

/// The kinds of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// An address in global memory, or in any memory space.
    Global(Global),
    /// An address in shared or local memory. `scaled` says whether the register may be multiplied, and `uniform` is the
    /// place of the uniform register.
    Window { scaled: bool, uniform: u32 },
    /// An address in a constant bank, in a register.
    Constant,
    /// An address in shared memory and one in global memory: LDGSTS writes to the first and reads from the second.
    Copy,
    /// The address of a cache line, for operations that have one.
    Cached,
}

/// A 64-bit address: a register, a uniform register and an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Global {
    /// The bit that says that the uniform operand is a descriptor, which is not written. If there is no such bit, the
    /// operand is never a descriptor.
    pub descriptor: Option<u32>,
    /// The place of the uniform register.
    pub uniform: u32,
    /// The bit that says how wide the register is. If there is no such bit, it always has 64 bits.
    pub pair: Option<u32>,
    /// Whether the offset has 32 bits if no uniform register uses some of them. Otherwise it has 24 bits.
    pub long: bool,
}

/// Pieces that only one instruction has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    /// The forms of IMAD that only move, shift or add.
    Alias,
    /// The third operand of LEA.HI.
    LeaHigh,
    /// The operands of F2FP.
    Pair,
    /// The predicate of MATCH.
    Match,
    /// The counters of DEPBAR.
    Dependencies,
    /// The table of PLOP3, which is in two places.
    Lut,
    /// The argument of a BPT that stops the grid.
    TrapCode,
    /// The lanes that BRA.DIV and BRA.CONV name.
    NamedLanes,
    /// The uniform condition of a branch.
    UniformCondition,
    /// An absolute address.
    Absolute,
    /// A number that is added to a register, unless it is zero.
    Displacement,
    /// An address relative to the next instruction, which is added to a register.
    Behind,
    /// An address relative to the next instruction, or an absolute address if bit 85 is set.
    Place,
    /// A convergence barrier, or a part of a thread's state, at this bit.
    Barrier(u32),
    /// The number of threads of BAR.
    Threads,
    /// The predicate of BAR.RED.
    BarCondition,
    /// The data of ST, whose place depends on the offset.
    StoreData,
    /// A special register.
    Register,
    /// The metadata of a sparse matrix and the selector of the lanes that hold them. They are printed if this bit is set.
    Metadata(u32),
}
