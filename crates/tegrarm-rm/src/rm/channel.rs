//! Channels. RM's clients see a ring inside a buffer of theirs, and nvgpu wants a ring of its own; this file brings the
//! two together.

use super::gpu::Gpu;
use super::group::{ContextShare, Group};
use super::store::{Overlay, Store};
use super::vaspace::VaSpace;
use crate::status::{During, RmError, RmResult, fail};
use crate::tegra::{AddressSpace, Backing, CacheMode, Channel, KernelError, PAGE};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tegrarm_abi::nvgpu::channel::nvgpu_notification;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::{DeviceMem, Placement, Prot};

/// The size of a GPFIFO entry in bytes.
const ENTRY: u64 = 8;
/// The value of `nvgpu_notification.status` after a notification was written.
const WRITTEN: u32 = 0xffff;

/// Everything that is needed to make a channel.
pub struct ChannelPlan {
    /// Its group.
    pub group: Arc<Group>,
    /// Its subcontext, when the client made one.
    pub share: Option<Arc<ContextShare>>,
    /// Its VA space.
    pub space: Arc<VaSpace>,
    /// The GPU address of the ring in that space.
    pub ring_va: u64,
    /// The number of entries, which is a power of two.
    pub entries: u32,
    /// The buffer that contains USERD.
    pub userd: Arc<Store>,
    /// The offset of USERD in that buffer.
    pub userd_offset: u64,
    /// The buffer into which errors are written.
    pub notifier: Option<Arc<Store>>,
}

/// A channel that can run. Its fields are dropped in this order, so that the channel closes before its buffers and its
/// group.
pub struct ChannelObject {
    bound: Bound,
    ring: Shown,
    userd: Shown,
    /// Its subcontext.
    pub share: Option<Arc<ContextShare>>,
    /// Its group.
    pub group: Arc<Group>,
    _space: Arc<AddressSpace>,
    notifier: Option<Arc<Store>>,
    /// The work submit token, which is written to the doorbell.
    pub token: u32,
    /// True if the client disabled the channel.
    disabled: AtomicBool,
}

/// A channel in its group. With a subcontext of the client's it leaves the group before it closes, because the
/// subcontext would end with its last channel.
struct Bound {
    channel: Channel,
    group: Arc<Group>,
    leaves: bool,
}

impl Drop for Bound {
    fn drop(&mut self) {
        if self.leaves {
            self.group.tsg.unbind(&self.channel);
        }
    }
}

/// A buffer of the channel that is mapped over the client's view of the buffer that it named.
struct Shown {
    overlay: Arc<Overlay>,
    over: Arc<Store>,
    /// The addresses at which mappings that this library did not make show the range.
    foreign: Vec<u64>,
}

/// The error that killed a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelError {
    /// The `NVGPU_CHANNEL_*` error code, or 0 if the channel died without a notifier into which a code could be
    /// written.
    pub code: u32,
}

