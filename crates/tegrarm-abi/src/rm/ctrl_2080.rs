//! Controls of the NV2080 interface: command numbers and parameter structures.
//!
//! Numbers: `tests/data/abi/rm-570.json` (driver 570.86.16).

use crate::layout::*;
use crate::rm::ctrl_0080::NV0080_CTRL_GR_ROUTE_INFO;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static CTRL_2080_STRUCTS: Abi::Rm570;

    /// `NV2080_CTRL_PERF_BOOST_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_PERF_BOOST_PARAMS {
        flags: u32,
        duration: u32,
    }

    /// `NV2080_CTRL_GPU_GET_GID_INFO_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_GET_GID_INFO_PARAMS {
        index: u32,
        flags: u32,
        length: u32,
        data: [u8; 256],
    }

    /// `NV2080_CTRL_GR_GET_INFO_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GR_GET_INFO_PARAMS {
        grInfoListSize: u32,
        _pad0: [u8; 4],
        grInfoList: u64,
        grRouteInfo: NV0080_CTRL_GR_ROUTE_INFO,
    }

    /// `NV2080_CTRL_FB_FLUSH_GPU_CACHE_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_FB_FLUSH_GPU_CACHE_PARAMS {
        addressArray: [u64; 500],
        addressArraySize: u32,
        addressAlign: u32,
        memBlockSizeBytes: u64,
        flags: u32,
        _pad0: [u8; 4],
    }

    /// `NV2080_CTRL_GR_GET_TPC_MASK_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GR_GET_TPC_MASK_PARAMS {
        grRouteInfo: NV0080_CTRL_GR_ROUTE_INFO,
        gpcId: u32,
        tpcMask: u32,
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

    /// `NV2080_CTRL_INTERNAL_STATIC_KGR_GET_INFO_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_INTERNAL_STATIC_KGR_GET_INFO_PARAMS {
        engineInfo: [NV2080_CTRL_INTERNAL_STATIC_GR_INFO; 8],
    }

    /// `NV2080_CTRL_GPU_GET_INFO_V2_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_GET_INFO_V2_PARAMS {
        gpuInfoListSize: u32,
        gpuInfoList: [u8; 520],
    }

    /// `NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS_gpuNameString` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS_gpuNameString {
        ascii: [u8; 64],
        _pad0: [u8; 64],
    }

    /// `NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS {
        gpuNameStringFlags: u32,
        gpuNameString: NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS_gpuNameString,
    }

    /// `NV2080_CTRL_GPU_GET_SHORT_NAME_STRING_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_GET_SHORT_NAME_STRING_PARAMS {
        gpuShortNameString: [u8; 64],
    }

    /// `NV2080_CTRL_GPU_GET_SIMULATION_INFO_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_GET_SIMULATION_INFO_PARAMS {
        type_: u32,
    }

    /// `NV2080_CTRL_GPU_QUERY_COMPUTE_MODE_RULES_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_QUERY_COMPUTE_MODE_RULES_PARAMS {
        rules: u32,
    }

    /// `NV2080_CTRL_GPU_GET_INFOROM_OBJECT_VERSION_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_GET_INFOROM_OBJECT_VERSION_PARAMS {
        objectType: [u8; 3],
        version: u8,
        subversion: u8,
    }

    /// `NV2080_CTRL_GPU_GET_INFOROM_IMAGE_VERSION_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_GET_INFOROM_IMAGE_VERSION_PARAMS {
        version: [u8; 16],
    }

    /// `NV2080_CTRL_GPU_EXEC_REG_OPS_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_EXEC_REG_OPS_PARAMS {
        hClientTarget: u32,
        hChannelTarget: u32,
        bNonTransactional: u32,
        reserved00: [u32; 2],
        regOpCount: u32,
        regOps: u64,
        grRouteInfo: NV0080_CTRL_GR_ROUTE_INFO,
    }

    /// `NV2080_CTRL_GPU_GET_ENGINES_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_GET_ENGINES_PARAMS {
        engineCount: u32,
        _pad0: [u8; 4],
        engineList: u64,
    }

    /// `NV2080_CTRL_GPU_GET_ENGINES_V2_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_GET_ENGINES_V2_PARAMS {
        engineCount: u32,
        engineList: [u32; 84],
    }

    /// `NV2080_CTRL_GPU_QUERY_ECC_EXCEPTION_STATUS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_QUERY_ECC_EXCEPTION_STATUS {
        count: u64,
    }

    /// `NV2080_CTRL_GPU_QUERY_ECC_UNIT_STATUS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_QUERY_ECC_UNIT_STATUS {
        enabled: u8,
        scrubComplete: u8,
        supported: u8,
        _pad0: [u8; 5],
        dbe: NV2080_CTRL_GPU_QUERY_ECC_EXCEPTION_STATUS,
        dbeNonResettable: NV2080_CTRL_GPU_QUERY_ECC_EXCEPTION_STATUS,
        sbe: NV2080_CTRL_GPU_QUERY_ECC_EXCEPTION_STATUS,
        sbeNonResettable: NV2080_CTRL_GPU_QUERY_ECC_EXCEPTION_STATUS,
    }

    /// `NV2080_CTRL_GPU_QUERY_ECC_STATUS_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_QUERY_ECC_STATUS_PARAMS {
        units: [NV2080_CTRL_GPU_QUERY_ECC_UNIT_STATUS; 36],
        bFatalPoisonError: u8,
        uncorrectableError: u8,
        _pad0: [u8; 2],
        flags: u32,
        grRouteInfo: NV0080_CTRL_GR_ROUTE_INFO,
    }

    /// `NV2080_CTRL_GPU_QUERY_ECC_CONFIGURATION_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_QUERY_ECC_CONFIGURATION_PARAMS {
        currentConfiguration: u32,
        defaultConfiguration: u32,
    }

    /// `NV2080_CTRL_GPU_GET_OEM_BOARD_INFO_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_GET_OEM_BOARD_INFO_PARAMS {
        buildDate: u32,
        marketingName: [u8; 24],
        serialNumber: [u8; 16],
        memoryManufacturer: u8,
        memoryPartID: [u8; 20],
        memoryDateCode: [u8; 6],
        productPartNumber: [u8; 20],
        boardRevision: [u8; 3],
        boardType: u8,
        board699PartNumber: [u8; 20],
        board965PartNumber: [u8; 20],
        _pad0: [u8; 1],
    }

    /// `NV2080_CTRL_GPU_GET_ID_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_GET_ID_PARAMS {
        gpuId: u32,
    }

    /// `NV2080_CTRL_GPU_GET_ENGINE_PARTNERLIST_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_GET_ENGINE_PARTNERLIST_PARAMS {
        engineType: u32,
        partnershipClassId: u32,
        runqueue: u32,
        numPartners: u32,
        partnerList: [u32; 32],
    }

    /// `NV2080_CTRL_GPU_GET_ACTIVE_PARTITION_IDS_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_GET_ACTIVE_PARTITION_IDS_PARAMS {
        swizzId: [u32; 9],
        partitionCount: u32,
    }

    /// `NV2080_CTRL_GPU_GET_PIDS_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_GET_PIDS_PARAMS {
        idType: u32,
        id: u32,
        pidTblCount: u32,
        pidTbl: [u32; 950],
    }

    /// `NV2080_CTRL_SMC_SUBSCRIPTION_INFO` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_SMC_SUBSCRIPTION_INFO {
        computeInstanceId: u32,
        gpuInstanceId: u32,
    }

    /// `NV2080_CTRL_GPU_PID_INFO` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_PID_INFO {
        pid: u32,
        index: u32,
        result: u32,
        _pad0: [u8; 4],
        data: [u8; 48],
        smcSubscription: NV2080_CTRL_SMC_SUBSCRIPTION_INFO,
    }

    /// `NV2080_CTRL_GPU_GET_PID_INFO_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_GET_PID_INFO_PARAMS {
        pidInfoListCount: u32,
        _pad0: [u8; 4],
        pidInfoList: [NV2080_CTRL_GPU_PID_INFO; 200],
    }

    /// `NV2080_CTRL_GPU_COMPUTE_POLICY_CONFIG_data` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_COMPUTE_POLICY_CONFIG_data {
        timeslice: u32,
    }

    /// `NV2080_CTRL_GPU_COMPUTE_POLICY_CONFIG` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_COMPUTE_POLICY_CONFIG {
        type_: u32,
        data: NV2080_CTRL_GPU_COMPUTE_POLICY_CONFIG_data,
    }

    /// `NV2080_CTRL_GPU_GET_COMPUTE_POLICY_CONFIG_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_GET_COMPUTE_POLICY_CONFIG_PARAMS {
        numConfigs: u32,
        configList: [NV2080_CTRL_GPU_COMPUTE_POLICY_CONFIG; 32],
    }

    /// `NV2080_CTRL_CMD_GET_GPU_FABRIC_PROBE_INFO_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_CMD_GET_GPU_FABRIC_PROBE_INFO_PARAMS {
        state: u8,
        _pad0: [u8; 3],
        status: u32,
        clusterUuid: [u8; 16],
        fabricPartitionId: u16,
        _pad1: [u8; 6],
        fabricCaps: u64,
        fabricCliqueId: u32,
        fabricHealthMask: u32,
    }

    /// `NV2080_CTRL_GPU_GET_CHIP_DETAILS_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_GET_CHIP_DETAILS_PARAMS {
        pciDevId: u32,
        chipSku: [u8; 4],
        chipMajor: u32,
        chipMinor: u32,
    }

    /// `NV2080_CTRL_GPU_GET_RECOVERY_ACTION_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_GET_RECOVERY_ACTION_PARAMS {
        action: u32,
    }

    /// `NV2080_CTRL_EVENT_SET_NOTIFICATION_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_EVENT_SET_NOTIFICATION_PARAMS {
        event: u32,
        action: u32,
        bNotifyState: u8,
        _pad0: [u8; 3],
        info32: u32,
        info16: u16,
        _pad1: [u8; 2],
    }

    /// `NV2080_CTRL_TIMER_GET_TIME_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_TIMER_GET_TIME_PARAMS {
        time_nsec: u64,
    }

    /// `NV2080_CTRL_TIMER_GPU_CPU_TIME_SAMPLE` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_TIMER_GPU_CPU_TIME_SAMPLE {
        cpuTime: u64,
        gpuTime: u64,
    }

    /// `NV2080_CTRL_TIMER_GET_GPU_CPU_TIME_CORRELATION_INFO_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_TIMER_GET_GPU_CPU_TIME_CORRELATION_INFO_PARAMS {
        cpuClkId: u8,
        sampleCount: u8,
        _pad0: [u8; 6],
        samples: [NV2080_CTRL_TIMER_GPU_CPU_TIME_SAMPLE; 16],
    }

    /// `NV2080_CTRL_GR_GET_ZCULL_INFO_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GR_GET_ZCULL_INFO_PARAMS {
        widthAlignPixels: u32,
        heightAlignPixels: u32,
        pixelSquaresByAliquots: u32,
        aliquotTotal: u32,
        zcullRegionByteMultiplier: u32,
        zcullRegionHeaderSize: u32,
        zcullSubregionHeaderSize: u32,
        subregionCount: u32,
        subregionWidthAlignPixels: u32,
        subregionHeightAlignPixels: u32,
    }

    /// `NV2080_CTRL_GR_CTXSW_ZCULL_BIND_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GR_CTXSW_ZCULL_BIND_PARAMS {
        hClient: u32,
        hChannel: u32,
        vMemPtr: u64,
        zcullMode: u32,
        _pad0: [u8; 4],
    }

    /// `NV2080_CTRL_GR_GET_CTX_BUFFER_SIZE_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GR_GET_CTX_BUFFER_SIZE_PARAMS {
        hChannel: u32,
        _pad0: [u8; 4],
        totalBufferSize: u64,
    }

    /// `NV2080_CTRL_GR_GET_GPC_MASK_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GR_GET_GPC_MASK_PARAMS {
        grRouteInfo: NV0080_CTRL_GR_ROUTE_INFO,
        gpcMask: u32,
        _pad0: [u8; 4],
    }

    /// `NV2080_CTRL_GR_GET_SM_TO_GPC_TPC_MAPPINGS_PARAMS_smId` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GR_GET_SM_TO_GPC_TPC_MAPPINGS_PARAMS_smId {
        gpcId: u32,
        tpcId: u32,
    }

    /// `NV2080_CTRL_GR_GET_SM_TO_GPC_TPC_MAPPINGS_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GR_GET_SM_TO_GPC_TPC_MAPPINGS_PARAMS {
        smId: [NV2080_CTRL_GR_GET_SM_TO_GPC_TPC_MAPPINGS_PARAMS_smId; 240],
        smCount: u32,
        _pad0: [u8; 4],
        grRouteInfo: NV0080_CTRL_GR_ROUTE_INFO,
    }

    /// `NV2080_CTRL_GR_GET_GLOBAL_SM_ORDER_PARAMS_globalSmId` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GR_GET_GLOBAL_SM_ORDER_PARAMS_globalSmId {
        gpcId: u16,
        localTpcId: u16,
        localSmId: u16,
        globalTpcId: u16,
        virtualGpcId: u16,
        migratableTpcId: u16,
    }

    /// `NV2080_CTRL_GR_GET_GLOBAL_SM_ORDER_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GR_GET_GLOBAL_SM_ORDER_PARAMS {
        globalSmId: [NV2080_CTRL_GR_GET_GLOBAL_SM_ORDER_PARAMS_globalSmId; 512],
        numSm: u16,
        numTpc: u16,
        _pad0: [u8; 4],
        grRouteInfo: NV0080_CTRL_GR_ROUTE_INFO,
    }

    /// `NV2080_CTRL_GR_SET_CTXSW_PREEMPTION_MODE_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GR_SET_CTXSW_PREEMPTION_MODE_PARAMS {
        flags: u32,
        hChannel: u32,
        gfxpPreemptMode: u32,
        cilpPreemptMode: u32,
        grRouteInfo: NV0080_CTRL_GR_ROUTE_INFO,
    }

    /// `NV2080_CTRL_GR_GET_CAPS_V2_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GR_GET_CAPS_V2_PARAMS {
        capsTbl: [u8; 23],
        _pad0: [u8; 1],
        grRouteInfo: NV0080_CTRL_GR_ROUTE_INFO,
        bCapsPopulated: u8,
        _pad1: [u8; 7],
    }

    /// `NV2080_CTRL_GR_GET_SM_ISSUE_RATE_MODIFIER_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GR_GET_SM_ISSUE_RATE_MODIFIER_PARAMS {
        grRouteInfo: NV0080_CTRL_GR_ROUTE_INFO,
        imla0: u8,
        fmla16: u8,
        dp: u8,
        fmla32: u8,
        ffma: u8,
        imla1: u8,
        imla2: u8,
        imla3: u8,
        imla4: u8,
        _pad0: [u8; 7],
    }

    /// `NV2080_CTRL_FB_GET_INFO_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_FB_GET_INFO_PARAMS {
        fbInfoListSize: u32,
        _pad0: [u8; 4],
        fbInfoList: u64,
    }

    /// `NV2080_CTRL_FB_GET_INFO_V2_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_FB_GET_INFO_V2_PARAMS {
        fbInfoListSize: u32,
        fbInfoList: [u8; 456],
    }

    /// `NV2080_CTRL_FB_GET_GPU_CACHE_INFO_PARAMS` of the RM user ABI (driver 570).
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

    /// `NV2080_CTRL_CMD_FB_GET_FB_REGION_INFO_PARAMS` of the RM user ABI (driver 570).
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

    /// `NV2080_CTRL_FB_GET_OFFLINED_PAGES_PARAMS` of the RM user ABI (driver 570).
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

    /// `NV2080_CTRL_SYSL2_FS_INFO_SYSLTC_MASK_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_SYSL2_FS_INFO_SYSLTC_MASK_PARAMS {
        sysIdx: u32,
        sysl2LtcEnMask: u32,
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

    /// `NV2080_CTRL_SYSL2_FS_INFO_SYSLTS_MASK_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_SYSL2_FS_INFO_SYSLTS_MASK_PARAMS {
        sysIdx: u32,
        _pad0: [u8; 4],
        sysl2LtsEnMask: u64,
    }

    /// `NV2080_CTRL_FB_FS_INFO_QUERY` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_FB_FS_INFO_QUERY {
        queryType: u16,
        reserved: [u8; 2],
        status: u32,
        queryParams: NV2080_CTRL_FB_FS_INFO_QUERY_queryParams,
    }

    /// `NV2080_CTRL_FB_GET_FS_INFO_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_FB_GET_FS_INFO_PARAMS {
        numQueries: u16,
        reserved: [u8; 6],
        queries: [NV2080_CTRL_FB_FS_INFO_QUERY; 120],
    }

    /// `NV2080_CTRL_FB_GET_SEMAPHORE_SURFACE_LAYOUT_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_FB_GET_SEMAPHORE_SURFACE_LAYOUT_PARAMS {
        maxSubmittedSemaphoreValueOffset: u64,
        monitoredFenceThresholdOffset: u64,
        size: u64,
        caps: u32,
        _pad0: [u8; 4],
    }

    /// `NV2080_CTRL_FB_QUERY_DRAM_ENCRYPTION_PENDING_CONFIGURATION_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_FB_QUERY_DRAM_ENCRYPTION_PENDING_CONFIGURATION_PARAMS {
        currentConfiguration: u32,
    }

    /// `NV2080_CTRL_FB_QUERY_DRAM_ENCRYPTION_STATUS_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_FB_QUERY_DRAM_ENCRYPTION_STATUS_PARAMS {
        currentStatus: u32,
    }

    /// `NV2080_CTRL_MC_GET_ARCH_INFO_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_MC_GET_ARCH_INFO_PARAMS {
        architecture: u32,
        implementation: u32,
        revision: u32,
        subRevision: u8,
        _pad0: [u8; 3],
    }

    /// `NV2080_CTRL_MC_SERVICE_INTERRUPTS_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_MC_SERVICE_INTERRUPTS_PARAMS {
        engines: u32,
    }

    /// `NV2080_CTRL_BUS_GET_PCI_INFO_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_BUS_GET_PCI_INFO_PARAMS {
        pciDeviceId: u32,
        pciSubSystemId: u32,
        pciRevisionId: u32,
        pciExtDeviceId: u32,
    }

    /// `NV2080_CTRL_BUS_GET_INFO_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_BUS_GET_INFO_PARAMS {
        busInfoListSize: u32,
        _pad0: [u8; 4],
        busInfoList: u64,
    }

    /// `NV2080_CTRL_BUS_GET_INFO_V2_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_BUS_GET_INFO_V2_PARAMS {
        busInfoListSize: u32,
        busInfoList: [u8; 416],
    }

    /// `NV2080_CTRL_BUS_PCI_BAR_INFO` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_BUS_PCI_BAR_INFO {
        flags: u32,
        barSize: u32,
        barSizeBytes: u64,
        barOffset: u64,
    }

    /// `NV2080_CTRL_BUS_GET_PCI_BAR_INFO_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_BUS_GET_PCI_BAR_INFO_PARAMS {
        pciBarCount: u32,
        _pad0: [u8; 4],
        pciBarInfo: [NV2080_CTRL_BUS_PCI_BAR_INFO; 8],
    }

    /// `NV2080_CTRL_BUS_GET_PEX_COUNTERS_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_BUS_GET_PEX_COUNTERS_PARAMS {
        pexCounterMask: u32,
        pexTotalCorrectableErrors: u32,
        pexCorrectableErrors: u16,
        pexTotalNonFatalErrors: u8,
        pexTotalFatalErrors: u8,
        pexTotalUnsupportedReqs: u8,
        _pad0: [u8; 1],
        pexCounters: [u16; 31],
    }

    /// `NV2080_CTRL_BUS_GET_PEX_UTIL_COUNTERS_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_BUS_GET_PEX_UTIL_COUNTERS_PARAMS {
        pexCounterMask: u32,
        pexCounters: [u32; 7],
    }

    /// `NV2080_CTRL_CMD_BUS_GET_PCIE_REQ_ATOMICS_CAPS_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_CMD_BUS_GET_PCIE_REQ_ATOMICS_CAPS_PARAMS {
        capType: u32,
        dbdf: u32,
        atomicsCaps: u32,
    }

    /// `NV2080_CTRL_BUS_PCIE_GPU_ATOMIC_OP_INFO` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_BUS_PCIE_GPU_ATOMIC_OP_INFO {
        bSupported: u8,
        _pad0: [u8; 3],
        attributes: u32,
    }

    /// `NV2080_CTRL_CMD_BUS_GET_PCIE_SUPPORTED_GPU_ATOMICS_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_CMD_BUS_GET_PCIE_SUPPORTED_GPU_ATOMICS_PARAMS {
        capType: u32,
        dbdf: u32,
        atomicOp: [NV2080_CTRL_BUS_PCIE_GPU_ATOMIC_OP_INFO; 13],
    }

    /// `NV2080_CTRL_CMD_BUS_GET_C2C_INFO_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_CMD_BUS_GET_C2C_INFO_PARAMS {
        bIsLinkUp: u8,
        _pad0: [u8; 3],
        nrLinks: u32,
        maxNrLinks: u32,
        linkMask: u32,
        perLinkBwMBps: u32,
        perLinkLaneWidth: u32,
        remoteType: u32,
    }

    /// `NV2080_CTRL_CMD_BUS_GET_PCIE_CPL_ATOMICS_CAPS_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_CMD_BUS_GET_PCIE_CPL_ATOMICS_CAPS_PARAMS {
        atomicsCaps: u32,
    }

    /// `NV2080_CTRL_PERF_GET_CURRENT_PSTATE_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_PERF_GET_CURRENT_PSTATE_PARAMS {
        currPstate: u32,
    }

    /// `NV2080_CTRL_RC_GET_WATCHDOG_INFO_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_RC_GET_WATCHDOG_INFO_PARAMS {
        watchdogStatusFlags: u32,
    }

    /// `NV2080_CTRL_CE_GET_CE_PCE_MASK_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_CE_GET_CE_PCE_MASK_PARAMS {
        ceEngineType: u32,
        pceMask: u32,
    }

    /// `NV2080_CTRL_CE_GET_CAPS_V2_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_CE_GET_CAPS_V2_PARAMS {
        ceEngineType: u32,
        capsTbl: [u8; 2],
        _pad0: [u8; 2],
    }

    /// `NV2080_CTRL_CE_GET_ALL_CAPS_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_CE_GET_ALL_CAPS_PARAMS {
        capsTbl: [[u8; 64]; 2],
        present: u64,
    }

    /// `NV2080_CTRL_FIFO_DISABLE_CHANNELS_PARAMS` of the RM user ABI (driver 570).
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

    /// `NV2080_CTRL_GPU_PROMOTE_CTX_BUFFER_ENTRY` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_PROMOTE_CTX_BUFFER_ENTRY {
        gpuPhysAddr: u64,
        gpuVirtAddr: u64,
        size: u64,
        physAttr: u32,
        bufferId: u16,
        bInitialize: u8,
        bNonmapped: u8,
    }

    /// `NV2080_CTRL_GPU_PROMOTE_CTX_PARAMS` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_PROMOTE_CTX_PARAMS {
        engineType: u32,
        hClient: u32,
        ChID: u32,
        hChanClient: u32,
        hObject: u32,
        hVirtMemory: u32,
        virtAddress: u64,
        size: u64,
        entryCount: u32,
        _pad0: [u8; 4],
        promoteEntry: [NV2080_CTRL_GPU_PROMOTE_CTX_BUFFER_ENTRY; 16],
    }

    /// `NV2080_CTRL_GR_INFO` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GR_INFO {
        index: u32,
        data: u32,
    }

    /// `NV2080_CTRL_FB_INFO` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_FB_INFO {
        index: u32,
        data: u32,
    }
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static CTRL_2080_CONSTS: Abi::Rm570;

    NV2080_CTRL_CMD_PERF_BOOST: u32 = 0x2080200a;
    NV2080_CTRL_CMD_GPU_GET_GID_INFO: u32 = 0x2080014a;
    NV2080_CTRL_CMD_GR_GET_INFO: u32 = 0x20801201;
    NV2080_CTRL_CMD_FB_FLUSH_GPU_CACHE: u32 = 0x2080130e;
    NV2080_CTRL_CMD_GR_GET_TPC_MASK: u32 = 0x2080122b;
    NV2080_CTRL_CMD_INTERNAL_STATIC_KGR_GET_INFO: u32 = 0x20800a2a;
    NV2080_CTRL_CMD_INTERNAL_BUS_FLUSH_WITH_SYSMEMBAR: u32 = 0x20800a70;
    NV2080_CTRL_CMD_GPU_GET_INFO_V2: u32 = 0x20800102;
    NV2080_CTRL_CMD_GPU_GET_NAME_STRING: u32 = 0x20800110;
    NV2080_CTRL_CMD_GPU_GET_SHORT_NAME_STRING: u32 = 0x20800111;
    NV2080_CTRL_CMD_GPU_GET_SIMULATION_INFO: u32 = 0x20800119;
    NV2080_CTRL_CMD_GPU_QUERY_COMPUTE_MODE_RULES: u32 = 0x20800131;
    NV2080_CTRL_CMD_GPU_GET_INFOROM_OBJECT_VERSION: u32 = 0x2080014b;
    NV2080_CTRL_CMD_GPU_GET_INFOROM_IMAGE_VERSION: u32 = 0x20800156;
    NV2080_CTRL_CMD_GPU_EXEC_REG_OPS: u32 = 0x20800122;
    NV2080_CTRL_CMD_GPU_GET_ENGINES: u32 = 0x20800123;
    NV2080_CTRL_CMD_GPU_GET_ENGINES_V2: u32 = 0x20800170;
    NV2080_CTRL_CMD_GPU_QUERY_ECC_STATUS: u32 = 0x2080012f;
    NV2080_CTRL_CMD_GPU_QUERY_ECC_CONFIGURATION: u32 = 0x20800133;
    NV2080_CTRL_CMD_GPU_QUERY_INFOROM_ECC_SUPPORT: u32 = 0x20800157;
    NV2080_CTRL_CMD_GPU_GET_OEM_BOARD_INFO: u32 = 0x2080013f;
    NV2080_CTRL_CMD_GPU_GET_ID: u32 = 0x20800142;
    NV2080_CTRL_CMD_GPU_GET_ENGINE_PARTNERLIST: u32 = 0x20800147;
    NV2080_CTRL_CMD_GPU_GET_ACTIVE_PARTITION_IDS: u32 = 0x2080018b;
    NV2080_CTRL_CMD_GPU_GET_PIDS: u32 = 0x2080018d;
    NV2080_CTRL_CMD_GPU_GET_PID_INFO: u32 = 0x2080018e;
    NV2080_CTRL_CMD_GPU_GET_COMPUTE_POLICY_CONFIG: u32 = 0x20800195;
    NV2080_CTRL_CMD_GET_GPU_FABRIC_PROBE_INFO: u32 = 0x208001a3;
    NV2080_CTRL_CMD_GPU_GET_CHIP_DETAILS: u32 = 0x208001a4;
    NV2080_CTRL_CMD_GPU_GET_RECOVERY_ACTION: u32 = 0x208001b2;
    NV2080_CTRL_CMD_EVENT_SET_NOTIFICATION: u32 = 0x20800301;
    NV2080_CTRL_CMD_TIMER_GET_TIME: u32 = 0x20800403;
    NV2080_CTRL_CMD_TIMER_GET_GPU_CPU_TIME_CORRELATION_INFO: u32 = 0x20800406;
    NV2080_CTRL_CMD_GR_GET_ZCULL_INFO: u32 = 0x20801206;
    NV2080_CTRL_CMD_GR_CTXSW_ZCULL_BIND: u32 = 0x20801208;
    NV2080_CTRL_CMD_GR_GET_CTX_BUFFER_SIZE: u32 = 0x20801218;
    NV2080_CTRL_CMD_GR_GET_GPC_MASK: u32 = 0x2080122a;
    NV2080_CTRL_CMD_GR_GET_SM_TO_GPC_TPC_MAPPINGS: u32 = 0x2080120f;
    NV2080_CTRL_CMD_GR_GET_GLOBAL_SM_ORDER: u32 = 0x2080121b;
    NV2080_CTRL_CMD_GR_SET_CTXSW_PREEMPTION_MODE: u32 = 0x20801210;
    NV2080_CTRL_CMD_GR_GET_CAPS_V2: u32 = 0x20801227;
    NV2080_CTRL_CMD_GR_GET_SM_ISSUE_RATE_MODIFIER: u32 = 0x20801230;
    NV2080_CTRL_CMD_FB_GET_INFO: u32 = 0x20801301;
    NV2080_CTRL_CMD_FB_GET_INFO_V2: u32 = 0x20801303;
    NV2080_CTRL_CMD_FB_GET_GPU_CACHE_INFO: u32 = 0x20801315;
    NV2080_CTRL_CMD_FB_GET_FB_REGION_INFO: u32 = 0x20801320;
    NV2080_CTRL_CMD_FB_GET_OFFLINED_PAGES: u32 = 0x20801322;
    NV2080_CTRL_CMD_FB_GET_FS_INFO: u32 = 0x20801346;
    NV2080_CTRL_CMD_FB_GET_SEMAPHORE_SURFACE_LAYOUT: u32 = 0x20801352;
    NV2080_CTRL_CMD_FB_QUERY_DRAM_ENCRYPTION_PENDING_CONFIGURATION: u32 = 0x20801355;
    NV2080_CTRL_CMD_FB_QUERY_DRAM_ENCRYPTION_STATUS: u32 = 0x20801359;
    NV2080_CTRL_CMD_MC_GET_ARCH_INFO: u32 = 0x20801701;
    NV2080_CTRL_CMD_MC_SERVICE_INTERRUPTS: u32 = 0x20801702;
    NV2080_CTRL_CMD_BUS_GET_PCI_INFO: u32 = 0x20801801;
    NV2080_CTRL_CMD_BUS_GET_INFO: u32 = 0x20801802;
    NV2080_CTRL_CMD_BUS_GET_INFO_V2: u32 = 0x20801823;
    NV2080_CTRL_CMD_BUS_GET_PCI_BAR_INFO: u32 = 0x20801803;
    NV2080_CTRL_CMD_BUS_GET_PEX_COUNTERS: u32 = 0x20801813;
    NV2080_CTRL_CMD_BUS_GET_PEX_UTIL_COUNTERS: u32 = 0x20801819;
    NV2080_CTRL_CMD_BUS_GET_PCIE_REQ_ATOMICS_CAPS: u32 = 0x20801829;
    NV2080_CTRL_CMD_BUS_GET_PCIE_SUPPORTED_GPU_ATOMICS: u32 = 0x2080182a;
    NV2080_CTRL_CMD_BUS_GET_C2C_INFO: u32 = 0x2080182b;
    NV2080_CTRL_CMD_BUS_GET_PCIE_CPL_ATOMICS_CAPS: u32 = 0x20801830;
    NV2080_CTRL_CMD_PERF_GET_CURRENT_PSTATE: u32 = 0x20802068;
    NV2080_CTRL_CMD_PERF_GET_GPUMON_PERFMON_UTIL_SAMPLES_V2: u32 = 0x20802096;
    NV2080_CTRL_CMD_RC_GET_WATCHDOG_INFO: u32 = 0x20802209;
    NV2080_CTRL_CMD_RC_RELEASE_WATCHDOG_REQUESTS: u32 = 0x2080220c;
    NV2080_CTRL_CMD_RC_SOFT_DISABLE_WATCHDOG: u32 = 0x20802210;
    NV2080_CTRL_CMD_CE_GET_CE_PCE_MASK: u32 = 0x20802a02;
    NV2080_CTRL_CMD_CE_GET_CAPS_V2: u32 = 0x20802a03;
    NV2080_CTRL_CMD_CE_GET_ALL_CAPS: u32 = 0x20802a0a;
    NV2080_CTRL_CMD_FIFO_DISABLE_CHANNELS: u32 = 0x2080110b;
    NV2080_CTRL_CMD_GPU_PROMOTE_CTX: u32 = 0x2080012b;
    NV2080_CTRL_BUS_INFO_INDEX_TYPE: u32 = 0;
    NV2080_CTRL_BUS_INFO_TYPE_AXI: u32 = 8;
    NV2080_CTRL_BUS_INFO_TYPE_FPCI: u32 = 4;
    NV2080_CTRL_BUS_INFO_TYPE_PCI: u32 = 1;
    NV2080_CTRL_BUS_INFO_TYPE_PCI_EXPRESS: u32 = 3;
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
    NV2080_CTRL_GR_INFO_INDEX_BUFFER_ALIGNMENT: u32 = 3;
    NV2080_CTRL_GR_INFO_INDEX_DUMMY: u32 = 0x33;
    NV2080_CTRL_GR_INFO_INDEX_FAMILY_MAX_TPC_PER_GPC: u32 = 0x2a;
    NV2080_CTRL_GR_INFO_INDEX_FB_MEMORY_REQUEST_GRANULARITY: u32 = 0x11;
    NV2080_CTRL_GR_INFO_INDEX_GEOM_GS_OBUF_ENTRIES: u32 = 0xf;
    NV2080_CTRL_GR_INFO_INDEX_GEOM_XBUF_ENTRIES: u32 = 0x10;
    NV2080_CTRL_GR_INFO_INDEX_GFX_CAPABILITIES: u32 = 0x34;
    NV2080_CTRL_GR_INFO_INDEX_GPU_CORE_COUNT: u32 = 0x1d;
    NV2080_CTRL_GR_INFO_INDEX_HOST_MEMORY_REQUEST_GRANULARITY: u32 = 0x12;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_MAX_NUM_SMC_ENGINES_PER_DIELET: u32 = 0x39;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_MIN_SUBCTX_PER_SMC_ENG: u32 = 0x37;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_FBPAS: u32 = 0x1b;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_FBPA_PER_FBP: u32 = 0x2b;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_FBPS: u32 = 0x15;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_GFXC_SMC_ENGINES: u32 = 0x33;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_GPCMMU_PER_GPC: u32 = 0x27;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_GPCS: u32 = 0x14;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_GPCS_PER_DIELET: u32 = 0x38;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_GRS: u32 = 0x24;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_HSHUB_FBP_PORTS: u32 = 0x21;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_LTCS: u32 = 0x25;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_LTC_PER_FBP: u32 = 0x28;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_LTC_SLICES: u32 = 0x26;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_MIN_FBPS: u32 = 0x18;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_MXBAR_FBP_PORTS: u32 = 0x19;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_MXBAR_HUB_PORTS: u32 = 0x1f;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_PES_PER_GPC: u32 = 0x1c;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_ROP_PER_GPC: u32 = 0x29;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_SLICES_PER_LTC: u32 = 0x32;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_SM_PER_TPC: u32 = 0x20;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_TPCS_PER_PES: u32 = 0x1e;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_TPC_PER_GPC: u32 = 0x17;
    NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_ZCULL_BANKS: u32 = 0x16;
    NV2080_CTRL_GR_INFO_INDEX_MAX: u32 = 0x39;
    NV2080_CTRL_GR_INFO_INDEX_MAXCLIPS: u32 = 0;
    NV2080_CTRL_GR_INFO_INDEX_MAX_LEGACY_SUBCONTEXT_COUNT: u32 = 0x2d;
    NV2080_CTRL_GR_INFO_INDEX_MAX_MIG_ENGINES: u32 = 0x35;
    NV2080_CTRL_GR_INFO_INDEX_MAX_PARTITIONABLE_GPCS: u32 = 0x36;
    NV2080_CTRL_GR_INFO_INDEX_MAX_PER_ENGINE_SUBCONTEXT_COUNT: u32 = 0x2e;
    NV2080_CTRL_GR_INFO_INDEX_MAX_SP_PER_SM: u32 = 0x13;
    NV2080_CTRL_GR_INFO_INDEX_MAX_SUBCONTEXT_COUNT: u32 = 0x2c;
    NV2080_CTRL_GR_INFO_INDEX_MAX_THREADS_PER_WARP: u32 = 0xe;
    NV2080_CTRL_GR_INFO_INDEX_MAX_WARPS_PER_SM: u32 = 0xd;
    NV2080_CTRL_GR_INFO_INDEX_MIN_ATTRS_BUG_261894: u32 = 1;
    NV2080_CTRL_GR_INFO_INDEX_RT_CORE_COUNT: u32 = 0x22;
    NV2080_CTRL_GR_INFO_INDEX_SHADER_PIPE_COUNT: u32 = 7;
    NV2080_CTRL_GR_INFO_INDEX_SHADER_PIPE_SUB_COUNT: u32 = 9;
    NV2080_CTRL_GR_INFO_INDEX_SM_REG_BANK_COUNT: u32 = 0xa;
    NV2080_CTRL_GR_INFO_INDEX_SM_REG_BANK_REG_COUNT: u32 = 0xb;
    NV2080_CTRL_GR_INFO_INDEX_SM_VERSION: u32 = 0xc;
    NV2080_CTRL_GR_INFO_INDEX_SWIZZLE_ALIGNMENT: u32 = 4;
    NV2080_CTRL_GR_INFO_INDEX_TENSOR_CORE_COUNT: u32 = 0x23;
    NV2080_CTRL_GR_INFO_INDEX_THREAD_STACK_SCALING_FACTOR: u32 = 8;
    NV2080_CTRL_GR_INFO_INDEX_TIMESLICE_ENABLED: u32 = 0x1a;
    NV2080_CTRL_GR_INFO_INDEX_VERTEX_CACHE_SIZE: u32 = 5;
    NV2080_CTRL_GR_INFO_INDEX_VPE_COUNT: u32 = 6;
    NV2080_CTRL_PERF_BOOST_FLAGS_ASYNC_NO: u32 = 0;
    NV2080_CTRL_PERF_BOOST_FLAGS_ASYNC_YES: u32 = 1;
    NV2080_CTRL_PERF_BOOST_FLAGS_CMD_BOOST_1LEVEL: u32 = 1;
    NV2080_CTRL_PERF_BOOST_FLAGS_CMD_BOOST_TO_MAX: u32 = 2;
    NV2080_CTRL_PERF_BOOST_FLAGS_CMD_CLEAR: u32 = 0;
    NV2080_CTRL_PERF_BOOST_FLAGS_CUDA_NO: u32 = 0;
    NV2080_CTRL_PERF_BOOST_FLAGS_CUDA_PRIORITY_DEFAULT: u32 = 0;
    NV2080_CTRL_PERF_BOOST_FLAGS_CUDA_PRIORITY_HIGH: u32 = 1;
    NV2080_CTRL_PERF_BOOST_FLAGS_CUDA_YES: u32 = 1;
    NV2080_GPU_CMD_GPU_GET_GID_FLAGS_FORMAT_ASCII: u32 = 0;
    NV2080_GPU_CMD_GPU_GET_GID_FLAGS_FORMAT_BINARY: u32 = 2;
    NV2080_GPU_CMD_GPU_GET_GID_FLAGS_TYPE_SHA1: u32 = 0;
}
