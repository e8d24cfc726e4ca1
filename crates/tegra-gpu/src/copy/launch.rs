//! LAUNCH_DMA: the checks, the transfer, and then flush, semaphore and interrupt, in this order.

use super::super::clock::host_ns;
use super::super::context::Registers;
use super::super::context::Units;
use super::super::fault::{self, HCE_PRIV, HCE_RE_ALIGNB, HCE_RE_ILLEGAL_OP};
use super::super::mem::Accessor;
use super::super::pace;
use super::super::render::{self, Invalid};
use super::super::semaphore::{Op, Reduction, Release};
use super::super::trace::Event;
use super::super::turn::{Flow, Turn};
use super::SET_SEMAPHORE_PAYLOAD_UPPER;
use super::surface::{BlockLinear, Surface};
use super::transfer::{INVALID_VALUE, Remap, Transfer};
use tegra_hw::{Awakening, Fault};
use tegrarm_abi::layout::Bits;
use tegrarm_abi::methods::copy::*;

// The report codes of a launch error (docs/hardware/gpu-copy-engine.md#launch-dma).
const LAYER_EXCEEDS_DEPTH: u32 = 1;
const INVALID_ALIGNMENT: u32 = 2;
const RECTANGLE_OUT_OF_BOUNDS: u32 = 3;
const SOURCE_EXCEEDS_PITCH: u32 = 4;
const DESTINATION_EXCEEDS_PITCH: u32 = 6;

/// The payload size of the semaphore. Only C7B5 has this field.
const SEMAPHORE_PAYLOAD_SIZE: Bits = Bits { msb: 27, lsb: 27, stride: 0, count: 1 };
/// The number of copied bytes that cost one work unit.
const BYTES_PER_UNIT: u64 = 1024;
/// The largest log2 of the number of GOBs per block.
const BLOCK_MAX: u32 = 5;

type Rejected = (u32, String);

/// Executes LAUNCH_DMA. The method is offered again until the transfer is over.
pub(super) fn launch(units: &mut Units, turn: &Turn<'_>, word: u32) -> Result<Flow, Fault> {
    let mut transfer = match units.transfer.take() {
        Some(transfer) => transfer,
        None => {
            check(turn, word)?;
            Box::new(prepare(turn, &units.context.lock().copy, word)?)
        }
    };
    let work = turn.work();
    let table = turn.table();
    let mem = Accessor::new(&table);
    let used = transfer.advance(&mem, units.left() * BYTES_PER_UNIT).map_err(turn.mmu(fault::COPY))?;
    units.spend(used / BYTES_PER_UNIT);
    if !transfer.finished() {
        units.transfer = Some(transfer);
        return Ok(Flow::Again(used > 0));
    }
    report(turn, &transfer);
    turn.copied(|| transfer.what(), &table, transfer.ranges());
    if let Some(profile) = turn.config.profile.as_ref().filter(|_| transfer.bytes() > 0) {
        profile.copied(turn.hw, (transfer.bytes(), transfer.moved()), work.begun, transfer.started_ns);
    }
    if let Some(speeds) = turn.config.speeds.filter(|_| transfer.bytes() > 0) {
        work.took(pace::copy_ns(speeds, transfer.moved()));
    }
    if let Some(release) = transfer.release {
        let release = Release { timestamp: release.timestamp.map(|_| turn.ptimer.stamp()), ..release };
        turn.release(&table, &release).map_err(turn.mmu(fault::COPY))?;
        turn.semaphore(release.va, "released by copy engine", release.payload);
    }
    interrupt(turn, word);
    Ok(Flow::Done)
}

/// Raises the interrupts at the end of a launch. The kernel clears a blocking interrupt and informs nobody.
fn interrupt(turn: &Turn<'_>, word: u32) {
    let conditional = NVC6B5_LAUNCH_DMA_SEMAPHORE_TYPE_RELEASE_CONDITIONAL_INTR_SEMAPHORE;
    let kind = NVC6B5_LAUNCH_DMA_INTERRUPT_TYPE.of(word);
    if kind == NVC6B5_LAUNCH_DMA_INTERRUPT_TYPE_BLOCKING {
        turn.log(format!("ce blocking pipe interrupt, ch {}", turn.hw.id));
    }
    if kind == NVC6B5_LAUNCH_DMA_INTERRUPT_TYPE_NON_BLOCKING || NVC6B5_LAUNCH_DMA_SEMAPHORE_TYPE.of(word) == conditional
    {
        turn.awaken(Awakening::NonStall);
    }
}