impl ChannelObject {
    /// Makes a channel that can run.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a bad number of entries, INVALID_OFFSET when the ring or USERD lies where the CPU and the
    /// kernel cannot share it, INSUFFICIENT_RESOURCES when all channels are in use, and otherwise the kernel's refusal.
    /// A failed call leaves nothing behind.
    pub fn new(gpu: &Gpu, plan: ChannelPlan) -> RmResult<ChannelObject> {
        let (area, ring_offset) = find_ring(&plan, gpu)?;
        check_userd(&plan, &area, ring_offset)?;
        let space = plan.space.space_for_channel()?.clone();
        let ring = Backing::new(&gpu.nvmap, u64::from(plan.entries) * ENTRY, CacheMode::WriteCombine)
            .during(|| "allocating the ring")?;
        let userd = Backing::new(&gpu.nvmap, PAGE, CacheMode::WriteCombine).during(|| "allocating the USERD page")?;
        let (ring, userd) = (Arc::new(ring), Arc::new(userd));

        let channel = gpu.ctrl.open_channel(plan.group.runlist).map_err(none_left)?;
        space.bind(&channel).during(|| "binding the channel to its address space")?;
        let veid = plan.share.as_ref().map_or(0, |s| s.veid);
        plan.group.tsg.bind(&channel, veid).during(|| format!("binding the channel to its TSG, VEID {veid}"))?;
        let bound = Bound { channel, group: plan.group.clone(), leaves: plan.share.is_some() };
        let channel = &bound.channel;
        channel.disable_watchdog().during(|| "turning the channel's watchdog off")?;
        let token = channel
            .setup_bind(plan.entries, &ring, &userd)
            .during(|| format!("setting up a ring of {} entries", plan.entries))?;
        if let Some(notifier) = &plan.notifier {
            channel.set_error_notifier(notifier.backing()).during(|| "setting the error notifier")?;
        }
        let ring = Shown::new(&ring, area, ring_offset).during(|| "showing the ring")?;
        let userd = Shown::new(&userd, plan.userd, plan.userd_offset).during(|| "showing the USERD page")?;
        Ok(ChannelObject {
            bound,
            ring,
            userd,
            share: plan.share,
            group: plan.group,
            _space: space,
            notifier: plan.notifier,
            token,
            disabled: AtomicBool::new(false),
        })
    }

    /// The number of the channel, which is also the low half of its work submit token.
    pub fn id(&self) -> u32 {
        self.token & 0xffff
    }

    /// The nvgpu channel.
    pub fn channel(&self) -> &Channel {
        &self.bound.channel
    }

