//! nvmap node: ioctls, argument structures, constants (L4T r36).
//!
//! Numbers: `tests/data/abi/nvgpu-r36.json`, read off a C compiler.

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static NVMAP_STRUCTS: Abi::R36;

    /// Argument of `NVMAP_IOC_CREATE` and `NVMAP_IOC_CREATE_64` and `NVMAP_IOC_FROM_ID` and `NVMAP_IOC_GET_ID` and `NVMAP_IOC_GET_FD` and `NVMAP_IOC_FROM_FD` and `NVMAP_IOC_FROM_IVC_ID` and `NVMAP_IOC_GET_IVC_ID`.
    pub struct nvmap_create_handle {
        size: u32,
        handle: u32,
    }

    /// Argument of `NVMAP_IOC_ALLOC`.
    pub struct nvmap_alloc_handle {
        handle: u32,
        heap_mask: u32,
        flags: u32,
        align: u32,
        numa_nid: i32,
    }

    /// Argument of `NVMAP_IOC_WRITE` and `NVMAP_IOC_READ`.
    pub struct nvmap_rw_handle {
        addr: u64,
        handle: u32,
        _pad0: [u8; 4],
        offset: u64,
        elem_size: u64,
        hmem_stride: u64,
        user_stride: u64,
        count: u64,
    }

    /// Argument of `NVMAP_IOC_PARAM`.
    pub struct nvmap_handle_param {
        handle: u32,
        param: u32,
        result: u64,
    }

    /// Argument of `NVMAP_IOC_CACHE_64`.
    pub struct nvmap_cache_op_64 {
        addr: u64,
        handle: u32,
        _pad0: [u8; 4],
        len: u64,
        op: i32,
        _pad1: [u8; 4],
    }

    /// Argument of `NVMAP_IOC_CACHE`.
    pub struct nvmap_cache_op {
        addr: u64,
        handle: u32,
        len: u32,
        op: i32,
        _pad0: [u8; 4],
    }

    /// Argument of `NVMAP_IOC_CACHE_LIST`.
    pub struct nvmap_cache_op_list {
        handles: u64,
        offsets: u64,
        sizes: u64,
        nr: u32,
        op: i32,
    }

    /// Argument of `NVMAP_IOC_FROM_VA`.
    pub struct nvmap_create_handle_from_va {
        va: u64,
        size: u32,
        flags: u32,
        size64: u64,
    }

    /// Argument of `NVMAP_IOC_GUP_TEST`.
    pub struct nvmap_gup_test {
        va: u64,
        handle: u32,
        result: u32,
    }

    /// Argument of `NVMAP_IOC_SET_TAG_LABEL`.
    pub struct nvmap_set_tag_label {
        tag: u32,
        len: u32,
        addr: u64,
    }

    /// Argument of `NVMAP_IOC_GET_AVAILABLE_HEAPS`.
    pub struct nvmap_available_heaps {
        heaps: u64,
    }

    /// Argument of `NVMAP_IOC_GET_HEAP_SIZE`.
    pub struct nvmap_heap_size {
        heap: u32,
        _pad0: [u8; 4],
        size: u64,
    }

    /// Argument of `NVMAP_IOC_PARAMETERS`.
    pub struct nvmap_handle_parameters {
        contig: u8,
        _pad0: [u8; 3],
        import_id: u32,
        handle: u32,
        heap_number: u32,
        access_flags: u32,
        _pad1: [u8; 4],
        heap: u64,
        align: u64,
        coherency: u64,
        size: u64,
        offset: u64,
        serial_id: u64,
    }

    /// Argument of `NVMAP_IOC_ALLOC_IVM`.
    pub struct nvmap_alloc_ivm_handle {
        handle: u32,
        heap_mask: u32,
        flags: u32,
        align: u32,
        peer: u32,
    }

    /// Argument of `NVMAP_IOC_GET_SCIIPCID` and `NVMAP_IOC_HANDLE_FROM_SCIIPCID`.
    pub struct nvmap_sciipc_map {
        auth_token: u64,
        flags: u32,
        _pad0: [u8; 4],
        sci_ipc_id: u64,
        handle: u32,
        _pad1: [u8; 4],
    }

    /// Argument of `NVMAP_IOC_QUERY_HEAP_PARAMS`.
    pub struct nvmap_query_heap_params {
        heap_mask: u32,
        flags: u32,
        contig: u8,
        _pad0: [u8; 7],
        total: u64,
        free: u64,
        largest_free_block: u64,
        granule_size: u32,
        _pad1: [u8; 4],
    }

    /// Argument of `NVMAP_IOC_DUP_HANDLE`.
    pub struct nvmap_duplicate_handle {
        handle: u32,
        access_flags: u32,
        dup_handle: u32,
    }

    /// Argument of `NVMAP_IOC_GET_FD_FOR_RANGE_FROM_LIST`.
    pub struct nvmap_fd_for_range_from_list {
        handles: u64,
        num_handles: u32,
        _pad0: [u8; 4],
        offset: u64,
        size: u64,
        fd: i32,
        _pad1: [u8; 4],
    }
}

