//! Controls of the NVB0CC interface: command numbers and parameter structures.
//!
//! Numbers: `tests/data/abi/rm-570.json` (driver 570.86.16).

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static CTRL_B0CC_STRUCTS: Abi::Rm570;

    /// Parameters of `NVB0CC_CTRL_CMD_POWER_REQUEST_FEATURES`.
    pub struct NVB0CC_CTRL_POWER_REQUEST_FEATURES_PARAMS {
        globalStatus: u32,
        controlMask: u32,
        statusMask: u32,
    }

    /// Parameters of `NVB0CC_CTRL_CMD_POWER_RELEASE_FEATURES`.
    pub struct NVB0CC_CTRL_POWER_RELEASE_FEATURES_PARAMS {
        controlMask: u32,
    }

    /// Parameters of `NVB0CC_CTRL_CMD_ALLOC_PMA_STREAM`.
    pub struct NVB0CC_CTRL_ALLOC_PMA_STREAM_PARAMS {
        hMemPmaBuffer: u32,
        _pad0: [u8; 4],
        pmaBufferOffset: u64,
        pmaBufferSize: u64,
        hMemPmaBytesAvailable: u32,
        _pad1: [u8; 4],
        pmaBytesAvailableOffset: u64,
        ctxsw: u8,
        _pad2: [u8; 3],
        pmaChannelIdx: u32,
        pmaBufferVA: u64,
    }

    /// Parameters of `NVB0CC_CTRL_CMD_FREE_PMA_STREAM`.
    pub struct NVB0CC_CTRL_FREE_PMA_STREAM_PARAMS {
        pmaChannelIdx: u32,
    }

    /// Parameters of `NVB0CC_CTRL_CMD_RESERVE_HWPM_LEGACY`.
    pub struct NVB0CC_CTRL_RESERVE_HWPM_LEGACY_PARAMS {
        ctxsw: u8,
    }

    /// Parameters of `NVB0CC_CTRL_CMD_RESERVE_PM_AREA_SMPC`.
    pub struct NVB0CC_CTRL_RESERVE_PM_AREA_SMPC_PARAMS {
        ctxsw: u8,
    }

    /// Parameters of `NVB0CC_CTRL_CMD_GET_TOTAL_HS_CREDITS`.
    pub struct NVB0CC_CTRL_GET_TOTAL_HS_CREDITS_PARAMS {
        numCredits: u32,
    }

    /// `NVB0CC_CTRL_PMA_STREAM_HS_CREDITS_STATUS` of the RM user ABI (driver 570).
    pub struct NVB0CC_CTRL_PMA_STREAM_HS_CREDITS_STATUS {
        status: u8,
        entryIndex: u8,
    }

    /// `NVB0CC_CTRL_PMA_STREAM_HS_CREDITS_INFO` of the RM user ABI (driver 570).
    pub struct NVB0CC_CTRL_PMA_STREAM_HS_CREDITS_INFO {
        chipletType: u8,
        chipletIndex: u8,
        numCredits: u16,
    }

    /// Parameters of `NVB0CC_CTRL_CMD_SET_HS_CREDITS`.
    pub struct NVB0CC_CTRL_SET_HS_CREDITS_PARAMS {
        pmaChannelIdx: u8,
        numEntries: u8,
        statusInfo: NVB0CC_CTRL_PMA_STREAM_HS_CREDITS_STATUS,
        creditInfo: [NVB0CC_CTRL_PMA_STREAM_HS_CREDITS_INFO; 63],
    }

    /// `NV2080_CTRL_GPU_REG_OP` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_REG_OP {
        regOp: u8,
        regType: u8,
        regStatus: u8,
        regQuad: u8,
        regGroupMask: u32,
        regSubGroupMask: u32,
        regOffset: u32,
        regValueHi: u32,
        regValueLo: u32,
        regAndNMaskHi: u32,
        regAndNMaskLo: u32,
    }

    /// Parameters of `NVB0CC_CTRL_CMD_EXEC_REG_OPS`.
    pub struct NVB0CC_CTRL_EXEC_REG_OPS_PARAMS {
        regOpCount: u32,
        mode: u32,
        bPassed: u8,
        bDirect: u8,
        _pad0: [u8; 2],
        regOps: [NV2080_CTRL_GPU_REG_OP; 124],
    }

    /// Parameters of `NVB0CC_CTRL_CMD_PMA_STREAM_UPDATE_GET_PUT`.
    pub struct NVB0CC_CTRL_PMA_STREAM_UPDATE_GET_PUT_PARAMS {
        bytesConsumed: u64,
        bUpdateAvailableBytes: u8,
        bWait: u8,
        _pad0: [u8; 6],
        bytesAvailable: u64,
        bReturnPut: u8,
        _pad1: [u8; 7],
        putPtr: u64,
        pmaChannelIdx: u32,
        bOverflowStatus: u8,
        _pad2: [u8; 3],
    }

    /// `NVB0CC_CTRL_CREDIT_POOL_INFO` of the RM user ABI (driver 570).
    pub struct NVB0CC_CTRL_CREDIT_POOL_INFO {
        numCredits: u16,
        poolIndex: u8,
        chipletType: u8,
    }

    /// Parameters of `NVB0CC_CTRL_CMD_GET_CHIPLET_HS_CREDIT_POOL`.
    pub struct NVB0CC_CTRL_GET_CHIPLET_HS_CREDIT_POOL {
        poolInfos: [NVB0CC_CTRL_CREDIT_POOL_INFO; 30],
        poolInfosCount: u32,
    }
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static CTRL_B0CC_CONSTS: Abi::Rm570;

    NVB0CC_CTRL_CMD_POWER_REQUEST_FEATURES: u32 = 0xb0cc0301;
    NVB0CC_CTRL_CMD_POWER_RELEASE_FEATURES: u32 = 0xb0cc0302;
    NVB0CC_CTRL_CMD_ALLOC_PMA_STREAM: u32 = 0xb0cc0105;
    NVB0CC_CTRL_CMD_FREE_PMA_STREAM: u32 = 0xb0cc0106;
    NVB0CC_CTRL_CMD_RESERVE_HWPM_LEGACY: u32 = 0xb0cc0101;
    NVB0CC_CTRL_CMD_RELEASE_HWPM_LEGACY: u32 = 0xb0cc0102;
    NVB0CC_CTRL_CMD_RESERVE_PM_AREA_SMPC: u32 = 0xb0cc0103;
    NVB0CC_CTRL_CMD_RELEASE_PM_AREA_SMPC: u32 = 0xb0cc0104;
    NVB0CC_CTRL_CMD_RESERVE_PM_AREA_PC_SAMPLER: u32 = 0xb0cc010b;
    NVB0CC_CTRL_CMD_RELEASE_PM_AREA_PC_SAMPLER: u32 = 0xb0cc010c;
    NVB0CC_CTRL_CMD_BIND_PM_RESOURCES: u32 = 0xb0cc0107;
    NVB0CC_CTRL_CMD_UNBIND_PM_RESOURCES: u32 = 0xb0cc0108;
    NVB0CC_CTRL_CMD_GET_TOTAL_HS_CREDITS: u32 = 0xb0cc010d;
    NVB0CC_CTRL_CMD_SET_HS_CREDITS: u32 = 0xb0cc010e;
    NVB0CC_CTRL_CMD_GET_CHIPLET_HS_CREDIT_POOL: u32 = 0xb0cc0115;
    NVB0CC_CTRL_CMD_RESERVE_CCU_PROF: u32 = 0xb0cc0119;
    NVB0CC_CTRL_CMD_EXEC_REG_OPS: u32 = 0xb0cc010a;
    NVB0CC_CTRL_CMD_PMA_STREAM_UPDATE_GET_PUT: u32 = 0xb0cc0109;
    NVB0CC_CHIPLET_TYPE_FBP: u32 = 1;
    NVB0CC_CHIPLET_TYPE_GPC: u32 = 2;
    NVB0CC_CHIPLET_TYPE_SYS: u32 = 3;
    NVB0CC_CREDIT_POOL_MAX_COUNT: u32 = 30;
    NVB0CC_CTRL_POWER_FEATURE_IGNORE: u32 = 0;
    NVB0CC_CTRL_POWER_FEATURE_DISABLE: u32 = 1;
    NVB0CC_CTRL_POWER_FEATURE_ENABLE: u32 = 2;
    NVB0CC_CTRL_POWER_FEATURE_RELEASE: u32 = 3;
    NVB0CC_CTRL_POWER_FEATURE_REQUEST_FULFILLED: u32 = 0;
    NVB0CC_CTRL_POWER_FEATURE_REQUEST_REJECTED: u32 = 1;
    NVB0CC_CTRL_POWER_FEATURE_REQUEST_NOT_SUPPORTED: u32 = 2;
    NVB0CC_CTRL_POWER_FEATURE_REQUEST_FAILED: u32 = 3;
    NVB0CC_HS_CREDITS_CMD_STATUS_OK: u32 = 0;
    NVB0CC_HS_CREDITS_CMD_STATUS_INVALID_CREDITS: u32 = 1;
    NVB0CC_HS_CREDITS_CMD_STATUS_INVALID_CHIPLET: u32 = 2;
    NVB0CC_MAX_CREDIT_INFO_ENTRIES: u32 = 63;
    NVB0CC_PMA_BUFFER_SIZE_MAX: u64 = 0xffe0_0000;
    NVB0CC_PMA_BYTES_AVAILABLE_SIZE: u32 = 0x1000;
    NVB0CC_REGOPS_MAX_COUNT: u32 = 124;
    NVB0CC_REGOPS_MODE_ALL_OR_NONE: u32 = 0;
    NVB0CC_REGOPS_MODE_CONTINUE_ON_ERROR: u32 = 1;
}
