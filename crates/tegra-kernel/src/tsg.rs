//! Channel groups (docs/hardware/nvgpu-tsg.md#tsg).

mod bind;
mod share;
mod subcontext;

pub(super) use bind::leave;
pub(super) use share::{ShareTokens, token_parts};

use super::channel::Channel;
use super::ctrl::Ctrl;
use super::dispatch::{Call, CopyBack, Reply, Row, Table, rows};
use super::event::{EventFd, Events};
use super::files::Object;
use super::ids::Lowest;
use super::nvsched::Domain;
use super::profiler::ProfilerObject;
use super::sched::Scheduling;
use crate::budget::{Resource, Share};
use crate::process::FileId;
use crate::release::PerRelease;
use crate::rule::Because;
use parking_lot::Mutex;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use subcontext::Subcontexts;
use tegra_hw::{GpuPort, HwTsg, Listener};
use tegrarm_abi::layout::copy_shared_fields;
use tegrarm_abi::nvgpu::channel::*;
use tegrarm_abi::nvgpu::ctrl::*;
use tegrarm_abi::nvgpu::r35::NVGPU_TSG_IOCTL_LAST_R35;
use tegrarm_abi::nvgpu::r39::nvgpu_tsg_sm_error_state_record_r39;
use tegrarm_abi::nvgpu::tsg::*;
use tegrarm_kmd::Errno;
use zerocopy::{FromZeros, IntoBytes};

/// The number of subcontexts that a group can have.
pub(super) const MAX_VEIDS: u32 = 64;
/// The longest timeslice that a debugger may set, in microseconds.
pub(super) const MAX_DEBUG_TIMESLICE_US: u32 = 4_000_000;
/// The number of L2 ways of a slice.
const L2_WAYS: u32 = 16;

pub(super) static TABLE: Table<TsgFile> = Table {
    magic: NVGPU_TSG_IOCTL_MAGIC as u8,
    last: PerRelease { r35: NVGPU_TSG_IOCTL_LAST_R35, r36: NVGPU_TSG_IOCTL_LAST, r39: NVGPU_TSG_IOCTL_LAST },
    max_arg: PerRelease::same(NVGPU_TSG_IOCTL_MAX_ARG_SIZE as usize),
    copy_back: CopyBack::Count,
    rows: rows! {
        ALL NVGPU_TSG_IOCTL_BIND_CHANNEL => bind::bind_channel;
        ALL NVGPU_TSG_IOCTL_UNBIND_CHANNEL => bind::unbind_channel;
        ALL NVGPU_IOCTL_TSG_ENABLE => enable;
        ALL NVGPU_IOCTL_TSG_DISABLE => disable;
        ALL NVGPU_IOCTL_TSG_PREEMPT => preempt;
        ALL NVGPU_IOCTL_TSG_EVENT_ID_CTRL => event_id_ctrl;
        ALL NVGPU_IOCTL_TSG_SET_RUNLIST_INTERLEAVE => set_runlist_interleave;
        ALL NVGPU_IOCTL_TSG_SET_TIMESLICE => set_timeslice;
        ALL NVGPU_IOCTL_TSG_GET_TIMESLICE => get_timeslice;
        ALL NVGPU_TSG_IOCTL_BIND_CHANNEL_EX => bind::bind_channel_ex;
        ALL NVGPU_TSG_IOCTL_READ_SINGLE_SM_ERROR_STATE => read_single_sm_error_state;
        ALL NVGPU_TSG_IOCTL_SET_L2_MAX_WAYS_EVICT_LAST => set_l2_max_ways;
        ALL NVGPU_TSG_IOCTL_GET_L2_MAX_WAYS_EVICT_LAST => get_l2_max_ways;
        ALL NVGPU_TSG_IOCTL_SET_L2_SECTOR_PROMOTION => set_l2_sector_promotion;
        ALL NVGPU_TSG_IOCTL_BIND_SCHEDULING_DOMAIN => bind_scheduling_domain;
        SINCE_R36 NVGPU_TSG_IOCTL_CREATE_SUBCONTEXT => subcontext::create;
        SINCE_R36 NVGPU_TSG_IOCTL_DELETE_SUBCONTEXT => subcontext::delete;
        R36 NVGPU_TSG_IOCTL_GET_SHARE_TOKEN => share::get_token;
        R36 NVGPU_TSG_IOCTL_REVOKE_SHARE_TOKEN => share::revoke_token;
        R39 NVGPU_TSG_IOCTL_GET_SHARE_TOKEN => share::get_token_r39;
        R39 NVGPU_TSG_IOCTL_REVOKE_SHARE_TOKEN => share::revoke_token_r39;
    },
};

