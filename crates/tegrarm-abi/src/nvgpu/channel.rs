//! nvgpu channel node: ioctls, argument structures, constants (L4T r36).
//!
//! Numbers: `tests/data/abi/nvgpu-r36.json`, read off a C compiler.

use crate::layout::*;
use crate::nvgpu::tsg::{nvgpu_event_id_ctrl_args, nvgpu_runlist_interleave_args};

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static CHANNEL_STRUCTS: Abi::R36;

    /// Argument of `NVGPU_IOCTL_CHANNEL_SET_NVMAP_FD`.
    pub struct nvgpu_set_nvmap_fd_args {
        fd: u32,
    }

    /// Argument of `NVGPU_IOCTL_CHANNEL_SET_TIMEOUT`.
    pub struct nvgpu_set_timeout_args {
        timeout: u32,
    }

    /// Argument of `NVGPU_IOCTL_CHANNEL_GET_TIMEDOUT`.
    pub struct nvgpu_get_param_args {
        value: u32,
    }

    /// Argument of `NVGPU_IOCTL_CHANNEL_SET_TIMEOUT_EX`.
    pub struct nvgpu_set_timeout_ex_args {
        timeout: u32,
        flags: u32,
    }

    /// Argument of `NVGPU_IOCTL_CHANNEL_WAIT`.
    pub struct nvgpu_wait_args {
        type_: u32,
        timeout: u32,
        condition_notifier_dmabuf_fd: u32,
        condition_notifier_offset: u32,
        condition_notifier_padding1: u32,
        condition_notifier_padding2: u32,
    }

    /// A syncpoint threshold, or a sync file in `id`; part of [`nvgpu_submit_gpfifo_args`].
    pub struct nvgpu_fence {
        id: u32,
        value: u32,
    }

    /// Argument of `NVGPU_IOCTL_CHANNEL_SUBMIT_GPFIFO`.
    pub struct nvgpu_submit_gpfifo_args {
        gpfifo: u64,
        num_entries: u32,
        flags: u32,
        fence: nvgpu_fence,
    }

    /// Argument of `NVGPU_IOCTL_CHANNEL_ALLOC_OBJ_CTX`.
    pub struct nvgpu_alloc_obj_ctx_args {
        class_num: u32,
        flags: u32,
        obj_id: u64,
    }

    /// Argument of `NVGPU_IOCTL_CHANNEL_ZCULL_BIND`.
    pub struct nvgpu_zcull_bind_args {
        gpu_va: u64,
        mode: u32,
        padding: u32,
    }

    /// Argument of `NVGPU_IOCTL_CHANNEL_SET_ERROR_NOTIFIER`.
    pub struct nvgpu_set_error_notifier {
        offset: u64,
        size: u64,
        mem: u32,
        padding: u32,
    }

    /// Argument of `NVGPU_IOCTL_CHANNEL_OPEN`.
    pub struct nvgpu_channel_open_args {
        channel_fd: i32,
    }

    /// Argument of `NVGPU_IOCTL_CHANNEL_WDT`.
    pub struct nvgpu_channel_wdt_args {
        wdt_status: u32,
        timeout_ms: u32,
    }

    /// Argument of `NVGPU_IOCTL_CHANNEL_SET_PREEMPTION_MODE`.
    pub struct nvgpu_preemption_mode_args {
        graphics_preempt_mode: u32,
        compute_preempt_mode: u32,
    }

    /// Argument of `NVGPU_IOCTL_CHANNEL_ALLOC_GPFIFO_EX`.
    pub struct nvgpu_alloc_gpfifo_ex_args {
        num_entries: u32,
        num_inflight_jobs: u32,
        flags: u32,
        reserved: [u32; 5],
    }

    /// Argument of `NVGPU_IOCTL_CHANNEL_SET_BOOSTED_CTX`.
    pub struct nvgpu_boosted_ctx_args {
        boost: u32,
        padding: u32,
    }

    /// Argument of `NVGPU_IOCTL_CHANNEL_GET_USER_SYNCPOINT`.
    pub struct nvgpu_get_user_syncpoint_args {
        gpu_va: u64,
        syncpoint_id: u32,
        syncpoint_max: u32,
    }

    /// Argument of `NVGPU_IOCTL_CHANNEL_RESCHEDULE_RUNLIST`.
    pub struct nvgpu_reschedule_runlist_args {
        flags: u32,
    }

    /// Argument of `NVGPU_IOCTL_CHANNEL_SETUP_BIND`.
    pub struct nvgpu_channel_setup_bind_args {
        num_gpfifo_entries: u32,
        num_inflight_jobs: u32,
        flags: u32,
        userd_dmabuf_fd: i32,
        gpfifo_dmabuf_fd: i32,
        work_submit_token: u32,
        userd_dmabuf_offset: u64,
        gpfifo_dmabuf_offset: u64,
        gpfifo_gpu_va: u64,
        userd_gpu_va: u64,
        usermode_mmio_gpu_va: u64,
        reserved: [u32; 9],
        _pad0: [u8; 4],
    }

    /// The 16 bytes of an error notifier. The kernel writes them, and it writes `status` last.
    pub struct nvgpu_notification {
        time_stamp_nanoseconds: [u32; 2],
        info32: u32,
        info16: u16,
        status: u16,
    }

    /// One GPFIFO entry as `NVGPU_IOCTL_CHANNEL_SUBMIT_GPFIFO` reads it.
    pub struct nvgpu_gpfifo {
        entry0: u32,
        entry1: u32,
    }
}

