//! The ctrl node (docs/hardware/nvgpu-ctrl.md#ctrl).

mod buffers;
mod characteristics;
mod clocks;
mod node;
mod objects;
pub(crate) mod time;
mod topology;
mod zbc;

pub(super) use node::Ctrl;

use super::dispatch::{Call, CopyBack, Reply, Row, Table, rows};
use crate::files::{Files, Mmap, OpenFile};
use crate::release::PerRelease;
use crate::rule::Because;
use crate::tsg::Groups;
use node::LAST;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tegrarm_abi::nvgpu::ctrl::*;
use tegrarm_abi::nvgpu::r35::*;
use tegrarm_kmd::{Arg, Errno, Node};

pub(super) static TABLE: Table<Ctrl> = Table {
    magic: NVGPU_GPU_IOCTL_MAGIC as u8,
    last: LAST,
    max_arg: PerRelease::same(NVGPU_GPU_IOCTL_MAX_ARG_SIZE as usize),
    copy_back: CopyBack::Count,
    rows: rows! {
        ALL NVGPU_GPU_IOCTL_ZCULL_GET_CTX_SIZE => topology::zcull_ctx_size;
        ALL NVGPU_GPU_IOCTL_ZCULL_GET_INFO => topology::zcull_info;
        ALL NVGPU_GPU_IOCTL_ZBC_SET_TABLE => zbc::set_table;
        ALL NVGPU_GPU_IOCTL_ZBC_QUERY_TABLE => zbc::query_table;
        ALL NVGPU_GPU_IOCTL_GET_CHARACTERISTICS => characteristics::get;
        ALL NVGPU_GPU_IOCTL_PREPARE_COMPRESSIBLE_READ => buffers::prepare_compressible_read;
        ALL NVGPU_GPU_IOCTL_MARK_COMPRESSIBLE_WRITE => buffers::mark_compressible_write;
        ALL NVGPU_GPU_IOCTL_ALLOC_AS => objects::alloc_as;
        R39 NVGPU_GPU_IOCTL_OPEN_TSG => objects::open_tsg_r39;
        R36 NVGPU_GPU_IOCTL_OPEN_TSG => objects::open_tsg;
        R35 NVGPU_GPU_IOCTL_OPEN_TSG_R35 => objects::open_tsg_r35;
        ALL NVGPU_GPU_IOCTL_GET_TPC_MASKS => topology::tpc_masks;
        ALL NVGPU_GPU_IOCTL_OPEN_CHANNEL => objects::open_channel;
        ALL NVGPU_GPU_IOCTL_FLUSH_L2 => topology::flush_l2;
        ALL NVGPU_GPU_IOCTL_SET_MMUDEBUG_MODE => topology::set_mmu_debug_mode;
        ALL NVGPU_GPU_IOCTL_SET_SM_DEBUG_MODE => topology::set_sm_debug_mode;
        ALL NVGPU_GPU_IOCTL_WAIT_FOR_PAUSE => absent_pause;
        ALL NVGPU_GPU_IOCTL_GET_TPC_EXCEPTION_EN_STATUS => topology::tpc_exceptions;
        ALL NVGPU_GPU_IOCTL_NUM_VSMS => topology::num_vsms;
        ALL NVGPU_GPU_IOCTL_VSMS_MAPPING => topology::vsms_mapping;
        ALL NVGPU_GPU_IOCTL_RESUME_FROM_PAUSE => absent;
        ALL NVGPU_GPU_IOCTL_TRIGGER_SUSPEND => absent;
        ALL NVGPU_GPU_IOCTL_CLEAR_SM_ERRORS => topology::clear_sm_errors;
        ALL NVGPU_GPU_IOCTL_GET_CPU_TIME_CORRELATION_INFO => time::correlation;
        ALL NVGPU_GPU_IOCTL_GET_GPU_TIME => time::gpu_time;
        ALL NVGPU_GPU_IOCTL_GET_ENGINE_INFO => topology::engine_info;
        ALL NVGPU_GPU_IOCTL_ALLOC_VIDMEM => no_vidmem;
        ALL NVGPU_GPU_IOCTL_CLK_GET_RANGE => clocks::get_range;
        ALL NVGPU_GPU_IOCTL_CLK_GET_VF_POINTS => clocks::get_vf_points;
        ALL NVGPU_GPU_IOCTL_CLK_GET_INFO => clocks::get_info;
        ALL NVGPU_GPU_IOCTL_CLK_SET_INFO => clocks::set_info;
        ALL NVGPU_GPU_IOCTL_GET_EVENT_FD => unsupported::<nvgpu_gpu_get_event_fd_args>;
        ALL NVGPU_GPU_IOCTL_GET_MEMORY_STATE => unsupported::<nvgpu_gpu_get_memory_state_args>;
        ALL NVGPU_GPU_IOCTL_GET_VOLTAGE => unsupported::<nvgpu_gpu_get_voltage_args>;
        ALL NVGPU_GPU_IOCTL_GET_CURRENT => unsupported::<nvgpu_gpu_get_current_args>;
        ALL NVGPU_GPU_IOCTL_GET_POWER => unsupported::<nvgpu_gpu_get_power_args>;
        ALL NVGPU_GPU_IOCTL_GET_TEMPERATURE => unsupported::<nvgpu_gpu_get_temperature_args>;
        ALL NVGPU_GPU_IOCTL_GET_FBP_L2_MASKS => topology::fbp_l2_masks;
        ALL NVGPU_GPU_IOCTL_SET_THERM_ALERT_LIMIT => unsupported::<nvgpu_gpu_set_therm_alert_limit_args>;
        ALL NVGPU_GPU_IOCTL_SET_DETERMINISTIC_OPTS => objects::set_deterministic_opts;
        ALL NVGPU_GPU_IOCTL_REGISTER_BUFFER => buffers::register_buffer;
        ALL NVGPU_GPU_IOCTL_GET_BUFFER_INFO => buffers::get_buffer_info;
        SINCE_R36 NVGPU_GPU_IOCTL_GET_GPC_LOCAL_TO_PHYSICAL_MAP => topology::gpc_physical_map;
        SINCE_R36 NVGPU_GPU_IOCTL_GET_GPC_LOCAL_TO_LOGICAL_MAP => topology::gpc_logical_map;
    },
};

