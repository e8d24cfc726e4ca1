//! The ioctls of groups (docs/hardware/nvgpu-tsg.md#tsg). They stand above channels, because some of them name a channel.

mod bind;

use super::dispatch::{Call, CopyBack, Reply, Row, Table, rows};
use super::event::EventFd;
use super::files::OpenFile;
use super::nvsched::Domain;
use super::sched::Group;
use super::tsg::{MAX_VEIDS, Tsg, TsgFile, sm_record, token_parts};
use crate::process::FileId;
use crate::release::PerRelease;
use crate::rule::Because;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tegrarm_abi::nvgpu::channel::*;
use tegrarm_abi::nvgpu::ctrl::*;
use tegrarm_abi::nvgpu::r35::NVGPU_TSG_IOCTL_LAST_R35;
use tegrarm_abi::nvgpu::r39::*;
use tegrarm_abi::nvgpu::tsg::*;
use tegrarm_kmd::{Arg, Errno, Node};

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
        SINCE_R36 NVGPU_TSG_IOCTL_CREATE_SUBCONTEXT => create_subcontext;
        SINCE_R36 NVGPU_TSG_IOCTL_DELETE_SUBCONTEXT => delete_subcontext;
        R36 NVGPU_TSG_IOCTL_GET_SHARE_TOKEN => get_token;
        R36 NVGPU_TSG_IOCTL_REVOKE_SHARE_TOKEN => revoke_token;
        R39 NVGPU_TSG_IOCTL_GET_SHARE_TOKEN => get_token_r39;
        R39 NVGPU_TSG_IOCTL_REVOKE_SHARE_TOKEN => revoke_token_r39;
    },
};

impl OpenFile for TsgFile {
    fn node(&self) -> Option<Node> {
        Some(Node::Tsg)
    }

    fn ioctl(self: Arc<Self>, call: &Call<'_>, request: u32, arg: Arg<'_>) -> Result<i32, Errno> {
        TABLE.run(call, &self, request, arg)
    }
}

fn enable(call: &Call<'_>, file: &Arc<TsgFile>, _: &mut ()) -> Reply {
    file.tsg.hw.enabled.store(true, Ordering::Release);
    file.tsg.channels().into_iter().for_each(|id| call.board.gpu.ring(id));
    Ok(())
}

fn disable(_: &Call<'_>, file: &Arc<TsgFile>, _: &mut ()) -> Reply {
    file.tsg.hw.enabled.store(false, Ordering::Release);
    Ok(())
}

fn preempt(call: &Call<'_>, file: &Arc<TsgFile>, _: &mut ()) -> Reply {
    if call.board.gpu.preempt(&file.tsg.hw) {
        return Ok(());
    }
    Err(Errno::EBUSY.because("the group's work did not leave the engine in time; it goes on").into())
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
    call.files.enter(FileId::of(&fd)?, event);
    args.event_fd = call.process.install(fd)?;
    Ok(())
}

fn set_runlist_interleave(_: &Call<'_>, file: &Arc<TsgFile>, args: &mut nvgpu_runlist_interleave_args) -> Reply {
    file.tsg.groups.scheduling.check_unlocked()?;
    Ok(file.tsg.set_interleave(args.level)?)
}

fn set_timeslice(_: &Call<'_>, file: &Arc<TsgFile>, args: &mut nvgpu_timeslice_args) -> Reply {
    file.tsg.groups.scheduling.check_unlocked()?;
    Ok(file.tsg.set_timeslice(args.timeslice_us)?)
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
    let domain: Arc<Domain> = call.file(args.domain_fd).ok_or(Errno::ENOENT)?;
    if !file.tsg.channels().is_empty() {
        return Err(Errno::EINVAL.into());
    }
    file.tsg.state.lock().domain = Some(domain);
    Ok(())
}

fn create_subcontext(call: &Call<'_>, file: &Arc<TsgFile>, args: &mut nvgpu_tsg_create_subcontext_args) -> Reply {
    let sync = match args.type_ {
        NVGPU_TSG_SUBCONTEXT_TYPE_SYNC => true,
        NVGPU_TSG_SUBCONTEXT_TYPE_ASYNC => false,
        _ => return Err(Errno::EINVAL.because("the type is SYNC or ASYNC").into()),
    };
    let space = call.space(args.as_fd)?;
    args.veid = file.tsg.state.lock().subcontexts.create(sync, &space)?;
    Ok(())
}

fn delete_subcontext(_: &Call<'_>, file: &Arc<TsgFile>, args: &mut nvgpu_tsg_delete_subcontext_args) -> Reply {
    let mut group = file.tsg.state.lock();
    if args.veid >= MAX_VEIDS || group.members.iter().any(|member| member.veid == args.veid) {
        return Err(Errno::EINVAL.because("there is no such VEID, or a channel uses it").into());
    }
    group.subcontexts.delete(args.veid);
    Ok(())
}

/// Checks the source and the target of a token. Neither may be 0, and the group must have been opened through the
/// source.
fn authorised(tsg: &Tsg, source: u64, target: u64) -> Result<(), Errno> {
    let known = source != 0 && target != 0 && tsg.state.lock().instances.contains(&source);
    if known { Ok(()) } else { Err(Errno::EINVAL) }
}

fn get_token(_: &Call<'_>, file: &Arc<TsgFile>, args: &mut nvgpu_tsg_get_share_token_args) -> Reply {
    let (source, target) = (args.source_device_instance_id, args.target_device_instance_id);
    authorised(&file.tsg, source, target)?;
    args.share_token = file.tsg.groups.tokens.grant(&file.tsg, source, target)?;
    Ok(())
}

/// GET_SHARE_TOKEN of r39, which has no source field. The source is the ctrl node through which the group's file was
/// opened.
fn get_token_r39(call: &Call<'_>, file: &Arc<TsgFile>, args: &mut nvgpu_tsg_get_share_token_args_r39) -> Reply {
    let source_device_instance_id = file.ctrl.as_ref().map_or(0, |ctrl| ctrl.id());
    let target_device_instance_id = args.target_device_instance_id;
    let mut old =
        nvgpu_tsg_get_share_token_args { source_device_instance_id, target_device_instance_id, share_token: 0 };
    get_token(call, file, &mut old)?;
    args.share_token[..8].copy_from_slice(&source_device_instance_id.to_le_bytes());
    args.share_token[8..].copy_from_slice(&old.share_token.to_le_bytes());
    Ok(())
}

fn revoke_token_r39(call: &Call<'_>, file: &Arc<TsgFile>, args: &mut nvgpu_tsg_revoke_share_token_args_r39) -> Reply {
    let (source_device_instance_id, share_token) = token_parts(&args.share_token);
    let target_device_instance_id = args.target_device_instance_id;
    let mut old =
        nvgpu_tsg_revoke_share_token_args { source_device_instance_id, target_device_instance_id, share_token };
    revoke_token(call, file, &mut old)
}

fn revoke_token(_: &Call<'_>, file: &Arc<TsgFile>, args: &mut nvgpu_tsg_revoke_share_token_args) -> Reply {
    let (source, target) = (args.source_device_instance_id, args.target_device_instance_id);
    authorised(&file.tsg, source, target)?;
    Ok(file.tsg.groups.tokens.revoke(&file.tsg, args.share_token, source, target)?)
}