abi_ioctls! {
    /// Every ioctl of this node, by number.
    pub static CHANNEL_IOCTLS: Abi::R36, Node::Channel;

    NVGPU_IOCTL_CHANNEL_SET_NVMAP_FD: 0x40044805 => nvgpu_set_nvmap_fd_args;
    NVGPU_IOCTL_CHANNEL_SET_TIMEOUT: 0x4004480b => nvgpu_set_timeout_args;
    NVGPU_IOCTL_CHANNEL_GET_TIMEDOUT: 0x8004480c => nvgpu_get_param_args;
    NVGPU_IOCTL_CHANNEL_SET_TIMEOUT_EX: 0xc0084812 => nvgpu_set_timeout_ex_args;
    NVGPU_IOCTL_CHANNEL_WAIT: 0xc0184866 => nvgpu_wait_args;
    NVGPU_IOCTL_CHANNEL_SUBMIT_GPFIFO: 0xc018486b => nvgpu_submit_gpfifo_args;
    NVGPU_IOCTL_CHANNEL_ALLOC_OBJ_CTX: 0xc010486c => nvgpu_alloc_obj_ctx_args;
    NVGPU_IOCTL_CHANNEL_ZCULL_BIND: 0xc010486e => nvgpu_zcull_bind_args;
    NVGPU_IOCTL_CHANNEL_SET_ERROR_NOTIFIER: 0xc018486f => nvgpu_set_error_notifier;
    NVGPU_IOCTL_CHANNEL_OPEN: 0x80044870 => nvgpu_channel_open_args;
    NVGPU_IOCTL_CHANNEL_ENABLE: 0x00004871 => NoArg;
    NVGPU_IOCTL_CHANNEL_DISABLE: 0x00004872 => NoArg;
    NVGPU_IOCTL_CHANNEL_PREEMPT: 0x00004873 => NoArg;
    NVGPU_IOCTL_CHANNEL_FORCE_RESET: 0x00004874 => NoArg;
    NVGPU_IOCTL_CHANNEL_EVENT_ID_CTRL: 0xc0104875 => nvgpu_event_id_ctrl_args;
    NVGPU_IOCTL_CHANNEL_WDT: 0x40084877 => nvgpu_channel_wdt_args;
    NVGPU_IOCTL_CHANNEL_SET_RUNLIST_INTERLEAVE: 0x40084878 => nvgpu_runlist_interleave_args;
    NVGPU_IOCTL_CHANNEL_SET_PREEMPTION_MODE: 0x4008487a => nvgpu_preemption_mode_args;
    NVGPU_IOCTL_CHANNEL_ALLOC_GPFIFO_EX: 0x4020487b => nvgpu_alloc_gpfifo_ex_args;
    NVGPU_IOCTL_CHANNEL_SET_BOOSTED_CTX: 0x4008487c => nvgpu_boosted_ctx_args;
    NVGPU_IOCTL_CHANNEL_GET_USER_SYNCPOINT: 0x8010487e => nvgpu_get_user_syncpoint_args;
    NVGPU_IOCTL_CHANNEL_RESCHEDULE_RUNLIST: 0x4004487f => nvgpu_reschedule_runlist_args;
    NVGPU_IOCTL_CHANNEL_SETUP_BIND: 0xc0684880 => nvgpu_channel_setup_bind_args;
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static CHANNEL_CONSTS: Abi::R36;

    NVGPU_ALLOC_GPFIFO_EX_FLAGS_DETERMINISTIC: u32 = 2;
    NVGPU_ALLOC_GPFIFO_EX_FLAGS_VPR_ENABLED: u32 = 1;
    NVGPU_ALLOC_OBJ_FLAGS_CILP: u32 = 4;
    NVGPU_ALLOC_OBJ_FLAGS_GFXP: u32 = 2;
    NVGPU_ALLOC_OBJ_FLAGS_LOCKBOOST_ZERO: u32 = 1;
    NVGPU_BOOSTED_CTX_MODE_BOOSTED_EXECUTION: u32 = 1;
    NVGPU_BOOSTED_CTX_MODE_NORMAL: u32 = 0;
    NVGPU_CHANNEL_FECS_ERR_UNIMP_FIRMWARE_METHOD: u32 = 0x25;
    NVGPU_CHANNEL_FIFO_ERROR_IDLE_TIMEOUT: u32 = 8;
    NVGPU_CHANNEL_FIFO_ERROR_MMU_ERR_FLT: u32 = 0x1f;
    NVGPU_CHANNEL_GR_ERROR_SW_METHOD: u32 = 0xc;
    NVGPU_CHANNEL_GR_ERROR_SW_NOTIFY: u32 = 0xd;
    NVGPU_CHANNEL_GR_EXCEPTION: u32 = 0xd;
    NVGPU_CHANNEL_GR_ILLEGAL_NOTIFY: u32 = 0x19;
    NVGPU_CHANNEL_GR_SEMAPHORE_TIMEOUT: u32 = 0x18;
    NVGPU_CHANNEL_PBDMA_ERROR: u32 = 0x20;
    NVGPU_CHANNEL_PBDMA_PUSHBUFFER_CRC_MISMATCH: u32 = 0x50;
    NVGPU_CHANNEL_RESETCHANNEL_VERIF_ERROR: u32 = 0x2b;
    NVGPU_CHANNEL_SETUP_BIND_FLAGS_DETERMINISTIC: u32 = 2;
    NVGPU_CHANNEL_SETUP_BIND_FLAGS_REPLAYABLE_FAULTS_ENABLE: u32 = 4;
    NVGPU_CHANNEL_SETUP_BIND_FLAGS_USERMODE_GPU_MAP_RESOURCES_SUPPORT: u32 = 0x10;
    NVGPU_CHANNEL_SETUP_BIND_FLAGS_USERMODE_SUPPORT: u32 = 8;
    NVGPU_CHANNEL_SETUP_BIND_FLAGS_VPR_ENABLED: u32 = 1;
    NVGPU_CHANNEL_SUBMIT_TIMEOUT: u32 = 1;
    NVGPU_COMPUTE_PREEMPTION_MODE_CILP: u32 = 4;
    NVGPU_COMPUTE_PREEMPTION_MODE_CTA: u32 = 2;
    NVGPU_COMPUTE_PREEMPTION_MODE_WFI: u32 = 1;
    NVGPU_GRAPHICS_PREEMPTION_MODE_GFXP: u32 = 2;
    NVGPU_GRAPHICS_PREEMPTION_MODE_WFI: u32 = 1;
    NVGPU_IOCTL_CHANNEL_DISABLE_WDT: u32 = 1;
    NVGPU_IOCTL_CHANNEL_ENABLE_WDT: u32 = 2;
    NVGPU_IOCTL_CHANNEL_EVENT_ID_BLOCKING_SYNC: u32 = 2;
    NVGPU_IOCTL_CHANNEL_EVENT_ID_BPT_INT: u32 = 0;
    NVGPU_IOCTL_CHANNEL_EVENT_ID_BPT_PAUSE: u32 = 1;
    NVGPU_IOCTL_CHANNEL_EVENT_ID_CILP_PREEMPTION_COMPLETE: u32 = 4;
    NVGPU_IOCTL_CHANNEL_EVENT_ID_CILP_PREEMPTION_STARTED: u32 = 3;
    NVGPU_IOCTL_CHANNEL_EVENT_ID_CMD_ENABLE: u32 = 1;
    NVGPU_IOCTL_CHANNEL_EVENT_ID_GR_SEMAPHORE_WRITE_AWAKEN: u32 = 5;
    NVGPU_IOCTL_CHANNEL_EVENT_ID_MAX: u32 = 6;
    NVGPU_IOCTL_CHANNEL_LAST: u32 = 0x80;
    NVGPU_IOCTL_CHANNEL_MAX_ARG_SIZE: u32 = 0x68;
    NVGPU_IOCTL_CHANNEL_WDT_FLAG_DISABLE_DUMP: u32 = 8;
    NVGPU_IOCTL_CHANNEL_WDT_FLAG_SET_TIMEOUT: u32 = 4;
    NVGPU_RUNLIST_INTERLEAVE_LEVEL_HIGH: u32 = 2;
    NVGPU_RUNLIST_INTERLEAVE_LEVEL_LOW: u32 = 0;
    NVGPU_RUNLIST_INTERLEAVE_LEVEL_MEDIUM: u32 = 1;
    NVGPU_RUNLIST_INTERLEAVE_NUM_LEVELS: u32 = 3;
    NVGPU_SUBMIT_GPFIFO_FLAGS_FENCE_GET: u32 = 2;
    NVGPU_SUBMIT_GPFIFO_FLAGS_FENCE_WAIT: u32 = 1;
    NVGPU_SUBMIT_GPFIFO_FLAGS_HW_FORMAT: u32 = 4;
    NVGPU_SUBMIT_GPFIFO_FLAGS_SKIP_BUFFER_REFCOUNTING: u32 = 0x20;
    NVGPU_SUBMIT_GPFIFO_FLAGS_SUPPRESS_WFI: u32 = 0x10;
    NVGPU_SUBMIT_GPFIFO_FLAGS_SYNC_FENCE: u32 = 8;
    NVGPU_TIMEOUT_FLAG_DISABLE_DUMP: u32 = 0;
    NVGPU_WAIT_TYPE_NOTIFIER: u32 = 0;
    NVGPU_WAIT_TYPE_SEMAPHORE: u32 = 1;
}
