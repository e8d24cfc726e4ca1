//! nvgpu context switch trace node: ioctls, argument structures, constants (L4T r36).
//!
//! Numbers: `tests/data/abi/nvgpu-r36.json`, read off a C compiler.

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static CTXSW_STRUCTS: Abi::R36;

    /// The header at the start of the mapped ring.
    pub struct nvgpu_ctxsw_ring_header {
        magic: u32,
        version: u32,
        num_ents: u32,
        ent_size: u32,
        drop_count: u32,
        write_seqno: u32,
        write_idx: u32,
        read_idx: u32,
    }

    /// One entry of the ring.
    pub struct nvgpu_ctxsw_trace_entry {
        tag: u8,
        vmid: u8,
        seqno: u16,
        context_id: u32,
        pid: u64,
        timestamp: u64,
    }

    /// The tags that are traced.
    pub struct nvgpu_ctxsw_trace_filter {
        tag_bits: [u64; 4],
    }

    /// Argument of `NVGPU_CTXSW_IOCTL_RING_SETUP`.
    pub struct nvgpu_ctxsw_ring_setup_args {
        size: u32,
    }

    /// Argument of `NVGPU_CTXSW_IOCTL_SET_FILTER`.
    pub struct nvgpu_ctxsw_trace_filter_args {
        filter: nvgpu_ctxsw_trace_filter,
    }
}

abi_ioctls! {
    /// Every ioctl of this node, by number.
    pub static CTXSW_IOCTLS: Abi::R36, Node::Ctxsw;

    NVGPU_CTXSW_IOCTL_TRACE_ENABLE: 0x00004301 => NoArg;
    NVGPU_CTXSW_IOCTL_TRACE_DISABLE: 0x00004302 => NoArg;
    NVGPU_CTXSW_IOCTL_RING_SETUP: 0xc0044303 => nvgpu_ctxsw_ring_setup_args;
    NVGPU_CTXSW_IOCTL_SET_FILTER: 0x40204304 => nvgpu_ctxsw_trace_filter_args;
    NVGPU_CTXSW_IOCTL_GET_FILTER: 0x80204305 => nvgpu_ctxsw_trace_filter_args;
    NVGPU_CTXSW_IOCTL_POLL: 0x00004306 => NoArg;
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static CTXSW_CONSTS: Abi::R36;

    NVGPU_CTXSW_FILTER_SIZE: u32 = 0x100;
    NVGPU_CTXSW_IOCTL_LAST: u32 = 6;
    NVGPU_CTXSW_IOCTL_MAGIC: u32 = 0x43;
    NVGPU_CTXSW_IOCTL_MAX_ARG_SIZE: u32 = 0x20;
    NVGPU_CTXSW_RING_HEADER_MAGIC: u32 = 0x7000fade;
    NVGPU_CTXSW_RING_HEADER_VERSION: u32 = 0;
    NVGPU_CTXSW_TAG_CONTEXT_START: u32 = 5;
    NVGPU_CTXSW_TAG_CTXSW_REQ_BY_HOST: u32 = 1;
    NVGPU_CTXSW_TAG_ENGINE_RESET: u32 = 0xfe;
    NVGPU_CTXSW_TAG_FE_ACK: u32 = 2;
    NVGPU_CTXSW_TAG_FE_ACK_CILP: u32 = 0xd;
    NVGPU_CTXSW_TAG_FE_ACK_CTAP: u32 = 0xc;
    NVGPU_CTXSW_TAG_FE_ACK_GFXP: u32 = 0xb;
    NVGPU_CTXSW_TAG_FE_ACK_WFI: u32 = 0xa;
    NVGPU_CTXSW_TAG_INVALID_TIMESTAMP: u32 = 0xff;
    NVGPU_CTXSW_TAG_LAST: u32 = 0xff;
    NVGPU_CTXSW_TAG_RESTORE_START: u32 = 4;
    NVGPU_CTXSW_TAG_SAVE_END: u32 = 3;
    NVGPU_CTXSW_TAG_SOF: u32 = 0;
}
