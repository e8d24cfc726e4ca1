//! Lists which fields of which ioctls are addresses of the caller, and what the kernel does with the memory there.
//!
//! Each field has one row. Addresses differ from run to run, so a recording keeps only whether an address was given,
//! and the memory behind it that the kernel read or wrote.

use crate::describe::unsigned;
use std::mem::{offset_of, size_of};
use tegrarm_abi::host1x::*;
use tegrarm_abi::nvgpu::address_space::*;
use tegrarm_abi::nvgpu::channel::*;
use tegrarm_abi::nvgpu::ctrl::*;
use tegrarm_abi::nvgpu::debugger::*;
use tegrarm_abi::nvgpu::nvsched::*;
use tegrarm_abi::nvgpu::profiler::*;
use tegrarm_abi::nvgpu::r39::*;
use tegrarm_abi::nvgpu::sched::*;
use tegrarm_abi::nvgpu::tsg::*;
use tegrarm_abi::nvmap::*;
use tegrarm_abi::sync_file::*;

/// What the kernel does with the memory behind a pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// The kernel reads it.
    In,
    /// The kernel writes it.
    Out,
    /// The kernel reads and writes it.
    InOut,
    /// The kernel uses only the address, to pin or to flush memory. A recording keeps nothing of it.
    Address,
    /// The kernel follows more pointers in that memory. Such a call cannot be replayed.
    Nested,
}

/// How the argument gives the length of the memory behind a pointer, before the call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Length {
    /// The length is a field of this size at this offset, times this number of bytes.
    Counted { at: usize, width: usize, each: usize },
    /// The memory is one of nvmap's strided copies and ends with the last element.
    Strided,
    /// The memory has one entry for each SM. The size of an entry depends on the kernel's generation, and no field of
    /// the argument says it.
    PerSm,
    /// No length is needed.
    Nothing,
}

/// One pointer field: eight bytes at `offset` in the argument of `request`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pointer {
    pub request: u32,
    pub name: &'static str,
    pub offset: usize,
    pub usage: Use,
    pub length: Length,
    /// The offset of a descriptor within each element.
    pub fd: Option<(usize, usize)>,
}

impl Pointer {
    /// Whether the kernel writes the memory behind the pointer.
    pub(crate) fn is_written(&self) -> bool {
        matches!(self.usage, Use::Out | Use::InOut)
    }

    /// The number of bytes behind the pointer: the room of the caller, and what the kernel accesses at most. `per_sm`
    /// supplies the size that no argument contains. The result is `None` where nobody knows it.
    pub(crate) fn len(&self, bytes: &[u8], per_sm: impl FnOnce() -> Option<usize>) -> Option<usize> {
        let word = |at: usize, width: usize| bytes.get(at..at + width).map_or(0, |b| unsigned(b) as usize);
        match self.length {
            Length::Counted { at, width, each } => word(at, width).checked_mul(each),
            Length::Strided => {
                let count = word(offset_of!(nvmap_rw_handle, count), 8);
                let stride = word(offset_of!(nvmap_rw_handle, user_stride), 8);
                let each = word(offset_of!(nvmap_rw_handle, elem_size), 8);
                if count == 0 { Some(0) } else { stride.checked_mul(count - 1)?.checked_add(each) }
            }
            Length::PerSm => per_sm(),
            Length::Nothing => None,
        }
    }
}

/// Whether a successful call overwrites its whole argument, with its descriptors and pointers, by another member of a
/// union.
pub(crate) fn overwrites_input(request: u32) -> bool {
    request == NVGPU_GPU_IOCTL_GET_BUFFER_INFO
}

/// The pointer fields of a request.
pub(crate) fn of(request: u32) -> impl Iterator<Item = &'static Pointer> {
    POINTERS.iter().filter(move |p| p.request == request)
}

macro_rules! rows {
    ($( $request:ident, $ty:ident.$field:ident: $usage:ident
        $([$count:ident * $each:expr $(, fd at $fd:expr)?])? $({$special:ident})?; )*) => {
        &[ $( Pointer {
            request: $request,
            name: stringify!($field),
            offset: offset_of!($ty, $field),
            usage: Use::$usage,
            length: rows!(@length $($ty $count $each)? $($special)?),
            fd: rows!(@fd $($each $(, $fd)?)?),
        }, )* ]
    };
    (@length) => { Length::Nothing };
    (@length $special:ident) => { Length::$special };
    (@length $ty:ident $count:ident $each:expr) => {
        Length::Counted { at: offset_of!($ty, $count), width: width(|t: &$ty| &t.$count), each: $each }
    };
    (@fd) => { None };
    (@fd $each:expr) => { None };
    (@fd $each:expr, $fd:expr) => { Some(($each, $fd)) };
}

