//! Copy engine, class C7B5 (docs/hardware/gpu-copy-engine.md#copy-methods).

mod launch;
mod surface;
mod transfer;

pub(crate) use surface::{BlockLinear, Surface};
pub(crate) use transfer::Transfer;

use super::context::Units;
use super::fault::{HCE_ILLEGAL_CLASS, HCE_ILLEGAL_MTHD};
use super::turn::{Flow, Turn};
use tegra_hw::Fault;
use tegrarm_abi::methods::copy::*;
use tegrarm_abi::methods::host::{NVC56F_SET_OBJECT, NVC56F_SET_OBJECT_NVCLASS};
use tegrarm_abi::rm::classes::AMPERE_DMA_COPY_B;

/// The methods that C7B5 has and C6B5 does not (docs/hardware/gpu-copy-engine.md#copy-methods).
pub(crate) const SET_MONITORED_FENCE_TYPE: u32 = 0x21c;
const SET_MONITORED_FENCE_SIGNAL_ADDR_BASE_UPPER: u32 = 0x220;
const SET_MONITORED_FENCE_SIGNAL_ADDR_BASE_LOWER: u32 = 0x224;
pub(crate) const SET_SEMAPHORE_PAYLOAD_UPPER: u32 = 0x24c;

/// The ranges of methods that only store a value, with first and last offset.
const LATCHED: &[(u32, u32)] = &[
    (NVC6B5_NOP, NVC6B5_NOP),
    (NVC6B5_PM_TRIGGER, NVC6B5_PM_TRIGGER),
    (SET_MONITORED_FENCE_TYPE, SET_MONITORED_FENCE_TYPE),
    (SET_MONITORED_FENCE_SIGNAL_ADDR_BASE_UPPER, SET_MONITORED_FENCE_SIGNAL_ADDR_BASE_LOWER),
    (NVC6B5_SET_SEMAPHORE_A, SET_SEMAPHORE_PAYLOAD_UPPER),
    (NVC6B5_SET_RENDER_ENABLE_A, NVC6B5_SET_RENDER_ENABLE_C),
    (NVC6B5_SET_SRC_PHYS_MODE, NVC6B5_SET_DST_PHYS_MODE),
    (NVC6B5_OFFSET_IN_UPPER, NVC6B5_LINE_COUNT),
    (NVC6B5_SET_REMAP_CONST_A, NVC6B5_SET_DST_ORIGIN),
    (NVC6B5_SET_SRC_BLOCK_SIZE, NVC6B5_SET_SRC_ORIGIN),
    (NVC6B5_SRC_ORIGIN_X, NVC6B5_DST_ORIGIN_Y),
    (NVC6B5_PM_TRIGGER_END, NVC6B5_PM_TRIGGER_END),
];

/// Executes one method of subchannel 4.
pub(crate) fn method(units: &mut Units, turn: &Turn<'_>, offset: u32, data: u32) -> Result<Flow, Fault> {
    match offset {
        NVC56F_SET_OBJECT => {
            let class = NVC56F_SET_OBJECT_NVCLASS.of(data);
            if class != AMPERE_DMA_COPY_B {
                let what = format!("class {class:#06x} on subchannel 4; the copy class is {AMPERE_DMA_COPY_B:#06x}");
                turn.interrupt(HCE_ILLEGAL_CLASS, what)?;
            }
            Ok(Flow::Done)
        }
        NVC6B5_LAUNCH_DMA => launch::launch(units, turn, data),
        _ if LATCHED.iter().any(|(first, last)| (*first..=*last).contains(&offset)) => {
            let mut context = units.context.lock();
            context.copy.set(offset, data);
            packed_origin(&mut context.copy, offset, data);
            if offset == NVC6B5_SET_RENDER_ENABLE_C {
                launch::check_render_enable(turn, &context.copy)?;
            }
            Ok(Flow::Done)
        }
        _ => {
            let what = format!("copy method {offset:#x} (data {data:#x}) is not one of class C7B5");
            turn.interrupt(HCE_ILLEGAL_MTHD, what).map(|()| Flow::Done)
        }
    }
}

/// Stores packed 16-bit origins. They and the 32-bit origins are two views of the same registers.
fn packed_origin(registers: &mut super::context::Registers, offset: u32, data: u32) {
    let (x, y) = match offset {
        NVC6B5_SET_SRC_ORIGIN => (NVC6B5_SRC_ORIGIN_X, NVC6B5_SRC_ORIGIN_Y),
        NVC6B5_SET_DST_ORIGIN => (NVC6B5_DST_ORIGIN_X, NVC6B5_DST_ORIGIN_Y),
        _ => return,
    };
    registers.set(x, NVC6B5_SET_SRC_ORIGIN_X.of(data));
    registers.set(y, NVC6B5_SET_SRC_ORIGIN_Y.of(data));
}
