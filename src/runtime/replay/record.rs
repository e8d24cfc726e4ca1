//! Records the work of a device: launches and copies become words, descriptors and parameter banks in memory that is
//! kept.

use super::{Counter, MOST_WORDS, Patch, Replay, RingPlaces, Source, Step, Value};
use crate::runtime::channel::{Channel, ENTRIES, GP_PUT, Plan, RING_BYTES, Words};
use crate::runtime::commands::{Commands, Engine};
use crate::runtime::device::Device;
use crate::runtime::device::base::refused;
use crate::runtime::device::buffer::{Buffer, fill_pieces, ranges};
use crate::runtime::device::module::{KernelRef, Module};
use crate::runtime::device::queue::split;
use crate::runtime::device::queue_ref::QueueRef;
use crate::runtime::fault::diagnostics::Replaying;
use crate::runtime::launch::Launch;
use crate::runtime::launch::template::LaunchTemplate;
use crate::runtime::memory::place::{Place, Width};
use crate::runtime::memory::{Cache, Memory};
use std::sync::Arc;
use std::time::Duration;
use tegrarm_abi::rm::status::*;
use tegrarm_images::cubin::kernel::Parameter;
use tegrarm_rm::status::{RmResult, fail};

/// The size of the blocks from which descriptors and parameter banks are taken.
const BLOCK: u64 = 64 << 10;
const DATA_ALIGN: u64 = 256;

/// What the replay of a device has in addition to its steps.
pub struct Own {
    /// It is declared first, because the channel must end before the memory that it uses. The first run that is not given to a queue
    /// opens it.
    channel: Option<Channel>,
    _replaying: Replaying,
    device: Arc<Device>,
    /// The commands.
    words: Commands<Vec<u32>>,
    /// The number of commands so far.
    commands: u32,
    /// The engines of the first and of the last command.
    engines: Option<(Engine, Engine)>,
    local: u32,
    arena: Option<Memory>,
    program: Option<Arc<Memory>>,
    /// The words as queues get them.
    queued: Option<(Words, Memory)>,
    /// The last fence of each queue that got them.
    given: Vec<u64>,
    blocks: Vec<Arc<Memory>>,
    used: u64,
    launches: Vec<Recorded>,
    /// The buffers of copies. They are kept for as long as runs use them.
    buffers: Vec<Arc<Buffer>>,
}

/// What a run on the replay's channel needs.
pub struct Sealed {
    /// The channel's ring.
    pub ring: RingPlaces,
    /// What changes with each run, and the push of the words.
    pub steps: Vec<Step>,
    /// The number that reports the end of a run.
    pub signal: Place,
    /// That number before the first run.
    pub first: u64,
}

/// A launch that was recorded.
struct Recorded {
    /// The module stays loaded.
    module: Arc<Module>,
    /// The number of the kernel in the module.
    kernel: usize,
    parameters: Vec<Parameter>,
    template: LaunchTemplate,
    local: u32,
    block: Arc<Memory>,
    /// The place of the descriptor in the block.
    at: u64,
}

impl Own {
    /// An empty recording.
    pub fn new(device: &Arc<Device>) -> Own {
        Own {
            channel: None,
            _replaying: device.base().diagnostics().begin_replay(),
            device: device.clone(),
            words: Commands::new(Vec::new()),
            commands: 0,
            engines: None,
            local: device.local_memory(),
            arena: None,
            program: None,
            queued: None,
            given: Vec::new(),
            blocks: Vec::new(),
            used: BLOCK,
            launches: Vec::new(),
            buffers: Vec::new(),
        }
    }

    /// Counts the launches of one run.
    #[inline]
    pub fn count_run(&self) {
        if let Some(channel) = &self.channel {
            channel.count_launches(self.launches.len() as u64);
        }
    }

    /// The device that the replay belongs to.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Fails with the fault if the channel was stopped.
    ///
    /// # Errors
    /// The channel's fault.
    pub fn check(&self) -> RmResult<()> {
        self.channel.as_ref().map_or(Ok(()), |channel| channel.watch().check())
    }

    /// Makes the next command, which is one of `engine`, run when the one before it has finished.
    fn order(&mut self, engine: Engine) {
        if self.commands > 0 {
            self.words.wait_for_idle();
        }
        self.commands += 1;
        self.engines = Some((self.engines.map_or(engine, |(first, _)| first), engine));
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
        self.order(Engine::Compute);
        self.words.launch(block.va() + at);
        self.local = local;
        let (module, parameters) = (kernel.module().clone(), k.parameters.clone());
        let recorded = Recorded { module, kernel: kernel.index(), parameters, template: prepared, local, block, at };
        self.launches.push(recorded);
        Ok(self.launches.len() as u32 - 1)
    }

