//! Controls of the NV2080 interface in all other categories: clocks, timer, copy engines, scheduling and events.
//!
//! Numbers: `tests/data/abi/rm-570.json` (driver 570.86.16).

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static CTRL_2080_ENGINES_STRUCTS: Abi::Rm570;

    /// Parameters of `NV2080_CTRL_CMD_PERF_BOOST`.
    pub struct NV2080_CTRL_PERF_BOOST_PARAMS {
        flags: u32,
        duration: u32,
    }

    /// `NV2080_CTRL_INTERNAL_GR_INFO` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_INTERNAL_GR_INFO {
        index: u32,
        data: u32,
    }

    /// `NV2080_CTRL_INTERNAL_STATIC_GR_INFO` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_INTERNAL_STATIC_GR_INFO {
        infoList: [NV2080_CTRL_INTERNAL_GR_INFO; 58],
    }

    /// Parameters of `NV2080_CTRL_CMD_INTERNAL_STATIC_KGR_GET_INFO`.
    pub struct NV2080_CTRL_INTERNAL_STATIC_KGR_GET_INFO_PARAMS {
        engineInfo: [NV2080_CTRL_INTERNAL_STATIC_GR_INFO; 8],
    }

    /// `NV2080_CTRL_SMC_SUBSCRIPTION_INFO` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_SMC_SUBSCRIPTION_INFO {
        computeInstanceId: u32,
        gpuInstanceId: u32,
    }

    /// Parameters of `NV2080_CTRL_CMD_EVENT_SET_NOTIFICATION`.
    pub struct NV2080_CTRL_EVENT_SET_NOTIFICATION_PARAMS {
        event: u32,
        action: u32,
        bNotifyState: u8,
        _pad0: [u8; 3],
        info32: u32,
        info16: u16,
        _pad1: [u8; 2],
    }

    /// Parameters of `NV2080_CTRL_CMD_TIMER_GET_TIME`.
    pub struct NV2080_CTRL_TIMER_GET_TIME_PARAMS {
        time_nsec: u64,
    }

    /// `NV2080_CTRL_TIMER_GPU_CPU_TIME_SAMPLE` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_TIMER_GPU_CPU_TIME_SAMPLE {
        cpuTime: u64,
        gpuTime: u64,
    }

    /// Parameters of `NV2080_CTRL_CMD_TIMER_GET_GPU_CPU_TIME_CORRELATION_INFO`.
    pub struct NV2080_CTRL_TIMER_GET_GPU_CPU_TIME_CORRELATION_INFO_PARAMS {
        cpuClkId: u8,
        sampleCount: u8,
        _pad0: [u8; 6],
        samples: [NV2080_CTRL_TIMER_GPU_CPU_TIME_SAMPLE; 16],
    }

    /// `NV2080_CTRL_SYSL2_FS_INFO_SYSLTC_MASK_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_SYSL2_FS_INFO_SYSLTC_MASK_PARAMS {
        sysIdx: u32,
        sysl2LtcEnMask: u32,
    }

    /// `NV2080_CTRL_SYSL2_FS_INFO_SYSLTS_MASK_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_SYSL2_FS_INFO_SYSLTS_MASK_PARAMS {
        sysIdx: u32,
        _pad0: [u8; 4],
        sysl2LtsEnMask: u64,
    }

    /// Parameters of `NV2080_CTRL_CMD_MC_GET_ARCH_INFO`.
    pub struct NV2080_CTRL_MC_GET_ARCH_INFO_PARAMS {
        architecture: u32,
        implementation: u32,
        revision: u32,
        subRevision: u8,
        _pad0: [u8; 3],
    }

    /// Parameters of `NV2080_CTRL_CMD_MC_SERVICE_INTERRUPTS`.
    pub struct NV2080_CTRL_MC_SERVICE_INTERRUPTS_PARAMS {
        engines: u32,
    }

    /// Parameters of `NV2080_CTRL_CMD_PERF_GET_CURRENT_PSTATE`.
    pub struct NV2080_CTRL_PERF_GET_CURRENT_PSTATE_PARAMS {
        currPstate: u32,
    }

    /// Parameters of `NV2080_CTRL_CMD_RC_GET_WATCHDOG_INFO`.
    pub struct NV2080_CTRL_RC_GET_WATCHDOG_INFO_PARAMS {
        watchdogStatusFlags: u32,
    }

    /// Parameters of `NV2080_CTRL_CMD_CE_GET_CE_PCE_MASK`.
    pub struct NV2080_CTRL_CE_GET_CE_PCE_MASK_PARAMS {
        ceEngineType: u32,
        pceMask: u32,
    }

    /// Parameters of `NV2080_CTRL_CMD_CE_GET_CAPS_V2`.
    pub struct NV2080_CTRL_CE_GET_CAPS_V2_PARAMS {
        ceEngineType: u32,
        capsTbl: [u8; 2],
        _pad0: [u8; 2],
    }

    /// Parameters of `NV2080_CTRL_CMD_CE_GET_ALL_CAPS`.
    pub struct NV2080_CTRL_CE_GET_ALL_CAPS_PARAMS {
        capsTbl: [[u8; 64]; 2],
        present: u64,
    }

    /// Parameters of `NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS`.
    pub struct NV2080_CTRL_FIFO_DISABLE_CHANNELS_PARAMS {
        bDisable: u8,
        _pad0: [u8; 3],
        numChannels: u32,
        bOnlyDisableScheduling: u8,
        bRewindGpPut: u8,
        _pad1: [u8; 6],
        pRunlistPreemptEvent: u64,
        hClientList: [u32; 64],
        hChannelList: [u32; 64],
    }
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static CTRL_2080_ENGINES_CONSTS: Abi::Rm570;

    NV2080_CTRL_CMD_PERF_BOOST: u32 = 0x2080200a;
    NV2080_CTRL_CMD_INTERNAL_STATIC_KGR_GET_INFO: u32 = 0x20800a2a;
    NV2080_CTRL_CMD_INTERNAL_BUS_FLUSH_WITH_SYSMEMBAR: u32 = 0x20800a70;
    NV2080_CTRL_CMD_EVENT_SET_NOTIFICATION: u32 = 0x20800301;
    NV2080_CTRL_CMD_TIMER_GET_TIME: u32 = 0x20800403;
    NV2080_CTRL_CMD_TIMER_GET_GPU_CPU_TIME_CORRELATION_INFO: u32 = 0x20800406;
    NV2080_CTRL_CMD_MC_GET_ARCH_INFO: u32 = 0x20801701;
    NV2080_CTRL_CMD_MC_SERVICE_INTERRUPTS: u32 = 0x20801702;
    NV2080_CTRL_CMD_PERF_GET_CURRENT_PSTATE: u32 = 0x20802068;
    NV2080_CTRL_CMD_PERF_GET_GPUMON_PERFMON_UTIL_SAMPLES_V2: u32 = 0x20802096;
    NV2080_CTRL_CMD_RC_GET_WATCHDOG_INFO: u32 = 0x20802209;
    NV2080_CTRL_CMD_RC_RELEASE_WATCHDOG_REQUESTS: u32 = 0x2080220c;
    NV2080_CTRL_CMD_RC_SOFT_DISABLE_WATCHDOG: u32 = 0x20802210;
    NV2080_CTRL_CMD_CE_GET_CE_PCE_MASK: u32 = 0x20802a02;
    NV2080_CTRL_CMD_CE_GET_CAPS_V2: u32 = 0x20802a03;
    NV2080_CTRL_CMD_CE_GET_ALL_CAPS: u32 = 0x20802a0a;
    NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS: u32 = 0x2080110b;
    NV2080_CTRL_PERF_BOOST_FLAGS_ASYNC_NO: u32 = 0;
    NV2080_CTRL_PERF_BOOST_FLAGS_ASYNC_YES: u32 = 1;
    NV2080_CTRL_PERF_BOOST_FLAGS_CMD_BOOST_1LEVEL: u32 = 1;
    NV2080_CTRL_PERF_BOOST_FLAGS_CMD_BOOST_TO_MAX: u32 = 2;
    NV2080_CTRL_PERF_BOOST_FLAGS_CMD_CLEAR: u32 = 0;
    NV2080_CTRL_PERF_BOOST_FLAGS_CUDA_NO: u32 = 0;
    NV2080_CTRL_PERF_BOOST_FLAGS_CUDA_PRIORITY_DEFAULT: u32 = 0;
    NV2080_CTRL_PERF_BOOST_FLAGS_CUDA_PRIORITY_HIGH: u32 = 1;
    NV2080_CTRL_PERF_BOOST_FLAGS_CUDA_YES: u32 = 1;
}
