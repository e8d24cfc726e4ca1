//! The structures and numbers that differ between L4T r39 (JetPack 7) and r36, and those that r39 adds. Everything else
//! is the same on both.
//!
//! A name that r36 has too gets the suffix `_r39` or `_R39`. Numbers: `tests/data/abi/nvgpu-r39.json`. None of them was
//! observed on a board; `docs/validated-on.md` lists what has to be observed.

use crate::layout::*;

abi_structs! {
    /// Layouts of this file, for `tests/layout.rs` and for decoding.
    pub static R39_STRUCTS: Abi::R39;

    /// `nvgpu_gpu_characteristics` as L4T r39 lays it out.
    pub struct nvgpu_gpu_characteristics_r39 {
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
        huge_page_size: u32,
        compression_page_size: u32,
        pde_coverage_bit_count: u32,
        available_big_page_sizes: u32,
        _pad1: [u8; 4],
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

    /// Argument of `NVGPU_GPU_IOCTL_OPEN_TSG` on L4T r39: the number is that of r36.
    pub struct nvgpu_gpu_open_tsg_args_r39 {
        tsg_fd: u32,
        flags: u32,
        share_token: [u8; 16],
    }

    /// Argument of `NVGPU_TSG_IOCTL_GET_SHARE_TOKEN` on L4T r39: the number is that of r36.
    pub struct nvgpu_tsg_get_share_token_args_r39 {
        target_device_instance_id: u64,
        share_token: [u8; 16],
    }

    /// Argument of `NVGPU_TSG_IOCTL_REVOKE_SHARE_TOKEN` on L4T r39: the number is that of r36.
    pub struct nvgpu_tsg_revoke_share_token_args_r39 {
        target_device_instance_id: u64,
        share_token: [u8; 16],
    }

    /// Argument of `NVGPU_IOCTL_CHANNEL_ALLOC_GPFIFO_EX_R39`.
    pub struct nvgpu_alloc_gpfifo_ex_args_r39 {
        num_entries: u32,
        num_inflight_jobs: u32,
        flags: u32,
        hw_channel_id: u32,
        reserved: [u32; 4],
    }

    /// Argument of `NVGPU_IOCTL_CHANNEL_SETUP_BIND` on L4T r39: the number is that of r36.
    pub struct nvgpu_channel_setup_bind_args_r39 {
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
        hw_channel_id: u32,
        reserved: [u32; 8],
        _pad0: [u8; 4],
    }

    /// `nvgpu_dbg_gpu_sm_error_state_record` as L4T r39 lays it out.
    pub struct nvgpu_dbg_gpu_sm_error_state_record_r39 {
        hww_global_esr: u32,
        hww_warp_esr: u32,
        hww_warp_esr_pc: u64,
        hww_global_esr_report_mask: u32,
        hww_warp_esr_report_mask: u32,
        hww_cga_esr: u32,
        padding: u32,
    }

    /// `nvgpu_tsg_sm_error_state_record` as L4T r39 lays it out.
    pub struct nvgpu_tsg_sm_error_state_record_r39 {
        global_esr: u32,
        warp_esr: u32,
        warp_esr_pc: u64,
        global_esr_report_mask: u32,
        warp_esr_report_mask: u32,
        cga_esr: u32,
        reserved: u32,
    }

    /// Argument of `NVMAP_IOC_ALLOC_R39`.
    pub struct nvmap_alloc_handle_r39 {
        handle: u32,
        heap_mask: u32,
        flags: u32,
        align: u32,
        numa_nid: i32,
        _pad0: [u8; 4],
        va: u64,
    }

    /// Argument of `NVMAP_IOC_QUERY_HEAP_PARAMS` (the number is that of r36) and of `NVMAP_IOC_QUERY_HEAP_PARAMS_NUMA`.
    pub struct nvmap_query_heap_params_r39 {
        heap_mask: u32,
        flags: u32,
        contig: u8,
        _pad0: [u8; 7],
        total: u64,
        free: u64,
        largest_free_block: u64,
        granule_size: u32,
        numa_id: i32,
    }

    /// Argument of the NvSciIpc ioctls on L4T r39: the numbers are those of r36.
    pub struct nvmap_sciipc_map_r39 {
        auth_token: u64,
        flags: u32,
        _pad0: [u8; 4],
        sci_ipc_id: u64,
        handle: u32,
        is_inter_vm: u8,
        _pad1: [u8; 3],
    }

    /// One region of the syncpoints of an address space: those of one host1x.
    pub struct nvgpu_as_syncpoint_region_description {
        base_gpuva: u64,
        sync_size: u32,
        num_syncpoints: u32,
    }

    /// Argument of `NVGPU_AS_IOCTL_GET_SYNC_RO_MAP_V2`.
    pub struct nvgpu_as_get_sync_ro_map_v2_args {
        num_syncpoint_regions: u32,
        _pad0: [u8; 4],
        regions: [nvgpu_as_syncpoint_region_description; 4],
    }

    /// Argument of `NVGPU_GPU_IOCTL_GET_PPC_MASKS`.
    pub struct nvgpu_gpu_get_ppc_masks_args {
        mask_buf_size: u32,
        reserved: u32,
        mask_buf_addr: u64,
    }

    /// Argument of `NVGPU_GPU_IOCTL_GET_ROP_MASKS`.
    pub struct nvgpu_gpu_get_rop_masks_args {
        mask_buf_size: u32,
        reserved: u32,
        mask_buf_addr: u64,
    }

    /// Argument of `NVGPU_GPU_IOCTL_GET_FBP_LOCAL_TO_PHYSICAL_MAP`.
    pub struct nvgpu_gpu_get_fbp_physical_map_args {
        map_buf_size: u32,
        reserved: u32,
        physical_fbp_buf_addr: u64,
    }

    /// Argument of `NVGPU_GPU_IOCTL_GET_FBP_LOCAL_TO_LOGICAL_MAP`.
    pub struct nvgpu_gpu_get_fbp_logical_map_args {
        map_buf_size: u32,
        reserved: u32,
        logical_fbp_buf_addr: u64,
    }

    /// Argument of `NVGPU_DBG_GPU_IOCTL_SET_SM_DBGR_CTRL_SINGLE_STEP_MODE`.
    pub struct nvgpu_set_sm_dbgr_ctrl_single_step_mode_args {
        sm_id: u32,
        enable: u32,
    }

    /// One pool of credits, as `NVGPU_PROFILER_IOCTL_GET_PMA_STREAM_POOLS_INFO` lists them.
    pub struct nvgpu_profiler_channel_pool_info {
        chiplet_type: u8,
        _pad0: [u8; 3],
        num_chiplets: u32,
        total_num_credits: u16,
        pool_index: u8,
        _pad1: [u8; 1],
    }

    /// Argument of `NVGPU_PROFILER_IOCTL_GET_PMA_STREAM_POOLS_INFO`.
    pub struct nvgpu_profiler_channel_get_pools_info_args {
        nvgpu_profiler_channel_pool_info_addr: u64,
        num_pool_entries: u32,
        _pad0: [u8; 4],
    }

    /// One chiplet, as `NVGPU_PROFILER_IOCTL_GET_PMA_STREAM_HS_CREDIT` reads its credits.
    pub struct nvgpu_profiler_channel_get_credit_buf {
        chiplet_type: u8,
        _pad0: [u8; 3],
        chiplet_index: u32,
        num_credits: u32,
        get_credit_response: u8,
        _pad1: [u8; 3],
    }

    /// Argument of `NVGPU_PROFILER_IOCTL_GET_PMA_STREAM_HS_CREDIT`.
    pub struct nvgpu_profiler_channel_get_hs_credit_args {
        pma_channel_id: u32,
        _pad0: [u8; 4],
        get_credit_buf_addr: u64,
        credit_buf_count: u32,
        _pad1: [u8; 4],
    }

    /// One chiplet, as `NVGPU_PROFILER_IOCTL_SET_PMA_STREAM_HS_CREDIT` sets its credits.
    pub struct nvgpu_profiler_channel_set_credit_buf {
        chiplet_type: u8,
        _pad0: [u8; 3],
        chiplet_index: u32,
        num_credits: u32,
        set_credit_response: u8,
        _pad1: [u8; 3],
    }

    /// Argument of `NVGPU_PROFILER_IOCTL_SET_PMA_STREAM_HS_CREDIT`.
    pub struct nvgpu_profiler_channel_set_hs_credit_args {
        pma_channel_id: u32,
        _pad0: [u8; 4],
        set_credit_buf_addr: u64,
        credit_buf_count: u32,
        _pad1: [u8; 4],
    }
}

abi_ioctls! {
    /// Every ioctl of this node, by number.
    pub static CTRL_IOCTLS_R39: Abi::R39, Node::Ctrl;

    NVGPU_GPU_IOCTL_GET_PPC_MASKS: 0xc010472d => nvgpu_gpu_get_ppc_masks_args;
    NVGPU_GPU_IOCTL_GET_ROP_MASKS: 0xc010472e => nvgpu_gpu_get_rop_masks_args;
    NVGPU_GPU_IOCTL_GET_FBP_LOCAL_TO_PHYSICAL_MAP: 0xc010472f => nvgpu_gpu_get_fbp_physical_map_args;
    NVGPU_GPU_IOCTL_GET_FBP_LOCAL_TO_LOGICAL_MAP: 0xc0104730 => nvgpu_gpu_get_fbp_logical_map_args;
}

abi_ioctls! {
    /// Every ioctl of this node, by number.
    pub static AS_IOCTLS_R39: Abi::R39, Node::As;

    NVGPU_AS_IOCTL_GET_SYNC_RO_MAP_V2: 0x8048410f => nvgpu_as_get_sync_ro_map_v2_args;
}

abi_ioctls! {
    /// Every ioctl of this node, by number.
    pub static CHANNEL_IOCTLS_R39: Abi::R39, Node::Channel;

    NVGPU_IOCTL_CHANNEL_ALLOC_GPFIFO_EX_R39: 0xc020487b => nvgpu_alloc_gpfifo_ex_args_r39;
}

abi_ioctls! {
    /// Every ioctl of this node, by number.
    pub static DEBUGGER_IOCTLS_R39: Abi::R39, Node::Debugger;

    NVGPU_DBG_GPU_IOCTL_SET_SM_DBGR_CTRL_SINGLE_STEP_MODE: 0x40084422 => nvgpu_set_sm_dbgr_ctrl_single_step_mode_args;
}

abi_ioctls! {
    /// Every ioctl of this node, by number.
    pub static PROFILER_IOCTLS_R39: Abi::R39, Node::Profiler;

    NVGPU_PROFILER_IOCTL_GET_PMA_STREAM_POOLS_INFO: 0xc010500e => nvgpu_profiler_channel_get_pools_info_args;
    NVGPU_PROFILER_IOCTL_GET_PMA_STREAM_HS_CREDIT: 0xc018500f => nvgpu_profiler_channel_get_hs_credit_args;
    NVGPU_PROFILER_IOCTL_SET_PMA_STREAM_HS_CREDIT: 0xc0185010 => nvgpu_profiler_channel_set_hs_credit_args;
}

abi_ioctls! {
    /// Every ioctl of this node, by number.
    pub static NVMAP_IOCTLS_R39: Abi::R39, Node::Nvmap;

    NVMAP_IOC_ALLOC_R39: 0x40204e03 => nvmap_alloc_handle_r39;
    NVMAP_IOC_QUERY_HEAP_PARAMS_NUMA: 0x80304e6c => nvmap_query_heap_params_r39;
}

abi_consts! {
    /// Constants of this file, for `tests/layout.rs`.
    pub static R39_CONSTS: Abi::R39;

    NVGPU_ALLOC_GPFIFO_EX_FLAGS_REPLAYABLE_FAULTS_ENABLE: u32 = 4;
    NVGPU_ALLOC_OBJ_FLAGS_VPR_ENABLED: u32 = 8;
    NVGPU_AS_IOCTL_LAST_R39: u32 = 0xf;
    NVGPU_AS_IOCTL_MAX_ARG_SIZE_R39: u32 = 0x48;
    NVGPU_AS_REMAP_OP_FLAGS_PAGESIZE_2048K: u32 = 0x40000;
    NVGPU_DBG_GPU_CTX_MMU_DEBUG_MODE_GCC_DISABLED: u32 = 2;
    NVGPU_DBG_GPU_CTX_MMU_DEBUG_MODE_GCC_ENABLED: u32 = 3;
    NVGPU_DBG_GPU_IOCTL_LAST_R39: u32 = 0x22;
    NVGPU_DBG_GPU_SET_SM_DBGR_CTRL_SINGLE_STEP_MODE_DISABLE: u32 = 0;
    NVGPU_DBG_GPU_SET_SM_DBGR_CTRL_SINGLE_STEP_MODE_ENABLE: u32 = 1;
    NVGPU_GPU_FLAGS_IS_VIRTUALIZATION: u64 = 0x800000000000000;
    NVGPU_GPU_FLAGS_IS_VIRTUAL_FUNCTION: u64 = 0x40000000000000;
    NVGPU_GPU_FLAGS_SUPPORT_SEMA_BASED_GP_GET_TRACKING: u64 = 0x400000000000000;
    NVGPU_GPU_IOCTL_LAST_R39: u32 = 0x30;
    NVGPU_PROFILER_CHANNEL_CHIPLET_TYPE_FBP: u32 = 1;
    NVGPU_PROFILER_CHANNEL_CHIPLET_TYPE_GPC: u32 = 0;
    NVGPU_PROFILER_CHANNEL_CHIPLET_TYPE_SYS: u32 = 2;
    NVGPU_PROFILER_CHANNEL_GET_CREDIT_INVALID_CHIPLET_INDEX: u32 = 2;
    NVGPU_PROFILER_CHANNEL_GET_CREDIT_INVALID_CHIPLET_TYPE: u32 = 3;
    NVGPU_PROFILER_CHANNEL_GET_CREDIT_INVALID_CREDITS: u32 = 1;
    NVGPU_PROFILER_CHANNEL_GET_CREDIT_SUCCESS: u32 = 0;
    NVGPU_PROFILER_CHANNEL_SET_CREDIT_INVALID_CHIPLET_INDEX: u32 = 2;
    NVGPU_PROFILER_CHANNEL_SET_CREDIT_INVALID_CHIPLET_TYPE: u32 = 3;
    NVGPU_PROFILER_CHANNEL_SET_CREDIT_INVALID_CREDITS: u32 = 1;
    NVGPU_PROFILER_CHANNEL_SET_CREDIT_SUCCESS: u32 = 0;
    NVGPU_PROFILER_IOCTL_LAST_R39: u32 = 0x10;
    NVGPU_PROFILER_PM_RESOURCE_ARG_CCU_PROF: u32 = 4;
    NVGPU_SYNC_RO_MAP_MAX_SYNCPOINT_REGIONS: u32 = 4;
    NVGPU_TSG_SHARE_TOKEN_SIZE: u32 = 0x10;
    NVMAP_HEAP_CARVEOUT_VI: u32 = 0x10;
    NVMAP_IOC_MAXNR_R39: u32 = 0x6c;
}
