//! nvgpu ctrl node: structures that describe the GPU (L4T r36).
//!
//! Numbers: `tests/data/abi/nvgpu-r36.json`, read off a C compiler.

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static CTRL_INFO_STRUCTS: Abi::R36;

    /// Argument of `NVGPU_GPU_IOCTL_ZCULL_GET_CTX_SIZE`.
    pub struct nvgpu_gpu_zcull_get_ctx_size_args {
        size: u32,
    }

    /// Argument of `NVGPU_GPU_IOCTL_ZCULL_GET_INFO`.
    pub struct nvgpu_gpu_zcull_get_info_args {
        width_align_pixels: u32,
        height_align_pixels: u32,
        pixel_squares_by_aliquots: u32,
        aliquot_total: u32,
        region_byte_multiplier: u32,
        region_header_size: u32,
        subregion_header_size: u32,
        subregion_width_align_pixels: u32,
        subregion_height_align_pixels: u32,
        subregion_count: u32,
    }

    /// Argument of `NVGPU_GPU_IOCTL_ZBC_SET_TABLE`.
    pub struct nvgpu_gpu_zbc_set_table_args {
        color_ds: [u32; 4],
        color_l2: [u32; 4],
        depth: u32,
        stencil: u32,
        format: u32,
        type_: u32,
    }

    /// Argument of `NVGPU_GPU_IOCTL_ZBC_QUERY_TABLE`.
    pub struct nvgpu_gpu_zbc_query_table_args {
        color_ds: [u32; 4],
        color_l2: [u32; 4],
        depth: u32,
        stencil: u32,
        ref_cnt: u32,
        format: u32,
        type_: u32,
        index_size: u32,
    }

    /// Argument of `NVGPU_GPU_IOCTL_GET_CHARACTERISTICS`.
    pub struct nvgpu_gpu_get_characteristics {
        gpu_characteristics_buf_size: u64,
        gpu_characteristics_buf_addr: u64,
    }

    /// Argument of `NVGPU_GPU_IOCTL_PREPARE_COMPRESSIBLE_READ`.
    pub struct nvgpu_gpu_prepare_compressible_read_args {
        handle: u32,
        request_compbits: u32,
        offset: u64,
        compbits_hoffset: u64,
        compbits_voffset: u64,
        width: u32,
        height: u32,
        block_height_log2: u32,
        submit_flags: u32,
        fence_syncpt_id: u32,
        fence_syncpt_value: u32,
        zbc_color: u32,
        reserved: u32,
        scatterbuffer_offset: u64,
        reserved2: [u32; 2],
    }

    /// Argument of `NVGPU_GPU_IOCTL_MARK_COMPRESSIBLE_WRITE`.
    pub struct nvgpu_gpu_mark_compressible_write_args {
        handle: u32,
        valid_compbits: u32,
        offset: u64,
        zbc_color: u32,
        reserved: [u32; 3],
    }

    /// Argument of `NVGPU_GPU_IOCTL_GET_TPC_MASKS`.
    pub struct nvgpu_gpu_get_tpc_masks_args {
        mask_buf_size: u32,
        reserved: u32,
        mask_buf_addr: u64,
    }

    /// Argument of `NVGPU_GPU_IOCTL_NUM_VSMS`.
    pub struct nvgpu_gpu_num_vsms {
        num_vsms: u32,
        reserved: u32,
    }

    /// Argument of `NVGPU_GPU_IOCTL_VSMS_MAPPING`.
    pub struct nvgpu_gpu_vsms_mapping {
        vsms_map_buf_addr: u64,
    }

    /// One pair of [`nvgpu_gpu_get_cpu_time_correlation_info_args`], nanoseconds.
    pub struct nvgpu_gpu_get_cpu_time_correlation_sample {
        cpu_timestamp: u64,
        gpu_timestamp: u64,
    }

    /// Argument of `NVGPU_GPU_IOCTL_GET_CPU_TIME_CORRELATION_INFO`.
    pub struct nvgpu_gpu_get_cpu_time_correlation_info_args {
        samples: [nvgpu_gpu_get_cpu_time_correlation_sample; 16],
        count: u32,
        source_id: u32,
    }

    /// Argument of `NVGPU_GPU_IOCTL_GET_GPU_TIME`.
    pub struct nvgpu_gpu_get_gpu_time_args {
        gpu_timestamp: u64,
        reserved: u64,
    }

    /// Argument of `NVGPU_GPU_IOCTL_GET_ENGINE_INFO`.
    pub struct nvgpu_gpu_get_engine_info_args {
        engine_info_buf_size: u32,
        reserved: u32,
        engine_info_buf_addr: u64,
    }

    /// Argument of `NVGPU_GPU_IOCTL_GET_FBP_L2_MASKS`.
    pub struct nvgpu_gpu_get_fbp_l2_masks_args {
        mask_buf_size: u32,
        reserved: u32,
        mask_buf_addr: u64,
    }

    /// Argument of `NVGPU_GPU_IOCTL_GET_GPC_LOCAL_TO_PHYSICAL_MAP`.
    pub struct nvgpu_gpu_get_gpc_physical_map_args {
        map_buf_size: u32,
        reserved: u32,
        physical_gpc_buf_addr: u64,
    }

    /// Argument of `NVGPU_GPU_IOCTL_GET_GPC_LOCAL_TO_LOGICAL_MAP`.
    pub struct nvgpu_gpu_get_gpc_logical_map_args {
        map_buf_size: u32,
        reserved: u32,
        logical_gpc_buf_addr: u64,
    }

    /// The structure that `NVGPU_GPU_IOCTL_GET_CHARACTERISTICS` writes to the caller's buffer.
    pub struct nvgpu_gpu_characteristics {
        arch: u32,
        impl_: u32,
        rev: u32,
        num_gpc: u32,
        numa_domain_id: i32,
        _pad0: [u8; 4],
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
        emc_en_mask: u32,
        max_ltc_per_fbp: u32,
        max_lts_per_ltc: u32,
        max_tex_per_tpc: u32,
        max_gpc_count: u32,
        rop_l2_en_mask_DEPRECATED: [u32; 2],
        chipname: [u8; 8],
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
        device_instance_id: u64,
    }

    /// One entry of the list that `NVGPU_GPU_IOCTL_GET_ENGINE_INFO` writes.
    pub struct nvgpu_gpu_get_engine_info_item {
        engine_id: u32,
        engine_instance: u32,
        runlist_id: i32,
        reserved: u32,
    }

    /// One entry of the list that `NVGPU_GPU_IOCTL_VSMS_MAPPING` writes.
    pub struct nvgpu_gpu_vsms_mapping_entry {
        gpc_logical_index: u8,
        gpc_virtual_index: u8,
        tpc_local_logical_index: u8,
        tpc_global_logical_index: u8,
        sm_local_id: u8,
        tpc_migratable_index: u8,
    }
}
