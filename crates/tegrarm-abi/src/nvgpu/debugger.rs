//! nvgpu debugger node: ioctls, argument structures, constants (L4T r36).
//!
//! Numbers: `tests/data/abi/nvgpu-r36.json`, read off a C compiler.

use crate::layout::*;
use crate::nvgpu::tsg::nvgpu_timeslice_args;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static DEBUGGER_STRUCTS: Abi::R36;

    /// Argument of `NVGPU_DBG_GPU_IOCTL_BIND_CHANNEL`.
    pub struct nvgpu_dbg_gpu_bind_channel_args {
        channel_fd: u32,
        _pad0: [u32; 1],
    }

    /// Argument of `NVGPU_DBG_GPU_IOCTL_REG_OPS`.
    pub struct nvgpu_dbg_gpu_exec_reg_ops_args {
        ops: u64,
        num_ops: u32,
        gr_ctx_resident: u32,
    }

    /// Argument of `NVGPU_DBG_GPU_IOCTL_EVENTS_CTRL`.
    pub struct nvgpu_dbg_gpu_events_ctrl_args {
        cmd: u32,
        _pad0: [u32; 1],
    }

    /// Argument of `NVGPU_DBG_GPU_IOCTL_POWERGATE`.
    pub struct nvgpu_dbg_gpu_powergate_args {
        mode: u32,
    }

    /// Argument of `NVGPU_DBG_GPU_IOCTL_SMPC_CTXSW_MODE`.
    pub struct nvgpu_dbg_gpu_smpc_ctxsw_mode_args {
        mode: u32,
    }

    /// Argument of `NVGPU_DBG_GPU_IOCTL_SUSPEND_RESUME_ALL_SMS`.
    pub struct nvgpu_dbg_gpu_suspend_resume_all_sms_args {
        mode: u32,
    }

    /// Argument of `NVGPU_DBG_GPU_IOCTL_PERFBUF_MAP`.
    pub struct nvgpu_dbg_gpu_perfbuf_map_args {
        dmabuf_fd: u32,
        reserved: u32,
        mapping_size: u64,
        offset: u64,
    }

    /// Argument of `NVGPU_DBG_GPU_IOCTL_PERFBUF_UNMAP`.
    pub struct nvgpu_dbg_gpu_perfbuf_unmap_args {
        offset: u64,
    }

    /// Argument of `NVGPU_DBG_GPU_IOCTL_PC_SAMPLING`.
    pub struct nvgpu_dbg_gpu_pc_sampling_args {
        enable: u32,
        _pad0: [u32; 1],
    }

    /// Argument of `NVGPU_DBG_GPU_IOCTL_TIMEOUT` and `NVGPU_DBG_GPU_IOCTL_GET_TIMEOUT`.
    pub struct nvgpu_dbg_gpu_timeout_args {
        enable: u32,
        padding: u32,
    }

    /// Argument of `NVGPU_DBG_GPU_IOCTL_SET_NEXT_STOP_TRIGGER_TYPE`.
    pub struct nvgpu_dbg_gpu_set_next_stop_trigger_type_args {
        broadcast: u32,
        reserved: u32,
    }

    /// Argument of `NVGPU_DBG_GPU_IOCTL_HWPM_CTXSW_MODE`.
    pub struct nvgpu_dbg_gpu_hwpm_ctxsw_mode_args {
        mode: u32,
        reserved: u32,
    }

    /// Argument of `NVGPU_DBG_GPU_IOCTL_READ_SINGLE_SM_ERROR_STATE`.
    pub struct nvgpu_dbg_gpu_read_single_sm_error_state_args {
        sm_id: u32,
        padding: u32,
        sm_error_state_record_mem: u64,
        sm_error_state_record_size: u64,
    }

    /// Argument of `NVGPU_DBG_GPU_IOCTL_CLEAR_SINGLE_SM_ERROR_STATE`.
    pub struct nvgpu_dbg_gpu_clear_single_sm_error_state_args {
        sm_id: u32,
        padding: u32,
    }

    /// Argument of `NVGPU_DBG_GPU_IOCTL_UNBIND_CHANNEL`.
    pub struct nvgpu_dbg_gpu_unbind_channel_args {
        channel_fd: u32,
        _pad0: [u32; 1],
    }

    /// Argument of `NVGPU_DBG_GPU_IOCTL_SUSPEND_RESUME_CONTEXTS`.
    pub struct nvgpu_dbg_gpu_suspend_resume_contexts_args {
        action: u32,
        is_resident_context: u32,
        resident_context_fd: i32,
        padding: u32,
    }

    /// Argument of `NVGPU_DBG_GPU_IOCTL_ACCESS_FB_MEMORY`.
    pub struct nvgpu_dbg_gpu_access_fb_memory_args {
        cmd: u32,
        dmabuf_fd: i32,
        offset: u64,
        buffer: u64,
        size: u64,
    }

    /// Argument of `NVGPU_DBG_GPU_IOCTL_PROFILER_ALLOCATE` and `NVGPU_DBG_GPU_IOCTL_PROFILER_FREE`.
    pub struct nvgpu_dbg_gpu_profiler_obj_mgt_args {
        profiler_handle: u32,
        reserved: u32,
    }

    /// Argument of `NVGPU_DBG_GPU_IOCTL_PROFILER_RESERVE`.
    pub struct nvgpu_dbg_gpu_profiler_reserve_args {
        profiler_handle: u32,
        acquire: u32,
    }

    /// Argument of `NVGPU_DBG_GPU_IOCTL_SET_SM_EXCEPTION_TYPE_MASK`.
    pub struct nvgpu_dbg_gpu_set_sm_exception_type_mask_args {
        exception_type_mask: u32,
        reserved: u32,
    }

    /// Argument of `NVGPU_DBG_GPU_IOCTL_CYCLE_STATS`.
    pub struct nvgpu_dbg_gpu_cycle_stats_args {
        dmabuf_fd: u32,
        reserved: u32,
    }

    /// Argument of `NVGPU_DBG_GPU_IOCTL_CYCLE_STATS_SNAPSHOT`.
    pub struct nvgpu_dbg_gpu_cycle_stats_snapshot_args {
        cmd: u32,
        dmabuf_fd: u32,
        extra: u32,
        reserved: u32,
    }

    /// Argument of `NVGPU_DBG_GPU_IOCTL_SET_CTX_MMU_DEBUG_MODE`.
    pub struct nvgpu_dbg_gpu_set_ctx_mmu_debug_mode_args {
        mode: u32,
        reserved: u32,
    }

    /// Argument of `NVGPU_DBG_GPU_IOCTL_GET_GR_CONTEXT_SIZE`.
    pub struct nvgpu_dbg_gpu_get_gr_context_size_args {
        size: u32,
        reserved: u32,
    }

    /// Argument of `NVGPU_DBG_GPU_IOCTL_GET_GR_CONTEXT`.
    pub struct nvgpu_dbg_gpu_get_gr_context_args {
        buffer: u64,
        size: u32,
        reserved: u32,
    }

    /// Argument of `NVGPU_DBG_GPU_IOCTL_GET_MAPPINGS`.
    pub struct nvgpu_dbg_gpu_get_mappings_args {
        va_lo: u64,
        va_hi: u64,
        ops_buffer: u64,
        count: u32,
        has_more: u8,
        reserved: [u8; 3],
    }

    /// Argument of `NVGPU_DBG_GPU_IOCTL_ACCESS_GPU_VA`.
    pub struct nvgpu_dbg_gpu_va_access_args {
        ops_buf: u64,
        count: u32,
        cmd: u8,
        reserved: [u8; 3],
    }

    /// Argument of `NVGPU_DBG_GPU_IOCTL_SET_SCHED_EXIT_WAIT_FOR_ERRBAR`.
    pub struct nvgpu_sched_exit_wait_for_errbar_args {
        enable: u32,
    }

    /// One entry of the list that `NVGPU_DBG_GPU_IOCTL_REG_OPS` reads and writes.
    pub struct nvgpu_dbg_gpu_reg_op {
        op: u8,
        type_: u8,
        status: u8,
        quad: u8,
        group_mask: u32,
        sub_group_mask: u32,
        offset: u32,
        value_lo: u32,
        value_hi: u32,
        and_n_mask_lo: u32,
        and_n_mask_hi: u32,
    }

    /// The record that `NVGPU_DBG_GPU_IOCTL_READ_SINGLE_SM_ERROR_STATE` writes to the caller's buffer.
    pub struct nvgpu_dbg_gpu_sm_error_state_record {
        hww_global_esr: u32,
        hww_warp_esr: u32,
        hww_warp_esr_pc: u64,
        hww_global_esr_report_mask: u32,
        hww_warp_esr_report_mask: u32,
    }

    /// One entry of the list that `NVGPU_DBG_GPU_IOCTL_GET_MAPPINGS` writes.
    pub struct nvgpu_dbg_gpu_get_mappings_entry {
        gpu_va: u64,
        size: u64,
    }

    /// One entry of the list that `NVGPU_DBG_GPU_IOCTL_ACCESS_GPU_VA` reads and writes.
    pub struct nvgpu_dbg_gpu_va_access_entry {
        gpu_va: u64,
        data: u64,
        size: u32,
        valid: u8,
        reserved: [u8; 3],
    }
}