    /// Enables or disables the channel on the host engine. A channel is enabled from the start, so the first enabling
    /// changes nothing.
    ///
    /// # Errors
    /// RC_ERROR when a channel that died is to be enabled, because the kernel would agree and never run it. Otherwise
    /// the kernel's errno.
    pub fn schedule(&self, enable: bool) -> RmResult<()> {
        if enable {
            self.check_alive()?;
        }
        if self.disabled.load(Ordering::Relaxed) == enable {
            self.bound.channel.set_enabled(enable).during(|| format!("scheduling the channel: {enable}"))?;
            self.disabled.store(!enable, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Checks that the channel can still run.
    ///
    /// # Errors
    /// RC_ERROR when it died, or those of [`ChannelObject::error`].
    pub fn check_alive(&self) -> RmResult<()> {
        match self.error()? {
            None => Ok(()),
            Some(ChannelError { code }) => {
                fail!(NV_ERR_RC_ERROR, "channel {} died of error {code}: free it and allocate another", self.id())
            }
        }
    }

    /// The error that killed the channel, or `None` while it is alive.
    ///
    /// # Errors
    /// The kernel's errno, or an error in reading the notifier.
    pub fn error(&self) -> RmResult<Option<ChannelError>> {
        if !self.bound.channel.is_dead().during(|| "asking for the channel's state")? {
            return Ok(None);
        }
        let Some(notifier) = &self.notifier else { return Ok(Some(ChannelError { code: 0 })) };
        let page = notifier.backing().map_cpu(Placement::Anywhere, PAGE, 0, Prot::Read)?;
        let page = DeviceMem::new(page);
        // The status is the upper half of its word, and it is written last.
        let status = page.read_u32(std::mem::offset_of!(nvgpu_notification, info16)) >> 16;
        let code = page.read_u32(std::mem::offset_of!(nvgpu_notification, info32));
        Ok(Some(ChannelError { code: if status == WRITTEN { code } else { 0 } }))
    }

    /// The ranges of the ring and of USERD, for messages. The client must not unmap its view of them.
    pub fn describe(&self) -> String {
        let (ring, userd) = (self.ring.overlay.range(), self.userd.overlay.range());
        format!("channel {}: ring at {:#x}, USERD at {:#x} of their buffers", self.id(), ring.start, userd.start)
    }
}

impl Shown {
    /// Maps `source` over `over` from `offset` on, at every place where the process sees that part: in mappings that
    /// the library made, and in mappings that the client made of a descriptor it was lent. `/proc/self/maps` lists the
    /// latter.
    fn new(source: &Arc<Backing>, over: Arc<Store>, offset: u64) -> RmResult<Shown> {
        let overlay = Overlay::new(source, offset);
        let range = overlay.range();
        let foreign = over.foreign_views(&range)?;
        if over.is_lent() && foreign.is_empty() && !over.is_seen(&range) {
            fail!(
                NV_ERR_INVALID_OFFSET,
                "bytes {range:#x?} of the buffer are mapped nowhere in the process: mmap its descriptor first"
            );
        }
        over.cover(&overlay)?;
        let mut shown = Shown { overlay, over, foreign: Vec::new() };
        for addr in foreign {
            shown.over.cover_foreign(&shown.overlay, addr)?;
            shown.foreign.push(addr);
        }
        Ok(shown)
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.over.uncover(&self.overlay);
        for addr in &self.foreign {
            self.over.uncover_foreign(&self.overlay, *addr);
        }
    }
}

/// nvgpu answers `ENOMEM` when all its channels are in use. For a client of RM, "no memory" would mean that freeing
/// buffers could help, so the error is translated.
fn none_left(e: KernelError) -> RmError {
    let mut error = RmError::from(e);
    if error.status == NV_ERR_NO_MEMORY {
        error.status = NV_ERR_INSUFFICIENT_RESOURCES;
    }
    error.during("opening a channel")
}

/// The buffer that contains the ring, and the offset of the ring in it. The kernel's ring takes whole pages of the
/// buffer.
fn find_ring(plan: &ChannelPlan, gpu: &Gpu) -> RmResult<(Arc<Store>, u64)> {
    let (va, entries) = (plan.ring_va, plan.entries);
    let most = gpu.characteristics().max_gpfifo_entries;
    if !entries.is_power_of_two() || entries < 2 || entries > most {
        fail!(NV_ERR_INVALID_ARGUMENT, "{entries} GPFIFO entries: must be a power of two, 2 to {most:#x}");
    }
    let Some((start, map)) = plan.space.find(va) else {
        fail!(
            NV_ERR_INVALID_OFFSET,
            "nothing is mapped at gpFifoOffset {va:#x} in the channel's VA space: map it first"
        );
    };
    let offset = map.offset + (va - start);
    let bytes = (u64::from(entries) * ENTRY).next_multiple_of(PAGE);
    if !offset.is_multiple_of(PAGE) {
        fail!(
            NV_ERR_INVALID_OFFSET,
            "gpFifoOffset {va:#x} is {offset:#x} into its buffer: must be a multiple of {PAGE:#x}"
        );
    }
    if va - start + bytes > map.len || offset + bytes > map.store.size() {
        fail!(
            NV_ERR_INVALID_OFFSET,
            "a ring of {entries} entries needs {bytes:#x} bytes from {va:#x}; the mapping ends at {:#x}",
            start + map.len
        );
    }
    Ok((map.store, offset))
}

fn check_userd(plan: &ChannelPlan, area: &Arc<Store>, ring_offset: u64) -> RmResult<()> {
    let (at, size) = (plan.userd_offset, plan.userd.size());
    if !at.is_multiple_of(PAGE) || at.checked_add(PAGE).is_none_or(|end| end > size) {
        fail!(
            NV_ERR_INVALID_OFFSET,
            "userdOffset {at:#x} of a buffer of {size:#x} bytes: USERD is one page of {PAGE:#x}, on a page boundary"
        );
    }
    let ring = ring_offset..ring_offset + (u64::from(plan.entries) * ENTRY).next_multiple_of(PAGE);
    if Arc::ptr_eq(area, &plan.userd) && at + PAGE > ring.start && at < ring.end {
        fail!(
            NV_ERR_INVALID_OFFSET,
            "USERD at {at:#x} lies in the pages {:#x}..{:#x} of the ring: they become buffers of their own",
            ring.start,
            ring.end
        );
    }
    Ok(())
}
