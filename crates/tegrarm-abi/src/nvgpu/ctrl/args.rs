//! nvgpu ctrl node: arguments of the ioctls that make objects and set state (L4T r36).
//!
//! Numbers: `tests/data/abi/nvgpu-r36.json`, read off a C compiler.

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static CTRL_ARGS_STRUCTS: Abi::R36;

    /// Argument of `NVGPU_GPU_IOCTL_ALLOC_AS`.
    pub struct nvgpu_alloc_as_args {
        big_page_size: u32,
        as_fd: i32,
        flags: u32,
        reserved: u32,
        va_range_start: u64,
        va_range_end: u64,
        va_range_split: u64,
        padding: [u32; 6],
    }

    /// Argument of `NVGPU_GPU_IOCTL_OPEN_TSG`.
    pub struct nvgpu_gpu_open_tsg_args {
        tsg_fd: u32,
        flags: u32,
        source_device_instance_id: u64,
        share_token: u64,
    }

    /// Argument of `NVGPU_GPU_IOCTL_OPEN_CHANNEL`.
    pub struct nvgpu_gpu_open_channel_args {
        channel_fd: i32,
    }

    /// Argument of `NVGPU_GPU_IOCTL_FLUSH_L2`.
    pub struct nvgpu_gpu_l2_fb_args {
        _flags: u8,
        reserved: [u8; 4],
    }

    /// Argument of `NVGPU_GPU_IOCTL_SET_MMUDEBUG_MODE`.
    pub struct nvgpu_gpu_mmu_debug_mode_args {
        state: u32,
        reserved: u32,
    }

    /// Argument of `NVGPU_GPU_IOCTL_SET_SM_DEBUG_MODE`.
    pub struct nvgpu_gpu_sm_debug_mode_args {
        channel_fd: i32,
        enable: u32,
        sms: u64,
    }

    /// Argument of `NVGPU_GPU_IOCTL_WAIT_FOR_PAUSE`.
    pub struct nvgpu_gpu_wait_pause_args {
        pwarpstate: u64,
    }

    /// Argument of `NVGPU_GPU_IOCTL_GET_TPC_EXCEPTION_EN_STATUS`.
    pub struct nvgpu_gpu_tpc_exception_en_status_args {
        tpc_exception_en_sm_mask: u64,
    }

    /// Argument of `NVGPU_GPU_IOCTL_ALLOC_VIDMEM`.
    pub struct nvgpu_gpu_alloc_vidmem_args {
        in_size: u64,
        in_flags: u32,
        in_memtag: u16,
        in_reserved0: u16,
        in_alignment: u32,
        in_reserved1: [u32; 3],
    }

    /// Argument of `NVGPU_GPU_IOCTL_CLK_GET_RANGE`.
    pub struct nvgpu_gpu_clk_range_args {
        flags: u32,
        pad0: u16,
        num_entries: u16,
        clk_range_entries: u64,
    }

    /// Argument of `NVGPU_GPU_IOCTL_CLK_GET_VF_POINTS`.
    pub struct nvgpu_gpu_clk_vf_points_args {
        flags: u32,
        clk_domain: u32,
        max_entries: u16,
        num_entries: u16,
        reserved: u32,
        clk_vf_point_entries: u64,
    }

    /// Argument of `NVGPU_GPU_IOCTL_CLK_GET_INFO`.
    pub struct nvgpu_gpu_clk_get_info_args {
        flags: u32,
        clk_type: u16,
        num_entries: u16,
        clk_info_entries: u64,
    }

    /// Argument of `NVGPU_GPU_IOCTL_CLK_SET_INFO`.
    pub struct nvgpu_gpu_clk_set_info_args {
        flags: u32,
        pad0: u16,
        num_entries: u16,
        clk_info_entries: u64,
        completion_fd: i32,
        _pad0: [u8; 4],
    }

    /// Argument of `NVGPU_GPU_IOCTL_GET_EVENT_FD`.
    pub struct nvgpu_gpu_get_event_fd_args {
        flags: u32,
        event_fd: i32,
    }

    /// Argument of `NVGPU_GPU_IOCTL_GET_MEMORY_STATE`.
    pub struct nvgpu_gpu_get_memory_state_args {
        total_free_bytes: u64,
        reserved: [u64; 4],
    }

    /// Argument of `NVGPU_GPU_IOCTL_GET_VOLTAGE`.
    pub struct nvgpu_gpu_get_voltage_args {
        reserved: u64,
        which: u32,
        voltage: u32,
    }

    /// Argument of `NVGPU_GPU_IOCTL_GET_CURRENT`.
    pub struct nvgpu_gpu_get_current_args {
        reserved: [u32; 3],
        currnt: u32,
    }

    /// Argument of `NVGPU_GPU_IOCTL_GET_POWER`.
    pub struct nvgpu_gpu_get_power_args {
        reserved: [u32; 3],
        power: u32,
    }

    /// Argument of `NVGPU_GPU_IOCTL_GET_TEMPERATURE`.
    pub struct nvgpu_gpu_get_temperature_args {
        reserved: [u32; 3],
        temp_f24_8: i32,
    }

    /// Argument of `NVGPU_GPU_IOCTL_SET_THERM_ALERT_LIMIT`.
    pub struct nvgpu_gpu_set_therm_alert_limit_args {
        reserved: [u32; 3],
        temp_f24_8: i32,
    }

    /// Argument of `NVGPU_GPU_IOCTL_SET_DETERMINISTIC_OPTS`.
    pub struct nvgpu_gpu_set_deterministic_opts_args {
        num_channels: u32,
        flags: u32,
        channels: u64,
    }

    /// Argument of `NVGPU_GPU_IOCTL_REGISTER_BUFFER`.
    pub struct nvgpu_gpu_register_buffer_args {
        dmabuf_fd: i32,
        comptags_alloc_control: u8,
        reserved0: u8,
        reserved1: u16,
        metadata_addr: u64,
        metadata_size: u32,
        flags: u32,
    }

    /// Argument of `NVGPU_GPU_IOCTL_GET_BUFFER_INFO`.
    pub struct nvgpu_gpu_get_buffer_info_args {
        out_flags: u64,
        out_metadata_size: u32,
        out_reserved: u32,
        out_size: u64,
    }

    /// One entry of the list that `NVGPU_GPU_IOCTL_CLK_GET_RANGE` reads and writes.
    pub struct nvgpu_gpu_clk_range {
        flags: u32,
        clk_domain: u32,
        min_hz: u64,
        max_hz: u64,
    }

    /// One entry of the list that `NVGPU_GPU_IOCTL_CLK_GET_INFO` and `_SET_INFO` read and write.
    pub struct nvgpu_gpu_clk_info {
        flags: u16,
        clk_type: u16,
        clk_domain: u32,
        freq_hz: u64,
    }

    /// One entry of the list that `NVGPU_GPU_IOCTL_CLK_GET_VF_POINTS` writes.
    pub struct nvgpu_gpu_clk_vf_point {
        freq_hz: u64,
    }
}