/// Opens the node.
pub(super) fn open_node(call: &Call<'_>, groups: &Arc<Groups>) -> Result<OwnedFd, Errno> {
    let (fd, ctrl) = Ctrl::create(call, groups)?;
    call.files.enter(ctrl.file, ctrl);
    Ok(fd)
}

impl OpenFile for Ctrl {
    fn node(&self) -> Option<Node> {
        Some(Node::Ctrl)
    }

    fn ioctl(self: Arc<Self>, call: &Call<'_>, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        TABLE.run(call, &self, request, arg)
    }

    fn check_mmap(&self, call: &Call<'_>, asked: &Mmap) -> Result<(), Errno> {
        self.check_doorbell(call, asked)
    }

    fn own_view(&self) -> Option<usize> {
        Some(self.doorbell.backing.as_ptr() as usize)
    }

    fn close(&self, files: &Files) {
        files.board.doorbells.retire(self.file);
    }
}

/// Refuses suspend and resume, which need hooks that ga10b does not have.
fn absent(_: &Call<'_>, _: &Arc<Ctrl>, _: &mut ()) -> Reply {
    Err(Errno::ENOSYS.into())
}

fn absent_pause(_: &Call<'_>, _: &Arc<Ctrl>, _: &mut nvgpu_gpu_wait_pause_args) -> Reply {
    Err(Errno::ENOSYS.into())
}

/// Refuses to allocate video memory, because an integrated GPU has no memory of its own.
fn no_vidmem(_: &Call<'_>, _: &Arc<Ctrl>, _: &mut nvgpu_gpu_alloc_vidmem_args) -> Reply {
    Err(Errno::ENOSYS.into())
}

/// Refuses sensors and events that these chips do not have (docs/hardware/nvgpu-ctrl.md#absent-features).
fn unsupported<T>(_: &Call<'_>, _: &Arc<Ctrl>, _: &mut T) -> Reply {
    Err(Errno::EINVAL.because("this GPU does not have it").into())
}
