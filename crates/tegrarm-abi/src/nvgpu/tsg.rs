//! nvgpu tsg node: ioctls, argument structures, constants (L4T r36).
//!
//! Numbers: `tests/data/abi/nvgpu-r36.json`, read off a C compiler.

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static TSG_STRUCTS: Abi::R36;

    /// Argument of `NVGPU_IOCTL_CHANNEL_EVENT_ID_CTRL` and `NVGPU_IOCTL_TSG_EVENT_ID_CTRL`.
    pub struct nvgpu_event_id_ctrl_args {
        cmd: u32,
        event_id: u32,
        event_fd: i32,
        padding: u32,
    }

    /// Argument of `NVGPU_IOCTL_CHANNEL_SET_RUNLIST_INTERLEAVE` and `NVGPU_IOCTL_TSG_SET_RUNLIST_INTERLEAVE`.
    pub struct nvgpu_runlist_interleave_args {
        level: u32,
        reserved: u32,
    }

    /// Argument of `NVGPU_DBG_GPU_IOCTL_TSG_SET_TIMESLICE` and `NVGPU_DBG_GPU_IOCTL_TSG_GET_TIMESLICE` and `NVGPU_IOCTL_TSG_SET_TIMESLICE` and `NVGPU_IOCTL_TSG_GET_TIMESLICE`.
    pub struct nvgpu_timeslice_args {
        timeslice_us: u32,
        reserved: u32,
    }

    /// Argument of `NVGPU_TSG_IOCTL_BIND_CHANNEL_EX`.
    pub struct nvgpu_tsg_bind_channel_ex_args {
        channel_fd: i32,
        subcontext_id: u32,
        reserved: [u8; 16],
    }

    /// Argument of `NVGPU_TSG_IOCTL_READ_SINGLE_SM_ERROR_STATE`.
    pub struct nvgpu_tsg_read_single_sm_error_state_args {
        sm_id: u32,
        reserved: u32,
        record_mem: u64,
        record_size: u64,
    }

    /// Argument of `NVGPU_TSG_IOCTL_SET_L2_MAX_WAYS_EVICT_LAST` and `NVGPU_TSG_IOCTL_GET_L2_MAX_WAYS_EVICT_LAST`.
    pub struct nvgpu_tsg_l2_max_ways_evict_last_args {
        max_ways: u32,
        reserved: u32,
    }

    /// Argument of `NVGPU_TSG_IOCTL_SET_L2_SECTOR_PROMOTION`.
    pub struct nvgpu_tsg_set_l2_sector_promotion_args {
        promotion_flag: u32,
        reserved: u32,
    }

    /// Argument of `NVGPU_TSG_IOCTL_BIND_SCHEDULING_DOMAIN`.
    pub struct nvgpu_tsg_bind_scheduling_domain_args {
        domain_fd: i32,
        reserved0: i32,
        reserved: [u64; 3],
    }

    /// Argument of `NVGPU_TSG_IOCTL_READ_ALL_SM_ERROR_STATES`.
    pub struct nvgpu_tsg_read_all_sm_error_state_args {
        num_sm: u32,
        reserved: u32,
        buffer_mem: u64,
        buffer_size: u64,
    }

    /// Argument of `NVGPU_TSG_IOCTL_CREATE_SUBCONTEXT`.
    pub struct nvgpu_tsg_create_subcontext_args {
        type_: u32,
        as_fd: i32,
        veid: u32,
        reserved: u32,
    }

    /// Argument of `NVGPU_TSG_IOCTL_DELETE_SUBCONTEXT`.
    pub struct nvgpu_tsg_delete_subcontext_args {
        veid: u32,
        reserved: u32,
    }

    /// Argument of `NVGPU_TSG_IOCTL_GET_SHARE_TOKEN`.
    pub struct nvgpu_tsg_get_share_token_args {
        source_device_instance_id: u64,
        target_device_instance_id: u64,
        share_token: u64,
    }

    /// Argument of `NVGPU_TSG_IOCTL_REVOKE_SHARE_TOKEN`.
    pub struct nvgpu_tsg_revoke_share_token_args {
        source_device_instance_id: u64,
        target_device_instance_id: u64,
        share_token: u64,
    }

    /// The record that `NVGPU_TSG_IOCTL_READ_SINGLE_SM_ERROR_STATE` writes to the caller's buffer.
    pub struct nvgpu_tsg_sm_error_state_record {
        global_esr: u32,
        warp_esr: u32,
        warp_esr_pc: u64,
        global_esr_report_mask: u32,
        warp_esr_report_mask: u32,
    }
}

