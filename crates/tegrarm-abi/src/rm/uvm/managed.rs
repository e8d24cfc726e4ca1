//! `/dev/nvidia-uvm`: arguments of the managed-memory policy calls.
//!
//! Numbers: `tests/data/abi/rm-570.json` (driver 570.86.16).

use super::mapping::nv_uuid;
use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static UVM_MANAGED_STRUCTS: Abi::Rm570;

    /// Argument of `UVM_ALLOW_MIGRATION_RANGE_GROUPS`.
    pub struct UVM_ALLOW_MIGRATION_RANGE_GROUPS_PARAMS {
        rangeGroupIds: [u64; 32],
        numGroupIds: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_CREATE_RANGE_GROUP`.
    pub struct UVM_CREATE_RANGE_GROUP_PARAMS {
        rangeGroupId: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_DESTROY_RANGE_GROUP`.
    pub struct UVM_DESTROY_RANGE_GROUP_PARAMS {
        rangeGroupId: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_DISABLE_READ_DUPLICATION`.
    pub struct UVM_DISABLE_READ_DUPLICATION_PARAMS {
        requestedBase: u64,
        length: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_DISABLE_SYSTEM_WIDE_ATOMICS`.
    pub struct UVM_DISABLE_SYSTEM_WIDE_ATOMICS_PARAMS {
        gpu_uuid: nv_uuid,
        rmStatus: u32,
    }

    /// Argument of `UVM_ENABLE_READ_DUPLICATION`.
    pub struct UVM_ENABLE_READ_DUPLICATION_PARAMS {
        requestedBase: u64,
        length: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_ENABLE_SYSTEM_WIDE_ATOMICS`.
    pub struct UVM_ENABLE_SYSTEM_WIDE_ATOMICS_PARAMS {
        gpu_uuid: nv_uuid,
        rmStatus: u32,
    }

    /// Argument of `UVM_MAP_DYNAMIC_PARALLELISM_REGION`.
    pub struct UVM_MAP_DYNAMIC_PARALLELISM_REGION_PARAMS {
        base: u64,
        length: u64,
        gpuUuid: nv_uuid,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_MIGRATE`.
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

    /// Argument of `UVM_MIGRATE_RANGE_GROUP`.
    pub struct UVM_MIGRATE_RANGE_GROUP_PARAMS {
        rangeGroupId: u64,
        destinationUuid: nv_uuid,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_PAGEABLE_MEM_ACCESS_ON_GPU`.
    pub struct UVM_PAGEABLE_MEM_ACCESS_ON_GPU_PARAMS {
        gpu_uuid: nv_uuid,
        pageableMemAccess: u8,
        _pad0: [u8; 3],
        rmStatus: u32,
    }

    /// Argument of `UVM_PAGEABLE_MEM_ACCESS`.
    pub struct UVM_PAGEABLE_MEM_ACCESS_PARAMS {
        pageableMemAccess: u8,
        _pad0: [u8; 3],
        rmStatus: u32,
    }

    /// Argument of `UVM_POPULATE_PAGEABLE`.
    pub struct UVM_POPULATE_PAGEABLE_PARAMS {
        base: u64,
        length: u64,
        flags: u32,
        rmStatus: u32,
    }

    /// Argument of `UVM_REGION_COMMIT`.
    pub struct UVM_REGION_COMMIT_PARAMS {
        requestedBase: u64,
        length: u64,
        streamId: u64,
        gpuUuid: nv_uuid,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_REGION_DECOMMIT`.
    pub struct UVM_REGION_DECOMMIT_PARAMS {
        requestedBase: u64,
        length: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_REGION_SET_STREAM`.
    pub struct UVM_REGION_SET_STREAM_PARAMS {
        requestedBase: u64,
        length: u64,
        newStreamId: u64,
        gpuUuid: nv_uuid,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_SET_ACCESSED_BY`.
    pub struct UVM_SET_ACCESSED_BY_PARAMS {
        requestedBase: u64,
        length: u64,
        accessedByUuid: nv_uuid,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_SET_PREFERRED_LOCATION`.
    pub struct UVM_SET_PREFERRED_LOCATION_PARAMS {
        requestedBase: u64,
        length: u64,
        preferredLocation: nv_uuid,
        preferredCpuNumaNode: i32,
        rmStatus: u32,
    }

    /// Argument of `UVM_SET_RANGE_GROUP`.
    pub struct UVM_SET_RANGE_GROUP_PARAMS {
        rangeGroupId: u64,
        requestedBase: u64,
        length: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_SET_STREAM_RUNNING`.
    pub struct UVM_SET_STREAM_RUNNING_PARAMS {
        streamId: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_SET_STREAM_STOPPED`.
    pub struct UVM_SET_STREAM_STOPPED_PARAMS {
        streamIdArray: [u64; 32],
        nStreams: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_UNSET_ACCESSED_BY`.
    pub struct UVM_UNSET_ACCESSED_BY_PARAMS {
        requestedBase: u64,
        length: u64,
        accessedByUuid: nv_uuid,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_UNSET_PREFERRED_LOCATION`.
    pub struct UVM_UNSET_PREFERRED_LOCATION_PARAMS {
        requestedBase: u64,
        length: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }
}