fn report(turn: &Turn<'_>, transfer: &Transfer) {
    if transfer.bytes() == 0 {
        return;
    }
    let address = |s: &Surface| match s {
        Surface::Pitch { va, .. } => *va,
        Surface::Block(b) => b.va,
    };
    turn.trace.emit(|| Event::Copy {
        channel: turn.hw.id,
        from: address(&transfer.from),
        to: address(&transfer.to),
        bytes: transfer.bytes(),
        start_ns: transfer.started_ns,
        end_ns: host_ns(),
    });
}

/// Checks what HCE refuses before the engine sees it.
fn check(turn: &Turn<'_>, word: u32) -> Result<(), Fault> {
    let physical = NVC6B5_LAUNCH_DMA_SRC_TYPE.of(word) == NVC6B5_LAUNCH_DMA_SRC_TYPE_PHYSICAL
        || NVC6B5_LAUNCH_DMA_DST_TYPE.of(word) == NVC6B5_LAUNCH_DMA_DST_TYPE_PHYSICAL;
    if physical {
        turn.interrupt(HCE_PRIV, format_args!("LAUNCH_DMA {word:#x}: physical addresses need a privileged channel"))?;
    }
    Ok(())
}

/// Decodes the registers into a transfer. If conditional execution is off for this launch, the transfer has no lines.
fn prepare(turn: &Turn<'_>, r: &Registers, word: u32) -> Result<Transfer, Fault> {
    let reject = |(report, what): Rejected| fault::copy_engine(turn.hw, report, what);
    valid(word).map_err(reject)?;
    let release = release(r, word).map_err(reject)?;
    let idle = NVC6B5_LAUNCH_DMA_DATA_TRANSFER_TYPE.of(word) == NVC6B5_LAUNCH_DMA_DATA_TRANSFER_TYPE_NONE;
    if idle || !enabled(turn, r)? {
        return Ok(Transfer { release, ..Transfer::nothing(host_ns()) });
    }
    decode(r, word).map(|t| Transfer { release, ..t }).map_err(reject)
}

/// Refuses values of LAUNCH_DMA that are not defined.
fn valid(word: u32) -> Result<(), Rejected> {
    for (name, field, last) in [
        ("transfer", NVC6B5_LAUNCH_DMA_DATA_TRANSFER_TYPE, NVC6B5_LAUNCH_DMA_DATA_TRANSFER_TYPE_NON_PIPELINED),
        ("interrupt", NVC6B5_LAUNCH_DMA_INTERRUPT_TYPE, NVC6B5_LAUNCH_DMA_INTERRUPT_TYPE_NON_BLOCKING),
    ] {
        if field.of(word) > last {
            return Err((INVALID_VALUE, format!("{name} type {}", field.of(word))));
        }
    }
    Ok(())
}

/// Checks what HCE refuses in SET_RENDER_ENABLE_C, after A and B were set.
pub(super) fn check_render_enable(turn: &Turn<'_>, r: &Registers) -> Result<(), Fault> {
    let va = r.pair(NVC6B5_SET_RENDER_ENABLE_A, NVC6B5_SET_RENDER_ENABLE_A_UPPER);
    let mode = NVC6B5_SET_RENDER_ENABLE_C_MODE.of(r.get(NVC6B5_SET_RENDER_ENABLE_C));
    match render::check(va, mode) {
        Ok(()) => Ok(()),
        Err(Invalid::Mode) => turn.interrupt(HCE_RE_ILLEGAL_OP, format_args!("render enable mode {mode}")),
        Err(Invalid::Alignment) => {
            turn.interrupt(HCE_RE_ALIGNB, format_args!("render enable at {va:#x} is not 16-byte aligned"))
        }
    }
}

/// Evaluates conditional execution. The setting was checked when it was made, but B alone may have changed since.
fn enabled(turn: &Turn<'_>, r: &Registers) -> Result<bool, Fault> {
    let va = r.pair(NVC6B5_SET_RENDER_ENABLE_A, NVC6B5_SET_RENDER_ENABLE_A_UPPER);
    let mode = NVC6B5_SET_RENDER_ENABLE_C_MODE.of(r.get(NVC6B5_SET_RENDER_ENABLE_C));
    let table = turn.table();
    render::enabled(&Accessor::new(&table), va, mode).map_err(turn.mmu(fault::COPY))
}

