//! RM numbers outside of the 570 tables: layouts that newer or older drivers lay out differently, further
//! classes and controls.
//!
//! A suffix `_V580` names the first driver generation with that layout; the 570 form has none. The escapes
//! and controls are told apart by size, UVM calls by the reported version. Numbers and where each comes
//! from: `tests/data/abi/extra.json`.

use crate::layout::*;
use crate::rm::alloc::NV_MEMORY_DESC_PARAMS;
use crate::rm::ctrl_0080::NV0080_CTRL_GR_ROUTE_INFO;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static EXTRA_STRUCTS: Abi::Extra;

    /// Argument of `NV_ESC_RM_MAP_MEMORY_DMA` from driver 580 on; told from the 570 form by its size.
    pub struct NVOS46_PARAMETERS_V580 {
        hClient: u32,
        hDevice: u32,
        hDma: u32,
        hMemory: u32,
        offset: u64,
        length: u64,
        flags: u32,
        flags2: u32,
        kindOverride: u32,
        _pad0: [u8; 4],
        dmaOffset: u64,
        status: u32,
        _pad1: [u8; 4],
    }

    /// Allocation parameters of `FERMI_VASPACE_A` from driver 580 on.
    pub struct NV_VASPACE_ALLOCATION_PARAMETERS_V580 {
        index: u32,
        flags: u32,
        vaSize: u64,
        vaStartInternal: u64,
        vaLimitInternal: u64,
        bigPageSize: u32,
        _pad0: [u8; 4],
        vaBase: u64,
        pasid: u32,
        _pad1: [u8; 4],
    }

    /// Allocation parameters of the GPFIFO channel classes before driver 570.
    pub struct NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS_V560 {
        hObjectError: u32,
        hObjectBuffer: u32,
        gpFifoOffset: u64,
        gpFifoEntries: u32,
        flags: u32,
        hContextShare: u32,
        hVASpace: u32,
        hUserdMemory: [u32; 8],
        userdOffset: [u64; 8],
        engineType: u32,
        cid: u32,
        subDeviceId: u32,
        hObjectEccError: u32,
        instanceMem: NV_MEMORY_DESC_PARAMS,
        userdMem: NV_MEMORY_DESC_PARAMS,
        ramfcMem: NV_MEMORY_DESC_PARAMS,
        mthdbufMem: NV_MEMORY_DESC_PARAMS,
        hPhysChannelGroup: u32,
        internalFlags: u32,
        errorNotifierMem: NV_MEMORY_DESC_PARAMS,
        eccErrorNotifierMem: NV_MEMORY_DESC_PARAMS,
        ProcessID: u32,
        SubProcessID: u32,
        encryptIv: [u32; 3],
        decryptIv: [u32; 3],
        hmacNonce: [u32; 8],
    }

    /// Allocation parameters of the GPFIFO channel classes from driver 610 on: a handle inserted at 32.
    pub struct NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS_V610 {
        hObjectError: u32,
        hObjectBuffer: u32,
        gpFifoOffset: u64,
        gpFifoEntries: u32,
        flags: u32,
        hContextShare: u32,
        hVASpace: u32,
        hHandleVASpace: u32,
        hUserdMemory: [u32; 8],
        _pad0: [u8; 4],
        userdOffset: [u64; 8],
        engineType: u32,
        cid: u32,
        subDeviceId: u32,
        hObjectEccError: u32,
        instanceMem: NV_MEMORY_DESC_PARAMS,
        userdMem: NV_MEMORY_DESC_PARAMS,
        ramfcMem: NV_MEMORY_DESC_PARAMS,
        mthdbufMem: NV_MEMORY_DESC_PARAMS,
        hPhysChannelGroup: u32,
        internalFlags: u32,
        errorNotifierMem: NV_MEMORY_DESC_PARAMS,
        eccErrorNotifierMem: NV_MEMORY_DESC_PARAMS,
        ProcessID: u32,
        SubProcessID: u32,
        encryptIv: [u32; 3],
        decryptIv: [u32; 3],
        hmacNonce: [u32; 8],
        tpcConfigID: u32,
        _pad1: [u8; 4],
    }

    /// Parameters of `NVA06C_CTRL_CMD_GPFIFO_SCHEDULE` and `NVA06F_CTRL_CMD_GPFIFO_SCHEDULE` from driver 580 on.
    pub struct NVA06F_CTRL_GPFIFO_SCHEDULE_PARAMS_V580 {
        bEnable: u8,
        bSkipSubmit: u8,
        bSkipEnable: u8,
    }

    /// Argument of `UVM_FREE` from driver 590 on. UVM numbers carry no size: the reported version decides.
    pub struct UVM_FREE_PARAMS_V590 {
        base: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_UNREGISTER_CHANNEL` from driver 590 on.
    pub struct UVM_UNREGISTER_CHANNEL_PARAMS_V590 {
        hClient: u32,
        hChannel: u32,
        rmStatus: u32,
    }

    /// Parameters of `NV0080_CTRL_CMD_GPU_GET_CLASSLIST_V2` from driver 580 on.
    pub struct NV0080_CTRL_GPU_GET_CLASSLIST_V2_PARAMS_V580 {
        numClasses: u32,
        classList: [u32; 200],
    }

    /// Parameters of `NV2080_CTRL_CMD_GPU_GET_INFO_V2` of driver 580: 70 `{index, data}` entries.
    pub struct NV2080_CTRL_GPU_GET_INFO_V2_PARAMS_V580 {
        gpuInfoListSize: u32,
        gpuInfoList: [[u32; 2]; 70],
    }

    /// Parameters of `NV2080_CTRL_CMD_GPU_GET_INFO_V2` of driver 610: 72 `{index, data}` entries.
    pub struct NV2080_CTRL_GPU_GET_INFO_V2_PARAMS_V610 {
        gpuInfoListSize: u32,
        gpuInfoList: [[u32; 2]; 72],
    }

    /// Parameters of `NV2080_CTRL_CMD_FB_GET_INFO_V2` from driver 580 on: 128 `{index, data}` entries.
    pub struct NV2080_CTRL_FB_GET_INFO_V2_PARAMS_V580 {
        fbInfoListSize: u32,
        fbInfoList: [[u32; 2]; 128],
    }

    /// Parameters of `NV2080_CTRL_CMD_GPU_GET_NAME_STRING` of driver 610: no UTF-16 form any more.
    pub struct NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS_V610 {
        gpuNameStringFlags: u32,
        gpuNameString: [u8; 64],
    }

    /// Parameters of `NV0000_CTRL_CMD_GPU_GET_PROBED_IDS` from driver 580 on.
    pub struct NV0000_CTRL_GPU_GET_PROBED_IDS_PARAMS_V580 {
        gpuIds: [u32; 32],
        excludedGpuIds: [u32; 32],
        gpuFlags: [u32; 32],
    }

    /// Parameters of `NV2080_CTRL_CMD_GR_GET_GLOBAL_SM_ORDER` from driver 580 on: nine `u16` per SM.
    pub struct NV2080_CTRL_GR_GET_GLOBAL_SM_ORDER_PARAMS_V580 {
        globalSmId: [[u16; 9]; 512],
        numSm: u16,
        numTpc: u16,
        _pad0: [u8; 4],
        grRouteInfo: NV0080_CTRL_GR_ROUTE_INFO,
    }

    /// Allocation parameters of the DMA copy classes.
    pub struct NVB0B5_ALLOCATION_PARAMETERS {
        version: u32,
        engineType: u32,
    }

    /// Allocation parameters of `NV01_EVENT` and `NV01_EVENT_OS_EVENT`; `data` is an fd for the latter.
    pub struct NV0005_ALLOC_PARAMETERS {
        hParentClient: u32,
        hSrcResource: u32,
        hClass: u32,
        notifyIndex: u32,
        data: u64,
    }

    /// Parameters of `NV906F_CTRL_GET_CLASS_ENGINEID` and `NVC36F_CTRL_GET_CLASS_ENGINEID`.
    pub struct NV906F_CTRL_GET_CLASS_ENGINEID_PARAMS {
        hObject: u32,
        classEngineID: u32,
        classID: u32,
        engineID: u32,
    }

    /// Parameters of `NV0041_CTRL_CMD_GET_SURFACE_INFO`.
    pub struct NV0041_CTRL_GET_SURFACE_INFO_PARAMS {
        surfaceInfoListSize: u32,
        _pad0: [u8; 4],
        surfaceInfoList: u64,
    }
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static EXTRA_CONSTS: Abi::Extra;

    NV_SEMAPHORE_SURFACE: u32 = 0xda;
    RM_USER_SHARED_DATA: u32 = 0xde;
    NV_IMEX_SESSION: u32 = 0xf1;
    NV2081_BINAPI: u32 = 0x2081;
    MPS_COMPUTE: u32 = 0x900e;
    NVENC_SW_SESSION: u32 = 0xa0bc;
    NV_CONFIDENTIAL_COMPUTE: u32 = 0xcb33;
    NV_COUNTER_COLLECTION_UNIT: u32 = 0xcbca;
    NVB8B0_VIDEO_DECODER: u32 = 0xb8b0;
    NVC4B0_VIDEO_DECODER: u32 = 0xc4b0;
    NVC6B0_VIDEO_DECODER: u32 = 0xc6b0;
    NVC7B0_VIDEO_DECODER: u32 = 0xc7b0;
    NVCDB0_VIDEO_DECODER: u32 = 0xcdb0;
    NVCEB0_VIDEO_DECODER: u32 = 0xceb0;
    NVCFB0_VIDEO_DECODER: u32 = 0xcfb0;
    NVD1B0_VIDEO_DECODER: u32 = 0xd1b0;
    NVD2B0_VIDEO_DECODER: u32 = 0xd2b0;
    NVC4B7_VIDEO_ENCODER: u32 = 0xc4b7;
    NVC7B7_VIDEO_ENCODER: u32 = 0xc7b7;
    NVC9B7_VIDEO_ENCODER: u32 = 0xc9b7;
    NVCEB7_VIDEO_ENCODER: u32 = 0xceb7;
    NVCFB7_VIDEO_ENCODER: u32 = 0xcfb7;
    NVD1B7_VIDEO_ENCODER: u32 = 0xd1b7;
    NVB8D1_VIDEO_NVJPG: u32 = 0xb8d1;
    NVC4D1_VIDEO_NVJPG: u32 = 0xc4d1;
    NVC9D1_VIDEO_NVJPG: u32 = 0xc9d1;
    NVCDD1_VIDEO_NVJPG: u32 = 0xcdd1;
    NVCFD1_VIDEO_NVJPG: u32 = 0xcfd1;
    NVD2D1_VIDEO_NVJPG: u32 = 0xd2d1;
    NVB8FA_VIDEO_OFA: u32 = 0xb8fa;
    NVC6FA_VIDEO_OFA: u32 = 0xc6fa;
    NVC7FA_VIDEO_OFA: u32 = 0xc7fa;
    NVC9FA_VIDEO_OFA: u32 = 0xc9fa;
    NVCDFA_VIDEO_OFA: u32 = 0xcdfa;
    NVCEFA_VIDEO_OFA: u32 = 0xcefa;
    NVCFFA_VIDEO_OFA: u32 = 0xcffa;
    NVD1FA_VIDEO_OFA: u32 = 0xd1fa;
    NVD2FA_VIDEO_OFA: u32 = 0xd2fa;
    AMPERE_CHANNEL_GPFIFO_B: u32 = 0xc76f;
    NV0041_CTRL_CMD_GET_SURFACE_INFO: u32 = 0x410110;
    NV2080_CTRL_CMD_GPU_GET_SKYLINE_INFO: u32 = 0x2080019f;
    NV2080_CTRL_CMD_GPU_ACQUIRE_COMPUTE_MODE_RESERVATION: u32 = 0x20800145;
    NV2080_CTRL_CMD_GPU_RELEASE_COMPUTE_MODE_RESERVATION: u32 = 0x20800146;
    NV906F_CTRL_GET_CLASS_ENGINEID: u32 = 0x906f0101;
    NVC36F_CTRL_GET_CLASS_ENGINEID: u32 = 0xc36f0101;
    NVB0B5_ALLOCATION_PARAMETERS_VERSION_0: u32 = 0;
    NVB0B5_ALLOCATION_PARAMETERS_VERSION_1: u32 = 1;
}
