//! Replays: work that is recorded once and run many times. A run makes no system call, allocates nothing and waits for
//! no lock.
//!
//! A run copies inputs and writes the values that change into the recorded words, descriptors and parameter banks, at
//! places that are called patch points. Then it rings the doorbell and waits for one number, first in a loop for a
//! limited time and then with sleeps. At the end it copies outputs. The work is that of a device ([`record`]) on a
//! channel of the replay, or work that another frontend recorded for its own channels ([`Replay::foreign`]).

mod pace;
pub mod record;
mod steps;

pub use steps::{Copy, Counter, MOST_WORDS, Patch, RingPlaces, Source, Step, Value};

use crate::runtime::channel::backoff::LONGEST_REST;
use crate::runtime::device::{CLOSE_DEADLINE, Device};
use crate::runtime::memory::place::{Place, Width};
use pace::{Pace, Wait};
use record::Own;
use std::sync::Arc;
use std::time::{Duration, Instant};
use steps::Now;
use tegrarm_abi::rm::status::*;
use tegrarm_kmd::Kmd;
use tegrarm_rm::status::{RmResult, fail};

/// The time for which a wait reads in a loop before it sleeps.
pub const SPIN: Duration = Duration::from_micros(20);

/// A recording, and the state of its runs.
pub struct Replay {
    /// The end of a run: the number at `signal` reaches that of the counter.
    signal: Option<Place>,
    timeline: Counter,
    /// The number that a run adds to the timeline.
    per_run: u64,
    kick: Counter,
    channels: Vec<RingPlaces>,
    inputs: Vec<Copy>,
    steps: Vec<Step>,
    outputs: Vec<Copy>,
    /// The number of values that a run takes, which is one more than the highest slot.
    slots: u32,
    pace: Pace,
    /// The number for which the run in flight is waited for.
    in_flight: Option<u64>,
    runs: u64,
    /// Whether the recording has been turned into steps.
    sealed: bool,
    /// The kernel whose GPU is executed in steps, if waits have to do that.
    kmd: Option<Arc<dyn Kmd>>,
    /// It is declared last, because the channel must end when nothing uses it any more.
    own: Option<Own>,
}

impl Replay {
    /// Makes an empty recording of a device's work.
    pub fn on(device: &Arc<Device>) -> Replay {
        let mut replay = Replay::foreign(Some(device.rm().kmd().clone()));
        replay.own = Some(Own::new(device));
        replay
    }

    /// Makes an empty recording for channels of others. `kmd` is their kernel, if it is known.
    pub fn foreign(kmd: Option<Arc<dyn Kmd>>) -> Replay {
        Replay {
            signal: None,
            timeline: Counter::Own(0),
            per_run: 1,
            kick: Counter::Own(0),
            channels: Vec::new(),
            inputs: Vec::new(),
            steps: Vec::new(),
            outputs: Vec::new(),
            slots: 0,
            // A loop would keep a GPU from its work that works on the host's processors.
            pace: Pace::new(if kmd.as_ref().is_some_and(|kmd| kmd.progress().is_some()) {
                Duration::ZERO
            } else {
                SPIN
            }),
            in_flight: None,
            runs: 0,
            sealed: false,
            kmd,
            own: None,
        }
    }

    /// The device that the replay belongs to.
    pub fn device(&self) -> Option<&Arc<Device>> {
        self.own.as_ref().map(Own::device)
    }

    /// Sets the time for which a wait reads in a loop before it sleeps, also where the GPU works on the same processors.
    pub fn set_spin(&mut self, spin: Duration) {
        self.pace.spin = spin;
    }

    fn recording(&self) -> RmResult<()> {
        if self.runs > 0 {
            fail!(NV_ERR_INVALID_STATE, "the replay has run: nothing can be added to it any more");
        }
        Ok(())
    }

    fn lent(&self) -> RmResult<()> {
        self.recording()?;
        if self.own.is_some() {
            fail!(NV_ERR_INVALID_ARGUMENT, "the replay has its device's channel: add launches and copies");
        }
        Ok(())
    }

    /// Adds bytes that are copied before each run.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_STATE` after the first run.
    pub fn input(&mut self, copy: Copy) -> RmResult<()> {
        self.recording()?;
        self.inputs.push(copy);
        Ok(())
    }

    /// Adds bytes that are copied after each run has finished.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_STATE` after the first run.
    pub fn output(&mut self, copy: Copy) -> RmResult<()> {
        self.recording()?;
        self.outputs.push(copy);
        Ok(())
    }

