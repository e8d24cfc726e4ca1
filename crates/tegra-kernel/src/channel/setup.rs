//! SETUP_BIND: gives a channel its ring and puts it on the runlist (docs/hardware/nvgpu-channel.md#setup-bind,
//! docs/hardware/nvgpu-channel.md#kernel-mode-setup).

use super::fence::Fences;
use super::state::{Channel, ChannelState, Setup};
use crate::dispatch::{Call, Reply, as_r36};
use crate::nvmap::Buffer;
use crate::rule::Because;
use crate::space::KernelMapping;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32};
use tegra_hw::{HwChannel, Place};
use tegra_mm::Backing;
use tegrarm_abi::nvgpu::channel::*;
use tegrarm_abi::nvgpu::r35::nvgpu_channel_setup_bind_args_r35;
use tegrarm_abi::nvgpu::r39::{nvgpu_alloc_gpfifo_ex_args_r39, nvgpu_channel_setup_bind_args_r39};
use tegrarm_kmd::Errno;

/// The size of a GPFIFO entry in bytes.
const ENTRY: u64 = 8;
/// The timeout of PBDMA acquires while the watchdog runs, in percent of the watchdog's period.
const ACQUIRE_PERCENT: u64 = 80;

pub(super) fn setup_bind_r35(
    call: &Call<'_>,
    channel: &Arc<Channel>,
    args: &mut nvgpu_channel_setup_bind_args_r35,
) -> Reply {
    as_r36(args, |full| setup_bind(call, channel, full))
}

/// SETUP_BIND of r39. It also returns the channel's number in the hardware, and finds out about protected memory from
/// the context alone.
pub(super) fn setup_bind_r39(
    call: &Call<'_>,
    channel: &Arc<Channel>,
    args: &mut nvgpu_channel_setup_bind_args_r39,
) -> Reply {
    as_r36(args, |full| setup_bind(call, channel, full))?;
    args.hw_channel_id = channel.id();
    Ok(())
}

/// The same as [`alloc_gpfifo_ex`]. It also returns the channel's number in the hardware.
pub(super) fn alloc_gpfifo_ex_r39(
    call: &Call<'_>,
    channel: &Arc<Channel>,
    args: &mut nvgpu_alloc_gpfifo_ex_args_r39,
) -> Reply {
    as_r36(args, |full| alloc_gpfifo_ex(call, channel, full))?;
    args.hw_channel_id = channel.id();
    Ok(())
}

/// The old kernel-mode form.
pub(super) fn alloc_gpfifo_ex(call: &Call<'_>, channel: &Arc<Channel>, args: &mut nvgpu_alloc_gpfifo_ex_args) -> Reply {
    let mut full: nvgpu_channel_setup_bind_args = zerocopy::FromZeros::new_zeroed();
    full.num_gpfifo_entries = args.num_entries;
    full.num_inflight_jobs = args.num_inflight_jobs;
    full.flags = args.flags & !NVGPU_CHANNEL_SETUP_BIND_FLAGS_USERMODE_SUPPORT;
    setup_bind(call, channel, &mut full)
}

pub(super) fn setup_bind(call: &Call<'_>, channel: &Arc<Channel>, args: &mut nvgpu_channel_setup_bind_args) -> Reply {
    let flag = |bit| args.flags & bit != 0;
    let usermode = flag(NVGPU_CHANNEL_SETUP_BIND_FLAGS_USERMODE_SUPPORT);
    let deterministic = flag(NVGPU_CHANNEL_SETUP_BIND_FLAGS_DETERMINISTIC);
    let mut state = channel.state.lock();
    check(&state, args.num_gpfifo_entries, usermode, deterministic)?;
    if call.is_r39() && flag(NVGPU_CHANNEL_SETUP_BIND_FLAGS_VPR_ENABLED) {
        return Err(Errno::EINVAL.because("r39 takes VPR from the context, and has no such flag").into());
    }
    let memory = match usermode {
        true => Memory::of_caller(call, &state, args)?,
        false => Memory::of_kernel(&state, args.num_gpfifo_entries)?,
    };
    let fences = match &state.space {
        Some(space) if !usermode => Some(Fences::new(call, space, args)?),
        _ => None,
    };
    if !call.is_r35() && !state.bound_with_space {
        tracing::error!(
            "SETUP_BIND of a channel that was in its TSG before it had an address space: a board's kernel dereferences NULL here"
        );
        return Err(Errno::EFAULT.into());
    }
    if call.board.config.strict {
        memory.check_ring_register()?;
    }
    let (Some(space), Some(tsg)) = (&state.space, &state.tsg) else { return Err(Errno::EINVAL.into()) };
    let acquire_ms = u64::from(state.watchdog.timeout_ms) * ACQUIRE_PERCENT / 100;
    let hw = Arc::new(HwChannel {
        id: channel.id(),
        runlist: channel.runlist,
        veid: state.veid,
        tsg: tsg.hw.clone(),
        space: space.hw.clone(),
        ring: memory.ring,
        entries: args.num_gpfifo_entries,
        userd: memory.userd,
        vitals: channel.vitals.clone(),
        enabled: AtomicBool::new(true),
        gp_get: AtomicU32::new(0),
        acquire_timeout_ms: AtomicU32::new(if state.watchdog.enabled { acquire_ms as u32 } else { 0 }),
    });
    let token = hw.token();
    call.board.hw.faults.forget(channel.id());
    call.board.gpu.add_channel(hw.clone()).map_err(|_| Errno::EAGAIN)?;
    state.enabled = true;
    state.setup = Some(Setup {
        hw,
        usermode,
        deterministic,
        railgating_allowed: false,
        on_runlist: true,
        _ring: memory.mapping,
        fences,
        _buffers: memory.buffers,
    });
    state.watch(channel);
    args.work_submit_token = token;
    // The three addresses are 0 on ga10b.
    args.gpfifo_gpu_va = 0;
    args.userd_gpu_va = 0;
    args.usermode_mmio_gpu_va = 0;
    Ok(())
}

