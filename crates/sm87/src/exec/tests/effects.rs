//! The engine takes from a row what an instruction does. So it knows a row that is not in the table.

use super::super::chains;
use super::super::dispatch::lower;
use super::super::live::Rows;
use super::super::lower::{Lower, Pool};
use super::super::rows::Dst;
use super::super::straight;
use super::super::uop::Uop;
use crate::isa::memory::{Access, Change, Memory, Space};
use crate::isa::{self, Across, Bits, Does, Effects, Row};
use crate::word::Word;

/// LDG.E R4, desc[UR6][R2.64], and the same with an opcode that no row of the table has.
const LOAD: Word = Word::new(0x0000_0006_0204_7981, 0x000e_a220_0c1e_1900);
const NEW: Word = Word::new(0x0000_0006_0204_79fd, 0x000e_a220_0c1e_1900);
const NUMBER: u16 = 0x1fd;

/// A row for loads with that opcode.
fn load() -> Row {
    Row { base: NUMBER, ..*isa::lookup(LOAD).expect("LDG") }
}

/// The micro-op of the instruction, and the rows that it writes.
fn micro_op(row: &Row) -> (Uop, std::ops::Range<usize>) {
    let mut pool = Pool::default();
    let mut l = Lower::new(NEW, Some(row), (0, 0), &mut pool);
    let u = lower(row.op, &mut l).expect("a load");
    (u, l.written.clone())
}

/// The loads of a chain, and the lengths of runs, in a program of three such instructions.
fn found(row: &Row) -> ([u8; 2], u16) {
    let (u, written) = micro_op(row);
    let mut uops = [0, 1, 2].map(|at| Uop { at, imm: u.imm + 4 * at, ..u });
    let rows = [Some(row); 3];
    chains::link(&mut uops, &rows, &[written.clone(), written.clone(), written], |_| false);
    let runs = straight::find(&uops, &rows);
    ([runs[0].straight, runs[0].loading], uops[1].aux)
}

#[test]
fn a_new_row_is_executed_together_with_others_as_its_effects_say() {
    let row = load();
    assert_eq!(found(&row), ([3, 2], 1), "loads of one chain in one run; the last one has nothing behind it");
    let effects = Effects { straight: false, ..row.effects };
    assert_eq!(found(&Row { effects, ..row }), ([0, 1], 0), "an instruction that is executed by itself");
    let memory = Memory { space: Space::Generic, ..*row.effects.memory().expect("a load") };
    let effects = Effects { does: Does::Accesses(memory), ..row.effects };
    assert_eq!(found(&Row { effects, ..row }), ([3, 0], 0), "only loads from global memory are in chains");
}

#[test]
fn a_new_row_polls_as_its_memory_says() {
    let row = load();
    let strong = Bits::new(77, 4).with(NEW, 10);
    assert!(row.may_poll(strong) && !row.may_poll(NEW), "a load that nothing orders");
    assert!(!row.may_poll(Bits::new(16, 8).with(strong, 255)), "nobody looks at the result");
    let with = |access| {
        let memory = Memory { access, ..*row.effects.memory().expect("a load") };
        Row { effects: Effects { does: Does::Accesses(memory), ..row.effects }, ..row }
    };
    assert!(with(Access::Change(Change::Swap)).may_poll(NEW) && !with(Access::Store).may_poll(strong));
    assert!(!with(Access::Change(Change::Arrival)).may_poll(NEW));
    assert!(!Row { has_destination: false, ..with(Access::Change(Change::Swap)) }.may_poll(NEW));
    let sleeps = Row { effects: Effects { does: Does::Sleeps, ..row.effects }, ..row };
    assert!(sleeps.keeps_time(NEW) && !row.keeps_time(NEW));
}

#[test]
fn a_new_row_has_a_destination_and_reads_other_lanes_as_it_says() {
    let row = load();
    let lowered = |row: &Row| {
        let mut pool = Pool::default();
        let mut l = Lower::new(NEW, Some(row), (0, 0), &mut pool);
        let u = lower(row.op, &mut l).expect("a load");
        (u.d, l.written.clone(), l.touched.by(&u), u.registers)
    };
    let (d, written, touched, _) = lowered(&row);
    assert_eq!((d, written.clone()), (Dst::reg(4), Dst::reg(4).offset() / 32..Dst::reg(5).offset() / 32));
    assert!(touched.overwrites.has(written.start) && !touched.across);
    let (d, written, touched, registers) = lowered(&Row { has_destination: false, ..row });
    assert_eq!((d, written, touched.overwrites), (Dst::SINK, 0..0, Rows::default()));
    assert_eq!(registers, 4, "it reads R2 and R3");
    for (across, reads) in
        [(Across::Always, true), (Across::If(Bits::new(0, 1)), true), (Across::If(Bits::new(1, 1)), false)]
    {
        let effects = Effects { across, ..row.effects };
        assert_eq!(lowered(&Row { effects, ..row }).2.across, reads, "{across:?}");
    }
}
