//! Binding channels to a group and taking them out (docs/hardware/nvgpu-tsg.md#bind-channel-ex).

use crate::channel::Channel;
use crate::dispatch::{Call, Reply};
use crate::rule::Because;
use crate::tsg::{Leaving, MAX_VEIDS, Member, Tsg, TsgFile};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tegrarm_abi::nvgpu::tsg::nvgpu_tsg_bind_channel_ex_args;
use tegrarm_kmd::Errno;

/// The largest number of channels in a group.
const MAX_CHANNELS: usize = 128;

/// The old form of the call. It uses the VEID that BIND_CHANNEL_EX named last, which is 0 at first.
pub(super) fn bind_channel(call: &Call<'_>, file: &Arc<TsgFile>, fd: &mut i32) -> Reply {
    let channel = call.channel(*fd)?;
    let veid = channel.state.lock().veid;
    bind(call, &file.tsg, &channel, veid)
}

pub(super) fn bind_channel_ex(
    call: &Call<'_>,
    file: &Arc<TsgFile>,
    args: &mut nvgpu_tsg_bind_channel_ex_args,
) -> Reply {
    file.tsg.groups.scheduling.check_unlocked()?;
    // For a descriptor that is not a channel's, r39 answers that there is no such device.
    let bad = if call.is_r39() { Errno::ENODEV } else { Errno::EINVAL };
    let channel = call.channel(args.channel_fd).map_err(|_| bad)?;
    if args.subcontext_id >= MAX_VEIDS {
        return Err(Errno::EINVAL.because(format!("subcontext_id is below {MAX_VEIDS}")).into());
    }
    bind(call, &file.tsg, &channel, args.subcontext_id)
}

fn bind(call: &Call<'_>, tsg: &Arc<Tsg>, channel: &Channel, veid: u32) -> Reply {
    let mut bound = channel.state.lock();
    // These two fields stay set even if a later check fails.
    bound.veid = veid;
    if veid > 0 {
        bound.runqueue = 1;
    }
    let mut group = tsg.state.lock();
    if !call.is_r35() {
        if veid == 0 {
            group.subcontexts.imply_first(bound.space.as_ref())?;
        }
        if !group.subcontexts.matches(veid, bound.space.as_ref()) {
            let rule = format!("subcontext {veid} was not created, or for another address space than the channel's");
            return Err(Errno::EINVAL.because(rule).into());
        }
    }
    if bound.tsg.is_some() {
        return Err(Errno::EINVAL.because("the channel is in a TSG already").into());
    }
    if group.members.len() >= MAX_CHANNELS {
        return Err(Errno::EINVAL.because(format!("the TSG has {MAX_CHANNELS} channels already")).into());
    }
    if *group.runlist.get_or_insert(channel.runlist) != channel.runlist {
        return Err(Errno::EINVAL.because("the channels of a TSG are on one runlist").into());
    }
    group.members.push(Member { vitals: channel.vitals.clone(), veid });
    tsg.hw.members.lock().push(channel.vitals.clone());
    drop(group);
    bound.tsg = Some(tsg.clone());
    bound.bound_with_space = bound.space.is_some();
    channel.vitals.unserviceable.store(false, Ordering::Release);
    Ok(())
}

pub(super) fn unbind_channel(call: &Call<'_>, file: &Arc<TsgFile>, fd: &mut i32) -> Reply {
    let channel = call.channel(*fd)?;
    let mut state = channel.state.lock();
    if !state.tsg.as_ref().is_some_and(|tsg| Arc::ptr_eq(tsg, &file.tsg)) {
        return Err(Errno::EINVAL.because("the channel is not in this TSG").into());
    }
    channel.leave(&*call.board.gpu, &mut state, Leaving::Unbound);
    Ok(())
}
