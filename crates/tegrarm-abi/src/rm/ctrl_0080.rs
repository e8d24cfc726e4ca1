//! Controls of the NV0080 interface: command numbers and parameter structures.
//!
//! Numbers: `tests/data/abi/rm-570.json` (driver 570.86.16).

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static CTRL_0080_STRUCTS: Abi::Rm570;

    /// Parameters of `NV0080_CTRL_CMD_GPU_GET_CLASSLIST`.
    pub struct NV0080_CTRL_GPU_GET_CLASSLIST_PARAMS {
        numClasses: u32,
        _pad0: [u8; 4],
        classList: u64,
    }

    /// Parameters of `NV0080_CTRL_CMD_GPU_GET_NUM_SUBDEVICES`.
    pub struct NV0080_CTRL_GPU_GET_NUM_SUBDEVICES_PARAMS {
        numSubDevices: u32,
    }

    /// Parameters of `NV0080_CTRL_CMD_GPU_QUERY_SW_STATE_PERSISTENCE`.
    pub struct NV0080_CTRL_GPU_QUERY_SW_STATE_PERSISTENCE_PARAMS {
        swStatePersistence: u32,
    }

    /// Parameters of `NV0080_CTRL_CMD_GPU_GET_VIRTUALIZATION_MODE`.
    pub struct NV0080_CTRL_GPU_GET_VIRTUALIZATION_MODE_PARAMS {
        virtualizationMode: u32,
        isGridBuild: u8,
        _pad0: [u8; 3],
    }

    /// Parameters of `NV0080_CTRL_CMD_GPU_GET_CLASSLIST_V2`.
    pub struct NV0080_CTRL_GPU_GET_CLASSLIST_V2_PARAMS {
        numClasses: u32,
        classList: [u32; 100],
    }

    /// Parameters of `NV0080_CTRL_CMD_GR_GET_CAPS`.
    pub struct NV0080_CTRL_GR_GET_CAPS_PARAMS {
        capsTblSize: u32,
        _pad0: [u8; 4],
        capsTbl: u64,
    }

    /// Parameters of `NV0080_CTRL_CMD_GR_GET_INFO`.
    pub struct NV0080_CTRL_GR_GET_INFO_PARAMS {
        grInfoListSize: u32,
        _pad0: [u8; 4],
        grInfoList: u64,
    }

    /// `NV0080_CTRL_GR_ROUTE_INFO` of the RM user ABI (driver 570).
    pub struct NV0080_CTRL_GR_ROUTE_INFO {
        flags: u32,
        _pad0: [u8; 4],
        route: u64,
    }

    /// Parameters of `NV0080_CTRL_CMD_GR_GET_CAPS_V2`.
    pub struct NV0080_CTRL_GR_GET_CAPS_V2_PARAMS {
        capsTbl: [u8; 23],
        _pad0: [u8; 1],
        grRouteInfo: NV0080_CTRL_GR_ROUTE_INFO,
        bCapsPopulated: u8,
        _pad1: [u8; 7],
    }

    /// Parameters of `NV0080_CTRL_CMD_FB_GET_CAPS`.
    pub struct NV0080_CTRL_FB_GET_CAPS_PARAMS {
        capsTblSize: u32,
        _pad0: [u8; 4],
        capsTbl: u64,
    }

    /// Parameters of `NV0080_CTRL_CMD_FB_GET_CAPS_V2`.
    pub struct NV0080_CTRL_FB_GET_CAPS_V2_PARAMS {
        capsTbl: [u8; 3],
    }

    /// Parameters of `NV0080_CTRL_CMD_HOST_GET_CAPS_V2`.
    pub struct NV0080_CTRL_HOST_GET_CAPS_V2_PARAMS {
        capsTbl: [u8; 3],
    }

    /// Parameters of `NV0080_CTRL_CMD_FIFO_GET_CAPS`.
    pub struct NV0080_CTRL_FIFO_GET_CAPS_PARAMS {
        capsTblSize: u32,
        _pad0: [u8; 4],
        capsTbl: u64,
    }

    /// Parameters of `NV0080_CTRL_CMD_FIFO_GET_ENGINE_CONTEXT_PROPERTIES`.
    pub struct NV0080_CTRL_FIFO_GET_ENGINE_CONTEXT_PROPERTIES_PARAMS {
        engineId: u32,
        alignment: u32,
        size: u32,
    }

    /// Parameters of `NV0080_CTRL_CMD_FIFO_GET_CHANNELLIST`.
    pub struct NV0080_CTRL_FIFO_GET_CHANNELLIST_PARAMS {
        numChannels: u32,
        _pad0: [u8; 4],
        pChannelHandleList: u64,
        pChannelList: u64,
    }

    /// Parameters of `NV0080_CTRL_CMD_FIFO_GET_CAPS_V2`.
    pub struct NV0080_CTRL_FIFO_GET_CAPS_V2_PARAMS {
        capsTbl: [u8; 2],
    }

    /// `NV0080_CTRL_DMA_ADV_SCHED_GET_VA_CAPS_PAGE_TABLE_FORMAT` of the RM user ABI (driver 570).
    pub struct NV0080_CTRL_DMA_ADV_SCHED_GET_VA_CAPS_PAGE_TABLE_FORMAT {
        pageTableSize: u32,
        pageTableCoverage: u32,
    }

    /// Parameters of `NV0080_CTRL_CMD_DMA_ADV_SCHED_GET_VA_CAPS`.
    pub struct NV0080_CTRL_DMA_ADV_SCHED_GET_VA_CAPS_PARAMS {
        vaBitCount: u32,
        pdeCoverageBitCount: u32,
        num4KPageTableFormats: u32,
        bigPageSize: u32,
        compressionPageSize: u32,
        dualPageTableSupported: u32,
        idealVRAMPageSize: u32,
        pageTableBigFormat: NV0080_CTRL_DMA_ADV_SCHED_GET_VA_CAPS_PAGE_TABLE_FORMAT,
        pageTable4KFormat: [NV0080_CTRL_DMA_ADV_SCHED_GET_VA_CAPS_PAGE_TABLE_FORMAT; 16],
        hVASpace: u32,
        vaRangeLo: u64,
        vaSpaceId: u32,
        _pad0: [u8; 4],
        supportedPageSizeMask: u64,
    }

    /// Parameters of `NV0080_CTRL_CMD_DMA_GET_CAPS`.
    pub struct NV0080_CTRL_DMA_GET_CAPS_PARAMS {
        capsTblSize: u32,
        capsTbl: [u8; 8],
    }

    /// Parameters of `NV0080_CTRL_CMD_GR_SET_TPC_PARTITION_MODE`.
    pub struct NV0080_CTRL_GR_SET_TPC_PARTITION_MODE_PARAMS {
        hChannelGroup: u32,
        mode: u32,
        bEnableAllTpcs: u8,
        _pad0: [u8; 7],
        grRouteInfo: NV0080_CTRL_GR_ROUTE_INFO,
    }

    /// Parameters of `NV0080_CTRL_CMD_MSENC_GET_CAPS`.
    pub struct NV0080_CTRL_MSENC_GET_CAPS_PARAMS {
        capsTblSize: u32,
        _pad0: [u8; 4],
        capsTbl: u64,
    }

    /// Parameters of `NV0080_CTRL_CMD_NVJPG_GET_CAPS_V2`.
    pub struct NV0080_CTRL_NVJPG_GET_CAPS_V2_PARAMS {
        capsTbl: [u8; 9],
        _pad0: [u8; 3],
        instanceId: u32,
    }
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static CTRL_0080_CONSTS: Abi::Rm570;

    NV0080_CTRL_CMD_GPU_GET_CLASSLIST: u32 = 0x800201;
    NV0080_CTRL_CMD_GPU_GET_NUM_SUBDEVICES: u32 = 0x800280;
    NV0080_CTRL_CMD_GPU_QUERY_SW_STATE_PERSISTENCE: u32 = 0x800288;
    NV0080_CTRL_CMD_GPU_GET_VIRTUALIZATION_MODE: u32 = 0x800289;
    NV0080_CTRL_CMD_GPU_GET_CLASSLIST_V2: u32 = 0x800292;
    NV0080_CTRL_CMD_GR_GET_CAPS: u32 = 0x801102;
    NV0080_CTRL_CMD_GR_GET_INFO: u32 = 0x801104;
    NV0080_CTRL_CMD_GR_GET_CAPS_V2: u32 = 0x801109;
    NV0080_CTRL_CMD_FB_GET_CAPS: u32 = 0x801301;
    NV0080_CTRL_CMD_FB_GET_CAPS_V2: u32 = 0x801307;
    NV0080_CTRL_CMD_HOST_GET_CAPS_V2: u32 = 0x801402;
    NV0080_CTRL_CMD_FIFO_GET_CAPS: u32 = 0x801701;
    NV0080_CTRL_CMD_FIFO_GET_ENGINE_CONTEXT_PROPERTIES: u32 = 0x801707;
    NV0080_CTRL_CMD_FIFO_GET_CHANNELLIST: u32 = 0x80170d;
    NV0080_CTRL_CMD_FIFO_GET_CAPS_V2: u32 = 0x801713;
    NV0080_CTRL_CMD_DMA_ADV_SCHED_GET_VA_CAPS: u32 = 0x801806;
    NV0080_CTRL_CMD_DMA_GET_CAPS: u32 = 0x80180d;
    NV0080_CTRL_CMD_GR_SET_TPC_PARTITION_MODE: u32 = 0x801108;
    NV0080_CTRL_CMD_PERF_CUDA_LIMIT_SET_CONTROL: u32 = 0x801909;
    NV0080_CTRL_CMD_MSENC_GET_CAPS: u32 = 0x801b01;
    NV0080_CTRL_CMD_BSP_GET_CAPS_V2: u32 = 0x801c02;
    NV0080_CTRL_CMD_NVJPG_GET_CAPS_V2: u32 = 0x801f02;
}
