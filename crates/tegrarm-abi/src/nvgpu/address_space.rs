//! nvgpu address space node: ioctls, argument structures, constants (L4T r36).
//!
//! Numbers: `tests/data/abi/nvgpu-r36.json`, read off a C compiler.

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static ADDRESS_SPACE_STRUCTS: Abi::R36;

    /// Argument of `NVGPU_AS_IOCTL_BIND_CHANNEL`.
    pub struct nvgpu_as_bind_channel_args {
        channel_fd: u32,
    }

    /// Argument of `NVGPU32_AS_IOCTL_ALLOC_SPACE`.
    pub struct nvgpu32_as_alloc_space_args {
        pages: u32,
        page_size: u32,
        flags: u32,
        _pad0: [u8; 4],
        o_a_offset: u64,
    }

    /// Argument of `NVGPU_AS_IOCTL_FREE_SPACE`.
    pub struct nvgpu_as_free_space_args {
        offset: u64,
        pages: u64,
        page_size: u32,
        padding: [u32; 3],
    }

    /// Argument of `NVGPU_AS_IOCTL_UNMAP_BUFFER`.
    pub struct nvgpu_as_unmap_buffer_args {
        offset: u64,
    }

    /// Argument of `NVGPU_AS_IOCTL_ALLOC_SPACE`.
    pub struct nvgpu_as_alloc_space_args {
        pages: u64,
        page_size: u32,
        flags: u32,
        o_a_offset: u64,
        padding: [u32; 2],
    }

    /// Argument of `NVGPU_AS_IOCTL_MAP_BUFFER_EX`.
    pub struct nvgpu_as_map_buffer_ex_args {
        flags: u32,
        compr_kind: i16,
        incompr_kind: i16,
        dmabuf_fd: u32,
        page_size: u32,
        buffer_offset: u64,
        mapping_size: u64,
        offset: u64,
    }

    /// Argument of `NVGPU_AS_IOCTL_GET_VA_REGIONS`.
    pub struct nvgpu_as_get_va_regions_args {
        buf_addr: u64,
        buf_size: u32,
        reserved: u32,
    }

    /// Argument of `NVGPU_AS_IOCTL_GET_BUFFER_COMPBITS_INFO`.
    pub struct nvgpu_as_get_buffer_compbits_info_args {
        mapping_gva: u64,
        compbits_win_size: u64,
        compbits_win_ctagline: u32,
        mapping_ctagline: u32,
        flags: u32,
        reserved1: u32,
    }

    /// Argument of `NVGPU_AS_IOCTL_MAP_BUFFER_COMPBITS`.
    pub struct nvgpu_as_map_buffer_compbits_args {
        mapping_gva: u64,
        compbits_win_gva: u64,
        mapping_iova: u64,
        mapping_iova_buf_size: u64,
        flags: u32,
        reserved1: u32,
    }

    /// Argument of `NVGPU_AS_IOCTL_MAP_BUFFER_BATCH`.
    pub struct nvgpu_as_map_buffer_batch_args {
        unmaps: u64,
        maps: u64,
        num_unmaps: u32,
        num_maps: u32,
        reserved: u64,
    }

    /// Argument of `NVGPU_AS_IOCTL_GET_SYNC_RO_MAP`.
    pub struct nvgpu_as_get_sync_ro_map_args {
        base_gpuva: u64,
        sync_size: u32,
        num_syncpoints: u32,
    }

    /// Argument of `NVGPU_AS_IOCTL_MAPPING_MODIFY`.
    pub struct nvgpu_as_mapping_modify_args {
        compr_kind: i16,
        incompr_kind: i16,
        _pad0: [u8; 4],
        buffer_offset: u64,
        buffer_size: u64,
        map_address: u64,
    }

    /// Argument of `NVGPU_AS_IOCTL_REMAP`.
    pub struct nvgpu_as_remap_args {
        ops: u64,
        num_ops: u32,
        _pad0: [u8; 4],
    }

    /// One entry of the list that `NVGPU_AS_IOCTL_GET_VA_REGIONS` writes.
    pub struct nvgpu_as_va_region {
        offset: u64,
        page_size: u32,
        reserved: u32,
        pages: u64,
    }

    /// One entry of the list that `NVGPU_AS_IOCTL_REMAP` reads and writes.
    pub struct nvgpu_as_remap_op {
        flags: u32,
        compr_kind: i16,
        incompr_kind: i16,
        mem_handle: u32,
        reserved: i32,
        mem_offset_in_pages: u64,
        virt_offset_in_pages: u64,
        num_pages: u64,
    }
}

