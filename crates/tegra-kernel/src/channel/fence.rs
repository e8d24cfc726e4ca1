//! Fences of kernel-mode submits. The kernel puts command words of its own around the caller's entries.

use super::sync::ChannelSyncpoint;
use crate::dispatch::{Call, Reply};
use crate::rule::Because;
use crate::space::{AddressSpace, KernelMapping};
use crate::syncpoint::COUNT;
use std::sync::Arc;
use tegra_hw::Syncpoint;
use tegra_mm::{Backing, SYNCPOINT_STRIDE};
use tegrarm_abi::methods::host::*;
use tegrarm_abi::nvgpu::channel::{nvgpu_channel_setup_bind_args, nvgpu_fence};
use tegrarm_kmd::Errno;

/// The number of words of one fence: a method header and five semaphore methods.
const WORDS: usize = 6;
/// The distance between fences in bytes.
const SLOT: usize = 32;
/// The bytes that the driver reserves for the commands of a job: a wait, an increment, and one word.
const JOB: u64 = (10 + 12 + 1) * 4;

/// Everything from which a kernel-mode channel makes fences.
#[derive(Debug)]
pub(crate) struct Fences {
    commands: Arc<Backing>,
    mapping: KernelMapping,
    /// The number of slots. Slots are used again when the ring has wrapped around them.
    slots: u32,
    /// The channel's own syncpoint.
    syncpoint: ChannelSyncpoint,
    /// The value for which the last fence waits.
    last: u32,
}

impl Fences {
    /// Takes the syncpoint, and then the memory for the commands of the jobs that can be in flight. Without a number of
    /// jobs, a third of the ring's entries can be jobs.
    pub(super) fn new(
        call: &Call<'_>,
        space: &Arc<AddressSpace>,
        args: &nvgpu_channel_setup_bind_args,
    ) -> Reply<Fences> {
        let syncpoint = ChannelSyncpoint::new(&call.board.syncpoints, space)?;
        let jobs = match args.num_inflight_jobs {
            0 => args.num_gpfifo_entries.div_ceil(3),
            jobs => jobs,
        };
        let size = (u64::from(jobs) * JOB).next_power_of_two().next_multiple_of(4096);
        if size > u64::from(u32::MAX) {
            return Err(Errno::ERANGE.because("the commands of so many jobs need more than 4 GiB").into());
        }
        let commands = Arc::new(Backing::anonymous("nvgpu-commands", size as usize).map_err(|_| Errno::ENOMEM)?);
        let mapping = space.map_kernel(commands.clone(), 0, size, true)?;
        let (slots, last) = ((size as usize / SLOT) as u32, syncpoint.point().value());
        Ok(Fences { commands, mapping, slots, syncpoint, last })
    }

    /// How many ring entries can be waiting to be fetched, so that no slot of them is used again.
    pub(super) fn slots(&self) -> u32 {
        self.slots
    }

    /// Makes a ring entry that waits until a syncpoint has reached a value.
    pub(super) fn wait(&self, call: &Call<'_>, space: &AddressSpace, slot: u32, fence: nvgpu_fence) -> Reply<u64> {
        if fence.id >= COUNT {
            return Err(Errno::EINVAL.into());
        }
        let base = space.map_syncpoints(call.board.syncpoints.aperture()?)?;
        let va = base + u64::from(fence.id) * SYNCPOINT_STRIDE as u64;
        let execute = NVC56F_SEM_EXECUTE_OPERATION.put(NVC56F_SEM_EXECUTE_OPERATION_ACQ_CIRC_GEQ)
            | NVC56F_SEM_EXECUTE_ACQUIRE_SWITCH_TSG.put(NVC56F_SEM_EXECUTE_ACQUIRE_SWITCH_TSG_EN);
        self.emit(slot, va, fence.value, execute)
    }

    /// Makes a ring entry that increments the channel's syncpoint, and returns the value that the syncpoint has then.
    pub(super) fn signal(&mut self, slot: u32) -> Reply<(u64, Arc<Syncpoint>, u32)> {
        self.last = self.last.wrapping_add(1);
        let (va, point, value) = (self.syncpoint.va(), self.syncpoint.point().clone(), self.last);
        let execute = NVC56F_SEM_EXECUTE_OPERATION.put(NVC56F_SEM_EXECUTE_OPERATION_RELEASE)
            | NVC56F_SEM_EXECUTE_RELEASE_WFI.put(NVC56F_SEM_EXECUTE_RELEASE_WFI_EN);
        Ok((self.emit(slot, va, 0, execute)?, point, value))
    }

    /// Takes the last signal back, because it is not submitted.
    pub(super) fn retract(&mut self) {
        self.last = self.last.wrapping_sub(1);
    }

    /// Writes a semaphore operation into a slot. Returns the ring entry that fetches it.
    fn emit(&self, slot: u32, va: u64, payload: u32, execute: u32) -> Reply<u64> {
        // There are five methods from SEM_ADDR_LO on. The header has SEC_OP, the count, subchannel 0 and the method's
        // address.
        let header = NVC56F_DMA_SEC_OP_INC_METHOD << 29 | 5 << 16 | NVC56F_SEM_ADDR_LO >> 2;
        let words = [header, va as u32, (va >> 32) as u32, payload, 0, execute];
        let at = (slot % self.slots) as usize * SLOT;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        if !self.commands.write(at, &bytes) {
            return Err(Errno::ENOMEM.into());
        }
        Ok((self.mapping.va + at as u64) | (WORDS as u64) << 42)
    }
}
