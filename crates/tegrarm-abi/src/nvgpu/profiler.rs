//! nvgpu profiler node: ioctls, argument structures, constants (L4T r36).
//!
//! Numbers: `tests/data/abi/nvgpu-r36.json`, read off a C compiler.

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static PROFILER_STRUCTS: Abi::R36;

    /// Argument of `NVGPU_PROFILER_IOCTL_BIND_CONTEXT`.
    pub struct nvgpu_profiler_bind_context_args {
        tsg_fd: i32,
        reserved: u32,
    }

    /// Argument of `NVGPU_PROFILER_IOCTL_RESERVE_PM_RESOURCE`.
    pub struct nvgpu_profiler_reserve_pm_resource_args {
        resource: u32,
        flags: u32,
        reserved: [u32; 2],
    }

    /// Argument of `NVGPU_PROFILER_IOCTL_RELEASE_PM_RESOURCE`.
    pub struct nvgpu_profiler_release_pm_resource_args {
        resource: u32,
        reserved: u32,
    }

    /// Argument of `NVGPU_PROFILER_IOCTL_ALLOC_PMA_STREAM`.
    pub struct nvgpu_profiler_alloc_pma_stream_args {
        pma_buffer_map_size: u64,
        pma_buffer_offset: u64,
        pma_buffer_va: u64,
        pma_buffer_fd: i32,
        pma_bytes_available_buffer_fd: i32,
        flags: u32,
        pma_channel_id: u32,
        reserved: [u32; 2],
    }

    /// Argument of `NVGPU_PROFILER_IOCTL_FREE_PMA_STREAM`.
    pub struct nvgpu_profiler_free_pma_stream_args {
        pma_channel_id: u32,
        reserved: [u32; 2],
    }

    /// Argument of `NVGPU_PROFILER_IOCTL_PMA_STREAM_UPDATE_GET_PUT`.
    pub struct nvgpu_profiler_pma_stream_update_get_put_args {
        bytes_consumed: u64,
        bytes_available: u64,
        put_ptr: u64,
        flags: u32,
        pma_channel_id: u32,
        reserved: [u32; 2],
    }

    /// Argument of `NVGPU_PROFILER_IOCTL_EXEC_REG_OPS`.
    pub struct nvgpu_profiler_exec_reg_ops_args {
        mode: u32,
        count: u32,
        ops: u64,
        flags: u32,
        reserved: [u32; 3],
    }

    /// Argument of `NVGPU_PROFILER_IOCTL_VAB_RESERVE`.
    pub struct nvgpu_profiler_vab_reserve_args {
        vab_mode: u8,
        reserved: [u8; 3],
        num_range_checkers: u32,
        range_checkers_ptr: u64,
    }

    /// Argument of `NVGPU_PROFILER_IOCTL_VAB_FLUSH_STATE`.
    pub struct nvgpu_profiler_vab_flush_state_args {
        buffer_ptr: u64,
        buffer_size: u64,
    }

    /// One entry of the list that `NVGPU_PROFILER_IOCTL_VAB_RESERVE` reads.
    pub struct nvgpu_profiler_vab_range_checker {
        start_phys_addr: u64,
        granularity_shift: u8,
        reserved: [u8; 7],
    }

    /// One entry of the list that `NVGPU_PROFILER_IOCTL_EXEC_REG_OPS` reads and writes.
    pub struct nvgpu_profiler_reg_op {
        op: u8,
        status: u8,
        _pad0: [u8; 2],
        offset: u32,
        value: u64,
        and_n_mask: u64,
    }
}