    /// A recorded launch.
    fn recorded(&mut self, launch: u32) -> RmResult<&mut Recorded> {
        let count = self.launches.len();
        match self.launches.get_mut(launch as usize) {
            Some(recorded) => Ok(recorded),
            None => fail!(NV_ERR_INVALID_ARGUMENT, "launch {launch} of {count}"),
        }
    }

    /// Gives a recorded launch another size and other arguments.
    fn update(
        &mut self,
        launch: u32,
        kernel: &KernelRef,
        size: &Launch,
        fill: impl FnOnce(&mut [u8]) -> RmResult<()>,
    ) -> RmResult<()> {
        let k = kernel.kernel();
        let known = self.recorded(launch)?;
        if !Arc::ptr_eq(&known.module, kernel.module()) || known.kernel != kernel.index() {
            let before = &known.module.kernel_at(known.kernel).name;
            fail!(NV_ERR_INVALID_ARGUMENT, "launch {launch} is one of '{before}', and not of this '{}'", k.name);
        }
        self.finish(None)?;
        let context = *self.device.base().context();
        let known = self.recorded(launch)?;
        // A failure changes nothing: the arguments are written when everything has been checked.
        let mut arguments = known.template.arguments().to_vec();
        fill(&mut arguments)?;
        if !known.template.is_for(size, known.local) {
            let made = known.template.make(k, kernel.module().home(), *size, known.local, &context);
            made.map_err(|e| refused(k, e))?;
        }
        known.template.arguments().copy_from_slice(&arguments);
        known.block.write(known.at, known.template.at(known.block.va() + known.at))
    }

    /// Waits for the runs that queues were given.
    ///
    /// # Errors
    /// Those of [`Device::wait`].
    pub fn finish(&mut self, deadline: Option<Duration>) -> RmResult<()> {
        for fence in self.given.drain(..) {
            self.device.wait(fence, deadline)?;
        }
        Ok(())
    }

    /// Gives a queue of the device a run. Returns the fence.
    fn enqueue(&mut self, queue: &QueueRef) -> RmResult<u64> {
        self.same_device(queue.device())?;
        let Some((first, last)) = self.engines else { fail!(NV_ERR_INVALID_STATE, "nothing was recorded") };
        let words = match &mut self.queued {
            Some((words, _)) => words,
            empty => {
                let mut waits = Commands::new(Vec::new());
                let wait = waits.wait_for_idle().len() as u64;
                let all = [waits.finish(), self.words.clone().finish()].concat();
                if all.len() > MOST_WORDS as usize {
                    fail!(NV_ERR_INVALID_ARGUMENT, "a run of {} words: a queue takes {MOST_WORDS}", all.len());
                }
                let memory = Memory::new(self.device.session(), all.len() as u64 * 4, Cache::WriteCombined)?;
                memory.write(0, zerocopy::IntoBytes::as_bytes(&all[..]))?;
                let (at, len, launches) = (memory.va(), all.len() as u64, self.launches.len() as u64);
                &mut empty.insert((Words { at, len, wait, first, last, launches }, memory)).0
            }
        };
        let fence = queue.submit_words(words, self.local)?;
        self.given.retain(|other| split(*other).0 != split(fence).0);
        self.given.push(fence);
        Ok(fence)
    }

    /// The place of an argument of a recorded launch.
    fn argument(&self, launch: u32, argument: u32) -> RmResult<(Place, Width)> {
        let Some(recorded) = self.launches.get(launch as usize) else {
            fail!(NV_ERR_INVALID_ARGUMENT, "launch {launch} of {}", self.launches.len());
        };
        let Some(parameter) = recorded.parameters.get(argument as usize) else {
            let (name, count) = (&recorded.module.kernel_at(recorded.kernel).name, recorded.parameters.len());
            fail!(NV_ERR_INVALID_ARGUMENT, "argument {argument} of '{name}', which has {count}");
        };
        let at = recorded.at + recorded.template.arguments_at() + u64::from(parameter.offset);
        Ok((Place::of(&recorded.block, at, parameter.size.into())?, Width::of(parameter.size)?))
    }

