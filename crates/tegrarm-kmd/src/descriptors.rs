//! Lists which fields of which ioctls are file descriptors.
//!
//! Each field has one row. Descriptor numbers differ from run to run, so a recording replaces them by labels, and a
//! replay writes its own numbers.

use std::mem::offset_of;
use tegrarm_abi::host1x::*;
use tegrarm_abi::layout::Node;
use tegrarm_abi::nvgpu::address_space::*;
use tegrarm_abi::nvgpu::channel::*;
use tegrarm_abi::nvgpu::ctrl::*;
use tegrarm_abi::nvgpu::ctrl_fifo::*;
use tegrarm_abi::nvgpu::debugger::*;
use tegrarm_abi::nvgpu::profiler::*;
use tegrarm_abi::nvgpu::r35::*;
use tegrarm_abi::nvgpu::tsg::*;
use tegrarm_abi::nvmap::*;
use tegrarm_abi::sync_file::*;

/// Who writes the descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The caller writes it and names an open file.
    In,
    /// The kernel makes a new descriptor. The value that the caller left there has no meaning.
    Out,
    /// The kernel makes a new descriptor. The value that the caller wrote there is an input but not a descriptor.
    OutOverInput,
}

/// One descriptor field: four bytes at `offset` of the argument of `request`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Descriptor {
    pub request: u32,
    pub name: &'static str,
    pub offset: usize,
    pub role: Role,
    /// The kind of a new descriptor, for its label.
    pub kind: &'static str,
    /// The field is a descriptor only if the flags word (byte offset, bits) has all of these bits set.
    pub when: Option<(usize, u32)>,
}

impl Descriptor {
    /// Whether the field is a descriptor in this call.
    pub(crate) fn applies(&self, bytes: &[u8]) -> bool {
        self.when.is_none_or(|(at, bits)| {
            let word = bytes.get(at..at + 4).map_or(0, |b| crate::describe::unsigned(b) as u32);
            word & bits == bits
        })
    }
}

/// The descriptor fields of a request.
pub(crate) fn of(request: u32) -> impl Iterator<Item = &'static Descriptor> {
    DESCRIPTORS.iter().filter(move |d| d.request == request)
}

/// The label of a node's descriptors.
pub(crate) fn kind(node: Node) -> &'static str {
    match node {
        Node::Nvmap => "nvmap",
        Node::Ctrl => "ctrl",
        Node::As => "as",
        Node::Tsg => "tsg",
        Node::Channel => "channel",
        Node::Debugger => "dbg",
        Node::Profiler => "prof",
        Node::Sched => "sched",
        Node::Nvsched => "nvsched",
        Node::Ctxsw => "ctxsw",
        Node::CtrlFifo => "ctrl_fifo",
        Node::SyncFile => "sync",
        Node::Host1x => "host1x",
        Node::Dmabuf => "dmabuf",
    }
}

