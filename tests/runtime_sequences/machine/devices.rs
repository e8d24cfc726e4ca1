//! Devices: opened, closed, stopped by a fault, recovered, and their limits.

use super::known::*;
use super::step::Step;
use super::{FOREVER, World, calls};
use tegrarm_abi::rm::status::*;

/// The most devices that a sequence has at a time, so that it stays fast.
const MOST_DEVICES: usize = 2;
const STACK_SIZE: u32 = 0;
/// `TEGRARM_FAULT_NONE` and `TEGRARM_FAULT_MMU`.
const NONE: u32 = 0;
const MMU: u32 = 1;

impl World {
    pub(super) fn open(&mut self, s: &Step) {
        if self.devices.valid().count() >= MOST_DEVICES {
            return;
        }
        let index = u32::from(s.w % 16 == 5);
        let (answer, handle) = calls::open(index);
        let wrong = Wrong::default().when(index != 0, NV_ERR_INVALID_DEVICE);
        if !self.judge(format!("device_open({index})"), &wrong, answer) {
            return;
        }
        let device = self.devices.add(handle, Device { own: self.queues.rows.len(), queues: 1 });
        let (answer, queue) = calls::own_queue(handle);
        self.must(format!("device_queue(device {device})"), answer);
        self.queues.add(queue, Queue::new(device, 0, false));
    }

    pub(super) fn close(&mut self, s: &Step) {
        let chosen = self.devices.choose(s.picks[0]);
        match chosen.at {
            // A sequence without a device would be dull, so that most stay.
            Some(device) if s.z.is_multiple_of(4) => self.close_device(device),
            Some(_) => {}
            None => {
                let answer = calls::close(chosen.handle);
                self.judge(format!("device_close({:#x})", chosen.handle), &Wrong::default().absent(chosen), answer);
            }
        }
    }

    /// Closes a device: what belongs to it ends, and what its queues copied is there.
    pub(super) fn close_device(&mut self, device: usize) {
        for replay in self.replays.valid().filter(|at| self.replays[*at].device == device).collect::<Vec<_>>() {
            self.end_run(replay);
            self.replays.end(replay);
        }
        let answer = calls::close(self.devices.rows[device].handle);
        self.must(format!("device_close(device {device})"), answer);
        self.devices.end(device);
        for queue in self.queues_of(device).collect::<Vec<_>>() {
            self.queues.end(queue);
        }
        for event in self.events.valid().filter(|at| self.events[*at].device == device).collect::<Vec<_>>() {
            self.events.end(event);
        }
        for module in self.modules.valid().filter(|at| self.modules[*at].device == device).collect::<Vec<_>>() {
            self.end_module(module);
        }
        for buffer in self.buffers.valid().filter(|at| self.buffers[*at].device == device).collect::<Vec<_>>() {
            self.end_buffer(buffer);
        }
        self.compare_reads(device);
    }

    pub(super) fn fault(&mut self, s: &Step) {
        let chosen = self.devices.choose(s.picks[0]);
        let (answer, cause) = calls::fault(chosen.handle);
        if self.judge(format!("device_fault({:#x})", chosen.handle), &Wrong::default().absent(chosen), answer) {
            let stopped = chosen.at.is_some_and(|device| self.is_stopped(device));
            self.expect(cause == if stopped { MMU } else { NONE }, "the cause of the fault");
        }
    }

    pub(super) fn recover(&mut self, s: &Step) {
        let chosen = self.devices.choose(s.picks[0]);
        match chosen.at {
            Some(device) => self.recover_device(device),
            None => {
                let (answer, _) = calls::recover(chosen.handle);
                let call = format!("device_recover({:#x})", chosen.handle);
                self.judge(call, &Wrong::default().absent(chosen), answer);
            }
        }
    }

    pub(super) fn recover_device(&mut self, device: usize) {
        let stopped: Vec<_> = self.queues_of(device).filter(|queue| self.queues[*queue].stopped).collect();
        let (answer, count) = calls::recover(self.devices.rows[device].handle);
        self.must(format!("device_recover(device {device})"), answer);
        self.expect(count as usize == stopped.len(), "the number of queues that were stopped");
        for queue in stopped {
            let queue = &mut self.queues[queue];
            queue.stopped = false;
            queue.lost.push(queue.fault);
        }
    }

    /// Changes the size of stacks. A call that fails leaves it as it was.
    pub(super) fn stack(&mut self, s: &Step) {
        const SIZES: [u64; 6] = [0, 1024, 1500, 2048, 4000, 1 << 40];
        let (chosen, value) = (self.devices.choose(s.picks[0]), SIZES[usize::from(s.x) % SIZES.len()]);
        let (_, before) = calls::limit(chosen.handle, STACK_SIZE);
        let wrong = Wrong::default()
            .absent(chosen)
            .when(value > 1 << 24, NV_ERR_INVALID_ARGUMENT)
            .when(chosen.at.is_some_and(|device| self.is_stopped(device)), NV_ERR_RESET_REQUIRED);
        let answer = calls::set_limit(chosen.handle, STACK_SIZE, value);
        let changed = self.judge(format!("device_set_limit({:#x}, stack, {value})", chosen.handle), &wrong, answer);
        let (_, after) = calls::limit(chosen.handle, STACK_SIZE);
        match changed {
            true => self.expect(after >= value, "the stack has at least the size that was asked for"),
            false => self.expect(after == before, "the stack stays as it was"),
        }
    }

