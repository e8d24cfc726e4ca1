//! nvgpu scheduling domain node: ioctls, argument structures, constants (L4T r36).
//!
//! Numbers: `tests/data/abi/nvgpu-r36.json`, read off a C compiler.

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static NVSCHED_STRUCTS: Abi::R36;

    /// One scheduling domain.
    pub struct nvgpu_nvs_ioctl_domain {
        name: [u8; 32],
        timeslice_ns: u64,
        preempt_grace_ns: u64,
        subscheduler: u32,
        _pad0: u32,
        dom_id: u64,
        reserved1: u64,
        reserved2: u64,
    }

    /// Argument of `NVGPU_NVS_IOCTL_CREATE_DOMAIN`.
    pub struct nvgpu_nvs_ioctl_create_domain {
        domain_params: nvgpu_nvs_ioctl_domain,
        reserved1: u64,
    }

    /// Argument of `NVGPU_NVS_IOCTL_REMOVE_DOMAIN`.
    pub struct nvgpu_nvs_ioctl_remove_domain {
        dom_id: u64,
        reserved1: u64,
    }

    /// Argument of `NVGPU_NVS_IOCTL_QUERY_DOMAINS`.
    pub struct nvgpu_nvs_ioctl_query_domains {
        domains: u64,
        nr: u32,
        reserved0: u32,
        reserved1: u64,
    }
}

abi_ioctls! {
    /// Every ioctl of this node, by number.
    pub static NVSCHED_IOCTLS: Abi::R36, Node::Nvsched;

    NVGPU_NVS_IOCTL_CREATE_DOMAIN: 0xc0584e01 => nvgpu_nvs_ioctl_create_domain;
    NVGPU_NVS_IOCTL_REMOVE_DOMAIN: 0x40104e02 => nvgpu_nvs_ioctl_remove_domain;
    NVGPU_NVS_IOCTL_QUERY_DOMAINS: 0xc0184e03 => nvgpu_nvs_ioctl_query_domains;
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static NVSCHED_CONSTS: Abi::R36;

    NVGPU_NVS_DOMAIN_SCHED_GSP: u32 = 2;
    NVGPU_NVS_DOMAIN_SCHED_INVALID: u32 = 0;
    NVGPU_NVS_DOMAIN_SCHED_KMD: u32 = 1;
    NVGPU_NVS_IOCTL_LAST: u32 = 3;
    NVGPU_NVS_IOCTL_MAGIC: u32 = 0x4e;
    NVGPU_NVS_IOCTL_MAX_ARG_SIZE: u32 = 0x58;
}
