//! The two clocks. Programs see PTIMER ([`Ptimer`]): in semaphores, in the usermode page, in `SR_GLOBALTIMER` and in the answers
//! of the kernel. Timeouts, watchdogs and traces use the time of the host ([`host_ns`]). The two are the same unless the GPU's
//! time is modelled.

use nix::time::{ClockId, clock_gettime};
use tegra_hw::Load;
use tegrarm_lock::Mutex;

/// PTIMER counts at 31.25 MHz, so the low five bits of its nanoseconds are zero.
const STEP: u64 = 32;
/// With modelled time, the GPU counts as idle when it has done nothing for this long on the host. A program that submits piece by
/// piece has pauses on the host that say nothing about a board.
const IDLE: u64 = 1_000_000_000;

/// The time of the host now, in nanoseconds since boot, in the steps of PTIMER.
pub fn host_ns() -> u64 {
    // CLOCK_MONOTONIC exists on every Linux. If it failed, the zero would only stop the simulated clock.
    let now =
        clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64);
    now & !(STEP - 1)
}

/// The state of a modelled PTIMER.
#[derive(Debug, Default)]
struct Device {
    /// What it shows.
    now: u64,
    /// The time of the host when the GPU last did something.
    worked: u64,
    /// The number of threads that work now.
    working: u32,
    /// For how long the GPU has worked since it was idle.
    busy: u64,
}

impl Device {
    /// Goes to the time of the host after a pause. It never goes back.
    fn show(&mut self, host: u64) -> u64 {
        if self.working == 0 && host.saturating_sub(self.worked) >= IDLE {
            self.now = self.now.max(host);
            self.busy = 0;
        }
        self.now
    }

    /// A submission comes at a time of the host, which took so many nanoseconds for it if the GPU had nothing else to do.
    fn submitted(&mut self, host: u64, ns: u64) {
        self.show(host);
        if self.working == 0 {
            self.now += ns.next_multiple_of(STEP);
        }
    }
}

/// The clock that programs see.
#[derive(Debug, Default)]
pub(crate) struct Ptimer {
    /// If this is `None`, it shows the time of the host.
    device: Option<Mutex<Device>>,
}

/// Work of the GPU. Meanwhile a modelled clock stands still until the work says how long it took.
pub(crate) struct Work<'a> {
    clock: &'a Ptimer,
    load: &'a Load,
    /// What the clock showed when the work began.
    pub(crate) begun: u64,
    /// For how long the GPU had worked by then since it was idle. With the time of the host that is for ever.
    pub(crate) busy: u64,
}

impl Ptimer {
    /// A clock of modelled time, or of the host's.
    pub(crate) fn new(modelled: bool) -> Ptimer {
        Ptimer { device: modelled.then(Mutex::default) }
    }

    /// What it shows.
    pub(crate) fn now(&self) -> u64 {
        match &self.device {
            None => host_ns(),
            Some(device) => device.lock().show(host_ns()),
        }
    }

    /// What it shows to something that the GPU does, which is not idle then.
    pub(crate) fn stamp(&self) -> u64 {
        match &self.device {
            None => host_ns(),
            Some(device) => {
                let host = host_ns();
                let mut device = device.lock();
                let now = device.show(host);
                device.worked = host;
                now
            }
        }
    }

    /// A submission comes for which the host of a board takes so many nanoseconds if the GPU is idle. A clock of the host's time knows
    /// what it took.
    pub(crate) fn submitted(&self, ns: u64) {
        if let Some(device) = &self.device {
            device.lock().submitted(host_ns(), ns);
        }
    }

    /// Begins some work, which `load` counts.
    pub(crate) fn work<'a>(&'a self, load: &'a Load) -> Work<'a> {
        let begun = self.stamp();
        load.begins(host_ns());
        let busy = self.device.as_ref().map_or(u64::MAX, |device| {
            let mut device = device.lock();
            device.working += 1;
            device.busy
        });
        Work { clock: self, load, begun, busy }
    }
}

impl Work<'_> {
    /// Says how many nanoseconds the work took. A clock of the host's time knows that by itself.
    pub(crate) fn took(&self, ns: u64) {
        if let Some(device) = &self.clock.device {
            let mut device = device.lock();
            device.now += ns.next_multiple_of(STEP);
            device.busy = device.busy.saturating_add(ns);
        }
    }
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        let now = host_ns();
        self.load.ends(now);
        if let Some(device) = &self.clock.device {
            let mut device = device.lock();
            device.working -= 1;
            device.worked = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modelled_time_passes_with_work_alone() {
        let clock = Ptimer::new(true);
        let begun = clock.stamp();
        assert!(begun > 0 && begun <= host_ns(), "after a pause it shows the time of the host");
        let load = Load::default();
        let work = clock.work(&load);
        assert_eq!((work.begun, work.busy, clock.now()), (begun, 0, begun));
        work.took(33);
        assert_eq!(clock.now(), begun + 64);
        clock.submitted(1000);
        assert_eq!(clock.now(), begun + 64, "the GPU is not idle");
        drop(work);
        assert_eq!(clock.stamp(), begun + 64);
        clock.submitted(1000);
        assert_eq!(clock.stamp(), begun + 64 + 1024, "it waited for the host");
        assert_eq!(clock.work(&load).busy, 33, "what the host takes is no work of the GPU");
    }

    #[test]
    fn after_a_pause_it_goes_to_the_time_of_the_host_and_never_back() {
        let mut device = Device { now: 5 * IDLE, worked: IDLE, working: 0, busy: 9 };
        assert_eq!((device.show(2 * IDLE - 1), device.busy), (5 * IDLE, 9));
        assert_eq!(device.show(2 * IDLE), 5 * IDLE);
        assert_eq!((device.show(7 * IDLE), device.busy), (7 * IDLE, 0));
        device = Device { now: 0, worked: 0, working: 1, busy: 0 };
        assert_eq!(device.show(7 * IDLE), 0, "it stands still while the GPU works");
    }

    #[test]
    fn otherwise_it_is_the_clock_of_the_host() {
        let clock = Ptimer::new(false);
        let before = host_ns();
        let load = Load::default();
        let work = clock.work(&load);
        assert_eq!(work.busy, u64::MAX);
        work.took(1 << 60);
        drop(work);
        clock.submitted(1 << 60);
        let stamp = clock.stamp();
        assert!(before <= stamp && stamp <= host_ns());
    }
}
