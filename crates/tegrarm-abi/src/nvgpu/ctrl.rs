//! nvgpu ctrl node: ioctls, argument structures, constants (L4T r36).
//!
//! Numbers: `tests/data/abi/nvgpu-r36.json`, read off a C compiler.

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static CTRL_STRUCTS: Abi::R36;

    /// `struct nvgpu_gpu_zcull_get_ctx_size_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_zcull_get_ctx_size_args {
        size: u32,
    }

    /// `struct nvgpu_gpu_zcull_get_info_args` of the nvgpu user ABI (L4T r36).
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

    /// `struct nvgpu_gpu_zbc_set_table_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_zbc_set_table_args {
        color_ds: [u32; 4],
        color_l2: [u32; 4],
        depth: u32,
        stencil: u32,
        format: u32,
        type_: u32,
    }

    /// `struct nvgpu_gpu_zbc_query_table_args` of the nvgpu user ABI (L4T r36).
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

    /// `struct nvgpu_gpu_get_characteristics` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_get_characteristics {
        gpu_characteristics_buf_size: u64,
        gpu_characteristics_buf_addr: u64,
    }

    /// `struct nvgpu_gpu_prepare_compressible_read_args` of the nvgpu user ABI (L4T r36).
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

    /// `struct nvgpu_gpu_mark_compressible_write_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_mark_compressible_write_args {
        handle: u32,
        valid_compbits: u32,
        offset: u64,
        zbc_color: u32,
        reserved: [u32; 3],
    }

    /// `struct nvgpu_alloc_as_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_alloc_as_args {
        big_page_size: u32,
        as_fd: i32,
        flags: u32,
        reserved: u32,
        va_range_start: u64,
        va_range_end: u64,
        va_range_split: u64,
        padding: [u32; 6],
    }

    /// `struct nvgpu_gpu_open_tsg_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_open_tsg_args {
        tsg_fd: u32,
        flags: u32,
        source_device_instance_id: u64,
        share_token: u64,
    }

    /// `struct nvgpu_gpu_get_tpc_masks_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_get_tpc_masks_args {
        mask_buf_size: u32,
        reserved: u32,
        mask_buf_addr: u64,
    }

    /// `struct nvgpu_gpu_open_channel_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_open_channel_args {
        channel_fd: i32,
    }

    /// `struct nvgpu_gpu_l2_fb_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_l2_fb_args {
        _flags: u8,
        reserved: [u8; 4],
    }

    /// `struct nvgpu_gpu_mmu_debug_mode_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_mmu_debug_mode_args {
        state: u32,
        reserved: u32,
    }

    /// `struct nvgpu_gpu_sm_debug_mode_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_sm_debug_mode_args {
        channel_fd: i32,
        enable: u32,
        sms: u64,
    }

    /// `struct nvgpu_gpu_wait_pause_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_wait_pause_args {
        pwarpstate: u64,
    }

    /// `struct nvgpu_gpu_tpc_exception_en_status_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_tpc_exception_en_status_args {
        tpc_exception_en_sm_mask: u64,
    }

    /// `struct nvgpu_gpu_num_vsms` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_num_vsms {
        num_vsms: u32,
        reserved: u32,
    }

    /// `struct nvgpu_gpu_vsms_mapping` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_vsms_mapping {
        vsms_map_buf_addr: u64,
    }

    /// `struct nvgpu_gpu_get_cpu_time_correlation_sample` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_get_cpu_time_correlation_sample {
        cpu_timestamp: u64,
        gpu_timestamp: u64,
    }

    /// `struct nvgpu_gpu_get_cpu_time_correlation_info_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_get_cpu_time_correlation_info_args {
        samples: [nvgpu_gpu_get_cpu_time_correlation_sample; 16],
        count: u32,
        source_id: u32,
    }

    /// `struct nvgpu_gpu_get_gpu_time_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_get_gpu_time_args {
        gpu_timestamp: u64,
        reserved: u64,
    }

    /// `struct nvgpu_gpu_get_engine_info_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_get_engine_info_args {
        engine_info_buf_size: u32,
        reserved: u32,
        engine_info_buf_addr: u64,
    }

    /// `struct nvgpu_gpu_alloc_vidmem_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_alloc_vidmem_args {
        in_size: u64,
        in_flags: u32,
        in_memtag: u16,
        in_reserved0: u16,
        in_alignment: u32,
        in_reserved1: [u32; 3],
    }

    /// `struct nvgpu_gpu_clk_range_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_clk_range_args {
        flags: u32,
        pad0: u16,
        num_entries: u16,
        clk_range_entries: u64,
    }

    /// `struct nvgpu_gpu_clk_vf_points_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_clk_vf_points_args {
        flags: u32,
        clk_domain: u32,
        max_entries: u16,
        num_entries: u16,
        reserved: u32,
        clk_vf_point_entries: u64,
    }

    /// `struct nvgpu_gpu_clk_get_info_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_clk_get_info_args {
        flags: u32,
        clk_type: u16,
        num_entries: u16,
        clk_info_entries: u64,
    }

    /// `struct nvgpu_gpu_clk_set_info_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_clk_set_info_args {
        flags: u32,
        pad0: u16,
        num_entries: u16,
        clk_info_entries: u64,
        completion_fd: i32,
        _pad0: [u8; 4],
    }

    /// `struct nvgpu_gpu_get_event_fd_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_get_event_fd_args {
        flags: u32,
        event_fd: i32,
    }

    /// `struct nvgpu_gpu_get_memory_state_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_get_memory_state_args {
        total_free_bytes: u64,
        reserved: [u64; 4],
    }

    /// `struct nvgpu_gpu_get_voltage_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_get_voltage_args {
        reserved: u64,
        which: u32,
        voltage: u32,
    }

    /// `struct nvgpu_gpu_get_current_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_get_current_args {
        reserved: [u32; 3],
        currnt: u32,
    }

    /// `struct nvgpu_gpu_get_power_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_get_power_args {
        reserved: [u32; 3],
        power: u32,
    }

    /// `struct nvgpu_gpu_get_temperature_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_get_temperature_args {
        reserved: [u32; 3],
        temp_f24_8: i32,
    }

    /// `struct nvgpu_gpu_get_fbp_l2_masks_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_get_fbp_l2_masks_args {
        mask_buf_size: u32,
        reserved: u32,
        mask_buf_addr: u64,
    }

    /// `struct nvgpu_gpu_set_therm_alert_limit_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_set_therm_alert_limit_args {
        reserved: [u32; 3],
        temp_f24_8: i32,
    }

    /// `struct nvgpu_gpu_set_deterministic_opts_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_set_deterministic_opts_args {
        num_channels: u32,
        flags: u32,
        channels: u64,
    }

    /// `struct nvgpu_gpu_register_buffer_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_register_buffer_args {
        dmabuf_fd: i32,
        comptags_alloc_control: u8,
        reserved0: u8,
        reserved1: u16,
        metadata_addr: u64,
        metadata_size: u32,
        flags: u32,
    }

    /// `struct nvgpu_gpu_get_buffer_info_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_get_buffer_info_args {
        out_flags: u64,
        out_metadata_size: u32,
        out_reserved: u32,
        out_size: u64,
    }

    /// `struct nvgpu_gpu_get_gpc_physical_map_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_get_gpc_physical_map_args {
        map_buf_size: u32,
        reserved: u32,
        physical_gpc_buf_addr: u64,
    }

    /// `struct nvgpu_gpu_get_gpc_logical_map_args` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_get_gpc_logical_map_args {
        map_buf_size: u32,
        reserved: u32,
        logical_gpc_buf_addr: u64,
    }

    /// `struct nvgpu_gpu_characteristics` of the nvgpu user ABI (L4T r36).
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

    /// `struct nvgpu_gpu_get_engine_info_item` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_get_engine_info_item {
        engine_id: u32,
        engine_instance: u32,
        runlist_id: i32,
        reserved: u32,
    }

    /// `struct nvgpu_gpu_vsms_mapping_entry` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_vsms_mapping_entry {
        gpc_logical_index: u8,
        gpc_virtual_index: u8,
        tpc_local_logical_index: u8,
        tpc_global_logical_index: u8,
        sm_local_id: u8,
        tpc_migratable_index: u8,
    }

    /// `struct nvgpu_gpu_clk_range` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_clk_range {
        flags: u32,
        clk_domain: u32,
        min_hz: u64,
        max_hz: u64,
    }

    /// `struct nvgpu_gpu_clk_info` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_clk_info {
        flags: u16,
        clk_type: u16,
        clk_domain: u32,
        freq_hz: u64,
    }

    /// `struct nvgpu_gpu_clk_vf_point` of the nvgpu user ABI (L4T r36).
    pub struct nvgpu_gpu_clk_vf_point {
        freq_hz: u64,
    }
}

