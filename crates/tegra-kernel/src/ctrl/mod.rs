//! The ctrl node (docs/hardware/nvgpu-ctrl.md#ctrl).

mod buffers;
mod characteristics;
mod clocks;
mod doorbell;
mod objects;
mod time;
mod topology;

pub(super) use clocks::Clocks;
pub(super) use doorbell::Doorbells;

use super::Kernel;
use super::dispatch::{Call, CopyBack, Reply, Row, Since, Table, rows};
use crate::process::FileId;
use clocks::Session;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tegra_hw::Place;
use tegra_mm::{Backing, memfd};
use tegrarm_abi::nvgpu::ctrl::*;
use tegrarm_abi::nvgpu::r35::*;
use tegrarm_kmd::Errno;

/// Bytes of the usermode (doorbell) window.
pub(super) const DOORBELL_SIZE: usize = 64 << 10;

pub(super) static TABLE: Table<Ctrl> = Table {
    magic: NVGPU_GPU_IOCTL_MAGIC as u8,
    last: [NVGPU_GPU_IOCTL_LAST, NVGPU_GPU_IOCTL_LAST_R35],
    max_arg: [NVGPU_GPU_IOCTL_MAX_ARG_SIZE as usize; 2],
    copy_back: CopyBack::Count,
    rows: rows! {
        Both NVGPU_GPU_IOCTL_ZCULL_GET_CTX_SIZE => topology::zcull_ctx_size;
        Both NVGPU_GPU_IOCTL_ZCULL_GET_INFO => topology::zcull_info;
        Both NVGPU_GPU_IOCTL_ZBC_SET_TABLE => topology::zbc_set;
        Both NVGPU_GPU_IOCTL_ZBC_QUERY_TABLE => topology::zbc_query;
        Both NVGPU_GPU_IOCTL_GET_CHARACTERISTICS => characteristics::get;
        Both NVGPU_GPU_IOCTL_PREPARE_COMPRESSIBLE_READ => buffers::prepare_compressible_read;
        Both NVGPU_GPU_IOCTL_MARK_COMPRESSIBLE_WRITE => buffers::mark_compressible_write;
        Both NVGPU_GPU_IOCTL_ALLOC_AS => objects::alloc_as;
        R36Only NVGPU_GPU_IOCTL_OPEN_TSG => objects::open_tsg;
        R35Only NVGPU_GPU_IOCTL_OPEN_TSG_R35 => objects::open_tsg_r35;
        Both NVGPU_GPU_IOCTL_GET_TPC_MASKS => topology::tpc_masks;
        Both NVGPU_GPU_IOCTL_OPEN_CHANNEL => objects::open_channel;
        Both NVGPU_GPU_IOCTL_FLUSH_L2 => topology::flush_l2;
        Both NVGPU_GPU_IOCTL_SET_MMUDEBUG_MODE => topology::set_mmu_debug_mode;
        Both NVGPU_GPU_IOCTL_SET_SM_DEBUG_MODE => topology::set_sm_debug_mode;
        Both NVGPU_GPU_IOCTL_WAIT_FOR_PAUSE => absent_pause;
        Both NVGPU_GPU_IOCTL_GET_TPC_EXCEPTION_EN_STATUS => topology::tpc_exceptions;
        Both NVGPU_GPU_IOCTL_NUM_VSMS => topology::num_vsms;
        Both NVGPU_GPU_IOCTL_VSMS_MAPPING => topology::vsms_mapping;
        Both NVGPU_GPU_IOCTL_RESUME_FROM_PAUSE => absent;
        Both NVGPU_GPU_IOCTL_TRIGGER_SUSPEND => absent;
        Both NVGPU_GPU_IOCTL_CLEAR_SM_ERRORS => topology::clear_sm_errors;
        Both NVGPU_GPU_IOCTL_GET_CPU_TIME_CORRELATION_INFO => time::correlation;
        Both NVGPU_GPU_IOCTL_GET_GPU_TIME => time::gpu_time;
        Both NVGPU_GPU_IOCTL_GET_ENGINE_INFO => topology::engine_info;
        Both NVGPU_GPU_IOCTL_ALLOC_VIDMEM => no_vidmem;
        Both NVGPU_GPU_IOCTL_CLK_GET_RANGE => clocks::get_range;
        Both NVGPU_GPU_IOCTL_CLK_GET_VF_POINTS => clocks::get_vf_points;
        Both NVGPU_GPU_IOCTL_CLK_GET_INFO => clocks::get_info;
        Both NVGPU_GPU_IOCTL_CLK_SET_INFO => clocks::set_info;
        Both NVGPU_GPU_IOCTL_GET_EVENT_FD => unsupported::<nvgpu_gpu_get_event_fd_args>;
        Both NVGPU_GPU_IOCTL_GET_MEMORY_STATE => unsupported::<nvgpu_gpu_get_memory_state_args>;
        Both NVGPU_GPU_IOCTL_GET_VOLTAGE => unsupported::<nvgpu_gpu_get_voltage_args>;
        Both NVGPU_GPU_IOCTL_GET_CURRENT => unsupported::<nvgpu_gpu_get_current_args>;
        Both NVGPU_GPU_IOCTL_GET_POWER => unsupported::<nvgpu_gpu_get_power_args>;
        Both NVGPU_GPU_IOCTL_GET_TEMPERATURE => unsupported::<nvgpu_gpu_get_temperature_args>;
        Both NVGPU_GPU_IOCTL_GET_FBP_L2_MASKS => topology::fbp_l2_masks;
        Both NVGPU_GPU_IOCTL_SET_THERM_ALERT_LIMIT => unsupported::<nvgpu_gpu_set_therm_alert_limit_args>;
        Both NVGPU_GPU_IOCTL_SET_DETERMINISTIC_OPTS => objects::set_deterministic_opts;
        Both NVGPU_GPU_IOCTL_REGISTER_BUFFER => buffers::register_buffer;
        Both NVGPU_GPU_IOCTL_GET_BUFFER_INFO => buffers::get_buffer_info;
        R36Only NVGPU_GPU_IOCTL_GET_GPC_LOCAL_TO_PHYSICAL_MAP => topology::gpc_physical_map;
        R36Only NVGPU_GPU_IOCTL_GET_GPC_LOCAL_TO_LOGICAL_MAP => topology::gpc_logical_map;
    },
};

