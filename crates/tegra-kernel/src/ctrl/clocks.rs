//! The GPC clock: CLK_* ioctls and devfreq (docs/hardware/nvgpu-ctrl.md#clocks, docs/hardware/nvgpu-nodes.md#sysfs).

use super::Ctrl;
use crate::chip::ChipData;
use crate::dispatch::{Call, Reply};
use crate::event::EventFd;
use crate::files::Object;
use crate::process::FileId;
use parking_lot::Mutex;
use std::sync::{Arc, Weak};
use tegrarm_abi::nvgpu::ctrl::*;
use tegrarm_kmd::Errno;
use zerocopy::IntoBytes;

/// The clock state of the GPU. Programs read and write it, but the simulation does not run faster for it.
#[derive(Debug)]
pub(crate) struct Clocks {
    chip: &'static ChipData,
    state: Mutex<FrequencyLimits>,
}

/// The bounds of the frequency: devfreq, and the requests of clock sessions.
#[derive(Debug)]
struct FrequencyLimits {
    min: u64,
    max: u64,
    /// The requests of clock sessions. The newest one that still exists overrides devfreq.
    requests: Vec<(u64, Weak<Request>)>,
}

/// A CLK_SET_INFO request. Its session keeps it.
#[derive(Debug)]
struct Request;

/// The clock requests of one open ctrl node.
#[derive(Debug, Default)]
pub(super) struct Session {
    request: Mutex<Option<Arc<Request>>>,
}

impl Clocks {
    pub(crate) fn new(chip: &'static ChipData) -> Clocks {
        let state = FrequencyLimits { min: chip.min_frequency(), max: chip.max_frequency(), requests: Vec::new() };
        Clocks { chip, state: Mutex::new(state) }
    }

    /// The lowest step that is at least `hz`, or else the highest step.
    fn round(&self, hz: u64) -> u64 {
        self.chip.frequencies.iter().copied().find(|step| *step >= hz).unwrap_or(self.chip.max_frequency())
    }

    /// The limits of devfreq.
    pub(crate) fn limits(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.min, state.max)
    }

    pub(crate) fn set_min(&self, hz: u64) {
        let mut state = self.state.lock();
        state.min = self.round(hz).min(state.max);
    }

    pub(crate) fn set_max(&self, hz: u64) {
        let mut state = self.state.lock();
        state.max = self.round(hz).max(state.min);
    }

    /// The rate now: that of a request that exists, or else devfreq's lower limit, because the simulated load is nil.
    pub(crate) fn current(&self) -> u64 {
        let mut state = self.state.lock();
        state.requests.retain(|(_, request)| request.strong_count() > 0);
        state.requests.last().map_or(state.min, |(hz, _)| *hz)
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

pub(super) fn get_range(call: &Call<'_>, _: &Arc<Ctrl>, args: &mut nvgpu_gpu_clk_range_args) -> Reply {
    let Some(count) = entries(args.flags, args.num_entries, 1)? else {
        args.num_entries = 1;
        return Ok(());
    };
    let chip = call.kernel.chip;
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
        let freq_hz = call.kernel.clocks.current();
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
        call.kernel.chip.frequencies.iter().map(|&freq_hz| nvgpu_gpu_clk_vf_point { freq_hz }).collect();
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
    let request = Arc::new(Request);
    let clocks = &call.kernel.clocks;
    clocks.state.lock().requests.push((clocks.round(asked.freq_hz), Arc::downgrade(&request)));
    *ctrl.session.request.lock() = Some(request);
    // The new rate takes effect at once.
    event.post();
    call.kernel.enter(FileId::of(&fd)?, Object::Event { keeps: Arc::new(event) });
    args.completion_fd = call.process.install(fd)?;
    Ok(())
}
