//! Replays of a device: recorded, run, waited for, ended.

use super::calls::Sum;
use super::known::*;
use super::step::Step;
use super::{FOREVER, POLL, World, calls};
use tegrarm_abi::rm::status::*;

/// The most replays at a time, and the most commands of one, so that a sequence stays fast.
const MOST_REPLAYS: usize = 3;
const COMMANDS: usize = 6;

impl World {
    pub(super) fn replay_create(&mut self, s: &Step) {
        let chosen = self.devices.choose(s.picks[0]);
        if self.replays.valid().count() >= MOST_REPLAYS {
            return;
        }
        let (answer, handle) = calls::create_replay(chosen.handle);
        if self.judge(format!("replay_create({:#x})", chosen.handle), &Wrong::default().absent(chosen), answer) {
            let device = chosen.at.expect("a device");
            let (commands, needs) = (vec![], vec![]);
            self.replays.add(handle, Replay { device, commands, needs, runs: 0, in_flight: false, stopped: false });
        }
    }

    /// The conditions of a recording of something of `device`.
    fn records(&self, replay: Chosen, device: Option<usize>) -> Wrong {
        let found = replay.at.map(|at| &self.replays[at]);
        let elsewhere = found.is_some_and(|r| device.is_some_and(|device| device != r.device));
        Wrong::default()
            .absent(replay)
            .when(found.is_some_and(|r| r.runs > 0), NV_ERR_INVALID_STATE)
            .when(elsewhere, NV_ERR_INVALID_ARGUMENT)
    }

    fn is_full(&self, replay: Chosen) -> bool {
        replay.at.is_some_and(|at| self.replays[at].commands.len() == COMMANDS)
    }

    pub(super) fn replay_launch(&mut self, s: &Step) {
        let (replay, kernel) = (self.replays.choose(s.picks[0]), self.kernels.choose(s.picks[1]));
        let device = self.device_of(kernel);
        let Some(lines) = self.some_lines(device.unwrap_or(0), s).filter(|_| !self.is_full(replay)) else { return };
        let (floats, count) = (u32::from(s.w) % 33, if s.z % 16 == 7 { 3 } else { 4 });
        let wrong = self.records(replay, device).absent(kernel).when(count != 4, NV_ERR_INVALID_ARGUMENT);
        let sum = Sum { at: lines.map(|(buffer, at)| buffer.address + at), floats, count };
        let (answer, index) = calls::replay_launch(replay.handle, kernel.handle, &sum);
        let call = format!("replay_launch({:#x}, {:#x}, {:x?})", replay.handle, kernel.handle, sum.at);
        if self.judge(call, &wrong, answer) {
            let [a, b, to] = lines.map(|(buffer, at)| (buffer.memory, buffer.start + at));
            let module = self.kernels[kernel.at.expect("a kernel")].module;
            let recorded = &mut self.replays[replay.at.expect("a replay")];
            let before = recorded.commands.iter().filter(|c| matches!(c, Command::Add { .. })).count();
            recorded.needs.push(Need::Module(module));
            recorded.needs.extend(lines.iter().map(|(buffer, _)| Need::Mapping(buffer.mapping)));
            let faults = lines[2].0.read_only && floats > 0;
            recorded.commands.push(Command::Add { a, b, to, floats, faults });
            self.expect(index as usize == before, "the number of the launch");
        }
    }

    pub(super) fn replay_copy(&mut self, s: &Step) {
        let (replay, c) = (self.replays.choose(s.picks[2]), self.some_copy(s));
        let device = |chosen: Chosen| chosen.at.map(|at| self.buffers[at].device);
        let both = c.to.at.zip(c.from.at).map(|(to, from)| (self.buffers[to], self.buffers[from]));
        let open = both.is_some_and(|(to, from)| self.is_open(&to, c.to_at, &from, c.from_at, c.len));
        if self.is_full(replay) || open {
            return;
        }
        let wrong = self.records(replay, device(c.to)).and(self.records(replay, device(c.from)));
        let wrong = wrong.and(self.copies(&c)).when(c.len >> 32 != 0, NV_ERR_INVALID_ARGUMENT);
        let answer = calls::replay_copy(replay.handle, (c.to.handle, c.to_at), (c.from.handle, c.from_at), c.len);
        let what = format!("{:#x}+{:#x}, {:#x}+{:#x}", c.to.handle, c.to_at, c.from.handle, c.from_at);
        if self.judge(format!("replay_copy({:#x}, {what}, {:#x})", replay.handle, c.len), &wrong, answer) {
            let (to, from) = both.expect("two buffers");
            let faults = to.read_only && c.len > 0;
            // A replay keeps buffers alive, but not the process's own pages.
            let pages = [to, from].into_iter().filter(|b| self.memories[b.memory].pages.is_some());
            let needs: Vec<Need> = pages.map(|b| Need::Mapping(b.mapping)).collect();
            let (to, from) = ((to.memory, to.start + c.to_at), (from.memory, from.start + c.from_at));
            let command = Command::Copy { to, from, size: c.len, faults };
            let recorded = &mut self.replays[replay.at.expect("a replay")];
            recorded.commands.push(command);
            recorded.needs.extend(needs);
        }
    }

