//! GET_CHARACTERISTICS (docs/hardware/nvgpu-ctrl.md#get-characteristics; values: E2).

use super::node::Ctrl;
use crate::channel::MAX_GPFIFO_ENTRIES;
use crate::chip::PES;
use crate::clocks::MHZ;
use crate::dispatch::{Call, Reply};
use crate::release::L4t;
use crate::space::map::BATCH_LIMIT;
use crate::tsg::{MAX_DEBUG_TIMESLICE_US, MAX_VEIDS};
use std::sync::Arc;
use tegrarm_abi::layout::{copy_shared_fields, offset_of};
use tegrarm_abi::nvgpu::channel::*;
use tegrarm_abi::nvgpu::ctrl::*;
use tegrarm_abi::nvgpu::r35::*;
use tegrarm_abi::nvgpu::r39::nvgpu_gpu_characteristics_r39;
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// The flags of an AGX Orin on r36, as a process without CAP_SYS_NICE has observed them.
const OBSERVED_FLAGS: u64 = 0x01bf_5fff_7f5d_035d;
/// The size of a line of the compression cache: the smallest that its register can say. What a board says is in no log.
const CBC_LINE: u32 = 512;
/// The flags for which r35 has no names.
const R36_FLAGS: u64 = NVGPU_GPU_FLAGS_MULTI_PROCESS_TSG_SHARING | NVGPU_GPU_FLAGS_SCHED_EXIT_WAIT_FOR_ERRBAR_SUPPORTED;
/// The flags that only r35 has.
const R35_FLAGS: u64 = NVGPU_GPU_FLAGS_SUPPORT_MAP_DIRECT_KIND_CTRL_R35 as u64
    | NVGPU_GPU_FLAGS_SUPPORT_PARTIAL_MAPPINGS_R35 as u64
    | NVGPU_GPU_FLAGS_SUPPORT_USERSPACE_MANAGED_AS_R35 as u64;
/// The largest number of the ioctls of device events. These chips have no such events.
const EVENT_LAST: i16 = 1;

/// Copies as much as the caller has room for. The size in the answer is always that of the whole structure.
pub(super) fn get(call: &Call<'_>, ctrl: &Arc<Ctrl>, args: &mut nvgpu_gpu_get_characteristics) -> Reply {
    let bytes = bytes(call, ctrl);
    if args.gpu_characteristics_buf_size > 0 {
        let size = bytes.len().min(args.gpu_characteristics_buf_size as usize);
        call.copy_out_counted(args.gpu_characteristics_buf_addr, &bytes[..size])?;
    }
    args.gpu_characteristics_buf_size = bytes.len() as u64;
    Ok(())
}

fn bytes(call: &Call<'_>, ctrl: &Ctrl) -> Vec<u8> {
    let full = describe(call, ctrl);
    match call.board.config.l4t {
        L4t::R39 => as_r39(&full).as_bytes().to_vec(),
        L4t::R36 => full.as_bytes().to_vec(),
        L4t::R35 => as_r35(&full).as_bytes().to_vec(),
        L4t::R35_4 => as_r35_4(&full),
    }
}

fn flags(call: &Call<'_>) -> u64 {
    let mut flags = OBSERVED_FLAGS;
    if call.is_r35() {
        flags = flags & !R36_FLAGS | R35_FLAGS;
    }
    if call.process.may_reschedule() {
        flags |= u64::from(NVGPU_GPU_FLAGS_SUPPORT_RESCHEDULE_RUNLIST);
    }
    flags
}