/// The size of the field that `project` selects.
const fn width<T, F>(_project: fn(&T) -> &F) -> usize {
    size_of::<F>()
}

/// `struct nvgpu_gpu_get_buffer_info_args` before the call, which is the other member of its union.
#[repr(C)]
struct BufferInfoIn {
    dmabuf_fd: i32,
    metadata_size: u32,
    metadata_addr: u64,
}

const MAP: usize = size_of::<nvgpu_as_map_buffer_ex_args>();
const MAP_FD: usize = offset_of!(nvgpu_as_map_buffer_ex_args, dmabuf_fd);
const REMAP: usize = size_of::<nvgpu_as_remap_op>();
const REMAP_FD: usize = offset_of!(nvgpu_as_remap_op, mem_handle);
const DOMAIN: usize = size_of::<nvgpu_nvs_ioctl_domain>();
const MAPPING: usize = size_of::<nvgpu_dbg_gpu_get_mappings_entry>();
const POOL: usize = size_of::<nvgpu_profiler_channel_pool_info>();
const CREDIT: usize = size_of::<nvgpu_profiler_channel_set_credit_buf>();
const CHECKER: usize = size_of::<nvgpu_profiler_vab_range_checker>();

static POINTERS: &[Pointer] = rows! {
    NVMAP_IOC_WRITE, nvmap_rw_handle.addr: In {Strided};
    NVMAP_IOC_READ, nvmap_rw_handle.addr: Out {Strided};
    NVGPU_SCHED_IOCTL_GET_TSGS, nvgpu_sched_get_tsgs_args.buffer: Out [size * 1];
    NVGPU_SCHED_IOCTL_GET_RECENT_TSGS, nvgpu_sched_get_tsgs_args.buffer: Out [size * 1];
    NVGPU_SCHED_IOCTL_GET_TSGS_BY_PID, nvgpu_sched_get_tsgs_by_pid_args.buffer: Out [size * 1];
    NVGPU_NVS_IOCTL_QUERY_DOMAINS, nvgpu_nvs_ioctl_query_domains.domains: Out [nr * DOMAIN];
    NVMAP_IOC_CACHE, nvmap_cache_op.addr: Address;
    NVMAP_IOC_CACHE_64, nvmap_cache_op_64.addr: Address;
    NVMAP_IOC_ALLOC_R39, nvmap_alloc_handle_r39.va: Address;
    NVGPU_GPU_IOCTL_GET_PPC_MASKS, nvgpu_gpu_get_ppc_masks_args.mask_buf_addr: Out [mask_buf_size * 1];
    NVGPU_GPU_IOCTL_GET_ROP_MASKS, nvgpu_gpu_get_rop_masks_args.mask_buf_addr: Out [mask_buf_size * 1];
    NVGPU_GPU_IOCTL_GET_FBP_LOCAL_TO_PHYSICAL_MAP, nvgpu_gpu_get_fbp_physical_map_args.physical_fbp_buf_addr: Out [map_buf_size * 1];
    NVGPU_GPU_IOCTL_GET_FBP_LOCAL_TO_LOGICAL_MAP, nvgpu_gpu_get_fbp_logical_map_args.logical_fbp_buf_addr: Out [map_buf_size * 1];
    NVGPU_PROFILER_IOCTL_GET_PMA_STREAM_POOLS_INFO, nvgpu_profiler_channel_get_pools_info_args.nvgpu_profiler_channel_pool_info_addr: Out [num_pool_entries * POOL];
    NVGPU_PROFILER_IOCTL_GET_PMA_STREAM_HS_CREDIT, nvgpu_profiler_channel_get_hs_credit_args.get_credit_buf_addr: InOut [credit_buf_count * CREDIT];
    NVGPU_PROFILER_IOCTL_SET_PMA_STREAM_HS_CREDIT, nvgpu_profiler_channel_set_hs_credit_args.set_credit_buf_addr: InOut [credit_buf_count * CREDIT];
    NVMAP_IOC_CACHE_LIST, nvmap_cache_op_list.handles: In [nr * 4];
    NVMAP_IOC_CACHE_LIST, nvmap_cache_op_list.offsets: Address;
    NVMAP_IOC_CACHE_LIST, nvmap_cache_op_list.sizes: Address;
    NVMAP_IOC_FROM_VA, nvmap_create_handle_from_va.va: Address;
    NVMAP_IOC_GUP_TEST, nvmap_gup_test.va: Address;
    NVMAP_IOC_SET_TAG_LABEL, nvmap_set_tag_label.addr: In [len * 1];
    NVMAP_IOC_GET_FD_FOR_RANGE_FROM_LIST, nvmap_fd_for_range_from_list.handles: In [num_handles * 4];

    NVGPU_GPU_IOCTL_GET_CHARACTERISTICS,
        nvgpu_gpu_get_characteristics.gpu_characteristics_buf_addr: Out [gpu_characteristics_buf_size * 1];
    NVGPU_GPU_IOCTL_GET_TPC_MASKS, nvgpu_gpu_get_tpc_masks_args.mask_buf_addr: Out [mask_buf_size * 1];
    NVGPU_GPU_IOCTL_GET_FBP_L2_MASKS, nvgpu_gpu_get_fbp_l2_masks_args.mask_buf_addr: Out [mask_buf_size * 1];
    NVGPU_GPU_IOCTL_GET_GPC_LOCAL_TO_PHYSICAL_MAP,
        nvgpu_gpu_get_gpc_physical_map_args.physical_gpc_buf_addr: Out [map_buf_size * 1];
    NVGPU_GPU_IOCTL_GET_GPC_LOCAL_TO_LOGICAL_MAP,
        nvgpu_gpu_get_gpc_logical_map_args.logical_gpc_buf_addr: Out [map_buf_size * 1];
    NVGPU_GPU_IOCTL_VSMS_MAPPING, nvgpu_gpu_vsms_mapping.vsms_map_buf_addr: Out {PerSm};
    NVGPU_GPU_IOCTL_WAIT_FOR_PAUSE, nvgpu_gpu_wait_pause_args.pwarpstate: Nested;
    NVGPU_GPU_IOCTL_GET_ENGINE_INFO,
        nvgpu_gpu_get_engine_info_args.engine_info_buf_addr: Out [engine_info_buf_size * 1];
    NVGPU_GPU_IOCTL_CLK_GET_RANGE,
        nvgpu_gpu_clk_range_args.clk_range_entries: InOut [num_entries * size_of::<nvgpu_gpu_clk_range>()];
    NVGPU_GPU_IOCTL_CLK_GET_VF_POINTS,
        nvgpu_gpu_clk_vf_points_args.clk_vf_point_entries: Out [max_entries * size_of::<nvgpu_gpu_clk_vf_point>()];
    NVGPU_GPU_IOCTL_CLK_GET_INFO,
        nvgpu_gpu_clk_get_info_args.clk_info_entries: InOut [num_entries * size_of::<nvgpu_gpu_clk_info>()];
    NVGPU_GPU_IOCTL_CLK_SET_INFO,
        nvgpu_gpu_clk_set_info_args.clk_info_entries: In [num_entries * size_of::<nvgpu_gpu_clk_info>()];
    NVGPU_GPU_IOCTL_SET_DETERMINISTIC_OPTS,
        nvgpu_gpu_set_deterministic_opts_args.channels: In [num_channels * 4, fd at 0];
    NVGPU_GPU_IOCTL_REGISTER_BUFFER, nvgpu_gpu_register_buffer_args.metadata_addr: In [metadata_size * 1];
    NVGPU_GPU_IOCTL_GET_BUFFER_INFO,
        BufferInfoIn.metadata_addr: Out [metadata_size * 1];

    NVGPU_AS_IOCTL_GET_VA_REGIONS, nvgpu_as_get_va_regions_args.buf_addr: Out [buf_size * 1];
    NVGPU_AS_IOCTL_MAP_BUFFER_BATCH, nvgpu_as_map_buffer_batch_args.unmaps: In [num_unmaps * 8];
    NVGPU_AS_IOCTL_MAP_BUFFER_BATCH, nvgpu_as_map_buffer_batch_args.maps: In [num_maps * MAP, fd at MAP_FD];
    NVGPU_AS_IOCTL_REMAP, nvgpu_as_remap_args.ops: InOut [num_ops * REMAP, fd at REMAP_FD];

    NVGPU_TSG_IOCTL_READ_SINGLE_SM_ERROR_STATE,
        nvgpu_tsg_read_single_sm_error_state_args.record_mem: Out [record_size * 1];
    NVGPU_TSG_IOCTL_READ_ALL_SM_ERROR_STATES,
        nvgpu_tsg_read_all_sm_error_state_args.buffer_mem: Out [buffer_size * 1];

    NVGPU_IOCTL_CHANNEL_SUBMIT_GPFIFO, nvgpu_submit_gpfifo_args.gpfifo: In [num_entries * 8];

    NVGPU_DBG_GPU_IOCTL_REG_OPS,
        nvgpu_dbg_gpu_exec_reg_ops_args.ops: InOut [num_ops * size_of::<nvgpu_dbg_gpu_reg_op>()];
    NVGPU_DBG_GPU_IOCTL_READ_SINGLE_SM_ERROR_STATE,
        nvgpu_dbg_gpu_read_single_sm_error_state_args.sm_error_state_record_mem: Out [sm_error_state_record_size * 1];
    NVGPU_DBG_GPU_IOCTL_ACCESS_FB_MEMORY, nvgpu_dbg_gpu_access_fb_memory_args.buffer: InOut [size * 1];
    NVGPU_DBG_GPU_IOCTL_GET_GR_CONTEXT, nvgpu_dbg_gpu_get_gr_context_args.buffer: Out [size * 1];
    NVGPU_DBG_GPU_IOCTL_GET_MAPPINGS, nvgpu_dbg_gpu_get_mappings_args.ops_buffer: Out [count * MAPPING];
    NVGPU_DBG_GPU_IOCTL_ACCESS_GPU_VA, nvgpu_dbg_gpu_va_access_args.ops_buf: Nested;

    NVGPU_PROFILER_IOCTL_EXEC_REG_OPS,
        nvgpu_profiler_exec_reg_ops_args.ops: InOut [count * size_of::<nvgpu_profiler_reg_op>()];
    NVGPU_PROFILER_IOCTL_VAB_RESERVE, nvgpu_profiler_vab_reserve_args.range_checkers_ptr: In [num_range_checkers * CHECKER];
    NVGPU_PROFILER_IOCTL_VAB_FLUSH_STATE, nvgpu_profiler_vab_flush_state_args.buffer_ptr: Out [buffer_size * 1];

    SYNC_IOC_FILE_INFO, sync_file_info.sync_fence_info: Out [num_fences * size_of::<sync_fence_info>()];

    HOST1X_IOCTL_FENCE_EXTRACT,
        host1x_fence_extract.fences_ptr: Out [num_fences * size_of::<host1x_fence_extract_fence>()];
};

