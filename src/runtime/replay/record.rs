//! Records the work of a device: launches and copies become words, descriptors and parameter banks in memory that is
//! kept.

use super::{Counter, Patch, Replay, RingPlaces, Source, Step, Value};
use crate::runtime::channel::{Channel, ENTRIES, GP_PUT, Plan, RING_BYTES};
use crate::runtime::commands::Commands;
use crate::runtime::device::Device;
use crate::runtime::device::base::refused;
use crate::runtime::device::buffer::{Buffer, ranges};
use crate::runtime::device::module::{KernelRef, Module};
use crate::runtime::fault::diagnostics::Replaying;
use crate::runtime::launch::Launch;
use crate::runtime::launch::template::LaunchTemplate;
use crate::runtime::memory::place::{Place, Width};
use crate::runtime::memory::{Cache, Memory};
use crate::runtime::modules::cubin::kernel::Parameter;
use crate::status::{RmResult, fail};
use std::sync::Arc;
use tegrarm_abi::rm::status::*;

/// The size of the blocks from which descriptors and parameter banks are taken.
const BLOCK: u64 = 64 << 10;
const DATA_ALIGN: u64 = 256;

/// What the replay of a device has in addition to its steps.
pub struct Own {
    /// It is declared first, because the channel must end before the memory that it uses.
    channel: Channel,
    _replaying: Replaying,
    device: Arc<Device>,
    words: Commands<Vec<u32>>,
    /// The word at which each run waits for a fence of the device. This word and the next are the halves of the number.
    fence_at: usize,
    /// The number of launches and copies so far.
    commands: u32,
    local: u32,
    arena: Option<Memory>,
    program: Option<Arc<Memory>>,
    blocks: Vec<Arc<Memory>>,
    used: u64,
    launches: Vec<Recorded>,
    /// The buffers of copies. They are kept for as long as runs use them.
    buffers: Vec<Arc<Buffer>>,
}

/// A launch that was recorded.
struct Recorded {
    /// The module stays loaded.
    _module: Arc<Module>,
    name: String,
    parameters: Vec<Parameter>,
    block: Arc<Memory>,
    /// The place of its arguments in the block.
    arguments: u64,
}

impl Own {
    /// Opens a channel in its own group, so that a fault stops the replay and not the device.
    ///
    /// # Errors
    /// An error that RM gives. Nothing is left of the attempt.
    pub fn open(device: &Arc<Device>) -> RmResult<Own> {
        let mut channel =
            Channel::open(device.session(), device.base().doorbell(), Plan::PLAIN, device.base().diagnostics())?;
        device.base().set_up(&mut channel)?;
        let mut words = Commands::new(Vec::new());
        // A run comes after all work that the device got before it.
        let fence_at = words.acquire(device.own().timeline().va(), 0);
        Ok(Own {
            channel,
            _replaying: device.base().diagnostics().begin_replay(),
            device: device.clone(),
            words,
            fence_at,
            commands: 0,
            local: device.local_memory(),
            arena: None,
            program: None,
            blocks: Vec::new(),
            used: BLOCK,
            launches: Vec::new(),
            buffers: Vec::new(),
        })
    }

    /// Counts the launches of one run.
    #[inline]
    pub fn count_run(&self) {
        self.channel.count_launches(self.launches.len() as u64);
    }

    /// The device that the replay belongs to.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The number that reports the end of a run.
    ///
    /// # Errors
    /// There are none in practice, because the timeline has room for its number.
    pub fn signal(&self) -> RmResult<Place> {
        Place::of(self.channel.timeline().memory(), 0, 8)
    }

    /// The number of the timeline before the first run.
    pub fn first(&self) -> u64 {
        self.channel.last()
    }

    /// Fails with the fault if the channel was stopped.
    ///
    /// # Errors
    /// The channel's fault.
    pub fn check(&self) -> RmResult<()> {
        self.channel.watch().check()
    }

    /// Makes the next command run when the one before it has finished.
    fn order(&mut self) {
        if self.commands > 0 {
            self.words.wait_for_idle();
        }
        self.commands += 1;
    }

    /// Takes memory for a descriptor and a parameter bank.
    fn room(&mut self, size: u64) -> RmResult<(Arc<Memory>, u64)> {
        let size = size.next_multiple_of(DATA_ALIGN);
        if self.used + size > self.blocks.last().map_or(0, |b| b.len()) {
            let block = Memory::new(self.device.session(), BLOCK.max(size), Cache::WriteCombined)?;
            self.blocks.push(Arc::new(block));
            self.used = 0;
        }
        let at = self.used;
        self.used += size;
        Ok((self.blocks[self.blocks.len() - 1].clone(), at))
    }

    fn launch(
        &mut self,
        kernel: &KernelRef,
        launch: &Launch,
        fill: impl FnOnce(&mut [u8]) -> RmResult<()>,
    ) -> RmResult<u32> {
        let k = kernel.kernel();
        let mut prepared = LaunchTemplate::new(k);
        fill(prepared.arguments())?;
        let local = self.local.max(k.local_memory().next_power_of_two());
        let home = kernel.module().home();
        prepared.make(k, home, *launch, local, self.device.base().context()).map_err(|e| refused(k, e))?;
        let (block, at) = self.room(prepared.bytes())?;
        block.write(at, prepared.at(block.va() + at))?;
        self.order();
        self.words.launch(block.va() + at);
        self.local = local;
        let arguments = at + prepared.arguments_at();
        let (name, parameters) = (k.name.clone(), k.parameters.clone());
        self.launches.push(Recorded { _module: kernel.module().clone(), name, parameters, block, arguments });
        Ok(self.launches.len() as u32 - 1)
    }