fn describe(call: &Call<'_>, ctrl: &Ctrl) -> nvgpu_gpu_characteristics {
    let chip = call.board.chip;
    let mut c = nvgpu_gpu_characteristics::new_zeroed();
    c.arch = chip.arch;
    c.impl_ = chip.implementation;
    c.rev = chip.revision;
    c.num_gpc = chip.gpcs();
    c.numa_domain_id = NVGPU_GPU_CHARACTERISTICS_NO_NUMA_INFO as i32;
    c.L2_cache_size = chip.l2_size;
    c.num_tpc_per_gpc = chip.tpc_per_gpc;
    c.bus_type = NVGPU_GPU_BUS_TYPE_AXI;
    c.big_page_size = chip.big_page;
    c.compression_page_size = 64 << 10;
    c.pde_coverage_bit_count = 47;
    c.available_big_page_sizes = chip.available_big_pages;
    c.flags = flags(call);
    c.twod_class = chip.classes.twod;
    c.threed_class = chip.classes.threed;
    c.compute_class = chip.classes.compute;
    c.gpfifo_class = chip.classes.gpfifo;
    c.inline_to_memory_class = chip.classes.inline_to_memory;
    c.dma_copy_class = chip.classes.copy;
    c.gpc_mask = chip.gpc_mask();
    c.sm_arch_sm_version = chip.sm_version;
    c.sm_arch_spa_version = chip.spa_version;
    c.sm_arch_warp_count = chip.warps_per_tpc;
    c.gpu_va_bit_count = 40;
    c.max_fbps_count = chip.max_fbps;
    c.fbp_en_mask = chip.fbp_mask;
    c.emc_en_mask = chip.emc_mask;
    c.max_ltc_per_fbp = chip.ltc_per_fbp;
    c.max_lts_per_ltc = chip.lts_per_ltc;
    c.max_gpc_count = chip.max_gpcs();
    c.chipname[..chip.name.len()].copy_from_slice(chip.name.as_bytes());
    c.num_ltc = chip.num_ltc;
    c.lts_per_ltc = chip.lts_per_ltc;
    c.cbc_cache_line_size = CBC_LINE;
    c.map_buffer_batch_limit = BATCH_LIMIT;
    c.max_freq = chip.max_frequency() / MHZ * MHZ;
    c.graphics_preemption_mode_flags = NVGPU_GRAPHICS_PREEMPTION_MODE_WFI | NVGPU_GRAPHICS_PREEMPTION_MODE_GFXP;
    c.compute_preemption_mode_flags =
        NVGPU_COMPUTE_PREEMPTION_MODE_WFI | NVGPU_COMPUTE_PREEMPTION_MODE_CTA | NVGPU_COMPUTE_PREEMPTION_MODE_CILP;
    c.default_graphics_preempt_mode = NVGPU_GRAPHICS_PREEMPTION_MODE_WFI;
    c.default_compute_preempt_mode = NVGPU_COMPUTE_PREEMPTION_MODE_WFI;
    c.reg_ops_limit = crate::registers::LIMIT;
    c.max_css_buffer_size = u32::MAX;
    c.max_ctxsw_ring_buffer_size = crate::ctxsw::MAX_RING as u32;
    c.num_ppc_per_gpc = PES;
    c.max_veid_count_per_tsg = MAX_VEIDS;
    c.max_gpfifo_entries = MAX_GPFIFO_ENTRIES;
    c.max_dbg_tsg_timeslice = MAX_DEBUG_TIMESLICE_US;
    c.device_instance_id = ctrl.instance;
    last_numbers(&mut c, call.board.config.l4t);
    c
}

fn last_numbers(c: &mut nvgpu_gpu_characteristics, l4t: L4t) {
    c.gpu_ioctl_nr_last = super::node::LAST.of(l4t) as i16;
    c.tsg_ioctl_nr_last = crate::ioctl_tsg::TABLE.last.of(l4t) as i16;
    c.dbg_gpu_ioctl_nr_last = crate::debugger::TABLE.last.of(l4t) as i16;
    c.ioctl_channel_nr_last = crate::channel::TABLE.last.of(l4t) as i16;
    c.as_ioctl_nr_last = crate::ioctl_as::TABLE.last.of(l4t) as i16;
    c.event_ioctl_nr_last = EVENT_LAST;
    c.ctxsw_ioctl_nr_last = crate::ctxsw::TABLE.last.of(l4t) as i16;
    c.prof_ioctl_nr_last = crate::profiler::TABLE.last.of(l4t) as i16;
    c.nvs_ioctl_nr_last = crate::nvsched::TABLE.last.of(l4t) as i16;
}

/// Converts to the layout of r39, which has a third page size before the fields that follow the big page size. ga10b
/// has no pages of that size.
fn as_r39(c: &nvgpu_gpu_characteristics) -> nvgpu_gpu_characteristics_r39 {
    let mut new = nvgpu_gpu_characteristics_r39::new_zeroed();
    copy_shared_fields(c, &mut new);
    new
}

/// Converts to the layout of r35.1 to r35.3, which has no NUMA domain, no EMC mask and no instance.
fn as_r35(c: &nvgpu_gpu_characteristics) -> nvgpu_gpu_characteristics_r35 {
    let mut old = nvgpu_gpu_characteristics_r35::new_zeroed();
    copy_shared_fields(c, &mut old);
    old
}

/// Converts to the layout of r35.4.1 to r35.6. The EMC mask stands where `max_ltc_per_fbp` was. It pushes all fields up
/// to the chip name by four bytes into the padding behind them.
fn as_r35_4(c: &nvgpu_gpu_characteristics) -> Vec<u8> {
    use nvgpu_gpu_characteristics_r35 as Old;
    let mut bytes = as_r35(c).as_bytes().to_vec();
    let (from, end) = (offset_of!(Old, max_ltc_per_fbp), offset_of!(Old, _pad0));
    bytes.copy_within(from..end, from + 4);
    bytes[from..from + 4].copy_from_slice(&c.emc_en_mask.to_le_bytes());
    debug_assert!(nvgpu_gpu_characteristics_r35::read_from_bytes(&bytes).is_ok_and(|old| old.arch == c.arch));
    bytes
}
