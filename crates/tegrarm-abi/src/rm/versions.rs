//! Structures in the layouts of driver releases before and after 570.
//!
//! A suffix `_V580` names the first release with that layout. The layout of 570 has no suffix. The layouts of escapes
//! and controls are told apart by their size, and those of UVM calls by the version that the client was told. Layouts:
//! `tests/data/abi/extra.json`, with their sources.

use crate::layout::*;
use crate::rm::alloc::NV_MEMORY_DESC_PARAMS;
use crate::rm::ctrl_0080::NV0080_CTRL_GR_ROUTE_INFO;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static VERSION_STRUCTS: Abi::Extra;

    /// Argument of `NV_ESC_RM_MAP_MEMORY_DMA` from driver 580 on. Its size differs from that of 570.
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

    /// Argument of `NV_ESC_RM_UNMAP_MEMORY_DMA` before driver 550, which has no size.
    pub struct NVOS47_PARAMETERS_V535 {
        hClient: u32,
        hDevice: u32,
        hDma: u32,
        hMemory: u32,
        flags: u32,
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

    /// Allocation parameters of the GPFIFO channel classes from driver 610 on. A handle was inserted at offset 32.
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

    /// Argument of `UVM_FREE` from driver 590 on. UVM numbers contain no size, so the reported version decides which
    /// layout is used.
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
}