    /// The place of an argument of a recorded launch.
    fn argument(&self, launch: u32, argument: u32) -> RmResult<(Place, Width)> {
        let Some(recorded) = self.launches.get(launch as usize) else {
            fail!(NV_ERR_INVALID_ARGUMENT, "launch {launch} of {}", self.launches.len());
        };
        let Some(parameter) = recorded.parameters.get(argument as usize) else {
            let count = recorded.parameters.len();
            fail!(NV_ERR_INVALID_ARGUMENT, "argument {argument} of '{}', which has {count}", recorded.name);
        };
        let at = recorded.arguments + u64::from(parameter.offset);
        Ok((Place::of(&recorded.block, at, parameter.size.into())?, Width::of(parameter.size)?))
    }

    /// Writes the words to memory that is kept. Words that change become patch points. This makes kernel calls.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_STATE` if nothing was recorded, and an error that RM gives. After such a failure the call can be
    /// repeated.
    pub fn seal(&mut self) -> RmResult<(RingPlaces, Vec<Step>)> {
        if self.commands == 0 {
            fail!(NV_ERR_INVALID_STATE, "nothing was recorded");
        }
        if self.arena.is_none() {
            self.arena = Some(self.device.base().local_memory(&mut self.channel, self.local)?);
        }
        let mut words = Commands::new(self.words.clone().finish());
        let end = words.release(self.channel.timeline().va(), 0);
        let words = words.finish();
        let program = Arc::new(Memory::new(self.device.session(), words.len() as u64 * 4, Cache::WriteCombined)?);
        program.write(0, zerocopy::IntoBytes::as_bytes(&words[..]))?;
        let mut steps = Vec::new();
        for (word, source, add) in [(self.fence_at, Source::Given, 0), (end, Source::Timeline, 1)] {
            for (half, value) in (0..).zip(Value::halves(source, add)) {
                let place = Place::of(&program, (word as u64 + half) * 4, 4)?;
                steps.push(Step::Patch(Patch::new(place, Width::W4, 0, value)));
            }
        }
        steps.push(Step::push(0, program.va(), words.len() as u32)?);
        self.program = Some(program);
        Ok((self.ring_places()?, steps))
    }

    fn ring_places(&self) -> RmResult<RingPlaces> {
        let ring = self.channel.ring();
        Ok(RingPlaces {
            ring: Place::of(&ring.area, 0, RING_BYTES)?,
            entries: ENTRIES,
            gp_put: Place::of(&ring.area, GP_PUT, 4)?,
            doorbell: Place::doorbell(&ring.doorbell),
            token: ring.token,
            put: Counter::Own(ring.put.into()),
            status: Some(self.channel.watch().status_word().clone()),
        })
    }
}

impl Replay {
    fn own(&mut self) -> RmResult<&mut Own> {
        self.recording()?;
        match &mut self.own {
            Some(own) => Ok(own),
            None => fail!(NV_ERR_INVALID_ARGUMENT, "the replay has channels of the caller's: add pushes of words"),
        }
    }

    /// Records a launch. `fill` writes the block of arguments. Returns the index of the launch.
    ///
    /// # Errors
    /// Those of a launch that is not recorded, `NV_ERR_INVALID_STATE` after the first run, and
    /// `NV_ERR_INVALID_ARGUMENT` for a kernel of another device.
    pub fn launch(
        &mut self,
        kernel: &KernelRef,
        launch: &Launch,
        fill: impl FnOnce(&mut [u8]) -> RmResult<()>,
    ) -> RmResult<u32> {
        let own = self.own()?;
        own.same_device(kernel.module().device())?;
        own.launch(kernel, launch, fill)
    }

    /// Takes an argument of a recorded launch from a slot of each run's values.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_ARGUMENT` if there is no such launch or argument, or if its size is not 1, 2, 4 or 8 bytes, and
    /// `NV_ERR_INVALID_STATE` after the first run.
    pub fn argument(&mut self, launch: u32, argument: u32, slot: u32) -> RmResult<()> {
        let (place, width) = self.own()?.argument(launch, argument)?;
        self.patch(place, width, 0, Value { source: Source::Slot(slot), add: 0, shift: 0, mask: u64::MAX })
    }

    /// Records a copy by the GPU between buffers of its device. It has less than 4 GiB.
    ///
    /// # Errors
    /// Those of a copy that is not recorded, and `NV_ERR_INVALID_STATE` after the first run.
    pub fn copy(
        &mut self,
        to: &Arc<Buffer>,
        to_offset: u64,
        from: &Arc<Buffer>,
        offset: u64,
        size: u32,
    ) -> RmResult<()> {
        let own = self.own()?;
        own.same_device(to.device())?;
        own.same_device(from.device())?;
        let (source, target) = ranges(to, to_offset, from, offset, size.into())?;
        own.order();
        own.words.copy(source, target, size);
        own.buffers.extend([to.clone(), from.clone()]);
        Ok(())
    }
}

impl Own {
    fn same_device(&self, other: &Arc<Device>) -> RmResult<()> {
        if !Arc::ptr_eq(&self.device, other) {
            fail!(NV_ERR_INVALID_ARGUMENT, "it belongs to another device than the replay");
        }
        Ok(())
    }
}