abi_ioctls! {
    /// Every ioctl of this node, by number.
    pub static DEBUGGER_IOCTLS: Abi::R36, Node::Debugger;

    NVGPU_DBG_GPU_IOCTL_BIND_CHANNEL: 0xc0084401 => nvgpu_dbg_gpu_bind_channel_args;
    NVGPU_DBG_GPU_IOCTL_REG_OPS: 0xc0104402 => nvgpu_dbg_gpu_exec_reg_ops_args;
    NVGPU_DBG_GPU_IOCTL_EVENTS_CTRL: 0xc0084403 => nvgpu_dbg_gpu_events_ctrl_args;
    NVGPU_DBG_GPU_IOCTL_POWERGATE: 0xc0044404 => nvgpu_dbg_gpu_powergate_args;
    NVGPU_DBG_GPU_IOCTL_SMPC_CTXSW_MODE: 0xc0044405 => nvgpu_dbg_gpu_smpc_ctxsw_mode_args;
    NVGPU_DBG_GPU_IOCTL_SUSPEND_RESUME_ALL_SMS: 0xc0044406 => nvgpu_dbg_gpu_suspend_resume_all_sms_args;
    NVGPU_DBG_GPU_IOCTL_PERFBUF_MAP: 0xc0184407 => nvgpu_dbg_gpu_perfbuf_map_args;
    NVGPU_DBG_GPU_IOCTL_PERFBUF_UNMAP: 0xc0084408 => nvgpu_dbg_gpu_perfbuf_unmap_args;
    NVGPU_DBG_GPU_IOCTL_PC_SAMPLING: 0x40084409 => nvgpu_dbg_gpu_pc_sampling_args;
    NVGPU_DBG_GPU_IOCTL_TIMEOUT: 0x4008440a => nvgpu_dbg_gpu_timeout_args;
    NVGPU_DBG_GPU_IOCTL_GET_TIMEOUT: 0x8008440b => nvgpu_dbg_gpu_timeout_args;
    NVGPU_DBG_GPU_IOCTL_SET_NEXT_STOP_TRIGGER_TYPE: 0xc008440c => nvgpu_dbg_gpu_set_next_stop_trigger_type_args;
    NVGPU_DBG_GPU_IOCTL_HWPM_CTXSW_MODE: 0xc008440d => nvgpu_dbg_gpu_hwpm_ctxsw_mode_args;
    NVGPU_DBG_GPU_IOCTL_READ_SINGLE_SM_ERROR_STATE: 0xc018440e => nvgpu_dbg_gpu_read_single_sm_error_state_args;
    NVGPU_DBG_GPU_IOCTL_CLEAR_SINGLE_SM_ERROR_STATE: 0x4008440f => nvgpu_dbg_gpu_clear_single_sm_error_state_args;
    NVGPU_DBG_GPU_IOCTL_UNBIND_CHANNEL: 0x40084411 => nvgpu_dbg_gpu_unbind_channel_args;
    NVGPU_DBG_GPU_IOCTL_SUSPEND_RESUME_CONTEXTS: 0xc0104412 => nvgpu_dbg_gpu_suspend_resume_contexts_args;
    NVGPU_DBG_GPU_IOCTL_ACCESS_FB_MEMORY: 0xc0204413 => nvgpu_dbg_gpu_access_fb_memory_args;
    NVGPU_DBG_GPU_IOCTL_PROFILER_ALLOCATE: 0xc0084414 => nvgpu_dbg_gpu_profiler_obj_mgt_args;
    NVGPU_DBG_GPU_IOCTL_PROFILER_FREE: 0xc0084415 => nvgpu_dbg_gpu_profiler_obj_mgt_args;
    NVGPU_DBG_GPU_IOCTL_PROFILER_RESERVE: 0xc0084416 => nvgpu_dbg_gpu_profiler_reserve_args;
    NVGPU_DBG_GPU_IOCTL_SET_SM_EXCEPTION_TYPE_MASK: 0x40084417 => nvgpu_dbg_gpu_set_sm_exception_type_mask_args;
    NVGPU_DBG_GPU_IOCTL_CYCLE_STATS: 0xc0084418 => nvgpu_dbg_gpu_cycle_stats_args;
    NVGPU_DBG_GPU_IOCTL_CYCLE_STATS_SNAPSHOT: 0xc0104419 => nvgpu_dbg_gpu_cycle_stats_snapshot_args;
    NVGPU_DBG_GPU_IOCTL_SET_CTX_MMU_DEBUG_MODE: 0x4008441a => nvgpu_dbg_gpu_set_ctx_mmu_debug_mode_args;
    NVGPU_DBG_GPU_IOCTL_GET_GR_CONTEXT_SIZE: 0x8008441b => nvgpu_dbg_gpu_get_gr_context_size_args;
    NVGPU_DBG_GPU_IOCTL_GET_GR_CONTEXT: 0x4010441c => nvgpu_dbg_gpu_get_gr_context_args;
    NVGPU_DBG_GPU_IOCTL_TSG_SET_TIMESLICE: 0x4008441d => nvgpu_timeslice_args;
    NVGPU_DBG_GPU_IOCTL_TSG_GET_TIMESLICE: 0x8008441e => nvgpu_timeslice_args;
    NVGPU_DBG_GPU_IOCTL_GET_MAPPINGS: 0xc020441f => nvgpu_dbg_gpu_get_mappings_args;
    NVGPU_DBG_GPU_IOCTL_ACCESS_GPU_VA: 0xc0104420 => nvgpu_dbg_gpu_va_access_args;
    NVGPU_DBG_GPU_IOCTL_SET_SCHED_EXIT_WAIT_FOR_ERRBAR: 0x40044421 => nvgpu_sched_exit_wait_for_errbar_args;
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static DEBUGGER_CONSTS: Abi::R36;

    NVGPU_DBG_GPU_CTX_MMU_DEBUG_MODE_DISABLED: u32 = 0;
    NVGPU_DBG_GPU_CTX_MMU_DEBUG_MODE_ENABLED: u32 = 1;
    NVGPU_DBG_GPU_EVENTS_CTRL_CMD_CLEAR: u32 = 2;
    NVGPU_DBG_GPU_EVENTS_CTRL_CMD_DISABLE: u32 = 0;
    NVGPU_DBG_GPU_EVENTS_CTRL_CMD_ENABLE: u32 = 1;
    NVGPU_DBG_GPU_HWPM_CTXSW_MODE_CTXSW: u32 = 1;
    NVGPU_DBG_GPU_HWPM_CTXSW_MODE_NO_CTXSW: u32 = 0;
    NVGPU_DBG_GPU_HWPM_CTXSW_MODE_STREAM_OUT_CTXSW: u32 = 2;
    NVGPU_DBG_GPU_IOCTL_ACCESS_FB_MEMORY_CMD_READ: u32 = 1;
    NVGPU_DBG_GPU_IOCTL_ACCESS_FB_MEMORY_CMD_WRITE: u32 = 2;
    NVGPU_DBG_GPU_IOCTL_ACCESS_GPUVA_CMD_READ: u32 = 1;
    NVGPU_DBG_GPU_IOCTL_ACCESS_GPUVA_CMD_WRITE: u32 = 2;
    NVGPU_DBG_GPU_IOCTL_CYCLE_STATS_SNAPSHOT_CMD_ATTACH: u32 = 1;
    NVGPU_DBG_GPU_IOCTL_CYCLE_STATS_SNAPSHOT_CMD_DETACH: u32 = 2;
    NVGPU_DBG_GPU_IOCTL_CYCLE_STATS_SNAPSHOT_CMD_FLUSH: u32 = 0;
    NVGPU_DBG_GPU_IOCTL_LAST: u32 = 0x21;
    NVGPU_DBG_GPU_IOCTL_MAGIC: u32 = 0x44;
    NVGPU_DBG_GPU_IOCTL_MAX_ARG_SIZE: u32 = 0x20;
    NVGPU_DBG_GPU_IOCTL_PC_SAMPLING_DISABLE: u32 = 0;
    NVGPU_DBG_GPU_IOCTL_PC_SAMPLING_ENABLE: u32 = 1;
    NVGPU_DBG_GPU_IOCTL_SET_SM_EXCEPTION_TYPE_MASK_FATAL: u32 = 1;
    NVGPU_DBG_GPU_IOCTL_SET_SM_EXCEPTION_TYPE_MASK_NONE: u32 = 0;
    NVGPU_DBG_GPU_IOCTL_TIMEOUT_DISABLE: u32 = 0;
    NVGPU_DBG_GPU_IOCTL_TIMEOUT_ENABLE: u32 = 1;
    NVGPU_DBG_GPU_POWERGATE_MODE_DISABLE: u32 = 2;
    NVGPU_DBG_GPU_POWERGATE_MODE_ENABLE: u32 = 1;
    NVGPU_DBG_GPU_REG_OP_READ_08: u32 = 4;
    NVGPU_DBG_GPU_REG_OP_READ_32: u32 = 0;
    NVGPU_DBG_GPU_REG_OP_READ_64: u32 = 2;
    NVGPU_DBG_GPU_REG_OP_STATUS_INVALID_MASK: u32 = 0x10;
    NVGPU_DBG_GPU_REG_OP_STATUS_INVALID_OFFSET: u32 = 4;
    NVGPU_DBG_GPU_REG_OP_STATUS_INVALID_OP: u32 = 1;
    NVGPU_DBG_GPU_REG_OP_STATUS_INVALID_TYPE: u32 = 2;
    NVGPU_DBG_GPU_REG_OP_STATUS_SUCCESS: u32 = 0;
    NVGPU_DBG_GPU_REG_OP_STATUS_UNSUPPORTED_OP: u32 = 8;
    NVGPU_DBG_GPU_REG_OP_TYPE_GLOBAL: u32 = 0;
    NVGPU_DBG_GPU_REG_OP_TYPE_GR_CTX: u32 = 1;
    NVGPU_DBG_GPU_REG_OP_TYPE_GR_CTX_CROP: u32 = 8;
    NVGPU_DBG_GPU_REG_OP_TYPE_GR_CTX_QUAD: u32 = 0x40;
    NVGPU_DBG_GPU_REG_OP_TYPE_GR_CTX_SM: u32 = 4;
    NVGPU_DBG_GPU_REG_OP_TYPE_GR_CTX_TPC: u32 = 2;
    NVGPU_DBG_GPU_REG_OP_TYPE_GR_CTX_ZROP: u32 = 0x10;
    NVGPU_DBG_GPU_REG_OP_WRITE_08: u32 = 5;
    NVGPU_DBG_GPU_REG_OP_WRITE_32: u32 = 1;
    NVGPU_DBG_GPU_REG_OP_WRITE_64: u32 = 3;
    NVGPU_DBG_GPU_RESUME_ALL_CONTEXTS: u32 = 2;
    NVGPU_DBG_GPU_RESUME_ALL_SMS: u32 = 2;
    NVGPU_DBG_GPU_SCHED_EXIT_WAIT_FOR_ERRBAR_DISABLED: u32 = 0;
    NVGPU_DBG_GPU_SCHED_EXIT_WAIT_FOR_ERRBAR_ENABLED: u32 = 1;
    NVGPU_DBG_GPU_SMPC_CTXSW_MODE_CTXSW: u32 = 1;
    NVGPU_DBG_GPU_SMPC_CTXSW_MODE_NO_CTXSW: u32 = 0;
    NVGPU_DBG_GPU_SUSPEND_ALL_CONTEXTS: u32 = 1;
    NVGPU_DBG_GPU_SUSPEND_ALL_SMS: u32 = 1;
}
