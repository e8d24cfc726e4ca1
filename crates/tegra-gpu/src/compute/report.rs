//! The two forms of report semaphores of the compute class (docs/hardware/gpu-compute-class.md#compute-methods).

use super::super::between::Acquired;
use super::super::context::Units;
use super::super::fault;
use super::super::mem::Accessor;
use super::super::semaphore::{self, Condition, Op, Reduction, Release};
use super::super::turn::{Flow, Turn};
use super::methods::*;
use tegra_hw::{Awakening, Fault};
use tegra_mm::PageTable;
use tegrarm_abi::layout::Bits;
use tegrarm_abi::methods::compute::*;

const fn bits(msb: u16, lsb: u16) -> Bits {
    Bits { msb, lsb, stride: 0, count: 1 }
}

// Fields of REPORT_SEMAPHORE_EXECUTE, which C7C0 adds.
const OPERATION: Bits = bits(1, 0);
const OPERATION_RELEASE: u32 = 0;
const OPERATION_ACQUIRE: u32 = 1;
const OPERATION_TRAP: u32 = 3;
const AWAKEN: Bits = bits(2, 2);
const STRUCTURE_SIZE: Bits = bits(4, 3);
const STRUCTURE_FOUR_WORDS: u32 = 0;
const STRUCTURE_TWO_WORDS: u32 = 2;
const REDUCTION_ENABLE: Bits = bits(6, 6);
const REDUCTION_OP: Bits = bits(9, 7);
const REDUCTION_SIGNED: Bits = bits(11, 10);
const PAYLOAD_64: Bits = bits(12, 12);
const ADDRESS_UPPER: Bits = bits(7, 0);

/// REPORT_SEMAPHORE_EXECUTE.
pub(super) fn execute(units: &mut Units, turn: &Turn<'_>, word: u32) -> Result<Flow, Fault> {
    let (va, payload) = {
        let r = &units.context.lock().compute;
        let upper = u64::from(ADDRESS_UPPER.of(r.get(SET_REPORT_SEMAPHORE_ADDRESS_UPPER)));
        let high = u64::from(r.get(SET_REPORT_SEMAPHORE_PAYLOAD_UPPER));
        (
            upper << 32 | u64::from(r.get(SET_REPORT_SEMAPHORE_ADDRESS_LOWER)),
            high << 32 | u64::from(r.get(SET_REPORT_SEMAPHORE_PAYLOAD_LOWER)),
        )
    };
    let size = STRUCTURE_SIZE.of(word);
    let wide = PAYLOAD_64.of(word) == 1;
    let table = turn.table();
    match OPERATION.of(word) {
        OPERATION_ACQUIRE => {
            let value = semaphore::read(&Accessor::new(&table), va, wide).map_err(turn.mmu(fault::FRONT_END))?;
            let (condition, done) = (Condition::Equal, Condition::Equal.holds(value, payload, wide));
            if let Some(queues) = turn.queues().filter(|_| done) {
                queues.acquires(turn.hw, &table, Acquired { va, value, condition, payload, wide });
            }
            return Ok(if done { Flow::Done } else { Flow::Again(false) });
        }
        OPERATION_RELEASE => {
            let op = Op::from_graphics(REDUCTION_OP.of(word));
            let reduction = Reduction { op, signed: REDUCTION_SIGNED.of(word) == 1 };
            let release = Release {
                va,
                payload: if wide { payload } else { payload & 0xffff_ffff },
                wide: wide || size == STRUCTURE_TWO_WORDS,
                timestamp: (size == STRUCTURE_FOUR_WORDS).then(|| turn.ptimer.stamp()),
                reduction: (REDUCTION_ENABLE.of(word) == 1).then_some(reduction),
            };
            perform(turn, &table, &release)?;
        }
        OPERATION_TRAP => turn.awaken(Awakening::NonStall),
        op => {
            let what = format!("report semaphore operation {op} (a counter report) does not exist on this machine");
            return Err(fault::graphics(turn.hw, what));
        }
    }
    if AWAKEN.of(word) == 1 {
        turn.awaken(Awakening::Semaphore);
    }
    Ok(Flow::Done)
}

/// SET_REPORT_SEMAPHORE_D.
pub(super) fn execute_d(units: &mut Units, turn: &Turn<'_>, word: u32) -> Result<Flow, Fault> {
    let (va, payload) = {
        let r = &units.context.lock().compute;
        let va = r.pair(NVC6C0_SET_REPORT_SEMAPHORE_A, NVC6C0_SET_REPORT_SEMAPHORE_A_OFFSET_UPPER);
        (va, u64::from(r.get(NVC6C0_SET_REPORT_SEMAPHORE_C)))
    };
    match NVC6C0_SET_REPORT_SEMAPHORE_D_OPERATION.of(word) {
        NVC6C0_SET_REPORT_SEMAPHORE_D_OPERATION_RELEASE => {
            let four = NVC6C0_SET_REPORT_SEMAPHORE_D_STRUCTURE_SIZE.of(word)
                == NVC6C0_SET_REPORT_SEMAPHORE_D_STRUCTURE_SIZE_FOUR_WORDS;
            let reduces = NVC6C0_SET_REPORT_SEMAPHORE_D_REDUCTION_ENABLE.of(word)
                == NVC6C0_SET_REPORT_SEMAPHORE_D_REDUCTION_ENABLE_TRUE;
            let signed = NVC6C0_SET_REPORT_SEMAPHORE_D_REDUCTION_FORMAT.of(word)
                == NVC6C0_SET_REPORT_SEMAPHORE_D_REDUCTION_FORMAT_SIGNED_32;
            let op = Op::from_graphics(NVC6C0_SET_REPORT_SEMAPHORE_D_REDUCTION_OP.of(word));
            let release = Release {
                va,
                payload,
                wide: false,
                timestamp: four.then(|| turn.ptimer.stamp()),
                reduction: reduces.then_some(Reduction { op, signed }),
            };
            let table = turn.table();
            perform(turn, &table, &release)?;
        }
        NVC6C0_SET_REPORT_SEMAPHORE_D_OPERATION_TRAP => turn.awaken(Awakening::NonStall),
        op => {
            let what = format!("SET_REPORT_SEMAPHORE_D operation {op} does not exist");
            return Err(fault::graphics(turn.hw, what));
        }
    }
    if NVC6C0_SET_REPORT_SEMAPHORE_D_AWAKEN_ENABLE.of(word) == NVC6C0_SET_REPORT_SEMAPHORE_D_AWAKEN_ENABLE_TRUE {
        turn.awaken(Awakening::Semaphore);
    }
    Ok(Flow::Done)
}

fn perform(turn: &Turn<'_>, table: &PageTable, release: &Release) -> Result<(), Fault> {
    turn.release(table, release).map_err(turn.mmu(fault::FRONT_END))?;
    turn.semaphore(release.va, "released by compute class", release.payload);
    Ok(())
}
