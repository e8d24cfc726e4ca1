//! nvgpu scheduling control node: ioctls, argument structures, constants (L4T r36).
//!
//! Numbers: `tests/data/abi/nvgpu-r36.json`, read off a C compiler.

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static SCHED_STRUCTS: Abi::R36;

    /// The event that a program reads from the node.
    pub struct nvgpu_sched_event_arg {
        reserved: u64,
        status: u64,
    }

    /// Argument of `NVGPU_SCHED_IOCTL_GET_TSGS`.
    pub struct nvgpu_sched_get_tsgs_args {
        size: u32,
        _pad0: u32,
        buffer: u64,
    }

    /// Argument of `NVGPU_SCHED_IOCTL_GET_TSGS_BY_PID`.
    pub struct nvgpu_sched_get_tsgs_by_pid_args {
        pid: u64,
        size: u32,
        _pad0: u32,
        buffer: u64,
    }

    /// Argument of `NVGPU_SCHED_IOCTL_TSG_GET_PARAMS`.
    pub struct nvgpu_sched_tsg_get_params_args {
        tsgid: u32,
        timeslice: u32,
        runlist_interleave: u32,
        graphics_preempt_mode: u32,
        compute_preempt_mode: u32,
        _pad0: u32,
        pid: u64,
    }

    /// Argument of `NVGPU_SCHED_IOCTL_TSG_SET_TIMESLICE`.
    pub struct nvgpu_sched_tsg_timeslice_args {
        tsgid: u32,
        timeslice: u32,
    }

    /// Argument of `NVGPU_SCHED_IOCTL_TSG_SET_RUNLIST_INTERLEAVE`.
    pub struct nvgpu_sched_tsg_runlist_interleave_args {
        tsgid: u32,
        runlist_interleave: u32,
    }

    /// Argument of `NVGPU_SCHED_IOCTL_GET_API_VERSION`.
    pub struct nvgpu_sched_api_version_args {
        version: u32,
    }

    /// Argument of `NVGPU_SCHED_IOCTL_GET_TSG`.
    pub struct nvgpu_sched_tsg_refcount_args {
        tsgid: u32,
    }
}

abi_ioctls! {
    /// Every ioctl of this node, by number.
    pub static SCHED_IOCTLS: Abi::R36, Node::Sched;

    NVGPU_SCHED_IOCTL_GET_TSGS: 0xc0105301 => nvgpu_sched_get_tsgs_args;
    NVGPU_SCHED_IOCTL_GET_RECENT_TSGS: 0xc0105302 => nvgpu_sched_get_tsgs_args;
    NVGPU_SCHED_IOCTL_GET_TSGS_BY_PID: 0xc0185303 => nvgpu_sched_get_tsgs_by_pid_args;
    NVGPU_SCHED_IOCTL_TSG_GET_PARAMS: 0xc0205304 => nvgpu_sched_tsg_get_params_args;
    NVGPU_SCHED_IOCTL_TSG_SET_TIMESLICE: 0x40085305 => nvgpu_sched_tsg_timeslice_args;
    NVGPU_SCHED_IOCTL_TSG_SET_RUNLIST_INTERLEAVE: 0x40085306 => nvgpu_sched_tsg_runlist_interleave_args;
    NVGPU_SCHED_IOCTL_LOCK_CONTROL: 0x00005307 => NoArg;
    NVGPU_SCHED_IOCTL_UNLOCK_CONTROL: 0x00005308 => NoArg;
    NVGPU_SCHED_IOCTL_GET_API_VERSION: 0x80045309 => nvgpu_sched_api_version_args;
    NVGPU_SCHED_IOCTL_GET_TSG: 0x4004530a => nvgpu_sched_tsg_refcount_args;
    NVGPU_SCHED_IOCTL_PUT_TSG: 0x4004530b => nvgpu_sched_tsg_refcount_args;
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static SCHED_CONSTS: Abi::R36;

    NVGPU_SCHED_API_VERSION: u32 = 1;
    NVGPU_SCHED_IOCTL_LAST: u32 = 0xb;
    NVGPU_SCHED_IOCTL_MAGIC: u32 = 0x53;
    NVGPU_SCHED_IOCTL_MAX_ARG_SIZE: u32 = 0x20;
    NVGPU_SCHED_IOCTL_SUBSCHEDULER_HOST_HW_RR: u32 = 0;
    NVGPU_SCHED_STATUS_TSG_OPEN: u32 = 1;
}