    /// Whether something has ended that a replay uses. It may not run any more.
    fn is_broken(&self, replay: usize) -> bool {
        self.replays[replay].needs.iter().any(|need| match need {
            Need::Module(module) => !self.modules.rows[*module].valid,
            Need::Mapping(mapping) => !self.buffers.valid().any(|at| self.buffers[at].mapping == *mapping),
        })
    }

    pub(super) fn replay_submit(&mut self, s: &Step) {
        let (chosen, count) = (self.replays.choose(s.picks[0]), u32::from(s.z % 16 == 3));
        let found = chosen.at.map(|at| &self.replays[at]);
        let wrong = Wrong::default()
            .absent(chosen)
            .when(found.is_some_and(|r| r.in_flight || r.commands.is_empty()), NV_ERR_INVALID_STATE)
            .when(found.is_some_and(|r| r.stopped), NV_ERR_RESET_REQUIRED)
            .when(count != 0, NV_ERR_INVALID_ARGUMENT);
        if let (true, Some(replay)) = (wrong.is_empty(), chosen.at) {
            if self.is_broken(replay) {
                return;
            }
            let (device, own) = (self.replays[replay].device, self.devices[self.replays[replay].device].own);
            // A run waits for the work of the device's own queue, lost work too.
            if self.queues[own].stopped {
                self.recover_device(device);
            }
            for memory in self.memories_of(replay) {
                self.order(memory, own);
            }
        }
        let answer = calls::submit(chosen.handle, count);
        if self.judge(format!("replay_submit({:#x}, {count} values)", chosen.handle), &wrong, answer) {
            self.runs(chosen.at.expect("a replay"));
        }
    }

    fn memories_of(&self, replay: usize) -> Vec<usize> {
        let used = self.replays[replay].commands.iter().flat_map(|command| match command {
            Command::Copy { to, from, .. } => vec![to.0, from.0],
            Command::Add { a, b, to, .. } => vec![a.0, b.0, to.0],
        });
        used.collect()
    }

    /// Notes what a run does. It ends at the first command that faults.
    fn runs(&mut self, replay: usize) {
        for memory in self.memories_of(replay) {
            self.memories[memory].run = Some(replay);
        }
        let mut stopped = false;
        for command in self.replays[replay].commands.clone() {
            match command {
                Command::Copy { faults: true, .. } | Command::Add { faults: true, .. } => {
                    stopped = true;
                    break;
                }
                Command::Copy { to, from, size, .. } => self.move_bytes(to, from, size),
                Command::Add { a, b, to, floats, .. } => self.add(a, b, to, floats),
            }
        }
        let replay = &mut self.replays[replay];
        (replay.runs, replay.in_flight, replay.stopped) = (replay.runs + 1, true, stopped);
    }

    /// Waits until nothing uses the memory of a replay's run any more.
    pub(super) fn end_run(&mut self, replay: usize) {
        let (handle, stopped) = (self.replays.rows[replay].handle, self.replays[replay].stopped);
        let wrong = Wrong::default().when(stopped, NV_ERR_RESET_REQUIRED);
        let answer = calls::wait_for_run(handle, FOREVER);
        self.judge(format!("replay_wait(replay {replay})"), &wrong, answer);
        self.replays[replay].in_flight = stopped;
        self.forget_run(replay);
    }

    fn forget_run(&mut self, replay: usize) {
        for memory in &mut self.memories {
            memory.run = memory.run.filter(|other| *other != replay);
        }
    }

    pub(super) fn replay_wait(&mut self, s: &Step) {
        let chosen = self.replays.choose(s.picks[0]);
        match chosen.at {
            None => {
                let answer = calls::wait_for_run(chosen.handle, FOREVER);
                let call = format!("replay_wait({:#x})", chosen.handle);
                self.judge(call, &Wrong::default().absent(chosen), answer);
            }
            // Looking at a run that goes on says so, and one that has ended may be known to have.
            Some(replay) if s.z.is_multiple_of(4) => {
                let answer = calls::wait_for_run(chosen.handle, POLL);
                let Replay { in_flight, stopped, .. } = self.replays[replay];
                let allowed = match answer {
                    NV_OK => !stopped,
                    NV_ERR_TIMEOUT => in_flight,
                    NV_ERR_RESET_REQUIRED => stopped,
                    _ => false,
                };
                self.history.push(format!("replay_wait(replay {replay}, only a look) = {answer:#x}"));
                self.expect(allowed, "a look at a run");
                if answer == NV_OK {
                    self.replays[replay].in_flight = false;
                    self.forget_run(replay);
                }
            }
            Some(replay) => self.end_run(replay),
        }
    }

    pub(super) fn replay_destroy(&mut self, s: &Step) {
        let chosen = self.replays.choose(s.picks[0]);
        let answer = calls::destroy_replay(chosen.handle);
        if self.judge(format!("replay_destroy({:#x})", chosen.handle), &Wrong::default().absent(chosen), answer) {
            let replay = chosen.at.expect("a replay");
            self.replays.end(replay);
            self.forget_run(replay);
        }
    }
}
