//! Graphics engine front end: the compute class and inline-to-memory; 3D and 2D answer, but do nothing.

mod checks;
pub(crate) mod inline;
mod launch;
mod methods;
mod qmd;
mod report;
pub(crate) mod sked;

pub use qmd::Qmd;
pub(crate) use sked::Launches;

use super::channel::Turn;
use super::fault;
use super::mem::Accessor;
use super::pbdma::{Flow, Pbdma};
use crate::kernel::hw::Fault;
use methods::{Effect, Trigger};
use tegrarm_abi::methods::compute::*;
use tegrarm_abi::methods::host::{NVC56F_SET_OBJECT, NVC56F_SET_OBJECT_NVCLASS};
use tegrarm_abi::rm::classes::{AMPERE_B, AMPERE_COMPUTE_B, FERMI_TWOD_A, KEPLER_INLINE_TO_MEMORY_B};

/// Classes of subchannels 0–3; the wiring is fixed (gpu-frontend §2.2).
const CLASSES: [(u32, &str); 4] = [
    (AMPERE_B, "3D"),
    (AMPERE_COMPUTE_B, "compute"),
    (KEPLER_INLINE_TO_MEMORY_B, "inline to memory"),
    (FERMI_TWOD_A, "2D"),
];
/// Subchannels with methods of their own.
const COMPUTE: u32 = 1;
const INLINE: u32 = 2;

/// The name of the compute class's method at a byte offset, without its class.
pub fn compute_method_name(offset: u32) -> Option<&'static str> {
    methods::find(offset).map(|method| method.name)
}

/// Executes one method of subchannels 0–3.
pub(crate) fn method(
    pbdma: &mut Pbdma,
    turn: &Turn<'_>,
    subchannel: u32,
    offset: u32,
    data: u32,
) -> Result<Flow, Fault> {
    if offset == NVC56F_SET_OBJECT {
        return set_object(turn, subchannel, data);
    }
    match subchannel {
        COMPUTE => compute(pbdma, turn, offset, data),
        INLINE if offset == NVC6C0_NO_OPERATION || offset == NVC6C0_WAIT_FOR_IDLE => Ok(Flow::Done),
        INLINE if inline::owns(offset) => inline::method(pbdma, turn, 1, offset, data),
        _ => {
            let (class, name) = CLASSES[subchannel as usize];
            let what = format!("method {offset:#x} of {name} class {class:04x}, which this machine does not have");
            Err(fault::illegal_method(turn.hw(), what))
        }
    }
}

/// SET_OBJECT checks the class and remembers nothing.
fn set_object(turn: &Turn<'_>, subchannel: u32, data: u32) -> Result<Flow, Fault> {
    let class = NVC56F_SET_OBJECT_NVCLASS.of(data);
    let (wired, name) = CLASSES[subchannel as usize];
    if class != wired {
        let what = format!("class error: {class:#06x} on subchannel {subchannel}, which is {name} ({wired:#06x})");
        return Err(fault::graphics(turn.hw(), what));
    }
    Ok(Flow::Done)
}

fn compute(pbdma: &mut Pbdma, turn: &Turn<'_>, offset: u32, data: u32) -> Result<Flow, Fault> {
    let Some(method) = methods::find(offset) else {
        let what = format!("method {offset:#x} (data {data:#x}) is not one of class C7C0");
        return Err(fault::illegal_method(turn.hw(), what));
    };
    if offset != NVC6C0_LOAD_INLINE_DATA {
        inline::check_complete(pbdma, turn, 0)?;
    }
    match method.effect {
        Effect::NoOp | Effect::Software => Ok(Flow::Done),
        Effect::Latch => {
            pbdma.context.lock().compute.set(offset, data);
            Ok(Flow::Done)
        }
        Effect::Trigger(trigger) => execute(pbdma, turn, trigger, offset, data),
        Effect::Unhandled => {
            let what = format!("software method {} ({offset:#x}) has no handler", method.name);
            Err(fault::illegal_method(turn.hw(), what))
        }
        Effect::Firmware => Err(fault::firmware_method(turn.hw(), format_args!("{} ({offset:#x})", method.name))),
        Effect::Macro => {
            let what = format!("MME_FE1: call of macro {}, which is not loaded", (offset - method.first) / 8);
            Err(fault::graphics(turn.hw(), what))
        }
    }
}

