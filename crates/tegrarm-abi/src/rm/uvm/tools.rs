//! `/dev/nvidia-uvm`: arguments of the profiling and debugging calls.
//!
//! Numbers: `tests/data/abi/rm-570.json` (driver 570.86.16).

use super::mapping::{UvmCounterConfig, nv_uuid};
use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static UVM_TOOLS_STRUCTS: Abi::Rm570;

    /// Argument of `UVM_ADD_SESSION`.
    pub struct UVM_ADD_SESSION_PARAMS {
        pidTarget: u32,
        _pad0: [u8; 4],
        countersBaseAddress: u64,
        sessionIndex: i32,
        rmStatus: u32,
    }

    /// Argument of `UVM_CLEAR_ALL_ACCESS_COUNTERS`.
    pub struct UVM_CLEAR_ALL_ACCESS_COUNTERS_PARAMS {
        rmStatus: u32,
    }

    /// Argument of `UVM_CREATE_EVENT_QUEUE`.
    pub struct UVM_CREATE_EVENT_QUEUE_PARAMS {
        sessionIndex: i32,
        eventQueueIndex: u32,
        queueSize: u64,
        notificationCount: u64,
        timeStampType: u32,
        rmStatus: u32,
    }

    /// Argument of `UVM_DEBUG_ACCESS_MEMORY`.
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

    /// Argument of `UVM_ENABLE_COUNTERS`.
    pub struct UVM_ENABLE_COUNTERS_PARAMS {
        sessionIndex: i32,
        config: [UvmCounterConfig; 32],
        count: u32,
        rmStatus: u32,
    }

    /// Argument of `UVM_EVENT_CTRL`.
    pub struct UVM_EVENT_CTRL_PARAMS {
        sessionIndex: i32,
        eventQueueIndex: u32,
        eventType: i32,
        enable: u32,
        rmStatus: u32,
    }

    /// Argument of `UVM_MAP_COUNTER`.
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

    /// Argument of `UVM_MAP_EVENT_QUEUE`.
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

    /// Argument of `UVM_PREVENT_MIGRATION_RANGE_GROUPS`.
    pub struct UVM_PREVENT_MIGRATION_RANGE_GROUPS_PARAMS {
        rangeGroupIds: [u64; 32],
        numGroupIds: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_REMOVE_EVENT_QUEUE`.
    pub struct UVM_REMOVE_EVENT_QUEUE_PARAMS {
        sessionIndex: i32,
        eventQueueIndex: u32,
        rmStatus: u32,
    }

    /// Argument of `UVM_REMOVE_SESSION`.
    pub struct UVM_REMOVE_SESSION_PARAMS {
        sessionIndex: i32,
        rmStatus: u32,
    }

    /// `UVM_RUN_TEST_PARAMS_multiGpu` of the RM user ABI (driver 570).
    pub struct UVM_RUN_TEST_PARAMS_multiGpu {
        peerGpuUuid: nv_uuid,
        peerId: u32,
    }

    /// Argument of `UVM_RUN_TEST`.
    pub struct UVM_RUN_TEST_PARAMS {
        gpuUuid: nv_uuid,
        test: u32,
        multiGpu: UVM_RUN_TEST_PARAMS_multiGpu,
        rmStatus: u32,
    }

    /// Argument of `UVM_TOOLS_DISABLE_COUNTERS`.
    pub struct UVM_TOOLS_DISABLE_COUNTERS_PARAMS {
        counterTypeFlags: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_TOOLS_ENABLE_COUNTERS`.
    pub struct UVM_TOOLS_ENABLE_COUNTERS_PARAMS {
        counterTypeFlags: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_TOOLS_EVENT_QUEUE_DISABLE_EVENTS`.
    pub struct UVM_TOOLS_EVENT_QUEUE_DISABLE_EVENTS_PARAMS {
        eventTypeFlags: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_TOOLS_EVENT_QUEUE_ENABLE_EVENTS`.
    pub struct UVM_TOOLS_EVENT_QUEUE_ENABLE_EVENTS_PARAMS {
        eventTypeFlags: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_TOOLS_FLUSH_EVENTS`.
    pub struct UVM_TOOLS_FLUSH_EVENTS_PARAMS {
        rmStatus: u32,
    }

    /// Argument of `UVM_TOOLS_GET_PROCESSOR_UUID_TABLE`.
    pub struct UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_PARAMS {
        tablePtr: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_V2`.
    pub struct UVM_TOOLS_GET_PROCESSOR_UUID_TABLE_V2_PARAMS {
        tablePtr: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_TOOLS_INIT_EVENT_TRACKER`.
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

    /// Argument of `UVM_TOOLS_INIT_EVENT_TRACKER_V2`.
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

    /// Argument of `UVM_TOOLS_READ_PROCESS_MEMORY`.
    pub struct UVM_TOOLS_READ_PROCESS_MEMORY_PARAMS {
        buffer: u64,
        size: u64,
        targetVa: u64,
        bytesRead: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }

    /// Argument of `UVM_TOOLS_SET_NOTIFICATION_THRESHOLD`.
    pub struct UVM_TOOLS_SET_NOTIFICATION_THRESHOLD_PARAMS {
        notificationThreshold: u32,
        rmStatus: u32,
    }

    /// Argument of `UVM_TOOLS_WRITE_PROCESS_MEMORY`.
    pub struct UVM_TOOLS_WRITE_PROCESS_MEMORY_PARAMS {
        buffer: u64,
        size: u64,
        targetVa: u64,
        bytesWritten: u64,
        rmStatus: u32,
        _pad0: [u8; 4],
    }
}
