//! The GPC clock, as CLK_* ioctls and devfreq change it (docs/hardware/nvgpu-nodes.md#sysfs).

use crate::chip::ChipData;
use std::sync::{Arc, Weak};
use tegrarm_lock::Mutex;

/// The clock state of the GPU. Programs read and write it, but the simulation does not run faster for it.
#[derive(Debug)]
pub(crate) struct Clocks {
    chip: &'static ChipData,
    state: Mutex<FrequencyLimits>,
}

/// The bounds of the frequency: devfreq, and the requests of clock sessions.
#[derive(Debug)]
struct FrequencyLimits {
    min: u64,
    max: u64,
    /// The requests of clock sessions. The newest one that still exists overrides devfreq.
    requests: Vec<(u64, Weak<Request>)>,
}

/// A CLK_SET_INFO request. Its session keeps it.
#[derive(Debug)]
pub(crate) struct Request;

impl Clocks {
    pub(crate) fn new(chip: &'static ChipData) -> Clocks {
        let state = FrequencyLimits { min: chip.min_frequency(), max: chip.max_frequency(), requests: Vec::new() };
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

    /// Asks for a rate, as long as the result lives.
    pub(crate) fn request(&self, hz: u64) -> Arc<Request> {
        let request = Arc::new(Request);
        self.state.lock().requests.push((self.round(hz), Arc::downgrade(&request)));
        request
    }

    /// The rate now: that of a request that exists, or else devfreq's lower limit, because the simulated load is nil.
    pub(crate) fn current(&self) -> u64 {
        let mut state = self.state.lock();
        state.requests.retain(|(_, request)| request.strong_count() > 0);
        state.requests.last().map_or(state.min, |(hz, _)| *hz)
    }
}
