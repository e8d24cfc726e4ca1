//! `/dev/nvidia-uvm`: ioctl numbers (bare integers) and argument structures.
//!
//! Numbers: `tests/data/abi/rm-570.json` (driver 570.86.16).

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static UVM_STRUCTS: Abi::Rm570;

    /// `UVM_ADD_SESSION_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_ADD_SESSION_PARAMS {
        pidTarget: u32,
        _pad0: [u8; 4],
        countersBaseAddress: u64,
        sessionIndex: i32,
        rmStatus: u32,
    }

    /// `nv_uuid` of the RM user ABI (driver 570).
    pub struct nv_uuid {
        uuid: [u8; 16],
    }

    /// `UVM_ALLOC_DEVICE_P2P_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_ALLOC_DEVICE_P2P_PARAMS {
        base: u64,
        length: u64,
        offset: u64,
        gpuUuid: nv_uuid,
        rmCtrlFd: i32,
        hClient: u32,
        hMemory: u32,
        rmStatus: u32,
    }

    /// `UvmGpuMappingAttributes` of the RM user ABI (driver 570).
    pub struct UvmGpuMappingAttributes {
        gpuUuid: nv_uuid,
        gpuMappingType: u32,
        gpuCachingType: u32,
        gpuFormatType: u32,
        gpuElementBits: u32,
        gpuCompressionType: u32,
    }

    /// `UVM_ALLOC_SEMAPHORE_POOL_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_ALLOC_SEMAPHORE_POOL_PARAMS {
        base: u64,
        length: u64,
        perGpuAttributes: [UvmGpuMappingAttributes; 256],
        gpuAttributesCount: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_ALLOW_MIGRATION_RANGE_GROUPS_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_ALLOW_MIGRATION_RANGE_GROUPS_PARAMS {
        rangeGroupIds: [u64; 32],
        numGroupIds: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_CLEAN_UP_ZOMBIE_RESOURCES_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_CLEAN_UP_ZOMBIE_RESOURCES_PARAMS {
        rmStatus: u32,
    }

    /// `UVM_CLEAR_ALL_ACCESS_COUNTERS_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_CLEAR_ALL_ACCESS_COUNTERS_PARAMS {
        rmStatus: u32,
    }

    /// `UVM_CREATE_EVENT_QUEUE_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_CREATE_EVENT_QUEUE_PARAMS {
        sessionIndex: i32,
        eventQueueIndex: u32,
        queueSize: u64,
        notificationCount: u64,
        timeStampType: u32,
        rmStatus: u32,
    }

    /// `UVM_CREATE_EXTERNAL_RANGE_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_CREATE_EXTERNAL_RANGE_PARAMS {
        base: u64,
        length: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_CREATE_RANGE_GROUP_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_CREATE_RANGE_GROUP_PARAMS {
        rangeGroupId: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_DEBUG_ACCESS_MEMORY_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_DEBUG_ACCESS_MEMORY_PARAMS {
        sessionIndex: i32,
        _pad0: [u8; 4],
        baseAddress: u64,
        sizeInBytes: u64,
        accessType: u32,
        _pad1: [u8; 4],
        buffer: u64,
        isBitmaskSet: u8,
        _pad2: [u8; 7],
        bitmask: u64,
        rmStatus: u32,
        _pad3: [u8; 4],
    }

    /// `UVM_DESTROY_RANGE_GROUP_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_DESTROY_RANGE_GROUP_PARAMS {
        rangeGroupId: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_DISABLE_PEER_ACCESS_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_DISABLE_PEER_ACCESS_PARAMS {
        gpuUuidA: nv_uuid,
        gpuUuidB: nv_uuid,
        rmStatus: u32,
    }

    /// `UVM_DISABLE_READ_DUPLICATION_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_DISABLE_READ_DUPLICATION_PARAMS {
        requestedBase: u64,
        length: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_DISABLE_SYSTEM_WIDE_ATOMICS_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_DISABLE_SYSTEM_WIDE_ATOMICS_PARAMS {
        gpu_uuid: nv_uuid,
        rmStatus: u32,
    }

    /// `UvmCounterConfig` of the RM user ABI (driver 570).
    pub struct UvmCounterConfig {
        scope: u32,
        name: u32,
        gpuid: nv_uuid,
        state: u32,
    }

    /// `UVM_ENABLE_COUNTERS_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_ENABLE_COUNTERS_PARAMS {
        sessionIndex: i32,
        config: [UvmCounterConfig; 32],
        count: u32,
        rmStatus: u32,
    }

    /// `UVM_ENABLE_PEER_ACCESS_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_ENABLE_PEER_ACCESS_PARAMS {
        gpuUuidA: nv_uuid,
        gpuUuidB: nv_uuid,
        rmStatus: u32,
    }

    /// `UVM_ENABLE_READ_DUPLICATION_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_ENABLE_READ_DUPLICATION_PARAMS {
        requestedBase: u64,
        length: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_ENABLE_SYSTEM_WIDE_ATOMICS_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_ENABLE_SYSTEM_WIDE_ATOMICS_PARAMS {
        gpu_uuid: nv_uuid,
        rmStatus: u32,
    }

    /// `UVM_EVENT_CTRL_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_EVENT_CTRL_PARAMS {
        sessionIndex: i32,
        eventQueueIndex: u32,
        eventType: i32,
        enable: u32,
        rmStatus: u32,
    }

    /// `UVM_FREE_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_FREE_PARAMS {
        base: u64,
        length: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_GET_GPU_UUID_TABLE_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_GET_GPU_UUID_TABLE_PARAMS {
        gpuUuidArray: [nv_uuid; 32],
        validCount: u32,
        rmStatus: u32,
    }

    /// `UVM_INITIALIZE_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_INITIALIZE_PARAMS {
        flags: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_IS_8_SUPPORTED_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_IS_8_SUPPORTED_PARAMS {
        is8Supported: u32,
        rmStatus: u32,
    }

    /// `UVM_MAP_COUNTER_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_MAP_COUNTER_PARAMS {
        sessionIndex: i32,
        scope: u32,
        counterName: u32,
        gpuUuid: nv_uuid,
        _pad0: [u8; 4],
        addr: u64,
        rmStatus: u32,
        _pad1: [u8; 4],
    }

    /// `UVM_MAP_DYNAMIC_PARALLELISM_REGION_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_MAP_DYNAMIC_PARALLELISM_REGION_PARAMS {
        base: u64,
        length: u64,
        gpuUuid: nv_uuid,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_MAP_EVENT_QUEUE_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_MAP_EVENT_QUEUE_PARAMS {
        sessionIndex: i32,
        eventQueueIndex: u32,
        userRODataAddr: u64,
        userRWDataAddr: u64,
        readIndexAddr: u64,
        writeIndexAddr: u64,
        queueBufferAddr: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_MAP_EXTERNAL_ALLOCATION_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_MAP_EXTERNAL_ALLOCATION_PARAMS {
        base: u64,
        length: u64,
        offset: u64,
        perGpuAttributes: [UvmGpuMappingAttributes; 256],
        gpuAttributesCount: u64,
        rmCtrlFd: i32,
        hClient: u32,
        hMemory: u32,
        rmStatus: u32,
    }

    /// `UVM_MAP_EXTERNAL_SPARSE_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_MAP_EXTERNAL_SPARSE_PARAMS {
        base: u64,
        length: u64,
        gpuUuid: nv_uuid,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_MEM_MAP_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_MEM_MAP_PARAMS {
        regionBase: u64,
        regionLength: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_MIGRATE_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_MIGRATE_PARAMS {
        base: u64,
        length: u64,
        destinationUuid: nv_uuid,
        flags: u32,
        _pad0: [u8; 4],
        semaphoreAddress: u64,
        semaphorePayload: u32,
        cpuNumaNode: i32,
        userSpaceStart: u64,
        userSpaceLength: u64,
        rmStatus: u32,
        _pad1: [u8; 4],
    }

    /// `UVM_MIGRATE_RANGE_GROUP_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_MIGRATE_RANGE_GROUP_PARAMS {
        rangeGroupId: u64,
        destinationUuid: nv_uuid,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_MM_INITIALIZE_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_MM_INITIALIZE_PARAMS {
        uvmFd: i32,
        rmStatus: u32,
    }

    /// `UVM_PAGEABLE_MEM_ACCESS_ON_GPU_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_PAGEABLE_MEM_ACCESS_ON_GPU_PARAMS {
        gpu_uuid: nv_uuid,
        pageableMemAccess: u8,
        _pad0: [u8; 3],
        rmStatus: u32,
    }

    /// `UVM_PAGEABLE_MEM_ACCESS_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_PAGEABLE_MEM_ACCESS_PARAMS {
        pageableMemAccess: u8,
        _pad0: [u8; 3],
        rmStatus: u32,
    }

    /// `UVM_POPULATE_PAGEABLE_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_POPULATE_PAGEABLE_PARAMS {
        base: u64,
        length: u64,
        flags: u32,
        rmStatus: u32,
    }

    /// `UVM_PREVENT_MIGRATION_RANGE_GROUPS_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_PREVENT_MIGRATION_RANGE_GROUPS_PARAMS {
        rangeGroupIds: [u64; 32],
        numGroupIds: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_REGION_COMMIT_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_REGION_COMMIT_PARAMS {
        requestedBase: u64,
        length: u64,
        streamId: u64,
        gpuUuid: nv_uuid,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_REGION_DECOMMIT_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_REGION_DECOMMIT_PARAMS {
        requestedBase: u64,
        length: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_REGION_SET_STREAM_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_REGION_SET_STREAM_PARAMS {
        requestedBase: u64,
        length: u64,
        newStreamId: u64,
        gpuUuid: nv_uuid,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_REGISTER_CHANNEL_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_REGISTER_CHANNEL_PARAMS {
        gpuUuid: nv_uuid,
        rmCtrlFd: i32,
        hClient: u32,
        hChannel: u32,
        _pad0: [u8; 4],
        base: u64,
        length: u64,
        rmStatus: u32,
        _pad1: [u8; 4],
    }

    /// `UVM_REGISTER_GPU_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_REGISTER_GPU_PARAMS {
        gpu_uuid: nv_uuid,
        numaEnabled: u8,
        _pad0: [u8; 3],
        numaNodeId: i32,
        rmCtrlFd: i32,
        hClient: u32,
        hSmcPartRef: u32,
        rmStatus: u32,
    }

    /// `UVM_REGISTER_GPU_VASPACE_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_REGISTER_GPU_VASPACE_PARAMS {
        gpuUuid: nv_uuid,
        rmCtrlFd: i32,
        hClient: u32,
        hVaSpace: u32,
        rmStatus: u32,
    }

    /// `UVM_REGISTER_MPS_CLIENT_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_REGISTER_MPS_CLIENT_PARAMS {
        serverId: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_REGISTER_MPS_SERVER_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_REGISTER_MPS_SERVER_PARAMS {
        gpuUuidArray: [nv_uuid; 32],
        numGpus: u32,
        _pad0: [u8; 4],
        serverId: u64,
        rmStatus: u32,
        _pad1: [u8; 4],
    }

    /// `UVM_RELEASE_VA_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_RELEASE_VA_PARAMS {
        requestedBase: u64,
        length: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_REMOVE_EVENT_QUEUE_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_REMOVE_EVENT_QUEUE_PARAMS {
        sessionIndex: i32,
        eventQueueIndex: u32,
        rmStatus: u32,
    }

    /// `UVM_REMOVE_SESSION_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_REMOVE_SESSION_PARAMS {
        sessionIndex: i32,
        rmStatus: u32,
    }

    /// `UVM_RESERVE_VA_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_RESERVE_VA_PARAMS {
        requestedBase: u64,
        length: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_RUN_TEST_PARAMS_multiGpu` of the RM user ABI (driver 570).
    pub struct UVM_RUN_TEST_PARAMS_multiGpu {
        peerGpuUuid: nv_uuid,
        peerId: u32,
    }

    /// `UVM_RUN_TEST_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_RUN_TEST_PARAMS {
        gpuUuid: nv_uuid,
        test: u32,
        multiGpu: UVM_RUN_TEST_PARAMS_multiGpu,
        rmStatus: u32,
    }

    /// `UVM_SET_ACCESSED_BY_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_SET_ACCESSED_BY_PARAMS {
        requestedBase: u64,
        length: u64,
        accessedByUuid: nv_uuid,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_SET_PREFERRED_LOCATION_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_SET_PREFERRED_LOCATION_PARAMS {
        requestedBase: u64,
        length: u64,
        preferredLocation: nv_uuid,
        preferredCpuNumaNode: i32,
        rmStatus: u32,
    }

    /// `UVM_SET_RANGE_GROUP_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_SET_RANGE_GROUP_PARAMS {
        rangeGroupId: u64,
        requestedBase: u64,
        length: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_SET_STREAM_RUNNING_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_SET_STREAM_RUNNING_PARAMS {
        streamId: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_SET_STREAM_STOPPED_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_SET_STREAM_STOPPED_PARAMS {
        streamIdArray: [u64; 32],
        nStreams: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_TOOLS_DISABLE_COUNTERS_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_TOOLS_DISABLE_COUNTERS_PARAMS {
        counterTypeFlags: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_TOOLS_ENABLE_COUNTERS_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_TOOLS_ENABLE_COUNTERS_PARAMS {
        counterTypeFlags: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_TOOLS_EVENT_QUEUE_DISABLE_EVENTS_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_TOOLS_EVENT_QUEUE_DISABLE_EVENTS_PARAMS {
        eventTypeFlags: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_TOOLS_EVENT_QUEUE_ENABLE_EVENTS_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_TOOLS_EVENT_QUEUE_ENABLE_EVENTS_PARAMS {
        eventTypeFlags: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_TOOLS_FLUSH_EVENTS_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_TOOLS_FLUSH_EVENTS_PARAMS {
        rmStatus: u32,
    }

    /// `UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_PARAMS {
        tablePtr: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_V2_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_V2_PARAMS {
        tablePtr: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_TOOLS_INIT_EVENT_TRACKER_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_TOOLS_INIT_EVENT_TRACKER_PARAMS {
        queueBuffer: u64,
        queueBufferSize: u64,
        controlBuffer: u64,
        processor: nv_uuid,
        allProcessors: u32,
        uvmFd: u32,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_TOOLS_INIT_EVENT_TRACKER_V2_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_TOOLS_INIT_EVENT_TRACKER_V2_PARAMS {
        queueBuffer: u64,
        queueBufferSize: u64,
        controlBuffer: u64,
        processor: nv_uuid,
        allProcessors: u32,
        uvmFd: u32,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_TOOLS_READ_PROCESS_MEMORY_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_TOOLS_READ_PROCESS_MEMORY_PARAMS {
        buffer: u64,
        size: u64,
        targetVa: u64,
        bytesRead: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_TOOLS_SET_NOTIFICATION_THRESHOLD_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_TOOLS_SET_NOTIFICATION_THRESHOLD_PARAMS {
        notificationThreshold: u32,
        rmStatus: u32,
    }

    /// `UVM_TOOLS_WRITE_PROCESS_MEMORY_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_TOOLS_WRITE_PROCESS_MEMORY_PARAMS {
        buffer: u64,
        size: u64,
        targetVa: u64,
        bytesWritten: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_UNMAP_EXTERNAL_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_UNMAP_EXTERNAL_PARAMS {
        base: u64,
        length: u64,
        gpuUuid: nv_uuid,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_UNREGISTER_CHANNEL_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_UNREGISTER_CHANNEL_PARAMS {
        gpuUuid: nv_uuid,
        hClient: u32,
        hChannel: u32,
        rmStatus: u32,
    }

    /// `UVM_UNREGISTER_GPU_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_UNREGISTER_GPU_PARAMS {
        gpu_uuid: nv_uuid,
        rmStatus: u32,
    }

    /// `UVM_UNREGISTER_GPU_VASPACE_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_UNREGISTER_GPU_VASPACE_PARAMS {
        gpuUuid: nv_uuid,
        rmStatus: u32,
    }

    /// `UVM_UNSET_ACCESSED_BY_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_UNSET_ACCESSED_BY_PARAMS {
        requestedBase: u64,
        length: u64,
        accessedByUuid: nv_uuid,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_UNSET_PREFERRED_LOCATION_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_UNSET_PREFERRED_LOCATION_PARAMS {
        requestedBase: u64,
        length: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// `UVM_VALIDATE_VA_RANGE_PARAMS` of the RM user ABI (driver 570).
    pub struct UVM_VALIDATE_VA_RANGE_PARAMS {
        base: u64,
        length: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static UVM_CONSTS: Abi::Rm570;

    UVM_ADD_SESSION: u32 = 0xa;
    UVM_ALLOC_DEVICE_P2P: u32 = 0x4e;
    UVM_ALLOC_SEMAPHORE_POOL: u32 = 0x44;
    UVM_ALLOW_MIGRATION_RANGE_GROUPS: u32 = 0x29;
    UVM_CHANNEL_RETAINER: u32 = 0xc574;
    UVM_CLEAN_UP_ZOMBIE_RESOURCES: u32 = 0x45;
    UVM_CLEAR_ALL_ACCESS_COUNTERS: u32 = 0x4f;
    UVM_COUNTERS_OFFSET_BASE: u64 = 0x4000000000000000;
    UVM_CREATE_EVENT_QUEUE: u32 = 0xe;
    UVM_CREATE_EXTERNAL_RANGE: u32 = 0x49;
    UVM_CREATE_RANGE_GROUP: u32 = 0x17;
    UVM_DEBUG_ACCESS_MEMORY: u32 = 0x24;
    UVM_DEINITIALIZE: u32 = 0x30000002;
    UVM_DESTROY_RANGE_GROUP: u32 = 0x18;
    UVM_DISABLE_PEER_ACCESS: u32 = 0x1e;
    UVM_DISABLE_READ_DUPLICATION: u32 = 0x2d;
    UVM_DISABLE_SYSTEM_WIDE_ATOMICS: u32 = 0x37;
    UVM_ENABLE_COUNTERS: u32 = 0xc;
    UVM_ENABLE_PEER_ACCESS: u32 = 0x1d;
    UVM_ENABLE_READ_DUPLICATION: u32 = 0x2c;
    UVM_ENABLE_SYSTEM_WIDE_ATOMICS: u32 = 0x36;
    UVM_EVENTS_OFFSET_BASE: u64 = 0x8000000000000000;
    UVM_EVENT_CTRL: u32 = 0x11;
    UVM_FREE: u32 = 0x22;
    UVM_GET_GPU_UUID_TABLE: u32 = 0x14;
    UVM_INITIALIZE: u32 = 0x30000001;
    UVM_IS_8_SUPPORTED: u32 = 0x7ff;
    UVM_MAP_COUNTER: u32 = 0xd;
    UVM_MAP_DYNAMIC_PARALLELISM_REGION: u32 = 0x41;
    UVM_MAP_EVENT_QUEUE: u32 = 0x10;
    UVM_MAP_EXTERNAL_ALLOCATION: u32 = 0x21;
    UVM_MAP_EXTERNAL_SPARSE: u32 = 0x4a;
    UVM_MAX_COUNTERS_PER_IOCTL_CALL: u32 = 0x20;
    UVM_MAX_RANGE_GROUPS_PER_IOCTL_CALL: u32 = 0x20;
    UVM_MAX_STREAMS_PER_IOCTL_CALL: u32 = 0x20;
    UVM_MEM_MAP: u32 = 0x23;
    UVM_MIGRATE: u32 = 0x33;
    UVM_MIGRATE_FLAGS_ALL: u32 = 7;
    UVM_MIGRATE_FLAGS_TEST_ALL: u32 = 6;
    UVM_MIGRATE_FLAG_ASYNC: u32 = 1;
    UVM_MIGRATE_FLAG_NO_GPU_VA_SPACE: u32 = 4;
    UVM_MIGRATE_FLAG_SKIP_CPU_MAP: u32 = 2;
    UVM_MIGRATE_RANGE_GROUP: u32 = 0x35;
    UVM_MM_INITIALIZE: u32 = 0x4b;
    UVM_PAGEABLE_MEM_ACCESS: u32 = 0x27;
    UVM_PAGEABLE_MEM_ACCESS_ON_GPU: u32 = 0x46;
    UVM_POPULATE_PAGEABLE: u32 = 0x47;
    UVM_POPULATE_PAGEABLE_FLAGS_ALL: u32 = 3;
    UVM_POPULATE_PAGEABLE_FLAGS_TEST_ALL: u32 = 3;
    UVM_POPULATE_PAGEABLE_FLAG_ALLOW_MANAGED: u32 = 1;
    UVM_POPULATE_PAGEABLE_FLAG_SKIP_PROT_CHECK: u32 = 2;
    UVM_PREVENT_MIGRATION_RANGE_GROUPS: u32 = 0x28;
    UVM_REGION_COMMIT: u32 = 3;
    UVM_REGION_DECOMMIT: u32 = 4;
    UVM_REGION_SET_STREAM: u32 = 5;
    UVM_REGISTER_CHANNEL: u32 = 0x1b;
    UVM_REGISTER_GPU: u32 = 0x25;
    UVM_REGISTER_GPU_VASPACE: u32 = 0x19;
    UVM_REGISTER_MPS_CLIENT: u32 = 0x13;
    UVM_REGISTER_MPS_SERVER: u32 = 0x12;
    UVM_RELEASE_VA: u32 = 2;
    UVM_REMOVE_EVENT_QUEUE: u32 = 0xf;
    UVM_REMOVE_SESSION: u32 = 0xb;
    UVM_RESERVE_VA: u32 = 1;
    UVM_RUN_TEST: u32 = 9;
    UVM_SET_ACCESSED_BY: u32 = 0x2e;
    UVM_SET_PREFERRED_LOCATION: u32 = 0x2a;
    UVM_SET_RANGE_GROUP: u32 = 0x1f;
    UVM_SET_STREAM_RUNNING: u32 = 6;
    UVM_SET_STREAM_STOPPED: u32 = 7;
    UVM_TOOLS_DISABLE_COUNTERS: u32 = 0x3d;
    UVM_TOOLS_ENABLE_COUNTERS: u32 = 0x3c;
    UVM_TOOLS_EVENT_QUEUE_DISABLE_EVENTS: u32 = 0x3b;
    UVM_TOOLS_EVENT_QUEUE_ENABLE_EVENTS: u32 = 0x3a;
    UVM_TOOLS_FLUSH_EVENTS: u32 = 0x43;
    UVM_TOOLS_GET_PROCESSOR_UUID_TABLE: u32 = 0x40;
    UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_V2: u32 = 0x4d;
    UVM_TOOLS_INIT_EVENT_TRACKER: u32 = 0x38;
    UVM_TOOLS_INIT_EVENT_TRACKER_V2: u32 = 0x4c;
    UVM_TOOLS_READ_PROCESS_MEMORY: u32 = 0x3e;
    UVM_TOOLS_SET_NOTIFICATION_THRESHOLD: u32 = 0x39;
    UVM_TOOLS_WRITE_PROCESS_MEMORY: u32 = 0x3f;
    UVM_UNMAP_EXTERNAL: u32 = 0x42;
    UVM_UNREGISTER_CHANNEL: u32 = 0x1c;
    UVM_UNREGISTER_GPU: u32 = 0x26;
    UVM_UNREGISTER_GPU_VASPACE: u32 = 0x1a;
    UVM_UNSET_ACCESSED_BY: u32 = 0x2f;
    UVM_UNSET_PREFERRED_LOCATION: u32 = 0x2b;
    UVM_VALIDATE_VA_RANGE: u32 = 0x48;
}
