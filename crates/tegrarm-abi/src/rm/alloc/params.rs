//! Allocation parameters of the RM classes.
//!
//! Numbers: `tests/data/abi/rm-570.json` (driver 570.86.16).

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static ALLOC_STRUCTS: Abi::Rm570;

    /// Allocation parameters of `NV01_ROOT`, `NV01_ROOT_NON_PRIV` and `NV01_ROOT_CLIENT`; optional.
    pub struct NV0000_ALLOC_PARAMETERS {
        hClient: u32,
        processID: u32,
        processName: [u8; 100],
        _pad0: [u8; 4],
        pOsPidInfo: u64,
    }

    /// Allocation parameters of `NV01_DEVICE_0`.
    pub struct NV0080_ALLOC_PARAMETERS {
        deviceId: u32,
        hClientShare: u32,
        hTargetClient: u32,
        hTargetDevice: u32,
        flags: u32,
        _pad0: [u8; 4],
        vaSpaceSize: u64,
        vaStartInternal: u64,
        vaLimitInternal: u64,
        vaMode: u32,
        _pad1: [u8; 4],
    }

    /// Allocation parameters of `NV20_SUBDEVICE_0`; optional.
    pub struct NV2080_ALLOC_PARAMETERS {
        subDeviceId: u32,
    }

    /// Allocation parameters of `NV01_MEMORY_VIRTUAL`.
    pub struct NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS {
        offset: u64,
        limit: u64,
        hVASpace: u32,
        _pad0: [u8; 4],
    }

    /// Allocation parameters of `HOPPER_USERMODE_A`.
    pub struct NV_HOPPER_USERMODE_A_PARAMS {
        bBar1Mapping: u8,
        bPriv: u8,
    }

    /// Allocation parameters of `FERMI_VASPACE_A`.
    pub struct NV_VASPACE_ALLOCATION_PARAMETERS {
        index: u32,
        flags: u32,
        vaSize: u64,
        vaStartInternal: u64,
        vaLimitInternal: u64,
        bigPageSize: u32,
        _pad0: [u8; 4],
        vaBase: u64,
    }

    /// Allocation parameters of `KEPLER_CHANNEL_GROUP_A`.
    pub struct NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS {
        hObjectError: u32,
        hObjectEccError: u32,
        hVASpace: u32,
        engineType: u32,
        bIsCallingContextVgpuPlugin: u8,
        _pad0: [u8; 3],
    }

    /// Allocation parameters of `FERMI_CONTEXT_SHARE_A`.
    pub struct NV_CTXSHARE_ALLOCATION_PARAMETERS {
        hVASpace: u32,
        flags: u32,
        subctxId: u32,
    }

    /// Allocation parameters of the memory classes (0x3E, 0x40, 0x50A0).
    pub struct NV_MEMORY_ALLOCATION_PARAMS {
        owner: u32,
        type_: u32,
        flags: u32,
        width: u32,
        height: u32,
        pitch: i32,
        attr: u32,
        attr2: u32,
        format: u32,
        comprCovg: u32,
        zcullCovg: u32,
        _pad0: [u8; 4],
        rangeLo: u64,
        rangeHi: u64,
        size: u64,
        alignment: u64,
        offset: u64,
        limit: u64,
        address: u64,
        ctagOffset: u32,
        hVASpace: u32,
        internalflags: u32,
        tag: u32,
        numaNode: i32,
        _pad1: [u8; 4],
    }

    /// A piece of memory inside [`NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS`].
    pub struct NV_MEMORY_DESC_PARAMS {
        base: u64,
        size: u64,
        addressSpace: u32,
        cacheAttrib: u32,
    }

    /// Allocation parameters of the GPFIFO channel classes.
    pub struct NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS {
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
        tpcConfigID: u32,
        _pad0: [u8; 4],
    }

    /// Allocation parameters of the compute, 3D, 2D and inline-to-memory classes; optional.
    pub struct NV_GR_ALLOCATION_PARAMETERS {
        version: u32,
        flags: u32,
        size: u32,
        caps: u32,
    }

    /// Allocation parameters of `GT200_DEBUGGER`.
    pub struct NV83DE_ALLOC_PARAMETERS {
        hDebuggerClient_Obsolete: u32,
        hAppClient: u32,
        hClass3dObject: u32,
    }

    /// Allocation parameters of `MAXWELL_PROFILER_DEVICE`.
    pub struct NVB2CC_ALLOC_PARAMETERS {
        hClientTarget: u32,
        hContextTarget: u32,
    }

    /// Allocation parameters of the video decoder classes.
    pub struct NV_BSP_ALLOCATION_PARAMETERS {
        size: u32,
        prohibitMultipleInstances: u32,
        engineInstance: u32,
    }

    /// Allocation parameters of `NV01_CONTEXT_DMA`.
    pub struct NV_CONTEXT_DMA_ALLOCATION_PARAMS {
        hSubDevice: u32,
        flags: u32,
        hMemory: u32,
        _pad0: [u8; 4],
        offset: u64,
        limit: u64,
    }
}

abi_structs! {
    /// Further layouts of this file, from `tests/data/abi/extra.json`.
    pub static FURTHER_ALLOC_STRUCTS: Abi::Extra;

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
}
