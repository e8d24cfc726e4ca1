//! The CLK_* ioctls, which read the GPC clock and ask for a rate (docs/hardware/nvgpu-ctrl.md#clocks).

use super::node::Ctrl;
use crate::dispatch::{Call, Reply};
use crate::event::EventFd;
use crate::process::FileId;
use std::sync::Arc;
use tegrarm_abi::nvgpu::ctrl::*;
use tegrarm_kmd::Errno;
use zerocopy::IntoBytes;

/// The entries that an information ioctl concerns. `flags` 0 asks for all domains, of which there is one, and 1 asks
/// for the listed ones. Returns the number of entries, or `None` if the caller asked only for their count.
fn entries(flags: u32, count: u16, at_most: u16) -> Reply<Option<u16>> {
    match (flags, count) {
        (0, 0) => Ok(None),
        (0, _) => Ok(Some(1)),
        (NVGPU_GPU_CLK_FLAG_SPECIFIC_DOMAINS, n) if n <= at_most => Ok(Some(n)),
        _ => Err(Errno::EINVAL.into()),
    }
}

fn gpc_clock(domain: u32) -> Reply {
    if domain == NVGPU_GPU_CLK_DOMAIN_GPCCLK { Ok(()) } else { Err(Errno::EINVAL.into()) }
}

pub(super) fn get_range(call: &Call<'_>, _: &Arc<Ctrl>, args: &mut nvgpu_gpu_clk_range_args) -> Reply {
    let Some(count) = entries(args.flags, args.num_entries, 1)? else {
        args.num_entries = 1;
        return Ok(());
    };
    let chip = call.board.chip;
    for i in 0..u64::from(count) {
        let at = args.clk_range_entries.wrapping_add(i * size_of::<nvgpu_gpu_clk_range>() as u64);
        if args.flags == NVGPU_GPU_CLK_FLAG_SPECIFIC_DOMAINS {
            gpc_clock(call.copy_in_as::<nvgpu_gpu_clk_range>(at)?.clk_domain)?;
        }
        let range = nvgpu_gpu_clk_range {
            flags: 0,
            clk_domain: NVGPU_GPU_CLK_DOMAIN_GPCCLK,
            min_hz: chip.min_frequency(),
            max_hz: chip.max_frequency(),
        };
        call.copy_out(at, range.as_bytes())?;
    }
    args.num_entries = count;
    Ok(())
}

pub(super) fn get_info(call: &Call<'_>, _: &Arc<Ctrl>, args: &mut nvgpu_gpu_clk_get_info_args) -> Reply {
    let Some(count) = entries(args.flags, args.num_entries, 3)? else {
        args.num_entries = 1;
        return Ok(());
    };
    for i in 0..u64::from(count) {
        let at = args.clk_info_entries.wrapping_add(i * size_of::<nvgpu_gpu_clk_info>() as u64);
        let asked: nvgpu_gpu_clk_info = call.copy_in_as(at)?;
        let clk_type = if args.clk_type != 0 { args.clk_type } else { asked.clk_type };
        if args.flags == NVGPU_GPU_CLK_FLAG_SPECIFIC_DOMAINS {
            gpc_clock(asked.clk_domain)?;
        }
        if !(NVGPU_GPU_CLK_TYPE_TARGET..=NVGPU_GPU_CLK_TYPE_EFFECTIVE).contains(&u32::from(clk_type)) {
            return Err(Errno::EINVAL.into());
        }
        let freq_hz = call.board.clocks.current();
        let info = nvgpu_gpu_clk_info { flags: 0, clk_type, clk_domain: NVGPU_GPU_CLK_DOMAIN_GPCCLK, freq_hz };
        call.copy_out(at, info.as_bytes())?;
    }
    args.num_entries = count;
    Ok(())
}

pub(super) fn get_vf_points(call: &Call<'_>, _: &Arc<Ctrl>, args: &mut nvgpu_gpu_clk_vf_points_args) -> Reply {
    if args.flags != 0 {
        return Err(Errno::EINVAL.into());
    }
    gpc_clock(args.clk_domain)?;
    let points: Vec<_> =
        call.board.chip.frequencies.iter().map(|&freq_hz| nvgpu_gpu_clk_vf_point { freq_hz }).collect();
    let count = points.len() as u16;
    if args.max_entries == 0 {
        args.max_entries = count;
        return Ok(());
    }
    if args.max_entries < count {
        return Err(Errno::EINVAL.into());
    }
    call.copy_out(args.clk_vf_point_entries, points.as_bytes())?;
    args.num_entries = count;
    Ok(())
}

pub(super) fn set_info(call: &Call<'_>, ctrl: &Arc<Ctrl>, args: &mut nvgpu_gpu_clk_set_info_args) -> Reply {
    if args.flags != 0 || args.num_entries != 1 {
        return Err(Errno::EINVAL.into());
    }
    let asked: nvgpu_gpu_clk_info = call.copy_in_as(args.clk_info_entries)?;
    gpc_clock(asked.clk_domain)?;
    let (event, fd) = EventFd::new(0)?;
    *ctrl.request.lock() = Some(call.board.clocks.request(asked.freq_hz));
    // The new rate takes effect at once.
    event.post();
    call.files.enter(FileId::of(&fd)?, Arc::new(event));
    args.completion_fd = call.process.install(fd)?;
    Ok(())
}
