//! Controls of the NV0000 interface: command numbers and parameter structures.
//!
//! Numbers: `tests/data/abi/rm-570.json` (driver 570.86.16).

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static CTRL_0000_STRUCTS: Abi::Rm570;

    /// Parameters of `NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION_V2`.
    pub struct NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_V2_PARAMS {
        driverVersionBuffer: [u8; 256],
        versionBuffer: [u8; 256],
        driverBranch: [u8; 256],
        titleBuffer: [u8; 256],
        changelistNumber: u32,
        officialChangelistNumber: u32,
    }

    /// Parameters of `NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2`.
    pub struct NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS {
        gpuId: u32,
        gpuFlags: u32,
        deviceInstance: u32,
        subDeviceInstance: u32,
        sliStatus: u32,
        boardId: u32,
        gpuInstance: u32,
        numaId: i32,
    }

    /// Parameters of `NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION`.
    pub struct NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_PARAMS {
        sizeOfStrings: u32,
        _pad0: [u8; 4],
        pDriverVersionBuffer: u64,
        pVersionBuffer: u64,
        pTitleBuffer: u64,
        changelistNumber: u32,
        officialChangelistNumber: u32,
    }

    /// Parameters of `NV0000_CTRL_CMD_SYSTEM_GET_CPU_INFO`.
    pub struct NV0000_CTRL_SYSTEM_GET_CPU_INFO_PARAMS {
        type_: u32,
        capabilities: u32,
        clock: u32,
        L1DataCacheSize: u32,
        L2DataCacheSize: u32,
        dataCacheLineSize: u32,
        numLogicalCpus: u32,
        numPhysicalCpus: u32,
        name: [u8; 52],
        family: u32,
        model: u32,
        stepping: u8,
        _pad0: [u8; 3],
        coresOnDie: u32,
        bCCEnabled: u8,
        _pad1: [u8; 3],
        selfHostedSocType: u32,
    }

    /// Parameters of `NV0000_CTRL_CMD_SYSTEM_GET_FEATURES`.
    pub struct NV0000_CTRL_SYSTEM_GET_FEATURES_PARAMS {
        featuresMask: u32,
    }

    /// Parameters of `NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS`.
    pub struct NV0000_CTRL_SYSTEM_GET_P2P_CAPS_PARAMS {
        gpuIds: [u32; 32],
        gpuCount: u32,
        p2pCaps: u32,
        p2pOptimalReadCEs: u32,
        p2pOptimalWriteCEs: u32,
        p2pCapsStatus: [u8; 9],
        _pad0: [u8; 7],
        busPeerIds: u64,
        busEgmPeerIds: u64,
    }

    /// Parameters of `NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS_V2`.
    pub struct NV0000_CTRL_SYSTEM_GET_P2P_CAPS_V2_PARAMS {
        gpuIds: [u32; 32],
        gpuCount: u32,
        p2pCaps: u32,
        p2pOptimalReadCEs: u32,
        p2pOptimalWriteCEs: u32,
        p2pCapsStatus: [u8; 9],
        _pad0: [u8; 3],
        busPeerIds: [u32; 1024],
        busEgmPeerIds: [u32; 1024],
    }

    /// Parameters of `NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS_MATRIX`.
    pub struct NV0000_CTRL_SYSTEM_GET_P2P_CAPS_MATRIX_PARAMS {
        grpACount: u32,
        grpBCount: u32,
        gpuIdGrpA: [u32; 8],
        gpuIdGrpB: [u32; 8],
        p2pCaps: [[u32; 8]; 8],
        a2bOptimalReadCes: [[u32; 8]; 8],
        a2bOptimalWriteCes: [[u32; 8]; 8],
        b2aOptimalReadCes: [[u32; 8]; 8],
        b2aOptimalWriteCes: [[u32; 8]; 8],
    }

    /// Parameters of `NV0000_CTRL_CMD_SYSTEM_GET_FABRIC_STATUS`.
    pub struct NV0000_CTRL_SYSTEM_GET_FABRIC_STATUS_PARAMS {
        fabricStatus: u32,
    }

    /// Parameters of `NV0000_CTRL_CMD_GPU_GET_ATTACHED_IDS`.
    pub struct NV0000_CTRL_GPU_GET_ATTACHED_IDS_PARAMS {
        gpuIds: [u32; 32],
    }

    /// Parameters of `NV0000_CTRL_CMD_GPU_GET_PROBED_IDS`.
    pub struct NV0000_CTRL_GPU_GET_PROBED_IDS_PARAMS {
        gpuIds: [u32; 32],
        excludedGpuIds: [u32; 32],
    }

    /// Parameters of `NV0000_CTRL_CMD_GPU_GET_ID_INFO`.
    pub struct NV0000_CTRL_GPU_GET_ID_INFO_PARAMS {
        gpuId: u32,
        gpuFlags: u32,
        deviceInstance: u32,
        subDeviceInstance: u32,
        szName: u64,
        sliStatus: u32,
        boardId: u32,
        gpuInstance: u32,
        numaId: i32,
    }

    /// Parameters of `NV0000_CTRL_CMD_GPU_GET_DEVICE_IDS`.
    pub struct NV0000_CTRL_GPU_GET_DEVICE_IDS_PARAMS {
        deviceIds: u32,
    }

    /// `NV0000_CTRL_GPU_ACTIVE_DEVICE` of the RM user ABI (driver 570).
    pub struct NV0000_CTRL_GPU_ACTIVE_DEVICE {
        gpuId: u32,
        gpuInstanceId: u32,
        computeInstanceId: u32,
    }

    /// Parameters of `NV0000_CTRL_CMD_GPU_GET_ACTIVE_DEVICE_IDS`.
    pub struct NV0000_CTRL_GPU_GET_ACTIVE_DEVICE_IDS_PARAMS {
        numDevices: u32,
        devices: [NV0000_CTRL_GPU_ACTIVE_DEVICE; 256],
    }

    /// Parameters of `NV0000_CTRL_CMD_GPU_ATTACH_IDS`.
    pub struct NV0000_CTRL_GPU_ATTACH_IDS_PARAMS {
        gpuIds: [u32; 32],
        failedId: u32,
    }

    /// Parameters of `NV0000_CTRL_CMD_GPU_DETACH_IDS`.
    pub struct NV0000_CTRL_GPU_DETACH_IDS_PARAMS {
        gpuIds: [u32; 32],
    }

    /// Parameters of `NV0000_CTRL_CMD_GPU_ASYNC_ATTACH_ID`.
    pub struct NV0000_CTRL_GPU_ASYNC_ATTACH_ID_PARAMS {
        gpuId: u32,
    }

    /// Parameters of `NV0000_CTRL_CMD_GPU_WAIT_ATTACH_ID`.
    pub struct NV0000_CTRL_GPU_WAIT_ATTACH_ID_PARAMS {
        gpuId: u32,
    }

    /// Parameters of `NV0000_CTRL_CMD_GPU_GET_PCI_INFO`.
    pub struct NV0000_CTRL_GPU_GET_PCI_INFO_PARAMS {
        gpuId: u32,
        domain: u32,
        bus: u16,
        slot: u16,
    }

    /// Parameters of `NV0000_CTRL_CMD_GPU_GET_UUID_FROM_GPU_ID`.
    pub struct NV0000_CTRL_GPU_GET_UUID_FROM_GPU_ID_PARAMS {
        gpuId: u32,
        flags: u32,
        gpuUuid: [u8; 256],
        uuidStrLen: u32,
    }

    /// Parameters of `NV0000_CTRL_CMD_GPU_QUERY_DRAIN_STATE`.
    pub struct NV0000_CTRL_GPU_QUERY_DRAIN_STATE_PARAMS {
        gpuId: u32,
        drainState: u32,
        flags: u32,
    }

    /// Parameters of `NV0000_CTRL_CMD_GPU_GET_MEMOP_ENABLE`.
    pub struct NV0000_CTRL_GPU_GET_MEMOP_ENABLE_PARAMS {
        enableMask: u32,
    }

    /// Parameters of `NV0000_CTRL_CMD_GPUACCT_GET_ACCOUNTING_STATE`.
    pub struct NV0000_CTRL_GPUACCT_GET_ACCOUNTING_STATE_PARAMS {
        gpuId: u32,
        pid: u32,
        state: u32,
    }

    /// Parameters of `NV0000_CTRL_CMD_GSYNC_GET_ATTACHED_IDS`.
    pub struct NV0000_CTRL_GSYNC_GET_ATTACHED_IDS_PARAMS {
        gsyncIds: [u32; 4],
    }

    /// Parameters of `NV0000_CTRL_CMD_CLIENT_GET_ADDR_SPACE_TYPE`.
    pub struct NV0000_CTRL_CLIENT_GET_ADDR_SPACE_TYPE_PARAMS {
        hObject: u32,
        mapFlags: u32,
        addrSpaceType: u32,
    }

    /// Parameters of `NV0000_CTRL_CMD_CLIENT_SET_INHERITED_SHARE_POLICY`.
    pub struct NV0000_CTRL_CLIENT_SET_INHERITED_SHARE_POLICY_PARAMS {
        sharePolicy: [u8; 12],
    }

    /// `NV0000_CTRL_OS_UNIX_EXPORT_OBJECT_data_rmObject` of the RM user ABI (driver 570).
    pub struct NV0000_CTRL_OS_UNIX_EXPORT_OBJECT_data_rmObject {
        hDevice: u32,
        hParent: u32,
        hObject: u32,
    }

    /// `NV0000_CTRL_OS_UNIX_EXPORT_OBJECT_data` of the RM user ABI (driver 570).
    pub struct NV0000_CTRL_OS_UNIX_EXPORT_OBJECT_data {
        rmObject: NV0000_CTRL_OS_UNIX_EXPORT_OBJECT_data_rmObject,
    }

    /// `NV0000_CTRL_OS_UNIX_EXPORT_OBJECT` of the RM user ABI (driver 570).
    pub struct NV0000_CTRL_OS_UNIX_EXPORT_OBJECT {
        type_: u32,
        data: NV0000_CTRL_OS_UNIX_EXPORT_OBJECT_data,
    }

    /// Parameters of `NV0000_CTRL_CMD_OS_UNIX_EXPORT_OBJECT_TO_FD`.
    pub struct NV0000_CTRL_OS_UNIX_EXPORT_OBJECT_TO_FD_PARAMS {
        object: NV0000_CTRL_OS_UNIX_EXPORT_OBJECT,
        fd: i32,
        flags: u32,
    }

    /// Parameters of `NV0000_CTRL_CMD_OS_UNIX_IMPORT_OBJECT_FROM_FD`.
    pub struct NV0000_CTRL_OS_UNIX_IMPORT_OBJECT_FROM_FD_PARAMS {
        fd: i32,
        object: NV0000_CTRL_OS_UNIX_EXPORT_OBJECT,
    }

    /// Parameters of `NV0000_CTRL_CMD_OS_UNIX_GET_EXPORT_OBJECT_INFO`.
    pub struct NV0000_CTRL_OS_UNIX_GET_EXPORT_OBJECT_INFO_PARAMS {
        fd: i32,
        deviceInstance: u32,
        gpuInstanceId: u32,
        maxObjects: u16,
        metadata: [u8; 64],
        _pad0: [u8; 2],
    }

    /// Parameters of `NV0000_CTRL_CMD_OS_UNIX_EXPORT_OBJECTS_TO_FD`.
    pub struct NV0000_CTRL_OS_UNIX_EXPORT_OBJECTS_TO_FD_PARAMS {
        fd: i32,
        hDevice: u32,
        maxObjects: u16,
        metadata: [u8; 64],
        _pad0: [u8; 2],
        objects: [u32; 512],
        numObjects: u16,
        index: u16,
    }

    /// Parameters of `NV0000_CTRL_CMD_OS_UNIX_IMPORT_OBJECTS_FROM_FD`.
    pub struct NV0000_CTRL_OS_UNIX_IMPORT_OBJECTS_FROM_FD_PARAMS {
        fd: i32,
        hParent: u32,
        objects: [u32; 128],
        objectTypes: [u8; 128],
        numObjects: u16,
        index: u16,
    }
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static CTRL_0000_CONSTS: Abi::Rm570;

    NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION_V2: u32 = 0x13e;
    NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2: u32 = 0x205;
    NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION: u32 = 0x101;
    NV0000_CTRL_CMD_SYSTEM_GET_CPU_INFO: u32 = 0x102;
    NV0000_CTRL_CMD_SYSTEM_GET_FEATURES: u32 = 0x1f0;
    NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS: u32 = 0x127;
    NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS_V2: u32 = 0x12b;
    NV0000_CTRL_CMD_SYSTEM_GET_P2P_CAPS_MATRIX: u32 = 0x13a;
    NV0000_CTRL_CMD_SYSTEM_GET_FABRIC_STATUS: u32 = 0x136;
    NV0000_CTRL_CMD_GPU_GET_ATTACHED_IDS: u32 = 0x201;
    NV0000_CTRL_CMD_GPU_GET_PROBED_IDS: u32 = 0x214;
    NV0000_CTRL_CMD_GPU_GET_ID_INFO: u32 = 0x202;
    NV0000_CTRL_CMD_GPU_GET_DEVICE_IDS: u32 = 0x204;
    NV0000_CTRL_CMD_GPU_GET_ACTIVE_DEVICE_IDS: u32 = 0x288;
    NV0000_CTRL_CMD_GPU_ATTACH_IDS: u32 = 0x215;
    NV0000_CTRL_CMD_GPU_DETACH_IDS: u32 = 0x216;
    NV0000_CTRL_CMD_GPU_ASYNC_ATTACH_ID: u32 = 0x289;
    NV0000_CTRL_CMD_GPU_WAIT_ATTACH_ID: u32 = 0x290;
    NV0000_CTRL_CMD_GPU_GET_PCI_INFO: u32 = 0x21b;
    NV0000_CTRL_CMD_GPU_GET_UUID_FROM_GPU_ID: u32 = 0x275;
    NV0000_CTRL_CMD_GPU_QUERY_DRAIN_STATE: u32 = 0x279;
    NV0000_CTRL_CMD_GPU_GET_MEMOP_ENABLE: u32 = 0x27b;
    NV0000_CTRL_CMD_GPUACCT_GET_ACCOUNTING_STATE: u32 = 0xb02;
    NV0000_CTRL_CMD_GSYNC_GET_ATTACHED_IDS: u32 = 0x301;
    NV0000_CTRL_CMD_SYNC_GPU_BOOST_GROUP_INFO: u32 = 0xa04;
    NV0000_CTRL_CMD_CLIENT_GET_ADDR_SPACE_TYPE: u32 = 0xd01;
    NV0000_CTRL_CMD_CLIENT_SET_INHERITED_SHARE_POLICY: u32 = 0xd04;
    NV0000_CTRL_CMD_OS_UNIX_EXPORT_OBJECT_TO_FD: u32 = 0x3d05;
    NV0000_CTRL_CMD_OS_UNIX_IMPORT_OBJECT_FROM_FD: u32 = 0x3d06;
    NV0000_CTRL_CMD_OS_UNIX_GET_EXPORT_OBJECT_INFO: u32 = 0x3d08;
    NV0000_CTRL_CMD_OS_UNIX_EXPORT_OBJECTS_TO_FD: u32 = 0x3d0b;
    NV0000_CTRL_CMD_OS_UNIX_IMPORT_OBJECTS_FROM_FD: u32 = 0x3d0c;
    NV0000_CTRL_GPU_ID_INFO_ATS_ENABLED_FALSE: u32 = 0;
    NV0000_CTRL_GPU_ID_INFO_ATS_ENABLED_TRUE: u32 = 1;
    NV0000_CTRL_GPU_ID_INFO_BOOT_MASTER_FALSE: u32 = 0;
    NV0000_CTRL_GPU_ID_INFO_BOOT_MASTER_TRUE: u32 = 1;
    NV0000_CTRL_GPU_ID_INFO_IN_USE_FALSE: u32 = 0;
    NV0000_CTRL_GPU_ID_INFO_IN_USE_TRUE: u32 = 1;
    NV0000_CTRL_GPU_ID_INFO_LINKED_INTO_SLI_DEVICE_FALSE: u32 = 0;
    NV0000_CTRL_GPU_ID_INFO_LINKED_INTO_SLI_DEVICE_TRUE: u32 = 1;
    NV0000_CTRL_GPU_ID_INFO_MOBILE_FALSE: u32 = 0;
    NV0000_CTRL_GPU_ID_INFO_MOBILE_TRUE: u32 = 1;
    NV0000_CTRL_GPU_ID_INFO_SOC_FALSE: u32 = 0;
    NV0000_CTRL_GPU_ID_INFO_SOC_TRUE: u32 = 1;
    NV0000_CTRL_GPU_INVALID_ID: u32 = 0xffffffff;
    NV0000_CTRL_GPU_MAX_ACTIVE_DEVICES: u32 = 0x100;
    NV0000_CTRL_GPU_MAX_ATTACHED_GPUS: u32 = 0x20;
    NV0000_CTRL_GPU_MAX_SZNAME: u32 = 0x80;
    NV0000_CTRL_GPU_MAX_VIDEO_LINKS: u32 = 8;
}