macro_rules! rows {
    ($( $request:ident, $ty:ident.$field:ident $(as $name:literal)?: $role:ident $kind:literal $(if $flags:ident & $bits:expr)?; )*) => {
        &[ $( Descriptor {
            request: $request,
            name: rows!(@name $field $($name)?),
            offset: offset_of!($ty, $field),
            role: Role::$role,
            kind: $kind,
            when: rows!(@when $($ty $flags $bits)?),
        }, )* ]
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
    (@when) => { None };
    (@when $ty:ident $flags:ident $bits:expr) => { Some((offset_of!($ty, $flags), $bits)) };
}

/// The argument of an ioctl that consists of a descriptor only.
#[repr(C)]
struct BareFd {
    fd: i32,
}

const SYNC_IN: u32 = NVGPU_SUBMIT_GPFIFO_FLAGS_SYNC_FENCE | NVGPU_SUBMIT_GPFIFO_FLAGS_FENCE_WAIT;
const SYNC_OUT: u32 = NVGPU_SUBMIT_GPFIFO_FLAGS_SYNC_FENCE | NVGPU_SUBMIT_GPFIFO_FLAGS_FENCE_GET;

static DESCRIPTORS: &[Descriptor] = rows! {
    NVMAP_IOC_GET_FD, nvmap_create_handle.size as "fd": Out "dmabuf";
    NVMAP_IOC_FROM_FD, nvmap_create_handle.size as "fd": In "dmabuf";
    NVMAP_IOC_GET_FD_FOR_RANGE_FROM_LIST, nvmap_fd_for_range_from_list.fd: Out "dmabuf";

    NVGPU_GPU_IOCTL_ALLOC_AS, nvgpu_alloc_as_args.as_fd: Out "as";
    NVGPU_GPU_IOCTL_OPEN_TSG, nvgpu_gpu_open_tsg_args.tsg_fd: Out "tsg";
    NVGPU_GPU_IOCTL_OPEN_TSG_R35, nvgpu_gpu_open_tsg_args_r35.tsg_fd: Out "tsg";
    NVGPU_GPU_IOCTL_OPEN_CHANNEL, nvgpu_gpu_open_channel_args.channel_fd: OutOverInput "channel";
    NVGPU_GPU_IOCTL_SET_SM_DEBUG_MODE, nvgpu_gpu_sm_debug_mode_args.channel_fd: In "channel";
    NVGPU_GPU_IOCTL_CLK_SET_INFO, nvgpu_gpu_clk_set_info_args.completion_fd: Out "completion";
    NVGPU_GPU_IOCTL_GET_EVENT_FD, nvgpu_gpu_get_event_fd_args.event_fd: Out "event";
    NVGPU_GPU_IOCTL_REGISTER_BUFFER, nvgpu_gpu_register_buffer_args.dmabuf_fd: In "dmabuf";
    NVGPU_GPU_IOCTL_GET_BUFFER_INFO, nvgpu_gpu_get_buffer_info_args.out_flags as "dmabuf_fd": In "dmabuf";

    NVGPU_AS_IOCTL_BIND_CHANNEL, nvgpu_as_bind_channel_args.channel_fd: In "channel";
    NVGPU_AS_IOCTL_MAP_BUFFER_EX, nvgpu_as_map_buffer_ex_args.dmabuf_fd: In "dmabuf";

    NVGPU_TSG_IOCTL_BIND_CHANNEL, BareFd.fd: In "channel";
    NVGPU_TSG_IOCTL_UNBIND_CHANNEL, BareFd.fd: In "channel";
    NVGPU_TSG_IOCTL_BIND_CHANNEL_EX, nvgpu_tsg_bind_channel_ex_args.channel_fd: In "channel";
    NVGPU_IOCTL_TSG_EVENT_ID_CTRL, nvgpu_event_id_ctrl_args.event_fd: Out "event";
    NVGPU_TSG_IOCTL_BIND_SCHEDULING_DOMAIN, nvgpu_tsg_bind_scheduling_domain_args.domain_fd: In "domain";
    NVGPU_TSG_IOCTL_CREATE_SUBCONTEXT, nvgpu_tsg_create_subcontext_args.as_fd: In "as";

    NVGPU_IOCTL_CHANNEL_SET_NVMAP_FD, nvgpu_set_nvmap_fd_args.fd: In "nvmap";
    NVGPU_IOCTL_CHANNEL_WAIT, nvgpu_wait_args.condition_notifier_dmabuf_fd: In "dmabuf";
    NVGPU_IOCTL_CHANNEL_SUBMIT_GPFIFO, nvgpu_submit_gpfifo_args.fence: In "sync" if flags & SYNC_IN;
    NVGPU_IOCTL_CHANNEL_SUBMIT_GPFIFO, nvgpu_submit_gpfifo_args.fence: Out "sync" if flags & SYNC_OUT;
    NVGPU_IOCTL_CHANNEL_SET_ERROR_NOTIFIER, nvgpu_set_error_notifier.mem: In "dmabuf";
    NVGPU_IOCTL_CHANNEL_OPEN, nvgpu_channel_open_args.channel_fd: Out "channel";
    NVGPU_IOCTL_CHANNEL_EVENT_ID_CTRL, nvgpu_event_id_ctrl_args.event_fd: Out "event";
    NVGPU_IOCTL_CHANNEL_SETUP_BIND, nvgpu_channel_setup_bind_args.userd_dmabuf_fd: In "dmabuf";
    NVGPU_IOCTL_CHANNEL_SETUP_BIND, nvgpu_channel_setup_bind_args.gpfifo_dmabuf_fd: In "dmabuf";
    NVGPU_IOCTL_CHANNEL_SETUP_BIND_R35, nvgpu_channel_setup_bind_args_r35.userd_dmabuf_fd: In "dmabuf";
    NVGPU_IOCTL_CHANNEL_SETUP_BIND_R35, nvgpu_channel_setup_bind_args_r35.gpfifo_dmabuf_fd: In "dmabuf";

    NVGPU_DBG_GPU_IOCTL_BIND_CHANNEL, nvgpu_dbg_gpu_bind_channel_args.channel_fd: In "channel";
    NVGPU_DBG_GPU_IOCTL_UNBIND_CHANNEL, nvgpu_dbg_gpu_unbind_channel_args.channel_fd: In "channel";
    NVGPU_DBG_GPU_IOCTL_PERFBUF_MAP, nvgpu_dbg_gpu_perfbuf_map_args.dmabuf_fd: In "dmabuf";
    NVGPU_DBG_GPU_IOCTL_ACCESS_FB_MEMORY, nvgpu_dbg_gpu_access_fb_memory_args.dmabuf_fd: In "dmabuf";
    NVGPU_DBG_GPU_IOCTL_CYCLE_STATS, nvgpu_dbg_gpu_cycle_stats_args.dmabuf_fd: In "dmabuf";
    NVGPU_DBG_GPU_IOCTL_CYCLE_STATS_SNAPSHOT, nvgpu_dbg_gpu_cycle_stats_snapshot_args.dmabuf_fd: In "dmabuf";

    NVGPU_PROFILER_IOCTL_BIND_CONTEXT, nvgpu_profiler_bind_context_args.tsg_fd: In "tsg";
    NVGPU_PROFILER_IOCTL_ALLOC_PMA_STREAM, nvgpu_profiler_alloc_pma_stream_args.pma_buffer_fd: In "dmabuf";
    NVGPU_PROFILER_IOCTL_ALLOC_PMA_STREAM,
        nvgpu_profiler_alloc_pma_stream_args.pma_bytes_available_buffer_fd: In "dmabuf";

    NVGPU_NVS_CTRL_FIFO_IOCTL_CREATE_QUEUE, nvgpu_nvs_ctrl_fifo_ioctl_create_queue_args.dmabuf_fd: Out "queue";

    SYNC_IOC_MERGE, sync_merge_data.fd2: In "sync";
    SYNC_IOC_MERGE, sync_merge_data.fence: Out "sync";

    HOST1X_IOCTL_CREATE_FENCE, host1x_create_fence.fence_fd: Out "sync";
    HOST1X_IOCTL_FENCE_EXTRACT, host1x_fence_extract.fence_fd: In "sync";
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use tegrarm_abi::registry::IOCTLS;

    #[test]
    fn every_field_that_looks_like_a_descriptor_has_a_row() {
        // This is the only field in which the kernel reports a descriptor without making it: it belongs to a channel
        // that the caller already has.
        let exempt = BTreeSet::from(["resident_context_fd"]);
        for i in IOCTLS.iter().flat_map(|l| l.iter()) {
            for f in i.arg.fields.iter().filter(|f| f.name == "fd" || f.name.ends_with("_fd")) {
                let known = of(i.number).any(|d| d.offset == f.offset);
                assert!(known || exempt.contains(f.name), "{}.{} is in no row", i.name, f.name);
            }
        }
    }

    #[test]
    fn every_row_lies_within_its_argument() {
        for d in DESCRIPTORS {
            let i = IOCTLS.iter().flat_map(|l| l.iter()).find(|i| i.number == d.request).expect("a known request");
            let size = (i.number >> 16 & 0x3fff) as usize;
            assert!(d.offset + 4 <= size, "{}.{} ends behind {size} bytes", i.name, d.name);
            assert!(d.when.is_none_or(|(at, _)| at + 4 <= size), "{}", i.name);
        }
    }
}
