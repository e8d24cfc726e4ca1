//! Arguments of the escapes that work on objects: allocate, free, control, map.
//!
//! Numbers: `tests/data/abi/rm-570.json` (driver 570.86.16).

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static ESCAPE_OBJECTS_STRUCTS: Abi::Rm570;

    /// Argument of `NV_ESC_RM_FREE`.
    pub struct NVOS00_PARAMETERS {
        hRoot: u32,
        hObjectParent: u32,
        hObjectOld: u32,
        status: u32,
    }

    /// Argument of `NV_ESC_RM_ALLOC_MEMORY` (without its fd).
    pub struct NVOS02_PARAMETERS {
        hRoot: u32,
        hObjectParent: u32,
        hObjectNew: u32,
        hClass: u32,
        flags: u32,
        _pad0: [u8; 4],
        pMemory: u64,
        limit: u64,
        status: u32,
        _pad1: [u8; 4],
    }

    /// Argument of `NV_ESC_RM_ALLOC_OBJECT`.
    pub struct NVOS05_PARAMETERS {
        hRoot: u32,
        hObjectParent: u32,
        hObjectNew: u32,
        hClass: u32,
        status: u32,
    }

    /// Argument of `NV_ESC_RM_ACCESS_REGISTRY`.
    pub struct NVOS38_PARAMETERS {
        hClient: u32,
        hObject: u32,
        AccessType: u32,
        DevNodeLength: u32,
        pDevNode: u64,
        ParmStrLength: u32,
        _pad0: [u8; 4],
        pParmStr: u64,
        BinaryDataLength: u32,
        _pad1: [u8; 4],
        pBinaryData: u64,
        Data: u32,
        Entry: u32,
        status: u32,
        _pad2: [u8; 4],
    }

    /// Argument of `NV_ESC_RM_I2C_ACCESS`.
    pub struct NVOS_I2C_ACCESS_PARAMS {
        hClient: u32,
        hDevice: u32,
        paramSize: u32,
        _pad0: [u8; 4],
        paramStructPtr: u64,
        status: u32,
        _pad1: [u8; 4],
    }

    /// Argument of `NV_ESC_RM_ALLOC` (short form).
    pub struct NVOS21_PARAMETERS {
        hRoot: u32,
        hObjectParent: u32,
        hObjectNew: u32,
        hClass: u32,
        pAllocParms: u64,
        paramsSize: u32,
        status: u32,
    }

    /// Argument of `NV_ESC_RM_IDLE_CHANNELS`.
    pub struct NVOS30_PARAMETERS {
        hClient: u32,
        hDevice: u32,
        hChannel: u32,
        numChannels: u32,
        phClients: u64,
        phDevices: u64,
        phChannels: u64,
        flags: u32,
        timeout: u32,
        status: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `NV_ESC_RM_MAP_MEMORY` (without its fd).
    pub struct NVOS33_PARAMETERS {
        hClient: u32,
        hDevice: u32,
        hMemory: u32,
        _pad0: [u8; 4],
        offset: u64,
        length: u64,
        pLinearAddress: u64,
        status: u32,
        flags: u32,
    }

    /// Argument of `NV_ESC_RM_UNMAP_MEMORY`.
    pub struct NVOS34_PARAMETERS {
        hClient: u32,
        hDevice: u32,
        hMemory: u32,
        _pad0: [u8; 4],
        pLinearAddress: u64,
        status: u32,
        flags: u32,
    }

    /// Argument of `NV_ESC_RM_ALLOC_CONTEXT_DMA2`.
    pub struct NVOS39_PARAMETERS {
        hObjectParent: u32,
        hSubDevice: u32,
        hObjectNew: u32,
        hClass: u32,
        flags: u32,
        selector: u32,
        hMemory: u32,
        _pad0: [u8; 4],
        offset: u64,
        limit: u64,
        status: u32,
        _pad1: [u8; 4],
    }

    /// Argument of `NV_ESC_RM_GET_EVENT_DATA`.
    pub struct NVOS41_PARAMETERS {
        pEvent: u64,
        MoreEvents: u32,
        status: u32,
    }

    /// Argument of `NV_ESC_RM_MAP_MEMORY_DMA`.
    pub struct NVOS46_PARAMETERS {
        hClient: u32,
        hDevice: u32,
        hDma: u32,
        hMemory: u32,
        offset: u64,
        length: u64,
        flags: u32,
        _pad0: [u8; 4],
        dmaOffset: u64,
        status: u32,
        _pad1: [u8; 4],
    }

    /// Argument of `NV_ESC_RM_UNMAP_MEMORY_DMA`.
    pub struct NVOS47_PARAMETERS {
        hClient: u32,
        hDevice: u32,
        hDma: u32,
        hMemory: u32,
        flags: u32,
        _pad0: [u8; 4],
        dmaOffset: u64,
        size: u64,
        status: u32,
        _pad1: [u8; 4],
    }

    /// Argument of `NV_ESC_RM_BIND_CONTEXT_DMA`.
    pub struct NVOS49_PARAMETERS {
        hClient: u32,
        hChannel: u32,
        hCtxDma: u32,
        status: u32,
    }

    /// Argument of `NV_ESC_RM_CONTROL`.
    pub struct NVOS54_PARAMETERS {
        hClient: u32,
        hObject: u32,
        cmd: u32,
        flags: u32,
        params: u64,
        paramsSize: u32,
        status: u32,
    }

    /// Argument of `NV_ESC_RM_DUP_OBJECT`.
    pub struct NVOS55_PARAMETERS {
        hClient: u32,
        hParent: u32,
        hObject: u32,
        hClientSrc: u32,
        hObjectSrc: u32,
        flags: u32,
        status: u32,
    }

    /// Argument of `NV_ESC_RM_UPDATE_DEVICE_MAPPING_INFO`.
    pub struct NVOS56_PARAMETERS {
        hClient: u32,
        hDevice: u32,
        hMemory: u32,
        _pad0: [u8; 4],
        pOldCpuAddress: u64,
        pNewCpuAddress: u64,
        status: u32,
        _pad1: [u8; 4],
    }

    /// Argument of `NV_ESC_RM_SHARE`.
    pub struct NVOS57_PARAMETERS {
        hClient: u32,
        hObject: u32,
        sharePolicy: [u8; 12],
        status: u32,
    }

    /// Argument of `NV_ESC_RM_ALLOC` (long form).
    pub struct NVOS64_PARAMETERS {
        hRoot: u32,
        hObjectParent: u32,
        hObjectNew: u32,
        hClass: u32,
        pAllocParms: u64,
        pRightsRequested: u64,
        paramsSize: u32,
        flags: u32,
        status: u32,
        _pad0: [u8; 4],
    }
}
