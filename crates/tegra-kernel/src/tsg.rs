//! Channel groups (docs/hardware/nvgpu-tsg.md#tsg).

mod share;
mod subcontext;

pub(super) use share::{Instance, token_parts};
pub(super) use subcontext::MAX_VEIDS;

use super::board::CHANNELS;
use super::dispatch::Call;
use super::event::Events;
use super::ids::Lowest;
use super::nvsched::Domain;
use super::sched::{Group, Scheduling};
use super::space::AddressSpace;
use crate::budget::{Resource, Share};
use crate::rule::Because;
use share::ShareTokens;
use std::any::Any;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use subcontext::Subcontexts;
use tegra_hw::{GpuPort, HwTsg, Listener, Vitals};
use tegrarm_abi::layout::copy_shared_fields;
use tegrarm_abi::nvgpu::channel::*;
use tegrarm_abi::nvgpu::r39::nvgpu_tsg_sm_error_state_record_r39;
use tegrarm_abi::nvgpu::sched::nvgpu_sched_tsg_get_params_args;
use tegrarm_abi::nvgpu::tsg::*;
use tegrarm_kmd::Errno;
use tegrarm_lock::Mutex;
use zerocopy::{FromZeros, IntoBytes};

/// The longest timeslice that a debugger may set, in microseconds.
pub(super) const MAX_DEBUG_TIMESLICE_US: u32 = 4_000_000;
/// One open file of a group. On r36 it keeps the ctrl node alive through which it was opened.
#[derive(Debug)]
pub(super) struct TsgFile {
    pub tsg: Arc<Tsg>,
    pub ctrl: Option<Arc<dyn Instance>>,
}

impl Drop for TsgFile {
    fn drop(&mut self) {
        if let Some(ctrl) = &self.ctrl {
            self.tsg.groups.tokens.closed(&self.tsg, ctrl.id());
            self.tsg.state.lock().instances.retain(|instance| *instance != ctrl.id());
        }
    }
}

/// What all groups of the GPU share.
#[derive(Debug)]
pub(super) struct Groups {
    ids: Lowest,
    pub tokens: ShareTokens<Tsg>,
    pub scheduling: Arc<Scheduling>,
}

impl Groups {
    pub(super) fn new(scheduling: Arc<Scheduling>) -> Groups {
        Groups { ids: Lowest::new(CHANNELS), tokens: ShareTokens::default(), scheduling }
    }

    /// The number of groups that exist.
    pub(super) fn used(&self) -> usize {
        self.ids.used()
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
    profiler: Mutex<Weak<dyn Any + Send + Sync>>,
    pub groups: Arc<Groups>,
    _share: Option<Share>,
    gpu: Arc<dyn GpuPort>,
}

/// Why a channel leaves its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaving {
    /// UNBIND_CHANNEL asks for it.
    Unbound,
    /// The channel was closed. The subcontext of its last channel ends with it.
    Closed,
}

/// A channel that is bound to a group. It is taken out before it ends.
#[derive(Debug)]
pub(super) struct Member {
    pub vitals: Arc<Vitals>,
    /// The subcontext in which the channel was bound.
    pub veid: u32,
}

#[derive(Debug)]
pub(super) struct TsgState {
    pub subcontexts: Subcontexts,
    pub members: Vec<Member>,
    /// The runlist of the first channel that was ever bound. It stays, even if every channel leaves.
    pub runlist: Option<u32>,
    /// The instance ids of the ctrl nodes from which it may be shared.
    pub instances: Vec<u64>,
    /// True after ALLOC_OBJ_CTX has made a graphics context.
    pub has_context: bool,
    /// The address of the ZCULL buffer, or 0. The first one stays.
    pub zcull_va: u64,
    /// On r35: the address space for which the context was made.
    pub context_space: Option<Weak<AddressSpace>>,
    pub graphics_preempt: u32,
    pub compute_preempt: u32,
    pub l2_max_ways: u32,
    pub interleave: u32,
    /// The scheduling domain to which it was bound.
    pub domain: Option<Arc<Domain>>,
}

impl Group for Tsg {
    fn pid(&self) -> i32 {
        self.pid
    }

    fn parameters(&self, args: &mut nvgpu_sched_tsg_get_params_args) {
        let state = self.state.lock();
        args.pid = self.pid as u64;
        args.runlist_interleave = state.interleave;
        args.timeslice = self.hw.timeslice_us.load(Ordering::Relaxed);
        // The modes belong to the context.
        let modes = if state.has_context { (state.graphics_preempt, state.compute_preempt) } else { (0, 0) };
        (args.graphics_preempt_mode, args.compute_preempt_mode) = modes;
    }

