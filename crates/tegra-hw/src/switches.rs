//! The context switches of the engine, for a log.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use tegrarm_lock::Mutex;

/// A receiver that wants to know which group has the engine.
pub trait SwitchLog: Send + Sync + std::fmt::Debug {
    /// The engine went to group `to` at this PTIMER time. `from` is `None` if no group had the engine.
    fn switched(&self, from: Option<u32>, to: u32, time_ns: u64);
}

/// The engine's context switches. They are followed only while a log receives them.
#[derive(Debug, Default)]
pub struct Switches {
    log: Mutex<Option<Weak<dyn SwitchLog>>>,
    /// The group that has the engine now.
    running: Mutex<Option<u32>>,
    logged: AtomicBool,
}

impl Switches {
    /// Reports context switches to `log` from now on, for as long as `log` lives.
    pub fn log_to<L: SwitchLog + 'static>(&self, log: &Arc<L>) {
        let log: Arc<dyn SwitchLog> = log.clone();
        *self.log.lock() = Some(Arc::downgrade(&log));
        self.logged.store(true, Ordering::Release);
    }

    /// Whether a log receives them.
    pub fn logged(&self) -> bool {
        self.logged.load(Ordering::Acquire)
    }

    /// Notes that group `to` has the engine at `time_ns`.
    pub fn runs(&self, to: u32, time_ns: u64) {
        let mut running = self.running.lock();
        if *running == Some(to) {
            return;
        }
        let from = running.replace(to);
        let log = self.log.lock().as_ref().and_then(Weak::upgrade);
        match log {
            Some(log) => log.switched(from, to, time_ns),
            None => {
                *running = None;
                self.logged.store(false, Ordering::Release);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Log(Mutex<Vec<(Option<u32>, u32, u64)>>);

    impl SwitchLog for Log {
        fn switched(&self, from: Option<u32>, to: u32, time_ns: u64) {
            self.0.lock().push((from, to, time_ns));
        }
    }

    #[test]
    fn a_switch_is_logged_once_and_only_while_the_log_lives() {
        let switches = Switches::default();
        assert!(!switches.logged());
        let log = Arc::new(Log::default());
        switches.log_to(&log);
        assert!(switches.logged());
        for (group, time) in [(1, 10), (1, 20), (2, 30)] {
            switches.runs(group, time);
        }
        assert_eq!(*log.0.lock(), [(None, 1, 10), (Some(1), 2, 30)]);
        drop(log);
        switches.runs(1, 40);
        assert!(!switches.logged());
    }
}
