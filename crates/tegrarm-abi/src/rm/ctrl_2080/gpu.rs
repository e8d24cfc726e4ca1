//! Controls of the NV2080 interface, GPU category: identity, engines, policy.
//!
//! Numbers: `tests/data/abi/rm-570.json` (driver 570.86.16).

use super::engines::NV2080_CTRL_SMC_SUBSCRIPTION_INFO;
use crate::layout::*;
use crate::rm::ctrl_0080::NV0080_CTRL_GR_ROUTE_INFO;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static CTRL_2080_GPU_STRUCTS: Abi::Rm570;

    /// Parameters of `NV2080_CTRL_CMD_GPU_GET_GID_INFO`.
    pub struct NV2080_CTRL_GPU_GET_GID_INFO_PARAMS {
        index: u32,
        flags: u32,
        length: u32,
        data: [u8; 256],
    }

    /// Parameters of `NV2080_CTRL_CMD_GPU_GET_INFO_V2`.
    pub struct NV2080_CTRL_GPU_GET_INFO_V2_PARAMS {
        gpuInfoListSize: u32,
        gpuInfoList: [u8; 520],
    }

    /// `NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS_gpuNameString` of the RM user ABI (driver 570).
    pub struct NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS_gpuNameString {
        ascii: [u8; 64],
        _pad0: [u8; 64],
    }

    /// Parameters of `NV2080_CTRL_CMD_GPU_GET_NAME_STRING`.
    pub struct NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS {
        gpuNameStringFlags: u32,
        gpuNameString: NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS_gpuNameString,
    }

    /// Parameters of `NV2080_CTRL_CMD_GPU_GET_SHORT_NAME_STRING`.
    pub struct NV2080_CTRL_GPU_GET_SHORT_NAME_STRING_PARAMS {
        gpuShortNameString: [u8; 64],
    }

    /// Parameters of `NV2080_CTRL_CMD_GPU_GET_SIMULATION_INFO`.
    pub struct NV2080_CTRL_GPU_GET_SIMULATION_INFO_PARAMS {
        type_: u32,
    }

    /// Parameters of `NV2080_CTRL_CMD_GPU_QUERY_COMPUTE_MODE_RULES`.
    pub struct NV2080_CTRL_GPU_QUERY_COMPUTE_MODE_RULES_PARAMS {
        rules: u32,
    }

    /// Parameters of `NV2080_CTRL_CMD_GPU_GET_INFOROM_OBJECT_VERSION`.
    pub struct NV2080_CTRL_GPU_GET_INFOROM_OBJECT_VERSION_PARAMS {
        objectType: [u8; 3],
        version: u8,
        subversion: u8,
    }

    /// Parameters of `NV2080_CTRL_CMD_GPU_GET_INFOROM_IMAGE_VERSION`.
    pub struct NV2080_CTRL_GPU_GET_INFOROM_IMAGE_VERSION_PARAMS {
        version: [u8; 16],
    }

    /// Parameters of `NV2080_CTRL_CMD_GPU_EXEC_REG_OPS`.
    pub struct NV2080_CTRL_GPU_EXEC_REG_OPS_PARAMS {
        hClientTarget: u32,
        hChannelTarget: u32,
        bNonTransactional: u32,
        reserved00: [u32; 2],
        regOpCount: u32,
        regOps: u64,
        grRouteInfo: NV0080_CTRL_GR_ROUTE_INFO,
    }

    /// Parameters of `NV2080_CTRL_CMD_GPU_GET_ENGINES`.
    pub struct NV2080_CTRL_GPU_GET_ENGINES_PARAMS {
        engineCount: u32,
        _pad0: [u8; 4],
        engineList: u64,
    }

    /// Parameters of `NV2080_CTRL_CMD_GPU_GET_ENGINES_V2`.
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

    /// Parameters of `NV2080_CTRL_CMD_GPU_QUERY_ECC_STATUS`.
    pub struct NV2080_CTRL_GPU_QUERY_ECC_STATUS_PARAMS {
        units: [NV2080_CTRL_GPU_QUERY_ECC_UNIT_STATUS; 36],
        bFatalPoisonError: u8,
        uncorrectableError: u8,
        _pad0: [u8; 2],
        flags: u32,
        grRouteInfo: NV0080_CTRL_GR_ROUTE_INFO,
    }

    /// Parameters of `NV2080_CTRL_CMD_GPU_QUERY_ECC_CONFIGURATION`.
    pub struct NV2080_CTRL_GPU_QUERY_ECC_CONFIGURATION_PARAMS {
        currentConfiguration: u32,
        defaultConfiguration: u32,
    }

    /// Parameters of `NV2080_CTRL_CMD_GPU_GET_OEM_BOARD_INFO`.
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

    /// Parameters of `NV2080_CTRL_CMD_GPU_GET_ID`.
    pub struct NV2080_CTRL_GPU_GET_ID_PARAMS {
        gpuId: u32,
    }

    /// Parameters of `NV2080_CTRL_CMD_GPU_GET_ENGINE_PARTNERLIST`.
    pub struct NV2080_CTRL_GPU_GET_ENGINE_PARTNERLIST_PARAMS {
        engineType: u32,
        partnershipClassId: u32,
        runqueue: u32,
        numPartners: u32,
        partnerList: [u32; 32],
    }

    /// Parameters of `NV2080_CTRL_CMD_GPU_GET_ACTIVE_PARTITION_IDS`.
    pub struct NV2080_CTRL_GPU_GET_ACTIVE_PARTITION_IDS_PARAMS {
        swizzId: [u32; 9],
        partitionCount: u32,
    }

    /// Parameters of `NV2080_CTRL_CMD_GPU_GET_PIDS`.
    pub struct NV2080_CTRL_GPU_GET_PIDS_PARAMS {
        idType: u32,
        id: u32,
        pidTblCount: u32,
        pidTbl: [u32; 950],
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

    /// Parameters of `NV2080_CTRL_CMD_GPU_GET_PID_INFO`.
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

    /// Parameters of `NV2080_CTRL_CMD_GPU_GET_COMPUTE_POLICY_CONFIG`.
    pub struct NV2080_CTRL_GPU_GET_COMPUTE_POLICY_CONFIG_PARAMS {
        numConfigs: u32,
        configList: [NV2080_CTRL_GPU_COMPUTE_POLICY_CONFIG; 32],
    }

    /// Parameters of `NV2080_CTRL_CMD_GET_GPU_FABRIC_PROBE_INFO`.
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

    /// Parameters of `NV2080_CTRL_CMD_GPU_GET_CHIP_DETAILS`.
    pub struct NV2080_CTRL_GPU_GET_CHIP_DETAILS_PARAMS {
        pciDevId: u32,
        chipSku: [u8; 4],
        chipMajor: u32,
        chipMinor: u32,
    }

    /// Parameters of `NV2080_CTRL_CMD_GPU_GET_RECOVERY_ACTION`.
    pub struct NV2080_CTRL_GPU_GET_RECOVERY_ACTION_PARAMS {
        action: u32,
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

    /// Parameters of `NV2080_CTRL_CMD_GPU_PROMOTE_CTX`.
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
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static CTRL_2080_GPU_CONSTS: Abi::Rm570;

    NV2080_CTRL_CMD_GPU_GET_GID_INFO: u32 = 0x2080014a;
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
    NV2080_CTRL_CMD_GPU_PROMOTE_CTX: u32 = 0x2080012b;
    NV2080_GPU_CMD_GPU_GET_GID_FLAGS_FORMAT_ASCII: u32 = 0;
    NV2080_GPU_CMD_GPU_GET_GID_FLAGS_FORMAT_BINARY: u32 = 2;
    NV2080_GPU_CMD_GPU_GET_GID_FLAGS_TYPE_SHA1: u32 = 0;
}

abi_consts! {
    /// Further constants of this file, from `tests/data/abi/extra.json`.
    pub static FURTHER_CTRL_2080_GPU_CONSTS: Abi::Extra;

    NV2080_CTRL_CMD_GPU_GET_SKYLINE_INFO: u32 = 0x2080019f;
    NV2080_CTRL_CMD_GPU_ACQUIRE_COMPUTE_MODE_RESERVATION: u32 = 0x20800145;
    NV2080_CTRL_CMD_GPU_RELEASE_COMPUTE_MODE_RESERVATION: u32 = 0x20800146;
}