    /// Adds a channel of the caller. Returns its index.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_STATE` after the first run, and `NV_ERR_INVALID_ARGUMENT` if the replay has its own channel or
    /// the number of the ring's entries is no power of two.
    pub fn channel(&mut self, channel: RingPlaces) -> RmResult<u32> {
        self.lent()?;
        if channel.entries < 2 || !channel.entries.is_power_of_two() {
            fail!(NV_ERR_INVALID_ARGUMENT, "a ring of {} entries: no power of two", channel.entries);
        }
        self.channels.push(channel);
        Ok(self.channels.len() as u32 - 1)
    }

    /// Sets the end of a run: the number at `signal` reaches `timeline` + `per_run`.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_STATE` after the first run, and `NV_ERR_INVALID_ARGUMENT` if the replay has its own channel.
    pub fn timeline(&mut self, signal: Place, timeline: Counter, per_run: u64, kick: Counter) -> RmResult<()> {
        self.lent()?;
        signal.check(Width::W8)?;
        (self.signal, self.timeline, self.per_run, self.kick) = (Some(signal), timeline, per_run, kick);
        Ok(())
    }

    /// Adds a patch point. Patch points are written in the order of the steps.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_STATE` after the first run, `NV_ERR_INVALID_ADDRESS` for a place that is not aligned, and
    /// `NV_ERR_INVALID_ARGUMENT` for a shift of 64 or more.
    pub fn patch(&mut self, place: Place, width: Width, keep: u64, value: Value) -> RmResult<()> {
        self.recording()?;
        place.check(width)?;
        if value.shift >= 64 {
            fail!(NV_ERR_INVALID_ARGUMENT, "a shift by {}", value.shift);
        }
        if let Source::Slot(index) = value.source {
            self.claim_slot(index)?;
        }
        self.steps.push(Step::Patch(Patch::new(place, width, keep, value)));
        Ok(())
    }

    fn claim_slot(&mut self, index: u32) -> RmResult<()> {
        if index >= MOST_SLOTS {
            fail!(NV_ERR_INVALID_ARGUMENT, "slot {index}: a run takes at most {MOST_SLOTS} values");
        }
        self.slots = self.slots.max(index + 1);
        Ok(())
    }

    /// Adds words for a channel.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_STATE` after the first run, and `NV_ERR_INVALID_ARGUMENT` if there is no such channel, if there
    /// are more pushes than its ring has entries, or if a ring entry cannot name the words.
    pub fn push(&mut self, channel: u32, at: u64, words: u32) -> RmResult<()> {
        self.lent()?;
        let Some(known) = self.channels.get(channel as usize) else {
            fail!(NV_ERR_INVALID_ARGUMENT, "channel {channel} of {}", self.channels.len());
        };
        let same = |s: &&Step| matches!(s, Step::Push { channel: c, .. } if *c == channel as usize);
        let pushes = self.steps.iter().filter(same).count();
        if pushes as u32 >= known.entries - 1 {
            fail!(NV_ERR_INVALID_ARGUMENT, "{pushes} pushes are all that a ring of {} entries holds", known.entries);
        }
        self.steps.push(Step::push(channel as usize, at, words)?);
        Ok(())
    }

    /// Starts a run with `count` values.
    ///
    /// # Errors
    /// `NV_ERR_INVALID_STATE` if the last run has not been waited for or the end of a run is not set,
    /// `NV_ERR_INVALID_ARGUMENT` if the number of values is not that of the slots, and the channel's fault. The first
    /// run of a device's work can also fail with an error that RM gives.
    pub fn submit(&mut self, values: &Place, count: u32) -> RmResult<()> {
        if self.in_flight.is_some() {
            fail!(NV_ERR_INVALID_STATE, "the last run has not been waited for");
        }
        if count != self.slots {
            fail!(NV_ERR_INVALID_ARGUMENT, "{count} values for a replay that takes {}", self.slots);
        }
        if !self.sealed {
            self.seal()?;
        }
        self.check()?;
        for copy in &self.inputs {
            copy.to.copy_from(&copy.from, copy.len);
        }
        let (timeline, kick) = (self.timeline.get(), self.kick.get() + 1);
        let given = self.own.as_ref().map_or(0, |own| {
            own.count_run();
            own.device().own().last()
        });
        let now = Now::new(timeline, kick, given, values);
        for step in &self.steps {
            step.run(&mut self.channels, &now);
        }
        self.kick.set(kick);
        let target = timeline + self.per_run;
        self.timeline.set(target);
        (self.in_flight, self.runs) = (Some(target), self.runs + 1);
        Ok(())
    }

