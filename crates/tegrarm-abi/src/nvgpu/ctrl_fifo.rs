//! nvgpu control queues of the domain scheduler (`nvsched_ctrl_fifo`, L4T r36 only): ioctls, argument structures,
//! constants.
//!
//! Numbers: `tests/data/abi/nvgpu-r36.json`, read off a C compiler.

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static CTRL_FIFO_STRUCTS: Abi::R36;

    /// Argument of `NVGPU_NVS_CTRL_FIFO_IOCTL_CREATE_QUEUE`.
    pub struct nvgpu_nvs_ctrl_fifo_ioctl_create_queue_args {
        queue_num: u32,
        direction: u8,
        access_type: u8,
        reserve0: u16,
        queue_size: u32,
        dmabuf_fd: i32,
    }

    /// Argument of `NVGPU_NVS_CTRL_FIFO_IOCTL_RELEASE_QUEUE`.
    pub struct nvgpu_nvs_ctrl_fifo_ioctl_release_queue_args {
        queue_num: u32,
        direction: u8,
        reserve0: u8,
        reserve1: u16,
        reserve2: u64,
    }

    /// Argument of `NVGPU_NVS_CTRL_FIFO_IOCTL_ENABLE_EVENT`.
    pub struct nvgpu_nvs_ctrl_fifo_ioctl_event {
        event_mask: u64,
        reserve0: u64,
    }

    /// Argument of `NVGPU_NVS_CTRL_FIFO_IOCTL_QUERY_SCHEDULER_CHARACTERISTICS`.
    pub struct nvgpu_nvs_ctrl_fifo_ioctl_query_scheduler_characteristics_args {
        domain_scheduler_implementation: u8,
        reserved0: u8,
        reserved1: u16,
        available_queues: u32,
        reserved2: [u64; 8],
    }
}

abi_ioctls! {
    /// Every ioctl of this node, by number.
    pub static CTRL_FIFO_IOCTLS: Abi::R36, Node::CtrlFifo;

    NVGPU_NVS_CTRL_FIFO_IOCTL_CREATE_QUEUE: 0xc0104601 => nvgpu_nvs_ctrl_fifo_ioctl_create_queue_args;
    NVGPU_NVS_CTRL_FIFO_IOCTL_RELEASE_QUEUE: 0xc0104602 => nvgpu_nvs_ctrl_fifo_ioctl_release_queue_args;
    NVGPU_NVS_CTRL_FIFO_IOCTL_ENABLE_EVENT: 0x40104603 => nvgpu_nvs_ctrl_fifo_ioctl_event;
    NVGPU_NVS_CTRL_FIFO_IOCTL_QUERY_SCHEDULER_CHARACTERISTICS: 0x80484604 => nvgpu_nvs_ctrl_fifo_ioctl_query_scheduler_characteristics_args;
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static CTRL_FIFO_CONSTS: Abi::R36;

    NVGPU_NVS_CTRL_FIFO_EVENT_FAULTDETECTED: u32 = 1;
    NVGPU_NVS_CTRL_FIFO_EVENT_FAULTRECOVERY: u32 = 2;
    NVGPU_NVS_CTRL_FIFO_IOCTL_LAST: u32 = 4;
    NVGPU_NVS_CTRL_FIFO_IOCTL_MAGIC: u32 = 0x46;
    NVGPU_NVS_CTRL_FIFO_IOCTL_MAX_ARG_SIZE: u32 = 0x48;
    NVGPU_NVS_CTRL_FIFO_QUEUE_ACCESS_TYPE_EXCLUSIVE: u32 = 1;
    NVGPU_NVS_CTRL_FIFO_QUEUE_ACCESS_TYPE_NON_EXCLUSIVE: u32 = 0;
    NVGPU_NVS_CTRL_FIFO_QUEUE_DIRECTION_CLIENT_TO_SCHEDULER: u32 = 0;
    NVGPU_NVS_CTRL_FIFO_QUEUE_DIRECTION_SCHEDULER_TO_CLIENT: u32 = 1;
    NVGPU_NVS_CTRL_FIFO_QUEUE_NUM_CONTROL: u32 = 1;
    NVGPU_NVS_CTRL_FIFO_QUEUE_NUM_EVENT: u32 = 2;
}
