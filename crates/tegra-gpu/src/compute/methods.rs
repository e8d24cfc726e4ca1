//! The methods of classes C7C0 and A140. Each method has one row (docs/hardware/gpu-compute-class.md#compute-methods).
//!
//! Names and numbers that are the same in class C6C0 come from `tegrarm-abi`. This file adds the methods that only C7C0
//! and A140 have, and those that the headers define as arrays.

use tegrarm_abi::methods::compute::*;

/// The effect of a method besides being stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The value is only stored. A later method may read it.
    Latch,
    /// The method does nothing: caches are coherent here, and the engine is idle when the next method arrives.
    NoOp,
    /// The method does something at once.
    Trigger(Trigger),
    /// A software method that nvgpu's handler accepts. It has no effect.
    Software,
    /// A software method that nvgpu's handler rejects.
    Unhandled,
    /// A firmware method. nvgpu rejects those that it does not implement.
    Firmware,
    /// A method of the macro machine. No macro can be loaded, so calling one is an exception.
    Macro,
}

/// The methods that have a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// SET_OBJECT.
    Object,
    /// NOTIFY.
    Notify,
    /// Inline-to-memory block.
    Inline,
    /// REPORT_SEMAPHORE_EXECUTE.
    ReportExecute,
    /// SET_REPORT_SEMAPHORE_D.
    ReportD,
    /// SET_CWD_REF_COUNTER.
    RefCounter,
    /// INVALIDATE_SKED_CACHES.
    InvalidateSked,
    /// SEND_PCAS_B: the form without a signal, which no known program uses.
    PcasB,
    /// SEND_SIGNALING_PCAS_B, which chips up to Turing use.
    SignalingPcasB,
    /// SEND_SIGNALING_PCAS2_B.
    Pcas,
    /// LOAD_INLINE_QMD_DATA.
    InlineQmd,
    /// Software method 7, which nvgpu reads as SET_SKEDCHECK.
    SkedCheck,
}

/// One row: a method, or an array of methods.
#[derive(Debug)]
pub(crate) struct Method {
    pub(crate) name: &'static str,
    pub(crate) first: u32,
    pub(crate) last: u32,
    pub(crate) effect: Effect,
}

pub(crate) const SET_MME_MEM_ADDRESS: u32 = 0x114;
pub(crate) const SET_MME_SHADOW_RAM_CONTROL: u32 = 0x124;
pub(crate) const SET_REPORT_SEMAPHORE_PAYLOAD_LOWER: u32 = 0x158;
pub(crate) const SET_REPORT_SEMAPHORE_PAYLOAD_UPPER: u32 = 0x15c;
pub(crate) const SET_REPORT_SEMAPHORE_ADDRESS_LOWER: u32 = 0x160;
pub(crate) const SET_REPORT_SEMAPHORE_ADDRESS_UPPER: u32 = 0x164;
pub(crate) const REPORT_SEMAPHORE_EXECUTE: u32 = 0x168;
/// The methods that take the words of an inline QMD.
pub(crate) const LOAD_INLINE_QMD_DATA: u32 = 0x320;
pub(crate) const LOAD_INLINE_QMD_DATA_END: u32 = LOAD_INLINE_QMD_DATA + 4 * 63;

const fn one(name: &'static str, at: u32, effect: Effect) -> Method {
    Method { name, first: at, last: at, effect }
}

const fn many(name: &'static str, first: u32, last: u32, effect: Effect) -> Method {
    Method { name, first, last, effect }
}

use Effect::{Firmware, Latch, Macro, NoOp, Software, Unhandled};
use Trigger::*;

const fn does(trigger: Trigger) -> Effect {
    Effect::Trigger(trigger)
}

