//! What templates are made of.

use super::field::{Bits, Field};
use super::operand::Operand;

/// A part of a template.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Piece {
    /// Plain text.
    Text(&'static str),
    /// A modifier, behind a point.
    Modifier(Field),
    /// A number.
    Number(Bits, Base),
    /// A predicate destination.
    Destination { lo: u32, comma: Comma },
    /// A predicate source: its number, and above it its inversion.
    Condition { lo: u32, when: When, file: File },
    /// A predicate source that is stored as 7 - n, behind a comma, unless it is PT.
    Complement { lo: u32, not: u32, file: File },
    /// A register.
    Register { lo: u32, file: File },
    /// A destination that is left out when it is RZ, with a comma behind.
    Optional,
    /// A source operand.
    Operand(Operand),
    /// An address in brackets.
    Address(Address),
    /// A branch target: its address.
    Target,
    /// Parts that one instruction alone has.
    Special(Special),
}

/// How a number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    Ten,
    Sixteen,
}

/// Where a comma stands, unless the predicate is PT and left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comma {
    /// There is none, and PT is written.
    None,
    Before,
    Behind,
}

/// When a predicate source is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Always,
    /// Unless it is PT, behind a comma.
    Matters,
    /// Unless it is PT, as the condition of a branch.
    Branches,
    /// If this bit is set, behind a comma.
    Bit(u32),
    /// If this bit is set, unless it is PT, behind a comma.
    BitAndMatters(u32),
}

/// Which registers or predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum File {
    /// Those of the instruction's datapath.
    Own,
    Vector,
    Uniform,
    /// Uniform ones if this bit is set, those of the datapath otherwise.
    UniformIf(u32),
}

/// How an address is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// In global memory, or in any.
    Global(Global),
    /// In shared or local memory: `scaled` if the register may be multiplied, and where the uniform register is.
    Window { scaled: bool, uniform: u32 },
    /// In a constant bank, from a register.
    Constant,
    /// In shared memory, and in global memory: where LDGSTS writes and where it reads.
    Copy,
    /// Of a cache line, for operations that have one.
    Cached,
}

/// A 64-bit address: register, uniform register, offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Global {
    /// This bit says that the uniform operand is a descriptor, which is not written; where there is none, it never is.
    pub descriptor: Option<u32>,
    /// The uniform register.
    pub uniform: u32,
    /// This bit says how wide the register is; always 64 bits where there is none.
    pub pair: Option<u32>,
    /// The offset takes 32 bits when no uniform register is in the way, else 24.
    pub long: bool,
}

/// Parts that one instruction alone has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    /// IMAD that only moves, shifts or adds.
    Alias,
    /// LEA.HI's third operand.
    LeaHigh,
    /// F2FP's operands.
    Pair,
    /// MATCH's predicate.
    Match,
    /// DEPBAR's counters.
    Dependencies,
    /// PLOP3's table, in two parts.
    Lut,
    /// The argument of a BPT that stops.
    TrapCode,
    /// BRA.DIV's and BRA.CONV's lanes.
    NamedLanes,
    /// A branch's uniform condition.
    UniformCondition,
    /// An absolute address.
    Absolute,
    /// A number that is added to a register, unless it is zero.
    Displacement,
    /// An address behind the next instruction, unless bit 85 says that it is absolute.
    Place,
    /// A convergence barrier or a part of a thread's state at this bit.
    Barrier(u32),
    /// BAR's number of threads.
    Threads,
    /// BAR.RED's predicate.
    BarCondition,
    /// ST's data, which the offset moves.
    StoreData,
    /// A special register.
    Register,
}
