//! The structures and numbers that differ between L4T r35 (JetPack 5) and r36. Everything else is the same on both.
//!
//! Names carry the suffix `_r35`/`_R35`. Numbers: `tests/data/abi/nvgpu-r35.json`.

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static R35_STRUCTS: Abi::R35;

    /// Argument of `NVGPU_IOCTL_CHANNEL_SETUP_BIND_R35`.
    pub struct nvgpu_channel_setup_bind_args_r35 {
        num_gpfifo_entries: u32,
        num_inflight_jobs: u32,
        flags: u32,
        userd_dmabuf_fd: i32,
        gpfifo_dmabuf_fd: i32,
        work_submit_token: u32,
        userd_dmabuf_offset: u64,
        gpfifo_dmabuf_offset: u64,
        reserved: [u32; 9],
        _pad0: [u8; 4],
    }

    /// `nvgpu_gpu_characteristics` as L4T r35 lays it out.
    pub struct nvgpu_gpu_characteristics_r35 {
        arch: u32,
        impl_: u32,
        rev: u32,
        num_gpc: u32,
        L2_cache_size: u64,
        on_board_video_memory_size: u64,
        num_tpc_per_gpc: u32,
        bus_type: u32,
        big_page_size: u32,
        compression_page_size: u32,
        pde_coverage_bit_count: u32,
        available_big_page_sizes: u32,
        flags: u64,
        twod_class: u32,
        threed_class: u32,
        compute_class: u32,
        gpfifo_class: u32,
        inline_to_memory_class: u32,
        dma_copy_class: u32,
        gpc_mask: u32,
        sm_arch_sm_version: u32,
        sm_arch_spa_version: u32,
        sm_arch_warp_count: u32,
        gpu_ioctl_nr_last: i16,
        tsg_ioctl_nr_last: i16,
        dbg_gpu_ioctl_nr_last: i16,
        ioctl_channel_nr_last: i16,
        as_ioctl_nr_last: i16,
        gpu_va_bit_count: u8,
        reserved: u8,
        max_fbps_count: u32,
        fbp_en_mask: u32,
        max_ltc_per_fbp: u32,
        max_lts_per_ltc: u32,
        max_tex_per_tpc: u32,
        max_gpc_count: u32,
        rop_l2_en_mask_DEPRECATED: [u32; 2],
        chipname: [u8; 8],
        _pad0: [u8; 4],
        gr_compbit_store_base_hw: u64,
        gr_gobs_per_comptagline_per_slice: u32,
        num_ltc: u32,
        lts_per_ltc: u32,
        cbc_cache_line_size: u32,
        cbc_comptags_per_line: u32,
        map_buffer_batch_limit: u32,
        max_freq: u64,
        graphics_preemption_mode_flags: u32,
        compute_preemption_mode_flags: u32,
        default_graphics_preempt_mode: u32,
        default_compute_preempt_mode: u32,
        local_video_memory_size: u64,
        pci_vendor_id: u16,
        pci_device_id: u16,
        pci_subsystem_vendor_id: u16,
        pci_subsystem_device_id: u16,
        pci_class: u16,
        pci_revision: u8,
        vbios_oem_version: u8,
        vbios_version: u32,
        reg_ops_limit: u32,
        reserved1: u32,
        event_ioctl_nr_last: i16,
        pad: u16,
        max_css_buffer_size: u32,
        ctxsw_ioctl_nr_last: i16,
        prof_ioctl_nr_last: i16,
        nvs_ioctl_nr_last: i16,
        reserved2: [u8; 2],
        max_ctxsw_ring_buffer_size: u32,
        reserved3: u32,
        per_device_identifier: u64,
        num_ppc_per_gpc: u32,
        max_veid_count_per_tsg: u32,
        num_sub_partition_per_fbpa: u32,
        gpu_instance_id: u32,
        gr_instance_id: u32,
        max_gpfifo_entries: u32,
        max_dbg_tsg_timeslice: u32,
        reserved5: u32,
    }

    /// Argument of `NVGPU_GPU_IOCTL_OPEN_TSG_R35`.
    pub struct nvgpu_gpu_open_tsg_args_r35 {
        tsg_fd: u32,
        reserved: u32,
    }

    /// `nvgpu_gpu_vsms_mapping_entry` as L4T r35 lays it out.
    pub struct nvgpu_gpu_vsms_mapping_entry_r35 {
        gpc_index: u8,
        tpc_index: u8,
    }

    /// `nvgpu_profiler_alloc_pma_stream_args` as L4T r35 lays it out.
    pub struct nvgpu_profiler_alloc_pma_stream_args_r35 {
        pma_buffer_map_size: u64,
        pma_buffer_offset: u64,
        pma_buffer_va: u64,
        pma_buffer_fd: i32,
        pma_bytes_available_buffer_fd: i32,
        flags: u32,
        reserved: [u32; 3],
    }

    /// `nvgpu_profiler_pma_stream_update_get_put_args` as L4T r35 lays it out.
    pub struct nvgpu_profiler_pma_stream_update_get_put_args_r35 {
        bytes_consumed: u64,
        bytes_available: u64,
        put_ptr: u64,
        flags: u32,
        reserved: [u32; 3],
    }

    /// Argument of `NVMAP_IOC_ALLOC_R35`.
    pub struct nvmap_alloc_handle_r35 {
        handle: u32,
        heap_mask: u32,
        flags: u32,
        align: u32,
    }

    /// Argument of `NVMAP_IOC_PARAMETERS_R35`.
    pub struct nvmap_handle_parameters_r35 {
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
    }

    /// Argument of `NVMAP_IOC_QUERY_HEAP_PARAMS_R35`.
    pub struct nvmap_query_heap_params_r35 {
        heap_mask: u32,
        flags: u32,
        contig: u8,
        _pad0: [u8; 7],
        total: u64,
        free: u64,
        largest_free_block: u64,
    }

    /// Argument of `NVMAP_IOC_GET_SCIIPCID_R35` and `NVMAP_IOC_HANDLE_FROM_SCIIPCID_R35`.
    pub struct nvmap_sciipc_map_r35 {
        auth_token: u64,
        flags: u32,
        sci_ipc_id: u32,
        handle: u32,
        _pad0: [u8; 4],
    }
}