abi_ioctls! {
    /// Every ioctl of this node, by number.
    pub static TSG_IOCTLS: Abi::R36, Node::Tsg;

    NVGPU_TSG_IOCTL_BIND_CHANNEL: 0x40045401 => NoArg;
    NVGPU_TSG_IOCTL_UNBIND_CHANNEL: 0x40045402 => NoArg;
    NVGPU_IOCTL_TSG_ENABLE: 0x00005403 => NoArg;
    NVGPU_IOCTL_TSG_DISABLE: 0x00005404 => NoArg;
    NVGPU_IOCTL_TSG_PREEMPT: 0x00005405 => NoArg;
    NVGPU_IOCTL_TSG_EVENT_ID_CTRL: 0xc0105407 => nvgpu_event_id_ctrl_args;
    NVGPU_IOCTL_TSG_SET_RUNLIST_INTERLEAVE: 0x40085408 => nvgpu_runlist_interleave_args;
    NVGPU_IOCTL_TSG_SET_TIMESLICE: 0x40085409 => nvgpu_timeslice_args;
    NVGPU_IOCTL_TSG_GET_TIMESLICE: 0x8008540a => nvgpu_timeslice_args;
    NVGPU_TSG_IOCTL_BIND_CHANNEL_EX: 0xc018540b => nvgpu_tsg_bind_channel_ex_args;
    NVGPU_TSG_IOCTL_READ_SINGLE_SM_ERROR_STATE: 0xc018540c => nvgpu_tsg_read_single_sm_error_state_args;
    NVGPU_TSG_IOCTL_SET_L2_MAX_WAYS_EVICT_LAST: 0x4008540d => nvgpu_tsg_l2_max_ways_evict_last_args;
    NVGPU_TSG_IOCTL_GET_L2_MAX_WAYS_EVICT_LAST: 0x8008540e => nvgpu_tsg_l2_max_ways_evict_last_args;
    NVGPU_TSG_IOCTL_SET_L2_SECTOR_PROMOTION: 0x4008540f => nvgpu_tsg_set_l2_sector_promotion_args;
    NVGPU_TSG_IOCTL_BIND_SCHEDULING_DOMAIN: 0x40205410 => nvgpu_tsg_bind_scheduling_domain_args;
    NVGPU_TSG_IOCTL_READ_ALL_SM_ERROR_STATES: 0xc0185411 => nvgpu_tsg_read_all_sm_error_state_args;
    NVGPU_TSG_IOCTL_CREATE_SUBCONTEXT: 0xc0105412 => nvgpu_tsg_create_subcontext_args;
    NVGPU_TSG_IOCTL_DELETE_SUBCONTEXT: 0x40085413 => nvgpu_tsg_delete_subcontext_args;
    NVGPU_TSG_IOCTL_GET_SHARE_TOKEN: 0xc0185414 => nvgpu_tsg_get_share_token_args;
    NVGPU_TSG_IOCTL_REVOKE_SHARE_TOKEN: 0x40185415 => nvgpu_tsg_revoke_share_token_args;
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static TSG_CONSTS: Abi::R36;

    NVGPU_TSG_IOCTL_LAST: u32 = 0x15;
    NVGPU_TSG_IOCTL_MAGIC: u32 = 0x54;
    NVGPU_TSG_IOCTL_MAX_ARG_SIZE: u32 = 0x20;
    NVGPU_TSG_SUBCONTEXT_TYPE_ASYNC: u32 = 1;
    NVGPU_TSG_SUBCONTEXT_TYPE_SYNC: u32 = 0;
}