/// One open file of a group. On r36 it keeps the ctrl node alive through which it was opened.
#[derive(Debug)]
pub(super) struct TsgFile {
    pub tsg: Arc<Tsg>,
    pub(super) ctrl: Option<Arc<Ctrl>>,
    tokens: Arc<ShareTokens>,
}

impl Drop for TsgFile {
    fn drop(&mut self) {
        if let Some(ctrl) = &self.ctrl {
            self.tokens.closed(&self.tsg, ctrl.instance);
            self.tsg.state.lock().instances.retain(|instance| *instance != ctrl.instance);
        }
    }
}

/// A channel group. It lives for as long as a file or a bound channel.
#[derive(Debug)]
pub(super) struct Tsg {
    pub hw: Arc<HwTsg>,
    pub events: Arc<Events>,
    pub state: Mutex<TsgState>,
    /// The process that made it.
    pub pid: i32,
    /// The profiler object that measures it.
    pub profiler: Mutex<Weak<ProfilerObject>>,
    ids: Arc<Lowest>,
    _share: Option<Share>,
    scheduling: Arc<Scheduling>,
    gpu: Arc<dyn GpuPort>,
}

#[derive(Debug)]
pub(super) struct TsgState {
    pub subcontexts: Subcontexts,
    pub channels: Vec<Weak<Channel>>,
    /// The instance ids of the ctrl nodes from which it may be shared.
    pub instances: Vec<u64>,
    /// True after ALLOC_OBJ_CTX has made a graphics context.
    pub has_context: bool,
    /// On r35: the address space for which the context was made.
    pub context_space: Option<Weak<super::space::AddressSpace>>,
    pub graphics_preempt: u32,
    pub compute_preempt: u32,
    l2_max_ways: u32,
    pub interleave: u32,
    /// The scheduling domain to which it was bound.
    domain: Option<Arc<Domain>>,
}

impl Drop for Tsg {
    fn drop(&mut self) {
        self.scheduling.removed(self.hw.id);
        self.hw.gpu.residency.forget(self.hw.id);
        self.gpu.forget_group(self.hw.id);
        self.ids.give_back(self.hw.id);
    }
}

impl Tsg {
    /// Checks that the group has a graphics context. The error is `EFAULT`.
    pub(super) fn check_context(&self) -> Result<(), Errno> {
        if self.state.lock().has_context {
            Ok(())
        } else {
            Err(Errno::EFAULT.because("the TSG has no context yet (ALLOC_OBJ_CTX)"))
        }
    }

    /// Makes a new group. The error is `ENOMEM` when all ids are in use.
    pub(super) fn create(call: &Call<'_>) -> Result<Arc<Tsg>, Errno> {
        let kernel = call.kernel;
        let share = kernel.take(Resource::Groups, call.process, 1)?;
        let id = kernel.tsg_ids.take().ok_or_else(|| Errno::ENOMEM.because("all TSGs are in use"))?;
        let pid = call.process.pid();
        let hw = Arc::new(HwTsg::new(id, pid, kernel.chip.sm_count() as usize, kernel.hw.clone()));
        let events = Arc::new(Events::default());
        let listener: Arc<dyn Listener> = events.clone();
        *hw.listener.lock() = Arc::downgrade(&listener);
        let state = TsgState {
            subcontexts: Subcontexts::default(),
            channels: Vec::new(),
            instances: Vec::new(),
            has_context: false,
            context_space: None,
            graphics_preempt: NVGPU_GRAPHICS_PREEMPTION_MODE_WFI,
            compute_preempt: NVGPU_COMPUTE_PREEMPTION_MODE_WFI,
            l2_max_ways: 0,
            interleave: NVGPU_RUNLIST_INTERLEAVE_LEVEL_LOW,
            domain: None,
        };
        let (ids, scheduling) = (kernel.tsg_ids.clone(), kernel.scheduling.clone());
        let (profiler, gpu) = (Mutex::default(), kernel.gpu.clone());
        let state = Mutex::new(state);
        let tsg = Tsg { hw, events, state, pid, profiler, ids, scheduling, gpu, _share: share };
        let tsg = Arc::new(tsg);
        kernel.scheduling.added(&tsg);
        Ok(tsg)
    }

