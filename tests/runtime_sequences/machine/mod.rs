//! Sequences of calls of the runtime's C functions, and a model that knows what each of them must answer.
//!
//! The model lists for each call those statuses of the header whose conditions hold. If there is none, the call must
//! succeed and do what the header says. Otherwise it must answer one of them, write no result and change nothing. The
//! model never uses memory in a way that the header leaves open: before a queue, a run of a replay or the CPU uses
//! bytes, it waits for those that used them before, or has the queue wait.

mod buffers;
mod calls;
mod devices;
mod events;
mod kernels;
mod known;
mod queues;
mod replays;
pub mod step;
mod transfers;

use known::*;
use std::ffi::CStr;
use step::{Step, What};
use tegrarm_abi::rm::status::*;

/// A wait without a limit, and one that only looks.
const FOREVER: u64 = u64::MAX;
const POLL: u64 = 0;

/// Bytes that a queue is copying into memory of the process, and what they must become.
struct Read {
    device: usize,
    place: Vec<u8>,
    wanted: Vec<u8>,
}

/// The library, and what the model knows of it.
pub struct World {
    devices: Table<Device>,
    queues: Table<Queue>,
    buffers: Table<Buffer>,
    modules: Table<Module>,
    kernels: Table<Kernel>,
    replays: Table<Replay>,
    events: Table<Event>,
    memories: Vec<Memory>,
    shared: Vec<Shared>,
    reads: Vec<Read>,
    /// What queues copy from. It stays as it is until the sequence ends.
    written: Vec<Box<[u8]>>,
    /// How many mappings buffers have made so far.
    mappings: usize,
    /// The calls so far, with their answers.
    history: Vec<String>,
}

impl World {
    /// Initialises the library, which nobody else in this process may be using.
    pub fn new(backend: &CStr) -> World {
        assert_eq!(calls::init(backend), NV_OK, "{}", calls::sentence());
        World {
            devices: Table::new(),
            queues: Table::new(),
            buffers: Table::new(),
            modules: Table::new(),
            kernels: Table::new(),
            replays: Table::new(),
            events: Table::new(),
            memories: Vec::new(),
            shared: Vec::new(),
            reads: Vec::new(),
            written: Vec::new(),
            mappings: 0,
            history: Vec::new(),
        }
    }

    /// Makes the call of a step, and compares its answer with what the model says.
    pub fn step(&mut self, s: &Step) {
        match s.what {
            What::Open => self.open(s),
            What::Close => self.close(s),
            What::Alloc => self.alloc(s),
            What::Part => self.part(s),
            What::Export => self.export(s),
            What::Import => self.import(s),
            What::ImportPages => self.import_pages(s),
            What::Free => self.free(s),
            What::Address => self.address(s),
            What::CopyIn => self.copy_in(s),
            What::CopyOut => self.copy_out(s),
            What::Copy => self.copy(s),
            What::Fill => self.fill(s),
            What::QueueCreate => self.queue_create(s),
            What::QueueDestroy => self.queue_destroy(s),
            What::QueueNumber => self.queue_number(s),
            What::QueueCopyIn => self.queue_copy_in(s),
            What::QueueCopyOut => self.queue_copy_out(s),
            What::After => self.after(s),
            What::Load => self.load(s),
            What::Unload => self.unload(s),
            What::Kernel => self.kernel(s),
            What::Launch => self.launch(s),
            What::Crash => self.crash(s),
            What::Fault => self.fault(s),
            What::Recover => self.recover(s),
            What::Wait => self.wait(s),
            What::WaitAll => self.wait_all(s),
            What::Query => self.query(s),
            What::Pollable => self.pollable(s),
            What::Stack => self.stack(s),
            What::ReplayCreate => self.replay_create(s),
            What::ReplayLaunch => self.replay_launch(s),
            What::ReplayCopy => self.replay_copy(s),
            What::ReplaySubmit => self.replay_submit(s),
            What::ReplayWait => self.replay_wait(s),
            What::ReplayDestroy => self.replay_destroy(s),
            What::EventCreate => self.event_create(s),
            What::EventRecord => self.event_record(s),
            What::EventTime => self.event_time(s),
            What::EventElapsed => self.event_elapsed(s),
            What::EventDestroy => self.event_destroy(s),
        }
    }

    /// Compares all memory that is left with what the model says, closes every device, and shuts the library down.
    pub fn finish(mut self) {
        for device in self.devices.valid().collect::<Vec<_>>() {
            if self.is_stopped(device) {
                self.recover_device(device);
            }
        }
        for buffer in self.buffers.valid().collect::<Vec<_>>() {
            self.compare(buffer);
        }
        for device in self.devices.valid().collect::<Vec<_>>() {
            self.close_device(device);
        }
        assert!(self.reads.is_empty(), "what queues copied out was compared when their devices were closed");
    }

