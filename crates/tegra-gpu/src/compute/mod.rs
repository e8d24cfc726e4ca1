//! The front end of the graphics engine: the compute class and inline-to-memory. The 3D and 2D classes can be selected
//! but do nothing.

mod checks;
pub(crate) mod inline;
mod launch;
mod methods;
mod pcas;
mod qmd;
mod report;
mod schedules;
pub(crate) mod sked;

pub use qmd::Qmd;
use sked::Scheduled;

use super::context::Units;
use super::context::{GrContext, Registers};
use super::fault;
use super::mem::Accessor;
use super::turn::{Flow, Turn};
use methods::{Effect, Methods, Trigger};
use tegra_hw::{Awakening, Fault};
use tegrarm_abi::methods::compute::*;
use tegrarm_abi::methods::host::{NVC56F_SET_OBJECT, NVC56F_SET_OBJECT_NVCLASS};
use tegrarm_abi::rm::classes::{AMPERE_B, AMPERE_COMPUTE_B, FERMI_TWOD_A, KEPLER_INLINE_TO_MEMORY_B};

/// The classes of subchannels 0 to 3, which cannot be changed (docs/hardware/gpu-pushbuffer.md#subchannels).
const CLASSES: [(u32, &str); 4] = [
    (AMPERE_B, "3D"),
    (AMPERE_COMPUTE_B, "compute"),
    (KEPLER_INLINE_TO_MEMORY_B, "inline to memory"),
    (FERMI_TWOD_A, "2D"),
];
/// The value of FE_HWW_ESR with its enable bit, as a board shows it (docs/hardware/gpu-pushbuffer.md#set-object).
const CLASS_SUBCH_MISMATCH: u32 = 1 << 31 | 1 << 1;
/// The two lowest bits of software method 7, which tell nvgpu what to do with check 18 (gr_intr_gv11b.h).
const SKEDCHECK_18: u32 = 3;
const SKEDCHECK_18_DISABLE: u32 = 1;
const SKEDCHECK_18_ENABLE: u32 = 2;
/// The subchannel of the compute class.
const COMPUTE: u32 = 1;
const INLINE: u32 = 2;

/// The name of the method of the compute class at a byte offset. The name of the class is not part of it.
pub fn compute_method_name(offset: u32) -> Option<&'static str> {
    methods::COMPUTE.find(offset).map(|method| method.name)
}

/// Executes one method of subchannels 0 to 3.
pub(crate) fn method(
    units: &mut Units,
    turn: &Turn<'_>,
    subchannel: u32,
    offset: u32,
    data: u32,
) -> Result<Flow, Fault> {
    let (class, name) = CLASSES[subchannel as usize];
    match subchannel {
        COMPUTE => class_method(units, turn, Class::Compute, offset, data),
        INLINE => class_method(units, turn, Class::Inline, offset, data),
        _ if offset == NVC56F_SET_OBJECT => set_object(turn, subchannel, data),
        _ => {
            let what = format!("method {offset:#x} of {name} class {class:04x}, which this machine does not have");
            Err(fault::illegal_method(turn.hw, what))
        }
    }
}

/// The classes that have methods of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// C7C0.
    Compute,
    /// A140.
    Inline,
}

impl Class {
    fn subchannel(self) -> u32 {
        match self {
            Class::Compute => COMPUTE,
            Class::Inline => INLINE,
        }
    }

    fn methods(self) -> &'static Methods {
        match self {
            Class::Compute => &methods::COMPUTE,
            Class::Inline => &methods::INLINE,
        }
    }

    fn registers(self, context: &mut GrContext) -> &mut Registers {
        match self {
            Class::Compute => &mut context.compute,
            Class::Inline => &mut context.inline_class,
        }
    }
}

/// SET_OBJECT: checks the class and stores nothing.
fn set_object(turn: &Turn<'_>, subchannel: u32, data: u32) -> Result<Flow, Fault> {
    let class = NVC56F_SET_OBJECT_NVCLASS.of(data);
    let (wired, name) = CLASSES[subchannel as usize];
    if class != wired {
        let what = format!(
            "fe exception: esr {CLASS_SUBCH_MISMATCH:#010x}: {class:#06x} on subchannel {subchannel}, which is {name} \
             ({wired:#06x})"
        );
        return Err(fault::graphics(turn.hw, what));
    }
    Ok(Flow::Done)
}

fn class_method(units: &mut Units, turn: &Turn<'_>, class: Class, offset: u32, data: u32) -> Result<Flow, Fault> {
    let Some(method) = class.methods().find(offset) else {
        let (id, _) = CLASSES[class.subchannel() as usize];
        let what = format!("method {offset:#x} (data {data:#x}) is not one of class {id:04X}");
        return Err(fault::illegal_method(turn.hw, what));
    };
    if offset != NVC6C0_LOAD_INLINE_DATA {
        units.context.lock().inline[class as usize].check_complete(turn)?;
    }
    match method.effect {
        Effect::NoOp | Effect::Software => Ok(Flow::Done),
        Effect::Latch => {
            class.registers(&mut units.context.lock()).set(offset, data);
            Ok(Flow::Done)
        }
        Effect::Trigger(trigger) => execute(units, turn, class, trigger, (offset, data)),
        Effect::Unhandled => {
            let what = format!("software method {} ({offset:#x}) has no handler", method.name);
            Err(fault::illegal_method(turn.hw, what))
        }
        Effect::Firmware => Err(fault::firmware_method(turn.hw, format_args!("{} ({offset:#x})", method.name))),
        Effect::Macro => {
            let what =
                format!("{}: call of macro {}, which is not loaded", fault::MME_FE1, (offset - method.first) / 8);
            Err(fault::graphics(turn.hw, what))
        }
    }
}

