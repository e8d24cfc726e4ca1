//! The objects that a ctrl descriptor opens: address spaces, groups and channels
//! (docs/hardware/nvgpu-ctrl.md#deterministic-opts, docs/hardware/nvgpu-ctrl.md#open-tsg).

use super::node::Ctrl;
use crate::channel::Channel;
use crate::dispatch::{Call, Reply, as_r36};
use crate::rule::Because;
use crate::space::AddressSpace;
use crate::tsg::{Tsg, token_parts};
use std::sync::Arc;
use tegrarm_abi::nvgpu::ctrl::*;
use tegrarm_abi::nvgpu::r35::nvgpu_gpu_open_tsg_args_r35;
use tegrarm_abi::nvgpu::r39::nvgpu_gpu_open_tsg_args_r39;
use tegrarm_kmd::Errno;

/// The graphics runlist's name.
const GRAPHICS: i32 = -1;
/// The runlists by their numbers: graphics, and the asynchronous copy engine of GET_ENGINE_INFO.
const RUNLISTS: std::ops::Range<i32> = 0..2;

pub(super) fn alloc_as(call: &Call<'_>, _: &Arc<Ctrl>, args: &mut nvgpu_alloc_as_args) -> Reply {
    let space = Arc::new(AddressSpace::create(call, args)?);
    let fd = call.files.anonymous("as", space)?;
    args.as_fd = call.process.install(fd)?;
    Ok(())
}

pub(super) fn open_tsg(call: &Call<'_>, ctrl: &Arc<Ctrl>, args: &mut nvgpu_gpu_open_tsg_args) -> Reply {
    let (source, token) = (args.source_device_instance_id, args.share_token);
    let tsg = if args.flags & NVGPU_GPU_IOCTL_OPEN_TSG_FLAGS_SHARE != 0 {
        if source == 0 || token == 0 {
            return Err(Errno::EINVAL.because("SHARE needs the token and the number of the device it is from").into());
        }
        let unknown = || Errno::EINVAL.because("there is no such share token for this device, or it was used before");
        ctrl.groups.tokens.redeem(token, source, ctrl.instance).ok_or_else(unknown)?
    } else {
        if source != 0 || token != 0 {
            return Err(Errno::EINVAL.because("a token needs the flag SHARE").into());
        }
        Tsg::create(call, &ctrl.groups)?
    };
    let file = Arc::new(tsg.open(call, Some(ctrl.clone())));
    args.tsg_fd = call.process.install(call.files.anonymous("tsg", file)?)? as u32;
    Ok(())
}

/// OPEN_TSG of r39. Its token is r36's two numbers in a row, as bytes.
pub(super) fn open_tsg_r39(call: &Call<'_>, ctrl: &Arc<Ctrl>, args: &mut nvgpu_gpu_open_tsg_args_r39) -> Reply {
    let (source_device_instance_id, share_token) = token_parts(&args.share_token);
    let mut old =
        nvgpu_gpu_open_tsg_args { tsg_fd: args.tsg_fd, flags: args.flags, source_device_instance_id, share_token };
    open_tsg(call, ctrl, &mut old)?;
    args.tsg_fd = old.tsg_fd;
    Ok(())
}

pub(super) fn open_tsg_r35(call: &Call<'_>, ctrl: &Arc<Ctrl>, args: &mut nvgpu_gpu_open_tsg_args_r35) -> Reply {
    as_r36(args, |full| open_tsg(call, ctrl, full))
}

/// The argument is a union: it has the runlist on entry and the descriptor on return.
pub(super) fn open_channel(call: &Call<'_>, _: &Arc<Ctrl>, args: &mut nvgpu_gpu_open_channel_args) -> Reply {
    let runlist = if args.channel_fd == GRAPHICS { 0 } else { args.channel_fd };
    if !RUNLISTS.contains(&runlist) {
        return Err(Errno::EINVAL
            .because(format!("there is no runlist {runlist}; -1 is the graphics engine's"))
            .into());
    }
    args.channel_fd = Channel::open(call, runlist.cast_unsigned())?;
    Ok(())
}

pub(super) fn set_deterministic_opts(
    call: &Call<'_>,
    _: &Arc<Ctrl>,
    args: &mut nvgpu_gpu_set_deterministic_opts_args,
) -> Reply {
    const MAX_CHANNELS: u32 = 512;
    if args.num_channels > MAX_CHANNELS {
        return Err(Errno::EINVAL.into());
    }
    let count = std::mem::take(&mut args.num_channels);
    let flag = |bit| args.flags & bit != 0;
    let allow = flag(NVGPU_GPU_SET_DETERMINISTIC_OPTS_FLAGS_ALLOW_RAILGATING);
    let disallow = flag(NVGPU_GPU_SET_DETERMINISTIC_OPTS_FLAGS_DISALLOW_RAILGATING);
    for i in 0..u64::from(count) {
        let fd: i32 = call.copy_in_as(args.channels.wrapping_add(4 * i))?;
        if allow && disallow {
            return Err(Errno::EINVAL.into());
        }
        let channel = call.channel(fd)?;
        if !channel.deterministic() {
            return Err(Errno::EINVAL.because("a channel of the list is not deterministic").into());
        }
        if allow || disallow {
            channel.allow_railgating(allow);
        }
        args.num_channels += 1;
    }
    Ok(())
}