    /// Notes a call and its answer. Returns whether the call succeeded, as the model says it must.
    #[track_caller]
    fn judge(&mut self, call: String, wrong: &Wrong, answer: u32) -> bool {
        self.history.push(format!("{call} = {answer:#x}"));
        if !wrong.allows(answer) {
            self.fail(&format!("the answer must be {wrong}"));
        }
        if answer != NV_OK && calls::sentence().is_empty() {
            self.fail("there is no sentence");
        }
        answer == NV_OK
    }

    /// A call that must succeed.
    #[track_caller]
    fn must(&mut self, call: String, answer: u32) {
        self.judge(call, &Wrong::default(), answer);
    }

    #[track_caller]
    fn fail(&self, why: &str) -> ! {
        panic!("{why}; the last sentence is: {}\nthe calls:\n{}", calls::sentence(), self.history.join("\n"));
    }

    #[track_caller]
    fn expect(&self, holds: bool, why: &str) {
        if !holds {
            self.fail(why);
        }
    }

    /// Whether a fault stopped a queue of a device.
    fn is_stopped(&self, device: usize) -> bool {
        self.queues_of(device).any(|queue| self.queues[queue].stopped)
    }

    /// The queues of a device that have not ended.
    fn queues_of(&self, device: usize) -> impl Iterator<Item = usize> {
        self.queues.valid().filter(move |queue| self.queues[*queue].device == device)
    }

    /// Makes the next use of a memory by `queue` come after its last use.
    fn order(&mut self, memory: usize, queue: usize) {
        self.settle(memory, self.queues[queue].device);
        let Some((user, fence)) = self.memories[memory].user else { return };
        if user != queue && self.queues.rows[user].valid {
            let answer = calls::after(self.queues.rows[queue].handle, fence);
            self.must(format!("queue_after(queue {queue}, fence {fence:#x} of queue {user})"), answer);
        }
    }

    /// Waits for those users of a memory for which no queue of `device` can wait: runs of replays, and other devices.
    fn settle(&mut self, memory: usize, device: usize) {
        if let Some(replay) = self.memories[memory].run {
            self.end_run(replay);
        }
        let Some((user, fence)) = self.memories[memory].user else { return };
        let other = self.queues[user].device;
        if self.queues.rows[user].valid && other != device {
            let answer = calls::wait(self.devices.rows[other].handle, fence, FOREVER);
            self.must(format!("wait(device {other}, fence {fence:#x}), for device {device}"), answer);
            self.memories[memory].user = None;
        }
    }

    /// Notes work that a queue was given.
    fn given(&mut self, queue: usize, fence: u64, memories: &[usize]) {
        let (number, last) = (self.queues[queue].number, self.queues[queue].fences.last().copied().unwrap_or(0));
        self.expect(fence >> 48 == number, "a fence has the number of its queue");
        self.expect(fence >= last, "a fence is later than those before");
        self.queues[queue].fences.push(fence);
        for memory in memories {
            self.memories[*memory].user = Some((queue, fence));
        }
    }

    /// Waits for work that a fault must stop.
    fn stops(&mut self, queue: usize, fence: u64) {
        let device = self.queues[queue].device;
        let answer = calls::wait(self.devices.rows[device].handle, fence, FOREVER);
        let wrong = Wrong::default().when(true, NV_ERR_RESET_REQUIRED);
        self.judge(format!("wait(device {device}, fence {fence:#x} of work that faults)"), &wrong, answer);
        let queue = &mut self.queues[queue];
        (queue.stopped, queue.fault) = (true, fence);
        queue.fences.push(fence);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let answer = calls::shutdown();
        // After a failure the answer says nothing new.
        if !std::thread::panicking() {
            assert_eq!(answer, NV_OK, "{}", calls::sentence());
        }
        buffers::unmap(&self.memories);
    }
}

/// Bytes that differ from call to call.
fn pattern(seed: u64, len: u64) -> Box<[u8]> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Whether a range lies inside `size` bytes.
fn inside((at, len): (u64, u64), size: u64) -> bool {
    at.checked_add(len).is_some_and(|end| end <= size)
}

/// Whether two ranges of the same length share bytes.
fn meet(a: u64, b: u64, len: u64) -> bool {
    a < b.saturating_add(len) && b < a.saturating_add(len)
}
