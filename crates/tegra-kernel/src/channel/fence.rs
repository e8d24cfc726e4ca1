//! Fences of kernel-mode submits. The kernel puts command words of its own around the caller's entries.

use super::ChannelState;
use super::sync::ChannelSyncpoint;
use crate::dispatch::{Call, Reply};
use crate::space::{AddressSpace, KernelMapping};
use crate::syncpoint::COUNT;
use std::sync::Arc;
use tegra_hw::Syncpoint;
use tegra_mm::{Backing, SYNCPOINT_STRIDE};
use tegrarm_abi::methods::host::*;
use tegrarm_abi::nvgpu::channel::nvgpu_fence;
use tegrarm_kmd::Errno;

/// The number of words of one fence: a method header and five semaphore methods.
const WORDS: usize = 6;
/// The distance between fences in bytes. Each ring entry has one slot.
const SLOT: usize = 32;

/// Everything from which a kernel-mode channel makes fences.
#[derive(Debug)]
pub(crate) struct Fences {
    commands: Arc<Backing>,
    mapping: KernelMapping,
    /// The channel's own syncpoint and the value for which its last fence waits. Both are made with the first fence.
    syncpoint: Option<(ChannelSyncpoint, u32)>,
}

impl Fences {
    pub(super) fn new(state: &ChannelState, entries: u32) -> Reply<Fences> {
        let space = state.space.as_ref().ok_or(Errno::EINVAL)?;
        let size = entries as usize * SLOT;
        let commands = Arc::new(Backing::anonymous("nvgpu-commands", size).map_err(|_| Errno::ENOMEM)?);
        let mapping = space.map_kernel(commands.clone(), 0, size as u64, false)?;
        Ok(Fences { commands, mapping, syncpoint: None })
    }

    /// Makes a ring entry that waits until a syncpoint has reached a value.
    pub(super) fn wait(&self, call: &Call<'_>, space: &AddressSpace, slot: u32, fence: nvgpu_fence) -> Reply<u64> {
        if fence.id >= COUNT {
            return Err(Errno::EINVAL.into());
        }
        let base = space.map_syncpoints(call.kernel.syncpoints.aperture()?)?;
        let va = base + u64::from(fence.id) * SYNCPOINT_STRIDE as u64;
        let execute = NVC56F_SEM_EXECUTE_OPERATION.put(NVC56F_SEM_EXECUTE_OPERATION_ACQ_CIRC_GEQ)
            | NVC56F_SEM_EXECUTE_ACQUIRE_SWITCH_TSG.put(NVC56F_SEM_EXECUTE_ACQUIRE_SWITCH_TSG_EN);
        self.emit(slot, va, fence.value, execute)
    }

    /// Makes a ring entry that increments the channel's syncpoint, and returns the value that the syncpoint has then.
    pub(super) fn signal(
        &mut self,
        call: &Call<'_>,
        space: &Arc<AddressSpace>,
        slot: u32,
    ) -> Reply<(u64, Arc<Syncpoint>, u32)> {
        if self.syncpoint.is_none() {
            let fresh = ChannelSyncpoint::new(&call.kernel.syncpoints, space)?;
            let value = fresh.point().value();
            self.syncpoint = Some((fresh, value));
        }
        let Some((syncpoint, last)) = &mut self.syncpoint else { return Err(Errno::ENOMEM.into()) };
        *last = last.wrapping_add(1);
        let (va, point, value) = (syncpoint.va(), syncpoint.point().clone(), *last);
        let execute = NVC56F_SEM_EXECUTE_OPERATION.put(NVC56F_SEM_EXECUTE_OPERATION_RELEASE)
            | NVC56F_SEM_EXECUTE_RELEASE_WFI.put(NVC56F_SEM_EXECUTE_RELEASE_WFI_EN);
        Ok((self.emit(slot, va, 0, execute)?, point, value))
    }

    /// Takes the last signal back, because it is not submitted.
    pub(super) fn retract(&mut self) {
        if let Some((_, last)) = &mut self.syncpoint {
            *last = last.wrapping_sub(1);
        }
    }

    /// Writes a semaphore operation into a slot. Returns the ring entry that fetches it.
    fn emit(&self, slot: u32, va: u64, payload: u32, execute: u32) -> Reply<u64> {
        // There are five methods from SEM_ADDR_LO on. The header has SEC_OP, the count, subchannel 0 and the method's
        // address.
        let header = NVC56F_DMA_SEC_OP_INC_METHOD << 29 | 5 << 16 | NVC56F_SEM_ADDR_LO >> 2;
        let words = [header, va as u32, (va >> 32) as u32, payload, 0, execute];
        let at = slot as usize * SLOT;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        if !self.commands.write(at, &bytes) {
            return Err(Errno::ENOMEM.into());
        }
        Ok((self.mapping.va + at as u64) | (WORDS as u64) << 42)
    }
}
