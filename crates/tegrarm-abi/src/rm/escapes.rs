//! Escape ioctls of `/dev/nvidiactl` and `/dev/nvidiaN`: numbers and argument structures.
//!
//! Numbers: `tests/data/abi/rm-570.json` (driver 570.86.16).

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static ESCAPE_STRUCTS: Abi::Rm570;

    /// `NVOS00_PARAMETERS` of the RM user ABI (driver 570).
    pub struct NVOS00_PARAMETERS {
        hRoot: u32,
        hObjectParent: u32,
        hObjectOld: u32,
        status: u32,
    }

    /// `NVOS02_PARAMETERS` of the RM user ABI (driver 570).
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

    /// `NVOS05_PARAMETERS` of the RM user ABI (driver 570).
    pub struct NVOS05_PARAMETERS {
        hRoot: u32,
        hObjectParent: u32,
        hObjectNew: u32,
        hClass: u32,
        status: u32,
    }

    /// `NVOS21_PARAMETERS` of the RM user ABI (driver 570).
    pub struct NVOS21_PARAMETERS {
        hRoot: u32,
        hObjectParent: u32,
        hObjectNew: u32,
        hClass: u32,
        pAllocParms: u64,
        paramsSize: u32,
        status: u32,
    }

    /// `NVOS30_PARAMETERS` of the RM user ABI (driver 570).
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

    /// `NVOS32_PARAMETERS_data_AllocSize` of the RM user ABI (driver 570).
    pub struct NVOS32_PARAMETERS_data_AllocSize {
        owner: u32,
        hMemory: u32,
        type_: u32,
        flags: u32,
        attr: u32,
        format: u32,
        comprCovg: u32,
        zcullCovg: u32,
        partitionStride: u32,
        width: u32,
        height: u32,
        _pad0: [u8; 4],
        size: u64,
        alignment: u64,
        offset: u64,
        limit: u64,
        address: u64,
        rangeBegin: u64,
        rangeEnd: u64,
        attr2: u32,
        ctagOffset: u32,
        numaNode: i32,
        _pad1: [u8; 4],
    }

    /// `NVOS32_PARAMETERS_data` of the RM user ABI (driver 570).
    pub struct NVOS32_PARAMETERS_data {
        AllocSize: NVOS32_PARAMETERS_data_AllocSize,
        _pad0: [u8; 24],
    }

    /// `NVOS32_PARAMETERS_data_AllocTiledPitchHeight` of the RM user ABI (driver 570).
    pub struct NVOS32_PARAMETERS_data_AllocTiledPitchHeight {
        owner: u32,
        hMemory: u32,
        type_: u32,
        flags: u32,
        height: u32,
        pitch: i32,
        attr: u32,
        width: u32,
        format: u32,
        comprCovg: u32,
        zcullCovg: u32,
        partitionStride: u32,
        size: u64,
        alignment: u64,
        offset: u64,
        limit: u64,
        address: u64,
        rangeBegin: u64,
        rangeEnd: u64,
        attr2: u32,
        ctagOffset: u32,
        numaNode: i32,
        _pad0: [u8; 4],
    }

    /// `NVOS32_PARAMETERS_data_Free` of the RM user ABI (driver 570).
    pub struct NVOS32_PARAMETERS_data_Free {
        owner: u32,
        hMemory: u32,
        flags: u32,
    }

    /// `NVOS32_PARAMETERS_data_ReleaseCompr` of the RM user ABI (driver 570).
    pub struct NVOS32_PARAMETERS_data_ReleaseCompr {
        owner: u32,
        flags: u32,
        hMemory: u32,
    }

    /// `NVOS32_PARAMETERS_data_ReacquireCompr` of the RM user ABI (driver 570).
    pub struct NVOS32_PARAMETERS_data_ReacquireCompr {
        owner: u32,
        flags: u32,
        hMemory: u32,
    }

    /// `NVOS32_PARAMETERS_data_Info` of the RM user ABI (driver 570).
    pub struct NVOS32_PARAMETERS_data_Info {
        attr: u32,
        _pad0: [u8; 4],
        offset: u64,
        size: u64,
        base: u64,
    }

    /// `NVOS32_PARAMETERS_data_Dump` of the RM user ABI (driver 570).
    pub struct NVOS32_PARAMETERS_data_Dump {
        flags: u32,
        _pad0: [u8; 4],
        pBuffer: u64,
        numBlocks: u32,
        _pad1: [u8; 4],
    }

    /// `NVOS32_PARAMETERS_data_AllocSizeRange` of the RM user ABI (driver 570).
    pub struct NVOS32_PARAMETERS_data_AllocSizeRange {
        owner: u32,
        hMemory: u32,
        type_: u32,
        flags: u32,
        attr: u32,
        format: u32,
        comprCovg: u32,
        zcullCovg: u32,
        partitionStride: u32,
        _pad0: [u8; 4],
        size: u64,
        alignment: u64,
        offset: u64,
        limit: u64,
        rangeBegin: u64,
        rangeEnd: u64,
        address: u64,
        attr2: u32,
        ctagOffset: u32,
        numaNode: i32,
        _pad1: [u8; 4],
    }

    /// `NVOS32_PARAMETERS_data_AllocHintAlignment` of the RM user ABI (driver 570).
    pub struct NVOS32_PARAMETERS_data_AllocHintAlignment {
        alignType: u32,
        alignAttr: u32,
        alignInputFlags: u32,
        _pad0: [u8; 4],
        alignSize: u64,
        alignHeight: u32,
        alignWidth: u32,
        alignPitch: u32,
        alignPad: u32,
        alignMask: u32,
        alignOutputFlags: [u32; 4],
        alignBank: [u32; 4],
        alignKind: u32,
        alignAdjust: u32,
        alignAttr2: u32,
    }

    /// `NVOS32_PARAMETERS_data_HwAlloc_comprInfo` of the RM user ABI (driver 570).
    pub struct NVOS32_PARAMETERS_data_HwAlloc_comprInfo {
        compPageShift: u32,
        compressedKind: u32,
        compTagLineMin: u32,
        compPageIndexLo: u32,
        compPageIndexHi: u32,
        compTagLineMultiplier: u32,
    }

    /// `NVOS32_PARAMETERS_data_HwAlloc` of the RM user ABI (driver 570).
    pub struct NVOS32_PARAMETERS_data_HwAlloc {
        allocOwner: u32,
        allochMemory: u32,
        flags: u32,
        allocType: u32,
        allocAttr: u32,
        allocInputFlags: u32,
        allocSize: u64,
        allocHeight: u32,
        allocWidth: u32,
        allocPitch: u32,
        allocMask: u32,
        allocComprCovg: u32,
        allocZcullCovg: u32,
        bindResultFunc: u64,
        pHandle: u64,
        hResourceHandle: u32,
        retAttr: u32,
        kind: u32,
        _pad0: [u8; 4],
        osDeviceHandle: u64,
        allocAttr2: u32,
        retAttr2: u32,
        allocAddr: u64,
        comprInfo: NVOS32_PARAMETERS_data_HwAlloc_comprInfo,
        uncompressedKind: u32,
        _pad1: [u8; 4],
    }

    /// `NVOS32_PARAMETERS_data_HwFree` of the RM user ABI (driver 570).
    pub struct NVOS32_PARAMETERS_data_HwFree {
        hResourceHandle: u32,
        flags: u32,
    }

    /// `NVOS32_PARAMETERS_data_AllocOsDesc` of the RM user ABI (driver 570).
    pub struct NVOS32_PARAMETERS_data_AllocOsDesc {
        hMemory: u32,
        type_: u32,
        flags: u32,
        attr: u32,
        attr2: u32,
        _pad0: [u8; 4],
        descriptor: u64,
        limit: u64,
        descriptorType: u32,
        _pad1: [u8; 4],
    }

    /// `NVOS32_PARAMETERS` of the RM user ABI (driver 570).
    pub struct NVOS32_PARAMETERS {
        hRoot: u32,
        hObjectParent: u32,
        function: u32,
        hVASpace: u32,
        ivcHeapNumber: i16,
        _pad0: [u8; 2],
        status: u32,
        total: u64,
        free: u64,
        data: NVOS32_PARAMETERS_data,
    }

    /// `NVOS33_PARAMETERS` of the RM user ABI (driver 570).
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

    /// `NVOS34_PARAMETERS` of the RM user ABI (driver 570).
    pub struct NVOS34_PARAMETERS {
        hClient: u32,
        hDevice: u32,
        hMemory: u32,
        _pad0: [u8; 4],
        pLinearAddress: u64,
        status: u32,
        flags: u32,
    }

    /// `NVOS39_PARAMETERS` of the RM user ABI (driver 570).
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

    /// `NVOS41_PARAMETERS` of the RM user ABI (driver 570).
    pub struct NVOS41_PARAMETERS {
        pEvent: u64,
        MoreEvents: u32,
        status: u32,
    }

    /// `NVOS46_PARAMETERS` of the RM user ABI (driver 570).
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

    /// `NVOS47_PARAMETERS` of the RM user ABI (driver 570).
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

    /// `NVOS49_PARAMETERS` of the RM user ABI (driver 570).
    pub struct NVOS49_PARAMETERS {
        hClient: u32,
        hChannel: u32,
        hCtxDma: u32,
        status: u32,
    }

    /// `NVOS54_PARAMETERS` of the RM user ABI (driver 570).
    pub struct NVOS54_PARAMETERS {
        hClient: u32,
        hObject: u32,
        cmd: u32,
        flags: u32,
        params: u64,
        paramsSize: u32,
        status: u32,
    }

    /// `NVOS55_PARAMETERS` of the RM user ABI (driver 570).
    pub struct NVOS55_PARAMETERS {
        hClient: u32,
        hParent: u32,
        hObject: u32,
        hClientSrc: u32,
        hObjectSrc: u32,
        flags: u32,
        status: u32,
    }

    /// `NVOS56_PARAMETERS` of the RM user ABI (driver 570).
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

    /// `NVOS57_PARAMETERS` of the RM user ABI (driver 570).
    pub struct NVOS57_PARAMETERS {
        hClient: u32,
        hObject: u32,
        sharePolicy: [u8; 12],
        status: u32,
    }

    /// `NVOS64_PARAMETERS` of the RM user ABI (driver 570).
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

    /// `nv_ioctl_alloc_os_event_t` of the RM user ABI (driver 570).
    pub struct nv_ioctl_alloc_os_event_t {
        hClient: u32,
        hDevice: u32,
        fd: u32,
        Status: u32,
    }

    /// `nv_pci_info_t` of the RM user ABI (driver 570).
    pub struct nv_pci_info_t {
        domain: u32,
        bus: u8,
        slot: u8,
        function: u8,
        _pad0: [u8; 1],
        vendor_id: u16,
        device_id: u16,
    }

    /// `nv_ioctl_card_info_t` of the RM user ABI (driver 570).
    pub struct nv_ioctl_card_info_t {
        valid: u8,
        _pad0: [u8; 3],
        pci_info: nv_pci_info_t,
        gpu_id: u32,
        interrupt_line: u16,
        _pad1: [u8; 2],
        reg_address: u64,
        reg_size: u64,
        fb_address: u64,
        fb_size: u64,
        minor_number: u32,
        dev_name: [u8; 10],
        _pad2: [u8; 2],
    }

    /// `nv_ioctl_export_to_dma_buf_fd_t` of the RM user ABI (driver 570).
    pub struct nv_ioctl_export_to_dma_buf_fd_t {
        fd: i32,
        hClient: u32,
        totalObjects: u32,
        numObjects: u32,
        index: u32,
        _pad0: [u8; 4],
        totalSize: u64,
        mappingType: u8,
        _pad1: [u8; 3],
        handles: [u32; 128],
        _pad2: [u8; 4],
        offsets: [u64; 128],
        sizes: [u64; 128],
        status: u32,
        _pad3: [u8; 4],
    }

    /// `nv_ioctl_free_os_event_t` of the RM user ABI (driver 570).
    pub struct nv_ioctl_free_os_event_t {
        hClient: u32,
        hDevice: u32,
        fd: u32,
        Status: u32,
    }

    /// `nv_ioctl_numa_info_t` of the RM user ABI (driver 570).
    pub struct nv_ioctl_numa_info_t {
        nid: i32,
        status: i32,
        memblock_size: u64,
        numa_mem_addr: u64,
        numa_mem_size: u64,
        use_auto_online: u8,
        _pad0: [u8; 7],
        offline_addresses: [u8; 520],
    }

    /// `nv_ioctl_nvos02_parameters_with_fd` of the RM user ABI (driver 570).
    pub struct nv_ioctl_nvos02_parameters_with_fd {
        params: NVOS02_PARAMETERS,
        fd: i32,
        _pad0: [u8; 4],
    }

    /// `nv_ioctl_nvos33_parameters_with_fd` of the RM user ABI (driver 570).
    pub struct nv_ioctl_nvos33_parameters_with_fd {
        params: NVOS33_PARAMETERS,
        fd: i32,
        _pad0: [u8; 4],
    }

    /// `nv_ioctl_query_device_intr` of the RM user ABI (driver 570).
    pub struct nv_ioctl_query_device_intr {
        intrStatus: u32,
        status: u32,
    }

    /// `nv_ioctl_register_fd_t` of the RM user ABI (driver 570).
    pub struct nv_ioctl_register_fd_t {
        ctl_fd: i32,
    }

    /// `nv_ioctl_rm_api_version_t` of the RM user ABI (driver 570).
    pub struct nv_ioctl_rm_api_version_t {
        cmd: u32,
        reply: u32,
        versionString: [u8; 64],
    }

    /// `nv_ioctl_set_numa_status_t` of the RM user ABI (driver 570).
    pub struct nv_ioctl_set_numa_status_t {
        status: i32,
    }

    /// `nv_ioctl_status_code_t` of the RM user ABI (driver 570).
    pub struct nv_ioctl_status_code_t {
        domain: u32,
        bus: u8,
        slot: u8,
        _pad0: [u8; 2],
        status: u32,
    }

    /// `nv_ioctl_sys_params_t` of the RM user ABI (driver 570).
    pub struct nv_ioctl_sys_params_t {
        memblock_size: u64,
    }

    /// `nv_ioctl_wait_open_complete_t` of the RM user ABI (driver 570).
    pub struct nv_ioctl_wait_open_complete_t {
        rc: i32,
        adapterStatus: u32,
    }

    /// `nv_ioctl_xfer_t` of the RM user ABI (driver 570).
    pub struct nv_ioctl_xfer_t {
        cmd: u32,
        size: u32,
        ptr: u64,
    }
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static ESCAPE_CONSTS: Abi::Rm570;

    NV_ESC_ALLOC_OS_EVENT: u32 = 0xce;
    NV_ESC_ATTACH_GPUS_TO_FD: u32 = 0xd4;
    NV_ESC_CARD_INFO: u32 = 0xc8;
    NV_ESC_CHECK_VERSION_STR: u32 = 0xd2;
    NV_ESC_EXPORT_TO_DMABUF_FD: u32 = 0xd9;
    NV_ESC_FREE_OS_EVENT: u32 = 0xcf;
    NV_ESC_IOCTL_XFER_CMD: u32 = 0xd3;
    NV_ESC_NUMA_INFO: u32 = 0xd7;
    NV_ESC_QUERY_DEVICE_INTR: u32 = 0xd5;
    NV_ESC_REGISTER_FD: u32 = 0xc9;
    NV_ESC_RM_ACCESS_REGISTRY: u32 = 0x4d;
    NV_ESC_RM_ADD_VBLANK_CALLBACK: u32 = 0x56;
    NV_ESC_RM_ALLOC: u32 = 0x2b;
    NV_ESC_RM_ALLOC_CONTEXT_DMA2: u32 = 0x54;
    NV_ESC_RM_ALLOC_MEMORY: u32 = 0x27;
    NV_ESC_RM_ALLOC_OBJECT: u32 = 0x28;
    NV_ESC_RM_BIND_CONTEXT_DMA: u32 = 0x59;
    NV_ESC_RM_CONFIG_GET: u32 = 0x32;
    NV_ESC_RM_CONFIG_GET_EX: u32 = 0x37;
    NV_ESC_RM_CONFIG_SET: u32 = 0x33;
    NV_ESC_RM_CONFIG_SET_EX: u32 = 0x38;
    NV_ESC_RM_CONTROL: u32 = 0x2a;
    NV_ESC_RM_DUP_OBJECT: u32 = 0x34;
    NV_ESC_RM_EXPORT_OBJECT_TO_FD: u32 = 0x5c;
    NV_ESC_RM_FREE: u32 = 0x29;
    NV_ESC_RM_GET_EVENT_DATA: u32 = 0x52;
    NV_ESC_RM_I2C_ACCESS: u32 = 0x39;
    NV_ESC_RM_IDLE_CHANNELS: u32 = 0x41;
    NV_ESC_RM_IMPORT_OBJECT_FROM_FD: u32 = 0x5d;
    NV_ESC_RM_LOCKLESS_DIAGNOSTIC: u32 = 0x5f;
    NV_ESC_RM_MAP_MEMORY: u32 = 0x4e;
    NV_ESC_RM_MAP_MEMORY_DMA: u32 = 0x57;
    NV_ESC_RM_SHARE: u32 = 0x35;
    NV_ESC_RM_UNMAP_MEMORY: u32 = 0x4f;
    NV_ESC_RM_UNMAP_MEMORY_DMA: u32 = 0x58;
    NV_ESC_RM_UPDATE_DEVICE_MAPPING_INFO: u32 = 0x5e;
    NV_ESC_RM_VID_HEAP_CONTROL: u32 = 0x4a;
    NV_ESC_SET_NUMA_STATUS: u32 = 0xd8;
    NV_ESC_STATUS_CODE: u32 = 0xd1;
    NV_ESC_SYS_PARAMS: u32 = 0xd6;
    NV_ESC_WAIT_OPEN_COMPLETE: u32 = 0xda;
    NV_IOCTL_BASE: u32 = 0xc8;
}