#[cfg(test)]
mod tests {
    use super::*;
    use tegrarm_abi::layout::{IntoBytes, Ioctl};
    use tegrarm_abi::registry::IOCTLS;

    fn known(request: u32) -> &'static Ioctl {
        IOCTLS.iter().flat_map(|l| l.iter()).find(|i| i.number == request).expect("a known request")
    }

    #[test]
    fn every_field_that_looks_like_a_pointer_has_a_row() {
        let hints = ["_addr", "_ptr", "_mem", "_entries", "buffer", "ops", "ops_buf", "ops_buffer", "addr"];
        // These fields are GPU addresses, counts and ring sizes.
        let exempt = ["map_address", "put_ptr", "num_entries", "max_entries", "num_gpfifo_entries", "pma_buffer_va"];
        for i in IOCTLS.iter().flat_map(|l| l.iter()) {
            for f in i.arg.fields.iter().filter(|f| f.ty == "u64" && !exempt.contains(&f.name)) {
                let looks = hints.iter().any(|h| f.name == *h || h.starts_with('_') && f.name.ends_with(h));
                assert!(!looks || of(i.number).any(|p| p.offset == f.offset), "{}.{} is in no row", i.name, f.name);
            }
        }
    }

    #[test]
    fn every_row_lies_within_its_argument() {
        for p in POINTERS {
            let i = known(p.request);
            let size = i.arg.size;
            assert!(p.offset + 8 <= size, "{}.{}", i.name, p.name);
            if let Length::Counted { at, width, each } = p.length {
                assert!(at + width <= size && each > 0, "{}.{}", i.name, p.name);
            }
            assert!(p.fd.is_none_or(|(each, at)| at + 4 <= each), "{}.{}", i.name, p.name);
        }
    }

    #[test]
    fn a_strided_copy_ends_with_its_last_element() {
        let args = nvmap_rw_handle {
            addr: 0x1000,
            handle: 1,
            _pad0: [0; 4],
            offset: 0,
            elem_size: 3,
            hmem_stride: 8,
            user_stride: 10,
            count: 4,
        };
        let row = of(NVMAP_IOC_READ).next().expect("a row");
        assert_eq!(row.len(args.as_bytes(), || None), Some(33));
        let endless = nvmap_rw_handle { user_stride: u64::MAX, ..args };
        assert_eq!(row.len(endless.as_bytes(), || None), None);
    }
}