abi_ioctls! {
    /// Every ioctl of this node, by number.
    pub static CTRL_IOCTLS: Abi::R36, Node::Ctrl;

    NVGPU_GPU_IOCTL_ZCULL_GET_CTX_SIZE: 0x80044701 => nvgpu_gpu_zcull_get_ctx_size_args;
    NVGPU_GPU_IOCTL_ZCULL_GET_INFO: 0x80284702 => nvgpu_gpu_zcull_get_info_args;
    NVGPU_GPU_IOCTL_ZBC_SET_TABLE: 0x40304703 => nvgpu_gpu_zbc_set_table_args;
    NVGPU_GPU_IOCTL_ZBC_QUERY_TABLE: 0xc0384704 => nvgpu_gpu_zbc_query_table_args;
    NVGPU_GPU_IOCTL_GET_CHARACTERISTICS: 0xc0104705 => nvgpu_gpu_get_characteristics;
    NVGPU_GPU_IOCTL_PREPARE_COMPRESSIBLE_READ: 0xc0504706 => nvgpu_gpu_prepare_compressible_read_args;
    NVGPU_GPU_IOCTL_MARK_COMPRESSIBLE_WRITE: 0xc0204707 => nvgpu_gpu_mark_compressible_write_args;
    NVGPU_GPU_IOCTL_ALLOC_AS: 0xc0404708 => nvgpu_alloc_as_args;
    NVGPU_GPU_IOCTL_OPEN_TSG: 0xc0184709 => nvgpu_gpu_open_tsg_args;
    NVGPU_GPU_IOCTL_GET_TPC_MASKS: 0xc010470a => nvgpu_gpu_get_tpc_masks_args;
    NVGPU_GPU_IOCTL_OPEN_CHANNEL: 0xc004470b => nvgpu_gpu_open_channel_args;
    NVGPU_GPU_IOCTL_FLUSH_L2: 0xc005470c => nvgpu_gpu_l2_fb_args;
    NVGPU_GPU_IOCTL_SET_MMUDEBUG_MODE: 0xc008470e => nvgpu_gpu_mmu_debug_mode_args;
    NVGPU_GPU_IOCTL_SET_SM_DEBUG_MODE: 0xc010470f => nvgpu_gpu_sm_debug_mode_args;
    NVGPU_GPU_IOCTL_WAIT_FOR_PAUSE: 0xc0084710 => nvgpu_gpu_wait_pause_args;
    NVGPU_GPU_IOCTL_GET_TPC_EXCEPTION_EN_STATUS: 0xc0084711 => nvgpu_gpu_tpc_exception_en_status_args;
    NVGPU_GPU_IOCTL_NUM_VSMS: 0xc0084712 => nvgpu_gpu_num_vsms;
    NVGPU_GPU_IOCTL_VSMS_MAPPING: 0xc0084713 => nvgpu_gpu_vsms_mapping;
    NVGPU_GPU_IOCTL_RESUME_FROM_PAUSE: 0x00004715 => NoArg;
    NVGPU_GPU_IOCTL_TRIGGER_SUSPEND: 0x00004716 => NoArg;
    NVGPU_GPU_IOCTL_CLEAR_SM_ERRORS: 0x00004717 => NoArg;
    NVGPU_GPU_IOCTL_GET_CPU_TIME_CORRELATION_INFO: 0xc1084718 => nvgpu_gpu_get_cpu_time_correlation_info_args;
    NVGPU_GPU_IOCTL_GET_GPU_TIME: 0xc0104719 => nvgpu_gpu_get_gpu_time_args;
    NVGPU_GPU_IOCTL_GET_ENGINE_INFO: 0xc010471a => nvgpu_gpu_get_engine_info_args;
    NVGPU_GPU_IOCTL_ALLOC_VIDMEM: 0xc020471b => nvgpu_gpu_alloc_vidmem_args;
    NVGPU_GPU_IOCTL_CLK_GET_RANGE: 0xc010471c => nvgpu_gpu_clk_range_args;
    NVGPU_GPU_IOCTL_CLK_GET_VF_POINTS: 0xc018471d => nvgpu_gpu_clk_vf_points_args;
    NVGPU_GPU_IOCTL_CLK_GET_INFO: 0xc010471e => nvgpu_gpu_clk_get_info_args;
    NVGPU_GPU_IOCTL_CLK_SET_INFO: 0xc018471f => nvgpu_gpu_clk_set_info_args;
    NVGPU_GPU_IOCTL_GET_EVENT_FD: 0xc0084720 => nvgpu_gpu_get_event_fd_args;
    NVGPU_GPU_IOCTL_GET_MEMORY_STATE: 0xc0284721 => nvgpu_gpu_get_memory_state_args;
    NVGPU_GPU_IOCTL_GET_VOLTAGE: 0xc0104722 => nvgpu_gpu_get_voltage_args;
    NVGPU_GPU_IOCTL_GET_CURRENT: 0xc0104723 => nvgpu_gpu_get_current_args;
    NVGPU_GPU_IOCTL_GET_POWER: 0xc0104724 => nvgpu_gpu_get_power_args;
    NVGPU_GPU_IOCTL_GET_TEMPERATURE: 0xc0104725 => nvgpu_gpu_get_temperature_args;
    NVGPU_GPU_IOCTL_GET_FBP_L2_MASKS: 0xc0104726 => nvgpu_gpu_get_fbp_l2_masks_args;
    NVGPU_GPU_IOCTL_SET_THERM_ALERT_LIMIT: 0xc0104727 => nvgpu_gpu_set_therm_alert_limit_args;
    NVGPU_GPU_IOCTL_SET_DETERMINISTIC_OPTS: 0xc0104728 => nvgpu_gpu_set_deterministic_opts_args;
    NVGPU_GPU_IOCTL_REGISTER_BUFFER: 0xc0184729 => nvgpu_gpu_register_buffer_args;
    NVGPU_GPU_IOCTL_GET_BUFFER_INFO: 0xc018472a => nvgpu_gpu_get_buffer_info_args;
    NVGPU_GPU_IOCTL_GET_GPC_LOCAL_TO_PHYSICAL_MAP: 0xc010472b => nvgpu_gpu_get_gpc_physical_map_args;
    NVGPU_GPU_IOCTL_GET_GPC_LOCAL_TO_LOGICAL_MAP: 0xc010472c => nvgpu_gpu_get_gpc_logical_map_args;
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static CTRL_CONSTS: Abi::R36;

    NVGPU_GPU_ALLOC_VIDMEM_FLAG_CONTIGUOUS: u32 = 1;
    NVGPU_GPU_ALLOC_VIDMEM_FLAG_CPU_CACHED: u32 = 4;
    NVGPU_GPU_ALLOC_VIDMEM_FLAG_CPU_MASK: u32 = 0xe;
    NVGPU_GPU_ALLOC_VIDMEM_FLAG_CPU_NOT_MAPPABLE: u32 = 0;
    NVGPU_GPU_ALLOC_VIDMEM_FLAG_CPU_WRITE_COMBINE: u32 = 2;
    NVGPU_GPU_ALLOC_VIDMEM_FLAG_VPR: u32 = 0x10;
    NVGPU_GPU_ARCH_GK100: u32 = 0xe0;
    NVGPU_GPU_ARCH_GM200: u32 = 0x120;
    NVGPU_GPU_ARCH_GP100: u32 = 0x130;
    NVGPU_GPU_ARCH_GV100: u32 = 0x140;
    NVGPU_GPU_ARCH_GV110: u32 = 0x150;
    NVGPU_GPU_BUFFER_INFO_FLAGS_COMPTAGS_ALLOCATED: u32 = 2;
    NVGPU_GPU_BUFFER_INFO_FLAGS_METADATA_REGISTERED: u32 = 1;
    NVGPU_GPU_BUFFER_INFO_FLAGS_MUTABLE_METADATA: u32 = 4;
    NVGPU_GPU_BUS_TYPE_AXI: u32 = 0x20;
    NVGPU_GPU_BUS_TYPE_NONE: u32 = 0;
    NVGPU_GPU_CHARACTERISTICS_NO_NUMA_INFO: u64 = 0xffffffffffffffff;
    NVGPU_GPU_CLK_DOMAIN_GPCCLK: u32 = 1;
    NVGPU_GPU_CLK_DOMAIN_MCLK: u32 = 0;
    NVGPU_GPU_CLK_FLAG_SPECIFIC_DOMAINS: u32 = 1;
    NVGPU_GPU_CLK_TYPE_ACTUAL: u32 = 2;
    NVGPU_GPU_CLK_TYPE_EFFECTIVE: u32 = 3;
    NVGPU_GPU_CLK_TYPE_TARGET: u32 = 1;
    NVGPU_GPU_COMPBITS_CDEH: u32 = 2;
    NVGPU_GPU_COMPBITS_CDEV: u32 = 4;
    NVGPU_GPU_COMPBITS_GPU: u32 = 1;
    NVGPU_GPU_COMPBITS_NONE: u32 = 0;
    NVGPU_GPU_COMPTAGS_ALLOC_NONE: u32 = 0;
    NVGPU_GPU_COMPTAGS_ALLOC_REQUESTED: u32 = 1;
    NVGPU_GPU_COMPTAGS_ALLOC_REQUIRED: u32 = 2;
    NVGPU_GPU_ENGINE_ID_ASYNC_COPY: u32 = 2;
    NVGPU_GPU_ENGINE_ID_GR: u32 = 0;
    NVGPU_GPU_ENGINE_ID_GR_COPY: u32 = 1;
    NVGPU_GPU_ENGINE_ID_NVDEC: u32 = 7;
    NVGPU_GPU_ENGINE_ID_NVENC: u32 = 5;
    NVGPU_GPU_ENGINE_ID_NVJPG: u32 = 8;
    NVGPU_GPU_ENGINE_ID_OFA: u32 = 6;
    NVGPU_GPU_EVENT_ALARM_CLOCK_ARBITER_FAILED: u32 = 3;
    NVGPU_GPU_EVENT_ALARM_GPU_LOST: u32 = 7;
    NVGPU_GPU_EVENT_ALARM_LOCAL_TARGET_VF_NOT_POSSIBLE: u32 = 2;
    NVGPU_GPU_EVENT_ALARM_POWER_ABOVE_THRESHOLD: u32 = 6;
    NVGPU_GPU_EVENT_ALARM_TARGET_VF_NOT_POSSIBLE: u32 = 1;
    NVGPU_GPU_EVENT_ALARM_THERMAL_ABOVE_THRESHOLD: u32 = 5;
    NVGPU_GPU_EVENT_ALARM_VF_TABLE_UPDATE_FAILED: u32 = 4;
    NVGPU_GPU_EVENT_LAST: u32 = 7;
    NVGPU_GPU_EVENT_VF_UPDATE: u32 = 0;
    NVGPU_GPU_FLAGS_ALL_ECC_ENABLED: u64 = 0xf000000000000000;
    NVGPU_GPU_FLAGS_CAN_RAILGATE: u32 = 0x20000000;
    NVGPU_GPU_FLAGS_DRIVER_REDUCED_PROFILE: u32 = 0x80000000;
    NVGPU_GPU_FLAGS_ECC_ENABLED_LTC: u64 = 0x8000000000000000;
    NVGPU_GPU_FLAGS_ECC_ENABLED_SM_LRF: u64 = 0x1000000000000000;
    NVGPU_GPU_FLAGS_ECC_ENABLED_SM_SHM: u64 = 0x2000000000000000;
    NVGPU_GPU_FLAGS_ECC_ENABLED_TEX: u64 = 0x4000000000000000;
    NVGPU_GPU_FLAGS_HAS_SYNCPOINTS: u32 = 1;
    NVGPU_GPU_FLAGS_L2_MAX_WAYS_EVICT_LAST_ENABLED: u64 = 0x8000000000000;
    NVGPU_GPU_FLAGS_MULTI_PROCESS_TSG_SHARING: u64 = 0x100000000000000;
    NVGPU_GPU_FLAGS_SCHED_EXIT_WAIT_FOR_ERRBAR_SUPPORTED: u64 = 0x80000000000000;
    NVGPU_GPU_FLAGS_SUPPORT_2D: u64 = 0x10000000000;
    NVGPU_GPU_FLAGS_SUPPORT_3D: u64 = 0x20000000000;
    NVGPU_GPU_FLAGS_SUPPORT_BUFFER_METADATA: u64 = 0x4000000000000;
    NVGPU_GPU_FLAGS_SUPPORT_CLOCK_CONTROLS: u32 = 0x200;
    NVGPU_GPU_FLAGS_SUPPORT_COMPRESSION: u64 = 0x1000000000;
    NVGPU_GPU_FLAGS_SUPPORT_COMPUTE: u64 = 0x40000000000;
    NVGPU_GPU_FLAGS_SUPPORT_CYCLE_STATS: u32 = 0x10;
    NVGPU_GPU_FLAGS_SUPPORT_CYCLE_STATS_SNAPSHOT: u32 = 0x40;
    NVGPU_GPU_FLAGS_SUPPORT_DETERMINISTIC_OPTS: u32 = 0x1000000;
    NVGPU_GPU_FLAGS_SUPPORT_DETERMINISTIC_SUBMIT_FULL: u32 = 0x80000;
    NVGPU_GPU_FLAGS_SUPPORT_DETERMINISTIC_SUBMIT_NO_JOBTRACKING: u32 = 0x40000;
    NVGPU_GPU_FLAGS_SUPPORT_DEVICE_EVENTS: u32 = 0x8000;
    NVGPU_GPU_FLAGS_SUPPORT_FAULT_RECOVERY: u64 = 0x200000000;
    NVGPU_GPU_FLAGS_SUPPORT_FECS_CTXSW_TRACE: u32 = 0x10000;
    NVGPU_GPU_FLAGS_SUPPORT_GET_CURRENT: u32 = 0x800;
    NVGPU_GPU_FLAGS_SUPPORT_GET_GR_CONTEXT: u64 = 0x2000000000000;
    NVGPU_GPU_FLAGS_SUPPORT_GET_POWER: u32 = 0x1000;
    NVGPU_GPU_FLAGS_SUPPORT_GET_TEMPERATURE: u32 = 0x2000;
    NVGPU_GPU_FLAGS_SUPPORT_GET_VOLTAGE: u32 = 0x400;
    NVGPU_GPU_FLAGS_SUPPORT_GPU_MMIO: u64 = 0x200000000000000;
    NVGPU_GPU_FLAGS_SUPPORT_I2M: u64 = 0x80000000000;
    NVGPU_GPU_FLAGS_SUPPORT_IO_COHERENCE: u32 = 0x100000;
    NVGPU_GPU_FLAGS_SUPPORT_MAPPING_MODIFY: u64 = 0x400000000;
    NVGPU_GPU_FLAGS_SUPPORT_MAP_ACCESS_TYPE: u64 = 0x8000000000;
    NVGPU_GPU_FLAGS_SUPPORT_MAP_COMPBITS: u32 = 0x20000;
    NVGPU_GPU_FLAGS_SUPPORT_NVS: u64 = 0x20000000000000;
    NVGPU_GPU_FLAGS_SUPPORT_POST_L2_COMPRESSION: u64 = 0x4000000000;
    NVGPU_GPU_FLAGS_SUPPORT_PROFILER_V2_CONTEXT: u64 = 0x800000000000;
    NVGPU_GPU_FLAGS_SUPPORT_PROFILER_V2_DEVICE: u64 = 0x400000000000;
    NVGPU_GPU_FLAGS_SUPPORT_REMAP: u64 = 0x800000000;
    NVGPU_GPU_FLAGS_SUPPORT_RESCHEDULE_RUNLIST: u32 = 0x200000;
    NVGPU_GPU_FLAGS_SUPPORT_SCG: u32 = 0x2000000;
    NVGPU_GPU_FLAGS_SUPPORT_SET_CTX_MMU_DEBUG_MODE: u64 = 0x100000000;
    NVGPU_GPU_FLAGS_SUPPORT_SET_THERM_ALERT_LIMIT: u32 = 0x4000;
    NVGPU_GPU_FLAGS_SUPPORT_SMPC_GLOBAL_MODE: u64 = 0x1000000000000;
    NVGPU_GPU_FLAGS_SUPPORT_SM_TTU: u64 = 0x2000000000;
    NVGPU_GPU_FLAGS_SUPPORT_SPARSE_ALLOCS: u32 = 4;
    NVGPU_GPU_FLAGS_SUPPORT_SYNCPOINT_ADDRESS: u32 = 0x4000000;
    NVGPU_GPU_FLAGS_SUPPORT_SYNC_FENCE_FDS: u32 = 8;
    NVGPU_GPU_FLAGS_SUPPORT_TSG: u32 = 0x100;
    NVGPU_GPU_FLAGS_SUPPORT_TSG_SUBCONTEXTS: u32 = 0x400000;
    NVGPU_GPU_FLAGS_SUPPORT_USERMODE_SUBMIT: u32 = 0x40000000;
    NVGPU_GPU_FLAGS_SUPPORT_USER_SYNCPOINT: u32 = 0x10000000;
    NVGPU_GPU_FLAGS_SUPPORT_VAB: u64 = 0x10000000000000;
    NVGPU_GPU_FLAGS_SUPPORT_VPR: u32 = 0x8000000;
    NVGPU_GPU_FLAGS_SUPPORT_ZBC: u64 = 0x100000000000;
    NVGPU_GPU_GET_CPU_TIME_CORRELATION_INFO_MAX_COUNT: u32 = 0x10;
    NVGPU_GPU_GET_CPU_TIME_CORRELATION_INFO_SRC_ID_OSTIME: u32 = 2;
    NVGPU_GPU_GET_CPU_TIME_CORRELATION_INFO_SRC_ID_TSC: u32 = 1;
    NVGPU_GPU_IMPL_GK20A: u32 = 0xa;
    NVGPU_GPU_IMPL_GM204: u32 = 4;
    NVGPU_GPU_IMPL_GM206: u32 = 6;
    NVGPU_GPU_IMPL_GM20B: u32 = 0xb;
    NVGPU_GPU_IMPL_GM20B_B: u32 = 0xe;
    NVGPU_GPU_IMPL_GP104: u32 = 4;
    NVGPU_GPU_IMPL_GP106: u32 = 6;
    NVGPU_GPU_IMPL_GP10B: u32 = 0xb;
    NVGPU_GPU_IMPL_GV100: u32 = 0;
    NVGPU_GPU_IMPL_GV11B: u32 = 0xb;
    NVGPU_GPU_IOCTL_ALLOC_AS_FLAGS_UNIFIED_VA: u32 = 2;
    NVGPU_GPU_IOCTL_LAST: u32 = 0x2c;
    NVGPU_GPU_IOCTL_MAGIC: u32 = 0x47;
    NVGPU_GPU_IOCTL_MAX_ARG_SIZE: u32 = 0x108;
    NVGPU_GPU_IOCTL_OPEN_TSG_FLAGS_SHARE: u32 = 1;
    NVGPU_GPU_IOCTL_TSG_L2_SECTOR_PROMOTE_FLAG_128B: u32 = 4;
    NVGPU_GPU_IOCTL_TSG_L2_SECTOR_PROMOTE_FLAG_64B: u32 = 2;
    NVGPU_GPU_IOCTL_TSG_L2_SECTOR_PROMOTE_FLAG_NONE: u32 = 1;
    NVGPU_GPU_REGISTER_BUFFER_FLAGS_COMPTAGS_ALLOCATED: u32 = 1;
    NVGPU_GPU_REGISTER_BUFFER_FLAGS_MODIFY: u32 = 4;
    NVGPU_GPU_REGISTER_BUFFER_FLAGS_MUTABLE: u32 = 2;
    NVGPU_GPU_REGISTER_BUFFER_METADATA_MAX_SIZE: u32 = 0x100;
    NVGPU_GPU_SET_DETERMINISTIC_OPTS_FLAGS_ALLOW_RAILGATING: u32 = 1;
    NVGPU_GPU_SET_DETERMINISTIC_OPTS_FLAGS_DISALLOW_RAILGATING: u32 = 2;
    NVGPU_GPU_VOLTAGE_BUS: u32 = 3;
    NVGPU_GPU_VOLTAGE_CORE: u32 = 1;
    NVGPU_GPU_VOLTAGE_SRAM: u32 = 2;
    NVGPU_ZBC_COLOR_VALUE_SIZE: u32 = 4;
    NVGPU_ZBC_TYPE_COLOR: u32 = 1;
    NVGPU_ZBC_TYPE_DEPTH: u32 = 2;
    NVGPU_ZBC_TYPE_INVALID: u32 = 0;
    NVGPU_ZBC_TYPE_STENCIL: u32 = 3;
    NVGPU_ZCULL_MODE_GLOBAL: u32 = 0;
    NVGPU_ZCULL_MODE_NO_CTXSW: u32 = 1;
    NVGPU_ZCULL_MODE_PART_OF_REGULAR_BUF: u32 = 3;
    NVGPU_ZCULL_MODE_SEPARATE_BUFFER: u32 = 2;
}
