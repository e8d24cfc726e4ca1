//! Executable graphs as replays of libtegrarm: what the GPU does alone is recorded once, and each launch gives the whole to a queue.

use crate::context::Context;
use crate::events::{self, EVENTS};
use crate::functions::Launch;
use crate::graphs::{Operation, Step};
use crate::kernels::Replay;
use crate::order::Stream;
use crate::result::Answer;
use crate::shapes::{Fill, Shape};
use crate::works::{self, Work, copied_by_gpu, filled_by_gpu};
use std::sync::Arc;

/// A graph of fewer pieces of work than this is not recorded: a queue takes them one by one as quickly.
const LEAST: usize = 2;

/// A graph that is recorded.
pub struct Recorded {
    replay: Replay,
    /// The handle of its context.
    context: usize,
    /// The launches in the order of their numbers.
    launches: Vec<Arc<Launch>>,
    /// The fence of the last run, or 0.
    last: u64,
}

impl Recorded {
    /// Records steps, if the GPU does all of them alone.
    pub fn new(context: &Context, steps: &[Step]) -> Answer<Option<Recorded>> {
        let Some(work) = flat(steps) else { return Ok(None) };
        let fits = |operation: &&Operation| match operation {
            Operation::Kernel(launch) => launch.function.context == context.handle,
            Operation::Copy(copy) => copied_by_gpu(context, &copy.1),
            Operation::Fill(_, fill) => filled_by_gpu(context, fill),
            _ => false,
        };
        if work.len() < LEAST || !work.iter().all(fits) {
            return Ok(None);
        }
        let (replay, launches) = (Replay::new(&context.device)?, Vec::new());
        let mut recorded = Recorded { replay, context: context.handle, launches, last: 0 };
        work.iter().try_for_each(|operation| recorded.add(operation))?;
        Ok(Some(recorded))
    }

    fn add(&mut self, operation: &Operation) -> Answer {
        match operation {
            Operation::Kernel(launch) => {
                self.replay.launch(&launch.function.kernel, &launch.size, &launch.addresses)?;
                self.launches.push(launch.clone());
                Ok(())
            }
            Operation::Copy(copy) => self.copy(&copy.1),
            Operation::Fill(_, fill) => self.fill(fill),
            _ => Ok(()),
        }
    }

    fn copy(&self, shape: &Shape) -> Answer {
        let (Some((to, to_at)), Some((from, from_at))) = (&shape.to.memory, &shape.from.memory) else { return Ok(()) };
        shape.pieces().try_for_each(|(target, source, size)| {
            let target = (&to.buffer, to.start + to_at + target as u64);
            self.replay.copy(target, (&from.buffer, from.start + from_at + source as u64), size as u64)
        })
    }

    fn fill(&self, fill: &Fill) -> Answer {
        let (memory, at) = &fill.to;
        (0..fill.rows as u64).try_for_each(|row| {
            let target = (&memory.buffer, memory.start + at + row * fill.pitch as u64);
            self.replay.fill(target, (fill.width * fill.size) as u64, fill.value, fill.size as u32)
        })
    }

    /// Whether a launch in this context can be a run of it.
    pub fn is_of(&self, context: &Context) -> bool {
        self.context == context.handle
    }

    /// Whether the GPU has finished all runs.
    pub fn is_idle(&self, context: &Context) -> Answer<bool> {
        Ok(self.last == 0 || context.told(context.device.passed(self.last))?)
    }

    /// Takes over the launches of steps that have the form of those that were recorded. Says whether it could: a launch of another
    /// function has to be recorded anew.
    pub fn take_over(&mut self, steps: &[Step]) -> Answer<bool> {
        let work = flat(steps).unwrap_or_default();
        let launches = work.iter().filter_map(|operation| match operation {
            Operation::Kernel(launch) => Some(launch),
            _ => None,
        });
        for ((index, known), new) in (0..).zip(&mut self.launches).zip(launches) {
            if Arc::ptr_eq(known, new) {
                continue;
            }
            if known.function.kernel.handle != new.function.kernel.handle {
                return Ok(false);
            }
            self.replay.update(index, &new.function.kernel, &new.size, &new.addresses)?;
            *known = new.clone();
        }
        Ok(true)
    }

