//! The GPC clock, as the driver's clock arbiter and devfreq change it (docs/hardware/nvgpu-ctrl.md#clocks,
//! docs/hardware/nvgpu-nodes.md#sysfs).

use crate::chip::ChipData;
use std::sync::Arc;
use tegrarm_lock::Mutex;

/// The arbiter counts in MHz.
pub(crate) const MHZ: u64 = 1_000_000;

/// The clock state of the GPU. Programs read and write it, but the simulation does not run faster for it.
#[derive(Debug)]
pub(crate) struct Clocks {
    chip: &'static ChipData,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The bounds of devfreq in Hz.
    min: u64,
    max: u64,
    /// The sessions that asked for a rate, and the last rate of each in MHz.
    targets: Vec<(u64, u64)>,
    /// The number of requests whose descriptor is open. While there is one, devfreq does not change the clock.
    requests: usize,
    /// What the arbiter decided last, in MHz.
    actual: u64,
    /// The rate in Hz that the arbiter set last.
    rate: u64,
}

/// A session of the arbiter, which an open ctrl node has.
#[derive(Debug)]
pub(crate) struct Session {
    clocks: Arc<Clocks>,
    number: u64,
}

/// A request of a session. It lasts as long as its descriptor.
#[derive(Debug)]
pub(crate) struct Request(Arc<Clocks>);

impl Drop for Request {
    fn drop(&mut self) {
        self.0.state.lock().requests -= 1;
    }
}

impl Session {
    pub(crate) fn new(clocks: &Arc<Clocks>, number: u64) -> Session {
        Session { clocks: clocks.clone(), number }
    }

    /// Asks for a rate. 0 changes nothing, but counts as a request.
    pub(crate) fn request(&self, mhz: u64) -> Request {
        let mut state = self.clocks.state.lock();
        if mhz > 0 {
            state.targets.retain(|(other, _)| *other != self.number);
            state.targets.push((self.number, mhz));
        }
        state.requests += 1;
        self.clocks.arbitrate(&mut state);
        Request(self.clocks.clone())
    }

    /// What the session asked for last, in MHz. It is 0 if it asked for nothing.
    pub(crate) fn target(&self) -> u64 {
        let state = self.clocks.state.lock();
        state.targets.iter().find(|(other, _)| *other == self.number).map_or(0, |(_, mhz)| *mhz)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let mut state = self.clocks.state.lock();
        state.targets.retain(|(other, _)| *other != self.number);
        self.clocks.arbitrate(&mut state);
    }
}

impl Clocks {
    pub(crate) fn new(chip: &'static ChipData) -> Clocks {
        let (min, max) = (chip.min_frequency(), chip.highest_allowed());
        let state = State { min, max, targets: Vec::new(), requests: 0, actual: max / MHZ, rate: max };
        Clocks { chip, state: Mutex::new(state) }
    }

    /// The lowest step that is at least `hz`, or else the highest step.
    fn round(&self, hz: u64) -> u64 {
        self.chip.frequencies.iter().copied().find(|step| *step >= hz).unwrap_or(self.chip.max_frequency())
    }

    /// The limits of devfreq.
    pub(crate) fn limits(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.min, state.max)
    }

    pub(crate) fn set_min(&self, hz: u64) {
        let mut state = self.state.lock();
        state.min = self.round(hz).min(state.max);
    }

    pub(crate) fn set_max(&self, hz: u64) {
        let mut state = self.state.lock();
        state.max = self.round(hz).max(state.min);
    }

    /// Decides anew: the highest rate that a session asked for, or the highest of all if none did.
    fn arbitrate(&self, state: &mut State) {
        let asked = state.targets.iter().map(|(_, mhz)| *mhz).max().unwrap_or(self.chip.max_frequency() / MHZ);
        let in_range = asked.clamp(self.chip.min_frequency() / MHZ, self.chip.max_frequency() / MHZ);
        state.actual = in_range.clamp(state.min / MHZ, state.max / MHZ);
        state.rate = self.round(state.actual * MHZ);
    }

    /// What the arbiter decided last, in MHz.
    pub(crate) fn actual(&self) -> u64 {
        self.state.lock().actual
    }

    /// The rate now: that of the arbiter while a request is open, or else devfreq's lower limit, because the simulated load is nil.
    pub(crate) fn current(&self) -> u64 {
        let state = self.state.lock();
        if state.requests > 0 { state.rate } else { state.min }
    }
}
