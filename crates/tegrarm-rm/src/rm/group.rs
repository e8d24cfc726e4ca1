//! Channel groups and their context shares.

use super::gpu::Gpu;
use super::vaspace::VaSpace;
use crate::status::{During, RmResult, fail};
use crate::tegra::{AddressSpace, Tsg};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use tegrarm_abi::nvgpu::channel::NVGPU_RUNLIST_INTERLEAVE_LEVEL_LOW;
use tegrarm_abi::nvgpu::ctrl::{NVGPU_GPU_ENGINE_ID_ASYNC_COPY, NVGPU_GPU_ENGINE_ID_GR_COPY};
use tegrarm_abi::rm::alloc::*;
use tegrarm_abi::rm::status::*;

/// nvgpu's number for the graphics runlist.
const GRAPHICS_RUNLIST: i32 = -1;

/// A channel group.
pub struct Group {
    /// Its TSG.
    pub tsg: Tsg,
    /// The VA space of channels that do not name one.
    pub space: Arc<VaSpace>,
    /// Whether the group itself was given a VA space.
    pub has_own_space: bool,
    /// The runlist its channels go to.
    pub runlist: i32,
    /// True if the client disabled the group.
    disabled: AtomicBool,
    /// The interleave level. It is kept here, because no ioctl of a TSG reports it.
    level: AtomicU32,
}

/// A subcontext.
pub struct ContextShare {
    /// Its group.
    pub group: Arc<Group>,
    /// Its VA space.
    pub space: Arc<VaSpace>,
    /// nvgpu compares the address spaces of channels with this one but keeps no reference to it, so the share keeps
    /// one.
    _address_space: Arc<AddressSpace>,
    /// The VEID of the subcontext.
    pub veid: u32,
}

impl Group {
    /// Opens a TSG for channels of one engine type (`NV2080_ENGINE_TYPE_*`).
    ///
    /// # Errors
    /// INVALID_ARGUMENT for an engine the GPU does not have, NO_MEMORY when there are no more TSGs.
    pub fn new(gpu: &Gpu, engine_type: u32, space: Arc<VaSpace>, has_own_space: bool) -> RmResult<Arc<Group>> {
        let runlist = runlist(gpu, engine_type)?;
        let tsg = gpu.ctrl.open_tsg().during(|| "opening a TSG")?;
        Ok(Arc::new(Group {
            tsg,
            space,
            has_own_space,
            runlist,
            disabled: AtomicBool::new(false),
            level: AtomicU32::new(FIRST_LEVEL),
        }))
    }

    /// Sets how often the group occurs in the runlist, from 0 to 2.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_ARGUMENT` for another level, and the kernel's errno.
    pub fn set_interleave(&self, level: u32) -> RmResult<()> {
        self.tsg.set_interleave(level).during(|| format!("setting the interleave level {level}"))?;
        self.level.store(level, Ordering::Relaxed);
        Ok(())
    }

    /// The interleave level of the group.
    pub fn interleave(&self) -> u32 {
        self.level.load(Ordering::Relaxed)
    }

    /// Enables or disables the channels of the group. They are enabled from the start, so the first enabling changes
    /// nothing.
    ///
    /// # Errors
    /// The kernel's errno.
    pub fn schedule(&self, enable: bool) -> RmResult<()> {
        if self.disabled.load(Ordering::Relaxed) == enable {
            self.tsg.set_enabled(enable).during(|| format!("scheduling the channel group: {enable}"))?;
            self.disabled.store(!enable, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// The interleave level of a new TSG.
const FIRST_LEVEL: u32 = NVGPU_RUNLIST_INTERLEAVE_LEVEL_LOW;

/// The runlist of an engine type. Copy engines that share the graphics runlist are reached through that one.
fn runlist(gpu: &Gpu, engine_type: u32) -> RmResult<i32> {
    match engine_type {
        NV2080_ENGINE_TYPE_NULL | NV2080_ENGINE_TYPE_GR0 => Ok(GRAPHICS_RUNLIST),
        NV2080_ENGINE_TYPE_COPY0..=NV2080_ENGINE_TYPE_COPY9 => {
            let instance = engine_type - NV2080_ENGINE_TYPE_COPY0;
            let copies = gpu
                .engines()?
                .iter()
                .filter(|e| matches!(e.engine_id, NVGPU_GPU_ENGINE_ID_GR_COPY | NVGPU_GPU_ENGINE_ID_ASYNC_COPY));
            match copies.into_iter().nth(instance as usize) {
                Some(engine) if engine.engine_id == NVGPU_GPU_ENGINE_ID_GR_COPY => Ok(GRAPHICS_RUNLIST),
                Some(engine) => Ok(engine.runlist_id),
                None => fail!(NV_ERR_INVALID_ARGUMENT, "the GPU has no copy engine {instance}"),
            }
        }
        _ => fail!(
            NV_ERR_INVALID_ARGUMENT,
            "engine type {engine_type:#x} is neither graphics ({NV2080_ENGINE_TYPE_GR0}) nor a copy engine (from {NV2080_ENGINE_TYPE_COPY0})"
        ),
    }
}

impl ContextShare {
    /// Creates a subcontext.
    ///
    /// # Errors
    /// INSUFFICIENT_RESOURCES when no subcontext is free, NOT_SUPPORTED for a particular id that the kernel does not
    /// hand out, INVALID_ARGUMENT for bad flags.
    pub fn new(group: &Arc<Group>, space: &Arc<VaSpace>, flags: u32, wanted: u32) -> RmResult<ContextShare> {
        let synchronous = match flags {
            NV_CTXSHARE_ALLOCATION_FLAGS_SUBCONTEXT_SYNC => true,
            NV_CTXSHARE_ALLOCATION_FLAGS_SUBCONTEXT_ASYNC
            | NV_CTXSHARE_ALLOCATION_FLAGS_SUBCONTEXT_ASYNC_PREFER_LOWER => false,
            NV_CTXSHARE_ALLOCATION_FLAGS_SUBCONTEXT_SPECIFIED => wanted == 0,
            _ => fail!(NV_ERR_INVALID_ARGUMENT, "context share flags {flags:#x} are none of 0, 1, 2, 3"),
        };
        let address_space = space.space()?.clone();
        let veid = group.tsg.create_subcontext(&address_space, synchronous).map_err(|e| {
            let mut error = crate::status::RmError::from(e);
            if error.status == NV_ERR_NO_MEMORY {
                error.status = NV_ERR_INSUFFICIENT_RESOURCES;
            }
            error.during("creating a subcontext")
        })?;
        let share = ContextShare { group: group.clone(), space: space.clone(), _address_space: address_space, veid };
        if flags == NV_CTXSHARE_ALLOCATION_FLAGS_SUBCONTEXT_SPECIFIED && veid != wanted {
            fail!(NV_ERR_NOT_SUPPORTED, "the kernel hands out subcontext {veid} next, not {wanted}: use flags 1");
        }
        Ok(share)
    }
}

impl Drop for ContextShare {
    fn drop(&mut self) {
        self.group.tsg.delete_subcontext(self.veid);
    }
}
