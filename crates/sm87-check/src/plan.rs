//! What the checker must know of an instruction, read once when a launch is prepared.

use sm87::Word;
use sm87::isa::memory::{Scope, Shape, forgets_all};
use sm87::isa::{Does, End, Flow, Row};

/// What the checker looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    Nothing,
    Access(Shape),
    /// BAR: whether all lanes of a warp must come to it together, as PTX's `.aligned` says.
    Barrier(bool),
    /// WARPSYNC: whether it orders accesses. The one in front of a shuffle or a vote does not.
    Warpsync(bool),
    /// MEMBAR: for whom it is.
    Fence(Scope),
    /// The end of a fence that acquires.
    Acquires,
    /// NOP, which stands for a WARPSYNC of lanes that run together, or for a fence of the CTA that acquires.
    Nop,
    /// The asynchronous copies so far are a group.
    Groups,
    /// Waits for all groups of copies but so many.
    Awaits(u32),
    /// EXIT.
    Exit,
}

/// The scoreboard of asynchronous copies.
const COPIES: u32 = 0;

impl Plan {
    /// The plan of an instruction, whose row is `row`.
    pub(crate) fn of(row: &Row, word: Word) -> Plan {
        match row.effects.does {
            Does::Accesses(memory) => Plan::Access(memory.shape(word)),
            // ptxas writes DEFER_BLOCKING for aligned barriers alone.
            Does::Meets(aligned) => Plan::Barrier(word.bit(aligned)),
            Does::MeetsLanes => Plan::Warpsync(true),
            Does::KeepsCaches(how) if forgets_all(how.of(word)) => Plan::Acquires,
            Does::Nothing => Plan::Nop,
            Does::Groups => Plan::Groups,
            Does::Awaits { scoreboard, but } if scoreboard.of(word) == COPIES => Plan::Awaits(but.of(word)),
            Does::Orders(scope) => Plan::Fence(Scope::of_fence(scope.of(word))),
            _ if row.flow == Flow::Ends(End::Exit) => Plan::Exit,
            _ => Plan::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sm87::isa::effects::Effects;
    use sm87::isa::memory::{Access, Memory, Size, Space};
    use sm87::isa::{self, Bits};

    /// An instruction of the table, and its row.
    fn move_of_a_register() -> (Word, &'static Row) {
        let word = Word::new(0x0000_0005_0002_7202, 0x000f_e200_0000_0f00);
        (word, isa::lookup(word).expect("MOV"))
    }

    #[test]
    fn what_is_looked_at_in_a_new_row_is_what_its_effects_say() {
        let (word, known) = move_of_a_register();
        let plan = |does, word| Plan::of(&Row { effects: Effects { does, ..known.effects }, ..*known }, word);
        assert_eq!(Plan::of(known, word), Plan::Nothing);
        let memory =
            Memory { space: Space::Shared, access: Access::Store, size: Size::Bytes(8), order: Some(Bits::new(0, 4)) };
        let Plan::Access(shape) = plan(Does::Accesses(memory), word) else { panic!("no access") };
        assert!(shape.writes && !shape.reads && shape.scaled && !shape.atomic && !shape.swaps && !shape.predicated);
        assert_eq!((shape.space, shape.len, shape.strong), (Space::Shared, 8, false));
        let strong = Word(word.0 & !15 | 10);
        assert!(matches!(plan(Does::Accesses(memory), strong), Plan::Access(shape) if shape.strong), "STRONG.SYS");
        assert_eq!(plan(Does::Meets(1), word), Plan::Barrier(true));
        assert_eq!(plan(Does::Meets(2), word), Plan::Barrier(false));
        assert_eq!(plan(Does::MeetsLanes, word), Plan::Warpsync(true));
        assert_eq!(plan(Does::Orders(Bits::new(0, 2)), word), Plan::Fence(Scope::Gpu), "2 is the GPU");
        assert_eq!(plan(Does::Orders(Bits::new(2, 1)), word), Plan::Fence(Scope::Cta), "0 is the CTA");
        assert_eq!(Plan::of(&Row { flow: Flow::Ends(End::Exit), ..*known }, word), Plan::Exit);
    }
}