/// Checks rules 1 to 6 of docs/hardware/nvgpu-channel.md#setup-bind.
fn check(state: &ChannelState, entries: u32, usermode: bool, deterministic: bool) -> Result<(), Errno> {
    let least = if usermode { 2 } else { 4 };
    if entries < least || !entries.is_power_of_two() || entries > u32::MAX / ENTRY as u32 {
        let rule = format!("num_gpfifo_entries is {entries}: a power of two is needed, and at least {least}");
        return Err(Errno::EINVAL.because(rule));
    }
    if state.space.is_none() {
        return Err(Errno::EINVAL.because("the channel is not bound to an address space (AS BIND_CHANNEL)"));
    }
    if state.tsg.is_none() {
        return Err(Errno::EINVAL.because("the channel is in no TSG (TSG BIND_CHANNEL)"));
    }
    if state.setup.is_some() {
        return Err(Errno::EEXIST.because("the channel has been set up before"));
    }
    if deterministic && state.watchdog.enabled {
        return Err(Errno::EINVAL.because("DETERMINISTIC needs the channel's watchdog off (CHANNEL WDT)"));
    }
    if usermode && !deterministic {
        return Err(Errno::EINVAL.because("USERMODE_SUPPORT needs DETERMINISTIC, too"));
    }
    Ok(())
}

/// The ring and USERD of a channel, with their memory.
struct Memory {
    ring: Place,
    userd: Place,
    mapping: KernelMapping,
    buffers: Vec<Arc<Buffer>>,
}

impl Memory {
    /// Checks that the ring's address fits into the host's registers, which have 40 bits. A board froze when an address
    /// space ended so near to that limit that the kernel had to place the ring above it. No board refuses this.
    fn check_ring_register(&self) -> Reply {
        const REACHED: u64 = 1 << 40;
        let end = self.mapping.va + self.ring.backing.len() as u64;
        if end <= REACHED {
            return Ok(());
        }
        tracing::error!(
            "SETUP_BIND: the kernel maps the ring at {:#x}..{end:#x}, and a ring above {REACHED:#x} is believed to freeze \
             a board: let the address space end at 0xff00000000 or below (strict mode refuses with EFAULT)",
            self.mapping.va
        );
        Err(Errno::EFAULT.into())
    }

    /// Rules 8 to 13: the ring and USERD are dmabufs of the caller.
    fn of_caller(call: &Call<'_>, state: &ChannelState, args: &nvgpu_channel_setup_bind_args) -> Reply<Memory> {
        if args.gpfifo_dmabuf_fd == 0 || args.userd_dmabuf_fd == 0 {
            return Err(Errno::EINVAL
                .because("usermode needs dmabufs for the ring and for USERD, other than 0")
                .into());
        }
        if args.gpfifo_dmabuf_offset != 0 || args.userd_dmabuf_offset != 0 {
            return Err(Errno::EINVAL.because("the ring and USERD begin at offset 0 of their dmabufs").into());
        }
        let ring = call.dmabuf(args.gpfifo_dmabuf_fd)?.buffer;
        let ring_pages = ring.pages()?;
        let needed = (u64::from(args.num_gpfifo_entries) * ENTRY).max(4096);
        if ring.size < needed {
            let rule = format!("the dmabuf of the ring has {:#x} bytes, and {needed:#x} are needed", ring.size);
            return Err(Errno::EINVAL.because(rule).into());
        }
        let space = state.space.as_ref().ok_or(Errno::EINVAL)?;
        // The whole dmabuf is mapped, even if the ring needs less.
        let mapping = space.map_kernel(ring_pages.clone(), 0, ring.size, false)?;
        let userd = call.dmabuf(args.userd_dmabuf_fd)?.buffer;
        let userd_pages = userd.pages()?;
        Ok(Memory {
            ring: Place { backing: ring_pages, offset: 0 },
            userd: Place { backing: userd_pages, offset: 0 },
            mapping,
            buffers: vec![ring, userd],
        })
    }

    /// In kernel mode the kernel owns the ring and USERD.
    fn of_kernel(state: &ChannelState, entries: u32) -> Reply<Memory> {
        let space = state.space.as_ref().ok_or(Errno::EINVAL)?;
        let size = u64::from(entries) * ENTRY;
        let fresh = |name, len| Backing::anonymous(name, len).map(Arc::new).map_err(|_| Errno::ENOMEM);
        let (ring, userd) = (fresh("nvgpu-gpfifo", size as usize)?, fresh("nvgpu-userd", 4096)?);
        let mapping = space.map_kernel(ring.clone(), 0, size, true)?;
        let place = |backing| Place { backing, offset: 0 };
        Ok(Memory { ring: place(ring), userd: place(userd), mapping, buffers: Vec::new() })
    }
}