    /// Opens a channel in its own group, so that a fault stops the replay and not the device, and writes the words to memory that is
    /// kept. Words that change become patch points. This makes kernel calls.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_STATE` if nothing was recorded, and an error that RM gives. After such a failure the call can be
    /// repeated.
    pub fn seal(&mut self) -> RmResult<Sealed> {
        if self.commands == 0 {
            fail!(NV_ERR_INVALID_STATE, "nothing was recorded");
        }
        let base = self.device.base();
        let channel = match &mut self.channel {
            Some(channel) => channel,
            empty => {
                let (session, doorbell) = (self.device.session(), base.doorbell());
                let mut channel = Channel::open(session, doorbell, Plan::PLAIN, base.diagnostics())?;
                base.set_up(&mut channel)?;
                empty.insert(channel)
            }
        };
        if self.arena.is_none() {
            self.arena = Some(base.local_memory(channel, self.local)?);
        }
        let mut words = Commands::new(Vec::new());
        // A run comes after all work that the device got before it.
        let fence_at = words.acquire(self.device.own().timeline().va(), 0);
        let mut words = Commands::new([words.finish(), self.words.clone().finish()].concat());
        let end = words.release(channel.timeline().va(), 0);
        let words = words.finish();
        let program = Arc::new(Memory::new(self.device.session(), words.len() as u64 * 4, Cache::WriteCombined)?);
        program.write(0, zerocopy::IntoBytes::as_bytes(&words[..]))?;
        let mut steps = Vec::new();
        for (word, source, add) in [(fence_at, Source::Given, 0), (end, Source::Timeline, 1)] {
            for (half, value) in (0..).zip(Value::halves(source, add)) {
                let place = Place::of(&program, (word as u64 + half) * 4, 4)?;
                steps.push(Step::Patch(Patch::new(place, Width::W4, 0, value)));
            }
        }
        steps.push(Step::push(0, program.va(), words.len() as u32)?);
        self.program = Some(program);
        let signal = Place::of(channel.timeline().memory(), 0, 8)?;
        Ok(Sealed { ring: ring_places(channel)?, steps, signal, first: channel.last() })
    }
}

fn ring_places(channel: &Channel) -> RmResult<RingPlaces> {
    let ring = channel.ring();
    Ok(RingPlaces {
        ring: Place::of(&ring.area, 0, RING_BYTES)?,
        entries: ENTRIES,
        gp_put: Place::of(&ring.area, GP_PUT, 4)?,
        doorbell: Place::doorbell(&ring.doorbell),
        token: ring.token,
        put: Counter::Own(ring.put.into()),
        status: Some(channel.watch().status_word().clone()),
    })
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
        own.order(Engine::Copy);
        own.words.copy(source, target, size);
        own.buffers.extend([to.clone(), from.clone()]);
        Ok(())
    }

    /// Records that the GPU fills a range of a buffer with values of `size` bytes.
    ///
    /// # Errors
    /// Those of a fill that is not recorded, and `NV_ERR_INVALID_STATE` after the first run.
    pub fn fill(&mut self, buffer: &Arc<Buffer>, offset: u64, len: u64, value: u32, size: u32) -> RmResult<()> {
        let own = self.own()?;
        own.same_device(buffer.device())?;
        for piece in fill_pieces(buffer, offset, len, value, size)? {
            own.order(Engine::Copy);
            piece.put(&mut own.words);
        }
        own.buffers.push(buffer.clone());
        Ok(())
    }

    /// Gives a recorded launch of `kernel` another size and other arguments, when the runs that queues were given have finished.
    ///
    /// # Errors
    /// Those of [`Replay::launch`], `NV_ERR_INVALID_ARGUMENT` for another kernel or a launch that was not recorded, and
    /// `NV_ERR_INVALID_STATE` if the last run has not been waited for.
    pub fn update(
        &mut self,
        launch: u32,
        kernel: &KernelRef,
        size: &Launch,
        fill: impl FnOnce(&mut [u8]) -> RmResult<()>,
    ) -> RmResult<()> {
        if self.in_flight.is_some() {
            fail!(NV_ERR_INVALID_STATE, "the last run has not been waited for");
        }
        match &mut self.own {
            Some(own) => own.update(launch, kernel, size, fill),
            None => fail!(NV_ERR_INVALID_ARGUMENT, "the replay has channels of the caller's, and no launches"),
        }
    }

    /// Gives a queue of the device a run, after the work that the queue has. Returns the fence.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_STATE` if nothing was recorded, or the CPU does a part of each run; `NV_ERR_INVALID_ARGUMENT` for a queue of
    /// another device; and those of [`QueueRef::submit_words`].
    pub fn enqueue(&mut self, queue: &QueueRef) -> RmResult<u64> {
        if self.slots > 0 || !self.inputs.is_empty() || !self.outputs.is_empty() {
            fail!(
                NV_ERR_INVALID_STATE,
                "a run with values, inputs or outputs: the CPU writes them, and no queue waits for it"
            );
        }
        let Some(own) = &mut self.own else {
            fail!(NV_ERR_INVALID_ARGUMENT, "the replay has channels of the caller's, and no device");
        };
        let fence = own.enqueue(queue)?;
        self.runs += 1;
        Ok(fence)
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