abi_ioctls! {
    /// Every ioctl of this node, by number.
    pub static NVMAP_IOCTLS: Abi::R36, Node::Nvmap;

    NVMAP_IOC_CREATE: 0xc0084e00 => nvmap_create_handle;
    NVMAP_IOC_CREATE_64: 0xc0084e01 => nvmap_create_handle;
    NVMAP_IOC_FROM_ID: 0xc0084e02 => nvmap_create_handle;
    NVMAP_IOC_ALLOC: 0x40144e03 => nvmap_alloc_handle;
    NVMAP_IOC_FREE: 0x00004e04 => NoArg;
    NVMAP_IOC_WRITE: 0x40384e06 => nvmap_rw_handle;
    NVMAP_IOC_READ: 0x40384e07 => nvmap_rw_handle;
    NVMAP_IOC_PARAM: 0xc0104e08 => nvmap_handle_param;
    NVMAP_IOC_CACHE_64: 0x40204e0c => nvmap_cache_op_64;
    NVMAP_IOC_CACHE: 0x40184e0c => nvmap_cache_op;
    NVMAP_IOC_GET_ID: 0xc0084e0d => nvmap_create_handle;
    NVMAP_IOC_GET_FD: 0xc0084e0f => nvmap_create_handle;
    NVMAP_IOC_FROM_FD: 0xc0084e10 => nvmap_create_handle;
    NVMAP_IOC_CACHE_LIST: 0x40204e11 => nvmap_cache_op_list;
    NVMAP_IOC_FROM_IVC_ID: 0xc0084e13 => nvmap_create_handle;
    NVMAP_IOC_GET_IVC_ID: 0xc0084e14 => nvmap_create_handle;
    NVMAP_IOC_GET_IVM_HEAPS: 0x80044e15 => NoArg;
    NVMAP_IOC_FROM_VA: 0xc0184e16 => nvmap_create_handle_from_va;
    NVMAP_IOC_GUP_TEST: 0xc0104e17 => nvmap_gup_test;
    NVMAP_IOC_SET_TAG_LABEL: 0x40104e18 => nvmap_set_tag_label;
    NVMAP_IOC_GET_AVAILABLE_HEAPS: 0x80084e19 => nvmap_available_heaps;
    NVMAP_IOC_GET_HEAP_SIZE: 0x80104e1a => nvmap_heap_size;
    NVMAP_IOC_PARAMETERS: 0x80484e1b => nvmap_handle_parameters;
    NVMAP_IOC_ALLOC_IVM: 0x40144e65 => nvmap_alloc_ivm_handle;
    NVMAP_IOC_VPR_FLOOR_SIZE: 0x40044e66 => NoArg;
    NVMAP_IOC_GET_SCIIPCID: 0x80204e67 => nvmap_sciipc_map;
    NVMAP_IOC_HANDLE_FROM_SCIIPCID: 0x80204e68 => nvmap_sciipc_map;
    NVMAP_IOC_QUERY_HEAP_PARAMS: 0x80304e69 => nvmap_query_heap_params;
    NVMAP_IOC_DUP_HANDLE: 0xc00c4e6a => nvmap_duplicate_handle;
    NVMAP_IOC_GET_FD_FOR_RANGE_FROM_LIST: 0x80284e6b => nvmap_fd_for_range_from_list;
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static NVMAP_CONSTS: Abi::R36;

    NVMAP_ELEM_SIZE_U64: u64 = 0xffffffff80000000;
    NVMAP_IOC_MAGIC: u32 = 0x4e;
    NVMAP_IOC_MAXNR: u32 = 0x6b;
    NVMAP_HEAP_IOVMM: u32 = 0x40000000;
    NVMAP_HEAP_CARVEOUT_VPR: u32 = 0x10000000;
    NVMAP_HEAP_CARVEOUT_TSEC: u32 = 0x8000000;
    NVMAP_HEAP_CARVEOUT_VIDMEM: u32 = 0x4000000;
    NVMAP_HEAP_CARVEOUT_GPU: u32 = 8;
    NVMAP_HEAP_CARVEOUT_FSI: u32 = 4;
    NVMAP_HEAP_CARVEOUT_IVM: u32 = 2;
    NVMAP_HEAP_CARVEOUT_GENERIC: u32 = 1;
    NVMAP_HEAP_CARVEOUT_MASK: u32 = 0x3fffffff;
    NVMAP_HANDLE_UNCACHEABLE: u32 = 0;
    NVMAP_HANDLE_WRITE_COMBINE: u32 = 1;
    NVMAP_HANDLE_INNER_CACHEABLE: u32 = 2;
    NVMAP_HANDLE_CACHEABLE: u32 = 3;
    NVMAP_HANDLE_CACHE_FLAG: u32 = 3;
    NVMAP_HANDLE_SECURE: u32 = 4;
    NVMAP_HANDLE_KIND_SPECIFIED: u32 = 8;
    NVMAP_HANDLE_COMPR_SPECIFIED: u32 = 0x10;
    NVMAP_HANDLE_ZEROED_PAGES: u32 = 0x20;
    NVMAP_HANDLE_PHYS_CONTIG: u32 = 0x40;
    NVMAP_HANDLE_CACHE_SYNC: u32 = 0x80;
    NVMAP_HANDLE_CACHE_SYNC_AT_RESERVE: u32 = 0x100;
    NVMAP_HANDLE_RO: u32 = 0x200;
}