fn decode(r: &Registers, word: u32) -> Result<Transfer, Rejected> {
    let remap = match NVC6B5_LAUNCH_DMA_REMAP_ENABLE.of(word) {
        NVC6B5_LAUNCH_DMA_REMAP_ENABLE_TRUE => {
            let constants = [r.get(NVC6B5_SET_REMAP_CONST_A), r.get(NVC6B5_SET_REMAP_CONST_B)];
            Some(Remap::decode(r.get(NVC6B5_SET_REMAP_COMPONENTS), constants)?)
        }
        _ => None,
    };
    let multi = NVC6B5_LAUNCH_DMA_MULTI_LINE_ENABLE.of(word) == NVC6B5_LAUNCH_DMA_MULTI_LINE_ENABLE_TRUE;
    let elements = u64::from(r.get(NVC6B5_LINE_LENGTH_IN));
    let lines = if multi { u64::from(r.get(NVC6B5_LINE_COUNT)) } else { 1 };
    let sizes = remap.as_ref().map_or((1, 1), |m| (m.read_bytes(), m.write_bytes()));
    let shape = Shape { elements, lines, multi };
    let source = NVC6B5_LAUNCH_DMA_SRC_MEMORY_LAYOUT.of(word) == NVC6B5_LAUNCH_DMA_SRC_MEMORY_LAYOUT_PITCH;
    let target = NVC6B5_LAUNCH_DMA_DST_MEMORY_LAYOUT.of(word) == NVC6B5_LAUNCH_DMA_DST_MEMORY_LAYOUT_PITCH;
    let from = side(r, &SOURCE, source, sizes.0, shape)?;
    let to = side(r, &DESTINATION, target, sizes.1, shape)?;
    Ok(Transfer { from, to, elements, lines, remap, ..Transfer::nothing(host_ns()) })
}

#[derive(Clone, Copy)]
struct Shape {
    elements: u64,
    lines: u64,
    multi: bool,
}

/// The registers of one side of a copy.
struct Side {
    name: &'static str,
    offset: u32,
    upper: Bits,
    pitch: u32,
    exceeds: u32,
    block: u32,
    width: u32,
    height: u32,
    depth: u32,
    layer: u32,
    x: u32,
    y: u32,
}

const SOURCE: Side = Side {
    name: "source",
    offset: NVC6B5_OFFSET_IN_UPPER,
    upper: NVC6B5_OFFSET_IN_UPPER_UPPER,
    pitch: NVC6B5_PITCH_IN,
    exceeds: SOURCE_EXCEEDS_PITCH,
    block: NVC6B5_SET_SRC_BLOCK_SIZE,
    width: NVC6B5_SET_SRC_WIDTH,
    height: NVC6B5_SET_SRC_HEIGHT,
    depth: NVC6B5_SET_SRC_DEPTH,
    layer: NVC6B5_SET_SRC_LAYER,
    x: NVC6B5_SRC_ORIGIN_X,
    y: NVC6B5_SRC_ORIGIN_Y,
};

const DESTINATION: Side = Side {
    name: "destination",
    offset: NVC6B5_OFFSET_OUT_UPPER,
    upper: NVC6B5_OFFSET_OUT_UPPER_UPPER,
    pitch: NVC6B5_PITCH_OUT,
    exceeds: DESTINATION_EXCEEDS_PITCH,
    block: NVC6B5_SET_DST_BLOCK_SIZE,
    width: NVC6B5_SET_DST_WIDTH,
    height: NVC6B5_SET_DST_HEIGHT,
    depth: NVC6B5_SET_DST_DEPTH,
    layer: NVC6B5_SET_DST_LAYER,
    x: NVC6B5_DST_ORIGIN_X,
    y: NVC6B5_DST_ORIGIN_Y,
};

/// Decodes one side of the copy. `element` is the number of bytes per element on this side.
fn side(r: &Registers, s: &Side, pitched: bool, element: u64, shape: Shape) -> Result<Surface, Rejected> {
    let va = r.pair(s.offset, s.upper);
    if pitched {
        let pitch = i64::from(r.get(s.pitch) as i32);
        let line = shape.elements * element;
        if shape.multi && line > pitch.unsigned_abs() {
            // The next code means a line that exceeds a negative pitch.
            let report = s.exceeds + u32::from(pitch < 0);
            return Err((report, format!("{} line of {line} bytes at pitch {pitch}", s.name)));
        }
        return Ok(Surface::Pitch { va, pitch });
    }
    let block = block_linear(r, s, va, element)?;
    let (right, bottom) = (block.x + shape.elements * element, block.y + shape.lines);
    if right > block.width || bottom > block.height {
        let what = format!(
            "{} rectangle ends at byte {right}, row {bottom} of a surface of {} bytes by {} rows",
            s.name, block.width, block.height
        );
        return Err((RECTANGLE_OUT_OF_BOUNDS, what));
    }
    Ok(Surface::Block(block))
}