abi_ioctls! {
    /// Every ioctl of this node, by number.
    pub static CTRL_IOCTLS_R35: Abi::R35, Node::Ctrl;

    NVGPU_GPU_IOCTL_OPEN_TSG_R35: 0xc0084709 => nvgpu_gpu_open_tsg_args_r35;
}

abi_ioctls! {
    /// Every ioctl of this node, by number.
    pub static CHANNEL_IOCTLS_R35: Abi::R35, Node::Channel;

    NVGPU_IOCTL_CHANNEL_SETUP_BIND_R35: 0xc0504880 => nvgpu_channel_setup_bind_args_r35;
}

abi_ioctls! {
    /// Every ioctl of this node, by number.
    pub static NVMAP_IOCTLS_R35: Abi::R35, Node::Nvmap;

    NVMAP_IOC_ALLOC_R35: 0x40104e03 => nvmap_alloc_handle_r35;
    NVMAP_IOC_PARAMETERS_R35: 0x80404e1b => nvmap_handle_parameters_r35;
    NVMAP_IOC_QUERY_HEAP_PARAMS_R35: 0x80284e69 => nvmap_query_heap_params_r35;
    NVMAP_IOC_GET_SCIIPCID_R35: 0x80184e67 => nvmap_sciipc_map_r35;
    NVMAP_IOC_HANDLE_FROM_SCIIPCID_R35: 0x80184e68 => nvmap_sciipc_map_r35;
}

abi_ioctls! {
    /// Every ioctl of this node, by number.
    pub static PROFILER_IOCTLS_R35: Abi::R35, Node::Profiler;

    NVGPU_PROFILER_IOCTL_FREE_PMA_STREAM_R35: 0x00005005 => NoArg;
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static R35_CONSTS: Abi::R35;

    NVGPU_AS_MAP_BUFFER_FLAGS_DIRECT_KIND_CTRL_R35: u32 = 0x100;
    NVGPU_AS_MAP_BUFFER_FLAGS_IO_COHERENT_R35: u32 = 0x10;
    NVGPU_AS_MAP_BUFFER_FLAGS_PLATFORM_ATOMIC_R35: u32 = 0x200;
    NVGPU_DBG_GPU_IOCTL_LAST_R35: u32 = 0x20;
    NVGPU_GPU_FLAGS_SUPPORT_MAP_DIRECT_KIND_CTRL_R35: u32 = 0x800000;
    NVGPU_GPU_FLAGS_SUPPORT_PARTIAL_MAPPINGS_R35: u32 = 2;
    NVGPU_GPU_FLAGS_SUPPORT_USERSPACE_MANAGED_AS_R35: u32 = 0x80;
    NVGPU_GPU_IOCTL_ALLOC_AS_FLAGS_USERSPACE_MANAGED_R35: u32 = 1;
    NVGPU_GPU_IOCTL_LAST_R35: u32 = 0x2a;
    NVGPU_IOCTL_CHANNEL_MAX_ARG_SIZE_R35: u32 = 0x50;
    NVGPU_TSG_IOCTL_LAST_R35: u32 = 0x10;
    NVMAP_IOC_MAXNR_R35: u32 = 0x6a;
}