    /// Turns the recording into steps, before the first run.
    #[cold]
    fn seal(&mut self) -> RmResult<()> {
        if let Some(own) = &mut self.own {
            let mut sealed = own.seal()?;
            sealed.steps.splice(0..0, std::mem::take(&mut self.steps));
            (self.channels, self.steps) = (vec![sealed.ring], sealed.steps);
            (self.signal, self.timeline) = (Some(sealed.signal), Counter::Own(sealed.first));
        }
        if self.signal.is_none() {
            fail!(NV_ERR_INVALID_STATE, "the replay does not know its timeline: nothing says when a run has finished");
        }
        self.steps.dedup_by(|next, step| step.join(next));
        self.sealed = true;
        Ok(())
    }

    #[inline]
    fn is_stopped(&self) -> bool {
        self.channels.iter().any(RingPlaces::is_stopped)
    }

    #[inline]
    fn check(&self) -> RmResult<()> {
        if self.is_stopped() { self.fault() } else { Ok(()) }
    }

    #[cold]
    fn fault(&self) -> RmResult<()> {
        if let Some(own) = &self.own {
            return own.check();
        }
        fail!(NV_ERR_RESET_REQUIRED, "a channel of the replay was stopped: its error notifier says why")
    }

    /// Waits until the run has finished, and then copies outputs. Without a deadline the wait has no limit.
    ///
    /// # Errors
    /// The channel's fault as soon as there is one, and `NV_ERR_TIMEOUT` with the work that is pending. The call can be
    /// repeated.
    pub fn wait(&mut self, deadline: Option<Duration>) -> RmResult<()> {
        let (Some(target), Some(signal)) = (self.in_flight, &self.signal) else { return Ok(()) };
        if signal.read_u64() < target {
            let wait = self.wait_longer(signal, target, deadline)?;
            self.pace.finished(&wait);
        }
        std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
        if let Some(kmd) = &self.kmd {
            kmd.saw_gpu();
        }
        self.in_flight = None;
        for copy in &self.outputs {
            copy.to.copy_from(&copy.from, copy.len);
        }
        Ok(())
    }

    fn wait_longer(&self, signal: &Place, target: u64, deadline: Option<Duration>) -> RmResult<Wait> {
        let (start, mut wait) = (Instant::now(), self.pace.wait());
        loop {
            let seen = self.kmd.as_ref().and_then(|kmd| kmd.progress());
            let progress = self.kmd.as_ref().is_some_and(|kmd| kmd.step());
            // The order matters: a release that came before the fault still counts.
            let stopped = self.is_stopped();
            for _ in 0..wait.looks() {
                if signal.read_u64() >= target {
                    return Ok(wait);
                }
                std::hint::spin_loop();
            }
            if stopped {
                self.check()?;
            }
            if let Some(why) = self.kmd.as_ref().and_then(|kmd| kmd.waits_in_vain()) {
                fail!(NV_ERR_NOT_SUPPORTED, "{why}");
            }
            let waited = start.elapsed();
            let left = deadline.map_or(Duration::MAX, |d| d.saturating_sub(waited));
            if left.is_zero() {
                let reached = signal.read_u64();
                fail!(
                    NV_ERR_TIMEOUT,
                    "run {} is pending after {waited:?}: the timeline is at {reached}, wanted {target}, and no channel \
                     reports a fault",
                    self.runs
                );
            }
            if let Some(sleep) = wait.sleep(waited).filter(|_| !progress) {
                match (seen, &self.kmd) {
                    (Some(seen), Some(kmd)) => kmd.rest(seen, LONGEST_REST.min(left)),
                    _ => std::thread::sleep(sleep.min(left)),
                }
            }
        }
    }
}

/// The limit is more values than any control loop has.
pub const MOST_SLOTS: u32 = 1 << 16;

impl Drop for Replay {
    fn drop(&mut self) {
        // Work in flight must not continue when its memory is freed. A stopped channel has no work in flight.
        self.outputs.clear();
        if let Some(Err(e)) = self.own.as_mut().map(|own| own.finish(Some(CLOSE_DEADLINE))) {
            tracing::warn!("ending a replay whose last run in a queue has not finished: {e}");
        }
        if let Err(e) = self.wait(Some(CLOSE_DEADLINE)) {
            tracing::warn!("ending a replay whose last run has not finished: {e}");
        }
    }
}
