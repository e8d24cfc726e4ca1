//! `/dev/nvidia-uvm`: arguments of the calls that register GPUs and map memory.
//!
//! Numbers: `tests/data/abi/rm-570.json` (driver 570.86.16).

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static UVM_MAPPING_STRUCTS: Abi::Rm570;

    /// A GPU or processor UUID, 16 bytes.
    pub struct nv_uuid {
        uuid: [u8; 16],
    }

    /// Argument of `UVM_ALLOC_DEVICE_P2P`.
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

    /// The way in which one GPU maps an external range. It is a part of the mapping calls.
    pub struct UvmGpuMappingAttributes {
        gpuUuid: nv_uuid,
        gpuMappingType: u32,
        gpuCachingType: u32,
        gpuFormatType: u32,
        gpuElementBits: u32,
        gpuCompressionType: u32,
    }

    /// Argument of `UVM_ALLOC_SEMAPHORE_POOL`.
    pub struct UVM_ALLOC_SEMAPHORE_POOL_PARAMS {
        base: u64,
        length: u64,
        perGpuAttributes: [UvmGpuMappingAttributes; 256],
        gpuAttributesCount: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_CLEAN_UP_ZOMBIE_RESOURCES`.
    pub struct UVM_CLEAN_UP_ZOMBIE_RESOURCES_PARAMS {
        rmStatus: u32,
    }

    /// Argument of `UVM_CREATE_EXTERNAL_RANGE`.
    pub struct UVM_CREATE_EXTERNAL_RANGE_PARAMS {
        base: u64,
        length: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_DISABLE_PEER_ACCESS`.
    pub struct UVM_DISABLE_PEER_ACCESS_PARAMS {
        gpuUuidA: nv_uuid,
        gpuUuidB: nv_uuid,
        rmStatus: u32,
    }

    /// `UvmCounterConfig` of the RM user ABI (driver 570).
    pub struct UvmCounterConfig {
        scope: u32,
        name: u32,
        gpuid: nv_uuid,
        state: u32,
    }

    /// Argument of `UVM_ENABLE_PEER_ACCESS`.
    pub struct UVM_ENABLE_PEER_ACCESS_PARAMS {
        gpuUuidA: nv_uuid,
        gpuUuidB: nv_uuid,
        rmStatus: u32,
    }

    /// Argument of `UVM_FREE`.
    pub struct UVM_FREE_PARAMS {
        base: u64,
        length: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_GET_GPU_UUID_TABLE`.
    pub struct UVM_GET_GPU_UUID_TABLE_PARAMS {
        gpuUuidArray: [nv_uuid; 32],
        validCount: u32,
        rmStatus: u32,
    }

    /// Argument of `UVM_INITIALIZE`.
    pub struct UVM_INITIALIZE_PARAMS {
        flags: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_IS_8_SUPPORTED`.
    pub struct UVM_IS_8_SUPPORTED_PARAMS {
        is8Supported: u32,
        rmStatus: u32,
    }

    /// Argument of `UVM_MAP_EXTERNAL_ALLOCATION`.
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

    /// Argument of `UVM_MAP_EXTERNAL_SPARSE`.
    pub struct UVM_MAP_EXTERNAL_SPARSE_PARAMS {
        base: u64,
        length: u64,
        gpuUuid: nv_uuid,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_MEM_MAP`.
    pub struct UVM_MEM_MAP_PARAMS {
        regionBase: u64,
        regionLength: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_MM_INITIALIZE`.
    pub struct UVM_MM_INITIALIZE_PARAMS {
        uvmFd: i32,
        rmStatus: u32,
    }

    /// Argument of `UVM_REGISTER_CHANNEL`.
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

    /// Argument of `UVM_REGISTER_GPU`.
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

    /// Argument of `UVM_REGISTER_GPU_VASPACE`.
    pub struct UVM_REGISTER_GPU_VASPACE_PARAMS {
        gpuUuid: nv_uuid,
        rmCtrlFd: i32,
        hClient: u32,
        hVaSpace: u32,
        rmStatus: u32,
    }

    /// Argument of `UVM_REGISTER_MPS_CLIENT`.
    pub struct UVM_REGISTER_MPS_CLIENT_PARAMS {
        serverId: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_REGISTER_MPS_SERVER`.
    pub struct UVM_REGISTER_MPS_SERVER_PARAMS {
        gpuUuidArray: [nv_uuid; 32],
        numGpus: u32,
        _pad0: [u8; 4],
        serverId: u64,
        rmStatus: u32,
        _pad1: [u8; 4],
    }

    /// Argument of `UVM_RELEASE_VA`.
    pub struct UVM_RELEASE_VA_PARAMS {
        requestedBase: u64,
        length: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_RESERVE_VA`.
    pub struct UVM_RESERVE_VA_PARAMS {
        requestedBase: u64,
        length: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_UNMAP_EXTERNAL`.
    pub struct UVM_UNMAP_EXTERNAL_PARAMS {
        base: u64,
        length: u64,
        gpuUuid: nv_uuid,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_UNREGISTER_CHANNEL`.
    pub struct UVM_UNREGISTER_CHANNEL_PARAMS {
        gpuUuid: nv_uuid,
        hClient: u32,
        hChannel: u32,
        rmStatus: u32,
    }

    /// Argument of `UVM_UNREGISTER_GPU`.
    pub struct UVM_UNREGISTER_GPU_PARAMS {
        gpu_uuid: nv_uuid,
        rmStatus: u32,
    }

    /// Argument of `UVM_UNREGISTER_GPU_VASPACE`.
    pub struct UVM_UNREGISTER_GPU_VASPACE_PARAMS {
        gpuUuid: nv_uuid,
        rmStatus: u32,
    }

    /// Argument of `UVM_VALIDATE_VA_RANGE`.
    pub struct UVM_VALIDATE_VA_RANGE_PARAMS {
        base: u64,
        length: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }
}