fn block_linear(r: &Registers, s: &Side, va: u64, element: u64) -> Result<BlockLinear, Rejected> {
    let size = r.get(s.block);
    let height = NVC6B5_SET_SRC_BLOCK_SIZE_HEIGHT.of(size);
    let depth = NVC6B5_SET_SRC_BLOCK_SIZE_DEPTH.of(size);
    let valid = NVC6B5_SET_SRC_BLOCK_SIZE_WIDTH.of(size) == NVC6B5_SET_SRC_BLOCK_SIZE_WIDTH_ONE_GOB
        && height <= BLOCK_MAX
        && depth <= BLOCK_MAX
        && NVC6B5_SET_SRC_BLOCK_SIZE_GOB_HEIGHT.of(size) == NVC6B5_SET_SRC_BLOCK_SIZE_GOB_HEIGHT_GOB_HEIGHT_FERMI_8;
    if !valid {
        return Err((INVALID_VALUE, format!("{} block size {size:#x}", s.name)));
    }
    if !va.is_multiple_of(super::surface::GOB_BYTES) {
        return Err((INVALID_ALIGNMENT, format!("block-linear {} at {va:#x}", s.name)));
    }
    let (layer, slices) = (r.get(s.layer), r.get(s.depth));
    if layer >= slices {
        return Err((LAYER_EXCEEDS_DEPTH, format!("{} layer {layer} of {slices}", s.name)));
    }
    Ok(BlockLinear {
        va,
        width: u64::from(r.get(s.width)) * element,
        height: u64::from(r.get(s.height)),
        block_height: height,
        block_depth: depth,
        x: u64::from(r.get(s.x)) * element,
        y: u64::from(r.get(s.y)),
        layer: u64::from(layer),
    })
}

/// The semaphore of a launch, if it has one.
fn release(r: &Registers, word: u32) -> Result<Option<Release>, Rejected> {
    let kind = NVC6B5_LAUNCH_DMA_SEMAPHORE_TYPE.of(word);
    if kind == NVC6B5_LAUNCH_DMA_SEMAPHORE_TYPE_NONE {
        return Ok(None);
    }
    let wide = SEMAPHORE_PAYLOAD_SIZE.of(word) == 1;
    let stamped = kind == NVC6B5_LAUNCH_DMA_SEMAPHORE_TYPE_RELEASE_FOUR_WORD_SEMAPHORE;
    let va = r.pair(NVC6B5_SET_SEMAPHORE_A, NVC6B5_SET_SEMAPHORE_A_UPPER);
    let align = if stamped {
        16
    } else if wide {
        8
    } else {
        4
    };
    if !va.is_multiple_of(align) {
        return Err((INVALID_ALIGNMENT, format!("semaphore at {va:#x} must be aligned to {align}")));
    }
    let payload = u64::from(r.get(SET_SEMAPHORE_PAYLOAD_UPPER)) << 32 | u64::from(r.get(NVC6B5_SET_SEMAPHORE_PAYLOAD));
    let reduction = match NVC6B5_LAUNCH_DMA_SEMAPHORE_REDUCTION_ENABLE.of(word) {
        NVC6B5_LAUNCH_DMA_SEMAPHORE_REDUCTION_ENABLE_TRUE => {
            let code = NVC6B5_LAUNCH_DMA_SEMAPHORE_REDUCTION.of(word);
            let op = Op::from_host(code).ok_or((INVALID_VALUE, format!("semaphore reduction {code:#x}")))?;
            let sign = NVC6B5_LAUNCH_DMA_SEMAPHORE_REDUCTION_SIGN.of(word);
            Some(Reduction { op, signed: sign == NVC6B5_LAUNCH_DMA_SEMAPHORE_REDUCTION_SIGN_SIGNED })
        }
        _ => None,
    };
    let payload = if wide { payload } else { payload & 0xffff_ffff };
    // The time is that of the release, which is not known yet.
    Ok(Some(Release { va, payload, wide, timestamp: stamped.then_some(0), reduction }))
}
