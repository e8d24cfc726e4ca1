//! Queues: made, ended, and made to wait for each other.

use super::known::*;
use super::step::Step;
use super::{FOREVER, POLL, World, calls};
use tegrarm::capi::runtime::queues::tegrarm_queue_options;
use tegrarm_abi::rm::status::*;

/// The most queues that a device has at a time, so that a sequence stays fast.
const MOST_QUEUES: usize = 6;
const COPY: u32 = 1;

impl World {
    pub(super) fn queue_create(&mut self, s: &Step) {
        let chosen = self.devices.choose(s.picks[0]);
        if chosen.at.is_some_and(|device| self.queues_of(device).count() >= MOST_QUEUES) {
            return;
        }
        let options = tegrarm_queue_options {
            size: if s.w == 77 { 8 } else { size_of::<tegrarm_queue_options>() },
            kind: if s.z % 16 == 9 { 7 } else { u32::from(s.z % 2) },
            priority: if s.z % 32 == 20 { 9 } else { u32::from(s.w % 4) },
            timeslice_us: if s.y.is_multiple_of(3) { 2000 } else { 0 },
            reserved: u32::from(s.w == 99),
        };
        let is_odd = options.kind > COPY || options.priority > 3 || options.reserved != 0;
        let wrong = Wrong::default()
            .absent(chosen)
            .when(options.size < size_of::<tegrarm_queue_options>(), NV_ERR_INVALID_PARAM_STRUCT)
            .when(is_odd, NV_ERR_INVALID_ARGUMENT);
        let (answer, handle) = calls::create_queue(chosen.handle, &options);
        let what = format!("queue_create({:#x}, kind {}, {}", chosen.handle, options.kind, options.priority);
        if self.judge(format!("{what}, {} us)", options.timeslice_us), &wrong, answer) {
            let device = chosen.at.expect("a device");
            let number = self.devices[device].queues;
            self.devices[device].queues += 1;
            self.queues.add(handle, Queue::new(device, number, options.kind == COPY));
        }
    }

    pub(super) fn queue_destroy(&mut self, s: &Step) {
        let chosen = self.queues.choose(s.picks[0]);
        let is_own = chosen.at.is_some_and(|at| self.queues[at].number == 0);
        let wrong = Wrong::default().absent(chosen).when(is_own, NV_ERR_INVALID_ARGUMENT);
        let answer = calls::destroy_queue(chosen.handle);
        if self.judge(format!("queue_destroy({:#x})", chosen.handle), &wrong, answer) {
            self.queues.end(chosen.at.expect("a queue"));
        }
    }

    pub(super) fn queue_number(&mut self, s: &Step) {
        let chosen = self.queues.choose(s.picks[0]);
        let (answer, number) = calls::queue_number(chosen.handle);
        if self.judge(format!("queue_number({:#x})", chosen.handle), &Wrong::default().absent(chosen), answer) {
            let queue = &self.queues[chosen.at.expect("a queue")];
            self.expect(u64::from(number) == queue.number, "the number of the queue");
            if number == 0 {
                let (answer, own) = calls::own_queue(self.devices.rows[queue.device].handle);
                self.expect((answer, own) == (NV_OK, chosen.handle), "the handle of the device's own queue stays");
            }
        }
    }

    /// A queue waits for a fence. If that work was lost, it waits until the device is recovered.
    pub(super) fn after(&mut self, s: &Step) {
        let chosen = self.queues.choose(s.picks[0]);
        let Some(queue) = chosen.at else {
            let answer = calls::after(chosen.handle, 1);
            self.judge(format!("queue_after({:#x}, 1)", chosen.handle), &Wrong::default().absent(chosen), answer);
            return;
        };
        let (device, stopped) = (self.queues[queue].device, self.queues[queue].stopped);
        let fence = self.some_fence(device, s.x);
        let passes = self.passes(device, fence);
        let waits_long = !stopped && passes.names(NV_ERR_RESET_REQUIRED);
        let call = format!("queue_after(queue {queue}, {fence:#x})");
        let answer = calls::after(chosen.handle, fence);
        // A stopped queue need not wait for what has passed, so that it may be told either.
        if stopped && answer == NV_OK {
            return self.must(call, answer);
        }
        let wrong = Wrong::default()
            .when(passes.names(NV_ERR_INVALID_ARGUMENT), NV_ERR_INVALID_ARGUMENT)
            .when(stopped, NV_ERR_RESET_REQUIRED);
        if self.judge(call, &wrong, answer) && waits_long {
            let (handle, (_, last)) = (self.devices.rows[device].handle, calls::queue_fence(chosen.handle));
            let pending = Wrong::default().when(true, NV_ERR_TIMEOUT);
            let answer = calls::wait(handle, last, POLL);
            self.judge(format!("wait(device {device}, {last:#x} that waits for lost work)"), &pending, answer);
            self.recover_device(device);
            let answer = calls::wait(handle, last, FOREVER);
            self.must(format!("wait(device {device}, {last:#x} after the recovery)"), answer);
        }
    }
}