abi_ioctls! {
    /// Every ioctl of this node, by number.
    pub static PROFILER_IOCTLS: Abi::R36, Node::Profiler;

    NVGPU_PROFILER_IOCTL_BIND_CONTEXT: 0x40085001 => nvgpu_profiler_bind_context_args;
    NVGPU_PROFILER_IOCTL_RESERVE_PM_RESOURCE: 0x40105002 => nvgpu_profiler_reserve_pm_resource_args;
    NVGPU_PROFILER_IOCTL_RELEASE_PM_RESOURCE: 0x40085003 => nvgpu_profiler_release_pm_resource_args;
    NVGPU_PROFILER_IOCTL_ALLOC_PMA_STREAM: 0xc0305004 => nvgpu_profiler_alloc_pma_stream_args;
    NVGPU_PROFILER_IOCTL_FREE_PMA_STREAM: 0x400c5005 => nvgpu_profiler_free_pma_stream_args;
    NVGPU_PROFILER_IOCTL_BIND_PM_RESOURCES: 0x00005006 => NoArg;
    NVGPU_PROFILER_IOCTL_UNBIND_PM_RESOURCES: 0x00005007 => NoArg;
    NVGPU_PROFILER_IOCTL_PMA_STREAM_UPDATE_GET_PUT: 0xc0285008 => nvgpu_profiler_pma_stream_update_get_put_args;
    NVGPU_PROFILER_IOCTL_EXEC_REG_OPS: 0xc0205009 => nvgpu_profiler_exec_reg_ops_args;
    NVGPU_PROFILER_IOCTL_UNBIND_CONTEXT: 0x0000500a => NoArg;
    NVGPU_PROFILER_IOCTL_VAB_RESERVE: 0x4010500b => nvgpu_profiler_vab_reserve_args;
    NVGPU_PROFILER_IOCTL_VAB_RELEASE: 0x0000500c => NoArg;
    NVGPU_PROFILER_IOCTL_VAB_FLUSH_STATE: 0x4010500d => nvgpu_profiler_vab_flush_state_args;
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static PROFILER_CONSTS: Abi::R36;

    NVGPU_PROFILER_ALLOC_PMA_STREAM_ARG_FLAG_CTXSW: u32 = 1;
    NVGPU_PROFILER_EXEC_REG_OPS_ARG_FLAG_ALL_PASSED: u32 = 1;
    NVGPU_PROFILER_EXEC_REG_OPS_ARG_FLAG_DIRECT_OPS: u32 = 2;
    NVGPU_PROFILER_EXEC_REG_OPS_ARG_MODE_ALL_OR_NONE: u32 = 0;
    NVGPU_PROFILER_EXEC_REG_OPS_ARG_MODE_CONTINUE_ON_ERROR: u32 = 1;
    NVGPU_PROFILER_IOCTL_LAST: u32 = 0xd;
    NVGPU_PROFILER_IOCTL_MAGIC: u32 = 0x50;
    NVGPU_PROFILER_IOCTL_MAX_ARG_SIZE: u32 = 0x30;
    NVGPU_PROFILER_PMA_STREAM_UPDATE_GET_PUT_ARG_FLAG_OVERFLOW_TRIGGERED: u32 = 8;
    NVGPU_PROFILER_PMA_STREAM_UPDATE_GET_PUT_ARG_FLAG_RETURN_PUT_PTR: u32 = 4;
    NVGPU_PROFILER_PMA_STREAM_UPDATE_GET_PUT_ARG_FLAG_UPDATE_AVAILABLE_BYTES: u32 = 1;
    NVGPU_PROFILER_PMA_STREAM_UPDATE_GET_PUT_ARG_FLAG_WAIT_FOR_UPDATE: u32 = 2;
    NVGPU_PROFILER_PM_RESOURCE_ARG_HES_CWD: u32 = 3;
    NVGPU_PROFILER_PM_RESOURCE_ARG_HWPM_LEGACY: u32 = 0;
    NVGPU_PROFILER_PM_RESOURCE_ARG_PC_SAMPLER: u32 = 2;
    NVGPU_PROFILER_PM_RESOURCE_ARG_SMPC: u32 = 1;
    NVGPU_PROFILER_RESERVE_PM_RESOURCE_ARG_FLAG_CTXSW: u32 = 1;
    NVGPU_PROFILER_VAB_RANGE_CHECKER_MODE_ACCESS: u32 = 1;
    NVGPU_PROFILER_VAB_RANGE_CHECKER_MODE_DIRTY: u32 = 2;
}