abi_ioctls! {
    /// Every ioctl of this node, by number.
    pub static ADDRESS_SPACE_IOCTLS: Abi::R36, Node::As;

    NVGPU_AS_IOCTL_BIND_CHANNEL: 0xc0044101 => nvgpu_as_bind_channel_args;
    NVGPU32_AS_IOCTL_ALLOC_SPACE: 0xc0184102 => nvgpu32_as_alloc_space_args;
    NVGPU_AS_IOCTL_FREE_SPACE: 0xc0204103 => nvgpu_as_free_space_args;
    NVGPU_AS_IOCTL_UNMAP_BUFFER: 0xc0084105 => nvgpu_as_unmap_buffer_args;
    NVGPU_AS_IOCTL_ALLOC_SPACE: 0xc0204106 => nvgpu_as_alloc_space_args;
    NVGPU_AS_IOCTL_MAP_BUFFER_EX: 0xc0284107 => nvgpu_as_map_buffer_ex_args;
    NVGPU_AS_IOCTL_GET_VA_REGIONS: 0xc0104108 => nvgpu_as_get_va_regions_args;
    NVGPU_AS_IOCTL_GET_BUFFER_COMPBITS_INFO: 0xc0204109 => nvgpu_as_get_buffer_compbits_info_args;
    NVGPU_AS_IOCTL_MAP_BUFFER_COMPBITS: 0xc028410a => nvgpu_as_map_buffer_compbits_args;
    NVGPU_AS_IOCTL_MAP_BUFFER_BATCH: 0xc020410b => nvgpu_as_map_buffer_batch_args;
    NVGPU_AS_IOCTL_GET_SYNC_RO_MAP: 0x8010410c => nvgpu_as_get_sync_ro_map_args;
    NVGPU_AS_IOCTL_MAPPING_MODIFY: 0xc020410d => nvgpu_as_mapping_modify_args;
    NVGPU_AS_IOCTL_REMAP: 0xc010410e => nvgpu_as_remap_args;
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static ADDRESS_SPACE_CONSTS: Abi::R36;

    NVGPU_AS_ALLOC_SPACE_FLAGS_FIXED_OFFSET: u32 = 1;
    NVGPU_AS_ALLOC_SPACE_FLAGS_SPARSE: u32 = 2;
    NVGPU_AS_GET_BUFFER_COMPBITS_INFO_FLAGS_DISCONTIG_IOVA: u32 = 4;
    NVGPU_AS_GET_BUFFER_COMPBITS_INFO_FLAGS_HAS_COMPBITS: u32 = 1;
    NVGPU_AS_GET_BUFFER_COMPBITS_INFO_FLAGS_MAPPABLE: u32 = 2;
    NVGPU_AS_IOCTL_LAST: u32 = 0xe;
    NVGPU_AS_IOCTL_MAGIC: u32 = 0x41;
    NVGPU_AS_IOCTL_MAX_ARG_SIZE: u32 = 0x28;
    NVGPU_AS_MAP_BUFFER_ACCESS_DEFAULT: u32 = 0;
    NVGPU_AS_MAP_BUFFER_ACCESS_READ_ONLY: u32 = 1;
    NVGPU_AS_MAP_BUFFER_ACCESS_READ_WRITE: u32 = 2;
    NVGPU_AS_MAP_BUFFER_COMPBITS_FLAGS_FIXED_OFFSET: u32 = 1;
    NVGPU_AS_MAP_BUFFER_FLAGS_ACCESS_BITMASK_OFFSET: u32 = 0xa;
    NVGPU_AS_MAP_BUFFER_FLAGS_ACCESS_BITMASK_SIZE: u32 = 2;
    NVGPU_AS_MAP_BUFFER_FLAGS_CACHEABLE: u32 = 4;
    NVGPU_AS_MAP_BUFFER_FLAGS_FIXED_OFFSET: u32 = 1;
    NVGPU_AS_MAP_BUFFER_FLAGS_L3_ALLOC: u32 = 0x80;
    NVGPU_AS_MAP_BUFFER_FLAGS_MAPPABLE_COMPBITS: u32 = 0x40;
    NVGPU_AS_MAP_BUFFER_FLAGS_SYSTEM_COHERENT: u32 = 0x200;
    NVGPU_AS_MAP_BUFFER_FLAGS_TEGRA_RAW: u32 = 0x1000;
    NVGPU_AS_MAP_BUFFER_FLAGS_UNMAPPED_PTE: u32 = 0x20;
    NVGPU_AS_REMAP_OP_FLAGS_ACCESS_NO_WRITE: u32 = 0x400;
    NVGPU_AS_REMAP_OP_FLAGS_CACHEABLE: u32 = 4;
    NVGPU_AS_REMAP_OP_FLAGS_PAGESIZE_128K: u32 = 0x20000;
    NVGPU_AS_REMAP_OP_FLAGS_PAGESIZE_4K: u32 = 0x8000;
    NVGPU_AS_REMAP_OP_FLAGS_PAGESIZE_64K: u32 = 0x10000;
}
