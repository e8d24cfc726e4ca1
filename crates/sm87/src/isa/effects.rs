//! What an instruction does, so that nobody needs a list of opcodes: what it reads and writes, the memory that it accesses, whether
//! control stays with it, and what it costs. A row has one [`Effects`] for all of its words, and the fields of a word say the rest.

use super::cost::Class;
use super::field::Bits;
use super::memory::{Access, Memory, Space};
use crate::word::Word;

/// What the instructions of a row do.
#[derive(Clone, Copy, Debug)]
pub struct Effects {
    /// What it does, as far as others must know it.
    pub does: Does,
    /// The number of registers of each of the three sources. It is 0 where an instruction has nothing in the place of a source. An
    /// instruction that accesses memory has other sources: [`Shape`](super::memory::Shape) says which.
    pub sources: [u8; 3],
    /// Whether control goes on with the next instruction, unless this one fails or waits, and the engine executes it together with
    /// the ones around it.
    pub straight: bool,
    /// Whether it only changes registers and predicates, and depends on nothing else than its sources. It may be executed with other
    /// values to see what becomes of them.
    pub pure: bool,
    /// Which of its words make something of what other lanes hold.
    pub across: Across,
    /// What its result is.
    pub formula: Formula,
    /// What it costs.
    pub class: Class,
}

/// What the result of an instruction is, if it is one register with a whole number, or a pair of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Formula {
    /// The source.
    Copy,
    /// The sum of three sources.
    Sum,
    /// The first source, shifted to the left by a number of the word, plus the second.
    Scaled,
    /// The first source, shifted by the second.
    Shifted,
    /// The product of the first two sources plus the third.
    Product,
    /// The same as a pair.
    Wide,
    /// One register that depends on the sources alone, unless these bits say that it also depends on a predicate.
    Word(Bits),
    /// Anything else.
    Other,
}

/// Which words of a row make something of what other lanes of the warp hold, or of which lanes there are. Products of matrices do not
/// count: all lanes of the warp must have come to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Across {
    /// None.
    Never,
    /// All.
    Always,
    /// Those with bits that are not zero here.
    If(Bits),
}

/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    /// It makes something of its sources.
    Computes,
    /// It compares numbers, so that numbers that are equal make a difference.
    Compares,
    /// It moves parts of registers about, and does not use them.
    Moves,
    /// It combines the bits of registers, each for itself.
    CombinesBits,
    /// It can write every predicate of a thread.
    SetsPredicates,
    /// It reads or changes memory.
    Accesses(Memory),
    /// Threads of a CTA meet at a barrier. If this bit is set, all lanes of a warp come to it together, as PTX's `.aligned` says.
    Meets(u32),
    /// Lanes of a warp meet.
    MeetsLanes,
    /// It orders accesses of its thread for others. These bits say for whom: see [`Scope`](super::memory::Scope).
    Orders(Bits),
    /// The copies so far become a group.
    Groups,
    /// It waits until all groups of copies but so many are complete, or for a scoreboard.
    Awaits {
        /// The number of the scoreboard.
        scoreboard: Bits,
        /// The number of groups that need not be complete.
        but: Bits,
    },
    /// It does something with a cache: these bits say what.
    KeepsCaches(Bits),
    /// Nothing. ptxas leaves such an instruction where lanes that run together anyway would wait for each other.
    Nothing,
    /// The warp sleeps.
    Sleeps,
    /// It does something else: it sends control somewhere, changes the state of the warp, or gives a hint.
    Else,
}

impl Effects {
    /// Arithmetic on registers and predicates.
    pub(super) const fn computes(class: Class) -> Effects {
        let formula = Formula::Other;
        Effects {
            does: Does::Computes,
            sources: [1; 3],
            straight: true,
            pure: true,
            across: Across::Never,
            formula,
            class,
        }
    }

    /// The same, and it says what kind of arithmetic it is.
    #[must_use]
    pub(super) const fn that(self, does: Does) -> Effects {
        Effects { does, ..self }
    }

    /// With so many registers for each source.
    #[must_use]
    pub(super) const fn sources(self, a: u8, b: u8, c: u8) -> Effects {
        Effects { sources: [a, b, c], ..self }
    }

    /// Its result is this.
    #[must_use]
    pub(super) const fn makes(self, formula: Formula) -> Effects {
        Effects { formula, ..self }
    }

    /// What it writes depends on more than its sources.
    #[must_use]
    pub(super) const fn impure(self) -> Effects {
        Effects { pure: false, ..self }
    }

    /// The instruction is executed by itself, and not in a run.
    #[must_use]
    pub(super) const fn alone(self) -> Effects {
        Effects { straight: false, ..self }
    }

    /// It makes something of what other lanes hold.
    #[must_use]
    pub(super) const fn across(self, across: Across) -> Effects {
        Effects { across, ..self }
    }

    /// It reads or changes memory.
    pub(super) const fn accesses(memory: Memory, straight: bool) -> Effects {
        Effects {
            does: Does::Accesses(memory),
            sources: [0; 3],
            straight,
            pure: false,
            ..Effects::computes(Class::Memory)
        }
    }

    /// It computes nothing, but it takes a slot of its scheduler. It has registers in the places of sources.
    pub(super) const fn takes_a_slot() -> Effects {
        Effects { does: Does::Else, ..Effects::computes(Class::Slot).impure().alone() }
    }

    /// The same without sources, and control goes straight on: it has nothing to do, because every instruction is complete before the
    /// next one begins.
    pub(super) const fn hint(does: Does) -> Effects {
        Effects { does, sources: [0; 3], ..Effects::computes(Class::Slot) }
    }

    /// Whether `word` makes something of what other lanes of the warp hold, which may never have come to it.
    pub fn reads_across(&self, word: Word) -> bool {
        match self.across {
            Across::Never => false,
            Across::Always => true,
            Across::If(bits) => bits.of(word) != 0,
        }
    }

    /// Whether it is a load from global memory.
    pub fn loads_global(&self) -> bool {
        self.memory().is_some_and(|memory| (memory.space, memory.access) == (Space::Global, Access::Load))
    }

    /// The memory that it accesses, if it does.
    pub fn memory(&self) -> Option<&Memory> {
        if let Does::Accesses(memory) = &self.does { Some(memory) } else { None }
    }
}