/// Every method of class C7C0, sorted by offset.
pub(crate) static COMPUTE: Methods = Methods::new(&[
    one("SET_OBJECT", NVC6C0_SET_OBJECT, does(Object)),
    one("NO_OPERATION", NVC6C0_NO_OPERATION, NoOp),
    many("SET_NOTIFY", NVC6C0_SET_NOTIFY_A, NVC6C0_SET_NOTIFY_B, Latch),
    one("NOTIFY", NVC6C0_NOTIFY, does(Notify)),
    one("WAIT_FOR_IDLE", NVC6C0_WAIT_FOR_IDLE, NoOp),
    many("LOAD_MME", SET_MME_MEM_ADDRESS, SET_MME_SHADOW_RAM_CONTROL, Latch),
    many("SET_GLOBAL_RENDER_ENABLE", NVC6C0_SET_GLOBAL_RENDER_ENABLE_A, NVC6C0_SET_GLOBAL_RENDER_ENABLE_C, Latch),
    one("SEND_GO_IDLE", NVC6C0_SEND_GO_IDLE, NoOp),
    one("PM_TRIGGER", NVC6C0_PM_TRIGGER, NoOp),
    one("PM_TRIGGER_WFI", NVC6C0_PM_TRIGGER_WFI, NoOp),
    many("FE_ATOMIC_SEQUENCE", NVC6C0_FE_ATOMIC_SEQUENCE_BEGIN, NVC6C0_FE_ATOMIC_SEQUENCE_END, NoOp),
    many(
        "SET_INSTRUMENTATION_METHOD",
        NVC6C0_SET_INSTRUMENTATION_METHOD_HEADER,
        NVC6C0_SET_INSTRUMENTATION_METHOD_DATA,
        Latch,
    ),
    many("SET_REPORT_SEMAPHORE_PAYLOAD", SET_REPORT_SEMAPHORE_PAYLOAD_LOWER, SET_REPORT_SEMAPHORE_PAYLOAD_UPPER, Latch),
    many("SET_REPORT_SEMAPHORE_ADDRESS", SET_REPORT_SEMAPHORE_ADDRESS_LOWER, SET_REPORT_SEMAPHORE_ADDRESS_UPPER, Latch),
    one("REPORT_SEMAPHORE_EXECUTE", REPORT_SEMAPHORE_EXECUTE, does(ReportExecute)),
    many("INLINE_TO_MEMORY", NVC6C0_LINE_LENGTH_IN, NVC6C0_LOAD_INLINE_DATA, does(Inline)),
    many("SET_I2M_SEMAPHORE", NVC6C0_SET_I2M_SEMAPHORE_A, NVC6C0_SET_I2M_SEMAPHORE_C, does(Inline)),
    one("SET_SM_SCG_CONTROL", NVC6C0_SET_SM_SCG_CONTROL, Latch),
    one("SET_MME_SWITCH_STATE", 0x1ec, Latch),
    many("SET_I2M_SPARE_NOOP", NVC6C0_SET_I2M_SPARE_NOOP00, NVC6C0_SET_I2M_SPARE_NOOP03, NoOp),
    many(
        "SET_VALID_SPAN_OVERFLOW_AREA",
        NVC6C0_SET_VALID_SPAN_OVERFLOW_AREA_A,
        NVC6C0_SET_VALID_SPAN_OVERFLOW_AREA_C,
        Latch,
    ),
    one("PERFMON_TRANSFER", NVC6C0_PERFMON_TRANSFER, NoOp),
    many(
        "SET_QMD_VIRTUALIZATION_BASE",
        NVC6C0_SET_QMD_VIRTUALIZATION_BASE_A,
        NVC6C0_SET_QMD_VIRTUALIZATION_BASE_B,
        Latch,
    ),
    one("INVALIDATE_SHADER_CACHES", NVC6C0_INVALIDATE_SHADER_CACHES, NoOp),
    one("SET_RESERVED_SW_METHOD00", NVC6C0_SET_RESERVED_SW_METHOD00, Software),
    many("SET_RESERVED_SW_METHOD01", NVC6C0_SET_RESERVED_SW_METHOD01, NVC6C0_SET_RESERVED_SW_METHOD02, Unhandled),
    one("SET_RESERVED_SW_METHOD03", NVC6C0_SET_RESERVED_SW_METHOD03, Software),
    many("SET_RESERVED_SW_METHOD04", NVC6C0_SET_RESERVED_SW_METHOD04, NVC6C0_SET_RESERVED_SW_METHOD05, Unhandled),
    one("SET_RESERVED_SW_METHOD06", NVC6C0_SET_RESERVED_SW_METHOD06, Software),
    one("SET_RESERVED_SW_METHOD07", NVC6C0_SET_RESERVED_SW_METHOD07, does(SkedCheck)),
    one("INVALIDATE_TEXTURE_HEADER_CACHE_NO_WFI", NVC6C0_INVALIDATE_TEXTURE_HEADER_CACHE_NO_WFI, NoOp),
    one("SET_CWD_REF_COUNTER", NVC6C0_SET_CWD_REF_COUNTER, does(RefCounter)),
    many("SET_RESERVED_SW_METHOD08", NVC6C0_SET_RESERVED_SW_METHOD08, NVC6C0_SET_RESERVED_SW_METHOD15, Unhandled),
    one("SET_SCG_CONTROL", NVC6C0_SET_SCG_CONTROL, Latch),
    many("COMPUTE_CLASS_VERSION", NVC6C0_SET_COMPUTE_CLASS_VERSION, NVC6C0_CHECK_COMPUTE_CLASS_VERSION, Latch),
    one("SET_QMD_VERSION", NVC6C0_SET_QMD_VERSION, Latch),
    one("CHECK_QMD_VERSION", NVC6C0_CHECK_QMD_VERSION, Latch),
    one("INVALIDATE_SKED_CACHES", NVC6C0_INVALIDATE_SKED_CACHES, does(InvalidateSked)),
    one("SET_QMD_VIRTUALIZATION_CONTROL", NVC6C0_SET_QMD_VIRTUALIZATION_CONTROL, Latch),
    many(
        "SET_SHADER_SHARED_MEMORY_WINDOW",
        NVC6C0_SET_SHADER_SHARED_MEMORY_WINDOW_A,
        NVC6C0_SET_SHADER_SHARED_MEMORY_WINDOW_B,
        Latch,
    ),
    one("SCG_HYSTERESIS_CONTROL", NVC6C0_SCG_HYSTERESIS_CONTROL, Latch),
    one("SET_CWD_SLOT_COUNT", NVC6C0_SET_CWD_SLOT_COUNT, Latch),
    one("SEND_PCAS_A", NVC6C0_SEND_PCAS_A, Latch),
    one("SEND_PCAS_B", NVC6C0_SEND_PCAS_B, does(PcasB)),
    one("SEND_SIGNALING_PCAS_B", NVC6C0_SEND_SIGNALING_PCAS_B, does(SignalingPcasB)),
    one("SEND_SIGNALING_PCAS2_B", NVC6C0_SEND_SIGNALING_PCAS2_B, does(Pcas)),
    one("SET_SKED_CACHE_CONTROL", NVC6C0_SET_SKED_CACHE_CONTROL, Latch),
    many(
        "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED",
        NVC6C0_SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A,
        NVC6C0_SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_C,
        Latch,
    ),
    one("SET_SPA_VERSION", NVC6C0_SET_SPA_VERSION, Latch),
    many("SET_INLINE_QMD_ADDRESS", NVC6C0_SET_INLINE_QMD_ADDRESS_A, NVC6C0_SET_INLINE_QMD_ADDRESS_B, Latch),
    many("LOAD_INLINE_QMD_DATA", LOAD_INLINE_QMD_DATA, LOAD_INLINE_QMD_DATA_END, does(InlineQmd)),
    many("SET_FALCON", NVC6C0_SET_FALCON00, NVC6C0_SET_FALCON15, Firmware),
    many("MME_DMA", 0x550, 0x574, Latch),
    many("SET_SHADER_LOCAL_MEMORY", NVC6C0_SET_SHADER_LOCAL_MEMORY_A, NVC6C0_SET_SHADER_LOCAL_MEMORY_B, Latch),
    many(
        "SET_SHADER_LOCAL_MEMORY_WINDOW",
        NVC6C0_SET_SHADER_LOCAL_MEMORY_WINDOW_A,
        NVC6C0_SET_SHADER_LOCAL_MEMORY_WINDOW_B,
        Latch,
    ),
    one("SET_SHADER_LOCAL_MEMORY_THROTTLED", 0x7fc, Latch),
    one("SET_SHADER_CACHE_CONTROL", NVC6C0_SET_SHADER_CACHE_CONTROL, Latch),
    many("SET_SCG_COMPUTE_SCHEDULING_PARAMETERS", 0xda0, 0xddc, Latch),
    one("SET_SM_TIMEOUT_INTERVAL", NVC6C0_SET_SM_TIMEOUT_INTERVAL, Latch),
    one("MME_DMA_WRITE_METHOD_BARRIER", 0xdec, Latch),
    one("INVALIDATE_TEXTURE_DATA_CACHE_NO_WFI", NVC6C0_INVALIDATE_TEXTURE_DATA_CACHE_NO_WFI, NoOp),
    one("ACTIVATE_PERF_SETTINGS", NVC6C0_ACTIVATE_PERF_SETTINGS_FOR_COMPUTE_CONTEXT, Latch),
    many("INVALIDATE_TEXTURE_CACHES", NVC6C0_INVALIDATE_SAMPLER_CACHE, NVC6C0_INVALIDATE_TEXTURE_DATA_CACHE, NoOp),
    one("INVALIDATE_SAMPLER_CACHE_NO_WFI", NVC6C0_INVALIDATE_SAMPLER_CACHE_NO_WFI, NoOp),
    one("SET_SHADER_EXCEPTIONS", NVC6C0_SET_SHADER_EXCEPTIONS, Software),
    many("SET_RENDER_ENABLE", NVC6C0_SET_RENDER_ENABLE_A, NVC6C0_SET_RENDER_ENABLE_C, Latch),
    many("SET_TEX_SAMPLER_POOL", NVC6C0_SET_TEX_SAMPLER_POOL_A, NVC6C0_SET_TEX_SAMPLER_POOL_C, Latch),
    many("SET_TEX_HEADER_POOL", NVC6C0_SET_TEX_HEADER_POOL_A, NVC6C0_SET_TEX_HEADER_POOL_C, Latch),
    one("INVALIDATE_SHADER_CACHES_NO_WFI", NVC6C0_INVALIDATE_SHADER_CACHES_NO_WFI, NoOp),
    one("SET_RENDER_ENABLE_OVERRIDE", NVC6C0_SET_RENDER_ENABLE_OVERRIDE, Latch),
    one("PIPE_NOP", NVC6C0_PIPE_NOP, NoOp),
    many("SET_SPARE", NVC6C0_SET_SPARE00, NVC6C0_SET_SPARE03, NoOp),
    many("SET_REPORT_SEMAPHORE", NVC6C0_SET_REPORT_SEMAPHORE_A, NVC6C0_SET_REPORT_SEMAPHORE_C, Latch),
    one("SET_REPORT_SEMAPHORE_D", NVC6C0_SET_REPORT_SEMAPHORE_D, does(ReportD)),
    many("SET_TRAP_HANDLER", NVC6C0_SET_TRAP_HANDLER_A, NVC6C0_SET_TRAP_HANDLER_B, Latch),
    one("SET_BINDLESS_TEXTURE", NVC6C0_SET_BINDLESS_TEXTURE, Latch),
    many("SHADER_PERFORMANCE_COUNTERS", 0x32f4, NVC6C0_SET_SHADER_PERFORMANCE_COUNTER_CORE_MIO_FILTER, Latch),
    many("SET_MME_SHADOW_SCRATCH", 0x3400, 0x37fc, Latch),
    many("CALL_MME_MACRO", 0x3800, 0x3ffc, Macro),
]);

