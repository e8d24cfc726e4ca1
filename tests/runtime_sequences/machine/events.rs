//! Events: recorded, and their times.

use super::known::*;
use super::step::Step;
use super::{FOREVER, World, calls};
use tegrarm_abi::rm::status::*;

/// The most events at a time.
const MOST_EVENTS: usize = 8;

impl World {
    pub(super) fn event_create(&mut self, s: &Step) {
        let chosen = self.devices.choose(s.picks[0]);
        if self.events.valid().count() >= MOST_EVENTS {
            return;
        }
        let (answer, handle) = calls::create_event(chosen.handle);
        if self.judge(format!("event_create({:#x})", chosen.handle), &Wrong::default().absent(chosen), answer) {
            self.events.add(handle, Event { device: chosen.at.expect("a device"), at: None });
        }
    }

    pub(super) fn event_destroy(&mut self, s: &Step) {
        let chosen = self.events.choose(s.picks[0]);
        let answer = calls::destroy_event(chosen.handle);
        if self.judge(format!("event_destroy({:#x})", chosen.handle), &Wrong::default().absent(chosen), answer) {
            self.events.end(chosen.at.expect("an event"));
        }
    }

    pub(super) fn event_record(&mut self, s: &Step) {
        let (event, queue) = (self.events.choose(s.picks[0]), self.queues.choose(s.picks[1]));
        let device = event.at.map(|at| self.events[at].device);
        let wrong = self.takes(queue, device).absent(event);
        let (answer, fence) = calls::record(event.handle, queue.handle);
        if self.judge(format!("event_record({:#x}, {:#x})", event.handle, queue.handle), &wrong, answer) {
            let queue = queue.at.expect("a queue");
            self.given(queue, fence, &[]);
            self.events[event.at.expect("an event")].at = Some((queue, fence));
        }
    }

    /// Waits until the GPU has come to an event, so that its time is known. It may be asked before.
    fn reach(&mut self, event: usize) {
        let Some((queue, fence)) = self.events[event].at else { return };
        let device = self.queues[queue].device;
        let answer = calls::wait(self.devices.rows[device].handle, fence, FOREVER);
        self.must(format!("wait(device {device}, {fence:#x} of event {event})"), answer);
    }

    fn is_unset(&self, chosen: Chosen) -> bool {
        chosen.at.is_some_and(|at| self.events[at].at.is_none())
    }

    pub(super) fn event_time(&mut self, s: &Step) {
        let chosen = self.events.choose(s.picks[0]);
        let wrong = Wrong::default().absent(chosen).when(self.is_unset(chosen), NV_ERR_INVALID_STATE);
        let (answer, _) = calls::time(chosen.handle);
        if wrong.is_empty() && answer == NV_ERR_NOT_READY {
            self.history.push(format!("event_time({:#x}) = not ready", chosen.handle));
        } else {
            self.judge(format!("event_time({:#x})", chosen.handle), &wrong, answer);
        }
        if let Some(event) = chosen.at.filter(|_| wrong.is_empty()) {
            self.reach(event);
            let (answer, time) = calls::time(chosen.handle);
            self.must(format!("event_time(event {event} that was reached)"), answer);
            self.expect(time > 0, "the GPU wrote its time");
        }
    }

    pub(super) fn event_elapsed(&mut self, s: &Step) {
        let [start, end] = [0, 1].map(|i| self.events.choose(s.picks[i]));
        for event in [start, end].into_iter().filter_map(|chosen| chosen.at) {
            self.reach(event);
        }
        let device = |chosen: Chosen| chosen.at.map(|at| self.events[at].device);
        let apart = device(start).zip(device(end)).is_some_and(|(one, other)| one != other);
        let wrong = Wrong::default()
            .absent(start)
            .absent(end)
            .when(apart, NV_ERR_INVALID_ARGUMENT)
            .when(self.is_unset(start) || self.is_unset(end), NV_ERR_INVALID_STATE);
        let (answer, elapsed) = calls::elapsed(start.handle, end.handle);
        let call = format!("event_elapsed({:#x}, {:#x})", start.handle, end.handle);
        if self.judge(call, &wrong, answer) {
            let same = start.at == end.at;
            self.expect(!same || elapsed == 0, "no time passes between an event and itself");
            let at = |chosen: Chosen| self.events[chosen.at.expect("an event")].at.expect("recorded");
            let ((first, before), (second, after)) = (at(start), at(end));
            let in_order = first != second || before > after || elapsed >= 0;
            self.expect(in_order, "events of one queue have times in the order of their fences");
        }
    }
}