/// One open of the ctrl node.
#[derive(Debug)]
pub(super) struct Ctrl {
    /// Unique among opens, from 1 (r36 reports it in the characteristics).
    pub instance: u64,
    /// Identity of the file.
    pub file: FileId,
    /// This open's doorbell page.
    pub doorbell: Place,
    /// Share tokens made from it so far.
    pub tokens: AtomicU64,
    session: Session,
}

impl Ctrl {
    /// Opens the node: its file is the doorbell page.
    pub(super) fn open(kernel: &Kernel) -> Result<(OwnedFd, Arc<Ctrl>), Errno> {
        let fd = memfd::create("nvhost-ctrl", DOORBELL_SIZE as u64)?;
        let own = memfd::stow(memfd::duplicate(&fd)?)?;
        let doorbell = Place { backing: Arc::new(Backing::from_memfd(own, DOORBELL_SIZE)?), offset: 0 };
        let ctrl = Arc::new(Ctrl {
            instance: kernel.instances.fetch_add(1, Ordering::Relaxed) + 1,
            file: FileId::of(&fd)?,
            doorbell,
            tokens: AtomicU64::new(0),
            session: Session::default(),
        });
        kernel.doorbells.watch(&ctrl);
        kernel.tokens.opened(&ctrl);
        Ok((fd, ctrl))
    }
}

/// Suspend and resume need hooks that ga10b does not have.
fn absent(_: &Call<'_>, _: &Arc<Ctrl>, _: &mut ()) -> Reply {
    Err(Errno::ENOSYS.into())
}

fn absent_pause(_: &Call<'_>, _: &Arc<Ctrl>, _: &mut nvgpu_gpu_wait_pause_args) -> Reply {
    Err(Errno::ENOSYS.into())
}

/// An integrated GPU has no memory of its own.
fn no_vidmem(_: &Call<'_>, _: &Arc<Ctrl>, _: &mut nvgpu_gpu_alloc_vidmem_args) -> Reply {
    Err(Errno::ENOSYS.into())
}

/// Sensors and events these chips do not have (docs/hardware/nvgpu-ctrl.md#absent-features).
fn unsupported<T>(_: &Call<'_>, _: &Arc<Ctrl>, _: &mut T) -> Reply {
    Err(Errno::EINVAL.into())
}
