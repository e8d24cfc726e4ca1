//! Controls of the NV2080 interface, FB category: memory and its caches.
//!
//! Numbers: `tests/data/abi/rm-570.json` (driver 570.86.16).

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static CTRL_2080_FB_STRUCTS: Abi::Rm570;

    /// Parameters of `NV2080_CTRL_CMD_FB_FLUSH_GPU_CACHE`.
    pub struct NV2080_CTRL_FB_FLUSH_GPU_CACHE_PARAMS {
        addressArray: [u64; 500],
        addressArraySize: u32,
        addressAlign: u32,
        memBlockSizeBytes: u64,
        flags: u32,
        _pad0: [u8; 4],
    }

    /// Parameters of `NV2080_CTRL_CMD_FB_GET_INFO`.
    pub struct NV2080_CTRL_FB_GET_INFO_PARAMS {
        fbInfoListSize: u32,
        _pad0: [u8; 4],
        fbInfoList: u64,
    }

    /// Parameters of `NV2080_CTRL_CMD_FB_GET_INFO_V2`.
    pub struct NV2080_CTRL_FB_GET_INFO_V2_PARAMS {
        fbInfoListSize: u32,
        fbInfoList: [u8; 456],
    }

    /// Parameters of `NV2080_CTRL_CMD_FB_GET_GPU_CACHE_INFO`.
    pub struct NV2080_CTRL_FB_GET_GPU_CACHE_INFO_PARAMS {
        powerState: u32,
        writeMode: u32,
        bypassMode: u32,
        rcmState: u32,
    }

    /// `NV2080_CTRL_CMD_FB_GET_FB_REGION_FB_REGION_INFO` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_CMD_FB_GET_FB_REGION_FB_REGION_INFO {
        base: u64,
        limit: u64,
        reserved: u64,
        performance: u32,
        supportCompressed: u8,
        supportISO: u8,
        bProtected: u8,
        blackList: [u8; 17],
    }

    /// Parameters of `NV2080_CTRL_CMD_FB_GET_FB_REGION_INFO`.
    pub struct NV2080_CTRL_CMD_FB_GET_FB_REGION_INFO_PARAMS {
        numFBRegions: u32,
        _pad0: [u8; 4],
        fbRegion: [NV2080_CTRL_CMD_FB_GET_FB_REGION_FB_REGION_INFO; 16],
    }

    /// `NV2080_CTRL_FB_OFFLINED_ADDRESS_INFO` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_FB_OFFLINED_ADDRESS_INFO {
        pageAddressWithEccOn: u64,
        pageAddressWithEccOff: u64,
        rbcAddress: u32,
        source: u32,
        status: u32,
        timestamp: u32,
    }

    /// Parameters of `NV2080_CTRL_CMD_FB_GET_OFFLINED_PAGES`.
    pub struct NV2080_CTRL_FB_GET_OFFLINED_PAGES_PARAMS {
        offlined: [NV2080_CTRL_FB_OFFLINED_ADDRESS_INFO; 64],
        validEntries: u32,
        bRetirementPending: u8,
        retirementPending: u8,
        _pad0: [u8; 2],
    }

    /// `NV2080_CTRL_FB_FS_INFO_INVALID_QUERY_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_FB_FS_INFO_INVALID_QUERY_PARAMS {
        data: [u8; 24],
    }

    /// `NV2080_CTRL_FB_FS_INFO_QUERY_queryParams` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_FB_FS_INFO_QUERY_queryParams {
        inv: NV2080_CTRL_FB_FS_INFO_INVALID_QUERY_PARAMS,
    }

    /// `NV2080_CTRL_FB_FS_INFO_FBP_MASK_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_FB_FS_INFO_FBP_MASK_PARAMS {
        swizzId: u32,
        _pad0: [u8; 4],
        fbpEnMask: u64,
    }

    /// `NV2080_CTRL_FB_FS_INFO_LTC_MASK_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_FB_FS_INFO_LTC_MASK_PARAMS {
        fbpIndex: u32,
        ltcEnMask: u32,
    }

    /// `NV2080_CTRL_FB_FS_INFO_LTS_MASK_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_FB_FS_INFO_LTS_MASK_PARAMS {
        fbpIndex: u32,
        ltsEnMask: u32,
    }

    /// `NV2080_CTRL_FB_FS_INFO_FBPA_MASK_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_FB_FS_INFO_FBPA_MASK_PARAMS {
        fbpIndex: u32,
        fbpaEnMask: u32,
    }

    /// `NV2080_CTRL_FB_FS_INFO_ROP_MASK_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_FB_FS_INFO_ROP_MASK_PARAMS {
        fbpIndex: u32,
        ropEnMask: u32,
    }

    /// `NV2080_CTRL_FB_FS_INFO_PROFILER_MON_LTC_MASK_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_FB_FS_INFO_PROFILER_MON_LTC_MASK_PARAMS {
        fbpIndex: u32,
        swizzId: u32,
        ltcEnMask: u32,
    }

    /// `NV2080_CTRL_FB_FS_INFO_PROFILER_MON_LTS_MASK_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_FB_FS_INFO_PROFILER_MON_LTS_MASK_PARAMS {
        fbpIndex: u32,
        swizzId: u32,
        ltsEnMask: u32,
    }

    /// `NV2080_CTRL_FB_FS_INFO_PROFILER_MON_FBPA_MASK_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_FB_FS_INFO_PROFILER_MON_FBPA_MASK_PARAMS {
        fbpIndex: u32,
        swizzId: u32,
        fbpaEnMask: u32,
    }

    /// `NV2080_CTRL_FB_FS_INFO_PROFILER_MON_ROP_MASK_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_FB_FS_INFO_PROFILER_MON_ROP_MASK_PARAMS {
        fbpIndex: u32,
        swizzId: u32,
        ropEnMask: u32,
    }

    /// `NV2080_CTRL_FB_FS_INFO_PROFILER_MON_FBPA_SUBP_MASK_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_FB_FS_INFO_PROFILER_MON_FBPA_SUBP_MASK_PARAMS {
        fbpIndex: u32,
        swizzId: u32,
        fbpaSubpEnMask: u64,
    }

    /// `NV2080_CTRL_FB_FS_INFO_FBPA_SUBP_MASK_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_FB_FS_INFO_FBPA_SUBP_MASK_PARAMS {
        fbpIndex: u32,
        fbpaSubpEnMask: u32,
    }

    /// `NV2080_CTRL_FB_FS_INFO_FBP_LOGICAL_MAP_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_FB_FS_INFO_FBP_LOGICAL_MAP_PARAMS {
        fbpIndex: u32,
        fbpLogicalIndex: u32,
    }

    /// `NV2080_CTRL_FB_FS_INFO_PAC_MASK_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_FB_FS_INFO_PAC_MASK_PARAMS {
        fbpIndex: u32,
        pacEnMask: u32,
    }

    /// `NV2080_CTRL_FB_FS_INFO_LOGICAL_LTC_MASK_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_FB_FS_INFO_LOGICAL_LTC_MASK_PARAMS {
        fbpIndex: u32,
        _pad0: [u8; 4],
        logicalLtcEnMask: u64,
    }

    /// `NV2080_CTRL_FB_FS_INFO_PROFILER_MON_LOGICAL_LTC_MASK_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_FB_FS_INFO_PROFILER_MON_LOGICAL_LTC_MASK_PARAMS {
        fbpIndex: u32,
        swizzId: u32,
        logicalLtcEnMask: u64,
    }

    /// `NV2080_CTRL_FB_FS_INFO_QUERY` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_FB_FS_INFO_QUERY {
        queryType: u16,
        reserved: [u8; 2],
        status: u32,
        queryParams: NV2080_CTRL_FB_FS_INFO_QUERY_queryParams,
    }

    /// Parameters of `NV2080_CTRL_CMD_FB_GET_FS_INFO`.
    pub struct NV2080_CTRL_FB_GET_FS_INFO_PARAMS {
        numQueries: u16,
        reserved: [u8; 6],
        queries: [NV2080_CTRL_FB_FS_INFO_QUERY; 120],
    }

    /// Parameters of `NV2080_CTRL_CMD_FB_GET_SEMAPHORE_SURFACE_LAYOUT`.
    pub struct NV2080_CTRL_FB_GET_SEMAPHORE_SURFACE_LAYOUT_PARAMS {
        maxSubmittedSemaphoreValueOffset: u64,
        monitoredFenceThresholdOffset: u64,
        size: u64,
        caps: u32,
        _pad0: [u8; 4],
    }

    /// Parameters of `NV2080_CTRL_CMD_FB_QUERY_DRAM_ENCRYPTION_PENDING_CONFIGURATION`.
    pub struct NV2080_CTRL_FB_QUERY_DRAM_ENCRYPTION_PENDING_CONFIGURATION_PARAMS {
        currentConfiguration: u32,
    }

    /// Parameters of `NV2080_CTRL_CMD_FB_QUERY_DRAM_ENCRYPTION_STATUS`.
    pub struct NV2080_CTRL_FB_QUERY_DRAM_ENCRYPTION_STATUS_PARAMS {
        currentStatus: u32,
    }

    /// `NV2080_CTRL_FB_INFO` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_FB_INFO {
        index: u32,
        data: u32,
    }
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static CTRL_2080_FB_CONSTS: Abi::Rm570;

    NV2080_CTRL_CMD_FB_FLUSH_GPU_CACHE: u32 = 0x2080130e;
    NV2080_CTRL_CMD_FB_GET_INFO: u32 = 0x20801301;
    NV2080_CTRL_CMD_FB_GET_INFO_V2: u32 = 0x20801303;
    NV2080_CTRL_CMD_FB_GET_GPU_CACHE_INFO: u32 = 0x20801315;
    NV2080_CTRL_CMD_FB_GET_FB_REGION_INFO: u32 = 0x20801320;
    NV2080_CTRL_CMD_FB_GET_OFFLINED_PAGES: u32 = 0x20801322;
    NV2080_CTRL_CMD_FB_GET_FS_INFO: u32 = 0x20801346;
    NV2080_CTRL_CMD_FB_GET_SEMAPHORE_SURFACE_LAYOUT: u32 = 0x20801352;
    NV2080_CTRL_CMD_FB_QUERY_DRAM_ENCRYPTION_PENDING_CONFIGURATION: u32 = 0x20801355;
    NV2080_CTRL_CMD_FB_QUERY_DRAM_ENCRYPTION_STATUS: u32 = 0x20801359;
    NV2080_CTRL_FB_FLUSH_GPU_CACHE_FLAGS_APERTURE_PEER_MEMORY: u32 = 2;
    NV2080_CTRL_FB_FLUSH_GPU_CACHE_FLAGS_APERTURE_SYSTEM_MEMORY: u32 = 1;
    NV2080_CTRL_FB_FLUSH_GPU_CACHE_FLAGS_APERTURE_VIDEO_MEMORY: u32 = 0;
    NV2080_CTRL_FB_FLUSH_GPU_CACHE_FLAGS_FB_FLUSH_NO: u32 = 0;
    NV2080_CTRL_FB_FLUSH_GPU_CACHE_FLAGS_FB_FLUSH_YES: u32 = 1;
    NV2080_CTRL_FB_FLUSH_GPU_CACHE_FLAGS_FLUSH_MODE_ADDRESS_ARRAY: u32 = 0;
    NV2080_CTRL_FB_FLUSH_GPU_CACHE_FLAGS_FLUSH_MODE_FULL_CACHE: u32 = 1;
    NV2080_CTRL_FB_FLUSH_GPU_CACHE_FLAGS_INVALIDATE_NO: u32 = 0;
    NV2080_CTRL_FB_FLUSH_GPU_CACHE_FLAGS_INVALIDATE_YES: u32 = 1;
    NV2080_CTRL_FB_FLUSH_GPU_CACHE_FLAGS_WRITE_BACK_NO: u32 = 0;
    NV2080_CTRL_FB_FLUSH_GPU_CACHE_FLAGS_WRITE_BACK_YES: u32 = 1;
    NV2080_CTRL_FB_INFO_INDEX_1TO1_COMPTAG_ENABLED: u32 = 0x28;
    NV2080_CTRL_FB_INFO_INDEX_ALLOW_PAGE_RETIREMENT: u32 = 0x2a;
    NV2080_CTRL_FB_INFO_INDEX_BANK_COUNT: u32 = 0xe;
    NV2080_CTRL_FB_INFO_INDEX_BANK_SWIZZLE_ALIGNMENT: u32 = 6;
    NV2080_CTRL_FB_INFO_INDEX_BAR1_AVAIL_SIZE: u32 = 0x1d;
    NV2080_CTRL_FB_INFO_INDEX_BAR1_MAX_CONTIGUOUS_AVAIL_SIZE: u32 = 0x1f;
    NV2080_CTRL_FB_INFO_INDEX_BAR1_SIZE: u32 = 5;
    NV2080_CTRL_FB_INFO_INDEX_BUS_WIDTH: u32 = 0xb;
    NV2080_CTRL_FB_INFO_INDEX_COMPRESSION_SIZE: u32 = 1;
    NV2080_CTRL_FB_INFO_INDEX_DRAM_PAGE_STRIDE: u32 = 2;
    NV2080_CTRL_FB_INFO_INDEX_ECC_STATUS_SIZE: u32 = 0x35;
    NV2080_CTRL_FB_INFO_INDEX_EFFECTIVE_BW: u32 = 0xf;
    NV2080_CTRL_FB_INFO_INDEX_FBP_COUNT: u32 = 0x19;
    NV2080_CTRL_FB_INFO_INDEX_FBP_MASK: u32 = 0x1a;
    NV2080_CTRL_FB_INFO_INDEX_FB_IS_BROKEN: u32 = 0x18;
    NV2080_CTRL_FB_INFO_INDEX_FB_TAX_SIZE_KB: u32 = 0x10;
    NV2080_CTRL_FB_INFO_INDEX_FORCED_BAR1_64KB_MAPPING_ENABLED: u32 = 0x2f;
    NV2080_CTRL_FB_INFO_INDEX_GPU_VADDR_HEAP_SIZE_KB: u32 = 0xf;
    NV2080_CTRL_FB_INFO_INDEX_GPU_VADDR_MAPPBLE_SIZE_KB: u32 = 0xf;
    NV2080_CTRL_FB_INFO_INDEX_GPU_VADDR_SPACE_SIZE_KB: u32 = 0xf;
    NV2080_CTRL_FB_INFO_INDEX_HEAP_BASE_KB: u32 = 0x11;
    NV2080_CTRL_FB_INFO_INDEX_HEAP_FREE: u32 = 0x16;
    NV2080_CTRL_FB_INFO_INDEX_HEAP_OFFLINE_SIZE: u32 = 0x27;
    NV2080_CTRL_FB_INFO_INDEX_HEAP_SIZE: u32 = 9;
    NV2080_CTRL_FB_INFO_INDEX_HEAP_START: u32 = 0x1e;
    NV2080_CTRL_FB_INFO_INDEX_IS_ZERO_FB: u32 = 0x36;
    NV2080_CTRL_FB_INFO_INDEX_L2CACHE_ONLY_MODE: u32 = 0x24;
    NV2080_CTRL_FB_INFO_INDEX_L2CACHE_SIZE: u32 = 0x1b;
    NV2080_CTRL_FB_INFO_INDEX_LARGEST_FREE_REGION_BASE_KB: u32 = 0x13;
    NV2080_CTRL_FB_INFO_INDEX_LARGEST_FREE_REGION_SIZE_KB: u32 = 0x12;
    NV2080_CTRL_FB_INFO_INDEX_LTC_COUNT: u32 = 0x22;
    NV2080_CTRL_FB_INFO_INDEX_LTC_MASK: u32 = 0x2b;
    NV2080_CTRL_FB_INFO_INDEX_LTC_MASK_0: u32 = 0x2b;
    NV2080_CTRL_FB_INFO_INDEX_LTC_MASK_1: u32 = 0x38;
    NV2080_CTRL_FB_INFO_INDEX_LTS_COUNT: u32 = 0x23;
    NV2080_CTRL_FB_INFO_INDEX_MAPPABLE_HEAP_SIZE: u32 = 0xa;
    NV2080_CTRL_FB_INFO_INDEX_MAX: u32 = 0x38;
    NV2080_CTRL_FB_INFO_INDEX_MEMORYINFO_VENDOR_ID: u32 = 0x1c;
    NV2080_CTRL_FB_INFO_INDEX_OVERLAY_OFFSET_ADJUSTMENT: u32 = 0xf;
    NV2080_CTRL_FB_INFO_INDEX_P2P_MAILBOX_ALIGNMENT: u32 = 0x31;
    NV2080_CTRL_FB_INFO_INDEX_P2P_MAILBOX_BAR1_MAX_OFFSET_64KB: u32 = 0x32;
    NV2080_CTRL_FB_INFO_INDEX_P2P_MAILBOX_SIZE: u32 = 0x30;
    NV2080_CTRL_FB_INFO_INDEX_PARTITION_COUNT: u32 = 4;
    NV2080_CTRL_FB_INFO_INDEX_PARTITION_MASK: u32 = 0x14;
    NV2080_CTRL_FB_INFO_INDEX_PARTITION_MASK_0: u32 = 0x14;
    NV2080_CTRL_FB_INFO_INDEX_PARTITION_MASK_1: u32 = 0x37;
    NV2080_CTRL_FB_INFO_INDEX_PROTECTED_MEM_SIZE_FREE_KB: u32 = 0x34;
    NV2080_CTRL_FB_INFO_INDEX_PROTECTED_MEM_SIZE_TOTAL_KB: u32 = 0x33;
    NV2080_CTRL_FB_INFO_INDEX_PSEUDO_CHANNEL_MODE: u32 = 0x25;
    NV2080_CTRL_FB_INFO_INDEX_RAM_CFG: u32 = 0xc;
    NV2080_CTRL_FB_INFO_INDEX_RAM_LOCATION: u32 = 0x17;
    NV2080_CTRL_FB_INFO_INDEX_RAM_SIZE: u32 = 7;
    NV2080_CTRL_FB_INFO_INDEX_RAM_TYPE: u32 = 0xd;
    NV2080_CTRL_FB_INFO_INDEX_SMOOTHDISP_RSVD_BAR1_SIZE: u32 = 0x26;
    NV2080_CTRL_FB_INFO_INDEX_SUSPEND_RESUME_RSVD_SIZE: u32 = 0x29;
    NV2080_CTRL_FB_INFO_INDEX_TILE_REGION_COUNT: u32 = 0;
    NV2080_CTRL_FB_INFO_INDEX_TILE_REGION_FREE_COUNT: u32 = 3;
    NV2080_CTRL_FB_INFO_INDEX_TOTAL_RAM_SIZE: u32 = 8;
    NV2080_CTRL_FB_INFO_INDEX_TRAINIG_2T: u32 = 0x21;
    NV2080_CTRL_FB_INFO_INDEX_USABLE_RAM_SIZE: u32 = 0x20;
    NV2080_CTRL_FB_INFO_INDEX_VISTA_RESERVED_HEAP_SIZE: u32 = 0x15;
}