fn execute(pbdma: &mut Pbdma, turn: &Turn<'_>, trigger: Trigger, offset: u32, data: u32) -> Result<Flow, Fault> {
    match trigger {
        Trigger::Object => set_object(turn, COMPUTE, data),
        Trigger::Inline => inline::method(pbdma, turn, 0, offset, data),
        Trigger::ReportExecute => report::execute(pbdma, turn, data),
        Trigger::ReportD => report::execute_d(pbdma, turn, data),
        Trigger::Notify => notify(pbdma, turn, data),
        Trigger::RefCounter => {
            let select = NVC6C0_SET_CWD_REF_COUNTER_SELECT.of(data) as usize;
            pbdma.context.lock().sked.counters[select] = NVC6C0_SET_CWD_REF_COUNTER_VALUE.of(data);
            Ok(Flow::Done)
        }
        Trigger::InvalidateSked => {
            pbdma.context.lock().sked.forget();
            Ok(Flow::Done)
        }
        // ga10b takes the form of earlier chips and does nothing (gpu-frontend §5, seen on a board).
        Trigger::SignalingPcasB | Trigger::PcasB => {
            tracing::warn!(target: "tegra_sim::gpu", channel = turn.hw().id, "PCAS form {offset:#x} does nothing on ga10b");
            Ok(Flow::Done)
        }
        Trigger::Pcas => sked::pcas(pbdma, turn, data),
        Trigger::InlineQmd => inline_qmd(pbdma, turn, offset, data),
    }
}

/// NOTIFY: a 16-byte record, time first, status zero last; mode 1 interrupts too.
fn notify(pbdma: &mut Pbdma, turn: &Turn<'_>, data: u32) -> Result<Flow, Fault> {
    let va = pbdma.context.lock().compute.pair(NVC6C0_SET_NOTIFY_A, NVC6C0_SET_NOTIFY_A_ADDRESS_UPPER);
    if data > NVC6C0_NOTIFY_TYPE_WRITE_THEN_AWAKEN {
        let what = format!("NOTIFY of type {data:#x} does not exist");
        return Err(fault::illegal_method(turn.hw(), what));
    }
    let table = turn.table();
    let mem = Accessor::new(&table);
    let write = || {
        mem.write_u64(va, super::clock::time_ns())?;
        mem.write_u64(va + 8, 0)
    };
    write().map_err(turn.mmu(fault::FRONT_END))?;
    if data == NVC6C0_NOTIFY_TYPE_WRITE_THEN_AWAKEN {
        turn.non_stall();
    }
    Ok(Flow::Done)
}

/// LOAD_INLINE_QMD_DATA: words go to the inline address; the last one launches.
fn inline_qmd(pbdma: &mut Pbdma, turn: &Turn<'_>, offset: u32, data: u32) -> Result<Flow, Fault> {
    let shifted = {
        let context = pbdma.context.lock();
        let upper = u64::from(context.compute.get(NVC6C0_SET_INLINE_QMD_ADDRESS_A));
        upper << 32 | u64::from(context.compute.get(NVC6C0_SET_INLINE_QMD_ADDRESS_B))
    };
    let (va, at) = (shifted << 8, u64::from(offset - methods::LOAD_INLINE_QMD_DATA));
    if pbdma.launches.is_empty() {
        let table = turn.table();
        Accessor::new(&table).write_u32(va.wrapping_add(at), data).map_err(turn.mmu(fault::FRONT_END))?;
        if offset != methods::LOAD_INLINE_QMD_DATA_END {
            return Ok(Flow::Done);
        }
        pbdma.launches.push(va);
    }
    launch::run_pending(pbdma, turn)
}
