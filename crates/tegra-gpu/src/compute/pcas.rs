//! PCAS actions. They come from methods and from descriptors that have ended, and change the state of the scheduler
//! (docs/hardware/gpu-compute-class.md#pcas-actions).

use super::super::context::Units;
use super::super::fault;
use super::super::mem::Accessor;
use super::super::turn::Turn;
use super::checks::DEPENDENCE_COUNTER_UNDERFLOW;
use super::qmd::{BYTES, Qmd};
use super::sked::Action;
use tegra_hw::Fault;
use tegrarm_abi::layout::Bits;
use tegrarm_abi::methods::compute::*;
use tegrarm_abi::methods::qmd::*;

// Actions that C7C0 adds to SEND_SIGNALING_PCAS2_B.
const INCREMENT_DEPENDENCE: u32 = 0xc;
const INCREMENT_CWD_REF_COUNTER: u32 = 0xd;
const SELECT: Bits = Bits { msb: 13, lsb: 8, stride: 0, count: 1 };
const OFFSET_MINUS_ONE: Bits = Bits { msb: 23, lsb: 14, stride: 0, count: 1 };

/// Reads a descriptor.
pub(super) fn read(turn: &Turn<'_>, at: u64) -> Result<Qmd, Fault> {
    let mut bytes = [0; BYTES];
    let table = turn.table();
    Accessor::new(&table).read_bytes(at, &mut bytes).map_err(turn.mmu(fault::SKED))?;
    let mut words = [0; BYTES / 4];
    for (word, raw) in words.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*raw);
    }
    Ok(Qmd::new(words))
}

/// SEND_SIGNALING_PCAS2_B: the descriptors that the action starts are added to those that run next.
pub(super) fn signal(units: &mut Units, turn: &Turn<'_>, word: u32) -> Result<(), Fault> {
    let at = u64::from(units.context.lock().compute.get(NVC6C0_SEND_PCAS_A)) << 8;
    let action = match NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION.of(word) {
        // A prefetch only fills a cache.
        NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION_NOP | NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION_PREFETCH => {
            return Ok(());
        }
        NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION_INVALIDATE => {
            units.context.lock().sked.invalidate(at);
            return Ok(());
        }
        NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION_SCHEDULE
        | NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION_PREFETCH_SCHEDULE => Action::Schedule { fresh: false },
        NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION_INVALIDATE_COPY_SCHEDULE
        | NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION_INVALIDATE_PREFETCH_COPY_SCHEDULE => {
            Action::Schedule { fresh: true }
        }
        NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION_INVALIDATE_PREFETCH_COPY_FORCE_REQUIRE_SCHEDULING => Action::Hold,
        NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION_DECREMENT_DEPENDENCE => Action::Decrement,
        INCREMENT_DEPENDENCE => Action::Increment,
        INCREMENT_CWD_REF_COUNTER => {
            let counter = &mut units.context.lock().sked.counters[SELECT.of(word) as usize];
            *counter = counter.wrapping_add(OFFSET_MINUS_ONE.of(word) + 1);
            return Ok(());
        }
        NVC6C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION_INCREMENT_PUT => {
            let what = format!("PCAS action INCREMENT_PUT on descriptor {at:#x}: this machine has no work queues");
            return Err(fault::graphics(turn.hw, what));
        }
        other => {
            let what = format!("PCAS action {other:#x} on descriptor {at:#x} does not exist");
            return Err(fault::graphics(turn.hw, what));
        }
    };
    apply(units, turn, at, action)
}

/// Performs the action that a finished descriptor asks for on its dependent.
pub(super) fn follow(units: &mut Units, turn: &Turn<'_>, at: u64, action: u32) -> Result<(), Fault> {
    let action = match action {
        DEPENDENT_QMD0_ACTION_QMD_SCHEDULE => Action::Schedule { fresh: false },
        DEPENDENT_QMD0_ACTION_QMD_INVALIDATE_COPY_SCHEDULE => Action::Schedule { fresh: true },
        DEPENDENT_QMD0_ACTION_QMD_DECREMENT_DEPENDENCE => Action::Decrement,
        other => {
            let what = format!("dependent action {other} on descriptor {at:#x}: this machine has no work queues");
            return Err(fault::graphics(turn.hw, what));
        }
    };
    apply(units, turn, at, action)
}

fn apply(units: &mut Units, turn: &Turn<'_>, at: u64, action: Action) -> Result<(), Fault> {
    let qmd = read(turn, at)?;
    match units.context.lock().sked.apply(at, &qmd, action) {
        Some(Some(launch)) => units.launches.push(launch),
        Some(None) => {}
        None => {
            let esr = 1u32 << DEPENDENCE_COUNTER_UNDERFLOW;
            let what = format!(
                "{}: esr {esr:#010x} (DEPENDENCE_COUNTER_UNDERFLOW), descriptor {at:#x}",
                fault::SKED_EXCEPTION
            );
            return Err(fault::graphics(turn.hw, what));
        }
    }
    Ok(())
}