fn execute(
    units: &mut Units,
    turn: &Turn<'_>,
    class: Class,
    trigger: Trigger,
    (offset, data): (u32, u32),
) -> Result<Flow, Fault> {
    match trigger {
        Trigger::Object => set_object(turn, class.subchannel(), data),
        Trigger::Inline => {
            units.context.lock().inline[class as usize].method(turn, offset, data)?;
            Ok(Flow::Done)
        }
        Trigger::Notify => notify(units, turn, class, data),
        Trigger::ReportExecute => report::execute(units, turn, data),
        Trigger::ReportD => report::execute_d(units, turn, data),
        Trigger::RefCounter => {
            let select = NVC6C0_SET_CWD_REF_COUNTER_SELECT.of(data) as usize;
            units.context.lock().sked.counters[select] = NVC6C0_SET_CWD_REF_COUNTER_VALUE.of(data);
            Ok(Flow::Done)
        }
        Trigger::InvalidateSked => {
            units.context.lock().sked.forget();
            Ok(Flow::Done)
        }
        // ga10b accepts the form of earlier chips and does nothing (docs/hardware/gpu-compute-class.md#compute-methods,
        // seen on a board).
        Trigger::SignalingPcasB | Trigger::PcasB => {
            tracing::warn!(target: "tegra_sim::gpu", channel = turn.hw.id, "PCAS form {offset:#x} does nothing on ga10b");
            Ok(Flow::Done)
        }
        // The method is offered again while grids wait for the engine.
        Trigger::Pcas => {
            if units.launches.is_empty() {
                pcas::signal(units, turn, data)?;
            }
            launch::run_pending(units, turn)
        }
        Trigger::InlineQmd => inline_qmd(units, turn, offset, data),
        Trigger::SkedCheck => {
            let check = &mut units.context.lock().sked.checks_l1;
            match data & SKEDCHECK_18 {
                SKEDCHECK_18_DISABLE => *check = false,
                SKEDCHECK_18_ENABLE => *check = true,
                _ => {}
            }
            Ok(Flow::Done)
        }
    }
}

/// NOTIFY: writes a record of 16 bytes, the time first and a status of zero last. Mode 1 also raises an interrupt.
fn notify(units: &mut Units, turn: &Turn<'_>, class: Class, data: u32) -> Result<Flow, Fault> {
    let upper = match class {
        Class::Compute => NVC6C0_SET_NOTIFY_A_ADDRESS_UPPER,
        Class::Inline => inline::A140_UPPER,
    };
    let va = class.registers(&mut units.context.lock()).pair(NVC6C0_SET_NOTIFY_A, upper);
    if data > NVC6C0_NOTIFY_TYPE_WRITE_THEN_AWAKEN {
        let what = format!("NOTIFY of type {data:#x} does not exist");
        return Err(fault::illegal_method(turn.hw, what));
    }
    let table = turn.table();
    let mem = Accessor::new(&table);
    let write = || {
        mem.write_u64(va, turn.ptimer.stamp())?;
        mem.write_u64(va + 8, 0)
    };
    write().map_err(turn.mmu(fault::FRONT_END))?;
    if data == NVC6C0_NOTIFY_TYPE_WRITE_THEN_AWAKEN {
        turn.awaken(Awakening::Notifier);
    }
    Ok(Flow::Done)
}

/// LOAD_INLINE_QMD_DATA: writes words to the inline address. The last word launches the descriptor.
fn inline_qmd(units: &mut Units, turn: &Turn<'_>, offset: u32, data: u32) -> Result<Flow, Fault> {
    let shifted = {
        let context = units.context.lock();
        let upper = u64::from(context.compute.get(NVC6C0_SET_INLINE_QMD_ADDRESS_A));
        upper << 32 | u64::from(context.compute.get(NVC6C0_SET_INLINE_QMD_ADDRESS_B))
    };
    let (va, at) = (shifted << 8, u64::from(offset - methods::LOAD_INLINE_QMD_DATA));
    if units.launches.is_empty() {
        let table = turn.table();
        Accessor::new(&table).write_u32(va.wrapping_add(at), data).map_err(turn.mmu(fault::FRONT_END))?;
        if offset != methods::LOAD_INLINE_QMD_DATA_END {
            return Ok(Flow::Done);
        }
        units.launches.push(Scheduled { qmd: va, copied: false });
    }
    launch::run_pending(units, turn)
}
