//! The CLK_* ioctls, which read the GPC clock and ask for a rate (docs/hardware/nvgpu-ctrl.md#clocks).

use super::node::Ctrl;
use crate::clocks::{MHZ, Request};
use crate::dispatch::{Call, Reply};
use crate::event::EventFd;
use crate::files::OpenFile;
use crate::process::FileId;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tegrarm_abi::nvgpu::ctrl::*;
use tegrarm_kmd::Errno;
use zerocopy::IntoBytes;

/// What a clock request can be waited for with. While it is open, devfreq does not change the clock.
#[derive(Debug)]
struct Completion {
    event: EventFd,
    _request: Request,
}

impl OpenFile for Completion {
    fn our_end(&self) -> Option<OwnedFd> {
        self.event.our_end()
    }
}

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

/// A rate as the arbiter tells it.
fn whole_mhz(hz: u64) -> u64 {
    hz / MHZ * MHZ
}

/// A program's rate in MHz, as the driver takes it: at most 16 bits, and a little less than the quotient above 4 GHz.
fn asked_mhz(hz: u64) -> u64 {
    const TOO_MUCH: u64 = 0xf_414f_9cd7;
    match hz {
        _ if hz > TOO_MUCH => 0xffff,
        _ if hz >> 32 > 0 => (hz * 0x10c8) >> 32,
        _ => hz / MHZ,
    }
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
            min_hz: whole_mhz(chip.min_frequency()),
            max_hz: whole_mhz(chip.max_frequency()),
        };
        call.copy_out(at, range.as_bytes())?;
    }
    args.num_entries = count;
    Ok(())
}

pub(super) fn get_info(call: &Call<'_>, ctrl: &Arc<Ctrl>, args: &mut nvgpu_gpu_clk_get_info_args) -> Reply {
    let Some(count) = entries(args.flags, args.num_entries, 3)? else {
        args.num_entries = 1;
        return Ok(());
    };
    for i in 0..u64::from(count) {
        let at = args.clk_info_entries.wrapping_add(i * size_of::<nvgpu_gpu_clk_info>() as u64);
        let (clk_type, clk_domain) = if args.flags == NVGPU_GPU_CLK_FLAG_SPECIFIC_DOMAINS {
            let asked: nvgpu_gpu_clk_info = call.copy_in_as(at)?;
            (asked.clk_type, asked.clk_domain)
        } else {
            (args.clk_type, NVGPU_GPU_CLK_DOMAIN_GPCCLK)
        };
        let clocks = &call.board.clocks;
        let freq_hz = match u32::from(clk_type) {
            NVGPU_GPU_CLK_TYPE_TARGET => ctrl.session.target() * MHZ,
            NVGPU_GPU_CLK_TYPE_ACTUAL => clocks.actual() * MHZ,
            NVGPU_GPU_CLK_TYPE_EFFECTIVE => whole_mhz(clocks.current()),
            _ => return Err(Errno::EINVAL.into()),
        };
        gpc_clock(clk_domain)?;
        let info = nvgpu_gpu_clk_info { flags: 0, clk_type, clk_domain, freq_hz };
        call.copy_out(at, info.as_bytes())?;
    }
    args.num_entries = count;
    Ok(())
}

/// Copies the points one after the other. A pointer that breaks off gives the size of a point as the result.
pub(super) fn get_vf_points(call: &Call<'_>, _: &Arc<Ctrl>, args: &mut nvgpu_gpu_clk_vf_points_args) -> Reply {
    if args.flags != 0 {
        return Err(Errno::EINVAL.into());
    }
    gpc_clock(args.clk_domain)?;
    args.num_entries = 0;
    let points = call.board.chip.frequencies;
    if args.max_entries == 0 {
        args.max_entries = points.len() as u16;
        return Ok(());
    }
    if usize::from(args.max_entries) < points.len() {
        return Err(Errno::EINVAL.into());
    }
    for (i, &hz) in (0u64..).zip(points) {
        let point = nvgpu_gpu_clk_vf_point { freq_hz: whole_mhz(hz) };
        let at = args.clk_vf_point_entries.wrapping_add(i * size_of::<nvgpu_gpu_clk_vf_point>() as u64);
        call.copy_out_counted(at, point.as_bytes())?;
    }
    args.num_entries = points.len() as u16;
    Ok(())
}

pub(super) fn set_info(call: &Call<'_>, ctrl: &Arc<Ctrl>, args: &mut nvgpu_gpu_clk_set_info_args) -> Reply {
    if args.flags != 0 || args.num_entries != 1 {
        return Err(Errno::EINVAL.into());
    }
    let asked: nvgpu_gpu_clk_info = call.copy_in_as(args.clk_info_entries)?;
    gpc_clock(asked.clk_domain)?;
    let (event, fd) = EventFd::new(0)?;
    let request = ctrl.session.request(asked_mhz(asked.freq_hz));
    // The new rate takes effect at once.
    event.post();
    call.files.enter(FileId::of(&fd)?, Arc::new(Completion { event, _request: request }));
    args.completion_fd = call.process.install(fd)?;
    Ok(())
}
