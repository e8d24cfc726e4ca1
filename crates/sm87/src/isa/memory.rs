//! How instructions access memory: the space, the size, the order with the accesses of others, and the change that atomics make.

use super::field::Bits;
use crate::word::Word;

/// An access to memory, as a row describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The memory that it names.
    pub space: Space,
    /// What it does there.
    pub access: Access,
    /// How many bytes each lane accesses.
    pub size: Size,
    /// The bits that say how it is ordered with the accesses of others, if there are such bits.
    pub order: Option<Bits>,
}

/// The memory that an instruction names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Global memory.
    Global,
    /// The shared memory of the CTA.
    Shared,
    /// The local memory of the thread.
    Local,
    /// The address says which.
    Generic,
    /// Shared memory, where each lane names a row of a matrix (LDSM).
    Rows,
    /// It reads global memory and writes shared memory (LDGSTS).
    Copy,
}

/// What an instruction does with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It reads.
    Load,
    /// It writes.
    Store,
    /// It reads in one place and writes in another.
    Copy,
    /// It reads and writes at once: an atomic.
    Change(Change),
}

/// The change that an atomic makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The operation with the number in these bits.
    Operation(Bits),
    /// It compares and swaps: the third source is the new value.
    Swap,
    /// It adds one, or arrives at a barrier in memory if these bits say so.
    Count(Bits),
    /// It arrives at a barrier in memory.
    Arrival,
}

/// Where a word says how many bytes a lane accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// In the size field of loads and stores.
    Field(Bits),
    /// In the type field of atomics.
    Type(Bits),
    /// Nowhere: it is always this number.
    Bytes(u32),
}

/// The threads for which an access or a fence is ordered with the accesses of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Those of the CTA.
    Cta,
    /// Those of the SM.
    Sm,
    /// Those of the GPU.
    Gpu,
    /// All, those of the processor included.
    System,
}

/// Whether CCTL with this operation, IVALL, forgets all that a cache knows: a fence that acquires ends with it.
pub fn forgets_all(operation: u32) -> bool {
    operation == 4
}

/// The number of EXCH in the operation field of atomics, and that of `.ARRIVE` in the field of atomics that count.
const EXCHANGE: u32 = 8;
const ARRIVE: u32 = 9;

impl Scope {
    /// The scope of an access with this order. Accesses with other orders are weak: nothing orders them with the accesses of others.
    pub fn of_order(order: u32) -> Option<Scope> {
        match order {
            // STRONG.SM.
            5 => Some(Scope::Sm),
            // STRONG.GPU.PRIVATE, STRONG.GPU and MMIO.GPU.
            6..=8 => Some(Scope::Gpu),
            // STRONG.SYS and MMIO.SYS.
            10 | 12 => Some(Scope::System),
            _ => None,
        }
    }

    /// The scope of a fence.
    pub fn of_fence(scope: u32) -> Scope {
        match scope {
            0 => Scope::Cta,
            1 => Scope::Sm,
            3 => Scope::System,
            // GPU and VC.
            _ => Scope::Gpu,
        }
    }
}

/// The number of bytes that the size field of a load or store stands for. It is also the alignment.
pub const fn bytes(size: u32) -> u32 {
    match size & 7 {
        0 | 1 => 1,
        2 | 3 => 2,
        5 => 8,
        6 => 16,
        _ => 4,
    }
}

/// The number of registers that the size field of a load or store stands for, if there is such a size.
pub const fn registers(size: u32) -> Option<u8> {
    if size < 7 { Some(bytes(size).div_ceil(4) as u8) } else { None }
}

/// Whether the type of an atomic has 64 bits: these are `.64`, `.S64` and `.F64`.
pub const fn is_wide(ty: u32) -> bool {
    matches!(ty, 2 | 5 | 6)
}

/// What the lanes of a word do with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The memory that it names.
    pub space: Space,
    /// The number of bytes for each lane.
    pub len: u32,
    /// Whether it reads.
    pub reads: bool,
    /// Whether it writes.
    pub writes: bool,
    /// The read and the write are one.
    pub atomic: bool,
    /// Lanes for which the second predicate is false do not access memory.
    pub predicated: bool,
    /// The address register is shifted by a field of the modifiers.
    pub scaled: bool,
    /// It is ordered with accesses of other threads ("strong").
    pub strong: bool,
    /// For whom it is, if it is. An atomic whose word does not say it is for the memory's whole reach.
    pub scope: Option<Scope>,
    /// It compares and swaps: the third operand is the new value, and no uniform offset.
    pub swaps: bool,
}

impl Memory {
    /// The number of bytes for each lane.
    pub fn bytes(&self, word: Word) -> u32 {
        match self.size {
            Size::Field(bits) => bytes(bits.of(word)),
            Size::Type(bits) => {
                if is_wide(bits.of(word)) {
                    8
                } else {
                    4
                }
            }
            Size::Bytes(bytes) => bytes,
        }
    }

    /// For whom the access is ordered with the accesses of others. `None` is a weak access.
    pub fn scope(&self, word: Word) -> Option<Scope> {
        Scope::of_order(self.order?.of(word))
    }

    /// Whether programs may wait with the instruction, if they use its result: it tells what others have changed. Among loads, those
    /// do that are ordered with other threads.
    pub fn may_poll(&self, word: Word) -> bool {
        match self.access {
            Access::Load => self.scope(word).is_some(),
            Access::Change(change) => matches!(change, Change::Operation(_) | Change::Swap),
            Access::Store | Access::Copy => false,
        }
    }

    /// Whether it replaces what memory holds, whatever that is.
    pub fn exchanges(&self, word: Word) -> bool {
        matches!(self.access, Access::Change(Change::Operation(bits)) if bits.of(word) == EXCHANGE)
    }

    /// Whether it arrives at a barrier in memory.
    pub fn arrives(&self, word: Word) -> bool {
        match self.access {
            Access::Change(Change::Arrival) => true,
            Access::Change(Change::Count(bits)) => bits.of(word) == ARRIVE,
            _ => false,
        }
    }

    /// What the lanes of `word` do.
    pub fn shape(&self, word: Word) -> Shape {
        let Memory { space, access, .. } = *self;
        let atomic = matches!(access, Access::Change(_));
        let reach = if space == Space::Shared { Scope::Cta } else { Scope::System };
        let scope = self.scope(word).or(atomic.then_some(reach));
        Shape {
            space,
            len: self.bytes(word),
            reads: access != Access::Store,
            writes: access != Access::Load,
            atomic,
            // Loads from a 64-bit address have a predicate source.
            predicated: access == Access::Load && matches!(space, Space::Global | Space::Generic),
            scaled: space == Space::Shared,
            strong: scope.is_some(),
            scope,
            swaps: access == Access::Change(Change::Swap),
        }
    }
}