/// Every method of class A140, sorted by offset. Methods that C7C0 has too have the same offsets there.
pub(crate) static INLINE: Methods = Methods::new(&[
    one("SET_OBJECT", NVC6C0_SET_OBJECT, does(Object)),
    one("NO_OPERATION", NVC6C0_NO_OPERATION, NoOp),
    many("SET_NOTIFY", NVC6C0_SET_NOTIFY_A, NVC6C0_SET_NOTIFY_B, Latch),
    one("NOTIFY", NVC6C0_NOTIFY, does(Notify)),
    one("WAIT_FOR_IDLE", NVC6C0_WAIT_FOR_IDLE, NoOp),
    many("SET_GLOBAL_RENDER_ENABLE", NVC6C0_SET_GLOBAL_RENDER_ENABLE_A, NVC6C0_SET_GLOBAL_RENDER_ENABLE_C, Latch),
    one("SEND_GO_IDLE", NVC6C0_SEND_GO_IDLE, NoOp),
    one("PM_TRIGGER", NVC6C0_PM_TRIGGER, NoOp),
    one("PM_TRIGGER_WFI", NVC6C0_PM_TRIGGER_WFI, NoOp),
    many(
        "SET_INSTRUMENTATION_METHOD",
        NVC6C0_SET_INSTRUMENTATION_METHOD_HEADER,
        NVC6C0_SET_INSTRUMENTATION_METHOD_DATA,
        Latch,
    ),
    many("INLINE_TO_MEMORY", NVC6C0_LINE_LENGTH_IN, NVC6C0_LOAD_INLINE_DATA, does(Inline)),
    many("SET_I2M_SEMAPHORE", NVC6C0_SET_I2M_SEMAPHORE_A, NVC6C0_SET_I2M_SEMAPHORE_C, does(Inline)),
    many("SET_I2M_SPARE_NOOP", NVC6C0_SET_I2M_SPARE_NOOP00, NVC6C0_SET_I2M_SPARE_NOOP03, NoOp),
    many("SET_FALCON", 0x200, 0x27c, Firmware),
    many("SET_RENDER_ENABLE", NVC6C0_SET_RENDER_ENABLE_A, NVC6C0_SET_RENDER_ENABLE_C, Latch),
]);

/// The methods of a class, which have offsets of 14 bits.
pub(crate) struct Methods {
    rows: &'static [Method],
    /// One more than the row of each method, by its offset in words. It is zero where there is none.
    at: [u8; 1 << 12],
}

impl Methods {
    const fn new(rows: &'static [Method]) -> Methods {
        assert!(rows.len() < u8::MAX as usize);
        let (mut at, mut row) = ([0; 1 << 12], 0);
        while row < rows.len() {
            let (mut word, last) = (rows[row].first as usize / 4, rows[row].last as usize / 4);
            row += 1;
            while word <= last {
                assert!(at[word] == 0, "each method has one row");
                at[word] = row as u8;
                word += 1;
            }
        }
        Methods { rows, at }
    }

    /// The row that contains a method.
    pub(crate) fn find(&self, offset: u32) -> Option<&'static Method> {
        let row = *self.at.get(offset as usize / 4)?;
        self.rows.get(usize::from(row).checked_sub(1)?)
    }
}