    fn set_timeslice(&self, us: u32) -> Result<(), Errno> {
        let allowed = self.groups.scheduling.timeslices();
        if !allowed.contains(&us) {
            return Err(Errno::EINVAL.because(format!("a time slice has {allowed:?} microseconds")));
        }
        self.hw.timeslice_us.store(us, Ordering::Relaxed);
        Ok(())
    }

    fn set_interleave(&self, level: u32) -> Result<(), Errno> {
        if level >= NVGPU_RUNLIST_INTERLEAVE_NUM_LEVELS {
            return Err(Errno::EINVAL.because("the level is LOW, MEDIUM or HIGH"));
        }
        self.state.lock().interleave = level;
        Ok(())
    }
}

impl Drop for Tsg {
    fn drop(&mut self) {
        self.groups.scheduling.removed(self.hw.id);
        self.hw.gpu.residency.forget(self.hw.id);
        self.gpu.forget_group(self.hw.id);
        self.groups.ids.give_back(self.hw.id);
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
    pub(super) fn create(call: &Call<'_>, groups: &Arc<Groups>) -> Result<Arc<Tsg>, Errno> {
        let board = call.board;
        let share = board.take(Resource::Groups, call.process, 1)?;
        let id = groups.ids.take().ok_or_else(|| Errno::ENOMEM.because("all TSGs are in use"))?;
        let pid = call.process.pid();
        let hw = Arc::new(HwTsg::new(id, pid, board.chip.sm_count() as usize, board.hw.clone()));
        let events = Arc::new(Events::default());
        let listener: Arc<dyn Listener> = events.clone();
        *hw.listener.lock() = Arc::downgrade(&listener);
        let state = TsgState {
            subcontexts: Subcontexts::default(),
            members: Vec::new(),
            runlist: None,
            instances: Vec::new(),
            has_context: false,
            zcull_va: 0,
            context_space: None,
            graphics_preempt: NVGPU_GRAPHICS_PREEMPTION_MODE_WFI,
            compute_preempt: NVGPU_COMPUTE_PREEMPTION_MODE_WFI,
            l2_max_ways: 0,
            interleave: NVGPU_RUNLIST_INTERLEAVE_LEVEL_LOW,
            domain: None,
        };
        let profiler: Weak<dyn Any + Send + Sync> = Weak::<()>::new();
        let (profiler, state, gpu) = (Mutex::new(profiler), Mutex::new(state), board.gpu.clone());
        let tsg = Tsg { hw, events, state, pid, profiler, groups: groups.clone(), gpu, _share: share };
        let tsg = Arc::new(tsg);
        let group: Arc<dyn Group> = tsg.clone();
        groups.scheduling.added(id, Arc::downgrade(&group));
        Ok(tsg)
    }

    /// Makes a file of the group, for an open through a ctrl node or through the `tsg` node.
    pub(super) fn open(self: &Arc<Self>, call: &Call<'_>, ctrl: Option<Arc<dyn Instance>>) -> TsgFile {
        if let Some(ctrl) = &ctrl {
            self.state.lock().instances.push(ctrl.id());
        }
        let ctrl = ctrl.filter(|_| !call.is_r35());
        TsgFile { tsg: self.clone(), ctrl }
    }

    /// The ids of the channels that are bound to it.
    pub(super) fn channels(&self) -> Vec<u32> {
        self.state.lock().members.iter().map(|member| member.vitals.id).collect()
    }

    /// Takes a channel out, of which the group may know nothing. `named` is the VEID that the channel named last.
    pub(super) fn remove(&self, channel: &Arc<Vitals>, named: u32, why: Leaving) {
        self.hw.members.lock().retain(|vitals| !Arc::ptr_eq(vitals, channel));
        if let Some(syncpoint) = channel.syncpoint.lock().as_ref() {
            syncpoint.set_safe_state();
        }
        let mut state = self.state.lock();
        let own = state.members.iter().position(|member| Arc::ptr_eq(&member.vitals, channel));
        let Some(own) = own.map(|at| state.members.remove(at)) else { return };
        if why == Leaving::Closed && !state.members.iter().any(|member| member.veid == own.veid) {
            // The driver frees the number that was named last, which can be another one.
            state.subcontexts.delete(named);
        }
    }

    /// Lets a profiler object measure the group. The error is `EINVAL` while another one does.
    pub(super) fn measure(&self, by: Weak<dyn Any + Send + Sync>) -> Result<(), Errno> {
        let mut profiler = self.profiler.lock();
        if profiler.strong_count() > 0 {
            return Err(Errno::EINVAL);
        }
        *profiler = by;
        Ok(())
    }

    /// Notes that no profiler object measures the group any more.
    pub(super) fn measured(&self) {
        *self.profiler.lock() = Weak::<()>::new();
    }
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