    /// Makes a file of the group, for an open through a ctrl node or through the `tsg` node.
    pub(super) fn open(self: &Arc<Self>, call: &Call<'_>, ctrl: Option<&Arc<Ctrl>>) -> TsgFile {
        if let Some(ctrl) = ctrl {
            self.state.lock().instances.push(ctrl.instance);
        }
        let ctrl = ctrl.filter(|_| !call.is_r35()).cloned();
        TsgFile { tsg: self.clone(), ctrl, tokens: call.kernel.tokens.clone() }
    }

    /// The channels that are bound to it.
    pub(super) fn channels(&self) -> Vec<Arc<Channel>> {
        self.state.lock().channels.iter().filter_map(Weak::upgrade).collect()
    }
}

fn enable(call: &Call<'_>, file: &Arc<TsgFile>, _: &mut ()) -> Reply {
    file.tsg.hw.enabled.store(true, Ordering::Release);
    file.tsg.channels().iter().for_each(|channel| call.kernel.gpu.ring(channel.id()));
    Ok(())
}

fn disable(_: &Call<'_>, file: &Arc<TsgFile>, _: &mut ()) -> Reply {
    file.tsg.hw.enabled.store(false, Ordering::Release);
    Ok(())
}

fn preempt(call: &Call<'_>, file: &Arc<TsgFile>, _: &mut ()) -> Reply {
    call.kernel.gpu.preempt(&file.tsg.hw);
    Ok(())
}

fn event_id_ctrl(call: &Call<'_>, file: &Arc<TsgFile>, args: &mut nvgpu_event_id_ctrl_args) -> Reply {
    let known = args.event_id < NVGPU_IOCTL_CHANNEL_EVENT_ID_MAX && args.cmd == NVGPU_IOCTL_CHANNEL_EVENT_ID_CMD_ENABLE;
    if !known || (call.is_r35() && file.tsg.events.has(args.event_id)) {
        return Err(Errno::EINVAL
            .because("there is no such event or command, or r35 has this event enabled already")
            .into());
    }
    let (event, fd) = EventFd::new(args.event_id)?;
    let event = Arc::new(event);
    file.tsg.events.add(&event);
    call.kernel.enter(FileId::of(&fd)?, Object::Event { keeps: event });
    args.event_fd = call.process.install(fd)?;
    Ok(())
}

fn set_runlist_interleave(call: &Call<'_>, file: &Arc<TsgFile>, args: &mut nvgpu_runlist_interleave_args) -> Reply {
    call.kernel.scheduling.check_unlocked()?;
    Ok(set_interleave_of(&file.tsg, args.level)?)
}

/// Sets how often the group is in the runlist. The error is `EINVAL` for an unknown level.
pub(super) fn set_interleave_of(tsg: &Tsg, level: u32) -> Result<(), Errno> {
    if level >= NVGPU_RUNLIST_INTERLEAVE_NUM_LEVELS {
        return Err(Errno::EINVAL.because("the level is LOW, MEDIUM or HIGH"));
    }
    tsg.state.lock().interleave = level;
    Ok(())
}

fn set_timeslice(call: &Call<'_>, file: &Arc<TsgFile>, args: &mut nvgpu_timeslice_args) -> Reply {
    call.kernel.scheduling.check_unlocked()?;
    Ok(set_timeslice_of(&file.tsg, args.timeslice_us)?)
}

/// Sets the group's time slice. The error is `EINVAL` outside of the range that the driver accepts.
pub(super) fn set_timeslice_of(tsg: &Tsg, us: u32) -> Result<(), Errno> {
    if !tsg.scheduling.timeslices().contains(&us) {
        let allowed = tsg.scheduling.timeslices();
        return Err(Errno::EINVAL.because(format!("a time slice has {allowed:?} microseconds")));
    }
    tsg.hw.timeslice_us.store(us, Ordering::Relaxed);
    Ok(())
}