    /// Gives a stream a run.
    pub fn give(&mut self, context: &Context, stream: &Stream) -> Answer {
        self.last = context.submit(stream, |queue| self.replay.enqueue(queue))?;
        Ok(())
    }
}

/// The pieces of work of steps, with those of child graphs, or nothing if the CPU has a part in them.
fn flat(steps: &[Step]) -> Option<Vec<&Operation>> {
    let mut found = Vec::new();
    for step in steps.iter().filter(|step| step.enabled) {
        match &step.operation {
            Operation::Empty => {}
            Operation::Child(_) => found.extend(flat(&step.inside)?),
            Operation::Copy(copy) if copy.1.bytes() == 0 => {}
            Operation::Fill(_, fill) if fill.width == 0 || fill.rows == 0 => {}
            Operation::Kernel(_) | Operation::Copy(_) | Operation::Fill(..) => found.push(&step.operation),
            Operation::Host(_) | Operation::Record(_) | Operation::Wait(_) => return None,
        }
    }
    Some(found)
}

/// Gives it to a stream. The steps of a child graph are given one by one instead.
fn give_operation(operation: &Operation, context: &Context, stream: &Stream) -> Answer {
    match operation {
        Operation::Empty | Operation::Child(_) => Ok(()),
        Operation::Kernel(launch) => launch.give(context, stream),
        Operation::Copy(copy) => works::give(context, stream, &Work::Copy(copy.1.clone())),
        Operation::Fill(_, fill) => works::give(context, stream, &Work::Fill(fill.clone())),
        Operation::Host(host) => works::give(context, stream, &Work::Host { function: host.function, user: host.user }),
        Operation::Record(event) => events::record_in(context, stream, &*EVENTS.get(*event)?),
        Operation::Wait(event) => events::wait_in(context, stream, &*EVENTS.get(*event)?),
    }
}

/// Gives a step to a stream, unless it is disabled.
fn give_step(step: &Step, context: &Context, stream: &Stream) -> Answer {
    if step.enabled {
        give_operation(&step.operation, context, stream)?;
        step.inside.iter().try_for_each(|step| give_step(step, context, stream))?;
    }
    Ok(())
}

/// Where a graph's steps go at its launches.
#[derive(Default)]
pub enum Way {
    /// It has to be found out: the steps are new, or another form of them.
    #[default]
    Unknown,
    /// One by one.
    Single,
    /// As a replay.
    Replay(Box<Recorded>),
    /// As a replay, whose launches have other sizes or values since.
    Changed(Box<Recorded>),
}

impl Way {
    /// The launches of the steps have changed, and nothing else.
    pub fn launches_changed(&mut self) {
        *self = match std::mem::take(self) {
            Way::Replay(recorded) | Way::Changed(recorded) => Way::Changed(recorded),
            _ => Way::Unknown,
        };
    }

    /// The steps have changed, in the same form.
    pub fn steps_changed(&mut self, steps: &[Step]) {
        let launches_alone = |work: Vec<&Operation>| work.iter().all(|one| matches!(one, Operation::Kernel(_)));
        if flat(steps).is_some_and(launches_alone) {
            self.launches_changed();
        } else {
            *self = Way::Unknown;
        }
    }

    /// Gives steps to a stream.
    pub fn give(&mut self, context: &Context, stream: &Stream, steps: &[Step]) -> Answer {
        match self {
            Way::Unknown => {
                // What cannot be recorded is refused when it is given, with its own reason.
                let recorded = Recorded::new(context, steps).ok().flatten();
                *self = recorded.map_or(Way::Single, |recorded| Way::Replay(Box::new(recorded)));
            }
            // A run that goes on has the values before: this one is given step by step, so that nobody has to wait.
            Way::Changed(recorded) if recorded.is_of(context) && recorded.is_idle(context)? => {
                let same = recorded.take_over(steps);
                *self = match (same, std::mem::take(self)) {
                    (Ok(true), Way::Changed(recorded)) => Way::Replay(recorded),
                    (same, _) => {
                        same?;
                        return self.give(context, stream, steps);
                    }
                };
            }
            _ => {}
        }
        match self {
            Way::Replay(recorded) if recorded.is_of(context) => recorded.give(context, stream),
            _ => steps.iter().try_for_each(|step| give_step(step, context, stream)),
        }
    }
}