    /// What waiting for a fence must answer.
    pub(super) fn passes(&self, device: usize, fence: u64) -> Wrong {
        let wrong = Wrong::default();
        if fence >> 48 >= self.devices[device].queues {
            return wrong.when(true, NV_ERR_INVALID_ARGUMENT);
        }
        // The fences of a queue that has ended have passed.
        let Some(queue) = self.queues_of(device).find(|at| self.queues[*at].number == fence >> 48) else {
            return wrong;
        };
        let (handle, queue) = (self.queues.rows[queue].handle, &self.queues[queue]);
        wrong
            .when(fence > calls::queue_fence(handle).1, NV_ERR_INVALID_ARGUMENT)
            .when(queue.stopped && queue.fault == fence, NV_ERR_RESET_REQUIRED)
            .when(queue.lost.contains(&fence), NV_ERR_RESOURCE_LOST)
    }

    /// A fence of a device, or of none.
    pub(super) fn some_fence(&self, device: usize, n: u16) -> u64 {
        let queues: Vec<_> = (0..self.queues.rows.len()).filter(|at| self.queues[*at].device == device).collect();
        let queue = queues[usize::from(n) % queues.len()];
        let (number, fences) = (self.queues[queue].number << 48, &self.queues[queue].fences);
        match n >> 8 & 15 {
            0 => number | 0xffff_0000,
            1 => 0xffff << 48 | 1,
            2 => number,
            _ => fences.get(usize::from(n >> 4) % fences.len().max(1)).copied().unwrap_or(number),
        }
    }

    pub(super) fn wait(&mut self, s: &Step) {
        let chosen = self.devices.choose(s.picks[0]);
        let (fence, wrong) = match chosen.at {
            None => (1, Wrong::default().absent(chosen)),
            Some(device) => {
                let fence = self.some_fence(device, s.x);
                (fence, self.passes(device, fence))
            }
        };
        let answer = calls::wait(chosen.handle, fence, FOREVER);
        self.judge(format!("wait({:#x}, fence {fence:#x})", chosen.handle), &wrong, answer);
    }

    pub(super) fn wait_all(&mut self, s: &Step) {
        let Some(device) = self.devices.choose(s.picks[0]).at else { return };
        let fences = [s.x, s.y, s.x ^ s.y].map(|n| self.some_fence(device, n));
        let fences = &fences[..usize::from(s.z) % 4];
        let mut wrong = Wrong::default();
        for fence in fences {
            for status in [NV_ERR_INVALID_ARGUMENT, NV_ERR_RESET_REQUIRED, NV_ERR_RESOURCE_LOST] {
                wrong = wrong.when(self.passes(device, *fence).names(status), status);
            }
        }
        let answer = calls::wait_all(self.devices.rows[device].handle, fences);
        self.judge(format!("wait_all(device {device}, {fences:x?})"), &wrong, answer);
    }

    pub(super) fn query(&mut self, s: &Step) {
        let Some(device) = self.devices.choose(s.picks[0]).at else { return };
        let fence = self.some_fence(device, s.x);
        let (wrong, handle) = (self.passes(device, fence), self.devices.rows[device].handle);
        let (answer, passed) = calls::query(handle, fence);
        if self.judge(format!("fence_query(device {device}, {fence:#x})"), &wrong, answer) && passed {
            let answer = calls::wait(handle, fence, super::POLL);
            self.must(format!("wait(device {device}, fence {fence:#x} that has passed)"), answer);
        }
    }

    /// A descriptor becomes readable when a fence has passed, and when it cannot pass any more.
    pub(super) fn pollable(&mut self, s: &Step) {
        let Some(device) = self.devices.choose(s.picks[0]).at else { return };
        let fence = self.some_fence(device, s.x);
        let never = self.passes(device, fence).names(NV_ERR_INVALID_ARGUMENT);
        let (answer, fd) = calls::pollable(self.devices.rows[device].handle, fence);
        let wrong = Wrong::default().when(never, NV_ERR_INVALID_ARGUMENT);
        if self.judge(format!("fence_fd(device {device}, {fence:#x})"), &wrong, answer) {
            let fd = fd.expect("a descriptor");
            let mut looks = [nix::poll::PollFd::new(std::os::fd::AsFd::as_fd(&fd), nix::poll::PollFlags::POLLIN)];
            let ready = nix::poll::poll(&mut looks, nix::poll::PollTimeout::NONE);
            self.expect(ready == Ok(1), "the descriptor becomes readable");
        }
    }
}