fn get_timeslice(_: &Call<'_>, file: &Arc<TsgFile>, args: &mut nvgpu_timeslice_args) -> Reply {
    args.timeslice_us = file.tsg.hw.timeslice_us.load(Ordering::Relaxed);
    Ok(())
}

fn read_single_sm_error_state(
    call: &Call<'_>,
    file: &Arc<TsgFile>,
    args: &mut nvgpu_tsg_read_single_sm_error_state_args,
) -> Reply {
    let record = sm_record(call, &file.tsg, args.sm_id)?;
    if args.record_size == 0 {
        return Ok(());
    }
    let size = (args.record_size as usize).min(record.len());
    call.copy_out_counted(args.record_mem, &record[..size])?;
    args.record_size = size as u64;
    Ok(())
}

/// The saved error record of one SM, in the layout of the release. r39 added a word for clusters of CTAs. It is 0,
/// because these chips have no clusters.
pub(super) fn sm_record(call: &Call<'_>, tsg: &Tsg, sm: u32) -> Result<Vec<u8>, Errno> {
    let record = tsg.sm_error(sm)?;
    if !call.is_r39() {
        return Ok(record.as_bytes().to_vec());
    }
    let mut larger = nvgpu_tsg_sm_error_state_record_r39::new_zeroed();
    copy_shared_fields(&record, &mut larger);
    Ok(larger.as_bytes().to_vec())
}

impl Tsg {
    /// The saved error record of one SM. The error is `EINVAL` when the SM does not exist.
    pub(super) fn sm_error(&self, sm: u32) -> Result<nvgpu_tsg_sm_error_state_record, Errno> {
        let record = *self.hw.sm_errors.lock().get(sm as usize).ok_or(Errno::EINVAL)?;
        Ok(nvgpu_tsg_sm_error_state_record {
            global_esr: record.global_esr,
            warp_esr: record.warp_esr,
            warp_esr_pc: record.pc,
            global_esr_report_mask: 0,
            warp_esr_report_mask: 0,
        })
    }
}

fn set_l2_max_ways(_: &Call<'_>, file: &Arc<TsgFile>, args: &mut nvgpu_tsg_l2_max_ways_evict_last_args) -> Reply {
    let mut state = file.tsg.state.lock();
    if args.max_ways > L2_WAYS || !state.has_context {
        return Err(Errno::EINVAL.into());
    }
    state.l2_max_ways = args.max_ways;
    Ok(())
}

fn get_l2_max_ways(_: &Call<'_>, file: &Arc<TsgFile>, args: &mut nvgpu_tsg_l2_max_ways_evict_last_args) -> Reply {
    let state = file.tsg.state.lock();
    if !state.has_context {
        return Err(Errno::EINVAL.into());
    }
    args.max_ways = state.l2_max_ways;
    Ok(())
}

fn set_l2_sector_promotion(_: &Call<'_>, _: &Arc<TsgFile>, args: &mut nvgpu_tsg_set_l2_sector_promotion_args) -> Reply {
    // The flags say how many sectors a miss fetches. Without a cache they have no effect.
    const FLAGS: [u32; 3] = [
        NVGPU_GPU_IOCTL_TSG_L2_SECTOR_PROMOTE_FLAG_NONE,
        NVGPU_GPU_IOCTL_TSG_L2_SECTOR_PROMOTE_FLAG_64B,
        NVGPU_GPU_IOCTL_TSG_L2_SECTOR_PROMOTE_FLAG_128B,
    ];
    if FLAGS.contains(&args.promotion_flag) { Ok(()) } else { Err(Errno::EINVAL.into()) }
}

/// Binds the group to a scheduling domain. This is possible only before the first channel is bound.
fn bind_scheduling_domain(
    call: &Call<'_>,
    file: &Arc<TsgFile>,
    args: &mut nvgpu_tsg_bind_scheduling_domain_args,
) -> Reply {
    if args.reserved0 != 0 || args.reserved != [0; 3] {
        return Err(Errno::EINVAL.into());
    }
    let Ok(Object::Domain(domain)) = call.kernel.object(call.process, args.domain_fd) else {
        return Err(Errno::ENOENT.into());
    };
    if !file.tsg.channels().is_empty() {
        return Err(Errno::EINVAL.into());
    }
    file.tsg.state.lock().domain = Some(domain);
    Ok(())
}
